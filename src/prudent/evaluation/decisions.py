"""What an estimator says about rows, asked once."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from prudent.core.types import BoolArray, FloatArray, IntArray
from prudent.estimator_tools import predict_set

# p-values are multiples of 1 / (n + 1); rounding is far below.
ROUNDING = 1e-9


class Decisions(NamedTuple):
    """Answers to rows, as far as an estimator gives them.

    Attributes
    ----------
    predicted : ndarray of shape (n,)
        Column of the predicted class.
    sets : ndarray of bool, shape (n, K), or None
        Classes not ruled out.
    p_values : ndarray of shape (n, K) or None
        p-value of each class.
    """

    predicted: IntArray
    sets: BoolArray | None = None
    p_values: FloatArray | None = None


def decide(estimator: Any, X: NDArray[Any], classes: NDArray[Any]) -> Decisions:
    """Decisions of a fitted estimator about rows; columns follow `classes`.

    A class that the estimator has not seen is never predicted and in no set.
    """
    columns = np.searchsorted(classes, getattr(estimator, "classes_", classes))

    def spread(found: NDArray[Any]) -> NDArray[Any]:
        if len(columns) == len(classes):
            return found
        wide = np.zeros((len(found), len(classes)), dtype=found.dtype)
        wide[:, columns] = found
        return wide

    if hasattr(estimator, "p_values") and not hasattr(estimator, "level"):
        # One-class rejectors: both answers follow, and a set may be empty.
        p_values = spread(estimator.p_values(X))
        sets = p_values > estimator.false_alarm_rate
        return Decisions(p_values.argmax(axis=1), sets, p_values)
    predicted = np.searchsorted(classes, estimator.predict(X))
    if hasattr(estimator, "p_values"):
        p_values = spread(estimator.p_values(X))
        return Decisions(
            predicted, sets_at(estimator.level, p_values, predicted), p_values
        )
    if hasattr(estimator, "predict_set"):
        return Decisions(predicted, spread(predict_set(estimator, X)))
    return Decisions(predicted)


def sets_at(level: float, p_values: FloatArray, predicted: IntArray) -> BoolArray:
    """Conformal sets at a level; the predicted class is added, so none is empty."""
    sets: BoolArray = p_values > level + ROUNDING
    sets[np.arange(len(sets)), predicted] = True
    return sets
