"""The rows of blocks by their number, as those held out and those learned from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from prudent.core.types import BoolArray, IntArray
from prudent.dask.chunks import Block, Chunks

#: Rows that a classifier or detector learns from, at most: they must fit one machine.
#: What is promised does not depend on it.
MAX_FIT_ROWS = 100_000

#: Which rows of a block are meant: a bit each.
Mask = NDArray[np.uint8]


def masks(positions: IntArray, sizes: Sequence[int]) -> list[Mask]:
    """Which rows of each block, of these sizes, stand at the positions."""
    chosen = np.zeros(sum(sizes), dtype=bool)
    chosen[positions] = True
    return [np.packbits(own) for own in np.split(chosen, np.cumsum(sizes)[:-1])]


def chosen(mask: Mask, n_rows: int) -> BoolArray:
    """Which of the rows of a block a mask tells."""
    return np.unpackbits(mask, count=n_rows) == 1


@dataclass(frozen=True, slots=True, eq=False)
class NumberedRows:
    """Blocks of rows, of known sizes."""

    chunks: Chunks
    sizes: Sequence[int]

    @property
    def n_rows(self) -> int:
        """Rows of all blocks: at least 2, so that one can be held out."""
        n_rows = sum(self.sizes)
        if n_rows < 2:
            raise ValueError(
                f"found {n_rows} sample(s) in all blocks: at least 2 are needed, one "
                "to learn from and one to hold out."
            )
        return n_rows

    def ask(
        self, positions: IntArray, question: Callable[..., Any], *arguments: Any
    ) -> list[Any]:
        """`question(X, y, *arguments)` of the chosen rows of blocks that have some."""
        own = masks(positions, self.sizes)
        found = self.chunks.map(_asked, question, arguments, each=own)
        return [answer for answer in found if answer is not None]

    def sample(self, positions: IntArray) -> tuple[Any, NDArray[Any] | None]:
        """The first `MAX_FIT_ROWS` of these rows and their labels, in this order."""
        positions = positions[:MAX_FIT_ROWS]
        parts, labels = zip(*self.ask(positions, _pair), strict=True)
        if hasattr(parts[0], "columns"):
            import pandas

            X: Any = pandas.concat(parts)
        else:
            X = np.concatenate(parts)
        order = np.argsort(np.argsort(positions))
        y = None if labels[0] is None else np.concatenate(labels)[order]
        return _safe_indexing(X, order), y


def _asked(
    block: Block, question: Callable[..., Any], arguments: tuple[Any, ...], mask: Mask
) -> Any:
    X, y = block
    rows = np.flatnonzero(chosen(mask, len(X)))
    if len(rows) == 0:
        return None
    return question(_safe_indexing(X, rows), None if y is None else y[rows], *arguments)


def _pair(X: Any, y: Any) -> Block:
    return X, y
