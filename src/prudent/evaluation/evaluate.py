"""One method on all folds: fit, predict and count, as it is and with the promise."""

from __future__ import annotations

import math
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from itertools import accumulate
from operator import add
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from prudent.core.checks import Counted
from prudent.core.guarantee import Guarantee
from prudent.core.moments import ClassMoments
from prudent.core.order import forward_folds
from prudent.core.rows import hold_out, one_row_per_group
from prudent.core.types import BoolArray, FloatArray, IntArray
from prudent.estimator_tools import fit_inside, predict_set
from prudent.estimator_tools.labelled_rows import LabelledRows, in_front, is_as_given
from prudent.evaluation.choice import chosen_in
from prudent.evaluation.estimators import FEWEST_TO_LEARN
from prudent.evaluation.frame import Measured, Tally, counted, in_sets
from prudent.evaluation.methods import Method
from prudent.evaluation.promising import (
    MAY_BE_LACKING,
    affordable,
    fewest_held_out,
    held_out_share,
    holds_out,
    is_choice,
    is_full_conformal,
    promised,
    promising,
    shared_confidence,
)
from prudent.evaluation.records import ALARMS, CALIBRATION, MOVED, RegionMap, Settings
from prudent.exceptions import InfeasibleError, PrudentWarning
from prudent.rules.rule import Rule
from prudent.rules.subgroups import (
    cell_name,
    cell_places,
    cells_of,
    cells_with_rows_enough,
)
from prudent.rules.wish import Wish


@dataclass(frozen=True, eq=False)
class Fold:
    """One split: positions of rows; repeats and folds are numbered from 1."""

    repeat: int
    number: int
    train: IntArray  # fitted on
    test: IntArray  # with groups one random row of each, else all that are held out
    held_out: IntArray  # all rows that `train` must not hold


@dataclass(frozen=True, eq=False)
class Task:
    """What every method gets: n rows in K classes, and the folds."""

    rows: LabelledRows
    folds: Sequence[Fold]  # those of one repeat after the other
    _: KW_ONLY
    moments: Sequence[ClassMoments] | None = None  # of training parts; None: prepared
    moment_seconds: float = 0.0  # they took for one fold
    # Transformer, not fitted, in front of each method that does not take the rows as
    # they were given.
    preparation: Any = None
    settings: Settings  # as they were asked for
    wish: Wish | None  # the promise asked for
    plane: FloatArray | None  # (n, 2): rows on the two discriminant axes
    costs: FloatArray | None  # (K, K): of the answer of a column, by true class
    n_methods: int = 1  # that share the level, for any to be picked from the table
    # Whether rows are moved, regions drawn and rows handed over looked at, too: what
    # the printed table does not show.
    details: bool = True

    def alone(self) -> Task:
        """The same task for a method that nobody picks by looking at its outcome."""
        return replace(self, n_methods=1)

    @property
    def others(self) -> BoolArray:
        """Classes that the wish does not name, shape (K,)."""
        named = [] if self.wish is None else [g.scope for g in self.wish.guarantees]
        return np.array([label not in named for label in self.rows.classes.tolist()])

    def sampled(self, rows: IntArray) -> IntArray:
        """At most so many of the rows as methods that need rows are fitted on."""
        size, seed = self.settings.sample, self.settings.random_state
        if size is None:
            return rows
        groups = None if self.rows.groups is None else self.rows.groups[rows]
        return rows[plain_sample(len(rows), size, seed, groups)]

    def learnable(self, rows: IntArray) -> IntArray:
        """Those of the rows whose classes can be learned from them."""
        return rows[can_be_learned(self.rows.codes[rows])]

    @property
    def n_subgroups(self) -> int:
        """Parts of the population that get the promise each; 0 without such."""
        return 0 if self.rows.inside is None else len(self.rows.inside.names)

    def promising(self, estimator: Any, counts: IntArray) -> Any:
        """The estimator, not fitted, with the promise asked for.

        It takes `parted` rows of the table, of whose classes `counts` are for training.
        """
        wish, parts, preparation = self.wish, self.rows.parts, self.preparation
        assert wish is not None
        if parts is not None and preparation is None:
            preparation = parts.in_front
        return promising(
            *(estimator, wish, preparation, counts),
            split=self.rows.needs_split,
            seed=self.settings.random_state,
            n_methods=self.n_methods,
            subgroups=parts,
        )

    def fitted(self, estimator: Any, chosen: IntArray, *, parted: bool = False) -> Any:
        """Fit an estimator to some of the rows, `parted` with their subgroups."""
        rows = self.rows
        X = _safe_indexing(rows.parted if parted else rows.X, chosen)
        groups = None if rows.groups is None else rows.groups[chosen]
        times = None if rows.times is None else rows.times[chosen]
        return fit_inside(estimator, X, rows.y[chosen], groups=groups, time=times)


