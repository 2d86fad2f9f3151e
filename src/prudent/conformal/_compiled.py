"""Compiled loops: scores of all training rows for each new row and label.

Rows are sorted by class, so that the inner loops run over rows without branches.
Import it lazily: numba takes half a second to load.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from prudent.core.kernels import exponentials, logarithms

POSTERIOR, MARGIN, DENSITY = 0, 1, 2
# Removing a row whose share of the determinant is all but this leaves a singular
# matrix: the row counts as infinitely strange, which can only enlarge p-values.
SINGULAR = 1e-12
# Logarithms are taken of numbers >= 1: smaller ones are multiplied by this first.
LIFT = 2.0**300
LOG_LIFT = float(np.log(LIFT))
# Columns whose factors are multiplied before one logarithm is taken.
TOGETHER = 8


@njit(cache=True, error_model="numpy", fastmath={"contract"})
def linear_counts(
    products: Any,
    shifts: Any,
    gaps: Any,
    asked: Any,
    wanted: Any,
    starts: Any,
    category: Any,
    squares: Any,
    across: Any,
    between: Any,
    own: Any,
    mixed: Any,
    constants: Any,
    halves: Any,
    ratios: Any,
    share: float,
    pooled: float,
    spherical: float,
    first_factor: float,
    score: int,
    by_class: bool,
    own_second: Any,
    other_second: Any,
    larger: Any,
    equal: Any,
) -> None:  # pragma: no cover
    """Count rows stranger than each new row, scores by inner products (3.1)-(3.4).

    `spherical` is 0, or d g for one variance g of all d columns; `first_factor` is
    that of the first logarithm, 1/2 or -d/2.
    """
    n_classes, n_new, n = products.shape
    logs, scores, lowest, work = _buffers(n_classes, n)
    pair = np.empty(2 * n)
    pair_logs = np.empty(2 * n)
    for j in range(n_new):
        for c in range(n_classes):
            added = starts[c + 1] - starts[c] + 1.0  # rows of c in the bag
            first, last = (c, c + 1) if by_class else (0, n_classes)
            lo, hi = starts[first], starts[last]
            lowest[lo:hi] = 1.0
            for k in range(n_classes):
                if score == DENSITY and by_class and k != c:
                    continue
                begin, end = (k, k + 1) if score == DENSITY else (first, last)
                gap = gaps[k, j, c]
                p = (added - 1) / added * (pooled + (share if k == c else 0.0))
                kept = p / (1 + p * gap)
                grown = 0.5 * np.log1p(p * gap)
                if spherical > 0:
                    kept, grown = 0.0, first_factor * LOG_LIFT
                for l in range(begin, end):
                    s, e = starts[l], starts[l + 1]
                    left = e - s + (1.0 if l == c else 0.0)
                    if left < 2:
                        pair[s:e] = 1.0
                        pair[n + s : n + e] = 1.0
                        continue
                    a = left / (left - 1)
                    q = a * (pooled + (share if k == l else 0.0))
                    change = 1 + (1 if k == c else 0) - (1 if k == l else 0)
                    _fill(
                        products[k, j, s:e],
                        across[k, c, s:e],
                        squares[k, s:e],
                        own[k, s:e],
                        mixed[k, s:e],
                        shifts[k, j, l] + between[k, l, c],
                        gap,
                        kept,
                        1 / added if k == c else 0.0,
                        1 / added if l == c else 0.0,
                        p,
                        q,
                        a * a if k == l else 0.0,
                        ratios[k, change],
                        spherical,
                        lowest[s:e],
                        pair[s:e],
                        pair[n + s : n + e],
                    )
                s, e = starts[begin], starts[end]
                logarithms(pair[s:e], pair_logs[s:e])
                logarithms(pair[n + s : n + e], pair_logs[n + s : n + e])
                for l in range(begin, end):
                    s, e = starts[l], starts[l + 1]
                    change = 1 + (1 if k == c else 0) - (1 if k == l else 0)
                    constant = constants[k, change] - grown
                    half = halves[k, change]
                    for i in range(s, e):
                        logs[k, i] = (
                            constant
                            + first_factor * pair_logs[i]
                            - half * pair_logs[n + i]
                        )
            _score(logs, starts, c, first, last, score, lowest, scores, work)
            if len(own_second):
                s, e = starts[c], starts[c + 1]
                _add(
                    scores[lo:hi],
                    other_second[j, lo:hi],
                    own_second[j, lo:hi],
                    s - lo,
                    e - lo,
                )
            larger[j, c], equal[j, c] = _count(
                scores, category, lo, hi, wanted[j, c], asked[j, c]
            )


@njit(cache=True, error_model="numpy", fastmath={"contract"})
def _buffers(n_classes: int, n: int) -> Any:  # pragma: no cover
    return np.zeros((n_classes, n)), np.empty(n), np.empty(n), np.empty((2, n))


@njit(cache=True, error_model="numpy", fastmath={"contract"})
def _fill(
    products: Any,
    across: Any,
    squares: Any,
    own: Any,
    mixed: Any,
    shift: float,
    gap: float,
    kept: float,
    moved_f: float,
    moved_e: float,
    p: float,
    q: float,
    own_factor: float,
    ratio: float,
    spherical: float,
    lowest: Any,
    out_first: Any,
    out_second: Any,
) -> None:  # pragma: no cover
    """1/w and 1 + r Q of rows of one class; spherical: g'/g and 1 + r Q / (d g')."""
    for i in range(len(squares)):
        h = products[i] + across[i]
        u = h + shift
        fd = h - moved_f * gap
        ed = u - moved_e * gap
        ff = squares[i] - moved_f * (h + fd) - kept * fd * fd
        ee = own[i] - moved_e * (u + ed) - kept * ed * ed
        fe = mixed[i] - moved_f * u - moved_e * fd - kept * fd * ed
        if spherical > 0:
            g = 1.0 + (p * gap - q * ee) / spherical
            lowest[i] = min(lowest[i], g)
            g = max(g, SINGULAR)
            out_first[i] = g * LIFT
            distance = own_factor * ee if own_factor > 0 else ff
            out_second[i] = 1.0 + ratio * max(distance, 0.0) / (spherical * g)
        else:
            w = 1.0 - q * ee
            lowest[i] = min(lowest[i], w)
            inverse = 1.0 / max(w, SINGULAR)
            out_first[i] = inverse
            distance = ff + q * fe * fe * inverse
            if own_factor > 0:
                distance = own_factor * ee * inverse
            out_second[i] = 1.0 + ratio * max(distance, 0.0)


@njit(cache=True, error_model="numpy", fastmath={"contract"})
def diagonal_counts(
    columns: Any,
    new: Any,
    asked: Any,
    wanted: Any,
    starts: Any,
    category: Any,
    means: Any,
    variances: Any,
    constants: Any,
    halves: Any,
    ratios: Any,
    share: float,
    pooled: float,
    score: int,
    by_class: bool,
    own_second: Any,
    other_second: Any,
    larger: Any,
    equal: Any,
) -> None:  # pragma: no cover
    """Count rows stranger than each new row, one variance a class and column."""
    n_columns, n = columns.shape
    n_classes = len(starts) - 1
    logs, scores, lowest, work = _buffers(n_classes, n)
    for j in range(len(new)):
        for c in range(n_classes):
            added = starts[c + 1] - starts[c] + 1.0
            first, last = (c, c + 1) if by_class else (0, n_classes)
            lo, hi = starts[first], starts[last]
            lowest[lo:hi] = 1.0
            for k in range(n_classes):
                if score == DENSITY and by_class and k != c:
                    continue
                begin, end = (k, k + 1) if score == DENSITY else (first, last)
                p = (added - 1) / added * (pooled + (share if k == c else 0.0))
                for l in range(begin, end):
                    s, e = starts[l], starts[l + 1]
                    left = e - s + (1.0 if l == c else 0.0)
                    if left < 2:
                        logs[k, s:e] = 0.0
                        continue
                    a = left / (left - 1)
                    q = a * (pooled + (share if k == l else 0.0))
                    change = 1 + (1 if k == c else 0) - (1 if k == l else 0)
                    logs[k, s:e] = constants[k, change]
                    for b in range(0, n_columns, TOGETHER):
                        work[:, s:e] = LIFT
                        for i_column in range(b, min(b + TOGETHER, n_columns)):
                            delta = new[j, i_column] - means[c, i_column]
                            move = delta / added
                            _multiply(
                                columns[i_column, s:e],
                                means[k, i_column] + (move if k == c else 0.0),
                                means[l, i_column] + (move if l == c else 0.0),
                                variances[k, i_column],
                                p * delta * delta,
                                q,
                                a if k == l else 1.0,
                                ratios[k, change],
                                lowest[s:e],
                                work[0, s:e],
                                work[1, s:e],
                            )
                        half = halves[k, change]
                        for row in range(2):
                            logarithms(work[row, s:e], work[row, s:e])
                        for i in range(s, e):
                            logs[k, i] += (
                                (half - 0.5) * work[0, i] - half * work[1, i]
                            ) + 0.5 * LOG_LIFT
            _score(logs, starts, c, first, last, score, lowest, scores, work)
            if len(own_second):
                s, e = starts[c], starts[c + 1]
                _add(
                    scores[lo:hi],
                    other_second[j, lo:hi],
                    own_second[j, lo:hi],
                    s - lo,
                    e - lo,
                )
            larger[j, c], equal[j, c] = _count(
                scores, category, lo, hi, wanted[j, c], asked[j, c]
            )


@njit(cache=True, error_model="numpy", fastmath={"contract"})
def _multiply(
    column: Any,
    mean: float,
    own_mean: float,
    variance: float,
    gained: float,
    q: float,
    a: float,
    ratio: float,
    lowest: Any,
    out_first: Any,
    out_second: Any,
) -> None:  # pragma: no cover
    """Multiply by g'/g and (g' + r f^2)/g of one column."""
    scale = 1.0 / variance
    for i in range(len(column)):
        e = column[i] - own_mean
        f = a * (column[i] - mean)
        g = 1.0 + (gained - q * e * e) * scale
        lowest[i] = min(lowest[i], g)
        g = max(g, SINGULAR)
        out_first[i] *= g
        out_second[i] *= g + ratio * f * f * scale


@njit(cache=True, error_model="numpy", fastmath={"contract"})
def _score(
    logs: Any,
    starts: Any,
    c: int,
    first: int,
    last: int,
    score: int,
    lowest: Any,
    out: Any,
    work: Any,
) -> None:  # pragma: no cover
    """Nonconformity of the rows of the classes first..last-1 from log joints."""
    n_classes = len(logs)
    for l in range(first, last):
        s, e = starts[l], starts[l + 1]
        if e - s + (1 if l == c else 0) < 2:  # deleting the row empties its class
            out[s:e] = np.inf
            continue
        if score == DENSITY:
            for i in range(s, e):
                out[i] = -logs[l, i]
        else:
            peak, total = work[0, s:e], work[1, s:e]
            peak[:] = -np.inf
            for k in range(n_classes):
                if k != l:
                    for i in range(s, e):
                        peak[i - s] = max(peak[i - s], logs[k, i])
            for i in range(s, e):
                out[i] = peak[i - s] - logs[l, i]
            if score == POSTERIOR and n_classes > 2:
                total[:] = 0.0
                terms = np.empty(e - s)
                for k in range(n_classes):
                    if k != l:
                        for i in range(s, e):
                            terms[i - s] = logs[k, i] - peak[i - s]
                        exponentials(terms)
                        for i in range(e - s):
                            total[i] += terms[i]
                logarithms(total, terms)
                for i in range(s, e):
                    out[i] += terms[i - s]
        for i in range(s, e):
            if lowest[i] <= SINGULAR:
                out[i] = np.inf


@njit(cache=True, error_model="numpy")
def _add(
    scores: Any, other: Any, own: Any, start: int, end: int
) -> None:  # pragma: no cover
    """Blend scores with second ones: `own` for start..end-1, `other` elsewhere."""
    for i in range(len(scores)):
        second = own[i] if start <= i < end else other[i]
        first = np.copysign(np.log1p(abs(scores[i])), scores[i])
        scores[i] = first + 2.0 * np.copysign(np.log1p(abs(second)), second)


@njit(cache=True, error_model="numpy", fastmath={"contract"})
def _count(
    scores: Any, category: Any, lo: int, hi: int, wanted: int, asked: float
) -> Any:  # pragma: no cover
    """Rows lo..hi-1 of a category with a larger score, and with an equal one."""
    margin = 1e-9 * (1.0 + abs(asked))
    above, level = asked + margin, asked - margin
    larger = not_below = 0
    for i in range(lo, hi):
        counts = category[i] == wanted
        larger += counts & (scores[i] > above)
        not_below += counts & (scores[i] >= level)
    return larger, not_below - larger
