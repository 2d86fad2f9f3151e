"""Worst-case errors of any plane and of linear scores."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import ArrayLike

from prudent.core.moments import ClassMoments
from prudent.core.types import FloatArray
from prudent.core.validation import shown
from prudent.minimax.certificate import ClassMargin
from prudent.minimax.radii import given_radii


def worst_case_error(
    coef: ArrayLike,
    intercept: ArrayLike,
    moments: ClassMoments,
    *,
    mean_radius: ArrayLike = 0.0,
    covariance_radius: ArrayLike = 0.0,
    covariance_factor: ArrayLike = 1.0,
) -> FloatArray:
    """Largest error of each of two classes that a plane makes under any law.

    Parameters
    ----------
    coef : array-like of shape (n_features,) or (1, n_features)
        Normal w of the plane, pointing to ``moments.classes[1]``, as scikit-learn's
        `coef_`.
    intercept : float or array-like of shape (1,)
        b; rows with w'z + b > 0 are of ``moments.classes[1]``. The bound holds
        whichever class gets the rows with w'z + b = 0.
    moments : ClassMoments
        Two classes, with full scatter.
    mean_radius, covariance_radius, covariance_factor : float or array-like of shape \
(2,), default=0, 0, 1
        nu >= 0, rho >= 0 and gamma >= 1: how far means and covariances may lie from
        those of `moments`, as in :class:`~prudent.MinimaxProbabilityClassifier`.

    Returns
    -------
    ndarray of shape (2,)
        In the order of ``moments.classes``: 1 / (1 + k^2) with k = (s (w'm + b) /
        sqrt(gamma w'(S + rho I) w) - nu)_+ and s = -1, 1; attained by some law.
        Rounding of the decision value and of the moments is added.

    Raises
    ------
    ValueError
        If shapes disagree, a number is not finite or a radius out of range.

    References
    ----------
    Lanckriet, El Ghaoui, Bhattacharyya, Jordan (2002), JMLR 3, Lemma 1 and (17).

    Examples
    --------
    >>> from prudent import ClassMoments
    >>> from prudent.minimax import worst_case_error
    >>> moments = ClassMoments.from_covariances(
    ...     [[0.0], [6.0]], [[[1.0]], [[4.0]]], [50, 50]
    ... )
    >>> worst_case_error([1.0], -2.0, moments).round(3).tolist()
    [0.2, 0.2]
    """
    if len(moments.classes) != 2:
        raise ValueError(f"`moments` must hold 2 classes, got {len(moments.classes)}.")
    w, b = _plane(coef, intercept, moments, 1)
    radii = given_radii(mean_radius, covariance_radius, covariance_factor, 2)
    own = np.stack([radii.mean, radii.covariance, radii.factor], axis=1).tolist()
    errors = [
        _margin(moments, k, w[0], *own[k]).error(-float(b[0]), side)
        for k, side in ((0, -1.0), (1, 1.0))
    ]
    return np.array(errors)


def linear_errors(
    coef: ArrayLike, intercept: ArrayLike, moments: ClassMoments
) -> FloatArray:
    """Largest error of each class that linear scores make under any law, (K,).

    The class of the largest score wins; the errors against the others are added.
    `coef` (K, n) and `intercept` (K,) are as in scikit-learn: one row for two classes.
    """
    n_classes = len(moments.classes)
    w, b = _plane(coef, intercept, moments, 1 if n_classes == 2 else n_classes)
    if n_classes == 2:
        w, b = np.stack([0.0 * w[0], w[0]]), np.array([0.0, b[0]])
    errors = np.zeros(n_classes)
    for k, l in itertools.permutations(range(n_classes), 2):
        size = np.abs(w[k]) + np.abs(w[l])
        margin = _margin(moments, k, w[k] - w[l], size=size)
        shift = float(abs(b[k]) + abs(b[l]))
        errors[k] += margin.error(float(b[l] - b[k]), 1.0, shift=shift)
    return np.minimum(errors, 1.0)


def _plane(
    coef: ArrayLike, intercept: ArrayLike, moments: ClassMoments, n_planes: int
) -> tuple[FloatArray, FloatArray]:
    """Normals (n_planes, d) and intercepts (n_planes,), checked."""
    if moments.structure != "full":
        raise ValueError(
            "worst-case errors need covariances: accumulate the moments with "
            "structure='full'."
        )
    if not (moments.weight > 0).all():
        empty = moments.classes[moments.weight <= 0]
        raise ValueError(f"class {shown(empty[0])} of the moments has no rows.")
    w = np.atleast_2d(np.asarray(coef, dtype=np.float64))
    b = np.atleast_1d(np.asarray(intercept, dtype=np.float64)).ravel()
    if len(b) == 1 < n_planes:
        b = np.repeat(b, n_planes)
    shape = (n_planes, moments.mean.shape[1])
    if w.shape != shape or b.shape != (n_planes,):
        raise ValueError(
            f"`coef` and `intercept` must have shapes {shape} and {(n_planes,)} for "
            f"these moments, got {w.shape} and {b.shape}."
        )
    if not (np.isfinite(w).all() and np.isfinite(b).all()):
        raise ValueError("`coef` and `intercept` must hold finite numbers.")
    return w, b


def _margin(
    moments: ClassMoments,
    k: int,
    normal: FloatArray,
    nu: float = 0.0,
    rho: float = 0.0,
    gamma: float = 1.0,
    size: FloatArray | None = None,
) -> ClassMargin:
    S = moments.scatter[k] / moments.weight[k]
    if rho:
        S = S + rho * np.eye(len(S))
    return ClassMargin.along(
        normal, moments.mean[k], moments.mean_lo[k], S, nu, gamma, size=size
    )
