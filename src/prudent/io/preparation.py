"""From a table to numbers: which columns, what to do with text and missing cells."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from prudent.io.checks import labels_from_words, notes_on_classes, notes_on_features
from prudent.io.columns import holds_numbers, indicators, numbers, text_column, words
from prudent.io.errors import TableError, counted, listed, shown, thousands
from prudent.io.table import Table

__all__ = ["Categorical", "Column", "Missing", "Preparation", "TrainingData"]
__all__ += ["training_data"]

Missing = Literal["error", "drop-rows", "mean"]
Categorical = Literal["error", "onehot", "drop"]
MOST_LEVELS = 100
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Column:
    """How one column becomes numbers.

    Attributes
    ----------
    name : str
        Name in the table.
    levels : tuple of str
        Empty for a number; else the words of a categorical column, of which each
        but the first gives one 0/1 indicator.
    """

    name: str
    levels: tuple[str, ...] = ()

    @property
    def feature_names(self) -> list[str]:
        """Names of the numbers this column gives."""
        if not self.levels:
            return [self.name]
        return [f"{self.name}={level}" for level in self.levels[1:]]


@dataclass(frozen=True, slots=True)
class Preparation:
    """What was decided on the training table, to be repeated on every later one.

    Attributes
    ----------
    columns : tuple of Column
        Feature columns, in the order of training.
    fill : tuple of float
        Stand-in of a missing cell for each feature; empty if they are refused.
    """

    columns: tuple[Column, ...]
    fill: tuple[float, ...] = ()

    @property
    def feature_names(self) -> list[str]:
        """Names of the features, in the order of the array's columns."""
        return [name for column in self.columns for name in column.feature_names]

    def transform(self, table: Table) -> FloatArray:
        """Return the features of a table, its columns matched by name.

        Raises
        ------
        TableError
            If a column is absent, or holds text, infinite or (without `fill`)
            missing values, or a word that training did not see.
        """
        for column in self.columns:
            table.check_column(column.name)
            if not column.levels and not holds_numbers(table, column.name):
                raise text_column(table, column.name)
        X = self.read(table)
        if self.fill:
            return np.where(np.isnan(X), self.fill, X)
        everything = np.ones(len(X), dtype=bool)
        if np.isnan(X).any():
            raise _missing_cells(X, self.feature_names, everything)
        return X

    def read(self, table: Table) -> FloatArray:
        """Return the features with NaN for missing cells."""
        X = np.empty((table.n_rows, len(self.feature_names)))
        position = 0
        for column in self.columns:
            width = len(column.feature_names)
            block = X[:, position : position + width]
            if column.levels:
                block[...] = indicators(table, column.name, column.levels)
            else:
                block[:, 0] = numbers(table, column.name)
            position += width
        _check_finite(X, table, self.feature_names)
        return X

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Self:
        """Read back what `dataclasses.asdict` gave, from a model file."""
        columns = tuple(
            Column(c["name"], tuple(c["levels"])) for c in stored["columns"]
        )
        return cls(columns, tuple(stored["fill"]))


@dataclass(frozen=True)
class TrainingData:
    """Arrays ready for a fit.

    Attributes
    ----------
    X : ndarray of shape (n_rows, n_features)
        Finite numbers.
    y : ndarray of shape (n_rows,) or None
        Labels, integers where every label is one, else text; None without target.
    preparation : Preparation
        How `X` came about.
    notes : tuple of str
        What a reader should know about the data, one sentence each.
    constant : tuple of str
        Columns of one value, which were left out.
    rows : ndarray of int, shape (n_rows,)
        Positions of the rows in the table.
    """

    X: FloatArray
    y: NDArray[Any] | None
    preparation: Preparation
    notes: tuple[str, ...]
    constant: tuple[str, ...]
    rows: NDArray[np.intp]


def training_data(
    table: Table,
    target: str | None,
    *,
    features: Sequence[str] | None = None,
    drop: Collection[str] = (),
    missing: Missing = "error",
    categorical: Categorical = "error",
) -> TrainingData:
    """Check a table and turn it into arrays.

    Parameters
    ----------
    table : Table
        As read.
    target : str or None
        Label column; None for data without labels.
    features : sequence of str, default=None
        Feature columns; None takes all but the target.
    drop : collection of str, default=()
        Columns left out.
    missing : {"error", "drop-rows", "mean"}, default="error"
        Rows with missing cells are refused, left out, or filled with the mean of
        the column over all rows (for indicators: the share of the word).
    categorical : {"error", "onehot", "drop"}, default="error"
        Text columns are refused, turned into indicators, or left out.

    Raises
    ------
    TableError
        If the table cannot be used so; the message says where and what to try.
    """
    names = _feature_columns(table, target, features, drop)
    if target is None:
        labels, kept = None, np.ones(table.n_rows, dtype=bool)
    else:
        labels = table.words(target)
        kept = _rows_with_target(table, target, labels, missing)
        labels_from_words(labels[kept], target)  # one class, a continuous target
    columns, notes = _choose_columns(table, names, categorical)
    preparation = Preparation(columns)
    X = preparation.read(table)
    absent = np.isnan(X)
    if absent[kept].any():
        X, kept, fill, note = _without_missing(
            X, absent, kept, preparation.feature_names, missing
        )
        preparation = replace(preparation, fill=fill)
        notes.append(note)
    if not kept.all():
        notes.append(f"{counted(int((~kept).sum()), 'row')} left out")
        X, labels = X[kept], None if labels is None else labels[kept]
    X, preparation, dropped = _without_constants(X, preparation)
    notes += [f"column {shown(name)} is constant: dropped" for name in dropped]
    notes += notes_on_features(X, preparation.feature_names)
    y = None
    if labels is not None and target is not None:
        y = labels_from_words(labels, target)
        notes += notes_on_classes(y, X.shape[1])
    return TrainingData(
        X, y, preparation, tuple(notes), tuple(dropped), np.flatnonzero(kept)
    )


