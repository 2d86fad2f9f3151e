"""Scores of set-valued predictions, and scorers for cross-validation.

Every score takes the true labels `y`, the sets `Y` (bool, one column per class)
and `classes`, the labels of the columns. A row is a hit when its set contains the
true label; a label outside `classes` is a miss.
"""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_consistent_length, column_or_1d

from prudent.core.types import BoolArray
from prudent.core.validation import shown
from prudent.estimator_tools import predict_set

__all__ = [
    "coverage_score",
    "coverage_scorer",
    "determinacy_score",
    "discounted_accuracy_score",
    "set_accuracy_score",
    "set_size",
    "single_accuracy_score",
    "u65_score",
    "u65_scorer",
    "u80_score",
    "u80_scorer",
    "utility_score",
]


def set_size(Y: ArrayLike) -> NDArray[np.int64]:
    """Number of classes in each predicted set.

    Parameters
    ----------
    Y : array-like of bool, shape (n_samples, n_classes)
        Predicted sets.

    Returns
    -------
    sizes : ndarray of int, shape (n_samples,)

    Examples
    --------
    >>> from prudent.metrics import set_size
    >>> set_size([[True, False], [True, True]])
    array([1, 2])
    """
    return _check_sets(Y).sum(axis=1)


def coverage_score(y: ArrayLike, Y: ArrayLike, classes: ArrayLike) -> float:
    """Share of rows whose set contains the true label.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        True labels.
    Y : array-like of bool, shape (n_samples, n_classes)
        Predicted sets, columns in the order of `classes`.
    classes : array-like of shape (n_classes,)
        Label of each column.

    Returns
    -------
    score : float
        In [0, 1].

    Raises
    ------
    ValueError
        If `Y` is not a bool matrix with one row per label and one column per
        class.

    Examples
    --------
    >>> from prudent.metrics import coverage_score
    >>> coverage_score([0, 1], [[True, True], [True, False]], classes=[0, 1])
    0.5
    """
    hit, _ = _hits_and_sizes(y, Y, classes)
    return float(hit.mean())


def discounted_accuracy_score(y: ArrayLike, Y: ArrayLike, classes: ArrayLike) -> float:
    """Mean of hit / size: the chance of a uniform guess inside the set.

    Parameters, errors and range as in :func:`coverage_score`; an empty set
    scores 0.

    Examples
    --------
    >>> from prudent.metrics import discounted_accuracy_score
    >>> discounted_accuracy_score([0, 1], [[True, True], [False, True]], [0, 1])
    0.75
    """
    return utility_score(y, Y, classes, 1.0)


def utility_score(
    y: ArrayLike, Y: ArrayLike, classes: ArrayLike, alpha: float
) -> float:
    """Utility-discounted accuracy: what a correct but vague answer is worth.

    Parameters
    ----------
    y, Y, classes
        As in :func:`coverage_score`.
    alpha : float
        >= 1: how far cautiousness is rewarded. 1 gives no reward
        (:func:`discounted_accuracy_score`), 1.6 is :func:`u65_score`, 2.2 is
        :func:`u80_score`; from 3 on two classes are worth as much as one.

    Returns
    -------
    score : float
        Mean of alpha / size - (alpha - 1) / size^2 over the rows, 0 for a miss.

    Raises
    ------
    ValueError
        As :func:`coverage_score`, and if `alpha` is not a finite number >= 1.

    Notes
    -----
    (41) of Carranza-Alarcon and Destercke (2019), after Zaffalon, Corani and Mauá
    (2012), with its second sign put right: as printed, a correct single class would
    be worth 2 alpha - 1.

    Examples
    --------
    >>> from prudent.metrics import utility_score
    >>> utility_score([0, 1], [[True, True], [False, True]], [0, 1], alpha=2.0)
    0.875
    """
    alpha = check_alpha(alpha, "alpha")
    hit, size = _hits_and_sizes(y, Y, classes)
    size = np.maximum(size, 1)  # an empty set is never a hit
    return float((hit * (alpha / size - (alpha - 1) / size**2)).mean())


def check_alpha(alpha: Any, name: str) -> float:
    """The `alpha` of a utility, or a ValueError that names the parameter."""
    number = isinstance(alpha, Real) and not isinstance(alpha, bool)
    if not (number and 1 <= float(alpha) < float("inf")):
        raise ValueError(f"`{name}` must be a finite number >= 1, got {shown(alpha)}.")
    return float(alpha)


