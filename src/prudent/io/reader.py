"""Tables in: files checked row by row, and streams of row blocks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import dataset, parquet

from prudent.io.delimited import FLOAT_BYTES, open_delimited
from prudent.io.errors import NoFileError, TableError, shown, thousands
from prudent.io.files import LONGEST_PATH, MUCH, find_file, open_text
from prudent.io.table import (
    Table,
    TableSource,
    check_column,
    check_unique,
    is_number,
    joined,
    part_rows,
)

PANDAS_INDEX = "__index_level_"
MARKS = "*?["  # of a glob
# No table has so many times the bytes of its file: such a file lies about its rows.
MOST_PACKED = 5000
# Bytes of a column that are read at a time. Without, they are those of a row group,
# which may be the whole file.
PARQUET_BUFFER = 1 << 18
Batch = tuple[NDArray[Any], NDArray[Any] | None]


def open_table(
    path: str,
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    decimal: str = ".",
    header: bool | None = True,
    text_columns: Collection[str] = (),
    typed_columns: Collection[str] = (),
    one_column: bool = False,
) -> TableSource:
    """Open delimited text or parquet, to be read in parts or as a whole.

    `path` is a `.csv`, `.tsv` or `.txt` file, plain or gzip; a parquet file, or a
    folder or glob of them; "-" for delimited text on standard input. Parquet needs none
    of the options. Without a `delimiter` it is the one of comma, semicolon, tab and bar
    that splits the header and agrees with the rows; without an `encoding` the text is
    UTF-8, unless a byte order mark says else. A `header` holds the names, and then not
    numbers alone, which None allows; without one they are column1, column2...
    `text_columns` are kept as the file spells them ("NA" is a word there),
    `typed_columns` in the type of their first rows (whole numbers stay such). One
    column is refused unless `one_column`, and where another delimiter stands in its
    cells too. A TableError says what is wrong, where, what to try.

    Examples
    --------
    >>> from prudent.datasets import BUNDLED
    >>> source = open_table(str(BUNDLED["iris"].path))
    >>> source.names[-1], source.whole().n_rows
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
        typed_columns=typed_columns,
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
        files = sorted(Path(path).glob("**/*.parquet"))
        if not files:
            raise TableError(
                f"{path} is a directory without .parquet files. Name a file."
            )
        return files
    if not Path(path).exists() and any(mark in path for mark in MARKS):
        files = _matching(path)
        if any(file.suffix != ".parquet" for file in files):
            raise TableError(
                f"{path} matches files other than .parquet. Name one text file."
            )
        return files
    file = find_file(path)
    if not file.is_file():  # a pipe gives its bytes only once
        return []
    with file.open("rb") as stream:
        is_parquet = stream.read(4) == b"PAR1"
    if path.endswith(".parquet") and not is_parquet:
        raise TableError(
            f"{path} cannot be read as parquet: it does not begin as one. Write it "
            "again, or rename it if it is text."
        )
    return [file] if is_parquet else []


def _matching(pattern: str) -> list[Path]:
    files = sorted(Path(match) for match in glob(pattern))  # noqa: PTH207 - Path.glob takes no absolute pattern
    if not files:
        raise NoFileError(f"file not found: nothing matches {pattern}.")
    return files


@dataclass(frozen=True)
class ParquetSource:
    """Parquet files, one after the other, as a table; see `TableSource`."""

    files: Sequence[Path]
    name: str
    schema: pa.Schema
    n_bytes: int

    @property
    def names(self) -> list[str]:
        """Names of the columns of all files."""
        return list(self.schema.names)

    def whole(self) -> Table:
        """Return all rows in memory."""
        return joined(self)

    def parts(self, columns: Sequence[str]) -> Iterator[Table]:
        """Yield the rows in order, a million cells at a time.

        Not by a dataset, which reads ahead as far as a slow consumer lets it.
        """
        row, step = 0, part_rows(len(columns))
        wanted = pa.schema([self.schema.field(name) for name in columns])
        with _readable(self.name):
            for path in self.files:
                with parquet.ParquetFile(
                    path, pre_buffer=False, buffer_size=PARQUET_BUFFER
                ) as file:
                    stored = [c for c in columns if c in file.schema_arrow.names]
                    promised = row + file.metadata.num_rows
                    for batch in file.iter_batches(step, columns=stored):
                        # A column that this file lacks is missing in its rows.
                        tables = [wanted.empty_table(), _as_table(batch)]
                        part = pa.concat_tables(tables, promote_options="default")
                        yield Table(part, self.name, _place, row)
                        row += batch.num_rows
                        del batch, tables, part
                        # Else what is free again piles up beside what is read next.
                        pa.default_memory_pool().release_unused()
                    if row != promised:
                        raise pa.ArrowInvalid("other rows than the file says")


