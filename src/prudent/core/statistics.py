"""Additive statistics of classes: sum up in one pass, merge and remove, and store.

Merging and removing lose no digits; the pass over the rows goes block by block.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import partial
from io import BytesIO
from typing import Any, Self, TypeVar
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk

from prudent.core.rows import Block
from prudent.core.types import BoolArray, FloatArray, IntArray
from prudent.core.validation import Structure, shown
from prudent.exceptions import PrudentWarning

FORMAT_VERSION = 1
# Ratios of the scatter before a removal to what is left of it.
FEW_DIGITS, NO_DIGITS = 1e6, 1e12


@dataclass(frozen=True, slots=True, eq=False)
class Statistics:
    """The fields of `ClassMoments`, which adds what users ask of them.

    The functions below take and return any kind of it.
    """

    classes: NDArray[Any]
    count: NDArray[np.int64]
    weight: FloatArray
    mean: FloatArray
    mean_lo: FloatArray
    scatter: FloatArray
    third: Any = None
    fourth: Any = None
    weighted: Any = None

    @property
    def structure(self) -> Structure:
        """What the scatter holds: "full" matrices or their "diagonal"."""
        return "full" if self.scatter.ndim == 3 else "diagonal"

    @property
    def variation(self) -> FloatArray:
        """Sum w (x_j - m_j)^2 of each feature, (K, d): the diagonal of the scatter."""
        if self.scatter.ndim == 2:
            return self.scatter
        return np.diagonal(self.scatter, axis1=1, axis2=2)

    @property
    def trace(self) -> FloatArray:
        """Sum w ||x - m||^2, (K,)."""
        return self.variation.sum(axis=1)

    def arrays(self) -> dict[str, Any]:
        """The fields that are kept, less the labels, by name."""
        values = {field.name: getattr(self, field.name) for field in fields(self)[1:]}
        return {name: value for name, value in values.items() if value is not None}

    def take(self, classes: Any) -> Self:
        """The statistics of some classes, by positions or by a mask (K,)."""
        chosen = {name: values[classes] for name, values in self.arrays().items()}
        return replace(self, classes=self.classes[classes], **chosen)

    def spread(self, classes: NDArray[Any]) -> Self:
        """The same statistics among more labels, of which the others have no rows."""
        if len(classes) == len(self.classes):
            return self
        fourth = self.fourth is not None
        wide = zeros(classes, self.mean.shape[1], self.structure, fourth).arrays()
        write(wide, np.searchsorted(classes, self.classes), self.arrays())
        return replace(self, classes=classes, **wide)


S = TypeVar("S", bound=Statistics)


def zeros(
    classes: NDArray[Any], n_features: int, structure: Structure, fourth: bool
) -> Statistics:
    """Statistics of no rows, which change nothing that they are merged with.

    With `fourth` they have third and fourth moments.
    """
    shape = (len(classes), n_features)
    return Statistics(
        classes,
        np.zeros(len(classes), dtype=np.int64),
        np.zeros(len(classes)),
        np.zeros(shape),
        np.zeros(shape),
        np.zeros(shape if structure == "diagonal" else (*shape, n_features)),
        np.zeros(shape) if fourth else None,
        np.zeros(len(classes)) if fourth else None,
        np.zeros(len(classes), dtype=bool),
    )


def write(
    arrays: dict[str, NDArray[Any]], classes: Any, source: dict[str, NDArray[Any]]
) -> None:
    """Write other arrays bit for bit to the classes of an index array or mask."""
    for name, values in source.items():
        arrays[name][classes] = values


def two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """Sum and its rounding error: s + e = a + b exactly (Knuth 1969)."""
    s = a + b
    z = s - a
    return s, (a - (s - z)) + (b - z)


def check_alike(a: Statistics, b: Statistics) -> None:
    """Raise unless both parts keep the same fields of the same features."""
    for what, mine, theirs in (
        ("numbers of features", a.mean.shape[1], b.mean.shape[1]),
        ("structures", a.structure, b.structure),
        ("`fourth`", a.fourth is not None, b.fourth is not None),
    ):
        if mine != theirs:
            raise ValueError(
                f"the two moments have different {what}: {mine} and {theirs}."
            )


def merge(a: S, b: Statistics) -> S:
    """Statistics of the rows of both parts, class by class, the same in both.

    Bit for bit commutative; a part of weight 0 leaves the other one unchanged. With
    w = wa + wb and D = mean_b - mean_a (as pairs), the scatter is S_a + S_b +
    (wa wb / w) D D' (Chan, Golub and LeVeque 1983). The mean is kept as an unevaluated
    pair: in one float64 the difference of two block means would carry an error of one
    ulp of the mean.
    """
    weight = a.weight + b.weight
    if ((weight == 0) & (a.weight != 0)).any():
        raise ValueError(
            "the weights of a class cancel to a total of 0, so it has no mean: "
            "use RawMoments for statistics with signed weights."
        )
    total = np.where(weight == 0, 1.0, weight)
    share_a, share_b = (a.weight / total)[:, None], (b.weight / total)[:, None]
    gap = (b.mean - a.mean) + (b.mean_lo - a.mean_lo)
    # Adding 0.0 turns a negative zero into the positive one of the other order.
    base = _precedes(a, b)
    mean, mean_lo = two_sum(
        np.where(base, a.mean, b.mean),
        np.where(base, a.mean_lo, b.mean_lo)
        + (np.where(base, gap * share_b, -gap * share_a) + 0.0),
    )
    scatter = a.scatter + b.scatter
    add_spread(scatter, gap, (a.weight * b.weight) / total)
    both: dict[str, Any] = {
        "count": a.count + b.count,
        "weight": weight,
        "mean": mean,
        "mean_lo": mean_lo,
        "scatter": scatter,
        "weighted": a.weighted | b.weighted,
    }
    if a.third is not None:
        third_a, fourth_a = _about(a, -share_b * gap)
        third_b, fourth_b = _about(b, share_a * gap)
        both |= {"third": third_a + third_b, "fourth": fourth_a + fourth_b}
    for kept, absent in ((a, b.weight == 0), (b, a.weight == 0)):
        if absent.any():
            write(both, absent, kept.take(absent).arrays())
    return replace(a, **both)


def remove(total: S, part: Statistics) -> S:
    """Statistics of what is left of `total` without the rows of `part`.

    The reverse of `merge`. The relative error of the scatter is about eps *
    trace(total) / trace(left).

    Raises
    ------
    ValueError
        If less than 1e-12 of the scatter of a class is left, or the part was not in the
        total.

    Warns
    -----
    PrudentWarning
        If less than 1e-6 of the scatter is left.
    """
    weight = total.weight - part.weight
    rest = np.where(weight == 0, 1.0, weight)
    gap = (part.mean - total.mean) + (part.mean_lo - total.mean_lo)
    shift = gap * (-part.weight / rest)[:, None]
    mean, mean_lo = two_sum(total.mean, total.mean_lo + shift)
    scatter = total.scatter - part.scatter
    add_spread(scatter, gap, -(total.weight * part.weight) / rest)
    arrays: dict[str, Any] = {
        "count": total.count - part.count,
        "weight": weight,
        "mean": mean,
        "mean_lo": mean_lo,
        "scatter": scatter,
        "weighted": total.weighted.copy(),
    }
    if total.third is not None:
        # What `total` holds beyond `part`, moved back to the mean of the rest.
        third_part, fourth_part = _about(part, gap)
        bare = Statistics(
            total.classes,
            **arrays,
            third=np.zeros_like(gap),
            fourth=np.zeros_like(weight),
        )
        third = total.third - third_part - _about(bare, shift)[0]
        moved = _about(replace(bare, third=third), shift)[1]
        arrays |= {"third": third, "fourth": total.fourth - fourth_part - moved}
    gone, untouched = weight == 0, part.weight == 0
    for values in arrays.values():
        values[gone] = 0
    write(arrays, untouched, total.take(untouched).arrays())
    left = replace(total, **arrays)
    _check_removal(total, part, left)
    return left


def _check_removal(total: Statistics, part: Statistics, left: Statistics) -> None:
    """Refuse or warn where a removal left little of the scatter."""
    if (part.weight > total.weight).any():
        raise ValueError(
            f"cannot remove weights {part.weight.tolist()} from "
            f"{total.weight.tolist()}: the part was not in the total."
        )
    thin = (left.weight > 0) & ~(total.trace <= FEW_DIGITS * left.trace)
    lost = thin & ~(total.trace <= NO_DIGITS * left.trace)
    if lost.any():
        raise ValueError(
            f"removing the part from class {shown(total.classes[lost][0])} leaves less "
            "than 1e-12 of its scatter, and so no correct digits: accumulate the "
            "remaining rows instead."
        )
    if thin.any():
        warnings.warn(
            f"removing the part from class {shown(total.classes[thin][0])} leaves less "
            "than 1e-6 of its scatter, with few correct digits: accumulate the "
            "remaining rows instead.",
            PrudentWarning,
            stacklevel=4,
        )


def _precedes(a: Statistics, b: Statistics) -> BoolArray:
    """Whether the merged mean starts from a: heavier, then smaller; (K, d)."""
    smaller = (a.mean < b.mean) | ((a.mean == b.mean) & (a.mean_lo <= b.mean_lo))
    return (a.weight > b.weight)[:, None] | ((a.weight == b.weight)[:, None] & smaller)


def add_spread(scatter: FloatArray, gap: FloatArray, coefficient: FloatArray) -> None:
    """Add c D D' to the scatter of each class, in place; or its diagonal, to variances.

    `gap` D is (K, d), `coefficient` c is (K,). The sum is symmetric bit for bit.
    """
    if scatter.ndim == 2:
        scatter += coefficient[:, None] * (gap * gap)
        return
    # In parts that stay in the cache: whole matrices would travel to memory and back.
    n_features = gap.shape[1]
    classes, height = max(1, 2**15 // n_features**2), max(1, 2**15 // n_features)
    for first in range(0, len(gap), classes):
        part = slice(first, first + classes)
        D, share = gap[part, None, :], coefficient[part, None, None]
        for top in range(0, n_features, height):
            rows = slice(top, top + height)
            products = D.transpose(0, 2, 1)[:, rows] * D
            products *= share
            scatter[part, rows] += products


def _about(part: Statistics, s: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Third (K, d) and fourth (K,) moments of a part about another point.

    The mean of the part lies s (K, d) away from that point.
    """
    u = np.matmul(part.scatter, s[:, :, None])[:, :, 0]
    q = (s * s).sum(axis=1)
    third = part.third + 2 * u + (part.trace + part.weight * q)[:, None] * s
    fourth = (
        part.fourth
        + 4 * (part.third * s).sum(axis=1)
        + 2 * part.trace * q
        + 4 * (s * u).sum(axis=1)
        + part.weight * q * q
    )
    return third, fourth


