"""The fit: make a family of the rows, climb from its closed form, keep one iterate."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from prudent.calibration.ascent import CalibrationPath, Iterate, StepRule, ascend
from prudent.calibration.categorical import CategoricalFamily, MixedFamily
from prudent.calibration.diagonal import DiagonalFamily, TiedDiagonalFamily
from prudent.calibration.families import Family, PriorStrengths, Statistics
from prudent.calibration.gaussian import GaussianFamily
from prudent.calibration.matrices import FullFamily, TiedFamily
from prudent.calibration.model import Model
from prudent.calibration.objective import Objective, batches_of_epochs
from prudent.calibration.softmax import SoftmaxFamily
from prudent.calibration.spread import Spread
from prudent.calibration.stopping import earliest_least_error
from prudent.calibration.trials import Trial, fitted_spread, weights
from prudent.core.rows import Rows
from prudent.core.types import FloatArray, IntArray
from prudent.core.validation import Structure
from prudent.exceptions import (
    DegenerateDataError,
    PrudentWarning,
    SingularCovarianceError,
)

GAUSSIAN: dict[str, type[GaussianFamily]] = {
    "full": FullFamily,
    "tied": TiedFamily,
    "diag": DiagonalFamily,
    "tied_diag": TiedDiagonalFamily,
}
FAMILY_NAMES = {*GAUSSIAN, "categorical", "mixed"}
#: Updates when a class has a single row and nothing can be validated.
_FEW_UPDATES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """The rule, and the calibration of which it is an iterate."""

    model: Model
    path: CalibrationPath


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilySettings:
    """Which family, and how strongly it is shrunken."""

    family: str | Family
    method: str
    strengths: PriorStrengths
    n_levels: IntArray  # of each categorical feature

    def __post_init__(self) -> None:
        if self.method == "gd" and self.family not in ("tied", "tied_diag"):
            raise ValueError(
                "`method='gd'` descends on softmax regression and needs `family` "
                f"'tied' or 'tied_diag', got {self.family!r}."
            )
        levels, n = self.strengths.levels, len(self.n_levels)
        if (
            self.family in ("categorical", "mixed")
            and isinstance(levels, tuple)
            and (len(levels) != n or not min(levels, default=0.0) >= 0)
        ):
            raise ValueError(
                "`level_prior_strength` must be a number >= 0 or one for each of the "
                f"{n} categorical features, got {levels!r}."
            )

    @property
    def learns_missing(self) -> bool:
        """Whether missing numbers can be left out of the fit."""
        return self.family in ("diag", "tied_diag", "mixed")

    @property
    def structure(self) -> Structure | None:
        """Which moments of all rows together the family is made of."""
        if self.family == "mixed":
            return "diagonal"
        if isinstance(self.family, str) and self.family in GAUSSIAN:
            return GAUSSIAN[self.family].structure
        return None

    def make(self, spread: Spread | None) -> Family:
        """The family of rows with this spread."""
        if spread is not None:
            self._check_priors(len(spread.centre))
        if not isinstance(self.family, str):
            return self.family
        levels = CategoricalFamily(self.n_levels, self.strengths)
        if spread is None:
            return levels
        if self.family == "mixed":
            gaussian = DiagonalFamily.from_spread(spread, self.strengths)
            return MixedFamily(gaussian, levels)
        family: Any = GAUSSIAN[self.family].from_spread(spread, self.strengths)
        return SoftmaxFamily(family) if self.method == "gd" else family

    def _check_priors(self, d: int) -> None:
        """Raise unless the prior moments fit d features."""
        mean, covariance = self.strengths.mean, self.strengths.covariance
        if mean is not None and (mean.shape != (d,) or not np.isfinite(mean).all()):
            raise ValueError(
                f"`mean_prior` must hold {d} finite numbers, one for each feature, got "
                f"{mean.tolist()}."
            )
        if covariance is None:
            return
        shaped = covariance.shape == (d, d) or covariance.shape == (d,)
        definite = shaped and bool(np.isfinite(covariance).all())
        if definite and covariance.ndim == 2:
            definite = np.allclose(covariance, covariance.T) and bool(
                (np.linalg.eigvalsh(covariance) > 0).all()
            )
        elif definite:
            definite = bool((covariance > 0).all())
        if not definite:
            raise ValueError(
                f"`covariance_prior` must be a positive definite matrix of shape "
                f"({d}, {d}), or {d} variances > 0, got {covariance.tolist()}."
            )


def learn(
    rows: Rows,
    folds: Iterable[Rows] | None = None,
    *,
    settings: FamilySettings,
    classes: Sequence[Any],
    stopping: str,
    rule: StepRule,
    max_iter: int,
    costs: FloatArray | None = None,
    decision_costs: FloatArray | None = None,
    generative_weight: float = 0.0,
    batch_size: int | None = None,
    n_random_starts: int = 0,
    seed: int = 0,
    watch: Callable[[], bool] = lambda: False,
) -> Learned:
    """Calibrate the closed-form fit of `rows`, blocks of `Trial`.

    With `stopping="holdout"` their held-out rows choose the iterate, with "cv" those of
    `folds` the number of updates (None where some class cannot be validated). Code k
    stands for classes[k]. `costs` (r, r) are what the calibration lowers in place of
    the log loss, `decision_costs` what the predictions minimise. `batch_size` needs
    rows in one block. The best of `n_random_starts` is kept; 0 starts from the labels.
    `watch` is called after each evaluation of the path that is returned; True ends it.
    """
    climb = partial(
        _climb,
        settings=settings,
        classes=classes,
        costs=costs,
        generative_weight=generative_weight,
        rule=rule,
        max_iter=max_iter,
        batch_size=batch_size,
        is_random=n_random_starts > 0,
        seed=seed,
    )
    max_updates = float("inf")
    criterion = _CRITERIA.get(stopping, _last)
    if stopping == "cv" and folds is None:
        max_updates = min(_FEW_UPDATES, max_iter - 1)
        _warn_unvalidated(max_updates)
    elif folds is not None:
        curves = [climb(fold, _held_out_cost)[1].criterion for fold in folds]
        max_updates = earliest_least_error(curves, 1e-9 * sum(rows.map(_total)))
    best = climb(rows, criterion, max_updates, watch)
    for draw in range(1, n_random_starts):
        other = climb(rows, criterion, max_updates, watch, draw)
        best = min(best, other, key=lambda found: _worth(found[1], stopping))
    family, path = best
    seen = np.ones(len(classes), dtype=bool)
    return Learned(
        model=Model(family, path.parameters, seen, decision_costs), path=path
    )


def _climb(
    trials: Rows,
    criterion: Callable[[int, Iterate], Any],
    max_updates: float = float("inf"),
    watch: Callable[[], bool] = lambda: False,
    draw: int = 0,
    *,
    settings: FamilySettings,
    classes: Sequence[Any],
    costs: FloatArray | None,
    generative_weight: float,
    rule: StepRule,
    max_iter: int,
    batch_size: int | None,
    is_random: bool,
    seed: int,
) -> tuple[Family, CalibrationPath]:
    """One path from the closed form of the trials, or from random soft labels."""
    family, objective = _posed(
        trials, settings, classes, costs, generative_weight, batch_size is None
    )
    labels = objective.closed_form()
    start = closed_form_start(family, labels, classes)
    if is_random:
        start = closed_form_start(family, objective.drawn(seed, draw), classes)
    path = ascend(
        objective,
        start,
        rule,
        criterion,
        max_evaluations=max_iter,
        max_updates=max_updates,
        labels=labels if is_random else start,
        batches=_batches(objective.rows, batch_size, seed),
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


def _posed(
    trials: Rows,
    settings: FamilySettings,
    classes: Sequence[Any],
    costs: FloatArray | None,
    generative_weight: float,
    merges: bool,
) -> tuple[Family, Objective]:
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
    family = settings.make(spread)
    objective = Objective(
        trials.transform(Trial.prepared, family, merges),
        family,
        len(classes),
        costs,
        generative_weight,
        strengthens_only=settings.method == "dfe",
    )
    return family, objective


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


def _worth(path: CalibrationPath, stopping: str) -> Any:
    """What random starts are compared by, the less the better."""
    if stopping in _CRITERIA:
        return path.criterion[path.best_iteration]
    return path.curves[0, path.best_iteration]


def _last(t: int, iterate: Iterate) -> Any:
    return -t


def _training_cost(_: int, iterate: Iterate) -> Any:
    losses = iterate.evaluation.losses
    return losses.decision_cost, losses.log_loss


def _held_out_cost(_: int, iterate: Iterate) -> Any:
    assert iterate.evaluation.held_out is not None
    return iterate.evaluation.held_out.total_cost


_CRITERIA: dict[str, Callable[[int, Iterate], Any]] = {
    "holdout": _held_out_cost,
    "train": _training_cost,
}


def _total(trial: Trial) -> float:
    return 0.0 if trial.fitted is None else float(weights(trial.fitted).sum())


def _n_fitted(trial: Trial) -> int:
    return 0 if trial.fitted is None else len(trial.fitted.codes)


def _warn_unvalidated(max_updates: float) -> None:
    warnings.warn(
        "RiskCalibratedClassifier: a class has a single distinct row (or group): "
        "nothing can be cross-validated, and the calibration stops after "
        f"{max_updates} updates.",
        PrudentWarning,
        stacklevel=4,
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
