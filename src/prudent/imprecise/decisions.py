"""Compiled decisions, row by row: cheap bounds first, search last.

Everything is in scaled units. For class k, half squared distance ``base = z'Az / 2``
and radius ``r = imprecision / n_k``, the exponent over the box |t_i| <= 1 is

    q(t) = base - r field't + (r^2 / 2) t' coupling t,

and the bounds of the log joint are ``lower = low - max q``, ``upper = up - min q``
with constants `low` and `up`, equal under a precise prior. Class a dominates b iff
lower_a > upper_b. Import this module lazily: it loads numba.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

if TYPE_CHECKING:
    from prudent.imprecise.box import Boxes

from prudent.imprecise.branch_and_bound import (
    COMPILE,
    ascend,
    box_maximum,
    box_minimum,
)

__all__ = [
    "DOMINATED",
    "KEPT",
    "UNANSWERED",
    "Row",
    "bound_rows",
    "decide_rows",
    "improve_point",
    "improve_vertex",
    "is_dominated",
    "know_field",
    "new_row",
    "set_imprecision",
    "start_row",
]

FloatArray = NDArray[np.float64]

KEPT, DOMINATED, UNANSWERED = 0, 1, -1

_TIE = 1e-9  # log joints closer than this, relatively, are tied
_GAP = 1e-12  # relative, of a minimum solved to the end


class Row(NamedTuple):
    """What is known about one row, class by class; filled as far as needed."""

    base: FloatArray  # (K,) half the squared distance to the centre
    field: FloatArray  # (K, p)
    slope: FloatArray  # (K,) sum |field|; negative: field not computed yet
    vertex: FloatArray  # (K, p) best sign vector found, minus t of the largest q
    image: FloatArray  # (K, p) coupling @ vertex
    linear: FloatArray  # (K,) field'vertex; negative: vertex not computed yet
    quadratic: FloatArray  # (K,) vertex' coupling vertex
    polished: FloatArray  # (K,) 1: vertex has been improved at this imprecision
    point: FloatArray  # (K, p) best t of the smallest q found
    lower_lo: FloatArray  # (K,) bracket of the lower bound at this imprecision
    lower_hi: FloatArray
    upper_lo: FloatArray  # (K,) bracket of the upper bound
    upper_hi: FloatArray


@njit(**COMPILE)
def new_row(n_classes: int, n_features: int) -> Row:
    """Scratch space for the rows of one model."""
    wide = np.zeros((4, n_classes, n_features))
    narrow = np.zeros((9, n_classes))
    return Row(
        narrow[0],
        wide[0],
        narrow[1],
        wide[1],
        wide[2],
        narrow[2],
        narrow[3],
        narrow[4],
        wide[3],
        narrow[5],
        narrow[6],
        narrow[7],
        narrow[8],
    )


@njit(**COMPILE)
def start_row(row: Row, base: FloatArray) -> None:
    """Forget the row before; `base` holds the new half squared distances."""
    row.base[:] = base
    row.slope[:] = -1.0
    row.linear[:] = -1.0


@njit(**COMPILE)
def set_imprecision(
    boxes: Boxes, row: Row, imprecision: float, low: FloatArray, up: FloatArray
) -> None:
    """Start over with the brackets that closed forms give at this imprecision."""
    row.polished[:] = 0.0
    row.lower_lo[:] = -np.inf
    row.lower_hi[:] = np.inf
    row.upper_lo[:] = -np.inf
    row.upper_hi[:] = np.inf
    for k in range(len(low)):
        _bracket(boxes, row, k, imprecision, low, up)


@njit(**COMPILE)
def _bracket(
    boxes: Boxes,
    row: Row,
    k: int,
    imprecision: float,
    low: FloatArray,
    up: FloatArray,
) -> None:
    # Closed-form brackets of both bounds from what is known of class k so far.
    radius = imprecision * boxes.unit[k]
    base = row.base[k]
    reach = radius * radius * boxes.reach[boxes.matrix[k]]  # >= r^2 t'Bt
    distance = math.sqrt(2.0 * base)
    nearest = max(0.0, distance - math.sqrt(reach))
    q_min_lo = 0.5 * nearest * nearest
    q_min_hi = base
    q_max_lo = base
    slope = distance * math.sqrt(reach)  # >= r |field|_1 (Cauchy-Schwarz)
    if row.slope[k] >= 0.0:
        slope = radius * row.slope[k]
        q_min_lo = max(q_min_lo, base - slope)
        share = 1.0 if slope >= reach else slope / reach
        q_min_hi = base - share * (slope - 0.5 * share * reach)
        q_max_lo = base + slope
        if row.linear[k] >= 0.0:
            value = row.linear[k] + 0.5 * radius * row.quadratic[k]
            q_max_lo = base + radius * value
    q_max_hi = base + slope + 0.5 * reach
    row.lower_lo[k] = max(row.lower_lo[k], low[k] - q_max_hi)
    row.lower_hi[k] = min(row.lower_hi[k], low[k] - q_max_lo)
    row.upper_lo[k] = max(row.upper_lo[k], up[k] - q_min_hi)
    row.upper_hi[k] = min(row.upper_hi[k], up[k] - q_min_lo)


@njit(**COMPILE)
def know_field(boxes: Boxes, row: Row, x: FloatArray, k: int) -> None:
    """Compute the field of class k, unless it is there."""
    if row.slope[k] >= 0.0:
        return
    field = row.field[k]
    gap = x - boxes.mean[k]
    if boxes.natural:
        field[:] = gap
    else:
        factor = boxes.factor[boxes.matrix[k]]
        field[:] = 0.0
        for i in range(len(x)):
            white = 0.0
            for j in range(i + 1):
                white += factor[i, j] * gap[j]
            for j in range(i + 1):
                field[j] += factor[i, j] * white
    row.slope[k] = np.sum(np.abs(field))
    row.point[k, :] = 0.0


@njit(**COMPILE)
def _multiply(matrix: FloatArray, vector: FloatArray, product: FloatArray) -> None:
    for i in range(len(vector)):
        total = 0.0
        for j in range(len(vector)):
            total += matrix[i, j] * vector[j]
        product[i] = total


@njit(**COMPILE)
def improve_vertex(boxes: Boxes, row: Row, k: int, imprecision: float) -> None:
    """Ascend from the best vertex known of class k, first from the field's signs."""
    coupling = boxes.coupling[boxes.matrix[k]]
    field, vertex, image = row.field[k], row.vertex[k], row.image[k]
    if row.linear[k] < 0.0:
        for i in range(len(field)):
            vertex[i] = -1.0 if field[i] < 0.0 else 1.0
        _multiply(coupling, vertex, image)
    ascend(coupling, field, imprecision * boxes.unit[k], vertex, image)
    row.linear[k] = np.sum(field * vertex)
    row.quadratic[k] = np.sum(vertex * image)
    row.polished[k] = 1.0


