"""What a fitted classifier answers: classes, and what the worst laws do to them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from prudent.core.binomial import check_fraction
from prudent.core.types import BoolArray, FloatArray
from prudent.minimax.classification.model import winner
from prudent.minimax.curve import ParetoFrontier, pareto_frontier
from prudent.minimax.least_favourable import least_favourable_rows, worst_moments


def _is_linear(estimator: Any) -> bool:
    return bool(estimator.kernel == "linear")


class MinimaxAnswers:
    """Classes, worst-case p-values, sets; trade-offs and worst laws if linear."""

    def decision_function(self: Any, X: Any) -> FloatArray:
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
        rows = self._model_rows(X)
        return self._model.decision(rows)

    def predict(self: Any, X: Any) -> NDArray[Any]:
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
        return self.classes_[winner(decision)]

    def worst_case_p_values(self: Any, X: Any) -> FloatArray:
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
        rows = self._model_rows(X)
        return self._model.p_values(rows)

    def predict_set(self: Any, X: Any, level: float | None = None) -> BoolArray:
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
        check_fraction("level", level)
        rows = self._model_rows(X)
        return self._model.sets(rows, level)

    @available_if(_is_linear)
    def pareto_frontier(self: Any, n_points: int = 101) -> ParetoFrontier:
        """Best trade-offs between the worst-case errors of two classes.

        Parameters
        ----------
        n_points : int, default=101
            Points on the curve, >= 2, evenly spaced in its parameter s.

        Returns
        -------
        ParetoFrontier
            `s`, `kappas` and `errors`, columns in the order of `classes_`. Includes
            the additive covariance radius, not the other two.

        Raises
        ------
        ValueError
            For more than two classes, or fewer than two points.
        """
        self._check_two_classes("pareto_frontier")
        rho = self.covariance_radius_[:, None, None] * np.eye(self.n_features_in_)
        Sy, Sx = self.covariances_ + rho
        return pareto_frontier(self.means_[1] - self.means_[0], Sx, Sy, n_points)

    @available_if(_is_linear)
    def least_favourable(
        self: Any, class_label: Any, n_samples: int, random_state: Any = None
    ) -> FloatArray:
        """Draw rows of a law that attains the bound on the error of a class.

        Parameters
        ----------
        class_label : object
            One of `classes_`.
        n_samples : int
            Number of rows.
        random_state : int, RandomState or None, default=None
            Source of the draw.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Rows with exactly `means_` and `covariances_` of the class (the worst
            moments within its radii, if there are any) that `predict` gets wrong
            with probability ``class_worst_case_error_``.

        Raises
        ------
        ValueError
            For an unknown label, more than two classes, or a class that no law makes
            err.
        """
        self._check_two_classes("least_favourable")
        where: NDArray[np.intp] = np.flatnonzero(self.classes_ == class_label)
        if not len(where):
            raise ValueError(
                f"`class_label` must be one of {self.classes_.tolist()}, got "
                f"{class_label!r}."
            )
        k, a = int(where[0]), self.coef_[0]
        mean, covariance = worst_moments(
            a if k == 1 else -a,
            self.means_[k],
            self.covariances_[k],
            self.mean_radius_[k],
            self.covariance_radius_[k],
            self.covariance_factor_[k],
        )
        return least_favourable_rows(
            a,
            -float(self.intercept_[0]),
            mean,
            covariance,
            n_samples,
            check_random_state(random_state),
            positive=k == 1,
        )

    def _check_two_classes(self: Any, method: str) -> None:
        check_is_fitted(self)
        if len(self.classes_) != 2:
            raise ValueError(
                f"`{method}` is defined for 2 classes, got {len(self.classes_)}."
            )
