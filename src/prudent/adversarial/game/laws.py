"""Distributions over events: checked, apart from one another, of many observations.

A divergence of one's own is met by a finite list that stands for all far intruders: for
a divergence that is convex in the intruder, the laws at a distance of the bound or more
are what a convex set leaves of the simplex, and every rule meets a worst one of them on
an edge (Theorem 19): on an event that is far enough alone, or on a far and a near
event, mixed so that the bound is just met (Lemma 22). Against this list the game is the
linear programme of Theorem 23.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain, combinations, permutations
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import rel_entr
from scipy.stats import multinomial

from prudent.core.binomial import check_fraction, fewest_rows, high_probability_rank
from prudent.core.types import BoolArray, FloatArray, IntArray
from prudent.core.validation import shown
from prudent.exceptions import InfeasibleError

DivergenceName = Literal["kl", "l2", "chi2", "hellinger"]
#: Divergence of each law in the rows of the first argument from the second, all of
#: whose probabilities are positive.
OwnDivergence = Callable[[FloatArray, FloatArray], FloatArray]

#: Their positions are the codes of the compiled kernels.
DIVERGENCES: tuple[DivergenceName, ...] = get_args(DivergenceName)

_SUM_TOL = 1e-8
SMALLEST = 1e-300  # below it 1 / p overflows
_HALVINGS = 1100  # to the last bit of any float; an edge takes 50 to 70
_CONVEX_ROUNDING = 1e-9  # relative; what a convex function may be off by
_MOST_TYPES = 1_000_000
#: Probabilities that differ by less than this share of the larger are taken for equal.
ROUNDING = 1e-12


# --- from what a caller has to probabilities, checked ---------------------------------


def check_probabilities(p: ArrayLike, name: str = "p") -> FloatArray:
    """Check a probability vector and rescale a sum off 1 by rounding."""
    return _normalised(_checked_sum(p, name), name)


def check_distributions(laws: ArrayLike, n_events: int, name: str) -> FloatArray:
    """Check one distribution over the events, or one a row; always of two axes."""
    rows = np.asarray(laws, dtype=np.float64)
    if rows.ndim == 1:
        rows = rows[np.newaxis]
    if rows.ndim != 2 or not len(rows) or rows.shape[1] != n_events:
        raise ValueError(
            f"`{name}` must hold distributions over {n_events} events, one a row, got "
            f"shape {np.shape(laws)}."
        )
    names = [name] if len(rows) == 1 else [f"{name}[{i}]" for i in range(len(rows))]
    for row, label in zip(rows, names, strict=True):
        _checked_sum(row, label)
    return rows / rows.sum(axis=1, keepdims=True)


def frequencies(counts: ArrayLike, smoothing: float) -> FloatArray:
    """Share (counts + smoothing) / total of each event."""
    if not 0 <= smoothing < np.inf:
        raise ValueError(f"`smoothing` must be a number >= 0, got {shown(smoothing)}.")
    weights = _check_weights(counts, "counts")
    with np.errstate(over="ignore"):
        return _normalised(weights + smoothing, "counts")


def level_masses(values: ArrayLike, masses: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Check levels given as event probability and total mass."""
    value, mass = (
        _check_weights(values, "values"),
        check_probabilities(masses, "masses"),
    )
    if value.shape != mass.shape:
        raise ValueError(
            "`values` and `masses` must have the same length, got "
            f"{len(value)} and {len(mass)}."
        )
    disagree = (value >= SMALLEST) != (mass > 0)
    if disagree.any():
        at = int(np.flatnonzero(disagree)[0])
        raise ValueError(
            f"`values` and `masses` must be both 0 or both at least {SMALLEST}, "
            f"got {float(value[at])!r} and {float(mass[at])!r} at level {at}."
        )
    return value, mass


def cell_probabilities(density: ArrayLike, cell_volumes: ArrayLike) -> FloatArray:
    """Probability density x volume of each cell, normalised."""
    heights = _check_weights(density, "density")
    volumes = _check_weights(np.atleast_1d(cell_volumes), "cell_volumes")
    if len(volumes) not in (1, len(heights)) or not (volumes > 0).all():
        raise ValueError(
            f"`cell_volumes` must be one positive number or {len(heights)} of them, "
            f"got {volumes.tolist()}."
        )
    # Scaled by powers of two, which is exact, so that no product overflows.
    exponents = np.frexp(heights.max())[1], np.frexp(volumes.max())[1]
    return _normalised(
        np.ldexp(heights, -exponents[0]) * np.ldexp(volumes, -exponents[1]), "density"
    )


