"""Ranks by any classifier, of rows that it has not been fitted to."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OutlierMixin, clone
from sklearn.dummy import DummyClassifier
from sklearn.frozen import FrozenEstimator

from prudent.conformal.gaussian import strangeness
from prudent.conformal.one_class import Ellipsoid
from prudent.conformal.units import Columns, in_units, kept_columns
from prudent.core.classes import log_odds_against
from prudent.core.types import FloatArray, IntArray
from prudent.estimator_tools import groups_for
from prudent.exceptions import PrudentWarning
from prudent.rules.scores import CalibrationScores, Counts

ScoreKind = Literal["probability", "posterior", "margin", "blend"]
# A log joint of a label that a classifier does not know.
LOWEST = -1e300


@dataclass(frozen=True)
class LabelScores:
    """Scores of each row under each label, by a fitted classifier."""

    estimator: Any
    # (n_classes,): all labels; those that the classifier does not know score +inf
    classes: NDArray[Any]
    # log odds against the label, of probabilities or where `decision_function` holds
    # log joints; largest other value of `decision_function` minus the own; minus
    # twice the own value, where it is minus half the score of a blend
    kind: ScoreKind

    def both(self, X: Any) -> tuple[FloatArray, FloatArray]:
        """Joint values, and how plausible each label of each row is: one prediction.

        Of the first, (m, n_classes), the largest is predicted; the second is minus the
        nonconformity, -inf for labels that the classifier does not know.
        """
        if self.kind == "probability":
            probabilities = self.estimator.predict_proba(X)
            known = self._spread(probabilities, 0.0)
            odds = self._spread(log_odds_against(probabilities), np.inf)
            return np.log(np.maximum(known, np.finfo(np.float64).tiny)), -odds
        values = np.asarray(self.estimator.decision_function(X), dtype=np.float64)
        if values.ndim == 1:
            values = np.stack([np.zeros_like(values), values], axis=1)
        values = self._spread(values, -np.inf)
        if self.kind == "blend" and len(self.estimator.classes_) > 2:
            return np.maximum(values, LOWEST), 2.0 * values
        # Of two classes the blend's values are log odds like the Gaussian's.
        score = "margin" if self.kind == "margin" else "posterior"
        return np.maximum(values, LOWEST), -strangeness(values, score)

    def own(self, X: Any, codes: IntArray) -> FloatArray:
        """Plausibility of the own label of each row, (m,)."""
        return np.take_along_axis(self.both(X)[1], codes[:, None], axis=1)[:, 0]

    def unknown(self) -> NDArray[np.bool_]:
        """Labels that the classifier does not know."""
        return ~np.isin(self.classes, self.estimator.classes_)

    def _spread(self, values: Any, missing: float) -> FloatArray:
        """Columns of the classifier's labels among those of all labels."""
        spread = np.full((len(values), len(self.classes)), missing)
        spread[:, np.searchsorted(self.classes, self.estimator.classes_)] = values
        return spread


#: Joint values of rows, worked out when they are wanted.
Joint = Callable[[], FloatArray]


@dataclass(frozen=True)
class CrossModel:
    """The rows of each fold rank new ones by a classifier fitted to the others."""

    scores: tuple[LabelScores, ...]
    ranked: tuple[CalibrationScores, ...]  # scores of the rows of each fold

    def joint(self, X: Any) -> FloatArray:
        """Log of the mean probability of the folds; or their mean decision."""
        return self._mean([one.both(X)[0] for one in self.scores])

    def both(self, X: Any, wanted: IntArray) -> tuple[Joint, Counts]:
        """How to get joint values, and training rows below and level with new ones."""
        asked = [one.both(X) for one in self.scores]
        counts = [
            ranked.counts(plausible, wanted)
            for ranked, (_, plausible) in zip(self.ranked, asked, strict=True)
        ]
        below, equal = np.sum(counts, axis=0)
        joints = [joint for joint, _ in asked]
        return partial(self._mean, joints), Counts(below, equal)

    def _mean(self, joints: list[FloatArray]) -> FloatArray:
        each = np.stack(joints)
        kinds = {one.kind for one in self.scores}
        if "margin" in kinds and not hasattr(self.scores[0].estimator, "p_values"):
            known = each > LOWEST
            return np.where(known, each, 0.0).sum(axis=0) / known.sum(axis=0)
        each -= np.logaddexp.reduce(each, axis=2, keepdims=True)
        return np.logaddexp.reduce(each, axis=0) - np.log(len(each))


def fitted_scores(classifier: Any, X: Any, y: NDArray[Any]) -> LabelScores:
    """Scores by a classifier fitted to these rows, or by the frozen one.

    Without an `estimator` that is the classifier's own model; of rows of one class a
    constant.
    """
    estimator, classes = classifier.estimator, classifier.classes_
    kind: ScoreKind = "margin"
    if estimator is None and classifier.nonconformity == "posterior":
        kind = "blend" if classifier.model == "blend" else "posterior"
    elif classifier.nonconformity == "margin":
        kind = "margin"
    elif hasattr(estimator, "predict_proba"):
        kind = "probability"
    if isinstance(estimator, FrozenEstimator):
        known = np.union1d(classes, estimator.classes_)
        return LabelScores(estimator, known, kind)
    own = estimator is None
    if own:
        estimator = clone(classifier).set_params(
            method="full", condition=None, ties="conservative", confidence=None
        )
    if (y == y[0]).all():
        estimator, kind = DummyClassifier(strategy="prior"), "probability"
    with warnings.catch_warnings():
        if own:  # what it warns of has been said
            warnings.simplefilter("ignore", PrudentWarning)
        # The classifier's own model keeps no groups together, and need not here.
        groups = None if own else classifier._fit_groups
        fitted = clone(estimator).fit(X, y, **groups_for(estimator, groups))
    if kind == "probability" and not hasattr(fitted, "predict_proba"):
        kind = "margin"  # known only now of one that chooses among several
    return LabelScores(fitted, classes, kind)


class EllipsoidDetector(OutlierMixin, BaseEstimator):
    """Minus the distance from the mean in the metric of the scatter with a ridge.

    What `ConformalDetector` fits to a part of the rows by default.
    """

    def __init__(self, *, ridge_rows: float = 1.0) -> None:
        self.ridge_rows = ridge_rows

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn units, mean and scatter."""
        self._columns = Columns.of(np.asarray(X, dtype=np.float64))
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


def ordinary_scores(detector: Any, X: Any) -> FloatArray:
    """Scores of rows by a fitted outlier detector, high for ordinary rows.

    The `decision_function` of a class with `decision_scores_` is high for strange rows
    (PyOD).
    """
    if hasattr(detector, "score_samples"):
        return np.asarray(detector.score_samples(X), dtype=np.float64)
    values = np.asarray(detector.decision_function(X), dtype=np.float64)
    return -values if hasattr(detector, "decision_scores_") else values


def farness(scores: FloatArray, ranked: FloatArray) -> FloatArray:
    """How far each score lies below those that rank, from 0 to below 1."""
    middle = np.median(ranked)
    spread = np.median(np.abs(ranked - middle))
    z = (middle - scores) / (spread if spread > 0 else 1.0)
    return np.clip(0.5 + 0.5 * z / (1 + np.abs(z)), 0.0, 1 - 2.0**-53)
