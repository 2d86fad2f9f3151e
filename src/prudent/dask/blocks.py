"""The row blocks of a dask collection: passes over them, and predictions."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from prudent.core.moments import ClassMoments
from prudent.core.rows import Block as LabelledBlock
from prudent.core.rows import LocalRows, Rows, Step, step_on
from prudent.core.types import BoolArray, IntArray
from prudent.exceptions import PrudentWarning

FAN_IN = 16  # a power of two, see `DaskRows.reduce`
SMALL_CHUNK = 100_000
MANY_CHUNKS = 2_000
#: Rows that a classifier or detector learns from, at most: they must fit one machine.
#: What is promised does not depend on it.
MAX_FIT_ROWS = 100_000

#: Rows and their labels, if any.
Block = tuple[NDArray[Any], NDArray[Any] | None]
#: Which rows of a block are meant: a bit each.
Mask = NDArray[np.uint8]


def require_dask() -> Any:
    """The dask package, or an error that says how to get it."""
    try:
        import dask
    except ImportError as error:
        raise ImportError(
            "prudent.dask needs dask; install it with: pip install 'prudent[dask]'"
        ) from error
    return dask


@dataclass(frozen=True, eq=False)
class DaskRows(Rows):
    """Blocks that are made anew for each pass, none of them computed yet."""

    blocks: Sequence[Any]  # in row order
    client: Any  # where to compute; None is dask's own scheduler
    n_features: int = 0  # columns of every X, of blocks (X, y) of a collection
    feature_names: NDArray[np.object_] | None = None  # of the columns of a data frame

    @classmethod
    def from_collection(
        cls, X: Any, y: Any, target: Any, client: Any, *, as_frames: bool = False
    ) -> Self:
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

    def reduce(
        self,
        function: Callable[..., Any],
        combine: Callable[[Sequence[Any]], Any],
        *arguments: Any,
        each: Sequence[Any] | None = None,
    ) -> Any:
        """As `Rows.reduce`, in a tree: only the root travels here.

        As the tree is one over position that joins a power of two, a `combine`
        which is itself a binary tree over position gives the bits of one `combine`
        over all blocks.
        """
        from dask import delayed

        level = self._made((function, arguments), self._own(each))
        while len(level) > 1:
            level = [
                delayed(combine, pure=False)(level[i : i + FAN_IN])
                for i in range(0, len(level), FAN_IN)
            ]
        return self.compute(level)[0]

    def resident(self) -> Rows:
        """The blocks in memory: of the workers, or without a client here.

        A lost block is made anew from the collection.
        """
        if self.client is None:
            return LocalRows(self.compute(self.blocks))
        return WorkerRows(self.client.compute(list(self.blocks)), self.client)

    def compute(self, values: Sequence[Any]) -> Sequence[Any]:
        """Values of delayed objects, from the client if there is one."""
        if self.client is None:
            return require_dask().compute(*values)
        return self.client.gather(self.client.compute(list(values)))

    def _map(self, step: Step, own: list[tuple[Any, ...]]) -> list[Any]:
        return list(self.compute(self._made(step, own)))

    def _transform(self, step: Step, own: list[tuple[Any, ...]]) -> DaskRows:
        return DaskRows(self._made(step, own), self.client)

    def _made(self, step: Step, own: list[tuple[Any, ...]]) -> list[Any]:
        """The step's results, worked out when a pass asks for them."""
        from dask import delayed

        # One node of the graph: a fitted model is not copied into every task.
        shared = delayed(step, pure=False, traverse=False)
        apply = delayed(step_on, pure=False)
        pairs = zip(self.blocks, own, strict=True)
        return [apply(block, item, shared) for block, item in pairs]


@dataclass(frozen=True, eq=False)
class WorkerRows(Rows):
    """Blocks that stay in the memory of dask's workers while many passes run."""

    blocks: Sequence[Any]  # futures
    client: Any

    def _map(self, step: Step, own: list[tuple[Any, ...]]) -> list[Any]:
        """One task per worker.

        A task is bound to its worker only loosely: when the worker is lost, it runs
        where its blocks are made anew.
        """
        groups = self._by_worker()
        tasks = [
            self.client.submit(
                _apply_to_group,
                [self.blocks[i] for i in positions],
                [own[i] for i in positions],
                step,
                workers=None if worker is None else [worker],
                allow_other_workers=worker is not None,
                pure=False,
            )
            for worker, positions in groups.items()
        ]
        results: list[Any] = [None] * self.n_blocks
        gathered = self.client.gather(tasks)
        for positions, values in zip(groups.values(), gathered, strict=True):
            for i, value in zip(positions, values, strict=True):
                results[i] = value
        return results

    def _transform(self, step: Step, own: list[tuple[Any, ...]]) -> WorkerRows:
        """Each block is made where the old one is."""
        futures = self.client.map(step_on, self.blocks, own, step=step, pure=False)
        return WorkerRows(futures, self.client)

    def _by_worker(self) -> dict[str | None, list[int]]:
        """Positions of the blocks that each worker holds, None if none does now."""
        from distributed import wait

        with self.client.as_current():  # `wait` asks for the current client
            wait(self.blocks)
        holders = self.client.who_has(self.blocks)
        groups = defaultdict(list)
        for i, future in enumerate(self.blocks):
            groups[next(iter(holders[future.key]), None)].append(i)
        return dict(groups)


def _apply_to_group(
    blocks: Sequence[Any], own: Sequence[tuple[Any, ...]], step: Step
) -> list[Any]:
    return [step_on(*pair, step) for pair in zip(blocks, own, strict=True)]


