"""Limits of rates at every threshold of a score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from prudent.certification import certify_thresholds
from prudent.core.binomial import upper_limits
from prudent.plots.display import BLUE, GREEN, RED, Display
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
        ax: Axes | None = None,
        **settings: Any,
    ) -> Self:
        """Certify all thresholds of a fitted model on new rows, and draw.

        Parameters
        ----------
        estimator : fitted classifier or outlier detector
        X : array-like of shape (n_samples, n_features)
            Rows that the model has not seen.
        y : array-like of shape (n_samples,)
            Their labels.
        ax : matplotlib Axes, default=None
            Where to draw.
        **settings
            Of :func:`prudent.certify_thresholds`.

        Returns
        -------
        ThresholdBandsDisplay
        """
        return cls(certify_thresholds(estimator, X, y, **settings)).plot(ax)

    def frame(self) -> pa.Table:
        """Counts and limits at each threshold."""
        table: pa.Table = self.bands.frame()
        return table

    def _draw(self, ax: Axes) -> None:
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
        for colour, (name, limit), count, m in zip(
            COLOURS, limits.items(), counts, rows, strict=False
        ):
            level = 1 - bands.confidence
            if name == LOWER:
                single = 1 - upper_limits(m - count, m, level=level)
            else:
                single = upper_limits(count, m, level=level)
            measured = np.divide(
                count, m, out=np.full(len(m), np.nan), where=np.asarray(m) > 0
            )
            shared: dict[str, Any] = {"color": colour, "drawstyle": "steps-mid"}
            self.lines_ += [
                *ax.plot(thresholds, limit, label=f"{name}, any threshold", **shared),
                *ax.plot(thresholds, single, linewidth=0.6, alpha=0.7, **shared),
                *ax.plot(thresholds, measured, ".", markersize=2, color=colour),
            ]
        positive = "" if bands.positive is None else f" of {bands.positive!r}"
        ax.set(
            xlabel=f"threshold of the score{positive}",
            ylabel="share of rows",
            ylim=(0, 1.02),
        )
        ax.legend(frameon=False)
