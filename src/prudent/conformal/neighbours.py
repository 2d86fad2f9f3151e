"""Scores by distances to the rows of each label: kernel sums and nearest neighbours.

Distances are computed as differences, so that equal rows are at distance 0 exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from prudent.conformal.diagonal import Diagonal
from prudent.conformal.gaussian import BLOCK_ENTRIES, GaussianTables, strangeness
from prudent.conformal.ranks import Counts, Second
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
    """

    columns: FloatArray
    codes: IntArray
    n_classes: int
    k: int

    @classmethod
    def learn(
        cls, rows: FloatArray, codes: IntArray, n_classes: int, k: int
    ) -> Neighbours:
        """Model of training rows."""
        return cls(np.ascontiguousarray(rows.T), codes, n_classes, k)

    def log_joint(self, rows: FloatArray) -> FloatArray:
        """Minus the log mean distance to the nearest rows of each label."""
        return -log_means(self.nearest(rows))

    def nearest(self, rows: FloatArray) -> FloatArray:
        """The k least distances of each new row to the rows of each label."""
        from prudent.conformal._distances import nearest_of_classes

        nearest = np.empty((len(rows), self.n_classes, self.k))
        nearest_of_classes(
            self.columns, self.codes, np.ascontiguousarray(rows), nearest
        )
        return nearest


@dataclass(frozen=True, slots=True)
class NeighbourTables:
    """Neighbours of the training rows among themselves.

    Attributes
    ----------
    model : Neighbours
    nearest : ndarray of shape (2, n, k)
        The k least distances of each row to its own label and to the others,
        ascending, inf where there are fewer.
    """

    model: Neighbours
    nearest: FloatArray

    @classmethod
    def of(cls, model: Neighbours) -> NeighbourTables:
        """Tables of the rows that the model was learned from."""
        from prudent.conformal._distances import nearest_by_label

        nearest = np.empty((2, model.columns.shape[1], model.k))
        nearest_by_label(model.columns, model.codes, nearest)
        return cls(model, nearest)

    def counts(self, rows: FloatArray, category: IntArray, wanted: IntArray) -> Counts:
        """Training rows stranger than each new row under each label."""
        from prudent.conformal._distances import nearest_counts

        model = self.model
        asked = self.asked(rows)
        larger, equal = np.empty((2, *wanted.shape), dtype=np.intp)
        nearest_counts(
            model.columns,
            model.codes,
            np.ascontiguousarray(rows),
            self.nearest,
            log_means(self.nearest),
            asked,
            wanted,
            category,
            larger,
            equal,
        )
        return Counts(larger, equal)

    def asked(self, rows: FloatArray) -> FloatArray:
        """Score of each new row under each label, (m, n_classes)."""
        nearest = self.model.nearest(rows)
        asked: FloatArray = np.empty(nearest.shape[:2])
        for c in range(asked.shape[1]):
            others = np.delete(nearest, c, axis=1).reshape(len(rows), -1)
            others = np.sort(others, axis=1)[:, : self.model.k]
            asked[:, c] = log_means(nearest[:, c]) - log_means(others)
        return asked

    def second(self, rows: FloatArray) -> Second:
        """Scores to blend with those of another model."""
        from prudent.conformal._distances import nearest_pairs

        rows = np.ascontiguousarray(rows)
        own, other = np.empty((2, len(rows), self.model.columns.shape[1]))
        logs = log_means(self.nearest)
        nearest_pairs(self.model.columns, rows, self.nearest, logs, own, other)
        return Second(own, other, self.asked(rows))


@dataclass(frozen=True, slots=True)
class CombinedTables:
    """A Gaussian model whose scores are blended with those of nearest neighbours."""

    gaussian: GaussianTables | Diagonal
    neighbours: NeighbourTables

    def counts(
        self,
        rows: FloatArray,
        category: IntArray,
        wanted: IntArray,
        *,
        by_class: bool = False,
    ) -> Counts:
        """Training rows stranger than each new row under each label."""
        larger, equal = np.empty((2, *wanted.shape), dtype=np.intp)
        step = max(BLOCK_ENTRIES // (len(category) * wanted.shape[1]), 1)
        for start in range(0, len(rows), step):
            block = slice(start, start + step)
            found = self.gaussian.counts(
                rows[block],
                "posterior",
                category,
                wanted[block],
                by_class=by_class,
                second=self.neighbours.second(rows[block]),
            )
            larger[block], equal[block] = found.larger, found.equal
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
    """

    columns: FloatArray
    codes: IntArray
    n_classes: int
    width: float

    @classmethod
    def learn(
        cls, rows: FloatArray, codes: IntArray, n_classes: int, width: float | None
    ) -> Kernel:
        """Model of training rows; `width` None: (n + 1)^(-1/(d + 4))."""
        n, d = rows.shape
        width = (n + 1) ** (-1 / (d + 4)) if width is None else width
        return cls(np.ascontiguousarray(rows.T), codes, n_classes, width)

    def log_joint(self, rows: FloatArray) -> FloatArray:
        """Log kernel sum over the rows of each label."""
        from prudent.conformal._distances import kernel_sums_of_classes

        sums = np.empty((len(rows), self.n_classes))
        kernel_sums_of_classes(
            self.columns, self.codes, np.ascontiguousarray(rows), self.width, sums
        )
        return sums


@dataclass(frozen=True, slots=True)
class KernelTables:
    """Kernel sums of the training rows among themselves.

    Attributes
    ----------
    model : Kernel
    sums : ndarray of shape (2, n)
        Log sums of each row over the other rows of its label and over other labels.
    """

    model: Kernel
    sums: FloatArray

    @classmethod
    def of(cls, model: Kernel) -> KernelTables:
        """Tables of the rows that the model was learned from."""
        from prudent.conformal._distances import kernel_sums_by_label

        sums = np.empty((2, model.columns.shape[1]))
        kernel_sums_by_label(model.columns, model.codes, model.width, sums)
        return cls(model, sums)

    def counts(self, rows: FloatArray, category: IntArray, wanted: IntArray) -> Counts:
        """Training rows stranger than each new row under each label."""
        from prudent.conformal._distances import kernel_counts

        model = self.model
        asked = strangeness(model.log_joint(rows), "posterior")
        larger, equal = np.empty((2, *wanted.shape), dtype=np.intp)
        kernel_counts(
            model.columns,
            model.codes,
            np.ascontiguousarray(rows),
            model.width,
            self.sums,
            asked,
            wanted,
            category,
            larger,
            equal,
        )
        return Counts(larger, equal)
