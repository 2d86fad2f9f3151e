"""Deleted scores of one class: nearest rows, an ellipsoid, a kernel, or two of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from prudent.conformal.gaussian import cholesky, whiten
from prudent.conformal.ranks import Counts
from prudent.conformal.units import Rebuilt, TablesByUnits
from prudent.core.types import FloatArray


@dataclass(frozen=True, slots=True)
class OneClass:
    """Tables of the rows of one class, in the units of the bag."""

    kind: str  # {"combined", "distance", "ellipsoid", "kernel"}
    columns: FloatArray  # (d, n): training rows, transposed
    # (n, k): the k least distances of each row to the others, inf where there are
    # fewer
    nearest: FloatArray
    width: float  # width h of the kernel
    sums: FloatArray  # (n,): log kernel sum of each row over the others
    ellipsoid: Ellipsoid | None

    @classmethod
    def learn(
        cls,
        rows: FloatArray,
        kind: str,
        *,
        n_neighbors: int,
        ridge_rows: float,
        width: float | None,
    ) -> OneClass:
        """Tables of training rows."""
        n, d = rows.shape
        columns = np.ascontiguousarray(rows.T)
        nearest, sums = np.empty((0, 1)), np.empty(0)
        width = (n + 1) ** (-1 / (d + 4)) / 2 if width is None else width
        one_label = np.zeros(n, dtype=np.intp)
        if kind in ("combined", "distance"):
            from prudent.conformal._distances import nearest_by_label

            by_label = np.empty((2, n, min(n_neighbors, n)))
            nearest_by_label(columns, one_label, by_label)
            nearest = by_label[0]
        if kind == "kernel":
            from prudent.conformal._distances import kernel_sums_by_label

            of_labels = np.empty((2, n))
            kernel_sums_by_label(columns, one_label, width, of_labels)
            sums = of_labels[0]
        ellipsoid = None
        if kind in ("combined", "ellipsoid"):
            ellipsoid = Ellipsoid.learn(rows, ridge_rows)
        return cls(kind, columns, nearest, width, sums, ellipsoid)

    def counts(self, rows: FloatArray) -> Counts:
        """Training rows stranger than each new row, (m,)."""
        from prudent.conformal._distances import one_class_counts

        whitened = new = np.empty((0, 0))
        if self.ellipsoid is not None:
            whitened = np.ascontiguousarray(self.ellipsoid.whitened(self.columns.T).T)
            new = self.ellipsoid.whitened(rows)
        larger, equal = np.empty((2, len(rows)), dtype=np.intp)
        one_class_counts(
            self.kind in ("combined", "distance"),
            self.ellipsoid is not None,
            self.columns,
            self.nearest,
            self.width,
            self.sums,
            whitened,
            np.ascontiguousarray(rows),
            new,
            larger,
            equal,
        )
        return Counts(larger, equal)


@dataclass(frozen=True, slots=True)
class Ellipsoid:
    """Distance from the mean in the metric of the scatter with a ridge."""

    mean: FloatArray  # (d,)
    factor: FloatArray  # (d, d): Cholesky factor of the metric

    @classmethod
    def learn(cls, rows: FloatArray, ridge_rows: float) -> Ellipsoid:
        """Mean and scatter of rows; SingularCovarianceError if it is singular."""
        mean = rows.mean(axis=0)
        mean += (rows - mean).mean(axis=0)
        centred = rows - mean
        metric = centred.T @ centred + ridge_rows * np.eye(len(mean))
        return cls(mean, cholesky(metric, "the covariance"))

    def whitened(self, rows: FloatArray) -> FloatArray:
        """Rows about the mean, whose squared lengths are the distances."""
        return whiten(rows - self.mean, self.factor)


class FullOneClass(Rebuilt):
    """Ranks of new rows among the rows of one class, in every augmented bag."""

    def __init__(self, rows: FloatArray, kind: str, **settings: Any) -> None:
        self.rows, self.kind, self.settings = rows, kind, settings
        self._prepare()

    def _prepare(self) -> None:
        self._tables = TablesByUnits(self.rows, self._build)
        self._tables.of(self._tables.columns.exponents())

    def _build(self, rows: FloatArray) -> OneClass:
        return OneClass.learn(rows, self.kind, **self.settings)

    def counts(self, rows: FloatArray) -> Counts:
        """Training rows stranger than each new row."""
        larger, equal = np.empty((2, len(rows)), dtype=np.intp)
        for positions, scaled, tables in self._tables.groups(rows):
            found = tables.counts(scaled)
            larger[positions], equal[positions] = found.larger, found.equal
        return Counts(larger, equal)

    def farness(self, rows: FloatArray) -> FloatArray:
        """Root mean square d of the standardised columns, as d / (1 + d)."""
        columns = self._tables.columns
        return farness(columns.centre(rows) - columns.mean, columns.deviation)


def farness(deviations: FloatArray, scale: FloatArray) -> FloatArray:
    """Root mean square d of deviations in units of `scale` > 0, as d / (1 + d)."""
    varies = scale > 0
    if not varies.any():
        return np.zeros(len(deviations))
    z = np.abs(deviations[:, varies]) / scale[varies]
    largest = np.maximum(z.max(axis=1, keepdims=True), 1.0)
    with np.errstate(over="ignore"):
        d = largest[:, 0] * np.sqrt(np.square(z / largest).mean(axis=1))
    # 1 - 1/(1 + d) stays below 1 in floating point, and finite for infinite d.
    return np.minimum(1 - 1 / (1 + d), 1 - 2.0**-53)
