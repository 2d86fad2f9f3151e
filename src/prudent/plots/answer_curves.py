"""What a threshold does: rows answered and their error, errors of two classes."""

from __future__ import annotations

from collections.abc import Mapping
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

from prudent.certification import NeymanPearsonClassifier, SelectiveClassifier
from prudent.certification.held_out import answer_scores, class_scores
from prudent.core.types import BoolArray, FloatArray
from prudent.plots.display import BLUE, GREY, RED, Display, last_step, legend_beside


@dataclass(eq=False, repr=False)
class SelectiveDisplay(Display):
    """Error of the answered rows against the share of rows answered.

    Rows are answered from the surest on. The dashed line is the error that was
    promised, the dot where the model stops.

    Parameters
    ----------
    scores : ndarray of shape (n_samples,)
        How sure each answer is.
    wrong : ndarray of bool, shape (n_samples,)
        Whether it is wrong.
    threshold : float or None, default=None
        Rows of a score above it are answered by the model.
    limit : float or None, default=None
        Promised error of the answered rows.

    Attributes
    ----------
    line_ : matplotlib Line2D
        The curve.
    limit_line_, point_ : matplotlib Line2D or None
        The promise, and where the model stops.

    Examples
    --------
    >>> from prudent.plots import SelectiveDisplay
    >>> display = SelectiveDisplay.from_predictions(
    ...     [0, 1, 1, 0], [0, 1, 0, 0], [0.9, 0.8, 0.6, 0.7], limit=0.1
    ... )
    >>> display.frame()["error"].to_pylist()
    [0.0, 0.0, 0.0, 0.25]
    """

    scores: FloatArray
    wrong: BoolArray
    _: KW_ONLY
    threshold: float | None = None
    limit: float | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: SelectiveClassifier,
        X: Any,
        y: ArrayLike,
        *,
        ax: Axes | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Look at a fitted selective classifier on rows it has not seen.

        Parameters
        ----------
        estimator : fitted SelectiveClassifier
            With one threshold, without `subgroups`.
        X : array-like of shape (n_samples, n_features)
            Rows not used in the fit.
        y : array-like of shape (n_samples,)
            Their labels.
        ax : matplotlib Axes, default=None
            Where to draw; None: on new axes.
        name : str, default=None
            What the legend calls it; None: the class of the estimator.
        **kwargs
            Of matplotlib, for the curve.

        Returns
        -------
        SelectiveDisplay

        Raises
        ------
        TypeError
            If `estimator` is of another sort.
        ValueError
            If the estimator has a threshold for each of several subgroups.
        """
        estimator, X = last_step(
            estimator, X, has="answers", such_as="a SelectiveClassifier"
        )
        if not hasattr(estimator, "threshold_"):
            raise ValueError(
                "each subgroup of this model has a threshold of its own: give the rows "
                "of one to from_predictions."
            )
        plain = np.asarray(estimator.estimator_.predict(X))
        return cls.from_predictions(
            y,
            plain,
            answer_scores(estimator.estimator_, X, estimator._scoring),
            threshold=estimator.threshold_,
            limit=estimator.error_rate,
            ax=ax,
            name=type(estimator).__name__ if name is None else name,
            **kwargs,
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        scores: ArrayLike,
        *,
        threshold: float | None = None,
        limit: float | None = None,
        ax: Axes | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Look at the answers of any classifier, and how sure it was of each.

        Parameters
        ----------
        y_true, y_pred : array-like of shape (n_samples,)
            Labels and answers.
        scores : array-like of shape (n_samples,)
            Larger: surer.
        threshold : float, default=None
            Rows of a score above it are answered.
        limit : float, default=None
            Promised error of the answered rows, in (0, 1).
        ax : matplotlib Axes, default=None
            Where to draw; None: on new axes.
        name : str, default=None
            What the legend calls it.
        **kwargs
            Of matplotlib, for the curve.

        Returns
        -------
        SelectiveDisplay
        """
        truth, answers = column_or_1d(y_true), column_or_1d(y_pred)
        sureness = column_or_1d(scores).astype(np.float64)
        check_consistent_length(truth, answers, sureness)
        display = cls(sureness, truth != answers, threshold=threshold, limit=limit)
        return display.plot(ax, name=name, **kwargs)

    def frame(self) -> pa.Table:
        """One row for each threshold: answered share and error of the answered."""
        order = np.argsort(-self.scores, kind="stable")
        ordered = self.scores[order]
        # Rows of one score are answered together.
        ends = np.flatnonzero(np.append(np.diff(ordered) != 0, True)) + 1
        n_wrong = np.cumsum(self.wrong[order])[ends - 1]
        return pa.table(
            {
                "score": ordered[ends - 1],
                "answered": ends / len(ordered),
                "error": n_wrong / ends,
            }
        )

    def _draw(self, ax: Axes, name: str | None, look: Mapping[str, Any]) -> None:
        frame = self.frame()
        answered, error = frame["answered"].to_numpy(), frame["error"].to_numpy()
        (self.line_,) = ax.plot(
            *(answered, error), **{"color": BLUE, "label": name, **look}
        )
        self.limit_line_ = self.point_ = None
        if self.limit is not None:
            self.limit_line_ = ax.axhline(
                self.limit, color=GREY, linestyle="--", linewidth=1, label="promised"
            )
        chosen = self.threshold is not None and self.scores > self.threshold
        if self.threshold is not None and np.any(chosen):
            at = np.mean(chosen), np.mean(self.wrong[chosen])
            (self.point_,) = ax.plot(
                *at, "o", color=self.line_.get_color(), label="answered by the model"
            )
        ax.set(
            xlabel="share of rows answered",
            ylabel="error of the answered rows",
            xlim=(0, 1.02),
            ylim=(0, None),
        )
        legend_beside(ax)


