"""What a cut at held-out scores promises, in words."""

from __future__ import annotations

from prudent.adversarial.density.cut import GuaranteeKind, upper_rank
from prudent.core.assumptions import Assumption
from prudent.core.guarantee import AverageOver, Guarantee


def held_out_promise(
    kind: GuaranteeKind,
    n_scores: int,
    rate: float,
    *,
    rank: int | None,
    confidence: float,
    is_fit_given: bool,
    grouped: bool,
) -> Guarantee:
    """False-alarm rate of a cut at rank k of m = `n_scores` held-out scores.

    At most the `rate` asked for, with `kind` "mean" k / (m + 1); `rank` is None for a
    randomised rule scaled to the rate, whose law is not known. `is_fit_given` says that
    only the calibration rows are drawn, not what was learnt before, `grouped` that they
    are one random row each of groups held out.

    "exact" draws one of two ranks; the evidence names the upper, whose law of the rate
    is the larger, so that a check by it never calls a true promise broken more often
    than it may.
    """
    evidence = {"calibration rows": float(n_scores)}
    bound = rate
    if rank is not None:
        if kind == "exact":
            rank = upper_rank(n_scores, rate)
        evidence["rank"] = float(rank)
        bound = rank / (n_scores + 1) if kind == "mean" else rate
    certain = kind == "high_probability"
    average_over: AverageOver = "training samples"
    rows = Assumption.INDEPENDENT if certain else Assumption.EXCHANGEABLE_NORMAL
    assumptions: tuple[Assumption, ...] = (Assumption.GROUPS if grouped else rows,)
    if is_fit_given:
        average_over = "calibration rows"
        assumptions = (*assumptions, Assumption.UNSEEN)
    return Guarantee(
        quantity="false alarm rate",
        bound=bound,
        sense="<=",
        confidence=confidence if certain else None,
        average_over=None if certain else average_over,
        assumptions=assumptions,
        unit="group" if grouped else "row",
        evidence=evidence,
        source="El-Yaniv and Nisenson, section 7, with held-out scores",
    )
