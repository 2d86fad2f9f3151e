"""Diagonal that dominates a quadratic form on the cube: the max-cut dual."""

from __future__ import annotations

import numpy as np

from prudent.core.types import FloatArray

_PRECISION = 1e-3  # relative gap; the vector steers bounds, it decides nothing
_MAX_STEPS = 60


def max_cut_dual(form: FloatArray) -> FloatArray:
    """Smallest diagonal d, in sum, with Diag(d) - `form` positive semidefinite.

    The sum is within 0.1 % of the least possible and at least the maximum of t'Bt over
    the cube |t_i| <= 1. Every principal block of d serves the same block of B.

    Newton's method on ``tau * sum(d) - log det(Diag(d) - B)``, whose minimiser
    is within p / tau of the optimum; gradient tau - diag(G), Hessian G * G
    (element by element) for G = (Diag(d) - B)^-1. About 15 steps of O(p^3). A last
    shift by the smallest eigenvalue makes the claim hold in floating point.
    """
    size = len(form)
    scale = max(float(np.trace(form)) / size, np.finfo(float).tiny)
    target = form / scale
    diagonal = np.abs(target).sum(axis=1) * 1.01 + 0.01
    tau = size / (_PRECISION * diagonal.sum())
    weight = min(1.0, tau)
    for _ in range(_MAX_STEPS):
        slack_inverse = np.linalg.inv(np.diag(diagonal) - target)
        gradient = weight - np.diag(slack_inverse)
        step = np.linalg.solve(slack_inverse * slack_inverse, -gradient)
        decrement = float(-gradient @ step)
        # Damped by 1 / (1 + sqrt(decrement)): stays feasible (self-concordance).
        diagonal = diagonal + step / (1.0 + np.sqrt(max(decrement, 0.0)))
        if decrement < 0.5:
            if weight >= tau:
                break
            weight = min(20.0 * weight, tau)
    lowest = float(np.linalg.eigvalsh(np.diag(diagonal) - target)[0])
    return scale * (diagonal - min(0.0, lowest) + 1e-13 * diagonal.max())
