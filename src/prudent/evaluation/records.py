"""What an evaluation found: frozen values that tables, reports and JSON read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from prudent.core.guarantee import Guarantee, GuaranteeCheck
from prudent.evaluation.measurements import (
    CalibrationPath,
    FalseAlarmCurve,
    RegionMap,
    Sets,
    ShiftCurve,
)

Kept = Literal["broken", "vacuous", "kept", "consistent"]
Matrix = tuple[tuple[float, ...], ...]
Interval = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Data:
    """The table that was evaluated on.

    Attributes
    ----------
    name : str
        What the user calls the table.
    sha256 : str
        Fingerprint of the file, or of the arrays when there is no file.
    n_rows : int
        Rows used.
    features, classes : tuple of str
        Names of the columns and labels, as text.
    class_counts : tuple of int
        Rows of each class.
    constant_features : tuple of str
        Columns with one value, which every method ignores.
    notes : tuple of str
        What was done to the table and what a reader should know about it.
    """

    name: str
    sha256: str
    n_rows: int
    features: tuple[str, ...]
    classes: tuple[str, ...]
    class_counts: tuple[int, ...]
    constant_features: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How the evaluation was run.

    Attributes
    ----------
    methods, baselines : tuple of str
        Names, in the order they ran.
    promise : str
        The promise asked for, in words; "none" without one.
    confidence : float
        Probability over training samples asked for, where the promise has one.
    n_folds, n_repeats, random_state, n_jobs : int
        The protocol: stratified folds, shuffled anew in each repeat.
    time_limit : float or None
        Seconds allowed to each method.
    sample : int or None
        Most rows a method that needs rows is fitted on.
    command : str
        What to type to get this again.
    next_command : str or None
        What to type to use the method that came first, where that is known.
    date : str or None
        Day and time of the run; None in output that must repeat byte for byte.
    peak_memory : int or None
        Bytes the process held at most; None where unknown.
    """

    methods: tuple[str, ...]
    baselines: tuple[str, ...]
    promise: str = "none"
    confidence: float = 0.95
    n_folds: int
    n_repeats: int
    random_state: int
    n_jobs: int
    time_limit: float | None
    sample: int | None
    command: str
    next_command: str | None = None
    date: str | None = None
    peak_memory: int | None = None


@dataclass(frozen=True, kw_only=True)
class PromiseCheck:
    """A promise, averaged over the folds, held against the out-of-fold rows.

    Attributes
    ----------
    guarantee : Guarantee
        Its bound is the mean of the fold bounds, weighted by the rows tested.
    violations, n : float
        Rows that broke it, and rows looked at (means over the repeats).
    check : GuaranteeCheck
        Verdict at level 0.05 over the number of promises of the method.
    """

    guarantee: Guarantee
    violations: float
    n: float
    check: GuaranteeCheck

    @property
    def allowed(self) -> float:
        """Share of the rows that may break the promise."""
        bound = self.guarantee.bound
        return bound if self.guarantee.sense == "<=" else 1 - bound


@dataclass(frozen=True, kw_only=True)
class ClassRate:
    """A rate of one class."""

    label: str
    rate: float


@dataclass(frozen=True, kw_only=True)
class Needs:
    """Rows without which the promise asked for cannot be made.

    Attributes
    ----------
    rows : int
        Rows that the table would have to hold.
    label : str or None
        Of this class; None: of any.
    """

    rows: int
    label: str | None


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The promise asked for, as the wrapped method makes and keeps it.

    Attributes
    ----------
    kept : {"broken", "vacuous", "kept", "consistent"}
        One word for all items; "vacuous" for a method that decides nothing.
    needs : Needs or None
        Rows that are missing, if it could not be made for all classes.
    items : tuple of PromiseCheck
        One for each class, or one for all rows.
    decided : float
        Share of rows with one answer.
    decided_interval : tuple of float
        Its exact 95 % interval.
    wrong_when_decided : float or None
        Share of these that are wrong; None if there are none.
    worst_covered : ClassRate or None
        Class whose sets hold the truth least often, if sets were asked for.
    others_error : float or None
        Error of the classes that nothing was asked for, if some class was named.
    others_interval : tuple of float
        Its exact 95 % interval.
    sets : Sets or None
        Sets of the wrapped method.
    """

    kept: Kept
    needs: Needs | None = None
    items: tuple[PromiseCheck, ...] = ()
    decided: float = 0.0
    decided_interval: Interval = (0.0, 1.0)
    wrong_when_decided: float | None = None
    worst_covered: ClassRate | None = None
    others_error: float | None = None
    others_interval: Interval = (0.0, 1.0)
    sets: Sets | None = None


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Why a method has no figures.

    Attributes
    ----------
    kind : {"time limit", "interrupted", "memory", "error"}
        What commands decide by.
    text : str
        What a person reads: one sentence.
    """

    kind: Literal["time limit", "interrupted", "memory", "error"]
    text: str


