"""Read a table, whatever file holds it."""

from __future__ import annotations

from collections.abc import Collection
from glob import glob
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from prudent.io.delimited import read_delimited
from prudent.io.errors import TableError, shown
from prudent.io.table import Table, check_unique
from prudent.io.text import find_file, open_text

__all__ = ["read_table"]

PANDAS_INDEX = "__index_level_"


def read_table(
    path: str,
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    decimal: str = ".",
    header: bool = True,
    text_columns: Collection[str] = (),
) -> Table:
    """Read a table from delimited text or parquet.

    Parameters
    ----------
    path : str
        A `.csv`, `.tsv` or `.txt` file, plain or gzip; a parquet file, or a folder
        or glob of them; "-" for delimited text on standard input.
    delimiter, encoding, decimal, header, text_columns
        As in `open_text` and `read_delimited`; parquet needs none of them.

    Returns
    -------
    Table

    Raises
    ------
    TableError
        If the table cannot be read; the message says where and what to try.

    Examples
    --------
    >>> from prudent.datasets import BUNDLED
    >>> table = read_table(str(BUNDLED["iris"].path))
    >>> table.names[-1], table.n_rows
    ('species', 150)
    """
    files = _parquet_files(path)
    if files:
        return _read_parquet(files, path)
    return read_delimited(
        open_text(path, encoding),
        delimiter=delimiter,
        decimal=decimal,
        header=header,
        text_columns=text_columns,
    )


def _parquet_files(path: str) -> list[Path]:
    """Return the parquet files `path` stands for; none if it is a text file."""
    if path == "-":
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
        return [Path(path)] if stream.read(4) == b"PAR1" else []


def _read_parquet(files: list[Path], name: str) -> Table:
    try:
        for file in files:
            check_unique(parquet.read_schema(file).names)
        parts = [parquet.read_table(file) for file in files]
        columns = pa.concat_tables(parts, promote_options="default")
    except (pa.ArrowInvalid, pa.ArrowTypeError, OSError) as error:
        raise TableError(
            f"{name} cannot be read as parquet: {shown(error)}."
        ) from error
    if columns.num_rows == 0:
        raise TableError(f"no data rows: {name}.")
    # A row number that pandas wrote beside the data is no feature.
    kept = [n for n in columns.column_names if not n.startswith(PANDAS_INDEX)]
    columns = columns.select(kept)
    return Table(columns, name, lambda row: f"row {row + 1}")
