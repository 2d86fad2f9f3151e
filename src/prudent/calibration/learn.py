"""The fit: make a family of the rows, climb from its closed form, keep one iterate."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from prudent.calibration.ascent import CalibrationPath, Iterate, ascend
from prudent.calibration.families import Family, Statistics
from prudent.calibration.gaussian import GaussianFamily
from prudent.calibration.model import Model
from prudent.calibration.objective import Objective, batches_of_epochs
from prudent.calibration.promises import error_promise
from prudent.calibration.settings import Settings
from prudent.calibration.softmax import SoftmaxFamily
from prudent.calibration.trials import Trial, fitted_spread, weights
from prudent.core.guarantee import Guarantee
from prudent.core.rows import Rows
from prudent.core.types import IntArray
from prudent.exceptions import (
    DegenerateDataError,
    PrudentWarning,
    SingularCovarianceError,
)

#: Updates when a class has a single row and nothing can be validated.
_FEW_UPDATES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """The rule, and the calibration of which it is an iterate."""

    model: Model
    path: CalibrationPath
    guarantees: tuple[Guarantee, ...]


def learn(
    rows: Rows,
    folds: Iterable[Rows] | None = None,
    *,
    settings: Settings,
    classes: Sequence[Any],
    seed: int = 0,
    watch: Callable[[], bool] = lambda: False,
    by_group: bool = False,
    weighted: bool = False,
) -> Learned:
    """Calibrate the closed-form fit of `rows`, blocks of `Trial`.

    With `stopping="holdout"` their held-out rows choose the iterate, with "cv" those of
    `folds` the number of updates (None where some class cannot be validated). Code k
    stands for classes[k]; the seed is that of batches and random starts. `watch` is
    called after each evaluation of the path that is returned; True ends it. Rows held
    out bound the error, those `by_group` as one row a group; those `weighted`, which
    are no independent draws, do not.
    """
    climb = partial(_climb, settings=settings, classes=classes, seed=seed)
    stopping, max_updates = settings.stopping, float("inf")
    criterion = _CRITERIA.get(stopping, _last)
    if stopping == "cv" and folds is None:
        max_updates = min(_FEW_UPDATES, settings.max_iter - 1)
        warnings.warn(
            "RiskCalibratedClassifier: a class has a single distinct row (or group): "
            "nothing can be cross-validated, and the calibration stops after "
            f"{max_updates} updates.",
            PrudentWarning,
            stacklevel=3,
        )
    elif folds is not None:
        curves = [climb(fold, _held_out_cost)[1].criterion for fold in folds]
        max_updates = earliest_least_error(curves, 1e-9 * sum(rows.map(_total)))
    best = climb(rows, criterion, max_updates, watch)
    for draw in range(1, settings.n_random_starts):
        other = climb(rows, criterion, max_updates, watch, draw)
        best = min(best, other, key=lambda found: _worth(found[1], stopping))
    family, path = best
    seen = np.ones(len(classes), dtype=bool)
    model = Model(family, path.parameters, seen, settings.decision_costs)
    guarantees: tuple[Guarantee, ...] = ()
    if stopping == "holdout" and not weighted:
        wrong, n_held_out = np.sum(rows.map(Trial.count_wrong, model), axis=0).tolist()
        claims = settings.max_iter * max(1, settings.n_random_starts)
        guarantees = (error_promise(wrong, n_held_out, claims, by_group=by_group),)
    return Learned(model=model, path=path, guarantees=guarantees)


def _climb(
    trials: Rows,
    criterion: Callable[[int, Iterate], Any],
    max_updates: float = float("inf"),
    watch: Callable[[], bool] = lambda: False,
    draw: int = 0,
    *,
    settings: Settings,
    classes: Sequence[Any],
    seed: int,
) -> tuple[Family, CalibrationPath]:
    """One path from the closed form of the trials, or from random soft labels."""
    objective = _posed(trials, settings, classes)
    family, labels = objective.family, objective.closed_form()
    start = full = closed_form_start(family, labels, classes)
    if settings.n_random_starts:
        full = labels
        start = closed_form_start(family, objective.drawn(seed, draw), classes)
    path = ascend(
        objective,
        start,
        settings.rule,
        criterion,
        max_evaluations=settings.max_iter,
        max_updates=max_updates,
        labels=full,
        batches=_batches(objective.rows, settings.batch_size, seed),
        watch=watch,
    )
    if np.isnan(path.curves[0]).any():
        raise ValueError(
            f"{type(family).__name__}.log_joint returned NaN; it must return "
            "numbers, -inf for the impossible."
        )
    return family, path


def closed_form_start(
    family: Family, labels: Statistics, classes: Sequence[Any]
) -> Statistics:
    """Statistics to start from, given those of the labels, checked."""
    if isinstance(family, SoftmaxFamily):
        gaussian = family.gaussian_statistics(labels)
        _check_valid(family.gaussian, gaussian, classes)
        return family.start(labels)
    _check_valid(family, labels, classes)
    return labels


def _posed(trials: Rows, settings: Settings, classes: Sequence[Any]) -> Objective:
    """The family made of the rows to fit, and what it is to lower on them."""
    n_rows, spread = fitted_spread(
        trials,
        len(classes),
        settings.structure,
        learns_missing=settings.learns_missing,
    )
    absent = np.flatnonzero(n_rows == 0)
    if len(absent):
        raise ValueError(
            f"class {classes[absent[0]]!r} has no row in the part of the data that is "
            "fitted; use `stopping='cv'` with an integer `cv`, which spreads every "
            "class over the folds."
        )
    family, merges = settings.make(spread), settings.batch_size is None
    return Objective(
        trials.transform(Trial.prepared, family, merges),
        family,
        len(classes),
        settings.costs,
        settings.generative_weight,
        strengthens_only=settings.method == "dfe",
    )


def _batches(
    rows: Rows, batch_size: int | None, seed: int
) -> Iterator[IntArray] | None:
    """Rows behind each step; None for all of them."""
    if batch_size is None:
        return None
    (n_rows,) = rows.map(_n_fitted)
    if batch_size >= n_rows:
        return None
    return batches_of_epochs(n_rows, batch_size, np.random.RandomState(seed))


# Which iterate is kept: the least of these, the first of equals.


def earliest_least_error(curves: Sequence[Sequence[float]], tolerance: float) -> int:
    """Number of updates T with the least total validation error, up to a tolerance.

    The curves are the errors of each fold after 0, 1, ... updates; a shorter one goes
    on at its last value. Of equal totals the earliest wins.
    """
    length = max(len(curve) for curve in curves)
    padded = [np.pad(curve, (0, length - len(curve)), "edge") for curve in curves]
    total = np.sum(padded, axis=0)
    return int(np.argmax(total <= total.min() + tolerance))


def _worth(path: CalibrationPath, stopping: str) -> Any:
    """What random starts are compared by, the less the better."""
    if stopping in _CRITERIA:
        return path.criterion[path.best_iteration]
    return path.curves[0, path.best_iteration]


def _last(t: int, iterate: Iterate) -> Any:
    return -t


def _training_cost(_: int, iterate: Iterate) -> Any:
    mean = iterate.evaluation.losses.mean
    return mean.cost, mean.log_loss


def _held_out_cost(_: int, iterate: Iterate) -> Any:
    assert iterate.evaluation.held_out is not None
    return iterate.evaluation.held_out.cost


_CRITERIA: dict[str, Callable[[int, Iterate], Any]] = {
    "holdout": _held_out_cost,
    "train": _training_cost,
}


def _total(trial: Trial) -> float:
    return 0.0 if trial.fitted is None else float(weights(trial.fitted).sum())


def _n_fitted(trial: Trial) -> int:
    return 0 if trial.fitted is None else len(trial.fitted.codes)


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
