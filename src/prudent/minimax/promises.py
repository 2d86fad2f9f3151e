"""What a minimax plane promises, in words that say on what it rests."""

from __future__ import annotations

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
Ground = Literal["plug-in", "given", "gaussian", "bootstrap"]
SOURCE = "Lanckriet et al. 2002, Theorem 2"


def class_guarantees(
    labels: NDArray[Any],
    errors: NDArray[np.float64],
    *,
    ground: Ground,
    with_radii: bool,
    confidence: float,
    evidence: dict[str, float],
) -> tuple[Guarantee, ...]:
    """One promise for each class: its error rate is at most `errors[k]`."""
    measured = ground in ("gaussian", "bootstrap")
    return tuple(
        Guarantee(
            quantity="class error rate",
            bound=float(error),
            sense="<=",
            confidence=confidence if measured else None,
            assumptions=_assumptions(ground, with_radii),
            scope=label,
            evidence=evidence,
            source=SOURCE,
        )
        for label, error in zip(labels.tolist(), errors, strict=True)
    )


def _assumptions(ground: Ground, with_radii: bool) -> tuple[str, ...]:
    if ground == "gaussian":
        return (
            "the rows of each class are independent and close enough to normal for "
            "the radii of their mean and covariance to hold",
        )
    if ground == "bootstrap":
        return (
            "the rows of each class are independent",
            "resampling them shows how far their covariance errs",
        )
    if ground == "given":
        if with_radii:
            return (
                "the class means and covariances lie within the radii of those given",
            )
        return ("the class means and covariances are exactly those given",)
    if with_radii:
        return (
            "the class means and covariances lie within the given radii of their "
            "plug-in estimates",
        )
    return ("the class means and covariances equal their plug-in estimates",)


def moment_false_alarm_guarantee(
    rate: float, ground: Ground, with_radii: bool, source: str
) -> tuple[Guarantee, ...]:
    """The promise of a region that holds for every law with the moments used."""
    return (
        Guarantee(
            quantity="false alarm rate",
            bound=rate,
            sense="<=",
            assumptions=_assumptions(ground, with_radii),
            source=source,
        ),
    )


def calibrated_false_alarm_guarantee(
    rate: float, n_calibration: int
) -> tuple[Guarantee, ...]:
    """The promise of a threshold at an order statistic of held-out scores."""
    return (
        Guarantee(
            quantity="false alarm rate",
            bound=rate,
            sense="<=",
            assumptions=(
                "new rows are exchangeable with the training rows, on average over "
                "the held-out rows",
            ),
            evidence={"n_calibration": float(n_calibration)},
            source="order statistic of held-out scores (split conformal)",
        ),
    )
