"""Moments of each class, additive over parts of the data, which every family takes.

They come from rows, from soft weights about one fixed origin, or from published means,
covariances and counts.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prudent.core.linalg import (
    Estimator,
    Target,
    class_covariances,
    symmetric_nonnegative,
)
from prudent.core.rows import Block
from prudent.core.statistics import (
    Statistics,
    accumulate,
    check_alike,
    check_values,
    merge,
    pack,
    remove,
    two_sum,
    unpack,
    zeros,
)
from prudent.core.types import FloatArray
from prudent.core.validation import (
    Structure,
    check_contained,
    check_labelled,
    check_options,
    label_array,
    shown,
    union_of_labels,
    warn_about_memory,
)
from prudent.exceptions import PrudentWarning

LARGEST_LOSS = 1e-8
# Numbers of a block that stay in the cache with their weighted copy.
CACHED = 2**15
# With a smaller share of rows that matter it is cheaper to gather them.
GATHER_BELOW = 0.6
FEATURES_PER_BAND, MOST_BANDS = 16, 4


def central_moments(
    origin: FloatArray, s0: FloatArray, s1: FloatArray, s2: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean, as a pair, and scatter of sums about an origin."""
    absent = s0 == 0
    moved = absent & ((s1 != 0).any(axis=1) | (s2 != 0).any(axis=(1, 2)))
    if moved.any():
        raise ValueError(
            f"class {np.flatnonzero(moved)[0]} has a weight total of 0 and so no mean, "
            "although its signed sums are not 0: take a smaller step."
        )
    shift = s1 / np.where(absent, 1.0, s0)[:, None]
    mean, mean_lo = two_sum(np.where(absent[:, None], 0.0, origin), shift)
    scatter = s2 - s1[:, :, None] * shift[:, None, :]
    scatter = (scatter + scatter.transpose(0, 2, 1)) / 2
    raw = np.trace(s2, axis1=1, axis2=2)
    central = np.abs(np.trace(scatter, axis1=1, axis2=2))
    lost = (raw > 0) & (np.finfo(np.float64).eps * raw > LARGEST_LOSS * central)
    if lost.any():
        warnings.warn(
            f"class {int(np.flatnonzero(lost)[0])} lies so far from the origin of its "
            f"raw moments that its scatter lost more than {LARGEST_LOSS:g} relative: "
            "use an origin nearer to the class.",
            PrudentWarning,
            stacklevel=3,
        )
    return mean, mean_lo, scatter


