"""The estimator: validate, learn, keep what was learned, answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import check_cv
from sklearn.utils import check_array, check_random_state, check_X_y
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from prudent._compat import (
    CallbackSupportMixin,
    Interval,
    StrOptions,
    fit_context,
    validate_data,
)
from prudent.calibration.ascent import Learned, Trial, dealt_folds
from prudent.calibration.categorical import Columns, MixedRows, Reader, row_keys
from prudent.calibration.families import Family, PriorStrengths, Statistics
from prudent.calibration.learn import (
    FAMILY_NAMES,
    Settings,
    Stream,
    classes_after,
    learn,
)
from prudent.calibration.model import Model
from prudent.core.classes import check_two_classes, class_costs
from prudent.core.rows import Block, LocalRows, Rows, hold_out
from prudent.core.types import BoolArray, FloatArray, IntArray
from prudent.estimator_tools import (
    check_classes,
    check_groups,
    frame_columns,
    positive_weights,
    refuse_dask,
    remember_rows,
    warn_constant_features,
)

_ABOVE_0 = Interval(Real, 0, None, closed="neither")
_AT_LEAST_0 = Interval(Real, 0, None, closed="left")
_AT_LEAST_1 = Interval(Integral, 1, None, closed="left")

#: Families whose columns may hold words.
WITH_LEVELS = ("categorical", "mixed")


def learns_statistics(estimator: Any) -> bool:
    """Whether there is a `partial_fit`."""
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
    default `stopping="cv"` guards against at six times the cost of one fit. Also known
    as risk-based calibration, RC.

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
    cv : int, splitter, iterable of (train, test) positions or None, default=5
        Folds of `stopping="cv"`. An int deals the distinct rows of each class round
        robin, so that equal rows of a class share a fold. None: 5; of more than 4000
        rows the first of these folds decides alone, at a third of the time.
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
        Weight lambda >= 0 of the joint log-likelihood added to the conditional one.
    class_prior_strength, mean_prior_strength : float, default=0.0
        Shrinkage, in rows: m0 of the class probabilities towards equal ones, m1 of the
        means towards `mean_prior`.
    covariance_prior_strength : float or "auto", default="auto"
        Shrinkage m2, in rows, of covariances towards `covariance_prior`; "auto" is 1,
        and 1 + 0.1 n_features for "full".
    mean_prior : array-like of shape (n_features,), default=None
        In the units of `X`; None is the overall mean.
    exact_map : bool, default=False
        With `mean_prior_strength` m1, covariances count the distance of the means from
        `mean_prior`, m1 n_k / (m1 + n_k) (mu_k - mu_0)(mu_k - mu_0)': the mode of the
        normal-inverse-Wishart posterior, of which the paper neglects this term.
    covariance_prior : array-like of shape (n_features, n_features) or \
(n_features,), default=None
        Covariances, or variances alone, in the units of `X`; None is the overall
        variances.
    level_prior_strength : float or array-like, default=1.0
        Pseudo counts a of a categorical feature, spread over its levels; one number
        or one per categorical feature.
    batch_size : int, default=None
        Rows behind each step; the curves are always of all rows. None takes all.
    init : {"closed_form", "random", "bootstrap"} or list of ndarray, \
default="closed_form"
        Where to start: from the labels, from random soft labels, from rows drawn with
        replacement within each class, or from statistics as in `statistics_`, whose
        total weight is brought to that of the rows (not with `method="gd"`).
    n_init : int, default=1
        Starts with `init` "random" or "bootstrap", of which the best is kept: by the
        stopping rule with "train" and "holdout", else by the training log loss.
    method : {"rc", "gd", "tm", "dfe"}, default="rc"
        Calibration, or one of the baselines: gradient descent on softmax regression
        from the closed-form start ("tied", "tied_diag" only); the TM algorithm, RC
        with lr = 1, no shrinkage and no line search; or the discriminative frequency
        estimate, which raises the statistics of the true class only.
    random_state : int, RandomState instance or None, default=None
        Of folds, hold-out, starts and batches; None draws afresh in every `fit`.

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
        Of "full" (n_classes, n_features, n_features), "tied" (n_features, n_features).
    variances_ : ndarray
        Of "diag" (n_classes, n_features) or "tied_diag" (n_features,).
    level_probabilities_ : list of ndarray of shape (n_classes, n_levels)
        Of each categorical feature.
    statistics_ : list of ndarray
        Kept statistics, in standardised units, leading axis n_classes.
    best_iteration_ : int
        Accepted updates of the kept iterate. With ``stopping="train"`` equal errors are
        told apart by the log loss; the first iterate of the least error is
        ``error_curve_.argmin()``.
    n_iter_ : int
        Evaluations, those rejected by the line search included.
    coef_, intercept_ : ndarray of shape (n_classes, n_features), (n_classes,)
        Of "tied" and "tied_diag", in the units of `X`: without `costs`, which do not
        enter it, the decision function is `X @ coef_.T + intercept_`. With two classes
        of shape (1, n_features), (1,).
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
        take the confidence away and with it the promise, and so do statistics as
        `init`, which may have been learned from the rows held out.

    See Also
    --------
    prudent.plots.CalibrationPathDisplay : Draws the curves.

    Notes
    -----
    With G = sum_i (Y_i - H_i) psi(x_i), Y the one-hot labels and H the posteriors,
    s <- s + lr G is mirror ascent of the conditional log-likelihood with the
    log-partition function as mirror map, because s / n is the mean parameter of the
    exponential family. Fixed points are conditional maximum likelihood: logistic
    regression on x ("tied", "tied_diag"), on (x, x^2) ("diag"), on all monomials up to
    degree two ("full"). Cost of an evaluation: O(n d^2 r) for "full", O(n d r)
    otherwise.

    Missing cells (NaN, None) are left out: the statistics of "diag", "tied_diag",
    "categorical" and "mixed" are sums over the cells that are there, and they predict a
    row from the marginal density of its cells. So the calibration is to rows with such
    gaps. "full" and "tied" take whole rows.

    Guarantee (`stopping="holdout"`): the error rate is at most the exact binomial
    upper limit of the held-out errors at level 0.05 / (`max_iter` x starts), with
    confidence 0.95, if the rows are independent draws from one population (with
    `groups`: if the groups are). The division pays for picking the best iterate on the
    same rows. All else, levels of categorical features too, is learned from the others:
    a `Family` or a prior of one's own must not be made from the rows given to `fit`.

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
        "exact_map": ["boolean"],
        "covariance_prior": ["array-like", None],
        "level_prior_strength": [_AT_LEAST_0, "array-like"],
        "init": [StrOptions({"closed_form", "random", "bootstrap"}), list],
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
        exact_map: bool = False,
        covariance_prior: ArrayLike | None = None,
        level_prior_strength: float | ArrayLike = 1.0,
        batch_size: int | None = None,
        init: str | list[FloatArray] = "closed_form",
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
        self.exact_map = exact_map
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
            If a covariance of the start is singular (`covariance_prior_strength=0`).
        ValueError
            If there are fewer than two classes, a setting is out of range, or a
            class has no row in the part of the data that is fitted.
        """
        watch = watching(self, X, y)
        rows, labels, weight, kept = self._read_training(X, y, sample_weight)
        if groups is not None:
            groups = check_groups(groups, len(y))
        classes, codes = np.unique(labels, return_inverse=True)
        check_two_classes(classes)
        block = Block(rows, codes, weight)
        seed, folds, trial = drawn_seed(self), None, Trial(block)
        if self.stopping == "holdout":
            own = None if groups is None else groups[kept]
            trial = held_out_trial(self, block, seed, own)
        elif self.stopping == "cv":
            y = np.asarray(y)
            folds = trials_of_folds(self.cv, block, y, kept, groups, seed)
        learned = learn(
            LocalRows([trial]),
            folds,
            settings=settings_of(self, len(classes)),
            classes=classes.tolist(),
            seed=seed,
            watch=watch,
            by_group=groups is not None,
            weighted=not (weight == 1).all(),
        )
        self._keep(learned, classes)
        remember_rows(self, X, warn=False)
        return self

    @available_if(learns_statistics)
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
        self._known_rows = None  # of a stream no rows are kept, only statistics
        stream: Stream | None = getattr(self, "_stream", None)
        first = stream is None
        rows, y, weight, _ = self._read_training(X, y, sample_weight, first=first)
        known = classes_after(stream, classes, y)
        block = Block(rows, np.searchsorted(known, y), weight)
        settings = settings_of(self, len(known))
        if stream is None:
            stream = Stream.begin(settings, block, known, classes is not None)
        stream = stream.add(block, known, settings)
        model = stream.model(settings.decision_costs) if stream.is_solved() else None
        self._stream, self.n_frozen_ = stream, stream.n_frozen
        n_steps = len(stream.curve)
        self._store_path(stream.curves, best_iteration=n_steps, n_iter=n_steps + 1)
        self._is_solved = model is not None
        if model is not None:
            self._store(stream.classes, model, stream.statistics)
        return self

    # Answers.

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
        return self._model.decision(rows)

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

    # Reading rows.

    def _read_training(
        self, X: Any, y: Any, sample_weight: ArrayLike | None, *, first: bool = True
    ) -> tuple[Any, NDArray[Any], FloatArray, IntArray]:
        """Rows of positive weight, their labels, weights, and places among all rows.

        With `first`, the rows set the levels of categorical features; else those of an
        earlier batch stay.
        """
        rows = self._validated(X, reset=first)
        places = np.arange(len(rows))
        # Whatever the features are: their places stand in for them.
        _, y = check_X_y(places[:, np.newaxis], y, estimator=self)
        check_classes(y)
        if sample_weight is None:
            return rows, y, np.ones(len(y)), places
        weight, places = positive_weights(sample_weight, rows)
        if len(places) == len(weight):
            return rows, y, weight, places
        return rows[places], y[places], weight[places], places

    def _read_rows(self, X: Any) -> Any:
        """Rows to predict, as the model takes them."""
        check_is_fitted(self)
        rows = self._validated(X, reset=False)
        may_lack = self._takes_missing or not isinstance(rows, np.ndarray)
        if not may_lack and np.isnan(rows).any():
            raise ValueError(
                f"Input X contains NaN: `family={self.family!r}` takes whole rows. Use "
                "`family='diag'` or 'tied_diag', which leave missing cells out, or "
                "impute them."
            )
        return rows

    @property
    def _takes_missing(self) -> bool:
        """Whether rows may lack cells; covariance matrices are those of whole rows."""
        families = (*WITH_LEVELS, "diag", "tied_diag")
        return self.family in families and self.method != "gd"

    def _validated(self, X: Any, *, reset: bool) -> Any:
        """Rows as the model takes them; with `reset` they set what may follow."""
        refuse_dask(X)
        if self.family not in WITH_LEVELS:
            # Missing numbers pass where the family knows what to do with them.
            passes = isinstance(self.family, str) and self.method != "gd"
            finite: Any = "allow-nan" if passes else True
            if isinstance(X, list):
                X = np.asarray(X)  # with None among the numbers: made NaN below
            rows = validate_data(self, X, reset=reset, ensure_all_finite=finite)
            if reset:
                self._reader = Reader(np.zeros(rows.shape[1], dtype=np.bool_))
            return rows
        columns, is_level = _columns(X)
        validate_data(self, X, reset=reset, skip_check_array=True)
        if reset:
            self._reader = Reader.of_first_rows(self.family, columns, is_level)
        rows = self._reader.rows(columns)
        if isinstance(rows, MixedRows) and rows.numbers.shape[1]:
            check_array(rows.numbers, input_name="X", ensure_all_finite="allow-nan")
        return rows

    # Keeping what a fit learned.

    def _keep(self, learned: Learned, classes: NDArray[Any]) -> None:
        self._stream, self._is_solved = None, True
        self.n_frozen_ = learned.n_frozen
        n_iter = learned.n_evaluations
        self._store_path(learned.curves, learned.best_iteration, n_iter)
        self._store(classes, learned.model, learned.statistics)
        self.guarantees_ = learned.guarantees

    def _store(
        self, classes: NDArray[Any], model: Model, statistics: Statistics
    ) -> None:
        self.classes_, self._model = classes, model
        self.family_, self.statistics_ = model.family, statistics
        for name, value in model.learned().items():
            setattr(self, name, value)
        for name in ("coef_", "intercept_"):  # of an earlier fit of another family
            self.__dict__.pop(name, None)
        coefficients = model.coefficients()
        if coefficients is not None:
            self.coef_, self.intercept_ = coefficients
        constant = getattr(model.family, "constant_features", np.zeros(0, np.intp))
        self.constant_features_ = np.sort(self._reader.positions(constant))
        warn_constant_features(self, self.constant_features_)

    def _store_path(self, curves: FloatArray, best_iteration: int, n_iter: int) -> None:
        self.loss_curve_, self.error_curve_, self.objective_curve_ = curves[:3]
        self.learning_rate_curve_ = curves[3]
        self.best_iteration_, self.n_iter_ = best_iteration, n_iter
        self.guarantees_ = ()

    def __sklearn_is_fitted__(self) -> bool:
        return getattr(self, "_is_solved", False)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = self.family in WITH_LEVELS
        tags.input_tags.string = tags.input_tags.categorical
        tags.input_tags.allow_nan = self._takes_missing
        return tags


