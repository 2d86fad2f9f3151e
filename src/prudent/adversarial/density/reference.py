"""Artificial intruders: densities that are known exactly and can be sampled.

All of them describe standardised rows. The classifier that tells the rows from a
sample of density u estimates log p - log u, and u is known, so log p follows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from prudent.adversarial.density.kernel_density import NormalKernels, kernel_width
from prudent.core.linalg import MahalanobisFactors
from prudent.core.rows import Keys, keys_of_rows
from prudent.core.types import BoolArray, FloatArray

ReferenceName = Literal["mixture", "gaussian", "box", "grid"]

_INFLATION = 1.5  # of the Gaussian's standard deviations
_RIDGE = 1e-3  # added to the covariance of standardised rows
_MAX_CENTRES = 300
_BOX_MARGIN = 0.1  # of the data's range, on each side
_SMALLEST_CELL = 2.0**-7  # in standard deviations
_ROUNDING = 1e-12  # relative; a constant column's rows differ by no more
_FARTHEST = 1e100  # standard deviations; squares stay finite
_DEPARTURE = 1e6  # lost by a score for leaving a constant column: below all others


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
        return np.clip(Z, -_FARTHEST, _FARTHEST)

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


class Reference(Protocol):
    """A density over standardised rows."""

    def sample(self, n: int, random: np.random.RandomState) -> FloatArray:
        """Draw `n` artificial rows."""

    def log_density(self, X: FloatArray) -> FloatArray:
        """Exact log u of each row, -inf outside the support."""


def make_reference(
    reference: ReferenceName | Any,
    X: FloatArray,
    standardisation: Standardisation,
    random: np.random.RandomState,
) -> Reference | GivenReference:
    """Reference of this name for standardised rows, or the given one in their units."""
    if reference == "mixture":
        return MixtureReference.from_rows(X, random)
    if reference == "gaussian":
        return GaussianReference.from_rows(X)
    if reference == "box":
        return BoxReference.from_rows(X)
    if reference == "grid":
        return GridReference.from_rows(X, random)
    return GivenReference(reference, standardisation)


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

    def sample(self, n: int, random: np.random.RandomState) -> FloatArray:
        """Draw `n` artificial rows."""
        return random.normal(size=(n, len(self.factor))) @ self.factor.T

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
    def from_rows(cls, X: FloatArray, random: np.random.RandomState) -> Self:
        """Put kernels of the rule-of-thumb width at up to 300 random rows."""
        n, d = X.shape
        chosen = random.permutation(n)[:_MAX_CENTRES]
        kernels = NormalKernels(X[chosen], kernel_width(n, d))
        return cls(GaussianReference.from_rows(X), kernels)

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


def _cell_numbers(X: FloatArray, origin: FloatArray, size: float) -> FloatArray:
    # Rows far outside the data share the outermost cells, which hold no data.
    return np.clip(np.floor((X - origin) / size), -(2.0**62), 2.0**62)
