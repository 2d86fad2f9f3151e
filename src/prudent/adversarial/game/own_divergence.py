"""Far intruders by a divergence of one's own: the finite list that stands for them.

For a divergence that is convex in the intruder, the laws at a distance of the bound or
more are what a convex set leaves of the simplex, and every rule meets a worst one of
them on an edge (Theorem 19): on an event that is far enough alone, or on a far and a
near event, mixed so that the bound is just met (Lemma 22). Against this list the game
is the linear programme of Theorem 23.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from prudent.core.types import FloatArray, IntArray
from prudent.core.validation import shown
from prudent.exceptions import InfeasibleError

#: Divergence of each law in the rows of the first argument from the second, all of
#: whose probabilities are positive.
OwnDivergence = Callable[[FloatArray, FloatArray], FloatArray]

_HALVINGS = 1100  # to the last bit of any float; an edge takes 50 to 70
_ROUNDING = 1e-9  # relative; what a convex function may be off by


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
    far, near = np.flatnonzero(distance >= bound), np.flatnonzero(distance < bound)
    if not len(far):
        raise InfeasibleError(
            f"`divergence_bound`={shown(bound)} leaves no intruder: the largest "
            f"admissible value for this target is {float(distance.max()) + 0.0!r}."
        )
    edges = np.array([(l, h) for l in far for h in near], dtype=np.intp).reshape(-1, 2)
    share = _shares_at_bound(target, divergence, bound, edges)
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
    if (middle > chord + _ROUNDING * np.maximum(1.0, np.abs(chord))).any():
        raise ValueError(
            "`divergence` must be convex in the intruder's distribution, but lies "
            "above one of its chords: the game needs a worst intruder who "
            "plays two events at most."
        )
