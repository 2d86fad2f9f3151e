"""Where in the plane a set-valued classifier decides and where it does not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_consistent_length, column_or_1d

from prudent.core.classes import discriminant_axes
from prudent.core.moments import ClassMoments
from prudent.core.types import BoolArray, FloatArray
from prudent.estimator_tools import predict_set
from prudent.plots.display import Display, legend_beside

#: Colour of the region where no class is left.
NO_CLASS = "0.35"


@dataclass(eq=False, repr=False)
class SetRegionDisplay(Display):
    """Regions of one class in colour; of several classes hatched; of none grey.

    With two features the plane is theirs. With more it is the plane through the
    mean of the rows along the first two discriminant axes: the rows are projected
    onto it, the classifier is asked on the plane itself.

    Parameters
    ----------
    grid : tuple of ndarray of shape (m,)
        Coordinates of the grid, first and second axis.
    sets : ndarray of bool, shape (m, m, n_classes)
        Set of classes at each point; the first index runs over the second axis.
    classes : ndarray of shape (n_classes,)
        Labels in the order of the last axis of `sets`.
    points : ndarray of shape (n, 2)
        Rows in the coordinates of the plane.
    labels : ndarray of shape (n,)
        Their labels.
    axis_names : tuple of str
        What the axes are.

    Attributes
    ----------
    regions_ : matplotlib QuadMesh
        Index of the class where one is left, `n_classes` where several are, and
        `n_classes` + 1 where the set is empty.
    hatches_ : matplotlib QuadContourSet or None
        The undecided regions, None where there are none.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from prudent import OptimisticScoreClassifier
    >>> from prudent.plots import SetRegionDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> model = OptimisticScoreClassifier(radius_scale=0.1).fit(X, y)
    >>> display = SetRegionDisplay.from_estimator(model, X, y, grid_size=20)
    >>> display.frame().column_names
    ['discriminant axis 1', 'discriminant axis 2', '0', '1', '2']
    """

    grid: tuple[FloatArray, FloatArray]
    sets: BoolArray
    classes: NDArray[Any]
    points: FloatArray
    labels: NDArray[Any]
    axis_names: tuple[str, str]

    _shown = "the points of the rows"

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        grid_size: int = 200,
        **kwargs: Any,
    ) -> Self:
        """Regions of a fitted estimator around some rows.

        Parameters
        ----------
        estimator : fitted estimator
            With `predict_set`, or a pipeline or search object around one.
        X : array-like or data frame of shape (n_samples, n_features)
            Rows to show, finite numbers, at least two features.
        grid_size : int, default=200
            Points of the grid along each axis.
        name : str, default=None
            Heads the legend.

        Raises
        ------
        TypeError
            If nothing inside the estimator has `predict_set`.
        ValueError
            If there are fewer than two features or two classes.
        """
        rows, labels = np.asarray(X, dtype=np.float64), column_or_1d(y)
        check_consistent_length(rows, labels)
        if rows.ndim != 2 or rows.shape[1] < 2:
            raise ValueError(
                f"regions need at least two features, got X of shape {rows.shape}."
            )
        origin, into, out, names = _plane(rows, labels, getattr(X, "columns", None))
        points = (rows - origin) @ into
        low, high = points.min(axis=0), points.max(axis=0)
        margin = 0.1 * (high - low)
        first, second = (
            np.linspace(low[j] - margin[j], high[j] + margin[j], grid_size)
            for j in (0, 1)
        )
        mesh = np.stack(np.meshgrid(first, second), axis=-1)
        on_plane: Any = origin + mesh.reshape(-1, 2) @ out
        if hasattr(X, "columns"):
            on_plane = type(X)(dict(zip(X.columns, on_plane.T, strict=True)))
        sets = predict_set(estimator, on_plane)
        return cls(
            (first, second),
            sets.reshape(grid_size, grid_size, -1),
            estimator.classes_,
            points,
            labels,
            names,
        ).plot(**kwargs)

    def _draw(self, ax: Axes, look: Mapping[str, Any]) -> None:
        n_classes = len(self.classes)
        colours = colormaps["tab10" if n_classes <= 10 else "tab20"](
            np.arange(n_classes) % 20
        )
        sizes = self.sets.sum(axis=-1)
        undecided, empty = sizes > 1, sizes == 0
        index = np.select(
            [undecided, empty], [n_classes, n_classes + 1], self.sets.argmax(axis=-1)
        )
        self.regions_ = ax.pcolormesh(
            *self.grid,
            index,
            cmap=ListedColormap([*(0.35 * colours + 0.65), "white", NO_CLASS]),
            vmin=-0.5,
            vmax=n_classes + 1.5,
            rasterized=True,
        )
        self.hatches_ = None
        if undecided.any():
            self.hatches_ = ax.contourf(
                *self.grid,
                undecided.astype(float),
                levels=[0.5, 1.5],
                colors="none",
                hatches=["///"],
            )
        for label, colour in zip(self.classes, colours, strict=True):
            chosen = self.labels == label
            style = {"color": colour, "markeredgecolor": "white", "markersize": 4}
            style |= {"marker": "o", "linestyle": "", "label": str(label), **look}
            ax.plot(*self.points[chosen].T, **style)
        if empty.any():
            style = {"color": NO_CLASS, "markeredgecolor": "black", "markersize": 8}
            ax.plot([], [], "s", label="no class", **style)
        ax.set(xlabel=self.axis_names[0], ylabel=self.axis_names[1])

    def _draw_legend(self, ax: Axes) -> None:
        heads = [] if self.name_ is None else [self.name_]
        heads += [] if self.hatches_ is None else ["hatched: undecided"]
        legend_beside(ax, title="\n".join(heads) or None)

    def frame(self) -> pa.Table:
        """One row for each grid point, with a truth value for each class."""
        first, second = np.meshgrid(*self.grid)
        columns: dict[str, NDArray[Any]] = dict(
            zip(self.axis_names, (first.ravel(), second.ravel()), strict=True)
        )
        for k, label in enumerate(self.classes):
            columns[str(label)] = self.sets[:, :, k].ravel()
        return pa.table(columns)


def _plane(
    X: FloatArray, y: NDArray[Any], columns: Any
) -> tuple[FloatArray, FloatArray, FloatArray, tuple[str, str]]:
    """The plane of the picture: coordinates z and rows x of it.

    z = (x - origin) @ into, and back x = origin + z @ out.

    Returns
    -------
    origin : ndarray of shape (d,)
    into : ndarray of shape (d, 2)
    out : ndarray of shape (2, d)
    names : tuple of str
        What the two coordinates are.
    """
    if X.shape[1] == 2:
        first, second = ("feature 0", "feature 1") if columns is None else columns
        return np.zeros(2), np.eye(2), np.eye(2), (str(first), str(second))
    into, out = discriminant_axes(ClassMoments.from_arrays(X, y))
    return X.mean(axis=0), into, out, ("discriminant axis 1", "discriminant axis 2")
