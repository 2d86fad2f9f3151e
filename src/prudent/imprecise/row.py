"""Compiled knowledge about one row: brackets of its bounds, tightened step by step.

Everything is in scaled units. For class k, half squared distance ``base = z'Az / 2``
and radius ``r = imprecision / n_k``, the exponent over the box |t_i| <= 1 is

    q(t) = base - r field't + (r^2 / 2) t' coupling t,

and the bounds of the log joint are ``lower = low - max q``, ``upper = up - min q``
with constants `low` and `up`, equal under a precise prior. Import this module
lazily: it loads numba.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit

from prudent.core.types import FloatArray
from prudent.imprecise.branch_and_bound import (
    COMPILE,
    ascend,
    box_maximum,
    box_minimum,
)

if TYPE_CHECKING:
    from prudent.imprecise.box import Boxes


#: Boxes below this imprecision are points: closed forms are exact to rounding.
NEGLIGIBLE = 1e-100

_GAP = 1e-12  # of a minimum solved to the end, plus its rounding
_ROUNDING = 1e-15


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
        tighten(boxes, row, k, imprecision, low, up)


@njit(**COMPILE)
def tighten(
    boxes: Boxes,
    row: Row,
    k: int,
    imprecision: float,
    low: FloatArray,
    up: FloatArray,
) -> None:
    """Closed-form brackets of both bounds from what is known of class k so far."""
    radius = imprecision * boxes.unit[k]
    base = row.base[k]
    reach = radius * radius * boxes.reach[boxes.matrix[k]]  # >= r^2 t'Bt
    distance = math.sqrt(2.0 * base)
    nearest = max(0.0, distance - math.sqrt(reach))
    q_min_lo = min(base, 0.5 * nearest * nearest)
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
def search_vertex(
    boxes: Boxes,
    row: Row,
    k: int,
    imprecision: float,
    low: FloatArray,
    threshold: float,
    max_nodes: int,
) -> None:
    """Tighten the bracket of the lower bound of class k: the NP-hard half.

    Stops once the bound lies to one side of `threshold`; NaN: solved to the end.
    """
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
        (_GAP + _ROUNDING * abs(centre)) / radius,
    )
    row.upper_lo[k] = max(row.upper_lo[k], centre - radius * most)
    row.upper_hi[k] = min(row.upper_hi[k], centre - radius * least)
