"""Families with covariance matrices: one per class, one for all, and its softmax."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from prudent.calibration.families import PriorStrengths, Statistics
from prudent.calibration.gaussian import (
    GaussianFamily,
    Normals,
    SeenRows,
    Standardised,
    linear_scores,
    standardised,
)
from prudent.calibration.spread import Spread
from prudent.calibration.whitening import Whitening, squared_distances
from prudent.core.moments import RawMoments
from prudent.core.types import BoolArray, FloatArray, IntArray
from prudent.core.validation import Structure

#: |W_ik| up to this share of the largest weight moves no statistic visibly.
_NEGLIGIBLE = 1e-10


@dataclass(frozen=True)
class FullFamily(GaussianFamily):
    """One covariance matrix per class: quadratic discriminant analysis.

    Statistics s0 (r,), s1 (r, d), s2 (r, d, d) of 1, x and xx'.
    """

    strength_per_feature: ClassVar[float] = 0.1

    def _sums(self, Z: FloatArray, Q: FloatArray) -> Statistics:
        sums = RawMoments.from_soft(Z, Q, np.zeros(Z.shape[1]), negligible=_NEGLIGIBLE)
        # The column of ones: s0 and s1 leave out the same rows as s2.
        return [sums.s2[:, 0, 0], sums.s2[:, 0, 1:], sums.s2[:, 1:, 1:]]

    def _scores(self, rows: Any, parameters: Normals) -> FloatArray:
        # log p_k - log det Sigma_k / 2 - squared distance / 2
        scores = squared_distances(rows, parameters.scores)
        scores *= -0.5
        constants = parameters.log_priors - 0.5 * parameters.scores.log_determinants
        scores += constants[:, np.newaxis]
        return scores.T

    def _moments(self, statistics: Statistics) -> tuple[FloatArray, FloatArray]:
        """Means, and Sigma_k = s2_k / s0_k - mu_k mu_k' shrunken."""
        s0, s1, s2 = statistics
        means = s1 / s0[:, np.newaxis]
        covariances = s2 - s1[:, :, np.newaxis] * means[:, np.newaxis]
        covariances += self._prior_scatter
        return means, covariances / (self._covariance_strength + s0)[:, None, None]

    def _with_scores(
        self, log_priors: FloatArray, means: FloatArray, covariances: FloatArray
    ) -> Normals:
        whitening = Whitening.from_cholesky(means, np.linalg.cholesky(covariances))
        return Normals(log_priors, means, covariances, whitening)


@dataclass(frozen=True)
class TiedFamily(GaussianFamily):
    """One covariance matrix for all classes: linear discriminant analysis.

    Statistics s0 (r,), s1 (r, d). The second moment v / M of all rows, (d, d) or the
    diagonal (d,), with M = `total` does not depend on the labels, so that the
    calibration never moves it.
    """

    second_moment: FloatArray = field(default_factory=lambda: np.zeros(0))
    total: float = 0.0

    tied: ClassVar[bool] = True
    structure: ClassVar[Structure] = "full"

    @classmethod
    def from_spread(cls, spread: Spread, strengths: PriorStrengths) -> Self:
        """Family standardised by the rows behind `spread`."""
        family = super().from_spread(spread, strengths)
        kept = family.kept
        second = standardised(spread.covariance, kept, spread.scale[kept])
        return replace(family, second_moment=second, total=spread.total)

    def with_rows(self, Z: Standardised, weight: FloatArray) -> Self:
        """Same standardisation, with these rows added to the second moment."""
        if isinstance(Z, SeenRows):
            raise ValueError(
                "X contains NaN: give `partial_fit` whole rows, or `fit` all of them."
            )
        total = self.total + weight.sum()
        second = self._second_sums(Z, weight)
        if self.total:
            second = second + self.total * self.second_moment
        return replace(self, second_moment=second / total, total=total)

    def _sums(self, Z: FloatArray, Q: FloatArray) -> Statistics:
        first = Q.T @ Z
        return [first[:, 0], first[:, 1:]]

    def _scores(self, rows: Any, parameters: Normals) -> FloatArray:
        # log p_k + mu_k' Sigma^-1 x - mu_k' Sigma^-1 mu_k / 2
        scores: FloatArray = (parameters.scores @ rows.T).T
        return scores

    def row_constant(self, rows: Standardised, parameters: Normals) -> FloatArray:
        """-log det Sigma / 2 - x' Sigma^-1 x / 2, which all classes share, (m,)."""
        covariance = parameters.covariances
        if isinstance(rows, SeenRows):

            def scored(Z: FloatArray, marginal: Normals) -> FloatArray:
                return self.row_constant(Z, marginal)[:, np.newaxis]

            return self._by_pattern(rows, parameters, scored, np.zeros(1))[:, 0]
        Z = rows[:, 1:]
        quadratic = np.einsum("ij,ij->i", Z, _solved(covariance, Z))
        return -0.5 * (_log_determinant(covariance) + quadratic)

    def coefficients(self, parameters: Normals) -> tuple[FloatArray, FloatArray]:
        """Coefficients (r, d) and intercepts (r,) of the log joint in units of X."""
        return self.coefficients_in_units(parameters.scores)

    def _moments(self, statistics: Statistics) -> tuple[FloatArray, FloatArray]:
        """Means, and Sigma = v / M - sum_k p_k mu_k mu_k' shrunken."""
        s0, s1 = statistics
        total = s0.sum()
        means = s1 / s0[:, np.newaxis]
        within = total * self.second_moment - s1.T @ means
        within += self._prior_scatter
        return means, within / (self._covariance_strength + total)

    def _with_scores(
        self, log_priors: FloatArray, means: FloatArray, covariances: FloatArray
    ) -> Normals:
        linear = _solved(covariances, means)
        constants = log_priors - 0.5 * (means * linear).sum(axis=1)
        scores = linear_scores(constants, linear)
        return Normals(log_priors, means, covariances, scores)

    def _second_sums(self, Z: FloatArray, weight: FloatArray) -> FloatArray:
        sums = RawMoments.from_soft(Z, weight[:, np.newaxis], np.zeros(Z.shape[1]))
        return sums.s2[0, 1:, 1:]


