"""What a minimax plane promises, in words that say on what it rests."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from prudent.core.guarantee import Guarantee

__all__ = ["Ground", "class_guarantees"]

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
