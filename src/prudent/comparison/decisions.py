"""What an estimator says about rows, asked once."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from prudent.estimator_tools import predict_set


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

    predicted: NDArray[np.intp]
    sets: NDArray[np.bool_] | None = None
    p_values: NDArray[np.float64] | None = None


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

    if hasattr(estimator, "p_values"):  # both answers follow from these
        p_values = spread(estimator.p_values(X))
        return Decisions(
            p_values.argmax(axis=1), p_values > estimator.false_alarm_rate, p_values
        )
    predicted = np.searchsorted(classes, estimator.predict(X))
    if hasattr(estimator, "predict_set"):
        return Decisions(predicted, spread(predict_set(estimator, X)))
    return Decisions(predicted)
