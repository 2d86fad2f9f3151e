"""Calibration of rows that arrive in batches: add their statistics, take one step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prudent.calibration.ascent import step_on_batch
from prudent.calibration.families import Family, Statistics
from prudent.calibration.recipe import LabelledRows, Recipe, prepare

__all__ = ["Stream", "classes_after"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


@dataclass(frozen=True)
class Stream:
    """Statistics of all rows so far.

    Attributes
    ----------
    family : Family
        Centre and scale are those of the first batch.
    classes : ndarray
        Labels in sorted order.
    is_declared : bool
        Whether the caller named all classes in advance.
    statistics : list of ndarray
        Calibrated statistics, with a block of zeros for each class not yet seen.
    labels : list of ndarray
        s(X, Y) of all rows so far.
    steps : tuple of (log_loss, error, learning_rate, is_frozen)
        The model before each step, judged on its batch.
    """

    family: Family
    classes: NDArray[Any]
    is_declared: bool
    statistics: Statistics
    labels: Statistics
    steps: tuple[tuple[float, float, float, bool], ...] = ()

    @classmethod
    def begin(
        cls, recipe: Recipe, data: LabelledRows, classes: NDArray[Any], declared: bool
    ) -> Stream:
        """Stream without rows, standardised by the first batch."""
        family = recipe.make_family(data.rows, data.weight)
        nothing = np.zeros((1, len(classes)))
        empty = family.statistics(prepare(family, data.rows[:1]), nothing)
        if hasattr(family, "with_rows"):
            family = replace(family, total=0.0)  # type: ignore[type-var]
        return cls(family, classes, declared, empty, empty)

    @property
    def seen(self) -> IntArray:
        """Classes with at least one row."""
        return np.flatnonzero(self.labels[0] > 0)

    @property
    def curves(self) -> FloatArray:
        """Log loss, error and lr of each step, shape (3, n_steps)."""
        return np.array(self.steps, dtype=np.float64).reshape(-1, 4).T[:3]

    @property
    def n_frozen(self) -> int:
        """Steps in which some block or count did not move in full."""
        return sum(is_frozen for *_, is_frozen in self.steps)

    def of_seen_classes(self) -> Statistics:
        """Calibrated statistics without the blocks of unseen classes."""
        return [block[self.seen] for block in self.statistics]

    def with_classes(self, classes: NDArray[Any]) -> Stream:
        """The same stream with a block for each of `classes`, old and new."""
        positions = np.searchsorted(classes, self.classes)

        def spread(statistics: Statistics) -> Statistics:
            wider = [np.zeros((len(classes), *b.shape[1:])) for b in statistics]
            for new, block in zip(wider, statistics, strict=True):
                new[positions] = block
            return wider

        return replace(
            self,
            classes=classes,
            statistics=spread(self.statistics),
            labels=spread(self.labels),
        )

    def add(self, recipe: Recipe, data: LabelledRows) -> Stream:
        """Add the statistics of a batch and take one step on it, if that can be."""
        problem = recipe.problems(self.family)(data)
        if hasattr(self.family, "with_rows"):
            family = self.family.with_rows(problem.rows, data.weight)
            problem = replace(problem, family=family)
        batch = problem.closed_form()
        grown = replace(
            self,
            family=problem.family,
            statistics=_sum(self.statistics, batch),
            labels=_sum(self.labels, batch),
        )
        seen, start = grown.seen, grown.of_seen_classes()
        if len(seen) < 2 or not problem.family.is_valid(start).all():
            return grown
        costs = None if recipe.costs is None else recipe.costs[np.ix_(seen, seen)]
        before, after = step_on_batch(
            replace(
                problem,
                codes=np.searchsorted(seen, data.codes),
                n_classes=len(seen),
                costs=costs,
            ),
            start,
            [block[seen] for block in grown.labels],
            recipe.rule,
        )
        statistics = [block.copy() for block in grown.statistics]
        for block, new in zip(statistics, after, strict=True):
            block[seen] = new
        loss = before.evaluation.losses
        entry = (loss.log_loss, loss.error, before.step, not before.is_full_step)
        return replace(grown, statistics=statistics, steps=(*self.steps, entry))

    def is_solved(self) -> bool:
        """Whether two classes were seen and all seen classes can be solved."""
        start = self.of_seen_classes()
        return len(self.seen) >= 2 and bool(self.family.is_valid(start).all())


def classes_after(
    stream: Stream | None, declared: ArrayLike | None, y: NDArray[Any]
) -> NDArray[Any]:
    """All classes once a batch with labels `y` has been added.

    Raises
    ------
    ValueError
        If a declared list changes or `y` holds a label outside it.
    """
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


def _sum(left: Statistics, right: Statistics) -> Statistics:
    return [a + b for a, b in zip(left, right, strict=True)]
