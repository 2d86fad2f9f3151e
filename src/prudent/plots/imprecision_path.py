"""Utility of sets against the imprecision that made them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from prudent.core.types import FloatArray
from prudent.imprecise import ImpreciseDiscriminantAnalysisCV
from prudent.metrics import coverage_score, set_size, u65_score, u80_score
from prudent.plots.display import GREY, Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(eq=False, repr=False)
class ImprecisionPathDisplay(Display):
    """Scores of set-valued predictions along the imprecision.

    Utilities first rise, when hard rows are answered with two classes, and fall when
    sets grow too large; coverage only rises.

    Parameters
    ----------
    imprecisions : ndarray of shape (n_points,)
        Values of c, increasing.
    scores : mapping of str to ndarray of shape (n_points,)
        Curves, each in [0, 1].
    deviations : mapping of str to ndarray of shape (n_points,), default={}
        Standard deviations over folds, drawn as bands.
    chosen : float or None, default=None
        The imprecision in use, drawn as a vertical line.

    Attributes
    ----------
    lines_ : list of matplotlib Line2D
        One a score.
    chosen_line_ : matplotlib Line2D or None
        Position of `chosen`.

    Examples
    --------
    >>> from prudent import ImpreciseDiscriminantAnalysis
    >>> from prudent.plots import ImprecisionPathDisplay
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ImpreciseDiscriminantAnalysis(imprecision=2.0).fit(X[::2], y[::2])
    >>> display = ImprecisionPathDisplay.from_estimator(
    ...     model, X[1::2], y[1::2], imprecisions=[0.5, 2.0]
    ... )
    >>> display.frame().column_names
    ['imprecision', 'u80', 'u65', 'coverage', 'share of classes', 'chosen']
    """

    imprecisions: FloatArray
    scores: Mapping[str, FloatArray]
    _: KW_ONLY
    deviations: Mapping[str, FloatArray] = field(default_factory=dict)
    chosen: float | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        imprecisions: ArrayLike | None = None,
    ) -> Self:
        """Path of a fitted estimator on rows it has not seen.

        Parameters
        ----------
        estimator : fitted ImpreciseDiscriminantAnalysis or its CV variant
            With 0-1 costs and criterion "maximality".
        X : array-like of shape (n_samples, n_features)
            Rows not used in the fit.
        y : array-like of shape (n_samples,)
            Their labels.
        imprecisions : array-like, default=None
            Values of c >= 0; None is 0, 0.05, ..., 5.

        Returns
        -------
        ImprecisionPathDisplay
            With u80, u65, coverage, and the mean set size over the number of classes.
        """
        grid = np.arange(101) / 20 if imprecisions is None else np.unique(imprecisions)
        critical = estimator.critical_imprecision(X)
        classes = estimator.classes_
        sets = [critical <= c for c in grid]
        scores = {
            name: np.array([score(y, Y, classes) for Y in sets])
            for name, score in (
                ("u80", u80_score),
                ("u65", u65_score),
                ("coverage", coverage_score),
            )
        }
        sizes = [set_size(Y).mean() / len(classes) for Y in sets]
        scores["share of classes"] = np.array(sizes)
        chosen = getattr(estimator, "imprecision_", None)
        if chosen is None and np.ndim(estimator.imprecision) == 0:
            chosen = float(estimator.imprecision)  # else one a feature: no place on it
        return cls(grid, scores, chosen=chosen)

    @classmethod
    def from_cross_validation(cls, estimator: ImpreciseDiscriminantAnalysisCV) -> Self:
        """Score over the folds of a fitted CV estimator, for the shrinkage chosen.

        Parameters
        ----------
        estimator : fitted ImpreciseDiscriminantAnalysisCV

        Returns
        -------
        ImprecisionPathDisplay
            Mean over the folds, with a band of one standard deviation.
        """
        results = estimator.cv_results_
        n_values = len(np.unique(results["imprecision"]))
        best = int(results["mean_test_score"].argmax()) // n_values
        part = slice(best * n_values, (best + 1) * n_values)
        name = str(estimator.scoring)
        return cls(
            results["imprecision"][part],
            {name: results["mean_test_score"][part]},
            deviations={name: results["std_test_score"][part]},
            chosen=estimator.imprecision_,
        )

    def _draw(self, ax: Axes) -> None:
        self.lines_ = []
        for name, score in self.scores.items():
            (line,) = ax.plot(self.imprecisions, score, label=name)
            if name in self.deviations:
                ax.fill_between(
                    self.imprecisions,
                    score - self.deviations[name],
                    score + self.deviations[name],
                    color=line.get_color(),
                    alpha=0.2,
                    linewidth=0,
                )
            self.lines_.append(line)
        self.chosen_line_ = None
        if self.chosen is not None:
            self.chosen_line_ = ax.axvline(self.chosen, color=GREY, linestyle="--")
        ax.set(xlabel="imprecision", ylabel="score")
        ax.legend()

    def frame(self) -> pa.Table:
        """One row for each imprecision, with scores, deviations and the one chosen."""
        chosen = np.zeros(len(self.imprecisions), dtype=bool)
        if self.chosen is not None:
            chosen[np.abs(self.imprecisions - self.chosen).argmin()] = True
        deviations = {f"{name} deviation": v for name, v in self.deviations.items()}
        columns = {"imprecision": self.imprecisions, **self.scores, **deviations}
        return pa.table({**columns, "chosen": chosen})
