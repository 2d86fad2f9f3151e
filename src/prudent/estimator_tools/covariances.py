"""The setting `covariance=` of every estimator, and what is said of repairs."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from prudent.core.covariance import ClassCovariances, CovarianceRule
from prudent.core.types import FloatArray
from prudent.exceptions import PrudentWarning


@dataclass(frozen=True, slots=True)
class FittedCovariance:
    """A covariance estimator as a plain function from rows to their covariance."""

    estimator: Any

    def __repr__(self) -> str:
        return repr(self.estimator)

    @property
    def __name__(self) -> str:
        return type(self.estimator).__name__

    def __call__(self, rows: FloatArray) -> FloatArray:
        return np.asarray(clone(self.estimator).fit(rows).covariance_, dtype=np.float64)


def covariance_rule(
    covariance: Any,
    names: Sequence[str] = ("empirical", "ledoit_wolf", "oas"),
    *,
    parameter: str = "covariance",
) -> CovarianceRule:
    """The setting `covariance=` as the mathematics takes it: name, number, function.

    `names` are those that the family knows; any estimator with `fit` and `covariance_`
    becomes a function. The message names the `parameter`.
    """
    if isinstance(covariance, str):
        if covariance in names:
            return covariance
    elif isinstance(covariance, Real):
        if 0 <= float(covariance) <= 1:
            return float(covariance)
    elif is_covariance_estimator(covariance):
        return FittedCovariance(covariance)
    raise ValueError(
        f"`{parameter}` must be one of {list(names)}, a number in [0, 1] or a "
        f"covariance estimator with `fit`, got {covariance!r}."
    )


def is_covariance_estimator(covariance: Any) -> bool:
    """Whether a setting `covariance=` needs the rows of each class in one place."""
    return callable(getattr(covariance, "fit", None))


def warn_repairs(estimator: Any, found: ClassCovariances, labels: NDArray[Any]) -> None:
    """Say which classes have a covariance that is not the rule's own."""
    name = type(estimator).__name__
    classes = labels.tolist() if len(found.matrices) == len(labels) else ["all"]

    def warn(text: str) -> None:
        warnings.warn(f"{name}: {text}", PrudentWarning, stacklevel=3)

    for k, features in found.floored_features:
        warn(
            f"class {classes[k]!r}: {len(features)} feature(s) constant inside the "
            "class (see `floored_features_`); their variance there is set to 1e-9 of "
            "that over all rows."
        )
    if len(found.pooled):
        warn(
            f"class(es) {[classes[k] for k in found.pooled]} have no covariance of "
            "their own (one row, or equal rows) and use the pooled one."
        )
    raised = np.flatnonzero(found.n_floored)
    if len(raised):
        warn(
            f"singular or ill conditioned covariance of class(es) "
            f"{[classes[k] for k in raised]} (condition number "
            f"{found.condition[raised].max():.2g}); eigenvalues were raised to "
            f"{found.floor:.1g} of the largest. Remove redundant features, or shrink, "
            "for example with covariance='ledoit_wolf'."
        )
