"""What pages are made of: sections with sentences, a figure and tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from prudent.evaluation.measurements import Sets
from prudent.evaluation.records import Findings, MethodRow
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
    """One section of the page."""

    name: str  # anchor
    title: str
    sentences: Sequence[str]  # what there is to see, and how it was made
    figure: str = ""  # SVG element
    tables: Sequence[Table] = ()  # the numbers behind the figure
    sortable: bool = False  # the first table, by clicks on its headings
    wide: bool = False  # takes the full width of the page


def illustrated(
    findings: Findings,
    name: str,
    title: str,
    sentences: Sequence[str],
    figure: Callable[[Findings], Figure],
    description: str,
    tables: Sequence[Table],
    *,
    nothing: str = "",
    wide: bool = False,
) -> Section:
    """A section with a figure of a comparison; without rows it says `nothing` only."""
    if not tables[0].rows:
        return Section(name, title, [nothing])
    with figure_style():
        drawing = to_svg(figure(findings), name, description)
    return Section(name, title, sentences, drawing, tables, wide=wide)


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