def _columns(X: Any) -> tuple[Columns, BoolArray | None]:
    """One array per column, missing values as None or NaN; which hold levels."""
    columns = frame_columns(X)
    if columns is not None:
        return columns
    # As an array, a list of numbers and words would become words alone.
    dtype = None if hasattr(X, "dtype") else object
    return list(check_array(X, dtype=dtype, ensure_all_finite=False).T), None


# --- from parameters and rows to what `learn` takes -----------------------------------


def settings_of(classifier: Any, n_classes: int) -> Settings:
    """The parameters of a classifier as the mathematics takes them."""
    is_tm = classifier.method == "tm"  # maximum likelihood, full steps
    start: str | tuple[FloatArray, ...] = classifier.init
    if not isinstance(start, str):
        start = tuple(np.asarray(part, dtype=np.float64) for part in start)
    starts_once = not isinstance(start, str) or start == "closed_form"
    costs = decision_costs = None
    if classifier.costs is not None:
        costs = decision_costs = class_costs(classifier.costs, n_classes)
    elif classifier.loss == "zero_one":
        costs = 1.0 - np.eye(n_classes)
    return Settings(
        family=classifier.family,
        method=classifier.method,
        strengths=PriorStrengths() if is_tm else _prior_strengths(classifier),
        n_levels=classifier._reader.n_levels,
        steps={
            "costs": costs,
            "generative_weight": classifier.generative_weight,
            "strengthens_only": classifier.method == "dfe",
            "learning_rate": 1.0 if is_tm else classifier.learning_rate,
            "freeze": classifier.guard == "freeze",
            "line_search": classifier.line_search and not is_tm,
            "adaptive": classifier.step == "adaptive",
        },
        stopping=classifier.stopping,
        max_iter=classifier.max_iter,
        decision_costs=decision_costs,
        batch_size=classifier.batch_size,
        n_starts=1 if starts_once else classifier.n_init,
        start=start,
    )


