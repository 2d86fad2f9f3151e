"""Densities of rows, known and estimated: rows in, scores out.

Artificial rows have a density u that is known exactly and can be sampled. The
classifier that tells the rows of a class from them estimates log p - log u of the
class's density p, and u is known, so log p follows. All densities describe
standardised rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from prudent.core.classes import FARTHEST
from prudent.core.guarantee import Guarantee
from prudent.core.linalg import row_blocks
from prudent.core.rows import Keys, keyed_uniform, keys_of_rows
from prudent.core.types import BoolArray, FloatArray
from prudent.rules.rule import FalseAlarms

ReferenceName = Literal["mixture", "gaussian", "box", "grid"]

_INFLATION = 1.5  # of the Gaussian's standard deviations
_RIDGE = 1e-3  # added to the covariance of standardised rows
_MAX_CENTRES = 300
_BOX_MARGIN = 0.1  # of the data's range, on each side
_SMALLEST_CELL = 2.0**-7  # in standard deviations
_ROUNDING = 1e-12  # relative; a constant column's rows differ by no more
_DEPARTURE = 1e6  # lost by a score for leaving a constant column: below all others
_OUTSIDE = -1e5  # score of a row outside the reference, less its distance
# Digits of a score, fewer than its rounding errors leave: a row scores the same in
# every batch, alone or among others, so that equal rows are tied.
_DECIMALS, _DIGITS = 5, 9
_WIDTHS = np.geomspace(0.25, 1.5, 11)  # of kernels, in units of the rule of thumb
_COARSE = (2, 5, 8)  # those of them tried first
_CORRELATION_SHRINKAGE = 0.01  # keeps the decorrelated rows of flat clouds finite


@dataclass(frozen=True, slots=True)
class Standardisation:
    """Affine map of the varying columns, and the values of the constant ones."""

    varies: BoolArray  # (d,), columns of more than one value
    #: (d,); columns are divided by 2 ** exponent first, which is exact and keeps the
    #: squares of columns of any scale from over- and underflowing.
    exponent: NDArray[np.intc]
    mean: FloatArray  # (d,), of the divided columns
    deviation: FloatArray  # (d,), 1 for constant columns

    @classmethod
    def from_rows(cls, X: FloatArray) -> Self:
        """Measure the columns of rows."""
        varies = X.max(axis=0) > X.min(axis=0)
        exponent = np.frexp(np.abs(X).max(axis=0))[1]
        U = np.ldexp(X, -exponent)
        return cls(
            varies=varies,
            exponent=exponent,
            mean=np.where(varies, U.mean(axis=0), U[0]),
            deviation=np.where(varies, U.std(axis=0), 1.0),
        )

    @property
    def n_varying(self) -> int:
        """Number of columns that vary."""
        return int(self.varies.sum())

    def log_volume(self) -> float:
        """Log volume of the unit cube of standardised rows, in the units of rows."""
        deviation, exponent = self.deviation[self.varies], self.exponent[self.varies]
        return float(np.log(deviation).sum() + math.log(2) * exponent.sum())

    def apply(self, X: FloatArray) -> FloatArray:
        """Standardised values of the varying columns."""
        kept = self.varies
        with np.errstate(over="ignore"):
            U = np.ldexp(X[:, kept], -self.exponent[kept])
            Z = (U - self.mean[kept]) / self.deviation[kept]
        return np.clip(Z, -FARTHEST, FARTHEST)

    def departure(self, X: FloatArray) -> FloatArray:
        """Penalty of each row for differing in a constant column; 0 if it does not.

        1e6 (1 + relative difference): below every ordinary score, yet finite, since
        metrics refuse infinite scores.
        """
        constant = ~self.varies
        value = self.mean[constant]
        with np.errstate(over="ignore"):
            U = np.ldexp(X[:, constant], -self.exponent[constant])
            difference = np.abs(U - value) / np.where(value == 0, 1.0, np.abs(value))
        difference = np.minimum(difference, 1e12)
        penalty = _DEPARTURE * (1 + difference)
        return np.where(difference > _ROUNDING, penalty, 0.0).sum(axis=1)


# --- normal kernels at rows of the class: the oldest estimate of a density ------------


def kernel_width(n_rows: int, n_features: int) -> float:
    """Standard deviation n^(-1/(d+4)) of the kernels, in standardised units."""
    return float(n_rows ** (-1.0 / (n_features + 4)))


@dataclass(frozen=True, slots=True)
class NormalKernels:
    """Mean of M normal densities of covariance h^2 L L', L the identity by default.

    p(x) = 1 / M sum_j (h sqrt(2 pi))^-d |L|^-1 exp(-|L^-1 x - c_j|^2 / (2 h^2)).
    """

    centres: FloatArray  # (M, d), c_j, in the coordinates L^-1 x
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
        """Draw `n` rows."""
        at = self.centres[random.randint(len(self.centres), size=n)]
        drawn: FloatArray = at + self.width * random.normal(size=at.shape)
        return drawn if self.factor is None else drawn @ self.factor.T

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


# --- artificial rows ------------------------------------------------------------------


def inflated_normal(X: FloatArray) -> NormalKernels:
    """Centred normal with 1.5 times the deviations of standardised rows: one kernel."""
    d = X.shape[1]
    covariance = X.T @ X / len(X)
    covariance[np.diag_indices(d)] += _RIDGE
    covariance *= _INFLATION**2
    factor: FloatArray = np.linalg.cholesky(covariance).astype(np.float64)
    return NormalKernels(np.zeros((1, d)), 1.0, factor)


@dataclass(frozen=True, slots=True)
class MixtureReference:
    """Half inflated Gaussian, half normal kernels at some of the rows."""

    gaussian: NormalKernels
    kernels: NormalKernels

    @classmethod
    def from_rows(cls, X: FloatArray, random: np.random.RandomState) -> Self:
        """Put kernels of the rule-of-thumb width at up to 300 random rows."""
        n, d = X.shape
        chosen = random.permutation(n)[:_MAX_CENTRES]
        return cls(inflated_normal(X), NormalKernels(X[chosen], kernel_width(n, d)))

    def sample(self, n: int, random: np.random.RandomState) -> FloatArray:
        """Draw `n` artificial rows, half of them from each part."""
        kernel = self.kernels.sample(n // 2, random)
        return np.concatenate([self.gaussian.sample(n - n // 2, random), kernel])

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

    def sample(self, n: int, random: np.random.RandomState) -> FloatArray:
        """Draw `n` artificial rows."""
        return random.uniform(self.lower, self.upper, size=(n, len(self.lower)))

    def log_density(self, X: FloatArray) -> FloatArray:
        """Constant inside the box, -inf outside."""
        inside = ((self.lower <= X) & (self.upper >= X)).all(axis=1)
        volume = float(np.log(self.upper - self.lower).sum())
        return np.where(inside, -volume, -np.inf)


@dataclass(frozen=True, slots=True)
class GridReference:
    """The paper's: uniform on the cells of a random grid that hold a row."""

    origin: FloatArray  # (d,), a corner of cell 0
    size: float  # g, the side of a cell
    corners: FloatArray  # (n_cells, d), cell numbers: whole, as floats
    keys: Keys  # (n_cells,), of the corners, rising

    @classmethod
    def from_rows(cls, X: FloatArray, random: np.random.RandomState) -> Self:
        """Choose the least cells, on a geometric grid, few of which hold a single row.

        Few: at most log n, so that the cells missed by n rows hold little mass
        (Good and Turing). The origin is uniform in the first cell.
        """
        few = math.log(len(X))
        offset = random.random_sample((X.shape[1],))
        size = _SMALLEST_CELL
        while True:
            numbers = _cell_numbers(X, offset * size, size)
            keys, first, count = np.unique(
                keys_of_rows(numbers), return_index=True, return_counts=True
            )
            if np.count_nonzero(count == 1) <= few:
                return cls(offset * size, size, numbers[first], keys)
            size *= math.sqrt(2)

    def sample(self, n: int, random: np.random.RandomState) -> FloatArray:
        """Draw `n` artificial rows, x0 + g (A + uniform).

        The paper's o = a + g x mixes up cell numbers and coordinates.
        """
        corner = self.corners[random.randint(len(self.corners), size=n)]
        return self.origin + self.size * (corner + random.uniform(size=corner.shape))

    def log_density(self, X: FloatArray) -> FloatArray:
        """Constant in the occupied cells, -inf outside."""
        n_cells, d = self.corners.shape
        wanted = keys_of_rows(_cell_numbers(X, self.origin, self.size))
        at = np.searchsorted(self.keys, wanted)
        is_inside = self.keys[np.minimum(at, n_cells - 1)] == wanted
        return np.where(
            is_inside, -math.log(n_cells) - d * math.log(self.size), -np.inf
        )


