"""The calibrated rule: rows in, scores, posteriors and decisions out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp, softmax

from prudent.calibration.families import Family
from prudent.calibration.losses import class_scores
from prudent.core.classes import spread_over_classes
from prudent.core.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Model:
    """Everything that a prediction needs.

    Rows are those of the family before it prepares them: numbers (m, d), level codes
    (m, J), or both.

    Attributes
    ----------
    family : Family
    parameters : object
        Of the classes with rows.
    seen : ndarray of bool, shape (n_classes,)
        Classes with rows; the others were declared and have not come yet.
    costs : ndarray of shape (n_classes, n_classes) or None
        Rows the true class.
    """

    family: Family
    parameters: Any
    seen: BoolArray
    costs: FloatArray | None = None

    def log_joint(self, rows: Any) -> FloatArray:
        """Log h(x, k) up to a constant of the row, shape (m, n_classes)."""
        prepared = prepare(self.family, rows)
        scores = np.asarray(self.family.log_joint(prepared, self.parameters))
        return spread_over_classes(scores, self.seen, -np.inf)

    def scores(self, rows: Any) -> FloatArray:
        """What decides: log joints, with costs minus the expected costs."""
        return class_scores(self.log_joint(rows), self.costs)

    def decide(self, rows: Any) -> IntArray:
        """Class of each row, the first of those with the largest score."""
        return self.scores(rows).argmax(axis=1)

    def log_density(self, rows: Any) -> FloatArray:
        """Log density of each row over all classes, in the units of X, (m,)."""
        prepared = prepare(self.family, rows)
        densities = self.family.log_density(prepared, self.parameters)  # type: ignore[attr-defined]
        return logsumexp(densities, axis=1)

    def posteriors(self, rows: Any) -> FloatArray:
        """h(k | x), shape (m, n_classes)."""
        return softmax(self.log_joint(rows), axis=1)

    def learned(self) -> dict[str, Any]:
        """Parameters by the name of the fitted attribute; 0 for classes to come."""
        if not hasattr(self.family, "learned"):
            return {}
        shared = _SHARED if getattr(self.family, "tied", False) else ()

        def spread(name: str, value: Any) -> Any:
            if isinstance(value, list):
                return [spread(name, part) for part in value]
            if name in shared:
                return value
            return spread_over_classes(value, self.seen, 0.0, axis=0)

        found = self.family.learned(self.parameters)
        return {name: spread(name, value) for name, value in found.items()}


#: What tied families learn once for all classes.
_SHARED = ("covariances_", "variances_")


def prepare(family: Family, rows: Any) -> Any:
    """Rows as the methods of `family` take them."""
    return family.prepare(rows) if hasattr(family, "prepare") else rows
