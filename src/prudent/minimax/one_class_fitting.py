"""From one class's moments and settings to a region and its threshold."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.core.binomial import mean_rank
from prudent.core.guarantee import Guarantee
from prudent.core.moments import ClassMoments
from prudent.core.types import FloatArray
from prudent.core.validation import check_not_tiny
from prudent.estimator_tools import constant_features, warn_constant_features
from prudent.exceptions import DegenerateDataError, PrudentWarning
from prudent.minimax.certificate import ClassMargin, certified_radius
from prudent.minimax.kernel import DEFAULT_KERNEL_RADIUS, Span, span_of
from prudent.minimax.one_class import Ellipsoid, HalfSpace, ellipsoid, halfspace
from prudent.minimax.promises import (
    Ground,
    calibrated_false_alarm_guarantee,
    changed_covariances,
    moment_false_alarm_guarantee,
)
from prudent.minimax.settings import (
    class_covariances,
    kept_columns,
    kernel_columns,
    kernel_diagonal,
    moment_options,
)

__all__ = [
    "OneClassFit",
    "calibrated_threshold",
    "check_kernel",
    "free_threshold",
    "learn_kernel",
    "learn_moments",
    "learn_rows",
]

SOURCES = {
    "halfspace": "Lanckriet et al. 2002, Theorem 4",
    "ellipsoid": "multivariate Chebyshev inequality",
}
#: Unit to which scores of kernel fits are rounded, in their standard deviations.
KERNEL_RESOLUTION = 2.0**-26


@dataclass(frozen=True, slots=True, eq=False)
class OneClassFit:
    """A region with what is needed to bring rows into its coordinates.

    Linear fits have the `moments` and `covariances` of the data and leave the
    `constant` features out; kernel fits have a `span`.
    """

    region: HalfSpace | Ellipsoid
    constant: NDArray[np.intp]
    moments: ClassMoments | None = None
    covariances: FloatArray | None = None
    span: Span | None = None

    def scores(self, estimator: Any, X: FloatArray) -> FloatArray:
        """Score of each row, (n,): the lower, the more unusual."""
        if self.span is None:
            return self.region.scores(np.delete(X, self.constant, axis=1))
        coordinates = self.span.coordinates(kernel_columns(estimator, X))
        if isinstance(self.region, HalfSpace):
            scores = self.region.scores(coordinates)
            return rounded(scores, self.region.zeta)
        inside = np.einsum("ij,ij->i", coordinates, coordinates)
        outside = kernel_diagonal(estimator, X) - inside
        return rounded(self.region.scores(coordinates, outside), 1.0)

    def weights(self) -> FloatArray | None:
        """Weights of the features, or of the kernel columns, of a half-space."""
        if not isinstance(self.region, HalfSpace):
            return None
        if self.span is not None:
            return self.span.dual(self.region.weights[None])
        n_features = len(self.region.weights) + len(self.constant)
        varying = np.setdiff1d(np.arange(n_features), self.constant)
        weights = np.zeros((1, n_features))
        weights[0, varying] = self.region.weights
        return weights


def rounded(scores: FloatArray, scale: float) -> FloatArray:
    """Scores without the digits that depend on how many rows are scored at once.

    Kernel values and their coordinates come from BLAS.
    """
    unit = 2.0 ** math.floor(math.log2(scale)) * KERNEL_RESOLUTION
    near: FloatArray = np.rint(scores / unit) * unit
    return near


def check_kernel(estimator: Any) -> None:
    """Raise ValueError for an ellipsoid that a kernel does not define."""
    if estimator.kernel == "linear" or estimator.region == "halfspace":
        return
    if estimator.threshold == "distribution_free" or estimator.kernel == "precomputed":
        raise ValueError(
            f"region='ellipsoid' with kernel={estimator.kernel!r} and threshold="
            f"{estimator.threshold!r} is undefined: use region='halfspace', or a named "
            "kernel with threshold='calibrated'."
        )


def learn_rows(estimator: Any, X: FloatArray) -> OneClassFit:
    """Region of the rows of one class."""
    moments = ClassMoments.from_arrays(
        X, np.zeros(len(X), dtype=np.intp), **moment_options(estimator.covariance)
    )
    return _learn(estimator, moments, partial(_one_part, X))


def learn_moments(estimator: Any, moments: ClassMoments) -> OneClassFit:
    """Region of a class known by its moments."""
    return _learn(estimator, moments, None)


def _learn(estimator: Any, moments: ClassMoments, parts: Any) -> OneClassFit:
    check_not_tiny(moments.mean, np.diagonal(moments.scatter, axis1=1, axis2=2))
    constant = constant_features(moments)
    varying = np.setdiff1d(np.arange(moments.mean.shape[1]), constant)
    if not len(varying):
        raise DegenerateDataError(
            "MinimaxOutlierDetector: all rows are equal, so no region is defined; give "
            "rows that vary."
        )
    warn_constant_features(estimator, constant)
    covariances = class_covariances(estimator.covariance, moments, parts)
    region = _region(
        estimator,
        moments.mean[:, varying],
        moments.mean_lo[:, varying],
        covariances[:, varying[:, None], varying],
        estimator.covariance_radius,
    )
    return OneClassFit(region, constant, moments, covariances)


def learn_kernel(
    estimator: Any, X: FloatArray, fitted: NDArray[np.intp]
) -> OneClassFit:
    """Region in the span of the fitted rows."""
    if estimator.kernel == "precomputed":
        kept_columns(X, None)
    span = span_of(kernel_columns(estimator, X[fitted]))
    moments = ClassMoments.from_arrays(
        span.rows,
        np.zeros(len(fitted), dtype=np.intp),
        **moment_options(estimator.covariance),
    )
    covariances = class_covariances(
        estimator.covariance, moments, partial(_one_part, span.rows)
    )
    # Without a radius every direction outside the span would be impossible.
    rho = estimator.covariance_radius or DEFAULT_KERNEL_RADIUS * span.mean_diagonal
    region = _region(estimator, moments.mean, moments.mean_lo, covariances, rho)
    return OneClassFit(region, np.empty(0, dtype=np.intp), span=span)


def _one_part(X: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
    return [(X, np.ones(len(X)))]


def _region(
    estimator: Any,
    mean: FloatArray,
    mean_lo: FloatArray,
    covariances: FloatArray,
    rho: float,
) -> HalfSpace | Ellipsoid:
    S = covariances + rho * np.eye(mean.shape[1])
    if estimator.region == "halfspace":
        return halfspace(mean[0], S[0])
    return ellipsoid(mean[0], mean_lo[0], S[0], rho)


def free_threshold(
    estimator: Any, fit: OneClassFit, ground: Ground
) -> tuple[float, tuple[Guarantee, ...]]:
    """Threshold that holds for every law with the moments, and its promise.

    Kernel fits promise nothing: the moments in feature space are those of few rows.
    """
    rate = estimator.false_alarm_rate
    nu, gamma = estimator.mean_radius, estimator.covariance_factor
    offset = fit.region.threshold(rate, nu, gamma)
    if fit.moments is None or fit.covariances is None:
        return offset, ()
    rho = estimator.covariance_radius
    kept = np.setdiff1d(np.arange(fit.moments.mean.shape[1]), fit.constant)
    S = fit.covariances[0][np.ix_(kept, kept)] + rho * np.eye(len(kept))
    if isinstance(fit.region, Ellipsoid):
        offset = -certified_radius(fit.region.root, S, rate, nu, gamma)
    else:
        mean, mean_lo = fit.moments.mean[0, kept], fit.moments.mean_lo[0, kept]
        seen = ClassMargin.along(fit.region.weights, mean, mean_lo, S, nu, gamma)
        offset = seen.offset_for(rate)
    return offset, moment_false_alarm_guarantee(
        rate,
        ground,
        changed_covariances(estimator.covariance),
        with_radii=nu > 0 or gamma > 1 or rho > 0,
        source=SOURCES[estimator.region],
    )


def calibrated_threshold(
    rate: float, sorted_scores: FloatArray, *, grouped: bool = False
) -> tuple[float, tuple[Guarantee, ...]]:
    """Order statistic of held-out scores that keeps the rate, and its promise."""
    n_scores = len(sorted_scores)
    rank = mean_rank(n_scores, rate)
    if rank == 0:
        warnings.warn(
            f"MinimaxOutlierDetector: {n_scores} held-out rows are too few for "
            f"false_alarm_rate={rate:g}, so no row is an outlier: give more rows or a "
            "larger calibration_size.",
            PrudentWarning,
            stacklevel=3,
        )
    offset = float(sorted_scores[rank - 1]) if rank else -np.inf
    promise = calibrated_false_alarm_guarantee(rate, n_scores, rank, grouped=grouped)
    return offset, promise
