"""Conformal prediction on blocks: learn from a sample, rank by all held-out rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import unique_labels

from prudent.conformal import ConformalClassifier, ConformalDetector
from prudent.conformal.held_out import HeldOutRows, OrdinaryScores
from prudent.conformal.inputs import check_method, forget_fit
from prudent.conformal.ranking import choose_method, ranking_of, split_scores
from prudent.core.classes import check_two_classes
from prudent.core.rows import HeldOut, hold_out
from prudent.core.types import FloatArray
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
    scores = split_scores(classifier, *sample)
    found = rows.ask(split.held_out, HeldOutRows.of, scores, classifier.condition)
    classifier._take_split(ranking_of(classifier, scores, HeldOutRows.joined(found)))
    _end(classifier, rng)
    classifier._promise()


def fit_conformal_detector(detector: ConformalDetector, chunks: Chunks) -> None:
    """Fit method="split" in three passes: row counts, a sample, scores."""
    rng = _begin(detector, chunks)
    rows = NumberedRows(chunks, [n for n, _ in chunks.map(_head)])
    detector.n_rows_, detector.method_ = rows.n_rows, "split"
    detector._by_groups = False
    check_method(detector, "split", None)
    split, (sample, _) = _split(detector, rows, rng)
    scores = detector._split_scores(sample)
    found = rows.ask(split.held_out, _rank, scores)
    detector._take_split(scores, np.concatenate(found))
    _end(detector, rng)
    detector._set_rate()


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


def _end(estimator: Any, rng: np.random.RandomState) -> None:
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


def _rank(X: Any, y: None, scores: OrdinaryScores) -> FloatArray:
    return scores.of(X)
