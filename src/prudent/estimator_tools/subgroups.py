"""Which subgroups of the population hold the rows of a table, as users name them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _num_samples

from prudent.core.types import BoolArray, IntArray
from prudent.core.validation import shown
from prudent.rules.scores import places
from prudent.rules.subgroups import Memberships

#: Numbers with more different values need bands.
MOST_NUMBERS = 20
#: What `subgroups=` takes.
SubgroupsOption = Sequence[str | int] | str | int | Callable[[Any], Any] | None
MISSING, REST = "missing", "rest"


class BandsNeeded(ValueError):
    """A column of too many numbers to be parted by each; `bands` would do."""

    def __init__(self, reason: str, bands: str) -> None:
        super().__init__(reason, bands)
        self.reason = reason
        self.bands = bands

    def __str__(self) -> str:
        return f"{self.reason}: give bands, such as {self.bands!r}."


@dataclass(frozen=True, eq=False)
class Factor:
    """A column whose values, or bands of its values, part the rows."""

    column: str | int
    bounds: tuple[float, ...] = ()
    values: tuple[Any, ...] = ()  # those seen, sorted: numbers, or texts; or of bands
    has_missing: bool = False

    @property
    def name(self) -> str:
        """What the column is called."""
        return self.column if isinstance(self.column, str) else f"column {self.column}"

    @property
    def names(self) -> list[str]:
        """Names of the parts."""
        names = [f"{self.name}={_text(value)}" for value in self.values]
        if self.bounds:
            low, high = _text(self.bounds[0]), _text(self.bounds[-1])
            between = [
                f"{_text(a)}<={self.name}<{_text(b)}"
                for a, b in zip(self.bounds[:-1], self.bounds[1:], strict=True)
            ]
            names = [f"{self.name}<{low}", *between, f"{self.name}>={high}"]
        return [*names, f"{self.name}={MISSING}"] if self.has_missing else names

    def learned(self, X: Any) -> Factor:
        """The factor with the values of these rows."""
        values, missing = _column(X, self.column)
        seen = np.unique(values[~missing])
        if self.bounds:
            if values.dtype.kind != "f":
                raise ValueError(
                    f"subgroups: {shown(self.column)} has bands and holds no numbers."
                )
            seen = np.arange(len(self.bounds) + 1)
        elif values.dtype.kind == "f" and len(seen) > MOST_NUMBERS:
            raise BandsNeeded(
                f"{shown(self.column)} has {len(seen)} values",
                f"{self.name}:{_cuts(seen)}",
            )
        return Factor(
            self.column, self.bounds, tuple(seen.tolist()), bool(missing.any())
        )

    def codes(self, X: Any) -> IntArray:
        """Place of the part of each row, -1 for a value that was not seen."""
        values, missing = _column(X, self.column, of_fit=False)
        n_parts = len(self.values)
        codes = np.full(len(values), -1, dtype=np.intp)
        if self.bounds and values.dtype.kind == "f":
            codes = np.searchsorted(self.bounds, values, side="right").astype(np.intp)
        elif n_parts and (values.dtype.kind == "f") == isinstance(
            self.values[0], float
        ):
            codes[~missing] = places(values[~missing], self.values)
        codes[missing] = n_parts if self.has_missing else -1
        return codes


@dataclass(frozen=True, eq=False)
class Crossing:
    """Factors whose parts are crossed, so that each row is in one part at most."""

    factors: tuple[Factor, ...]
    parts: tuple[int, ...] = ()  # crossings seen, sorted

    @property
    def names(self) -> list[str]:
        """Names of the parts."""
        names = [factor.names for factor in self.factors]
        unravelled = [
            np.unravel_index(part, [len(own) for own in names]) for part in self.parts
        ]
        return [
            " and ".join(own[int(at)] for own, at in zip(names, place, strict=True))
            for place in unravelled
        ]

    def learned(self, X: Any) -> Crossing:
        """The crossing with the values of these rows."""
        known = Crossing(tuple(factor.learned(X) for factor in self.factors))
        parts = np.unique(known._crossed(X))
        return Crossing(known.factors, tuple(parts.tolist()))

    def members(self, X: Any) -> BoolArray:
        """Which parts hold each row; none holds one that was not seen."""
        members: BoolArray = self._crossed(X)[:, None] == np.array(self.parts)
        return members

    def _crossed(self, X: Any) -> IntArray:
        """Number of the crossing of each row, -1 where a value was not seen."""
        number = np.zeros(_num_samples(X), dtype=np.intp)
        unseen = np.zeros(len(number), dtype=bool)
        for factor in self.factors:
            codes = factor.codes(X)
            unseen |= codes < 0
            number = number * len(factor.names) + codes
        return np.where(unseen, -1, number)


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
        items = [option] if isinstance(option, str | int) else list(option or ())
        if not items:
            raise ValueError("`subgroups` must name at least one column, got none.")
        crossings = tuple(Crossing(_factors(item)).learned(X) for item in items)
        names = [name for crossing in crossings for name in crossing.names]
        return cls(crossings, None, tuple(names))

    @classmethod
    def _learned_from(cls, function: Callable[[Any], Any], X: Any) -> Subgroups:
        """What a function says of the rows: their labels, or which subgroup holds."""
        labels = _answer(function, X)
        if isinstance(labels, Memberships):
            names = labels.names
            rest = not labels.members.any(axis=1).all()
            return cls((), function, (*names, REST) if rest else names, rest)
        crossings = tuple(
            Crossing((Factor(column),)).learned(labels) for column in labels.columns
        )
        every = [name for crossing in crossings for name in crossing.names]
        return cls(crossings, function, tuple(every))

    def are(self, items: Sequence[str]) -> bool:
        """Whether these are the parts that a list of columns stands for."""
        asked = {_places(_factors(item)) for item in items}
        known = {_places(crossing.factors) for crossing in self.crossings}
        return self.function is None and asked == known

    @property
    def factors(self) -> tuple[Factor, ...]:
        """The columns that part the rows, each once; none where a function does."""
        crossed = (factor for crossing in self.crossings for factor in crossing.factors)
        found = {} if self.function else {factor.column: factor for factor in crossed}
        return tuple(found.values())

    def of(self, X: Any) -> Memberships:
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
        parts = [crossing.members(rows) for crossing in self.crossings]
        seen = np.all([part.any(axis=1) for part in parts], axis=0)
        return Memberships(np.hstack(parts) & seen[:, None], self.names)


def memberships_of(option: Any, X: Any) -> Memberships:
    """Which subgroups hold each row, by an option or by the table that says it."""
    if isinstance(option, Memberships):
        if len(option) != _num_samples(X):
            raise ValueError(
                f"subgroups: {len(option)} rows for {_num_samples(X)} rows of X."
            )
        return option
    if callable(option) or isinstance(option, str | int | list | tuple):
        return Subgroups.learn(option, X).of(X)
    return Subgroups.learn(lambda _: option, X).of(X)


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
    factors = (factor for item in items for factor in _factors(item))
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
        rows: BoolArray = np.asarray(table, dtype=bool)
        if len(rows) != n_rows:
            raise ValueError(f"subgroups: {len(rows)} rows for {n_rows} rows.")
        return rows
    inside = memberships_of(table, np.arange(n_rows))
    known = dict(zip(inside.names, inside.members.T, strict=True))
    parts = [name] if name in known else name.split(" and ")
    none = np.zeros(n_rows, dtype=bool)
    return np.logical_and.reduce([known.get(part, none) for part in parts])


def _places(factors: Sequence[Factor]) -> tuple[Any, ...]:
    """What says how factors part rows, whatever values these have shown."""
    places = ((str(factor.column), factor.bounds) for factor in factors)
    return tuple(sorted(places))


def _factors(item: str | int) -> tuple[Factor, ...]:
    """The columns that an item crosses."""
    if isinstance(item, int | np.integer) and not isinstance(item, bool):
        return (Factor(int(item)),)
    if not isinstance(item, str):
        raise TypeError(
            "`subgroups` must be a list of names or positions of columns, or a "
            f"function of rows, got {shown(item)}."
        )
    factors = []
    for part in item.split("*"):
        column, colon, cuts = part.partition(":")
        try:
            bounds = tuple(float(cut) for cut in cuts.split(",")) if colon else ()
        except ValueError:
            bounds = (math.nan,)
        rising = all(low < high for low, high in pairwise(bounds))
        if not (rising and all(map(math.isfinite, bounds))):
            raise ValueError(
                f"subgroups: the bands of {part!r} must be rising numbers, such as "
                "'age:30,45,60'."
            )
        factors.append(Factor(column.strip(), bounds))
    return tuple(factors)


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


def _column(
    X: Any, column: str | int, *, of_fit: bool = True
) -> tuple[NDArray[Any], BoolArray]:
    """Values of a column, numbers as float and all else as text, and which lack."""
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    cells: NDArray[Any]
    if isinstance(frame, nw.DataFrame):
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
            numbers = series.cast(nw.Float64).to_numpy().astype(np.float64)
            return numbers, np.isnan(numbers)
        cells = np.array(series.to_list(), dtype=object)
    else:
        values = X.tocsc()[:, [column]].toarray() if hasattr(X, "tocsc") else X
        array = np.asarray(values)
        if not isinstance(column, int):
            raise ValueError(
                f"subgroups: no column {column!r}; the rows have no names of columns, "
                "so give positions."
                if of_fit
                else f"the promise is by {column}, which the table lacks."
            )
        if array.ndim != 2 or (
            not hasattr(X, "tocsc") and not -array.shape[1] <= column < array.shape[1]
        ):
            raise ValueError(
                f"subgroups: no column {column}; the rows have shape {array.shape}."
            )
        cells = array[:, 0 if hasattr(X, "tocsc") else column]
        if cells.dtype.kind in "fiub":
            numbers = cells.astype(np.float64)
            return numbers, np.isnan(numbers)
    missing = np.array([cell is None or cell != cell for cell in cells], dtype=bool)
    return np.array([str(cell) for cell in cells]), missing


def _text(value: Any) -> str:
    """A value as names show it."""
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def _cuts(values: NDArray[Any]) -> str:
    """Three round numbers that part the values."""
    cuts = np.unique(np.quantile(values, (0.25, 0.5, 0.75), method="nearest"))
    return ",".join(_text(float(cut)) for cut in cuts)
