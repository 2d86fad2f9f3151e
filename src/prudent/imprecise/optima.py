"""Compiled extremes of a quadratic on the cube: the minimum, and the NP-hard maximum.

The minimum of (radius / 2) t' coupling t - field't on |t_i| <= 1 is a convex problem.
The maximum of field't + (radius / 2) t' coupling t sits on a vertex and is NP-hard in
general: branch and bound, with certified brackets at every stop.

Few functions, plain arrays and plain loops keep the first use short: every function
costs its own passes of the compiler, and is optimised again in each of its callers.
The disk cache looks at the file of the outermost function only: touch `kernels` after
a change here. Without compilation (``NUMBA_DISABLE_JIT=1``) the same functions run as
plain Python.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from prudent.core.types import FloatArray

# Sums may be reordered (vector units); infinities keep their meaning.
COMPILE: dict[str, Any] = {
    "cache": True,
    "fastmath": {"reassoc", "contract"},
    "error_model": "numpy",
}
# Of what only compiled code calls: no entry in the cache, and no way in from Python.
STEP = COMPILE | {"cache": False, "no_cfunc_wrapper": True}
INNER = STEP | {"no_cpython_wrapper": True}

SIGN, PULL, REACHES, NODE_POINT, GRADIENT = 0, 1, 2, 3, 4  # in the stack of a search

_DESCENT_SWEEPS = 15.0
_RELAXATION_SWEEPS = 12
_ASCENT_SWEEPS = 100
_RELATIVE_GAP = 1e-10  # between the bounds of a maximum searched to the end
_RIDGE = 1e-15  # of the trace: keeps a free block solvable


# --- the minimum ------------------------------------------------------------------


@njit(**INNER)
def sweep(
    coupling: FloatArray,
    field: FloatArray,
    radius: float,
    point: FloatArray,
    gradient: FloatArray,
    above: float,
    below: float,
    gap_allowed: float,
    n_sweeps: float,
) -> tuple[float, float]:
    """Bracket the minimum as `box_minimum`, by coordinate descent alone.

    The bracket may still be open after `n_sweeps`; with none it is that of `point`.
    `gradient` is written: radius coupling t - field at the last point.
    """
    n = len(field)
    for j in range(n):
        gradient[j] = -field[j]
    for i in range(n):
        change = radius * point[i]
        if change != 0.0:
            for j in range(n):
                gradient[j] += change * coupling[i, j]
    lower, upper = -math.inf, math.inf
    for sweep in range(int(n_sweeps) + 1):
        for i in range(n if sweep > 0 else 0):
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
        # Value at `point`, and less the Frank-Wolfe gap: no convex function with
        # this gradient falls further within the cube.
        upper = 0.0
        gap = 0.0
        for i in range(n):
            upper += 0.5 * (gradient[i] - field[i]) * point[i]
            gap += abs(gradient[i]) + gradient[i] * point[i]
        lower = max(lower, upper - gap)
        if lower > above or upper < below or upper - lower <= gap_allowed:
            break
    return lower, upper


@njit(**INNER)
def _newton_step(
    coupling: FloatArray,
    radius: float,
    gradient: FloatArray,
    fixed: FloatArray,
    work: FloatArray,
    step: FloatArray,
    index: FloatArray,
) -> int:
    """Write the step to the minimum over the features that are not `fixed`.

    It solves radius coupling step = -gradient on the free block by Cholesky; `index`
    holds the features of the block, whose number is returned.
    """
    m = 0
    ridge = 0.0
    for i in range(len(gradient)):
        ridge += _RIDGE * radius * coupling[i, i]
        if fixed[i] == 0.0:
            index[m] = i
            step[m] = -gradient[i]
            m += 1
    for i in range(m):
        for j in range(i + 1):
            total = radius * coupling[int(index[i]), int(index[j])]
            for l in range(j):
                total -= work[i, l] * work[j, l]
            if i == j:
                work[i, i] = math.sqrt(max(total + ridge, ridge))
            else:
                work[i, j] = total / work[j, j]
        total = step[i]
        for l in range(i):
            total -= work[i, l] * step[l]
        step[i] = total / work[i, i]
    for back in range(m):
        i = m - 1 - back
        step[i] /= work[i, i]
        for l in range(i):
            step[l] -= work[i, l] * step[i]
    return m


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
    n = len(field)
    work = np.empty((n + 4, n))
    gradient, step, fixed, index = work[n], work[n + 1], work[n + 2], work[n + 3]
    sweeps = _DESCENT_SWEEPS
    lower, upper = sweep(
        coupling, field, radius, point, gradient, above, below, gap_allowed, sweeps
    )
    if lower > above or upper < below or upper - lower <= gap_allowed:
        return min(lower, upper), upper
    # Primal active set: one exchange a step, the free block solved exactly.
    for i in range(n):
        fixed[i] = 1.0 if abs(point[i]) >= 1.0 else 0.0  # 1: held at its side
    optimal = False  # to rounding
    for _ in range(20 + 10 * n):
        certified, upper = sweep(
            coupling, field, radius, point, gradient, above, below, gap_allowed, 0.0
        )
        lower = max(lower, certified)
        if optimal or upper - lower <= gap_allowed:
            break
        m = _newton_step(coupling, radius, gradient, fixed, work, step, index)
        length = 1.0
        blocking = -1
        for l in range(m):
            i = int(index[l])
            reached = point[i] + step[l]
            if abs(reached) > 1.0:
                side = 1.0 if reached > 0.0 else -1.0
                possible = (side - point[i]) / step[l]
                if possible < length:
                    length = possible
                    blocking = i
        for l in range(m):
            i = int(index[l])
            point[i] = min(1.0, max(-1.0, point[i] + length * step[l]))
        if blocking >= 0:
            point[blocking] = 1.0 if point[blocking] > 0.0 else -1.0
            fixed[blocking] = 1.0
            continue
        sweep(coupling, field, radius, point, gradient, above, below, gap_allowed, 0.0)
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


# --- the maximum ------------------------------------------------------------------


@njit(**COMPILE)
def ascend(
    coupling: FloatArray,
    field: FloatArray,
    radius: float,
    vertex: FloatArray,
    image: FloatArray,
) -> tuple[float, float]:
    """Flip single signs of a vertex as long as phi grows.

    phi(s) = field's + (radius / 2) s' coupling s; `image` becomes coupling @ vertex.
    Returns field'vertex and vertex' coupling vertex. Any vertex is a valid answer, and
    where rounding decides what grows, signs would be flipped to and fro for ever: the
    sweeps are limited.
    """
    n = len(field)
    for i in range(n):
        total = 0.0
        for j in range(n):
            total += coupling[i, j] * vertex[j]
        image[i] = total
    for _ in range(_ASCENT_SWEEPS):
        improved = False
        for i in range(n):
            pull = field[i] + radius * (image[i] - coupling[i, i] * vertex[i])
            if pull * vertex[i] < 0.0:
                change = -2.0 * vertex[i]
                vertex[i] = -vertex[i]
                for j in range(n):
                    image[j] += change * coupling[i, j]
                improved = True
        if not improved:
            break
    linear = 0.0
    quadratic = 0.0
    for i in range(n):
        linear += field[i] * vertex[i]
        quadratic += vertex[i] * image[i]
    return linear, quadratic


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
    fix: float,
) -> None:
    """Put t_i of a node at a value; with `fix` 1 it is a sign, and stays there."""
    change = radius * (value - node[NODE_POINT, i])
    if change != 0.0:
        node[NODE_POINT, i] = value
        for j in range(len(dual)):
            node[GRADIENT, j] += change * coupling[i, j]
        node[GRADIENT, i] -= change * dual[i]
    if fix > 0.0:
        node[SIGN, i] = value
        for j in range(len(dual)):
            if j != i:
                node[PULL, j] += radius * value * coupling[i, j]
                node[REACHES, j] -= radius * abs(coupling[i, j])


@njit(**STEP)
def start_node(
    coupling: FloatArray,
    dual: FloatArray,
    field: FloatArray,
    radius: float,
    point: FloatArray,
    node: FloatArray,
) -> None:
    """The node of all vertices: no sign is fixed."""
    n = len(field)
    for i in range(n):
        reach = -abs(coupling[i, i])
        image = 0.0
        for j in range(n):
            reach += abs(coupling[i, j])
            image += coupling[i, j] * point[j]
        node[SIGN, i] = 0.0
        node[PULL, i] = field[i]
        node[REACHES, i] = radius * reach
        node[NODE_POINT, i] = point[i]
        node[GRADIENT, i] = field[i] + radius * (image - dual[i] * point[i])


@njit(**STEP)
def bound_node(
    coupling: FloatArray,
    dual: FloatArray,
    field: FloatArray,
    radius: float,
    node: FloatArray,
    target: float,
) -> float:
    """Fix what is known of a node, and bound its maximum; no effort below `target`.

    Persistency: a sign whose pull exceeds its reach is known (exact). The first bound
    lets every free sign follow its pull and all help each other; the second is that of
    the concave relaxation field't + (radius / 2)(t' coupling t + dual'(1 - t^2)), which
    is phi itself on vertices, by coordinate ascent: certified after every sweep, ended
    when it is below `target` or never will be.
    """
    n = len(field)
    fixed_one = True
    while fixed_one:
        fixed_one = False
        for i in range(n):
            pull = node[PULL, i]
            if node[SIGN, i] == 0.0 and abs(pull) >= node[REACHES, i]:
                sign = 1.0 if pull >= 0.0 else -1.0
                _move(coupling, dual, radius, node, i, sign, 1.0)
                fixed_one = True
    bound = 0.0
    for i in range(n):
        bound += 0.5 * radius * coupling[i, i]
        if node[SIGN, i] == 0.0:
            bound += abs(node[PULL, i]) + 0.5 * node[REACHES, i]
        else:  # of two fixed signs each feels the other, hence the half
            bound += 0.5 * (field[i] + node[PULL, i]) * node[SIGN, i]
    if bound < target:
        return bound
    for _ in range(_RELAXATION_SWEEPS):
        for i in range(n):
            if node[SIGN, i] == 0.0:
                curvature = radius * (dual[i] - coupling[i, i])
                slope = node[GRADIENT, i]
                if curvature > 0.0:
                    value = node[NODE_POINT, i] + slope / curvature
                    value = min(1.0, max(-1.0, value))
                else:
                    value = 1.0 if slope > 0.0 else -1.0
                _move(coupling, dual, radius, node, i, value, 0.0)
        value = 0.0
        slack = 0.0
        for i in range(n):
            slope = node[GRADIENT, i]
            value += 0.5 * (field[i] + slope) * node[NODE_POINT, i]
            value += 0.5 * radius * dual[i]
            if node[SIGN, i] == 0.0:
                slack += abs(slope) - slope * node[NODE_POINT, i]
        bound = min(bound, value + slack)
        if bound < target or value >= target:
            break
    return bound


@njit(**INNER)
def _rounded(
    coupling: FloatArray,
    field: FloatArray,
    radius: float,
    node: FloatArray,
    lower: float,
    best: FloatArray,
    vertex: FloatArray,
    image: FloatArray,
) -> float:
    """Return the value of the vertex near the point of a node, if above `lower`.

    The vertex is then written to `best`, whose value is `lower` otherwise.
    """
    for i in range(len(best)):
        vertex[i] = -1.0 if node[NODE_POINT, i] < 0.0 else 1.0
    linear, quadratic = ascend(coupling, field, radius, vertex, image)
    value = linear + 0.5 * radius * quadratic
    if value <= lower:
        return lower
    for i in range(len(best)):
        best[i] = vertex[i]
    return value


@njit(**INNER)
def _branching(coupling: FloatArray, dual: FloatArray, node: FloatArray) -> int:
    """Return the free sign whose rounding costs the relaxation most, or n."""
    n = len(dual)
    branch = n
    most = -1.0
    for i in range(n):
        doubt = (dual[i] - coupling[i, i]) * (1.0001 - abs(node[NODE_POINT, i]))
        if node[SIGN, i] == 0.0 and doubt > most:
            most = doubt
            branch = i
    return branch


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
    depth = n + 2 if max_nodes > 0 else 1
    stack = np.empty((depth, 5, n))  # the open nodes, deepest on top
    bound = np.empty(depth)
    spare = np.empty((2, n))
    image, vertex = spare[0], spare[1]
    linear, quadratic = ascend(coupling, field, radius, best, image)
    lower = linear + 0.5 * radius * quadratic
    start_node(coupling, dual, field, radius, best, stack[0])
    bound[0] = math.inf
    closed = lower
    top = 1
    branched = 0
    while top > 0 and lower < enough:
        top -= 1
        node = stack[top]
        target = max(floor, lower + _RELATIVE_GAP * (1.0 + abs(lower)))
        within = bound_node(coupling, dual, field, radius, node, target)
        bound[top] = min(bound[top], within)
        if bound[top] < target:
            closed = max(closed, bound[top])
            continue
        lower = _rounded(coupling, field, radius, node, lower, best, vertex, image)
        branch = _branching(coupling, dual, node)
        if branch == n:
            closed = max(closed, bound[top])
            continue
        if branched >= max_nodes:
            top += 1
            break
        branched += 1
        near = -1.0 if node[NODE_POINT, branch] < 0.0 else 1.0
        for part in range(5):
            for i in range(n):
                stack[top + 1, part, i] = node[part, i]
        bound[top + 1] = bound[top]
        _move(coupling, dual, radius, node, branch, -near, 1.0)
        # The twin goes first.
        _move(coupling, dual, radius, stack[top + 1], branch, near, 1.0)
        top += 2
    upper = max(lower, closed)
    for i in range(top):
        upper = max(upper, bound[i])
    return lower, upper, branched
