"""Additive statistics of classes: merge and remove without losing digits, and store."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, fields, replace
from io import BytesIO
from typing import Any, Self, TypeVar
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from prudent.core.types import BoolArray, FloatArray
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
        """Statistics of the classes of an index array or mask."""
        chosen = {name: values[classes] for name, values in self.arrays().items()}
        return replace(self, classes=self.classes[classes], **chosen)

    def spread(self, classes: NDArray[Any]) -> Self:
        """Statistics of a larger set of labels, the others without rows."""
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
    """Statistics of no rows: the neutral element of `merge`."""
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

    The reverse of `merge`; the relative error of the scatter is about
    eps * trace(total) / trace(left), which is refused or warned of where it is large.
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


def pack(statistics: Statistics) -> bytes:
    """Statistics as the bytes of an npz file."""
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
    """The fields of the statistics that `pack` wrote, by name."""
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
            found = {field.name: file.get(field.name) for field in fields(Statistics)}
            if file["text_objects"]:
                found["classes"] = found["classes"].astype(object)
    except (BadZipFile, EOFError, KeyError, OSError) as error:
        raise ValueError(
            f"the bytes are not class moments written by `to_bytes`: {error}."
        ) from error
    return found
