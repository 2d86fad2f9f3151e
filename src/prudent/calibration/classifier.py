"""The estimator: validate, choose the recipe, calibrate, keep what was learned."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from prudent._compat import Interval, StrOptions, fit_context
from prudent.calibration.families import Family, Statistics
from prudent.calibration.progress import CallbackSupportMixin, watch_evaluations
from prudent.calibration.recipe import LabelledRows, prepare
from prudent.calibration.settings import (
    FAMILY_NAMES,
    calibrate,
    learned_attributes,
    make_recipe,
    promise,
)
from prudent.calibration.stream import Stream, classes_after
from prudent.calibration.tables import read_training
from prudent.estimator_tools import warn_constant_features

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
    """Doc."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "family": [StrOptions(FAMILY_NAMES), Family],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "stopping": [StrOptions({"cv", "holdout", "train", "none"})],
        "cv": ["cv_object"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "guard": [StrOptions({"halve", "freeze"})],
        "line_search": ["boolean"],
        "step": [StrOptions({"fixed", "adaptive"})],
        "loss": [StrOptions({"log", "zero_one"})],
        "costs": ["array-like", None],
        "generative_weight": [Interval(Real, 0, None, closed="left")],
        "class_prior_strength": [Interval(Real, 0, None, closed="left")],
        "mean_prior_strength": [Interval(Real, 0, None, closed="left")],
        "covariance_prior_strength": [
            StrOptions({"auto"}),
            Interval(Real, 0, None, closed="left"),
        ],
        "level_prior_strength": [
            Interval(Real, 0, None, closed="left"),
            "array-like",
        ],
        "batch_size": [Interval(Integral, 1, None, closed="left"), None],
        "method": [StrOptions({"rc", "gd", "tm"})],
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
    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
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
        self._stream: Stream | None = None
        training = read_training(self, X, y, sample_weight)
        classes, codes = np.unique(training.y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                f"at least 2 classes are needed, got one class: {classes[0]!r}."
            )
        data = LabelledRows(training.rows, codes, training.weight)
        recipe = make_recipe(self, training.table, classes, watch)
        fitted = calibrate(self, recipe, data, training.kept, y)
        path = fitted.path
        self.best_iteration_ = path.best_iteration
        self.n_iter_ = path.n_evaluations
        self.n_frozen_ = path.n_frozen
        self.loss_curve_ = path.log_loss
        self.error_curve_ = path.error
        self.learning_rate_curve_ = path.learning_rate
        self.guarantees_ = promise(fitted, data.weight, self.max_iter)
        self._table, self._is_solved = training.table, True
        self._store(classes, fitted.family, path.statistics, np.arange(len(classes)))
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
        curves = np.array(stream.curves, dtype=np.float64).reshape(-1, 4).T
        self.loss_curve_, self.error_curve_, self.learning_rate_curve_ = curves[:3]
        self.n_frozen_ = int(curves[3].sum())
        self.best_iteration_ = len(stream.curves)
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
        scores = self._log_joint(X)
        if self.costs is not None:
            scores = -softmax(scores, axis=1) @ np.asarray(self.costs, dtype=float)
        if len(self.classes_) == 2:
            return scores[:, 1] - scores[:, 0]
        if self.costs is not None:
            return scores
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
        scores = self.family_.log_joint(rows, self._parameters)
        if scores.shape[1] == len(self.classes_):
            return scores
        spread = np.full((len(scores), len(self.classes_)), -np.inf)
        spread[:, self._seen] = scores
        return spread

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
