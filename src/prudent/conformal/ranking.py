"""How the rows of a fit come to rank new rows: full, split or cross."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing

from prudent.conformal.folds import plain_folds
from prudent.conformal.full import FullClassModel, Settings
from prudent.conformal.held_out import (
    CrossRanks,
    LabelScores,
    ScoreKind,
    SplitRanks,
    fit_part,
)
from prudent.conformal.inputs import hold_out_or_all, warn_of_learned_scaling
from prudent.conformal.promises import CROSS, FULL, SPLIT
from prudent.conformal.ranks import Kinds, Ranked
from prudent.core.types import BoolArray, FloatArray, IntArray
from prudent.core.validation import shown

# Full conformal prediction costs K^2 n elementary functions a row.
MOST_FULL_ROWS, MOST_FULL_WORK = 20_000, 2_000_000


@dataclass(frozen=True)
class Ranking:
    """Rows that rank new rows.

    Attributes
    ----------
    ranks : FullClassModel, SplitRanks or CrossRanks
    kinds : Kinds
        Which of the rows rank which new rows.
    class_count : ndarray of int, shape (n_classes,)
        Rows of each class that rank.
    alone : ndarray of int, shape (n_kinds,)
        Rows of each kind as strange as one of a label without training rows.
    by_class, by_groups : bool
        Whether kinds are classes; whether one row of each group ranks.
    """

    ranks: Any
    kinds: Kinds
    class_count: IntArray
    alone: IntArray
    by_class: bool = False
    by_groups: bool = False

    @property
    def unseen_label_p_value(self) -> float:
        """Largest p-value of a label without training rows."""
        if self.by_class:
            return 1.0
        return float(((1 + self.alone) / (self.kinds.sizes[:-1] + 1)).max())

    def wanted(self, X: Any, condition: Any) -> IntArray:
        """Kind of the rows that rank each new row under each label."""
        shape = (len(X), len(self.class_count))
        if condition is None:
            return np.zeros(shape, dtype=np.intp)
        if self.by_class:
            return np.broadcast_to(np.arange(shape[1]), shape)
        kinds = self.kinds.find(groups_of(X, condition))
        return np.broadcast_to(kinds[:, None], shape)


def choose_method(classifier: Any, n_classes: int, groups: ArrayLike | None) -> str:
    """How rows are ranked; refuses parameters that exclude each other."""
    frozen = isinstance(classifier.estimator, FrozenEstimator)
    method: str = classifier.method
    if method == "auto" and classifier.estimator is None:
        n = classifier.n_rows_
        small = n <= MOST_FULL_ROWS and n * n_classes**2 <= MOST_FULL_WORK
        method = FULL if small else SPLIT
    elif method == "auto":
        method = SPLIT if frozen else CROSS
    check_method(classifier, method, groups)
    if method == CROSS:
        if frozen:
            raise ValueError(
                "method='cross' fits clones of `estimator`, which is frozen: use "
                "method='split'."
            )
        if classifier.ties == "smoothed":
            raise ValueError(
                "ties='smoothed' has no promise with method='cross': use "
                "'conservative'."
            )
        if classifier.cv > classifier.n_rows_:
            raise ValueError(
                f"`cv` must be at most the number of rows, {classifier.n_rows_}, got "
                f"{classifier.cv}."
            )
    if method != FULL and classifier.nonconformity == "density":
        raise ValueError(
            "nonconformity='density' needs method='full', whose model has a density; "
            f"the method is {method!r}."
        )
    return method


def check_method(estimator: Any, method: str, groups: ArrayLike | None) -> None:
    """Refuse what classifier and detector cannot do alike."""
    if method == FULL and estimator.estimator is not None:
        raise ValueError(
            "method='full' has models of its own and cannot rank by `estimator`, got "
            f"{estimator.estimator!r}: use 'split', or leave `estimator` out."
        )
    if groups is not None and method != SPLIT:
        raise ValueError(
            f"`groups` need method='split', got {method!r}: rows of one group are not "
            "exchangeable with those of another."
        )
    if estimator.guarantee == "high_probability":
        if method != SPLIT:
            raise ValueError(
                "guarantee='high_probability' needs method='split', got "
                f"{method!r}: nothing of the kind holds given the training rows."
            )
        if estimator.ties == "smoothed":
            raise ValueError(
                "guarantee='high_probability' needs ties='conservative', got "
                "'smoothed'."
            )


def full_ranking(classifier: Any, X: FloatArray, codes: IntArray) -> Ranking:
    """All rows fit and rank."""
    of = classifier
    affine = of.covariance_type != "identity" and of.ridge_rows == 0
    if not (of.model == "gaussian" and affine):
        warn_of_learned_scaling(of, X)
    settings = Settings(
        model=of.model,
        covariance_type=of.covariance_type,
        pooled_rows=float(of.pooled_rows),
        ridge_rows=float(of.ridge_rows),
        n_neighbors=int(of.n_neighbors),
        width=None if of.bandwidth == "auto" else float(of.bandwidth),
        score=of.nonconformity,
    )
    names = [shown(label) for label in of.classes_]
    kinds = kinds_of(X, codes, len(names), of.condition)
    ranks = FullClassModel(X, codes, names, settings, kinds)
    count = np.bincount(codes)
    return _ranking(ranks, kinds, count, count[codes] == 1, of)


@dataclass(frozen=True)
class HeldOutRows:
    """What a split needs to know of rows that rank.

    Attributes
    ----------
    own : ndarray of shape (n,)
        Their scores under their own labels.
    codes : ndarray of int, shape (n,)
        Their classes.
    groups : ndarray of int, shape (n,) or None
        What a `condition` function says of them.
    """

    own: FloatArray
    codes: IntArray
    groups: NDArray[Any] | None

    @classmethod
    def of(
        cls, X: Any, y: NDArray[Any], scores: LabelScores, condition: Any
    ) -> HeldOutRows:
        """Rows in memory, with labels among those of `scores`."""
        codes = np.searchsorted(scores.classes, y).astype(np.intp)
        groups = groups_of(X, condition) if callable(condition) else None
        return cls(scores.own(X, codes), codes, groups)

    @classmethod
    def joined(cls, parts: Sequence[HeldOutRows]) -> HeldOutRows:
        """Rows of several blocks."""
        groups = [part.groups for part in parts if part.groups is not None]
        return cls(
            np.concatenate([part.own for part in parts]),
            np.concatenate([part.codes for part in parts]),
            np.concatenate(groups) if groups else None,
        )


def split_ranking(
    classifier: Any,
    X: Any,
    y: NDArray[Any],
    random: np.random.RandomState,
    groups: ArrayLike | None,
) -> Ranking:
    """Held-out rows rank by a classifier fitted to the others."""
    split = hold_out_or_all(classifier, X, random, groups)
    scores = split_scores(classifier, _safe_indexing(X, split.fit), y[split.fit])
    rows = _safe_indexing(X, split.held_out)
    found = HeldOutRows.of(rows, y[split.held_out], scores, classifier.condition)
    return ranking_of(classifier, scores, found, by_groups=groups is not None)


def split_scores(classifier: Any, X: Any, y: NDArray[Any]) -> LabelScores:
    """Scores by a classifier fitted to these rows, or by the frozen one."""
    estimator, classes = classifier.estimator, classifier.classes_
    if isinstance(estimator, FrozenEstimator):
        classes = np.union1d(classes, estimator.classes_)
    else:
        rows = np.arange(len(y), dtype=np.intp)
        estimator = fit_part(_ranking_estimator(classifier), X, y, rows)
    return LabelScores(estimator, classes, _score_kind(classifier))


def ranking_of(
    classifier: Any, scores: LabelScores, rows: HeldOutRows, *, by_groups: bool = False
) -> Ranking:
    """New rows are ranked among these."""
    n_classes = len(scores.classes)
    if rows.groups is not None:
        kinds = Kinds.of(rows.groups, np.unique(rows.groups))
    elif classifier.condition is None:
        kinds = Kinds.single(len(rows.codes))
    else:
        kinds = Kinds.of(rows.codes, np.arange(n_classes))
    return _ranking(
        SplitRanks(scores, Ranked.of(rows.own, kinds.of_rows, kinds)),
        kinds,
        np.bincount(rows.codes, minlength=n_classes),
        scores.unknown()[rows.codes],
        classifier,
        by_groups=by_groups,
    )


def cross_ranking(
    classifier: Any, X: Any, y: NDArray[Any], random: np.random.RandomState
) -> Ranking:
    """Each fold ranks by a classifier fitted to the other folds."""
    classes = classifier.classes_
    codes = np.searchsorted(classes, y).astype(np.intp)
    kinds = kinds_of(X, codes, len(classes), classifier.condition)
    folds = plain_folds(len(codes), classifier.cv, random)
    scores = []
    alone = np.zeros(len(codes), dtype=bool)
    for fold in folds:
        others = np.setdiff1d(np.arange(len(codes)), fold)
        estimator = fit_part(_ranking_estimator(classifier), X, y, others)
        one = LabelScores(estimator, classes, _score_kind(classifier))
        alone[fold] = one.unknown()[codes[fold]]
        scores.append(one)
    ranks = CrossRanks.of(scores, folds, X, codes, kinds)
    return _ranking(ranks, kinds, np.bincount(codes), alone, classifier)


def _ranking(
    ranks: Any,
    kinds: Kinds,
    class_count: IntArray,
    alone: BoolArray,
    classifier: Any,
    *,
    by_groups: bool = False,
) -> Ranking:
    n_alone = np.bincount(kinds.of_rows[alone], minlength=len(kinds.sizes) - 1)
    by_class = classifier.condition is not None and not callable(classifier.condition)
    return Ranking(ranks, kinds, class_count, n_alone, by_class, by_groups)


def _ranking_estimator(classifier: Any) -> Any:
    """What is fitted to parts of the rows: the own model by default."""
    if classifier.estimator is not None:
        return classifier.estimator
    return clone(classifier).set_params(
        method=FULL, condition=None, ties="conservative", guarantee="mean"
    )


def _score_kind(classifier: Any) -> ScoreKind:
    if classifier.estimator is None:
        return "margin" if classifier.nonconformity == "margin" else "posterior"
    if classifier.nonconformity == "margin":
        return "margin"
    return "probability" if hasattr(classifier.estimator, "predict_proba") else "margin"


def kinds_of(X: Any, codes: IntArray, n_classes: int, condition: Any) -> Kinds:
    """Kinds of the rows that rank: one, the classes, or groups."""
    if condition is None:
        return Kinds.single(len(codes))
    if not callable(condition):
        return Kinds.of(codes, np.arange(n_classes))
    groups = groups_of(X, condition)
    return Kinds.of(groups, np.unique(groups))


def groups_of(X: Any, condition: Any) -> NDArray[Any]:
    """Integer group of each row."""
    groups = np.asarray(condition(X))
    if groups.shape != (len(X),) or groups.dtype.kind not in "iub":
        raise ValueError(
            "`condition` must give one integer for each row, got an array of shape "
            f"{groups.shape} and type {groups.dtype}."
        )
    return groups
