"""Optimistic and pessimistic scores of rows under uncertain class moments."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from prudent.core.types import FloatArray
from prudent.optimistic import formulas
from prudent.optimistic.formulas import MAX_SWEEPS, TOLERANCE, Equation

Likelihood = Literal["gaussian", "nonparametric"]
#: What a ball moves: the mean and the covariance of a class, or its covariance alone.
Ball = Literal["moments", "covariance"]
# Beyond these the squares of the iteration leave the range of float64.
LARGEST_DISTANCE, LARGEST_RADIUS = 1e100, 1e50
# A ball this small moves no score by one rounding error.
SMALLEST_RADIUS = 1e-100
# The pessimistic equations divide by M; below this their value at 0 is reached.
SMALLEST_DISTANCE = 1e-60
# Scores from which the compiled kernel is used; loading it takes about a second once.
COMPILED_FROM = 2**16
ARRAY_BLOCK = 2048


def gaussian_scores(
    distances: ArrayLike, n_features: int, radius: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Pessimistic and optimistic Gaussian log scores.

    Over all means mu and covariances Sigma whose divergence from the nominal pair
    (m, S) is at most `radius`, the least and the largest value of

        L(x) = -(x - mu)' Sigma^-1 (x - mu) - log det Sigma,

    twice the Gaussian log density plus d log(2 pi). Both depend on x only through
    M = (x - m)' S^-1 (x - m).

    Parameters
    ----------
    distances : array-like
        Squared Mahalanobis distances M, in [0, 1e100].
    n_features : int
        Number of features d, >= 1.
    radius : array-like, broadcastable to `distances`
        Radius rho of the ambiguity set, in [0, 1e50]; 0 gives -M for both.

    Returns
    -------
    lower, upper : ndarray, shape of `distances`
        Bounds of L + log det S, with lower <= -M <= upper.

    Raises
    ------
    ValueError
        If a distance, a radius or `n_features` is outside its range.

    Notes
    -----
    upper = min over gamma > 0 of gamma rho + d (1+gamma) log(1 + 1/gamma)
    - (1+gamma) log(1 + M/(1+gamma)) - d (Nguyen, Si and Blanchet 2020, Theorem
    4.1, with the constant that the paper leaves out). `lower` solves the same
    stationarity equation at its other root. The absolute error is below
    1.5e-13 max(1, value).

    Examples
    --------
    >>> from prudent.optimistic import gaussian_scores
    >>> lower, upper = gaussian_scores([0.0, 4.0], 2, 0.3)
    >>> lower.round(4).tolist(), upper.round(4).tolist()
    ([-1.2053, -8.359], [1.0039, -1.5721])
    """
    if not n_features >= 1:
        raise ValueError(f"`n_features` must be >= 1, got {n_features!r}.")
    return (
        _scores(formulas.GAUSSIAN_LOWER, distances, n_features, radius),
        _scores(formulas.GAUSSIAN_UPPER, distances, n_features, radius),
    )


