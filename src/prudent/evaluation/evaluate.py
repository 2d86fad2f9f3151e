"""One method on all folds: fit, predict, count."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from prudent.core.guarantee import Guarantee
from prudent.core.moments import ClassMoments
from prudent.core.types import BoolArray, IntArray
from prudent.evaluation.asked import AskedFold, affordable, ask, is_full_conformal
from prudent.evaluation.estimators import FEWEST_TO_LEARN
from prudent.evaluation.folds import Task, plain_sample
from prudent.evaluation.measurements import (
    CalibrationPath,
    Decisions,
    RegionMap,
    Tally,
    decide,
    region_map,
    shifted_rows,
)
from prudent.evaluation.methods import Method
from prudent.evaluation.table import in_front

BY_HELD_OUT_ROWS = (
    "by held-out rows, for full conformal prediction takes long with so many rows"
)
Progress = Callable[[str, int, int], None]
LEVELS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
SHIFT_ROWS = 2000
PLANE_ROWS = 2000


@dataclass(frozen=True, eq=False)
class FoldResult:
    """Counts of one method on one fold, and which tested rows it gets wrong."""

    tally: Tally
    wrong: BoolArray
    guarantees: tuple[Guarantee, ...]
    asked: AskedFold | None
    fit_seconds: float
    predict_seconds: float
    n_train: int
    shift_wrong: IntArray | None
    shift_rows: int
    false_alarms: IntArray | None
    calibration: tuple[float, float, int] | None
    warnings: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What a method did on all folds."""

    folds: tuple[FoldResult, ...]
    calibration: CalibrationPath | None
    regions: RegionMap | None
    parameters: dict[str, str]
    notes: tuple[str, ...] = ()  # what was done differently from its settings

    @property
    def asked(self) -> list[AskedFold]:
        """Folds of the wrapped method, where a promise was asked for."""
        return [result.asked for result in self.folds if result.asked is not None]


def evaluate(
    method: Method, task: Task, progress: Progress | None = None
) -> Evaluation:
    """Fit and test a method on every fold; errors are the method's own."""
    estimator = method.estimator(task.settings.random_state)
    in_fold = np.bincount(task.rows.codes[task.sampled(task.folds[0].train)])
    was_open = is_full_conformal(estimator) and estimator.method == "auto"
    affordable(estimator, in_fold, grouped=task.rows.groups is not None)
    changed = was_open and estimator.method == "split"
    n_folds = len(task.folds)
    results = []
    jobs = Parallel(n_jobs=task.settings.n_jobs, return_as="generator")(
        delayed(_run_fold)(estimator, task, index) for index in range(n_folds)
    )
    for index in range(n_folds):
        if progress is not None:
            progress(method.name, index + 1, n_folds)
        results.append(next(jobs))
    return Evaluation(
        folds=tuple(results),
        calibration=_calibration_path(results),
        regions=None if method.is_baseline else _regions(estimator, task),
        parameters=_parameters(estimator),
        notes=(BY_HELD_OUT_ROWS,) if changed and task.rows.groups is None else (),
    )


def _run_fold(estimator: Any, task: Task, index: int) -> FoldResult:
    fold = task.folds[index]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted, n_train, fit_seconds = _fit(estimator, task, index)
        X, true = task.rows.X[fold.test], task.rows.codes[fold.test]
        start = time.perf_counter()
        found = decide(fitted, X, task.rows.classes)
        predict_seconds = time.perf_counter() - start
        shift_wrong, shift_rows = _shift(fitted, task, index)
        asked = None if task.wish is None else ask(estimator, task, fold)
    return FoldResult(
        tally=Tally.count(true, found.predicted, found.sets, len(task.rows.classes)),
        wrong=found.predicted != true,
        guarantees=tuple(getattr(fitted, "guarantees_", ())),
        asked=asked,
        fit_seconds=fit_seconds,
        predict_seconds=predict_seconds,
        n_train=n_train,
        shift_wrong=shift_wrong,
        shift_rows=shift_rows,
        false_alarms=_false_alarms(found, true),
        calibration=_calibration(fitted),
        warnings=tuple(dict.fromkeys(str(warning.message) for warning in caught)),
    )


def _fit(estimator: Any, task: Task, index: int) -> tuple[Any, int, float]:
    """Fit on the training part; the fit, rows fitted on, and seconds it took."""
    estimator = in_front(task.preparation, clone(estimator))
    if task.moments is not None and hasattr(estimator, "fit_moments"):
        start = time.perf_counter()
        moments = _learnable(task.moments[index])
        estimator.fit_moments(moments)  # as it is set, moments suffice
        seconds = time.perf_counter() - start + task.moment_seconds
        return estimator, int(moments.count.sum()), seconds
    rows = task.learnable(task.sampled(task.folds[index].train))
    if not len(rows):
        raise ValueError("no class has 2 rows in a training part; add rows")
    start = time.perf_counter()
    task.fitted(estimator, rows)
    return estimator, len(rows), time.perf_counter() - start


def _learnable(moments: ClassMoments) -> ClassMoments:
    """Moments without the classes of fewer rows than can be learned from."""
    enough = moments.count >= FEWEST_TO_LEARN
    return moments if enough.all() else moments.select(moments.classes[enough])


def _false_alarms(found: Decisions, true: IntArray) -> IntArray | None:
    """Rows whose own class is ruled out, at each of LEVELS."""
    if found.p_values is None:
        return None
    own = found.p_values[np.arange(len(true)), true]
    alarms: IntArray = (own[:, None] <= np.array(LEVELS)).sum(axis=0)
    return alarms


def _shift(fitted: Any, task: Task, index: int) -> tuple[IntArray | None, int]:
    """Wrong predictions of a sample of the tested rows, moved by each of SHIFTS."""
    fold = task.folds[index]
    if fold.repeat > 1:
        return None, 0
    size = math.ceil(SHIFT_ROWS / task.settings.n_folds)
    drawn = plain_sample(len(fold.test), size, task.settings.random_state)
    chosen = fold.test[drawn]
    codes, X = task.rows.codes[chosen], task.rows.X[chosen]
    if task.moments is not None:
        moments, method = task.moments[index], fitted
    else:  # rows move where the method sees them
        assert isinstance(fitted, Pipeline)
        preparation, method = fitted[:-1], fitted[-1]
        seen = task.learnable(task.sampled(fold.train))
        moments = ClassMoments.from_arrays(
            preparation.transform(task.rows.X[seen]),
            task.rows.codes[seen],
            classes=np.arange(len(task.rows.classes)),
        )
        X = preparation.transform(X)
    moved = shifted_rows(np.asarray(X, dtype=np.float64), codes, moments)
    n_shifts, n_rows, n_features = moved.shape
    predicted = method.predict(moved.reshape(-1, n_features))
    wrong = predicted.reshape(n_shifts, n_rows) != task.rows.classes[codes]
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


def _regions(estimator: Any, task: Task) -> RegionMap | None:
    """Regions of the method fitted in the plane; None where it cannot be."""
    if task.plane is None:
        return None
    drawn = plain_sample(len(task.plane), PLANE_ROWS, task.settings.random_state)
    chosen = task.learnable(drawn)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # said already about the folds
        try:
            return region_map(
                clone(estimator),
                task.plane[chosen],
                task.rows.y[chosen],
                task.rows.classes,
            )
        except ValueError:  # a picture less is no failure of the method
            return None


def _parameters(estimator: Any) -> dict[str, str]:
    return {
        name: repr(value)
        for name, value in sorted(estimator.get_params().items())
        if not hasattr(value, "get_params") and name not in ("steps", "memory")
    }
