"""Additive statistics of each class: what every family learns from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prudent.core.accumulation import accumulate, check_values
from prudent.core.covariance import Estimator, Target, class_covariances
from prudent.core.raw_moments import central_moments, soft_sums
from prudent.core.rows import Block
from prudent.core.statistics import (
    Statistics,
    check_alike,
    merge,
    pack,
    remove,
    unpack,
    zeros,
)
from prudent.core.summary import FromSummary
from prudent.core.types import FloatArray
from prudent.core.validation import (
    Structure,
    check_contained,
    check_labelled,
    check_options,
    shown,
    union_of_labels,
    warn_about_memory,
)


@dataclass(frozen=True, slots=True, eq=False)
class ClassMoments(Statistics, FromSummary):
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
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            if value is not None:
                dtype = {"classes": None, "count": np.int64}.get(name, np.float64)
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
        one = replace(self, classes=np.zeros(len(self.classes), dtype=np.int64))
        return self.reduce(one.take([k]) for k in range(len(self.classes)))

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
