"""The table as it was read: typed columns, and where each row stands in the file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute

from prudent.io.errors import TableError, closest, listed, shown

__all__ = ["MISSING_WORDS", "Table", "check_unique", "is_number"]

MISSING_WORDS = ("", "NA", "N/A", "NaN", "nan", "NULL", "null", "None", "?")


@dataclass(frozen=True)
class Table:
    """Columns of one table before anything is decided about them.

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
    def n_rows(self) -> int:
        """Number of data rows."""
        return int(self.columns.num_rows)

    def check_column(self, name: str) -> None:
        """Raise `TableError` unless there is a column `name`."""
        if name in self.names:
            return
        similar = closest(name, self.names)
        raise TableError(
            f"no column {shown(name)}. Columns: {listed(self.names)}."
            + (f" Closest: {shown(similar)}" if similar else "")
        )

    def text(self, name: str) -> pa.ChunkedArray:
        """Return a column as text without surrounding blanks; missing is empty."""
        self.check_column(name)
        text = compute.cast(self.columns[name], pa.string())
        return compute.utf8_trim_whitespace(compute.fill_null(text, ""))

    def words(self, name: str) -> NDArray[np.str_]:
        """Return `text` as an array; each distinct word is made once."""
        encoded = compute.dictionary_encode(self.text(name)).combine_chunks()
        distinct = np.array(encoded.dictionary.to_pylist(), dtype=str)
        return distinct[encoded.indices.to_numpy(zero_copy_only=False)]


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
