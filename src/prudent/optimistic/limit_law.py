"""The limit law of n times the divergence of sample moments (Theorem 2.2).

H'H + Tr(Z^2) / 2 for jointly normal H and Z is |zeta|^2 of one normal vector, of the
covariance of zeta = (eta, vec(eta eta' - I) / sqrt 2), eta a standardised row (upper
triangle: the diagonal over sqrt 2). So it is sum_k lambda_k chi2_1 with lambda the
eigenvalues of that covariance. Its quantiles over n are radii, from the rows of a
class in one place or from sums that add up over blocks of rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import chi2

from prudent.core.binomial import check_fraction
from prudent.core.distances import MahalanobisFactors, row_blocks
from prudent.core.moments import ClassMoments
from prudent.core.rows import Block, Rows
from prudent.core.types import FloatArray, IntArray
from prudent.exceptions import DegenerateDataError
from prudent.optimistic.nominal import class_deviations, standardised

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
        raise ValueError(f"`n_samples` must be >= 1, got {n_samples!r}.")
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
    the mean comes out as 282, 319, 337 at n = 100, 300, 1000 for a true 350.

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
    """Of the limit law of standardised rows: sum of lambda, twice that of squares."""
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


# --- from sums over blocks ----------------------------------------------------------


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


# --- what is checked ----------------------------------------------------------------


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
