"""On what a minimax promise rests: both halves of the family assume alike."""

from __future__ import annotations

from typing import Literal

from prudent.core.assumptions import Assumption
from prudent.core.linalg import CovarianceRule

#: Where the moments and their radii come from.
Origin = Literal["plug-in", "given", "gaussian", "bootstrap"]


def known_moments(
    origin: Origin, covariance: CovarianceRule, *, with_radii: bool, floor: float = 0.0
) -> tuple[tuple[Assumption, ...], dict[str, float]]:
    """What is taken for known about the classes, and the numbers of its sentences.

    `floor` is the share of each feature's variance that was added to covariances.
    """
    if origin == "given":
        moments = Assumption.MOMENTS_GIVEN
        if with_radii:
            moments = Assumption.MOMENTS_GIVEN_RADII
    else:
        moments = Assumption.MOMENTS_PLUG_IN
        if with_radii:
            moments = Assumption.MOMENTS_PLUG_IN_RADII
    assumptions, numbers = [moments], {}
    if isinstance(covariance, str) or callable(covariance):
        if covariance != "empirical":
            assumptions.append(Assumption.REGULARISED)
    elif covariance:
        assumptions.append(Assumption.SHRUNK)
        numbers["shrinkage"] = float(covariance)
    if floor:
        assumptions.append(Assumption.FLOORED)
        numbers["floor"] = float(floor)
    return tuple(assumptions), numbers
