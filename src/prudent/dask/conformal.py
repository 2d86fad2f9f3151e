"""Conformal prediction on blocks: learn from a sample, rank by all held-out rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.multiclass import unique_labels

from prudent.conformal import ConformalClassifier, ConformalDetector
from prudent.conformal.held_out import OrdinaryScores
from prudent.conformal.ranking import (
    HeldOutRows,
    check_method,
    choose_method,
    ranking_of,
    split_scores,
)
from prudent.core.classes import check_two_classes
from prudent.core.holdout import held_out_count
from prudent.core.types import BoolArray, FloatArray
from prudent.dask.chunks import Block, Chunks
from prudent.dask.detectors import MAX_FIT_ROWS
from prudent.dask.split import Split

FIRST_ATTRIBUTES = ("estimator_", "estimators_", "n_calibration_")


def fit_conformal_classifier(classifier: ConformalClassifier, chunks: Chunks) -> None:
    """Fit method="split" in three passes: labels, a sample, scores.

    The classifier learns from at most `MAX_FIT_ROWS` rows that are not held out (a
    frozen one from none); the scores of all held-out rows rank.

    Raises
    ------
    TypeError
        For another method, which needs all rows in one place.
    """
    rng = _begin(classifier, chunks)
    heads = chunks.map(_head)
    labels = [head[1] for head in heads if head[0]]
    if not labels:
        raise ValueError("X has no row: every block is empty.")
    unique_labels(*labels)  # refuses words and numbers together
    classifier.classes_ = np.unique(np.concatenate(labels))
    check_two_classes(classifier.classes_)
    rows = _Drawn(classifier, chunks, [n for n, _ in heads], rng)
    classifier.n_rows_, classifier.method_ = rows.n_rows, "split"
    choose_method(classifier, len(classifier.classes_), None)
    scores = split_scores(classifier, *rows.sample())
    found = [
        part
        for part in rows.ask(HeldOutRows.of, scores, classifier.condition)
        if part is not None
    ]
    classifier._take_split(ranking_of(classifier, scores, HeldOutRows.joined(found)))
    _end(classifier, rng)
    classifier._promise()


def fit_conformal_detector(detector: ConformalDetector, chunks: Chunks) -> None:
    """Fit method="split" in three passes: row counts, a sample, scores."""
    rng = _begin(detector, chunks)
    rows = _Drawn(detector, chunks, [n for n, _ in chunks.map(_head)], rng)
    detector.n_rows_, detector.method_ = rows.n_rows, "split"
    detector._by_groups = False
    check_method(detector, "split", None)
    scores = detector._split_scores(rows.sample()[0])
    found = rows.ask(_rank, scores)
    detector._take_split(scores, np.concatenate([x for x in found if x is not None]))
    _end(detector, rng)
    detector._set_rate()


def _begin(estimator: Any, chunks: Chunks) -> np.random.RandomState:
    estimator._validate_params()
    if estimator.method not in ("auto", "split"):
        raise TypeError(
            f"method={estimator.method!r} needs all rows in one place; use 'split' on "
            "dask, or fit on a sample."
        )
    for name in FIRST_ATTRIBUTES:
        vars(estimator).pop(name, None)
    estimator.n_features_in_ = chunks.n_features
    return check_random_state(estimator.random_state)


def _end(estimator: Any, rng: np.random.RandomState) -> None:
    constant = getattr(estimator.estimator_, "constant_features_", ())
    estimator.constant_features_ = np.array(constant, dtype=np.intp)
    estimator._key = rng.bytes(32)


class _Drawn:
    """Blocks of which some rows are a sample to learn from and some are held out."""

    def __init__(
        self,
        estimator: Any,
        chunks: Chunks,
        sizes: Sequence[int],
        rng: np.random.RandomState,
    ) -> None:
        *self._starts, self.n_rows = np.cumsum([0, *sizes]).tolist()
        self._chunks = chunks
        self._frozen = isinstance(estimator.estimator, FrozenEstimator)
        if self.n_rows < 2:
            raise ValueError(
                f"found {self.n_rows} sample(s) in all blocks: at least 2 are needed, "
                "one to learn from and one to hold out."
            )
        n_held_out = held_out_count(self.n_rows, estimator.calibration_size)
        if self._frozen:
            n_held_out = self.n_rows
        n_sampled = min(MAX_FIT_ROWS, self.n_rows - n_held_out)
        self._split = Split.draw(rng, self.n_rows, n_held_out, n_sampled)

    def sample(self) -> tuple[Any, Any]:
        """Rows to learn from and their labels, here; None for a frozen model."""
        if self._frozen:
            return None, None
        parts = self._chunks.map(_taken, self._split, each=self._starts)
        rows, labels = zip(*(part for part in parts if len(part[0])), strict=True)
        if hasattr(rows[0], "columns"):
            import pandas

            X: Any = pandas.concat(rows)
        else:
            X = np.concatenate(rows)
        return X, None if labels[0] is None else np.concatenate(labels)

    def ask(self, question: Any, *arguments: Any) -> list[Any]:
        """`question(X, y, *arguments)` of the held-out rows of each block."""
        return self._chunks.map(
            _asked, self._split, question, arguments, each=self._starts
        )


def _head(block: Block) -> tuple[int, NDArray[Any] | None]:
    """Rows of a block and their labels."""
    X, y = block
    return len(X), None if y is None else np.unique(y)


def _taken(block: Block, split: Split, start: int) -> Block:
    return _rows_of(block, split.sampled(start, len(block[0])))


def _asked(
    block: Block, split: Split, question: Any, arguments: tuple[Any, ...], start: int
) -> Any:
    X, y = _rows_of(block, split.held_out(start, len(block[0])))
    return question(X, y, *arguments) if len(X) else None


def _rows_of(block: Block, chosen: BoolArray) -> Block:
    X, y = block
    return _safe_indexing(X, np.flatnonzero(chosen)), None if y is None else y[chosen]


def _rank(X: Any, y: None, scores: OrdinaryScores) -> FloatArray:
    return scores.of(X)
