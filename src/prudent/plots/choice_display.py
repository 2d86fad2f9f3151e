"""How useful each candidate of a choice would be, the chosen one marked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa
from matplotlib.axes import Axes
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from prudent.evaluation.choice import chosen_in
from prudent.plots.display import BLUE, GREEN, GREY, Display, legend_beside


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

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        ax: Axes | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Show the choice that a fitted model made.

        Parameters
        ----------
        estimator : fitted BestClassifier, or a model of ``prudent fit --method best``
        ax : matplotlib Axes, default=None
            Where to draw; None: on new axes.
        name : str, default=None
            What the legend calls it.
        **kwargs
            Of matplotlib, for the bars.

        Returns
        -------
        ChoiceDisplay

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
        return cls(chosen.choice_results_).plot(ax, name=name, **kwargs)

    def frame(self) -> pa.Table:
        """One row for each candidate, the most useful first, those that failed last."""
        ranks = self.results["rank"]
        order = np.argsort(np.where(ranks == 0, len(ranks) + 1, ranks), kind="stable")
        return pa.table({name: values[order] for name, values in self.results.items()})

    def _draw(self, ax: Axes, name: str | None, look: Mapping[str, Any]) -> None:
        shown = self.frame()
        names, ranks = shown["name"].to_pylist(), shown["rank"].to_pylist()
        useful = np.nan_to_num(shown["usefulness"].to_numpy())
        colours = [GREEN if rank == 1 else BLUE if rank else GREY for rank in ranks]
        self.bars_ = ax.barh(names, useful, **{"color": colours, "label": name, **look})
        labels = [
            f"{value:.3g}{'  chosen' if rank == 1 else ''}" if rank else "failed"
            for value, rank in zip(useful, ranks, strict=True)
        ]
        ax.bar_label(self.bars_, labels, padding=3)
        ax.invert_yaxis()
        ax.margins(x=0.2)
        ax.set(xlabel="usefulness (larger is better)")
        legend_beside(ax)
