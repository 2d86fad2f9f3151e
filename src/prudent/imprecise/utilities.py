"""Sets and their utility along the whole path in the imprecision."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from prudent.core.types import BoolArray, FloatArray, IntArray

#: a in the utility a / size - (a - 1) / size^2 of a set that holds the truth.
REWARDS = {"discounted_accuracy": 1.0, "u65": 1.6, "u80": 2.2}


def mean_utilities(
    critical: FloatArray,
    truth: BoolArray,
    weight: FloatArray,
    grid: FloatArray,
    reward: float,
) -> FloatArray:
    """Mean utility of the sets {k : critical <= c} at every c of an increasing grid.

    With a = `reward` the utility is a / size - (a - 1) / size^2 of a set with the
    truth, (41) of the paper with its second sign put right; 0 without. `truth` (n, K)
    marks the column of the true class, none for a class the model does not know.
    """
    entry = np.searchsorted(grid, critical)  # first grid point with the class in
    n_rows, n_grid = len(critical), len(grid)
    entered = np.zeros((n_rows, n_grid + 1))
    np.add.at(entered, (np.arange(n_rows)[:, None], entry), 1.0)
    size = np.maximum(np.cumsum(entered[:, :-1], axis=1), 1.0)
    hits = np.where(truth, entry, n_grid).min(axis=1)[:, None] <= np.arange(n_grid)
    utility = np.where(hits, reward / size - (reward - 1.0) / size**2, 0.0)
    return weight @ utility / weight.sum()


def critical_on_grid(
    keep: Callable[[IntArray, float], BoolArray],
    n_rows: int,
    n_classes: int,
    grid: FloatArray,
) -> FloatArray:
    """First grid point with each class in the set of each row; infinite if none.

    `keep` takes positions of rows and an imprecision to their sets. Sets grow with the
    imprecision, so only intervals whose ends differ are halved.
    """
    everything = np.arange(n_rows)
    critical = np.full((n_rows, n_classes), np.inf)
    first = keep(everything, float(grid[0]))
    critical[first] = grid[0]
    last = keep(everything, float(grid[-1])) | first
    open_parts = [(0, len(grid) - 1, everything, first, last)]
    while open_parts:
        start, end, rows, first, last = open_parts.pop()
        differ = (first != last).any(axis=1)
        rows, first, last = rows[differ], first[differ], last[differ]
        if not len(rows):
            continue
        if end - start == 1:
            critical[rows] = np.where(last & ~first, grid[end], critical[rows])
            continue
        middle = (start + end) // 2
        sets = (keep(rows, float(grid[middle])) | first) & last
        open_parts.append((start, middle, rows, first, sets))
        open_parts.append((middle, end, rows, sets, last))
    return critical
