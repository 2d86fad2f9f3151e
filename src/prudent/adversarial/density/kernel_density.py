"""Normal kernels at rows of the class: the oldest estimate of a density."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Self

import numpy as np
from scipy.linalg import solve_triangular

from prudent.core.linalg import row_blocks
from prudent.core.types import FloatArray

_WIDTHS = np.geomspace(0.25, 1.5, 11)  # tried, in units of the rule of thumb
_COARSE = (2, 5, 8)  # those of them tried first
_CORRELATION_SHRINKAGE = 0.01  # keeps the decorrelated rows of flat clouds finite


def kernel_width(n_rows: int, n_features: int) -> float:
    """Standard deviation n^(-1/(d+4)) of the kernels, in standardised units."""
    return float(n_rows ** (-1.0 / (n_features + 4)))


@dataclass(frozen=True, slots=True)
class NormalKernels:
    """Mean of normal densities, round in coordinates L^-1 x where there is a factor."""

    centres: FloatArray  # (M, d), in these coordinates
    width: float  # standard deviation h of the kernels
    factor: FloatArray | None = None  # (d, d), lower Cholesky factor L

    @classmethod
    def of_likeliest_width(
        cls, centres: FloatArray, covariance: FloatArray | None = None
    ) -> Self:
        """Choose the width by the likelihood of each centre under the others.

        Widths are every 20 % between a quarter of the rule of thumb and one and a half
        of it: rows that repeat would otherwise have the likeliest kernels at width 0.
        With the covariance of the standardised rows the kernels are shaped like it.
        """
        m, d = centres.shape
        factor: FloatArray | None = None
        if covariance is not None:
            shrunken = (1 - _CORRELATION_SHRINKAGE) * covariance
            shrunken[np.diag_indices(d)] += _CORRELATION_SHRINKAGE
            factor = np.linalg.cholesky(shrunken).astype(np.float64)
            centres = solve_triangular(factor, centres.T, lower=True).T
        if m == 1:
            return cls(centres, kernel_width(m, d), factor)
        widths = kernel_width(m, d) * _WIDTHS
        # -|x - c|^2 / 2 of all pairs but a centre and itself
        exponents = centres @ centres.T
        half_norms = _half_norms(centres)
        exponents -= half_norms
        exponents -= half_norms[:, np.newaxis]
        np.fill_diagonal(exponents, -np.inf)
        peaks = exponents.max(axis=1, keepdims=True)
        exponents -= peaks

        @cache
        def log_likelihood(i: int) -> float:
            precision = 1 / widths[i] ** 2
            sums = np.concatenate(
                [
                    np.exp(exponents[rows] * precision).sum(axis=1)
                    for rows in row_blocks(m, m)
                ]
            )
            total = np.log(sums).sum() + precision * peaks.sum()
            return float(total - m * d * np.log(widths[i]))

        # Likelihoods rise up to one width and fall beyond it, in all samples but odd
        # ones: from the likeliest of a few widths uphill saves half of the work.
        best = max(_COARSE, key=log_likelihood)
        while True:
            near = range(max(best - 1, 0), min(best + 2, len(widths)))
            better = max(near, key=log_likelihood)
            if log_likelihood(better) <= log_likelihood(best):
                return cls(centres, float(widths[best]), factor)
            best = better

    def sample(self, n: int, random: np.random.RandomState) -> FloatArray:
        """Draw `n` rows from round kernels."""
        at = self.centres[random.randint(len(self.centres), size=n)]
        drawn: FloatArray = at + self.width * random.normal(size=at.shape)
        return drawn

    def log_density(self, X: FloatArray) -> FloatArray:
        """Log density of each row: O(M d) a row."""
        m, d = self.centres.shape
        log_volume = 0.0
        if self.factor is not None:
            X = solve_triangular(self.factor, X.T, lower=True).T
            log_volume = float(np.log(np.diagonal(self.factor)).sum())
        X, centres = X / self.width, self.centres / self.width
        result, half_norms = -_half_norms(X), _half_norms(centres)
        for block in row_blocks(len(X), m):
            # -|x - c|^2 / 2 but for |x|^2 / 2, which a row has in common
            products = X[block] @ centres.T
            products -= half_norms
            result[block] += _log_sums(products)
        normaliser = math.log(m) + d * math.log(math.sqrt(2 * math.pi) * self.width)
        return result - normaliser - log_volume


def _half_norms(X: FloatArray) -> FloatArray:
    """Return |x|^2 / 2 of each row of X (n, d), shape (n,)."""
    return 0.5 * np.einsum("ij,ij->i", X, X)


def _log_sums(exponents: FloatArray) -> FloatArray:
    """Return log sum_j exp(a_ij) of each row (n, m), which it overwrites."""
    peaks = exponents.max(axis=1)
    exponents -= peaks[:, np.newaxis]
    np.exp(exponents, out=exponents)
    sums: FloatArray = np.log(exponents.sum(axis=1)) + peaks
    return sums
