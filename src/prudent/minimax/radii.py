"""How far the true moments of a class may lie from those used, and what is assumed.

Three sets of possible truths surround an estimated mean m and covariance S: means z
with (z - m)' Sigma^-1 (z - m) <= nu^2, covariances Sigma with |Sigma - S|_F <= rho, and
those with Sigma <= gamma S in the order of Loewner. The first costs nu of kappa, the
second is the same as adding rho I to S, and the third divides kappa by sqrt(gamma).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import chi2

from prudent.core.assumptions import Assumption
from prudent.core.binomial import high_probability_rank
from prudent.core.linalg import CovarianceRule
from prudent.core.moments import ClassMoments
from prudent.core.rows import Rows
from prudent.core.types import BoolArray, FloatArray
from prudent.core.validation import shown
from prudent.exceptions import DegenerateDataError

#: Where the moments and their radii come from.
Origin = Literal["plug-in", "given", "gaussian", "bootstrap"]
#: Fewest draws of a pivot, the probability (over seeds) that they mislead, and the
#: relative distance of the cut from their order statistic, on the safe side.
N_SIMULATIONS, SIMULATION_DOUBT, SIMULATION_TOLERANCE = 20_000, 1e-4, 1e-5
N_RESAMPLES = 400
#: Resamples of fewer rows say next to nothing about what the rows do not show.
FEWEST_ROWS_TO_RESAMPLE = 10


#: What nu, rho and gamma are where nothing may differ from the estimates.
NO_RADII = np.array([[0.0], [0.0], [1.0]])


def given_radii(
    mean_radius: ArrayLike,
    covariance_radius: ArrayLike,
    covariance_factor: ArrayLike,
    n_classes: int,
) -> FloatArray:
    """Radii nu, rho and gamma of every class, (3, K), as set by a user.

    Each is one number, or one for each class.
    """
    return np.stack(
        [
            _per_class("mean_radius", mean_radius, n_classes, 0),
            _per_class("covariance_radius", covariance_radius, n_classes, 0),
            _per_class("covariance_factor", covariance_factor, n_classes, 1),
        ]
    )


def spread_radii(radii: FloatArray, seen: BoolArray) -> FloatArray:
    """Radii of all classes, (3, n_classes), of those of the classes with rows."""
    everywhere = np.repeat(NO_RADII, len(seen), axis=1)
    everywhere[:, seen] = radii
    return everywhere


def _per_class(name: str, value: ArrayLike, n_classes: int, least: float) -> FloatArray:
    """One finite number >= `least` for each class, (K,), of one or of as many."""
    values = np.asarray(value, dtype=np.float64)
    if values.shape not in ((), (n_classes,)):
        raise ValueError(
            f"`{name}` must be one number or one per class, {n_classes}, got an "
            f"array of shape {values.shape}."
        )
    if not (np.isfinite(values).all() and (values >= least).all()):
        raise ValueError(
            f"`{name}` must be finite and >= {least:g}, got {shown(value)}."
        )
    return np.array(np.broadcast_to(values, n_classes))


def gaussian_radii(moments: ClassMoments, confidence: float) -> FloatArray:
    """Radii (3, K) that hold for all normal classes with probability `confidence`.

    Each of the 2 K events, a mean or a covariance outside its set, is given the level
    (1 - confidence) / (2 K), so that their union has probability 1 - confidence: nu by
    `mean_radius`, rho = 0 and gamma by `covariance_factor`. An error for a class of
    too few rows, n <= p + 1 for p features.
    """
    n_classes, n_features = moments.mean.shape
    level = (1 - confidence) / (2 * n_classes)
    n_rows = np.floor(moments.weight).astype(int).tolist()
    for label, n in zip(moments.classes.tolist(), n_rows, strict=True):
        if n <= n_features + 1:
            raise DegenerateDataError(
                f"uncertainty='gaussian' needs more than {n_features + 1} rows per "
                f"class for {n_features} features, class {shown(label)} has {n}: use "
                "uncertainty='bootstrap', fewer features or more rows."
            )
    radii = np.zeros((3, n_classes))
    radii[0] = [mean_radius(n_features, n, level) for n in n_rows]
    radii[2] = [covariance_factor(n_features, n, level) for n in n_rows]
    return radii


def bootstrap_radii(
    moments: ClassMoments,
    rows: Rows,
    confidence: float,
    random: np.random.RandomState,
) -> FloatArray:
    """Radii (3, K) that hold for all classes together with about `confidence`.

    As `gaussian_radii`, but for rho by `bootstrap_covariance_radius` and gamma = 1.
    """
    n_classes, n_features = moments.mean.shape
    level = (1 - confidence) / (2 * n_classes)
    for label, count in zip(moments.classes.tolist(), moments.count, strict=True):
        if count < FEWEST_ROWS_TO_RESAMPLE:
            raise ValueError(
                f"uncertainty='bootstrap' needs {FEWEST_ROWS_TO_RESAMPLE} rows per "
                f"class at least, class {shown(label)} has {count}: give more rows, "
                "or set `covariance_radius` and `mean_radius`."
            )
    radii = np.ones((3, n_classes))
    radii[0] = [mean_radius(n_features, w, level) for w in moments.weight.tolist()]
    for k in range(n_classes):
        X, weight = rows.of_class(k)
        weight = np.ones(len(X)) if weight is None else weight
        radii[1, k] = bootstrap_covariance_radius(X, weight, level, random)
    return radii


def mean_radius(n_features: int, n_rows: float, level: float) -> float:
    """Mahalanobis radius nu that the mean of `n_rows` rows leaves with prob. `level`.

    nu^2 = chi2 quantile / n_rows: exact for normal rows, asymptotic otherwise.
    """
    return math.sqrt(float(chi2.isf(level, n_features)) / n_rows)


@lru_cache(maxsize=256)
def covariance_factor(n_features: int, n_rows: int, level: float) -> float:
    """Factor gamma with Sigma <= gamma S but for a probability `level`.

    S is the covariance (divisor `n_rows`) of normal rows with covariance Sigma. The
    largest eigenvalue of S^-1 Sigma is a pivot: its law depends on the arguments
    only, and is simulated with a fixed seed. The cut is an order statistic of the
    draws for which `level` is an upper limit, of confidence 1 - `SIMULATION_DOUBT`
    over seeds: a quantile of the draws would be too small for about half of them. The
    scatter of standard normal rows has the eigenvalues of B B' with B lower bidiagonal
    of independent chi variables (Dumitriu and Edelman 2002, Matrix models for beta
    ensembles), so one draw costs O(n_features), and so does the sign of its smallest
    eigenvalue less a number: that of its least pivot (Sylvester's law of inertia).
    """
    freedom = n_rows - 1
    random = np.random.default_rng(0)
    order = np.arange(n_features)
    # With far fewer draws no order statistic is sure to lie low enough.
    n_draws = max(N_SIMULATIONS, math.ceil(25 / level))
    rank = high_probability_rank(n_draws, level, 1 - SIMULATION_DOUBT)
    squares = random.chisquare((freedom - order)[:, None], (n_features, n_draws))
    below = random.chisquare(
        np.maximum(n_features - 1 - order[:-1], 1)[:, None], (n_features - 1, n_draws)
    )
    diagonal = squares.copy()
    diagonal[1:] += below
    off_diagonal_squared = squares[:-1] * below

    def n_at_most(value: float) -> int:
        """Number of draws whose smallest eigenvalue is at most `value`."""
        pivot = diagonal[0] - value
        positive = pivot > 0
        with np.errstate(divide="ignore", invalid="ignore"):
            for k in range(1, n_features):
                pivot = diagonal[k] - value - off_diagonal_squared[k - 1] / pivot
                positive &= pivot > 0
        return n_draws - int(np.count_nonzero(positive))

    low, high = 0.0, float(freedom)
    while low == 0 or high - low > SIMULATION_TOLERANCE * high:
        middle = (low + high) / 2
        if n_at_most(middle) < rank:
            low = middle
        else:
            high = middle
    return max(1.0, n_rows / low)


def bootstrap_covariance_radius(
    X: FloatArray,
    weight: FloatArray,
    level: float,
    random: np.random.RandomState,
) -> float:
    """Frobenius radius rho that |S* - S| of a resample exceeds with prob. `level`.

    The 1 - `level` quantile over resamples of the whole class; `weight` (N,) holds the
    repetitions of its rows.
    """
    total = float(weight.sum())
    share = weight / total
    centred = X - share @ X
    covariance = (centred * share[:, None]).T @ centred
    distances = []
    for _ in range(N_RESAMPLES):
        drawn = random.multinomial(max(round(total), 1), share)
        part = drawn / drawn.sum()
        mean = part @ centred
        resampled = (centred * part[:, None]).T @ centred - np.outer(mean, mean)
        distances.append(np.linalg.norm(resampled - covariance))
    return float(np.quantile(distances, 1 - level, method="higher"))


def known_moments(
    origin: Origin, covariance: CovarianceRule, *, with_radii: bool, floor: float = 0.0
) -> tuple[tuple[Assumption, ...], dict[str, float]]:
    """What is taken for known about the classes, and the numbers of its sentences.

    `floor` is the share of each feature's variance that was added to covariances.
    """
    if origin == "given":
        moments = Assumption.MOMENTS_GIVEN
        if with_radii:
            moments = Assumption.MOMENTS_GIVEN_RADII
    else:
        moments = Assumption.MOMENTS_PLUG_IN
        if with_radii:
            moments = Assumption.MOMENTS_PLUG_IN_RADII
    assumptions, numbers = [moments], {}
    if isinstance(covariance, str) or callable(covariance):
        if covariance != "empirical":
            assumptions.append(Assumption.REGULARISED)
    elif covariance:
        assumptions.append(Assumption.SHRUNK)
        numbers["shrinkage"] = float(covariance)
    if floor:
        assumptions.append(Assumption.FLOORED)
        numbers["floor"] = float(floor)
    return tuple(assumptions), numbers
