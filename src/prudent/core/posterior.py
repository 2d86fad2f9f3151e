"""What bounds of the class scores say about the posterior: its range, sets, minimax.

The uncertainty sets of the classes are independent of one another, so the posterior of
a class is largest with its own density at the upper and all others at the lower end.
Arguments are joint log densities, log density plus log prior, of shape (n, K); -inf
stands for an impossible class.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from prudent.core.types import BoolArray, FloatArray


def posterior_bounds(
    lower: FloatArray, upper: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Least and largest posterior probability of each class, (n, K) each.

    With l = exp(lower) and u = exp(upper): l_k / (l_k + sum of the others' u) and
    u_k / (u_k + sum of the others' l), both attained.
    """
    least, most = log_odds_bounds(lower, upper)
    return expit(least), expit(most)


def log_odds_bounds(
    lower: FloatArray, upper: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Logits of `posterior_bounds`: no probability near 0 or 1 loses its digits."""
    return (
        _less(lower, log_sum_of_others(upper)),
        _less(upper, log_sum_of_others(lower)),
    )


def dominance_sets(lower: FloatArray, upper: FloatArray) -> BoolArray:
    """Classes that no other class beats for sure: up_c >= max over c' of low_c'.

    With independent uncertainty sets interval dominance equals maximality.
    """
    return upper >= lower.max(axis=1, keepdims=True)


def minimax_scores(lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Class scores whose argmax has the least worst-case posterior error.

    The worst error of choosing c is 1 / (1 + low_c / sum of the others' up), the
    exact action of problem (1) of Nguyen et al. (2020). For two classes the order
    of low_c / up_c' is that of low_c up_c, whose square root is used: at radius 0
    the scores are the joint log densities.
    """
    if lower.shape[1] == 2:
        return (lower + upper) / 2
    return _less(lower, log_sum_of_others(upper))


def log_sum_of_others(values: FloatArray) -> FloatArray:
    """Logarithm of the sum of exp(values) over all columns but one, (n, K)."""
    if values.shape[1] == 2:
        return values[:, ::-1]
    before = np.logaddexp.accumulate(values, axis=1)
    after = np.logaddexp.accumulate(values[:, ::-1], axis=1)[:, ::-1]
    others = np.full(values.shape, -np.inf)
    others[:, 1:] = before[:, :-1]
    others[:, :-1] = np.logaddexp(others[:, :-1], after[:, 1:])
    return others


def _less(own: FloatArray, others: FloatArray) -> FloatArray:
    """Difference of logs; an impossible class stays so where all others are too."""
    with np.errstate(invalid="ignore"):
        return np.where(own == -np.inf, -np.inf, own - others)


def log_odds_against(probabilities: ArrayLike) -> FloatArray:
    """Log of the other labels' probability over each label's own.

    In the order of minus the probability, yet it tells apart rows whose probability of
    a label is 1e-12 or 1e-15: by the probabilities themselves they would tie.
    """
    own = np.asarray(probabilities, dtype=np.float64)
    others = np.zeros_like(own)  # sums without differences
    others[:, 1:] += np.cumsum(own[:, :-1], axis=1)
    others[:, :-1] += np.cumsum(own[:, :0:-1], axis=1)[:, ::-1]
    least = np.finfo(np.float64).tiny
    odds: FloatArray = np.log(np.maximum(others, least))
    odds -= np.log(np.maximum(own, least))
    return odds
