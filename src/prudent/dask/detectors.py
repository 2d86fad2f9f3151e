"""The detectors on blocks: count the rows, learn from some, cut by the others."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array, check_random_state

from prudent.adversarial import LowDensityRejector
from prudent.adversarial.density.detector import check_settings
from prudent.core.holdout import held_out_count
from prudent.core.moments import ClassMoments
from prudent.core.types import BoolArray, FloatArray
from prudent.dask.chunks import Block, Chunks, block_moments
from prudent.dask.split import NumberedRows, Split
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
    n_held_out = held_out_count(rows.n_rows, detector.calibration_size)
    split = rows.split(rng, n_held_out)
    sample = _answers(rows, split.sampled, np.asarray)
    detector.n_features_in_ = chunks.n_features
    detector._grouped = False
    detector._learn(sample, partial(_answers, rows, split.held_out), rng)


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
    options = detector._moment_options()
    if detector.threshold == "distribution_free":
        reduced = chunks.reduce(
            _moments, ClassMoments.reduce, chunks.n_features, options
        )
        detector.fit_moments(reduced)
        return
    rows = _numbered(chunks)
    n_held_out = held_out_count(rows.n_rows, detector.calibration_size)
    detector._check_learnable(rows.n_rows - n_held_out, rows.n_rows)
    rng = check_random_state(detector.random_state)
    split = Split.draw(rng, rows.n_rows, n_held_out, 0)
    moments = chunks.reduce(
        _moments_of_fitted,
        ClassMoments.reduce,
        split,
        chunks.n_features,
        options,
        each=rows.starts,
    )
    ask = partial(_answers, rows, split.held_out)
    detector._fit_from(moments, ask_held_out=ask)


def _numbered(chunks: Chunks) -> NumberedRows:
    """Check and count the rows of every block."""
    return NumberedRows.of(chunks, chunks.map(_checked_size))


def _answers(
    rows: NumberedRows,
    choose: Callable[[int, int], BoolArray],
    question: Callable[[FloatArray], NDArray[Any]],
) -> NDArray[Any]:
    """`question(rows)` of the chosen rows, in row order: only answers travel."""
    return np.concatenate(rows.ask(choose, _answer, question))


def _answer(
    X: NDArray[Any], y: Any, question: Callable[[FloatArray], NDArray[Any]]
) -> NDArray[Any]:
    return question(X.astype(np.float64))


def _checked_size(block: Block) -> int:
    return len(check_array(block[0], dtype=np.float64, ensure_min_samples=0))


def _moments(block: Block, n_features: int, options: dict[str, Any]) -> ClassMoments:
    return block_moments((block[0], None), n_features, options)


def _moments_of_fitted(
    block: Block, split: Split, n_features: int, options: dict[str, Any], start: int
) -> ClassMoments:
    X, _ = block
    fitted = X[~split.held_out(start, len(X))]
    return _moments((fitted, None), n_features, options)
