"""Promises of the folds, averaged and held against the rows they were not fitted on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.comparison.result import Kept, PromiseCheck
from prudent.comparison.tally import Tally
from prudent.core.guarantee import Guarantee

__all__ = ["check_promises", "verdict"]

LEVEL = 0.05


def check_promises(
    promises: Sequence[Sequence[Guarantee]],
    tallies: Sequence[Tally],
    classes: NDArray[Any],
    n_repeats: int = 1,
) -> tuple[PromiseCheck, ...]:
    """Hold the promises of a method against its out-of-fold rows.

    Promises of the folds with the same quantity, scope and side are one promise;
    its bound is the mean of theirs, weighted by the rows tested. With repeats,
    every row is tested several times: counts are divided by `n_repeats`, so that
    the interval knows how many rows there are.

    Parameters
    ----------
    promises : sequence of sequence of Guarantee
        `guarantees_` of each fold; miss rates cannot be measured here.
    tallies : sequence of Tally
        Counts of each fold.
    classes : ndarray of shape (K,)
        Labels in the order of the tallies.
    n_repeats : int, default=1
        How often each row is tested.

    Returns
    -------
    tuple of PromiseCheck
        Each checked at level 0.05 over their number.
    """
    grouped: dict[tuple[Any, ...], list[tuple[Guarantee, float, float]]] = {}
    for given, tally in zip(promises, tallies, strict=True):
        for promise in given:
            counts = _violations(promise, tally, classes)
            if counts is not None and counts[1] > 0:
                key = (promise.quantity, promise.scope, promise.sense)
                grouped.setdefault(key, []).append((promise, *counts))
    checked = []
    for group in grouped.values():
        rows = np.array([n for _, _, n in group], dtype=np.float64)
        bounds = np.array([promise.bound for promise, _, _ in group])
        # The mean of equal bounds may leave [0, 1] by an ulp.
        bound = min(1.0, float(rows @ bounds / rows.sum()))
        pooled = replace(group[0][0], bound=bound, evidence={})
        violations = sum(count for _, count, _ in group) / n_repeats
        n = float(rows.sum()) / n_repeats
        checked.append(
            PromiseCheck(
                guarantee=pooled,
                violations=violations,
                n=n,
                check=pooled.check(violations, n, level=LEVEL / len(grouped)),
            )
        )
    return tuple(checked)


def verdict(promises: Sequence[PromiseCheck]) -> Kept | None:
    """Whether all promises were kept ("yes"), one broken ("no"), or neither."""
    if not promises:
        return None
    verdicts = {promise.check.verdict for promise in promises}
    if "broken" in verdicts:
        return "no"
    return "yes" if verdicts == {"kept"} else "unclear"


def _violations(
    promise: Guarantee, tally: Tally, classes: NDArray[Any]
) -> tuple[float, float] | None:
    """Rows that break a promise and rows looked at; None if not measurable."""
    counts = {
        "error rate": tally.wrong,
        "class error rate": tally.wrong,
        "coverage": tally.missed,
        "false alarm rate": tally.missed,
    }.get(promise.quantity)
    if counts is None:
        return None
    scope = slice(None) if promise.scope is None else classes == promise.scope
    return float(counts[scope].sum()), float(tally.rows[scope].sum())
