"""The one shape of a result, and the command line of every experiment."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table as RichTable


@dataclass(frozen=True)
class Table:
    """Ours next to the paper's: rows of cells, and a sentence per deviation."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    notes: Sequence[str] = ()


def show(table: Table) -> None:
    """Print a table with its notes."""
    rich = RichTable(*table.columns, title=table.title)
    for row in table.rows:
        rich.add_row(*[f"{v:.4g}" if isinstance(v, float) else str(v) for v in row])
    console = Console()
    console.print(rich)
    for note in table.notes:
        console.print("-", note)


def main(run: Callable[[bool], Table]) -> None:
    """Run one experiment from the command line; `--quick` is a small version."""
    show(run("--quick" in sys.argv[1:]))
