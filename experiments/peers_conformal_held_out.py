"""Conformal sets on ten tables that played no part in the choice of the defaults.

The tables were fixed before any was looked at. Every method learns from the same rows
and answers for up to 500 others; ten draws.

python -m experiments.peers_conformal_held_out [--quick]
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from experiments.benchmark_data import folder
from experiments.cells import Scale, Tasks
from experiments.peers_conformal import (
    FEWEST_NEW,
    GAUSSIAN,
    crepes_split,
    mapie_cross,
    measure,
    ours,
    rows,
)
from experiments.peers_errors import logistic
from experiments.table import Table, save_picture, show

SETS = (
    *("banknote_authentication", "ionosphere", "pima_diabetes", "haberman"),
    *("blood_transfusion", "forest_types", "optdigits", "wall_following"),
    *("qsar_biodegradation", "german_numer"),
)
METHODS: dict[str, Any] = {
    "prudent, full": ours,
    "prudent, full, Gaussian": GAUSSIAN,
    "MAPIE, cross, logistic": partial(mapie_cross, base=logistic),
    "crepes, split, logistic": partial(crepes_split, base=logistic),
}
OURS, PEER = "prudent, full", "MAPIE, cross, logistic"
ROWS, SEEDS = (40, 100, 200, 400), 10
# Place of the size at 90 %, its coverage, the size at 95 %, its coverage in a cell.
SIZE, COVERAGE, SIZE_95, COVERAGE_95 = range(4)
#: What stands in the picture, with its promise: method, size, line.
CURVES = {
    "prudent, full: 90 % promised": (OURS, SIZE, "o-"),
    "crepes, split: 90 % promised": ("crepes, split, logistic", SIZE, "s-"),
    "MAPIE, cross, asked for 95 %: about 90 % promised": (PEER, SIZE_95, "^-"),
    "MAPIE, cross, asked for 90 %: about 80 % promised": (PEER, SIZE, "v:"),
}
PICTURE = "conformal_sizes.svg"
#: Number of rows, table, method; and means of what `measure` gives.
Case = tuple[int, str, str]
Mean = NDArray[np.float64]


def cells(scale: Scale) -> Tasks:
    """One cell a table, number of rows, draw and method."""
    if not folder().is_dir():
        return {}
    sets, sizes = (SETS[:1], ROWS[:2]) if scale == "quick" else (SETS, ROWS)
    return {
        f"{name} {n} {seed} {title}": partial(cell, method, name, n, seed)
        for name in sets
        for n in sizes
        if len(rows(name)[1]) >= n + FEWEST_NEW
        for seed in range(SEEDS)
        for title, method in METHODS.items()
    }


def cell(method: Any, name: str, n: int, seed: int) -> list[float] | None:
    """Size and coverage at each level, and seconds; None if the method refuses."""
    return measure(method, *rows(name), n, seed)


def tables(values: Mapping[str, Any]) -> list[Table]:
    """Means over the tables and a picture; then the sizes on each table."""
    draws: dict[Case, list[list[float] | None]] = {}
    for key, value in values.items():
        name, n, _, title = key.split(" ", 3)
        draws.setdefault((int(n), name, title), []).append(value)
    mean = {case: np.mean(each, axis=0) for case, each in draws.items() if all(each)}
    sizes = sorted({n for n, _, _ in draws})
    answered = {
        n: [name for name in SETS if all((n, name, t) in mean for t in METHODS)]
        for n in sizes
    }
    names = [name for name in SETS if (sizes[0], name, OURS) in mean]
    return [summary(mean, answered), each_table(mean, names, sizes)]


def summary(mean: Mapping[Case, Mean], answered: Mapping[int, list[str]]) -> Table:
    """One row a number of rows, over the tables that every method answered."""
    lines = []
    for n, names in answered.items():
        line = [f"{n}, {len(names)} tables"]
        for title in METHODS:
            case = np.mean([mean[n, name, title] for name in names], axis=0)
            line.append(
                f"{case[SIZE]:.3f} / {case[SIZE_95]:.3f} "
                f"({case[COVERAGE]:.3f} / {case[COVERAGE_95]:.3f})"
            )
        lines.append(line)
    return Table(
        "Ten tables fixed before looking: size at 90 / 95 % (coverage)",
        ("training rows", *METHODS),
        lines,
        (
            f"{SEEDS} draws of {', '.join(SETS)}. Sets may be empty. A table "
            "counts where it has enough rows and no method refused a draw (40 rows of "
            "optdigits lack classes).",
            "prudent and crepes promise 90 and 95 %, MAPIE's cross about 80 and 90 %, "
            "less with few rows. In the picture the dotted line is MAPIE's cross asked "
            "for 90 %, which promises about 80 %.",
        ),
        [draw(mean, answered)],
    )


def each_table(mean: Mapping[Case, Mean], names: list[str], sizes: list[int]) -> Table:
    """One row a table: sizes of full and of MAPIE's cross, and who loses."""
    lines = []
    for name in names:
        line = [name]
        for n in sizes:
            ours, peer = (mean.get((n, name, title)) for title in (OURS, PEER))
            for at in (SIZE, SIZE_95):
                if ours is None or peer is None:
                    line.append("–")
                    continue
                lost = " (larger)" if ours[at] > peer[at] else ""
                line.append(f"{ours[at]:.2f} / {peer[at]:.2f}{lost}")
        lines.append(line)
    columns = ["table"]
    for n in sizes:
        columns += [f"{n} rows, at 90 %", "at 95 %"]
    return Table(
        f"On each of them: size of {OURS} / of {PEER}",
        columns,
        lines,
        ("Where full has the larger sets, the cell says so.",),
    )


def draw(mean: Mapping[Case, Mean], answered: Mapping[int, list[str]]) -> str:
    """Sizes over the number of rows, on the tables answered for each of them."""
    names = [name for name in SETS if all(name in each for each in answered.values())]
    figure = Figure(figsize=(6.4, 4), layout="constrained")
    panel = figure.subplots()
    for label, (title, at, style) in CURVES.items():
        line = [np.mean([mean[n, name, title][at] for name in names]) for n in answered]
        panel.plot(list(answered), line, style, label=label)
    panel.set_xscale("log")
    panel.set_xticks(list(answered), [str(n) for n in answered])
    panel.minorticks_off()
    panel.set(
        xlabel="training rows",
        ylabel=f"labels in a set, mean of {len(names)} tables",
    )
    panel.set_ylim(bottom=0)
    panel.legend()
    return save_picture(figure, PICTURE)


if __name__ == "__main__":
    scale: Scale = "quick" if "--quick" in sys.argv[1:] else "default"
    for table in tables({key: task() for key, task in cells(scale).items()}):
        show(table)
