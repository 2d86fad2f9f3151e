"""Distributions over events: how far one is from another, and what a caller has."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import rel_entr

from prudent.adversarial.game.own_divergence import OwnDivergence, values_of
from prudent.core.binomial import check_fraction, fewest_rows, high_probability_rank
from prudent.core.types import FloatArray
from prudent.core.validation import shown

DivergenceName = Literal["kl", "l2", "chi2", "hellinger"]

#: Their positions are the codes of the compiled kernels.
DIVERGENCES: tuple[DivergenceName, ...] = get_args(DivergenceName)

_SUM_TOL = 1e-8
SMALLEST = 1e-300  # below it 1 / p overflows


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
        raise ValueError(f"`kind` must be one of {list(DIVERGENCES)}, got {kind!r}.")
    if not 1 < base < math.inf:
        raise ValueError(f"`base` must be a number > 1, got {shown(base)}.")
    return Divergence(kind, base)


# From what a caller has to probabilities, checked.


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
        raise ValueError(f"`{name}` must sum to 1, got a sum of {total!r}.")
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
        raise ValueError(f"`{name}` must have a positive finite sum, got {highest!r}.")
    # Scaled by a power of two, which is exact, so that no sum overflows.
    scaled = np.ldexp(weights, -np.frexp(highest)[1])
    p: FloatArray = scaled / scaled.sum()
    lowest = float(np.min(p, where=p > 0, initial=1.0))
    if lowest < SMALLEST:
        raise ValueError(
            f"`{name}` gives an event the probability {lowest!r}, below "
            f"{SMALLEST}: round it to 0 (always rejected)."
        )
    return p
