"""Read delimited text, and say on which line it goes wrong.

Readers in use silently rename duplicate columns, take a column too many for an
index, or return one column when the delimiter is another; the header and the width
of the rows are therefore checked here, and only the conversion to numbers is left
to pyarrow.
"""

from __future__ import annotations

import codecs
import csv
from collections import Counter
from collections.abc import Collection, Iterator
from itertools import islice
from typing import BinaryIO

import pyarrow as pa
from pyarrow import csv as pyarrow_csv

from prudent.io.errors import TableError, listed, shown
from prudent.io.table import MISSING_WORDS, Table, check_unique, is_number
from prudent.io.text import TextSource

__all__ = ["read_delimited"]

DELIMITERS = (",", ";", "\t", "|")
OTHER_DELIMITERS = (*DELIMITERS, ":", " ")
SNIFFED_RECORDS = 20
Record = tuple[int, list[str]]


def read_delimited(
    source: TextSource,
    *,
    delimiter: str | None = None,
    decimal: str = ".",
    header: bool = True,
    text_columns: Collection[str] = (),
) -> Table:
    """Read delimited text into typed columns.

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

    Raises
    ------
    TableError
        If the text is not UTF-8, has no rows, one column, duplicate names, a name
        row that looks like data, or a row of another width than the header.
    """
    quoted = _check_characters(source)
    delimiter = delimiter or _sniff(source)
    names, start = _read_names(source, delimiter, header)
    if len(names) == 1:
        raise _one_column(source, delimiter)

    def convert(types: dict[str, pa.DataType]) -> pa.Table:
        with source.open() as stream:
            stream.seek(start)
            return pyarrow_csv.read_csv(
                stream,
                read_options=pyarrow_csv.ReadOptions(column_names=names),
                parse_options=pyarrow_csv.ParseOptions(
                    delimiter=delimiter,
                    # Costs parallel parsing, so only where a quote can hide one.
                    newlines_in_values=quoted,
                ),
                convert_options=pyarrow_csv.ConvertOptions(
                    column_types=types,
                    null_values=list(MISSING_WORDS),
                    decimal_point=decimal,
                ),
            )

    as_text = dict.fromkeys(text_columns, pa.string())
    try:
        try:
            # With types to infer, pyarrow holds the whole text in memory to the end.
            columns = convert(dict.fromkeys(names, pa.float64()) | as_text)
        except pa.ArrowInvalid:
            columns = convert(as_text)
    except pa.ArrowInvalid as error:
        raise _explained(error, source, delimiter, len(names)) from error
    if columns.num_rows == 0:
        raise TableError(f"no data rows below the header: {source.name}.")

    def place(row: int) -> str:
        records = _records(source, delimiter)
        line, _ = next(islice(records, row + header, None))
        return f"line {line}"

    return Table(columns, source.name, place, decimal)


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


def _check_characters(source: TextSource) -> bool:
    """Refuse bytes that are no UTF-8 text; tell whether quotes occur."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    quoted = False
    try:
        for chunk in source.chunks():
            decoder.decode(chunk)
            quoted = quoted or b'"' in chunk
            if b"\0" in chunk:
                raise TableError(
                    f"{source.name} looks like a binary file, not a table: it holds "
                    "NUL bytes. If it is UTF-16 text, use --encoding utf-16."
                )
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        raise _not_utf8(source) from error
    return quoted


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


def _explained(
    error: pa.ArrowInvalid, source: TextSource, delimiter: str, width: int
) -> TableError:
    """Turn a parse error into the line and the width of the row that caused it."""
    if "Empty CSV" in str(error):
        return TableError(f"no data rows below the header: {source.name}.")
    for line, record in _records(source, delimiter):
        if len(record) != width:
            return TableError(
                f"row {line} has {len(record)} fields, header has {width}. "
                f"Line {line} of {source.name}: quote text that holds the delimiter "
                "or repair the row"
            )
    return TableError(f"{source.name} cannot be read: {shown(error)}.")
