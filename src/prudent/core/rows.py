"""The rows behind a fit, for what moments do not tell.

A fit that needs its rows passes over blocks of them with functions: a function travels
to the blocks, and sums over their rows come back. One protocol serves the rows of a
table in memory, a sample of them, blocks of a stream, and blocks on the workers of a
cluster (`prudent.dask`); no family knows which it is given.
"""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlog1py
from scipy.stats import binom, poisson

from prudent.core.order import latest_rows
from prudent.core.types import FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Rows (n, d) in memory at once, with the classes 0..K-1 they belong to.

    `weight` (n,) are repetitions, or None where every row counts once.
    """

    X: NDArray[Any]
    codes: IntArray
    weight: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.X)

    def restrict(self, features: IntArray) -> Block:
        """The rows with some of the features."""
        if len(features) == self.X.shape[1]:
            return self
        return Block(self.X[:, features], self.codes, self.weight)

    def taken(self, rows: IntArray | slice) -> Block:
        """Some of the rows, in the order given."""
        weight = None if self.weight is None else self.weight[rows]
        return Block(self.X[rows], self.codes[rows], weight)

    def of_class(self, k: int) -> tuple[FloatArray, FloatArray | None]:
        """Rows of class k as float64, and their weights, if any."""
        chosen = self.codes == k
        weight = None if self.weight is None else self.weight[chosen]
        return self.X[chosen].astype(np.float64), weight


#: A function and its arguments behind the block, which travel to it together.
Step = tuple[Callable[..., Any], tuple[Any, ...]]


def step_on(block: Any, own: tuple[Any, ...], step: Step) -> Any:
    """What a step makes of a block and the block's own item, if any."""
    function, arguments = step
    return function(block, *arguments, *own)


class Rows(ABC):
    """Blocks of rows in a fixed order, kept where they are.

    The blocks are `Block` for the families that learn from moments; `transform` may
    turn them into anything else. With `each`, a function also takes the block's own
    item of it, last.
    """

    blocks: Sequence[Any]
    #: Whether all rows of a class may be asked for; see `of_class`.
    in_one_place: ClassVar[bool] = False

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return len(self.blocks)

    def map(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        each: Sequence[Any] | None = None,
    ) -> list[Any]:
        """`function(block, *arguments)` of every block, in order."""
        return self._map((function, arguments), self._own(each))

    def reduce(
        self,
        function: Callable[..., Any],
        combine: Callable[[Sequence[Any]], Any],
        *arguments: Any,
        each: Sequence[Any] | None = None,
    ) -> Any:
        """`combine` of all `function(block, *arguments)`, perhaps in a tree.

        `combine` takes a sequence of results and gives one of the same kind.
        """
        results = self.map(function, *arguments, each=each)
        return results[0] if len(results) == 1 else combine(results)

    def transform(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        each: Sequence[Any] | None = None,
    ) -> Rows:
        """Blocks `function(block, *arguments)`, kept where they are made."""
        return self._transform((function, arguments), self._own(each))

    def of_class(self, k: int) -> tuple[FloatArray, FloatArray | None]:
        """All rows of a class in one place, and their weights, if any.

        Raises
        ------
        TypeError
            If the blocks are not in this process: they may not fit in it.
        """
        raise TypeError(
            "the rows of a class do not come to one place from blocks; choose settings "
            "that need sums over the rows only."
        )

    def _own(self, each: Sequence[Any] | None) -> list[tuple[Any, ...]]:
        """What a step is given of each block, in addition to its arguments."""
        return [()] * self.n_blocks if each is None else [(item,) for item in each]

    @abstractmethod
    def _map(self, step: Step, own: list[tuple[Any, ...]]) -> list[Any]:
        """The step's results."""

    @abstractmethod
    def _transform(self, step: Step, own: list[tuple[Any, ...]]) -> Rows:
        """The step's results as blocks."""


@dataclass(frozen=True, eq=False)
class LocalRows(Rows):
    """Blocks in the memory of this process."""

    blocks: Sequence[Any]
    in_one_place: ClassVar[bool] = True

    @classmethod
    def from_table(
        cls, X: NDArray[Any], codes: IntArray, weight: FloatArray | None = None
    ) -> Self:
        """Rows of a table, as one block."""
        return cls([Block(X, codes, weight)])

    def of_class(self, k: int) -> tuple[FloatArray, FloatArray | None]:
        """As `Rows.of_class`."""
        parts = [block.of_class(k) for block in self.blocks]
        if len(parts) == 1:
            return parts[0]
        rows, weights = zip(*parts, strict=True)
        weighted = [weight for weight in weights if weight is not None]
        return np.concatenate(rows), np.concatenate(weighted) if weighted else None

    def _map(self, step: Step, own: list[tuple[Any, ...]]) -> list[Any]:
        pairs = zip(self.blocks, own, strict=True)
        return [step_on(block, item, step) for block, item in pairs]

    def _transform(self, step: Step, own: list[tuple[Any, ...]]) -> LocalRows:
        return LocalRows(self._map(step, own))


