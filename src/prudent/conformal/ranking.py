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

from prudent.conformal.gaussian import Diagonal, Gaussian
from prudent.conformal.held_out import (
    CrossRanks,
    HeldOutRows,
    LabelScores,
    ScoreKind,
    SplitRanks,
    fit_part,
)
from prudent.conformal.inputs import (
    MOST_FULL_ROWS,
    check_method,
    cut,
    warn_of_learned_scaling,
    way,
    width_of,
)
from prudent.conformal.neighbours import Combined, Kernel, Neighbours
from prudent.conformal.promises import CROSS, FULL, SPLIT, coverages
from prudent.conformal.ranks import Counts, Kinds, Ranked, groups_of, kinds_of
from prudent.conformal.units import ByUnits, in_units
from prudent.core.guarantee import Guarantee
from prudent.core.types import BoolArray, FloatArray, IntArray
from prudent.core.validation import shown
from prudent.estimator_tools import hold_out_unseen

# Full conformal prediction costs K^2 n elementary functions a row.
MOST_FULL_WORK = 2_000_000


@dataclass(frozen=True)
class Ranking:
    """Rows that rank new rows."""

    ranks: Any
    kinds: Kinds  # which of the rows rank which new rows
    class_count: IntArray  # (n_classes,): rows of each class that rank
    # (n_kinds,): rows of each kind as strange as one of a label without training rows
    alone: IntArray
    # whether kinds are classes; whether one row of each group ranks
    by_class: bool = False
    by_groups: bool = False

    @property
    def unseen_label_p_value(self) -> float:
        """Largest p-value of a label without training rows."""
        if self.by_class:
            return 1.0
        return float(((1 + self.alone) / (self.kinds.sizes[:-1] + 1)).max())

    def cuts(self, classifier: Any, level: float) -> IntArray:
        """How many of the strangest rows of each kind are not in the sets."""
        sizes = self.kinds.sizes.tolist()
        return np.array([cut(classifier, n, level) for n in sizes], dtype=np.intp)

    def coverages(self, classifier: Any) -> tuple[Guarantee, ...]:
        """What is promised at the level of a fitted classifier."""
        level, n_folds = float(classifier.level), classifier.cv
        return coverages(
            way(classifier, level, by_groups=self.by_groups, n_folds=n_folds),
            self.kinds,
            self.cuts(classifier, level),
            self.alone,
            classes=classifier.classes_ if self.by_class else None,
        )

    def wanted(self, X: Any, condition: Any) -> IntArray:
        """Kind of the rows that rank each new row under each label."""
        shape = (len(X), len(self.class_count))
        if self.by_class:
            return np.broadcast_to(np.arange(shape[1]), shape)
        groups = groups_of(X, condition)
        if groups is None:
            return np.zeros(shape, dtype=np.intp)
        return np.broadcast_to(self.kinds.find(groups)[:, None], shape)


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


