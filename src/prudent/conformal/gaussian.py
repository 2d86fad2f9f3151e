"""Deleted scores of Gaussian models for every row of every augmented bag.

The scatters of a new row and of a deleted one are of rank one, so that the scores of
all rows follow from inner products in metrics that do not depend on the new row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import gammaln

from prudent.conformal.units import blocks, damped
from prudent.core.classes import log_sum_of_others
from prudent.core.types import FloatArray, IntArray
from prudent.exceptions import SingularCovarianceError
from prudent.rules.scores import Counts

SCORES = {"posterior": 0, "margin": 1, "density": 2}
# Changes of a class count for which constants are held.
CHANGES = np.array([-1.0, 0.0, 1.0])
#: What `student_constants` gives.
Students = tuple[FloatArray, FloatArray, FloatArray]
#: Scores of training rows if each new row has their label (m, n), if it has another
#: (m, n), and those of the new rows under each label (m, n_classes).
PairScores = tuple[FloatArray, FloatArray, FloatArray]


def class_means(rows: FloatArray, starts: IntArray) -> FloatArray:
    """Means (n_classes, d) of rows sorted by class, each class with a row.

    Class k holds the rows from starts[k] to starts[k + 1] - 1.
    """
    counts = np.diff(starts)
    means = np.add.reduceat(rows, starts[:-1]) / counts[:, None]
    # A second pass takes the rounding errors of the first sums away.
    about = rows - np.repeat(means, counts, axis=0)
    means += np.add.reduceat(about, starts[:-1]) / counts[:, None]
    return means


def student_constants(
    counts: FloatArray,
    d: int,
    halves: FloatArray,
    dropped: float,
    half_logs: FloatArray,
    repeats: int = 1,
) -> Students:
    """Constants of predictive Student densities, by class and change of its count.

    Parameters
    ----------
    counts : ndarray of shape (n_classes,)
    d, repeats : int
        Columns of a density, and densities that are multiplied.
    halves : ndarray of shape (n_classes, 3)
        Factors of log(1 + r Q); gamma functions are taken of them and of these less
        `dropped`.
    dropped : float
    half_logs : ndarray of shape (n_classes,)
        Half the log determinants of the classes.

    Returns
    -------
    constants, halves, ratios : ndarray of shape (n_classes, 3)
        For one row less than in training, as many and one more: terms of the log joint
        that depend on the class and its count only, -inf for no rows; the factors; and
        r = N / (N + 1).
    """
    n = counts[:, None] + CHANGES
    ratios = n / (n + 1)
    with np.errstate(divide="ignore"):
        one = gammaln(halves) - gammaln(halves - dropped) + d / 2 * np.log(ratios)
        constants = np.log(n) + repeats * one - half_logs[:, None]
    return constants, halves, ratios


@dataclass(frozen=True)
class Gaussian:
    """A Gaussian model of full or tied covariance, or of one variance in all."""

    score: str  # {"posterior", "margin", "density"}
    rows: FloatArray  # (n, d): training rows in the units of the bag, sorted by class
    codes: IntArray
    starts: IntArray  # (K + 1,): the first row of each class, and n
    means: FloatArray  # (K, d)
    # (K, d, d): Cholesky factors of the metrics G; identities for one variance
    factors: FloatArray
    variance: float  # d times the one variance; 0 for matrices
    students: Students
    # s and beta: what a row adds to the metric of its class, and of every class
    share: float
    pooled: float

    @classmethod
    def learn(
        cls,
        rows: FloatArray,
        codes: IntArray,
        names: Sequence[str],
        *,
        score: str,
        covariance_type: str,
        pooled_rows: float,
        ridge_rows: float,
    ) -> Gaussian:
        """Model of training rows."""
        n, d = rows.shape
        n_classes = len(names)
        starts = np.searchsorted(codes, np.arange(n_classes + 1))
        means = class_means(rows, starts)
        parts = np.split(rows - means[codes], starts[1:-1])
        sizes = np.diff(starts).astype(np.float64)
        counts = sizes[:, None] + CHANGES
        share, pooled, variance = 0.0, 1.0, 0.0
        if covariance_type == "identity":
            variance = sum(float(np.square(part).sum()) for part in parts)
            variance += d * ridge_rows
            if not variance > 0:
                raise singular("the pooled variance")
            factors = np.broadcast_to(np.eye(d), (n_classes, d, d))
            freedom = np.full_like(counts, max(n - n_classes + ridge_rows, 2.0))
            half_logs = np.full(n_classes, d / 2 * np.log(variance))
            students = student_constants(sizes, d, d * freedom / 2, d / 2, half_logs)
        else:
            scatters = np.stack([part.T @ part for part in parts])
            ridge = ridge_rows * np.eye(d)
            if covariance_type == "full":
                share, pooled = 1.0, pooled_rows / (n + 1)
                metrics = scatters + pooled * scatters.sum(axis=0) + ridge
                factors = np.stack(
                    [
                        cholesky(metric, f"the covariance of class {name}")
                        for metric, name in zip(metrics, names, strict=True)
                    ]
                )
                freedom = np.maximum(counts + pooled_rows + ridge_rows, d + 1.0)
            else:
                one = cholesky(scatters.sum(axis=0) + ridge, "the pooled covariance")
                factors = np.broadcast_to(one, (n_classes, d, d))
                freedom = np.full_like(counts, max(n - n_classes + ridge_rows, d + 1.0))
            diagonals = np.diagonal(factors, axis1=1, axis2=2)
            half_logs = np.log(diagonals).sum(axis=1)
            students = student_constants(sizes, d, freedom / 2, d / 2, half_logs)
        return cls(
            score=score,
            rows=rows,
            codes=codes,
            starts=starts,
            means=means,
            factors=factors,
            variance=variance,
            students=students,
            share=share,
            pooled=pooled,
        )

    @cached_property
    def products(self) -> tuple[FloatArray, FloatArray, tuple[FloatArray, ...]]:
        """Inner products of deviations, in the metric of each class k.

        Returns
        -------
        rows, gaps : ndarray of shape (K, n, d), (K, K, d)
            Whitened deviations z_i of row i from mean k, and w_l of mean k from mean l.
        products : tuple of ndarray
            <z_i, z_i> (K, n), <w_l, z_i> (K, K, n), <w_l, w_m> (K, K, K), and <e, e>
            and <z_i, e> (K, n), e the deviation of row i from the mean of its class.
        """
        z, codes = self.whitened(self.rows), self.codes
        pairs = zip(self.means, self.factors, strict=True)
        w = np.stack([whiten(mean - self.means, factor) for mean, factor in pairs])
        across = w @ z.transpose(0, 2, 1)
        squares = np.square(z).sum(axis=2)
        own = np.square(z + w[:, codes]).sum(axis=2)
        mixed = squares + across[:, codes, np.arange(len(codes))]
        return z, w, (squares, across, w @ w.transpose(0, 2, 1), own, mixed)

    def log_joint(self, rows: FloatArray) -> FloatArray:
        """Log joint density of each row and class, up to a common constant."""
        return self.log_joint_of(self.whitened(rows))

    def whitened(self, rows: FloatArray) -> FloatArray:
        """Deviations of rows from each mean, (K, m, d)."""
        means = zip(self.means, self.factors, strict=True)
        return np.stack([whiten(rows - mean, factor) for mean, factor in means])

    def log_joint_of(self, v: FloatArray) -> FloatArray:
        """Log joint of whitened deviations."""
        distances = np.square(v).sum(axis=2)
        if self.variance:
            distances /= self.variance
        constants, halves, ratios = self.students
        logs = np.log1p(ratios[:, 1:2] * distances)
        return (constants[:, 1:2] - halves[:, 1:2] * logs).T

    def counts(
        self,
        rows: FloatArray,
        category: IntArray,
        wanted: IntArray,
        *,
        by_class: bool,
        second: PairScores | None = None,
    ) -> Counts:
        """Training rows stranger than each new row under each label."""
        from prudent.conformal._compiled import linear_counts

        z, w, products = self.products
        n_classes, n, d = z.shape
        v = self.whitened(rows)
        asked, own, other = _asked(self.log_joint_of(v), self.score, second)
        power = d / 2 if self.variance else 0.5
        shifts = v @ w.transpose(0, 2, 1)
        metrics = zip(v, w, strict=True)
        gaps = np.stack([np.square(x[:, None] + y).sum(axis=2) for x, y in metrics])
        larger, equal = np.zeros((2, len(rows), n_classes), dtype=np.intp)
        for block in blocks(len(rows), n_classes * n):
            linear_counts(
                (
                    v[:, block] @ z.transpose(0, 2, 1),
                    np.ascontiguousarray(shifts[:, block]),
                    np.ascontiguousarray(gaps[:, block]),
                ),
                self.starts,
                products,
                self.students,
                (self.share, self.pooled, self.variance, power),
                SCORES[self.score],
                by_class,
                (category, wanted[block], asked[block], own[block], other[block]),
                larger[block],
                equal[block],
            )
        return Counts(larger, equal)


@dataclass(frozen=True, slots=True)
class Diagonal:
    """A Gaussian model of independent columns."""

    score: str
    starts: IntArray
    means: FloatArray  # (K, d)
    columns: FloatArray  # (d, n): training rows, transposed
    # (K, d): the scatters g of each class and column, with the pooled rows and the
    # ridge
    variances: FloatArray
    students: Students
    pooled: float  # beta: what a row adds to the scatters of every class

    @classmethod
    def learn(
        cls,
        rows: FloatArray,
        codes: IntArray,
        names: Sequence[str],
        *,
        score: str,
        pooled_rows: float,
        ridge_rows: float,
    ) -> Diagonal:
        """Tables of training rows; arguments as `Gaussian.learn`."""
        n, d = rows.shape
        starts = np.searchsorted(codes, np.arange(len(names) + 1))
        means = class_means(rows, starts)
        parts = np.split(rows - means[codes], starts[1:-1])
        scatters = np.stack([np.square(part).sum(axis=0) for part in parts])
        pooled = pooled_rows / (n + 1)
        variances = scatters + pooled * scatters.sum(axis=0) + ridge_rows
        for variance, name in zip(variances, names, strict=True):
            if not (variance > 0).all():
                raise singular(f"the covariance of class {name}")
        sizes = np.diff(starts).astype(np.float64)
        freedom = np.maximum(sizes[:, None] + CHANGES + pooled_rows + ridge_rows, 2.0)
        half_logs = np.log(variances).sum(axis=1) / 2
        students = student_constants(sizes, 1, freedom / 2, 0.5, half_logs, repeats=d)
        columns = np.ascontiguousarray(rows.T)
        return cls(score, starts, means, columns, variances, students, pooled)

    def log_joint(self, rows: FloatArray) -> FloatArray:
        """Log joint density of each row and class, up to a common constant."""
        constants, halves, ratios = self.students
        each = zip(self.means, self.variances, ratios[:, 1], strict=True)
        logs = [
            np.log1p(ratio * np.square(rows - mean) / variance).sum(axis=1)
            for mean, variance, ratio in each
        ]
        return constants[:, 1] - halves[:, 1] * np.stack(logs, axis=1)

    def counts(
        self,
        rows: FloatArray,
        category: IntArray,
        wanted: IntArray,
        *,
        by_class: bool,
        second: PairScores | None = None,
    ) -> Counts:
        """Training rows stranger than each new row; as `Gaussian.counts`."""
        from prudent.conformal._compiled import diagonal_counts

        asked, own, other = _asked(self.log_joint(rows), self.score, second)
        larger, equal = np.zeros((2, len(rows), len(self.means)), dtype=np.intp)
        diagonal_counts(
            self.columns,
            np.ascontiguousarray(rows),
            self.starts,
            (self.means, self.variances),
            self.students,
            self.pooled,
            SCORES[self.score],
            by_class,
            (category, wanted, asked, own, other),
            larger,
            equal,
        )
        return Counts(larger, equal)


def _asked(
    log_joint: FloatArray, score: str, second: PairScores | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Scores of new rows, and second ones of training rows to add to damped ones."""
    asked = strangeness(log_joint, score)
    if second is None:
        return asked, np.empty((0, 0)), np.empty((0, 0))
    own, other, new = second
    return damped(asked) + new, own, other


