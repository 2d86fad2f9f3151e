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
    """False-alarm rate and miss rate of a rule.

    Parameters
    ----------
    false_alarm_rate, miss_rate : float
        Of ordinary events, and of the best intruder.
    gap : float
        Duality gap.
    known : str
        What is assumed of the target.
    divergence_bound : float or None
        Least divergence of an intruder; None: any intruder.
    n_adversaries : int
        Length of the list of intruders; 0: no list.
    is_soft : bool
        The rates are averages over the rule's coins then: under one key the answers
        to the same events stay the same for ever.
    is_dual : bool
        Whether the miss rate was given and the false-alarm rate found.
    """
    average_over: AverageOver | None = "the rule's coins" if is_soft else None
    evidence = {"duality gap": gap}
    source = f"El-Yaniv and Nisenson, Theorem {46 if is_dual else 23}"
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
            assumptions=(known, _intruder(divergence_bound, n_adversaries)),
            evidence=evidence,
            source=source,
        ),
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
