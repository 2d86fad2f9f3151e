"""From what the user passes to the rows that a family takes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Protocol, Self

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array

from prudent._compat import validate_data
from prudent.calibration.categorical import MixedRows
from prudent.estimator_tools import check_training, refuse_dask

__all__ = ["Table", "TrainingTable", "read_training", "recoded", "seen_levels"]

IntArray = NDArray[np.intp]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


class Table(Protocol):
    """Reads later rows of an estimator the way its training rows were read."""

    @property
    def n_levels(self) -> IntArray:
        """Number of levels of each categorical feature."""
        ...

    def read(self, estimator: Any, X: Any) -> Any:
        """Validated rows: numbers, level codes or both."""
        ...

    def positions(self, features: IntArray) -> IntArray:
        """Columns of X behind these features of the family."""
        ...

    def merged(self, others: Sequence[Self]) -> Self:
        """Table that also knows the levels of other rows of the same data."""
        ...

    def restricted(self, seen: Sequence[BoolArray]) -> Self:
        """Table that knows, of each categorical feature, only the levels seen."""
        ...


@dataclass(frozen=True, slots=True)
class TrainingTable:
    """Validated training rows of positive weight.

    Attributes
    ----------
    table : Table
        Reads further rows.
    rows : object
        Numbers (m, d), level codes (m, J), or `MixedRows`.
    y : ndarray of shape (m,)
    weight : ndarray of shape (m,)
    kept : ndarray of int, shape (m,)
        Positions among the rows given.
    """

    table: Table
    rows: Any
    y: NDArray[Any]
    weight: FloatArray
    kept: IntArray


def read_training(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    table: Table | None = None,
) -> TrainingTable:
    """Validate labelled rows and drop those of weight zero.

    With `table`, that of an earlier batch, the features must agree with it.
    """
    refuse_dask(X)
    if table is None:
        table, rows = _first_rows(estimator, X)
    else:
        rows = table.read(estimator, X)
    # Labels and weights are checked the same way whatever the features are, so the
    # row numbers stand in for the features.
    numbers = np.arange(len(rows))[:, np.newaxis]
    numbers, y, weight = check_training(type(estimator)(), numbers, y, sample_weight)
    kept = numbers[:, 0]
    if len(kept) < len(rows):
        rows = rows[kept]
    return TrainingTable(
        table, rows, y, np.ones(len(y)) if weight is None else weight, kept
    )


def _first_rows(estimator: Any, X: Any) -> tuple[Table, Any]:
    family = estimator.family
    if family not in ("categorical", "mixed"):
        return _NumberTable(), validate_data(estimator, X)
    columns = _columns(X)
    validate_data(estimator, X, skip_check_array=True)  # feature names and number
    if family == "categorical":
        levels = tuple(_distinct(values) for values in columns)
        table: Table = _LevelTable(levels)
        return table, _level_codes(columns, levels)
    frame = _frame(X)
    if frame is None:
        raise ValueError(
            "`family='mixed'` tells categorical from numeric columns by their type, "
            f"so X must be a pandas or polars data frame, got {type(X).__name__}; "
            "for an array use `family='diag'` or `family='categorical'`."
        )
    is_level = np.array([_holds_levels(dtype) for dtype in frame.schema.values()])
    levels = tuple(
        _distinct(values) if is_level[j] else () for j, values in enumerate(columns)
    )
    table = _MixedTable(is_level, levels)
    return table, table.split(columns)


@dataclass(frozen=True, slots=True)
class _NumberTable:
    @property
    def n_levels(self) -> IntArray:
        return np.zeros(0, dtype=np.intp)

    def read(self, estimator: Any, X: Any) -> NDArray[Any]:
        refuse_dask(X)
        return validate_data(estimator, X, reset=False)

    def positions(self, features: IntArray) -> IntArray:
        return features

    def merged(self, others: Sequence[Self]) -> Self:
        return self

    def restricted(self, seen: Sequence[BoolArray]) -> Self:
        return self


@dataclass(frozen=True, slots=True)
class _LevelTable:
    levels: tuple[tuple[Any, ...], ...]

    @property
    def n_levels(self) -> IntArray:
        return np.array([len(values) for values in self.levels])

    def read(self, estimator: Any, X: Any) -> IntArray:
        return _level_codes(_known_columns(estimator, X), self.levels)

    def positions(self, features: IntArray) -> IntArray:
        return features

    def merged(self, others: Sequence[Self]) -> Self:
        levels = [self.levels, *(other.levels for other in others)]
        return replace(self, levels=_union(levels))

    def restricted(self, seen: Sequence[BoolArray]) -> Self:
        return replace(self, levels=_only(self.levels, seen))


@dataclass(frozen=True, slots=True)
class _MixedTable:
    is_level: NDArray[np.bool_]
    levels: tuple[tuple[Any, ...], ...]  # empty for the numeric columns

    @property
    def n_levels(self) -> IntArray:
        return np.array(
            [
                len(v)
                for v, chosen in zip(self.levels, self.is_level, strict=True)
                if chosen
            ],
            dtype=np.intp,
        )

    def read(self, estimator: Any, X: Any) -> MixedRows:
        return self.split(_known_columns(estimator, X))

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

    def split(self, columns: list[NDArray[Any]]) -> MixedRows:
        """Numbers (m, d) and level codes (m, J) of the columns."""
        numeric = [columns[j] for j in np.flatnonzero(~self.is_level)]
        named = [columns[j] for j in np.flatnonzero(self.is_level)]
        numbers = np.column_stack([np.zeros((len(columns[0]), 0)), *numeric])
        if numeric:
            numbers = check_array(numbers, dtype=np.float64, input_name="X")
        levels = [self.levels[j] for j in np.flatnonzero(self.is_level)]
        return MixedRows(numbers, _level_codes(named, levels))


def seen_levels(rows: Any, n_levels: IntArray) -> list[BoolArray]:
    """Which levels of each categorical feature occur among the rows."""
    codes = getattr(rows, "levels", rows)
    return [
        np.bincount(codes[:, j], minlength=n)[:n] > 0 for j, n in enumerate(n_levels)
    ]


def recoded(rows: Any, seen: Sequence[BoolArray]) -> Any:
    """Rows as a table reads them that knows only these levels."""
    if isinstance(rows, MixedRows):
        return MixedRows(rows.numbers, recoded(rows.levels, seen))
    if not len(seen):
        return rows
    columns = [
        np.where(known, np.cumsum(known) - 1, -1)[codes]
        for known, codes in zip(seen, rows.T, strict=True)
    ]
    return np.column_stack(columns)


def _known_columns(estimator: Any, X: Any) -> list[NDArray[Any]]:
    refuse_dask(X)
    columns = _columns(X)
    validate_data(estimator, X, reset=False, skip_check_array=True)
    return columns


def _frame(X: Any) -> nw.DataFrame[Any] | None:
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    return frame if isinstance(frame, nw.DataFrame) else None


def _holds_levels(dtype: Any) -> bool:
    return dtype in (nw.String, nw.Categorical, nw.Enum, nw.Object, nw.Boolean)


def _columns(X: Any) -> list[NDArray[Any]]:
    """One array per column; missing values as None or NaN."""
    frame = _frame(X)
    if frame is None:
        # As an array, a list of numbers and words would become words alone.
        dtype = None if hasattr(X, "dtype") else object
        return list(check_array(X, dtype=dtype, ensure_all_finite=False).T)
    if not len(frame):
        raise ValueError(
            "Found array with 0 sample(s) while a minimum of 1 is required."
        )
    columns = []
    for series in frame.iter_columns():
        if _holds_levels(series.dtype) or series.is_null().any():
            values = np.array(series.to_list(), dtype=object)
            values[series.is_null().to_numpy()] = None
            columns.append(values)
        else:
            columns.append(series.to_numpy())
    return columns


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
    """Levels in sorted order, numbers before words, a missing value last."""
    return _in_order(_factorise(values)[0])


def _union(levels: Sequence[tuple[tuple[Any, ...], ...]]) -> tuple[Any, ...]:
    """Levels of each column that occur anywhere."""
    columns = zip(*levels, strict=True)
    return tuple(_in_order(set(chain.from_iterable(column))) for column in columns)


def _only(
    levels: tuple[tuple[Any, ...], ...], seen: Sequence[BoolArray]
) -> tuple[tuple[Any, ...], ...]:
    return tuple(
        tuple(level for level, is_seen in zip(column, known, strict=True) if is_seen)
        for column, known in zip(levels, seen, strict=True)
    )


def _in_order(levels: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(
        sorted(
            levels,
            key=lambda v: (v is None, isinstance(v, str), "" if v is None else v),
        )
    )


def _level_codes(columns: list[NDArray[Any]], levels: Any) -> IntArray:
    """Position of each value among the levels of its column (m, J); -1 if unseen."""
    codes = np.empty((len(columns[0]) if columns else 0, len(columns)), dtype=np.intp)
    for j, (values, known) in enumerate(zip(columns, levels, strict=True)):
        position = {level: k for k, level in enumerate(known)}
        distinct, inverse = _factorise(values)
        codes[:, j] = np.array([position.get(v, -1) for v in distinct])[inverse]
    return codes
