"""Promises that no method can make on a table, known before anything is fitted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from prudent.evaluation.asked import holds_out, is_hopeless, lacking, promising
from prudent.evaluation.folds import Task
from prudent.evaluation.judge import needs_of
from prudent.evaluation.methods import METHODS, Method
from prudent.evaluation.words import needed
from prudent.exceptions import InfeasibleError
from prudent.rules.wish import parse_promise


def refuse_hopeless(task: Task, methods: Sequence[Method]) -> None:
    """Raise InfeasibleError where every method lacks rows for its promise on each fold.

    It says how many rows there would have to be, and the nearest promise that these
    rows allow.
    """
    if task.wish is None or not _is_out_of_reach(task, holding=True):
        return
    in_full = not _is_out_of_reach(task, holding=False)  # with no rows held out
    if in_full and not all(_holds_out(method, task) for method in methods):
        return
    lacks = {k for fold in task.folds for k in lacking(task, fold, holds_out=True)}
    instead = []
    near = _nearest(task)
    if near is not None:
        instead.append(f"ask for {near!r}")
    first = (*task.settings.methods, *task.settings.baselines)[:1]
    alone = replace(task.settings, methods=first, baselines=())
    if task.n_methods > 1 and not _is_out_of_reach(
        replace(task, settings=alone), holding=True
    ):
        instead.append("compare fewer methods, which share the confidence")
    sparing = [name for name, one in METHODS.items() if not _holds_out(one, task)]
    if in_full and sparing:
        instead.append(f"compare {sparing[0]}, which holds no rows out")
    needs = needs_of(lacks, task, holds_out=True)
    raise InfeasibleError(
        f"no method can promise {task.wish.text!r} on this table: {needed(needs)}. "
        f"Nothing was fitted; {', or '.join([*instead, 'give more rows'])}."
    )


def _is_out_of_reach(task: Task, *, holding: bool) -> bool:
    """Whether the rows of no fold suffice for anything of use."""
    assert task.wish is not None
    n_classes = len(task.rows.classes)
    return all(
        is_hopeless(lacking(task, fold, holds_out=holding), task.wish, n_classes)
        for fold in task.folds
    )


def _holds_out(method: Method, task: Task) -> bool:
    """Whether the promise of a method rests on rows held out."""
    assert task.wish is not None
    try:
        estimator = method.estimator(task.settings.random_state)
    except Exception:  # it is said where the method is fitted
        return True
    wrapped = promising(
        *(estimator, task.wish, task.preparation, np.array(task.rows.counts)),
        grouped=task.rows.groups is not None,
        seed=task.settings.random_state,
        n_methods=task.n_methods,
    )
    return holds_out(wrapped)


def _nearest(task: Task) -> str | None:
    """The least weaker promise for which the rows of every fold suffice."""
    wish, classes = task.wish, task.rows.classes.tolist()
    assert wish is not None
    asked = 1 - wish.allowed if wish.kind == "coverage" else wish.allowed
    weaker = [q for q in wish.levels if (q < asked) == (wish.kind == "coverage")]
    for level in sorted(weaker, key=lambda q: abs(q - asked)):
        text = wish.at(level)
        other = parse_promise(text, classes, confidence=wish.confidence)
        if level != round(asked, 12) and all(
            not lacking(replace(task, wish=other), fold, holds_out=True)
            for fold in task.folds
        ):
            return text
    return None
