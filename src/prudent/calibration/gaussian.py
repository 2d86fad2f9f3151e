"""Gaussian families: a covariance for each class or for all, full or diagonal."""

from __future__ import annotations

from collections.abc import Callable
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
from prudent.calibration.standardisation import (
    SeenRows,
    Standardisation,
    Standardised,
    row_blocks,
    values_of,
)
from prudent.calibration.whitening import (
    MARGIN,
    Whitening,
    are_positive_definite,
    squared_distances,
)
from prudent.core.moments import RawMoments
from prudent.core.types import BoolArray, FloatArray, IntArray
from prudent.core.validation import Structure

#: |W_ik| up to this share of the largest weight moves no statistic visibly.
_NEGLIGIBLE = 1e-10


@dataclass(frozen=True, slots=True)
class Normals:
    """Shrunken parameters in standardised units, and what the scores need."""

    log_priors: FloatArray  # (r,)
    means: FloatArray  # (r, d)
    covariances: FloatArray  # (r, d, d), (d, d), or the variances (r, d) or (d,)
    scores: Any  # a `Whitening` for "full"; else coefficients of Z, (r, d + 1)


@dataclass(frozen=True)
class GaussianFamily(Standardisation):
    """A shape of covariances: of each class or `tied`, full or `is_diagonal`.

    Statistics s0 (r,), s1 (r, d) of 1 and x; unless tied also s2 of xx' (r, d, d) or
    x^2 (r, d); with missing cells the counts (r, d) of those that are there come last,
    in diagonal families only.
    """

    strengths: PriorStrengths
    counts_cells: bool = False  # some are missing among the rows it is made of
    #: Of a tied family v / M, (d, d) or (d,), of all rows of weight M = `total`: no
    #: label changes it, so that the calibration never moves it.
    second_moment: FloatArray | None = None
    total: float = 0.0

    tied: ClassVar[bool] = False
    is_diagonal: ClassVar[bool] = False
    #: Of the moments of all rows together that the family is made of.
    structure: ClassVar[Structure] = "diagonal"
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
        centre, scale, kept = spread.centre, spread.scale, spread.varying
        family = cls(centre, scale, kept, strengths, spread.has_missing)
        if not cls.tied:
            return family
        second = family.covariance(spread.covariance)
        return replace(family, second_moment=second, total=spread.total)

    def with_rows(self, rows: Standardised, weight: FloatArray) -> Self:
        """Same standardisation, with these rows added to a tied second moment."""
        if self.second_moment is None:
            return self
        if isinstance(rows, SeenRows):
            raise ValueError(
                "X contains NaN: give `partial_fit` whole rows, or `fit` all of them."
            )
        total = self.total + weight.sum()
        if self.is_diagonal:
            second = np.einsum("i,ij,ij->j", weight, rows[:, 1:], rows[:, 1:])
        else:
            origin = np.zeros(rows.shape[1])
            sums = RawMoments.from_soft(rows, weight[:, np.newaxis], origin)
            second = sums.s2[0, 1:, 1:]
        if self.total:
            second = second + self.total * self.second_moment
        return replace(self, second_moment=second / total, total=total)

    def prepare(self, X: NDArray[Any]) -> Standardised:
        """Standardised rows, with missing cells in all where they are counted."""
        rows = self.rows(X)
        if isinstance(rows, SeenRows) or not self.counts_cells:
            return rows
        return SeenRows(rows, np.ones_like(rows[:, 1:]))

    def statistics(self, rows: Standardised, Q: FloatArray) -> Statistics:
        """The family's statistics of the soft labels Q (m, r)."""
        if isinstance(rows, SeenRows) and not self.counts_cells:
            raise ValueError(
                "X contains NaN, which earlier rows of the same fit did not: give "
                "`partial_fit` whole rows, or `fit` all of them."
            )
        Z = values_of(rows)
        if self._is_full:
            origin = np.zeros(Z.shape[1])
            s2 = RawMoments.from_soft(Z, Q, origin, negligible=_NEGLIGIBLE).s2
            # The column of ones: s0 and s1 leave out the same rows as s2.
            return [s2[:, 0, 0], s2[:, 0, 1:], s2[:, 1:, 1:]]
        first = Q.T @ Z
        found = [first[:, 0], first[:, 1:]]
        if not self.tied:
            second = np.zeros((Q.shape[1], Z.shape[1] - 1))
            for block in row_blocks(len(Z)):
                second += Q.T[:, block] @ np.square(Z[block, 1:])
            found.append(second)
        return [*found, Q.T @ rows.seen] if isinstance(rows, SeenRows) else found

    def parameters(self, statistics: Statistics) -> Normals:
        """Shrunken means and covariances in closed form."""
        means, covariances = self._moments(statistics)
        means = self._shrunken_means(self._cells(statistics), means)
        log_priors = shrunken_log_priors(statistics[0], self.strengths.classes)
        return self._with_scores(log_priors, means, covariances)

    def is_valid(self, statistics: Statistics) -> BoolArray:
        """s0_k > 0 and Sigma'_k positive definite, shape (r,)."""
        present: BoolArray = statistics[0] > 0
        if self.counts_cells:
            present = present & (self._cells(statistics) >= 0).all(axis=1)
        if self.tied and not present.all():
            return present
        with np.errstate(all="ignore"):
            _, covariances = self._moments(statistics)
        if self.is_diagonal:
            return present & (covariances > MARGIN).all(axis=-1)
        matrices = covariances[np.newaxis] if self.tied else covariances
        return present & are_positive_definite(matrices)

    def log_joint(self, rows: Standardised, parameters: Normals) -> FloatArray:
        """Log h(x, k) up to a constant of the row, shape (m, r).

        log p_k - log det Sigma_k / 2 - (x - mu_k)' Sigma_k^-1 (x - mu_k) / 2; tied
        families leave out the terms that all classes share: see `row_constant`.
        """
        if isinstance(rows, SeenRows) and not self.is_diagonal:
            return self._by_pattern(
                rows, parameters, self.log_joint, parameters.log_priors
            )
        Z, covariances = values_of(rows), parameters.covariances
        if self._is_full:
            scores = squared_distances(Z, parameters.scores)
            scores *= -0.5
            logs = parameters.scores.log_determinants
            scores += (parameters.log_priors - 0.5 * logs)[:, np.newaxis]
            return scores.T
        if isinstance(rows, SeenRows):
            linear = parameters.scores[:, 1:]
            constants = parameters.means * linear
            if not self.tied:
                constants += np.log(covariances)
            scores = -0.5 * constants @ rows.seen.T + linear @ Z[:, 1:].T
            scores += parameters.log_priors[:, np.newaxis]
        else:
            scores = parameters.scores @ Z.T
        if not self.tied:
            curvatures = -0.5 / covariances
            for block in row_blocks(len(Z)):
                scores[:, block] += curvatures @ np.square(Z[block, 1:]).T
        return scores.T

    def row_constant(self, rows: Standardised, parameters: Normals) -> FloatArray:
        """-log det Sigma / 2 - x' Sigma^-1 x / 2, which tied classes share, (m,)."""
        if not self.tied:
            return np.zeros(len(rows))
        covariance = parameters.covariances
        if isinstance(rows, SeenRows) and not self.is_diagonal:

            def scored(Z: FloatArray, marginal: Normals) -> FloatArray:
                return self.row_constant(Z, marginal)[:, np.newaxis]

            return self._by_pattern(rows, parameters, scored, np.zeros(1))[:, 0]
        if self.is_diagonal:
            logs = np.log(covariance)
            logs = rows.seen @ logs if isinstance(rows, SeenRows) else logs.sum()
        else:
            logs = np.linalg.slogdet(covariance)[1]
        Z = values_of(rows)[:, 1:]
        quadratic = np.einsum("ij,ij->i", Z, self._solved(covariance, Z))
        return -0.5 * (logs + quadratic)

    def log_density(self, rows: Standardised, parameters: Normals) -> FloatArray:
        """Log of the joint density of class and cells, in the units of X, (m, r)."""
        scores = self.log_joint(rows, parameters)
        scores = scores + self.row_constant(rows, parameters)[:, np.newaxis]
        units = -0.5 * np.log(2 * np.pi) - np.log(self.scale[self.kept])
        if isinstance(rows, SeenRows):
            return scores + (rows.seen @ units)[:, np.newaxis]
        return scores + units.sum()

    def sample(
        self, parameters: Normals, codes: IntArray, random: np.random.RandomState
    ) -> FloatArray:
        """A row of each of these classes, in the units of X."""
        noise = random.standard_normal((len(codes), len(self.kept)))
        covariances = parameters.covariances
        if self.is_diagonal:
            noise *= np.sqrt(covariances if self.tied else covariances[codes])
        elif len(self.kept):
            factors = np.linalg.cholesky(covariances)
            for k in np.unique(codes):
                own = codes == k
                noise[own] = noise[own] @ (factors if self.tied else factors[k]).T
        return self.in_units(parameters.means[codes] + noise)

    def learned(self, parameters: Normals) -> dict[str, FloatArray]:
        """Parameters in the units of X, by the name of the fitted attribute."""
        d, scale = len(self.centre), self.scale[self.kept]
        standardised = parameters.covariances
        # Features are the last one or two axes; a constant feature has variance 0.
        if self.is_diagonal:
            covariances = np.zeros((*standardised.shape[:-1], d))
            covariances[..., self.kept] = standardised * scale**2
        else:
            covariances = np.zeros((*standardised.shape[:-2], d, d))
            place = (..., self.kept[:, np.newaxis], self.kept)
            covariances[place] = standardised * np.outer(scale, scale)
        return {
            "priors_": np.exp(parameters.log_priors),
            "means_": self.in_units(parameters.means),
            "variances_" if self.is_diagonal else "covariances_": covariances,
        }

    @property
    def _is_full(self) -> bool:
        return not (self.tied or self.is_diagonal)

    def _cells(self, statistics: Statistics) -> FloatArray:
        """Rows behind each mean: (r, d) with missing cells, else (r, 1)."""
        return statistics[-1] if self.counts_cells else statistics[0][:, np.newaxis]

    def _moments(self, statistics: Statistics) -> tuple[FloatArray, FloatArray]:
        """Means (r, d) as they are, and shrunken covariances.

        Sigma_k = s2_k / s0_k - mu_k mu_k', tied Sigma = v / M - sum_k p_k mu_k mu_k'.
        """
        s1, n, prior = statistics[1], self._cells(statistics), self._prior_scatter
        # 0, the mean of all classes, where no cell was counted.
        means = s1 / (np.where(n == 0, 1.0, n) if self.counts_cells else n)
        if self.second_moment is not None:
            n = n.sum(axis=0)
            own = (s1 * means).sum(axis=0) if self.is_diagonal else s1.T @ means
            scatter = n * self.second_moment - own + prior
        elif self.is_diagonal:
            scatter = prior + statistics[2] - s1 * means
        else:
            scatter = statistics[2] - s1[:, :, np.newaxis] * means[:, np.newaxis]
            scatter += prior
            n = n[:, :, np.newaxis]
        return means, scatter / (self._covariance_strength + n)

    def _with_scores(
        self, log_priors: FloatArray, means: FloatArray, covariances: FloatArray
    ) -> Normals:
        """Parameters with what the scores need."""
        if self._is_full:
            whitening = Whitening.from_cholesky(means, np.linalg.cholesky(covariances))
            return Normals(log_priors, means, covariances, whitening)
        linear = self._solved(covariances, means)
        constants = means * linear
        if not self.tied:
            constants += np.log(covariances)
        intercepts = log_priors - 0.5 * constants.sum(axis=1)
        scores = np.concatenate([intercepts[:, np.newaxis], linear], axis=1)
        return Normals(log_priors, means, covariances, scores)

    def _solved(self, covariance: FloatArray, rows: FloatArray) -> FloatArray:
        """Rows times the inverse of a tied matrix, or of variances."""
        if self.is_diagonal:
            return rows / covariance
        factor = cho_factor(covariance, lower=True, check_finite=False)
        solution: FloatArray = cho_solve(factor, rows.T, check_finite=False).T
        return solution

    def _by_pattern(
        self,
        rows: SeenRows,
        parameters: Normals,
        scored: Callable[[FloatArray, Normals], FloatArray],
        of_no_cell: FloatArray,
    ) -> FloatArray:
        """Scores (m, n) by the marginal laws of the cells that are there.

        `scored` gives those of whole rows, `of_no_cell` (n,) are those without any.
        """
        scores = np.tile(of_no_cell, (len(rows), 1))
        patterns, which = np.unique(rows.seen, axis=0, return_inverse=True)
        for i, pattern in enumerate(patterns):
            there = np.flatnonzero(pattern)
            if len(there):
                chosen = np.flatnonzero(which.ravel() == i)
                marginal = self._with_scores(
                    parameters.log_priors,
                    parameters.means[:, there],
                    parameters.covariances[..., there[:, np.newaxis], there],
                )
                cells = rows.Z[np.ix_(chosen, np.append(0, there + 1))]
                scores[chosen] = scored(cells, marginal)
        return scores

    def _shrunken_means(self, n: FloatArray, means: FloatArray) -> FloatArray:
        # mu'_k = (m1 mu0 + n_k mu_k) / (m1 + n_k), mu0 = 0 unless given
        strength = self.strengths.means
        if not strength:
            return means
        shrunken = means * (n / (strength + n))
        if self.strengths.mean is None:
            return shrunken
        gap = self.strengths.mean - self.centre
        towards = gap[self.kept] / self.scale[self.kept]
        return shrunken + towards * (strength / (strength + n))

    @property
    def _covariance_strength(self) -> float:
        """m2."""
        if self.strengths.covariances is None:
            return 1.0 + self.strength_per_feature * len(self.kept)
        return self.strengths.covariances

    @property
    def _prior_scatter(self) -> FloatArray | float:
        """m2 Sigma_0 in standardised units, Sigma_0 the identity unless given."""
        strength, given = self._covariance_strength, self.strengths.covariance
        if given is None:
            return strength if self.is_diagonal else strength * np.eye(len(self.kept))
        if self.is_diagonal != (given.ndim == 1):
            given = given.diagonal() if self.is_diagonal else np.diag(given)
        return strength * self.covariance(given)


@dataclass(frozen=True)
class FullFamily(GaussianFamily):
    """One covariance matrix per class: quadratic discriminant analysis."""

    strength_per_feature: ClassVar[float] = 0.1


@dataclass(frozen=True)
class TiedFamily(GaussianFamily):
    """One covariance matrix for all classes: linear discriminant analysis."""

    tied: ClassVar[bool] = True
    structure: ClassVar[Structure] = "full"

    def coefficients(self, parameters: Normals) -> tuple[FloatArray, FloatArray]:
        """Coefficients (r, d) and intercepts (r,) of the log joint in units of X."""
        return self.coefficients_in_units(parameters.scores)


@dataclass(frozen=True)
class DiagonalFamily(GaussianFamily):
    """One variance per class and feature: Gaussian naive Bayes."""

    is_diagonal: ClassVar[bool] = True


@dataclass(frozen=True)
class TiedDiagonalFamily(TiedFamily):
    """One variance per feature for all classes: the paper's logistic regression."""

    is_diagonal: ClassVar[bool] = True
    structure: ClassVar[Structure] = "diagonal"
