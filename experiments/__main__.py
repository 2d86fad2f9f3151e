"""Recompute every table and figure that the data allow, on one page.

python -m experiments [--quick]

Finished experiments are kept in experiments/results/ and not run again; delete a file
there to recompute it. The page is written to docs/papers.rst, or to
experiments/results/quick.rst with --quick.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path

from rich.console import Console

from experiments.table import Table

HERE = Path(__file__).parent
RESULTS = HERE / "results"
HEAD = """\
The papers, recomputed
======================

Ours next to the papers', from ``python -m experiments``. A note gives the reason
wherever the two differ by more than chance.
"""


def experiments() -> list[str]:
    """Modules of this package that have a `run`."""
    files = sorted(HERE.glob("*_*.py"))
    return [f.stem for f in files if "\ndef run(" in f.read_text(encoding="utf-8")]


def result(name: str, quick: bool, console: Console) -> Table:
    """Stored result of an experiment, computed when there is none."""
    path = RESULTS / f"{name}{'-quick' if quick else ''}.json"
    if path.exists():
        return Table(**json.loads(path.read_text(encoding="utf-8")))
    with console.status(name):
        table = import_module(f"experiments.{name}").run(quick)
    RESULTS.mkdir(exist_ok=True)
    path.write_text(json.dumps(vars(table), default=float), encoding="utf-8")
    return table


def page(tables: list[Table]) -> str:
    """All tables as one reStructuredText page."""
    return "\n".join([HEAD, *map(section, tables)])


def section(table: Table) -> str:
    """One table with its notes."""
    lines = [
        table.title,
        "-" * len(table.title),
        "",
        ".. list-table::",
        "   :header-rows: 1",
        "",
    ]
    for row in [table.columns, *table.rows]:
        cells = [f"{v:.4g}" if isinstance(v, float) else str(v) for v in row]
        marks = ["   * -", *["     -"] * (len(cells) - 1)]
        lines += [f"{mark} {cell}" for mark, cell in zip(marks, cells, strict=True)]
    lines += ["", *[f"- {note}" for note in table.notes], ""]
    return "\n".join(lines)


def main(arguments: list[str]) -> None:
    """Run all experiments and write the page."""
    quick = "--quick" in arguments
    console = Console(stderr=True)
    names, tables = experiments(), []
    for number, name in enumerate(names, start=1):
        console.print(f"{number}/{len(names)} {name}")
        tables.append(result(name, quick, console))
    target = RESULTS / "quick.rst" if quick else HERE.parent / "docs" / "papers.rst"
    target.write_text(page(tables), encoding="utf-8")
    console.print(f"written: {target}")


if __name__ == "__main__":
    main(sys.argv[1:])
