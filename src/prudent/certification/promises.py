"""What is promised of held-out rows, and of new ones, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from prudent.certification.thresholds import ClassCut, Threshold
from prudent.core.assumptions import Assumption
from prudent.core.binomial import upper_limit
from prudent.core.guarantee import AverageOver, Guarantee, Quantity, Unit
from prudent.core.types import BoolArray

BOUNDARY = (
    "exact boundary over all thresholds of held-out scores (prudent, user guide, "
    "certification)"
)
SHARE = "C. J. Clopper and E. S. Pearson (1934), rows above a score of unanswered rows"
EXACT = "C. J. Clopper and E. S. Pearson (1934), exact one-sided limit"
BETTING = "I. Waudby-Smith and A. Ramdas (2024), betting limit of a bounded mean"
ONE_CLASS = (
    "X. Tong, Y. Feng and J. J. Li (2018), Neyman-Pearson classification, order "
    "statistic of held-out rows of the class"
)


def selective_promises(
    bound: float,
    confidence: float,
    found: Threshold,
    n_rows: int,
    assumptions: tuple[Assumption, ...],
    *,
    pointwise_level: float | None,
) -> tuple[Guarantee, ...]:
    """Error rate of the answered rows, if any; without a level, of a given share."""
    if found.n_answered == 0:
        return ()
    evidence: dict[str, float] = {
        "calibration rows": n_rows,
        "answered": found.n_answered,
        "wrong": found.n_wrong,
    }
    if pointwise_level is not None:
        evidence["pointwise level"] = pointwise_level
    promise = Guarantee(
        quantity="selective error rate",
        bound=bound,
        sense="<=",
        confidence=confidence,
        assumptions=assumptions,
        unit=unit_of(assumptions),
        evidence=evidence,
        source=SHARE if pointwise_level is None else BOUNDARY,
    )
    return (promise,)


def class_promises(
    limits: Mapping[Any, float],
    cuts: Mapping[Any, ClassCut],
    confidence: float,
    assumptions: tuple[Assumption, ...],
    *,
    in_sets: bool,
) -> tuple[Guarantee, ...]:
    """Error of each limited class, or with sets its coverage; all hold at once."""
    return tuple(
        Guarantee(
            quantity="coverage" if in_sets else "class error rate",
            bound=1 - limit if in_sets else limit,
            sense=">=" if in_sets else "<=",
            confidence=confidence,
            assumptions=assumptions,
            unit=unit_of(assumptions),
            scope=_plain(label),
            evidence={
                "calibration rows": cuts[label].n_rows,
                "rank": cuts[label].rank,
                "claims": len(limits),
            },
            source=ONE_CLASS,
        )
        for label, limit in limits.items()
    )


@dataclass(frozen=True, slots=True, eq=False)
class Claim:
    """A rate as counted on new rows."""

    quantity: Quantity
    wrong: BoolArray  # of the rows concerned; without one nothing is promised
    scope: Any = None
    n_rows: int | None = None  # of which these were answered; None: all are concerned

    def guarantee(self, confidence: float, n_claims: int) -> Guarantee:
        """The exact limit, at a level divided among the claims."""
        n_wrong, counted = int(self.wrong.sum()), len(self.wrong)
        limit = upper_limit(n_wrong, counted, level=(1 - confidence) / n_claims)
        evidence: dict[str, float] = {"calibration rows": self.n_rows or counted}
        if self.n_rows is not None:
            evidence["answered"] = counted
        covers = self.quantity == "coverage"
        return Guarantee(
            quantity=self.quantity,
            bound=1 - limit if covers else limit,
            sense=">=" if covers else "<=",
            confidence=confidence,
            assumptions=(Assumption.INDEPENDENT, Assumption.UNSEEN),
            scope=_plain(self.scope),
            evidence={**evidence, "wrong": n_wrong, "claims": n_claims},
            source=EXACT,
        )


def cost_promise(
    limit: float, confidence: float, n_rows: int, n_claims: int, *, is_exact: bool
) -> Guarantee:
    """The mean cost of the answers; exact where costs have two values only."""
    return Guarantee(
        quantity="expected cost",
        bound=limit,
        sense="<=",
        confidence=confidence,
        assumptions=(Assumption.INDEPENDENT, Assumption.UNSEEN),
        evidence={"calibration rows": n_rows, "claims": n_claims},
        source=EXACT if is_exact else BETTING,
    )


def mixed_promise(
    bound: float,
    used: Sequence[Guarantee],
    confidence: float | None,
    average_over: AverageOver | None,
) -> Guarantee:
    """Error rate over all classes, from promises on each and limits of their shares."""
    assumptions = dict.fromkeys(a for promise in used for a in promise.assumptions)
    return Guarantee(
        quantity="error rate",
        bound=bound,
        sense="<=",
        confidence=confidence,
        average_over=average_over,
        assumptions=(*assumptions, Assumption.PRIOR_SHIFT),
        evidence={"claims": len(used)},
        source="fractional knapsack over the class shares (prudent, user guide)",
    )


def unit_of(assumptions: Sequence[str]) -> Unit:
    """What is drawn at random: a row of a new group where groups are drawn."""
    return "group" if Assumption.GROUPS in assumptions else "row"


def _plain(label: Any) -> Any:
    """A label as plain Python has it."""
    return label.item() if isinstance(label, np.generic) else label
