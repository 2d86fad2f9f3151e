"""Gaussian classes of independent features: every bound in closed form, (30)-(37)."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from prudent.core.types import BoolArray, FloatArray

_TIE = 1e-9  # log joints closer than this, relatively, are tied


class DiagonalBoxes(NamedTuple):
    """Classes with independent features, in scaled units: all in closed form."""

    mean: FloatArray  # (K, p)
    precision: FloatArray  # (K, p) w
    extent: FloatArray  # (K, p) half widths of the box at imprecision 1

    @classmethod
    def build(
        cls, mean: FloatArray, variance: FloatArray, weight: FloatArray, box: str
    ) -> Self:
        """Boxes of classes with the given variances (K, p), all > 0."""
        width = variance if box == "natural" else np.ones_like(variance)
        return cls(mean, 1.0 / variance, width / weight[:, None])

    @property
    def log_determinants(self) -> FloatArray:
        """Log determinant of the covariance of each class."""
        return -np.log(self.precision).sum(axis=1)

    def with_shares(self, shares: FloatArray) -> Self:
        """Boxes in which feature j moves by its share (p,) of the imprecision."""
        # Natural boxes too: independent features move on their own.
        return self._replace(extent=self.extent * shares)

    def half_widths(self, imprecision: float) -> FloatArray:
        """How far each mean can move in each feature (K, p)."""
        return imprecision * self.extent

    def extremes(
        self, points: FloatArray, imprecision: float, max_nodes: int
    ) -> tuple[FloatArray, FloatArray, int]:
        """Moves of the means (n, K, p) with least and largest density, (30)-(31)."""
        gap = points[:, None, :] - self.mean
        radius = self.half_widths(imprecision)
        away = np.where(gap < 0, radius, -radius)
        return away, np.clip(gap, -radius, radius), 0

    def half_distances(self, points: FloatArray) -> FloatArray:
        """Exponent of every row and class at the centre of the boxes."""
        half = np.empty((len(points), len(self.mean)))
        for k in range(len(self.mean)):
            half[:, k] = 0.5 * (points - self.mean[k]) ** 2 @ self.precision[k]
        return half

    def bounds(
        self,
        points: FloatArray,
        imprecision: float,
        low: FloatArray,
        up: FloatArray,
        max_nodes: int,
    ) -> tuple[FloatArray, FloatArray, int]:
        """Lower and upper log joints: sums of w (|z| +- r)^2 / 2, feature-wise."""
        lower = np.empty((len(points), len(self.mean)))
        upper = np.empty_like(lower)
        for k, weight in enumerate(self.precision):
            gap = np.abs(points - self.mean[k])
            radius = imprecision * self.extent[k]
            lower[:, k] = low[k] - 0.5 * (gap + radius) ** 2 @ weight
            upper[:, k] = up[k] - 0.5 * np.maximum(gap - radius, 0.0) ** 2 @ weight
        return lower, upper, 0

    def keep(
        self,
        points: FloatArray,
        imprecision: float,
        low: FloatArray,
        up: FloatArray,
        max_nodes: int,
    ) -> tuple[BoolArray, int]:
        """Undominated classes (n, K); no question stays open."""
        lower, upper, _ = self.bounds(points, imprecision, low, up, max_nodes)
        tie = np.where(np.isfinite(upper), _TIE * (1.0 + np.abs(upper)), 0.0)
        kept = upper + tie >= lower.max(axis=1, keepdims=True)
        return kept & (upper > -np.inf), 0

    def critical(
        self,
        points: FloatArray,
        low: FloatArray,
        up: FloatArray,
        max_nodes: int,
        grid: FloatArray | None = None,
    ) -> tuple[FloatArray, int]:
        """Smallest imprecision that keeps each class (n, K), to round-off.

        The upper bound of class b is quadratic between the imprecisions at which the
        box reaches another coordinate of the row, the lower bounds are quadratic
        throughout: find the interval of the crossing, solve one quadratic.
        """
        half = self.half_distances(points)
        critical = np.full(half.shape, np.inf)
        behind = up - half  # joint logs of the precise model
        lower = [_lower_terms(self, points, a) for a in range(len(low))]
        for b in np.flatnonzero(up > -np.inf).tolist():
            reached, pieces = _upper_pieces(self, points, b)
            critical[:, b] = 0.0
            tie = _TIE * (1.0 + np.abs(behind[:, b]))
            for a in np.flatnonzero(low > -np.inf).tolist():
                lead = (low[a] - half[:, a]) - behind[:, b]
                constant, slope, curvature = pieces
                joins = _piecewise_crossing(
                    reached,
                    constant + (up[b] - low[a] + half[:, a, None]),
                    slope + lower[a][0][:, None],
                    curvature + lower[a][1],
                )
                joins[lead <= tie] = 0.0
                critical[:, b] = np.maximum(critical[:, b], joins)
        return critical, 0


def _lower_terms(
    boxes: DiagonalBoxes, points: FloatArray, a: int
) -> tuple[FloatArray, float]:
    # lower_a(c) = low_a - half_a - c slope - c^2 curvature / 2
    pull = boxes.precision[a] * boxes.extent[a]
    return np.abs(points - boxes.mean[a]) @ pull, float(pull @ boxes.extent[a])


def _upper_pieces(
    boxes: DiagonalBoxes, points: FloatArray, b: int
) -> tuple[FloatArray, tuple[FloatArray, FloatArray, FloatArray]]:
    # upper_b(c) - up_b = constant + c slope + c^2 curvature / 2 on each of p + 1
    # pieces; piece m ends where the box reaches the m-th coordinate.
    gap = np.abs(points - boxes.mean[b])
    reached = gap / boxes.extent[b]
    order = np.argsort(reached, axis=1)
    gap = np.take_along_axis(gap, order, axis=1)
    precision, extent = boxes.precision[b][order], boxes.extent[b][order]

    def remaining(terms: FloatArray) -> FloatArray:
        sums = np.zeros((len(points), terms.shape[1] + 1))
        sums[:, :-1] = np.cumsum(terms[:, ::-1], axis=1)[:, ::-1]
        return sums

    pieces = (
        -0.5 * remaining(precision * gap**2),
        remaining(precision * gap * extent),
        -remaining(precision * extent**2),
    )
    return np.take_along_axis(reached, order, axis=1), pieces


def _piecewise_crossing(
    ends: FloatArray, constant: FloatArray, slope: FloatArray, curvature: FloatArray
) -> FloatArray:
    # First c >= 0 at which the increasing piecewise quadratic reaches 0.
    at_ends = constant[:, :-1] + ends * (slope[:, :-1] + 0.5 * ends * curvature[:, :-1])
    piece = (at_ends < 0.0).sum(axis=1)[:, None]
    constant, slope, curvature = (
        np.take_along_axis(terms, piece, axis=1)[:, 0]
        for terms in (constant, slope, curvature)
    )
    discriminant = np.maximum(slope**2 - 2.0 * curvature * constant, 0.0)
    divisor = slope + np.sqrt(discriminant)
    crossing = np.divide(
        -2.0 * constant, divisor, out=np.full(len(ends), np.inf), where=divisor > 0.0
    )
    return np.maximum(crossing, 0.0)
