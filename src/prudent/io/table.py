"""The table as it was read: typed columns, and where each row stands in the file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute

from prudent.io.errors import TableError, closest, listed, shown

__all__ = [
    "MISSING_WORDS",
    "Table",
    "TableSource",
    "check_column",
    "check_unique",
    "is_number",
    "is_text",
    "part_rows",
]

MISSING_WORDS = ("", "NA", "N/A", "NaN", "nan", "NULL", "null", "None", "?")
# Cells of a part: 8 MB as numbers, enough for the work to outweigh the calls.
PART_CELLS = 1_000_000


class TableSource(Protocol):
    """A table that can be read in parts, from its start, as often as is needed.

    Attributes
    ----------
    name : str
        What the user calls it.
    names : sequence of str
        Names of the columns, in the order of the file.
    schema : pyarrow.Schema
        Their types, in every part.
    n_bytes : int
        Bytes of the text, or of the columns as float64.
    """

    @property
    def name(self) -> str: ...

    @property
    def names(self) -> Sequence[str]: ...

    @property
    def schema(self) -> pa.Schema: ...

    @property
    def n_bytes(self) -> int: ...

    def parts(self, columns: Sequence[str]) -> Iterator[Table]:
        """Yield the rows in order, a part at a time, with some of the columns."""
        ...

    def whole(self) -> Table:
        """Return all rows in memory."""
        ...


@dataclass(frozen=True)
class Table:
    """Columns of one table, or of a part of it, before anything is decided about them.

    Attributes
    ----------
    columns : pyarrow.Table
        Numbers where every cell is one, else text.
    name : str
        What the user calls it.
    place : callable
        Maps a row number (from 0) to the place in the file, such as "line 17".
    decimal : str
        Decimal mark, for columns that were kept as text.
    """

    columns: pa.Table
    name: str
    place: Callable[[int], str]
    decimal: str = "."

    @property
    def names(self) -> list[str]:
        """Column names, in the order of the file."""
        return list(self.columns.column_names)

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        return self.columns.schema

    @property
    def n_rows(self) -> int:
        """Number of data rows."""
        return int(self.columns.num_rows)

    @property
    def n_bytes(self) -> int:
        """Bytes of the columns in memory."""
        return int(self.columns.nbytes)

    def parts(self, columns: Sequence[str]) -> Iterator[Table]:
        """Yield slices of some columns; nothing is copied."""
        chosen = self.columns.select(columns)
        step = part_rows(len(columns))
        for start in range(0, self.n_rows, step):
            part = chosen.slice(start, step)
            yield Table(part, self.name, self._place_after(start), self.decimal)

    def whole(self) -> Table:
        """Return the table itself."""
        return self

    def text(self, name: str) -> pa.ChunkedArray:
        """Return a column as text without surrounding blanks; missing is empty."""
        check_column(name, self.names)
        text = compute.cast(self.columns[name], pa.string())
        return compute.utf8_trim_whitespace(compute.fill_null(text, ""))

    def encoded(self, name: str) -> tuple[NDArray[np.intp], NDArray[np.str_]]:
        """Return `text` as positions in an array of the distinct words."""
        encoded = compute.dictionary_encode(self.text(name)).combine_chunks()
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.intp)
        return codes, np.array(encoded.dictionary.to_pylist(), dtype=str)

    def words(self, name: str) -> NDArray[np.str_]:
        """Return `text` as an array; each distinct word is made once."""
        codes, distinct = self.encoded(name)
        return distinct[codes]

    def _place_after(self, start: int) -> Callable[[int], str]:
        return lambda row: self.place(start + row)


def part_rows(n_columns: int) -> int:
    """Rows of a part of so many columns."""
    return max(1, PART_CELLS // n_columns)


def check_column(name: str, names: Sequence[str]) -> None:
    """Raise `TableError` unless `name` is among the column names."""
    if name in names:
        return
    similar = closest(name, names)
    raise TableError(
        f"no column {shown(name)}. Columns: {listed(names)}."
        + (f" Closest: {shown(similar)}" if similar else "")
    )


def check_unique(names: Sequence[str]) -> None:
    """Raise `TableError` if a column name occurs twice."""
    for name, count in Counter(names).items():
        if count > 1:
            positions = [j for j, other in enumerate(names, 1) if other == name]
            raise TableError(
                f"column name {shown(name)} appears {count} times "
                f"(positions {listed(positions)}). Rename one"
            )


def is_number(text: str, decimal: str = ".") -> bool:
    """Whether a text is a number and not a word for "missing".

    Examples
    --------
    >>> is_number("-1.5e3"), is_number("x"), is_number("1_0"), is_number("nan")
    (True, False, False, False)
    """
    try:
        value = float(text.replace(decimal, "."))
    except ValueError:
        return False
    return value == value and "_" not in text


def is_text(kind: pa.DataType) -> bool:
    """Whether cells of this type are no numbers, true or false, or all missing."""
    return not (
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_null(kind)
    )
