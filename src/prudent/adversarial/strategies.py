"""The two strategies of the learner, as rules over events."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prudent.adversarial.game import solve_game
from prudent.adversarial.levels import Events, Levels
from prudent.adversarial.response import (
    as_distribution,
    best_response,
    hard_response,
    soft_response,
)

__all__ = ["Rule", "hard_rule", "soft_rule"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Rule:
    """An optimal rule of its strategy, with its certificate.

    Attributes
    ----------
    rejection : ndarray of shape (n_events,)
        Probability of rejecting each event, 1 for null events.
    value, upper_bound : float
        Rejection rate of the best intruder, and the most any rule could reach.
    adversary, mixture : ndarray of shape (n_events,)
        A best intruder, and the mixture of intruders behind `upper_bound`.
    is_trivial : bool
        Whether nothing randomised beats rejecting every event alike.
    """

    rejection: FloatArray
    value: float
    upper_bound: float
    adversary: FloatArray
    mixture: FloatArray
    is_trivial: bool


def soft_rule(events: Events, tied: Events, levels: Levels, rate: float) -> Rule:
    """Optimal randomised rule: the game solved level by level, spread over events.

    Parameters
    ----------
    events : Events
        With the levels of the game.
    tied : Events
        The same events in coarser levels, whose events are all treated alike: at the
        mean of their probabilities, which costs as much and is worth what the best
        intruder against it leaves. `events` itself leaves the rule as it is.
    levels : Levels
        Target, split at the bound.
    rate : float
        Largest target mass to reject, in [0, 1].
    """
    solution = solve_game(levels, rate)
    rejection = events.spread(solution.rejection, 1.0)
    response = soft_response(levels, solution.value)
    if tied is not events:
        rejection = np.minimum(1.0, tied.spread(tied.mean(rejection), 1.0))
        response = best_response(levels, events.smallest(rejection))
    return Rule(
        rejection=rejection,
        value=response.value,
        upper_bound=solution.upper_bound,
        adversary=as_distribution(events, rejection, response),
        mixture=events.share * events.spread(solution.mixture, 0.0),
        is_trivial=solution.is_trivial,
    )


def hard_rule(events: Events, tied: Events, levels: Levels, rate: float) -> Rule:
    """Optimal deterministic rule: reject the least probable events (A4).

    Inside the last level reached, the events of lowest index. Parameters as for
    `soft_rule`.
    """
    budget = rate * (1 + 1e-12)
    reached = np.append(0.0, np.cumsum(tied.mass, dtype=np.longdouble))
    n_full = int(np.count_nonzero(reached[1:] <= budget))
    rejection = np.where(tied.level < n_full, 1.0, 0.0)
    members = np.flatnonzero(tied.level == n_full)
    if len(members):
        each = tied.share[members] * tied.mass[n_full]
        affordable = reached[n_full] + np.cumsum(each) <= budget
        rejection[members[affordable]] = 1.0
    best = response = hard_response(levels, rate)
    if tied is not events:
        response = best_response(levels, events.smallest(rejection))
    adversary = as_distribution(events, rejection, response)
    return Rule(
        rejection=rejection,
        value=response.value,
        upper_bound=best.value,
        adversary=adversary,
        mixture=adversary.copy(),
        is_trivial=solve_game(levels, 0.0).is_trivial,
    )
