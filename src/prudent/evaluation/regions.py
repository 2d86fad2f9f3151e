"""Decisions in the plane that separates the classes best."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.core.types import FloatArray
from prudent.evaluation.decisions import decide
from prudent.evaluation.measurements import RegionMap

GRID = 48


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
