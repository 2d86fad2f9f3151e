"""Miss rate of the best rules of a rejection game against the false-alarm rate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from prudent.adversarial import RejectionGame, SecurityCurve
from prudent.plots.display import (
    BLUE,
    GREEN,
    GREY,
    RED,
    Display,
    last_step,
    legend_beside,
)


@dataclass(eq=False, repr=False)
class SecurityCurveDisplay(Display):
    """Security curve of a rejection game: soft, hard and uniform rejection.

    The soft curve is convex. Where it touches the straight line "reject every event
    alike", randomised rejection gains nothing.

    Parameters
    ----------
    curve : SecurityCurve
        Miss rates for rising false-alarm rates.
    known : array-like of shape (n_events,), default=None
        Law of one intruder: the curve of the best test against it is drawn too, and
        the gap to the soft curve is the price of not knowing the intruder.

    Attributes
    ----------
    lines_ : list of matplotlib Line2D
        Soft, hard, uniform, and the known intruder's where there is one.

    Examples
    --------
    >>> from prudent import RejectionGame
    >>> from prudent.plots import SecurityCurveDisplay
    >>> game = RejectionGame(divergence_bound=3).fit([0.01, 0.04, 0.15, 0.3, 0.5])
    >>> display = SecurityCurveDisplay.from_estimator(
    ...     game, false_alarm_rates=[0.0, 0.5, 1.0]
    ... )
    >>> display.frame()["soft_miss_rate"].to_pylist()
    [1.0, 0.26892..., 0.0]
    """

    curve: SecurityCurve
    _: KW_ONLY
    known: ArrayLike | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: RejectionGame,
        *,
        false_alarm_rates: ArrayLike | None = None,
        known: ArrayLike | None = None,
        ax: Axes | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Solve a fitted game for many false-alarm rates.

        Parameters
        ----------
        estimator : fitted RejectionGame
            Its `false_alarm_rate` and `strategy` play no part.
        false_alarm_rates : array-like of shape (n_rates,), default=None
            In [0, 1]; None: 101 equal steps.
        known : array-like of shape (n_events,), default=None
            Law of an intruder to compare with.
        ax : matplotlib Axes, default=None
            Where to draw; None: on new axes.
        name : str, default=None
            What the legend calls it.
        **kwargs
            Of matplotlib, for the curves.

        Returns
        -------
        SecurityCurveDisplay

        Raises
        ------
        TypeError
            If `estimator` is of another sort.
        """
        if false_alarm_rates is None:
            false_alarm_rates = np.linspace(0, 1, 101)
        estimator, _ = last_step(
            estimator, has="security_curve", such_as="a RejectionGame"
        )
        curve = estimator.security_curve(np.sort(false_alarm_rates))
        return cls(curve, known=known).plot(ax, name=name, **kwargs)

    def _draw(self, ax: Axes, name: str | None, look: Mapping[str, Any]) -> None:
        rates = self.curve.false_alarm_rates
        prefix = "" if name is None else f"{name}: "
        soft = {"color": BLUE, "label": f"{prefix}soft", **look}
        hard = {"color": RED, "label": f"{prefix}hard", **look}
        self.lines_ = [
            *ax.plot(rates, self.curve.soft_miss_rates, **soft),
            *ax.plot(
                rates, self.curve.hard_miss_rates, **{"drawstyle": "steps-post", **hard}
            ),
            *ax.plot(rates, 1 - rates, color=GREY, linestyle="--", label="uniform"),
        ]
        if self.known is not None:
            misses = self.curve.known_miss_rates(self.known)
            self.lines_ += ax.plot(
                rates, misses, color=GREEN, linestyle=":", label="known intruder"
            )
        ax.set(
            xlabel="false-alarm rate",
            ylabel="miss rate, worst intruder",
            xlim=(0, 1),
            ylim=(0, 1.02),
        )
        legend_beside(ax)

    def frame(self) -> pa.Table:
        """One row for each false-alarm rate."""
        columns = {
            "false_alarm_rate": self.curve.false_alarm_rates,
            "soft_miss_rate": self.curve.soft_miss_rates,
            "hard_miss_rate": self.curve.hard_miss_rates,
        }
        if self.known is not None:
            columns["known_miss_rate"] = self.curve.known_miss_rates(self.known)
        return pa.table(columns)
