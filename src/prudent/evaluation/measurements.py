"""What is counted and measured of a method on rows: answers, sets, shifts, regions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from prudent.core.moments import ClassMoments
from prudent.core.types import BoolArray, FloatArray, IntArray
from prudent.estimator_tools import predict_set


@dataclass(frozen=True, kw_only=True)
class Sets:
    """Set-valued predictions of the out-of-fold rows."""

    mean_size: float
    undecided: float  # share of rows whose set does not hold exactly one class
    coverage: float  # share of rows whose set holds the true class
    size_counts: tuple[float, ...]  # rows with a set of 0, 1, ..., K classes
    class_mean_size: tuple[float, ...]
    class_coverage: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class ShiftCurve:
    """Error when the tested rows move towards the nearest other class mean."""

    shifts: tuple[float, ...]  # in pooled standard deviations
    errors: tuple[float, ...]
    n: int  # rows behind each error: at most 2000, a sample of the first repeat


@dataclass(frozen=True, kw_only=True)
class FalseAlarmCurve:
    """Rows disowned by their own class at every level one may ask for, of n rows."""

    levels: tuple[float, ...]
    false_alarms: tuple[float, ...]
    n: float


@dataclass(frozen=True, kw_only=True)
class CalibrationPath:
    """What risk-based calibration changed on the rows fitted on, fold by fold."""

    error_before: tuple[float, ...]  # of the maximum-likelihood start
    error_after: tuple[float, ...]  # of the chosen iterate
    best_iterations: tuple[int, ...]  # 0 keeps the start


@dataclass(frozen=True, kw_only=True, eq=False)
class RegionMap:
    """Decisions of a method fitted in the plane of two discriminant axes."""

    x: Any  # grid along the first axis, in pooled standard deviations
    y: Any
    sets: Any  # bool (n_grid, n_grid, n_classes), rows along `y`
    predicted: Any  # (n_grid, n_grid): column of the predicted class

    @property
    def undecided(self) -> float:
        """Share of the plane where the set does not hold exactly one class."""
        return float((self.sets.sum(axis=2) != 1).mean())

    @property
    def class_shares(self) -> tuple[float, ...]:
        """Share of the plane given to each class alone."""
        alone = self.sets & (self.sets.sum(axis=2, keepdims=True) == 1)
        return tuple(alone.mean(axis=(0, 1)).tolist())


# p-values are multiples of 1 / (n + 1); rounding is far below.
ROUNDING = 1e-9


class Decisions(NamedTuple):
    """Answers to n rows, as far as an estimator gives them."""

    predicted: IntArray  # column of the predicted class
    sets: BoolArray | None = None  # (n, K): classes not ruled out
    p_values: FloatArray | None = None  # (n, K)

    def members(self, n_classes: int) -> BoolArray:
        """The sets, or those of the predicted class alone, shape (n, K)."""
        if self.sets is not None:
            return self.sets
        return self.predicted[:, None] == np.arange(n_classes)


def decide(estimator: Any, X: NDArray[Any], classes: NDArray[Any]) -> Decisions:
    """Decisions of a fitted estimator about rows; columns follow `classes`.

    A class that the estimator has not seen is never predicted and in no set.
    """
    columns = np.searchsorted(classes, getattr(estimator, "classes_", classes))

    def spread(found: NDArray[Any]) -> NDArray[Any]:
        if len(columns) == len(classes):
            return found
        wide = np.zeros((len(found), len(classes)), dtype=found.dtype)
        wide[:, columns] = found
        return wide

    if hasattr(estimator, "p_values") and not hasattr(estimator, "level"):
        # One-class rejectors: both answers follow, and a set may be empty.
        p_values = spread(estimator.p_values(X))
        sets = p_values > estimator.false_alarm_rate
        return Decisions(p_values.argmax(axis=1), sets, p_values)
    predicted = np.searchsorted(classes, estimator.predict(X))
    if hasattr(estimator, "p_values"):
        p_values = spread(estimator.p_values(X))
        if any(promise.confidence for promise in estimator.guarantees_):
            # Fewer rows are ruled out than on average at the level.
            return Decisions(predicted, spread(estimator.predict_set(X)), p_values)
        return Decisions(
            predicted, sets_at(estimator.level, p_values, predicted), p_values
        )
    if hasattr(estimator, "predict_set"):
        return Decisions(predicted, spread(predict_set(estimator, X)))
    return Decisions(predicted)


def sets_at(
    level: FloatArray | float, p_values: FloatArray, predicted: IntArray
) -> BoolArray:
    """Conformal sets at a level, or at one for each class.

    The predicted class is added, so none is empty.
    """
    sets: BoolArray = p_values > level + ROUNDING
    sets[np.arange(len(sets)), predicted] = True
    return sets


@dataclass(frozen=True, eq=False)
class Tally:
    """Predictions of tested rows, and of their sets, counted by true class.

    A method that gives no sets answers with the one class that it predicts.
    """

    confusion: IntArray  # (K, K): by true and predicted class
    set_sizes: IntArray  # (K, K + 1): by true class and size of the set
    covered: IntArray  # (K,): rows whose set holds the true class
    wrong_when_decided: IntArray  # (K,): rows whose set holds one class, another one
    gives_sets: bool = True

    @classmethod
    def count(
        cls, true: IntArray, predicted: IntArray, sets: BoolArray | None, n_classes: int
    ) -> Tally:
        """Tally of rows given as class codes, and of their sets."""
        members = Decisions(predicted, sets).members(n_classes)
        sizes = members.sum(axis=1)
        holds = members[np.arange(len(true)), true]
        return cls(
            _pairs(true, predicted, n_classes, n_classes),
            _pairs(true, sizes, n_classes, n_classes + 1),
            np.bincount(true[holds], minlength=n_classes),
            np.bincount(true[(sizes == 1) & ~holds], minlength=n_classes),
            gives_sets=sets is not None,
        )

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.confusion + other.confusion,
            self.set_sizes + other.set_sizes,
            self.covered + other.covered,
            self.wrong_when_decided + other.wrong_when_decided,
            gives_sets=self.gives_sets and other.gives_sets,
        )

    @classmethod
    def total(cls, tallies: Iterable[Tally]) -> Tally:
        """Sum of at least one tally."""
        return reduce(Tally.__add__, tallies)

    @property
    def rows(self) -> IntArray:
        """Rows of each class, shape (K,)."""
        return self.confusion.sum(axis=1)

    @property
    def shares(self) -> FloatArray:
        """Share of each class in the rows, shape (K,)."""
        shares: FloatArray = self.rows / self.rows.sum()
        return shares

    @property
    def wrong(self) -> IntArray:
        """Wrong point predictions of each class, shape (K,)."""
        return self.rows - np.diagonal(self.confusion)

    @property
    def missed(self) -> IntArray:
        """Rows of each class whose set misses it, shape (K,)."""
        return self.rows - self.covered

    @property
    def decided(self) -> IntArray:
        """Rows of each class with one answer, shape (K,)."""
        return self.set_sizes[:, 1]


def _pairs(first: IntArray, second: IntArray, rows: int, columns: int) -> IntArray:
    counts = np.bincount(first * columns + second, minlength=rows * columns)
    return counts.reshape(rows, columns)


SHIFTS = tuple(np.linspace(0.0, 2.0, 9).tolist())


def shifted_rows(
    X: NDArray[np.float64], codes: NDArray[np.intp], moments: ClassMoments
) -> NDArray[np.float64]:
    """Rows moved by each of `SHIFTS` towards the nearest other class mean.

    Lengths are in pooled standard deviations; a row stops at the mean that it moves to.
    The result has the shape (n_shifts, n, d).
    """
    scale = np.sqrt(moments.variation.sum(axis=0) / moments.weight.sum())
    unit = np.where(scale > 0, scale, 1.0)
    gaps = (moments.mean[None] - X[:, None]) / unit
    gaps[:, :, scale == 0] = 0.0
    distance = np.sqrt(np.einsum("ikj,ikj->ik", gaps, gaps))
    rows = np.arange(len(X))
    others = distance.copy()
    others[rows, codes] = np.inf
    others[:, moments.weight == 0] = np.inf  # classes without a mean
    nearest = others.argmin(axis=1)
    length = distance[rows, nearest]
    towards = gaps[rows, nearest] * unit / np.where(length > 0, length, 1.0)[:, None]
    steps = np.minimum(np.array(SHIFTS)[:, None], length)
    moved: NDArray[np.float64] = X + steps[:, :, None] * towards
    return moved


GRID = 48


def region_map(
    estimator: Any, Z: FloatArray, y: NDArray[Any], classes: NDArray[Any]
) -> RegionMap:
    """Fit in the plane and look at every point of a grid around the rows."""
    low, high = np.quantile(Z, [0.005, 0.995], axis=0)
    margin = 0.15 * (high - low)
    x, y_axis = np.linspace(low - margin, high + margin, GRID).T
    points = np.stack(np.meshgrid(x, y_axis), axis=-1).reshape(-1, 2)
    estimator.fit(Z, y)
    found = decide(estimator, points, classes)
    return RegionMap(
        x=x,
        y=y_axis,
        sets=found.members(len(classes)).reshape(GRID, GRID, -1),
        predicted=found.predicted.reshape(GRID, GRID),
    )
