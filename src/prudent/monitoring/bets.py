"""What every watch of a promise keeps: the null, the counts and a trace of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from prudent.core.guarantee import Guarantee
from prudent.core.types import FloatArray
from prudent.monitoring.kernels import N_STAKES, add_to_trace
from prudent.monitoring.state import check_counts, number

MOST_TRACED = 256
#: Counts are floats in a state; beyond this they are not exact.
MOST_ROWS = 2.0**53


@dataclass(frozen=True)
class Null:
    """What is to be refuted of x, the event that is promised to be rare.

    A rate of at most `bound`; for a promise on average (`rank` k of m
    `calibration_rows`; 0, 0 elsewhere) also the urn whose next row violates with
    probability (k + K) / (m + 1 + n).
    """

    bound: float
    rank: int = 0
    calibration_rows: int = 0

    @classmethod
    def of(cls, guarantee: Guarantee) -> Self:
        """Null of a promise; refuses what cannot be watched."""
        quantity, average_over = guarantee.quantity, guarantee.average_over
        if quantity == "expected cost":
            raise ValueError(
                "PromiseMonitor: an expected cost is not a rate. Use certify(..., "
                "costs=...) on the new rows."
            )
        if quantity == "false discovery rate" and guarantee.confidence is None:
            raise ValueError(
                "PromiseMonitor: a false discovery rate on average over calibration "
                "sets cannot be watched. Select with `confidence`."
            )
        bound = guarantee.bound if guarantee.sense == "<=" else 1 - guarantee.bound
        if average_over in (None, "the rule's coins"):
            return cls(bound)
        law = guarantee.rate_law
        if law is None or (law[0] < 1 and bound > 0):
            raise ValueError(
                "PromiseMonitor: the promise holds on average over calibration sets by "
                "an unknown law. Fit with a `confidence`, or with strategy='hard'."
            )
        return cls(max(bound, law[0] / (law[1] + 1)), *law)


@dataclass
class Bets:
    """The running evidence against a null; changed in place.

    `stakes` (8,); `counts` (7,): rows, violations, e-value (of the last point of the
    trace, where it is that of the counts), its peak, rows at the first alarm (0:
    none), spacing of the trace in rows, its points; `trace` (256, 3): rows,
    violations, e-value at multiples of the spacing; a full trace loses every second
    point and the spacing doubles.
    """

    null: Null
    threshold: float
    stakes: FloatArray = field(default_factory=lambda: np.zeros(N_STAKES))
    counts: FloatArray = field(
        default_factory=lambda: np.array([0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0])
    )
    trace: FloatArray = field(default_factory=lambda: np.zeros((MOST_TRACED, 3)))

    @property
    def e_value(self) -> float:
        """Evidence now."""
        raise NotImplementedError

    def rows(self, losses: FloatArray) -> None:
        """Look at each row, in order."""
        raise NotImplementedError

    def _look(self, violations: float, n: int) -> None:
        """Look once, at the end of a batch."""
        raise NotImplementedError

    def batch(self, violations: float, n: int) -> None:
        """Count `violations` in `n` rows whose order is not known."""
        if n == 1:
            self.rows(np.array([violations]))
        elif n > 1:
            points = self.counts[0] // self.counts[5]
            self._look(violations, n)
            if self.counts[0] // self.counts[5] > points:
                self._record()

    def log_e_value(self, n: float, violations: float, e_value: float) -> float:
        """Logarithm at a point of the trace."""
        return math.log(e_value)

    def to_dict(self) -> dict[str, Any]:
        """Counts, stakes and trace in JSON types."""
        rows, violations, _, peak, alarm, spacing, _ = self.counts.tolist()
        return {
            "n": int(rows),
            "violations": violations,
            "e_value": number(self.e_value),
            "peak_e_value": number(peak),
            "alarm_at": int(alarm) or None,
            "stakes": self.stakes.tolist(),
            "spacing": int(spacing),
            "trace": [[int(n), k, number(e)] for n, k, e in self.points()],
        }

    def go_on_from(self, state: dict[str, Any]) -> None:
        """Write a state into arrays of the right shapes, as compiled loops need."""
        self.stakes[:] = state["stakes"]
        self.counts[:] = (
            state["n"],
            state["violations"],
            float(state["e_value"]),
            float(state["peak_e_value"]),
            state["alarm_at"] or 0,
            state["spacing"],
            len(state["trace"]),
        )
        for i, (n, violations, e_value) in enumerate(state["trace"]):
            self.trace[i] = n, violations, float(e_value)
        check_counts(self.stakes, self.counts, self.counts[5] - 1, self.trace)
        # There are no more violations than rows, and no more rows than can be told.
        check_counts(self.counts[0] - self.counts[1], MOST_ROWS - self.counts[0])
        check_counts(self.trace[:, 0] - self.trace[:, 1])

    def points(self) -> list[list[float]]:
        """Rows, violations and e-value of the trace."""
        found: list[list[float]] = self.trace[: int(self.counts[6])].tolist()
        return found

    def _raise_peak(self, value: float, rows: float | None = None) -> None:
        self.counts[3] = max(self.counts[3], value)
        if self.counts[4] == 0 and value >= self.threshold:
            self.counts[4] = self.counts[0] if rows is None else rows

    def _record(self) -> None:
        """Add the counts as they are to the trace."""
        self.counts[2] = self.e_value
        n, violations, value = self.counts[:3].tolist()
        before = int(self.counts[6])
        points = add_to_trace(self.trace, before, n, violations, value)
        if points < before:
            self.counts[5] *= 2
        self.counts[6] = points
