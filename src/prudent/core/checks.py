"""Promises held against rows: p-values, and verdicts that share one level."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaincc
from scipy.stats import betabinom

from prudent.core.guarantee import Guarantee, GuaranteeCheck, Verdict
from prudent.core.selection import holm

LEVEL = 0.05
Law = tuple[int, int]
# A promise, the rows that break it, and those that it is about.
Counted = tuple[Guarantee, float, float]


@dataclass(frozen=True, kw_only=True)
class PromiseCheck:
    """A promise held against the out-of-fold rows.

    Its bound is the mean of the folds' bounds, weighted by the rows tested; counts are
    means over the repeats. The interval is the item's own, at 95 %; the verdict shares
    the level 0.05 with all other promises of the table.
    """

    guarantee: Guarantee
    violations: float  # rows that broke it
    n: float  # rows looked at
    p_broken: float  # probability of so many violations or more at the bound
    p_kept: float  # probability of so many or fewer
    is_approximate: bool = False  # whether the law behind both is
    check: GuaranteeCheck

    @property
    def allowed(self) -> float:
        """Share of the rows that may break the promise."""
        return self.guarantee.allowed


def check_promises(
    folds: Iterable[Iterable[Counted]], n_repeats: int = 1
) -> tuple[PromiseCheck, ...]:
    """Hold the promises of a method's folds against its out-of-fold rows.

    Promises of the folds with the same quantity, scope, subgroup and side are one; its
    bound is the mean of theirs, weighted by the rows tested; their verdicts share the
    level 0.05. With repeats every row is tested several times: counts are divided by
    `n_repeats`, so that the interval knows how many rows there are.

    A promise on average says nothing of one fold, yet the folds together can
    refute it where the law of their rates is known: with m calibration rows and
    the rank k of the cut, the rate of a fold is drawn from Beta(k, m + 1 - k), its
    violations are beta-binomial, and those of all folds are the sum of independent
    ones, whose law is computed exactly. For full conformal prediction k and the
    training rows take their place, which is approximate.
    """
    grouped: dict[tuple[Any, ...], list[Counted]] = {}
    for promise_counted in chain.from_iterable(folds):
        key = (
            promise_counted[0].quantity,
            promise_counted[0].scope,
            promise_counted[0].subgroup,
            promise_counted[0].sense,
        )
        grouped.setdefault(key, []).append(promise_counted)
    checked = []
    for group in grouped.values():
        rows = np.array([n for _, _, n in group], dtype=np.float64)
        bounds = np.array([promise.bound for promise, _, _ in group])
        # The mean of equal bounds may leave [0, 1] by an ulp.
        bound = min(1.0, float(rows @ bounds / rows.sum()))
        pooled = replace(group[0][0], bound=bound, evidence={})
        violations = sum(count for _, count, _ in group) / n_repeats
        n = float(rows.sum()) / n_repeats
        laws = [(_rate_law(promise), int(count)) for promise, _, count in group]
        known = [(law, count) for law, count in laws if law is not None]
        # The folds of one repeat test each row once.
        once = known[: math.ceil(len(known) / n_repeats)]
        # A check counts answered rows, whose lack breaks the promise.
        given = n - violations if pooled.counts_frequent else violations
        is_mean = any(promise.average_over is not None for promise, _, _ in group)
        p_broken = p_kept = 1.0  # of an average whose law is not known
        if len(known) == len(laws):
            p_broken, p_kept = _pooled_tails(violations, once)
        elif not is_mean:
            p_broken, p_kept = _binomial_tails(violations, n, pooled.allowed)
        checked.append(
            PromiseCheck(
                guarantee=pooled,
                violations=violations,
                n=n,
                p_broken=p_broken,
                p_kept=p_kept,
                is_approximate=any(
                    law is not None and promise.rate_law is None
                    for (law, _), (promise, _, _) in zip(laws, group, strict=True)
                ),
                check=pooled.judge(given, n, level=LEVEL),
            )
        )
    (shared,) = share_level([checked])
    return shared


def share_level(
    tables: Sequence[Sequence[PromiseCheck]],
) -> list[tuple[PromiseCheck, ...]]:
    """The same promises with verdicts that hold at one level for all of them.

    "Broken" by Holm's procedure over all p-values at 0.05, and "kept" likewise: of a
    table of true promises none is called broken in 95 of 100 cases, whatever the
    dependence of its methods, which are tested on the same rows.
    """
    every = list(chain.from_iterable(tables))
    broken = holm([promise.p_broken for promise in every]) <= LEVEL
    kept = holm([promise.p_kept for promise in every]) <= LEVEL
    words: list[Verdict] = [
        "broken" if is_broken else "kept" if is_kept else "consistent"
        for is_broken, is_kept in zip(broken.tolist(), kept.tolist(), strict=True)
    ]
    judged = iter(
        replace(promise, check=replace(promise.check, verdict=word))
        for promise, word in zip(every, words, strict=True)
    )
    return [tuple(islice(judged, len(table))) for table in tables]


def _rate_law(promise: Guarantee) -> Law | None:
    """Rank and calibration rows of a promise on average; training rows for full."""
    if promise.average_over is None:
        return None
    if promise.rate_law is not None:
        return promise.rate_law
    if {"rank", "training rows"} <= set(promise.evidence):
        return int(promise.evidence["rank"]), int(promise.evidence["training rows"])
    return None


def _binomial_tails(violations: float, n: float, rate: float) -> tuple[float, float]:
    """P(V >= v) and P(V <= v) of n rows; counts may be means over repeats."""
    at_least = betainc(violations, n - violations + 1, rate) if violations > 0 else 1.0
    at_most = betaincc(violations + 1, n - violations, rate) if violations < n else 1.0
    return float(at_least), float(at_most)


def _pooled_tails(
    violations: float, folds: Sequence[tuple[Law, int]]
) -> tuple[float, float]:
    """P(V >= v) and P(V <= v) of a sum of independent beta-binomial counts."""
    from scipy.signal import fftconvolve

    law = np.ones(1)
    for (rank, n_calibration), n in folds:
        if n == 0:
            continue
        law = np.maximum(fftconvolve(law, _fold_law(rank, n_calibration, n)), 0.0)
    law /= law.sum()
    at_most = float(law[: math.floor(violations) + 1].sum())
    return float(law[math.ceil(violations) :].sum()), at_most


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
