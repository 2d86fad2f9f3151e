"""Covariances of scaled classes, from moments or, where a rule asks, from rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from prudent.core.covariance import (
    ClassCovariances,
    CovarianceRule,
    estimate_covariances,
    invertible,
)
from prudent.core.moments import ClassMoments
from prudent.core.rows import Block, Rows
from prudent.core.types import FloatArray
from prudent.exceptions import DegenerateDataError
from prudent.imprecise.scaling import ScaledClasses

RowsOf = Callable[[int], tuple[FloatArray, FloatArray | None]]

_CORRELATION_FLOOR = 1e-6  # times p: below it a matrix counts as ill conditioned
_EIGENVALUE_FLOOR = 1e-9  # of the largest eigenvalue


@dataclass(frozen=True)
class Scatter:
    """Scatter matrices, in units of the feature scale, and what divides them.

    Attributes
    ----------
    weight : ndarray of shape (M,)
        Total weights W.
    divisor : ndarray of shape (M,)
        W - 1 for a class, W - K for all classes in common.
    freedom : ndarray of shape (M,)
        Must exceed the number of features for a matrix of full rank: W for a
        class, W - K for all classes in common.
    matrix : ndarray of shape (M, p, p)
        Sums of w z z' about the class means.
    fourth : ndarray of shape (M,) or None
        Sums of w |z|^4, for Ledoit-Wolf only.
    """

    weight: FloatArray
    divisor: FloatArray
    freedom: FloatArray
    matrix: FloatArray
    fourth: FloatArray | None

    @classmethod
    def of_classes(
        cls, weight: FloatArray, matrix: FloatArray, fourth: FloatArray | None
    ) -> Scatter:
        """One matrix for each class."""
        return cls(weight, weight - 1.0, weight, matrix, fourth)

    def pooled(self) -> Scatter:
        """One matrix for all classes, each about its own mean."""
        total = self.weight.sum(keepdims=True)
        divisor = total - len(self.weight)
        if not divisor[0] > 0:
            raise DegenerateDataError(
                f"{total[0]:g} rows in {len(self.weight)} classes leave nothing to "
                "estimate a covariance from: give at least one class two rows."
            )
        matrix = self.matrix.sum(axis=0, keepdims=True)
        fourth = None if self.fourth is None else self.fourth.sum(keepdims=True)
        return Scatter(total, divisor, divisor, matrix, fourth)

    def covariances(self, rule: CovarianceRule, rows_of: RowsOf) -> FloatArray:
        """Matrices (M, p, p) under a rule; zeros where the divisor is not positive."""
        return estimate_covariances(
            rule,
            self.weight,
            self.matrix,
            divisor=self.divisor,
            fourth=self.fourth,
            rows_of=rows_of,
        )

    def automatic_rule(self, diagonal: bool) -> str:
        """The rule "empirical" if every matrix is well conditioned, else "oas".

        One rule for all classes: densities shrunk differently compare badly.
        """
        if not (self.divisor > 0).all():
            return "oas"
        variances = np.diagonal(self.matrix, axis1=1, axis2=2)
        if not (variances > 0).all():
            return "oas"
        if diagonal:
            return "empirical"
        size = self.matrix.shape[1]
        if not (self.freedom > size).all():
            return "oas"
        deviation = np.sqrt(variances)
        correlation = self.matrix / (deviation[:, :, None] * deviation[:, None, :])
        lowest = np.linalg.eigvalsh(correlation)[:, 0]
        return "empirical" if (lowest > _CORRELATION_FLOOR * size).all() else "oas"


def class_covariances(
    covariance_type: str,
    rule: CovarianceRule,
    classes: ScaledClasses,
    rows: Rows | None,
) -> ClassCovariances:
    """Matrices of every class under one rule, in scaled units.

    Parameters
    ----------
    covariance_type : {"full", "tied", "diag", "identity"}
        "tied" gives one matrix for all classes, "identity" one without a rule.
    rule : {"auto", "empirical", "oas", "ledoit_wolf"}, float or callable
        "auto" is "empirical" where all matrices are well conditioned, else "oas";
        a float a is (1 - a) S + a diag(S).
    classes : ScaledClasses
    rows : Rows or None
        Rows of the features in use, for "ledoit_wolf" and functions of rows.

    Raises
    ------
    DegenerateDataError
        If there are not more rows than classes, or no feature varies in any class.
    """
    if covariance_type == "identity":
        return ClassCovariances(
            matrices=np.eye(len(classes.scale))[None],
            kind="identity",
            pooled=np.empty(0, dtype=np.intp),
            condition=np.ones(1),
            n_floored=np.zeros(1, dtype=np.intp),
            floor=0.0,
        )
    fourth = None
    if rule == "ledoit_wolf" and rows is not None:
        fourth = rows.reduce(_centred_moments, ClassMoments.reduce, classes).fourth
    scatter = Scatter.of_classes(classes.weight, classes.scatter, fourth)

    def rows_of(k: int) -> tuple[FloatArray, FloatArray | None]:
        assert rows is not None
        own, weight = rows.of_class(k)
        return classes.centred(own, k), weight

    def all_rows(_: int) -> tuple[FloatArray, FloatArray | None]:
        parts = [rows_of(k) for k in range(len(classes.weight))]
        weights = [weight for _, weight in parts if weight is not None]
        together = np.concatenate([own for own, _ in parts])
        return together, np.concatenate(weights) if weights else None

    tied, diagonal = covariance_type == "tied", covariance_type == "diag"
    groups = scatter.pooled() if tied else scatter
    if rule == "auto":
        rule = groups.automatic_rule(diagonal)
    kept = np.eye(len(classes.scale)) if diagonal else 1.0

    def pooled() -> FloatArray:
        return scatter.pooled().covariances(rule, all_rows)[0] * kept

    matrices = groups.covariances(rule, all_rows if tied else rows_of) * kept
    return invertible(matrices, rule, _EIGENVALUE_FLOOR, pooled=pooled)


def _centred_moments(block: Block, classes: ScaledClasses) -> ClassMoments:
    """Moments up to the fourth of scaled rows, each about its class mean."""
    n_classes, n_features = classes.mean.shape
    if len(block) == 0:
        return ClassMoments.empty(np.arange(n_classes), n_features, fourth=True)
    return ClassMoments.from_rows(
        classes.centred(block.X, block.codes),
        block.codes,
        n_classes,
        block.weight,
        fourth=True,
    )
