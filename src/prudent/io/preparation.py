"""What must be known of a table before its use, and how it becomes numbers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
import pyarrow as pa

from prudent.core.types import BoolArray, FloatArray
from prudent.io.errors import TableError, counted, listed, shown, thousands, typed
from prudent.io.table import (
    MISSING_WORDS,
    Table,
    TableSource,
    check_column,
    gathered,
    is_number,
    numbers_or_table,
)

FEW_WORDS = 20
# Fewer rows than this are often all distinct by chance.
FEWEST_IDENTIFIERS = 20
# Different words of a column that are kept in memory; no message needs more.
MOST_WORDS = 100_000
# Words of a column that are looked at to see whether they are times.
MOST_INSPECTED_WORDS = 1000
# Rows on which collinear and identifier-like columns are looked for: notes only.
INSPECTED_ROWS = 20_000
MISSING_ADVICE = "Use --missing fill or drop-rows"
# Of a column that is read as numbers, whatever the options say.
NUMBERS_ADVICE = "It has to hold numbers: correct such cells"


@dataclass(frozen=True, slots=True)
class Column:
    """One feature column."""

    name: str
    is_text: bool = False  # it holds words, and not numbers


@dataclass(frozen=True, slots=True)
class Preparation:
    """Feature columns of the training table, to be read the same from later ones."""

    columns: tuple[Column, ...]
    gaps: bool = False  # missing cells are allowed: what comes behind knows what to do
    # Columns that are no features: a missing cell there is a value like others.
    beside: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """Columns of the table, in the order of the array's columns."""
        return [column.name for column in self.columns]

    @property
    def is_text(self) -> tuple[bool, ...]:
        """Columns that hold words."""
        return tuple(column.is_text for column in self.columns)

    def transform(self, table: Table) -> FloatArray | pa.Table:
        """Return the features, once checked: an array, or by name with words."""
        self.check(table)
        return numbers_or_table(self.frame(table))

    def check(self, source: TableSource, advice: str = MISSING_ADVICE) -> None:
        """Look through a table, all of it, before its features are read.

        A TableError names a column that is absent, or that holds text in the place of
        numbers, infinite or (without `gaps`) missing values, with `advice` on the last.
        """
        for name in self.names:
            check_column(name, source.names)
        contents, _ = look_through(source, self.columns)
        for cells in contents:
            if cells.text is not None and not cells.column.is_text:
                raise cells.text.not_numbers(NUMBERS_ADVICE)
        refuse_infinite(contents, NUMBERS_ADVICE)
        if not self.gaps:
            own = (c for c in contents if c.column.name not in self.beside)
            refuse_missing(own, advice)

    def frame(self, part: Table) -> pa.Table:
        """Return the features by name: numbers (NaN) and words (null for missing)."""
        return pa.table(
            {
                column.name: part.words_or_null(column.name)
                if column.is_text
                else part.numbers_or_nan(column.name)
                for column in self.columns
            }
        )


@dataclass
class Cells:
    """What the cells of one column hold, counted part by part.

    One that is not known to hold words is one of numbers until a word is found in it.
    """

    column: Column
    n_rows: int = 0
    low: float = np.inf
    high: float = -np.inf
    words: Words | None = None  # of a column of text
    # Every k-th number, k a power of two, at most 20 000 of them.
    inspected: FloatArray = field(default_factory=lambda: np.empty(0))
    _stride: int = 1
    _n_missing: int = 0
    n_infinite: int = 0
    infinite_place: Callable[[], str] | None = None  # of the first

    def add(self, part: Table) -> None:
        """Count the cells of one part."""
        values = self._values(part)
        picked = values[-self.n_rows % self._stride :: self._stride]
        self.inspected = np.append(self.inspected, picked)
        while len(self.inspected) > INSPECTED_ROWS:
            self.inspected = self.inspected[::2]
            self._stride *= 2
        infinite = np.isinf(values)
        if infinite.any():
            self.n_infinite += int(infinite.sum())
            self.infinite_place = self.infinite_place or _place(part, infinite)
        self._n_missing += int(np.isnan(values).sum())
        self.low = np.fmin(self.low, np.fmin.reduce(values))
        self.high = np.fmax(self.high, np.fmax.reduce(values))
        self.n_rows += part.n_rows

    def _values(self, part: Table) -> FloatArray:
        name = self.column.name
        if self.column.is_text or part.is_text(name):
            self.words = self.words or Words(name, part.decimal)
            self.words.add(part)
            if self.text is not None:
                return np.full(part.n_rows, np.nan)
        return part.numbers(name)

    @property
    def text(self) -> Words | None:
        """The words, where they make a column of text."""
        if self.words is None or self.column.is_text:
            return self.words
        return None if self.words.hold_numbers else self.words

    @property
    def decided(self) -> Column:
        """The column, as one of words where there are any."""
        return Column(self.column.name, is_text=self.text is not None)

    @property
    def gaps(self) -> int:
        """Missing cells."""
        if self.text is not None:
            return sum(self.text.counts[word] for word in MISSING_WORDS)
        return self._n_missing

    @property
    def is_alike(self) -> bool:
        """Whether every row has the same value, or none has any."""
        # A column of one value and gaps still tells where the gaps are.
        if self.text is not None:
            return len(self.text.levels) == (self.gaps == 0)
        alike = self.gaps == 0 and self.low == self.high
        return bool(alike or self.gaps == self.n_rows)


def refuse_infinite(cells: Iterable[Cells], advice: str = "") -> None:
    """Raise `TableError` if there is an infinite number in some of the columns."""
    for column in cells:
        if column.infinite_place is not None and column.text is None:
            name = column.column.name
            own = f"Correct the cells or use --drop {typed(name)}"
            raise TableError(
                f"column {shown(name)} has "
                f"{counted(column.n_infinite, 'infinite value')} "
                f"(first at {column.infinite_place()}). {advice or own}"
            )


