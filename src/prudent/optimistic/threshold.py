"""The threshold, or the class offsets, that get most training rows right."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prudent.core.types import FloatArray


@dataclass(frozen=True, slots=True)
class BestThreshold:
    """A cut of log ratios with the most correct training rows.

    Attributes
    ----------
    log_threshold : float
        Class 1 is predicted where the log ratio is >= this.
    n_correct : float
        Correct rows, or their weight.
    interval : tuple of float
        (a, b): every threshold in (a, b] classifies the rows alike.
    """

    log_threshold: float
    n_correct: float
    interval: tuple[float, float]


def best_threshold(
    log_ratios: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
) -> BestThreshold:
    """Threshold on log ratios with the highest training accuracy, exactly.

    Parameters
    ----------
    log_ratios : array-like of shape (n,)
        Log score of class 1 minus log score of class 0.
    y : array-like of shape (n,)
        True classes, 0 or 1.
    sample_weight : array-like of shape (n,), default=None
        Weights >= 0, read as repetitions.

    Returns
    -------
    BestThreshold
        Among the best intervals the one nearest to 0; 0 itself if inside, else
        the middle.

    Raises
    ------
    ValueError
        If there are no rows, a log ratio is not a number, a label is not 0 or 1,
        or the lengths differ.

    Notes
    -----
    Maximises equation (13) of Nguyen et al. (2020) over all thresholds, not only
    those met in training, with one sort: O(n log n).

    Examples
    --------
    >>> from prudent.optimistic import best_threshold
    >>> best_threshold([-2.0, 1.0, 3.0, 4.0], [0, 0, 1, 1])
    BestThreshold(log_threshold=2.0, n_correct=4.0, interval=(1.0, 3.0))
    """
    ratios = np.asarray(log_ratios, dtype=np.float64)
    truth = np.asarray(y)
    if ratios.ndim != 1 or not len(ratios) or truth.shape != ratios.shape:
        raise ValueError(
            "`log_ratios` and `y` must be 1-D, of one length and not empty, got "
            f"shapes {ratios.shape} and {truth.shape}."
        )
    if np.isnan(ratios).any():
        raise ValueError("`log_ratios` holds NaN; every row needs a score.")
    positive = truth == 1
    if not (positive | (truth == 0)).all():
        raise ValueError(f"`y` must hold 0 and 1 only, got {np.unique(truth)[:5]}.")
    if sample_weight is None:
        gains = 2 * positive.view(np.int8) - np.int8(1)
        negative = float(len(truth) - np.count_nonzero(positive))
    else:
        weight = np.asarray(sample_weight, dtype=np.float64)
        gains = np.where(positive, weight, -weight)
        negative = float(weight[~positive].sum())
    cut = _best_cut(ratios, gains, near=0.0)
    return replace(cut, n_correct=negative + cut.n_correct)


def tuned_offsets(
    scores: FloatArray, codes: NDArray[np.intp], weight: FloatArray | None = None
) -> FloatArray:
    """Offsets (K,) of sum 0 with which most training rows are right."""
    if scores.shape[1] > 2:
        return best_offsets(scores, codes, weight)
    best = best_threshold(scores[:, 1] - scores[:, 0], codes, weight)
    return best.log_threshold * np.array([0.5, -0.5])


def best_offsets(
    scores: FloatArray, codes: NDArray[np.intp], weight: FloatArray | None = None
) -> FloatArray:
    """Offsets of class scores that raise training accuracy, one class at a time.

    Coordinate ascent: with the other offsets fixed, the best offset of a class is
    a best threshold, found by one sort. It stops at offsets of sum 0 that no change of
    a single one improves, not necessarily at the best of all.
    """
    n_rows, n_classes = scores.shape
    weight = np.ones(n_rows) if weight is None else weight
    offsets = np.zeros(n_classes)
    rows = np.arange(n_rows)
    unimproved = 0
    while unimproved < n_classes:
        for c in range(n_classes):
            shifted = scores + offsets
            shifted[:, c] = -np.inf
            rival = shifted.argmax(axis=1)
            # class c wins where its score less the rival's is >= -offset
            margin = scores[:, c] - shifted[rows, rival]
            gains = weight * ((codes == c) * 1.0 - (codes == rival))
            cut = _best_cut(margin, gains, near=-offsets[c])
            current = float(gains[margin >= -offsets[c]].sum())
            unimproved += 1
            if cut.n_correct > current * (1 + 1e-12) + 1e-12:
                offsets[c] = -cut.log_threshold
                unimproved = 1
            if unimproved == n_classes:
                break
    return offsets - offsets.mean()


def _best_cut(values: FloatArray, gains: NDArray[Any], near: float) -> BestThreshold:
    """Threshold tau with the largest sum of gains (`n_correct`) over values >= tau."""
    order = np.argsort(values)
    ordered = values.take(order)
    # below[j]: gain lost by a cut that leaves the j smallest values below
    below = np.zeros(len(values) + 1, dtype=np.result_type(gains, np.int32))
    np.cumsum(gains[order], out=below[1:], dtype=below.dtype)
    everything = float(below[-1])
    # a cut between equal values does not exist
    tied = np.flatnonzero(ordered[1:] == ordered[:-1])
    below[1 + tied] = below.max() + 1
    least = below.min()
    best = np.flatnonzero(below == least)
    left = np.where(best > 0, ordered[best - 1], -np.inf)
    right = np.where(best < len(values), ordered[best % len(values)], np.inf)
    # distance of the interval (left, right] from the wanted place
    gap = np.maximum(np.maximum(left - near, near - right), 0.0)
    j = int(gap.argmin())
    a, b = float(left[j]), float(right[j])
    return BestThreshold(_inside(a, b, near), everything - float(least), (a, b))


def _inside(left: float, right: float, near: float) -> float:
    """The wanted place if it lies in (left, right], else the middle."""
    if left < near <= right:
        return near
    if left == -math.inf:
        return right
    if right == math.inf:
        return math.nextafter(left, math.inf)
    middle = left + (right - left) / 2
    return middle if middle > left else right
