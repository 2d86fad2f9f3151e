"""What rows are answered: by a wrapper, at a rate, by a rule, or already."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _num_samples, check_is_fitted

from prudent.core.binomial import check_fraction, fewest_rows
from prudent.core.guarantee import (
    ALARM,
    ALARMS,
    NOT_A_RATE,
    Guarantee,
    violated_rows,
)
from prudent.core.selection import (
    NullShare,
    Selection,
    check_selection,
    rows_needed,
    select_rows,
)
from prudent.core.types import BoolArray, FloatArray
from prudent.core.validation import missing_labels, refuse_twice
from prudent.estimator_tools.subgroups import Subgroups
from prudent.exceptions import PrudentWarning
from prudent.rules.bands import ThresholdBands, false_alarm_bands
from prudent.rules.promise import scores_of_classes
from prudent.rules.rule import Rule
from prudent.rules.scores import CalibrationScores, Rounding
from prudent.rules.subgroups import Memberships, rows_named
from prudent.rules.wish import CONFIDENCE


def predict_set(estimator: Any, X: Any) -> BoolArray:
    """Set of classes that a fitted estimator cannot rule out, for each row.

    Works through `Pipeline`, search objects such as `GridSearchCV`, and
    `FrozenEstimator`, none of which forwards `predict_set` by itself.

    Parameters
    ----------
    estimator : fitted estimator
        One with `predict_set`, or a meta-estimator around it.
    X : array-like or data frame of shape (n_samples, n_features)
        Rows as the outermost estimator takes them.

    Returns
    -------
    sets : ndarray of bool, shape (n_samples, n_classes)
        Columns in the order of `classes_`.

    Raises
    ------
    TypeError
        If no estimator inside has `predict_set`.

    Examples
    --------
    >>> import prudent
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = load_iris(return_X_y=True)
    >>> model = make_pipeline(
    ...     StandardScaler(), prudent.ImpreciseDiscriminantAnalysis()
    ... ).fit(X, y)
    >>> prudent.predict_set(model, X[:2])
    array([[ True, False, False],
           [ True, False, False]])
    """
    while not hasattr(estimator, "predict_set"):
        inner = getattr(estimator, "estimator_", getattr(estimator, "estimator", None))
        within, X = within_of(estimator, X)
        within = inner if within is None else within
        if within is None:
            noun = "classifier" if is_classifier(estimator) else "object"
            raise TypeError(
                f"{noun} {type(estimator).__name__} has no `predict_set`; use one of "
                "prudent's set-valued classifiers."
            )
        estimator = within
    sets: BoolArray = estimator.predict_set(X)
    return sets


def model_name(model: Any) -> str:
    """Class of a model; of a frozen one what is inside."""
    inner = model.estimator if isinstance(model, FrozenEstimator) else model
    return type(inner).__name__


def decision_values(model: Any, X: Any) -> NDArray[Any]:
    """`decision_function` of a model without `predict_proba`, (n,) or (n, n_classes).

    In the precision of the model, by which equal values are told.
    Raises TypeError for a model that has neither.
    """
    if not hasattr(model, "decision_function"):
        raise TypeError(
            f"{model_name(model)} has neither predict_proba nor "
            "decision_function, so its answers cannot be ranked."
        )
    decision = np.asarray(model.decision_function(X))
    return decision[:, 0] if decision.shape[1:] == (1,) else decision


def other_probabilities(model: Any, probabilities: NDArray[Any]) -> TypeError:
    """What is wrong with probabilities that are not a column for each class."""
    return TypeError(
        f"{model_name(model)}: `predict_proba` gives an array of shape "
        f"{probabilities.shape} for {len(model.classes_)} classes; a column for each "
        "is needed."
    )


def class_decisions(model: Any, X: Any) -> NDArray[Any]:
    """`decision_values` with one column a class, or (n,) of two.

    Raises TypeError for a model with a column for each pair of classes, as some have.
    """
    decision = decision_values(model, X)
    if decision.ndim == 1:
        return decision
    n_classes, n_columns = len(model.classes_), decision.shape[1]
    if n_columns != n_classes or (n_classes > 2 and _scores_pairs(model)):
        raise TypeError(
            f"{model_name(model)}: `decision_function` gives {n_columns} columns for "
            f"{n_classes} classes, not one for each; one score a class is needed."
        )
    return decision


def _scores_pairs(model: Any) -> bool:
    """Whether a model, or what answers inside it, scores pairs of classes.

    Of three classes there are as many pairs as classes.
    """
    while True:
        inner = model[-1] if isinstance(model, Pipeline) else delegate(model)
        if isinstance(model, FrozenEstimator):
            inner = model.estimator
        if inner is None:
            return getattr(model, "decision_function_shape", None) == "ovo"
        model = inner


def delegate(estimator: Any) -> Any | None:
    """What a fitted estimator hands rows on to as they are; None: it answers itself.

    The model that keeps a promise around a choice, or the winner of a search.
    """
    within = getattr(estimator, "_delegate", None)
    return getattr(estimator, "best_estimator_", None) if within is None else within


def within_of(estimator: Any, X: Any) -> tuple[Any | None, Any]:
    """What answers inside a pipeline or a `delegate`, and rows as it sees them.

    None, and the rows as they are, for what answers itself.
    """
    if isinstance(estimator, Pipeline):
        X = estimator[:-1].transform(X) if len(estimator.steps) > 1 else X
        return estimator[-1], X
    return delegate(estimator), X


def scored_alarms(detector: Any, X: Any) -> tuple[BoolArray, FloatArray]:
    """Which rows raise an alarm, and `decision_function` of each, (n,) both.

    A detector whose sign of the score is its answer is asked once: one that ranks a row
    among all training rows takes milliseconds for it.
    """
    within, rows = within_of(detector, X)
    while within is not None:
        detector, X = within, rows
        within, rows = within_of(detector, X)
    scores = np.asarray(detector.decision_function(X), dtype=np.float64)
    if isinstance(detector, RateMixin):
        return scores < 0, scores
    return np.asarray(detector.predict(X)) == ALARM, scores


#: What a classifier promises of its sets, not of its labels.
BY_SETS = ("coverage", "selective error rate", "answered share", "false alarm rate")


def counted_answers(quantity: str, estimator: Any, X: Any) -> tuple[Any, ...]:
    """What promises of a quantity are counted by: labels, or sets and their classes."""
    if hasattr(estimator, "given"):  # a rule from a file
        estimator, X = estimator.given(X), np.arange(_num_samples(X))
    if quantity in BY_SETS and hasattr(estimator, "classes_"):
        return predict_set(estimator, X), estimator.classes_
    return (estimator.predict(X),)


def rows_about(estimator: Any, promise: Guarantee, X: Any) -> BoolArray:
    """Whether each row is of the part of the population that a promise is about.

    Parameters
    ----------
    estimator : fitted estimator
        What makes the promise, also at the end of a pipeline, or a rule from a file.
    promise : Guarantee
        About a subgroup, or about all rows.
    X : array-like or data frame of shape (n, n_features)
        Rows as the estimator takes them.

    Returns
    -------
    ndarray of bool, shape (n,)
    """
    if promise.subgroup is None:
        return np.ones(_num_samples(X), dtype=bool)
    if hasattr(estimator, "given"):
        estimator, X = estimator.given(X), np.arange(_num_samples(X))
    within, rows = within_of(estimator, X)
    if within is not None:
        return rows_about(within, promise, rows)
    about: BoolArray = estimator.is_about(promise, X)
    return about


def held_against(
    estimator: Any,
    promises: Iterable[Guarantee],
    X: Any,
    y: NDArray[Any],
    groups: NDArray[Any] | None = None,
) -> Iterator[tuple[Guarantee, int, int]]:
    """Each promise about rows, how many `check` counts, and how many it is about.

    Labels of a detector are 1 and -1, whatever its promises call the ordinary rows. A
    promise about none of the rows is left out. One about a random row of a new group
    needs `groups`, and counts one row of each.
    """
    detects = not hasattr(estimator, "classes_")
    answers: dict[str, tuple[Any, ...]] = {}
    for promise in promises:
        quantity = promise.quantity
        if quantity in NOT_A_RATE:
            continue
        if quantity not in answers:
            answers[quantity] = counted_answers(quantity, estimator, X)
        promise = replace(promise, scope=None) if detects else promise
        counted, violated = violated_rows(promise, y, *answers[quantity])
        if detects and quantity in ALARMS:
            counted &= y != ALARMS[quantity]
        counted &= rows_about(estimator, promise, X)
        together = groups if promise.unit == "group" else None
        rows = promise.rows_that_count(len(y), together)
        counted, violated = counted[rows], violated[rows]
        if counted.any():
            yield promise, int((counted & violated).sum()), int(counted.sum())


# --- detectors that cut at a rate -----------------------------------------------------


def _holds_out_rows(detector: Any) -> bool:
    if not detector._holds_out_rows():
        raise AttributeError(
            f"{type(detector).__name__}: `select` needs the scores of calibration rows "
            "that the threshold is an order statistic of, which these settings do not "
            "keep."
        )
    return True


def _keeps_scores(detector: Any) -> bool:
    return bool(detector._is_calibrated())


class RateMixin:
    """A detector that cuts at held-out scores for its `false_alarm_rate`.

    A class has `score_samples`, `offset_`, `rule_` where rows are held out, and
    `_holds_out_rows()` by its parameters: whether the cut is an order statistic.
    """

    def _is_calibrated(self) -> bool:
        """Whether these settings hold out the rows that the rate is kept on."""
        return True

    def decision_function(self, X: Any) -> FloatArray:
        """Score minus `offset_`: negative for alarms.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self.score_samples(X) - self.offset_  # type: ignore[attr-defined]

    def predict(self, X: Any) -> NDArray[np.int_]:
        """-1 for rows that raise an alarm, 1 for the others.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)

        Returns
        -------
        ndarray of int, shape (n_samples,)
            The answer to a row depends on nothing but the row.
        """
        return np.where(self.decision_function(X) < 0, -1, 1)

    @available_if(_keeps_scores)
    def with_false_alarm_rate(self, rate: float) -> Self:
        """Fitted copy for another false-alarm rate, without a new fit.

        Parameters
        ----------
        rate : float
            In (0, 1). Chosen after a look at the data it has no promise.

        Returns
        -------
        fitted copy of the detector
        """
        check_is_fitted(self)
        other: Any = copy.copy(self)
        other.set_params(false_alarm_rate=rate)
        other._validate_params()
        detector: Self = other._set_rate()
        return detector

    @available_if(_keeps_scores)
    def threshold_bands(self, *, confidence: float | None = None) -> ThresholdBands:
        """Limits of the false-alarm rate at all thresholds at once, by held-out rows.

        Look at them first, then choose a threshold of strangeness, minus
        `calibrated_scores`. Held-out rows are ordinary: they say nothing of misses.

        Parameters
        ----------
        confidence : float, default=None
            Probability over the held-out rows that all limits hold, in (0, 1); None:
            that of the detector, else 0.95.

        Returns
        -------
        ThresholdBands
            Of `kind` "alarms".

        Raises
        ------
        ValueError
            If no rows are held out, or `confidence` lies outside its range.
        """
        check_is_fitted(self)
        rule = vars(self).get("rule_")
        if rule is None:
            raise ValueError(
                f"{type(self).__name__} holds out no rows as it is set, so that "
                "thresholds have no limits: see certify_thresholds for new rows."
            )
        terms = rule.calibration.terms
        if confidence is None:
            confidence = terms.confidence or CONFIDENCE
        check_fraction("confidence", confidence)
        rounding = Rounding(rule.calibration.scores.tolerance)
        return false_alarm_bands(self.calibration_scores_, confidence, terms, rounding)

    def _say_nothing_is_rejected(
        self,
        n_rows: int,
        confidence: float | None = None,
        *,
        held_out: bool = True,
        fewest: int | None = None,
        stacklevel: int = 6,
    ) -> None:
        """Warn that so many rows to rank by are too few for any cut at the rate.

        `fewest` would do; None: those of which one may lie beyond a cut.
        """
        rate: float = self.false_alarm_rate  # type: ignore[attr-defined]
        rows, more = "rows", "give more rows"
        if held_out:
            rows, more = "held-out rows", "give more rows or a larger calibration_size"
        fewest = fewest or fewest_rows(rate, confidence)
        warnings.warn(
            f"{type(self).__name__}: nothing is rejected, {n_rows} {rows} are too few "
            f"for false_alarm_rate={rate:g}: {more} (at least {fewest} are needed).",
            PrudentWarning,
            stacklevel=stacklevel,
        )

    def _set_rate(self) -> Self:
        """Find the cut for another `false_alarm_rate`, and its promise."""
        estimator: Any = self
        rule = estimator.rule_.at(float(estimator.false_alarm_rate))
        adopted: Self = estimator._adopt(rule)
        return adopted

    @property
    def calibration_scores_(self) -> FloatArray:
        """Sorted scores of the calibration rows."""
        rule = vars(self).get("rule_")
        if rule is None:
            raise AttributeError(
                f"{type(self).__name__} keeps no calibration scores: it is not fitted, "
                "or its settings hold out no rows."
            )
        (scores,) = rule.calibration.scores.sorted
        kept: FloatArray = scores
        return kept

    def _score_record(self) -> dict[str, Any]:
        """What a file of the rule says of its scores."""
        return {"scores": "as given", "columns": ["calibrated_scores"]}

    def calibrated_scores(self, X: Any) -> FloatArray:
        """Scores of rows on the scale of `calibration_scores_`."""
        scores: FloatArray = self.score_samples(X)  # type: ignore[attr-defined]
        return scores

    @available_if(_keeps_scores)
    def p_value(self, X: Any) -> FloatArray:
        """Conformal p-value (1 + #{s_i <= s(x)}) / (m + 1) of each row.

        Rejecting where it is at most a rate has that false-alarm rate, on average
        over the calibration rows.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
            In [1 / (m + 1), 1], of m calibration rows.
        """
        known: CalibrationScores = self.rule_.calibration.scores  # type: ignore[attr-defined]
        return known.p_values(self.calibrated_scores(X))

    @available_if(_holds_out_rows)
    def select(
        self,
        X: Any,
        *,
        false_discovery_rate: float = 0.1,
        null_share: NullShare = "one",
        confidence: float | None = None,
    ) -> Selection:
        """Say which rows of a batch are unusual, with a bound on the wrong ones.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The batch; it may be empty.
        false_discovery_rate : float, default=0.1
            q in (0, 1): expected share of ordinary rows among those selected, counted
            as 0 where none is.
        null_share : {"one", "storey"}, default="one"
            "storey" estimates the share of ordinary rows and selects more where it
            is small.
        confidence : float, default=None
            None: the rate holds on average over calibration rows. Otherwise it holds
            given them with this probability: needed where one detector serves many
            batches, or the promise is watched.

        Returns
        -------
        Selection
            mask, p_values, guarantee.

        Raises
        ------
        ValueError
            If a setting is out of range.

        Warns
        -----
        PrudentWarning
            If no p-value is small enough to select half of the batch or fewer rows.

        Notes
        -----
        The ordinary rows of the batch must be exchangeable with the calibration rows
        given the unusual ones: nobody chose these by looking at the batch.

        Benjamini-Hochberg on conformal p-values. With m calibration rows the smallest
        is 1 / (m + 1), so that at least ceil(n / (q (m + 1))) rows are selected or none
        ("storey": fewer, where it takes few rows to be ordinary).
        """
        check_selection(false_discovery_rate, null_share, confidence)
        m, n = len(self.calibration_scores_), _num_samples(X)
        p_values = self.p_value(X) if n else np.empty(0)
        warn_if_few_rank(
            *(type(self).__name__, m, n, false_discovery_rate, confidence),
            is_estimated=null_share == "storey",
        )
        return select_rows(
            p_values,
            m,
            rate=false_discovery_rate,
            null_share=null_share,
            confidence=confidence,
        )


