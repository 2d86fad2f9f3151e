"""The whole path of sets in the imprecision, from one number a row and class.

Boxes grow with the imprecision c, so lower bounds fall, upper bounds rise and the
set of kept classes only grows. Class b joins at its critical value
``inf {c : upper_b(c) >= max_a lower_a(c)}``.

A vertex s of class a and a point t of class b bound both sides by quadratics in c;
their crossing is an upper bound of the critical value. Improving s and t at the
crossing moves it down; one search just below the last crossing proves it.
Import this module lazily: it loads numba.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from prudent.core.types import FloatArray
from prudent.imprecise.branch_and_bound import COMPILE
from prudent.imprecise.decisions import DOMINATED, UNANSWERED, is_dominated
from prudent.imprecise.row import (
    Row,
    improve_point,
    improve_vertex,
    know_field,
    new_row,
    set_imprecision,
    start_row,
)

if TYPE_CHECKING:
    from prudent.imprecise.box import Boxes, DiagonalBoxes


_RELATIVE = 1e-6  # accuracy of a critical value
_ABSOLUTE = 1e-7
_TIE = 1e-9
_IMPROVEMENTS = 12


@njit(**COMPILE)
def _crossing(constant: float, slope: float, curvature: float) -> float:
    # Smallest c > 0 with constant + slope c + curvature c^2 / 2 >= 0, for
    # constant < 0 <= slope; infinite if there is none.
    discriminant = slope * slope - 2.0 * curvature * constant
    if discriminant < 0.0:
        return math.inf
    divisor = slope + math.sqrt(discriminant)
    return -2.0 * constant / divisor if divisor > 0.0 else math.inf


@njit(**COMPILE)
def _joins(
    boxes: Boxes,
    row: Row,
    b: int,
    linear: float,
    quadratic: float,
    low: FloatArray,
    up: FloatArray,
) -> tuple[float, int]:
    # Upper bound of the critical value of b, and the class that sets it. Class b may
    # move to share * t, 0 <= share <= 1, with field't = linear, t'Bt = quadratic.
    unit = boxes.unit[b]
    fullest = linear / (unit * quadratic) if quadratic > 0.0 else math.inf
    latest = 0.0
    strongest = -1
    for a in range(len(low)):
        constant = (up[b] - row.base[b]) - (low[a] - row.base[a])
        if a == b or not constant < -_TIE * (1.0 + abs(up[b] - row.base[b])):
            continue
        slope = 0.0
        curvature = 0.0
        if row.linear[a] >= 0.0:
            slope = boxes.unit[a] * row.linear[a]
            curvature = boxes.unit[a] ** 2 * row.quadratic[a]
        elif row.slope[a] >= 0.0:
            slope = boxes.unit[a] * row.slope[a]
        joins = _crossing(
            constant, slope + unit * linear, curvature - unit * unit * quadratic
        )
        if not joins <= fullest:  # t would be too long: its gain has levelled off
            gain = 0.5 * linear * linear / quadratic
            joins = max(fullest, _crossing(constant + gain, slope, curvature))
        if joins > latest:
            latest = joins
            strongest = a
    return latest, strongest


@njit(**COMPILE)
def _descend(
    boxes: Boxes,
    row: Row,
    x: FloatArray,
    b: int,
    low: FloatArray,
    up: FloatArray,
) -> float:
    # Upper bound of the critical value of b, by improving the vertex and the point
    # at their crossing until it stays.
    for a in range(len(low)):
        know_field(boxes, row, x, a)
    linear = row.slope[b]
    quadratic = boxes.reach[boxes.matrix[b]]
    joins, a = _joins(boxes, row, b, linear, quadratic, low, up)
    for _ in range(_IMPROVEMENTS):
        if a < 0:
            break
        at = joins if joins < math.inf else 1.0
        improve_vertex(boxes, row, a, at)
        improve_point(boxes, row, b, at, up, -math.inf, math.inf)
        linear, quadratic = _point_terms(boxes, row, b)
        earlier, a = _joins(boxes, row, b, linear, quadratic, low, up)
        settled = earlier >= joins * (1.0 - 0.1 * _RELATIVE)
        joins = min(joins, earlier)
        if settled:
            break
    return joins


@njit(**COMPILE)
def _point_terms(boxes: Boxes, row: Row, b: int) -> tuple[float, float]:
    point = row.point[b]
    coupling = boxes.coupling[boxes.matrix[b]]
    return np.sum(row.field[b] * point), np.sum(point * (coupling @ point))


@njit(**COMPILE)
def _probe(grid: FloatArray, out: float, joined: float, stride: int) -> float:
    # Where to look next between a value known to be out and one known to be in,
    # `stride` tolerances or grid points below the latter; negative: nowhere.
    if len(grid) == 0:
        tolerance = _RELATIVE * joined + _ABSOLUTE
        if joined - out <= tolerance:
            return -1.0
        return max(joined - stride * tolerance, 0.5 * (out + joined))
    first = np.searchsorted(grid, out, side="right")
    last = np.searchsorted(grid, joined, side="left")  # grid[last - 1] < joined
    if first >= last:
        return -1.0
    return grid[max(last - stride, (first + last) // 2)]


@njit(**COMPILE)
def critical_rows(
    boxes: Boxes,
    points: FloatArray,
    base: FloatArray,
    low: FloatArray,
    up: FloatArray,
    max_nodes: int,
    grid: FloatArray,
) -> tuple[FloatArray, int]:
    """Critical imprecision of every row and class, and the unanswered questions.

    Accurate to 1e-6 relative plus 1e-7 when `grid` is empty. With a sorted grid it
    is only placed between the right grid points; beyond the last it is infinite.
    """
    critical = np.empty(base.shape)
    row = new_row(base.shape[1], points.shape[1])
    unanswered = 0
    for i in range(len(base)):
        start_row(row, base[i])
        if len(grid) > 0:
            set_imprecision(boxes, row, grid[-1], low, up)
        for b in range(base.shape[1]):
            critical[i, b] = math.inf
            if up[b] == -math.inf:
                continue
            if len(grid) > 0:
                answer = is_dominated(
                    boxes, row, points[i], b, grid[-1], low, up, max_nodes
                )
                if answer == DOMINATED:
                    continue
            critical[i, b] = 0.0
        for b in range(base.shape[1]):
            if critical[i, b] == 0.0:
                critical[i, b], asked = _critical(
                    boxes, row, points[i], b, low, up, max_nodes, grid
                )
                unanswered += asked
    return critical, unanswered


@njit(**COMPILE)
def _critical(
    boxes: Boxes,
    row: Row,
    x: FloatArray,
    b: int,
    low: FloatArray,
    up: FloatArray,
    max_nodes: int,
    grid: FloatArray,
) -> tuple[float, int]:
    joined = _descend(boxes, row, x, b, low, up)
    out = 0.0
    stride = 1
    unanswered = 0  # 1 once a probe met the node limit, and kept the class
    while joined > 0.0:
        probe = _probe(grid, out, joined, stride)
        if probe < 0.0:
            break
        set_imprecision(boxes, row, probe, low, up)
        answer = is_dominated(boxes, row, x, b, probe, low, up, max_nodes)
        if answer == DOMINATED:
            out = probe
            stride = 1
        else:
            if answer == UNANSWERED:
                unanswered = 1
            linear, quadratic = _point_terms(boxes, row, b)
            better, _ = _joins(boxes, row, b, linear, quadratic, low, up)
            joined = max(out, min(probe, better))
            stride *= 4
    return joined, unanswered


def diagonal_critical(
    boxes: DiagonalBoxes, points: FloatArray, low: FloatArray, up: FloatArray
) -> FloatArray:
    """Critical imprecision of every row and class when features are independent.

    The upper bound of class b is quadratic between the imprecisions at which the
    box reaches another coordinate of the row, the lower bounds are quadratic
    throughout: find the interval of the crossing, solve one quadratic.
    """
    half = boxes.half_distances(points)
    critical = np.full(half.shape, np.inf)
    behind = up - half  # joint logs of the precise model
    lower = [_lower_terms(boxes, points, a) for a in range(len(low))]
    for b in np.flatnonzero(up > -np.inf).tolist():
        reached, pieces = _upper_pieces(boxes, points, b)
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
    return critical


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
