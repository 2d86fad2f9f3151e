"""A classifier around another one: rows held out, and scores that rank its answers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_y, check_is_fitted, indexable

from prudent.core.binomial import check_fraction
from prudent.core.classes import max_probability, told_apart
from prudent.core.rows import held_out_count
from prudent.core.types import FloatArray
from prudent.core.validation import refuse_nan, shown
from prudent.estimator_tools import (
    HeldOutEstimator,
    check_classes,
    class_decisions,
    decision_values,
    fit_inside,
    model_name,
    other_probabilities,
    refuse_dask,
)
from prudent.estimator_tools.subgroups import SubgroupsOption
from prudent.exceptions import PrudentWarning
from prudent.rules.scores import Rounding, rounding_of

# What to do where the draw took all rows of a class.
REDRAWN = (
    "Give more such rows, or a fitted model in FrozenEstimator; another random_state "
    "(--seed) chosen after this would void the promise."
)
MOST_NAMED = 5
Scoring = Literal["max_probability", "margin"] | Callable[[Any, Any], Any]


def _has_probabilities(wrapper: HeldOutClassifier) -> bool:
    """Whether the inner classifier, fitted or not, gives probabilities."""
    inner = getattr(wrapper, "estimator_", wrapper.estimator)
    return hasattr(inner, "predict_proba")


class HeldOutClassifier(ClassifierMixin, HeldOutEstimator):
    """A classifier around another one, with rows that the inner one never sees.

    A subclass writes `_check_parameters`, which refuses parameters before any work,
    `_scores`, which gives the scores and labels of the held-out rows, and `_rule`,
    which makes of them the rule with its promises.
    """

    calibration_size: float
    random_state: Any
    subgroups: SubgroupsOption = None

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        groups: ArrayLike | None = None,
        time: ArrayLike | None = None,
        **unsupported: Any,
    ) -> Self:
        """Fit the estimator to part of the rows, and find the cut on the rest.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Rows, of any kind that the estimator takes.
        y : array-like of shape (n_samples,)
            Class labels.
        groups : array-like of shape (n_samples,), default=None
            Rows that belong together (of a patient, of a machine). Whole groups are
            held out and one random row of each counts; the promise is then about a
            random row of a new group.
        time : array-like of shape (n_samples,), default=None
            When each row was taken: numbers, dates of any library or ISO dates. The
            latest rows are held out, extended back to a change of time (a group stands
            at its latest row), so that the promise holds for future rows that are like
            these, however earlier ones differ.
        **unsupported
            Anything else is an error: weighted rows have no exact binomial law.

        Returns
        -------
        self : estimator
        """
        self._check_parameters()
        refuse_fit_parameters(type(self).__name__, unsupported)
        _check_inner(type(self).__name__, self.estimator)
        check_fraction("calibration_size", self.calibration_size)
        refuse_dask(X)
        X, y = indexable(X, y)
        y = _check_y(y)
        check_classes(y)
        random = check_random_state(self.random_state)
        if isinstance(self.estimator, FrozenEstimator):
            check_is_fitted(self.estimator)
        else:
            self._check_shares(y, groups)
        self._unlearned: list[Any] = np.unique(y).tolist()
        self._learn_subgroups(X, self.subgroups)
        self._fit_held_out(X, y, random, groups, time)
        self.__dict__.pop("_memberships", None)
        return self

    def _check_parameters(self) -> None:
        """Refuse parameters out of range, before any work."""
        raise NotImplementedError

    def _check_shares(self, y: NDArray[Any], groups: ArrayLike | None) -> None:
        """Refuse rows of which one part or the other would be too few."""
        name, n = type(self).__name__, len(y)
        n_held_out = held_out_count(n, self.calibration_size)
        if n == 0:
            raise ValueError(f"{name}: `X` holds 0 rows; give at least 3.")
        if groups is None and n - n_held_out < 2:
            raise ValueError(
                f"{name}: `calibration_size={self.calibration_size:g}` of {n} row(s) "
                f"leaves {n_held_out} held-out and {n - n_held_out} training rows "
                "(1 sample is too few); both need rows."
            )
        if (y == y[0]).all():
            raise ValueError(
                f"{name}: all rows are of class {shown(y[0])}; give rows of at "
                "least 2 classes, or a fitted model in FrozenEstimator."
            )

    def _fit_part(
        self, X: Any, y: Any, random: np.random.RandomState, **given: Any
    ) -> None:
        """Fit a clone of the estimator to these rows; a frozen one is left as it is."""
        if isinstance(self.estimator, FrozenEstimator):
            self.estimator_, self._unlearned = self.estimator, []
        else:
            self._refuse_unlearned(y)
            self.estimator_ = fit_inside(
                clone(self.estimator), X, y, is_learner=True, **given
            )
        if not hasattr(self.estimator_, "classes_"):
            raise TypeError(
                f"{type(self).__name__}: {model_name(self.estimator)} is no "
                "classifier: after `fit` it has no `classes_`."
            )
        self.classes_ = self.estimator_.classes_
        for known in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(known, None)
            if hasattr(self.estimator_, known):
                setattr(self, known, getattr(self.estimator_, known))

    def _refuse_unlearned(self, y: NDArray[Any]) -> None:
        """Say which classes have no row to learn from; refuse if one alone has."""
        self._unlearned = np.setdiff1d(self._unlearned, y).tolist()
        if self._unlearned and (y == y[0]).all():
            raise ValueError(
                f"{type(self).__name__}: {self._lost(self._unlearned)}, so one class "
                f"alone is left to learn. {REDRAWN}"
            )
        if self._unlearned:
            # Their held-out rows count as wrong, as future ones will.
            lost = self._lost(self._unlearned)
            self._warn(
                f"{lost}, so these rows are never answered right, and count as wrong. "
                f"{REDRAWN}",
                stacklevel=6,
            )

    def _lost(self, labels: list[Any]) -> str:
        """Name the classes of which the draw held out every row."""
        named = named_first([shown(label) for label in labels])
        classes = "class" if len(labels) == 1 else "classes"
        return f"no row of {classes} {named} is outside the held-out part"

    def _warn(self, text: str, stacklevel: int = 5) -> None:
        """Warn of what the promise lacks, as the caller of `fit` or of a copy."""
        warnings.warn(
            f"{type(self).__name__}: {text}", PrudentWarning, stacklevel=stacklevel
        )

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities of the estimator, of which the answers make what is promised.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of `classes_`.
        """
        rows = self._checked(X)
        return np.asarray(self.estimator_.predict_proba(rows))

    def _checked(self, X: Any) -> Any:
        """Rows to answer, as they came: the inner estimator knows its own kind."""
        check_is_fitted(self)
        refuse_dask(X)
        return X

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self.estimator is not None:
            inner = get_tags(self.estimator)
            tags.input_tags = inner.input_tags
            if inner.classifier_tags is not None:
                tags.classifier_tags = inner.classifier_tags
        return tags


