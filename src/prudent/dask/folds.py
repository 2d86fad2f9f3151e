"""Folds of rows that lie in blocks, whatever the blocks are.

The fold of a row depends on its class and values: equal rows share one, and neither
their order nor the blocks matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.calibration.reading import row_keys
from prudent.core.rows import Block

Draws = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class DrawnRows:
    """Rows with a number in 0..2^64 - 1 each that only their own values determine."""

    rows: Block
    draws: Draws


@dataclass(frozen=True, slots=True)
class Deal:
    """Rule that gives every draw a fold, and every class rows in all folds.

    A draw goes to the fold of its remainder; the least ones of each class are dealt
    in order, so that a class with few distinct rows is spread as well.
    """

    n_folds: int
    dealt: Draws  # sorted draws with a fold of their own
    folds: NDArray[np.intp]  # fold of each of them

    @classmethod
    def of(cls, least: Sequence[Sequence[Draws]], n_folds: int) -> Deal:
        """Deal from the `least_draws` of every block.

        It has as many folds as the class with the fewest distinct rows has of those,
        `n_folds` at most.
        """
        by_class = [
            np.unique(np.concatenate(blocks))[:n_folds]
            for blocks in zip(*least, strict=True)
        ]
        n_folds = min(n_folds, *(len(draws) for draws in by_class))
        dealt = np.concatenate([draws[:n_folds] for draws in by_class])
        folds = np.tile(np.arange(n_folds), len(by_class))
        order = np.argsort(dealt)
        return cls(n_folds, dealt[order], folds[order])

    def fold_of(self, draws: Draws) -> NDArray[np.intp]:
        """Fold of each draw, 0..n_folds - 1."""
        place = np.searchsorted(self.dealt, draws).clip(max=len(self.dealt) - 1)
        remainder = (draws % np.uint64(self.n_folds)).astype(np.intp)
        return np.where(self.dealt[place] == draws, self.folds[place], remainder)


def with_draws(rows: Block | None, seed: int) -> DrawnRows | None:
    """Draw for every row: a keyed hash of its class and values."""
    if rows is None:
        return None
    # Adding 0 makes -0.0 and 0.0, which are equal, the same bytes.
    keys = (
        np.column_stack([rows.codes, row_keys(rows.X)]).astype("<f8", order="C") + 0.0
    )
    data, width = keys.tobytes(), keys.itemsize * keys.shape[1]
    key = seed.to_bytes(8, "little")
    digests = [
        blake2b(data[i : i + width], digest_size=8, key=key).digest()
        for i in range(0, len(data), width)
    ]
    return DrawnRows(rows, np.frombuffer(b"".join(digests), dtype="<u8"))


def least_draws(drawn: DrawnRows | None, n_classes: int, n: int) -> list[Draws]:
    """The least `n` distinct draws of each class."""
    if drawn is None:
        return [np.zeros(0, dtype=np.uint64)] * n_classes
    codes = drawn.rows.codes
    return [np.unique(drawn.draws[codes == k])[:n] for k in range(n_classes)]


def dealt(drawn: DrawnRows | None, deal: Deal) -> tuple[Block, NDArray[Any]] | None:
    """Rows of a block and the fold of each."""
    return None if drawn is None else (drawn.rows, deal.fold_of(drawn.draws))
