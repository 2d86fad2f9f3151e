"""Scores of a detector with the cut, and what drifted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa
from matplotlib.axes import Axes
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_consistent_length, column_or_1d

from prudent.core.types import BoolArray, FloatArray
from prudent.monitoring import DriftMonitor
from prudent.plots.display import (
    BLUE,
    COLOURS,
    GREY,
    RED,
    Display,
    last_step,
    legend_beside,
    thousands_on_axis,
)

HATCHES = ("", "///")


@dataclass(eq=False, repr=False)
class DetectorScoreDisplay(Display):
    """Scores of ordinary and of other rows, and the cut below which rows are flagged.

    The cut is an edge of the bars: no bar lies on both sides of it.

    Parameters
    ----------
    scores : ndarray of shape (n_samples,)
        Larger: more ordinary. Infinite ones are drawn at the outermost finite ones.
    ordinary : ndarray of bool, shape (n_samples,)
        Whether each row is an ordinary one.
    cut : float, default=0.0
        Rows of a score below it are flagged.
    bins : int, default=40
        Bars, about.

    Attributes
    ----------
    bars_ : list of matplotlib BarContainer
        Of the ordinary rows, then of the others, where there are any.
    cut_line_ : matplotlib Line2D
        The cut.

    Examples
    --------
    >>> from prudent.plots import DetectorScoreDisplay
    >>> display = DetectorScoreDisplay.from_predictions([1, 1, -1], [0.4, 0.1, -0.3])
    >>> display.frame()["flagged"].to_pylist()
    [False, False, True]
    """

    scores: FloatArray
    ordinary: BoolArray
    _: KW_ONLY
    cut: float = 0.0
    bins: int = 40

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike | None = None,
        *,
        ax: Axes | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Look at the scores of a fitted detector.

        Parameters
        ----------
        estimator : fitted outlier detector
            With `decision_function`, below 0 for rows that it flags.
        X : array-like of shape (n_samples, n_features)
            Rows not used in the fit.
        y : array-like of shape (n_samples,), default=None
            1 for ordinary rows, -1 for others; None: all are ordinary.
        ax : matplotlib Axes, default=None
            Where to draw; None: on new axes.
        name : str, default=None
            What the legend calls it.
        **kwargs
            Of matplotlib, for the bars.

        Returns
        -------
        DetectorScoreDisplay

        Raises
        ------
        TypeError
            If `estimator` is of another sort.
        """
        detector, X = last_step(
            estimator,
            X,
            has="decision_function",
            such_as="an outlier detector with decision_function",
        )
        scores = np.asarray(detector.decision_function(X), dtype=np.float64)
        labels = np.ones(len(scores)) if y is None else y
        return cls.from_predictions(labels, scores, ax=ax, name=name, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        scores: ArrayLike,
        *,
        cut: float = 0.0,
        ax: Axes | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Look at scores, whatever made them.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            1 for ordinary rows, -1 for others.
        scores : array-like of shape (n_samples,)
            Larger: more ordinary.
        cut : float, default=0.0
            Rows of a score below it are flagged.
        ax : matplotlib Axes, default=None
            Where to draw; None: on new axes.
        name : str, default=None
            What the legend calls it.
        **kwargs
            Of matplotlib, for the bars.

        Returns
        -------
        DetectorScoreDisplay
        """
        truth, values = column_or_1d(y_true), column_or_1d(scores).astype(np.float64)
        check_consistent_length(truth, values)
        display = cls(values, np.asarray(truth == 1), cut=float(cut))
        return display.plot(ax, name=name, **kwargs)

    def frame(self) -> pa.Table:
        """One row for each score."""
        return pa.table(
            {
                "score": self.scores,
                "ordinary": self.ordinary,
                "flagged": self.scores < self.cut,
            }
        )

    def _draw(self, ax: Axes, name: str | None, look: Mapping[str, Any]) -> None:
        scores, edges = self._drawn(), self._edges()
        prefix = "" if name is None else f"{name}: "
        self.bars_ = []
        for k, (what, rows) in enumerate(
            [("ordinary", self.ordinary), ("other", ~self.ordinary)]
        ):
            if not rows.any():
                continue
            counts, _ = np.histogram(scores[rows], edges)
            own: dict[str, Any] = {"color": COLOURS[k], "label": f"{prefix}{what}"}
            own |= {"alpha": 0.6, "hatch": HATCHES[k], **look}
            bars = ax.bar(edges[:-1], counts, np.diff(edges), align="edge", **own)
            self.bars_.append(bars)
        self.cut_line_ = ax.axvline(
            self.cut, color=RED, linestyle="--", linewidth=1, label="cut"
        )
        ax.set(xlabel=f"score (below {self.cut:g}: flagged)", ylabel="rows")
        ax.yaxis.set_major_formatter(thousands_on_axis)
        legend_beside(ax)

    def _drawn(self) -> FloatArray:
        """Scores at their places: infinite ones at the outermost finite ones."""
        finite = self.scores[np.isfinite(self.scores)]
        if len(finite) == 0:
            return np.full(len(self.scores), self.cut)
        return np.clip(self.scores, finite.min(), finite.max())

    def _edges(self) -> FloatArray:
        """Edges of equal bars, of which the cut is one."""
        scores = self._drawn()
        low, high = min(scores.min(), self.cut), max(scores.max(), self.cut)
        width = (high - low) / self.bins or 1.0
        below, above = (
            math.ceil((self.cut - low) / width),
            math.ceil((high - self.cut) / width),
        )
        # Scores at the cut are not flagged: bars are closed on the left.
        return self.cut + width * np.arange(-below, above + 1.5).astype(np.float64)


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

    @classmethod
    def from_monitor(
        cls,
        monitor: DriftMonitor,
        *,
        ax: Axes | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Show what a monitor has seen.

        Parameters
        ----------
        monitor : fitted DriftMonitor
        ax : matplotlib Axes, default=None
            Where to draw; None: on new axes.
        name : str, default=None
            What the legend calls it.
        **kwargs
            Of matplotlib, for the bars.

        Returns
        -------
        DriftDisplay
        """
        display = cls(monitor.frame(), level=monitor.level)
        return display.plot(ax, name=name, **kwargs)

    def frame(self) -> pa.Table:
        """One row for each column, the most suspicious first."""
        return self.table

    def _draw(self, ax: Axes, name: str | None, look: Mapping[str, Any]) -> None:
        shown = self.table.slice(0, self.most).to_pydict()
        evidence = [math.log10(max(e, 1e-12)) for e in shown["e_value"]]
        places = np.arange(len(evidence))
        self.bars_ = ax.barh(
            *(places, evidence, 0.6), **{"color": BLUE, "label": name, **look}
        )
        self.alarm_line_ = ax.axvline(
            -math.log10(self.level), color=RED, linestyle="--", label="alarm"
        )
        ax.axvline(0, color=GREY, linewidth=0.8)
        ax.set_yticks(places, [str(column) for column in shown["column"]])
        ax.invert_yaxis()
        ax.set(xlabel="evidence (log10 e-value of the column alone)")
        legend_beside(ax)
