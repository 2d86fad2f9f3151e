"""The two products that a calibration with full covariances spends its time on.

Rows Z (m, p) carry a leading column of ones: Z = [1, x]. Both kernels work on row
blocks that stay in the cache and skip half of the flops that symmetry, or the
triangle of a Cholesky factor, makes superfluous: the p columns are cut once in the
middle and the quarter that is known beforehand is not computed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dtrtri

__all__ = ["Whitening", "squared_distances", "weighted_scatter"]

FloatArray = NDArray[np.float64]

#: |W_ik| up to this share of the largest weight moves no statistic visibly.
_NEGLIGIBLE = 1e-10
#: With fewer active rows it is cheaper to gather them than to multiply by zeros.
_GATHER_BELOW = 0.6
_CACHED_NUMBERS = 170_000


@dataclass(frozen=True, slots=True)
class Whitening:
    """L_k^-1 [-mu_k, I] of every class, cut into its upper and lower rows.

    Row j of a class reads only the first j + 2 columns of Z, so that the upper
    rows (r, h, h + 1) need half of the columns; lower is (r, d - h, d + 1).
    """

    upper: FloatArray
    lower: FloatArray

    @classmethod
    def from_cholesky(
        cls, means: FloatArray, cholesky: NDArray[np.floating[Any]]
    ) -> Whitening:
        """Whitening of means (r, d) and lower Cholesky factors L (r, d, d)."""
        r, d = means.shape
        half = d // 2
        factors = np.empty((r, d, d + 1))
        if d:  # LAPACK refuses empty matrices: every feature may be constant
            for factor, mean, lower in zip(factors, means, cholesky, strict=True):
                factor[:, 1:] = dtrtri(lower, lower=1)[0]
                factor[:, 0] = -(factor[:, 1:] @ mean)
        return cls(
            np.ascontiguousarray(factors[:, :half, : half + 1]),
            np.ascontiguousarray(factors[:, half:]),
        )


def squared_distances(Z: FloatArray, whitening: Whitening) -> FloatArray:
    """Squared Mahalanobis distances (x_i - mu_k)' Sigma_k^-1 (x_i - mu_k), (r, m)."""
    m, p = Z.shape
    r = len(whitening.lower)
    distances = np.zeros((r, m))
    for block in _blocks(m, r * p):
        rows = Z[block]
        for factor in (whitening.upper, whitening.lower):
            n_rows, n_columns = factor.shape[1:]
            white = factor.reshape(-1, n_columns) @ rows[:, :n_columns].T
            white = white.reshape(r, n_rows, len(rows))
            distances[:, block] += np.einsum("kji,kji->ki", white, white)
    return distances


def weighted_scatter(Z: FloatArray, W: FloatArray) -> FloatArray:
    """Scatter sum_i W_ki z_i z_i' of every class, W (r, m), result (r, p, p).

    Rows with a negligible weight are left out of classes in which they are many.
    """
    m, p = Z.shape
    negligible = _NEGLIGIBLE * max(W.max(), -W.min())
    active = [np.flatnonzero(np.abs(weights) > negligible) for weights in W]
    is_dense = np.array([len(rows) >= _GATHER_BELOW * m for rows in active])
    scatter = np.zeros((len(W), p, p))
    if is_dense.any():
        weights = W if is_dense.all() else W[is_dense]
        dense = np.zeros((len(weights), p, p))
        for block in _blocks(m, len(weights) * p):
            _add_scatter(dense, Z[block], weights[:, block])
        scatter[is_dense] = dense
    for k in np.flatnonzero(~is_dense):
        for block in _blocks(len(active[k]), p):
            rows = active[k][block]
            _add_scatter(scatter[k : k + 1], Z[rows], W[k : k + 1, rows])
    half = p // 2
    scatter[:, half:, :half] = scatter[:, :half, half:].transpose(0, 2, 1)
    return scatter


def _add_scatter(scatter: FloatArray, rows: FloatArray, W: FloatArray) -> None:
    """Add all of the scatter but its lower left quarter."""
    r, p = len(W), rows.shape[1]
    columns = np.ascontiguousarray(rows.T)
    for first, last in ((0, p // 2), (p // 2, p)):
        weighted = (W[:, np.newaxis] * columns[first:last]).reshape(-1, len(rows))
        product = weighted @ rows[:, first:]
        scatter[:, first:last, first:] += product.reshape(r, last - first, p - first)


def _blocks(m: int, numbers_per_row: int) -> Iterator[slice]:
    """Row blocks whose temporaries stay in the cache."""
    step = max(256, _CACHED_NUMBERS // numbers_per_row)
    return (slice(start, min(start + step, m)) for start in range(0, m, step))