def u65_score(y: ArrayLike, Y: ArrayLike, classes: ArrayLike) -> float:
    """Utility-discounted accuracy worth 0.65 for a hit with two classes.

    u = a / size - (a - 1) / size^2 with a = 1.6 on a hit, 0 on a miss
    (Zaffalon, Corani and Mauá 2012). Arguments and errors as in
    :func:`coverage_score`.

    Examples
    --------
    >>> from prudent.metrics import u65_score
    >>> round(u65_score([0, 1], [[True, True], [False, True]], [0, 1]), 3)
    0.825
    """
    return utility_score(y, Y, classes, 1.6)


def u80_score(y: ArrayLike, Y: ArrayLike, classes: ArrayLike) -> float:
    """Utility-discounted accuracy worth 0.80 for a hit with two classes.

    As :func:`u65_score` with a = 2.2.

    Examples
    --------
    >>> from prudent.metrics import u80_score
    >>> round(u80_score([0, 1], [[True, True], [False, True]], [0, 1]), 3)
    0.9
    """
    return utility_score(y, Y, classes, 2.2)


def determinacy_score(y: ArrayLike, Y: ArrayLike, classes: ArrayLike) -> float:
    """Share of rows answered with exactly one class.

    Arguments and errors as in :func:`coverage_score`.

    Examples
    --------
    >>> from prudent.metrics import determinacy_score
    >>> determinacy_score([0, 1], [[True, True], [False, True]], [0, 1])
    0.5
    """
    _, size = _hits_and_sizes(y, Y, classes)
    return float((size == 1).mean())


def single_accuracy_score(y: ArrayLike, Y: ArrayLike, classes: ArrayLike) -> float:
    """Accuracy on the rows answered with exactly one class; NaN without any.

    Arguments and errors as in :func:`coverage_score`.

    Examples
    --------
    >>> from prudent.metrics import single_accuracy_score
    >>> single_accuracy_score([0, 1], [[True, True], [False, True]], [0, 1])
    1.0
    """
    hit, size = _hits_and_sizes(y, Y, classes)
    return _conditional_mean(hit, size == 1)


def set_accuracy_score(y: ArrayLike, Y: ArrayLike, classes: ArrayLike) -> float:
    """Coverage on the rows answered with more than one class; NaN without any.

    Arguments and errors as in :func:`coverage_score`.

    Examples
    --------
    >>> from prudent.metrics import set_accuracy_score
    >>> set_accuracy_score([0, 1], [[True, True], [False, True]], [0, 1])
    1.0
    """
    hit, size = _hits_and_sizes(y, Y, classes)
    return _conditional_mean(hit, size > 1)


def u65_scorer(estimator: Any, X: Any, y: ArrayLike) -> float:
    """Scorer of `u65_score`, for `cross_validate` and search objects."""
    return u65_score(y, predict_set(estimator, X), estimator.classes_)


def u80_scorer(estimator: Any, X: Any, y: ArrayLike) -> float:
    """Scorer of `u80_score`, for `cross_validate` and search objects."""
    return u80_score(y, predict_set(estimator, X), estimator.classes_)


def coverage_scorer(estimator: Any, X: Any, y: ArrayLike) -> float:
    """Scorer of `coverage_score`, for `cross_validate` and search objects."""
    return coverage_score(y, predict_set(estimator, X), estimator.classes_)


def _conditional_mean(hit: BoolArray, condition: BoolArray) -> float:
    return float(hit[condition].mean()) if condition.any() else float("nan")


def _check_sets(Y: ArrayLike) -> BoolArray:
    sets = np.asarray(Y)
    if sets.ndim != 2 or sets.dtype != bool:
        raise ValueError(
            "`Y` must be a bool array of shape (n_samples, n_classes), got "
            f"dtype {sets.dtype} and shape {sets.shape}."
        )
    return sets


def _hits_and_sizes(
    y: ArrayLike, Y: ArrayLike, classes: ArrayLike
) -> tuple[BoolArray, NDArray[np.int64]]:
    labels, sets, columns = column_or_1d(y), _check_sets(Y), column_or_1d(classes)
    check_consistent_length(labels, sets)
    if len(labels) == 0:
        raise ValueError("`y` must hold at least 1 label, got 0.")
    if len(columns) != sets.shape[1]:
        raise ValueError(
            f"`classes` must name the {sets.shape[1]} columns of `Y`, got "
            f"{len(columns)} labels."
        )
    order = np.argsort(columns)
    position = np.searchsorted(columns, labels, sorter=order)
    column = order[np.minimum(position, len(columns) - 1)]
    known = columns[column] == labels
    hit = known & sets[np.arange(len(labels)), column]
    return hit, sets.sum(axis=1)
