"""What the rejection game on an estimated density promises."""

from __future__ import annotations

from prudent.core.assumptions import Assumption
from prudent.core.guarantee import Guarantee
from prudent.rules.rule import Terms


def soft_promise(rate: float, n_scores: int, terms: Terms) -> Guarantee:
    """False-alarm rate of a randomised rule scaled to it by `n_scores` held-out rows.

    The law of the rate of one fit is not known: there is no rank.
    """
    return terms.promise(
        "false alarm rate",
        rate,
        Assumption.EXCHANGEABLE_NORMAL,
        evidence={"calibration rows": float(n_scores)},
        source="El-Yaniv and Nisenson, section 7, with held-out scores",
    )
