"""Merge and split the additive statistics of classes without losing digits."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Statistics", "empty_statistics", "merge", "remove", "two_sum"]

FloatArray = NDArray[np.float64]


class Statistics(NamedTuple):
    """The fields of `ClassMoments` without its labels; rows are classes."""

    count: NDArray[np.int64]
    weight: FloatArray
    mean: FloatArray
    mean_lo: FloatArray
    scatter: FloatArray
    third: FloatArray | None
    fourth: FloatArray | None


def empty_statistics(
    n_classes: int, n_features: int, *, fourth: bool = False, diagonal: bool = False
) -> Statistics:
    """Statistics of no rows: the neutral element of `merge`."""
    shape = (n_classes, n_features)
    return Statistics(
        np.zeros(n_classes, dtype=np.int64),
        np.zeros(n_classes),
        np.zeros(shape),
        np.zeros(shape),
        np.zeros(shape if diagonal else (*shape, n_features)),
        np.zeros(shape) if fourth else None,
        np.zeros(n_classes) if fourth else None,
    )


def two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """Sum and its rounding error: s + e = a + b exactly (Knuth 1969)."""
    s = a + b
    z = s - a
    return s, (a - (s - z)) + (b - z)


def merge(a: Statistics, b: Statistics) -> Statistics:
    """Statistics of the rows of both parts, class by class.

    Bit for bit commutative; a part of weight 0 leaves the other one unchanged.

    Notes
    -----
    With w = wa + wb and D = mean_b - mean_a (as pairs), the scatter is
    S_a + S_b + (wa wb / w) D D' (Chan, Golub and LeVeque 1983). The mean is kept
    as an unevaluated pair: in one float64 the difference of two block means
    would carry an error of one ulp of the mean.
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
    scatter = (a.scatter + b.scatter) + _spread(gap, coefficient, a.scatter.ndim)
    third = fourth = None
    if a.third is not None:
        third_a, fourth_a = _about(a, -share_b * gap)
        third_b, fourth_b = _about(b, share_a * gap)
        third, fourth = third_a + third_b, fourth_a + fourth_b
    both = Statistics(a.count + b.count, weight, mean, mean_lo, scatter, third, fourth)
    return _keep(b, a.weight == 0, _keep(a, b.weight == 0, both))


def remove(total: Statistics, part: Statistics) -> Statistics:
    """Statistics of what is left of `total` without the rows of `part`.

    The reverse of `merge`; the relative error of the scatter is about
    eps * trace(total) / trace(left).
    """
    weight = total.weight - part.weight
    left = np.where(weight == 0, 1.0, weight)
    gap = (part.mean - total.mean) + (part.mean_lo - total.mean_lo)
    shift = gap * (-part.weight / left)[:, None]
    mean, mean_lo = two_sum(total.mean, total.mean_lo + shift)
    coefficient = (total.weight * part.weight) / left
    scatter = (total.scatter - part.scatter) - _spread(
        gap, coefficient, total.scatter.ndim
    )
    rest = Statistics(
        total.count - part.count, weight, mean, mean_lo, scatter, None, None
    )
    if total.third is not None and total.fourth is not None:
        third_part, fourth_part = _about(part, gap)
        zero = np.zeros_like(weight)
        rest = rest._replace(third=total.third - third_part, fourth=zero)
        moved, _ = _about(rest._replace(third=np.zeros_like(shift)), shift)
        rest = rest._replace(third=total.third - third_part - moved)
        _, moved_fourth = _about(rest, shift)
        rest = rest._replace(fourth=total.fourth - fourth_part - moved_fourth)
    nothing = empty_statistics(
        *mean.shape, fourth=total.third is not None, diagonal=scatter.ndim == 2
    )
    return _keep(total, part.weight == 0, _keep(nothing, weight == 0, rest))


def _precedes(a: Statistics, b: Statistics) -> NDArray[np.bool_]:
    """Whether the merged mean starts from a: heavier, then smaller; (K, d)."""
    smaller = (a.mean < b.mean) | ((a.mean == b.mean) & (a.mean_lo <= b.mean_lo))
    return (a.weight > b.weight)[:, None] | ((a.weight == b.weight)[:, None] & smaller)


def _spread(gap: FloatArray, coefficient: FloatArray, ndim: int) -> FloatArray:
    """Coefficient D D', symmetric bit for bit; its diagonal for ndim 2."""
    if ndim == 2:
        return coefficient[:, None] * (gap * gap)
    return coefficient[:, None, None] * (gap[:, :, None] * gap[:, None, :])


def _about(part: Statistics, s: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Third and fourth of a part about a point: its mean lies s away from it."""
    assert part.third is not None and part.fourth is not None
    trace = np.trace(part.scatter, axis1=1, axis2=2)
    u = np.matmul(part.scatter, s[:, :, None])[:, :, 0]
    q = (s * s).sum(axis=1)
    third = part.third + 2 * u + (trace + part.weight * q)[:, None] * s
    fourth = (
        part.fourth
        + 4 * (part.third * s).sum(axis=1)
        + 2 * trace * q
        + 4 * (s * u).sum(axis=1)
        + part.weight * q * q
    )
    return third, fourth


def _keep(
    source: Statistics, rows: NDArray[np.bool_], target: Statistics
) -> Statistics:
    """`target` with the given classes taken from `source` bit for bit."""
    if not rows.any():
        return target
    chosen = []
    for old, new in zip(source, target, strict=True):
        if new is not None:
            new = new.copy()
            new[rows] = old[rows]
        chosen.append(new)
    return Statistics(*chosen)
