"""Sums about one fixed origin: a vector space, for signed updates."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prudent.core.statistics import Statistics, two_sum
from prudent.core.types import FloatArray
from prudent.exceptions import PrudentWarning

LARGEST_LOSS = 1e-8
# The compiled kernel is faster up to this many features, and worth importing from
# this many numbers on.
COMPILED_FEATURES = 48
COMPILED_SIZE = 2**18


@dataclass(frozen=True, slots=True, eq=False)
class RawSums:
    """Sums of w, w(x - o) and w(x - o)(x - o)' of K classes; see `RawMoments`.

    Attributes
    ----------
    origin : ndarray of shape (d,)
    s0 : ndarray of shape (K,)
    s1 : ndarray of shape (K, d)
    s2 : ndarray of shape (K, d, d)
    """

    origin: FloatArray
    s0: FloatArray
    s1: FloatArray
    s2: FloatArray

    @classmethod
    def from_soft(cls, X: NDArray[Any], H: NDArray[Any], origin: ArrayLike) -> Self:
        """Sums over rows that belong to every class k with weight H[i, k].

        Parameters
        ----------
        X : ndarray of shape (n, d)
            Finite rows.
        H : ndarray of shape (n, K)
            Finite weights of any sign.
        origin : array-like of shape (d,)
            The same point for all parts that will be added.

        Returns
        -------
        RawMoments
            Exactly linear in `H`.
        """
        origin = np.asarray(origin, dtype=np.float64)
        compiled = X.shape[1] <= COMPILED_FEATURES and X.size >= COMPILED_SIZE
        add = _compiled_sums if compiled else _blas_sums
        s1, s2 = add(X, H, origin)
        s2 = np.tril(s2) + np.tril(s2, -1).transpose(0, 2, 1)
        return cls(origin, H.sum(axis=0, dtype=np.float64), s1, s2)

    @classmethod
    def of(cls, statistics: Statistics, origin: FloatArray) -> Self:
        """Raw sums that equal the given central ones; see `ClassMoments.about`."""
        if statistics.scatter.ndim == 2:
            raise ValueError("raw moments need structure='full', got 'diagonal'.")
        gap = (statistics.mean - origin) + statistics.mean_lo
        s1 = statistics.weight[:, None] * gap
        between = gap[:, :, None] * gap[:, None, :]
        s2 = statistics.scatter + statistics.weight[:, None, None] * between
        return cls(origin, statistics.weight, s1, s2)

    def __add__(self, other: RawSums) -> Self:
        self._check_origin(other)
        return type(self)(
            self.origin, self.s0 + other.s0, self.s1 + other.s1, self.s2 + other.s2
        )

    def __sub__(self, other: RawSums) -> Self:
        return self + -1.0 * other

    def __mul__(self, factor: float) -> Self:
        return type(self)(
            self.origin, factor * self.s0, factor * self.s1, factor * self.s2
        )

    __rmul__ = __mul__

    def central(self) -> Statistics:
        """Central statistics; see `RawMoments.to_moments`."""
        absent = self.s0 == 0
        if (self.s1[absent] != 0).any() or (self.s2[absent] != 0).any():
            k = int(np.flatnonzero(absent & (self.s2 != 0).any(axis=(1, 2)))[0])
            raise ValueError(
                f"class {k} has a weight total of 0 and so no mean, although its "
                "signed sums are not 0: take a smaller step."
            )
        total = np.where(absent, 1.0, self.s0)
        shift = self.s1 / total[:, None]
        mean, mean_lo = two_sum(np.where(absent[:, None], 0.0, self.origin), shift)
        scatter = self.s2 - self.s1[:, :, None] * shift[:, None, :]
        scatter = (scatter + scatter.transpose(0, 2, 1)) / 2
        raw = np.trace(self.s2, axis1=1, axis2=2)
        central = np.abs(np.trace(scatter, axis1=1, axis2=2))
        lost = np.finfo(np.float64).eps * raw > LARGEST_LOSS * central
        if (lost & (raw > 0)).any():
            warnings.warn(
                f"class {int(np.flatnonzero(lost & (raw > 0))[0])} lies so far from "
                "the origin of its raw moments that its scatter lost more than "
                f"{LARGEST_LOSS:g} relative: use an origin nearer to the class.",
                PrudentWarning,
                stacklevel=3,
            )
        count = np.zeros(len(self.s0), dtype=np.int64)
        return Statistics(count, self.s0, mean, mean_lo, scatter)

    def _check_origin(self, other: RawSums) -> None:
        if not np.array_equal(self.origin, other.origin):
            raise ValueError(
                "raw moments can be added only about one origin, got "
                f"{self.origin.tolist()} and {other.origin.tolist()}."
            )


def _blas_sums(
    X: NDArray[Any], H: NDArray[Any], origin: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Sums of h b and h b b' by one product per class and block."""
    n_classes, n_features = H.shape[1], X.shape[1]
    s1 = np.zeros((n_classes, n_features))
    s2 = np.zeros((n_classes, n_features, n_features))
    size = max(256, 2**17 // n_features)
    buffers = np.empty((2, min(size, len(X)), n_features))
    for start in range(0, len(X), size):
        block = X[start : start + size]
        h = np.asarray(H[start : start + size], dtype=np.float64)
        B, weighted = buffers[:, : len(block)]
        np.subtract(block, origin, out=B)
        s1 += h.T @ B
        for k in range(n_classes):
            np.multiply(B, h[:, k, None], out=weighted)
            s2[k] += weighted.T @ B
    return s1, s2


def _compiled_sums(
    X: NDArray[Any], H: NDArray[Any], origin: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The same sums; of h b b' the lower triangles only."""
    from prudent.core._compiled import soft_sums

    n_classes, n_features = H.shape[1], X.shape[1]
    padded = -(-n_features // 4) * 4
    s1 = np.zeros((n_classes, padded))
    s2 = np.zeros((n_classes, padded, padded))
    size = 2**20 // n_features
    for start in range(0, len(X), size):
        block, h = (
            np.ascontiguousarray(rows[start : start + size], dtype=np.float64)
            for rows in (X, H)
        )
        soft_sums(block, h, origin, s1, s2)
    return s1[:, :n_features], s2[:, :n_features, :n_features]
