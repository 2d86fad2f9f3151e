"""Recompute every table and figure that the data allow.

python -m experiments [--peers] [--quick | --full] [--jobs N] [NAME ...]

Without names all experiments of the papers run, or with --peers the comparison with
other libraries (extra `peers`). Finished cells are kept in experiments/results/ and not
measured again: an interrupted run goes on. Delete a file there to recompute it. --full
repeats what the paper repeats as often as the paper does. The pages are made from the
stored cells: docs/papers.rst and one of each paper in docs/papers, or docs/peers.rst;
with --quick files beside the results.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from experiments import papers, peers
from experiments.benchmark_data import folder
from experiments.cells import Experiment
from experiments.page import Groups, contents, page, pages
from experiments.table import RESULTS, show

HERE = Path(__file__).parent


def experiments(groups: Groups) -> list[str]:
    """Modules of this package that can be run, in the order of their page."""
    files = [
        file
        for prefix in groups
        for file in sorted(HERE.glob(f"{prefix}_*.py"))
        if any(f"\ndef {door}(" in file.read_text("utf-8") for door in ("run", "cells"))
    ]
    return [file.stem for file in files]


def arguments(words: list[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--peers", action="store_true")
    scale = parser.add_mutually_exclusive_group()
    for name in ("quick", "full"):
        scale.add_argument(f"--{name}", dest="scale", action="store_const", const=name)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.set_defaults(scale="default")
    return parser.parse_args(words)


def measure(chosen: list[Experiment], n_jobs: int, console: Console) -> None:
    """Measure the missing cells of each, with progress."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    missing = {experiment.name: len(experiment.missing()) for experiment in chosen}
    with Progress(*columns, console=console) as progress:
        everything = progress.add_task("cells", total=sum(missing.values()))
        for number, experiment in enumerate(chosen, start=1):
            progress.update(everything, description=experiment.name)
            if missing[experiment.name]:
                for _ in experiment.measure(n_jobs):
                    progress.advance(everything)
            known = "" if missing[experiment.name] else ", stored"
            progress.console.print(
                f"{number}/{len(chosen)} {experiment.name}: "
                f"{experiment.seconds():.0f} s of CPU{known}",
                highlight=False,
            )


def main(words: list[str]) -> None:
    """Measure what is missing; write the page when nothing is."""
    asked = arguments(words)
    title, chosen = ("peers", peers) if asked.peers else ("papers", papers)
    everything = experiments(chosen.GROUPS)
    if unknown := set(asked.names) - set(everything):
        sys.exit(f"no experiment {sorted(unknown)}; there are {', '.join(everything)}.")
    if chosen is papers and not folder().is_dir():
        sys.exit(f"no data in {folder()}; set PRUDENT_DATA to the folder of the sets.")
    console = Console(stderr=True)
    named = [Experiment(name, asked.scale) for name in asked.names or everything]
    measure(named, asked.jobs, console)
    if asked.names:
        for experiment in named:
            for table in experiment.tables():
                show(table)
    all_of_them = [Experiment(name, asked.scale) for name in everything]
    if missing := [e.name for e in all_of_them if e.missing()]:
        console.print(f"no page yet: {', '.join(missing)} not finished")
        return
    tables = {e.name: e.tables() for e in all_of_them}
    seconds = {e.name: e.seconds() for e in all_of_them}
    target = RESULTS if asked.scale == "quick" else HERE.parent / "docs"
    if chosen is peers:
        texts = {"": page(peers.HEAD, peers.GROUPS, tables, seconds)}
    else:
        head = papers.HEAD + contents(papers.GROUPS, papers.OMITTED, tables)
        texts = pages(head, papers.GROUPS, tables, seconds)
    for name, text in texts.items():
        path = target / title / f"{name}.rst" if name else target / f"{title}.rst"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        console.print(f"written: {path}")


if __name__ == "__main__":
    main(sys.argv[1:])
