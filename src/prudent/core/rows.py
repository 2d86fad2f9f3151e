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


@dataclass(frozen=True, slots=True)
class Step:
    """A function and its arguments behind the block, which travel to it together."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]

    def __call__(self, block: Any, *own: Any) -> Any:
        return self.function(block, *self.arguments, *own)


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
        return self._map(Step(function, arguments), self._own(each))

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
        return self._transform(Step(function, arguments), self._own(each))

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
    def of(
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
        return [step(block, *item) for block, item in pairs]

    def _transform(self, step: Step, own: list[tuple[Any, ...]]) -> LocalRows:
        return LocalRows(self._map(step, own))


def restricted(rows: Rows, features: IntArray) -> Rows:
    """The same rows with some of their features, in the order given."""
    return rows.transform(Block.restrict, features)


# --- which rows a fit learns from and which it is held to -----------------------------


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Positions of the rows to learn from and of those held out.

    With groups, `held_out` has one row of each group held out; the other rows of these
    groups are in neither.
    """

    fit: NDArray[np.intp]
    held_out: NDArray[np.intp]


def held_out_count(n: int, share: float) -> int:
    """Number of rows to hold out: `share` of n, rounded up, some left on both sides."""
    return min(max(math.ceil(share * n), 1), n - 1)


def hold_out(
    n_rows: int,
    share: float,
    random: np.random.RandomState,
    groups: NDArray[Any] | None = None,
) -> HeldOut:
    """Draw the rows to hold out: plainly, or whole groups with one row each.

    Parameters
    ----------
    n_rows : int
        At least 2.
    share : float
        In (0, 1), of the rows or of the groups, two groups at least.
    random : RandomState
    groups : ndarray of shape (n_rows,) or None
        Equal values belong together.

    Returns
    -------
    HeldOut

    Notes
    -----
    The draw is plain: one stratified by class is not exchangeable with a new row, and
    its counts are not binomial. Of each group held out one row drawn at random counts,
    so that every rank and binomial argument holds with groups for rows: the promise is
    about a random row of a new group.
    """
    if groups is None:
        order = random.permutation(n_rows)
        n_held_out = held_out_count(n_rows, share)
        return HeldOut(order[n_held_out:], order[:n_held_out])
    names, group_of = np.unique(groups, return_inverse=True)
    chosen = random.permutation(len(names))[: held_out_count(len(names), share)]
    is_chosen = np.zeros(len(names), dtype=bool)
    is_chosen[chosen] = True
    candidates = np.flatnonzero(is_chosen[group_of])
    drawn = one_row_per_group(group_of[candidates], random)
    return HeldOut(np.flatnonzero(~is_chosen[group_of]), candidates[drawn])


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
