"""Choose a classifier inside its training part, and keep a promise with it.

Given the rows that a wrapper learns from, its promise is proved for any classifier
fitted to them; one that chooses there, by cross-validation, is such a classifier. So
the choice costs no correction of the level, as long as it sees nothing of the rows
held out.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import GroupKFold, KFold
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_y, check_is_fitted, indexable

from prudent.certification.held_out import class_scores
from prudent.core.classes import log_odds_against, max_probability
from prudent.core.order import forward_folds
from prudent.core.types import FloatArray, IntArray
from prudent.estimator_tools import (
    check_classes,
    check_groups,
    check_times,
    fit_inside,
)
from prudent.estimator_tools.labelled_rows import in_front
from prudent.evaluation.estimators import FEWEST_TO_LEARN, FrequentClasses
from prudent.evaluation.methods import Method, candidates
from prudent.evaluation.promising import (
    MAY_BE_LACKING,
    each_confidence,
    held_out_share,
)
from prudent.exceptions import PrudentWarning
from prudent.io.errors import thousands
from prudent.rules.usefulness import (
    Usefulness,
    answers_usefulness,
    class_errors_usefulness,
    labels_usefulness,
    ranking,
    sets_usefulness,
    surest_usefulness,
)
from prudent.rules.wish import Wish, rounded

LONGEST_REASON = 300
UNKNOWN = (np.nan, np.nan)
NOT_REACHED = "not judged within {:g} s"

#: Told which candidate, and which of how many folds, is being fitted.
Progress = Callable[[str, int, int], None]
_progress: ContextVar[Progress | None] = ContextVar("progress", default=None)


@contextmanager
def reporting_to(progress: Progress | None) -> Iterator[None]:
    """Tell of every fit of a candidate that is made inside."""
    before = _progress.set(progress)
    try:
        yield
    finally:
        _progress.reset(before)


class ChosenClassifier(ClassifierMixin, BaseEstimator):
    """The candidate that would be most useful under a promise, fitted to all rows.

    Each candidate scores the rows out of fold, and these scores tell what it could do
    under the promise, see :mod:`prudent.rules.usefulness`. What is fitted to the rows
    that a promise rests on must not be chosen by them: this belongs inside a wrapper.

    `share` is that of the rows that the wrapper around it holds out; `preparation` is a
    transformer, not fitted, in front of each candidate but those that take the rows as
    they were given.
    """

    chooses = True

    def __init__(
        self,
        estimators: Any = None,
        *,
        wish: Wish | None = None,
        share: float | None = None,
        cv: int = 5,
        random_state: int = 0,
        time_limit: float | None = None,
        preparation: Any = None,
    ) -> None:
        self.estimators = estimators
        self.wish = wish
        self.share = share
        self.cv = cv
        self.random_state = random_state
        self.time_limit = time_limit
        self.preparation = preparation

    def methods(self) -> tuple[Method, ...]:
        """The candidates."""
        return candidates(self.estimators)

    def candidate(self, name: str) -> Any:
        """A candidate, not fitted."""
        (method,) = (method for method in self.methods() if method.name == name)
        return method.estimator(self.random_state)

    def fit(
        self,
        X: Any,
        y: Any,
        groups: ArrayLike | None = None,
        time: ArrayLike | None = None,
    ) -> Self:
        """Judge the candidates by folds of these rows, and fit the best to all."""
        methods = self.methods()
        X, y = indexable(X, y)
        y = _check_y(y)
        check_classes(y)
        folds = self._folds(len(y), groups, time)
        judged, failed = self._judge_all(methods, X, y, folds)
        order = [list(judged)[k] for k in ranking([*judged.values()])]
        for name in tuple(order):
            (method,) = (method for method in methods if method.name == name)
            model = self._new(method, y)
            try:
                fit_inside(model, X, y, groups=groups, time=time, is_learner=True)
            except Exception as raised:
                failed[name] = raised
                order.remove(name)
            else:
                break
        self._say_who_is_out(failed, len(methods), anybody=bool(order))
        self.best_name_, self.best_estimator_ = order[0], model
        self.classes_ = model.classes_
        self.n_candidates_, self.n_rows_ = len(methods), len(y)
        names = [method.name for method in methods]
        values = np.array([judged.get(name, UNKNOWN) for name in names])
        ranks = [order.index(name) + 1 if name in order else 0 for name in names]
        reasons = [_reason(failed[name]) if name in failed else "" for name in names]
        self.choice_results_ = {
            "name": np.array(names),
            "usefulness": values[:, 0],
            "second": values[:, 1],
            "rank": np.array(ranks),
            "failed": np.array(reasons),
        }
        learned = model.estimator_ if isinstance(model, FrequentClasses) else model
        for known in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(known, None)
            if hasattr(learned, known):
                setattr(self, known, getattr(learned, known))
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Label of each row by the candidate chosen."""
        check_is_fitted(self)
        return np.asarray(self.best_estimator_.predict(X))

    @available_if(lambda chosen: _best_has(chosen, "predict_proba"))
    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities by the candidate chosen."""
        check_is_fitted(self)
        return np.asarray(self.best_estimator_.predict_proba(X))

    @available_if(lambda chosen: _best_has(chosen, "decision_function"))
    def decision_function(self, X: Any) -> FloatArray:
        """Decision values by the candidate chosen."""
        check_is_fitted(self)
        return np.asarray(self.best_estimator_.decision_function(X))

    def _judge_all(
        self,
        methods: Sequence[Method],
        X: Any,
        y: NDArray[Any],
        folds: Sequence[tuple[IntArray, IntArray]],
    ) -> tuple[dict[str, Usefulness], dict[str, Exception]]:
        """How useful each candidate would be, and why others are out."""
        limit = math.inf if self.time_limit is None else self.time_limit
        end = time.monotonic() + limit
        judged: dict[str, Usefulness] = {}
        failed: dict[str, Exception] = {}
        for method in methods:
            # One has to be judged, however long it takes.
            last = end if judged else math.inf
            try:
                judged[method.name] = self._judged(method, X, y, folds, last)
            except Exception as raised:
                failed[method.name] = raised
        return judged, failed

    def _say_who_is_out(
        self, failed: dict[str, Exception], n_methods: int, *, anybody: bool
    ) -> None:
        if not anybody:
            name, error = next(iter(failed.items()))
            same = all(isinstance(e, TypeError) for e in failed.values())
            raise (TypeError if same else ValueError)(
                f"BestClassifier: none of {n_methods} candidates could be fitted; "
                f"{name}: {_reason(error)}"
            ) from error
        if failed:
            out = "; ".join(f"{name}: {_reason(e)}" for name, e in failed.items())
            warnings.warn(
                f"BestClassifier: {len(failed)} of {n_methods} candidates "
                f"{'is' if len(failed) == 1 else 'are'} out: {out}",
                PrudentWarning,
                stacklevel=3,
            )

    def _folds(
        self, n_rows: int, groups: ArrayLike | None, time: ArrayLike | None
    ) -> Sequence[tuple[IntArray, IntArray]]:
        """Training and judged rows of each fold; groups stay whole, times go forward.

        By times the first rows are never judged, but learned from only.
        """
        names = None if groups is None else check_groups(groups, n_rows)
        self._n_units = n_rows if names is None else len(np.unique(names))
        if time is not None:
            if len(np.unique(time)) < 2:
                raise ValueError(
                    "all rows but the latest, which BestClassifier holds out, have one "
                    "time, and no fold can go forward: give finer times."
                )
            times = check_times(time, n_rows, names)
            return forward_folds(times, min(self.cv, len(np.unique(times)) - 1))
        splitter: Any = KFold if names is None else GroupKFold
        n_folds = max(2, min(self.cv, self._n_units))
        folds = splitter(n_folds, shuffle=True, random_state=self.random_state)
        return list(folds.split(np.empty((n_rows, 1)), groups=names))

    def _new(self, method: Method, y: NDArray[Any]) -> Any:
        """A candidate, not fitted, that a class of few rows does not stop."""
        estimator = in_front(self.preparation, method.estimator(self.random_state))
        _, counts = np.unique(y, return_counts=True)
        rare = counts.min() < MAY_BE_LACKING
        return FrequentClasses(estimator) if rare else estimator

    def _judged(
        self,
        method: Method,
        X: Any,
        y: NDArray[Any],
        folds: Sequence[tuple[IntArray, IntArray]],
        end: float,
    ) -> Usefulness:
        """How useful a candidate would be, by its scores out of fold, until the end."""
        labels, codes = np.unique(y, return_inverse=True)
        progress = _progress.get()
        scores, probable = np.empty((len(y), len(labels))), True
        for number, (train, judged) in enumerate(folds, start=1):
            if time.monotonic() > end:
                raise TimeoutError(NOT_REACHED.format(self.time_limit))
            if progress is not None:
                progress(method.name, number, len(folds))
            if (np.bincount(codes[train]) >= FEWEST_TO_LEARN).sum() < 2:
                # Nothing can be learned: the same answer by every candidate.
                scores[judged] = np.arange(len(labels)) == codes[train[0]]
                continue
            model = self._new(method, y)
            with warnings.catch_warnings():
                # What is wrong with the winner is said when it is fitted to all rows.
                warnings.simplefilter("ignore")
                model.fit(_safe_indexing(X, train), y[train])
                values, _ = class_scores(model, _safe_indexing(X, judged))
            if np.isnan(values).any():
                raise ValueError("it gave NaN scores.")
            probable = hasattr(model, "predict_proba")
            lacking = 0.0 if probable else -np.inf
            part = np.full((len(judged), len(labels)), lacking)
            part[:, np.searchsorted(labels, model.classes_)] = values
            scores[judged] = part
        every = np.sort(np.concatenate([judged for _, judged in folds]))
        return self._usefulness(scores[every], codes[every], labels, probable=probable)

    def _usefulness(
        self,
        scores: FloatArray,
        codes: IntArray,
        labels: NDArray[Any],
        *,
        probable: bool,
    ) -> Usefulness:
        wish = self.wish
        if wish is None:
            return labels_usefulness(scores, codes)
        share = held_out_share(wish) if self.share is None else self.share
        n_held_out = max(1, round(self._n_units * share / (1 - share)))
        rate = rounded(wish.allowed)
        certain = None if wish.confidence is None else each_confidence(wish, 1)
        if wish.kind in ("error", "answered"):
            sureness = max_probability(scores) if probable else _lead(scores)
            wrong = scores.argmax(axis=1) != codes
            if wish.kind == "answered":
                return surest_usefulness(sureness, wrong, share=1 - rate)
            assert certain is not None
            return answers_usefulness(
                sureness, wrong, n_held_out, rate=rate, confidence=certain
            )
        if wish.kind == "coverage":
            plausible = -log_odds_against(scores) if probable else _over_others(scores)
            return sets_usefulness(
                *(plausible, codes),
                rates=rate,
                by_class=wish.by_class,
                confidence=certain,
            )
        assert certain is not None
        known = labels.tolist()
        limits = {known.index(g.scope): g.bound for g in wish.guarantees}
        if len(limits) == len(known):
            rates = [limits[k] for k in range(len(known))]
            return sets_usefulness(
                scores, codes, rates=rates, by_class=True, confidence=certain
            )
        return class_errors_usefulness(
            scores, codes, n_held_out, limits=limits, confidence=certain ** len(limits)
        )


def chosen_in(model: Any) -> ChosenClassifier | None:
    """The choice inside a fitted model, or None if it made none."""
    while not isinstance(model, ChosenClassifier):
        if isinstance(model, Pipeline):
            model = model[-1]
        elif hasattr(model, "_delegate"):
            model = model._delegate
        elif hasattr(model, "estimator_"):
            model = model.estimator_
        else:
            return None
    return model


# What the usefulness under a promise means, of the winner and of the second.
EXPECTED = {
    "error": "expected to answer {0:.2f}; {2} {1:.2f}",
    "answered": "expected error of the answered {0:.3f}; {2} {1:.3f}",
    "coverage": "expected sets of {0:.2f} classes; {2} {1:.2f}",
    "missed": "expected error of the other classes {0:.2f}; {2} {1:.2f}",
    "sets": "expected sets of {0:.2f} classes; {2} {1:.2f}",
    None: "expected error {0:.2f}; {2} {1:.2f}",
}


def choice_in_words(chosen: ChosenClassifier, n_held_out: int) -> str:
    """Who was chosen, how useful it should be, and by how many rows."""
    results, wish = chosen.choice_results_, chosen.wish
    first, second = (np.flatnonzero(results["rank"] == rank) for rank in (1, 2))
    expected = EXPECTED[None]
    if wish is not None:
        in_sets = wish.kind == "missed" and len(wish.guarantees) == len(chosen.classes_)
        expected = EXPECTED["sets" if in_sets else wish.kind]
    if not len(second):
        expected, second = expected.partition(";")[0], first
    useful = np.abs(results["usefulness"])
    best, other = int(first[0]), int(second[0])
    values = expected.format(useful[best], useful[other], results["name"][other])
    prove = f", {thousands(n_held_out)} others prove it" if n_held_out else ""
    return (
        f"best of {chosen.n_candidates_}: {chosen.best_name_} ({values}); "
        f"{thousands(chosen.n_rows_)} rows chose it{prove}"
    )


def _best_has(chosen: ChosenClassifier, method: str) -> bool:
    """Before `fit` any candidate may be chosen; probabilities are the rule."""
    if not hasattr(chosen, "best_estimator_"):
        return method == "predict_proba"
    return hasattr(chosen.best_estimator_, method)


def _lead(scores: FloatArray) -> FloatArray:
    """Lead of the best over the second decision value of each row."""
    best_two = np.partition(scores, -2, axis=1)[:, -2:]
    lead: FloatArray = best_two[:, 1] - best_two[:, 0]
    return lead


def _over_others(scores: FloatArray) -> FloatArray:
    """Decision value of each class minus the largest other, -inf where it has none."""
    order = np.sort(scores, axis=1)
    best, second = order[:, -1:], order[:, -2:-1]
    others = np.where(scores == best, second, best)
    return np.where(np.isfinite(scores), scores - others, -np.inf)


def _reason(error: Exception) -> str:
    """First line of what an exception says, or its name if it says nothing."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:LONGEST_REASON]
