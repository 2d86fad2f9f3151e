"""Divergences of an intruder from the target, at a point and on an edge."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["DIVERGENCES", "Divergence", "DivergenceName"]

FloatArray = NDArray[np.float64]
DivergenceName = Literal["kl", "l2", "chi2", "hellinger"]

#: Their positions are the codes of the compiled kernels.
DIVERGENCES: tuple[DivergenceName, ...] = ("kl", "l2", "chi2", "hellinger")


@dataclass(frozen=True, slots=True)
class Divergence:
    """A convex divergence D(Q || P) with the unit it is measured in.

    Parameters
    ----------
    name : {"kl", "l2", "chi2", "hellinger"}
        sum q log(q / p), sum (q - p)^2, sum q^2 / p - 1, 1 - sum sqrt(p q).
    base : float, default=2.0
        Base of the logarithm of kl, > 1; 2 measures in bits.

    Examples
    --------
    >>> import numpy as np
    >>> from prudent.adversarial.divergence import Divergence
    >>> Divergence("kl").at_points(np.array([0.25, 0.75]), 0.625)
    array([2.        , 0.4150375])
    """

    name: DivergenceName
    base: float = 2.0

    @property
    def code(self) -> int:
        """Number of this divergence in the compiled kernels."""
        return DIVERGENCES.index(self.name)

    @property
    def unit(self) -> float:
        """Factor from the unit of the bound to the unit of the kernels (nats)."""
        return math.log(self.base) if self.name == "kl" else 1.0

    def scale(self, bound: float) -> float:
        """Constant that the edge equation of chi2 and hellinger needs besides."""
        return 1.0 - bound if self.name == "hellinger" else 1.0 + bound

    def at_points(self, probability: FloatArray, sum_of_squares: float) -> FloatArray:
        """Divergence of the intruder who plays one event of this probability.

        Parameters
        ----------
        probability : ndarray of shape (n,)
            Target probability of each event, > 0.
        sum_of_squares : float
            Sum over all events of the squared target probability (l2 only).

        Returns
        -------
        ndarray of shape (n,)
            Falls with the probability.
        """
        if self.name == "kl":
            return -np.log(probability) / self.unit
        if self.name == "l2":
            return 1.0 - 2.0 * probability + sum_of_squares
        if self.name == "chi2":
            return 1.0 / probability - 1.0
        return 1.0 - np.sqrt(probability)
