"""Pictures of one family each: paths of fits, a game's curves, touching ellipsoids."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Self

import numpy as np
import pyarrow as pa
from matplotlib.axes import Axes
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_consistent_length, column_or_1d

from prudent.adversarial import RejectionGame, SecurityCurve
from prudent.calibration import RiskCalibratedClassifier
from prudent.core.types import FloatArray
from prudent.imprecise import ImpreciseDiscriminantAnalysisCV
from prudent.metrics import coverage_score, set_size, u65_score, u80_score
from prudent.minimax import MinimaxProbabilityClassifier
from prudent.plots.display import BLUE, GREEN, GREY, RED, Display, last_step

#: Points of the outline of an ellipsoid.
N_OUTLINE = 181


@dataclass(eq=False, repr=False)
class CalibrationPathDisplay(Display):
    """Log loss and error after each accepted update of a calibration.

    With the line search the training objective, by default the log loss, never rises;
    the vertical line marks the iterate that the stopping rule kept, and the dot its
    error on other rows, where given.

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

    _shown = "the two curves"

    @classmethod
    def from_estimator(
        cls,
        estimator: RiskCalibratedClassifier,
        X: Any = None,
        y: ArrayLike | None = None,
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
        ).plot(**kwargs)

    def _draw(self, ax: Axes, look: Mapping[str, Any]) -> None:
        updates = np.arange(len(self.loss_curve))
        error = {"color": BLUE, "label": self._label("training error"), **look}
        loss = {"color": RED, "label": self._label("training log loss"), **look}
        (self.error_line_,) = ax.plot(updates, self.error_curve, **error)
        self.kept_line_ = ax.axvline(
            self.best_iteration, color=GREY, linestyle="--", label="kept"
        )
        if self.test_error is not None:
            at = [self.best_iteration], [self.test_error]
            ax.plot(*at, "o", color=BLUE, label="error on other rows")
        ax.set(xlabel="updates", ylabel="error", ylim=(0, None))
        self.loss_ax_ = ax.twinx()
        (self.loss_line_,) = self.loss_ax_.plot(updates, self.loss_curve, **loss)
        self.loss_ax_.set(ylabel="log loss", ylim=(0, None))

    def _draw_legend(self, ax: Axes) -> None:
        lines = [*ax.get_lines(), self.loss_line_]
        # Beside the scale of the log loss.
        ax.legend(handles=lines, loc="upper left", bbox_to_anchor=(1.2, 1))

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

    Utilities may first rise, when hard rows are answered with two classes, and fall
    when sets grow too large; coverage never falls.

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

    _shown = "the curves"

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        imprecisions: ArrayLike | None = None,
        **kwargs: Any,
    ) -> Self:
        """Path of a fitted estimator on rows it has not seen.

        Parameters
        ----------
        estimator : fitted ImpreciseDiscriminantAnalysis or its CV variant
            With 0-1 costs and criterion "maximality".
        imprecisions : array-like, default=None
            Values of c >= 0; None is 0, 0.05, ..., 5.

        Returns
        -------
        ImprecisionPathDisplay
            With u80, u65, coverage, and the mean set size over the number of classes.
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
        measures = {"u80": u80_score, "u65": u65_score, "coverage": coverage_score}
        scores = {
            name: np.array([score(labels, Y, classes) for Y in sets])
            for name, score in measures.items()
        }
        sizes = [set_size(Y).mean() / len(classes) for Y in sets]
        scores["share of classes"] = np.array(sizes)
        chosen = getattr(estimator, "imprecision_", None)
        if chosen is None and np.ndim(estimator.imprecision) == 0:
            chosen = float(estimator.imprecision)  # else one a feature: no place on it
        return cls(grid, scores, chosen=chosen).plot(**kwargs)

    @classmethod
    def from_cross_validation(
        cls, estimator: ImpreciseDiscriminantAnalysisCV, **kwargs: Any
    ) -> Self:
        """Score over the folds of a fitted CV estimator, for the shrinkage chosen.

        Parameters
        ----------
        estimator : fitted ImpreciseDiscriminantAnalysisCV

        Returns
        -------
        ImprecisionPathDisplay
            Mean over the folds, with a band of one standard deviation.
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
        ).plot(**kwargs)

    def _draw(self, ax: Axes, look: Mapping[str, Any]) -> None:
        self.lines_ = []
        for what, score in self.scores.items():
            label = self._label(what)
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

    def frame(self) -> pa.Table:
        """One row for each imprecision, with scores, deviations and the one chosen."""
        chosen = np.zeros(len(self.imprecisions), dtype=bool)
        if self.chosen is not None:
            chosen[np.abs(self.imprecisions - self.chosen).argmin()] = True
        deviations = {f"{name} deviation": v for name, v in self.deviations.items()}
        columns = {"imprecision": self.imprecisions, **self.scores, **deviations}
        return pa.table({**columns, "chosen": chosen})


