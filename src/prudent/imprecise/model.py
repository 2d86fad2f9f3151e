"""A fitted model, and the checked settings of what one asks it."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from prudent.core.binomial import check_fraction
from prudent.core.classes import (
    FARTHEST,
    class_costs,
    log_probabilities,
    posterior_bounds,
)
from prudent.core.types import BoolArray, FloatArray, IntArray
from prudent.core.validation import shown
from prudent.imprecise.boxes import Boxes, DiagonalBoxes
from prudent.imprecise.criteria import CredalSet, dominance, prior_bounds

# --- settings that matter at prediction time only -------------------------------------

CRITERIA = ("maximality", "e_admissible", "interval")
LARGEST = 1e100  # of an imprecision: its square must stay finite


def settings(
    seen: BoolArray,
    n_features: int,
    *,
    imprecision: Any,
    prior_imprecision: Any,
    costs: ArrayLike | None,
    criterion: Any,
    max_nodes: Any,
) -> dict[str, Any]:
    """Check the settings of predictions, for the classes `seen`; see the estimator.

    They may change without a new fit: what is returned are fields of `Model`.
    """
    largest, shares = _imprecisions(imprecision, n_features)
    if not _is_amount(prior_imprecision):
        raise ValueError(
            f"`prior_imprecision` must be a number from 0 to {LARGEST:g}, got "
            f"{shown(prior_imprecision)}."
        )
    if not (isinstance(max_nodes, Integral) and int(max_nodes) >= 0):
        raise ValueError(
            f"`max_nodes` must be an integer >= 0, got {shown(max_nodes)}."
        )
    if criterion not in CRITERIA:
        raise ValueError(
            f"`criterion` must be one of {list(CRITERIA)}, got {criterion!r}."
        )
    matrix = None
    if costs is not None:
        matrix = class_costs(costs, len(seen))[np.ix_(seen, seen)]
        if criterion == "interval":
            raise ValueError(
                "criterion='interval' compares probabilities and knows no `costs`: "
                "use criterion='maximality' or 'e_admissible', or costs=None."
            )
    return {
        "imprecision": largest,
        "shares": shares,
        "prior_imprecision": float(prior_imprecision),
        "costs": matrix,
        "criterion": criterion,
        "max_nodes": int(max_nodes),
    }


def _is_amount(value: Any) -> bool:
    return isinstance(value, Real) and 0 <= float(value) <= LARGEST


def _imprecisions(given: Any, n_features: int) -> tuple[float, FloatArray | None]:
    """The largest imprecision, and the shares of the features where they differ."""
    if _is_amount(given):
        return float(given), None
    if np.ndim(given) == 0:
        raise ValueError(
            f"`imprecision` must be a number from 0 to {LARGEST:g}, got {shown(given)}."
        )
    values = np.asarray(given)
    fits = values.shape == (n_features,) and values.dtype.kind in "iuf"
    if not (fits and ((values >= 0) & (values <= LARGEST)).all()):
        raise ValueError(
            f"`imprecision` must hold {n_features} numbers from 0 to {LARGEST:g}, one "
            f"for each feature, got {values.tolist()}."
        )
    largest = float(values.max())
    return largest, values / largest if largest > 0 else None


def optimism_share(criterion: str, optimism: float) -> float:
    """Share of the lower expected cost that a criterion of `predict` stands for."""
    shares = {"maximin": 0.0, "maximax": 1.0, "hurwicz": optimism}
    if criterion not in shares:
        raise ValueError(
            f"`criterion` must be None or one of {list(shares)}, got {criterion!r}."
        )
    check_fraction("optimism", optimism, "[0, 1]")
    return shares[criterion]


# --- the model ------------------------------------------------------------------------


class Model(NamedTuple):
    """Classes in scaled coordinates (x - origin) / scale of the features in use.

    Answers about rows (n, n_features), each (n, K) unless it says otherwise, come with
    the number of questions that met the node limit: of these sets hold more classes
    than the exact ones, and bounds are outer.
    """

    features: IntArray  # (p,) columns in use
    origin: FloatArray  # (p,) in units of X
    scale: FloatArray  # (p,) in units of X
    normaliser: FloatArray  # (K,) log density of each class at its centre
    prior: FloatArray  # (K,)
    total: float  # weight of the rows behind the model
    boxes: Boxes | DiagonalBoxes
    # What a prediction may change: see `settings`.
    imprecision: float = 0.0  # the largest, where every feature has its own
    shares: FloatArray | None = None  # (n_features,) of it that each has; None is 1
    prior_imprecision: float = 0.0  # total variation times the weight total
    costs: FloatArray | None = None  # (K, K), rows the truth
    criterion: str = "maximality"
    max_nodes: int = 0

    def log_joint(self, X: NDArray[Any]) -> FloatArray:
        """Log prior + log density of the precise model, (n, K)."""
        half = self.boxes.half_distances(self._points(X))
        return np.subtract(
            log_probabilities(self.prior) + self.normaliser, half, out=half
        )

    def bounds(self, X: NDArray[Any]) -> tuple[FloatArray, FloatArray, int]:
        """Least and largest log joint over boxes and priors.

        Densities are in units of X without its constant features.
        """
        return self._posed().bounds(self._points(X), self.imprecision)

    def keep(self, X: NDArray[Any]) -> tuple[BoolArray, int]:
        """Classes that the criterion keeps.

        Under 0-1 costs and maximality the boxes decide without a bound of every class;
        costs, E-admissibility under an imprecise prior, and interval dominance need the
        bounds.
        """
        if self.criterion == "interval":
            credal, unanswered = self._credal(X)
            return credal.interval_undominated(), unanswered
        admissible, costs = self.criterion == "e_admissible", self.costs
        if costs is not None:
            credal, unanswered = self._credal(X)
            kept = np.logical_not(credal.dominance_by_cost(costs).any(axis=1))
            return credal.e_admissible(costs, kept) if admissible else kept, unanswered
        kept, unanswered = self._posed().keep(self._points(X), self.imprecision)
        rows = np.flatnonzero(kept.sum(axis=1) > 1)
        if not (admissible and self.prior_imprecision > 0 and len(rows)):
            return kept, unanswered  # under a precise prior all of them are admissible
        credal, more = self._credal(X[rows])
        kept[rows] = credal.e_admissible(None, kept[rows])
        return kept, unanswered + more

    def dominance(self, X: NDArray[Any]) -> tuple[BoolArray, int]:
        """Whether a beats b in every model, entries (i, a, b) of shape (n, K, K)."""
        if self.costs is not None:
            credal, unanswered = self._credal(X)
            return credal.dominance_by_cost(self.costs), unanswered
        lower, upper, unanswered = self.bounds(X)
        return dominance(lower, upper), unanswered

    def posterior_bounds(self, X: NDArray[Any]) -> tuple[FloatArray, FloatArray, int]:
        """Least and largest posterior of each class.

        Under a precise prior a class is most probable with its own density at the upper
        bound and all others at the lower; an imprecise one moves mass jointly with the
        densities.
        """
        if self.prior_imprecision == 0.0:
            lower, upper, unanswered = self.bounds(X)
            return *posterior_bounds(lower, upper), unanswered
        credal, unanswered = self._credal(X)
        least, most = credal.log_odds_bounds()
        return expit(least), expit(most), unanswered

    def cost_bounds(self, X: NDArray[Any]) -> tuple[FloatArray, FloatArray, int]:
        """Least and largest posterior expected cost of deciding each class."""
        if self.costs is None:
            unlikely, likely, unanswered = self.posterior_bounds(X)
            return 1.0 - likely, 1.0 - unlikely, unanswered
        credal, unanswered = self._credal(X)
        return *credal.expected_cost_bounds(self.costs), unanswered

    def critical(
        self, X: NDArray[Any], grid: FloatArray | None = None
    ) -> tuple[FloatArray, int]:
        """Smallest imprecision that keeps each class, whatever the own; see `Boxes`.

        All of the path, without a `grid`, is defined for 0-1 costs and maximality only.
        """
        if grid is None and (self.costs is not None or self.criterion != "maximality"):
            costs = "none" if self.costs is None else "some"
            raise ValueError(
                "critical_imprecision is defined for costs=None and "
                f"criterion='maximality', got {costs} and {self.criterion!r}."
            )
        return self._replace(shares=None)._posed().critical(self._points(X), grid)

    def critical_sets(
        self, X: NDArray[Any], grid: FloatArray
    ) -> tuple[FloatArray, int]:
        """First point of a grid of imprecisions whose sets have each class.

        Any criterion and costs will do, unlike in `critical`. Sets grow with the
        imprecision, so only intervals of the grid whose ends differ are halved.
        Infinite where the last grid point still leaves the class out.
        """
        total = 0

        def keep(rows: IntArray, at: int) -> BoolArray:
            nonlocal total
            kept, count = self._replace(imprecision=float(grid[at])).keep(X[rows])
            total += count
            return kept

        critical = np.full((len(X), len(self.prior)), np.inf)
        everything, end = np.arange(len(X)), len(grid) - 1
        first = keep(everything, 0)
        critical[first] = grid[0]
        open_parts = [(0, end, everything, first, keep(everything, end) | first)]
        while open_parts:
            start, end, rows, first, last = open_parts.pop()
            differ = (first != last).any(axis=1)
            rows, first, last = rows[differ], first[differ], last[differ]
            if not len(rows):
                continue
            if end - start == 1:
                critical[rows] = np.where(last & ~first, grid[end], critical[rows])
                continue
            middle = (start + end) // 2
            sets = (keep(rows, middle) | first) & last
            open_parts.append((start, middle, rows, first, sets))
            open_parts.append((middle, end, rows, sets, last))
        return critical, total

    def extremal_means(self, X: NDArray[Any]) -> tuple[FloatArray, FloatArray, int]:
        """Moves of the means (n, K, p) to the least and largest density, as X."""
        boxes = self._posed(prior=False)  # moves are those of impossible classes too
        farthest, nearest, unanswered = boxes.extremes(
            self._points(X), self.imprecision
        )
        return farthest * self.scale, nearest * self.scale, unanswered

    def half_widths(self) -> FloatArray:
        """How far each mean can move in each feature in use (K, p), in units of X."""
        return self._posed().half_widths(self.imprecision) * self.scale

    def _points(self, X: NDArray[Any]) -> FloatArray:
        """Rows in scaled coordinates, float64 and contiguous, of finite distance."""
        if len(self.features) < X.shape[1]:
            X = X[:, self.features]
        with np.errstate(over="ignore"):
            points = np.subtract(X, self.origin, dtype=np.float64, order="C")
            points /= self.scale
        farthest = FARTHEST * self.boxes.narrowest
        return np.clip(points, -farthest, farthest, out=points)

    @property
    def _radius(self) -> float:
        """Total variation that the prior may move."""
        return self.prior_imprecision / self.total

    def _posed(self, prior: bool = True) -> Boxes | DiagonalBoxes:
        """The boxes under the present settings, with the two bounds of the prior.

        Without `prior` their log joints are log densities.
        """
        ends = self.normaliser, self.normaliser
        if prior:
            lower, upper = prior_bounds(self.prior, self._radius)
            ends = (
                log_probabilities(lower) + self.normaliser,
                log_probabilities(upper) + self.normaliser,
            )
        boxes = self.boxes.posed(*ends, self.max_nodes)
        if self.shares is None:
            return boxes
        return boxes.with_shares(self.shares[self.features])

    def _credal(self, X: NDArray[Any]) -> tuple[CredalSet, int]:
        """All posteriors of every row, in which prior and likelihoods vary jointly."""
        boxes, points = self._posed(prior=False), self._points(X)
        lower, upper, unanswered = boxes.bounds(points, self.imprecision)
        return CredalSet(lower, upper, self.prior, self._radius), unanswered
