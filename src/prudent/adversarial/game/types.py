"""Several observations of one visitor: events replaced with types."""

from __future__ import annotations

from math import comb

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import multinomial

from prudent.adversarial.game.divergence import SMALLEST, check_probabilities
from prudent.core.types import FloatArray, IntArray

_MOST_TYPES = 1_000_000


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
    of the types therefore keeps its promise, and is prudent: it answers every law over
    types, also those that no independent draws have. A list of intruders is met exactly
    by `RejectionGame(adversaries=)` with the law over types of each.

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
    n_types = comb(n_observations + len(target) - 1, n_observations)
    if n_types > _MOST_TYPES:
        raise ValueError(
            f"{n_observations} observations of {len(target)} events have {n_types} "
            f"types, more than {_MOST_TYPES}: observe less, or join rare events."
        )
    types = _types(n_observations, len(target))
    probabilities = multinomial.pmf(types, n_observations, target)
    return types, np.where(probabilities < SMALLEST, 0.0, probabilities)


def _types(n: int, n_events: int) -> IntArray:
    """All counts of sum n, in lexicographic order."""
    rows = np.zeros((1, 0), dtype=np.intp)
    left = np.full(1, n, dtype=np.intp)
    for _ in range(n_events - 1):
        repeats = left + 1
        start = np.repeat(np.cumsum(repeats) - repeats, repeats)
        count = np.arange(repeats.sum(), dtype=np.intp) - start
        rows = np.c_[np.repeat(rows, repeats, axis=0), count]
        left = np.repeat(left, repeats) - count
    return np.c_[rows, left]
