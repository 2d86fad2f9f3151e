"""How the rows of a fit come to rank new rows: full, split or cross."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from prudent.conformal.gaussian import Diagonal, Gaussian
from prudent.conformal.held_out import (
    CrossModel,
    Joint,
    fitted_scores,
)
from prudent.conformal.inputs import (
    MOST_FULL_ROWS,
    check_method,
    warn_of_learned_scaling,
)
from prudent.conformal.promises import CROSS, FULL, SPLIT, cross_bound, of_training_rows
from prudent.conformal.ranks import By, categories_of
from prudent.conformal.ridge import MOST_ROWS, Blend
from prudent.conformal.units import MOST_TABLES, ByUnits, in_units
from prudent.core.assumptions import Assumption
from prudent.core.binomial import mean_rank
from prudent.core.guarantee import Guarantee
from prudent.core.types import BoolArray, FloatArray, IntArray
from prudent.core.validation import shown
from prudent.rules.scores import ROUNDING, CalibrationScores, Counts, places

# Full conformal prediction costs K^2 n elementary functions a row.
MOST_FULL_WORK = 2_000_000
# Of the inverse matrices of blends in several units that are kept.
MOST_BYTES = 2**28


@dataclass(frozen=True)
class TrainingRanks:
    """All training rows rank new ones: full and cross-conformal prediction."""

    model: FullClassModel | CrossModel
    by: By
    names: tuple[Any, ...]  # of the categories of rows that rank among themselves
    sizes: IntArray  # (n_categories,)
    # (n_categories,): rows of each as strange as one of a label without training rows
    alone: IntArray
    class_count: IntArray  # (n_classes,)
    smoothed: bool = False
    n_folds: int = 0  # 0: full

    @property
    def unseen_label_p_value(self) -> float:
        """Largest p-value of a label without training rows."""
        if self.by == "class":
            return 1.0
        return float(((1 + self.alone) / (self.sizes + 1)).max())

    def ask(
        self, X: Any, groups: NDArray[Any] | None, coins: FloatArray | None
    ) -> tuple[Joint, FloatArray, IntArray]:
        """How to get joint values, and p-values and categories of all labels."""
        wanted = self._wanted(X, groups)
        joint, counts = self.model.both(X, wanted)
        coins = None if coins is None else coins[:, None]
        return joint, counts.p_values(np.append(self.sizes, 0)[wanted], coins), wanted

    def sets(self, p_values: FloatArray, wanted: IntArray, level: float) -> BoolArray:
        """Labels of p-values above a level, or above that of its rank."""
        if self.smoothed:
            return p_values > level
        cuts = np.append(self._cuts(level) / (self.sizes + 1), 0.0)
        return p_values > cuts[wanted]

    def coverages(self, level: float) -> tuple[Guarantee, ...]:
        """Coverage of the sets: over all rows, in each class or in each group.

        A row of a label without training rows is left out, which the ranks count as
        one of the promised misses if it is among the strangest. If not, the promise
        assumes that there is no such row.
        """
        assumption = {
            None: Assumption.TRAINING_EXCHANGEABLE,
            "class": Assumption.TRAINING_EXCHANGEABLE_CLASS,
            "group": Assumption.TRAINING_EXCHANGEABLE_GROUP,
        }[self.by]
        promises = []
        for c, rank in enumerate(self._cuts(level).tolist()):
            n = int(self.sizes[c])
            rate = level if self.smoothed else rank / (n + 1)
            counted = self.by != "class" and 1 + self.alone[c] <= rank
            if self.n_folds:
                equal = self.by is None
                rate = cross_bound(n, self.n_folds, rank, equal_folds=equal)
                counted = False
            promise = of_training_rows(
                "coverage",
                rate,
                assumption,
                *(() if counted else (Assumption.KNOWN_LABEL,)),
                n_rows=n,
                rank=None if self.smoothed else rank,
                scope=self.names[c],
                crossed=self.n_folds > 0,
            )
            promises.append(promise)
        return tuple(promises)

    def _cuts(self, level: float) -> IntArray:
        """How many of the strangest rows of each category are not in the sets."""
        ranks = [mean_rank(n, level) for n in self.sizes.tolist()]
        return np.array(ranks, dtype=np.intp)

    def _wanted(self, X: Any, groups: NDArray[Any] | None) -> IntArray:
        """Category of the rows that rank each new row under each label."""
        shape = (_num_samples(X), len(self.class_count))
        if self.by == "class":
            return np.broadcast_to(np.arange(shape[1]), shape)
        if groups is None:
            return np.zeros(shape, dtype=np.intp)
        return np.broadcast_to(places(groups, self.names)[:, None], shape)


def choose_method(classifier: Any, n_classes: int, groups: ArrayLike | None) -> str:
    """How rows are ranked; refuses parameters that exclude each other."""
    frozen = isinstance(classifier.estimator, FrozenEstimator)
    method: str = classifier.method
    if method == "auto" and classifier.estimator is None:
        n = classifier.n_rows_
        # Beyond, a blend of all rows saves 1 % of the size of sets for n^3 operations.
        most = MOST_ROWS if classifier.model == "blend" else MOST_FULL_ROWS
        small = n <= most and n * n_classes**2 <= MOST_FULL_WORK
        method = FULL if small and classifier.confidence is None else SPLIT
    elif method == "auto":
        method = SPLIT
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
    own = classifier.estimator is None
    if own and classifier.model == "blend" and classifier.nonconformity != "posterior":
        raise ValueError(
            f"nonconformity={classifier.nonconformity!r} needs model='gaussian', got "
            "model='blend', which is a score of its own."
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
        category: IntArray,
        *,
        by_class: bool,
    ) -> None:
        order = np.argsort(codes, kind="stable")
        self.rows = rows[order]
        self.codes = codes[order].astype(np.intp)
        self.category = category[order]
        self.by_class = by_class  # then rows of other classes need no scores
        self.names = list(names)
        self.settings = settings  # constants, all fixed before the data are seen
        self._prepare()

    def joint(self, rows: FloatArray) -> FloatArray:
        """Log joint of rows and classes under the model of the training rows."""
        centred = in_units(self._columns.centre(rows), self._units)
        joint: FloatArray = self._model_in(self._units).log_joint(centred)
        return joint

    def both(self, rows: FloatArray, wanted: IntArray) -> tuple[Joint, Counts]:
        """How to get joint values, and the counts of training rows."""
        return partial(self.joint, rows), self.counts(rows, wanted)

    def counts(self, rows: FloatArray, wanted: IntArray) -> Counts:
        """Training rows below and level with each new row, of the category wanted."""

        def ask(model: Any, rows: FloatArray, places: IntArray) -> Counts:
            categories = np.ascontiguousarray(wanted[places])
            counts: Counts = model.counts(
                rows, self.category, categories, by_class=self.by_class
            )
            return counts

        return self._counts(rows, wanted.shape, ask)

    def _most_tables(self) -> int:
        most = MOST_TABLES
        if self.settings["model"] == "blend":  # with a matrix of n x n each
            most = min(most, MOST_BYTES // (8 * len(self.rows) ** 2))
        return max(most, 1)

    def _learn(self, rows: FloatArray) -> Blend | Gaussian | Diagonal:
        gaussian = self._learn_gaussian(rows, self.settings["score"])
        if self.settings["model"] == "gaussian":
            return gaussian
        return Blend(gaussian, rows, self.codes, len(self.names))

    def _learn_gaussian(self, rows: FloatArray, score: str) -> Gaussian | Diagonal:
        names = ("covariance_type", "pooled_rows", "ridge_rows")
        constants = {name: self.settings[name] for name in names}
        if constants["covariance_type"] == "diag":
            del constants["covariance_type"]
            return Diagonal.learn(
                rows, self.codes, self.names, score=score, **constants
            )
        return Gaussian.learn(rows, self.codes, self.names, score=score, **constants)


def full_ranks(classifier: Any, X: FloatArray, codes: IntArray) -> TrainingRanks:
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
        "score": of.nonconformity,
    }
    labels = [shown(label) for label in of.classes_]
    by, names, category = categories_of(X, codes, of.classes_, of.condition)
    model = FullClassModel(X, codes, labels, settings, category, by_class=by == "class")
    count = np.bincount(codes)
    return _training_ranks(of, model, by, names, category, codes, count[codes] == 1)


def cross_ranks(
    classifier: Any, X: Any, y: NDArray[Any], random: np.random.RandomState
) -> TrainingRanks:
    """Each fold ranks by a classifier fitted to the other folds."""
    classes = classifier.classes_
    codes = np.searchsorted(classes, y).astype(np.intp)
    by, names, category = categories_of(X, codes, classes, classifier.condition)
    # A plain draw: strata are not exchangeable.
    drawn = np.array_split(random.permutation(len(codes)), classifier.cv)
    scores, ranked = [], []
    alone = np.zeros(len(codes), dtype=bool)
    for part in drawn:
        fold = np.sort(part)
        others = np.setdiff1d(np.arange(len(codes)), fold)
        one = fitted_scores(classifier, _safe_indexing(X, others), y[others])
        alone[fold] = one.unknown()[codes[fold]]
        own = one.own(_safe_indexing(X, fold), codes[fold])
        scores.append(one)
        ranked.append(CalibrationScores.of(own, category[fold], names, ROUNDING))
    model = CrossModel(tuple(scores), tuple(ranked))
    n_folds = classifier.cv
    return _training_ranks(
        classifier, model, by, names, category, codes, alone, n_folds
    )


def _training_ranks(
    classifier: Any,
    model: Any,
    by: By,
    names: tuple[Any, ...],
    category: IntArray,
    codes: IntArray,
    alone: BoolArray,
    n_folds: int = 0,
) -> TrainingRanks:
    """Ranks among rows of these categories, some of them alone in their class."""
    return TrainingRanks(
        model,
        by,
        names,
        np.bincount(category, minlength=len(names)),
        np.bincount(category[alone], minlength=len(names)),
        np.bincount(codes, minlength=len(classifier.classes_)),
        smoothed=classifier.ties == "smoothed",
        n_folds=n_folds,
    )
