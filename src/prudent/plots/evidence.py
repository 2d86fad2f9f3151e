"""What was found to speak against a promise: by audits, and by monitors over time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa
from matplotlib.axes import Axes

from prudent.auditing.result import Audit, AuditRow
from prudent.core.binomial import clopper_pearson
from prudent.monitoring import DriftMonitor, PromiseMonitor
from prudent.plots.display import (
    BLUE,
    GREY,
    RED,
    Display,
    legend_beside,
    thousands_on_axis,
)

# Whether the row is refuted -> colour, marker and name: readable without colour, too.
STYLE: Mapping[bool, Mapping[str, Any]] = {
    False: {"color": BLUE, "marker": "o", "label": "no violation found"},
    True: {"color": RED, "marker": "X", "label": "broken"},
}


@dataclass(eq=False, repr=False)
class AuditDisplay(Display):
    """Mean true rates with their bounds; right of them the draws beyond the bound.

    A line is one promise under one law at one size, the most suspicious first. Left,
    the dot is the mean true rate of violations and the tick the mean bound. Right, of
    promises with a confidence, the dot is the share of draws whose true rate lies
    beyond the bound, with its exact interval, and the tick the share that may.

    Parameters
    ----------
    rows : sequence of AuditRow
        What was found.
    most : int, default=30
        Lines drawn at most.

    Attributes
    ----------
    axes_ : tuple of matplotlib Axes
        Rates; draws beyond the bound.
    points_ : list of matplotlib Line2D
        Mean true rates, one for each of the verdicts that occur.

    Examples
    --------
    >>> import prudent
    >>> from prudent.plots import AuditDisplay
    >>> detector = prudent.MinimaxOutlierDetector(false_alarm_rate=0.1)
    >>> audit = prudent.audit(detector, laws=["line"], sizes=(60,), budget=20)
    >>> display = AuditDisplay.from_audit(audit)
    >>> display.frame()["law"].to_pylist()
    ['line']
    """

    rows: Sequence[AuditRow]
    _: KW_ONLY
    most: int = 30

    _shown = "the points"

    @classmethod
    def from_audit(cls, audit: Audit, *, most: int = 30, **kwargs: Any) -> Self:
        """Show what an audit found, under the laws that its verdict is about.

        Parameters
        ----------
        audit : Audit
            What :func:`prudent.audit` returned.
        most : int, default=30
            Lines drawn at most, the most suspicious first.
        name : str, default=None
            What the legend calls the true rates.
        """
        return cls(audit.rows, most=most).plot(**kwargs)

    def frame(self) -> pa.Table:
        """One row for each promise, law and size, the most suspicious first."""
        return pa.Table.from_pylist([asdict(row) for row in self._sorted()])

    def _sorted(self) -> list[AuditRow]:
        return sorted(self.rows, key=lambda row: row.p_value)

    def _draw(self, ax: Axes, look: Mapping[str, Any]) -> None:
        shown = self._sorted()[: self.most]
        ax.set_axis_off()
        rates = ax.inset_axes((0, 0, 0.56, 1))
        beyond = ax.inset_axes((0.62, 0, 0.38, 1))
        self.axes_, self.points_ = (rates, beyond), []
        for is_refuted, style in STYLE.items():
            places = [i for i, row in enumerate(shown) if row.is_refuted is is_refuted]
            if not places:
                continue
            points = {"linestyle": "", "clip_on": False, **style, **look}
            points["label"] = self._label(style["label"])
            means = [shown[i].mean_truth for i in places]
            self.points_ += rates.plot(means, places, **points)
            for i in places:
                _draw_beyond(beyond, i, shown[i], {**points, "label": None})
        for i, row in enumerate(shown):
            _tick(rates, row.mean_bound, i, "bound" if i == 0 else None)
        rates.set_yticks(
            range(len(shown)),
            [f"{row.law}, {row.size} rows: {row.claim}" for row in shown],
        )
        rates.set(xlabel="true rate (mean)", xlim=(0, None))
        beyond.set(xlabel="draws beyond the bound", xlim=(0, None), yticks=[])
        for panel in self.axes_:
            panel.set_ylim(len(shown) - 0.5, -0.5)
            panel.spines["left"].set_visible(False)
            panel.tick_params(axis="y", length=0)
        # What the ticks and points of both panels mean.
        beyond.legend(
            *rates.get_legend_handles_labels(),
            loc="upper left",
            bbox_to_anchor=(1.01, 1),
        )


def _tick(ax: Axes, at: float, place: int, label: str | None) -> None:
    """A short upright line, in the colour of the axes."""
    ax.plot(
        [at],
        [place],
        marker="|",
        markersize=10,
        markeredgewidth=2,
        linestyle="",
        color=ax.xaxis.label.get_color(),
        label=label,
        clip_on=False,
    )


def _draw_beyond(ax: Axes, place: int, row: AuditRow, style: Mapping[str, Any]) -> None:
    """Share of draws beyond the bound, where a promise says how many may be."""
    if row.allowed is None:
        return
    draws = row.claims + row.refused  # one that ends in an error broke no promise
    low, high = clopper_pearson(row.broken, draws)
    ax.plot([low, high], [place] * 2, color=style["color"], linewidth=1)
    ax.plot([row.broken / draws], [place], **style)
    _tick(ax, row.allowed / draws, place, None)


@dataclass(eq=False, repr=False)
class MonitorDisplay(Display):
    """Evidence (log10 of the e-value) with the alarm level; limits of the rate below.

    Parameters
    ----------
    trace : pyarrow.Table
        row, violations, log_e_value, lower, upper.
    level : float
        The alarm is raised at an e-value of 1 / `level`.
    bound : float
        Promised value of the quantity.
    quantity : str
        What is promised.
    alarm_at : int or None
        Rows seen at the alarm.

    Attributes
    ----------
    axes_ : tuple of matplotlib Axes
        Evidence, limits.
    line_ : matplotlib Line2D
        Logarithms (base 10) of the e-values.
    band_ : matplotlib PolyCollection
        Limits.

    Examples
    --------
    >>> from prudent import Guarantee, PromiseMonitor
    >>> from prudent.plots import MonitorDisplay
    >>> promise = Guarantee(quantity="error rate", bound=0.05, sense="<=")
    >>> monitor = PromiseMonitor(promise).update([0, 0, 1, 0, 0, 0])
    >>> MonitorDisplay.from_monitor(monitor).frame().column_names
    ['row', 'violations', 'log_e_value', 'lower', 'upper']
    """

    trace: pa.Table
    _: KW_ONLY
    level: float
    bound: float
    quantity: str
    alarm_at: int | None = None

    _shown = "the line of the evidence"

    @classmethod
    def from_monitor(cls, monitor: PromiseMonitor, **kwargs: Any) -> Self:
        """Show what a monitor has seen.

        Parameters
        ----------
        monitor : PromiseMonitor
        """
        return cls(
            monitor.frame(),
            level=monitor.level,
            bound=monitor.guarantee.bound,
            quantity=monitor.guarantee.quantity,
            alarm_at=monitor.alarm_at_,
        ).plot(**kwargs)

    def _draw(self, ax: Axes, look: Mapping[str, Any]) -> None:
        ax.set_axis_off()
        evidence = ax.inset_axes((0, 0.5, 1, 0.5))
        limits = ax.inset_axes((0, 0, 1, 0.4))
        rows, log_e, lower, upper = (
            self.trace[column].to_numpy()
            for column in ("row", "log_e_value", "lower", "upper")
        )
        # The alarm is raised at 1 / level: at 20, which is 1.3 on this scale.
        log_e, alarm = log_e / math.log(10), -math.log10(self.level)
        # What lies far beyond the alarm would flatten all before it: it is drawn along
        # the upper edge.
        top = min(3 * alarm, max(alarm, float(np.max(log_e, initial=0.0))))
        edge = 1.15 * top
        line = {"color": BLUE, "linewidth": 1.2, "label": self.name_, **look}
        (self.line_,) = evidence.plot(rows, np.minimum(log_e, edge), **line)
        legend_beside(evidence)
        small: dict[str, Any] = {"textcoords": "offset points", "fontsize": "small"}
        if np.any(log_e > edge):
            first = rows[np.argmax(log_e > edge)]
            evidence.annotate("beyond this scale", (first, edge), (5, -9), **small)
        evidence.axhline(alarm, linestyle="--", color=RED, linewidth=1)
        evidence.set(
            ylabel="evidence\n(log10 e-value)", ylim=(None, 1.2 * top), xticklabels=[]
        )
        small |= {"xycoords": ("axes fraction", "data"), "ha": "right"}
        evidence.annotate("alarm", (1, alarm), (-3, 3), **small)
        self.band_ = limits.fill_between(
            rows, lower, upper, color=BLUE, alpha=0.25, linewidth=0
        )
        limits.axhline(self.bound, linestyle="--", color=GREY, linewidth=1)
        limits.xaxis.set_major_formatter(thousands_on_axis)
        limits.set(xlabel="rows", ylabel=self.quantity, ylim=self._window())
        for panel in (evidence, limits):
            panel.set_xlim(0, max(1, int(rows[-1]) if len(rows) else 1))
            if self.alarm_at is not None:
                panel.axvline(self.alarm_at, linestyle=":", color=RED, linewidth=1)
        self.axes_ = evidence, limits

    def frame(self) -> pa.Table:
        """One row for each point of the trace."""
        return self.trace

    def _window(self) -> tuple[float, float]:
        """Rates to show: the limits once they say something, and the bound."""
        later = slice(self.trace.num_rows // 8, None)
        ends: list[Any] = [
            *self.trace["lower"].to_numpy()[later],
            *self.trace["upper"].to_numpy()[later],
            self.bound,
        ]
        low, high = float(min(ends)), float(max(ends))
        room = max(0.02, 0.1 * (high - low))
        return max(0.0, low - room), min(1.0, high + room)


@dataclass(eq=False, repr=False)
class DriftDisplay(Display):
    """Evidence of drift of each column, the largest first, with the level of the alarm.

    The alarm is about all columns together; that of a column alone is an indication.

    Parameters
    ----------
    table : pyarrow.Table
        column, e_value, mean position.
    level : float
        The alarm is raised at an e-value of 1 / `level`.
    most : int, default=10
        Columns that are drawn.

    Attributes
    ----------
    bars_ : matplotlib BarContainer
        Logarithms (base 10) of the e-values.
    alarm_line_ : matplotlib Line2D
        The level of the alarm.

    Examples
    --------
    >>> import numpy as np
    >>> from prudent import DriftMonitor
    >>> from prudent.plots import DriftDisplay
    >>> rows = np.random.default_rng(0).normal(size=(200, 2))
    >>> monitor = (
    ...     DriftMonitor(random_state=0).fit(rows[:100]).update(rows[100:] + [0, 3])
    ... )
    >>> DriftDisplay.from_monitor(monitor).frame()["column"].to_pylist()
    ['1', '0']
    """

    table: pa.Table
    _: KW_ONLY
    level: float
    most: int = 10

    _shown = "the bars"

    @classmethod
    def from_monitor(cls, monitor: DriftMonitor, **kwargs: Any) -> Self:
        """Show what a monitor has seen.

        Parameters
        ----------
        monitor : fitted DriftMonitor
        """
        return cls(monitor.frame(), level=monitor.level).plot(**kwargs)

    def frame(self) -> pa.Table:
        """One row for each column, the most suspicious first."""
        return self.table

    def _draw(self, ax: Axes, look: Mapping[str, Any]) -> None:
        shown = self.table.slice(0, self.most).to_pydict()
        evidence = [math.log10(max(e, 1e-12)) for e in shown["e_value"]]
        places = np.arange(len(evidence))
        bars = {"color": BLUE, "label": self.name_, **look}
        self.bars_ = ax.barh(places, evidence, 0.6, **bars)
        self.alarm_line_ = ax.axvline(
            -math.log10(self.level), color=RED, linestyle="--", label="alarm"
        )
        ax.axvline(0, color=GREY, linewidth=0.8)
        ax.set_yticks(places, [str(column) for column in shown["column"]])
        ax.invert_yaxis()
        ax.set(xlabel="evidence (log10 e-value of the column alone)")
