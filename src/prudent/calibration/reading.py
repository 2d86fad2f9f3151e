"""From the columns that a user passes to the rows that a family takes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from prudent.calibration.categorical import MISSING, UNSEEN, MixedRows
from prudent.core.types import BoolArray, IntArray

#: One array per column; missing values as None or NaN.
Columns = Sequence[NDArray[Any]]


class Reader(Protocol):
    """Reads later rows the way the training rows were read."""

    @property
    def n_levels(self) -> IntArray:
        """Number of levels of each categorical feature."""
        ...

    def rows(self, columns: Columns) -> Any:
        """Numbers, level codes or both."""
        ...

    def values(self, rows: Any) -> NDArray[Any]:
        """The array behind some rows."""
        ...

    def positions(self, features: IntArray) -> IntArray:
        """Columns of X behind these features of the family."""
        ...

    def merged(self, others: Sequence[Self]) -> Self:
        """Reader that also knows the levels of other rows of the same data."""
        ...

    def restricted(self, seen: Sequence[BoolArray]) -> Self:
        """Reader that knows, of each categorical feature, only the levels seen."""
        ...


def first_reader(family: str, columns: Columns, is_level: BoolArray | None) -> Reader:
    """Reader of data whose first rows are given in columns.

    `is_level` tells the columns of a data frame that hold levels from those that hold
    numbers; None for an array, which does not say.

    Raises
    ------
    ValueError
        If `family` is "mixed" and the columns are of an array.
    """
    if family == "categorical":
        return LevelReader(tuple(_distinct(values) for values in columns))
    if is_level is None:
        raise ValueError(
            "`family='mixed'` tells categorical from numeric columns by their type, "
            "so X must be a pandas or polars data frame, got an array; for an array "
            "use `family='diag'` or `family='categorical'`."
        )
    levels = tuple(
        _distinct(values) if holds_levels else ()
        for values, holds_levels in zip(columns, is_level, strict=True)
    )
    return MixedReader(is_level, levels)


@dataclass(frozen=True, slots=True)
class NumberReader:
    """Numbers as they are."""

    @property
    def n_levels(self) -> IntArray:
        return np.zeros(0, dtype=np.intp)

    def rows(self, columns: Columns) -> NDArray[Any]:
        return np.column_stack(columns)

    def values(self, rows: Any) -> NDArray[Any]:
        return rows

    def positions(self, features: IntArray) -> IntArray:
        return features

    def merged(self, others: Sequence[Self]) -> Self:
        return self

    def restricted(self, seen: Sequence[BoolArray]) -> Self:
        return self


@dataclass(frozen=True, slots=True)
class LevelReader:
    """Every column holds levels."""

    levels: tuple[tuple[Any, ...], ...]

    @property
    def n_levels(self) -> IntArray:
        # A column without any level counts as a constant one.
        return np.array([max(len(values), 1) for values in self.levels])

    def rows(self, columns: Columns) -> IntArray:
        return _level_codes(columns, self.levels)

    def values(self, rows: Any) -> NDArray[Any]:
        columns = [
            np.array([*levels, None], dtype=object)[codes]
            for levels, codes in zip(self.levels, rows.T, strict=True)
        ]
        return np.column_stack(columns)

    def positions(self, features: IntArray) -> IntArray:
        return features

    def merged(self, others: Sequence[Self]) -> Self:
        levels = [self.levels, *(other.levels for other in others)]
        return replace(self, levels=_union(levels))

    def restricted(self, seen: Sequence[BoolArray]) -> Self:
        return replace(self, levels=_only(self.levels, seen))


@dataclass(frozen=True, slots=True)
class MixedReader:
    """Some columns hold levels, the others numbers."""

    is_level: NDArray[np.bool_]
    levels: tuple[tuple[Any, ...], ...]  # empty for the numeric columns

    @property
    def n_levels(self) -> IntArray:
        return np.array(
            [
                max(len(v), 1)
                for v, chosen in zip(self.levels, self.is_level, strict=True)
                if chosen
            ],
            dtype=np.intp,
        )

    def values(self, rows: Any) -> NDArray[Any]:
        raise TypeError("numbers beside levels are no array.")

    def rows(self, columns: Columns) -> MixedRows:
        pairs = list(zip(columns, self.is_level, strict=True))
        numeric = [values for values, is_level in pairs if not is_level]
        named = [values for values, is_level in pairs if is_level]
        numbers = np.column_stack([np.zeros((len(columns[0]), 0)), *numeric])
        levels = [self.levels[j] for j in np.flatnonzero(self.is_level)]
        return MixedRows(numbers.astype(np.float64), _level_codes(named, levels))

    def positions(self, features: IntArray) -> IntArray:
        # The family counts the numbers first and then the levels.
        return np.argsort(self.is_level, kind="stable")[features]

    def merged(self, others: Sequence[Self]) -> Self:
        levels = [self.levels, *(other.levels for other in others)]
        return replace(self, levels=_union(levels))

    def restricted(self, seen: Sequence[BoolArray]) -> Self:
        chosen = iter(seen)
        everything = np.zeros(0, dtype=np.bool_)
        of_columns = [next(chosen) if held else everything for held in self.is_level]
        return replace(self, levels=_only(self.levels, of_columns))


def row_keys(rows: Any) -> NDArray[Any]:
    """Numbers that tell the rows apart, (m, n_keys); a missing one is infinite."""
    keys = np.asarray(rows)
    if isinstance(rows, MixedRows):
        keys = np.hstack([rows.numbers, rows.levels])
    if keys.dtype.kind == "f" and np.isnan(keys).any():
        keys = np.where(np.isnan(keys), np.inf, keys)
    return keys


def seen_levels(rows: Any, n_levels: IntArray) -> list[BoolArray]:
    """Which levels of each categorical feature occur among the rows."""
    codes = getattr(rows, "levels", rows)
    return [
        np.bincount(codes[codes[:, j] >= 0, j], minlength=n)[:n] > 0
        for j, n in enumerate(n_levels)
    ]


def recoded(rows: Any, seen: Sequence[BoolArray]) -> Any:
    """Rows as a table reads them that knows only these levels."""
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
    """Levels in sorted order, numbers before words; a missing value is none."""
    return _in_order(level for level in _factorise(values)[0] if level is not None)


def _union(levels: Sequence[tuple[tuple[Any, ...], ...]]) -> tuple[Any, ...]:
    """Levels of each column that occur anywhere."""
    columns = zip(*levels, strict=True)
    return tuple(_in_order(set(chain.from_iterable(column))) for column in columns)


def _only(
    levels: tuple[tuple[Any, ...], ...], seen: Sequence[BoolArray]
) -> tuple[tuple[Any, ...], ...]:
    return tuple(
        tuple(level for level, is_seen in zip(column, known, strict=False) if is_seen)
        for column, known in zip(levels, seen, strict=True)
    )


def _in_order(levels: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(
        sorted(
            levels,
            key=lambda v: (isinstance(v, str), v),
        )
    )


def _level_codes(columns: Columns, levels: Any) -> IntArray:
    """Position of each value among the levels of its column, or `UNSEEN`, `MISSING`."""
    codes = np.empty((len(columns[0]) if columns else 0, len(columns)), dtype=np.intp)
    for j, (values, known) in enumerate(zip(columns, levels, strict=True)):
        position = {level: k for k, level in enumerate(known)} | {None: MISSING}
        distinct, inverse = _factorise(values)
        codes[:, j] = np.array([position.get(v, UNSEEN) for v in distinct])[inverse]
    return codes
