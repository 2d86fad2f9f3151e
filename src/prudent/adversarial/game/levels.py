"""Events grouped into levels of equal probability, split at the divergence bound."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from prudent.adversarial.game.divergence import Divergence
from prudent.core.types import FloatArray, IntArray
from prudent.core.validation import shown
from prudent.exceptions import InfeasibleError

_BOUND_TOL = 1e-12  # point divergences this close to the bound lie on it


@dataclass(frozen=True, slots=True)
class Events:
    """Events of a target distribution and the level each belongs to."""

    level: IntArray  # (n_events,), -1 for an event of probability 0
    share: FloatArray  # (n_events,), part of the level's mass that the event holds
    value: FloatArray  # (n_levels,), probability of one event of the level, rising
    mass: FloatArray  # (n_levels,), probability of the whole level

    @property
    def target(self) -> FloatArray:
        """Probability of each event, or of the level it stands for."""
        return self.share * self.spread(self.mass, 0.0)

    def spread(self, per_level: FloatArray, null: float) -> FloatArray:
        """Give every event its level's number, and `null` to null events."""
        return np.append(per_level, null)[self.level]

    def mean(self, per_event: FloatArray) -> FloatArray:
        """Mean of each level's events, weighted by their mass."""
        present = self.level >= 0
        shares = (per_event * self.share)[present]
        return np.bincount(self.level[present], shares).astype(np.float64)

    def smallest(self, per_event: FloatArray) -> FloatArray:
        """Smallest number among the events of each level."""
        lowest = np.full(len(self.value), np.inf)
        present = self.level >= 0
        np.minimum.at(lowest, self.level[present], per_event[present])
        return lowest

    def tied(self, tie_tol: float) -> Events:
        """Join neighbouring levels closer than `tie_tol` times their size.

        These events themselves when there are none. A level's value is the mean
        weighted by mass, as sum u (m / M): the form sum u m / M underflows for u of
        1e-300.
        """
        is_first = np.append(True, np.diff(self.value) > tie_tol * self.value[1:])
        if is_first.all():
            return self
        joined, starts = np.cumsum(is_first) - 1, np.flatnonzero(is_first)
        mass = np.add.reduceat(self.mass, starts)
        share = self.mass / mass[joined]
        return Events(
            level=np.append(joined, -1)[self.level],
            share=self.share * np.append(share, 0.0)[self.level],
            value=np.add.reduceat(self.value * share, starts),
            mass=mass,
        )


def group_events(value: FloatArray, mass: FloatArray) -> Events:
    """Group events of equal probability, by one sort.

    `value` is the probability of one event, `mass` that of all events an entry stands
    for: `value` itself, or more when an entry is a whole level already.
    """
    order = np.argsort(value)
    order = order[np.count_nonzero(value == 0) :]
    rising, rising_mass = value[order], mass[order]
    is_first = np.append(True, np.diff(rising) > 0)
    level = np.full(len(value), -1, dtype=np.intp)
    level[order] = np.cumsum(is_first) - 1
    if is_first.all():
        return Events(level, (value > 0).astype(np.float64), rising, rising_mass)
    level_mass = np.add.reduceat(rising_mass, np.flatnonzero(is_first))
    share = np.zeros(len(value))
    share[order] = rising_mass / level_mass[level[order]]
    return Events(level, share, rising[is_first], level_mass)


@dataclass(frozen=True, slots=True)
class Levels:
    """Distinct target probabilities in rising order, split at the bound.

    Levels [0, n_low) lie beyond the bound, [n_low, n_admissible) on it, the rest short
    of it.
    """

    value: FloatArray  # (n_levels,), probability of one event of the level
    mass: FloatArray  # (n_levels,), probability of the level as a whole
    reached: FloatArray  # (n_levels + 1,), mass of all levels below each, and 1
    excess: FloatArray  # (n_levels,), point divergence minus bound, in nats for kl
    n_low: int
    n_admissible: int
    code: int  # of the divergence, as the kernels number it
    scale: float  # constant of the divergence's edge equation

    @property
    def low(self) -> slice:
        """Levels which an intruder may play alone with room to spare."""
        return slice(0, self.n_low)

    @property
    def high(self) -> slice:
        """Levels too close to the target to be played alone."""
        return slice(self.n_admissible, len(self.value))

    @property
    def lets_all_in(self) -> bool:
        """Whether every distribution is far enough from the target."""
        return self.n_admissible == len(self.value)


def split_levels(
    value: FloatArray, mass: FloatArray, divergence: Divergence, bound: float
) -> Levels:
    """Split rising levels at the least divergence of an intruder, in its own unit."""
    points = divergence.at_points(value, float(mass @ value))
    distance = points - bound
    tolerance = _BOUND_TOL * max(1.0, abs(bound))
    if distance[0] < -tolerance:
        raise InfeasibleError(
            f"`divergence_bound`={shown(bound)} leaves no intruder: the largest "
            f"admissible value for this target is {float(points[0]) + 0.0!r}."
        )
    reached = np.zeros(len(mass) + 1, dtype=np.longdouble)
    np.cumsum(mass, dtype=np.longdouble, out=reached[1:])
    return Levels(
        value=value,
        mass=mass,
        reached=reached.astype(np.float64),
        excess=distance * divergence.unit,
        n_low=int(np.count_nonzero(distance > tolerance)),
        n_admissible=int(np.count_nonzero(distance >= -tolerance)),
        code=divergence.code,
        scale=divergence.scale(bound),
    )
