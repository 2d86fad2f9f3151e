"""The optimistic rule on blocks: moments, shrinkage, radii, threshold.

One pass for each; radii from data take more where the sums of all their resamples
are too large for one task.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.core.distances import MahalanobisFactors
from prudent.core.moments import ClassMoments, RawMoments
from prudent.dask.chunks import Chunks
from prudent.dask.moments import chunk_moments
from prudent.optimistic import OptimisticScoreClassifier
from prudent.optimistic.class_scores import ClassScores
from prudent.optimistic.learning import RadiusRule
from prudent.optimistic.nominal import TrainingRows
from prudent.optimistic.radii import (
    N_RESAMPLES,
    check_more_rows_than_features,
    limit_covariance,
    matched_radius,
)
from prudent.optimistic.resampling import (
    poisson_counts,
    resampled_divergences,
    resampled_sums,
)

__all__ = ["fit_optimistic"]

FloatArray = NDArray[np.float64]

LARGEST_SUM = 2**23  # numbers that a task of the radii returns: 64 MB


def fit_optimistic(estimator: OptimisticScoreClassifier, chunks: Chunks) -> None:
    """Fit a rule whose covariance or threshold needs the rows.

    Raises
    ------
    TypeError
        For a covariance estimator, which needs the rows of a class in one place.
    """
    estimator._validate_params()
    if callable(getattr(estimator.covariance, "fit", None)):
        raise TypeError(
            f"covariance={estimator.covariance!r} needs all rows of a class in one "
            "place; use 'ledoit_wolf', 'oas', 'empirical' or a number."
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

    def radii(self, rule: RadiusRule, moments: ClassMoments) -> FloatArray:
        """Radius of each class: the same quantity as from rows in one place.

        The bootstrap draws every row a Poisson number of times, keyed by block and
        row, so that blocks need not agree; see `poisson_counts`.
        """
        if rule.source == "moments":
            return self._limit_radii(rule, moments)
        key = int.from_bytes(rule.random_state.bytes(16), "little")
        n_classes, n_features = moments.mean.shape
        # with Ledoit-Wolf the sums are of (z, z^2)
        width = n_features * (2 if rule.covariance == "ledoit_wolf" else 1)
        varies = _deviations(moments) > 0
        divergences: list[list[FloatArray]] = [[] for _ in range(n_classes)]
        for resamples in _groups(N_RESAMPLES, n_classes * width**2):
            totals = self.chunks.reduce(
                _block_resamples,
                _totals,
                self.classes,
                self.features,
                moments,
                rule.covariance,
                key,
                resamples,
                each=range(len(self.chunks.blocks)),
            )
            for k in np.flatnonzero(varies.any(axis=1)).tolist():
                divergences[k].append(
                    resampled_divergences(totals[k], varies[k], rule.covariance)
                )
        return np.array(
            [
                np.quantile(np.concatenate(found), rule.level) if found else 0.0
                for found in divergences
            ]
        )

    def _limit_radii(self, rule: RadiusRule, moments: ClassMoments) -> FloatArray:
        """`moment_radius` of each class, by sums of products of standardised rows."""
        n_features = moments.mean.shape[1]
        size = (n_features * (n_features + 3) // 2) ** 2
        if size > LARGEST_SUM:
            raise ValueError(
                f"radius='moments' on blocks needs {size:.3g} sums a class for "
                f"{n_features} features; use radius='bootstrap' or 'clt'."
            )
        whitenings = [_whitening(moments, k) for k in range(len(moments.weight))]
        radii = np.zeros(len(whitenings))
        for classes in _groups(len(whitenings), size):
            totals = self.chunks.reduce(
                _block_limits,
                _totals,
                self.classes,
                self.features,
                moments,
                whitenings,
                classes,
            )
            for k, total in zip(classes, totals, strict=True):
                weight = float(moments.weight[k])
                if len(total):
                    limit = total / weight
                    mean, variance = float(np.trace(limit)), 2 * float((limit**2).sum())
                    radii[k] = matched_radius(mean, variance, weight, rule.level)
        return radii

    def compared(
        self, scores: ClassScores
    ) -> tuple[FloatArray, NDArray[np.intp], None]:
        """Scores (n, K) that a threshold compares, and codes, of all rows."""
        parts = self.chunks.map(_block_scores, self.classes, self.features, scores)
        values, codes = zip(*parts, strict=True)
        return np.concatenate(values), np.concatenate(codes), None


def _deviations(moments: ClassMoments) -> FloatArray:
    """Standard deviations (K, d) by class; 0 where a feature does not vary."""
    variance: FloatArray = np.diagonal(moments.covariance(), axis1=1, axis2=2)
    return np.sqrt(variance)


def _whitening(moments: ClassMoments, k: int) -> FloatArray:
    """Inverse Cholesky factor of a class's correlation of the features that vary."""
    deviation = _deviations(moments)[k]
    kept = np.flatnonzero(deviation > 0)
    if not len(kept):
        return np.empty((0, 0))
    check_more_rows_than_features(
        len(kept), float(moments.weight[k]), "`moment_radius`"
    )
    covariance = moments.covariance()[k][np.ix_(kept, kept)]
    correlation = covariance / np.outer(deviation[kept], deviation[kept])
    return MahalanobisFactors.from_covariances(
        np.zeros((1, len(kept))), correlation[None]
    ).inverse_factors[0]


def _groups(n: int, size: int) -> Iterator[range]:
    """Numbers 0..n-1 in groups of few enough items of this size each."""
    step = max(1, LARGEST_SUM // size)
    for start in range(0, n, step):
        yield range(start, min(n, start + step))


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


def _standardised(rows: TrainingRows, k: int, moments: ClassMoments) -> FloatArray:
    """Rows of a class less its mean, over its deviations; 0 where it is constant."""
    X, _ = rows.of_class(k)
    deviation = _deviations(moments)[k]
    Z: FloatArray = (X - moments.mean[k]) - moments.mean_lo[k]
    return Z / np.where(deviation > 0, deviation, 1.0)


def _block_resamples(
    X: NDArray[Any],
    y: NDArray[Any],
    classes: NDArray[Any],
    features: NDArray[np.intp],
    moments: ClassMoments,
    rule: str | float,
    key: int,
    resamples: range,
    block: int,
) -> list[RawMoments]:
    rows = _training_rows(X, y, classes, features)
    counts = poisson_counts(len(X), key, block, resamples)
    return [
        resampled_sums(_standardised(rows, k, moments), counts[rows.codes == k], rule)
        for k in range(len(classes))
    ]


def _block_limits(
    X: NDArray[Any],
    y: NDArray[Any],
    classes: NDArray[Any],
    features: NDArray[np.intp],
    moments: ClassMoments,
    whitenings: list[FloatArray],
    wanted: range,
) -> list[FloatArray]:
    rows = _training_rows(X, y, classes, features)
    limits = []
    for k in wanted:
        kept = np.flatnonzero(_deviations(moments)[k] > 0)
        eta = _standardised(rows, k, moments)[:, kept] @ whitenings[k].T
        limits.append(limit_covariance(eta, np.ones(len(eta))))
    return limits


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


def _totals(parts: Sequence[list[Any]]) -> list[Any]:
    return [reduce(add, sums) for sums in zip(*parts, strict=True)]


def _total(parts: Sequence[FloatArray]) -> FloatArray:
    return reduce(add, parts)
