"""`broken_promises`: a fleet of watchers under one level."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import numpy as np

from prudent.core.binomial import check_fraction
from prudent.core.types import BoolArray, FloatArray
from prudent.monitoring.state import Watcher


def broken_promises(
    monitors: Iterable[Watcher],
    *,
    level: float = 0.05,
    method: Literal["bonferroni", "e-bh"] = "bonferroni",
) -> BoolArray:
    """Say which of many watched promises are broken, under one level for all.

    Parameters
    ----------
    monitors : iterable of PromiseMonitor or DriftMonitor
        P of them; streams may depend on each other in any way.
    level : float, default=0.05
        In (0, 1).
    method : {"bonferroni", "e-bh"}, default="bonferroni"
        "bonferroni": peaks of P / level; any wrong accusation, ever, has probability
        at most `level`. "e-bh": the r largest current e-values of P / (r level); the
        expected share of wrong accusations is at most `level` at a time fixed in
        advance.

    Returns
    -------
    ndarray of bool, shape (P,)

    Raises
    ------
    ValueError
        If `level` or `method` is out of range.

    References
    ----------
    Wang and Ramdas (2022), False discovery rate control with e-values, JRSS B 84.

    Examples
    --------
    >>> from prudent import Guarantee, PromiseMonitor
    >>> from prudent.monitoring import broken_promises
    >>> promise = Guarantee(quantity="error rate", bound=0.05, sense="<=")
    >>> fleet = [PromiseMonitor(promise).update(v, n=300) for v in (9, 60, 14)]
    >>> broken_promises(fleet)
    array([False,  True, False])
    """
    check_fraction("level", level)
    watchers = list(monitors)
    if method == "bonferroni":
        peaks = np.array([watcher.peak_e_value for watcher in watchers], dtype=float)
        return np.asarray(peaks >= len(peaks) / level)
    if method == "e-bh":
        # Peaks are no e-values.
        return _e_bh(np.array([watcher.e_value for watcher in watchers]), level)
    raise ValueError(f"`method` must be 'bonferroni' or 'e-bh', got {method!r}.")


def _e_bh(e_values: FloatArray, level: float) -> BoolArray:
    """The r largest e-values of at least P / (r level), for the largest such r."""
    order = np.argsort(-e_values, kind="stable")
    ranks = np.arange(1, len(e_values) + 1)
    passed = np.flatnonzero(e_values[order] * ranks * level >= len(e_values))
    named = np.zeros(len(e_values), dtype=bool)
    if len(passed):
        named[order[: passed[-1] + 1]] = True
    return named
