"""What rows that a model has not seen prove about it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_outlier_detector
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import (
    _num_samples,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
)

from prudent.certification.held_out import (
    Scoring,
    answer_scores,
    class_scores,
)
from prudent.certification.selective import SelectiveClassifier
from prudent.core.assumptions import Assumption
from prudent.core.binomial import check_fraction, upper_limit
from prudent.core.classes import as_costs
from prudent.core.guarantee import (
    ALARMS,
    COUNTED_AS,
    Guarantee,
    Quantity,
    Sense,
    violated_rows,
)
from prudent.core.rows import one_row_per_group
from prudent.core.types import BoolArray, FloatArray
from prudent.core.validation import (
    missing_labels,
    plain,
    refuse_missing_labels,
    refuse_nan,
    shown,
)
from prudent.estimator_tools import (
    GivenAlarms,
    GivenAnswers,
    answers_from,
    check_classes,
    check_groups,
    counted_answers,
    delegate,
    predict_set,
    refuse_dask,
    refuse_seen_rows,
    rule_answers,
    warn_of_copies,
)
from prudent.estimator_tools.subgroups import memberships_of
from prudent.rules.bands import (
    ANOMALY,
    NORMAL,
    ThresholdBands,
    alarm_bands,
    answer_bands,
)
from prudent.rules.make import class_scores_of
from prudent.rules.rule import Rule, Terms
from prudent.rules.scores import AnswerScores, rounding_of
from prudent.rules.subgroups import Memberships

BETTING = "I. Waudby-Smith and A. Ramdas (2024), betting limit of a bounded mean"
EXACT = "C. J. Clopper and E. S. Pearson (1934), exact one-sided limit"
UNSCORED = "certify_thresholds: {} have no score."

# No bet risks more than this share of what could be lost.
LARGEST_BET = 0.9
BISECTIONS = 60


def certify(
    model: Any,
    X: Any,
    y: ArrayLike,
    *,
    confidence: float = 0.95,
    simultaneous: bool = True,
    claims: Literal["promised", "all"] = "promised",
    groups: ArrayLike | None = None,
    costs: ArrayLike | None = None,
    classes: Sequence[Any] | None = None,
    predicted: ArrayLike | None = None,
    by: ArrayLike | None = None,
    subgroups: Any = None,
    random_state: int | np.random.RandomState | None = 0,
) -> tuple[Guarantee, ...]:
    """Certify a fitted model, a rule or answers on rows that were never seen.

    Counts what goes wrong on new rows and states exact limits of the true rates. The
    rows must not have been used to fit, choose or tune the model: of twenty equally
    good methods the best on the same rows looks better than it is in six of ten
    cases.

    Parameters
    ----------
    model : fitted classifier or outlier detector, Rule or None
        Any of scikit-learn's or prudent's, also at the end of a pipeline or in a
        search such as `GridSearchCV`. A rule answers to scores; None: the answers are
        given.
    X : array-like of shape (n_samples, n_features)
        New rows, of the kind that the model takes; scores for a rule, (n, n_classes) or
        (n,). Without a model the answers: labels (n,), None for no answer, which only
        the selective error rate does not count as wrong, or boolean sets (n,
        n_classes).
    y : array-like of shape (n_samples,)
        Their labels; for a detector 1 (normal) and -1 (anomaly).
    confidence : float, default=0.95
        Probability over the new rows that the promises are true, in (0, 1).
    simultaneous : bool, default=True
        Whether all promises hold at once with `confidence`, or each by itself. Classes
        of the model without a row count as promises too.
    claims : {"promised", "all"}, default="promised"
        "promised": what the model itself promises in `guarantees_`, at the whole
        level; "all": every quantity below, jointly, what is promised first. Of a model
        that promises nothing that rows can show, all.
    groups : array-like of shape (n_samples,), default=None
        Rows that belong together have equal values: one random row of each group
        counts, and the certificate is about a random row of a new group. A model whose
        promises are of that kind needs them.
    costs : array-like of shape (n_classes, n_classes), default=None
        Cost of each answer, rows = truth; then the expected cost is certified too. A
        further column holds the cost of no answer: without it a model's label counts
        on rows that it does not answer, and given answers must not lack any.
    classes : sequence, default=None
        Without a model: all labels that may be answered, in the order of the columns
        of sets; None: those that occur, where which do is no matter of chance.
    predicted : array-like of shape (n_samples,), default=None
        For a rule about one score a row: the labels that the scores are about.
    by : array-like of shape (n_samples,), default=None
        For a rule with a threshold for each group: the group of each row.
    subgroups : list of str or int, callable, bool matrix or data frame, default=None
        Parts of the population, which may overlap: every claim is made over all rows
        and, but for the expected cost, in each of them. Names or positions of columns
        of `X`, each value of which is a subgroup (``"sex"``, ``"sex*age_band"``,
        ``"age:30,45,60"``); a function of rows; or which subgroups hold each row
        (n, n_subgroups), or a data frame of labels. None: those that the model
        promises something of.
    random_state : int, RandomState or None, default=0
        Draws the row of each group, and the order of the rows in the limit of the
        expected cost.

    Returns
    -------
    tuple of Guarantee
        What the model promises, in its order, shares of answered or flagged rows and
        probabilities of cells included; with `claims` "all" also, where
        measurable: false-alarm and miss rate of a detector; of a classifier the
        selective error rate (has `answers`), the error rate (a label for every row),
        the error rate of each class with rows, the coverage (has `predict_set`). Last
        the expected cost.

    Raises
    ------
    ValueError
        If there is no row, or none that a promise of the model is about, rows were in
        the fit of the model (see Notes), a label is unknown to the model, `costs` have
        another shape or are not finite, `confidence` or `claims` is out of range,
        `groups` are missing, or `subgroups` are given for a model that promises
        probabilities of cells.

    Notes
    -----
    v wrong of n rows certify the rate betaincinv(v + 1, n - v, 1 - level) at level
    (1 - `confidence`) / J for J promises. The expected cost uses
    :func:`prudent.certification.mean_upper_limit` on costs scaled to [0, 1], or the
    exact limit if there are only two different costs.

    Models of prudent with held-out or ranking rows, and models written by the command
    line, keep 8 bytes of each row of their fit. Rows of `X` that are among them are an
    error, unless chance explains them: draws from few possible values repeat. It does
    not where they are more than three times as many as the equal rows inside the fit
    suggest and hardly two rows agree in all columns but one, nor where draws from one
    law, whatever it is, stand in both samples that often in one of 100 000 cases.

    Examples
    --------
    >>> from prudent import certify
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LinearDiscriminantAnalysis().fit(X[:300], y[:300])
    >>> for promise in certify(model, X[300:], y[300:]):
    ...     print(promise.quantity, promise.scope, round(promise.bound, 3))
    error rate None 0.055
    class error rate 0 0.112
    class error rate 1 0.06

    Answers from anywhere:

    >>> for promise in certify(None, model.predict(X[300:]), y[300:]):
    ...     print(promise.quantity, promise.scope, round(promise.bound, 3))
    error rate None 0.055
    class error rate 0 0.112
    class error rate 1 0.06
    """
    check_fraction("confidence", confidence)
    if claims not in ("promised", "all"):
        raise ValueError(f"`claims` must be 'promised' or 'all', got {claims!r}.")
    labels = _labels_of_new_rows("certify", X, y)
    given = _given_answers(model, X, labels, classes, predicted, by)
    check_consistent_length(X, labels)
    inside = None if subgroups is None else memberships_of(subgroups, X)
    if given is None:
        model, X = _unseen("certify", model, X, warn=groups is None)
    else:
        model, X = given, np.arange(_num_samples(X))
    promised = getattr(model, "guarantees_", ())
    if inside is not None and any(p.quantity == "probability" for p in promised):
        raise ValueError(
            "certify: probabilities of cells are certified over all rows only: leave "
            "`subgroups` out, or certify the answers, as in "
            "certify(None, model.predict(X), y, subgroups=...)."
        )
    random = check_random_state(random_state)
    rows = _one_row_of_each("certify", groups, len(labels), model, random)
    if rows is not None:
        X, labels = _safe_indexing(X, rows), labels[rows]
        inside = None if inside is None else inside.taken(rows)
    answers = None
    if not _is_detector(model):
        answers = _model_answers(model, X, labels)
    elif costs is not None:
        raise ValueError("certify: `costs` are for classifiers; leave them out.")
    only_promised = claims == "promised"
    counted = _claims(model, X, labels, answers, inside, only_promised=only_promised)
    n_claims = len(counted) + (costs is not None) if simultaneous else 1
    terms = Terms(confidence=float(confidence), frozen=True, grouped=groups is not None)
    promises = [c.guarantee(terms, n_claims) for c in counted if c.rows.any()]
    if costs is not None:
        assert answers is not None
        cost = _expected_cost(answers, labels, costs, terms, n_claims, random)
        promises.append(cost)
    if not promises:
        raise ValueError(
            "certify: no row is one that the promises of the model are about; give "
            "such rows, or claims='all'."
        )
    return tuple(promises)


def certify_thresholds(
    model: Any,
    X: Any,
    y: ArrayLike,
    *,
    confidence: float = 0.95,
    kind: Literal["auto", "alarms", "answers"] = "auto",
    positive: Any = None,
    groups: ArrayLike | None = None,
    random_state: int | np.random.RandomState | None = 0,
) -> ThresholdBands:
    """Certify every threshold of a fitted model at once: look first, choose then.

    The limits of :func:`prudent.certify` are about one rule that was fixed before the
    rows were seen. These hold at all thresholds of the model's scores together, so
    that a threshold may be chosen after a look at the very curve of limits.

    Parameters
    ----------
    model : fitted classifier or outlier detector
        Any of scikit-learn's or prudent's with `predict_proba`, `decision_function` or
        `score_samples`, also at the end of a pipeline or in a search.
    X : array-like of shape (n_samples, n_features)
        New rows, which were not used to fit, choose or tune the model.
    y : array-like of shape (n_samples,)
        Their labels; for a detector 1 (normal) and -1 (anomaly).
    confidence : float, default=0.95
        Probability over the rows that all limits hold, in (0, 1).
    kind : {"auto", "alarms", "answers"}, default="auto"
        "alarms": a row raises one where its score for the positive class, or its
        strangeness, is at least the threshold. "answers": a row is answered where the
        model is surer than the threshold. "auto": without `positive` answers for a
        selective classifier and for more than two classes, else alarms.
    positive : object, default=None
        The class that an alarm stands for; None: the second of two.
    groups : array-like of shape (n_samples,), default=None
        As for :func:`prudent.certify`: one random row of each group counts.
    random_state : int, RandomState or None, default=0
        Which row of a group counts.

    Returns
    -------
    ThresholdBands
        Its `at` gives the promises of a threshold, `frame` all of them.

    Raises
    ------
    ValueError
        If there is no row, rows were in the fit of the model, a label is unknown, a
        score is NaN, `positive` is no class or missing where it is needed, `groups` are
        missing for a model whose promises are about a random row of a new group, or
        another argument lies outside its range.
    TypeError
        If the model gives no scores.

    Notes
    -----
    With v of m rows on one side of a threshold, the limit is
    betaincinv(v + 1, m - v, 1 - g), that of Clopper and Pearson at the level g of
    `prudent.core.binomial.simultaneous_level`: with m uniform numbers in order,
    P(U_(i) > betaincinv(i, m + 1 - i, 1 - g) for some i) is the level. Of more than
    2048 rows some v are rounded up. The level is shared by the claims: see
    :class:`prudent.ThresholdBands`.

    References
    ----------
    M. Noe (1972), The calculation of distributions of two-sided Kolmogorov-Smirnov
    type statistics. A. Moscovich and B. Nadler (2017), Fast calculation of boundary
    crossing probabilities for Poisson processes.

    Examples
    --------
    >>> from prudent import certify_thresholds
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LinearDiscriminantAnalysis().fit(X[:300], y[:300])
    >>> bands = certify_thresholds(model, X[300:], y[300:], positive=0)
    >>> for promise in bands.at(0.1)[:2]:
    ...     print(promise.quantity, promise.scope, round(promise.bound, 3))
    class error rate 0 0.106
    class error rate 1 0.206
    """
    check_fraction("confidence", confidence)
    if kind not in ("auto", "alarms", "answers"):
        raise ValueError(f"`kind` must be 'auto', 'alarms' or 'answers', got {kind!r}.")
    labels = _labels_of_new_rows("certify_thresholds", X, y)
    check_consistent_length(X, labels)
    model, X = _unseen("certify_thresholds", model, X, warn=groups is None)
    rows = _one_row_of_each(
        "certify_thresholds", groups, len(labels), model, random_state
    )
    if rows is not None:
        X, labels = _safe_indexing(X, rows), labels[rows]
    terms = Terms(confidence=float(confidence), frozen=True, grouped=groups is not None)
    if is_outlier_detector(model):
        return _detector_bands(model, X, labels, kind, positive, terms)
    check_classes(labels)
    _check_labels("certify_thresholds", model, labels)
    n_classes = len(model.classes_)
    selective = isinstance(model, SelectiveClassifier)
    if kind == "auto":
        answers = positive is None and (selective or n_classes > 2)
        kind = "answers" if answers else "alarms"
    if kind == "alarms":
        if positive is None and n_classes > 2:
            raise ValueError(
                f"certify_thresholds: {n_classes} classes; give positive= or "
                "kind='answers'."
            )
        inner = model.estimator_ if selective else model
        scores, rounding = class_scores(inner, X)
        scored = class_scores_of(scores, labels, model.classes_, rounding)
        refuse_nan(scored.scores, UNSCORED)
        return alarm_bands(scored, positive, terms)
    if positive is not None:
        raise ValueError("certify_thresholds: `positive` is for alarms: leave it out.")
    scoring: Scoring = "max_probability"
    if selective:
        model, scoring = model.estimator_, model._scoring
    sureness, rounding = answer_scores(model, X, scoring)
    wrong = np.asarray(model.predict(X)) != labels
    return answer_bands(AnswerScores.from_answers(sureness, wrong, rounding), terms)


# --- every threshold ------------------------------------------------------------------


def _detector_bands(
    model: Any, X: Any, labels: Any, kind: str, positive: Any, terms: Terms
) -> ThresholdBands:
    """Strange rows score high; anomalies are positive."""
    if kind == "answers":
        raise ValueError(
            "certify_thresholds: a detector raises alarms; leave `kind` out."
        )
    if positive not in (None, ANOMALY):
        raise ValueError(
            f"certify_thresholds: the positive rows of a detector are anomalies, "
            f"{ANOMALY}; leave `positive` out."
        )
    _check_normal_or_not("certify_thresholds", labels)
    score = getattr(model, "score_samples", None) or model.decision_function
    values = np.asarray(score(X))
    strangeness = -values.astype(np.float64)
    refuse_nan(strangeness, UNSCORED)
    scores = np.column_stack([-strangeness, strangeness])
    names = np.array([NORMAL, ANOMALY])
    rows = class_scores_of(scores, labels, names, rounding_of(values))
    return alarm_bands(rows, ANOMALY, terms, detects=True)


# --- new rows, and what was answered to them ------------------------------------------


def _labels_of_new_rows(name: str, X: Any, y: ArrayLike) -> NDArray[Any]:
    """The labels (n,) of at least one row."""
    refuse_dask(X)
    if not _num_samples(X):
        raise ValueError(
            f"{name}: `X` holds 0 rows; give at least 1 row that the model has not "
            "seen."
        )
    labels: NDArray[Any] = column_or_1d(y)
    refuse_missing_labels(f"{name}: `y`", labels)
    return labels


def _unseen(name: str, model: Any, X: Any, *, warn: bool = True) -> tuple[Any, Any]:
    """A fitted model and rows as `unwrapped`; rows that it has seen are refused.

    Copies of rows among them are warned of.
    """
    check_is_fitted(model)
    refuse_seen_rows(name, model, X)
    if warn:
        warn_of_copies(name, X)
    return unwrapped(model, X)


def _one_row_of_each(
    name: str, groups: ArrayLike | None, n_rows: int, model: Any, random_state: Any
) -> NDArray[np.intp] | None:
    """Positions of one random row of each group; None without groups.

    A model whose promises are about a random row of a new group needs them.
    """
    if groups is not None:
        random = check_random_state(random_state)
        return np.sort(one_row_per_group(check_groups(groups, n_rows), random))
    if any(promise.unit == "group" for promise in getattr(model, "guarantees_", ())):
        raise ValueError(
            f"{name}: the promises of this model are about a random row of a new "
            "group: give `groups`, the group of each row."
        )
    return None


def _given_answers(
    model: Any,
    X: Any,
    labels: NDArray[Any],
    classes: Sequence[Any] | None,
    predicted: ArrayLike | None,
    by: ArrayLike | None,
) -> GivenAnswers | GivenAlarms | None:
    """Answers that need no rows: those given, or a rule's; None of a fitted model."""
    if model is None:
        return answers_from(X, labels, classes)
    if isinstance(model, GivenAnswers | GivenAlarms):
        return model
    if not isinstance(model, Rule):
        return None
    if model.smoothed_rate is not None:
        raise ValueError(
            "certify: the ties of this rule are smoothed by coins, so that scores do "
            "not decide its answers: give these, as in certify(None, rule.sets(scores, "
            "coins=coins), y, classes=rule.classes)."
        )
    return rule_answers(model, X, predicted=predicted, by=by)


