"""What classifier and detector share: settings, rows on their way in, coins."""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import assert_all_finite, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
)

from prudent._compat import Interval, StrOptions, validate_data
from prudent.conformal.promises import FULL, SPLIT
from prudent.core.rows import keyed_uniform
from prudent.core.types import FloatArray
from prudent.estimator_tools import refuse_dask, warn_constant_features
from prudent.exceptions import PrudentWarning

# Up to here every row can rank at a bearable price.
MOST_FULL_ROWS = 20_000
CONSTRAINTS: dict[str, Any] = {
    "estimator": "no_validation",
    "ridge_rows": [Interval(Real, 0, None, closed="left")],
    "ties": [StrOptions({"conservative", "smoothed"})],
    "calibration_size": [Interval(Real, 0, 1, closed="neither")],
    "confidence": [Interval(Real, 0, 1, closed="neither"), None],
    "random_state": ["random_state"],
}


def forget_fit(estimator: Any) -> None:
    """Remove what only some fits leave."""
    for name in ("estimator_", "estimators_", "n_calibration_", "rule_", "_ranks"):
        vars(estimator).pop(name, None)


def note_constant_features(estimator: Any, X: Any) -> None:
    """Record and warn of columns of one value, where the columns are ours to judge."""
    constant = np.empty(0, dtype=np.intp)
    if estimator.estimator is None:
        constant = np.flatnonzero(np.ptp(X, axis=0) == 0)
        warn_constant_features(estimator, constant)
    estimator.constant_features_ = constant


def check_method(estimator: Any, method: str, groups: ArrayLike | None) -> None:
    """Refuse what classifier and detector cannot do alike."""
    if method == FULL and estimator.estimator is not None:
        raise ValueError(
            "method='full' has models of its own and cannot rank by `estimator`, got "
            f"{estimator.estimator!r}: use 'split', or leave `estimator` out."
        )
    if groups is not None and method != SPLIT:
        raise ValueError(
            f"`groups` need method='split', got {method!r}: rows of one group are not "
            "exchangeable with those of another."
        )
    if estimator.confidence is not None:
        if method != SPLIT:
            raise ValueError(
                f"`confidence` needs method='split', got {method!r}: nothing of the "
                "kind holds given the training rows."
            )
        if estimator.ties == "smoothed":
            raise ValueError("`confidence` needs ties='conservative', got 'smoothed'.")


def training_labels(X: Any, y: Any) -> NDArray[Any]:
    """Validated labels of rows."""
    y = column_or_1d(y, warn=True)
    check_consistent_length(X, y)
    assert_all_finite(y, input_name="y")
    check_classification_targets(y)
    return y


def rows_of(estimator: Any, X: Any, *, reset: bool = False) -> Any:
    """Validated rows: to learn from with `reset`, else to answer for.

    Where another estimator is wrapped, it alone knows what rows are: data frames (which
    a pipeline may match by name), sparse matrices and texts stay as they came.
    """
    if not reset:
        check_is_fitted(estimator)
    refuse_dask(X)
    if estimator.estimator is None:
        return validate_data(estimator, X, dtype=np.float64, reset=reset)
    if hasattr(X, "columns"):
        if reset:
            validate_data(estimator, X, skip_check_array=True)
        return X
    if isinstance(X, list | tuple | np.ndarray) and np.ndim(X[:1]) == 1:
        return X
    return validate_data(
        estimator,
        X,
        accept_sparse="csr",  # whose rows can be held out
        dtype=None,
        ensure_all_finite=False,
        reset=reset,
    )


def with_tags_of(inner: Any, tags: Any) -> Any:
    """Tags of an estimator that takes the rows which the one inside takes."""
    if inner is not None:
        tags.input_tags = get_tags(inner).input_tags
    return tags


def warn_of_learned_scaling(estimator: Any, X: FloatArray) -> None:
    """Warn of columns that look as if a transformer had learned from these rows."""
    lowest, highest = X.min(axis=0), X.max(axis=0)
    varies = highest > lowest
    if len(X) < 3 or not varies.any():
        return
    Z = X[:, varies]
    with np.errstate(over="ignore", invalid="ignore"):
        centred = (np.abs(Z.mean(axis=0)) <= 1e-10 * np.abs(Z).max(axis=0)).all()
    fractions = (lowest[varies] == 0) & (highest[varies] == 1)
    between = ((Z > 0) & (Z < 1)).any(axis=0)
    if centred or (fractions & between).all():
        what = "mean 0" if centred else "minimum 0 and maximum 1"
        warnings.warn(
            f"{type(estimator).__name__}: every column of X has {what}; if a "
            "transformer learned this from the training rows, the promise of "
            "method='full' is void. Leave it out (columns are put into units of their "
            "own), or put it inside: estimator=make_pipeline(...).",
            PrudentWarning,
            stacklevel=4,
        )


def coins(X: Any, key: bytes) -> FloatArray:
    """A uniform number for each row that depends on nothing but the row."""
    values = X if isinstance(X, np.ndarray) else np.asarray(X)
    if values.dtype.kind in "fiub":
        rows = np.ascontiguousarray(values, dtype=np.float64) + 0.0  # one zero
        return keyed_uniform((row.tobytes() for row in rows), key)
    return keyed_uniform((repr(row.tolist()).encode() for row in values), key)
