"""Symmetric matrices: positive definite or not, and made so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf

from prudent.core.types import FloatArray
from prudent.core.validation import shown
from prudent.exceptions import SingularCovarianceError

# Negative eigenvalues, relative to the largest, that rounding explains: of an
# accumulated scatter matrix, and of a matrix read from print.
ROUNDING, PRINTED = 1e-10, 1e-8


@dataclass(frozen=True, slots=True)
class FlooredCovariance:
    """A matrix whose `n_clipped` eigenvalues were raised to a minimum."""

    covariance: FloatArray
    n_clipped: int


def floor_eigenvalues(
    covariance: FloatArray, minimum: float | Literal["auto"]
) -> FlooredCovariance:
    """Raise the eigenvalues of a symmetric matrix to at least `minimum` >= 0.

    "auto" is d * eps * (largest eigenvalue). The matrix itself, unchanged, when
    nothing is clipped.
    """
    covariance = np.asarray(covariance, dtype=np.float64)
    values, vectors = np.linalg.eigh(covariance)
    if isinstance(minimum, str):
        floor = len(values) * np.finfo(np.float64).eps * max(values[-1], 0.0)
    else:
        floor = minimum
    if not floor >= 0:
        raise ValueError(f"`minimum` must be a number >= 0 or 'auto', got {minimum!r}.")
    clipped = values < floor
    if not clipped.any():
        return FlooredCovariance(covariance, 0)
    # Only the clipped directions are lifted, the rest keeps its digits.
    low = vectors[:, clipped]
    lifted = covariance + (low * (floor - values[clipped])) @ low.T
    return FlooredCovariance((lifted + lifted.T) / 2, int(clipped.sum()))


def check_positive_definite(
    covariances: FloatArray,
    *,
    classes: Sequence[Any] | NDArray[Any] | None = None,
) -> FloatArray:
    """Lower Cholesky factors of class covariances, or an error that names the culprit.

    The pivot ratio L_jj^2 / C_jj is 1 - R^2 of feature j on the features before
    it. Below 100 d eps the feature is a linear combination of them, and j is the
    one to name. A pseudo-inverse is never used: it would give distance 0 along
    the null space, and so call impossible points typical.
    """
    covariances = np.asarray(covariances, dtype=np.float64)
    n_classes, n_features = covariances.shape[:2]
    tolerance = 100 * n_features * np.finfo(np.float64).eps
    factors = np.empty_like(covariances)
    for k in range(n_classes):
        label = k if classes is None else classes[k]
        covariance = covariances[k]
        if not np.isfinite(covariance).all():
            raise ValueError(
                f"the covariance matrix of class {shown(label)} is not finite."
            )
        factor, info = dpotrf(covariance, lower=1, clean=1)
        culprit = info - 1
        if info == 0:
            ratio = factor.diagonal() ** 2 / covariance.diagonal()
            singular = np.flatnonzero(ratio < tolerance)
            culprit = int(singular[0]) if len(singular) else -1
        if culprit >= 0:
            _raise_singular(covariance, culprit, label)
        factors[k] = factor
    return factors


def check_not_indefinite(covariances: FloatArray, classes: NDArray[Any]) -> None:
    """Raise SingularCovarianceError for a matrix with a negative eigenvalue.

    Weights of both signs can make a scatter matrix genuinely indefinite. Takes
    matrices (K, d, d) or variances (K, d); singular ones pass.
    """
    for covariance, label in zip(covariances, classes, strict=True):
        if covariance.ndim == 1:
            smallest, largest = covariance.min(), covariance.max()
        elif not dpotrf(covariance, lower=1)[1]:
            continue
        else:
            values = np.linalg.eigvalsh(covariance)
            smallest, largest = values[0], values[-1]
        if smallest < -ROUNDING * max(largest, 0.0):
            raise SingularCovarianceError(
                f"the covariance matrix of class {shown(label)} is indefinite: its "
                f"smallest eigenvalue is {smallest:.3g}. Weights of both signs do "
                "this; take a smaller step."
            )


def symmetric_nonnegative(covariances: FloatArray, classes: NDArray[Any]) -> FloatArray:
    """Covariances that carry rounding of print, exactly symmetric and semidefinite.

    Asymmetry and negative eigenvalues up to 1e-8, relative, are taken for rounding.
    """
    repaired = np.empty_like(covariances)
    for k, (covariance, label) in enumerate(zip(covariances, classes, strict=True)):
        where = f"the covariance matrix of class {shown(label)}"
        if not np.isfinite(covariance).all():
            raise ValueError(f"{where} is not finite.")
        asymmetry = np.abs(covariance - covariance.T).max()
        if asymmetry > PRINTED * np.abs(covariance).max():
            raise ValueError(
                f"{where} is not symmetric: entries differ by {asymmetry:.3g}."
            )
        symmetric = (covariance + covariance.T) / 2
        values = np.linalg.eigvalsh(symmetric)
        if values[0] < -PRINTED * max(values[-1], 0.0):
            raise ValueError(
                f"{where} is not positive semidefinite: its smallest eigenvalue is "
                f"{values[0]:.3g}."
            )
        # In units of the features: the rounding of large ones would drown small ones.
        deviation = np.sqrt(np.maximum(symmetric.diagonal(), 0.0))
        unit = np.outer(deviation, deviation)
        unit[unit == 0] = 1.0
        floored = floor_eigenvalues(symmetric / unit, 0.0)
        repaired[k] = floored.covariance * unit if floored.n_clipped else symmetric
    return repaired


def _raise_singular(covariance: FloatArray, j: int, label: Any) -> None:
    variance = covariance[j, j]
    if variance < 0:
        why = f"has the negative variance {variance:.3g}"
    elif variance == 0:
        why = "is constant in this class"
    else:
        why = "is a linear combination of the features before it in this class"
    raise SingularCovarianceError(
        f"the covariance matrix of class {shown(label)} is singular or indefinite: "
        f"feature {j} {why}. Drop the feature, or shrink, for example with "
        'covariance="ledoit_wolf".'
    )