def unwrapped(model: Any, X: Any) -> tuple[Any, Any]:
    """The last step of a pipeline or the winner of a search, and rows as it takes them.

    It alone has promises, sets and `answers`.
    """
    while True:
        if isinstance(model, Pipeline):
            X = model[:-1].transform(X) if len(model.steps) > 1 else X
            model = model.steps[-1][1]
        elif (within := delegate(model)) is not None:
            model = within
        else:
            return model, X


def _is_detector(model: Any) -> bool:
    """Whether a model raises alarms, so that its labels are 1 and -1."""
    if isinstance(model, GivenAnswers | GivenAlarms):
        return isinstance(model, GivenAlarms)
    return bool(is_outlier_detector(model))


def _model_answers(model: Any, X: Any, y: NDArray[Any]) -> GivenAnswers:
    """What a classifier answers: labels for all rows, which it stands by, and sets.

    `X` are rows, of given answers their places; labels `y` that the model does not know
    are refused.
    """
    if not isinstance(model, GivenAnswers):
        check_classes(y)
    _check_labels("certify", model, y)
    if isinstance(model, GivenAnswers):
        columns = {
            name: getattr(model, name) for name in ("labels", "answered", "sets")
        }
        taken = {name: c[X] for name, c in columns.items() if c is not None}
        return replace(model, **taken)
    answered = np.asarray(model.answers(X)) if hasattr(model, "answers") else None
    sets = predict_set(model, X) if hasattr(model, "predict_set") else None
    classes = model.classes_
    # The labels that a selective model does not stand by are measured too.
    if answered is not None and getattr(model, "_reject_label", None) is not None:
        model = model.estimator_
    return GivenAnswers(classes, np.asarray(model.predict(X)), answered, sets)