class FullClassModel(ByUnits):
    """A model of the training rows, and ranks in every augmented bag."""

    def __init__(
        self,
        rows: FloatArray,
        codes: IntArray,
        names: Sequence[str],
        settings: dict[str, Any],
        kinds: Kinds,
        *,
        by_class: bool,
    ) -> None:
        order = np.argsort(codes, kind="stable")
        self.rows = rows[order]
        self.codes = codes[order].astype(np.intp)
        self.category = kinds.of_rows[order]
        self.by_class = by_class  # then rows of other classes need no scores
        self.names = list(names)
        self.settings = settings  # constants, all fixed before the data are seen
        self._prepare()

    def joint(self, rows: FloatArray) -> FloatArray:
        """Log joint of rows and classes under the model of the training rows."""
        centred = in_units(self._columns.centre(rows), self._units)
        joint: FloatArray = self._model_in(self._units).log_joint(centred)
        return joint

    def counts(self, rows: FloatArray, wanted: IntArray) -> Counts:
        """Training rows stranger than each new row, among the kind wanted."""
        is_gaussian = self.settings["model"] in ("gaussian", "combined")
        given = {"by_class": self.by_class} if is_gaussian else {}

        def ask(model: Any, rows: FloatArray, places: IntArray) -> Counts:
            asked = np.ascontiguousarray(wanted[places])
            found: Counts = model.counts(rows, self.category, asked, **given)
            return found

        return self._counts(rows, wanted.shape, ask)

    def _learn(self, rows: FloatArray) -> Any:
        of, n_classes = self.settings, len(self.names)
        if of["model"] == "kernel":
            n, d = rows.shape
            width = of["width"] or (n + 1) ** (-1 / (d + 4))
            return Kernel(rows, self.codes, n_classes, width)
        if of["model"] == "gaussian":
            return self._learn_gaussian(rows, of["score"])
        near = Neighbours(rows, self.codes, n_classes, of["n_neighbors"])
        if of["model"] == "neighbors":
            return near
        return Combined(self._learn_gaussian(rows, "posterior"), near)

    def _learn_gaussian(self, rows: FloatArray, score: str) -> Gaussian | Diagonal:
        names = ("covariance_type", "pooled_rows", "ridge_rows")
        constants = {name: self.settings[name] for name in names}
        if constants["covariance_type"] == "diag":
            del constants["covariance_type"]
            return Diagonal.learn(
                rows, self.codes, self.names, score=score, **constants
            )
        return Gaussian.learn(rows, self.codes, self.names, score=score, **constants)


def full_ranking(classifier: Any, X: FloatArray, codes: IntArray) -> Ranking:
    """All rows fit and rank."""
    of = classifier
    affine = of.covariance_type != "identity" and of.ridge_rows == 0
    if not (of.model == "gaussian" and affine):
        warn_of_learned_scaling(of, X)
    settings = {
        "model": of.model,
        "covariance_type": of.covariance_type,
        "pooled_rows": float(of.pooled_rows),
        "ridge_rows": float(of.ridge_rows),
        "n_neighbors": int(of.n_neighbors),
        "width": width_of(of),
        "score": of.nonconformity,
    }
    names = [shown(label) for label in of.classes_]
    kinds = kinds_of(codes, len(names), of.condition, groups_of(X, of.condition))
    by_class = isinstance(of.condition, str)
    ranks = FullClassModel(X, codes, names, settings, kinds, by_class=by_class)
    count = np.bincount(codes)
    return _ranking(ranks, kinds, count, count[codes] == 1, of)


def split_ranking(
    classifier: Any,
    X: Any,
    y: NDArray[Any],
    random: np.random.RandomState,
    groups: ArrayLike | None,
) -> Ranking:
    """Held-out rows rank by a classifier fitted to the others."""
    split = hold_out_unseen(classifier, X, random, groups)
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
    kinds = kinds_of(rows.codes, n_classes, classifier.condition, rows.groups)
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
    condition = classifier.condition
    kinds = kinds_of(codes, len(classes), condition, groups_of(X, condition))
    # A plain draw: strata are not exchangeable.
    drawn = np.array_split(random.permutation(len(codes)), classifier.cv)
    folds = [np.sort(fold) for fold in drawn]
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
    by_class = isinstance(classifier.condition, str)
    return Ranking(ranks, kinds, class_count, n_alone, by_class, by_groups)


def _ranking_estimator(classifier: Any) -> Any:
    """What is fitted to parts of the rows: the own model by default."""
    if classifier.estimator is not None:
        return classifier.estimator
    return clone(classifier).set_params(
        method=FULL, condition=None, ties="conservative", guarantee="mean"
    )


def _score_kind(classifier: Any) -> ScoreKind:
    if classifier.nonconformity == "margin":
        return "margin"
    if classifier.estimator is None:
        return "posterior"
    return "probability" if hasattr(classifier.estimator, "predict_proba") else "margin"
