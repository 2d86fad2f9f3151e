"""One pass over the rows: statistics of each class, block by block."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.core.statistics import FloatArray, Statistics, merge, two_sum

__all__ = ["accumulate"]

# Rows are centred again when their first row lies so far from their mean that the
# rank-one correction would cancel more than this factor.
CANCELLATION = 64.0
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
        if compiled and not (fourth or diagonal):
            return _accumulate_in_order(X, codes, n_classes, weight, block_rows)
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
    """The reference kernel, NumPy alone.

    The rows of a class are gathered in blocks into one float64 buffer, shifted
    by the first row of the block, multiplied with themselves and merged.
    """
    n_features = X.shape[1]
    block_rows = block_rows or max(256, 2**17 // n_features, 2 * n_features)
    order, ends = _rows_by_class(codes, n_classes)
    total = Statistics.empty(n_classes, n_features, fourth=fourth, diagonal=diagonal)
    buffer = np.empty((min(block_rows, len(order)), n_features))
    for k in range(n_classes):
        part = None
        for begin in range(ends[k - 1] if k else 0, ends[k], block_rows):
            rows = order[begin : min(begin + block_rows, ends[k])]
            block = _gather(X, rows, buffer[: len(rows)])
            row_weight = None if weight is None else weight[rows]
            new = _block_statistics(block, row_weight, fourth, diagonal)
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


def _block_statistics(
    B: FloatArray, w: FloatArray | None, fourth: bool, diagonal: bool
) -> Statistics:
    """Statistics of rows of one class; overwrites B."""
    first = B[0].copy()
    B -= first
    weights = np.ones(len(B)) if w is None else w
    count, W = np.array([len(B)]), np.array([weights.sum()])
    s1 = (weights @ B)[None]
    if fourth:  # third and fourth have no cheap correction: centre first
        r = _mean_shift(count, W, s1)
        B -= r[0]
        scatter = _product(B, w, diagonal)
    else:
        r, scatter, lost = _about_mean(count, W, s1, _product(B, w, diagonal))
        if lost:
            B -= r[0]
            scatter = _product(B, w, diagonal)
    mean, mean_lo = two_sum(first, r)
    third = power = None
    if fourth:
        q = np.einsum("ij,ij->i", B, B)
        third = ((weights * q) @ B)[None]
        power = np.array([(weights * q) @ q])
    return Statistics(count, W, mean, mean_lo, scatter, third, power)


def _product(B: FloatArray, w: FloatArray | None, diagonal: bool) -> FloatArray:
    """sum_i w_i b_i b_i', symmetric bit for bit, or its diagonal; one class."""
    if diagonal:
        return np.einsum("ij,ij->j", B if w is None else B * w[:, None], B)[None]
    if w is None:
        return (B.T @ B)[None]  # NumPy hands this product to SYRK
    return _symmetric(((B * w[:, None]).T @ B)[None])


def _symmetric(products: FloatArray) -> FloatArray:
    """Matrices with the lower triangles of the given ones."""
    lower = np.tril(products)
    return lower + np.tril(products, -1).transpose(0, 2, 1)


def _mean_shift(count: NDArray[np.int64], W: FloatArray, s1: FloatArray) -> FloatArray:
    """Mean of rows from their sum; 0 for a class without rows."""
    if ((W == 0) & (count > 0)).any():
        raise ValueError(
            "the weights of the rows of a class cancel to a total of 0, so they have "
            "no mean: use RawMoments for signed weights."
        )
    return s1 / np.where(count == 0, 1.0, W)[:, None]


def _about_mean(
    count: NDArray[np.int64], W: FloatArray, s1: FloatArray, s2: FloatArray
) -> tuple[FloatArray, FloatArray, bool]:
    """Mean and central products from sums about another point.

    The third value says whether so many digits cancelled that the rows must be
    centred at their mean and multiplied again.
    """
    r = _mean_shift(count, W, s1)
    if s2.ndim == 2:
        shift = W[:, None] * (r * r)
        return r, s2 - shift, bool((shift > CANCELLATION * (s2 - shift)).any())
    correction = W[:, None, None] * (r[:, :, None] * r[:, None, :])
    scatter = s2 - correction
    shift, variation = (
        np.diagonal(products, axis1=1, axis2=2) for products in (correction, scatter)
    )
    return r, scatter, bool((shift > CANCELLATION * variation).any())


def _accumulate_in_order(
    X: NDArray[Any],
    codes: NDArray[np.integer],
    n_classes: int,
    weight: FloatArray | None,
    block_rows: int | None,
) -> Statistics:
    """The compiled kernel: rows in the order they lie, neither sorted nor gathered."""
    n_features = X.shape[1]
    size = block_rows or 2**20 // n_features
    total = Statistics.empty(n_classes, n_features, fourth=False, diagonal=False)
    for start in range(0, len(X), size):
        rows = slice(start, start + size)
        block = np.ascontiguousarray(X[rows], dtype=np.float64)
        block_codes = codes[rows].astype(np.intp, copy=False)
        w = None if weight is None else weight[rows]
        total = merge(total, _block_in_order(block, block_codes, n_classes, w))
    return total


def _block_in_order(
    X: FloatArray, codes: NDArray[np.intp], n_classes: int, w: FloatArray | None
) -> Statistics:
    """Statistics of the rows of all classes of one block."""
    from prudent.core._compiled import class_sums, first_rows

    n_features = X.shape[1]
    padded = -(-n_features // 4) * 4

    def sums(origin: FloatArray) -> tuple[FloatArray, FloatArray]:
        s1 = np.zeros((n_classes, padded))
        s2 = np.zeros((n_classes, padded, padded))
        class_sums(X, codes, np.empty(0) if w is None else w, origin, s1, s2)
        return s1[:, :n_features], _symmetric(s2[:, :n_features, :n_features])

    origin, count = first_rows(X, codes, n_classes)
    W = np.bincount(codes, w, n_classes).astype(np.float64)
    r, scatter, lost = _about_mean(count, W, *sums(origin))
    if lost:
        origin = origin + r
        r, scatter, _ = _about_mean(count, W, *sums(origin))
    return Statistics(count, W, *two_sum(origin, r), scatter)