@dataclass(eq=False, repr=False)
class ClassErrorDisplay(Display):
    """Errors of two classes over all thresholds of a score.

    Rows that score at least the threshold get the positive label. The vertical line is
    the threshold in use, the dashed ones the errors that are promised.

    Parameters
    ----------
    scores : ndarray of shape (n_samples,)
        For the positive class.
    positive : ndarray of bool, shape (n_samples,)
        Whether each row is of that class.
    labels : tuple of str
        The positive class and the other.
    threshold : float or None, default=None
        In use.
    limits : mapping of str to float, default={}
        Promised error of the classes that have a promise.

    Attributes
    ----------
    lines_ : list of matplotlib Line2D
        Error of the positive class, and of the other.
    threshold_line_ : matplotlib Line2D or None
        The threshold in use.

    Examples
    --------
    >>> from prudent.plots import ClassErrorDisplay
    >>> display = ClassErrorDisplay.from_predictions([0, 0, 1], [0.1, 0.6, 0.4])
    >>> display.frame().column_names
    ['threshold', 'error of 1', 'error of 0']
    """

    scores: FloatArray
    positive: BoolArray
    labels: tuple[str, str]
    _: KW_ONLY
    threshold: float | None = None
    limits: Mapping[str, float] | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: NeymanPearsonClassifier,
        X: Any,
        y: ArrayLike,
        *,
        ax: Axes | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Look at a fitted Neyman-Pearson classifier of two classes on new rows.

        Parameters
        ----------
        estimator : fitted NeymanPearsonClassifier
            Of two classes, one of them limited, without `subgroups`.
        X : array-like of shape (n_samples, n_features)
            Rows not used in the fit.
        y : array-like of shape (n_samples,)
            Their labels.
        ax : matplotlib Axes, default=None
            Where to draw; None: on new axes.
        name : str, default=None
            What the legend calls it.
        **kwargs
            Of matplotlib, for the two curves.

        Returns
        -------
        ClassErrorDisplay

        Raises
        ------
        TypeError
            If `estimator` is of another sort.
        ValueError
            If there is no single threshold: more than two classes, or subgroups.
        """
        estimator, X = last_step(
            estimator, X, has="priority_", such_as="a NeymanPearsonClassifier"
        )
        n_limited = len(estimator.priority_)
        is_plain = np.ndim(estimator.thresholds_) == 1
        if len(estimator.classes_) != 2 or n_limited != 1 or not is_plain:
            raise ValueError(
                "errors over one threshold are those of two classes, one of them "
                f"limited, without subgroups; this model has {len(estimator.classes_)} "
                f"classes, {n_limited} of them limited."
            )
        positive = estimator.priority_[0]
        column = int(np.flatnonzero(estimator.classes_ == positive)[0])
        promised = {
            str(promise.scope): promise.bound for promise in estimator.guarantees_
        }
        return cls.from_predictions(
            y,
            class_scores(estimator.estimator_, X)[:, column],
            positive=positive,
            threshold=float(estimator.thresholds_[column]),
            limits=promised,
            ax=ax,
            name=name,
            **kwargs,
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        scores: ArrayLike,
        *,
        positive: Any = None,
        threshold: float | None = None,
        limits: Mapping[str, float] | None = None,
        ax: Axes | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Look at the scores of any classifier of two classes.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Labels.
        scores : array-like of shape (n_samples,)
            For the positive class.
        positive : object, default=None
            That class; None: the larger label.
        threshold : float, default=None
            In use.
        limits : mapping of str to float, default=None
            Promised errors by class.
        ax : matplotlib Axes, default=None
            Where to draw; None: on new axes.
        name : str, default=None
            What the legend calls it.
        **kwargs
            Of matplotlib, for the two curves.

        Returns
        -------
        ClassErrorDisplay

        Raises
        ------
        ValueError
            If there are not two classes.
        """
        truth, values = column_or_1d(y_true), column_or_1d(scores).astype(np.float64)
        check_consistent_length(truth, values)
        classes: list[Any] = np.unique(truth).tolist()
        if len(classes) != 2:
            raise ValueError(f"there must be two classes, got {len(classes)}.")
        first = classes[1] if positive is None else positive
        other = classes[0] if classes[0] != first else classes[1]
        display = cls(
            values,
            np.asarray(truth == first),
            (str(first), str(other)),
            threshold=threshold,
            limits=limits,
        )
        return display.plot(ax, name=name, **kwargs)

    def frame(self) -> pa.Table:
        """One row for each score as a threshold."""
        thresholds = np.unique(self.scores)
        first, other = self.labels
        return pa.table(
            {
                "threshold": thresholds,
                f"error of {first}": _share_below(
                    self.scores[self.positive], thresholds
                ),
                f"error of {other}": 1
                - _share_below(self.scores[~self.positive], thresholds),
            }
        )

    def _draw(self, ax: Axes, name: str | None, look: Mapping[str, Any]) -> None:
        thresholds, *errors = (column.to_numpy() for column in self.frame().columns)
        prefix = "" if name is None else f"{name}: "
        self.lines_ = []
        for label, error, colour in zip(self.labels, errors, (RED, BLUE), strict=True):
            shown = {"color": colour, "label": f"{prefix}error of {label}", **look}
            self.lines_ += ax.plot(thresholds, error, drawstyle="steps-pre", **shown)
            if self.limits and label in self.limits:
                ax.axhline(
                    self.limits[label],
                    color=colour,
                    linestyle="--",
                    linewidth=1,
                    label=f"promised of {label}",
                )
        self.threshold_line_ = None
        if self.threshold is not None:
            self.threshold_line_ = ax.axvline(
                self.threshold, color=GREY, linewidth=1, label="threshold"
            )
        ax.set(
            xlabel=f"threshold of the score of {self.labels[0]}",
            ylabel="error of the class",
            ylim=(0, 1.02),
        )
        legend_beside(ax)


def _share_below(scores: FloatArray, thresholds: FloatArray) -> NDArray[np.float64]:
    """Share of scores strictly below each threshold."""
    ordered = np.sort(scores)
    return np.searchsorted(ordered, thresholds, side="left") / max(1, len(ordered))
