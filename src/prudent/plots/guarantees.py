"""Promises against what happened: of any method, and false alarms at every rate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa
from matplotlib.axes import Axes
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import (
    check_consistent_length,
    column_or_1d,
)

from prudent.adversarial import LowDensityRejector
from prudent.core.binomial import clopper_pearson
from prudent.core.guarantee import NOT_A_RATE, Guarantee, GuaranteeCheck
from prudent.core.types import FloatArray
from prudent.estimator_tools import answers_from, held_against
from prudent.evaluation.records import Findings
from prudent.plots.display import BLUE, GREY, RED, Display, last_step, legend_beside

# Verdict -> colour and marker: readable without colour, too.
STYLE = {"kept": (BLUE, "o"), "consistent": (GREY, "s"), "broken": (RED, "X")}


@dataclass(frozen=True, kw_only=True)
class KeptPromise:
    """A promise, who made it, and how it fared.

    Attributes
    ----------
    label : str
        Name of the method.
    guarantee : Guarantee
        The promise.
    check : GuaranteeCheck
        Measurement and verdict.
    n : float
        Rows looked at.
    """

    label: str
    guarantee: Guarantee
    check: GuaranteeCheck
    n: float


@dataclass(eq=False, repr=False)
class GuaranteeDisplay(Display):
    """Promised bound (x) against measured rate with its exact interval (y).

    Points on or below the diagonal keep their promise. Coverage is shown as the
    rate of sets that miss, so that every promise is an upper bound.

    Parameters
    ----------
    promises : sequence of KeptPromise
        One point each.

    Attributes
    ----------
    errorbars_ : list of matplotlib ErrorbarContainer
        One for each verdict that occurs.

    Examples
    --------
    >>> from prudent import MinimaxProbabilityClassifier
    >>> from prudent.plots import GuaranteeDisplay
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import train_test_split
    >>> X, y = load_iris(return_X_y=True)
    >>> seen, fresh, labels, truth = train_test_split(X, y, random_state=0)
    >>> model = MinimaxProbabilityClassifier().fit(seen, labels)
    >>> display = GuaranteeDisplay.from_estimator(model, fresh, truth)
    >>> display.frame().column_names[:4]
    ['method', 'quantity', 'scope', 'bound']
    """

    promises: Sequence[KeptPromise]

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        level: float = 0.05,
        groups: ArrayLike | None = None,
        ax: Axes | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Hold the promises of a fitted estimator against rows it has not seen.

        Parameters
        ----------
        estimator : fitted classifier or detector with `guarantees_`
            Promises about miss rates need attacked rows and are left out, as are
            those that are no rate of rows.
        X : array-like of shape (n_samples, n_features)
            Rows not used in the fit.
        y : array-like of shape (n_samples,)
            Their labels; of a detector 1 and -1.
        level : float, default=0.05
            Each interval has confidence 1 - `level` over the number of promises.
        groups : array-like of shape (n_samples,), default=None
            Rows that belong together; promises about a random row of a new group need
            them, and count one random row of each.
        ax : matplotlib Axes, default=None
            Where to draw; None: on new axes.
        name : str, default=None
            What the legend calls it.
        **kwargs
            Of matplotlib, for the points.

        Returns
        -------
        GuaranteeDisplay

        Raises
        ------
        TypeError
            If `estimator` is of another sort.
        ValueError
            If `X` and `y` have different lengths, or `groups` are missing.
        """
        estimator, X = last_step(
            estimator, X, has="guarantees_", such_as="a model with guarantees_"
        )
        labels = column_or_1d(y)
        check_consistent_length(X, labels)
        together = None if groups is None else np.asarray(groups)
        promises = [
            g
            for g in estimator.guarantees_
            if g.quantity != "miss rate" and g.quantity not in NOT_A_RATE
        ]
        label, level = name or type(estimator).__name__, level / max(1, len(promises))
        return cls(
            [
                KeptPromise(
                    label=label, guarantee=g, check=g.judge(broken, n, level=level), n=n
                )
                for g, broken, n in held_against(
                    estimator, promises, X, labels, together
                )
            ]
        ).plot(ax, name=name, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        promises: Sequence[Guarantee],
        *,
        classes: ArrayLike | None = None,
        level: float = 0.05,
        ax: Axes | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Hold promises against answers, whatever gave them.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Labels of rows that nothing was fitted to.
        y_pred : array-like of shape (n_samples,) or (n_samples, n_classes)
            Labels, None for no answer; or boolean sets of labels.
        promises : sequence of Guarantee
            What was promised of these answers.
        classes : array-like of shape (n_classes,), default=None
            Labels of the columns of sets.
        level : float, default=0.05
            Each interval has confidence 1 - `level` over the number of promises.
        ax : matplotlib Axes, default=None
            Where to draw; None: on new axes.
        name : str, default=None
            What the legend calls it.
        **kwargs
            Of matplotlib, for the points.

        Returns
        -------
        GuaranteeDisplay
        """
        check_consistent_length(y_true, y_pred)
        answers, labels = answers_from(y_pred, y_true, classes), column_or_1d(y_true)
        rows, level = np.arange(len(labels)), level / max(1, len(promises))
        held = held_against(answers, promises, rows, labels)
        return cls(
            [
                KeptPromise(
                    label=name or "answers",
                    guarantee=g,
                    check=g.judge(broken, n, level=level),
                    n=n,
                )
                for g, broken, n in held
            ]
        ).plot(ax, name=name, **kwargs)

    @classmethod
    def from_comparison(
        cls,
        comparison: Findings,
        *,
        ax: Axes | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Every promise of every method of a comparison, checked out of fold.

        Parameters
        ----------
        comparison : Comparison
        ax : matplotlib Axes, default=None
            Where to draw; None: on new axes.
        name : str, default=None
            What the legend calls it.
        **kwargs
            Of matplotlib, for the points.

        Returns
        -------
        GuaranteeDisplay
        """
        return cls(
            [
                KeptPromise(label=r.method, guarantee=p.guarantee, check=p.check, n=p.n)
                for r in comparison.rows
                for p in r.promises
            ]
        ).plot(ax, name=name, **kwargs)

    def _draw(self, ax: Axes, name: str | None, look: Mapping[str, Any]) -> None:
        points = self._points()
        top = 1.05 * max([0.05, *points["bound"], *points["upper"]])
        _draw_diagonal(ax, top, "promised: at most")
        self.errorbars_ = []
        for verdict, (colour, marker) in STYLE.items():
            chosen = points["verdict"] == verdict
            if not chosen.any():
                continue
            x, y = points["bound"][chosen], points["measured"][chosen]
            reach = (y - points["lower"][chosen], points["upper"][chosen] - y)
            label = verdict if name is None else f"{name}: {verdict}"
            points_look = {"color": colour, "markersize": 5, "label": label, **look}
            drawn = ax.errorbar(x, y, reach, fmt=marker, **points_look)
            self.errorbars_.append(drawn)
        legend_beside(ax)

    def frame(self) -> pa.Table:
        """One row for each promise: who, what, the bound, the measurement."""
        return pa.table(
            {
                "method": [p.label for p in self.promises],
                "quantity": [p.guarantee.quantity for p in self.promises],
                "scope": [
                    None if p.guarantee.scope is None else str(p.guarantee.scope)
                    for p in self.promises
                ],
                "bound": [p.guarantee.bound for p in self.promises],
                "measured": [p.check.measured for p in self.promises],
                "lower": [p.check.interval[0] for p in self.promises],
                "upper": [p.check.interval[1] for p in self.promises],
                "n": [float(p.n) for p in self.promises],
                "verdict": [p.check.verdict for p in self.promises],
            }
        )

    def _points(self) -> dict[str, Any]:
        """Columns of `frame` with every promise turned into an upper bound."""
        frame = self.frame()
        turned = np.array([p.guarantee.sense == ">=" for p in self.promises], bool)
        columns: dict[str, Any] = {"verdict": np.array(frame["verdict"].to_pylist())}
        swapped = {"lower": "upper", "upper": "lower"}
        for name in ("bound", "measured", "lower", "upper"):
            own = np.array(frame[name].to_pylist(), float)
            opposite = np.array(frame[swapped.get(name, name)].to_pylist(), float)
            columns[name] = np.where(turned, 1 - opposite, own)
        return columns


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
        Ordinary rows flagged at each.
    n : int
        Ordinary rows.
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
        y: ArrayLike | None = None,
        *,
        false_alarm_rates: ArrayLike | None = None,
        level: float = 0.05,
        ax: Axes | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Cut a fitted detector at many rates, without refitting.

        Parameters
        ----------
        estimator : fitted LowDensityRejector
            Its `guarantee` and `strategy` apply at every rate.
        X : array-like of shape (n_samples, n_features)
            Rows not used in the fit.
        y : array-like of shape (n_samples,), default=None
            1 for ordinary rows, -1 for others, which raise no false alarm; None: all
            are ordinary.
        false_alarm_rates : array-like of shape (n_rates,), default=None
            In (0, 1); None: 20 equal steps to 0.4.
        level : float, default=0.05
            The intervals have confidence 1 - `level` each.
        ax : matplotlib Axes, default=None
            Where to draw; None: on new axes.
        name : str, default=None
            What the legend calls it; None: the class of the estimator.
        **kwargs
            Of matplotlib, for the line of the measured rates.

        Returns
        -------
        FalseAlarmDisplay

        Raises
        ------
        TypeError
            If `estimator` is of another sort.
        """
        if false_alarm_rates is None:
            false_alarm_rates = np.linspace(0.02, 0.4, 20)
        rates = column_or_1d(false_alarm_rates).astype(np.float64)
        estimator, X = last_step(
            estimator, X, has="with_false_alarm_rate", such_as="a LowDensityRejector"
        )
        answers = np.column_stack(
            [estimator.with_false_alarm_rate(rate).predict(X) for rate in rates]
        )
        return cls.from_predictions(
            np.ones(len(answers)) if y is None else y,
            answers,
            rates,
            level=level,
            ax=ax,
            name=type(estimator).__name__ if name is None else name,
            **kwargs,
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        false_alarm_rates: ArrayLike,
        *,
        level: float = 0.05,
        ax: Axes | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Count the false alarms of any detector, asked for one rate after another.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            1 for ordinary rows, -1 for others, which raise no false alarm.
        y_pred : array-like of shape (n_samples, n_rates)
            Answers at each rate, a column each: -1 for flagged rows, 1 for others.
        false_alarm_rates : array-like of shape (n_rates,)
            That were asked for, in any order.
        level : float, default=0.05
            The intervals have confidence 1 - `level` each.
        ax : matplotlib Axes, default=None
            Where to draw; None: on new axes.
        name : str, default=None
            What the legend calls it.
        **kwargs
            Of matplotlib, for the line of the measured rates.

        Returns
        -------
        FalseAlarmDisplay

        Raises
        ------
        ValueError
            If lengths differ, an answer is neither 1 nor -1, or no row is ordinary.

        Examples
        --------
        >>> from prudent.plots import FalseAlarmDisplay
        >>> answers = [[1, -1], [1, 1], [1, 1], [1, 1], [-1, -1]]
        >>> display = FalseAlarmDisplay.from_predictions(
        ...     [1, 1, 1, 1, -1], answers, [0.1, 0.3]
        ... )
        >>> display.frame()["measured"].to_pylist()
        [0.0, 0.25]
        """
        truth, rates = column_or_1d(y_true), column_or_1d(false_alarm_rates)
        answers, asked = np.asarray(y_pred), rates.astype(np.float64)
        if answers.ndim != 2 or answers.shape[1] != len(asked):
            raise ValueError(
                "`y_pred` must have a column for each of the "
                f"{len(asked)} false-alarm rates, got shape {answers.shape}."
            )
        check_consistent_length(truth, answers)
        if not np.isin(answers, (-1, 1)).all() or not np.isin(truth, (-1, 1)).all():
            raise ValueError(
                "`y_true` and `y_pred` must be 1 for ordinary rows and -1 for others."
            )
        ordinary = truth == 1
        if not ordinary.any():
            raise ValueError("no row is ordinary: `y_true` is 1 nowhere.")
        order = np.argsort(asked, kind="stable")
        counts = np.count_nonzero(answers[ordinary] == -1, axis=0)
        display = cls(asked[order], counts[order], int(ordinary.sum()), level=level)
        return display.plot(ax, name=name, **kwargs)

    def _draw(self, ax: Axes, name: str | None, look: Mapping[str, Any]) -> None:
        lower, upper = self._intervals()
        top = 1.05 * max(float(self.rates[-1]), float(upper.max()))
        _draw_diagonal(ax, top, "false-alarm rate asked for")
        self.band_ = ax.fill_between(
            *(self.rates, lower, upper),
            color=look.get("color", BLUE),
            alpha=0.2,
            linewidth=0,
        )
        measured = self.false_alarms / self.n
        line = {"color": BLUE, "marker": ".", "label": name, **look}
        (self.line_,) = ax.plot(self.rates, measured, **line)
        legend_beside(ax)

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


def _draw_diagonal(ax: Axes, top: float, xlabel: str) -> None:
    """Axes from 0 to `top` with the line under which a promise is kept."""
    ax.plot([0, top], [0, top], linestyle="--", color=GREY, linewidth=1)
    ax.set(
        xlabel=xlabel,
        ylabel="measured, with exact interval",
        xlim=(0, top),
        ylim=(0, top),
    )