@njit(**COMPILE)
def _search_vertex(
    boxes: Boxes,
    row: Row,
    k: int,
    imprecision: float,
    low: FloatArray,
    threshold: float,
    max_nodes: int,
) -> None:
    # Tighten the bracket of the lower bound of class k by branch and bound, until
    # it lies to one side of `threshold`; NaN: until both ends meet.
    radius = imprecision * boxes.unit[k]
    centre = low[k] - row.base[k]
    floor = (centre - threshold) / radius
    enough = floor
    if math.isnan(threshold):
        floor, enough = -np.inf, np.inf
    matrix = boxes.matrix[k]
    vertex = row.vertex[k]
    certain, possible, _ = box_maximum(
        boxes.coupling[matrix],
        boxes.dual[matrix],
        row.field[k],
        radius,
        vertex,
        floor,
        enough,
        max_nodes,
    )
    _multiply(boxes.coupling[matrix], vertex, row.image[k])
    row.linear[k] = np.sum(row.field[k] * vertex)
    row.quadratic[k] = np.sum(vertex * row.image[k])
    row.lower_lo[k] = max(row.lower_lo[k], centre - radius * possible)
    row.lower_hi[k] = min(row.lower_hi[k], centre - radius * certain)


@njit(**COMPILE)
def improve_point(
    boxes: Boxes,
    row: Row,
    k: int,
    imprecision: float,
    up: FloatArray,
    below: float,
    above: float,
) -> None:
    """Tighten the bracket of the upper bound of class k: the convex half.

    Stops once the bound is below `below` or above `above`; solved to the end else.
    """
    radius = imprecision * boxes.unit[k]
    centre = up[k] - row.base[k]
    least, most = box_minimum(
        boxes.coupling[boxes.matrix[k]],
        row.field[k],
        radius,
        row.point[k],
        (centre - below) / radius,
        (centre - above) / radius,
        _GAP * (1.0 + abs(centre)) / radius,
    )
    row.upper_lo[k] = max(row.upper_lo[k], centre - radius * most)
    row.upper_hi[k] = min(row.upper_hi[k], centre - radius * least)


@njit(**COMPILE)
def is_dominated(
    boxes: Boxes,
    row: Row,
    x: FloatArray,
    b: int,
    imprecision: float,
    low: FloatArray,
    up: FloatArray,
    max_nodes: int,
) -> int:
    """Does some class dominate b? Brackets must have been set at this imprecision.

    Returns KEPT, DOMINATED, or UNANSWERED when `max_nodes` branchings a question
    did not settle it; ties are KEPT.
    """
    if row.upper_hi[b] == -np.inf:
        return DOMINATED
    tie = _TIE * (1.0 + abs(row.upper_hi[b]))
    if row.upper_hi[b] + tie < np.max(row.lower_lo):
        return DOMINATED
    if imprecision == 0.0 or row.upper_lo[b] >= np.max(row.lower_hi):
        return KEPT
    # Fields: b's own, then those of all classes that might dominate it.
    know_field(boxes, row, x, b)
    _bracket(boxes, row, b, imprecision, low, up)
    for a in range(len(low)):
        if row.lower_hi[a] > row.upper_lo[b]:
            know_field(boxes, row, x, a)
            _bracket(boxes, row, a, imprecision, low, up)
    if row.upper_hi[b] + tie < np.max(row.lower_lo):
        return DOMINATED
    # Vertices: the highest contender first, until the highest has been done.
    a = np.argmax(row.lower_hi)
    while row.upper_lo[b] < row.lower_hi[a] and row.polished[a] == 0.0:
        improve_vertex(boxes, row, a, imprecision)
        _bracket(boxes, row, a, imprecision, low, up)
        a = np.argmax(row.lower_hi)
    if row.upper_lo[b] >= row.lower_hi[a]:
        return KEPT
    below = np.max(row.lower_lo) - tie
    improve_point(boxes, row, b, imprecision, up, below, row.lower_hi[a])
    if row.upper_hi[b] < below:
        return DOMINATED
    return _search(boxes, row, b, imprecision, low, row.upper_hi[b] + tie, max_nodes)


