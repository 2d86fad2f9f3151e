"""The fit: make a family of the rows, climb from its closed form, keep one iterate."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.calibration.ascent import CalibrationPath, Iterate, StepRule, ascend
from prudent.calibration.categorical import CategoricalFamily, MixedFamily
from prudent.calibration.families import Family, PriorStrengths, Statistics
from prudent.calibration.gaussian import (
    DiagonalFamily,
    FullFamily,
    GaussianFamily,
    TiedDiagonalFamily,
    TiedFamily,
)
from prudent.calibration.model import Model, prepare
from prudent.calibration.objective import (
    Objective,
    Trial,
    batches_of_epochs,
    weights,
)
from prudent.calibration.softmax import SoftmaxFamily
from prudent.calibration.spread import (
    ColumnMoments,
    Spread,
    check_scales,
    column_moments,
    merged_moments,
)
from prudent.calibration.stopping import earliest_least_error, group_equal_rows
from prudent.core.rows import Block, Rows
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
    """What a fit found.

    Attributes
    ----------
    model : Model
        The rule.
    path : CalibrationPath
        The calibration and the iterate that was kept.
    """

    model: Model
    path: CalibrationPath


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilySettings:
    """Which family, and how strongly it is shrunken.

    Attributes
    ----------
    family : str or Family
    method : {"rc", "gd", "tm", "dfe"}
    strengths : PriorStrengths
    n_levels : ndarray of int
        Levels of each categorical feature.
    """

    family: str | Family
    method: str
    strengths: PriorStrengths
    n_levels: IntArray

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
        if self.method == "gd" and isinstance(family, TiedFamily):
            return SoftmaxFamily(family, spread.total)
        return family

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
    """Calibrate the closed-form fit of the rows.

    Parameters
    ----------
    rows : Rows
        Blocks of `Trial`. With `stopping="holdout"` their held-out rows choose the
        iterate.
    folds : iterable of Rows or None
        For `stopping="cv"`: as `rows`, one for each fold; None where some class
        cannot be validated.
    settings : FamilySettings
    classes : sequence
        Labels, for messages; code k stands for classes[k].
    stopping : {"cv", "holdout", "train", "none"}
    rule : StepRule
    max_iter : int
        Evaluations of each path.
    costs : ndarray of shape (r, r) or None
        What the calibration lowers in place of the log loss.
    decision_costs : ndarray of shape (r, r) or None
        What the predictions minimise.
    generative_weight : float
    batch_size : int or None
        Rows behind each step; needs rows in one block.
    n_random_starts : int
        Of random soft labels in place of the closed form (0); the best one is kept.
    seed : int
        Of the batches and the starts.
    watch : callable
        Called after each evaluation of the path that is returned; True ends it.

    Raises
    ------
    SingularCovarianceError
        If a covariance of the closed form is singular.
    ValueError
        If a class has no row to fit, or the numbers of a column are out of range.
    """

    def climb(
        trial: Rows,
        criterion: Callable[[int, Iterate], Any],
        max_updates: float = float("inf"),
        watch: Callable[[], bool] = lambda: False,
        draw: int = 0,
    ) -> tuple[Family, CalibrationPath]:
        summary = _summary(trial, settings, len(classes))
        _check_classes(summary.n_rows, classes)
        family = settings.make(summary.spread)
        prepared = trial.transform(_prepared, family, batch_size is None)
        objective = Objective(
            prepared,
            family,
            len(classes),
            costs,
            generative_weight,
            strengthens_only=settings.method == "dfe",
        )
        batches, n_rows = None, int(summary.n_rows.sum())
        if batch_size is not None and batch_size < n_rows:
            random = np.random.RandomState(seed)
            batches = batches_of_epochs(n_rows, batch_size, random)
        labels = objective.closed_form()
        start = closed_form_start(family, labels, classes)
        if n_random_starts:
            start = closed_form_start(family, objective.drawn(seed, draw), classes)
        path = ascend(
            objective,
            start,
            rule,
            criterion,
            max_evaluations=max_iter,
            max_updates=max_updates,
            labels=labels if n_random_starts else start,
            batches=batches,
            watch=watch,
        )
        if np.isnan(path.log_loss).any():
            raise ValueError(
                f"{type(family).__name__}.log_joint returned NaN; it must return "
                "numbers, -inf for the impossible."
            )
        return family, path

    max_updates = float("inf")
    criterion = _CRITERIA.get(stopping, _last)
    if stopping == "cv" and folds is None:
        max_updates = min(_FEW_UPDATES, max_iter - 1)
        warnings.warn(
            "RiskCalibratedClassifier: a class has a single distinct row (or group): "
            "nothing can be cross-validated, and the calibration stops after "
            f"{max_updates} updates.",
            PrudentWarning,
            stacklevel=3,
        )
    elif stopping == "cv":
        assert folds is not None
        curves = [climb(fold, _held_out_cost)[1].criterion for fold in folds]
        max_updates = earliest_least_error(curves, 1e-9 * sum(rows.map(_total)))
    family, path = climb(rows, criterion, max_updates, watch)
    for draw in range(1, n_random_starts):
        other = climb(rows, criterion, max_updates, watch, draw)
        if _worth(other[1], stopping) < _worth(path, stopping):
            family, path = other
    seen = np.ones(len(classes), dtype=bool)
    return Learned(
        model=Model(family, path.parameters, seen, decision_costs), path=path
    )


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


# Which iterate is kept: the least of these, the first of equals.


def _worth(path: CalibrationPath, stopping: str) -> Any:
    """What random starts are compared by, the less the better."""
    if stopping in _CRITERIA:
        return path.criterion[path.best_iteration]
    return path.log_loss[path.best_iteration]


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


# What the fitted rows say together.


@dataclass(frozen=True, slots=True, eq=False)
class _Summary:
    n_rows: IntArray  # of each class
    total: float  # weight
    moments: ColumnMoments | None
    spread: Spread | None = None


def _summary(rows: Rows, settings: FamilySettings, n_classes: int) -> _Summary:
    structure = settings.structure
    found = rows.map(_summarise, n_classes, structure, settings.learns_missing)
    parts = [part for part in found if part is not None]
    n_rows = np.sum([part.n_rows for part in parts], axis=0)
    total = float(np.sum([part.total for part in parts]))
    if structure is None or not parts:
        return _Summary(n_rows, total, None)
    moments = merged_moments([part.moments or [] for part in parts])
    spread = Spread.of(moments, total)
    check_scales(spread, rows.transform(_numbers))
    return _Summary(n_rows, total, moments, spread)


def _summarise(
    trial: Trial, n_classes: int, structure: Structure | None, learns_missing: bool
) -> _Summary | None:
    block = trial.fitted
    if block is None:
        return None
    moments = None
    if structure is not None:
        moments = column_moments(
            _numbers_of(block),
            weights(block),
            structure,
            learns_missing=learns_missing,
        )
    n_rows = np.bincount(block.codes, minlength=n_classes)
    return _Summary(n_rows, float(weights(block).sum()), moments)


def _total(trial: Trial) -> float:
    return 0.0 if trial.fitted is None else float(weights(trial.fitted).sum())


def _numbers(trial: Trial) -> NDArray[Any] | None:
    if trial.fitted is None:
        return None
    return _numbers_of(trial.fitted)


def _numbers_of(block: Block) -> NDArray[Any]:
    return getattr(block.X, "numbers", block.X)


def _prepared(trial: Trial, family: Family, merge: bool) -> Trial:
    """Rows as the family takes them; equal rows of level codes once, if that pays."""
    fitted, held_out = trial.fitted, trial.held_out
    if merge and fitted is not None and isinstance(family, CategoricalFamily):
        fitted = _merged(fitted)

    def prepared(block: Block | None) -> Block | None:
        if block is None:
            return None
        return Block(prepare(family, block.X), block.codes, weights(block))

    return Trial(prepared(fitted), prepared(held_out))


def _merged(block: Block) -> Block:
    """Equal rows as one with the sum of their weights, where that halves them."""
    groups = group_equal_rows(block.X, block.codes)
    _, first = np.unique(groups, return_index=True)
    if 2 * len(first) > len(groups):
        return block
    weight = np.bincount(groups, weights(block)).astype(np.float64)
    return Block(block.X[first], block.codes[first], weight)


def _check_classes(n_rows: IntArray, classes: Sequence[Any]) -> None:
    absent = np.flatnonzero(n_rows == 0)
    if len(absent):
        raise ValueError(
            f"class {classes[absent[0]]!r} has no row in the part of the data that is "
            "fitted; use `stopping='cv'` with an integer `cv`, which spreads every "
            "class over the folds."
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
