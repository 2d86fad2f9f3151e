"""From a table to numbers: which columns, and the codes of their words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from prudent.core.types import FloatArray
from prudent.io.columns import numbers, read_words, word_codes
from prudent.io.figures import Figures
from prudent.io.table import Table, TableSource, check_column, is_text


@dataclass(frozen=True, slots=True)
class Column:
    """How one column becomes numbers.

    Attributes
    ----------
    name : str
        Name in the table.
    levels : tuple of str
        Empty for a number; else the words of a text column, sorted, which become
        their positions.
    """

    name: str
    levels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Preparation:
    """The columns of the training table, to be read the same from every later one.

    Attributes
    ----------
    columns : tuple of Column
        Feature columns, in the order of training.
    gaps : bool
        Whether missing cells are allowed: what comes behind knows what to do.
    """

    columns: tuple[Column, ...]
    gaps: bool = False

    @property
    def names(self) -> list[str]:
        """Columns of the table, in the order of the array's columns."""
        return [column.name for column in self.columns]

    @property
    def is_text(self) -> tuple[bool, ...]:
        """Columns that hold codes of words."""
        return tuple(bool(column.levels) for column in self.columns)

    def transform(self, table: Table) -> FloatArray:
        """Return the features of a table, its columns matched by name.

        Raises
        ------
        TableError
            As `check`.
        """
        self.check(table)
        return self.read(table)

    def check(self, source: TableSource) -> None:
        """Look through a table, all of it, before its features are read.

        Raises
        ------
        TableError
            If a column is absent, or holds text in the place of numbers, infinite
            or (without `gaps`) missing values.
        """
        for name in self.names:
            check_column(name, source.names)
        as_text = [
            column.name
            for column in self.columns
            if not column.levels and is_text(source.schema.field(column.name).type)
        ]
        for words in read_words(source, as_text).values():
            if not words.hold_numbers:
                raise words.not_numbers()
        figures = Figures(self.names)
        for part in source.parts(self.names):
            X = self.read(part)
            figures.look_for_infinite(X, part)
            figures.add(X)
        figures.refuse_infinite()
        if not self.gaps:
            figures.refuse_missing()

    def read(self, part: Table) -> FloatArray:
        """Return the features: numbers, codes of words, NaN for missing cells."""
        X = np.empty((part.n_rows, len(self.columns)))
        for j, column in enumerate(self.columns):
            if column.levels:
                X[:, j] = word_codes(part, column.name, column.levels)
            else:
                X[:, j] = numbers(part, column.name)
        return X

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Self:
        """Read back what `dataclasses.asdict` gave, from a model file."""
        columns = tuple(
            Column(c["name"], tuple(c["levels"])) for c in stored["columns"]
        )
        return cls(columns, bool(stored["gaps"]))