def refuse_missing(cells: Iterable[Cells], advice: str = MISSING_ADVICE) -> None:
    """Raise `TableError` if there is a missing cell in some of the columns."""
    gaps = {column.column.name: column.gaps for column in cells if column.gaps}
    if gaps:
        where = [f"{name}: {count}" for name, count in gaps.items()]
        raise TableError(
            f"{counted(sum(gaps.values()), 'missing value')} in "
            f"{counted(len(gaps), 'column')} ({listed(where)}). {advice}"
        )


def look_through(
    source: TableSource,
    columns: Sequence[Column],
    labels: Sequence[str] = (),
    most_labels: int | None = None,
    only: Callable[[Table], BoolArray] | None = None,
) -> tuple[list[Cells], Words | None]:
    """What some columns hold, and the words of the only one of `labels`.

    Of all rows, or of those of a part that `only` tells.
    """

    def look(parts: Iterator[Table]) -> tuple[list[Cells], Words | None]:
        cells = [Cells(column) for column in columns]
        words = [Words(name, most=most_labels, are_labels=True) for name in labels]
        gathering: list[Cells | Words] = [*cells, *words]
        for part in parts:
            kept = part if only is None else part.only(only(part))
            for column in gathering if kept.n_rows else ():
                column.add(kept)
        return cells, words[0] if words else None

    return gathered(source, [*(column.name for column in columns), *labels], look)


@dataclass
class Words:
    """Words of a text column, counted part by part; "" are empty cells."""

    name: str
    decimal: str = "."
    most: int | None = None
    are_labels: bool = False
    counts: Counter[str] = field(default_factory=Counter)
    # Rows of words beyond the `most` different ones that are kept.
    more_numbers: int = 0
    more_words: int = 0
    hold_numbers: bool = True
    _places: dict[str, Callable[[], str]] = field(default_factory=dict)

    def add(self, part: Table) -> None:
        """Count the words of one part."""
        most = MOST_WORDS if self.most is None else self.most
        codes, distinct = (part.labels if self.are_labels else part.encoded)(self.name)
        rows = np.bincount(codes, minlength=len(distinct)).tolist()
        for code, (word, count) in enumerate(zip(distinct.tolist(), rows, strict=True)):
            is_word = self._is_word(word)
            self.hold_numbers &= not is_word
            place = "word" if word else "empty"
            # Once only: the search goes through all rows of the part.
            if (word == "" or is_word) and place not in self._places:
                self._places[place] = _place(part, codes == code)
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
    def are_times(self) -> bool:
        """Whether the words look like dates, or times of a day."""
        return look_like_times(self.levels[:MOST_INSPECTED_WORDS])

    @property
    def time_option(self) -> str:
        """How a column of times is given as one: in ISO 8601, if it is not yet."""
        name = typed(self.name)
        words = self.levels[:MOST_INSPECTED_WORDS]
        spelled = "" if all(map(is_iso_time, words)) else ", written as 2026-03-02"
        return f"--time {name}{spelled}"

    @property
    def are_decimal_commas(self) -> bool:
        """Whether every word would be a number if its comma were the decimal mark."""
        words = [word for word in self.counts if self._is_word(word)]
        return bool(words) and all(is_number(word, ",") for word in words)

    @property
    def first_empty(self) -> str:
        """Where the first empty cell is."""
        return self._places["empty"]()

    def _words_among_cells(self) -> tuple[Counter[str], dict[str, int], str]:
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
        present, bad, where = self._words_among_cells()
        if self.more_words or 2 * sum(bad.values()) >= present.total():
            return None
        return (
            f"column {shown(self.name)} is taken for text: {where} no number); empty "
            "such cells where they stand for none"
        )

    def not_numbers(self, advice: str = "") -> TableError:
        """Say which cell is not a number, and what to do with the column."""
        present, _, where = self._words_among_cells()
        if self.are_decimal_commas:
            advice = "Use --decimal ,"
        elif advice:
            pass
        elif len(present) <= FEW_WORDS:
            advice = "Use --categorical onehot (or drop)"
        elif all(count == 1 for count in present.values()):
            advice = f"It looks like an identifier: use --drop {typed(self.name)}"
        else:
            advice = f"Use --drop {typed(self.name)} or --categorical drop"
        noun = "a number" if where.endswith("is") else "numbers"
        return TableError(
            f"column {shown(self.name)} is text: {where} not {noun}). {advice}"
        )


DATE = r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2})"
TIME = r"\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?(\s?[AaPp][Mm])?(\s?(Z|UTC|[+-]\d{2}:?\d{2}))?"
MOMENT = re.compile(rf"({DATE})([T ]\s*{TIME})?|{TIME}")


def look_like_times(words: Sequence[str]) -> bool:
    """Whether all words are written as dates, times of a day, or both.

    Examples
    --------
    >>> (
    ...     look_like_times(["2024-02-29", "2024-03-01T12:30:00Z"]),
    ...     look_like_times(["3-4"]),
    ... )
    (True, False)
    """
    return bool(words) and all(MOMENT.fullmatch(word) for word in words)


def is_iso_time(word: str) -> bool:
    """Whether a word is a date or a moment as ISO 8601 spells it."""
    try:
        datetime.fromisoformat(word)
    except ValueError:
        return False
    return True


def _place(part: Table, rows: BoolArray) -> Callable[[], str]:
    """Look up later where the first of some rows is: finding the line takes a while."""
    return lambda: part.place(int(np.argmax(rows)))
