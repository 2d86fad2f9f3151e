"""One pass for every estimator that learns from class moments."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.core.moments import ClassMoments
from prudent.dask.chunks import Chunks

__all__ = ["chunk_moments", "fit_moments"]


def fit_moments(estimator: Any, chunks: Chunks) -> None:
    """Fit an estimator from the moments of all blocks, merged in a tree."""
    estimator.fit_moments(chunk_moments(chunks, **estimator._moment_options()))


def chunk_moments(chunks: Chunks, **options: Any) -> ClassMoments:
    """Moments of all rows: the tree of `ClassMoments.reduce` over the blocks."""
    moments: ClassMoments = chunks.reduce(
        _block_moments, ClassMoments.reduce, chunks.n_features, options
    )
    return moments


def _block_moments(
    X: NDArray[Any], y: NDArray[Any], n_features: int, options: dict[str, Any]
) -> ClassMoments:
    if len(X) == 0:  # an empty partition is the neutral element
        return ClassMoments.empty(np.unique(y), n_features, **options)
    return ClassMoments.from_arrays(X, y, **options)
