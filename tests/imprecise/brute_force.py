"""Slow, independent answers: all vertices, and a generic bounded least squares."""

from __future__ import annotations

import itertools

import numpy as np
from scipy.optimize import lsq_linear


def vertices(n):
    return np.array(list(itertools.product([-1.0, 1.0], repeat=n)))


def log_joint_bounds(x, means, covariances, weights, constants, c, box):
    """Bounds of constant_k - q over the box of every class, for one row."""
    lower, upper = np.empty(len(means)), np.empty(len(means))
    corners = vertices(len(x))
    for k, (mean, covariance) in enumerate(zip(means, covariances, strict=True)):
        move = np.eye(len(x)) if box == "mean" else covariance
        move = c / weights[k] * move
        precision = np.linalg.inv(covariance)
        gaps = (x - mean) - corners @ move.T
        worst = 0.5 * np.einsum("ij,jk,ik->i", gaps, precision, gaps).max()
        root = np.linalg.cholesky(precision).T
        best = lsq_linear(
            np.atleast_2d(root @ move), root @ (x - mean), (-1.0, 1.0), "bvls", 1e-15
        )
        lower[k] = constants[k] - worst
        upper[k] = constants[k] - best.cost
    return lower, upper


def random_classes(rng, n_features, n_classes, *, tied=False, ridge=None):
    """Means, covariances (1 or K of them, down to near singular), and counts."""
    covariances = []
    for _ in range(1 if tied else n_classes):
        rows = rng.normal(size=(n_features, n_features + 1))
        small = 10.0 ** -rng.integers(0, 7) if ridge is None else ridge
        covariances.append(rows @ rows.T / n_features + small * np.eye(n_features))
    means = 2.0 * rng.normal(size=(n_classes, n_features))
    weights = rng.integers(3, 60, size=n_classes).astype(float)
    return means, np.array(covariances), weights
