"""Slow, independent answers: all vertices, bounded least squares, fractions."""

from __future__ import annotations

import itertools
from fractions import Fraction

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


def is_admissible(lower, upper, costs, decision, tie=0.0):
    """Whether a decision costs least for some weights between two bounds, exactly.

    A share `tie` of what deciding otherwise moves is neither gain nor loss.
    """
    exact = np.vectorize(Fraction, otypes=[object])
    one = exact(np.eye(len(lower), dtype=int))
    gains = exact(costs[:, [decision]]) - exact(np.delete(costs, decision, axis=1))
    gains = (gains - Fraction(tie) * np.abs(gains)).T
    limits = np.concatenate([exact(upper), -exact(lower), 0 * gains[:, 0]])
    return has_solution([*np.column_stack([np.vstack([one, -one, gains]), limits])])


def has_solution(rows):
    """Whether a'w <= b holds for all rows (a, b) at some w: Fourier and Motzkin."""
    for k in range(len(rows[0]) - 1):
        above = [row / row[k] for row in rows if row[k] > 0]
        below = [row / -row[k] for row in rows if row[k] < 0]
        rows = [row for row in rows if row[k] == 0]
        rows += [a + b for a, b in itertools.product(above, below)]
    return all(row[-1] >= 0 for row in rows)


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
