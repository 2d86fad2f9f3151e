"""What the region of one class promises, in words."""

from __future__ import annotations

from prudent.core.guarantee import Guarantee
from prudent.minimax.assumptions import Origin, known_moments

SOURCES = {
    "halfspace": "Lanckriet et al. 2002, Theorem 4",
    "ellipsoid": "multivariate Chebyshev inequality",
}


def moment_promise(
    rate: float, origin: Origin, changes: str, with_radii: bool, region: str
) -> Guarantee:
    """The promise of a region that holds for every law with the moments used."""
    return Guarantee(
        quantity="false alarm rate",
        bound=rate,
        sense="<=",
        assumptions=(known_moments(origin, changes, with_radii),),
        source=SOURCES[region],
    )


def calibrated_promise(
    rate: float, n_calibration: int, rank: int, *, grouped: bool
) -> Guarantee:
    """The promise of a threshold at an order statistic of held-out scores."""
    assumptions = ["new rows are exchangeable with the training rows"]
    if grouped:
        assumptions = [
            "groups are independent draws from one population",
            "the new row is a random row of a new group",
        ]
    return Guarantee(
        quantity="false alarm rate",
        bound=rate,
        sense="<=",
        average_over="training samples",
        assumptions=tuple(assumptions),
        evidence={"calibration rows": float(n_calibration), "rank": float(rank)},
        source="order statistic of held-out scores (split conformal)",
    )