def _prior_strengths(classifier: Any) -> PriorStrengths:
    mean, covariance = (
        None if prior is None else np.asarray(prior, dtype=np.float64)
        for prior in (classifier.mean_prior, classifier.covariance_prior)
    )
    covariances = classifier.covariance_prior_strength
    levels = np.asarray(classifier.level_prior_strength, dtype=np.float64)
    return PriorStrengths(
        classes=classifier.class_prior_strength,
        means=classifier.mean_prior_strength,
        covariances=None if isinstance(covariances, str) else covariances,
        levels=float(levels) if levels.ndim == 0 else tuple(levels.tolist()),
        mean=mean,
        covariance=covariance,
        exact=classifier.exact_map,
    )


def drawn_seed(classifier: Any) -> int:
    """One seed for folds, batches and the hold-out."""
    random = check_random_state(classifier.random_state)
    return int(random.randint(np.iinfo(np.int32).max))


def held_out_trial(
    classifier: Any, block: Block, seed: int, groups: NDArray[Any] | None
) -> Trial:
    """Rows to fit and rows held out, with the levels that the former know."""
    coded = row_keys(block.X)
    if groups is not None:
        groups = check_groups(groups, len(block))
    random = np.random.RandomState(seed)
    split = hold_out(len(block), classifier.validation_fraction, random, groups)
    remember_rows(classifier, coded, split, warn=groups is None)
    trial = Trial(*map(block.taken, split))
    # What the held-out rows alone know is not known to a fit they judge.
    seen = trial.seen_levels(classifier._reader.n_levels)
    classifier._reader = classifier._reader.restricted(seen)
    return trial.recoded(seen)


