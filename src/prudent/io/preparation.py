"""From a table to numbers: which columns, and what stands in for missing cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from prudent.io.columns import indicators, numbers, read_words
from prudent.io.figures import Figures
from prudent.io.table import Table, TableSource, check_column, is_text

__all__ = ["Column", "Preparation"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Column:
    """How one column becomes numbers.

    Attributes
    ----------
    name : str
        Name in the table.
    levels : tuple of str
        Empty for a number; else the words of a categorical column, of which each
        but the first gives one 0/1 indicator.
    """

    name: str
    levels: tuple[str, ...] = ()

    @property
    def feature_names(self) -> list[str]:
        """Names of the numbers this column gives."""
        if not self.levels:
            return [self.name]
        return [f"{self.name}={level}" for level in self.levels[1:]]


@dataclass(frozen=True, slots=True)
class Preparation:
    """What was decided on the training table, to be repeated on every later one.

    Attributes
    ----------
    columns : tuple of Column
        Feature columns, in the order of training.
    fill : tuple of float
        Stand-in of a missing cell for each feature; empty if they are refused.
    """

    columns: tuple[Column, ...]
    fill: tuple[float, ...] = ()

    @property
    def names(self) -> list[str]:
        """Columns of the table that are read."""
        return [column.name for column in self.columns]

    @property
    def feature_names(self) -> list[str]:
        """Names of the features, in the order of the array's columns."""
        return [name for column in self.columns for name in column.feature_names]

    def transform(self, table: Table) -> FloatArray:
        """Return the features of a table, its columns matched by name.

        Raises
        ------
        TableError
            As `check`.
        """
        self.check(table)
        return self.features(table)

    def check(self, source: TableSource) -> None:
        """Look through a table, all of it, before its features are read.

        Raises
        ------
        TableError
            If a column is absent, or holds text, infinite or (without `fill`)
            missing values, or a word that training did not see.
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
        figures = Figures(self.feature_names)
        for part in source.parts(self.names):
            X = self.read(part)
            figures.look_for_infinite(X, part)
            figures.add(X)
        figures.refuse_infinite()
        if not self.fill:
            figures.refuse_missing()

    def features(self, part: Table) -> FloatArray:
        """Return the features of rows that were checked, missing cells filled."""
        X = self.read(part)
        return np.where(np.isnan(X), self.fill, X) if self.fill else X

    def read(self, part: Table) -> FloatArray:
        """Return the features with NaN for missing cells."""
        X = np.empty((part.n_rows, len(self.feature_names)))
        position = 0
        for column in self.columns:
            width = len(column.feature_names)
            block = X[:, position : position + width]
            if column.levels:
                block[...] = indicators(part, column.name, column.levels)
            else:
                block[:, 0] = numbers(part, column.name)
            position += width
        return X

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Self:
        """Read back what `dataclasses.asdict` gave, from a model file."""
        columns = tuple(
            Column(c["name"], tuple(c["levels"])) for c in stored["columns"]
        )
        return cls(columns, tuple(stored["fill"]))
