"""What rows that a model has not seen prove about it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_outlier_detector
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _num_samples,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
)

from prudent.certification.promises import Claim, cost_promise
from prudent.core.binomial import check_fraction, upper_limit
from prudent.core.classes import as_costs
from prudent.core.guarantee import ALARMS, COUNTED_AS, Guarantee, violated_rows
from prudent.core.rows import one_row_per_group, refuse_dask
from prudent.core.types import FloatArray
from prudent.core.validation import shown
from prudent.estimator_tools import (
    GivenAlarms,
    GivenAnswers,
    answers_from,
    check_groups,
    counted_answers,
    delegate,
    predict_set,
    refuse_seen_rows,
    rule_answers,
    warn_of_copies,
)
from prudent.estimator_tools.subgroups import memberships_of
from prudent.rules.rule import Rule
from prudent.rules.subgroups import Memberships

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
        (n,). Without a model the answers: labels (n,), None for no answer, or boolean
        sets (n, n_classes).
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
        Cost of each answer, rows = truth; then the expected cost is certified too. For
        a model with `answers` a further column may hold the cost of no answer.
    classes : sequence, default=None
        Without a model: all labels that may be answered, in the order of the columns
        of sets; None: those that occur, where which do is no matter of chance.
    predicted : array-like of shape (n_samples,), default=None
        For a rule about one score a row: the labels that the scores are about.
    by : array-like of shape (n_samples,), default=None
        For a rule with a threshold for each group: the group of each row.
    subgroups : list of str or int, callable, bool matrix or data frame, default=None
        Parts of the population, which may overlap: every claim is made over all rows
        and in each of them. Names or positions of columns of `X`, each value of which
        is a subgroup (``"sex"``, ``"sex*age_band"``, ``"age:30,45,60"``); a function
        of rows; or which subgroups hold each row (n, n_subgroups), or a data frame of
        labels. None: those that the model promises something of.
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
        another shape or are not finite, `confidence` or `claims` is out of range, or
        `groups` are missing.

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
    refuse_dask(X)
    if not _num_samples(X):
        raise ValueError(
            "certify: `X` holds 0 rows; give at least 1 row that the model has not "
            "seen."
        )
    labels, rows_given = column_or_1d(y), X
    given = _given_answers(model, X, labels, classes, predicted, by)
    if given is not None:
        model, X = given, np.arange(_num_samples(X))
    else:
        check_is_fitted(model)
    check_consistent_length(X, y)
    inside = None if subgroups is None else memberships_of(subgroups, rows_given)
    if given is None:
        refuse_seen_rows("certify", model, X)
        if groups is None:
            warn_of_copies("certify", X)
    model, X = unwrapped(model, X)
    promised = getattr(model, "guarantees_", ())
    random = check_random_state(random_state)
    grouped = groups is not None
    if groups is not None:
        rows = np.sort(one_row_per_group(check_groups(groups, len(labels)), random))
        X, labels = _safe_indexing(X, rows), labels[rows]
        inside = None if inside is None else inside.taken(rows)
    elif any(promise.unit == "group" for promise in promised):
        raise ValueError(
            "certify: the promises of this model are about a random row of a new "
            "group: give `groups`, the group of each row."
        )
    if _is_detector(model):
        if costs is not None:
            raise ValueError("certify: `costs` are for classifiers; leave them out.")
        answers = None
    else:
        answers = _model_answers(model, X, labels)
    only_promised = claims == "promised"
    counted = _claims(model, X, labels, answers, inside, only_promised=only_promised)
    n_claims = len(counted) + (costs is not None) if simultaneous else 1
    promises = [
        claim.guarantee(float(confidence), n_claims, grouped=grouped)
        for claim in counted
        if len(claim.wrong)
    ]
    if costs is not None:
        level = (1 - confidence) / n_claims
        assert answers is not None
        limit, is_exact = _expected_cost_limit(answers, labels, costs, level, random)
        promises.append(
            cost_promise(
                limit,
                confidence,
                len(labels),
                n_claims,
                is_exact=is_exact,
                grouped=grouped,
            )
        )
    if not promises:
        raise ValueError(
            "certify: no row is one that the promises of the model are about; give "
            "such rows, or claims='all'."
        )
    return tuple(promises)


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

    def claims_of(rows: NDArray[np.intp]) -> list[Claim]:
        own, labels = _safe_indexing(X, rows), y[rows]
        if answers is None:
            return _detector_claims(model, own, labels)
        return [
            *_classifier_claims(_model_answers(answers, rows, labels), labels),
            *_share_claims(model, promised, own, labels),
        ]

    counted = claims_of(np.arange(len(y)))
    if inside is None:
        knows = hasattr(model, "is_about")
        if isinstance(model, GivenAnswers):
            knows = model.inside is not None
        if knows:
            about = {
                promise.subgroup: promise
                for promise in promised
                if promise.subgroup is not None and promise.quantity not in COUNTED_AS
            }
            for name, promise in about.items():
                rows = np.flatnonzero(model.is_about(promise, X))
                counted += [replace(own, subgroup=name) for own in claims_of(rows)]
        return _in_order(counted, promised, only_promised=only_promised)
    # What is promised, whatever it is about.
    promised = [replace(promise, subgroup=None) for promise in promised]
    counted = _in_order(counted, promised, only_promised=only_promised)
    wanted = {(claim.quantity, claim.scope) for claim in counted}
    for name, members in zip(inside.names, inside.members.T, strict=True):
        counted += [
            replace(own, subgroup=name)
            for own in claims_of(np.flatnonzero(members))
            if (own.quantity, own.scope) in wanted and own.subgroup is None
        ]
    return counted


def _in_order(
    claims: list[Claim], promised: Sequence[Guarantee], *, only_promised: bool
) -> list[Claim]:
    """The claims that a model itself promises, and behind them all others.

    The others are left out with `only_promised`, unless nothing is promised. Those of a
    subgroup, and the coverage of a class, are claims only where they are promised.
    """
    wanted = [
        (
            promise.quantity,
            None if promise.quantity in ALARMS else promise.scope,
            promise.subgroup,
            promise.sense,
        )
        for promise in promised
    ]
    claimed = {
        (claim.quantity, claim.scope, claim.subgroup, claim.sense): claim
        for claim in claims
    }
    first = [claimed[key] for key in dict.fromkeys(wanted) if key in claimed]
    if first and only_promised:
        return first
    others = [
        claim
        for claim in claims
        if claim not in first
        and (claim.quantity, claim.scope is None) != ("coverage", False)
        and claim.subgroup is None
    ]
    return first + others


def _model_answers(model: Any, X: Any, y: NDArray[Any]) -> GivenAnswers:
    """What a classifier answers: labels for all rows, which it stands by, and sets.

    `X` are rows, of given answers their places; labels `y` that the model does not know
    are refused.
    """
    if not isinstance(model, GivenAnswers):
        check_classification_targets(y)
    check_labels("certify", model, y)
    if isinstance(model, GivenAnswers):
        parts: dict[str, Any] = {
            name: None if column is None else column[X]
            for name, column in (
                ("labels", model.labels),
                ("answered", model.answered),
                ("sets", model.sets),
            )
        }
        inside = None if model.inside is None else model.inside.taken(X)
        return replace(model, **parts, inside=inside)
    answered = np.asarray(model.answers(X)) if hasattr(model, "answers") else None
    sets = predict_set(model, X) if hasattr(model, "predict_set") else None
    classes = model.classes_
    # The labels that a selective model does not stand by are measured too.
    if answered is not None and getattr(model, "_reject_label", None) is not None:
        model = model.estimator_
    return GivenAnswers(classes, np.asarray(model.predict(X)), answered, sets)


def _expected_cost_limit(
    answers: GivenAnswers,
    y: NDArray[Any],
    costs: ArrayLike,
    level: float,
    random: np.random.RandomState,
) -> tuple[float, bool]:
    """Upper limit of the mean cost of the answers, and whether it is exact.

    It is the binomial one where costs have at most two different values.
    """
    if answers.labels is None:
        raise ValueError("certify: `costs` are of labels, not of sets.")
    k = len(answers.classes_)
    matrix = _checked_costs(costs, k, has_refusals=answers.answered is not None)
    actions = _positions(answers.labels, answers.classes_)
    if answers.answered is not None and matrix.shape[1] > k:
        actions = np.where(answers.answered, actions, k)
    losses = matrix[_positions(y, answers.classes_), actions]
    possible = np.unique(matrix)
    least, span = float(possible[0]), float(possible[-1] - possible[0])
    scaled, is_exact = (losses - least) / (span or 1.0), len(possible) <= 2
    if is_exact:
        limit = upper_limit(int(scaled.sum()), len(scaled), level=level)
    else:
        limit = mean_upper_limit(scaled, level=level, random_state=random)
    return least + span * limit, is_exact


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


def _detector_claims(model: Any, X: Any, y: NDArray[Any]) -> list[Claim]:
    """False alarms among the normal rows and misses among the anomalies."""
    values = np.unique(y)
    if not np.isin(values, (1, -1)).all():
        raise ValueError(
            "certify: a detector needs labels 1 (normal) and -1 (anomaly), got "
            f"{values.tolist()}."
        )
    flagged = np.asarray(model.predict(X)) == -1
    claims = [
        Claim("false alarm rate", flagged[y == 1]),
        Claim("miss rate", ~flagged[y == -1]),
    ]
    # Both are true given the labels, whose counts may therefore choose the level.
    return [claim for claim in claims if len(claim.wrong)]


def _classifier_claims(answers: GivenAnswers, y: NDArray[Any]) -> list[Claim]:
    """Claims of all classes, also of those without rows.

    How many of them have rows depends on chance, and the error rate with it: if only
    those were counted, the sum of the levels would not be proved.
    """
    claims: list[Claim] = []
    labels, k = answers.classes_.tolist(), len(answers.classes_)
    if answers.labels is not None:
        wrong = np.asarray(answers.labels != y)
        if answers.answered is not None:
            stood_by = wrong[answers.answered]
            claims.append(Claim("selective error rate", stood_by, n_rows=len(y)))
        claims.append(Claim("error rate", wrong))
        claims += [
            Claim("class error rate", wrong[y == label], label, n_classes=k)
            for label in labels
        ]
    if answers.sets is not None:
        own = _positions(y, answers.classes_)
        missed = ~answers.sets[np.arange(len(y)), own]
        claims.append(Claim("coverage", missed, sense=">="))
        claims += [
            Claim("coverage", missed[y == label], label, n_classes=k, sense=">=")
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
        rare = ~frequent if promise.counts_frequent else frequent
        own = Claim(
            promise.quantity,
            rare[counted],
            promise.scope,
            subgroup=promise.subgroup,
            sense=promise.sense,
        )
        claims.append(own)
    return claims


def check_labels(name: str, model: Any, y: NDArray[Any]) -> None:
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


def _positions(labels: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.intp]:
    """Place (n,) of each label among the classes, 0 of a label that is none of them."""
    same: NDArray[np.bool_] = labels[:, None] == classes
    return same.argmax(axis=1)


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
    if not isinstance(random_state, np.random.RandomState):
        random_state = np.random.RandomState(random_state)
    x = random_state.permutation(x)
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