def warn_if_few_rank(
    name: str,
    m: int,
    n: int,
    rate: float,
    confidence: float | None,
    *,
    is_estimated: bool,
) -> None:
    """Warn, as `name`, where m calibration rows can hardly select any of n rows.

    Where the share of ordinary rows `is_estimated`, a small one may select fewer.
    """
    needed = rows_needed(n, m, rate, confidence)
    if needed > max(n / 2, 1):
        some = f"any of {n} rows"
        if needed <= n:
            some = f"fewer than {needed} of {n} rows"
        few = " unless it takes few rows to be ordinary" if is_estimated else ""
        warnings.warn(
            f"{name}: with {m} calibration rows no p-value is small enough to select "
            f"{some}{few}; give more calibration rows or allow a larger "
            "`false_discovery_rate`.",
            PrudentWarning,
            stacklevel=3,
        )


# --- answers that rows have got already -----------------------------------------------


@dataclass(frozen=True, eq=False)
class GivenAnswers:
    """What was answered to rows, which its methods know by their places 0, 1, ...

    It stands where a fitted classifier does.
    """

    classes_: NDArray[Any]
    labels: NDArray[Any] | None = None  # (n,)
    answered: BoolArray | None = None  # (n,); None: nothing can be refused
    sets: BoolArray | None = None  # (n, n_classes)
    guarantees_: tuple[Guarantee, ...] = ()
    inside: Memberships | None = None  # of the rows, named as by the promises

    @property
    def subgroups_(self) -> tuple[str, ...]:
        """Names of the subgroups that may have promises."""
        return () if self.inside is None else self.inside.names

    def predict(self, rows: Any) -> NDArray[Any]:
        """Labels of the rows at these places."""
        if self.labels is None:
            raise TypeError("sets were answered to these rows, no labels.")
        return self.labels[rows]

    def predict_set(self, rows: Any) -> BoolArray:
        """Sets of the rows at these places: of labels one each, without answer none."""
        if self.sets is not None:
            return self.sets[rows]
        members: BoolArray = self.predict(rows)[:, None] == self.classes_
        return members if self.answered is None else members & self.answered[rows, None]

    def is_about(self, guarantee: Guarantee, rows: Any) -> BoolArray:
        """Whether the rows at these places are of the subgroup of a promise."""
        if guarantee.subgroup is None or self.inside is None:
            return np.ones(len(rows), dtype=bool)
        return rows_named(self.inside, guarantee.subgroup)[rows]


