"""What the score bounds say about the posterior: its range, sets, the minimax rule.

The ambiguity sets of the classes are independent of one another, so the posterior of
a class is largest with its own density at the upper and all others at the lower end.
Arguments are joint log densities: log score plus log prior, shape (n, K).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

__all__ = ["dominance_sets", "minimax_scores", "posterior_bounds"]

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


def posterior_bounds(
    lower: FloatArray, upper: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Least and largest posterior probability of each class, shape (n, K).

    P_low(c) = low_c / (low_c + sum of the others' up), P_up(c) = up_c / (up_c +
    sum of the others' low), with low and up the joint densities.
    """
    return (
        expit(lower - _log_sum_of_others(upper)),
        expit(upper - _log_sum_of_others(lower)),
    )


def dominance_sets(lower: FloatArray, upper: FloatArray) -> BoolArray:
    """Classes that no other class beats for sure: up_c >= max over c' of low_c'.

    With independent ambiguity sets interval dominance equals maximality.
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
    return lower - _log_sum_of_others(upper)


def _log_sum_of_others(values: FloatArray) -> FloatArray:
    """Logarithm of the sum of exp(values) over all columns but one, shape (n, K)."""
    before = np.logaddexp.accumulate(values, axis=1)
    after = np.logaddexp.accumulate(values[:, ::-1], axis=1)[:, ::-1]
    others = np.full(values.shape, -np.inf)
    others[:, 1:] = before[:, :-1]
    others[:, :-1] = np.logaddexp(others[:, :-1], after[:, 1:])
    return others
