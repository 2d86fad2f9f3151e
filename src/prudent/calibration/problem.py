"""The rows, the family that explains them, and how well it does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.calibration.families import Family, Statistics
from prudent.calibration.losses import cost_residuals, log_residuals

__all__ = ["Evaluation", "Problem"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Losses of a model, as weighted means over the rows of its problem.

    Attributes
    ----------
    objective : float
        What the line search lowers.
    log_loss, error, decision_cost : float
        `decision_cost` equals `error` without costs.
    wrong : float
        Weight of the rows predicted wrongly, not divided by the total.
    residuals : ndarray of shape (r, m)
        The row weights W of the next step.
    """

    parameters: Any
    objective: float
    log_loss: float
    error: float
    decision_cost: float
    wrong: float
    residuals: FloatArray


@dataclass(frozen=True)
class Problem:
    """Labelled rows, the family that explains them, and the loss to lower.

    Attributes
    ----------
    family : Family
    rows : object
        As the family takes them.
    codes : ndarray of int, shape (m,)
        Class of each row, 0..r-1.
    weight : ndarray of shape (m,)
        Positive weights w with total M.
    n_classes : int
    costs : ndarray of shape (r, r) or None, default=None
        None lowers the log loss.
    generative_weight : float, default=0.0
        lambda of the ascent direction G + lambda (s(X, Y) - s).
    """

    family: Family
    rows: Any
    codes: IntArray
    weight: FloatArray
    n_classes: int
    costs: FloatArray | None = None
    generative_weight: float = 0.0

    def closed_form(self) -> Statistics:
        """s(X, Y), the statistics of the labels themselves."""
        labels = np.zeros((self.n_classes, len(self.codes)))
        labels[self.codes, np.arange(len(self.codes))] = self.weight
        return self.family.statistics(self.rows, labels.T)

    def evaluate(self, statistics: Statistics) -> Evaluation:
        """Losses and row weights of the model with these statistics."""
        return self.score(self.family.parameters(statistics))

    def score(self, parameters: Any) -> Evaluation:
        """Losses and row weights of the model with these parameters."""
        scores = np.ascontiguousarray(self.family.log_joint(self.rows, parameters).T)
        expected = (self.n_classes, len(self.codes))
        if scores.shape != expected:
            raise ValueError(
                f"{type(self.family).__name__}.log_joint must return shape "
                f"{expected[::-1]}, got {scores.shape[::-1]}."
            )
        generative = self.generative_weight and self._generative_loss(
            scores, parameters
        )
        if self.costs is None:
            sums = log_residuals(scores, self.codes, self.weight)
            objective = sums.log_loss
        else:
            sums = cost_residuals(scores, self.codes, self.weight, self.costs)
            objective = sums.expected_cost
        total = self.weight.sum()
        return Evaluation(
            parameters,
            float(objective / total + self.generative_weight * generative),
            float(sums.log_loss / total),
            float(sums.error / total),
            float(sums.decision_cost / total),
            float(sums.error),
            scores,
        )

    def _generative_loss(self, scores: FloatArray, parameters: Any) -> float:
        """Mean negative log joint of the rows with their labels."""
        log_joint = scores[self.codes, np.arange(len(self.codes))]
        if hasattr(self.family, "row_constant"):
            log_joint = log_joint + self.family.row_constant(self.rows, parameters)
        return -float(self.weight @ log_joint / self.weight.sum())
