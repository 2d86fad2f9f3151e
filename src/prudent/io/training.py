"""Rows in memory for a fit: all of a table, or a sample drawn from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.core.moments import ClassMoments
from prudent.io.preparation import Preparation
from prudent.io.survey import Block, Survey, survey_table
from prudent.io.table import TableSource

# A sample keeps this many rows of a rare class, so that none vanishes.
RARE = 20


@dataclass(frozen=True)
class TrainingData:
    """Arrays ready for a fit.

    Attributes
    ----------
    X : ndarray of shape (n_rows, n_features)
        Numbers, and codes of words; missing cells are NaN.
    y : ndarray of shape (n_rows,) or None
        Labels, integers where every label is one, else text; None without target.
    preparation : Preparation
        How `X` came about.
    notes : tuple of str
        What a reader should know about the data, one sentence each.
    constant : tuple of str
        Columns of one value, which were left out.
    rows : ndarray of int, shape (n_rows,)
        Positions of the rows in the table.
    n_available : int
        Rows these were drawn from; as many as `X` has if they are all.
    groups : ndarray of shape (n_rows,) or None
        Rows that belong together have equal values.
    """

    X: NDArray[np.float64]
    y: NDArray[Any] | None
    preparation: Preparation
    notes: tuple[str, ...]
    constant: tuple[str, ...]
    rows: NDArray[np.intp]
    n_available: int
    groups: NDArray[Any] | None = None


def training_data(
    source: TableSource, target: str | None, **options: Any
) -> TrainingData:
    """Check a table and turn it into arrays.

    Parameters
    ----------
    source : TableSource
        As read.
    target : str or None
        Label column; None for data without labels.
    **options
        As `survey_table`.

    Raises
    ------
    TableError
        If the table cannot be used so; the message says where and what to try.
    """
    return all_rows(survey_table(source, target, **options))


def all_rows(found: Survey) -> TrainingData:
    """All rows of a surveyed table."""
    data = _allocated(found, found.n_rows)
    start = 0
    for block in found.blocks(into=data.X):
        start = _put_labels(data, start, found, block)
    return data


def sample_rows(
    found: Survey, size: int, random_state: int
) -> tuple[TrainingData, ClassMoments | None]:
    """A stratified sample drawn without replacement, and moments of the other rows.

    Words and missing cells have no moments: then there is the sample only.

    The number of rows of each class is known, so the ranks to take are drawn before
    the rows are read: the sample is exact, and one pass that holds no other row.
    """
    sizes = _class_sizes(found.counts, size)
    rng = np.random.default_rng(random_state)
    ranks = [
        np.sort(rng.choice(count, taken, replace=False, shuffle=False))
        for count, taken in zip(found.counts.tolist(), sizes.tolist(), strict=True)
    ]
    data = _allocated(found, int(sizes.sum()))
    empty = ClassMoments.empty(np.unique(found.labels), data.X.shape[1])

    def others() -> Iterator[ClassMoments]:
        start, seen = 0, np.zeros_like(found.counts)
        for block in found.blocks():
            chosen = _chosen(block.codes, ranks, seen)
            drawn = _rows_of(block, chosen)
            data.X[start : start + len(drawn.X)] = drawn.X
            start = _put_labels(data, start, found, drawn)
            rest = _rows_of(block, ~chosen)
            if len(rest.X) and found.holds_numbers:
                labels = found.labels[rest.codes]
                yield ClassMoments.from_arrays(rest.X, labels, classes=found.labels)

    moments = ClassMoments.reduce(chain([empty], others()))
    return data, moments if found.holds_numbers else None


def _class_sizes(counts: NDArray[np.intp], size: int) -> NDArray[np.intp]:
    """Rows to draw of each class: in proportion, but some of a rare class."""
    n_rows = int(counts.sum())
    if size >= n_rows:
        return counts
    every = np.arange(size) * n_rows // size
    label = np.searchsorted(np.cumsum(counts), every, side="right")
    proportional = np.bincount(label, minlength=len(counts))
    return np.maximum(proportional, np.minimum(RARE, counts))


def _chosen(
    codes: NDArray[np.intp],
    ranks: list[NDArray[np.intp]],
    seen: NDArray[np.intp],
) -> NDArray[np.bool_]:
    """Which rows of a block are drawn; `seen` counts the rows of each class before."""
    chosen = np.zeros(len(codes), dtype=bool)
    for code, drawn in enumerate(ranks):
        rows = np.flatnonzero(codes == code)
        first, last = np.searchsorted(drawn, [seen[code], seen[code] + len(rows)])
        chosen[rows[drawn[first:last] - seen[code]]] = True
        seen[code] += len(rows)
    return chosen


def _rows_of(block: Block, mask: NDArray[np.bool_]) -> Block:
    return Block(block.X[mask], block.codes[mask], block.rows[mask])


def _allocated(found: Survey, n_rows: int) -> TrainingData:
    return TrainingData(
        X=np.empty((n_rows, len(found.preparation.names))),
        y=None if found.label is None else np.empty(n_rows, found.labels.dtype),
        preparation=found.preparation,
        notes=found.notes,
        constant=found.constant,
        rows=np.empty(n_rows, dtype=np.intp),
        n_available=found.n_rows,
    )


def _put_labels(data: TrainingData, start: int, found: Survey, block: Block) -> int:
    """Write all but the features of a block; return where the next one begins."""
    end = start + len(block.X)
    data.rows[start:end] = block.rows
    if data.y is not None:
        data.y[start:end] = found.labels[block.codes]
    return end
