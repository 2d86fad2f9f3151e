"""What a solved game promises, in words."""

from __future__ import annotations

from prudent.core.guarantee import AverageOver, Guarantee

KNOWN = "p is known exactly"
PLUG_IN = "plug-in density: the estimated probabilities are taken as exact"


def smoothed(smoothing: float) -> str:
    """What is assumed of frequencies to whose counts something was added."""
    return (
        f"plug-in density: the frequencies, {smoothing:g} added to every count, are "
        "taken as exact"
    )


def intruder_at(divergence_bound: float | None) -> str:
    """What is assumed of an intruder at a distance."""
    if divergence_bound is None or divergence_bound <= 0:
        return "the intruder is any distribution over the events"
    return f"the intruder is at least {divergence_bound} away from p"


def intruder_among(n: int) -> str:
    """What is assumed of an intruder on a list."""
    if n == 1:
        return "the intruder follows the given distribution"
    return f"the intruder follows one of the {n} given distributions, or mixes them"


def promises(
    false_alarm_rate: float,
    miss_rate: float,
    *,
    gap: float,
    known: str,
    intruder: str,
    is_soft: bool,
    theorem: str,
) -> tuple[Guarantee, Guarantee]:
    """False-alarm rate and miss rate of a rule.

    Parameters
    ----------
    false_alarm_rate, miss_rate : float
        Of ordinary events, and of the best intruder.
    gap : float
        Duality gap.
    known, intruder : str
        What is assumed of the target and of the intruder.
    is_soft : bool
        The rates are averages over the rule's coins then: under one key the answers
        to the same events stay the same for ever.
    theorem : str
        Of El-Yaniv and Nisenson.
    """
    average_over: AverageOver | None = "the rule's coins" if is_soft else None
    evidence = {"duality gap": gap}
    source = f"El-Yaniv and Nisenson, {theorem}"
    return (
        Guarantee(
            quantity="false alarm rate",
            bound=false_alarm_rate,
            sense="<=",
            average_over=average_over,
            assumptions=(known,),
            evidence=evidence,
            source=source,
        ),
        Guarantee(
            quantity="miss rate",
            bound=miss_rate,
            sense="<=",
            average_over=average_over,
            assumptions=(known, intruder),
            evidence=evidence,
            source=source,
        ),
    )
