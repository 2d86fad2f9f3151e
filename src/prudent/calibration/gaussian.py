"""Gaussian families: class means with full, diagonal or shared covariances.

All of them work on standardised rows Z = [1, (x - centre) / scale]: raw second
moments s2 / s0 - mu mu' of rows far from the origin would lose every digit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
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


@dataclass(frozen=True, slots=True, eq=False)
class SeenRows:
    """Standardised rows of which some cells are missing.

    Attributes
    ----------
    Z : ndarray of shape (m, d + 1)
        Rows [1, z], 0 in the missing cells.
    seen : ndarray of shape (m, d)
        1.0 for the cells that are there, else 0.0.
    """

    Z: FloatArray
    seen: FloatArray

    def __len__(self) -> int:
        return len(self.Z)

    def __getitem__(self, rows: Any) -> SeenRows:
        return SeenRows(self.Z[rows], self.seen[rows])


#: Rows as the Gaussian families take them.
Standardised = FloatArray | SeenRows


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
    counts_cells : bool, default=False
        Cells are missing among the rows it is made of: the last statistic (r, d)
        counts those that are there. Diagonal families only.
    """

    centre: FloatArray
    scale: FloatArray
    kept: IntArray
    strengths: PriorStrengths
    counts_cells: bool = False

    tied: ClassVar[bool] = False
    structure: ClassVar[Structure] = "diagonal"
    learns_missing: ClassVar[bool] = False
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
        kept = spread.varying
        return cls(spread.centre, spread.scale, kept, strengths, spread.has_missing)

    @property
    def constant_features(self) -> IntArray:
        """Features that do not vary and are ignored."""
        return np.setdiff1d(np.arange(len(self.centre)), self.kept)

    def prepare(self, X: NDArray[Any]) -> Standardised:
        """Rows [1, z] of the standardised features that vary, (m, d + 1)."""
        Z = np.empty((len(X), len(self.kept) + 1))
        Z[:, 0] = 1.0
        for start in range(0, len(X), _ROWS_PER_BLOCK):
            block = slice(start, start + _ROWS_PER_BLOCK)
            rows = X[block].astype(np.float64)
            with np.errstate(over="ignore"):
                z = ((rows - self.centre)[:, self.kept]) / self.scale[self.kept]
            np.clip(z, -_FARTHEST, _FARTHEST, out=Z[block, 1:])
        if X.dtype.kind == "f" and np.isnan(Z.sum()):
            missing = np.isnan(Z[:, 1:])
            Z[:, 1:][missing] = 0.0
            return SeenRows(Z, (~missing).astype(np.float64))
        return SeenRows(Z, np.ones_like(Z[:, 1:])) if self.counts_cells else Z

    def log_density(
        self, rows: Standardised, parameters: GaussianParameters
    ) -> FloatArray:
        """Log of the joint density of class and cells, in the units of X, (m, r)."""
        scores = self.log_joint(rows, parameters)
        if hasattr(self, "row_constant"):
            scores = scores + self.row_constant(rows, parameters)[:, np.newaxis]
        units = -0.5 * np.log(2 * np.pi) - np.log(self.scale[self.kept])
        if isinstance(rows, SeenRows):
            return scores + (rows.seen @ units)[:, np.newaxis]
        return scores + units.sum()

    def sample(
        self,
        parameters: GaussianParameters,
        codes: IntArray,
        random: np.random.RandomState,
    ) -> FloatArray:
        """A row of each of these classes, in the units of X."""
        noise = random.standard_normal((len(codes), len(self.kept)))
        covariances = parameters.covariances
        if self.covariance_name == "variances_":
            of_rows = covariances if self.tied else covariances[codes]
            noise *= np.sqrt(of_rows)
        elif len(self.kept):
            factors = np.linalg.cholesky(covariances)
            for k in np.unique(codes):
                own = codes == k
                noise[own] = noise[own] @ (factors if self.tied else factors[k]).T
        X = np.tile(self.centre, (len(codes), 1))
        X[:, self.kept] += self.scale[self.kept] * (parameters.means[codes] + noise)
        return X

    def log_joint(
        self, rows: Standardised, parameters: GaussianParameters
    ) -> FloatArray:
        """Log h(x, k) up to a constant of the row, shape (m, r)."""
        raise NotImplementedError

    def _by_pattern(
        self,
        rows: SeenRows,
        parameters: GaussianParameters,
        scored: Callable[..., Any],
        of_no_cell: FloatArray,
    ) -> FloatArray:
        """Scores (m, r) from the marginal laws of the cells that are there.

        `scored` gives the scores of whole rows from means and covariances,
        `of_no_cell` (r,) are those of a row without any.
        """
        scores = np.tile(of_no_cell, (len(rows), 1))
        patterns, which = np.unique(rows.seen, axis=0, return_inverse=True)
        for i, pattern in enumerate(patterns):
            there = np.flatnonzero(pattern)
            if len(there):
                chosen = np.flatnonzero(which.ravel() == i)
                scores[chosen] = scored(
                    rows.Z[np.ix_(chosen, np.append(0, there + 1))],
                    parameters.log_priors,
                    parameters.means[:, there],
                    parameters.covariances[..., there[:, np.newaxis], there],
                )
        return scores

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

    def _shrunken_means(self, n: FloatArray, means: FloatArray) -> FloatArray:
        # mu'_k = (m1 mu0 + n_k mu_k) / (m1 + n_k), mu0 = 0 unless given
        strength = self.strengths.means
        shrunken = means * (n / (strength + n))
        if self.strengths.mean is None:
            return shrunken
        gap = self.strengths.mean - self.centre
        towards = gap[self.kept] / self.scale[self.kept]
        return shrunken + towards * (strength / (strength + n))

    @property
    def _prior_variances(self) -> FloatArray | float:
        """Sigma_0 of the diagonal families in standardised units, 1 unless given."""
        given = self.strengths.covariance
        if given is None:
            return 1.0
        variances = given if given.ndim == 1 else given.diagonal()
        return variances[self.kept] / self.scale[self.kept] ** 2

    @property
    def _prior_covariance(self) -> FloatArray:
        """Sigma_0 in standardised units, the identity unless given."""
        given = self.strengths.covariance
        if given is None:
            return np.eye(len(self.kept))
        matrix = np.diag(given) if given.ndim == 1 else given
        scale = self.scale[self.kept]
        return matrix[np.ix_(self.kept, self.kept)] / np.outer(scale, scale)

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
        means = self._shrunken_means(statistics[0][:, np.newaxis], means)
        whitening = Whitening.from_cholesky(means, np.linalg.cholesky(covariances))
        return GaussianParameters(
            self._log_priors(statistics[0]), means, covariances, whitening
        )

    def log_joint(
        self, rows: Standardised, parameters: GaussianParameters
    ) -> FloatArray:
        """Log p_k - log det Sigma_k / 2 - squared distance / 2, shape (m, r)."""
        if isinstance(rows, SeenRows):
            return self._by_pattern(
                rows, parameters, self._marginal_scores, parameters.log_priors
            )
        return self._scores(rows, parameters.log_priors, parameters.scores)

    @staticmethod
    def _scores(
        Z: FloatArray, log_priors: FloatArray, whitening: Whitening
    ) -> FloatArray:
        scores = squared_distances(Z, whitening)
        scores *= -0.5
        constants = log_priors - 0.5 * whitening.log_determinants
        scores += constants[:, np.newaxis]
        return scores.T

    def _marginal_scores(
        self,
        Z: FloatArray,
        log_priors: FloatArray,
        means: FloatArray,
        covariances: FloatArray,
    ) -> FloatArray:
        whitening = Whitening.from_cholesky(means, np.linalg.cholesky(covariances))
        return self._scores(Z, log_priors, whitening)

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
        covariances += strength * self._prior_covariance
        return means, covariances / (strength + s0)[:, np.newaxis, np.newaxis]


