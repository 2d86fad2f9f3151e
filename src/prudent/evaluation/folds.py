"""What methods are given: folds, and the moments of their training parts."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from itertools import accumulate
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from prudent.core.moments import ClassMoments
from prudent.core.rows import one_row_per_group
from prudent.core.types import BoolArray, FloatArray, IntArray
from prudent.evaluation.estimators import FEWEST_TO_LEARN
from prudent.evaluation.records import Settings
from prudent.evaluation.table import LabelledRows
from prudent.evaluation.wishes import groups_for
from prudent.rules.wish import Wish


@dataclass(frozen=True, eq=False)
class Fold:
    """One split: positions of rows; repeats and folds are numbered from 1."""

    repeat: int
    number: int
    train: IntArray  # fitted on
    test: IntArray  # with groups one random row of each, else all that are held out
    held_out: IntArray  # all rows that `train` must not hold


@dataclass(frozen=True, eq=False)
class Task:
    """What every method gets: n rows in K classes, and the folds."""

    rows: LabelledRows
    folds: Sequence[Fold]  # those of one repeat after the other
    _: KW_ONLY
    moments: Sequence[ClassMoments] | None = None  # of training parts; None: prepared
    moment_seconds: float = 0.0  # they took for one fold
    preparation: Any = None  # transformer, not fitted, in front of every method
    settings: Settings  # as they were asked for
    wish: Wish | None  # the promise asked for
    plane: FloatArray | None  # (n, 2): rows on the two discriminant axes
    costs: FloatArray | None  # (K, K): of the answer of a column, by true class

    @property
    def n_methods(self) -> int:
        """Methods that are compared."""
        return len(self.settings.methods) + len(self.settings.baselines)

    def sampled(self, rows: IntArray) -> IntArray:
        """At most so many of the rows as methods that need rows are fitted on."""
        size, seed = self.settings.sample, self.settings.random_state
        if size is None:
            return rows
        groups = None if self.rows.groups is None else self.rows.groups[rows]
        return rows[plain_sample(len(rows), size, seed, groups)]

    def learnable(self, rows: IntArray) -> IntArray:
        """Those of the rows whose classes can be learned from them."""
        return rows[can_be_learned(self.rows.codes[rows])]

    def fitted(self, estimator: Any, chosen: IntArray) -> Any:
        """Fit an estimator to some of the rows."""
        rows = self.rows
        groups = None if rows.groups is None else rows.groups[chosen]
        together = groups_for(estimator, groups)
        return estimator.fit(rows.X[chosen], rows.y[chosen], **together)


def make_folds(
    codes: IntArray,
    n_folds: int,
    n_repeats: int,
    random_state: int,
    groups: NDArray[Any] | None = None,
) -> tuple[Fold, ...]:
    """Stratified folds, shuffled anew in each repeat; numbers count from 1.

    Rows with equal `groups` stay together, and one row of each group is tested,
    drawn at random.
    """
    folds = []
    random = np.random.RandomState(random_state)
    for repeat in range(1, n_repeats + 1):
        splitter: Any = (StratifiedKFold if groups is None else StratifiedGroupKFold)(
            n_folds, shuffle=True, random_state=random
        )
        with warnings.catch_warnings():
            # A class of fewer rows than folds is no accident here.
            warnings.simplefilter("ignore", UserWarning)
            splits = list(splitter.split(codes, codes, groups))
        for number, (train, held_out) in enumerate(splits, start=1):
            test = held_out
            if groups is not None:
                one_each = one_row_per_group(groups[held_out], random)
                test = np.sort(held_out[one_each])
            folds.append(Fold(repeat, number, train, test, held_out))
    return tuple(folds)


def can_be_learned(codes: IntArray) -> BoolArray:
    """Rows of classes that have enough of them."""
    enough: BoolArray = np.bincount(codes)[codes] >= FEWEST_TO_LEARN
    return enough


def plain_sample(
    n_rows: int, size: int, random_state: int, groups: NDArray[Any] | None = None
) -> IntArray:
    """Sorted positions of `size` rows drawn plainly; all if there are no more.

    Whole groups are drawn, about `size` rows of them in all: `size` * G / n of the G
    groups. A draw that keeps more rows of a rare class, or of a large group, is none
    from the population, and what is promised or tested on it would be about another.
    """
    if size >= n_rows:
        return np.arange(n_rows)
    random = np.random.RandomState(random_state)
    if groups is None:
        return np.sort(random.permutation(n_rows)[:size])
    names, group_of = np.unique(groups, return_inverse=True)
    drawn = random.permutation(len(names))[: max(size * len(names) // n_rows, 1)]
    return np.flatnonzero(np.isin(group_of, drawn))


def training_moments(
    X: NDArray[Any], codes: IntArray, classes: NDArray[Any], folds: Sequence[Fold]
) -> tuple[list[ClassMoments], ClassMoments]:
    """Moments of the training part of each fold of one repeat, and of all rows.

    The rows are read once: the moments of the test parts are merged from the
    left and from the right, and the training part of fold j is what lies left
    and right of it. Nothing is subtracted, so no digits are lost.
    """
    n_classes, n_parts = len(classes), len(folds)
    part = np.empty(len(X), dtype=np.intp)
    for j, fold in enumerate(folds):
        part[fold.held_out] = j
    # A class of each part is a class of its own in the pass over the rows.
    both = ClassMoments.from_arrays(
        X, part * n_classes + codes, classes=np.arange(n_parts * n_classes)
    )
    parts = [
        replace(both.select(range(j * n_classes, (j + 1) * n_classes)), classes=classes)
        for j in range(n_parts)
    ]
    nothing = ClassMoments.empty(classes, X.shape[1])
    before = list(accumulate(parts[:-1], add, initial=nothing))
    after = list(accumulate(parts[:0:-1], add, initial=nothing))[::-1]
    training = [left + right for left, right in zip(before, after, strict=True)]
    return training, before[-1] + parts[-1]
