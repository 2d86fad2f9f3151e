"""Exact tests: promises against unseen rows, methods against each other."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.signal import fftconvolve
from scipy.stats import betabinom, binomtest

from prudent.core.guarantee import Guarantee, Verdict
from prudent.evaluation.measurements import Tally
from prudent.evaluation.records import Kept, PromiseCheck

LEVEL = 0.05
ROUNDING = 1e-12  # of sums of shares and bounds
Law = tuple[int, int]
# A promise, the rows that break it, and those that it is about.
Counted = tuple[Guarantee, float, float]


def counted(
    promises: Iterable[Guarantee], tally: Tally, classes: NDArray[Any]
) -> list[Counted]:
    """Count promises on the rows of a tally, which are too many to be kept.

    A promise about none of them, or of misses, is left out.
    """
    counts = {
        "error rate": (tally.wrong, tally.rows),
        "class error rate": (tally.wrong, tally.rows),
        "coverage": (tally.missed, tally.rows),
        "false alarm rate": (tally.missed, tally.rows),
        "selective error rate": (tally.wrong_when_decided, tally.decided),
    }
    found = []
    for promise in promises:
        if promise.quantity in counts:
            violations, rows = counts[promise.quantity]
            scope = slice(None) if promise.scope is None else classes == promise.scope
            if rows[scope].any():
                n = float(rows[scope].sum())
                found.append((promise, float(violations[scope].sum()), n))
    return found


def check_promises(
    folds: Iterable[Iterable[Counted]], n_repeats: int = 1
) -> tuple[PromiseCheck, ...]:
    """Hold the promises of a method's folds against its out-of-fold rows.

    Promises of the folds with the same quantity, scope and side are one promise; its
    bound is the mean of theirs, weighted by the rows tested; each is checked at level
    0.05 over their number. With repeats every row is tested several times: counts are
    divided by `n_repeats`, so that the interval knows how many rows there are.

    A promise on average says nothing of one fold, yet the folds together can
    refute it where the law of their rates is known: with m calibration rows and
    the rank k of the cut, the rate of a fold is drawn from Beta(k, m + 1 - k), its
    violations are beta-binomial, and those of all folds are the sum of independent
    ones, whose law is computed exactly. For full conformal prediction k and the
    training rows take their place, which is approximate.
    """
    grouped: dict[tuple[Any, ...], list[Counted]] = {}
    for one in chain.from_iterable(folds):
        key = (one[0].quantity, one[0].scope, one[0].sense)
        grouped.setdefault(key, []).append(one)
    checked = []
    for group in grouped.values():
        rows = np.array([n for _, _, n in group], dtype=np.float64)
        bounds = np.array([promise.bound for promise, _, _ in group])
        # The mean of equal bounds may leave [0, 1] by an ulp.
        bound = min(1.0, float(rows @ bounds / rows.sum()))
        pooled = replace(group[0][0], bound=bound, evidence={})
        violations = sum(count for _, count, _ in group) / n_repeats
        n = float(rows.sum()) / n_repeats
        level = LEVEL / len(grouped)
        check = pooled.judge(violations, n, level=level)
        laws = [(_rate_law(promise), int(count)) for promise, _, count in group]
        known = [(law, count) for law, count in laws if law is not None]
        if len(known) == len(laws):
            # The folds of one repeat test each row once.
            once = known[: math.ceil(len(known) / n_repeats)]
            check = replace(check, verdict=_pooled_verdict(violations, once, level))
        checked.append(
            PromiseCheck(guarantee=pooled, violations=violations, n=n, check=check)
        )
    return tuple(checked)


def verdict(
    promises: Sequence[PromiseCheck],
    class_shares: NDArray[np.float64],
    *,
    decides: bool = True,
) -> Kept | None:
    """One word for all promises of a method, None without any.

    `class_shares` are of the rows; `decides` says whether any row gets one answer.
    """
    if not promises:
        return None
    verdicts = {promise.check.verdict for promise in promises}
    if "broken" in verdicts:
        return "broken"
    if not decides or is_vacuous([p.guarantee for p in promises], class_shares):
        return "vacuous"
    return "kept" if verdicts == {"kept"} else "consistent"


def is_vacuous(
    promises: Sequence[Guarantee], class_shares: NDArray[np.float64]
) -> bool:
    """Whether always answering the most frequent class could promise as much.

    It errs in one minus the share of that class, and in all rows of every other
    class: on average over the K classes in 1 - 1/K of the rows. A promise about
    every class is compared with that mean; one about some classes only, or about
    alarms, says nothing where its bound is 1.
    """
    overall: list[float] = []
    by_class: list[float] = []
    others: list[float] = []
    for promise in promises:
        allowed = promise.bound if promise.sense == "<=" else 1 - promise.bound
        if promise.quantity == "false alarm rate":
            others.append(allowed)
        else:
            (overall if promise.scope is None else by_class).append(allowed)
    n_classes = len(class_shares)
    tests = []
    if overall:
        tests.append(min(overall) >= 1 - class_shares.max() - ROUNDING)
    if len(by_class) == n_classes:
        tests.append(float(np.mean(by_class)) >= 1 - 1 / n_classes - ROUNDING)
    elif by_class:
        tests.append(min(by_class) >= 1)
    if others:
        tests.append(min(others) >= 1)
    return all(tests)


def _rate_law(promise: Guarantee) -> Law | None:
    """Rank and calibration rows of a promise on average; training rows for full."""
    if promise.average_over is None:
        return None
    if promise.rate_law is not None:
        return promise.rate_law
    if {"rank", "training rows"} <= set(promise.evidence):
        return int(promise.evidence["rank"]), int(promise.evidence["training rows"])
    return None


def _pooled_verdict(
    violations: float, folds: Sequence[tuple[Law, int]], level: float
) -> Verdict:
    """Verdict by the law of the sum of independent beta-binomial counts."""
    law = np.ones(1)
    for (rank, n_calibration), n in folds:
        if n == 0:
            continue
        law = np.maximum(fftconvolve(law, _fold_law(rank, n_calibration, n)), 0.0)
    law /= law.sum()
    at_most = float(law[: math.floor(violations) + 1].sum())
    at_least = float(law[math.ceil(violations) :].sum())
    if at_least <= level / 2:
        return "broken"
    return "kept" if at_most <= level / 2 else "consistent"


def _fold_law(rank: int, n_calibration: int, n: int) -> NDArray[np.float64]:
    """Probabilities of 0 to n violations in n rows of one fold."""
    if rank < 1 or rank > n_calibration:  # no row, or every row, is beyond the cut
        certain = np.zeros(n + 1)
        certain[0 if rank < 1 else n] = 1.0
        return certain
    law: NDArray[np.float64] = betabinom.pmf(
        np.arange(n + 1), n, rank, n_calibration + 1 - rank
    )
    return law


def mcnemar_p_value(first: NDArray[np.bool_], second: NDArray[np.bool_]) -> float:
    """Two-sided p-value of the exact McNemar test; 1 where the two never differ.

    Rows on which exactly one of two methods errs tell them apart. Where both err
    equally often, each of these rows is a fair coin, so the number of those of the
    first method is binomial. McNemar (1947), Psychometrika 12.

    Examples
    --------
    >>> import numpy as np
    >>> first, second = np.zeros(100, bool), np.zeros(100, bool)
    >>> first[:9], second[8:10] = True, True
    >>> round(mcnemar_p_value(first, second), 4)
    0.0391
    """
    only_first = int(np.count_nonzero(first & ~second))
    only_second = int(np.count_nonzero(second & ~first))
    if only_first + only_second == 0:
        return 1.0
    return float(binomtest(only_first, only_first + only_second).pvalue)
