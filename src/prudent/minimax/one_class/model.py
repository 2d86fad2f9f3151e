"""The learned rule: regions that hold a class, and the scores that they give rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_solve

from prudent.core.linalg import MahalanobisFactors, check_positive_definite, row_blocks
from prudent.core.types import FloatArray, IntArray
from prudent.exceptions import InfeasibleError
from prudent.minimax.kernel import Span

#: Unit to which scores of kernel fits are rounded, in their standard deviations.
KERNEL_RESOLUTION = 2.0**-26
#: What the one class is called in errors.
NORMAL = ("normal",)


@dataclass(frozen=True, slots=True, eq=False)
class HalfSpace:
    """The half-space away from the origin that holds a class most tightly.

    The score of a row z is w'z with the `weights` w = S^-1 m; `zeta` = sqrt(m'S^-1 m)
    is the number of standard deviations between the class and the origin.
    """

    weights: FloatArray
    zeta: float

    def scores(self, Z: FloatArray) -> FloatArray:
        """W'z of each row, (n,)."""
        # Not by BLAS, whose sums depend on how many rows there are.
        scores: FloatArray = np.einsum("ij,j->i", np.ascontiguousarray(Z), self.weights)
        return scores

    def threshold(
        self,
        false_alarm_rate: float,
        mean_radius: float = 0.0,
        covariance_factor: float = 1.0,
    ) -> float:
        """Score below which at most `false_alarm_rate` of any such class falls.

        zeta^2 - k zeta with k = sqrt(gamma) (sqrt((1 - rate) / rate) + nu); unless
        k < zeta no half-space that excludes the origin keeps the rate.
        """
        width = math.sqrt(covariance_factor)
        plain = math.sqrt((1 - false_alarm_rate) / false_alarm_rate)
        k = width * (plain + mean_radius)
        if not k < self.zeta:
            reach = max(self.zeta / width - mean_radius, 0.0)
            raise InfeasibleError(
                "no half-space without the origin holds the class at "
                f"false_alarm_rate={false_alarm_rate:g}: it must exceed "
                f"{1 / (1 + reach * reach):.6g}, the class being {self.zeta:.3g} "
                "standard deviations from the origin."
            )
        return self.zeta * (self.zeta - k)


@dataclass(frozen=True, slots=True, eq=False)
class Ellipsoid:
    """Rows near the mean of a class (a pair), in the metric of S + rho I.

    `root` is the inverse Cholesky factor of S + rho I, `rho` the variance of what lies
    outside the span of the training rows, for kernels.
    """

    mean: FloatArray
    mean_lo: FloatArray
    root: FloatArray
    rho: float

    def scores(self, Z: FloatArray, residual: FloatArray | None = None) -> FloatArray:
        """Minus the Mahalanobis distance of each row, (n,).

        `residual` is the squared length of each row outside a kernel span.
        """
        squared = np.empty(len(Z))
        for rows in row_blocks(len(Z), Z.shape[1]):
            gap = np.ascontiguousarray(Z[rows]) - self.mean
            gap -= self.mean_lo
            # Not by BLAS, whose sums depend on how many rows there are.
            whitened = np.einsum("ij,kj->ik", gap, self.root)
            squared[rows] = np.einsum("ij,ij->i", whitened, whitened)
        if residual is not None:
            squared += np.maximum(residual, 0.0) / self.rho
        return -np.sqrt(squared)


def halfspace(mean: ArrayLike, covariance: ArrayLike) -> HalfSpace:
    """Best half-space {w'z >= t} that excludes the origin (Theorems 4 and 7).

    The covariance has rho I added if it is uncertain. InfeasibleError for a mean of 0:
    every half-space without it excludes half the class.

    Examples
    --------
    >>> from prudent.minimax.one_class import halfspace
    >>> region = halfspace([3, 2], [[2, 0.5], [0.5, 1]])
    >>> round(region.zeta, 6), round(region.threshold(0.5), 6)
    (2.507133, 3.778582)
    """
    m = np.asarray(mean, dtype=np.float64)
    S = np.asarray(covariance, dtype=np.float64)
    if not m.any():
        raise InfeasibleError(
            "no half-space without the origin holds a class whose mean is 0 (smallest "
            "false_alarm_rate 1): move the origin, or use region='ellipsoid'."
        )
    factor = check_positive_definite(S[None], classes=NORMAL)[0]
    weights = cho_solve((factor, True), m)
    return HalfSpace(weights, math.sqrt(float(m @ weights)))


def ellipsoid(
    mean: FloatArray, mean_lo: FloatArray, covariance: FloatArray, rho: float
) -> Ellipsoid:
    """Ellipsoid around a mean (a pair), in the metric of a positive definite matrix."""
    factors = MahalanobisFactors.from_covariances(
        mean[None], covariance[None], means_lo=mean_lo[None], classes=NORMAL
    )
    return Ellipsoid(mean, factors.means_lo[0], factors.inverse_factors[0], rho)


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A region of some features; with a `span` rows are kernel values."""

    region: HalfSpace | Ellipsoid
    features: IntArray
    span: Span | None

    def scores(self, X: NDArray[Any], diagonal: FloatArray | None = None) -> FloatArray:
        """Score of each row, (n,): the lower, the more unusual.

        `diagonal` is the kernel value of each row with itself, for an ellipsoid.
        """
        if self.span is None:
            if len(self.features) < X.shape[1]:
                X = X[:, self.features]
            return self.region.scores(X)
        coordinates = self.span.coordinates(X)
        if isinstance(self.region, HalfSpace):
            return _rounded(self.region.scores(coordinates), self.region.zeta)
        assert diagonal is not None
        outside = diagonal - np.einsum("ij,ij->i", coordinates, coordinates)
        return _rounded(self.region.scores(coordinates, outside), 1.0)

    def weights(self, n_features: int) -> FloatArray | None:
        """Weights (1, p) of features, or kernel values, of a half-space."""
        if not isinstance(self.region, HalfSpace):
            return None
        if self.span is not None:
            return self.span.dual(self.region.weights[None])
        weights = np.zeros((1, n_features))
        weights[0, self.features] = self.region.weights
        return weights


def _rounded(scores: FloatArray, scale: float) -> FloatArray:
    """Scores without the digits that depend on how many rows BLAS takes at once."""
    unit = 2.0 ** math.floor(math.log2(scale)) * KERNEL_RESOLUTION
    near: FloatArray = np.rint(scores / unit) * unit
    return near
