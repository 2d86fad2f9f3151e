"""What `prudent apply` costs: rows a minute and peak memory, against the rows.

python -m benchmarks.rules

Each run is a process of its own, its start included.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

import prudent

ROWS = (100_000, 400_000, 1_600_000)
CLASSES = (3, 10)
GOAL = 1e6  # rows a minute
# Of this process alone: ru_maxrss would count that of its parent, too.
MEASURED = """
import sys
from prudent.cli import main
try:
    main(sys.argv[1:])
finally:
    status = open("/proc/self/status").read()
    print(int(status.split("VmHWM:")[1].split()[0]) / 1024, file=sys.stderr)
"""


def files(folder: Path, n_rows: int, n_classes: int) -> tuple[Path, Path]:
    """A rule, and a table of probabilities that it answers to."""
    random = np.random.default_rng(0)
    p = random.dirichlet(np.full(n_classes, 0.5), size=n_rows)
    y = (p[:2000].cumsum(axis=1) < random.random((2000, 1))).sum(axis=1)
    columns = [f"p_{c}" for c in range(n_classes)]
    rule = prudent.promise(
        p[:2000], y, "coverage >= 90%", classes=range(n_classes), unseen="drawn"
    )
    rule = replace(rule, record={**rule.record, "columns": columns})
    (folder / "rule.json").write_text(rule.to_json())
    columns_of = {name: p[:, c] for c, name in enumerate(columns)}
    csv.write_csv(pa.table(columns_of), folder / "scores.csv")
    return folder / "rule.json", folder / "scores.csv"


def main() -> None:
    """Print a line for each number of rows and classes."""
    for n_classes in CLASSES:
        for n_rows in ROWS:
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                rule, scores = files(folder, n_rows, n_classes)
                words = ["apply", rule, scores, "-o", folder / "answers.csv"]
                start = time.perf_counter()
                done = subprocess.run(
                    [sys.executable, "-c", MEASURED, *map(str, words)],
                    check=True,
                    capture_output=True,
                    text=True,
                )
                seconds = time.perf_counter() - start
            rate = 60 * n_rows / seconds
            verdict = "reached" if rate >= GOAL else "missed"
            print(
                f"{n_classes} classes, {n_rows} rows: {rate:.2g} rows a minute "
                f"(goal {GOAL:g}: {verdict}), {float(done.stderr):.0f} MB"
            )


if __name__ == "__main__":
    main()
