"""What the family promises, in words and figures."""

from __future__ import annotations

from prudent.adversarial.thresholds import GuaranteeKind
from prudent.core.guarantee import Guarantee

__all__ = ["game_promises", "held_out_promise"]


def game_promises(
    rate: float, miss_rate: float, gap: float, bound: float | None, *, plug_in: bool
) -> tuple[Guarantee, Guarantee]:
    """False-alarm rate and miss rate of a solved game, over the rule's coins.

    Parameters
    ----------
    rate, miss_rate : float
        Largest false-alarm rate and the miss rate of the best intruder.
    gap : float
        Duality gap.
    bound : float or None
        Least divergence of an intruder; None: any intruder.
    plug_in : bool
        Whether the target was estimated.
    """
    known = "p is known exactly"
    if plug_in:
        known = "plug-in density: the estimated probabilities are taken as exact"
    distance = f"the intruder is at least {bound} away from p"
    if bound is None:
        distance = "the intruder is any distribution over the events"
    evidence = {"duality gap": gap}
    source = "El-Yaniv and Nisenson, Theorem 23"
    return (
        Guarantee(
            quantity="false alarm rate",
            bound=rate,
            sense="<=",
            assumptions=(known,),
            evidence=evidence,
            source=source,
        ),
        Guarantee(
            quantity="miss rate",
            bound=miss_rate,
            sense="<=",
            assumptions=(known, distance),
            evidence=evidence,
            source=source,
        ),
    )


def held_out_promise(
    kind: GuaranteeKind, n_scores: int, rank: int | None, rate: float, confidence: float
) -> Guarantee:
    """False-alarm rate of a cut at the rank-th of `n_scores` held-out scores.

    Parameters
    ----------
    kind : {"mean", "high_probability", "exact"}
        How the rank was chosen.
    n_scores : int
        Calibration rows m.
    rank : int or None
        k; None for a randomised rule scaled to `rate`.
    rate : float
        False-alarm rate asked for; with `kind` "mean" the bound is k / (m + 1).
    confidence : float
        For "high_probability".
    """
    evidence = {"calibration size": float(n_scores), "k": float(rank or 0)}
    exact_mean = kind == "mean" and rank is not None
    return Guarantee(
        quantity="false alarm rate",
        bound=evidence["k"] / (n_scores + 1) if exact_mean else rate,
        sense="<=",
        confidence=confidence if kind == "high_probability" else None,
        assumptions=("future normal rows are exchangeable with the training rows",),
        evidence=evidence,
        source="El-Yaniv and Nisenson, section 7, with held-out scores",
    )
