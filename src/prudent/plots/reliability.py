"""What probabilities are worth: shares of a class by cell, with exact limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from numpy.typing import ArrayLike
from pyarrow import compute

from prudent.core.binomial import check_fraction
from prudent.core.validation import refuse_nan, shown
from prudent.plots.display import BLUE, GREY, Display, columns_of_one_length, last_step
from prudent.rules.bins import ProbabilityBins


@dataclass(eq=False, repr=False)
class ReliabilityDisplay(Display):
    """Share of a class among rows of a number, and limits that hold in all cells.

    Boxes are the exact limits of all cells at once; dots the shares as counted; on the
    diagonal numbers are what they say. A cell whose box does not meet the diagonal has
    numbers that are off, and by how much at least.

    Parameters
    ----------
    cells : pyarrow.Table
        As of `BinnedCalibrationClassifier.bins_`, of one class.
    label : object, default=None
        The class.
    confidence : float, default=0.95
        Probability that all limits hold.

    Attributes
    ----------
    boxes_ : list of matplotlib Rectangle
        Limits, one for each cell with rows.
    line_ : matplotlib Line2D
        Shares as counted.

    Examples
    --------
    >>> import numpy as np
    >>> from prudent.plots import ReliabilityDisplay
    >>> numbers = np.arange(40) / 40
    >>> display = ReliabilityDisplay.from_predictions(numbers > 0.5, numbers, n_bins=2)
    >>> display.frame()["rows"].to_pylist()
    [20, 0, 19]
    """

    cells: pa.Table
    _: KW_ONLY
    label: Any = None
    confidence: float = 0.95

    _shown = "the points"

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        label: Any = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the cells of a fitted `BinnedCalibrationClassifier`.

        Parameters
        ----------
        estimator : BinnedCalibrationClassifier
        label : object, default=None
            The class; None: the second of two, or the first of several.
        name : str, default=None
            What the legend calls it; None: the class of the estimator.

        Raises
        ------
        TypeError
            If `estimator` is of another sort.
        ValueError
            If `label` has no cells.
        """
        estimator, _ = last_step(
            estimator, has="bins_", such_as="a BinnedCalibrationClassifier"
        )
        cells = estimator.bins_
        known = list(dict.fromkeys(cells["class"].to_pylist()))
        label = known[0] if label is None else label
        if label not in known:
            raise ValueError(
                f"`label` {shown(label)} has no cells; there are "
                f"{', '.join(map(shown, known))}."
            )
        own = cells.filter(compute.equal(cells["class"], pa.scalar(label)))
        name = type(estimator).__name__ if name is None else name
        display = cls(own, label=label, confidence=float(estimator.confidence))
        return display.plot(name=name, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        probabilities: ArrayLike,
        *,
        label: Any = True,
        n_bins: int | None = None,
        confidence: float = 0.95,
        **kwargs: Any,
    ) -> Self:
        """Draw numbers of any model on rows that it has not seen.

        Parameters
        ----------
        y_true : array-like of shape (n_rows,)
            Labels.
        probabilities : array-like of shape (n_rows,)
            Of the class.
        label : object, default=True
            The class.
        n_bins : int, default=None
            Bins of about as many rows each; None: the cube root of the rows.
        confidence : float, default=0.95
            Probability that all limits hold, in (0, 1).

        Raises
        ------
        ValueError
            If shapes differ, there is no row, or a number is NaN.
        """
        check_fraction("confidence", confidence)
        if np.ndim(probabilities) > 1:
            raise ValueError(
                "`probabilities` must hold one number for each row, got an array of "
                f"shape {np.shape(probabilities)}: give the column of {label!r}."
            )
        truth, probabilities = columns_of_one_length(y_true, probabilities)
        numbers, positive = probabilities.astype(np.float64), truth == label
        if not len(numbers):
            raise ValueError("there must be at least 1 row, got none.")
        refuse_nan(numbers, "{} have no number.")
        n_bins = n_bins or max(2, round(len(numbers) ** (1 / 3)))
        bins = ProbabilityBins(numbers, positive, n_bins, confidence)
        ends = [bins.ends(cell) for cell in range(len(bins.lower))]
        cells = pa.table(
            {
                "cell": [bins.name(cell) for cell in range(len(ends))],
                "from": [low for low, _ in ends],
                "to": [high for _, high in ends],
                "rows": bins.n_rows,
                "positive": bins.n_positive,
                "lower": bins.lower,
                "upper": bins.upper,
            }
        )
        return cls(cells, label=label, confidence=confidence).plot(**kwargs)

    def frame(self) -> pa.Table:
        """The cells: their scores, rows, positive rows and limits."""
        return self.cells

    def _draw(self, ax: Axes, look: Mapping[str, Any]) -> None:
        filled = self.cells.filter(compute.greater(self.cells["rows"], 0))
        low, high, rows, positive, lower, upper = (
            np.asarray(filled[column].to_numpy(), dtype=np.float64)
            for column in ("from", "to", "rows", "positive", "lower", "upper")
        )
        low, high = np.clip(low, 0, 1), np.clip(high, 0, 1)
        # A cell of one value is drawn as a thin box.
        width = np.maximum(high - low, 0.004)
        left = np.clip((low + high - width) / 2, 0, 1 - width)
        self.boxes_ = [
            ax.add_patch(Rectangle((x, bottom), w, height, color=BLUE, alpha=0.25))
            for x, bottom, w, height in zip(
                left, lower, width, upper - lower, strict=True
            )
        ]
        ax.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, zorder=0)
        points: dict[str, Any] = {"color": BLUE, "label": self.name_}
        points |= {"marker": "o", "linestyle": "", "markersize": 3, **look}
        (self.line_,) = ax.plot((low + high) / 2, positive / rows, **points)
        named = "" if self.label is None else f" of {shown(self.label)}"
        ax.set(
            xlabel=f"probability{named} as the model says it",
            ylabel=f"share{named} in the cell",
            xlim=(0, 1),
            ylim=(0, 1),
            title=f"limits of all cells at once, {100 * self.confidence:g} %",
        )