def _checked_sum(p: ArrayLike, name: str) -> FloatArray:
    """Weights whose sum is 1 up to rounding, or a ValueError."""
    mass = _check_weights(p, name)
    with np.errstate(over="ignore"):
        total = float(mass.sum())
    if abs(total - 1) > _SUM_TOL:
        raise ValueError(f"`{name}` must sum to 1, got a sum of {shown(total)}.")
    return mass


def check_unit_interval(
    values: ArrayLike, what: str, length: int | None = None
) -> FloatArray:
    """Check a vector of numbers in [0, 1]; `what` begins the error's sentence."""
    vector = np.asarray(values, dtype=np.float64)
    if vector.ndim != 1 or (length is not None and len(vector) != length):
        raise ValueError(f"{what} in [0, 1], got shape {vector.shape}.")
    inside = (vector >= 0) & (vector <= 1)
    if not inside.all():
        at = int(np.flatnonzero(~inside)[0])
        raise ValueError(f"{what} in [0, 1], got {float(vector[at])!r} at {at}.")
    return vector


def _check_weights(weights: ArrayLike, name: str) -> FloatArray:
    """A vector of finite numbers >= 0, (n,), or a ValueError."""
    vector = np.asarray(weights, dtype=np.float64)
    if vector.ndim != 1 or not len(vector):
        raise ValueError(
            f"`{name}` must be a non-empty vector, got shape {vector.shape}."
        )
    lowest, highest = float(vector.min()), float(vector.max())
    if not (lowest >= 0 and highest < np.inf):
        bad = int(np.flatnonzero(~((vector >= 0) & (vector < np.inf)))[0])
        raise ValueError(
            f"`{name}` must hold finite numbers >= 0, got {float(vector[bad])!r} at "
            f"{bad}."
        )
    return vector


def _normalised(weights: FloatArray, name: str) -> FloatArray:
    """Weights divided by their sum, (n,); refuses positive ones below 1e-300."""
    highest = float(weights.max())
    if not 0 < highest < np.inf:
        raise ValueError(
            f"`{name}` must have a positive finite sum, got {shown(highest)}."
        )
    # Scaled by a power of two, which is exact, so that no sum overflows.
    scaled = np.ldexp(weights, -np.frexp(highest)[1])
    p: FloatArray = scaled / scaled.sum()
    lowest = float(np.min(p, where=p > 0, initial=1.0))
    if lowest < SMALLEST:
        raise ValueError(
            f"`{name}` gives an event the probability {shown(lowest)}, below "
            f"{SMALLEST}: round it to 0 (always rejected)."
        )
    return p


# --- how far one is from another ------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Divergence:
    """A convex divergence D(Q || P) with the unit it is measured in."""

    name: DivergenceName
    base: float = 2.0  # of the logarithm of kl, > 1; 2 measures in bits

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
        """Divergences of intruders who play one event of these probabilities > 0.

        `sum_of_squares` is that of the probabilities of all events (for l2).
        """
        if self.name == "kl":
            return -np.log(probability) / self.unit
        if self.name == "l2":
            return 1.0 - 2.0 * probability + sum_of_squares
        if self.name == "chi2":
            return 1.0 / probability - 1.0
        return 1.0 - np.sqrt(probability)

    def between(self, q: FloatArray, p: FloatArray) -> FloatArray:
        """Divergence of each distribution in the rows of q from p."""
        if self.name == "kl":
            nats: FloatArray = rel_entr(q, p).sum(axis=1)
            return np.maximum(0.0, nats) / self.unit
        if self.name == "hellinger":
            return 0.5 * ((np.sqrt(q) - np.sqrt(p)) ** 2).sum(axis=1)
        square = (q - p) ** 2
        if self.name == "l2":
            return square.sum(axis=1)
        with np.errstate(divide="ignore", over="ignore"):
            ratio = square / np.where(p > 0, p, np.where(square > 0, 0.0, 1.0))
        return ratio.sum(axis=1)


