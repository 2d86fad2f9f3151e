"""Tables as a stream of row blocks, whatever holds them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from glob import glob
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

__all__ = ["iter_batches"]

Batch = tuple[NDArray[Any], NDArray[Any] | None]


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
        A path, folder or glob of parquet or CSV files; a pyarrow Table,
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
        If a column is absent or not numeric, or `batch_rows` is not positive.
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
    if isinstance(source, str | Path):
        return _from_files(source, target, columns, batch_rows)
    if isinstance(source, np.ndarray):
        return _from_array(source, target, columns, batch_rows)
    if type(source).__module__.split(".")[0] == "pyarrow":
        return _from_arrow(_record_batches(source, batch_rows), target, columns)
    frame = nw.from_native(source, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return _from_frame(frame, target, columns, batch_rows)
    if isinstance(frame, nw.LazyFrame):
        return _from_lazy(frame, target, columns, batch_rows)
    if isinstance(source, Iterable):
        return iter(source)
    raise TypeError(
        "`source` must be a path, a table, an array or an iterable of (X, y), "
        f"got {type(source).__name__}."
    )


def _from_files(
    source: str | Path, target: Any, columns: Sequence[Any] | None, batch_rows: int
) -> Iterator[Batch]:
    paths = _paths(source)
    for path in paths:
        is_parquet = path.suffix in {".parquet", ".pq"}
        batches = _parquet_batches if is_parquet else _csv_batches
        yield from _from_arrow(
            batches(path, target, columns, batch_rows), target, columns
        )


def _paths(source: str | Path) -> list[Path]:
    path = Path(source)
    if path.is_dir():
        paths = sorted(path.glob("**/*.parquet"))
    elif path.exists():
        paths = [path]
    else:
        paths = sorted(Path(name) for name in glob(str(source)))  # noqa: PTH207
    if not paths:
        raise FileNotFoundError(f"file not found: {source}.")
    return paths


def _parquet_batches(
    path: Path, target: Any, columns: Sequence[Any] | None, batch_rows: int
) -> Iterator[Any]:
    from pyarrow import parquet

    wanted = None if columns is None else [*columns, *_as_list(target)]
    # Read-ahead buffers grow with the file; without them memory stays flat.
    with parquet.ParquetFile(path, pre_buffer=False) as file:
        _require(wanted or _as_list(target), file.schema_arrow.names)
        yield from file.iter_batches(batch_size=batch_rows, columns=wanted)


def _csv_batches(
    path: Path, target: Any, columns: Sequence[Any] | None, batch_rows: int
) -> Iterator[Any]:
    import pyarrow
    from pyarrow import csv

    with csv.open_csv(path) as reader:
        names = reader.schema.names
    features = [n for n in names if n != target] if columns is None else list(columns)
    wanted = [*features, *_as_list(target)]
    _require(wanted, names)
    # Types are inferred from the first block only; a feature that starts with
    # integers may go on with fractions.
    options = csv.ConvertOptions(
        include_columns=wanted,
        column_types={name: pyarrow.float64() for name in features},
    )
    try:
        with csv.open_csv(path, convert_options=options) as reader:
            for batch in reader:
                for start in range(0, batch.num_rows, batch_rows):
                    yield batch.slice(start, batch_rows)
    except pyarrow.ArrowInvalid as error:
        raise ValueError(f"{path}: {error}") from error


def _record_batches(source: Any, batch_rows: int) -> Iterator[Any]:
    from pyarrow import RecordBatchReader, Table, dataset

    if isinstance(source, Table):
        return iter(source.to_batches(max_chunksize=batch_rows))
    if isinstance(source, RecordBatchReader):
        return iter(source)
    if isinstance(source, dataset.Dataset):
        return source.to_batches(
            batch_size=batch_rows,
            batch_readahead=0,
            fragment_readahead=0,
            fragment_scan_options=(
                dataset.ParquetFragmentScanOptions(pre_buffer=False)
                if isinstance(source.format, dataset.ParquetFileFormat)
                else None
            ),
        )
    raise TypeError(
        "`source` must be a pyarrow Table, RecordBatchReader or Dataset, got "
        f"{type(source).__name__}."
    )


def _from_arrow(
    batches: Iterable[Any], target: Any, columns: Sequence[Any] | None
) -> Iterator[Batch]:
    for batch in batches:
        names = batch.schema.names
        features = [n for n in names if n != target] if columns is None else columns
        _require([*features, *_as_list(target)], names)
        X = np.empty((batch.num_rows, len(features)))
        for j, name in enumerate(features):
            X[:, j] = _numbers(name, batch.column(name).to_numpy(zero_copy_only=False))
        y = None
        if target is not None:
            y = batch.column(target).to_numpy(zero_copy_only=False)
        yield X, y


def _from_array(
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


def _from_frame(
    frame: nw.DataFrame[Any],
    target: Any,
    columns: Sequence[Any] | None,
    batch_rows: int,
) -> Iterator[Batch]:
    names = frame.columns
    features = [n for n in names if n != target] if columns is None else list(columns)
    _require([*features, *_as_list(target)], names)
    for start in range(0, len(frame), batch_rows):
        block = frame[start : start + batch_rows]
        X = np.empty((len(block), len(features)))
        for j, name in enumerate(features):
            X[:, j] = _numbers(name, block.get_column(name).to_numpy())
        y = None if target is None else block.get_column(target).to_numpy()
        yield X, y


def _from_lazy(
    frame: nw.LazyFrame[Any],
    target: Any,
    columns: Sequence[Any] | None,
    batch_rows: int,
) -> Iterator[Batch]:
    for block in frame.to_native().collect_batches(
        chunk_size=batch_rows, maintain_order=True
    ):
        eager = nw.from_native(block, eager_only=True)
        yield from _from_frame(eager, target, columns, batch_rows)


def _as_list(target: Any) -> list[Any]:
    return [] if target is None else [target]


def _require(wanted: Iterable[Any], names: Sequence[Any]) -> None:
    absent = [name for name in wanted if name not in names]
    if absent:
        shown = ", ".join(map(str, names[:5])) + (", ..." if len(names) > 5 else "")
        raise ValueError(f"no column {absent[0]!r}. Columns: {shown}")


def _numbers(name: Any, values: NDArray[Any]) -> NDArray[Any]:
    if values.dtype.kind not in "biuf":
        raise ValueError(f"column {name!r} is not numeric: {values[:1].tolist()}.")
    return values
