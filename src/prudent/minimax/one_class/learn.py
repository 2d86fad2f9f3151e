"""The fit: a region from the moments of one class, where they cut, what it promises."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.linalg import eigvalsh

from prudent.core.classes import check_not_tiny, constant_features
from prudent.core.guarantee import Guarantee
from prudent.core.linalg import CovarianceRule, estimate_covariances
from prudent.core.moments import ClassMoments
from prudent.core.rows import Rows
from prudent.core.types import FloatArray, IntArray
from prudent.exceptions import DegenerateDataError, SingularCovarianceError
from prudent.minimax.certificate import ClassMargin, certified_radius
from prudent.minimax.curve import TINY_PIVOT
from prudent.minimax.kernel import Span
from prudent.minimax.one_class.model import HalfSpace, Model, ellipsoid, halfspace
from prudent.minimax.radii import Origin, known_moments

#: Where it is proved that a region of known moments keeps its rate.
SOURCES = {
    "halfspace": "Lanckriet et al. 2002, Theorem 4",
    "ellipsoid": "multivariate Chebyshev inequality",
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Learned:
    """What a fit found: `covariances` before any radius, `constant` features.

    Scores below `offset` are those of outliers; -inf without a rate.
    """

    model: Model
    offset: float
    covariances: FloatArray
    constant: IntArray
    guarantees: tuple[Guarantee, ...]


def learn(
    moments: ClassMoments,
    rows: Rows | None,
    *,
    region: Literal["ellipsoid", "halfspace"],
    covariance: CovarianceRule,
    mean_radius: float,
    covariance_radius: float | None,
    covariance_factor: float,
    false_alarm_rate: float | None,
    exact: bool,
    span: Span | None,
) -> Learned:
    """Learn a region and its threshold from the moments of one class.

    Settings are those of `MinimaxOutlierDetector`. The moments cut at a false-alarm
    rate; without one, held-out rows are to cut. `exact` moments are known, not
    estimated; `span` holds the coordinates of a kernel.
    """
    if len(moments.classes) != 1:
        raise ValueError(
            f"`moments` must hold one class, got {len(moments.classes)}; use "
            "`moments.pooled()` or `moments.select([label])`."
        )
    features = _varying_features(moments, span)
    covariances = estimate_covariances(
        covariance,
        moments.weight,
        moments.scatter,
        fourth=moments.fourth,
        rows_of=None if rows is None else rows.of_class,
    )
    rho = covariance_radius
    if rho is None:
        rho = 0.0 if span is None else span.default_radius
    mean, mean_lo = moments.mean[0, features], moments.mean_lo[0, features]
    S = covariances[0][np.ix_(features, features)] + rho * np.eye(len(features))
    if span is not None:
        _check_regular(S, rho, span)
    shape = (
        halfspace(mean, S)
        if region == "halfspace"
        else ellipsoid(mean, mean_lo, S, rho)
    )
    model = Model(shape, features, span)
    offset = -np.inf
    guarantees: tuple[Guarantee, ...] = ()
    if false_alarm_rate is not None:
        radii = mean_radius, covariance_factor
        offset = _moment_offset(model, mean, mean_lo, S, false_alarm_rate, *radii)
        if span is None:  # moments in feature space, of few rows, promise nothing
            promise = moment_promise(
                false_alarm_rate,
                "given" if exact else "plug-in",
                covariance,
                with_radii=mean_radius > 0 or covariance_factor > 1 or rho > 0,
                region=region,
            )
            guarantees = (promise,)
    return Learned(
        model=model,
        offset=offset,
        covariances=covariances,
        constant=np.setdiff1d(np.arange(moments.mean.shape[1]), features),
        guarantees=guarantees,
    )


def _varying_features(moments: ClassMoments, span: Span | None) -> IntArray:
    """Features of the region: those that vary, or all coordinates of a kernel."""
    features: IntArray = np.arange(moments.mean.shape[1])
    if span is None:
        check_not_tiny(moments)
        features = np.delete(features, constant_features(moments))
    if not len(features):
        raise DegenerateDataError(
            "MinimaxOutlierDetector: all rows are equal, so no region is defined; give "
            "rows that vary."
        )
    return features


def _check_regular(S: FloatArray, rho: float, span: Span) -> None:
    """Raise SingularCovarianceError where rounding decides what a kernel's S forbids.

    S (r, r) includes rho I. A variance is known to within a multiple of eps of the
    largest one; the coordinates of a span have no names that an error could tell.
    """
    least = 2 * TINY_PIVOT * len(S) * float(S.diagonal().max())
    if rho < least and not float(eigvalsh(S, subset_by_index=[0, 0])[0]) >= least:
        raise SingularCovarianceError(
            "the covariance of the class in the feature space of the kernel is "
            f"singular at covariance_radius={rho:g}: set it to {2 * least:.1e} or "
            f"more, or leave it at None, which is {span.default_radius:.3g} here."
        )


def _moment_offset(
    model: Model,
    mean: FloatArray,
    mean_lo: FloatArray,
    S: FloatArray,
    rate: float,
    mean_radius: float,
    covariance_factor: float,
) -> float:
    """Threshold under every law with the moments, for linear scores as computed."""
    radii, region = (mean_radius, covariance_factor), model.region
    if not isinstance(region, HalfSpace):
        return -certified_radius(region.root, S, rate, *radii)
    exact = region.threshold(rate, *radii)  # or there is no such half-space
    if model.span is not None:
        return exact
    return ClassMargin.along(region.weights, mean, mean_lo, S, *radii).offset_for(rate)


def moment_promise(
    rate: float,
    origin: Origin,
    covariance: CovarianceRule,
    with_radii: bool,
    region: str,
) -> Guarantee:
    """The promise of a region that holds for every law with the moments used."""
    known, numbers = known_moments(origin, covariance, with_radii=with_radii)
    return Guarantee(
        quantity="false alarm rate",
        bound=rate,
        sense="<=",
        assumptions=known,
        evidence=numbers,
        source=SOURCES[region],
    )
