"""Categorical naive Bayes as a family, alone or together with Gaussian features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array

from prudent.calibration.families import (
    PriorStrengths,
    Statistics,
    shrunken_log_priors,
)
from prudent.calibration.gaussian import DiagonalFamily, Normals
from prudent.core.types import BoolArray, FloatArray, IntArray

#: Codes of a level that the fit does not know, and of no level at all.
UNSEEN, MISSING = -1, -2


@dataclass(frozen=True, slots=True)
class Categoricals:
    """Log probabilities of the classes, and of the levels given the class."""

    log_priors: FloatArray  # (r,)
    log_levels: FloatArray  # (r, D + J): D levels, then an unseen one of each feature


@dataclass(frozen=True)
class CategoricalFamily:
    """Independent categorical features given the class.

    Statistics s0 (r,) and the level counts s1 (r, D), D = sum_j r_j.

    Attributes
    ----------
    n_levels : ndarray of int, shape (J,)
        Number of levels r_j of each feature.
    strengths : PriorStrengths
    """

    n_levels: IntArray
    strengths: PriorStrengths

    @property
    def constant_features(self) -> IntArray:
        """Features with a single level, which say nothing and are ignored."""
        return np.flatnonzero(self.n_levels == 1)

    @property
    def _offsets(self) -> IntArray:
        return np.cumsum(self.n_levels) - self.n_levels

    @property
    def _pseudo_counts(self) -> FloatArray:
        """a_j / r_j of each feature."""
        strengths = np.broadcast_to(self.strengths.levels, self.n_levels.shape)
        return strengths / self.n_levels

    def prepare(self, codes: IntArray) -> csr_array:
        """One-hot rows (m, D + J) of level codes (m, J).

        `UNSEEN` is a level that the fit does not know; a `MISSING` cell has no entry.
        """
        m, n_features = codes.shape
        n_seen = int(self.n_levels.sum())
        columns = np.where(
            codes >= 0, codes + self._offsets, n_seen + np.arange(n_features)
        )
        there = codes != MISSING
        ends = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
        return csr_array(
            (np.ones(ends[-1]), columns[there], ends), shape=(m, n_seen + n_features)
        )

    def statistics(self, Z: csr_array, Q: FloatArray) -> Statistics:
        """s0 and level counts of the soft labels Q (m, r)."""
        counts = (Z.T @ Q).T
        return [Q.sum(axis=0), counts[:, : int(self.n_levels.sum())]]

    def parameters(self, statistics: Statistics) -> Categoricals:
        """q_kjl = (s1_kjl + a_j / r_j) / (sum_l s1_kjl + a_j)."""
        counts, totals = self._shrunken_counts(statistics[1])
        unseen = np.broadcast_to(self._pseudo_counts, totals.shape)
        with np.errstate(divide="ignore"):  # log 0 = -inf: an impossible level
            log_levels = np.log(counts / np.repeat(totals, self.n_levels, axis=1))
            # Without pseudo count or alternative an unseen level says nothing.
            speaks = (unseen > 0) & (self.n_levels > 1)
            log_unseen = np.log(np.where(speaks, unseen / totals, 1.0))
        return Categoricals(
            shrunken_log_priors(statistics[0], self.strengths.classes),
            np.hstack([log_levels, log_unseen]),
        )

    def log_density(self, Z: csr_array, parameters: Categoricals) -> FloatArray:
        """Log of the joint probability of class and levels, (m, r)."""
        return self.level_scores(Z, parameters) + parameters.log_priors

    def sample(
        self,
        parameters: Categoricals,
        codes: IntArray,
        random: np.random.RandomState,
    ) -> IntArray:
        """Level codes of a row of each of these classes."""
        levels = self.learned(parameters)["level_probabilities_"]
        drawn = random.random_sample((len(levels), len(codes)))
        columns = [
            (np.cumsum(of_feature, axis=1)[codes] < u[:, np.newaxis] * (1 - 1e-15)).sum(
                axis=1
            )
            for of_feature, u in zip(levels, drawn, strict=True)
        ]
        return np.minimum(np.column_stack(columns), self.n_levels - 1)

    def log_joint(self, Z: csr_array, parameters: Categoricals) -> FloatArray:
        """Log p_k + sum_j log q_{k, j, x_j}, shape (m, r).

        A row that no class can have produced gets log p_k.
        """
        scores = self.level_scores(Z, parameters) + parameters.log_priors
        return replace_impossible(scores, parameters.log_priors)

    def level_scores(self, Z: csr_array, parameters: Categoricals) -> FloatArray:
        """sum_j log q_{k, j, x_j}, shape (m, r) in Fortran order."""
        return np.asfortranarray(Z @ np.ascontiguousarray(parameters.log_levels.T))

    def is_valid(self, statistics: Statistics) -> BoolArray:
        """s0_k > 0 and no shrunken level count below zero, shape (r,)."""
        counts, totals = self._shrunken_counts(statistics[1])
        valid = (counts >= 0).all(axis=1) & (totals > 0).all(axis=1)
        return valid & (statistics[0] > 0)

    def freeze(self, old: Statistics, new: Statistics) -> Statistics:
        """Single counts that would leave the valid range keep their old value."""
        counts, _ = self._shrunken_counts(new[1])
        return [
            np.where(new[0] > 0, new[0], old[0]),
            np.where(counts >= 0, new[1], old[1]),
        ]

    def learned(self, parameters: Categoricals) -> dict[str, Any]:
        """Parameters by the name of the fitted attribute."""
        levels = np.exp(parameters.log_levels[:, : int(self.n_levels.sum())])
        return {
            "priors_": np.exp(parameters.log_priors),
            "level_probabilities_": np.split(levels, self._offsets[1:], axis=1),
        }

    def _shrunken_counts(self, s1: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Counts plus pseudo counts (r, D) and their sum per feature (r, J)."""
        counts = s1 + np.repeat(self._pseudo_counts, self.n_levels)
        return counts, np.add.reduceat(counts, self._offsets, axis=1)


