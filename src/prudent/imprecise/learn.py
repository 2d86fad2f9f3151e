"""The fit: classes in units of the feature scale, their covariances, their boxes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prudent.core.classes import (
    class_priors,
    classes_seen,
    restrict,
    spread_over_classes,
    varying_features,
)
from prudent.core.covariance import ClassCovariances, CovarianceRule
from prudent.core.moments import ClassMoments
from prudent.core.rows import Rows, restricted
from prudent.core.types import BoolArray, FloatArray, IntArray
from prudent.imprecise.box import Boxes
from prudent.imprecise.covariance import class_covariances
from prudent.imprecise.diagonal import DiagonalBoxes
from prudent.imprecise.model import Model
from prudent.imprecise.scaling import ScaledClasses, feature_scale, given_scale

CovarianceType = Literal["full", "tied", "diag", "identity"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """What a fit found.

    Attributes
    ----------
    model : Model
        Of the classes seen.
    seen : ndarray of bool, shape (n_classes,)
        Classes that have rows.
    features : ndarray of int
        Features in use.
    covariances : ClassCovariances
        In units of the feature scale: one matrix for each class seen, or one.
    scale : ndarray of shape (n_features,)
        Spread of every feature, in its units; 1 where it is constant.
    """

    model: Model
    seen: BoolArray
    features: IntArray
    covariances: ClassCovariances
    scale: FloatArray

    def in_units(self) -> FloatArray:
        """Covariances of all classes in units of X, 0 for what is left out."""
        n_features, classes = len(self.scale), np.flatnonzero(self.seen)
        everything = np.zeros((len(self.seen), n_features, n_features))
        unit = np.outer(self.scale[self.features], self.scale[self.features])
        place = np.ix_(classes, self.features, self.features)
        everything[place] = self.covariances.matrices * unit
        return everything

    def priors(self) -> FloatArray:
        """Probabilities of all classes."""
        return spread_over_classes(self.model.prior, self.seen, 0.0)


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
        Classes of weight 0 have not been seen yet.
    rows : Rows or None
        The rows behind `moments`, all features.
    covariance_type, scale, box, priors
        Settings, see `ImpreciseDiscriminantAnalysis`.
    covariance : str, float or callable
        See `CovarianceRule`; "auto" too.

    Raises
    ------
    DegenerateDataError
        If no feature varies, or there is nothing to estimate a covariance from.
    SingularCovarianceError
        If a covariance is singular.
    ValueError
        If settings do not fit the classes or the features.
    """
    seen, prior = classes_seen(moments), class_priors(priors, moments.weight)
    features = varying_features(moments)
    part = restrict(moments, seen, features)
    if rows is not None:
        rows = restricted(rows, features)
    spread = np.ones(moments.mean.shape[1])
    if scale is not None and not isinstance(scale, str):
        scale = given_scale(scale, len(spread))[features]
    spread[features] = feature_scale(scale, part, rows)
    classes = ScaledClasses.of(part, spread[features])
    found = class_covariances(covariance_type, covariance, classes, rows)
    model = Model.of_boxes(
        features,
        classes.origin,
        classes.scale,
        prior[seen],
        float(classes.weight.sum()),
        _boxes(classes, found, part.classes, covariance_type, box),
    )
    return Learned(
        model=model, seen=seen, features=features, covariances=found, scale=spread
    )


def _boxes(
    classes: ScaledClasses,
    found: ClassCovariances,
    labels: NDArray[Any],
    covariance_type: str,
    box: str,
) -> Boxes | DiagonalBoxes:
    """Boxes round the class means, with the covariances found."""
    positions = np.arange(len(classes.mean))
    if len(found.matrices) == 1:
        positions = np.zeros_like(positions)
    if covariance_type in ("diag", "identity"):
        variances = np.diagonal(found.matrices, axis1=1, axis2=2)[positions]
        return DiagonalBoxes.build(classes.mean, variances, classes.weight, box)
    return Boxes.build(
        classes.mean, found.matrices, positions, classes.weight, box, labels
    )
