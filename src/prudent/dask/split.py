"""Numbered rows of blocks, and a random choice that each block works out itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from prudent.core.types import BoolArray
from prudent.dask.chunks import Block, Chunks

#: Rows that a classifier or detector learns from, at most: they must fit one machine.
#: What is promised does not depend on it.
MAX_FIT_ROWS = 100_000


@dataclass(frozen=True, slots=True)
class Split:
    """Held-out rows and a sample of the others, both drawn without replacement.

    Row i of the table has the i-th number of a keyed stream as its ticket; the rows
    of the smallest tickets are held out, those of the next ones are the sample. A
    ticket depends on key and position alone: not on blocks, workers or order.
    """

    key: int  # of the stream of tickets
    held_out_to: int  # largest ticket of a held-out row, and of a row of the sample
    sampled_to: int

    @classmethod
    def draw(
        cls, rng: np.random.RandomState, n_rows: int, n_held_out: int, n_sampled: int
    ) -> Split:
        """Draw `n_held_out` >= 1 of the rows, and `n_sampled` of the others."""
        key = int.from_bytes(rng.bytes(16), "little")
        tickets = _tickets(key, 0, n_rows)
        last = [n_held_out - 1, n_held_out + n_sampled - 1]
        tickets.partition(last)
        return cls(key, *tickets[last].tolist())

    def held_out(self, start: int, n_rows: int) -> BoolArray:
        """Which of the rows from position `start` on are held out."""
        return _tickets(self.key, start, n_rows) <= self.held_out_to

    def sampled(self, start: int, n_rows: int) -> BoolArray:
        """Which of the rows from position `start` on belong to the sample."""
        tickets = _tickets(self.key, start, n_rows)
        return (tickets > self.held_out_to) & (tickets <= self.sampled_to)


def _tickets(key: int, start: int, n_rows: int) -> NDArray[np.uint64]:
    """Numbers start, start + 1, ... of the stream; it yields four at a step."""
    stream = np.random.Philox(key=key)
    stream.advance(start // 4)
    return stream.random_raw(start % 4 + n_rows)[start % 4 :]


@dataclass(frozen=True, slots=True, eq=False)
class NumberedRows:
    """Blocks of rows with the position of the first row of each."""

    chunks: Chunks
    starts: Sequence[int]
    n_rows: int

    @classmethod
    def of(cls, chunks: Chunks, sizes: Sequence[int]) -> NumberedRows:
        """Blocks of these sizes; ValueError unless one row can be held out."""
        *starts, n_rows = np.cumsum([0, *sizes]).tolist()
        if n_rows < 2:
            raise ValueError(
                f"found {n_rows} sample(s) in all blocks: at least 2 are needed, one "
                "to learn from and one to hold out."
            )
        return cls(chunks, starts, n_rows)

    def split(self, rng: np.random.RandomState, n_held_out: int) -> Split:
        """Draw rows to hold out, and at most `MAX_FIT_ROWS` of the others."""
        n_sampled = min(MAX_FIT_ROWS, self.n_rows - n_held_out)
        return Split.draw(rng, self.n_rows, n_held_out, n_sampled)

    def ask(
        self,
        choose: Callable[[int, int], BoolArray],
        question: Callable[..., Any],
        *arguments: Any,
    ) -> list[Any]:
        """`question(X, y, *arguments)` of the chosen rows of blocks that have some."""
        found = self.chunks.map(_asked, choose, question, arguments, each=self.starts)
        return [answer for answer in found if answer is not None]


def _asked(
    block: Block,
    choose: Callable[[int, int], BoolArray],
    question: Callable[..., Any],
    arguments: tuple[Any, ...],
    start: int,
) -> Any:
    X, y = block
    rows = np.flatnonzero(choose(start, len(X)))
    if len(rows) == 0:
        return None
    return question(_safe_indexing(X, rows), None if y is None else y[rows], *arguments)