def make_folds(
    codes: IntArray,
    n_folds: int,
    n_repeats: int,
    random_state: int,
    groups: NDArray[Any] | None = None,
    times: NDArray[Any] | None = None,
) -> tuple[Fold, ...]:
    """Stratified folds, shuffled anew in each repeat; numbers count from 1.

    Rows with equal `groups` stay together, and one row of each group is tested,
    drawn at random. With `times` folds learn from earlier rows and test later ones.
    """
    folds = []
    random = np.random.RandomState(random_state)
    for repeat in range(1, n_repeats + 1):
        if times is None:
            splits = _drawn_folds(codes, n_folds, random, groups)
        else:
            splits = [*forward_folds(times, n_folds)]
        for number, (train, held_out) in enumerate(splits, start=1):
            test = held_out
            if groups is not None:
                one_each = one_row_per_group(groups[held_out], random)
                test = np.sort(held_out[one_each])
            folds.append(Fold(repeat, number, train, test, held_out))
    return tuple(folds)


def _drawn_folds(
    codes: IntArray,
    n_folds: int,
    random: np.random.RandomState,
    groups: NDArray[Any] | None,
) -> list[tuple[IntArray, IntArray]]:
    """Stratified folds of one repeat, training rows and rows held out."""
    splitter: Any = (StratifiedKFold if groups is None else StratifiedGroupKFold)(
        n_folds, shuffle=True, random_state=random
    )
    with warnings.catch_warnings():
        # A class of fewer rows than folds is no accident here.
        warnings.simplefilter("ignore", UserWarning)
        return list(splitter.split(codes, codes, groups))


def can_be_learned(codes: IntArray) -> BoolArray:
    """Rows of classes that have enough of them."""
    enough: BoolArray = np.bincount(codes)[codes] >= FEWEST_TO_LEARN
    return enough


