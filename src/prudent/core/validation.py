"""Checks of user input for the entry points of `core`, without scikit-learn."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prudent.core.rows import Block
from prudent.core.types import BoolArray, FloatArray, IntArray
from prudent.exceptions import PrudentWarning

Structure = Literal["full", "diagonal"]
LOOKUP_RANGE = 2**16


def check_labelled(
    X: Any, y: Any, sample_weight: ArrayLike | None, classes: ArrayLike | None
) -> tuple[Block, NDArray[Any]]:
    """Rows with the number of each row's label and weights >= 0, and the labels."""
    X = check_table(X)
    labels, codes = encode_labels(y, len(X), classes)
    weight = None
    if sample_weight is not None:
        weight = check_weight(sample_weight, len(X))
    return Block(X, codes, weight), labels


def refuse_nan(values: FloatArray, sentence: str) -> None:
    """Raise ValueError for rows (n,) or (n, k) with a NaN: {} in the sentence."""
    n_unknown = int(np.isnan(values).reshape(len(values), -1).any(axis=1).sum())
    if n_unknown:
        rows = f"{n_unknown} of {len(values)} rows"
        raise ValueError(sentence.replace("{}", rows))


def check_table(X: Any) -> NDArray[Any]:
    """A two-dimensional array of real numbers with at least one row and column."""
    if hasattr(X, "tocsr"):
        raise TypeError(
            "Sparse data was passed for X, but dense data is required. "
            "Use '.toarray()' to convert to a dense numpy array."
        )
    X = np.asarray(X)
    if X.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {X.ndim}D array instead. Reshape your data."
        )
    if X.dtype.kind == "c":
        raise ValueError("Complex data not supported.")
    if X.dtype.kind not in "fiub":
        try:
            X = X.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"X must hold real numbers: {error}.") from error
    for axis, what in enumerate(("sample", "feature")):
        if X.shape[axis] == 0:
            raise ValueError(
                f"Found array with 0 {what}(s) (shape={X.shape}) while a minimum "
                "of 1 is required."
            )
    return X


def check_contained(part: NDArray[Any], classes: NDArray[Any]) -> None:
    """Raise for labels that are not among the classes."""
    unknown = part[~np.isin(part, classes)]
    if len(unknown):
        raise ValueError(
            f"unknown classes {unknown.tolist()}: these moments hold "
            f"{classes.tolist()}."
        )


def check_weight(sample_weight: ArrayLike, n_rows: int) -> FloatArray:
    """Finite weights >= 0, one per row."""
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (n_rows,):
        raise ValueError(
            f"`sample_weight` must have shape ({n_rows},), got {weight.shape}."
        )
    if not np.isfinite(weight).all():
        row = int(np.flatnonzero(~np.isfinite(weight))[0])
        raise ValueError(
            f"`sample_weight` contains NaN or infinity, first at row {row}."
        )
    if (weight < 0).any():
        row = int(np.flatnonzero(weight < 0)[0])
        raise ValueError(
            f"`sample_weight` must be >= 0, got {shown(weight[row])} at row {row}; "
            "signed weights belong to RawMoments."
        )
    return weight


def encode_labels(
    y: Any, n_rows: int, classes: ArrayLike | None = None
) -> tuple[NDArray[Any], IntArray]:
    """Sorted distinct labels, and the number of each row's label among them."""
    labels = label_array(y, "y")
    if labels.shape != (n_rows,):
        raise ValueError(f"y must have shape ({n_rows},), got {labels.shape}.")
    if classes is None:
        return _distinct(labels)
    given = np.unique(label_array(classes, "classes"))
    present, codes = _distinct(labels)
    if is_text(present) != is_text(given):
        outside = present
    else:
        outside = present[~np.isin(present, given)]
    if len(outside):
        raise ValueError(
            f"y contains classes outside `classes`: {outside.tolist()}; "
            f"`classes` is {given.tolist()}."
        )
    return given, np.searchsorted(given, present)[codes]


def check_options(structure: str, fourth: bool, block_rows: int | None) -> None:
    """Check the options of an accumulation."""
    if structure not in ("full", "diagonal"):
        raise ValueError(
            f"`structure` must be 'full' or 'diagonal', got {structure!r}."
        )
    if structure == "diagonal" and fourth:
        raise ValueError(
            "`fourth=True` needs structure='full': its merge uses the whole scatter."
        )
    if block_rows is not None and not block_rows >= 1:
        raise ValueError(f"`block_rows` must be >= 1, got {shown(block_rows)}.")


def warn_about_memory(n_classes: int, n_features: int) -> None:
    """Warn when the scatter matrices take more than a quarter of the memory."""
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # not known on this platform
        return
    needed = 8 * n_classes * n_features**2
    if needed > memory / 4:
        warnings.warn(
            f"{n_classes} scatter matrices of {n_features} features take "
            f"{needed / 2**30:.1f} GiB, more than a quarter of the memory: use "
            "structure='diagonal', or one class for all rows (tied covariance).",
            PrudentWarning,
            stacklevel=3,
        )


