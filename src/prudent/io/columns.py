"""One column at a time: is it numbers or words, and which?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute

from prudent.core.types import FloatArray
from prudent.io.errors import TableError, counted, shown, thousands
from prudent.io.table import MISSING_WORDS, Table, TableSource, is_number, is_text

FEW_WORDS = 20
# Fewer rows than this are often all distinct by chance.
FEWEST_IDENTIFIERS = 20
# Different words of a column that are kept in memory; no message needs more.
MOST_WORDS = 100_000


@dataclass
class Words:
    """Words of a text column, counted part by part.

    Attributes
    ----------
    name : str
        Name of the column.
    decimal : str
        Decimal mark of its numbers.
    counts : Counter
        Rows of each word; "" are empty cells.
    more_numbers, more_words : int
        Rows of words beyond the first `MOST_WORDS`.
    """

    name: str
    decimal: str
    counts: Counter[str] = field(default_factory=Counter)
    more_numbers: int = 0
    more_words: int = 0
    _places: dict[str, Callable[[], str]] = field(default_factory=dict)

    def add(self, part: Table) -> None:
        """Count the words of one part."""
        codes, distinct = part.encoded(self.name)
        rows = np.bincount(codes, minlength=len(distinct)).tolist()
        for code, (word, count) in enumerate(zip(distinct.tolist(), rows, strict=True)):
            if word == "" or self._is_word(word):
                kind = "word" if word else "empty"
                self._places.setdefault(kind, _place(part, codes, code))
            if word in self.counts or len(self.counts) < MOST_WORDS:
                self.counts[word] += count
            elif self._is_word(word):
                self.more_words += count
            else:
                self.more_numbers += count

    def _is_word(self, word: str) -> bool:
        return word not in MISSING_WORDS and not is_number(word, self.decimal)

    @property
    def hold_numbers(self) -> bool:
        """Whether every cell is a number or missing."""
        return self.more_words == 0 and not any(map(self._is_word, self.counts))

    @property
    def levels(self) -> tuple[str, ...]:
        """Different words that do not mean "missing", sorted."""
        return tuple(sorted(self.counts.keys() - MISSING_WORDS))

    @property
    def are_all_different(self) -> bool:
        """Whether no word occurs twice: such a column names the rows."""
        counts = [self.counts[word] for word in self.levels]
        return self.more_words > 0 or (
            len(counts) >= FEWEST_IDENTIFIERS and max(counts) == 1
        )

    @property
    def are_decimal_commas(self) -> bool:
        """Whether every word would be a number if its comma were the decimal mark."""
        words = [word for word in self.counts if self._is_word(word)]
        return bool(words) and all(is_number(word, ",") for word in words)

    @property
    def mixed(self) -> str | None:
        """Say where the words are, if most cells are numbers."""
        present = {w: n for w, n in self.counts.items() if w not in MISSING_WORDS}
        bad = {w: n for w, n in present.items() if self._is_word(w)}
        n_bad, n_present = sum(bad.values()), sum(present.values())
        if self.more_words or 2 * n_bad >= n_present:
            return None
        return (
            f"column {shown(self.name)} is taken for text: "
            f"{shown(next(iter(bad)))} at {self._places['word']()} "
            f"({thousands(n_bad)} of {counted(n_present, 'value')} "
            f"{'is' if n_bad == 1 else 'are'} no number)"
        )

    @property
    def first_empty(self) -> str:
        """Where the first empty cell is."""
        return self._places["empty"]()

    def not_numbers(self) -> TableError:
        """Say which cell is not a number, and what to do with the column."""
        present = {w: n for w, n in self.counts.items() if w not in MISSING_WORDS}
        bad = {w: n for w, n in present.items() if self._is_word(w)}
        n_bad = sum(bad.values()) + self.more_words
        n_present = sum(present.values()) + self.more_words + self.more_numbers
        if bad and all(is_number(word, ",") for word in bad):
            advice = "use --decimal ,"
        elif len(present) <= FEW_WORDS:
            advice = "use --categorical onehot (or drop)"
        elif all(count == 1 for count in present.values()):
            advice = f"It looks like an identifier: use --drop {self.name}"
        else:
            advice = f"use --drop {self.name} or --categorical drop"
        verb = "is" if n_bad == 1 else "are"
        noun = "a number" if n_bad == 1 else "numbers"
        first = next(iter(bad), "…")
        return TableError(
            f"column {shown(self.name)} is text: {shown(first)} at "
            f"{self._places['word']()} ({thousands(n_bad)} of "
            f"{counted(n_present, 'value')} {verb} not {noun}). {advice}"
        )


def read_words(source: TableSource, names: Sequence[str]) -> dict[str, Words]:
    """Count the words of some columns in one pass."""
    found: dict[str, Words] = {}
    for part in source.parts(names) if names else ():
        for name in names:
            found.setdefault(name, Words(name, part.decimal)).add(part)
    return found


def numbers(table: Table, name: str) -> FloatArray:
    """Return a column of numbers, missing cells as NaN."""
    column = table.columns[name]
    if is_text(column.type):
        codes, distinct = table.encoded(name)
        values = np.array(
            [
                float(word.replace(table.decimal, "."))
                if is_number(word, table.decimal)
                else np.nan
                for word in distinct.tolist()
            ]
        )
        return values[codes]
    # Not safe: integers beyond 2**53 lose digits rather than stop the reading.
    return np.asarray(compute.cast(column, pa.float64(), safe=False).to_numpy())


def word_codes(table: Table, name: str, levels: tuple[str, ...]) -> FloatArray:
    """Position of each word in `levels`, which are sorted; missing cells are NaN.

    A word that is not among them gets a code beyond: what stands for it is decided
    by what comes behind.
    """
    codes, distinct = table.encoded(name)
    known = np.array(levels)
    places = np.searchsorted(known, distinct)
    unknown = known[np.minimum(places, len(known) - 1)] != distinct
    values = np.where(unknown, len(known), places).astype(np.float64)
    values[np.isin(distinct, MISSING_WORDS)] = np.nan
    return values[codes]


def _place(part: Table, codes: NDArray[np.intp], code: int) -> Callable[[], str]:
    """Look up later where a word of a part is: finding the line takes a while."""
    return lambda: part.place(int(np.argmax(codes == code)))
