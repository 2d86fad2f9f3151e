"""Gaussian families: class means with full, diagonal or shared covariances.

All of them work on standardised rows Z = [1, (x - centre) / scale]: raw second
moments s2 / s0 - mu mu' of rows far from the origin would lose every digit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from prudent.calibration.families import (
    PriorStrengths,
    Statistics,
    shrunken_log_priors,
)
from prudent.calibration.spread import Spread, column_moments
from prudent.calibration.whitening import Whitening, squared_distances
from prudent.core.raw_moments import RawSums
from prudent.core.types import BoolArray, FloatArray, IntArray
from prudent.core.validation import Structure

#: Validity margin of variances and of the smallest eigenvalue of a correlation
#: matrix, on features of unit variance: below, s2 / s0 - mu mu' is rounding noise.
_MARGIN = 1e-9
#: |W_ik| up to this share of the largest weight moves no statistic visibly.
_NEGLIGIBLE = 1e-10
_ROWS_PER_BLOCK = 4096
#: In standard deviations; the squared distance of such a row is finite still.
_FARTHEST = 1e100


@dataclass(frozen=True, slots=True)
class GaussianParameters:
    """Shrunken parameters in standardised units, and what the scores need.

    Attributes
    ----------
    log_priors : ndarray of shape (r,)
    means : ndarray of shape (r, d)
    covariances : ndarray
        (r, d, d), (d, d), or the variances (r, d) or (d,).
    scores : object
        A `Whitening` for "full"; else coefficients of Z, shape (r, d + 1).
    """

    log_priors: FloatArray
    means: FloatArray
    covariances: FloatArray
    scores: Any


@dataclass(frozen=True)
class GaussianFamily:
    """Standardisation and shrinkage common to the Gaussian families.

    Attributes
    ----------
    centre, scale : ndarray of shape (n_features,)
        Weighted mean and population standard deviation of each feature.
    kept : ndarray of int
        Features that vary; the others take no part.
    strengths : PriorStrengths
    """

    centre: FloatArray
    scale: FloatArray
    kept: IntArray
    strengths: PriorStrengths

    tied: ClassVar[bool] = False
    structure: ClassVar[Structure] = "diagonal"
    covariance_name: ClassVar[str]
    strength_per_feature: ClassVar[float] = 0.0

    @classmethod
    def from_rows(
        cls, X: NDArray[Any], weight: FloatArray, strengths: PriorStrengths
    ) -> Self:
        """Family standardised by the rows X (m, d) of weight (m,)."""
        moments = column_moments(X, weight, cls.structure)
        return cls.from_spread(Spread.of(moments, float(weight.sum())), strengths)

    @classmethod
    def from_spread(cls, spread: Spread, strengths: PriorStrengths) -> Self:
        """Family standardised by the rows behind `spread`."""
        return cls(spread.centre, spread.scale, spread.varying, strengths)

    @property
    def constant_features(self) -> IntArray:
        """Features that do not vary and are ignored."""
        return np.setdiff1d(np.arange(len(self.centre)), self.kept)

    def prepare(self, X: NDArray[Any]) -> FloatArray:
        """Rows [1, z] of the standardised features that vary, (m, d + 1)."""
        Z = np.empty((len(X), len(self.kept) + 1))
        Z[:, 0] = 1.0
        for start in range(0, len(X), _ROWS_PER_BLOCK):
            block = slice(start, start + _ROWS_PER_BLOCK)
            rows = X[block].astype(np.float64)
            with np.errstate(over="ignore"):
                z = ((rows - self.centre)[:, self.kept]) / self.scale[self.kept]
            np.clip(z, -_FARTHEST, _FARTHEST, out=Z[block, 1:])
        return Z

    def learned(self, parameters: GaussianParameters) -> dict[str, FloatArray]:
        """Parameters in the units of X, by the name of the fitted attribute."""
        means = np.tile(self.centre, (len(parameters.means), 1))
        means[:, self.kept] += self.scale[self.kept] * parameters.means
        return {
            "priors_": np.exp(parameters.log_priors),
            "means_": means,
            self.covariance_name: self._covariances_in_units(parameters.covariances),
        }

    def _covariances_in_units(self, covariances: FloatArray) -> FloatArray:
        # Features are the last one or two axes; a constant feature has variance 0.
        d, scale = len(self.centre), self.scale[self.kept]
        if self.covariance_name == "variances_":
            variances = np.zeros((*covariances.shape[:-1], d))
            variances[..., self.kept] = covariances * scale**2
            return variances
        full = np.zeros((*covariances.shape[:-2], d, d))
        full[..., self.kept[:, np.newaxis], self.kept] = covariances * np.outer(
            scale, scale
        )
        return full

    @property
    def _covariance_strength(self) -> float:
        if self.strengths.covariances is None:
            return 1.0 + self.strength_per_feature * len(self.kept)
        return self.strengths.covariances

    def _shrunken_means(self, s0: FloatArray, means: FloatArray) -> FloatArray:
        # mu'_k = (m1 mu0 + s0_k mu_k) / (m1 + s0_k) with mu0 = 0
        return means * (s0 / (self.strengths.means + s0))[:, np.newaxis]

    def _log_priors(self, s0: FloatArray) -> FloatArray:
        return shrunken_log_priors(s0, self.strengths.classes)


@dataclass(frozen=True)
class FullFamily(GaussianFamily):
    """One covariance matrix per class: quadratic discriminant analysis.

    Statistics s0 (r,), s1 (r, d), s2 (r, d, d) of 1, x and xx'.
    """

    covariance_name: ClassVar[str] = "covariances_"
    strength_per_feature: ClassVar[float] = 0.1

    def statistics(self, Z: FloatArray, Q: FloatArray) -> Statistics:
        """s0, s1, s2 of the soft labels Q (m, r)."""
        sums = RawSums.from_soft(Z, Q, np.zeros(Z.shape[1]), negligible=_NEGLIGIBLE)
        # The column of ones: s0 and s1 leave out the same rows as s2.
        return [sums.s2[:, 0, 0], sums.s2[:, 0, 1:], sums.s2[:, 1:, 1:]]

    def parameters(self, statistics: Statistics) -> GaussianParameters:
        """Means, Sigma_k = s2_k / s0_k - mu_k mu_k' and their whitening."""
        means, covariances = self._moments(statistics)
        means = self._shrunken_means(statistics[0], means)
        whitening = Whitening.from_cholesky(means, np.linalg.cholesky(covariances))
        return GaussianParameters(
            self._log_priors(statistics[0]), means, covariances, whitening
        )

    def log_joint(self, Z: FloatArray, parameters: GaussianParameters) -> FloatArray:
        """Log p_k - log det Sigma_k / 2 - squared distance / 2, shape (m, r)."""
        scores = squared_distances(Z, parameters.scores)
        scores *= -0.5
        constants = parameters.log_priors - 0.5 * parameters.scores.log_determinants
        scores += constants[:, np.newaxis]
        return scores.T

    def is_valid(self, statistics: Statistics) -> BoolArray:
        """s0_k > 0 and Sigma'_k positive definite, shape (r,)."""
        with np.errstate(all="ignore"):
            _, covariances = self._moments(statistics)
        return (statistics[0] > 0) & _are_positive_definite(covariances)

    def _moments(self, statistics: Statistics) -> tuple[FloatArray, FloatArray]:
        s0, s1, s2 = statistics
        means = s1 / s0[:, np.newaxis]
        # s0_k Sigma_k = s2_k - s0_k mu_k mu_k'
        covariances = s2 - s1[:, :, np.newaxis] * means[:, np.newaxis]
        strength = self._covariance_strength
        covariances += strength * np.eye(means.shape[1])
        return means, covariances / (strength + s0)[:, np.newaxis, np.newaxis]


