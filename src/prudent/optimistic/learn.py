"""The fit (Algorithm 1): nominal moments, radii, threshold."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prudent.core.classes import (
    class_priors,
    classes_seen,
    log_probabilities,
    restrict,
    spread_over_classes,
    varying_features,
)
from prudent.core.guarantee import Guarantee
from prudent.core.linalg import ClassCovariances, CovarianceRule, MahalanobisFactors
from prudent.core.moments import ClassMoments
from prudent.core.rows import Block, Rows, restricted
from prudent.core.types import FloatArray, IntArray
from prudent.exceptions import PrudentWarning
from prudent.optimistic.model import Model, Rule
from prudent.optimistic.nominal import nominal_covariances, standardised_fourth
from prudent.optimistic.radii import estimated_radii, given_radii
from prudent.optimistic.scores import Ball, Likelihood

Threshold = Literal["tuned", "bayes"] | float | Callable[..., Any]
#: Share of an estimated radius that gives useful sets: whole balls rule out nothing.
SET_SCALE = 0.1


@dataclass(frozen=True, slots=True)
class Learned:
    """The rule, and what the estimator shows of the fit."""

    model: Model
    features: IntArray  # in use
    nominal: ClassCovariances  # of the classes seen and these features
    radii: FloatArray  # (n_classes,) of the rule
    set_radii: FloatArray  # (n_classes,)

    def covariances(self, n_features: int) -> FloatArray:
        """Nominal covariances of all classes and features, (n_classes, d, d).

        0 for classes without rows and for constant features.
        """
        everything = np.zeros((len(self.model.seen), n_features, n_features))
        classes = np.flatnonzero(self.model.seen)
        place = np.ix_(classes, self.features, self.features)
        everything[place] = self.nominal.matrices
        return everything


def learn(
    moments: ClassMoments,
    rows: Rows | None,
    *,
    likelihood: Likelihood,
    ball: Ball,
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
        Of all declared classes; those of weight 0 have not been seen yet.
    rows : Rows or None
        The rows behind the moments, all features.
    likelihood : {"gaussian", "nonparametric"}
        What scores a row under given moments.
    ball : {"moments", "covariance"}
        Whether the means move too.
    rule : {"ratio", "minimax"}
        Optimistic scores against a threshold, or the least worst-case posterior error.
    radius : {"clt", "moments", "bootstrap"} or array-like of shape (n_classes,)
        Where the radii of the balls come from, or the radii.
    radius_level : float
        Nominal level of an estimated radius, in (0, 1).
    radius_scale : float or None
        Factor of an estimated radius. None is 1, and 0.1 for sets.
    covariance : str, float or callable
        The setting `covariance=` of the nominal moments.
    threshold : {"tuned", "bayes"}, float or callable
        What optimistic scores are compared with.
    priors : array-like of shape (n_classes,) or None
        None is the share of the rows.
    exact : bool
        Whether the moments are known, not estimated: any class size will do.
    random : RandomState
        Draws resamples of the bootstrap.

    Returns
    -------
    Learned

    Raises
    ------
    ValueError
        If settings do not go together, or do not fit the number of classes.
    DegenerateDataError
        If a class is too small for its covariance.
    """
    _check_settings(moments, likelihood, ball, rule, radius, covariance, threshold)
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
        estimated = estimated_radii(
            radius, radius_level, part, rows, covariance, ball, random
        )
        estimated = spread_over_classes(estimated, seen, 0.0)
        scales = (1.0, SET_SCALE) if radius_scale is None else (radius_scale,) * 2
        radii, set_radii = (scale * estimated for scale in scales)
    else:
        radii = set_radii = given_radii(radius, len(seen))
        if radius_scale not in (None, 1):
            warnings.warn(
                f"radius_scale={radius_scale:g} has no effect on radii that are given "
                "as numbers: change the numbers, or leave it at None.",
                PrudentWarning,
                stacklevel=2,
            )
    factors = MahalanobisFactors.from_covariances(
        part.mean, nominal.matrices, means_lo=part.mean_lo, classes=part.classes
    )
    none = np.zeros(len(seen))
    model = Model(
        likelihood, ball, rule, factors, radii[seen], set_radii[seen], prior, none, seen
    )
    if rule == "ratio":
        offsets = _offsets(threshold, model, prior[seen], rows)
        model = replace(model, offsets=spread_over_classes(offsets, seen, 0.0))
        if threshold != "tuned" and not callable(threshold):
            _warn_about_radii(radii[seen])
    return Learned(model, features, nominal, radii, set_radii)


