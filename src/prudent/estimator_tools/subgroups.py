"""Which subgroups of the population hold the rows of a table, as users name them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from sklearn.utils.validation import _num_samples

from prudent.core.types import BoolArray
from prudent.core.validation import as_flags, shown
from prudent.rules.parts import (
    MISSING,
    Cells,
    Crossing,
    Factor,
    cells_in,
    crossings_of,
    factors_of,
    members_of,
    names_of,
    value_text,
)
from prudent.rules.subgroups import Memberships, rows_named

#: What `subgroups=` takes.
SubgroupsOption = Sequence[str | int] | str | int | Callable[[Any], Any] | None
REST = "rest"


@dataclass(frozen=True, eq=False)
class Subgroups:
    """The subgroups that the rows of a fit have shown.

    They are parts by columns, or what a function of rows says of them.
    """

    crossings: tuple[Crossing, ...] = ()
    function: Callable[[Any], Any] | None = None
    names: tuple[str, ...] = ()
    has_rest: bool = False

    @classmethod
    def learn(cls, option: SubgroupsOption, X: Any) -> Subgroups:
        """The subgroups of these rows, as `subgroups=` names them.

        Raises ValueError where the option names no column of theirs, or a column of
        numbers without bands; TypeError where it is none.
        """
        if callable(option):
            return cls._learned_from(option, X)
        items: list[Any] = [option]
        if isinstance(option, Iterable) and not isinstance(option, str):
            items = list(option)
        if not items:
            raise ValueError("`subgroups` must name at least one column, got none.")
        return cls._parted([factors_of(item) for item in items], X)

    @classmethod
    def _learned_from(cls, function: Callable[[Any], Any], X: Any) -> Subgroups:
        """What a function says of the rows: their labels, or which subgroup holds."""
        labels = _answer(function, X)
        if isinstance(labels, Memberships):
            names = labels.names
            rest = not labels.members.any(axis=1).all()
            return cls((), function, (*names, REST) if rest else names, rest)
        return cls._parted([(Factor(c),) for c in labels.columns], labels, function)

    @classmethod
    def _parted(
        cls,
        crossed: Sequence[tuple[Factor, ...]],
        rows: Any,
        function: Callable[[Any], Any] | None = None,
    ) -> Subgroups:
        """The parts of rows by columns."""
        crossings = crossings_of(crossed, lambda column: _column(rows, column))
        return cls(crossings, function, names_of(crossings))

    def are(self, items: Sequence[str]) -> bool:
        """Whether these are the parts that a list of columns stands for."""
        asked = {_places(factors_of(item)) for item in items}
        known = {_places(crossing.factors) for crossing in self.crossings}
        return self.function is None and asked == known

    @property
    def factors(self) -> tuple[Factor, ...]:
        """The columns that part the rows, each once; none where a function does."""
        crossed = (factor for crossing in self.crossings for factor in crossing.factors)
        factors = {} if self.function else {factor.column: factor for factor in crossed}
        return tuple(factors.values())

    def memberships(self, X: Any) -> Memberships:
        """Which of the subgroups hold each row.

        None holds a row with a value that was not seen, whatever else it has.
        """
        rows = X
        if self.function is not None:
            rows = _answer(self.function, X)
            if isinstance(rows, Memberships):
                members = rows.members
                if self.has_rest:
                    outside = ~members.any(axis=1, keepdims=True)
                    members = np.hstack([members, outside])
                return Memberships(members, self.names)
        members = members_of(
            self.crossings, lambda column: _column(rows, column, of_fit=False)
        )
        return Memberships(members, self.names)


def memberships_of(option: Any, X: Any) -> Memberships:
    """Which subgroups hold each row, by an option or by the table that says it."""
    if isinstance(option, Memberships):
        if len(option) != _num_samples(X):
            raise ValueError(
                f"subgroups: {len(option)} rows for {_num_samples(X)} rows of X."
            )
        return option
    if callable(option) or isinstance(option, str | int | list | tuple):
        return Subgroups.learn(option, X).memberships(X)
    return Subgroups.learn(lambda _: option, X).memberships(X)


def names_of_subgroups(option: SubgroupsOption) -> list[str]:
    """What subgroups are by, in words.

    Examples
    --------
    >>> names_of_subgroups(["sex", 3])
    ['sex', 'column 3']
    """
    if callable(option):
        return ["subgroup"]
    items = [option] if isinstance(option, str | int) else list(option or ())
    return [item if isinstance(item, str) else f"column {item}" for item in items]


def columns_of(items: Sequence[str]) -> list[str]:
    """Names of the columns that part the rows, each once.

    Examples
    --------
    >>> columns_of(["sex*age:30,45", "site", "sex"])
    ['sex', 'age', 'site']
    """
    factors = (factor for item in items for factor in factors_of(item))
    return list(dict.fromkeys(factor.name for factor in factors))


def rows_of(name: str, table: Any, n_rows: int) -> BoolArray:
    """Which rows are of a subgroup, as a promise names it.

    Parameters
    ----------
    name : str
        Such as "sex=Female", or of rows that several hold, "sex=Female and age<30".
    table : array-like of bool, shape (n_rows,), or data frame of n_rows rows
        Which rows are of it; or a column of bool for each subgroup, or of labels.
    n_rows : int

    Returns
    -------
    ndarray of bool, shape (n_rows,)
    """
    if np.ndim(table) == 1:
        what = "`subgroups` must hold a bool for each row, or be a data frame: a cell"
        rows = as_flags(what, table)
        if len(rows) != n_rows:
            raise ValueError(f"subgroups: {len(rows)} rows for {n_rows} rows.")
        return rows
    frame = nw.from_native(table, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        if len(frame) != n_rows:
            raise ValueError(f"subgroups: {len(frame)} rows for {n_rows} rows.")
        parts = _parts_told(name, frame)
        if parts:
            return np.logical_and.reduce([_rows_told(part, frame) for part in parts])
    inside = memberships_of(table, np.arange(n_rows))
    if name != REST and not _is_of(name, inside.names):  # no row need be of the rest
        raise _untold(name, frame)
    return rows_named(inside, name)


def _is_of(name: str, names: Sequence[str]) -> bool:
    """Whether a name is one of these, or several of them joined by "and"."""
    if name in names:
        return True
    starts = [f"{own} and " for own in names if name.startswith(f"{own} and ")]
    return any(_is_of(name.removeprefix(start), names) for start in starts)


def _parts_told(name: str, frame: Any) -> list[str]:
    """The parts of a name that a frame tells, by flags of their names or by labels.

    None where the frame holds flags alone, and none of the name: those are all of the
    subgroups, and the name is that of a cell, or of the rest.
    """
    flags = [c for c in frame.columns if frame[c].dtype == nw.Boolean]
    if name in flags:
        return [name]
    labels = tuple(f"{column}=" for column in frame.columns)
    words = name.split(" and ")
    has_labels = any(word.startswith(labels) for word in words)
    if len(flags) == len(frame.columns) and not has_labels:
        return []
    parts: list[str] = []
    for word in words:
        if word in flags or word.startswith(labels):
            parts.append(word)
        elif parts and parts[-1] not in flags and not re.search("[<>=]", word):
            parts[-1] += f" and {word}"  # a label of these words
        else:
            raise _untold(name, frame)
    return parts


def _rows_told(part: str, frame: Any) -> BoolArray:
    """Which rows are of one part, by a flag of its name or by a column of labels."""
    if part in frame.columns:
        return as_flags(f"subgroups: {shown(part)}", frame[part].to_numpy())
    column = max((c for c in frame.columns if part.startswith(f"{c}=")), key=len)
    label = part.removeprefix(f"{column}=")
    values, missing = _column(frame, column)
    rows = np.array([value_text(v) == label for v in values.tolist()], dtype=bool)
    # A rule by groups calls the group of empty cells "".
    return missing | rows if label in ("", MISSING) else rows & ~missing


def _untold(name: str, table: Any) -> ValueError:
    """What to say where a table does not tell the rows of a subgroup."""
    columns = getattr(table, "columns", None)
    silent = f"columns {', '.join(map(str, columns))} do" if columns else "table does"
    return ValueError(
        f"subgroups: the promise is about {shown(name)}, which the {silent} not tell: "
        "give a bool for each row."
    )


def _places(factors: Sequence[Factor]) -> tuple[Any, ...]:
    """What says how factors part rows, whatever values these have shown."""
    places = ((str(factor.column), factor.bounds) for factor in factors)
    return tuple(sorted(places))


def _answer(function: Callable[[Any], Any], X: Any) -> Any:
    """What a function says of rows: memberships, or a table of labels."""
    answer = function(X)
    n_rows = _num_samples(X)
    frame = nw.from_native(answer, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        if len(frame) != n_rows:
            raise ValueError(f"subgroups: {len(frame)} rows for {n_rows} rows of X.")
        if all(series.dtype == nw.Boolean for series in frame.iter_columns()):
            return Memberships(frame.to_numpy().astype(bool), tuple(frame.columns))
        return frame
    members = np.asarray(answer)
    if members.ndim != 2 or members.dtype != np.bool_ or not members.shape[1]:
        raise ValueError(
            "subgroups: the function must give a matrix of bool, a column for each "
            "subgroup, or a data frame of labels, got an array of shape "
            f"{members.shape} and type {members.dtype}."
        )
    if len(members) != n_rows:
        raise ValueError(f"subgroups: {len(members)} rows for {n_rows} rows of X.")
    names = tuple(f"subgroup {g}" for g in range(members.shape[1]))
    return Memberships(members, names)


def _column(X: Any, column: str | int, *, of_fit: bool = True) -> Cells:
    """Values of a column, numbers as float and all else as text, and which lack.

    "column 2" is the one at position 2, unless a column has that name.
    """
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    has_names = isinstance(frame, nw.DataFrame)
    position = re.fullmatch(r"column (-?\d+)", str(column))
    if position and not (has_names and column in frame.columns):
        column = int(position[1])
    if has_names:
        known = isinstance(column, int) or column in frame.columns
        if isinstance(column, int):
            known = -len(frame.columns) <= column < len(frame.columns)
        if not known:
            raise ValueError(
                f"subgroups: no column {column!r}; there are "
                f"{', '.join(map(str, frame.columns))}."
                if of_fit
                else f"the promise is by {column}, which the table lacks."
            )
        series = frame[frame.columns[column] if isinstance(column, int) else column]
        if series.dtype.is_numeric():
            return cells_in(series.cast(nw.Float64).to_numpy().astype(np.float64))
        return cells_in(np.array(series.to_list(), dtype=object))
    if not isinstance(column, int):
        raise ValueError(
            f"subgroups: no column {column!r}; the rows have no names of columns, "
            "so give positions, such as 2 or 'column 2:30,45,60'."
            if of_fit
            else f"the promise is by {column}, which the table lacks."
        )
    values = X.tocsc()[:, [column]].toarray() if hasattr(X, "tocsc") else X
    array = np.asarray(values)
    if array.ndim != 2 or (
        not hasattr(X, "tocsc") and not -array.shape[1] <= column < array.shape[1]
    ):
        raise ValueError(
            f"subgroups: no column {column}; the rows have shape {array.shape}."
        )
    return cells_in(array[:, 0 if hasattr(X, "tocsc") else column])
