"""Cross-validated set predictions."""

from __future__ import annotations

from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.validation import column_or_1d

from prudent.estimator_tools import predict_set

__all__ = ["cross_val_predict_set"]


def cross_val_predict_set(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    cv: Any = None,
    n_jobs: int | None = None,
    params: dict[str, Any] | None = None,
) -> NDArray[np.bool_]:
    """Set prediction of each row by a model that has not seen it.

    The set-valued companion of `sklearn.model_selection.cross_val_predict`, which
    refuses `predict_set`.

    Parameters
    ----------
    estimator : estimator
        A classifier with `predict_set`, or a pipeline or search around one.
    X : array-like or data frame of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples,)
        Labels.
    groups : array-like of shape (n_samples,), default=None
        Group labels for group splitters.
    cv : int, splitter or iterable, default=None
        As in scikit-learn; None is stratified 5-fold. Each row must be in
        exactly one test part.
    n_jobs : int, default=None
        Folds fitted at a time (joblib).
    params : dict, default=None
        Arguments of `fit`; those with one entry per row are cut to the fold.

    Returns
    -------
    sets : ndarray of bool, shape (n_samples, n_classes)
        Columns in the sorted order of the labels in `y`; a class absent from a
        fold's training part is in none of its sets.

    Raises
    ------
    ValueError
        If the test parts of `cv` do not hold each row exactly once.

    Examples
    --------
    >>> from prudent import ImpreciseDiscriminantAnalysis
    >>> from prudent.metrics import coverage_score
    >>> from prudent.model_selection import cross_val_predict_set
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> sets = cross_val_predict_set(ImpreciseDiscriminantAnalysis(), X, y)
    >>> coverage_score(y, sets, [0, 1, 2]) > 0.95
    True
    """
    X, y, groups = indexable(X, y, groups)
    labels: NDArray[Any] = column_or_1d(y)
    classes = np.unique(labels)
    folds = list(check_cv(cv, labels, classifier=True).split(X, labels, groups))
    times_tested = np.bincount(
        np.concatenate([np.arange(len(labels))[test] for _, test in folds]),
        minlength=len(labels),
    )
    if (times_tested != 1).any():
        row = int(np.flatnonzero(times_tested != 1)[0])
        raise ValueError(
            "`cv` must test each row exactly once, but row "
            f"{row} is tested {times_tested[row]} times."
        )
    parts = Parallel(n_jobs=n_jobs)(
        delayed(_fit_and_predict_set)(clone(estimator), X, labels, train, test, params)
        for train, test in folds
    )
    sets = np.zeros((len(labels), len(classes)), dtype=np.bool_)
    for (_, test), (fold_classes, fold_sets) in zip(folds, parts, strict=True):
        sets[
            np.ix_(np.arange(len(labels))[test], np.searchsorted(classes, fold_classes))
        ] = fold_sets
    return sets


def _fit_and_predict_set(
    estimator: Any,
    X: Any,
    y: NDArray[Any],
    train: NDArray[np.intp],
    test: NDArray[np.intp],
    params: dict[str, Any] | None,
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    fold_params = {
        name: _safe_indexing(value, train)
        if hasattr(value, "__len__") and len(value) == len(y)
        else value
        for name, value in (params or {}).items()
    }
    estimator.fit(_safe_indexing(X, train), y[train], **fold_params)
    return estimator.classes_, predict_set(estimator, _safe_indexing(X, test))
