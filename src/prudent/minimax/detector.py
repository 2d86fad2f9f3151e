"""`MinimaxOutlierDetector`: one class from its mean and covariance."""

from __future__ import annotations

import warnings
from functools import partial
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if

from prudent._compat import Interval, StrOptions, fit_context, validate_data
from prudent.core.binomial import mean_rank
from prudent.core.distances import MahalanobisFactors
from prudent.core.guarantee import Guarantee
from prudent.core.moments import ClassMoments
from prudent.estimator_tools import (
    check_rows,
    constant_features,
    refuse_dask,
    warn_constant_features,
)
from prudent.exceptions import DegenerateDataError, PrudentWarning
from prudent.minimax.kernel import DEFAULT_KERNEL_RADIUS, span_of
from prudent.minimax.one_class import Ellipsoid, HalfSpace, halfspace
from prudent.minimax.promises import (
    Ground,
    calibrated_false_alarm_guarantee,
    moment_false_alarm_guarantee,
)
from prudent.minimax.settings import (
    COVARIANCE_CONSTRAINTS,
    KERNEL_CONSTRAINTS,
    class_covariances,
    kept_columns,
    kernel_columns,
    kernel_diagonal,
    moment_options,
    rows_needed_for_covariance,
)

__all__ = ["MinimaxOutlierDetector"]

FloatArray = NDArray[np.float64]
SOURCES = {
    "halfspace": "Lanckriet et al. 2002, Theorem 4",
    "ellipsoid": "multivariate Chebyshev inequality",
}


def _rows_needed_for(estimator: Any) -> str | None:
    if estimator.threshold != "distribution_free":
        return f"threshold={estimator.threshold!r}"
    if estimator.kernel != "linear":
        return f"kernel={estimator.kernel!r}"
    return rows_needed_for_covariance(estimator.covariance)


