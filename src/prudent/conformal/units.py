"""Powers of two by which the columns of an augmented bag are divided.

The units are a symmetric function of all n + 1 rows, so that ranks stay exact, yet
they are the same for nearly all new rows, so that tables are built once for each
vector of units. Scaling by powers of two loses no digit.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from prudent.core.types import BoolArray, FloatArray, IntArray
from prudent.rules.scores import Counts

# Rows beyond are clipped, by a fixed rule that treats all rows alike, so that
# differences and squares of scaled values stay finite.
LARGEST = 2.0**1000
# log2 of a standard deviation is rounded half up, with a margin: the halves
# themselves (a variance of exactly 2) would fall by rounding errors.
MARGIN = 1e-9
MOST_TABLES = 8
# New rows that are answered for at once.
MOST_TOGETHER = 1024
# Entries of the largest array of new rows and training rows held at once, and arrays
# of distances and scores that are at work at once.
BLOCK_ENTRIES, ARRAYS = 2**18, 8
DROPPED = -(2**30)


@dataclass(frozen=True)
class Columns:
    """Columns of the training rows, by what their units need.

    Attributes
    ----------
    rows : ndarray of shape (n, d)
        Training rows minus `origin`.
    origin : ndarray of shape (d,)
        The first training row.
    mean, norm : ndarray of shape (d,)
        Mean of each column of `rows`, and its Euclidean norm about that mean.
    """

    rows: FloatArray
    origin: FloatArray
    mean: FloatArray
    norm: FloatArray

    @classmethod
    def from_rows(cls, rows: FloatArray) -> Columns:
        """Columns of training rows."""
        rows = np.clip(rows, -LARGEST, LARGEST)
        origin = rows[0]
        centred = rows - origin
        largest = np.abs(centred).max(axis=0)
        safe = np.where(largest > 0, largest, 1.0)
        # Of fractions of the largest, lest a square overflow or vanish.
        fractions = centred / safe
        mean = fractions.mean(axis=0)
        norm = safe * np.sqrt(np.square(fractions - mean).sum(axis=0))
        return cls(centred, origin, safe * mean, norm)

    @property
    def deviation(self) -> FloatArray:
        """Standard deviation of each training column."""
        return self.norm / np.sqrt(len(self.rows))

    def exponents(self, rows: FloatArray | None = None) -> IntArray:
        """log2 of the units of the columns of the bag that each row completes.

        `rows` (m, d) are new rows minus the origin; None: the bag is the training
        rows. A new value x changes the sum of squares about the mean by
        n / (n + 1) (x - mean)^2, and the unit is the power of two next to the standard
        deviation of the n + 1 values.

        Returns
        -------
        ndarray of int, shape (m, d) or (d,)
            `DROPPED` for a column of one value.
        """
        n = len(self.rows)
        if rows is None:
            deviation = self.deviation
        else:
            new = np.sqrt(n / (n + 1)) * np.abs(rows - self.mean)
            deviation = np.hypot(self.norm, new) / np.sqrt(n + 1)
        varies = deviation > 0
        logs = np.log2(deviation, out=np.zeros_like(deviation), where=varies)
        rounded = np.floor(logs + (0.5 + MARGIN)).astype(np.intp)
        return np.where(varies, rounded, DROPPED)

    def centre(self, rows: FloatArray) -> FloatArray:
        """New rows minus the origin."""
        return np.clip(rows, -LARGEST, LARGEST) - self.origin


def kept_columns(exponents: IntArray) -> BoolArray:
    """Columns that vary; the first if none does, so that every score ties."""
    kept = exponents != DROPPED
    if not kept.any():
        kept[0] = True
    return kept


def in_units(rows: FloatArray, exponents: IntArray) -> FloatArray:
    """Centred rows in the units 2^exponents, without the columns dropped."""
    kept = kept_columns(exponents)
    shift = np.where(exponents[kept] == DROPPED, 0, -exponents[kept])
    return np.ldexp(rows[:, kept], shift)


def blocks(n_rows: int, entries: int) -> Iterator[slice]:
    """Slices of new rows, each of which needs so many entries."""
    step = max(BLOCK_ENTRIES // entries, 1)
    return (slice(start, start + step) for start in range(0, n_rows, step))


class ByUnits:
    """Models of training rows, one for each vector of units that a bag may have.

    Pickled as its rows and settings: models are as large, and follow from them.
    """

    rows: FloatArray

    def _learn(self, rows: FloatArray) -> Any:
        """The model of training rows, in the units of a bag."""
        raise NotImplementedError

    def _prepare(self) -> None:
        """Learn the model in the units of the training rows, lest errors come late."""
        self._columns = Columns.from_rows(self.rows)
        self._learned: OrderedDict[bytes, Any] = OrderedDict()
        self._units = self._columns.exponents()
        self._model_in(self._units)

    def _model_in(self, exponents: IntArray) -> Any:
        """The model in the units 2^exponents."""
        key = exponents.tobytes()
        if key not in self._learned:
            self._learned[key] = self._learn(in_units(self._columns.rows, exponents))
        self._learned.move_to_end(key)
        while len(self._learned) > self._most_tables():
            self._learned.popitem(last=False)
        return self._learned[key]

    def _most_tables(self) -> int:
        """How many models are kept, 1 at least."""
        return MOST_TABLES

    def _counts(
        self, rows: FloatArray, shape: tuple[int, ...], ask: Callable[..., Counts]
    ) -> Counts:
        """Counts by `ask`(model, rows in its units, positions), of `shape`.

        New rows (m, d) whose bags have the same units are asked for together.
        """
        larger, equal = np.empty((2, *shape), dtype=np.intp)
        centred = self._columns.centre(rows)
        exponents = self._columns.exponents(centred)
        alike: dict[bytes, list[int]] = {}
        for position, units in enumerate(exponents):
            alike.setdefault(units.tobytes(), []).append(position)
        for members in alike.values():
            units = exponents[members[0]]
            for start in range(0, len(members), MOST_TOGETHER):
                places = np.array(members[start : start + MOST_TOGETHER])
                scaled = in_units(centred[places], units)
                counted = ask(self._model_in(units), scaled, places)
                larger[places], equal[places] = counted.below, counted.equal
        return Counts(larger, equal)

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in vars(self).items() if not k.startswith("_")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._prepare()


def damped(scores: FloatArray) -> FloatArray:
    """Sign times log(1 + size): scores of unlike spread on one scale."""
    return np.copysign(np.log1p(np.abs(scores)), scores)
