"""Classes in coordinates (x - origin) / scale of the features in use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from prudent.core.moments import ClassMoments
from prudent.core.rows import Block, Rows
from prudent.core.types import FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class ScaledClasses:
    """Class statistics in scaled coordinates.

    Attributes
    ----------
    origin, scale : ndarray of shape (p,)
        In units of X.
    mean : ndarray of shape (K, p)
    weight : ndarray of shape (K,)
    scatter : ndarray of shape (K, p, p)
    """

    origin: FloatArray
    scale: FloatArray
    mean: FloatArray
    weight: FloatArray
    scatter: FloatArray

    @classmethod
    def of(cls, moments: ClassMoments, scale: FloatArray) -> Self:
        """Measure the moments of classes with rows in units of the scale."""
        origin = moments.weight @ moments.mean / moments.weight.sum()
        # The origin is a plain number: the rounded parts of the means stay exact.
        mean = ((moments.mean - origin) + moments.mean_lo) / scale
        scatter = moments.scatter / np.outer(scale, scale)
        return cls(origin, scale, mean, moments.weight, scatter)

    def centred(self, rows: FloatArray, codes: IntArray | int) -> FloatArray:
        """Rows in scaled coordinates, each about the mean of its class."""
        scaled: FloatArray = (rows - self.origin) / self.scale
        return scaled - self.mean[codes]


def feature_scale(
    scale: ArrayLike | None, moments: ClassMoments, rows: Rows | None
) -> FloatArray:
    """Spread s_j of every feature, in its units; 1 where it would be 0.

    Parameters
    ----------
    scale : {"std", "within", "range"}, None or array of shape (p,)
        Standard deviation of the whole sample (denominator N), pooled within the
        classes (denominator N - K), range of `rows`, 1, or the values given.
    moments : ClassMoments
        Of classes with rows and the features in use.
    rows : Rows or None
        Needed for "range".
    """
    n_features = moments.mean.shape[1]
    if scale is None:
        return np.ones(n_features)
    if not isinstance(scale, str):
        return np.array(scale, dtype=np.float64)
    if scale == "range":
        assert rows is not None
        lowest, highest = rows.reduce(_extremes, _extremes_of_all)
        spread = highest - lowest
    elif scale == "within":
        freedom = moments.weight.sum() - len(moments.weight)
        variances = np.diagonal(moments.scatter, axis1=1, axis2=2).sum(axis=0)
        spread = np.sqrt(variances / freedom) if freedom > 0 else np.ones(n_features)
    else:
        pooled = moments.pooled()
        spread = np.sqrt(np.diagonal(pooled.scatter[0]) / pooled.weight[0])
    return np.where(spread > 0, spread, 1.0)


def given_scale(scale: ArrayLike, n_features: int) -> FloatArray:
    """Given spreads of all features, checked.

    Raises
    ------
    ValueError
        If they are not one finite number > 0 for each feature.
    """
    values = np.asarray(scale, dtype=np.float64)
    if values.shape != (n_features,) or not (
        np.isfinite(values).all() and (values > 0).all()
    ):
        raise ValueError(
            f"`scale` must be n_features = {n_features} finite numbers > 0, 'std', "
            f"'within', 'range' or None, got {scale!r}."
        )
    return values


def _extremes(block: Block) -> tuple[FloatArray, FloatArray]:
    """Least and largest value of every feature in a block."""
    rows = block.X.astype(np.float64)
    return rows.min(axis=0, initial=np.inf), rows.max(axis=0, initial=-np.inf)


def _extremes_of_all(
    parts: Sequence[tuple[FloatArray, FloatArray]],
) -> tuple[FloatArray, FloatArray]:
    lowest, highest = zip(*parts, strict=True)
    return np.min(lowest, axis=0), np.max(highest, axis=0)
