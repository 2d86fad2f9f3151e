"""False-alarm rates asked for against those measured on fresh normal rows."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from prudent.adversarial import LowDensityRejector
from prudent.core.binomial import clopper_pearson
from prudent.core.types import FloatArray
from prudent.plots.display import BLUE, Display, draw_promise_diagonal

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(eq=False, repr=False)
class FalseAlarmDisplay(Display):
    """Measured false-alarm rate, with exact interval, for each rate asked for.

    A detector that keeps its promise stays at or below the diagonal, up to the
    scatter of one calibration set.

    Parameters
    ----------
    rates : ndarray of shape (n_rates,)
        False-alarm rates asked for, rising.
    false_alarms : ndarray of int, shape (n_rates,)
        Normal rows rejected at each.
    n : int
        Normal rows.
    level : float, default=0.05
        The intervals have confidence 1 - `level` each.

    Attributes
    ----------
    line_ : matplotlib Line2D
        Measured rates.
    band_ : matplotlib PolyCollection
        Intervals.

    Examples
    --------
    >>> import numpy as np
    >>> from prudent import LowDensityRejector
    >>> from prudent.plots import FalseAlarmDisplay
    >>> rows = np.random.default_rng(0).normal(size=(600, 2))
    >>> detector = LowDensityRejector(random_state=0).fit(rows[:300])
    >>> FalseAlarmDisplay.from_estimator(detector, rows[300:]).frame().column_names
    ['false_alarm_rate', 'measured', 'lower', 'upper']
    """

    rates: FloatArray
    false_alarms: NDArray[np.int_]
    n: int
    _: KW_ONLY
    level: float = 0.05

    @classmethod
    def from_estimator(
        cls,
        estimator: LowDensityRejector,
        X: Any,
        false_alarm_rates: ArrayLike | None = None,
        *,
        level: float = 0.05,
    ) -> Self:
        """Cut a fitted detector at many rates, without refitting.

        Parameters
        ----------
        estimator : fitted LowDensityRejector
            Its `guarantee` and `strategy` apply at every rate.
        X : array-like of shape (n_samples, n_features)
            Normal rows not used in the fit.
        false_alarm_rates : array-like of shape (n_rates,), default=None
            In (0, 1); None: 20 equal steps to 0.4.
        level : float, default=0.05
            The intervals have confidence 1 - `level` each.
        """
        if false_alarm_rates is None:
            false_alarm_rates = np.linspace(0.02, 0.4, 20)
        rates = np.sort(np.asarray(false_alarm_rates, dtype=np.float64))
        answers = [estimator.with_false_alarm_rate(rate).predict(X) for rate in rates]
        false_alarms = np.array([np.count_nonzero(answer < 0) for answer in answers])
        return cls(rates, false_alarms, len(answers[0]), level=level)

    def _draw(self, ax: Axes) -> None:
        lower, upper = self._intervals()
        top = 1.05 * max(float(self.rates[-1]), float(upper.max()))
        draw_promise_diagonal(ax, top, "false-alarm rate asked for")
        self.band_ = ax.fill_between(
            self.rates, lower, upper, color=BLUE, alpha=0.2, linewidth=0
        )
        measured = self.false_alarms / self.n
        (self.line_,) = ax.plot(self.rates, measured, color=BLUE, marker=".")

    def frame(self) -> pa.Table:
        """One row for each false-alarm rate."""
        lower, upper = self._intervals()
        return pa.table(
            {
                "false_alarm_rate": self.rates,
                "measured": self.false_alarms / self.n,
                "lower": lower,
                "upper": upper,
            }
        )

    def _intervals(self) -> tuple[FloatArray, FloatArray]:
        bounds = [
            clopper_pearson(count, self.n, level=self.level)
            for count in self.false_alarms
        ]
        lower, upper = np.array(bounds).T
        return lower, upper
