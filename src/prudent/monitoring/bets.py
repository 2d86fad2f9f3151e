"""Evidence against a promised rate, valid however often one looks.

*From counts alone.* The e-value of K violations in n rows against "the rate is at most
b" is the likelihood ratio to b of a rate p whose reciprocal is uniform on (1, 1/b):

    E(K, n; b) = b/(1-b) int_b^1 p^(K-2) (1-p)^(n-K) dp / [b^K (1-b)^(n-K)].

*From stakes placed at every row on "it changes now".* With g(u) = 1 / (1 + log(1 + u))
the part g(b t) of the initial 1 is still unplaced after t rows; what row t places is
spread over J rates above the bound and grows by their likelihood ratios,

    S_i <- (S_i + [g(b (t-1)) - g(b t)] / J) L_i(x_t),    E_t = g(b t) + sum_i S_i,
    L_i(x) = rho_i^x / (1 + (rho_i - 1) pi),

with pi the largest chance of a violation that the promise allows. A change after a long
good stretch is seen almost as fast as a change at the start: the price is log(b t), not
log t.

While the promise holds both are nonnegative supermartingales that start at 1, so that
they ever reach 1/level with probability at most `level` (J. Ville 1939).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import betaincc, digamma, polygamma, xlogy

from prudent.core.guarantee import Guarantee
from prudent.core.types import FloatArray
from prudent.monitoring.kernels import (
    LARGEST,
    N_STAKES,
    add_to_trace,
    beta_fraction,
    reserve,
    restart_rows,
)
from prudent.monitoring.state import check_counts, number

MOST_TRACED = 256
#: Counts are floats in a state; beyond this they are not exact.
MOST_ROWS = 2.0**53
#: Odds of the rates staked on, relative to the null: the midpoints of 1/p uniform.
ODDS_RATIOS: FloatArray = 1 / (1 - (np.arange(N_STAKES) + 0.5) / N_STAKES)
# Below it the integral underflows, and the continued fraction converges fast.
LEAST_TAIL = 1e-280
LEAST_RATE = 1e-300
SERIES_FROM = 32.0
NEAR_ZERO, SMALL = 1e-6, 1e-3
EULER = 0.5772156649015329
ZETA_TWO = math.pi**2 / 6
HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)


# --- e-values of counts ---------------------------------------------------------------


def log_evidence(violations: float, n: float, bound: float) -> float:
    """Log e-value against "the rate is at most `bound`", K = `violations` in n rows.

    Rises with K, falls with `bound` on (0, K/n), is at most 0 wherever K <= n b;
    fractional losses only lower its mean.
    """
    if n == 0 or bound == 1:
        return 0.0
    if bound == 0:
        return math.inf if violations > 0 else -math.log1p(n)
    return _log_evidence(violations, n, bound, 1 - bound)


def log_evidence_within(violations: float, n: float, bound: float) -> float:
    """Log e-value against "the rate is at least `bound`": proof that it is below."""
    if n == 0 or bound == 0:
        return 0.0
    if bound == 1:
        return math.inf if violations < n else -math.log1p(n)
    return _log_evidence(n - violations, n, 1 - bound, bound)


def largest_log_evidence(
    violations: FloatArray, n: FloatArray, bound: float
) -> FloatArray:
    """What `log_evidence` cannot exceed: n KL(K/n || b) where K > n b, else 0."""
    others = n - violations
    with np.errstate(divide="ignore", invalid="ignore"):
        divergence = xlogy(violations, violations / (n * bound)) + xlogy(
            others, others / (n * (1 - bound))
        )
    return np.where(violations > n * bound, divergence, 0.0)


def _log_evidence(violations: float, n: float, bound: float, rest: float) -> float:
    """Log E with `bound` + `rest` = 1, neither of them 0."""
    x, y = violations - 1, n - violations + 1
    is_early = y * bound < 1
    if abs(x) < NEAR_ZERO and is_early:
        return (
            _log_first_violation(x, y, bound) - x * math.log(bound) - y * math.log(rest)
        )
    # The complement is a difference from 1 that has few digits where x is small.
    if x > SMALL or (x > 0 and is_early):
        tail = float(betaincc(x, y, bound))
        if tail > LEAST_TAIL:
            return (
                math.log(bound / rest)
                + math.log(tail)
                + _log_beta_against(x, y, violations, n, bound, rest)
            )
    # int_b^1 = b^x (1-b)^y F / y: all powers cancel against those of E.
    return math.log(beta_fraction(float(y), float(x), float(rest)) / y)


def _log_beta_against(
    x: float, y: float, violations: float, n: float, bound: float, rest: float
) -> float:
    """Log B(x, y) - K log b - (n - K) log(1 - b), its large terms taken together."""
    total = x + y
    gap = x - total * bound
    return (
        violations * math.log1p(gap / (total * bound))
        + (n - violations) * math.log1p(-gap / (total * rest))
        + (x - violations - 0.5) * math.log(x)
        + (y - (n - violations) - 0.5) * math.log(y)
        - (total - n - 0.5) * math.log(total)
        + HALF_LOG_TWO_PI
        + _stirling_error(x)
        + _stirling_error(y)
        - _stirling_error(total)
    )


def _log_first_violation(x: float, y: float, bound: float) -> float:
    """Log of int_b^1 p^(x-1) (1-p)^(y-1) dp for x = 0, or a rounding off, y b < 1.

    The fraction would take 1/sqrt(b) steps here. The part of p^(x-1) is
    elementary; the rest is the whole integral less a series in b.
    """
    whole = -(float(digamma(y)) + EULER)
    whole += x / 2 * (whole**2 + ZETA_TWO - float(polygamma(1, y)))
    power = -math.log(bound) if x == 0 else -math.expm1(x * math.log(bound)) / x
    term, j, series = 1.0, 0, 0.0
    while j == 0 or abs(term) > 1e-18 * abs(series):
        j += 1
        term *= -(y - j) * bound / j
        series += term / (x + j)
    return math.log(power + whole - bound**x * series)


def _stirling_error(x: float) -> float:
    """Log Gamma(x) - [(x - 1/2) log x - x + log(2 pi) / 2]."""
    if x < SERIES_FROM:
        return math.lgamma(x) - (x - 0.5) * math.log(x) + x - HALF_LOG_TWO_PI
    r = 1 / (x * x)
    return (1 / 12 - r * (1 / 360 - r * (1 / 1260 - r * (1 / 1680 - r / 1188)))) / x


def log_beta_ratio(
    x: float, y: float, violations: float, others: float, rate: float
) -> float:
    """Log of B(x + v, y + w) / B(x, y) over p^v (1-p)^w, for x, y > 0.

    The chance under the urn (x, y) of v violations and w other rows in one given
    order, against their chance at the constant rate p.
    """
    n, total = violations + others, x + y
    return (
        violations * math.log((x + violations) / ((total + n) * rate))
        + others * math.log((y + others) / ((total + n) * (1 - rate)))
        + (x - 0.5) * math.log1p(violations / x)
        + (y - 0.5) * math.log1p(others / y)
        - (total - 0.5) * math.log1p(n / total)
        + (_stirling_error(x + violations) - _stirling_error(x))
        + (_stirling_error(y + others) - _stirling_error(y))
        - (_stirling_error(total + n) - _stirling_error(total))
    )


def log_evidence_marginal(
    violations: float, n: float, rank: int, calibration_rows: int, bound: float
) -> float:
    """Log e-value against a rate of at most `bound` on average over calibration rows.

    The smaller of two: against a rate of at most b for ever, and against the urn, in
    which the next row violates with probability (k + K) / (m + 1 + n) as the rate of
    one model is drawn from Beta(k, m + 1 - k); b >= k / (m + 1).
    """
    alone = log_evidence(violations, n, bound)
    if n == 0 or rank < 1:
        return alone
    if rank >= calibration_rows:
        return 0.0
    # One position above the rank: E then rises with K, which carries ties.
    cut = (rank + 1) / (calibration_rows + 1)
    urn = log_evidence(violations, n, cut) - log_beta_ratio(
        rank, calibration_rows + 1 - rank, violations, n - violations, cut
    )
    return min(urn, alone)


def rate_limits(violations: float, n: float, *, level: float) -> tuple[float, float]:
    """Limits of a constant rate, valid at all n at once with probability 1 - level.

    Rates that neither e-value refutes at level / 2; (0, 1) for n = 0.
    """
    target = math.log(2 / level)
    return (
        _lower_limit(violations, n, target),
        1 - _lower_limit(n - violations, n, target),
    )


def _lower_limit(violations: float, n: float, target: float) -> float:
    """Largest q < K/n with log E(K, n; q) >= target: bisection on log q."""
    if violations <= 0:
        return 0.0
    # Below one violation E stays under 1/(1 - K) and the fraction gets slow.
    low, high = LEAST_RATE if violations > 1 - NEAR_ZERO else 1e-10, violations / n
    if log_evidence(violations, n, low) < target:
        return 0.0
    while high - low > 4e-16 * high:
        middle = math.sqrt(low * high) if low < high / 2 else (low + high) / 2
        if not low < middle < high:
            break
        if log_evidence(violations, n, middle) >= target:
            low = middle
        else:
            high = middle
    return low


# --- the watch of a promise, row by row -----------------------------------------------


def null_hypothesis(guarantee: Guarantee) -> tuple[float, int, int]:
    """What is to be refuted of x, the event that is promised to be rare.

    Returns the bound b of the rate of x, and for a promise on average the rank k and
    the number m of the calibration rows (0, 0 elsewhere): the null is then also the
    urn whose next row violates with probability (k + K) / (m + 1 + n), and b is at
    least k / (m + 1). A promise that cannot be watched is refused.
    """
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
    allowed = guarantee.allowed
    if average_over in (None, "the rule's coins"):
        return allowed, 0, 0
    law = guarantee.rate_law
    if law is None or (law[0] < 1 and allowed > 0):
        raise ValueError(
            f"PromiseMonitor: the promise holds on average over {average_over}, by a "
            "law that is not known. Fit with a `confidence`."
        )
    return max(allowed, law[0] / (law[1] + 1)), *law


class Bets:
    """The running evidence against a null hypothesis; changed in place.

    `bound`, `rank` and `calibration_rows` are those of `null_hypothesis`, `threshold`
    is the e-value of the alarm. `stakes` (8,); `counts` (7,): rows, violations, e-value
    (of the last point of the trace, where it is that of the counts), its peak, rows at
    the first alarm (0: none), spacing of the trace in rows, its points; `trace`
    (256, 3): rows, violations, e-value at multiples of the spacing; a full trace loses
    every second point and the spacing doubles.
    """

    def __init__(
        self, bound: float, threshold: float, rank: int = 0, calibration_rows: int = 0
    ) -> None:
        self.bound, self.threshold = bound, threshold
        self.rank, self.calibration_rows = rank, calibration_rows
        self.stakes = np.zeros(N_STAKES)
        self.counts = np.array([0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0])
        self.trace = np.zeros((MOST_TRACED, 3))
        # As compiled loops take them.
        self.settings = np.array([bound, rank, calibration_rows + 1, threshold])

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
            self._look_and_record(violations, n)

    def _look_and_record(self, violations: float, n: int) -> None:
        """Look once, and keep a point where one is due."""
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
        points: list[list[float]] = self.trace[: int(self.counts[6])].tolist()
        return points

    def _raise_peak(self, value: float, rows: float | None = None) -> None:
        """Keep the largest e-value, and the number of rows at the first alarm."""
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


class Counts(Bets):
    """The e-value of all violations in all rows so far."""

    @property
    def e_value(self) -> float:
        """Evidence now."""
        n, violations = self.counts[:2].tolist()
        return self._e_value_at(n, violations)

    def log_e_value(self, n: float, violations: float, e_value: float) -> float:
        """Logarithm at a point of the trace, also of what is too large for a float."""
        if self.rank:
            return log_evidence_marginal(
                violations, n, self.rank, self.calibration_rows, self.bound
            )
        return log_evidence(violations, n, self.bound)

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
        largest = largest_log_evidence(sums, rows, self.bound)
        for t in np.flatnonzero((losses > 0) & (largest > math.log(counts[3]))):
            if largest[t] > math.log(counts[3]):
                self._raise_peak(self._e_value_at(rows[t], sums[t]), rows[t])
        counts[:2] = rows[-1], sums[-1]

    def add(self, other: Bets) -> None:
        """Add other counts of the same null, and what they have raised already."""
        peak = max(self.counts[3], other.counts[3])
        alarms = [bets.counts[4] for bets in (self, other) if bets.counts[4]]
        if other.counts[0]:
            self._look_and_record(other.counts[1], int(other.counts[0]))
        self.counts[3] = max(self.counts[3], peak)
        if alarms:
            self.counts[4] = min(alarms)

    def _look(self, violations: float, n: int) -> None:
        self.counts[:2] += n, violations
        self._raise_peak(self.e_value)

    def _e_value_at(self, n: float, violations: float) -> float:
        """The e-value, infinite where it is too large for a float."""
        log_value = self.log_e_value(n, violations, math.nan)
        return math.exp(log_value) if log_value < 709 else math.inf


class Restarts(Bets):
    """The e-value E_t of the stakes."""

    @property
    def e_value(self) -> float:
        """Evidence now."""
        return float(self.counts[2])

    def rows(self, losses: FloatArray) -> None:
        """Bet on the losses of rows, in order."""
        restart_rows(
            losses, self.stakes, self.counts, self.trace, ODDS_RATIOS, self.settings
        )

    def _look(self, violations: float, n: int) -> None:
        before, so_far = self.counts[:2].tolist()
        left = reserve(self.bound * (before + n))
        stake = (reserve(self.bound * before) - left) / N_STAKES
        with np.errstate(over="ignore"):
            growth = np.exp(self._log_growth(violations, n))
            self.stakes[:] = np.minimum((self.stakes + stake) * growth, LARGEST)
        value = float(self.stakes.sum()) + left
        self.counts[:3] = before + n, so_far + violations, value
        self._raise_peak(value)

    def _log_growth(self, violations: float, n: int) -> FloatArray:
        """Logarithm (8,) of the factor by which a batch makes each stake grow.

        It is the smaller likelihood ratio of the two to a constant rate and to the urn.
        """
        others = n - violations
        if self.rank < 1:
            return violations * np.log(ODDS_RATIOS) - n * np.log1p(
                (ODDS_RATIOS - 1) * self.bound
            )
        before, so_far = self.counts[:2].tolist()
        urn = (
            self.rank + so_far,
            self.calibration_rows + 1 - self.rank + before - so_far,
        )
        chance = max(self.bound, urn[0] / (urn[0] + urn[1]))
        rates = ODDS_RATIOS * chance / (1 + (ODDS_RATIOS - 1) * chance)
        constant = (
            violations * np.log(ODDS_RATIOS * (chance / self.bound))
            + others * math.log((1 - chance) / (1 - self.bound))
            - n * np.log1p((ODDS_RATIOS - 1) * chance)
        )
        drawn = [-log_beta_ratio(*urn, violations, others, rate) for rate in rates]
        return np.minimum(constant, drawn)
