"""Gaussian classes whose means move in a box: exact bounds of the log joint.

In units of the feature scale, the mean of class k is m_k + M_k t with |t_j| <= 1,

- box "mean": M_k = (c / n_k) I, the means themselves move ((22) of the paper);
- box "natural": M_k = (c / n_k) S_k, the natural parameters move ((18)-(19)),

and the exponent is q(t) = z'Az / 2 - r g't + r^2 t'Bt / 2 with z = x - m_k, A the
inverse of S_k, r = c / n_k, and (g, B) = (Az, A) or (z, S_k). Then log joints lie in
[low_k - max q, up_k - min q], where low_k and up_k hold the prior and the
determinant. Class b is kept when up_b - min q_b >= max over a of low_a - max q_a.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dtrtri

from prudent.core.definiteness import check_positive_definite
from prudent.core.distances import MahalanobisFactors
from prudent.core.types import BoolArray, FloatArray
from prudent.imprecise.max_cut import max_cut_dual

_TIE = 1e-9  # log joints closer than this, relatively, are tied


class Boxes(NamedTuple):
    """Classes with matrices, one each or one in common, in scaled units.

    Questions go row by row through compiled code; see `decisions` and `path`.
    """

    mean: FloatArray  # (K, p)
    unit: FloatArray  # (K,) radius of the box at imprecision 1: 1 / n_k
    matrix: NDArray[np.intp]  # (K,) which of the M matrices is the class's
    factor: FloatArray  # (M, p, p) lower triangular U with A = U'U
    coupling: FloatArray  # (M, p, p) B
    dual: FloatArray  # (M, p) Diag(dual) - B is positive semidefinite
    reach: FloatArray  # (M,) at least the maximum of t'Bt
    log_determinant: FloatArray  # (M,) log det S
    natural: bool  # the field is z, not Az

    @classmethod
    def build(
        cls,
        mean: FloatArray,
        covariances: FloatArray,
        matrix: NDArray[np.intp],
        weight: FloatArray,
        box: str,
        classes: NDArray[Any],
    ) -> Self:
        """Factor the M covariances and find their max-cut dual vectors.

        Raises
        ------
        SingularCovarianceError
            If a covariance is singular; the message names one of `classes`.
        """
        # One representative label a matrix, for messages.
        labels = classes[np.unique(matrix, return_index=True)[1]]
        lower = check_positive_definite(covariances, classes=labels)
        factor = np.array([dtrtri(L, lower=1)[0] for L in lower])
        natural = box == "natural"
        coupling = covariances if natural else factor.transpose(0, 2, 1) @ factor
        dual = np.array([max_cut_dual(B) for B in coupling])
        return cls(
            mean=np.ascontiguousarray(mean),
            unit=1.0 / weight,
            matrix=matrix,
            factor=np.ascontiguousarray(factor),
            coupling=np.ascontiguousarray(coupling),
            dual=dual,
            reach=np.minimum(dual.sum(axis=1), np.abs(coupling).sum(axis=(1, 2))),
            log_determinant=2.0 * np.log(np.diagonal(lower, axis1=1, axis2=2)).sum(1),
            natural=natural,
        )

    @property
    def log_determinants(self) -> FloatArray:
        """Log determinant of the covariance of each class."""
        return self.log_determinant[self.matrix]

    def half_distances(self, points: FloatArray) -> FloatArray:
        """Half squared distances z'Az / 2 of every row to every centre (n, K)."""
        if len(self.factor) == len(self.mean):
            centred = MahalanobisFactors(
                self.mean, np.zeros_like(self.mean), self.factor, self.log_determinant
            )
            return 0.5 * centred.squared_distances(points)
        # Matrices in common: one product a matrix, then differences.
        half = np.empty((len(points), len(self.mean)))
        for m, factor in enumerate(self.factor):
            white = points @ factor.T
            for k in np.flatnonzero(self.matrix == m):
                gap = white - factor @ self.mean[k]
                half[:, k] = 0.5 * np.einsum("ij,ij->i", gap, gap)
        return half

    def keep(
        self,
        points: FloatArray,
        imprecision: float,
        low: FloatArray,
        up: FloatArray,
        max_nodes: int,
    ) -> tuple[BoolArray, int]:
        """Undominated classes (n, K), and the questions that met the node limit."""
        from prudent.imprecise.decisions import decide_rows

        half = self.half_distances(points)
        return decide_rows(self, points, half, imprecision, low, up, max_nodes)

    def bounds(
        self,
        points: FloatArray,
        imprecision: float,
        low: FloatArray,
        up: FloatArray,
        max_nodes: int,
    ) -> tuple[FloatArray, FloatArray, int]:
        """Lower and upper log joints (n, K), and how many met the node limit."""
        from prudent.imprecise.decisions import bound_rows

        half = self.half_distances(points)
        return bound_rows(self, points, half, imprecision, low, up, max_nodes)

    def critical(
        self,
        points: FloatArray,
        low: FloatArray,
        up: FloatArray,
        max_nodes: int,
        grid: FloatArray | None = None,
    ) -> tuple[FloatArray, int]:
        """Smallest imprecision that keeps each class (n, K), and unanswered questions.

        With a sorted `grid`, the value is only known to lie behind the right grid
        points, and is infinite beyond the last.
        """
        from prudent.imprecise.path import critical_rows

        half = self.half_distances(points)
        steps = np.empty(0) if grid is None else grid
        return critical_rows(self, points, half, low, up, max_nodes, steps)


