"""What is promised of held-out rows, and of new ones, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from prudent.core.assumptions import Assumption
from prudent.core.binomial import upper_limit
from prudent.core.guarantee import AverageOver, Guarantee, Quantity
from prudent.core.types import BoolArray

EXACT = "C. J. Clopper and E. S. Pearson (1934), exact one-sided limit"
BETTING = "I. Waudby-Smith and A. Ramdas (2024), betting limit of a bounded mean"


@dataclass(frozen=True, slots=True, eq=False)
class Claim:
    """A rate as counted on new rows."""

    quantity: Quantity
    wrong: BoolArray  # of the rows concerned; without one nothing is promised
    scope: Any = None
    n_rows: int | None = None  # of which these were answered; None: all are concerned
    n_classes: int | None = None  # that the model knows; None: of no single class
    subgroup: str | None = None

    def guarantee(
        self, confidence: float, n_claims: int, *, grouped: bool = False
    ) -> Guarantee:
        """The exact limit, at a level divided among the claims.

        `grouped` rows are one random row each of groups.
        """
        n_wrong, counted = int(self.wrong.sum()), len(self.wrong)
        limit = upper_limit(n_wrong, counted, level=(1 - confidence) / n_claims)
        evidence: dict[str, float] = {"calibration rows": self.n_rows or counted}
        if self.n_rows is not None:
            evidence["answered"] = counted
        if self.n_classes is not None:
            evidence["classes"] = self.n_classes
        covers = self.quantity == "coverage"
        return Guarantee(
            quantity=self.quantity,
            bound=1 - limit if covers else limit,
            sense=">=" if covers else "<=",
            confidence=confidence,
            assumptions=new_rows(grouped),
            scope=_plain(self.scope),
            subgroup=self.subgroup,
            unit="group" if grouped else "row",
            evidence={**evidence, "wrong": n_wrong, "claims": n_claims},
            source=EXACT,
        )


def new_rows(grouped: bool) -> tuple[Assumption, Assumption]:
    """What is assumed of rows that certify a model."""
    drawn = Assumption.GROUPS if grouped else Assumption.INDEPENDENT
    return drawn, Assumption.UNSEEN


def cost_promise(
    limit: float,
    confidence: float,
    n_rows: int,
    n_claims: int,
    *,
    is_exact: bool,
    grouped: bool,
) -> Guarantee:
    """The mean cost of the answers; exact where costs have two values only."""
    return Guarantee(
        quantity="expected cost",
        bound=limit,
        sense="<=",
        confidence=confidence,
        assumptions=new_rows(grouped),
        unit="group" if grouped else "row",
        evidence={"calibration rows": n_rows, "claims": n_claims},
        source=EXACT if is_exact else BETTING,
    )


def mixed_promise(
    bound: float,
    used: Sequence[Guarantee],
    confidence: float | None,
    average_over: AverageOver | None,
    as_they_hold: tuple[str, ...],
) -> Guarantee:
    """Error rate over all classes, from promises on each and limits of their shares.

    `as_they_hold` says how the promise of each class holds, where they differ.
    """
    # A sentence with a number of one promise stays as it is.
    assumed = dict.fromkeys(
        a if a == said else said
        for promise in used
        for a, said in zip(promise.assumptions, promise.assumed, strict=True)
    )
    return Guarantee(
        quantity="error rate",
        bound=bound,
        sense="<=",
        confidence=confidence,
        average_over=average_over,
        assumptions=(*assumed, *as_they_hold, Assumption.PRIOR_SHIFT),
        subgroup=used[0].subgroup if used else None,
        unit=used[0].unit if used else "row",
        evidence={"claims": len(used)},
        source="fractional knapsack over the class shares (prudent, user guide)",
    )


def _plain(label: Any) -> Any:
    """A label as plain Python has it."""
    return label.item() if isinstance(label, np.generic) else label
