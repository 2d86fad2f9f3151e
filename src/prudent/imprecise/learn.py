"""The fit: classes in units of the feature scale, their covariances, their boxes.

Covariances come from moments or, where a rule asks, from rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from prudent.core.classes import (
    class_priors,
    classes_seen,
    restrict,
    varying_features,
)
from prudent.core.guarantee import Guarantee
from prudent.core.linalg import (
    ClassCovariances,
    CovarianceRule,
    estimate_covariances,
    invertible,
)
from prudent.core.moments import ClassMoments
from prudent.core.rows import Block, Rows, restricted
from prudent.core.types import BoolArray, FloatArray, IntArray
from prudent.exceptions import DegenerateDataError
from prudent.imprecise.boxes import Boxes, DiagonalBoxes
from prudent.imprecise.model import Model

# --- classes in coordinates (x - origin) / scale, and their covariances ---------------

_CORRELATION_FLOOR = 1e-6  # times p: below it a matrix counts as ill conditioned
_EIGENVALUE_FLOOR = 1e-9  # of the largest eigenvalue


def feature_scale(scale: str, moments: ClassMoments, rows: Rows | None) -> FloatArray:
    """Spread s_j of every feature (p,), in its units; 1 where it would be 0.

    "std" is that of the whole sample (denominator N), "within" the one pooled within
    the classes (denominator N - K), and "range" the largest less the smallest value of
    `rows`.
    """
    if scale == "range":
        assert rows is not None
        lowest, highest = rows.reduce(_extremes, _extremes_of_all)
        spread = highest - lowest
    elif scale == "within":
        freedom = moments.weight.sum() - len(moments.weight)
        variances = moments.variation.sum(axis=0)
        spread = (
            np.sqrt(variances / freedom) if freedom > 0 else np.zeros_like(variances)
        )
    else:
        pooled = moments.pooled()
        spread = np.sqrt(pooled.variation[0] / pooled.weight[0])
    return np.where(spread > 0, spread, 1.0)


def given_scale(scale: ArrayLike, n_features: int) -> FloatArray:
    """Spreads of all features as the user gave them, checked, (n_features,).

    Raises
    ------
    ValueError
        Unless they are finite numbers > 0, one for each feature.
    """
    values = np.asarray(scale, dtype=np.float64)
    if values.shape != (n_features,) or not (
        np.isfinite(values).all() and (values > 0).all()
    ):
        raise ValueError(
            f"`scale` must be n_features = {n_features} finite numbers > 0, 'std', "
            f"'within', 'range' or None, got {scale!r}."
        )
    return values


def _extremes(block: Block) -> tuple[FloatArray, FloatArray]:
    """Least and largest value of every feature in a block."""
    rows = block.X.astype(np.float64)
    return rows.min(axis=0, initial=np.inf), rows.max(axis=0, initial=-np.inf)


def _extremes_of_all(
    parts: Sequence[tuple[FloatArray, FloatArray]],
) -> tuple[FloatArray, FloatArray]:
    """Least and largest value of every feature over the blocks."""
    lowest, highest = zip(*parts, strict=True)
    return np.min(lowest, axis=0), np.max(highest, axis=0)


@dataclass(frozen=True, slots=True, eq=False)
class ScaledClasses:
    """Statistics of classes, or of all of them as one, in scaled coordinates.

    A covariance has the divisor W - `n_means`, the number of means that were estimated
    from its rows.
    """

    origin: FloatArray  # (p,) in units of X
    scale: FloatArray  # (p,) in units of X
    mean: FloatArray  # (K, p)
    weight: FloatArray  # (M,)
    scatter: FloatArray  # (M, p, p) sums of w z z' about the class means
    fourth: FloatArray | None = None  # (M,) sums of w |z|^4, for Ledoit-Wolf only
    n_means: int = 1

    @classmethod
    def of(cls, moments: ClassMoments, scale: FloatArray) -> Self:
        """Classes with rows, in units of the scale (p,) about their common mean."""
        origin = moments.weight @ moments.mean / moments.weight.sum()
        # The origin is a plain number: the rounded parts of the means stay exact.
        mean = ((moments.mean - origin) + moments.mean_lo) / scale
        scatter = moments.scatter / np.outer(scale, scale)
        return cls(origin, scale, mean, moments.weight, scatter)

    @property
    def divisor(self) -> FloatArray:
        """What divides the scatter, (M,)."""
        return self.weight - self.n_means

    def pooled(self) -> Self:
        """All classes as one, each about its own mean."""
        total, n_means = self.weight.sum(keepdims=True), len(self.mean)
        if not total[0] > n_means:
            raise DegenerateDataError(
                f"{total[0]:g} rows in {n_means} classes leave nothing to estimate a "
                "covariance from: give at least one class two rows."
            )
        return replace(
            self,
            weight=total,
            scatter=self.scatter.sum(axis=0, keepdims=True),
            fourth=None if self.fourth is None else self.fourth.sum(keepdims=True),
            n_means=n_means,
        )

    def centred(self, rows: FloatArray, codes: IntArray | int) -> FloatArray:
        """Rows in scaled coordinates, each about the mean of its class."""
        scaled: FloatArray = (rows - self.origin) / self.scale
        return scaled - self.mean[codes]

    def covariances(self, rule: CovarianceRule, rows: Rows | None) -> FloatArray:
        """Matrices (M, p, p) under a rule; zeros where the divisor is not positive."""

        def rows_of(m: int) -> tuple[FloatArray, FloatArray | None]:
            assert rows is not None
            classes = (
                [m] if len(self.weight) == len(self.mean) else range(len(self.mean))
            )
            parts = [rows.of_class(k) for k in classes]
            own = [self.centred(X, k) for k, (X, _) in zip(classes, parts, strict=True)]
            weights = [weight for _, weight in parts if weight is not None]
            return np.concatenate(own), np.concatenate(weights) if weights else None

        return estimate_covariances(
            rule,
            self.weight,
            self.scatter,
            divisor=self.divisor,
            fourth=self.fourth,
            rows_of=rows_of,
        )

    def automatic_rule(self, diagonal: bool) -> str:
        """The rule "empirical" if every matrix is well conditioned, else "oas".

        One rule for all classes: densities shrunk differently compare badly.
        """
        variances = np.diagonal(self.scatter, axis1=1, axis2=2)
        if not ((self.divisor > 0).all() and (variances > 0).all()):
            return "oas"
        if diagonal:
            return "empirical"
        size = self.scatter.shape[1]
        freedom = self.weight if self.n_means == 1 else self.divisor
        if not (freedom > size).all():
            return "oas"
        deviation = np.sqrt(variances)
        correlation = self.scatter / (deviation[:, :, None] * deviation[:, None, :])
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
    rule : str, float or callable
        "auto" is "empirical" where all matrices are well conditioned, else "oas".
    classes : ScaledClasses
    rows : Rows or None
        Of the features in use; for "ledoit_wolf" and functions of rows.

    Returns
    -------
    ClassCovariances
        With (K, p, p) or (1, p, p) matrices, repaired where they are singular.
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
    if rule == "ledoit_wolf" and rows is not None:
        fourth = rows.reduce(_centred_moments, ClassMoments.reduce, classes).fourth
        classes = replace(classes, fourth=fourth)
    groups = classes.pooled() if covariance_type == "tied" else classes
    diagonal = covariance_type == "diag"
    kept = np.eye(len(classes.scale)) if diagonal else 1.0
    if rule == "auto":
        rule = groups.automatic_rule(diagonal)

    def pooled() -> FloatArray:
        return classes.pooled().covariances(rule, rows)[0] * kept

    matrices = groups.covariances(rule, rows) * kept
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


# --- the fit --------------------------------------------------------------------------


CovarianceType = Literal["full", "tied", "diag", "identity"]


@dataclass(frozen=True, slots=True)
class Learned:
    """The rule, and what the estimator shows of the fit."""

    model: Model  # of the classes seen
    seen: BoolArray  # (n_classes,) classes that have rows
    covariances: ClassCovariances  # of the classes seen, in units of the feature scale
    scale: FloatArray  # (n_features,) in units of the features; 1 where constant

    def in_units(self) -> FloatArray:
        """Covariances of all classes and features in the units of X, (n_classes, d, d).

        0 for classes without rows and for constant features.
        """
        features, n_features = self.model.features, len(self.scale)
        everything = np.zeros((len(self.seen), n_features, n_features))
        place = np.ix_(np.flatnonzero(self.seen), features, features)
        unit = np.outer(self.model.scale, self.model.scale)
        everything[place] = self.covariances.matrices * unit
        return everything


def learn(
    moments: ClassMoments,
    rows: Rows | None,
    *,
    covariance_type: CovarianceType,
    covariance: CovarianceRule,
    scale: ArrayLike | None,
    box: Literal["mean", "natural"],
    priors: ArrayLike | None,
) -> Learned:
    """Learn the boxes from class moments and, where a setting asks, their rows.

    Parameters
    ----------
    moments : ClassMoments
        Of all declared classes; those of weight 0 have not been seen yet.
    rows : Rows or None
        The rows behind the moments, all features.
    covariance_type : {"full", "tied", "diag", "identity"}
        One matrix for each class, one for all, variances only, or the identity in units
        of the scale.
    covariance : str, float or callable
        The setting `covariance=`, in units of the scale.
    scale : {"std", "within", "range"}, array-like of shape (n_features,) or None
        What the units are; None leaves the features as they are.
    box : {"mean", "natural"}
        What moves: the means, or the natural parameters.
    priors : array-like of shape (n_classes,) or None
        None is the share of the rows.

    Returns
    -------
    Learned

    Raises
    ------
    ValueError
        If a given scale or given priors do not fit.
    DegenerateDataError
        If no feature varies, or there are not more rows than classes.
    SingularCovarianceError
        If a covariance cannot be inverted after all repairs.
    """
    seen, prior = classes_seen(moments), class_priors(priors, moments.weight)
    features = varying_features(moments)
    part = restrict(moments, seen, features)
    if rows is not None:
        rows = restricted(rows, features)
    spread = np.ones(moments.mean.shape[1])
    if isinstance(scale, str):
        spread[features] = feature_scale(scale, part, rows)
    elif scale is not None:
        spread[features] = given_scale(scale, len(spread))[features]
    classes = ScaledClasses.of(part, spread[features])
    covariances = class_covariances(covariance_type, covariance, classes, rows)
    matrices = covariances.matrices
    positions = np.arange(len(classes.mean)) % len(matrices)  # one each, or all
    boxes: Boxes | DiagonalBoxes
    if covariance_type in ("diag", "identity"):
        variances = np.diagonal(matrices, axis1=1, axis2=2)[positions]
        boxes = DiagonalBoxes.build(classes.mean, variances, classes.weight, box)
    else:
        boxes = Boxes.build(
            classes.mean, matrices, positions, classes.weight, box, part.classes
        )
    # densities are in units of X
    volume = np.log(classes.scale).sum() + 0.5 * len(features) * np.log(2 * np.pi)
    model = Model(
        features=features,
        origin=classes.origin,
        scale=classes.scale,
        normaliser=-0.5 * boxes.log_determinants - volume,
        prior=prior[seen],
        total=float(classes.weight.sum()),
        boxes=boxes,
    )
    return Learned(model, seen, covariances, spread)


# --- promises: none that could be held to unseen rows ---------------------------------


def guarantees() -> tuple[Guarantee, ...]:
    """No promise: sets are exact for the boxes, but no box surely holds the truth.

    For sets with a coverage that is promised, use conformal prediction.
    """
    return ()
