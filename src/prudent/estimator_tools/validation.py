"""Rows, labels and groups as estimators take them, and how rows are split."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    _num_samples,
    check_is_fitted,
    column_or_1d,
    has_fit_parameter,
)

from prudent._compat import validate_data
from prudent.core.rows import HeldOut, hold_out, one_row_per_group
from prudent.core.types import BoolArray, FloatArray
from prudent.estimator_tools.seen_rows import refuse_seen_rows, remember_rows
from prudent.exceptions import PrudentWarning


def check_training(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: ArrayLike | None = None,
    *,
    reset: bool = True,
) -> tuple[NDArray[Any], NDArray[Any], FloatArray | None]:
    """Validate labelled rows and drop those of weight zero; weight None stays None.

    Rows of weight zero go first, before anybody looks at the labels, so that
    weight 0 equals removal even when a whole class vanishes. float32 and integer
    features keep their type: the mathematics converts block by block. `reset=False`
    checks the features against those of an earlier call.
    """
    refuse_dask(X)
    X, y = validate_data(estimator, X, y, reset=reset)
    if not _are_few_integers(y):
        check_classification_targets(y)
    if sample_weight is None:
        return X, y, None
    weight, kept = positive_weights(sample_weight, X)
    if len(kept) == len(weight):
        return X, y, weight
    return X[kept], y[kept], weight[kept]


def positive_weights(
    sample_weight: ArrayLike, X: Any
) -> tuple[FloatArray, NDArray[np.intp]]:
    """Weights >= 0 of all rows, and the positions of those that are positive."""
    weight = _check_sample_weight(
        sample_weight, X, dtype=np.float64, ensure_non_negative=True
    )
    kept = np.flatnonzero(weight > 0)
    if not len(kept):
        raise ValueError(
            "all entries of `sample_weight` are zero: give at least one row "
            "a positive weight."
        )
    return weight, kept


def _are_few_integers(y: NDArray[Any]) -> bool:
    """Whether labels are integers of a narrow range: classes, without sorting them."""
    if y.dtype.kind not in "iub" or len(y) == 0:
        return False
    return int(y.max()) - int(y.min()) < len(y) // 2


def check_rows(estimator: Any, X: Any) -> NDArray[Any]:
    """Validate rows to predict: the estimator is fitted, the features agree."""
    check_is_fitted(estimator)
    refuse_dask(X)
    return validate_data(estimator, X, reset=False)


def refuse_dask(X: Any) -> None:
    """Raise TypeError for a dask collection instead of pulling all its data in."""
    if hasattr(X, "__dask_graph__"):
        raise TypeError(
            "dask input: use prudent.dask.fit(estimator, X, y), "
            "or call .compute() first."
        )


def check_groups(groups: ArrayLike, n_rows: int) -> NDArray[Any]:
    """Group labels as an array: one for each row, two groups at least."""
    labels = column_or_1d(groups)
    if len(labels) != n_rows:
        raise ValueError(
            f"`groups` must hold one label for each of the {n_rows} rows, got "
            f"{len(labels)}."
        )
    if len(np.unique(labels)) < 2:
        raise ValueError(
            "`groups` must name at least 2 groups: whole groups are held out."
        )
    return labels


def frame_columns(X: Any) -> tuple[list[NDArray[Any]], BoolArray] | None:
    """Columns of a pandas or polars data frame, and which of them hold levels.

    Text, categorical, object and boolean columns hold levels. Missing values are None
    or NaN. None for anything but a data frame.
    """
    import narwhals as nw

    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return None
    if not len(frame):
        raise ValueError(
            "Found array with 0 sample(s) while a minimum of 1 is required."
        )
    kinds = (nw.String, nw.Categorical, nw.Enum, nw.Object, nw.Boolean)
    is_level = np.array([dtype in kinds for dtype in frame.schema.values()])
    columns = []
    for series, holds_levels in zip(frame.iter_columns(), is_level, strict=True):
        if holds_levels or series.is_null().any():
            values = np.array(series.to_list(), dtype=object)
            values[series.is_null().to_numpy()] = None
            columns.append(values)
        else:
            columns.append(series.to_numpy())
    return columns, is_level


def warn_constant_features(estimator: Any, features: NDArray[np.intp]) -> None:
    """Say which features take one value in all rows and are ignored."""
    if len(features):
        names = getattr(estimator, "feature_names_in_", None)
        shown = [str(j) if names is None else repr(names[j]) for j in features[:5]]
        more = f" and {len(features) - 5} more" if len(features) > 5 else ""
        warnings.warn(
            f"{type(estimator).__name__}: feature(s) {', '.join(shown)}{more} "
            "are constant over all rows and are ignored.",
            PrudentWarning,
            stacklevel=2,
        )


#: Positions of training and of test rows.
Split = tuple[NDArray[np.intp], NDArray[np.intp]]


def hold_out_rows(
    estimator: Any,
    X: Any,
    share: float,
    random: np.random.RandomState,
    groups: ArrayLike | None = None,
) -> HeldOut:
    """Draw the rows that an estimator is held to, and warn of repeated ones.

    With `groups`, one label a row, whole groups are held out, and one random row of
    each counts. What tells the rows again is kept with the estimator.
    """
    name, n_rows = type(estimator).__name__, _num_samples(X)
    if n_rows < 2:
        raise ValueError(
            f"{name}: {n_rows} row (1 sample is too few) cannot be split into rows to "
            "learn from and held-out rows; give at least 2."
        )
    labels = None if groups is None else check_groups(groups, n_rows)
    split = hold_out(n_rows, share, random, labels)
    remember_rows(estimator, X, split, warn=groups is None)
    return split


def hold_out_unseen(
    estimator: Any,
    X: Any,
    random: np.random.RandomState,
    groups: ArrayLike | None = None,
) -> HeldOut:
    """Rows that `estimator.estimator` is fitted to and rows it has not seen.

    All are held out where it is frozen, or one random row of each group; else
    `calibration_size` of them. `X` may be any table. Rows that a frozen model is known
    to have been fitted to are a ValueError.
    """
    if isinstance(estimator.estimator, FrozenEstimator):
        refuse_seen_rows(type(estimator).__name__, estimator.estimator, X)
        remember_rows(estimator, X, warn=groups is None)
        held_out = np.arange(_num_samples(X))
        if groups is not None:
            labels = check_groups(groups, len(held_out))
            held_out = one_row_per_group(labels, random)
        return HeldOut(np.empty(0, dtype=np.intp), held_out)
    return hold_out_rows(estimator, X, estimator.calibration_size, random, groups)


def fold_positions(
    cv: Any, X: NDArray[Any], y: NDArray[Any], sample_weight: ArrayLike | None
) -> list[Split]:
    """Positions of training and test rows of each fold of a setting `cv=`.

    Given positions count the rows of weight 0, which `X` and `y` lack; `sample_weight`
    is as the user gave it.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        splits = list(check_cv(cv, y, classifier=True).split(X, y))
    for warning in caught:
        warnings.warn(str(warning.message), PrudentWarning, stacklevel=3)
    if sample_weight is None or not isinstance(cv, Iterable):
        return splits
    kept = np.asarray(sample_weight) > 0
    place = np.where(kept, np.cumsum(kept) - 1, -1)

    def remaining(part: NDArray[np.intp]) -> NDArray[np.intp]:
        moved: NDArray[np.intp] = place[part]
        return moved[moved >= 0]

    return [(remaining(train), remaining(test)) for train, test in splits]


def groups_for(estimator: Any, groups: Any) -> dict[str, Any]:
    """What `fit` takes besides rows and labels: groups, where it knows them."""
    name, last = "groups", estimator
    if isinstance(estimator, Pipeline):
        step, last = estimator.steps[-1]
        name = f"{step}__groups"
    known = groups is not None and has_fit_parameter(last, "groups")
    return {name: groups} if known else {}
