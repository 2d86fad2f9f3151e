"""Imprecise class prior: the total-variation ball round a prior, (44)-(46)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from prudent.core.classes import PRIOR_TOLERANCE
from prudent.core.types import FloatArray


def prior_bounds(prior: ArrayLike, radius: float) -> tuple[FloatArray, FloatArray]:
    """Smallest and largest probability of each class in a ball of priors.

    Parameters
    ----------
    prior : array-like of shape (n_classes,)
        Centre P: numbers >= 0 of sum 1.
    radius : float
        Largest total variation (half the L1 distance) from P, >= 0.

    Returns
    -------
    lower, upper : ndarray of shape (n_classes,)
        max(0, P - radius) and min(1, P + radius).

    Raises
    ------
    ValueError
        If `prior` holds no probabilities or `radius` is not a number >= 0.

    Notes
    -----
    With radius c / n and the class frequencies for P these are (44)-(45) of
    Carranza-Alarcon and Destercke (2019), whose two sides are exchanged in print. Of
    any event A the bounds are max(0, P(A) - radius) and min(1, P(A) + radius).

    Examples
    --------
    >>> from prudent.imprecise import prior_bounds
    >>> lower, upper = prior_bounds([0.7, 0.3], 0.4)
    >>> lower.round(12).tolist(), upper.round(12).tolist()
    ([0.3, 0.0], [1.0, 0.7])
    """
    centre, radius = _checked(prior, radius)
    return np.maximum(centre - radius, 0.0), np.minimum(centre + radius, 1.0)


def lower_expectation(
    values: ArrayLike, prior: ArrayLike, radius: float
) -> FloatArray | float:
    """Smallest expectation of each row of values over a ball of priors.

    Parameters
    ----------
    values : array-like of shape (..., n_classes)
        v, one finite value a class.
    prior : array-like of shape (n_classes,)
        Centre P: numbers >= 0 of sum 1.
    radius : float
        Total variation allowed, >= 0.

    Returns
    -------
    ndarray of shape (...)
        The expectation after moving mass `radius` from the classes with the
        largest v, each at most its own P, to the class with the smallest. The
        largest expectation is ``-lower_expectation(-values, prior, radius)``.

    Raises
    ------
    ValueError
        If `prior` holds no probabilities, `radius` is not a number >= 0, or `values`
        are not finite with one value a class.

    Notes
    -----
    Equal to the Choquet integral that Carranza-Alarcon and Destercke (2019), section
    6, use with (46), and to the linear program over all events; the box of
    single-class bounds (47) would be strictly looser.

    Examples
    --------
    >>> from prudent.imprecise import lower_expectation
    >>> prior = [0.25, 0.15, 0.1, 0.5]
    >>> round(float(lower_expectation([1, -2, 0.5, -0.25], prior, 0.2)), 12)
    -0.725
    """
    centre, radius = _checked(prior, radius)
    given = np.asarray(values, dtype=np.float64)
    if given.shape[-1:] != centre.shape or not np.isfinite(given).all():
        raise ValueError(
            f"`values` must be finite, of shape (..., {len(centre)}), one a class of "
            f"`prior`, got shape {given.shape}."
        )
    return (least_favourable_prior(given, centre, radius) * given).sum(axis=-1)


def least_favourable_prior(
    values: FloatArray, prior: FloatArray, radius: float
) -> FloatArray:
    """The prior in the ball with the smallest expectation of each row of values."""
    order = np.argsort(-values, axis=-1, kind="stable")
    mass = prior[order]
    before = np.cumsum(mass, axis=-1) - mass
    moved = np.clip(radius - before, 0.0, mass)
    # The class of the least value, last in order, gets what the others lose.
    moved[..., -1] -= moved.sum(axis=-1)
    found = np.empty_like(mass)
    np.put_along_axis(found, order, mass - moved, axis=-1)
    return found


def _checked(prior: ArrayLike, radius: float) -> tuple[FloatArray, float]:
    centre = np.asarray(prior, dtype=np.float64)
    fits = centre.ndim == 1 and len(centre) > 0 and bool((centre >= 0).all())
    if not (fits and abs(centre.sum() - 1.0) <= PRIOR_TOLERANCE):
        raise ValueError(
            f"`prior` must hold numbers >= 0 that sum to 1, got {centre.tolist()}."
        )
    if not radius >= 0:
        raise ValueError(f"`radius` must be a number >= 0, got {radius!r}.")
    return centre, float(radius)
