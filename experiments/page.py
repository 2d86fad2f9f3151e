"""The page of all tables, in reStructuredText."""

from __future__ import annotations

from collections.abc import Mapping

from experiments.papers import PAPERS
from experiments.table import Table, text_of

HEAD = """\
The papers, recomputed
======================

Written by ``python -m experiments``, which recomputes every table and figure that the
data allow; ``PRUDENT_DATA`` names the folder of the data sets. Finished experiments are
kept and not run again. Each one also runs alone, for example ``python -m
experiments.minimax_table2``.

Where a paper prints numbers, a cell reads *ours / paper / difference ± standard error*.
The error is that of ours, over splits or over test rows; the paper's own comes on top,
so two of three differences beyond it are no surprise. Each has a letter, and the letter
its reason below the table.
"""


def page(tables: Mapping[str, Table], seconds: Mapping[str, float]) -> str:
    """All tables by name, under the papers they belong to, and what they cost."""
    parts = [HEAD]
    for prefix, (heading, text) in PAPERS.items():
        parts += [f"{heading}\n{'-' * len(heading)}\n", f"{text}\n"]
        parts += [section(t) for name, t in tables.items() if name.startswith(prefix)]
    parts.append(section(cost(seconds), "-"))
    return "\n".join(parts)


def section(table: Table, underline: str = "~") -> str:
    """One table with its notes and pictures."""
    lines = [table.title, underline * len(table.title), ""]
    if table.rows:
        lines += [".. list-table::", "   :header-rows: 1", ""]
    for row in [table.columns, *table.rows] if table.rows else []:
        first, *others = map(text_of, row)
        lines += [f"   * - {first}".rstrip(), *(f"     - {c}".rstrip() for c in others)]
    if table.rows:
        lines.append("")
    if table.notes:
        lines += [*(f"- {note}" for note in table.notes), ""]
    for picture in table.pictures:
        lines += [f".. image:: images/{picture}", f"   :alt: {table.title}", ""]
    return "\n".join(lines)


def cost(seconds: Mapping[str, float]) -> Table:
    """CPU time of each experiment and of all."""
    rows = [[name, round(value)] for name, value in seconds.items()]
    total = f"{sum(seconds.values()) / 60:.0f} minutes"
    return Table(
        "What the run cost",
        ("experiment", "seconds of CPU, one thread"),
        [*rows, ["all", total]],
        ("Figure 7 measures the cells of Table 4, which then reads them.",),
    )
