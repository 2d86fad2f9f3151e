"""Intruders who keep a distance from the target, and the best rules against them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from prudent.adversarial.game.levels import Events, Levels
from prudent.adversarial.game.model import Rule, Strategy
from prudent.adversarial.game.response import (
    as_distribution,
    best_response,
    hard_response,
    levels_to_reject,
    soft_response,
)
from prudent.adversarial.game.solver import curve_values, least_rate, solve_game
from prudent.core.types import FloatArray


@dataclass(frozen=True, slots=True)
class FarIntruders:
    """All distributions at a divergence of at least the bound from the target.

    Attributes
    ----------
    events : Events
        With the levels of the game.
    tied : Events
        The same events in coarser levels, whose events are all treated alike;
        `events` itself leaves the optimal rules as they are.
    levels : Levels
        Target, split at the bound.
    """

    events: Events
    tied: Events
    levels: Levels

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
            if self.tied is not self.events:
                mean = self.tied.mean(rejection)
                rejection = np.minimum(1.0, self.tied.spread(mean, 1.0))
            response = soft_response(self.levels, solution.value)
            upper_bound = solution.upper_bound
        else:
            rejection = self._least_probable(rate)
            response = hard_response(self.levels, rate)
            upper_bound = response.value
        if self.tied is not self.events:
            response = best_response(self.levels, self.events.smallest(rejection))
        adversary = as_distribution(self.events, rejection, response)
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
        if self.tied is self.events:
            return rule
        rejection = self.tied.spread(self.tied.largest(rule.rejection), 1.0)
        response = best_response(self.levels, self.events.smallest(rejection))
        rate = min(1.0, float(rejection @ self.events.target()))
        best = exact.best_rule(rate, strategy)
        return replace(
            rule,
            rejection=rejection,
            value=response.value,
            upper_bound=max(best.upper_bound, response.value),
            adversary=as_distribution(self.events, rejection, response),
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
        return response.value, as_distribution(self.events, rejection, response)

    def _least_probable(self, rate: float) -> FloatArray:
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
