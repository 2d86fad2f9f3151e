"""The equations of `formulas`, compiled; imported only when many rows are scored.

One kernel per equation: the loop of `scores.solve_arrays` on blocks that stay in the
first cache. The formulas are inlined and have no branch, so the compiler works on
several rows at once. First use compiles for a few seconds, then the disk cache serves;
the cache watches this file only: touch it after a change of `formulas`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numba.extending import register_jitable

from prudent.core.logarithm import split_log
from prudent.optimistic import formulas
from prudent.optimistic.formulas import EQUATIONS, MAX_SWEEPS, TOLERANCE, Equation

BLOCK = 512
# Division by zero gives inf as in NumPy, instead of a branch that stops vectorising.
OPTIONS: dict[str, Any] = {"error_model": "numpy", "fastmath": {"contract"}}

for _helper in (
    split_log,
    formulas.log1p_excess,
    formulas.log1p_remainder,
    formulas._householder_step,
    formulas._factor,
):
    register_jitable(**OPTIONS)(_helper)


def _compile(equation: Equation) -> Any:
    """Kernel (M, d, rho, a, b, out) -> converged; M and out may be strided."""
    start, update, value = (
        register_jitable(inline="always", **OPTIONS)(function) for function in equation
    )

    @njit(cache=True, **OPTIONS)
    def kernel(  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
        M, d, rho, a, b, out
    ):
        m, x = np.empty(BLOCK), np.empty(BLOCK)
        converged = True
        for low in range(0, M.size, BLOCK):
            size = min(BLOCK, M.size - low)
            m[:size] = M[low : low + size]
            for i in range(size):
                x[i] = start(m[i], d, rho, a, b)
            n_open = size
            sweep = 0
            while n_open > 0 and sweep < MAX_SWEEPS:
                n_open = 0
                sweep += 1
                for i in range(size):
                    factor = update(m[i], x[i], d, rho)
                    x[i] *= factor
                    n_open += abs(factor - 1.0) > TOLERANCE
            converged &= n_open == 0
            for i in range(size):
                out[low + i] = value(m[i], x[i], d, rho)
        return converged

    return kernel


#: As `scores.solve_arrays` of each equation, compiled.
KERNELS = {equation: _compile(equation) for equation in EQUATIONS.values()}
