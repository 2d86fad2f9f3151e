"""Training loss and error along a calibration, with the iterate that was kept."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from prudent.calibration import RiskCalibratedClassifier
from prudent.core.types import FloatArray
from prudent.plots.display import BLUE, GREY, RED, Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
    ) -> Self:
        """Path of a fitted estimator.

        Parameters
        ----------
        estimator : fitted RiskCalibratedClassifier
        X : array-like of shape (n_samples, n_features), default=None
            Rows not used in the fit.
        y : array-like of shape (n_samples,), default=None
            Their labels.

        Returns
        -------
        CalibrationPathDisplay
        """
        return cls(
            estimator.loss_curve_,
            estimator.error_curve_,
            estimator.best_iteration_,
            test_error=None if X is None else 1.0 - float(estimator.score(X, y)),
        )

    def _draw(self, ax: Axes) -> None:
        updates = np.arange(len(self.loss_curve))
        (self.error_line_,) = ax.plot(
            updates, self.error_curve, color=BLUE, label="training error"
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
            updates, self.loss_curve, color=RED, label="training log loss"
        )
        loss_ax.set(ylabel="log loss", ylim=(0, None))
        lines = [*ax.get_lines(), self.loss_line_]
        ax.legend(handles=lines, loc="upper right")
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
