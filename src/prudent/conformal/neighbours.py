"""Scores by distances to the rows of each label: kernel sums and nearest neighbours.

Distances are computed as differences, so that equal rows are at distance 0 exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from prudent.conformal.ranks import Counts
from prudent.core.types import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Log mean distance to the nearest rows of the own label, less that to others.

    Attributes
    ----------
    columns : ndarray of shape (d, n)
        Training rows, transposed, in the units of the bag.
    codes : ndarray of int, shape (n,)
    n_classes, k : int
    nearest : ndarray of shape (2, n, k)
        The k least distances of each row to its own label and to the others,
        ascending, inf where there are fewer.
    """

    columns: FloatArray
    codes: IntArray
    n_classes: int
    k: int
    nearest: FloatArray

    @classmethod
    def learn(
        cls, rows: FloatArray, codes: IntArray, n_classes: int, k: int
    ) -> Neighbours:
        """Tables of training rows."""
        from prudent.conformal._distances import nearest_by_label

        columns = np.ascontiguousarray(rows.T)
        nearest = np.empty((2, len(rows), k))
        nearest_by_label(columns, codes, nearest)
        return cls(columns, codes, n_classes, k, nearest)

    def log_joint(self, rows: FloatArray) -> FloatArray:
        """Minus the log mean distance to the nearest rows of each label."""
        from prudent.conformal._distances import nearest_of_classes

        nearest = np.empty((len(rows), self.n_classes, self.k))
        nearest_of_classes(
            self.columns, self.codes, np.ascontiguousarray(rows), nearest
        )
        return -log_means(nearest)

    def counts(
        self, rows: FloatArray, category: IntArray, wanted: IntArray
    ) -> Counts:
        """Training rows stranger than each new row under each label."""
        from prudent.conformal._distances import nearest_counts, nearest_of_classes

        rows = np.ascontiguousarray(rows)
        nearest = np.empty((len(rows), self.n_classes, self.k))
        nearest_of_classes(self.columns, self.codes, rows, nearest)
        asked = np.empty((len(rows), self.n_classes))
        for c in range(self.n_classes):
            others = np.delete(nearest, c, axis=1).reshape(len(rows), -1)
            others = np.sort(others, axis=1)[:, : self.k]
            asked[:, c] = log_means(nearest[:, c]) - log_means(others)
        larger, equal = np.empty((2, *asked.shape), dtype=np.intp)
        nearest_counts(
            self.columns,
            self.codes,
            rows,
            self.nearest,
            log_means(self.nearest),
            asked,
            wanted,
            category,
            larger,
            equal,
        )
        return Counts(larger, equal)


def log_means(distances: FloatArray) -> FloatArray:
    """Log mean of the finite distances along the last axis; inf if there is none."""
    finite = np.isfinite(distances)
    n = finite.sum(axis=-1)
    total = np.where(finite, distances, 0.0).sum(axis=-1)
    means = np.maximum(total / np.maximum(n, 1), np.finfo(np.float64).tiny)
    return np.where(n > 0, np.log(means), np.inf)


@dataclass(frozen=True, slots=True)
class Kernel:
    """Log kernel sum over rows of other labels, less that over the own label.

    Attributes
    ----------
    columns : ndarray of shape (d, n)
        Training rows, transposed, in the units of the bag.
    codes : ndarray of int, shape (n,)
    n_classes : int
    width : float
        h of exp(-D^2 / (2 h^2)).
    sums : ndarray of shape (2, n)
        Log sums of each row over the other rows of its label and over other labels.
    """

    columns: FloatArray
    codes: IntArray
    n_classes: int
    width: float
    sums: FloatArray

    @classmethod
    def learn(
        cls, rows: FloatArray, codes: IntArray, n_classes: int, width: float | None
    ) -> Kernel:
        """Tables of training rows; `width` None: (n + 1)^(-1/(d + 4))."""
        from prudent.conformal._distances import kernel_sums_by_label

        n, d = rows.shape
        width = (n + 1) ** (-1 / (d + 4)) if width is None else width
        columns = np.ascontiguousarray(rows.T)
        sums = np.empty((2, n))
        kernel_sums_by_label(columns, codes, width, sums)
        return cls(columns, codes, n_classes, width, sums)

    def log_joint(self, rows: FloatArray) -> FloatArray:
        """Log kernel sum over the rows of each label."""
        from prudent.conformal._distances import kernel_sums_of_classes

        sums = np.empty((len(rows), self.n_classes))
        kernel_sums_of_classes(
            self.columns, self.codes, np.ascontiguousarray(rows), self.width, sums
        )
        return sums

    def counts(
        self, rows: FloatArray, category: IntArray, wanted: IntArray
    ) -> Counts:
        """Training rows stranger than each new row under each label."""
        from prudent.conformal._distances import kernel_counts

        rows = np.ascontiguousarray(rows)
        own = self.log_joint(rows)
        asked = np.empty_like(own)
        for c in range(self.n_classes):
            others = np.delete(own, c, axis=1)
            asked[:, c] = np.logaddexp.reduce(others, axis=1) - own[:, c]
        larger, equal = np.empty((2, *asked.shape), dtype=np.intp)
        kernel_counts(
            self.columns,
            self.codes,
            rows,
            self.width,
            self.sums,
            asked,
            wanted,
            category,
            larger,
            equal,
        )
        return Counts(larger, equal)
