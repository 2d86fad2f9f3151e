"""A law with given moments that a plane gets wrong as often as any law can."""

from __future__ import annotations

import math

import numpy as np

from prudent.core.types import FloatArray

#: Relative push beyond the plane, so that a tie does not count as right.
PUSH = 1e-9
EPS = float(np.finfo(np.float64).eps)


def least_favourable_rows(
    normal: FloatArray,
    offset: float,
    mean: FloatArray,
    covariance: FloatArray,
    n_samples: int,
    random: np.random.RandomState,
    *,
    positive: bool,
) -> FloatArray:
    """Draw rows with exactly these moments that err with probability 1 / (1 + k^2).

    k is the number of standard deviations from the mean to the plane a'z = b. With
    v = S a / sqrt(a'S a), a row is mean + v t + g: g is normal with covariance
    S - v v' and lies along the plane, t has two values, one just beyond the plane
    with probability 1 / (1 + k^2), mean 0 and variance 1. `positive` is the class with
    a'z >= b; it must vary along the normal, and its mean lie strictly on its side.
    Marshall and Olkin (1960), Annals of Mathematical Statistics 31.
    """
    deviation = math.sqrt(max(float(normal @ covariance @ normal), 0.0))
    ahead = (float(normal @ mean) - offset) * (1 if positive else -1)
    if not deviation > 0 or not ahead > 0:
        raise ValueError(
            "no law attains the bound: the class must vary along the normal and have "
            f"its mean on its own side, got deviation {deviation:.3g} and distance "
            f"{ahead:.3g}."
        )
    kappa = ahead / deviation
    v = covariance @ normal / deviation
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    g = random.standard_normal((n_samples, len(mean))) @ root.T
    g -= np.outer(g @ normal / deviation, v)
    g -= np.outer(g @ normal / (normal @ normal), normal)
    beyond = random.uniform(size=n_samples) < 1 / (1 + kappa * kappa)
    rounding = 64 * EPS * float(np.abs(normal) @ np.abs(mean)) / deviation
    outward = -kappa * (1 + PUSH) - rounding
    t = np.where(beyond, outward, 1 / kappa) * (1 if positive else -1)
    return mean + np.outer(t, v) + g


def worst_moments(
    inward: FloatArray,
    mean: FloatArray,
    covariance: FloatArray,
    mean_radius: float,
    covariance_radius: float,
    covariance_factor: float,
) -> tuple[FloatArray, FloatArray]:
    """Moments within the radii that lie nearest to a plane, relative to their spread.

    `inward` is the normal of the plane, pointing from the plane to the class. The
    covariance radius is spent on a a'/|a|^2, the mean radius along S a.
    """
    S = covariance_factor * (
        covariance + covariance_radius * np.outer(inward, inward) / (inward @ inward)
    )
    deviation = math.sqrt(float(inward @ S @ inward))
    if deviation > 0:
        mean = mean - mean_radius / deviation * (S @ inward)
    return mean, S
