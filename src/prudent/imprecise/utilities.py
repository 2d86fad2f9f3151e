"""Utility of sets along the whole path in the imprecision."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from prudent.core.types import FloatArray

#: a in the utility a / size - (a - 1) / size^2 of a set that holds the truth.
REWARDS = {"discounted_accuracy": 1.0, "u65": 1.6, "u80": 2.2}


def mean_utilities(
    critical: FloatArray,
    truth: NDArray[np.bool_],
    weight: FloatArray,
    grid: FloatArray,
    reward: float,
) -> FloatArray:
    """Mean utility of the sets {k : critical <= c} at every c of a grid.

    Parameters
    ----------
    critical : ndarray of shape (n, K)
        Imprecision at which each class enters the set of each row.
    truth : ndarray of bool, shape (n, K)
        The column of the true class; none for a class the model does not know.
    weight : ndarray of shape (n,)
        Weights of the mean.
    grid : ndarray of shape (G,)
        Imprecisions, increasing.
    reward : float
        a in the utility a / size - (a - 1) / size^2 of a set with the truth, (41)
        of the paper with its second sign put right; 0 without the truth.

    Returns
    -------
    ndarray of shape (G,)

    Examples
    --------
    >>> import numpy as np
    >>> critical = np.array([[0.0, 1.0]])
    >>> truth = np.array([[False, True]])
    >>> mean_utilities(critical, truth, np.ones(1), np.array([0.5, 2.0]), 2.2).round(9)
    array([0. , 0.8])
    """
    entry = np.searchsorted(grid, critical)  # first grid point with the class in
    n_rows, n_grid = len(critical), len(grid)
    entered = np.zeros((n_rows, n_grid + 1))
    np.add.at(entered, (np.arange(n_rows)[:, None], entry), 1.0)
    size = np.maximum(np.cumsum(entered[:, :-1], axis=1), 1.0)
    hits = np.where(truth, entry, n_grid).min(axis=1)[:, None] <= np.arange(n_grid)
    utility = np.where(hits, reward / size - (reward - 1.0) / size**2, 0.0)
    return weight @ utility / weight.sum()
