"""From a target and a set of intruders to the best rule, and what it promises."""

from __future__ import annotations

import math

from prudent.adversarial.game.divergence import Divergence
from prudent.adversarial.game.intruders import FarIntruders, ListedIntruders, Strategy
from prudent.adversarial.game.model import Model
from prudent.adversarial.game.own_divergence import OwnDivergence, extreme_intruders
from prudent.adversarial.game.solver import group_events, split_levels
from prudent.core.assumptions import Assumption
from prudent.core.guarantee import Guarantee, Quantity
from prudent.core.types import FloatArray


def learn(
    value: FloatArray,
    mass: FloatArray,
    *,
    divergence: Divergence | OwnDivergence,
    divergence_bound: float | None,
    adversaries: FloatArray | None,
    strategy: Strategy,
    tie_tol: float,
    false_alarm_rate: float | None = None,
    miss_rate: float | None = None,
) -> Model:
    """Solve the game for a false-alarm rate, or for a miss rate.

    Parameters
    ----------
    value : ndarray of shape (n_events,)
        Probability of one event of each entry.
    mass : ndarray of shape (n_events,)
        Probability of all events that the entry stands for; `value` where it is one.
    divergence : Divergence or OwnDivergence
        A function of one's own is met by the list of its extreme intruders.
    divergence_bound : float or None
        Least divergence of an intruder from the target, in its unit; None is 0.
    adversaries : ndarray of shape (n_intruders, n_events) or None
        Intruders in place of all who are far enough.
    strategy : {"soft", "hard"}
        Randomised rules, or deterministic ones.
    tie_tol : float
        Against far intruders, events whose probabilities lie closer than this, relative
        to their size, are treated alike.
    false_alarm_rate, miss_rate : float or None
        One of both is given; the other is made as small as it can be.

    Returns
    -------
    Model

    Raises
    ------
    InfeasibleError
        If no intruder is as far as the bound.
    """
    events = group_events(value, mass)
    tied = events.tied(tie_tol)
    intruders: FarIntruders | ListedIntruders
    if adversaries is not None:
        intruders = ListedIntruders(mass, adversaries)
    elif not isinstance(divergence, Divergence):
        bound = -math.inf
        if divergence_bound is not None and divergence_bound > 0:
            bound = divergence_bound
        intruders = ListedIntruders(mass, extreme_intruders(mass, divergence, bound))
    else:
        bound = 0.0 if divergence_bound is None else divergence_bound
        levels = split_levels(events.value, events.mass, divergence, bound)
        intruders = FarIntruders(events, tied, levels)
    if miss_rate is None:
        assert false_alarm_rate is not None
        rule = intruders.best_rule(false_alarm_rate, strategy)
    else:
        rule = intruders.cheapest_rule(1 - miss_rate, strategy)
    return Model(rule, mass, len(tied.value), intruders)


# --- promises: both rates of a solved game --------------------------------------------


def promises(
    false_alarm_rate: float,
    miss_rate: float,
    *,
    gap: float,
    known: Assumption,
    smoothing: float,
    divergence_bound: float | None,
    n_adversaries: int,
    has_null_events: bool,
    is_own_divergence: bool,
    is_soft: bool,
    is_dual: bool,
) -> tuple[Guarantee, Guarantee]:
    """False-alarm rate of ordinary events and miss rate of the best intruder.

    `known` is assumed of the target, to whose counts `smoothing` was added. Intruders
    are `n_adversaries` listed ones, or with 0 any at the divergence bound (None: any
    at all), measured on the events of positive probability where there are others, by a
    named divergence or one's own. Soft rates are averages over the rule's coins: under
    one key the answers to the same events stay the same for ever.
    `is_dual` says that the miss rate was given and the false-alarm rate found.
    """
    evidence = {"duality gap": gap}
    if known is Assumption.EVENTS_SMOOTHED:
        evidence["smoothing"] = smoothing

    def promise(
        quantity: Quantity, bound: float, *assumptions: Assumption, **numbers: float
    ) -> Guarantee:
        return Guarantee(
            quantity=quantity,
            bound=bound,
            sense="<=",
            average_over="the rule's coins" if is_soft else None,
            assumptions=(known, *assumptions),
            evidence=evidence | numbers,
            source=f"El-Yaniv and Nisenson, Theorem {46 if is_dual else 23}",
        )

    intruders, far = _intruder(
        divergence_bound, n_adversaries, has_null_events, is_own_divergence
    )
    return (
        promise("false alarm rate", false_alarm_rate),
        promise("miss rate", miss_rate, *intruders, **far),
    )


def _intruder(
    divergence_bound: float | None,
    n_adversaries: int,
    has_null_events: bool,
    is_own_divergence: bool,
) -> tuple[tuple[Assumption, ...], dict[str, float]]:
    """What is assumed of the intruder, and the numbers of these sentences."""
    if n_adversaries == 1:
        return (Assumption.INTRUDER_GIVEN,), {}
    if n_adversaries:
        return (Assumption.INTRUDER_LISTED,), {"intruders": n_adversaries}
    if divergence_bound is None or divergence_bound <= 0:
        return (Assumption.INTRUDER_ANY,), {}
    far = Assumption.INTRUDER_FAR
    if has_null_events:
        far = Assumption.INTRUDER_FAR_WHERE_POSITIVE
    convex = (Assumption.DIVERGENCE_CONVEX,) if is_own_divergence else ()
    return (far, *convex), {"divergence bound": float(divergence_bound)}
