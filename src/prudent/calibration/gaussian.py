"""Gaussian families: a covariance for each class or for all, full or diagonal.

Rows are taken in units of their spread, Z = [1, (x - centre) / scale]: raw second
moments s2 / s0 - mu mu' of rows far from the origin would lose every digit. In this
order: the spread of columns, standardised rows, squared distances to all classes at
once, the families, and softmax regression on the rows of one of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.lapack import dtrtri

from prudent.calibration.families import (
    PriorStrengths,
    Statistics,
    shrunken_log_priors,
)
from prudent.core.classes import FARTHEST, TINY_VARIATION, restrict
from prudent.core.moments import ClassMoments, RawMoments
from prudent.core.statistics import check_values
from prudent.core.types import BoolArray, FloatArray, IntArray
from prudent.core.validation import Structure

# --- standardised rows ----------------------------------------------------------------

_ROWS_PER_BLOCK = 4096


@dataclass(frozen=True, slots=True, eq=False)
class SeenRows:
    """Standardised rows of which some cells are missing.

    It indexes like an array of rows.
    """

    Z: FloatArray  # (m, d + 1), rows [1, z], 0 in the missing cells
    seen: FloatArray  # (m, d), 1.0 for the cells that are there, else 0.0

    def __len__(self) -> int:
        return len(self.Z)

    def __getitem__(self, rows: Any) -> SeenRows:
        return SeenRows(self.Z[rows], self.seen[rows])


#: Rows as the Gaussian families take them.
Standardised = FloatArray | SeenRows


def values_of(rows: Standardised) -> FloatArray:
    """Rows [1, z], with 0 in the missing cells."""
    return rows.Z if isinstance(rows, SeenRows) else rows


def row_blocks(n_rows: int) -> Iterator[slice]:
    """Slices of a few thousand rows each that together cover all, in order."""
    for start in range(0, n_rows, _ROWS_PER_BLOCK):
        yield slice(start, start + _ROWS_PER_BLOCK)


# --- the spread of columns, from the moments of the cells that are there --------------


#: A column that varies by a smaller share of its mean varies by rounding.
ROUNDING = 1e-12
#: Its square is a normal number still, of about 1e-306.
_LEAST_SCALE = 1e-153

#: Moments of all columns at once or, where cells are missing, of each by itself.
ColumnMoments = list[ClassMoments]


def centre_and_covariance(moments: ColumnMoments) -> tuple[FloatArray, FloatArray]:
    """Mean (d,) and covariance (d, d), or variances (d,), of all rows together.

    Classes play no part in it. Where cells are missing, each column is described by the
    cells that are there; the denominator is their weight.
    """
    centre = np.concatenate([(m.mean + m.mean_lo)[0] for m in moments])
    if len(moments) == 1:
        return centre, moments[0].scatter[0] / moments[0].weight[0]
    # A column without any cell has variance 0, and takes no part.
    variances = [m.scatter.ravel() / max(m.weight[0], 1e-300) for m in moments]
    return centre, np.concatenate(variances)


def deviations(covariance: FloatArray) -> FloatArray:
    """Standard deviations (d,) of a covariance (d, d), or of variances (d,)."""
    return np.sqrt(covariance if covariance.ndim == 1 else covariance.diagonal())


def check_ends(moments: ColumnMoments, ends: FloatArray) -> None:
    """Refuse columns that vary, but by less than a square can show.

    `ends` (n_blocks, 2, d) are those of `ends_of_tiny_columns` in every block.
    """
    centre, covariance = centre_and_covariance(moments)
    widths = np.fmax.reduce(ends[:, 1]) - np.fmin.reduce(ends[:, 0])
    for j in np.flatnonzero(deviations(covariance) < _LEAST_SCALE):
        if widths[j] > ROUNDING * abs(centre[j]):
            raise ValueError(
                f"column {j} varies by {widths[j]:.3g} only, whose square underflows: "
                "multiply the column by a constant."
            )


def ends_of_tiny_columns(X: NDArray[Any], moments: ColumnMoments) -> FloatArray:
    """Least and largest value (2, d) of columns that look constant, NaN for others.

    Squares of the spread of such a column may have underflowed in its moments.
    """
    ends = np.full((2, X.shape[1]), np.nan)
    variation = np.concatenate([m.variation[0] for m in moments])
    tiny = np.flatnonzero(variation < TINY_VARIATION)
    if len(tiny):
        columns = X[:, tiny].astype(np.float64)
        ends[:, tiny] = np.fmin.reduce(columns), np.fmax.reduce(columns)
    return ends


def column_moments(
    X: NDArray[Any],
    weight: FloatArray,
    structure: Structure,
    *,
    learns_missing: bool = True,
) -> ColumnMoments:
    """Moments of the columns of a block of rows, all classes together.

    Parameters
    ----------
    X : ndarray of shape (m, d)
        Missing cells (NaN) count for nothing.
    weight : ndarray of shape (m,)
    structure : {"full", "diagonal"}
        Whether covariances or only variances are wanted.
    learns_missing : bool
        Whether missing cells may be left out of the fit.

    Returns
    -------
    list of ClassMoments
        One entry for all columns where no cell is missing, else one for each.

    Raises
    ------
    ValueError
        If a cell is missing and may not be left out.
    """
    if not X.shape[1]:
        return [ClassMoments.empty([0], 0, structure=structure)]
    if X.dtype.kind != "f" or not np.isnan(X.sum(dtype=np.float64)):
        return [_moments(X, weight, structure)]
    missing = np.isnan(X)
    if not learns_missing or structure == "full":
        raise ValueError(
            "Input X contains NaN: covariance matrices are learned from whole rows. "
            "Use `family='diag'` or 'tied_diag', which leave missing cells out, or "
            "impute them."
        )
    _moments(np.where(missing, 0.0, X), weight, "diagonal")  # refuses huge numbers
    columns = []
    for j, there in enumerate(~missing.T):
        if there.any():
            columns.append(_moments(X[there, j : j + 1], weight[there], "diagonal"))
        else:
            columns.append(ClassMoments.empty([0], 1, structure="diagonal"))
    return columns


def merged_moments(parts: Sequence[ColumnMoments]) -> ColumnMoments:
    """Moments of several blocks together, merged in their order.

    A block without a missing cell is split into columns where another has one.
    """
    width = max(len(part) for part in parts)
    if width > 1:
        columns = np.arange(width)[:, np.newaxis]
        whole = np.ones(1, dtype=bool)  # the only class of these moments
        parts = [
            part
            if len(part) == width
            else [restrict(part[0], whole, j) for j in columns]
            for part in parts
        ]
    return [ClassMoments.reduce(column) for column in zip(*parts, strict=True)]


def _moments(X: NDArray[Any], weight: FloatArray, structure: Structure) -> ClassMoments:
    """Moments of rows as those of one class; refuses what is not finite."""
    one_class = np.zeros(len(X), dtype=np.intp)
    with np.errstate(over="ignore", invalid="ignore"):
        moments = ClassMoments.from_rows(X, one_class, 1, weight, structure=structure)
    check_values(X, moments)
    return moments


# --- squared distances of many rows to all classes at once ----------------------------
#
# Rows Z (m, d + 1) carry a leading column of ones: Z = [1, x]. The factor of a class is
# a triangle, cut into bands of rows. The classes of a band go through one product,
# which with few features is what saves the time; rows are taken in blocks that stay in
# the cache.


#: Validity margin of variances and of the smallest eigenvalue of a correlation
#: matrix, on features of unit variance: below, s2 / s0 - mu mu' is rounding noise.
MARGIN = 1e-9
_CACHED_NUMBERS = 300_000
_COLUMNS_PER_BAND, _MOST_BANDS = 24, 4
#: Below this many numbers, importing compiled loops costs more than it saves.
COMPILED_FROM = 32_768


def whitening_bands(
    means: FloatArray, cholesky: NDArray[np.floating[Any]]
) -> tuple[FloatArray, ...]:
    """L_k^-1 [-mu_k, I] of every class, cut into bands of rows.

    `means` are (r, d), the lower Cholesky factors L of the covariances (r, d, d). A
    product with a row [1, x] is L_k^-1 (x - mu_k), whose squared length is the squared
    Mahalanobis distance of x from mu_k.

    Row j of a class reads only the first j + 2 columns of Z, so that a band of the
    rows first..last - 1 is an array (r, last - first, last + 1).
    """
    r, d = means.shape
    factors = np.empty((r, d, d + 1))
    if d:  # LAPACK refuses empty matrices: every feature may be constant
        for factor, mean, lower in zip(factors, means, cholesky, strict=True):
            factor[:, 1:] = dtrtri(lower, lower=1)[0]
            factor[:, 0] = -(factor[:, 1:] @ mean)
    n_bands = min(_MOST_BANDS, 1 + d // _COLUMNS_PER_BAND)
    edges = [d * band // n_bands for band in range(n_bands + 1)]
    return tuple(
        np.ascontiguousarray(factors[:, first:last, : last + 1])
        for first, last in pairwise(edges)
    )


def squared_distances(Z: FloatArray, bands: Sequence[FloatArray]) -> FloatArray:
    """Squared Mahalanobis distances (x_i - mu_k)' Sigma_k^-1 (x_i - mu_k), (r, m).

    Of rows Z (m, d + 1) with a leading 1, by the `whitening_bands` of the classes.
    """
    m, p = Z.shape
    r = len(bands[0])
    if m * r < COMPILED_FROM:
        add_squares = interpreted_add_squares
    else:
        from prudent.calibration.kernels import add_squares
    distances = np.zeros((r, m))
    size = max(256, _CACHED_NUMBERS // (r * p))
    workspace = np.empty(min(size, m) * r * p)
    for start in range(0, m, size):
        rows = Z[start : start + size]
        for band in bands:
            height, width = band.shape[1:]
            white = workspace[: len(rows) * r * height].reshape(len(rows), -1)
            np.matmul(rows[:, :width], band.reshape(-1, width).T, out=white)
            add_squares(
                white.reshape(len(rows), r, height), distances[:, start : start + size]
            )
    return distances


def interpreted_add_squares(white: FloatArray, sums: FloatArray) -> None:
    """Add sum_j white_ikj^2 of white (n, r, d) to sums (r, n), in place.

    The compiled loop of `kernels` does the same.
    """
    sums += np.einsum("ikj,ikj->ki", white, white)


def are_positive_definite(covariances: FloatArray) -> BoolArray:
    """Which covariances (r, d, d) are positive definite by a margin, shape (r,).

    On the scale of correlations every eigenvalue must exceed `MARGIN`; below, the
    matrix s2 / s0 - mu mu' is rounding noise. A matrix with NaN is none.
    """
    variances = np.diagonal(covariances, axis1=1, axis2=2)
    definite = np.asarray((variances > MARGIN).all(axis=1))  # also refuses NaN
    deviations = np.sqrt(variances[definite])
    products = deviations[:, :, np.newaxis] * deviations[:, np.newaxis]
    correlations = covariances[definite] / products
    correlations -= MARGIN * np.eye(covariances.shape[1])
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


# --- the families ---------------------------------------------------------------------


#: |W_ik| up to this share of the largest weight moves no statistic visibly.
_NEGLIGIBLE = 1e-10


@dataclass(frozen=True, slots=True)
class Normals:
    """Means and covariances of the classes after shrinkage, in standardised units.

    `scores` are what the log joint needs of them, worked out once.
    """

    log_priors: FloatArray  # (r,)
    means: FloatArray  # (r, d)
    covariances: FloatArray  # (r, d, d), (d, d), or the variances (r, d) or (d,)
    #: "full": `whitening_bands` and log det Sigma_k (r,); else coefficients of Z,
    #: (r, d + 1).
    scores: Any


@dataclass(frozen=True)
class GaussianFamily:
    """A shape of covariances: of each class or `tied`, full or `is_diagonal`.

    Statistics s0 (r,), s1 (r, d) of 1 and x; unless tied also s2 of xx' (r, d, d) or
    x^2 (r, d); with missing cells the counts (r, d) of those that are there come last,
    in diagonal families only.
    """

    centre: FloatArray  # (n_features,), in the units of X, like the scale
    scale: FloatArray  # (n_features,)
    kept: IntArray  # (d,), positions of the features that vary
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
        return cls.from_moments(moments, float(weight.sum()), strengths)

    @classmethod
    def from_moments(
        cls, moments: ColumnMoments, total: float, strengths: PriorStrengths
    ) -> Self:
        """Family standardised by the rows behind the moments, of weight `total`.

        A feature varies whose standard deviation exceeds 1e-12 of its mean. Cells are
        missing where a column has less weight than all rows.
        """
        centre, covariance = centre_and_covariance(moments)
        scale = deviations(covariance)
        kept = np.flatnonzero(scale > ROUNDING * np.abs(centre))
        whole = all(m.weight[0] > (1 - ROUNDING) * total for m in moments)
        misses_cells = not whole and len(centre) > 0
        family = cls(centre, scale, kept, strengths, misses_cells)
        if not cls.tied:
            return family
        second = family.covariance(covariance)
        return replace(family, second_moment=second, total=total)

    def with_rows(self, rows: Standardised, weight: FloatArray) -> Self:
        """The same family, with more rows in the second moment where it is tied.

        The rows (m, d + 1) are standardised and of weight (m,); a stream adds each
        batch so. Other families stay as they are.
        """
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
        """Standardise rows (m, n_features) to [1, z], (m, d + 1).

        Features that do not vary are left out. Where a cell is missing, or the family
        counts cells, rows come with the mask of those that are there.
        """
        Z = np.empty((len(X), len(self.kept) + 1))
        Z[:, 0] = 1.0
        for block in row_blocks(len(X)):
            rows = X[block].astype(np.float64)
            with np.errstate(over="ignore"):
                z = ((rows - self.centre)[:, self.kept]) / self.scale[self.kept]
            np.clip(z, -FARTHEST, FARTHEST, out=Z[block, 1:])
        if X.dtype.kind == "f" and np.isnan(Z.sum()):
            missing = np.isnan(Z[:, 1:])
            Z[:, 1:][missing] = 0.0
            return SeenRows(Z, (~missing).astype(np.float64))
        return SeenRows(Z, np.ones_like(Z[:, 1:])) if self.counts_cells else Z

    def statistics(self, rows: Standardised, Q: FloatArray) -> Statistics:
        """The statistics of soft labels Q (m, r): sum_i Q_ik of 1, z, and z z' or z^2.

        A tied family leaves the squares out. See the class for shapes.
        """
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
        sums = [first[:, 0], first[:, 1:]]
        if not self.tied:
            second = np.zeros((Q.shape[1], Z.shape[1] - 1))
            for block in row_blocks(len(Z)):
                second += Q.T[:, block] @ np.square(Z[block, 1:])
            sums.append(second)
        return [*sums, Q.T @ rows.seen] if isinstance(rows, SeenRows) else sums

    def parameters(self, statistics: Statistics) -> Normals:
        """Shrunken means and covariances in closed form.

        mu'_k = (m1 mu_0 + n_k mu_k) / (m1 + n_k), where mu_0 is the mean of all rows, 0
        in standardised units, unless the user gave another; covariances as in
        `_moments`.
        """
        means, covariances = self._moments(statistics)
        n, strength = self._cells(statistics), self.strengths.means
        if strength:
            means = (strength * self._prior_mean + n * means) / (strength + n)
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
        Z, covariances = values_of(rows), parameters.covariances
        if self._is_full:
            bands, logs = parameters.scores
            scores = squared_distances(Z, bands)
            scores *= -0.5
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
        """What `log_joint` leaves out because tied classes share it, (m,).

        -log det Sigma / 2 - x' Sigma^-1 x / 2 over the cells that are there; 0 for
        families that are not tied.
        """
        if not self.tied:
            return np.zeros(len(rows))
        covariance = parameters.covariances
        if self.is_diagonal:
            logs = np.log(covariance)
            logs = rows.seen @ logs if isinstance(rows, SeenRows) else logs.sum()
        else:
            logs = np.linalg.slogdet(covariance)[1]
        Z = values_of(rows)[:, 1:]
        quadratic = np.einsum("ij,ij->i", Z, self._solved(covariance, Z))
        return -0.5 * (logs + quadratic)

    def log_density(self, rows: Standardised, parameters: Normals) -> FloatArray:
        """Log of the joint density of class and cells, in the units of X, (m, r).

        Complete where `log_joint` is not: with the constants of the row, of the normal
        law and of the change of units.
        """
        scores = self.log_joint(rows, parameters)
        scores = scores + self.row_constant(rows, parameters)[:, np.newaxis]
        units = -0.5 * np.log(2 * np.pi) - np.log(self.scale[self.kept])
        if isinstance(rows, SeenRows):
            return scores + (rows.seen @ units)[:, np.newaxis]
        return scores + units.sum()

    def sample(
        self, parameters: Normals, codes: IntArray, random: np.random.RandomState
    ) -> FloatArray:
        """Draw a row of each of these classes, in the units of X.

        Parameters
        ----------
        parameters : Normals
        codes : ndarray of int, shape (n,)
            Class of each row to draw.
        random : RandomState

        Returns
        -------
        ndarray of shape (n, n_features)
            Features that do not vary have their value.
        """
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
        """Parameters in the units of X, by the name of the fitted attribute.

        A feature that does not vary has its value for a mean and no variance.
        """
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

    # Rows, covariances and scores in units of the spread, and back.

    @property
    def constant_features(self) -> IntArray:
        """Features that do not vary and are ignored."""
        return np.setdiff1d(np.arange(len(self.centre)), self.kept)

    def covariance(self, covariance: FloatArray) -> FloatArray:
        """Matrix, or variances, of the features that vary in standardised units."""
        scale = self.scale[self.kept]
        if covariance.ndim == 1:
            return covariance[self.kept] / scale**2
        return covariance[np.ix_(self.kept, self.kept)] / np.outer(scale, scale)

    def in_units(self, Z: FloatArray) -> FloatArray:
        """Rows (n, n_features) in the units of X; the centre where nothing varies."""
        X = np.tile(self.centre, (len(Z), 1))
        X[:, self.kept] += self.scale[self.kept] * Z
        return X

    def coefficients_in_units(
        self, scores: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Slopes (r, n_features) and intercepts (r,) behind coefficients of Z."""
        slopes = scores[:, 1:] / self.scale[self.kept]
        coefficients = np.zeros((len(scores), len(self.centre)))
        coefficients[:, self.kept] = slopes
        return coefficients, scores[:, 0] - slopes @ self.centre[self.kept]

    # Parameters and scores.

    @property
    def _is_full(self) -> bool:
        return not (self.tied or self.is_diagonal)

    def _cells(self, statistics: Statistics) -> FloatArray:
        """Rows behind each mean: (r, d) with missing cells, else (r, 1)."""
        return statistics[-1] if self.counts_cells else statistics[0][:, np.newaxis]

    def _moments(self, statistics: Statistics) -> tuple[FloatArray, FloatArray]:
        """Means (r, d) as they are, and covariances after shrinkage.

        Sigma_k = s2_k / s0_k - mu_k mu_k', tied Sigma = v / M - sum_k p_k mu_k mu_k',
        both shrunk to (m2 Sigma_0 + n Sigma) / (m2 + n), n the rows behind the
        covariance; `exact` adds `_gaps` above the line.
        """
        s1, n, prior = statistics[1], self._cells(statistics), self._prior_scatter
        # 0, the mean of all classes, where no cell was counted.
        means = s1 / (np.where(n == 0, 1.0, n) if self.counts_cells else n)
        if self.second_moment is not None:
            n = n.sum(axis=0)
            own = (s1 * means).sum(axis=0) if self.is_diagonal else s1.T @ means
            gaps = self._gaps(self._cells(statistics), means).sum(axis=0)
            scatter = n * self.second_moment - own + prior + gaps
        elif self.is_diagonal:
            scatter = prior + statistics[2] - s1 * means + self._gaps(n, means)
        else:
            scatter = statistics[2] - s1[:, :, np.newaxis] * means[:, np.newaxis]
            scatter += prior + self._gaps(n, means)
            n = n[:, :, np.newaxis]
        return means, scatter / (self._covariance_strength + n)

    def _with_scores(
        self, log_priors: FloatArray, means: FloatArray, covariances: FloatArray
    ) -> Normals:
        """Parameters, with what the log joint needs of them.

        For covariances of each class bands that whiten and the log determinants; else
        the coefficients (r, d + 1) of a score that is linear in [1, z], or linear but
        for the squares of z.
        """
        if self._is_full:
            cholesky = np.linalg.cholesky(covariances)
            diagonals = np.diagonal(cholesky, axis1=1, axis2=2)
            logs = 2.0 * np.log(diagonals).sum(axis=1)
            bands = whitening_bands(means, cholesky)
            return Normals(log_priors, means, covariances, (bands, logs))
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

    def _gaps(self, n: FloatArray, means: FloatArray) -> FloatArray:
        """Scatter of each mean about mu_0: m1 n / (m1 + n) (mu - mu_0)(mu - mu_0)'.

        The normal-inverse-Wishart mode has it, the paper leaves it out: it is 0 unless
        asked for. Of shape (r, d, d), of diagonal families (r, d).
        """
        strength = self.strengths.means
        if not (strength and self.strengths.exact):
            return np.zeros((1, 1) if self.is_diagonal else (1, 1, 1))
        gap = means - self._prior_mean
        weighted = strength * n / (strength + n) * gap
        if self.is_diagonal:
            return weighted * gap
        return weighted[:, :, np.newaxis] * gap[:, np.newaxis]

    @property
    def _prior_mean(self) -> FloatArray | float:
        """mu_0 in standardised units."""
        if self.strengths.mean is None:
            return 0.0
        gap = self.strengths.mean - self.centre
        return gap[self.kept] / self.scale[self.kept]

    @property
    def _covariance_strength(self) -> float:
        """m2, which grows with the number of features where it is left open."""
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


# --- softmax regression ---------------------------------------------------------------


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
