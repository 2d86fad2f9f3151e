"""Sets of labels from conformal p-values, and what alarms share with them."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from scipy.special import softmax
from sklearn.base import ClassifierMixin, clone, is_outlier_detector
from sklearn.dummy import DummyClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing, check_random_state, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_y,
    _num_samples,
    check_consistent_length,
    check_is_fitted,
)

from prudent._compat import Interval, StrOptions, fit_context, validate_data
from prudent.conformal.gaussian import strangeness
from prudent.conformal.ranking import By, FullClassModel, Joint, TrainingRanks
from prudent.conformal.ridge import MOST_ROWS
from prudent.core.binomial import check_fraction
from prudent.core.classes import check_two_classes, log_odds_against
from prudent.core.guarantee import Guarantee
from prudent.core.rows import drawn_key, keyed_uniform
from prudent.core.types import BoolArray, FloatArray, IntArray
from prudent.core.validation import check_label_cells, shown
from prudent.estimator_tools import (
    HeldOutEstimator,
    class_decisions,
    fit_inside,
    one_thread,
    other_probabilities,
    probability_columns,
    refuse_dask,
    remember_rows,
    warn_constant_features,
)
from prudent.estimator_tools.held_out import table_keys
from prudent.estimator_tools.subgroups import SubgroupsOption
from prudent.exceptions import PrudentWarning
from prudent.rules.rule import Coverage, Rule, group_named
from prudent.rules.scores import COARSE, ROUNDING, CalibrationScores, Counts
from prudent.rules.subgroups import scores_within

FULL, SPLIT, CROSS = "full", "split", "cross"
# Up to here every row can rank at a bearable price.
MOST_FULL_ROWS = 20_000
# Full conformal prediction costs K^2 n elementary functions a row.
MOST_FULL_WORK = 2_000_000
# So near to 0 and 1 are means and ends of columns behind a scaler of single precision.
SCALED = 1e-6
# A log joint of a label that a classifier does not know.
LOWEST = -1e300
ScoreKind = Literal["probability", "posterior", "margin", "blend"]


# --- what classifier and detector share -----------------------------------------------


class ConformalEstimator(HeldOutEstimator):
    """The door of both estimators: which rows they take, which settings go together."""

    method_: str
    ties: Literal["conservative", "smoothed"]
    random_state: Any
    _parameter_constraints: Mapping[str, Any] = {
        "estimator": "no_validation",
        "ridge_rows": [Interval(Real, 0, None, closed="left")],
        "ties": [StrOptions({"conservative", "smoothed"})],
        "calibration_size": [Interval(Real, 0, 1, closed="neither")],
        "confidence": [Interval(Real, 0, 1, closed="neither"), None],
        "random_state": ["random_state"],
    }

    def _rows(self, X: Any, *, reset: bool = False) -> Any:
        """Validated rows: to learn from with `reset`, else to answer for.

        Where another estimator is wrapped, it alone knows what rows are: data frames
        (which a pipeline may match by name), sparse matrices and texts stay as they
        came.
        """
        inner = self.estimator
        if not reset:
            check_is_fitted(self)
        elif inner is not None and (
            isinstance(inner, type) or not hasattr(inner, "fit")
        ):
            raise TypeError(
                f"{type(self).__name__}: `estimator` must be an estimator with `fit`, "
                f"got {shown(inner)}."
            )
        refuse_dask(X)
        if inner is None:
            return validate_data(self, X, dtype=np.float64, reset=reset)
        if hasattr(X, "columns"):
            if reset:
                validate_data(self, X, skip_check_array=True)
            return X
        if isinstance(X, list | tuple | np.ndarray) and np.ndim(X[:1]) == 1:
            return X
        return validate_data(
            self,
            X,
            accept_sparse="csr",  # whose rows can be held out
            dtype=None,
            ensure_all_finite=False,
            reset=reset,
        )

    def _begin(
        self,
        X: Any = None,
        groups: ArrayLike | None = None,
        time: ArrayLike | None = None,
    ) -> np.random.RandomState:
        """Refuse settings that exclude each other, and forget an earlier fit.

        Returns what the new fit draws by. Rows in memory are searched for columns of
        one value, if they are ours to judge, and remembered.
        """
        if self.method_ == FULL and self.estimator is not None:
            raise ValueError(
                "method='full' has models of its own and cannot rank by `estimator`, "
                f"got {self.estimator!r}: use 'split', or leave `estimator` out."
            )
        if groups is not None and self.method_ != SPLIT:
            raise ValueError(
                f"`groups` need method='split', got {self.method_!r}: rows of one "
                "group are not exchangeable with those of another."
            )
        if time is not None and self.method_ != SPLIT:
            raise ValueError(
                f"`time` needs method='split', got {self.method_!r}: only rows that "
                "are held out can be the latest."
            )
        if self.confidence is not None and self.method_ != SPLIT:
            raise ValueError(
                f"`confidence` needs method='split', got {self.method_!r}: nothing of "
                "the kind holds given the training rows."
            )
        if self.confidence is not None and self.ties == "smoothed":
            raise ValueError("`confidence` needs ties='conservative', got 'smoothed'.")
        fitted = ("estimator_", "estimators_", "n_calibration_", "rule_", "order_test_")
        for name in (*fitted, "_labels", "_ranks", "_terms"):
            self.__dict__.pop(name, None)
        self.constant_features_ = np.empty(0, dtype=np.intp)
        if X is not None and self.estimator is None:
            self.constant_features_ = np.flatnonzero(np.ptp(X, axis=0) == 0)
            sees_them = self.method_ == FULL or is_outlier_detector(self)
            unless = ", unless a new row differs there" if sees_them else ""
            warn_constant_features(self, self.constant_features_, unless)
        if X is not None and self.method_ != SPLIT:
            remember_rows(self, X)
        random: np.random.RandomState = check_random_state(self.random_state)
        return random

    def _coins(self, rows: Any) -> FloatArray:
        """A uniform number for each row, of the rows of the fit and this row alone."""
        return keyed_uniform(bytes_of_rows(rows), self._key)

    def __sklearn_tags__(self) -> Any:
        """Tags of an estimator that takes the rows which the one inside takes."""
        tags = super().__sklearn_tags__()
        if self.estimator is not None:
            tags.input_tags = get_tags(self.estimator).input_tags
        return tags


def bytes_of_rows(rows: Any) -> Iterator[bytes]:
    """The values of each row as bytes, the same in any batch.

    A gap in another row may give the numbers of a data frame another type, which
    makes no difference here.
    """
    if issparse(rows):
        for i in range(rows.shape[0]):
            yield from bytes_of_rows(rows[i : i + 1].toarray())
        return
    values = np.asarray(rows)
    if values.dtype.kind in "fiub":
        numbers = np.ascontiguousarray(values, dtype=np.float64) + 0.0  # one zero
        yield from (row.tobytes() for row in numbers)
        return
    for row in values.tolist():
        if not isinstance(row, list):  # a text
            yield repr(row).encode()
            continue
        cells = [float(v) + 0.0 if isinstance(v, Real) else v for v in row]
        has_words = any(not isinstance(v, float) for v in cells)
        yield repr(cells).encode() if has_words else np.array(cells).tobytes()


def warn_of_learned_scaling(estimator: Any, X: FloatArray) -> None:
    """Warn of columns that look as if a transformer had learned from these rows."""
    lowest, highest = X.min(axis=0), X.max(axis=0)
    varies = highest > lowest
    if len(X) < 3 or not varies.any():
        return
    Z = X[:, varies]
    with np.errstate(over="ignore", invalid="ignore"):
        centred = (np.abs(Z.mean(axis=0)) <= SCALED * np.abs(Z).max(axis=0)).all()
    fractions = (np.abs(lowest) <= SCALED) & (np.abs(highest - 1) <= SCALED)
    # Columns of 0 and 1 alone are so without a scaler, and stay so with one.
    between = (np.minimum(np.abs(Z), np.abs(Z - 1)) > SCALED).any()
    if centred or (fractions[varies].all() and between):
        what = "mean 0" if centred else "minimum 0 and maximum 1"
        warnings.warn(
            f"{type(estimator).__name__}: every column of X has {what}; if a "
            "transformer learned this from the training rows, the promise of "
            "method='full' is void. Leave it out (columns are put into units of their "
            "own), or put it inside: estimator=make_pipeline(...).",
            PrudentWarning,
            stacklevel=4,
        )


# --- ranks by any classifier, of rows that it has not been fitted to ------------------


@dataclass(frozen=True)
class LabelScores:
    """Scores of each row under each label, by a fitted classifier.

    Attributes
    ----------
    estimator : fitted classifier
    classes : ndarray of shape (n_classes,)
        All labels; those that the classifier does not know score -inf.
    kind : {"probability", "posterior", "margin", "blend"}
        Log odds of its probabilities, or of the log joints that `decision_function`
        holds; the own value of `decision_function` minus the largest other; or twice
        the own value, where it is half the score of a blend.
    """

    estimator: Any
    classes: NDArray[Any]
    kind: ScoreKind

    def both(self, X: Any) -> tuple[FloatArray, FloatArray, float]:
        """Joint values, and how plausible each label of each row is: one prediction.

        Of the first, (m, n_classes), the largest is predicted; the second is minus the
        nonconformity, -inf for labels that the classifier does not know. With them how
        far apart scores may be that are equal, by the precision of the classifier.
        """
        by_probability = self.kind == "probability"
        if by_probability:
            values = np.asarray(self.estimator.predict_proba(X))
            if values.shape[1:] != np.shape(self.estimator.classes_):
                raise other_probabilities(self.estimator, values)
        else:
            values = class_decisions(self.estimator, X)
        tolerance = COARSE.get(values.dtype.name, ROUNDING)
        if values.ndim == 1:
            values = np.stack([np.zeros_like(values), values], axis=1)
        missing = 0.0 if by_probability else -np.inf
        spread = np.full((len(values), len(self.classes)), missing)
        spread[:, np.searchsorted(self.classes, self.estimator.classes_)] = values
        if by_probability:
            odds = log_odds_against(spread)
            odds[:, ~np.isin(self.classes, self.estimator.classes_)] = np.inf
            joint = np.log(np.maximum(spread, np.finfo(np.float64).tiny))
            return joint, -odds, tolerance
        if self.kind == "blend" and len(self.estimator.classes_) > 2:
            return np.maximum(spread, LOWEST), 2.0 * spread, tolerance
        # Of two classes the blend's values are log odds like the Gaussian's.
        score = "margin" if self.kind == "margin" else "posterior"
        return np.maximum(spread, LOWEST), -strangeness(spread, score), tolerance


@dataclass(frozen=True)
class CrossModel:
    """The rows of each fold rank new ones by a classifier fitted to the others.

    Attributes
    ----------
    scores : tuple of LabelScores
        Scores by the classifier of each fold, which has not seen the fold.
    ranked : tuple of CalibrationScores
        Scores of the rows of each fold by it.
    """

    scores: tuple[LabelScores, ...]
    ranked: tuple[CalibrationScores, ...]

    def joint(self, X: Any) -> FloatArray:
        """Log of the mean probability of the folds; or their mean decision."""
        return self._mean([scores.both(X)[0] for scores in self.scores])

    def both(self, X: Any, wanted: IntArray) -> tuple[Joint, Counts]:
        """How to get joint values, and training rows below and level with new ones."""
        of_folds = [scores.both(X) for scores in self.scores]
        counts = [
            ranked.counts(plausible, wanted)
            for ranked, (_, plausible, _) in zip(self.ranked, of_folds, strict=True)
        ]
        below, equal = np.sum(counts, axis=0)
        joints = [joint for joint, *_ in of_folds]
        return partial(self._mean, joints), Counts(below, equal)

    def _mean(self, joints: list[FloatArray]) -> FloatArray:
        each = np.stack(joints)
        by_margin = any(scores.kind == "margin" for scores in self.scores)
        if by_margin and not hasattr(self.scores[0].estimator, "p_values"):
            known = each > LOWEST
            return np.where(known, each, 0.0).sum(axis=0) / known.sum(axis=0)
        each -= np.logaddexp.reduce(each, axis=2, keepdims=True)
        return np.logaddexp.reduce(each, axis=0) - np.log(len(each))


def groups_of(X: Any, condition: Any) -> NDArray[Any] | None:
    """Integer group of each row; None unless `condition` is a function of rows."""
    if not callable(condition):
        return None
    groups = np.asarray(condition(X))
    if groups.shape != (_num_samples(X),) or groups.dtype.kind not in "iub":
        raise ValueError(
            "`condition` must give one integer for each row, got an array of shape "
            f"{groups.shape} and type {groups.dtype}."
        )
    return groups


def categories_of(
    X: Any, codes: IntArray, classes: NDArray[Any], condition: Any
) -> tuple[By, tuple[Any, ...], IntArray]:
    """What rows rank among, the names of these categories, and that of each row."""
    if condition is None:
        return None, (None,), np.zeros(len(codes), dtype=np.intp)
    if isinstance(condition, str):
        return "class", tuple(classes.tolist()), codes
    groups = np.asarray(groups_of(X, condition))
    names, category = np.unique(groups, return_inverse=True)
    return "group", tuple(names.tolist()), category.astype(np.intp)


# --- the estimator --------------------------------------------------------------------


def _has_probabilities(classifier: ConformalClassifier) -> bool:
    estimator = classifier.estimator
    if estimator is not None and not hasattr(estimator, "predict_proba"):
        raise AttributeError(f"{estimator!r} has no `predict_proba`.")
    return True


class ConformalClassifier(ClassifierMixin, ConformalEstimator):
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
        Rows that the pooled covariance stands for in each class, in [0, 1e6] ("full"
        and "diag"). 0: quadratic discriminant analysis; many: linear. With more,
        rounding would tell equal rows apart.
    ridge_rows : float, default=1.0
        Rows that the identity (in units, see Notes) stands for, in [0, 1e6].
    nonconformity : {"posterior", "margin", "density"}, default="posterior"
        Log odds against the label; largest other log joint (of an estimator: decision
        value) minus that of the label; or minus that of the label ("full" only; with
        `condition="class"` and `allow_empty` strangers get the empty set).
    condition : None, "class" or callable, default=None
        One promise for all rows, for each class, or for each group: a fixed function
        of rows (n, d) to integers (n,).
    subgroups : list of str or int, callable or None, default=None
        Parts of the population that have a promise each; they may overlap. Names or
        positions of columns, each value of which is a subgroup: ``"sex"``, crossed
        ``"sex*age_band"``, in bands ``"age:30,45,60"``. Or a function of rows to a
        bool matrix (n, n_subgroups) or to a data frame of labels. Crosses with
        ``condition="class"``; not for "cross". A row with a value that no training
        row has gets all labels.
    level : float, default=0.1
        Largest miss rate of the sets, in (0, 1).
    ties : {"conservative", "smoothed"}, default="conservative"
        Equal scores count in full, or by a coin of the row (miss rate `level` exactly,
        of sets that may be empty).
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
    order_test_ : OrderInTime
        After a fit with `time`: whether the rows change with time, by an exact test
        (`p_value`, `changed`, `when`); its text is one line.
    class_count_ : ndarray of shape (n_classes,)
        Rows of each class that rank.
    estimator_, estimators_ : classifier, list of classifier
        The fitted one ("split"), those of the folds ("cross").
    subgroups_ : list of str
        Names of the subgroups that the training rows have shown, as in ``sex=Female``;
        rows in none of a function's are the subgroup ``rest``.
    subgroup_count_ : ndarray of shape (n_subgroups,)
        Rows of each that rank.
    unseen_label_p_value_ : float
        p-value of a label without training rows (the largest over groups). At most
        `level`, and without `confidence`: such rows count among the promised misses.
        Else `guarantees_` say where they are assumed away. An average over training
        samples is over fits of both kinds.
    constant_features_ : ndarray of int
        Columns of one value; they play no part, unless a new row differs there.
    rule_ : prudent.rules.rule.Rule
        What answers the scores of rows, and on what evidence ("split").
    guarantees_ : tuple of Guarantee
        Coverage: one promise, or one for each class, group or subgroup.

    Raises
    ------
    ValueError
        If parameters are out of range or exclude each other (so do `groups` or `time`
        and any method but "split", `subgroups` and "cross" or a callable `condition`),
        there are fewer than two classes, or `subgroups` name no column.
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
    draw. A saved full model contains its training rows, and so does "split" without
    `estimator`.

    With `subgroups` the p-value is the largest of those among the ranking rows of each
    subgroup that holds the row. Whoever misses the label of a row of a subgroup has a
    p-value at most `level` there too, so that the promise holds in each, exactly and
    however they overlap; with `confidence` in all of them at once.

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
        **ConformalEstimator._parameter_constraints,
        "method": [StrOptions({"auto", "full", "cross", "split"})],
        "model": [StrOptions({"blend", "gaussian"})],
        "covariance_type": [StrOptions({"full", "tied", "diag", "identity"})],
        "pooled_rows": [Interval(Real, 0, 1e6, closed="both")],
        "ridge_rows": [Interval(Real, 0, 1e6, closed="both")],
        "nonconformity": [StrOptions({"posterior", "margin", "density"})],
        "condition": [StrOptions({"class"}), callable, None],
        "subgroups": [list, tuple, str, Integral, callable, None],
        "level": [Interval(Real, 0, 1, closed="neither")],
        "cv": [Interval(Integral, 2, None, closed="left")],
    }

    # Fitted to the very same rows, with a model that serves here again.
    _twin: Any = None

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
        subgroups: SubgroupsOption = None,
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
        self.subgroups = subgroups
        self.level = level
        self.ties = ties
        self.cv = cv
        self.calibration_size = calibration_size
        self.confidence = confidence
        self.random_state = random_state

    @fit_context
    def fit(
        self,
        X: Any,
        y: Any,
        groups: ArrayLike | None = None,
        time: ArrayLike | None = None,
    ) -> Self:
        """Learn how strange rows are, and rank the training rows.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            With `estimator`, whatever it takes.
        y : array-like of shape (n_samples,)
            Labels of two classes at least.
        groups : array-like of shape (n_samples,), default=None
            Equal for rows that belong together: one row of each ranks ("split" only).
        time : array-like of shape (n_samples,), default=None
            When each row was taken: numbers, dates of any library or ISO dates. The
            latest rows rank, extended back to a change of time (a group stands at its
            latest row); "split" only, which "auto" then is.

        Returns
        -------
        self : ConformalClassifier
        """
        given, X = X, self._rows(X, reset=True)
        y = _check_y(y)
        check_consistent_length(X, y)
        if y.dtype.kind == "O":
            check_label_cells("y", y)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        check_two_classes(self.classes_)
        self.n_rows_ = len(codes)
        self.method_ = self._choose_method(in_time=time is not None)
        random = self._begin(X, groups, time)
        self._condition = self.condition
        self._learn_subgroups(given, self.subgroups)
        if self.method_ == SPLIT:
            self._fit_held_out(X, y, random, groups, time)
        elif self.method_ == FULL:
            self._fit_full(X, codes)
        else:
            self._fit_crossed(X, y, codes, random)
        self._key = b""
        if self.ties == "smoothed":
            self._key = drawn_key(random, table_keys(X)[0])
        for name in ("_memberships", "_twin"):
            self.__dict__.pop(name, None)
        return self

    def is_about(self, guarantee: Guarantee, X: Any) -> BoolArray:
        """Whether each row is of the group or subgroup that a promise is about."""
        if guarantee.subgroup is None or not callable(self._condition):
            return super().is_about(guarantee, X)
        groups = groups_of(self._rows(X), self._condition)
        assert groups is not None
        named = np.array([group_named(group) for group in groups.tolist()])
        same: BoolArray = named == guarantee.subgroup
        return same

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
        rows = self._rows(X)
        groups, coins = self._groups_and_coins(X, rows)
        with one_thread("blas"):
            if self.method_ == SPLIT:
                values, scores, _ = self._labels.both(rows)
                return (lambda: values), self.rule_.p_values(scores, groups, coins)
            joint, p_values, _ = self._ranks.ask(rows, groups, coins)
            return joint, p_values

    def predict_set(
        self, X: Any, level: float | None = None, *, allow_empty: bool = False
    ) -> BoolArray:
        """Labels with p-values above a level, or with `confidence` above its own cut.

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
        rows = self._rows(X)
        if level is not None:
            check_fraction("level", level)
        groups, coins = self._groups_and_coins(X, rows)
        with one_thread("blas"):
            if self.method_ == SPLIT:
                values, scores, _ = self._labels.both(rows)
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

    def _choose_method(self, *, in_time: bool = False) -> str:
        """How rows are ranked; refuses parameters that exclude each other."""
        method: str = self.method
        if method == "auto" and in_time:
            method = SPLIT
        if method == "auto" and self.estimator is None:
            n = self.n_rows_
            # Beyond, a blend of all rows saves 1 % of the size of sets, for n^3
            # operations.
            most = MOST_ROWS if self.model == "blend" else MOST_FULL_ROWS
            small = n <= most and n * len(self.classes_) ** 2 <= MOST_FULL_WORK
            method = FULL if small and self.confidence is None else SPLIT
        elif method == "auto":
            method = SPLIT
        if self.subgroups is not None and callable(self.condition):
            raise ValueError(
                "a callable condition excludes subgroups: let one function of "
                "`subgroups` name both."
            )
        if method == CROSS:
            if self.subgroups is not None:
                raise ValueError(
                    "method='cross' has no promise by subgroups: use 'full' or 'split'."
                )
            if isinstance(self.estimator, FrozenEstimator):
                raise ValueError(
                    "method='cross' fits clones of `estimator`, which is frozen: use "
                    "method='split'."
                )
            if self.ties == "smoothed":
                raise ValueError(
                    "ties='smoothed' has no promise with method='cross': use "
                    "'conservative'."
                )
            if self.cv > self.n_rows_:
                raise ValueError(
                    f"`cv` must be at most the number of rows, {self.n_rows_}, got "
                    f"{self.cv}."
                )
        is_blend = self.estimator is None and self.model == "blend"
        if is_blend and self.nonconformity != "posterior":
            raise ValueError(
                f"nonconformity={self.nonconformity!r} needs model='gaussian', got "
                "model='blend', which is a score of its own."
            )
        if method != FULL and self.nonconformity == "density":
            raise ValueError(
                "nonconformity='density' needs method='full', whose model has a "
                f"density; the method is {method!r}."
            )
        return method

    def _fit_full(self, X: FloatArray, codes: IntArray) -> None:
        """Fit and rank by all rows."""
        # Columns apart follow a scaler, but no rotation, which leaves mean 0 as well.
        affine = self.covariance_type in ("full", "tied") and self.ridge_rows == 0
        if not (self.model == "gaussian" and affine):
            warn_of_learned_scaling(self, X)
        settings = {
            "model": self.model,
            "covariance_type": self.covariance_type,
            "pooled_rows": float(self.pooled_rows),
            "ridge_rows": float(self.ridge_rows),
            "score": self.nonconformity,
        }
        labels = [shown(label) for label in self.classes_]
        by, names, category = categories_of(X, codes, self.classes_, self.condition)
        memberships = self._memberships
        if memberships is not None:
            first = len(names) * np.arange(len(memberships.names))
            category = np.where(memberships.members, first + category[:, None], -2)
            names = tuple((name, c) for name in memberships.names for c in names)
        model = FullClassModel(
            X, codes, labels, settings, category, by_class=by == "class"
        )
        alone = np.bincount(codes)[codes] == 1
        self._take_ranks(model, by, names, category, codes, alone)

    def _fit_crossed(
        self, X: Any, y: NDArray[Any], codes: IntArray, random: np.random.RandomState
    ) -> None:
        """Rank each fold by a classifier fitted to the other folds."""
        by, names, category = categories_of(X, codes, self.classes_, self.condition)
        alone = np.zeros(len(codes), dtype=bool)
        scores, ranked = [], []
        # A plain draw: strata are not exchangeable.
        for part in np.array_split(random.permutation(len(codes)), self.cv):
            fold = np.sort(part)
            others = np.setdiff1d(np.arange(len(codes)), fold)
            self._fit_part(_safe_indexing(X, others), y[others], random)
            by_others = self._labels
            alone[fold] = ~np.isin(y[fold], self.estimator_.classes_)
            _, plausible, tolerance = by_others.both(_safe_indexing(X, fold))
            own = np.take_along_axis(plausible, codes[fold][:, None], axis=1)[:, 0]
            scores.append(by_others)
            ranked.append(
                CalibrationScores.from_rows(own, category[fold], names, tolerance)
            )
        model = CrossModel(tuple(scores), tuple(ranked))
        self.estimators_ = [fold_scores.estimator for fold_scores in scores]
        del self._labels, self.estimator_
        self._take_ranks(model, by, names, category, codes, alone, n_folds=self.cv)

    def _take_ranks(
        self,
        model: FullClassModel | CrossModel,
        by: By,
        names: tuple[Any, ...],
        category: IntArray,
        codes: IntArray,
        alone: BoolArray,
        *,
        n_folds: int = 0,
    ) -> None:
        """Rank among rows of these categories, some of them alone in their class."""
        inside, lonely = category[category >= 0], category[alone]
        ranks = TrainingRanks(
            model,
            by,
            names,
            np.bincount(inside, minlength=len(names)),
            np.bincount(lonely[lonely >= 0], minlength=len(names)),
            np.bincount(codes, minlength=len(self.classes_)),
            smoothed=self.ties == "smoothed",
            n_folds=n_folds,
            n_subgroups=category.shape[1] if category.ndim == 2 else 0,
        )
        self._take(ranks)

    def _fit_part(
        self, X: Any, y: Any, random: np.random.RandomState, **given: Any
    ) -> None:
        """Fit what scores labels; a frozen one is left as it is.

        Without an `estimator` it is a model of this class; of rows of one class a
        constant.
        """
        if self._twin is not None:
            self.estimator_, self._labels = self._twin.estimator_, self._twin._labels
            return
        estimator = self.estimator
        kind: ScoreKind = "margin"
        if estimator is None and self.nonconformity == "posterior":
            kind = "blend" if self.model == "blend" else "posterior"
        elif self.nonconformity != "margin" and hasattr(estimator, "predict_proba"):
            kind = "probability"
        if isinstance(estimator, FrozenEstimator):
            self.classes_ = np.union1d(self.classes_, estimator.classes_)
            self.estimator_ = estimator
            self._labels = LabelScores(estimator, self.classes_, kind)
            return
        with warnings.catch_warnings():
            if estimator is None:
                # What it warns of has been said, and it need keep no groups together.
                warnings.simplefilter("ignore", PrudentWarning)
                given = {}
                estimator = scoring_model(self)
            if (y == y[0]).all():
                estimator, kind = DummyClassifier(strategy="prior"), "probability"
            fitted = fit_inside(clone(estimator), X, y, is_learner=True, **given)
        if kind == "probability" and not hasattr(fitted, "predict_proba"):
            kind = "margin"  # known only now of one that chooses among several
        self.estimator_, self._labels = fitted, LabelScores(fitted, self.classes_, kind)

    def _scores(self, X: Any, y: Any) -> tuple[CalibrationScores, By, IntArray]:
        """Scores of held-out rows, what they rank among, and rows of each class."""
        codes = np.searchsorted(self.classes_, y).astype(np.intp)
        by, names, category = categories_of(X, codes, self.classes_, self._condition)
        _, plausible, tolerance = self._labels.both(X)
        own = np.take_along_axis(plausible, codes[:, None], axis=1)[:, 0]
        if self._memberships is None:
            scores = CalibrationScores.from_rows(own, category, names, tolerance)
        else:
            within = None if by is None else codes
            scores = scores_within(own, self._memberships, within, names, tolerance)
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
            subgroups=tuple(getattr(self, "subgroups_", ())),
            smoothed=self.ties == "smoothed",
            terms=self._terms,
        )
        alike = ((1 + np.isneginf(a).sum()) / (1 + len(a)) for a in known.sorted)
        self.unseen_label_p_value_ = 1.0 if by == "class" else float(max(alike))
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
        unknown = np.setdiff1d(known.classes, known.estimator.classes_)
        if len(unknown):
            raise ValueError(
                f"ConformalClassifier: the classifier does not know the labels "
                f"{unknown.tolist()}, which no column of "
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
        self, given: Any, rows: Any
    ) -> tuple[NDArray[Any] | None, FloatArray | None]:
        """What the answers to rows, as they came, depend on besides their scores."""
        smoothed = (
            self.rule_.smoothed_rate is not None
            if self.method_ == SPLIT
            else self._ranks.smoothed
        )
        thrown = self._coins(rows) if smoothed else None
        members = self._members(given)
        return groups_of(rows, self._condition) if members is None else members, thrown

    def _joint(self, X: Any) -> FloatArray:
        rows = self._rows(X)
        with one_thread("blas"):
            if self.method_ == SPLIT:
                return self._labels.both(rows)[0]
            return self._ranks.model.joint(rows)


# Parameters that say what is promised, and nothing of the model or the rows held out.
OF_THE_PROMISE = {"level", "condition", "confidence"}


def share_model(fitted: ConformalClassifier, other: ConformalClassifier) -> None:
    """Let the next fit of `other` use a fitted model again, where it is the same.

    That fit has to be to the very same rows. By held-out rows, and with equal settings
    but for what is promised, it would hold out the same ones and learn the same model.
    """
    settings = [
        {
            name: value
            for name, value in each.get_params(deep=False).items()
            if name not in OF_THE_PROMISE
        }
        for each in (fitted, other)
    ]
    drawn_alike = isinstance(other.random_state, int) and settings[0] == settings[1]
    if fitted.method_ == other.method == SPLIT and drawn_alike:
        other._twin = fitted


def scoring_model(classifier: ConformalClassifier) -> ConformalClassifier:
    """Full prediction that gives the scores of split prediction without an estimator.

    Not fitted; of the settings those that say how rows rank are left out.
    """
    return clone(classifier).set_params(
        method="full",
        condition=None,
        subgroups=None,
        ties="conservative",
        confidence=None,
    )