@dataclass(frozen=True, eq=False)
class GivenAlarms:
    """Alarms of rows, which its methods know by their places 0, 1, ...

    It stands where a fitted detector does.
    """

    alarms: BoolArray  # (n,)
    guarantees_: tuple[Guarantee, ...] = ()
    scores: FloatArray | None = None  # (n,): low where strange
    calibration_scores_: FloatArray | None = None  # sorted, low where strange

    def predict(self, rows: Any) -> NDArray[np.int_]:
        """-1 for alarms, 1 for the others."""
        return np.where(self.alarms[rows], -1, 1)

    def calibrated_scores(self, rows: Any) -> FloatArray:
        """Scores on the scale of `calibration_scores_`."""
        assert self.scores is not None
        return self.scores[rows]


def rule_answers(
    rule: Rule,
    scores: ArrayLike,
    *,
    predicted: ArrayLike | None = None,
    by: ArrayLike | None = None,
    coins: FloatArray | None = None,
    lacking: BoolArray | None = None,
) -> GivenAnswers | GivenAlarms:
    """What a rule answers to rows of scores.

    Parameters
    ----------
    rule : Rule
    scores : array-like of shape (n, n_columns) or (n,)
        Of the columns that the rule names; probabilities, where its record says that
        scores are made of them.
    predicted : array-like of shape (n,), default=None
        Labels that one score a row is about.
    by : array-like of shape (n,), bool matrix or data frame, default=None
        Group of each row, where groups have thresholds; where subgroups have, which of
        them hold it (n, G), or the columns that say it.
    coins : ndarray of shape (n,), default=None
        Uniform number of each row, where ties are smoothed.
    lacking : ndarray of bool, shape (n,), default=None
        Rows without a score, whatever stands there: all labels, no answer, or alarm.
    """
    given = np.asarray(scores, dtype=np.float64)
    values = given[:, 0] if given.ndim == 2 and given.shape[1] == 1 else given
    none = np.zeros(len(values), dtype=bool) if lacking is None else lacking
    columns: Any = by
    if rule.by == "group" and (isinstance(by, Mapping) or hasattr(by, "columns")):
        by = columns[rule.record.get("group", "group")]
    inside = _parted(rule, by)
    groups = None if by is None else np.asarray(by)
    if rule.subgroups:
        groups = None if inside is None else inside.members
    if rule.kind == "alarms":
        kept = getattr(rule.calibration, "scores", None)
        known = kept.sorted[0] if isinstance(kept, CalibrationScores) else None
        return GivenAlarms(
            rule.alarms(values, coins) | none,
            rule.guarantees,
            -values if rule.strange == "high" else values,
            known,
        )
    if rule.kind == "answers":
        answered = rule.answers(rule.scored(values), groups) & ~none
        if predicted is not None:
            labels = np.asarray(predicted)
        elif rule.classes:
            table = scores_of_classes(values, rule.classes)
            labels = np.array(rule.classes)[table.argmax(axis=1)]
        else:
            raise ValueError(
                "the rule says which labels are sure enough: give `predicted`, the "
                "label of each row."
            )
        known_labels = np.array(rule.classes) if rule.classes else np.unique(labels)
        return GivenAnswers(
            known_labels, labels, answered, None, rule.guarantees, inside
        )
    classes = np.array(rule.classes)
    table = scores_of_classes(values, rule.classes)
    if rule.kind == "labels":
        codes = rule.codes(rule.scored(table), groups)
        codes[none] = rule.classes.index(rule.priority[0])
        return GivenAnswers(
            classes, classes[codes], guarantees_=rule.guarantees, inside=inside
        )
    sets = rule.sets(rule.scored(table), groups, coins, allow_empty=True)
    if rule.empty == "best":
        # Of the given scores: those made of them may round two labels to one.
        sets[np.arange(len(sets)), table.argmax(axis=1)] = True
    else:
        sets[~sets.any(axis=1)] = True
    sets[none] = True
    return GivenAnswers(classes, sets=sets, guarantees_=rule.guarantees, inside=inside)


