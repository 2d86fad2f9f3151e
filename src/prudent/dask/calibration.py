"""Calibration on blocks: one pass over the rows for each evaluation of the model."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import unique_labels

from prudent.calibration import RiskCalibratedClassifier
from prudent.calibration.learn import learn
from prudent.calibration.reading import Reader
from prudent.calibration.training import drawn_seed, settings_of, watching
from prudent.calibration.trials import Trial
from prudent.core.classes import check_two_classes
from prudent.core.holdout import hold_out
from prudent.core.rows import Block, Rows
from prudent.core.types import BoolArray, IntArray
from prudent.dask.chunks import Block as Chunk
from prudent.dask.chunks import Chunks
from prudent.dask.folds import Deal, dealt, least_draws, with_draws


def needs_frames(estimator: Any) -> bool:
    """Whether the types of a data frame's columns matter to the estimator."""
    return isinstance(estimator, RiskCalibratedClassifier) and (
        estimator.family in ("categorical", "mixed")
    )


def fit_calibration(estimator: RiskCalibratedClassifier, chunks: Chunks) -> None:
    """Calibrate on blocks that are loaded once and stay in memory."""
    _check_settings(estimator)
    watch = watching(estimator, None, None)
    reader, labelled, sizes, classes = _read(estimator, chunks)
    estimator.n_features_in_ = chunks.n_features
    estimator._reader = reader
    seed, folds, trials = drawn_seed(estimator), None, labelled.transform(Trial)
    if estimator.stopping == "holdout":
        trials = _hold_out(estimator, labelled, sizes, seed)
    elif estimator.stopping == "cv":
        folds = _folds(estimator, labelled, len(classes), seed)
    del labelled
    settings, names = settings_of(estimator, len(classes)), classes.tolist()
    learned = learn(
        trials, folds, settings=settings, classes=names, seed=seed, watch=watch
    )
    estimator._keep(learned, classes)


@dataclass(frozen=True, slots=True)
class _Head:
    """What the reading of all blocks needs to know about one of them."""

    reader: Reader
    classes: NDArray[Any]
    n_rows: int


def _check_settings(estimator: RiskCalibratedClassifier) -> None:
    estimator._validate_params()
    if estimator.batch_size is not None:
        raise TypeError(
            f"batch_size={estimator.batch_size} picks rows across blocks; leave it "
            "None on dask, where every step takes all rows."
        )
    if estimator.stopping == "cv" and not isinstance(estimator.cv, Integral | None):
        raise TypeError(
            f"cv={estimator.cv!r} splits rows by their position in one array; on dask "
            "give the number of folds."
        )


def _read(
    estimator: RiskCalibratedClassifier, chunks: Chunks
) -> tuple[Reader, Rows, IntArray, NDArray[Any]]:
    """Reader, labelled blocks (None without rows), their sizes, and the classes."""
    worker = RiskCalibratedClassifier(family=estimator.family)
    worker.n_features_in_ = chunks.n_features
    if chunks.feature_names is not None and needs_frames(estimator):
        worker.feature_names_in_ = chunks.feature_names
    blocks = chunks.resident()
    heads = blocks.map(_head, worker)
    found = [head for head in heads if head is not None]
    if not found:
        raise ValueError("X has no row: every block is empty.")
    labels = [head.classes for head in found]
    unique_labels(*labels)  # refuses words among numbers
    classes = np.unique(np.concatenate(labels))
    check_two_classes(classes)
    worker._reader = found[0].reader.merged([head.reader for head in found[1:]])
    labelled = blocks.transform(_labelled, worker, classes)
    sizes = np.array([0 if head is None else head.n_rows for head in heads])
    return worker._reader, labelled, sizes, classes


def _hold_out(
    estimator: RiskCalibratedClassifier, labelled: Rows, sizes: IntArray, seed: int
) -> Rows:
    """Trials with rows held out, and the levels that the others know."""
    chosen = np.zeros(sizes.sum(), dtype=bool)
    random = np.random.RandomState(seed)
    split = hold_out(len(chosen), estimator.validation_fraction, random)
    chosen[split.held_out] = True
    own = np.split(chosen, np.cumsum(sizes)[:-1])
    trials = labelled.transform(_held_apart, each=[np.packbits(block) for block in own])
    found = trials.map(Trial.seen_levels, estimator._reader.n_levels)
    seen = [np.any(of_blocks, axis=0) for of_blocks in zip(*found, strict=True)]
    estimator._reader = estimator._reader.restricted(seen)
    return trials.transform(Trial.recoded, seen) if seen else trials


def _folds(
    estimator: RiskCalibratedClassifier, labelled: Rows, n_classes: int, seed: int
) -> Iterator[Rows] | None:
    n_folds = 5 if estimator.cv is None else estimator.cv
    drawn = labelled.transform(with_draws, seed)
    deal = Deal.of(drawn.map(least_draws, n_classes, n_folds), n_folds)
    if deal.n_folds < 2:
        return None
    dealt_rows = drawn.transform(dealt, deal)
    return (dealt_rows.transform(_fold, k) for k in range(deal.n_folds))


# What happens to one block; an empty one becomes None.


def _head(chunk: Chunk, worker: RiskCalibratedClassifier) -> _Head | None:
    X, y = chunk
    if y is None or len(X) == 0:
        return None
    worker = copy(worker)
    _, labels, *_ = worker._read_training(X, y, None)
    return _Head(worker._reader, np.unique(labels), len(labels))


def _labelled(
    chunk: Chunk, worker: RiskCalibratedClassifier, classes: NDArray[Any]
) -> Block | None:
    X, y = chunk
    if y is None or len(X) == 0:
        return None
    rows, labels, *_ = worker._read_training(X, y, None, first=False)
    return Block(rows, np.searchsorted(classes, labels))


def _held_apart(block: Block | None, held_out: NDArray[np.uint8]) -> Trial:
    if block is None:
        return Trial(None)
    return _trial(block, np.unpackbits(held_out, count=len(block.codes)) == 1)


def _fold(dealt_rows: tuple[Block, IntArray] | None, k: int) -> Trial:
    if dealt_rows is None:
        return Trial(None)
    block, fold = dealt_rows
    return _trial(block, fold == k)


def _trial(block: Block, is_held_out: BoolArray) -> Trial:
    parts = (np.flatnonzero(chosen) for chosen in (~is_held_out, is_held_out))
    return Trial(*(block.taken(rows) if len(rows) else None for rows in parts))
