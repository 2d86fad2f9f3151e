"""Ranks by any classifier, of rows that it has not been fitted to."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OutlierMixin, clone
from sklearn.dummy import DummyClassifier
from sklearn.utils import _safe_indexing

from prudent.conformal.gaussian import strangeness
from prudent.conformal.one_class import Ellipsoid
from prudent.conformal.ranks import Counts, Kinds, Ranked, compare, groups_of
from prudent.conformal.units import Columns, in_units, kept_columns
from prudent.core.classes import log_odds_against
from prudent.core.types import FloatArray, IntArray
from prudent.exceptions import PrudentWarning

ScoreKind = Literal["probability", "posterior", "margin"]
# A log joint of a label that a classifier does not know.
LOWEST = -1e300


@dataclass(frozen=True)
class LabelScores:
    """Scores of each row under each label, by a fitted classifier."""

    estimator: Any
    # (n_classes,): all labels; those that the classifier does not know score +inf
    classes: NDArray[Any]
    # log odds against the label, of probabilities or where `decision_function` holds
    # log joints; largest other value of `decision_function` minus the own
    kind: ScoreKind

    @property
    def is_decision(self) -> bool:
        """Whether joints are decision values that are no log probabilities."""
        own_model = hasattr(self.estimator, "p_values")
        return self._own_kind == "margin" and not own_model

    @property
    def _own_kind(self) -> ScoreKind:
        # A part of one class has been fitted by a constant.
        constant = isinstance(self.estimator, DummyClassifier)
        return "probability" if constant else self.kind

    def joint(self, X: Any) -> FloatArray:
        """One value a label, of which the largest is predicted."""
        if self._own_kind == "probability":
            probabilities = self._spread(self.estimator.predict_proba(X), 0.0)
            return np.log(np.maximum(probabilities, np.finfo(np.float64).tiny))
        values = self._decision(X)
        return np.maximum(values, LOWEST)

    def of(self, X: Any) -> FloatArray:
        """Nonconformity of each row under each label, (m, n_classes)."""
        if self._own_kind == "probability":
            odds = log_odds_against(self.estimator.predict_proba(X))
            return self._spread(odds, np.inf)
        return strangeness(self._decision(X), self.kind)

    def own(self, X: Any, codes: IntArray) -> FloatArray:
        """Nonconformity of rows under their own labels, (m,)."""
        return np.take_along_axis(self.of(X), codes[:, None], axis=1)[:, 0]

    def unknown(self) -> NDArray[np.bool_]:
        """Labels that the classifier does not know."""
        return ~np.isin(self.classes, self.estimator.classes_)

    def _decision(self, X: Any) -> FloatArray:
        values = np.asarray(self.estimator.decision_function(X), dtype=np.float64)
        if values.ndim == 1:
            values = np.stack([np.zeros_like(values), values], axis=1)
        return self._spread(values, -np.inf)

    def _spread(self, values: Any, missing: float) -> FloatArray:
        """Columns of the classifier's labels among those of all labels."""
        spread = np.full((len(values), len(self.classes)), missing)
        spread[:, np.searchsorted(self.classes, self.estimator.classes_)] = values
        return spread


@dataclass(frozen=True)
class HeldOutRows:
    """What a split needs to know of rows that rank."""

    own: FloatArray  # (n,): their scores under their own labels
    codes: IntArray  # (n,): their classes
    groups: NDArray[Any] | None  # (n,): what a `condition` function says of them

    @classmethod
    def of(
        cls, X: Any, y: NDArray[Any], scores: LabelScores, condition: Any
    ) -> HeldOutRows:
        """Rows in memory, with labels among those of `scores`."""
        codes = np.searchsorted(scores.classes, y).astype(np.intp)
        return cls(scores.own(X, codes), codes, groups_of(X, condition))

    @classmethod
    def joined(cls, parts: Sequence[HeldOutRows]) -> HeldOutRows:
        """Rows of several blocks."""
        groups = [part.groups for part in parts if part.groups is not None]
        return cls(
            np.concatenate([part.own for part in parts]),
            np.concatenate([part.codes for part in parts]),
            np.concatenate(groups) if groups else None,
        )


