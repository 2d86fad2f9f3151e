"""The fit: a region from the moments of one class, and where its scores cut."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from prudent.core.binomial import mean_rank
from prudent.core.classes import constant_features
from prudent.core.covariance import CovarianceRule, estimate_covariances
from prudent.core.guarantee import Guarantee
from prudent.core.moments import ClassMoments
from prudent.core.rows import Rows
from prudent.core.types import FloatArray, IntArray
from prudent.core.validation import check_not_tiny
from prudent.exceptions import DegenerateDataError
from prudent.minimax.assumptions import changed_covariances
from prudent.minimax.certificate import ClassMargin, certified_radius
from prudent.minimax.kernel import DEFAULT_KERNEL_RADIUS, Span
from prudent.minimax.one_class.model import Model
from prudent.minimax.one_class.promises import calibrated_promise, moment_promise
from prudent.minimax.one_class.regions import Ellipsoid, HalfSpace, ellipsoid, halfspace

SOURCES = {
    "halfspace": "Lanckriet et al. 2002, Theorem 4",
    "ellipsoid": "multivariate Chebyshev inequality",
}
#: The scores of all held-out rows, wherever they are, by a function of rows.
AskHeldOut = Callable[[Callable[..., FloatArray]], NDArray[Any]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Learned:
    """What a fit found.

    Attributes
    ----------
    model : Model
        The rule.
    covariances : ndarray of shape (1, n, n)
        Covariance used, before any radius.
    constant : ndarray of int
        Features left out.
    guarantees : tuple of Guarantee
    """

    model: Model
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
    covariance_radius: float,
    covariance_factor: float,
    false_alarm_rate: float,
    ask_held_out: AskHeldOut | None,
    grouped: bool,
    exact: bool,
    span: Span | None,
) -> Learned:
    """Learn a region and its threshold from the moments of one class.

    Parameters
    ----------
    moments : ClassMoments
        Of one class.
    rows : Rows or None
        The rows behind `moments`, for a covariance that is a function of them.
    region, mean_radius, covariance_radius, covariance_factor, false_alarm_rate
        Settings, see `MinimaxOutlierDetector`.
    covariance : str, float or callable
        See `CovarianceRule`.
    ask_held_out : callable or None
        `ask_held_out(f)` is f of the held-out rows; None cuts by the moments.
    grouped : bool
        The held-out rows are one of each group.
    exact : bool
        The moments are known, not estimated.
    span : Span or None
        The coordinates that `moments` are in, of a kernel.

    Raises
    ------
    DegenerateDataError
        If all rows are equal.
    InfeasibleError
        If no half-space that excludes the origin keeps the rate.
    SingularCovarianceError
        If the covariance is singular.
    ValueError
        If there are several classes.
    """
    if len(moments.classes) != 1:
        raise ValueError(
            f"`moments` must hold one class, got {len(moments.classes)}; use "
            "`moments.pooled()` or `moments.select([label])`."
        )
    n_features = moments.mean.shape[1]
    constant, rho = np.empty(0, dtype=np.intp), covariance_radius
    if span is None:
        check_not_tiny(moments.mean, np.diagonal(moments.scatter, axis1=1, axis2=2))
        constant = constant_features(moments)
    elif not rho:
        # Without a radius every direction outside the span would be impossible.
        rho = DEFAULT_KERNEL_RADIUS * span.mean_diagonal
    features = np.delete(np.arange(n_features), constant)
    if not len(features):
        raise DegenerateDataError(
            "MinimaxOutlierDetector: all rows are equal, so no region is defined; give "
            "rows that vary."
        )
    covariances = estimate_covariances(
        covariance,
        moments.weight,
        moments.scatter,
        fourth=moments.fourth,
        rows_of=None if rows is None else rows.of_class,
    )
    mean, mean_lo = moments.mean[0, features], moments.mean_lo[0, features]
    S = covariances[0][np.ix_(features, features)] + rho * np.eye(len(features))
    found: HalfSpace | Ellipsoid
    if region == "halfspace":
        found = halfspace(mean, S)
    else:
        found = ellipsoid(mean, mean_lo, S, rho)
    model = Model(found, features, span, np.empty(0), -np.inf)
    promises: list[Guarantee] = []
    if ask_held_out is not None:
        scores = np.sort(ask_held_out(model.scores))
        model = replace(model, calibration_scores=scores)
        model, promise = cut(model, false_alarm_rate, grouped=grouped)
        promises.append(promise)
    else:
        offset = found.threshold(false_alarm_rate, mean_radius, covariance_factor)
        # The moments in feature space are those of few rows: no promise.
        if span is None:
            radii = mean_radius, covariance_factor
            offset = _certified_offset(
                found, mean, mean_lo, S, false_alarm_rate, *radii
            )
            promise = moment_promise(
                false_alarm_rate,
                "given" if exact else "plug-in",
                changed_covariances(covariance),
                with_radii=mean_radius > 0 or covariance_factor > 1 or rho > 0,
                source=SOURCES[region],
            )
            promises.append(promise)
        model = replace(model, offset=offset)
    return Learned(
        model=model,
        covariances=covariances,
        constant=constant,
        guarantees=tuple(promises),
    )


def _certified_offset(
    region: HalfSpace | Ellipsoid,
    mean: FloatArray,
    mean_lo: FloatArray,
    S: FloatArray,
    rate: float,
    mean_radius: float,
    covariance_factor: float,
) -> float:
    """Threshold that holds for the scores as computed."""
    if isinstance(region, Ellipsoid):
        return -certified_radius(region.root, S, rate, mean_radius, covariance_factor)
    return ClassMargin.along(
        region.weights, mean, mean_lo, S, mean_radius, covariance_factor
    ).offset_for(rate)


def cut(model: Model, rate: float, *, grouped: bool) -> tuple[Model, Guarantee]:
    """The model with its threshold at the order statistic that keeps a rate."""
    scores = model.calibration_scores
    rank = mean_rank(len(scores), rate)
    offset = float(scores[rank - 1]) if rank else -np.inf
    promise = calibrated_promise(rate, len(scores), rank, grouped=grouped)
    return replace(model, offset=offset), promise
