"""The fit: make a family of the rows, climb from its closed form, keep one iterate.

First what a user may choose, then the fit of rows that are all there, then the stream
of batches that `partial_fit` adds up.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prudent.calibration.ascent import (
    Iterate,
    Learned,
    Objective,
    Trial,
    add_up,
    ascend,
    batches_of_epochs,
    fitted_moments,
    step_on_batch,
    weights,
)
from prudent.calibration.categorical import CategoricalFamily, MixedFamily
from prudent.calibration.families import Family, PriorStrengths, Statistics
from prudent.calibration.gaussian import (
    ColumnMoments,
    DiagonalFamily,
    FullFamily,
    GaussianFamily,
    SoftmaxFamily,
    TiedDiagonalFamily,
    TiedFamily,
)
from prudent.calibration.model import Model, prepare
from prudent.core.assumptions import Assumption
from prudent.core.binomial import upper_limit
from prudent.core.classes import spread_over_classes
from prudent.core.guarantee import Guarantee
from prudent.core.rows import Block, LocalRows, Rows
from prudent.core.types import BoolArray, FloatArray, IntArray
from prudent.core.validation import Structure, shown
from prudent.exceptions import (
    DegenerateDataError,
    PrudentWarning,
    SingularCovarianceError,
)

# --- settings -------------------------------------------------------------------------

GAUSSIAN: dict[str, type[GaussianFamily]] = {
    "full": FullFamily,
    "tied": TiedFamily,
    "diag": DiagonalFamily,
    "tied_diag": TiedDiagonalFamily,
}
FAMILY_NAMES = {*GAUSSIAN, "categorical", "mixed"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the user chose, as the mathematics takes it.

    The checks are those that need more than one parameter, or the data.
    """

    family: str | Family
    method: str
    strengths: PriorStrengths
    n_levels: IntArray  # of each categorical feature
    steps: dict[str, Any]  # what an `Objective` lowers, and by what steps
    stopping: str
    max_iter: int  # evaluations of each path
    decision_costs: FloatArray | None  # (r, r), minimised by the predictions
    batch_size: int | None  # rows behind each step; needs rows in one block
    start: str | tuple[FloatArray, ...]  # "closed_form", how to draw it, or statistics
    n_starts: int  # of which the best is kept; 1 unless they are drawn

    def __post_init__(self) -> None:
        if self.method == "gd" and self.family not in ("tied", "tied_diag"):
            raise ValueError(
                "`method='gd'` descends on softmax regression and needs `family` "
                f"'tied' or 'tied_diag', got {self.family!r}."
            )
        if self.method == "gd" and not isinstance(self.start, str):
            raise ValueError(
                "`method='gd'` starts from labels, not from statistics: give `init` "
                "'closed_form', 'random' or 'bootstrap', or use method='rc'."
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

    def make(self, moments: ColumnMoments, total: float) -> Family:
        """The family of rows of weight `total`; without moments one without numbers.

        Raises
        ------
        ValueError
            If a prior mean or covariance does not fit the number of features.
        """
        if moments:
            self._check_priors(sum(m.mean.shape[1] for m in moments))
        if not isinstance(self.family, str):
            return self.family
        levels = CategoricalFamily(self.n_levels, self.strengths)
        if not moments:
            return levels
        gaussian = GAUSSIAN.get(self.family, DiagonalFamily)
        family: Any = gaussian.from_moments(moments, total, self.strengths)
        if self.family == "mixed":
            return MixedFamily(family, levels)
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


# --- the fit --------------------------------------------------------------------------


#: Updates when a class has a single row and nothing can be validated.
_FEW_UPDATES = 8


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
    """Calibrate the closed-form fit of rows.

    Parameters
    ----------
    rows : Rows
        Blocks of `Trial`. With `stopping="holdout"` their held-out rows choose the
        iterate, and bound its error.
    folds : iterable of Rows or None
        With `stopping="cv"` the trials of each fold, which choose the number of
        updates; None where some class cannot be validated.
    settings : Settings
    classes : sequence
        Label of each code, for messages.
    seed : int
        Of batches and random starts.
    watch : callable
        Called after each evaluation of the path that is returned; True ends it.
    by_group : bool
        Whether each held-out row stands for a group.
    weighted : bool
        Whether rows have weights: then they are no independent draws, and their error
        is not promised.

    Returns
    -------
    Learned

    Raises
    ------
    ValueError
        If a class has no row to learn from, or a family returns NaN.
    SingularCovarianceError
        If a covariance of the start is singular.

    Warns
    -----
    PrudentWarning
        If a class cannot be validated.
    """
    climb = partial(_climb, settings=settings, classes=classes, seed=seed)
    stopping, max_updates = settings.stopping, float("inf")
    criterion = _CRITERIA.get(stopping, lambda t, _: -t)  # keeps the last iterate
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
        curves = [climb(fold, _held_out_cost).criterion for fold in folds]
        max_updates = earliest_least_error(curves, 1e-9 * sum(rows.map(_total)))
    best = climb(rows, criterion, max_updates, watch)
    for draw in range(1, settings.n_starts):
        other = climb(rows, criterion, max_updates, watch, draw)
        best = min(best, other, key=lambda climbed: _worth(climbed, stopping))
    model = replace(best.model, costs=settings.decision_costs)
    guarantees: tuple[Guarantee, ...] = ()
    # Statistics from elsewhere may be those of the very rows that are held out.
    starts_anew = isinstance(settings.start, str)
    if stopping == "holdout" and starts_anew and not weighted:
        wrong, n_held_out = np.sum(rows.map(Trial.count_wrong, model), axis=0).tolist()
        claims = settings.max_iter * settings.n_starts
        guarantees = (error_promise(wrong, n_held_out, claims, by_group=by_group),)
    return replace(best, model=model, guarantees=guarantees)


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
) -> Learned:
    """Follow one path and keep its best iterate.

    The start is the closed form of the trials or, where `settings` asks for another,
    draw number `draw`, or the statistics that it gives.
    """
    objective = _posed(trials, settings, classes)
    family, labels = objective.family, objective.closed_form()
    start = full = closed_form_start(family, labels, classes)
    if settings.start != "closed_form":
        full = labels
        if isinstance(settings.start, str):
            other = objective.drawn(settings.start, seed, draw)
        else:
            other = _given_start(settings.start, labels)
        start = closed_form_start(family, other, classes)
    batches = None
    if settings.batch_size is not None:
        (trial,) = objective.rows.blocks  # rows of several blocks have no positions
        n_rows = len(trial.fitted.codes)
        if settings.batch_size < n_rows:
            random = np.random.RandomState(seed)
            batches = batches_of_epochs(n_rows, settings.batch_size, random)
    path = ascend(
        objective,
        start,
        criterion,
        max_evaluations=settings.max_iter,
        max_updates=max_updates,
        labels=full,
        batches=batches,
        watch=watch,
    )
    if np.isnan(path.curves[0]).any():
        raise ValueError(
            f"{type(family).__name__}.log_joint returned NaN; it must return "
            "numbers, -inf for the impossible."
        )
    return path