@dataclass(frozen=True)
class SplitRanks:
    """Ranks among calibration rows by one classifier fitted without them."""

    scores: LabelScores
    ranked: Ranked  # scores of the calibration rows

    def joint(self, X: Any) -> FloatArray:
        """One value a label, of which the largest is predicted."""
        return self.scores.joint(X)

    def counts(self, X: Any, wanted: IntArray) -> Counts:
        """Calibration rows stranger than each new row under each label."""
        return self.ranked.counts(self.scores.of(X), wanted)


@dataclass(frozen=True)
class CrossRanks:
    """Ranks of the rows of each fold by a classifier fitted to the other folds."""

    scores: tuple[LabelScores, ...]
    ranked: tuple[Ranked, ...]  # scores of the rows of each fold

    @classmethod
    def of(
        cls,
        scores: list[LabelScores],
        folds: list[IntArray],
        X: Any,
        codes: IntArray,
        kinds: Kinds,
    ) -> CrossRanks:
        """Ranks among rows of the classes `codes`, fold by fold."""
        ranked = []
        for one, fold in zip(scores, folds, strict=True):
            own = one.own(_safe_indexing(X, fold), codes[fold])
            ranked.append(Ranked.of(own, kinds.of_rows[fold], kinds))
        return cls(tuple(scores), tuple(ranked))

    def joint(self, X: Any) -> FloatArray:
        """Log of the mean probability of the folds; or their mean decision."""
        each = np.stack([one.joint(X) for one in self.scores])
        if any(one.is_decision for one in self.scores):
            known = each > LOWEST
            return np.where(known, each, 0.0).sum(axis=0) / known.sum(axis=0)
        each -= np.logaddexp.reduce(each, axis=2, keepdims=True)
        return np.logaddexp.reduce(each, axis=0) - np.log(len(each))

    def counts(self, X: Any, wanted: IntArray) -> Counts:
        """Training rows stranger than each new row under each label."""
        larger = equal = np.zeros(wanted.shape, dtype=np.intp)
        for one, ranked in zip(self.scores, self.ranked, strict=True):
            found = ranked.counts(one.of(X), wanted)
            larger, equal = larger + found.larger, equal + found.equal
        return Counts(larger, equal)


def fit_part(estimator: Any, X: Any, y: NDArray[Any], rows: IntArray) -> Any:
    """Clone fitted to some rows; to rows of one class, a constant."""
    labels = y[rows]
    if (labels == labels[0]).all():
        estimator = DummyClassifier(strategy="prior")
    with warnings.catch_warnings():
        if hasattr(estimator, "p_values"):  # ours: what it warns of has been said
            warnings.simplefilter("ignore", PrudentWarning)
        return clone(estimator).fit(_safe_indexing(X, rows), labels)


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


@dataclass(frozen=True)
class OrdinaryScores:
    """Scores of rows by a fitted outlier detector, high for ordinary rows."""

    # with `score_samples` or `decision_function`; that of a class with
    # `decision_scores_` is high for strange rows (PyOD)
    estimator: Any

    def of(self, X: Any) -> FloatArray:
        """Nonconformity of each row."""
        if hasattr(self.estimator, "score_samples"):
            return -np.asarray(self.estimator.score_samples(X), dtype=np.float64)
        values = np.asarray(self.estimator.decision_function(X), dtype=np.float64)
        return values if hasattr(self.estimator, "decision_scores_") else -values


@dataclass(frozen=True)
class SplitOneClass:
    """Ranks among calibration rows by one outlier detector fitted without them."""

    scores: OrdinaryScores
    ranked: FloatArray  # (m,): scores of the calibration rows, sorted

    def counts(self, X: Any) -> Counts:
        """Calibration rows stranger than each new row."""
        return compare(self.scores.of(X), self.ranked)

    def farness(self, X: Any) -> FloatArray:
        """Score of each row on a scale from 0 to below 1."""
        scores = self.scores.of(X)
        middle = np.median(self.ranked)
        spread = np.median(np.abs(self.ranked - middle))
        z = (scores - middle) / (spread if spread > 0 else 1.0)
        return np.clip(0.5 + 0.5 * z / (1 + np.abs(z)), 0.0, 1 - 2.0**-53)
