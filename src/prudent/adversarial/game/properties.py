"""What a list of intruders must allow for low-density rejection to be optimal.

El-Yaniv and Nisenson give three conditions on the set of laws Q that the intruder may
play against events of probabilities p. Each asks that what an intruder gains on event k
he might as well have gained on event j: that for certain j, k and q in Q there is a
q' in Q that agrees with q on all other events.
"""

from __future__ import annotations

from itertools import permutations
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from prudent.adversarial.game.divergence import (
    check_distributions,
    check_probabilities,
)
from prudent.core.types import FloatArray

#: Probabilities nearer to each other than this are taken for equal.
ROUNDING = 1e-12


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
        Numbers that differ by 1e-12 at most are equal. The work grows with the squares
        of both numbers, of intruders and of events.

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
        is_asked = p[j] < p[k] - ROUNDING
        favours = q_j < q_k - ROUNDING
        turned = q_j[:, None] + q_j >= q_k[:, None] + q_k - ROUNDING
    elif name == "B":
        is_asked = 0 < p[j] <= p[k] + ROUNDING
        favours = q_j * p[k] < q_k * p[j] - ROUNDING
        turned = np.broadcast_to(q_j * p[k] >= q_k * p[j] - ROUNDING, (len(laws),) * 2)
    else:
        is_asked = abs(p[j] - p[k]) <= ROUNDING
        favours = np.ones(len(laws), dtype=bool)
        turned = (np.abs(q_j - q_k[:, None]) <= ROUNDING) & (
            np.abs(q_k - q_j[:, None]) <= ROUNDING
        )
    if not is_asked or not favours.any():
        return True
    others = np.delete(laws, (j, k), axis=1)
    differs = np.abs(others[favours, None] - others[None]) > ROUNDING
    counterparts = turned[favours] & ~differs.any(axis=2)
    return bool(counterparts.any(axis=1).all())
