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
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
from pyarrow import csv as pyarrow_csv

from prudent.io.errors import TableError, listed, shown
from prudent.io.files import TextSource
from prudent.io.table import (
    MISSING_WORDS,
    Table,
    TurnedToWordsError,
    check_unique,
    is_number,
    is_text,
    joined,
)

DELIMITERS = (",", ";", "\t", "|")
OTHER_DELIMITERS = (*DELIMITERS, ":", " ")
SNIFFED_RECORDS = 20
# Records that a first line is compared with, itself among them.
FIRST_ROWS = 200
# Bytes of text in a part; some tens of parts are read ahead, which is most of the
# memory that streaming takes. A row has to fit into one.
PART_BYTES = 1 << 20
LONGEST_LINE = 1 << 20
FLOAT_BYTES = 8
NEWLINE = 10
Record = tuple[int, list[str]]
Types = dict[str, pa.DataType]


@dataclass(frozen=True)
class DelimitedSource:
    """Delimited text as a table; see `TableSource`."""

    text: TextSource
    names: list[str]
    n_bytes: int
    start: int  # byte at which the rows begin
    header: bool  # a record of names comes before them
    delimiter: str
    decimal: str
    quoted: bool  # quotes occur, which may hide a newline
    text_columns: Collection[str]
    typed_columns: Collection[str]
    _late_words: set[str] = field(default_factory=set)

    @property
    def name(self) -> str:
        """What the user calls it."""
        return self.text.name

    def whole(self) -> Table:
        """Return all rows in memory."""
        return joined(self)

    def parts(self, columns: Sequence[str]) -> Iterator[Table]:
        """Yield the rows in order, a megabyte of text at a time."""
        row = 0
        try:
            types = self._types | dict.fromkeys(self._late_words, pa.string())
            with self._streamed(columns, types) as reader:
                for batch in reader:
                    part = pa.Table.from_batches([batch])
                    yield Table(part, self.name, self._place, row, self.decimal)
                    row += batch.num_rows
        except pa.ArrowException as error:
            self._fail(error)

    @cached_property
    def _types(self) -> Types:
        """Number unless the first rows hold true and false, or words.

        pyarrow could infer types from all rows, but then holds the whole text.
        """
        try:
            with self._streamed(self.names, {}) as reader:
                inferred = reader.schema
        except pa.ArrowException as error:
            self._fail(error)

        def settled(name: str) -> pa.DataType:
            kind = inferred.field(name).type
            if name in self.text_columns:
                return pa.string()
            if name in self.typed_columns or pa.types.is_boolean(kind):
                return kind
            return pa.string() if is_text(kind) else pa.float64()

        return {name: settled(name) for name in self.names}

    @contextmanager
    def _streamed(self, columns: Sequence[str], types: Types) -> Iterator[Any]:
        read = pyarrow_csv.ReadOptions(column_names=self.names, block_size=PART_BYTES)
        parse = pyarrow_csv.ParseOptions(
            delimiter=self.delimiter,
            # Costs parallel parsing, so only where a quote can hide a newline.
            newlines_in_values=self.quoted,
        )
        convert = pyarrow_csv.ConvertOptions(
            include_columns=columns,
            column_types=types,
            null_values=list(MISSING_WORDS),
            decimal_point=self.decimal,
        )
        with self.text.open(self.start) as file:
            stream: Any = file
            if self.n_bytes <= PART_BYTES:
                # A thread that reads ahead in a file of Python's, or lets go of its
                # bytes, aborts a process that ends meanwhile, as a command on a small
                # table may. In memory of pyarrow's own it needs no Python.
                copied = pa.BufferOutputStream()
                copied.write(file.read())
                stream = pa.BufferReader(copied.getvalue())
            with pyarrow_csv.open_csv(stream, read, parse, convert) as reader:
                yield reader

    def _place(self, row: int) -> str:
        records = _records(self.text, self.delimiter)
        line, _ = next(islice(records, row + self.header, None), (0, []))
        return f"line {line}" if line else f"row {row + 1}"

    def _fail(self, error: pa.ArrowException) -> NoReturn:
        """Say why pyarrow ended; a column that is not what it seemed is text."""
        conversion = re.match(r"In CSV column #(\d+): .*conversion", str(error))
        name = conversion and self.names[int(conversion[1])]
        if name and name not in self._late_words:
            self._late_words.add(name)
            word = re.search("invalid value '(.*)'", str(error), re.DOTALL)
            what = shown(word[1]) if word else "words"
            raise TurnedToWordsError(
                f"column {shown(name)} of {self.name} holds {what} among its numbers."
            ) from error
        width = len(self.names)
        for line, record in _records(self.text, self.delimiter):
            if len(record) != width:
                raise TableError(
                    f"row {line} has {len(record)} fields, header has {width}. "
                    f"Line {line} of {self.name}: quote text that holds the delimiter "
                    "or repair the row"
                ) from error
        raise TableError(
            f"{self.name} is not delimited text: its rows cannot be told apart. "
            "Look for a quote that is never closed, or inside a cell."
        ) from error


def open_delimited(
    source: TextSource,
    *,
    delimiter: str | None = None,
    decimal: str = ".",
    header: bool | None = True,
    text_columns: Collection[str] = (),
    typed_columns: Collection[str] = (),
    one_column: bool = False,
) -> DelimitedSource:
    """Look through UTF-8 text, so that it can be read as a table: see `open_table`."""
    n_bytes, n_lines, quoted = _check_characters(source)
    delimiter = delimiter or _sniff(source)
    names, start = _read_names(source, delimiter, header)
    if len(names) == 1:
        _refuse_one_column(source, delimiter, is_expected=one_column)
    named = header is not False
    # Found here, not by pyarrow: what it makes of no rows at all can end the process.
    if next(islice(_records(source, delimiter), int(named), None), None) is None:
        raise TableError(f"no data rows below the header: {source.name}.")
    return DelimitedSource(
        text=source,
        names=names,
        n_bytes=max(n_bytes, n_lines * len(names) * FLOAT_BYTES),
        start=start,
        header=named,
        delimiter=delimiter,
        decimal=decimal,
        quoted=quoted,
        text_columns=text_columns,
        typed_columns=typed_columns,
    )


