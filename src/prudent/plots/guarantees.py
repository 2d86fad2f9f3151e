"""Promises against what happened: of models, subgroups, sets and detectors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from itertools import chain
from typing import Any, Self

import numpy as np
import pyarrow as pa
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_consistent_length, column_or_1d

from prudent.adversarial import LowDensityRejector
from prudent.core.binomial import clopper_pearson, fewest_rows
from prudent.core.checks import PromiseCheck
from prudent.core.guarantee import NOT_A_RATE, Guarantee, GuaranteeCheck, violated_rows
from prudent.core.types import BoolArray, FloatArray, IntArray
from prudent.estimator_tools import answers_from, held_against, predict_set
from prudent.estimator_tools.subgroups import memberships_of
from prudent.evaluation.records import Findings
from prudent.io.errors import thousands
from prudent.plots.display import BLUE, GREY, RED, Display, last_step

# Verdict -> colour and marker: readable without colour, too.
STYLE = {"kept": (BLUE, "o"), "consistent": (GREY, "s"), "broken": (RED, "X")}
#: Rows enough to show that a promise is kept, if nothing is wrong, show it so surely.
SURE = 0.95


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


def _judged(
    label: str, counted: Iterable[tuple[Guarantee, int, int]], level: float
) -> list[KeptPromise]:
    """Promises with the rows that are counted and all rows, each judged at a level."""
    return [
        KeptPromise(
            label=label,
            guarantee=promise,
            check=promise.judge(count, n, level=level),
            n=n,
        )
        for promise, count, n in counted
    ]


def _checked(label: str, items: Iterable[PromiseCheck]) -> list[KeptPromise]:
    """Promises of one method of a comparison."""
    return [
        KeptPromise(label=label, guarantee=item.guarantee, check=item.check, n=item.n)
        for item in items
    ]


def _table(promises: Sequence[KeptPromise]) -> pa.Table:
    """One row for each promise: who, what, the bound, the measurement."""
    guarantees = [promise.guarantee for promise in promises]
    checks = [promise.check for promise in promises]
    scopes = (guarantee.scope for guarantee in guarantees)
    return pa.table(
        {
            "method": [promise.label for promise in promises],
            "quantity": [guarantee.quantity for guarantee in guarantees],
            "scope": [None if scope is None else str(scope) for scope in scopes],
            "subgroup": pa.array([g.subgroup for g in guarantees], pa.string()),
            "bound": [guarantee.bound for guarantee in guarantees],
            "measured": [check.measured for check in checks],
            "lower": [check.interval[0] for check in checks],
            "upper": [check.interval[1] for check in checks],
            "n": [float(promise.n) for promise in promises],
            "verdict": [check.verdict for check in checks],
        }
    )


def _rates_of_breaking(promises: Sequence[KeptPromise]) -> FloatArray:
    """Every promise as an upper bound: bound, measured rate, its lower and upper limit.

    Returns
    -------
    ndarray of shape (4, n_promises)
        Of a promise that something happens often, the rates at which it does not.
    """
    rates = [(p.guarantee.bound, p.check.measured, *p.check.interval) for p in promises]
    bound, measured, lower, upper = np.array(rates, float).reshape(-1, 4).T
    is_turned = np.array([p.guarantee.sense == ">=" for p in promises], bool)
    turned = (1 - bound, 1 - measured, 1 - upper, 1 - lower)
    return np.where(is_turned, turned, (bound, measured, lower, upper))


@dataclass(eq=False, repr=False)
class GuaranteeDisplay(Display):
    """Promised bound (x) against measured rate with its exact interval (y).

    Points on or below the diagonal were measured within what is promised. A point above
    it may be chance: the verdict says whether the promise is broken. Coverage is shown
    as the rate of sets that miss, so that every promise is an upper bound.

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

    _shown = "the points"

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        level: float = 0.05,
        groups: ArrayLike | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Hold the promises of a fitted estimator against rows it has not seen.

        Parameters
        ----------
        estimator : fitted classifier or detector with `guarantees_`
            Promises about miss rates need attacked rows and are left out, as are
            those that are no rate of rows.
        y : array-like of shape (n_samples,)
            Their labels; of a detector 1 and -1.
        level : float, default=0.05
            Each interval has confidence 1 - `level` over the number of promises.
        groups : array-like of shape (n_samples,), default=None
            Rows that belong together; promises about a random row of a new group need
            them, and count one random row of each.

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
        held = held_against(estimator, promises, X, labels, together)
        return cls(_judged(label, held, level)).plot(name=name, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        promises: Sequence[Guarantee],
        *,
        classes: ArrayLike | None = None,
        level: float = 0.05,
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
        """
        check_consistent_length(y_true, y_pred)
        answers, labels = answers_from(y_pred, y_true, classes), column_or_1d(y_true)
        held = held_against(answers, promises, np.arange(len(labels)), labels)
        judged = _judged(name or "answers", held, level / max(1, len(promises)))
        return cls(judged).plot(name=name, **kwargs)

    @classmethod
    def from_comparison(cls, comparison: Findings, **kwargs: Any) -> Self:
        """Every promise of every method of a comparison, checked out of fold."""
        checked = (_checked(row.method, row.promises) for row in comparison.rows)
        return cls(list(chain.from_iterable(checked))).plot(**kwargs)

    def _draw(self, ax: Axes, look: Mapping[str, Any]) -> None:
        bound, measured, lower, upper = _rates_of_breaking(self.promises)
        verdicts = np.array([promise.check.verdict for promise in self.promises])
        _draw_diagonal(ax, 1.05 * max([0.05, *bound, *upper]), "promised: at most")
        self.errorbars_ = []
        for verdict, (colour, marker) in STYLE.items():
            own = verdicts == verdict
            if not own.any():
                continue
            y = measured[own]
            points = {"color": colour, "markersize": 5, "label": self._label(verdict)}
            drawn = ax.errorbar(
                bound[own],
                y,
                (y - lower[own], upper[own] - y),
                fmt=marker,
                **{**points, **look},
            )
            self.errorbars_.append(drawn)

    def frame(self) -> pa.Table:
        """One row for each promise: who, what, the bound, the measurement."""
        return _table(self.promises).drop_columns("subgroup")


@dataclass(eq=False, repr=False)
class SubgroupDisplay(Display):
    """Rate of what a promise forbids in each subgroup, with its exact interval.

    A dot is what was measured, a line its interval, a tick the bound: of a promise that
    is kept the dot lies left of the tick, but for chance. Grey are subgroups of too few
    rows to show it even if nothing is wrong, with the rows that they would need.

    Parameters
    ----------
    promises : sequence of KeptPromise
        One for each subgroup, and class, or one for all rows.

    Attributes
    ----------
    errorbars_ : list of matplotlib ErrorbarContainer
        One for each subgroup.

    Examples
    --------
    >>> import numpy as np
    >>> from prudent import Guarantee
    >>> from prudent.plots import SubgroupDisplay
    >>> truth, answer = np.zeros(400), (np.arange(400) % 20 == 0).astype(float)
    >>> promise = Guarantee(quantity="error rate", bound=0.1, sense="<=")
    >>> display = SubgroupDisplay.from_predictions(
    ...     truth, answer, promise, subgroups=np.arange(400)[:, None] < [200, 10]
    ... )
    >>> frame = display.frame()
    >>> frame["subgroup"].to_pylist()
    [None, 'subgroup 0', 'subgroup 1', 'rest']
    >>> frame["needed"].to_pylist()
    [29, 29, 29, 29]
    """

    promises: Sequence[KeptPromise]

    _shown = "the points"

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike, *, level: float = 0.05, **kwargs: Any
    ) -> Self:
        """Hold what a fitted estimator promises of subgroups against rows it lacks.

        Parameters
        ----------
        estimator : fitted classifier with `guarantees_`
            Fitted with `subgroups`.
        level : float, default=0.05
            Each interval has confidence 1 - `level` over the number of promises.
        """
        estimator, X = last_step(
            estimator, X, has="guarantees_", such_as="a model with guarantees_"
        )
        labels = column_or_1d(y)
        check_consistent_length(X, labels)
        held = list(held_against(estimator, estimator.guarantees_, X, labels))
        judged = _judged(type(estimator).__name__, held, level / max(1, len(held)))
        return cls(judged).plot(**kwargs)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        promise: Guarantee,
        *,
        subgroups: Any,
        X: Any = None,
        classes: ArrayLike | None = None,
        level: float = 0.05,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Hold a promise about all rows against each of several subgroups.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Labels of rows that nothing was fitted to.
        y_pred : array-like of shape (n_samples,) or (n_samples, n_classes)
            Labels, or boolean sets of labels.
        promise : Guarantee
            What was promised of these answers over all rows.
        subgroups : list of str or int, callable, bool matrix or data frame
            As in :func:`~prudent.certify`.
        X : array-like or data frame of shape (n_samples, n_features), default=None
            Where `subgroups` names columns or is a function of rows.
        classes : array-like of shape (n_classes,), default=None
            Labels of the columns of sets.
        level : float, default=0.05
            Each interval has confidence 1 - `level` over the number of subgroups.
        """
        check_consistent_length(y_true, y_pred)
        about, broken = violated_rows(promise, y_true, y_pred, classes)
        inside = memberships_of(subgroups, about if X is None else X)
        parts: dict[str | None, BoolArray] = {None: np.ones(len(about), dtype=bool)}
        parts |= dict(zip(inside.names, inside.members.T, strict=True))
        counts = {
            part: (int((own & about & broken).sum()), int((own & about).sum()))
            for part, own in parts.items()
        }
        counted = [
            (replace(promise, subgroup=part), wrong, n)
            for part, (wrong, n) in counts.items()
            if n
        ]
        judged = _judged(name or "answers", counted, level / len(parts))
        return cls(judged).plot(name=name, **kwargs)

    @classmethod
    def from_comparison(
        cls,
        comparison: Findings,
        *,
        method: str | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """What one method promises each subgroup, checked out of fold.

        Parameters
        ----------
        comparison : Comparison
            By subgroups.
        method : str, default=None
            None: the first of the table.
        name : str, default=None
            What the legend calls it; None: the method.

        Raises
        ------
        ValueError
            If no such method has made the promise.
        """
        able = [row for row in comparison.ran if row.asked and row.asked.items]
        row = next((row for row in able if method in (None, row.method)), None)
        if row is None or row.asked is None:
            raise ValueError(
                f"method {method!r} made no promise in this comparison; there are "
                f"{', '.join(row.method for row in able) or 'none'}."
            )
        checked = _checked(row.method, row.asked.items)
        return cls(checked).plot(name=name or row.method, **kwargs)

    def frame(self) -> pa.Table:
        """One row for each subgroup: the bound, what was measured, rows it needs."""
        table = _table(self.promises).drop_columns("quantity")
        place = table.column_names.index("verdict")
        return table.add_column(place, "needed", [self._needed()])

    def _needed(self) -> list[int]:
        """Rows that show each promise to be kept if nothing is wrong with them."""
        allowed = _rates_of_breaking(self.promises)[0].tolist()
        # Nothing is ruled out where nothing may be missed: as the others need.
        usual = max(allowed, default=0.0)
        rates = [rate if rate > 0 else usual for rate in allowed]
        return [fewest_rows(rate, SURE) if rate > 0 else 0 for rate in rates]

    def _draw(self, ax: Axes, look: Mapping[str, Any]) -> None:
        rates, needed = _rates_of_breaking(self.promises).T, self._needed()
        self.errorbars_, named = [], set()
        for place, (promise, (allowed, x, low, high), rows) in enumerate(
            zip(self.promises, rates, needed, strict=True)
        ):
            is_small = promise.n < rows
            colour, marker = STYLE[promise.check.verdict]
            verdict = "too few rows" if is_small else promise.check.verdict
            label = None if verdict in named else self._label(verdict)
            named.add(verdict)
            shown = {"color": GREY, "alpha": 0.5} if is_small else {"color": colour}
            own = {**shown, "markersize": 5, "label": label, **look}
            if is_small:
                ax.annotate(
                    f"{thousands(int(promise.n))} rows, needs {thousands(rows)}",
                    xy=(high, place),
                    xytext=(4, 0),
                    textcoords="offset points",
                    verticalalignment="center",
                    color=GREY,
                    fontsize=7,
                )
            reach = [[x - low], [high - x]]
            drawn = ax.errorbar([x], [place], xerr=reach, fmt=marker, **own)
            self.errorbars_.append(drawn)
            tick = {"color": rcParams["text.color"], "markersize": 12}
            ax.plot([allowed], [place], "|", **tick)
        guarantees = [promise.guarantee for promise in self.promises]
        parts = [(guarantee.scope, guarantee.subgroup) for guarantee in guarantees]
        labels = [
            " with ".join(str(part) for part in both if part is not None) or "all"
            for both in parts
        ]
        ax.set_yticks(range(len(labels)), labels)
        ax.set_ylim(len(labels) - 0.5, -0.5)
        ax.set_xlim(left=0)
        ax.xaxis.set_major_formatter(PercentFormatter(1.0))
        what = " and ".join(sorted({guarantee.quantity for guarantee in guarantees}))
        ax.set_xlabel(f"rows that break the promise ({what}); tick: allowed")


@dataclass(eq=False, repr=False)
class SetSizeDisplay(Display):
    """Coverage of the sets of each class with its exact interval, and their mean size.

    Parameters
    ----------
    classes : sequence of str
        Labels.
    covered, rows : ndarray of int, shape (n_classes,)
        Rows of each class whose set holds it, and all of them.
    sizes : ndarray of shape (n_classes,)
        Mean number of labels in the sets of its rows.
    promised : mapping of str to float
        Promised coverage of the classes that have a promise.
    level : float, default=0.05
        The intervals have confidence 1 - `level` each.

    Attributes
    ----------
    errorbar_ : matplotlib ErrorbarContainer
        Coverages.
    texts_ : list of matplotlib Text
        Mean sizes.

    Examples
    --------
    >>> import numpy as np
    >>> from prudent.plots import SetSizeDisplay
    >>> sets = np.array([[True, False], [True, True], [False, False]])
    >>> display = SetSizeDisplay.from_predictions(["a", "a", "b"], sets, ["a", "b"])
    >>> display.frame()["mean size"].to_pylist()
    [1.0, 1.5, 0.0]
    """

    classes: Sequence[str]
    covered: IntArray
    rows: IntArray
    sizes: FloatArray
    _: KW_ONLY
    promised: Mapping[str, float]
    level: float = 0.05

    _shown = "the points"

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        level: float = 0.05,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Look at the sets of a fitted estimator on rows it has not seen.

        Parameters
        ----------
        estimator : fitted estimator with `predict_set`
            Or a pipeline or search around one.
        name : str, default=None
            What the legend calls it; None: the class of the estimator.
        """
        estimator, X = last_step(estimator, X)
        promised: dict[str, float] = {}
        for promise in getattr(estimator, "guarantees_", ()):
            if promise.quantity == "coverage":
                scope = "all rows" if promise.scope is None else str(promise.scope)
                promised[scope] = promise.bound
        return cls.from_predictions(
            y,
            predict_set(estimator, X),
            estimator.classes_,
            promised=promised,
            level=level,
            name=type(estimator).__name__ if name is None else name,
            **kwargs,
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        sets: ArrayLike,
        classes: ArrayLike,
        *,
        promised: Mapping[str, float] | None = None,
        level: float = 0.05,
        **kwargs: Any,
    ) -> Self:
        """Look at sets, whatever made them.

        Parameters
        ----------
        sets : array-like of bool, shape (n_samples, n_classes)
            Whether each set holds each class; a set may be empty.
        classes : array-like of shape (n_classes,)
            Labels of the columns.
        promised : mapping of str to float, default=None
            Promised coverage by class, or of "all rows".
        """
        truth, inside = column_or_1d(y_true), np.asarray(sets, dtype=bool)
        labels = np.asarray(classes)
        check_consistent_length(truth, inside)
        is_class = truth[:, None] == labels
        rows = np.column_stack([np.ones(len(truth), dtype=bool), is_class])
        holds = (inside & is_class).any(axis=1)
        size = inside.sum(axis=1)
        n_rows = rows.sum(axis=0)
        return cls(
            ["all rows", *map(str, labels.tolist())],
            (rows & holds[:, None]).sum(axis=0),
            n_rows,
            (rows * size[:, None]).sum(axis=0) / np.maximum(n_rows, 1),
            promised=promised or {},
            level=level,
        ).plot(**kwargs)

    def frame(self) -> pa.Table:
        """One row for all rows, and one for each class."""
        lower, upper = _intervals(self.covered, self.rows, self.level)
        return pa.table(
            {
                "rows of": list(self.classes),
                "rows": self.rows,
                "coverage": self.covered / np.maximum(self.rows, 1),
                "lower": lower,
                "upper": upper,
                "mean size": self.sizes,
                "promised": [self.promised.get(label) for label in self.classes],
            }
        )

    def _draw(self, ax: Axes, look: Mapping[str, Any]) -> None:
        lower, upper = _intervals(self.covered, self.rows, self.level)
        coverage = self.covered / np.maximum(self.rows, 1)
        places = np.arange(len(coverage))
        points = {"fmt": "o", "color": BLUE, "markersize": 5, "label": self.name_}
        self.errorbar_ = ax.errorbar(
            coverage,
            places,
            xerr=(coverage - lower, upper - coverage),
            **{**points, **look},
        )
        for place, label in enumerate(self.classes):
            if label in self.promised:
                ax.plot(
                    [self.promised[label]] * 2,
                    [place - 0.35, place + 0.35],
                    color=GREY,
                    linewidth=2,
                    label="promised" if label == next(iter(self.promised)) else None,
                )
        beside: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "va": "center"}
        self.texts_ = [
            ax.annotate(f"{size:.2f}", (1.01, place), **beside)
            for place, size in zip(places, self.sizes, strict=True)
        ]
        ax.annotate(
            "mean size", (1.01, 1.01), xycoords="axes fraction", fontsize="small"
        )
        ax.set_yticks(places, self.classes)
        ax.invert_yaxis()
        ax.set(xlabel="share of rows whose set holds the truth", xlim=(None, 1.01))

    def _draw_legend(self, ax: Axes) -> None:
        handles, _ = ax.get_legend_handles_labels()
        if handles:  # the sizes stand where a legend would
            ax.legend(loc="lower left", bbox_to_anchor=(0, 1.01), ncols=2)


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

    _shown = "the line of the measured rates"

    @classmethod
    def from_estimator(
        cls,
        estimator: LowDensityRejector,
        X: Any,
        y: ArrayLike | None = None,
        *,
        false_alarm_rates: ArrayLike | None = None,
        level: float = 0.05,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Cut a fitted detector at many rates, without refitting.

        Parameters
        ----------
        estimator : fitted LowDensityRejector
            Its `guarantee` and `strategy` apply at every rate.
        y : array-like of shape (n_samples,), default=None
            1 for ordinary rows, -1 for others, which raise no false alarm; None: all
            are ordinary.
        false_alarm_rates : array-like of shape (n_rates,), default=None
            In (0, 1); None: 20 equal steps to 0.4.
        name : str, default=None
            What the legend calls it; None: the class of the estimator.
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
        n_ordinary = int(ordinary.sum())
        display = cls(asked[order], counts[order], n_ordinary, level=level)
        return display.plot(**kwargs)

    def _draw(self, ax: Axes, look: Mapping[str, Any]) -> None:
        lower, upper = _intervals(self.false_alarms, self.n, self.level)
        top = 1.05 * max(float(self.rates[-1]), float(upper.max()))
        _draw_diagonal(ax, top, "false-alarm rate asked for")
        colour = look.get("color", BLUE)
        self.band_ = ax.fill_between(
            self.rates, lower, upper, color=colour, alpha=0.2, linewidth=0
        )
        line = {"color": BLUE, "marker": ".", "label": self.name_, **look}
        (self.line_,) = ax.plot(self.rates, self.false_alarms / self.n, **line)

    def frame(self) -> pa.Table:
        """One row for each false-alarm rate."""
        lower, upper = _intervals(self.false_alarms, self.n, self.level)
        return pa.table(
            {
                "false_alarm_rate": self.rates,
                "measured": self.false_alarms / self.n,
                "lower": lower,
                "upper": upper,
            }
        )


def _intervals(counts: Any, n: Any, level: float) -> FloatArray:
    """Exact lower and upper limits (2, n_counts) of shares; 0 and 1 of no rows."""
    return np.array(
        [
            clopper_pearson(count, rows, level=level) if rows else (0.0, 1.0)
            for count, rows in np.broadcast(counts, n)
        ]
    ).T


def _draw_diagonal(ax: Axes, top: float, xlabel: str) -> None:
    """Axes from 0 to `top` with the line under which a promise is kept."""
    ax.plot([0, top], [0, top], linestyle="--", color=GREY, linewidth=1)
    ax.set(
        xlabel=xlabel,
        ylabel="measured, with exact interval",
        xlim=(0, top),
        ylim=(0, top),
    )
