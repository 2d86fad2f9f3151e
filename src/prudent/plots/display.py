"""What every display shares: how it is drawn, on which axes, its look and its names."""

from __future__ import annotations

import inspect
import re
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
from numpy.typing import ArrayLike, NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
)

#: The look of displays, reports and the gallery.
STYLE_FILE = str(files("prudent.plots") / "prudent.mplstyle")
LOOK = rc_params_from_file(STYLE_FILE, use_default_template=False)
COLOURS: tuple[str, ...] = tuple(LOOK["axes.prop_cycle"].by_key()["color"])
BLUE, RED, GREEN, GREY = "#0072b2", "#d62728", "#009e73", "#777777"
MARKERS = "osD^vP<X>p*dh"
DASHES = ("-", "--", ":", "-.")


class Display(ABC):
    """A picture with the numbers behind it: built by a `from_...` method.

    A subclass says what it counts, its `frame` and its drawing, `_draw`. Its class
    methods `from_...` take `**kwargs` and end in ``cls(...).plot(**kwargs)``: what
    `plot` takes is added to their signatures, and to their docstrings what is the same
    in all of them.

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

    #: What keywords of matplotlib are for.
    _shown = "what is shown"

    def __init_subclass__(cls, **settings: Any) -> None:
        super().__init_subclass__(**settings)
        for name, method in vars(cls).items():
            if name.startswith("from_") and isinstance(method, classmethod):
                _take_what_plot_takes(method.__func__)
                _complete_docstring(method.__func__, cls)

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
            self._draw(ax, normalize_kwargs(kwargs, Line2D))
            self._draw_legend(ax)
        return self

    @abstractmethod
    def frame(self) -> pa.Table:
        """The numbers drawn, as a table."""

    @abstractmethod
    def _draw(self, ax: Axes, look: Mapping[str, Any]) -> None:
        """Draw on the axes; `look` is what the caller asks of lines."""

    def _draw_legend(self, ax: Axes) -> None:
        """Name what is drawn, where the names hide no data."""
        legend_beside(ax)

    def _label(self, part: str) -> str:
        """What the legend calls a part of that which is shown."""
        return part if self.name_ is None else f"{self.name_}: {part}"


#: Parameters that are the same in every class method that does not say otherwise.
DESCRIBED = {
    "X": "array-like of shape (n_samples, n_features)\n    Rows not used in the fit.",
    "y": "array-like of shape (n_samples,)\n    Their labels.",
    "y_true": "array-like of shape (n_samples,)\n    Labels.",
    "comparison": "Comparison",
    "ax": "matplotlib Axes, default=None\n    Where to draw; None: on new axes.",
    "name": "str, default=None\n    What the legend calls it.",
}
OF_ANOTHER_SORT = "Raises\n------\nTypeError\n    If `estimator` is of another sort."


def _take_what_plot_takes(method: Any) -> None:
    """Show `ax` and `name` in the signature of a class method that passes them on."""
    parameters = dict(inspect.signature(method).parameters)
    drawing = inspect.signature(Display.plot).parameters
    if "kwargs" not in parameters:
        return
    for name in ("ax", "name", "kwargs"):  # the last ones, in this order
        kept = parameters.pop(name, drawing[name])
        if name == "ax":
            kept = kept.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        parameters[name] = kept
    method.__signature__ = inspect.signature(method).replace(
        parameters=list(parameters.values())
    )


def _complete_docstring(method: Any, display: type[Display]) -> None:
    """Describe what the docstring of a class method leaves out.

    A setting has the words of the docstring of the class, if any, else those that all
    displays share. What is returned is the display; it raises of what is no such model.
    """
    if method.__doc__ is None:
        return
    head, written, rest = _sections(method.__doc__)
    known = {name: f"{name} : {text}" for name, text in DESCRIBED.items()}
    known["kwargs"] = f"**kwargs\n    Of matplotlib, for {display._shown}."
    known |= {**_sections(display.__doc__ or "")[1], **written}
    names = list(inspect.signature(method).parameters)
    # Parameters described together, such as ``y_true, y_pred``, are one entry.
    entries = list(dict.fromkeys(known[name] for name in names if name in known))
    if not any(section.startswith("Returns") for section in rest):
        rest.insert(0, f"Returns\n-------\n{display.__name__}")
    if "estimator" in names and not any(part.startswith("Raises") for part in rest):
        rest.insert(1, OF_ANOTHER_SORT)
    parameters = "\n".join(["Parameters", "----------", *entries])
    method.__doc__ = "\n\n".join([head, parameters, *rest])


def _sections(docstring: str) -> tuple[str, dict[str, str], list[str]]:
    """What precedes the sections, the entry of each parameter, the other sections."""
    title = r"\n\n(?=[A-Z]\w+\n-{3,}\n)"
    head, *sections = re.split(title, inspect.cleandoc(docstring))
    entries: dict[str, str] = {}
    for section in sections:
        if section.startswith("Parameters\n"):
            _, _, body = section.split("\n", 2)
            for entry in re.split(r"\n(?=\S)", body):
                names = re.split(r" :|\n", entry)[0].split(", ")
                entries |= {name.lstrip("*"): entry for name in names}
    rest = [section for section in sections if not section.startswith("Parameters\n")]
    return head, entries, rest


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


def columns_of_one_length(*columns: ArrayLike) -> list[NDArray[Any]]:
    """Labels, answers or scores as arrays (n,); ValueError if their lengths differ."""
    arrays = [column_or_1d(column) for column in columns]
    check_consistent_length(*arrays)
    return arrays


def look_of_method(place: int) -> dict[str, Any]:
    """Colour, marker and dash of the method at a place: the same in all figures."""
    return {
        "color": COLOURS[place % len(COLOURS)],
        "marker": MARKERS[place % len(MARKERS)],
        "linestyle": DASHES[place % len(DASHES)],
        "markersize": 4,
    }


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