def _one_part(X: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
    return [(X, np.ones(len(X)))]


def _needs_no_rows(estimator: Any) -> bool:
    parameter = _rows_needed_for(estimator)
    if parameter is not None:
        raise AttributeError(
            f"MinimaxOutlierDetector with {parameter} needs the rows: use `fit`."
        )
    return True


class MinimaxOutlierDetector(OutlierMixin, BaseEstimator):
    """Outlier detector from the mean and covariance of one class.

    The region is an ellipsoid around the mean, or the paper's half-space away from
    the origin. Its size is calibrated on held-out rows, or holds for every law with
    these moments, which is far more cautious. Use it as a fast, transparent first
    detector; do not use it for classes of several clusters (see LowDensityRejector).

    Parameters
    ----------
    false_alarm_rate : float, default=0.1
        Largest share of rows of the class to reject, in (0, 1).
    region : {"ellipsoid", "halfspace"}, default="ellipsoid"
        Score rows by minus their Mahalanobis distance, or by w'z with w = S^-1 m:
        the half-space that excludes the origin.
    kernel : str or callable, default="linear"
        As in MinimaxProbabilityClassifier.
    gamma, degree, coef0 : float, default=None, 3, 1.0
        Parameters of the named kernels; `gamma` None is 1 / n_features.
    kernel_params : dict, default=None
        Keyword arguments of a callable kernel.
    threshold : {"calibrated", "distribution_free"}, default="calibrated"
        An order statistic of the scores of held-out rows, or the threshold that
        holds for every law with the moments of all rows.
    calibration_size : float, default=0.3
        Share of the rows held out, in (0, 1); for "calibrated" only.
    covariance : {"empirical", "ledoit_wolf", "oas"}, float or estimator, \
default="empirical"
        A float a in [0, 1] shrinks to (1 - a) S + a diag(S).
    mean_radius : float, default=0.0
        Mahalanobis radius nu >= 0 of the mean; for "distribution_free".
    covariance_radius : float, default=0.0
        rho >= 0: the metric is S + rho I, in squared units of the features. 0 for a
        kernel means 1e-3 of the mean of the kernel's diagonal.
    covariance_factor : float, default=1.0
        gamma >= 1: the covariance may be gamma times larger; for
        "distribution_free".
    random_state : int, RandomState or None, default=None
        For the choice of the held-out rows.

    Attributes
    ----------
    offset_ : float
        Rows with a score below it are outliers; -inf when no row is.
    n_calibration_ : int
        Number of held-out rows, 0 for "distribution_free".
    means_, covariances_ : ndarray of shape (1, n), (1, n, n)
        Moments used, before any radius; linear fits only.
    coef_ : ndarray of shape (1, n_features)
        w of the half-space; linear fits only.
    dual_coef_ : ndarray of shape (1, n_fit_rows)
        Weights of the kernel columns of the half-space; kernel fits only.
    moments_ : ClassMoments
        Statistics of the rows used; linear fits only.
    constant_features_ : ndarray of int
        Features that take one value in all rows; they are ignored.
    guarantees_ : tuple of Guarantee
        The false-alarm rate. Empty for a kernel with "distribution_free".

    Raises
    ------
    SingularCovarianceError
        If the covariance is singular.
    InfeasibleError
        If no half-space that excludes the origin keeps the rate.
    ValueError
        If settings contradict each other, or there are too few rows.

    Notes
    -----
    Guarantee, "calibrated": new rows exchangeable with the training rows are rejected
    with probability at most `false_alarm_rate`, on average over the held-out rows;
    any law. "distribution_free": at most that rate under every law with the moments
    used, which are plug-in estimates after `fit`.

    References
    ----------
    Lanckriet et al. (2002), A robust minimax approach to classification, JMLR 3,
    section 6, Theorems 4 and 7.

    Examples
    --------
    >>> import numpy as np
    >>> from prudent import MinimaxOutlierDetector
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> detector = MinimaxOutlierDetector(random_state=0).fit(X)
    >>> detector.predict([[0.0, 0.0], [9.0, 9.0]])
    array([ 1, -1])
    >>> detector.n_calibration_
    90
    """

    _parameter_constraints = {
        **KERNEL_CONSTRAINTS,
        "false_alarm_rate": [Interval(Real, 0, 1, closed="neither")],
        "region": [StrOptions({"ellipsoid", "halfspace"})],
        "threshold": [StrOptions({"calibrated", "distribution_free"})],
        "calibration_size": [Interval(Real, 0, 1, closed="neither")],
        "covariance": COVARIANCE_CONSTRAINTS,
        "mean_radius": [Interval(Real, 0, None, closed="left")],
        "covariance_radius": [Interval(Real, 0, None, closed="left")],
        "covariance_factor": [Interval(Real, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        *,
        false_alarm_rate: float = 0.1,
        region: str = "ellipsoid",
        kernel: Any = "linear",
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1.0,
        kernel_params: dict[str, Any] | None = None,
        threshold: str = "calibrated",
        calibration_size: float = 0.3,
        covariance: Any = "empirical",
        mean_radius: float = 0.0,
        covariance_radius: float = 0.0,
        covariance_factor: float = 1.0,
        random_state: Any = None,
    ) -> None:
        self.false_alarm_rate = false_alarm_rate
        self.region = region
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.threshold = threshold
        self.calibration_size = calibration_size
        self.covariance = covariance
        self.mean_radius = mean_radius
        self.covariance_radius = covariance_radius
        self.covariance_factor = covariance_factor
        self.random_state = random_state

    @fit_context
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the region of one class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of the class; the kernel matrix for ``kernel="precomputed"``.
        y : ignored

        Returns
        -------
        self : MinimaxOutlierDetector
        """
        refuse_dask(X)
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        self._check_kernel()
        fitted, held = self._split(len(X))
        if self.kernel == "linear":
            zeros = np.zeros(len(fitted), dtype=np.intp)
            options = moment_options(self.covariance)
            moments = ClassMoments.from_arrays(X[fitted], zeros, **options)
            parts = partial(_one_part, X[fitted])
            covariances = class_covariances(self.covariance, moments, parts)
            self._learn(moments, covariances, "plug-in")
        else:
            self._learn_kernel(X, fitted)
        if self.threshold == "calibrated":
            self._calibrate(X[held])
        return self

    @available_if(_needs_no_rows)
    def fit_moments(self, moments: ClassMoments) -> Self:
        """Learn the region from the moments of one class.

        Parameters
        ----------
        moments : ClassMoments
            Moments with one class; ``moments.pooled()`` makes one of several.

        Returns
        -------
        self : MinimaxOutlierDetector
        """
        self._validate_params()
        if len(moments.classes) != 1:
            raise ValueError(
                f"`moments` must hold one class, got {len(moments.classes)}; use "
                "`moments.pooled()` or `moments.select([label])`."
            )
        self.n_features_in_ = moments.mean.shape[1]
        self._learn(moments, class_covariances(self.covariance, moments), "plug-in")
        return self

    @classmethod
    def from_moments(
        cls,
        means: ArrayLike,
        covariances: ArrayLike,
        counts: ArrayLike,
        classes: ArrayLike | None = None,
        **params: Any,
    ) -> Self:
        """Learn the region from a published mean and covariance, without rows.

        Parameters
        ----------
        means : array-like of shape (1, n_features)
            Class mean.
        covariances : array-like of shape (1, n_features, n_features)
            Class covariance, used as given.
        counts : array-like of shape (1,)
            Rows behind it.
        classes : array-like of shape (1,), default=None
            Label of the class.
        **params
            Constructor parameters, with ``threshold="distribution_free"``.

        Returns
        -------
        detector : MinimaxOutlierDetector
        """
        detector = cls(**params)
        parameter = _rows_needed_for(detector)
        if parameter is not None:
            raise ValueError(
                f"MinimaxOutlierDetector.from_moments: {parameter} needs the rows; set "
                "threshold='distribution_free' and kernel='linear', or use `fit`."
            )
        detector._validate_params()
        moments = ClassMoments.from_covariances(means, covariances, counts, classes)
        if len(moments.classes) != 1:
            raise ValueError(
                f"one class is needed, got means of {len(moments.classes)} classes."
            )
        detector.n_features_in_ = moments.mean.shape[1]
        covariances = class_covariances(detector.covariance, moments)
        detector._learn(moments, covariances, "given")
        return detector

    def _check_kernel(self) -> None:
        if self.kernel == "linear" or self.region == "halfspace":
            return
        if self.threshold == "distribution_free" or self.kernel == "precomputed":
            raise ValueError(
                f"region='ellipsoid' with kernel={self.kernel!r} and threshold="
                f"{self.threshold!r} is undefined: use region='halfspace', or a named "
                "kernel with threshold='calibrated'."
            )

    def _split(self, n_rows: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Rows to learn from and rows held out for the threshold."""
        if self.threshold == "distribution_free":
            self.n_calibration_ = 0
            return np.arange(n_rows), np.empty(0, dtype=np.intp)
        self.n_calibration_ = max(1, round(self.calibration_size * n_rows))
        if n_rows - self.n_calibration_ < 2:
            raise ValueError(
                f"calibration_size={self.calibration_size!r} leaves "
                f"{n_rows - self.n_calibration_} of n_samples={n_rows} rows to learn "
                "from, at least 2 are needed: give more rows or a smaller share."
            )
        order = check_random_state(self.random_state).permutation(n_rows)
        held, fitted = np.split(order, [self.n_calibration_])
        return np.sort(fitted), np.sort(held)

    def _learn(
        self, moments: ClassMoments, covariances: FloatArray, ground: Ground
    ) -> None:
        """Learn the region from one class's moments in feature space."""
        constant = constant_features(moments)
        self._kept = np.setdiff1d(np.arange(moments.mean.shape[1]), constant)
        if not len(self._kept):
            raise DegenerateDataError(
                "MinimaxOutlierDetector: all rows are equal, so no region is defined; "
                "give rows that vary."
            )
        warn_constant_features(self, constant)
        self.moments_, self.constant_features_ = moments, constant
        self.means_, self.covariances_ = moments.mean, covariances
        self._set_region(
            moments.mean[:, self._kept],
            moments.mean_lo[:, self._kept],
            covariances[:, self._kept[:, None], self._kept],
            self.covariance_radius,
        )
        if isinstance(self._region, HalfSpace):
            self.coef_ = np.zeros((1, moments.mean.shape[1]))
            self.coef_[0, self._kept] = self._region.weights
        if self.threshold == "distribution_free":
            self._set_free_threshold(ground)

    def _learn_kernel(self, X: FloatArray, fitted: NDArray[np.intp]) -> None:
        """Learn the region in the span of the fitted rows."""
        if self.kernel == "precomputed":
            self._columns = kept_columns(X, None)[fitted]
        else:
            self._rows = X[fitted]
        span = span_of(kernel_columns(self, X[fitted]))
        moments = ClassMoments.from_arrays(
            span.rows,
            np.zeros(len(fitted), dtype=np.intp),
            **moment_options(self.covariance),
        )
        parts = partial(_one_part, span.rows)
        covariances = class_covariances(self.covariance, moments, parts)
        # Without a radius every direction outside the span would be impossible.
        rho = self.covariance_radius or DEFAULT_KERNEL_RADIUS * span.mean_diagonal
        self._span = span
        self.constant_features_ = np.empty(0, dtype=np.intp)
        self._set_region(moments.mean, moments.mean_lo, covariances, rho)
        if isinstance(self._region, HalfSpace):
            self.dual_coef_ = span.dual(self._region.weights[None])
        if self.threshold == "distribution_free":
            self._set_free_threshold("plug-in")

    def _set_region(
        self,
        mean: FloatArray,
        mean_lo: FloatArray,
        covariances: FloatArray,
        rho: float,
    ) -> None:
        S = covariances + rho * np.eye(mean.shape[1])
        if self.region == "halfspace":
            self._region: HalfSpace | Ellipsoid = halfspace(mean[0], S[0])
        else:
            factors = MahalanobisFactors.from_covariances(mean, S, means_lo=mean_lo)
            self._region = Ellipsoid(factors, rho)

    def _set_free_threshold(self, ground: Ground) -> None:
        radii = self.mean_radius, self.covariance_factor
        self.offset_ = self._region.threshold(self.false_alarm_rate, *radii)
        self.guarantees_: tuple[Guarantee, ...] = ()
        if self.kernel == "linear":
            with_radii = self.mean_radius > 0 or self.covariance_factor > 1
            self.guarantees_ = moment_false_alarm_guarantee(
                self.false_alarm_rate,
                ground,
                with_radii or self.covariance_radius > 0,
                SOURCES[self.region],
            )

    def _calibrate(self, held: FloatArray) -> None:
        scores = np.sort(self._scores(held))
        rank = mean_rank(len(scores), self.false_alarm_rate)
        if rank == 0:
            warnings.warn(
                f"MinimaxOutlierDetector: {len(scores)} held-out rows are too few for "
                f"false_alarm_rate={self.false_alarm_rate:g}, so no row is an outlier: "
                "give more rows or a larger calibration_size.",
                PrudentWarning,
                stacklevel=3,
            )
        self.offset_ = float(scores[rank - 1]) if rank else -np.inf
        self.guarantees_ = calibrated_false_alarm_guarantee(
            self.false_alarm_rate, len(scores)
        )

    def _scores(self, X: FloatArray) -> FloatArray:
        if self.kernel == "linear":
            return self._region.scores(X[:, self._kept])
        coordinates = self._span.coordinates(kernel_columns(self, X))
        if self.region == "halfspace":
            return self._region.scores(coordinates)
        inside = np.einsum("ij,ij->i", coordinates, coordinates)
        return self._region.scores(coordinates, kernel_diagonal(self, X) - inside)

    def score_samples(self, X: Any) -> FloatArray:
        """Score of each row: the lower, the more unusual.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Minus the Mahalanobis distance, or w'z.
        """
        return self._scores(check_rows(self, X))

    def decision_function(self, X: Any) -> FloatArray:
        """Score minus `offset_`, >= 0 for inliers, of shape (n_samples,)."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> NDArray[np.intp]:
        """1 for inliers, -1 for outliers, of shape (n_samples,)."""
        return np.where(self.decision_function(X) >= 0, 1, -1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags
