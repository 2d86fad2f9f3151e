"""What every family asks about its classes: seen, varying, probable, costly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from prudent.core.moments import ClassMoments
from prudent.core.types import BoolArray, FloatArray, IntArray
from prudent.core.validation import shown
from prudent.exceptions import DegenerateDataError

#: Largest difference of given class probabilities from a sum of 1.
PRIOR_TOLERANCE = 1e-8
# A column whose mean is not below the first cannot vary by less than the second.
TINY, TINY_VARIATION = 1e-129, 1e-290
# Fourth powers of smaller numbers lose digits, or are 0.
TINY_FOR_FOURTH = 1e-70
#: In standard deviations; the squared distance of such a row is finite still.
FARTHEST = 1e100


def check_two_classes(labels: Sequence[Any] | NDArray[Any]) -> None:
    """Refuse labels of fewer than two classes.

    Raises
    ------
    ValueError
        It names the class there is.
    """
    if len(labels) < 2:
        got = f"one class: {shown(labels[0])}" if len(labels) else "no rows"
        raise ValueError(f"rows of at least 2 classes are needed, got {got}.")


def classes_seen(moments: ClassMoments) -> BoolArray:
    """Which classes have rows, (n_classes,); others were declared and come later.

    Raises
    ------
    ValueError
        If fewer than two have rows.
    """
    seen: BoolArray = moments.weight > 0
    check_two_classes(moments.classes[seen])
    return seen


def constant_features(moments: ClassMoments) -> IntArray:
    """Features with one value in all rows; every family ignores them.

    Exact: first-row centring leaves a constant column a scatter of exactly 0.
    """
    seen = moments.weight > 0
    constant = (moments.variation[seen] == 0).all(axis=0)
    for mean in (moments.mean[seen], moments.mean_lo[seen]):
        constant &= (mean == mean[:1]).all(axis=0)
    return np.flatnonzero(constant)


def varying_features(moments: ClassMoments) -> IntArray:
    """Features to learn from: the positions of those not constant over all rows.

    Raises
    ------
    DegenerateDataError
        If no feature varies.
    ValueError
        If a feature is so small that the squares of its values are lost.
    """
    check_not_tiny(moments)
    n_features = moments.mean.shape[1]
    varying = np.setdiff1d(np.arange(n_features), constant_features(moments))
    if not len(varying):
        raise DegenerateDataError(
            "all features are constant over all rows: there is nothing to learn."
        )
    return varying


def check_not_tiny(moments: ClassMoments) -> None:
    """Raise for numbers so small that the squares or fourth powers used are lost."""
    size = np.abs(moments.mean).max(axis=0)
    lost = (moments.variation < TINY_VARIATION).all(axis=0)
    lost &= (size > 0) & (size < TINY)
    if lost.any():
        raise ValueError(
            f"column {int(np.flatnonzero(lost)[0])} of X holds values below "
            f"{TINY:g}, whose squares underflow: rescale it."
        )
    if (
        moments.fourth is not None
        and size.max() < TINY_FOR_FOURTH
        and 0 < moments.variation.max() < TINY_FOR_FOURTH**2
    ):
        raise ValueError(
            f"all values of X are below {TINY_FOR_FOURTH:g}, whose fourth powers "
            "underflow: rescale them."
        )


def restrict(
    moments: ClassMoments, seen: BoolArray, features: IntArray
) -> ClassMoments:
    """Moments of the classes with rows and of some features; no fourth moments."""
    part = moments.take(seen)
    square = (features[:, None], features) if part.structure == "full" else (features,)
    return replace(
        part,
        mean=part.mean[:, features],
        mean_lo=part.mean_lo[:, features],
        scatter=part.scatter[:, *square],
        third=None,
        fourth=None,
    )


def class_priors(priors: ArrayLike | None, weight: FloatArray) -> FloatArray:
    """Probability of each class, of sum 1: as given, or its share of the rows.

    Parameters
    ----------
    priors : array-like of shape (n_classes,) or None
        Numbers >= 0 whose sum is 1 within 1e-8.
    weight : ndarray of shape (n_classes,)
        Rows of each class. One without rows has probability 0, and its share goes to
        the others.

    Raises
    ------
    ValueError
        If `priors` hold no probabilities, or only for classes without rows.
    """
    if priors is None:
        return weight / weight.sum()
    given = np.asarray(priors, dtype=np.float64)
    fits = given.shape == weight.shape and bool((given >= 0).all())
    if not (fits and abs(given.sum() - 1) <= PRIOR_TOLERANCE):
        raise ValueError(
            f"`priors` must hold {len(weight)} numbers >= 0 that sum to 1, one for "
            f"each class, got {given.tolist()}."
        )
    if (weight > 0).all():
        return given
    known = np.where(weight > 0, given, 0.0)
    if not known.sum() > 0:
        raise ValueError(
            "`priors` must be > 0 for at least one class that has rows, got "
            f"{given.tolist()}."
        )
    return known / known.sum()


def log_probabilities(probabilities: FloatArray) -> FloatArray:
    """Logarithms of probabilities, -inf for what is impossible."""
    with np.errstate(divide="ignore"):
        return np.log(probabilities)


def as_costs(costs: ArrayLike) -> FloatArray:
    """Costs as an array of any shape; no mapping, whose order nobody can check."""
    expected = "of shape (n_classes, n_classes), rows true classes and columns answers"
    if isinstance(costs, Mapping):
        raise ValueError(
            f"`costs` must be an array {expected} in sorted order, got a mapping."
        )
    try:
        return np.asarray(costs, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"`costs` must be an array of numbers {expected}, got {shown(costs)}."
        ) from None


def class_costs(costs: ArrayLike, n_classes: int) -> FloatArray:
    """Costs as a matrix (n_classes, n_classes), rows the truth and columns the answer.

    Raises
    ------
    ValueError
        If they are no such matrix of finite numbers.
    """
    matrix = as_costs(costs)
    if matrix.shape != (n_classes, n_classes) or not np.isfinite(matrix).all():
        raise ValueError(
            "`costs` must be finite, of shape (n_classes, n_classes) = "
            f"({n_classes}, {n_classes}), rows = truth; got {matrix.tolist()}."
        )
    return matrix


def error_costs(costs: ArrayLike, n_classes: int) -> FloatArray:
    """What each error costs more than the right answer in its row; 0 on the diagonal.

    Raises
    ------
    ValueError
        If an error costs no more than the right answer.
    """
    matrix = class_costs(costs, n_classes)
    excess = matrix - np.diag(matrix)[:, None]
    if not (excess[~np.eye(n_classes, dtype=bool)] > 0).all():
        raise ValueError(
            "each error in `costs` must cost more than the right answer in its row, "
            f"got {matrix.tolist()}."
        )
    return excess


def spread_over_classes(
    values: NDArray[Any], seen: BoolArray, fill: float | bool, axis: int = -1
) -> NDArray[Any]:
    """Values of the classes with rows, placed among all classes along `axis`.

    The others get `fill`; `values` itself when all classes have rows.
    """
    if seen.all():
        return values
    shape = list(values.shape)
    shape[axis] = len(seen)
    everything = np.full(shape, fill, dtype=values.dtype)
    np.moveaxis(everything, axis, 0)[seen] = np.moveaxis(values, axis, 0)
    return everything


def winner(decision: FloatArray) -> IntArray:
    """Position of the class that each decision value stands for, (n,).

    Of one value a row, (n,), the second class wins from 0 on; of several, (n, K), the
    largest.
    """
    if decision.ndim == 1:
        return (decision >= 0).astype(np.intp)
    return decision.argmax(axis=1)


# --- the plane in which classes are seen best -----------------------------------------


def discriminant_axes(moments: ClassMoments) -> tuple[FloatArray, FloatArray]:
    """Two axes of a linear discriminant analysis, (d, 2), and the way back, (2, d).

    Rows times the first have uncorrelated columns of unit spread within the classes;
    plane points times the second are rows again, less what the plane leaves out. In
    coordinates where the pooled within-class covariance is the identity, the axes are
    the leading eigenvectors of the between-class scatter (Fisher 1936). Two classes
    have one such axis only; the second is then the direction, orthogonal to it, in
    which their spreads differ most. Directions without spread are left out, so there
    may be one column only. The largest entry of an axis is positive.
    """
    if len(moments.classes) < 2:
        raise ValueError("discriminant axes need rows of at least two classes.")
    within = moments.within().covariance()[0]
    scale = np.sqrt(np.diag(within))
    scale = np.where(scale > 0, scale, 1.0)
    values, vectors = np.linalg.eigh(within / np.outer(scale, scale))
    kept = values > 1e-10 * values[-1]
    whiten = vectors[:, kept] / np.sqrt(values[kept]) / scale[:, None]
    colour = (vectors[:, kept] * np.sqrt(values[kept])).T * scale
    means = (moments.mean - moments.pooled().mean) @ whiten
    between = (moments.weight[:, None] * means).T @ means
    axes = np.linalg.eigh(between)[1][:, :-3:-1]
    if len(moments.classes) == 2 and axes.shape[1] == 2:
        spreads = whiten.T @ moments.covariance() @ whiten
        across = np.eye(len(between)) - np.outer(axes[:, 0], axes[:, 0])
        strength, directions = np.linalg.eigh(
            across @ (spreads[1] - spreads[0]) @ across
        )
        axes[:, 1] = directions[:, np.abs(strength).argmax()]
    into = whiten @ axes
    largest = np.abs(into * scale[:, None]).argmax(axis=0)
    signs = np.where(into[largest, np.arange(into.shape[1])] < 0, -1.0, 1.0)
    return into * signs, (axes * signs).T @ colour


# --- what bounds of the class scores say about the posterior --------------------------
#
# Its range, sets and minimax decision. The uncertainty sets of the classes are
# independent of one another, so the posterior of a class is largest with its own
# density at the upper and all others at the lower end. Arguments are joint log
# densities, log density plus log prior, of shape (n, K); -inf stands for an impossible
# class.


def posterior_bounds(
    lower: FloatArray, upper: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Least and largest posterior probability of each class, (n, K) each.

    With l = exp(lower) and u = exp(upper): l_k / (l_k + sum of the others' u) and
    u_k / (u_k + sum of the others' l), both attained.
    """
    least, most = log_odds_bounds(lower, upper)
    return expit(least), expit(most)


