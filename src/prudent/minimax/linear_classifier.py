"""Worst-case errors of planes that somebody else has found, and what they promise."""

from __future__ import annotations

import itertools
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.frozen import FrozenEstimator

from prudent.core.guarantee import Guarantee
from prudent.core.moments import ClassMoments
from prudent.core.types import BoolArray, FloatArray
from prudent.core.validation import shown
from prudent.minimax.certificate import ClassMargin, Laws, varies_along
from prudent.minimax.classification.classifier import MinimaxProbabilityClassifier
from prudent.minimax.classification.learn import linear_promises
from prudent.minimax.curve import TIE_SHIFT
from prudent.minimax.radii import NO_RADII, given_radii


def worst_case_error(
    coef: ArrayLike,
    intercept: ArrayLike,
    moments: ClassMoments,
    *,
    mean_radius: ArrayLike = 0.0,
    covariance_radius: ArrayLike = 0.0,
    covariance_factor: ArrayLike = 1.0,
    laws: Laws = "any",
) -> FloatArray:
    """Largest error of each of two classes that a plane makes under any law.

    Parameters
    ----------
    coef : array-like of shape (n_features,) or (1, n_features)
        Normal w of the plane, pointing to ``moments.classes[1]``, as scikit-learn's
        `coef_`. Decision values are rounded in its floating-point type, or in double
        precision where it has none.
    intercept : float or array-like of shape (1,)
        b; rows with w'z + b > 0 are of ``moments.classes[1]``. The bound holds
        whichever class gets the rows with w'z + b = 0.
    moments : ClassMoments
        Two classes, with full scatter.
    mean_radius, covariance_radius, covariance_factor : float or array-like of shape \
(2,), default=0, 0, 1
        nu >= 0, rho >= 0 and gamma >= 1: how far means and covariances may lie from
        those of `moments`, as in :class:`~prudent.MinimaxProbabilityClassifier`.
    laws : {"any", "unimodal"}, default="any"
        Laws that are covered: any, or those that are unimodal along w.

    Returns
    -------
    ndarray of shape (2,)
        In the order of ``moments.classes``: c = 1 / (1 + k^2) with k = (s (w'm + b) /
        sqrt(gamma w'(S + rho I) w) - nu)_+ and s = -1, 1; for unimodal laws the larger
        of 4 c / 9 and (4 c - 1) / 3. Attained by some law. Rounding of the decision
        value and of the moments is added.

    Raises
    ------
    ValueError
        If shapes disagree, a number is not finite, a radius out of range or `laws`
        unknown.

    References
    ----------
    Lanckriet, El Ghaoui, Bhattacharyya, Jordan (2002), JMLR 3, Lemma 1 and (17).

    See Also
    --------
    best_intercept : The b with the least larger error for a given w.

    Examples
    --------
    >>> from prudent import ClassMoments
    >>> from prudent.minimax import worst_case_error
    >>> moments = ClassMoments.from_covariances(
    ...     [[0.0], [6.0]], [[[1.0]], [[4.0]]], [50, 50]
    ... )
    >>> worst_case_error([1.0], -2.0, moments).round(3).tolist()
    [0.2, 0.2]
    >>> worst_case_error([1.0], -2.0, moments, laws="unimodal").round(3).tolist()
    [0.089, 0.089]
    """
    _check_laws(laws)
    if len(moments.classes) != 2:
        raise ValueError(f"`moments` must hold 2 classes, got {len(moments.classes)}.")
    _, b = _plane(coef, intercept, moments, 1)
    radii = given_radii(mean_radius, covariance_radius, covariance_factor, 2)
    margins = zip(_both_margins(coef, moments, radii), (-1.0, 1.0), strict=True)
    return np.array([m.error(-float(b[0]), side, laws=laws) for m, side in margins])


