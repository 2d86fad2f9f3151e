"""A fitted model, and the checked question that one asks it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from prudent.core.binomial import check_fraction
from prudent.core.classes import class_costs, log_probabilities, posterior_bounds
from prudent.core.types import BoolArray, FloatArray, IntArray
from prudent.imprecise.boxes import Boxes, DiagonalBoxes
from prudent.imprecise.criteria import CredalSet, dominance, prior_bounds

# --- questions: settings that matter at prediction time only --------------------------

CRITERIA = ("maximality", "e_admissible", "interval")
LARGEST = 1e100  # of an imprecision: its square must stay finite


@dataclass(frozen=True, slots=True)
class Question:
    """Checked settings of a prediction, for the classes that have rows."""

    imprecision: float  # the largest, where every feature has its own
    shares: FloatArray | None  # (p,) of it that the features have; None is 1
    prior_imprecision: float  # total variation times the weight total
    costs: FloatArray | None  # (K, K)
    criterion: str
    max_nodes: int


def ask(
    seen: BoolArray,
    n_features: int,
    *,
    imprecision: Any,
    prior_imprecision: Any,
    costs: ArrayLike | None,
    criterion: Any,
    max_nodes: Any,
) -> Question:
    """Check the settings of predictions, for the classes `seen`; see the estimator.

    They may change without a new fit.
    """
    largest, shares = _imprecisions(imprecision, n_features)
    if not _is_amount(prior_imprecision):
        raise ValueError(
            f"`prior_imprecision` must be a number from 0 to {LARGEST:g}, got "
            f"{prior_imprecision!r}."
        )
    if not (isinstance(max_nodes, Integral) and int(max_nodes) >= 0):
        raise ValueError(f"`max_nodes` must be an integer >= 0, got {max_nodes!r}.")
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
    return Question(
        imprecision=largest,
        shares=shares,
        prior_imprecision=float(prior_imprecision),
        costs=matrix,
        criterion=criterion,
        max_nodes=int(max_nodes),
    )


def _is_amount(value: Any) -> bool:
    return isinstance(value, Real) and 0 <= float(value) <= LARGEST


def _imprecisions(given: Any, n_features: int) -> tuple[float, FloatArray | None]:
    """The largest imprecision, and the shares of the features where they differ."""
    if _is_amount(given):
        return float(given), None
    if np.ndim(given) == 0:
        raise ValueError(
            f"`imprecision` must be a number from 0 to {LARGEST:g}, got {given!r}."
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


def check_path(question: Question) -> None:
    """Refuse settings for which no path in the imprecision is defined."""
    if question.costs is not None or question.criterion != "maximality":
        costs = "none" if question.costs is None else "some"
        raise ValueError(
            "critical_imprecision is defined for costs=None and "
            f"criterion='maximality', got {costs} and {question.criterion!r}."
        )


# --- the model ------------------------------------------------------------------------


class Model(NamedTuple):
    """Classes in scaled coordinates (x - origin) / scale of the features in use.

    Answers, each (n, K) unless it says otherwise, come with the number of questions
    that met the node limit.
    """

    features: IntArray  # (p,) columns in use
    origin: FloatArray  # (p,) in units of X
    scale: FloatArray  # (p,) in units of X
    normaliser: FloatArray  # (K,) log density of each class at its centre
    prior: FloatArray  # (K,)
    total: float  # weight of the rows behind the model
    boxes: Boxes | DiagonalBoxes

    def log_joint(self, X: NDArray[Any]) -> FloatArray:
        """Log prior + log density of the precise model, (n, K)."""
        half = self.boxes.half_distances(self._points(X))
        return np.subtract(
            log_probabilities(self.prior) + self.normaliser, half, out=half
        )

    def bounds(
        self, X: NDArray[Any], question: Question
    ) -> tuple[FloatArray, FloatArray, int]:
        """Least and largest log joint of rows (n, n_features) over boxes and priors.

        Returns
        -------
        lower, upper : ndarray of shape (n, K)
            Densities in units of X without its constant features.
        unanswered : int
            Searches that met the node limit, whose bounds are outer ones.
        """
        return self._bounds(X, question, *self._constants(question))

    def keep(self, X: NDArray[Any], question: Question) -> tuple[BoolArray, int]:
        """Classes (n, K) that the criterion keeps, and the questions left unanswered.

        Under 0-1 costs and maximality the boxes decide without a bound of every class;
        costs, E-admissibility under an imprecise prior, and interval dominance need the
        bounds.
        """
        if question.criterion == "interval":
            credal, unanswered = self._credal(X, question)
            return credal.interval_undominated(), unanswered
        admissible, costs = question.criterion == "e_admissible", question.costs
        if costs is not None:
            credal, unanswered = self._credal(X, question)
            kept = np.logical_not(credal.dominance_by_cost(costs).any(axis=1))
            return credal.e_admissible(costs, kept) if admissible else kept, unanswered
        kept, unanswered = self._boxes(question).keep(
            self._points(X),
            question.imprecision,
            *self._constants(question),
            question.max_nodes,
        )
        rows = np.flatnonzero(kept.sum(axis=1) > 1)
        if not (admissible and question.prior_imprecision > 0 and len(rows)):
            return kept, unanswered  # under a precise prior all of them are admissible
        credal, more = self._credal(X[rows], question)
        kept[rows] = credal.e_admissible(None, kept[rows])
        return kept, unanswered + more

    def dominance(self, X: NDArray[Any], question: Question) -> tuple[BoolArray, int]:
        """Which class is preferred to which in every model, (n, K, K).

        Entry (i, a, b) says that a beats b. The number of searches that met the node
        limit comes with it.
        """
        if question.costs is not None:
            credal, unanswered = self._credal(X, question)
            return credal.dominance_by_cost(question.costs), unanswered
        lower, upper, unanswered = self.bounds(X, question)
        return dominance(lower, upper), unanswered

    def posterior_bounds(
        self, X: NDArray[Any], question: Question
    ) -> tuple[FloatArray, FloatArray, int]:
        """Least and largest posterior of each class, (n, K), and what stayed open.

        Under a precise prior a class is most probable with its own density at the upper
        bound and all others at the lower; an imprecise one moves mass jointly with the
        densities.
        """
        if question.prior_imprecision == 0.0:
            lower, upper, unanswered = self.bounds(X, question)
            return *posterior_bounds(lower, upper), unanswered
        credal, unanswered = self._credal(X, question)
        least, most = credal.log_odds_bounds()
        return expit(least), expit(most), unanswered

    def cost_bounds(
        self, X: NDArray[Any], question: Question
    ) -> tuple[FloatArray, FloatArray, int]:
        """Bounds of the posterior expected cost of each class."""
        if question.costs is None:
            unlikely, likely, unanswered = self.posterior_bounds(X, question)
            return 1.0 - likely, 1.0 - unlikely, unanswered
        credal, unanswered = self._credal(X, question)
        return *credal.expected_cost_bounds(question.costs), unanswered

    def critical(
        self, X: NDArray[Any], question: Question, grid: FloatArray | None = None
    ) -> tuple[FloatArray, int]:
        """Smallest imprecision that keeps each class; see `Boxes.critical`.

        All of the path, without a `grid`, is defined for 0-1 costs and maximality only.
        """
        if grid is None:
            check_path(question)
        return self.boxes.critical(
            self._points(X), *self._constants(question), question.max_nodes, grid
        )

    def critical_sets(
        self, X: NDArray[Any], question: Question, grid: FloatArray
    ) -> tuple[FloatArray, int]:
        """First point of a grid of imprecisions whose sets have each class, (n, K).

        Any criterion and costs will do, unlike in `critical`. Intervals of the grid
        are halved where the sets of their ends differ. Infinite where the last grid
        point still leaves the class out.
        """
        total = 0

        def keep(rows: IntArray, imprecision: float) -> BoolArray:
            nonlocal total
            kept, count = self.keep(X[rows], replace(question, imprecision=imprecision))
            total += count
            return kept

        return critical_on_grid(keep, len(X), len(self.prior), grid), total

    def extremal_means(
        self, X: NDArray[Any], question: Question
    ) -> tuple[FloatArray, FloatArray, int]:
        """Moves of the means (n, K, p) to the least and largest density, as X."""
        farthest, nearest, unanswered = self._boxes(question).extremes(
            self._points(X), question.imprecision, question.max_nodes
        )
        return farthest * self.scale, nearest * self.scale, unanswered

    def half_widths(self, question: Question) -> FloatArray:
        """How far each mean can move in each feature in use (K, p), in units of X."""
        return self._boxes(question).half_widths(question.imprecision) * self.scale

    def _points(self, X: NDArray[Any]) -> FloatArray:
        """Rows in scaled coordinates, float64 and contiguous."""
        if len(self.features) < X.shape[1]:
            X = X[:, self.features]
        points = np.subtract(X, self.origin, dtype=np.float64, order="C")
        points /= self.scale
        return points

    def _boxes(self, question: Question) -> Boxes | DiagonalBoxes:
        if question.shares is None:
            return self.boxes
        return self.boxes.with_shares(question.shares[self.features])

    def _constants(self, question: Question) -> tuple[FloatArray, FloatArray]:
        """Log joints at the class centres under the prior's two bounds."""
        lower, upper = prior_bounds(self.prior, question.prior_imprecision / self.total)
        return (
            log_probabilities(lower) + self.normaliser,
            log_probabilities(upper) + self.normaliser,
        )

    def _bounds(
        self, X: NDArray[Any], question: Question, low: FloatArray, up: FloatArray
    ) -> tuple[FloatArray, FloatArray, int]:
        return self._boxes(question).bounds(
            self._points(X), question.imprecision, low, up, question.max_nodes
        )

    def _credal(self, X: NDArray[Any], question: Question) -> tuple[CredalSet, int]:
        """All posteriors of every row, and the searches that met the node limit.

        The prior varies jointly with the likelihoods.
        """
        lower, upper, unanswered = self._bounds(
            X, question, self.normaliser, self.normaliser
        )
        radius = question.prior_imprecision / self.total
        return CredalSet(lower, upper, self.prior, radius), unanswered


def critical_on_grid(
    keep: Callable[[IntArray, float], BoolArray],
    n_rows: int,
    n_classes: int,
    grid: FloatArray,
) -> FloatArray:
    """First grid point with each class in the set of each row; infinite if none.

    `keep` takes positions of rows and an imprecision to their sets. Sets grow with the
    imprecision, so only intervals whose ends differ are halved.
    """
    everything = np.arange(n_rows)
    critical = np.full((n_rows, n_classes), np.inf)
    first = keep(everything, float(grid[0]))
    critical[first] = grid[0]
    last = keep(everything, float(grid[-1])) | first
    open_parts = [(0, len(grid) - 1, everything, first, last)]
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
        sets = (keep(rows, float(grid[middle])) | first) & last
        open_parts.append((start, middle, rows, first, sets))
        open_parts.append((middle, end, rows, sets, last))
    return critical
