"""A fitted model and the questions one can ask it."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from prudent.core.classes import log_probabilities
from prudent.core.posterior import posterior_bounds
from prudent.core.types import BoolArray, FloatArray
from prudent.imprecise.box import Boxes, DiagonalBoxes
from prudent.imprecise.criteria import (
    e_admissible,
    expected_cost_bounds,
    interval_undominated,
    undominated_by_cost,
)
from prudent.imprecise.prior import prior_bounds
from prudent.imprecise.questions import Question


class Model(NamedTuple):
    """Classes in scaled coordinates (x - origin) / scale of the features in use."""

    features: NDArray[np.intp]  # (p,) columns in use
    origin: FloatArray  # (p,) in units of X
    scale: FloatArray  # (p,) in units of X
    normaliser: FloatArray  # (K,) log density of each class at its centre
    prior: FloatArray  # (K,)
    total: float  # weight of the rows behind the model
    boxes: Boxes | DiagonalBoxes

    @classmethod
    def of_boxes(
        cls,
        features: NDArray[np.intp],
        origin: FloatArray,
        scale: FloatArray,
        prior: FloatArray,
        total: float,
        boxes: Boxes | DiagonalBoxes,
    ) -> Self:
        """Put the parts together; densities are in units of X."""
        volume = np.log(scale).sum() + 0.5 * len(scale) * np.log(2 * np.pi)
        normaliser = -0.5 * boxes.log_determinants - volume
        return cls(features, origin, scale, normaliser, prior, total, boxes)

    def points(self, X: NDArray[Any]) -> FloatArray:
        """Rows in scaled coordinates, float64 and contiguous."""
        if len(self.features) < X.shape[1]:
            X = X[:, self.features]
        points = np.subtract(X, self.origin, dtype=np.float64, order="C")
        points /= self.scale
        return points

    def log_joint(self, X: NDArray[Any]) -> FloatArray:
        """Log prior + log density of the precise model, (n, K)."""
        half = self.boxes.half_distances(self.points(X))
        return np.subtract(
            log_probabilities(self.prior) + self.normaliser, half, out=half
        )

    def constants(self, prior_imprecision: float) -> tuple[FloatArray, FloatArray]:
        """Log joints at the class centres under the prior's two bounds."""
        lower, upper = prior_bounds(self.prior, prior_imprecision / self.total)
        return log_probabilities(lower) + self.normaliser, log_probabilities(
            upper
        ) + self.normaliser

    def bounds(
        self, X: NDArray[Any], question: Question
    ) -> tuple[FloatArray, FloatArray, int]:
        """Bounds of the log joint (n, K), and how many met the node limit."""
        return self.boxes.bounds(
            self.points(X),
            question.imprecision,
            *self.constants(question.prior_imprecision),
            question.max_nodes,
        )

    def keep(self, X: NDArray[Any], question: Question) -> tuple[BoolArray, int]:
        """Classes that the criterion keeps (n, K), and unanswered questions."""
        if question.criterion == "interval":
            lower, upper, unanswered = self.bounds(X, question)
            return interval_undominated(lower, upper), unanswered
        if question.costs is not None:
            return self._keep_by_cost(X, question, question.costs)
        return self.boxes.keep(
            self.points(X),
            question.imprecision,
            *self.constants(question.prior_imprecision),
            question.max_nodes,
        )

    def _keep_by_cost(
        self, X: NDArray[Any], question: Question, costs: FloatArray
    ) -> tuple[BoolArray, int]:
        # On likelihoods: the prior varies jointly with them.
        lower, upper, unanswered = self.boxes.bounds(
            self.points(X),
            question.imprecision,
            self.normaliser,
            self.normaliser,
            question.max_nodes,
        )
        radius = question.prior_imprecision / self.total
        kept = undominated_by_cost(lower, upper, costs, self.prior, radius)
        if question.criterion == "e_admissible":
            log_prior = log_probabilities(self.prior)
            kept = e_admissible(lower + log_prior, upper + log_prior, costs, kept)
        return kept, unanswered

    def cost_bounds(
        self, X: NDArray[Any], question: Question
    ) -> tuple[FloatArray, FloatArray, int]:
        """Bounds of the posterior expected cost of each class (n, K)."""
        lower, upper, unanswered = self.bounds(X, question)
        if question.costs is None:
            unlikely, likely = posterior_bounds(lower, upper)
            return 1.0 - likely, 1.0 - unlikely, unanswered
        return *expected_cost_bounds(lower, upper, question.costs), unanswered

    def critical(
        self, X: NDArray[Any], question: Question, grid: FloatArray | None = None
    ) -> tuple[FloatArray, int]:
        """Smallest imprecision that keeps each class; see `Boxes.critical`."""
        return self.boxes.critical(
            self.points(X),
            *self.constants(question.prior_imprecision),
            question.max_nodes,
            grid,
        )