def _feature_columns(
    table: Table,
    target: str | None,
    features: Sequence[str] | None,
    drop: Collection[str],
) -> list[str]:
    for name in (*([] if target is None else [target]), *(features or ()), *drop):
        table.check_column(name)
    left_out = {target, *drop}
    names = [name for name in features or table.names if name not in left_out]
    if not names:
        raise TableError(
            f"{table.name} has no feature column left. "
            "Its columns are the target or dropped"
        )
    return names


def _rows_with_target(
    table: Table, target: str, labels: NDArray[np.str_], missing: Missing
) -> BoolArray:
    kept: BoolArray = labels != ""
    count = int((~kept).sum())
    if count == len(labels):
        raise TableError(f"target {shown(target)} is empty in every row.")
    if count and missing != "drop-rows":
        raise TableError(
            f"{counted(count, 'row')} {'has' if count == 1 else 'have'} no target "
            f"{shown(target)} (first at {table.place(int(np.argmin(kept)))}). "
            "use --missing drop-rows"
        )
    return kept


def _choose_columns(
    table: Table, names: Sequence[str], categorical: Categorical
) -> tuple[tuple[Column, ...], list[str]]:
    columns: list[Column] = []
    notes: list[str] = []
    for name in names:
        if holds_numbers(table, name):
            columns.append(Column(name))
            continue
        if categorical == "error":
            raise text_column(table, name)
        levels = tuple(np.unique(words(table, name)).tolist())
        levels = tuple(level for level in levels if level)
        if categorical == "drop":
            notes.append(f"column {shown(name)} is text: dropped")
        elif len(levels) > MOST_LEVELS:
            raise TableError(
                f"column {shown(name)} has {thousands(len(levels))} different words, "
                f"too many to be turned into indicators. use --drop {name}"
            )
        elif len(levels) < 2:
            notes.append(f"column {shown(name)} is constant: dropped")
        else:
            columns.append(Column(name, levels))
    if not columns:
        raise TableError(f"{table.name} has no feature column left. {notes[-1]}")
    return tuple(columns), notes


def _without_missing(
    X: FloatArray,
    absent: BoolArray,
    kept: BoolArray,
    names: Sequence[str],
    missing: Missing,
) -> tuple[FloatArray, BoolArray, tuple[float, ...], str]:
    """Return features, rows to keep, the stand-ins and a note, as `missing` asks."""
    if missing == "error":
        raise _missing_cells(X, names, kept)
    if missing == "drop-rows":
        complete = ~absent.any(axis=1)
        if not (complete & kept).any():
            raise TableError("every row has a missing value. use --missing mean")
        return X, kept & complete, (), "rows with missing values are left out"
    count = np.where(absent, 0, kept[:, None]).sum(axis=0)
    if not count.all():
        empty = [names[j] for j in np.flatnonzero(count == 0).tolist()]
        raise TableError(f"no value at all in column {listed(empty)}. use --drop")
    mean = np.where(absent | ~kept[:, None], 0.0, X).sum(axis=0) / count
    note = (
        f"{counted(int(absent[kept].sum()), 'missing value')} filled with column means"
    )
    return np.where(absent, mean, X), kept, tuple(mean.tolist()), note


def _missing_cells(X: FloatArray, names: Sequence[str], kept: BoolArray) -> TableError:
    counts = np.isnan(X[kept]).sum(axis=0)
    where = [f"{names[j]}: {counts[j]}" for j in np.flatnonzero(counts).tolist()]
    return TableError(
        f"{counted(int(counts.sum()), 'missing value')} in "
        f"{counted(len(where), 'column')} ({listed(where)}). "
        "use --missing mean or drop-rows"
    )


def _check_finite(X: FloatArray, table: Table, names: Sequence[str]) -> None:
    infinite = np.isinf(X)
    if not infinite.any():
        return
    j = int(np.argmax(infinite.any(axis=0)))
    count = int(infinite[:, j].sum())
    place = table.place(int(np.argmax(infinite[:, j])))
    raise TableError(
        f"column {shown(names[j])} has {counted(count, 'infinite value')} "
        f"(first at {place}). Correct the cells or use --drop {names[j]}"
    )


def _without_constants(
    X: FloatArray, preparation: Preparation
) -> tuple[FloatArray, Preparation, list[str]]:
    """Leave out number columns of one value; indicators stay with their word."""
    single = {column.name for column in preparation.columns if not column.levels}
    constant = (X[:1] == X).all(axis=0)
    names = preparation.feature_names
    dropped = [
        name
        for name, flag in zip(names, constant, strict=True)
        if flag and name in single
    ]
    if not dropped:
        return X, preparation, []
    remaining = np.array([name not in dropped for name in names])
    if not remaining.any():
        raise TableError(f"every feature column is constant: {listed(dropped)}.")
    columns = tuple(c for c in preparation.columns if c.name not in dropped)
    fill = (
        tuple(np.asarray(preparation.fill)[remaining].tolist())
        if preparation.fill
        else ()
    )
    return X[:, remaining], replace(preparation, columns=columns, fill=fill), dropped