# --- blocks of rows and labels --------------------------------------------------------


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


# --- rows of blocks by their number ---------------------------------------------------


def masks(positions: IntArray, sizes: Sequence[int]) -> list[Mask]:
    """Which rows of each block, of these sizes, stand at the positions."""
    chosen = np.zeros(sum(sizes), dtype=bool)
    chosen[positions] = True
    return [np.packbits(own) for own in np.split(chosen, np.cumsum(sizes)[:-1])]


def chosen(mask: Mask, n_rows: int) -> BoolArray:
    """Which of the rows of a block a mask tells."""
    return np.unpackbits(mask, count=n_rows) == 1


def answers_of(
    chunks: DaskRows,
    sizes: Sequence[int],
    positions: IntArray,
    question: Callable[..., Any],
) -> list[Any]:
    """`question(X, y)` of the rows at the positions, of each block that has some.

    The blocks have these sizes.
    """
    answers = chunks.map(_asked, question, each=masks(positions, sizes))
    return [answer for answer in answers if answer is not None]


def sample(
    chunks: DaskRows, sizes: Sequence[int], positions: IntArray
) -> tuple[Any, NDArray[Any] | None]:
    """The first `MAX_FIT_ROWS` of the rows at the positions and their labels, in order.

    The blocks have these sizes.
    """
    positions = positions[:MAX_FIT_ROWS]
    parts, labels = zip(*answers_of(chunks, sizes, positions, _both), strict=True)
    if hasattr(parts[0], "columns"):
        import pandas

        X: Any = pandas.concat(parts)
    else:
        X = np.concatenate(parts)
    order = np.argsort(np.argsort(positions))
    y = None if labels[0] is None else np.concatenate(labels)[order]
    return _safe_indexing(X, order), y


def _asked(block: Block, question: Callable[..., Any], mask: Mask) -> Any:
    X, y = block
    rows = np.flatnonzero(chosen(mask, len(X)))
    if len(rows) == 0:
        return None
    return question(_safe_indexing(X, rows), None if y is None else y[rows])


def _both(X: Any, y: Any) -> Block:
    return X, y


# --- predictions, block by block ------------------------------------------------------


def predict(estimator: Any, X: Any, method: str = "predict") -> Any:
    """Apply a method of a fitted estimator to a dask collection, lazily.

    Parameters
    ----------
    estimator : fitted estimator
        Any with a method of that name.
    X : dask array or data frame of shape (n_samples, n_features)
        Rows.
    method : str, default="predict"
        Such as "predict_proba", "predict_set" or "decision_function".

    Returns
    -------
    dask array of shape (n_samples,) or (n_samples, n_outputs), or tuple of them
        Not computed yet, in the blocks of `X`; a tuple where the method answers with
        one, as `posterior_bounds`.

    Raises
    ------
    AttributeError
        If the estimator has no such method.
    TypeError
        If `X` is no dask collection, or the answers are not arrays of one entry a row.

    Examples
    --------
    >>> import dask.array as da
    >>> import prudent
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = prudent.MinimaxProbabilityClassifier().fit(X, y)
    >>> blocks = da.from_array(X, chunks=(50, 4))
    >>> prudent.dask.predict(model, blocks).compute().shape
    (150,)
    """
    require_dask()
    apply = getattr(estimator, method)
    if not hasattr(X, "to_delayed"):
        raise TypeError(
            "`X` must be a dask array or data frame, got "
            f"{type(X).__name__}; call the estimator itself."
        )
    if hasattr(X, "columns"):
        names = getattr(estimator, "feature_names_in_", None)
        if names is not None:
            X = X[list(names)]
        sample = apply(X._meta_nonempty.iloc[:1])
        blocks = X.to_delayed()
        sizes: tuple[Any, ...] = (float("nan"),) * len(blocks)
    else:
        X = X.rechunk({1: -1})
        sample = apply(np.zeros((1, X.shape[1])))
        blocks = [block for (block,) in X.to_delayed()]
        sizes = X.chunks[0]
    samples = sample if isinstance(sample, tuple) else (sample,)
    if not all(
        np.shape(part)[:1] == (1,) and hasattr(part, "dtype") for part in samples
    ):
        raise TypeError(
            f"{method!r} of {type(estimator).__name__} does not answer row by row, so "
            "it cannot be asked block by block; call it on rows in memory."
        )
    stacked = _stack(blocks, sizes, apply, samples)
    return stacked if isinstance(sample, tuple) else stacked[0]


def _stack(
    blocks: Any, sizes: tuple[Any, ...], apply: Any, samples: tuple[Any, ...]
) -> tuple[Any, ...]:
    """One array for each of the `samples` of one row, of the answers of all blocks."""
    import dask.array as da
    from dask import delayed

    shared = delayed((apply, [answer[:0] for answer in samples]), traverse=False)
    answers = [delayed(_apply_to_block)(shared, block) for block in blocks]

    def joined(i: int, sample: Any) -> Any:
        parts = [
            da.from_delayed(
                answer[i], shape=(size, *sample.shape[1:]), dtype=sample.dtype
            )
            for answer, size in zip(answers, sizes, strict=True)
        ]
        return da.concatenate(parts, axis=0, allow_unknown_chunksizes=True)

    return tuple(joined(i, sample) for i, sample in enumerate(samples))


def _apply_to_block(shared: tuple[Any, Any], block: Any) -> Any:
    apply, empty = shared
    if len(block) == 0:
        return empty
    answer = apply(block)
    return answer if isinstance(answer, tuple) else (answer,)
