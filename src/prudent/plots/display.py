"""What every display shares: its axes, and colours."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

import pyarrow as pa
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

# Told apart by the colour-blind, too.
BLUE, RED, GREEN, GREY = "#0072b2", "#d62728", "#009e73", "#777777"


class Display(ABC):
    """A picture with the numbers behind it: built by a `from_...` method.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes drawn on by `plot`.
    figure_ : matplotlib Figure
        Figure of `ax_`.
    """

    ax_: Axes
    figure_: Figure | SubFigure

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw on `ax`, or on new axes.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw.

        Returns
        -------
        self
        """
        if ax is None:
            from matplotlib import pyplot

            _, ax = pyplot.subplots()
        self.ax_, self.figure_ = ax, ax.figure
        self._draw(ax)
        return self

    @abstractmethod
    def frame(self) -> pa.Table:
        """The numbers drawn, as a table."""

    @abstractmethod
    def _draw(self, ax: Axes) -> None:
        """Draw on the axes."""
