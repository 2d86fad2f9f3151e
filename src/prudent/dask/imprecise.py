"""Imprecise discriminant analysis on blocks where class moments do not suffice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.core.moments import ClassMoments
from prudent.dask.chunks import Chunks
from prudent.dask.moments import chunk_moments
from prudent.imprecise import ImpreciseDiscriminantAnalysis
from prudent.imprecise.fitting import ScaledClasses
from prudent.imprecise.rules import TrainingRows

__all__ = ["fit_imprecise"]

FloatArray = NDArray[np.float64]


def fit_imprecise(estimator: ImpreciseDiscriminantAnalysis, chunks: Chunks) -> None:
    """Fit a model whose scale or covariance takes a pass of its own over the rows.

    Raises
    ------
    TypeError
        For a covariance estimator, which needs the rows of a class in one place.
    """
    estimator._validate_params()
    if hasattr(estimator.covariance, "fit"):
        raise TypeError(
            f"covariance={estimator.covariance!r} needs all rows of a class in one "
            "place; use 'auto', 'empirical', 'oas', 'ledoit_wolf' or a number."
        )
    moments = chunk_moments(chunks)
    estimator._fit_from(moments, rows=BlockRows(chunks, moments.classes))


@dataclass(frozen=True, slots=True, eq=False)
class BlockRows:
    """Rows behind class moments, left in their blocks; see `TrainingRows`."""

    chunks: Chunks
    classes: NDArray[Any]

    def ranges(self) -> FloatArray:
        """Largest less smallest value of every feature."""
        lowest, highest = self.chunks.reduce(_block_extremes, _extremes)
        spread: FloatArray = highest - lowest
        return spread

    def scaled_moments(self, classes: ScaledClasses) -> ClassMoments:
        """Moments up to the fourth of the scaled rows, each about its class mean."""
        moments: ClassMoments = self.chunks.reduce(
            _block_moments, ClassMoments.reduce, self.classes, classes
        )
        return moments


def _block_moments(
    X: NDArray[Any], y: NDArray[Any], labels: NDArray[Any], classes: ScaledClasses
) -> ClassMoments:
    n_classes, n_features = classes.mean.shape
    if len(X) == 0:
        return ClassMoments.empty(np.arange(n_classes), n_features, fourth=True)
    codes = np.searchsorted(labels, y)
    return TrainingRows(X, codes, None).scaled_moments(classes)


def _block_extremes(X: NDArray[Any], y: NDArray[Any]) -> tuple[FloatArray, FloatArray]:
    rows = X.astype(np.float64)
    return rows.min(axis=0, initial=np.inf), rows.max(axis=0, initial=-np.inf)


def _extremes(
    parts: Sequence[tuple[FloatArray, FloatArray]],
) -> tuple[FloatArray, FloatArray]:
    lowest, highest = zip(*parts, strict=True)
    return np.min(lowest, axis=0), np.max(highest, axis=0)
