"""Decisions for many choices of radii, from one pass over the rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prudent.core.rows import Block
from prudent.core.types import FloatArray
from prudent.optimistic.class_scores import Bound
from prudent.optimistic.model import Model
from prudent.optimistic.threshold import tuned_offsets

#: Radii over sqrt(d) of the published code.
PUBLISHED_RADII = (0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.15, 0.16, 0.2, 0.5)


def radius_choices(
    radii: ArrayLike | None, n_classes: int, n_features: int
) -> FloatArray:
    """Choices of one radius a class, (n_choices, n_classes).

    Values (R,) are combined to all pairs for two classes; more classes have one
    value each time.

    Raises
    ------
    ValueError
        If `radii` are not numbers >= 0, or rows of them have another length.
    """
    if radii is None:
        radii = np.sqrt(n_features) * np.array(PUBLISHED_RADII)
    try:
        given = np.asarray(radii, dtype=np.float64)
    except (TypeError, ValueError):
        given = np.empty(())
    if given.ndim not in (1, 2) or not given.size:
        raise ValueError(
            "`radii` must hold one or more numbers, or rows of one number a class, got "
            f"{radii!r}."
        )
    bad = given[~((given >= 0) & np.isfinite(given))]
    if len(bad):
        raise ValueError(f"`radii` must be finite and >= 0, got {float(bad[0])}.")
    if given.ndim == 2:
        if given.shape[1] != n_classes:
            raise ValueError(
                f"each row of `radii` must hold one number for each of the {n_classes} "
                f"classes, got shape {given.shape}."
            )
        return given
    values = np.unique(given)
    if n_classes == 2:
        return np.array(list(product(values, values)))
    return np.repeat(values[:, None], n_classes, axis=1)


def decisions(
    model: Model, choices: FloatArray, training: Block | None, X: NDArray[Any]
) -> Iterator[FloatArray]:
    """Compared values of rows for each choice of radii.

    Parameters
    ----------
    model : Model
        With rows of every class, learned with any radii.
    choices : ndarray of shape (n_choices, n_classes)
    training : Block or None
        Rows to tune the threshold by; None keeps the offsets of the model.
    X : ndarray of shape (n, d)

    Yields
    ------
    ndarray of shape (n,) or (n, n_classes)
        As `Model.decision`.
    """
    found = [np.unique(column, return_inverse=True) for column in choices.T]
    values, places = zip(*found, strict=True)
    tested = _Table.of(model, values, X)
    fitted = None if training is None else _Table.of(model, values, training.X)
    for place in np.transpose(places):
        chosen = model
        if fitted is not None and training is not None:
            (upper,) = fitted.scores(place)
            scores = model.scores.with_ties_broken(upper, fitted.distances)
            offsets = tuned_offsets(scores, training.codes, training.weight)
            chosen = replace(model, offsets=offsets)
        yield chosen.compared(tested.scores(place), tested.distances)


class _Table:
    """Scores of rows by every end, radius and class."""

    def __init__(self, ends: FloatArray, distances: FloatArray) -> None:
        self._ends, self.distances = ends, distances

    @classmethod
    def of(
        cls, model: Model, values: tuple[FloatArray, ...], X: NDArray[Any]
    ) -> _Table:
        n_values = max(len(own) for own in values)
        columns = [
            np.array([own[min(j, len(own) - 1)] for own in values])
            for j in range(n_values)
        ]
        ends = [end for end, _ in model.bounds]
        asked: list[Bound] = [(end, radii) for end in ends for radii in columns]
        scores = np.empty((len(asked), len(X), len(values)))
        distances = np.empty((len(X), len(values)))
        for rows, block, D in model.scores.blocks(X, *asked):
            distances[rows] = D
            for j, each in enumerate(block):
                scores[j, rows] = each
        return cls(scores.reshape(len(ends), n_values, *distances.shape), distances)

    def scores(self, place: NDArray[np.intp]) -> list[FloatArray]:
        """Scores (n, K) by each end, with the radius at `place` of each class."""
        classes = np.arange(len(place))
        return [end[place, :, classes].T for end in self._ends]