def divergence_of(
    q: ArrayLike,
    p: ArrayLike,
    kind: DivergenceName | OwnDivergence = "kl",
    base: float = 2.0,
) -> float | FloatArray:
    """Divergence D(Q || P) of one or many distributions from a target.

    Parameters
    ----------
    q : array-like of shape (n_events,) or (n_intruders, n_events)
        Probabilities of the events under the intruder; each row sums to 1.
    p : array-like of shape (n_events,)
        Probabilities under the target.
    kind : {"kl", "l2", "chi2", "hellinger"} or callable, default="kl"
        sum q log(q / p), sum (q - p)^2, sum q^2 / p - 1, 1 - sum sqrt(p q), or a
        function as for `RejectionGame(divergence=)`.
    base : float, default=2.0
        Base of the logarithm of kl, > 1; 2 measures in bits.

    Returns
    -------
    float or ndarray of shape (n_intruders,)
        >= 0; inf for kl and chi2 where q plays an event of probability 0. At least
        as large as `RejectionGame(divergence_bound=)`, and q plays no such event: the
        game's promise holds.

    Raises
    ------
    ValueError
        If q or p is not a distribution over the same events, or a setting is
        outside its range.

    References
    ----------
    R. El-Yaniv and M. Nisenson, On the foundations of adversarial single-class
    classification, section 6.

    Examples
    --------
    >>> from prudent.adversarial import divergence_of
    >>> divergence_of([1.0, 0.0], [0.25, 0.75])
    2.0
    >>> divergence_of([[0.25, 0.75], [0.5, 0.5]], [0.25, 0.75], kind="l2")
    array([0.   , 0.125])
    """
    target = check_probabilities(p)
    laws = check_distributions(q, len(target), "q")
    values = _between(laws, target, kind, base)
    return float(values[0]) if np.ndim(q) == 1 else values


def divergence_bound(
    p: ArrayLike,
    intruders: ArrayLike,
    *,
    quantile: float = 0.05,
    confidence: float = 0.95,
    kind: DivergenceName | OwnDivergence = "kl",
    base: float = 2.0,
) -> float:
    """Distance that all but a few of the intruders to come keep, from known ones.

    A value for `RejectionGame(divergence_bound=)`: with probability `confidence` over
    the known intruders, at most a share `quantile` of the intruders to come lies
    nearer to the target.

    Parameters
    ----------
    p : array-like of shape (n_events,)
        Probabilities of the events under the target.
    intruders : array-like of shape (n_intruders, n_events)
        Distributions of known intruders, drawn as those to come will be. Measured on
        the events of positive probability, as the game does; one who plays no other
        than those of probability 0 is always rejected and counts as far.
    quantile : float, default=0.05
        Largest share of nearer intruders, in (0, 1).
    confidence : float, default=0.95
        In (0, 1).
    kind, base
        As for :func:`divergence_of`.

    Returns
    -------
    float
        The k-th smallest divergence, k the largest rank with
        P(Bin(n, `quantile`) <= k - 1) <= 1 - `confidence`.

    Raises
    ------
    ValueError
        If there are too few intruders for any rank (at least 59 are needed for the
        defaults), or an argument is outside its range.

    Examples
    --------
    >>> import numpy as np
    >>> from prudent.adversarial import divergence_bound
    >>> known = np.random.default_rng(0).dirichlet([1, 1, 1, 9], size=100)
    >>> round(divergence_bound([0.4, 0.3, 0.2, 0.1], known), 3)
    0.654
    """
    check_fraction("quantile", quantile)
    check_fraction("confidence", confidence)
    target = check_probabilities(p)
    laws = check_distributions(intruders, len(target), "intruders")
    values = np.full(len(laws), math.inf)
    kept = laws[:, target > 0].sum(axis=1)
    meets = kept > 0
    values[meets] = _between(
        laws[meets][:, target > 0] / kept[meets, None], target[target > 0], kind, base
    )
    values.sort()
    rank = high_probability_rank(len(values), quantile, confidence)
    if rank == 0:
        raise ValueError(
            f"{len(values)} intruders are too few to bound the {quantile:g} quantile "
            f"of their divergence with confidence {confidence:g}: at least "
            f"{fewest_rows(quantile, confidence)} are needed."
        )
    return float(values[rank - 1])


