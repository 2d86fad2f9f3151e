"""The fit: moments and radii of the classes, planes between them, promises."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from prudent.core.classes import (
    class_priors,
    classes_seen,
    constant_features,
    error_costs,
    spread_over_classes,
)
from prudent.core.covariance import CovarianceRule, estimate_covariances
from prudent.core.guarantee import Guarantee
from prudent.core.moments import ClassMoments
from prudent.core.rows import Rows
from prudent.core.types import BoolArray, FloatArray, IntArray
from prudent.core.validation import check_not_tiny
from prudent.minimax.assumptions import Origin
from prudent.minimax.classification.duels import (
    Classes,
    Duel,
    Objective,
    exact_errors,
    solve_duels,
    union_errors,
)
from prudent.minimax.classification.model import Model
from prudent.minimax.classification.promises import (
    class_guarantees,
    open_gap,
    weak_promises,
)
from prudent.minimax.kernel import DEFAULT_KERNEL_RADIUS, Span
from prudent.minimax.radii import Radii, bootstrap_radii, gaussian_radii, given_radii


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Learned:
    """What a fit found; what is per class is in the order of all classes.

    Attributes
    ----------
    model : Model
        The rule.
    duels : tuple of Duel
        The planes of every pair, as the solver left them.
    errors : ndarray of shape (n_classes,)
        Worst-case error of each class.
    accuracy : float
        Worst-case accuracy that the objective is about.
    means, covariances : ndarray of shape (n_classes, n), (n_classes, n, n)
        Moments used, before any radius.
    radii : Radii
    constant : ndarray of int
        Features left out.
    guarantees : tuple of Guarantee
    remarks : tuple of str
        What a user must hear about the promises.
    open_gap : str or None
        Which plane is not certified to be the best, if one is not.
    """

    model: Model
    duels: tuple[Duel, ...]
    errors: FloatArray
    accuracy: float
    means: FloatArray
    covariances: FloatArray
    radii: Radii
    constant: IntArray
    guarantees: tuple[Guarantee, ...]
    remarks: tuple[str, ...]
    open_gap: str | None


def learn(
    moments: ClassMoments,
    rows: Rows | None,
    *,
    objective: Objective,
    costs: ArrayLike | None,
    priors: ArrayLike | None,
    covariance: CovarianceRule,
    mean_radius: ArrayLike,
    covariance_radius: ArrayLike,
    covariance_factor: ArrayLike,
    uncertainty: Literal["gaussian", "bootstrap"] | None,
    confidence: float,
    bound: Literal["union", "exact"],
    on_degenerate: Literal["raise", "warn"],
    exact: bool,
    repeated: bool,
    span: Span | None,
    random: np.random.RandomState,
) -> Learned:
    """Learn planes from class moments and, where a setting asks, their rows.

    Parameters
    ----------
    moments : ClassMoments
        Classes of weight 0 have not been seen yet.
    rows : Rows or None
        The rows behind `moments`.
    objective, costs, priors, mean_radius, covariance_radius, covariance_factor,
    uncertainty, confidence, bound, on_degenerate
        Settings, see `MinimaxProbabilityClassifier`.
    covariance : str, float or callable
        See `CovarianceRule`.
    exact : bool
        The moments are known, not estimated.
    repeated : bool
        Weights other than 0 and 1 stand for rows: no confidence then.
    span : Span or None
        The coordinates that `moments` are in, of a kernel.
    random : RandomState
        Source of bootstrap resamples.

    Raises
    ------
    DegenerateDataError
        If two class means coincide and `on_degenerate` is "raise".
    ValueError
        If settings do not fit one another or the classes.
    """
    if moments.structure != "full":
        raise ValueError(
            "the moments keep variances only: accumulate with structure='full'."
        )
    origin: Origin = "given" if exact else "plug-in"
    if uncertainty == "gaussian":
        origin = "gaussian"
    estimated = origin != "given"
    seen = classes_seen(moments)
    own = moments if seen.all() else moments.select(moments.classes[seen])
    weights = None
    if costs is not None:
        weights = error_costs(costs, len(seen))[np.ix_(seen, seen)]
    covariances = estimate_covariances(
        covariance,
        own.weight,
        own.scatter,
        fourth=own.fourth,
        rows_of=None if rows is None else rows.of_class,
    )
    radii = given_radii(mean_radius, covariance_radius, covariance_factor, len(seen))
    radii = _radii(own, rows, radii.of(seen), uncertainty, confidence, span, random)
    constant = constant_features(own) if span is None else np.empty(0, dtype=np.intp)
    if estimated:
        check_not_tiny(own.mean, np.diagonal(own.scatter, axis1=1, axis2=2))
    kept = np.delete(np.arange(own.mean.shape[1]), constant)
    prior = class_priors(priors, moments.weight)[seen]
    classes = _classes(own, covariances, radii, prior, kept)
    duels = solve_duels(
        classes, objective, weights, constant_if_coinciding=on_degenerate == "warn"
    )
    # A null direction of estimated covariances: kappa is infinite, by definition.
    proves_nothing = estimated and any(duel.is_separable for duel in duels)
    if bound == "exact" and len(prior) > 2 and not proves_nothing:
        errors = exact_errors(classes, duels)
    else:
        errors = union_errors(duels, len(prior), certified=not proves_nothing)
    remarks = [*weak_promises(own.classes, duels)]
    trivial, worst = float(prior.max()), float(errors.max())
    if objective == "mean":
        worst = float(prior @ errors)
        if trivial > 1 - worst:
            remarks.append(
                "always predicting one class has the worst-case accuracy "
                f"{trivial:.3g}, the plane {1 - worst:.3g}."
            )
    guarantees: tuple[Guarantee, ...] = ()
    if not proves_nothing and span is None and uncertainty != "bootstrap":
        guarantees = class_guarantees(
            duels,
            own.classes,
            errors,
            origin=origin,
            covariance=covariance,
            with_radii=radii.are_positive,
            confidence=None if repeated else confidence,
            trivial=trivial if objective == "mean" else None,
        )
    return Learned(
        model=_model(duels, seen, kept, own.mean.shape[1], span),
        duels=duels,
        errors=spread_over_classes(errors, seen, 1.0),
        accuracy=1 - worst,
        means=spread_over_classes(own.mean, seen, 0.0, axis=0),
        covariances=spread_over_classes(covariances, seen, 0.0, axis=0),
        radii=radii.among(seen),
        constant=constant,
        guarantees=guarantees,
        remarks=tuple(remarks),
        open_gap=open_gap(duels),
    )


def _radii(
    moments: ClassMoments,
    rows: Rows | None,
    given: Radii,
    uncertainty: Literal["gaussian", "bootstrap"] | None,
    confidence: float,
    span: Span | None,
    random: np.random.RandomState,
) -> Radii:
    """Radii of the classes with rows: from their data, or as given."""
    if uncertainty == "gaussian":
        return gaussian_radii(moments, confidence)
    if uncertainty == "bootstrap":
        assert rows is not None
        return bootstrap_radii(moments, rows, confidence, random)
    if span is None:
        return given
    # Without a radius every kernel fit separates its training rows perfectly.
    default = DEFAULT_KERNEL_RADIUS * span.mean_diagonal
    rho = np.where(given.covariance > 0, given.covariance, default)
    return replace(given, covariance=rho)


def _classes(
    moments: ClassMoments,
    covariances: FloatArray,
    radii: Radii,
    prior: FloatArray,
    kept: IntArray,
) -> Classes:
    """What the planes know of the classes with rows, in the features that vary."""
    mean, mean_lo = moments.mean, moments.mean_lo
    if len(kept) < mean.shape[1]:
        mean, mean_lo = mean[:, kept], mean_lo[:, kept]
        covariances = covariances[:, kept][:, :, kept]
    if radii.covariance.any():
        ridge = radii.covariance[:, None, None] * np.eye(len(kept))
        covariances = covariances + ridge
    return Classes(
        label=moments.classes,
        mean=mean,
        mean_lo=mean_lo,
        covariance=covariances,
        radius=radii.mean,
        factor=radii.factor,
        prior=prior,
    )


def _model(
    duels: tuple[Duel, ...],
    seen: BoolArray,
    kept: IntArray,
    n_features: int,
    span: Span | None,
) -> Model:
    """The planes over all features, or over kernel values."""
    normals = np.zeros((len(duels), n_features))
    normals[:, kept] = [duel.normal for duel in duels]
    return Model(
        normals if span is None else span.dual(normals),
        np.array([duel.offset for duel in duels]),
        tuple(duel.margins for duel in duels),
        seen,
    )