@dataclass(eq=False, repr=False)
class SecurityCurveDisplay(Display):
    """Security curve of a rejection game: soft, hard and uniform rejection.

    The soft curve is convex. Where it touches the straight line "reject every event
    alike", randomised rejection gains nothing.

    Parameters
    ----------
    curve : SecurityCurve
        Miss rates for rising false-alarm rates.
    known : array-like of shape (n_events,), default=None
        Law of one intruder: the curve of the best test against it is drawn too, and
        the gap to the soft curve is the most that not knowing the intruder can cost.

    Attributes
    ----------
    lines_ : list of matplotlib Line2D
        Soft, hard, uniform, and the known intruder's where there is one.

    Examples
    --------
    >>> from prudent import RejectionGame
    >>> from prudent.plots import SecurityCurveDisplay
    >>> game = RejectionGame(divergence_bound=3).fit([0.01, 0.04, 0.15, 0.3, 0.5])
    >>> display = SecurityCurveDisplay.from_estimator(
    ...     game, false_alarm_rates=[0.0, 0.5, 1.0]
    ... )
    >>> display.frame()["soft_miss_rate"].to_pylist()
    [1.0, 0.26892..., 0.0]
    """

    curve: SecurityCurve
    _: KW_ONLY
    known: ArrayLike | None = None

    _shown = "the curves"

    @classmethod
    def from_estimator(
        cls,
        estimator: RejectionGame,
        *,
        false_alarm_rates: ArrayLike | None = None,
        known: ArrayLike | None = None,
        **kwargs: Any,
    ) -> Self:
        """Solve a fitted game for many false-alarm rates.

        Parameters
        ----------
        estimator : fitted RejectionGame
            Its `false_alarm_rate` and `strategy` play no part.
        false_alarm_rates : array-like of shape (n_rates,), default=None
            In [0, 1]; None: 101 equal steps.
        known : array-like of shape (n_events,), default=None
            Law of an intruder to compare with.
        """
        if false_alarm_rates is None:
            false_alarm_rates = np.linspace(0, 1, 101)
        estimator, _ = last_step(
            estimator, has="security_curve", such_as="a RejectionGame"
        )
        curve = estimator.security_curve(np.sort(false_alarm_rates))
        return cls(curve, known=known).plot(**kwargs)

    def _draw(self, ax: Axes, look: Mapping[str, Any]) -> None:
        rates = self.curve.false_alarm_rates
        soft = {"color": BLUE, "label": self._label("soft"), **look}
        hard = {"color": RED, "label": self._label("hard"), **look}
        hard = {"drawstyle": "steps-post", **hard}
        self.lines_ = [
            *ax.plot(rates, self.curve.soft_miss_rates, **soft),
            *ax.plot(rates, self.curve.hard_miss_rates, **hard),
            *ax.plot(rates, 1 - rates, color=GREY, linestyle="--", label="uniform"),
        ]
        if self.known is not None:
            misses = self.curve.known_miss_rates(self.known)
            self.lines_ += ax.plot(
                rates, misses, color=GREEN, linestyle=":", label="known intruder"
            )
        ax.set(
            xlabel="false-alarm rate",
            ylabel="miss rate, worst intruder",
            xlim=(0, 1),
            ylim=(0, 1.02),
        )

    def frame(self) -> pa.Table:
        """One row for each false-alarm rate."""
        columns = {
            "false_alarm_rate": self.curve.false_alarm_rates,
            "soft_miss_rate": self.curve.soft_miss_rates,
            "hard_miss_rate": self.curve.hard_miss_rates,
        }
        if self.known is not None:
            columns["known_miss_rate"] = self.curve.known_miss_rates(self.known)
        return pa.table(columns)


