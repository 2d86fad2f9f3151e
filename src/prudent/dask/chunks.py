"""The row blocks of a dask collection."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.core.moments import ClassMoments
from prudent.core.rows import Block as LabelledBlock
from prudent.core.rows import Rows
from prudent.dask.rows import DaskRows, require_dask
from prudent.exceptions import PrudentWarning

Block = tuple[NDArray[Any], NDArray[Any] | None]
SMALL_CHUNK = 100_000
MANY_CHUNKS = 2_000


@dataclass(frozen=True, eq=False)
class Chunks(DaskRows):
    """Row blocks (X, y) of a collection in order, none of them computed yet."""

    n_features: int  # columns of every X
    feature_names: NDArray[np.object_] | None  # names of the columns of a data frame

    @classmethod
    def of(
        cls, X: Any, y: Any, target: Any, client: Any, *, as_frames: bool = False
    ) -> Chunks:
        """Blocks of a dask array or data frame with its labels.

        The blocks of a data frame hold numbers, or frames if `as_frames`.
        """
        require_dask()
        if y is not None and target is not None:
            raise ValueError("give the labels as `y` or as `target`, not both.")
        if hasattr(X, "to_delayed") and hasattr(X, "columns"):
            blocks, columns = _frame_blocks(X, y, target, as_frames)
            names: NDArray[np.object_] | None = columns
            n_features = len(columns)
        elif hasattr(X, "to_delayed") and hasattr(X, "chunks"):
            if target is not None:
                raise ValueError("`target` names a column of a data frame; give `y`.")
            blocks, names = _array_blocks(X, y), None
            n_features = X.shape[1]
            _warn_about_chunks(X)
        else:
            raise TypeError(
                "`X` must be a dask array or data frame, got "
                f"{type(X).__name__}; fit other data with `estimator.fit`."
            )
        return cls(blocks, client or _current_client(), n_features, names)

    def moments(self, **options: Any) -> ClassMoments:
        """Class moments of all rows: the tree of `ClassMoments.reduce` over blocks."""
        moments: ClassMoments = self.reduce(
            block_moments, ClassMoments.reduce, self.n_features, options
        )
        return moments

    def labelled(self, classes: NDArray[Any]) -> Rows:
        """The rows as a fit asks for them, with the number of each label."""
        return self.transform(_labelled, classes)


def block_moments(
    block: Block, n_features: int, options: dict[str, Any]
) -> ClassMoments:
    X, y = block
    if y is None:  # labels play no role for a detector: all rows are of one class
        y = np.zeros(len(X), dtype=np.intp)
    if len(X) == 0:  # an empty partition is the neutral element
        return ClassMoments.empty(np.unique(y), n_features, **options)
    return ClassMoments.from_arrays(X, y, **options)


def _labelled(block: Block, classes: NDArray[Any]) -> LabelledBlock:
    X, y = block
    assert y is not None
    return LabelledBlock(X, np.searchsorted(classes, y))


def _current_client() -> Any:
    """The client of this process, if one is open."""
    import sys

    if "distributed" not in sys.modules:
        return None
    from distributed import default_client

    try:
        return default_client()
    except ValueError:
        return None


def _array_blocks(X: Any, y: Any) -> list[Any]:
    import dask.array as da

    if X.ndim != 2:
        raise ValueError(f"`X` must be two-dimensional, got shape {X.shape}.")
    X = X.rechunk({1: -1})
    if y is not None and not isinstance(y, da.Array):
        y = da.from_array(np.asarray(y), chunks=(X.chunks[0],))
    elif y is not None and not np.isnan(X.chunks[0] + y.chunks[0]).any():
        y = y.rechunk((X.chunks[0],))
    return _paired([block for (block,) in X.to_delayed()], y)


def _frame_blocks(
    X: Any, y: Any, target: Any, as_frames: bool
) -> tuple[list[Any], NDArray[np.object_]]:
    from dask import delayed

    columns = list(X.columns)
    if target is not None and target not in columns:
        raise ValueError(f"no column {target!r}. Columns: {columns[:5]}")
    names = [name for name in columns if name != target]
    blocks = [delayed(_split)(f, names, target, as_frames) for f in X.to_delayed()]
    if y is not None:
        blocks = _paired([block[0] for block in blocks], y)
    return blocks, np.array(names, dtype=object)


def _paired(rows: Sequence[Any], y: Any) -> list[Any]:
    """Blocks of rows with their labels, if there are any."""
    from dask import delayed

    labels = [None] * len(rows) if y is None else y.to_delayed()
    if len(labels) != len(rows):
        raise ValueError(
            f"`X` has {len(rows)} blocks of rows and `y` has {len(labels)}; they must "
            "match where their sizes are unknown."
        )
    return [delayed(_pair)(X, label) for X, label in zip(rows, labels, strict=True)]


def _pair(X: Any, y: Any) -> Block:
    X = X if hasattr(X, "columns") else np.asarray(X)
    if y is None:
        return X, None
    y = np.asarray(y)
    if len(X) != len(y):
        raise ValueError(f"a block has {len(X)} rows and {len(y)} labels.")
    return X, y


def _split(frame: Any, names: Sequence[str], target: Any, as_frame: bool) -> Block:
    X = frame[names] if as_frame else frame[names].to_numpy(dtype=np.float64)
    return X, None if target is None else frame[target].to_numpy()


def _warn_about_chunks(X: Any) -> None:
    n_chunks = len(X.chunks[0])
    if n_chunks > 1 and X.size < SMALL_CHUNK * n_chunks:
        warnings.warn(
            f"chunks are small ({X.size // n_chunks} values on average): scheduling "
            "costs more than the work; rechunk.",
            PrudentWarning,
            stacklevel=4,
        )
    if n_chunks > MANY_CHUNKS:
        warnings.warn(
            f"{n_chunks} chunks: scheduling costs about 4 ms each; rechunk.",
            PrudentWarning,
            stacklevel=4,
        )