# --- what is counted ------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Claim:
    """A rate as counted on new rows, of which these are concerned and these wrong."""

    quantity: Quantity
    rows: BoolArray  # (n,); without one nothing is promised
    wrong: BoolArray  # (n,): those to be rare, whatever the sense of the promise
    scope: Any = None
    sense: Sense = "<="
    subgroup: str | None = None
    answered_of: BoolArray | None = None  # (n,): rows of which `rows` were answered
    n_classes: int | None = None  # that the model knows; None: of no single class

    @property
    def about(self) -> tuple[Any, ...]:
        """What is claimed, but for the numbers."""
        return self.quantity, self.scope, self.subgroup, self.sense

    def within(self, subgroup: str, members: BoolArray) -> Claim:
        """The same of the rows of a subgroup."""
        among = None if self.answered_of is None else self.answered_of & members
        rows = self.rows & members
        return replace(self, rows=rows, answered_of=among, subgroup=subgroup)

    def guarantee(self, terms: Terms, n_claims: int) -> Guarantee:
        """The exact limit, at a level divided among the claims."""
        assert terms.confidence is not None
        counted = int(self.rows.sum())
        n_wrong = int((self.wrong & self.rows).sum())
        limit = upper_limit(n_wrong, counted, level=(1 - terms.confidence) / n_claims)
        evidence: dict[str, float] = {"calibration rows": counted}
        if self.answered_of is not None:
            n_rows = int(self.answered_of.sum())
            evidence = {"calibration rows": n_rows, "answered": counted}
        if self.n_classes is not None:
            evidence["classes"] = self.n_classes
        if self.quantity in COUNTED_AS:
            had = counted - n_wrong if self.sense == ">=" else n_wrong
            evidence[COUNTED_AS[self.quantity]] = had
        else:
            evidence["wrong"] = n_wrong
        return terms.promise(
            self.quantity,
            1 - limit if self.sense == ">=" else limit,
            Assumption.INDEPENDENT,
            sense=self.sense,
            scope=plain(self.scope),
            subgroup=self.subgroup,
            evidence={**evidence, "claims": n_claims},
            source=EXACT,
        )