class CellCounts:
    """What families of independent features do with missing cells: count the rest."""

    learns_missing: ClassVar[bool] = True
    counts_cells: bool

    def _cell_counts(self, rows: Standardised, Q: FloatArray) -> Statistics:
        """Counts (r, d) of the cells that are there, if any cell is missing at all."""
        if not isinstance(rows, SeenRows):
            return []
        if not self.counts_cells:
            raise ValueError(
                "X contains NaN, which earlier rows of the same fit did not: give "
                "`partial_fit` whole rows, or `fit` all of them."
            )
        return [Q.T @ rows.seen]

    def _cells(self, statistics: Statistics) -> FloatArray:
        """Rows behind each mean: (r, d) with missing cells, else (r, 1)."""
        return statistics[-1] if self.counts_cells else statistics[0][:, np.newaxis]


@dataclass(frozen=True)
class DiagonalFamily(CellCounts, GaussianFamily):
    """One variance per class and feature: Gaussian naive Bayes.

    Statistics s0 (r,), s1 (r, d), s2 (r, d) of 1, x and x^2.
    """

    covariance_name: ClassVar[str] = "variances_"

    def statistics(self, rows: Standardised, Q: FloatArray) -> Statistics:
        """s0, s1, s2 of the soft labels Q (m, r), with missing cells their counts."""
        Z = rows.Z if isinstance(rows, SeenRows) else rows
        first = Q.T @ Z
        second = np.zeros((Q.shape[1], Z.shape[1] - 1))
        for start in range(0, len(Z), _ROWS_PER_BLOCK):
            block = slice(start, start + _ROWS_PER_BLOCK)
            second += Q.T[:, block] @ np.square(Z[block, 1:])
        return [first[:, 0], first[:, 1:], second, *self._cell_counts(rows, Q)]

    def parameters(self, statistics: Statistics) -> GaussianParameters:
        """Means and variances sigma^2_kj = s2_kj / n_kj - mu_kj^2."""
        means, variances = self._moments(statistics)
        means = self._shrunken_means(self._cells(statistics), means)
        log_priors = self._log_priors(statistics[0])
        # log p_k - sum_j (log sigma^2 + (x - mu)^2 / sigma^2) / 2, expanded in x
        linear = means / variances
        constants = log_priors - 0.5 * (np.log(variances) + means * linear).sum(axis=1)
        scores = np.concatenate([constants[:, np.newaxis], linear], axis=1)
        return GaussianParameters(log_priors, means, variances, scores)

    def log_joint(
        self, rows: Standardised, parameters: GaussianParameters
    ) -> FloatArray:
        """Log density of independent normal features plus log p_k, shape (m, r)."""
        curvatures = -0.5 / parameters.covariances
        if isinstance(rows, SeenRows):
            Z, linear = rows.Z, parameters.scores[:, 1:]
            constants = np.log(parameters.covariances) + parameters.means * linear
            scores = -0.5 * constants @ rows.seen.T + linear @ Z[:, 1:].T
            scores += parameters.log_priors[:, np.newaxis]
        else:
            Z = rows
            scores = parameters.scores @ Z.T
        for start in range(0, len(Z), _ROWS_PER_BLOCK):
            block = slice(start, start + _ROWS_PER_BLOCK)
            scores[:, block] += curvatures @ np.square(Z[block, 1:]).T
        return scores.T

    def is_valid(self, statistics: Statistics) -> BoolArray:
        """s0_k > 0 and every variance above the margin, shape (r,)."""
        with np.errstate(all="ignore"):
            _, variances = self._moments(statistics)
        valid = (statistics[0] > 0) & (variances > _MARGIN).all(axis=1)
        return valid & (self._cells(statistics) >= 0).all(axis=1)

    def _moments(self, statistics: Statistics) -> tuple[FloatArray, FloatArray]:
        _, s1, s2, *_ = statistics
        n, strength = self._cells(statistics), self._covariance_strength
        means = _ratio(s1, n)
        variances = strength * self._prior_variances + s2 - s1 * means
        return means, variances / (strength + n)


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
    covariance_name: ClassVar[str] = "covariances_"

    @classmethod
    def from_spread(cls, spread: Spread, strengths: PriorStrengths) -> Self:
        """Family standardised by the rows behind `spread`."""
        kept, scale = spread.varying, spread.scale
        second = cls._standardised(spread.covariance, kept, scale[kept])
        return cls(
            spread.centre,
            scale,
            kept,
            strengths,
            spread.has_missing,
            second,
            spread.total,
        )

    def with_rows(self, Z: Standardised, weight: FloatArray) -> Self:
        """Same standardisation, with these rows added to the second moment."""
        if isinstance(Z, SeenRows):
            raise ValueError(
                "X contains NaN: give `partial_fit` whole rows, or `fit` all of them."
            )
        total = self.total + weight.sum()
        second = self._second_moments(Z, weight)
        if self.total:
            second = second + self.total * self.second_moment
        return replace(self, second_moment=second / total, total=total)

    def statistics(self, rows: Standardised, Q: FloatArray) -> Statistics:
        """s0, s1 of the soft labels Q (m, r)."""
        assert not isinstance(rows, SeenRows)
        first = Q.T @ rows
        return [first[:, 0], first[:, 1:]]

    def parameters(self, statistics: Statistics) -> GaussianParameters:
        """Means and Sigma = v / M - sum_k p_k mu_k mu_k'."""
        means, covariances = self._moments(statistics)
        means = self._shrunken_means(self._cells(statistics), means)
        log_priors = self._log_priors(statistics[0])
        scores = self._coefficients(log_priors, means, covariances)
        return GaussianParameters(log_priors, means, covariances, scores)

    def log_joint(
        self, rows: Standardised, parameters: GaussianParameters
    ) -> FloatArray:
        """Log p_k + mu_k' Sigma^-1 x - mu_k' Sigma^-1 mu_k / 2, shape (m, r)."""
        if isinstance(rows, SeenRows):
            return self._by_pattern(
                rows, parameters, self._marginal_scores, parameters.log_priors
            )
        return (parameters.scores @ rows.T).T

    def row_constant(
        self, rows: Standardised, parameters: GaussianParameters
    ) -> FloatArray:
        """-log det Sigma / 2 - x' Sigma^-1 x / 2, which all classes share, (m,)."""
        if isinstance(rows, SeenRows):
            nothing = np.zeros(len(parameters.log_priors))
            return self._by_pattern(
                rows, parameters, self._marginal_constants, nothing
            )[:, 0]
        white = self._solve(parameters.covariances, rows[:, 1:])
        quadratic = np.einsum("ij,ij->i", rows[:, 1:], white)
        return -0.5 * (self._log_determinant(parameters.covariances) + quadratic)

    def coefficients(
        self, parameters: GaussianParameters
    ) -> tuple[FloatArray, FloatArray]:
        """Coefficients (r, d) and intercepts (r,) of the log joint in units of X."""
        return in_units(self, parameters.scores)

    def is_valid(self, statistics: Statistics) -> BoolArray:
        """s0_k > 0, and the shared Sigma positive definite, shape (r,)."""
        present: BoolArray = statistics[0] > 0
        present = present & (self._cells(statistics) >= 0).all(axis=1)
        if not present.all():
            return present
        with np.errstate(all="ignore"):
            _, covariances = self._moments(statistics)
        return present & self._is_definite(covariances)

    def _moments(self, statistics: Statistics) -> tuple[FloatArray, FloatArray]:
        s0, s1 = statistics[:2]
        total, strength = s0.sum(), self._covariance_strength
        means = s1 / s0[:, np.newaxis]
        within = total * self.second_moment - s1.T @ means
        within += strength * self._prior_covariance
        return means, within / (strength + total)

    def _coefficients(
        self, log_priors: FloatArray, means: FloatArray, covariance: FloatArray
    ) -> FloatArray:
        linear = self._solve(covariance, means)
        constants = log_priors - 0.5 * (means * linear).sum(axis=1)
        return np.concatenate([constants[:, np.newaxis], linear], axis=1)

    def _marginal_scores(
        self,
        Z: FloatArray,
        log_priors: FloatArray,
        means: FloatArray,
        covariance: FloatArray,
    ) -> FloatArray:
        return Z @ self._coefficients(log_priors, means, covariance).T

    def _marginal_constants(
        self, Z: FloatArray, _: FloatArray, means: FloatArray, covariance: FloatArray
    ) -> FloatArray:
        quadratic = np.einsum("ij,ij->i", Z[:, 1:], self._solve(covariance, Z[:, 1:]))
        constants = -0.5 * (self._log_determinant(covariance) + quadratic)
        return np.tile(constants[:, np.newaxis], (1, len(means)))

    def _cells(self, statistics: Statistics) -> FloatArray:
        return statistics[0][:, np.newaxis]

    # What a diagonal covariance does differently: second moments, solves, checks.

    @staticmethod
    def _standardised(
        covariance: FloatArray, kept: IntArray, scale: FloatArray
    ) -> FloatArray:
        return covariance[np.ix_(kept, kept)] / np.outer(scale, scale)

    def _second_moments(self, Z: FloatArray, weight: FloatArray) -> FloatArray:
        sums = RawSums.from_soft(Z, weight[:, np.newaxis], np.zeros(Z.shape[1]))
        return sums.s2[0, 1:, 1:]

    def _solve(self, covariance: FloatArray, rows: FloatArray) -> FloatArray:
        factor = cho_factor(covariance, lower=True, check_finite=False)
        solution: FloatArray = cho_solve(factor, rows.T, check_finite=False).T
        return solution

    def _log_determinant(self, covariance: FloatArray) -> float:
        return float(np.linalg.slogdet(covariance)[1])

    def _is_definite(self, covariance: FloatArray) -> bool:
        return bool(_are_positive_definite(covariance[np.newaxis])[0])


