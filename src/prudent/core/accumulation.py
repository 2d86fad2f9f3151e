"""One pass over the rows: statistics of each class, block by block."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from prudent.core.statistics import FloatArray, Statistics, merge, two_sum

__all__ = ["accumulate"]


class Sums(NamedTuple):
    """Sums of w b, w b b', w |b|^2 b and w |b|^4 over rows b = x - origin."""

    s1: FloatArray
    s2: FloatArray
    s3: Any = None
    s4: Any = None

    def plus(self, other: Sums) -> Sums:
        """Sums over the rows of both."""
        both: list[Any] = [
            None if a is None else a + b for a, b in zip(self, other, strict=True)
        ]
        return Sums(*both)


# Rows are centred again when their first row lies so far from their mean that the
# correction would cancel more than this factor; fourth powers cancel its square.
CANCELLATION = 64.0
CANCELLATION_OF_FOURTH = 4.0
# The compiled kernel is faster up to this many features, and worth importing from
# this many numbers on.
COMPILED_FEATURES = 48
COMPILED_SIZE = 2**20


def accumulate(
    X: NDArray[Any],
    codes: NDArray[np.integer],
    n_classes: int,
    weight: FloatArray | None = None,
    *,
    fourth: bool = False,
    diagonal: bool = False,
    block_rows: int | None = None,
) -> Statistics:
    """Statistics of the rows of each class; rows of weight 0 are skipped."""
    if weight is not None and not weight.all():
        kept = np.flatnonzero(weight)
        X, codes, weight = X[kept], codes[kept], weight[kept]
    compiled = X.shape[1] <= COMPILED_FEATURES and X.size >= COMPILED_SIZE
    # Overflow and NaN are found in the result; see validation.check_values.
    with np.errstate(over="ignore", invalid="ignore"):
        if compiled and not diagonal:
            return _accumulate_in_order(X, codes, n_classes, weight, fourth, block_rows)
        return _accumulate_by_class(
            X, codes, n_classes, weight, fourth, diagonal, block_rows
        )


