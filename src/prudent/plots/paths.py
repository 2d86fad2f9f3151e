"""Curves along a path of fits, with the fit that was chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Self

import numpy as np
import pyarrow as pa
from matplotlib.axes import Axes
from numpy.typing import ArrayLike
from sklearn.utils.validation import (
    check_consistent_length,
    column_or_1d,
)

from prudent.calibration import RiskCalibratedClassifier
from prudent.core.types import FloatArray
from prudent.imprecise import ImpreciseDiscriminantAnalysisCV
from prudent.metrics import coverage_score, set_size, u65_score, u80_score
from prudent.plots.display import BLUE, GREY, RED, Display, last_step, legend_beside


@dataclass(eq=False, repr=False)
class CalibrationPathDisplay(Display):
    """Log loss and error after each accepted update of a calibration.

    The training log loss falls by design; the vertical line marks the iterate that
    the stopping rule kept, and the dot its error on other rows, where given.

    Parameters
    ----------
    loss_curve, error_curve : ndarray of shape (n_updates + 1,)
        Training log loss and training error after 0, 1, ... updates.
    best_iteration : int
        Updates of the kept iterate.
    test_error : float or None, default=None
        Its error on rows not used in the fit.

    Attributes
    ----------
    loss_ax_ : matplotlib Axes
        Axes of the log loss, on the right of `ax_`, those of the error.
    error_line_, loss_line_ : matplotlib Line2D
        The two curves.
    kept_line_ : matplotlib Line2D
        Position of the kept iterate.

    Examples
    --------
    >>> from prudent import RiskCalibratedClassifier
    >>> from prudent.plots import CalibrationPathDisplay
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = RiskCalibratedClassifier(stopping="train", max_iter=10).fit(X, y)
    >>> frame = CalibrationPathDisplay.from_estimator(model).frame()
    >>> frame.column_names
    ['update', 'log_loss', 'error', 'kept']
    >>> frame.num_rows
    10
    """

    loss_curve: FloatArray
    error_curve: FloatArray
    best_iteration: int
    _: KW_ONLY
    test_error: float | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: RiskCalibratedClassifier,
        X: Any = None,
        y: ArrayLike | None = None,
        *,
        ax: Axes | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Path of a fitted estimator.

        Parameters
        ----------
        estimator : fitted RiskCalibratedClassifier
        X : array-like of shape (n_samples, n_features), default=None
            Rows not used in the fit.
        y : array-like of shape (n_samples,), default=None
            Their labels.
        ax : matplotlib Axes, default=None
            Where to draw; None: on new axes.
        name : str, default=None
            What the legend calls it.
        **kwargs
            Of matplotlib, for the two curves.

        Returns
        -------
        CalibrationPathDisplay

        Raises
        ------
        TypeError
            If `estimator` is of another sort.
        ValueError
            If rows have no labels.
        """
        estimator, X = last_step(
            estimator, X, has="loss_curve_", such_as="a RiskCalibratedClassifier"
        )
        if (X is None) != (y is None):
            missing = "y" if y is None else "X"
            raise ValueError(f"the error on other rows needs `{missing}`, too.")
        return cls(
            estimator.loss_curve_,
            estimator.error_curve_,
            estimator.best_iteration_,
            test_error=None if X is None else 1.0 - float(estimator.score(X, y)),
        ).plot(ax, name=name, **kwargs)

    def _draw(self, ax: Axes, name: str | None, look: Mapping[str, Any]) -> None:
        updates = np.arange(len(self.loss_curve))
        prefix = "" if name is None else f"{name}: "
        (self.error_line_,) = ax.plot(
            updates,
            self.error_curve,
            **{"color": BLUE, "label": f"{prefix}training error", **look},
        )
        self.kept_line_ = ax.axvline(
            self.best_iteration, color=GREY, linestyle="--", label="kept"
        )
        if self.test_error is not None:
            at = [self.best_iteration], [self.test_error]
            ax.plot(*at, "o", color=BLUE, label="error on other rows")
        ax.set(xlabel="updates", ylabel="error", ylim=(0, None))
        loss_ax = ax.twinx()
        (self.loss_line_,) = loss_ax.plot(
            updates,
            self.loss_curve,
            **{"color": RED, "label": f"{prefix}training log loss", **look},
        )
        loss_ax.set(ylabel="log loss", ylim=(0, None))
        lines = [*ax.get_lines(), self.loss_line_]
        # Beside the scale of the log loss.
        ax.legend(handles=lines, loc="upper left", bbox_to_anchor=(1.2, 1))
        self.loss_ax_ = loss_ax

    def frame(self) -> pa.Table:
        """One row for each accepted update."""
        updates = np.arange(len(self.loss_curve))
        return pa.table(
            {
                "update": updates,
                "log_loss": self.loss_curve,
                "error": self.error_curve,
                "kept": updates == self.best_iteration,
            }
        )


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
        ax: Axes | None = None,
        name: str | None = None,
        **kwargs: Any,
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
        ax : matplotlib Axes, default=None
            Where to draw; None: on new axes.
        name : str, default=None
            What the legend calls it.
        **kwargs
            Of matplotlib, for the curves.

        Returns
        -------
        ImprecisionPathDisplay
            With u80, u65, coverage, and the mean set size over the number of classes.

        Raises
        ------
        TypeError
            If `estimator` is of another sort.
        """
        grid = np.arange(101) / 20 if imprecisions is None else np.unique(imprecisions)
        labels = column_or_1d(y)
        check_consistent_length(X, labels)
        estimator, X = last_step(
            estimator,
            X,
            has="critical_imprecision",
            such_as="an ImpreciseDiscriminantAnalysis",
        )
        critical = estimator.critical_imprecision(X)
        classes = estimator.classes_
        sets = [critical <= c for c in grid]
        scores = {
            what: np.array([score(labels, Y, classes) for Y in sets])
            for what, score in (
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
        return cls(grid, scores, chosen=chosen).plot(ax, name=name, **kwargs)

    @classmethod
    def from_cross_validation(
        cls,
        estimator: ImpreciseDiscriminantAnalysisCV,
        *,
        ax: Axes | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Score over the folds of a fitted CV estimator, for the shrinkage chosen.

        Parameters
        ----------
        estimator : fitted ImpreciseDiscriminantAnalysisCV
        ax : matplotlib Axes, default=None
            Where to draw; None: on new axes.
        name : str, default=None
            What the legend calls it.
        **kwargs
            Of matplotlib, for the curve.

        Returns
        -------
        ImprecisionPathDisplay
            Mean over the folds, with a band of one standard deviation.

        Raises
        ------
        TypeError
            If `estimator` is of another sort.
        """
        estimator, _ = last_step(
            estimator, has="cv_results_", such_as="an ImpreciseDiscriminantAnalysisCV"
        )
        results = estimator.cv_results_
        n_values = len(np.unique(results["imprecision"]))
        best = int(results["mean_test_score"].argmax()) // n_values
        part = slice(best * n_values, (best + 1) * n_values)
        scoring = str(estimator.scoring)
        return cls(
            results["imprecision"][part],
            {scoring: results["mean_test_score"][part]},
            deviations={scoring: results["std_test_score"][part]},
            chosen=estimator.imprecision_,
        ).plot(ax, name=name, **kwargs)

    def _draw(self, ax: Axes, name: str | None, look: Mapping[str, Any]) -> None:
        self.lines_ = []
        prefix = "" if name is None else f"{name}: "
        for what, score in self.scores.items():
            label = f"{prefix}{what}"
            (line,) = ax.plot(self.imprecisions, score, **{"label": label, **look})
            if what in self.deviations:
                ax.fill_between(
                    self.imprecisions,
                    score - self.deviations[what],
                    score + self.deviations[what],
                    color=line.get_color(),
                    alpha=0.2,
                    linewidth=0,
                )
            self.lines_.append(line)
        self.chosen_line_ = None
        if self.chosen is not None:
            self.chosen_line_ = ax.axvline(
                self.chosen, color=GREY, linestyle="--", label="in use"
            )
        ax.set(xlabel="imprecision", ylabel="score")
        legend_beside(ax)

    def frame(self) -> pa.Table:
        """One row for each imprecision, with scores, deviations and the one chosen."""
        chosen = np.zeros(len(self.imprecisions), dtype=bool)
        if self.chosen is not None:
            chosen[np.abs(self.imprecisions - self.chosen).argmin()] = True
        deviations = {f"{name} deviation": v for name, v in self.deviations.items()}
        columns = {"imprecision": self.imprecisions, **self.scores, **deviations}
        return pa.table({**columns, "chosen": chosen})
