"""`OptimisticScoreClassifierCV`: radii of the balls chosen by cross-validation."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from numbers import Integral
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import get_scorer, get_scorer_names

from prudent._compat import StrOptions, fit_context
from prudent.core.classes import (
    check_two_classes,
    class_priors,
    varying_features,
    winner,
)
from prudent.core.moments import ClassMoments
from prudent.core.rows import Block, LocalRows
from prudent.core.types import FloatArray
from prudent.estimator_tools import (
    Split,
    check_training,
    fold_positions,
    store_fold_scores,
)
from prudent.exceptions import PrudentWarning
from prudent.optimistic.classifier import (
    SHARED_CONSTRAINTS,
    OptimisticAnswers,
    log_ratios,
)
from prudent.optimistic.learn import tuned_offsets
from prudent.optimistic.model import Bound, Model, shares

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
    Sets use the chosen radii too: these make good decisions and are mostly too large
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
