"""The fit (Algorithm 1): nominal moments, radii, threshold."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prudent.core.moments import ClassMoments
from prudent.exceptions import DegenerateDataError, PrudentWarning
from prudent.optimistic.class_scores import ClassScores
from prudent.optimistic.model import OptimisticModel, Rule
from prudent.optimistic.nominal import (
    CovarianceRule,
    NominalCovariances,
    TrainingRows,
    nominal_covariances,
)
from prudent.optimistic.radii import bootstrap_radius, clt_radius, moment_radius
from prudent.optimistic.scores import Likelihood
from prudent.optimistic.threshold import best_offsets, best_threshold

__all__ = ["ESTIMATED_RADII", "Learned", "RadiusRule", "learn"]

FloatArray = NDArray[np.float64]
Threshold = Literal["tuned", "bayes"] | float
ESTIMATED_RADII = ("clt", "moments", "bootstrap")


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """What a fit found.

    Attributes
    ----------
    model : OptimisticModel
        The rule.
    covariances : ndarray of shape (n_classes, n_features, n_features)
        Nominal covariances; 0 for features left out and classes not yet seen.
    radii : ndarray of shape (n_classes,)
        Radii of the ambiguity sets.
    floored_features : list of (label, ndarray of int)
        Features whose variance inside a class was floored.
    n_floored_eigenvalues : ndarray of shape (n_classes,)
        Eigenvalues of each correlation matrix that were floored.
    """

    model: OptimisticModel
    covariances: FloatArray
    radii: FloatArray
    floored_features: list[tuple[Any, NDArray[np.intp]]]
    n_floored_eigenvalues: NDArray[np.intp]


def learn(
    moments: ClassMoments,
    features: NDArray[np.intp],
    rows: TrainingRows | None,
    *,
    likelihood: Likelihood,
    rule: Rule,
    radius: RadiusRule,
    covariance: CovarianceRule,
    threshold: Threshold,
    priors: ArrayLike | None,
    exact: bool,
) -> Learned:
    """Learn the rule from class moments and, where a setting asks, their rows.

    Parameters
    ----------
    moments : ClassMoments
        Classes of weight 0 have not been seen yet.
    features : ndarray of int
        Features to use: those not constant over all rows.
    rows : TrainingRows or None
        The rows behind `moments`, all features.
    likelihood, rule, radius, covariance, threshold, priors
        Settings, see `OptimisticScoreClassifier`.
    exact : bool
        The moments are known, not estimated.

    Raises
    ------
    DegenerateDataError
        If no feature varies, or a class cannot have a covariance.
    ValueError
        If settings do not fit one another or the classes.
    """
    _check_settings(moments, likelihood, rule, threshold, len(features))
    prior = _class_priors(priors, moments)
    seen = np.flatnonzero(moments.weight > 0)
    part = _restrict(moments, seen, features)
    if rows is not None:
        rows = rows.restrict(features)
    nominal = nominal_covariances(part, covariance, rows, exact=exact)
    _warn_about_floors(nominal, part.classes)
    radii = radius.radii(moments, part, rows)
    scores = ClassScores.of(likelihood, part, nominal.covariances, radii[seen])
    offsets = np.zeros(len(prior))
    if rule == "ratio":
        offsets[seen] = _offsets(threshold, scores, np.log(prior[seen]), rows)
        if threshold != "tuned":
            _warn_about_radii(radii[seen])
    covariances = np.zeros_like(moments.scatter)
    covariances[np.ix_(seen, features, features)] = nominal.covariances
    n_floored = np.zeros(len(prior), dtype=np.intp)
    n_floored[seen] = nominal.n_floored_eigenvalues
    return Learned(
        model=OptimisticModel(scores, rule, prior, offsets, seen),
        covariances=covariances,
        radii=radii,
        floored_features=[
            (part.classes[k], features[j]) for k, j in nominal.floored_features
        ],
        n_floored_eigenvalues=n_floored,
    )


def _check_settings(
    moments: ClassMoments,
    likelihood: Likelihood,
    rule: Rule,
    threshold: Threshold,
    n_features: int,
) -> None:
    if moments.structure != "full":
        raise ValueError(
            "the moments keep variances only: accumulate with structure='full'."
        )
    n_classes, n_seen = len(moments.weight), np.count_nonzero(moments.weight)
    if n_seen < 2:
        raise ValueError(f"rows of at least 2 classes are needed, got {n_seen} class.")
    if not n_features:
        raise DegenerateDataError(
            "all features are constant over all rows: there is nothing to learn."
        )
    if rule == "minimax" and likelihood != "gaussian":
        raise ValueError(
            "rule='minimax' compares densities and needs likelihood='gaussian', "
            f"got likelihood={likelihood!r}."
        )
    if rule == "ratio" and not isinstance(threshold, str) and n_classes > 2:
        raise ValueError(
            f"`threshold` can be a number for two classes only, got {threshold!r} "
            f"for {n_classes} classes; use 'tuned' or 'bayes'."
        )


def _restrict(
    moments: ClassMoments, classes: NDArray[np.intp], features: NDArray[np.intp]
) -> ClassMoments:
    """Moments of some classes and some features."""
    part = np.ix_(classes, features)
    return ClassMoments(
        moments.classes[classes],
        moments.count[classes],
        moments.weight[classes],
        moments.mean[part],
        moments.mean_lo[part],
        moments.scatter[np.ix_(classes, features, features)],
    )


def _class_priors(priors: ArrayLike | None, moments: ClassMoments) -> FloatArray:
    """Given class probabilities, or frequencies.

    Raises
    ------
    ValueError
        If given ones are not positive numbers of sum 1, one per class.
    """
    if priors is None:
        return moments.weight / moments.weight.sum()
    given = np.asarray(priors, dtype=np.float64)
    fits = given.shape == moments.weight.shape and (given > 0).all()
    if not (fits and abs(given.sum() - 1) <= 1e-6):
        raise ValueError(
            f"`priors` must hold {len(moments.weight)} numbers > 0 of sum 1, got "
            f"{priors!r}."
        )
    return given


@dataclass(frozen=True, slots=True)
class RadiusRule:
    """Where the radii come from.

    Attributes
    ----------
    source : {"clt", "moments", "bootstrap"} or array-like
        Estimate, or the radii themselves (one number or one per class).
    level : float
        Nominal level of an estimate.
    scale : float
        Factor of an estimate.
    covariance : str, float or callable
        Covariance rule of the bootstrap.
    random_state : numpy.random.RandomState
        Source of the bootstrap resamples.
    """

    source: Literal["clt", "moments", "bootstrap"] | ArrayLike
    level: float
    scale: float
    covariance: CovarianceRule
    random_state: np.random.RandomState

    def radii(
        self, moments: ClassMoments, part: ClassMoments, rows: TrainingRows | None
    ) -> FloatArray:
        """Radius of each class; an estimate is 0 for a class without rows.

        Parameters
        ----------
        moments : ClassMoments
            Of all classes.
        part : ClassMoments
            Of the classes seen and the features in use.
        rows : TrainingRows or None
            The rows behind `part`.

        Raises
        ------
        ValueError
            If given radii are not finite numbers >= 0, one or one per class.
        """
        if not isinstance(self.source, str):
            return self._given(len(moments.weight))
        radii = np.zeros(len(moments.weight))
        seen = np.flatnonzero(moments.weight > 0)
        if rows is None or self.source == "clt":
            n_features, weights = part.mean.shape[1], part.weight.tolist()
            radii[seen] = [clt_radius(n_features, w, self.level) for w in weights]
        else:
            radii[seen] = rows.radii(self, part)
        return self.scale * radii

    def _given(self, n_classes: int) -> FloatArray:
        radius = np.asarray(self.source, dtype=np.float64)
        if radius.ndim and radius.shape != (n_classes,):
            raise ValueError(
                "`radius` must be a number or hold one number for each of the "
                f"{n_classes} classes, got shape {radius.shape}."
            )
        if not ((radius >= 0) & np.isfinite(radius)).all():
            raise ValueError(
                f"every radius must be finite and >= 0, got {self.source!r}."
            )
        return np.full(n_classes, radius)

    def estimate(self, X: FloatArray, weight: FloatArray | None) -> float:
        """Radius of one class by its rows."""
        # a feature constant inside the class has no spread to learn from
        X = X[:, np.ptp(X, axis=0) > 0]
        if not X.shape[1]:
            return 0.0
        if self.source == "moments":
            return moment_radius(X, self.level, sample_weight=weight)
        return bootstrap_radius(
            X,
            self.level,
            covariance=self.covariance,
            sample_weight=weight,
            random_state=self.random_state,
        )


def _offsets(
    threshold: Threshold,
    scores: ClassScores,
    log_priors: FloatArray,
    rows: TrainingRows | None,
) -> FloatArray:
    """Offsets of sum 0 that stand for the threshold, one per class seen."""
    if threshold == "bayes":
        return log_priors - log_priors.mean()
    if not isinstance(threshold, str):
        return math.log(threshold) * np.array([0.5, -0.5])
    assert rows is not None
    compared, codes, weight = rows.compared(scores)
    if len(log_priors) > 2:
        return best_offsets(compared, codes, weight)
    best = best_threshold(compared[:, 1] - compared[:, 0], codes, weight)
    return best.log_threshold * np.array([0.5, -0.5])


def _warn_about_radii(radii: FloatArray) -> None:
    """Say that an untuned ratio rule favours the class with the larger ball."""
    if radii.max() > 2 * radii.min():
        warnings.warn(
            f"the radii differ by more than a factor of 2 (from {radii.min():.3g} to "
            f"{radii.max():.3g}), so optimistic scores favour the class with the "
            "larger ball; use threshold='tuned' or rule='minimax'.",
            PrudentWarning,
            stacklevel=2,
        )


def _warn_about_floors(nominal: NominalCovariances, classes: NDArray[Any]) -> None:
    """Say which covariances were raised to be positive definite."""
    for k, features in nominal.floored_features:
        warnings.warn(
            f"class {classes.tolist()[k]!r}: {len(features)} feature(s) constant "
            "inside the class (see `floored_features_`); their variance there is "
            "set to 1e-9 of that over all rows.",
            PrudentWarning,
            stacklevel=2,
        )
    for k in np.flatnonzero(nominal.n_floored_eigenvalues).tolist():
        warnings.warn(
            f"class {classes.tolist()[k]!r}: the correlation matrix is ill "
            f"conditioned (condition number {nominal.condition[k]:.2g}); "
            f"{nominal.n_floored_eigenvalues[k]} eigenvalue(s) were raised. Remove "
            "redundant features or use covariance='ledoit_wolf'.",
            PrudentWarning,
            stacklevel=2,
        )
