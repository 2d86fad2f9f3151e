"""Rows that stand more than once where draws would not repeat them.

Equal rows are no misuse by themselves: draws from few possible values repeat. Two rules
tell them from copies, which void promises.

*Refuted*: whatever the law, independent draws practically never repeat like that. A
doubled table is found so, whatever its columns, and a table certified on itself.

*Fine*: pairs of rows that agree in all columns but one are rarer than pairs that agree
in all, so that a coarse scale is not why they do. A few copies are found so. Rows most
of which are repeated are left to the first rule: a list of things drawn several times
each is as fine as one likes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlog1py
from scipy.stats import binom, poisson

from prudent.core.linalg import row_blocks
from prudent.core.types import IntArray

Keys = NDArray[np.uint64]

#: Chance of calling independent draws copies by the first rule.
LEVEL = 1e-5
#: Rows looked at for near misses, and parts into which their columns are put.
MOST_ROWS, MOST_PARTS = 5_000, 32
#: Stakes of the bets of `log_evidence`, and repetitions that they are about.
STAKES, MOST_TIMES = 2.0 ** -np.arange(1, 31)[:, None], 16


def keys_of_numbers(values: NDArray[np.floating], place: int) -> Keys:
    """One number a cell of the column at that place; -0 equals 0, and NaN is NaN."""
    cells = np.asarray(values, dtype=np.float64) + 0.0
    cells[np.isnan(cells)] = np.nan
    return mixed(cells.view(np.uint64), place)


def mixed(bits: Keys, place: int) -> Keys:
    """64 bits a cell that look random, others in each column (splitmix64)."""
    keys = bits + np.uint64((place + 1) * 0x9E3779B97F4A7C15 % 2**64)
    keys ^= keys >> np.uint64(30)
    keys *= np.uint64(0xBF58476D1CE4E5B9)
    keys ^= keys >> np.uint64(27)
    keys *= np.uint64(0x94D049BB133111EB)
    keys ^= keys >> np.uint64(31)
    return keys


def row_keys(columns: Iterable[Keys], n_rows: int) -> Keys:
    """One number a row: equal for equal rows, and practically only for them.

    The sum of the keys of its cells; two of n rows share it by chance with probability
    about n^2 / 2^65.
    """
    keys = np.zeros(n_rows, dtype=np.uint64)
    for column in columns:
        keys += column
    return keys


def keys_of_rows(X: NDArray[np.floating]) -> Keys:
    """The keys of rows of numbers (n, d), by blocks of bounded memory."""
    keys = np.empty(len(X), dtype=np.uint64)
    for rows in row_blocks(*X.shape):
        # Columns in one piece: jumping from row to row would miss the cache.
        columns = np.ascontiguousarray(X[rows].T)
        numbers = (keys_of_numbers(column, j) for j, column in enumerate(columns))
        keys[rows] = row_keys(numbers, columns.shape[1])
    return keys


@dataclass(frozen=True, eq=False)
class KnownRows:
    """Rows of a fit, so much of them as tells whether others are the same.

    Attributes
    ----------
    keys : ndarray of uint64, shape (n,)
        The row keys, rising.
    near : float
        Share of pairs of different rows that agree in all columns but one; the least
        positive share that can be seen where there is none.
    """

    keys: Keys
    near: float

    @classmethod
    def of(cls, keys: Keys, columns: Sequence[Keys]) -> Self:
        """Rows of these keys; `columns` are the keys of cells of some of them."""
        return cls(np.sort(keys), _share_of_near_misses(columns))

    def holds_copies(self) -> bool:
        """Whether some rows stand more than once, and chance is not why."""
        _, count = np.unique(self.keys, return_counts=True)
        pairs, n = float((count * (count - 1) / 2).sum()), len(self.keys)
        few = 2 * np.count_nonzero(count > 1) <= len(count)
        if few and pairs > self.near * n * (n - 1) / 2:
            return True
        return log_evidence(count) > -math.log(LEVEL)

    def copies(self, keys: Keys) -> int:
        """How many new rows are among these; 0 where chance may be why.

        They are independent draws from the same law, and then as many are expected
        among these rows as there are equal ones inside. By the second rule three times
        as many are too many.
        """
        n, hits = len(keys), int(np.isin(keys, self.keys).sum())
        if hits == 0:
            return 0
        _, place, count = np.unique(self.keys, return_inverse=True, return_counts=True)
        inside = float((count[place] > 1).mean())
        expected = max(3 * n * inside, self.near * n * len(self.keys))
        if hits > expected and 2 * inside <= 1:
            return hits
        return hits if log_chance_of_split(self.keys, keys) < math.log(LEVEL) else 0


def log_evidence(count: IntArray) -> float:
    """Log of the evidence that values drawn so often are no independent draws.

    A value of any rate x is drawn j - 1, j or j + 1 times with chances as
    j/x : 1 : x/(j + 1). So nobody gains by bets that pay 1 - a, 1 + 2 sqrt(a b j/(j+1))
    and 1 - b on these three. Nor by one that pays 1 + b where the number of times,
    known to be positive, is a multiple of j > 1, and 1 - b else: the chance of that is
    at most one half. The product of what all values pay, averaged over a grid of a and
    b, over both bets, and over j with weights 1/(j (j - 1)), has a mean of at most 1
    for a Poisson number of independent draws; that there are n costs the factor
    P(Poisson(n) = n).
    """
    n, most = int(count.sum()), min(int(count.max()), MOST_TIMES)
    drawn, logs = np.bincount(count, minlength=most + 2), [-np.inf]
    a, b = STAKES, np.array([1.0, 0.5, 0.25, 0.125])
    for j in range(2, most + 1):
        below, here, above = drawn[j - 1 : j + 2]
        gained = here * np.log1p(2 * np.sqrt(a * b * j / (j + 1)))
        bets = gained + xlog1py(below, -a) + xlog1py(above, -b)
        multiples = int(drawn[::j][1:].sum())
        parity = multiples * np.log1p(b) + xlog1py(len(count) - multiples, -b)
        for paid in (bets, parity):
            sum_of_paid = float(np.logaddexp.reduce(paid, axis=None))
            logs.append(sum_of_paid - math.log(2 * paid.size * j * (j - 1)))
    return float(np.logaddexp.reduce(logs) + poisson.logpmf(n, n))


def log_chance_of_split(old: Keys, new: Keys) -> float:
    """Log of the chance that so many values stand in both of two samples of one law.

    An upper limit. Given the values of all rows, the new ones are any n of them. Were
    each row new by itself with probability p = n / (all rows), a value of m rows would
    stand in both with probability 1 - p^m - (1 - p)^m, independently of others, and
    the number that do would be at most as spread as a binomial one of the mean
    probability (Hoeffding 1956); that n are new costs the factor P(Bin = n).
    """
    values, m = np.unique(np.concatenate([old, new]), return_counts=True)
    n_all, p = len(old) + len(new), len(new) / (len(old) + len(new))
    both = np.isin(values, old) & np.isin(values, new)
    several = m > 1
    if not several.any():
        return 0.0
    chance = float((1 - p ** m[several] - (1 - p) ** m[several]).mean())
    hits, n_values = int(both.sum()), int(several.sum())
    if hits < n_values * chance + 1:
        return 0.0
    log_tail = float(binom.logsf(hits - 1, n_values, chance))
    return log_tail - float(binom.logpmf(len(new), n_all, p))


def _share_of_near_misses(columns: Sequence[Keys]) -> float:
    """Share of pairs of different rows that agree in all columns but one.

    Of very many columns: in all parts but one.
    """
    n_parts = min(len(columns), MOST_PARTS)
    parts = [row_keys(columns[j::n_parts], len(columns[0])) for j in range(n_parts)]
    _, first = np.unique(row_keys(parts, len(columns[0])), return_index=True)
    parts = [part[first] for part in parts]
    whole, near, n = row_keys(parts, len(first)), 0.0, len(first)
    for part in parts:
        _, count = np.unique(whole - part, return_counts=True)
        near += float((count * (count - 1.0) / 2).sum())
    return (near + 1) / max(n * (n - 1) / 2, 1)
