"""Rivals of the paper that the library does not offer: gradient descent for NB and QDA.

Appendix C of Pérez et al.: a step on the natural parameters, then a projection: class
and level probabilities on the simplex (or their softmax, which the paper names as an
alternative), covariances to eigenvalues of 0.01 at least. The
gradient of QDA is used as corrected (its log-partition is a scalar); columns are
standardised. Each function returns the training error of every iterate.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import log_softmax

RATE, LEAST_EIGENVALUE = 0.1, 1e-2


def on_simplex(values: np.ndarray) -> np.ndarray:
    """Euclidean projection of each row on the probability simplex."""
    ordered = -np.sort(-values, axis=-1)
    excess = np.cumsum(ordered, axis=-1) - 1
    ranks = np.arange(1, values.shape[-1] + 1)
    last = np.count_nonzero(ordered > excess / ranks, axis=-1)[..., None] - 1
    shift = np.take_along_axis(excess / ranks, last, axis=-1)
    return np.maximum(values - shift, 0)


def projected(eta: np.ndarray) -> np.ndarray:
    """Log probabilities from natural parameters, by exponentiation and projection."""
    return np.log(on_simplex(np.exp(eta)))


def normalised(eta: np.ndarray) -> np.ndarray:
    """Log probabilities from natural parameters, by the softmax."""
    return log_softmax(eta, axis=-1)


def posterior(scores: np.ndarray, fallback: np.ndarray) -> np.ndarray:
    """Class probabilities; a row impossible in every class gets the fallback scores."""
    scores = np.where(np.isneginf(scores).all(axis=1)[:, None], fallback, scores)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def naive_bayes(
    X: np.ndarray,
    y: np.ndarray,
    strength: float,
    n: int,
    constrained: Callable[[np.ndarray], np.ndarray] = projected,
) -> np.ndarray:
    """Descent from the closed form with `strength` counts a class and a feature."""
    m, r = len(y), int(y.max()) + 1
    Y = np.eye(r)[y]
    levels = [np.unique(column, return_inverse=True)[1] for column in X.T]
    with np.errstate(divide="ignore"):
        log_class = np.log((Y.sum(axis=0) + strength) / (m + r * strength))
        log_levels = []
        for codes in levels:
            counts = np.array([np.bincount(codes, Y[:, k]) for k in range(r)])
            counts += strength / counts.shape[1]
            log_levels.append(np.log(counts / counts.sum(axis=1, keepdims=True)))
        errors = []
        for _ in range(n):
            scores = log_class + sum(
                table[:, codes].T
                for table, codes in zip(log_levels, levels, strict=True)
            )
            H = posterior(scores, log_class)
            errors.append(np.mean(H.argmax(axis=1) != y))
            R = RATE / m * (H - Y)
            log_class = constrained(log_class - R.sum(axis=0))
            for j, codes in enumerate(levels):
                step = np.array([np.bincount(codes, R[:, k]) for k in range(r)])
                log_levels[j] = constrained(log_levels[j] - step)
    return np.array(errors)


def quadratic(
    X: np.ndarray,
    y: np.ndarray,
    start: tuple[np.ndarray, np.ndarray, np.ndarray],
    n: int,
) -> np.ndarray:
    """Descent from class probabilities, means and covariances, in the units of X.

    Raises
    ------
    numpy.linalg.LinAlgError
        If a covariance is singular at the start.
    """
    centre, scale = X.mean(axis=0), X.std(axis=0)
    X = (X - centre) / scale
    (m, _), r = X.shape, int(y.max()) + 1
    Y = np.eye(r)[y]
    priors, means, covariances = start
    log_class, mean = np.log(priors), (means - centre) / scale
    covariance = covariances / np.outer(scale, scale)
    if max(np.linalg.cond(S) for S in covariance) > 1e15:
        raise np.linalg.LinAlgError
    errors = []
    for _ in range(n):
        scores = np.empty((m, r))
        for k in range(r):
            L = np.linalg.cholesky(covariance[k])
            Z = solve_triangular(L, (X - mean[k]).T, lower=True)
            scores[:, k] = log_class[k] - np.log(np.diag(L)).sum() - (Z**2).sum(0) / 2
        H = posterior(scores, log_class)
        errors.append(np.mean(H.argmax(axis=1) != y))
        R = RATE / m * (H - Y)
        with np.errstate(divide="ignore"):
            log_class = projected(log_class - R.sum(axis=0))
        for k in range(r):
            precision = np.linalg.inv(covariance[k])
            total, moments = R[:, k].sum(), (X * R[:, k, None]).T @ X
            first = precision @ mean[k] - (R[:, k] @ X - total * mean[k])
            second = -precision / 2 - (
                moments - total * (np.outer(mean[k], mean[k]) + covariance[k])
            )
            values, vectors = np.linalg.eigh(-np.linalg.inv(second + second.T))
            covariance[k] = vectors * np.maximum(values, LEAST_EIGENVALUE) @ vectors.T
            mean[k] = covariance[k] @ first
    return np.array(errors)