def soft_sums(
    X: NDArray[Any], H: NDArray[Any], origin: FloatArray, negligible: float
) -> tuple[FloatArray, FloatArray]:
    """Sums of h b and h b b' over rows b = x - o, class by class and block by block.

    Features run along the rows of a block, so that every product is long; bands of
    them leave out most of what symmetry makes superfluous.
    """
    n_classes, n_features = H.shape[1], X.shape[1]
    s1 = np.zeros((n_classes, n_features))
    s2 = np.zeros((n_classes, n_features, n_features))
    weights = np.ascontiguousarray(H.T, dtype=np.float64)
    if n_classes == 2 and np.array_equal(weights[0], -weights[1]):
        # The residuals of two classes: what one gains, the other loses.
        s1, s2 = soft_sums(X, H[:, :1], origin, negligible)
        return np.concatenate([s1, -s1]), np.concatenate([s2, -s2])
    active = weights != 0
    if negligible:
        size = np.abs(weights)
        active = size > negligible * size.max(initial=0.0)
    few = np.count_nonzero(active, axis=1) < GATHER_BELOW * len(X)
    bands, step = _bands(n_features), max(256, CACHED // n_features)
    for start in range(0, len(X), step):
        rows = slice(start, start + step)
        B, h = _about(X[rows], origin), weights[:, rows]
        s1 += h @ B.T
        buffer = np.empty_like(B)
        for k in np.flatnonzero(~few):
            _add_products(B, np.multiply(B, h[k], out=buffer), bands, s2[k])
    for k in np.flatnonzero(few):
        chosen = np.flatnonzero(active[k])
        for start in range(0, len(chosen), step):
            own = chosen[start : start + step]
            B = _about(X[own], origin)
            _add_products(B, B * weights[k, own], bands, s2[k])
    for first, last in bands:
        s2[:, last:, first:last] = s2[:, first:last, last:].transpose(0, 2, 1)
        corner = s2[:, first:last, first:last]
        corner[:] = np.tril(corner) + np.tril(corner, -1).transpose(0, 2, 1)
    return s1, s2


def _about(rows: NDArray[Any], origin: FloatArray) -> FloatArray:
    """Features of the rows about the origin, shape (d, n)."""
    return np.subtract(rows.T, origin[:, None], order="C", dtype=np.float64)


def _add_products(
    B: FloatArray, weighted: FloatArray, bands: list[tuple[int, int]], s2: FloatArray
) -> None:
    """Add B times the weighted B', in bands on and above the diagonal."""
    for first, last in bands:
        s2[first:last, first:] += weighted[first:last] @ B[first:].T


def _bands(n_features: int) -> list[tuple[int, int]]:
    """Cuts of the features: more bands save more flops but make smaller products."""
    n_bands = min(MOST_BANDS, 1 + n_features // FEATURES_PER_BAND)
    edges = [n_features * band // n_bands for band in range(n_bands + 1)]
    return list(pairwise(edges))


# --- published summaries: means, covariances or deviations, counts, names -------------


def _read(
    means: Any,
    covariances: Any,
    counts: Any,
    classes: ArrayLike | None,
    ddof: int,
    standard_deviations: Any,
    correlations: Any,
) -> tuple[NDArray[Any], FloatArray, FloatArray, FloatArray]:
    """Labels, counts, means and covariances in the order given, once they agree."""
    mean = _numbers("means", means)
    if mean.ndim != 2 or not mean.size:
        raise ValueError(
            f"`means` must have shape (n_classes, n_features), got {mean.shape}."
        )
    if not np.isfinite(mean).all():
        raise ValueError(f"`means` must be finite, got {mean.tolist()}.")
    if counts is None:
        raise ValueError("`counts` is needed: the rows behind each class.")
    weight = _numbers("counts", counts)
    labels = _class_labels(means, classes, len(mean))
    _check_shape("counts", weight, (len(mean),), mean)
    _check_shape("classes", labels, (len(mean),), mean)
    if not ((weight > ddof) & np.isfinite(weight)).all():
        raise ValueError(
            f"`counts` must be finite and > {ddof}, got {weight.tolist()}."
        )
    if len(np.unique(labels)) < len(mean):
        raise ValueError(f"`classes` must be distinct, got {labels.tolist()}.")
    _check_names("counts", _index(counts, labels), labels.tolist())
    if (covariances is None) == (standard_deviations is None):
        raise ValueError(
            "give either `covariances`, or `standard_deviations` with `correlations`."
        )
    names = feature_names(means)
    if covariances is None:
        matrices = _from_deviations(
            standard_deviations, correlations, names, labels, mean
        )
    elif correlations is None:
        matrices = _matrices("covariances", covariances, names, labels, mean)
    else:
        raise ValueError("`correlations` go with `standard_deviations` only.")
    return labels, weight, mean, matrices


def feature_names(table: Any) -> list[str] | None:
    """Column names of a data frame of any kind; None unless all are text."""
    columns = getattr(table, "columns", None)
    names = [] if columns is None else list(columns)
    return names if names and all(isinstance(name, str) for name in names) else None


def _numbers(name: str, values: Any) -> FloatArray:
    """An array of floats, or an error that names the argument."""
    if isinstance(values, Sequence) and not isinstance(values, str):
        values = [np.asarray(value) for value in values]
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"`{name}` must be an array of numbers, the same shape for each class."
        ) from None


def _index(table: Any, classes: NDArray[Any] | None = None) -> list[Any] | None:
    """Row labels of a data frame or series, unless they only count the rows.

    Where 0, 1, ... are the `classes` too, only a range, which has a start, counts.
    """
    index = getattr(table, "index", None)
    if index is None or callable(index):
        return None
    labels = list(index)
    may_be_classes = classes is not None and set(labels) == set(classes.tolist())
    if may_be_classes and not hasattr(index, "start"):
        return labels
    return None if labels == list(range(len(labels))) else labels


def _class_labels(
    means: Any, classes: ArrayLike | None, n_classes: int
) -> NDArray[Any]:
    """Labels as given, else the row labels of the means, else 0..K-1."""
    index = _index(means)
    if classes is None:
        return np.arange(n_classes) if index is None else label_array(index, "classes")
    labels = label_array(classes, "classes")
    _check_names("means", index, labels.tolist())
    return labels


def _check_names(
    what: str,
    names: list[Any] | None,
    expected: list[Any] | None,
    axis: str = "class",
) -> None:
    """Raise for names that differ or stand in another order; None says nothing."""
    if names is None or expected is None or names == expected:
        return
    same = len(names) == len(expected) and set(names) == set(expected)
    how = f"the {axis} names in another order" if same else f"other {axis} names"
    raise ValueError(
        f"`{what}` has {how}: {_listed(names)}, expected {_listed(expected)}."
    )


def _listed(names: list[Any]) -> str:
    more = ", ..." if len(names) > 6 else ""
    return ", ".join(shown(name) for name in names[:6]) + more


def _check_shape(
    name: str, array: NDArray[Any], shape: tuple[int, ...], mean: FloatArray
) -> None:
    if array.shape != shape:
        raise ValueError(
            f"`{name}` must have shape {shape} to go with `means` of shape "
            f"{mean.shape}, got {array.shape}."
        )


def _matrices(
    what: str,
    matrices: Any,
    names: list[str] | None,
    labels: NDArray[Any],
    mean: FloatArray,
) -> FloatArray:
    """One matrix for each class, from an array, frames, or one frame of all."""
    n_classes, n_features = mean.shape
    index = _index(matrices)
    index = [] if index is None or not isinstance(index[0], tuple) else index
    if len(index) == n_classes * n_features:  # as groupby(...).cov() gives them
        _check_names(what, [row[-1] for row in index[:n_features]], names, "feature")
        _check_names(what, [row[0] for row in index[::n_features]], labels.tolist())
        _check_names(what, feature_names(matrices), names, "feature")
        array = _numbers(what, matrices).reshape(n_classes, n_features, -1)
    else:
        array = _numbers(what, matrices)
        for matrix in matrices if isinstance(matrices, Sequence) else [matrices]:
            _check_names(what, feature_names(matrix), names, "feature")
            _check_names(what, _index(matrix), names, "feature")
    _check_shape(what, array, (n_classes, n_features, n_features), mean)
    return array


def _from_deviations(
    standard_deviations: Any,
    correlations: Any,
    names: list[str] | None,
    labels: NDArray[Any],
    mean: FloatArray,
) -> FloatArray:
    """Covariances of standard deviations (K, d) and correlations, one or K."""
    if correlations is None:
        raise ValueError(
            "`standard_deviations` alone tell no covariance: give `correlations` too, "
            "np.eye(n_features) where they are taken to be 0."
        )
    deviations = _numbers("standard_deviations", standard_deviations)
    _check_names(
        "standard_deviations", feature_names(standard_deviations), names, "feature"
    )
    index = _index(standard_deviations, labels)
    _check_names("standard_deviations", index, labels.tolist())
    _check_shape("standard_deviations", deviations, mean.shape, mean)
    if not ((deviations >= 0) & np.isfinite(deviations)).all():
        raise ValueError(
            f"`standard_deviations` must be finite and >= 0, got {deviations.tolist()}."
        )
    if np.ndim(correlations) == 2 and len(correlations) == mean.shape[1]:
        correlations = [correlations] * len(mean)
    matrices = _matrices("correlations", correlations, names, labels, mean)
    diagonal = np.diagonal(matrices, axis1=1, axis2=2)
    if not ((np.abs(matrices) <= 1).all() and (diagonal == 1).all()):
        raise ValueError(
            "`correlations` must lie in [-1, 1], with 1 on the diagonal; give "
            "covariances as `covariances`."
        )
    return deviations[:, :, None] * matrices * deviations[:, None, :]


# --- class moments --------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class ClassMoments(Statistics):
    """Weighted moments of each class, additive over parts of the data.

    Parts merge in any split and order to the same moments, up to 1e-13 of
    sqrt(S_ii S_jj), even where the mean is 1e12 times the spread (Chan, Golub and
    LeVeque 1983, The American Statistician 37, with the mean kept as a pair).

    Parameters
    ----------
    classes : ndarray of shape (K,)
        Sorted distinct labels.
    count : ndarray of shape (K,)
        Rows with non-zero weight.
    weight : ndarray of shape (K,)
        Total weight W of each class; a weight counts as a repetition.
    mean, mean_lo : ndarray of shape (K, d)
        Mean as an unevaluated pair, `mean_lo` at most ulp(mean) / 2 in size, in the
        units of the features.
    scatter : ndarray of shape (K, d, d), or (K, d) for ``structure="diagonal"``
        S = sum w (x - m)(x - m)', symmetric bit for bit, or its diagonal.
    third, fourth : ndarray of shape (K, d), (K,) or None
        t = sum w ||x - m||^2 (x - m) and f = sum w ||x - m||^4.
    weighted : ndarray of bool (K,), default=None
        Whether weights other than 0 and 1 stood for rows of the class, which leaves
        promises about samples no confidence. None: where `weight` is not `count`.

    Examples
    --------
    >>> from prudent import ClassMoments
    >>> moments = ClassMoments.from_arrays([[0.0], [2.0], [5.0]], ["a", "a", "b"])
    >>> moments.mean.tolist(), moments.scatter.ravel().tolist()
    ([[1.0], [5.0]], [2.0, 0.0])
    >>> more = ClassMoments.from_arrays([[4.0]], ["a"])
    >>> (moments + more).covariance().ravel().round(4).tolist()
    [2.6667, 0.0]
    """

    def __post_init__(self) -> None:
        if self.weighted is None:
            weighted = np.asarray(self.weight) != np.asarray(self.count)
            object.__setattr__(self, "weighted", weighted)
        dtypes = {"classes": None, "count": np.int64, "weighted": np.bool_}
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            if value is not None:
                dtype = dtypes.get(name, np.float64)
                view = np.ascontiguousarray(value, dtype=dtype).view()
                view.flags.writeable = False
                object.__setattr__(self, name, view)

    @classmethod
    def from_arrays(
        cls,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        classes: ArrayLike | None = None,
        fourth: bool = False,
        structure: Structure = "full",
        block_rows: int | None = None,
    ) -> Self:
        """Moments of labelled rows.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Finite numbers of magnitude <= 1e150 (1e75 with `fourth`). float32
            and integers are converted to float64 block by block.
        y : array-like of shape (n,)
            Labels: strings, booleans or whole numbers.
        sample_weight : array-like of shape (n,), default=None
            Weights >= 0, read as repetitions; rows of weight 0 are not looked at.
        classes : array-like of shape (K,), default=None
            All labels, by default those of `y`; others get weight 0.
        fourth : bool, default=False
            Also learn `third` and `fourth`, which Ledoit-Wolf shrinkage needs.
        structure : {"full", "diagonal"}, default="full"
            "diagonal" keeps the diagonal of the scatter only.
        block_rows : int, default=None
            Rows worked on at a time; by default what fits the cache.

        Raises
        ------
        TypeError
            If `X` is sparse.
        ValueError
            If the input is not a finite numeric table with one label and one
            weight >= 0 per row, or `y` holds labels outside `classes`.
        """
        rows, labels = check_labelled(X, y, sample_weight, classes)
        check_options(structure, fourth, block_rows)
        if structure == "full":
            warn_about_memory(len(labels), rows.X.shape[1])
        statistics = accumulate(rows, labels, fourth, structure, block_rows)
        check_values(rows.X, statistics)
        return cls._of(statistics)

    @classmethod
    def from_rows(
        cls,
        X: NDArray[Any],
        codes: NDArray[np.integer],
        n_classes: int,
        weight: FloatArray | None = None,
        *,
        fourth: bool = False,
        structure: Structure = "full",
        block_rows: int | None = None,
    ) -> Self:
        """Moments of encoded rows (n, d), without validation.

        `codes` (n,) are the classes 0..n_classes - 1 of the rows, and the labels;
        weights may have any sign as long as no sum of them is 0.
        """
        rows = Block(X, codes.astype(np.intp, copy=False), weight)
        labels = np.arange(n_classes)
        return cls._of(accumulate(rows, labels, fourth, structure, block_rows))

    @classmethod
    def from_covariances(
        cls,
        means: ArrayLike,
        covariances: ArrayLike | None = None,
        counts: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        ddof: Literal[0, 1] = 0,
        *,
        standard_deviations: ArrayLike | None = None,
        correlations: ArrayLike | None = None,
    ) -> Self:
        """Moments that have the given means and covariances.

        Arrays, or pandas or polars data frames, whose names have to agree: columns
        are features, a pandas index that is not 0..K-1 holds the labels.

        Parameters
        ----------
        means : array-like of shape (K, d)
            Class means.
        covariances : array-like of shape (K, d, d), default=None
            Class covariances; K data frames, or the frame of
            ``X.groupby(y).cov()``, will do. Symmetric and positive semidefinite to
            1e-8, relative; smaller negative eigenvalues are clipped to 0.
        counts : array-like of shape (K,)
            Total weight of each class, > `ddof`.
        classes : array-like of shape (K,), default=None
            Distinct labels, in the order of `means`; by default the row labels of
            `means`, else 0..K-1.
        ddof : {0, 1}, default=0
            The covariances are S / (W - ddof).
        standard_deviations : array-like of shape (K, d), default=None
            With `correlations`, in place of `covariances`; >= 0.
        correlations : array-like of shape (K, d, d) or (d, d), default=None
            In [-1, 1], with 1 on the diagonal; (d, d) serves all classes.

        Raises
        ------
        ValueError
            If shapes or names disagree, a number is not finite, a covariance is not
            symmetric positive semidefinite, a count is not > `ddof`, or there is
            not one of `covariances` and `standard_deviations`.
        """
        labels, weight, mean, matrices = _read(
            means, covariances, counts, classes, ddof, standard_deviations, correlations
        )
        order = np.argsort(labels)
        labels, weight = labels[order], weight[order]
        matrices = symmetric_nonnegative(matrices[order], labels)
        return cls(
            labels,
            np.rint(weight).astype(np.int64),
            weight,
            mean[order],
            np.zeros_like(mean),
            matrices * (weight - ddof)[:, None, None],
        )

    @classmethod
    def empty(
        cls,
        classes: ArrayLike,
        n_features: int,
        *,
        fourth: bool = False,
        structure: Structure = "full",
    ) -> Self:
        """Moments of no rows: the neutral element of `+`."""
        check_options(structure, fourth, None)
        labels = np.unique(np.asarray(classes))
        return cls._of(zeros(labels, n_features, structure, fourth))

    @classmethod
    def reduce(cls, parts: Iterable[Self]) -> Self:
        """Sum of many parts, one at least, by a binary tree over their position.

        The tree depends on the number of parts alone, so results repeat bit for
        bit whoever computes the parts; O(log n) of them are held at a time.
        """
        stack: list[tuple[int, Self]] = []
        for part in parts:
            height = 0
            while stack and stack[-1][0] == height:
                part = stack.pop()[1] + part
                height += 1
            stack.append((height, part))
        if not stack:
            raise ValueError("there are no moments to add: give at least one part.")
        total = stack.pop()[1]
        while stack:
            total = stack.pop()[1] + total
        return total

    def __add__(self, other: ClassMoments) -> Self:
        if not isinstance(other, ClassMoments):
            return NotImplemented
        check_alike(self, other)
        if np.array_equal(self.classes, other.classes):
            return merge(self, other)
        classes = union_of_labels(self.classes, other.classes)
        return merge(self.spread(classes), other.spread(classes))

    def __sub__(self, part: ClassMoments) -> Self:
        """Moments without the rows of a part that was added before.

        Raises
        ------
        ValueError
            If the part has classes or weight that the total lacks, or so much of the
            spread that fewer than 4 digits would be left.

        Warns
        -----
        PrudentWarning
            If the spread of what is left is below 1e-6 of that of the total.
        """
        if not isinstance(part, ClassMoments):
            return NotImplemented
        check_alike(self, part)
        check_contained(part.classes, self.classes)
        return remove(self, part.spread(self.classes))

    def pooled(self) -> Self:
        """One class, labelled 0, that holds all rows: within and between spread."""
        alike = replace(self, classes=np.zeros(len(self.classes), dtype=np.int64))
        return self.reduce(alike.take([k]) for k in range(len(self.classes)))

    def within(self) -> Self:
        """One class, labelled 0, of the rows shifted to the pooled mean.

        Its scatter is the sum of the class scatters.
        """
        pooled = self.pooled()
        arrays = pooled.arrays()
        for name in arrays.keys() & {"scatter", "third", "fourth"}:
            arrays[name] = getattr(self, name).sum(axis=0, keepdims=True)
        return replace(pooled, **arrays)

    def select(self, classes: ArrayLike) -> Self:
        """Moments of some of the classes only, in sorted order."""
        wanted = np.unique(np.asarray(classes))
        check_contained(wanted, self.classes)
        return self.take(np.isin(self.classes, wanted))

    def scale(self, factor: float) -> Self:
        """Moments with every weight multiplied by `factor` > 0."""
        if not 0 < factor < np.inf:
            raise ValueError(f"`factor` must be finite and > 0, got {shown(factor)}.")
        arrays = self.arrays()
        for name in arrays.keys() & {"weight", "scatter", "third", "fourth"}:
            arrays[name] = factor * arrays[name]
        arrays["weighted"] = self.weighted | ((factor != 1) & (self.weight > 0))
        return replace(self, **arrays)

    def about(self, origin: ArrayLike) -> RawMoments:
        """Raw sums about a fixed origin, for signed updates."""
        if self.structure == "diagonal":
            raise ValueError("raw moments need structure='full', got 'diagonal'.")
        point = np.asarray(origin, dtype=np.float64)
        gap = (self.mean - point) + self.mean_lo
        between = gap[:, :, None] * gap[:, None, :]
        s2 = self.scatter + self.weight[:, None, None] * between
        return RawMoments(point, self.weight, self.weight[:, None] * gap, s2)

    def covariance(
        self,
        estimator: Estimator = "empirical",
        ddof: Literal[0, 1] = 0,
        shrinkage: float | None = None,
        target: Target = "diagonal",
    ) -> FloatArray:
        """Covariance matrix of each class.

        Parameters
        ----------
        estimator : {"empirical", "ledoit_wolf", "oas"}, default="empirical"
            C = S / (W - ddof), or shrunk to the identity times the mean variance
            by the Ledoit-Wolf (needs `fourth`) or OAS amount.
        ddof : {0, 1}, default=0
            What is taken off the weight total.
        shrinkage : float, default=None
            Amount a in [0, 1]: (1 - a) C + a T instead. Empirical only.
        target : {"diagonal", "identity"}, default="diagonal"
            T = diag(C) or (trace C / d) I. Used with `shrinkage` only.

        Returns
        -------
        ndarray of shape (K, d, d)
            Of shape (K, d), the variances, for ``structure="diagonal"``.

        Raises
        ------
        DegenerateDataError
            If a class has a weight total <= `ddof`, or its statistics are indefinite
            (`SingularCovarianceError`, from signed weights).
        ValueError
            If an argument is out of range or needs statistics not kept here.
        """
        return class_covariances(self, estimator, ddof, shrinkage, target)

    def to_bytes(self) -> bytes:
        """These moments as bytes: npz with a version, no pickle."""
        return pack(self)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Moments from `to_bytes`, bit for bit."""
        return cls(**unpack(data))

    @classmethod
    def _of(cls, statistics: Statistics) -> Self:
        return cls(statistics.classes, **statistics.arrays())


@dataclass(frozen=True, slots=True, eq=False)
class RawMoments:
    """Sums of w, w(x - o) and w(x - o)(x - o)' of K classes about one origin o.

    A vector space: sums, differences and multiples are exact in the sense of the
    field, weights may have any sign. Cancellation grows as (distance between
    class means / std)^2 eps, so the origin should be the pooled mean.

    Attributes
    ----------
    origin : ndarray of shape (d,)
        The point o, in the units of the features.
    s0, s1, s2 : ndarray of shape (K,), (K, d), (K, d, d)
        The sums.

    Examples
    --------
    >>> import numpy as np
    >>> from prudent import RawMoments
    >>> H = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
    >>> raw = RawMoments.from_soft(np.array([[0.0], [1.0], [5.0]]), H, [2.0])
    >>> raw.s0.tolist(), (raw - 0.5 * raw).s0.tolist()
    ([1.5, 1.5], [0.75, 0.75])
    """

    origin: FloatArray
    s0: FloatArray
    s1: FloatArray
    s2: FloatArray

    @classmethod
    def from_soft(
        cls,
        X: NDArray[Any],
        H: NDArray[Any],
        origin: ArrayLike,
        *,
        negligible: float = 0.0,
    ) -> Self:
        """Sums over rows that belong to every class k with weight H[i, k].

        Parameters
        ----------
        X : ndarray of shape (n, d)
            Finite rows.
        H : ndarray of shape (n, K)
            Finite weights of any sign; the sums are exactly linear in them.
        origin : array-like of shape (d,)
            The same point for all parts that will be added.
        negligible : float, default=0.0
            Weights of a class up to this share of the largest weight of all may be
            left out of its second sums.

        Returns
        -------
        RawMoments
        """
        origin = np.asarray(origin, dtype=np.float64)
        s1, s2 = soft_sums(X, H, origin, negligible)
        return cls(origin, H.sum(axis=0, dtype=np.float64), s1, s2)

    def __add__(self, other: RawMoments) -> Self:
        if not np.array_equal(self.origin, other.origin):
            raise ValueError(
                "raw moments can be added only about one origin, got "
                f"{self.origin.tolist()} and {other.origin.tolist()}."
            )
        return type(self)(
            self.origin, self.s0 + other.s0, self.s1 + other.s1, self.s2 + other.s2
        )

    def __sub__(self, other: RawMoments) -> Self:
        return self + -1.0 * other

    def __mul__(self, factor: float) -> Self:
        return type(self)(
            self.origin, factor * self.s0, factor * self.s1, factor * self.s2
        )

    __rmul__ = __mul__

    def to_moments(self) -> ClassMoments:
        """Class moments with labels 0..K-1 and unknown `count` (0).

        ValueError if the weight total of a class is 0 but its sums are not; a warning
        if its mean lies so far from the origin, relative to the spread, that the
        scatter loses more than 1e-8 relative.
        """
        n_classes = len(self.s0)
        count = np.zeros(n_classes, dtype=np.int64)
        central = central_moments(self.origin, self.s0, self.s1, self.s2)
        return ClassMoments(np.arange(n_classes), count, self.s0, *central)
