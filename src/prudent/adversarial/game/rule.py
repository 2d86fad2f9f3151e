"""What every rule of a game has: its worth, and the proof that none does better."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from prudent.core.types import FloatArray

Strategy = Literal["soft", "hard"]


@dataclass(frozen=True, slots=True)
class Rule:
    """An optimal rule of its strategy, with its certificate."""

    rejection: FloatArray  # (n_events,), probability of rejecting; 1 for null events
    value: float  # rejection rate of the best intruder
    upper_bound: float  # the most any rule could reach
    adversary: FloatArray  # (n_events,), a best intruder
    mixture: FloatArray  # (n_events,), of intruders, behind `upper_bound`
    is_trivial: bool  # nothing randomised beats rejecting every event alike


def best_powers(p: FloatArray, q: FloatArray, rates: FloatArray) -> FloatArray:
    """Power against q of the best randomised tests of p at these levels.

    Events of p = 0 cost nothing.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        order = np.argsort(-np.where(p > 0, q / p, np.inf), kind="stable")
    free = np.count_nonzero(p == 0)
    spent = np.append(0.0, np.cumsum(p[order[free:]]))
    gained = np.cumsum(np.append(q[order[:free]].sum(), q[order[free:]]))
    return np.minimum(1.0, np.interp(rates, spent, gained))
