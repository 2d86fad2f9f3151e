"""Decide how a table becomes numbers, in passes that hold a part of it at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from prudent.core.moments import ClassMoments
from prudent.core.types import FloatArray, IntArray
from prudent.io.checks import labels_from_words, notes_on_classes, notes_on_features
from prudent.io.columns import Words, read_words
from prudent.io.errors import TableError, counted, listed, shown, thousands
from prudent.io.figures import Figures
from prudent.io.preparation import Column, Preparation
from prudent.io.table import Table, TableSource, check_column, is_text

Missing = Literal["fill", "mean", "drop-rows", "error"]
Categorical = Literal["onehot", "drop", "error"]


@dataclass(frozen=True, eq=False)
class Block:
    """Some rows, ready for a fit.

    Attributes
    ----------
    X : ndarray of shape (n, n_features)
        Numbers, and codes of words; missing cells are NaN.
    codes : ndarray of int, shape (n,)
        Their labels, as positions in `Survey.labels`.
    rows : ndarray of int, shape (n,)
        Their positions in the table.
    """

    X: FloatArray
    codes: IntArray
    rows: IntArray


@dataclass(frozen=True, eq=False)
class Survey:
    """What was found and decided in looking through a table.

    Attributes
    ----------
    source : TableSource
        The table.
    preparation : Preparation
        How it becomes numbers.
    notes : tuple of str
        What a reader should know about it, one sentence each.
    constant : tuple of str
        Columns of one value, which are left out.
    label : str or None
        Column of the labels; None without.
    labels : ndarray of shape (K,)
        Distinct labels, integers where every label is one, else text, in the
        order of their spelling.
    counts : ndarray of int, shape (K,)
        Rows of each.
    n_missing : int
        Missing cells of the rows that are used.
    """

    source: TableSource
    preparation: Preparation
    notes: tuple[str, ...]
    constant: tuple[str, ...]
    label: str | None
    labels: NDArray[Any]
    counts: IntArray
    n_missing: int
    _rows: _Rows
    _remaining: NDArray[np.bool_]

    @property
    def n_rows(self) -> int:
        """Rows that are used."""
        return int(self.counts.sum())

    @property
    def treatment(self) -> str | None:
        """What is done to words and missing cells; None if there are none."""
        parts = []
        n_text = sum(self.preparation.is_text)
        if n_text:
            parts.append(f"{counted(n_text, 'text column')} encoded")
        if self.n_missing:
            parts.append(f"{counted(self.n_missing, 'missing cell')} filled")
        said = ", ".join(parts)
        return f"{said}; --categorical, --missing choose" if parts else None

    @property
    def holds_numbers(self) -> bool:
        """Whether there are no words and no missing cells."""
        return self.n_missing == 0 and not any(self.preparation.is_text)

    def blocks(self) -> Iterator[Block]:
        """Read the rows that are used, in order, a part at a time."""
        words = self.labels.astype(str)
        start = 0
        for part in self._rows.read(self.source):
            rows = np.flatnonzero(part.kept)
            X = part.X[rows[:, None], np.flatnonzero(self._remaining)]
            codes = np.searchsorted(words, part.words)[part.codes[rows]]
            if len(rows):
                yield Block(X, codes, start + rows)
            start += len(part.kept)

    def moments(
        self, transform: Callable[[FloatArray], Any] | None = None, **options: Any
    ) -> ClassMoments:
        """Moments of all rows, each class by its label.

        `transform` turns words and missing cells into numbers, a block at a time.
        """
        return ClassMoments.reduce(
            ClassMoments.from_arrays(
                block.X if transform is None else transform(block.X),
                self.labels[block.codes],
                classes=self.labels,
                **options,
            )
            for block in self.blocks()
        )


@dataclass(frozen=True)
class _Rows:
    """Which rows are used, and how their cells are read.

    Attributes
    ----------
    reading : Preparation
        Feature columns, those of one value among them.
    label : str or None
        Column of the labels.
    labelled : bool
        Leave out rows with an empty label.
    complete : bool
        Leave out rows with a missing cell.
    """

    reading: Preparation
    label: str | None
    labelled: bool
    complete: bool

    def read(self, source: TableSource) -> Iterator[_Part]:
        """Read every row, a part at a time."""
        columns = [*self.reading.names, *([] if self.label is None else [self.label])]
        for table in source.parts(columns):
            X = self.reading.read(table)
            if self.label is None:
                codes, words = np.zeros(len(X), dtype=np.intp), np.array([""])
            else:
                codes, words = table.encoded(self.label)
            labelled = np.ones(len(X), dtype=bool)
            if self.labelled:
                labelled = (words != "")[codes]
            kept = labelled
            if self.complete:
                kept = labelled & ~np.isnan(X).any(axis=1)
            yield _Part(table, X, codes, words, labelled, kept)


@dataclass(frozen=True, eq=False)
class _Part:
    """Rows as they are read: features, labels, and which of them are used."""

    table: Table
    X: FloatArray
    codes: IntArray
    words: NDArray[np.str_]
    labelled: NDArray[np.bool_]
    kept: NDArray[np.bool_]


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

    Parameters
    ----------
    source : TableSource
        A table in memory, or one that is read in parts.
    target : str or None
        Label column; None for data without labels.
    features : sequence of str, default=None
        Feature columns; None takes all but the labels.
    drop : collection of str, default=()
        Columns left out.
    missing : {"fill", "mean", "drop-rows", "error"}, default="fill"
        Rows with missing cells are left to what fills them later, left out, or
        refused.
    categorical : {"onehot", "drop", "error"}, default="onehot"
        Words of text columns become codes, or text columns are left out, or
        refused.
    keep_identifiers : bool, default=False
        Keep text columns in which no word occurs twice.
    handed_along : str, default=None
        A column of words to hand along with data without labels.

    Raises
    ------
    TableError
        If the table cannot be used so; the message says where and what to try.
    """
    label = handed_along if target is None else target
    names = _feature_columns(source, label, features, drop)
    schema = source.schema
    as_text = [name for name in names if is_text(schema.field(name).type)]
    words = read_words(source, [*as_text, *([] if label is None else [label])])
    if target is not None:
        _check_target(words[target], missing)
    columns, notes = _choose_columns(
        source.name, names, words, categorical, keep_identifiers
    )
    rows = _Rows(
        Preparation(columns), label, target is not None, missing == "drop-rows"
    )
    figures, counts, n_left_out, n_incomplete = _gather(rows, source)
    figures.refuse_infinite()
    if missing == "error":
        figures.refuse_missing()
    elif figures.n_rows == 0:
        raise TableError("every row has a missing value. use --missing fill")
    if n_incomplete:
        notes.append("rows with missing values are left out")
    if n_left_out:
        notes.append(f"{counted(n_left_out, 'row')} left out")
    return _concluded(source, rows, figures, counts, notes, target)