@dataclass(frozen=True)
class TiedDiagonalFamily(CellCounts, TiedFamily):
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

    def statistics(self, rows: Standardised, Q: FloatArray) -> Statistics:
        """s0, s1 of the soft labels Q (m, r), with missing cells their counts."""
        first = Q.T @ (rows.Z if isinstance(rows, SeenRows) else rows)
        return [first[:, 0], first[:, 1:], *self._cell_counts(rows, Q)]

    def log_joint(
        self, rows: Standardised, parameters: GaussianParameters
    ) -> FloatArray:
        """As `TiedFamily.log_joint`, over the cells that are there."""
        if not isinstance(rows, SeenRows):
            return super().log_joint(rows, parameters)
        linear = parameters.scores[:, 1:]
        scores = rows.Z[:, 1:] @ linear.T
        scores -= 0.5 * rows.seen @ (parameters.means * linear).T
        return scores + parameters.log_priors

    def row_constant(
        self, rows: Standardised, parameters: GaussianParameters
    ) -> FloatArray:
        """As `TiedFamily.row_constant`, over the cells that are there."""
        if not isinstance(rows, SeenRows):
            return super().row_constant(rows, parameters)
        variances = parameters.covariances
        quadratic = np.square(rows.Z[:, 1:]) @ (1 / variances)
        return -0.5 * (rows.seen @ np.log(variances) + quadratic)

    def _moments(self, statistics: Statistics) -> tuple[FloatArray, FloatArray]:
        s1, n = statistics[1], self._cells(statistics)
        total, strength = n.sum(axis=0), self._covariance_strength
        means = _ratio(s1, n)
        within = total * self.second_moment - (s1 * means).sum(axis=0)
        within += strength * self._prior_variances
        return means, within / (strength + total)

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


def _ratio(sums: FloatArray, counts: FloatArray) -> FloatArray:
    """Means; 0, the mean of all classes, where nothing was counted."""
    return sums / np.where(counts == 0, 1.0, counts)


def in_units(
    family: GaussianFamily, scores: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Coefficients and intercepts in the units of X of scores (r, d + 1) of Z."""
    slopes = scores[:, 1:] / family.scale[family.kept]
    coefficients = np.zeros((len(scores), len(family.centre)))
    coefficients[:, family.kept] = slopes
    return coefficients, scores[:, 0] - slopes @ family.centre[family.kept]
