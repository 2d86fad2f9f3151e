"""What has to be known of all rows before the first is used, gathered part by part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from prudent.core.types import FloatArray
from prudent.io.errors import TableError, counted, listed, shown
from prudent.io.table import Table

# Rows on which collinear and identifier-like columns are looked for: notes only.
INSPECTED_ROWS = 20_000


class Figures:
    """Counts and extremes of the features, missing cells left out.

    Parameters
    ----------
    names : sequence of str
        Names of the features.

    Attributes
    ----------
    n_rows : int
        Rows that count.
    missing, infinite : ndarray of int, shape (n_features,)
        Cells that are missing, and infinite.
    low, high : ndarray of shape (n_features,)
        Smallest and largest value.
    inspected : ndarray of shape (n, n_features)
        Every k-th row, k a power of two, at most 20 000 rows.
    """

    def __init__(self, names: Sequence[str]) -> None:
        n_features = len(names)
        self.names = names
        self.n_rows = 0
        self.missing = np.zeros(n_features, dtype=np.intp)
        self.infinite = np.zeros(n_features, dtype=np.intp)
        self.low = np.full(n_features, np.inf)
        self.high = np.full(n_features, -np.inf)
        self.inspected = np.empty((0, n_features))
        self._stride = 1
        self._places: dict[int, Callable[[], str]] = {}

    def look_for_infinite(self, X: FloatArray, part: Table) -> None:
        """Count infinite cells, in rows that are left out, too."""
        infinite = np.isinf(X)
        self.infinite += infinite.sum(axis=0)
        for j in np.flatnonzero(infinite.any(axis=0)).tolist():
            self._places.setdefault(j, _place(part, int(np.argmax(infinite[:, j]))))

    def add(self, X: FloatArray) -> None:
        """Take rows that count into account."""
        self.missing += np.isnan(X).sum(axis=0)
        self.low = np.fmin(self.low, np.fmin.reduce(X, axis=0, initial=np.inf))
        self.high = np.fmax(self.high, np.fmax.reduce(X, axis=0, initial=-np.inf))
        picked = X[-self.n_rows % self._stride :: self._stride]
        self.inspected = np.concatenate([self.inspected, picked])
        while len(self.inspected) > INSPECTED_ROWS:
            self.inspected = self.inspected[::2]
            self._stride *= 2
        self.n_rows += len(X)

    def refuse_infinite(self) -> None:
        """Raise `TableError` if there is an infinite cell."""
        if not self.infinite.any():
            return
        j = int(np.argmax(self.infinite > 0))
        raise TableError(
            f"column {shown(self.names[j])} has "
            f"{counted(int(self.infinite[j]), 'infinite value')} "
            f"(first at {self._places[j]()}). Correct the cells or use "
            f"--drop {self.names[j]}"
        )

    def refuse_missing(self) -> None:
        """Raise `TableError` if there is a missing cell."""
        if not self.missing.any():
            return
        columns: list[Any] = np.flatnonzero(self.missing).tolist()
        where = [f"{self.names[j]}: {self.missing[j]}" for j in columns]
        raise TableError(
            f"{counted(int(self.missing.sum()), 'missing value')} in "
            f"{counted(len(where), 'column')} ({listed(where)}). "
            "use --missing fill or drop-rows"
        )


def _place(part: Table, row: int) -> Callable[[], str]:
    return lambda: part.place(row)
