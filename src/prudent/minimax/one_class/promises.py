"""What the region of one class promises, in words."""

from __future__ import annotations

from prudent.core.guarantee import Guarantee
from prudent.core.linalg import CovarianceRule
from prudent.minimax.assumptions import Origin, known_moments

SOURCES = {
    "halfspace": "Lanckriet et al. 2002, Theorem 4",
    "ellipsoid": "multivariate Chebyshev inequality",
}


def moment_promise(
    rate: float,
    origin: Origin,
    covariance: CovarianceRule,
    with_radii: bool,
    region: str,
) -> Guarantee:
    """The promise of a region that holds for every law with the moments used."""
    known, numbers = known_moments(origin, covariance, with_radii=with_radii)
    return Guarantee(
        quantity="false alarm rate",
        bound=rate,
        sense="<=",
        assumptions=known,
        evidence=numbers,
        source=SOURCES[region],
    )
