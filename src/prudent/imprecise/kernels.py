"""Compiled questions about boxes, row by row: cheap bounds first, search last.

Everything is in scaled units. For class k, half squared distance ``base = z'Az / 2``
and radius ``r = imprecision / n_k``, the exponent over the box |t_i| <= 1 is

    q(t) = base - r field't + (r^2 / 2) t' coupling t,

and the bounds of the log joint are ``lower = low - max q``, ``upper = up - min q``
with constants `low` and `up`, equal under a precise prior. The minimum is a convex
problem; the maximum sits on a vertex of the cube and is NP-hard in general.

What is known of a row, class by class, lies in two arrays, `narrow` (one number a
class) and `wide` (one vector a class), filled as far as needed; `forms` holds the
coupling matrices, and the factors U of A = U'U where the field is Az and not z. Plain
arrays and plain loops keep the first use short: it compiles for some seconds, then the
disk cache serves. Import this module lazily: it loads numba. Without compilation
(``NUMBA_DISABLE_JIT=1``) the same functions run as plain Python.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from prudent.core.types import BoolArray, FloatArray

# Sums may be reordered (vector units); infinities keep their meaning.
COMPILE: dict[str, Any] = {
    "cache": True,
    "fastmath": {"reassoc", "contract"},
    "error_model": "numpy",
}
# Of what only compiled code calls: no entry in the cache, and no way in from Python.
STEP = COMPILE | {"cache": False, "no_cfunc_wrapper": True}
INNER = STEP | {"no_cpython_wrapper": True}

# Rows of `narrow`: half the squared distance to the centre; sum |field|, negative
# where the field is not known yet; field'vertex, negative where there is no vertex
# yet; vertex' coupling vertex; 1 where the vertex has been improved at this
# imprecision, 2 where a search has begun from it; brackets of the lower and of the
# upper bound. Then what does not change with the row: radius at imprecision 1, reach
# >= max t' coupling t, number of the matrix, and the log joints at the centre under
# the prior's two bounds.
BASE, SLOPE, LINEAR, QUADRATIC, POLISHED = 0, 1, 2, 3, 4
LOWER_LO, LOWER_HI, UPPER_LO, UPPER_HI = 5, 6, 7, 8
UNIT, REACH, MATRIX, LOW, UP = 9, 10, 11, 12, 13
NARROW = 14
# Rows of `wide`: the field; the best sign vector found, minus t of the largest q; its
# product with the coupling; the best t of the smallest q found. Then the centre, the
# dual (Diag(dual) - coupling is positive semidefinite), the row itself, as class 0, and
# the share of the imprecision that each feature has.
FIELD, VERTEX, IMAGE, POINT, MEAN, DUAL, ROW, SHARE = 0, 1, 2, 3, 4, 5, 6, 7
WIDE = 8
COUPLING, FACTOR = 0, 1  # in `forms`
SIGN, PULL, REACHES, NODE_POINT, GRADIENT = 0, 1, 2, 3, 4  # in the stack of a search

#: Boxes below this imprecision are points: closed forms are exact to rounding.
NEGLIGIBLE = 1e-100

KEPT, DOMINATED, UNANSWERED, OPEN = 0, 1, -1, 2

_TIE = 1e-9  # log joints closer than this, relatively, are tied
_GAP = 1e-12  # of a minimum solved to the end, plus its rounding
_ROUNDING = 1e-15
_DESCENT_SWEEPS = 15
_RELAXATION_SWEEPS = 12
_RELATIVE_GAP = 1e-10  # between the bounds of a maximum searched to the end
_RIDGE = 1e-15  # of the trace: keeps a free block solvable
_RELATIVE = 1e-6  # accuracy of a critical value
_ABSOLUTE = 1e-7
_IMPROVEMENTS = 12


# --- the minimum ------------------------------------------------------------------


@njit(**INNER)
def _gradient(
    coupling: FloatArray,
    field: FloatArray,
    radius: float,
    point: FloatArray,
    gradient: FloatArray,
) -> None:
    for j in range(len(point)):
        gradient[j] = -field[j]
    for i in range(len(point)):
        change = radius * point[i]
        if change != 0.0:
            for j in range(len(point)):
                gradient[j] += change * coupling[i, j]


@njit(**INNER)
def _bracket(
    field: FloatArray, gradient: FloatArray, point: FloatArray
) -> tuple[float, float]:
    # Value at `point`, and less the Frank-Wolfe gap: no convex function with
    # this gradient falls further within the cube.
    value = 0.0
    gap = 0.0
    for i in range(len(point)):
        value += 0.5 * (gradient[i] - field[i]) * point[i]
        gap += abs(gradient[i]) + gradient[i] * point[i]
    return value - gap, value


@njit(**COMPILE)
def box_minimum(
    coupling: FloatArray,
    field: FloatArray,
    radius: float,
    point: FloatArray,
    above: float,
    below: float,
    gap_allowed: float,
) -> tuple[float, float]:
    """Bracket the minimum of (radius / 2) t' coupling t - field't on the cube.

    `point` is the start and becomes the best point found. Stops as soon as the
    minimum is known to exceed `above`, to lie below `below`, or to lie in an
    interval of length `gap_allowed`. Returns certified lower and upper bounds.
    """
    gradient = np.empty(len(field))
    lower, upper = _sweep(
        coupling, field, radius, point, gradient, above, below, gap_allowed
    )
    if lower > above or upper < below or upper - lower <= gap_allowed:
        return min(lower, upper), upper
    return _active_set(coupling, field, radius, point, gradient, lower, gap_allowed)


@njit(**INNER)
def _sweep(
    coupling: FloatArray,
    field: FloatArray,
    radius: float,
    point: FloatArray,
    gradient: FloatArray,
    above: float,
    below: float,
    gap_allowed: float,
) -> tuple[float, float]:
    # Coordinate descent; the bracket may still be open at the end.
    n = len(field)
    _gradient(coupling, field, radius, point, gradient)
    lower, upper = -math.inf, math.inf
    for _ in range(_DESCENT_SWEEPS):
        for i in range(n):
            curvature = radius * coupling[i, i]
            if curvature > 0.0:
                new = min(1.0, max(-1.0, point[i] - gradient[i] / curvature))
            else:
                new = -1.0 if gradient[i] > 0.0 else 1.0
            change = radius * (new - point[i])
            if change != 0.0:
                point[i] = new
                for j in range(n):
                    gradient[j] += change * coupling[i, j]
        certified, upper = _bracket(field, gradient, point)
        lower = max(lower, certified)
        if lower > above or upper < below or upper - lower <= gap_allowed:
            break
    return lower, upper


@njit(**INNER)
def _active_set(
    coupling: FloatArray,
    field: FloatArray,
    radius: float,
    point: FloatArray,
    gradient: FloatArray,
    lower: float,
    gap_allowed: float,
) -> tuple[float, float]:
    # Primal active set: one exchange a step, the free block solved exactly.
    n = len(field)
    block = np.empty((n, n))
    step = np.empty(n)
    index = np.empty(n, dtype=np.intp)
    fixed = np.empty(n)  # 1: held at its side of the cube
    ridge = 0.0
    for i in range(n):
        fixed[i] = 1.0 if abs(point[i]) >= 1.0 else 0.0
        ridge += _RIDGE * radius * coupling[i, i]
    upper = math.inf
    optimal = False  # to rounding
    for _ in range(20 + 10 * n):
        _gradient(coupling, field, radius, point, gradient)
        certified, upper = _bracket(field, gradient, point)
        lower = max(lower, certified)
        if optimal or upper - lower <= gap_allowed:
            break
        m = 0
        for i in range(n):
            if fixed[i] == 0.0:
                index[m] = i
                step[m] = -gradient[i]
                m += 1
        _solve_free(coupling, radius, ridge, index, m, block, step)
        length = 1.0
        blocking = -1
        for l in range(m):
            i = index[l]
            reached = point[i] + step[l]
            if abs(reached) > 1.0:
                side = 1.0 if reached > 0.0 else -1.0
                possible = (side - point[i]) / step[l]
                if possible < length:
                    length = possible
                    blocking = i
        for l in range(m):
            i = index[l]
            point[i] = min(1.0, max(-1.0, point[i] + length * step[l]))
        if blocking >= 0:
            point[blocking] = 1.0 if point[blocking] > 0.0 else -1.0
            fixed[blocking] = 1.0
            continue
        _gradient(coupling, field, radius, point, gradient)
        release = 0
        most = -math.inf
        for i in range(n):
            inward = fixed[i] * gradient[i] * point[i]
            if inward > most:
                most = inward
                release = i
        optimal = most <= 0.0
        fixed[release] = 0.0
    return min(lower, upper), upper


@njit(**INNER)
def _solve_free(
    coupling: FloatArray,
    radius: float,
    ridge: float,
    index: Any,
    m: int,
    block: FloatArray,
    step: FloatArray,
) -> None:
    # Cholesky of the first m rows and columns that `index` names; solved in place.
    for i in range(m):
        for j in range(i + 1):
            total = radius * coupling[index[i], index[j]]
            for l in range(j):
                total -= block[i, l] * block[j, l]
            if i == j:
                block[i, i] = math.sqrt(max(total + ridge, ridge))
            else:
                block[i, j] = total / block[j, j]
        total = step[i]
        for l in range(i):
            total -= block[i, l] * step[l]
        step[i] = total / block[i, i]
    for back in range(m):
        i = m - 1 - back
        step[i] /= block[i, i]
        for l in range(i):
            step[l] -= block[i, l] * step[i]


# --- the maximum ------------------------------------------------------------------


@njit(**INNER)
def _multiply(matrix: FloatArray, vector: FloatArray, product: FloatArray) -> None:
    for i in range(len(vector)):
        total = 0.0
        for j in range(len(vector)):
            total += matrix[i, j] * vector[j]
        product[i] = total


@njit(**INNER)
def _height(
    field: FloatArray, radius: float, vertex: FloatArray, image: FloatArray
) -> float:
    # phi(s) = field's + (radius / 2) s' coupling s with image = coupling s.
    total = 0.0
    for i in range(len(field)):
        total += (field[i] + 0.5 * radius * image[i]) * vertex[i]
    return total


@njit(**COMPILE)
def ascend(
    coupling: FloatArray,
    field: FloatArray,
    radius: float,
    vertex: FloatArray,
    image: FloatArray,
) -> None:
    """Flip single signs of a vertex as long as phi grows.

    phi(s) = field's + (radius / 2) s' coupling s; `image` = coupling @ vertex is
    kept up to date.
    """
    n = len(field)
    improved = True
    while improved:
        improved = False
        for i in range(n):
            pull = field[i] + radius * (image[i] - coupling[i, i] * vertex[i])
            if pull * vertex[i] < 0.0:
                change = -2.0 * vertex[i]
                vertex[i] = -vertex[i]
                for j in range(n):
                    image[j] += change * coupling[i, j]
                improved = True


# A sub-problem of the search, or node: some signs are fixed, the others free. Its sign
# (0 marks a free one), pull (linear coefficient once the fixed signs are in), reach
# (largest effect of the other free signs on each), point (t of the relaxation, the
# sign where fixed) and gradient of the relaxation there lie in `node`, (5, p).


@njit(**INNER)
def _move(
    coupling: FloatArray,
    dual: FloatArray,
    radius: float,
    node: FloatArray,
    i: int,
    value: float,
) -> None:
    change = radius * (value - node[NODE_POINT, i])
    if change != 0.0:
        node[NODE_POINT, i] = value
        for j in range(len(dual)):
            node[GRADIENT, j] += change * coupling[i, j]
        node[GRADIENT, i] -= change * dual[i]


@njit(**INNER)
def _fix(
    coupling: FloatArray,
    dual: FloatArray,
    radius: float,
    node: FloatArray,
    i: int,
    sign: float,
) -> None:
    node[SIGN, i] = sign
    _move(coupling, dual, radius, node, i, sign)
    for j in range(len(dual)):
        if j != i:
            node[PULL, j] += radius * sign * coupling[i, j]
            node[REACHES, j] -= radius * abs(coupling[i, j])


@njit(**STEP)
def settle(
    coupling: FloatArray,
    dual: FloatArray,
    field: FloatArray,
    radius: float,
    node: FloatArray,
) -> float:
    """Fix what is known of a node; returns a simple upper bound of its maximum.

    Persistency: a sign whose pull exceeds its reach is known (exact). The bound lets
    every free sign follow its pull and all help each other.
    """
    n = len(field)
    found = True
    while found:
        found = False
        for i in range(n):
            pull = node[PULL, i]
            if node[SIGN, i] == 0.0 and abs(pull) >= node[REACHES, i]:
                _fix(coupling, dual, radius, node, i, 1.0 if pull >= 0.0 else -1.0)
                found = True
    bound = 0.0
    for i in range(n):
        bound += 0.5 * radius * coupling[i, i]
        if node[SIGN, i] == 0.0:
            bound += abs(node[PULL, i]) + 0.5 * node[REACHES, i]
        else:  # of two fixed signs each feels the other, hence the half
            bound += 0.5 * (field[i] + node[PULL, i]) * node[SIGN, i]
    return bound


@njit(**INNER)
def _relax(
    coupling: FloatArray,
    dual: FloatArray,
    field: FloatArray,
    radius: float,
    node: FloatArray,
    target: float,
) -> float:
    # Coordinate ascent on field't + (radius / 2)(t' coupling t + dual'(1 - t^2)):
    # concave, and phi itself on vertices. Certified after every sweep; stops when
    # the bound is below `target` or never will be.
    bound = math.inf
    for _ in range(_RELAXATION_SWEEPS):
        for i in range(len(field)):
            if node[SIGN, i] == 0.0:
                curvature = radius * (dual[i] - coupling[i, i])
                slope = node[GRADIENT, i]
                if curvature > 0.0:
                    value = node[NODE_POINT, i] + slope / curvature
                    value = min(1.0, max(-1.0, value))
                else:
                    value = 1.0 if slope > 0.0 else -1.0
                _move(coupling, dual, radius, node, i, value)
        value = 0.0
        slack = 0.0
        for i in range(len(field)):
            slope = node[GRADIENT, i]
            value += 0.5 * (field[i] + slope) * node[NODE_POINT, i]
            value += 0.5 * radius * dual[i]
            if node[SIGN, i] == 0.0:
                slack += abs(slope) - slope * node[NODE_POINT, i]
        bound = min(bound, value + slack)
        if bound < target or value >= target:
            break
    return bound


@njit(**STEP)
def start_node(
    coupling: FloatArray,
    dual: FloatArray,
    field: FloatArray,
    radius: float,
    point: FloatArray,
    image: FloatArray,
    node: FloatArray,
) -> None:
    """The node of all vertices: no sign is fixed."""
    for i in range(len(field)):
        reach = -abs(coupling[i, i])
        for j in range(len(field)):
            reach += abs(coupling[i, j])
        node[SIGN, i] = 0.0
        node[PULL, i] = field[i]
        node[REACHES, i] = radius * reach
        node[NODE_POINT, i] = point[i]
        node[GRADIENT, i] = field[i] + radius * (image[i] - dual[i] * point[i])


@njit(**COMPILE)
def box_maximum(
    coupling: FloatArray,
    dual: FloatArray,
    field: FloatArray,
    radius: float,
    best: FloatArray,
    floor: float,
    enough: float,
    max_nodes: int,
) -> tuple[float, float, int]:
    """Bracket the maximum of field't + (radius / 2) t' coupling t on the cube.

    Branch and bound. `dual` is such that Diag(dual) - coupling is positive
    semidefinite; `best` is the first vertex and becomes the best one found.
    Stops as soon as the maximum is known to reach `enough` or to lie below
    `floor`, or after `max_nodes` branchings. Returns certified lower and upper
    bounds, which need not meet when the search stopped early, and the number of
    branchings.
    """
    n = len(field)
    stack = np.empty((n + 2, 5, n))  # the open nodes, deepest on top
    bound = np.empty(n + 2)
    image, vertex = np.empty(n), np.empty(n)
    _multiply(coupling, best, image)
    start_node(coupling, dual, field, radius, best, image, stack[0])
    bound[0] = math.inf
    lower = _height(field, radius, best, image)
    closed = lower
    top = 1
    branched = 0
    while top > 0 and lower < enough:
        top -= 1
        node = stack[top]
        target = max(floor, lower + _RELATIVE_GAP * (1.0 + abs(lower)))
        bound[top] = min(bound[top], settle(coupling, dual, field, radius, node))
        if bound[top] >= target:
            relaxed = _relax(coupling, dual, field, radius, node, target)
            bound[top] = min(bound[top], relaxed)
        if bound[top] < target:
            closed = max(closed, bound[top])
            continue
        for i in range(n):
            vertex[i] = -1.0 if node[NODE_POINT, i] < 0.0 else 1.0
        _multiply(coupling, vertex, image)
        ascend(coupling, field, radius, vertex, image)
        value = _height(field, radius, vertex, image)
        if value > lower:
            lower = value
            for i in range(n):
                best[i] = vertex[i]
        # Branch where rounding costs the relaxation most.
        branch = -1
        most = -1.0
        for i in range(n):
            doubt = (dual[i] - coupling[i, i]) * (1.0001 - abs(node[NODE_POINT, i]))
            if node[SIGN, i] == 0.0 and doubt > most:
                most = doubt
                branch = i
        if branch < 0:
            closed = max(closed, bound[top])
            continue
        if branched >= max_nodes:
            top += 1
            break
        branched += 1
        near = -1.0 if node[NODE_POINT, branch] < 0.0 else 1.0
        twin = stack[top + 1]
        for kind in range(5):
            for i in range(n):
                twin[kind, i] = node[kind, i]
        bound[top + 1] = bound[top]
        _fix(coupling, dual, radius, node, branch, -near)
        _fix(coupling, dual, radius, twin, branch, near)  # goes first
        top += 2
    upper = max(lower, closed)
    for i in range(top):
        upper = max(upper, bound[i])
    return lower, upper, branched


# --- what is known of a row -------------------------------------------------------


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
def set_imprecision(narrow: FloatArray, imprecision: float) -> None:
    """Start over with the brackets that closed forms give at this imprecision."""
    for k in range(narrow.shape[1]):
        narrow[POLISHED, k] = 0.0
        narrow[LOWER_LO, k] = -math.inf
        narrow[LOWER_HI, k] = math.inf
        narrow[UPPER_LO, k] = -math.inf
        narrow[UPPER_HI, k] = math.inf
        tighten(narrow, k, imprecision)


@njit(**INNER)
def _narrow_down(
    narrow: FloatArray, k: int, lower_lo: float, lower_hi: float, at: int
) -> None:
    # The bracket that starts at row `at` of `narrow`, cut to the one given.
    narrow[at, k] = max(narrow[at, k], lower_lo)
    narrow[at + 1, k] = min(narrow[at + 1, k], lower_hi)


@njit(**STEP)
def tighten(narrow: FloatArray, k: int, imprecision: float) -> None:
    """Closed-form brackets of both bounds from what is known of class k so far."""
    radius = imprecision * narrow[UNIT, k]
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
    q_max_hi = base + slope + 0.5 * reach
    low, up = narrow[LOW, k], narrow[UP, k]
    _narrow_down(narrow, k, low - q_max_hi, low - q_max_lo, LOWER_LO)
    _narrow_down(narrow, k, up - q_min_hi, up - q_min_lo, UPPER_LO)


@njit(**STEP)
def know_field(forms: FloatArray, wide: FloatArray, narrow: FloatArray, k: int) -> None:
    """Compute the field of class k, unless it is there."""
    if narrow[SLOPE, k] >= 0.0:
        return
    n = wide.shape[2]
    field, matrix = wide[FIELD, k], int(narrow[MATRIX, k])
    natural = forms.shape[0] == 1
    for j in range(n):
        gap = wide[ROW, 0, j] - wide[MEAN, k, j]
        wide[POINT, k, j] = gap
        field[j] = gap if natural else 0.0
    if not natural:
        for i in range(n):
            white = 0.0
            for j in range(i + 1):
                white += forms[FACTOR, matrix, i, j] * wide[POINT, k, j]
            for j in range(i + 1):
                field[j] += forms[FACTOR, matrix, i, j] * white
    slope = 0.0
    for j in range(n):
        field[j] *= wide[SHARE, k, j]
        slope += abs(field[j])
        wide[POINT, k, j] = 0.0
    narrow[SLOPE, k] = slope


@njit(**INNER)
def _know_vertex(wide: FloatArray, narrow: FloatArray, k: int) -> None:
    linear = 0.0
    quadratic = 0.0
    for i in range(wide.shape[2]):
        linear += wide[FIELD, k, i] * wide[VERTEX, k, i]
        quadratic += wide[VERTEX, k, i] * wide[IMAGE, k, i]
    narrow[LINEAR, k] = linear
    narrow[QUADRATIC, k] = quadratic


@njit(**STEP)
def improve_vertex(
    forms: FloatArray, wide: FloatArray, narrow: FloatArray, k: int, imprecision: float
) -> None:
    """Ascend from the best vertex known of class k, first from the field's signs."""
    coupling = forms[COUPLING, int(narrow[MATRIX, k])]
    field, vertex, image = wide[FIELD, k], wide[VERTEX, k], wide[IMAGE, k]
    if narrow[LINEAR, k] < 0.0:
        for i in range(len(field)):
            vertex[i] = -1.0 if field[i] < 0.0 else 1.0
        _multiply(coupling, vertex, image)
    ascend(coupling, field, imprecision * narrow[UNIT, k], vertex, image)
    _know_vertex(wide, narrow, k)
    narrow[POLISHED, k] = 1.0


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

    Stops once the bound lies to one side of `threshold`; NaN: solved to the end.
    """
    radius = imprecision * narrow[UNIT, k]
    centre = narrow[LOW, k] - narrow[BASE, k]
    floor = (centre - threshold) / radius
    enough = floor
    if math.isnan(threshold):
        floor, enough = -math.inf, math.inf
    coupling = forms[COUPLING, int(narrow[MATRIX, k])]
    vertex = wide[VERTEX, k]
    certain, possible, _ = box_maximum(
        coupling,
        wide[DUAL, k],
        wide[FIELD, k],
        radius,
        vertex,
        floor,
        enough,
        max_nodes,
    )
    _multiply(coupling, vertex, wide[IMAGE, k])
    _know_vertex(wide, narrow, k)
    lowest, highest = centre - radius * possible, centre - radius * certain
    _narrow_down(narrow, k, lowest, highest, LOWER_LO)


@njit(**INNER)
def _search_root(
    forms: FloatArray,
    wide: FloatArray,
    narrow: FloatArray,
    k: int,
    imprecision: float,
    threshold: float,
    image: FloatArray,
) -> None:
    # The first node of `search_vertex`, without branching.
    n = wide.shape[2]
    radius = imprecision * narrow[UNIT, k]
    centre = narrow[LOW, k] - narrow[BASE, k]
    floor = (centre - threshold) / radius
    coupling = forms[COUPLING, int(narrow[MATRIX, k])]
    field, dual, best = wide[FIELD, k], wide[DUAL, k], wide[VERTEX, k]
    node = np.empty((5, n))
    start_node(coupling, dual, field, radius, best, wide[IMAGE, k], node)
    bound = settle(coupling, dual, field, radius, node)
    if bound >= floor:
        bound = min(bound, _relax(coupling, dual, field, radius, node, floor))
    value = _height(field, radius, best, wide[IMAGE, k])
    if bound >= floor:
        vertex = node[PULL]  # which is not needed any more
        for i in range(n):
            vertex[i] = -1.0 if node[NODE_POINT, i] < 0.0 else 1.0
        _multiply(coupling, vertex, image)
        ascend(coupling, field, radius, vertex, image)
        better = _height(field, radius, vertex, image)
        if better > value:
            value = better
            for i in range(n):
                best[i] = vertex[i]
                wide[IMAGE, k, i] = image[i]
            _know_vertex(wide, narrow, k)
    bound = max(bound, value)
    lowest, highest = centre - radius * bound, centre - radius * value
    _narrow_down(narrow, k, lowest, highest, LOWER_LO)


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

    Stops once the bound is below `below` or above `above`; solved to the end else.
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
    lowest, highest = centre - radius * most, centre - radius * least
    _narrow_down(narrow, k, lowest, highest, UPPER_LO)


@njit(**INNER)
def _sweep_point(
    forms: FloatArray,
    wide: FloatArray,
    narrow: FloatArray,
    k: int,
    imprecision: float,
    below: float,
    above: float,
    gradient: FloatArray,
) -> bool:
    # `improve_point` by descent alone; returns whether that was enough.
    radius = imprecision * narrow[UNIT, k]
    centre = narrow[UP, k] - narrow[BASE, k]
    highest, lowest = (centre - below) / radius, (centre - above) / radius
    gap = (_GAP + _ROUNDING * abs(centre)) / radius
    coupling = forms[COUPLING, int(narrow[MATRIX, k])]
    least, most = _sweep(
        coupling,
        wide[FIELD, k],
        radius,
        wide[POINT, k],
        gradient,
        highest,
        lowest,
        gap,
    )
    least = min(least, most)
    _narrow_down(narrow, k, centre - radius * most, centre - radius * least, UPPER_LO)
    return least > highest or most < lowest or most - least <= gap


# --- decisions --------------------------------------------------------------------


@njit(**INNER)
def _highest(values: FloatArray) -> int:
    best = 0
    for k in range(1, len(values)):
        if values[k] > values[best]:
            best = k
    return best


@njit(**INNER)
def _quick_answer(
    forms: FloatArray,
    wide: FloatArray,
    narrow: FloatArray,
    b: int,
    imprecision: float,
    gradient: FloatArray,
) -> int:
    # `is_dominated` without active sets and searches; OPEN where they are needed.
    lower_lo, lower_hi = narrow[LOWER_LO], narrow[LOWER_HI]
    if narrow[UPPER_HI, b] == -math.inf:
        return DOMINATED
    tie = _TIE * (1.0 + abs(narrow[UPPER_HI, b]))
    if narrow[UPPER_HI, b] + tie < lower_lo[_highest(lower_lo)]:
        return DOMINATED
    if imprecision < NEGLIGIBLE:
        return KEPT
    if narrow[UPPER_LO, b] >= lower_hi[_highest(lower_hi)]:
        return KEPT
    # Fields: b's own, then those of all classes that might dominate it.
    for turn in range(-1, narrow.shape[1]):
        a = b if turn < 0 else turn
        if turn < 0 or lower_hi[a] > narrow[UPPER_LO, b]:
            know_field(forms, wide, narrow, a)
            tighten(narrow, a, imprecision)
    if narrow[UPPER_HI, b] + tie < lower_lo[_highest(lower_lo)]:
        return DOMINATED
    # Contenders, the highest first: their vertices, then the point of b, then the
    # first node of a search for a better vertex.
    threshold = narrow[UPPER_LO, b]
    swept = False
    for a in range(narrow.shape[1]):
        narrow[POLISHED, a] = min(1.0, narrow[POLISHED, a])
    while True:
        a = _highest(lower_hi)
        if lower_hi[a] <= threshold:
            return KEPT
        if narrow[POLISHED, a] == 0.0:
            improve_vertex(forms, wide, narrow, a, imprecision)
            tighten(narrow, a, imprecision)
        elif not swept:
            below = lower_lo[_highest(lower_lo)] - tie
            settled = _sweep_point(
                forms, wide, narrow, b, imprecision, below, lower_hi[a], gradient
            )
            if narrow[UPPER_HI, b] < below:
                return DOMINATED
            if not settled:
                return OPEN
            swept = True
            threshold = narrow[UPPER_HI, b] + tie
        elif narrow[POLISHED, a] == 1.0:
            narrow[POLISHED, a] = 2.0
            _search_root(forms, wide, narrow, a, imprecision, threshold, gradient)
            if lower_lo[a] > threshold:
                return DOMINATED
        else:
            return OPEN


@njit(**INNER)
def is_dominated(
    forms: FloatArray,
    wide: FloatArray,
    narrow: FloatArray,
    b: int,
    imprecision: float,
    max_nodes: int,
    gradient: FloatArray,
) -> int:
    """Does some class dominate b? Brackets must have been set at this imprecision.

    Class a dominates b iff the lower bound of a exceeds the upper bound of b; brackets
    of both are tightened until they tell. Returns KEPT, DOMINATED, or UNANSWERED when
    `max_nodes` branchings a question did not settle it; ties are KEPT.
    """
    answer = _quick_answer(forms, wide, narrow, b, imprecision, gradient)
    if answer != OPEN:
        return answer
    lower_lo, lower_hi = narrow[LOWER_LO], narrow[LOWER_HI]
    tie = _TIE * (1.0 + abs(narrow[UPPER_HI, b]))
    below = lower_lo[_highest(lower_lo)] - tie
    above = lower_hi[_highest(lower_hi)]
    improve_point(forms, wide, narrow, b, imprecision, below, above)
    if narrow[UPPER_HI, b] < below:
        return DOMINATED
    # Is the lower bound of some class above the threshold? Highest hope first.
    threshold = narrow[UPPER_HI, b] + tie
    answer = KEPT
    hope = lower_hi.copy()
    while True:
        a = _highest(hope)
        if hope[a] <= threshold:
            return answer
        if narrow[POLISHED, a] == 0.0:
            improve_vertex(forms, wide, narrow, a, imprecision)
            tighten(narrow, a, imprecision)
            hope[a] = lower_hi[a]
            continue
        search_vertex(forms, wide, narrow, a, imprecision, threshold, max_nodes)
        if lower_lo[a] > threshold:
            return DOMINATED
        if lower_hi[a] > threshold:
            answer = UNANSWERED
        hope[a] = -math.inf


@njit(**COMPILE)
def decide_quickly(
    forms: FloatArray,
    wide: FloatArray,
    narrow: FloatArray,
    points: FloatArray,
    base: FloatArray,
    imprecision: float,
    kept: BoolArray,
    is_open: BoolArray,
) -> None:
    """Write the undominated classes of every row that cheap bounds can decide.

    The others are marked in `is_open`, (n,), for `decide_rows`: few, and none in many
    a table, so that the search need not even be compiled.
    """
    n_classes = base.shape[1]
    gradient = np.empty(points.shape[1])
    spread = np.empty(n_classes)  # how far a squared distance's root can move
    for k in range(n_classes):
        spread[k] = imprecision * narrow[UNIT, k] * math.sqrt(narrow[REACH, k])
    for i in range(len(base)):
        is_open[i] = False
        if _keep_by_distance(base[i], spread, narrow, kept[i]) == 1:
            continue
        start_row(wide, narrow, points, base, i)
        set_imprecision(narrow, imprecision)
        for b in range(n_classes):
            if kept[i, b]:
                answer = _quick_answer(forms, wide, narrow, b, imprecision, gradient)
                kept[i, b] = answer != DOMINATED
                if answer == OPEN:
                    is_open[i] = True
                    break


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
    gradient = np.empty(points.shape[1])
    unanswered = 0
    for i in range(len(base)):
        start_row(wide, narrow, points, base, i)
        set_imprecision(narrow, imprecision)
        for b in range(base.shape[1]):
            answer = is_dominated(
                forms, wide, narrow, b, imprecision, max_nodes, gradient
            )
            kept[i, b] = answer != DOMINATED
            unanswered += answer == UNANSWERED
    return unanswered


@njit(**INNER)
def _keep_by_distance(
    base: FloatArray, spread: FloatArray, narrow: FloatArray, kept: BoolArray
) -> int:
    # What the distances alone rule out; returns how many classes are left. A single
    # one is the answer, since no set is empty.
    floor = -math.inf
    for k in range(len(base)):
        farthest = math.sqrt(2.0 * base[k]) + spread[k]
        floor = max(floor, narrow[LOW, k] - 0.5 * farthest * farthest)
    left = 0
    for k in range(len(base)):
        nearest = max(0.0, math.sqrt(2.0 * base[k]) - spread[k])
        highest = narrow[UP, k] - 0.5 * nearest * nearest
        kept[k] = highest + _TIE * (1.0 + abs(highest)) >= floor
        left += kept[k]
    return left


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
        set_imprecision(narrow, imprecision)
        for k in range(base.shape[1]):
            if imprecision >= NEGLIGIBLE:
                know_field(forms, wide, narrow, k)
                tighten(narrow, k, imprecision)
                improve_vertex(forms, wide, narrow, k, imprecision)
                search_vertex(forms, wide, narrow, k, imprecision, math.nan, max_nodes)
                improve_point(forms, wide, narrow, k, imprecision, -math.inf, math.inf)
                if i < corners.shape[1]:
                    for j in range(points.shape[1]):
                        corners[0, i, k, j] = -wide[VERTEX, k, j]
                        corners[1, i, k, j] = wide[POINT, k, j]
            lower[i, k] = narrow[LOWER_LO, k]
            upper[i, k] = narrow[UPPER_HI, k]
            distance = narrow[LOWER_HI, k] - narrow[LOWER_LO, k]
            unanswered += distance > _TIE * (1.0 + abs(narrow[LOWER_HI, k]))
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
    # Smallest c > 0 with constant + slope c + curvature c^2 / 2 >= 0, for
    # constant < 0 <= slope; infinite if there is none.
    discriminant = slope * slope - 2.0 * curvature * constant
    if discriminant < 0.0:
        return math.inf
    divisor = slope + math.sqrt(discriminant)
    return -2.0 * constant / divisor if divisor > 0.0 else math.inf


@njit(**INNER)
def _joins(
    narrow: FloatArray, b: int, linear: float, quadratic: float
) -> tuple[float, int]:
    # Upper bound of the critical value of b, and the class that sets it. Class b may
    # move to share * t, 0 <= share <= 1, with field't = linear, t'Bt = quadratic.
    unit = narrow[UNIT, b]
    fullest = linear / (unit * quadratic) if quadratic > 0.0 else math.inf
    behind = narrow[UP, b] - narrow[BASE, b]
    latest = 0.0
    strongest = -1
    for a in range(narrow.shape[1]):
        constant = behind - (narrow[LOW, a] - narrow[BASE, a])
        if a == b or not constant < -_TIE * (1.0 + abs(behind)):
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
    # `_joins` for the best point known of class b.
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
    # Upper bound of the critical value of b, by improving the vertex and the point
    # at their crossing until it stays.
    for a in range(narrow.shape[1]):
        know_field(forms, wide, narrow, a)
    joins, a = _joins(narrow, b, narrow[SLOPE, b], narrow[REACH, b])
    for _ in range(_IMPROVEMENTS):
        if a < 0:
            break
        at = joins if joins < math.inf else 1.0
        improve_vertex(forms, wide, narrow, a, at)
        improve_point(forms, wide, narrow, b, at, -math.inf, math.inf)
        earlier, a = _joins_at_point(forms, wide, narrow, b)
        settled = earlier >= joins * (1.0 - 0.1 * _RELATIVE)
        joins = min(joins, earlier)
        if settled:
            break
    return joins


@njit(**INNER)
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
    gradient = np.empty(points.shape[1])
    unanswered = 0
    for i in range(len(base)):
        start_row(wide, narrow, points, base, i)
        if len(grid) > 0:
            set_imprecision(narrow, grid[-1])
        for b in range(base.shape[1]):
            critical[i, b] = 0.0
            if narrow[UP, b] == -math.inf:
                critical[i, b] = math.inf
            elif len(grid) > 0:
                answer = is_dominated(
                    forms, wide, narrow, b, grid[-1], max_nodes, gradient
                )
                if answer == DOMINATED:
                    critical[i, b] = math.inf
        for b in range(base.shape[1]):
            if critical[i, b] == 0.0:
                critical[i, b], asked = _critical(
                    forms, wide, narrow, b, max_nodes, grid, gradient
                )
                unanswered += asked
    return unanswered


@njit(**INNER)
def _critical(
    forms: FloatArray,
    wide: FloatArray,
    narrow: FloatArray,
    b: int,
    max_nodes: int,
    grid: FloatArray,
    gradient: FloatArray,
) -> tuple[float, int]:
    joined = _descend(forms, wide, narrow, b)
    out = 0.0
    stride = 1
    unanswered = 0  # 1 once a probe met the node limit, and kept the class
    while joined > 0.0:
        probe = _probe(grid, out, joined, stride)
        if probe < 0.0:
            break
        set_imprecision(narrow, probe)
        answer = is_dominated(forms, wide, narrow, b, probe, max_nodes, gradient)
        if answer == DOMINATED:
            out = probe
            stride = 1
        else:
            if answer == UNANSWERED:
                unanswered = 1
            better, _ = _joins_at_point(forms, wide, narrow, b)
            joined = max(out, min(probe, better))
            stride *= 4
    return joined, unanswered