@dataclass(frozen=True, slots=True)
class MixedRows:
    """Rows with numbers and level codes side by side; indexes like an array."""

    numbers: Any
    levels: Any

    def __len__(self) -> int:
        return int(self.numbers.shape[0])

    def __getitem__(self, rows: Any) -> MixedRows:
        return MixedRows(self.numbers[rows], self.levels[rows])


@dataclass(frozen=True, slots=True)
class MixedParameters:
    """Parameters of both parts; the class probabilities are the same in both."""

    gaussian: Normals
    categorical: Categoricals


@dataclass(frozen=True)
class MixedFamily:
    """Naive Bayes with Gaussian and categorical features and one shared s0.

    Statistics s0 (r,), s1 (r, d) and s2 (r, d) of the numbers, with missing numbers the
    counts of those that are there (r, d), and level counts (r, D) last.
    """

    gaussian: DiagonalFamily
    categorical: CategoricalFamily

    @classmethod
    def from_rows(
        cls,
        X: MixedRows,
        weight: FloatArray,
        n_levels: IntArray,
        strengths: PriorStrengths,
    ) -> Self:
        """Family standardised by the numbers of the rows."""
        gaussian = DiagonalFamily.from_rows(X.numbers, weight, strengths)
        return cls(gaussian, CategoricalFamily(n_levels, strengths))

    @property
    def constant_features(self) -> IntArray:
        """Ignored features, the numbers counted first and then the levels."""
        n_numbers = len(self.gaussian.centre)
        levels = self.categorical.constant_features + n_numbers
        return np.concatenate([self.gaussian.constant_features, levels])

    def prepare(self, X: MixedRows) -> MixedRows:
        """Standardised numbers and one-hot levels."""
        return MixedRows(
            self.gaussian.prepare(X.numbers), self.categorical.prepare(X.levels)
        )

    def statistics(self, Z: MixedRows, Q: FloatArray) -> Statistics:
        """Statistics of the soft labels Q (m, r)."""
        _, counts = self.categorical.statistics(Z.levels, Q)
        return [*self.gaussian.statistics(Z.numbers, Q), counts]

    def parameters(self, statistics: Statistics) -> MixedParameters:
        """Closed-form parameters of both parts."""
        return MixedParameters(
            self.gaussian.parameters(statistics[:-1]),
            self.categorical.parameters([statistics[0], statistics[-1]]),
        )

    def log_joint(self, Z: MixedRows, parameters: MixedParameters) -> FloatArray:
        """Sum of both log joints with log p_k counted once, shape (m, r)."""
        scores = self.gaussian.log_joint(Z.numbers, parameters.gaussian)
        scores += self.categorical.level_scores(Z.levels, parameters.categorical)
        return replace_impossible(scores, parameters.gaussian.log_priors)

    def log_density(self, Z: MixedRows, parameters: MixedParameters) -> FloatArray:
        """Log of the joint density of class, numbers and levels, (m, r)."""
        scores = self.gaussian.log_density(Z.numbers, parameters.gaussian)
        return scores + self.categorical.level_scores(Z.levels, parameters.categorical)

    def is_valid(self, statistics: Statistics) -> BoolArray:
        """Whether both parts are valid, shape (r,)."""
        return self.gaussian.is_valid(statistics[:-1]) & self.categorical.is_valid(
            [statistics[0], statistics[-1]]
        )

    def freeze(self, old: Statistics, new: Statistics) -> Statistics:
        """Single level counts keep their old value, the Gaussian part moves whole."""
        if not self.gaussian.is_valid(new[:-1]).all():
            return old
        s0, counts = self.categorical.freeze([old[0], old[-1]], [new[0], new[-1]])
        return [s0, *new[1:-1], counts]

    def learned(self, parameters: MixedParameters) -> dict[str, Any]:
        """Parameters by the name of the fitted attribute."""
        return self.gaussian.learned(parameters.gaussian) | self.categorical.learned(
            parameters.categorical
        )


def replace_impossible(scores: FloatArray, log_priors: FloatArray) -> FloatArray:
    """Give rows whose score is -inf for every class the class probabilities."""
    impossible = np.isneginf(scores).all(axis=1)
    scores[impossible] = log_priors
    return scores
