"""The most useful of several classifiers under a promise, with the promise."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_y, check_is_fitted, indexable

from prudent.certification.held_out import refuse_fit_parameters
from prudent.core.binomial import check_fraction
from prudent.core.classes import check_two_classes
from prudent.core.guarantee import Guarantee
from prudent.core.types import BoolArray, FloatArray
from prudent.core.validation import shown
from prudent.estimator_tools.given import check_classes
from prudent.estimator_tools.held_out import refuse_dask
from prudent.estimator_tools.subgroups import SubgroupsOption, names_of_subgroups
from prudent.evaluation.choice import ChosenClassifier, chosen_in
from prudent.evaluation.methods import DEFAULT_PROMISE, candidates
from prudent.evaluation.promising import promised, wrap
from prudent.rules.wish import parse_promise


def _model_has(name: str) -> Any:
    """A method that the wrapper of the promise has, before `fit` by its class."""

    def check(best: BestClassifier) -> bool:
        return hasattr(getattr(best, "model_", None) or best._model([0, 1], 0), name)

    return available_if(check)


class BestClassifier(ClassifierMixin, BaseEstimator):
    """The most useful of several classifiers under a promise, and the promise.

    Part of the rows is held out for the promise, as by the classifier that keeps it
    for one method. The candidates are judged by cross-validation on the other part
    alone: by the share of rows that they would answer, by the size of their sets, or
    by the error of the classes without a limit. The winner is fitted to that part, and
    the held-out rows prove the promise for it at the full level: they played no part
    in the choice.

    Parameters
    ----------
    estimators : sequence, mapping or None, default=None
        Candidates, as `methods` of :func:`prudent.compare`: names, dotted paths of
        classes, pairs of a name and an estimator, or a mapping from names to
        estimators. None: all that it compares but the majority, and boosting whose
        number of trees is chosen by early stopping. "conformal" stands for its
        Gaussian model.
    promise : str or Guarantee, default="coverage >= 90% in every class"
        What to promise, as in :func:`prudent.compare`.
    confidence : float or None, default=0.95
        Probability over the held-out rows that all that is promised is true, in
        (0, 1). None: 0.95 of promises about errors, and coverage on average over
        training samples.
    subgroups : list of str or int, callable or None, default=None
        Parts of the population that each get the promise; they may overlap. Names or
        positions of columns, or a function of rows, as in
        :class:`~prudent.SelectiveClassifier`. None: those that the promise names, "in
        every sex", if any.
    cv : int, default=5
        Folds of the choice, >= 2, drawn plainly, or forward in `time`.
    calibration_size : float or None, default=None
        Share of the rows (or groups) to hold out, in (0, 1). None: that of the
        classifier that keeps the promise, .3, or .5 for class errors.
    random_state : int, RandomState or None, default=None
        For the held-out rows, the folds and the candidates.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels.
    best_name_ : str
        Name of the candidate chosen.
    best_estimator_ : classifier
        It, fitted to the rows not held out.
    model_ : classifier
        What keeps the promise around it: a `SelectiveClassifier`,
        `ConformalClassifier` or `NeymanPearsonClassifier`. Labels, sets and answers
        are its; what else it can do, it does there: ``model_.with_error_rate(0.1)``.
    choice_results_ : dict of str to ndarray of shape (n_candidates,)
        "name"; "usefulness", larger is better, and "second", which decides where that
        is equal (NaN for candidates that failed); "rank", from 1, 0 for those that
        failed; "failed", why.
    n_calibration_ : int
        Rows held out.
    order_test_ : OrderInTime
        After a fit with `time` under a promise: whether the rows change with time, by
        an exact test (`p_value`, `changed`, `when`); its text is one line.
    subgroups_, subgroup_count_
        With `subgroups`: their names, and the held-out rows of each, as of `model_`.
    n_candidates_ : int
        Candidates that were given.
    guarantees_ : tuple of Guarantee
        The promises of `model_`; their evidence counts the "candidates".

    Raises
    ------
    ValueError
        If a parameter is out of range, a name is unknown, no candidate could be
        fitted, or what is promised cannot be promised by subgroups.
    InfeasibleError
        If the held-out rows are too few to keep a limit of class errors.
    TypeError
        If `fit` is given weights.

    Warns
    -----
    PrudentWarning
        If candidates could not be fitted: these are out.

    See Also
    --------
    SelectiveClassifier, ConformalClassifier, NeymanPearsonClassifier : One classifier
        under each promise.
    compare : Every candidate under a promise, held against rows that it has not seen.

    Notes
    -----
    Given the rows to learn from, the promise is proved for every classifier fitted to
    them; one that chooses there is such a classifier. Nothing about the held-out rows
    may play a part in the choice: a candidate chosen by them, or a rate, has no
    promise. The usefulness of a promise "error <= a" is the mean over 40 draws with
    replacement of m of the training rows of the share of rows above the threshold that
    the drawn rows certify by their scores out of fold, m the rows held out; of a
    coverage minus the mean size of the sets, cut by the scores out of fold; of limits
    of some classes minus the error of the others.

    Examples
    --------
    >>> from prudent import BestClassifier
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> best = BestClassifier(
    ...     ["logistic", "lda", "qda"], promise="error <= 5%", random_state=0
    ... ).fit(X, y)
    >>> best.best_name_, best.choice_results_["usefulness"].round(4)
    ('qda', array([0.954 , 0.8531, 0.9541]))
    >>> print(best.guarantees_[0])
    The selective error rate is at most 0.05 with confidence 0.95, assuming future rows
    are independent draws from the population of the calibration rows.
    >>> best.answers(X[:4])
    array([ True,  True,  True,  True])
    """

    def __init__(
        self,
        estimators: Any = None,
        *,
        promise: str | Guarantee | Sequence[Guarantee] = DEFAULT_PROMISE,
        confidence: float | None = 0.95,
        subgroups: SubgroupsOption = None,
        cv: int = 5,
        calibration_size: float | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimators = estimators
        self.promise = promise
        self.confidence = confidence
        self.subgroups = subgroups
        self.cv = cv
        self.calibration_size = calibration_size
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        groups: ArrayLike | None = None,
        time: ArrayLike | None = None,
        **unsupported: Any,
    ) -> Self:
        """Choose a candidate by part of the rows, and prove the promise on the rest.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows, of any kind that the candidates take.
        y : array-like of shape (n_samples,)
            Class labels.
        groups : array-like of shape (n_samples,), default=None
            Rows that belong together (of a patient, of a machine): they stay together
            in the folds and when rows are held out, and one random row of each group
            counts; the promise is then about a random row of a new group.
        time : array-like of shape (n_samples,), default=None
            When each row was taken: numbers, dates of any library or ISO dates. The
            latest rows are held out, extended back to a change of time (a group stands
            at its latest row), and the folds of the choice go forward: each judges
            rows that are later than those it learns from.
        **unsupported
            Anything else is an error: weighted rows have no exact binomial law.

        Returns
        -------
        self : BestClassifier
        """
        refuse_fit_parameters(type(self).__name__, unsupported)
        self._check_parameters()
        refuse_dask(X)
        X, y = indexable(X, y)
        y = _check_y(y)
        check_classes(y)
        labels = np.unique(y)
        check_two_classes(labels)
        seed = self.random_state
        if not isinstance(seed, Integral):
            seed = check_random_state(seed).randint(np.iinfo(np.int32).max)
        model = self._model(labels.tolist(), int(seed))
        self.model_ = model.fit(X, y, groups=groups, time=time)
        chosen = chosen_in(model)
        if chosen is None:  # conformal prediction fits a constant to one class
            raise ValueError(
                "BestClassifier: all rows that are not held out are of one class, so "
                "there is nothing to choose by; give more rows of each class."
            )
        if chosen.wish is not None:
            model.guarantees_ = promised(model, chosen.wish, 1)
        self.classes_ = model.classes_
        self.best_name_, self.best_estimator_ = (
            chosen.best_name_,
            chosen.best_estimator_,
        )
        self.choice_results_ = chosen.choice_results_
        self.n_candidates_ = chosen.n_candidates_
        self.n_calibration_ = getattr(model, "n_calibration_", 0)
        for origin, known in (
            (chosen, "n_features_in_"),
            (chosen, "feature_names_in_"),
            (model, "subgroups_"),
            (model, "subgroup_count_"),
            (model, "order_test_"),
        ):
            self.__dict__.pop(known, None)
            if hasattr(origin, known):
                setattr(self, known, getattr(origin, known))
        return self

    @property
    def _promising_parts(self) -> tuple[Any, ...]:
        """The models of which `guarantees_` are."""
        check_is_fitted(self)
        return (self.model_,)

    @property
    def guarantees_(self) -> tuple[Guarantee, ...]:
        """What `model_` promises; the evidence counts the candidates."""
        check_is_fitted(self)
        return tuple(getattr(self.model_, "guarantees_", ()))

    def predict(self, X: Any) -> NDArray[Any]:
        """Label of each row by `model_`.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return np.asarray(self._fitted().predict(X))

    @_model_has("predict_proba")
    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities of the candidate chosen.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return np.asarray(self._fitted().predict_proba(X))

    @_model_has("decision_function")
    def decision_function(self, X: Any) -> FloatArray:
        """Decision values of `model_`.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes), or (n_samples,) for two classes
        """
        return np.asarray(self._fitted().decision_function(X))

    @_model_has("predict_set")
    def predict_set(self, X: Any, **options: Any) -> BoolArray:
        """Classes that a row may have, by `model_`, which takes the options.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
        **options
            Of `predict_set` of `model_`, such as `level` of a coverage.

        Returns
        -------
        ndarray of bool, shape (n_samples, n_classes)
        """
        members: BoolArray = self._fitted().predict_set(X, **options)
        return members

    @_model_has("answers")
    def answers(self, X: Any) -> BoolArray:
        """Whether each row is answered, under a promise about answers.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)

        Returns
        -------
        ndarray of bool, shape (n_samples,)
        """
        answered: BoolArray = self._fitted().answers(X)
        return answered

    @_model_has("p_values")
    def p_values(self, X: Any) -> FloatArray:
        """Conformal p-value of each row under each label, under a coverage.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return np.asarray(self._fitted().p_values(X))

    @property
    def _delegate(self) -> Any:
        """What answers and promises in its place, and knows the rows of the fit."""
        return self.model_

    def _fitted(self) -> Any:
        check_is_fitted(self)
        return self.model_

    def _check_parameters(self) -> None:
        """Refuse parameters out of range, and unknown names, before any work."""
        candidates(self.estimators)
        if not isinstance(self.cv, Integral) or self.cv < 2:
            raise ValueError(f"`cv` must be an integer >= 2, got {shown(self.cv)}.")
        if self.confidence is not None:
            check_fraction("confidence", self.confidence)
        if self.calibration_size is not None:
            check_fraction("calibration_size", self.calibration_size)

    def _model(self, labels: list[Any], seed: int) -> Any:
        """What is fitted: the wrapper of the promise around the choice."""
        wish = parse_promise(
            *(self.promise, labels),
            confidence=self.confidence,
            by=names_of_subgroups(self.subgroups),
        )
        chosen = ChosenClassifier(
            self.estimators,
            wish=wish,
            share=self.calibration_size,
            cv=self.cv,
            random_state=seed,
        )
        if wish is None:
            return chosen
        settings = (
            {}
            if self.calibration_size is None
            else {"calibration_size": self.calibration_size}
        )
        return wrap(
            *(chosen, wish),
            n_classes=len(labels),
            n_methods=1,
            random_state=seed,
            subgroups=self.subgroups,
        ).set_params(**settings)
