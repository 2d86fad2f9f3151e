"""Rows moved towards another class: how errors grow when the world drifts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from prudent.core.moments import ClassMoments

SHIFTS = tuple(np.linspace(0.0, 2.0, 9).tolist())


def shifted_rows(
    X: NDArray[np.float64], codes: NDArray[np.intp], moments: ClassMoments
) -> NDArray[np.float64]:
    """Rows moved by each of `SHIFTS` towards the nearest other class mean.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Rows.
    codes : ndarray of shape (n,)
        Their classes, as positions in `moments.classes`.
    moments : ClassMoments
        Class means, and the pooled standard deviations that are the unit of length.

    Returns
    -------
    ndarray of shape (n_shifts, n, d)
        A row stops at the mean that it moves to.
    """
    scatter = np.diagonal(moments.scatter, axis1=1, axis2=2).sum(axis=0)
    scale = np.sqrt(scatter / moments.weight.sum())
    unit = np.where(scale > 0, scale, 1.0)
    gaps = (moments.mean[None] - X[:, None]) / unit
    gaps[:, :, scale == 0] = 0.0
    distance = np.sqrt(np.einsum("ikj,ikj->ik", gaps, gaps))
    rows = np.arange(len(X))
    others = distance.copy()
    others[rows, codes] = np.inf
    others[:, moments.weight == 0] = np.inf  # classes without a mean
    nearest = others.argmin(axis=1)
    length = distance[rows, nearest]
    towards = gaps[rows, nearest] * unit / np.where(length > 0, length, 1.0)[:, None]
    steps = np.minimum(np.array(SHIFTS)[:, None], length)
    moved: NDArray[np.float64] = X + steps[:, :, None] * towards
    return moved
