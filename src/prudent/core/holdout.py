"""Which rows a fit learns from and which it is held to."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Repeated rows are told from values that a coarse scale makes equal by chance: a
# column that names this share of the distinct rows, of which there are enough.
NAMING_SHARE, LEAST_DISTINCT = 0.9, 20


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Positions of the rows to learn from and of those held out.

    With groups, `held_out` has one row of each group held out; the other rows of these
    groups are in neither.
    """

    fit: NDArray[np.intp]
    held_out: NDArray[np.intp]


def held_out_count(n: int, share: float) -> int:
    """Ceil of `share` * n, with at least one of n >= 2 on each side."""
    return min(max(math.ceil(share * n), 1), n - 1)


def hold_out(
    n_rows: int,
    share: float,
    random: np.random.RandomState,
    groups: NDArray[Any] | None = None,
) -> HeldOut:
    """Draw the rows to hold out: plainly, or whole groups with one row each.

    `share` is that of the rows, or of the groups, two at least. The draw is plain: one
    stratified by class is not exchangeable with a new row, and its counts are not
    binomial. Of each group held out one row drawn at random counts, so that every rank
    and binomial argument holds with groups for rows: the promise is about a random row
    of a new group.
    """
    if groups is None:
        order = random.permutation(n_rows)
        n_held_out = held_out_count(n_rows, share)
        return HeldOut(order[n_held_out:], order[:n_held_out])
    names, group_of = np.unique(groups, return_inverse=True)
    chosen = random.permutation(len(names))[: held_out_count(len(names), share)]
    is_chosen = np.zeros(len(names), dtype=bool)
    is_chosen[chosen] = True
    of_chosen = np.flatnonzero(is_chosen[group_of])
    one_each = one_row_per_group(group_of[of_chosen], random)
    return HeldOut(np.flatnonzero(~is_chosen[group_of]), of_chosen[one_each])


def one_row_per_group(
    groups: NDArray[Any], random: np.random.RandomState
) -> NDArray[np.intp]:
    """Position of one row of each group, drawn at random, in random order."""
    order = random.permutation(len(groups))
    _, first = np.unique(groups[order], return_index=True)
    return order[np.sort(first)]


def count_repeated(X: NDArray[Any], split: HeldOut) -> int:
    """Held-out rows that stand among the fit rows too, where chance cannot be why.

    Rows of few possible values are equal by chance, which breaks no promise; they
    are not counted. The scale counts as fine when some column that is not all
    integers names at least 90 % of at least 20 distinct rows.
    """
    keys = _row_keys(X)
    repeated = int(np.isin(keys[split.held_out], keys[split.fit]).sum())
    if repeated == 0:
        return 0
    distinct = X[np.unique(keys, return_index=True)[1]]
    if len(distinct) < LEAST_DISTINCT or X.dtype.kind != "f":
        return 0
    fine = any(
        len(np.unique(column)) >= NAMING_SHARE * len(distinct)
        for column in distinct.T
        if (column != np.rint(column)).any()
    )
    return repeated if fine else 0


def _row_keys(X: NDArray[Any]) -> NDArray[np.uint64]:
    """One number a row: equal for equal rows, and practically only for them."""
    keys = np.zeros(len(X), dtype=np.uint64)
    for column in X.T:
        bits = (column.astype(np.float64) + 0.0).view(np.uint64)  # -0 equals 0
        keys = (keys ^ bits) * np.uint64(0x9E3779B97F4A7C15)
        keys ^= keys >> np.uint64(29)
    return keys
