"""A watched promise over time: the evidence against it, and the limits of its rate."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa
from matplotlib.axes import Axes

from prudent.monitoring import PromiseMonitor
from prudent.plots.display import (
    BLUE,
    GREY,
    RED,
    Display,
    legend_beside,
    thousands_on_axis,
)


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

    @classmethod
    def from_monitor(
        cls,
        monitor: PromiseMonitor,
        *,
        ax: Axes | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Show what a monitor has seen.

        Parameters
        ----------
        monitor : PromiseMonitor
        ax : matplotlib Axes, default=None
            Where to draw; None: on new axes.
        name : str, default=None
            What the legend calls it.
        **kwargs
            Of matplotlib, for the line of the evidence.

        Returns
        -------
        MonitorDisplay
        """
        return cls(
            monitor.frame(),
            level=monitor.level,
            bound=monitor.guarantee.bound,
            quantity=monitor.guarantee.quantity,
            alarm_at=monitor.alarm_at_,
        ).plot(ax, name=name, **kwargs)

    def _draw(self, ax: Axes, name: str | None, look: Mapping[str, Any]) -> None:
        ax.set_axis_off()
        evidence = ax.inset_axes((0, 0.5, 1, 0.5))
        limits = ax.inset_axes((0, 0, 1, 0.4))
        rows, log_e, lower, upper = (
            self.trace[name].to_numpy()
            for name in ("row", "log_e_value", "lower", "upper")
        )
        # The alarm is raised at 1 / level: at 20, which is 1.3 on this scale.
        log_e, alarm = log_e / math.log(10), -math.log10(self.level)
        # What lies far beyond the alarm would flatten all before it.
        top = min(3 * alarm, max(alarm, float(np.max(log_e, initial=0.0))))
        (self.line_,) = evidence.plot(
            rows,
            np.minimum(log_e, 2 * top),
            **{"color": BLUE, "linewidth": 1.2, "label": name, **look},
        )
        legend_beside(evidence)
        evidence.axhline(alarm, linestyle="--", color=RED, linewidth=1)
        evidence.set(
            ylabel="evidence\n(log10 e-value)", ylim=(None, 1.2 * top), xticklabels=[]
        )
        evidence.annotate(
            "alarm", (0, alarm), (3, 3), xycoords=("axes fraction", "data"),
            textcoords="offset points", fontsize="small",
        )  # fmt: skip
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
