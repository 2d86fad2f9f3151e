"""Full conformal ranks: every training row is used to fit and to rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from prudent.conformal.diagonal import Diagonal
from prudent.conformal.gaussian import Gaussian, GaussianTables
from prudent.conformal.neighbours import (
    CombinedTables,
    Kernel,
    KernelTables,
    Neighbours,
    NeighbourTables,
)
from prudent.conformal.one_class import OneClass
from prudent.conformal.ranks import Counts, Kinds
from prudent.conformal.units import TablesByUnits, in_units
from prudent.core.types import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Settings:
    """Constants of a model, all fixed before the data are seen.

    Attributes
    ----------
    model : {"gaussian", "kernel", "neighbors", "combined"}
    covariance_type : {"full", "tied", "diag", "identity"}
    pooled_rows, ridge_rows : float
    n_neighbors : int
    width : float or None
    score : {"posterior", "margin", "density"}
        Of the Gaussian model; the others have one of their own.
    """

    model: str
    covariance_type: str
    pooled_rows: float
    ridge_rows: float
    n_neighbors: int
    width: float | None
    score: str


ClassTables = (
    GaussianTables | Diagonal | KernelTables | NeighbourTables | CombinedTables
)


class FullClassModel:
    """A model of the training rows, and ranks in every augmented bag.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
    codes : ndarray of int, shape (n,)
        Class numbers; each class has a row.
    names : sequence of str
        The classes, for messages.
    settings : Settings
    kinds : Kinds
        Which of the rows rank which new rows.

    Raises
    ------
    SingularCovarianceError
        If a covariance is singular.
    """

    def __init__(
        self,
        rows: FloatArray,
        codes: IntArray,
        names: Sequence[str],
        settings: Settings,
        kinds: Kinds,
    ) -> None:
        order = np.argsort(codes, kind="stable")
        self.rows = rows[order]
        self.codes = codes[order].astype(np.intp)
        self.category = kinds.of_rows[order]
        # Where kinds are classes, rows of other classes need no scores.
        self.by_class = kinds.labels is not None and np.array_equal(
            self.category, self.codes
        )
        self.names = list(names)
        self.settings = settings
        self._prepare()

    def _prepare(self) -> None:
        self._tables = TablesByUnits(self.rows, self._build)
        self._units = self._tables.columns.exponents()
        self._model = self._learn(in_units(self._tables.columns.rows, self._units))

    def joint(self, rows: FloatArray) -> FloatArray:
        """Log joint of rows and classes under the model of the training rows."""
        centred = self._tables.columns.centre(rows)
        return self._model.log_joint(in_units(centred, self._units))

    def counts(self, rows: FloatArray, wanted: IntArray) -> Counts:
        """Training rows stranger than each new row under each label.

        Parameters
        ----------
        rows : ndarray of shape (m, d)
        wanted : ndarray of int, shape (m, n_classes)
            The kind that ranks each new row under each label.
        """
        by_class = self.by_class and bool((wanted == np.arange(len(self.names))).all())
        larger, equal = np.empty((2, *wanted.shape), dtype=np.intp)
        for positions, scaled, tables in self._tables.groups(rows):
            asked = np.ascontiguousarray(wanted[positions])
            if isinstance(tables, GaussianTables | Diagonal):
                found = tables.counts(
                    scaled, self.settings.score, self.category, asked, by_class=by_class
                )
            elif isinstance(tables, CombinedTables):
                found = tables.counts(scaled, self.category, asked, by_class=by_class)
            else:
                found = tables.counts(scaled, self.category, asked)
            larger[positions], equal[positions] = found.larger, found.equal
        return Counts(larger, equal)

    def _learn(self, rows: FloatArray) -> Gaussian | Diagonal | Kernel | Neighbours:
        of = self.settings
        if of.model == "kernel":
            return Kernel.learn(rows, self.codes, len(self.names), of.width)
        if of.model == "neighbors":
            return Neighbours.learn(rows, self.codes, len(self.names), of.n_neighbors)
        if of.covariance_type == "diag":
            return Diagonal.learn(
                rows,
                self.codes,
                self.names,
                pooled_rows=of.pooled_rows,
                ridge_rows=of.ridge_rows,
            )
        return Gaussian.learn(
            rows,
            self.codes,
            self.names,
            covariance_type=of.covariance_type,
            pooled_rows=of.pooled_rows,
            ridge_rows=of.ridge_rows,
        )

    def _build(self, rows: FloatArray) -> ClassTables:
        model = self._learn(rows)
        if isinstance(model, Kernel):
            return KernelTables.of(model)
        if isinstance(model, Neighbours):
            return NeighbourTables.of(model)
        tables: GaussianTables | Diagonal
        if isinstance(model, Gaussian):
            tables = GaussianTables.of(model, rows, self.codes)
        else:
            tables = model
        if self.settings.model != "combined":
            return tables
        k = self.settings.n_neighbors
        near = Neighbours.learn(rows, self.codes, len(self.names), k)
        return CombinedTables(tables, NeighbourTables.of(near))

    def __getstate__(self) -> dict[str, Any]:
        # The tables are as large as the rows, and follow from them.
        return {k: v for k, v in vars(self).items() if not k.startswith("_")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._prepare()


class FullOneClass:
    """Ranks of new rows among the rows of one class, in every augmented bag.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
    kind : {"combined", "distance", "ellipsoid", "kernel"}
    n_neighbors, ridge_rows, width
        As in `OneClass.learn`.
    """

    def __init__(
        self,
        rows: FloatArray,
        kind: str,
        *,
        n_neighbors: int,
        ridge_rows: float,
        width: float | None,
    ) -> None:
        self.rows = rows
        self.kind = kind
        self.n_neighbors, self.ridge_rows, self.width = n_neighbors, ridge_rows, width
        self._prepare()

    def _prepare(self) -> None:
        self._tables = TablesByUnits(self.rows, self._build)
        self._tables.of(self._tables.columns.exponents())

    def _build(self, rows: FloatArray) -> OneClass:
        return OneClass.learn(
            rows,
            self.kind,
            n_neighbors=self.n_neighbors,
            ridge_rows=self.ridge_rows,
            width=self.width,
        )

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

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in vars(self).items() if not k.startswith("_")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._prepare()


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
