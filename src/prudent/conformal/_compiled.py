"""Compiled loops: scores of all training rows for each new row and label.

Rows are sorted by class and taken in tiles that fit the nearest cache, so that inner
loops run over rows without branches and fill the vector registers (`logarithms` does
where it does not write what it reads). Import lazily: numba loads in half a second.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from prudent.core.kernels import exponentials, logarithms

POSTERIOR, MARGIN, DENSITY = 0, 1, 2
# A row whose deletion leaves less of a determinant counts as infinitely strange, which
# can only enlarge p-values.
SINGULAR = 1e-12
TILE = 1024
# Up to here nine terms of the series of log(1 - z) are exact to rounding.
SMALL = 2.0**-6
# Columns whose factors are multiplied before one logarithm is taken.
TOGETHER = 8


loop = njit(cache=True, error_model="numpy", fastmath={"contract"})
# Steps of one loop each: compiled within it, not before it and again within it.
step = njit(error_model="numpy", fastmath={"contract"}, inline="always")


@step
def _fill(out: Any, value: float) -> None:  # pragma: no cover
    """Set all entries; assignments to slices take seconds to compile."""
    for i in range(len(out)):
        out[i] = value


@loop
def add_city_block(rows: Any, columns: Any, out: Any) -> None:  # pragma: no cover
    """Add |x_j - z_j| for each row x (m, d) and column of z (d, n), j by j."""
    for i in range(len(rows)):
        own = out[i]
        for j in range(len(columns)):
            x, others = rows[i, j], columns[j]
            for l in range(len(own)):
                own[l] += abs(x - others[l])


@loop
def linear_counts(
    new: Any,
    starts: Any,
    tables: Any,
    student: Any,
    metric: Any,
    score: int,
    by_class: bool,
    ranked: Any,
    larger: Any,
    equal: Any,
) -> None:  # pragma: no cover
    """Add rows stranger than each new row, scores by inner products (3.1)-(3.4).

    `metric`: s, beta, d g if all columns have one variance g (else 0), and the factor
    of the log determinant, 1/2 or then d/2.
    """
    n_classes, n_new, n = new[0].shape
    logs, rows = np.empty((n_classes, TILE)), np.empty((6, TILE))
    for c in range(n_classes):
        first, last = (starts[c], starts[c + 1]) if by_class else (0, n)
        for t in range(first, last, TILE):
            size = min(TILE, last - t)
            for j in range(n_new):
                for k in range(n_classes):
                    place, joint = (c, j, k, t, size), logs[k]
                    _linear_joint(
                        place, new, starts, tables, student, metric, score, rows, joint
                    )
                _tally(c, j, t, size, starts, logs, rows, score, ranked, larger, equal)


@step
def _linear_joint(
    place: Any,
    new: Any,
    starts: Any,
    tables: Any,
    student: Any,
    metric: Any,
    score: int,
    rows: Any,
    out: Any,
) -> None:  # pragma: no cover
    """Log joint of class k for a tile of rows, each deleted from its class."""
    c, j, k, t, size = place
    products, shifts, gaps = new
    squares, across, between, own, mixed = tables
    constants, halves, ratios = student
    share, pooled, variance, power = metric
    most, z, second, base, half = rows[0], rows[1], rows[2], rows[3], rows[4]
    if k == 0:
        _fill(most[:size], 0.0)
    total = starts[c + 1] - starts[c] + 1.0  # rows of c in the bag
    p, gap = (total - 1) / total * (pooled + share * (k == c)), gaps[k, j, c]
    grown = 0.0 if variance > 0 else 0.5 * np.log1p(p * gap)
    for l in range(len(starts) - 1):
        s, e = max(starts[l], t), min(starts[l + 1], t + size)
        if s >= e:
            continue
        tile = slice(s - t, e - t)
        left = starts[l + 1] - starts[l] + (1.0 if l == c else 0.0)
        if left < 2:  # deletion empties the class
            _fill(most[tile], 1.0)
        if left < 2 or (score == DENSITY and k != l):
            _fill(z[tile], 0.0)
            _fill(second[tile], 1.0)
            continue
        change, a = 1 + (k == c) - (k == l), left / (left - 1)
        _fill(base[tile], constants[k, change] - grown)
        _fill(half[tile], halves[k, change])
        _one_class(
            products[k, j, s:e],
            across[k, c, s:e],
            squares[k, s:e],
            own[k, s:e],
            mixed[k, s:e],
            (
                shifts[k, j, l] + between[k, l, c],
                gap,
                (k == c) / total,
                (l == c) / total,
            ),
            (p, a * (pooled + share * (k == l)), a * a * (k == l)),
            ratios[k, change],
            variance,
            most[tile],
            z[tile],
            second[tile],
        )
    _join(z[:size], second[:size], base, half, power, rows[5], out)


@step
def _one_class(
    products: Any,
    across: Any,
    squares: Any,
    own: Any,
    mixed: Any,
    moves: Any,
    weights: Any,
    ratio: float,
    variance: float,
    most: Any,
    out_z: Any,
    out_second: Any,
) -> None:  # pragma: no cover
    """Write z = 1 - w and 1 + r Q of one class; one variance: w = g'/g, Q/(d g')."""
    shift, gap, moved_f, moved_e = moves
    p, q, own_factor = weights
    kept, scale, offset, turned = p / (1 + p * gap), 1.0, 0.0, 1.0
    if variance > 0:
        kept, scale, offset, turned = 0.0, 1 / variance, p * gap / variance, 0.0
    ratio *= scale
    if own_factor > 0:
        ratio *= own_factor
        for i in range(len(squares)):
            u = products[i] + across[i] + shift
            ed = u - moved_e * gap
            ee = own[i] - moved_e * (u + ed) - kept * ed * ed
            z = out_z[i] = scale * q * ee - offset
            most[i] = max(most[i], z)
            out_second[i] = 1.0 + ratio * max(ee, 0.0) / max(1.0 - z, SINGULAR)
        return
    for i in range(len(squares)):
        h = products[i] + across[i]
        u = h + shift
        fd = h - moved_f * gap
        ed = u - moved_e * gap
        ff = squares[i] - moved_f * (h + fd) - kept * fd * fd
        ee = own[i] - moved_e * (u + ed) - kept * ed * ed
        fe = mixed[i] - moved_f * u - moved_e * fd - kept * fd * ed
        z = out_z[i] = scale * q * ee - offset
        most[i] = max(most[i], z)
        distance = max(ff + turned * (q * fe * fe - z * ff), 0.0)
        out_second[i] = 1.0 + ratio * distance / max(1.0 - z, SINGULAR)


@step
def _join(
    z: Any, second: Any, base: Any, half: Any, power: float, spare: Any, out: Any
) -> None:  # pragma: no cover
    """Log joint: base - power log(1 - z) - half log(second)."""
    size = len(z)
    logarithms(second, out[:size])
    large = 0
    for i in range(size):
        large += (z[i] > SMALL) | (z[i] < -SMALL)
    if large == 0:
        for i in range(size):
            x = z[i]
            series = 1 / 6 + x * (1 / 7 + x * (1 / 8 + x * (1 / 9)))
            series = 1 / 3 + x * (1 / 4 + x * (1 / 5 + x * series))
            series = x * (1 + x * (0.5 + x * series))
            out[i] = base[i] + power * series - half[i] * out[i]
        return
    for i in range(size):
        second[i] = max(1.0 - z[i], SINGULAR)
    logarithms(second, spare[:size])
    for i in range(size):
        out[i] = base[i] - power * spare[i] - half[i] * out[i]


@loop
def diagonal_counts(
    columns: Any,
    new: Any,
    starts: Any,
    moments: Any,
    student: Any,
    pooled: float,
    score: int,
    by_class: bool,
    ranked: Any,
    larger: Any,
    equal: Any,
) -> None:  # pragma: no cover
    """Add rows stranger than each new row, one variance a class and column."""
    n_classes, n = len(starts) - 1, columns.shape[1]
    logs, rows = np.empty((n_classes, TILE)), np.empty((6, TILE))
    for c in range(n_classes):
        first, last = (starts[c], starts[c + 1]) if by_class else (0, n)
        for t in range(first, last, TILE):
            size = min(TILE, last - t)
            for j in range(len(new)):
                for k in range(n_classes):
                    place, row, joint = (c, k, t, size), new[j], logs[k]
                    _diagonal_joint(
                        place,
                        columns,
                        row,
                        starts,
                        moments,
                        student,
                        pooled,
                        rows,
                        joint,
                    )
                _tally(c, j, t, size, starts, logs, rows, score, ranked, larger, equal)


@step
def _diagonal_joint(
    place: Any,
    columns: Any,
    new: Any,
    starts: Any,
    moments: Any,
    student: Any,
    pooled: float,
    rows: Any,
    out: Any,
) -> None:  # pragma: no cover
    """Log joint of class k for a tile of rows, each deleted from its class."""
    c, k, t, size = place
    means, variances = moments
    constants, halves, ratios = student
    most, first, second, spare = rows[0], rows[1], rows[2], rows[3]
    if k == 0:
        _fill(most[:size], 0.0)
    total = starts[c + 1] - starts[c] + 1.0
    p = (total - 1) / total * (pooled + (k == c))
    for l in range(len(starts) - 1):
        s, e = max(starts[l], t), min(starts[l + 1], t + size)
        if s >= e:
            continue
        tile = slice(s - t, e - t)
        left = starts[l + 1] - starts[l] + (1.0 if l == c else 0.0)
        if left < 2:
            _fill(most[tile], 1.0)
            continue
        change, a = 1 + (k == c) - (k == l), left / (left - 1)
        _fill(out[tile], constants[k, change])
        _fill(first[tile], 1.0)
        _fill(second[tile], 1.0)
        for column in range(len(columns)):
            delta = new[column] - means[c, column]
            _multiply(
                columns[column, s:e],
                means[k, column] + delta * (k == c) / total,
                means[l, column] + delta * (l == c) / total,
                1.0 / variances[k, column],
                (p * delta * delta, a * (pooled + (k == l)), a if k == l else 1.0),
                ratios[k, change],
                most[tile],
                first[tile],
                second[tile],
            )
            if (column + 1) % TOGETHER == 0 or column + 1 == len(columns):
                half = halves[k, change]
                _add(first[tile], second[tile], half, spare[tile], out[tile])


@step
def _multiply(
    column: Any,
    mean: float,
    own_mean: float,
    scale: float,
    weights: Any,
    ratio: float,
    most: Any,
    out_first: Any,
    out_second: Any,
) -> None:  # pragma: no cover
    """Multiply by g'/g and (g' + r f^2)/g of one column."""
    gained, q, a = weights
    for i in range(len(column)):
        e = column[i] - own_mean
        f = a * (column[i] - mean)
        g = 1.0 + (gained - q * e * e) * scale
        most[i] = max(most[i], 1.0 - g)
        g = max(g, SINGULAR)
        out_first[i] *= g
        out_second[i] *= g + ratio * f * f * scale


@step
def _add(
    first: Any, second: Any, half: float, spare: Any, out: Any
) -> None:  # pragma: no cover
    """Add (half - 1/2) log(first) - half log(second), and begin both products anew."""
    logarithms(first, spare)
    logarithms(second, first)
    for i in range(len(out)):
        out[i] += (half - 0.5) * spare[i] - half * first[i]
    _fill(first, 1.0)
    _fill(second, 1.0)


@step
def _tally(
    c: int,
    j: int,
    t: int,
    size: int,
    starts: Any,
    logs: Any,
    rows: Any,
    score: int,
    ranked: Any,
    larger: Any,
    equal: Any,
) -> None:  # pragma: no cover
    """Count the rows of a tile that are stranger than a new row, and as strange."""
    category, wanted, asked, own_second, other_second = ranked
    scores = rows[1]
    _score(t, size, starts, logs, rows, score)
    if len(own_second):
        _damp(scores[:size], rows[2, :size], rows[3, :size])
        for i in range(size):
            is_own = starts[c] <= t + i < starts[c + 1]
            scores[i] += own_second[j, t + i] if is_own else other_second[j, t + i]
    margin = 1e-9 * (1.0 + abs(asked[j, c]))
    above, level = asked[j, c] + margin, asked[j, c] - margin
    kinds, kind, more, not_below = category[t : t + size], wanted[j, c], 0, 0
    for i in range(size):
        counts = kinds[i] == kind
        more += counts & (scores[i] > above)
        not_below += counts & (scores[i] >= level)
    larger[j, c] += more
    equal[j, c] += not_below - more


@step
def _damp(scores: Any, sizes: Any, logs: Any) -> None:  # pragma: no cover
    """Damp scores in place: sign times log(1 + size); infinite ones stay."""
    for i in range(len(scores)):
        sizes[i] = 1.0 + min(abs(scores[i]), 1e300)
    logarithms(sizes, logs)
    for i in range(len(scores)):
        if np.isfinite(scores[i]):
            scores[i] = np.copysign(logs[i], scores[i])


@step
def _score(
    t: int, size: int, starts: Any, logs: Any, rows: Any, score: int
) -> None:  # pragma: no cover
    """Nonconformity of the rows of a tile from their log joints."""
    n_classes = len(logs)
    most, out, own, peak, total = rows[0], rows[1], rows[2], rows[3], rows[4]
    for l in range(n_classes):  # the joint of its own class is set aside
        s, e = max(starts[l] - t, 0), min(starts[l + 1] - t, size)
        if s < e:
            joint, other = logs[l, s:e], logs[1 - l if n_classes == 2 else l, s:e]
            own_part, peak_part = own[s:e], peak[s:e]
            for i in range(e - s):
                own_part[i], peak_part[i] = joint[i], other[i]
            if n_classes > 2:
                _fill(logs[l, s:e], -np.inf)
    if score == DENSITY:
        _fill(peak[:size], 0.0)
    elif n_classes > 2:
        _fill(peak[:size], -np.inf)
        for k in range(n_classes):
            joint = logs[k]
            for i in range(size):
                peak[i] = max(peak[i], joint[i])
    for i in range(size):
        out[i] = peak[i] - own[i]
    if score == POSTERIOR and n_classes > 2:
        _fill(total[:size], 0.0)
        for k in range(n_classes):
            joint = logs[k]
            for i in range(size):
                joint[i] -= peak[i]
            exponentials(joint[:size])
            for i in range(size):
                total[i] += joint[i]
        logarithms(total[:size], peak[:size])
        for i in range(size):
            out[i] += peak[i]
    for i in range(size):
        out[i] = out[i] if most[i] < 1.0 - SINGULAR else np.inf
