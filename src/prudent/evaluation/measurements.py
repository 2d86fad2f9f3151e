"""What can be measured of a method besides its error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Sets:
    """Set-valued predictions of the out-of-fold rows.

    Attributes
    ----------
    mean_size : float
        Mean number of classes in a set.
    undecided : float
        Share of rows whose set does not hold exactly one class.
    coverage : float
        Share of rows whose set holds the true class.
    size_counts : tuple of float
        Rows with a set of 0, 1, ..., K classes (means over the repeats).
    class_mean_size, class_coverage : tuple of float
        The same figures for the rows of each class.
    """

    mean_size: float
    undecided: float
    coverage: float
    size_counts: tuple[float, ...]
    class_mean_size: tuple[float, ...]
    class_coverage: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class ShiftCurve:
    """Error when the tested rows move towards the nearest other class mean.

    Attributes
    ----------
    shifts : tuple of float
        Lengths of the move, in pooled standard deviations.
    errors : tuple of float
        Error rate at each of them.
    n : int
        Rows behind each error: at most 2000, a sample of the first repeat.
    """

    shifts: tuple[float, ...]
    errors: tuple[float, ...]
    n: int


@dataclass(frozen=True, kw_only=True)
class FalseAlarmCurve:
    """False alarms of the one-class rejectors at every level one may ask for.

    Attributes
    ----------
    levels : tuple of float
        Requested false-alarm rates.
    false_alarms : tuple of float
        Rows rejected by the rejector of their own class.
    n : float
        Rows looked at.
    """

    levels: tuple[float, ...]
    false_alarms: tuple[float, ...]
    n: float


@dataclass(frozen=True, kw_only=True)
class CalibrationPath:
    """What risk-based calibration changed, as it measures itself.

    Attributes
    ----------
    error_before, error_after : tuple of float
        Error of the maximum-likelihood start and of the chosen iterate in each
        fold, on the rows fitted on.
    best_iterations : tuple of int
        Chosen iterate of each fold; 0 keeps the start.
    """

    error_before: tuple[float, ...]
    error_after: tuple[float, ...]
    best_iterations: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class RegionMap:
    """Decisions of a method fitted in the plane of two discriminant axes.

    Attributes
    ----------
    x, y : ndarray of shape (n_grid,)
        Grid along the first and second axis, in pooled standard deviations.
    sets : ndarray of bool, shape (n_grid, n_grid, n_classes)
        Set at each point, rows along `y`.
    predicted : ndarray of int, shape (n_grid, n_grid)
        Column of the predicted class.
    """

    x: Any
    y: Any
    sets: Any
    predicted: Any

    @property
    def undecided(self) -> float:
        """Share of the plane where the set does not hold exactly one class."""
        return float((self.sets.sum(axis=2) != 1).mean())

    @property
    def class_shares(self) -> tuple[float, ...]:
        """Share of the plane given to each class alone."""
        alone = self.sets & (self.sets.sum(axis=2, keepdims=True) == 1)
        return tuple(alone.mean(axis=(0, 1)).tolist())
