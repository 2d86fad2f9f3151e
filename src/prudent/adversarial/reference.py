"""Artificial intruders: densities that are known exactly and can be sampled.

All of them describe standardised rows. The classifier that tells the rows from a
sample of density u estimates log p - log u, and u is known, so log p follows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from prudent.adversarial.cells import CellSet, choose_cells
from prudent.adversarial.kernel_density import NormalKernels, kernel_width
from prudent.core.distances import MahalanobisFactors

__all__ = [
    "BoxReference",
    "GaussianReference",
    "GridReference",
    "MixtureReference",
    "Reference",
    "ReferenceName",
    "make_reference",
]

FloatArray = NDArray[np.float64]
ReferenceName = Literal["mixture", "gaussian", "box", "grid"]

_INFLATION = 1.5  # of the Gaussian's standard deviations
_RIDGE = 1e-3  # added to the covariance of standardised rows
_MAX_CENTRES = 300
_BOX_MARGIN = 0.1  # of the data's range, on each side


class Reference(Protocol):
    """A density over standardised rows."""

    def sample(self, n: int, rng: np.random.RandomState) -> FloatArray:
        """Draw `n` artificial rows."""

    def log_density(self, X: FloatArray) -> FloatArray:
        """Exact log u of each row, -inf outside the support."""


def make_reference(
    name: ReferenceName, X: FloatArray, rng: np.random.RandomState
) -> Reference:
    """Fit the reference of this name to standardised rows."""
    if name == "mixture":
        return MixtureReference.from_rows(X, rng)
    if name == "gaussian":
        return GaussianReference.from_rows(X)
    if name == "box":
        return BoxReference.from_rows(X)
    return GridReference(choose_cells(X, rng))


@dataclass(frozen=True, slots=True)
class GaussianReference:
    """Centred normal with 1.5 times the rows' standard deviations."""

    factor: FloatArray  # (d, d) lower triangular Cholesky factor
    metric: MahalanobisFactors

    @classmethod
    def from_rows(cls, X: FloatArray) -> Self:
        """Inflate the covariance of standardised rows."""
        d = X.shape[1]
        covariance = X.T @ X / len(X)
        covariance[np.diag_indices(d)] += _RIDGE
        covariance *= _INFLATION**2
        metric = MahalanobisFactors.from_covariances(
            np.zeros((1, d)), covariance[np.newaxis]
        )
        factor: FloatArray = np.linalg.cholesky(covariance).astype(np.float64)
        return cls(factor, metric)

    def sample(self, n: int, rng: np.random.RandomState) -> FloatArray:
        """Draw `n` artificial rows."""
        return rng.normal(size=(n, len(self.factor))) @ self.factor.T

    def log_density(self, X: FloatArray) -> FloatArray:
        """Exact log u of each row."""
        normaliser = X.shape[1] * math.log(2 * math.pi)
        normaliser += float(self.metric.log_determinants[0])
        return -0.5 * (self.metric.squared_distances(X)[:, 0] + normaliser)


@dataclass(frozen=True, slots=True)
class MixtureReference:
    """Half inflated Gaussian, half normal kernels at some of the rows."""

    gaussian: GaussianReference
    kernels: NormalKernels

    @classmethod
    def from_rows(cls, X: FloatArray, rng: np.random.RandomState) -> Self:
        """Put kernels of the rule-of-thumb width at up to 300 random rows."""
        n, d = X.shape
        chosen = rng.permutation(n)[:_MAX_CENTRES]
        kernels = NormalKernels(X[chosen], kernel_width(n, d))
        return cls(GaussianReference.from_rows(X), kernels)

    def sample(self, n: int, rng: np.random.RandomState) -> FloatArray:
        """Draw `n` artificial rows, half of them from each part."""
        kernel = self.kernels.sample(n // 2, rng)
        return np.concatenate([self.gaussian.sample(n - n // 2, rng), kernel])

    def log_density(self, X: FloatArray) -> FloatArray:
        """Exact log u of each row: O(M d) a row."""
        parts = self.gaussian.log_density(X), self.kernels.log_density(X)
        return np.logaddexp(*parts) - math.log(2)


@dataclass(frozen=True, slots=True)
class BoxReference:
    """Uniform on the rows' bounding box, enlarged by a tenth on each side."""

    lower: FloatArray
    upper: FloatArray

    @classmethod
    def from_rows(cls, X: FloatArray) -> Self:
        """Enlarge the bounding box."""
        lower, upper = X.min(axis=0), X.max(axis=0)
        margin = _BOX_MARGIN * (upper - lower)
        return cls(lower - margin, upper + margin)

    def sample(self, n: int, rng: np.random.RandomState) -> FloatArray:
        """Draw `n` artificial rows."""
        return rng.uniform(self.lower, self.upper, size=(n, len(self.lower)))

    def log_density(self, X: FloatArray) -> FloatArray:
        """Constant inside the box, -inf outside."""
        inside = ((self.lower <= X) & (self.upper >= X)).all(axis=1)
        volume = float(np.log(self.upper - self.lower).sum())
        return np.where(inside, -volume, -np.inf)


@dataclass(frozen=True, slots=True)
class GridReference:
    """The paper's: uniform on the cells of a random grid that hold a row."""

    cells: CellSet

    def sample(self, n: int, rng: np.random.RandomState) -> FloatArray:
        """Draw `n` artificial rows, x0 + g (A + uniform).

        The paper's o = a + g x mixes up cell numbers and coordinates.
        """
        corner = self.cells.corners[rng.randint(len(self.cells.corners), size=n)]
        size = self.cells.size
        return self.cells.origin + size * (corner + rng.uniform(size=corner.shape))

    def log_density(self, X: FloatArray) -> FloatArray:
        """Constant in the occupied cells, -inf outside."""
        n_cells, d = self.cells.corners.shape
        level = -math.log(n_cells) - d * math.log(self.cells.size)
        return np.where(self.cells.contains(X), level, -np.inf)