@dataclass(eq=False, repr=False, kw_only=True)
class MinimaxGeometryDisplay(Display):
    """The ellipsoids of two classes, grown until they touch, and their plane.

    The plane of a linear minimax classifier runs through the point where the
    ellipsoids of `kappa_` standard deviations touch. With two features they are drawn
    as they are. With more, they are projected along the plane on its normal and on
    the direction of largest spread within it; the shadows still touch on the line.

    Parameters
    ----------
    labels : tuple of str
        The two classes.
    outlines : ndarray of shape (2, n_points, 2)
        Outline of each ellipsoid, or of its shadow.
    line : ndarray of shape (2, 2)
        Two points of the plane.
    touching : ndarray of shape (2,)
        Where the ellipsoids touch.
    axis_names : tuple of str
        What the two coordinates are.
    points : list of ndarray of shape (n_rows, 2)
        Rows of each class; empty for none.
    mean_outlines : ndarray of shape (2, n_points, 2)
        Outline of the set in which each class mean is known, nu of the kappa + nu
        standard deviations; of no size without a `mean_radius`.

    Attributes
    ----------
    lines_ : list of matplotlib Line2D
        The two outlines, then the plane.

    Examples
    --------
    >>> from prudent import MinimaxProbabilityClassifier
    >>> from prudent.plots import MinimaxGeometryDisplay
    >>> model = MinimaxProbabilityClassifier.from_moments(
    ...     [[0, 0], [4, 0]], [[[1, 0], [0, 1]], [[1, 0], [0, 4]]], [50, 50]
    ... )
    >>> MinimaxGeometryDisplay.from_estimator(model).touching.tolist()
    [2.0, 0.0]
    """

    labels: tuple[str, str]
    outlines: FloatArray
    line: FloatArray
    touching: FloatArray
    axis_names: tuple[str, str]
    points: list[FloatArray]
    mean_outlines: FloatArray

    _shown = "the two outlines"

    @classmethod
    def from_estimator(
        cls,
        estimator: MinimaxProbabilityClassifier,
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        **kwargs: Any,
    ) -> Self:
        """Take the geometry from a fitted linear classifier of two classes.

        Parameters
        ----------
        estimator : fitted MinimaxProbabilityClassifier
            Linear, two classes, at least two features.
        X : array-like of shape (n_samples, n_features), default=None
            Rows to show.
        y : array-like of shape (n_samples,), default=None
            Their labels.

        Raises
        ------
        TypeError
            If `estimator` is of another sort.
        ValueError
            If there is no such picture: another number of classes, one feature, a
            kernel, or ellipsoids of no size; or if rows have no labels.
        """
        estimator, X = last_step(
            estimator,
            X,
            has="class_worst_case_error_",
            such_as="a MinimaxProbabilityClassifier",
        )
        if not hasattr(estimator, "coef_") or estimator.coef_.shape[0] != 1:
            raise ValueError(
                "the geometry is that of a linear fit of two classes; use "
                "kernel='linear' and two classes."
            )
        normal = estimator.coef_[0]
        if len(normal) < 2:
            raise ValueError("the geometry needs at least 2 features, got 1.")
        means = estimator.means_
        offset = -float(estimator.intercept_[0])
        covariances = estimator.covariances_ + estimator.covariance_radius_[
            :, None, None
        ] * np.eye(len(normal))
        deviations = np.sqrt(np.einsum("i,kij,j->k", normal, covariances, normal))
        ahead = np.array([-1.0, 1.0]) * (means @ normal - offset)
        if not ((ahead > 0) & (deviations > 0)).all():
            raise ValueError(
                "the ellipsoids have no size: each class must vary along the normal "
                "and have its mean on its own side of the plane."
            )
        radii = ahead / deviations  # (kappa + nu) sqrt(gamma) of each class
        view, names = _view(estimator, normal, covariances)
        known = np.sqrt(estimator.covariance_factor_) * estimator.mean_radius_
        inner, outlines = (
            [
                view @ m + size * _circle() @ _root(view @ S @ view.T).T
                for m, S, size in zip(means, covariances, sizes, strict=True)
            ]
            for sizes in (known, radii)
        )
        touching = means[1] - radii[1] / deviations[1] * (covariances[1] @ normal)
        return cls(
            labels=(str(estimator.classes_[0]), str(estimator.classes_[1])),
            outlines=np.stack(outlines),
            line=_line(view, normal, touching, np.concatenate(outlines)),
            touching=view @ touching,
            axis_names=names,
            points=_points(view, estimator.classes_, X, y),
            mean_outlines=np.stack(inner),
        ).plot(**kwargs)

    def _draw(self, ax: Axes, look: Mapping[str, Any]) -> None:
        colours = (BLUE, RED)
        for rows, colour in zip(self.points, colours, strict=False):
            ax.scatter(rows[:, 0], rows[:, 1], 6, colour, alpha=0.4, linewidths=0)
        self.lines_ = []
        for outline, label, colour in zip(
            self.outlines, self.labels, colours, strict=True
        ):
            line = {"color": colour, "label": self._label(label), **look}
            self.lines_ += ax.plot(*outline.T, **line)
        for outline, colour in zip(self.mean_outlines, colours, strict=True):
            if not (outline == outline[0]).all():
                ax.plot(*outline.T, color=colour, linestyle="dashed", linewidth=1)
        self.lines_ += ax.plot(*self.line.T, color="black", label="plane")
        ax.plot(*self.touching, marker="o", color="black", markersize=4)
        ax.set(xlabel=self.axis_names[0], ylabel=self.axis_names[1])

    def frame(self) -> pa.Table:
        """Outline of each class: columns class, and one for each axis."""
        points = self.outlines.reshape(-1, 2)
        return pa.table(
            {
                "class": np.repeat(self.labels, self.outlines.shape[1]),
                self.axis_names[0]: points[:, 0],
                self.axis_names[1]: points[:, 1],
            }
        )


