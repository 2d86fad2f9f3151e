"""Rows in units of their spread: Z = [1, (x - centre) / scale], and back.

Raw second moments s2 / s0 - mu mu' of rows far from the origin would lose every digit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.core.types import FloatArray, IntArray

_ROWS_PER_BLOCK = 4096
#: In standard deviations; the squared distance of such a row is finite still.
_FARTHEST = 1e100


@dataclass(frozen=True, slots=True, eq=False)
class SeenRows:
    """Standardised rows of which some cells are missing."""

    Z: FloatArray  # (m, d + 1), rows [1, z], 0 in the missing cells
    seen: FloatArray  # (m, d), 1.0 for the cells that are there, else 0.0

    def __len__(self) -> int:
        return len(self.Z)

    def __getitem__(self, rows: Any) -> SeenRows:
        return SeenRows(self.Z[rows], self.seen[rows])


#: Rows as the Gaussian families take them.
Standardised = FloatArray | SeenRows


def values_of(rows: Standardised) -> FloatArray:
    """Rows [1, z], with 0 in the missing cells."""
    return rows.Z if isinstance(rows, SeenRows) else rows


def row_blocks(n_rows: int) -> Iterator[slice]:
    """Slices that together cover the rows."""
    for start in range(0, n_rows, _ROWS_PER_BLOCK):
        yield slice(start, start + _ROWS_PER_BLOCK)


@dataclass(frozen=True)
class Standardisation:
    """Centre and scale of the features, of which those that vary are `kept`."""

    centre: FloatArray
    scale: FloatArray
    kept: IntArray

    @property
    def constant_features(self) -> IntArray:
        """Features that do not vary and are ignored."""
        return np.setdiff1d(np.arange(len(self.centre)), self.kept)

    def rows(self, X: NDArray[Any]) -> Standardised:
        """Rows [1, z] of the standardised features that vary, (m, d + 1)."""
        Z = np.empty((len(X), len(self.kept) + 1))
        Z[:, 0] = 1.0
        for block in row_blocks(len(X)):
            rows = X[block].astype(np.float64)
            with np.errstate(over="ignore"):
                z = ((rows - self.centre)[:, self.kept]) / self.scale[self.kept]
            np.clip(z, -_FARTHEST, _FARTHEST, out=Z[block, 1:])
        if X.dtype.kind == "f" and np.isnan(Z.sum()):
            missing = np.isnan(Z[:, 1:])
            Z[:, 1:][missing] = 0.0
            return SeenRows(Z, (~missing).astype(np.float64))
        return Z

    def covariance(self, covariance: FloatArray) -> FloatArray:
        """Matrix, or variances, of the features that vary in standardised units."""
        scale = self.scale[self.kept]
        if covariance.ndim == 1:
            return covariance[self.kept] / scale**2
        return covariance[np.ix_(self.kept, self.kept)] / np.outer(scale, scale)

    def in_units(self, Z: FloatArray) -> FloatArray:
        """Rows (n, n_features) in the units of X; the centre where nothing varies."""
        X = np.tile(self.centre, (len(Z), 1))
        X[:, self.kept] += self.scale[self.kept] * Z
        return X

    def coefficients_in_units(
        self, scores: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Slopes (r, n_features) and intercepts (r,) behind coefficients of Z."""
        slopes = scores[:, 1:] / self.scale[self.kept]
        coefficients = np.zeros((len(scores), len(self.centre)))
        coefficients[:, self.kept] = slopes
        return coefficients, scores[:, 0] - slopes @ self.centre[self.kept]
