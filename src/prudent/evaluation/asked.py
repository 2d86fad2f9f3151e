"""The promise asked for, made by a wrapped method and tested on one fold."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from prudent.core.guarantee import Guarantee
from prudent.core.types import BoolArray, FloatArray, IntArray
from prudent.evaluation.estimators import FrequentClasses
from prudent.evaluation.measurements import Tally, decide, sets_at
from prudent.evaluation.table import in_front
from prudent.evaluation.wishes import (
    SPLIT_SHARE,
    Wish,
    fewest_held_out,
    takes_groups,
    wrap,
)
from prudent.exceptions import InfeasibleError

# Of a class of fewer rows, what is not held out may be less than can be learned from
# (happens in one of ten thousand draws at the limit).
MAY_BE_LACKING = 12
# Times the least held-out rows of a promise with confidence, for it to be useful.
ENOUGH = 2.0
# Limits of a curve stay below 1.
WIDEST = 0.99


@dataclass(frozen=True, eq=False)
class AskedFold:
    """What a wrapped method did on one fold.

    Attributes
    ----------
    tally : Tally
        Its answers; a method that cannot promise rules nothing out.
    decided : ndarray of bool, shape (n,)
        Tested rows with one answer.
    wrong : ndarray of bool, shape (n,)
        Tested rows whose one answer, or prediction, is wrong.
    guarantees : tuple of Guarantee
        Promises made.
    lacking : tuple of int
        Classes (positions) too rare to be promised anything; -1 for all rows
        together.
    frontier : ndarray of shape (n_levels,) or None
        Rows decided at each level of the wish; for promises about some classes, rows
        of the others that are answered rightly; None where nothing was fitted.
    """

    tally: Tally
    decided: BoolArray
    wrong: BoolArray
    guarantees: tuple[Guarantee, ...]
    lacking: tuple[int, ...]
    frontier: IntArray | None


def promising(
    estimator: Any,
    wish: Wish,
    preparation: Any,
    y: Any,
    *,
    grouped: bool,
    seed: int,
) -> Any:
    """A classifier to be fitted and used: the method makes the promise asked for.

    A promise of coverage that can be watched on new rows (given the fit, with
    confidence) is preferred where every class has the rows for it.
    """
    full = is_full_conformal(estimator) and wish.kind == "coverage"
    inner = clone(estimator)
    if is_full_conformal(inner) and grouped:
        inner.set_params(method="split")
    classes, counts = np.unique(y, return_counts=True)
    fewest = int(counts.min()) if wish.by_class else int(counts.sum())
    watched = {}
    if wish.kind == "coverage":
        confidence = 0.95
        least = math.ceil(math.log(1 - confidence) / math.log1p(-wish.allowed))
        if SPLIT_SHARE * fewest >= ENOUGH * least:
            watched = {"guarantee": "high_probability", "confidence": confidence}
    if full and preparation is None:
        if watched or grouped:
            inner.set_params(method="split", calibration_size=SPLIT_SHARE, **watched)
        return inner.set_params(
            level=round(wish.allowed, 12), condition="class" if wish.by_class else None
        )
    if int(counts.min()) < MAY_BE_LACKING:
        inner = FrequentClasses(inner)
    wrapped = wrap(
        in_front(preparation, inner),
        wish,
        n_classes=len(classes),
        n_methods=1,
        random_state=seed,
    )
    return wrapped.set_params(**watched)


def is_full_conformal(estimator: Any) -> bool:
    """Whether this is conformal prediction by a model of its own."""
    return hasattr(estimator, "p_values") and getattr(estimator, "estimator", 0) is None


def ask(
    estimator: Any,
    wish: Wish,
    *,
    train: tuple[FloatArray, NDArray[Any]],
    groups: NDArray[Any] | None,
    test: tuple[FloatArray, IntArray],
    classes: NDArray[Any],
    n_methods: int,
    random_state: int,
    full: bool,
    rare: bool,
) -> AskedFold:
    """Wrap, fit and test.

    Parameters
    ----------
    estimator : classifier
        Not fitted; with `full`, conformal prediction by its own model.
    wish : Wish
        The promise.
    train, test : tuple of arrays
        Rows with labels, and rows with positions of labels in `classes`.
    groups : ndarray or None
        Of the training rows.
    classes : ndarray of shape (K,)
        All labels.
    n_methods, random_state : int
        As `wrap`.
    full : bool
        Whether `estimator` makes the promise itself, without held-out rows.
    rare : bool
        Whether some class is so rare that a part of the rows may lack it.
    """
    X, true = test
    named = _named(wish, classes)
    if full:
        wrapped = estimator.set_params(
            level=round(wish.allowed, 12), condition="class" if wish.by_class else None
        )
    else:
        wrapped = wrap(
            estimator,
            wish,
            n_classes=len(classes),
            n_methods=n_methods,
            random_state=random_state,
        )
    together = {}
    if groups is not None and takes_groups(wrapped):
        together["groups"] = groups
    frontier = None
    try:
        if wish.kind == "missed":  # the limits come after the fit, all those of a curve
            limits = wrapped.max_class_error
            wrapped.set_params(max_class_error=None).fit(*train, **together)
            frontier = _limits_frontier(wrapped, wish, X, classes[true])
            wrapped = wrapped.with_class_error(limits)
        else:
            wrapped.fit(*train, **together)
    except InfeasibleError:
        lacking = _rarest(named, train[1], classes)
        return _nothing(true, len(classes), lacking, frontier)
    except ValueError:
        if not rare:
            raise
        # A class of one or two rows, which the wrapper or the method cannot do with.
        every = range(len(classes))
        return _nothing(true, len(classes), _rarest(every, train[1], classes))
    found = decide(wrapped, X, classes)
    sets = found.sets
    tally = Tally.count(true, found.predicted, sets, len(classes))
    wrong = found.predicted != true
    decided = np.ones(len(true), dtype=bool)
    if sets is not None:
        decided = sets.sum(axis=1) == 1
        wrong = decided & ~sets[np.arange(len(true)), true]
    return AskedFold(
        tally=tally,
        decided=decided,
        wrong=wrong,
        guarantees=tuple(wrapped.guarantees_),
        lacking=_lacking(wrapped, wish, classes, n_methods),
        frontier=_frontier(wrapped, wish, X, found) if frontier is None else frontier,
    )


def _named(wish: Wish, classes: NDArray[Any]) -> list[int]:
    """Positions of the classes that the wish names."""
    scopes = {g.scope for g in wish.guarantees}
    return [k for k, label in enumerate(classes.tolist()) if label in scopes]


def _rarest(among: Any, labels: NDArray[Any], classes: NDArray[Any]) -> tuple[int, ...]:
    codes = np.searchsorted(classes, labels)
    counts = np.bincount(codes, minlength=len(classes))
    return (min(among, key=lambda k: int(counts[k])),)


def _nothing(
    true: IntArray,
    n_classes: int,
    lacking: tuple[int, ...],
    frontier: IntArray | None = None,
) -> AskedFold:
    """A fold on which nothing can be promised: no class is ruled out."""
    everything = np.ones((len(true), n_classes), dtype=bool)
    none = np.zeros(len(true), dtype=bool)
    # The predictions are not looked at: there is no single answer.
    tally = Tally.count(true, true, everything, n_classes)
    return AskedFold(tally, none, none, (), lacking, frontier)


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


def _frontier(
    wrapped: Any,
    wish: Wish,
    X: FloatArray,
    found: Any,
) -> IntArray | None:
    """Rows decided at each level of the wish, by the same fit."""
    if wish.kind == "coverage":
        sets = [sets_at(1 - q, found.p_values, found.predicted) for q in wish.levels]
        decided = [int((members.sum(axis=1) == 1).sum()) for members in sets]
    else:
        from prudent.certification.scores import answer_scores

        scores = answer_scores(wrapped.estimator_, X, wrapped.scoring)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of levels that answer nothing
            decided = [
                int(np.count_nonzero(scores > wrapped.with_error_rate(q).threshold_))
                for q in wish.levels
            ]
    return np.array(decided, dtype=np.intp)


def _limits_frontier(
    fitted: Any, wish: Wish, X: FloatArray, truth: NDArray[Any]
) -> IntArray:
    """Rows of the other classes answered rightly, when all limits grow in step.

    Where every class has a limit, rows with one answer.
    """
    from prudent.certification.class_thresholds import first_reached, reached
    from prudent.certification.scores import class_scores

    scores = class_scores(fitted.estimator_, X)
    names = fitted.classes_
    named = np.isin(truth, [g.scope for g in wish.guarantees])
    found = []
    for level in wish.levels:
        grown = {
            g.scope: min(g.bound * level / wish.allowed, WIDEST)
            for g in wish.guarantees
        }
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of classes that are never ruled out
                cut = fitted.with_class_error(grown)
        except InfeasibleError:
            found.append(0)
            continue
        if fitted.abstain:
            alone = reached(scores, cut.thresholds_).sum(axis=1) == 1
            found.append(int(alone.sum()))
        else:
            first = np.array([names.tolist().index(c) for c in cut.priority_.tolist()])
            said = names[first_reached(scores, cut.thresholds_, first)]
            found.append(int(((said == truth) & ~named).sum()))
    return np.array(found, dtype=np.intp)
