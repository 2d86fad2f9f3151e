"""Fit a classifier and hold out the rows that its promise rests on."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import (
    _safe_indexing,  # takes rows of any table that scikit-learn takes
    check_random_state,
    get_tags,
)
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_y, check_is_fitted, indexable

from prudent.certification.scores import name_of
from prudent.core.assumptions import Assumption
from prudent.core.binomial import check_fraction
from prudent.core.holdout import held_out_count
from prudent.core.validation import shown
from prudent.estimator_tools import hold_out_unseen, refuse_dask
from prudent.exceptions import PrudentWarning

# What to do where the draw took all rows of a class.
REDRAWN = (
    "Give more such rows, or a fitted model in FrozenEstimator; another "
    "`random_state` chosen after this would void the promise."
)
MOST_NAMED = 5


class HeldOutClassifier(ClassifierMixin, BaseEstimator):
    """A classifier around another one, with rows that the inner one never sees.

    A class has `_check_parameters`, `_rank` and `_choose`.
    """

    estimator: Any
    calibration_size: float
    random_state: Any

    def fit(
        self, X: Any, y: Any, *, groups: ArrayLike | None = None, **unsupported: Any
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
        **unsupported
            Anything else is an error: weighted rows have no exact binomial law.

        Returns
        -------
        self : estimator
        """
        name = type(self).__name__
        self._check_parameters()
        _refuse_fit_parameters(name, unsupported)
        _check_inner(name, self.estimator)
        check_fraction("calibration_size", self.calibration_size)
        refuse_dask(X)
        X, y = indexable(X, y)
        y = _check_y(y)
        check_classification_targets(y)
        random = check_random_state(self.random_state)
        self._promised_per_group = groups is not None
        if isinstance(self.estimator, FrozenEstimator):
            check_is_fitted(self.estimator)
        else:
            self._check_shares(y, groups)
        split = hold_out_unseen(self, X, random, groups)
        self.estimator_ = self._fitted(X, y, split.fit)
        if not hasattr(self.estimator_, "classes_"):
            raise TypeError(
                f"{name}: {name_of(self.estimator)} is no classifier: after "
                "`fit` it has no `classes_`."
            )
        self.classes_ = self.estimator_.classes_
        for known in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(known, None)
            if hasattr(self.estimator_, known):
                setattr(self, known, getattr(self.estimator_, known))
        self.n_calibration_ = len(split.held_out)
        self._rank(_safe_indexing(X, split.held_out), y[split.held_out])
        return self._choose()

    def _check_parameters(self) -> None:
        """Refuse parameters out of range, before any work."""
        raise NotImplementedError

    def _rank(self, rows: Any, labels: NDArray[Any]) -> None:
        """Keep what cuts are chosen by, of held-out rows and their labels."""
        raise NotImplementedError

    def _choose(self) -> Self:
        """Find the cut that was asked for, and its promise."""
        raise NotImplementedError

    def _check_shares(self, y: NDArray[Any], groups: ArrayLike | None) -> None:
        """Refuse rows of which one part or the other would be too few."""
        name, n = type(self).__name__, len(y)
        n_held_out = held_out_count(n, self.calibration_size)
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

    def _fitted(self, X: Any, y: NDArray[Any], rows: NDArray[np.intp]) -> Any:
        """The estimator, fitted to these rows unless it is frozen."""
        self._unlearned: list[Any] = []
        if isinstance(self.estimator, FrozenEstimator):
            return self.estimator
        self._unlearned = np.setdiff1d(y, y[rows]).tolist()
        if self._unlearned and (y[rows] == y[rows][0]).all():
            raise ValueError(
                f"{self._lost(self._unlearned)}, so one class alone is left to learn. "
                f"{REDRAWN}"
            )
        if self._unlearned:
            # Their held-out rows count as wrong, as future ones will.
            warnings.warn(
                f"{self._lost(self._unlearned)}, so these rows are never answered "
                f"right, and count as wrong. {REDRAWN}",
                PrudentWarning,
                stacklevel=3,
            )
        return clone(self.estimator).fit(_safe_indexing(X, rows), y[rows])

    def _lost(self, labels: list[Any]) -> str:
        named = ", ".join(map(shown, labels[:MOST_NAMED]))
        if len(labels) > MOST_NAMED:
            named += f" and {len(labels) - MOST_NAMED} more"
        classes = "class" if len(labels) == 1 else "classes"
        return (
            f"{type(self).__name__}: no row of {classes} {named} is outside the "
            "held-out part"
        )

    def _checked(self, X: Any) -> Any:
        """Rows to answer, as they came: the inner estimator knows its own kind."""
        check_is_fitted(self)
        refuse_dask(X)
        return X

    def _assumptions(self) -> tuple[Assumption, ...]:
        """What the promises of this fit rest on."""
        by_group = self._promised_per_group
        rows = Assumption.GROUPS if by_group else Assumption.INDEPENDENT
        if isinstance(self.estimator, FrozenEstimator):
            return rows, Assumption.UNSEEN
        return (rows,)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self.estimator is not None:
            inner = get_tags(self.estimator)
            tags.input_tags = inner.input_tags
            if inner.classifier_tags is not None:
                tags.classifier_tags = inner.classifier_tags
        return tags


def _refuse_fit_parameters(name: str, given: Mapping[str, Any]) -> None:
    if "sample_weight" in given:
        raise TypeError(
            f"{name}: `sample_weight` is not supported: weighted rows have no exact "
            "binomial law, so nothing could be promised; leave the weights out, or "
            "fit with them and hand the model over in FrozenEstimator."
        )
    if given:
        raise TypeError(
            f"{name}: `fit` takes X, y and groups, got {', '.join(sorted(given))}; "
            "set such options on the estimator."
        )


def _check_inner(name: str, estimator: Any) -> None:
    if estimator is None:
        raise ValueError(
            f"{name}: `estimator` is None; give a classifier, or a fitted one in "
            "FrozenEstimator."
        )
    if not (hasattr(estimator, "fit") and hasattr(estimator, "predict")):
        raise TypeError(
            f"{name}: `estimator` must be a classifier, got {shown(estimator)}."
        )
