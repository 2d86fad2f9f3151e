"""From a target and a set of intruders to the best rule, and what it promises."""

from __future__ import annotations

import math

from prudent.adversarial.game.laws import Divergence, OwnDivergence, extreme_intruders
from prudent.adversarial.game.model import (
    FarIntruders,
    ListedIntruders,
    Model,
    Strategy,
)
from prudent.adversarial.game.solver import group_events, split_levels
from prudent.core.assumptions import Assumption
from prudent.core.guarantee import Guarantee, Quantity
from prudent.core.types import FloatArray


def learn(
    value: FloatArray,
    mass: FloatArray,
    *,
    known: Assumption,
    smoothing: float,
    divergence: Divergence | OwnDivergence,
    divergence_bound: float | None,
    adversaries: FloatArray | None,
    strategy: Strategy,
    tie_tol: float,
    false_alarm_rate: float | None,
    miss_rate: float | None,
) -> tuple[Model, tuple[Guarantee, Guarantee]]:
    """Solve the game for a false-alarm rate, or for a miss rate.

    Parameters
    ----------
    value : ndarray of shape (n_events,)
        Probability of one event of each entry.
    mass : ndarray of shape (n_events,)
        Probability of all events that the entry stands for; `value` where it is one.
    known : Assumption
        What is assumed of the target.
    smoothing : float
        What was added to the counts that it was estimated from.
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
    model : Model
    guarantees : tuple of Guarantee
        Of the false-alarm rate and of the miss rate.

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
    model = Model(rule, mass, len(tied.value), intruders)
    guarantees = promises(
        model,
        known=known,
        smoothing=smoothing,
        divergence=divergence,
        divergence_bound=divergence_bound,
        n_adversaries=0 if adversaries is None else len(adversaries),
        is_soft=strategy == "soft",
        false_alarm_rate=false_alarm_rate,
    )
    return model, guarantees


# --- promises: both rates of a solved game --------------------------------------------


def promises(
    model: Model,
    *,
    known: Assumption,
    smoothing: float,
    divergence: Divergence | OwnDivergence,
    divergence_bound: float | None,
    n_adversaries: int,
    is_soft: bool,
    false_alarm_rate: float | None,
) -> tuple[Guarantee, Guarantee]:
    """False-alarm rate of ordinary events and miss rate of the best intruder.

    `known` is assumed of the target, to whose counts `smoothing` was added. Intruders
    are `n_adversaries` listed ones, or with 0 any at the divergence bound (None: any
    at all), measured on the events of positive probability where there are others.
    Soft rates are averages over the rule's coins: under one key the answers to the same
    events stay the same for ever. Without a `false_alarm_rate` the miss rate was given
    and the other found.
    """
    evidence = {"duality gap": model.gap}
    if known is Assumption.EVENTS_SMOOTHED:
        evidence["smoothing"] = smoothing
    intruder: tuple[Assumption, ...] = (Assumption.INTRUDER_ANY,)
    far: dict[str, float] = {}
    if n_adversaries == 1:
        intruder = (Assumption.INTRUDER_GIVEN,)
    elif n_adversaries:
        intruder, far = (Assumption.INTRUDER_LISTED,), {"intruders": n_adversaries}
    elif divergence_bound is not None and divergence_bound > 0:
        far = {"divergence bound": float(divergence_bound)}
        intruder = (Assumption.INTRUDER_FAR,)
        if (model.target == 0).any():
            intruder = (Assumption.INTRUDER_FAR_WHERE_POSITIVE,)
        if not isinstance(divergence, Divergence):
            intruder = (*intruder, Assumption.DIVERGENCE_CONVEX)

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
            source="El-Yaniv and Nisenson, Theorem "
            + ("46" if false_alarm_rate is None else "23"),
        )

    rate = model.false_alarm_rate if false_alarm_rate is None else false_alarm_rate
    return (
        promise("false alarm rate", rate),
        promise("miss rate", 1 - model.rule.value, *intruder, **far),
    )
