"""The one shape of a result: rows, letters of deviations, pictures."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table as RichTable

RESULTS = Path(__file__).parent / "results"
_FOLDERS = [Path(__file__).parents[1] / "docs" / "images"]


@dataclass(frozen=True)
class Table:
    """Measured rows; notes and pictures (files in docs/images) go below them.

    `items` are the tables and figures of the paper that are answered here.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    notes: Sequence[str] = ()
    pictures: Sequence[str] = ()
    items: Sequence[str] = ()


def against(
    ours: float, paper: float | None, error: float, reason: str = "?", digits: int = 1
) -> str:
    """Ours, paper, difference ± standard error, and the key of the reason.

    The key stands where the difference is larger than its standard error at the
    paper's number of digits. A paper's blank cell is None.

    Examples
    --------
    >>> against(80.0, 80.4, 0.1, "a")
    '80.0 / 80.4 / -0.4 ± 0.1 (a)'
    >>> against(80.0, 80.4, 0.5, "a")
    '80.0 / 80.4 / -0.4 ± 0.5'
    >>> against(0.25, 0.25, 0, digits=3)
    '0.250 / 0.250 / 0'
    >>> against(12, None, 0, digits=0)
    '12 / none'
    """
    if paper is None:
        return f"{ours:.{digits}f} / none"
    difference = round(round(ours, digits) - paper, digits)
    cell = f"{ours:.{digits}f} / {paper:.{digits}f} / {difference:+.{digits}f}"
    if error:
        cell += f" ± {error:.2g}"
    elif not difference:
        cell = f"{ours:.{digits}f} / {paper:.{digits}f} / 0"
    return cell if abs(difference) <= error else f"{cell} ({reason})"


def with_reasons(table: Table, reasons: dict[str, str]) -> Table:
    """Table with the reasons whose keys stand in its cells."""
    text = " ".join(str(cell) for row in table.rows for cell in row)
    reasons = {**reasons, "?": "not explained."}
    used = [f"({key}) {why}" for key, why in reasons.items() if f"({key})" in text]
    return replace(table, notes=(*table.notes, *used))


def keep_last_legend(figure: Figure) -> None:
    """Leave the panels their width: the legend of the last says what all show."""
    for axes in figure.axes[:-1]:
        if legend := axes.get_legend():
            legend.remove()


def save_picture(figure: Figure, name: str) -> str:
    """Write a picture of the documentation, the same bytes on every run; its name."""
    with mpl.rc_context({"svg.hashsalt": "prudent"}):
        figure.savefig(_FOLDERS[-1] / name, metadata={"Date": None})
    return name


@contextmanager
def pictures_in(folder: Path) -> Iterator[None]:
    """Write pictures to another folder: those of a quick run are not the page's."""
    folder.mkdir(parents=True, exist_ok=True)
    _FOLDERS.append(folder)
    try:
        yield
    finally:
        _FOLDERS.pop()


def text_of(cell: object) -> str:
    """A cell as it is printed."""
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)


def show(table: Table) -> None:
    """Print a table with its notes."""
    rich = RichTable(*table.columns, title=table.title)
    for row in table.rows:
        rich.add_row(*map(text_of, row))
    console = Console()
    console.print(rich)
    for note in table.notes:
        console.print("-", note, markup=False)


def main(run: Callable[[bool], Table]) -> None:
    """Run one experiment from the command line; `--quick` is a small version."""
    show(run("--quick" in sys.argv[1:]))
