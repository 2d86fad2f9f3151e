"""A calibration without its rows, and the four ways to choose the kept iterate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.calibration.ascent import CalibrationPath, StepRule, ascend
from prudent.calibration.baselines import SoftmaxFamily
from prudent.calibration.families import Family, Statistics
from prudent.calibration.gaussian import GaussianFamily
from prudent.calibration.problem import Evaluation, Problem
from prudent.calibration.stopping import (
    batches_of_epochs,
    earliest_least_error,
    group_equal_rows,
)
from prudent.exceptions import DegenerateDataError, SingularCovarianceError

__all__ = ["Calibrated", "LabelledRows", "Recipe"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class LabelledRows:
    """Validated rows before any family has seen them.

    Attributes
    ----------
    rows : object
        Numbers (m, d), level codes (m, J) or both; indexed by row.
    codes : ndarray of int, shape (m,)
        Class of each row.
    weight : ndarray of shape (m,)
        Positive.
    """

    rows: Any
    codes: IntArray
    weight: FloatArray

    def __getitem__(self, chosen: IntArray) -> LabelledRows:
        return LabelledRows(self.rows[chosen], self.codes[chosen], self.weight[chosen])

    def merged(self) -> LabelledRows:
        """Equal rows of level codes as one with the sum of their weights."""
        groups = group_equal_rows(self.rows, self.codes)
        _, first = np.unique(groups, return_index=True)
        weight = np.bincount(groups, self.weight).astype(np.float64)
        return LabelledRows(self.rows[first], self.codes[first], weight)


@dataclass(frozen=True, slots=True)
class Calibrated:
    """Result of a fit: the path, its family, and what the held-out rows said.

    Attributes
    ----------
    family : Family
    path : CalibrationPath
    validation : Evaluation or None
        The kept iterate on the held-out rows.
    """

    family: Family
    path: CalibrationPath
    validation: Evaluation | None = None


@dataclass(frozen=True)
class Recipe:
    """Everything about a calibration except the rows.

    Attributes
    ----------
    make_family : callable
        (rows, weight) -> Family.
    classes : sequence
        Labels, for messages; code k stands for classes[k].
    rule : StepRule
    max_evaluations : int
    costs : ndarray of shape (r, r) or None
    generative_weight : float
    batch_size : int or None
    seed : int
        Of the batches.
    watch : callable
        Called after each evaluation of the path that is returned.
    """

    make_family: Callable[[Any, FloatArray], Family]
    classes: Sequence[Any]
    rule: StepRule
    max_evaluations: int
    costs: FloatArray | None = None
    generative_weight: float = 0.0
    batch_size: int | None = None
    seed: int = 0
    watch: Callable[[], bool] = lambda: False

    def problem(self, data: LabelledRows, family: Family) -> Problem:
        """The rows as `family` takes them, with the loss to lower."""
        return Problem(
            family,
            prepare(family, data.rows),
            data.codes,
            data.weight,
            len(self.classes),
            self.costs,
            self.generative_weight,
        )

    def fit_last(self, data: LabelledRows, max_updates: float = np.inf) -> Calibrated:
        """Keep the last iterate."""
        return self._fit(data, lambda t, _: -t, max_updates)

    def fit_train(self, data: LabelledRows) -> Calibrated:
        """Keep the least training cost, ties to the smaller log loss."""
        return self._fit(
            data,
            lambda _, iterate: (
                iterate.evaluation.decision_cost,
                iterate.evaluation.log_loss,
            ),
        )

    def fit_holdout(self, data: LabelledRows, held_out: IntArray) -> Calibrated:
        """Keep the least cost on rows that take no other part in the fit."""
        rest = np.setdiff1d(np.arange(len(data.codes)), held_out)
        problem, start = self._start(data[rest])
        validation = self.problem(data[held_out], problem.family)
        path = self._path(
            problem,
            start,
            lambda _, it: validation.score(it.evaluation.parameters).decision_cost,
            watch=self.watch,
        )
        return Calibrated(problem.family, path, validation.score(path.parameters))

    def fit_folds(
        self, data: LabelledRows, folds: Sequence[tuple[IntArray, IntArray]]
    ) -> Calibrated:
        """Number of updates by cross-validation, then one path on all rows."""
        curves = [self._validation_curve(data[fit], data[test]) for fit, test in folds]
        tolerance = 1e-9 * data.weight.sum()
        return self.fit_last(data, earliest_least_error(curves, tolerance))

    def _validation_curve(
        self, data: LabelledRows, held_out: LabelledRows
    ) -> tuple[float, ...]:
        problem, start = self._start(data)
        validation = self.problem(held_out, problem.family)
        total = held_out.weight.sum()
        return self._path(
            problem,
            start,
            lambda _, iterate: (
                total * validation.score(iterate.evaluation.parameters).decision_cost
            ),
        ).criterion

    def _fit(
        self,
        data: LabelledRows,
        criterion: Callable[[int, Any], Any],
        max_updates: float = np.inf,
    ) -> Calibrated:
        problem, start = self._start(data)
        path = self._path(
            problem, start, criterion, max_updates=max_updates, watch=self.watch
        )
        return Calibrated(problem.family, path)

    def _path(
        self,
        problem: Problem,
        start: Statistics,
        criterion: Callable[[int, Any], Any],
        **options: Any,
    ) -> CalibrationPath:
        n_rows, batches = len(problem.codes), None
        if self.batch_size is not None and self.batch_size < n_rows:
            random = np.random.RandomState(self.seed)
            batches = batches_of_epochs(n_rows, self.batch_size, random)
        path = ascend(
            problem,
            start,
            self.rule,
            criterion,
            max_evaluations=self.max_evaluations,
            batches=batches,
            **options,
        )
        if np.isnan(path.log_loss).any():
            raise ValueError(
                f"{type(problem.family).__name__}.log_joint returned NaN; it must "
                "return numbers, -inf for the impossible."
            )
        return path

    def _start(self, data: LabelledRows) -> tuple[Problem, Statistics]:
        """Problem and closed-form statistics, checked."""
        _check_classes(data.codes, self.classes)
        family = self.make_family(data.rows, data.weight)
        if hasattr(family, "n_levels") and self.batch_size is None:
            merged = data.merged()
            if 2 * len(merged.codes) <= len(data.codes):
                data = merged
        problem = self.problem(data, family)
        if isinstance(family, SoftmaxFamily):
            labels = self.problem(data, family.gaussian).closed_form()
            _check_valid(family.gaussian, labels, self.classes)
            return problem, family.start(labels)
        start = problem.closed_form()
        _check_valid(family, start, self.classes)
        return problem, start


def prepare(family: Family, rows: Any) -> Any:
    """Rows as the methods of `family` take them."""
    return family.prepare(rows) if hasattr(family, "prepare") else rows


def _check_classes(codes: IntArray, classes: Sequence[Any]) -> None:
    absent = np.flatnonzero(np.bincount(codes, minlength=len(classes)) == 0)
    if len(absent):
        raise ValueError(
            f"class {classes[absent[0]]!r} has no row in the part of the "
            "data that is fitted; use `stopping='cv'` with an integer `cv`, "
            "which spreads every class over the folds."
        )


def _check_valid(
    family: Family, statistics: Statistics, classes: Sequence[Any]
) -> None:
    """Raise unless every class block gives valid parameters."""
    name = type(family).__name__
    for block in statistics:
        if len(block) != len(classes) or not np.isfinite(block).all():
            raise DegenerateDataError(
                f"{name}.statistics must return finite arrays with one block "
                f"per class ({len(classes)}), got shape {block.shape}."
            )
    invalid = np.flatnonzero(~family.is_valid(statistics))
    if not len(invalid):
        return
    label, weight = classes[invalid[0]], statistics[0][invalid[0]]
    if not isinstance(family, GaussianFamily):
        raise DegenerateDataError(
            f"{name}: the statistics of class {label!r} give no valid parameters."
        )
    what = "the covariance shared by all classes is singular"
    if not family.tied:
        what = f"the covariance of class {label!r} ({weight:g} rows) is singular"
    raise SingularCovarianceError(
        f"{what}; set `covariance_prior_strength` above 0 (its default is 'auto') "
        "or use `family='tied'`."
    )
