"""Predictions of the minimax classifier from the planes between its classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.core.types import FloatArray
from prudent.estimator_tools import check_rows
from prudent.minimax.fitting import Outcome
from prudent.minimax.settings import kernel_columns

__all__ = ["DuelPredictionMixin"]


class DuelPredictionMixin:
    """Labels, scores, worst-case p-values and sets of a fitted classifier."""

    classes_: NDArray[Any]
    coef_: FloatArray
    dual_coef_: FloatArray
    intercept_: FloatArray
    confidence: float
    kernel: Any
    _outcome: Outcome

    def _scores(self, X: Any) -> FloatArray:
        """Scores a'z of every plane, (n, pairs)."""
        X = check_rows(self, X)
        if self.kernel == "linear":
            return X @ self.coef_.T
        return kernel_columns(self, X) @ self.dual_coef_.T

    def decision_function(self, X: Any) -> FloatArray:
        """Scores on which `predict` rests.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Two classes: a'z - b, >= 0 for `classes_[1]`. More: duels won plus a
            tie-break in (-1/2, 1/2), -inf for a class without rows.
        """
        margins = self._scores(X) + self.intercept_
        if len(self.classes_) == 2:
            return margins[:, 0]
        return self._for_all_columns(self._outcome.duels.votes(margins), -np.inf)

    def predict(self, X: Any) -> NDArray[Any]:
        """Class of each row: the winner of its duels.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        decision = self.decision_function(X)
        if decision.ndim == 1:
            return self.classes_[(decision >= 0).astype(np.intp)]
        return self.classes_[decision.argmax(axis=1)]

    def worst_case_p_values(self, X: Any) -> FloatArray:
        """Largest probability that any law with the moments of a class allows.

        For each class, a bound on the probability of a row at least as far towards
        the other classes. Not a posterior: the values of a row need not sum to 1.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            p = 1 / (1 + distance^2), with distance in standard deviations towards
            the other class, 0 on the near side of the mean; Bonferroni-corrected
            for more than two classes. 0 for a class without rows.
        """
        p = self._outcome.duels.p_values(self._scores(X))
        return self._for_all_columns(p, 0.0)

    def predict_set(self, X: Any, level: float | None = None) -> NDArray[np.bool_]:
        """Classes whose worst-case p-value exceeds `level`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        level : float, default=None
            In (0, 1); None is 1 - `confidence`. The set of a row misses its class
            with at most this probability, under every law with the class moments.

        Returns
        -------
        ndarray of bool, shape (n_samples, n_classes)
            The predicted class alone where no p-value exceeds `level`.

        Raises
        ------
        ValueError
            If `level` lies outside (0, 1).
        """
        level = 1 - self.confidence if level is None else level
        if not 0 < level < 1:
            raise ValueError(f"`level` must lie in (0, 1), got {level!r}.")
        sets = self.worst_case_p_values(X) > level
        empty = ~sets.any(axis=1)
        if empty.any():
            predicted = np.searchsorted(self.classes_, self.predict(X))
            sets[empty, predicted[empty]] = True
        return sets

    def _for_all_columns(self, values: FloatArray, unseen: float) -> FloatArray:
        if values.shape[1] == len(self.classes_):
            return values
        return self._outcome.for_all(values.T, unseen).T
