"""The table as it was read: typed columns, and where each row stands in the file."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute

from prudent.core.types import BoolArray, FloatArray, IntArray
from prudent.core.validation import closest
from prudent.io.errors import TableError, listed, shown, typed

MISSING_WORDS = ("", "NA", "N/A", "NaN", "nan", "NULL", "null", "None", "?")
UNKNOWN_LABEL = "?"
# Cells of a part: 8 MB as numbers, enough for the work to outweigh the calls.
PART_CELLS = 1_000_000
Found = TypeVar("Found")


class TurnedToWordsError(TableError):
    """A column of numbers holds words further down: it is text from now on."""


class TableSource(Protocol):
    """A table that can be read in parts, from its start, as often as is needed."""

    @property
    def name(self) -> str:
        """What the user calls it."""

    @property
    def names(self) -> Sequence[str]:
        """Names of the columns, in the order of the file."""

    @property
    def n_bytes(self) -> int:
        """Bytes of the text, or of the columns as float64 if that is more."""

    def parts(self, columns: Sequence[str]) -> Iterator[Table]:
        """Yield the rows in order, a part at a time, with some of the columns.

        Where the type of a column has to change, TurnedToWordsError: see `gathered`.
        """

    def whole(self) -> Table:
        """Return all rows in memory."""


def gathered(
    source: TableSource,
    columns: Sequence[str],
    gather: Callable[[Iterator[Table]], Found],
) -> Found:
    """`gather` of the parts; anew for each column that turns to words on the way."""
    while True:
        try:
            return gather(source.parts(columns))
        except TurnedToWordsError:
            continue


def joined(source: TableSource) -> Table:
    """All rows of a table in memory."""
    first, *others = gathered(source, source.names, list)
    parts = [part.columns for part in (first, *others)]
    columns = pa.concat_tables(parts, promote_options="default")
    return replace(first, columns=columns)


@dataclass(frozen=True)
class Table:
    """Columns of one table, or of a part of it, before anything is decided about them.

    Numbers where every cell is one, else text.
    """

    columns: pa.Table
    name: str
    place_in_file: Callable[[int], str]  # of a row, counted from 0 in the whole table
    first: int = 0  # row of the whole table
    decimal: str = "."

    @property
    def names(self) -> list[str]:
        """Column names, in the order of the file."""
        return list(self.columns.column_names)

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
            yield replace(self, columns=part, first=self.first + start)

    def whole(self) -> Table:
        """Return the table itself."""
        return self

    def place(self, row: int) -> str:
        """Where a row stands in the file, such as "line 17"."""
        return self.place_in_file(self.first + row)

    def only(self, kept: BoolArray) -> Table:
        """Return some of the rows, without their places."""
        return replace(self, columns=self.columns.filter(pa.array(kept)))

    def is_text(self, name: str) -> bool:
        """Whether a column holds words; numbers, truths or nothing at all are none."""
        return is_text(self.columns.schema.field(name).type)

    def text(self, name: str) -> pa.ChunkedArray:
        """Return a column as text without surrounding blanks; missing is empty."""
        check_column(name, self.names)
        with self._cells_of(name):
            text = compute.cast(self.columns[name], pa.string())
            return compute.utf8_trim_whitespace(compute.fill_null(text, ""))

    def words_or_null(self, name: str, known: Sequence[str] = ()) -> pa.ChunkedArray:
        """Return `text`, and null in the place of words for "missing".

        A word that is `known` as a value stays one.
        """
        return words_or_null(self.text(name), known)

    def numbers_or_nan(self, name: str) -> pa.ChunkedArray:
        """Return `numbers` as a column; doubles are not copied."""
        if self.columns.schema.field(name).type == pa.float64():
            return compute.fill_null(self.columns[name], math.nan)
        return pa.chunked_array([pa.array(self.numbers(name))])

    @contextmanager
    def _cells_of(self, name: str) -> Iterator[None]:
        try:
            yield
        except pa.ArrowException as error:
            kind = self.columns.schema.field(name).type
            raise TableError(
                f"column {shown(name)} of {self.name} holds cells of type {kind} that "
                f"are no numbers or words. Use --drop {typed(name)}"
            ) from error

    def encoded(self, name: str) -> tuple[IntArray, NDArray[np.str_]]:
        """Return `text` as positions in an array of the distinct words."""
        encoded = compute.dictionary_encode(self.text(name)).combine_chunks()
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.intp)
        return codes, np.array(encoded.dictionary.to_pylist(), dtype=str)

    def labels(self, name: str) -> tuple[IntArray, NDArray[np.str_]]:
        """Return `encoded`, a label that is not known as an empty word.

        Words such as "NA" and "None" may be classes; "?" is none.
        """
        codes, distinct = self.encoded(name)
        return codes, np.where(distinct == UNKNOWN_LABEL, "", distinct)

    def words(self, name: str) -> NDArray[np.str_]:
        """Return `text` as an array; each distinct word is made once."""
        codes, distinct = self.encoded(name)
        return distinct[codes]

    def truth(self, name: str) -> NDArray[np.str_]:
        """Return `labels` of all rows as text, empty where a row has none."""
        codes, distinct = self.labels(name)
        return distinct[codes]

    def numbers(self, name: str) -> FloatArray:
        """Return a column of numbers; cells that are missing or words are NaN."""
        if not self.is_text(name):
            # Not safe: integers beyond 2**53 lose digits rather than stop the reading.
            with self._cells_of(name):
                column = compute.cast(self.columns[name], pa.float64(), safe=False)
            return np.asarray(column.to_numpy())
        codes, distinct = self.encoded(name)
        values = [
            float(word.replace(self.decimal, "."))
            if is_number(word, self.decimal)
            else np.nan
            for word in distinct.tolist()
        ]
        return np.array(values, dtype=np.float64)[codes]


def words_or_null(text: Any, known: Sequence[str] = ()) -> Any:
    """An arrow column of words, null for missing: no cell, and words that say so.

    A word that is `known` as a value stays one.
    """
    lacking = [word for word in MISSING_WORDS if word not in known]
    missing = compute.is_in(text, value_set=pa.array(lacking))
    return compute.if_else(missing, pa.scalar(None, pa.string()), text)


def numbers_or_table(columns: pa.Table) -> FloatArray | pa.Table:
    """Numbers as an array, (n, d); the table itself where some columns hold words."""
    if any(is_text(field.type) for field in columns.schema):
        return columns
    X = np.empty((columns.num_rows, columns.num_columns))
    for j, column in enumerate(columns.itercolumns()):
        X[:, j] = column.to_numpy()
    return X


def without_gaps(columns: pa.Table) -> BoolArray:
    """Which rows have no missing cell, NaN or null, shape (n,)."""
    whole = np.ones(columns.num_rows, dtype=bool)
    for column in columns.itercolumns():
        missing = compute.is_null(column, nan_is_null=True)
        whole &= ~np.asarray(missing.to_numpy(), dtype=bool)
    return whole


def part_rows(n_columns: int) -> int:
    """Rows of a part of so many columns."""
    return max(1, PART_CELLS // max(1, n_columns))


def check_column(name: str, names: Sequence[str]) -> None:
    """Raise `TableError` unless `name` is among the column names."""
    if name in names:
        return
    similar = closest(str(name), list(map(str, names)))
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
    """Whether a text is a number and not a word for "missing"."""
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
