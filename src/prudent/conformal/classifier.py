"""Sets of labels from conformal p-values."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.frozen import FrozenEstimator
from sklearn.utils import assert_all_finite, check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
)

from prudent._compat import Interval, StrOptions, fit_context
from prudent.conformal.inputs import coins, new_rows, one_blas_thread, training_rows
from prudent.conformal.promises import FULL, SPLIT, Way, coverages
from prudent.conformal.ranking import (
    Ranking,
    choose_method,
    cross_ranking,
    full_ranking,
    split_ranking,
)
from prudent.conformal.ranks import Counts, sets
from prudent.core.binomial import high_probability_rank, mean_rank
from prudent.core.classes import check_two_classes
from prudent.core.guarantee import Guarantee
from prudent.core.types import BoolArray, FloatArray, IntArray
from prudent.estimator_tools import warn_constant_features


def _has_probabilities(classifier: ConformalClassifier) -> bool:
    estimator = classifier.estimator
    if estimator is not None and not hasattr(estimator, "predict_proba"):
        raise AttributeError(f"{estimator!r} has no `predict_proba`.")
    return True


class ConformalClassifier(ClassifierMixin, BaseEstimator):
    """Sets of labels that hold the truth at a promised rate, for any law of the rows.

    A label is in the set of a row unless the row, with this label, is among the
    strangest of the bag of training rows and itself. By default every training row
    is used to fit and to rank (full conformal prediction), at about the cost of a fit.

    Parameters
    ----------
    estimator : classifier or None, default=None
        Ranks rows that it is not fitted to ("cross", "split"); needs `predict_proba`
        or `decision_function`. None: `model`.
    method : {"auto", "full", "cross", "split"}, default="auto"
        "full": all rows fit and rank, `model` only; "cross": each fold is ranked by a
        clone fitted to the others; "split": held-out rows rank. "auto": full up to
        20 000 rows and n K^2 <= 2e6, else split; with `estimator` cross, with a
        `FrozenEstimator` or `groups` split.
    model : {"gaussian", "kernel", "neighbors", "combined"}, default="gaussian"
        Student log joints of Gaussian classes; log kernel sums; log mean distances to
        the nearest rows; or the Gaussian log odds and, doubly, those of the nearest
        rows, each as ``sign(a) log(1 + |a|)`` ("full" only; elsewhere the Gaussian
        part): sets 5 to 8 % smaller on ten tables that played no part in its choice.
    covariance_type : {"full", "tied", "diag", "identity"}, default="full"
        Of the Gaussian model.
    pooled_rows : float, default=32.0
        Rows that the pooled covariance stands for in each class, >= 0 ("full" and
        "diag"). 0: quadratic discriminant analysis; many: linear.
    ridge_rows : float, default=1.0
        Rows that the identity (in units, see Notes) stands for, >= 0.
    n_neighbors : int, default=3
        For "neighbors".
    bandwidth : "auto" or float, default="auto"
        Width of the kernel, in units; "auto": (n + 1)^(-1/(d + 4)).
    nonconformity : {"posterior", "margin", "density"}, default="posterior"
        Log odds against the label, the largest other log joint minus that of the label,
        or minus that of the label (full only: leaves strangers the empty set with
        `condition="class"` and `allow_empty`). With an estimator: log odds by its
        probabilities, or its decision values.
    condition : None, "class" or callable, default=None
        One promise for all rows, one for each class, or one for each group: a fixed
        function of rows (n, d) to integers (n,).
    level : float, default=0.1
        Largest miss rate of the sets, in (0, 1).
    ties : {"conservative", "smoothed"}, default="conservative"
        Whether equal scores count in full, or by a coin that depends on nothing but
        the row (then the miss rate is `level` exactly).
    cv : int, default=5
        Folds of "cross", at least 2.
    calibration_size : float, default=0.3
        Share of the rows held out by "split", in (0, 1).
    guarantee : {"mean", "high_probability"}, default="mean"
        Miss rate at most `level` on average over training samples, or, with "split",
        for this model with probability `confidence`.
    confidence : float, default=0.95
        For "high_probability", in (0, 1).
    random_state : int, RandomState or None, default=None
        For folds, held-out rows and the key of the coins.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    method_ : {"full", "cross", "split"}
    n_rows_ : int
        Rows that fit or rank.
    class_count_ : ndarray of shape (n_classes,)
        Rows of each class that rank.
    n_calibration_ : int
        Rows that rank ("split").
    estimator_ : classifier
        The fitted classifier ("split").
    estimators_ : list of classifier
        The classifiers of the folds ("cross").
    unseen_label_p_value_ : float
        p-value of a label without training rows, the same for every row (the largest
        over groups). At or below `level` such rows count among the promised misses;
        above, the promise assumes that there are none.
    constant_features_ : ndarray of int
        Columns of one value; they play no part, unless a new row differs there.
    guarantees_ : tuple of Guarantee
        Coverage: one promise, or one for each class or group.

    Raises
    ------
    ValueError
        If parameters are out of range or exclude each other, there are fewer than two
        classes, or `groups` are given to another method than "split".
    SingularCovarianceError
        If a covariance is singular, which `ridge_rows` > 0 prevents.

    See Also
    --------
    ConformalDetector : One class: alarms at a promised rate.

    Notes
    -----
    p_y(x) = #{i <= n + 1 : a_i >= a_{n+1}} / (n + 1), where the score a_i of a row is
    computed by the model fitted to the n other rows of the bag. If the rows are
    exchangeable, P(p <= e) <= floor(e (n + 1)) / (n + 1). Full: columns are divided by
    powers of two next to the standard deviation of the n + 1 values, so that no scaler
    is needed; one learned from the training rows, or any other fitted transformer, in
    front of "full" breaks the promise: put it inside, `estimator=make_pipeline(...)`.
    "cross" promises about 1 - 2 `level` and keeps about 1 - `level` in practice.

    The probability is over training rows and new row together: promises hold on
    average over training samples, and the miss rate of one model varies. `level` chosen
    after a look at the data has no promise. No `sample_weight`: a repeated row is not
    a fresh draw. A saved full model contains its training rows.

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
        "estimator": "no_validation",
        "method": [StrOptions({"auto", "full", "cross", "split"})],
        "model": [StrOptions({"gaussian", "kernel", "neighbors", "combined"})],
        "covariance_type": [StrOptions({"full", "tied", "diag", "identity"})],
        "pooled_rows": [Interval(Real, 0, None, closed="left")],
        "ridge_rows": [Interval(Real, 0, None, closed="left")],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "bandwidth": [
            StrOptions({"auto"}),
            Interval(Real, 0, None, closed="neither"),
        ],
        "nonconformity": [StrOptions({"posterior", "margin", "density"})],
        "condition": [StrOptions({"class"}), callable, None],
        "level": [Interval(Real, 0, 1, closed="neither")],
        "ties": [StrOptions({"conservative", "smoothed"})],
        "cv": [Interval(Integral, 2, None, closed="left")],
        "calibration_size": [Interval(Real, 0, 1, closed="neither")],
        "guarantee": [StrOptions({"mean", "high_probability"})],
        "confidence": [Interval(Real, 0, 1, closed="neither")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        method: Literal["auto", "full", "cross", "split"] = "auto",
        model: Literal["gaussian", "kernel", "neighbors", "combined"] = "gaussian",
        covariance_type: Literal["full", "tied", "diag", "identity"] = "full",
        pooled_rows: float = 32.0,
        ridge_rows: float = 1.0,
        n_neighbors: int = 3,
        bandwidth: Literal["auto"] | float = "auto",
        nonconformity: Literal["posterior", "margin", "density"] = "posterior",
        condition: Literal["class"] | Callable[[Any], ArrayLike] | None = None,
        level: float = 0.1,
        ties: Literal["conservative", "smoothed"] = "conservative",
        cv: int = 5,
        calibration_size: float = 0.3,
        guarantee: Literal["mean", "high_probability"] = "mean",
        confidence: float = 0.95,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.model = model
        self.covariance_type = covariance_type
        self.pooled_rows = pooled_rows
        self.ridge_rows = ridge_rows
        self.n_neighbors = n_neighbors
        self.bandwidth = bandwidth
        self.nonconformity = nonconformity
        self.condition = condition
        self.level = level
        self.ties = ties
        self.cv = cv
        self.calibration_size = calibration_size
        self.guarantee = guarantee
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
            Rows that belong together have equal values; for "split", which then ranks
            one random row of each group held out.

        Returns
        -------
        self : ConformalClassifier
        """
        X = training_rows(self, X)
        y = column_or_1d(y, warn=True)
        check_consistent_length(X, y)
        assert_all_finite(y, input_name="y")
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        check_two_classes(self.classes_)
        codes = codes.astype(np.intp)
        self.n_rows_ = len(codes)
        self.method_ = choose_method(self, len(self.classes_), groups)
        self.constant_features_ = np.empty(0, dtype=np.intp)
        if self.estimator is None:
            self.constant_features_ = np.flatnonzero(np.ptp(X, axis=0) == 0)
            warn_constant_features(self, self.constant_features_)
        random = check_random_state(self.random_state)
        for name in ("estimator_", "estimators_", "n_calibration_"):
            self.__dict__.pop(name, None)
        if self.method_ == FULL:
            self._ranking = full_ranking(self, X, codes)
        elif self.method_ == SPLIT:
            self._take_split(split_ranking(self, X, y, random, groups))
        else:
            self._ranking = cross_ranking(self, X, y, random)
            self.estimators_ = [one.estimator for one in self._ranking.ranks.scores]
        self._key = random.bytes(32)
        return self._promise()

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
        rows = new_rows(self, X)
        return self._p_values(rows, *self._count(rows))

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
        rows = new_rows(self, X)
        level = self.level if level is None else level
        if not (isinstance(level, Real) and 0 < level < 1):
            raise ValueError(f"`level` must lie in (0, 1), got {level}.")
        counts, wanted = self._count(rows)
        if self.ties == "smoothed":
            chosen = self._p_values(rows, counts, wanted) > level
        else:
            chosen = sets(counts, self._cuts(float(level))[wanted])
        if not allow_empty:
            joint = self._joint(X)
            chosen[np.arange(len(joint)), joint.argmax(axis=1)] = True
        return chosen

    def credibility(self, X: Any) -> FloatArray:
        """Largest p-value of each row; small where it is unlike anything seen.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        credibility: FloatArray = self.p_values(X).max(axis=1)
        return credibility

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
        other = copy.copy(self).set_params(level=level)
        other._validate_params()
        return other._promise()

    def _take_split(self, ranking: Ranking) -> None:
        """Rank by held-out rows."""
        self._ranking = ranking
        self.classes_ = ranking.ranks.scores.classes
        self.estimator_ = ranking.ranks.scores.estimator
        self.n_calibration_ = len(ranking.kinds.of_rows)

    def _joint(self, X: Any) -> FloatArray:
        rows = new_rows(self, X)
        with one_blas_thread():
            return self._ranking.ranks.joint(rows)

    def _count(self, rows: Any) -> tuple[Counts, IntArray]:
        """Rows stranger than each new one, and the kind of row that ranks it."""
        wanted = self._ranking.wanted(rows, self.condition)
        with one_blas_thread():
            return self._ranking.ranks.counts(rows, wanted), wanted

    def _p_values(self, rows: Any, counts: Counts, wanted: IntArray) -> FloatArray:
        thrown = coins(rows, self._key)[:, None] if self.ties == "smoothed" else None
        return counts.p_values(self._ranking.kinds.sizes[wanted], thrown)

    def _cuts(self, level: float) -> IntArray:
        """How many of the strangest rows of each kind are not in the sets."""
        ranks = [
            mean_rank(n, level)
            if self.guarantee == "mean"
            else high_probability_rank(n, level, self.confidence)
            for n in self._ranking.kinds.sizes.tolist()
        ]
        return np.array(ranks, dtype=np.intp)

    def _promise(self) -> Self:
        """Write down what is promised at `level`, and of which rows."""
        self.class_count_ = self._ranking.class_count
        self.unseen_label_p_value_ = self._ranking.unseen_label_p_value
        way = Way(
            method=self.method_,
            rate=float(self.level),
            smoothed=self.ties == "smoothed",
            confidence=(
                self.confidence if self.guarantee == "high_probability" else None
            ),
            fit_is_given=isinstance(self.estimator, FrozenEstimator),
            by_groups=self._ranking.by_groups,
            n_folds=self.cv,
        )
        self.guarantees_: tuple[Guarantee, ...] = coverages(
            way,
            self._ranking.kinds,
            self._cuts(way.rate),
            self._ranking.alone,
            classes=self.classes_ if self.condition == "class" else None,
        )
        return self
