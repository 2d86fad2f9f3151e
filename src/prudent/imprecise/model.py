"""A fitted model and the questions one can ask it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from prudent.core.classes import log_probabilities
from prudent.core.posterior import posterior_bounds
from prudent.core.types import BoolArray, FloatArray, IntArray
from prudent.imprecise.box import Boxes
from prudent.imprecise.criteria import (
    dominance,
    dominance_by_cost,
    e_admissible,
    expected_cost_bounds,
    interval_undominated,
)
from prudent.imprecise.diagonal import DiagonalBoxes
from prudent.imprecise.prior import ball_log_odds_bounds, prior_bounds
from prudent.imprecise.questions import Question
from prudent.imprecise.utilities import critical_on_grid


class Model(NamedTuple):
    """Classes in scaled coordinates (x - origin) / scale of the features in use."""

    features: IntArray  # (p,) columns in use
    origin: FloatArray  # (p,) in units of X
    scale: FloatArray  # (p,) in units of X
    normaliser: FloatArray  # (K,) log density of each class at its centre
    prior: FloatArray  # (K,)
    total: float  # weight of the rows behind the model
    boxes: Boxes | DiagonalBoxes

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
        return self._bounds(X, question, *self.constants(question.prior_imprecision))

    def keep(self, X: NDArray[Any], question: Question) -> tuple[BoolArray, int]:
        """Classes that the criterion keeps (n, K), and unanswered questions."""
        prior, radius = self._prior(question)
        if question.criterion == "interval":
            lower, upper, unanswered = self._likelihoods(X, question)
            return interval_undominated(lower, upper, prior, radius), unanswered
        admissible = question.criterion == "e_admissible"
        if question.costs is not None:
            dominating, (lower, upper), unanswered = self._by_cost(X, question)
            kept = np.logical_not(dominating.any(axis=1))
            if admissible:
                kept = e_admissible(lower, upper, question.costs, prior, radius, kept)
            return kept, unanswered
        kept, unanswered = self._boxes(question).keep(
            self.points(X),
            question.imprecision,
            *self.constants(question.prior_imprecision),
            question.max_nodes,
        )
        rows = np.flatnonzero(kept.sum(axis=1) > 1)
        if not (admissible and radius > 0 and len(rows)):
            return kept, unanswered  # under a precise prior all of them are admissible
        lower, upper, more = self._likelihoods(X[rows], question)
        kept[rows] = e_admissible(lower, upper, None, prior, radius, kept[rows])
        return kept, unanswered + more

    def dominance(self, X: NDArray[Any], question: Question) -> tuple[BoolArray, int]:
        """Which class is preferred to which in every model (n, K, K)."""
        if question.costs is not None:
            dominating, _, unanswered = self._by_cost(X, question)
            return dominating, unanswered
        lower, upper, unanswered = self.bounds(X, question)
        return dominance(lower, upper), unanswered

    def posterior_bounds(
        self, X: NDArray[Any], question: Question
    ) -> tuple[FloatArray, FloatArray, int]:
        """Least and largest posterior of each class (n, K)."""
        if question.prior_imprecision == 0.0:
            lower, upper, unanswered = self.bounds(X, question)
            return *posterior_bounds(lower, upper), unanswered
        lower, upper, unanswered = self._likelihoods(X, question)
        least, most = ball_log_odds_bounds(lower, upper, *self._prior(question))
        return expit(least), expit(most), unanswered

    def cost_bounds(
        self, X: NDArray[Any], question: Question
    ) -> tuple[FloatArray, FloatArray, int]:
        """Bounds of the posterior expected cost of each class (n, K)."""
        if question.costs is None:
            unlikely, likely, unanswered = self.posterior_bounds(X, question)
            return 1.0 - likely, 1.0 - unlikely, unanswered
        lower, upper, unanswered = self._likelihoods(X, question)
        least, most = expected_cost_bounds(
            lower, upper, question.costs, *self._prior(question)
        )
        return least, most, unanswered

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

    def critical_sets(
        self, X: NDArray[Any], question: Question, grid: FloatArray
    ) -> tuple[FloatArray, int]:
        """First grid point whose sets, under any criterion and costs, have a class."""
        total = 0

        def keep(rows: IntArray, imprecision: float) -> BoolArray:
            nonlocal total
            kept, count = self.keep(X[rows], replace(question, imprecision=imprecision))
            total += count
            return kept

        return critical_on_grid(keep, len(X), len(self.prior), grid), total

    def extremal_means(
        self, X: NDArray[Any], question: Question
    ) -> tuple[FloatArray, FloatArray, int]:
        """Means (n, K, p) with the least and largest density, in units of X."""
        farthest, nearest, unanswered = self._boxes(question).extremes(
            self.points(X), question.imprecision, question.max_nodes
        )
        return farthest * self.scale, nearest * self.scale, unanswered

    def half_widths(self, question: Question) -> FloatArray:
        """How far each mean can move in each feature in use (K, p), in units of X."""
        return self._boxes(question).half_widths(question.imprecision) * self.scale

    def _prior(self, question: Question) -> tuple[FloatArray, float]:
        """Centre and radius of the ball of priors."""
        return self.prior, question.prior_imprecision / self.total

    def _boxes(self, question: Question) -> Boxes | DiagonalBoxes:
        if question.shares is None:
            return self.boxes
        return self.boxes.with_shares(question.shares[self.features])

    def _bounds(
        self, X: NDArray[Any], question: Question, low: FloatArray, up: FloatArray
    ) -> tuple[FloatArray, FloatArray, int]:
        return self._boxes(question).bounds(
            self.points(X), question.imprecision, low, up, question.max_nodes
        )

    def _likelihoods(
        self, X: NDArray[Any], question: Question
    ) -> tuple[FloatArray, FloatArray, int]:
        # Without the prior, which varies jointly with them.
        return self._bounds(X, question, self.normaliser, self.normaliser)

    def _by_cost(
        self, X: NDArray[Any], question: Question
    ) -> tuple[BoolArray, tuple[FloatArray, FloatArray], int]:
        assert question.costs is not None
        lower, upper, unanswered = self._likelihoods(X, question)
        found = dominance_by_cost(lower, upper, question.costs, *self._prior(question))
        return found, (lower, upper), unanswered
