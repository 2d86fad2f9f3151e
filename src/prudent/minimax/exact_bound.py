"""Tight bound on losing any duel: the generalised Chebyshev program.

Among all laws with mean 0 and covariance R, the largest probability of leaving
{x : x_i < d_i for all i} is the least value of E f over quadratics f(x) = x'Px + 2q'x
+ r that are >= 0 everywhere and >= 1 where some x_i >= d_i. Only the scores of a class
in its own duels matter, so x has K - 1 coordinates.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from prudent.core.types import FloatArray
from prudent.minimax.certificate import MOMENT_ROUNDING

SMALLEST_EIGENVALUE = 1e-12
#: Share of a limit that is set aside for rounding of the scores.
SHARE = 1e-7


def certified_exit_probability(
    normals: FloatArray,
    covariance: FloatArray,
    limits: FloatArray,
    *,
    reach: FloatArray,
    blur: FloatArray,
) -> float:
    """Largest probability that some score, as computed, reaches its limit.

    Scores are those of rows less their mean along normals (m, n) of unit deviation,
    limits are in standard deviations; 1 unless all are > 0. `covariance` (n, n)
    includes every radius; `reach` and `blur` as in `ClassMargin`, in deviations.
    """
    if limits.min() <= 0:
        return 1.0
    R = normals @ covariance @ normals.T
    R += np.diag(len(limits) * MOMENT_ROUNDING * reach**2)
    # Rounding beyond SHARE of a limit is a matter of its own.
    rounded = float(np.sum((blur / (SHARE * limits)) ** 2))
    return largest_exit_probability(R, (1 - SHARE) * limits) + rounded


def largest_exit_probability(R: FloatArray, limits: FloatArray) -> float:
    """Largest probability that some x_i >= limits[i], for mean 0 and covariance R.

    R (m, m) has a unit diagonal, the limits (m,) are > 0. A valid upper bound: what the
    solver's quadratic lacks in feasibility is added to its value. ImportError without
    clarabel. Vandenberghe, Boyd and Comanor (2007), Generalized Chebyshev bounds via
    semidefinite programming, SIAM Review 49, 52-64.
    """
    # x = F u with u of covariance I: a singular R would leave the quadratic unbounded.
    values, vectors = np.linalg.eigh(R)
    F = vectors * np.sqrt(np.maximum(values, SMALLEST_EIGENVALUE * values[-1]))
    m, rank = F.shape
    size = rank + 1
    above = np.tril_indices(size)  # of the transpose: the upper triangle by columns
    root = np.where(above[0] == above[1], 1.0, np.sqrt(2.0))

    def packed(matrix: FloatArray) -> FloatArray:
        return matrix[above] * root

    corner = np.zeros((size, size))
    corner[rank, rank] = 1.0
    multipliers = []
    for row, limit in zip(F, limits, strict=True):
        B = -limit * corner
        B[rank, :rank] = B[:rank, rank] = 0.5 * row
        multipliers.append(B)

    n_packed = len(root)
    minus_Z = -sparse.eye_array(n_packed)
    blocks: list[list[Any]] = [[minus_Z, sparse.csc_array((n_packed, m))]]
    right = [np.zeros(n_packed)]
    for i, B in enumerate(multipliers):
        column = sparse.csc_array(
            (packed(B), (np.arange(n_packed), np.full(n_packed, i))), (n_packed, m)
        )
        blocks.append([minus_Z, column])
        right.append(-packed(corner))
    blocks.append([sparse.csc_array((m, n_packed)), -sparse.eye_array(m)])
    right.append(np.zeros(m))
    solution = _solve_cone(
        np.concatenate([packed(np.eye(size)), np.zeros(m)]),
        sparse.block_array(blocks, format="csc"),
        np.concatenate(right),
        [size] * (m + 1),
        m,
    )
    Z = np.zeros((size, size))
    Z[above] = solution[:n_packed] / root
    Z = Z + Z.T - np.diag(np.diag(Z))
    taus = np.maximum(solution[n_packed:], 0.0)
    required = [
        Z,
        *(Z - corner - t * B for t, B in zip(taus, multipliers, strict=True)),
    ]
    lacking = max(0.0, -min(float(np.linalg.eigvalsh(M)[0]) for M in required))
    value = float(np.trace(Z)) + lacking * size
    return min(max(value, 0.0), 1.0)


def _solve_cone(
    objective: FloatArray,
    A: Any,
    b: FloatArray,
    semidefinite: list[int],
    nonnegative: int,
) -> FloatArray:
    """Minimise objective'x with b - A x in semidefinite cones, then x >= 0."""
    try:
        import clarabel
    except ImportError as error:
        raise ImportError(
            "bound='exact' needs clarabel; install it with: "
            "pip install 'prudent[solvers]'"
        ) from error
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    cones = [clarabel.PSDTriangleConeT(n) for n in semidefinite]
    cones.append(clarabel.NonnegativeConeT(nonnegative))
    nothing = sparse.csc_matrix((len(objective), len(objective)))
    solver = clarabel.DefaultSolver(
        nothing, objective, sparse.csc_matrix(A), b, cones, settings
    )
    return np.asarray(solver.solve().x)
