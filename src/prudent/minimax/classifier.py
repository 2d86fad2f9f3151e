"""`MinimaxProbabilityClassifier`: planes with a bound on the error of each class."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state

from prudent._compat import Interval, StrOptions, fit_context
from prudent.core.moments import ClassMoments
from prudent.core.types import FloatArray
from prudent.estimator_tools import MomentFitMixin, check_training
from prudent.minimax.fitting import (
    Outcome,
    check_settings,
    learn_moments,
    learn_rows,
    learn_span,
)
from prudent.minimax.kernel import Span, landmark_span, span_of
from prudent.minimax.prediction import DuelPredictionMixin
from prudent.minimax.settings import (
    COVARIANCE_CONSTRAINTS,
    KERNEL_CONSTRAINTS,
    kept_columns,
    kernel_columns,
    moment_options,
    rows_needed_for_covariance,
)
from prudent.minimax.worst_case import WorstCaseMixin

__all__ = ["MinimaxProbabilityClassifier"]


class MinimaxProbabilityClassifier(
    DuelPredictionMixin,
    WorstCaseMixin,
    MomentFitMixin,
    ClassifierMixin,
    BaseEstimator,
):
    """Linear or kernel classifier with the best worst-case accuracy.

    Only the mean and covariance of each class are used. Among all planes it takes
    the one whose accuracy is highest under the worst law with these moments, and
    says how high. Use it when a bound per class matters more than the last percent
    of accuracy, or when only summary statistics exist; do not use it when classes
    differ in spread rather than in mean.

    Parameters
    ----------
    kernel : str or callable, default="linear"
        "linear", a name of :func:`sklearn.metrics.pairwise.pairwise_kernels`, a
        function of two rows, or "precomputed".
    gamma, degree, coef0 : float, default=None, 3, 1.0
        Parameters of the named kernels; `gamma` None is 1 / n_features.
    kernel_params : dict, default=None
        Keyword arguments of a callable kernel.
    n_components : int, default=None
        Number of landmarks drawn from the training rows for a kernel (Nystroem);
        None uses all rows.
    objective : {"minimax", "cost", "mean"}, default="minimax"
        Minimise the larger of the two worst-case class errors, the larger after
        weighting with `costs`, or their mean after weighting with `priors`.
    costs : array-like of shape (n_classes, n_classes), default=None
        Rows are the truth. For ``objective="cost"`` only.
    priors : array-like of shape (n_classes,), default=None
        Class probabilities; None takes the class weights.
    covariance : {"empirical", "ledoit_wolf", "oas"}, float or estimator, \