def _claims(
    model: Any,
    X: Any,
    y: NDArray[Any],
    answers: GivenAnswers | None,
    inside: Memberships | None,
    *,
    only_promised: bool,
) -> list[Claim]:
    """Everything to be certified, over all rows and in each subgroup of them.

    `answers` are those of a classifier to the rows, None for a detector. Without
    `inside` the subgroups are those that the model promises something of.
    """
    promised: Sequence[Guarantee] = getattr(model, "guarantees_", ())
    if answers is None:
        everywhere = _detector_claims(model, X, y)
    else:
        everywhere = _classifier_claims(answers, y)
        everywhere += _share_claims(model, promised, X, y)
    if inside is None:
        # Given answers may not say who is of a subgroup.
        knows = hasattr(model, "is_about") and getattr(model, "inside", ()) is not None
        about = {
            promise.subgroup: promise
            for promise in promised
            if knows and promise.subgroup and promise.quantity not in COUNTED_AS
        }
        within = [
            claim.within(name, model.is_about(promise, X))
            for name, promise in about.items()
            for claim in everywhere
        ]
        return _in_order(everywhere + within, promised, only_promised=only_promised)
    # What is promised, whatever it is about.
    promised = [replace(promise, subgroup=None) for promise in promised]
    counted = _in_order(everywhere, promised, only_promised=only_promised)
    wanted = {(claim.quantity, claim.scope) for claim in counted}
    within = [
        claim.within(name, members)
        for name, members in zip(inside.names, inside.members.T, strict=True)
        for claim in everywhere
        if (claim.quantity, claim.scope) in wanted and claim.subgroup is None
    ]
    if answers is None:
        # True given the labels, whose counts may therefore choose the level.
        within = [claim for claim in within if claim.rows.any()]
    return counted + within


