"""The two products that a calibration with full covariances spends its time on.

Rows Z (m, p) carry a leading column of ones: Z = [1, x]. Both kernels work on row
blocks that stay in the cache, and leave out most of what symmetry or the triangle of
a Cholesky factor makes superfluous: the columns are cut into bands, and a band meets
only the columns that matter to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dtrtri

from prudent.calibration import interpreted

__all__ = ["Whitening", "inner_loops", "squared_distances", "weighted_scatter"]

FloatArray = NDArray[np.float64]

#: |W_ik| up to this share of the largest weight moves no statistic visibly.
_NEGLIGIBLE = 1e-10
#: With fewer active rows it is cheaper to gather them than to multiply by zeros.
_GATHER_BELOW = 0.6
_CACHED_NUMBERS = 300_000
_COLUMNS_PER_BAND, _MOST_BANDS = 24, 4
#: Below this many numbers, importing the compiled loops costs more than it saves.
_COMPILED_FROM = 32_768


def inner_loops(size: int) -> ModuleType:
    """Compiled loops for problems of many numbers, interpreted ones for small."""
    if size < _COMPILED_FROM:
        return interpreted
    from prudent.calibration import compiled

    return compiled


@dataclass(frozen=True, slots=True)
class Whitening:
    """L_k^-1 [-mu_k, I] of every class, cut into bands of rows.

    Row j of a class reads only the first j + 2 columns of Z, so that a band of the
    rows first..last - 1 is an array (r, last - first, last + 1). log det Sigma_k, (r,),
    goes with the distances into every score.
    """

    bands: tuple[FloatArray, ...]
    log_determinants: FloatArray

    @classmethod
    def from_cholesky(
        cls, means: FloatArray, cholesky: NDArray[np.floating[Any]]
    ) -> Whitening:
        """Whitening of means (r, d) and lower Cholesky factors L (r, d, d)."""
        r, d = means.shape
        factors = np.empty((r, d, d + 1))
        if d:  # LAPACK refuses empty matrices: every feature may be constant
            for factor, mean, lower in zip(factors, means, cholesky, strict=True):
                factor[:, 1:] = dtrtri(lower, lower=1)[0]
                factor[:, 0] = -(factor[:, 1:] @ mean)
        bands = tuple(
            np.ascontiguousarray(factors[:, first:last, : last + 1])
            for first, last in _bands(d)
        )
        diagonals = np.diagonal(cholesky, axis1=1, axis2=2)
        return cls(bands, 2.0 * np.log(diagonals).sum(axis=1))


def squared_distances(Z: FloatArray, whitening: Whitening) -> FloatArray:
    """Squared Mahalanobis distances (x_i - mu_k)' Sigma_k^-1 (x_i - mu_k), (r, m)."""
    m, p = Z.shape
    r = len(whitening.bands[0])
    loops = inner_loops(m * r)
    distances = np.zeros((r, m))
    blocks = _blocks(m, r * p)
    workspace = np.empty(_longest(blocks) * r * p)
    for block in blocks:
        rows = Z[block]
        for band in whitening.bands:
            height, width = band.shape[1:]
            white = workspace[: len(rows) * r * height].reshape(len(rows), -1)
            np.matmul(rows[:, :width], band.reshape(-1, width).T, out=white)
            loops.add_squares(white.reshape(len(rows), r, height), distances[:, block])
    return distances


def weighted_scatter(Z: FloatArray, W: FloatArray) -> FloatArray:
    """Scatter sum_i W_ki z_i z_i' of every class, W (r, m), result (r, p, p).

    Rows with a negligible weight are left out of classes in which they are many.
    """
    m, p = Z.shape
    negligible = _NEGLIGIBLE * max(W.max(), -W.min())
    n_active = inner_loops(W.size).count_active(W, negligible)
    is_dense = n_active >= _GATHER_BELOW * m
    scatter = np.zeros((len(W), p, p))
    if is_dense.any():
        weights = W if is_dense.all() else W[is_dense]
        scatter[is_dense] = _scatter(Z, weights, np.arange(m))
    for k in np.flatnonzero(~is_dense):
        active = np.flatnonzero(np.abs(W[k]) > negligible)
        scatter[k] = _scatter(Z, W[k : k + 1], active)[0]
    for first, last in _bands(p):
        scatter[:, last:, first:last] = scatter[:, first:last, last:].transpose(0, 2, 1)
    return scatter


def _scatter(Z: FloatArray, W: FloatArray, chosen: NDArray[np.intp]) -> FloatArray:
    """Bands of the scatter on and above the diagonal, from the chosen rows."""
    r, p = len(W), Z.shape[1]
    loops = inner_loops(len(chosen) * r)
    scatter = np.zeros((r, p, p))
    blocks = _blocks(len(chosen), r * p)
    workspace = np.empty(_longest(blocks) * r * p)
    gather = len(chosen) < len(Z)
    for block in blocks:
        rows, weights = Z[block], W[:, block]
        if gather:
            rows, weights = Z[chosen[block]], W[:, chosen[block]]
        n = len(rows)
        for first, last in _bands(p):
            weighted = workspace[: n * r * (last - first)].reshape(n, r, last - first)
            loops.weigh(rows[:, first:last], weights, weighted)
            product = weighted.reshape(n, -1).T @ rows[:, first:]
            scatter[:, first:last, first:] += product.reshape(r, last - first, -1)
    return scatter


def _bands(n_columns: int) -> list[tuple[int, int]]:
    """Cuts of the columns: more bands save more flops but make smaller products."""
    n_bands = min(_MOST_BANDS, 1 + n_columns // _COLUMNS_PER_BAND)
    edges = [n_columns * band // n_bands for band in range(n_bands + 1)]
    return list(pairwise(edges))


def _blocks(m: int, numbers_per_row: int) -> list[slice]:
    """Row blocks whose temporaries stay in the cache, the first one the longest."""
    step = max(256, _CACHED_NUMBERS // numbers_per_row)
    return [slice(start, min(start + step, m)) for start in range(0, m, step)]


def _longest(blocks: list[slice]) -> int:
    return blocks[0].stop if blocks else 0
