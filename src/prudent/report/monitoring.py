"""The page of `prudent monitor`: each promise as a line of time, and what drifted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

from matplotlib.figure import Figure

from prudent.io.errors import cut
from prudent.monitoring import PromiseMonitor
from prudent.plots import MonitorDisplay
from prudent.report.build import page
from prudent.report.parts import Section, Table, first_rows
from prudent.report.svg import INK

SIZE = (7.2, 3.4)
MOST_BARS = 10
HOW_TO_READ = (
    "Above: the evidence against the promise; it is called broken, for ever, where the "
    "line reaches the alarm. Below: the limits of the measured rate, which hold at all "
    "times at once, and the promised bound (dashed)."
)


def monitor_page(
    title: str,
    sentences: Sequence[str],
    table: tuple[Sequence[str], Sequence[Sequence[str]]],
    promises: Sequence[tuple[str, PromiseMonitor]],
    data: dict[str, Any],
) -> str:
    """One offline HTML document on what a monitor has seen.

    Promises are those that have counted rows, by name; `data` is all of it in JSON
    types, the columns of drift the most suspicious first.
    """
    heads, lines = table
    found = [
        Section(
            "result",
            "Promises",
            sentences,
            tables=[Table("What is watched", heads, lines)],
        )
    ]
    found += [
        Section(
            f"promise-{number}",
            cut(name),
            [str(monitor), *([HOW_TO_READ] if number == 1 else [])],
            partial(_promise, monitor),
            f"Evidence against {name} and limits of the rate over "
            f"{monitor.n_} rows: {monitor.verdict}.",
        )
        for number, (name, monitor) in enumerate(promises, 1)
    ]
    if data["drift"] is not None:
        found.append(_drift(data["drift"]["columns"], data["level"]))
    return page(title, found, data)


def _promise(monitor: PromiseMonitor) -> Figure:
    figure = Figure(SIZE)
    display = MonitorDisplay.from_monitor(monitor).plot(figure.subplots())
    for axes in display.axes_:
        axes.tick_params(labelsize=8)
    return figure


def _bars(columns: Sequence[tuple[str, float, float]], level: float) -> Figure:
    """Evidence of each column alone, the largest first."""
    shown = columns[:MOST_BARS]
    figure = Figure((7.2, 0.6 + 0.28 * len(shown)))
    ax = figure.subplots()
    values = [math.log10(max(e, 1e-12)) for _, e, _ in shown]
    ax.barh(range(len(shown)), values, color="#0072b2", height=0.6)
    ax.axvline(math.log10(1 / level), linestyle="--", color="#d55e00", linewidth=1)
    ax.axvline(0, color=INK, linewidth=0.8)
    ax.set_yticks(range(len(shown)), [cut(name, 32) for name, _, _ in shown])
    ax.invert_yaxis()
    ax.set_xlabel("log10 e-value of the column alone (dashed: alarm)")
    return figure


def _drift(found: Sequence[dict[str, Any]], level: float) -> Section:
    """What drifted most, as evidence of each column alone."""
    columns = [(c["column"], float(c["e_value"]), c["mean_position"]) for c in found]
    rows = [[cut(name), f"{e:.3g}", f"{place:.3f}"] for name, e, place in columns]
    return Section(
        "drift",
        "Drift",
        [
            "New rows among reference rows, column by column: which changed most. The "
            "verdict is about all columns together; a column's own e-value is an "
            "indication. Mean position: the share of reference rows below a new row, "
            "1/2 without drift."
        ],
        partial(_bars, columns, level),
        "Evidence of drift, the largest first.",
        [first_rows("Columns", ["column", "e-value", "mean position"], rows)],
    )