class DiagonalBoxes(NamedTuple):
    """Classes with independent features, in scaled units: all in closed form."""

    mean: FloatArray  # (K, p)
    precision: FloatArray  # (K, p) w
    extent: FloatArray  # (K, p) half widths of the box at imprecision 1

    @classmethod
    def build(
        cls, mean: FloatArray, variance: FloatArray, weight: FloatArray, box: str
    ) -> Self:
        """Boxes of classes with the given variances (K, p), all > 0."""
        width = variance if box == "natural" else np.ones_like(variance)
        return cls(mean, 1.0 / variance, width / weight[:, None])

    @property
    def log_determinants(self) -> FloatArray:
        """Log determinant of the covariance of each class."""
        return -np.log(self.precision).sum(axis=1)

    def half_distances(self, points: FloatArray) -> FloatArray:
        """Exponent of every row and class at the centre of the boxes."""
        half = np.empty((len(points), len(self.mean)))
        for k in range(len(self.mean)):
            half[:, k] = 0.5 * (points - self.mean[k]) ** 2 @ self.precision[k]
        return half

    def bounds(
        self,
        points: FloatArray,
        imprecision: float,
        low: FloatArray,
        up: FloatArray,
        max_nodes: int,
    ) -> tuple[FloatArray, FloatArray, int]:
        """Lower and upper log joints: sums of w (|z| +- r)^2 / 2, feature-wise."""
        lower = np.empty((len(points), len(self.mean)))
        upper = np.empty_like(lower)
        for k, weight in enumerate(self.precision):
            gap = np.abs(points - self.mean[k])
            radius = imprecision * self.extent[k]
            lower[:, k] = low[k] - 0.5 * (gap + radius) ** 2 @ weight
            upper[:, k] = up[k] - 0.5 * np.maximum(gap - radius, 0.0) ** 2 @ weight
        return lower, upper, 0

    def keep(
        self,
        points: FloatArray,
        imprecision: float,
        low: FloatArray,
        up: FloatArray,
        max_nodes: int,
    ) -> tuple[BoolArray, int]:
        """Undominated classes (n, K); no question stays open."""
        lower, upper, _ = self.bounds(points, imprecision, low, up, max_nodes)
        tie = np.where(np.isfinite(upper), _TIE * (1.0 + np.abs(upper)), 0.0)
        kept = upper + tie >= lower.max(axis=1, keepdims=True)
        return kept & (upper > -np.inf), 0

    def critical(
        self,
        points: FloatArray,
        low: FloatArray,
        up: FloatArray,
        max_nodes: int,
        grid: FloatArray | None = None,
    ) -> tuple[FloatArray, int]:
        """Smallest imprecision that keeps each class (n, K), to round-off."""
        from prudent.imprecise.path import diagonal_critical

        return diagonal_critical(self, points, low, up), 0
