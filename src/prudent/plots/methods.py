"""Methods beside each other: what a promise costs each, and which one was chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, NullLocator, PercentFormatter
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from prudent.evaluation.choice import chosen_in
from prudent.evaluation.records import Findings, Frontier
from prudent.plots.display import BLUE, GREEN, GREY, Display, look_of_method

#: What is promised, and what is left to answer.
NAMES = {
    "coverage": ("promised coverage", "share of rows decided"),
    "error": ("promised error of the answered rows", "share of rows answered"),
    "missed": ("promised error of the classes named", "share of the others right"),
}
RATES = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2)


@dataclass(eq=False, repr=False)
class CostCurveDisplay(Display):
    """Share of rows that each method still answers, at every promise one may ask for.

    Parameters
    ----------
    frontier : Frontier
        `frontier` of a comparison.
    places : mapping of str to int, default=None
        Place of each method in the list of looks; None: the order of the curves.

    Attributes
    ----------
    lines_ : list of matplotlib Line2D
        One a method.
    asked_line_ : matplotlib Line2D
        The promise that was asked for.

    Examples
    --------
    >>> from prudent import compare
    >>> from prudent.plots import CostCurveDisplay
    >>> from sklearn.datasets import load_iris
    >>> comparison = compare(
    ...     *load_iris(return_X_y=True), methods=["minimax"], baselines=["lda"]
    ... )
    >>> CostCurveDisplay.from_comparison(comparison).frame().column_names[:2]
    ['promise', 'level']
    """

    frontier: Frontier
    _: KW_ONLY
    places: Mapping[str, int] | None = None

    _shown = "the lines"

    @classmethod
    def from_comparison(cls, comparison: Findings, **kwargs: Any) -> Self:
        """Show the curves of a comparison.

        Parameters
        ----------
        comparison : Comparison
            With a promise.
        name : str, default=None
            What the legend calls the comparison, before each method.

        Raises
        ------
        ValueError
            If no promise was asked for.
        """
        if comparison.frontier is None:
            raise ValueError("no promise was asked for: compare with `promise`.")
        settings = comparison.settings
        names = (*settings.methods, *settings.baselines)
        places = {method: place for place, method in enumerate(names)}
        return cls(comparison.frontier, places=places).plot(**kwargs)

    def frame(self) -> pa.Table:
        """One row for each promise, with a column for each method."""
        return pa.table(
            {
                "promise": list(self.frontier.promises),
                "level": list(self.frontier.levels),
                **{name: list(s) for name, s in self.frontier.decided.items()},
            }
        )

    def _draw(self, ax: Axes, look: Mapping[str, Any]) -> None:
        curve = self.frontier
        order = {method: place for place, method in enumerate(curve.decided)}
        places = order if self.places is None else {**order, **self.places}
        self.lines_ = []
        for method, shares in curve.decided.items():
            own = {"label": self._label(method), **look_of_method(places[method])}
            line = {**own, "linewidth": 1.4, **look}
            self.lines_ += ax.plot(curve.levels, shares, **line)
        self.asked_line_ = ax.axvline(
            curve.asked, linestyle="--", linewidth=1, color=GREY, label="asked"
        )
        promised, share = NAMES[curve.kind]
        ax.set(xlabel=promised, ylabel=share, ylim=(-0.02, 1.02))
        if curve.kind != "coverage":
            ax.set(xscale="log")
            ax.xaxis.set_major_locator(FixedLocator(RATES))
            ax.xaxis.set_minor_locator(NullLocator())
        ax.xaxis.set_major_formatter(PercentFormatter(1.0))
        ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))


@dataclass(eq=False, repr=False)
class ChoiceDisplay(Display):
    """Usefulness of the candidates of a choice under a promise, as bars.

    Parameters
    ----------
    results : dict of str to ndarray of shape (n_candidates,)
        `choice_results_` of a fitted :class:`prudent.BestClassifier`.

    Attributes
    ----------
    bars_ : matplotlib BarContainer
        One bar for each candidate, the most useful on top and the chosen one green;
        those that failed have none.

    Examples
    --------
    >>> from prudent import BestClassifier
    >>> from prudent.plots import ChoiceDisplay
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> best = BestClassifier(
    ...     ["logistic", "lda", "qda"], promise="error <= 5%", random_state=0
    ... ).fit(X, y)
    >>> ChoiceDisplay.from_estimator(best).frame()["name"].to_pylist()
    ['qda', 'logistic', 'lda']
    """

    results: dict[str, NDArray[Any]]

    _shown = "the bars"

    @classmethod
    def from_estimator(cls, estimator: Any, **kwargs: Any) -> Self:
        """Show the choice that a fitted model made.

        Parameters
        ----------
        estimator : fitted BestClassifier, or a model of ``prudent fit --method best``

        Raises
        ------
        ValueError
            If it made no choice.
        """
        check_is_fitted(estimator)
        chosen = chosen_in(estimator)
        if chosen is None:
            raise ValueError(
                f"{type(estimator).__name__} chose nothing: give a fitted "
                "BestClassifier."
            )
        return cls(chosen.choice_results_).plot(**kwargs)

    def frame(self) -> pa.Table:
        """One row for each candidate, the most useful first, those that failed last."""
        ranks = self.results["rank"]
        order = np.argsort(np.where(ranks == 0, len(ranks) + 1, ranks), kind="stable")
        return pa.table({name: values[order] for name, values in self.results.items()})

    def _draw(self, ax: Axes, look: Mapping[str, Any]) -> None:
        shown = self.frame()
        names, ranks = shown["name"].to_pylist(), shown["rank"].to_pylist()
        useful = np.nan_to_num(shown["usefulness"].to_numpy())
        colours = [GREEN if rank == 1 else BLUE if rank else GREY for rank in ranks]
        bars = {"color": colours, "label": self.name_, **look}
        self.bars_ = ax.barh(names, useful, **bars)
        labels = [
            f"{value:.3g}{'  chosen' if rank == 1 else ''}" if rank else "failed"
            for value, rank in zip(useful, ranks, strict=True)
        ]
        ax.bar_label(self.bars_, labels, padding=3)
        ax.invert_yaxis()
        ax.margins(x=0.2)
        ax.set(xlabel="usefulness (larger is better)")