def best_intercept(
    coef: ArrayLike,
    moments: ClassMoments,
    *,
    mean_radius: ArrayLike = 0.0,
    covariance_radius: ArrayLike = 0.0,
    covariance_factor: ArrayLike = 1.0,
    laws: Laws = "any",
) -> tuple[float, float]:
    """Intercept of the best worst case for a normal that somebody else has chosen.

    Fisher's discriminant, say, has a direction; which offset goes with it depends on
    normal classes unless it is chosen so.

    Parameters
    ----------
    coef : array-like of shape (n_features,) or (1, n_features)
        Normal w of the plane, pointing to ``moments.classes[1]``: w'm is larger there.
    moments, mean_radius, covariance_radius, covariance_factor, laws
        As in :func:`worst_case_error`. The intercept is the same for both `laws`.

    Returns
    -------
    intercept : float
        b = (k + nu_1) d_1 - w'm_1 with k = (w'(m_1 - m_0) - nu_0 d_0 - nu_1 d_1) /
        (d_0 + d_1) and d = sqrt(gamma w'(S + rho I) w): both classes are k standard
        deviations and their mean radius away from the plane. Where d is 0 of one class,
        the plane stands a little beside it: 1e-9 of the distance of the means, or as
        much as rounding asks; where it is 0 of both, somewhere between the means.
    alpha : float
        Accuracy in [0, 1] that both classes keep under every law, k^2 / (1 + k^2) less
        rounding (or more, under unimodal laws); 0 where k <= 0, as for every other
        intercept.

    Raises
    ------
    ValueError
        If shapes disagree, a number is not finite, a radius is out of range, `laws`
        unknown or the normal does not point to the second class.

    References
    ----------
    Lanckriet, El Ghaoui, Bhattacharyya, Jordan (2002), JMLR 3, (7) and (16)-(17).

    Examples
    --------
    >>> from prudent import ClassMoments
    >>> from prudent.minimax import best_intercept
    >>> moments = ClassMoments.from_covariances(
    ...     [[0.0], [6.0]], [[[1.0]], [[4.0]]], [50, 50]
    ... )
    >>> intercept, alpha = best_intercept([1.0], moments)
    >>> round(intercept, 6), round(alpha, 6)
    (-2.0, 0.8)
    """
    _check_laws(laws)
    if len(moments.classes) != 2:
        raise ValueError(f"`moments` must hold 2 classes, got {len(moments.classes)}.")
    radii = given_radii(mean_radius, covariance_radius, covariance_factor, 2)
    first, second = _both_margins(coef, moments, radii)
    gap = second.center - first.center
    if not gap > 0:
        raise ValueError(
            f"`coef` must point to class {shown(moments.classes[1])}: its mean must "
            "lie further along it than that of class "
            f"{shown(moments.classes[0])}, but the difference is {gap:.3g}. "
            "Give -coef, or exchange the classes."
        )
    spread = first.deviation + second.deviation
    ahead = gap - first.radius * first.deviation - second.radius * second.deviation
    if spread > 0:
        kappa = ahead / spread
        intercept = (kappa + second.radius) * second.deviation - second.center
    else:
        intercept = -(first.center + second.center) / 2

    def larger_error(intercept: float) -> float:
        return max(
            first.error(-intercept, -1.0, laws=laws),
            second.error(-intercept, 1.0, laws=laws),
        )

    # Where a class does not vary along the normal, the plane would run through it: it
    # stands a little off, or as much as rounding asks.
    away = [
        max(TIE_SHIFT * gap, 4 * (each.doubt + each.rounding * abs(intercept)))
        for each in (first, second)
    ]
    intercepts = (intercept, intercept - away[0], intercept + away[1])
    best = min(intercepts, key=larger_error)
    return best, float(1 - larger_error(best))


