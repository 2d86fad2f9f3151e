"""A calibration without its rows, and the four ways to choose the kept iterate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from prudent.calibration.ascent import CalibrationPath, Iterate, StepRule, ascend
from prudent.calibration.baselines import SoftmaxFamily
from prudent.calibration.families import Family, Statistics
from prudent.calibration.gaussian import GaussianFamily
from prudent.calibration.problem import Objective, Problem
from prudent.calibration.stopping import (
    batches_of_epochs,
    earliest_least_error,
    group_equal_rows,
)
from prudent.exceptions import DegenerateDataError, SingularCovarianceError

__all__ = ["Calibrated", "LabelledRows", "Recipe", "Sample"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


class Sample(Protocol):
    """Labelled rows to calibrate on, wherever they are."""

    @property
    def total(self) -> float:
        """Total weight."""
        ...

    def begin(self, recipe: Recipe, held_out: Self | None) -> Beginning:
        """What to lower on these rows, and the closed-form start."""
        ...


#: An objective and valid statistics to start from.
Beginning = tuple[Objective, Statistics]


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

    @property
    def total(self) -> float:
        """Total weight."""
        return float(self.weight.sum())

    @property
    def keys(self) -> NDArray[Any]:
        """Numbers that tell the rows apart, (m, n_keys)."""
        if hasattr(self.rows, "levels"):
            return np.hstack([self.rows.numbers, self.rows.levels])
        return np.asarray(self.rows)

    def begin(self, recipe: Recipe, held_out: LabelledRows | None) -> Beginning:
        """Problem of these rows and their closed-form statistics, checked."""
        recipe.check_classes(np.bincount(self.codes, minlength=len(recipe.classes)))
        family = recipe.make_family(self.rows, self.weight)
        data = self
        if hasattr(family, "n_levels") and recipe.batch_size is None:
            merged = data.merged()
            if 2 * len(merged.codes) <= len(data.codes):
                data = merged
        problems = recipe.problems(family)
        problem = replace(
            problems(data),
            batches=recipe.batches(len(data.codes)),
            held_out=None if held_out is None else problems(held_out),
        )
        return problem, recipe.start(
            family, lambda f: replace(problem, family=f).closed_form()
        )

    def merged(self) -> LabelledRows:
        """Equal rows of level codes as one with the sum of their weights."""
        groups = group_equal_rows(self.rows, self.codes)
        _, first = np.unique(groups, return_index=True)
        weight = np.bincount(groups, self.weight).astype(np.float64)
        return LabelledRows(self.rows[first], self.codes[first], weight)


@dataclass(frozen=True, slots=True)
class Calibrated:
    """Result of a fit: the path and its family."""

    family: Family
    path: CalibrationPath


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
        Of the folds and the batches.
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

    def problems(self, family: Family) -> Callable[[LabelledRows], Problem]:
        """Turns rows into the problem of explaining them with `family`.

        The result holds neither rows nor callbacks: it travels to other processes.
        """
        return partial(
            _problem,
            family=family,
            n_classes=len(self.classes),
            costs=self.costs,
            generative_weight=self.generative_weight,
        )

    def batches(self, n_rows: int) -> Iterator[IntArray] | None:
        """Rows behind each step, None for all of them."""
        if self.batch_size is None or self.batch_size >= n_rows:
            return None
        random = np.random.RandomState(self.seed)
        return batches_of_epochs(n_rows, self.batch_size, random)

    def start(
        self, family: Family, closed_form: Callable[[Family], Statistics]
    ) -> Statistics:
        """Statistics to start from, checked; `closed_form` of a family on the rows."""
        if isinstance(family, SoftmaxFamily):
            labels = closed_form(family.gaussian)
            _check_valid(family.gaussian, labels, self.classes)
            return family.start(labels)
        labels = closed_form(family)
        _check_valid(family, labels, self.classes)
        return labels

    def check_classes(self, n_rows: IntArray) -> None:
        """Raise unless every class has rows to fit."""
        absent = np.flatnonzero(n_rows == 0)
        if len(absent):
            raise ValueError(
                f"class {self.classes[absent[0]]!r} has no row in the part of the "
                "data that is fitted; use `stopping='cv'` with an integer `cv`, "
                "which spreads every class over the folds."
            )

    def fit_last(self, data: Sample, max_updates: float = np.inf) -> Calibrated:
        """Keep the last iterate."""
        return self._fit(data, lambda t, _: -t, max_updates)

    def fit_train(self, data: Sample) -> Calibrated:
        """Keep the least training cost, ties to the smaller log loss."""
        return self._fit(
            data,
            lambda _, iterate: (
                iterate.evaluation.losses.decision_cost,
                iterate.evaluation.losses.log_loss,
            ),
        )

    def fit_holdout(self, data: Sample, held_out: Sample) -> Calibrated:
        """Keep the least cost on rows that take no other part in the fit."""
        problem, start = data.begin(self, held_out)

        def criterion(_: int, iterate: Iterate) -> float:
            return problem.validate(iterate.evaluation).decision_cost

        path = self._path(problem, start, criterion, watch=self.watch)
        return Calibrated(problem.family, path)

    def fit_folds(
        self, data: Sample, folds: Iterable[tuple[Sample, Sample]]
    ) -> Calibrated:
        """Number of updates by cross-validation, then one path on all rows."""
        curves = [self._validation_curve(fit, held_out) for fit, held_out in folds]
        return self.fit_last(data, earliest_least_error(curves, 1e-9 * data.total))

    def _validation_curve(self, data: Sample, held_out: Sample) -> tuple[float, ...]:
        problem, start = data.begin(self, held_out)
        return self._path(
            problem,
            start,
            lambda _, iterate: problem.validate(iterate.evaluation).total_cost,
        ).criterion

    def _fit(
        self,
        data: Sample,
        criterion: Callable[[int, Iterate], Any],
        max_updates: float = np.inf,
    ) -> Calibrated:
        problem, start = data.begin(self, None)
        path = self._path(
            problem, start, criterion, max_updates=max_updates, watch=self.watch
        )
        return Calibrated(problem.family, path)

    def _path(
        self,
        problem: Objective,
        start: Statistics,
        criterion: Callable[[int, Iterate], Any],
        **options: Any,
    ) -> CalibrationPath:
        path = ascend(
            problem,
            start,
            self.rule,
            criterion,
            max_evaluations=self.max_evaluations,
            **options,
        )
        if np.isnan(path.log_loss).any():
            raise ValueError(
                f"{type(problem.family).__name__}.log_joint returned NaN; it must "
                "return numbers, -inf for the impossible."
            )
        return path


def _problem(
    data: LabelledRows,
    family: Family,
    n_classes: int,
    costs: FloatArray | None,
    generative_weight: float,
) -> Problem:
    rows = prepare(family, data.rows)
    return Problem(
        family, rows, data.codes, data.weight, n_classes, costs, generative_weight
    )


def prepare(family: Family, rows: Any) -> Any:
    """Rows as the methods of `family` take them."""
    return family.prepare(rows) if hasattr(family, "prepare") else rows


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
