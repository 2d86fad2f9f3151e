"""Log scores of rows for all classes, block by block."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from prudent.core.distances import MahalanobisFactors
from prudent.core.moments import ClassMoments
from prudent.core.types import FloatArray
from prudent.optimistic import formulas
from prudent.optimistic.scores import (
    COMPILED_FROM,
    LARGEST_DISTANCE,
    Likelihood,
    ScoreFunction,
)

_EQUATION = {
    ("gaussian", "upper"): formulas.GAUSSIAN_UPPER,
    ("gaussian", "lower"): formulas.GAUSSIAN_LOWER,
    ("nonparametric", "upper"): formulas.NONPARAMETRIC_UPPER,
    ("nonparametric", "lower"): formulas.NONPARAMETRIC_LOWER,
}
BLOCK_ROWS = 4096
#: An end of the scores, and the radii (K,) of the ambiguity sets.
Bound = tuple[Literal["lower", "upper"], FloatArray]


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
        return self._all(X, ("upper", self.radii))

    def pessimistic(self, X: NDArray[Any]) -> FloatArray:
        """Worst log score of each row over each ambiguity set, shape (n, K)."""
        return self._all(X, ("lower", self.radii))

    def decision(self, X: NDArray[Any]) -> FloatArray:
        """Optimistic log scores where the nearer of two reached classes leads."""
        decision = np.empty((len(X), len(self.radii)))
        for rows, (upper,), D in self.blocks(X, ("upper", self.radii)):
            decision[rows] = self.with_ties_broken(upper, D)
        return decision

    def with_ties_broken(self, upper: FloatArray, distances: FloatArray) -> FloatArray:
        """Optimistic log scores where the nearer of two reached classes leads.

        A row within reach of several nonparametric balls has score 0 for each of
        them; the distance breaks the tie, by less than any other difference.
        """
        if self.likelihood == "gaussian":
            return upper
        return upper - 1e-200 * distances

    def blocks(
        self, X: NDArray[Any], *asked: Bound
    ) -> Iterator[tuple[slice, list[FloatArray], FloatArray]]:
        """Bounds of the log scores block by block: the memory is bounded.

        Parameters
        ----------
        X : ndarray of shape (n, d)
        *asked : tuple
            "lower" or "upper", and the radii (K,) of the ambiguity sets.

        Yields
        ------
        rows : slice
            Rows of the block.
        scores : list of ndarray of shape (block, K)
            Log scores, one array a bound.
        distances : ndarray of shape (block, K)
            Squared distances. The next block uses all these arrays again.
        """
        n_classes, n_features = self.factors.means.shape
        compiled = len(X) * n_classes >= COMPILED_FROM
        functions = [
            [
                ScoreFunction.of(_EQUATION[self.likelihood, end], n_features, float(r))
                for r in radii
            ]
            for end, radii in asked
        ]
        size = min(len(X), BLOCK_ROWS)
        buffers = [np.empty((size, n_classes), order="F") for _ in asked]
        column = np.empty(size)
        for rows, D in self.factors.blocks(X):
            if not D.max() <= LARGEST_DISTANCE:
                raise ValueError(
                    "a row lies more than 1e50 standard deviations away from a "
                    "class mean; check its units."
                )
            for start in range(0, len(D), BLOCK_ROWS):
                M = D[start : start + BLOCK_ROWS]
                scores = [buffer[: len(M)] for buffer in buffers]
                for k in range(n_classes):
                    for by_class, output in zip(functions, scores, strict=True):
                        by_class[k](M[:, k], column[: len(M)], compiled=compiled)
                        self._to_log_score(k, column[: len(M)], output[:, k])
                first = rows.start + start
                yield slice(first, first + len(M)), scores, M

    def _all(self, X: NDArray[Any], bound: Bound) -> FloatArray:
        """One bound of the log scores of all rows."""
        everything = np.empty((len(X), len(self.radii)))
        for rows, (scores,), _ in self.blocks(X, bound):
            everything[rows] = scores
        return everything

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
        function = ScoreFunction.of(
            _EQUATION[self.likelihood, "upper"], len(centred), radius
        )
        outer = np.outer(centred, centred)
        if self.likelihood == "gaussian":
            t = function.root(M)  # 1/gamma
            share = t / (1 + t)
            return share * centred, (covariance + share * outer) / (1 + t)
        # 1/(1 + gamma), gamma = M/s - 1, or 0 where the ball reaches the row
        share = function.root(M) / M if function.reach < M else 1.0
        return share * centred, covariance + share * outer
