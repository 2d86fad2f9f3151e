"""The estimator: validate, learn, keep what was learned."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if

from prudent._compat import CallbackSupportMixin, Interval, StrOptions, fit_context
from prudent.calibration.answers import CalibratedAnswers, learns_statistics
from prudent.calibration.families import Family
from prudent.calibration.learn import learn
from prudent.calibration.settings import FAMILY_NAMES
from prudent.calibration.stream import Stream
from prudent.calibration.training import (
    drawn_seed,
    held_out_trial,
    settings_of,
    streamed,
    trials_of_folds,
    watching,
)
from prudent.calibration.trials import Trial
from prudent.core.classes import check_two_classes
from prudent.core.rows import Block, LocalRows
from prudent.estimator_tools import check_groups

_ABOVE_0 = Interval(Real, 0, None, closed="neither")
_AT_LEAST_0 = Interval(Real, 0, None, closed="left")
_AT_LEAST_1 = Interval(Integral, 1, None, closed="left")


class RiskCalibratedClassifier(
    CallbackSupportMixin, CalibratedAnswers, ClassifierMixin, BaseEstimator
):
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
        Weight lambda >= 0 of the joint log-likelihood added to the conditional one.
    class_prior_strength, mean_prior_strength : float, default=0.0
        Shrinkage, in rows: m0 of the class probabilities towards equal ones, m1 of the
        means towards `mean_prior`.
    covariance_prior_strength : float or "auto", default="auto"
        Shrinkage m2, in rows, of covariances towards `covariance_prior`; "auto" is 1,
        and 1 + 0.1 n_features for "full".
    mean_prior : array-like of shape (n_features,), default=None
        In the units of `X`; None is the overall mean.
    covariance_prior : array-like of shape (n_features, n_features) or \
(n_features,), default=None
        Covariances, or variances alone, in the units of `X`; None is the overall
        variances.
    level_prior_strength : float or array-like, default=1.0
        Pseudo counts a of a categorical feature, spread over its levels; one number
        or one per categorical feature.
    batch_size : int, default=None
        Rows behind each step; the curves are always of all rows. None takes all.
    init : {"closed_form", "random"}, default="closed_form"
        Where to start: from the labels, or from random soft labels.
    n_init : int, default=1
        Starts with `init="random"`, of which the best is kept: by the stopping rule
        with "train" and "holdout", else by the training log loss.
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
    upper limit of the held-out errors at level 0.05 / (`max_iter` x starts), with
    confidence 0.95, if the rows are independent draws from one population (with
    `groups`: if the groups are). The division pays for picking the best iterate on the
    same rows. All else, levels of categorical features too, is learned from the others.

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
        stream: Stream | None = getattr(self, "_stream", None)
        first = stream is None
        rows, y, weight, _ = self._read_training(X, y, sample_weight, first=first)
        stream, model = streamed(self, stream, classes, rows, y, weight)
        self._stream, self.n_frozen_ = stream, stream.n_frozen
        n_steps = len(stream.curve)
        self._store_path(stream.curves, best_iteration=n_steps, n_iter=n_steps + 1)
        self._is_solved = model is not None
        if model is not None:
            self._store(stream.classes, model, stream.statistics)
        return self
