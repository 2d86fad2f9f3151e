"""Compiled extremes of a convex quadratic over the cube |t_i| <= 1.

The minimum is a convex problem; the maximum sits on a vertex and is NP-hard in
general. Import this module lazily: it loads numba. Without compilation
(``NUMBA_DISABLE_JIT=1``) the same functions run as plain NumPy code.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from prudent.core.types import FloatArray

# Sums may be reordered (vector units); infinities keep their meaning.
COMPILE: dict[str, Any] = {
    "cache": True,
    "fastmath": {"reassoc", "contract"},
    "error_model": "numpy",
}

_DESCENT_SWEEPS = 15
_RELAXATION_SWEEPS = 12
_RELATIVE_GAP = 1e-10  # between the bounds of a maximum searched to the end
_RIDGE = 1e-15  # of the trace: keeps a free block solvable


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


@njit(**COMPILE)
def _gradient(
    coupling: FloatArray, field: FloatArray, radius: float, point: FloatArray
) -> FloatArray:
    gradient = -field
    for i in range(len(point)):
        change = radius * point[i]
        if change != 0.0:
            for j in range(len(point)):
                gradient[j] += change * coupling[i, j]
    return gradient


@njit(**COMPILE)
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
    n = len(field)
    gradient = _gradient(coupling, field, radius, point)
    lower = -np.inf
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
            return min(lower, upper), upper
    return _active_set(coupling, field, radius, point, lower, gap_allowed)


@njit(**COMPILE)
def _active_set(
    coupling: FloatArray,
    field: FloatArray,
    radius: float,
    point: FloatArray,
    lower: float,
    gap_allowed: float,
) -> tuple[float, float]:
    # Primal active set: one exchange a step, the free block solved exactly.
    free = np.abs(point) < 1.0
    ridge = _RIDGE * radius * np.trace(coupling)
    upper = np.inf
    optimal = False  # to rounding
    for _ in range(20 + 10 * len(field)):
        gradient = _gradient(coupling, field, radius, point)
        certified, upper = _bracket(field, gradient, point)
        lower = max(lower, certified)
        if optimal or upper - lower <= gap_allowed:
            break
        index = np.flatnonzero(free)
        block = np.empty((len(index), len(index)))
        for i in range(len(index)):
            for j in range(len(index)):
                block[i, j] = radius * coupling[index[i], index[j]]
            block[i, i] += ridge
        step = np.linalg.solve(block, -gradient[index])
        length = 1.0
        blocking = -1
        for i in range(len(index)):
            reached = point[index[i]] + step[i]
            if abs(reached) > 1.0:
                possible = (np.sign(reached) - point[index[i]]) / step[i]
                if possible < length:
                    length = possible
                    blocking = index[i]
        for i in range(len(index)):
            moved = point[index[i]] + length * step[i]
            point[index[i]] = min(1.0, max(-1.0, moved))
        if blocking >= 0:
            point[blocking] = 1.0 if point[blocking] > 0.0 else -1.0
            free[blocking] = False
            continue
        gradient = _gradient(coupling, field, radius, point)
        inward = np.where(free, 0.0, gradient * point)
        release = int(np.argmax(inward))
        optimal = inward[release] <= 0.0
        free[release] = True
    return min(lower, upper), upper


class Node(NamedTuple):
    """A sub-problem: some signs are fixed, the others free; one row a node."""

    sign: FloatArray  # (p,) 0 marks a free sign
    pull: FloatArray  # (p,) linear coefficient once the fixed signs are in
    reach: FloatArray  # (p,) largest effect of the other free signs on each
    point: FloatArray  # (p,) t of the relaxation, equal to the sign where fixed
    gradient: FloatArray  # (p,) of the relaxation at `point`


@njit(**COMPILE)
def _fix(
    coupling: FloatArray,
    dual: FloatArray,
    radius: float,
    node: Node,
    i: int,
    sign: float,
) -> None:
    node.sign[i] = sign
    _move(coupling, dual, radius, node, i, sign)
    own_pull, own_reach = node.pull[i], node.reach[i]
    for j in range(len(node.sign)):
        node.pull[j] += radius * sign * coupling[i, j]
        node.reach[j] -= radius * abs(coupling[i, j])
    node.pull[i], node.reach[i] = own_pull, own_reach


@njit(**COMPILE)
def _move(
    coupling: FloatArray,
    dual: FloatArray,
    radius: float,
    node: Node,
    i: int,
    value: float,
) -> None:
    change = radius * (value - node.point[i])
    if change != 0.0:
        node.point[i] = value
        for j in range(len(node.point)):
            node.gradient[j] += change * coupling[i, j]
        node.gradient[i] -= change * dual[i]


@njit(**COMPILE)
def _settle(
    coupling: FloatArray,
    dual: FloatArray,
    field: FloatArray,
    radius: float,
    node: Node,
) -> float:
    # Persistency: a sign whose pull exceeds its reach is known (exact). Returns the
    # simple upper bound: every free sign follows its pull and all help each other.
    found = True
    while found:
        found = False
        for i in range(len(field)):
            if node.sign[i] == 0.0 and abs(node.pull[i]) >= node.reach[i]:
                sign = 1.0 if node.pull[i] >= 0.0 else -1.0
                _fix(coupling, dual, radius, node, i, sign)
                found = True
    bound = 0.0
    for i in range(len(field)):
        bound += 0.5 * radius * coupling[i, i]
        if node.sign[i] == 0.0:
            bound += abs(node.pull[i]) + 0.5 * node.reach[i]
        else:  # of two fixed signs each feels the other, hence the half
            bound += 0.5 * (field[i] + node.pull[i]) * node.sign[i]
    return bound


@njit(**COMPILE)
def _relax(
    coupling: FloatArray,
    dual: FloatArray,
    field: FloatArray,
    radius: float,
    node: Node,
    target: float,
) -> float:
    # Coordinate ascent on field't + (radius / 2)(t' coupling t + dual'(1 - t^2)):
    # concave, and phi itself on vertices. Certified after every sweep; stops when
    # the bound is below `target` or never will be.
    bound = np.inf
    for _ in range(_RELAXATION_SWEEPS):
        for i in range(len(field)):
            if node.sign[i] == 0.0:
                curvature = radius * (dual[i] - coupling[i, i])
                if curvature > 0.0:
                    free = node.point[i] + node.gradient[i] / curvature
                    value = min(1.0, max(-1.0, free))
                else:
                    value = 1.0 if node.gradient[i] > 0.0 else -1.0
                _move(coupling, dual, radius, node, i, value)
        value = 0.0
        slack = 0.0
        for i in range(len(field)):
            value += 0.5 * (field[i] + node.gradient[i]) * node.point[i]
            value += 0.5 * radius * dual[i]
            if node.sign[i] == 0.0:
                slack += abs(node.gradient[i]) - node.gradient[i] * node.point[i]
        bound = min(bound, value + slack)
        if bound < target or value >= target:
            break
    return bound


@njit(**COMPILE)
def _root(
    coupling: FloatArray,
    dual: FloatArray,
    field: FloatArray,
    radius: float,
    best: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    # Space for the open nodes, deepest on top, and their bounds; all signs free.
    n = len(field)
    stack = np.empty((5, n + 2, n))
    stack[0, 0] = 0.0
    stack[1, 0] = field
    for i in range(n):
        stack[2, 0, i] = radius * (np.sum(np.abs(coupling[i])) - coupling[i, i])
    stack[3, 0] = best
    stack[4, 0] = field + radius * (coupling @ best - dual * best)
    return stack, np.full(n + 2, np.inf)


@njit(**COMPILE)
def _node(stack: FloatArray, i: int) -> Node:
    return Node(stack[0, i], stack[1, i], stack[2, i], stack[3, i], stack[4, i])


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
    stack, bound = _root(coupling, dual, field, radius, best)
    image = coupling @ best
    vertex = best.copy()
    lower = np.sum((field + 0.5 * radius * image) * best)
    closed = lower
    top = 1
    branched = 0
    while top > 0 and lower < enough:
        top -= 1
        node = _node(stack, top)
        target = max(floor, lower + _RELATIVE_GAP * (1.0 + abs(lower)))
        bound[top] = min(bound[top], _settle(coupling, dual, field, radius, node))
        if bound[top] >= target:
            relaxed = _relax(coupling, dual, field, radius, node, target)
            bound[top] = min(bound[top], relaxed)
        if bound[top] < target:
            closed = max(closed, bound[top])
            continue
        for i in range(n):
            vertex[i] = -1.0 if node.point[i] < 0.0 else 1.0
        image[:] = coupling @ vertex
        ascend(coupling, field, radius, vertex, image)
        value = np.sum((field + 0.5 * radius * image) * vertex)
        if value > lower:
            lower = value
            best[:] = vertex
        free = node.sign == 0.0
        if not np.any(free):
            closed = max(closed, bound[top])
            continue
        if branched >= max_nodes:
            top += 1
            break
        branched += 1
        # Where rounding costs the relaxation most.
        doubt = (dual - np.diag(coupling)) * (1.0001 - np.abs(node.point))
        i = int(np.argmax(np.where(free, doubt, -1.0)))
        near = -1.0 if node.point[i] < 0.0 else 1.0
        stack[:, top + 1] = stack[:, top]
        bound[top + 1] = bound[top]
        _fix(coupling, dual, radius, node, i, -near)
        _fix(coupling, dual, radius, _node(stack, top + 1), i, near)  # goes first
        top += 2
    upper = max(lower, closed)
    for i in range(top):
        upper = max(upper, bound[i])
    return lower, upper, branched
