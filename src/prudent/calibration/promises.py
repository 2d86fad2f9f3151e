"""What a calibration held to rows apart promises."""

from __future__ import annotations

from prudent.core.assumptions import Assumption
from prudent.core.binomial import upper_limit
from prudent.core.guarantee import Guarantee

CONFIDENCE = 0.95


def error_promise(
    wrong: int, n_held_out: int, n_candidates: int, *, by_group: bool
) -> Guarantee:
    """Bound on the error rate from held-out rows of which `wrong` were missed.

    The kept iterate is the best of `n_candidates` on those rows, so that each
    candidate gets an equal share of the error probability.
    """
    level = (1 - CONFIDENCE) / n_candidates
    return Guarantee(
        quantity="error rate",
        sense="<=",
        bound=upper_limit(wrong, n_held_out, level=level),
        confidence=CONFIDENCE,
        assumptions=(Assumption.GROUPS if by_group else Assumption.INDEPENDENT,),
        unit="group" if by_group else "row",
        evidence={
            "calibration rows": n_held_out,
            "wrong": wrong,
            "claims": n_candidates,
            "pointwise level": level,
        },
        source="Clopper and Pearson 1934, Bonferroni over the iterates",
    )
