"""What the two minimax estimators do alike: kernels, covariances, checked settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.covariance import EmpiricalCovariance
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels

from prudent._compat import Interval, StrOptions
from prudent.core.moments import ClassMoments
from prudent.core.types import FloatArray

COVARIANCE_CONSTRAINTS: list[Any] = [
    StrOptions({"empirical", "ledoit_wolf", "oas"}),
    Interval(Real, 0, 1, closed="both"),
    EmpiricalCovariance,
]
KERNEL_CONSTRAINTS: dict[str, list[Any]] = {
    "kernel": [StrOptions({*PAIRWISE_KERNEL_FUNCTIONS, "precomputed"}), callable],
    "gamma": [Interval(Real, 0, None, closed="left"), None],
    "degree": [Interval(Real, 0, None, closed="left")],
    "coef0": [Interval(Real, None, None, closed="neither")],
    "kernel_params": [dict, None],
}


def kernel_columns(estimator: Any, X: FloatArray) -> FloatArray:
    """Kernel values between rows and what an estimator keeps of its training rows."""
    if estimator.kernel == "precomputed":
        return X[:, estimator._columns]
    return kernel_matrix(estimator, X, estimator._rows)


def kernel_diagonal(estimator: Any, X: FloatArray) -> FloatArray:
    """Kernel value of each row with itself."""
    small = [X[i : i + 64] for i in range(0, len(X), 64)]
    return np.concatenate([np.diag(kernel_matrix(estimator, b, b)) for b in small])


def kernel_matrix(estimator: Any, X: FloatArray, Y: FloatArray) -> FloatArray:
    """Kernel values between rows; `X` itself for ``kernel="precomputed"``."""
    if estimator.kernel == "precomputed":
        return X
    if callable(estimator.kernel):
        params = estimator.kernel_params or {}
    else:
        params = {
            name: getattr(estimator, name) for name in ("gamma", "degree", "coef0")
        }
    return pairwise_kernels(
        X, Y, metric=estimator.kernel, filter_params=True, **params
    ).astype(np.float64, copy=False)


def kept_columns(K: FloatArray, sample_weight: ArrayLike | None) -> NDArray[np.intp]:
    """Columns of a precomputed kernel whose rows have a positive weight.

    Raises
    ------
    ValueError
        If the kernel matrix is not square.
    """
    n_rows = len(K) if sample_weight is None else len(np.asarray(sample_weight))
    if K.shape[1] != n_rows:
        raise ValueError(
            "a precomputed kernel must be square in `fit`, got shape "
            f"{(n_rows, K.shape[1])}."
        )
    if sample_weight is None:
        return np.arange(n_rows)
    return np.flatnonzero(np.asarray(sample_weight) > 0)


def rows_needed_for_covariance(covariance: Any) -> str | None:
    """Name the setting when moments do not suffice for it."""
    if isinstance(covariance, EmpiricalCovariance):
        return f"covariance={covariance!r}"
    return None


def moment_options(covariance: Any) -> dict[str, Any]:
    """Options of `ClassMoments.from_arrays` that a covariance setting relies on."""
    return {"fourth": True} if covariance == "ledoit_wolf" else {}


def class_covariances(
    covariance: Any,
    moments: ClassMoments,
    rows_by_class: Callable[[], Iterable[tuple[FloatArray, FloatArray]]] | None = None,
) -> FloatArray:
    """Covariance of each class, (K, n, n), by name, shrinkage or estimator.

    A covariance estimator of scikit-learn is fitted to the rows of each class; it
    takes no weights, so whole numbers are repeated and others are refused.
    """
    if covariance == "empirical":
        # Moments of rows are semidefinite: nothing to check, singular ones are fine.
        return moments.scatter / moments.weight[:, None, None]
    if isinstance(covariance, str):
        return moments.covariance(covariance)  # type: ignore[arg-type]
    if isinstance(covariance, Real):
        return moments.covariance(shrinkage=float(covariance))
    if rows_by_class is None:
        raise ValueError(f"covariance={covariance!r} needs the rows of each class.")
    fitted = []
    for part, w in rows_by_class():
        repetitions = w.astype(np.intp)
        if (repetitions != w).any():
            raise ValueError(
                f"covariance={covariance!r} takes no sample weights: give whole "
                "numbers, or choose 'empirical', 'oas' or 'ledoit_wolf'."
            )
        repeated = np.repeat(part, repetitions, axis=0)
        fitted.append(clone(covariance).fit(repeated).covariance_)
    return np.stack(fitted)


def per_class(name: str, value: ArrayLike, n_classes: int, least: float) -> FloatArray:
    """One setting as an array of one value per class, each finite and >= `least`.

    Raises
    ------
    ValueError
        If it is neither one number nor one per class, or a value is out of range.
    """
    values = np.asarray(value, dtype=np.float64)
    if values.shape not in ((), (n_classes,)):
        raise ValueError(
            f"`{name}` must be one number or one per class, {n_classes}, got an "
            f"array of shape {values.shape}."
        )
    if not (np.isfinite(values).all() and (values >= least).all()):
        raise ValueError(f"`{name}` must be finite and >= {least:g}, got {value!r}.")
    return np.array(np.broadcast_to(values, n_classes))
