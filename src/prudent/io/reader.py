"""Open a table, whatever file holds it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from prudent.io.delimited import open_delimited
from prudent.io.errors import TableError, shown
from prudent.io.table import Table, TableSource, check_unique, part_rows
from prudent.io.text import LONGEST_PATH, find_file, open_text

__all__ = ["open_table", "read_table"]

PANDAS_INDEX = "__index_level_"
FLOAT_BYTES = 8


def open_table(
    path: str,
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    decimal: str = ".",
    header: bool = True,
    text_columns: Collection[str] = (),
    one_column: bool = False,
) -> TableSource:
    """Open delimited text or parquet, to be read in parts or as a whole.

    Parameters
    ----------
    path : str
        A `.csv`, `.tsv` or `.txt` file, plain or gzip; a parquet file, or a folder
        or glob of them; "-" for delimited text on standard input.
    delimiter, encoding, decimal, header, text_columns, one_column
        As in `open_text` and `open_delimited`; parquet needs none of them.

    Returns
    -------
    TableSource

    Raises
    ------
    TableError
        If the table cannot be read; the message says where and what to try.

    Examples
    --------
    >>> from prudent.datasets import BUNDLED
    >>> source = open_table(str(BUNDLED["iris"].path))
    >>> source.schema.names[-1], source.whole().n_rows
    ('species', 150)
    """
    files = _parquet_files(path)
    if files:
        return _open_parquet(files, path)
    return open_delimited(
        open_text(path, encoding),
        delimiter=delimiter,
        decimal=decimal,
        header=header,
        text_columns=text_columns,
        one_column=one_column,
    )


def read_table(path: str, **options: Any) -> Table:
    """Read all rows of a table into memory; see `open_table`."""
    return open_table(path, **options).whole()


def _parquet_files(path: str) -> list[Path]:
    """Return the parquet files `path` stands for; none if it is a text file."""
    if path == "-" or len(path) > LONGEST_PATH:
        return []
    if Path(path).is_dir():
        files = sorted(Path(path).glob("*.parquet"))
        if not files:
            raise TableError(
                f"{path} is a directory without .parquet files. Name a file."
            )
        return files
    if not Path(path).exists() and any(mark in path for mark in "*?["):
        files = sorted(Path(match) for match in glob(path))  # noqa: PTH207 - Path.glob takes no absolute pattern
        if not files:
            raise TableError(f"file not found: nothing matches {path}.")
        if any(file.suffix != ".parquet" for file in files):
            raise TableError(
                f"{path} matches files other than .parquet. Name one text file."
            )
        return files
    with find_file(path).open("rb") as stream:
        is_parquet = stream.read(4) == b"PAR1"
    if path.endswith(".parquet") and not is_parquet:
        raise TableError(
            f"{path} cannot be read as parquet: it does not begin as one. Write it "
            "again, or rename it if it is text."
        )
    return [Path(path)] if is_parquet else []


@dataclass(frozen=True)
class ParquetSource:
    """Parquet files, one after the other, as a table; see `TableSource`."""

    files: Sequence[Path]
    name: str
    schema: pa.Schema
    n_bytes: int

    @property
    def names(self) -> list[str]:
        """Column names, in the order of the file."""
        return list(self.schema.names)

    def parts(self, columns: Sequence[str]) -> Iterator[Table]:
        """Yield the rows in order, a million cells at a time."""
        row = 0
        wanted = pa.schema([self.schema.field(name) for name in columns])
        for path in self.files:
            # Read-ahead buffers grow with the file; without them memory stays flat.
            with parquet.ParquetFile(path, pre_buffer=False) as file:
                stored = [c for c in columns if c in file.schema_arrow.names]
                for batch in file.iter_batches(part_rows(len(columns)), columns=stored):
                    # A column that this file lacks is missing in its rows.
                    tables = [wanted.empty_table(), pa.Table.from_batches([batch])]
                    part = pa.concat_tables(tables, promote_options="default")
                    yield Table(part, self.name, _place_after(row))
                    row += batch.num_rows

    def whole(self) -> Table:
        """Return all rows in memory."""
        tables = [parquet.read_table(file) for file in self.files]
        columns = pa.concat_tables(tables, promote_options="default")
        return Table(columns.select(self.names), self.name, _place_after(0))


def _place_after(start: int) -> Callable[[int], str]:
    return lambda row: f"row {start + row + 1}"


def _open_parquet(files: list[Path], name: str) -> ParquetSource:
    try:
        described = [parquet.read_metadata(file) for file in files]
        schemas = [found.schema.to_arrow_schema() for found in described]
        for schema in schemas:
            check_unique(schema.names)
        schema = pa.unify_schemas(schemas, promote_options="default")
    except (pa.ArrowInvalid, pa.ArrowTypeError, OSError) as error:
        raise TableError(
            f"{name} cannot be read as parquet: {shown(error)}."
        ) from error
    n_rows = sum(found.num_rows for found in described)
    if n_rows == 0:
        raise TableError(f"no data rows: {name}.")
    # A row number that pandas wrote beside the data is no feature.
    kept = [field for field in schema if not field.name.startswith(PANDAS_INDEX)]
    n_bytes = n_rows * len(kept) * FLOAT_BYTES
    return ParquetSource(files, name, pa.schema(kept), n_bytes)