def guarantees_of(
    classifier: Any, moments: ClassMoments, *, laws: Laws = "any"
) -> tuple[Guarantee, ...]:
    """Promises for a linear classifier that somebody else has fitted.

    Parameters
    ----------
    classifier : fitted classifier
        Any linear one of scikit-learn, such as logistic regression, a linear support
        vector machine or linear discriminant analysis; or an object with `coef_`,
        `intercept_` and `classes_` of that form and no `predict`, whose reader
        predicts the class of the largest score. A `Pipeline` is none: give its last
        step, and moments of the rows that this step sees.
    moments : ClassMoments
        Moments of the same classes, with full scatter. They need not come from the
        rows that the classifier was fitted to.
    laws : {"any", "unimodal"}, default="any"
        As in :func:`worst_case_error`, along the normal between each two classes.

    Returns
    -------
    tuple of Guarantee
        One bound on the error rate of each class, under all `laws` with these moments:
        the sum over the classes it may lose to. Rounding of the scores is added: that
        of single precision for a model fitted to rows of single precision. None for a
        class that does not vary along one of its normals, such as one of a single row.

    Raises
    ------
    TypeError
        If the classifier has no `coef_`, `intercept_` or `classes_`.
    ValueError
        If it has other classes or features than the moments, or is not known to
        predict the class of the largest score, as `SVC` with scores of pairs of three
        classes, or a class of one's own.

    References
    ----------
    Lanckriet, El Ghaoui, Bhattacharyya, Jordan (2002), JMLR 3, Lemma 1.

    Examples
    --------
    >>> from prudent import ClassMoments
    >>> from prudent.minimax import guarantees_of
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> fitted = LinearDiscriminantAnalysis().fit(X, y)
    >>> promises = guarantees_of(fitted, ClassMoments.from_arrays(X, y))
    >>> [round(promise.bound, 2) for promise in promises]
    [0.33, 0.14]
    """
    _check_laws(laws)
    for name in ("coef_", "intercept_", "classes_"):
        if not hasattr(classifier, name):
            raise TypeError(
                f"{type(classifier).__name__} has no `{name}`: a fitted linear "
                "classifier is needed."
            )
    if isinstance(classifier, FrozenEstimator):
        classifier = classifier.estimator
    classes = np.asarray(classifier.classes_)
    if not np.array_equal(classes, moments.classes):
        raise ValueError(
            f"the classifier knows the classes {classes.tolist()}, the moments "
            f"{moments.classes.tolist()}."
        )
    n_classes = len(classes)
    n_planes = 1 if n_classes == 2 else n_classes
    w, b = _plane(_dense(classifier.coef_), classifier.intercept_, moments, n_planes)
    if n_classes == 2:
        w, b = np.stack([0.0 * w[0], w[0]]), np.array([0.0, b[0]])
    if not _largest_score_wins(classifier, n_classes):
        raise ValueError(
            f"{type(classifier).__name__} is not known to predict the class of the "
            "largest score `coef_` x + `intercept_`: its scores may be of pairs of "
            "classes, or of other rows, and nothing is proved. If it does, give an "
            "object that has its `coef_`, `intercept_` and `classes_` only."
        )
    sizes = _sizes_of_terms(classifier, w)
    arithmetic = _arithmetic(classifier.coef_)
    errors = _linear_errors(w, b, moments, sizes, arithmetic, laws)
    return linear_promises(classes, errors, laws, _vary_along_normals(w, moments))


def _check_laws(laws: str) -> None:
    if laws not in get_args(Laws):
        raise ValueError(f"`laws` must be 'any' or 'unimodal', got {laws!r}.")


def _largest_score_wins(classifier: Any, n_classes: int) -> bool:
    """Whether its methods are known to answer by `coef_` and `intercept_` alone.

    Rows on which answers and scores agree would prove nothing: with three classes there
    are as many pairs, and a vote of pairs may differ where no such row lies.
    """
    from sklearn.linear_model._base import LinearClassifierMixin
    from sklearn.svm import SVC, NuSVC

    if not hasattr(classifier, "predict"):
        return True  # scores alone, and the reader's rule
    methods = (
        getattr(classifier, name, None) for name in ("predict", "decision_function")
    )
    makers = [getattr(method, "__module__", "") for method in methods]
    known = all(maker.startswith(("sklearn.", "prudent.")) for maker in makers)
    of_pairs = isinstance(classifier, (SVC, NuSVC, MinimaxProbabilityClassifier))
    one_pair = of_pairs and n_classes == 2
    return known and (one_pair or isinstance(classifier, LinearClassifierMixin))


def _sizes_of_terms(classifier: Any, w: FloatArray) -> FloatArray:
    """Bounds of what scores add up, in place of each slope: for their rounding."""
    if not hasattr(classifier, "support_vectors_"):
        return np.abs(w)
    # `SVC` sums over support vectors, far larger terms than those of `coef_`.
    weights, rows = _dense(classifier.dual_coef_), _dense(classifier.support_vectors_)
    total: FloatArray = np.abs(weights) @ np.abs(rows)
    total *= max(1.0, len(rows) / (rows.shape[1] + 8))  # as many more sums
    return np.concatenate([0.0 * total, total])


