"""The rows behind a fit, for what moments do not tell.

A fit that needs its rows passes over blocks of them with functions: a function travels
to the blocks, and sums over their rows come back. One protocol serves the rows of a
table in memory, a sample of them, blocks of a stream, and blocks on the workers of a
cluster (`prudent.dask`); no family knows which it is given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from prudent.core.types import FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Rows (n, d) in memory at once, their classes 0..K-1 and repetitions, if any."""

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

    def taken(self, rows: IntArray) -> Block:
        """Some of the rows, in the order given."""
        weight = None if self.weight is None else self.weight[rows]
        return Block(self.X[rows], self.codes[rows], weight)

    def of_class(self, k: int) -> tuple[FloatArray, FloatArray | None]:
        """Rows of one class and their weights."""
        chosen = self.codes == k
        weight = None if self.weight is None else self.weight[chosen]
        return self.X[chosen].astype(np.float64), weight


class Rows(Protocol):
    """Blocks of rows in a fixed order, kept where they are.

    The blocks are `Block` for the families that learn from moments; `transform` may
    turn them into anything else.
    """

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        ...

    @property
    def in_one_place(self) -> bool:
        """Whether all rows of a class may be asked for; see `of_class`."""
        ...

    def map(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        each: Sequence[Any] | None = None,
    ) -> list[Any]:
        """`function(block, *arguments)` of every block, in order.

        With `each`, the function also takes the block's own item of it, last.
        """
        ...

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
        ...

    def transform(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        each: Sequence[Any] | None = None,
    ) -> Self:
        """Blocks `function(block, *arguments)`, kept where they are made."""
        ...

    def of_class(self, k: int) -> tuple[FloatArray, FloatArray | None]:
        """All rows of a class in one place, and their weights.

        TypeError if the blocks are not in this process: they may not fit in it.
        """
        ...


@dataclass(frozen=True, slots=True, eq=False)
class LocalRows:
    """Blocks in the memory of this process; see `Rows`."""

    blocks: Sequence[Any]

    @classmethod
    def of(
        cls, X: NDArray[Any], codes: IntArray, weight: FloatArray | None = None
    ) -> Self:
        """Rows of a table, as one block."""
        return cls([Block(X, codes, weight)])

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return len(self.blocks)

    @property
    def in_one_place(self) -> bool:
        """As `Rows.in_one_place`."""
        return True

    def map(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        each: Sequence[Any] | None = None,
    ) -> list[Any]:
        """As `Rows.map`."""
        return self._of_each(function, arguments, each)

    def reduce(
        self,
        function: Callable[..., Any],
        combine: Callable[[Sequence[Any]], Any],
        *arguments: Any,
        each: Sequence[Any] | None = None,
    ) -> Any:
        """As `Rows.reduce`."""
        found = self.map(function, *arguments, each=each)
        return found[0] if len(found) == 1 else combine(found)

    def transform(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        each: Sequence[Any] | None = None,
    ) -> Self:
        """As `Rows.transform`."""
        return type(self)(self._of_each(function, arguments, each))

    def of_class(self, k: int) -> tuple[FloatArray, FloatArray | None]:
        """As `Rows.of_class`."""
        parts = [block.of_class(k) for block in self.blocks]
        if len(parts) == 1:
            return parts[0]
        rows, weights = zip(*parts, strict=True)
        weighted = [weight for weight in weights if weight is not None]
        return np.concatenate(rows), np.concatenate(weighted) if weighted else None

    def _of_each(
        self,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
        each: Sequence[Any] | None,
    ) -> list[Any]:
        own = [()] * len(self.blocks) if each is None else [(item,) for item in each]
        pairs = zip(self.blocks, own, strict=True)
        return [function(block, *arguments, *item) for block, item in pairs]


def restricted(rows: Rows, features: IntArray) -> Rows:
    """The rows with some of the features."""
    return rows.transform(Block.restrict, features)
