"""Read delimited text, and say on which line it goes wrong.

Readers in use silently rename duplicate columns, take a column too many for an
index, or return one column when the delimiter is another; the header and the width
of the rows are therefore checked here, and only the conversion to numbers is left
to pyarrow.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, BinaryIO

import pyarrow as pa
from pyarrow import csv as pyarrow_csv

from prudent.io.errors import TableError, listed, shown
from prudent.io.table import MISSING_WORDS, Table, check_unique, is_number, is_text
from prudent.io.text import TextSource

__all__ = ["DelimitedSource", "open_delimited"]

DELIMITERS = (",", ";", "\t", "|")
OTHER_DELIMITERS = (*DELIMITERS, ":", " ")
SNIFFED_RECORDS = 20
# Bytes of text in a part; some tens of parts are read ahead, which is most of the
# memory that streaming takes.
PART_BYTES = 1 << 20
Record = tuple[int, list[str]]
Types = dict[str, pa.DataType]


def open_delimited(
    source: TextSource,
    *,
    delimiter: str | None = None,
    decimal: str = ".",
    header: bool = True,
    text_columns: Collection[str] = (),
    one_column: bool = False,
) -> DelimitedSource:
    """Look through delimited text, so that it can be read as a table.

    Parameters
    ----------
    source : TextSource
        UTF-8 text.
    delimiter : str, default=None
        One character; None takes the one of comma, semicolon, tab and bar that
        splits the header and agrees with the rows.
    decimal : str, default="."
        Decimal mark.
    header : bool, default=True
        Whether the first record holds the names; else they are column1, column2...
    text_columns : collection of str, default=()
        Columns kept as the file spells them (labels: "NA" is a word there).
    one_column : bool, default=False
        Whether a table of one column is one: mostly the delimiter is another.

    Raises
    ------
    TableError
        If the text is not UTF-8, has one column, duplicate names, or a name row
        that looks like data.
    """
    n_bytes, quoted = _check_characters(source)
    delimiter = delimiter or _sniff(source)
    names, start = _read_names(source, delimiter, header)
    if len(names) == 1 and not one_column:
        raise _one_column(source, delimiter)
    return DelimitedSource(
        text=source,
        n_bytes=n_bytes,
        names=names,
        start=start,
        header=header,
        delimiter=delimiter,
        decimal=decimal,
        quoted=quoted,
        text_columns=frozenset(text_columns),
    )


@dataclass(frozen=True)
class DelimitedSource:
    """Delimited text as a table; see `TableSource`.

    Attributes
    ----------
    text : TextSource
        What is read.
    n_bytes : int
        Its length.
    names : list of str
        Names of the columns.
    start : int
        Byte at which the rows begin.
    header : bool
        Whether a record of names comes before them.
    delimiter, decimal : str
        Between cells, and in numbers.
    quoted : bool
        Whether quotes occur, which may hide a newline.
    text_columns : frozenset of str
        Columns kept as the file spells them.
    """

    text: TextSource
    n_bytes: int
    names: list[str]
    start: int
    header: bool
    delimiter: str
    decimal: str
    quoted: bool
    text_columns: frozenset[str]

    @property
    def name(self) -> str:
        """What the user calls it."""
        return self.text.name

    @cached_property
    def schema(self) -> pa.Schema:
        """Types that every row agrees with, found by reading them all once."""

        def read_all(types: Types) -> Types:
            if not sum(batch.num_rows for batch in self._batches(self.names, types)):
                raise self._no_rows()
            return types

        return pa.schema(list(self._converted(read_all).items()))

    def parts(self, columns: Sequence[str]) -> Iterator[Table]:
        """Yield the rows in order, a megabyte of text at a time."""
        types = {name: self.schema.field(name).type for name in columns}
        row = 0
        for batch in self._batches(columns, types):
            part = pa.Table.from_batches([batch])
            yield Table(part, self.name, self._place_after(row), self.decimal)
            row += batch.num_rows

    def whole(self) -> Table:
        """Return all rows in memory.

        Raises
        ------
        TableError
            If there are no rows, or one of another width than the header.
        """

        def read(types: Types) -> pa.Table:
            with self._opened() as stream:
                return pyarrow_csv.read_csv(stream, **self._options(self.names, types))

        columns = self._converted(read)
        if columns.num_rows == 0:
            raise self._no_rows()
        return Table(columns, self.name, self._place_after(0), self.decimal)

    def _converted(self, read: Callable[[Types], Any]) -> Any:
        """Read by types that hold for the first rows; what they do not fit is text.

        pyarrow could infer types from all rows, but then holds the whole text.
        """
        types = self._first_types()
        try:
            while True:
                try:
                    return read(types)
                except pa.ArrowInvalid as error:
                    said = re.match(r"In CSV column #(\d+): .*conversion", str(error))
                    if said is None:
                        raise
                    types |= {self.names[int(said[1])]: pa.string()}
        except pa.ArrowInvalid as error:
            raise self._explained(error) from error

    def _first_types(self) -> Types:
        """Number unless the first rows hold true and false, or words."""
        try:
            with (
                self._opened() as stream,
                pyarrow_csv.open_csv(stream, **self._options(self.names, {})) as reader,
            ):
                inferred = reader.schema
        except pa.ArrowInvalid as error:
            raise self._explained(error) from error

        def settled(name: str) -> pa.DataType:
            kind = inferred.field(name).type
            if name in self.text_columns or is_text(kind):
                return pa.string()
            return kind if pa.types.is_boolean(kind) else pa.float64()

        return {name: settled(name) for name in self.names}

    def _batches(self, columns: Sequence[str], types: Types) -> Iterator[Any]:
        with (
            self._opened() as stream,
            pyarrow_csv.open_csv(stream, **self._options(columns, types)) as reader,
        ):
            yield from reader

    def _opened(self) -> Any:
        return self.text.open(self.start)

    def _options(self, columns: Sequence[str], types: Types) -> dict[str, Any]:
        return {
            "read_options": pyarrow_csv.ReadOptions(
                column_names=self.names, block_size=PART_BYTES
            ),
            "parse_options": pyarrow_csv.ParseOptions(
                delimiter=self.delimiter,
                # Costs parallel parsing, so only where a quote can hide a newline.
                newlines_in_values=self.quoted,
            ),
            "convert_options": pyarrow_csv.ConvertOptions(
                include_columns=columns,
                column_types=types,
                null_values=list(MISSING_WORDS),
                decimal_point=self.decimal,
            ),
        }

    def _place_after(self, start: int) -> Callable[[int], str]:
        def place(row: int) -> str:
            records = _records(self.text, self.delimiter)
            line, _ = next(islice(records, start + row + self.header, None))
            return f"line {line}"

        return place

    def _no_rows(self) -> TableError:
        return TableError(f"no data rows below the header: {self.name}.")

    def _explained(self, error: pa.ArrowInvalid) -> TableError:
        """Turn a parse error into the line and the width of the row behind it."""
        if "Empty CSV" in str(error):
            return self._no_rows()
        width = len(self.names)
        for line, record in _records(self.text, self.delimiter):
            if len(record) != width:
                return TableError(
                    f"row {line} has {len(record)} fields, header has {width}. "
                    f"Line {line} of {self.name}: quote text that holds the delimiter "
                    "or repair the row"
                )
        return TableError(f"{self.name} cannot be read: {shown(error)}.")


def _records(
    source: TextSource, delimiter: str, most: int | None = None
) -> Iterator[Record]:
    """Yield non-empty records with the 1-based file line on which each begins."""
    with source.open() as stream:
        lines = (line.decode("utf-8-sig", "replace") for line in stream)
        reader = csv.reader(islice(lines, most), delimiter=delimiter)
        start = 1
        try:
            for record in reader:
                if record:
                    yield start, record
                start = reader.line_num + 1
        except csv.Error as error:
            raise TableError(
                f"{source.name} is not delimited text: {error}, near line {start}. "
                "Look for a quote that is never closed."
            ) from error


def _check_characters(source: TextSource) -> tuple[int, bool]:
    """Refuse bytes that are no UTF-8 text; count them and tell if quotes occur."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    n_bytes, quoted = 0, False
    try:
        for chunk in source.chunks():
            decoder.decode(chunk)
            n_bytes += len(chunk)
            quoted = quoted or b'"' in chunk
            if b"\0" in chunk:
                raise TableError(
                    f"{source.name} looks like a binary file, not a table: it holds "
                    "NUL bytes. If it is UTF-16 text, use --encoding utf-16."
                )
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        raise _not_utf8(source) from error
    return n_bytes, quoted


