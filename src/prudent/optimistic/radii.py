"""Radii of the balls: given, or from limit theorem, fourth moments or bootstrap.

Each estimate comes from the rows of a class in one place, or from sums that add up over
blocks of rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial, reduce
from operator import add
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import chi2

from prudent.core.binomial import check_fraction
from prudent.core.linalg import CovarianceRule, MahalanobisFactors, row_blocks
from prudent.core.moments import ClassMoments, RawMoments
from prudent.core.rows import Block, Rows
from prudent.core.types import BoolArray, FloatArray, IntArray
from prudent.core.validation import shown
from prudent.exceptions import DegenerateDataError
from prudent.optimistic.nominal import (
    class_deviations,
    moment_divergence,
    nominal_covariances,
    standardised,
    standardised_fourth,
)
from prudent.optimistic.scores import Ball, whole_features

# --- given or estimated ---------------------------------------------------------------

ESTIMATED_RADII = ("clt", "moments", "bootstrap")


def clt_radius(
    n_features: int, n_rows: float, level: float = 0.5, *, ball: Ball = "moments"
) -> float:
    """Radius from the limit law for Gaussian data.

    n times the divergence of the sample moments tends to a chi-square law with
    d (d + 3) / 2 degrees of freedom (Nguyen, Si and Blanchet 2020, Corollary 2.3).

    Parameters
    ----------
    n_features : int
        Number of features d, >= 1.
    n_rows : float
        Rows (or weight) of the class, > 0.
    level : float, default=0.5
        Nominal probability that the ball holds the true moments, in (0, 1). Not
        a promise: it needs Gaussian data, the sample covariance and many rows.
    ball : {"moments", "covariance"}, default="moments"
        "covariance" is the divergence at equal means: d (d + 1) / 2 degrees.

    Returns
    -------
    float
        Radius rho, already divided by `n_rows`.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Examples
    --------
    >>> from prudent.optimistic import clt_radius
    >>> round(clt_radius(20, 100), 4)
    2.2933
    """
    n_features = whole_features(n_features)
    if not 0 < n_rows < np.inf:
        raise ValueError(f"`n_rows` must be finite and > 0, got {shown(n_rows)}.")
    check_fraction("level", level)
    if ball not in get_args(Ball):
        raise ValueError(f"`ball` must be 'moments' or 'covariance', got {ball!r}.")
    freedom = n_features * (n_features + (3 if ball == "moments" else 1)) / 2
    return float(chi2.ppf(level, freedom) / n_rows)


def estimated_radii(
    source: str,
    level: float,
    moments: ClassMoments,
    rows: Rows | None,
    covariance: CovarianceRule,
    ball: Ball,
    random: np.random.RandomState,
) -> FloatArray:
    """Radius of each class seen: from its moments, its rows or sums over blocks."""
    if rows is None or source == "clt":
        n_features = moments.mean.shape[1]
        return np.array(
            [
                clt_radius(n_features, w, level, ball=ball)
                for w in moments.weight.tolist()
            ]
        )
    if not rows.in_one_place:
        if source == "moments":
            return limit_radii(rows, moments, level)
        assert not callable(covariance)  # it has asked for rows in one place
        return bootstrap_radii(rows, moments, level, covariance, random)

    def estimate(X: FloatArray, weight: FloatArray | None) -> float:
        # a feature constant inside the class has no spread to learn from
        X = X[:, np.ptp(X, axis=0) > 0]
        if not X.shape[1]:
            return 0.0
        if source == "moments":
            return moment_radius(X, level, sample_weight=weight)
        return bootstrap_radius(
            X, level, covariance=covariance, sample_weight=weight, random_state=random
        )

    classes = range(len(moments.weight))
    return np.array([estimate(*rows.of_class(k)) for k in classes])


def given_radii(radius: ArrayLike, n_classes: int) -> FloatArray:
    """One radius for each class, from one number or one for each, (n_classes,).

    Raises
    ------
    ValueError
        If the shape does not fit, or a radius is not finite and >= 0.
    """
    try:
        given = np.asarray(radius, dtype=np.float64)
        description = f"shape {given.shape}"
    except (TypeError, ValueError):
        given, description = np.empty((0, 0)), repr(radius)
    if given.ndim and given.shape != (n_classes,):
        raise ValueError(
            "`radius` must be a number or hold one number for each of the "
            f"{n_classes} classes, got {description}."
        )
    if not ((given >= 0) & np.isfinite(given)).all():
        raise ValueError(f"every radius must be finite and >= 0, got {shown(radius)}.")
    return np.full(n_classes, given)


# --- the limit law of n times the divergence of sample moments (Theorem 2.2) ----------
#
# H'H + Tr(Z^2) / 2 for jointly normal H and Z is |zeta|^2 of one normal vector, of the
# covariance of zeta = (eta, vec(eta eta' - I) / sqrt 2), eta a standardised row (upper
# triangle: the diagonal over sqrt 2). So it is sum_k lambda_k chi2_1 with lambda the
# eigenvalues of that covariance. Its quantiles over n are radii.


_BATCH = 2**20  # normal numbers drawn at once
LARGEST_SUM = 2**23  # numbers that a pass over blocks returns: 64 MB


def radius_limit_law(
    moments: Any,
    n_samples: int = 10_000,
    random_state: int | np.random.RandomState | None = None,
    *,
    sample_weight: ArrayLike | None = None,
) -> FloatArray:
    """Draws from the limit law of n D, D the divergence of n rows' sample moments.

    Parameters
    ----------
    moments : array-like of shape (n, d), or tuple of two array-likes
        Rows of one class, n > d, whose own third and fourth moments are used; or
        these moments of the standardised row eta = S^-1/2 (x - m):
        E[eta_i eta_j eta_k] of shape (d, d, d) and E[eta_i eta_j eta_k eta_l] of
        shape (d, d, d, d).
    n_samples : int, default=10_000
        Number of draws, >= 1.
    random_state : int, RandomState or None, default=None
        Source of the draws.
    sample_weight : array-like of shape (n,), default=None
        Weights >= 0 of the rows, read as repetitions.

    Returns
    -------
    ndarray of shape (n_samples,)
        H'H + Tr(Z^2) / 2, >= 0; a quantile over n is a radius.

    Raises
    ------
    DegenerateDataError
        If there are no more rows than features, or their covariance is singular.
    TypeError
        For `ClassMoments`, which hold no joint third and fourth moments.
    ValueError
        If shapes disagree, or no law has these moments.

    Notes
    -----
    Exact, not a simulation of matrices: draws of sum_k lambda_k chi2_1 with lambda
    the eigenvalues of the covariance of zeta = (eta, vec(eta eta' - I) / sqrt 2)
    (Nguyen, Si and Blanchet 2020, Theorem 2.2). `prudent.optimistic.moment_radius` has
    quantiles of an approximation.

    Examples
    --------
    Gaussian rows: a chi-square law with d (d + 3) / 2 degrees of freedom.

    >>> import numpy as np
    >>> from prudent.optimistic import radius_limit_law
    >>> I = np.eye(2)
    >>> fourth = sum(
    ...     np.einsum(f"{a},{b}->ijkl", I, I)
    ...     for a, b in [("ij", "kl"), ("ik", "jl"), ("il", "jk")]
    ... )
    >>> law = radius_limit_law((np.zeros((2, 2, 2)), fourth), 100_000, 0)
    >>> round(float(law.mean()), 1), round(float(np.median(law)), 1)
    (5.0, 4.3)
    """
    if isinstance(moments, ClassMoments):
        raise TypeError(
            "ClassMoments hold no joint third and fourth moments: give the rows of one "
            "class, or the pair (third, fourth) of a standardised row."
        )
    if not n_samples >= 1:
        raise ValueError(f"`n_samples` must be >= 1, got {shown(n_samples)}.")
    if isinstance(moments, tuple) and len(moments) == 2 and np.ndim(moments[0]) == 3:
        weights = _eigenvalues(_covariance_of_moments(*moments))
    else:
        weights = _row_eigenvalues(*standardised_rows(moments, sample_weight))
    random = random_source(random_state)
    draws = np.empty(n_samples)
    step = max(1, _BATCH // len(weights))
    for start in range(0, n_samples, step):
        part = draws[start : start + step]
        part[:] = random.standard_normal((len(part), len(weights))) ** 2 @ weights
    return draws


def moment_radius(
    X: ArrayLike, level: float = 0.5, *, sample_weight: ArrayLike | None = None
) -> float:
    """Radius from the limit law without Gaussianity, by the rows' own fourth moments.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Rows of one class, n > d.
    level : float, default=0.5
        Nominal probability that the ball holds the true moments, in (0, 1).
    sample_weight : array-like of shape (n,), default=None
        Weights >= 0, read as repetitions.

    Returns
    -------
    float
        Radius rho, already divided by the number of rows.

    Raises
    ------
    DegenerateDataError
        If there are no more rows than features, or the covariance is singular.
    ValueError
        If `level` is outside (0, 1).

    Notes
    -----
    The limit of n D is sum_k lambda_k chi2_1 with lambda the eigenvalues of the
    covariance of zeta = (eta, vec(eta eta' - I) / sqrt 2), eta a standardised row
    (Nguyen, Si and Blanchet 2020, Theorem 2.2). A scaled chi-square law matches its
    mean (E|eta|^4 + d) / 2 and variance 2 sum lambda^2 (Satterthwaite 1946). Against
    quantiles of the law itself (`radius_limit_law`), for uniform, Laplace, exponential,
    chi-square(1) and lognormal features, 1 to 20 of them: -1 to +3 % at level .5, -1 to
    +1 % at .95, -3 % at .99, but up to 72 % too small at .05 for one skewed feature.
    For heavy tails the plug-in is biased low: on 20 features with chi-square(1) noise
    the mean comes out as 278, 316, 339 at n = 100, 300, 1000 for a true 350.

    Examples
    --------
    >>> import numpy as np
    >>> from prudent.optimistic import moment_radius
    >>> X = np.random.default_rng(0).normal(size=(2000, 2))
    >>> round(2000 * moment_radius(X), 1)  # chi-square(5) median: 4.35
    4.2
    """
    check_fraction("level", level)
    eta, share = standardised_rows(X, sample_weight, "`moment_radius`")
    total = len(eta) if sample_weight is None else np.sum(sample_weight)
    return matched_radius(*limit_mean_and_variance(eta, share), total, level)


def limit_mean_and_variance(eta: FloatArray, share: FloatArray) -> tuple[float, float]:
    """Mean and variance of the limit law: sum lambda and 2 sum lambda^2.

    `eta` (n, d) are standardised rows and `share` (n,) their weights, of sum 1; lambda
    are the eigenvalues of the covariance of zeta, see `moment_radius`.
    """
    squares = np.einsum("ij,ij->i", eta, eta)
    mean = (share @ squares**2 + eta.shape[1]) / 2
    if _is_wide(eta):
        squared = sum(
            float(share[block] @ (kernel * kernel) @ share)
            for block, kernel in _kernels(eta)
        )
    else:
        squared = float((limit_covariance(eta, share) ** 2).sum())
    return float(mean), 2 * squared


def matched_radius(mean: float, variance: float, n_rows: float, level: float) -> float:
    """Quantile of the scaled chi-square law of this mean and variance, over n."""
    scale, freedom = variance / (2 * mean), 2 * mean**2 / variance
    return float(scale * chi2.ppf(level, freedom) / n_rows)


def limit_covariance(eta: FloatArray, weight: FloatArray) -> FloatArray:
    """Sum of w zeta zeta' over standardised rows eta; additive over blocks of rows.

    With weights of sum 1 its trace and twice its sum of squares are the mean and
    the variance of the limit law.
    """
    d = eta.shape[1]
    first, second, factor = _pairs(d)
    dimension = d + len(first)
    total = np.zeros((dimension, dimension))
    for block in row_blocks(len(eta), dimension):
        rows = eta[block]
        products = rows[:, first] * rows[:, second] - (first == second)
        zeta = np.hstack([rows, products * factor])
        total += (weight[block, None] * zeta).T @ zeta
    return total


def _pairs(d: int) -> tuple[IntArray, IntArray, FloatArray]:
    """Upper triangle, and what its entries of eta eta' - I count in zeta."""
    first, second = np.triu_indices(d)
    return first, second, np.where(first == second, np.sqrt(0.5), 1.0)


def _is_wide(eta: FloatArray) -> bool:
    """Whether zeta has more entries than there are rows."""
    n_rows, d = eta.shape
    return d * (d + 3) // 2 > n_rows


def _kernels(eta: FloatArray) -> Any:
    """Products zeta_i' zeta_j of all pairs of rows, block by block."""
    squares = np.einsum("ij,ij->i", eta, eta)
    for block in row_blocks(len(eta), len(eta)):
        G = eta[block] @ eta.T
        yield block, G + (G * G - squares[block, None] - squares + eta.shape[1]) / 2


def _row_eigenvalues(eta: FloatArray, share: FloatArray) -> FloatArray:
    """Eigenvalues of the covariance of zeta over standardised rows."""
    if not _is_wide(eta):
        return _eigenvalues(limit_covariance(eta, share))
    root = np.sqrt(share)
    gram = np.vstack([kernel for _, kernel in _kernels(eta)])
    return _eigenvalues(root[:, None] * gram * root)


def _covariance_of_moments(third: ArrayLike, fourth: ArrayLike) -> FloatArray:
    """Covariance of zeta from the moments of eta, as in the theorem."""
    T = np.asarray(third, dtype=np.float64)
    F = np.asarray(fourth, dtype=np.float64)
    d = len(T)
    if T.shape != (d,) * 3 or F.shape != (d,) * 4 or not d:
        raise ValueError(
            "the third and fourth moments must have shapes (d, d, d) and (d, d, d, d), "
            f"got {T.shape} and {F.shape}."
        )
    first, second, factor = _pairs(d)
    same = (first == second).astype(np.float64)
    cross = T[:, first, second] * factor
    products = F[first[:, None], second[:, None], first, second] - np.outer(same, same)
    return np.block(
        [[np.eye(d), cross], [cross.T, products * np.outer(factor, factor)]]
    )


def _eigenvalues(covariance: FloatArray) -> FloatArray:
    """Eigenvalues >= 0 of a covariance of zeta."""
    least = largest = np.nan
    if np.isfinite(covariance).all() and np.allclose(covariance, covariance.T):
        values = np.asarray(np.linalg.eigvalsh(covariance), dtype=np.float64)
        least, largest = float(values[0]), float(values[-1])
    if not least >= -1e-8 * largest:
        raise ValueError(
            "no law has these third and fourth moments: the covariance that they make "
            "must be finite, symmetric and positive semidefinite."
        )
    return values[values > 1e-15 * largest]


def standardised_rows(
    X: ArrayLike, sample_weight: ArrayLike | None, what: str = "the limit law"
) -> tuple[FloatArray, FloatArray]:
    """Rows of one class with mean 0 and covariance I, and their shares."""
    X, weight = class_rows(X, sample_weight)
    total = weight.sum()
    check_more_rows_than_features(X.shape[1], total, what)
    share = weight / total
    centred = X - share @ X
    return centred @ _whitening((share[:, None] * centred).T @ centred).T, share


def _whitening(covariance: FloatArray) -> FloatArray:
    """Inverse Cholesky factor U, U C U' = I."""
    mean = np.zeros((1, len(covariance)))
    return MahalanobisFactors.from_covariances(mean, covariance[None]).inverse_factors[
        0
    ]


# The limit law from sums over blocks.


def limit_radii(rows: Rows, moments: ClassMoments, level: float) -> FloatArray:
    """`moment_radius` of each class, by sums over blocks of standardised rows."""
    n_features = moments.mean.shape[1]
    size = (n_features * (n_features + 3) // 2) ** 2
    if size > LARGEST_SUM:
        raise ValueError(
            f"radius='moments' on blocks needs {size:.3g} sums a class for "
            f"{n_features} features; use radius='bootstrap' or 'clt'."
        )
    varies = class_deviations(moments) > 0
    for kept, weight in zip(varies.sum(axis=1), moments.weight.tolist(), strict=True):
        if kept > 0:
            check_more_rows_than_features(kept, weight, "`moment_radius`")
    radii = np.zeros(len(varies))
    for classes in groups_of(len(radii), size):
        totals = rows.reduce(_limit_sums, add_up, moments, classes)
        for k, total in zip(classes, totals, strict=True):
            weight = float(moments.weight[k])
            if len(total):
                limit = total / weight
                mean, variance = float(np.trace(limit)), 2 * float((limit**2).sum())
                radii[k] = matched_radius(mean, variance, weight, level)
    return radii


def _limit_sums(block: Block, moments: ClassMoments, wanted: range) -> list[FloatArray]:
    """`limit_covariance` of some classes over the rows of a block."""
    limits = []
    deviations, covariances = class_deviations(moments), moments.covariance()
    for k in wanted:
        kept = np.flatnonzero(deviations[k] > 0)
        eta = standardised(block, k, moments)[:, kept]
        if len(kept):
            spread = deviations[k][kept]
            correlation = covariances[k][np.ix_(kept, kept)] / np.outer(spread, spread)
            eta = eta @ _whitening(correlation).T
        limits.append(limit_covariance(eta, np.ones(len(eta))))
    return limits


def groups_of(n: int, size: int) -> Iterator[range]:
    """Numbers 0..n-1 in groups of few enough items of this size each."""
    step = max(1, LARGEST_SUM // size)
    for start in range(0, n, step):
        yield range(start, min(n, start + step))


def add_up(parts: Sequence[list[Any]]) -> list[Any]:
    """Sums of lists, item by item."""
    return [reduce(add, sums) for sums in zip(*parts, strict=True)]


# What is checked.


def class_rows(
    X: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[FloatArray, FloatArray]:
    """Rows of one class and their weights, checked."""
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2 or X.size == 0 or not np.isfinite(X).all():
        raise ValueError(
            "`X` must be a finite table of shape (n, d), not empty, got shape "
            f"{X.shape}."
        )
    constant = np.flatnonzero(np.ptp(X, axis=0) == 0)
    if len(constant):
        raise DegenerateDataError(
            f"feature(s) {constant[:5].tolist()} are constant: leave them out, they "
            "have no covariance."
        )
    if sample_weight is None:
        return X, np.ones(len(X))
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (len(X),) or not (weight >= 0).all() or not weight.sum() > 0:
        raise ValueError("`sample_weight` must hold one weight >= 0 per row.")
    return X, weight


def check_more_rows_than_features(n_features: int, n_rows: float, what: str) -> None:
    """Raise DegenerateDataError where a covariance would be singular."""
    if n_rows <= n_features:
        raise DegenerateDataError(
            f"{what} needs more rows than features, got {n_rows:g} rows for "
            f"{n_features} features; use covariance='ledoit_wolf' and radius='clt'."
        )


def random_source(
    random_state: int | np.random.RandomState | None,
) -> np.random.RandomState:
    """The source itself, or one from a seed."""
    if isinstance(random_state, np.random.RandomState):
        return random_state
    return np.random.RandomState(random_state)


# --- the bootstrap: quantiles of the divergence of resampled moments ------------------


N_RESAMPLES = 200
NAMES = ("empirical", "ledoit_wolf", "oas")
# A variance below this share of the mean square about the origin is rounding.
_ROUNDING = 1e-12


def bootstrap_radius(
    X: ArrayLike,
    level: float = 0.5,
    *,
    n_resamples: int = N_RESAMPLES,
    covariance: CovarianceRule = "ledoit_wolf",
    sample_weight: ArrayLike | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> float:
    """Radius as a quantile of the divergence of the nominal moments from resampled.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Rows of one class.
    level : float, default=0.5
        Quantile, in (0, 1).
    n_resamples : int, default=200
        Number of resamples, >= 1.
    covariance : {"ledoit_wolf", "oas", "empirical"}, float or callable, \
default="ledoit_wolf"
        Covariance estimator, the same for the nominal and the resampled moments.
    sample_weight : array-like of shape (n,), default=None
        Weights >= 0, read as repetitions.
    random_state : int, RandomState or None, default=None
        Source of the resamples.

    Returns
    -------
    float
        Radius rho.

    Raises
    ------
    DegenerateDataError
        If a feature is constant, or the empirical covariance is asked of no more
        rows than features.
    ValueError
        If `level`, `n_resamples` or `covariance` is outside its range.

    Examples
    --------
    >>> import numpy as np
    >>> from prudent.optimistic import bootstrap_radius
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> 3 < 200 * bootstrap_radius(X, random_state=0) < 6
    True
    """
    check_fraction("level", level)
    if not n_resamples >= 1:
        raise ValueError(f"`n_resamples` must be >= 1, got {shown(n_resamples)}.")
    if isinstance(covariance, str):
        known = covariance in NAMES
    else:
        known = callable(covariance) or 0 <= covariance <= 1
    if not known:
        raise ValueError(
            f"`covariance` must be one of {list(NAMES)}, a number in [0, 1] or a "
            f"function of rows, got {shown(covariance)}."
        )
    X, weight = class_rows(X, sample_weight)
    if covariance in ("empirical", 0.0):
        check_more_rows_than_features(
            X.shape[1], weight.sum(), "covariance='empirical'"
        )
    random = random_source(random_state)
    # Standardised, so that a feature constant in a resample is floored relative to
    # its variance in all rows; the divergence does not see the change of scale.
    X = X - np.average(X, axis=0, weights=weight)
    X /= np.sqrt(np.average(X**2, axis=0, weights=weight))
    nominal = _moments(X, weight, covariance)
    size = max(2, round(weight.sum()))
    divergences = np.empty(n_resamples)
    for b in range(n_resamples):
        rows = X[random.choice(len(X), size=size, p=weight / weight.sum())]
        resampled = _moments(rows, np.ones(size), covariance)
        divergences[b] = moment_divergence(*resampled, *nominal)
    return float(np.quantile(divergences, level))


def _moments(
    X: FloatArray, weight: FloatArray, rule: CovarianceRule
) -> tuple[FloatArray, FloatArray]:
    """Mean and covariance of one class of standardised rows."""
    block = Block(X, np.zeros(len(X), dtype=np.intp), weight)
    moments = ClassMoments.from_rows(X, block.codes, 1, weight)
    nominal = nominal_covariances(
        moments,
        rule,
        fourth_of=partial(standardised_fourth, block, moments),
        rows_of=block.of_class,
        variances=np.ones(X.shape[1]),
    )
    return moments.mean[0], nominal.matrices[0]


def bootstrap_radii(
    rows: Rows,
    moments: ClassMoments,
    level: float,
    covariance: str | float,
    random: np.random.RandomState,
) -> FloatArray:
    """`bootstrap_radius` of each class, by sums over blocks of rows.

    Every row is drawn a Poisson number of times, keyed by block and row, so that
    blocks need not agree; see `poisson_counts`.
    """
    key = int.from_bytes(random.bytes(16), "little")
    n_classes, n_features = moments.mean.shape
    # with Ledoit-Wolf the sums are of (z, z^2)
    width = n_features * (2 if covariance == "ledoit_wolf" else 1)
    varies = class_deviations(moments) > 0
    divergences: list[list[FloatArray]] = [[] for _ in range(n_classes)]
    for resamples in groups_of(N_RESAMPLES, n_classes * width**2):
        totals = rows.reduce(
            _resample_sums,
            add_up,
            moments,
            covariance,
            key,
            resamples,
            each=range(rows.n_blocks),
        )
        for k in np.flatnonzero(varies.any(axis=1)).tolist():
            divergences[k].append(
                resampled_divergences(totals[k], varies[k], covariance)
            )
    return np.array(
        [
            np.quantile(np.concatenate(draws), level) if draws else 0.0
            for draws in divergences
        ]
    )


def _resample_sums(
    block: Block,
    moments: ClassMoments,
    rule: str | float,
    key: int,
    resamples: range,
    number: int,
) -> list[RawMoments]:
    """`resampled_sums` of every class over the rows of a block."""
    counts = poisson_counts(len(block), key, number, resamples)
    return [
        resampled_sums(standardised(block, k, moments), counts[block.codes == k], rule)
        for k in range(len(moments.weight))
    ]


def poisson_counts(
    n_rows: int, key: int, block: int, resamples: range
) -> NDArray[np.uint8]:
    """How often each row of a block is drawn: the block itself, then resamples.

    Counts are independent and Poisson of mean 1, so that blocks need not agree on
    how many rows a resample has: n rows of all blocks become n +- sqrt(n), with the
    limit law of exactly n rows and a difference of relative order 1 / n (Hanley and
    MacGibbon 2006). They depend on the key, the number of the block, that of the
    resample and the row alone. Shape (n_rows, 1 + len(resamples)).
    """
    counts = np.ones((n_rows, 1 + len(resamples)), dtype=np.uint8, order="F")
    for column, resample in enumerate(resamples, start=1):
        draw = np.random.default_rng([key, block, resample])
        counts[:, column] = draw.poisson(1.0, size=n_rows)
    return counts


def resampled_sums(
    Z: FloatArray, counts: NDArray[np.uint8], rule: CovarianceRule
) -> RawMoments:
    """Sums over resamples of the standardised rows Z of one class.

    `counts` (n, n_resamples) says how often each resample holds each row. One "class" a
    resample; of (z, z^2) for Ledoit-Wolf, whose fourth moments are quadratic in these.
    """
    rows = np.hstack([Z, Z * Z]) if rule == "ledoit_wolf" else Z
    return RawMoments.from_soft(rows, counts, np.zeros(rows.shape[1]))


def resampled_divergences(
    sums: RawMoments, varies: BoolArray, rule: CovarianceRule
) -> FloatArray:
    """Divergence of the first resample's moments from those of each other one.

    `sums` is a total of `resampled_sums` whose first resample holds each row once,
    `varies` (d,) the features to use. Resamples of fewer than two rows are left out.
    """
    kept = np.flatnonzero(varies)
    drawn = np.flatnonzero(sums.s0 > 1)
    weight = sums.s0[drawn]
    mean = sums.s1[np.ix_(drawn, kept)] / weight[:, None]
    raw = sums.s2[np.ix_(drawn, kept, kept)]
    scatter = raw - weight[:, None, None] * mean[:, :, None] * mean[:, None, :]
    variation = np.diagonal(scatter, axis1=1, axis2=2)
    varying = variation > _ROUNDING * np.diagonal(raw, axis1=1, axis2=2)
    scatter = scatter * varying[:, :, None] * varying[:, None, :]
    moments = ClassMoments(
        drawn, np.zeros_like(drawn), weight, mean, np.zeros_like(mean), scatter
    )
    fourth_of = None
    if rule == "ledoit_wolf":
        both = np.concatenate([kept, kept + len(varies)])
        s1, s2 = sums.s1[np.ix_(drawn, both)], sums.s2[np.ix_(drawn, both, both)]
        squares = RawMoments(sums.origin[both], weight, s1, s2)
        fourth_of = partial(_summed_fourth, squares, moments)
    # Every resample is a class of its own; its size is no reason to refuse it.
    covariances = nominal_covariances(
        moments, rule, fourth_of=fourth_of, variances=np.ones(len(kept)), exact=True
    ).matrices
    return np.array(
        [
            moment_divergence(mean[b], covariances[b], mean[0], covariances[0])
            for b in range(1, len(drawn))
        ]
    )


def _summed_fourth(
    sums: RawMoments, moments: ClassMoments, deviation: FloatArray
) -> FloatArray:
    """Sum of w |y|^4 of each resample over rows y = (z - mean) / deviation.

    From the sums of w u u' with u = (z, z^2): |y|^2 = c + v'u with v = (-2 a mean,
    a), c = a'mean^2 and a = 1 / deviation^2, so it is c^2 s0 + 2 c v's1 + v's2 v.
    """
    a = np.where(moments.variation > 0, deviation**-2.0, 0.0)
    v = np.hstack([-2 * a * moments.mean, a])
    c = (a * moments.mean**2).sum(axis=1)
    linear = np.einsum("bi,bi->b", v, sums.s1)
    square = np.einsum("bi,bij,bj->b", v, sums.s2, v)
    fourth: FloatArray = c * c * sums.s0 + 2 * c * linear + square
    return fourth