def _in_order(
    claims: list[Claim], promised: Sequence[Guarantee], *, only_promised: bool
) -> list[Claim]:
    """The claims that a model itself promises, and behind them all others.

    The others are left out with `only_promised`, unless nothing is promised. Those of a
    subgroup, and the coverage of a class, are claims only where they are promised.
    """
    claimed = {claim.about: claim for claim in claims}
    wanted = {
        (p.quantity, None if p.quantity in ALARMS else p.scope, p.subgroup, p.sense): p
        for p in promised
    }
    first = [claimed[about] for about in wanted if about in claimed]
    if first and only_promised:
        return first
    others = [
        claim
        for claim in claims
        if claim not in first
        and (claim.quantity != "coverage" or claim.scope is None)
        and claim.subgroup is None
    ]
    return first + others


def _detector_claims(model: Any, X: Any, y: NDArray[Any]) -> list[Claim]:
    """False alarms among the normal rows and misses among the anomalies."""
    _check_normal_or_not("certify", y)
    flagged = np.asarray(model.predict(X)) == -1
    claims = [
        Claim("false alarm rate", y == 1, flagged),
        Claim("miss rate", y == -1, ~flagged),
    ]
    # Both are true given the labels, whose counts may therefore choose the level.
    return [claim for claim in claims if claim.rows.any()]


