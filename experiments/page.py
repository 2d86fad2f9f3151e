"""Pages of all tables, in reStructuredText."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from experiments.table import Table, text_of

#: First line of a page whose tables need its whole width.
WIDE = ":html_theme.sidebar_secondary.remove: true"
#: Prefix of the experiments' files -> heading and text of their part of the page.
Groups = Mapping[str, tuple[str, str]]
#: Experiment -> its tables.
Tables = Mapping[str, Sequence[Table]]
#: Prefix of a paper -> table or figure that is not recomputed -> why not.
Omitted = Mapping[str, Mapping[str, str]]


def page(
    head: str, groups: Groups, tables: Tables, seconds: Mapping[str, float]
) -> str:
    """All tables on one page, in the group they belong to, and what they cost."""
    parts = [head]
    for prefix, (heading, text) in groups.items():
        parts.append(group(prefix, heading, text, tables, underlines="-~"))
    parts.append(section(cost(seconds), "-"))
    return "\n".join(parts)


def pages(
    head: str, groups: Groups, tables: Tables, seconds: Mapping[str, float]
) -> dict[str, str]:
    """One page a group by the prefix of the group; the one that leads there is ""."""
    lines = [".. toctree::", "   :hidden:", "", *(f"   papers/{p}" for p in groups)]
    head = "\n".join([head, *lines, "", section(cost(seconds), "-")])
    return {"": head} | {
        prefix: f"{WIDE}\n\n{group(prefix, heading, text, tables, underlines='=-')}"
        for prefix, (heading, text) in groups.items()
    }


def group(
    prefix: str, heading: str, text: str, tables: Tables, *, underlines: str
) -> str:
    """The tables of one group below their heading."""
    under_heading, under_table = underlines
    found = [t for name, ts in tables.items() if name.startswith(prefix) for t in ts]
    found.sort(key=lambda table: [natural(item) for item in table.items[:1]] or [(2,)])
    parts = [f"{heading}\n{under_heading * len(heading)}\n", f"{text}\n"]
    return "\n".join([*parts, *(section(t, under_table, prefix) for t in found)])


def contents(groups: Groups, omitted: Omitted, tables: Tables) -> str:
    """Every table and figure of each paper: a link to it, or why it is left out."""
    lines = ["\n.. list-table:: Every table and figure of the five papers"]
    lines += ["   :header-rows: 1", "", "   * - paper", "     - item", "     - here"]
    for prefix, reasons in omitted.items():
        here = {
            item: f":ref:`{table.title} <{anchor(prefix, table)}>`"
            for name, found in tables.items()
            if name.startswith(prefix)
            for table in found
            for item in table.items
        }
        rows = {**here, **{item: f"omitted: {why}" for item, why in reasons.items()}}
        for item in sorted(rows, key=natural):
            paper = groups[prefix][0]
            named = item.replace(" ", "\N{NO-BREAK SPACE}")
            lines += [f"   * - {paper}", f"     - {named}", f"     - {rows[item]}"]
    return "\n".join([*lines, ""])


def natural(item: str) -> tuple[object, ...]:
    """Tables before figures, 2 before 10, II before X, then the appendix."""
    kind, number = item.split(" ", 1)
    roman = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX"]
    value = roman.index(number) if number in roman else 0
    digits = re.findall(r"\d+", number)
    return kind == "Figure", "." in number, value, int(digits[0]) if digits else 0, item


def anchor(prefix: str, table: Table) -> str:
    """Name under which a section can be linked to."""
    return f"papers-{prefix}-{'-'.join(table.items).lower().replace(' ', '-')}"


def section(table: Table, underline: str = "~", prefix: str = "") -> str:
    """One table with its notes and pictures."""
    lines = [f".. _{anchor(prefix, table)}:", ""] if table.items else []
    lines += [table.title, underline * len(table.title), ""]
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
        lines += [f".. image:: /images/{picture}", f"   :alt: {table.title}", ""]
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
