"""The minimax plane of two classes with known means and covariances, certified."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg.lapack import dpotrf

from prudent.core.types import FloatArray
from prudent.exceptions import DegenerateDataError, SingularCovarianceError
from prudent.minimax.curve import EPS, Balance, ParetoCurve, ScaledDuel, shares
from prudent.minimax.routes import (
    COMPILED_LIMIT,
    NEWTON_LIMIT,
    TIE_SHIFT,
    Answer,
    at_logit,
    lanczos,
    newton,
    separable,
    spectral,
)

#: Smallest kappa that is told apart from coinciding means.
SMALLEST_KAPPA = 1e-12
SINGULAR = (
    "the covariances are singular to working precision: set `covariance_radius` > 0, "
    "or shrink them."
)
COINCIDE = (
    "the class means coincide, so no plane separates the classes: drop a class or "
    "add features that differ between them."
)


@dataclass(frozen=True, slots=True)
class MinimaxSolution:
    """The plane a'z = b that keeps both classes apart in their worst case.

    Attributes
    ----------
    normal : ndarray of shape (n_features,)
        Normal a of the plane, scaled so that a'(mean_pos - mean_neg) = 1.
    kappa : float
        Standard deviations between the plane and each class mean that are left in
        the worst case; negative when no plane separates the uncertainty sets.
    alpha : float
        Probability with which each class is classified correctly under every law
        with its moments, kappa^2 / (1 + kappa^2), 0 for kappa < 0.
    gap : float
        Certified: the largest possible kappa lies within `gap` of `kappa`.
    s : float
        Weight of the negative class's covariance: a solves
        ((1 - s) Sx + s Sy) a ~ mean_pos - mean_neg.
    n_iter : int
        Steps of all solver routes taken.
    distance_pos : float
        a'mean_pos - b, in [0, 1].
    class_kappas : tuple of float
        kappa of the positive and of the negative class; equal to `kappa` unless the
        plane serves another objective.
    mean_gap, cov_pos, cov_neg : ndarray
        The moments of the problem.
    """

    normal: FloatArray
    kappa: float
    alpha: float
    gap: float
    s: float
    n_iter: int
    distance_pos: float
    class_kappas: tuple[float, float]
    mean_gap: FloatArray = field(repr=False)
    cov_pos: FloatArray = field(repr=False)
    cov_neg: FloatArray = field(repr=False)

    @property
    def touching_point(self) -> FloatArray:
        """Common point z of the two ellipsoids, from the mean of the negative class.

        It solves the dual problem: the least max over both classes of the Mahalanobis
        distance ``|z - mean|`` in the metric of the class is kappa, up to `gap`; with
        radii, sqrt(gamma) (kappa + nu). The plane touches both ellipsoids there.

        Returns
        -------
        ndarray of shape (n_features,)
            z - mean_neg; take off `mean_gap` for z - mean_pos. Halfway between the
            means where neither class varies along the normal.
        """
        along_pos, along_neg = self.cov_pos @ self.normal, self.cov_neg @ self.normal
        spreads = float(self.normal @ along_pos), float(self.normal @ along_neg)
        if math.isinf(self.kappa) or not max(spreads) > 0:
            return self.mean_gap / 2
        # From the class that varies more along the normal: it is known better.
        if spreads[0] > spreads[1]:
            share = self.distance_pos / spreads[0]
            point: FloatArray = self.mean_gap - share * along_pos
        else:
            point = (1 - self.distance_pos) / spreads[1] * along_neg
        return point

    def offset_from(self, mean_pos: ArrayLike) -> float:
        """Offset b of the plane, from the mean of the positive class.

        Where one class is constant along the normal the plane would run through that
        class; it stands 1e-9 of the distance between the means off it, or as much as
        rounding asks.
        """
        mean = np.asarray(mean_pos, dtype=np.float64)
        distance = self.distance_pos
        if distance in (0.0, 1.0) and math.isinf(max(self.class_kappas)):
            resolution = 64 * EPS * float(np.abs(self.normal) @ np.abs(mean))
            distance = abs(distance - min(max(TIE_SHIFT, resolution), 0.5))
        return float(self.normal @ mean) - distance


def solve(
    mean_gap: ArrayLike,
    cov_pos: ArrayLike,
    cov_neg: ArrayLike,
    *,
    mean_radius: tuple[float, float] = (0.0, 0.0),
    covariance_factor: tuple[float, float] = (1.0, 1.0),
) -> MinimaxSolution:
    """Find the plane with the best worst-case accuracy over all laws.

    Maximises alpha such that both classes are classified correctly with probability
    at least alpha under every law with the given means and covariances. An additive
    covariance radius rho is part of the arguments: pass cov + rho I.

    Parameters
    ----------
    mean_gap : array-like of shape (n_features,)
        Mean of the positive minus mean of the negative class.
    cov_pos, cov_neg : array-like of shape (n_features, n_features)
        Class covariances, symmetric positive semidefinite, in squared units of
        `mean_gap`.
    mean_radius : tuple of float, default=(0, 0)
        Mahalanobis radius nu >= 0 in which the mean of the positive and of the
        negative class is known.
    covariance_factor : tuple of float, default=(1, 1)
        Factor gamma >= 1 by which the covariance of the positive and of the negative
        class may exceed the given one.

    Returns
    -------
    MinimaxSolution
        Normal, kappa, alpha and a certified gap.

    Raises
    ------
    DegenerateDataError
        If the class means coincide.
    SingularCovarianceError
        If the covariances are so nearly singular that rounding decides the plane.
    ValueError
        If shapes disagree, an entry is not finite, a covariance is not symmetric
        positive semidefinite, or a radius is out of range.

    Notes
    -----
    Solves 1/kappa = min sqrt(a'Sx a) + sqrt(a'Sy a) subject to a'd = 1 (Theorem 2) and
    its robust forms (Theorem 3, class by class). One root in one variable; O(n^3), a
    Cholesky factor being the unit: a few for n <= 128, else one and a short Lanczos
    recursion. Above 128 features semidefiniteness is not checked ahead: the recursion
    meets negative eigenvalues that matter to the plane.

    References
    ----------
    Lanckriet, El Ghaoui, Bhattacharyya, Jordan (2002). A robust minimax approach to
    classification. JMLR 3, Theorems 2 and 3.

    Examples
    --------
    >>> from prudent.minimax import solve
    >>> plane = solve([2, 2], [[2, 0.5], [0.5, 1]], [[1, -0.3], [-0.3, 3]])
    >>> round(plane.kappa, 6), round(plane.alpha, 6)
    (1.056775, 0.527583)
    >>> round(plane.offset_from([1, 2]), 6)
    0.142663
    >>> plane.touching_point.round(4).tolist()
    [0.6034, 1.299]
    """
    d = np.asarray(mean_gap, dtype=np.float64)
    if d.ndim != 1 or not len(d):
        raise ValueError(f"`mean_gap` must have shape (n_features,), got {d.shape}.")
    Sx = np.asarray(cov_pos, dtype=np.float64)
    Sy = np.asarray(cov_neg, dtype=np.float64)
    for name, S in (("cov_pos", Sx), ("cov_neg", Sy)):
        if S.shape != (len(d), len(d)):
            raise ValueError(
                f"`{name}` must have shape {(len(d), len(d))}, got {S.shape}."
            )
    balance = _checked_balance(mean_radius, covariance_factor)
    if len(d) <= COMPILED_LIMIT:
        solution = _solve_compiled(d, Sx, Sy, balance)
        if solution is not None:
            return solution
    if not np.isfinite(d).all():
        raise ValueError("`mean_gap` must hold finite numbers.")
    for name, S in (("cov_pos", Sx), ("cov_neg", Sy)):
        _check_symmetric(name, S)
        if len(d) <= NEWTON_LIMIT:
            _check_semidefinite(name, S)
    return solve_validated(d, Sx, Sy, balance)


def _solve_compiled(
    d: FloatArray, Sx: FloatArray, Sy: FloatArray, balance: Balance
) -> MinimaxSolution | None:
    """Answer for few features, None unless the problem is plainly well posed."""
    from prudent.minimax._compiled import solve_small

    normal = np.empty(len(d))
    kappa, gap, s, distance, n_iter = solve_small(
        np.ascontiguousarray(d),
        np.ascontiguousarray(Sx),
        np.ascontiguousarray(Sy),
        balance.widths,
        balance.radii,
        normal,
    )
    if not n_iter:
        return None
    both = (kappa, kappa)
    return MinimaxSolution(
        normal, kappa, alpha_of(kappa), gap, s, n_iter, distance, both, d, Sx, Sy
    )


def solve_validated(
    d: FloatArray, Sx: FloatArray, Sy: FloatArray, balance: Balance
) -> MinimaxSolution:
    """Solve for moments known to be finite, symmetric and semidefinite."""
    duel = _scaled(d, Sx, Sy, balance)
    answer = (newton if len(d) <= NEWTON_LIMIT else lanczos)(duel)
    n_iter = answer.n_iter if answer else 0
    if answer is None or not answer.is_accepted:
        if len(d) > NEWTON_LIMIT:  # not checked ahead: the recursion found it in doubt
            _check_semidefinite("cov_pos", Sx)
            _check_semidefinite("cov_neg", Sy)
        fallback = spectral(duel)
        n_iter += fallback.n_iter
        if answer is None or fallback.is_accepted or fallback.gap < answer.gap:
            answer = fallback
    return _in_given_units(answer, duel, n_iter, (d, Sx, Sy))


def solve_on_curve(
    d: FloatArray,
    Sx: FloatArray,
    Sy: FloatArray,
    balance: Balance,
    choose: Callable[[ParetoCurve, Balance], float],
) -> MinimaxSolution:
    """Plane at the logit that `choose` picks from the curve of trade-offs."""
    duel = _scaled(d, Sx, Sy, balance)
    curve = ParetoCurve.from_moments(duel.d, duel.X, duel.Y)
    if curve.null_normal is not None:
        answer = separable(duel, curve.null_normal)
    else:
        answer = at_logit(duel, curve, choose(curve, duel.balance))
    return _in_given_units(answer, duel, answer.n_iter, (d, Sx, Sy))


def _scaled(
    d: FloatArray, Sx: FloatArray, Sy: FloatArray, balance: Balance
) -> ScaledDuel:
    if not d.any():
        raise DegenerateDataError(COINCIDE)
    return ScaledDuel.from_moments(d, Sx, Sy, balance)


def _in_given_units(
    answer: Answer,
    duel: ScaledDuel,
    n_iter: int,
    moments: tuple[FloatArray, FloatArray, FloatArray],
) -> MinimaxSolution:
    """The solution, unless the means do not lie apart or the normal does not say so."""
    if not answer.plain_kappa >= 0:
        raise SingularCovarianceError(SINGULAR)
    if answer.plain_kappa < SMALLEST_KAPPA:
        raise DegenerateDataError(COINCIDE)
    s, _ = shares(answer.tau + 2 * math.log(duel.spread[0] / duel.spread[1]))
    return MinimaxSolution(
        answer.normal / duel.scale,
        answer.kappa,
        alpha_of(answer.kappa),
        answer.gap,
        s,
        n_iter,
        answer.distance_pos,
        answer.class_kappas or (answer.kappa, answer.kappa),
        *moments,
    )


def alpha_of(kappa: float) -> float:
    """Worst-case probability of a half-space kappa standard deviations away."""
    kappa = max(kappa, 0.0)
    return 1.0 if math.isinf(kappa) else kappa * kappa / (1 + kappa * kappa)


def _check_symmetric(name: str, S: FloatArray) -> None:
    if not np.isfinite(S).all():
        raise ValueError(f"`{name}` must hold finite numbers.")
    if not np.array_equal(S, S.T):
        asymmetry = float(np.abs(S - S.T).max())
        if asymmetry > 1e-8 * float(np.abs(S).max()):
            raise ValueError(
                f"`{name}` must be symmetric, entries differ by {asymmetry:.3g}; "
                "average it with its transpose."
            )


def _check_semidefinite(name: str, S: FloatArray) -> None:
    # A factor of S + 1e-8 max S_ii I proves the point without eigenvalues.
    shifted = S.copy()
    shifted.flat[:: len(S) + 1] += 1e-8 * float(S.diagonal().max())
    if dpotrf(shifted.T, lower=1, overwrite_a=1)[1] != 0:
        smallest, largest = np.linalg.eigvalsh(S)[[0, -1]]
        if smallest < -1e-8 * largest:
            raise ValueError(
                f"`{name}` must be positive semidefinite, its smallest eigenvalue is "
                f"{smallest:.3g}; `floor_eigenvalues` raises it."
            )


def _checked_balance(
    mean_radius: tuple[float, float], covariance_factor: tuple[float, float]
) -> Balance:
    """Balance condition of two classes, from radii in their allowed ranges."""
    for name, pair, least in (
        ("mean_radius", mean_radius, 0),
        ("covariance_factor", covariance_factor, 1),
    ):
        if len(pair) != 2 or not all(least <= value < math.inf for value in pair):
            raise ValueError(
                f"`{name}` must be two finite numbers >= {least}, got {pair!r}."
            )
    (gx, gy), (nx, ny) = covariance_factor, mean_radius
    return Balance((math.sqrt(gx), math.sqrt(gy)), (float(nx), float(ny)))
