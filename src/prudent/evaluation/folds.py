"""Folds of a comparison, and the moments of their training parts in one pass."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from prudent.core.holdout import one_row_per_group
from prudent.core.moments import ClassMoments
from prudent.core.types import IntArray
from prudent.evaluation.estimators import FEWEST_TO_LEARN

RARE = 20


@dataclass(frozen=True, eq=False)
class Fold:
    """One split: positions of the rows fitted on and of the rows tested.

    With groups, `test` has one random row of each group, and `held_out` has all
    rows that `train` must not hold; without, the two are the same. `learnable` are
    the training rows of classes that can be learned.
    """

    repeat: int
    number: int
    train: IntArray
    test: IntArray
    held_out: IntArray
    learnable: IntArray


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
            counts = np.bincount(codes[train], minlength=codes.max() + 1)
            learnable = train[counts[codes[train]] >= FEWEST_TO_LEARN]
            folds.append(Fold(repeat, number, train, test, held_out, learnable))
    return tuple(folds)


def stratified_sample(codes: IntArray, size: int, random_state: int) -> IntArray:
    """Sorted positions of `size` rows, classes in proportion; all if there are fewer.

    A class with a share of less than `RARE` rows keeps that many, so that none
    vanishes.
    """
    n_rows = len(codes)
    if size >= n_rows:
        return np.arange(n_rows)
    counts = np.bincount(codes)
    shuffled = np.random.RandomState(random_state).permutation(n_rows)
    by_class = shuffled[np.argsort(codes[shuffled], kind="stable")]
    chosen = np.zeros(n_rows, dtype=bool)
    chosen[np.arange(size) * n_rows // size] = True
    label = np.repeat(np.arange(len(counts)), counts)
    few = np.bincount(label[chosen], minlength=len(counts)) < RARE
    rank = np.arange(n_rows) - (np.cumsum(counts) - counts)[label]
    return np.sort(by_class[chosen | (few[label] & (rank < RARE))])


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
