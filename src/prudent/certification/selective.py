"""Answer only where the answers keep an error rate."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from prudent.certification.held_out import (
    HeldOutClassifier,
    Scoring,
    answer_scores,
    check_scoring,
    named_first,
)
from prudent.core.binomial import check_fraction, fewest_rows
from prudent.core.types import BoolArray
from prudent.core.validation import shown
from prudent.estimator_tools import probability_columns
from prudent.estimator_tools.subgroups import SubgroupsOption
from prudent.rules.bands import ThresholdBands, answer_bands
from prudent.rules.make import CellErrors, SelectiveError, unproved_share
from prudent.rules.rule import Rule
from prudent.rules.scores import AnswerScores
from prudent.rules.subgroups import cell_name

#: What the record of a rule counts among the held-out rows.
ANSWER_COUNTS = ("answered", "wrong")


class SelectiveClassifier(HeldOutClassifier):
    """Any classifier, answering only where its answers keep an error rate.

    Part of the rows is held out; the score above which rows are answered is the
    lowest one for which they prove that at most `error_rate` of the answers are
    wrong, with probability `confidence`. The promise holds for any classifier, any
    score and any law of the rows; these decide only how much is answered. Not for
    rows that drift: they are not draws from the population of the held-out rows.

    Parameters
    ----------
    estimator : classifier
        Fitted to the rows not held out. A fitted model in `FrozenEstimator` is left
        as it is, and all rows given to `fit` are held-out rows: they must be new to
        it.
    error_rate : float or None, default=0.05
        Largest share of wrong ones among future answers, in (0, 1).
    answered_share : float or None, default=None
        Share of the rows to answer, in (0, 1]. With `error_rate` it is promised too,
        where the held-out rows prove it; a share of 1 is proved by no rows. Without
        (None) as few rows are answered as prove the share, and `guarantees_` states it
        and the error rate among them; where scores tie at the cut, fewer are answered,
        and where no number of held-out rows proves the share, at most that share is:
        then it is not promised.
    confidence : float, default=0.95
        Probability over the held-out rows that the promise is true, in (0, 1).
    scoring : {"max_probability", "margin"} or callable, default="max_probability"
        Rows of higher score are answered first: the largest of `predict_proba`
        (without it the margin); the lead of the best over the second
        `decision_function` (of `predict_proba` without it); or a function
        ``(model, X) -> (n_rows,)``, which must not use the labels of held-out rows.
        Where a probability or its lead rounds to 1, the log odds (above 30) stand
        in for it, so that sure rows do not tie.
    subgroups : list of str or int, callable or None, default=None
        Parts of the population in each of which the error rate is promised; they may
        overlap. Names or positions of columns, each value of which is a subgroup:
        ``"sex"``, crossed ``"sex*age_band"``, in bands ``"age:30,45,60"``. Or a
        function of rows to a bool matrix (n, n_subgroups) or to a data frame of
        labels. Not with `answered_share`.
    calibration_size : float, default=0.3
        Share of the rows (or groups) to hold out by a plain draw, in (0, 1).
    reject_label : object, default=None
        What `predict` says of rows without an answer; None: the estimator's label
        for every row.
    random_state : int, RandomState or None, default=None
        For the draw of held-out rows.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, as the estimator orders them.
    estimator_ : classifier
        Fitted to the rows not held out.
    threshold_ : float
        Rows scoring strictly above are answered; +inf: none is. Not with `subgroups`.
    thresholds_ : ndarray of shape (n_cells,)
        Thresholds of the cells of `subgroups`: rows of the same memberships.
    cells_ : list of str
        The subgroups that hold the rows of each cell. Rows of other cells, which have
        too few held-out rows, are never answered.
    subgroups_ : list of str
        Names of the subgroups that the rows have shown, as in ``sex=Female``.
    subgroup_count_ : ndarray of shape (n_subgroups,)
        Held-out rows of each.
    n_calibration_ : int
        Held-out rows.
    order_test_ : OrderInTime
        After a fit with `time`: whether the rows change with time, by an exact test
        (`p_value`, `changed`, `when`); its text is one line.
    n_answered_, n_wrong_ : int
        Held-out rows answered, and those of them answered wrong.
    answered_share_ : float
        Share of held-out rows answered.
    rule_ : prudent.rules.rule.Rule
        What answers the scores of rows, and on what evidence.
    guarantees_ : tuple of Guarantee
        The error rate among answered rows, and the answered share where it was asked
        for and is proved; empty when nothing can be promised.

    Raises
    ------
    ValueError
        If a parameter is outside its range, there are fewer than 2 training rows or
        classes among them, or a score is NaN.
    TypeError
        If the estimator's answers cannot be ranked, or `fit` is given weights.

    See Also
    --------
    NeymanPearsonClassifier : Keep the error of one class, and answer every row.
    certify : What new rows prove about a fitted model.
    plan : How many rows a promise needs.

    Notes
    -----
    With W_k wrong ones among the k held-out rows of highest score, rank k is
    admitted if W_k lies under the boundary of
    :func:`prudent.certification.error_boundary`, which a walk of independent steps of
    error rate `error_rate` crosses with probability at most 1 - `confidence`; the
    largest admitted rank is taken. m answered rows without an
    error certify 1 - (1 - `confidence`)^(1/m): 59 rows for 0.05 at 0.95. Scores that
    differ only by rounding, as those of a row alone and of the same row in a batch do,
    count as equal: they are answered together or not at all.

    An answered share of b is promised, falsely with probability at most a, where at
    least k = min{k: P(Bin(n, b) >= k) <= a} of the n held-out rows are answered: if
    fewer than b of the population scored above the threshold, whatever chose it, these
    rows would be among those of its first share b. With `error_rate` the boundary and
    the share take half of 1 - `confidence` each. Without, the rows strictly above the
    (k + 1)-th score are independent draws given that score, so the exact binomial limit
    of their error rate and the share hold with the square root of `confidence` each.

    An answer asks the estimator for its label and for its scores. Labels need not be
    those of the largest score (of a tuned threshold they are not), and rows on which
    they agree, however many, do not show that they agree on the next one: a label made
    of the scores would be another rule than the one that is proved.

    With `subgroups` the rows of the same memberships form a cell. Each of J cells has a
    boundary of its own at the J-th root of `confidence`, so that all hold at once, and
    with them the promise in each subgroup and over all rows, whose error rates are
    means of those of their cells.

    **Guarantee.** Future rows are independent draws from the population of the
    held-out rows. The confidence is over all draws of held-out rows, those after which
    nothing is answered included: of the fits that answer rows, a larger share may be
    wrong where most fits answer nothing. Drift, copies of rows on both sides of the
    split (see `groups`) and a choice of parameters by a look at the held-out rows
    break it: put a search inside, ``SelectiveClassifier(GridSearchCV(...))``.

    References
    ----------
    Y. Geifman and R. El-Yaniv (2017), Selective classification for deep neural
    networks (the task, and a bound by bisection). C. J. Clopper and E. S. Pearson
    (1934), The use of confidence or fiducial limits. The boundary: user guide.

    Examples
    --------
    >>> from prudent import SelectiveClassifier
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = SelectiveClassifier(LinearDiscriminantAnalysis(), random_state=0)
    >>> model = model.fit(X, y)
    >>> model.n_answered_, model.n_wrong_
    (155, 2)
    >>> print(model.guarantees_[0])
    The selective error rate is at most 0.05 with confidence 0.95, assuming future rows
    are independent draws from the population of the calibration rows.
    >>> model.answers(X[85:89])
    array([ True, False,  True,  True])
    """

    estimator_: Any
    classes_: NDArray[Any]
    confidence: float

    def __init__(
        self,
        estimator: Any = None,
        *,
        error_rate: float | None = 0.05,
        answered_share: float | None = None,
        confidence: float = 0.95,
        scoring: Scoring = "max_probability",
        subgroups: SubgroupsOption = None,
        calibration_size: float = 0.3,
        reject_label: Any = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.error_rate = error_rate
        self.answered_share = answered_share
        self.confidence = confidence
        self.scoring = scoring
        self.subgroups = subgroups
        self.calibration_size = calibration_size
        self.reject_label = reject_label
        self.random_state = random_state

    def answers(self, X: Any) -> BoolArray:
        """Whether each row is answered.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of bool, shape (n_samples,)
        """
        rows = self._checked(X)
        members = self._members(rows)
        sureness, _ = answer_scores(self.estimator_, rows, self._scoring)
        return self.rule_.answers(sureness, members)

    def predict(self, X: Any) -> NDArray[Any]:
        """The estimator's label of each row, or `reject_label` where not answered.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
            Without `reject_label` a label for every row; the promise is about those
            of `answers` only.
        """
        rows = self._checked(X)
        labels = np.asarray(self.estimator_.predict(rows))
        if self._reject_label is None:
            return labels
        return _or_rejected(labels, self.answers(X), self._reject_label)

    def predict_set(self, X: Any) -> BoolArray:
        """The one class answered, or all classes where the row is not answered.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of bool, shape (n_samples, n_classes)
            Columns in the order of `classes_`.
        """
        rows = self._checked(X)
        labels = np.asarray(self.estimator_.predict(rows))
        return (labels[:, None] == self.classes_) | ~self.answers(X)[:, None]

    def with_error_rate(self, error_rate: float) -> Self:
        """Fitted copy that keeps another error rate, without a new fit.

        Each rate has its promise; a rate chosen after a look at a curve of rates has
        none.

        Parameters
        ----------
        error_rate : float
            In (0, 1).

        Returns
        -------
        SelectiveClassifier
        """
        check_is_fitted(self)
        check_fraction("error_rate", error_rate)
        return self._at(error_rate, error_rate=error_rate, answered_share=None)

    def threshold_bands(self) -> ThresholdBands:
        """Limits that hold at all thresholds of the held-out rows at once.

        Look at them first, then choose: by `with_threshold`. They hold with
        `confidence`, and together with `guarantees_` with probability
        1 - 2 (1 - `confidence`).

        Returns
        -------
        ThresholdBands
            Of `kind` "answers".
        """
        check_is_fitted(self)
        calibration = self.rule_.calibration
        if isinstance(calibration, CellErrors):
            raise ValueError(
                "SelectiveClassifier: each cell of `subgroups` has a threshold of its "
                "own, so that no single one has limits: leave `subgroups` out."
            )
        assert isinstance(calibration, SelectiveError)
        return answer_bands(calibration.scores, calibration.terms)

    def with_threshold(self, threshold: float) -> Self:
        """Fitted copy that answers rows scoring above a threshold, without a new fit.

        The threshold may be chosen after a look at anything: what is promised of it,
        the selective error rate and the answered share, is what `threshold_bands` says
        of all thresholds at once.

        Parameters
        ----------
        threshold : float
            Rows scoring strictly above are answered.

        Returns
        -------
        SelectiveClassifier

        Raises
        ------
        ValueError
            If the threshold is NaN.
        """
        bands = self.threshold_bands()
        promises = bands.at(threshold)
        counted = {name: int(promises[0].evidence[name]) for name in ANSWER_COUNTS}
        rule = replace(
            self.rule_,
            thresholds=(float(threshold),),
            guarantees=promises,
            record=counted,
        )
        return copy.copy(self)._adopt(rule)

    def _check_parameters(self) -> None:
        if self.error_rate is None and self.answered_share is None:
            raise ValueError(
                "give `error_rate`, `answered_share` or both, got neither."
            )
        if self.error_rate is not None:
            check_fraction("error_rate", self.error_rate)
        if self.answered_share is not None:
            check_fraction("answered_share", self.answered_share, "(0, 1]")
        if self.subgroups is not None and self.answered_share is not None:
            raise ValueError(
                "`answered_share` is not promised by subgroups: leave one of the two "
                "out."
            )
        check_fraction("confidence", self.confidence)
        check_scoring(self.scoring)

    def _scores(self, X: Any, y: Any) -> AnswerScores | CellErrors:
        if self.reject_label is not None and self.reject_label in self.classes_:
            raise ValueError(
                "`reject_label` must differ from every class, got "
                f"{shown(self.reject_label)}."
            )
        self._scoring, self._reject_label = self.scoring, self.reject_label
        sureness, rounding = answer_scores(self.estimator_, X, self._scoring)
        wrong = np.asarray(self.estimator_.predict(X) != y)
        if self._memberships is None:
            return AnswerScores.from_answers(sureness, wrong, rounding)
        return CellErrors.from_answers(
            sureness, wrong, self._memberships, self._terms, rounding
        )

    def _rule(self, scores: AnswerScores | CellErrors) -> Rule:
        if isinstance(scores, CellErrors):
            assert self.error_rate is not None
            return scores.rule(self.error_rate)
        made = SelectiveError(scores=scores, terms=self._terms)
        share = None if self.answered_share is None else float(self.answered_share)
        if self.error_rate is None:
            assert share is not None
            return made.share_rule(share)
        return made.rule(self.error_rate, share)

    def _score_record(self) -> dict[str, Any]:
        """What a file of the rule says of its scores."""
        columns = probability_columns(self.estimator_, type(self).__name__)
        if self._scoring != "max_probability":
            raise ValueError(
                "SelectiveClassifier: only scoring='max_probability' can be computed "
                f"from a file of probabilities, not {self._scoring!r}."
            )
        return {"scores": "max probability", "columns": columns}

    def _adopt(self, rule: Rule) -> Self:
        for name in ("threshold_", "thresholds_", "cells_"):
            self.__dict__.pop(name, None)
        if rule.cells is None:
            (self.threshold_,) = rule.thresholds
        else:
            self.thresholds_ = np.array(rule.thresholds)
            self.cells_ = [cell_name(cell, rule.subgroups) for cell in rule.cells]
        self.n_answered_, self.n_wrong_ = rule.record["answered"], rule.record["wrong"]
        self.answered_share_ = self.n_answered_ / self.n_calibration_
        lacking = self._lacking(rule)
        if lacking is not None:
            self._warn(lacking)
        return super()._adopt(rule)

    def _lacking(self, rule: Rule) -> str | None:
        """What the held-out rows do not prove of what was asked for; None: nothing."""
        n = self.n_calibration_
        if self.n_answered_ == 0 and rule.guarantees:  # of a threshold that was chosen
            return f"threshold={self.threshold_:g} answers none of {n} held-out rows."
        if self.error_rate is None and self.n_answered_ == 0:
            return (
                f"`answered_share={self.answered_share:g}` answers none of {n} "
                "held-out rows, because scores are equal or rows are few; nothing is "
                "promised."
            )
        if isinstance(rule.calibration, CellErrors):
            assert self.error_rate is not None
            small = rule.calibration.too_small(self.error_rate)
            named = [
                f"{name} ({own} held-out rows, needs {needed})"
                for name, (own, needed) in small.items()
            ]
            if named:
                lacking = (
                    "too few rows to prove the error rate, never answered: "
                    f"{named_first(named)}."
                )
                return f"{lacking} {_unproved(rule)}".rstrip()
            if self.n_answered_ == 0:
                return (
                    f"no threshold certifies an error rate <= {self.error_rate:g} in "
                    f"any of the {len(self.cells_)} parts that subgroups make, with "
                    f"confidence {self.confidence:g} for all of them, on {n} held-out "
                    "rows; nothing is answered."
                )
            return _unproved(rule) or None
        elif self.error_rate is not None and self.n_answered_ == 0:
            each = self.confidence
            if self.answered_share is not None:  # which takes half of what may fail
                each = (1 + each) / 2
            fewest = fewest_rows(self.error_rate, each)
            return (
                f"no threshold certifies an error rate <= {self.error_rate:g} with "
                f"confidence {self.confidence:g} on {n} held-out rows (at least "
                f"{fewest} rows without an error are needed); nothing is answered."
            )
        elif self.answered_share is not None:
            share, alone = float(self.answered_share), self.error_rate is None
            reason = unproved_share(rule, share, alone=alone)
            if reason is not None:
                return f"answered_share={share:g}: {reason}; it is not promised."
        return None


def _unproved(rule: Rule) -> str:
    """Name the subgroups with rows enough of which no threshold keeps the rate."""
    if not rule.never_answered:
        return ""
    named = named_first(rule.never_answered)
    return f"no threshold certifies the error rate, never answered: {named}."


def _or_rejected(
    labels: NDArray[Any], answered: BoolArray, reject_label: Any
) -> NDArray[Any]:
    """Labels where answered; of two kinds (text and number) an array of objects."""
    reject = np.asarray([reject_label])
    numbers = set("iuf")
    kinds = {labels.dtype.kind, reject.dtype.kind}
    if len(kinds) > 1 and not kinds <= numbers:
        labels = labels.astype(object)
        reject = np.array([reject_label], dtype=object)
    return np.where(answered, labels, reject)
