"""Decisions from bounds of log likelihoods and a ball of priors, by every criterion.

A posterior is w / sum w with w_k = pi_k f_k: classes have separate means, so the
likelihoods f_k move freely between exp(lower_k) and exp(upper_k), (n, K) without the
prior; the prior pi lies within a total variation of `radius` of its centre `prior`, 0
when it is precise. Rows of `costs` (K, n_decisions) are the truth. Everything works on
logs; weights are exponentiated relative to their largest.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog
from scipy.special import softmax

from prudent.core.classes import log_probabilities
from prudent.core.types import BoolArray, FloatArray
from prudent.imprecise.prior import ball_log_odds_bounds, least_favourable_prior

_TIE = 1e-9  # log odds, or relative differences of expected cost, this close are tied
_STEPS = 100  # of a search that ends in a handful


def dominance(lower: FloatArray, upper: FloatArray) -> BoolArray:
    """Which class a is more probable than which b in every model (n, K, K), 0-1 costs.

    From bounds of log joints, those of the prior included; ties do not count.
    """
    tie = np.where(np.isfinite(upper), _TIE * (1.0 + np.abs(upper)), 0.0)
    beaten = lower[:, :, None] > (upper + tie)[:, None, :]
    return beaten & ~np.eye(lower.shape[1], dtype=np.bool_)


def dominance_by_cost(
    lower: FloatArray,
    upper: FloatArray,
    costs: FloatArray,
    prior: FloatArray,
    radius: float,
) -> BoolArray:
    """Which decision a costs less than which b in every model, entries (a, b).

    The smallest expectation of v is > 0, with v_k = d_k l_k where
    d_k = costs[k, b] - costs[k, a] > 0, else d_k u_k.
    """
    n_decisions = costs.shape[1]
    found = np.zeros((len(lower), n_decisions, n_decisions), dtype=np.bool_)
    for b in range(n_decisions):
        for a in range(n_decisions):
            gain = costs[:, b] - costs[:, a]
            if not (gain > 0).any():
                continue
            exponent = np.where(gain > 0, lower, upper)
            relevant = np.where(gain != 0, exponent, -np.inf)
            exponent = exponent - relevant.max(axis=1, keepdims=True)
            values = np.where(gain != 0, gain * np.exp(exponent), 0.0)
            expected = (least_favourable_prior(values, prior, radius) * values).sum(1)
            found[:, a, b] = expected > _TIE * (np.abs(values) @ prior)
    return found


def interval_undominated(
    lower: FloatArray, upper: FloatArray, prior: FloatArray, radius: float
) -> BoolArray:
    """Classes whose largest posterior reaches every smallest one (n, K).

    Interval dominance on posteriors: a superset of the maximal classes.
    """
    low, high = ball_log_odds_bounds(lower, upper, prior, radius)
    return (high > -np.inf) & (high + _TIE >= low.max(axis=1, keepdims=True))


def expected_cost_bounds(
    lower: FloatArray,
    upper: FloatArray,
    costs: FloatArray,
    prior: FloatArray,
    radius: float,
) -> tuple[FloatArray, FloatArray]:
    """Smallest and largest posterior expected cost of each decision, both attained."""
    most = _largest_cost(lower, upper, costs, prior, radius)
    return -_largest_cost(lower, upper, -costs, prior, radius), most


def _largest_cost(
    lower: FloatArray,
    upper: FloatArray,
    costs: FloatArray,
    prior: FloatArray,
    radius: float,
) -> FloatArray:
    """Largest posterior expected cost of each decision (n, n_decisions)."""
    largest = np.empty((len(lower), costs.shape[1]))
    precise = log_probabilities(prior)
    shift = upper.max(axis=1, keepdims=True)
    light, heavy = np.exp(lower - shift), np.exp(upper - shift)
    for d, cost in enumerate(costs.T):
        if radius == 0.0:  # heavy where dear, light where cheap: the best of all cuts
            rank = np.argsort(np.argsort(cost, kind="stable"))
            cuts = [
                softmax(np.where(rank < cut, lower, upper) + precise, axis=1) @ cost
                for cut in range(len(cost) + 1)
            ]
            largest[:, d] = np.max(cuts, axis=0)
            continue
        # Dinkelbach: the best model for the excess over a level raises the level.
        level = np.full(len(lower), cost.min())
        for _ in range(_STEPS):
            excess = cost - level[:, None]
            likelihood = np.where(excess > 0, heavy, light)
            weight = likelihood * least_favourable_prior(
                -likelihood * excess, prior, radius
            )
            total = weight.sum(axis=1)
            raised = np.divide(weight @ cost, total, out=level.copy(), where=total > 0)
            if (raised <= level).all():
                break
            level = np.maximum(level, raised)
        largest[:, d] = level
    return largest


def e_admissible(
    lower: FloatArray,
    upper: FloatArray,
    costs: FloatArray | None,
    prior: FloatArray,
    radius: float,
    candidates: BoolArray,
) -> BoolArray:
    """Candidates (n, K) that are optimal for at least one posterior of the credal set.

    Candidates are maximal decisions; no other can be E-admissible. Under 0-1 costs
    (None), b is kept when the mass that the others must lose, so that none is more
    probable than b at its best, is within the radius; else by one linear program a
    row and candidate.
    """
    kept = candidates.copy()
    if costs is None:
        best = log_probabilities(np.minimum(prior + radius, 1.0)) + upper
        for b in range(len(prior)):
            room = np.exp(np.minimum(best[:, [b]] - lower, 0.0))
            surplus = np.maximum(prior - room, 0.0)
            surplus[:, b] = 0.0
            kept[:, b] &= surplus.sum(axis=1) <= radius + _TIE
        return kept
    for i in np.flatnonzero(candidates.sum(axis=1) > 1):
        light, heavy = np.exp(np.stack([lower[i], upper[i]]) - upper[i].max())
        for d in np.flatnonzero(candidates[i]):
            excess = (costs[:, [d]] - costs).T
            kept[i, d] = _is_feasible(excess, light, heavy, prior, radius)
    return kept


def _is_feasible(
    excess: FloatArray,
    light: FloatArray,
    heavy: FloatArray,
    prior: FloatArray,
    radius: float,
) -> bool:
    """Is there a prior pi in the ball and w in pi [light, heavy] with excess w <= 0?

    Unknowns are w and, unless the prior is precise, what each probability gains and
    loses.
    """
    size, n_rivals = len(prior), len(excess)
    if radius == 0.0:
        box = np.stack([light * prior, heavy * prior], axis=1)
        answer = linprog(np.zeros(size), excess, np.zeros(n_rivals), bounds=box)
        return bool(answer.status != 2)  # 2: infeasible
    one, none = np.eye(size), np.zeros((n_rivals, size))
    low, high = np.diag(light), np.diag(heavy)
    gained, lost = np.ones((1, size)), np.zeros((1, size))
    at_most = np.block(
        [
            [excess, none, none],
            [-one, low, -low],
            [one, -high, high],
            [lost, gained, lost],
        ]
    )
    limits = np.concatenate([np.zeros(n_rivals), -light * prior, heavy * prior])
    answer = linprog(
        np.zeros(3 * size),
        at_most,
        np.append(limits, radius),
        np.block([[lost, gained, -gained]]),
        np.zeros(1),
        bounds=[(0.0, None)] * (2 * size) + [(0.0, mass) for mass in prior],
    )
    return bool(answer.status != 2)
