"""Imprecise class prior: the total-variation ball round a prior."""

from __future__ import annotations

import numpy as np

from prudent.core.types import FloatArray


def prior_bounds(prior: FloatArray, radius: float) -> tuple[FloatArray, FloatArray]:
    """Smallest and largest probability of each class in the ball.

    Parameters
    ----------
    prior : ndarray of shape (K,)
        Centre P, summing to 1.
    radius : float
        Largest total variation (half the L1 distance) from P, >= 0.

    Returns
    -------
    lower, upper : ndarray of shape (K,)
        max(0, P - radius) and min(1, P + radius); (44)-(45) of the paper, with
        the two sides the right way round, for radius = c_Y / N.

    Examples
    --------
    >>> import numpy as np
    >>> lower, upper = prior_bounds(np.array([0.7, 0.3]), 0.4)
    >>> lower.round(12).tolist(), upper.round(12).tolist()
    ([0.3, 0.0], [1.0, 0.7])
    """
    return np.maximum(prior - radius, 0.0), np.minimum(prior + radius, 1.0)


def lower_expectation(
    values: FloatArray, prior: FloatArray, radius: float
) -> FloatArray:
    """Smallest expectation of each row of values over the ball.

    Parameters
    ----------
    values : ndarray of shape (..., K)
        v, one value a class.
    prior : ndarray of shape (K,)
        Centre P.
    radius : float
        Total variation allowed, >= 0.

    Returns
    -------
    ndarray of shape (...)
        The expectation after moving mass `radius` from the classes with the
        largest v, each at most its own P, to the class with the smallest. Equal
        to the Choquet integral and to the linear program over all events; the
        box of single-class bounds (47) would be strictly looser.

    Examples
    --------
    >>> import numpy as np
    >>> prior = np.array([0.5, 0.3, 0.2, 1.0]) / 2
    >>> lower_expectation(np.array([1.0, -2.0, 0.5, -0.25]), prior, 0.2).round(12)
    np.float64(-0.725)
    """
    order = np.argsort(-values, axis=-1, kind="stable")
    falling = np.take_along_axis(values, order, axis=-1)
    mass = prior[order]
    before = np.cumsum(mass, axis=-1) - mass
    moved = np.clip(radius - before, 0.0, mass)
    loss = moved * (falling - falling[..., -1:])
    return (mass * falling - loss).sum(axis=-1)