def pack(statistics: Statistics) -> bytes:
    """Statistics as the bytes of an npz file, which `unpack` reads.

    Raises
    ------
    ValueError
        If labels are objects other than strings.
    """
    classes = statistics.classes
    text_objects = classes.dtype == object
    if text_objects and not all(isinstance(label, str) for label in classes):
        raise ValueError(
            "labels of dtype object can be stored only if all are strings, "
            f"got {classes.tolist()}."
        )
    file = BytesIO()
    np.savez(
        file,
        allow_pickle=False,
        version=np.array(FORMAT_VERSION),
        classes=classes.astype(str) if text_objects else classes,
        text_objects=np.array(text_objects),
        **statistics.arrays(),
    )
    return file.getvalue()


def unpack(data: bytes) -> dict[str, NDArray[Any]]:
    """The fields of the statistics that `pack` wrote, by name.

    Raises
    ------
    ValueError
        If the bytes are not such a file, or one of another format version.
    """
    try:
        if not data.startswith(b"PK"):  # NumPy would try to unpickle them
            raise BadZipFile("they are no zip file")
        with np.load(BytesIO(data), allow_pickle=False) as file:
            version = int(file["version"])
            if version != FORMAT_VERSION:
                raise ValueError(
                    f"these moments have format version {version}, this release "
                    f"reads version {FORMAT_VERSION}."
                )
            values = {field.name: file.get(field.name) for field in fields(Statistics)}
            if file["text_objects"]:
                values["classes"] = values["classes"].astype(object)
    except (BadZipFile, EOFError, KeyError, OSError) as error:
        raise ValueError(
            f"the bytes are not class moments written by `to_bytes`: {error}."
        ) from error
    return values


