"""Limits of rates at every threshold of a score."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
import pyarrow as pa
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_consistent_length, column_or_1d

from prudent.certification import certify_thresholds
from prudent.core.binomial import upper_limits
from prudent.core.validation import shown
from prudent.plots.display import BLUE, GREEN, GREY, RED, Display, legend_beside
from prudent.rules.bands import ThresholdBands

COLOURS = (BLUE, RED, GREEN)
#: Counts are those of rows of this kind; an answered share is limited from below.
LOWER = "answered share"


@dataclass(eq=False, repr=False)
class ThresholdBandsDisplay(Display):
    """Rates over all thresholds: measured, and their limits.

    Solid lines hold at all thresholds at once, so that one may choose by them; thin
    ones are limits of a single threshold fixed beforehand, which hold at none that is
    chosen by looking at them; dots are measured.

    Parameters
    ----------
    bands : ThresholdBands
        What is drawn.

    Attributes
    ----------
    lines_ : list of matplotlib Line2D
        Three for each rate: limit of all thresholds, of a single one, measured.

    Examples
    --------
    >>> from prudent import ThresholdBands
    >>> from prudent.plots import ThresholdBandsDisplay
    >>> bands = ThresholdBands.from_scores([0.1, 0.4, 0.8], [0, 0, 1], kind="alarms")
    >>> ThresholdBandsDisplay(bands).frame()["missed"].to_pylist()
    [0, 0, 0, 1]
    """

    bands: ThresholdBands

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        confidence: float = 0.95,
        kind: Literal["auto", "alarms", "answers"] = "auto",
        positive: Any = None,
        ax: Axes | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Certify all thresholds of a fitted model on new rows, and draw.

        Parameters
        ----------
        estimator : fitted classifier or outlier detector
        X : array-like of shape (n_samples, n_features)
            Rows that the model has not seen.
        y : array-like of shape (n_samples,)
            Their labels.
        confidence : float, default=0.95
            Of the limits, at all thresholds together.
        kind : {"auto", "alarms", "answers"}, default="auto"
            What a score above a threshold makes of a row.
        positive : object, default=None
            The class that an alarm stands for, where alarms are asked for.
        ax : matplotlib Axes, default=None
            Where to draw; None: on new axes.
        name : str, default=None
            What the legend calls it.
        **kwargs
            Of matplotlib, for the lines.

        Returns
        -------
        ThresholdBandsDisplay
        """
        bands = certify_thresholds(
            estimator, X, y, confidence=confidence, kind=kind, positive=positive
        )
        return cls(bands).plot(ax, name=name, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        scores: ArrayLike,
        *,
        kind: Literal["alarms", "answers"],
        confidence: float = 0.95,
        ax: Axes | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Limits at all thresholds of scores that something else gave.

        Parameters
        ----------
        y_true : array-like of bool, shape (n_samples,)
            Whether each row is positive (alarms), or its answer right (answers).
        scores : array-like of shape (n_samples,)
            Of rows that the model has not seen.
        kind : {"alarms", "answers"}
            What a score above a threshold makes of a row.
        confidence : float, default=0.95
            Of the limits, at all thresholds together.
        ax : matplotlib Axes, default=None
            Where to draw; None: on new axes.
        name : str, default=None
            What the legend calls it.
        **kwargs
            Of matplotlib, for the lines.

        Returns
        -------
        ThresholdBandsDisplay
        """
        truth, values = column_or_1d(y_true), column_or_1d(scores)
        check_consistent_length(truth, values)
        bands = ThresholdBands.from_scores(
            values, truth, kind=kind, confidence=confidence
        )
        return cls(bands).plot(ax, name=name, **kwargs)

    def frame(self) -> pa.Table:
        """Counts and limits at each threshold."""
        table: pa.Table = self.bands.frame()
        return table

    def _draw(self, ax: Axes, name: str | None, look: Mapping[str, Any]) -> None:
        bands, frame = self.bands, self.frame()
        thresholds = frame["threshold"].to_numpy()
        limits = bands.limits(thresholds)
        n, n_marked = len(bands.scores), int(bands.marked.sum())
        if bands.kind == "alarms":
            counts = [frame[name].to_numpy() for name in ("missed", "false alarms")]
            counts.append(frame["flagged"].to_numpy())
            rows = [np.full(len(thresholds), m) for m in (n_marked, n - n_marked, n)]
        else:
            answered = frame["answered"].to_numpy()
            counts = [frame["wrong"].to_numpy(), answered]
            rows = [answered, np.full(len(thresholds), n)]
        self.lines_ = []
        prefix = "" if name is None else f"{name}: "
        for colour, (what, limit), count, m in zip(
            COLOURS, limits.items(), counts, rows, strict=False
        ):
            level = 1 - bands.confidence
            if what == LOWER:
                single = 1 - upper_limits(m - count, m, level=level)
            else:
                single = upper_limits(count, m, level=level)
            measured = np.divide(
                count, m, out=np.full(len(m), np.nan), where=np.asarray(m) > 0
            )
            shared: dict[str, Any] = {"color": colour, "drawstyle": "steps-mid", **look}
            self.lines_ += [
                *ax.plot(thresholds, limit, label=f"{prefix}{what}", **shared),
                *ax.plot(
                    thresholds, single, **{**shared, "linewidth": 0.6, "alpha": 0.7}
                ),
                *ax.plot(thresholds, measured, ".", markersize=2, color=colour),
            ]
        positive = "" if bands.positive is None else f" of {shown(bands.positive)}"
        ax.set(
            xlabel=f"threshold of the score{positive}",
            ylabel="share of rows",
            ylim=(0, 1.02),
        )
        handles, _ = ax.get_legend_handles_labels()
        handles += [
            Line2D([], [], color=GREY, linewidth=0.6, label="of one fixed threshold"),
            Line2D([], [], color=GREY, linestyle="", marker=".", label="measured"),
        ]
        legend_beside(ax, handles=handles, title="limits at any threshold")
