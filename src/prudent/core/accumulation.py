"""One pass over the rows: statistics of each class, block by block."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk

from prudent.core.rows import Block
from prudent.core.statistics import (
    Statistics,
    add_spread,
    merge,
    two_sum,
    write,
    zeros,
)
from prudent.core.types import FloatArray, IntArray
from prudent.core.validation import Structure


class Sums(NamedTuple):
    """Sums of w b, w b b', w |b|^2 b and w |b|^4 over rows b = x - origin."""

    s1: FloatArray
    s2: FloatArray
    s3: Any = None
    s4: Any = None


# Rows are centred again when their first row lies so far from their mean that the
# correction would cancel more than this factor; fourth powers cancel its square.
CANCELLATION = 64.0
CANCELLATION_OF_FOURTH = 4.0
# Squares of larger numbers overflow once they are summed; fourth powers earlier.
LARGEST, LARGEST_FOR_FOURTH = 1e150, 1e75
# Compiled kernels are worth importing from this many numbers on; up to this many
# features they beat BLAS.
COMPILED_FEATURES = 48
COMPILED_SIZE = 2**20
# NumPy's product with its own transpose is faster up to here than SYRK alone.
MATMUL_FEATURES = 256


def accumulate(
    rows: Block,
    classes: NDArray[Any],
    fourth: bool,
    structure: Structure,
    block_rows: int | None,
) -> Statistics:
    """Statistics of the rows of each class; rows of weight 0 are skipped."""
    if rows.weight is not None and not rows.weight.all():
        rows = rows.taken(np.flatnonzero(rows.weight))
    compiled = rows.X.shape[1] <= COMPILED_FEATURES and rows.X.size >= COMPILED_SIZE
    # Overflow and NaN are found in the result; see `check_values`.
    with np.errstate(over="ignore", invalid="ignore"):
        if compiled and structure == "full":
            return _accumulate_in_order(rows, classes, fourth, block_rows)
        return _accumulate_by_class(rows, classes, fourth, structure, block_rows)


def check_values(X: NDArray[Any], statistics: Statistics) -> None:
    """Raise for the first column that is not finite or too large to square.

    Such a value shows in the statistics of the rows, so a pass over the rows is
    spent only when these look wrong.
    """
    largest = LARGEST if statistics.fourth is None else LARGEST_FOR_FOURTH
    limit = largest / 1e5
    if (np.abs(statistics.mean) < limit).all() and (
        statistics.variation < limit**2
    ).all():
        return
    size = 2**17 // X.shape[1] + 1
    for start in range(0, len(X), size):
        block = X[start : start + size].astype(np.float64)
        finite = np.isfinite(block)
        if not finite.all():
            column = int(np.flatnonzero(~finite.all(axis=0))[0])
            row = int(np.flatnonzero(~finite[:, column])[0])
            what = "NaN" if np.isnan(block[row, column]) else "infinity"
            raise ValueError(
                f"Input X contains {what}: column {column}, first at row "
                f"{start + row}. Impute it or drop the row."
            )
        large = (np.abs(block) > largest).any(axis=0)
        if large.any():
            raise ValueError(
                f"column {int(np.flatnonzero(large)[0])} of X holds values beyond "
                f"{largest:g}, whose powers overflow: rescale it."
            )


