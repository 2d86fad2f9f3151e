"""Scores by distances to the rows of each label: kernel sums and nearest neighbours.

Distances are computed as differences, so that equal rows are at distance 0 exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from prudent.conformal.gaussian import (
    BLOCK_ENTRIES,
    Diagonal,
    Gaussian,
    strangeness,
)
from prudent.conformal.ranks import Counts, Second
from prudent.core.types import FloatArray, IntArray


@dataclass(frozen=True)
class Neighbours:
    """Log mean distance to the nearest rows of the own label, less that to others."""

    columns: FloatArray  # (d, n): training rows, transposed, in the units of the bag
    codes: IntArray  # (n,)
    n_classes: int
    k: int

    def log_joint(self, rows: FloatArray) -> FloatArray:
        """Minus the log mean distance to the nearest rows of each label."""
        return -log_means(self._nearest_of_classes(rows))

    @cached_property
    def nearest(self) -> FloatArray:
        """The k least distances of each row to its label and to others, (2, n, k).

        Ascending; inf where there are fewer.
        """
        from prudent.conformal._distances import nearest_by_label

        nearest = np.empty((2, self.columns.shape[1], self.k))
        nearest_by_label(self.columns, self.codes, nearest)
        return nearest

    def _nearest_of_classes(self, rows: FloatArray) -> FloatArray:
        """The k least distances of each new row to the rows of each label."""
        from prudent.conformal._distances import nearest_of_classes

        nearest = np.empty((len(rows), self.n_classes, self.k))
        rows = np.ascontiguousarray(rows)
        nearest_of_classes(self.columns, self.codes, rows, nearest)
        return nearest

    def counts(self, rows: FloatArray, category: IntArray, wanted: IntArray) -> Counts:
        """Training rows stranger than each new row under each label."""
        from prudent.conformal._distances import nearest_counts

        larger, equal = np.empty((2, *wanted.shape), dtype=np.intp)
        nearest_counts(
            self.columns,
            self.codes,
            np.ascontiguousarray(rows),
            self.nearest,
            log_means(self.nearest),
            (category, wanted, self.asked(rows)),
            larger,
            equal,
        )
        return Counts(larger, equal)

    def asked(self, rows: FloatArray) -> FloatArray:
        """Score of each new row under each label, (m, n_classes)."""
        nearest = self._nearest_of_classes(rows)
        asked: FloatArray = np.empty(nearest.shape[:2])
        for c in range(asked.shape[1]):
            others = np.delete(nearest, c, axis=1).reshape(len(rows), -1)
            others = np.sort(others, axis=1)[:, : self.k]
            asked[:, c] = log_means(nearest[:, c]) - log_means(others)
        return asked

    def second(self, rows: FloatArray) -> Second:
        """Scores to blend with those of another model."""
        from prudent.conformal._distances import nearest_pairs

        rows = np.ascontiguousarray(rows)
        own, other = np.empty((2, len(rows), self.columns.shape[1]))
        logs = log_means(self.nearest)
        nearest_pairs(self.columns, rows, self.nearest, logs, own, other)
        return Second(own, other, self.asked(rows))


@dataclass(frozen=True, slots=True)
class Combined:
    """A Gaussian model whose scores are blended with those of nearest neighbours."""

    gaussian: Gaussian | Diagonal
    neighbours: Neighbours

    def log_joint(self, rows: FloatArray) -> FloatArray:
        """That of the Gaussian model."""
        return self.gaussian.log_joint(rows)

    def counts(
        self,
        rows: FloatArray,
        category: IntArray,
        wanted: IntArray,
        *,
        by_class: bool,
    ) -> Counts:
        """Training rows stranger than each new row under each label."""
        larger, equal = np.empty((2, *wanted.shape), dtype=np.intp)
        step = max(BLOCK_ENTRIES // (len(category) * wanted.shape[1]), 1)
        for start in range(0, len(rows), step):
            block = slice(start, start + step)
            found = self.gaussian.counts(
                rows[block],
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


@dataclass(frozen=True)
class Kernel:
    """Log kernel sum over rows of other labels, less that over the own label."""

    columns: FloatArray  # (d, n): training rows, transposed, in the units of the bag
    codes: IntArray  # (n,)
    n_classes: int
    width: float  # h of exp(-D^2 / (2 h^2))

    def log_joint(self, rows: FloatArray) -> FloatArray:
        """Log kernel sum over the rows of each label."""
        from prudent.conformal._distances import kernel_sums_of_classes

        sums = np.empty((len(rows), self.n_classes))
        rows = np.ascontiguousarray(rows)
        kernel_sums_of_classes(self.columns, self.codes, rows, self.width, sums)
        return sums

    @cached_property
    def sums(self) -> FloatArray:
        """Log sums of each row over the others of its label, and of others, (2, n)."""
        from prudent.conformal._distances import kernel_sums_by_label

        sums = np.empty((2, self.columns.shape[1]))
        kernel_sums_by_label(self.columns, self.codes, self.width, sums)
        return sums

    def counts(self, rows: FloatArray, category: IntArray, wanted: IntArray) -> Counts:
        """Training rows stranger than each new row under each label."""
        from prudent.conformal._distances import kernel_counts

        asked = strangeness(self.log_joint(rows), "posterior")
        larger, equal = np.empty((2, *wanted.shape), dtype=np.intp)
        kernel_counts(
            self.columns,
            self.codes,
            np.ascontiguousarray(rows),
            self.width,
            self.sums,
            (category, wanted, asked),
            larger,
            equal,
        )
        return Counts(larger, equal)