def union_of_labels(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """Sorted distinct labels of both arrays; none have no kind."""
    if not len(a) or not len(b):
        return np.unique(a if len(a) else b)
    if is_text(a) != is_text(b):
        raise ValueError(
            f"labels {a.tolist()} and {b.tolist()} mix strings and numbers."
        )
    return np.union1d(a, b)


def shown(label: Any) -> str:
    """A label as a user would write it: 'benign', 3."""
    return repr(plain(label))


def quoted(label: Any) -> str:
    """A label in a sentence, where a number could be taken for an index: '0'."""
    return repr(str(plain(label)))


def plain(value: Any) -> Any:
    """A label or number as plain Python has it, and so JSON: 3 for np.int64(3)."""
    return value.item() if isinstance(value, np.generic) else value


def label_array(labels: Any, name: str) -> NDArray[Any]:
    """Labels of one type, 1-D."""
    array = np.asarray(labels)
    if array.ndim != 1:
        raise ValueError(f"{name} should be a 1d array, got shape {array.shape}.")
    # NumPy would turn the list [1, "a"] into text without a word.
    if array.dtype.kind == "O" or not hasattr(labels, "dtype"):
        _refuse_mixed(name, labels)
    if array.dtype.kind == "f" and not (array == np.floor(array)).all():
        raise ValueError(
            f"{name} holds NaN or continuous values: class labels must be whole "
            "numbers, strings or booleans."
        )
    if array.dtype.kind == "f" and np.isinf(array).any():
        raise ValueError(f"{name} contains infinity: class labels must be finite.")
    return array


def refuse_missing_labels(name: str, labels: NDArray[Any]) -> None:
    """Raise ValueError where rows have no label: it is neither a class nor wrong."""
    n_missing = int(missing_labels(labels).sum())
    if n_missing:
        raise ValueError(
            f"{name} holds no label in {n_missing} of {len(labels)} rows, but None or "
            "NaN: leave these rows out."
        )


def check_label_cells(name: str, labels: NDArray[Any]) -> None:
    """Raise ValueError for labels that are missing, or strings beside numbers."""
    refuse_missing_labels(name, labels)
    if labels.dtype.kind == "O":
        _refuse_mixed(name, labels.tolist())


def check_group_cells(groups: NDArray[Any]) -> None:
    """Raise ValueError where rows have no group: they might be of any of the others."""
    unknown = missing_labels(groups)
    if groups.dtype.kind in "OTU":
        unknown |= np.array([cell == "" for cell in groups.tolist()], dtype=bool)
    if unknown.any():
        raise ValueError(
            f"`groups` says nothing of {int(unknown.sum())} of {len(groups)} rows, "
            "which may belong to any group: leave these rows out, or give each a "
            "group of its own if it is known to belong to no other row."
        )
    if groups.dtype.kind == "O":
        _refuse_mixed("`groups`", groups.tolist())


def as_flags(name: str, values: Any) -> BoolArray:
    """True or False, of any shape; 1 and 0 are taken for them.

    Anything else would turn into True or False without a word: None, which nobody
    knows, or a label. It is a ValueError, which begins with `name`.
    """
    given = np.asarray(values)
    if given.dtype.kind == "O":
        given = np.array(given.tolist())
    if given.dtype.kind == "b":
        return given
    cells = given.ravel()
    is_flag = np.zeros(len(cells), dtype=bool)
    if given.dtype.kind in "iuf":
        is_flag = (cells == 0) | (cells == 1)
    if not is_flag.all():
        cell = cells[int(np.argmin(is_flag))]
        raise ValueError(f"{name} must be True or False, got {shown(cell)}.")
    return given.astype(bool)


def refuse_twice(name: str, labels: Iterable[Any]) -> None:
    """Raise ValueError where a label stands twice: it would have two columns."""
    known = [plain(label) for label in labels]
    again = [label for place, label in enumerate(known) if label in known[:place]]
    if again:
        raise ValueError(f"`{name}` names {shown(again[0])} twice.")


def missing_labels(labels: NDArray[Any]) -> BoolArray:
    """Which rows have None, NaN or what data frames have for them, (n,)."""
    if labels.dtype.kind == "f":
        return np.isnan(labels)
    if labels.dtype.kind in "mM":
        return np.isnat(labels)
    if labels.dtype.kind == "O":
        return np.array([_is_missing(cell) for cell in labels.tolist()], dtype=bool)
    return np.zeros(len(labels), dtype=bool)


def _refuse_mixed(name: str, labels: Iterable[Any]) -> None:
    if len({isinstance(label, str) for label in labels}) > 1:
        raise ValueError(
            f"{name} mixes labels of type string and number: use one type."
        )


def _is_missing(label: Any) -> bool:
    """Whether it is None, NaN or what data frames have for them."""
    if label is None:
        return True
    same = label == label  # neither true nor false of a missing value of pandas
    return not (isinstance(same, bool | np.bool_) and same)


def _distinct(labels: NDArray[Any]) -> tuple[NDArray[Any], IntArray]:
    """np.unique with inverse; a lookup table where integers lie close together."""
    if labels.dtype.kind in "iu" and len(labels):
        low = int(labels.min())
        if int(labels.max()) - low < LOOKUP_RANGE:
            # In the labels' own type -100 and 100 would be further apart than it holds.
            wide = np.uint64 if labels.dtype.kind == "u" else np.int64
            offset = np.subtract(labels, wide(low), dtype=wide).astype(np.intp)
            present = np.flatnonzero(np.bincount(offset))
            table = np.zeros(present[-1] + 1, dtype=np.intp)
            table[present] = np.arange(len(present))
            distinct = (present.astype(wide) + wide(low)).astype(labels.dtype)
            return distinct, table[offset]
    try:
        return np.unique(labels, return_inverse=True)
    except TypeError as error:
        raise ValueError(f"y holds labels that cannot be ordered: {error}.") from error


def is_text(labels: NDArray[Any]) -> bool:
    """Whether the labels are strings."""
    return labels.dtype.kind in "US" or (
        labels.dtype.kind == "O" and len(labels) > 0 and isinstance(labels[0], str)
    )


def closest(name: str, names: Sequence[str]) -> str | None:
    """Return the name most like `name`, whatever its case, if any is like it."""
    from difflib import get_close_matches  # the command line starts without it

    by_folded = {candidate.casefold(): candidate for candidate in names}
    matches = get_close_matches(name.casefold(), by_folded, n=1)
    return by_folded[matches[0]] if matches else None
