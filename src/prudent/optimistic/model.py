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
from prudent.optimistic.class_scores import ClassScores

Rule = Literal["ratio", "minimax"]


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """Scores of the classes seen and how they are compared.

    Attributes
    ----------
    scores : ClassScores
        Ambiguity sets of the classes seen.
    rule : {"ratio", "minimax"}
    priors : ndarray of shape (n_classes,)
        Of all classes.
    offsets : ndarray of shape (n_classes,)
        Added to the scores before they are compared; -inf rules a class out.
    seen : ndarray of bool, shape (n_classes,)
        Classes with rows. The others have score -inf and are in no set.
    """

    scores: ClassScores
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

    def decision(self, X: NDArray[Any]) -> FloatArray:
        """Two classes: ratio less threshold (n,); more: compared values (n, K)."""
        if self.rule == "minimax":
            return self._compare(minimax_scores(*self._joint_bounds(X)))
        return self._compare(self.scores.decision(X))

    def probabilities(self, X: NDArray[Any]) -> FloatArray:
        """Softmax of the compared scores, (n, K)."""
        decision = self.decision(X)
        if decision.ndim == 1:
            return np.column_stack([expit(-decision), expit(decision)])
        return softmax(decision, axis=1)

    def sets(self, X: NDArray[Any]) -> BoolArray:
        """Classes that no other dominates, and the winner, shape (n, K)."""
        lower, upper = self.scores.bounds(X)
        log_priors = self._log_priors()
        sets = dominance_sets(lower + log_priors, upper + log_priors)
        sets = spread_over_classes(sets, self.seen, False)
        if self.rule == "minimax":
            scores = minimax_scores(lower + log_priors, upper + log_priors)
        else:
            scores = upper
        sets[np.arange(len(sets)), winner(self._compare(scores))] = True
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
        lower, upper = posterior_bounds(*self._joint_bounds(X))
        return (
            spread_over_classes(lower, self.seen, 0.0),
            spread_over_classes(upper, self.seen, 0.0),
        )

    def optimistic(self, X: NDArray[Any]) -> FloatArray:
        """Optimistic log scores of all classes."""
        return spread_over_classes(self.scores.optimistic(X), self.seen, -np.inf)

    def pessimistic(self, X: NDArray[Any]) -> FloatArray:
        """Pessimistic log scores of all classes."""
        return spread_over_classes(self.scores.pessimistic(X), self.seen, -np.inf)

    def _log_priors(self) -> FloatArray:
        """Weights of the scores in sets: a nonparametric score is no density."""
        if self.scores.likelihood == "gaussian":
            return log_probabilities(self.priors[self.seen])
        return np.zeros(np.count_nonzero(self.seen))

    def _joint_bounds(self, X: NDArray[Any]) -> tuple[FloatArray, FloatArray]:
        log_priors = self._log_priors()
        lower, upper = self.scores.bounds(X)
        lower += log_priors
        upper += log_priors
        return lower, upper

    def _compare(self, scores: FloatArray) -> FloatArray:
        threshold = self.log_threshold
        if threshold is not None:
            return scores[:, 1] - scores[:, 0] - threshold
        return spread_over_classes(scores + self.offsets[self.seen], self.seen, -np.inf)


def winner(decision: FloatArray) -> IntArray:
    """Index of the class that a decision value stands for."""
    if decision.ndim == 1:
        return (decision >= 0).astype(np.intp)
    return decision.argmax(axis=1)
