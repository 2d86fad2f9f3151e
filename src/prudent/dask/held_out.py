"""Fits with held-out rows on blocks: learn from a sample, cut by the other rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_array, check_random_state
from sklearn.utils.multiclass import unique_labels

from prudent.adversarial import LowDensityRejector
from prudent.adversarial.density.detector import check_settings
from prudent.conformal import ConformalClassifier, ConformalDetector
from prudent.conformal.inputs import check_method, forget_fit
from prudent.conformal.ranking import choose_method
from prudent.core.classes import check_two_classes
from prudent.core.moments import ClassMoments
from prudent.core.rows import HeldOut, hold_out
from prudent.dask.chunks import Block, Chunks, block_moments
from prudent.dask.split import Mask, NumberedRows, chosen, masks
from prudent.estimator_tools import is_covariance_estimator
from prudent.minimax import MinimaxOutlierDetector


def fit_conformal_classifier(classifier: ConformalClassifier, chunks: Chunks) -> None:
    """Fit method="split" in three passes: labels, a sample, scores.

    The classifier learns from at most `MAX_FIT_ROWS` rows that are not held out (a
    frozen one from none); the scores of all held-out rows rank.
    """
    _check_method(classifier)
    heads = chunks.map(_head)
    labels = [head[1] for head in heads if head[0]]
    if not labels:
        raise ValueError("X has no row: every block is empty.")
    unique_labels(*labels)  # refuses words and numbers together
    classifier.classes_ = np.unique(np.concatenate(labels))
    check_two_classes(classifier.classes_)
    rows = NumberedRows(chunks, [n for n, _ in heads])
    classifier.n_rows_, classifier.method_ = rows.n_rows, "split"
    choose_method(classifier, len(classifier.classes_), None)
    classifier._condition = classifier.condition
    _take_ranks(classifier, _fit_held_out(classifier, rows))


def fit_conformal_detector(detector: ConformalDetector, chunks: Chunks) -> None:
    """Fit method="split" in three passes: row counts, a sample, scores."""
    _check_method(detector)
    rows = NumberedRows(chunks, [n for n, _ in chunks.map(_head)])
    detector.n_rows_, detector.method_ = rows.n_rows, "split"
    check_method(detector, "split", None)
    _take_ranks(detector, _fit_held_out(detector, rows))


def fit_rejector(detector: LowDensityRejector, chunks: Chunks) -> None:
    """Fit in three passes: row counts, a sample, calibration scores.

    The density is learnt from at most `MAX_FIT_ROWS` rows that are not held out; the
    cut is the order statistic of the scores of all held-out rows.
    """
    detector._validate_params()
    check_settings(detector)
    _fit_held_out(detector, _numbered(chunks))


def fit_minimax_detector(detector: MinimaxOutlierDetector, chunks: Chunks) -> None:
    """Fit in one pass for moments, or in three with a calibrated threshold."""
    detector._validate_params()
    needed = None
    if is_covariance_estimator(detector.covariance):
        needed = f"covariance={detector.covariance!r}"
    if detector.kernel != "linear":
        needed = f"kernel={detector.kernel!r}"
    if needed is not None:
        raise TypeError(
            f"MinimaxOutlierDetector with {needed} needs all rows at once; use "
            "kernel='linear' and a named covariance, or fit it on a sample."
        )
    detector._check_settings()
    options = detector._moment_options()
    if detector.threshold == "distribution_free":
        detector.fit_moments(_moments(chunks, options, None))
        return
    rows = _numbered(chunks)
    rng = check_random_state(detector.random_state)
    split = hold_out(rows.n_rows, detector.calibration_size, rng)
    detector._check_learnable(len(split.fit), rows.n_rows)
    detector._grouped = False
    detector._fit_from(_moments(chunks, options, masks(split.fit, rows.sizes)))
    detector._calibrate(rows.ask(split.held_out, detector._scores), split)


def _fit_held_out(estimator: Any, rows: NumberedRows) -> np.random.RandomState:
    """Fit to a sample, and find the rule by the scores of all held-out rows."""
    rng = check_random_state(estimator.random_state)
    estimator.n_features_in_, estimator._grouped = rows.chunks.n_features, False
    is_conformal = isinstance(estimator, ConformalClassifier | ConformalDetector)
    if is_conformal and isinstance(estimator.estimator, FrozenEstimator):
        everything = np.arange(rows.n_rows)
        split = HeldOut(everything[:0], everything)
        estimator._fit_part(None, None, rng)
    else:
        split = hold_out(rows.n_rows, estimator.calibration_size, rng)
        estimator._fit_part(*rows.sample(split.fit), rng)
    estimator._calibrate(rows.ask(split.held_out, estimator._scores), split)
    return rng


def _check_method(estimator: Any) -> None:
    estimator._validate_params()
    if estimator.method not in ("auto", "split"):
        raise TypeError(
            f"method={estimator.method!r} needs all rows in one place; use 'split' on "
            "dask, or fit on a sample."
        )
    forget_fit(estimator)


def _take_ranks(estimator: Any, rng: np.random.RandomState) -> None:
    """Set what a conformal fit leaves besides its rule."""
    constant = getattr(estimator.estimator_, "constant_features_", ())
    estimator.constant_features_ = np.array(constant, dtype=np.intp)
    estimator._key = rng.bytes(32)


def _head(block: Block) -> tuple[int, NDArray[Any] | None]:
    """Rows of a block and their labels."""
    X, y = block
    return len(X), None if y is None else np.unique(y)


def _moments(
    chunks: Chunks, options: dict[str, Any], of_blocks: list[Mask] | None
) -> ClassMoments:
    """Moments of all rows, or of some of each block, whatever their labels."""
    moments: ClassMoments = chunks.reduce(
        _block_moments,
        ClassMoments.reduce,
        chunks.n_features,
        options,
        each=[None] * chunks.n_blocks if of_blocks is None else of_blocks,
    )
    return moments


def _numbered(chunks: Chunks) -> NumberedRows:
    """Check and count the rows of every block."""
    return NumberedRows(chunks, chunks.map(_checked_size))


def _checked_size(block: Block) -> int:
    return len(check_array(block[0], dtype=np.float64, ensure_min_samples=0))


def _block_moments(
    block: Block, n_features: int, options: dict[str, Any], mask: Mask | None
) -> ClassMoments:
    X, _ = block
    kept = X if mask is None else X[chosen(mask, len(X))]
    return block_moments((kept, None), n_features, options)
