"""Compiled decisions, row by row: cheap bounds first, search last.

Class a dominates b iff the lower bound of a exceeds the upper bound of b; brackets
of both (see `row`) are tightened until they tell. Import this module lazily: it
loads numba.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numba import njit
from numpy.typing import NDArray

from prudent.core.types import FloatArray
from prudent.imprecise.branch_and_bound import COMPILE
from prudent.imprecise.row import (
    NEGLIGIBLE,
    Row,
    improve_point,
    improve_vertex,
    know_field,
    new_row,
    search_vertex,
    set_imprecision,
    start_row,
    tighten,
)

if TYPE_CHECKING:
    from prudent.imprecise.box import Boxes


KEPT, DOMINATED, UNANSWERED = 0, 1, -1

_TIE = 1e-9  # log joints closer than this, relatively, are tied


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
    if imprecision < NEGLIGIBLE or row.upper_lo[b] >= np.max(row.lower_hi):
        return KEPT
    # Fields: b's own, then those of all classes that might dominate it.
    know_field(boxes, row, x, b)
    tighten(boxes, row, b, imprecision, low, up)
    for a in range(len(low)):
        if row.lower_hi[a] > row.upper_lo[b]:
            know_field(boxes, row, x, a)
            tighten(boxes, row, a, imprecision, low, up)
    if row.upper_hi[b] + tie < np.max(row.lower_lo):
        return DOMINATED
    # Vertices: the highest contender first, until the highest has been done.
    a = int(np.argmax(row.lower_hi))
    while row.upper_lo[b] < row.lower_hi[a] and row.polished[a] == 0.0:
        improve_vertex(boxes, row, a, imprecision)
        tighten(boxes, row, a, imprecision, low, up)
        a = int(np.argmax(row.lower_hi))
    if row.upper_lo[b] >= row.lower_hi[a]:
        return KEPT
    below = np.max(row.lower_lo) - tie
    improve_point(boxes, row, b, imprecision, up, below, row.lower_hi[a])
    if row.upper_hi[b] < below:
        return DOMINATED
    threshold = row.upper_hi[b] + tie
    return _search(boxes, row, b, imprecision, low, up, threshold, max_nodes)


@njit(**COMPILE)
def _search(
    boxes: Boxes,
    row: Row,
    b: int,
    imprecision: float,
    low: FloatArray,
    up: FloatArray,
    threshold: float,
    max_nodes: int,
) -> int:
    # Is the lower bound of some class above the threshold? Highest hope first.
    answer = KEPT
    hope = row.lower_hi.copy()
    while True:
        a = int(np.argmax(hope))
        if hope[a] <= threshold:
            return answer
        if row.polished[a] == 0.0:
            improve_vertex(boxes, row, a, imprecision)
            tighten(boxes, row, a, imprecision, low, up)
            hope[a] = row.lower_hi[a]
            continue
        search_vertex(boxes, row, a, imprecision, low, threshold, max_nodes)
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
            if imprecision >= NEGLIGIBLE:
                know_field(boxes, row, points[i], k)
                tighten(boxes, row, k, imprecision, low, up)
                improve_vertex(boxes, row, k, imprecision)
                search_vertex(boxes, row, k, imprecision, low, np.nan, max_nodes)
                improve_point(boxes, row, k, imprecision, up, -np.inf, np.inf)
            lower[i, k] = row.lower_lo[k]
            upper[i, k] = row.upper_hi[k]
            distance = row.lower_hi[k] - row.lower_lo[k]
            unanswered += distance > _TIE * (1.0 + abs(row.lower_hi[k]))
    return lower, upper, unanswered