def _parted(rule: Rule, by: Any) -> Memberships | None:
    """Which subgroups hold each row, or which of the disjoint groups; None without."""
    if by is None:
        return None
    is_matrix = isinstance(by, np.ndarray) and by.dtype == np.bool_
    if rule.crossings and isinstance(by, Mapping):
        return Memberships(rule.members(by), rule.subgroups)
    if rule.crossings and not is_matrix:
        return Subgroups(rule.crossings, None, rule.subgroups).memberships(by)
    if rule.subgroups:
        return Memberships(np.asarray(by, dtype=bool), rule.subgroups)
    if rule.by != "group":
        return None
    column = str(rule.record.get("group", "group"))
    known = np.array(rule.groups)
    names = tuple(f"{column}={name}" for name in rule.groups)
    return Memberships(np.asarray(by)[:, None] == known, names)


def answers_from(answers: ArrayLike, y: ArrayLike, classes: Any = None) -> GivenAnswers:
    """Labels or boolean sets, whatever answered; None, or what is missing, is none.

    `classes` are all labels that may be answered, in the order of the columns of sets;
    None: those that occur.
    """
    given, truth = np.asarray(answers), np.asarray(y)
    if given.ndim not in (1, 2) or len(given) != len(truth):
        raise ValueError(
            "certify: answers must be labels (n,) or boolean sets (n, n_classes) of "
            f"the {len(truth)} rows of `y`, got an array of shape {given.shape}."
        )
    if classes is not None:
        refuse_twice("classes", classes)
    if given.ndim == 2:
        if given.dtype != bool or classes is None or len(classes) != given.shape[1]:
            raise ValueError(
                "certify: sets of labels are a boolean array with a column for each "
                f"of `classes`, got {given.shape[1]} columns of type {given.dtype} "
                f"and classes={classes}."
            )
        return GivenAnswers(np.asarray(classes), sets=given)
    missing = missing_labels(given)
    answered = ~missing if given.dtype == object or missing.any() else None
    if classes is None:
        labels = given if answered is None else given[answered]
        classes = np.unique(np.concatenate([labels, truth]).tolist())
    return GivenAnswers(np.asarray(classes), given, answered)
