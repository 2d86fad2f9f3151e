"""Compiled loops over distances between rows.

Import it lazily: numba takes half a second to load.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

# A mean distance of 0 has a logarithm too: rows at distance 0 tie with each other.
TINY = float(np.finfo(np.float64).tiny)


loop = njit(cache=True, error_model="numpy")


@loop
def squared_distances(columns: Any, row: Any, out: Any) -> None:  # pragma: no cover
    """Squared distance of each training row from one row, by differences."""
    out[:] = 0.0
    for j in range(len(columns)):
        x = row[j]
        column = columns[j]
        for i in range(len(out)):
            difference = column[i] - x
            out[i] += difference * difference


@loop
def insert(nearest: Any, distance: float) -> None:  # pragma: no cover
    """Put a distance into an ascending list of the least, dropping its last."""
    k = len(nearest)
    if distance >= nearest[k - 1]:
        return
    i = k - 1
    while i > 0 and nearest[i - 1] > distance:
        nearest[i] = nearest[i - 1]
        i -= 1
    nearest[i] = distance


@loop
def nearest_by_label(
    columns: Any, codes: Any, nearest: Any
) -> None:  # pragma: no cover
    """Least distances of each training row to its own label and to the others."""
    n = columns.shape[1]
    squares = np.empty(n)
    nearest[:] = np.inf
    for i in range(n):
        squared_distances(columns, columns[:, i].copy(), squares)
        for other in range(n):
            if other != i:
                side = 0 if codes[other] == codes[i] else 1
                insert(nearest[side, i], squares[other])
    for side in range(2):
        for i in range(n):
            for place in range(nearest.shape[2]):
                nearest[side, i, place] = np.sqrt(nearest[side, i, place])


@loop
def nearest_of_classes(
    columns: Any, codes: Any, rows: Any, nearest: Any
) -> None:  # pragma: no cover
    """Least distances of each new row to the rows of each label."""
    squares = np.empty(columns.shape[1])
    nearest[:] = np.inf
    for j in range(len(rows)):
        squared_distances(columns, rows[j], squares)
        for i in range(len(squares)):
            insert(nearest[j, codes[i]], np.sqrt(squares[i]))


@loop
def with_added(nearest: Any, distance: float) -> float:  # pragma: no cover
    """Mean of the finite least distances once another row is there."""
    k = len(nearest)
    total = 0.0
    n = 0
    for value in nearest:
        if value < np.inf:
            total += value
            n += 1
    if n < k:
        return (total + distance) / (n + 1)
    last = nearest[k - 1]
    if distance >= last:
        return total / k
    if k == 1:
        return distance
    total = distance
    for place in range(k - 1):
        total += nearest[place]
    return total / k


@loop
def _tally(
    pair: Any, code: int, i: int, j: int, ranked: Any, larger: Any, equal: Any
) -> None:  # pragma: no cover
    """Compare the two scores of a training row with those of a new row."""
    category, wanted, asked = ranked
    for c in range(len(larger)):
        if category[i] != wanted[j, c]:
            continue
        score = pair[0] if c == code else pair[1]
        margin = 1e-9 * (1.0 + abs(asked[j, c]))
        if score > asked[j, c] + margin:
            larger[c] += 1
        elif score >= asked[j, c] - margin:
            equal[c] += 1


@loop
def _nearest_pair(
    nearest: Any, logs: Any, i: int, square: float
) -> Any:  # pragma: no cover
    """Score of a training row if a new row has its label, and if it has not."""
    distance = np.sqrt(square)
    own = np.log(max(with_added(nearest[0, i], distance), TINY)) - logs[1, i]
    if logs[0, i] == np.inf:
        return own, np.inf
    return own, logs[0, i] - np.log(max(with_added(nearest[1, i], distance), TINY))


@loop
def nearest_pairs(
    columns: Any, rows: Any, nearest: Any, logs: Any, own: Any, other: Any
) -> None:  # pragma: no cover
    """Both scores of each training row for each new row."""
    squares = np.empty(columns.shape[1])
    for j in range(len(rows)):
        squared_distances(columns, rows[j], squares)
        for i in range(len(squares)):
            own[j, i], other[j, i] = _nearest_pair(nearest, logs, i, squares[i])


@loop
def nearest_counts(
    columns: Any,
    codes: Any,
    rows: Any,
    nearest: Any,
    logs: Any,
    ranked: Any,
    larger: Any,
    equal: Any,
) -> None:  # pragma: no cover
    """Count rows stranger than each new row, by their nearest neighbours."""
    larger[:], equal[:] = 0, 0
    squares = np.empty(columns.shape[1])
    for j in range(len(rows)):
        squared_distances(columns, rows[j], squares)
        for i in range(len(squares)):
            pair = _nearest_pair(nearest, logs, i, squares[i])
            _tally(pair, codes[i], i, j, ranked, larger[j], equal[j])


@loop
def _log_add(a: float, b: float) -> float:  # pragma: no cover
    """Log of the sum of two exponentials; either may be -inf, not both."""
    high, low = max(a, b), min(a, b)
    return high + np.log1p(np.exp(low - high))


@loop
def _log_sums(
    exponents: Any, codes: Any, skip: int, sums: Any
) -> None:  # pragma: no cover
    """Log sum of the exponentials of each label's entries, leaving one entry out."""
    peaks = np.full(len(sums), -np.inf)
    for i in range(len(codes)):
        if i != skip:
            peaks[codes[i]] = max(peaks[codes[i]], exponents[i])
    sums[:] = 0.0
    for i in range(len(codes)):
        if i != skip:
            sums[codes[i]] += np.exp(exponents[i] - peaks[codes[i]])
    for c in range(len(sums)):
        sums[c] = peaks[c] + np.log(sums[c]) if sums[c] > 0 else -np.inf


