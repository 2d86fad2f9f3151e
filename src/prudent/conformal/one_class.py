"""Deleted scores of one class: nearest rows, an ellipsoid, or both of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial import KDTree
from scipy.spatial.distance import cdist

from prudent.conformal.gaussian import cholesky, whiten
from prudent.conformal.units import ARRAYS, ByUnits, blocks
from prudent.core.types import BoolArray, FloatArray, IntArray
from prudent.rules.scores import ROUNDING, Counts

#: How far a row can be, from 0 on. Half a rank more would be the next rank: what is
#: left up to 1 outlasts the rounding of ranks of up to 1e8 rows.
FARTHEST = 1 - 2.0**-20


def nearest_others(rows: FloatArray, k: int) -> FloatArray:
    """The k least city-block distances of each row to the others, (n, k) ascending."""
    places = list(range(2, k + 2))  # the nearest of all is the row itself
    distances: FloatArray = KDTree(rows).query(rows, k=places, p=1)[0]
    return distances


def distance_scores(
    rows: FloatArray, nearest: FloatArray, new: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Mean of the k least distances of training rows (m, n), and of new rows (m,).

    `nearest` (n, k) are those of the training rows to each other, inf where there are
    fewer. A new row takes the place of the k-th nearest where it is nearer.
    """
    distances = cdist(new, rows, "cityblock")
    k = nearest.shape[1]
    least = distances
    if k < least.shape[1]:
        least = np.partition(least, k - 1, axis=1)[:, :k]
    known = np.isfinite(nearest)
    n_known = known.sum(axis=1)
    total = np.where(known, nearest, 0.0).sum(axis=1)
    rest = np.where(known[:, -1], nearest[:, :-1].sum(axis=1), total)
    nearer = (rest + distances) / np.minimum(n_known + 1, k)
    scores = np.where(distances < nearest[:, -1], nearer, total / k)
    return scores, np.sort(least, axis=1).mean(axis=1)


def beyond(scores: FloatArray, new: FloatArray) -> tuple[BoolArray, BoolArray]:
    """Which `scores` (m, n) exceed the new ones (m,), and which tie with them."""
    margin = ROUNDING * (1 + np.abs(new))
    above = scores > (new + margin)[:, None]
    return above, (scores >= (new - margin)[:, None]) & ~above


@dataclass(frozen=True, slots=True)
class InOrder:
    """Scores of the rows of m bags of n + 1 rows, and their ranks.

    Attributes
    ----------
    scores : ndarray of shape (m, n)
        Scores of the training rows.
    in_order : ndarray of shape (m, n + 3)
        Scores of all rows of a bag, sorted, between -inf and inf.
    ranks : ndarray of int, shape (m, n + 1)
        Twice their mid-ranks; scores tie within a relative 1e-9.
    new_ranks : ndarray of int, shape (m,)
        That of the new row.
    """

    scores: FloatArray
    in_order: FloatArray
    ranks: IntArray
    new_ranks: IntArray

    @classmethod
    def from_scores(cls, scores: FloatArray, new: FloatArray) -> InOrder:
        """Ranks in the bags of training rows (m, n) and new rows (m,)."""
        edge = np.full(len(new), np.inf)
        in_order = np.column_stack([-edge, scores, new, edge])
        in_order[:, 1:-1].sort(axis=1)
        bag = in_order[:, 1:-1]
        begins, n = np.ones(bag.shape, dtype=bool), bag.shape[1]
        with np.errstate(invalid="ignore"):
            apart = ROUNDING * np.abs(bag[:, 1:]) + 1e-15
            begins[:, 1:] = np.diff(bag) > apart
        starts = np.flatnonzero(begins)
        lengths = np.diff(starts, append=begins.size)
        middles = 2 * (starts % n) + lengths + 1
        ranks = np.repeat(middles, lengths).reshape(bag.shape)
        place = (bag <= new[:, None]).sum(axis=1) - 1
        return cls(scores, in_order, ranks, ranks[np.arange(len(new)), place])

    def beyond(self, rank: IntArray) -> tuple[BoolArray, BoolArray]:
        """Which training rows have a rank above that given (m,), and which have it."""
        bags = np.arange(len(rank))
        first = self.in_order[bags, 1 + (self.ranks < rank[:, None]).sum(axis=1)]
        last = self.in_order[bags, (self.ranks <= rank[:, None]).sum(axis=1)]
        above = self.scores > last[:, None]
        return above, (self.scores >= first[:, None]) & ~above


def beyond_both(first: InOrder, second: InOrder) -> tuple[BoolArray, BoolArray]:
    """Compare the larger of two ranks, ties by their sum, with that of the new row.

    Returns which training rows are stranger than the new one and which as strange,
    (m, n) each. The scores increase with the ranks, so that comparing scores with
    those at a rank needs no rank of each training row.
    """
    larger = np.maximum(first.new_ranks, second.new_ranks)
    smaller = np.minimum(first.new_ranks, second.new_ranks)
    above, at = first.beyond(larger)
    second_above, second_at = second.beyond(larger)
    over, level = first.beyond(smaller)
    second_over, second_level = second.beyond(smaller)
    more = above | second_above | (at & second_over) | (second_at & over)
    return more, ((at & second_level) | (second_at & level)) & ~more


