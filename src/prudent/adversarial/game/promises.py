"""What a solved game promises, in words."""

from __future__ import annotations

from prudent.core.guarantee import Guarantee, Quantity

KNOWN = "p is known exactly"
PLUG_IN = "plug-in density: the estimated probabilities are taken as exact"


def smoothed(smoothing: float) -> str:
    """What is assumed of frequencies to whose counts something was added."""
    return (
        f"plug-in density: the frequencies, {smoothing:g} added to every count, are "
        "taken as exact"
    )


def promises(
    false_alarm_rate: float,
    miss_rate: float,
    *,
    gap: float,
    known: str,
    divergence_bound: float | None,
    n_adversaries: int,
    is_soft: bool,
    is_dual: bool,
) -> tuple[Guarantee, Guarantee]:
    """False-alarm rate of ordinary events and miss rate of the best intruder.

    `known` is assumed of the target. Intruders are `n_adversaries` listed ones, or with
    0 any at the divergence bound (None: any at all). Soft rates are averages over the
    rule's coins: under one key the answers to the same events stay the same for ever.
    `is_dual` says that the miss rate was given and the false-alarm rate found.
    """

    def promise(quantity: Quantity, bound: float, *assumptions: str) -> Guarantee:
        return Guarantee(
            quantity=quantity,
            bound=bound,
            sense="<=",
            average_over="the rule's coins" if is_soft else None,
            assumptions=(known, *assumptions),
            evidence={"duality gap": gap},
            source=f"El-Yaniv and Nisenson, Theorem {46 if is_dual else 23}",
        )

    return (
        promise("false alarm rate", false_alarm_rate),
        promise("miss rate", miss_rate, _intruder(divergence_bound, n_adversaries)),
    )


def _intruder(divergence_bound: float | None, n_adversaries: int) -> str:
    if n_adversaries == 1:
        return "the intruder follows the given distribution"
    if n_adversaries:
        return (
            f"the intruder follows one of the {n_adversaries} given distributions, or "
            "mixes them"
        )
    if divergence_bound is None or divergence_bound <= 0:
        return "the intruder is any distribution over the events"
    return f"the intruder is at least {divergence_bound} away from p"
