"""What a solved game promises, in words."""

from __future__ import annotations

from prudent.core.assumptions import Assumption
from prudent.core.guarantee import Guarantee, Quantity


def promises(
    false_alarm_rate: float,
    miss_rate: float,
    *,
    gap: float,
    known: Assumption,
    smoothing: float,
    divergence_bound: float | None,
    n_adversaries: int,
    is_soft: bool,
    is_dual: bool,
) -> tuple[Guarantee, Guarantee]:
    """False-alarm rate of ordinary events and miss rate of the best intruder.

    `known` is assumed of the target, to whose counts `smoothing` was added. Intruders
    are `n_adversaries` listed ones, or with 0 any at the divergence bound (None: any
    at all). Soft rates are averages over the rule's coins: under one key the answers to
    the same events stay the same for ever.
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

    intruder, far = _intruder(divergence_bound, n_adversaries)
    return (
        promise("false alarm rate", false_alarm_rate),
        promise("miss rate", miss_rate, intruder, **far),
    )


def _intruder(
    divergence_bound: float | None, n_adversaries: int
) -> tuple[Assumption, dict[str, float]]:
    """What is assumed of the intruder, and the numbers of that sentence."""
    if n_adversaries == 1:
        return Assumption.INTRUDER_GIVEN, {}
    if n_adversaries:
        return Assumption.INTRUDER_LISTED, {"intruders": n_adversaries}
    if divergence_bound is None or divergence_bound <= 0:
        return Assumption.INTRUDER_ANY, {}
    return Assumption.INTRUDER_FAR, {"divergence bound": float(divergence_bound)}
