"""Calibration on blocks: one pass over the rows for each evaluation of the model."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
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
from prudent.calibration.tables import Table, read_training
from prudent.core.validation import Structure
from prudent.dask.chunks import Block, Chunks
from prudent.dask.residents import resident

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
    guarantees = promise(fitted, np.ones(1), estimator.max_iter)
    estimator._keep(fitted, data.table, data.classes, guarantees)


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
    blocks = resident(chunks)
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
    recipe = make_recipe(estimator, table, classes, watch)
    rows = blocks.transform(_labelled, reader, table, classes)
    sizes = np.array([0 if head is None else head.n_rows for head in heads])
    samples = BlockRows.by_part(
        _split(estimator, recipe, rows, sizes), len(classes), _structure(estimator)
    )
    return _Data(table, classes, recipe, samples)


def _structure(estimator: RiskCalibratedClassifier) -> Structure | None:
    """What the family is made of beside the statistics of the classes."""
    if not isinstance(estimator.family, str) or estimator.family == "categorical":
        return None
    # Only a covariance matrix that all classes share takes products of columns.
    return "full" if estimator.family == "tied" else "diagonal"


def _split(
    estimator: RiskCalibratedClassifier,
    recipe: Recipe,
    rows: Blocks,
    sizes: NDArray[np.intp],
) -> Blocks:
    """Blocks of rows by part: one part, those to fit and held out, or the folds."""
    if estimator.stopping == "holdout":
        chosen = np.zeros(sizes.sum(), dtype=bool)
        chosen[recipe.draw(len(chosen), estimator.validation_fraction)] = True
        own = np.split(chosen, np.cumsum(sizes)[:-1])
        return rows.transform(_hold_out, each=[np.packbits(block) for block in own])
    if estimator.stopping == "cv":
        n_folds = 5 if estimator.cv is None else estimator.cv
        drawn = rows.transform(with_draws, recipe.seed)
        least = drawn.map(least_draws, len(recipe.classes), n_folds)
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


def _hold_out(rows: LabelledRows | None, chosen: NDArray[np.uint8]) -> Parts:
    if rows is None:
        return {}
    return parts_of(rows, np.unpackbits(chosen, count=len(rows.codes)))