def _between(
    q: FloatArray, p: FloatArray, kind: DivergenceName | OwnDivergence, base: float
) -> FloatArray:
    """Divergence of each row of q from p, by name or by one's own function."""
    if callable(kind):
        return values_of(kind, q, p)
    return _checked(kind, base).between(q, p)


def _checked(kind: DivergenceName, base: float) -> Divergence:
    """The divergence of this name, or a ValueError."""
    if kind not in DIVERGENCES:
        raise ValueError(
            f"`kind` must be one of {list(DIVERGENCES)}, got {shown(kind)}."
        )
    if not 1 < base < math.inf:
        raise ValueError(f"`base` must be a number > 1, got {shown(base)}.")
    return Divergence(kind, base)


def bound_tolerance(bound: float) -> float:
    """How far off the bound, by rounding, a divergence may be that lies on it."""
    return 1e-12 * max(1.0, abs(bound))


# --- far intruders by a divergence of one's own: the finite list that stands for them -


def values_of(divergence: OwnDivergence, q: FloatArray, p: FloatArray) -> FloatArray:
    """Divergence of each row of q from p, checked: (n_laws,)."""
    values = np.asarray(divergence(q, p), dtype=np.float64)
    if values.shape != (len(q),) or np.isnan(values).any():
        raise ValueError(
            f"`divergence` must return a number for each of {len(q)} distributions, "
            f"got shape {values.shape}"
            + (" with nan." if values.shape == (len(q),) else ".")
        )
    return values


def extreme_intruders(
    p: FloatArray, divergence: OwnDivergence, bound: float
) -> FloatArray:
    """The laws of one or two events among which every rule has a worst intruder.

    Parameters
    ----------
    p : ndarray of shape (n_events,)
        Probabilities; intruders play no event of probability 0.
    divergence : OwnDivergence
    bound : float
        Least divergence of an intruder; -inf for none.

    Returns
    -------
    ndarray of shape (n_laws, n_events)
        At most a quarter of the square of the number of events.

    Raises
    ------
    InfeasibleError
        If no law is as far as the bound.
    ValueError
        If the function returns no numbers, or is not convex on an edge.
    """
    played = np.flatnonzero(p > 0)
    target = p[played]
    points = np.eye(len(target))
    distance = values_of(divergence, points, target)
    least = bound - bound_tolerance(bound)  # so that no law on the bound is lost
    far, near = np.flatnonzero(distance >= least), np.flatnonzero(distance < least)
    if not len(far):
        raise InfeasibleError(
            f"`divergence_bound`={shown(bound)} leaves no intruder: the largest "
            f"admissible value for this target is {float(distance.max()) + 0.0!r}."
        )
    edges = np.array([(l, h) for l in far for h in near], dtype=np.intp).reshape(-1, 2)
    share = _shares_at_bound(target, divergence, least, edges)
    _check_convex(target, divergence, edges, share)
    laws = np.zeros((len(far) + len(edges), len(p)))
    laws[:, played] = np.concatenate([points[far], _mixed(len(target), edges, share)])
    return laws


def _mixed(n_events: int, edges: IntArray, share: FloatArray) -> FloatArray:
    """Laws with this share on the first event of each edge, the rest on the other."""
    laws, row = np.zeros((len(edges), n_events)), np.arange(len(edges))
    laws[row, edges[:, 0]] = share
    laws[row, edges[:, 1]] += 1 - share
    return laws


def _shares_at_bound(
    p: FloatArray, divergence: OwnDivergence, bound: float, edges: IntArray
) -> FloatArray:
    """Least share of the far event that still keeps the bound, by halving."""
    short, enough = np.zeros(len(edges)), np.ones(len(edges))
    for _ in range(_HALVINGS):
        middle = (short + enough) / 2
        if not ((short < middle) & (middle < enough)).any():
            break
        keeps = values_of(divergence, _mixed(len(p), edges, middle), p) >= bound
        short, enough = np.where(keeps, short, middle), np.where(keeps, middle, enough)
    return enough