def _arithmetic(coef: Any) -> np.finfo[Any]:
    """The floating-point numbers that decision values are computed in, at worst.

    scikit-learn keeps the type of the rows a model was fitted to: a model of single
    precision predicts rows of single precision by sums of single precision.
    """
    dtype = np.asarray(_dense(coef)).dtype
    return np.finfo(dtype if dtype in (np.float16, np.float32) else np.float64)


def _dense(values: Any) -> Any:
    return values.toarray() if issparse(values) else values


def _linear_errors(
    w: FloatArray,
    b: FloatArray,
    moments: ClassMoments,
    sizes: FloatArray,
    arithmetic: np.finfo[Any],
    laws: Laws,
) -> FloatArray:
    """Largest error of each class under these laws, (K,), of linear scores w z + b.

    The class of the largest score wins; the errors against the others are added.
    """
    errors = np.zeros(len(w))
    for k, l in itertools.permutations(range(len(w)), 2):
        margin = _margin(
            moments, k, w[k] - w[l], size=sizes[k] + sizes[l], arithmetic=arithmetic
        )
        shift = float(abs(b[k]) + abs(b[l]))
        errors[k] += margin.error(float(b[l] - b[k]), 1.0, shift=shift, laws=laws)
    return np.minimum(errors, 1.0)


def _vary_along_normals(w: FloatArray, moments: ClassMoments) -> BoolArray:
    """Classes that vary along the normals between them and the others, (K,)."""
    vary, covariances = np.ones(len(w), dtype=bool), moments.covariance()
    for k, l in itertools.permutations(range(len(w)), 2):
        normal, size = w[k] - w[l], np.abs(w[k]) + np.abs(w[l])
        if normal.any():  # else all rows get the same answer
            vary[k] &= varies_along(normal, covariances[k], size)
    return vary


def _plane(
    coef: ArrayLike, intercept: ArrayLike, moments: ClassMoments, n_planes: int
) -> tuple[FloatArray, FloatArray]:
    """Normals (n_planes, d) and intercepts (n_planes,), checked."""
    if moments.structure != "full":
        raise ValueError(
            "worst-case errors need covariances: accumulate the moments with "
            "structure='full'."
        )
    if not (moments.weight > 0).all():
        empty = moments.classes[moments.weight <= 0]
        raise ValueError(f"class {shown(empty[0])} of the moments has no rows.")
    w = np.atleast_2d(np.asarray(coef, dtype=np.float64))
    b = np.atleast_1d(np.asarray(intercept, dtype=np.float64)).ravel()
    if len(b) == 1 < n_planes:
        b = np.repeat(b, n_planes)
    shape = (n_planes, moments.mean.shape[1])
    if w.shape != shape or b.shape != (n_planes,):
        raise ValueError(
            f"`coef` and `intercept` must have shapes {shape} and {(n_planes,)} for "
            f"these moments, got {w.shape} and {b.shape}."
        )
    if not (np.isfinite(w).all() and np.isfinite(b).all()):
        raise ValueError("`coef` and `intercept` must hold finite numbers.")
    return w, b


def _both_margins(
    coef: ArrayLike, moments: ClassMoments, radii: FloatArray
) -> list[ClassMargin]:
    """Two classes along a normal, with radii (3, 2)."""
    w, _ = _plane(coef, 0.0, moments, 1)
    arithmetic = _arithmetic(coef)
    return [
        _margin(moments, k, w[0], radii=radii[:, k], arithmetic=arithmetic)
        for k in (0, 1)
    ]


def _margin(
    moments: ClassMoments,
    k: int,
    normal: FloatArray,
    *,
    radii: FloatArray = NO_RADII[:, 0],
    size: FloatArray | None = None,
    arithmetic: np.finfo[Any],
) -> ClassMargin:
    """Class k of the moments along a normal (d,); see `ClassMargin.along`."""
    nu, rho, gamma = radii.tolist()
    S = moments.scatter[k] / moments.weight[k]
    if rho:
        S = S + rho * np.eye(len(S))
    return ClassMargin.along(
        normal,
        moments.mean[k],
        moments.mean_lo[k],
        S,
        nu,
        gamma,
        size=size,
        arithmetic=arithmetic,
    )
