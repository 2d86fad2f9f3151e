"""From the estimator's parameters to a recipe, its stopping rule and its promise."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state, column_or_1d

from prudent._compat import Interval, StrOptions
from prudent.calibration.ascent import StepRule
from prudent.calibration.baselines import SoftmaxFamily
from prudent.calibration.categorical import CategoricalFamily, MixedFamily
from prudent.calibration.families import Family, PriorStrengths
from prudent.calibration.gaussian import (
    DiagonalFamily,
    FullFamily,
    TiedDiagonalFamily,
    TiedFamily,
)
from prudent.calibration.recipe import Calibrated, LabelledRows, Recipe, Sample
from prudent.calibration.stopping import deal_folds, group_equal_rows
from prudent.calibration.tables import Table
from prudent.core.binomial import upper_limit
from prudent.core.guarantee import Guarantee
from prudent.exceptions import PrudentWarning

__all__ = [
    "CONSTRAINTS",
    "calibrate",
    "check_costs",
    "draw_seed",
    "fit_unvalidated",
    "learned_attributes",
    "make_recipe",
    "promise",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
FamilyMaker = Callable[[Any, FloatArray], Family]

_TIED: dict[str, type[TiedFamily]] = {
    "tied": TiedFamily,
    "tied_diag": TiedDiagonalFamily,
}
_GAUSSIAN: dict[str, Callable[..., Family]] = {
    "full": FullFamily.from_rows,
    "diag": DiagonalFamily.from_rows,
    **{name: family.from_rows for name, family in _TIED.items()},
}
_FAMILY_NAMES = {*_GAUSSIAN, "categorical", "mixed"}

#: Ranges of the estimator's parameters.
CONSTRAINTS: dict[str, list[Any]] = {
    "family": [StrOptions(_FAMILY_NAMES), Family],
    "learning_rate": [Interval(Real, 0, None, closed="neither")],
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "stopping": [StrOptions({"cv", "holdout", "train", "none"})],
    "cv": ["cv_object"],
    "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
    "guard": [StrOptions({"halve", "freeze"})],
    "line_search": ["boolean"],
    "step": [StrOptions({"fixed", "adaptive"})],
    "loss": [StrOptions({"log", "zero_one"})],
    "costs": ["array-like", None],
    "generative_weight": [Interval(Real, 0, None, closed="left")],
    "class_prior_strength": [Interval(Real, 0, None, closed="left")],
    "mean_prior_strength": [Interval(Real, 0, None, closed="left")],
    "covariance_prior_strength": [
        StrOptions({"auto"}),
        Interval(Real, 0, None, closed="left"),
    ],
    "level_prior_strength": [
        Interval(Real, 0, None, closed="left"),
        "array-like",
    ],
    "batch_size": [Interval(Integral, 1, None, closed="left"), None],
    "method": [StrOptions({"rc", "gd", "tm"})],
    "random_state": ["random_state"],
}

#: Updates when a class has a single row and nothing can be validated.
_FEW_UPDATES = 8
_CONFIDENCE = 0.95
#: What tied families learn once for all classes.
_SHARED = ("covariances_", "variances_")


def make_recipe(
    estimator: Any,
    table: Table,
    classes: NDArray[Any],
    seed: int = 0,
    watch: Callable[[], bool] = lambda: False,
) -> Recipe:
    """Recipe with the parameters of the estimator."""
    is_tm = estimator.method == "tm"  # TM: full steps of maximum likelihood
    rule = StepRule(
        learning_rate=1.0 if is_tm else estimator.learning_rate,
        freeze=estimator.guard == "freeze",
        line_search=estimator.line_search and not is_tm,
        adaptive=estimator.step == "adaptive",
    )
    costs = check_costs(estimator.costs, len(classes))
    if costs is None and estimator.loss == "zero_one":
        costs = 1.0 - np.eye(len(classes))
    return Recipe(
        _family_maker(estimator, table),
        classes.tolist(),
        rule,
        estimator.max_iter,
        costs,
        estimator.generative_weight,
        estimator.batch_size,
        seed,
        watch,
    )


def calibrate(
    estimator: Any,
    recipe: Recipe,
    data: LabelledRows,
    held_out: LabelledRows | None,
    kept: IntArray,
    y: ArrayLike,
    groups: NDArray[Any] | None,
) -> Calibrated:
    """Fit the rows with the estimator's stopping rule.

    `kept` are their positions among the rows with the labels `y` and the `groups`
    given to `fit`.
    """
    if held_out is not None:
        return recipe.fit_holdout(data, held_out)
    if estimator.stopping == "none":
        return recipe.fit_last(data)
    if estimator.stopping == "train":
        return recipe.fit_train(data)
    folds = _folds(estimator.cv, recipe, data, kept, column_or_1d(y), groups)
    if folds:
        # One fold at a time: each is a copy of nearly all rows.
        return recipe.fit_folds(data, ((data[fit], data[test]) for fit, test in folds))
    return fit_unvalidated(recipe, data)


def fit_unvalidated(recipe: Recipe, data: Sample) -> Calibrated:
    """A few updates, with a warning, where a class cannot be cross-validated."""
    few = min(_FEW_UPDATES, recipe.max_evaluations - 1)
    warnings.warn(
        "RiskCalibratedClassifier: a class has a single distinct row (or group): "
        f"nothing can be cross-validated, and the calibration stops after {few} "
        "updates.",
        PrudentWarning,
        stacklevel=4,
    )
    return recipe.fit_last(data, few)


def promise(
    wrong: int, n_held_out: int, max_iter: int, *, by_group: bool = False
) -> tuple[Guarantee, ...]:
    """Bound on the error rate from held-out rows of which `wrong` were missed.

    The kept iterate is the best of `max_iter` candidates on those rows, so that each
    candidate gets an equal share of the error probability.
    """
    level = (1 - _CONFIDENCE) / max_iter
    units = "groups are" if by_group else "the rows and those to come are"
    return (
        Guarantee(
            quantity="error rate",
            sense="<=",
            bound=upper_limit(wrong, n_held_out, level=level),
            confidence=_CONFIDENCE,
            assumptions=(f"{units} independent draws from one population",),
            evidence={
                "calibration rows": n_held_out,
                "wrong": wrong,
                "claims": max_iter,
                "pointwise level": level,
            },
            source="Clopper and Pearson 1934, Bonferroni over the iterates",
        ),
    )


def learned_attributes(
    family: Any, parameters: Any, seen: IntArray, n_classes: int
) -> dict[str, Any]:
    """Fitted attributes of the parameters; zeros for classes not yet seen."""
    if not hasattr(family, "learned"):
        return {}
    learned = family.learned(parameters)

    def spread(name: str, value: Any) -> Any:
        if isinstance(value, list):
            return [spread(name, part) for part in value]
        if len(seen) == n_classes or (family_is_tied and name in _SHARED):
            return value
        wider = np.zeros((n_classes, *value.shape[1:]))
        wider[seen] = value
        return wider

    family_is_tied = getattr(family, "tied", False)
    return {name: spread(name, value) for name, value in learned.items()}


def _family_maker(estimator: Any, table: Table) -> FamilyMaker:
    family, strengths = estimator.family, _strengths(estimator)
    if estimator.method == "gd":
        if not isinstance(family, str) or family not in _TIED:
            raise ValueError(
                "`method='gd'` descends on softmax regression and needs `family` "
                f"'tied' or 'tied_diag', got {family!r}."
            )
        return partial(_softmax_family, family=_TIED[family], strengths=strengths)
    if not isinstance(family, str):
        return lambda rows, weight: family
    if family in _GAUSSIAN:
        return partial(_GAUSSIAN[family], strengths=strengths)
    n_levels = table.n_levels
    _check_level_strengths(strengths.levels, len(n_levels))
    if family == "mixed":
        return partial(MixedFamily.from_rows, n_levels=n_levels, strengths=strengths)
    return lambda rows, weight: CategoricalFamily(n_levels, strengths)


def _softmax_family(
    rows: NDArray[Any],
    weight: FloatArray,
    family: type[TiedFamily],
    strengths: PriorStrengths,
) -> SoftmaxFamily:
    return SoftmaxFamily(family.from_rows(rows, weight, strengths), float(weight.sum()))


def _strengths(estimator: Any) -> PriorStrengths:
    if estimator.method == "tm":
        return PriorStrengths()
    covariances = estimator.covariance_prior_strength
    levels = np.asarray(estimator.level_prior_strength, dtype=np.float64)
    return PriorStrengths(
        classes=estimator.class_prior_strength,
        means=estimator.mean_prior_strength,
        covariances=None if covariances == "auto" else covariances,
        levels=float(levels) if levels.ndim == 0 else tuple(levels.tolist()),
    )


def _check_level_strengths(levels: float | tuple[float, ...], n_features: int) -> None:
    if isinstance(levels, tuple) and (
        len(levels) != n_features or not min(levels, default=0.0) >= 0
    ):
        raise ValueError(
            "`level_prior_strength` must be a number >= 0 or one for each of the "
            f"{n_features} categorical features, got {levels!r}."
        )


def check_costs(costs: ArrayLike | None, n_classes: int) -> FloatArray | None:
    if costs is None:
        return None
    matrix = np.asarray(costs, dtype=np.float64)
    if matrix.shape != (n_classes, n_classes) or not np.isfinite(matrix).all():
        raise ValueError(
            "`costs` must be a finite matrix of shape (n_classes, n_classes) = "
            f"({n_classes}, {n_classes}), rows the true class, got {costs!r}."
        )
    return matrix


def draw_seed(random_state: Any) -> int:
    """One seed for folds, batches and the hold-out."""
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def _folds(
    cv: Any,
    recipe: Recipe,
    data: LabelledRows,
    kept: IntArray,
    y: NDArray[Any],
    groups: NDArray[Any] | None,
) -> list[tuple[IntArray, IntArray]]:
    """Pairs (fit, test) of positions among the rows of positive weight.

    Empty when some class has one distinct row, or group, only.
    """
    most: Any = 5 if cv is None else cv
    if cv is not None and not np.isscalar(cv):
        position = np.full(len(y), -1)
        position[kept] = np.arange(len(kept))
        splitter = check_cv(cv, y, classifier=True)
        splits = splitter.split(np.zeros((len(y), 1)), y, groups)
        return [(_known(position[fit]), _known(position[test])) for fit, test in splits]
    if groups is None:
        units, codes = group_equal_rows(data.keys, data.codes), data.codes
    else:
        units, codes = np.unique(groups[kept], return_inverse=True)[1], data.codes
    n_units = [len(np.unique(units[codes == k])) for k in range(len(recipe.classes))]
    n_folds = min(most, *n_units)
    if n_folds < 2:
        return []
    random = np.random.RandomState(recipe.seed)
    fold = deal_folds(units, codes, n_folds, random)
    return [
        (np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(n_folds)
    ]


def _known(positions: IntArray) -> IntArray:
    return positions[positions >= 0]
