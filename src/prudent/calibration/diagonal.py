"""Gaussian families of independent features, variances per class or for all.

Cells may be missing: their statistics are sums over the cells that are there, with
the counts of those last.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from prudent.calibration.families import Statistics
from prudent.calibration.gaussian import (
    ROWS_PER_BLOCK,
    GaussianFamily,
    Normals,
    SeenRows,
    Standardised,
    linear_scores,
)
from prudent.calibration.matrices import TiedFamily
from prudent.core.types import FloatArray
from prudent.core.validation import Structure


@dataclass(frozen=True)
class DiagonalFamily(GaussianFamily):
    """One variance per class and feature: Gaussian naive Bayes.

    Statistics s0 (r,), s1 (r, d), s2 (r, d) of 1, x and x^2.
    """

    is_diagonal: ClassVar[bool] = True

    def _sums(self, Z: FloatArray, Q: FloatArray) -> Statistics:
        first = Q.T @ Z
        second = np.zeros((Q.shape[1], Z.shape[1] - 1))
        for start in range(0, len(Z), ROWS_PER_BLOCK):
            block = slice(start, start + ROWS_PER_BLOCK)
            second += Q.T[:, block] @ np.square(Z[block, 1:])
        return [first[:, 0], first[:, 1:], second]

    def _scores(self, rows: Any, parameters: Normals) -> FloatArray:
        curvatures = -0.5 / parameters.covariances
        if isinstance(rows, SeenRows):
            Z, linear = rows.Z, parameters.scores[:, 1:]
            constants = np.log(parameters.covariances) + parameters.means * linear
            scores = -0.5 * constants @ rows.seen.T + linear @ Z[:, 1:].T
            scores += parameters.log_priors[:, np.newaxis]
        else:
            Z = rows
            scores = parameters.scores @ Z.T
        for start in range(0, len(Z), ROWS_PER_BLOCK):
            block = slice(start, start + ROWS_PER_BLOCK)
            scores[:, block] += curvatures @ np.square(Z[block, 1:]).T
        return scores.T

    def _moments(self, statistics: Statistics) -> tuple[FloatArray, FloatArray]:
        """Means, and variances sigma^2_kj = s2_kj / n_kj - mu_kj^2 shrunken."""
        _, s1, s2, *_ = statistics
        n = self._cells(statistics)
        means = self._means(s1, n)
        variances = self._prior_scatter + s2 - s1 * means
        return means, variances / (self._covariance_strength + n)

    def _with_scores(
        self, log_priors: FloatArray, means: FloatArray, covariances: FloatArray
    ) -> Normals:
        # log p_k - sum_j (log sigma^2 + (x - mu)^2 / sigma^2) / 2, expanded in x
        linear = means / covariances
        logs = np.log(covariances) + means * linear
        constants = log_priors - 0.5 * logs.sum(axis=1)
        scores = linear_scores(constants, linear)
        return Normals(log_priors, means, covariances, scores)


@dataclass(frozen=True)
class TiedDiagonalFamily(TiedFamily):
    """One variance per feature for all classes: the paper's logistic regression.

    Statistics s0 (r,), s1 (r, d), with the second moment v / M (d,) fixed.
    """

    is_diagonal: ClassVar[bool] = True
    structure: ClassVar[Structure] = "diagonal"

    def _scores(self, rows: Any, parameters: Normals) -> FloatArray:
        if not isinstance(rows, SeenRows):
            return super()._scores(rows, parameters)
        linear = parameters.scores[:, 1:]
        scores = rows.Z[:, 1:] @ linear.T
        scores -= 0.5 * rows.seen @ (parameters.means * linear).T
        return scores + parameters.log_priors

    def row_constant(self, rows: Standardised, parameters: Normals) -> FloatArray:
        """As `TiedFamily.row_constant`, over the cells that are there."""
        if not isinstance(rows, SeenRows):
            return super().row_constant(rows, parameters)
        variances = parameters.covariances
        quadratic = np.square(rows.Z[:, 1:]) @ (1 / variances)
        return -0.5 * (rows.seen @ np.log(variances) + quadratic)

    def _moments(self, statistics: Statistics) -> tuple[FloatArray, FloatArray]:
        s1, n = statistics[1], self._cells(statistics)
        total = n.sum(axis=0)
        means = self._means(s1, n)
        within = total * self.second_moment - (s1 * means).sum(axis=0)
        within += self._prior_scatter
        return means, within / (self._covariance_strength + total)

    def _second_sums(self, Z: FloatArray, weight: FloatArray) -> FloatArray:
        return np.einsum("i,ij,ij->j", weight, Z[:, 1:], Z[:, 1:])
