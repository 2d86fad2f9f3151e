"""What the Gaussian families share: standardised rows, shrinkage, units, density.

All of them work on standardised rows Z = [1, (x - centre) / scale]: raw second
moments s2 / s0 - mu mu' of rows far from the origin would lose every digit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from prudent.calibration.families import (
    PriorStrengths,
    Statistics,
    shrunken_log_priors,
)
from prudent.calibration.spread import Spread, column_moments
from prudent.core.types import BoolArray, FloatArray, IntArray
from prudent.core.validation import Structure

#: Validity margin of variances and of the smallest eigenvalue of a correlation
#: matrix, on features of unit variance: below, s2 / s0 - mu mu' is rounding noise.
_MARGIN = 1e-9
ROWS_PER_BLOCK = 4096
#: In standard deviations; the squared distance of such a row is finite still.
_FARTHEST = 1e100


@dataclass(frozen=True, slots=True)
class Normals:
    """Shrunken parameters in standardised units, and what the scores need."""

    log_priors: FloatArray  # (r,)
    means: FloatArray  # (r, d)
    covariances: FloatArray  # (r, d, d), (d, d), or the variances (r, d) or (d,)
    scores: Any  # a `Whitening` for "full"; else coefficients of Z, (r, d + 1)


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
        for start in range(0, len(X), ROWS_PER_BLOCK):
            block = slice(start, start + ROWS_PER_BLOCK)
            rows = X[block].astype(np.float64)
            with np.errstate(over="ignore"):
                z = ((rows - self.centre)[:, self.kept]) / self.scale[self.kept]
            np.clip(z, -_FARTHEST, _FARTHEST, out=Z[block, 1:])
        if X.dtype.kind == "f" and np.isnan(Z.sum()):
            missing = np.isnan(Z[:, 1:])
            Z[:, 1:][missing] = 0.0
            return SeenRows(Z, (~missing).astype(np.float64))
        return SeenRows(Z, np.ones_like(Z[:, 1:])) if self.counts_cells else Z

    def statistics(self, rows: Standardised, Q: FloatArray) -> Statistics:
        """The family's statistics of the soft labels Q (m, r).

        With missing cells the counts (r, d) of those that are there come last.
        """
        if not isinstance(rows, SeenRows):
            return self._sums(rows, Q)
        if not self.counts_cells:
            raise ValueError(
                "X contains NaN, which earlier rows of the same fit did not: give "
                "`partial_fit` whole rows, or `fit` all of them."
            )
        return [*self._sums(rows.Z, Q), Q.T @ rows.seen]

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
            return present & (covariances > _MARGIN).all(axis=-1)
        matrices = covariances[np.newaxis] if self.tied else covariances
        return present & _are_positive_definite(matrices)

    def log_joint(self, rows: Standardised, parameters: Normals) -> FloatArray:
        """Log h(x, k) up to a constant of the row, shape (m, r)."""
        if isinstance(rows, SeenRows) and not self.is_diagonal:
            return self._by_pattern(
                rows, parameters, self._scores, parameters.log_priors
            )
        return self._scores(rows, parameters)

    def log_density(self, rows: Standardised, parameters: Normals) -> FloatArray:
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
        parameters: Normals,
        codes: IntArray,
        random: np.random.RandomState,
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
        return self._in_units(parameters.means[codes] + noise)

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
            "means_": self._in_units(parameters.means),
            "variances_" if self.is_diagonal else "covariances_": covariances,
        }

    def coefficients_in_units(
        self, scores: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Slopes (r, n_features) and intercepts (r,) behind coefficients of Z."""
        slopes = scores[:, 1:] / self.scale[self.kept]
        coefficients = np.zeros((len(scores), len(self.centre)))
        coefficients[:, self.kept] = slopes
        return coefficients, scores[:, 0] - slopes @ self.centre[self.kept]

    # What the families differ in.

    def _sums(self, Z: FloatArray, Q: FloatArray) -> Statistics:
        """Sums over rows [1, z] of the soft labels Q (m, r)."""
        raise NotImplementedError

    def _scores(self, rows: Any, parameters: Normals) -> FloatArray:
        """As `log_joint`; missing cells reach diagonal families only."""
        raise NotImplementedError

    def _moments(self, statistics: Statistics) -> tuple[FloatArray, FloatArray]:
        """Means (r, d) as they are, and shrunken covariances."""
        raise NotImplementedError

    def _with_scores(
        self, log_priors: FloatArray, means: FloatArray, covariances: FloatArray
    ) -> Normals:
        """Parameters with what the scores need."""
        raise NotImplementedError

    def _cells(self, statistics: Statistics) -> FloatArray:
        """Rows behind each mean: (r, d) with missing cells, else (r, 1)."""
        return statistics[-1] if self.counts_cells else statistics[0][:, np.newaxis]

    # What they share.

    def _means(self, s1: FloatArray, n: FloatArray) -> FloatArray:
        """Means; 0, the mean of all classes, where no cell was counted."""
        return s1 / (np.where(n == 0, 1.0, n) if self.counts_cells else n)

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

    def _in_units(self, Z: FloatArray) -> FloatArray:
        """Rows (n, n_features) in the units of X; the centre where nothing varies."""
        X = np.tile(self.centre, (len(Z), 1))
        X[:, self.kept] += self.scale[self.kept] * Z
        return X

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
        return strength * standardised(given, self.kept, self.scale[self.kept])


def linear_scores(constants: FloatArray, linear: FloatArray) -> FloatArray:
    """Coefficients (r, d + 1) of rows [1, z]."""
    return np.concatenate([constants[:, np.newaxis], linear], axis=1)


def standardised(
    covariance: FloatArray, kept: IntArray, scale: FloatArray
) -> FloatArray:
    """Matrix, or variances, of the features that vary in standardised units."""
    if covariance.ndim == 1:
        return covariance[kept] / scale**2
    return covariance[np.ix_(kept, kept)] / np.outer(scale, scale)


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