@loop
def kernel_sums_by_label(
    columns: Any, codes: Any, width: float, sums: Any
) -> None:  # pragma: no cover
    """Log kernel sums of each training row over its own label and the others."""
    n = columns.shape[1]
    exponents = np.empty(n)
    sides = np.empty(n, dtype=np.intp)
    pair = np.empty(2)
    for i in range(n):
        squared_distances(columns, columns[:, i].copy(), exponents)
        for other in range(n):
            exponents[other] *= -0.5 / width / width
            sides[other] = 0 if codes[other] == codes[i] else 1
        _log_sums(exponents, sides, i, pair)
        sums[0, i], sums[1, i] = pair[0], pair[1]


@loop
def kernel_sums_of_classes(
    columns: Any, codes: Any, rows: Any, width: float, sums: Any
) -> None:  # pragma: no cover
    """Log kernel sum of each new row over the rows of each label."""
    exponents = np.empty(columns.shape[1])
    for j in range(len(rows)):
        squared_distances(columns, rows[j], exponents)
        for i in range(len(exponents)):
            exponents[i] *= -0.5 / width / width
        _log_sums(exponents, codes, -1, sums[j])


@loop
def kernel_counts(
    columns: Any,
    codes: Any,
    rows: Any,
    width: float,
    sums: Any,
    ranked: Any,
    larger: Any,
    equal: Any,
) -> None:  # pragma: no cover
    """Count rows stranger than each new row, by kernel sums."""
    larger[:], equal[:] = 0, 0
    squares = np.empty(columns.shape[1])
    for j in range(len(rows)):
        squared_distances(columns, rows[j], squares)
        for i in range(len(squares)):
            exponent = -0.5 / width / width * squares[i]
            own = sums[1, i] - _log_add(sums[0, i], exponent)
            other = np.inf
            if sums[0, i] > -np.inf:
                other = _log_add(sums[1, i], exponent) - sums[0, i]
            _tally((own, other), codes[i], i, j, ranked, larger[j], equal[j])


