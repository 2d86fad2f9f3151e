"""One promise under one law at one size: what is counted, and the test of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from prudent.auditing.evidence import at_least, betting_log_wealth, rank_sum_p
from prudent.auditing.truth import Measured, allowed_rate
from prudent.core.binomial import mean_rank
from prudent.core.guarantee import Guarantee
from prudent.core.types import FloatArray
from prudent.monitoring.bets import log_evidence

# A rate counted on fresh rows is called beyond the bound wrongly in at most this share
# of the draws in which the promise may fail; without a confidence in this share.
COUNTING_SHARE = 0.01
COUNTING_ERROR = 1e-4
# Fewer counted rows say too little of a rate to use its law.
FEWEST_COUNTED = 200


@dataclass(frozen=True, slots=True)
class Draw:
    """A fitted model, its promise and the truth."""

    seed: int
    claim: Guarantee
    measured: Measured

    @property
    def excess(self) -> float:
        """How far the true rate lies beyond the bound."""
        return self.measured.rate - allowed_rate(self.claim)


def counting_error(claim: Guarantee) -> float:
    """Probability with which a counted rate may wrongly be called beyond the bound."""
    if claim.confidence is None:
        return COUNTING_ERROR
    return COUNTING_SHARE * (1 - claim.confidence)


@dataclass
class Tally:
    """The draws of one promise under one law at one size.

    `claim` is the first one drawn, `horizon` the most draws, `target` the log e-value
    at which the promise is refuted before all draws are made.
    """

    claim: Guarantee
    is_outside: bool
    from_moments: bool
    horizon: int
    target: float
    draws: list[Draw] = field(default_factory=list)

    @property
    def beyond(self) -> int:
        """Draws whose true rate lies beyond the bound."""
        return sum(draw.measured.is_beyond for draw in self.draws)

    @property
    def rates(self) -> FloatArray:
        """True rates of violations, or counted ones without bias."""
        return np.array(
            [d.measured.first / (d.measured.n_rows or 1) for d in self.draws]
        )

    @property
    def bounds(self) -> FloatArray:
        """Allowed rates of violations."""
        return np.array([allowed_rate(draw.claim) for draw in self.draws])

    @property
    def failing_rate(self) -> float:
        """Largest share of draws in which a promise with confidence may fail."""
        confidence = self.claim.confidence or 0.0
        exact = all(draw.measured.n_rows is None for draw in self.draws)
        return 1 - confidence + (0.0 if exact else counting_error(self.claim))

    def worst(self) -> Draw:
        """The draw furthest beyond its bound."""
        return max(self.draws, key=lambda draw: draw.excess)

    def log_e_value(self, n_draws: int) -> float:
        """Log evidence against the promise, valid however often one looks."""
        if self.claim.confidence is not None:
            return log_evidence(self.beyond, n_draws, self.failing_rate)
        if self.claim.average_over is not None:
            wealth = betting_log_wealth(
                self.rates, self.bounds, horizon=self.horizon, target=self.target
            )
            return float(wealth[-1])
        if any(d.measured.n_rows is None and d.measured.is_beyond for d in self.draws):
            return math.inf
        logs = [
            log_evidence(d.measured.first, d.measured.n_rows, allowed_rate(d.claim))
            for d in self.draws
            if d.measured.n_rows is not None
        ]
        # Each draw may stake an equal part.
        return float(np.logaddexp.reduce([-math.inf, *logs])) - math.log(self.horizon)

    def p_value(self, n_draws: int) -> float:
        """Exact p-value when all draws are made."""
        if self.claim.confidence is not None:
            return at_least(self.beyond, n_draws, self.failing_rate)
        if self.claim.average_over is not None:
            return self._p_of_mean()
        if any(d.measured.n_rows is None and d.measured.is_beyond for d in self.draws):
            return 0.0
        counted = [
            at_least(d.measured.first, d.measured.n_rows, allowed_rate(d.claim))
            for d in self.draws
            if d.measured.n_rows is not None
        ]
        return min(1.0, len(counted) * min(counted)) if counted else 1.0

    def _p_of_mean(self) -> float:
        """By the law of the rates where it is known, else by bets."""
        laws = [law for law in map(rank_law, self.draws) if law is not None]
        counted = {draw.measured.n_rows for draw in self.draws}
        if len(laws) == len(self.draws):
            if counted == {None}:
                return rank_sum_p(self.rates, laws, None)
            fewest = min(n for n in counted if n is not None)
            if None not in counted and fewest >= FEWEST_COUNTED:
                return rank_sum_p(self._thinned(fewest), laws, fewest)
        wealth = betting_log_wealth(
            self.rates, self.bounds, horizon=self.horizon, target=self.target
        )
        return min(1.0, math.exp(-float(wealth.max())))

    def _thinned(self, n_rows: int) -> FloatArray:
        """Rates in equally many rows of each draw, chosen at random."""
        rng = np.random.default_rng(self.draws[0].seed)
        violated = np.array([draw.measured.first for draw in self.draws], dtype=int)
        counted = np.array([draw.measured.n_rows for draw in self.draws], dtype=int)
        return rng.hypergeometric(violated, counted - violated, n_rows) / n_rows


def rank_law(draw: Draw) -> tuple[int, int] | None:
    """Rank k and rows m, if the rate is drawn from Beta(k, m + 1 - k) at the most.

    The largest rank that the bound allows is taken, so that only a rate beyond the
    bound speaks against the promise.
    """
    law, allowed = draw.claim.rate_law, allowed_rate(draw.claim)
    if law is None or not 0 < allowed < 1:
        return None
    rank, m = law
    if rank / (m + 1) > allowed * (1 + 1e-12):
        return None
    return max(rank, mean_rank(m, allowed)), m