default="empirical"
        A float a in [0, 1] shrinks to (1 - a) S + a diag(S).
    mean_radius : float or array-like of shape (n_classes,), default=0.0
        Mahalanobis radius nu >= 0 in which the class mean is known.
    covariance_radius : float or array-like of shape (n_classes,), default=0.0
        Frobenius radius rho >= 0, in squared units of the features. 0 for a kernel
        means 1e-3 of the mean of the kernel's diagonal.
    covariance_factor : float or array-like of shape (n_classes,), default=1.0
        Factor gamma >= 1 by which the true covariance may exceed the given one.
    uncertainty : {None, "gaussian", "bootstrap"}, default=None
        Take the radii from the data: from the law of normal samples, so that the
        bounds hold with probability `confidence` over training rows of normal
        classes, or from resamples of at least 10 rows a class, which is approximate
        and promises nothing.
    confidence : float, default=0.95
        In (0, 1). Also the coverage of `predict_set` by default.
    bound : {"union", "exact"}, default="union"
        For more than two classes: add the bounds of the duels, or solve for the
        exact one, which needs the extra ``prudent[solvers]``.
    on_degenerate : {"raise", "warn"}, default="raise"
        For classes with the same mean: raise, or predict the heavier one.
    random_state : int, RandomState or None, default=None
        For landmarks and bootstrap resamples.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels; everything per class is in their order.
    coef_ : ndarray of shape (n_pairs, n_features)
        Normals, scaled so that the means of a pair lie 1 apart; linear fits only.
    intercept_ : ndarray of shape (n_pairs,)
        Minus the offsets. Pairs k < l in lexicographic order, `classes_[l]` positive.
    dual_coef_ : ndarray of shape (n_pairs, n_train) or (n_pairs, n_components)
        Weights of the kernel columns; kernel fits only.
    kappa_ : float, or ndarray of shape (n_pairs,)
        Standard deviations between plane and means in the worst case.
    class_worst_case_error_ : ndarray of shape (n_classes,)
        Largest error of each class under any law with its moments.
    worst_case_accuracy_, worst_case_error_ : float
        One minus the largest class error, and that error; prior-weighted means for
        ``objective="mean"``.
    gaussian_accuracy_ : float, or ndarray of shape (n_pairs,)
        Accuracy if the classes were normal with these moments: Phi(kappa).
    duality_gap_ : float
        Certified distance of the largest gap from the optimal kappa.
    covariance_floor_ : float, or ndarray of shape (n_pairs,)
        Share of each feature's variance (the mean of the two classes') that was added
        to both covariances, because they are so nearly singular that rounding would
        decide the plane: 0 (mostly), 1e-8, 1e-6, 1e-4 or 1e-2.
    means_, covariances_ : ndarray
        Class moments used, before any radius or floor; linear fits only.
    mean_radius_, covariance_radius_, covariance_factor_ : ndarray of (n_classes,)
        Radii used.
    moments_ : ClassMoments
        What was learned from the rows; linear fits only.
    n_iter_ : int
        Largest number of solver steps of a pair.
    constant_features_ : ndarray of int
        Features that take one value in all rows; their coefficients are 0.
    guarantees_ : tuple of Guarantee
        One bound on the error rate per class. Empty for kernels, bootstrap radii, and
        when an estimated direction without variance separates the classes; without
        the classes that seem not to vary along a normal.

    Raises
    ------
    DegenerateDataError
        If two class means coincide and ``on_degenerate="raise"``.
    ValueError
        If the settings contradict each other or the data, or a column is so large or
        so small that its squares over- or underflow.

    Notes
    -----
    Guarantee: under every law with the class means and covariances used, the error of
    class k is at most ``class_worst_case_error_[k]``. Without `uncertainty` the
    moments are plug-in estimates, and the bound is conditional on them. The bound is
    tight for two classes, a union bound for more. It is evaluated for the plane as it
    predicts, rounding included. Weights other than 0 and 1 remove the confidence.

    References
    ----------
    Lanckriet, El Ghaoui, Bhattacharyya, Jordan (2002). A robust minimax approach to
    classification. JMLR 3, 555-582.

    Examples
    --------
    >>> import prudent
    >>> model = prudent.MinimaxProbabilityClassifier.from_moments(
    ...     means=[[-1, 0], [1, 2]],
    ...     covariances=[[[1, -0.3], [-0.3, 3]], [[2, 0.5], [0.5, 1]]],
    ...     counts=[100, 100],
    ...     classes=["ill", "well"],
    ... )
    >>> round(model.worst_case_accuracy_, 4)
    0.5276
    >>> model.predict([[0.5, 1.0], [-2.0, 0.0]])
    array(['well', 'ill'], dtype='<U4')
    """

    _parameter_constraints = {
        **KERNEL_CONSTRAINTS,
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "objective": [StrOptions({"minimax", "cost", "mean"})],
        "costs": ["array-like", None],
        "priors": ["array-like", None],
        "covariance": COVARIANCE_CONSTRAINTS,
        "mean_radius": [Real, "array-like"],
        "covariance_radius": [Real, "array-like"],
        "covariance_factor": [Real, "array-like"],
        "uncertainty": [StrOptions({"gaussian", "bootstrap"}), None],
        "confidence": [Interval(Real, 0, 1, closed="neither")],
        "bound": [StrOptions({"union", "exact"})],
        "on_degenerate": [StrOptions({"raise", "warn"})],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        *,
        kernel: Any = "linear",
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1.0,
        kernel_params: dict[str, Any] | None = None,
        n_components: int | None = None,
        objective: str = "minimax",
        costs: ArrayLike | None = None,
        priors: ArrayLike | None = None,
        covariance: Any = "empirical",
        mean_radius: ArrayLike = 0.0,
        covariance_radius: ArrayLike = 0.0,
        covariance_factor: ArrayLike = 1.0,
        uncertainty: str | None = None,
        confidence: float = 0.95,
        bound: str = "union",
        on_degenerate: str = "raise",
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.n_components = n_components
        self.objective = objective
        self.costs = costs
        self.priors = priors
        self.covariance = covariance
        self.mean_radius = mean_radius
        self.covariance_radius = covariance_radius
        self.covariance_factor = covariance_factor
        self.uncertainty = uncertainty
        self.confidence = confidence
        self.bound = bound
        self.on_degenerate = on_degenerate
        self.random_state = random_state

    @fit_context
    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Find the planes between every two classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; the kernel matrix among them for ``kernel="precomputed"``.
        y : array-like of shape (n_samples,)
            Class labels, at least two.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights >= 0, read as repetitions.

        Returns
        -------
        self : MinimaxProbabilityClassifier
        """
        check_settings(self)
        X, y, weight = check_training(self, X, y, sample_weight)
        if self._rows_needed_for() is None:
            self._fit_rows(X, y, weight)
            return self
        X = X.astype(np.float64, copy=False)
        self.classes_ = np.unique(y)
        if self.kernel == "linear":
            outcome = learn_rows(self, X, y, weight)
            self._store(outcome)
            self.moments_ = outcome.evidence.moments
        else:
            span = self._span(X, sample_weight)
            outcome = learn_span(self, span, y, weight)
            self._store(outcome)
            self.dual_coef_ = span.dual(outcome.normals)
        self._declared_classes, self._solved = None, True
        return self

    def _rows_needed_for(self) -> str | None:
        if self.kernel != "linear":
            return f"kernel={self.kernel!r}"
        if self.uncertainty == "bootstrap":
            return "uncertainty='bootstrap'"
        return rows_needed_for_covariance(self.covariance)

    def _moment_options(self) -> dict[str, Any]:
        return moment_options(self.covariance)

    def _learn(self, moments: ClassMoments, *, given: bool = False) -> None:
        check_settings(self)
        repeats = not self._has_plain_weights
        outcome = learn_moments(self, moments, given=given, repeats=repeats)
        self.classes_, self.moments_ = moments.classes, moments
        self._store(outcome)

    def _span(self, X: FloatArray, sample_weight: ArrayLike | None) -> Span:
        """Span coordinates of the training rows; keep what prediction needs."""
        chosen = np.arange(len(X))
        if self.n_components is not None and self.n_components < len(X):
            random = check_random_state(self.random_state)
            chosen = np.sort(random.choice(len(X), self.n_components, replace=False))
        if self.kernel == "precomputed":
            self._columns = kept_columns(X, sample_weight)[chosen]
        else:
            self._rows = X[chosen]
        K = kernel_columns(self, X)
        return span_of(K) if len(chosen) == len(X) else landmark_span(K, K[chosen])

    def _store(self, outcome: Outcome) -> None:
        evidence, duels = outcome.evidence, outcome.duels.duels
        kappa = np.array([duel.kappa for duel in duels])
        binary = len(evidence.seen) == 2
        self._outcome = outcome
        self.intercept_ = -outcome.duels.offsets
        self.kappa_ = float(kappa[0]) if binary else kappa
        self.gaussian_accuracy_ = float(ndtr(kappa[0])) if binary else ndtr(kappa)
        self.duality_gap_ = max(duel.gap for duel in duels)
        self.n_iter_ = max(duel.n_iter for duel in duels)
        self.class_worst_case_error_ = outcome.for_all(outcome.errors, 1.0)
        self.worst_case_accuracy_ = outcome.accuracy
        self.worst_case_error_ = 1 - outcome.accuracy
        self.mean_radius_ = outcome.for_all(evidence.radii.mean)
        self.covariance_radius_ = outcome.for_all(evidence.radii.covariance)
        self.covariance_factor_ = outcome.for_all(evidence.radii.factor, 1.0)
        self.covariance_floor_ = float(outcome.floors[0]) if binary else outcome.floors
        self.constant_features_ = evidence.constant
        self.guarantees_ = outcome.guarantees
        if self.kernel == "linear":
            self.coef_ = outcome.normals
            self.means_ = outcome.for_all(evidence.moments.mean)
            self.covariances_ = outcome.for_all(evidence.covariances)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags
