"""Labels from words, and notes on what can be wrong with a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.core.types import FloatArray
from prudent.io.errors import TableError, counted, listed, shown, thousands
from prudent.io.preparation import FEWEST_IDENTIFIERS
from prudent.io.table import is_number

MOST_CLASSES = 50
# Characters of a whole number that is one in 64 bits, whatever its digits.
LONGEST_INTEGER = 18


def labels_from_words(distinct: Sequence[str], target: str) -> NDArray[Any]:
    """Return sorted labels, as integers where every word is one, else as text.

    One class only and a target that looks continuous are a TableError.
    """
    if len(distinct) == 1:
        raise TableError(
            f"target {shown(target)} has one value ({shown(distinct[0])}). "
            "To learn one class, use prudent detect"
        )
    if all(is_number(word) for word in distinct):
        fractional = any(not float(word).is_integer() for word in distinct)
        if fractional or len(distinct) > MOST_CLASSES:
            raise TableError(
                f"target {shown(target)} looks continuous "
                f"({thousands(len(distinct))} values): prudent classifies. "
                "Name another --target or cut it into classes"
            )
    # A label must read back as it was written: '01' and '1.0' stay text.
    if all(
        len(word) <= LONGEST_INTEGER
        and word.lstrip("-").isdecimal()
        and str(int(word)) == word
        for word in distinct
    ):
        return np.array(distinct, dtype=np.int64)
    return np.array(distinct)


def notes_on_features(X: FloatArray, names: Sequence[str], n_rows: int) -> list[str]:
    """Name identifier-like and collinear columns of `X`, a sample of `n_rows` rows."""
    if X.shape[1] == 0:
        return []
    every = "every row" if len(X) == n_rows else f"all of {thousands(len(X))} rows"
    notes = [
        f"column {shown(names[j])} has a different whole number in {every}: "
        f"an identifier? It is kept; use --drop {names[j]} to leave it out"
        for j in _identifiers(X)
    ]
    collinear = [names[j] for j in _collinear(X)]
    if collinear:
        notes.append(
            f"{counted(len(collinear), 'column')} (nearly) a linear combination of "
            f"earlier ones: {listed(collinear)}. Methods that need full rank shrink "
            "the covariance or say why they cannot"
        )
    return notes


def notes_on_classes(
    labels: Sequence[object], counts: Sequence[int], n_features: int
) -> list[str]:
    """Name the classes with fewer rows than features."""
    small = [
        f"{shown(label)} ({counted(count, 'row')})"
        for label, count in zip(labels, counts, strict=True)
        if count <= n_features
    ]
    if not small:
        return []
    return [
        f"no more rows than features ({n_features}) in class {listed(small)}: methods "
        "that need full rank shrink the covariance or say why they cannot"
    ]


def _identifiers(X: FloatArray) -> list[int]:
    """Columns of whole numbers, all distinct: values measured repeat or have digits."""
    if len(X) < FEWEST_IDENTIFIERS:
        return []
    return [
        j
        for j in range(X.shape[1])
        if np.all(X[:, j] == np.floor(X[:, j])) and len(np.unique(X[:, j])) == len(X)
    ]


def _collinear(X: FloatArray) -> list[int]:
    """Columns whose share of variance left by earlier columns is rounding error.

    The pivot of column j in the Cholesky factor of the correlation matrix is
    1 - R^2 of j on the columns before it; below 100 d eps it is none. QR factors
    would go on along the rounding errors of such a column, and miss the next.
    """
    n_rows, n_features = X.shape
    if n_rows <= n_features:  # every matrix is singular then; a note of its own
        return []
    scale = X.std(axis=0)
    Z = (X - X.mean(axis=0)) / np.where(scale > 0, scale, 1.0)
    remaining = Z.T @ Z / n_rows
    threshold = 100 * n_features * np.finfo(float).eps
    found = []
    for j in range(n_features):
        pivot = remaining[j, j]
        if pivot < threshold:
            found.append(j)
        else:
            row = remaining[j, j:].copy()
            remaining[j:, j:] -= np.outer(row, row / pivot)
    return found


def treatment(is_text: Sequence[bool], n_missing: int, missing: str) -> str | None:
    """Say what is done to words and missing cells; None where there are none.

    `missing` is "fill" for medians, or "mean".
    """
    parts = []
    if any(is_text):
        parts.append(f"{counted(sum(is_text), 'text column')} encoded")
    if n_missing:
        cells = "1 missing cell" if n_missing == 1 else f"{n_missing} missing cells"
        word = "mean" if missing == "mean" else "median"
        parts.append(f"{cells} filled ({word} of the training rows)")
    return f"{', '.join(parts)}; --categorical, --missing choose" if parts else None
