"""Compiled questions about boxes, row by row: cheap bounds first, search last.

Everything is in scaled units. For class k, half squared distance ``base = z'Az / 2``
and radius ``r = imprecision / n_k``, the exponent over the box |t_i| <= 1 is

    q(t) = base - r field't + (r^2 / 2) t' coupling t,

and the bounds of the log joint are ``lower = low - max q``, ``upper = up - min q``
with constants `low` and `up`, equal under a precise prior. The minimum is a convex
problem; the maximum sits on a vertex of the cube and is NP-hard in general.

What is known of a row, class by class, lies in two arrays, `narrow` (one number a
class) and `wide` (one vector a class), filled as far as needed; `forms` holds the
coupling matrices, and the factors U of A = U'U where the field is Az and not z.

The two problems are solved in `optima`, which says how this code is compiled. It
compiles for some seconds, then the disk cache serves. Import this module lazily: it
loads numba.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from prudent.core.types import BoolArray, FloatArray
from prudent.imprecise.criteria import TIE
from prudent.imprecise.optima import (
    COMPILE,
    INNER,
    STEP,
    ascend,
    box_maximum,
    box_minimum,
)

# Rows of `narrow`: half the squared distance to the centre; sum |field|, negative
# where the field is not known yet; field'vertex, negative where there is no vertex
# yet; vertex' coupling vertex; how far the vertex has been improved (see below);
# brackets of the lower and of the upper bound. Then what does not change with the row:
# radius at imprecision 1, reach >= max t' coupling t, number of the matrix, and the log
# joints at the centre under the prior's two bounds.
BASE, SLOPE, LINEAR, QUADRATIC, POLISHED = 0, 1, 2, 3, 4
LOWER_LO, LOWER_HI, UPPER_LO, UPPER_HI = 5, 6, 7, 8
UNIT, REACH, MATRIX, LOW, UP = 9, 10, 11, 12, 13
NARROW = 14
# Rows of `wide`: the field; the best sign vector found, minus t of the largest q; room
# for its product with the coupling; the best t of the smallest q found. Then the
# centre, the dual (Diag(dual) - coupling is positive semidefinite), the row itself, as
# class 0, and the share of the imprecision that each feature has.
FIELD, VERTEX, IMAGE, POINT, MEAN, DUAL, ROW, SHARE = 0, 1, 2, 3, 4, 5, 6, 7
WIDE = 8
COUPLING, FACTOR = 0, 1  # in `forms`
# How much to know of a class, and flags, are floats: integers that are known when it
# compiles would compile a function once for each.
AFRESH, WITH_FIELD, WITH_VERTEX = 0.0, 1.0, 2.0
ASCENDED, ROOT, SEARCHED = 1.0, 2.0, 3.0  # in POLISHED

#: Boxes below this imprecision are points: closed forms are exact to rounding.
NEGLIGIBLE = 1e-100

KEPT, DOMINATED, UNANSWERED = 0, 1, -1

_GAP = 1e-12  # of a minimum solved to the end, plus its rounding
_ROUNDING = 1e-15
_RELATIVE = 1e-6  # accuracy of a critical value
_ABSOLUTE = 1e-7
_LONGEST_STRIDE = 2**40  # of tolerances, more than any value has; an integer ends
_IMPROVEMENTS = 12


# --- what is known of a row -------------------------------------------------------


@njit(**INNER)
def fill_field(forms: FloatArray, wide: FloatArray, narrow: FloatArray, k: int) -> None:
    """Write the field of class k at the row and the sum of its absolute values."""
    n = wide.shape[2]
    matrix = int(narrow[MATRIX, k])
    natural = forms.shape[0] == 1
    for j in range(n):
        gap = wide[ROW, 0, j] - wide[MEAN, k, j]
        wide[POINT, k, j] = gap
        wide[FIELD, k, j] = gap if natural else 0.0
    if not natural:
        for i in range(n):
            white = 0.0
            for j in range(i + 1):
                white += forms[FACTOR, matrix, i, j] * wide[POINT, k, j]
            for j in range(i + 1):
                wide[FIELD, k, j] += forms[FACTOR, matrix, i, j] * white
    total = 0.0
    for j in range(n):
        wide[FIELD, k, j] *= wide[SHARE, k, j]
        total += abs(wide[FIELD, k, j])
        wide[POINT, k, j] = 0.0
    narrow[SLOPE, k] = total


@njit(**STEP)
def know(
    forms: FloatArray,
    wide: FloatArray,
    narrow: FloatArray,
    k: int,
    imprecision: float,
    extent: float,
) -> None:
    """Closed-form brackets of both bounds from what is known of class k.

    With R = r^2 reach >= r^2 t'Bt, l = r |field|_1 and a vertex s of the cube,

    - base + r field's + r^2 s'Bs / 2 <= max q <= base + l + R / 2,
    - max(0, base - l, (sqrt(2 base) - sqrt(R))_+^2 / 2) <= min q
      <= base - h (l - h R / 2) with h = min(1, l / R),

    where l is replaced by its bound sqrt(2 base R), and max q by base, until the field
    is known.

    AFRESH starts over, at another imprecision or row. WITH_FIELD computes the field,
    unless it is there; WITH_VERTEX ascends from the best vertex, at first the signs of
    the field, which must be there.
    """
    matrix = int(narrow[MATRIX, k])
    radius = imprecision * narrow[UNIT, k]
    if extent == AFRESH:
        narrow[POLISHED, k] = 0.0
        narrow[LOWER_LO, k] = narrow[UPPER_LO, k] = -math.inf
        narrow[LOWER_HI, k] = narrow[UPPER_HI, k] = math.inf
    if extent == WITH_FIELD and narrow[SLOPE, k] < 0.0:
        fill_field(forms, wide, narrow, k)
    if extent == WITH_VERTEX:
        if narrow[LINEAR, k] < 0.0:
            for i in range(wide.shape[2]):
                wide[VERTEX, k, i] = -1.0 if wide[FIELD, k, i] < 0.0 else 1.0
        narrow[LINEAR, k], narrow[QUADRATIC, k] = ascend(
            forms[COUPLING, matrix],
            wide[FIELD, k],
            radius,
            wide[VERTEX, k],
            wide[IMAGE, k],
        )
        narrow[POLISHED, k] = ASCENDED
    base = narrow[BASE, k]
    reach = radius * radius * narrow[REACH, k]  # >= r^2 t'Bt
    distance = math.sqrt(2.0 * base)
    nearest = max(0.0, distance - math.sqrt(reach))
    q_min_lo = min(base, 0.5 * nearest * nearest)
    q_min_hi = base
    q_max_lo = base
    slope = distance * math.sqrt(reach)  # >= r |field|_1 (Cauchy-Schwarz)
    if narrow[SLOPE, k] >= 0.0:
        slope = radius * narrow[SLOPE, k]
        q_min_lo = max(q_min_lo, base - slope)
        share = 1.0 if slope >= reach else slope / reach
        q_min_hi = base - share * (slope - 0.5 * share * reach)
        q_max_lo = base + slope
        if narrow[LINEAR, k] >= 0.0:
            value = narrow[LINEAR, k] + 0.5 * radius * narrow[QUADRATIC, k]
            q_max_lo = base + radius * value
    low, up = narrow[LOW, k], narrow[UP, k]
    highest = base + slope + 0.5 * reach  # of q
    narrow[LOWER_LO, k] = max(narrow[LOWER_LO, k], low - highest)
    narrow[LOWER_HI, k] = min(narrow[LOWER_HI, k], low - q_max_lo)
    narrow[UPPER_LO, k] = max(narrow[UPPER_LO, k], up - q_min_hi)
    narrow[UPPER_HI, k] = min(narrow[UPPER_HI, k], up - q_min_lo)


@njit(**STEP)
def start_row(
    wide: FloatArray, narrow: FloatArray, points: FloatArray, base: FloatArray, i: int
) -> None:
    """Forget the row before, take row i and its half squared distances."""
    for j in range(points.shape[1]):
        wide[ROW, 0, j] = points[i, j]
    for k in range(base.shape[1]):
        narrow[BASE, k] = base[i, k]
        narrow[SLOPE, k] = -1.0
        narrow[LINEAR, k] = -1.0


@njit(**STEP)
def search_vertex(
    forms: FloatArray,
    wide: FloatArray,
    narrow: FloatArray,
    k: int,
    imprecision: float,
    threshold: float,
    max_nodes: int,
) -> None:
    """Tighten the bracket of the lower bound of class k: the NP-hard half.

    low - max q with max q = base + r max over the cube of field't + (r / 2) t'Bt, which
    branch and bound finds from the best vertex known. Stops once the
    bound lies to one side of `threshold`; NaN: solved to the end.
    """
    radius = imprecision * narrow[UNIT, k]
    centre = narrow[LOW, k] - narrow[BASE, k]
    floor = (centre - threshold) / radius
    enough = floor
    if math.isnan(threshold):
        floor, enough = -math.inf, math.inf
    coupling = forms[COUPLING, int(narrow[MATRIX, k])]
    field, vertex = wide[FIELD, k], wide[VERTEX, k]
    certain, possible, _ = box_maximum(
        coupling, wide[DUAL, k], field, radius, vertex, floor, enough, max_nodes
    )
    narrow[LINEAR, k], narrow[QUADRATIC, k] = ascend(
        coupling, field, radius, vertex, wide[IMAGE, k]
    )
    narrow[LOWER_LO, k] = max(narrow[LOWER_LO, k], centre - radius * possible)
    narrow[LOWER_HI, k] = min(narrow[LOWER_HI, k], centre - radius * certain)


@njit(**STEP)
def improve_point(
    forms: FloatArray,
    wide: FloatArray,
    narrow: FloatArray,
    k: int,
    imprecision: float,
    below: float,
    above: float,
) -> None:
    """Tighten the bracket of the upper bound of class k: the convex half.

    up - min q with min q = base + r min over the cube of (r / 2) t'Bt - field't, which
    descent and active sets find from the best point known. Stops once the
    bound is below `below` or above `above`; solved to the end else.
    """
    radius = imprecision * narrow[UNIT, k]
    centre = narrow[UP, k] - narrow[BASE, k]
    least, most = box_minimum(
        forms[COUPLING, int(narrow[MATRIX, k])],
        wide[FIELD, k],
        radius,
        wide[POINT, k],
        (centre - below) / radius,
        (centre - above) / radius,
        (_GAP + _ROUNDING * abs(centre)) / radius,
    )
    narrow[UPPER_LO, k] = max(narrow[UPPER_LO, k], centre - radius * most)
    narrow[UPPER_HI, k] = min(narrow[UPPER_HI, k], centre - radius * least)


# --- decisions --------------------------------------------------------------------


@njit(**INNER)
def is_dominated(
    forms: FloatArray,
    wide: FloatArray,
    narrow: FloatArray,
    b: int,
    imprecision: float,
    max_nodes: int,
) -> int:
    """Does some class dominate b? Brackets must have been set at this imprecision.

    Class a dominates b iff the lower bound of a exceeds the upper bound of b; brackets
    of both are tightened until they tell. Returns KEPT, DOMINATED, or UNANSWERED when
    `max_nodes` branchings a question did not settle it; ties are KEPT.
    """
    n_classes = narrow.shape[1]
    if narrow[UPPER_HI, b] == -math.inf:
        return DOMINATED
    tie = TIE * (1.0 + abs(narrow[UPPER_HI, b]))
    # Closed forms; then with the fields of b and of all that might dominate it.
    for look in range(2):
        floor, hope = -math.inf, -math.inf
        for a in range(n_classes):
            floor = max(floor, narrow[LOWER_LO, a])
            hope = max(hope, narrow[LOWER_HI, a])
        if narrow[UPPER_HI, b] + tie < floor:
            return DOMINATED
        if imprecision < NEGLIGIBLE or narrow[UPPER_LO, b] >= hope:
            return KEPT
        if look == 0:
            least = narrow[UPPER_LO, b]
            for a in range(n_classes):
                if a == b or narrow[LOWER_HI, a] > least:
                    know(forms, wide, narrow, a, imprecision, WITH_FIELD)
                narrow[POLISHED, a] = min(ASCENDED, narrow[POLISHED, a])
    # Contenders, the highest first: their vertices, then the point of b, then the
    # first node of a search for a better vertex, then all of it.
    threshold = narrow[UPPER_LO, b]
    improved = False
    answer = KEPT
    while True:
        a = n_classes
        floor, hope = -math.inf, threshold
        for k in range(n_classes):
            floor = max(floor, narrow[LOWER_LO, k])
            if narrow[LOWER_HI, k] > hope and narrow[POLISHED, k] < SEARCHED:
                hope = narrow[LOWER_HI, k]
                a = k
        if a == n_classes:
            return answer
        if narrow[POLISHED, a] == 0.0:
            know(forms, wide, narrow, a, imprecision, WITH_VERTEX)
        elif not improved:
            improve_point(forms, wide, narrow, b, imprecision, floor - tie, hope)
            if narrow[UPPER_HI, b] < floor - tie:
                return DOMINATED
            improved = True
            threshold = narrow[UPPER_HI, b] + tie
        else:
            nodes = max_nodes if narrow[POLISHED, a] == ROOT else 0
            search_vertex(forms, wide, narrow, a, imprecision, threshold, nodes)
            narrow[POLISHED, a] += 1.0  # from ASCENDED to ROOT to SEARCHED
            if narrow[LOWER_LO, a] > threshold:
                return DOMINATED
            if narrow[POLISHED, a] == SEARCHED and narrow[LOWER_HI, a] > threshold:
                answer = UNANSWERED


@njit(**INNER)
def keep_near(
    narrow: FloatArray, base: FloatArray, row: int, imprecision: float, kept: BoolArray
) -> int:
    """Mark the classes that the distances of a row alone do not rule out; count them.

    With d_k the distance to centre k and s_k = c u_k sqrt(reach_k) >= |c u_k t| in that
    metric, low_k - (d_k + s_k)^2 / 2 <= L_k and U_k <= up_k - max(0, d_k - s_k)^2 / 2.
    `base` (n, n_classes) are half squared distances; `kept` (n, n_classes) is written.
    """
    floor = -math.inf
    for k in range(base.shape[1]):
        spread = imprecision * narrow[UNIT, k] * math.sqrt(narrow[REACH, k])
        farthest = math.sqrt(2.0 * base[row, k]) + spread
        floor = max(floor, narrow[LOW, k] - 0.5 * farthest * farthest)
    left = 0
    for k in range(base.shape[1]):
        spread = imprecision * narrow[UNIT, k] * math.sqrt(narrow[REACH, k])
        nearest = max(0.0, math.sqrt(2.0 * base[row, k]) - spread)
        highest = narrow[UP, k] - 0.5 * nearest * nearest
        kept[row, k] = highest + TIE * (1.0 + abs(highest)) >= floor
        left += kept[row, k]
    return left


@njit(**COMPILE)
def decide_rows(
    forms: FloatArray,
    wide: FloatArray,
    narrow: FloatArray,
    points: FloatArray,
    base: FloatArray,
    imprecision: float,
    max_nodes: int,
    kept: BoolArray,
) -> int:
    """Write the undominated classes of every row; returns unanswered questions."""
    unanswered = 0
    for i in range(len(base)):
        # A single class left is the answer, since no set is empty.
        if keep_near(narrow, base, i, imprecision, kept) == 1:
            continue
        start_row(wide, narrow, points, base, i)
        for k in range(base.shape[1]):
            know(forms, wide, narrow, k, imprecision, AFRESH)
        for b in range(base.shape[1]):
            if kept[i, b]:
                answer = is_dominated(forms, wide, narrow, b, imprecision, max_nodes)
                kept[i, b] = answer != DOMINATED
                unanswered += answer == UNANSWERED
    return unanswered


@njit(**COMPILE)
def bound_rows(
    forms: FloatArray,
    wide: FloatArray,
    narrow: FloatArray,
    points: FloatArray,
    base: FloatArray,
    imprecision: float,
    max_nodes: int,
    lower: FloatArray,
    upper: FloatArray,
    corners: FloatArray,
) -> int:
    """Write the bounds of the log joint of every row and class, searched to the end.

    With the node limit they are outer bounds; returns how many such cases there are.
    Of the first rows, the t of both bounds goes to `corners` (2, rows, K, p).
    """
    unanswered = 0
    for i in range(len(base)):
        start_row(wide, narrow, points, base, i)
        for k in range(base.shape[1]):
            know(forms, wide, narrow, k, imprecision, AFRESH)
        for k in range(base.shape[1]):
            if imprecision >= NEGLIGIBLE:
                know(forms, wide, narrow, k, imprecision, WITH_FIELD)
                know(forms, wide, narrow, k, imprecision, WITH_VERTEX)
                search_vertex(forms, wide, narrow, k, imprecision, math.nan, max_nodes)
                improve_point(forms, wide, narrow, k, imprecision, -math.inf, math.inf)
                if i < corners.shape[1]:
                    for j in range(points.shape[1]):
                        corners[0, i, k, j] = -wide[VERTEX, k, j]
                        corners[1, i, k, j] = wide[POINT, k, j]
            lower[i, k] = narrow[LOWER_LO, k]
            upper[i, k] = narrow[UPPER_HI, k]
            distance = narrow[LOWER_HI, k] - narrow[LOWER_LO, k]
            unanswered += distance > TIE * (1.0 + abs(narrow[LOWER_HI, k]))
    return unanswered


# --- the path in the imprecision ----------------------------------------------------
# Boxes grow with the imprecision c, so lower bounds fall, upper bounds rise and the
# set of kept classes only grows. Class b joins at its critical value
# ``inf {c : upper_b(c) >= max_a lower_a(c)}``. A vertex s of class a and a point t of
# class b bound both sides by quadratics in c; their crossing is an upper bound of the
# critical value. Improving s and t at the crossing moves it down; one search just
# below the last crossing proves it.


@njit(**INNER)
def _crossing(constant: float, slope: float, curvature: float) -> float:
    """Smallest c > 0 with constant + slope c + curvature c^2 / 2 >= 0.

    For constant < 0 <= slope; infinite if there is none.
    """
    discriminant = slope * slope - 2.0 * curvature * constant
    if discriminant < 0.0:
        return math.inf
    divisor = slope + math.sqrt(discriminant)
    return -2.0 * constant / divisor if divisor > 0.0 else math.inf


@njit(**INNER)
def _joins(
    narrow: FloatArray, b: int, linear: float, quadratic: float
) -> tuple[float, int]:
    """Upper bound of the critical value of class b, and the class that sets it.

    The largest over a of the c at which low_a - q_a(s_a) = up_b - q_b(t), quadratics in
    c with the best vertex s_a of each rival. Class b may move to share * t, where
    0 <= share <= 1, with `linear` = field't and `quadratic` = t'Bt.
    """
    unit = narrow[UNIT, b]
    fullest = linear / (unit * quadratic) if quadratic > 0.0 else math.inf
    behind = narrow[UP, b] - narrow[BASE, b]
    latest = 0.0
    strongest = -1
    for a in range(narrow.shape[1]):
        constant = behind - (narrow[LOW, a] - narrow[BASE, a])
        if a == b or not constant < -TIE * (1.0 + abs(behind)):
            continue
        slope = 0.0
        curvature = 0.0
        if narrow[LINEAR, a] >= 0.0:
            slope = narrow[UNIT, a] * narrow[LINEAR, a]
            curvature = narrow[UNIT, a] ** 2 * narrow[QUADRATIC, a]
        elif narrow[SLOPE, a] >= 0.0:
            slope = narrow[UNIT, a] * narrow[SLOPE, a]
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


@njit(**INNER)
def _joins_at_point(
    forms: FloatArray, wide: FloatArray, narrow: FloatArray, b: int
) -> tuple[float, int]:
    """As `_joins`, for the best point known of class b."""
    point, matrix = wide[POINT, b], int(narrow[MATRIX, b])
    linear = 0.0
    quadratic = 0.0
    for i in range(len(point)):
        linear += wide[FIELD, b, i] * point[i]
        for j in range(len(point)):
            quadratic += point[i] * forms[COUPLING, matrix, i, j] * point[j]
    return _joins(narrow, b, linear, quadratic)


@njit(**INNER)
def _descend(forms: FloatArray, wide: FloatArray, narrow: FloatArray, b: int) -> float:
    """Upper bound of the critical value of class b.

    The vertex of its rival and its own point are improved where the two bounds cross,
    until the crossing stays. Rivals whose centre is the row cross nowhere before they
    have a vertex, so that each of them gets one first.
    """
    for a in range(narrow.shape[1]):
        know(forms, wide, narrow, a, 0.0, WITH_FIELD)
    joins, a = _joins(narrow, b, narrow[SLOPE, b], narrow[REACH, b])
    for _ in range(_IMPROVEMENTS + narrow.shape[1]):
        if a < 0:
            break
        at = joins if joins < math.inf else 1.0
        know(forms, wide, narrow, a, at, WITH_VERTEX)
        improve_point(forms, wide, narrow, b, at, -math.inf, math.inf)
        earlier, a = _joins_at_point(forms, wide, narrow, b)
        settled = math.inf > earlier >= joins * (1.0 - 0.1 * _RELATIVE)
        joins = min(joins, earlier)
        if settled:
            break
    return joins


@njit(**INNER)
def _probe(grid: FloatArray, out: float, joined: float, stride: int) -> float:
    """Where to look next between a value known to be out and one known to be in.

    It lies `stride` tolerances or grid points below the latter; negative: nowhere.
    """
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
    forms: FloatArray,
    wide: FloatArray,
    narrow: FloatArray,
    points: FloatArray,
    base: FloatArray,
    max_nodes: int,
    grid: FloatArray,
    critical: FloatArray,
) -> int:
    """Write the critical imprecision of every row and class; returns unanswered ones.

    Accurate to 1e-6 relative plus 1e-7 when `grid` is empty. With a sorted grid it
    is only placed between the right grid points; beyond the last it is infinite.
    """
    unanswered = 0
    for i in range(len(base)):
        start_row(wide, narrow, points, base, i)
        if len(grid) > 0:
            for k in range(base.shape[1]):
                know(forms, wide, narrow, k, grid[-1], AFRESH)
        for b in range(base.shape[1]):
            critical[i, b] = 0.0
            if narrow[UP, b] == -math.inf:
                critical[i, b] = math.inf
            elif len(grid) > 0:
                answer = is_dominated(forms, wide, narrow, b, grid[-1], max_nodes)
                if answer == DOMINATED:
                    critical[i, b] = math.inf
        for b in range(base.shape[1]):
            if critical[i, b] == 0.0:
                critical[i, b], n_open = _critical(
                    forms, wide, narrow, b, max_nodes, grid
                )
                unanswered += n_open
    return unanswered


@njit(**INNER)
def _critical(
    forms: FloatArray,
    wide: FloatArray,
    narrow: FloatArray,
    b: int,
    max_nodes: int,
    grid: FloatArray,
) -> tuple[float, int]:
    """Critical imprecision of class b, and 1 if a probe met the node limit.

    A search just below the value at which b is known to be kept proves it, or moves it
    down.
    """
    joined = _descend(forms, wide, narrow, b)
    out = 0.0
    stride = 1
    unanswered = 0  # 1 once a probe met the node limit, and kept the class
    while joined > 0.0:
        probe = _probe(grid, out, joined, stride)
        if probe < 0.0:
            break
        for k in range(narrow.shape[1]):
            know(forms, wide, narrow, k, probe, AFRESH)
        answer = is_dominated(forms, wide, narrow, b, probe, max_nodes)
        if answer == DOMINATED:
            out = probe
            stride = 1
        else:
            if answer == UNANSWERED:
                unanswered = 1
            better, _ = _joins_at_point(forms, wide, narrow, b)
            joined = max(out, min(probe, better))
            stride = min(4 * stride, _LONGEST_STRIDE)
    return joined, unanswered
