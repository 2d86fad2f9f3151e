"""Centre and scale of columns, from the moments of the cells that are there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from prudent.core.accumulation import check_values
from prudent.core.classes import restrict
from prudent.core.moments import ClassMoments
from prudent.core.types import FloatArray, IntArray
from prudent.core.validation import Structure

#: A column that varies by a smaller share of its mean varies by rounding.
ROUNDING = 1e-12
#: Its square is a normal number still.
_LEAST_SCALE = 1e-153

#: Moments of all columns at once or, where cells are missing, of each by itself.
ColumnMoments = list[ClassMoments]


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """What standardises rows."""

    total: float  # weight of all rows
    centre: FloatArray  # (d,)
    covariance: FloatArray  # (d, d) or variances (d,), with denominator `total`
    has_missing: bool = False  # cells

    @classmethod
    def of(cls, moments: ColumnMoments, total: float) -> Self:
        """Spread of the rows behind some moments."""
        centre = np.concatenate([(m.mean + m.mean_lo)[0] for m in moments])
        whole = all(m.weight[0] > (1 - ROUNDING) * total for m in moments)
        if len(moments) == 1:
            covariance = moments[0].scatter[0] / moments[0].weight[0]
        else:
            # A column without any cell has variance 0, and takes no part.
            covariance = np.concatenate(
                [m.scatter.ravel() / max(m.weight[0], 1e-300) for m in moments]
            )
        return cls(total, centre, covariance, not whole and len(centre) > 0)

    @property
    def scale(self) -> FloatArray:
        """Standard deviation of each column."""
        covariance = self.covariance
        return np.sqrt(covariance if covariance.ndim == 1 else covariance.diagonal())

    @property
    def varying(self) -> IntArray:
        """Columns that vary by more than rounding."""
        return np.flatnonzero(self.scale > ROUNDING * np.abs(self.centre))

    @property
    def suspicious(self) -> IntArray:
        """Columns whose squares may have underflowed: they look constant."""
        return np.flatnonzero(self.scale < _LEAST_SCALE)

    def check_ranges(self, ranges: Sequence[FloatArray]) -> None:
        """Refuse `suspicious` columns that vary; `ranges` as of `Trial.ranges`."""
        lowest, highest = np.array(ranges).swapaxes(0, 1)
        widths = highest.max(axis=0) - lowest.min(axis=0)
        for j, width in zip(self.suspicious, widths, strict=True):
            if width > ROUNDING * abs(self.centre[j]):
                raise ValueError(
                    f"column {j} varies by {width:.3g} only, whose square underflows: "
                    "multiply the column by a constant."
                )


def column_moments(
    X: NDArray[Any],
    weight: FloatArray,
    structure: Structure,
    *,
    learns_missing: bool = True,
) -> ColumnMoments:
    """Moments of the columns of a block; missing cells (NaN) count for nothing."""
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
    """Moments of several blocks together, in their order."""
    width = max(len(part) for part in parts)
    if width > 1:
        one, columns = np.ones(1, dtype=bool), np.arange(width)[:, np.newaxis]
        parts = [
            part if len(part) == width else [restrict(part[0], one, j) for j in columns]
            for part in parts
        ]
    return [ClassMoments.reduce(column) for column in zip(*parts, strict=True)]


def _moments(X: NDArray[Any], weight: FloatArray, structure: Structure) -> ClassMoments:
    one_class = np.zeros(len(X), dtype=np.intp)
    with np.errstate(over="ignore", invalid="ignore"):
        moments = ClassMoments.from_rows(X, one_class, 1, weight, structure=structure)
    check_values(X, moments)
    return moments
