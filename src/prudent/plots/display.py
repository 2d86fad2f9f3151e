"""What every display shares: how it is drawn, on which axes, and its look."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Self

import pyarrow as pa
from matplotlib import rc_params_from_file, style
from matplotlib.axes import Axes
from matplotlib.cbook import normalize_kwargs
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

#: The look of displays, reports and the gallery.
STYLE_FILE = str(files("prudent.plots") / "prudent.mplstyle")
LOOK = rc_params_from_file(STYLE_FILE, use_default_template=False)
COLOURS: tuple[str, ...] = tuple(LOOK["axes.prop_cycle"].by_key()["color"])
BLUE, RED, GREEN, GREY = "#0072b2", "#d62728", "#009e73", "#777777"


class Display(ABC):
    """A picture with the numbers behind it: built by a `from_...` method.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes drawn on by `plot`.
    figure_ : matplotlib Figure
        Figure of `ax_`.
    name_ : str or None
        What the legend called that which is shown when it was named last.
    """

    ax_: Axes
    figure_: Figure | SubFigure
    name_: str | None = None

    def plot(
        self, ax: Axes | None = None, *, name: str | None = None, **kwargs: Any
    ) -> Self:
        """Draw on `ax`, or on new axes.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw.
        name : str, default=None
            What the legend calls that which is shown; None: as it did last.
        **kwargs
            Of matplotlib, for the lines, bars or points of what is shown: such as
            ``color`` (or ``c``), ``linewidth`` (or ``lw``) and ``alpha``.

        Returns
        -------
        self
        """
        with style.context(STYLE_FILE):
            if ax is None:
                from matplotlib import pyplot

                _, ax = pyplot.subplots()
            self.ax_, self.figure_ = ax, ax.figure
            self.name_ = self.name_ if name is None else name
            self._draw(ax, self.name_, normalize_kwargs(kwargs, Line2D))
        return self

    @abstractmethod
    def frame(self) -> pa.Table:
        """The numbers drawn, as a table."""

    @abstractmethod
    def _draw(self, ax: Axes, name: str | None, look: Mapping[str, Any]) -> None:
        """Draw on the axes; `look` is what the caller asks of lines."""


def last_step(
    estimator: Any, X: Any = None, *, has: str | None = None, such_as: str = ""
) -> tuple[Any, Any]:
    """The fitted model that a display is about, and the rows as that model sees them.

    Of a pipeline the last step; TypeError if it lacks what the display shows (`has`).
    """
    check_is_fitted(estimator)
    if isinstance(estimator, Pipeline):
        X = None if X is None else estimator[:-1].transform(X)
        estimator = estimator.steps[-1][1]
    if has is not None and not hasattr(estimator, has):
        raise TypeError(
            f"`estimator` must be {such_as}, got {type(estimator).__name__}."
        )
    return estimator, X


def legend_beside(ax: Axes, **options: Any) -> None:
    """Name what is drawn beside the axes, where the names hide no data."""
    handles, _ = ax.get_legend_handles_labels()
    if handles or "handles" in options:
        ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1), **options)


def thousands_on_axis(value: float, _: float | None = None) -> str:
    """A number at an axis, its digits in groups: 1 300.

    Examples
    --------
    >>> thousands_on_axis(-1700.0), thousands_on_axis(0.25)
    ('-1 700', '0.25')
    """
    return f"{value:,.10g}".replace(",", " ")
