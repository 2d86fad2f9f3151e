"""Finished cells on disk, so that an interrupted run goes on where it stopped.

A cell is the smallest thing that is measured: one split of a set, one draw of a law. An
experiment names its cells and how each is measured, and makes its tables from the
values of those that are stored.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from functools import partial
from importlib import import_module
from typing import Any, Literal

from joblib import Parallel, delayed

from experiments.table import RESULTS, Table, pictures_in

Scale = Literal["quick", "default", "full"]
#: Key of a cell -> how it is measured; its value is made of what JSON has.
Tasks = Mapping[str, Callable[[], Any]]


class Experiment:
    """A module of this package, its cells on disk and the tables made of them.

    The module has `cells(scale) -> Tasks` and `tables(found) -> list of Table`, or
    only `run(quick) -> Table`, which is one cell.
    """

    def __init__(self, name: str, scale: Scale) -> None:
        self.name, self.scale = name, scale
        self.module = import_module(f"experiments.{name}")
        ending = "-quick" if scale == "quick" else ""
        self.path = RESULTS / f"{name}{ending}.jsonl"

    def tasks(self) -> Tasks:
        """All cells of this scale."""
        if hasattr(self.module, "cells"):
            return self.module.cells(self.scale)
        return {"table": partial(_table, self.module.run, self.scale == "quick")}

    def stored(self) -> dict[str, dict[str, Any]]:
        """Value and seconds of each finished cell; half-written lines do not count."""
        if not self.path.exists():
            return {}
        found = {}
        for line in self.path.read_text(encoding="utf-8").splitlines():
            try:
                cell = json.loads(line)
            except json.JSONDecodeError:
                continue
            found[cell.pop("key")] = cell
        return found

    def missing(self) -> Tasks:
        """Cells of this scale that are not on disk."""
        known = self.stored()
        return {key: task for key, task in self.tasks().items() if key not in known}

    def measure(self, n_jobs: int) -> Iterator[str]:
        """Measure and store what is missing; the key of each cell as it is done."""
        RESULTS.mkdir(exist_ok=True)
        if self.path.exists() and not self.path.read_bytes().endswith(b"\n"):
            with self.path.open("a", encoding="utf-8") as file:
                file.write("\n")
        work = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
        done = work(delayed(_measured)(*item) for item in self.missing().items())
        with self.path.open("a", encoding="utf-8") as file:
            for cell in done:
                print(json.dumps(cell, default=_plain), file=file, flush=True)
                yield cell["key"]

    def seconds(self) -> float:
        """CPU seconds of all stored cells."""
        return sum(cell["seconds"] for cell in self.stored().values())

    def tables(self) -> list[Table]:
        """The tables, from the stored values in the order of the tasks.

        Cells are stored in the order in which they were done, which is one of chance.
        """
        order = {key: i for i, key in enumerate(self.tasks())}
        cells = self.stored().items()
        found = {
            key: cell["value"]
            for key, cell in sorted(cells, key=lambda c: order.get(c[0], len(order)))
        }
        if not hasattr(self.module, "tables"):
            return [Table(**found["table"])]
        if self.scale != "quick":
            return self.module.tables(found)
        with pictures_in(RESULTS / "images"):
            return self.module.tables(found)


def _table(run: Callable[[bool], Table], quick: bool) -> dict[str, Any]:
    return asdict(run(quick))


def _measured(key: str, task: Callable[[], Any]) -> dict[str, Any]:
    begin = time.process_time()
    with warnings.catch_warnings():
        # Small classes, constant columns and met limits are part of the experiments.
        warnings.simplefilter("ignore")
        value = task()
    seconds = round(time.process_time() - begin, 3)
    return {"key": key, "value": value, "seconds": seconds}


def _plain(value: Any) -> Any:
    """NumPy's numbers and arrays as JSON has them."""
    return value.tolist()
