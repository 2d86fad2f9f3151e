"""The alarm from counts alone, for rates that swing about a mean within the promise."""

from __future__ import annotations

import math

import numpy as np

from prudent.core.types import FloatArray
from prudent.monitoring.bets import Bets
from prudent.monitoring.evidence import (
    largest_log_evidence,
    log_evidence,
    log_evidence_marginal,
)


class Counts(Bets):
    """The e-value of all violations in all rows so far."""

    @property
    def e_value(self) -> float:
        """Evidence now."""
        n, violations = self.counts[:2].tolist()
        return self._e_value_of(n, violations)

    def log_e_value(self, n: float, violations: float, e_value: float) -> float:
        """Logarithm at a point of the trace, also of what is too large for a float."""
        null = self.null
        if null.rank:
            return log_evidence_marginal(
                violations, n, null.rank, null.calibration_rows, null.bound
            )
        return log_evidence(violations, n, null.bound)

    def rows(self, losses: FloatArray) -> None:
        """Look at each row, in order."""
        start = 0
        while start < len(losses):
            spacing = int(self.counts[5])
            stop = min(len(losses), start + spacing - int(self.counts[0]) % spacing)
            self._rows_to_a_point(losses[start:stop])
            start = stop
            if self.counts[0] % spacing == 0:
                self._record()

    def _rows_to_a_point(self, losses: FloatArray) -> None:
        """Evaluate the counts wherever they may set a new peak."""
        counts = self.counts
        sums = np.cumsum(np.append(counts[1], losses))[1:]
        rows = counts[0] + np.arange(1, len(losses) + 1)
        # E is a mean of likelihood ratios, all below that of the rate K / n itself.
        largest = largest_log_evidence(sums, rows, self.null.bound)
        for t in np.flatnonzero((losses > 0) & (largest > math.log(counts[3]))):
            if largest[t] > math.log(counts[3]):
                self._raise_peak(self._e_value_of(rows[t], sums[t]), rows[t])
        counts[:2] = rows[-1], sums[-1]

    def add(self, other: Bets) -> None:
        """Add other counts of the same null, and what they have raised already."""
        peak = max(self.counts[3], other.counts[3])
        alarms = [bets.counts[4] for bets in (self, other) if bets.counts[4]]
        if other.counts[0]:
            points = self.counts[0] // self.counts[5]
            self._look(other.counts[1], int(other.counts[0]))
            if self.counts[0] // self.counts[5] > points:
                self._record()
        self.counts[3] = max(self.counts[3], peak)
        if alarms:
            self.counts[4] = min(alarms)

    def _look(self, violations: float, n: int) -> None:
        self.counts[:2] += n, violations
        self._raise_peak(self.e_value)

    def _e_value_of(self, n: float, violations: float) -> float:
        log_value = self.log_e_value(n, violations, math.nan)
        return math.exp(log_value) if log_value < 709 else math.inf