def _accumulate_by_class(
    rows: Block,
    classes: NDArray[Any],
    fourth: bool,
    structure: Structure,
    block_rows: int | None,
) -> Statistics:
    """The reference kernel, NumPy alone: sums class by class."""
    n_features = rows.X.shape[1]
    # Rows of a class between two merges, and rows that fit the cache together.
    size = block_rows or max(2**22 // n_features, 16 * n_features)
    cached = min(size, max(256, 2**17 // n_features, 2 * n_features))
    buffer = np.empty((min(cached, len(rows)), n_features))
    total = None
    of_class = _rows_by_class(rows.codes, len(classes))
    counts = np.array([len(own) for own in of_class])
    for begin in range(0, counts.max(initial=0), size):
        live = np.flatnonzero(counts > begin)
        parts = [of_class[k][begin : begin + size] for k in live]
        sums_about = partial(
            _class_sums,
            rows,
            parts,
            buffer,
            fourth=fourth,
            diagonal=structure == "diagonal",
        )
        count = np.array([len(part) for part in parts])
        W = count.astype(np.float64)
        if rows.weight is not None:
            W = np.array([rows.weight[part].sum() for part in parts])
        origin = rows.X[[part[0] for part in parts]].astype(np.float64)
        if n_features > MATMUL_FEATURES:
            # A pass for the means is cheap next to sums of squares taken twice.
            origin += _mean_gaps(rows.X, parts, origin, buffer)
        found = _centred(classes[live], count, W, origin, sums_about)
        if total is None:
            total = found.spread(classes)
        else:
            write(total.arrays(), live, merge(total.take(live), found).arrays())
    return zeros(classes, n_features, structure, fourth) if total is None else total


def _rows_by_class(codes: IntArray, n_classes: int) -> list[IntArray]:
    """Numbers of the rows of each class."""
    narrow = np.int16 if n_classes < 2**15 else np.intp  # a sort of int16 is radix
    order = np.argsort(codes.astype(narrow, copy=False), kind="stable")
    return np.split(order, np.cumsum(np.bincount(codes, minlength=n_classes))[:-1])


def _class_sums(
    rows: Block,
    parts: list[IntArray],
    buffer: FloatArray,
    origins: FloatArray,
    *,
    fourth: bool,
    diagonal: bool,
) -> Sums:
    """Sums of each class over its rows, gathered block by block."""
    n_classes, n_features = origins.shape
    s1, s3 = np.zeros((2, n_classes, n_features))
    s2 = np.zeros(s1.shape if diagonal else (*s1.shape, n_features))
    s4 = np.zeros(n_classes)
    ones = np.ones(len(buffer))
    X, weight = rows.X, rows.weight
    for k, part in enumerate(parts):
        for begin in range(0, len(part), len(buffer)):
            block = part[begin : begin + len(buffer)]
            B = _gather(X, block, origins[k], buffer[: len(block)])
            w = ones[: len(B)] if weight is None else weight[block]
            s1[k] += w @ B
            if diagonal:
                s2[k] += w @ (B * B)
                continue
            if weight is None:
                _add_product(s2[k], B)
            else:  # of any sign
                s2[k] += (B * w[:, None]).T @ B
            if fourth:
                q = np.einsum("ij,ij->i", B, B)
                s3[k] += (w * q) @ B
                s4[k] += (w * q) @ q
    if not diagonal and (weight is not None or n_features > MATMUL_FEATURES):
        _mirror(s2)
    return Sums(s1, s2, s3, s4) if fourth else Sums(s1, s2)


def _mean_gaps(
    X: NDArray[Any],
    parts: list[IntArray],
    origins: FloatArray,
    buffer: FloatArray,
) -> FloatArray:
    """Mean of each class less its origin: exactly 0 where a column is constant."""
    gaps = np.zeros_like(origins)
    for k, part in enumerate(parts):
        for begin in range(0, len(part), len(buffer)):
            block = part[begin : begin + len(buffer)]
            gaps[k] += _gather(X, block, origins[k], buffer[: len(block)]).sum(axis=0)
        gaps[k] /= len(part)
    return gaps


def _gather(
    X: NDArray[Any], rows: IntArray, origin: FloatArray, out: FloatArray
) -> FloatArray:
    """Rows about the origin."""
    if X.dtype != np.float64 or not X.flags.c_contiguous:
        return np.subtract(X[rows], origin, out=out)
    np.take(X, rows, axis=0, out=out, mode="clip")  # without a temporary array
    out -= origin
    return out


def _add_product(S: FloatArray, B: FloatArray) -> None:
    """Add B'B; of many features the lower triangle only."""
    if len(S) <= MATMUL_FEATURES:
        S += B.T @ B  # NumPy hands the product with its own transpose to SYRK
    else:
        # SYRK itself neither copies the triangle nor leaves the sum to NumPy. BLAS
        # counts columns where NumPy counts rows, so its upper triangle is the lower.
        dsyrk(1.0, B.T, beta=1.0, c=S.T, overwrite_c=1)


def _mirror(S: FloatArray) -> None:
    """Copy the lower triangles to the upper ones, band by band."""
    for first in range(0, S.shape[-1], 64):
        band = slice(first, first + 64)
        S[:, band, first + 64 :] = S[:, first + 64 :, band].swapaxes(1, 2)
        corner = S[:, band, band]
        corner[:] = np.tril(corner) + np.tril(corner, -1).swapaxes(1, 2)


def _centred(
    classes: NDArray[Any],
    count: NDArray[np.int64],
    W: FloatArray,
    origin: FloatArray,
    sums_about: Callable[[FloatArray], Sums],
) -> Statistics:
    """Central statistics from sums about a row of each class, or else its mean."""
    found, lost = _about_mean(classes, count, W, origin, sums_about(origin))
    if lost:
        found, _ = _about_mean(classes, count, W, found.mean, sums_about(found.mean))
    return found


def _about_mean(
    classes: NDArray[Any],
    count: NDArray[np.int64],
    W: FloatArray,
    origin: FloatArray,
    sums: Sums,
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
    third, fourth = (None, None) if sums.s3 is None else _powers_about_mean(W, r, sums)
    add_spread(sums.s2, r, -W)  # in place: nothing needs the sums any more
    mean, mean_lo = two_sum(origin, r)
    statistics = Statistics(
        classes, count, W, mean, mean_lo, sums.s2, third=third, fourth=fourth
    )
    lost = (shift > CANCELLATION * statistics.variation).any()
    if sums.s3 is not None:
        total = shift.sum(axis=1)
        lost |= (total > CANCELLATION_OF_FOURTH * statistics.trace).any()
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
    rows: Block, classes: NDArray[Any], fourth: bool, block_rows: int | None
) -> Statistics:
    """The compiled kernel: rows in the order they lie, neither sorted nor gathered."""
    n_features = rows.X.shape[1]
    size = block_rows or 2**20 // n_features
    total = zeros(classes, n_features, "full", fourth)
    for start in range(0, len(rows), size):
        found = _block_in_order(rows.taken(slice(start, start + size)), classes, fourth)
        total = merge(total, found)
    return total


def _block_in_order(block: Block, classes: NDArray[Any], fourth: bool) -> Statistics:
    """Statistics of the rows of all classes of one block."""
    from prudent.core.kernels import class_sums, first_rows

    X = np.ascontiguousarray(block.X, dtype=np.float64)
    n_classes, n_features = len(classes), X.shape[1]
    padded = -(-n_features // 4) * 4
    weights = np.empty(0) if block.weight is None else block.weight

    def sums_about(origin: FloatArray) -> Sums:
        s1, s3 = np.zeros((2, n_classes, padded))
        s2 = np.zeros((n_classes, padded, padded))
        s4 = np.zeros(n_classes if fourth else 0)
        class_sums(X, block.codes, weights, origin, s1, s2, s3, s4)
        _mirror(s2)
        products = np.ascontiguousarray(s2[:, :n_features, :n_features])
        if not fourth:
            return Sums(s1[:, :n_features], products)
        return Sums(s1[:, :n_features], products, s3[:, :n_features], s4)

    origin, count = first_rows(X, block.codes, n_classes)
    W = np.bincount(block.codes, block.weight, n_classes).astype(np.float64)
    return _centred(classes, count, W, origin, sums_about)
