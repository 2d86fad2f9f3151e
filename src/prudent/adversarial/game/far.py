"""Intruders who keep a distance from the target, and the best rules against them.

For every rule and every convex divergence a worst intruder lives on an edge of the
simplex, on at most two events (A2 of the user guide).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from prudent.adversarial.game.levels import Events, Levels
from prudent.adversarial.game.rule import Rule, Strategy
from prudent.adversarial.game.solver import curve_values, least_rate, solve_game
from prudent.core.types import FloatArray


@dataclass(frozen=True, slots=True)
class FarIntruders:
    """All distributions at a divergence of at least the bound from the target."""

    events: Events  # with the levels of the game
    tied: Events  # the same in coarser levels, whose events are all treated alike
    levels: Levels  # the target, split at the bound

    def best_rule(self, rate: float, strategy: Strategy) -> Rule:
        """Rule of the largest value among those that reject ordinary events at `rate`.

        "soft": the game solved level by level; events that tie get the mean of their
        probabilities, which costs as much. "hard": the least probable events are
        rejected, within a tie those of lowest index first (A4). What the rule is
        worth is what the best intruder against it leaves.
        """
        solution = solve_game(self.levels, rate)
        if strategy == "soft":
            rejection = self.events.spread(solution.rejection, 1.0)
            if self._has_ties:
                mean = self.tied.mean(rejection)
                rejection = np.minimum(1.0, self.tied.spread(mean, 1.0))
            response = soft_response(self.levels, solution.value)
            upper_bound = solution.upper_bound
        else:
            rejection = self._least_probable(rate)
            response = hard_response(self.levels, rate)
            upper_bound = response.value
        if self._has_ties:
            response = best_response(self.levels, self.events.smallest(rejection))
        adversary = self._distribution(rejection, response)
        mixture = adversary.copy()
        if strategy == "soft":
            mixture = self.events.share * self.events.spread(solution.mixture, 0.0)
        return Rule(
            rejection=rejection,
            value=response.value,
            upper_bound=upper_bound,
            adversary=adversary,
            mixture=mixture,
            is_trivial=solution.is_trivial,
        )

    def cheapest_rule(self, value: float, strategy: Strategy) -> Rule:
        """Rule of the least false-alarm rate among those of this value.

        Theorem 45: it is the best rule at that rate. Events that tie get the largest
        of their probabilities, so that the value is kept.
        """
        exact = replace(self, tied=self.events)
        rule = exact.best_rule(self.least_rate(value, strategy), strategy)
        if not self._has_ties:
            return rule
        largest = -self.tied.smallest(-rule.rejection)
        rejection = self.tied.spread(largest, 1.0)
        worst, adversary = self.worst_case(rejection)
        rate = min(1.0, float(rejection @ self.events.target))
        best = exact.best_rule(rate, strategy)
        return replace(
            rule,
            rejection=rejection,
            value=worst,
            upper_bound=max(best.upper_bound, worst),
            adversary=adversary,
            mixture=best.mixture,
        )

    def least_rate(self, value: float, strategy: Strategy) -> float:
        """Least false-alarm rate of a rule of this value."""
        if strategy == "soft":
            return least_rate(self.levels, value)
        return float(self.levels.reached[levels_to_reject(self.levels, value)])

    def values(self, rates: FloatArray, strategy: Strategy) -> FloatArray:
        """Values of the best rules at many false-alarm rates."""
        if strategy == "soft":
            return curve_values(self.levels, rates)
        return np.array([hard_response(self.levels, rate).value for rate in rates])

    def worst_case(self, rejection: FloatArray) -> tuple[float, FloatArray]:
        """Least rejected intruder against any rule: rejection rate and distribution."""
        response = best_response(self.levels, self.events.smallest(rejection))
        return response.value, self._distribution(rejection, response)

    @property
    def _has_ties(self) -> bool:
        return self.tied is not self.events

    def _least_probable(self, rate: float) -> FloatArray:
        """Reject the least probable events that the rate allows."""
        budget = rate * (1 + 1e-12)
        reached = np.append(0.0, np.cumsum(self.tied.mass, dtype=np.longdouble))
        n_full = int(np.count_nonzero(reached[1:] <= budget))
        rejection = np.where(self.tied.level < n_full, 1.0, 0.0)
        members = np.flatnonzero(self.tied.level == n_full)
        if len(members):
            each = self.tied.share[members] * self.tied.mass[n_full]
            affordable = reached[n_full] + np.cumsum(each) <= budget
            rejection[members[affordable]] = 1.0
        return rejection

    def _distribution(self, rejection: FloatArray, response: Response) -> FloatArray:
        """Intruder over events: in each of its levels on one that is rejected least."""
        q = np.zeros(len(rejection))
        shares = (response.low, response.q), (response.high, 1 - response.q)
        for level, share in shares:
            members = np.flatnonzero(self.events.level == level)
            q[members[np.argmin(rejection[members])]] += share
        return q


@dataclass(frozen=True, slots=True)
class Response:
    """Intruder q e_low + (1 - q) e_high; `value` is the rate of rejecting it."""

    value: float
    low: int
    high: int
    q: float


def best_response(levels: Levels, rejection: FloatArray) -> Response:
    """Least rejected intruder against a rule's smallest probabilities by level (A2).

    Starts from the best single event and moves to the pair that undercuts it most
    until none does; each search is O(n_levels log n_levels).
    """
    from prudent.adversarial.game.kernels import tightest_pair

    alone = int(np.argmin(rejection[: levels.n_admissible]))
    response = Response(float(rejection[alone]), alone, alone, 1.0)
    if levels.n_low == 0:
        return response
    r_low, r_high = rejection[levels.low], rejection[levels.high]
    # A high level counts only if no lower one is rejected as little: theta rises.
    before = np.minimum.accumulate(np.append(np.inf, r_high))[:-1]
    records = np.flatnonzero(r_high < before)
    while True:
        usable = records[r_high[records] < response.value]
        if not len(usable):
            return response
        l, at, ratio = tightest_pair(
            levels.code,
            levels.scale,
            levels.excess[levels.low],
            r_low - response.value,
            levels.excess[levels.high][usable],
            response.value - r_high[usable],
        )
        h = levels.n_admissible + int(usable[at])
        q = _edge_share(levels, l, h)
        value = float(rejection[h] + q * (rejection[l] - rejection[h]))
        if ratio >= 1 or value >= response.value:
            return response
        response = Response(value, l, h, q)


def soft_response(levels: Levels, value: float) -> Response:
    """Best intruder against the optimal randomised rule of this value, no search.

    The edge between the lowest low and the lowest high level is always tight.
    """
    if levels.n_low == 0 or levels.lets_all_in:
        return Response(value, 0, 0, 1.0)
    q = _edge_share(levels, 0, levels.n_admissible)
    return Response(value, 0, levels.n_admissible, q)


def hard_response(levels: Levels, rate: float) -> Response:
    """Best intruder against the rule that rejects the least probable events (A4).

    The lowest accepted level decides, whichever of its events are rejected.
    """
    accepted = int(np.count_nonzero(levels.reached[1:] <= rate * (1 + 1e-12)))
    if rate == 1 or accepted == len(levels.value):
        return Response(1.0, 0, 0, 1.0)
    if accepted < levels.n_admissible:
        return Response(0.0, accepted, accepted, 1.0)
    if levels.n_low == 0:
        return Response(1.0, 0, 0, 1.0)
    q = _edge_share(levels, 0, accepted)
    return Response(q, 0, accepted, q)


def levels_to_reject(levels: Levels, value: float) -> int:
    """Least number of lowest levels whose rejection rejects any intruder so often.

    Every level that may be played alone is one of them, and every higher level that
    leaves too little room: its edge with the lowest level has q < `value`. The q rise
    with the level, so a search by halves finds the first that will do.
    """
    if value <= 0:
        return 0
    if levels.n_low == 0 or levels.lets_all_in:
        return levels.n_admissible
    low, high = levels.n_admissible, len(levels.value)
    while low < high:
        middle = (low + high) // 2
        if _edge_share(levels, 0, middle) >= value * (1 - 1e-12):
            high = middle
        else:
            low = middle + 1
    return low


def _edge_share(levels: Levels, low: int, high: int) -> float:
    """Share q of the low level at which the edge meets the bound."""
    from prudent.adversarial.game.kernels import log_odds

    excess_low, excess_high = levels.excess[low], levels.excess[high]
    x = log_odds(levels.code, levels.scale, excess_low, excess_high, math.nan)
    return 1 / (1 + math.exp(-x))
