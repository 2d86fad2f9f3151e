"""A promise in each of several subgroups against what happened there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pyarrow as pa
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter
from numpy.typing import ArrayLike
from sklearn.utils.validation import (
    check_consistent_length,
    column_or_1d,
)

from prudent.core.binomial import fewest_rows
from prudent.core.guarantee import Guarantee, violated_rows
from prudent.core.types import BoolArray
from prudent.estimator_tools import held_against
from prudent.estimator_tools.subgroups import memberships_of
from prudent.evaluation.records import Findings
from prudent.io.errors import thousands
from prudent.plots.display import GREY, Display, last_step, legend_beside
from prudent.plots.guarantees import STYLE, KeptPromise

#: Rows enough to show that a promise is kept, if nothing is wrong, show it so surely.
SURE = 0.95


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

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        level: float = 0.05,
        ax: Axes | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Hold what a fitted estimator promises of subgroups against rows it lacks.

        Parameters
        ----------
        estimator : fitted classifier with `guarantees_`
            Fitted with `subgroups`.
        X : array-like of shape (n_samples, n_features)
            Rows not used in the fit.
        y : array-like of shape (n_samples,)
            Their labels.
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
        SubgroupDisplay

        Raises
        ------
        TypeError
            If `estimator` is of another sort.
        """
        estimator, X = last_step(
            estimator, X, has="guarantees_", such_as="a model with guarantees_"
        )
        labels = column_or_1d(y)
        check_consistent_length(X, labels)
        held = list(held_against(estimator, estimator.guarantees_, X, labels))
        each = level / max(1, len(held))
        return cls(
            [
                KeptPromise(
                    label=type(estimator).__name__,
                    guarantee=promise,
                    check=promise.judge(broken, n, level=each),
                    n=n,
                )
                for promise, broken, n in held
            ]
        ).plot(ax, name=name, **kwargs)

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
        ax: Axes | None = None,
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
        ax : matplotlib Axes, default=None
            Where to draw; None: on new axes.
        name : str, default=None
            What the legend calls it.
        **kwargs
            Of matplotlib, for the points.

        Returns
        -------
        SubgroupDisplay
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
        each = level / len(parts)
        return cls(
            [
                KeptPromise(
                    label=name or "answers",
                    guarantee=replace(promise, subgroup=part),
                    check=promise.judge(wrong, n, level=each),
                    n=n,
                )
                for part, (wrong, n) in counts.items()
                if n
            ]
        ).plot(ax, name=name, **kwargs)

    @classmethod
    def from_comparison(
        cls,
        comparison: Findings,
        *,
        method: str | None = None,
        ax: Axes | None = None,
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
        ax : matplotlib Axes, default=None
            Where to draw; None: on new axes.
        name : str, default=None
            What the legend calls it; None: the method.
        **kwargs
            Of matplotlib, for the points.

        Returns
        -------
        SubgroupDisplay

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
        return cls(
            [
                KeptPromise(
                    label=row.method, guarantee=p.guarantee, check=p.check, n=p.n
                )
                for p in row.asked.items
            ]
        ).plot(ax, name=name or row.method, **kwargs)

    def frame(self) -> pa.Table:
        """One row for each subgroup: the bound, what was measured, rows it needs."""
        guarantees = [promise.guarantee for promise in self.promises]
        checks = [promise.check for promise in self.promises]
        scopes = (guarantee.scope for guarantee in guarantees)
        return pa.table(
            {
                "method": [promise.label for promise in self.promises],
                "scope": [None if scope is None else str(scope) for scope in scopes],
                "subgroup": pa.array([g.subgroup for g in guarantees], pa.string()),
                "bound": [guarantee.bound for guarantee in guarantees],
                "measured": [check.measured for check in checks],
                "lower": [check.interval[0] for check in checks],
                "upper": [check.interval[1] for check in checks],
                "n": [float(promise.n) for promise in self.promises],
                "needed": self._needed(),
                "verdict": [check.verdict for check in checks],
            }
        )

    def _allowed(self) -> list[float]:
        """Share of the rows that may break each promise."""
        bounds = (promise.guarantee for promise in self.promises)
        return [g.bound if g.sense == "<=" else 1 - g.bound for g in bounds]

    def _needed(self) -> list[int]:
        """Rows that show each promise to be kept if nothing is wrong with them."""
        allowed = self._allowed()
        # Nothing is ruled out where nothing may be missed: as the others need.
        usual = max(allowed, default=0.0)
        rates = [rate if rate > 0 else usual for rate in allowed]
        return [fewest_rows(rate, SURE) if rate > 0 else 0 for rate in rates]

    def _draw(self, ax: Axes, name: str | None, look: Mapping[str, Any]) -> None:
        frame, labels = self.frame().to_pylist(), []
        self.errorbars_, named = [], set()
        allowed = self._allowed()
        for place, (line, rate, promise) in enumerate(
            zip(frame, allowed, self.promises, strict=True)
        ):
            low, x, high = line["lower"], line["measured"], line["upper"]
            if promise.guarantee.sense == ">=":
                low, x, high = 1 - high, 1 - x, 1 - low
            is_small = line["n"] < line["needed"]
            colour, marker = STYLE[line["verdict"]]
            said = "too few rows" if is_small else line["verdict"]
            label = None if said in named else said
            named.add(said)
            if label is not None and name is not None:
                label = f"{name}: {label}"
            shown = {"color": GREY, "alpha": 0.5} if is_small else {"color": colour}
            own = {**shown, "markersize": 5, "label": label, **look}
            if is_small:
                ax.annotate(
                    f"{thousands(int(line['n']))} rows, needs "
                    f"{thousands(line['needed'])}",
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
            ax.plot([rate], [place], "|", color=rcParams["text.color"], markersize=12)
            parts = (line["scope"], line["subgroup"])
            labels.append(" with ".join(p for p in parts if p is not None) or "all")
        ax.set_yticks(range(len(labels)), labels)
        ax.set_ylim(len(labels) - 0.5, -0.5)
        ax.set_xlim(left=0)
        ax.xaxis.set_major_formatter(PercentFormatter(1.0))
        quantities = {p.guarantee.quantity for p in self.promises}
        what = " and ".join(sorted(quantities))
        ax.set_xlabel(f"rows that break the promise ({what}); tick: allowed")
        legend_beside(ax)
