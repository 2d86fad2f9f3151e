"""From moments and settings to solved duels: the middle of every minimax fit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from prudent.core.classes import as_costs
from prudent.core.guarantee import Guarantee
from prudent.core.moments import ClassMoments
from prudent.core.types import FloatArray
from prudent.core.validation import check_not_tiny
from prudent.estimator_tools import constant_features, warn_constant_features
from prudent.minimax.exact_bound import exact_errors
from prudent.minimax.kernel import DEFAULT_KERNEL_RADIUS, Span
from prudent.minimax.multiclass import Classes, DuelSet, solve_duels
from prudent.minimax.promises import Ground, changed_covariances, class_guarantees
from prudent.minimax.radii import (
    Radii,
    bootstrap_covariance_radius,
    covariance_factor,
    mean_radius,
)
from prudent.minimax.settings import class_covariances, moment_options, per_class
from prudent.minimax.warn import warn_about

__all__ = [
    "Evidence",
    "Outcome",
    "check_settings",
    "learn_moments",
    "learn_rows",
    "learn_span",
]

#: Resamples of fewer rows say next to nothing about what the rows do not show.
FEWEST_ROWS_TO_RESAMPLE = 10


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """What a fit knows of its classes, and where it comes from.

    `seen` (n_classes,) marks the classes that have rows; `moments`, `covariances`
    (before any radius) and `radii` are theirs alone. `constant` features are left out
    of every plane. `repeats` says that weights other than 0 and 1 stand for rows.
    """

    seen: NDArray[np.bool_]
    moments: ClassMoments
    covariances: FloatArray
    radii: Radii
    ground: Ground
    constant: NDArray[np.intp]
    repeats: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """Solved duels and what they promise for the classes that have rows."""

    evidence: Evidence
    duels: DuelSet
    floors: FloatArray
    normals: FloatArray
    errors: FloatArray
    accuracy: float
    guarantees: tuple[Guarantee, ...]

    def for_all(self, values: FloatArray, unseen: float = 0.0) -> FloatArray:
        """Values of the seen classes in the rows of all classes."""
        everything = np.full((len(self.evidence.seen), *values.shape[1:]), unseen)
        everything[self.evidence.seen] = values
        return everything


def learn_moments(
    estimator: Any, moments: ClassMoments, *, given: bool, repeats: bool
) -> Outcome:
    """Linear rule from moments alone."""
    seen = _seen(moments)
    own = moments if seen.all() else moments.select(moments.classes[seen])
    ground: Ground = "given" if given else "plug-in"
    if estimator.uncertainty == "gaussian":
        ground, radii = "gaussian", _gaussian_radii(own, estimator.confidence)
    else:
        radii = _given_radii(estimator, seen)
    covariances = class_covariances(estimator.covariance, own)
    constant = constant_features(own)
    warn_constant_features(estimator, constant)
    return decide(
        estimator,
        Evidence(seen, own, covariances, radii, ground, constant, repeats),
    )


def learn_rows(
    estimator: Any, X: FloatArray, y: NDArray[Any], weight: FloatArray | None
) -> Outcome:
    """Linear rule from more than the moments hold."""
    moments = ClassMoments.from_arrays(X, y, weight)
    seen = _seen(moments)
    parts = partial(_by_class, X, y, weight, moments.classes)
    covariances = class_covariances(estimator.covariance, moments, parts)
    ground: Ground = "plug-in"
    if estimator.uncertainty == "bootstrap":
        random = check_random_state(estimator.random_state)
        _check_rows_to_resample(moments)
        radii = _bootstrap_radii(parts(), estimator.confidence, random)
    else:
        radii = _given_radii(estimator, seen)
    constant = constant_features(moments)
    warn_constant_features(estimator, constant)
    return decide(
        estimator, Evidence(seen, moments, covariances, radii, ground, constant)
    )


def learn_span(
    estimator: Any,
    span: Span,
    y: NDArray[Any],
    weight: FloatArray | None,
) -> Outcome:
    """Kernel rule, in the span coordinates of the training rows."""
    moments = ClassMoments.from_arrays(
        span.rows, y, weight, **moment_options(estimator.covariance)
    )
    seen = _seen(moments)
    parts = partial(_by_class, span.rows, y, weight, moments.classes)
    covariances = class_covariances(estimator.covariance, moments, parts)
    radii = _given_radii(estimator, seen)
    # Without a radius every kernel fit separates its training rows perfectly.
    default = DEFAULT_KERNEL_RADIUS * span.mean_diagonal
    covariance_radius = np.where(radii.covariance > 0, radii.covariance, default)
    return decide(
        estimator,
        Evidence(
            seen,
            moments,
            covariances,
            replace(radii, covariance=covariance_radius),
            "plug-in",
            np.empty(0, dtype=np.intp),
        ),
    )


def _seen(moments: ClassMoments) -> NDArray[np.bool_]:
    seen = moments.weight > 0
    if np.count_nonzero(seen) < 2:
        raise ValueError(
            "the minimax classifier needs rows of at least 2 classes, got "
            f"{np.count_nonzero(seen)} class."
        )
    return seen


def _by_class(
    X: FloatArray, y: NDArray[Any], weight: FloatArray | None, labels: NDArray[Any]
) -> list[tuple[FloatArray, FloatArray]]:
    """Rows and weights of each class."""
    w = np.ones(len(X)) if weight is None else weight
    masks = [y == label for label in labels]
    return [(X[mask], w[mask]) for mask in masks]


def check_settings(estimator: Any) -> None:
    """Raise ValueError for settings that contradict each other."""
    if estimator.uncertainty is not None:
        taken = {
            "kernel": "linear",
            "covariance": "empirical",
            "mean_radius": 0,
            "covariance_radius": 0,
            "covariance_factor": 1,
        }
        for name, neutral in taken.items():
            value = getattr(estimator, name)
            if not np.all(np.asarray(value, dtype=object) == neutral):
                raise ValueError(
                    f"uncertainty={estimator.uncertainty!r} takes all radii from the "
                    f"empirical moments: leave `{name}` at {neutral!r}, got {value!r}."
                )
    if estimator.bound == "exact" and (
        estimator.uncertainty is not None or np.any(np.asarray(estimator.mean_radius))
    ):
        raise ValueError(
            "bound='exact' holds for known means: use bound='union' together with "
            f"mean_radius={estimator.mean_radius!r} and "
            f"uncertainty={estimator.uncertainty!r}."
        )
    if (estimator.objective == "cost") != (estimator.costs is not None):
        raise ValueError(
            "objective='cost' and `costs` go together, got "
            f"objective={estimator.objective!r} and costs={estimator.costs!r}."
        )


def _given_radii(estimator: Any, seen: NDArray[np.bool_]) -> Radii:
    """Radii of the classes with rows as set by the user."""

    def setting(name: str, least: float) -> FloatArray:
        return per_class(name, getattr(estimator, name), len(seen), least)[seen]

    return Radii(
        setting("mean_radius", 0),
        setting("covariance_radius", 0),
        setting("covariance_factor", 1),
    )


def _gaussian_radii(moments: ClassMoments, confidence: float) -> Radii:
    """Radii that hold for all classes together with probability `confidence`."""
    n_classes, n_features = moments.mean.shape
    level = (1 - confidence) / (2 * n_classes)
    n_rows = np.floor(moments.weight).astype(int).tolist()
    for label, n in zip(moments.classes.tolist(), n_rows, strict=True):
        if n <= n_features + 1:
            raise ValueError(
                f"uncertainty='gaussian' needs more than {n_features + 1} rows per "
                f"class for {n_features} features, class {label!r} has {n}: use "
                "uncertainty='bootstrap', fewer features or more rows."
            )
    return Radii(
        mean=np.array([mean_radius(n_features, n, level) for n in n_rows]),
        covariance=np.zeros(n_classes),
        factor=np.array([covariance_factor(n_features, n, level) for n in n_rows]),
    )


def _check_rows_to_resample(moments: ClassMoments) -> None:
    """Raise ValueError for a class too small to learn its own uncertainty from."""
    for label, count in zip(moments.classes.tolist(), moments.count, strict=True):
        if count < FEWEST_ROWS_TO_RESAMPLE:
            raise ValueError(
                f"uncertainty='bootstrap' needs {FEWEST_ROWS_TO_RESAMPLE} rows per "
                f"class at least, class {label!r} has {count}: give more rows, or set "
                "`covariance_radius` and `mean_radius`."
            )


def _bootstrap_radii(
    parts: list[tuple[FloatArray, FloatArray]],
    confidence: float,
    random: np.random.RandomState,
) -> Radii:
    """Radii that hold for all classes together with about `confidence`."""
    level = (1 - confidence) / (2 * len(parts))
    return Radii(
        mean=np.array([mean_radius(X.shape[1], w.sum(), level) for X, w in parts]),
        covariance=np.array(
            [bootstrap_covariance_radius(X, w, level, random) for X, w in parts]
        ),
        factor=np.ones(len(parts)),
    )


def decide(estimator: Any, evidence: Evidence) -> Outcome:
    """Solve the duels of all seen classes and state what they promise."""
    if evidence.ground != "given":
        variation = np.diagonal(evidence.moments.scatter, axis1=1, axis2=2)
        check_not_tiny(evidence.moments.mean, variation)
    classes = _classes(estimator, evidence)
    duels = solve_duels(
        classes,
        estimator.objective,
        _costs(estimator, evidence.seen),
        constant_if_coinciding=estimator.on_degenerate == "warn",
    )
    if evidence.ground != "given" and duels.is_separable:
        # A null direction of estimated covariances: kappa is infinite, by definition.
        errors = duels.union_errors(certified=False)
    elif estimator.bound == "exact" and len(classes.label) > 2:
        errors = exact_errors(classes, duels)
    else:
        errors = duels.union_errors()
    if estimator.objective == "mean":
        accuracy = 1 - float(classes.prior @ errors)
    else:
        accuracy = 1 - float(errors.max())
    warn_about(estimator, classes, duels, accuracy)
    normals = np.zeros((len(duels.duels), evidence.moments.mean.shape[1]))
    normals[:, _varying(evidence)] = duels.normals
    guarantees = _promises(estimator, classes, duels, errors, evidence)
    floors = np.array([duel.floor for duel in duels.duels])
    return Outcome(evidence, duels, floors, normals, errors, accuracy, guarantees)


def _varying(evidence: Evidence) -> Any:
    """Index of the features that are not constant; a slice where that is all."""
    if not len(evidence.constant):
        return slice(None)
    n_features = evidence.moments.mean.shape[1]
    return np.setdiff1d(np.arange(n_features), evidence.constant)


def _classes(estimator: Any, evidence: Evidence) -> Classes:
    moments, radii, kept = evidence.moments, evidence.radii, _varying(evidence)
    covariance = evidence.covariances[:, kept][:, :, kept]
    if radii.covariance.any():
        covariance = covariance.copy()
        features = np.arange(covariance.shape[1])
        covariance[:, features, features] += radii.covariance[:, None]
    return Classes(
        label=moments.classes,
        mean=moments.mean[:, kept],
        mean_lo=moments.mean_lo[:, kept],
        covariance=covariance,
        radius=radii.mean,
        factor=radii.factor,
        prior=_priors(estimator, evidence.seen, moments.weight),
    )


def _priors(estimator: Any, seen: NDArray[np.bool_], weight: FloatArray) -> FloatArray:
    if estimator.priors is None:
        return weight / weight.sum()
    priors = per_class("priors", estimator.priors, len(seen), 0.0)
    if abs(priors.sum() - 1) > 1e-8:
        raise ValueError(f"`priors` must sum to 1, got {priors.sum():g}.")
    if not (priors[seen] > 0).all():
        raise ValueError(
            f"`priors` of classes with rows must be > 0, got {priors.tolist()}."
        )
    return priors[seen] / priors[seen].sum()


def _costs(estimator: Any, seen: NDArray[np.bool_]) -> FloatArray | None:
    """Weight of an error of the row's class against the column's."""
    if estimator.costs is None:
        return None
    costs = as_costs(estimator.costs)
    if costs.shape != (len(seen), len(seen)):
        raise ValueError(
            f"`costs` must have shape {(len(seen), len(seen))}, got {costs.shape}."
        )
    weights = costs - np.diag(costs)[:, None]
    wrong = ~np.eye(len(seen), dtype=bool)
    if not (np.isfinite(costs).all() and (weights[wrong] > 0).all()):
        raise ValueError(
            "`costs` must be finite, and each error must cost more than the right "
            f"answer in its row, got {costs.tolist()}."
        )
    return weights[np.ix_(seen, seen)]


def _promises(
    estimator: Any,
    classes: Classes,
    duels: DuelSet,
    errors: FloatArray,
    evidence: Evidence,
) -> tuple[Guarantee, ...]:
    kappas = np.array([duel.kappa for duel in duels.duels])
    estimated = evidence.ground != "given"
    if (
        estimator.kernel != "linear"
        or estimator.uncertainty == "bootstrap"
        or (estimated and duels.is_separable)
    ):
        return ()
    # An estimated variance of zero proves nothing.
    proved = ~duels.constant_classes if estimated else np.full(len(errors), True)
    figures = {
        "kappa": float(kappas.min()),
        "duality gap": max(duel.gap for duel in duels.duels),
    }
    if estimator.objective == "mean":
        figures["trivial_bound"] = float(classes.prior.max())
    radii = evidence.radii
    # Given covariances are smaller than those with a floor, for which the bound holds.
    floor = max(duel.floor for duel in duels.duels) if estimated else 0.0
    return class_guarantees(
        classes.label[proved],
        errors[proved],
        ground=evidence.ground,
        changes=changed_covariances(estimator.covariance, floor),
        with_radii=bool(
            radii.mean.any() or radii.covariance.any() or (radii.factor > 1).any()
        ),
        confidence=None if evidence.repeats else estimator.confidence,
        evidence=figures,
    )
