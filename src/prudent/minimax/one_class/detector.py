"""`MinimaxOutlierDetector`: one class from its mean and covariance."""

from __future__ import annotations

from numbers import Real
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import OutlierMixin
from sklearn.utils import check_random_state

from prudent._compat import Interval, StrOptions, fit_context, validate_data
from prudent.core.moments import ClassMoments
from prudent.core.rows import LocalRows, Split, hold_out
from prudent.core.types import FloatArray
from prudent.core.validation import shown
from prudent.estimator_tools import (
    HeldOutEstimator,
    MomentsMixin,
    RateMixin,
    check_rows,
    covariance_rule,
    refuse_dask,
    warn_constant_features,
)
from prudent.minimax.kernel import Span, span_of
from prudent.minimax.one_class.learn import learn
from prudent.minimax.pairwise import KERNEL_CONSTRAINTS, KernelMixin, TrainingKernel
from prudent.rules.rule import FalseAlarms, Rule
from prudent.rules.scores import CalibrationScores


class MinimaxOutlierDetector(
    KernelMixin, MomentsMixin, RateMixin, OutlierMixin, HeldOutEstimator
):
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
    kernel, gamma, degree, coef0, kernel_params
        As in MinimaxProbabilityClassifier.
    threshold : {"calibrated", "distribution_free"}, default="calibrated"
        An order statistic of the scores of held-out rows, or the threshold that
        holds for every law with the moments of all rows.
    calibration_size : float, default=0.3
        Share of the rows held out, in (0, 1); for "calibrated" only.
    confidence : float or None, default=None
        Probability, in (0, 1), over the held-out rows with which this very fit keeps
        the rate; None: the rate holds on average over training samples. For
        "calibrated" only.
    covariance, covariance_radius
        As in MinimaxProbabilityClassifier; the metric is S + rho I. With a kernel an
        ellipsoid needs rho > 0, since rows outside the span of the training rows would
        be infinitely far away.
    mean_radius, covariance_factor : float, default=0.0, 1.0
        As there, for "distribution_free".
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
        Features that take one value in the rows learned from, without those held out;
        they are ignored. Empty for a kernel, which uses every feature.
    rule_ : prudent.rules.rule.Rule
        What answers the scores of rows, and on what evidence; "calibrated" only.
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
    Guarantee, "calibrated": new rows exchangeable with the m held-out rows are
    rejected with probability at most k / (m + 1), the largest such number that is at
    most `false_alarm_rate`, on average over training samples; any law. The rate of
    one fit may lie above it: it is Beta(k, m + 1 - k). With `confidence` the fit
    itself keeps `false_alarm_rate` with this probability. "distribution_free": at most
    that rate under every law with the moments used, which are plug-in estimates after
    `fit`.

    References
    ----------
    Lanckriet et al. (2002), A robust minimax approach to classification, JMLR 3,
    sections 4 and 5.4, Theorems 4 and 7.

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
        "confidence": [Interval(Real, 0, 1, closed="neither"), None],
        "covariance": "no_validation",  # see `covariance_rule`
        "mean_radius": [Interval(Real, 0, None, closed="left")],
        "covariance_radius": [Interval(Real, 0, None, closed="left"), None],
        "covariance_factor": [Interval(Real, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        *,
        false_alarm_rate: float = 0.1,
        region: Literal["ellipsoid", "halfspace"] = "ellipsoid",
        kernel: Any = "linear",
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1.0,
        kernel_params: dict[str, Any] | None = None,
        threshold: Literal["calibrated", "distribution_free"] = "calibrated",
        calibration_size: float = 0.3,
        confidence: float | None = None,
        covariance: Any = "empirical",
        mean_radius: float = 0.0,
        covariance_radius: float | None = None,
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
        self.confidence = confidence
        self.covariance = covariance
        self.mean_radius = mean_radius
        self.covariance_radius = covariance_radius
        self.covariance_factor = covariance_factor
        self.random_state = random_state

    @fit_context
    def fit(self, X: Any, y: Any = None, groups: ArrayLike | None = None) -> Self:
        """Learn the region of one class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of the class; the kernel matrix for ``kernel="precomputed"``.
        y : ignored
        groups : array-like of shape (n_samples,), default=None
            Rows that belong together (of a patient, of a machine) have equal values;
            for "calibrated" only. Whole groups are held out, and one random row of
            each counts: the promise is about a random row of a new group.

        Returns
        -------
        self : MinimaxOutlierDetector
        """
        refuse_dask(X)
        self._check_settings()
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        if self._is_calibrated():
            random = check_random_state(self.random_state)
            return self._fit_held_out(X, None, random, groups)
        if groups is not None:
            raise ValueError(
                "`groups` are held out, which threshold='distribution_free' does not "
                "do: use threshold='calibrated'."
            )
        if self.kernel != "linear":
            self._kernel = TrainingKernel.from_estimator(self, X, np.arange(len(X)))
        self._fit_part(X, None)
        return self

    def _rows_needed_for(self) -> str | None:
        if self.threshold != "distribution_free":
            return f"threshold={self.threshold!r}"
        return super()._rows_needed_for()

    def _check_settings(self) -> None:
        """Raise ValueError for an ellipsoid that a kernel does not define."""
        covariance_rule(self.covariance)
        if self.confidence is not None and not self._is_calibrated():
            raise ValueError(
                f"`confidence` needs threshold='calibrated', got {self.threshold!r}, "
                "whose promise rests on moments and not on held-out rows."
            )
        if self.kernel == "linear" or self.region == "halfspace":
            return
        if self.threshold == "distribution_free" or self.kernel == "precomputed":
            raise ValueError(
                f"region='ellipsoid' with kernel={self.kernel!r} and threshold="
                f"{self.threshold!r} is undefined: use region='halfspace', or a named "
                "kernel with threshold='calibrated'."
            )
        if self.covariance_radius == 0:
            raise ValueError(
                "region='ellipsoid' with a kernel needs covariance_radius > 0, got "
                f"{shown(self.covariance_radius)}: rows outside the span of the "
                "training rows would be infinitely far away. Leave it at None, or use "
                "region='halfspace'."
            )

    def _hold_out(
        self,
        X: Any,
        random: np.random.RandomState,
        groups: NDArray[Any] | None,
        times: NDArray[Any] | None,
    ) -> Split:
        drawn = hold_out(len(X), self.calibration_size, random, groups, times)
        fit, held_out = np.sort(drawn[0]), np.sort(drawn[1])
        self._check_learnable(len(fit), len(X))
        if self.kernel != "linear":
            self._kernel = TrainingKernel.from_estimator(self, X, fit)
        return fit, held_out

    def _fit_part(self, X: Any, y: Any, random: Any = None, **given: Any) -> None:
        span = None
        if self.kernel != "linear":
            span = span_of(self._kernel.values(X))
            X = span.rows
        one_class = np.zeros(len(X), dtype=np.intp)
        rows = LocalRows.from_table(X, one_class)
        self._fit_rows(X, one_class, None, rows=rows, span=span)

    def _scores(self, X: Any, y: Any) -> CalibrationScores:
        scores = self._model.scores(*self._coordinates(np.asarray(X, np.float64)))
        return CalibrationScores.from_rows(scores)

    def _rule(self, scores: CalibrationScores) -> Rule:
        made = FalseAlarms(scores=scores, terms=self._terms)
        return made.rule(float(self.false_alarm_rate))

    def _adopt(self, rule: Rule) -> Self:
        (self.offset_,) = rule.thresholds
        if np.isinf(self.offset_):
            confidence = rule.guarantees[0].confidence
            self._say_nothing_is_rejected(self.n_calibration_, confidence)
        return super()._adopt(rule)

    def _check_learnable(self, n_fitted: int, n_rows: int) -> None:
        if n_fitted < 2:
            raise ValueError(
                f"calibration_size={shown(self.calibration_size)} leaves "
                f"{n_fitted} of n_samples={n_rows} rows to learn from, at least "
                "2 are needed: give more rows or a smaller share."
            )

    def _learn(
        self,
        moments: ClassMoments,
        *,
        given: bool = False,
        rows: LocalRows | None = None,
        span: Span | None = None,
    ) -> None:
        calibrated = self._is_calibrated()
        learned = learn(
            moments,
            rows,
            region=self.region,
            covariance=covariance_rule(self.covariance),
            mean_radius=self.mean_radius,
            covariance_radius=self.covariance_radius,
            covariance_factor=self.covariance_factor,
            false_alarm_rate=None if calibrated else self.false_alarm_rate,
            exact=given,
            span=span,
        )
        warn_constant_features(self, learned.constant)
        self.constant_features_ = learned.constant
        weights = learned.model.weights(moments.mean.shape[1])
        if span is None:
            self.moments_, self.means_ = moments, moments.mean
            self.covariances_ = learned.covariances
        if weights is not None:
            setattr(self, "coef_" if span is None else "dual_coef_", weights)
        self._model = learned.model
        if not calibrated:
            self.__dict__.pop("rule_", None)
            self.offset_, self.n_calibration_ = learned.offset, 0
            self.guarantees_ = learned.guarantees

    def _is_calibrated(self) -> bool:
        return bool(self.threshold == "calibrated")

    _holds_out_rows = _is_calibrated

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
        rows = check_rows(self, X)
        return self._model.scores(*self._coordinates(rows))

    def _coordinates(self, X: NDArray[Any]) -> tuple[NDArray[Any], FloatArray | None]:
        """What the model takes: rows, or their kernel values and own norms."""
        if self.kernel == "linear":
            return X, None
        needs_norms = self.region == "ellipsoid"
        return self._kernel.values(X), self._kernel.diagonal(X) if needs_norms else None
