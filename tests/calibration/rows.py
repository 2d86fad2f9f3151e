"""Small data sets and plain re-implementations shared by the calibration tests."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from prudent.calibration.ascent import Objective
from prudent.core.rows import Block

FAMILIES = ("full", "diag", "tied", "tied_diag")


def overlapping_clouds(m=120, d=3, r=3, seed=0, gap=1.2):
    """Normal classes that overlap, with correlated features."""
    rng = np.random.default_rng(seed)
    mixing = rng.normal(size=(d, d)) / np.sqrt(d) + np.eye(d)
    y = np.arange(m) % r
    X = rng.normal(size=(m, d)) @ mixing + gap * rng.normal(size=(r, d))[y]
    return X, y


def posteriors(family, X, s0, s1, s2):
    """Posteriors of the maximum-likelihood parameters, by density, in raw units."""
    total = s0.sum()
    means = s1 / s0[:, None]
    second = s2 / s0[:, None, None] - np.einsum("ki,kj->kij", means, means)
    if family.startswith("tied"):
        within = np.einsum("k,kij->ij", s0 / total, second)
        second = np.broadcast_to(within, second.shape)
    log_joint = np.empty((len(X), len(s0)))
    for k, (mean, covariance) in enumerate(zip(means, second, strict=True)):
        if family.endswith("diag"):
            covariance = np.diag(np.diag(covariance))
        gap = X - mean
        distance = np.einsum("ij,ij->i", gap @ np.linalg.inv(covariance), gap)
        _, log_determinant = np.linalg.slogdet(covariance)
        log_joint[:, k] = np.log(s0[k] / total) - 0.5 * (log_determinant + distance)
    return np.exp(log_joint - logsumexp(log_joint, axis=1, keepdims=True))


def calibrate_by_loops(family, X, y, n_updates, learning_rate=0.1):
    """Posteriors of the paper's Algorithm 1 in raw units, row by row."""
    r, d = y.max() + 1, X.shape[1]
    s0, s1, s2 = np.zeros(r), np.zeros((r, d)), np.zeros((r, d, d))
    for x, k in zip(X, y, strict=True):
        s0[k] += 1
        s1[k] += x
        s2[k] += np.outer(x, x)
    H = posteriors(family, X, s0, s1, s2)
    for _ in range(n_updates):
        for x, k, h in zip(X, y, H, strict=True):
            weights = learning_rate * ((np.arange(r) == k) - h)
            s0 += weights
            s1 += weights[:, None] * x
            s2 += weights[:, None, None] * np.outer(x, x)
        H = posteriors(family, X, s0, s1, s2)
    return H


def objective(family, rows, y, weight=None, **options):
    """Objective over rows as the family takes them."""
    weight = np.ones(len(y)) if weight is None else weight
    block = Block(family.prepare(rows), y, weight)
    return Objective.from_block(family, block, int(y.max()) + 1, **options)


def block_of(objective):
    (trial,) = objective.rows.blocks
    return trial.fitted