def _check_settings(
    moments: ClassMoments,
    likelihood: Likelihood,
    ball: Ball,
    rule: Rule,
    radius: str | ArrayLike,
    covariance: CovarianceRule,
    threshold: Threshold,
) -> None:
    """Refuse settings that do not go together, before any work."""
    if moments.structure != "full":
        raise ValueError(
            "the moments keep variances only: accumulate with structure='full'."
        )
    if rule == "minimax" and likelihood != "gaussian":
        raise ValueError(
            "rule='minimax' compares densities and needs likelihood='gaussian', "
            f"got likelihood={likelihood!r}."
        )
    if ball == "covariance":
        if likelihood != "gaussian":
            raise ValueError(
                "ball='covariance' needs likelihood='gaussian', "
                f"got likelihood={likelihood!r}."
            )
        if isinstance(radius, str) and radius != "clt":
            raise ValueError(
                "ball='covariance' takes its radius from the limit law of normal rows, "
                f"radius='clt', or as numbers, got radius={radius!r}."
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


def _offsets(
    threshold: Threshold, model: Model, prior: FloatArray, rows: Rows | None
) -> FloatArray:
    """Offsets of the class scores that stand for the threshold, (n_seen,), of sum 0.

    "bayes" takes log priors. A ratio tau stands for log tau / 2 and its negative.
    "tuned" needs one pass over the rows, whose accuracy it maximises. A function is
    asked for each row at prediction, so that it stands for nothing here.
    """
    if threshold == "bayes":
        log_priors = log_probabilities(prior)
        return log_priors - log_priors[log_priors > -np.inf].mean()
    if callable(threshold):  # it is asked for each row
        return np.zeros(2)
    if not isinstance(threshold, str):
        return math.log(threshold) * np.array([0.5, -0.5])
    assert rows is not None
    scores, codes, weights = zip(*rows.map(_ratio_scores, model), strict=True)
    given = [weight for weight in weights if weight is not None]
    weight = np.concatenate(given) if given else None
    return tuned_offsets(np.concatenate(scores), np.concatenate(codes), weight)


def _ratio_scores(
    block: Block, model: Model
) -> tuple[FloatArray, IntArray, FloatArray | None]:
    """Scores (n, n_seen) that a threshold compares, with codes and weights."""
    compared = np.empty((len(block), len(model.radii)))
    if len(block):
        for rows, (upper,), D in model.blocks(block.X, ("upper", model.radii)):
            compared[rows] = model.with_ties_broken(upper, D)
    return compared, block.codes, block.weight


def _warn_about_radii(radii: FloatArray) -> None:
    """Say that an untuned ratio rule favours the class with the larger ball."""
    if radii.max() > 2 * radii.min():
        warnings.warn(
            f"the radii differ by more than a factor of 2 (from {radii.min():.3g} to "
            f"{radii.max():.3g}), so optimistic scores favour the class with the "
            "larger ball; use threshold='tuned', or radius=0.",
            PrudentWarning,
            stacklevel=2,
        )


# --- the threshold, or the class offsets, that get most training rows right -----------


@dataclass(frozen=True, slots=True)
class BestThreshold:
    """A cut of log ratios with the most correct training rows.

    Attributes
    ----------
    log_threshold : float
        Class 1 is predicted where the log ratio is >= this.
    n_correct : float
        Correct rows, or their weight.
    interval : tuple of float
        (a, b): every threshold in (a, b] classifies the rows alike.
    """

    log_threshold: float
    n_correct: float
    interval: tuple[float, float]


def best_threshold(
    log_ratios: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
) -> BestThreshold:
    """Threshold on log ratios with the highest training accuracy, exactly.

    Parameters
    ----------
    log_ratios : array-like of shape (n,)
        Log score of class 1 minus log score of class 0.
    y : array-like of shape (n,)
        True classes, 0 or 1.
    sample_weight : array-like of shape (n,), default=None
        Weights >= 0, read as repetitions.

    Returns
    -------
    BestThreshold
        Among the best intervals the one nearest to 0; 0 itself if inside, else
        the middle.

    Raises
    ------
    ValueError
        If there are no rows, a log ratio is not a number, a label is not 0 or 1, a
        weight is negative or not finite, or the lengths differ.

    Notes
    -----
    Maximises equation (13) of Nguyen et al. (2020) over all thresholds, not only
    those met in training, with one sort: O(n log n).

    Examples
    --------
    >>> from prudent.optimistic import best_threshold
    >>> best_threshold([-2.0, 1.0, 3.0, 4.0], [0, 0, 1, 1])
    BestThreshold(log_threshold=2.0, n_correct=4.0, interval=(1.0, 3.0))
    """
    ratios = np.asarray(log_ratios, dtype=np.float64)
    truth = np.asarray(y)
    if ratios.ndim != 1 or not len(ratios) or truth.shape != ratios.shape:
        raise ValueError(
            "`log_ratios` and `y` must be 1-D, of one length and not empty, got "
            f"shapes {ratios.shape} and {truth.shape}."
        )
    if np.isnan(ratios).any():
        raise ValueError("`log_ratios` holds NaN; every row needs a score.")
    positive = truth == 1
    if not (positive | (truth == 0)).all():
        raise ValueError(f"`y` must hold 0 and 1 only, got {np.unique(truth)[:5]}.")
    if sample_weight is None:
        gains = 2 * positive.view(np.int8) - np.int8(1)
        negative = float(len(truth) - np.count_nonzero(positive))
    else:
        weight = np.asarray(sample_weight, dtype=np.float64)
        if weight.shape != truth.shape or not ((weight >= 0) & (weight < np.inf)).all():
            raise ValueError(
                "`sample_weight` must hold one finite weight >= 0 for each of the "
                f"{len(truth)} rows, got {sample_weight!r}."
            )
        gains = np.where(positive, weight, -weight)
        negative = float(weight[~positive].sum())
    cut = _best_cut(ratios, gains, near=0.0)
    return replace(cut, n_correct=negative + cut.n_correct)


def tuned_offsets(
    scores: FloatArray, codes: NDArray[np.intp], weight: FloatArray | None = None
) -> FloatArray:
    """Offsets (K,) of sum 0 with which most training rows are right."""
    if scores.shape[1] > 2:
        return best_offsets(scores, codes, weight)
    best = best_threshold(scores[:, 1] - scores[:, 0], codes, weight)
    return best.log_threshold * np.array([0.5, -0.5])


def best_offsets(
    scores: FloatArray, codes: NDArray[np.intp], weight: FloatArray | None = None
) -> FloatArray:
    """Offsets of class scores that raise training accuracy, one class at a time.

    Coordinate ascent: with the other offsets fixed, the best offset of a class is
    a best threshold, found by one sort. It stops at offsets of sum 0 that no change of
    a single one improves, not necessarily at the best of all.
    """
    n_rows, n_classes = scores.shape
    weight = np.ones(n_rows) if weight is None else weight
    offsets = np.zeros(n_classes)
    rows = np.arange(n_rows)
    unimproved = 0
    while unimproved < n_classes:
        for c in range(n_classes):
            shifted = scores + offsets
            shifted[:, c] = -np.inf
            rival = shifted.argmax(axis=1)
            # class c wins where its score less the rival's is >= -offset
            margin = scores[:, c] - shifted[rows, rival]
            gains = weight * ((codes == c) * 1.0 - (codes == rival))
            cut = _best_cut(margin, gains, near=-offsets[c])
            current = float(gains[margin >= -offsets[c]].sum())
            unimproved += 1
            if cut.n_correct > current * (1 + 1e-12) + 1e-12:
                offsets[c] = -cut.log_threshold
                unimproved = 1
            if unimproved == n_classes:
                break
    return offsets - offsets.mean()


def _best_cut(values: FloatArray, gains: NDArray[Any], near: float) -> BestThreshold:
    """Threshold tau with the largest sum of gains (`n_correct`) over values >= tau."""
    order = np.argsort(values)
    ordered = values.take(order)
    # below[j]: gain lost by a cut that leaves the j smallest values below
    below = np.zeros(len(values) + 1, dtype=np.result_type(gains, np.int32))
    np.cumsum(gains[order], out=below[1:], dtype=below.dtype)
    everything = float(below[-1])
    # a cut between equal values does not exist
    tied = np.flatnonzero(ordered[1:] == ordered[:-1])
    below[1 + tied] = below.max() + 1
    least = below.min()
    best = np.flatnonzero(below == least)
    left = np.where(best > 0, ordered[best - 1], -np.inf)
    right = np.where(best < len(values), ordered[best % len(values)], np.inf)
    # distance of the interval (left, right] from the wanted place
    gap = np.maximum(np.maximum(left - near, near - right), 0.0)
    j = int(gap.argmin())
    a, b = float(left[j]), float(right[j])
    return BestThreshold(_inside(a, b, near), everything - float(least), (a, b))


def _inside(left: float, right: float, near: float) -> float:
    """The wanted place if it lies in (left, right], else the middle."""
    if left < near <= right:
        return near
    if left == -math.inf:
        return right
    if right == math.inf:
        return math.nextafter(left, math.inf)
    middle = left + (right - left) / 2
    return middle if middle > left else right


# --- promises: none that could be held to unseen rows ---------------------------------


def guarantees() -> tuple[Guarantee, ...]:
    """No promise: the balls lie around estimates.

    The bounds of scores and posteriors are exact over the balls. That a ball holds
    the true moments has a nominal level only: it needs Gaussian rows, the sample
    covariance and many of them.
    """
    return ()