# Folds where `cv` is None. Of more rows than these the error on a fifth is as good a
# guide as that on all.
USUAL_FOLDS, MOST_ROWS_FOR_ALL_FOLDS = 5, 4000


def deciding_folds(cv: Any, n_rows: int) -> int | None:
    """How many of the folds choose the number of updates; None: all."""
    return 1 if cv is None and n_rows > MOST_ROWS_FOR_ALL_FOLDS else None


def trials_of_folds(
    cv: Any,
    block: Block,
    y: NDArray[Any],
    kept: IntArray,
    groups: NDArray[Any] | None,
    seed: int,
) -> Iterator[Rows] | None:
    """Trials of the cross-validation; None if a class cannot be validated.

    `kept` are the places of the rows among those with the labels `y` and the `groups`
    given to `fit`.
    """
    if cv is None or isinstance(cv, Integral):
        own = None if groups is None else groups[kept]
        n_folds = USUAL_FOLDS if cv is None else int(cv)
        pairs = dealt_folds(row_keys(block.X), block.codes, n_folds, seed, own)
        if not pairs:
            return None
        pairs = pairs[: deciding_folds(cv, len(block.codes))]
    else:
        place = np.full(len(y), -1)
        place[kept] = np.arange(len(kept))
        splitter = check_cv(cv, y, classifier=True)
        pairs = [
            tuple(rows[rows >= 0] for rows in (place[fit], place[test]))
            for fit, test in splitter.split(np.zeros((len(y), 1)), y, groups)
        ]
    # One fold at a time: each is a copy of nearly all rows.
    return (
        LocalRows([Trial(block.taken(fit), block.taken(test))]) for fit, test in pairs
    )


def watching(classifier: Any, X: Any, y: Any) -> Callable[[], bool]:
    """Tells scikit-learn's callbacks of each evaluation; whether to stop."""
    # A context costs as much as some evaluations of few rows.
    if not getattr(classifier, "_skl_callbacks", ()):
        return lambda: False
    context = classifier._init_callback_context(max_subtasks=classifier.max_iter)
    context.call_on_fit_task_begin(estimator=classifier, X=X, y=y)

    def watch() -> bool:
        evaluation = context.subcontext(task_name="evaluation")
        evaluation.call_on_fit_task_begin(estimator=classifier, X=X, y=y)
        return bool(evaluation.call_on_fit_task_end(estimator=classifier, X=X, y=y))

    return watch
