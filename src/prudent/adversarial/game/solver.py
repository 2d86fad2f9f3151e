"""The rejection game on a finite event space, solved exactly.

Events of equal probability form a level; levels are split at the divergence bound. The
learner rejects event i with probability r_i, at most `rate` of the target's mass in
all; an intruder who sees the target and r then picks the distribution Q, at divergence
>= `bound` from the target, that is rejected least. Write r = z + a on the low levels
(point divergence above the bound), r = z - b on the high ones. Duality turns the game
into a transport problem from low to high levels, whose one-parameter family of greedy
solutions is the whole security curve; see the user guide for the formulas (S), (A2),
(A3), (A4) cited below.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from prudent.adversarial.game.laws import Divergence, bound_tolerance
from prudent.core.types import FloatArray, IntArray
from prudent.core.validation import shown
from prudent.exceptions import InfeasibleError

# --- events in levels -----------------------------------------------------------------


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
        """Mean of numbers per event over each level, weighted by mass, (n_levels,)."""
        present = self.level >= 0
        shares = (per_event * self.share)[present]
        return np.bincount(self.level[present], shares).astype(np.float64)

    def smallest(self, per_event: FloatArray) -> FloatArray:
        """Smallest number per event in each level, (n_levels,)."""
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
        """Whether every distribution is far enough from the target to be played."""
        return self.n_admissible == len(self.value)


def split_levels(
    value: FloatArray, mass: FloatArray, divergence: Divergence, bound: float
) -> Levels:
    """Split rising levels at the least divergence of an intruder.

    Parameters
    ----------
    value, mass : ndarray of shape (n_levels,)
        Probability of one event of the level, rising, and of the whole level.
    divergence : Divergence
    bound : float
        In the unit of the divergence.

    Raises
    ------
    InfeasibleError
        If no intruder is as far as the bound, not even one on the least probable event.
    """
    points = divergence.at_points(value, float(mass @ value))
    distance = points - bound
    tolerance = bound_tolerance(bound)
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


# --- the game -------------------------------------------------------------------------


_GAP_TOL = 1e-13  # relative duality gap at which the search stops
_MAX_PASSES = 200  # about 20 are seen; the certificate holds after any number


@dataclass(frozen=True, slots=True)
class _Breakpoint:
    """A vertex (rate, value) of the security curve and the line it lies on.

    For every game: rate + bought >= value * weight, with equality here (S).
    """

    bought: float  # v of (S)
    served: float  # 1 - U(v); never as a difference, which one tiny low event makes 0
    end: int  # high level at which the supply ran out
    partly: float  # the part of its demand that is served
    rate: float
    rejection: FloatArray
    price: float = math.inf  # -1 / U'(v)

    @property
    def value(self) -> float:
        """Rejection rate of the best intruder."""
        return 1.0 if self.price == math.inf else self.price / (1 + self.price)

    @property
    def weight(self) -> float:
        """1 - U(v) + v."""
        return self.served + self.bought

    def bound(self, rate: float) -> float:
        """Upper bound (S) of the game's value at this false-alarm rate."""
        return min(1.0, (rate + self.bought) / self.weight)


def solve_game(
    levels: Levels, rate: float
) -> tuple[FloatArray, float, float, FloatArray, bool]:
    """Solve the randomised game for the largest target mass to reject, in [0, 1].

    O(n_levels) a pass of the greedy fill, about 20 passes (A3). The relative gap
    (upper_bound - value) / value is about 1e-13.

    Returns
    -------
    rejection : ndarray of shape (n_levels,)
        Probability of rejecting an event of each level.
    value : float
        Least rejection rate over all admissible intruders, attained.
    upper_bound : float
        Of the game's value, from the dual.
    mixture : ndarray of shape (n_levels,)
        Intruder mass on each level, of sum 1: the mixture of best intruders against
        which no rejection does better than `upper_bound`.
    is_trivial : bool
        Whether rejecting everything alike is optimal, then at every rate.
    """
    first = _first_breakpoint(levels)
    if first is None:
        everywhere = np.full(len(levels.value), float(rate))
        return everywhere, rate, rate, levels.mass.copy(), True
    if rate <= first.rate:
        # The ray from the origin to the first breakpoint.
        best, share = first, rate / first.rate
        rejection, value = share * first.rejection, share * first.value
    else:
        low, high, best, share = _search(first, levels, attrgetter("rate"), rate)
        rejection = (1 - share) * low.rejection + share * high.rejection
        value = (1 - share) * low.value + share * high.value
    rejection, value = np.minimum(1.0, rejection), min(1.0, value)
    return rejection, value, best.bound(rate), _mixture(levels, best), False


def least_rate(levels: Levels, value: float) -> float:
    """Least false-alarm rate at which every intruder is rejected at rate `value`."""
    first = _first_breakpoint(levels)
    if first is None:
        return value
    if value <= first.value:
        return value * first.weight
    low, high, _, share = _search(first, levels, attrgetter("value"), value)
    return (1 - share) * low.rate + share * high.rate


