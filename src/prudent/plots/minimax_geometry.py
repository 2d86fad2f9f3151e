"""Why a minimax plane is where it is: two ellipsoids that touch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa
from matplotlib.axes import Axes
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_consistent_length

from prudent.core.types import FloatArray
from prudent.minimax import MinimaxProbabilityClassifier
from prudent.plots.display import BLUE, RED, Display, last_step, legend_beside

COLOURS = (BLUE, RED)
N_OUTLINE = 181


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

    @classmethod
    def from_estimator(
        cls,
        estimator: MinimaxProbabilityClassifier,
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        *,
        ax: Axes | None = None,
        name: str | None = None,
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
        ax : matplotlib Axes, default=None
            Where to draw; None: on new axes.
        name : str, default=None
            What the legend calls it.
        **kwargs
            Of matplotlib, for the two outlines.

        Returns
        -------
        MinimaxGeometryDisplay

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
        ).plot(ax, name=name, **kwargs)

    def _draw(self, ax: Axes, name: str | None, look: Mapping[str, Any]) -> None:
        for rows, colour in zip(self.points, COLOURS, strict=False):
            ax.scatter(rows[:, 0], rows[:, 1], 6, colour, alpha=0.4, linewidths=0)
        prefix = "" if name is None else f"{name}: "
        self.lines_ = [
            ax.plot(
                *outline.T, **{"color": colour, "label": f"{prefix}{label}", **look}
            )[0]
            for outline, label, colour in zip(
                self.outlines, self.labels, COLOURS, strict=True
            )
        ]
        for outline, colour in zip(self.mean_outlines, COLOURS, strict=True):
            if not (outline == outline[0]).all():
                ax.plot(*outline.T, color=colour, linestyle="dashed", linewidth=1)
        self.lines_ += ax.plot(*self.line.T, color="black", label="plane")
        ax.plot(*self.touching, marker="o", color="black", markersize=4)
        ax.set(xlabel=self.axis_names[0], ylabel=self.axis_names[1])
        legend_beside(ax)

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
