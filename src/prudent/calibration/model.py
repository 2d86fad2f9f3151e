"""The calibrated rule: rows in, scores, posteriors and decisions out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp, softmax

from prudent.calibration.families import Family
from prudent.core.classes import spread_over_classes
from prudent.core.types import BoolArray, FloatArray, IntArray

#: Log joints that differ by less than this share are told apart by rounding alone.
_ROUNDING = 1e-11


@dataclass(frozen=True, eq=False)
class Model:
    """Everything that a prediction needs.

    Rows are those of the family before it prepares them: numbers (m, d), level codes
    (m, J), or both.
    """

    family: Family
    parameters: Any  # of the classes with rows
    seen: BoolArray  # classes with rows; the others were declared and may come yet
    costs: FloatArray | None = None  # (n_classes, n_classes), rows the true class

    def log_joint(self, rows: Any) -> FloatArray:
        """Log h(x, k) up to a constant of the row, shape (m, n_classes)."""
        prepared = prepare(self.family, rows)
        scores = np.asarray(self.family.log_joint(prepared, self.parameters))
        return spread_over_classes(scores, self.seen, -np.inf)

    def scores(self, rows: Any) -> FloatArray:
        """What decides, (m, n_classes): log joints, with costs minus expected costs.

        The expected cost of predicting b is sum_a h(a | x) C[a, b]. Scores that differ
        by rounding are made equal, so that the answer to a row does not depend on the
        rows it comes with: the first of them is predicted.
        """
        scores = self.log_joint(rows)
        if self.costs is not None:
            scores = -softmax(scores, axis=1) @ self.costs
        peak = scores.max(axis=1, keepdims=True)
        size = 1.0 + np.abs(peak) if self.costs is None else np.abs(self.costs).max()
        return np.where(scores >= peak - _ROUNDING * size, peak, scores)

    def decide(self, rows: Any) -> IntArray:
        """Class of each row, the first of those with the largest score."""
        return self.scores(rows).argmax(axis=1)

    def decision(self, rows: Any) -> FloatArray:
        """What the estimator's `decision_function` answers.

        Returns
        -------
        ndarray of shape (m,) or (m, n_classes)
            Two classes: difference of the scores, second less first. More: minus the
            expected costs, or the log posteriors. Scores of a family with coefficients
            stay linear in the row, so that they differ from log posteriors by a
            constant of the row.
        """
        scores = self.scores(rows)
        if len(self.seen) == 2:
            return scores[:, 1] - scores[:, 0]
        if self.costs is not None:
            return scores
        if hasattr(self.family, "coefficients"):
            return scores - scores[:, self.seen].mean(axis=1, keepdims=True)
        return scores - logsumexp(scores, axis=1, keepdims=True)

    def coefficients(self) -> tuple[FloatArray, FloatArray] | None:
        """Slopes and intercepts of the decision in the units of X, if it is linear.

        Returns
        -------
        slopes : ndarray of shape (1, n_features) or (n_classes, n_features)
            Of two classes the difference; of more, less their mean. None unless linear.
        intercepts : ndarray of shape (1,) or (n_classes,)
        """
        if not hasattr(self.family, "coefficients"):
            return None
        slopes, intercepts = self.family.coefficients(self.parameters)
        if len(slopes) == 2:
            return np.diff(slopes, axis=0), np.diff(intercepts)
        return slopes - slopes.mean(axis=0), intercepts - intercepts.mean()

    def log_density(self, rows: Any) -> FloatArray:
        """Log density of each row over all classes, in the units of X, (m,)."""
        family: Any = self.family
        return logsumexp(
            family.log_density(prepare(family, rows), self.parameters), axis=1
        )

    def posteriors(self, rows: Any) -> FloatArray:
        """h(k | x), shape (m, n_classes)."""
        return softmax(self.log_joint(rows), axis=1)

    def learned(self) -> dict[str, Any]:
        """Parameters of all declared classes, by the name of the fitted attribute.

        A class without rows has 0 everywhere.
        """
        if not hasattr(self.family, "learned"):
            return {}
        shared = _SHARED if getattr(self.family, "tied", False) else ()

        def spread(name: str, value: Any) -> Any:
            if isinstance(value, list):
                return [spread(name, part) for part in value]
            if name in shared:
                return value
            return spread_over_classes(value, self.seen, 0.0, axis=0)

        parameters = self.family.learned(self.parameters)
        return {name: spread(name, value) for name, value in parameters.items()}


#: What tied families learn once for all classes.
_SHARED = ("covariances_", "variances_")


def prepare(family: Family, rows: Any) -> Any:
    """Rows as the methods of `family` take them, by its `prepare` if it has one."""
    return family.prepare(rows) if hasattr(family, "prepare") else rows