def _open_parquet(files: list[Path], name: str) -> ParquetSource:
    with _readable(name):
        described = [parquet.read_metadata(file) for file in files]
        schemas = [metadata.schema.to_arrow_schema() for metadata in described]
        for schema in schemas:
            check_unique(schema.names)
        schema = pa.unify_schemas(schemas, promote_options="default")
    n_rows = sum(metadata.num_rows for metadata in described)
    if n_rows <= 0:
        raise TableError(f"no data rows: {name}.")
    # A row number that pandas wrote in front of the data is no feature.
    kept = [field for field in schema if not field.name.startswith(PANDAS_INDEX)]
    n_bytes = n_rows * len(kept) * FLOAT_BYTES
    if n_bytes > max(MUCH, MOST_PACKED * sum(file.stat().st_size for file in files)):
        raise TableError(
            f"{name} cannot be read as parquet: it declares {thousands(n_rows)} rows, "
            "more than its bytes can hold. Write it again."
        )
    return ParquetSource(files, name, pa.schema(kept), n_bytes)


@contextmanager
def _readable(name: str) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeError) as error:
        raise TableError(
            f"{name} cannot be read as parquet: it is damaged, or its files hold one "
            "column in different types. Write it again."
        ) from error


def _place(row: int) -> str:
    return f"row {row + 1}"


def iter_batches(
    source: Any,
    target: str | int | None = None,
    columns: Sequence[Any] | None = None,
    batch_rows: int = 50_000,
) -> Iterator[Batch]:
    """Yield blocks of rows of a table without ever holding the whole table.

    Parameters
    ----------
    source : path, glob, table or iterable
        A path, folder or glob of parquet or delimited text files; a pyarrow Table,
        RecordBatchReader or Dataset; a pandas or polars frame; a polars
        LazyFrame; a two-dimensional array such as a `numpy.memmap`; or any
        iterable of `(X, y)` pairs, handed on as it is.
    target : str or int, default=None
        Name (position for arrays) of the label column; None yields `y = None`.
    columns : sequence of str or int, default=None
        Feature columns, in this order; None takes all but `target`.
    batch_rows : int, default=50_000
        Most rows of a block, > 0.

    Yields
    ------
    X : ndarray of shape (n_block, n_features)
        Numbers, float64 unless the source is an array of another type.
    y : ndarray of shape (n_block,) or None
        Labels.

    Raises
    ------
    FileNotFoundError
        If no file matches.
    ValueError
        If a file cannot be read as a table, a column is absent or not numeric, or
        `batch_rows` is not positive.
    TypeError
        If `source` is none of the above.

    Examples
    --------
    >>> import numpy as np
    >>> from prudent import ClassMoments
    >>> from prudent.io import iter_batches
    >>> table = np.column_stack([np.arange(10.0), np.arange(10) % 2])
    >>> parts = iter_batches(table, target=1, batch_rows=4)
    >>> ClassMoments.reduce(ClassMoments.from_arrays(X, y) for X, y in parts).count
    array([5, 5])
    """
    if not batch_rows > 0:
        raise ValueError(f"`batch_rows` must be > 0, got {batch_rows!r}.")
    if isinstance(source, np.ndarray):
        return _of_array(source, target, columns, batch_rows)
    if isinstance(source, str | Path):
        frames: Iterable[Any] = _of_files(str(source), target, columns)
    elif type(source).__module__.split(".")[0] == "pyarrow":
        frames = _of_arrow(source, batch_rows)
    else:
        frame = nw.from_native(source, pass_through=True)
        if isinstance(frame, nw.DataFrame):
            frames = [source]
        elif isinstance(frame, nw.LazyFrame):
            frames = frame.to_native().collect_batches(
                chunk_size=batch_rows, maintain_order=True
            )
        elif isinstance(source, Iterable):
            return iter(source)
        else:
            raise TypeError(
                "`source` must be a path, a table, an array or an iterable of (X, y), "
                f"got {type(source).__name__}."
            )
    return _of_frames(frames, target, columns, batch_rows)


