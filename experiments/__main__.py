"""Recompute every table and figure that the data allow, on one page.

python -m experiments [--peers] [--quick] [NAME ...]

Without names all experiments of the papers run, or with --peers the comparison with
other libraries (extra `peers`). Finished ones are kept in experiments/results/ with
their time and not run again; delete a file there to recompute it. The page is made from
the stored results: docs/papers.rst or docs/peers.rst, with --quick a file beside the
results.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path

from rich.console import Console

from experiments import papers, peers
from experiments.benchmark_data import folder
from experiments.page import Groups, page
from experiments.table import RESULTS, Table

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Result:
    """What an experiment measured, and its seconds."""

    name: str
    table: Table
    cpu_seconds: float
    wall_seconds: float


def experiments(groups: Groups) -> list[str]:
    """Modules of this package that have a `run`, in the order of their page."""
    files = [
        file
        for prefix in groups
        for file in sorted(HERE.glob(f"{prefix}_*.py"))
        if "\ndef run(" in file.read_text(encoding="utf-8")
    ]
    return [file.stem for file in files]


def path_of(name: str, quick: bool) -> Path:
    """File of a stored result."""
    return RESULTS / f"{name}{'-quick' if quick else ''}.json"


def stored(name: str, quick: bool) -> Result:
    """Result of an earlier run."""
    values = json.loads(path_of(name, quick).read_text(encoding="utf-8"))
    return Result(**values | {"table": Table(**values["table"])})


def measure(name: str, quick: bool) -> None:
    """Run an experiment and store its result; a killed run leaves no file."""
    cpu, wall = time.process_time(), time.perf_counter()
    table = import_module(f"experiments.{name}").run(quick)
    seconds = time.process_time() - cpu, time.perf_counter() - wall
    RESULTS.mkdir(exist_ok=True)
    path = path_of(name, quick)
    unfinished = path.with_suffix(".part")
    result = asdict(Result(name, table, *(round(s, 1) for s in seconds)))
    unfinished.write_text(json.dumps(result, default=float), encoding="utf-8")
    unfinished.replace(path)


def explained(result: Result, quick: bool) -> Table:
    """Beside the paper's figures; those belong to the full run only."""
    explain = getattr(import_module(f"experiments.{result.name}"), "explain", None)
    return result.table if quick or explain is None else explain(result.table)


def main(arguments: list[str]) -> None:
    """Run what is missing; write the page when nothing is."""
    quick = "--quick" in arguments
    title, chosen = ("peers", peers) if "--peers" in arguments else ("papers", papers)
    names = [word for word in arguments if word not in ("--quick", "--peers")]
    everything = experiments(chosen.GROUPS)
    if unknown := set(names) - set(everything):
        sys.exit(f"no experiment {sorted(unknown)}; there are {', '.join(everything)}.")
    if chosen is papers and not folder().is_dir():
        sys.exit(f"no data in {folder()}; set PRUDENT_DATA to the folder of the sets.")
    console = Console(stderr=True)
    names = names or everything
    for number, name in enumerate(names, start=1):
        known = path_of(name, quick).exists()
        if not known:
            with console.status(f"{number}/{len(names)} {name}"):
                measure(name, quick)
        result = stored(name, quick)
        console.print(
            f"{number}/{len(names)} {name}: {result.cpu_seconds} s of CPU, "
            f"{result.wall_seconds} s{', stored' if known else ''}",
            highlight=False,
        )
    if missing := [name for name in everything if not path_of(name, quick).exists()]:
        console.print(f"no page yet: {', '.join(missing)} not run")
        return
    results = [stored(name, quick) for name in everything]
    target = (RESULTS if quick else HERE.parent / "docs") / f"{title}.rst"
    text = page(
        chosen.HEAD,
        chosen.GROUPS,
        {result.name: explained(result, quick) for result in results},
        {result.name: result.cpu_seconds for result in results},
    )
    target.write_text(text, encoding="utf-8")
    console.print(f"written: {target}")


if __name__ == "__main__":
    main(sys.argv[1:])