@dataclass(frozen=True, slots=True)
class GivenReference:
    """A density of the user's, over rows as they are given."""

    given: Any  # with `sample(n, random_state)` and `log_density(X)`
    standardisation: Standardisation  # of the rows

    def sample(self, n: int, random: np.random.RandomState) -> FloatArray:
        """Draw `n` artificial rows, standardised."""
        drawn = self.given.sample(n, random_state=int(random.randint(2**31 - 1)))
        rows = np.asarray(drawn, dtype=np.float64)
        expected = n, len(self.standardisation.varies)
        if rows.shape != expected or not np.isfinite(rows).all():
            raise ValueError(
                f"`reference.sample` must return finite rows of shape {expected}, got "
                f"shape {rows.shape}."
            )
        return self.standardisation.apply(rows)

    def log_density_of_rows(self, X: FloatArray) -> FloatArray:
        """Log u of rows as given, per unit volume of standardised ones."""
        log_u = np.asarray(self.given.log_density(X), dtype=np.float64)
        bad = log_u[~(log_u < np.inf)].tolist()
        if log_u.shape != (len(X),) or bad:
            raise ValueError(
                f"`reference.log_density` must return {len(X)} numbers below inf, "
                f"-inf outside its support; got shape {log_u.shape}"
                + (f" with {bad[0]}." if log_u.shape == (len(X),) else ".")
            )
        return log_u + self.standardisation.log_volume()