# --- one pass over the rows, block by block -------------------------------------------


#: Sums of w b, w b b', w |b|^2 b and w |b|^4 over rows b = x - origin; the last two
#: are None where fourth moments are not wanted.
Sums = tuple[FloatArray, FloatArray, Any, Any]


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
    """Statistics of the rows of each class, in one pass over them.

    Parameters
    ----------
    rows : Block
        Rows of weight 0 are skipped.
    classes : ndarray of shape (K,)
        Label of each code.
    fourth : bool
        Whether third and fourth moments are wanted too.
    structure : {"full", "diagonal"}
        Scatter matrices, or variances alone.
    block_rows : int or None
        Rows between two merges; None leaves it to the width of the table.

    Notes
    -----
    Sums are taken about the first row of each class, and again about the mean where
    that row lies so far off that digits cancel.
    """
    if rows.weight is not None and not rows.weight.all():
        rows = rows.taken(np.flatnonzero(rows.weight))
    compiled = rows.X.shape[1] <= COMPILED_FEATURES and rows.X.size >= COMPILED_SIZE
    # Overflow and NaN are found in the result; see `check_values`.
    with np.errstate(over="ignore", invalid="ignore"):
        if compiled and structure == "full":
            statistics = _accumulate_in_order(rows, classes, fourth, block_rows)
        else:
            statistics = _accumulate_by_class(
                rows, classes, fourth, structure, block_rows
            )
    if rows.weight is None:
        return statistics
    other_than_one = np.bincount(rows.codes[rows.weight != 1], minlength=len(classes))
    return replace(statistics, weighted=other_than_one > 0)


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
    rows_by_class = _rows_by_class(rows.codes, len(classes))
    counts = np.array([len(own) for own in rows_by_class])
    for begin in range(0, counts.max(initial=0), size):
        live = np.flatnonzero(counts > begin)
        parts = [rows_by_class[k][begin : begin + size] for k in live]
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
        statistics = _centred(classes[live], count, W, origin, sums_about)
        if total is None:
            total = statistics.spread(classes)
        else:
            merged = merge(total.take(live), statistics)
            write(total.arrays(), live, merged.arrays())
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
    return (s1, s2, s3, s4) if fourth else (s1, s2, None, None)


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
    """Some rows less the origin (d,), written to `out`."""
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
    central, lost = _about_mean(classes, count, W, origin, sums_about(origin))
    if lost:
        mean = central.mean
        central, _ = _about_mean(classes, count, W, mean, sums_about(mean))
    return central


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
    s1, s2, s3, _ = sums
    r = s1 / np.where(count == 0, 1.0, W)[:, None]
    shift = W[:, None] * (r * r)
    third, fourth = (None, None) if s3 is None else _powers_about_mean(W, r, sums)
    add_spread(s2, r, -W)  # in place: nothing needs the sums any more
    mean, mean_lo = two_sum(origin, r)
    plain = np.zeros(len(W), dtype=bool)  # `accumulate` knows better
    statistics = Statistics(classes, count, W, mean, mean_lo, s2, third, fourth, plain)
    lost = (shift > CANCELLATION * statistics.variation).any()
    if s3 is not None:
        total = shift.sum(axis=1)
        lost |= (total > CANCELLATION_OF_FOURTH * statistics.trace).any()
    return statistics, bool(lost)


def _powers_about_mean(
    W: FloatArray, r: FloatArray, sums: Sums
) -> tuple[FloatArray, FloatArray]:
    """Third and fourth about the mean, which lies r away from the origin."""
    _, s2, s3, s4 = sums
    rr = (r * r).sum(axis=1)
    trace = np.trace(s2, axis1=1, axis2=2)
    u = np.matmul(s2, r[:, :, None])[:, :, 0]
    third = s3 - 2 * u - (trace - 2 * W * rr)[:, None] * r
    fourth = (
        s4
        - 4 * (r * s3).sum(axis=1)
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
        block = rows.taken(slice(start, start + size))
        total = merge(total, _block_in_order(block, classes, fourth))
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
            return s1[:, :n_features], products, None, None
        return s1[:, :n_features], products, s3[:, :n_features], s4

    origin, count = first_rows(X, block.codes, n_classes)
    W = np.bincount(block.codes, block.weight, n_classes).astype(np.float64)
    return _centred(classes, count, W, origin, sums_about)
