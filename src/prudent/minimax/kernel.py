"""Coordinates in the span of the training rows: kernel fits without n x n matrices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, solve_triangular
from scipy.linalg.lapack import dpstrf

from prudent.core.types import FloatArray, IntArray

SMALLEST_PIVOT = 1e-13
LANDMARK_RIDGE = 1e-10
#: Additive radius of kernel fits that set none, as a share of the mean diagonal of K.
DEFAULT_KERNEL_RADIUS = 1e-3


@dataclass(frozen=True, slots=True)
class Span:
    """Coordinates G of rows with Gram matrix K = G G'.

    `rows` (N, r) holds G, `factor` (r, r) the lower triangular coordinates of the r
    columns of K in `columns` (of `n_columns`), `default_radius` the additive radius
    of those who set none: at 0 a positive definite kernel separates any rows.
    """

    rows: FloatArray
    factor: FloatArray
    columns: IntArray
    n_columns: int
    default_radius: float

    def coordinates(self, K: FloatArray) -> FloatArray:
        """Coordinates (n, r) of new rows from their kernel columns (n, n_columns)."""
        return solve_triangular(
            self.factor, K[:, self.columns].T, lower=True, check_finite=False
        ).T

    def dual(self, normals: FloatArray) -> FloatArray:
        """Coefficients over kernel columns of normals given in span coordinates."""
        coefficients = np.zeros((len(normals), self.n_columns))
        coefficients[:, self.columns] = solve_triangular(
            self.factor, normals.T, lower=True, trans="T", check_finite=False
        ).T
        return coefficients


def span_of(K: FloatArray) -> Span:
    """Span coordinates of a positive semidefinite Gram matrix, (N, N).

    Pivoted Cholesky K[piv][:, piv] = G_p G_p', stopped where a pivot falls to 1e-13
    of the largest diagonal entry.
    """
    largest = float(np.max(np.diag(K)))
    if not largest > 0:
        raise ValueError(
            "the kernel matrix has no positive diagonal entry: use a kernel that is "
            "positive definite."
        )
    factor, pivots, rank, _ = dpstrf(K.T, lower=1, tol=SMALLEST_PIVOT * largest)
    order = pivots - 1
    lower = np.tril(factor[:, :rank])
    rows = np.empty((len(K), rank))
    rows[order] = lower
    corner = np.ascontiguousarray(lower[:rank])
    return Span(rows, corner, order[:rank], len(K), _default_radius(K))


def landmark_span(to_landmarks: FloatArray, landmarks: FloatArray) -> Span:
    """Span coordinates of rows X through landmarks Z (Nystroem).

    G = k(X, Z) L^-T with L L' = k(Z, Z) + ridge I; `to_landmarks` (N, m) is k(X, Z)
    and `landmarks` (m, m) is k(Z, Z).
    """
    ridge = LANDMARK_RIDGE * float(np.mean(np.diag(landmarks)))
    factor, _ = cho_factor(
        landmarks + np.diag(np.full(len(landmarks), ridge)), lower=True
    )
    rows = solve_triangular(factor, to_landmarks.T, lower=True, check_finite=False).T
    columns = np.arange(len(landmarks))
    return Span(rows, factor, columns, len(columns), _default_radius(landmarks))


def _default_radius(K: FloatArray) -> float:
    return DEFAULT_KERNEL_RADIUS * float(np.mean(np.diag(K)))
