"""The rows, the family that explains them, and how well it does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from prudent.calibration.families import Family, Statistics
from prudent.calibration.losses import cost_residuals, log_residuals

__all__ = ["Evaluation", "Losses", "Objective", "Problem", "RowEvaluation"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Losses:
    """Losses of a model, summed over weighted rows: those of blocks of rows add up.

    Attributes
    ----------
    total_objective, total_log_loss, total_cost : float
    wrong : float
        Weight of the rows predicted wrongly.
    weight : float
        Of all rows.
    n_rows : int
    """

    total_objective: float
    total_log_loss: float
    total_cost: float
    wrong: float
    weight: float
    n_rows: int

    def __add__(self, other: Losses) -> Losses:
        return Losses(
            self.total_objective + other.total_objective,
            self.total_log_loss + other.total_log_loss,
            self.total_cost + other.total_cost,
            self.wrong + other.wrong,
            self.weight + other.weight,
            self.n_rows + other.n_rows,
        )

    @property
    def objective(self) -> float:
        """What the line search lowers, as a mean over the rows."""
        return self.total_objective / self.weight

    @property
    def log_loss(self) -> float:
        """Mean of -log h(y | x)."""
        return self.total_log_loss / self.weight

    @property
    def error(self) -> float:
        """Share of the weight that is predicted wrongly."""
        return self.wrong / self.weight

    @property
    def decision_cost(self) -> float:
        """Mean cost of the predictions; the error without costs."""
        return self.total_cost / self.weight


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A model and its losses on the rows it is fitted to."""

    parameters: Any
    losses: Losses


@dataclass(frozen=True, slots=True)
class RowEvaluation(Evaluation):
    """Evaluation that leaves the row weights W (r, m) of the next step."""

    residuals: FloatArray


class Objective(Protocol):
    """What a calibration lowers: it judges models and says where to go next."""

    @property
    def family(self) -> Family:
        """Maps statistics to models."""
        ...

    @property
    def generative_weight(self) -> float:
        """Lambda of the ascent direction G + lambda (s(X, Y) - s)."""
        ...

    def evaluate(self, statistics: Statistics) -> Evaluation:
        """The model with these statistics."""
        ...

    def direction(self, evaluation: Any) -> Statistics:
        """G = sum_i W_ik psi(x_i) at an evaluated model."""
        ...

    def validate(self, evaluation: Any) -> Losses:
        """Losses of an evaluated model on the held-out rows."""
        ...


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
    batches : iterator of int arrays, default=None
        Rows behind each step; None takes all rows.
    held_out : Problem, default=None
        Rows that only `validate` looks at.
    """

    family: Family
    rows: Any
    codes: IntArray
    weight: FloatArray
    n_classes: int
    costs: FloatArray | None = None
    generative_weight: float = 0.0
    batches: Iterator[IntArray] | None = None
    held_out: Problem | None = None

    def closed_form(self) -> Statistics:
        """s(X, Y), the statistics of the labels themselves."""
        labels = np.zeros((self.n_classes, len(self.codes)))
        labels[self.codes, np.arange(len(self.codes))] = self.weight
        return self.family.statistics(self.rows, labels.T)

    def evaluate(self, statistics: Statistics) -> RowEvaluation:
        """Losses and row weights of the model with these statistics."""
        return self.score(self.family.parameters(statistics))

    def direction(self, evaluation: RowEvaluation) -> Statistics:
        """G from all rows, or scaled up from the next batch."""
        residuals = evaluation.residuals
        if self.batches is None:
            return self.family.statistics(self.rows, residuals.T)
        batch = next(self.batches)
        scale = self.weight.sum() / self.weight[batch].sum()
        return self.family.statistics(self.rows[batch], (scale * residuals[:, batch]).T)

    def validate(self, evaluation: Evaluation) -> Losses:
        """Losses of an evaluated model on the held-out rows."""
        assert self.held_out is not None
        return self.held_out.score(evaluation.parameters).losses

    def score(self, parameters: Any) -> RowEvaluation:
        """Losses and row weights of the model with these parameters."""
        scores = np.ascontiguousarray(self.family.log_joint(self.rows, parameters).T)
        expected = (self.n_classes, len(self.codes))
        if scores.shape != expected:
            raise ValueError(
                f"{type(self.family).__name__}.log_joint must return shape "
                f"{expected[::-1]}, got {scores.shape[::-1]}."
            )
        # First, because the residuals overwrite the scores.
        generative = self.generative_weight and self._generative_loss(
            scores, parameters
        )
        if self.costs is None:
            sums = log_residuals(scores, self.codes, self.weight)
            objective = sums.log_loss
        else:
            sums = cost_residuals(scores, self.codes, self.weight, self.costs)
            objective = sums.expected_cost
        losses = Losses(
            float(objective + self.generative_weight * generative),
            float(sums.log_loss),
            float(sums.decision_cost),
            float(sums.error),
            float(self.weight.sum()),
            len(self.codes),
        )
        return RowEvaluation(parameters, losses, scores)

    def _generative_loss(self, scores: FloatArray, parameters: Any) -> float:
        """Negative log joint of the rows with their labels, summed."""
        log_joint = scores[self.codes, np.arange(len(self.codes))]
        if hasattr(self.family, "row_constant"):
            log_joint = log_joint + self.family.row_constant(self.rows, parameters)
        return -float(self.weight @ log_joint)