def _classifier_claims(answers: GivenAnswers, y: NDArray[Any]) -> list[Claim]:
    """Claims of all classes, also of those without rows.

    How many of them have rows depends on chance, and the error rate with it: if only
    those were counted, the sum of the levels would not be proved.
    """
    claims: list[Claim] = []
    labels, k = answers.classes_.tolist(), len(answers.classes_)
    every = np.ones(len(y), dtype=bool)
    if answers.labels is not None:
        wrong = np.asarray(answers.labels != y)
        if answers.answered is not None:
            quantity: Quantity = "selective error rate"
            claims.append(Claim(quantity, answers.answered, wrong, answered_of=every))
        claims.append(Claim("error rate", every, wrong))
        claims += [
            Claim("class error rate", y == label, wrong, label, n_classes=k)
            for label in labels
        ]
    if answers.sets is not None:
        missed = ~answers.sets[np.arange(len(y)), _positions(y, answers.classes_)]
        claims.append(Claim("coverage", every, missed, sense=">="))
        claims += [
            Claim("coverage", y == label, missed, label, ">=", n_classes=k)
            for label in labels
        ]
    return claims


def _share_claims(
    model: Any, promised: Sequence[Guarantee], X: Any, y: NDArray[Any]
) -> list[Claim]:
    """Claims of the shares and probabilities that a model itself promises."""
    claims = []
    for promise in promised:
        if promise.quantity not in COUNTED_AS:
            continue
        answers = counted_answers(promise.quantity, model, X)
        counted, frequent = violated_rows(promise, y, *answers)
        if promise.subgroup is not None:
            counted &= model.is_about(promise, X)
        own = Claim(
            promise.quantity,
            counted,
            ~frequent if promise.counts_frequent else frequent,
            promise.scope,
            promise.sense,
            promise.subgroup,
        )
        claims.append(own)
    return claims