def _given_start(given: Sequence[FloatArray], labels: Statistics) -> Statistics:
    """The user's statistics, checked and with the total weight of the labels' own."""
    shapes = [part.shape for part in given]
    expected = [part.shape for part in labels]
    finite = all(np.isfinite(part).all() for part in given)
    if shapes != expected or not finite or not given[0].sum() > 0:
        raise ValueError(
            "`init` must hold finite statistics as in `statistics_`, the first of "
            f"sum > 0, of shapes {expected}, got shapes {shapes}."
        )
    share = labels[0].sum() / given[0].sum()
    return [share * part for part in given]


def closed_form_start(
    family: Family, labels: Statistics, classes: Sequence[Any]
) -> Statistics:
    """The statistics to start from, given those of the labels, checked.

    Softmax regression starts at the coefficients of the tied Gaussian discriminant.

    Raises
    ------
    SingularCovarianceError
        If a covariance is singular.
    DegenerateDataError
        If the statistics are not finite or give no valid parameters.
    """
    if isinstance(family, SoftmaxFamily):
        gaussian = family.gaussian_statistics(labels)
        _check_valid(family.gaussian, gaussian, classes)
        return family.start(labels)
    _check_valid(family, labels, classes)
    return labels


def _posed(trials: Rows, settings: Settings, classes: Sequence[Any]) -> Objective:
    """The family made of the rows to fit, and what it is to lower on them.

    Raises
    ------
    ValueError
        If a class has no row to fit.
    """
    n_rows, moments, total = fitted_moments(
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
    family = settings.make(moments, total)
    merges = settings.batch_size is None
    prepared = trials.transform(Trial.prepared, family, merges)
    return Objective(prepared, family, len(classes), **settings.steps)


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


def _worth(path: Learned, stopping: str) -> Any:
    """What random starts are compared by, the less the better: their criterion."""
    if stopping in _CRITERIA:
        return path.criterion[path.best_iteration]
    return path.curves[0, path.best_iteration]


def _training_cost(_: int, iterate: Iterate) -> Any:
    """Keep the least training cost, of equals that with the least log loss."""
    mean = iterate.losses.mean
    return mean.cost, mean.log_loss


def _held_out_cost(_: int, iterate: Iterate) -> Any:
    """Keep the iterate of the least cost on the rows held out."""
    assert iterate.held_out is not None
    return iterate.held_out.cost


_CRITERIA: dict[str, Callable[[int, Iterate], Any]] = {
    "holdout": _held_out_cost,
    "train": _training_cost,
}


def _total(trial: Trial) -> float:
    """Weight of the rows that a trial learns from."""
    return 0.0 if trial.fitted is None else float(weights(trial.fitted).sum())


def _check_valid(
    family: Family, statistics: Statistics, classes: Sequence[Any]
) -> None:
    """Raise unless the statistics of every class give valid parameters.

    Raises
    ------
    DegenerateDataError
        If they are not finite, have another number of blocks, or are not valid.
    SingularCovarianceError
        If a covariance is singular, which the message names.
    """
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
            f"{name}: the statistics of class {shown(label)} give no valid parameters."
        )
    what, also = "the covariance shared by all classes is singular", ""
    if not family.tied:
        what = f"the covariance of class {shown(label)} ({weight:g} rows) is singular"
        also = " or use `family='tied'`"
    raise SingularCovarianceError(
        f"{what}; set `covariance_prior_strength` above 0 (its default is 'auto')"
        f"{also}."
    )