@dataclass(frozen=True)
class DiagonalFamily(GaussianFamily):
    """One variance per class and feature: Gaussian naive Bayes.

    Statistics s0 (r,), s1 (r, d), s2 (r, d) of 1, x and x^2.
    """

    covariance_name: ClassVar[str] = "variances_"

    def statistics(self, Z: FloatArray, Q: FloatArray) -> Statistics:
        """s0, s1, s2 of the soft labels Q (m, r)."""
        first = Q.T @ Z
        second = np.zeros((Q.shape[1], Z.shape[1] - 1))
        for start in range(0, len(Z), _ROWS_PER_BLOCK):
            block = slice(start, start + _ROWS_PER_BLOCK)
            second += Q.T[:, block] @ np.square(Z[block, 1:])
        return [first[:, 0], first[:, 1:], second]

    def parameters(self, statistics: Statistics) -> GaussianParameters:
        """Means and variances sigma^2_kj = s2_kj / s0_k - mu_kj^2."""
        means, variances = self._moments(statistics)
        means = self._shrunken_means(statistics[0], means)
        log_priors = self._log_priors(statistics[0])
        # log p_k - sum_j (log sigma^2 + (x - mu)^2 / sigma^2) / 2, expanded in x
        linear = means / variances
        constants = log_priors - 0.5 * (np.log(variances) + means * linear).sum(axis=1)
        scores = np.concatenate([constants[:, np.newaxis], linear], axis=1)
        return GaussianParameters(log_priors, means, variances, scores)

    def log_joint(self, Z: FloatArray, parameters: GaussianParameters) -> FloatArray:
        """Log density of independent normal features plus log p_k, shape (m, r)."""
        scores = parameters.scores @ Z.T
        curvatures = -0.5 / parameters.covariances
        for start in range(0, len(Z), _ROWS_PER_BLOCK):
            block = slice(start, start + _ROWS_PER_BLOCK)
            scores[:, block] += curvatures @ np.square(Z[block, 1:]).T
        return scores.T

    def is_valid(self, statistics: Statistics) -> BoolArray:
        """s0_k > 0 and every variance above the margin, shape (r,)."""
        with np.errstate(all="ignore"):
            _, variances = self._moments(statistics)
        return (statistics[0] > 0) & (variances > _MARGIN).all(axis=1)

    def _moments(self, statistics: Statistics) -> tuple[FloatArray, FloatArray]:
        s0, s1, s2 = statistics[0][:, np.newaxis], statistics[1], statistics[2]
        means, strength = s1 / s0, self._covariance_strength
        return means, (strength + s2 - s1 * means) / (strength + s0)


