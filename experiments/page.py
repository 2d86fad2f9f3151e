"""A page of all tables, in reStructuredText."""

from __future__ import annotations

import re
from collections.abc import Mapping

from experiments.table import Table, text_of

#: Prefix of the experiments' files -> heading and text of their part of the page.
Groups = Mapping[str, tuple[str, str]]


def page(
    head: str,
    groups: Groups,
    tables: Mapping[str, Table],
    seconds: Mapping[str, float],
) -> str:
    """All tables by name, in the group they belong to, and what they cost."""
    parts = [head]
    for prefix, (heading, text) in groups.items():
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
        first, *others = map(unbroken, row)
        lines += [f"   * - {first}".rstrip(), *(f"     - {c}".rstrip() for c in others)]
    if table.rows:
        lines.append("")
    if table.notes:
        # A letter in brackets would begin a list of its own.
        lines += [*(f"- \\{n}" if n[0] == "(" else f"- {n}" for n in table.notes), ""]
    for picture in table.pictures:
        lines += [f".. image:: images/{picture}", f"   :alt: {table.title}", ""]
    return "\n".join(lines)


def unbroken(cell: object) -> str:
    """A cell whose figures stay on one line, but for a difference or a remark."""
    text = text_of(cell)
    if not re.match(r"[\d.]+ (/|±|of|->) ", text):
        return text
    text = text.replace(" ", "\N{NO-BREAK SPACE}")
    return re.sub(
        "(?<=/)\N{NO-BREAK SPACE}(?=[+-])|(?<=,)\N{NO-BREAK SPACE}", " ", text
    )


def cost(seconds: Mapping[str, float]) -> Table:
    """CPU time of each experiment and of all."""
    rows = [[name, round(value)] for name, value in seconds.items()]
    total = f"{sum(seconds.values()) / 60:.0f} minutes"
    return Table(
        "What the run cost",
        ("experiment", "seconds of CPU, one thread"),
        [*rows, ["all", total]],
    )