@njit(**COMPILE)
def _search(
    boxes: Boxes,
    row: Row,
    b: int,
    imprecision: float,
    low: FloatArray,
    threshold: float,
    max_nodes: int,
) -> int:
    # Is the lower bound of some class above the threshold? Highest hope first.
    answer = KEPT
    hope = row.lower_hi.copy()
    while True:
        a = np.argmax(hope)
        if hope[a] <= threshold:
            return answer
        _search_vertex(boxes, row, a, imprecision, low, threshold, max_nodes)
        if row.lower_lo[a] > threshold:
            return DOMINATED
        if row.lower_hi[a] > threshold:
            answer = UNANSWERED
        hope[a] = -np.inf


@njit(**COMPILE)
def decide_rows(
    boxes: Boxes,
    points: FloatArray,
    base: FloatArray,
    imprecision: float,
    low: FloatArray,
    up: FloatArray,
    max_nodes: int,
) -> tuple[NDArray[np.bool_], int]:
    """Undominated classes of every row, and the number of unanswered questions."""
    n_rows, n_classes = base.shape
    kept = np.empty((n_rows, n_classes), dtype=np.bool_)
    row = new_row(n_classes, points.shape[1])
    spread = np.empty(n_classes)  # how far a squared distance's root can move
    for k in range(n_classes):
        radius = imprecision * boxes.unit[k]
        spread[k] = radius * math.sqrt(boxes.reach[boxes.matrix[k]])
    unanswered = 0
    for i in range(n_rows):
        if _keep_by_distance(base[i], spread, low, up, kept[i]) == 1:
            continue
        start_row(row, base[i])
        set_imprecision(boxes, row, imprecision, low, up)
        for b in range(n_classes):
            if kept[i, b]:
                answer = is_dominated(
                    boxes, row, points[i], b, imprecision, low, up, max_nodes
                )
                kept[i, b] = answer != DOMINATED
                unanswered += answer == UNANSWERED
    return kept, unanswered


@njit(**COMPILE)
def _keep_by_distance(
    base: FloatArray,
    spread: FloatArray,
    low: FloatArray,
    up: FloatArray,
    kept: NDArray[np.bool_],
) -> int:
    # What the distances alone rule out; returns how many classes are left. A single
    # one is the answer, since no set is empty.
    floor = -np.inf
    for k in range(len(base)):
        farthest = math.sqrt(2.0 * base[k]) + spread[k]
        floor = max(floor, low[k] - 0.5 * farthest * farthest)
    left = 0
    for k in range(len(base)):
        nearest = max(0.0, math.sqrt(2.0 * base[k]) - spread[k])
        highest = up[k] - 0.5 * nearest * nearest
        kept[k] = highest + _TIE * (1.0 + abs(highest)) >= floor
        left += kept[k]
    return left


@njit(**COMPILE)
def bound_rows(
    boxes: Boxes,
    points: FloatArray,
    base: FloatArray,
    imprecision: float,
    low: FloatArray,
    up: FloatArray,
    max_nodes: int,
) -> tuple[FloatArray, FloatArray, int]:
    """Lower and upper log joints of every row and class, searched to the end.

    With the node limit they are outer bounds; the last value counts such cases.
    """
    lower = np.empty(base.shape)
    upper = np.empty(base.shape)
    row = new_row(base.shape[1], points.shape[1])
    unanswered = 0
    for i in range(len(base)):
        start_row(row, base[i])
        set_imprecision(boxes, row, imprecision, low, up)
        for k in range(base.shape[1]):
            if imprecision > 0.0:
                know_field(boxes, row, points[i], k)
                _bracket(boxes, row, k, imprecision, low, up)
                improve_vertex(boxes, row, k, imprecision)
                _search_vertex(boxes, row, k, imprecision, low, np.nan, max_nodes)
                improve_point(boxes, row, k, imprecision, up, -np.inf, np.inf)
            lower[i, k] = row.lower_lo[k]
            upper[i, k] = row.upper_hi[k]
            distance = row.lower_hi[k] - row.lower_lo[k]
            unanswered += distance > _TIE * (1.0 + abs(row.lower_hi[k]))
    return lower, upper, unanswered