def _check_convex(
    p: FloatArray, divergence: OwnDivergence, edges: IntArray, share: FloatArray
) -> None:
    """Refuse a function that lies above the middle of some chord.

    Looked at are all edges, their parts short of the bound, and the ways from the
    target to each event. A spot check, not a proof: the promise names the assumption.
    """
    n = len(p)
    pairs = np.array([(j, k) for j in range(n) for k in range(j)], dtype=np.intp)
    pairs = pairs.reshape(-1, 2)
    begin = np.concatenate(
        [
            _mixed(n, edges, np.zeros(len(edges))),
            _mixed(n, pairs, np.zeros(len(pairs))),
            np.tile(p, (n, 1)),
        ]
    )
    end = np.concatenate(
        [_mixed(n, edges, share), _mixed(n, pairs, np.ones(len(pairs))), np.eye(n)]
    )
    chord = (values_of(divergence, begin, p) + values_of(divergence, end, p)) / 2
    middle = values_of(divergence, (begin + end) / 2, p)
    if (middle > chord + _CONVEX_ROUNDING * np.maximum(1.0, np.abs(chord))).any():
        raise ValueError(
            "`divergence` must be convex in the intruder's distribution, but lies "
            "above one of its chords: the game needs a worst intruder who "
            "plays two events at most."
        )


# --- several observations of one visitor: events replaced with types ------------------


def type_law(p: ArrayLike, n_observations: int) -> tuple[IntArray, FloatArray]:
    """All types of n independent observations, and the probability of each.

    A type says how often each event was observed; nothing else of the observations
    tells the target from an intruder who draws them independently. The game with
    several observations before one decision is the game whose events are the types.

    Parameters
    ----------
    p : array-like of shape (n_events,)
        Probabilities of the events in one observation.
    n_observations : int
        At least 1. There are (n + k - 1) choose n types of n observations of k events.

    Returns
    -------
    types : ndarray of shape (n_types, n_events)
        Counts, each row of sum n; in the same order for every law over as many events.
    probabilities : ndarray of shape (n_types,)
        Multinomial probability of each type; 0 in place of one below 1e-300.

    Raises
    ------
    ValueError
        If p is no distribution, n is below 1, or there are more than a million types.

    Notes
    -----
    Kullback-Leibler divergences add up: an intruder at a distance of b has, over the
    types of n observations, a distance of n b. `RejectionGame(divergence_bound=n b)`
    of the types therefore keeps its promise, as long as no type is below 1e-300 and
    so rounded to 0, and is prudent: it answers every law over types, also those that no
    independent draws have. A list of intruders is met exactly by
    `RejectionGame(adversaries=)` with the law over types of each.

    References
    ----------
    R. El-Yaniv and M. Nisenson, On the foundations of adversarial single-class
    classification, section 9; T. Cover and J. Thomas, Elements of Information Theory,
    section 11.1.

    Examples
    --------
    >>> from prudent import RejectionGame
    >>> from prudent.adversarial import type_law
    >>> p, q = [0.2, 0.3, 0.5], [0.5, 0.3, 0.2]
    >>> for n in (1, 5, 20):
    ...     game = RejectionGame(adversaries=[type_law(q, n)[1]], divergence_bound=None)
    ...     print(n, round(game.fit(type_law(p, n)[1]).rejection_rate_, 3))
    1 0.125
    5 0.521
    20 0.955
    """
    target = check_probabilities(p)
    if n_observations < 1:
        raise ValueError(f"`n_observations` must be at least 1, got {n_observations}.")
    n_types = math.comb(n_observations + len(target) - 1, n_observations)
    if n_types > _MOST_TYPES:
        raise ValueError(
            f"{n_observations} observations of {len(target)} events have {n_types} "
            f"types, more than {_MOST_TYPES}: observe less, or join rare events."
        )
    types = _types(n_observations, len(target))
    probabilities = multinomial.pmf(types, n_observations, target)
    return types, np.where(probabilities < SMALLEST, 0.0, probabilities)


def _types(n: int, n_events: int) -> IntArray:
    """All counts of sum n, in lexicographic order: gaps between k - 1 bars in a row."""
    places = n + n_events - 1
    bars = chain.from_iterable(combinations(range(places), n_events - 1))
    shape = math.comb(places, n), n_events - 1
    edges = np.fromiter(bars, dtype=np.intp).reshape(shape)
    return np.diff(edges, axis=1, prepend=-1, append=places) - 1


