"""Squared Mahalanobis distances of many rows to many class centres."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dtrmm
from scipy.linalg.lapack import dtrtri

from prudent.core.definiteness import check_positive_definite
from prudent.core.types import FloatArray

# The compiled kernel is faster up to this many features, and worth importing from
# this many numbers to multiply on.
COMPILED_FEATURES = 48
COMPILED_SIZE = 2**19


def row_blocks(n_rows: int, n_features: int) -> Iterator[slice]:
    """Slices of rows that together cover 0..n_rows and each fit the cache."""
    size = max(64, 2**16 // n_features)
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


def squared_mahalanobis(
    X: NDArray[Any], means: FloatArray, covariances: FloatArray
) -> FloatArray:
    """(x_i - m_k)' C_k^-1 (x_i - m_k) of each row and class, (n, K)."""
    return MahalanobisFactors.from_covariances(means, covariances).squared_distances(X)


@dataclass(frozen=True, slots=True, eq=False)
class MahalanobisFactors:
    """Class centres (pairs) and inverse Cholesky factors L_k^-1, ready for many rows.

    `log_determinants` are those of C_k = L_k L_k'. The square is never expanded:
    x'C^-1 x - 2 m'C^-1 x + ... is meaningless at a condition number of 1e12, where the
    inverse factor is as accurate as a triangular solve.
    """

    means: FloatArray
    means_lo: FloatArray
    inverse_factors: FloatArray
    log_determinants: FloatArray

    @classmethod
    def from_covariances(
        cls,
        means: FloatArray,
        covariances: FloatArray,
        *,
        means_lo: FloatArray | None = None,
        classes: Sequence[Any] | NDArray[Any] | None = None,
    ) -> Self:
        """Factor each covariance once; errors name the class and the feature."""
        means = np.asarray(means, dtype=np.float64)
        factors = check_positive_definite(covariances, classes=classes)
        inverse_factors = np.array([dtrtri(L, lower=1)[0] for L in factors])
        diagonals = np.diagonal(factors, axis1=1, axis2=2)
        if means_lo is None:
            means_lo = np.zeros_like(means)
        # Parts below the rounding of x - m itself would cost a pass for nothing.
        spreads = np.sqrt(np.diagonal(covariances, axis1=1, axis2=2))
        matters = np.abs(means_lo) > np.finfo(np.float64).eps * spreads
        return cls(
            means,
            np.where(matters.any(axis=1, keepdims=True), means_lo, 0.0),
            inverse_factors,
            2 * np.log(diagonals).sum(axis=1),
        )

    def squared_distances(self, X: NDArray[Any]) -> FloatArray:
        """Squared distances of shape (n, K)."""
        out: FloatArray = np.empty((len(X), len(self.means)))
        for rows, distances in self.blocks(X):
            out[rows] = distances
        return out

    def blocks(self, X: NDArray[Any]) -> Iterator[tuple[slice, FloatArray]]:
        """Slices of rows with their squared distances, for callers that go on.

        The array (block, K) is reused by the next block.
        """
        n_classes, n_features = self.means.shape
        compiled = n_features <= COMPILED_FEATURES
        if compiled and X.size * n_classes >= COMPILED_SIZE:
            measure = self._compiled_kernel()
        else:
            measure = self._blas_kernel()
        for rows in row_blocks(len(X), n_features):
            if rows.start == 0:  # the largest block
                distances = np.empty((rows.stop, n_classes))
            block = X[rows]
            D = distances[: len(block)]
            measure(block, D)
            yield rows, D

    def _blas_kernel(self) -> Callable[[NDArray[Any], FloatArray], None]:
        """Triangular products in place: half the flops of a general product."""
        buffer: FloatArray = np.empty(0)

        def measure(block: NDArray[Any], out: FloatArray) -> None:
            nonlocal buffer
            if len(buffer) < len(block):
                buffer = np.empty(block.shape)
            B = buffer[: len(block)]
            for k, (mean, mean_lo, U) in enumerate(
                zip(self.means, self.means_lo, self.inverse_factors, strict=True)
            ):
                np.subtract(block, mean, out=B)
                if mean_lo.any():
                    B -= mean_lo
                # Z = U B': both transposes are column-major views of the buffers,
                # so BLAS works in place.
                Z = dtrmm(1.0, U.T, B.T, trans_a=1, overwrite_b=1).T
                np.einsum("ij,ij->i", Z, Z, out=out[:, k])

        return measure

    def _compiled_kernel(self) -> Callable[[NDArray[Any], FloatArray], None]:
        from prudent.core.kernels import squared_distances

        n_classes, n_features = self.means.shape
        padded = -(-n_features // 4) * 4
        factors = np.zeros((n_classes, padded, padded))
        factors[:, :n_features, :n_features] = self.inverse_factors

        def measure(block: NDArray[Any], out: FloatArray) -> None:
            rows = np.ascontiguousarray(block, dtype=np.float64)
            squared_distances(rows, self.means, self.means_lo, factors, out)

        return measure
