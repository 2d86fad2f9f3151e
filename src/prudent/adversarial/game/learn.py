"""From a target distribution and a set of intruders to the best rule."""

from __future__ import annotations

from dataclasses import dataclass

from prudent.adversarial.game.divergence import Divergence
from prudent.adversarial.game.intruders import FarIntruders, ListedIntruders, Strategy
from prudent.adversarial.game.model import Model
from prudent.adversarial.game.solver import group_events, split_levels
from prudent.core.types import FloatArray


@dataclass(frozen=True, slots=True)
class Learned:
    """A solved game, and the levels found."""

    model: Model
    n_levels: int  # distinct positive probabilities, those that tie as one


def learn(
    value: FloatArray,
    mass: FloatArray,
    *,
    divergence: Divergence,
    divergence_bound: float | None,
    adversaries: FloatArray | None,
    strategy: Strategy,
    tie_tol: float,
    false_alarm_rate: float | None = None,
    miss_rate: float | None = None,
) -> Learned:
    """Solve the game for a false-alarm rate, or for a miss rate.

    `value` is the probability of one event and `mass` that of all events an entry
    stands for. Intruders are any distributions at least the bound away (None is 0), or
    the `adversaries` (n_intruders, n_events); against the former, events whose
    probabilities lie closer than `tie_tol`, relative to their size, are treated alike.
    One of both rates is given, of which the other is the least.
    """
    events = group_events(value, mass)
    tied = events.tied(tie_tol)
    intruders: FarIntruders | ListedIntruders
    if adversaries is None:
        bound = 0.0 if divergence_bound is None else divergence_bound
        levels = split_levels(events.value, events.mass, divergence, bound)
        intruders = FarIntruders(events, tied, levels)
    else:
        intruders = ListedIntruders(mass, adversaries)
    if miss_rate is None:
        assert false_alarm_rate is not None
        rule = intruders.best_rule(false_alarm_rate, strategy)
    else:
        rule = intruders.cheapest_rule(1 - miss_rate, strategy)
    return Learned(Model(rule, mass, intruders), len(tied.value))
