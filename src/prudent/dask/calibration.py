"""Calibration on blocks: one pass over the rows for each evaluation of the model."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import unique_labels

from prudent.calibration import RiskCalibratedClassifier
from prudent.calibration.blocks import BlockRows, Blocks, Parts
from prudent.calibration.progress import watch_evaluations
from prudent.calibration.recipe import Calibrated, LabelledRows, Recipe
from prudent.calibration.settings import (
    draw_seed,
    fit_unvalidated,
    make_recipe,
    promise,
)
from prudent.calibration.splits import (
    Deal,
    deal_parts,
    least_draws,
    parts_of,
    with_draws,
)
from prudent.calibration.tables import Table, read_training, recoded, seen_levels
from prudent.core.holdout import hold_out
from prudent.core.validation import Structure
from prudent.dask.chunks import Block, Chunks

__all__ = ["fit_calibration", "needs_frames"]


def needs_frames(estimator: Any) -> bool:
    """Whether the types of a data frame's columns matter to the estimator."""
    return isinstance(estimator, RiskCalibratedClassifier) and (
        estimator.family in ("categorical", "mixed")
    )


def fit_calibration(estimator: RiskCalibratedClassifier, chunks: Chunks) -> None:
    """Calibrate on blocks that are loaded once and stay in memory.

    Raises
    ------
    TypeError
        If a setting needs the rows of all blocks in one place.
    ValueError
        As `estimator.fit`.
    """
    _check_settings(estimator)
    data = _read(estimator, chunks)
    estimator.n_features_in_ = chunks.n_features
    fitted = _calibrate(estimator, data.recipe, data.samples)
    estimator._keep(fitted, data.table, data.classes)
    if estimator.stopping == "holdout":
        counts = data.samples[0].blocks.map(_count_wrong, copy(estimator))
        wrong, n_rows = np.sum(counts, axis=0).tolist()
        estimator.guarantees_ = promise(wrong, n_rows, estimator.max_iter)


@dataclass(frozen=True, eq=False)
class _Data:
    """All rows by part, and what they say about each other."""

    table: Table
    classes: NDArray[Any]
    recipe: Recipe
    samples: list[BlockRows]


@dataclass(frozen=True, slots=True)
class _Head:
    """What the reading of all blocks needs to know about one of them."""

    table: Table
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


def _read(estimator: RiskCalibratedClassifier, chunks: Chunks) -> _Data:
    # Blocks of every stage but the last are free once this function returns.
    reader = RiskCalibratedClassifier(family=estimator.family)
    reader.n_features_in_ = chunks.n_features
    if chunks.feature_names is not None and needs_frames(estimator):
        reader.feature_names_in_ = chunks.feature_names
    blocks = chunks.resident()
    heads = blocks.map(_head, reader)
    found = [head for head in heads if head is not None]
    if not found:
        raise ValueError("X has no row: every block is empty.")
    labels = [head.classes for head in found]
    unique_labels(*labels)  # refuses words beside numbers
    classes = np.unique(np.concatenate(labels))
    if len(classes) < 2:
        raise ValueError(
            f"at least 2 classes are needed, got one class: {classes.tolist()[0]!r}."
        )
    table = found[0].table.merged([head.table for head in found[1:]])
    watch = watch_evaluations(estimator, None, None)
    seed = draw_seed(estimator.random_state)
    rows = blocks.transform(_labelled, reader, table, classes)
    sizes = np.array([0 if head is None else head.n_rows for head in heads])
    parts = _split(estimator, seed, len(classes), rows, sizes)
    if estimator.stopping == "holdout" and len(table.n_levels):
        found = parts.map(_seen_to_fit, table.n_levels)
        seen = [np.any(of_blocks, axis=0) for of_blocks in zip(*found, strict=True)]
        table = table.restricted(seen)
        parts = parts.transform(_recoded, seen)
    samples = BlockRows.by_part(parts, len(classes), _structure(estimator))
    recipe = make_recipe(estimator, table, classes, seed, watch)
    return _Data(table, classes, recipe, samples)


