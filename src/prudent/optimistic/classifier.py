"""`OptimisticScoreClassifier`: validate, take moments, solve, store.

What a fitted classifier keeps and answers is a class of its own, which the classifier
that chooses its radii by cross-validation shares.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import get_scorer, get_scorer_names
from sklearn.utils import check_random_state

from prudent._compat import Interval, StrOptions, fit_context
from prudent.core.classes import (
    check_two_classes,
    class_priors,
    constant_features,
    spread_over_classes,
    varying_features,
    winner,
)
from prudent.core.moments import ClassMoments
from prudent.core.rows import Block, LocalRows, Rows, Split
from prudent.core.types import BoolArray, FloatArray
from prudent.estimator_tools import (
    MomentFitMixin,
    check_rows,
    check_training,
    covariance_rule,
    fold_positions,
    is_covariance_estimator,
    store_fold_scores,
    warn_constant_features,
    warn_repairs,
)
from prudent.exceptions import PrudentWarning
from prudent.optimistic.learn import Learned, guarantees, learn, tuned_offsets
from prudent.optimistic.model import Bound, Model, shares
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
    those that explain it worst. With Gaussian scores, radius 0 and
    ``threshold="bayes"`` it is quadratic discriminant analysis.

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
        Factor >= 0 of a radius taken from data, of no effect on given numbers. None is
        1, and 0.1 in `predict_set`, where whole balls may leave every row undecided.
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


# --- radii chosen by cross-validation -------------------------------------------------


#: Radii over sqrt(d) of the published code.
PUBLISHED_RADII = (0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.15, 0.16, 0.2, 0.5)


class OptimisticScoreClassifierCV(OptimisticAnswers, ClassifierMixin, BaseEstimator):
    """Optimistic score classifier with the radii chosen by cross-validation.

    Each fold takes its class moments and the distances of its rows once, and one
    score a radius: a grid of R values costs 2 R scores for two classes, whose R^2
    pairs it compares, each with the threshold tuned on the training part.

    Parameters
    ----------
    radii : array-like of shape (n_radii,) or (n_choices, n_classes), default=None
        Values >= 0 to choose from: all pairs of them for two classes, one value for
        all classes where there are more. Or the choices themselves, one radius a
        class. None is 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.15, 0.16, 0.2 and 0.5,
        times the root of the number of features (the authors' published code).
    cv : int, splitter or iterable of (train, test) positions, default=5
        A number means stratified folds in the order of the rows.
    scoring : str or callable, default="accuracy"
        What is maximised: a scorer of scikit-learn, or its name.
    n_jobs : int, default=None
        Folds done at the same time, as in joblib.
    likelihood, ball, rule, covariance, threshold, priors
        As in :class:`OptimisticScoreClassifier`.

    Attributes
    ----------
    radii_ : ndarray of shape (n_classes,)
        The choice; the first among equals, the smallest for a grid.
    best_score_ : float
        Mean score of the choice over the folds.
    cv_results_ : dict of ndarray
        `radii` (n_choices, n_classes), `split{i}_test_score`, `mean_test_score` and
        `std_test_score`, one entry a choice.
    classes_, means_, covariances_, set_radii_, log_threshold_, offsets_, priors_, \
class_count_, moments_, constant_features_, floored_features_, \
n_floored_eigenvalues_, guarantees_
        Of the fit to all rows with these radii; see
        :class:`OptimisticScoreClassifier`.

    Notes
    -----
    Sets use the chosen radii too: these are chosen for decisions and may be too large
    for sets. The chosen score is optimistic, like every tuned score: judge the result
    on other data.

    References
    ----------
    Nguyen, Si and Blanchet (2020), "Robust Bayesian classification using an
    optimistic score ratio", ICML, section 5.2.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from prudent import OptimisticScoreClassifierCV
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = OptimisticScoreClassifierCV(radii=[0.1, 0.5, 2.0]).fit(X[:, :10], y)
    >>> model.radii_, len(model.cv_results_["mean_test_score"])
    (array([0.1, 0.5]), 9)
    """

    _parameter_constraints: dict[str, Any] = {
        **SHARED_CONSTRAINTS,
        "radii": ["array-like", None],
        "cv": ["cv_object"],
        "scoring": [StrOptions(set(get_scorer_names())), callable],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        *,
        radii: Any = None,
        cv: Any = 5,
        scoring: Any = "accuracy",
        n_jobs: int | None = None,
        likelihood: Any = "gaussian",
        ball: Any = "moments",
        rule: Any = "ratio",
        covariance: Any = "ledoit_wolf",
        threshold: Any = "tuned",
        priors: ArrayLike | None = None,
    ) -> None:
        self.radii = radii
        self.cv = cv
        self.scoring = scoring
        self.n_jobs = n_jobs
        self.likelihood = likelihood
        self.ball = ball
        self.rule = rule
        self.covariance = covariance
        self.threshold = threshold
        self.priors = priors

    @fit_context
    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Choose the radii, then fit to all rows.

        Parameters
        ----------
        X, y, sample_weight
            As in :meth:`OptimisticScoreClassifier.fit`; fold scores are weighted too.

        Raises
        ------
        DegenerateDataError, ValueError
            As the plain classifier, also for the training part of a fold.

        Warns
        -----
        PrudentWarning
            If a class has fewer rows than there are folds.
        """
        X, y, weight = check_training(self, X, y, sample_weight)
        moments = ClassMoments.from_arrays(X, y, weight)
        check_two_classes(moments.classes)
        class_priors(self.priors, moments.weight)
        n_features = len(varying_features(moments))
        choices = _radius_choices(self.radii, len(moments.classes), n_features)
        block = Block(X, np.searchsorted(moments.classes, y), weight)
        splits = fold_positions(self.cv, X, y, sample_weight)
        scores = np.array(
            Parallel(n_jobs=self.n_jobs)(
                delayed(_fold_scores)(self, choices, moments.classes, block, split)
                for split in splits
            )
        )
        best = store_fold_scores(self, scores, radii=choices)
        learned = self._learned(moments, LocalRows([block]), choices[best])
        self._store(learned, moments)
        return self


def _radius_choices(
    radii: ArrayLike | None, n_classes: int, n_features: int
) -> FloatArray:
    """Choices of one radius a class, (n_choices, n_classes).

    Values (R,) are combined to all pairs for two classes; more classes have one
    value each time.
    """
    if radii is None:
        radii = np.sqrt(n_features) * np.array(PUBLISHED_RADII)
    try:
        given = np.asarray(radii, dtype=np.float64)
    except (TypeError, ValueError):
        given = np.empty(())
    if given.ndim not in (1, 2) or not given.size:
        raise ValueError(
            "`radii` must hold one or more numbers, or rows of one number a class, got "
            f"{radii!r}."
        )
    bad = given[~((given >= 0) & np.isfinite(given))]
    if len(bad):
        raise ValueError(f"`radii` must be finite and >= 0, got {float(bad[0])}.")
    if given.ndim == 2:
        if given.shape[1] != n_classes:
            raise ValueError(
                f"each row of `radii` must hold one number for each of the {n_classes} "
                f"classes, got shape {given.shape}."
            )
        return given
    values = np.unique(given)
    if n_classes == 2:
        return np.array(list(product(values, values)))
    return np.repeat(values[:, None], n_classes, axis=1)


def _decisions(
    model: Model, choices: FloatArray, training: Block | None, X: NDArray[Any]
) -> Iterator[FloatArray]:
    """`Model.decision` of rows for each choice of radii, from one pass over them.

    The model has rows of every class; any radii will do. Its threshold is tuned again
    by the training rows, if there are any.
    """
    columns = [np.unique(column, return_inverse=True) for column in choices.T]
    values, places = zip(*columns, strict=True)
    tested, distances = _scores_by_radius(model, values, X)
    if training is not None:
        (fitted,), near = _scores_by_radius(model, values, training.X)
    classes = np.arange(len(values))
    for place in np.transpose(places):
        chosen = model
        if training is not None:
            scores = model.with_ties_broken(fitted[place, :, classes].T, near)
            offsets = tuned_offsets(scores, training.codes, training.weight)
            chosen = replace(model, offsets=offsets)
        ends = [end[place, :, classes].T for end in tested]
        yield chosen.compared(ends, distances)


def _scores_by_radius(
    model: Model, values: tuple[FloatArray, ...], X: NDArray[Any]
) -> tuple[FloatArray, FloatArray]:
    """Scores (ends, radii, n, K) by every end and radius of a class; distances."""
    n_values = max(len(own) for own in values)
    columns = [
        np.array([own[min(j, len(own) - 1)] for own in values]) for j in range(n_values)
    ]
    ends = [end for end, _ in model.bounds]
    bounds: list[Bound] = [(end, radii) for end in ends for radii in columns]
    scores = np.empty((len(bounds), len(X), len(values)))
    distances = np.empty((len(X), len(values)))
    for rows, block, D in model.blocks(X, *bounds):
        distances[rows] = D
        for j, each in enumerate(block):
            scores[j, rows] = each
    return scores.reshape(len(ends), n_values, *distances.shape), distances


class _Decided(ClassifierMixin, BaseEstimator):
    """A classifier whose answers are known, for a scorer."""

    def __init__(self, classes: NDArray[Any], decision: FloatArray) -> None:
        self.classes_, self._decision = classes, decision

    def decision_function(self, X: Any) -> FloatArray:
        return self._decision

    def predict(self, X: Any) -> NDArray[Any]:
        return self.classes_[winner(self._decision)]

    def predict_proba(self, X: Any) -> FloatArray:
        return shares(self._decision)


def _fold_scores(
    settings: OptimisticScoreClassifierCV,
    choices: FloatArray,
    classes: NDArray[Any],
    everything: Block,
    split: Split,
) -> list[float]:
    """Score of one fold for every choice of radii."""
    train, test = split
    part, tested = everything.taken(train), everything.taken(test)
    n_rows = np.bincount(part.codes, minlength=len(classes)).astype(np.float64)
    present, codes = np.unique(part.codes, return_inverse=True)  # perhaps not all
    part = Block(part.X, codes, part.weight)
    moments = ClassMoments.from_arrays(part.X, classes[present][codes], part.weight)
    priors = settings.priors
    if priors is not None:
        priors = class_priors(priors, n_rows)[present]
    tunes = settings.rule == "ratio" and settings.threshold == "tuned"
    with warnings.catch_warnings():
        # the fit to all rows says what is worth saying
        warnings.simplefilter("ignore", PrudentWarning)
        learned = settings._learned(
            moments,
            LocalRows([part]),
            np.zeros(len(present)),
            threshold="bayes" if tunes else settings.threshold,
            priors=priors,
        )
    thresholds: FloatArray | None = None
    if settings.rule == "ratio" and callable(settings.threshold):
        thresholds = log_ratios(settings.threshold, tested.X)
    score = _scoring(settings.scoring, classes[present], classes[tested.codes], tested)
    kept = learned.features
    decisions = _decisions(
        learned.model,
        choices[:, present],
        part.restrict(kept) if tunes else None,
        tested.restrict(kept).X,
    )
    return [score(d if thresholds is None else d - thresholds) for d in decisions]


def _scoring(
    scoring: Any, classes: NDArray[Any], truth: NDArray[Any], rows: Block
) -> Callable[[FloatArray], float]:
    """Score of the decision values of some rows."""
    if scoring == "accuracy":  # a scorer takes longer than all else here
        return lambda decision: float(
            np.average(classes[winner(decision)] == truth, weights=rows.weight)
        )
    scorer = get_scorer(scoring)
    weighted = {} if rows.weight is None else {"sample_weight": rows.weight}
    return lambda decision: float(
        scorer(_Decided(classes, decision), rows.X, truth, **weighted)
    )
