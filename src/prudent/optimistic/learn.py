"""The fit (Algorithm 1): nominal moments, radii, threshold."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from prudent.core.classes import (
    class_priors,
    classes_seen,
    log_probabilities,
    restrict,
    spread_over_classes,
    varying_features,
)
from prudent.core.covariance import ClassCovariances, CovarianceRule
from prudent.core.moments import ClassMoments
from prudent.core.rows import Block, Rows, restricted
from prudent.core.types import BoolArray, FloatArray, IntArray
from prudent.exceptions import PrudentWarning
from prudent.optimistic.class_scores import ClassScores
from prudent.optimistic.model import Model, Rule
from prudent.optimistic.nominal import nominal_covariances, standardised_fourth
from prudent.optimistic.radii import clt_radius, limit_radii, moment_radius
from prudent.optimistic.resampling import bootstrap_radii, bootstrap_radius
from prudent.optimistic.scores import Likelihood
from prudent.optimistic.threshold import tuned_offsets

Threshold = Literal["tuned", "bayes"] | float | Callable[..., Any]
ESTIMATED_RADII = ("clt", "moments", "bootstrap")
#: Share of an estimated radius that gives useful sets: whole balls rule out nothing.
SET_SCALE = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """What a fit found.

    Attributes
    ----------
    model : Model
        The rule.
    seen : ndarray of bool, shape (n_classes,)
        Classes that have rows.
    features : ndarray of int
        Features in use.
    nominal : ClassCovariances
        Nominal covariances of these classes and features.
    radii, set_radii : ndarray of shape (n_classes,)
        Radii of the balls: of the rule, and of sets.
    """

    model: Model
    seen: BoolArray
    features: IntArray
    nominal: ClassCovariances
    radii: FloatArray
    set_radii: FloatArray

    def covariances(self, n_features: int) -> FloatArray:
        """Nominal covariances of all classes and features, 0 for what is left out."""
        everything = np.zeros((len(self.seen), n_features, n_features))
        classes = np.flatnonzero(self.seen)
        place = np.ix_(classes, self.features, self.features)
        everything[place] = self.nominal.matrices
        return everything


def learn(
    moments: ClassMoments,
    rows: Rows | None,
    *,
    likelihood: Likelihood,
    rule: Rule,
    radius: Literal["clt", "moments", "bootstrap"] | ArrayLike,
    radius_level: float,
    radius_scale: float | None,
    covariance: CovarianceRule,
    threshold: Threshold,
    priors: ArrayLike | None,
    exact: bool,
    random: np.random.RandomState,
) -> Learned:
    """Learn the rule from class moments and, where a setting asks, their rows.

    Parameters
    ----------
    moments : ClassMoments
        Classes of weight 0 have not been seen yet.
    rows : Rows or None
        The rows behind `moments`, all features.
    likelihood, rule, radius, radius_level, radius_scale, threshold, priors
        Settings, see `OptimisticScoreClassifier`.
    covariance : str, float or callable
        See `CovarianceRule`.
    exact : bool
        The moments are known, not estimated.
    random : RandomState
        Source of bootstrap resamples.

    Raises
    ------
    DegenerateDataError
        If no feature varies, or a class cannot have a covariance.
    ValueError
        If settings do not fit one another or the classes.
    """
    _check_settings(moments, likelihood, rule, radius, covariance, threshold)
    seen, features = classes_seen(moments), varying_features(moments)
    prior = class_priors(priors, moments.weight)
    part = restrict(moments, seen, features)
    fourth_of = rows_of = None
    if rows is not None:
        rows = restricted(rows, features)
        rows_of = rows.of_class
        fourth_of = partial(rows.reduce, standardised_fourth, sum, part)
    nominal = nominal_covariances(
        part, covariance, fourth_of=fourth_of, rows_of=rows_of, exact=exact
    )
    if isinstance(radius, str):
        estimated = _estimated_radii(
            radius, radius_level, part, rows, covariance, random
        )
        estimated = spread_over_classes(estimated, seen, 0.0)
        scales = (1.0, SET_SCALE) if radius_scale is None else (radius_scale,) * 2
        radii, set_radii = (scale * estimated for scale in scales)
    else:
        radii = set_radii = _given_radii(radius, len(seen))
    scores = ClassScores.of(likelihood, part, nominal.matrices, radii[seen])
    offsets = np.zeros(len(seen))
    if rule == "ratio":
        log_priors = log_probabilities(prior[seen])
        offsets[seen] = _offsets(threshold, scores, log_priors, rows)
        if threshold != "tuned" and not callable(threshold):
            _warn_about_radii(radii[seen])
    return Learned(
        model=Model(scores, set_radii[seen], rule, prior, offsets, seen),
        seen=seen,
        features=features,
        nominal=nominal,
        radii=radii,
        set_radii=set_radii,
    )


def _check_settings(
    moments: ClassMoments,
    likelihood: Likelihood,
    rule: Rule,
    radius: str | ArrayLike,
    covariance: CovarianceRule,
    threshold: Threshold,
) -> None:
    if moments.structure != "full":
        raise ValueError(
            "the moments keep variances only: accumulate with structure='full'."
        )
    if rule == "minimax" and likelihood != "gaussian":
        raise ValueError(
            "rule='minimax' compares densities and needs likelihood='gaussian', "
            f"got likelihood={likelihood!r}."
        )
    n_classes = len(moments.weight)
    if rule == "ratio" and not isinstance(threshold, str) and n_classes > 2:
        raise ValueError(
            "`threshold` can be a number or a function for two classes only, got "
            f"{threshold!r} for {n_classes} classes; use 'tuned' or 'bayes'."
        )
    if isinstance(radius, str) and (radius, covariance) == ("bootstrap", "pooled"):
        raise ValueError(
            "radius='bootstrap' resamples the rows of one class, covariance='pooled' "
            "is that of all classes: use radius='clt', 'moments' or a number."
        )


def _given_radii(radius: ArrayLike, n_classes: int) -> FloatArray:
    """One radius for each class."""
    try:
        given = np.asarray(radius, dtype=np.float64)
        found = f"shape {given.shape}"
    except (TypeError, ValueError):
        given, found = np.empty((0, 0)), repr(radius)
    if given.ndim and given.shape != (n_classes,):
        raise ValueError(
            "`radius` must be a number or hold one number for each of the "
            f"{n_classes} classes, got {found}."
        )
    if not ((given >= 0) & np.isfinite(given)).all():
        raise ValueError(f"every radius must be finite and >= 0, got {radius!r}.")
    return np.full(n_classes, given)


def _estimated_radii(
    source: str,
    level: float,
    moments: ClassMoments,
    rows: Rows | None,
    covariance: CovarianceRule,
    random: np.random.RandomState,
) -> FloatArray:
    """Radius of each class seen, from its moments or its rows."""
    if rows is None or source == "clt":
        n_features = moments.mean.shape[1]
        return np.array(
            [clt_radius(n_features, w, level) for w in moments.weight.tolist()]
        )
    if not rows.in_one_place:
        if source == "moments":
            return limit_radii(rows, moments, level)
        assert not callable(covariance)  # it has asked for rows in one place
        return bootstrap_radii(rows, moments, level, covariance, random)

    def estimate(X: FloatArray, weight: FloatArray | None) -> float:
        # a feature constant inside the class has no spread to learn from
        X = X[:, np.ptp(X, axis=0) > 0]
        if not X.shape[1]:
            return 0.0
        if source == "moments":
            return moment_radius(X, level, sample_weight=weight)
        return bootstrap_radius(
            X,
            level,
            covariance=covariance,
            sample_weight=weight,
            random_state=random,
        )

    classes = range(len(moments.weight))
    return np.array([estimate(*rows.of_class(k)) for k in classes])


def _offsets(
    threshold: Threshold,
    scores: ClassScores,
    log_priors: FloatArray,
    rows: Rows | None,
) -> FloatArray:
    """Offsets of sum 0 that stand for the threshold, one per class seen."""
    if threshold == "bayes":
        return log_priors - log_priors[log_priors > -np.inf].mean()
    if callable(threshold):  # it is asked for each row
        return np.zeros(2)
    if not isinstance(threshold, str):
        return math.log(threshold) * np.array([0.5, -0.5])
    assert rows is not None
    parts = rows.map(_compared, scores)
    compared, codes = (
        np.concatenate(found) for found in list(zip(*parts, strict=True))[:2]
    )
    weights = [weight for _, _, weight in parts if weight is not None]
    weight = np.concatenate(weights) if weights else None
    return tuned_offsets(compared, codes, weight)


def _compared(
    block: Block, scores: ClassScores
) -> tuple[FloatArray, IntArray, FloatArray | None]:
    """Scores (n, K) that a threshold compares, with codes and weights."""
    if len(block) == 0:
        return np.empty((0, len(scores.radii))), block.codes, block.weight
    return scores.decision(block.X), block.codes, block.weight


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
