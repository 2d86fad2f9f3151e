"""The estimator: validate, learn, keep what was learned."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import check_cv
from sklearn.utils import check_array, check_random_state, check_X_y
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from prudent._compat import (
    CallbackSupportMixin,
    Interval,
    StrOptions,
    fit_context,
    validate_data,
)
from prudent.calibration.ascent import StepRule
from prudent.calibration.categorical import MixedRows
from prudent.calibration.families import Family, PriorStrengths, Statistics
from prudent.calibration.learn import FAMILY_NAMES, FamilySettings, Learned, learn
from prudent.calibration.model import Model
from prudent.calibration.objective import Trial
from prudent.calibration.promises import error_promise
from prudent.calibration.reading import (
    Columns,
    NumberReader,
    Reader,
    first_reader,
    recoded,
    row_keys,
    seen_levels,
)
from prudent.calibration.stopping import dealt_folds
from prudent.calibration.stream import Stream, classes_after
from prudent.core.classes import check_two_classes, class_costs
from prudent.core.guarantee import Guarantee
from prudent.core.rows import Block, LocalRows, Rows
from prudent.core.types import BoolArray, FloatArray, IntArray
from prudent.estimator_tools import (
    check_groups,
    frame_columns,
    hold_out_rows,
    refuse_dask,
    warn_constant_features,
)

_ABOVE_0 = Interval(Real, 0, None, closed="neither")
_AT_LEAST_0 = Interval(Real, 0, None, closed="left")
_AT_LEAST_1 = Interval(Integral, 1, None, closed="left")


def _learns_statistics(estimator: Any) -> bool:
    if estimator.method == "gd":
        raise AttributeError(
            "method='gd' has no statistics to add up: use `fit`, or method='rc'."
        )
    return True


def _has_density(estimator: Any) -> bool:
    if not isinstance(estimator.family, str) or estimator.method == "gd":
        raise AttributeError(
            "only the built-in families have a density, and method='gd' has none."
        )
    return True


def _can_be_sampled(estimator: Any) -> bool:
    if estimator.family == "mixed":
        raise AttributeError("rows of family='mixed' need the types of a data frame.")
    return _has_density(estimator)


class RiskCalibratedClassifier(CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    """Closed-form classifier whose statistics are calibrated to explain the labels.

    Start from the closed-form fit of a probabilistic classifier (naive Bayes,
    discriminant analysis, ...) and move its *statistics*: raise those of the true
    class, lower those of the class the model believes in. The result is a valid
    member of the family, but trained to classify. Use it where a simple generative
    model is wanted and misspecified; rich families on few rows overfit, which the
    default `stopping="cv"` guards against at six times the cost of one fit.

    Also known as risk-based calibration, RC.

    Parameters
    ----------
    family : {"full", "tied", "diag", "tied_diag", "categorical", "mixed"} or Family, \
default="full"
        Gaussian classes with a covariance each ("full", QDA), a shared one ("tied",
        LDA), variances each ("diag", Gaussian naive Bayes) or shared ("tied_diag",
        the paper's logistic regression); categorical naive Bayes; "mixed" treats
        the text, categorical and boolean columns of a data frame as categorical and
        the others as Gaussian; or any object with the methods of `Family`.
    learning_rate : float, default=0.1
        Step lr > 0 of s <- s + lr G. Free of scale.
    max_iter : int, default=64
        Number of evaluations of the model, the start and rejected steps included;
        1 is the closed-form fit.
    stopping : {"cv", "holdout", "train", "none"}, default="cv"
        Which iterate is kept: number of updates by inner cross-validation of the
        error (of the cost, with `costs`); least error on held-out rows, which gives
        a guarantee; least training error (the paper); or the last.
    cv : int, splitter or iterable of (train, test) positions, default=5
        Folds of `stopping="cv"`. An int deals the distinct rows of each class round
        robin, so that equal rows share a fold.
    validation_fraction : float, default=0.2
        Share in (0, 1) of the rows (or groups) that `stopping="holdout"` draws,
        rounded up.
    guard : {"halve", "freeze"}, default="halve"
        What keeps the statistics valid: halve the step of the class at fault, or
        the paper's rule, keep the old value (single counts of categorical features,
        otherwise the whole update).
    line_search : bool, default=True
        Reject an update that raises the objective and halve lr.
    step : {"fixed", "adaptive"}, default="fixed"
        "adaptive": after each accepted step lr <- min(1.2 lr, 4 `learning_rate`,
        1 / (1 + `generative_weight`)).
    loss : {"log", "zero_one"}, default="log"
        "zero_one": the stochastic error 1 - h(y | x); bounded influence of a row,
        but barely moves confidently wrong ones.
    costs : array-like of shape (n_classes, n_classes), default=None
        costs[a, b] is the cost of predicting b when a is true. Overrides `loss` by
        the expected cost, and `predict` minimises it.
    generative_weight : float, default=0.0
        Weight lambda >= 0 of the joint log-likelihood beside the conditional one.
    class_prior_strength, mean_prior_strength : float, default=0.0
        Shrinkage m0 of the class probabilities towards equal ones and m1 of the means
        towards the overall mean, in equivalent numbers of rows.
    covariance_prior_strength : float or "auto", default="auto"
        Shrinkage m2 of covariances towards the overall variances, in rows; "auto" is
        1, and 1 + 0.1 n_features for "full".
    mean_prior : array-like of shape (n_features,), default=None
        Means towards which m1 shrinks, in the units of `X`; None is the overall mean.
    covariance_prior : array-like of shape (n_features, n_features) or \
