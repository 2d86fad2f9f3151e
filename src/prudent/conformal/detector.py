"""Alarms from conformal p-values of one class."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, OutlierMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _num_samples

from prudent._compat import Interval, StrOptions, fit_context
from prudent.conformal.classifier import (
    FULL,
    MOST_FULL_ROWS,
    SPLIT,
    ConformalEstimator,
    warn_of_learned_scaling,
)
from prudent.conformal.one_class import FARTHEST, Ellipsoid, FullOneClass
from prudent.conformal.units import Columns, in_units, kept_columns
from prudent.core.assumptions import Assumption
from prudent.core.binomial import mean_rank
from prudent.core.guarantee import Guarantee
from prudent.core.rows import drawn_key
from prudent.core.types import FloatArray
from prudent.estimator_tools import (
    RateMixin,
    one_thread,
)
from prudent.estimator_tools.held_out import table_keys
from prudent.rules.rule import FalseAlarms, Rule, Terms
from prudent.rules.scores import CalibrationScores, Rounding, rounding_of


def _scores_by_model(detector: Any) -> bool:
    if getattr(detector, "method_", SPLIT) != SPLIT:
        raise AttributeError(
            "`calibrated_scores` are those that held-out rows were ranked by, and "
            "method='full' holds out none: use `p_value`, or method='split'."
        )
    return True


class ConformalDetector(RateMixin, OutlierMixin, ConformalEstimator):
    """Alarms for rows unlike a class, at a promised false-alarm rate, for any law.

    A row raises an alarm if it is among the strangest of the bag of training rows and
    itself. By default every training row is used to fit and to rank.

    Parameters
    ----------
    estimator : outlier detector or None, default=None
        Ranks held-out rows ("split"); needs `score_samples` or `decision_function`,
        high for ordinary rows. The `decision_function` of a class with the attribute
        `decision_scores_` (PyOD) has the other sign and is negated.
    method : {"auto", "full", "split"}, default="auto"
        "full": all rows fit and rank; "split": held-out rows rank. "auto": full up to
        20 000 rows without `estimator` and `confidence`.
    nonconformity : {"combined", "distance", "ellipsoid"}, default="combined"
        For "full": mean city-block distance to the nearest rows; distance from the
        mean in the metric of the scatter; or the larger rank of the two.
        "split" without `estimator` uses the ellipsoid.
    n_neighbors : int, default=1
        For "combined" and "distance".
    ridge_rows : float, default=1.0
        Rows that the identity stands for in the scatter, >= 0.
    false_alarm_rate : float, default=0.05
        Largest share of normal rows that raise an alarm, in (0, 1).
    ties : {"conservative", "smoothed"}, default="conservative"
        Equal scores count in full, or by a coin of the row (then the rate is
        `false_alarm_rate` exactly).
    calibration_size : float, default=0.3
        Share of the rows held out by "split", in (0, 1).
    confidence : float or None, default=None
        Probability, in (0, 1), over the held-out rows with which this very model keeps
        the rate ("split" only); None: the rate is kept on average.
    random_state : int, RandomState or None, default=None
        For held-out rows and the key of the coins.

    Attributes
    ----------
    method_ : {"full", "split"}
    n_rows_, n_calibration_ : int
        Rows that fit or rank; rows that rank ("split").
    estimator_ : outlier detector
        The fitted detector ("split").
    k_ : int
        An alarm is raised if p <= k / (n + 1), n the rows that rank; 0: never.
    offset_ : float
        `decision_function` = score - offset.
    constant_features_ : ndarray of int
        Columns of one value; they play no part, unless a new row differs there.
    rule_ : prudent.rules.rule.Rule
        What answers the scores of rows, and on what evidence ("split").
    guarantees_ : tuple of Guarantee
        The false-alarm rate.

    Raises
    ------
    ValueError
        If parameters are out of range or exclude each other, X has one row, or
        `groups` are given to another method than "split".
    TypeError
        If `estimator` has neither `score_samples` nor `decision_function`.
    SingularCovarianceError
        If the scatter is singular, which `ridge_rows` > 0 prevents.

    See Also
    --------
    ConformalClassifier : Sets of labels at a promised miss rate.
    LowDensityRejector : A learned density and a cut at held-out rows.

    Notes
    -----
    p(x) = #{i <= n + 1 : a_i >= a_{n+1}} / (n + 1), where the score a_i of a row is
    computed from the n other rows of the bag; P(p <= e) <= floor(e (n + 1)) / (n + 1)
    if the new row is exchangeable with the training rows. Below 1/rate - 1 rows no row
    can raise an alarm. `fit_predict` asks about the training rows themselves, which
    the promise does not cover. In front of "full" nothing may be learned from the
    training rows; columns are put into units of their own.

    References
    ----------
    V. Vovk, A. Gammerman and G. Shafer (2005), Algorithmic learning in a random world.
    V. Vovk (2012), Conditional validity of inductive conformal predictors.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from prudent import ConformalDetector
    >>> X, y = load_iris(return_X_y=True)
    >>> detector = ConformalDetector().fit(X[:40])
    >>> detector.predict(X[[40, 41, 50, 51]])
    array([ 1, -1, -1, -1])
    >>> print(detector.guarantees_[0])
    The false alarm rate is at most 0.04878, on average over training samples, assuming
    the new normal row is exchangeable with the training rows.
    """

    _parameter_constraints: Mapping[str, Any] = {
        **ConformalEstimator._parameter_constraints,
        "method": [StrOptions({"auto", "full", "split"})],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "nonconformity": [StrOptions({"combined", "distance", "ellipsoid"})],
        "false_alarm_rate": [Interval(Real, 0, 1, closed="neither")],
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        method: Literal["auto", "full", "split"] = "auto",
        nonconformity: Literal["combined", "distance", "ellipsoid"] = "combined",
        n_neighbors: int = 1,
        ridge_rows: float = 1.0,
        false_alarm_rate: float = 0.05,
        ties: Literal["conservative", "smoothed"] = "conservative",
        calibration_size: float = 0.3,
        confidence: float | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.nonconformity = nonconformity
        self.n_neighbors = n_neighbors
        self.ridge_rows = ridge_rows
        self.false_alarm_rate = false_alarm_rate
        self.ties = ties
        self.calibration_size = calibration_size
        self.confidence = confidence
        self.random_state = random_state

    @fit_context
    def fit(self, X: Any, y: Any = None, groups: ArrayLike | None = None) -> Self:
        """Learn how strange rows are, and rank the training rows.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            At least 2 rows, all of the class. With `estimator`, whatever it takes.
        y : ignored
        groups : array-like of shape (n_samples,), default=None
            Equal for rows that belong together: one row of each ranks ("split" only).

        Returns
        -------
        self : ConformalDetector
        """
        X = self._rows(X, reset=True)
        self.n_rows_ = _num_samples(X)
        if self.n_rows_ < 2:
            raise ValueError(
                "ConformalDetector: 1 row (1 sample) ranks nothing; give at least 2."
            )
        self.method_: str = self.method
        if self.method_ == "auto":
            own = self.estimator is None and self.confidence is None
            self.method_ = FULL if own and self.n_rows_ <= MOST_FULL_ROWS else SPLIT
        random = self._begin(X, groups)
        if self.method_ == FULL:
            self._fit_full(X)
        else:
            self._fit_held_out(X, None, random, groups)
        self._key = b""
        if self.ties == "smoothed":
            self._key = drawn_key(random, table_keys(X)[0])
        return self

    def p_value(self, X: Any) -> FloatArray:
        """Conformal p-value of each row.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
            In (0, 1]; small for rows unlike the training rows.
        """
        return self._ask(X)[0]

    def score_samples(self, X: Any) -> FloatArray:
        """The p-value, less a fraction of one rank that orders rows of equal p-values.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
            Higher is more ordinary. ties="smoothed": the p-value.
        """
        p_value, below = self._ask(X)
        return p_value - below / (2 * (self._n_ranking + 1))

    @available_if(_scores_by_model)
    def calibrated_scores(self, X: Any) -> FloatArray:
        """Scores by `estimator_` on the scale of `calibration_scores_` ("split")."""
        return ordinary_scores(self.estimator_, self._rows(X))[0]

    def _holds_out_rows(self) -> bool:
        method = getattr(self, "method_", self.method)
        return bool(method == SPLIT and self.ties == "conservative")

    def _fit_full(self, X: FloatArray) -> None:
        if not (self.nonconformity == "ellipsoid" and self.ridge_rows == 0):
            warn_of_learned_scaling(self, X)
        self._ranks: Any = FullOneClass(
            X,
            self.nonconformity,
            n_neighbors=int(self.n_neighbors),
            ridge_rows=float(self.ridge_rows),
        )
        self._n_ranking, self._smoothed = len(X), self.ties == "smoothed"
        self._rank_all(float(self.false_alarm_rate))

    def _rank_all(self, rate: float) -> None:
        """Find the rank of the cut among all training rows, and its promise."""
        n, smoothed = self._n_ranking, self._smoothed
        rank = mean_rank(n, rate)
        ranked = {} if smoothed else {"rank": float(rank)}
        promise = Terms().promise(
            "false alarm rate",
            rate if smoothed else rank / (n + 1),
            Assumption.TRAINING_EXCHANGEABLE_NORMAL,
            evidence={"training rows": float(n), **ranked},
        )
        self.guarantees_: tuple[Guarantee, ...] = (promise,)
        self._cut_at(rank, rate)

    def _fit_part(
        self, X: Any, y: Any, random: np.random.RandomState, **given: Any
    ) -> None:
        estimator = self.estimator
        if estimator is None:
            estimator = EllipsoidDetector(ridge_rows=self.ridge_rows)
        methods = ("score_samples", "decision_function")
        if not any(hasattr(estimator, method) for method in methods):
            # LocalOutlierFactor and others have them only for some settings.
            raise TypeError(
                "`estimator` must have `score_samples` or `decision_function`, got "
                f"{estimator!r}."
            )
        if not isinstance(estimator, FrozenEstimator):
            estimator = clone(estimator).fit(X)
        self.estimator_ = estimator

    def _scores(self, X: Any, y: Any) -> CalibrationScores:
        scores, rounding = ordinary_scores(self.estimator_, X)
        return CalibrationScores.from_rows(scores, tolerance=rounding.tolerance)

    def _rule(self, scores: CalibrationScores) -> Rule:
        self._n_ranking, self._smoothed = self.n_calibration_, self.ties == "smoothed"
        made = FalseAlarms(scores=scores, smoothed=self._smoothed, terms=self._terms)
        return made.rule(float(self.false_alarm_rate))

    def _adopt(self, rule: Rule) -> Self:
        (promise,) = rule.guarantees
        rate = float(self.false_alarm_rate)
        self._cut_at(rule.record["rank"], rate, promise.confidence)
        return super()._adopt(rule)

    def _set_rate(self) -> Self:
        if self.method_ == SPLIT:
            return super()._set_rate()
        self._rank_all(float(self.false_alarm_rate))
        return self

    def _cut_at(self, rank: int, rate: float, confidence: float | None = None) -> None:
        """Take the rank of the cut; warn if nothing is rejected."""
        n, self.k_ = self._n_ranking, rank
        self.offset_ = rate if self._smoothed else (rank + 0.5) / (n + 1)
        if rank == 0 and not self._smoothed:
            held_out = self.method_ == SPLIT
            self._say_nothing_is_rejected(
                n, confidence, held_out=held_out, stacklevel=7
            )

    def _ask(self, X: Any) -> tuple[FloatArray, FloatArray]:
        """p-value of each row, and how far the row lies beyond others of its rank."""
        rows = self._rows(X)
        thrown = self._coins(rows) if self._smoothed else None
        with one_thread("blas"):
            if self.method_ == SPLIT:
                scores, _ = ordinary_scores(self.estimator_, rows)
                p_values = self.rule_.p_values(scores, coins=thrown)
                below = distance_beyond(scores, self.calibration_scores_)
            else:
                counts = self._ranks.counts(rows)
                p_values = counts.p_values(self._n_ranking, thrown)
                below = self._ranks.farness(rows)
        return p_values, np.zeros(len(p_values)) if self._smoothed else below


# --- detectors around which rows are held out -----------------------------------------


class EllipsoidDetector(OutlierMixin, BaseEstimator):
    """Minus the distance from the mean in the metric of the scatter with a ridge.

    What `ConformalDetector` fits to a part of the rows by default.
    """

    def __init__(self, *, ridge_rows: float = 1.0) -> None:
        self.ridge_rows = ridge_rows

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn units, mean and scatter."""
        self._columns = Columns.from_rows(np.asarray(X, dtype=np.float64))
        self._units = self._columns.exponents()
        rows = in_units(self._columns.rows, self._units)
        self._ellipsoid = Ellipsoid.learn(rows, self.ridge_rows)
        self.n_features_in_ = len(self._units)
        return self

    def score_samples(self, X: Any) -> FloatArray:
        """Higher is more ordinary."""
        centred = self._columns.centre(np.asarray(X, dtype=np.float64))
        whitened = self._ellipsoid.whitened(in_units(centred, self._units))
        # A column that was constant in the fit rows puts a row that differs last.
        strange = np.abs(centred[:, ~kept_columns(self._units)]).max(axis=1, initial=0)
        return -np.linalg.norm(whitened, axis=1) - strange


def ordinary_scores(detector: Any, X: Any) -> tuple[FloatArray, Rounding]:
    """Scores of rows by a fitted outlier detector, high for ordinary rows.

    And how far apart scores may be that are equal. The `decision_function` of a class
    with `decision_scores_` is high for strange rows (PyOD).
    """
    if hasattr(detector, "score_samples"):
        values = np.asarray(detector.score_samples(X))
    else:
        values = np.asarray(detector.decision_function(X))
        if hasattr(detector, "decision_scores_"):
            values = -values
    return np.asarray(values, dtype=np.float64), rounding_of(values)


def distance_beyond(scores: FloatArray, ranked: FloatArray) -> FloatArray:
    """How far each score lies below those that rank, from 0 to `FARTHEST`.

    Logarithms of a density are -inf where it is 0, which may be their median, too.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        middle = np.median(ranked)
        spread = np.median(np.abs(ranked - middle))
        z = (middle - scores) / (spread if spread > 0 else 1.0)
    tail = 0.5 / (1 + np.abs(np.where(np.isnan(z), 0.0, z)))
    return np.minimum(np.where(z > 0, 1 - tail, tail), FARTHEST)
