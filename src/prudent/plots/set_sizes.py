"""How large sets of labels are, and how often they hold the truth, class by class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa
from matplotlib.axes import Axes
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_consistent_length, column_or_1d

from prudent.core.binomial import clopper_pearson
from prudent.core.types import FloatArray, IntArray
from prudent.estimator_tools import predict_set
from prudent.plots.display import BLUE, GREY, Display, last_step


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
        """Look at the sets of a fitted estimator on rows it has not seen.

        Parameters
        ----------
        estimator : fitted estimator with `predict_set`
            Or a pipeline or search around one.
        X : array-like of shape (n_samples, n_features)
            Rows not used in the fit.
        y : array-like of shape (n_samples,)
            Their labels.
        level : float, default=0.05
            The intervals have confidence 1 - `level` each.
        ax : matplotlib Axes, default=None
            Where to draw; None: on new axes.
        name : str, default=None
            What the legend calls it; None: the class of the estimator.
        **kwargs
            Of matplotlib, for the points.

        Returns
        -------
        SetSizeDisplay
        """
        estimator, X = last_step(estimator, X)
        promises = getattr(estimator, "guarantees_", ())
        of_all = [
            promise.bound
            for promise in promises
            if (promise.quantity, promise.scope) == ("coverage", None)
        ]
        promised = {
            str(promise.scope): promise.bound
            for promise in promises
            if promise.quantity == "coverage" and promise.scope is not None
        }
        if of_all:
            promised["all rows"] = of_all[0]
        return cls.from_predictions(
            y,
            predict_set(estimator, X),
            estimator.classes_,
            promised=promised,
            level=level,
            ax=ax,
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
        ax: Axes | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Look at sets, whatever made them.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Labels.
        sets : array-like of bool, shape (n_samples, n_classes)
            Whether each set holds each class; a set may be empty.
        classes : array-like of shape (n_classes,)
            Labels of the columns.
        promised : mapping of str to float, default=None
            Promised coverage by class, or of "all rows".
        level : float, default=0.05
            The intervals have confidence 1 - `level` each.
        ax : matplotlib Axes, default=None
            Where to draw; None: on new axes.
        name : str, default=None
            What the legend calls it.
        **kwargs
            Of matplotlib, for the points.

        Returns
        -------
        SetSizeDisplay
        """
        truth, inside = column_or_1d(y_true), np.asarray(sets, dtype=bool)
        labels = np.asarray(classes)
        check_consistent_length(truth, inside)
        is_class = truth[:, None] == labels
        rows = np.column_stack([np.ones(len(truth), dtype=bool), is_class])
        holds = (inside & is_class).any(axis=1)
        size = inside.sum(axis=1)
        n_rows = rows.sum(axis=0)
        display = cls(
            ["all rows", *map(str, labels.tolist())],
            (rows & holds[:, None]).sum(axis=0),
            n_rows,
            (rows * size[:, None]).sum(axis=0) / np.maximum(n_rows, 1),
            promised=promised or {},
            level=level,
        )
        return display.plot(ax, name=name, **kwargs)

    def frame(self) -> pa.Table:
        """One row for all rows, and one for each class."""
        ends = [
            clopper_pearson(count, n, level=self.level) if n else (0.0, 1.0)
            for count, n in zip(self.covered.tolist(), self.rows.tolist(), strict=True)
        ]
        return pa.table(
            {
                "rows of": list(self.classes),
                "rows": self.rows,
                "coverage": self.covered / np.maximum(self.rows, 1),
                "lower": [low for low, _ in ends],
                "upper": [high for _, high in ends],
                "mean size": self.sizes,
                "promised": [self.promised.get(label) for label in self.classes],
            }
        )

    def _draw(self, ax: Axes, name: str | None, look: Mapping[str, Any]) -> None:
        frame = self.frame()
        coverage, lower, upper = (
            frame[column].to_numpy() for column in ("coverage", "lower", "upper")
        )
        places = np.arange(len(coverage))
        self.errorbar_ = ax.errorbar(
            *(coverage, places),
            xerr=(coverage - lower, upper - coverage),
            **{"fmt": "o", "color": BLUE, "markersize": 5, "label": name, **look},
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
        self.texts_ = [
            ax.annotate(
                f"{size:.2f}", (1.01, place), xycoords=("axes fraction", "data"),
                va="center",
            )
            for place, size in zip(places, self.sizes, strict=True)
        ]  # fmt: skip
        ax.annotate(
            "mean size", (1.01, 1.01), xycoords="axes fraction", fontsize="small"
        )
        ax.set_yticks(places, self.classes)
        ax.invert_yaxis()
        ax.set(xlabel="share of rows whose set holds the truth", xlim=(None, 1.01))
        handles, _ = ax.get_legend_handles_labels()
        if handles:  # the sizes stand where a legend would
            ax.legend(loc="lower left", bbox_to_anchor=(0, 1.01), ncols=2)
