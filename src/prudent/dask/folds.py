"""Folds of rows that lie in blocks, whatever the blocks are.

The fold of a row depends on its class and values: equal rows share one, and neither
their order nor the blocks matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from prudent.calibration.ascent import Trial
from prudent.calibration.categorical import row_keys

Draws = NDArray[np.uint64]


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


def with_draws(trial: Trial, seed: int) -> tuple[Trial, Draws]:
    """Rows with a number in 0..2^64 - 1 each: a keyed hash of class and values."""
    rows = trial.fitted
    if rows is None:
        return trial, np.zeros(0, dtype=np.uint64)
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
    return trial, np.frombuffer(b"".join(digests), dtype="<u8")


def least_draws(drawn: tuple[Trial, Draws], n_classes: int, n: int) -> list[Draws]:
    """The least `n` distinct draws of each class."""
    trial, draws = drawn
    codes = draws if trial.fitted is None else trial.fitted.codes
    return [np.unique(draws[codes == k])[:n] for k in range(n_classes)]
