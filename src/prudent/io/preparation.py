"""What must be known of a table before its use, and how it becomes numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from prudent.core.types import BoolArray, FloatArray, IntArray
from prudent.io.errors import TableError, counted, listed, shown, thousands
from prudent.io.table import (
    MISSING_WORDS,
    Table,
    TableSource,
    check_column,
    gathered,
    is_number,
)

FEW_WORDS = 20
# Fewer rows than this are often all distinct by chance.
FEWEST_IDENTIFIERS = 20
# Different words of a column that are kept in memory; no message needs more.
MOST_WORDS = 100_000
# Rows on which collinear and identifier-like columns are looked for: notes only.
INSPECTED_ROWS = 20_000


@dataclass(frozen=True, slots=True)
class Column:
    """How one column becomes numbers."""

    name: str
    # Words of a text column, sorted, which become their positions; () for a number.
    levels: tuple[str, ...] = ()

    def read(self, part: Table) -> FloatArray:
        """Return numbers or codes of words, NaN for missing cells."""
        if self.levels:
            return part.codes(self.name, self.levels)
        return part.numbers(self.name)


@dataclass(frozen=True, slots=True)
class Preparation:
    """Feature columns of the training table, to be read the same from later ones."""

    columns: tuple[Column, ...]
    gaps: bool = False  # missing cells are allowed: what comes behind knows what to do

    @property
    def names(self) -> list[str]:
        """Columns of the table, in the order of the array's columns."""
        return [column.name for column in self.columns]

    @property
    def is_text(self) -> tuple[bool, ...]:
        """Columns that hold codes of words."""
        return tuple(bool(column.levels) for column in self.columns)

    def transform(self, table: Table) -> FloatArray:
        """Return the features of a table, its columns matched by name, once checked."""
        self.check(table)
        return self.read(table)

    def check(self, source: TableSource) -> None:
        """Look through a table, all of it, before its features are read.

        A TableError names a column that is absent, or that holds text in the place of
        numbers, infinite or (without `gaps`) missing values.
        """
        for name in self.names:
            check_column(name, source.names)
        look = gathered(source, self.names, lambda: Look(self.columns))
        for words in look.words.values():
            if not words.hold_numbers:
                raise words.not_numbers()
        look.refuse_infinite()
        if not self.gaps:
            look.refuse_missing()

    def read(self, part: Table) -> FloatArray:
        """Return the features: numbers, codes of words, NaN for missing cells."""
        X = np.empty((part.n_rows, len(self.columns)))
        for j, column in enumerate(self.columns):
            X[:, j] = column.read(part)
        return X

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Self:
        """Read back what `dataclasses.asdict` gave, from a model file."""
        columns = tuple(
            Column(c["name"], tuple(c["levels"])) for c in stored["columns"]
        )
        texts = [text for column in columns for text in (column.name, *column.levels)]
        if not texts or not all(isinstance(text, str) for text in texts):
            raise TypeError("columns and levels have names.")
        return cls(columns, bool(stored["gaps"]))


class Look:
    """Counts and extremes of columns, and the words in them, gathered part by part.

    A text column without levels is one of numbers until a word is found in it.
    """

    def __init__(
        self,
        columns: Sequence[Column],
        label: str | None = None,
        most_labels: int | None = None,
        only: Callable[[Table], BoolArray] | None = None,
    ) -> None:
        self.columns = columns
        self._only = only
        self.n_rows = 0
        self.missing: IntArray = np.zeros(len(columns), dtype=np.intp)
        self.infinite: IntArray = np.zeros(len(columns), dtype=np.intp)
        self.low = np.full(len(columns), np.inf)
        self.high = np.full(len(columns), -np.inf)
        # Every k-th row, k a power of two, at most 20 000 rows.
        self.inspected = np.empty((0, len(columns)))
        self.words: dict[str, Words] = {}  # of text columns without levels
        self.labels = None if label is None else Words(label, most=most_labels)
        self._stride = 1
        self._infinite_places: dict[int, Callable[[], str]] = {}

    def add(self, part: Table) -> None:
        """Take a part into account."""
        if self._only is not None:
            part = part.only(self._only(part))
        if not part.n_rows:
            return
        picked = slice(-self.n_rows % self._stride, None, self._stride)
        inspected = []
        for j, column in enumerate(self.columns):
            values = self._values(part, column)
            inspected.append(values[picked])
            infinite = np.isinf(values)
            if infinite.any():
                self.infinite[j] += np.count_nonzero(infinite)
                place = _place(part, infinite)
                self._infinite_places.setdefault(j, place)
            self.missing[j] += np.count_nonzero(np.isnan(values))
            self.low[j] = np.fmin(self.low[j], np.fmin.reduce(values))
            self.high[j] = np.fmax(self.high[j], np.fmax.reduce(values))
        self.inspected = np.vstack([self.inspected, np.column_stack(inspected)])
        while len(self.inspected) > INSPECTED_ROWS:
            self.inspected = self.inspected[::2]
            self._stride *= 2
        self.n_rows += part.n_rows
        if self.labels is not None:
            self.labels.add(part)

    def _values(self, part: Table, column: Column) -> FloatArray:
        name = column.name
        if not column.levels and part.is_text(name):
            words = self.words.setdefault(name, Words(name, part.decimal))
            words.add(part)
            if not words.hold_numbers:
                return np.full(part.n_rows, np.nan)
        return column.read(part)

    def gaps(self, column: Column) -> int:
        """Missing cells of a column, which may be found to hold words by now."""
        j = self._position(column)
        if column.levels and not self.columns[j].levels:
            return sum(self.words[column.name].counts[word] for word in MISSING_WORDS)
        return int(self.missing[j])

    def is_alike(self, column: Column) -> bool:
        """Whether a column has one value in every row, or none in any."""
        j, gaps = self._position(column), self.gaps(column)
        if column.levels and not self.columns[j].levels:
            return gaps == 0 and len(column.levels) == 1
        # A column of one value and gaps still tells where the gaps are.
        alike = gaps == 0 and self.low[j] == self.high[j]
        return bool(alike or gaps == self.n_rows)

    def sample_of(self, columns: Sequence[Column]) -> FloatArray:
        """Inspected rows in some columns of numbers, without those with gaps."""
        X = self.inspected[:, [self._position(column) for column in columns]]
        return X[~np.isnan(X).any(axis=1)]

    def refuse_infinite(self, columns: Sequence[Column] | None = None) -> None:
        """Raise `TableError` if there is an infinite number in some of the columns."""
        for column in self.columns if columns is None else columns:
            j = self._position(column)
            if self.infinite[j] and not column.levels:
                raise TableError(
                    f"column {shown(column.name)} has "
                    f"{counted(int(self.infinite[j]), 'infinite value')} "
                    f"(first at {self._infinite_places[j]()}). Correct the cells or "
                    f"use --drop {column.name}"
                )

    def refuse_missing(self, columns: Sequence[Column] | None = None) -> None:
        """Raise `TableError` if there is a missing cell in some of the columns."""
        some = self.columns if columns is None else columns
        gaps = {column.name: self.gaps(column) for column in some}
        where = [f"{name}: {count}" for name, count in gaps.items() if count]
        if where:
            raise TableError(
                f"{counted(sum(gaps.values()), 'missing value')} in "
                f"{counted(len(where), 'column')} ({listed(where)}). "
                "use --missing fill or drop-rows"
            )

    def _position(self, column: Column) -> int:
        return next(j for j, c in enumerate(self.columns) if c.name == column.name)


