"""The one shape of a result, and the command line of every experiment."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table as RichTable

RESULTS = Path(__file__).parent / "results"
IMAGES = Path(__file__).parents[1] / "docs" / "images"


@dataclass(frozen=True)
class Table:
    """Measured rows; notes and pictures (files in docs/images) go below them."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    notes: Sequence[str] = ()
    pictures: Sequence[str] = ()


#: Sets the paper's figures beside the measured ones, with a reason for each deviation.
Explain = Callable[[Table], Table]


def beside(
    ours: float, paper: float, error: float, reason: str = "", digits: int = 1
) -> str:
    """Ours, paper, difference ± standard error, and the key of the reason.

    A difference larger than its standard error, at the paper's number of digits, must
    have a reason.

    Examples
    --------
    >>> beside(80.0, 80.4, 0.1, "a")
    '80.0 / 80.4 / -0.4 ± 0.1 (a)'
    >>> beside(80.0, 80.4, 0.5, "a")
    '80.0 / 80.4 / -0.4 ± 0.5'
    """
    difference = round(round(ours, digits) - paper, digits)
    figures = (
        f"{ours:.{digits}f} / {paper:.{digits}f} / "
        f"{difference:+.{digits}f} ± {error:.2g}"
    )
    if abs(difference) <= error:
        return figures
    if not reason:
        raise ValueError(f"{figures} deviates by more than its error; give a reason.")
    return f"{figures} ({reason})"


def explained(table: Table, columns, rows, reasons: dict[str, str]) -> Table:
    """Table with `rows` in place of the measured ones, and the reasons used in them."""
    text = " ".join(str(cell) for row in rows for cell in row)
    used = [f"({key}) {why}" for key, why in reasons.items() if f"({key})" in text]
    return replace(table, columns=columns, rows=rows, notes=(*table.notes, *used))


def save_picture(figure: Figure, name: str) -> None:
    """Write a picture of the documentation, the same bytes on every run."""
    with mpl.rc_context({"svg.hashsalt": "prudent"}):
        figure.savefig(IMAGES / name, metadata={"Date": None})


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


def main(run: Callable[[bool], Table], explain: Explain | None = None) -> None:
    """Run one experiment from the command line; `--quick` is a small version."""
    quick = "--quick" in sys.argv[1:]
    table = run(quick)
    show(table if quick or explain is None else explain(table))
