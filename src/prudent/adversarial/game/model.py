"""A solved game: the rule, what it is worth, and the intruders it answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from prudent.adversarial.game.curve import SecurityCurve
from prudent.core.coins import keyed_uniform
from prudent.core.types import BoolArray, FloatArray, IntArray

Strategy = Literal["soft", "hard"]


@dataclass(frozen=True, slots=True)
class Rule:
    """An optimal rule of its strategy, with its certificate.

    Attributes
    ----------
    rejection : ndarray of shape (n_events,)
        Probability of rejecting each event, 1 for null events.
    value, upper_bound : float
        Rejection rate of the best intruder, and the most any rule could reach.
    adversary, mixture : ndarray of shape (n_events,)
        A best intruder, and the mixture of intruders behind `upper_bound`.
    is_trivial : bool
        Whether nothing randomised beats rejecting every event alike.
    """

    rejection: FloatArray
    value: float
    upper_bound: float
    adversary: FloatArray
    mixture: FloatArray
    is_trivial: bool


class Intruders(Protocol):
    """A set of distributions of which the intruder picks one."""

    def best_rule(self, rate: float, strategy: Strategy) -> Rule:
        """Rule of the largest value at this false-alarm rate."""

    def cheapest_rule(self, value: float, strategy: Strategy) -> Rule:
        """Rule of the least false-alarm rate of this value."""

    def least_rate(self, value: float, strategy: Strategy) -> float:
        """Least false-alarm rate of a rule of this value."""

    def values(self, rates: FloatArray, strategy: Strategy) -> FloatArray:
        """Values of the best rules at many false-alarm rates."""

    def worst_case(self, rejection: FloatArray) -> tuple[float, FloatArray]:
        """Least rejected intruder against any rule."""


@dataclass(frozen=True, slots=True)
class Model:
    """The rule in use and the set of intruders.

    Attributes
    ----------
    rejection : ndarray of shape (n_events,)
    target : ndarray of shape (n_events,)
        Probability of each event, or of each level given as one.
    intruders : Intruders
    """

    rejection: FloatArray
    target: FloatArray
    intruders: Intruders

    def rejection_probability(self, events: IntArray) -> FloatArray:
        """Probability of rejecting each event; 1 outside 0..n_events - 1."""
        known = (events >= 0) & (events < len(self.rejection))
        return np.where(known, self.rejection[np.where(known, events, 0)], 1.0)

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
        soft, hard = (self.intruders.values(rates, kind) for kind in ("soft", "hard"))
        return SecurityCurve(rates, 1 - soft, 1 - hard, self.target)
