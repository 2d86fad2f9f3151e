"""Conformal prediction on blocks: learn from a sample, rank by all held-out rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import unique_labels

from prudent.conformal import ConformalClassifier, ConformalDetector
from prudent.conformal.inputs import check_method, forget_fit
from prudent.conformal.ranking import choose_method
from prudent.core.classes import check_two_classes
from prudent.core.rows import HeldOut, hold_out
from prudent.dask.chunks import Block, Chunks
from prudent.dask.split import NumberedRows


def fit_conformal_classifier(classifier: ConformalClassifier, chunks: Chunks) -> None:
    """Fit method="split" in three passes: labels, a sample, scores.

    The classifier learns from at most `MAX_FIT_ROWS` rows that are not held out (a
    frozen one from none); the scores of all held-out rows rank.
    """
    rng = _begin(classifier, chunks)
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
    split, sample = _split(classifier, rows, rng)
    classifier._condition = classifier.condition
    _calibrate(classifier, rows, split, sample, rng)


def fit_conformal_detector(detector: ConformalDetector, chunks: Chunks) -> None:
    """Fit method="split" in three passes: row counts, a sample, scores."""
    rng = _begin(detector, chunks)
    rows = NumberedRows(chunks, [n for n, _ in chunks.map(_head)])
    detector.n_rows_, detector.method_ = rows.n_rows, "split"
    check_method(detector, "split", None)
    split, sample = _split(detector, rows, rng)
    _calibrate(detector, rows, split, sample, rng)


def _begin(estimator: Any, chunks: Chunks) -> np.random.RandomState:
    estimator._validate_params()
    if estimator.method not in ("auto", "split"):
        raise TypeError(
            f"method={estimator.method!r} needs all rows in one place; use 'split' on "
            "dask, or fit on a sample."
        )
    forget_fit(estimator)
    estimator.n_features_in_ = chunks.n_features
    return check_random_state(estimator.random_state)


def _calibrate(
    estimator: Any,
    rows: NumberedRows,
    split: HeldOut,
    sample: tuple[Any, Any],
    rng: np.random.RandomState,
) -> None:
    """Fit to a sample, and find the rule by the scores of all held-out rows."""
    estimator._grouped = False
    estimator._fit_part(*sample, rng)
    estimator._calibrate(rows.ask(split.held_out, estimator._scores), split)
    constant = getattr(estimator.estimator_, "constant_features_", ())
    estimator.constant_features_ = np.array(constant, dtype=np.intp)
    estimator._key = rng.bytes(32)


def _split(
    estimator: Any, rows: NumberedRows, rng: np.random.RandomState
) -> tuple[HeldOut, tuple[Any, Any]]:
    """Held-out rows, and a sample of the others with its labels (frozen: none)."""
    if isinstance(estimator.estimator, FrozenEstimator):
        everything = np.arange(rows.n_rows)
        return HeldOut(everything[:0], everything), (None, None)
    split = hold_out(rows.n_rows, estimator.calibration_size, rng)
    return split, rows.sample(split.fit)


def _head(block: Block) -> tuple[int, NDArray[Any] | None]:
    """Rows of a block and their labels."""
    X, y = block
    return len(X), None if y is None else np.unique(y)