def _not_utf8(source: TextSource) -> TableError:
    delimiter = _sniff(source)
    names: list[str] = []
    place = "unknown"
    for line, record in _records(source, delimiter):
        names = names or [name.replace("\ufffd", "?") for name in record]
        bad = next((j for j, cell in enumerate(record) if "\ufffd" in cell), None)
        if bad is not None:
            column = shown(names[bad]) if bad < len(names) else str(bad + 1)
            place = f"line {line}, column {column}"
            break
    return TableError(
        f"{source.name} is not valid UTF-8 ({place}): use --encoding latin-1"
    )


def _sniff(source: TextSource) -> str:
    """Choose the delimiter that splits the header and that most rows agree with."""

    def quality(delimiter: str) -> tuple[bool, float, int]:
        # Lines are read a few at a time: an unclosed quote must not read them all.
        records = _records(source, delimiter, most=SNIFFED_RECORDS)
        widths = [len(record) for _, record in records]
        if not widths:
            return False, 0.0, 0
        agreeing = sum(width == widths[0] for width in widths) / len(widths)
        return widths[0] > 1, agreeing, widths[0]

    return max(DELIMITERS, key=quality)


def _one_column(source: TextSource, delimiter: str) -> TableError:
    _, record = next(_records(source, delimiter))
    counts = Counter(record[0])
    others = [c for c in OTHER_DELIMITERS if c != delimiter and counts[c]]
    if not others:
        return TableError(
            f"only one column found in {source.name}. "
            "A table needs features and a target; name another --delimiter."
        )
    guess = max(others, key=lambda character: counts[character])
    return TableError(
        f"only one column found; is the delimiter {guess!r}? use --delimiter {guess!r}"
    )


def _read_names(
    source: TextSource, delimiter: str, header: bool
) -> tuple[list[str], int]:
    """Return the column names and the byte at which the rows begin."""
    consumed = 0

    def lines(stream: BinaryIO) -> Iterator[str]:
        nonlocal consumed
        for line in stream:
            consumed += len(line)
            yield line.decode("utf-8-sig")

    with source.open() as stream:
        records = csv.reader(lines(stream), delimiter=delimiter)
        first = next((record for record in records if record), None)
    if first is None:
        raise TableError(f"file is empty: {source.name} holds blank lines only.")
    numbered = [f"column{j}" for j in range(1, len(first) + 1)]
    if not header:
        return numbered, 0
    # An index that was written without a name keeps its place under a number.
    names = [
        name.strip() or number for name, number in zip(first, numbered, strict=True)
    ]
    if all(is_number(name) for name in names):
        raise TableError(
            f"first line looks like data: use --no-header. It reads {listed(names)}"
        )
    check_unique(names)
    return names, consumed
