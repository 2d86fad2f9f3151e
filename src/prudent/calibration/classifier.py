"""The estimator: validate, choose the recipe, calibrate, keep what was learned."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import column_or_1d
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from prudent._compat import fit_context
from prudent.calibration.families import Family, Statistics
from prudent.calibration.losses import class_scores
from prudent.calibration.progress import CallbackSupportMixin, watch_evaluations
from prudent.calibration.recipe import Calibrated, LabelledRows, prepare
from prudent.calibration.settings import (
    CONSTRAINTS,
    calibrate,
    check_costs,
    draw_seed,
    learned_attributes,
    make_recipe,
    promise,
)
from prudent.calibration.stream import Stream, classes_after
from prudent.calibration.tables import Table, read_training, recoded, seen_levels
from prudent.core.guarantee import Guarantee
from prudent.estimator_tools import (
    check_groups,
    hold_out_rows,
    warn_constant_features,
)

__all__ = ["RiskCalibratedClassifier"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


def _learns_statistics(estimator: Any) -> bool:
    if estimator.method == "gd":
        raise AttributeError(
            "method='gd' has no statistics to add up: use `fit`, or method='rc'."
        )
    return True


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
    level_prior_strength : float or array-like, default=1.0
        Pseudo counts a of a categorical feature, spread over its levels; one number
        or one per categorical feature.
    batch_size : int, default=None
        Rows behind each step; the curves are always of all rows. None takes all.
    method : {"rc", "gd", "tm"}, default="rc"
        Calibration, or one of the baselines: gradient descent on softmax regression
        from the closed-form start ("tied", "tied_diag" only), or the TM algorithm,
        RC with lr = 1, no shrinkage and no line search.
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
    loss_curve_, error_curve_, learning_rate_curve_ : ndarray
        Mean training log loss, training error and lr after 0, 1, ... accepted
        updates; after `partial_fit`, of each batch before its step.
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
    _table: Table
    guarantees_: tuple[Guarantee, ...]

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = CONSTRAINTS

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
        level_prior_strength: float | ArrayLike = 1.0,
        batch_size: int | None = None,
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
        self.level_prior_strength = level_prior_strength
        self.batch_size = batch_size
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
            Finite numbers; for `family="categorical"` any values, missing ones
            included; for `family="mixed"` a pandas or polars data frame.
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
        watch = watch_evaluations(self, X, y)
        training = read_training(self, X, y, sample_weight)
        if groups is not None:
            groups = check_groups(groups, len(column_or_1d(y)))
        classes, codes = np.unique(training.y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                f"at least 2 classes are needed, got one class: "
                f"{classes.tolist()[0]!r}."
            )
        data = LabelledRows(training.rows, codes, training.weight)
        table, held_out, seed = training.table, None, draw_seed(self.random_state)
        if self.stopping == "holdout":
            split = hold_out_rows(
                self,
                data.keys,
                self.validation_fraction,
                np.random.RandomState(seed),
                None if groups is None else groups[training.kept],
            )
            # What the held-out rows alone know is not known to a fit they judge.
            seen = seen_levels(data.rows[split.fit], table.n_levels)
            table = table.restricted(seen)
            data, held_out = (
                replace(part, rows=recoded(part.rows, seen))
                for part in (data[split.fit], data[split.held_out])
            )
        recipe = make_recipe(self, table, classes, seed, watch)
        fitted = calibrate(self, recipe, data, held_out, training.kept, y, groups)
        self._keep(fitted, table, classes)
        # Rows counted several times are no independent draws.
        if held_out is not None and (training.weight == 1).all():
            wrong = self._count_wrong(held_out)
            self.guarantees_ = promise(
                wrong, len(held_out.codes), self.max_iter, by_group=groups is not None
            )
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
        stream = getattr(self, "_stream", None)
        table = None if stream is None else self._table
        training = read_training(self, X, y, sample_weight, table)
        known = classes_after(stream, classes, training.y)
        codes = np.searchsorted(known, training.y)
        data = LabelledRows(training.rows, codes, training.weight)
        recipe = make_recipe(self, training.table, known)
        if stream is None:
            stream = Stream.begin(recipe, data, known, classes is not None)
        stream = stream.with_classes(known).add(recipe, data)
        self._stream, self._table = stream, training.table
        self.loss_curve_, self.error_curve_, self.learning_rate_curve_ = stream.curves
        self.n_frozen_ = stream.n_frozen
        self.best_iteration_ = len(stream.steps)
        self.n_iter_ = self.best_iteration_ + 1
        self.guarantees_ = ()
        self._is_solved = stream.is_solved()
        if self._is_solved:
            self._store(known, stream.family, stream.statistics, stream.seen)
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
            posteriors, with `costs` minus the expected cost of each prediction.
        """
        log_joint = self._log_joint(X)
        costs = check_costs(self.costs, len(self.classes_))
        scores = class_scores(log_joint, costs)
        if len(self.classes_) == 2:
            return scores[:, 1] - scores[:, 0]
        if costs is not None:
            return scores
        return scores - logsumexp(log_joint, axis=1, keepdims=True)

    def predict(self, X: Any) -> NDArray[Any]:
        """Class with the largest posterior, or with `costs` the least expected cost.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        decision = self.decision_function(X)
        if decision.ndim == 1:
            return self.classes_[(decision > 0).astype(np.intp)]
        return self.classes_[decision.argmax(axis=1)]

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
        return softmax(self._log_joint(X), axis=1)

    def _log_joint(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        rows = prepare(self.family_, self._table.read(self, X))
        scores = np.asarray(self.family_.log_joint(rows, self._parameters))
        if scores.shape[1] == len(self.classes_):
            return scores
        spread = np.full((len(scores), len(self.classes_)), -np.inf)
        spread[:, self._seen] = scores
        return spread

    def _count_wrong(self, data: LabelledRows) -> int:
        """Held-out rows that `predict` gets wrong."""
        rows = prepare(self.family_, data.rows)
        log_joint = np.asarray(self.family_.log_joint(rows, self._parameters))
        scores = class_scores(log_joint, check_costs(self.costs, len(self.classes_)))
        return int(np.count_nonzero(scores.argmax(axis=1) != data.codes))

    def _keep(self, fitted: Calibrated, table: Table, classes: NDArray[Any]) -> None:
        """Take over the result of a fit, here or on dask blocks."""
        path = fitted.path
        self.best_iteration_ = path.best_iteration
        self.n_iter_ = path.n_evaluations
        self.n_frozen_ = path.n_frozen
        self.loss_curve_ = path.log_loss
        self.error_curve_ = path.error
        self.learning_rate_curve_ = path.learning_rate
        self.guarantees_ = ()
        self._stream = None
        self._table, self._is_solved = table, True
        self._store(classes, fitted.family, path.statistics, np.arange(len(classes)))

    def _store(
        self, classes: NDArray[Any], family: Any, statistics: Statistics, seen: IntArray
    ) -> None:
        self.classes_, self.family_, self.statistics_ = classes, family, statistics
        self._seen = seen
        self._parameters = family.parameters([block[seen] for block in statistics])
        learned = learned_attributes(family, self._parameters, seen, len(classes))
        for name, value in learned.items():
            setattr(self, name, value)
        constant = getattr(family, "constant_features", np.zeros(0, dtype=np.intp))
        self.constant_features_ = np.sort(self._table.positions(constant))
        warn_constant_features(self, self.constant_features_)

    def __sklearn_is_fitted__(self) -> bool:
        return getattr(self, "_is_solved", False)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = self.family in ("categorical", "mixed")
        tags.input_tags.string = tags.input_tags.categorical
        tags.input_tags.allow_nan = self.family == "categorical"
        return tags