def _expected_cost(
    answers: GivenAnswers,
    y: NDArray[Any],
    costs: ArrayLike,
    terms: Terms,
    n_claims: int,
    random: np.random.RandomState,
) -> Guarantee:
    """The upper limit of the mean cost of the answers.

    It is the exact binomial one where costs have at most two different values.
    """
    if answers.labels is None:
        raise ValueError("certify: `costs` are of labels, not of sets.")
    assert terms.confidence is not None
    level = (1 - terms.confidence) / n_claims
    k = len(answers.classes_)
    matrix = _checked_costs(costs, k, has_refusals=answers.answered is not None)
    actions = _positions(answers.labels, answers.classes_)
    if answers.answered is not None and matrix.shape[1] > k:
        actions = np.where(answers.answered, actions, k)
    without_cost = np.flatnonzero(actions < 0)
    if len(without_cost):
        label = answers.labels[without_cost[0]]
        is_refusal = missing_labels(answers.labels)[without_cost[0]]
        given = "no answer" if is_refusal else f"the answer {shown(label)}"
        raise ValueError(
            f"certify: `costs` have no column for {given} ({len(without_cost)} rows "
            "have an answer without a cost): give None where a row has no answer, and "
            "a last column with the cost of that."
        )
    losses = matrix[_positions(y, answers.classes_), actions]
    possible = np.unique(matrix)
    least, span = float(possible[0]), float(possible[-1] - possible[0])
    scaled, is_exact = (losses - least) / (span or 1.0), len(possible) <= 2
    if is_exact:
        limit = upper_limit(int(scaled.sum()), len(scaled), level=level)
    else:
        limit = mean_upper_limit(scaled, level=level, random_state=random)
    return terms.promise(
        "expected cost",
        least + span * limit,
        Assumption.INDEPENDENT,
        sense="<=",
        evidence={"calibration rows": len(y), "claims": n_claims},
        source=EXACT if is_exact else BETTING,
    )


def _checked_costs(costs: ArrayLike, k: int, *, has_refusals: bool) -> FloatArray:
    """Costs (k, k) of each answer for each true class; a column more for no answer."""
    matrix = as_costs(costs)
    shapes = [(k, k), (k, k + 1)] if has_refusals else [(k, k)]
    if matrix.shape not in shapes or not np.isfinite(matrix).all():
        also = f" or, with no answer, {shapes[1]}" if has_refusals else ""
        got = matrix.shape
        if matrix.shape in shapes:
            got = matrix[~np.isfinite(matrix)][0]
        raise ValueError(
            "`costs` must be finite of shape (n_classes, n_classes) = "
            f"{shapes[0]}{also}, got {got}."
        )
    return matrix