def _structure(estimator: RiskCalibratedClassifier) -> Structure | None:
    """What the family is made of beside the statistics of the classes."""
    if not isinstance(estimator.family, str) or estimator.family == "categorical":
        return None
    # Only a covariance matrix that all classes share takes products of columns.
    return "full" if estimator.family == "tied" else "diagonal"


def _split(
    estimator: RiskCalibratedClassifier,
    seed: int,
    n_classes: int,
    rows: Blocks,
    sizes: NDArray[np.intp],
) -> Blocks:
    """Blocks of rows by part: one part, those to fit and held out, or the folds."""
    if estimator.stopping == "holdout":
        chosen = np.zeros(sizes.sum(), dtype=bool)
        random = np.random.RandomState(seed)
        split = hold_out(len(chosen), estimator.validation_fraction, random)
        chosen[split.held_out] = True
        own = np.split(chosen, np.cumsum(sizes)[:-1])
        return rows.transform(_hold_out, each=[np.packbits(block) for block in own])
    if estimator.stopping == "cv":
        n_folds = 5 if estimator.cv is None else estimator.cv
        drawn = rows.transform(with_draws, seed)
        least = drawn.map(least_draws, n_classes, n_folds)
        return drawn.transform(deal_parts, Deal.of(least, n_folds))
    return rows.transform(_one_part)


def _calibrate(
    estimator: RiskCalibratedClassifier, recipe: Recipe, samples: list[BlockRows]
) -> Calibrated:
    """Fit with the estimator's stopping rule."""
    if estimator.stopping == "holdout":
        fitted, held_out = samples
        return recipe.fit_holdout(fitted, held_out)
    everything = BlockRows.merged(samples)
    if estimator.stopping == "none":
        return recipe.fit_last(everything)
    if estimator.stopping == "train":
        return recipe.fit_train(everything)
    if len(samples) == 1:
        return fit_unvalidated(recipe, everything)
    folds = [
        (BlockRows.merged([other for other in samples if other is not fold]), fold)
        for fold in samples
    ]
    return recipe.fit_folds(everything, folds)


# What happens to one block; an empty one becomes None.


def _head(block: Block, reader: RiskCalibratedClassifier) -> _Head | None:
    X, y = block
    if y is None or len(X) == 0:
        return None
    training = read_training(copy(reader), X, y, None)
    return _Head(training.table, np.unique(training.y), len(y))


def _labelled(
    block: Block,
    reader: RiskCalibratedClassifier,
    table: Table,
    classes: NDArray[Any],
) -> LabelledRows | None:
    X, y = block
    if y is None or len(X) == 0:
        return None
    training = read_training(copy(reader), X, y, None, table)
    codes = np.searchsorted(classes, training.y)
    return LabelledRows(training.rows, codes, training.weight)


def _one_part(rows: LabelledRows | None) -> Parts:
    return {} if rows is None else {0: rows}


def _seen_to_fit(parts: Parts, n_levels: NDArray[np.intp]) -> list[NDArray[np.bool_]]:
    """Levels of each categorical feature among the rows that are fitted."""
    if 0 not in parts:
        return [np.zeros(n, dtype=bool) for n in n_levels]
    return seen_levels(parts[0].rows, n_levels)


def _recoded(parts: Parts, seen: list[NDArray[np.bool_]]) -> Parts:
    return {
        k: replace(part, rows=recoded(part.rows, seen)) for k, part in parts.items()
    }


def _count_wrong(parts: Parts, estimator: RiskCalibratedClassifier) -> tuple[int, int]:
    """Held-out rows that the fitted estimator gets wrong, and all of them."""
    held_out = parts.get(1)
    if held_out is None:
        return 0, 0
    return estimator._count_wrong(held_out), len(held_out.codes)


def _hold_out(rows: LabelledRows | None, chosen: NDArray[np.uint8]) -> Parts:
    if rows is None:
        return {}
    return parts_of(rows, np.unpackbits(chosen, count=len(rows.codes)))
