"""Squared distances of many rows to all classes at once, in the bands of a triangle.

Rows Z (m, d + 1) carry a leading column of ones: Z = [1, x]. The classes of a band go
through one product, which with few features is what saves the time; rows are taken in
blocks that stay in the cache.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dtrtri

from prudent.core.types import BoolArray, FloatArray

#: Validity margin of variances and of the smallest eigenvalue of a correlation
#: matrix, on features of unit variance: below, s2 / s0 - mu mu' is rounding noise.
MARGIN = 1e-9
_CACHED_NUMBERS = 300_000
_COLUMNS_PER_BAND, _MOST_BANDS = 24, 4
#: Below this many numbers, importing compiled loops costs more than it saves.
COMPILED_FROM = 32_768


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
        n_bands = min(_MOST_BANDS, 1 + d // _COLUMNS_PER_BAND)
        edges = [d * band // n_bands for band in range(n_bands + 1)]
        bands = tuple(
            np.ascontiguousarray(factors[:, first:last, : last + 1])
            for first, last in pairwise(edges)
        )
        diagonals = np.diagonal(cholesky, axis1=1, axis2=2)
        return cls(bands, 2.0 * np.log(diagonals).sum(axis=1))


def squared_distances(Z: FloatArray, whitening: Whitening) -> FloatArray:
    """Squared Mahalanobis distances (x_i - mu_k)' Sigma_k^-1 (x_i - mu_k), (r, m)."""
    m, p = Z.shape
    r = len(whitening.bands[0])
    if m * r < COMPILED_FROM:
        add_squares = interpreted_add_squares
    else:
        from prudent.calibration.compiled import add_squares
    distances = np.zeros((r, m))
    size = max(256, _CACHED_NUMBERS // (r * p))
    workspace = np.empty(min(size, m) * r * p)
    for start in range(0, m, size):
        rows = Z[start : start + size]
        for band in whitening.bands:
            height, width = band.shape[1:]
            white = workspace[: len(rows) * r * height].reshape(len(rows), -1)
            np.matmul(rows[:, :width], band.reshape(-1, width).T, out=white)
            add_squares(
                white.reshape(len(rows), r, height), distances[:, start : start + size]
            )
    return distances


def interpreted_add_squares(white: FloatArray, sums: FloatArray) -> None:
    """Add sum_j white_ikj^2 of white (n, r, d) to sums (r, n)."""
    sums += np.einsum("ikj,ikj->ki", white, white)


def are_positive_definite(covariances: FloatArray) -> BoolArray:
    """Which correlation matrices exceed the margin times the identity, (r,)."""
    variances = np.diagonal(covariances, axis1=1, axis2=2)
    definite = np.asarray((variances > MARGIN).all(axis=1))  # also refuses NaN
    deviations = np.sqrt(variances[definite])
    products = deviations[:, :, np.newaxis] * deviations[:, np.newaxis]
    correlations = covariances[definite] / products
    correlations -= MARGIN * np.eye(covariances.shape[1])
    definite[definite] = _have_cholesky(correlations)
    return definite


def _have_cholesky(matrices: FloatArray) -> BoolArray:
    """Which matrices have a Cholesky factor; most often all of them, in one call."""
    try:
        np.linalg.cholesky(matrices)
    except np.linalg.LinAlgError:
        if len(matrices) == 1:
            return np.zeros(1, dtype=bool)
        return np.concatenate([_have_cholesky(matrix[None]) for matrix in matrices])
    return np.ones(len(matrices), dtype=bool)