@dataclass(frozen=True)
class SoftmaxFamily:
    """Softmax regression on the rows of a tied Gaussian family: `method="gd"`.

    With the statistics s_k = M theta_k of psi(x) = (1, x) and the parameters s / M, M
    the weight of all rows, a calibration step is a gradient step on the mean log loss
    of softmax(theta' psi) with the same learning rate (the paper's Proposition 1), so
    the baseline is one more family for the same engine.
    """

    gaussian: TiedFamily

    @property
    def constant_features(self) -> IntArray:
        """Features that do not vary and are ignored."""
        return self.gaussian.constant_features

    def prepare(self, X: FloatArray) -> FloatArray:
        """Rows [1, z]."""
        rows = self.gaussian.prepare(X)
        assert not isinstance(rows, SeenRows)
        return rows

    def start(self, sums: Statistics) -> Statistics:
        """M theta of the discriminant with these sums of (1, z)."""
        parameters = self.gaussian.parameters(self.gaussian_statistics(sums))
        return [self.gaussian.total * parameters.scores]

    def gaussian_statistics(self, sums: Statistics) -> Statistics:
        """Sums of (1, z) as the statistics of the Gaussian family."""
        return [sums[0][:, 0], sums[0][:, 1:]]

    def statistics(self, Z: FloatArray, Q: FloatArray) -> Statistics:
        """sum_i Q_ik (1, z_i), shape (r, d + 1)."""
        return [Q.T @ Z]

    def parameters(self, statistics: Statistics) -> FloatArray:
        """Theta (r, d + 1)."""
        return statistics[0] / self.gaussian.total

    def log_joint(self, Z: FloatArray, parameters: FloatArray) -> FloatArray:
        """theta_k' (1, z), shape (m, r)."""
        return (parameters @ Z.T).T

    def coefficients(self, parameters: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Coefficients (r, d) and intercepts (r,) in the units of X."""
        return self.gaussian.coefficients_in_units(parameters)

    def is_valid(self, statistics: Statistics) -> BoolArray:
        """Every coefficient is allowed, shape (r,)."""
        return np.ones(len(statistics[0]), dtype=bool)


def _solved(covariance: FloatArray, rows: FloatArray) -> FloatArray:
    """Rows times the inverse of a matrix, or of variances."""
    if covariance.ndim == 1:
        return rows / covariance
    factor = cho_factor(covariance, lower=True, check_finite=False)
    solution: FloatArray = cho_solve(factor, rows.T, check_finite=False).T
    return solution


def _log_determinant(covariance: FloatArray) -> float:
    if covariance.ndim == 1:
        return float(np.log(covariance).sum())
    return float(np.linalg.slogdet(covariance)[1])
