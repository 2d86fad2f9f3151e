"""One-class detection whose false-alarm rate is settled by held-out rows."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit
from sklearn.base import BaseEstimator, ClassifierMixin, OutlierMixin, clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state

from prudent._compat import (
    HasMethods,
    Interval,
    StrOptions,
    fit_context,
    validate_data,
)
from prudent.adversarial.density.learn import (
    fewest_to_scale,
    learn,
    play_on_density,
    soft_promise,
)
from prudent.adversarial.density.model import GridReference, SoftRule
from prudent.core.rows import Split, hold_out
from prudent.core.types import FloatArray
from prudent.core.validation import shown
from prudent.estimator_tools import (
    HeldOutEstimator,
    RateMixin,
    check_rows,
    one_thread,
    refuse_dask,
    warn_constant_features,
)
from prudent.exceptions import PrudentWarning
from prudent.rules.rule import FalseAlarms, Rule
from prudent.rules.scores import CalibrationScores

REFERENCES = {"mixture", "gaussian", "box", "grid"}
_MAX_KERNEL_ROWS = 4000  # of each class
_MAX_COMPONENTS = 200
_BOOSTING_SHARE = 0.25  # of the mean
_CLIP = 1e-6  # probabilities nearer to 0 or 1 than this are not believed
# Below this many rows threads gain nothing, and on a busy machine they wait for one
# another: a fit of 1 s took 19 s.
_THREADED_ROWS = 10_000


class LowDensityRejector(RateMixin, OutlierMixin, HeldOutEstimator):
    """Reject rows of low density, with a false-alarm rate that is kept.

    Learns one class. A classifier tells its rows from artificial rows of a known
    density, which estimates the log density of the class; the cut is an order
    statistic of the scores of held-out rows, so the false-alarm rate holds in any
    dimension, for any classifier and any reference that was not made from the rows
    given to `fit`. Only the power to catch intruders depends on the model.

    Parameters
    ----------
    false_alarm_rate : float, default=0.05
        Largest share of normal rows to reject, in (0, 1).
    estimator : classifier or None, default=None
        Tells rows from artificial rows; needs `predict_proba` or
        `decision_function` and should have a proper loss. A `FrozenEstimator` must
        have been fitted to other rows, standardised alike. None: weighted mean logit
        of gradient boosting and of a kernel logistic regression; up to 10 000 fit
        rows its score is averaged with two kernel densities.
    reference : {"mixture", "gaussian", "box", "grid"} or object, default="mixture"
        Artificial rows: half an inflated Gaussian and half normal kernels at the
        rows; the Gaussian alone; uniform on the enlarged bounding box; the paper's
        uniform on occupied grid cells (two or three columns at most). Or an object
        that was not made from the rows given to `fit`:
        `sample(n, random_state)` returns n rows in the units of X,
        `log_density(X)` their exact log density, -inf outside its support.
    calibration_size : float, default=0.3
        Share of the rows held out for the cut, in (0, 1).
    confidence : float or None, default=None
        Probability, in (0, 1), over the held-out rows with which this very fit keeps
        the rate; None: the rate is kept on average over training samples.
    exact : bool, default=False
        Whether the rate, on average, is attained and not only kept: the rank of the
        cut is drawn at random from two. Without ties, and for rates up to m / (m + 1)
        with m rows held out.
    strategy : {"hard", "soft"}, default="hard"
        Cut at a threshold, or reject with the probabilities of the rejection game
        played on the estimated density, scaled to keep the false-alarm rate.
    divergence_bound : float or None, default=None
        For "soft": least Kullback-Leibler divergence of an intruder, in bits.
    random_state : int, RandomState or None, default=None
        For the split, the artificial rows, the default classifier and the coins.

    Attributes
    ----------
    threshold_ : float
        Rows scoring strictly below are rejected; -inf: none is, nan: "soft".
    offset_ : float
        Equal to `threshold_`: `decision_function` = score - offset.
    k_ : int
        Rank of the threshold among the calibration scores; 0: no cut or "soft".
    n_calibration_ : int
        Number m of held-out rows.
    missing_mass_ : float
        Share of held-out rows outside the cells of the grid; 0 otherwise.
    cell_size_ : float
        Side of the grid's cells, else width n^(-1/(d+4)) of the kernels; in
        standard deviations.
    estimator_ : classifier
        Fitted to standardised rows (class 1) and artificial rows (class 0); None
        when every column is constant.
    constant_features_ : ndarray of int
        Columns of one value in the fit rows; a row that differs there scores below
        all others.
    rule_ : prudent.rules.rule.Rule
        What answers the scores of rows, and on what evidence ("hard").
    guarantees_ : tuple of Guarantee
        The false-alarm rate.

    Raises
    ------
    ValueError
        If a parameter is outside its range, "soft" lacks `divergence_bound` or is
        combined with `confidence` or `exact`, `exact` with `confidence`, or X has one
        row.
    TypeError
        If `estimator` has neither `predict_proba` nor `decision_function`.
    InfeasibleError
        If `divergence_bound` exceeds what the estimated density allows.

    See Also
    --------
    RejectionGame, MinimaxOutlierDetector

    Notes
    -----
    s(x) = logit P(+1 | x) + log u(x), u the reference density, estimates log p: there
    are as many artificial as fit rows. By default it is averaged with the log
    densities of normal kernels at M = min(n, 1000) of the n fit rows, round and shaped
    like the covariance, with weights n, M, M. With s_(k) the k-th smallest of m
    calibration scores, P(s < s_(k)) <= k / (m + 1), with equality without ties:
    k = floor((m + 1) rate). Given the calibration rows the rate is Beta(k, m + 1 - k).
    "soft": r_t = min(1, t r), t the largest with sum r_t + 1 <= (m + 1) rate.

    **Guarantee.** Future normal rows are exchangeable with the training rows; drift,
    repeated rows and rates chosen after a look at the data break it. On average over
    training samples unless there is a `confidence`: one detector may exceed it.
    `fit_predict` answers for rows it does not cover. None about intruders.

    References
    ----------
    R. El-Yaniv and M. Nisenson, On the foundations of adversarial single-class
    classification, section 7. V. Vovk, A. Gammerman and G. Shafer (2005),
    Algorithmic learning in a random world (p-values).

    Examples
    --------
    >>> import numpy as np
    >>> from prudent import LowDensityRejector
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> detector = LowDensityRejector(random_state=0).fit(X)
    >>> detector.predict([[0.0, 0.0], [9.0, 9.0]])
    array([ 1, -1])
    >>> detector.n_calibration_, detector.k_, round(detector.guarantees_[0].bound, 4)
    (90, 4, 0.044)
    """

    _parameter_constraints: Mapping[str, Any] = {
        "false_alarm_rate": [Interval(Real, 0, 1, closed="neither")],
        "estimator": [
            HasMethods("predict_proba"),
            HasMethods("decision_function"),
            None,
        ],
        "reference": [StrOptions(REFERENCES), HasMethods(["sample", "log_density"])],
        "calibration_size": [Interval(Real, 0, 1, closed="neither")],
        "confidence": [Interval(Real, 0, 1, closed="neither"), None],
        "exact": ["boolean"],
        "strategy": [StrOptions({"hard", "soft"})],
        "divergence_bound": [Interval(Real, None, None, closed="neither"), None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        *,
        false_alarm_rate: float = 0.05,
        estimator: Any = None,
        reference: Literal["mixture", "gaussian", "box", "grid"] | Any = "mixture",
        calibration_size: float = 0.3,
        confidence: float | None = None,
        exact: bool = False,
        strategy: Literal["hard", "soft"] = "hard",
        divergence_bound: float | None = None,
        random_state: Any = None,
    ) -> None:
        self.false_alarm_rate = false_alarm_rate
        self.estimator = estimator
        self.reference = reference
        self.calibration_size = calibration_size
        self.confidence = confidence
        self.exact = exact
        self.strategy = strategy
        self.divergence_bound = divergence_bound
        self.random_state = random_state

    @fit_context
    def fit(self, X: Any, y: Any = None, groups: Any = None) -> Self:
        """Learn the class from its rows.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            At least 2 rows of finite numbers, all of the class.
        y : ignored
        groups : array-like of shape (n_samples,), default=None
            Rows that belong together (of a person, of a machine) have equal values.
            Whole groups are held out and one random row of each counts; the promise
            is about a random row of a new group.

        Returns
        -------
        self : LowDensityRejector
        """
        self._check_settings()
        refuse_dask(X)
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        random = check_random_state(self.random_state)
        return self._fit_held_out(X, None, random, groups)

    def _check_settings(self) -> None:
        """Refuse combinations of parameters that mean nothing."""
        if self.exact and self.confidence is not None:
            raise ValueError(
                "`exact=True` attains the rate on average: leave `confidence` out, got "
                f"{shown(self.confidence)}."
            )
        if self.strategy != "soft":
            return
        if self.divergence_bound is None:
            raise ValueError(
                "`strategy='soft'` needs `divergence_bound`, the least divergence of "
                "an intruder in bits."
            )
        if self.exact or self.confidence is not None:
            raise ValueError(
                "`strategy='soft'` keeps its rate on average only: leave `confidence` "
                f"and `exact` out, got {shown(self.confidence)} and {self.exact!r}."
            )

    def _hold_out(
        self,
        X: Any,
        random: np.random.RandomState,
        groups: NDArray[Any] | None,
        times: NDArray[Any] | None,
    ) -> Split:
        return hold_out(len(X), self.calibration_size, random, groups, times)

    def _fit_part(
        self, X: Any, y: Any, random: np.random.RandomState, **given: Any
    ) -> None:
        X = np.asarray(X, dtype=np.float64)
        if self.estimator is None:
            classifier = MeanLogitClassifier(random_state=random.randint(2**31 - 1))
        else:
            classifier = clone(self.estimator)
        self._learned = learned = learn(
            X,
            fit_classifier=lambda X, labels: LogOdds(classifier.fit(X, labels)),
            reference=self.reference,
            with_kernels=self.estimator is None,
            is_soft=self.strategy == "soft",
            random=random,
        )
        odds = learned.density.log_odds
        self.estimator_ = odds.classifier if isinstance(odds, LogOdds) else None
        varies = learned.density.standardisation.varies
        self.constant_features_ = np.flatnonzero(~varies)
        warn_constant_features(
            self, self.constant_features_, ", unless a new row differs there"
        )
        self.cell_size_ = learned.cell_size

    def _scores(self, X: Any, y: Any) -> tuple[CalibrationScores, int]:
        """Scores of held-out rows, and how many of them no cell of the grid covers."""
        rows = np.asarray(X, dtype=np.float64)
        density, n_missing = self._learned.density, 0
        if isinstance(density.reference, GridReference):
            n_missing = int(np.sum(~density.covers(rows)))
        return CalibrationScores.from_rows(density.score(rows)), n_missing

    def _merged(self, parts: Sequence[Any]) -> tuple[CalibrationScores, int]:
        scores, n_missing = zip(*parts, strict=True)
        return CalibrationScores.merged(scores), sum(n_missing)

    def _rule(self, scores: Any) -> Any:
        known, n_missing = scores
        self.missing_mass_ = n_missing / self.n_calibration_
        if self.missing_mass_ > self.false_alarm_rate / 2:
            warnings.warn(
                f"LowDensityRejector: {self.missing_mass_:.1%} of the held-out rows "
                "lie in no cell of the grid and are ranked by distance only; use "
                "reference='mixture'.",
                PrudentWarning,
                stacklevel=3,
            )
        coin = self._learned.coin if self.exact else None
        made = FalseAlarms(scores=known, coin=coin, terms=self._terms)
        rule = made.rule(float(self.false_alarm_rate))
        return self._play(rule) if self.strategy == "soft" else rule

    def score_samples(self, X: Any) -> FloatArray:
        """Estimated log density of each row, up to a constant.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
            Higher is more ordinary. Finite; below -1e5 outside the reference.
        """
        rows = self._rows(X)
        return self._learned.density.score(rows)

    def decision_function(self, X: Any) -> FloatArray:
        """Score minus offset; "soft": coin minus rejection probability.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
            Negative where the row is rejected; +inf everywhere if `k_` is 0.
        """
        rows = self._rows(X)
        scores = self._learned.density.score(rows)
        if isinstance(self.rule_, SoftRule):
            return self.rule_.decision(scores, rows)
        return scores - self.threshold_

    def _holds_out_rows(self) -> bool:
        return bool(self.strategy == "hard")

    def _rows(self, X: Any) -> FloatArray:
        """Validated rows, with one kind of zero."""
        return np.asarray(check_rows(self, X), dtype=np.float64) + 0.0

    def _set_rate(self) -> Self:
        if isinstance(self.rule_, SoftRule):
            made = self.rule_.calibration
            return self._adopt(self._play(made.rule(float(self.false_alarm_rate))))
        return super()._set_rate()

    def _play(self, rule: Rule) -> Any:
        """The rule of the game on the density, at the rate of a cut of its scores."""
        assert isinstance(rule.calibration, FalseAlarms)
        assert self.divergence_bound is not None
        assert self._learned.fit_scores is not None
        (scores,) = rule.calibration.scores.sorted
        rate = float(self.false_alarm_rate)
        return play_on_density(
            self._learned.fit_scores,
            scores,
            self._learned.log_cell_volume,
            rate,
            self.divergence_bound,
            self._learned.key,
            calibration=rule.calibration,
            guarantees=(soft_promise(rate, len(scores), rule.calibration.terms),),
        )

    def _adopt(self, rule: Any) -> Self:
        fewest = None
        if isinstance(rule, SoftRule):
            self.k_, self.threshold_, rejects = 0, np.nan, rule.scale > 0
            fewest = fewest_to_scale(float(self.false_alarm_rate))
        else:
            self.k_, (self.threshold_,) = rule.record["rank"], rule.thresholds
            rejects = self.k_ > 0
        self.offset_ = self.threshold_
        if not rejects:
            confidence = rule.guarantees[0].confidence
            self._say_nothing_is_rejected(
                self.n_calibration_, confidence, fewest=fewest
            )
        return super()._adopt(rule)


# --- classifiers of rows against artificial rows: the default, and log odds of any ----


@dataclass(frozen=True)
class LogOdds:
    """Log odds of class 1 by a fitted classifier, as a plain function of rows."""

    classifier: Any

    def __call__(self, X: FloatArray) -> FloatArray:
        """Log odds of class 1 of each row (n, d), (n,), from clipped probabilities.

        A classifier without probabilities gives its decision values.
        """
        if hasattr(self.classifier, "predict_proba"):
            probability = self.classifier.predict_proba(X)[:, 1]
            odds: FloatArray = logit(np.clip(probability, _CLIP, 1 - _CLIP))
            return odds
        return np.asarray(self.classifier.decision_function(X), dtype=np.float64)


class MeanLogitClassifier(ClassifierMixin, BaseEstimator):
    """Weighted mean logit of gradient boosting and a kernel logistic regression.

    Boosting follows axis-parallel edges and scales to any number of rows; the
    kernel model is smooth where the boundary is. Both have a proper loss. One part
    boosting to three of the kernel model follows known level sets best; on real
    sets all weights do alike.
    """

    def __init__(self, *, random_state: Any = None) -> None:
        self.random_state = random_state

    def fit(self, X: FloatArray, y: NDArray[Any]) -> Self:
        """Fit both models; labels 0 and 1 in equal numbers."""
        rng = check_random_state(self.random_state)
        self.classes_ = np.array([0, 1])
        boosting = HistGradientBoostingClassifier(
            max_iter=40,
            learning_rate=0.2,
            max_leaf_nodes=8,
            min_samples_leaf=20,
            l2_regularization=1.0,
            early_stopping=False,
            random_state=rng.randint(2**31 - 1),
        )
        chosen = np.concatenate(
            [rng.permutation(np.flatnonzero(y == c))[:_MAX_KERNEL_ROWS] for c in (0, 1)]
        )
        kernel_model = make_pipeline(
            StandardScaler(),
            Nystroem(
                gamma=2.0 / X.shape[1],
                n_components=min(_MAX_COMPONENTS, len(X) // 2),
                random_state=rng.randint(2**31 - 1),
            ),
            LogisticRegression(C=30.0, max_iter=2000),
        )
        with _threads_worth_having(len(X)):
            kernel_model.fit(X[chosen], y[chosen])
            self.models_ = (boosting.fit(X, y), kernel_model)
        return self

    def decision_function(self, X: FloatArray) -> FloatArray:
        """Weighted mean of the clipped log odds of class 1."""
        with _threads_worth_having(len(X)):
            boosting, kernel_model = (LogOdds(model)(X) for model in self.models_)
        return _BOOSTING_SHARE * boosting + (1 - _BOOSTING_SHARE) * kernel_model

    def predict(self, X: FloatArray) -> NDArray[np.int_]:
        """Class 1 where the mean log odds are positive."""
        return (self.decision_function(X) > 0).astype(int)


def _threads_worth_having(n_rows: int) -> AbstractContextManager[Any]:
    """One thread for few rows, else as many as are allowed."""
    return one_thread() if n_rows < _THREADED_ROWS else nullcontext()