def _accumulate_by_class(
    X: NDArray[Any],
    codes: NDArray[np.integer],
    n_classes: int,
    weight: FloatArray | None,
    fourth: bool,
    diagonal: bool,
    block_rows: int | None,
) -> Statistics:
    """The reference kernel, NumPy alone: sums class by class."""
    n_features = X.shape[1]
    # Rows between two merges, and rows that fit the cache together.
    size = block_rows or max(2**22 // n_features, 16 * n_features)
    cached = min(size, max(256, 2**17 // n_features, 2 * n_features))
    order, ends = _rows_by_class(codes, n_classes)
    total = Statistics.empty(n_classes, n_features, fourth=fourth, diagonal=diagonal)
    buffer = np.empty((min(cached, len(order)), n_features))
    for k in range(n_classes):
        part = None
        for begin in range(ends[k - 1] if k else 0, ends[k], size):
            rows = order[begin : min(begin + size, ends[k])]
            w = None if weight is None else weight[rows]
            sums_about = partial(_class_sums, X, rows, w, buffer, fourth, diagonal)
            count = np.array([len(rows)])
            W = count.astype(np.float64) if w is None else w.sum(keepdims=True)
            new = _centred(count, W, X[rows[:1]].astype(np.float64), sums_about)
            part = new if part is None else merge(part, new)
        if part is not None:
            total.put([k], part)
    return total


def _rows_by_class(
    codes: NDArray[np.integer], n_classes: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Row numbers sorted by class, and where each class ends among them."""
    if n_classes < 2**15:
        codes = codes.astype(np.int16, copy=False)  # a stable sort of int16 is radix
    order = np.argsort(codes, kind="stable")
    return order, np.cumsum(np.bincount(codes, minlength=n_classes))


def _gather(X: NDArray[Any], rows: NDArray[np.intp], out: FloatArray) -> FloatArray:
    # np.take copies the whole of an array that is not C-contiguous; without
    # mode="clip" it would also buffer `out`.
    if X.dtype == np.float64 and X.flags.c_contiguous:
        np.take(X, rows, axis=0, out=out, mode="clip")
    else:
        out[...] = X[rows]
    return out


def _class_sums(
    X: NDArray[Any],
    rows: NDArray[np.intp],
    w: FloatArray | None,
    buffer: FloatArray,
    fourth: bool,
    diagonal: bool,
    origin: FloatArray,
) -> Sums:
    """Sums about the origin over rows of one class, gathered block by block."""
    total = None
    for begin in range(0, len(rows), len(buffer)):
        block = slice(begin, begin + len(buffer))
        B = _gather(X, rows[block], buffer[: len(rows[block])])
        B -= origin
        sums = _row_sums(B, None if w is None else w[block], fourth, diagonal)
        total = sums if total is None else total.plus(sums)
    assert total is not None
    return total


def _row_sums(
    B: FloatArray, w: FloatArray | None, fourth: bool, diagonal: bool
) -> Sums:
    """Sums over the rows of one class."""
    weights = np.ones(len(B)) if w is None else w
    s1 = weights @ B
    if diagonal:
        return Sums(s1[None], (weights @ (B * B))[None])
    # NumPy hands the product with its own transpose to SYRK.
    s2 = (B.T @ B)[None] if w is None else _symmetric(((B * w[:, None]).T @ B)[None])
    if not fourth:
        return Sums(s1[None], s2)
    q = np.einsum("ij,ij->i", B, B)
    weighted = weights * q
    return Sums(s1[None], s2, (weighted @ B)[None], np.array([weighted @ q]))


def _symmetric(products: FloatArray) -> FloatArray:
    """Matrices with the lower triangles of the given ones."""
    lower = np.tril(products)
    return lower + np.tril(products, -1).transpose(0, 2, 1)


def _centred(
    count: NDArray[np.int64],
    W: FloatArray,
    origin: FloatArray,
    sums_about: Callable[[FloatArray], Sums],
) -> Statistics:
    """Central statistics from sums about a row of each class, or else its mean."""
    statistics, lost = _about_mean(count, W, origin, sums_about(origin))
    if lost:
        mean = statistics.mean
        statistics, _ = _about_mean(count, W, mean, sums_about(mean))
    return statistics


def _about_mean(
    count: NDArray[np.int64], W: FloatArray, origin: FloatArray, sums: Sums
) -> tuple[Statistics, bool]:
    """Central statistics from sums about another point.

    The second value says whether so many digits cancelled that the sums must be
    taken again about the mean found.
    """
    if ((W == 0) & (count > 0)).any():
        raise ValueError(
            "the weights of the rows of a class cancel to a total of 0, so they have "
            "no mean: use RawMoments for signed weights."
        )
    r = sums.s1 / np.where(count == 0, 1.0, W)[:, None]
    shift = W[:, None] * (r * r)
    if sums.s2.ndim == 2:
        scatter = sums.s2 - shift
    else:
        scatter = sums.s2 - W[:, None, None] * (r[:, :, None] * r[:, None, :])
    statistics = Statistics(count, W, *two_sum(origin, r), scatter)
    lost = (shift > CANCELLATION * statistics.variation).any()
    if sums.s3 is not None:
        third, fourth = _powers_about_mean(W, r, sums)
        total = shift.sum(axis=1)
        lost |= (total > CANCELLATION_OF_FOURTH * statistics.trace).any()
        statistics = replace(statistics, third=third, fourth=fourth)
    return statistics, bool(lost)


def _powers_about_mean(
    W: FloatArray, r: FloatArray, sums: Sums
) -> tuple[FloatArray, FloatArray]:
    """Third and fourth about the mean, which lies r away from the origin."""
    rr = (r * r).sum(axis=1)
    trace = np.trace(sums.s2, axis1=1, axis2=2)
    u = np.matmul(sums.s2, r[:, :, None])[:, :, 0]
    third = sums.s3 - 2 * u - (trace - 2 * W * rr)[:, None] * r
    fourth = (
        sums.s4
        - 4 * (r * sums.s3).sum(axis=1)
        + 4 * (r * u).sum(axis=1)
        + (2 * trace - 3 * W * rr) * rr
    )
    return third, fourth


def _accumulate_in_order(
    X: NDArray[Any],
    codes: NDArray[np.integer],
    n_classes: int,
    weight: FloatArray | None,
    fourth: bool,
    block_rows: int | None,
) -> Statistics:
    """The compiled kernel: rows in the order they lie, neither sorted nor gathered."""
    n_features = X.shape[1]
    size = block_rows or 2**20 // n_features
    total = Statistics.empty(n_classes, n_features, fourth=fourth, diagonal=False)
    for start in range(0, len(X), size):
        rows = slice(start, start + size)
        block = np.ascontiguousarray(X[rows], dtype=np.float64)
        block_codes = codes[rows].astype(np.intp, copy=False)
        w = None if weight is None else weight[rows]
        total = merge(total, _block_in_order(block, block_codes, n_classes, w, fourth))
    return total


def _block_in_order(
    X: FloatArray,
    codes: NDArray[np.intp],
    n_classes: int,
    w: FloatArray | None,
    fourth: bool,
) -> Statistics:
    """Statistics of the rows of all classes of one block."""
    from prudent.core._compiled import class_sums, first_rows

    n_features = X.shape[1]
    padded = -(-n_features // 4) * 4
    weights = np.empty(0) if w is None else w

    def sums_about(origin: FloatArray) -> Sums:
        s1, s3 = np.zeros((2, n_classes, padded))
        s2 = np.zeros((n_classes, padded, padded))
        s4 = np.zeros(n_classes if fourth else 0)
        class_sums(X, codes, weights, origin, s1, s2, s3, s4)
        products = _symmetric(s2[:, :n_features, :n_features])
        if not fourth:
            return Sums(s1[:, :n_features], products)
        return Sums(s1[:, :n_features], products, s3[:, :n_features], s4)

    origin, count = first_rows(X, codes, n_classes)
    W = np.bincount(codes, w, n_classes).astype(np.float64)
    return _centred(count, W, origin, sums_about)
