"""`fit`: choose how an estimator learns from blocks of rows."""

from __future__ import annotations

from typing import Any

from prudent.adversarial import LowDensityRejector
from prudent.calibration import RiskCalibratedClassifier
from prudent.conformal import ConformalClassifier, ConformalDetector
from prudent.dask.calibration import fit_calibration, needs_frames
from prudent.dask.chunks import Chunks
from prudent.dask.held_out import (
    fit_conformal_classifier,
    fit_conformal_detector,
    fit_minimax_detector,
    fit_rejector,
)
from prudent.estimator_tools import MomentFitMixin, is_covariance_estimator
from prudent.minimax import MinimaxOutlierDetector


def fit(
    estimator: Any, X: Any, y: Any = None, *, target: Any = None, client: Any = None
) -> Any:
    """Fit a plain estimator on a dask collection.

    Parameters
    ----------
    estimator : estimator of prudent
        Fitted in place. What it learns from moments takes one pass over the rows,
        what needs the rows themselves takes more: persist what is slow to read.
    X : dask array or data frame of shape (n_samples, n_features)
        Rows; a data frame may hold the labels in the column `target`.
    y : array, dask array or series of shape (n_samples,), default=None
        Labels, in blocks that match those of `X`.
    target : str, default=None
        Column of a data frame that holds the labels.
    client : distributed.Client, default=None
        Where to compute; None takes the open client, else dask's scheduler.

    Returns
    -------
    estimator : the same estimator, fitted
        It holds no dask object: it predicts, pickles and saves without dask.

    Raises
    ------
    TypeError
        If `X` is no dask collection or the estimator cannot learn from blocks.
    ValueError
        As `estimator.fit`.

    Notes
    -----
    Blocks are summed in a binary tree over their position, so the result equals
    `ClassMoments.reduce` over the same blocks bit for bit, on any number of
    workers and after the loss of one. Use it for size: on one machine the moments
    of a block cost about as much as scheduling it.

    `RiskCalibratedClassifier` passes over the rows for every evaluation: its blocks
    are loaded once and stay in the memory of the workers, or without a client of
    this process. A pass is one task per worker; a model travels there and sums come
    back, which are added in the order of the blocks.

    The rows held out are those of `fit`, whose results are the same to rounding. Three
    things differ. The folds of a calibration follow from a hash of each row, so that
    neither order nor blocks matter. `LowDensityRejector` and conformal prediction by
    "split" (the only method on blocks) learn from 100 000 of the other rows at most,
    which the promise does not depend on. Bootstrap radii draw each row a Poisson
    number of times, so that a resample has n rows up to sqrt(n).

    Examples
    --------
    >>> import dask.array as da
    >>> import prudent
    >>> from prudent.dask import fit
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = fit(prudent.MinimaxProbabilityClassifier(), da.from_array(X), y)
    >>> round(model.score(X, y), 3) > 0.95
    True
    """
    is_conformal = isinstance(estimator, ConformalClassifier | ConformalDetector)
    # Only a wrapped estimator may know what to do with columns that are no numbers.
    as_frames = needs_frames(estimator) or (is_conformal and estimator.estimator)
    chunks = Chunks.of(X, y, target, client, as_frames=bool(as_frames))
    vars(estimator).pop("feature_names_in_", None)
    if isinstance(estimator, LowDensityRejector):
        fit_rejector(estimator, chunks)
    elif isinstance(estimator, MinimaxOutlierDetector):
        fit_minimax_detector(estimator, chunks)
    elif isinstance(estimator, ConformalDetector):
        fit_conformal_detector(estimator, chunks)
    elif y is None and target is None:
        raise ValueError(f"{estimator} needs labels: give `y` or `target`.")
    elif isinstance(estimator, ConformalClassifier):
        fit_conformal_classifier(estimator, chunks)
    elif hasattr(estimator, "fit_moments"):
        estimator.fit_moments(chunks.moments(**estimator._moment_options()))
    elif isinstance(estimator, MomentFitMixin) and estimator._learns_from_blocks:
        _fit_blocks(estimator, chunks)
    elif isinstance(estimator, RiskCalibratedClassifier):
        fit_calibration(estimator, chunks)
    else:
        raise TypeError(
            f"{estimator} cannot learn from blocks of rows; fit it on a sample, or "
            "choose settings that need moments only."
        )
    if chunks.feature_names is not None:
        estimator.feature_names_in_ = chunks.feature_names
    return estimator


def _fit_blocks(estimator: Any, chunks: Chunks) -> None:
    """Fit a family that asks its rows for sums, which blocks can answer."""
    estimator._validate_params()
    if is_covariance_estimator(estimator.covariance):
        raise TypeError(
            f"covariance={estimator.covariance!r} needs all rows of a class in one "
            "place; use a named rule such as 'oas', or a number."
        )
    moments = chunks.moments()
    estimator._fit_from(moments, rows=chunks.labelled(moments.classes))
