"""What an audit found: true rates beside their bounds, and draws beyond them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass
from typing import Any, Self

import pyarrow as pa
from matplotlib.axes import Axes

from prudent.auditing.result import Audit, AuditRow
from prudent.core.binomial import clopper_pearson
from prudent.plots.display import BLUE, RED, Display

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

    @classmethod
    def from_audit(
        cls,
        audit: Audit,
        *,
        most: int = 30,
        ax: Axes | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Show what an audit found, under the laws that its verdict is about.

        Parameters
        ----------
        audit : Audit
            What :func:`prudent.audit` returned.
        most : int, default=30
            Lines drawn at most, the most suspicious first.
        ax : matplotlib Axes, default=None
            Where to draw; None: on new axes.
        name : str, default=None
            What the legend calls the true rates.
        **kwargs
            Of matplotlib, for the points.

        Returns
        -------
        AuditDisplay
        """
        return cls(audit.rows, most=most).plot(ax, name=name, **kwargs)

    def frame(self) -> pa.Table:
        """One row for each promise, law and size, the most suspicious first."""
        return pa.Table.from_pylist([asdict(row) for row in self._sorted()])

    def _sorted(self) -> list[AuditRow]:
        return sorted(self.rows, key=lambda row: row.p_value)

    def _draw(self, ax: Axes, name: str | None, look: Mapping[str, Any]) -> None:
        shown = self._sorted()[: self.most]
        ax.set_axis_off()
        rates = ax.inset_axes((0, 0, 0.56, 1))
        beyond = ax.inset_axes((0.62, 0, 0.38, 1))
        self.axes_, self.points_ = (rates, beyond), []
        for is_refuted, style in STYLE.items():
            places = [i for i, row in enumerate(shown) if row.is_refuted is is_refuted]
            if not places:
                continue
            label = style["label"] if name is None else f"{name}: {style['label']}"
            style = {"linestyle": "", "clip_on": False, **style, **look, "label": label}
            means = [shown[i].mean_truth for i in places]
            self.points_ += rates.plot(means, places, **style)
            for i in places:
                _draw_beyond(beyond, i, shown[i], {**style, "label": None})
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
