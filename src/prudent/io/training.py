"""Rows in memory for a fit: all of a table, or a sample drawn from it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from prudent.core.moments import ClassMoments
from prudent.core.types import FloatArray, IntArray
from prudent.io.preparation import Preparation
from prudent.io.survey import Block, Survey, survey_table
from prudent.io.table import Table, TableSource


@dataclass(frozen=True)
class TrainingData:
    """Rows ready for a fit: n of them, in d columns."""

    frame: pa.Table  # numbers and words by name; missing are NaN and null
    y: NDArray[Any] | None  # (n,): labels, integers where every label is one
    preparation: Preparation  # how `frame` came about
    notes: tuple[str, ...]  # what a reader should know, one sentence each
    constant: tuple[str, ...]  # columns of one value, which were left out
    rows: IntArray  # (n,): their positions in the table
    n_available: int  # rows these were drawn from
    groups: NDArray[Any] | None = None  # rows that belong together have equal values

    @cached_property
    def X(self) -> FloatArray:
        """Numbers, and codes of words, shape (n, d); missing cells are NaN."""
        return self.preparation.read(Table(self.frame, "", str))


def training_data(
    source: TableSource, target: str | None, **options: Any
) -> TrainingData:
    """Check a table and turn it into arrays; options as `survey_table`."""
    return all_rows(survey_table(source, target, **options))


def all_rows(found: Survey) -> TrainingData:
    """All rows of a surveyed table."""
    return _joined(found, list(found.blocks()))


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
    positions = np.sort(rng.choice(found.n_rows, n_drawn, replace=False, shuffle=False))
    drawn: list[Block] = []
    n_columns = len(found.preparation.names)
    empty = ClassMoments.empty(np.unique(found.labels), n_columns)

    def others() -> Iterator[ClassMoments]:
        seen = 0
        for block in found.blocks():
            n_rows = len(block.rows)
            first, last = np.searchsorted(positions, [seen, seen + n_rows])
            chosen = np.zeros(n_rows, dtype=bool)
            chosen[positions[first:last] - seen] = True
            seen += n_rows
            drawn.append(block.only(chosen))
            rest = block.only(~chosen)
            if len(rest.rows) and found.holds_numbers:
                labels = found.labels[rest.codes]
                yield ClassMoments.from_arrays(rest.X, labels, classes=found.labels)

    moments = ClassMoments.reduce(chain([empty], others()))
    return _joined(found, drawn), moments if found.holds_numbers else None


def _joined(found: Survey, blocks: Sequence[Block]) -> TrainingData:
    """The rows of some blocks together."""
    codes = np.concatenate([block.codes for block in blocks])
    return TrainingData(
        frame=pa.concat_tables([block.frame for block in blocks]),
        y=None if found.label is None else found.labels[codes],
        preparation=found.preparation,
        notes=found.notes,
        constant=found.constant,
        rows=np.concatenate([block.rows for block in blocks]),
        n_available=found.n_rows,
    )
