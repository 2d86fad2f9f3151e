"""Log scores of rows for all classes, block by block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from prudent.core.distances import MahalanobisFactors
from prudent.core.moments import ClassMoments
from prudent.core.types import FloatArray
from prudent.optimistic import formulas
from prudent.optimistic.formulas import Equation
from prudent.optimistic.scores import (
    COMPILED_FROM,
    LARGEST_DISTANCE,
    Likelihood,
    ScoreFunction,
)

_UPPER = {
    "gaussian": formulas.GAUSSIAN_UPPER,
    "nonparametric": formulas.NONPARAMETRIC_UPPER,
}
_LOWER = {
    "gaussian": formulas.GAUSSIAN_LOWER,
    "nonparametric": formulas.NONPARAMETRIC_LOWER,
}


@dataclass(frozen=True, slots=True, eq=False)
class ClassScores:
    """Ambiguity set of each class, ready to score rows.

    Attributes
    ----------
    likelihood : {"gaussian", "nonparametric"}
        Which score.
    factors : MahalanobisFactors
        Nominal means and factored covariances.
    radii : ndarray of shape (K,)
        Radius of each class.
    """

    likelihood: Likelihood
    factors: MahalanobisFactors
    radii: FloatArray

    @classmethod
    def of(
        cls,
        likelihood: Likelihood,
        moments: ClassMoments,
        covariances: FloatArray,
        radii: FloatArray,
    ) -> Self:
        """Factor the covariances around the means of `moments`."""
        factors = MahalanobisFactors.from_covariances(
            moments.mean,
            covariances,
            means_lo=moments.mean_lo,
            classes=moments.classes,
        )
        return cls(likelihood, factors, radii)

    def optimistic(self, X: NDArray[Any]) -> FloatArray:
        """Best log score of each row over each ambiguity set, shape (n, K).

        Gaussian: (L_up - log det S) / 2; nonparametric: -log(1 + q_up).
        """
        return self._evaluate(X, (_UPPER[self.likelihood],))[0]

    def pessimistic(self, X: NDArray[Any]) -> FloatArray:
        """Worst log score of each row over each ambiguity set, shape (n, K)."""
        return self._evaluate(X, (_LOWER[self.likelihood],))[0]

    def bounds(self, X: NDArray[Any]) -> tuple[FloatArray, FloatArray]:
        """Pessimistic and optimistic log scores, from one pass over the rows."""
        lower, upper = self._evaluate(
            X, (_LOWER[self.likelihood], _UPPER[self.likelihood])
        )
        return lower, upper

    def decision(self, X: NDArray[Any]) -> FloatArray:
        """Optimistic log scores where the nearer of two reached classes leads.

        A row within reach of several nonparametric balls has score 0 for each of
        them; the distance breaks the tie, by less than any other difference.
        """
        if self.likelihood == "gaussian":
            return self.optimistic(X)
        tie_breaks = np.empty((len(X), len(self.radii)))
        scores = self._evaluate(
            X, (formulas.NONPARAMETRIC_UPPER,), distances=tie_breaks
        )[0]
        tie_breaks *= 1e-200
        scores -= tie_breaks
        return scores

    def _evaluate(
        self,
        X: NDArray[Any],
        equations: tuple[Equation, ...],
        distances: FloatArray | None = None,
    ) -> list[FloatArray]:
        """Log scores (n, K) by each equation; the memory beside them is bounded."""
        n_rows, (n_classes, n_features) = len(X), self.factors.means.shape
        compiled = n_rows * n_classes >= COMPILED_FROM
        functions = [
            [ScoreFunction.of(equation, n_features, float(r)) for r in self.radii]
            for equation in equations
        ]
        outputs = [np.empty((n_rows, n_classes)) for _ in equations]
        for rows, D in self.factors.blocks(X):
            if not D.max() <= LARGEST_DISTANCE:
                raise ValueError(
                    "a row lies more than 1e50 standard deviations away from a "
                    "class mean; check its units."
                )
            if distances is not None:
                distances[rows] = D
            scores = np.empty(len(D))
            for k in range(n_classes):
                for by_class, output in zip(functions, outputs, strict=True):
                    by_class[k](D[:, k], scores, compiled=compiled)
                    self._to_log_score(k, scores, output[rows, k])
        return outputs

    def _to_log_score(self, k: int, scores: FloatArray, out: FloatArray) -> None:
        if self.likelihood == "gaussian":
            np.subtract(scores, self.factors.log_determinants[k], out=scores)
            np.multiply(scores, 0.5, out=out)
        else:
            np.log1p(scores, out=scores)
            np.negative(scores, out=out)

    def most_plausible(
        self, k: int, row: FloatArray, covariance: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Moments in the ball of class `k` that explain one row best.

        Parameters
        ----------
        k : int
            Class.
        row : ndarray of shape (d,)
        covariance : ndarray of shape (d, d)
            Nominal covariance of the class.

        Returns
        -------
        shift : ndarray of shape (d,)
            mu* - m.
        covariance : ndarray of shape (d, d)
            Sigma* (Nguyen et al. 2020, equations 8 and 11).
        """
        centred = (row - self.factors.means[k]) - self.factors.means_lo[k]
        z = self.factors.inverse_factors[k] @ centred
        M = float(z @ z)
        radius = float(self.radii[k])
        function = ScoreFunction.of(_UPPER[self.likelihood], len(centred), radius)
        outer = np.outer(centred, centred)
        if self.likelihood == "gaussian":
            t = function.root(M)  # 1/gamma
            share = t / (1 + t)
            return share * centred, (covariance + share * outer) / (1 + t)
        # 1/(1 + gamma), gamma = M/s - 1, or 0 where the ball reaches the row
        share = function.root(M) / M if function.reach < M else 1.0
        return share * centred, covariance + share * outer
