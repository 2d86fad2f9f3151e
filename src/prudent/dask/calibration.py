"""Calibration on blocks: one pass over the rows for each evaluation of the model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import unique_labels

from prudent.calibration import RiskCalibratedClassifier
from prudent.calibration.ascent import Trial
from prudent.calibration.categorical import Reader
from prudent.calibration.classifier import drawn_seed, settings_of, watching
from prudent.calibration.learn import learn
from prudent.core.classes import check_two_classes
from prudent.core.rows import Block, Rows, hold_out
from prudent.dask.chunks import Block as Chunk
from prudent.dask.chunks import Chunks
from prudent.dask.folds import Deal, Draws, least_draws, with_draws
from prudent.dask.split import Mask, chosen, masks


def needs_frames(estimator: Any) -> bool:
    """Whether the types of a data frame's columns matter to the estimator."""
    return isinstance(estimator, RiskCalibratedClassifier) and (
        estimator.family in ("categorical", "mixed")
    )


def fit_calibration(estimator: RiskCalibratedClassifier, chunks: Chunks) -> None:
    """Calibrate on blocks that are loaded once and stay in memory."""
    _check_settings(estimator)
    watch = watching(estimator, None, None)
    reader, trials, sizes, classes = _read(estimator, chunks)
    estimator.n_features_in_ = chunks.n_features
    estimator._reader = reader
    seed, folds = drawn_seed(estimator), None
    if estimator.stopping == "holdout":
        trials = _hold_out(estimator, trials, sizes, seed)
    elif estimator.stopping == "cv":
        folds = _folds(estimator, trials, len(classes), seed)
    settings, names = settings_of(estimator, len(classes)), classes.tolist()
    learned = learn(
        trials, folds, settings=settings, classes=names, seed=seed, watch=watch
    )
    estimator._keep(learned, classes)


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
) -> tuple[Reader, Rows, list[int], NDArray[Any]]:
    """Reader, blocks as trials, their sizes, and the classes."""
    worker = RiskCalibratedClassifier(family=estimator.family)
    worker.n_features_in_ = chunks.n_features
    if chunks.feature_names is not None and needs_frames(estimator):
        worker.feature_names_in_ = chunks.feature_names
    blocks = chunks.resident()
    heads = blocks.map(_head, worker)
    readers, labels = ([head[i] for head in heads if head] for i in (0, 1))
    if not labels:
        raise ValueError("X has no row: every block is empty.")
    unique_labels(*labels)  # refuses words among numbers
    classes = np.unique(np.concatenate(labels))
    check_two_classes(classes)
    worker._reader = readers[0].merged(readers[1:])
    sizes = [head[2] if head else 0 for head in heads]
    trials = blocks.transform(_trial, worker, classes)
    return worker._reader, trials, sizes, classes


def _hold_out(
    estimator: RiskCalibratedClassifier, trials: Rows, sizes: Sequence[int], seed: int
) -> Rows:
    """Trials with rows held out, and the levels that the others know."""
    random = np.random.RandomState(seed)
    split = hold_out(sum(sizes), estimator.validation_fraction, random)
    trials = trials.transform(_held_apart, each=masks(split.held_out, sizes))
    found = trials.map(Trial.seen_levels, estimator._reader.n_levels)
    seen = [np.any(of_blocks, axis=0) for of_blocks in zip(*found, strict=True)]
    estimator._reader = estimator._reader.restricted(seen)
    return trials.transform(Trial.recoded, seen) if seen else trials


def _folds(
    estimator: RiskCalibratedClassifier, trials: Rows, n_classes: int, seed: int
) -> Iterator[Rows] | None:
    n_folds = 5 if estimator.cv is None else estimator.cv
    drawn = trials.transform(with_draws, seed)
    deal = Deal.of(drawn.map(least_draws, n_classes, n_folds), n_folds)
    if deal.n_folds < 2:
        return None
    return (drawn.transform(_fold, deal, k) for k in range(deal.n_folds))


# What happens to one block.


def _head(
    chunk: Chunk, worker: RiskCalibratedClassifier
) -> tuple[Reader, NDArray[Any], int] | None:
    """What the reading of all blocks needs to know about one that has rows."""
    X, y = chunk
    if y is None or len(X) == 0:
        return None
    worker = copy(worker)
    _, labels, *_ = worker._read_training(X, y, None)
    return worker._reader, np.unique(labels), len(labels)


def _trial(
    chunk: Chunk, worker: RiskCalibratedClassifier, classes: NDArray[Any]
) -> Trial:
    X, y = chunk
    if y is None or len(X) == 0:
        return Trial(None)
    rows, labels, *_ = worker._read_training(X, y, None, first=False)
    return Trial(Block(rows, np.searchsorted(classes, labels)))


def _held_apart(trial: Trial, held_out: Mask) -> Trial:
    n_rows = 0 if trial.fitted is None else len(trial.fitted)
    return trial.apart(chosen(held_out, n_rows))


def _fold(drawn: tuple[Trial, Draws], deal: Deal, k: int) -> Trial:
    trial, draws = drawn
    return trial.apart(deal.fold_of(draws) == k)
