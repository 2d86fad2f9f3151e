"""Figures of the report, drawn from the public fields of a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba_array
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, NullLocator

from prudent.core.checks import PromiseCheck
from prudent.evaluation.frame import false_alarms as measured_alarms
from prudent.evaluation.frame import shift_errors
from prudent.evaluation.records import Findings
from prudent.evaluation.words import label_of
from prudent.io.errors import cut
from prudent.plots import CostCurveDisplay, FalseAlarmDisplay, SubgroupDisplay
from prudent.plots.display import COLOURS, legend_beside, look_of_method
from prudent.plots.guarantees import STYLE as VERDICT_STYLE
from prudent.report.page import INK, shown_sets

MOST_BARS = 30
MOST_PROMISES = 33
MOST_CELLS = 7
MOST_NUMBERS = 400  # in the cells of all confusions; a table beside them has all
LONGEST_LABEL = 24
MOST_DIGITS = 14  # in a line of a confusion
SHORTEST_LABEL = 12  # beside a small panel
WIDTH = 6.4


def style_of(findings: Findings, name: str) -> dict[str, Any]:
    """Colour, marker and dash of a method: the same in all figures."""
    settings = findings.settings
    index = (*settings.methods, *settings.baselines).index(name)
    return look_of_method(index)


def _line_of(findings: Findings, name: str) -> dict[str, Any]:
    return {**style_of(findings, name), "label": name}


def class_counts(findings: Findings) -> Figure:
    """Rows of each class, the largest classes first."""
    data = findings.data
    order = np.argsort(data.class_counts, kind="stable")[::-1][:MOST_BARS]
    labels = [cut(data.classes[k], LONGEST_LABEL) for k in order]
    figure, ax = _axes(0.5 + 0.18 * len(order))
    ax.barh(range(len(order)), [data.class_counts[k] for k in order], color=COLOURS[0])
    _name_rows(ax, labels)
    ax.set(xlabel="rows")
    return figure


def promises(findings: Findings) -> Figure:
    """Measured rate with its interval beside the promised bound, a line for each."""
    asked = {row.method: row.asked.items for row in findings.ran if row.asked}
    if not any(asked.values()):  # those that methods make by themselves
        asked = {row.method: row.own for row in findings.ran}
    shown = [
        (method, item)
        for method, items in asked.items()
        # In the order of the probability that they look so bad by chance.
        for item in sorted(items, key=lambda item: item.p_broken)
    ]
    if len(shown) > MOST_PROMISES:  # of each method the one nearest to its bound
        shown = list({method: (method, item) for method, item in shown[::-1]}.values())
        shown = shown[::-1][:MOST_PROMISES]
    figure, ax = _axes(0.7 + 0.2 * len(shown), width=9.6)
    seen: set[str] = set()
    for place, (_, item) in enumerate(shown):
        colour, marker = VERDICT_STYLE[item.check.verdict]
        measured, (low, high) = item.check.measured, item.check.interval
        label = None if item.check.verdict in seen else item.check.verdict
        seen.add(item.check.verdict)
        ax.errorbar(
            [measured],
            [place],
            xerr=[[measured - low], [high - measured]],
            fmt=marker,
            color=colour,
            markersize=5,
            label=label,
        )
        bound = item.guarantee.bound
        tick = [place - 0.35, place + 0.35]
        ax.plot(
            [bound] * 2, tick, color=INK, linewidth=2, label="" if place else "bound"
        )
    _name_rows(ax, [_named(method, item) for method, item in shown])
    ax.set(xlabel="measured rate, exact interval")
    legend_beside(ax)
    return figure


def _named(method: str, item: PromiseCheck) -> str:
    scope, subgroup = item.guarantee.scope, item.guarantee.subgroup
    parts = [cut(method, LONGEST_LABEL)]
    parts += [] if scope is None else [label_of(scope, LONGEST_LABEL)]
    parts += [] if subgroup is None else [cut(subgroup, LONGEST_LABEL)]
    return " · ".join(parts)


def subgroups(findings: Findings) -> Figure:
    """What the first method promises each subgroup against what happened there."""
    able = next(row for row in findings.ran if row.asked and row.asked.items)
    assert able.asked is not None
    figure, ax = _axes(0.8 + 0.22 * len(able.asked.items), width=8.0)
    SubgroupDisplay.from_comparison(findings, ax=ax)
    return figure


def false_alarms(findings: Findings) -> Figure:
    """Requested against measured false-alarm rate, small rates spread out."""
    figure, ax = _axes(3.2, width=4.4)
    for row in findings.ran:
        curve = measured_alarms(findings, row.method)
        if curve:
            counts, n = np.array(list(curve.values())).T
            own = _line_of(findings, row.method)
            FalseAlarmDisplay(np.array(list(curve)), counts, n[0]).plot(ax, **own)
    # Measured rates may be 0, which a logarithmic axis cannot show.
    ax.set_xscale("symlog", linthresh=1e-3, linscale=0.4)
    ax.set_yscale("symlog", linthresh=1e-3, linscale=0.4)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(FixedLocator([0, 1e-3, 1e-2, 1e-1, 1]))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_locator(NullLocator())
    return figure


def frontier(findings: Findings) -> Figure:
    """Rows decided at every promised level, one line a method."""
    figure, ax = _axes(4.2, width=9.6)
    CostCurveDisplay.from_comparison(findings, ax=ax)
    return figure


def worst_classes(findings: Findings) -> Figure:
    """Error of the worst class of each method."""
    rows = [row for row in findings.ran if row.worst_class is not None]
    figure, ax = _axes(0.6 + 0.24 * len(rows))
    for position, row in enumerate(rows):
        assert row.worst_class is not None
        style = style_of(findings, row.method)
        rate = row.worst_class.rate
        ax.plot([0, rate], [position] * 2, color=style["color"])
        ax.plot(
            [rate],
            [position],
            linestyle="",
            color=style["color"],
            marker=style["marker"],
        )
    _name_rows(ax, [row.method for row in rows])
    ax.set(xlabel="error of the worst class", xlim=(0, None))
    return figure


def shift_curves(findings: Findings) -> Figure:
    """Error of each method when the tested rows move."""
    figure, ax = _axes(3.2)
    for row in findings.ran:
        curve = shift_errors(findings, row.method)
        errors = [wrong / n for wrong, n in curve.values()]
        ax.plot(list(curve), errors, **_line_of(findings, row.method), linewidth=1.2)
    ax.set(
        xlabel="shift, in pooled standard deviations", ylabel="error", ylim=(0, None)
    )
    ax.legend(loc="upper left", bbox_to_anchor=(1, 1))
    return figure


def set_sizes(findings: Findings) -> Figure:
    """Coverage against mean size, and the histogram of sizes."""
    rows = [row for row in findings.ran if shown_sets(row) is not None]
    figure = Figure(figsize=(WIDTH, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    width = 0.8 / len(rows)
    for position, row in enumerate(rows):
        sets = shown_sets(row)
        assert sets is not None
        style = style_of(findings, row.method)
        left.plot(
            [sets.mean_size],
            [sets.coverage],
            linestyle="",
            color=style["color"],
            marker=style["marker"],
            label=row.method,
        )
        shares = _folded(np.array(sets.size_counts) / sum(sets.size_counts))
        places = np.arange(len(shares)) + (position - (len(rows) - 1) / 2) * width
        there = shares > 0
        right.bar(places[there], shares[there], width, color=style["color"])
    left.set(xlabel="mean number of classes", ylabel="sets that hold the truth")
    figure.legend(loc="outside right upper")
    labels = [str(size) for size in range(len(shares))]
    if len(shares) <= len(rows[0].confusion):
        labels[-1] += "+"
    right.set_xticks(range(len(shares)), labels)
    right.set(xlabel="classes in the set", ylabel="share of rows")
    return figure


def regions(findings: Findings) -> Figure:
    """Decision regions in the discriminant plane; undecided points are striped."""
    rows = [row for row in findings.ran if row.regions is not None]
    figure, panels = _panels(len(rows), 1.9)
    classes = findings.data.classes
    colours = _class_colours(len(classes))
    for row, ax in zip(rows, panels, strict=False):
        plane = row.regions
        assert plane is not None
        pixels = colours[plane.predicted]
        # Stripes are seen without colour, and take no more room than the picture.
        stripes = np.add.outer(np.arange(len(plane.y)), np.arange(len(plane.x))) % 4 < 2
        undecided = (plane.sets.sum(axis=2) != 1) & stripes
        pixels[undecided] = 0.2 * pixels[undecided] + 0.8
        extent = (plane.x[0], plane.x[-1], plane.y[0], plane.y[-1])
        ax.imshow(pixels, origin="lower", extent=extent, aspect="auto")
        ax.set(title=row.method, xticks=[], yticks=[])
    figure.supxlabel("first discriminant axis", fontsize=9)
    figure.supylabel("second discriminant axis", fontsize=9)
    if len(classes) <= len(COLOURS):
        names = [cut(label, LONGEST_LABEL) for label in classes]
        keys = [Patch(color=colour) for colour in colours]
        figure.legend(keys, names, loc="outside right upper")
    return figure


def confusions(findings: Findings) -> Figure:
    """Confusion matrices, each row as shares of its class."""
    rows = findings.ran
    names = [label_of(label, SHORTEST_LABEL) for label in findings.data.classes]
    n_cells = len(names) ** 2 * len(rows)
    longest = len(f"{max(findings.data.class_counts)}")
    with_numbers = n_cells <= MOST_NUMBERS and len(names) * longest <= MOST_DIGITS
    figure, panels = _panels(len(rows), 1.6)
    for place, (row, ax) in enumerate(zip(rows, panels, strict=False)):
        counts = np.array(row.confusion)
        shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        ax.imshow(shares, cmap="Blues", vmin=0, vmax=1)
        if with_numbers:
            for i, j in np.ndindex(*counts.shape):
                colour = "#ffffff" if shares[i, j] > 0.5 else "#222222"
                ax.text(
                    j,
                    i,
                    f"{counts[i, j]:.0f}",
                    ha="center",
                    va="center",
                    color=colour,
                    fontsize=7,
                )
        ax.set(title=row.method, xticks=[], yticks=[])
        if len(counts) > MOST_CELLS:
            continue
        # Names stand at the left and at the bottom: the panels share them.
        ax.tick_params(length=0, pad=1)
        n_columns = _columns_of(len(rows))
        if place % n_columns == 0:
            ax.set_yticks(range(len(names)), names, fontsize=6)
        if place + n_columns >= len(rows):
            ax.set_xticks(range(len(names)), names, rotation=90, fontsize=6)
    figure.supxlabel("predicted class", fontsize=9)
    figure.supylabel("true class", fontsize=9)
    return figure


def times(findings: Findings) -> Figure:
    """Seconds of a fit and of predicting a thousand rows."""
    rows = [row for row in findings.ran if row.fit_seconds is not None]
    figure, ax = _axes(0.7 + 0.25 * len(rows))
    fit = [row.fit_seconds or 0.0 for row in rows]
    predict = [1000 * (row.predict_seconds or 0.0) for row in rows]
    places = np.arange(len(rows))
    ax.barh(places - 0.2, fit, 0.38, color=COLOURS[0], label="fit")
    ax.barh(places + 0.2, predict, 0.38, color=COLOURS[1], label="predict 1000 rows")
    _name_rows(ax, [row.method for row in rows])
    ax.set(xlabel="seconds", xscale="log")
    ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_minor_locator(NullLocator())
    ax.legend(loc="upper left", bbox_to_anchor=(1, 1))
    return figure


def _axes(height: float, width: float = WIDTH) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots()


def _columns_of(count: int) -> int:
    """Panels beside each other, four at most, in lines of nearly equal numbers."""
    return -(-count // -(-count // 4))


def _panels(count: int, side: float) -> tuple[Figure, Sequence[Axes]]:
    columns = _columns_of(count)
    lines = -(-count // columns)
    figure = Figure(figsize=(WIDTH, side * lines), layout="constrained")
    panels: list[Axes] = list(figure.subplots(lines, columns, squeeze=False).flat)
    for ax in panels[count:]:
        ax.set_axis_off()
    return figure, panels


def _name_rows(ax: Axes, labels: Sequence[str]) -> None:
    ax.set_yticks(range(len(labels)), labels)
    ax.invert_yaxis()
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)


def _folded(shares: Any, most: int = 6) -> Any:
    """Shares of set sizes with everything from `most` on in one bar."""
    if len(shares) <= most + 1:
        return shares
    return np.append(shares[:most], shares[most:].sum())


def _class_colours(n_classes: int) -> Any:
    if n_classes <= len(COLOURS):
        return to_rgba_array(COLOURS[:n_classes])[:, :3]
    return colormaps["turbo"](np.linspace(0.05, 0.95, n_classes))[:, :3]