@dataclass
class Words:
    """Words of a text column, counted part by part; "" are empty cells."""

    name: str
    decimal: str = "."
    most: int | None = None
    counts: Counter[str] = field(default_factory=Counter)
    # Rows of words beyond the `most` different ones that are kept.
    more_numbers: int = 0
    more_words: int = 0
    hold_numbers: bool = True
    _places: dict[str, Callable[[], str]] = field(default_factory=dict)

    def add(self, part: Table) -> None:
        """Count the words of one part."""
        most = MOST_WORDS if self.most is None else self.most
        codes, distinct = part.encoded(self.name)
        rows = np.bincount(codes, minlength=len(distinct)).tolist()
        for code, (word, count) in enumerate(zip(distinct.tolist(), rows, strict=True)):
            is_word = self._is_word(word)
            self.hold_numbers &= not is_word
            if word == "" or is_word:
                self._places.setdefault(
                    "word" if word else "empty", _place(part, codes == code)
                )
            known = word in self.counts or word in MISSING_WORDS
            if known or len(self.counts) < most:
                self.counts[word] += count
            elif is_word:
                self.more_words += count
            else:
                self.more_numbers += count

    def _is_word(self, word: str) -> bool:
        return word not in MISSING_WORDS and not is_number(word, self.decimal)

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
    def first_empty(self) -> str:
        """Where the first empty cell is."""
        return self._places["empty"]()

    def _told(self) -> tuple[Counter[str], dict[str, int], str]:
        """Cells that are there, those that are words, and where and how many."""
        present = Counter(
            {w: n for w, n in self.counts.items() if w not in MISSING_WORDS}
        )
        bad = {word: n for word, n in present.items() if self._is_word(word)}
        n_bad = sum(bad.values()) + self.more_words
        n_present = present.total() + self.more_words + self.more_numbers
        where = (
            f"{shown(next(iter(bad), '…'))} at {self._places['word']()} "
            f"({thousands(n_bad)} of {counted(n_present, 'value')} "
            f"{'is' if n_bad == 1 else 'are'}"
        )
        return present, bad, where

    @property
    def mixed(self) -> str | None:
        """Say where the words are, if most cells are numbers."""
        present, bad, where = self._told()
        if self.more_words or 2 * sum(bad.values()) >= present.total():
            return None
        return f"column {shown(self.name)} is taken for text: {where} no number)"

    def not_numbers(self) -> TableError:
        """Say which cell is not a number, and what to do with the column."""
        present, _, where = self._told()
        if self.are_decimal_commas:
            advice = "use --decimal ,"
        elif len(present) <= FEW_WORDS:
            advice = "use --categorical onehot (or drop)"
        elif all(count == 1 for count in present.values()):
            advice = f"It looks like an identifier: use --drop {self.name}"
        else:
            advice = f"use --drop {self.name} or --categorical drop"
        noun = "a number" if where.endswith("is") else "numbers"
        return TableError(
            f"column {shown(self.name)} is text: {where} not {noun}). {advice}"
        )


def _place(part: Table, found: BoolArray) -> Callable[[], str]:
    """Look up later where the first of some rows is: finding the line takes a while."""
    return lambda: part.place(int(np.argmax(found)))
