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
    features: IntArray  # in use
    covariances: ClassCovariances  # of the classes seen, in units of the feature scale
    scale: FloatArray  # (n_features,) in units of the features; 1 where constant

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

    Classes of weight 0 have not been seen yet; `rows` are those behind the moments, all
    features. The settings are those of `ImpreciseDiscriminantAnalysis`.
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
    boxes = _boxes(classes, found, part.classes, covariance_type, box)
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
    return Learned(model, seen, features, found, spread)


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