#: A density u over standardised rows: `sample(n, random)` draws rows, `log_density(Z)`
#: is exactly log u, -inf outside the support; that of a user's is over rows as given.
Reference = (
    NormalKernels | MixtureReference | BoxReference | GridReference | GivenReference
)


def make_reference(
    reference: ReferenceName | Any,
    X: FloatArray,
    standardisation: Standardisation,
    random: np.random.RandomState,
) -> Reference:
    """Reference of this name for standardised rows, or the given one in their units."""
    if reference == "mixture":
        return MixtureReference.from_rows(X, random)
    if reference == "gaussian":
        return inflated_normal(X)
    if reference == "box":
        return BoxReference.from_rows(X)
    if reference == "grid":
        return GridReference.from_rows(X, random)
    return GivenReference(reference, standardisation)


def _cell_numbers(X: FloatArray, origin: FloatArray, size: float) -> FloatArray:
    # Rows far outside the data share the outermost cells, which hold no data.
    return np.clip(np.floor((X - origin) / size), -(2.0**62), 2.0**62)


# --- the estimate ---------------------------------------------------------------------


@dataclass(frozen=True)
class Density:
    """Estimate of a log density from a classifier of rows against artificial rows.

    A classifier and kernel densities err in different places, so their mean errs less.
    """

    standardisation: Standardisation
    #: Known density of the artificial rows; None when every column is constant.
    reference: Reference | None
    #: Log odds of a standardised row against an artificial one.
    log_odds: Callable[[FloatArray], FloatArray] | None
    kernels: tuple[NormalKernels, ...] = ()
    kernel_share: float = 0.0  # weight of each of them in the mean

    def score(self, X: FloatArray) -> FloatArray:
        """Estimate log p up to a constant: log odds plus log u.

        With kernels, the weighted mean of that and of their log densities.
        Rows outside the reference's support score below all inside it, graded by
        their distance from the mean; rows that leave a constant column lower still.
        """
        penalty = self.standardisation.departure(X)
        if self.reference is None or self.log_odds is None:
            return _rounded(-penalty)
        Z = self.standardisation.apply(X)
        log_u = self._log_reference(X, Z)
        inside = np.isfinite(log_u)
        score = _OUTSIDE - np.sqrt(np.einsum("ij,ij->i", Z, Z))
        if inside.any():
            Z, log_u = Z[inside], log_u[inside]
            estimate = self.log_odds(Z) + log_u
            estimate *= 1 - len(self.kernels) * self.kernel_share
            for kernels in self.kernels:
                # A row inside must not score below those outside.
                log_density = np.maximum(kernels.log_density(Z), _OUTSIDE)
                estimate += self.kernel_share * log_density
            score[inside] = estimate
        return _rounded(score - penalty)

    def covers(self, X: FloatArray) -> BoolArray:
        """Whether each row lies in the reference's support."""
        return np.isfinite(self._log_reference(X, self.standardisation.apply(X)))

    def _log_reference(self, X: FloatArray, Z: FloatArray) -> FloatArray:
        if isinstance(self.reference, GivenReference):
            return self.reference.log_density_of_rows(X)
        assert self.reference is not None
        return self.reference.log_density(Z)


def _rounded(scores: FloatArray) -> FloatArray:
    """Scores to 5 decimals, or to 9 significant digits where these are fewer."""
    digits = np.floor(np.log10(np.maximum(np.abs(scores), 1.0)))
    # A power of ten below 1 is not exact: numbers are scaled by whole ones only.
    finer = 10.0 ** np.maximum(_DECIMALS - np.maximum(digits - 3, 0), 0)
    coarser = 10.0 ** np.maximum(digits - (_DIGITS - 1), 0)
    return np.rint(scores / coarser * finer) / finer * coarser


# --- the rejection game on an estimated density ---------------------------------------


@dataclass(frozen=True, slots=True)
class SoftRule:
    """Reject with probability min(1, t r), r a falling function of the score."""

    scores: FloatArray  # (n,), rising, of the rows the game was played on
    rejection: FloatArray  # (n,), r of each
    scale: float  # t
    key: bytes  # of the coins: the same row gets the same answer
    calibration: FalseAlarms  # what it was scaled by
    guarantees: tuple[Guarantee, ...]

    def rejection_at(self, scores: FloatArray) -> FloatArray:
        """Probability at the largest known score not above; at the lowest below."""
        at = np.searchsorted(self.scores, scores, side="right") - 1
        known = self.rejection[np.maximum(at, 0)]
        return np.minimum(1.0, self.scale * known)

    def decision(self, scores: FloatArray, X: FloatArray) -> FloatArray:
        """Coin minus rejection probability."""
        coins = keyed_uniform((row.tobytes() for row in X), self.key)
        return coins - self.rejection_at(scores)
