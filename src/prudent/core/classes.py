"""What every family asks about its classes: seen, varying, probable, costly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prudent.core.moments import ClassMoments
from prudent.core.types import BoolArray, FloatArray, IntArray
from prudent.core.validation import shown
from prudent.exceptions import DegenerateDataError

#: Largest difference of given class probabilities from a sum of 1.
PRIOR_TOLERANCE = 1e-8
# A column whose mean is not below the first cannot vary by less than the second.
TINY, TINY_VARIATION = 1e-129, 1e-290


def check_two_classes(labels: Sequence[Any] | NDArray[Any]) -> None:
    """Raise ValueError unless there are rows of two classes at least."""
    if len(labels) < 2:
        raise ValueError(
            "rows of at least 2 classes are needed, got one class: "
            f"{', '.join(shown(label) for label in labels)}."
        )


def classes_seen(moments: ClassMoments) -> BoolArray:
    """Which classes, two at least, have rows; others were declared and come later."""
    seen: BoolArray = moments.weight > 0
    check_two_classes(moments.classes[seen])
    return seen


def constant_features(moments: ClassMoments) -> IntArray:
    """Features with one value in all rows; every family ignores them.

    Exact: first-row centring leaves a constant column a scatter of exactly 0.
    """
    seen = moments.weight > 0
    constant = (moments.variation[seen] == 0).all(axis=0)
    for mean in (moments.mean[seen], moments.mean_lo[seen]):
        constant &= (mean == mean[:1]).all(axis=0)
    return np.flatnonzero(constant)


def varying_features(moments: ClassMoments) -> IntArray:
    """Features to learn from, at least one: those not constant over all rows."""
    check_not_tiny(moments)
    n_features = moments.mean.shape[1]
    varying = np.setdiff1d(np.arange(n_features), constant_features(moments))
    if not len(varying):
        raise DegenerateDataError(
            "all features are constant over all rows: there is nothing to learn."
        )
    return varying


def check_not_tiny(moments: ClassMoments) -> None:
    """Raise for a column whose numbers are so small that their squares are lost."""
    size = np.abs(moments.mean).max(axis=0)
    lost = (moments.variation < TINY_VARIATION).all(axis=0)
    lost &= (size > 0) & (size < TINY)
    if lost.any():
        raise ValueError(
            f"column {int(np.flatnonzero(lost)[0])} of X holds values below "
            f"{TINY:g}, whose squares underflow: rescale it."
        )


def restrict(
    moments: ClassMoments, seen: BoolArray, features: IntArray
) -> ClassMoments:
    """Moments of the classes with rows and of some features; no fourth moments."""
    part = moments.take(seen)
    square = (features[:, None], features) if part.structure == "full" else (features,)
    return replace(
        part,
        mean=part.mean[:, features],
        mean_lo=part.mean_lo[:, features],
        scatter=part.scatter[:, *square],
        third=None,
        fourth=None,
    )


def class_priors(priors: ArrayLike | None, weight: FloatArray) -> FloatArray:
    """Probability of each class, of sum 1: as given, or its share of the rows.

    A class without rows has 0, and its share goes to the others. `priors` sum to 1
    within 1e-8.
    """
    if priors is None:
        return weight / weight.sum()
    given = np.asarray(priors, dtype=np.float64)
    fits = given.shape == weight.shape and bool((given >= 0).all())
    if not (fits and abs(given.sum() - 1) <= PRIOR_TOLERANCE):
        raise ValueError(
            f"`priors` must hold {len(weight)} numbers >= 0 that sum to 1, one for "
            f"each class, got {given.tolist()}."
        )
    if (weight > 0).all():
        return given
    known = np.where(weight > 0, given, 0.0)
    if not known.sum() > 0:
        raise ValueError(
            "`priors` must be > 0 for at least one class that has rows, got "
            f"{given.tolist()}."
        )
    return known / known.sum()


def log_probabilities(probabilities: FloatArray) -> FloatArray:
    """Logarithms, -inf for an impossible class."""
    with np.errstate(divide="ignore"):
        return np.log(probabilities)


def as_costs(costs: ArrayLike) -> FloatArray:
    """Costs as an array of any shape; no mapping, whose order nobody can check."""
    expected = "of shape (n_classes, n_classes), rows true classes and columns answers"
    if isinstance(costs, Mapping):
        raise ValueError(
            f"`costs` must be an array {expected} in sorted order, got a mapping."
        )
    try:
        return np.asarray(costs, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"`costs` must be an array of numbers {expected}, got {shown(costs)}."
        ) from None


def class_costs(costs: ArrayLike, n_classes: int) -> FloatArray:
    """Finite costs of shape (n_classes, n_classes), rows = truth."""
    matrix = as_costs(costs)
    if matrix.shape != (n_classes, n_classes) or not np.isfinite(matrix).all():
        raise ValueError(
            "`costs` must be finite, of shape (n_classes, n_classes) = "
            f"({n_classes}, {n_classes}), rows = truth; got {matrix.tolist()}."
        )
    return matrix


def error_costs(costs: ArrayLike, n_classes: int) -> FloatArray:
    """What each error costs more (> 0) than the right answer in its row; diagonal 0."""
    matrix = class_costs(costs, n_classes)
    excess = matrix - np.diag(matrix)[:, None]
    if not (excess[~np.eye(n_classes, dtype=bool)] > 0).all():
        raise ValueError(
            "each error in `costs` must cost more than the right answer in its row, "
            f"got {matrix.tolist()}."
        )
    return excess


def spread_over_classes(
    values: NDArray[Any], seen: BoolArray, fill: float | bool, axis: int = -1
) -> NDArray[Any]:
    """Values of the classes with rows, placed among all classes along `axis`.

    The others get `fill`; `values` itself when all classes have rows.
    """
    if seen.all():
        return values
    shape = list(values.shape)
    shape[axis] = len(seen)
    everything = np.full(shape, fill, dtype=values.dtype)
    np.moveaxis(everything, axis, 0)[seen] = np.moveaxis(values, axis, 0)
    return everything