def curve_values(levels: Levels, rates: FloatArray) -> FloatArray:
    """Values of the randomised game for many false-alarm rates.

    The best v rises with the rate, so each search starts where the last ended.
    """
    first = _first_breakpoint(levels)
    if first is None:
        return rates.copy()
    values = np.minimum(1.0, rates / first.weight)
    low = first
    for i in np.argsort(rates):
        if rates[i] > first.rate:
            low, high, _, share = _search(low, levels, attrgetter("rate"), rates[i])
            values[i] = (1 - share) * low.value + share * high.value
    return values


def critical_divergence(
    value: FloatArray, mass: FloatArray, divergence: Divergence
) -> float:
    """Largest divergence bound at which the game is still trivial.

    Up to it nothing beats rejecting every event alike. Bisection to the last bit,
    one pass each. `value` and `mass` as for `group_events`.
    """
    events = group_events(value, mass)
    value, mass = events.value, events.mass
    points = divergence.at_points(value, float(mass @ value))
    trivial, beyond = float(points[-1]), float(points[0])
    while True:
        middle = (trivial + beyond) / 2
        if not trivial < middle < beyond:
            return trivial
        if _first_breakpoint(split_levels(value, mass, divergence, middle)) is None:
            trivial = middle
        else:
            beyond = middle


def _first_breakpoint(levels: Levels) -> _Breakpoint | None:
    """Breakpoint of v = 0; None when the game is trivial: U(0) = 0."""
    if levels.lets_all_in:
        return None
    if levels.n_low == 0:
        # The intruder can only play the level on the bound: that goes first.
        rejection = np.zeros(len(levels.value))
        rejection[: levels.n_admissible] = 1.0
        rate = float(levels.mass @ rejection)
        return _Breakpoint(0.0, rate, levels.n_admissible, 0.0, rate, rejection)
    point = _breakpoint(levels, 0.0)
    return point if point.served < levels.reached[-1] else None


def _breakpoint(levels: Levels, bought: float) -> _Breakpoint:
    """One greedy fill with `bought` extra units of the lowest level (A3)."""
    from prudent.adversarial.game.kernels import fill

    mass, rejection = levels.mass, np.empty(len(levels.mass))
    sides = levels.n_low, levels.n_admissible
    end, partly, price = fill(
        levels.code, levels.scale, levels.excess, mass, *sides, bought, rejection
    )
    if end == len(mass):
        return _everything(levels, bought)
    served = float(levels.reached[end]) + partly
    rate = float(mass @ rejection)
    return _Breakpoint(bought, served, end, partly, rate, rejection, price)


def _everything(levels: Levels, bought: float) -> _Breakpoint:
    """Last breakpoint of every curve: reject all, value 1 at rate 1."""
    n, served = len(levels.value), float(levels.reached[-1])
    return _Breakpoint(bought, served, n, 0.0, 1.0, np.ones(n))


def _search(
    low: _Breakpoint,
    levels: Levels,
    coordinate: Callable[[_Breakpoint], float],
    target: float,
) -> tuple[_Breakpoint, _Breakpoint, _Breakpoint, float]:
    """Breakpoints around the point of the curve where `coordinate` is `target`.

    U is convex: the next v is where its tangents at the two ends meet, which ends
    the search once the ends are neighbours.

    Returns both ends, the breakpoint of the least upper bound, and the point's
    share of the way from the lower end to the upper.
    """
    high, best, n_passes = _everything(levels, math.inf), low, 0
    while True:
        share = (target - coordinate(low)) / (coordinate(high) - coordinate(low))
        rate = (1 - share) * low.rate + share * high.rate
        value = (1 - share) * low.value + share * high.value
        bought = _tangents_meet(low, high)
        if (
            best.bound(rate) - value <= _GAP_TOL * value
            or not low.bought < bought < high.bought  # no float lies between
            or n_passes == _MAX_PASSES
        ):
            return low, high, best, share
        n_passes += 1
        point = _breakpoint(levels, bought)
        if coordinate(point) < target:
            low = point
        else:
            high = point
        best = min(best, point, key=lambda known: known.bound(rate))


def _tangents_meet(low: _Breakpoint, high: _Breakpoint) -> float:
    """Meeting point in v of the tangents of U.

    By (S) that of 1 - U is at rate / value where v = 0: 1 - U(v) itself, less what was
    bought, would lose it where the low levels are tiny.
    """
    drop = high.rate / high.value - low.rate / low.value
    bend = 1 / low.price - 1 / high.price
    return drop / bend if bend > 0 else low.bought


def _mixture(levels: Levels, point: _Breakpoint) -> FloatArray:
    """Intruder mass of each level against which (S) is attained."""
    mixture = levels.mass.copy()
    mixture[0] += point.bought
    if point.end < len(mixture):
        mixture[point.end] = point.partly
        mixture[point.end + 1 :] = 0.0
    return mixture / point.weight
