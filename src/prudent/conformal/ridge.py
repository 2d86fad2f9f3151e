"""Leave-one-out scores by kernel ridge regression, and their blend with the Gaussian's.

Every label has a target vector, +1 on its rows and -1 elsewhere. The prediction for a
row by the fit to the n other rows of an augmented bag follows in closed form from the
inverse of the kernel matrix of the training rows, by bordering it with the new row.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs
from scipy.spatial.distance import cdist

from prudent.conformal.gaussian import Diagonal, Gaussian, strangeness
from prudent.conformal.units import ARRAYS, blocks, damped
from prudent.core.types import FloatArray, IntArray
from prudent.rules.scores import Counts

# Constants of the kernel exp(-STEEPNESS mean_j |x_j - z_j|) + 1 and of its ridge.
# They are fixed before any data are seen, which is what exact ranks need; measured
# set sizes are flat in each of them.
STEEPNESS, RIDGE = 2.0, 0.3
# A matrix of more rows is not inverted for predictions alone.
MOST_ROWS = 2000
# Pairs of rows times columns from which distances are compiled, where numba is there.
COMPILED_FROM = 2**16
# The ridge's weight in the blend, and the factor that brings it to the scale of odds.
WEIGHT, SCALE = 2.0, 4.0


@dataclass(frozen=True)
class KernelRidge:
    """Kernel ridge regression of one +-1 target a label, by a Cholesky factor.

    With A = k(X, X) + 0.3 I, B its inverse and T the targets (n, K). The eigenvalues of
    A lie in [0.3, 2 n + 0.3] whatever the rows are, so that there is no singular case.
    """

    rows: FloatArray  # (n, d): training rows in the units of the bag
    codes: IntArray  # (n,): their labels
    factor: FloatArray  # (n, n): L with A = L L', in Fortran's order
    weights: FloatArray  # (n, K): W = B T

    @classmethod
    def learn(cls, rows: FloatArray, codes: IntArray, n_classes: int) -> KernelRidge:
        """Solve for the weights of training rows (n, d), in n^3 / 3 operations."""
        matrix = laplace_kernel(rows, rows)
        matrix[np.diag_indices_from(matrix)] += RIDGE
        # In Fortran's order the transpose of a symmetric matrix is itself.
        factor, _ = dpotrf(matrix.T, lower=1, overwrite_a=1)
        targets = np.where(codes[:, None] == np.arange(n_classes), 1.0, -1.0)
        weights, _ = dpotrs(factor, targets, lower=1)
        return cls(rows, codes, factor, np.ascontiguousarray(weights))

    @cached_property
    def inverse(self) -> FloatArray:
        """B, symmetric (n, n), which ranks need and predictions do not."""
        inverse, _ = dpotri(self.factor, lower=1)
        upper = np.triu_indices_from(inverse, 1)
        inverse[upper] = inverse.T[upper]
        symmetric: FloatArray = inverse.T
        return symmetric

    def predictions(self, rows: FloatArray) -> FloatArray:
        """Prediction f of each target at new rows, by all training rows, (m, K)."""
        n_entries = ARRAYS * len(self.rows)
        parts = [
            laplace_kernel(rows[block], self.rows) @ self.weights
            for block in blocks(len(rows), n_entries)
        ]
        return np.concatenate(parts)

    def deleted_predictions(
        self, rows: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Predictions of own labels by the other rows of each augmented bag.

        Returns
        -------
        own, other : ndarray of shape (m, n)
            That of each training row where the new row has its label, and where it has
            another:

            F_i = 1 - (W_il - u_i (1 - f_l) / s) / D_i
            F_i = 1 - (W_il + u_i (1 + f_l) / s) / D_i

            with u = B k, s = 2.3 - k' u, f = W' k and D_i = B_ii + u_i^2 / s of the
            kernel k between the new row and the training rows.
        new : ndarray of shape (m, K)
            That of the new row under each label, f.
        """
        kernel = laplace_kernel(rows, self.rows)
        new = kernel @ self.weights
        border = kernel @ self.inverse
        pivot = 2.0 + RIDGE - np.einsum("ij,ij->i", kernel, border)[:, None]
        weight = self.weights[np.arange(len(self.codes)), self.codes]
        # In C order, unlike new[:, codes]: the compiled loop runs along its rows.
        of_own_label = new.take(self.codes, axis=1)
        step = border / pivot
        diagonal = np.diagonal(self.inverse) + border * step
        own = 1.0 - (weight - step * (1.0 - of_own_label)) / diagonal
        other = 1.0 - (weight + step * (1.0 + of_own_label)) / diagonal
        return own, other, new


