"""The detectors on blocks: count the rows, learn from some, cut by the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array, check_random_state

from prudent.adversarial import LowDensityRejector
from prudent.adversarial.density.detector import check_settings
from prudent.core.holdout import held_out_count
from prudent.core.moments import ClassMoments
from prudent.core.types import FloatArray
from prudent.dask.chunks import Block, Chunks
from prudent.dask.split import Split
from prudent.estimator_tools import is_covariance_estimator
from prudent.minimax import MinimaxOutlierDetector

#: Rows that the classifier of `LowDensityRejector` is trained on, at most: they must
#: fit one machine. The false-alarm rate does not depend on it.
MAX_FIT_ROWS = 100_000


def fit_rejector(detector: LowDensityRejector, chunks: Chunks) -> None:
    """Fit in three passes: row counts, a sample, calibration scores.

    The density is learnt from at most `MAX_FIT_ROWS` rows that are not held out; the
    cut is the order statistic of the scores of all held-out rows.
    """
    detector._validate_params()
    check_settings(detector)
    rows = _NumberedRows.count(chunks)
    rng = check_random_state(detector.random_state)
    n_held_out = held_out_count(rows.n_rows, detector.calibration_size)
    n_sampled = min(MAX_FIT_ROWS, rows.n_rows - n_held_out)
    split = Split.draw(rng, rows.n_rows, n_held_out, n_sampled)
    sample = rows.ask(split.sampled, np.asarray)
    detector.n_features_in_ = chunks.n_features
    detector._grouped = False
    detector._learn(sample, partial(rows.ask, split.held_out), rng)


def fit_minimax_detector(detector: MinimaxOutlierDetector, chunks: Chunks) -> None:
    """Fit in one pass for moments, or in three with a calibrated threshold.

    Raises
    ------
    TypeError
        For a kernel or a covariance estimator, which need all rows at once.
    """
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
        moments = chunks.reduce(_all_moments, ClassMoments.reduce, options)
        detector.fit_moments(moments)
        return
    rows = _NumberedRows.count(chunks)
    n_held_out = held_out_count(rows.n_rows, detector.calibration_size)
    detector._check_learnable(rows.n_rows - n_held_out, rows.n_rows)
    rng = check_random_state(detector.random_state)
    split = Split.draw(rng, rows.n_rows, n_held_out, 0)
    moments = rows.learn(split, **options)
    detector._fit_from(moments, ask_held_out=partial(rows.ask, split.held_out))


@dataclass(frozen=True, slots=True, eq=False)
class _NumberedRows:
    """Blocks of finite rows, with the position of the first row of each."""

    chunks: Chunks
    starts: Sequence[int]
    n_rows: int

    @classmethod
    def count(cls, chunks: Chunks) -> _NumberedRows:
        """Check and count the rows of every block."""
        *starts, n_rows = np.cumsum([0, *chunks.map(_checked_size)]).tolist()
        if n_rows < 2:
            raise ValueError(
                f"found {n_rows} sample(s) in all blocks: at least 2 are needed, one "
                "to learn from and one to hold out."
            )
        return cls(chunks, starts, n_rows)

    def learn(self, split: Split, **options: Any) -> ClassMoments:
        """Moments of all rows that are not held out."""
        moments: ClassMoments = self.chunks.reduce(
            _moments_of_fitted, ClassMoments.reduce, split, options, each=self.starts
        )
        return moments

    def ask(
        self,
        choose: Callable[[int, int], NDArray[np.bool_]],
        question: Callable[[FloatArray], NDArray[Any]],
    ) -> NDArray[Any]:
        """`question(rows)` of the chosen rows, in row order: only answers travel."""
        answers = self.chunks.map(_answers, choose, question, each=self.starts)
        return np.concatenate([answer for answer in answers if answer is not None])


def _checked_size(block: Block) -> int:
    return len(check_array(block[0], dtype=np.float64, ensure_min_samples=0))


def _all_moments(block: Block, options: dict[str, Any]) -> ClassMoments:
    """Moments of one class; labels play no role for a detector."""
    X, _ = block
    if len(X) == 0:
        return ClassMoments.empty([0], X.shape[1], **options)
    return ClassMoments.from_arrays(X, np.zeros(len(X), dtype=np.intp), **options)


def _moments_of_fitted(
    block: Block, split: Split, options: dict[str, Any], start: int
) -> ClassMoments:
    X, _ = block
    return _all_moments((X[~split.held_out(start, len(X))], None), options)


def _answers(
    block: Block,
    choose: Callable[[int, int], NDArray[np.bool_]],
    question: Callable[[FloatArray], NDArray[Any]],
    start: int,
) -> NDArray[Any] | None:
    X, _ = block
    rows = X[choose(start, len(X))].astype(np.float64)
    return question(rows) if len(rows) else None
