"""The promise asked for, made by a wrapped method and tested on one fold."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from prudent.core.binomial import high_probability_rank
from prudent.core.guarantee import Guarantee
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
    each_confidence,
    fewest_held_out,
    promised,
    wrap,
)
from prudent.exceptions import InfeasibleError
from prudent.rules.wish import Wish

# Of a class of fewer rows, what is not held out may be less than can be learned from
# (happens in one of ten thousand draws at the limit).
MAY_BE_LACKING = 12


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
    inner = clone(estimator)
    if is_full_conformal(inner):
        if grouped:
            inner.set_params(method="split")
        if wish.kind == "coverage" and preparation is None:  # promises by itself
            certain = coverage_settings(wish, n_methods)
            if certain or grouped:
                split = {"method": "split", "calibration_size": SPLIT_SHARE}
                inner.set_params(**split, **certain)
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


def is_full_conformal(estimator: Any) -> bool:
    """Whether this is conformal prediction by a model of its own."""
    return hasattr(estimator, "p_values") and getattr(estimator, "estimator", 0) is None


def holds_out(wrapped: Any) -> bool:
    """Whether a promising classifier keeps rows back that nothing is learned from."""
    return not (is_full_conformal(wrapped) and wrapped.method != "split")


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
        scopes = {g.scope for g in wish.guarantees}
        named = [k for k, label in enumerate(classes.tolist()) if label in scopes]
        return _nothing(true, counts, named, frontier)
    except ValueError:
        if counts.min() >= MAY_BE_LACKING:
            raise
        # A class of one or two rows, which the wrapper or the method cannot do with.
        return _nothing(true, counts, range(len(classes)))
    found = decide(wrapped, X, classes)
    sets = found.members(len(classes))
    decided = sets.sum(axis=1) == 1
    return AskedFold(
        tally=Tally.count(true, found.predicted, sets, len(classes)),
        decided=decided,
        wrong=decided & ~sets[np.arange(len(true)), true],
        guarantees=promised(wrapped, wish, task.n_methods),
        lacking=_lacking(wrapped, wish, classes, task.n_methods),
        holds_out=holds_out(wrapped),
        frontier=_frontier(wrapped, task, X, found) if frontier is None else frontier,
    )


def _nothing(
    true: IntArray,
    counts: IntArray,
    among: Iterable[int],
    frontier: IntArray | None = None,
) -> AskedFold:
    """A fold on which nothing can be promised, for the rarest class among some."""
    everything = np.ones((len(true), len(counts)), dtype=bool)
    none = np.zeros(len(true), dtype=bool)
    # The predictions are not looked at: there is no single answer.
    tally = Tally.count(true, true, everything, len(counts))
    rarest = min(among, key=lambda k: int(counts[k]))
    return AskedFold(tally, none, none, (), (rarest,), True, frontier)


def _lacking(
    wrapped: Any, wish: Wish, classes: NDArray[Any], n_methods: int
) -> tuple[int, ...]:
    """Classes whose rows do not suffice for a promise."""
    if wish.kind == "error":
        too_few = wrapped.n_calibration_ < fewest_held_out(wish, n_methods)
        return (-1,) if too_few else ()
    if wish.kind == "missed":
        return ()
    if not wish.by_class:
        ranked = int(np.sum(wrapped.class_count_))
        return (-1,) if ranked < fewest_held_out(wish, n_methods) else ()
    counts = np.zeros(len(classes), dtype=np.intp)
    counts[np.searchsorted(classes, wrapped.classes_)] = wrapped.class_count_
    few = counts < fewest_held_out(wish, n_methods)
    return tuple(np.flatnonzero(few).tolist())


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
        from prudent.certification.scores import answer_scores

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
    each = each_confidence(wish, task.n_methods)
    ranked = np.zeros(len(classes), dtype=np.intp)
    ranked[np.searchsorted(classes, wrapped.classes_)] = wrapped.class_count_
    if not wish.by_class:
        ranked[:] = ranked.sum()
    ranks = [high_probability_rank(n, level, each) if n else 0 for n in ranked.tolist()]
    return np.array(ranks) / (ranked + 1)


def _limits_frontier(
    fitted: Any, wish: Wish, X: FloatArray, truth: NDArray[Any]
) -> IntArray:
    """Rows of the other classes answered rightly, when all limits grow in step.

    Where every class has a limit, rows with one answer.
    """
    from prudent.certification.scores import class_scores

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
