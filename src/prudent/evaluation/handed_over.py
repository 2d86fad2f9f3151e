"""Which rows get no single answer: in each column the values with which more do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import hypergeom

from prudent.core.types import BoolArray, FloatArray, IntArray
from prudent.estimator_tools.labelled_rows import LabelledRows
from prudent.evaluation.evaluate import Evaluation, Task, plain_sample
from prudent.evaluation.records import ColumnRange

LEVEL = 0.05
# Rows looked at, parts of nearly equal rows of a column of numbers, ranges that are
# told, and rows that may be shown.
MOST_ROWS = 20_000
N_PARTS = 5
MOST_RANGES = 6
MOST_EXAMPLES = 5


def handed_over(
    evaluation: Evaluation, task: Task
) -> tuple[tuple[ColumnRange, ...], tuple[tuple[int, str], ...]]:
    """Which rows get no single answer under the promise asked for; () without one.

    Values of columns with which more rows do; and a few of the rows, drawn plainly, by
    their positions in the table, and their classes.
    """
    once = task.settings.n_folds  # the folds of one repeat test each row once
    tested = np.concatenate([fold.test for fold in task.folds[:once]])
    folds = evaluation.folds[:once]
    decided = [fold.decided for fold in folds if fold.decided is not None]
    if not decided:
        return (), ()
    table, seed = task.rows, task.settings.random_state
    drawn = plain_sample(len(tested), MOST_ROWS, seed)
    rows, is_left = tested[drawn], ~np.concatenate(decided)[drawn]
    left = rows[is_left]
    some = np.sort(left[plain_sample(len(left), MOST_EXAMPLES, seed)])
    examples = zip(some.tolist(), map(str, table.y[some].tolist()), strict=True)
    return column_ranges(table, rows, is_left), tuple(examples)


def column_ranges(
    table: LabelledRows, rows: IntArray, is_left: BoolArray
) -> tuple[ColumnRange, ...]:
    """Values of single columns with which significantly more rows are handed over.

    A column of numbers is cut into parts of nearly equal rows, of which runs are looked
    at; a text column into its words. Of each column the values that stand out most are
    held against all other rows by an exact test (hypergeometric), corrected for all
    that were looked at (Bonferroni).
    """
    if is_left.all() or not is_left.any():
        return ()
    found, looks = [], 0
    for name, values in zip(table.features, table.cells(rows), strict=True):
        candidates = [*(_words if values.dtype == object else _runs)(values)]
        looks += len(candidates)
        best = max(candidates, key=lambda c: _excess(c[0], is_left), default=None)
        if best is not None:
            found.append((name, *best))
    found.sort(key=lambda each: -_excess(each[1], is_left))
    ranges = []
    for name, inside, (low, high, word) in found[:MOST_RANGES]:
        n, left = int(inside.sum()), int(is_left[inside].sum())
        p = looks * hypergeom.sf(left - 1, len(is_left), int(is_left.sum()), n)
        if p <= LEVEL:
            ranges.append(
                ColumnRange(
                    column=name,
                    low=low,
                    high=high,
                    word=word,
                    n=n,
                    handed_over=left / n,
                    elsewhere=float(is_left[~inside].mean()),
                    p_value=float(p),
                )
            )
    return tuple(ranges)


Ends = tuple[float | None, float | None, str | None]


def _runs(values: FloatArray) -> Iterator[tuple[BoolArray, Ends]]:
    """Runs of the parts of a column of numbers, and its missing cells."""
    missing = np.isnan(values)
    present = values[~missing]
    if missing.any() and len(present):
        yield missing, (None, None, None)
    if not len(present):
        return
    cuts = np.quantile(present, np.arange(1, N_PARTS) / N_PARTS, method="inverted_cdf")
    parts = np.searchsorted(np.unique(cuts), values, side="left")  # NaN comes last
    last = int(parts[~missing].max())
    for first in range(last + 1):
        for end in range(first, last + 1):
            inside = (parts >= first) & (parts <= end) & ~missing
            if inside.all() or end - first == last:
                continue
            low = None if first == 0 else float(values[inside].min())
            high = None if end == last else float(values[inside].max())
            yield inside, (low, high, None)


def _words(values: NDArray[Any]) -> Iterator[tuple[BoolArray, Ends]]:
    """Words of a text column, and its missing cells."""
    missing = np.array([word is None for word in values.tolist()])
    for word in np.unique(values[~missing]).tolist():
        yield values == word, (None, None, word)
    if missing.any():
        yield missing, (None, None, None)


def _excess(inside: BoolArray, is_left: BoolArray) -> float:
    """How many standard deviations more of the rows inside are handed over."""
    n, all_rows, share = int(inside.sum()), len(is_left), float(is_left.mean())
    if n in (0, all_rows):
        return 0.0
    spread = n * share * (1 - share) * (all_rows - n) / (all_rows - 1)
    return float((is_left[inside].sum() - n * share) / np.sqrt(spread))