def strangeness(log_joint: FloatArray, score: str) -> FloatArray:
    """Nonconformity of rows under each label, (m, K), in C order.

    One order: a compiled loop is compiled again for each order that it is given.
    """
    log_joint = np.ascontiguousarray(log_joint)
    if score == "density":
        return -log_joint
    if score == "posterior":
        return np.ascontiguousarray(log_sum_of_others(log_joint) - log_joint)
    labels = range(log_joint.shape[1])
    others = [np.delete(log_joint, k, axis=1).max(axis=1) for k in labels]
    return np.stack(others, axis=1) - log_joint


def whiten(rows: FloatArray, factor: FloatArray) -> FloatArray:
    """Rows whose inner products are those of `rows` in the metric L L'."""
    return np.ascontiguousarray(
        solve_triangular(factor, rows.T, lower=True, check_finite=False).T
    )


def cholesky(metric: FloatArray, what: str) -> FloatArray:
    """Lower Cholesky factor of a matrix that must not be singular."""
    scale = np.sqrt(np.diag(metric))
    if (scale > 0).all() and np.isfinite(scale).all():
        correlation = metric / scale / scale[:, None]
        least = np.linalg.eigvalsh(correlation)[0]
        if least > 8 * len(metric) * np.finfo(np.float64).eps:
            return scale[:, None] * np.linalg.cholesky(correlation)
    raise singular(what)


def singular(what: str) -> SingularCovarianceError:
    """The error for a matrix that cannot be inverted."""
    return SingularCovarianceError(f"{what} is singular: set `ridge_rows` > 0.")