def nonparametric_scores(
    distances: ArrayLike, radius: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Pessimistic and optimistic distances of the nonparametric score.

    Over all means mu and covariances Sigma whose divergence from the nominal pair
    is at most `radius`, the largest (`q_low`, pessimistic) and the least (`q_up`)
    value of (x - mu)' Sigma^-1 (x - mu). 1/(1 + q_up) is the largest probability
    that any distribution with such moments gives to the point x (Nguyen, Si and
    Blanchet 2020, Theorem 3.1).

    Parameters
    ----------
    distances : array-like
        Squared Mahalanobis distances M to the nominal moments, in [0, 1e100].
    radius : array-like, broadcastable to `distances`
        Radius rho of the ambiguity set, in [0, 1e50]; 0 gives M for both.

    Returns
    -------
    q_low, q_up : ndarray, shape of `distances`
        q_low >= M >= q_up >= 0; q_up = 0 where log(1 + M) <= rho.

    Raises
    ------
    ValueError
        If a distance or a radius is outside its range.

    Notes
    -----
    1/(1 + q_low) is the worst over moments of the best probability given the
    moments; it is no lower probability (a continuous law gives every point 0).

    Examples
    --------
    >>> from prudent.optimistic import nonparametric_scores
    >>> q_low, q_up = nonparametric_scores([0.5, 4.0], 0.5)
    >>> q_low.round(4).tolist(), q_up.round(4).tolist()
    ([2.2603, 10.7258], [0.0, 0.6973])
    """
    return (
        _scores(formulas.NONPARAMETRIC_LOWER, distances, 1, radius),
        _scores(formulas.NONPARAMETRIC_UPPER, distances, 1, radius),
    )


@dataclass(frozen=True, slots=True)
class ScoreFunction:
    """One score of one class as a function of the squared distance.

    Calling it solves the equation of the score for many distances at once.
    """

    equation: Equation  # what is solved
    n_features: int
    radius: float
    constants: tuple[float, float]  # of the start

    @classmethod
    def of(cls, equation: Equation, n_features: int, radius: float) -> Self:
        """Work out the constants that fit the start to its limits in M."""
        constants = (0.0, 0.0)
        if radius > SMALLEST_RADIUS:
            constants = _start_constants(equation, n_features, radius)
        return cls(equation, int(n_features), float(radius), constants)

    @property
    def reach(self) -> float:
        """Largest M for which the ball holds moments with mean x."""
        return _reach(self.radius)

    def __call__(self, M: FloatArray, out: FloatArray, *, compiled: bool) -> None:
        """Write the scores of the distances `M` (n,) to `out` (n,)."""
        if self.radius <= SMALLEST_RADIUS:
            np.copyto(out, M)
            if self.equation in (formulas.GAUSSIAN_LOWER, formulas.GAUSSIAN_UPPER):
                np.negative(out, out=out)
            return
        solve = partial(solve_arrays, self.equation)
        if compiled:
            from prudent.optimistic.kernels import KERNELS

            solve = KERNELS[self.equation]
        nonparametric = self.equation is formulas.NONPARAMETRIC_UPPER
        floor = self.reach if nonparametric else SMALLEST_DISTANCE
        arguments = (float(self.n_features), self.radius, *self.constants)
        if not solve(np.maximum(M, floor), *arguments, out):
            raise ArithmeticError(
                f"the score equation did not converge in {MAX_SWEEPS} sweeps for "
                f"radius {self.radius!r} and {self.n_features} feature(s); "
                "please report it."
            )
        if nonparametric:
            np.copyto(out, 0.0, where=np.less_equal(M, floor))

    def root(self, M: float) -> float:
        """Solution x of the equation for one distance; 0 for radius 0."""
        if self.radius <= SMALLEST_RADIUS:
            return 0.0
        distance = np.array([max(M, SMALLEST_DISTANCE)])
        x, _ = _root(
            self.equation, distance, self.n_features, self.radius, *self.constants
        )
        return float(x[0])


def solve_arrays(
    equation: Equation,
    M: FloatArray,
    d: float,
    rho: float,
    a: float,
    b: float,
    out: FloatArray,
) -> bool:
    """Solve for all distances with NumPy, block by block; True when converged."""
    all_converged = True
    for start in range(0, len(M), ARRAY_BLOCK):
        rows = slice(start, start + ARRAY_BLOCK)
        x, converged = _root(equation, M[rows], d, rho, a, b)
        out[rows] = equation.value(M[rows], x, d, rho)
        all_converged &= converged
    return all_converged


def _root(
    equation: Equation, M: FloatArray, d: float, rho: float, a: float, b: float
) -> tuple[FloatArray, bool]:
    """Root x of the equation for every distance M (n,), and whether all have converged.

    At most 30 steps of fourth order, each of which multiplies x by a factor.
    """
    x = equation.start(M, d, rho, a, b)
    for _ in range(MAX_SWEEPS):
        factor = equation.update(M, x, d, rho)
        x *= factor
        if (np.abs(factor - 1.0) <= TOLERANCE).all():
            return x, True
    return x, False


def _scores(
    equation: Equation, distances: ArrayLike, n_features: int, radius: ArrayLike
) -> FloatArray:
    """Scores of distances of any shape, for radii that broadcast to them.

    Distances that share a radius are solved together.
    """
    M = in_range("distance", distances, LARGEST_DISTANCE)
    rho = in_range("radius", radius, LARGEST_RADIUS)
    rho = np.broadcast_to(rho, M.shape)
    scores = np.empty(M.shape)
    for value in np.unique(rho):
        chosen = rho == value
        part = np.empty(np.count_nonzero(chosen))
        score = ScoreFunction.of(equation, n_features, value)
        score(M[chosen], part, compiled=M.size >= COMPILED_FROM)
        scores[chosen] = part
    return scores


def in_range(name: str, values: ArrayLike, largest: float) -> FloatArray:
    """Numbers as an array; refuses those outside [0, `largest`]."""
    array = np.asarray(values, dtype=np.float64)
    bad = ~((array >= 0) & (array <= largest))
    if bad.any():
        raise ValueError(
            f"every {name} must be finite and lie in [0, {largest:g}], "
            f"got {float(array[bad].flat[0])!r}."
        )
    return array


@lru_cache(maxsize=1024)  # the same few classes are asked for at every prediction
def _start_constants(
    equation: Equation, n_features: int, radius: float
) -> tuple[float, float]:
    """The constants (a, b) that fit the start of the iteration to its limits in M.

    At M = 0 and at infinity the equations have solutions in one variable.
    """
    if equation is formulas.GAUSSIAN_UPPER:
        return 1 / _inverse_excess(radius / n_features), 1 / _inverse_remainder(radius)
    if equation is formulas.GAUSSIAN_LOWER:
        return 1 / _inverse_remainder(radius / n_features), 1 / _inverse_excess(radius)
    if equation is formulas.NONPARAMETRIC_LOWER:
        return _inverse_excess(radius) ** -2, 1 / radius
    reach = _reach(radius)
    far = _inverse_remainder(radius) ** -2
    return far, (reach**-2 - far) * reach


def _reach(radius: float) -> float:
    """Largest M for which the ball holds moments with mean x: exp(rho) - 1.

    Capped beyond the largest distance that is accepted.
    """
    return math.expm1(min(radius, math.log(2 * LARGEST_DISTANCE)))


def _inverse_excess(c: float) -> float:
    """Solve A(p) = c for p > 0: Newton from the right of a convex function."""
    p = c + math.sqrt(2 * c)
    for _ in range(8):
        A = formulas.log1p_excess(np.float64(p), 1 / (1 + p))
        p -= float(A - c) * (1 + p) / p
    return p


def _inverse_remainder(c: float) -> float:
    """Solve B(v) = c for v > 0, capped at 1e100: Newton in log(1 + v)."""
    step = c + min(1.0, math.sqrt(2 * c))
    if c > 30:
        return math.exp(min(step, math.log(LARGEST_DISTANCE)))
    for _ in range(8):
        B = formulas.log1p_remainder(np.float64(math.expm1(step)), math.exp(-step))
        step -= float(B - c) / -math.expm1(-step)
    return math.expm1(step)
