"""Kernel values that an estimator keeps asking scikit-learn for."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels

from prudent._compat import Interval, StrOptions
from prudent.core.types import FloatArray, IntArray
from prudent.estimator_tools import check_rows, is_covariance_estimator

KERNEL_CONSTRAINTS: dict[str, list[Any]] = {
    "kernel": [StrOptions({*PAIRWISE_KERNEL_FUNCTIONS, "precomputed"}), callable],
    "gamma": [Interval(Real, 0, None, closed="left"), None],
    "degree": [Interval(Real, 0, None, closed="left")],
    "coef0": [Interval(Real, None, None, closed="neither")],
    "kernel_params": [dict, None],
}


class KernelMixin:
    """What estimators with a kernel and a covariance have in common."""

    kernel: Any
    covariance: Any
    _kernel: TrainingKernel

    def _rows_needed_for(self) -> str | None:
        if self.kernel != "linear":
            return f"kernel={self.kernel!r}"
        if is_covariance_estimator(self.covariance):
            return f"covariance={self.covariance!r}"
        return None

    def _moment_options(self) -> dict[str, Any]:
        return {"fourth": True} if self.covariance == "ledoit_wolf" else {}

    def _model_rows(self, X: Any) -> NDArray[Any]:
        """Validated rows, or their kernel values with the training rows."""
        X = check_rows(self, X)
        return X if self.kernel == "linear" else self._kernel.values(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags


@dataclass(frozen=True, slots=True, eq=False)
class TrainingKernel:
    """Kernel between any rows and the training rows that a fit keeps.

    Of a precomputed kernel, whose `rows` are None, `columns` stand for the rows kept.
    """

    metric: Any
    params: dict[str, Any]
    rows: FloatArray | None
    columns: IntArray

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: FloatArray,
        kept: IntArray,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Keep some of the training rows, which have a positive weight."""
        if estimator.kernel == "precomputed":
            return cls("precomputed", {}, None, _columns(X, sample_weight)[kept])
        if callable(estimator.kernel):
            params = estimator.kernel_params or {}
        else:
            names = ("gamma", "degree", "coef0")
            params = {name: getattr(estimator, name) for name in names}
        return cls(estimator.kernel, params, X[kept], kept)

    def values(self, X: FloatArray) -> FloatArray:
        """Kernel values of rows with those kept, (n, m)."""
        if self.rows is not None:
            return self._between(X, self.rows)
        # A copy of a large matrix costs as much as an eighth of its fit.
        return X if len(self.columns) == X.shape[1] else X[:, self.columns]

    def diagonal(self, X: FloatArray) -> FloatArray:
        """Kernel value of each row with itself, (n,)."""
        small = [X[i : i + 64] for i in range(0, len(X), 64)]
        return np.concatenate([np.diag(self._between(b, b)) for b in small])

    def _between(self, X: FloatArray, Y: FloatArray) -> FloatArray:
        if self.metric == "rbf" and len(Y):
            # Squared distances as scikit-learn has them lose the digits of an offset.
            origin = Y[:1].astype(np.float64)
            X, Y = X - origin, Y - origin
        values: FloatArray = pairwise_kernels(
            X, Y, metric=self.metric, filter_params=True, **self.params
        ).astype(np.float64, copy=False)
        if not np.isfinite(values).all():
            raise ValueError(
                "kernel values of some rows are not finite: rescale the columns."
            )
        return values


def _columns(K: FloatArray, sample_weight: ArrayLike | None) -> IntArray:
    """Columns of a square kernel matrix whose rows have a positive weight."""
    n_rows = len(K) if sample_weight is None else len(np.asarray(sample_weight))
    if K.shape[1] != n_rows:
        raise ValueError(
            "a precomputed kernel must be square in `fit`, got shape "
            f"{(n_rows, K.shape[1])}."
        )
    if sample_weight is None:
        return np.arange(n_rows)
    return np.flatnonzero(np.asarray(sample_weight) > 0)