def named_first(names: Sequence[str]) -> str:
    """The first names of a list that may be long."""
    more = len(names) - MOST_NAMED
    also = f" and {more} more" if more > 0 else ""
    return f"{', '.join(names[:MOST_NAMED])}{also}"


def refuse_fit_parameters(name: str, given: Mapping[str, Any]) -> None:
    """Refuse what `fit` cannot take: weights, and anything else by name."""
    if "sample_weight" in given:
        raise TypeError(
            f"{name}: `sample_weight` is not supported: weighted rows have no exact "
            "binomial law, so nothing could be promised; leave the weights out, or "
            "fit with them and hand the model over in FrozenEstimator."
        )
    if given:
        raise TypeError(
            f"{name}: `fit` takes X, y, groups and time, got "
            f"{', '.join(sorted(given))}; set such options on the estimator."
        )


def _check_inner(name: str, estimator: Any) -> None:
    """Refuse an `estimator` that can be no classifier, before any work."""
    if estimator is None:
        raise ValueError(
            f"{name}: `estimator` is None; give a classifier, or a fitted one in "
            "FrozenEstimator."
        )
    if not (hasattr(estimator, "fit") and hasattr(estimator, "predict")):
        raise TypeError(
            f"{name}: `estimator` must be a classifier, got {shown(estimator)}."
        )


# --- scores of rows by a fitted classifier --------------------------------------------


def class_scores(model: Any, X: Any) -> tuple[FloatArray, Rounding]:
    """Score of every class (n_rows, n_classes): higher is more likely.

    And how far apart scores may be that are equal.

    It is `predict_proba`, or without it `decision_function`, of two classes minus and
    plus its value.
    """
    if hasattr(model, "predict_proba"):
        values = np.asarray(model.predict_proba(X))
        if values.shape[1:] != np.shape(model.classes_):
            raise other_probabilities(model, values)
        rounding = rounding_of(values, probabilities=True)
        return np.asarray(values, dtype=np.float64), rounding
    decision = class_decisions(model, X)
    if decision.ndim == 1:
        decision = np.column_stack([-decision, decision])
    return np.asarray(decision, dtype=np.float64), rounding_of(decision)


def answer_scores(model: Any, X: Any, scoring: Scoring) -> tuple[FloatArray, Rounding]:
    """Score of each row (n_rows,), never NaN; rows of higher score are answered first.

    And how far apart scores may be that are equal.

    "max_probability" is the largest entry p of `predict_proba`, or log(p / (1 - p))
    where p rounds to 1; "margin" is the lead of the largest of `decision_function` over
    the second, or the absolute value of a single column. Where a model has only the
    other method, that is used; a callable gives the scores itself.
    """
    if callable(scoring):
        values = np.asarray(scoring(model, X))
        scores, rounding = np.asarray(values, dtype=np.float64), rounding_of(values)
    elif hasattr(model, "predict_proba") and (
        scoring == "max_probability" or not hasattr(model, "decision_function")
    ):
        probabilities, rounding = class_scores(model, X)
        if scoring == "max_probability":
            scores = max_probability(probabilities)
        else:  # where leads round to 1, by the log odds
            scores = told_apart(_margin(probabilities), probabilities)
            rounding = replace(rounding, probabilities=False)
    else:
        values = decision_values(model, X)
        scores = _margin(np.asarray(values, dtype=np.float64))
        rounding = rounding_of(values)
    if scores.ndim != 1:
        raise ValueError(
            f"`scoring` must give one score for each row, got shape {scores.shape}."
        )
    refuse_nan(
        scores, "`scoring` gave NaN for {}; rows without a score cannot be ranked."
    )
    return scores, rounding


def check_scoring(scoring: Any) -> None:
    """Refuse a `scoring` that is neither a name nor a callable."""
    if not (callable(scoring) or scoring in ("max_probability", "margin")):
        raise ValueError(
            "`scoring` must be 'max_probability', 'margin' or a callable, got "
            f"{shown(scoring)}."
        )


def _margin(scores: FloatArray) -> FloatArray:
    """Absolute value of one column, lead of the best over the second of several."""
    if scores.ndim == 1:
        return np.abs(scores)
    two_best = np.partition(scores, -2, axis=1)[:, -2:]
    lead: FloatArray = two_best[:, 1] - two_best[:, 0]
    return lead
