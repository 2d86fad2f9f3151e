"""Rows on their way into the estimators, whatever holds them."""

from __future__ import annotations

import warnings
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import ThreadpoolController

from prudent._compat import validate_data
from prudent.core.coins import keyed_uniform
from prudent.core.holdout import HeldOut, one_row_per_group
from prudent.core.types import FloatArray
from prudent.estimator_tools import check_groups, hold_out_rows, refuse_dask
from prudent.exceptions import PrudentWarning


def training_rows(estimator: Any, X: Any) -> Any:
    """Validated training rows; a wrapped estimator judges values and types itself."""
    refuse_dask(X)
    if estimator.estimator is None:
        return validate_data(estimator, X, dtype=np.float64)
    return _rows_of_another(estimator, X, reset=True)


def new_rows(estimator: Any, X: Any) -> Any:
    """Validated rows to answer for."""
    check_is_fitted(estimator)
    refuse_dask(X)
    if estimator.estimator is None:
        return validate_data(estimator, X, dtype=np.float64, reset=False)
    return _rows_of_another(estimator, X, reset=False)


def _rows_of_another(estimator: Any, X: Any, *, reset: bool) -> Any:
    if hasattr(X, "columns"):  # a data frame: names and types are kept
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        return X
    return validate_data(estimator, X, dtype=None, ensure_all_finite=False, reset=reset)


def hold_out_or_all(
    estimator: Any, X: Any, random: np.random.RandomState, groups: ArrayLike | None
) -> HeldOut:
    """Rows to fit and rows to rank; all rank where the estimator is frozen."""
    if not isinstance(estimator.estimator, FrozenEstimator):
        values = X if isinstance(X, np.ndarray) else np.asarray(X)
        share = estimator.calibration_size
        return hold_out_rows(estimator, values, share, random, groups)
    ranking = np.arange(len(X))
    if groups is not None:
        ranking = one_row_per_group(check_groups(groups, len(X)), random)
    return HeldOut(np.empty(0, dtype=np.intp), ranking)


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


def one_blas_thread() -> AbstractContextManager[Any]:
    """One thread for small products: threads that wait cost up to 40 times as much."""
    return _controller().limit(limits=1, user_api="blas")


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()
