"""Decide how a table becomes numbers, a part of it at a time, and read its rows."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from prudent.core.moments import ClassMoments
from prudent.core.types import BoolArray, FloatArray, IntArray
from prudent.io.errors import TableError, counted, listed, shown, thousands, typed
from prudent.io.preparation import (
    FEWEST_IDENTIFIERS,
    Cells,
    Column,
    Preparation,
    Words,
    look_through,
    refuse_infinite,
    refuse_missing,
)
from prudent.io.table import (
    MISSING_WORDS,
    Table,
    TableSource,
    check_column,
    is_number,
    numbers_or_table,
    without_gaps,
)

Missing = Literal["fill", "mean", "drop-rows", "error"]
Categorical = Literal["onehot", "drop", "error"]
# A target of more different numbers is a measurement.
MOST_CLASSES = 50
# Characters of a whole number that is one in 64 bits, whatever its digits.
LONGEST_INTEGER = 18


@dataclass(frozen=True, eq=False)
class Block:
    """Some rows of a table: n of them, in d columns."""

    part: Table
    preparation: Preparation
    codes: IntArray  # (n,): their labels, as positions in `Survey.labels`
    rows: IntArray  # (n,): their positions in the table

    @cached_property
    def X(self) -> FloatArray | pa.Table:
        """The rows as an array, (n, d), where there are no words; else `frame`."""
        return numbers_or_table(self.frame)

    @property
    def frame(self) -> pa.Table:
        """Numbers and words by name, n rows."""
        return self.preparation.frame(self.part)

    def only(self, mask: BoolArray) -> Block:
        """Some of the rows."""
        part = self.part.only(mask)
        return Block(part, self.preparation, self.codes[mask], self.rows[mask])


@dataclass(frozen=True, eq=False)
class Survey:
    """What was found and decided in looking through a table."""

    source: TableSource
    preparation: Preparation
    notes: tuple[str, ...]  # what a reader should know, one sentence each
    constant: tuple[str, ...]  # columns of one value, which are left out
    label: str | None  # column of the labels
    # Distinct labels in the order of their spelling, integers where each of them is
    # one, and the rows of each; without labels one that is empty.
    labels: NDArray[Any]
    counts: IntArray
    n_missing: int  # missing cells of the rows that are used
    missing: Missing  # what becomes of them
    # Which rows of a part are used, and the columns that tell; None for all.
    _only: Callable[[Table], BoolArray] | None
    _reading: Sequence[str]

    @property
    def n_rows(self) -> int:
        """Rows that are used."""
        return int(self.counts.sum())

    @property
    def treatment(self) -> str | None:
        """What is done to words and missing cells; None if there are none."""
        return treatment(self.preparation.is_text, self.n_missing, self.missing)

    @property
    def holds_numbers(self) -> bool:
        """Whether there are no words and no missing cells."""
        return self.n_missing == 0 and not any(self.preparation.is_text)

    def without_rare_classes(self, fewest: int) -> Survey:
        """The same without the rows of classes of fewer rows; a last note names them.

        TableError if fewer than two classes are left.
        """
        rare = self.counts < fewest
        if not rare.any():
            return self
        if len(rare) - rare.sum() < 2:
            raise TableError(
                f"fewer than two classes have {fewest} rows. Ask for fewer rows of a "
                "class"
            )
        label, before, kept = self.label, self._only, self.labels[~rare]
        assert label is not None
        words = kept.astype(str)

        def only(part: Table) -> BoolArray:
            codes, distinct = part.labels(label)
            mask: BoolArray = np.isin(distinct, words)[codes]
            return mask if before is None else mask & before(part)

        names = listed(map(repr, map(str, self.labels[rare].tolist())))
        text = (
            f"{rare.sum()} of {len(rare)} classes have fewer than {fewest} rows and "
            f"are left out: {names}"
        )
        return replace(
            self,
            labels=kept,
            counts=self.counts[~rare],
            notes=(*self.notes, text),
            _only=only,
        )

    def blocks(self) -> Iterator[Block]:
        """Read the rows that are used, in order, a part at a time."""
        words = self.labels.astype(str)
        start = 0
        for part in self.source.parts(self._reading):
            rows = np.arange(start, start + part.n_rows)
            start += part.n_rows
            if self._only is not None:
                kept = self._only(part)
                rows, part = rows[kept], part.only(kept)
            if not part.n_rows:
                continue
            codes = np.zeros(part.n_rows, dtype=np.intp)
            if self.label is not None:
                places, distinct = part.labels(self.label)
                codes = np.searchsorted(words, distinct)[places]
            yield Block(part, self.preparation, codes, rows)

    def moments(
        self, transform: Callable[[pa.Table], Any] | None = None, **options: Any
    ) -> ClassMoments:
        """Moments of all rows, each class by its label.

        `transform` turns words and missing cells into numbers, a block at a time.
        """
        return ClassMoments.reduce(
            ClassMoments.from_arrays(
                block.X if transform is None else transform(block.frame),
                self.labels[block.codes],
                classes=self.labels,
                **options,
            )
            for block in self.blocks()
        )


def survey_table(
    source: TableSource,
    target: str | None,
    *,
    features: Sequence[str] | None = None,
    drop: Collection[str] = (),
    missing: Missing = "fill",
    categorical: Categorical = "onehot",
    keep_identifiers: bool = False,
    handed_along: str | None = None,
) -> Survey:
    """Check a table and decide how it becomes numbers.

    One pass, and one more where rows with missing cells are left out. Without a
    `target` there are no labels, but a column of words may be `handed_along`.
    `features` are all but the labels and those to `drop`. Missing cells are left to
    what fills them later, their rows left out, or refused; words become codes, are left
    out, or refused; text columns in which no word occurs twice are left out, unless
    `keep_identifiers`.
    """
    label = handed_along if target is None else target
    labels = [] if label is None else [label]
    names = _feature_columns(source, labels, features, drop)
    most = sys.maxsize if target is None else None
    cells, words = look_through(source, list(map(Column, names)), labels, most)
    n_available, n_unlabelled = cells[0].n_rows, 0
    if target is not None:
        assert words is not None
        _check_target(words, missing)
        n_unlabelled = words.counts[""]
    cells, notes = _choose_columns(source.name, cells, categorical, keep_identifiers)
    only = None
    refuse_infinite(cells)
    if missing == "error":
        refuse_missing(cells)
    if missing == "drop-rows" and (
        n_unlabelled or any(column.gaps for column in cells)
    ):
        columns = [column.decided for column in cells]
        only = partial(_complete, columns, target)
        cells, words = look_through(source, columns, labels, most, only)
        n_left_out = n_available - cells[0].n_rows
        if n_left_out == n_available:
            raise TableError("every row has a missing value. Use --missing fill")
        if n_left_out > n_unlabelled:
            notes.append("rows with missing values are left out")
        notes.append(f"{counted(n_left_out, 'row')} left out")
    return _concluded(source, cells, words, notes, target, missing, only)


def _complete(columns: Sequence[Column], target: str | None, part: Table) -> BoolArray:
    """Which rows of a part have a label, and no missing cell."""
    kept = np.ones(part.n_rows, dtype=bool)
    if target is not None:
        codes, words = part.labels(target)
        kept &= (words != "")[codes]
    return kept & without_gaps(Preparation(tuple(columns)).frame(part))


def _concluded(
    source: TableSource,
    cells: Sequence[Cells],
    words: Words | None,
    notes: list[str],
    target: str | None,
    missing: Missing,
    only: Callable[[Table], BoolArray] | None,
) -> Survey:
    """Leave out columns of one value, and note what else a reader should know."""
    n_rows = cells[0].n_rows
    kept = [column for column in cells if not column.is_alike]
    constant = {alike.column.name: alike for alike in cells if alike.is_alike}
    if not kept:
        raise TableError(f"every feature column is constant: {listed(constant)}.")
    for name, alike in constant.items():
        why = "has no value at all" if alike.gaps == n_rows else "is constant"
        notes.append(f"column {shown(name)} {why}: dropped")
    columns = tuple(column.decided for column in kept)
    pairs = zip(columns, kept, strict=True)
    numeric = {c.name: contents.inspected for c, contents in pairs if not c.is_text}
    X = np.column_stack([np.empty((len(cells[0].inspected), 0)), *numeric.values()])
    notes += notes_on_features(X, [*numeric], n_rows)
    counts = {"": n_rows} if words is None else words.counts
    spelled = sorted(word for word, count in counts.items() if count)
    sizes = np.array([counts[word] for word in spelled], dtype=np.intp)
    labels: NDArray[Any] = np.array(spelled)
    if target is not None:
        labels = labels_from_words(spelled, target)
        notes += [
            f"{shown(word)} is taken for a class of {shown(target)} "
            f"({counted(count, 'row')}); where the label is not known, empty the cell "
            "and use --missing drop-rows (or, if other cells are missing, take these "
            "rows out)"
            for word, count in zip(spelled, sizes.tolist(), strict=True)
            if word in MISSING_WORDS
        ]
        notes += notes_on_classes(labels.tolist(), sizes.tolist(), len(kept))
    n_missing = sum(column.gaps for column in kept)
    read = [contents.column.name for contents in (kept if only is None else cells)]
    return Survey(
        source=source,
        preparation=Preparation(columns, gaps=n_missing > 0),
        notes=tuple(notes),
        constant=tuple(constant),
        label=None if words is None else words.name,
        labels=labels,
        counts=sizes,
        n_missing=n_missing,
        missing=missing,
        _only=only,
        _reading=read if words is None else [*read, words.name],
    )


def _feature_columns(
    source: TableSource,
    labels: Sequence[str],
    features: Sequence[str] | None,
    drop: Collection[str],
) -> list[str]:
    known = source.names
    for name in (*labels, *(features or ()), *drop):
        check_column(name, known)
    left_out = {*labels, *drop}
    wanted = dict.fromkeys(features or known)  # each once, however often it is named
    names = [name for name in wanted if name not in left_out]
    if not names:
        raise TableError(
            f"{source.name} has no feature column left. "
            "Its columns are the target or dropped"
        )
    return names


def _check_target(words: Words, missing: Missing) -> None:
    """Refuse one class, a continuous target, and empty cells unless rows may go."""
    present = sorted(words.counts.keys() - {""})
    if not present:
        raise TableError(f"target {shown(words.name)} is empty in every row.")
    count = words.counts[""]
    if count and missing != "drop-rows":
        raise TableError(
            f"{counted(count, 'row')} {'has' if count == 1 else 'have'} no target "
            f"{shown(words.name)} (first at {words.first_empty}). "
            "Use --missing drop-rows"
        )
    if words.more_words:
        raise TableError(
            f"target {shown(words.name)} has more than {thousands(len(present))} "
            "different words: prudent classifies. Name another --target"
        )
    labels_from_words(present, words.name)


def _choose_columns(
    table: str,
    cells: Sequence[Cells],
    categorical: Categorical,
    keep_identifiers: bool,
) -> tuple[list[Cells], list[str]]:
    chosen: list[Cells] = []
    notes: list[str] = []
    for of_column in cells:
        name, text = of_column.column.name, of_column.text
        if text is None:
            chosen.append(of_column)
        elif categorical == "error" or text.are_decimal_commas:
            raise text.not_numbers()
        elif categorical == "drop":
            notes.append(f"column {shown(name)} is text: dropped")
        elif text.are_all_different and not keep_identifiers:
            why = (
                f"looks like a time: dropped ({text.time_option}, or "
                "--keep-identifiers)"
                if text.are_times
                else "has a different word in every row: dropped as an identifier "
                "(--keep-identifiers)"
            )
            notes.append(f"column {shown(name)} {why}")
        elif text.more_words:
            raise TableError(
                f"column {shown(name)} has more than {thousands(len(text.levels))} "
                f"different words. Use --drop {typed(name)}"
            )
        else:
            chosen.append(of_column)
            if text.mixed is not None:
                notes.append(text.mixed)
            if text.are_times:
                notes.append(
                    f"column {shown(name)} looks like a time: {text.time_option}; it "
                    "is taken for words, of which later times are new ones (--drop "
                    f"{typed(name)} leaves it out)"
                )
    if not chosen:
        raise TableError(f"{table} has no feature column left. {notes[-1]}")
    return chosen, notes


def labels_from_words(distinct: Sequence[str], target: str) -> NDArray[Any]:
    """Return sorted labels, as integers where every word is one, else as text.

    One class only and a target that looks continuous are a TableError.
    """
    if len(distinct) == 1:
        raise TableError(
            f"target {shown(target)} has one value ({shown(distinct[0])}). "
            "To learn one class, use prudent detect"
        )
    if all(is_number(word) for word in distinct):
        fractional = any(not float(word).is_integer() for word in distinct)
        if fractional or len(distinct) > MOST_CLASSES:
            raise TableError(
                f"target {shown(target)} looks continuous "
                f"({thousands(len(distinct))} values): prudent classifies. "
                "Name another --target or cut it into classes"
            )
    # A label must read back as it was written: '01' and '1.0' stay text.
    if all(
        len(word) <= LONGEST_INTEGER
        and word.lstrip("-").isdecimal()
        and str(int(word)) == word
        for word in distinct
    ):
        return np.array(distinct, dtype=np.int64)
    return np.array(distinct)


def notes_on_features(X: FloatArray, names: Sequence[str], n_rows: int) -> list[str]:
    """Name identifier-like and collinear columns of `X`, a sample of `n_rows` rows.

    Rows with gaps (NaN) are left out.
    """
    if X.shape[1] == 0:
        return []
    n_sampled, X = len(X), X[~np.isnan(X).any(axis=1)]
    every = "every row" if len(X) == n_rows else f"all of {thousands(len(X))} rows"
    every += " without gaps" if len(X) < n_sampled else ""
    notes = [
        f"column {shown(names[j])} has a different whole number in {every}: "
        f"an identifier? It is kept; use --drop {typed(names[j])} to leave it out"
        for j in _identifiers(X)
    ]
    collinear = [names[j] for j in _collinear(X)]
    if collinear:
        notes.append(
            f"{counted(len(collinear), 'column')} (nearly) a linear combination of "
            f"earlier ones: {listed(collinear)}. Methods that need full rank shrink "
            "the covariance or say why they cannot"
        )
    return notes


def notes_on_classes(
    labels: Sequence[object], counts: Sequence[int], n_features: int
) -> list[str]:
    """Name the classes with fewer rows than features."""
    small = [
        f"{shown(label)} ({counted(count, 'row')})"
        for label, count in zip(labels, counts, strict=True)
        if count <= n_features
    ]
    if not small:
        return []
    return [
        f"no more rows than features ({n_features}) in class {listed(small)}: methods "
        "that need full rank shrink the covariance or say why they cannot"
    ]


def _identifiers(X: FloatArray) -> list[int]:
    """Columns of whole numbers, all distinct: values measured repeat or have digits."""
    if len(X) < FEWEST_IDENTIFIERS:
        return []
    return [
        j
        for j in range(X.shape[1])
        if np.all(X[:, j] == np.floor(X[:, j])) and len(np.unique(X[:, j])) == len(X)
    ]


def _collinear(X: FloatArray) -> list[int]:
    """Columns whose share of variance left by earlier columns is rounding error.

    The pivot of column j in the Cholesky factor of the correlation matrix is
    1 - R^2 of j on the columns before it; below 100 d eps it is none. QR factors
    would go on along the rounding errors of such a column, and miss the next.
    """
    n_rows, n_features = X.shape
    if n_rows <= n_features:  # every matrix is singular then; a note of its own
        return []
    scale = X.std(axis=0)
    Z = (X - X.mean(axis=0)) / np.where(scale > 0, scale, 1.0)
    remaining = Z.T @ Z / n_rows
    threshold = 100 * n_features * np.finfo(float).eps
    dependent = []
    for j in range(n_features):
        pivot = remaining[j, j]
        if pivot < threshold:
            dependent.append(j)
        else:
            row = remaining[j, j:].copy()
            remaining[j:, j:] -= np.outer(row, row / pivot)
    return dependent


def treatment(is_text: Sequence[bool], n_missing: int, missing: str) -> str | None:
    """Say what is done to words and missing cells; None where there are none.

    `missing` is "fill" for medians, or "mean".
    """
    parts = []
    if any(is_text):
        parts.append(f"{counted(sum(is_text), 'text column')} encoded")
    if n_missing:
        cells = "1 missing cell" if n_missing == 1 else f"{n_missing} missing cells"
        word = "mean" if missing == "mean" else "median"
        parts.append(f"{cells} filled ({word} of the training rows)")
    return f"{', '.join(parts)}; --categorical, --missing choose" if parts else None


@dataclass(frozen=True)
class TrainingData:
    """Rows ready for a fit: n of them, in d columns."""

    frame: pa.Table  # numbers and words by name; missing are NaN and null
    y: NDArray[Any] | None  # (n,): labels, integers where every label is one
    preparation: Preparation  # how `frame` came about
    notes: tuple[str, ...]  # what a reader should know, one sentence each
    constant: tuple[str, ...]  # columns of one value, which were left out
    rows: IntArray  # (n,): their positions in the table
    n_available: int  # rows these were drawn from
    groups: NDArray[Any] | None = None  # rows that belong together have equal values
    times: NDArray[Any] | None = None  # when, of groups when the latest row was

    @cached_property
    def X(self) -> FloatArray | pa.Table:
        """The features as an array, (n, d), where there are no words; else by name."""
        return numbers_or_table(self.frame.select(self.preparation.names))


def training_data(
    source: TableSource, target: str | None, **options: Any
) -> TrainingData:
    """Check a table and turn it into arrays; options as `survey_table`."""
    return all_rows(survey_table(source, target, **options))


def all_rows(survey: Survey) -> TrainingData:
    """All rows of a surveyed table."""
    return _joined(survey, list(survey.blocks()))


def sample_rows(
    survey: Survey, size: int, random_state: int
) -> tuple[TrainingData, ClassMoments | None]:
    """A plain draw of rows without replacement, and moments of the other rows.

    Words and missing cells have no moments: then there is the sample only.

    The draw is plain: promises are made and tested on these rows, and rows of which a
    rare class had more than its share would not be draws from the table.

    The number of rows is known, so those to take are drawn before they are read: one
    pass, which holds no other row.
    """
    rng = np.random.default_rng(random_state)
    n_drawn = min(size, survey.n_rows)
    positions = np.sort(
        rng.choice(survey.n_rows, n_drawn, replace=False, shuffle=False)
    )
    drawn: list[Block] = []
    n_columns = len(survey.preparation.names)
    empty = ClassMoments.empty(np.unique(survey.labels), n_columns)

    def others() -> Iterator[ClassMoments]:
        seen = 0
        for block in survey.blocks():
            n_rows = len(block.rows)
            first, last = np.searchsorted(positions, [seen, seen + n_rows])
            chosen = np.zeros(n_rows, dtype=bool)
            chosen[positions[first:last] - seen] = True
            seen += n_rows
            drawn.append(block.only(chosen))
            rest = block.only(~chosen)
            if len(rest.rows) and survey.holds_numbers:
                labels = survey.labels[rest.codes]
                yield ClassMoments.from_arrays(rest.X, labels, classes=survey.labels)

    moments = ClassMoments.reduce(chain([empty], others()))
    return _joined(survey, drawn), moments if survey.holds_numbers else None


def _joined(survey: Survey, blocks: Sequence[Block]) -> TrainingData:
    """The rows of some blocks together."""
    codes = np.concatenate([block.codes for block in blocks])
    return TrainingData(
        frame=pa.concat_tables([block.frame for block in blocks]),
        y=None if survey.label is None else survey.labels[codes],
        preparation=survey.preparation,
        notes=survey.notes,
        constant=survey.constant,
        rows=np.concatenate([block.rows for block in blocks]),
        n_available=survey.n_rows,
    )
