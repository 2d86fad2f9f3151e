"""The promise asked for, made by a wrapped method and tested on one fold."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from prudent.core.guarantee import Guarantee
from prudent.core.rows import hold_out
from prudent.core.types import BoolArray, FloatArray, IntArray
from prudent.evaluation.estimators import FrequentClasses
from prudent.evaluation.folds import Fold, Task
from prudent.evaluation.measurements import (
    Decisions,
    Tally,
    decide,
    sets_at,
)
from prudent.evaluation.table import in_front
from prudent.evaluation.wishes import (
    SPLIT_SHARE,
    coverage_settings,
    fewest_held_out,
    held_out_share,
    promised,
    wrap,
)
from prudent.exceptions import InfeasibleError, PrudentWarning
from prudent.rules.wish import Wish

# Of a class of fewer rows, what is not held out may be less than can be learned from
# (happens in one of ten thousand draws at the limit).
MAY_BE_LACKING = 12
# Conformal prediction by a model of its own, on rows held out as the wrappers do.
SPLIT = {"method": "split", "calibration_size": SPLIT_SHARE}
# Squared training rows times classes: full conformal prediction of more would take
# longer than all other methods together.
MOST_PAIRS = 50_000_000


@dataclass(frozen=True, eq=False)
class AskedFold:
    """What a wrapped method did on the n tested rows of one fold."""

    tally: Tally  # a method that cannot promise rules nothing out
    decided: BoolArray  # (n,): rows with one answer
    wrong: BoolArray  # (n,): rows whose one answer, or prediction, is wrong
    guarantees: tuple[Guarantee, ...]
    lacking: tuple[int, ...]  # classes too rare to be promised anything; -1: all rows
    holds_out: bool  # rows of the training part, for the promise to rest on
    # Rows decided at each level of the wish; for promises about some classes, rows of
    # the others that are answered rightly; None where nothing was fitted.
    frontier: IntArray | None


def promising(
    estimator: Any,
    wish: Wish,
    preparation: Any,
    counts: IntArray,
    *,
    grouped: bool,
    seed: int,
    n_methods: int = 1,
) -> Any:
    """A classifier, not fitted: the method makes the promise asked for.

    `counts` are the training rows of each class.
    """
    inner = affordable(clone(estimator), counts, grouped=grouped)
    by_itself = wish.kind == "coverage" and preparation is None
    if is_full_conformal(inner) and by_itself:
        certain = coverage_settings(wish, n_methods)
        if certain:
            inner.set_params(**SPLIT, **certain)
        condition = "class" if wish.by_class else None
        return inner.set_params(level=round(wish.allowed, 12), condition=condition)
    if counts.min() < MAY_BE_LACKING:
        inner = FrequentClasses(inner)
    return wrap(
        in_front(preparation, inner),
        wish,
        n_classes=len(counts),
        n_methods=n_methods,
        random_state=seed,
    )


def affordable(estimator: Any, counts: IntArray, *, grouped: bool) -> Any:
    """The estimator, by held-out rows where full conformal prediction does not fit.

    Full prediction ranks each new row under each label among all training rows, of
    which `counts` says how many each class has; and it cannot keep groups whole.
    """
    if not is_full_conformal(estimator):
        return estimator
    pairs = int(counts.sum()) ** 2 * len(counts)
    if grouped or (estimator.method == "auto" and pairs > MOST_PAIRS):
        return estimator.set_params(**SPLIT)
    if estimator.method == "auto":
        return estimator.set_params(method="full")
    return estimator


def is_full_conformal(estimator: Any) -> bool:
    """Whether this is conformal prediction by a model of its own."""
    return hasattr(estimator, "p_values") and getattr(estimator, "estimator", 0) is None


def holds_out(wrapped: Any) -> bool:
    """Whether a promising classifier keeps rows back that nothing is learned from."""
    return not (is_full_conformal(wrapped) and wrapped.method == "full")


def lacking(task: Task, fold: Fold, *, holds_out: bool) -> tuple[int, ...]:
    """Classes of which a promise lacks rows; -1: rows of any class.

    Known before any fit: which rows are held out depends on their number and the seed.
    """
    wish, rows = task.wish, task.sampled(fold.train)
    assert wish is not None
    if holds_out:
        random = np.random.RandomState(task.settings.random_state)
        groups = None if task.rows.groups is None else task.rows.groups[rows]
        rows = rows[hold_out(len(rows), held_out_share(wish), random, groups).held_out]
    if not wish.by_class:
        return (-1,) if len(rows) < fewest_held_out(wish, task.n_methods) else ()
    labels = task.rows.classes.tolist()
    counts = np.bincount(task.rows.codes[rows], minlength=len(labels))
    named = [labels.index(g.scope) for g in wish.guarantees if g.scope in labels]
    fewest = {k: fewest_held_out(wish, task.n_methods, labels[k]) for k in named}
    return tuple(k for k in named if counts[k] < fewest[k])


def is_hopeless(lacks: tuple[int, ...], wish: Wish, n_classes: int) -> bool:
    """Whether so many classes lack rows that no method can promise anything of use.

    One class is enough where every row gets one answer; where rows get sets, classes
    that lack rows are in all of them, and those say something while others do not.
    """
    in_sets = wish.kind == "coverage" or len(wish.guarantees) == n_classes
    if wish.by_class and in_sets:
        return len(lacks) == len(wish.guarantees)
    return len(lacks) > 0


def ask(estimator: Any, task: Task, fold: Fold) -> AskedFold:
    """Fit a method so that it makes the promise asked for, and test that."""
    wish, classes = task.wish, task.rows.classes
    assert wish is not None
    rows = task.sampled(fold.train)
    counts = np.bincount(task.rows.codes[rows], minlength=len(classes))
    X, true = task.rows.X[fold.test], task.rows.codes[fold.test]
    wrapped = promising(
        *(estimator, wish, task.preparation, counts),
        grouped=task.rows.groups is not None,
        seed=task.settings.random_state,
        n_methods=task.n_methods,
    )
    lacks = lacking(task, fold, holds_out=holds_out(wrapped))
    nothing = partial(_nothing, true, len(classes), lacks, holds_out(wrapped))
    if wish.kind == "coverage" and is_hopeless(lacks, wish, len(classes)):
        return nothing()
    frontier = None
    try:
        if wish.kind == "missed":  # the limits come after the fit, all those of a curve
            limits = wrapped.max_class_error
            task.fitted(wrapped.set_params(max_class_error=None), rows)
            frontier = _limits_frontier(wrapped, wish, X, classes[true])
            wrapped = wrapped.with_class_error(limits)
        else:
            task.fitted(wrapped, rows)
    except InfeasibleError:
        return nothing(frontier)
    except ValueError as error:
        if counts.min() >= MAY_BE_LACKING or not _is_of_too_few_rows(error):
            raise
        # A class of one or two rows, which the wrapper or the method cannot do with.
        warnings.warn(str(error), PrudentWarning, stacklevel=2)
        return nothing()
    found = decide(wrapped, X, classes)
    sets = found.members(len(classes))
    decided = sets.sum(axis=1) == 1
    return AskedFold(
        tally=Tally.count(true, found.predicted, sets, len(classes)),
        decided=decided,
        wrong=decided & ~sets[np.arange(len(true)), true],
        guarantees=promised(wrapped, wish, task.n_methods),
        lacking=lacks,
        holds_out=holds_out(wrapped),
        frontier=_frontier(wrapped, task, X, found) if frontier is None else frontier,
    )


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
    true: IntArray,
    n_classes: int,
    lacks: tuple[int, ...],
    holds_out: bool,
    frontier: IntArray | None = None,
) -> AskedFold:
    """A fold on which nothing can be promised: every class is in every set."""
    everything = np.ones((len(true), n_classes), dtype=bool)
    none = np.zeros(len(true), dtype=bool)
    # The predictions are not looked at: there is no single answer.
    tally = Tally.count(true, true, everything, n_classes)
    return AskedFold(tally, none, none, (), lacks, holds_out, frontier)


def _frontier(wrapped: Any, task: Task, X: FloatArray, found: Decisions) -> IntArray:
    """Rows decided at each level of the wish, by the same fit."""
    wish = task.wish
    assert wish is not None
    if wish.kind == "coverage":
        assert found.p_values is not None
        cuts = [_cut(wrapped, task, 1 - q) for q in wish.levels]
        sets = [sets_at(cut, found.p_values, found.predicted) for cut in cuts]
        decided = [int((members.sum(axis=1) == 1).sum()) for members in sets]
    else:
        from prudent.certification.held_out import answer_scores

        scores = answer_scores(wrapped.estimator_, X, wrapped.scoring)
        rules = (wrapped.rule_.at(q) for q in wish.levels)
        decided = [int(rule.answers(scores).sum()) for rule in rules]
    return np.array(decided, dtype=np.intp)


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


def _limits_frontier(
    fitted: Any, wish: Wish, X: FloatArray, truth: NDArray[Any]
) -> IntArray:
    """Rows of the other classes answered rightly, when all limits grow in step.

    Where every class has a limit, rows with one answer.
    """
    from prudent.certification.held_out import class_scores

    scores = class_scores(fitted.estimator_, X)
    named = np.isin(truth, [g.scope for g in wish.guarantees])
    found = []
    for level in wish.levels:
        try:
            rule = fitted.rule_.at(wish.limits(level))
        except InfeasibleError:
            found.append(0)
            continue
        if rule.kind == "sets":
            found.append(int((rule.sets(scores).sum(axis=1) == 1).sum()))
        else:
            right = rule.labels(scores) == truth
            found.append(int((right & ~named).sum()))
    return np.array(found, dtype=np.intp)
