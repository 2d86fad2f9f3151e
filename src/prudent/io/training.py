"""Rows in memory for a fit: all of a table, or a sample drawn from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.core.moments import ClassMoments
from prudent.core.types import FloatArray, IntArray
from prudent.io.preparation import Preparation
from prudent.io.survey import Block, Survey, survey_table
from prudent.io.table import TableSource


@dataclass(frozen=True)
class TrainingData:
    """Arrays ready for a fit: n rows in d columns."""

    X: FloatArray  # (n, d): numbers, and codes of words; missing cells are NaN
    y: NDArray[Any] | None  # (n,): labels, integers where every label is one
    preparation: Preparation  # how `X` came about
    notes: tuple[str, ...]  # what a reader should know, one sentence each
    constant: tuple[str, ...]  # columns of one value, which were left out
    rows: IntArray  # (n,): their positions in the table
    n_available: int  # rows these were drawn from
    groups: NDArray[Any] | None = None  # rows that belong together have equal values


def training_data(
    source: TableSource, target: str | None, **options: Any
) -> TrainingData:
    """Check a table and turn it into arrays; options as `survey_table`."""
    return all_rows(survey_table(source, target, **options))


def all_rows(found: Survey) -> TrainingData:
    """All rows of a surveyed table."""
    data = _allocated(found, found.n_rows)
    start = 0
    for block in found.blocks():
        start = _put(data, start, found, block)
    return data


def sample_rows(
    found: Survey, size: int, random_state: int
) -> tuple[TrainingData, ClassMoments | None]:
    """A plain draw of rows without replacement, and moments of the other rows.

    Words and missing cells have no moments: then there is the sample only.

    The draw is plain: promises are made and tested on these rows, and rows of which a
    rare class had more than its share would not be draws from the table.

    The number of rows is known, so those to take are drawn before they are read: one
    pass, which holds no other row.
    """
    rng = np.random.default_rng(random_state)
    n_drawn = min(size, found.n_rows)
    drawn = np.sort(rng.choice(found.n_rows, n_drawn, replace=False, shuffle=False))
    data = _allocated(found, n_drawn)
    empty = ClassMoments.empty(np.unique(found.labels), data.X.shape[1])

    def others() -> Iterator[ClassMoments]:
        start, seen = 0, 0
        for block in found.blocks():
            first, last = np.searchsorted(drawn, [seen, seen + len(block.X)])
            chosen = np.zeros(len(block.X), dtype=bool)
            chosen[drawn[first:last] - seen] = True
            seen += len(block.X)
            start = _put(data, start, found, block.only(chosen))
            rest = block.only(~chosen)
            if len(rest.X) and found.holds_numbers:
                labels = found.labels[rest.codes]
                yield ClassMoments.from_arrays(rest.X, labels, classes=found.labels)

    moments = ClassMoments.reduce(chain([empty], others()))
    return data, moments if found.holds_numbers else None


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


def _put(data: TrainingData, start: int, found: Survey, block: Block) -> int:
    """Write a block into the arrays; return where the next one begins."""
    end = start + len(block.X)
    data.X[start:end], data.rows[start:end] = block.X, block.rows
    if data.y is not None:
        data.y[start:end] = found.labels[block.codes]
    return end
