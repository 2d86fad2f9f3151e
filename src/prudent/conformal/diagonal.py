"""Deleted scores of a Gaussian model with one variance a class and column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from prudent.conformal.gaussian import (
    CHANGES,
    SCORES,
    Classes,
    Student,
    singular,
    strangeness,
)
from prudent.conformal.ranks import Counts, Second, damped
from prudent.core.types import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Diagonal:
    """A Gaussian model of independent columns.

    Attributes
    ----------
    classes : Classes
    columns : ndarray of shape (d, n)
        Training rows, transposed.
    variances : ndarray of shape (K, d)
        The scatters g of each class and column, with the pooled rows and the ridge.
    students : Student
    pooled : float
        beta: what a row adds to the scatters of every class.
    """

    classes: Classes
    columns: FloatArray
    variances: FloatArray
    students: Student
    pooled: float

    @classmethod
    def learn(
        cls,
        rows: FloatArray,
        codes: IntArray,
        names: Sequence[str],
        *,
        pooled_rows: float,
        ridge_rows: float,
    ) -> Diagonal:
        """Tables of training rows; arguments as `Gaussian.learn`."""
        n, d = rows.shape
        classes = Classes.of(rows, codes, len(names))
        scatters = np.stack(
            [np.square(part).sum(axis=0) for part in classes.parts(rows)]
        )
        pooled = pooled_rows / (n + 1)
        variances = scatters + pooled * scatters.sum(axis=0) + ridge_rows
        for variance, name in zip(variances, names, strict=True):
            if not (variance > 0).all():
                raise singular(f"the covariance of class {name}")
        counts = classes.counts[:, None] + CHANGES
        freedom = np.maximum(counts + pooled_rows + ridge_rows, 2.0)
        half_logs = np.log(variances).sum(axis=1) / 2
        students = Student.of(classes.counts, 1, freedom / 2, 0.5, half_logs, repeats=d)
        columns = np.ascontiguousarray(rows.T)
        return cls(classes, columns, variances, students, pooled)

    def log_joint(self, rows: FloatArray) -> FloatArray:
        """Log joint density of each row and class, up to a common constant."""
        of = self.students
        logs = [
            np.log1p(ratio * np.square(rows - mean) / variance).sum(axis=1)
            for mean, variance, ratio in zip(
                self.classes.means, self.variances, of.ratios[:, 1], strict=True
            )
        ]
        return of.constants[:, 1] - of.halves[:, 1] * np.stack(logs, axis=1)

    def counts(
        self,
        rows: FloatArray,
        score: str,
        category: IntArray,
        wanted: IntArray,
        *,
        by_class: bool = False,
        second: Second | None = None,
    ) -> Counts:
        """Training rows stranger than each new row; as `Gaussian.counts`."""
        from prudent.conformal._compiled import diagonal_counts

        asked = strangeness(self.log_joint(rows), score)
        own = other = np.empty((0, 0))
        if second is not None:
            own, other = second.own, second.other
            asked = damped(asked) + 2.0 * damped(second.asked)
        larger, equal = np.empty(
            (2, len(rows), len(self.classes.counts)), dtype=np.intp
        )
        students = self.students
        diagonal_counts(
            self.columns,
            np.ascontiguousarray(rows),
            self.classes.starts,
            (self.classes.means, self.variances),
            (students.constants, students.halves, students.ratios),
            self.pooled,
            SCORES[score],
            by_class,
            (category, wanted, asked, own, other),
            larger,
            equal,
        )
        return Counts(larger, equal)
