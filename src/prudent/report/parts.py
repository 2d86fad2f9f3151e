"""What pages are made of: sections with sentences, a figure and tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from matplotlib.figure import Figure

from prudent.evaluation.measurements import Sets
from prudent.evaluation.records import MethodRow
from prudent.report.svg import figure_style, to_svg

MOST_ROWS = 60


@dataclass(frozen=True)
class Table:
    """Cells of text under their columns."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]  # the first cell of each names it
    omitted: int = 0  # rows left out of the page; they are in the data at its end
    note: str = ""  # how to read it


@dataclass(frozen=True)
class Section:
    """One section of the page; without rows in its first table it says `nothing`."""

    name: str  # anchor
    title: str
    sentences: Sequence[str]  # what there is to see, and how it was made
    draw: Callable[[], Figure] | None = None
    description: str = ""  # of the figure, for those who do not see it
    tables: Sequence[Table] = ()  # the numbers behind the figure
    nothing: str = ""
    sortable: bool = False  # the first table, by clicks on its headings
    wide: bool = False  # takes the full width of the page

    @property
    def is_empty(self) -> bool:
        """Whether there are no numbers behind the figure."""
        return bool(self.draw and self.tables and not self.tables[0].rows)

    @cached_property
    def figure(self) -> str:
        """The figure as an SVG element, "" without one."""
        if self.draw is None:
            return ""
        with figure_style():
            return to_svg(self.draw(), self.name, self.description)


def first_rows(
    caption: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    most: int = MOST_ROWS,
) -> Table:
    """Return a table of at most `most` rows, which knows how many it leaves out."""
    return Table(caption, columns, rows[:most], omitted=max(0, len(rows) - most))


def shown_sets(row: MethodRow) -> Sets | None:
    """Sets of the wrapped method where a promise was asked for, else its own."""
    return row.sets if row.asked is None else row.asked.sets
