"""Promises against what happened."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_consistent_length, column_or_1d

from prudent.core.guarantee import Guarantee, GuaranteeCheck
from prudent.metrics import coverage_score
from prudent.plots.display import BLUE, GREY, RED, Display, draw_promise_diagonal

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from prudent.evaluation.records import Findings


# Verdict -> colour and marker: readable without colour, too.
STYLE = {
    "kept": (BLUE, "o"),
    "consistent": (GREY, "s"),
    "broken": (RED, "X"),
}


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
        cls, estimator: Any, X: Any, y: ArrayLike, *, level: float = 0.05
    ) -> Self:
        """Hold the promises of a fitted estimator against rows it has not seen.

        Parameters
        ----------
        estimator : fitted classifier with `guarantees_`
            Promises about miss rates need attacked rows and are left out.
        X : array-like of shape (n_samples, n_features)
            Rows not used in the fit.
        y : array-like of shape (n_samples,)
            Their labels.
        level : float, default=0.05
            Each interval has confidence 1 - `level` over the number of promises.

        Raises
        ------
        ValueError
            If `X` and `y` have different lengths.
        """
        labels = column_or_1d(y)
        check_consistent_length(X, labels)
        promises = [g for g in estimator.guarantees_ if g.quantity != "miss rate"]
        wrong = np.asarray(estimator.predict(X)) != labels
        shown = []
        for promise in promises:
            rows = np.full(len(labels), True)
            if promise.scope is not None:
                rows = labels == promise.scope
            n = int(rows.sum())
            if n == 0:
                continue
            if promise.quantity in ("coverage", "false alarm rate"):
                sets = estimator.predict_set(X)[rows]
                covered = coverage_score(labels[rows], sets, estimator.classes_)
                violations = round(n * (1 - covered))
            else:
                violations = int(wrong[rows].sum())
            check = promise.check(violations, n, level=level / len(promises))
            name = type(estimator).__name__
            shown.append(KeptPromise(label=name, guarantee=promise, check=check, n=n))
        return cls(shown)

    @classmethod
    def from_comparison(cls, comparison: Findings) -> Self:
        """Every promise of every method of a comparison, checked out of fold."""
        return cls(
            [
                KeptPromise(label=r.method, guarantee=p.guarantee, check=p.check, n=p.n)
                for r in comparison.rows
                for p in r.promises
            ]
        )

    def _draw(self, ax: Axes) -> None:
        points = self._points()
        top = 1.05 * max([0.05, *points["bound"], *points["upper"]])
        draw_promise_diagonal(ax, top, "promised: at most")
        self.errorbars_ = []
        for verdict, (colour, marker) in STYLE.items():
            chosen = points["verdict"] == verdict
            if not chosen.any():
                continue
            x, y = points["bound"][chosen], points["measured"][chosen]
            reach = (y - points["lower"][chosen], points["upper"][chosen] - y)
            drawn = ax.errorbar(
                x, y, reach, fmt=marker, color=colour, markersize=5, label=verdict
            )
            self.errorbars_.append(drawn)
        if self.errorbars_:
            ax.legend(frameon=False)

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
