"""Deleted scores of one class: nearest rows, an ellipsoid, a kernel, or two of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from prudent.conformal.gaussian import cholesky, whiten
from prudent.conformal.ranks import Counts
from prudent.core.types import FloatArray


@dataclass(frozen=True, slots=True)
class OneClass:
    """Tables of the rows of one class, in the units of the bag.

    Attributes
    ----------
    kind : {"combined", "distance", "ellipsoid", "kernel"}
    columns : ndarray of shape (d, n)
        Training rows, transposed.
    nearest : ndarray of shape (n, k)
        The k least distances of each row to the others, inf where there are fewer.
    width : float
        Width h of the kernel.
    sums : ndarray of shape (n,)
        Log kernel sum of each row over the others.
    ellipsoid : Ellipsoid or None
    """

    kind: str
    columns: FloatArray
    nearest: FloatArray
    width: float
    sums: FloatArray
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
        """Tables of training rows.

        Parameters
        ----------
        rows : ndarray of shape (n, d)
            In the units of the bag.
        kind : {"combined", "distance", "ellipsoid", "kernel"}
        n_neighbors : int
            k, at least 1.
        ridge_rows : float
            Pseudo-rows of the identity in the scatter.
        width : float or None
            Width of the kernel; None: (n + 1)^(-1/(d + 4)) / 2.

        Raises
        ------
        SingularCovarianceError
            If the ellipsoid is asked for and its matrix is singular.
        """
        n, d = rows.shape
        columns = np.ascontiguousarray(rows.T)
        nearest, sums = np.empty((0, 1)), np.empty(0)
        width = (n + 1) ** (-1 / (d + 4)) / 2 if width is None else width
        if kind in ("combined", "distance"):
            from prudent.conformal._distances import nearest_rows

            nearest = np.empty((n, min(n_neighbors, n)))
            nearest_rows(columns, nearest)
        if kind == "kernel":
            from prudent.conformal._distances import kernel_rows

            sums = np.empty(n)
            kernel_rows(columns, width, sums)
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
    """Distance from the mean in the metric of the scatter with a ridge.

    Attributes
    ----------
    mean : ndarray of shape (d,)
    factor : ndarray of shape (d, d)
        Cholesky factor of the metric.
    """

    mean: FloatArray
    factor: FloatArray

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