def log_odds_bounds(
    lower: FloatArray, upper: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Logits of `posterior_bounds`: no probability near 0 or 1 loses its digits."""
    return (
        _less(lower, log_sum_of_others(upper)),
        _less(upper, log_sum_of_others(lower)),
    )


def dominance_sets(lower: FloatArray, upper: FloatArray) -> BoolArray:
    """Classes that no other class beats for sure: up_c >= max over c' of low_c'.

    With independent uncertainty sets interval dominance equals maximality.
    """
    return upper >= lower.max(axis=1, keepdims=True)


def minimax_scores(lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Class scores whose argmax has the least worst-case posterior error.

    The worst error of choosing c is 1 / (1 + low_c / sum of the others' up), the
    exact action of problem (1) of Nguyen et al. (2020). For two classes the order
    of low_c / up_c' is that of low_c up_c, whose square root is used: at radius 0
    the scores are the joint log densities.
    """
    if lower.shape[1] == 2:
        return (lower + upper) / 2
    return _less(lower, log_sum_of_others(upper))


def log_sum_of_others(values: FloatArray) -> FloatArray:
    """Logarithm of the sum of exp(values) over all columns but one, (n, K)."""
    if values.shape[1] == 2:
        return values[:, ::-1]
    before = np.logaddexp.accumulate(values, axis=1)
    after = np.logaddexp.accumulate(values[:, ::-1], axis=1)[:, ::-1]
    others = np.full(values.shape, -np.inf)
    others[:, 1:] = before[:, :-1]
    others[:, :-1] = np.logaddexp(others[:, :-1], after[:, 1:])
    return others


def _less(own: FloatArray, others: FloatArray) -> FloatArray:
    """Difference of logs; an impossible class stays so where all others are too."""
    with np.errstate(invalid="ignore"):
        return np.where(own == -np.inf, -np.inf, own - others)


def max_probability(probabilities: FloatArray) -> FloatArray:
    """Largest probability of each row, and at 1 the log odds, above 30.

    A row of probability 1 - 1e-17 would tie with one of 1 - 1e-40, and rows that tie
    are answered together or not at all.
    """
    return told_apart(probabilities.max(axis=1), probabilities)


def told_apart(sureness: FloatArray, probabilities: FloatArray) -> FloatArray:
    """`sureness`, its values of 1 replaced by the log odds of the likeliest label."""
    full = np.flatnonzero(sureness >= 1)
    sureness[full] = -log_odds_against(probabilities[full]).min(axis=1)
    return sureness


def log_odds_against(probabilities: ArrayLike) -> FloatArray:
    """Log of the other labels' probability over each label's own.

    In the order of minus the probability, yet it tells apart rows whose probability of
    a label is 1e-12 or 1e-15: by the probabilities themselves they would tie.
    """
    own = np.asarray(probabilities, dtype=np.float64)
    others = np.zeros_like(own)  # sums without differences
    others[:, 1:] += np.cumsum(own[:, :-1], axis=1)
    others[:, :-1] += np.cumsum(own[:, :0:-1], axis=1)[:, ::-1]
    least = np.finfo(np.float64).tiny
    odds: FloatArray = np.log(np.maximum(others, least))
    odds -= np.log(np.maximum(own, least))
    return odds
