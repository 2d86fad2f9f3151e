"""Additive statistics of classes: merge and remove without losing digits, and store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from io import BytesIO
from typing import Any, Self
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from prudent.core.types import FloatArray

FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True, eq=False)
class Statistics:
    """The fields of `ClassMoments` without its labels; rows are classes."""

    count: NDArray[np.int64]
    weight: FloatArray
    mean: FloatArray
    mean_lo: FloatArray
    scatter: FloatArray
    third: Any = None
    fourth: Any = None

    @classmethod
    def empty(
        cls, n_classes: int, n_features: int, *, fourth: bool, diagonal: bool
    ) -> Self:
        """Statistics of no rows: the neutral element of `merge`."""
        shape = (n_classes, n_features)
        return cls(
            np.zeros(n_classes, dtype=np.int64),
            np.zeros(n_classes),
            np.zeros(shape),
            np.zeros(shape),
            np.zeros(shape if diagonal else (*shape, n_features)),
            np.zeros(shape) if fourth else None,
            np.zeros(n_classes) if fourth else None,
        )

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

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The fields that are kept, by name."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if value is not None}

    def map(self, function: Callable[[NDArray[Any]], NDArray[Any]]) -> Self:
        """Statistics with a function applied to every field that is kept."""
        return type(self)(
            **{name: function(value) for name, value in self.arrays().items()}
        )

    def take(self, classes: Any) -> Self:
        """Statistics of the classes of an index array or mask."""
        return self.map(lambda values: values[classes])

    def spread(self, rows: NDArray[np.intp], n_classes: int) -> Statistics:
        """Statistics of more classes; these take the given rows, the rest is empty."""
        wide = Statistics.empty(
            n_classes,
            self.mean.shape[1],
            fourth=self.fourth is not None,
            diagonal=self.scatter.ndim == 2,
        )
        wide.put(rows, self)
        return wide

    def put(self, classes: Any, source: Statistics) -> None:
        """Write statistics bit for bit to the classes of an index array or mask."""
        arrays = self.arrays()
        for name, values in source.arrays().items():
            arrays[name][classes] = values


def two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """Sum and its rounding error: s + e = a + b exactly (Knuth 1969)."""
    s = a + b
    z = s - a
    return s, (a - (s - z)) + (b - z)


def merge(a: Statistics, b: Statistics) -> Statistics:
    """Statistics of the rows of both parts, class by class.

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
    coefficient = (a.weight * b.weight) / total
    scatter = a.scatter + b.scatter
    add_spread(scatter, gap, coefficient)
    third = fourth = None
    if a.third is not None:
        third_a, fourth_a = _about(a, -share_b * gap)
        third_b, fourth_b = _about(b, share_a * gap)
        third, fourth = third_a + third_b, fourth_a + fourth_b
    both = Statistics(a.count + b.count, weight, mean, mean_lo, scatter, third, fourth)
    for kept, absent in ((a, b.weight == 0), (b, a.weight == 0)):
        if absent.any():
            both.put(absent, kept.take(absent))
    return both


def remove(total: Statistics, part: Statistics) -> Statistics:
    """Statistics of what is left of `total` without the rows of `part`.

    The reverse of `merge`; the relative error of the scatter is about
    eps * trace(total) / trace(left).
    """
    weight = total.weight - part.weight
    rest = np.where(weight == 0, 1.0, weight)
    gap = (part.mean - total.mean) + (part.mean_lo - total.mean_lo)
    shift = gap * (-part.weight / rest)[:, None]
    mean, mean_lo = two_sum(total.mean, total.mean_lo + shift)
    coefficient = (total.weight * part.weight) / rest
    scatter = total.scatter - part.scatter
    add_spread(scatter, gap, -coefficient)
    left = Statistics(total.count - part.count, weight, mean, mean_lo, scatter)
    if total.third is not None:
        left = _remove_higher(left, total, part, gap, shift)
    gone = weight == 0
    left.put(gone, left.take(gone).map(np.zeros_like))
    untouched = part.weight == 0
    left.put(untouched, total.take(untouched))
    return left


def _remove_higher(
    left: Statistics,
    total: Statistics,
    part: Statistics,
    gap: FloatArray,
    shift: FloatArray,
) -> Statistics:
    """`left` with third and fourth: what `total` holds beyond `part`, moved back.

    `gap` and `shift` lead from the mean of the total to those of part and rest.
    """
    third_part, fourth_part = _about(part, gap)
    bare = replace(left, third=np.zeros_like(gap), fourth=np.zeros_like(left.weight))
    third = total.third - third_part - _about(bare, shift)[0]
    moved = _about(replace(bare, third=third), shift)[1]
    return replace(left, third=third, fourth=total.fourth - fourth_part - moved)


def _precedes(a: Statistics, b: Statistics) -> NDArray[np.bool_]:
    """Whether the merged mean starts from a: heavier, then smaller; (K, d)."""
    smaller = (a.mean < b.mean) | ((a.mean == b.mean) & (a.mean_lo <= b.mean_lo))
    return (a.weight > b.weight)[:, None] | ((a.weight == b.weight)[:, None] & smaller)


def add_spread(scatter: FloatArray, gap: FloatArray, coefficient: FloatArray) -> None:
    """Add coefficient D D', symmetric bit for bit, in place; or its diagonal."""
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
    """Third and fourth of a part about a point: its mean lies s away from it."""
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


def pack(classes: NDArray[Any], statistics: Statistics) -> bytes:
    """Labels and statistics as the bytes of an npz file."""
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


def unpack(data: bytes) -> tuple[NDArray[Any], Statistics]:
    """Labels and statistics from the bytes that `pack` wrote."""
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
            classes = file["classes"]
            if file["text_objects"]:
                classes = classes.astype(object)
            statistics = Statistics(
                **{field.name: file.get(field.name) for field in fields(Statistics)}
            )
    except (BadZipFile, EOFError, KeyError, OSError) as error:
        raise ValueError(
            f"the bytes are not class moments written by `to_bytes`: {error}."
        ) from error
    return classes, statistics
