"""Covariances of scaled classes, from moments or, where a rule asks, from rows."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from prudent.core.moments import ClassMoments
from prudent.exceptions import PrudentWarning
from prudent.imprecise.covariance import (
    ClassCovariances,
    Scatter,
    class_covariances,
    invertible,
)
from prudent.imprecise.fitting import ScaledClasses

__all__ = ["TrainingRows", "find_covariances", "warn_repairs"]

FloatArray = NDArray[np.float64]


class TrainingRows(NamedTuple):
    """Rows behind the moments, for the settings that moments do not suffice for."""

    X: NDArray[Any]  # (n, n_features)
    codes: NDArray[np.intp]  # (n,) class numbers
    weight: FloatArray | None  # (n,)

    def ranges(self) -> FloatArray:
        """Largest less smallest value of every feature."""
        return np.ptp(self.X, axis=0).astype(np.float64)

    def scaled_moments(self, classes: ScaledClasses) -> ClassMoments:
        """Moments up to the fourth of the scaled rows, each about its class mean."""
        centred = classes.standardise(self.X, self.codes)
        return ClassMoments.from_rows(
            centred, self.codes, len(classes.mean), self.weight, fourth=True
        )


def find_covariances(
    covariance_type: str,
    covariance: Any,
    classes: ScaledClasses,
    rows: TrainingRows | None,
) -> ClassCovariances:
    """Apply the setting `covariance`, in scaled units.

    Raises
    ------
    ValueError
        If a covariance estimator meets sample weights.
    DegenerateDataError
        If there is nothing to estimate a covariance from.
    """
    if covariance_type == "identity":
        none = np.empty(0, dtype=np.intp)
        identity = np.eye(len(classes.scale))[None]
        return ClassCovariances(identity, "identity", pooled=none, floored=none)
    if rows is not None and hasattr(covariance, "fit"):
        return _by_estimator(covariance_type, covariance, classes, rows)
    fourth = None
    if rows is not None and covariance == "ledoit_wolf":
        fourth = rows.scaled_moments(classes).fourth
    scatter = Scatter.of_classes(classes.weight, classes.scatter, fourth)
    return class_covariances(scatter, covariance_type, covariance)


def _by_estimator(
    covariance_type: str, estimator: Any, classes: ScaledClasses, rows: TrainingRows
) -> ClassCovariances:
    name = type(estimator).__name__
    if rows.weight is not None:
        raise ValueError(
            f"covariance={name}() takes no sample weights: fit without "
            '`sample_weight`, or use a named rule such as covariance="oas".'
        )
    centred = classes.standardise(rows.X, rows.codes)

    def fitted(part: FloatArray) -> FloatArray:
        return np.asarray(clone(estimator).fit(part).covariance_, dtype=np.float64)

    if covariance_type == "tied":
        matrices = fitted(centred)[None]
    else:
        size = centred.shape[1]
        matrices = np.zeros((len(classes.mean), size, size))
        for k in np.flatnonzero(classes.weight > 1):
            matrices[k] = fitted(centred[rows.codes == k])
    return invertible(
        matrices, lambda: fitted(centred), name, diagonal=covariance_type == "diag"
    )


def warn_repairs(name: str, found: ClassCovariances, labels: NDArray[Any]) -> None:
    """Say which classes have a covariance that is not the rule's own."""
    if len(found.pooled):
        warnings.warn(
            f"{name}: class(es) {labels[found.pooled].tolist()} have no covariance of "
            "their own (one row, or equal rows) and use the pooled one.",
            PrudentWarning,
            stacklevel=2,
        )
    if len(found.floored):
        which = labels if len(found.matrices) == len(labels) else np.array(["all"])
        warnings.warn(
            f"{name}: singular covariance of class(es) "
            f"{which[found.floored].tolist()}; eigenvalues were raised to 1e-9 of the "
            'largest, so sets will be large. Use covariance="auto".',
            PrudentWarning,
            stacklevel=2,
        )