@dataclass(frozen=True)
class TiedFamily(GaussianFamily):
    """One covariance matrix for all classes: linear discriminant analysis.

    Statistics s0 (r,), s1 (r, d); the second moment v / M of all rows does not
    depend on the labels, so that the calibration never moves it.
    """

    second_moment: FloatArray  # v / M: (d, d), or (d,) for the diagonal
    total: float  # M

    tied: ClassVar[bool] = True
    structure: ClassVar[Structure] = "full"
    covariance_name: ClassVar[str] = "covariances_"

    @classmethod
    def from_spread(cls, spread: Spread, strengths: PriorStrengths) -> Self:
        """Family standardised by the rows behind `spread`."""
        kept, scale = spread.varying, spread.scale
        second = cls._standardised(spread.covariance, kept, scale[kept])
        return cls(spread.centre, scale, kept, strengths, second, spread.total)

    def with_rows(self, Z: FloatArray, weight: FloatArray) -> Self:
        """Same standardisation, with these rows added to the second moment."""
        total = self.total + weight.sum()
        second = self._second_moments(Z, weight)
        if self.total:
            second = second + self.total * self.second_moment
        return replace(self, second_moment=second / total, total=total)

    def statistics(self, Z: FloatArray, Q: FloatArray) -> Statistics:
        """s0, s1 of the soft labels Q (m, r)."""
        first = Q.T @ Z
        return [first[:, 0], first[:, 1:]]

    def parameters(self, statistics: Statistics) -> GaussianParameters:
        """Means and Sigma = v / M - sum_k p_k mu_k mu_k'."""
        means, covariances = self._moments(statistics)
        means = self._shrunken_means(statistics[0], means)
        log_priors = self._log_priors(statistics[0])
        linear = self._solve(covariances, means)
        constants = log_priors - 0.5 * (means * linear).sum(axis=1)
        scores = np.concatenate([constants[:, np.newaxis], linear], axis=1)
        return GaussianParameters(log_priors, means, covariances, scores)

    def log_joint(self, Z: FloatArray, parameters: GaussianParameters) -> FloatArray:
        """Log p_k + mu_k' Sigma^-1 x - mu_k' Sigma^-1 mu_k / 2, shape (m, r)."""
        return (parameters.scores @ Z.T).T

    def row_constant(self, Z: FloatArray, parameters: GaussianParameters) -> FloatArray:
        """-log det Sigma / 2 - x' Sigma^-1 x / 2, which all classes share, (m,)."""
        white = self._solve(parameters.covariances, Z[:, 1:])
        quadratic = np.einsum("ij,ij->i", Z[:, 1:], white)
        return -0.5 * (self._log_determinant(parameters.covariances) + quadratic)

    def is_valid(self, statistics: Statistics) -> BoolArray:
        """s0_k > 0, and the shared Sigma positive definite, shape (r,)."""
        present: BoolArray = statistics[0] > 0
        if not present.all():
            return present
        with np.errstate(all="ignore"):
            _, covariances = self._moments(statistics)
        return present & self._is_definite(covariances)

    def _moments(self, statistics: Statistics) -> tuple[FloatArray, FloatArray]:
        s0, s1 = statistics
        total, strength = s0.sum(), self._covariance_strength
        means = s1 / s0[:, np.newaxis]
        within = total * self.second_moment - self._between(s1, means)
        within += strength * self._unit_covariance
        return means, within / (strength + total)

    # What a diagonal covariance does differently: second moments, solves, checks.

    @staticmethod
    def _standardised(
        covariance: FloatArray, kept: IntArray, scale: FloatArray
    ) -> FloatArray:
        return covariance[np.ix_(kept, kept)] / np.outer(scale, scale)

    def _second_moments(self, Z: FloatArray, weight: FloatArray) -> FloatArray:
        sums = RawSums.from_soft(Z, weight[:, np.newaxis], np.zeros(Z.shape[1]))
        return sums.s2[0, 1:, 1:]

    def _between(self, s1: FloatArray, means: FloatArray) -> FloatArray:
        return s1.T @ means

    @property
    def _unit_covariance(self) -> FloatArray | float:
        return np.eye(len(self.kept))

    def _solve(self, covariance: FloatArray, rows: FloatArray) -> FloatArray:
        factor = cho_factor(covariance, lower=True, check_finite=False)
        solution: FloatArray = cho_solve(factor, rows.T, check_finite=False).T
        return solution

    def _log_determinant(self, covariance: FloatArray) -> float:
        return float(np.linalg.slogdet(covariance)[1])

    def _is_definite(self, covariance: FloatArray) -> bool:
        return bool(_are_positive_definite(covariance[np.newaxis])[0])


