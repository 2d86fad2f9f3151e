"""One method on all folds: fit, predict, count."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from prudent.comparison.decisions import Decisions, decide
from prudent.comparison.folds import FEWEST_TO_LEARN, Fold, stratified_sample
from prudent.comparison.measurements import CalibrationPath, RegionMap
from prudent.comparison.methods import Method
from prudent.comparison.regions import region_map
from prudent.comparison.shift import shifted_rows
from prudent.comparison.tally import Tally
from prudent.core.guarantee import Guarantee
from prudent.core.moments import ClassMoments

Progress = Callable[[str, int, int], None]
LEVELS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
SHIFT_ROWS = 2000
PLANE_ROWS = 2000


@dataclass(frozen=True, eq=False)
class Problem:
    """What every method gets.

    Attributes
    ----------
    X : ndarray of shape (n, d)
        Rows.
    y : ndarray of shape (n,)
        Labels.
    codes : ndarray of shape (n,)
        Labels as positions in `classes`.
    classes : ndarray of shape (K,)
        Distinct labels, sorted.
    folds : sequence of Fold
        Splits, those of one repeat after the other.
    moments : sequence of ClassMoments
        Moments of each fold's training rows.
    moment_seconds : float
        Time they took for one fold.
    groups : ndarray of shape (n,) or None
        Rows that belong together have equal values.
    plane : ndarray of shape (n, 2) or None
        Rows on the two discriminant axes.
    sample : int or None
        Most rows to fit on where rows are needed.
    random_state : int
        Seed of methods and samples.
    n_jobs : int
        Folds fitted at a time.
    """

    X: NDArray[Any]
    y: NDArray[Any]
    codes: NDArray[np.intp]
    classes: NDArray[Any]
    folds: Sequence[Fold]
    moments: Sequence[ClassMoments]
    moment_seconds: float
    groups: NDArray[Any] | None
    plane: NDArray[np.float64] | None
    sample: int | None
    random_state: int
    n_jobs: int


@dataclass(frozen=True, eq=False)
class FoldResult:
    """Counts of one method on one fold, and which tested rows it gets wrong."""

    tally: Tally
    wrong: NDArray[np.bool_]
    guarantees: tuple[Guarantee, ...]
    fit_seconds: float
    predict_seconds: float
    n_train: int
    shift_wrong: NDArray[np.intp] | None
    shift_rows: int
    false_alarms: NDArray[np.intp] | None
    calibration: tuple[float, float, int] | None
    warnings: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What a method did on all folds."""

    folds: tuple[FoldResult, ...]
    calibration: CalibrationPath | None
    regions: RegionMap | None
    parameters: dict[str, str]


def evaluate(
    method: Method, problem: Problem, progress: Progress | None = None
) -> Evaluation:
    """Fit and test a method on every fold; errors are the method's own."""
    estimator = method.build(problem.random_state)
    n_folds = len(problem.folds)
    results = []
    jobs = Parallel(n_jobs=problem.n_jobs, return_as="generator")(
        delayed(_run_fold)(clone(estimator), problem, index) for index in range(n_folds)
    )
    for index in range(n_folds):
        if progress is not None:
            progress(method.name, index + 1, n_folds)
        results.append(next(jobs))
    return Evaluation(
        folds=tuple(results),
        calibration=_calibration_path(results),
        regions=None if method.is_baseline else _regions(estimator, problem),
        parameters=_parameters(estimator),
    )


def _run_fold(estimator: Any, problem: Problem, index: int) -> FoldResult:
    fold = problem.folds[index]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        n_train, fit_seconds = _fit(estimator, problem, index)
        X, true = problem.X[fold.test], problem.codes[fold.test]
        start = time.perf_counter()
        found = decide(estimator, X, problem.classes)
        predict_seconds = time.perf_counter() - start
        shift_wrong, shift_rows = _shift(estimator, problem, index)
    return FoldResult(
        tally=Tally.count(true, found.predicted, found.sets, len(problem.classes)),
        wrong=found.predicted != true,
        guarantees=tuple(getattr(estimator, "guarantees_", ())),
        fit_seconds=fit_seconds,
        predict_seconds=predict_seconds,
        n_train=n_train,
        shift_wrong=shift_wrong,
        shift_rows=shift_rows,
        false_alarms=_false_alarms(found, true),
        calibration=_calibration(estimator),
        warnings=tuple(dict.fromkeys(str(warning.message) for warning in caught)),
    )


