"""The fit: classes in units of the feature scale, their covariances, their boxes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from prudent.core.classes import (
    class_priors,
    classes_seen,
    restrict,
    varying_features,
)
from prudent.core.covariance import ClassCovariances, CovarianceRule
from prudent.core.moments import ClassMoments
from prudent.core.rows import Rows, restricted
from prudent.core.types import BoolArray, FloatArray
from prudent.imprecise.box import Boxes
from prudent.imprecise.covariance import (
    ScaledClasses,
    class_covariances,
    feature_scale,
    given_scale,
)
from prudent.imprecise.diagonal import DiagonalBoxes
from prudent.imprecise.model import Model

CovarianceType = Literal["full", "tied", "diag", "identity"]


@dataclass(frozen=True, slots=True)
class Learned:
    """What a fit found."""

    model: Model  # of the classes seen
    seen: BoolArray  # (n_classes,) classes that have rows
    covariances: ClassCovariances  # of the classes seen, in units of the feature scale
    scale: FloatArray  # (n_features,) in units of the features; 1 where constant

    def in_units(self) -> FloatArray:
        """Covariances of all classes in units of X, 0 for what is left out."""
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

    Classes of weight 0 have not been seen yet; `rows` are those behind the moments, all
    features. The settings are those of `ImpreciseDiscriminantAnalysis`.
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
    found = class_covariances(covariance_type, covariance, classes, rows)
    positions = np.arange(len(classes.mean)) % len(found.matrices)  # one each, or all
    boxes: Boxes | DiagonalBoxes
    if covariance_type in ("diag", "identity"):
        variances = np.diagonal(found.matrices, axis1=1, axis2=2)[positions]
        boxes = DiagonalBoxes.build(classes.mean, variances, classes.weight, box)
    else:
        boxes = Boxes.build(
            classes.mean, found.matrices, positions, classes.weight, box, part.classes
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
    return Learned(model, seen, found, spread)
