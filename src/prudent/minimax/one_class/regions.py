"""Regions that hold a class with known mean and covariance, whatever its law."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cho_solve

from prudent.core.definiteness import check_positive_definite
from prudent.core.distances import MahalanobisFactors, row_blocks
from prudent.core.types import FloatArray
from prudent.exceptions import InfeasibleError


@dataclass(frozen=True, slots=True, eq=False)
class HalfSpace:
    """The half-space away from the origin that holds a class most tightly.

    The score of a row z is w'z with the `weights` w = S^-1 m; `zeta` = sqrt(m'S^-1 m)
    is the number of standard deviations between the class and the origin.
    """

    weights: FloatArray
    zeta: float

    def scores(self, Z: FloatArray, residual: FloatArray | None = None) -> FloatArray:
        """W'z of each row, (n,); what lies outside a kernel span does not matter."""
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

    def normal(self, false_alarm_rate: float, mean_radius: float = 0.0) -> FloatArray:
        """Normal a of the same half-space written as a'z >= 1."""
        return self.weights / self.threshold(false_alarm_rate, mean_radius)


@dataclass(frozen=True, slots=True, eq=False)
class Ellipsoid:
    """Rows near the mean of a class (a pair), in the metric of S + rho I.

    `root` is the inverse Cholesky factor of S + rho I, `rho` the variance of what lies
    outside the span of the training rows, for kernels.
    """

    mean: FloatArray
    mean_lo: FloatArray
    root: FloatArray
    rho: float = 0.0

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

    def threshold(
        self,
        false_alarm_rate: float,
        mean_radius: float = 0.0,
        covariance_factor: float = 1.0,
    ) -> float:
        """Score below which at most `false_alarm_rate` of any such class falls."""
        return -ellipsoid_radius(
            len(self.mean), false_alarm_rate, mean_radius, covariance_factor
        )


def halfspace(mean: ArrayLike, covariance: ArrayLike) -> HalfSpace:
    """Best half-space {w'z >= t} that excludes the origin (Theorems 4 and 7).

    The covariance has rho I added if it is uncertain. InfeasibleError for a mean of 0:
    every half-space without it excludes half the class.

    Examples
    --------
    >>> from prudent.minimax.one_class import halfspace
    >>> region = halfspace([3, 2], [[2, 0.5], [0.5, 1]])
    >>> round(region.zeta, 6), region.normal(0.5).round(6).tolist()
    (2.507133, [0.302457, 0.378071])
    """
    m = np.asarray(mean, dtype=np.float64)
    S = np.asarray(covariance, dtype=np.float64)
    if not m.any():
        raise InfeasibleError(
            "no half-space without the origin holds a class whose mean is 0 (smallest "
            "false_alarm_rate 1): move the origin, or use region='ellipsoid'."
        )
    factor = check_positive_definite(S[None])[0]
    weights = cho_solve((factor, True), m)
    return HalfSpace(weights, math.sqrt(float(m @ weights)))


def ellipsoid(
    mean: FloatArray, mean_lo: FloatArray, covariance: FloatArray, rho: float = 0.0
) -> Ellipsoid:
    """Ellipsoid around a mean (a pair), in the metric of a positive definite matrix."""
    factors = MahalanobisFactors.from_covariances(
        mean[None], covariance[None], means_lo=mean_lo[None]
    )
    return Ellipsoid(mean, factors.means_lo[0], factors.inverse_factors[0], rho)


def ellipsoid_radius(
    n_features: int,
    false_alarm_rate: float,
    mean_radius: float = 0.0,
    covariance_factor: float = 1.0,
) -> float:
    """Mahalanobis radius that at most `false_alarm_rate` of any law exceeds.

    sqrt(gamma) (sqrt(n / rate) + nu); attained by mass rate on the axes of the
    ellipsoid.

    Examples
    --------
    >>> from prudent.minimax.one_class import ellipsoid_radius
    >>> round(ellipsoid_radius(2, 0.1), 4)
    4.4721
    """
    plain = math.sqrt(n_features / false_alarm_rate)
    return math.sqrt(covariance_factor) * (plain + mean_radius)