# --- what a list of intruders must allow for low-density rejection to be optimal ------
#
# El-Yaniv and Nisenson give three conditions on the set of laws Q that the intruder may
# play against events of probabilities p. Each asks that what an intruder gains on event
# k he might as well have gained on event j: that for certain j, k and q in Q there is a
# q' in Q that agrees with q on all other events.


def has_property(
    adversaries: ArrayLike, name: Literal["A", "B", "C"], p: ArrayLike
) -> bool:
    """Whether a list of intruders has property A, B or C with respect to p.

    Parameters
    ----------
    adversaries : array-like of shape (n_intruders, n_events)
        The laws Q of which the intruder plays one.
    name : {"A", "B", "C"}
        For all events j, k and each q in Q there is a q' in Q with q'_i = q_i for
        i != j, k, such that

        - A (p_j < p_k, q_j < q_k): q_j + q'_j >= q_k + q'_k. Then some optimal
          deterministic rule is monotone: it rejects an event only with all less
          probable ones.
        - B (0 < p_j <= p_k, q_j / p_j < q_k / p_k): q'_j / p_j >= q'_k / p_k. Then some
          optimal randomised rule is strictly monotone: equal events alike.
        - C (p_j = p_k): q'_j = q_k and q'_k = q_j. With A, rejecting the least probable
          events, up to the miss rate, is an optimal deterministic rule.
    p : array-like of shape (n_events,)
        Probabilities of the events under the target.

    Returns
    -------
    bool
        Numbers that differ by at most 1e-12 of the larger are equal. The work grows
        with the squares of both numbers, of intruders and of events.

    Raises
    ------
    ValueError
        If a row is not a distribution over the events of p, or the name is unknown.

    References
    ----------
    R. El-Yaniv and M. Nisenson, On the foundations of adversarial single-class
    classification, Definitions 3, 5 and 9, Theorems 4, 6 and 10. Their Remark 49 says
    that a weaker A suffices, Remarks 50 and 51 that strict inequalities make *all*
    optimal rules monotone.

    Examples
    --------
    >>> from prudent.adversarial import has_property
    >>> p = [0.2, 0.3, 0.5]
    >>> has_property([p], "A", p), has_property([p], "B", p)
    (False, True)
    >>> any_event = [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    >>> has_property(any_event, "A", p)
    True
    """
    if name not in ("A", "B", "C"):
        raise ValueError(f"`name` must be 'A', 'B' or 'C', got {name!r}.")
    target = check_probabilities(p)
    laws = check_distributions(adversaries, len(target), "adversaries")
    return all(
        _can_be_turned(laws, target, name, j, k)
        for j, k in permutations(range(len(target)), 2)
    )


def _can_be_turned(laws: FloatArray, p: FloatArray, name: str, j: int, k: int) -> bool:
    """Whether each law that favours event k has its counterpart for event j."""
    q_j, q_k = laws[:, j], laws[:, k]
    if name == "A":
        is_asked = bool(_is_less(p[j], p[k]))
        favours = _is_less(q_j, q_k)
        turned = ~_is_less(q_j[:, None] + q_j, q_k[:, None] + q_k)
    elif name == "B":
        is_asked = p[j] > 0 and not _is_less(p[k], p[j])
        with np.errstate(divide="ignore", invalid="ignore"):  # where it is not asked
            favours = _is_less(q_j / p[j], q_k / p[k])
        turned = np.broadcast_to(~favours, (len(laws),) * 2)
    else:
        is_asked = not _differs(p[j], p[k])
        favours = np.ones(len(laws), dtype=bool)
        turned = ~_differs(q_j, q_k[:, None]) & ~_differs(q_k, q_j[:, None])
    if not is_asked or not favours.any():
        return True
    others = np.delete(laws, (j, k), axis=1)
    differs = _differs(others[favours, None], others[None])
    counterparts = turned[favours] & ~differs.any(axis=2)
    return bool(counterparts.any(axis=1).all())


def _is_less(a: FloatArray, b: FloatArray) -> BoolArray:
    """Whether a < b by more than rounding, number by number; both >= 0."""
    return a < b * (1 - ROUNDING)


def _differs(a: FloatArray, b: FloatArray) -> BoolArray:
    """Whether a and b are apart by more than rounding, number by number; both >= 0."""
    return _is_less(a, b) | _is_less(b, a)
