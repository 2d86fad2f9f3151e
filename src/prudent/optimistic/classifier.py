"""`OptimisticScoreClassifier`: validate, take moments, solve, store.

What a fitted classifier keeps and answers is a class of its own, which the classifier
that chooses its radii by cross-validation shares.
"""

from __future__ import annotations

from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state

from prudent._compat import Interval, StrOptions, fit_context
from prudent.core.classes import constant_features, spread_over_classes, winner
from prudent.core.moments import ClassMoments
from prudent.core.rows import Rows
from prudent.core.types import BoolArray, FloatArray
from prudent.estimator_tools import (
    MomentFitMixin,
    check_rows,
    check_training,
    covariance_rule,
    is_covariance_estimator,
    warn_constant_features,
    warn_repairs,
)
from prudent.optimistic.learn import Learned, guarantees, learn
from prudent.optimistic.model import Model
from prudent.optimistic.radii import ESTIMATED_RADII

COVARIANCES = ("empirical", "ledoit_wolf", "oas", "pooled")


class OptimisticAnswers:
    """Of a class with the shared settings, which ends its fit with `_store`."""

    likelihood: Any
    ball: Any
    rule: Any
    covariance: Any
    threshold: Any
    priors: Any
    n_features_in_: int
    _model: Model

    def _learned(
        self, moments: ClassMoments, rows: Rows | None, radius: Any, **settings: Any
    ) -> Learned:
        """The fit with a setting `radius=`, and others in place of these."""
        own = {
            "threshold": self.threshold,
            "priors": self.priors,
            "radius_level": 0.5,
            "radius_scale": None,
            "exact": False,
            "random": np.random.RandomState(0),  # given radii draw nothing
        }
        return learn(
            moments,
            rows,
            likelihood=self.likelihood,
            ball=self.ball,
            rule=self.rule,
            radius=radius,
            covariance=covariance_rule(self.covariance, COVARIANCES),
            **own | settings,
        )

    def _store(self, learned: Learned, moments: ClassMoments) -> None:
        """Keep what a fit learned, and warn of what it repaired."""
        nominal, seen = learned.nominal, learned.model.seen
        constant = constant_features(moments)
        labels = moments.classes[seen]
        warn_constant_features(self, constant)
        warn_repairs(self, nominal, labels)
        model = self._model = learned.model
        self.classes_, self.moments_ = moments.classes, moments
        self.class_count_, self.means_ = moments.weight, moments.mean
        self.covariances_ = learned.covariances(moments.mean.shape[1])
        self.radii_, self.set_radii_ = learned.radii, learned.set_radii
        self.priors_, self.offsets_ = model.priors, model.offsets
        moves = callable(self.threshold) and self.rule == "ratio"
        self._threshold = self.threshold if moves else None
        self.log_threshold_ = None if moves else model.log_threshold
        self.constant_features_ = constant
        self.floored_features_ = [
            (labels[k], learned.features[j]) for k, j in nominal.floored_features
        ]
        self.n_floored_eigenvalues_ = spread_over_classes(nominal.n_floored, seen, 0)
        self.guarantees_ = guarantees()

    def _rows(self, X: ArrayLike) -> tuple[NDArray[Any], FloatArray | None]:
        """Validated rows without the features that are ignored; own thresholds."""
        X = check_rows(self, X)
        logs = None if self._threshold is None else log_ratios(self._threshold, X)
        ignored = self.constant_features_
        return (np.delete(X, ignored, axis=1) if len(ignored) else X), logs

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Compared values: log score ratio less the log threshold, or class scores.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Two classes: >= 0 for `classes_[1]`. More: the largest wins.
        """
        rows, log_thresholds = self._rows(X)
        return self._model.decision(rows, log_thresholds)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Most plausible class of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        decision = self.decision_function(X)
        return self.classes_[winner(decision)]

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Softmax of the compared scores: agrees with `predict`, NOT calibrated.

        Of equal shares (a row within reach of several nonparametric balls) `predict`
        takes the nearer class. Numbers to rank by, not shares of rows: wrap the
        classifier in `sklearn.calibration.CalibratedClassifierCV` for those; what the
        ball leaves open is in `posterior_bounds`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        rows, log_thresholds = self._rows(X)
        return self._model.probabilities(rows, log_thresholds)

    def optimistic_scores(self, X: ArrayLike) -> FloatArray:
        """Log score of each row by the best moments of each ball.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Gaussian: log density + d/2 log(2 pi); nonparametric: log probability.
        """
        rows, _ = self._rows(X)
        return self._model.scores(rows, "upper")

    def pessimistic_scores(self, X: ArrayLike) -> FloatArray:
        """Log score of each row by the worst moments of each ball.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            In the units of `optimistic_scores`.
        """
        rows, _ = self._rows(X)
        return self._model.scores(rows, "lower")

    def posterior_bounds(self, X: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Range of each posterior probability over all moments in the balls.

        The balls are those of `radii_`; `predict_set` has smaller ones by default.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        lower, upper : ndarray of shape (n_samples, n_classes)
            Attained bounds; 0 for a class not yet seen.

        Raises
        ------
        ValueError
            For `likelihood="nonparametric"`, whose worst density is 0.
        """
        rows, _ = self._rows(X)
        return self._model.posterior_bounds(rows)

    def predict_set(self, X: ArrayLike) -> BoolArray:
        """Classes that no other class beats whatever the moments in the balls.

        Interval dominance of the (Gaussian: prior weighted) scores in balls of
        `set_radii_`, which keeps more classes the larger these are, united with
        `predict`: never empty. A threshold, or balls other than those of `radii_`, can
        make `predict` a dominated class; only such a class leaves at a larger radius.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of bool, shape (n_samples, n_classes)
            Columns in the order of `classes_`.
        """
        rows, log_thresholds = self._rows(X)
        return self._model.sets(rows, log_thresholds)

    def most_plausible_moments(self, x: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Moments in each ball that explain one row best.

        Parameters
        ----------
        x : array-like of shape (n_features,)
            The row.

        Returns
        -------
        means : ndarray of shape (n_classes, n_features)
        covariances : ndarray of shape (n_classes, n_features, n_features)
            In the units of `X`; a class not yet seen keeps its attributes.
        """
        rows, _ = self._rows(x if np.ndim(x) == 2 else np.atleast_2d(x))
        row = rows.astype(np.float64)
        if len(row) != 1:
            raise ValueError(f"`x` must be one row, got {len(row)}.")
        means, covariances = self.means_.copy(), self.covariances_.copy()
        kept = np.delete(np.arange(self.n_features_in_), self.constant_features_)
        block = np.ix_(kept, kept)
        for j, k in enumerate(np.flatnonzero(self._model.seen)):
            shift, covariances[k][block] = self._model.most_plausible(
                j, row[0], covariances[k][block]
            )
            means[k, kept] += shift
        return means, covariances


def log_ratios(threshold: Any, X: NDArray[Any]) -> FloatArray:
    """Logarithms of a user's thresholds, one for each row."""
    ratios = np.asarray(threshold(X), dtype=np.float64)
    if ratios.shape != (len(X),):
        raise ValueError(
            f"`threshold` must give one ratio for each of the {len(X)} rows, got shape "
            f"{ratios.shape}."
        )
    bad = np.flatnonzero(~(ratios > 0))
    if len(bad):
        raise ValueError(
            f"`threshold` must give ratios > 0, got {float(ratios[bad[0]])} at row "
            f"{int(bad[0])}."
        )
    logarithms: FloatArray = np.log(ratios)
    return logarithms


# --- the estimator --------------------------------------------------------------------


_AT_LEAST_0 = Interval(Real, 0, None, closed="left")
_ABOVE_0 = Interval(Real, 0, None, closed="neither")
#: Constraints of the parameters that `OptimisticScoreClassifierCV` has too.
SHARED_CONSTRAINTS: dict[str, Any] = {
    "likelihood": [StrOptions({"gaussian", "nonparametric"})],
    "ball": [StrOptions({"moments", "covariance"})],
    "rule": [StrOptions({"ratio", "minimax"})],
    "covariance": "no_validation",  # see `covariance_rule`
    "threshold": [StrOptions({"tuned", "bayes"}), _ABOVE_0, callable],
    "priors": ["array-like", None],
}


class OptimisticScoreClassifier(
    MomentFitMixin, OptimisticAnswers, ClassifierMixin, BaseEstimator
):
    """Classify by the most plausible moments within reach of the estimated ones.

    The mean and covariance of a class are estimates. Around them lies a ball of
    moments that the data do not rule out. A row is scored for each class by the
    moments of its ball that explain the row best (the optimistic score), and by
    those that explain it worst. Radius 0 is quadratic discriminant analysis.

    Parameters
    ----------
    likelihood : {"gaussian", "nonparametric"}, default="gaussian"
        Score of a row under given moments: Gaussian log density, or the largest
        probability of that point under any distribution with those moments.
    ball : {"moments", "covariance"}, default="moments"
        What may differ from the estimates: means and covariances (the paper), or
        covariances alone (KQDA, Gaussian only; `radius` "clt" or numbers up to 500).
    rule : {"ratio", "minimax"}, default="ratio"
        "ratio" compares optimistic scores with a threshold (the paper);
        "minimax" minimises the worst-case posterior error exactly and uses
        `priors` in place of a threshold (Gaussian only).
    radius : {"clt", "moments", "bootstrap"}, float or array-like of shape \
(n_classes,), default="clt"
        Radius of each ball: limit theorem for Gaussian rows, limit theorem with
        the rows' own fourth moments, bootstrap, or given numbers >= 0.
    radius_level : float, default=0.5
        Nominal level of a radius taken from data, in (0, 1).
    radius_scale : float or None, default=None
        Factor >= 0 of a radius taken from data. None is 1, and 0.1 in
        `predict_set`, where whole balls leave nearly every row undecided.
    covariance : {"ledoit_wolf", "empirical", "oas", "pooled"}, float or covariance \
estimator, default="ledoit_wolf"
        Nominal covariance, shrunk on the correlation scale. "pooled" is one for all
        classes, as in linear discriminant analysis. A float a in [0, 1] is
        (1 - a) S + a diag(S); an estimator is fitted to standardised rows, in which
        whole weights are repetitions.
    threshold : {"tuned", "bayes"}, float or callable, default="tuned"
        Highest training accuracy, ratio of priors, or, for two classes only, the
        score ratio tau > 0 itself or a function tau(X) that gives it for each row:
        ndarray (n, n_features) to array-like (n,), numbers > 0 or inf.
    priors : array-like of shape (n_classes,), default=None
        Class probabilities >= 0 of sum 1; None means class frequencies.
    random_state : int, RandomState or None, default=None
        Source of bootstrap resamples.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels; the positive class of two is `classes_[1]`.
    means_ : ndarray of shape (n_classes, n_features)
        Nominal means, in the units of `X`.
    covariances_ : ndarray of shape (n_classes, n_features, n_features)
        Nominal covariances; zero for features in `constant_features_`.
    radii_ : ndarray of shape (n_classes,)
        Radius of each ball.
    set_radii_ : ndarray of shape (n_classes,)
        Radii that `predict_set` uses; other than `radii_` only for
        `radius_scale=None` and a radius taken from data.
    log_threshold_ : float or None
        Log of the threshold; None for more than two classes or a function.
    offsets_ : ndarray of shape (n_classes,)
        Added to the class scores before they are compared; of sum 0, or -inf for
        a class of prior 0 where `threshold="bayes"`.
    priors_ : ndarray of shape (n_classes,)
        Class probabilities; 0 for a class not yet seen.
    class_count_ : ndarray of shape (n_classes,)
        Total weight of each class.
    moments_ : ClassMoments
        The moments learned from.
    constant_features_ : ndarray of int
        Features constant over all rows, which are ignored.
    floored_features_ : list of (label, ndarray of int)
        Features constant inside a class, whose variance there was set to 1e-9 of
        their variance over all rows.
    n_floored_eigenvalues_ : ndarray of shape (n_classes,)
        Eigenvalues of each correlation matrix raised to 1e-12 of the largest.
    guarantees_ : tuple
        Empty: the accuracy of a ball around estimates cannot be promised.

    See Also
    --------
    prudent.OptimisticScoreClassifierCV : Radii chosen by cross-validation.
    prudent.ImpreciseDiscriminantAnalysis : Sets from a box of means.

    Notes
    -----
    The ball of class c is {(mu, Sigma): D((m_c, S_c) || (mu, Sigma)) <= rho_c}
    with D of `prudent.optimistic.moment_divergence`. The optimistic score favours
    rare classes (their balls are larger), hence the tuned threshold.

    References
    ----------
    Nguyen, Si and Blanchet (2020), "Robust Bayesian classification using an
    optimistic score ratio", ICML, Algorithm 1.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from prudent import OptimisticScoreClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = OptimisticScoreClassifier().fit(X, y)
    >>> round(model.score(X, y), 3)
    0.993
    >>> int(model.predict_set(X).sum(axis=1).max())
    2
    """

    _learns_from_blocks = True
    _parameter_constraints: dict[str, Any] = {
        **SHARED_CONSTRAINTS,
        "radius": [StrOptions(set(ESTIMATED_RADII)), _AT_LEAST_0, "array-like"],
        "radius_level": [Interval(Real, 0, 1, closed="neither")],
        "radius_scale": [_AT_LEAST_0, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        *,
        likelihood: Any = "gaussian",
        ball: Any = "moments",
        rule: Any = "ratio",
        radius: Any = "clt",
        radius_level: Any = 0.5,
        radius_scale: Any = None,
        covariance: Any = "ledoit_wolf",
        threshold: Any = "tuned",
        priors: Any = None,
        random_state: Any = None,
    ) -> None:
        self.likelihood = likelihood
        self.ball = ball
        self.rule = rule
        self.radius = radius
        self.radius_level = radius_level
        self.radius_scale = radius_scale
        self.covariance = covariance
        self.threshold = threshold
        self.priors = priors
        self.random_state = random_state

    @fit_context
    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to labelled rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers.
        y : array-like of shape (n_samples,)
            Class labels, at least two different ones.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights >= 0, read as repetitions.

        Raises
        ------
        DegenerateDataError
            If a class has a weight total <= 1, or the empirical covariance is asked
            of no more rows than features.
        ValueError
            If there is one class only, or a parameter does not fit the data.
        """
        return self._fit_rows(*check_training(self, X, y, sample_weight))

    def _rows_needed_for(self) -> str | None:
        if self.rule == "ratio" and self.threshold == "tuned":
            return "threshold='tuned'"
        if is_covariance_estimator(self.covariance):
            return f"covariance={self.covariance!r}"
        if self.covariance == "ledoit_wolf":
            return "covariance='ledoit_wolf'"
        if isinstance(self.radius, str) and self.radius != "clt":
            return f"radius={self.radius!r}"
        return None

    def _learn(
        self, moments: ClassMoments, rows: Rows | None = None, *, given: bool = False
    ) -> None:
        learned = self._learned(
            moments,
            rows,
            self.radius,
            radius_level=self.radius_level,
            radius_scale=self.radius_scale,
            exact=given,
            random=check_random_state(self.random_state),
        )
        self._store(learned, moments)