def _check_labels(name: str, model: Any, y: NDArray[Any]) -> None:
    """Refuse what is no classifier, and labels that it does not know."""
    if not hasattr(model, "classes_"):
        raise TypeError(
            f"{name}: {type(model).__name__} is neither a classifier nor an outlier "
            "detector."
        )
    known = model.classes_.tolist()
    for label in np.unique(y).tolist():
        if label not in known:
            raise ValueError(
                f"{name}: `y` holds the label {shown(label)}, which the model does "
                f"not know; its classes are {known}."
            )


def _check_normal_or_not(name: str, y: NDArray[Any]) -> None:
    """Refuse labels that are not those of a detector."""
    values = np.unique(y)
    if not np.isin(values, (NORMAL, ANOMALY)).all():
        raise ValueError(
            f"{name}: a detector needs labels 1 (normal) and -1 (anomaly), got "
            f"{values.tolist()}."
        )


def _positions(labels: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.intp]:
    """Place (n,) of each label among the classes, -1 where it is none of them."""
    same: NDArray[np.bool_] = labels[:, None] == classes
    return np.where(same.any(axis=1), same.argmax(axis=1), -1)


def mean_upper_limit(
    losses: ArrayLike,
    *,
    level: float = 0.05,
    random_state: int | np.random.RandomState | None = 0,
) -> float:
    """Upper confidence limit of the mean of independent losses in [0, 1].

    Parameters
    ----------
    losses : array-like of shape (n,)
        Independent draws from one law on [0, 1]. For losses that can only be 0 and 1
        the exact binomial limit is sharper.
    level : float, default=0.05
        Largest probability that the true mean exceeds the limit, in (0, 1).
    random_state : int, RandomState or None, default=0
        Orders the losses: a file sorted by class is not in random order.

    Returns
    -------
    float
        In (0, 1]; 1 if no mean can be refuted.

    Raises
    ------
    ValueError
        If there is no loss or one outside [0, 1], or `level` is out of range.

    Notes
    -----
    A mean mu is refuted if the wealth prod (1 - min(lambda_i, 0.9 / (1 - mu))
    (x_i - mu)) ever reaches 1 / level, lambda_i = sqrt(2 log(1/level) / (n v_{i-1}))
    with v the running variance. Under a true mean the wealth is a martingale, so
    Ville's inequality bounds the error; it rises with mu, so bisection finds the limit.

    References
    ----------
    I. Waudby-Smith and A. Ramdas (2024), Estimating means of bounded random variables
    by betting, Journal of the Royal Statistical Society B 86, section 4.

    Examples
    --------
    >>> from prudent.certification import mean_upper_limit
    >>> round(mean_upper_limit([0.0] * 80 + [0.1] * 15 + [1.0] * 5), 3)
    0.129
    """
    x = np.asarray(losses, dtype=np.float64).ravel()
    bad = x[~((x >= 0) & (x <= 1))]
    if not len(x) or len(bad):
        shown = f"{bad[0]:g}" if len(bad) else "none"
        raise ValueError(f"losses must be at least one number in [0, 1], got {shown}.")
    check_fraction("level", level)
    x = check_random_state(random_state).permutation(x)
    n, needed = len(x), math.log(1 / level)
    seen = np.arange(1, n + 1)
    mean = (0.5 + np.cumsum(x)) / (seen + 1)
    variance = (0.25 + np.cumsum((x - mean) ** 2)) / (seen + 1)
    before = np.concatenate([[0.25], variance[:-1]])
    bets = np.sqrt(2 * needed / (n * before))

    def refuted(mu: float) -> bool:
        stakes = np.minimum(bets, LARGEST_BET / (1 - mu))
        return bool(np.cumsum(np.log1p(-stakes * (x - mu))).max() >= needed)

    low, high = 0.0, 1.0
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        if refuted(middle):
            high = middle
        else:
            low = middle
    return high
