"""Counts of what happened to tested rows; counts of parts add up."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce

import numpy as np

from prudent.core.types import BoolArray, IntArray


@dataclass(frozen=True, eq=False)
class Tally:
    """Predictions of tested rows, counted.

    Attributes
    ----------
    confusion : ndarray of shape (K, K)
        Rows by true and predicted class.
    set_sizes : ndarray of shape (K, K + 1) or None
        Rows by true class and size of the set; None without sets.
    covered : ndarray of shape (K,) or None
        Rows whose set holds the true class, by true class.
    decided_wrong : ndarray of shape (K,) or None
        Rows whose set holds one class, another than the true one, by true class.
    """

    confusion: IntArray
    set_sizes: IntArray | None = None
    covered: IntArray | None = None
    decided_wrong: IntArray | None = None

    @classmethod
    def count(
        cls, true: IntArray, predicted: IntArray, sets: BoolArray | None, n_classes: int
    ) -> Tally:
        """Tally of rows given as class codes, and of their sets."""
        confusion = _pairs(true, predicted, n_classes, n_classes)
        if sets is None:
            return cls(confusion)
        sizes = sets.sum(axis=1)
        holds = sets[np.arange(len(true)), true]
        return cls(
            confusion,
            _pairs(true, sizes, n_classes, n_classes + 1),
            np.bincount(true[holds], minlength=n_classes),
            np.bincount(true[(sizes == 1) & ~holds], minlength=n_classes),
        )

    def __add__(self, other: Tally) -> Tally:
        if self.set_sizes is None or other.set_sizes is None:
            return Tally(self.confusion + other.confusion)
        assert self.covered is not None
        assert other.covered is not None
        assert self.decided_wrong is not None
        assert other.decided_wrong is not None
        return Tally(
            self.confusion + other.confusion,
            self.set_sizes + other.set_sizes,
            self.covered + other.covered,
            self.decided_wrong + other.decided_wrong,
        )

    @classmethod
    def total(cls, tallies: Iterable[Tally]) -> Tally:
        """Sum of at least one tally."""
        return reduce(Tally.__add__, tallies)

    @property
    def rows(self) -> IntArray:
        """Rows of each class, shape (K,)."""
        return self.confusion.sum(axis=1)

    @property
    def wrong(self) -> IntArray:
        """Wrong point predictions of each class, shape (K,)."""
        return self.rows - np.diagonal(self.confusion)

    @property
    def missed(self) -> IntArray:
        """Rows whose set misses the true class; without sets, wrong predictions."""
        return self.wrong if self.covered is None else self.rows - self.covered

    @property
    def decided(self) -> IntArray:
        """Rows with one answer, by true class; without sets, all of them."""
        return self.rows if self.set_sizes is None else self.set_sizes[:, 1]

    @property
    def wrong_when_decided(self) -> IntArray:
        """Rows with one answer that is wrong; without sets, wrong predictions."""
        return self.wrong if self.decided_wrong is None else self.decided_wrong


def _pairs(first: IntArray, second: IntArray, rows: int, columns: int) -> IntArray:
    counts = np.bincount(first * columns + second, minlength=rows * columns)
    return counts.reshape(rows, columns)
