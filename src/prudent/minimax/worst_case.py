"""What the worst laws do to a plane between two classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from prudent.core.types import FloatArray
from prudent.minimax.least_favourable import least_favourable_rows, worst_moments
from prudent.minimax.solver import ParetoFrontier, pareto_frontier

__all__ = ["WorstCaseMixin"]


def _is_linear(estimator: Any) -> bool:
    return bool(estimator.kernel == "linear")


class WorstCaseMixin:
    """Trade-offs and least favourable laws of a linear fit of two classes."""

    classes_: NDArray[Any]
    coef_: FloatArray
    intercept_: FloatArray
    means_: FloatArray
    covariances_: FloatArray
    mean_radius_: FloatArray
    covariance_radius_: FloatArray
    covariance_factor_: FloatArray
    n_features_in_: int

    @available_if(_is_linear)
    def pareto_frontier(self, n_points: int = 101) -> ParetoFrontier:
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
        check_is_fitted(self)
        k, l = self._two_classes("pareto_frontier")
        rho = self.covariance_radius_[:, None, None] * np.eye(self.n_features_in_)
        covariances = self.covariances_ + rho
        return pareto_frontier(
            self.means_[l] - self.means_[k], covariances[l], covariances[k], n_points
        )

    @available_if(_is_linear)
    def least_favourable(
        self, class_label: Any, n_samples: int, random_state: Any = None
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
        check_is_fitted(self)
        self._two_classes("least_favourable")
        where = np.flatnonzero(self.classes_ == class_label)
        if not len(where):
            raise ValueError(
                f"`class_label` must be one of {self.classes_.tolist()}, got "
                f"{class_label!r}."
            )
        k = int(where[0])
        a = self.coef_[0]
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

    def _two_classes(self, method: str) -> tuple[int, int]:
        if len(self.classes_) != 2:
            raise ValueError(
                f"`{method}` is defined for 2 classes, got {len(self.classes_)}."
            )
        return 0, 1