(n_features,), default=None
        Covariances, or variances alone, towards which m2 shrinks, in the units of
        `X`; None is the overall variances.
    level_prior_strength : float or array-like, default=1.0
        Pseudo counts a of a categorical feature, spread over its levels; one number
        or one per categorical feature.
    batch_size : int, default=None
        Rows behind each step; the curves are always of all rows. None takes all.
    init : {"closed_form", "random"}, default="closed_form"
        Where to start: from the labels, or from random soft labels.
    n_init : int, default=1
        Starts with `init="random"`, of which the best is kept: by the stopping rule
        with "train" and "holdout", else by the training log loss. A promise pays for
        all of them.
    method : {"rc", "gd", "tm", "dfe"}, default="rc"
        Calibration, or one of the baselines: gradient descent on softmax regression
        from the closed-form start ("tied", "tied_diag" only); the TM algorithm, RC
        with lr = 1, no shrinkage and no line search; or the discriminative frequency
        estimate, which raises the statistics of the true class only.
    random_state : int, RandomState instance or None, default=None
        Of folds, hold-out and batches; None draws them afresh in every `fit`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels in sorted order.
    family_ : Family
        The family with its centre and scale.
    priors_ : ndarray of shape (n_classes,)
        Class probabilities.
    means_ : ndarray of shape (n_classes, n_features)
        Means of a Gaussian family, in the units of `X`.
    covariances_ : ndarray
        Of "full" (n_classes, n_features, n_features) or "tied" (n_features,
        n_features).
    variances_ : ndarray
        Of "diag" (n_classes, n_features) or "tied_diag" (n_features,).
    level_probabilities_ : list of ndarray of shape (n_classes, n_levels)
        Of each categorical feature.
    statistics_ : list of ndarray
        Kept statistics, in standardised units, leading axis n_classes.
    best_iteration_ : int
        Accepted updates of the kept iterate.
    n_iter_ : int
        Evaluations, those rejected by the line search included.
    coef_, intercept_ : ndarray of shape (n_classes, n_features), (n_classes,)
        Of "tied" and "tied_diag", in the units of `X`: the decision function is
        `X @ coef_.T + intercept_`. With two classes of shape (1, n_features), (1,).
    loss_curve_, error_curve_, objective_curve_, learning_rate_curve_ : ndarray
        Mean training log loss, training error, mean of 1 - h(y | x) (with `costs` of
        the expected cost) and lr after 0, 1, ... accepted updates; after
        `partial_fit`, of each batch before its step.
    n_frozen_ : int
        Updates in which some block or count did not take its full step.
    constant_features_ : ndarray of int
        Features that are ignored because they take one value.
    guarantees_ : tuple of Guarantee
        Bound on the error rate with `stopping="holdout"`; weights other than 0 and 1
        take the confidence away and with it the promise.

    See Also
    --------
    prudent.plots.CalibrationPathDisplay : Draws the curves.

    Notes
    -----
    With G = sum_i (Y_i - H_i) psi(x_i), Y the one-hot labels and H the posteriors,
    s <- s + lr G is mirror ascent of the conditional log-likelihood with the
    log-partition function as mirror map, because s / n is the mean parameter of the
    exponential family. Fixed points are conditional maximum likelihood: logistic
    regression on x ("tied", "tied_diag"), on (x, x^2) ("diag"), on all monomials of
    degree two ("full"). Cost of an evaluation: O(n d^2 r) for "full", O(n d r)
    otherwise.

    Missing cells (NaN, None) are left out: the statistics of "diag", "tied_diag",
    "categorical" and "mixed" are sums over the cells that are there, which is exact
    when cells are missing at random, and every family predicts a row from the marginal
    density of its cells.

    Guarantee (`stopping="holdout"`): the error rate is at most the exact binomial
    upper limit of the held-out errors at level 0.05 / `max_iter`, with confidence
    0.95, if the rows are independent draws from one population (with `groups`: if the
    groups are). The division pays for picking the best of `max_iter` iterates on the
    same rows. Everything that is learned, levels of categorical features included, is
    learned from the other rows.

    References
    ----------
    Pérez, Echegoyen and Santafé, "Risk-based Calibration for Probabilistic
    Classifiers", eq. 6 and Algorithm 1, with the corrections of the user guide.
    Edwards and Lauritzen (2001), "The TM algorithm for maximising a conditional
    likelihood function", Biometrika 88(4).
    Su, Zhang, Ling and Matwin (2008), "Discriminative parameter learning for Bayesian
    networks", ICML ("dfe").

    Examples
    --------
    >>> from prudent import RiskCalibratedClassifier
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> start = RiskCalibratedClassifier(family="tied_diag", max_iter=1).fit(X, y)
    >>> model = RiskCalibratedClassifier(family="tied_diag", stopping="train")
    >>> model = model.fit(X, y)
    >>> round(start.score(X, y), 3), round(model.score(X, y), 3)
    (0.966, 0.994)
    """

    _stream: Stream | None
    _reader: Reader
    _model: Model
    guarantees_: tuple[Guarantee, ...]

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "family": [StrOptions(FAMILY_NAMES), Family],
        "learning_rate": [_ABOVE_0],
        "max_iter": [_AT_LEAST_1],
        "stopping": [StrOptions({"cv", "holdout", "train", "none"})],
        "cv": ["cv_object"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "guard": [StrOptions({"halve", "freeze"})],
        "line_search": ["boolean"],
        "step": [StrOptions({"fixed", "adaptive"})],
        "loss": [StrOptions({"log", "zero_one"})],
        "costs": ["array-like", None],
        "generative_weight": [_AT_LEAST_0],
        "class_prior_strength": [_AT_LEAST_0],
        "mean_prior_strength": [_AT_LEAST_0],
        "covariance_prior_strength": [StrOptions({"auto"}), _AT_LEAST_0],
        "mean_prior": ["array-like", None],
        "covariance_prior": ["array-like", None],
        "level_prior_strength": [_AT_LEAST_0, "array-like"],
        "init": [StrOptions({"closed_form", "random"})],
        "n_init": [_AT_LEAST_1],
        "batch_size": [_AT_LEAST_1, None],
        "method": [StrOptions({"rc", "gd", "tm", "dfe"})],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        *,
        family: str | Family = "full",
        learning_rate: float = 0.1,
        max_iter: int = 64,
        stopping: str = "cv",
        cv: Any = 5,
        validation_fraction: float = 0.2,
        guard: str = "halve",
        line_search: bool = True,
        step: str = "fixed",
        loss: str = "log",
        costs: ArrayLike | None = None,
        generative_weight: float = 0.0,
        class_prior_strength: float = 0.0,
        mean_prior_strength: float = 0.0,
        covariance_prior_strength: float | str = "auto",
        mean_prior: ArrayLike | None = None,
        covariance_prior: ArrayLike | None = None,
        level_prior_strength: float | ArrayLike = 1.0,
        batch_size: int | None = None,
        init: str = "closed_form",
        n_init: int = 1,
        method: str = "rc",
        random_state: Any = None,
    ) -> None:
        self.family = family
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.stopping = stopping
        self.cv = cv
        self.validation_fraction = validation_fraction
        self.guard = guard
        self.line_search = line_search
        self.step = step
        self.loss = loss
        self.costs = costs
        self.generative_weight = generative_weight
        self.class_prior_strength = class_prior_strength
        self.mean_prior_strength = mean_prior_strength
        self.covariance_prior_strength = covariance_prior_strength
        self.mean_prior = mean_prior
        self.covariance_prior = covariance_prior
        self.level_prior_strength = level_prior_strength
        self.batch_size = batch_size
        self.init = init
        self.n_init = n_init
        self.method = method
        self.random_state = random_state

    @fit_context
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Calibrate the closed-form fit of the rows.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Numbers; for `family="categorical"` any values; for `family="mixed"` a
            pandas or polars data frame. Cells may be missing (NaN, None) unless the
            family is "full" or "tied".
        y : array-like of shape (n_samples,)
            Class labels, at least two classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights >= 0, read as repetitions of a row.
        groups : array-like of shape (n_samples,), default=None
            Rows that belong together (of a patient, of a machine) have equal values.
            With `stopping="holdout"` whole groups are held out and one random row of
            each counts: the promise is about a random row of a new group. With
            `stopping="cv"` the rows of a group share a fold. Else without effect.

        Returns
        -------
        self : estimator

        Raises
        ------
        SingularCovarianceError
            If a covariance of the closed-form start is singular, which takes
            `covariance_prior_strength=0`.
        ValueError
            If there are fewer than two classes, a setting is out of range, or a
            class has no row in the part of the data that is fitted.
        """
        watch = self._watch(X, y)
        block, labels, kept = self._read_training(X, y, sample_weight)
        if groups is not None:
            groups = check_groups(groups, len(y))
        classes, codes = np.unique(labels, return_inverse=True)
        check_two_classes(classes)
        block = Block(block.X, codes, block.weight)
        seed, folds, held_out = self._draw_seed(), None, None
        if self.stopping == "holdout":
            own = None if groups is None else groups[kept]
            block, held_out = self._hold_out(block, seed, own)
        elif self.stopping == "cv":
            folds = self._folds(block, np.asarray(y), kept, groups, seed)
        rows = LocalRows([Trial(block, held_out)])
        self._learn(rows, folds, classes, seed, watch)
        # Rows counted several times are no independent draws.
        if held_out is not None and _are_ones(block) and _are_ones(held_out):
            wrong = np.count_nonzero(self._model.decide(held_out.X) != held_out.codes)
            self._promise(int(wrong), len(held_out.codes), by_group=groups is not None)
        return self

    @available_if(_learns_statistics)
    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Add the statistics of a batch and take one calibration step on it.

        The step takes the batch as a sample of all rows seen so far. Centre, scale,
        constant features and levels stay those of the first batch. The estimator
        counts as fitted once two classes have rows and every class that has rows
        can be solved.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows of this batch.
        y : array-like of shape (n_samples,)
            Their labels.
        classes : array-like of shape (n_classes,), default=None
            All labels that may ever occur. A class not yet seen has its column in
            every result and is never predicted.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights >= 0, read as repetitions.

        Returns
        -------
        self : estimator

        Raises
        ------
        ValueError
            If `y` holds a label outside `classes`, or the features differ from those
            of the first batch.
        """
        self._validate_params()
        stream: Stream | None = getattr(self, "_stream", None)
        block, y, _ = self._read_training(X, y, sample_weight, first=stream is None)
        known = classes_after(stream, classes, y)
        block = Block(block.X, np.searchsorted(known, y), block.weight)
        costs, decision_costs = self._costs(len(known))
        if stream is None:
            declared = classes is not None
            stream = Stream.begin(self._family_settings(), block, known, declared)
        stream = stream.with_classes(known).add(
            block, self._step_rule(), costs, self.generative_weight
        )
        self._stream, self.guarantees_ = stream, ()
        (
            self.loss_curve_,
            self.error_curve_,
            self.objective_curve_,
            self.learning_rate_curve_,
        ) = stream.curves
        self.n_frozen_ = stream.n_frozen
        self.best_iteration_ = len(stream.steps)
        self.n_iter_ = self.best_iteration_ + 1
        self._is_solved = stream.is_solved()
        if self._is_solved:
            self._store(known, stream.model(decision_costs), stream.statistics)
        return self

    def decision_function(self, X: Any) -> FloatArray:
        """Log odds of the second class, or log posteriors; with `costs`, minus costs.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Two classes: log h(1 | x) - log h(0 | x), with `costs` the expected cost
            of predicting class 0 minus that of class 1. More classes: the log
            posteriors, of a family with `coef_` the linear scores, which differ from
            them by a constant of the row; with `costs` minus the expected cost of
            each prediction.
        """
        rows = self._read_rows(X)
        scores = self._model.scores(rows)
        if len(self.classes_) == 2:
            return scores[:, 1] - scores[:, 0]
        if self.costs is not None:
            return scores
        if hasattr(self._model.family, "coefficients"):
            of_seen = scores[:, self._model.seen]
            return scores - of_seen.mean(axis=1, keepdims=True)
        return scores - logsumexp(scores, axis=1, keepdims=True)

    def predict(self, X: Any) -> NDArray[Any]:
        """Class with the largest posterior, or with `costs` the least expected cost.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        rows = self._read_rows(X)
        return self.classes_[self._model.decide(rows)]

    def predict_proba(self, X: Any) -> FloatArray:
        """Posterior h(k | x) of each class.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Rows sum to 1.
        """
        rows = self._read_rows(X)
        return self._model.posteriors(rows)

    @available_if(_has_density)
    def score_samples(self, X: Any) -> FloatArray:
        """Log density of each row under the model, over all classes.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
            Log of sum_k p_k f_k(x), in the units of `X`, over the features that vary
            and the cells that are there. Levels have probabilities for densities.
        """
        rows = self._read_rows(X)
        return self._model.log_density(rows)

    @available_if(_can_be_sampled)
    def sample(
        self, n_samples: int = 1, random_state: Any = None
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Draw rows from the model.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : int, RandomState instance or None, default=None

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Numbers, or levels for `family="categorical"`.
        y : ndarray of shape (n_samples,)
            Their labels.
        """
        check_is_fitted(self)
        if n_samples < 1:
            raise ValueError(f"`n_samples` must be at least 1, got {n_samples}.")
        random = check_random_state(random_state)
        model = self._model
        priors = self.priors_[model.seen]
        codes = random.choice(len(priors), size=n_samples, p=priors / priors.sum())
        family: Any = model.family
        rows = family.sample(model.parameters, codes, random)
        y = self.classes_[np.flatnonzero(model.seen)[codes]]
        return self._reader.values(rows), y

    # What the mathematics needs to know of the parameters.

    def _family_settings(self) -> FamilySettings:
        mean, covariance = (
            None if prior is None else np.asarray(prior, dtype=np.float64)
            for prior in (self.mean_prior, self.covariance_prior)
        )
        strengths = PriorStrengths()
        if self.method != "tm":  # TM: maximum likelihood
            covariances = self.covariance_prior_strength
            levels = np.asarray(self.level_prior_strength, dtype=np.float64)
            strengths = PriorStrengths(
                classes=self.class_prior_strength,
                means=self.mean_prior_strength,
                covariances=None if isinstance(covariances, str) else covariances,
                levels=float(levels) if levels.ndim == 0 else tuple(levels.tolist()),
                mean=mean,
                covariance=covariance,
            )
        return FamilySettings(
            family=self.family,
            method=self.method,
            strengths=strengths,
            n_levels=self._reader.n_levels,
        )

    def _step_rule(self) -> StepRule:
        is_tm = self.method == "tm"  # full steps
        return StepRule(
            learning_rate=1.0 if is_tm else self.learning_rate,
            freeze=self.guard == "freeze",
            line_search=self.line_search and not is_tm,
            adaptive=self.step == "adaptive",
        )

    def _costs(self, n_classes: int) -> tuple[FloatArray | None, FloatArray | None]:
        """Costs that the calibration lowers, and those that decide."""
        if self.costs is not None:
            costs = class_costs(self.costs, n_classes)
            return costs, costs
        return (1.0 - np.eye(n_classes) if self.loss == "zero_one" else None), None

    def _draw_seed(self) -> int:
        """One seed for folds, batches and the hold-out."""
        random = check_random_state(self.random_state)
        return int(random.randint(np.iinfo(np.int32).max))

    def _watch(self, X: Any, y: Any) -> Callable[[], bool]:
        """Tells scikit-learn's callbacks of each evaluation; whether to stop."""
        # A context costs as much as some evaluations of few rows.
        if not getattr(self, "_skl_callbacks", ()):
            return lambda: False
        context = self._init_callback_context(max_subtasks=self.max_iter)
        context.call_on_fit_task_begin(estimator=self, X=X, y=y)

        def watch() -> bool:
            evaluation = context.subcontext(task_name="evaluation")
            evaluation.call_on_fit_task_begin(estimator=self, X=X, y=y)
            return bool(evaluation.call_on_fit_task_end(estimator=self, X=X, y=y))

        return watch

    # Reading rows.

    def _read_training(
        self, X: Any, y: Any, sample_weight: ArrayLike | None, *, first: bool = True
    ) -> tuple[Block, NDArray[Any], IntArray]:
        """Rows of positive weight, their labels, and their places among all rows.

        The codes of the block come later. With `first`, the rows set the levels of
        categorical features; else those of an earlier batch stay.
        """
        refuse_dask(X)
        if self.family in ("categorical", "mixed"):
            columns, is_level = _columns(X)
            validate_data(self, X, reset=first, skip_check_array=True)
            if first:
                self._reader = first_reader(self.family, columns, is_level)
            rows = self._read_columns(columns)
        else:
            if first:
                self._reader = NumberReader()
            rows = validate_data(self, X, reset=first, **self._finite())
        places = np.arange(len(rows))
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is "
                "None."
            )
        # Whatever the features are: their places stand in for them.
        _, y = check_X_y(places[:, np.newaxis], y, estimator=self)
        check_classification_targets(y)
        weight = np.ones(len(y))
        if sample_weight is not None:
            weight = _check_sample_weight(
                sample_weight, rows, dtype=np.float64, ensure_non_negative=True
            )
            places = np.flatnonzero(weight > 0)
            if not len(places):
                raise ValueError(
                    "all entries of `sample_weight` are zero: give at least one row "
                    "a positive weight."
                )
        if len(places) < len(rows):
            rows, y, weight = rows[places], y[places], weight[places]
        return Block(rows, np.zeros(0, dtype=np.intp), weight), y, places

    def _read_rows(self, X: Any) -> Any:
        """Rows to predict, as the model takes them."""
        check_is_fitted(self)
        refuse_dask(X)
        if self.family not in ("categorical", "mixed"):
            return validate_data(self, X, reset=False, **self._finite())
        columns, _ = _columns(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        return self._read_columns(columns)

    def _read_columns(self, columns: Columns) -> Any:
        rows = self._reader.rows(columns)
        if isinstance(rows, MixedRows) and rows.numbers.shape[1]:
            check_array(rows.numbers, input_name="X", ensure_all_finite="allow-nan")
        return rows

    def _finite(self) -> dict[str, Any]:
        """Missing numbers pass where the family knows what to do with them."""
        passes = isinstance(self.family, str) and self.method != "gd"
        return {"ensure_all_finite": "allow-nan" if passes else True}

    def _hold_out(
        self, block: Block, seed: int, groups: NDArray[Any] | None
    ) -> tuple[Block, Block]:
        """Rows to fit and rows held out, with the levels that the former know."""
        split = hold_out_rows(
            self,
            row_keys(block.X),
            self.validation_fraction,
            np.random.RandomState(seed),
            groups,
        )
        fitted, held_out = (block.taken(rows) for rows in (split.fit, split.held_out))
        # What the held-out rows alone know is not known to a fit they judge.
        seen = seen_levels(fitted.X, self._reader.n_levels)
        self._reader = self._reader.restricted(seen)
        fitted, held_out = (
            Block(recoded(part.X, seen), part.codes, part.weight)
            for part in (fitted, held_out)
        )
        return fitted, held_out

    def _folds(
        self,
        block: Block,
        y: NDArray[Any],
        kept: IntArray,
        groups: NDArray[Any] | None,
        seed: int,
    ) -> Iterator[Rows] | None:
        """Trials of the cross-validation; None if a class cannot be validated.

        `kept` are the places of the rows among those with the labels `y` and the
        `groups` given to `fit`.
        """
        cv = most = 5 if self.cv is None else self.cv
        if np.isscalar(cv):
            own = None if groups is None else groups[kept]
            pairs = dealt_folds(row_keys(block.X), block.codes, most, seed, own)
            if not pairs:
                return None
        else:
            place = np.full(len(y), -1)
            place[kept] = np.arange(len(kept))
            splitter = check_cv(cv, y, classifier=True)
            pairs = [
                tuple(found[found >= 0] for found in (place[fit], place[test]))
                for fit, test in splitter.split(np.zeros((len(y), 1)), y, groups)
            ]
        # One fold at a time: each is a copy of nearly all rows.
        return (
            LocalRows([Trial(block.taken(fit), block.taken(test))])
            for fit, test in pairs
        )

    # Learning and keeping.

    def _learn(
        self,
        rows: Rows,
        folds: Any,
        classes: NDArray[Any],
        seed: int,
        watch: Callable[[], bool],
    ) -> None:
        """Calibrate trials, here or on dask blocks, and keep the result."""
        costs, decision_costs = self._costs(len(classes))
        learned = learn(
            rows,
            folds,
            settings=self._family_settings(),
            classes=classes.tolist(),
            stopping=self.stopping,
            rule=self._step_rule(),
            max_iter=self.max_iter,
            costs=costs,
            decision_costs=decision_costs,
            generative_weight=self.generative_weight,
            batch_size=self.batch_size,
            n_random_starts=self.n_init if self.init == "random" else 0,
            seed=seed,
            watch=watch,
        )
        self._keep(learned, classes)

    def _keep(self, learned: Learned, classes: NDArray[Any]) -> None:
        path = learned.path
        self.best_iteration_ = path.best_iteration
        self.n_iter_ = path.n_evaluations
        self.n_frozen_ = path.n_frozen
        self.loss_curve_ = path.log_loss
        self.error_curve_ = path.error
        self.objective_curve_ = path.risk
        self.learning_rate_curve_ = path.learning_rate
        self.guarantees_ = ()
        self._stream, self._is_solved = None, True
        self._store(classes, learned.model, path.statistics)

    def _promise(self, wrong: int, n_held_out: int, *, by_group: bool = False) -> None:
        n_starts = self.n_init if self.init == "random" else 1
        self.guarantees_ = (
            error_promise(
                wrong, n_held_out, n_starts * self.max_iter, by_group=by_group
            ),
        )

    def _store(
        self, classes: NDArray[Any], model: Model, statistics: Statistics
    ) -> None:
        self.classes_, self._model = classes, model
        self.family_, self.statistics_ = model.family, statistics
        for name, value in model.learned().items():
            setattr(self, name, value)
        for name in ("coef_", "intercept_"):  # of an earlier fit of another family
            self.__dict__.pop(name, None)
        if hasattr(model.family, "coefficients"):
            self._store_coefficients(*model.family.coefficients(model.parameters))
        constant = getattr(model.family, "constant_features", np.zeros(0, np.intp))
        self.constant_features_ = np.sort(self._reader.positions(constant))
        warn_constant_features(self, self.constant_features_)

    def _store_coefficients(self, slopes: FloatArray, intercepts: FloatArray) -> None:
        """Coefficients of the decision function, of the classes with rows."""
        if len(slopes) == 2:
            self.coef_, self.intercept_ = np.diff(slopes, axis=0), np.diff(intercepts)
        else:
            self.coef_ = slopes - slopes.mean(axis=0)
            self.intercept_ = intercepts - intercepts.mean()

    def __sklearn_is_fitted__(self) -> bool:
        return getattr(self, "_is_solved", False)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = self.family in ("categorical", "mixed")
        tags.input_tags.string = tags.input_tags.categorical
        # "full" and "tied" predict rows with missing cells, but learn from whole ones.
        learns_missing = ("categorical", "mixed", "diag", "tied_diag")
        tags.input_tags.allow_nan = (
            self.family in learns_missing and self.method != "gd"
        )
        return tags


def _columns(X: Any) -> tuple[Columns, BoolArray | None]:
    """One array per column, missing values as None or NaN; which hold levels."""
    found = frame_columns(X)
    if found is not None:
        return found
    # As an array, a list of numbers and words would become words alone.
    dtype = None if hasattr(X, "dtype") else object
    return list(check_array(X, dtype=dtype, ensure_all_finite=False).T), None


def _are_ones(block: Block) -> bool:
    return block.weight is None or bool((block.weight == 1).all())