def _gather(rows: _Rows, source: TableSource) -> tuple[Figures, Counter[str], int, int]:
    """Figures of the used rows, rows by label, rows left out, rows with holes."""
    figures = Figures(rows.reading.names)
    counts: Counter[str] = Counter()
    n_left_out = n_incomplete = 0
    for part in rows.read(source):
        figures.look_for_infinite(part.X, part.table)
        figures.add(part.X[part.kept])
        sizes = np.bincount(part.codes[part.kept], minlength=len(part.words))
        counts.update(dict(zip(part.words.tolist(), sizes.tolist(), strict=True)))
        n_left_out += int(np.count_nonzero(~part.kept))
        n_incomplete += int(np.count_nonzero(part.labelled & ~part.kept))
    return figures, +counts, n_left_out, n_incomplete


def _concluded(
    source: TableSource,
    rows: _Rows,
    figures: Figures,
    counts: Mapping[str, int],
    notes: list[str],
    target: str | None,
) -> Survey:
    """Leave out columns of one value, and note what else a reader should know."""
    columns = rows.reading.columns
    names = rows.reading.names
    empty = figures.missing == figures.n_rows
    # A column of one value and gaps still tells where the gaps are.
    alike = empty | ((figures.low == figures.high) & (figures.missing == 0))
    constant = [name for name, same in zip(names, alike, strict=True) if same]
    remaining = ~alike
    if not remaining.any():
        raise TableError(f"every feature column is constant: {listed(constant)}.")
    n_missing = int(figures.missing[remaining].sum())
    preparation = Preparation(
        tuple(column for column, kept in zip(columns, remaining, strict=True) if kept),
        gaps=n_missing > 0,
    )
    for name, nothing in zip(names, empty, strict=True):
        if nothing:
            notes.append(f"column {shown(name)} has no value at all: dropped")
        elif name in constant:
            notes.append(f"column {shown(name)} is constant: dropped")
    numeric = remaining & ~np.array(rows.reading.is_text)
    inspected = figures.inspected[:, numeric]
    whole = inspected[~np.isnan(inspected).any(axis=1)]
    notes += notes_on_features(
        whole,
        [name for name, kept in zip(names, numeric, strict=True) if kept],
        figures.n_rows,
    )
    words = sorted(counts)
    sizes = np.array([counts[word] for word in words], dtype=np.intp)
    labels: NDArray[Any] = np.array(words)
    if target is not None:
        labels = labels_from_words(words, target)
        n_features = len(preparation.names)
        notes += notes_on_classes(labels.tolist(), sizes.tolist(), n_features)
    return Survey(
        source=source,
        preparation=preparation,
        notes=tuple(notes),
        constant=tuple(constant),
        label=rows.label,
        labels=labels,
        counts=sizes,
        n_missing=n_missing,
        _rows=rows,
        _remaining=remaining,
    )


def _feature_columns(
    source: TableSource,
    label: str | None,
    features: Sequence[str] | None,
    drop: Collection[str],
) -> list[str]:
    known = source.names
    for name in (*([] if label is None else [label]), *(features or ()), *drop):
        check_column(name, known)
    left_out = {label, *drop}
    names = [name for name in features or known if name not in left_out]
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
            "use --missing drop-rows"
        )
    if words.more_words:
        raise TableError(
            f"target {shown(words.name)} has more than {thousands(len(present))} "
            "different words: prudent classifies. Name another --target"
        )
    labels_from_words(present, words.name)


def _choose_columns(
    table: str,
    names: Sequence[str],
    words: Mapping[str, Words],
    categorical: Categorical,
    keep_identifiers: bool,
) -> tuple[tuple[Column, ...], list[str]]:
    columns: list[Column] = []
    notes: list[str] = []
    for name in names:
        if name not in words or words[name].hold_numbers:
            columns.append(Column(name))
            continue
        found = words[name]
        if categorical == "error" or found.are_decimal_commas:
            raise found.not_numbers()
        if categorical == "drop":
            notes.append(f"column {shown(name)} is text: dropped")
        elif found.are_all_different and not keep_identifiers:
            notes.append(
                f"column {shown(name)} has a different word in every row: dropped as "
                "an identifier (--keep-identifiers)"
            )
        elif found.more_words:
            raise TableError(
                f"column {shown(name)} has more than {thousands(len(found.levels))} "
                f"different words. use --drop {name}"
            )
        else:
            columns.append(Column(name, found.levels))
            if found.mixed is not None:
                notes.append(found.mixed)
    if not columns:
        raise TableError(f"{table} has no feature column left. {notes[-1]}")
    return tuple(columns), notes
