"""Sets of labels from conformal p-values."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from prudent._compat import Interval, StrOptions, fit_context
from prudent.conformal.held_out import CrossModel, fitted_scores
from prudent.conformal.inputs import (
    CONSTRAINTS,
    coins,
    forget_fit,
    note_constant_features,
    rows_of,
    training_labels,
    with_tags_of,
)
from prudent.conformal.promises import FULL, SPLIT
from prudent.conformal.ranking import (
    TrainingRanks,
    choose_method,
    cross_ranks,
    full_ranks,
)
from prudent.conformal.ranks import By, categories_of, groups_of
from prudent.core.binomial import check_fraction
from prudent.core.classes import check_two_classes
from prudent.core.guarantee import Guarantee
from prudent.core.types import BoolArray, FloatArray, IntArray
from prudent.estimator_tools import (
    HeldOutEstimator,
    one_thread,
    probability_columns,
    remember_rows,
)
from prudent.rules.rule import Coverage, Rule
from prudent.rules.scores import ROUNDING, CalibrationScores


def _has_probabilities(classifier: ConformalClassifier) -> bool:
    estimator = classifier.estimator
    if estimator is not None and not hasattr(estimator, "predict_proba"):
        raise AttributeError(f"{estimator!r} has no `predict_proba`.")
    return True


class ConformalClassifier(ClassifierMixin, HeldOutEstimator):
    """Sets of labels that hold the truth at a promised rate, for any law of the rows.

    A set leaves out the labels with which the row is among the strangest of the bag of
    training rows and itself. By default every training row fits and ranks (full
    conformal prediction), at about the cost of a fit.

    Parameters
    ----------
    estimator : classifier or None, default=None
        Ranks rows that it is not fitted to ("cross", "split"); needs `predict_proba`
        or `decision_function`. None: `model`.
    method : {"auto", "full", "cross", "split"}, default="auto"
        "full": all rows fit and rank; "cross": each fold is ranked by a clone fitted to
        the others; "split": held-out rows rank. "auto": full up to 2000 rows (Gaussian:
        20 000) and n K^2 <= 2e6, else split; with `estimator` or `confidence` split.
    model : {"blend", "gaussian"}, default="blend"
        "blend": log odds g of Gaussian classes and leave-one-out predictions F of a
        kernel ridge regression in one score, D(g) + 2 D(-4 F) with
        ``D(t) = sign(t) log(1 + |t|)``; it has no settings of its own. "gaussian": the
        log odds alone, whose cost is linear in the rows.
    covariance_type : {"full", "tied", "diag", "identity"}, default="full"
        Of the Gaussian model.
    pooled_rows : float, default=32.0
        Rows that the pooled covariance stands for in each class, >= 0 ("full" and
        "diag"). 0: quadratic discriminant analysis; many: linear.
    ridge_rows : float, default=1.0
        Rows that the identity (in units, see Notes) stands for, >= 0.
    nonconformity : {"posterior", "margin", "density"}, default="posterior"
        Log odds against the label; largest other log joint (of an estimator: decision
        value) minus that of the label; or minus that of the label ("full" only; with
        `condition="class"` and `allow_empty` strangers get the empty set).
    condition : None, "class" or callable, default=None
        One promise for all rows, for each class, or for each group: a fixed function
        of rows (n, d) to integers (n,).
    level : float, default=0.1
        Largest miss rate of the sets, in (0, 1).
    ties : {"conservative", "smoothed"}, default="conservative"
        Equal scores count in full, or by a coin of the row (miss rate `level` exactly).
    cv : int, default=5
        Folds of "cross".
    calibration_size : float, default=0.3
        Share of the rows held out by "split", in (0, 1).
    confidence : float or None, default=None
        Probability, in (0, 1), over the held-out rows with which this very model keeps
        the level ("split" only); None: the level is kept on average.
    random_state : int, RandomState or None, default=None
        For folds, held-out rows and coins.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    method_ : {"full", "cross", "split"}
    n_rows_, n_calibration_ : int
        Rows that fit or rank; rows that rank ("split").
    class_count_ : ndarray of shape (n_classes,)
        Rows of each class that rank.
    estimator_, estimators_ : classifier, list of classifier
        The fitted one ("split"), those of the folds ("cross").
    unseen_label_p_value_ : float
        p-value of a label without training rows (the largest over groups). At most
        `level`: such rows count among the promised misses; else they are assumed away.
    constant_features_ : ndarray of int
        Columns of one value; they play no part, unless a new row differs there.
    rule_ : prudent.rules.rule.Rule
        What answers the scores of rows, and on what evidence ("split").
    guarantees_ : tuple of Guarantee
        Coverage: one promise, or one for each class or group.

    Raises
    ------
    ValueError
        If parameters are out of range or exclude each other (so do `groups` and any
        method but "split"), or there are fewer than two classes.
    SingularCovarianceError
        If a covariance is singular, which `ridge_rows` > 0 prevents.

    See Also
    --------
    ConformalDetector : One class: alarms at a promised rate.

    Notes
    -----
    p_y(x) = #{i <= n + 1 : a_i >= a_{n+1}} / (n + 1), the score a_i of a row computed
    by the model fitted to the n other rows of the bag. If the rows are exchangeable,
    P(p <= e) <= floor(e (n + 1)) / (n + 1), over training rows and new row together:
    the miss rate of one model varies. Full: columns are divided by powers of two next
    to the standard deviation of the n + 1 values; any transformer fitted to the
    training rows in front breaks the promise: put it inside `estimator`. "cross"
    promises about 1 - 2 `level` and keeps about 1 - `level`. No promise for a `level`
    chosen after a look at the data. No `sample_weight`: a repeated row is not a fresh
    draw. A saved full model contains its training rows.

    References
    ----------
    V. Vovk, A. Gammerman and G. Shafer (2005), Algorithmic learning in a random world.
    V. Vovk (2012, 2015), Conditional validity; Cross-conformal predictors. R. F.
    Barber, E. Candes, A. Ramdas and R. Tibshirani (2021), The jackknife+.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from prudent import ConformalClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ConformalClassifier().fit(X[::2], y[::2])
    >>> model.predict_set(X[[1, 71, 83, 133]], level=0.05)
    array([[ True, False, False],
           [False,  True, False],
           [False,  True,  True],
           [False,  True, False]])
    >>> print(model.guarantees_[0])
    The coverage is at least 0.9079, on average over training samples, assuming the new
    row is exchangeable with the training rows.
    """

    _parameter_constraints: Mapping[str, Any] = {
        **CONSTRAINTS,
        "method": [StrOptions({"auto", "full", "cross", "split"})],
        "model": [StrOptions({"blend", "gaussian"})],
        "covariance_type": [StrOptions({"full", "tied", "diag", "identity"})],
        "pooled_rows": [Interval(Real, 0, None, closed="left")],
        "nonconformity": [StrOptions({"posterior", "margin", "density"})],
        "condition": [StrOptions({"class"}), callable, None],
        "level": [Interval(Real, 0, 1, closed="neither")],
        "cv": [Interval(Integral, 2, None, closed="left")],
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        method: Literal["auto", "full", "cross", "split"] = "auto",
        model: Literal["blend", "gaussian"] = "blend",
        covariance_type: Literal["full", "tied", "diag", "identity"] = "full",
        pooled_rows: float = 32.0,
        ridge_rows: float = 1.0,
        nonconformity: Literal["posterior", "margin", "density"] = "posterior",
        condition: Literal["class"] | Callable[[Any], ArrayLike] | None = None,
        level: float = 0.1,
        ties: Literal["conservative", "smoothed"] = "conservative",
        cv: int = 5,
        calibration_size: float = 0.3,
        confidence: float | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.model = model
        self.covariance_type = covariance_type
        self.pooled_rows = pooled_rows
        self.ridge_rows = ridge_rows
        self.nonconformity = nonconformity
        self.condition = condition
        self.level = level
        self.ties = ties
        self.cv = cv
        self.calibration_size = calibration_size
        self.confidence = confidence
        self.random_state = random_state

    @fit_context
    def fit(self, X: Any, y: Any, groups: ArrayLike | None = None) -> Self:
        """Learn how strange rows are, and rank the training rows.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            With `estimator`, whatever it takes.
        y : array-like of shape (n_samples,)
            Labels of two classes at least.
        groups : array-like of shape (n_samples,), default=None
            Equal for rows that belong together: one row of each ranks ("split" only).

        Returns
        -------
        self : ConformalClassifier
        """
        X = rows_of(self, X, reset=True)
        y = training_labels(X, y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        check_two_classes(self.classes_)
        self.n_rows_ = len(codes)
        self.method_ = choose_method(self, len(self.classes_), groups)
        note_constant_features(self, X)
        forget_fit(self)
        self._condition = self.condition
        if self.method_ != SPLIT:
            remember_rows(self, X)
        random = check_random_state(self.random_state)
        if self.method_ == SPLIT:
            self._fit_held_out(X, y, random, groups)
        elif self.method_ == FULL:
            self._take(full_ranks(self, X, codes))
        else:
            self._take(cross_ranks(self, X, y, random))
            assert isinstance(self._ranks.model, CrossModel)
            self.estimators_ = [one.estimator for one in self._ranks.model.scores]
        self._key = random.bytes(32)
        return self

    def p_values(self, X: Any) -> FloatArray:
        """Conformal p-value of each row under each label.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            In (0, 1], columns in the order of `classes_`.
        """
        _, p_values = self._values_and_p_values(X)
        return p_values

    def predict_with_p_values(self, X: Any) -> tuple[NDArray[Any], FloatArray]:
        """Most probable label of each row, and the p-values of all labels.

        What `predict` and `p_values` answer, for the price of one of them.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        p_values : ndarray of shape (n_samples, n_classes)
            In (0, 1], columns in the order of `classes_`.
        """
        values, p_values = self._values_and_p_values(X)
        return self.classes_[values().argmax(axis=1)], p_values

    def _values_and_p_values(
        self, X: Any
    ) -> tuple[Callable[[], FloatArray], FloatArray]:
        """What the labels are predicted by, on demand, and p-values of all labels."""
        rows = rows_of(self, X)
        groups, coins = self._groups_and_coins(rows)
        with one_thread("blas"):
            if self.method_ == SPLIT:
                values, scores = self._labels.both(rows)
                return (lambda: values), self.rule_.p_values(scores, groups, coins)
            joint, p_values, _ = self._ranks.ask(rows, groups, coins)
            return joint, p_values

    def predict_set(
        self, X: Any, level: float | None = None, *, allow_empty: bool = False
    ) -> BoolArray:
        """Labels with p-values above a level.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
        level : float, default=None
            Miss rate in (0, 1); None: that of the constructor. Needs no new fit.
        allow_empty : bool, default=False
            False adds the predicted label, which can only make fewer misses.

        Returns
        -------
        ndarray of bool, shape (n_samples, n_classes)
        """
        rows = rows_of(self, X)
        if level is not None:
            check_fraction("level", level)
        groups, coins = self._groups_and_coins(rows)
        with one_thread("blas"):
            if self.method_ == SPLIT:
                values, scores = self._labels.both(rows)
                rule = self.rule_ if level is None else self.rule_.at(float(level))
                members = rule.sets(scores, groups, coins, allow_empty=True)
            else:
                joint, p_values, wanted = self._ranks.ask(rows, groups, coins)
                level = self._level if level is None else float(level)
                members = self._ranks.sets(p_values, wanted, level)
                values = np.empty((0, 0)) if allow_empty else joint()
        if not allow_empty:
            members[np.arange(len(members)), values.argmax(axis=1)] = True
        return members

    def credibility(self, X: Any) -> FloatArray:
        """Largest p-value of each row; small where it is unlike anything seen.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return np.max(self.p_values(X), axis=1)

    def predict(self, X: Any) -> NDArray[Any]:
        """Most probable label of each row under the fitted model.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        joint = self._joint(X)
        return self.classes_[joint.argmax(axis=1)]

    def decision_function(self, X: Any) -> FloatArray:
        """Log joints of the fitted model, or what stands for them.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes), or (n_samples,) for two classes
            Two classes: log odds of `classes_[1]`.
        """
        joint = self._joint(X)
        return joint[:, 1] - joint[:, 0] if joint.shape[1] == 2 else joint

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities of the fitted model ("cross": mean of the folds').

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return softmax(self._joint(X), axis=1)

    def with_level(self, level: float) -> Self:
        """Fitted copy for another level, with its promises, without a new fit.

        Parameters
        ----------
        level : float
            In (0, 1). Chosen after a look at the data it has no promise.

        Returns
        -------
        ConformalClassifier
        """
        check_is_fitted(self)
        check_fraction("level", level)
        if self.method_ == SPLIT:
            return self._at(float(level), level=level)
        return copy.copy(self).set_params(level=level)._take(self._ranks)

    def _fit_part(self, X: Any, y: Any, random: np.random.RandomState) -> None:
        self._labels = fitted_scores(self, X, y)
        self.classes_, self.estimator_ = self._labels.classes, self._labels.estimator

    def _scores(self, X: Any, y: Any) -> tuple[CalibrationScores, By, IntArray]:
        """Scores of held-out rows, what they rank among, and rows of each class."""
        codes = np.searchsorted(self.classes_, y).astype(np.intp)
        by, names, category = categories_of(X, codes, self.classes_, self._condition)
        own = self._labels.own(X, codes)
        scores = CalibrationScores.of(own, category, names, ROUNDING)
        return scores, by, np.bincount(codes, minlength=len(self.classes_))

    def _merged(self, parts: Sequence[Any]) -> tuple[CalibrationScores, By, IntArray]:
        scores, by, counts = zip(*parts, strict=True)
        return CalibrationScores.merged(scores), by[0], np.sum(counts, axis=0)

    def _rule(self, scores: Any) -> Rule:
        known, by, self.class_count_ = scores
        made = Coverage(
            scores=known,
            classes=tuple(self.classes_.tolist()),
            by=by,
            smoothed=self.ties == "smoothed",
            terms=self._terms(),
        )
        self.unseen_label_p_value_ = made.unseen_label_p_value
        return made.rule(float(self.level))

    def _score_record(self) -> dict[str, Any]:
        """What a file of the rule says of its scores."""
        known = self._labels
        if known.kind != "probability":
            raise ValueError(
                "ConformalClassifier: only scores made of the probabilities of an "
                "`estimator` can be computed from a file, not log joints or margins: "
                "give one with predict_proba."
            )
        if known.unknown().any():
            raise ValueError(
                f"ConformalClassifier: the classifier does not know the labels "
                f"{known.classes[known.unknown()].tolist()}, which no column of "
                "probabilities stands for."
            )
        columns = probability_columns(known.estimator, type(self).__name__)
        group = {"group": "group"} if self.rule_.by == "group" else {}
        return {"scores": "log odds", "columns": columns, **group}

    def _take(self, ranks: TrainingRanks) -> Self:
        """Rank by training rows, and write down what is promised at `level`."""
        self._ranks, self._level = ranks, float(self.level)
        self.class_count_ = ranks.class_count
        self.unseen_label_p_value_ = ranks.unseen_label_p_value
        self.guarantees_: tuple[Guarantee, ...] = ranks.coverages(self._level)
        return self

    def _groups_and_coins(
        self, rows: Any
    ) -> tuple[NDArray[Any] | None, FloatArray | None]:
        """What the answers to rows depend on besides their scores."""
        smoothed = (
            self.rule_.smoothed_rate is not None
            if self.method_ == SPLIT
            else self._ranks.smoothed
        )
        thrown = coins(rows, self._key) if smoothed else None
        return groups_of(rows, self._condition), thrown

    def _joint(self, X: Any) -> FloatArray:
        rows = rows_of(self, X)
        with one_thread("blas"):
            if self.method_ == SPLIT:
                return self._labels.both(rows)[0]
            return self._ranks.model.joint(rows)

    def __sklearn_tags__(self) -> Any:
        return with_tags_of(self.estimator, super().__sklearn_tags__())
