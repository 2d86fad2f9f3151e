"""`MinimaxProbabilityClassifier`: planes with a bound on the error of each class."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from prudent._compat import Interval, StrOptions, fit_context
from prudent.core.binomial import check_fraction
from prudent.core.classes import winner
from prudent.core.moments import ClassMoments
from prudent.core.rows import LocalRows, Rows
from prudent.core.types import BoolArray, FloatArray
from prudent.core.validation import shown
from prudent.estimator_tools import (
    MomentFitMixin,
    check_training,
    covariance_rule,
    warn_constant_features,
)
from prudent.exceptions import PrudentWarning
from prudent.minimax.certificate import Laws, least_favourable_rows, worst_moments
from prudent.minimax.classification.learn import Learned, learn
from prudent.minimax.curve import ParetoFrontier, pareto_frontier
from prudent.minimax.kernel import Span, landmark_span, span_of
from prudent.minimax.pairwise import KERNEL_CONSTRAINTS, KernelMixin, TrainingKernel


def _of_pairs(values: ArrayLike) -> Any:
    """One number for two classes, else an array with one number for each pair."""
    array = np.asarray(values, dtype=np.float64)
    return float(array[0]) if len(array) == 1 else array


def _is_linear(estimator: Any) -> bool:
    return bool(estimator.kernel == "linear")


class MinimaxProbabilityClassifier(
    KernelMixin, MomentFitMixin, ClassifierMixin, BaseEstimator
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
        weighting with `costs`, or their mean after weighting with `priors`, among the
        planes that leave neither mean on the wrong side. "cost" is a promise for the
        dearest class, not the least expected cost.
    costs : array-like of shape (n_classes, n_classes), default=None
        Rows are the truth. For ``objective="cost"`` only.
    priors : array-like of shape (n_classes,), default=None
        Class probabilities; None takes the class weights.
    covariance : {"empirical", "ledoit_wolf", "oas"}, float or estimator, \
default="empirical"
        A float a in [0, 1] shrinks to (1 - a) S + a diag(S).
    mean_radius : float or array-like of shape (n_classes,), default=0.0
        Mahalanobis radius nu >= 0 in which the class mean is known.
    covariance_radius : float, array-like of shape (n_classes,) or None, default=None
        Frobenius radius rho >= 0, in squared units of the features. None is 0 for a
        linear fit and 1e-3 of the mean of the kernel's diagonal for a kernel, most of
        which separate any rows at 0, as far as rounding lets them (`kappa_` may be
        infinite or `covariance_floor_` > 0, with a warning).
    covariance_factor : float or array-like of shape (n_classes,), default=1.0
        Factor gamma >= 1 by which the true covariance may exceed the given one.
    uncertainty : {None, "gaussian", "bootstrap"}, default=None
        Take the radii from the data: from the law of normal samples, so that the
        bounds hold with probability `confidence` over training rows of normal
        classes; or `covariance_radius` from resamples of at least 10 rows a class, with
        `mean_radius` from the chi-square law, which is approximate and promises
        nothing.
    confidence : float, default=0.95
        In (0, 1). Also the coverage of `predict_set` by default.
    bound : {"union", "exact"}, default="union"
        For more than two classes: add the bounds of the duels, or solve for the
        probability of losing any of them, which needs the extra ``prudent[solvers]``
        (after `fit` with an infinite `kappa_`, which promises nothing, the sum stays).
    laws : {"any", "unimodal"}, default="any"
        Laws that the bounds cover: any with the moments of a class, or those that are
        unimodal along the normal of each plane (their density rises to one peak and
        falls after it), which cuts a bound c = 1 / (1 + kappa^2) to 4 c / 9, or to
        (4 c - 1) / 3 where that is more. ``objective="minimax"`` gives the same planes
        for both; the other two weigh the errors of these laws.
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
        Largest error of each class under any of the `laws` with its moments.
    worst_case_accuracy_, worst_case_error_ : float
        One minus the largest class error, and that error; prior-weighted means for
        ``objective="mean"``.
    gaussian_accuracy_ : float, or ndarray of shape (n_pairs,)
        Phi(kappa): how often each class, or the worse of the two, would be right if
        they were normal with these moments.
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
        Features that take one value in all rows; their coefficients are 0. Empty for
        kernels, which use every feature.
    guarantees_ : tuple of Guarantee
        One bound on the error rate per class; with ``uncertainty="gaussian"`` that of
        normal classes. Empty for kernels, bootstrap radii, and
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
    Guarantee: under every one of the `laws` with the class means and covariances used,
    the error of class k is at most ``class_worst_case_error_[k]``. Without
    `uncertainty` the moments are plug-in estimates, and the bound is conditional on
    them. The bound is tight for two classes, a union bound for more. It is evaluated
    for the plane as it predicts, rounding included. Weights other than 0 and 1 remove
    the confidence.
    With ``uncertainty="gaussian"``, which assumes that the classes are normal, the
    promise is Phi(-kappa) of each plane, summed over the planes of a class: on the
    event that the radii hold, of probability `confidence`, a normal class lies beyond
    its plane with at most this probability. `class_worst_case_error_` stays the bound
    for every law within the radii.

    References
    ----------
    Lanckriet, El Ghaoui, Bhattacharyya, Jordan (2002). A robust minimax approach to
    classification. JMLR 3, 555-582.

    Mercadier, Strobel (2021). A one-sided Vysochanskii-Petunin inequality with
    financial applications. European Journal of Operational Research 295, 374-377.

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
        "covariance": "no_validation",  # see `covariance_rule`
        "mean_radius": [Real, "array-like"],
        "covariance_radius": [Real, "array-like", None],
        "covariance_factor": [Real, "array-like"],
        "uncertainty": [StrOptions({"gaussian", "bootstrap"}), None],
        "confidence": [Interval(Real, 0, 1, closed="neither")],
        "bound": [StrOptions({"union", "exact"})],
        "laws": [StrOptions({"any", "unimodal"})],
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
        objective: Literal["minimax", "cost", "mean"] = "minimax",
        costs: ArrayLike | None = None,
        priors: ArrayLike | None = None,
        covariance: Any = "empirical",
        mean_radius: ArrayLike = 0.0,
        covariance_radius: ArrayLike | None = None,
        covariance_factor: ArrayLike = 1.0,
        uncertainty: Literal["gaussian", "bootstrap"] | None = None,
        confidence: float = 0.95,
        bound: Literal["union", "exact"] = "union",
        laws: Laws = "any",
        on_degenerate: Literal["raise", "warn"] = "raise",
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
        self.laws = laws
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
        self._check_settings()
        X, y, weight = check_training(self, X, y, sample_weight)
        rows = span = None
        if self._rows_needed_for() is not None:
            X = X.astype(np.float64, copy=False)
            if self.kernel != "linear":
                span = self._span(X, sample_weight)
                X = span.rows
            rows = LocalRows.from_table(X, np.unique(y, return_inverse=True)[1], weight)
        return self._fit_rows(X, y, weight, rows=rows, span=span)

    def _rows_needed_for(self) -> str | None:
        if self.uncertainty == "bootstrap":
            return "uncertainty='bootstrap'"
        return super()._rows_needed_for()

    def _span(self, X: FloatArray, sample_weight: ArrayLike | None) -> Span:
        """Span coordinates of the training rows; keep what prediction needs."""
        kept = np.arange(len(X))
        if self.n_components is not None and self.n_components < len(X):
            random = check_random_state(self.random_state)
            kept = np.sort(random.choice(len(X), self.n_components, replace=False))
        self._kernel = TrainingKernel.from_estimator(self, X, kept, sample_weight)
        K = self._kernel.values(X)
        return span_of(K) if len(kept) == len(X) else landmark_span(K, K[kept])

    def _learn(
        self,
        moments: ClassMoments,
        rows: Rows | None = None,
        *,
        given: bool = False,
        span: Span | None = None,
    ) -> None:
        self._check_settings()
        learned = learn(
            moments,
            rows,
            objective=self.objective,
            costs=self.costs,
            priors=self.priors,
            covariance=covariance_rule(self.covariance),
            radii=(self.mean_radius, self.covariance_radius, self.covariance_factor),
            uncertainty=self.uncertainty,
            confidence=self.confidence,
            bound=self.bound,
            laws=self.laws,
            constant_if_coinciding=self.on_degenerate == "warn",
            exact=given,
            span=span,
            random=check_random_state(self.random_state),
        )
        self._warn(learned)
        self._model, self.classes_ = learned.model, moments.classes
        self.intercept_ = -learned.model.offsets
        duels = learned.duels
        self.kappa_ = _of_pairs([duel.kappa for duel in duels])
        nearer = [min(duel.class_kappa) for duel in duels]
        self.gaussian_accuracy_ = _of_pairs(ndtr(nearer))
        self.covariance_floor_ = _of_pairs([duel.floor for duel in duels])
        self.duality_gap_ = max(duel.gap for duel in duels)
        self.n_iter_ = max(duel.n_iter for duel in duels)
        self.class_worst_case_error_ = learned.errors
        self.worst_case_accuracy_ = learned.accuracy
        self.worst_case_error_ = 1 - learned.accuracy
        self.mean_radius_, self.covariance_radius_ = learned.radii[:2]
        self.covariance_factor_ = learned.radii[2]
        self.constant_features_ = learned.constant
        self.guarantees_ = learned.guarantees
        if span is None:
            self.moments_, self.coef_ = moments, learned.model.normals
            self.means_, self.covariances_ = moments.mean, learned.covariances
        else:
            self.dual_coef_ = learned.model.normals

    def _warn(self, learned: Learned) -> None:
        warn_constant_features(self, learned.constant)
        name = type(self).__name__
        for remark in learned.remarks:
            warnings.warn(f"{name}: {remark}", PrudentWarning, stacklevel=3)
        if learned.open_gap is not None:
            text = f"{name}: {learned.open_gap}"
            warnings.warn(text, ConvergenceWarning, stacklevel=3)

    def _check_settings(self) -> None:
        """Raise ValueError for settings that contradict each other."""
        covariance_rule(self.covariance)
        if self.uncertainty is not None:
            taken = {
                "kernel": "linear",
                "covariance": "empirical",
                "mean_radius": 0,
                "covariance_radius": 0,
                "covariance_factor": 1,
            }
            for name, neutral in taken.items():
                value = getattr(self, name)
                is_neutral = np.asarray(value, dtype=object) == neutral
                if value is not None and not np.all(is_neutral):
                    raise ValueError(
                        f"uncertainty={self.uncertainty!r} takes all radii from the "
                        f"empirical moments: leave `{name}` at {neutral!r}, got "
                        f"{shown(value)}."
                    )
        if self.laws != "any" and self.uncertainty == "gaussian":
            raise ValueError(
                "uncertainty='gaussian' assumes normal classes, which says more than "
                "laws='unimodal': leave one of them out."
            )
        if self.bound == "exact" and (
            self.uncertainty is not None or np.any(np.asarray(self.mean_radius))
        ):
            raise ValueError(
                "bound='exact' holds for known means: use bound='union' together with "
                f"mean_radius={shown(self.mean_radius)} and "
                f"uncertainty={self.uncertainty!r}."
            )
        if (self.objective == "cost") != (self.costs is not None):
            raise ValueError(
                "objective='cost' and `costs` go together, got "
                f"objective={shown(self.objective)} and costs={shown(self.costs)}."
            )

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
        rows = self._model_rows(X)
        return self._model.decision(rows)

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
        return self.classes_[winner(decision)]

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
        rows = self._model_rows(X)
        return self._model.p_values(rows)

    def predict_set(self, X: Any, level: float | None = None) -> BoolArray:
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
        self._check_two_classes("pareto_frontier")
        rho = self.covariance_radius_[:, None, None] * np.eye(self.n_features_in_)
        Sy, Sx = self.covariances_ + rho
        return pareto_frontier(self.means_[1] - self.means_[0], Sx, Sy, n_points)

    @available_if(_is_linear)
    def least_favourable(
        self, class_label: Any, n_samples: int, random_state: Any = None
    ) -> FloatArray:
        """Draw rows of a law, one of `laws`, under which a class errs most.

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
            with probability ``class_worst_case_error_``, or less where variance was
            added (`covariance_floor_`).

        Raises
        ------
        ValueError
            For an unknown label, more than two classes, or a class whose bound is 1,
            as its mean may lie on the wrong side, or that seems not to vary along the
            normal, so that the bound is 0 but for rounding.
        """
        self._check_two_classes("least_favourable")
        where: NDArray[np.intp] = np.flatnonzero(self.classes_ == class_label)
        if not len(where):
            raise ValueError(
                f"`class_label` must be one of {self.classes_.tolist()}, got "
                f"{shown(class_label)}."
            )
        k, a = int(where[0]), self.coef_[0]
        if self.class_worst_case_error_[k] >= 1:
            raise ValueError(
                "no rows are drawn where the bound is 0 or 1: that of class "
                f"{shown(class_label)} is 1."
            )
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
            laws=self.laws,
        )

    def _check_two_classes(self, method: str) -> None:
        check_is_fitted(self)
        if len(self.classes_) != 2:
            raise ValueError(
                f"`{method}` is defined for 2 classes, got {len(self.classes_)}."
            )
