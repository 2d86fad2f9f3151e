"""Radii as quantiles of the divergence of resampled moments: the bootstrap.

From the rows of a class in one place, or from sums which add up over blocks of rows.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prudent.core.binomial import check_fraction
from prudent.core.covariance import CovarianceRule
from prudent.core.moments import ClassMoments, RawMoments
from prudent.core.rows import Block, Rows
from prudent.core.types import BoolArray, FloatArray
from prudent.optimistic.limit_law import (
    add_up,
    check_more_rows_than_features,
    class_rows,
    groups_of,
    random_source,
)
from prudent.optimistic.nominal import (
    class_deviations,
    moment_divergence,
    nominal_covariances,
    standardised,
    standardised_fourth,
)

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
    """Radius as a quantile of the divergence of resampled moments from the nominal.

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
        raise ValueError(f"`n_resamples` must be >= 1, got {n_resamples!r}.")
    if isinstance(covariance, str):
        known = covariance in NAMES
    else:
        known = callable(covariance) or 0 <= covariance <= 1
    if not known:
        raise ValueError(
            f"`covariance` must be one of {list(NAMES)}, a number in [0, 1] or a "
            f"function of rows, got {covariance!r}."
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
            np.quantile(np.concatenate(found), level) if found else 0.0
            for found in divergences
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