@dataclass(frozen=True)
class Blend:
    """The damped log odds of a Gaussian model plus twice those of a kernel ridge.

    a = D(g) + 2 D(-4 F), D(t) = sign(t) log(1 + |t|): a sum of deleted scores, each
    passed through a fixed function, is a deleted score again.
    """

    gaussian: Gaussian | Diagonal
    rows: FloatArray  # (n, d): training rows in the units of the bag
    codes: IntArray  # (n,): their labels
    n_classes: int

    @cached_property
    def ridge(self) -> KernelRidge:
        """The ridge of all training rows, by which they rank new rows."""
        return KernelRidge.learn(self.rows, self.codes, self.n_classes)

    @cached_property
    def predictor(self) -> KernelRidge:
        """The ridge that predicts: of all training rows, or of `MOST_ROWS` of them."""
        n = len(self.rows)
        if n <= MOST_ROWS:
            return self.ridge
        drawn = np.random.RandomState(0).permutation(n)[:MOST_ROWS]
        return KernelRidge.learn(self.rows[drawn], self.codes[drawn], self.n_classes)

    def log_joint(self, rows: FloatArray) -> FloatArray:
        """Minus half the score of each row and label, by all training rows, (m, K)."""
        odds = strangeness(self.gaussian.log_joint(rows), "posterior")
        return -0.5 * (damped(odds) + damped_ridge(self.predictor.predictions(rows)))

    def counts(
        self, rows: FloatArray, category: IntArray, wanted: IntArray, *, by_class: bool
    ) -> Counts:
        """Training rows stranger than each new row under each label."""
        larger, equal = np.empty((2, *wanted.shape), dtype=np.intp)
        for block in blocks(len(rows), wanted.shape[1] * len(category)):
            own, other, new = map(
                damped_ridge, self.ridge.deleted_predictions(rows[block])
            )
            counts = self.gaussian.counts(
                rows[block],
                category,
                wanted[block],
                by_class=by_class,
                second=(own, other, new),
            )
            larger[block], equal[block] = counts.below, counts.equal
        return Counts(larger, equal)


def laplace_kernel(rows: FloatArray, others: FloatArray) -> FloatArray:
    """exp(-2 mean_j |x_j - z_j|) + 1 of each pair of rows, (m, n).

    Distances are computed as differences, so that equal rows give exactly 2.
    """
    distances = city_block_distances(rows, others)
    distances *= -STEEPNESS / rows.shape[1]
    kernel: FloatArray = np.exp(distances, out=distances)
    kernel += 1.0
    return kernel


def city_block_distances(rows: FloatArray, others: FloatArray) -> FloatArray:
    """sum_j |x_j - z_j| of each pair of rows, (m, n), summed in the order of columns.

    SciPy adds the same terms in the same order, in three times the time: it serves
    where loading numba, or the loop, would take longer.
    """
    if rows.size * len(others) < COMPILED_FROM or "numba" not in sys.modules:
        return cdist(rows, others, "cityblock")
    from prudent.conformal._compiled import add_city_block

    distances = np.zeros((len(rows), len(others)))
    in_order, columns = np.ascontiguousarray(rows), np.ascontiguousarray(others.T)
    add_city_block(in_order, columns, distances)
    return distances


def damped_ridge(predictions: FloatArray) -> FloatArray:
    """What predictions of a label's target add to the blend: 2 D(-4 F)."""
    return WEIGHT * damped(-SCALE * predictions)
