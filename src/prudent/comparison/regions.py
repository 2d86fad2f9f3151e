"""Decisions in the plane that separates the classes best."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from prudent.comparison.decisions import decide
from prudent.comparison.measurements import RegionMap
from prudent.core.moments import ClassMoments

__all__ = ["GRID", "discriminant_axes", "region_map"]

GRID = 48
FloatArray = NDArray[np.float64]


def discriminant_axes(moments: ClassMoments) -> FloatArray:
    """Two directions that separate the class means best, shape (d, 2).

    Notes
    -----
    Leading solutions of B a = lambda (W + r I) a, where W and B are the scatter
    within and between the classes of the standardised features and r = 1e-6 tr W / d
    keeps collinear features harmless (Fisher's discriminant axes). With two classes
    B has rank one: the second axis is the widest direction uncorrelated with the
    first. Projected rows have unit pooled standard deviation.
    """
    within = moments.scatter.sum(axis=0) / moments.weight.sum()
    scale = np.sqrt(np.diagonal(within))
    unit = np.where(scale > 0, scale, np.inf)
    W = within / np.outer(unit, unit)
    n_features = len(W)
    W += (1e-6 * np.trace(W) / n_features + 1e-12) * np.eye(n_features)
    weight = moments.weight / moments.weight.sum()
    gap = (moments.mean - weight @ moments.mean) / unit
    B = (gap * weight[:, None]).T @ gap
    _, vectors = eigh(B, W)
    first = vectors[:, -1]
    if len(weight) > 2:
        second = vectors[:, -2]
    else:
        second = eigh(W - np.outer(W @ first, W @ first))[1][:, -1]
        second -= (second @ W @ first) * first
        second /= np.sqrt(second @ W @ second)
    axes = np.column_stack([first, second])
    # An eigenvector has no sign: let its largest entry be positive.
    largest = np.abs(axes).argmax(axis=0)
    axes *= np.sign(axes[largest, [0, 1]])
    return axes / unit[:, None]


def region_map(
    estimator: Any, Z: FloatArray, y: NDArray[Any], classes: NDArray[Any]
) -> RegionMap:
    """Fit in the plane and look at every point of a grid around the rows.

    Parameters
    ----------
    estimator : estimator
        Not fitted yet.
    Z : ndarray of shape (n, 2)
        Rows in the plane.
    y : ndarray of shape (n,)
        Their labels.
    classes : ndarray of shape (K,)
        All labels, sorted.
    """
    low, high = np.quantile(Z, [0.005, 0.995], axis=0)
    margin = 0.15 * (high - low)
    x, y_axis = np.linspace(low - margin, high + margin, GRID).T
    points = np.stack(np.meshgrid(x, y_axis), axis=-1).reshape(-1, 2)
    estimator.fit(Z, y)
    found = decide(estimator, points, classes)
    sets = found.sets
    if sets is None:
        sets = found.predicted[:, None] == np.arange(len(classes))
    return RegionMap(
        x=x,
        y=y_axis,
        sets=sets.reshape(GRID, GRID, -1),
        predicted=found.predicted.reshape(GRID, GRID),
    )
