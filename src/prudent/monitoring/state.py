"""What watchers check on its way in, and their states in strict JSON types."""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from prudent._version import __version__
from prudent.core.types import FloatArray

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
        raise ValueError(f"`n` must be an integer >= 0, got {n}.")
    if n < 0:
        raise ValueError(f"`n` must be an integer >= 0, got {int(n)}.")
    if not 0 <= violations <= n:
        raise ValueError(f"`violations` must lie in [0, {int(n)}], got {violations}.")
    return float(violations), int(n)


def check_format(state: dict[str, Any]) -> None:
    """Refuse a state that a newer prudent wrote."""
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
