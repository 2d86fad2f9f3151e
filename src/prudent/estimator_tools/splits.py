"""Which rows estimators learn from and which they are held to."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import check_cv

from prudent.core.holdout import HeldOut, count_repeated, hold_out
from prudent.estimator_tools.validation import check_groups
from prudent.exceptions import PrudentWarning

#: Positions of training and of test rows.
Split = tuple[NDArray[np.intp], NDArray[np.intp]]


def hold_out_rows(
    estimator: Any,
    X: NDArray[Any],
    share: float,
    random: np.random.RandomState,
    groups: ArrayLike | None = None,
) -> HeldOut:
    """Draw the rows that an estimator is held to, and warn of repeated ones.

    With `groups`, one label a row, whole groups are held out, and one random row of
    each counts. Rows that are not numbers are not searched for repeats.
    """
    name, n_rows = type(estimator).__name__, len(X)
    if n_rows < 2:
        raise ValueError(
            f"{name}: {n_rows} row (1 sample is too few) cannot be split into rows to "
            "learn from and held-out rows; give at least 2."
        )
    labels = None if groups is None else check_groups(groups, n_rows)
    split = hold_out(n_rows, share, random, labels)
    if labels is None and X.dtype.kind in "fiub":
        repeated = count_repeated(X, split)
        if repeated:
            warnings.warn(
                f"{name}: {repeated} of {len(split.held_out)} held-out rows stand "
                "among the rows learned from too; a promise from rows seen before "
                "can be false. Remove repeated rows, or say with `groups` which rows "
                "belong together.",
                PrudentWarning,
                stacklevel=3,
            )
    return split


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
