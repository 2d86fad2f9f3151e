"""What a threshold does: rows answered, wrong, missed and flagged at each one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, Self

import numpy as np
import pyarrow as pa
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike, NDArray

from prudent.certification import (
    NeymanPearsonClassifier,
    SelectiveClassifier,
    certify_thresholds,
)
from prudent.certification.held_out import answer_scores, class_scores
from prudent.core.binomial import upper_limits
from prudent.core.types import BoolArray, FloatArray
from prudent.core.validation import shown
from prudent.plots.display import (
    BLUE,
    COLOURS,
    GREEN,
    GREY,
    RED,
    Display,
    columns_of_one_length,
    last_step,
    legend_beside,
    thousands_on_axis,
)
from prudent.rules.bands import ThresholdBands

HATCHES = ("", "///")
#: Counts are those of rows of this kind; an answered share is limited from below.
LOWER = "answered share"


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

    _shown = "the curve"

    @classmethod
    def from_estimator(
        cls,
        estimator: SelectiveClassifier,
        X: Any,
        y: ArrayLike,
        *,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Look at a fitted selective classifier on rows it has not seen.

        Parameters
        ----------
        estimator : fitted SelectiveClassifier
            With one threshold, without `subgroups`.
        name : str, default=None
            What the legend calls it; None: the class of the estimator.

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
        return cls.from_predictions(
            y,
            estimator.estimator_.predict(X),
            answer_scores(estimator.estimator_, X, estimator._scoring)[0],
            threshold=estimator.threshold_,
            limit=estimator.error_rate,
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
        """
        truth, answers, sureness = columns_of_one_length(y_true, y_pred, scores)
        return cls(
            sureness.astype(np.float64),
            truth != answers,
            threshold=threshold,
            limit=limit,
        ).plot(**kwargs)

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

    def _draw(self, ax: Axes, look: Mapping[str, Any]) -> None:
        _, answered, error = (column.to_numpy() for column in self.frame().columns)
        curve = {"color": BLUE, "label": self.name_, **look}
        (self.line_,) = ax.plot(answered, error, **curve)
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

    _shown = "the two curves"

    @classmethod
    def from_estimator(
        cls, estimator: NeymanPearsonClassifier, X: Any, y: ArrayLike, **kwargs: Any
    ) -> Self:
        """Look at a fitted Neyman-Pearson classifier of two classes on new rows.

        Parameters
        ----------
        estimator : fitted NeymanPearsonClassifier
            Of two classes, one of them limited, without `subgroups`.

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
        return cls.from_predictions(
            y,
            class_scores(estimator.estimator_, X)[0][:, column],
            positive=positive,
            threshold=float(estimator.thresholds_[column]),
            limits={str(p.scope): p.bound for p in estimator.guarantees_},
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
        **kwargs: Any,
    ) -> Self:
        """Look at the scores of any classifier of two classes.

        Parameters
        ----------
        scores : array-like of shape (n_samples,)
            For the positive class.
        positive : object, default=None
            That class; None: the larger label.
        threshold : float, default=None
            In use.
        limits : mapping of str to float, default=None
            Promised errors by class.

        Raises
        ------
        ValueError
            If there are not two classes.
        """
        truth, values = columns_of_one_length(y_true, scores)
        classes: list[Any] = np.unique(truth).tolist()
        if len(classes) != 2:
            raise ValueError(f"there must be two classes, got {len(classes)}.")
        first = classes[1] if positive is None else positive
        other = classes[0] if classes[0] != first else classes[1]
        return cls(
            values.astype(np.float64),
            np.asarray(truth == first),
            (str(first), str(other)),
            threshold=threshold,
            limits=limits,
        ).plot(**kwargs)

    def frame(self) -> pa.Table:
        """One row for each score as a threshold."""
        thresholds = np.unique(self.scores)
        first, other = self.labels
        missed = _share_below(self.scores[self.positive], thresholds)
        passed = _share_below(self.scores[~self.positive], thresholds)
        return pa.table(
            {
                "threshold": thresholds,
                f"error of {first}": missed,
                f"error of {other}": 1 - passed,
            }
        )

    def _draw(self, ax: Axes, look: Mapping[str, Any]) -> None:
        thresholds, *errors = (column.to_numpy() for column in self.frame().columns)
        self.lines_ = []
        for label, error, colour in zip(self.labels, errors, (RED, BLUE), strict=True):
            curve = {"color": colour, "label": self._label(f"error of {label}"), **look}
            self.lines_ += ax.plot(thresholds, error, drawstyle="steps-pre", **curve)
            if self.limits and label in self.limits:
                promised: dict[str, Any] = {
                    "color": colour,
                    "label": f"promised of {label}",
                }
                ax.axhline(self.limits[label], linestyle="--", linewidth=1, **promised)
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


def _share_below(scores: FloatArray, thresholds: FloatArray) -> NDArray[np.float64]:
    """Share of scores strictly below each threshold."""
    ordered = np.sort(scores)
    return np.searchsorted(ordered, thresholds, side="left") / max(1, len(ordered))


@dataclass(eq=False, repr=False)
class ThresholdBandsDisplay(Display):
    """Rates over all thresholds: measured, and their limits.

    Solid lines hold at all thresholds at once, so that one may choose by them; thin
    ones are limits of a single threshold fixed beforehand, which hold at none that is
    chosen by looking at them; dots are measured.

    Parameters
    ----------
    bands : ThresholdBands
        What is drawn.

    Attributes
    ----------
    lines_ : list of matplotlib Line2D
        Three for each rate: limit of all thresholds, of a single one, measured.

    Examples
    --------
    >>> from prudent import ThresholdBands
    >>> from prudent.plots import ThresholdBandsDisplay
    >>> bands = ThresholdBands.from_scores([0.1, 0.4, 0.8], [0, 0, 1], kind="alarms")
    >>> ThresholdBandsDisplay(bands).frame()["missed"].to_pylist()
    [0, 0, 0, 1]
    """

    bands: ThresholdBands

    _shown = "the lines"

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        confidence: float = 0.95,
        kind: Literal["auto", "alarms", "answers"] = "auto",
        positive: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Certify all thresholds of a fitted model on new rows, and draw.

        Parameters
        ----------
        estimator : fitted classifier or outlier detector
        X : array-like of shape (n_samples, n_features)
            Rows that the model has not seen.
        confidence : float, default=0.95
            Of the limits, at all thresholds together.
        kind : {"auto", "alarms", "answers"}, default="auto"
            What a score above a threshold makes of a row.
        positive : object, default=None
            The class that an alarm stands for, where alarms are asked for.
        """
        bands = certify_thresholds(
            estimator, X, y, confidence=confidence, kind=kind, positive=positive
        )
        return cls(bands).plot(**kwargs)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        scores: ArrayLike,
        *,
        kind: Literal["alarms", "answers"],
        confidence: float = 0.95,
        **kwargs: Any,
    ) -> Self:
        """Limits at all thresholds of scores that something else gave.

        Parameters
        ----------
        y_true : array-like of bool, shape (n_samples,)
            Whether each row is positive (alarms), or its answer right (answers).
        scores : array-like of shape (n_samples,)
            Of rows that the model has not seen.
        kind : {"alarms", "answers"}
            What a score above a threshold makes of a row.
        confidence : float, default=0.95
            Of the limits, at all thresholds together.
        """
        truth, values = columns_of_one_length(y_true, scores)
        bands = ThresholdBands.from_scores(
            values, truth, kind=kind, confidence=confidence
        )
        return cls(bands).plot(**kwargs)

    def frame(self) -> pa.Table:
        """Counts and limits at each threshold."""
        table: pa.Table = self.bands.frame()
        return table

    def _draw(self, ax: Axes, look: Mapping[str, Any]) -> None:
        bands, frame = self.bands, self.frame()
        thresholds = frame["threshold"].to_numpy()
        level, limits = 1 - bands.confidence, bands.limits(thresholds)
        n, n_marked = len(bands.scores), int(bands.marked.sum())
        # What is counted, and among how many rows.
        counted = {"missed": n_marked, "false alarms": n - n_marked, "flagged": n}
        if bands.kind == "answers":
            counted = {"wrong": frame["answered"].to_numpy(), "answered": n}
        self.lines_ = []
        for colour, (what, limit), (column, among) in zip(
            (BLUE, RED, GREEN), limits.items(), counted.items(), strict=False
        ):
            count = frame[column].to_numpy()
            m = np.broadcast_to(among, len(count))
            single = upper_limits(count, m, level=level)
            if what == LOWER:
                single = 1 - upper_limits(m - count, m, level=level)
            measured = np.divide(count, m, out=np.full(len(m), np.nan), where=m > 0)
            shared: dict[str, Any] = {"color": colour, "drawstyle": "steps-mid", **look}
            thin = {**shared, "linewidth": 0.6, "alpha": 0.7}
            self.lines_ += [
                *ax.plot(thresholds, limit, label=self._label(what), **shared),
                *ax.plot(thresholds, single, **thin),
                *ax.plot(thresholds, measured, ".", markersize=2, color=colour),
            ]
        positive = "" if bands.positive is None else f" of {shown(bands.positive)}"
        ax.set(
            xlabel=f"threshold of the score{positive}",
            ylabel="share of rows",
            ylim=(0, 1.02),
        )

    def _draw_legend(self, ax: Axes) -> None:
        handles, _ = ax.get_legend_handles_labels()
        handles += [
            Line2D([], [], color=GREY, linewidth=0.6, label="of one fixed threshold"),
            Line2D([], [], color=GREY, linestyle="", marker=".", label="measured"),
        ]
        legend_beside(ax, handles=handles, title="limits at any threshold")