# --- rows that arrive in batches ------------------------------------------------------


@dataclass(frozen=True)
class Stream:
    """Statistics of all rows so far, those of the labels and the calibrated ones.

    Every change gives a new stream, so that a batch which fails leaves no trace.
    """

    family: Family  # centre and scale are those of the first batch
    classes: NDArray[Any]  # in sorted order
    is_declared: bool  # whether the caller named all classes in advance
    statistics: Statistics  # calibrated, blocks of zeros for classes not yet seen
    labels: Statistics  # s(X, Y)
    #: Log loss, error, risk and lr of the model before each step, on its batch.
    curve: tuple[tuple[float, ...], ...] = ()
    n_frozen: int = 0  # steps in which some block or count did not move in full

    @classmethod
    def begin(
        cls,
        settings: Settings,
        block: Block,
        classes: NDArray[Any],
        is_declared: bool,
    ) -> Stream:
        """Stream without rows, whose first batch sets the units.

        Centre, scale and features that vary stay those of this block.
        """
        _, moments, total = fitted_moments(
            LocalRows([Trial(block)]),
            len(classes),
            settings.structure,
            learns_missing=settings.learns_missing,
        )
        family = settings.make(moments, total)
        nothing = np.zeros((1, len(classes)))
        empty = family.statistics(prepare(family, block.X[:1]), nothing)
        if hasattr(family, "with_rows"):
            family = replace(family, total=0.0)  # type: ignore[type-var]
        return cls(family, classes, is_declared, empty, empty)

    @property
    def seen(self) -> BoolArray:
        """Classes with at least one row."""
        return self.labels[0] > 0

    @property
    def curves(self) -> FloatArray:
        """Log loss, error, risk and lr of each step, shape (4, n_steps)."""
        return np.array(self.curve, dtype=np.float64).reshape(-1, 4).T

    def add(self, block: Block, classes: NDArray[Any], settings: Settings) -> Stream:
        """Add the statistics of a batch and take one step on it, if there is a model.

        `classes` are all that are known now, old and new. The step takes the batch as a
        sample of all rows so far.
        """
        family, weight = self.family, weights(block)
        rows = prepare(family, block.X)
        if hasattr(family, "with_rows"):
            family = family.with_rows(rows, weight)
        batch = Objective.from_block(
            family, Block(rows, block.codes, weight), len(classes)
        )
        known, new = np.isin(classes, self.classes), batch.closed_form()
        grown = replace(
            self,
            family=family,
            classes=classes,
            statistics=add_up([_spread(self.statistics, known), new]),
            labels=add_up([_spread(self.labels, known), new]),
        )
        if not grown.is_solved():
            return grown
        seen, costs = np.flatnonzero(grown.seen), settings.steps["costs"]
        if costs is not None:
            costs = costs[np.ix_(seen, seen)]
        codes = np.searchsorted(seen, block.codes)
        objective = Objective.from_block(
            family,
            Block(rows, codes, weight),
            len(seen),
            **settings.steps | {"costs": costs},
        )
        labels = [block[seen] for block in grown.labels]
        point, after, is_full = step_on_batch(
            objective, grown.of_seen_classes(), labels
        )
        return replace(
            grown,
            statistics=_spread(after, grown.seen),
            curve=(*self.curve, point),
            n_frozen=self.n_frozen + (not is_full),
        )

    def of_seen_classes(self) -> Statistics:
        """Calibrated statistics without the blocks of unseen classes."""
        return [block[self.seen] for block in self.statistics]

    def is_solved(self) -> bool:
        """Whether there is a model yet.

        Two classes have rows, and the statistics of every class with rows are valid.
        """
        start = self.of_seen_classes()
        return len(start[0]) >= 2 and bool(self.family.is_valid(start).all())

    def model(self, costs: FloatArray | None) -> Model:
        """The rule of the classes seen so far."""
        parameters = self.family.parameters(self.of_seen_classes())
        return Model(self.family, parameters, self.seen, costs)


