"""Decisions from bounds of the log joint, other than plain maximality.

The posterior credal set is {w / sum w : l_k <= w_k <= u_k} with l = exp(lower) and
u = exp(upper): classes have separate means, so all combinations are attained.
Everything works on logs; weights are exponentiated relative to their largest.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog
from scipy.special import softmax

from prudent.core.posterior import log_odds_bounds
from prudent.core.types import BoolArray, FloatArray
from prudent.imprecise.prior import lower_expectation

_TIE = 1e-9  # log odds, or relative differences of expected cost, this close are tied


def interval_undominated(lower: FloatArray, upper: FloatArray) -> BoolArray:
    """Classes whose largest posterior reaches every smallest one (n, K).

    Interval dominance on posteriors: a superset of the maximal classes.
    """
    low, high = log_odds_bounds(lower, upper)
    return (high > -np.inf) & (high + _TIE >= low.max(axis=1, keepdims=True))


def expected_cost_bounds(
    lower: FloatArray, upper: FloatArray, costs: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Smallest and largest posterior expected cost of each decision.

    Parameters
    ----------
    lower, upper : ndarray of shape (n, K)
        Bounds of the log joints.
    costs : ndarray of shape (K, n_decisions)
        Rows are the truth.

    Returns
    -------
    lower, upper : ndarray of shape (n, n_decisions)
        The largest is attained with weights l on the classes of lowest cost and u
        on the others: the best of K + 1 cuts. The smallest with l and u exchanged.

    Examples
    --------
    >>> import numpy as np
    >>> l, u = np.log([[0.2, 0.1, 0.05]]), np.log([[0.5, 0.3, 0.12]])
    >>> costs = np.array([[0, 1, 4], [2, 0, 1], [5, 1, 0]])
    >>> expected_cost_bounds(l, u, costs)[1].round(6).tolist()
    [[1.935484, 0.861111, 3.230769]]
    """
    n_classes, n_decisions = costs.shape
    least = np.full((len(lower), n_decisions), np.inf)
    most = np.full((len(lower), n_decisions), -np.inf)
    for a in range(n_decisions):
        rank = np.argsort(np.argsort(costs[:, a], kind="stable"))
        for cut in range(n_classes + 1):
            cheap = rank < cut
            dear_heavy = softmax(np.where(cheap, lower, upper), axis=1) @ costs[:, a]
            dear_light = softmax(np.where(cheap, upper, lower), axis=1) @ costs[:, a]
            most[:, a] = np.maximum(most[:, a], dear_heavy)
            least[:, a] = np.minimum(least[:, a], dear_light)
    return least, most


def undominated_by_cost(
    lower: FloatArray,
    upper: FloatArray,
    costs: FloatArray,
    prior: FloatArray,
    radius: float,
) -> BoolArray:
    """Maximal decisions under general costs and a total-variation prior ball.

    Parameters
    ----------
    lower, upper : ndarray of shape (n, K)
        Bounds of the log likelihoods, prior not included.
    costs : ndarray of shape (K, K)
        Rows are the truth.
    prior : ndarray of shape (K,)
        Centre of the ball.
    radius : float
        Total variation allowed.

    Returns
    -------
    ndarray of bool, shape (n, K)
        Decision a dominates b when the smallest expectation of v is > 0, with
        v_k = d_k l_k where d_k = costs[k, b] - costs[k, a] > 0, else d_k u_k.
    """
    n_classes = len(prior)
    kept = np.ones(lower.shape, dtype=bool)
    for b in range(n_classes):
        for a in range(n_classes):
            gain = costs[:, b] - costs[:, a]
            if not (gain > 0).any():
                continue
            exponent = np.where(gain > 0, lower, upper)
            relevant = np.where(gain != 0, exponent, -np.inf)
            exponent = exponent - relevant.max(axis=1, keepdims=True)
            values = np.where(gain != 0, gain * np.exp(exponent), 0.0)
            expected = lower_expectation(values, prior, radius)
            kept[:, b] &= ~(expected > _TIE * (np.abs(values) @ prior))
    return kept


def e_admissible(
    lower: FloatArray, upper: FloatArray, costs: FloatArray, candidates: BoolArray
) -> BoolArray:
    """Candidates that are optimal for at least one posterior of the credal set.

    Parameters
    ----------
    lower, upper : ndarray of shape (n, K)
        Bounds of the log joints.
    costs : ndarray of shape (K, K)
        Rows are the truth.
    candidates : ndarray of bool, shape (n, K)
        Maximal decisions; no other can be E-admissible.

    Returns
    -------
    ndarray of bool, shape (n, K)
        b is kept when a w in [l, u] has sum_k (costs[k, b] - costs[k, a]) w_k <= 0
        for all a: one linear program a row and candidate.
    """
    kept = candidates.copy()
    for i in np.flatnonzero(candidates.sum(axis=1) > 1):
        shift = upper[i].max()
        bounds = np.exp(np.stack([lower[i], upper[i]], axis=1) - shift)
        for b in np.flatnonzero(candidates[i]):
            excess = (costs[:, [b]] - costs).T
            answer = linprog(
                np.zeros(len(costs)),
                A_ub=excess,
                b_ub=np.zeros(len(costs)),
                bounds=bounds,
                method="highs",
            )
            kept[i, b] = answer.status != 2  # 2: infeasible
    return kept
