"""The learned rule: from rows to scores, decisions, sets and posterior bounds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from prudent.core.classes import (
    dominance_sets,
    log_probabilities,
    minimax_scores,
    posterior_bounds,
    spread_over_classes,
    winner,
)
from prudent.core.linalg import MahalanobisFactors
from prudent.core.types import BoolArray, FloatArray
from prudent.optimistic.formulas import EQUATIONS
from prudent.optimistic.scores import (
    COMPILED_FROM,
    LARGEST_DISTANCE,
    Ball,
    End,
    Likelihood,
    best_variances,
    covariance_score,
    reach,
    root,
    solve,
)

Rule = Literal["ratio", "minimax"]
#: An end of the scores, and the radii (K,) of the balls.
Bound = tuple[End, FloatArray]

BLOCK_ROWS = 4096


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """Balls of the classes seen, and how their scores are compared.

    Rows are scored block by block: beyond the answers, memory does not grow with them.
    Gaussian log scores are (L - log det S) / 2, nonparametric ones -log(1 + q).
    """

    likelihood: Likelihood
    ball: Ball
    rule: Rule
    factors: MahalanobisFactors  # nominal means and covariances of the classes seen
    radii: FloatArray  # (n_seen,)
    set_radii: FloatArray  # (n_seen,) for `sets`
    priors: FloatArray  # (n_classes,)
    offsets: FloatArray  # (n_classes,) added before scores are compared, or -inf
    seen: BoolArray  # (n_classes,) the others have score -inf and are in no set

    @property
    def log_threshold(self) -> float | None:
        """Log of the score ratio from which class 1 wins; None beyond two classes."""
        if len(self.priors) > 2:
            return None
        return float(self.offsets[0] - self.offsets[1])

    @property
    def bounds(self) -> tuple[Bound, ...]:
        """What the rule compares."""
        upper: Bound = ("upper", self.radii)
        return (upper,) if self.rule == "ratio" else (("lower", self.radii), upper)

    def scores(self, X: NDArray[Any], end: End) -> FloatArray:
        """Best or worst log score of rows over the ball of each class, (n, n_classes).

        `end` is "upper" or "lower"; -inf for classes without rows.
        """
        values = np.empty((len(X), len(self.radii)))
        for rows, (scores,), _ in self.blocks(X, (end, self.radii)):
            values[rows] = scores
        return spread_over_classes(values, self.seen, -np.inf)

    def decision(
        self, X: NDArray[Any], log_thresholds: FloatArray | None = None
    ) -> FloatArray:
        """What decides: the score ratio less the threshold, or the compared scores.

        Parameters
        ----------
        X : ndarray of shape (n, d)
            The features in use.
        log_thresholds : ndarray of shape (n,) or None
            Thresholds of a rule that has one for each row.

        Returns
        -------
        ndarray of shape (n,) or (n, n_classes)
            Two classes: >= 0 is the second. More: the largest wins.
        """
        n_classes = len(self.priors)
        decision = np.empty((len(X), n_classes) if n_classes > 2 else len(X))
        for rows, _, block in self._decided(X, log_thresholds, self.bounds):
            decision[rows] = block
        return decision

    def probabilities(
        self, X: NDArray[Any], log_thresholds: FloatArray | None = None
    ) -> FloatArray:
        """Softmax of the compared scores, (n, n_classes); rows sum to 1."""
        probabilities = np.empty((len(X), len(self.priors)))
        for rows, _, decision in self._decided(X, log_thresholds, self.bounds):
            probabilities[rows] = shares(decision)
        return probabilities

    def sets(
        self, X: NDArray[Any], log_thresholds: FloatArray | None = None
    ) -> BoolArray:
        """Classes that no other dominates, and the winner, (n, n_classes).

        Class b is dominated where its score by the best moments of its ball of
        `set_radii` is below that of some class by the worst moments of its own.
        """
        log_priors = self._log_priors()
        ends: tuple[Bound, ...] = ("lower", self.set_radii), ("upper", self.set_radii)
        same = np.array_equal(self.set_radii, self.radii)
        bounds = ends if same else ends + self.bounds
        sets = np.zeros((len(X), len(self.priors)), dtype=bool)
        for rows, scores, decision in self._decided(X, log_thresholds, bounds):
            lower, upper = scores[0] + log_priors, scores[1] + log_priors
            block = spread_over_classes(dominance_sets(lower, upper), self.seen, False)
            block[np.arange(len(block)), winner(decision)] = True
            sets[rows] = block
        return sets

    def _decided(
        self,
        X: NDArray[Any],
        log_thresholds: FloatArray | None,
        bounds: tuple[Bound, ...],
    ) -> Iterator[tuple[slice, list[FloatArray], FloatArray]]:
        """Rows, their scores by `bounds`, the rule's last, and their decision."""
        for rows, scores, D in self.blocks(X, *bounds):
            decision = self.compared(scores[-len(self.bounds) :], D)
            if log_thresholds is not None:
                decision = decision - log_thresholds[rows]
            yield rows, scores, decision

    def posterior_bounds(self, X: NDArray[Any]) -> tuple[FloatArray, FloatArray]:
        """Least and largest posterior of each class over all moments in the balls.

        Both are (n, n_classes), 0 for a class without rows.

        Raises
        ------
        ValueError
            Of the nonparametric score, which is no density.
        """
        if self.likelihood != "gaussian":
            raise ValueError(
                "posterior_bounds needs likelihood='gaussian': without a likelihood "
                "the worst density of every class is 0."
            )
        log_priors = self._log_priors()
        least, most = (np.empty((len(X), len(self.priors))) for _ in range(2))
        ends: tuple[Bound, ...] = ("lower", self.radii), ("upper", self.radii)
        for rows, scores, _ in self.blocks(X, *ends):
            lower, upper = posterior_bounds(*(each + log_priors for each in scores))
            least[rows] = spread_over_classes(lower, self.seen, 0.0)
            most[rows] = spread_over_classes(upper, self.seen, 0.0)
        return least, most

    def compared(self, scores: list[FloatArray], distances: FloatArray) -> FloatArray:
        """Values that decide a block of rows, from the scores of `bounds`."""
        if self.rule == "minimax":
            log_priors = self._log_priors()
            compared = minimax_scores(*(each + log_priors for each in scores))
        else:
            compared = self.with_ties_broken(scores[0], distances)
        threshold = self.log_threshold
        if threshold is not None:
            return compared[:, 1] - compared[:, 0] - threshold
        compared = compared + self.offsets[self.seen]
        if self.likelihood == "nonparametric":
            _raise_nearest(compared, distances)
        return spread_over_classes(compared, self.seen, -np.inf)

    def with_ties_broken(self, upper: FloatArray, distances: FloatArray) -> FloatArray:
        """Optimistic log scores where the nearer of two reached classes leads.

        A row within reach of several nonparametric balls has score 0 for each of
        them; the distance breaks the tie, by less than any other difference.
        """
        if self.likelihood == "gaussian":
            return upper
        return upper - 1e-200 * distances

    def blocks(
        self, X: NDArray[Any], *wanted: Bound
    ) -> Iterator[tuple[slice, list[FloatArray], FloatArray]]:
        """Rows, their log scores (block, n_seen) by each bound, squared distances.

        The next block uses these arrays again.
        """
        n_classes, d = self.factors.means.shape
        compiled = len(X) * n_classes >= COMPILED_FROM
        size = min(len(X), BLOCK_ROWS)
        buffers = [np.empty((size, n_classes), order="F") for _ in wanted]
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
                part = column[: len(M)]
                for (end, radii), output in zip(wanted, scores, strict=True):
                    for k, radius in enumerate(radii.tolist()):
                        if self.ball == "covariance":
                            part[:] = covariance_score(end, M[:, k], d, radius)
                        else:
                            equation = EQUATIONS[self.likelihood, end]
                            solve(equation, M[:, k], d, radius, part, compiled=compiled)
                        self._to_log_score(k, part, output[:, k])
                first = rows.start + start
                yield slice(first, first + len(M)), scores, M

    def most_plausible(
        self, k: int, row: FloatArray, covariance: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Moments in the ball of a class that explain a row best, equations 8 and 11.

        Parameters
        ----------
        k : int
            Number of the class among those with rows.
        row : ndarray of shape (d,)
        covariance : ndarray of shape (d, d)
            The nominal one of the class.

        Returns
        -------
        shift : ndarray of shape (d,)
            mu* - m.
        covariance : ndarray of shape (d, d)
            Sigma*.
        """
        centred = (row - self.factors.means[k]) - self.factors.means_lo[k]
        z = self.factors.inverse_factors[k] @ centred
        M = float(z @ z)
        d, radius = len(centred), float(self.radii[k])
        outer = np.outer(centred, centred)
        if self.ball == "covariance":
            across, along = best_variances(M, d, radius)
            moved = across * covariance
            if M > 0:
                moved += (along - across) / M * outer
            return np.zeros_like(centred), moved
        x = root(EQUATIONS[self.likelihood, "upper"], M, d, radius)
        if self.likelihood == "gaussian":
            share = x / (1 + x)  # x = 1/gamma
            return share * centred, (covariance + share * outer) / (1 + x)
        # 1/(1 + gamma), gamma = M/x - 1, or 0 where the ball reaches the row
        share = x / M if reach(radius) < M else 1.0
        return share * centred, covariance + share * outer

    def _to_log_score(self, k: int, scores: FloatArray, out: FloatArray) -> None:
        """Turn solutions of the score equation of a class into log scores, in `out`."""
        if self.likelihood == "gaussian":
            np.subtract(scores, self.factors.log_determinants[k], out=scores)
            np.multiply(scores, 0.5, out=out)
        else:
            np.log1p(scores, out=scores)
            np.negative(scores, out=out)

    def _log_priors(self) -> FloatArray:
        """Weights of the scores in sets: a nonparametric score is no density."""
        if self.likelihood == "gaussian":
            return log_probabilities(self.priors[self.seen])
        return np.zeros(len(self.radii))


def _raise_nearest(compared: FloatArray, distances: FloatArray) -> None:
    """Raise the nearest of the classes that share the largest value, in place.

    By one rounding error, in rows where several do: an offset swallows differences as
    small as those of `with_ties_broken`.
    """
    largest = compared == compared.max(axis=1, keepdims=True)
    tied = np.flatnonzero(largest.sum(axis=1) > 1)
    nearest = np.where(largest[tied], distances[tied], np.inf).argmin(axis=1)
    compared[tied, nearest] = np.nextafter(compared[tied, nearest], np.inf)


def shares(decision: FloatArray) -> FloatArray:
    """Softmax of decision values, (n, n_classes); of one value a row, two classes."""
    if decision.ndim == 1:
        return np.column_stack([expit(-decision), expit(decision)])
    return softmax(decision, axis=1)
