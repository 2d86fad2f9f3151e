"""From class moments to boxes: the mathematics of a fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prudent.core.moments import ClassMoments
from prudent.exceptions import DegenerateDataError
from prudent.imprecise.box import Boxes, DiagonalBoxes
from prudent.imprecise.covariance import ClassCovariances
from prudent.imprecise.model import BoxModel

if TYPE_CHECKING:
    from prudent.imprecise.rules import TrainingRows

__all__ = ["ScaledClasses", "feature_scale", "fit_boxes", "scaled_classes"]

FloatArray = NDArray[np.float64]


def feature_scale(
    scale: ArrayLike | None,
    moments: ClassMoments,
    rows: TrainingRows | None,
) -> FloatArray:
    """Spread s_j of every feature, in its units; 1 where it would be 0.

    Parameters
    ----------
    scale : {"std", "within", "range"}, None or array of shape (p,)
        Standard deviation of the whole sample (denominator N), pooled within the
        classes (denominator N - K), range of `rows`, 1, or the values given.
    moments : ClassMoments
        Of classes with rows only.
    rows : TrainingRows or None
        Needed for "range".
    """
    n_features = moments.mean.shape[1]
    if scale is None:
        return np.ones(n_features)
    if not isinstance(scale, str):
        return np.array(scale, dtype=np.float64)
    if scale == "range":
        assert rows is not None
        spread = rows.ranges()
    elif scale == "within":
        freedom = moments.weight.sum() - len(moments.weight)
        variances = np.diagonal(moments.scatter, axis1=1, axis2=2).sum(axis=0)
        spread = np.sqrt(variances / freedom) if freedom > 0 else np.ones(n_features)
    else:
        pooled = moments.pooled()
        spread = np.sqrt(np.diagonal(pooled.scatter[0]) / pooled.weight[0])
    return np.where(spread > 0, spread, 1.0)


@dataclass(frozen=True)
class ScaledClasses:
    """Class statistics in coordinates (x - origin) / scale of the features in use.

    Attributes
    ----------
    features : ndarray of shape (p,)
        Columns in use: those that vary.
    origin, scale : ndarray of shape (p,)
        In units of X.
    mean : ndarray of shape (K, p)
    weight : ndarray of shape (K,)
    scatter : ndarray of shape (K, p, p)
    """

    features: NDArray[np.intp]
    origin: FloatArray
    scale: FloatArray
    mean: FloatArray
    weight: FloatArray
    scatter: FloatArray

    def standardise(self, rows: NDArray[Any], codes: NDArray[np.intp]) -> FloatArray:
        """Rows in scaled coordinates, each about the mean of its class."""
        scaled = (rows[:, self.features] - self.origin) / self.scale
        return scaled - self.mean[codes]

    def in_units(self, matrices: FloatArray, n_features: int) -> FloatArray:
        """Covariances (K, n_features, n_features) in units of X, 0 where unused."""
        whole = np.zeros((len(self.mean), n_features, n_features))
        unit = np.outer(self.scale, self.scale)
        whole[np.ix_(np.arange(len(whole)), self.features, self.features)] = (
            matrices * unit
        )
        return whole


def scaled_classes(
    moments: ClassMoments, scale: FloatArray, constant: NDArray[np.intp]
) -> ScaledClasses:
    """Leave constant features out and measure the others in units of their scale.

    Raises
    ------
    DegenerateDataError
        If every feature is constant.
    """
    features = np.setdiff1d(np.arange(len(scale)), constant)
    if len(features) == 0:
        raise DegenerateDataError(
            "all features are constant over all rows, so no class differs from "
            "another: give at least one feature that varies."
        )
    scale = scale[features]
    weight = moments.weight
    mean, mean_lo = moments.mean[:, features], moments.mean_lo[:, features]
    origin = weight @ mean / weight.sum()
    # The origin is a plain number: the rounded parts of the means stay exact.
    scaled_mean = ((mean - origin) + mean_lo) / scale
    scatter = moments.scatter[:, features][:, :, features] / np.outer(scale, scale)
    return ScaledClasses(features, origin, scale, scaled_mean, weight, scatter)


def fit_boxes(
    classes: ScaledClasses,
    found: ClassCovariances,
    prior: FloatArray,
    labels: NDArray[Any],
    covariance_type: str,
    box: str,
) -> BoxModel:
    """Boxes round the class means, with the covariances found."""
    positions = np.arange(len(classes.mean))
    if len(found.matrices) == 1:
        positions = np.zeros_like(positions)
    boxes: Boxes | DiagonalBoxes
    if covariance_type in ("diag", "identity"):
        variances = np.diagonal(found.matrices, axis1=1, axis2=2)[positions]
        boxes = DiagonalBoxes.build(classes.mean, variances, classes.weight, box)
    else:
        boxes = Boxes.build(
            classes.mean, found.matrices, positions, classes.weight, box, labels
        )
    total = float(classes.weight.sum())
    return BoxModel.build(
        classes.features, classes.origin, classes.scale, prior, total, boxes
    )