def _of_files(path: str, target: Any, columns: Sequence[Any] | None) -> Iterator[Any]:
    typed = () if target is None else (target,)
    files = [path]
    if not Path(path).exists() and any(mark in path for mark in MARKS):
        matching = [str(file) for file in _matching(path)]
        # Parquet files are one table, in which one of them may have no rows.
        if not all(file.endswith(".parquet") for file in matching):
            files = matching
    for file in files:
        opened = open_table(file, header=None, typed_columns=typed, one_column=True)
        wanted = [*(opened.names if columns is None else columns), *typed]
        for name in wanted:
            check_column(name, opened.names)
        for part in opened.parts([name for name in opened.names if name in wanted]):
            yield part.columns


def _of_arrow(source: Any, batch_rows: int) -> Iterator[Any]:
    if isinstance(source, pa.Table):
        return iter([source])
    if isinstance(source, pa.RecordBatchReader):
        return map(_as_table, source)
    if isinstance(source, dataset.Dataset):
        is_parquet = isinstance(
            getattr(source, "format", None), dataset.ParquetFileFormat
        )
        flat = dataset.ParquetFragmentScanOptions(pre_buffer=False)
        batches = source.to_batches(
            batch_size=batch_rows,
            batch_readahead=0,
            fragment_readahead=0,
            fragment_scan_options=flat if is_parquet else None,
        )
        return map(_as_table, batches)
    raise TypeError(
        "`source` must be a pyarrow Table, RecordBatchReader or Dataset, got "
        f"{type(source).__name__}."
    )


def _as_table(batch: pa.RecordBatch) -> pa.Table:
    return pa.Table.from_batches([batch])


def _of_frames(
    frames: Iterable[Any],
    target: Any,
    columns: Sequence[Any] | None,
    batch_rows: int,
) -> Iterator[Batch]:
    labels = [] if target is None else [target]
    for native in frames:
        frame = nw.from_native(native, eager_only=True)
        names = frame.columns
        chosen = [n for n in names if n != target] if columns is None else list(columns)
        for name in [*chosen, *labels]:
            check_column(name, names)
        for start in range(0, len(frame), batch_rows):
            block = frame[start : start + batch_rows]
            X = np.empty((len(block), len(chosen)))
            for j, name in enumerate(chosen):
                values = block.get_column(name).to_numpy()
                if values.dtype.kind not in "biuf":
                    cells = values.tolist()
                    word = next((c for c in cells if not is_number(str(c))), cells[0])
                    raise ValueError(
                        f"column {name!r} is not numeric: [{shown(word)}]."
                    )
                X[:, j] = values
            yield X, block.get_column(target).to_numpy() if labels else None


def _of_array(
    array: NDArray[Any], target: Any, columns: Sequence[Any] | None, batch_rows: int
) -> Iterator[Batch]:
    if array.ndim != 2:
        raise ValueError(f"an array must be two-dimensional, got shape {array.shape}.")
    position = None if target is None else range(array.shape[1])[target]
    features = (
        [j for j in range(array.shape[1]) if j != position]
        if columns is None
        else list(columns)
    )
    for start in range(0, len(array), batch_rows):
        block = np.asarray(array[start : start + batch_rows])
        yield block[:, features], None if position is None else block[:, position]