def _circle() -> FloatArray:
    angles = np.linspace(0, 2 * math.pi, N_OUTLINE)
    return np.column_stack([np.cos(angles), np.sin(angles)])


def _root(S: FloatArray) -> FloatArray:
    values, vectors = np.linalg.eigh(S)
    return vectors * np.sqrt(np.maximum(values, 0.0))


def _view(
    estimator: Any, normal: FloatArray, covariances: FloatArray
) -> tuple[FloatArray, tuple[str, str]]:
    """Rows of the projection on the drawing, and the names of its axes."""
    if len(normal) == 2:
        names = getattr(estimator, "feature_names_in_", ("feature 0", "feature 1"))
        return np.eye(2), (str(names[0]), str(names[1]))
    unit = normal / np.linalg.norm(normal)
    along = np.eye(len(normal)) - np.outer(unit, unit)
    within = along @ covariances.sum(axis=0) @ along
    widest = np.linalg.eigh(within)[1][:, -1]
    return np.stack([normal, widest]), ("score along the normal", "widest direction")


def _line(
    view: FloatArray, normal: FloatArray, touching: FloatArray, drawn: FloatArray
) -> FloatArray:
    """Part of the plane that spans the drawing, through the touching point."""
    across = np.array([-normal[1], normal[0]]) if len(normal) == 2 else np.array([0, 1])
    across = across / np.linalg.norm(across)
    origin = view @ touching
    reach = (drawn - origin) @ across
    return origin + np.outer([reach.min(), reach.max()], across)


def _points(
    view: FloatArray, classes: NDArray[Any], X: ArrayLike | None, y: ArrayLike | None
) -> list[FloatArray]:
    if X is None and y is None:
        return []
    if X is None or y is None:
        missing = "y" if y is None else "X"
        raise ValueError(f"rows are shown by class: `{missing}` is missing.")
    rows, labels = np.asarray(X, dtype=np.float64), np.asarray(y)
    check_consistent_length(rows, labels)
    return [rows[labels == label] @ view.T for label in classes]
