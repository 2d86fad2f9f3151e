"""A random choice of rows that every block works out for its own rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Split"]


@dataclass(frozen=True, slots=True)
class Split:
    """Held-out rows and a sample of the others, both drawn without replacement.

    Row i of the table has the i-th number of a keyed stream as its ticket; the rows
    of the smallest tickets are held out, those of the next ones are the sample. A
    ticket depends on key and position alone: not on blocks, workers or order.

    Attributes
    ----------
    key : int
        Of the stream of tickets.
    held_out_to, sampled_to : int
        Largest ticket of a held-out row, and of a row of the sample.
    """

    key: int
    held_out_to: int
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

    def held_out(self, start: int, n_rows: int) -> NDArray[np.bool_]:
        """Which of the rows from position `start` on are held out."""
        return _tickets(self.key, start, n_rows) <= self.held_out_to

    def sampled(self, start: int, n_rows: int) -> NDArray[np.bool_]:
        """Which of the rows from position `start` on belong to the sample."""
        tickets = _tickets(self.key, start, n_rows)
        return (tickets > self.held_out_to) & (tickets <= self.sampled_to)


def _tickets(key: int, start: int, n_rows: int) -> NDArray[np.uint64]:
    """Numbers start, start + 1, ... of the stream; it yields four at a step."""
    stream = np.random.Philox(key=key)
    stream.advance(start // 4)
    return stream.random_raw(start % 4 + n_rows)[start % 4 :]
