"""The learned rule: from rows to decisions, sets and posterior bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from prudent.core.classes import log_probabilities, spread_over_classes
from prudent.core.posterior import dominance_sets, minimax_scores, posterior_bounds
from prudent.core.types import BoolArray, FloatArray, IntArray
from prudent.optimistic.class_scores import Bound, ClassScores

Rule = Literal["ratio", "minimax"]


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """Scores of the classes seen and how they are compared.

    Rows are scored block by block, so that memory beside the answers does not grow
    with the rows.

    Attributes
    ----------
    scores : ClassScores
        Ambiguity sets of the classes seen.
    set_radii : ndarray of shape (n_seen,)
        Radii that `sets` uses instead.
    rule : {"ratio", "minimax"}
    priors : ndarray of shape (n_classes,)
        Of all classes.
    offsets : ndarray of shape (n_classes,)
        Added to the scores before they are compared; -inf rules a class out.
    seen : ndarray of bool, shape (n_classes,)
        Classes with rows. The others have score -inf and are in no set.
    """

    scores: ClassScores
    set_radii: FloatArray
    rule: Rule
    priors: FloatArray
    offsets: FloatArray
    seen: BoolArray

    @property
    def log_threshold(self) -> float | None:
        """Log of the score ratio from which class 1 wins; None beyond two classes."""
        if len(self.priors) > 2:
            return None
        return float(self.offsets[0] - self.offsets[1])

    def decision(
        self, X: NDArray[Any], log_thresholds: FloatArray | None = None
    ) -> FloatArray:
        """Two classes: ratio less threshold (n,); more: compared values (n, K).

        `log_thresholds` (n,) are the thresholds of a rule that has one for each row.
        """
        n_classes = len(self.priors)
        decision = np.empty((len(X), n_classes) if n_classes > 2 else len(X))
        for rows, scores, D in self.scores.blocks(X, *self.bounds):
            decision[rows] = self.compared(scores, D)
        if log_thresholds is not None:
            decision -= log_thresholds
        return decision

    def probabilities(
        self, X: NDArray[Any], log_thresholds: FloatArray | None = None
    ) -> FloatArray:
        """Softmax of the compared scores, (n, K)."""
        probabilities = np.empty((len(X), len(self.priors)))
        for rows, scores, D in self.scores.blocks(X, *self.bounds):
            decision = self.compared(scores, D)
            if decision.ndim == 2:
                probabilities[rows] = softmax(decision, axis=1)
                continue
            if log_thresholds is not None:
                decision = decision - log_thresholds[rows]
            probabilities[rows, 0] = expit(-decision)
            probabilities[rows, 1] = expit(decision)
        return probabilities

    def sets(
        self, X: NDArray[Any], log_thresholds: FloatArray | None = None
    ) -> BoolArray:
        """Classes that no other dominates, and the winner, shape (n, K)."""
        log_priors = self._log_priors()
        ends: tuple[Bound, ...] = ("lower", self.set_radii), ("upper", self.set_radii)
        same = np.array_equal(self.set_radii, self.scores.radii)
        asked = ends if same else ends + self.bounds
        sets = np.zeros((len(X), len(self.priors)), dtype=bool)
        for rows, scores, D in self.scores.blocks(X, *asked):
            decision = self.compared(scores[-len(self.bounds) :], D)
            if log_thresholds is not None:
                decision = decision - log_thresholds[rows]
            lower, upper = scores[0] + log_priors, scores[1] + log_priors
            block = spread_over_classes(dominance_sets(lower, upper), self.seen, False)
            block[np.arange(len(block)), winner(decision)] = True
            sets[rows] = block
        return sets

    def posterior_bounds(self, X: NDArray[Any]) -> tuple[FloatArray, FloatArray]:
        """Least and largest posterior of each class, 0 for a class not seen.

        Raises
        ------
        ValueError
            For the nonparametric likelihood.
        """
        if self.scores.likelihood != "gaussian":
            raise ValueError(
                "posterior_bounds needs likelihood='gaussian': without a likelihood "
                "the worst density of every class is 0."
            )
        log_priors = self._log_priors()
        radii = self.scores.radii
        least, most = (np.empty((len(X), len(self.priors))) for _ in range(2))
        for rows, scores, _ in self.scores.blocks(
            X, ("lower", radii), ("upper", radii)
        ):
            lower, upper = posterior_bounds(*(each + log_priors for each in scores))
            least[rows] = spread_over_classes(lower, self.seen, 0.0)
            most[rows] = spread_over_classes(upper, self.seen, 0.0)
        return least, most

    def optimistic(self, X: NDArray[Any]) -> FloatArray:
        """Optimistic log scores of all classes."""
        return spread_over_classes(self.scores.optimistic(X), self.seen, -np.inf)

    def pessimistic(self, X: NDArray[Any]) -> FloatArray:
        """Pessimistic log scores of all classes."""
        return spread_over_classes(self.scores.pessimistic(X), self.seen, -np.inf)

    @property
    def bounds(self) -> tuple[Bound, ...]:
        """What the rule compares."""
        radii = self.scores.radii
        upper: Bound = ("upper", radii)
        return (upper,) if self.rule == "ratio" else (("lower", radii), upper)

    def _log_priors(self) -> FloatArray:
        """Weights of the scores in sets: a nonparametric score is no density."""
        if self.scores.likelihood == "gaussian":
            return log_probabilities(self.priors[self.seen])
        return np.zeros(np.count_nonzero(self.seen))

    def compared(self, scores: list[FloatArray], distances: FloatArray) -> FloatArray:
        """Values that decide a block of rows, from the scores of `bounds`."""
        if self.rule == "minimax":
            log_priors = self._log_priors()
            compared = minimax_scores(*(each + log_priors for each in scores))
        else:
            compared = self.scores.with_ties_broken(scores[0], distances)
        threshold = self.log_threshold
        if threshold is not None:
            return compared[:, 1] - compared[:, 0] - threshold
        compared = compared + self.offsets[self.seen]
        return spread_over_classes(compared, self.seen, -np.inf)


def winner(decision: FloatArray) -> IntArray:
    """Index of the class that a decision value stands for."""
    if decision.ndim == 1:
        return (decision >= 0).astype(np.intp)
    return decision.argmax(axis=1)
