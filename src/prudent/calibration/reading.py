"""From the columns that a user passes to the rows that a family takes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.calibration.categorical import MISSING, UNSEEN, MixedRows
from prudent.core.types import BoolArray, IntArray

#: One array per column; missing values as None or NaN.
Columns = Sequence[NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads later rows the way the training rows were read."""

    is_level: BoolArray  # (n_features,); the other columns hold numbers
    levels: tuple[tuple[Any, ...], ...] = ()  # known ones of each of these, in order
    is_mixed: bool = False  # numbers and levels side by side

    @classmethod
    def of_first_rows(
        cls, family: str, columns: Columns, is_level: BoolArray | None
    ) -> Reader:
        """Reader of data whose first rows are given in columns.

        `is_level` is None for an array, which does not say what its columns hold.
        """
        if family == "categorical":
            is_level = np.ones(len(columns), dtype=np.bool_)
        elif is_level is None:
            raise ValueError(
                "`family='mixed'` tells categorical from numeric columns by their "
                "type, so X must be a pandas or polars data frame, got an array; for "
                "an array use `family='diag'` or `family='categorical'`."
            )
        levels = tuple(_distinct(values) for values in compress(columns, is_level))
        return cls(is_level, levels, family == "mixed")

    @property
    def n_levels(self) -> IntArray:
        """Number of levels of each categorical feature, at least 1."""
        return np.array([max(len(v), 1) for v in self.levels], dtype=np.intp)

    def rows(self, columns: Columns) -> IntArray | MixedRows:
        """Level codes, in a mixed table with the numbers."""
        codes = np.empty((len(columns[0]), len(self.levels)), dtype=np.intp)
        for j, values in enumerate(compress(columns, self.is_level)):
            codes[:, j] = _level_codes(values, self.levels[j])
        if not self.is_mixed:
            return codes
        numeric = compress(columns, ~self.is_level)
        numbers = np.column_stack([np.zeros((len(codes), 0)), *numeric])
        return MixedRows(numbers.astype(np.float64), codes)

    def values(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Numbers as they are, or the levels behind codes."""
        if not self.levels:
            return rows
        columns = [
            np.array([*levels, None], dtype=object)[codes]
            for levels, codes in zip(self.levels, rows.T, strict=True)
        ]
        return np.column_stack(columns)

    def positions(self, features: IntArray) -> IntArray:
        """Columns of X behind features of the family: numbers first, then levels."""
        return np.argsort(self.is_level, kind="stable")[features]

    def merged(self, others: Iterable[Reader]) -> Reader:
        """Reader that also knows the levels of other rows of the same data."""
        of_columns = zip(self.levels, *(other.levels for other in others), strict=True)
        union = [_in_order(set(chain.from_iterable(known))) for known in of_columns]
        return replace(self, levels=tuple(union))

    def restricted(self, seen: Sequence[BoolArray]) -> Reader:
        """Reader that knows, of each categorical feature, only the levels seen."""
        pairs = zip(self.levels, seen, strict=True)
        # A column without any level has one to be seen.
        kept = [
            tuple(v for v, is_seen in zip(levels, known, strict=False) if is_seen)
            for levels, known in pairs
        ]
        return replace(self, levels=tuple(kept))


def row_keys(rows: Any) -> NDArray[Any]:
    """Numbers that tell the rows apart, (m, n_keys); a missing one is infinite."""
    keys = np.asarray(rows)
    if isinstance(rows, MixedRows):
        keys = np.hstack([rows.numbers, rows.levels])
    if keys.dtype.kind == "f" and np.isnan(keys).any():
        keys = np.where(np.isnan(keys), np.inf, keys)
    return keys


def recoded(rows: Any, seen: Sequence[BoolArray]) -> Any:
    """Rows as a reader reads them that knows only these levels."""
    if isinstance(rows, MixedRows):
        return MixedRows(rows.numbers, recoded(rows.levels, seen))
    if not len(seen):
        return rows
    columns = [
        np.where(
            codes < 0,
            codes,
            np.where(known, np.cumsum(known) - 1, UNSEEN)[codes.clip(min=0)],
        )
        for known, codes in zip(seen, rows.T, strict=True)
    ]
    return np.column_stack(columns)


def _factorise(values: NDArray[Any]) -> tuple[list[Any], IntArray]:
    """Distinct values as Python objects, a missing one as None, and their codes."""
    if values.dtype != object:
        distinct, codes = np.unique(values, return_inverse=True)
        return [None if v != v else v for v in distinct.tolist()], codes
    index: dict[Any, int] = {}
    codes = np.array(
        [
            index.setdefault(None if v is None or v != v else v, len(index))
            for v in values.tolist()
        ],
        dtype=np.intp,
    )
    return list(index), codes


def _distinct(values: NDArray[Any]) -> tuple[Any, ...]:
    """Levels in sorted order; a missing value is none."""
    return _in_order(level for level in _factorise(values)[0] if level is not None)


def _in_order(levels: Iterable[Any]) -> tuple[Any, ...]:
    """Sorted, numbers before words."""
    return tuple(sorted(levels, key=lambda level: (isinstance(level, str), level)))


def _level_codes(values: NDArray[Any], levels: tuple[Any, ...]) -> IntArray:
    """Position of each value among the levels, or `UNSEEN`, `MISSING`."""
    position = {level: k for k, level in enumerate(levels)} | {None: MISSING}
    distinct, inverse = _factorise(values)
    return np.array([position.get(v, UNSEEN) for v in distinct], dtype=np.intp)[inverse]