def classes_after(
    stream: Stream | None, declared: ArrayLike | None, y: NDArray[Any]
) -> NDArray[Any]:
    """All classes, sorted, once a batch with labels `y` has been added.

    Raises
    ------
    ValueError
        If `y` holds a label outside the declared classes, or these change.
    """
    if stream is None:
        known = np.unique(y if declared is None else declared)
    elif stream.is_declared:
        known = stream.classes
        if declared is not None and not np.array_equal(np.unique(declared), known):
            raise ValueError(
                f"`classes` must stay {known.tolist()} in every call of "
                f"partial_fit, got {np.unique(declared).tolist()}."
            )
    else:
        known = np.union1d(stream.classes, y if declared is None else declared)
    unknown = np.setdiff1d(y, known)
    if len(unknown):
        raise ValueError(
            f"y holds the label {unknown.tolist()[0]!r}, which is not among the "
            f"declared `classes` {known.tolist()}."
        )
    return known


def _spread(statistics: Statistics, known: BoolArray) -> Statistics:
    """Statistics with blocks of zeros for the classes that are not `known`, (r,)."""
    return [spread_over_classes(block, known, 0.0, axis=0) for block in statistics]


# --- promises: the error bound of rows held apart -------------------------------------


CONFIDENCE = 0.95


def error_promise(
    wrong: int, n_held_out: int, n_candidates: int, *, by_group: bool
) -> Guarantee:
    """Bound on the error rate from held-out rows of which `wrong` were missed.

    The kept iterate is the best of `n_candidates` on those rows, so that each
    candidate gets an equal share of the error probability.
    """
    level = (1 - CONFIDENCE) / n_candidates
    return Guarantee(
        quantity="error rate",
        sense="<=",
        bound=upper_limit(wrong, n_held_out, level=level),
        confidence=CONFIDENCE,
        assumptions=(Assumption.GROUPS if by_group else Assumption.INDEPENDENT,),
        unit="group" if by_group else "row",
        evidence={
            "calibration rows": n_held_out,
            "wrong": wrong,
            "claims": n_candidates,
            "pointwise level": level,
        },
        source="Clopper and Pearson 1934, Bonferroni over the iterates",
    )