@dataclass(eq=False, repr=False)
class DetectorScoreDisplay(Display):
    """Scores of ordinary and of other rows, and the cut below which rows are flagged.

    The cut is an edge of the bars: no bar lies on both sides of it.

    Parameters
    ----------
    scores : ndarray of shape (n_samples,)
        Larger: more ordinary. Infinite ones are drawn at the outermost finite ones.
    ordinary : ndarray of bool, shape (n_samples,)
        Whether each row is an ordinary one.
    cut : float, default=0.0
        Rows of a score below it are flagged.
    bins : int, default=40
        Bars, about.

    Attributes
    ----------
    bars_ : list of matplotlib BarContainer
        Of the ordinary rows, then of the others, where there are any.
    cut_line_ : matplotlib Line2D
        The cut.

    Examples
    --------
    >>> from prudent.plots import DetectorScoreDisplay
    >>> display = DetectorScoreDisplay.from_predictions([1, 1, -1], [0.4, 0.1, -0.3])
    >>> display.frame()["flagged"].to_pylist()
    [False, False, True]
    """

    scores: FloatArray
    ordinary: BoolArray
    _: KW_ONLY
    cut: float = 0.0
    bins: int = 40

    _shown = "the bars"

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike | None = None, **kwargs: Any
    ) -> Self:
        """Look at the scores of a fitted detector.

        Parameters
        ----------
        estimator : fitted outlier detector
            With `decision_function`, below 0 for rows that it flags.
        y : array-like of shape (n_samples,), default=None
            1 for ordinary rows, -1 for others; None: all are ordinary.
        """
        detector, X = last_step(
            estimator,
            X,
            has="decision_function",
            such_as="an outlier detector with decision_function",
        )
        scores = np.asarray(detector.decision_function(X), dtype=np.float64)
        labels = np.ones(len(scores)) if y is None else y
        return cls.from_predictions(labels, scores, **kwargs)

    @classmethod
    def from_predictions(
        cls, y_true: ArrayLike, scores: ArrayLike, *, cut: float = 0.0, **kwargs: Any
    ) -> Self:
        """Look at scores, whatever made them.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            1 for ordinary rows, -1 for others.
        scores : array-like of shape (n_samples,)
            Larger: more ordinary.
        """
        truth, values = columns_of_one_length(y_true, scores)
        display = cls(values.astype(np.float64), np.asarray(truth == 1), cut=float(cut))
        return display.plot(**kwargs)

    def frame(self) -> pa.Table:
        """One row for each score."""
        flagged = self.scores < self.cut
        return pa.table(
            {"score": self.scores, "ordinary": self.ordinary, "flagged": flagged}
        )

    def _draw(self, ax: Axes, look: Mapping[str, Any]) -> None:
        scores = self._drawn()
        edges = self._edges(scores)
        self.bars_ = []
        for k, (what, rows) in enumerate(
            [("ordinary", self.ordinary), ("other", ~self.ordinary)]
        ):
            if not rows.any():
                continue
            counts, _ = np.histogram(scores[rows], edges)
            own: dict[str, Any] = {"color": COLOURS[k], "label": self._label(what)}
            own |= {"alpha": 0.6, "hatch": HATCHES[k], **look}
            bars = ax.bar(edges[:-1], counts, np.diff(edges), align="edge", **own)
            self.bars_.append(bars)
        self.cut_line_ = ax.axvline(
            self.cut, color=RED, linestyle="--", linewidth=1, label="cut"
        )
        ax.set(xlabel=f"score (below {self.cut:g}: flagged)", ylabel="rows")
        ax.yaxis.set_major_formatter(thousands_on_axis)

    def _drawn(self) -> FloatArray:
        """Scores at their places: infinite ones at the outermost finite ones."""
        finite = self.scores[np.isfinite(self.scores)]
        if len(finite) == 0:
            return np.full(len(self.scores), self.cut)
        return np.clip(self.scores, finite.min(), finite.max())

    def _edges(self, scores: FloatArray) -> FloatArray:
        """Edges of equal bars, of which the cut is one."""
        low, high = min(scores.min(), self.cut), max(scores.max(), self.cut)
        width = (high - low) / self.bins or 1.0
        below = math.ceil((self.cut - low) / width)
        above = math.ceil((high - self.cut) / width)
        # Scores at the cut are not flagged: bars are closed on the left.
        return self.cut + width * np.arange(-below, above + 1.5).astype(np.float64)