def plain_sample(
    n_rows: int, size: int, random_state: int, groups: NDArray[Any] | None = None
) -> IntArray:
    """Sorted positions of `size` rows drawn plainly; all if there are no more.

    Whole groups are drawn, about `size` rows of them in all: `size` * G / n of the G
    groups. A draw that keeps more rows of a rare class, or of a large group, is none
    from the population, and what is promised or tested on it would be about another.
    """
    if size >= n_rows:
        return np.arange(n_rows)
    random = np.random.RandomState(random_state)
    if groups is None:
        return np.sort(random.permutation(n_rows)[:size])
    names, group_of = np.unique(groups, return_inverse=True)
    drawn = random.permutation(len(names))[: max(size * len(names) // n_rows, 1)]
    return np.flatnonzero(np.isin(group_of, drawn))


def training_moments(
    X: NDArray[Any], codes: IntArray, classes: NDArray[Any], folds: Sequence[Fold]
) -> tuple[list[ClassMoments], ClassMoments]:
    """Moments of the training part of each fold of one repeat, and of all rows.

    The rows are read once: the moments of the test parts are merged from the
    left and from the right, and the training part of fold j is what lies left
    and right of it; of folds that go forward in time, what lies left. Nothing is
    subtracted, so no digits are lost.
    """
    n_classes, n_parts = len(classes), len(folds) + 1
    part = np.zeros(len(X), dtype=np.intp)  # 0 is never tested
    for j, fold in enumerate(folds, start=1):
        part[fold.held_out] = j
    # A class of each part is a class of its own in the pass over the rows.
    both = ClassMoments.from_arrays(
        X, part * n_classes + codes, classes=np.arange(n_parts * n_classes)
    )
    first, *parts = [
        replace(both.select(range(j * n_classes, (j + 1) * n_classes)), classes=classes)
        for j in range(n_parts)
    ]
    nothing = ClassMoments.empty(classes, X.shape[1])
    before = list(accumulate(parts[:-1], add, initial=first))
    if first.count.sum():
        return before, before[-1] + parts[-1]
    after = list(accumulate(parts[:0:-1], add, initial=nothing))[::-1]
    training = [left + right for left, right in zip(before, after, strict=True)]
    return training, before[-1] + parts[-1]


# p-values are multiples of 1 / (n + 1); rounding is far below.
ROUNDING = 1e-9


def decide(
    estimator: Any, X: Any, classes: NDArray[Any]
) -> tuple[IntArray, BoolArray | None, FloatArray | None]:
    """Decisions of a fitted estimator about n rows, as far as it gives them.

    A class that the estimator has not seen is never predicted and in no set.

    Returns
    -------
    predicted : ndarray of int, shape (n,)
        Position of the predicted class among the `classes`.
    sets : ndarray of bool, shape (n, K), or None
        Classes that are not ruled out.
    p_values : ndarray of shape (n, K), or None
    """
    spread = partial(_spread, estimator, classes)
    if hasattr(estimator, "p_values") and not hasattr(estimator, "level"):
        # One-class rejectors: both answers follow, and a set may be empty.
        p_values = spread(estimator.p_values(X))
        sets = p_values > estimator.false_alarm_rate
        return p_values.argmax(axis=1), sets, p_values
    if hasattr(estimator, "p_values"):
        if hasattr(estimator, "predict_with_p_values"):
            labels, p_values = estimator.predict_with_p_values(X)
        else:
            labels, p_values = estimator.predict(X), estimator.p_values(X)
        predicted, p_values = np.searchsorted(classes, labels), spread(p_values)
        if any(promise.confidence for promise in estimator.guarantees_):
            # Fewer rows are ruled out than on average at the level.
            return predicted, spread(estimator.predict_set(X)), p_values
        return predicted, sets_at(estimator.level, p_values, predicted), p_values
    predicted = np.searchsorted(classes, estimator.predict(X))
    if hasattr(estimator, "predict_set"):
        return predicted, spread(predict_set(estimator, X)), None
    return predicted, None, None


def _spread(estimator: Any, classes: NDArray[Any], known: NDArray[Any]) -> NDArray[Any]:
    """A column for each of the `classes`, zeros for those that were not learned."""
    columns = np.searchsorted(classes, getattr(estimator, "classes_", classes))
    if len(columns) == len(classes):
        return known
    wide = np.zeros((len(known), len(classes)), dtype=known.dtype)
    wide[:, columns] = known
    return wide


def sets_at(
    level: FloatArray | float, p_values: FloatArray, predicted: IntArray
) -> BoolArray:
    """Conformal sets at a level, or at one for each class.

    The predicted class is added, so none is empty.
    """
    sets: BoolArray = p_values > level + ROUNDING
    sets[np.arange(len(sets)), predicted] = True
    return sets


SHIFTS = tuple(np.linspace(0.0, 2.0, 9).tolist())


def shifted_rows(
    X: NDArray[np.float64], codes: NDArray[np.intp], moments: ClassMoments
) -> NDArray[np.float64]:
    """Rows moved by each of `SHIFTS` towards the nearest other class mean.

    Lengths are in pooled standard deviations; a row stops at the mean that it moves to.
    The result has the shape (n_shifts, n, d).
    """
    scale = np.sqrt(moments.variation.sum(axis=0) / moments.weight.sum())
    unit = np.where(scale > 0, scale, 1.0)
    gaps = (moments.mean[None] - X[:, None]) / unit
    gaps[:, :, scale == 0] = 0.0
    distance = np.sqrt(np.einsum("ikj,ikj->ik", gaps, gaps))
    rows = np.arange(len(X))
    others = distance.copy()
    others[rows, codes] = np.inf
    others[:, moments.weight == 0] = np.inf  # classes without a mean
    nearest = others.argmin(axis=1)
    length = distance[rows, nearest]
    towards = gaps[rows, nearest] * unit / np.where(length > 0, length, 1.0)[:, None]
    steps = np.minimum(np.array(SHIFTS)[:, None], length)
    moved: NDArray[np.float64] = X + steps[:, :, None] * towards
    return moved


GRID = 48


def region_map(
    estimator: Any, Z: FloatArray, y: NDArray[Any], classes: NDArray[Any]
) -> RegionMap:
    """Fit in the plane and look at every point of a grid around the rows."""
    low, high = np.quantile(Z, [0.005, 0.995], axis=0)
    margin = 0.15 * (high - low)
    x, y_axis = np.linspace(low - margin, high + margin, GRID).T
    points = np.stack(np.meshgrid(x, y_axis), axis=-1).reshape(-1, 2)
    estimator.fit(Z, y)
    predicted, sets, _ = decide(estimator, points, classes)
    return RegionMap(
        x=x,
        y=y_axis,
        sets=in_sets(predicted, sets, len(classes)).reshape(GRID, GRID, -1),
        predicted=predicted.reshape(GRID, GRID),
    )


class FoldResult(NamedTuple):
    """What a method did on the n tested rows of a fold, beside the long frame."""

    gained: IntArray  # what the ranking counts for it, of each row that is ranked by
    # Of the method that makes the promise asked for, if one is.
    decided: BoolArray | None = None  # (n,): rows with one answer
    promises: Sequence[Counted] = ()
    holds_out: bool = True  # rows of the training part, for the promise to rest on
    lacking: tuple[int, ...] = ()  # classes too rare to be promised; -1: all rows
    own: Sequence[Counted] = ()  # promises that the method makes by itself
    chosen: str | None = None  # by a method that chooses among others
    warnings: tuple[str, ...] = ()


def lacking(
    task: Task, fold: Fold, *, holds_out: bool, in_every_part: bool = False
) -> tuple[int, ...]:
    """Classes of which a promise lacks rows; -1: rows of any class.

    Where one of several subgroups that has rows enough is of use, a class lacks rows if
    no subgroup has enough of it, or `in_every_part` if one has not.
    Known before any fit: which rows are held out depends on their number and the seed.
    """
    wish, rows = task.wish, task.sampled(fold.train)
    assert wish is not None
    if holds_out:
        random = np.random.RandomState(task.settings.random_state)
        groups = None if task.rows.groups is None else task.rows.groups[rows]
        times = None if task.rows.times is None else task.rows.times[rows]
        share = held_out_share(wish)
        try:
            rows = rows[hold_out(len(rows), share, random, groups, times)[1]]
        except ValueError:
            raise ValueError(
                f"time: of the rows that fold {fold.number} learns from all are among "
                f"the latest {share:g} or as late as these: give finer times."
            ) from None
    if not wish.by_class:
        enough = _parts_with_rows_enough(task, rows)
        return () if (enough.all() if in_every_part else enough.any()) else (-1,)
    labels = task.rows.classes.tolist()
    counts = np.bincount(task.rows.codes[rows], minlength=len(labels))
    if task.rows.inside is not None:
        of_parts = rows_of_parts(task.rows, rows)
        # Sets rule a class out wherever a subgroup has rows enough of it; where every
        # row gets one answer, one subgroup that lacks rows spoils the promise.
        one_is_of_use = is_in_sets(wish, len(labels)) and not in_every_part
        counts = of_parts.max(axis=0) if one_is_of_use else of_parts.min(axis=0)
    named = [labels.index(g.scope) for g in wish.guarantees if g.scope in labels]
    fewest = {
        k: fewest_held_out(wish, task.n_methods, labels[k], task.n_subgroups)
        for k in named
    }
    few = tuple(k for k in named if counts[k] < fewest[k])
    if wish.capacity is not None and len(rows) < fewest_held_out(wish, task.n_methods):
        return few or (-1,)
    return few


def _parts_with_rows_enough(task: Task, rows: IntArray) -> BoolArray:
    """Which parts have held-out rows enough for a promise about all classes."""
    wish, n_methods = task.wish, task.n_methods
    assert wish is not None
    if task.rows.inside is None:
        return np.array([len(rows) >= fewest_held_out(wish, n_methods)])
    if wish.kind == "error":
        _, counts = rows_of_cells(task.rows, rows)
        together = shared_confidence(wish, n_methods)
        return cells_with_rows_enough(counts, wish.allowed, together)
    least = fewest_held_out(wish, n_methods, n_subgroups=task.n_subgroups)
    enough: BoolArray = rows_of_parts(task.rows, rows).sum(axis=1) >= least
    return enough


def rows_of_cells(
    table: LabelledRows, rows: IntArray
) -> tuple[tuple[str, ...], IntArray]:
    """Names of the cells that hold some rows of a table, and how many each holds."""
    assert table.inside is not None
    members, names = table.inside.members[rows], table.inside.names
    cells = cells_of(members)
    places = cell_places(cells, members)
    counts = np.bincount(places[places >= 0], minlength=len(cells))
    return tuple(cell_name(cell, names) for cell in cells), counts


def rows_of_parts(table: LabelledRows, rows: IntArray) -> IntArray:
    """How many of some rows of a table are of each subgroup and class, (G, K)."""
    inside, codes = table.inside, table.codes[rows]
    assert inside is not None
    n_classes = len(table.classes)
    members = inside.members[rows].T
    return np.array([np.bincount(codes[own], minlength=n_classes) for own in members])


def is_hopeless(lacks: tuple[int, ...], wish: Wish, n_classes: int) -> bool:
    """Whether so many classes lack rows that no method can promise anything of use.

    One class is enough where every row gets one answer; where rows get sets, classes
    that lack rows are in all of them, and those say something while others do not.
    """
    if wish.by_class and is_in_sets(wish, n_classes):
        return len(lacks) == len(wish.guarantees)
    return len(lacks) > 0


def is_in_sets(wish: Wish, n_classes: int) -> bool:
    """Whether rows are answered with sets of classes."""
    return wish.kind == "coverage" or len(wish.guarantees) == n_classes


def ask(
    estimator: Any, task: Task, fold: Fold, measured: Measured, plain: Any = None
) -> FoldResult:
    """Fit a method so that it makes the promise asked for, and test that.

    A method that cannot promise anything rules nothing out. Rows decided at each level
    of the wish, and the wrong ones among them, become items, too, where anything was
    fitted. `plain` is the fit of the method as it is, the model of which may serve
    again.
    """
    if is_choice(estimator):
        task = task.alone()
    wish, classes = task.wish, task.rows.classes
    assert wish is not None
    rows = task.sampled(fold.train)
    counts = np.bincount(task.rows.codes[rows], minlength=len(classes))
    X = _safe_indexing(task.rows.parted, fold.test)
    true = task.rows.codes[fold.test]
    inside = task.rows.inside
    members = None if inside is None else inside.members[fold.test]
    wrapped = task.promising(estimator, counts)
    if is_full_conformal(wrapped) and plain is not None:
        from prudent.conformal.classifier import share_model

        if task.rows.parts is None and len(task.learnable(rows)) == len(rows):
            share_model(plain, wrapped)
    holds = holds_out(wrapped)
    lacks = lacking(task, fold, holds_out=holds)
    nothing = partial(_nothing, measured, true, task, holds, lacks)
    if wish.kind == "coverage" and is_hopeless(lacks, wish, len(classes)):
        return nothing()
    try:
        if wish.kind == "missed" and wish.capacity is None:
            # The limits come after the fit, all those of a curve.
            limits = wrapped.max_class_error
            wrapped.set_params(max_class_error=None)
            task.fitted(wrapped, rows, parted=True)
            _add_limits(measured, wrapped, task, X, members, true)
            wrapped = wrapped.with_class_error(limits)
        else:
            task.fitted(wrapped, rows, parted=True)
            if wish.kind == "missed":
                _add_limits(measured, wrapped, task, X, members, true)
    except InfeasibleError:
        return nothing()
    except ValueError as error:
        if counts.min() >= MAY_BE_LACKING or not _is_of_too_few_rows(error):
            raise
        # A class of one or two rows, which the wrapper or the method cannot do with.
        warnings.warn(str(error), PrudentWarning, stacklevel=2)
        return nothing()
    predicted, given, p_values = decide(wrapped, X, classes)
    sets = in_sets(predicted, given, len(classes))
    decided = sets.sum(axis=1) == 1
    tally = Tally.count(true, predicted, sets, len(classes))
    parts = {}
    if inside is not None and members is not None:
        for name, own in zip(inside.names, members.T, strict=True):
            answered = (true[own], predicted[own], sets[own])
            parts[name] = Tally.count(*answered, len(classes))
    promises = counted(promised(wrapped, wish, task.n_methods), tally, classes, parts)
    measured.add_answers(tally, asked=True)
    measured.add_promises(promises, asked=True)
    if wish.kind in ("coverage", "error"):
        decisions = (true, predicted, p_values)
        _add_levels(measured, wrapped, task, X, members, *decisions)
    wrong = decided & ~sets[np.arange(len(true)), true]
    choice = chosen_in(wrapped)
    chosen = None if choice is None else choice.best_name_
    gained = _gained(task, true, decided, wrong)
    return FoldResult(gained, decided, promises, holds, lacks, chosen=chosen)


def _is_of_too_few_rows(error: ValueError) -> bool:
    """Whether a wrapper or a known library refused the rows.

    What the method of somebody else raises by itself is its own matter, and the reason
    why it failed.
    """
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    module = "" if trace is None else trace.tb_frame.f_globals.get("__name__", "")
    return module.partition(".")[0] in {"prudent", "sklearn", "numpy", "scipy"}


def _nothing(
    measured: Measured,
    true: IntArray,
    task: Task,
    holds_out: bool,
    lacks: tuple[int, ...],
) -> FoldResult:
    """A fold on which nothing can be promised: every class is in every set."""
    n_classes = len(task.rows.classes)
    everything = np.ones((len(true), n_classes), dtype=bool)
    none = np.zeros(len(true), dtype=bool)
    # The predictions are not looked at: there is no single answer.
    measured.add_answers(Tally.count(true, true, everything, n_classes), asked=True)
    return FoldResult(_gained(task, true, none, none), none, (), holds_out, lacks)


def _gained(
    task: Task, true: IntArray, decided: BoolArray, wrong: BoolArray
) -> IntArray:
    """What the ranking counts for a method that makes a promise on each row.

    1 for a row decided rightly, -1 for one decided wrongly, else 0; for promises about
    some classes -1 for each row of the others that is not answered rightly.
    """
    others = task.others
    assert task.wish is not None
    if task.wish.kind == "missed" and others.any():
        return -(wrong | ~decided)[others[true]].astype(np.intp)
    gained: IntArray = decided.astype(np.intp) - 2 * wrong
    return gained


def _add_levels(
    measured: Measured,
    wrapped: Any,
    task: Task,
    X: FloatArray,
    members: BoolArray | None,
    true: IntArray,
    predicted: IntArray,
    p_values: FloatArray | None,
) -> None:
    """Rows decided at each level of the wish, by the same fit."""
    wish, classes = task.wish, task.rows.classes
    assert wish is not None
    answers = []
    if wish.kind == "coverage":
        for q in wish.levels:
            if wish.subgroups and wish.confidence is not None:  # no cut of p-values
                sets = wrapped.predict_set(X, level=1 - q)
                answers.append(_in_sets(_spread(wrapped, classes, sets), true))
            else:
                assert p_values is not None
                sets = sets_at(_cut(wrapped, task, 1 - q), p_values, predicted)
                answers.append(_in_sets(sets, true))
    else:
        from prudent.certification.held_out import answer_scores

        scores, _ = answer_scores(wrapped.estimator_, X, wrapped.scoring)
        made = wrapped.rule_.calibration
        for level in wish.levels:
            rule = made.rule(level) if wish.subgroups else made.rule(level, wish.share)
            answered = rule.answers(scores, members) & _proves(rule, wish)
            answers.append((answered, answered & (predicted != true)))
    measured.add_levels(wish.levels, answers, true)


def _in_sets(sets: BoolArray, true: IntArray) -> tuple[BoolArray, BoolArray]:
    """Which rows get a set of one class, and of which that is another one."""
    answered = sets.sum(axis=1) == 1
    return answered, answered & ~sets[np.arange(len(true)), true]


def _proves(rule: Rule, wish: Wish) -> bool:
    """Whether a rule promises the share that was asked for beside a rate, if any."""
    quantities = {promise.quantity for promise in rule.guarantees}
    return wish.capacity is None or wish.capacity.quantity in quantities


def _cut(wrapped: Any, task: Task, level: float) -> FloatArray | float:
    """The p-value (of each class) up to which a label is ruled out at a level."""
    wish, classes = task.wish, task.rows.classes
    assert wish is not None
    if wish.confidence is None:
        return level
    # A class that the wrapper does not know is never ruled out.
    cuts = np.zeros(len(classes))
    known = np.searchsorted(classes, wrapped.classes_)
    evidence = [promise.evidence for promise in wrapped.rule_.at(level).guarantees]
    cuts[known] = [e["rank"] / (e["calibration rows"] + 1) for e in evidence]
    return cuts


def _add_limits(
    measured: Measured,
    fitted: Any,
    task: Task,
    X: FloatArray,
    members: BoolArray | None,
    true: IntArray,
) -> None:
    """Rows decided when the limits of all classes named grow in step."""
    from prudent.certification.held_out import class_scores

    wish, classes = task.wish, task.rows.classes
    assert wish is not None
    scores, _ = class_scores(fitted.estimator_, X)
    answers = []
    for level in wish.levels:
        try:
            rule = fitted.rule_.at(wish.limits(level))
        except InfeasibleError:
            rule = None
        if rule is None or not _proves(rule, wish):
            none = np.zeros(len(true), dtype=bool)
            answers.append((none, none))
        elif rule.kind == "sets":
            sets = _spread(fitted, classes, rule.sets(scores, members))
            answers.append(_in_sets(sets, true))
        else:
            wrong = rule.labels(scores, members) != classes[true]
            answers.append((np.ones(len(true), dtype=bool), wrong))
    measured.add_levels(wish.levels, answers, true)


BY_HELD_OUT_ROWS = (
    "by held-out rows, for full conformal prediction takes long with so many rows"
)
Progress = Callable[[str, int, int], None]
LEVELS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
SHIFT_ROWS = 2000
PLANE_ROWS = 2000


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What a method did on all folds: items of the long frame, and what is beside."""

    items: pa.Table
    folds: tuple[FoldResult, ...]
    regions: RegionMap | None
    parameters: dict[str, str]
    notes: tuple[str, ...] = ()  # what was done differently from its settings


def evaluate(
    method: Method, task: Task, progress: Progress | None = None
) -> Evaluation:
    """Fit and test a method on every fold; errors are the method's own."""
    estimator = method.estimator(task.settings.random_state)
    in_fold = np.bincount(task.rows.codes[task.sampled(task.folds[0].train)])
    was_open = is_full_conformal(estimator) and estimator.method == "auto"
    affordable(estimator, in_fold, split=task.rows.needs_split)
    changed = was_open and estimator.method == "split"
    n_folds, choosing = len(task.folds), is_choice(estimator)
    results = []
    jobs = Parallel(n_jobs=task.settings.n_jobs, return_as="generator")(
        delayed(_run_fold)(estimator, task, index) for index in range(n_folds)
    )
    for index in range(n_folds):
        if progress is not None:
            progress(method.name, index + 1, n_folds)
        results.append(next(jobs))
    items = pa.concat_tables(table for table, _ in results).combine_chunks()
    named = pa.array([method.name] * len(items), pa.string())
    return Evaluation(
        items=items.set_column(0, "method", named),
        folds=tuple(result for _, result in results),
        regions=None if method.is_baseline or choosing else _regions(estimator, task),
        parameters={} if choosing else _parameters(estimator),
        notes=(
            *((BY_HELD_OUT_ROWS,) if changed and not task.rows.needs_split else ()),
            *_chosen_in_folds(result for _, result in results),
        ),
    )


def _chosen_in_folds(results: Iterable[FoldResult]) -> tuple[str, ...]:
    """Say in how many folds a method chose which."""
    chosen = Counter(result.chosen for result in results)
    named = [(name, n) for name, n in chosen.most_common() if name is not None]
    if not named:
        return ()
    (first, n), *others = named
    folds = "fold" if n == 1 else "folds"
    rest = (f"{name} in {k}" for name, k in others)
    return (", ".join([f"{first} in {n} {folds}", *rest]),)


def _run_fold(estimator: Any, task: Task, index: int) -> tuple[pa.Table, FoldResult]:
    fold = task.folds[index]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        measured = Measured(task.rows.classes)
        result, chosen, choice_seconds = None, None, 0.0
        is_candidate = False
        if is_choice(estimator) and task.wish is not None:
            # The plain method is the one that was chosen for the promise.
            start = time.perf_counter()
            result = ask(estimator, task, fold, measured)
            choice_seconds = time.perf_counter() - start
            chosen = result.chosen
            if chosen is not None:
                estimator, is_candidate = estimator.candidate(chosen), True
        fitted, n_train, fit_seconds = _fit(estimator, task, index)
        if chosen is None and (choice := chosen_in(fitted)) is not None:
            chosen = choice.best_name_
        X = _safe_indexing(task.rows.X, fold.test)
        true = task.rows.codes[fold.test]
        start = time.perf_counter()
        predicted, sets, p_values = decide(fitted, X, task.rows.classes)
        predict_seconds = time.perf_counter() - start
        measured.add("fit seconds", fit_seconds + choice_seconds, 1)
        measured.add("predict seconds", predict_seconds, len(true))
        measured.add("rows fitted on", n_train, len(fold.train))
        n_classes = len(task.rows.classes)
        tally = Tally.count(true, predicted, sets, n_classes)
        promises = getattr(fitted, "guarantees_", ())
        if task.rows.groups is not None:
            promises = [p for p in promises if p.unit == "group" or not _over_draws(p)]
        if is_candidate:  # it was chosen by the very rows that are drawn
            promises = [p for p in promises if not _over_draws(p)]
        own = counted(promises, tally, task.rows.classes)
        measured.add_answers(tally)
        measured.add_promises(own)
        if p_values is not None:  # rows whose own class is ruled out, at each level
            own_p = p_values[np.arange(len(true)), true]
            alarms = (own_p[:, None] <= np.array(LEVELS)).sum(axis=0)
            measured.add(ALARMS, alarms, len(true), at=LEVELS)
        _add_calibration(measured, fitted)
        if task.details:
            _add_shift(measured, fitted, task, index)
        if task.wish is None:
            result = FoldResult(gained=-(predicted != true).astype(np.intp))
        elif result is None:
            result = ask(estimator, task, fold, measured, fitted)
    messages = tuple(dict.fromkeys(str(warning.message) for warning in caught))
    result = result._replace(own=own, chosen=chosen, warnings=messages)
    return measured.table(fold.repeat, fold.number), result


def _over_draws(promise: Guarantee) -> bool:
    """Whether a promise is one over draws of the rows of its fit."""
    return promise.confidence is not None or promise.average_over is not None


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


def _add_shift(measured: Measured, fitted: Any, task: Task, index: int) -> None:
    """Wrong predictions of a sample of the tested rows, moved by each of SHIFTS."""
    fold = task.folds[index]
    if fold.repeat > 1 or is_as_given(fitted):  # words do not move
        return
    size = math.ceil(SHIFT_ROWS / task.settings.n_folds)
    drawn = plain_sample(len(fold.test), size, task.settings.random_state)
    chosen = fold.test[drawn]
    codes, X = task.rows.codes[chosen], _safe_indexing(task.rows.X, chosen)
    if task.moments is not None:
        moments, method = task.moments[index], fitted
    else:  # rows move where the method sees them
        assert isinstance(fitted, Pipeline)
        preparation, method = fitted[:-1], fitted[-1]
        seen = task.learnable(task.sampled(fold.train))
        moments = ClassMoments.from_arrays(
            preparation.transform(_safe_indexing(task.rows.X, seen)),
            task.rows.codes[seen],
            classes=np.arange(len(task.rows.classes)),
        )
        X = preparation.transform(X)
    moved = shifted_rows(np.asarray(X, dtype=np.float64), codes, moments)
    n_shifts, n_rows, n_features = moved.shape
    predicted = method.predict(moved.reshape(-1, n_features))
    wrong = predicted.reshape(n_shifts, n_rows) != task.rows.classes[codes]
    measured.add(MOVED, wrong.sum(axis=1), n_rows, at=SHIFTS)


def _add_calibration(measured: Measured, estimator: Any) -> None:
    """Error before and after risk-based calibration, and the chosen iterate."""
    curve = getattr(estimator, "error_curve_", None)
    if curve is not None:
        best = int(estimator.best_iteration_)
        figures = (float(curve[0]), float(curve[best]), best)
        for quantity, figure in zip(CALIBRATION, figures, strict=True):
            measured.add(quantity, figure, 1)


def _regions(estimator: Any, task: Task) -> RegionMap | None:
    """Regions of the method fitted in the plane; None where it cannot be."""
    if task.plane is None or not task.details:
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
        except Exception:  # a picture less is no failure of the method
            return None


def _parameters(estimator: Any) -> dict[str, str]:
    if is_as_given(estimator):
        estimator = estimator[-1]
    return {
        name: repr(value)
        for name, value in sorted(estimator.get_params().items())
        if not hasattr(value, "get_params") and name not in ("steps", "memory")
    }