def restricted(rows: Rows, features: IntArray) -> Rows:
    """The same rows with some of their features, in the order given."""
    return rows.transform(Block.restrict, features)


# --- which rows a fit learns from and which it is held to -----------------------------

#: Positions of rows to learn from, and of others.
Split = tuple[NDArray[np.intp], NDArray[np.intp]]


def held_out_count(n: int, share: float) -> int:
    """Number of rows to hold out: `share` of n, rounded up, some left on both sides."""
    return min(max(math.ceil(share * n), 1), n - 1)


def fewest_to_hold_out(held_out: int, share: float) -> int:
    """Least number of rows of which `held_out_count` holds out so many."""
    n = math.ceil(held_out / share) + 1
    while n > 2 and held_out_count(n - 1, share) >= held_out:
        n -= 1
    return n


def hold_out(
    n_rows: int,
    share: float,
    random: np.random.RandomState,
    groups: NDArray[Any] | None = None,
    times: NDArray[Any] | None = None,
) -> Split:
    """Draw the rows to hold out: plainly, or whole groups with one row each.

    With times the latest ones are held out.

    Parameters
    ----------
    n_rows : int
        At least 2.
    share : float
        In (0, 1), of the rows or of the groups, two groups at least.
    random : RandomState
    groups : ndarray of shape (n_rows,) or None
        Equal values belong together.
    times : ndarray of shape (n_rows,) or None
        Time of each row, the same one for all rows of a group. The latest part is held
        out, extended back to a change of time.

    Returns
    -------
    fit, held_out : ndarray of int
        Positions of the rows to learn from, and of those held out: with groups one row
        of each of these, the other rows of which are in neither.

    Raises
    ------
    ValueError
        If all rows are among the latest ones.

    Notes
    -----
    The draw is plain: one stratified by class is not exchangeable with a new row, and
    its counts are not binomial. Of each group held out one row drawn at random counts,
    so that every rank and binomial argument holds with groups for rows: the promise is
    about a random row of a new group.

    Which rows are the latest depends on times alone, so that given the times these are
    draws, too, if they and future rows are.
    """
    if groups is None and times is not None:
        return latest_rows(times, share)
    if groups is None:
        order = random.permutation(n_rows)
        n_held_out = held_out_count(n_rows, share)
        return order[n_held_out:], order[:n_held_out]
    names, first, group_of = np.unique(groups, return_index=True, return_inverse=True)
    if times is None:
        chosen = random.permutation(len(names))[: held_out_count(len(names), share)]
    else:
        _, chosen = latest_rows(times[first], share)
    is_chosen = np.zeros(len(names), dtype=bool)
    is_chosen[chosen] = True
    candidates = np.flatnonzero(is_chosen[group_of])
    drawn = one_row_per_group(group_of[candidates], random)
    return np.flatnonzero(~is_chosen[group_of]), candidates[drawn]


def one_row_per_group(
    groups: NDArray[Any], random: np.random.RandomState
) -> NDArray[np.intp]:
    """Position of one random row of each group, in random order."""
    order = random.permutation(len(groups))
    _, first = np.unique(groups[order], return_index=True)
    return order[np.sort(first)]


# --- coins that fall the same way each time for the same thing ------------------------


def keyed_uniform(
    items: Iterable[bytes], key: int | str | bytes
) -> NDArray[np.float64]:
    """Uniform numbers in [0, 1), each a keyed hash of one item alone (BLAKE2b).

    The same item and key give the same number in any batch, order or process;
    without the key the numbers cannot be foretold.
    """
    if not isinstance(key, int | str | bytes | np.integer):
        raise TypeError(
            f"`key` must be an int, str or bytes, got {type(key).__name__}."
        )
    encoded = key if isinstance(key, bytes) else str(key).encode()
    secret = hashlib.blake2b(encoded).digest()
    digests = b"".join(
        hashlib.blake2b(item, key=secret, digest_size=8).digest() for item in items
    )
    # The 53 leading bits: a float in [0, 1) exactly.
    leading = np.frombuffer(digests, dtype="<u8") >> np.uint64(11)
    return leading.astype(np.float64) * 2.0**-53


def drawn_key(random: np.random.RandomState, rows: NDArray[Any]) -> bytes:
    """Key of the coins of one fit, another one for other `rows`.

    Many fits may have one seed. By the seed alone the coin of a common row would fall
    in the same way in all of them, and a promise on average over fits be false.
    """
    return hashlib.blake2b(random.bytes(32) + rows.tobytes()).digest()