@dataclass(frozen=True)
class TiedDiagonalFamily(TiedFamily):
    """One variance per feature for all classes: the paper's logistic regression.

    Statistics s0 (r,), s1 (r, d), with the second moment v / M (d,) fixed.
    """

    structure: ClassVar[Structure] = "diagonal"
    covariance_name: ClassVar[str] = "variances_"

    @staticmethod
    def _standardised(
        covariance: FloatArray, kept: IntArray, scale: FloatArray
    ) -> FloatArray:
        return covariance[kept] / scale**2

    def _second_moments(self, Z: FloatArray, weight: FloatArray) -> FloatArray:
        return np.einsum("i,ij,ij->j", weight, Z[:, 1:], Z[:, 1:])

    def _between(self, s1: FloatArray, means: FloatArray) -> FloatArray:
        return (s1 * means).sum(axis=0)

    @property
    def _unit_covariance(self) -> float:
        return 1.0

    def _solve(self, covariance: FloatArray, rows: FloatArray) -> FloatArray:
        return rows / covariance

    def _log_determinant(self, covariance: FloatArray) -> float:
        return float(np.log(covariance).sum())

    def _is_definite(self, covariance: FloatArray) -> bool:
        return bool((covariance > _MARGIN).all())


def _are_positive_definite(covariances: FloatArray) -> BoolArray:
    """Which correlation matrices exceed the margin times the identity, (r,)."""
    variances = np.diagonal(covariances, axis1=1, axis2=2)
    definite = np.asarray((variances > _MARGIN).all(axis=1))  # also refuses NaN
    deviations = np.sqrt(variances[definite])
    products = deviations[:, :, np.newaxis] * deviations[:, np.newaxis]
    correlations = covariances[definite] / products
    correlations -= _MARGIN * np.eye(covariances.shape[1])
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
