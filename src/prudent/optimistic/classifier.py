"""OptimisticScoreClassifier: validate, take moments, solve, store."""

from __future__ import annotations

from numbers import Real
from typing import Any, Self

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state

from prudent._compat import Interval, StrOptions, fit_context
from prudent.core.moments import ClassMoments
from prudent.core.rows import Rows
from prudent.estimator_tools import (
    MomentFitMixin,
    check_training,
    covariance_rule,
    is_covariance_estimator,
)
from prudent.optimistic.answers import OptimisticAnswers
from prudent.optimistic.learn import learn
from prudent.optimistic.radii import ESTIMATED_RADII

_AT_LEAST_0 = Interval(Real, 0, None, closed="left")
_ABOVE_0 = Interval(Real, 0, None, closed="neither")
COVARIANCES = ("empirical", "ledoit_wolf", "oas", "pooled")
#: Constraints of the parameters that `OptimisticScoreClassifierCV` has too.
SHARED_CONSTRAINTS: dict[str, Any] = {
    "likelihood": [StrOptions({"gaussian", "nonparametric"})],
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
        learned = learn(
            moments,
            rows,
            likelihood=self.likelihood,
            rule=self.rule,
            radius=self.radius,
            radius_level=self.radius_level,
            radius_scale=self.radius_scale,
            covariance=covariance_rule(self.covariance, COVARIANCES),
            threshold=self.threshold,
            priors=self.priors,
            exact=given,
            random=check_random_state(self.random_state),
        )
        self._store(learned, moments)
