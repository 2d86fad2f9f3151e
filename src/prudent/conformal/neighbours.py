"""Scores by distances to the rows of each label: kernel sums and nearest neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.spatial.distance import cdist

from prudent.conformal.distances import (
    ARRAYS,
    blocks,
    exponents,
    kernel_sums_by_label,
    least,
    log_sums,
    nearest_by_label,
    with_added,
)
from prudent.conformal.gaussian import Diagonal, Gaussian, strangeness
from prudent.conformal.ranks import PairScores
from prudent.core.types import FloatArray, IntArray
from prudent.rules.scores import ROUNDING, Counts


@dataclass(frozen=True)
class Distances:
    """Training rows whose scores depend on whether a new row has their label."""

    rows: FloatArray  # (n, d): training rows in the units of the bag
    codes: IntArray  # (n,)
    n_classes: int

    def scores(self, rows: FloatArray) -> PairScores:
        """Scores of all training rows for each new row, and those of the new rows."""
        raise NotImplementedError

    def counts(self, rows: FloatArray, category: IntArray, wanted: IntArray) -> Counts:
        """Training rows stranger than each new row under each label."""
        larger, equal = np.empty((2, *wanted.shape), dtype=np.intp)
        for block in blocks(len(rows), ARRAYS * len(self.rows)):
            found = self.scores(rows[block])
            margin = ROUNDING * (1 + np.abs(found.asked))
            for c in range(self.n_classes):
                scores = np.where(self.codes == c, found.own, found.other)
                asked, near = found.asked[:, c, None], margin[:, c, None]
                ranks = category == wanted[block, c, None]
                more = (ranks & (scores > asked + near)).sum(axis=1)
                not_below = (ranks & (scores >= asked - near)).sum(axis=1)
                larger[block, c], equal[block, c] = more, not_below - more
        return Counts(larger, equal)


@dataclass(frozen=True)
class Neighbours(Distances):
    """Log mean distance to the nearest rows of the own label, less that to others."""

    k: int

    @cached_property
    def nearest(self) -> FloatArray:
        """The k least distances of each row to its label and to others, (2, n, k)."""
        return nearest_by_label(self.rows, self.codes, self.k)

    def log_joint(self, rows: FloatArray) -> FloatArray:
        """Minus the log mean distance to the nearest rows of each label."""
        parts = [
            self._of_classes(cdist(rows[block], self.rows))
            for block in blocks(len(rows), ARRAYS * len(self.rows))
        ]
        return -log_means(np.concatenate(parts))

    def scores(self, rows: FloatArray) -> PairScores:
        """Scores of all training rows for each new row, and those of the new rows."""
        distances = cdist(rows, self.rows)
        own, other = log_means(self.nearest)
        with np.errstate(invalid="ignore"):
            found = PairScores(
                _log(with_added(self.nearest[0], distances)) - other,
                # Alone in its class a row is infinitely strange.
                own - _log(with_added(self.nearest[1], distances)),
                self._asked(self._of_classes(distances)),
            )
        return found

    def _of_classes(self, distances: FloatArray) -> FloatArray:
        """The k least distances of each new row to each label, (m, n_classes, k)."""
        labels = range(self.n_classes)
        parts = [least(distances[:, self.codes == c], self.k) for c in labels]
        return np.stack(parts, axis=1)

    def _asked(self, nearest: FloatArray) -> FloatArray:
        logs = log_means(nearest)
        asked = np.empty_like(logs)
        for c in range(self.n_classes):
            others = np.delete(nearest, c, axis=1).reshape(len(nearest), -1)
            asked[:, c] = logs[:, c] - log_means(least(others, self.k))
        return asked


@dataclass(frozen=True)
class Kernel(Distances):
    """Log kernel sum over rows of other labels, less that over the own label."""

    width: float  # h of exp(-D^2 / (2 h^2))

    @cached_property
    def sums(self) -> FloatArray:
        """Log sums of each row over the others of its label, and of others, (2, n)."""
        return kernel_sums_by_label(self.rows, self.codes, self.width)

    def log_joint(self, rows: FloatArray) -> FloatArray:
        """Log kernel sum over the rows of each label."""
        parts = [
            self._of_classes(exponents(rows[block], self.rows, self.width))
            for block in blocks(len(rows), ARRAYS * len(self.rows))
        ]
        return np.concatenate(parts)

    def scores(self, rows: FloatArray) -> PairScores:
        """Scores of all training rows for each new row, and those of the new rows."""
        values = exponents(rows, self.rows, self.width)
        own, other = self.sums
        joint = self._of_classes(values)
        return PairScores(
            other - np.logaddexp(own, values),
            np.logaddexp(other, values) - own,
            strangeness(joint, "posterior"),
        )

    def _of_classes(self, values: FloatArray) -> FloatArray:
        labels = range(self.n_classes)
        return np.stack([log_sums(values[:, self.codes == c]) for c in labels], axis=1)


@dataclass(frozen=True, slots=True)
class Combined:
    """A Gaussian model whose scores are blended with those of nearest neighbours."""

    gaussian: Gaussian | Diagonal
    neighbours: Neighbours

    def log_joint(self, rows: FloatArray) -> FloatArray:
        """That of the Gaussian model."""
        return self.gaussian.log_joint(rows)

    def counts(
        self, rows: FloatArray, category: IntArray, wanted: IntArray, *, by_class: bool
    ) -> Counts:
        """Training rows stranger than each new row under each label."""
        larger, equal = np.empty((2, *wanted.shape), dtype=np.intp)
        for block in blocks(len(rows), wanted.shape[1] * len(category)):
            found = self.gaussian.counts(
                rows[block],
                category,
                wanted[block],
                by_class=by_class,
                second=self.neighbours.scores(rows[block]),
            )
            larger[block], equal[block] = found.below, found.equal
        return Counts(larger, equal)


def log_means(distances: FloatArray) -> FloatArray:
    """Log mean of the finite distances along the last axis; inf if there is none."""
    finite = np.isfinite(distances)
    n = finite.sum(axis=-1)
    total = np.where(finite, distances, 0.0).sum(axis=-1)
    return np.where(n > 0, _log(total / np.maximum(n, 1)), np.inf)


def _log(means: FloatArray) -> FloatArray:
    """Logarithm of mean distances, of 0 too: rows at distance 0 tie with each other."""
    logs: FloatArray = np.log(np.maximum(means, np.finfo(np.float64).tiny))
    return logs
