"""A solved game: the rule, what it is worth, and the intruders it answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from prudent.adversarial.game.intruders import (
    FarIntruders,
    ListedIntruders,
    Rule,
    best_powers,
)
from prudent.adversarial.game.laws import check_distributions
from prudent.core.rows import keyed_uniform
from prudent.core.types import BoolArray, FloatArray, IntArray
from prudent.core.validation import shown


class OperatingPoint(NamedTuple):
    """A point of the security curve.

    Attributes
    ----------
    false_alarm_rate, miss_rate : float
        Of the optimal randomised rule.
    cost : float
        Mean cost of an event.
    """

    false_alarm_rate: float
    miss_rate: float
    cost: float


@dataclass(frozen=True, slots=True)
class SecurityCurve:
    """Miss rate of the best rules against the false-alarm rate they may spend.

    Attributes
    ----------
    false_alarm_rates : ndarray of shape (n_rates,)
        As asked for.
    soft_miss_rates, hard_miss_rates : ndarray of shape (n_rates,)
        Largest probability that an intruder passes the optimal randomised and the
        optimal deterministic rule.
    target : ndarray of shape (n_events,) or None
        Probability of each event of the game.
    """

    false_alarm_rates: FloatArray
    soft_miss_rates: FloatArray
    hard_miss_rates: FloatArray
    target: FloatArray | None = None

    def best(
        self, false_alarm_cost: float, miss_cost: float, intruder_share: float
    ) -> OperatingPoint:
        """Point of the least mean cost among the rates of the curve.

        The cost of an event is (1 - s) a f + s b m for a false-alarm rate f, a miss
        rate m, a share s of intruders and costs a, b: a minimum over the false-alarm
        rate, as in Remark 1 of El-Yaniv and Nisenson.

        Parameters
        ----------
        false_alarm_cost, miss_cost : float
            Of one false alarm and of one missed intruder, >= 0.
        intruder_share : float
            Share of intruders among all events, in [0, 1].

        Returns
        -------
        OperatingPoint
            False-alarm rate, miss rate and cost; of equal costs the lowest rate.

        Raises
        ------
        ValueError
            If a cost is negative or not finite, or the share lies outside [0, 1].

        Examples
        --------
        >>> import numpy as np
        >>> from prudent import RejectionGame
        >>> game = RejectionGame(divergence_bound=3).fit([0.01, 0.04, 0.15, 0.3, 0.5])
        >>> curve = game.security_curve(np.linspace(0, 1, 101))
        >>> [round(value, 4) for value in curve.best(1.0, 50.0, 0.01)]
        [0.07, 0.545, 0.3418]
        """
        costs = {"false_alarm_cost": false_alarm_cost, "miss_cost": miss_cost}
        for name, cost in costs.items():
            if not 0 <= cost < np.inf:
                raise ValueError(f"`{name}` must be a number >= 0, got {shown(cost)}.")
        if not 0 <= intruder_share <= 1:
            raise ValueError(
                f"`intruder_share` must lie in [0, 1], got {shown(intruder_share)}."
            )
        rates, misses = self.false_alarm_rates, self.soft_miss_rates
        alarms = (1 - intruder_share) * false_alarm_cost * rates
        total = alarms + intruder_share * miss_cost * misses
        at = int(np.lexsort((rates, total))[0])
        return OperatingPoint(float(rates[at]), float(misses[at]), float(total[at]))

    def known_miss_rates(self, q: ArrayLike) -> FloatArray:
        """Miss rates of the best test against one intruder whose law is known.

        The likelihood ratio test of Neyman and Pearson, randomised at its edge. The
        soft curve lies above it by the price of not knowing the intruder.

        Parameters
        ----------
        q : array-like of shape (n_events,)
            Probability of each event under the intruder; sums to 1.

        Returns
        -------
        ndarray of shape (n_rates,)

        Raises
        ------
        ValueError
            If `q` is not a distribution over the events of the game, or the curve
            was made without its `target`.
        """
        if self.target is None:
            raise ValueError(
                "the curve does not know its target: give SecurityCurve the "
                "probabilities of the events as `target`."
            )
        (intruder,) = check_distributions(q, len(self.target), "q")
        return 1 - best_powers(self.target, intruder, self.false_alarm_rates)


@dataclass(frozen=True, slots=True)
class Model:
    """The rule in use and the set of intruders."""

    rule: Rule
    target: FloatArray  # (n_events,), of each event, or of each level given as one
    n_levels: int  # distinct positive probabilities, those that tie as one
    intruders: FarIntruders | ListedIntruders

    @property
    def false_alarm_rate(self) -> float:
        """Probability of rejecting an ordinary event, sum of r p."""
        return min(1.0, float(self.rule.rejection @ self.target))

    @property
    def gap(self) -> float:
        """How much more than the rule's value that of another could be."""
        return max(0.0, self.rule.upper_bound - self.rule.value)

    def rejection_probability(self, events: IntArray) -> FloatArray:
        """Probability of rejecting each event; 1 outside 0..n_events - 1."""
        rejection = self.rule.rejection
        known = (events >= 0) & (events < len(rejection))
        return np.where(known, rejection[np.where(known, events, 0)], 1.0)

    def reject(
        self,
        events: IntArray,
        random: np.random.RandomState,
        key: int | str | bytes | None,
    ) -> BoolArray:
        """Draw the decisions, by the key where there is one."""
        probability = self.rejection_probability(events)
        if key is None:
            return random.uniform(size=probability.shape) < probability
        distinct, position = np.unique(events, return_inverse=True)
        coins = keyed_uniform((b"%d" % event for event in distinct), key)
        return coins[position].reshape(probability.shape) < probability

    def security_curve(self, rates: FloatArray) -> SecurityCurve:
        """Best miss rates of both strategies."""
        soft = self.intruders.values(rates, "soft")
        hard = self.intruders.values(rates, "hard")
        return SecurityCurve(rates, 1 - soft, 1 - hard, self.target)
