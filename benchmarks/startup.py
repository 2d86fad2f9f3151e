"""A stored logistic model, from nothing to its answer, against scikit-learn's import.

Both are processes of their own: the peer imports what no logistic model can answer
without, and does nothing.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
from sklearn.datasets import load_breast_cancer

from benchmarks.timing import Workload

PEER = "python -c 'import sklearn.linear_model'"


def child(*arguments: str) -> Callable[[], object]:
    """Run Python, and say what went wrong if anything did."""
    command = [sys.executable, *arguments]
    return lambda: subprocess.run(command, check=True, capture_output=True)


def workloads() -> Iterator[Workload]:
    folder = Path(mkdtemp())
    table = load_breast_cancer(as_frame=True).frame
    table.to_csv(folder / "table.csv", index=False)
    new = table * (1 + 0.01 * np.random.default_rng(0).normal(size=table.shape))
    new["target"] = table["target"]
    new.to_csv(folder / "new.csv", index=False)
    table.drop(columns="target").head(1).to_csv(folder / "row.csv", index=False)
    names = ("table.csv", "new.csv", "row.csv", "model")
    data, rows, row, model = (str(folder / name) for name in names)
    target = ("--target", "target")
    options = ("--method", "logistic", "--promise", "error <= 5%")
    child("-m", "prudent", "fit", data, *target, *options, "-o", model)()
    commands = {
        "predict, one row": (("predict", row, "-m", model), 1.7),
        "certify, 569 rows": (("certify", rows, "-m", model, *target), 1.8),
        "monitor, 569 rows": (("monitor", model, "--data", rows, *target), 1.8),
    }
    for name, (command, goal) in commands.items():
        ours = child("-m", "prudent", *command)
        yield Workload(
            name, ours, PEER, child("-c", "import sklearn.linear_model"), goal
        )
    load = f"import prudent; prudent.load({model!r})"
    peer = child("-c", "import sklearn.linear_model")
    yield Workload("load in Python", child("-c", load), PEER, peer, 1.4)
