"""Shrinkage of covariance matrices: how much, and towards what."""

from __future__ import annotations

from typing import Literal

import numpy as np

from prudent.core.types import FloatArray

Target = Literal["diagonal", "identity"]


def shrink(
    covariances: FloatArray, shrinkage: float | FloatArray, target: Target
) -> FloatArray:
    """(1 - a) C + a T, with T = diag(C) or (trace C / d) I; one a or one per class."""
    a = np.broadcast_to(np.asarray(shrinkage, dtype=np.float64), len(covariances))
    kept = np.diagonal(covariances, axis1=1, axis2=2)
    if target == "identity":
        kept = (1 - a[:, None]) * kept + (a * kept.mean(axis=1))[:, None]
    shrunk = (1 - a)[:, None, None] * covariances
    features = np.arange(kept.shape[1])
    shrunk[:, features, features] = kept  # of a diagonal target to the last bit
    return shrunk


def oas_shrinkage(weight: FloatArray, scatter: FloatArray) -> FloatArray:
    """Oracle approximating shrinkage towards the identity, (K,).

    With C = S / W, mu = trace C / d and al = mean C_ij^2: a = min(1, (al + mu^2) /
    ((W + 1)(al - mu^2 / d))), and 1 where the denominator is 0. Chen, Wiesel, Eldar
    and Hero (2010), IEEE Transactions on Signal Processing 58, equation 23.
    """
    C = scatter / weight[:, None, None]
    n_features = C.shape[-1]
    mu = np.trace(C, axis1=1, axis2=2) / n_features
    al = (C * C).mean(axis=(1, 2))
    numerator = al + mu**2
    denominator = (weight + 1) * (al - mu**2 / n_features)
    bounded = denominator > numerator
    return np.divide(numerator, denominator, out=np.ones_like(mu), where=bounded)


def ledoit_wolf_shrinkage(
    weight: FloatArray, scatter: FloatArray, fourth: FloatArray
) -> FloatArray:
    """Ledoit-Wolf shrinkage to the identity, (K,), with fourth f = sum w |x - m|^4.

    With C = S / W, mu = trace C / d and fro = sum C_ij^2: delta = (fro - d mu^2) / d,
    beta = (f / W - fro) / (d W), a = max(0, min(beta, delta)) / delta, and 0 where
    delta = 0. Ledoit and Wolf (2004), Journal of Multivariate Analysis 88.
    """
    C = scatter / weight[:, None, None]
    n_features = C.shape[-1]
    mu = np.trace(C, axis1=1, axis2=2) / n_features
    fro = (C * C).sum(axis=(1, 2))
    delta = (fro - n_features * mu**2) / n_features
    beta = (fourth / weight - fro) / (n_features * weight)
    a = np.maximum(0.0, np.minimum(beta, delta))
    return np.divide(a, delta, out=np.zeros_like(mu), where=delta > 0)
