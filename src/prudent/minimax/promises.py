"""What a minimax plane promises, in words that say on what it rests."""

from __future__ import annotations

from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from prudent.core.guarantee import Guarantee

__all__ = [
    "Ground",
    "calibrated_false_alarm_guarantee",
    "class_guarantees",
    "moment_false_alarm_guarantee",
]

#: Where the moments and their radii come from.
Ground = Literal["plug-in", "given", "gaussian"]
PLAIN_SOURCE = "Lanckriet et al. 2002, Theorem 2"
ROBUST_SOURCE = "Lanckriet et al. 2002, Theorem 3"
NORMALITY = "the rows of each class are independent draws from a normal law"


def class_guarantees(
    labels: NDArray[Any],
    errors: NDArray[np.float64],
    *,
    ground: Ground,
    changes: str = "",
    with_radii: bool,
    confidence: float | None,
    evidence: dict[str, float],
) -> tuple[Guarantee, ...]:
    """One promise for each class: its error rate is at most `errors[k]`.

    `confidence` None: no probability over the training rows. `changes` says what was
    done to the covariances, in the words of `changed_covariances`.
    """
    sure = ground == "gaussian" and confidence is not None
    return tuple(
        Guarantee(
            quantity="class error rate",
            bound=float(error),
            sense="<=",
            confidence=confidence if sure else None,
            assumptions=(NORMALITY,)
            if sure
            else (_known(ground, changes, with_radii),),
            scope=label,
            evidence=evidence,
            source=ROBUST_SOURCE if with_radii else PLAIN_SOURCE,
        )
        for label, error in zip(labels.tolist(), errors, strict=True)
    )


def changed_covariances(covariance: Any, floor: float = 0.0) -> str:
    """What a setting and a floor did to the covariances, "" for nothing."""
    changes = []
    if isinstance(covariance, Real):
        if covariance:
            changes.append(f"shrunk by {float(covariance):g} towards their diagonal")
    elif covariance != "empirical":
        changes.append(f"regularised by covariance={covariance!r}")
    if floor:
        changes.append(f"with {floor:g} of each feature's variance added")
    return ", ".join(changes)


def _known(ground: Ground, changes: str, with_radii: bool) -> str:
    """What is taken for known about the classes."""
    if ground == "given":
        moments = "those given"
        verb = "lie within the radii of" if with_radii else "are exactly"
    else:
        moments = "their plug-in estimates"
        verb = "lie within the given radii of" if with_radii else "equal"
    sentence = f"the class means and covariances {verb} {moments}"
    return f"{sentence}, the covariances {changes}" if changes else sentence


def moment_false_alarm_guarantee(
    rate: float, ground: Ground, changes: str, with_radii: bool, source: str
) -> tuple[Guarantee, ...]:
    """The promise of a region that holds for every law with the moments used."""
    return (
        Guarantee(
            quantity="false alarm rate",
            bound=rate,
            sense="<=",
            assumptions=(_known(ground, changes, with_radii),),
            source=source,
        ),
    )


def calibrated_false_alarm_guarantee(
    rate: float, n_calibration: int, rank: int, *, grouped: bool = False
) -> tuple[Guarantee, ...]:
    """The promise of a threshold at an order statistic of held-out scores."""
    assumptions = ["new rows are exchangeable with the training rows"]
    if grouped:
        assumptions = [
            "groups are independent draws from one population",
            "the new row is a random row of a new group",
        ]
    return (
        Guarantee(
            quantity="false alarm rate",
            bound=rate,
            sense="<=",
            average_over="training samples",
            assumptions=tuple(assumptions),
            evidence={"calibration rows": float(n_calibration), "rank": float(rank)},
            source="order statistic of held-out scores (split conformal)",
        ),
    )