@dataclass(frozen=True, kw_only=True)
class MethodRow:
    """One line of a comparison; every figure is out of fold.

    Attributes
    ----------
    method : str
        Short name.
    is_baseline : bool
        Whether it is there for reference only.
    failure : Failure or None
        Why there are no figures.
    error : float or None
        Share of wrong answers of the plain method, fitted on the whole training
        part.
    error_interval : tuple of float
        Exact 95 % interval of `error`.
    worst_class : ClassRate or None
        Class of the largest error.
    cost : float or None
        Mean cost of the answers, if costs were given.
    decided, wrong_when_decided : float or None
        Share of rows with one answer, and of these the wrong ones: of the wrapped
        method where a promise was asked for.
    asked : Asked or None
        The promise asked for.
    own : tuple of PromiseCheck
        What the method promises by itself, held against the same rows.
    own_kept : {"broken", "vacuous", "kept", "consistent"} or None
        One word for these; None without any.
    no_difference_from : str or None
        Method of the first row, when no difference from it is shown: exact McNemar
        test on the rows, Holm over methods, and intervals that overlap.
    sets : Sets or None
        Sets that the plain method gives by itself.
    confusion : tuple of tuple of float
        Rows by true (outer) and predicted class, means over the repeats.
    fit_seconds, predict_seconds : float or None
        Median over the folds of one fit, and of predicting one row.
    notes : tuple of str
        What was done differently for this method.
    warnings : tuple of str
        What the method warned of while fitting and predicting.
    shift, false_alarms, calibration, regions
        Further measurements, where they apply.
    parameters : mapping of str to str
        All parameters of the estimator, as text.
    """

    method: str
    is_baseline: bool = False
    failure: Failure | None = None
    error: float | None = None
    error_interval: Interval = (0.0, 1.0)
    worst_class: ClassRate | None = None
    cost: float | None = None
    decided: float | None = None
    wrong_when_decided: float | None = None
    asked: Asked | None = None
    own: tuple[PromiseCheck, ...] = ()
    own_kept: Kept | None = None
    no_difference_from: str | None = None
    sets: Sets | None = None
    confusion: Matrix = ()
    fit_seconds: float | None = None
    predict_seconds: float | None = None
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    shift: ShiftCurve | None = None
    false_alarms: FalseAlarmCurve | None = None
    calibration: CalibrationPath | None = None
    regions: RegionMap | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)

    @property
    def promises(self) -> tuple[PromiseCheck, ...]:
        """Promises asked for, then those made without asking."""
        return (*(() if self.asked is None else self.asked.items), *self.own)

    @property
    def worst_own(self) -> PromiseCheck | None:
        """The weakest own promise: what it says holds for the other classes, too."""
        return max(self.own, key=lambda promise: promise.allowed, default=None)


@dataclass(frozen=True, kw_only=True)
class FoldScore:
    """One method on one fold.

    Attributes
    ----------
    method : str
        Name of the method.
    repeat, fold : int
        Numbers from 1.
    n_train, n_test : int
        Rows fitted on and rows tested.
    error : float
        Share of wrong point predictions.
    set_size, coverage : float or None
        Mean size and coverage of the sets, if the method gives them.
    fit_seconds, predict_seconds : float or None
        Wall time of the fit and of predicting the tested rows.
    """

    method: str
    repeat: int
    fold: int
    n_train: int
    n_test: int
    error: float
    set_size: float | None
    coverage: float | None
    fit_seconds: float | None
    predict_seconds: float | None


@dataclass(frozen=True, kw_only=True)
class Frontier:
    """What each promise costs: rows decided at every level one may ask for.

    Attributes
    ----------
    kind : {"coverage", "error", "missed"}
        Whether the levels are promised coverages, errors of the answered rows, or
        errors of the classes named (the least of them, if there are several).
    levels : tuple of float
        Levels, in rising order.
    asked : float
        The one that was asked for.
    decided : mapping of str to tuple of float
        Share of rows with one answer, by method; where some classes are named, share
        of the rows of the others that are answered rightly.
    """

    kind: Literal["coverage", "error", "missed"]
    levels: tuple[float, ...]
    asked: float
    decided: Mapping[str, tuple[float, ...]]


@dataclass(frozen=True, kw_only=True)
class Findings:
    """Methods side by side: errors, promises and whether they were kept.

    Attributes
    ----------
    data : Data
        The table.
    settings : Settings
        How the evaluation was run.
    rows : tuple of MethodRow
        By usefulness; methods that failed last, with their reason.
    folds : tuple of FoldScore
        Scores of each method on each fold.
    versions : mapping of str to str
        Python, the packages behind the figures, and the BLAS.
    frontier : Frontier or None
        What each promise costs; None where no promise was asked for.
    """

    data: Data
    settings: Settings
    rows: tuple[MethodRow, ...]
    folds: tuple[FoldScore, ...]
    versions: Mapping[str, str]
    frontier: Frontier | None = None

    @property
    def ran(self) -> list[MethodRow]:
        """Rows of the methods that finished."""
        return [row for row in self.rows if row.error is not None]
