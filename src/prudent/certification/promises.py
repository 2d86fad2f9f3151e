"""What the family promises, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from prudent.certification.class_thresholds import ClassCut
from prudent.certification.thresholds import Threshold
from prudent.core.guarantee import Guarantee

BOUNDARY = (
    "exact boundary over all thresholds of held-out scores (prudent, user guide, "
    "certification)"
)
SHARE = "C. J. Clopper and E. S. Pearson (1934), rows above a score of unanswered rows"
ONE_CLASS = (
    "X. Tong, Y. Feng and J. J. Li (2018), Neyman-Pearson classification, order "
    "statistic of held-out rows of the class"
)


def selective_promises(
    bound: float,
    confidence: float,
    found: Threshold,
    n_rows: int,
    assumptions: tuple[str, ...],
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
        evidence=evidence,
        source=SHARE if pointwise_level is None else BOUNDARY,
    )
    return (promise,)


def class_promises(
    limits: Mapping[Any, float],
    cuts: Mapping[Any, ClassCut],
    confidence: float,
    assumptions: tuple[str, ...],
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
            scope=label.item() if isinstance(label, np.generic) else label,
            evidence={
                "calibration rows": cuts[label].n_rows,
                "rank": cuts[label].rank,
                "claims": len(limits),
            },
            source=ONE_CLASS,
        )
        for label, limit in limits.items()
    )