@loop
def nearest_scores(
    columns: Any, nearest: Any, row: Any, scores: Any
) -> None:  # pragma: no cover
    """Mean distance of each row of the bag to its nearest; the new row is last."""
    n = columns.shape[1]
    squares = np.empty(n)
    squared_distances(columns, row, squares)
    own = np.full(nearest.shape[1], np.inf)
    for i in range(n):
        distance = np.sqrt(squares[i])
        insert(own, distance)
        scores[i] = with_added(nearest[i], distance)
    total, found = 0.0, 0
    for distance in own:
        if distance < np.inf:
            total += distance
            found += 1
    scores[n] = total / found


@loop
def kernel_scores(
    columns: Any, width: float, sums: Any, row: Any, scores: Any
) -> None:  # pragma: no cover
    """Minus the log kernel sum of each row of the bag over the others."""
    n = columns.shape[1]
    exponents = np.empty(n)
    squared_distances(columns, row, exponents)
    peak = -np.inf
    for i in range(n):
        exponents[i] *= -0.5 / width / width
        peak = max(peak, exponents[i])
        scores[i] = -_log_add(sums[i], exponents[i])
    total = 0.0
    for i in range(n):
        total += np.exp(exponents[i] - peak)
    scores[n] = -(peak + np.log(total))


@loop
def ellipsoid_scores(whitened: Any, v: Any, scores: Any) -> None:  # pragma: no cover
    """Increasing functions of the deleted distances from the mean of the others."""
    n = whitened.shape[1]
    total = n + 1.0
    c = n / total
    q = 0.0
    for j in range(len(v)):
        q += v[j] * v[j]
    squares, g = np.zeros(n), np.zeros(n)
    for j in range(len(v)):
        for i in range(n):
            moved = whitened[j, i] - v[j] / total
            squares[i] += moved * moved
            g[i] += moved * v[j]
    for i in range(n):
        scores[i] = total * (squares[i] - c * g[i] * g[i] / (1.0 + c * q))
    scores[n] = total * c * c * q / (1.0 + c * q)


@loop
def mid_ranks(scores: Any, ranks: Any) -> None:  # pragma: no cover
    """Twice the mid-ranks, of scores that tie within 1e-9 of their size."""
    order = np.argsort(scores)
    n = len(scores)
    start = 0
    while start < n:
        end = start + 1
        while end < n:
            low, high = scores[order[end - 1]], scores[order[end]]
            if high - low > 1e-9 * abs(high) + 1e-15:
                break
            end += 1
        for place in range(start, end):
            ranks[order[place]] = start + end + 1
        start = end


@loop
def combined_scores(
    first: Any, second: Any, ranks: Any, scores: Any
) -> None:  # pragma: no cover
    """The larger of two ranks, ties by their sum, as one number."""
    mid_ranks(first, ranks[0])
    mid_ranks(second, ranks[1])
    base = 8.0 * len(first)
    for i in range(len(first)):
        a, b = ranks[0, i], ranks[1, i]
        scores[i] = max(a, b) * base + (a + b)


@loop
def one_class_counts(
    use_nearest: bool,
    use_ellipsoid: bool,
    columns: Any,
    nearest: Any,
    width: float,
    sums: Any,
    whitened: Any,
    rows: Any,
    new_whitened: Any,
    larger: Any,
    equal: Any,
) -> None:  # pragma: no cover
    """Count training rows stranger than each new row."""
    n = columns.shape[1]
    first, second, scores = np.empty(n + 1), np.empty(n + 1), np.empty(n + 1)
    ranks = np.empty((2, n + 1))
    for j in range(len(rows)):
        margin = 1e-9
        if use_nearest and use_ellipsoid:
            nearest_scores(columns, nearest, rows[j], first)
            ellipsoid_scores(whitened, new_whitened[j], second)
            combined_scores(first, second, ranks, scores)
            margin = 0.0
        elif use_nearest:
            nearest_scores(columns, nearest, rows[j], scores)
        elif use_ellipsoid:
            ellipsoid_scores(whitened, new_whitened[j], scores)
        else:
            kernel_scores(columns, width, sums, rows[j], scores)
        asked = scores[n]
        margin *= 1.0 + abs(asked)
        above = not_below = 0
        for i in range(n):
            above += scores[i] > asked + margin
            not_below += scores[i] >= asked - margin
        larger[j], equal[j] = above, not_below - above
