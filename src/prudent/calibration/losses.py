"""Losses of a posterior and the row weights W of the calibration step.

Every loss moves the statistics by G = sum_i W_ik psi(x_i), with H the posteriors,
Y the one-hot labels and w the sample weights:

- log loss: W = w (Y - H);
- expected cost sum_b H_ib C[y_i, b]:
  W_ik = -w_i H_ik (C[y_i, k] - sum_b H_ib C[y_i, b]); C = 1 - I is the stochastic
  0-1 loss 1 - h(y_i | x_i), W = w H_y (Y - H).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from prudent.calibration.kernels import inner_loops

__all__ = ["LossSums", "class_scores", "cost_residuals", "log_residuals"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

#: Log joints that differ by less than this share are told apart by rounding alone.
_ROUNDING = 1e-11


@dataclass(frozen=True, slots=True)
class LossSums:
    """Weighted sums over rows.

    Attributes
    ----------
    log_loss : float
        Of -w log h(y | x).
    error : float
        Weight of the rows predicted wrongly.
    decision_cost : float
        Cost of the predictions; equals `error` without costs.
    expected_cost : float
        Of w sum_b h(b | x) C[y, b]; NaN without costs.
    """

    log_loss: float
    error: float
    decision_cost: float
    expected_cost: float = float("nan")


def class_scores(log_joint: FloatArray, costs: FloatArray | None) -> FloatArray:
    """What a prediction compares: log joints, with costs minus the expected costs.

    Scores that differ by rounding are made equal, so that the answer to a row does
    not depend on the rows it comes with: the first of them is predicted.

    Parameters
    ----------
    log_joint : ndarray of shape (m, r)
    costs : ndarray of shape (r, r) or None
        Rows the true class.

    Returns
    -------
    ndarray of shape (m, r)
    """
    if costs is None:
        scores = log_joint
        peak = scores.max(axis=1, keepdims=True)
        slack = _ROUNDING * (1.0 + np.abs(peak))
    else:
        scores = -softmax(log_joint, axis=1) @ costs
        peak = scores.max(axis=1, keepdims=True)
        slack = _ROUNDING * np.abs(costs).max()
    return np.where(scores >= peak - slack, peak, scores)


def log_residuals(scores: FloatArray, codes: IntArray, weight: FloatArray) -> LossSums:
    """Turn log joints (r, m) into W = w (Y - H) in place and sum the losses.

    Parameters
    ----------
    scores : ndarray of shape (r, m), C-ordered
        Log joint up to a constant of the row; overwritten.
    codes : ndarray of int, shape (m,)
        Column of the true class.
    weight : ndarray of shape (m,)

    Returns
    -------
    LossSums
        A row counts as wrong when its true class is not the first with the largest
        score.
    """
    log_loss, error = inner_loops(scores.size).log_residual_sums(scores, codes, weight)
    return LossSums(log_loss, error, error)


def cost_residuals(
    scores: FloatArray, codes: IntArray, weight: FloatArray, costs: FloatArray
) -> LossSums:
    """As `log_residuals` for the expected cost; costs (r, r), rows the true class.

    The prediction is the class of least expected cost.
    """
    scores -= scores.max(axis=0)
    columns = np.arange(len(codes))
    picked = scores[codes, columns]
    np.exp(scores, out=scores)
    total = scores.sum(axis=0)
    log_loss = weight @ (np.log(total) - picked)
    scores /= total
    decisions = (costs.T @ scores).argmin(axis=0)
    true_costs = costs.T[:, codes]
    expected = (scores * true_costs).sum(axis=0)
    scores *= weight * (expected - true_costs)
    return LossSums(
        log_loss,
        weight @ (decisions != codes),
        weight @ costs[codes, decisions],
        weight @ expected,
    )
