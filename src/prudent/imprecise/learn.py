"""The fit: classes in units of the feature scale, their covariances, their boxes.

Covariances come from moments or, where a rule asks, from rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

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
from prudent.core.types import BoolArray, FloatArray
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
        lowest, highest = np.array(rows.map(_extremes)).swapaxes(0, 1)
        spread = highest.max(axis=0) - lowest.min(axis=0)
    else:
        within = scale == "within"
        pooled = moments.within() if within else moments.pooled()
        freedom = pooled.weight[0] - (len(moments.weight) if within else 0)
        variation = pooled.variation[0]
        spread = np.sqrt(variation / freedom) if freedom > 0 else 0.0 * variation
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


def _extremes(block: Block) -> FloatArray:
    """Least and largest value of every feature in a block, (2, p)."""
    rows = block.X.astype(np.float64)
    return np.array(
        [rows.min(axis=0, initial=np.inf), rows.max(axis=0, initial=-np.inf)]
    )


def _centred(
    block: Block, origin: FloatArray, scale: FloatArray, mean: FloatArray
) -> Block:
    """Rows in scaled coordinates, each about the mean of its class."""
    scaled = (block.X - origin) / scale
    return Block(scaled - mean[block.codes], block.codes, block.weight)


def _fourth_moments(block: Block, n_classes: int, unit: float) -> FloatArray:
    """Sums of w |z / unit|^4 of centred rows, class by class, (K,)."""
    rows = block.X / unit
    fourth = np.square(np.einsum("ij,ij->i", rows, rows))
    if block.weight is not None:
        fourth *= block.weight
    sums = np.bincount(block.codes, fourth, minlength=n_classes)
    return sums.astype(np.float64)  # of no rows they would be integers


def class_covariances(
    covariance_type: str,
    rule: CovarianceRule,
    classes: ClassMoments,
    rows: Rows | None,
) -> ClassCovariances:
    """Matrices of every class under one rule, in scaled units.

    S_k = scatter_k / (W_k - 1), or with all classes in common the sum of their scatters
    over W - K, both then shrunk by the rule, and made invertible.

    Parameters
    ----------
    covariance_type : {"full", "tied", "diag", "identity"}
        "tied" gives one matrix for all classes, "identity" one without a rule.
    rule : str, float or callable
        "auto" is "empirical" where all matrices are well conditioned, else "oas".
    classes : ClassMoments
        Of the classes with rows, in scaled coordinates.
    rows : Rows or None
        Scaled, each about the mean of its class; for "ledoit_wolf" and functions of
        rows.

    Returns
    -------
    ClassCovariances
        With (K, p, p) or (1, p, p) matrices, repaired where they are singular.
    """
    n_classes, n_features = classes.mean.shape
    if covariance_type == "identity":
        return ClassCovariances(
            matrices=np.eye(n_features)[None],
            kind="identity",
            pooled=np.empty(0, dtype=np.intp),
            condition=np.ones(1),
            n_floored=np.zeros(1, dtype=np.intp),
            floor=0.0,
        )
    diagonal = covariance_type == "diag"
    kept = np.eye(n_features) if diagonal else 1.0
    fourth, unit = None, 1.0
    if rule == "ledoit_wolf" and rows is not None:
        # A power of two changes no digit, and fourth powers stay in range.
        spread = np.sqrt(classes.variation.max() / classes.weight.sum())
        unit = float(np.ldexp(1.0, np.frexp(spread)[1]))
        fourth = np.sum(rows.map(_fourth_moments, n_classes, unit), axis=0)

    def estimated(groups: ClassMoments, rule: CovarianceRule) -> FloatArray:
        in_common = len(groups.weight) < n_classes

        def rows_of(m: int) -> tuple[FloatArray, FloatArray | None]:
            assert rows is not None
            members = range(n_classes) if in_common else [m]
            parts = [rows.of_class(k) for k in members]
            weights = [weight for _, weight in parts if weight is not None]
            own = np.concatenate([X for X, _ in parts])
            return own, np.concatenate(weights) if weights else None

        sums = fourth
        if sums is not None and in_common:
            sums = sums.sum(keepdims=True)
        matrices = estimate_covariances(
            rule,
            groups.weight,
            groups.scatter / unit / unit,
            divisor=groups.weight - (n_classes if in_common else 1),
            fourth=sums,
            rows_of=rows_of,
        )
        return matrices * unit * unit * kept

    groups = _in_common(classes) if covariance_type == "tied" else classes
    if rule == "auto":
        rule = automatic_rule(groups, n_classes // len(groups.weight), diagonal)

    def pooled() -> FloatArray:
        return estimated(_in_common(classes), rule)[0]

    matrices = estimated(groups, rule)
    return invertible(matrices, rule, _EIGENVALUE_FLOOR, pooled=pooled)


def _in_common(classes: ClassMoments) -> ClassMoments:
    """All classes as one, each about its own mean."""
    total, n_classes = classes.weight.sum(), len(classes.weight)
    if not total > n_classes:
        raise DegenerateDataError(
            f"{total:g} rows in {n_classes} classes leave nothing to estimate a "
            "covariance from: give at least one class two rows."
        )
    return classes.within()


def automatic_rule(groups: ClassMoments, n_means: int, diagonal: bool) -> str:
    """The rule "empirical" if every matrix is well conditioned, else "oas".

    Well conditioned is a matrix of more rows than features p whose correlations have
    no eigenvalue below 1e-6 p. `n_means` are the means that were estimated from the
    rows of each. One rule for all classes: densities shrunk differently compare badly.
    """
    variances, size = groups.variation, groups.scatter.shape[1]
    divisor = groups.weight - n_means
    if not ((divisor > 0).all() and (variances > 0).all()):
        return "oas"
    if diagonal:
        return "empirical"
    freedom = groups.weight if n_means == 1 else divisor
    if not (freedom > size).all():
        return "oas"
    deviation = np.sqrt(variances)
    correlation = groups.scatter / (deviation[:, :, None] * deviation[:, None, :])
    lowest = np.linalg.eigvalsh(correlation)[:, 0]
    return "empirical" if (lowest > _CORRELATION_FLOOR * size).all() else "oas"


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
    units = spread[features]
    origin = part.weight @ part.mean / part.weight.sum()
    # The origin is a plain number: the rounded parts of the means stay exact.
    means = ((part.mean - origin) + part.mean_lo) / units
    if rows is not None and (callable(covariance) or covariance == "ledoit_wolf"):
        rows = rows.transform(_centred, origin, units, means)
    classes = replace(
        part,
        mean=means,
        mean_lo=np.zeros_like(means),
        scatter=part.scatter / np.outer(units, units),
    )
    covariances = class_covariances(covariance_type, covariance, classes, rows)
    matrices = covariances.matrices
    positions = np.arange(len(means)) % len(matrices)  # one each, or all
    boxes: Boxes | DiagonalBoxes
    if covariance_type in ("diag", "identity"):
        variances = np.diagonal(matrices, axis1=1, axis2=2)[positions]
        boxes = DiagonalBoxes.build(means, variances, part.weight, box)
    else:
        boxes = Boxes.build(means, matrices, positions, part.weight, box, part.classes)
    # densities are in units of X
    volume = np.log(units).sum() + 0.5 * len(features) * np.log(2 * np.pi)
    model = Model(
        features=features,
        origin=origin,
        scale=units,
        normaliser=-0.5 * boxes.log_determinants - volume,
        prior=prior[seen],
        total=float(part.weight.sum()),
        boxes=boxes,
    )
    return Learned(model, seen, covariances, spread)


# --- promises: none that could be held to unseen rows ---------------------------------


def guarantees() -> tuple[Guarantee, ...]:
    """No promise: sets are exact for the boxes, but no box surely holds the truth.

    For sets with a coverage that is promised, use conformal prediction.
    """
    return ()
