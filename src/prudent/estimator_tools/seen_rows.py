"""Rows that a model has seen: kept with it, and found among those meant to be new."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import _num_samples

from prudent.core.repeats import (
    MOST_ROWS,
    Keys,
    KnownRows,
    keys_of_numbers,
    mixed,
    row_keys,
)
from prudent.core.rows import HeldOut
from prudent.exceptions import PrudentWarning
from prudent.io.errors import thousands


class RowNotes:
    """What tells whether other rows are those of a fit, taken down block by block."""

    def __init__(self) -> None:
        self._keys: list[Keys] = []
        self._cells: list[Keys] = []  # of the first rows, column by column

    def add(self, X: Any) -> Keys | None:
        """Note some rows, and return their keys; None for what is no table."""
        columns = _columns(X)
        if columns is None:
            return None
        keys, cells = np.zeros(_num_samples(X), dtype=np.uint64), []
        for column in columns:
            keys += column
            cells.append(column[:MOST_ROWS].copy())
        self._keys.append(keys)
        if not self._cells and len(keys):
            self._cells = cells
        return keys

    def known(self) -> KnownRows | None:
        """What is known of the rows noted; None where there are none."""
        if not self._cells:
            return None
        return KnownRows.of(np.concatenate(self._keys), self._cells)

    def keep_with(self, estimator: Any) -> None:
        """Keep with a fitted estimator 8 bytes a row: values can be guessed by them."""
        estimator._known_rows = self.known()


def remember_rows(
    estimator: Any, X: Any, split: HeldOut | None = None, *, warn: bool = True
) -> None:
    """Keep with an estimator what tells the rows of its fit; warn of copies among them.

    With a `split` those held out count as copies that are among the others, else all
    that stand more than once. Sparse matrices are not looked at.
    """
    notes = RowNotes()
    keys = notes.add(X)
    notes.keep_with(estimator)
    if warn:
        _warn_of_copies(type(estimator).__name__, estimator._known_rows, keys, split)


def warn_of_copies(name: str, X: Any) -> None:
    """Warn where rows that are to prove something are copies of others among them."""
    notes = RowNotes()
    keys = notes.add(X)
    _warn_of_copies(name, notes.known(), keys, None)


def _warn_of_copies(
    name: str, known: KnownRows | None, keys: Keys | None, split: HeldOut | None
) -> None:
    if keys is None or known is None or not known.holds_copies():
        return
    if split is not None and len(split.fit):
        seen = np.isin(keys[split.held_out], keys[split.fit])
        where = "held-out rows stand among the rows learned from too"
    else:
        _, place, count = np.unique(keys, return_inverse=True, return_counts=True)
        seen, where = count[place] > 1, "rows stand there more than once"
    if seen.any():
        warnings.warn(
            f"{name}: {thousands(int(seen.sum()))} of {thousands(len(seen))} {where}, "
            "more than chance explains; a promise from rows seen before can be false. "
            "Remove repeated rows, or say with `groups` which rows belong together.",
            PrudentWarning,
            stacklevel=5,
        )


def refuse_seen_rows(name: str, model: Any, X: Any) -> None:
    """Raise ValueError if rows meant to be new were in the fit of a model.

    Of a pipeline or search also where the last step knows its rows.
    """
    for known, rows in _knowledge(model, X):
        columns = _columns(rows)
        if columns is None:
            continue
        n_rows = _num_samples(rows)
        n_seen = known.copies(row_keys(columns, n_rows))
        if n_seen:
            raise ValueError(
                f"{name}: {thousands(n_seen)} of these {thousands(n_rows)} rows were "
                "in the fit of the model, whose errors on them say nothing about new "
                "rows. Give rows that it has not seen."
            )


def _knowledge(model: Any, X: Any) -> Iterator[tuple[KnownRows, Any]]:
    """What a model and what is inside it know of rows, and the rows as they see them.

    Columns of data frames are put into the order of the fit.
    """
    while isinstance(model, FrozenEstimator):
        model = model.estimator
    model = getattr(model, "best_estimator_", model)
    known = getattr(model, "_known_rows", None)
    if known is not None:
        yield known, _in_order(model, X)
    if isinstance(model, Pipeline):
        yield from _knowledge(model[-1], model[:-1].transform(X))
    elif isinstance(getattr(model, "estimator", None), FrozenEstimator):
        yield from _knowledge(model.estimator, X)


def _in_order(model: Any, X: Any) -> Any:
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    names = getattr(model, "feature_names_in_", None)
    if not isinstance(frame, nw.DataFrame) or names is None:
        return X
    return frame.select(*names) if set(names) <= set(frame.columns) else X


def _columns(X: Any) -> Iterator[Keys] | None:
    """The keys of the cells of each column, in order; None for what is no table."""
    if hasattr(X, "tocsr"):
        return None
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    columns: Iterable[NDArray[Any]]
    if isinstance(frame, nw.DataFrame):
        columns = (_cells(series) for series in frame.iter_columns())
    else:
        values = np.asarray(X)
        if values.ndim not in (1, 2):
            return None
        columns = values.T if values.ndim == 2 else [values]
    return (_keys(column, place) for place, column in enumerate(columns))


def _cells(series: nw.Series[Any]) -> NDArray[Any]:
    if series.dtype.is_numeric() or series.dtype == nw.Boolean:
        return series.cast(nw.Float64).to_numpy()
    return np.array(series.to_list(), dtype=object)


def _keys(cells: NDArray[Any], place: int) -> Keys:
    """The keys of a column of numbers, or of words."""
    if cells.dtype.kind == "O" and not any(isinstance(cell, str) for cell in cells):
        with suppress(TypeError, ValueError):  # dates and the like are words
            cells = cells.astype(np.float64)  # None becomes NaN
    if cells.dtype.kind in "fiub":
        return keys_of_numbers(cells, place)
    words = ["" if cell is None or cell != cell else str(cell) for cell in cells]
    distinct = pa.array(words, pa.large_string()).dictionary_encode()
    digests = [_digest(word) for word in distinct.dictionary.to_pylist()]
    codes = distinct.indices.to_numpy(zero_copy_only=False)
    return mixed(np.array(digests, dtype=np.uint64)[codes], place)


def _digest(word: str) -> int:
    encoded = word.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(encoded, digest_size=8).digest())