@dataclass(frozen=True, slots=True)
class Ellipsoid:
    """Distance from the mean in the metric of the scatter with a ridge.

    Attributes
    ----------
    mean : ndarray of shape (d,)
    factor : ndarray of shape (d, d)
        Cholesky factor of the metric: the scatter sum_i (x_i - m)(x_i - m)' about the
        mean m, plus `ridge_rows` times the identity.
    """

    mean: FloatArray
    factor: FloatArray

    @classmethod
    def learn(cls, rows: FloatArray, ridge_rows: float) -> Ellipsoid:
        """Mean and scatter of rows; SingularCovarianceError if it is singular."""
        mean = rows.mean(axis=0)
        mean += (rows - mean).mean(axis=0)
        centred = rows - mean
        metric = centred.T @ centred + ridge_rows * np.eye(len(mean))
        return cls(mean, cholesky(metric, "the covariance"))

    def whitened(self, rows: FloatArray) -> FloatArray:
        """Rows about the mean, whose squared lengths are the distances."""
        return whiten(rows - self.mean, self.factor)

    def scores(
        self, whitened: FloatArray, rows: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Scores of training rows (m, n) in each bag, and of the new rows (m,).

        Increasing functions of the deleted distances from the mean of the others.
        A bag of a new row at v (whitened, about the mean of the n training rows) has
        the metric I + c v v', c = n / (n + 1), and the mean v / (n + 1); the inverse
        follows by Sherman and Morrison (1950), and a deleted row changes its own
        distance by an increasing function of it.
        """
        v, total = self.whitened(rows), len(whitened) + 1.0
        c, q = len(whitened) / total, np.square(v).sum(axis=1)
        squares = cdist(v / total, whitened, "sqeuclidean")
        g = v @ whitened.T - q[:, None] / total
        scores = squares - (c / (1 + c * q))[:, None] * np.square(g)
        return total * scores, total * c * c * q / (1 + c * q)


class FullOneClass(ByUnits):
    """Ranks of new rows among the rows of one class, in every augmented bag.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
        Training rows.
    nonconformity : {"combined", "distance", "ellipsoid"}
        Mean of the k least city-block distances to other rows of the bag; distance
        from the mean of the others in the metric of the scatter; or the larger rank
        of the two, ties by the smaller one.
    n_neighbors : int
    ridge_rows : float
    """

    def __init__(
        self,
        rows: FloatArray,
        nonconformity: str,
        *,
        n_neighbors: int,
        ridge_rows: float,
    ) -> None:
        self.rows, self.nonconformity = rows, nonconformity
        self.n_neighbors, self.ridge_rows = n_neighbors, ridge_rows
        self._prepare()

    def _learn(
        self, rows: FloatArray
    ) -> tuple[FloatArray, FloatArray, Ellipsoid | None]:
        """Rows in the units of the bag, their nearest distances, and the ellipsoid."""
        nearest, ellipsoid = np.empty((len(rows), 0)), None
        if self.nonconformity != "ellipsoid":
            nearest = nearest_others(rows, min(self.n_neighbors, len(rows)))
        if self.nonconformity != "distance":
            ellipsoid = Ellipsoid.learn(rows, self.ridge_rows)
        return rows, nearest, ellipsoid

    def counts(self, rows: FloatArray) -> Counts:
        """Training rows stranger than each new row (m, d), and as strange."""
        return self._counts(rows, (len(rows),), self._ask)

    def _ask(self, model: Any, new: FloatArray, places: IntArray) -> Counts:
        rows, nearest, ellipsoid = model
        larger, equal = np.empty((2, len(new)), dtype=np.intp)
        whitened = None if ellipsoid is None else ellipsoid.whitened(rows)
        for block in blocks(len(new), ARRAYS * len(rows)):
            by_distance = by_ellipsoid = (np.empty(0), np.empty(0))
            if whitened is not None:
                by_ellipsoid = ellipsoid.scores(whitened, new[block])
            if self.nonconformity != "ellipsoid":
                by_distance = distance_scores(rows, nearest, new[block])
            if self.nonconformity == "combined":
                above, level = beyond_both(
                    InOrder.from_scores(*by_distance),
                    InOrder.from_scores(*by_ellipsoid),
                )
            else:
                by_one = by_distance if ellipsoid is None else by_ellipsoid
                above, level = beyond(*by_one)
            larger[block], equal[block] = above.sum(axis=1), level.sum(axis=1)
        return Counts(larger, equal)

    def farness(self, rows: FloatArray) -> FloatArray:
        """Root mean square d of the standardised columns, as d / (1 + d)."""
        columns = self._columns
        return farness(columns.centre(rows) - columns.mean, columns.deviation)


def farness(deviations: FloatArray, scale: FloatArray) -> FloatArray:
    """Root mean square d of deviations in units of `scale` > 0, as d / (1 + d)."""
    varies = scale > 0
    if not varies.any():
        return np.zeros(len(deviations))
    with np.errstate(over="ignore"):
        z = np.abs(deviations[:, varies]) / scale[varies]
    # Squares stay finite; 1 / (1 + d) is lost in rounding long before.
    d = np.sqrt(np.square(np.minimum(z, 2.0**500)).mean(axis=1))
    return np.minimum(1 - 1 / (1 + d), FARTHEST)
