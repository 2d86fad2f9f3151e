"""Tables on the terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table on stdout: rich on a terminal, plain columns elsewhere."""
    lines = [[str(cell) for cell in row] for row in rows]
    if not sys.stdout.isatty():
        print(_plain([list(columns), *lines]))
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for line in lines:
        # Text, not markup: a label such as [red] must come out as it is.
        table.add_row(*map(Text, line))
    Console(highlight=False).print(table)


def _plain(lines: list[list[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) for cell, width in zip(line, widths, strict=True)
        ).rstrip()
        for line in lines
    )
