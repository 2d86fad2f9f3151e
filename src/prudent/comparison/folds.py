"""Folds of a comparison, and the moments of their training parts in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import RepeatedStratifiedKFold, train_test_split

from prudent.core.moments import ClassMoments

__all__ = ["Fold", "make_folds", "stratified_sample", "training_moments"]

IntArray = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Fold:
    """One split: positions of the rows fitted on and of the rows tested."""

    repeat: int
    number: int
    train: IntArray
    test: IntArray


def make_folds(
    codes: IntArray, n_folds: int, n_repeats: int, random_state: int
) -> tuple[Fold, ...]:
    """Stratified folds, shuffled anew in each repeat; numbers count from 1."""
    splitter = RepeatedStratifiedKFold(
        n_splits=n_folds, n_repeats=n_repeats, random_state=random_state
    )
    return tuple(
        Fold(index // n_folds + 1, index % n_folds + 1, train, test)
        for index, (train, test) in enumerate(splitter.split(codes, codes))
    )


def stratified_sample(codes: IntArray, size: int, random_state: int) -> IntArray:
    """Sorted positions of `size` rows, classes in proportion; all if fewer."""
    if size >= len(codes):
        return np.arange(len(codes))
    try:
        chosen, _ = train_test_split(
            np.arange(len(codes)),
            train_size=size,
            stratify=codes,
            random_state=random_state,
        )
    except ValueError:  # fewer rows wanted than classes, or a class of one row
        chosen = np.random.RandomState(random_state).permutation(len(codes))[:size]
    return np.sort(chosen)


def training_moments(
    X: NDArray[Any], y: NDArray[Any], folds: Sequence[Fold]
) -> tuple[list[ClassMoments], ClassMoments]:
    """Moments of the training part of each fold of one repeat, and of all rows.

    The rows are read once: the moments of the test parts are merged from the
    left and from the right, and the training part of fold j is what lies left
    and right of it. Nothing is subtracted, so no digits are lost.
    """
    classes = np.unique(y)
    parts = [
        ClassMoments.from_arrays(X[fold.test], y[fold.test], classes=classes)
        for fold in folds
    ]
    nothing = ClassMoments.empty(classes, X.shape[1])
    before = list(accumulate(parts[:-1], add, initial=nothing))
    after = list(accumulate(parts[:0:-1], add, initial=nothing))[::-1]
    training = [left + right for left, right in zip(before, after, strict=True)]
    return training, before[-1] + parts[-1]
