"""What both watchers check and keep, and the verdict on a fleet of them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Integral
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from prudent._version import __version__
from prudent.core.binomial import check_fraction
from prudent.core.types import BoolArray, FloatArray
from prudent.core.validation import shown

FORMAT = 1


def as_losses(losses: ArrayLike) -> FloatArray:
    """Losses in [0, 1], one a row."""
    try:
        array = np.asarray(losses, dtype=np.float64).reshape(-1)
    except (TypeError, ValueError):
        raise ValueError(
            f"losses must be numbers in [0, 1], one per row, got {losses!r:.64}."
        ) from None
    outside = np.flatnonzero(~((array >= 0) & (array <= 1)))
    if len(outside):
        row = int(outside[0])
        raise ValueError(
            f"losses must lie in [0, 1], got {float(array[row]):g} at row {row}."
        )
    return array


def checked_batch(violations: Any, n: Any) -> tuple[float, int]:
    """Violations in [0, n] of n >= 0 rows."""
    if not isinstance(n, Integral) and not (isinstance(n, float) and n.is_integer()):
        raise ValueError(f"`n` must be an integer >= 0, got {shown(n)}.")
    if n < 0:
        raise ValueError(f"`n` must be an integer >= 0, got {int(n)}.")
    try:
        count = float(violations)
    except (TypeError, ValueError):
        count = math.nan
    if not 0 <= count <= int(n):
        raise ValueError(
            f"`violations` must lie in [0, {int(n)}], got {shown(violations)}."
        )
    return count, int(n)


def check_format(state: dict[str, Any]) -> None:
    """Refuse a state that a newer prudent wrote."""
    if not isinstance(state, dict) or "format" not in state:
        raise ValueError("the state is none that `to_dict` of a monitor gives.")
    if state["format"] > FORMAT:
        raise ValueError(
            f"the state has format {state['format']}, this is prudent {__version__} "
            f"with format {FORMAT}. Install a newer prudent."
        )


def check_counts(*arrays: Any) -> None:
    """Refuse sums and stakes below 0, which no run leaves."""
    if not all(np.all(np.asarray(array) >= 0) for array in arrays):
        raise ValueError("the state holds a negative sum, which no run leaves.")


def number(value: float) -> float | str:
    """Return a float as strict JSON has it: "inf" is text, which `float` reads."""
    return value if math.isfinite(value) else repr(value)


class Watcher:
    """What both watchers say of what they have seen."""

    def _counts(self) -> FloatArray:
        """Rows, a sum of the watcher's own, e-value, its peak, rows at the alarm."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """State in JSON types: `from_dict` goes on bit for bit."""
        raise NotImplementedError

    @property
    def n_(self) -> int:
        """Rows seen."""
        return int(self._counts()[0])

    @property
    def e_value(self) -> float:
        """Evidence now: while nothing is wrong its mean is at most 1."""
        return float(self._counts()[2])

    @property
    def peak_e_value(self) -> float:
        """Largest e-value so far."""
        return float(self._counts()[3])

    @property
    def alarm_at_(self) -> int | None:
        """Rows seen when the alarm was raised, None without one."""
        return int(self._counts()[4]) or None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        return self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]


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
