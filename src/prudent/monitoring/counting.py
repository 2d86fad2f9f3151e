"""What may be counted: losses of rows, and violations of a batch."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from prudent.core.types import FloatArray


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