def _lines(source: TextSource) -> Iterator[tuple[int, str]]:
    """Yield lines, each with the byte at which it ends."""
    end = 0
    with source.open() as stream:
        while line := stream.readline(LONGEST_LINE + 1):
            if len(line) > LONGEST_LINE:
                raise TableError(
                    f"{source.name} has a line of more than a megabyte: no table "
                    "has. Break it where a row ends."
                )
            encoding = "utf-8" if end else "utf-8-sig"
            end += len(line)
            yield end, line.decode(encoding, "replace")


def _records(
    source: TextSource, delimiter: str, most: int | None = None
) -> Iterator[Record]:
    """Yield non-empty records with the 1-based file line on which each begins."""
    lines = (line for _, line in islice(_lines(source), most))
    return _parsed(lines, source.name, delimiter)


def _parsed(lines: Iterable[str], name: str, delimiter: str) -> Iterator[Record]:
    reader = csv.reader(lines, delimiter=delimiter)
    start = 1
    try:
        for record in reader:
            if record:
                yield start, record
            start = reader.line_num + 1
    except csv.Error as error:
        raise TableError(
            f"{name} is not delimited text: {error}, near line {start}. "
            "Look for a quote that is never closed."
        ) from error


def _check_characters(source: TextSource) -> tuple[int, int, bool]:
    """Refuse bytes that are no UTF-8 text; count them, and lines; look for quotes."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    n_bytes, n_lines, quoted = 0, 1, False
    try:
        for chunk in source.chunks():
            if decoder.getstate()[0] or not chunk.isascii():
                decoder.decode(chunk)
            n_bytes += len(chunk)
            n_lines += int(np.count_nonzero(np.frombuffer(chunk, np.uint8) == NEWLINE))
            quoted = quoted or b'"' in chunk
            if b"\0" in chunk:
                raise TableError(
                    f"{source.name} looks like a binary file, not a table: it holds "
                    "NUL bytes. If it is UTF-16 text, use --encoding utf-16."
                )
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        raise _not_utf8(source) from error
    return n_bytes, n_lines, quoted


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


def _refuse_one_column(
    source: TextSource, delimiter: str, *, is_expected: bool
) -> None:
    """Refuse what another delimiter parts, and a table without features."""
    first, *others = [
        Counter(record[0]) for _, record in _records(source, delimiter, most=2)
    ]
    # A name may hold a space by itself; a delimiter stands in the cells below, too.
    below = others[0] if is_expected and others else first
    guesses = [c for c in OTHER_DELIMITERS if c != delimiter and first[c] and below[c]]
    if guesses:
        guess = max(guesses, key=lambda character: first[character])
        raise TableError(
            f"only one column found; is the delimiter {guess!r}? use --delimiter "
            f"{guess!r}"
        )
    if not is_expected:
        raise TableError(
            f"only one column found in {source.name}. "
            "A table needs features and a target; name another --delimiter."
        )


def _read_names(
    source: TextSource, delimiter: str, header: bool | None
) -> tuple[list[str], int]:
    """Return the column names and the byte at which the rows begin."""
    end = 0

    def lines() -> Iterator[str]:
        nonlocal end
        for end, line in _lines(source):  # noqa: B007
            yield line

    _, first = next(_parsed(lines(), source.name, delimiter), (0, []))
    if not first:
        raise TableError(f"file is empty: {source.name} holds blank lines only.")
    numbered = [f"column{j}" for j in range(1, len(first) + 1)]
    if header is False:
        return numbered, 0
    # An index that was written without a name keeps its place under a number.
    names = [
        name.strip() or number for name, number in zip(first, numbered, strict=True)
    ]
    if header and all(map(is_number, names)):
        raise TableError(
            f"first line looks like data: use --no-header. It reads {listed(names)}"
        )
    check_unique(names)
    if header and _looks_like_data(first, source, delimiter):
        raise TableError(
            f"first line looks like data: use --no-header, or rename the columns. It "
            f"reads {listed(names)}"
        )
    return names, end


def _looks_like_data(first: Sequence[str], source: TextSource, delimiter: str) -> bool:
    """Whether a first line is more like the rows below it than like names.

    It is if it has numbers where they do, and words elsewhere, and fractions among the
    numbers or mostly words that its columns hold too; years may be names.
    """
    below = islice(_records(source, delimiter, most=FIRST_ROWS), 1, None)
    rows = [record for _, record in below if len(record) == len(first)]
    columns = [[cell.strip() for cell in column] for column in zip(*rows, strict=True)]
    cells = [cell.strip() for cell in first]
    present = [[c for c in column if c not in MISSING_WORDS] for column in columns]
    if not rows or any(
        cell not in MISSING_WORDS and is_number(cell) != all(map(is_number, column))
        for cell, column in zip(cells, present, strict=True)
        if column
    ):
        return False
    numbers = [cell for cell in cells if is_number(cell)]
    if any(not float(number).is_integer() for number in numbers):
        return True
    words = [
        cell in column
        for cell, column in zip(cells, columns, strict=True)
        if cell and not is_number(cell)
    ]
    return sum(words) > len(words) / 2