def _fit(estimator: Any, problem: Problem, index: int) -> tuple[int, float]:
    """Fit on the training part; rows fitted on, and seconds it took."""
    train = problem.folds[index].train
    if hasattr(estimator, "fit_moments"):  # as it is set, moments suffice
        start = time.perf_counter()
        moments = _learnable(problem.moments[index])
        estimator.fit_moments(moments)
        seconds = time.perf_counter() - start + problem.moment_seconds
        return int(moments.count.sum()), seconds
    if problem.sample is not None and problem.sample < len(train):
        chosen = stratified_sample(
            problem.codes[train], problem.sample, problem.random_state
        )
        train = train[chosen]
    X, y = problem.X[train], problem.y[train]
    together = {}
    if problem.groups is not None and has_fit_parameter(estimator, "groups"):
        together["groups"] = problem.groups[train]
    start = time.perf_counter()
    estimator.fit(X, y, **together)
    return len(train), time.perf_counter() - start


def _learnable(moments: ClassMoments) -> ClassMoments:
    """Moments without the classes of fewer rows than can be learned from."""
    enough = moments.count >= FEWEST_TO_LEARN
    return moments if enough.all() else moments.select(moments.classes[enough])


def _false_alarms(found: Decisions, true: NDArray[np.intp]) -> NDArray[np.intp] | None:
    """Rows that the rejector of their own class rejects, at each of LEVELS."""
    if found.p_values is None:
        return None
    own = found.p_values[np.arange(len(true)), true]
    alarms: NDArray[np.intp] = (own[:, None] <= np.array(LEVELS)).sum(axis=0)
    return alarms


def _shift(
    estimator: Any, problem: Problem, index: int
) -> tuple[NDArray[np.intp] | None, int]:
    """Wrong predictions of a sample of the tested rows, moved by each of SHIFTS."""
    fold = problem.folds[index]
    if fold.repeat > 1:
        return None, 0
    n_folds = max(fold.number for fold in problem.folds)
    chosen = fold.test[
        stratified_sample(
            problem.codes[fold.test], SHIFT_ROWS // n_folds, problem.random_state
        )
    ]
    codes = problem.codes[chosen]
    moved = shifted_rows(
        np.asarray(problem.X[chosen], dtype=np.float64), codes, problem.moments[index]
    )
    n_shifts, n_rows, n_features = moved.shape
    predicted = estimator.predict(moved.reshape(-1, n_features))
    wrong = predicted.reshape(n_shifts, n_rows) != problem.classes[codes]
    return wrong.sum(axis=1), n_rows


def _calibration(estimator: Any) -> tuple[float, float, int] | None:
    """Error before and after risk-based calibration, and the chosen iterate."""
    curve = getattr(estimator, "error_curve_", None)
    if curve is None:
        return None
    best = int(estimator.best_iteration_)
    return float(curve[0]), float(curve[best]), best


def _calibration_path(results: Sequence[FoldResult]) -> CalibrationPath | None:
    found = [r.calibration for r in results if r.calibration is not None]
    if len(found) < len(results):
        return None
    before, after, best = zip(*found, strict=True)
    return CalibrationPath(error_before=before, error_after=after, best_iterations=best)


def _regions(estimator: Any, problem: Problem) -> RegionMap | None:
    """Regions of the method fitted in the plane; None where it cannot be."""
    if problem.plane is None:
        return None
    chosen = stratified_sample(problem.codes, PLANE_ROWS, problem.random_state)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # said already about the folds
        try:
            return region_map(
                clone(estimator),
                problem.plane[chosen],
                problem.y[chosen],
                problem.classes,
            )
        except ValueError:  # a picture less is no failure of the method
            return None


def _parameters(estimator: Any) -> dict[str, str]:
    return {
        name: repr(value)
        for name, value in sorted(estimator.get_params().items())
        if not hasattr(value, "get_params") and name not in ("steps", "memory")
    }
