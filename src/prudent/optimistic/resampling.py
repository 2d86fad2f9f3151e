"""The bootstrap radius from sums over rows, which add up over blocks of rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prudent.core.moments import ClassMoments, RawMoments
from prudent.optimistic.nominal import CovarianceRule, nominal_covariances
from prudent.optimistic.radii import moment_divergence

__all__ = ["poisson_counts", "resampled_divergences", "resampled_sums"]

FloatArray = NDArray[np.float64]

# A variance below this share of the mean square about the origin is rounding.
_ROUNDING = 1e-12


def poisson_counts(
    n_rows: int, key: int, block: int, resamples: range
) -> NDArray[np.uint8]:
    """How often each row of a block is drawn: the block itself, then resamples.

    Counts are independent and Poisson of mean 1, so that blocks need not agree on
    how many rows a resample has: n rows of all blocks become n +- sqrt(n). A
    resample of exactly n rows (multinomial counts) has the same limit law; the
    difference is of relative order 1 / n.

    Parameters
    ----------
    n_rows : int
        Rows of the block.
    key, block : int
        Counts depend on these, the number of the resample and the row alone.
    resamples : range
        Numbers of the resamples.

    Returns
    -------
    ndarray of shape (n_rows, 1 + len(resamples))
        The first column is 1.

    References
    ----------
    Hanley and MacGibbon (2006), "Creating non-parametric bootstrap samples using
    Poisson frequencies", Computer Methods and Programs in Biomedicine 83.
    """
    counts = np.ones((n_rows, 1 + len(resamples)), dtype=np.uint8, order="F")
    for column, resample in enumerate(resamples, start=1):
        draw = np.random.default_rng([key, block, resample])
        counts[:, column] = draw.poisson(1.0, size=n_rows)
    return counts


def resampled_sums(
    Z: FloatArray, counts: NDArray[np.uint8], rule: CovarianceRule
) -> RawMoments:
    """Sums over resamples of the standardised rows of one class.

    Parameters
    ----------
    Z : ndarray of shape (n, d)
        Rows less the mean of the class, over its standard deviations.
    counts : ndarray of shape (n, n_resamples)
        How often each resample holds each row.
    rule : str or float
        Covariance rule.

    Returns
    -------
    RawMoments
        One "class" a resample; of (z, z^2) for Ledoit-Wolf, whose fourth moments
        are quadratic in these, else of z.
    """
    rows = np.hstack([Z, Z * Z]) if rule == "ledoit_wolf" else Z
    return RawMoments.from_soft(rows, counts, np.zeros(rows.shape[1]))


def resampled_divergences(
    sums: RawMoments, varies: NDArray[np.bool_], rule: CovarianceRule
) -> FloatArray:
    """Divergence of the first resample's moments from those of each other one.

    Parameters
    ----------
    sums : RawMoments
        Total of `resampled_sums`; the first resample holds each row once.
    varies : ndarray of bool, shape (d,)
        Features to use.
    rule : str or float
        Covariance rule, the same for all resamples.

    Returns
    -------
    ndarray of shape (at most n_resamples - 1,)
        Resamples of fewer than two rows are left out.
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
    rows = None
    if rule == "ledoit_wolf":
        both = np.concatenate([kept, kept + len(varies)])
        s1, s2 = sums.s1[np.ix_(drawn, both)], sums.s2[np.ix_(drawn, both, both)]
        rows = _SummedRows(RawMoments(sums.origin[both], weight, s1, s2))
    # Every resample is a class of its own; its size is no reason to refuse it.
    covariances = nominal_covariances(
        moments, rule, rows, variances=np.ones(len(kept)), exact=True
    ).covariances
    return np.array(
        [
            moment_divergence(mean[b], covariances[b], mean[0], covariances[0])
            for b in range(1, len(drawn))
        ]
    )


@dataclass(frozen=True, slots=True)
class _SummedRows:
    """Rows of resamples, known by the sums of w u u' with u = (z, z^2)."""

    sums: RawMoments

    def standardised_fourth(
        self, moments: ClassMoments, deviation: FloatArray
    ) -> FloatArray:
        """Sum of w |y|^4 of each resample over rows y = (z - mean) / deviation.

        |y|^2 = c + v'u with v = (-2 a mean, a), c = a'mean^2 and a = 1 / deviation^2,
        so the sum is c^2 s0 + 2 c v's1 + v's2 v.
        """
        variation = np.diagonal(moments.scatter, axis1=1, axis2=2)
        a = np.where(variation > 0, deviation**-2.0, 0.0)
        v = np.hstack([-2 * a * moments.mean, a])
        c = (a * moments.mean**2).sum(axis=1)
        linear = np.einsum("bi,bi->b", v, self.sums.s1)
        square = np.einsum("bi,bij,bj->b", v, self.sums.s2, v)
        fourth: FloatArray = c * c * self.sums.s0 + 2 * c * linear + square
        return fourth