# --- rows that come again -------------------------------------------------------------
#
# Equal rows are no misuse by themselves: draws from few possible values repeat. Two
# rules tell them from copies, which void promises.
#
# Refuted: whatever the law, independent draws practically never repeat like that. A
# doubled table is found so, whatever its columns, and a table certified on itself.
#
# Fine: pairs of rows that agree in all columns but one are rarer than values that stand
# more than once, so that a coarse scale is not why they do. A few copies are found so.
# Values count, not rows, and a few that stand three times do not: a fine table may hold
# blank rows, as many as one likes. Rows of which most are repeated are left to the
# first rule: a list of things drawn several times each is as fine as one likes.

Keys = NDArray[np.uint64]

#: Chance of calling independent draws copies by the first rule.
LEVEL = 1e-5
#: Rows looked at for near misses, and parts into which their columns are put.
MOST_ROWS, MOST_PARTS = 5_000, 32
#: Values that may stand three times or more in a fine table: blank, all zero, a code.
MOST_RECURRING = 3
#: Stakes of the bets of `log_evidence`, and repetitions that they are about.
STAKES, MOST_TIMES = 2.0 ** -np.arange(1, 31)[:, None], 16


def cell_keys(cells: NDArray[Any], place: int | IntArray) -> Keys:
    """64 bits a cell that look random, others in the column at each place (splitmix64).

    The cells are float64, of which -0 equals 0 and NaN is NaN, or digests of 64 bits.
    All are of one place, or each of its own.
    """
    if cells.dtype.kind == "f":
        numbers = cells + 0.0
        numbers[np.isnan(numbers)] = np.nan
        cells = numbers.view(np.uint64)
    places = np.atleast_1d(place).astype(np.uint64) + np.uint64(1)
    keys: Keys = cells + places * np.uint64(0x9E3779B97F4A7C15)
    keys ^= keys >> np.uint64(30)
    keys *= np.uint64(0xBF58476D1CE4E5B9)
    keys ^= keys >> np.uint64(27)
    keys *= np.uint64(0x94D049BB133111EB)
    keys ^= keys >> np.uint64(31)
    return keys


def keys_of_rows(X: NDArray[np.floating]) -> Keys:
    """One number a row (n, d): equal for equal rows, and practically only for them.

    The sum of the keys of its cells; two of n rows share it by chance with probability
    about n^2 / 2^65. Computed by blocks of bounded memory.
    """
    keys = np.zeros(len(X), dtype=np.uint64)
    size = max(64, 2**16 // X.shape[1])
    for start in range(0, len(X), size):
        rows = slice(start, start + size)
        # Columns in one piece: jumping from row to row would miss the cache.
        columns = np.ascontiguousarray(X[rows].T, dtype=np.float64)
        for j, column in enumerate(columns):
            keys[rows] += cell_keys(column, j)
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
    def from_keys(cls, keys: Keys, columns: Sequence[Keys]) -> Self | None:
        """Rows of these keys, which are sorted where they are, not copied.

        `columns` are the keys of cells of some of the rows.
        Of very many columns near misses are counted in parts: rows that agree in all
        parts but one. Of no rows or no columns nothing is known.
        """
        if not len(keys) or not columns:
            return None
        n_parts = min(len(columns), MOST_PARTS)
        parts = np.array([np.sum(columns[j::n_parts], axis=0) for j in range(n_parts)])
        whole, first = np.unique(parts.sum(axis=0), return_index=True)
        near, n = 0.0, len(whole)
        for part in parts[:, first]:
            _, count = np.unique(whole - part, return_counts=True)
            near += float((count * (count - 1.0) / 2).sum())
        keys.sort()
        return cls(keys, (near + 1) / max(n * (n - 1) / 2, 1))

    def holds_copies(self) -> bool:
        """Whether some rows stand more than once, and chance is not why."""
        _, count = np.unique(self.keys, return_counts=True)
        n, repeated = len(count), np.count_nonzero(count > 1)
        recurring = min(int(np.count_nonzero(count > 2)), MOST_RECURRING)
        few = 2 * repeated <= len(count)
        if few and repeated - recurring > self.near * n**2 / 2:
            return True
        return log_evidence(count) > -math.log(LEVEL)

    def copies(self, keys: Keys) -> int:
        """How many new rows are among these; 0 where chance may be why.

        The second rule looks at values that stand here once. By Good and Turing a draw
        from the same law is one of them with a chance of about the share of rows that
        stand here twice; three times as many are too many.
        """
        n, hits = len(keys), int(np.isin(keys, self.keys).sum())
        if hits == 0:
            return 0
        values, count = np.unique(self.keys, return_counts=True)
        if self.holds_copies():
            # They say nothing of chance. Where each row stands twice, the table does.
            times = int(count.min())
            count = count // times if times > 1 else np.ones_like(count)
        n_own, once = int(count.sum()), count == 1
        seen = np.count_nonzero(np.isin(values[once], keys))
        twice = 2 * np.count_nonzero(count == 2) / n_own
        few = 2 * np.count_nonzero(~once) <= len(values)
        if few and seen > max(3 * n * twice, self.near * n * len(values)):
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
