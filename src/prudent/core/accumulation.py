"""One pass over the rows: statistics of each class, block by block."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.core.statistics import FloatArray, Statistics, merge, two_sum

__all__ = ["accumulate"]

# A block is centred again when its first row lies so far from its mean that the
# rank-one correction would cancel more than this factor.
CANCELLATION = 16.0


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
    """Statistics of the rows of each class (the reference kernel).

    The rows of a class are gathered in blocks into one float64 buffer, shifted
    by the first row of the block, multiplied with themselves and merged. Rows of
    weight 0 are skipped.
    """
    n_features = X.shape[1]
    block_rows = block_rows or max(256, 2**17 // n_features, 2 * n_features)
    order, ends = _rows_by_class(codes, n_classes, weight)
    total = Statistics.empty(n_classes, n_features, fourth=fourth, diagonal=diagonal)
    buffer = np.empty((min(block_rows, len(order)), n_features))
    # Overflow and NaN are found in the result; see ClassMoments.from_arrays.
    with np.errstate(over="ignore", invalid="ignore"):
        for k in range(n_classes):
            start = ends[k - 1] if k else 0
            part = None
            for begin in range(start, ends[k], block_rows):
                rows = order[begin : min(begin + block_rows, ends[k])]
                block = _gather(X, rows, buffer[: len(rows)])
                row_weight = None if weight is None else weight[rows]
                new = _block_statistics(block, row_weight, fourth, diagonal)
                part = new if part is None else merge(part, new)
            if part is not None:
                total.put([k], part)
    return total


def _rows_by_class(
    codes: NDArray[np.integer], n_classes: int, weight: FloatArray | None
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Row numbers sorted by class, and where each class ends among them."""
    if n_classes < 2**15:
        codes = codes.astype(np.int16, copy=False)  # a stable sort of int16 is radix
    order = np.argsort(codes, kind="stable")
    if weight is not None:
        order = order[weight[order] != 0]
        codes = codes[order]
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
    W = weights.sum()
    if W == 0:
        raise ValueError(
            "the weights of a block of rows cancel to a total of 0, so it has no "
            "mean: use RawMoments for signed weights."
        )
    r = (weights @ B) / W
    centred = fourth
    if centred:
        B -= r
    scatter = _product(B, w, diagonal)
    if not centred:
        correction = W * (r * r if diagonal else np.outer(r, r))
        rest = scatter - correction
        shift, spread = (
            (correction, rest) if diagonal else (correction.diagonal(), rest.diagonal())
        )
        if (shift > CANCELLATION * spread).any():
            B -= r
            scatter = _product(B, w, diagonal)
        else:
            scatter = rest
    mean, mean_lo = two_sum(first, r)
    third = power = None
    if fourth:
        q = np.einsum("ij,ij->i", B, B)
        third = ((weights * q) @ B)[None]
        power = np.array([(weights * q) @ q])
    return Statistics(
        np.array([len(B)]),
        np.array([W]),
        mean[None],
        mean_lo[None],
        scatter[None],
        third,
        power,
    )


def _product(B: FloatArray, w: FloatArray | None, diagonal: bool) -> FloatArray:
    """sum_i w_i b_i b_i', symmetric bit for bit, or its diagonal."""
    if diagonal:
        return np.einsum("ij,ij->j", B if w is None else B * w[:, None], B)
    if w is None:
        return B.T @ B  # NumPy hands a product with its own transpose to SYRK
    product = (B * w[:, None]).T @ B
    lower = np.tril(product, -1)
    return lower + lower.T + np.diag(product.diagonal())
