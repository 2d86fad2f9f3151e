"""Keep the error of chosen classes below a limit each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from prudent.certification.held_out import (
    REDRAWN,
    HeldOutClassifier,
    class_scores,
)
from prudent.core.binomial import check_fraction, fewest_rows, most_wrong
from prudent.core.types import BoolArray, FloatArray
from prudent.core.validation import refuse_nan, shown
from prudent.estimator_tools import model_name, probability_columns
from prudent.estimator_tools.subgroups import SubgroupsOption
from prudent.exceptions import InfeasibleError
from prudent.rules.bands import ThresholdBands, alarm_bands
from prudent.rules.make import ClassErrors, class_scores_of
from prudent.rules.rule import Rule, Terms
from prudent.rules.scores import ClassScores, Rounding


class NeymanPearsonClassifier(HeldOutClassifier):
    """Any classifier, with the error of chosen classes kept below a limit each.

    Half of the rows is held out. A class with a limit is predicted wherever its score
    reaches an order statistic of the scores of its own held-out rows, so that rows of
    the class fall below it at most as often as the limit says, with probability
    `confidence`. The promise holds for any classifier and any law; of the held-out
    scores that prove it the highest is the threshold, so that the others err least.
    Not for rows that drift within the class; a change of class shares alone does no
    harm.

    Parameters
    ----------
    estimator : classifier
        Fitted to the rows not held out. A fitted model in `FrozenEstimator` is left
        as it is, and all rows given to `fit` are held-out rows: they must be new to
        it.
    max_class_error : mapping of label to float, float or None, default=None
        Largest error of each class named, in (0, 1), the most important first. A
        number stands for every class and needs `abstain`. None: the estimator's own
        predictions, and no promise.
    confidence : float, default=0.95
        Probability over the held-out rows that all limits hold at once, in (0, 1).
    abstain : bool, default=False
        Answer with the set of all classes whose threshold a row reaches (all classes
        if it reaches none). Then every class may have a limit, and a class of too few
        rows is never ruled out instead of being an error.
    flagged_share : float, default=None
        Largest share of all rows that may get the label of the one class limited, in
        (0, 1): a capacity, promised too where the held-out rows prove it.
    subgroups : list of str or int, callable or None, default=None
        Parts of the population in each of which every limit is kept; they may overlap.
        Names or positions of columns, each value of which is a subgroup: ``"sex"``,
        crossed ``"sex*age_band"``, in bands ``"age:30,45,60"``. Or a function of rows
        to a bool matrix (n, n_subgroups) or to a data frame of labels. Not with
        `flagged_share`.
    calibration_size : float, default=0.5
        Share of the rows (or groups) to hold out by a plain draw, in (0, 1).
    random_state : int, RandomState or None, default=None
        For the draw of held-out rows.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, as the estimator orders them.
    estimator_ : classifier
        Fitted to the rows not held out.
    thresholds_ : ndarray of shape (n_classes,) or (n_subgroups, n_classes)
        A class is reached where its score is at least this, for the lowest of the
        subgroups that hold the row; -inf without a limit.
    subgroups_ : list of str
        Names of the subgroups that the rows have shown, as in ``sex=Female``.
    subgroup_count_ : ndarray of shape (n_subgroups,)
        Held-out rows of each.
    priority_ : ndarray of shape (n_limits,)
        Labels with a limit, the most important first.
    n_calibration_ : int
        Held-out rows.
    order_test_ : OrderInTime
        After a fit with `time`: whether the rows change with time, by an exact test
        (`p_value`, `changed`, `when`); its text is one line.
    rule_ : prudent.rules.rule.Rule
        What answers the scores of rows, and on what evidence.
    guarantees_ : tuple of Guarantee
        Error of each limited class, or with `abstain` how often its sets hold it.

    Raises
    ------
    ValueError
        If a parameter is outside its range, names an unknown class or bounds all
        classes without `abstain`, or a limited class has no row outside the held-out
        part.
    InfeasibleError
        Without `abstain`: if a class has too few held-out rows for its limit, or
        classes before it take too many of them.
    TypeError
        If the estimator has no scores of classes, or `fit` is given weights.

    See Also
    --------
    SelectiveClassifier : Keep the error among the answered rows.
    certify : What new rows prove about a fitted model.
    plan : How many rows of the class a limit needs.

    Notes
    -----
    Scores S_c are `predict_proba`, else `decision_function`. With n_c held-out rows of
    class c and limit a, the threshold is the k-th smallest of their scores, k the
    largest with P(Bin(n_c, a) <= k - 1) <= 1 - confidence: the error of c given these
    rows is at most Beta(k, n_c + 1 - k). Each of m limits uses the confidence
    ``confidence ** (1 / m)``, because classes have rows of their own. Rows that reach
    an earlier class are lost to a later one and count as its lowest scores. The
    threshold lies below that score by what rounding may change, since a row alone and
    the same row in a batch differ by so much.

    A flagged share of b is promised, falsely with probability at most a, where at most
    c = max{c: P(Bin(n, b) <= c) <= a} of the n held-out rows get the label; it and the
    limit of the class take half of 1 - `confidence` each.

    **Guarantee.** Future rows are independent draws from the population of the
    held-out rows. That `fit` raises an error or the limits hold has probability at
    least `confidence`; given that it does not raise, they may hold less often.

    References
    ----------
    X. Tong, Y. Feng and J. J. Li (2018), Neyman-Pearson classification algorithms and
    NP receiver operating characteristics, Science Advances 4, proposition 1.

    Examples
    --------
    >>> from prudent import NeymanPearsonClassifier
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    >>> X, y = load_breast_cancer(return_X_y=True)  # class 0 is malignant
    >>> model = NeymanPearsonClassifier(
    ...     LinearDiscriminantAnalysis(), max_class_error={0: 0.05}, random_state=0
    ... ).fit(X, y)
    >>> print(model.guarantees_[0])
    The class error rate of class 0 is at most 0.05 with confidence 0.95, assuming
    future rows are independent draws from the population of the calibration rows.
    >>> int((model.predict(X[y == 0]) == 1).sum())  # malignant rows missed, of 212
    2
    """

    classes_: NDArray[Any]
    estimator_: Any
    confidence: float

    def __init__(
        self,
        estimator: Any = None,
        *,
        max_class_error: Mapping[Any, float] | float | None = None,
        confidence: float = 0.95,
        abstain: bool = False,
        flagged_share: float | None = None,
        subgroups: SubgroupsOption = None,
        calibration_size: float = 0.5,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.max_class_error = max_class_error
        self.confidence = confidence
        self.abstain = abstain
        self.flagged_share = flagged_share
        self.subgroups = subgroups
        self.calibration_size = calibration_size
        self.random_state = random_state

    def predict(self, X: Any) -> NDArray[Any]:
        """Label of each row; with `abstain` the best-scored one of its set.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        rows = self._checked(X)
        if not len(self.priority_):
            return np.asarray(self.estimator_.predict(rows))
        members = self._members(rows)
        scores, _ = self._class_scores(rows)
        if self.rule_.kind == "labels":
            return self.classes_[self.rule_.codes(scores, members)]
        # Finite, so that a class in the set comes before all others.
        scores = np.maximum(scores, np.finfo(np.float64).min)
        chosen = np.where(self.rule_.sets(scores, members), scores, -np.inf).argmax(
            axis=1
        )
        return self.classes_[chosen]

    def predict_set(self, X: Any) -> BoolArray:
        """Classes that a row may have; one of them without `abstain`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of bool, shape (n_samples, n_classes)
            Columns in the order of `classes_`.
        """
        rows = self._checked(X)
        if self.rule_.kind == "sets" and len(self.priority_):
            members = self._members(rows)
            return self.rule_.sets(self._class_scores(rows)[0], members)
        sets: BoolArray = self.predict(X)[:, None] == self.classes_
        return sets

    def with_class_error(self, max_class_error: Mapping[Any, float] | float) -> Self:
        """Fitted copy that keeps other limits, without a new fit.

        Each choice of limits has its promise; limits chosen after a look at curves of
        them have none.

        Parameters
        ----------
        max_class_error : mapping of label to float, or float
            As in the constructor.

        Returns
        -------
        NeymanPearsonClassifier
        """
        check_is_fitted(self)
        in_sets = self.rule_.kind == "sets"
        limits = self._limits(max_class_error, in_sets=in_sets)
        with self._named():
            return self._at(limits, max_class_error=max_class_error)

    def threshold_bands(self, positive: Any = None) -> ThresholdBands:
        """Limits that hold at all thresholds of the held-out rows at once.

        They hold with `confidence`, and together with `guarantees_` with probability
        1 - 2 (1 - `confidence`).

        Parameters
        ----------
        positive : object, default=None
            The class that an alarm stands for: a row raises one where its score for
            this class is at least the threshold. None: the first of `priority_`, else
            the second of two classes.

        Returns
        -------
        ThresholdBands
            Of `kind` "alarms".

        Raises
        ------
        ValueError
            If `positive` is no class, or missing where no class is limited and there
            are more than two, or there are two and held-out rows have another label.
        """
        check_is_fitted(self)
        if positive is None and len(self.priority_):
            positive = self.priority_[0]
        calibration = self.rule_.calibration
        assert isinstance(calibration, ClassErrors)
        return alarm_bands(calibration.scores, positive, calibration.terms)

    def _check_parameters(self) -> None:
        check_fraction("confidence", self.confidence)
        if self.flagged_share is not None:
            check_fraction("flagged_share", self.flagged_share)
            if self.subgroups is not None:
                raise ValueError(
                    "`flagged_share` is not promised by subgroups: leave one of the "
                    "two out."
                )

    def _scores(self, X: Any, y: Any) -> ClassScores:
        self._limits(self.max_class_error, in_sets=self.abstain)  # or refuse them
        scores, rounding = self._class_scores(X)
        return class_scores_of(scores, y, self.classes_, rounding)

    def _rule(self, scores: ClassScores) -> Rule:
        limits = self._limits(self.max_class_error, in_sets=self.abstain)
        made = ClassErrors(
            scores=scores,
            in_sets=self.abstain,
            flagged_share=self.flagged_share,
            memberships=self._memberships,
            terms=self._terms,
            setting="max_class_error",
        )
        with self._named():
            return made.rule(limits)

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Let an error say whose it is."""
        try:
            yield
        except InfeasibleError as error:
            raise InfeasibleError(f"{type(self).__name__}: {error}") from None

    def _score_record(self) -> dict[str, Any]:
        """What a file of the rule says of its scores."""
        columns = probability_columns(self.estimator_, type(self).__name__)
        return {"scores": "as given", "columns": columns}

    def _adopt(self, rule: Rule) -> Self:
        self.thresholds_ = np.array(rule.thresholds)
        if rule.subgroups:
            self.thresholds_ = self.thresholds_.reshape(len(rule.subgroups), -1)
        labels = self.classes_.tolist()
        self.priority_ = self.classes_[[labels.index(c) for c in rule.priority]]
        quantities = {promise.quantity for promise in rule.guarantees}
        if self.flagged_share is not None and "flagged share" not in quantities:
            level = (1 - self.confidence) / 2
            most = most_wrong(self.n_calibration_, float(self.flagged_share), level)
            self._warn(
                f"flagged_share={self.flagged_share:g} is not promised: "
                f"{rule.record['flagged']} of {self.n_calibration_} held-out rows get "
                f"the label, at most {max(most, 0)} would prove it."
            )
        calibration = rule.calibration
        for promise in rule.guarantees if rule.kind == "sets" else ():
            if promise.evidence["rank"] == 0:
                assert isinstance(calibration, ClassErrors)
                inside = calibration.memberships
                limit = rule.record["limits"][promise.scope]
                each = Terms(confidence=promise.confidence).each(
                    len(rule.guarantees),
                    overlap=inside is not None and inside.overlap,
                )
                also = f" with {promise.subgroup}" if promise.subgroup else ""
                self._warn(
                    f"class {shown(promise.scope)}{also} has "
                    f"{promise.evidence['calibration rows']} held-out rows, too few to "
                    f"rule it out ({fewest_rows(limit, each)} are needed for "
                    f"{limit:g}); it is in every set."
                )
        return super()._adopt(rule)

    def _class_scores(self, rows: Any) -> tuple[FloatArray, Rounding]:
        """Scores (n, n_classes) of rows by the fitted estimator, never NaN."""
        scores, rounding = class_scores(self.estimator_, rows)
        refuse_nan(
            scores,
            f"{model_name(self.estimator)} gave NaN scores for {{}}; rows without a "
            "score cannot be ranked.",
        )
        return scores, rounding

    def _limits(self, max_class_error: Any, *, in_sets: bool) -> dict[Any, float]:
        """Limit of each limited class, in order of priority."""
        if max_class_error is None and self.flagged_share is None:
            return {}
        max_class_error = {} if max_class_error is None else max_class_error
        labels = self.classes_.tolist()
        if not isinstance(max_class_error, Mapping):
            check_fraction("max_class_error", max_class_error)
            max_class_error = dict.fromkeys(labels, float(max_class_error))
        for label, limit in max_class_error.items():
            if label in self._unlearned:
                raise ValueError(
                    f"{type(self).__name__}: {self._lost([label])}, so its error "
                    f"cannot be limited. {REDRAWN}"
                )
            if label not in labels:
                raise ValueError(
                    f"`max_class_error` names class {shown(label)}, which is not among "
                    f"the classes {labels}."
                )
            if not (isinstance(limit, Real) and 0 < float(limit) < 1):
                raise ValueError(
                    f"`max_class_error` must lie in (0, 1), got {shown(limit)} for "
                    f"class {shown(label)}."
                )
        if len(max_class_error) == len(labels) and not in_sets:
            if len(labels) == 1:
                raise ValueError(
                    f"{type(self).__name__}: of the rows outside the held-out part "
                    f"the estimator has learned class {shown(labels[0])} alone, so no "
                    f"class is left to take the remaining rows. {REDRAWN}"
                )
            raise ValueError(
                f"`max_class_error` bounds all {len(labels)} classes, so no class is "
                "left to take the remaining rows; leave one out or set abstain=True."
            )
        if self.flagged_share is not None and (in_sets or len(max_class_error) != 1):
            raise ValueError(
                "`flagged_share` is promised beside the limit of one class: name it "
                "alone in `max_class_error`, and leave `abstain` out."
            )
        return {
            labels[labels.index(label)]: float(limit)
            for label, limit in max_class_error.items()
        }
