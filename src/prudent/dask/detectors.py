"""The detectors on blocks: count the rows, learn from some, cut by the others."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_array, check_random_state

from prudent.adversarial import LowDensityRejector
from prudent.adversarial.density.detector import check_settings
from prudent.core.moments import ClassMoments
from prudent.core.rows import hold_out
from prudent.dask.chunks import Block, Chunks, block_moments
from prudent.dask.split import Mask, NumberedRows, chosen, masks
from prudent.estimator_tools import is_covariance_estimator
from prudent.minimax import MinimaxOutlierDetector


def fit_rejector(detector: LowDensityRejector, chunks: Chunks) -> None:
    """Fit in three passes: row counts, a sample, calibration scores.

    The density is learnt from at most `MAX_FIT_ROWS` rows that are not held out; the
    cut is the order statistic of the scores of all held-out rows.
    """
    detector._validate_params()
    check_settings(detector)
    rows = _numbered(chunks)
    rng = check_random_state(detector.random_state)
    split = hold_out(rows.n_rows, detector.calibration_size, rng)
    sample, _ = rows.sample(split.fit)
    detector.n_features_in_ = chunks.n_features
    detector._grouped = False
    detector._fit_part(sample.astype(np.float64), None, rng)
    detector._calibrate(rows.ask(split.held_out, detector._scores), split)


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
