"""Losses of a posterior and the row weights W of the calibration step.

Every loss moves the statistics by G = sum_i W_ik psi(x_i), with H the posteriors,
Y the one-hot labels and w the sample weights:

- log loss: W = w (Y - H);
- expected cost sum_b H_ib C[y_i, b]:
  W_ik = -w_i H_ik (C[y_i, k] - sum_b H_ib C[y_i, b]); C = 1 - I is the stochastic
  0-1 loss 1 - h(y_i | x_i), W = w H_y (Y - H).
"""

from __future__ import annotations

from dataclasses import astuple, dataclass

import numpy as np
from scipy.special import softmax

from prudent.calibration.whitening import COMPILED_FROM
from prudent.core.types import BoolArray, FloatArray, IntArray

#: Log joints that differ by less than this share are told apart by rounding alone.
_ROUNDING = 1e-11
_CACHED_NUMBERS = 32_768


@dataclass(frozen=True, slots=True)
class Losses:
    """Losses of a model, summed over weighted rows: those of blocks of rows add up."""

    objective: float  # what the line search lowers
    log_loss: float  # -w log h(y | x)
    #: w (1 - h(y | x)), the error of drawing the answer from the posterior; with
    #: costs the expected cost w sum_b h(b | x) C[y, b].
    risk: float
    cost: float  # of the predictions; the wrong weight without costs
    #: Weight of the rows of which the true class is not the first with the largest
    #: score (least expected cost).
    wrong: float
    weight: float  # of all rows

    def __add__(self, other: Losses) -> Losses:
        return Losses(
            *(a + b for a, b in zip(astuple(self), astuple(other), strict=True))
        )

    @property
    def mean(self) -> Losses:
        """The same per unit of weight: `wrong` is the error."""
        w = self.weight
        objective, log_loss, risk = self.objective / w, self.log_loss / w, self.risk / w
        return Losses(objective, log_loss, risk, self.cost / w, self.wrong / w, 1.0)


def log_residuals(scores: FloatArray, codes: IntArray, weight: FloatArray) -> Losses:
    """Turn log joints (r, m) into W = w (Y - H) in place and sum the losses.

    `scores` is C-ordered, and known up to a constant of the row.
    """
    if scores.size < COMPILED_FROM:
        log_loss, wrong, risk = interpreted_residual_sums(scores, codes, weight)
    else:
        from prudent.calibration.compiled import log_residual_sums

        log_loss, wrong, risk = log_residual_sums(scores, codes, weight)
    return Losses(log_loss, log_loss, risk, wrong, wrong, float(weight.sum()))


def cost_residuals(
    scores: FloatArray, codes: IntArray, weight: FloatArray, costs: FloatArray
) -> Losses:
    """As `log_residuals` for the expected cost; costs (r, r), rows the true class."""
    scores -= scores.max(axis=0)
    columns = np.arange(len(codes))
    picked = scores[codes, columns]
    np.exp(scores, out=scores)
    total = scores.sum(axis=0)
    log_loss = float(weight @ (np.log(total) - picked))
    scores /= total
    decisions = (costs.T @ scores).argmin(axis=0)
    true_costs = costs.T[:, codes]
    expected = (scores * true_costs).sum(axis=0)
    scores *= weight * (expected - true_costs)
    risk = float(weight @ expected)
    return Losses(
        risk,
        log_loss,
        risk,
        float(weight @ costs[codes, decisions]),
        float(weight @ (decisions != codes)),
        float(weight.sum()),
    )


def class_scores(log_joint: FloatArray, costs: FloatArray | None) -> FloatArray:
    """What a prediction compares: log joints, with costs minus the expected costs.

    Shape (m, r). Scores that differ by rounding are made equal, so that the answer to
    a row does not depend on the rows it comes with: the first of them is predicted.
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


def interpreted_residual_sums(
    scores: FloatArray, codes: IntArray, weight: FloatArray
) -> tuple[float, float, float]:
    """Turn scores (r, m) into W = w (Y - H) in place; log loss, error, 1 - H summed."""
    log_loss, error, risk = 0.0, 0.0, 0.0
    step = max(1, _CACHED_NUMBERS // len(scores))
    for start in range(0, scores.shape[1], step):
        block = slice(start, start + step)
        H, y, w = scores[:, block], codes[block], weight[block]
        columns = np.arange(len(y))
        H -= H.max(axis=0)
        picked = H[y, columns]
        np.exp(H, out=H)
        total = H.sum(axis=0)
        log_loss += float(w @ (np.log(total) - picked))
        error += float(w @ _is_wrong(picked, total, H, y))
        H *= -w / total
        gains = H[y, columns] + w
        H[y, columns] = gains
        risk += float(gains.sum())
    return log_loss, error, risk


def _is_wrong(
    picked: FloatArray, total: FloatArray, likelihood: FloatArray, codes: IntArray
) -> BoolArray:
    """Whether argmax misses the label, without an argmax over every row.

    `picked` is the true class's score minus the largest one. Two classes can only
    share the largest score where the scaled likelihoods add up to 2 or more.
    """
    wrong = picked < 0
    ties = np.flatnonzero((total >= 2) & ~wrong)
    if len(ties):
        wrong[ties] = likelihood[:, ties].argmax(axis=0) != codes[ties]
    return wrong
