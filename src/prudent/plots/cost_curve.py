"""What a promise costs: the rows that are still answered, at every promise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import pyarrow as pa
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, NullLocator, PercentFormatter

from prudent.evaluation.records import Findings, Frontier
from prudent.plots.display import COLOURS, GREY, Display, legend_beside

MARKERS = "osD^vP<X>p*dh"
DASHES = ("-", "--", ":", "-.")
#: What is promised, and what is left to answer.
NAMES = {
    "coverage": ("promised coverage", "share of rows decided"),
    "error": ("promised error of the answered rows", "share of rows answered"),
    "missed": ("promised error of the classes named", "share of the others right"),
}
RATES = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2)


def look_of_method(place: int) -> dict[str, Any]:
    """Colour, marker and dash of the method at a place: the same in all figures."""
    return {
        "color": COLOURS[place % len(COLOURS)],
        "marker": MARKERS[place % len(MARKERS)],
        "linestyle": DASHES[place % len(DASHES)],
        "markersize": 4,
    }


@dataclass(eq=False, repr=False)
class CostCurveDisplay(Display):
    """Share of rows that each method still answers, at every promise one may ask for.

    Parameters
    ----------
    frontier : Frontier
        `frontier` of a comparison.
    places : mapping of str to int, default=None
        Place of each method in the list of looks; None: the order of the curves.

    Attributes
    ----------
    lines_ : list of matplotlib Line2D
        One a method.
    asked_line_ : matplotlib Line2D
        The promise that was asked for.

    Examples
    --------
    >>> from prudent import compare
    >>> from prudent.plots import CostCurveDisplay
    >>> from sklearn.datasets import load_iris
    >>> comparison = compare(
    ...     *load_iris(return_X_y=True), methods=["minimax"], baselines=["lda"]
    ... )
    >>> CostCurveDisplay.from_comparison(comparison).frame().column_names[:2]
    ['promise', 'level']
    """

    frontier: Frontier
    _: KW_ONLY
    places: Mapping[str, int] | None = None

    @classmethod
    def from_comparison(
        cls,
        comparison: Findings,
        *,
        ax: Axes | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Show the curves of a comparison.

        Parameters
        ----------
        comparison : Comparison
            With a promise.
        ax : matplotlib Axes, default=None
            Where to draw; None: on new axes.
        name : str, default=None
            What the legend calls the comparison, before each method.
        **kwargs
            Of matplotlib, for the lines.

        Returns
        -------
        CostCurveDisplay

        Raises
        ------
        ValueError
            If no promise was asked for.
        """
        if comparison.frontier is None:
            raise ValueError("no promise was asked for: compare with `promise`.")
        settings = comparison.settings
        names = (*settings.methods, *settings.baselines)
        places = {method: place for place, method in enumerate(names)}
        return cls(comparison.frontier, places=places).plot(ax, name=name, **kwargs)

    def frame(self) -> pa.Table:
        """One row for each promise, with a column for each method."""
        return pa.table(
            {
                "promise": list(self.frontier.promises),
                "level": list(self.frontier.levels),
                **{name: list(s) for name, s in self.frontier.decided.items()},
            }
        )

    def _draw(self, ax: Axes, name: str | None, look: Mapping[str, Any]) -> None:
        curve, prefix = self.frontier, "" if name is None else f"{name}: "
        order = {method: place for place, method in enumerate(curve.decided)}
        places = order if self.places is None else {**order, **self.places}
        self.lines_ = []
        for method, shares in curve.decided.items():
            own = {**look_of_method(places[method]), "linewidth": 1.4, **look}
            self.lines_ += ax.plot(
                curve.levels, shares, **{"label": f"{prefix}{method}", **own}
            )
        self.asked_line_ = ax.axvline(
            curve.asked, linestyle="--", linewidth=1, color=GREY, label="asked"
        )
        promised, share = NAMES[curve.kind]
        ax.set(xlabel=promised, ylabel=share, ylim=(-0.02, 1.02))
        if curve.kind != "coverage":
            ax.set(xscale="log")
            ax.xaxis.set_major_locator(FixedLocator(RATES))
            ax.xaxis.set_minor_locator(NullLocator())
        ax.xaxis.set_major_formatter(PercentFormatter(1.0))
        ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        legend_beside(ax)
