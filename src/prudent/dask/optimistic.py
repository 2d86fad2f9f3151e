"""The optimistic rule on blocks: moments, shrinkage and threshold, a pass for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.core.moments import ClassMoments
from prudent.dask.chunks import Chunks
from prudent.dask.moments import chunk_moments
from prudent.optimistic import OptimisticScoreClassifier
from prudent.optimistic.class_scores import ClassScores
from prudent.optimistic.nominal import TrainingRows

__all__ = ["fit_optimistic"]

FloatArray = NDArray[np.float64]


def fit_optimistic(estimator: OptimisticScoreClassifier, chunks: Chunks) -> None:
    """Fit a rule whose covariance or threshold needs the rows.

    Raises
    ------
    TypeError
        If a setting needs the rows of a class in one place.
    """
    if callable(getattr(estimator.covariance, "fit", None)) or (
        isinstance(estimator.radius, str) and estimator.radius != "clt"
    ):
        raise TypeError(
            f"{estimator} needs all rows of a class in one place; use radius='clt' "
            "or a number, and covariance='ledoit_wolf', 'oas', 'empirical' or a number."
        )
    moments = chunk_moments(chunks)
    rows = BlockRows(chunks, moments.classes, np.arange(chunks.n_features))
    estimator._fit_from(moments, rows=rows)


@dataclass(frozen=True, eq=False)
class BlockRows:
    """Rows behind class moments, left in their blocks; see `TrainingRows`."""

    chunks: Chunks
    classes: NDArray[Any]
    features: NDArray[np.intp]

    def restrict(self, features: NDArray[np.intp]) -> BlockRows:
        """The rows with some of the features."""
        return replace(self, features=self.features[features])

    def standardised_fourth(
        self, moments: ClassMoments, deviation: FloatArray
    ) -> FloatArray:
        """Sum of |z|^4 by class over standardised rows z."""
        fourth: FloatArray = self.chunks.reduce(
            _block_fourth, _total, self.classes, self.features, moments, deviation
        )
        return fourth

    def compared(
        self, scores: ClassScores
    ) -> tuple[FloatArray, NDArray[np.intp], None]:
        """Scores (n, K) that a threshold compares, and codes, of all rows."""
        parts = self.chunks.map(_block_scores, self.classes, self.features, scores)
        values, codes = zip(*parts, strict=True)
        return np.concatenate(values), np.concatenate(codes), None


def _training_rows(
    X: NDArray[Any], y: NDArray[Any], classes: NDArray[Any], features: NDArray[np.intp]
) -> TrainingRows:
    return TrainingRows(X[:, features], np.searchsorted(classes, y), None)


def _block_fourth(
    X: NDArray[Any],
    y: NDArray[Any],
    classes: NDArray[Any],
    features: NDArray[np.intp],
    moments: ClassMoments,
    deviation: FloatArray,
) -> FloatArray:
    rows = _training_rows(X, y, classes, features)
    return rows.standardised_fourth(moments, deviation)


def _block_scores(
    X: NDArray[Any],
    y: NDArray[Any],
    classes: NDArray[Any],
    features: NDArray[np.intp],
    scores: ClassScores,
) -> tuple[FloatArray, NDArray[np.intp]]:
    rows = _training_rows(X, y, classes, features)
    if len(X) == 0:
        return np.empty((0, len(classes))), rows.codes
    values, codes, _ = rows.compared(scores)
    return values, codes


def _total(parts: Sequence[FloatArray]) -> FloatArray:
    return reduce(add, parts)
