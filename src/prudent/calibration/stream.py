"""Calibration of rows that arrive in batches: add their statistics, take one step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prudent.calibration.ascent import step_on_batch
from prudent.calibration.families import Family, Statistics
from prudent.calibration.model import Model, prepare
from prudent.calibration.objective import Objective
from prudent.calibration.settings import Settings
from prudent.calibration.spread import Spread, column_moments
from prudent.calibration.trials import numbers_of, weights
from prudent.core.classes import spread_over_classes
from prudent.core.rows import Block
from prudent.core.types import BoolArray, FloatArray


@dataclass(frozen=True)
class Stream:
    """Statistics of all rows so far."""

    family: Family  # centre and scale are those of the first batch
    classes: NDArray[Any]  # in sorted order
    is_declared: bool  # whether the caller named all classes in advance
    statistics: Statistics  # calibrated, blocks of zeros for classes not yet seen
    labels: Statistics  # s(X, Y)
    #: Log loss, error, risk and lr of the model before each step, on its batch.
    curve: tuple[tuple[float, ...], ...] = ()
    n_frozen: int = 0  # steps in which some block or count did not move in full

    @classmethod
    def begin(
        cls,
        settings: Settings,
        block: Block,
        classes: NDArray[Any],
        is_declared: bool,
    ) -> Stream:
        """Stream without rows, standardised by the first batch."""
        spread = None
        if settings.structure is not None:
            weight = weights(block)
            moments = column_moments(
                numbers_of(block),
                weight,
                settings.structure,
                learns_missing=settings.learns_missing,
            )
            spread = Spread.of(moments, float(weight.sum()))
        family = settings.make(spread)
        nothing = np.zeros((1, len(classes)))
        empty = family.statistics(prepare(family, block.X[:1]), nothing)
        if hasattr(family, "with_rows"):
            family = replace(family, total=0.0)  # type: ignore[type-var]
        return cls(family, classes, is_declared, empty, empty)

    @property
    def seen(self) -> BoolArray:
        """Classes with at least one row."""
        return self.labels[0] > 0

    @property
    def curves(self) -> FloatArray:
        """Log loss, error, risk and lr of each step, shape (4, n_steps)."""
        return np.array(self.curve, dtype=np.float64).reshape(-1, 4).T

    def with_classes(self, classes: NDArray[Any]) -> Stream:
        """The same stream with a block for each of `classes`, old and new."""
        known = np.isin(classes, self.classes)
        return replace(
            self,
            classes=classes,
            statistics=_spread(self.statistics, known),
            labels=_spread(self.labels, known),
        )

    def add(self, block: Block, settings: Settings) -> Stream:
        """Add the statistics of a batch and take one step on it, if that can be."""
        family, weight, costs = self.family, weights(block), settings.costs
        rows = prepare(family, block.X)
        if hasattr(family, "with_rows"):
            family = family.with_rows(rows, weight)
        batch = Objective.of(
            family, Block(rows, block.codes, weight), len(self.classes)
        ).closed_form()
        grown = replace(
            self,
            family=family,
            statistics=_sum(self.statistics, batch),
            labels=_sum(self.labels, batch),
        )
        if not grown.is_solved():
            return grown
        seen = np.flatnonzero(grown.seen)
        objective = Objective.of(
            family,
            Block(rows, np.searchsorted(seen, block.codes), weight),
            len(seen),
            costs=None if costs is None else costs[np.ix_(seen, seen)],
            generative_weight=settings.generative_weight,
        )
        labels = [of_all[seen] for of_all in grown.labels]
        before, after = step_on_batch(
            objective, grown.of_seen_classes(), labels, settings.rule
        )
        return replace(
            grown,
            statistics=_spread(after, grown.seen),
            curve=(*self.curve, before.curve_point),
            n_frozen=self.n_frozen + (not before.is_full_step),
        )

    def of_seen_classes(self) -> Statistics:
        """Calibrated statistics without the blocks of unseen classes."""
        return [block[self.seen] for block in self.statistics]

    def is_solved(self) -> bool:
        """Whether two classes were seen and all seen classes can be solved."""
        start = self.of_seen_classes()
        return len(start[0]) >= 2 and bool(self.family.is_valid(start).all())

    def model(self, costs: FloatArray | None) -> Model:
        """The rule of the classes seen so far."""
        parameters = self.family.parameters(self.of_seen_classes())
        return Model(self.family, parameters, self.seen, costs)


def classes_after(
    stream: Stream | None, declared: ArrayLike | None, y: NDArray[Any]
) -> NDArray[Any]:
    """All classes once a batch with labels `y` has been added."""
    if stream is None:
        known = np.unique(y if declared is None else declared)
    elif stream.is_declared:
        known = stream.classes
        if declared is not None and not np.array_equal(np.unique(declared), known):
            raise ValueError(
                f"`classes` must stay {known.tolist()} in every call of "
                f"partial_fit, got {np.unique(declared).tolist()}."
            )
    else:
        known = np.union1d(stream.classes, y if declared is None else declared)
    unknown = np.setdiff1d(y, known)
    if len(unknown):
        raise ValueError(
            f"y holds the label {unknown.tolist()[0]!r}, which is not among the "
            f"declared `classes` {known.tolist()}."
        )
    return known


def _spread(statistics: Statistics, known: BoolArray) -> Statistics:
    return [spread_over_classes(block, known, 0.0, axis=0) for block in statistics]


def _sum(left: Statistics, right: Statistics) -> Statistics:
    return [a + b for a, b in zip(left, right, strict=True)]
