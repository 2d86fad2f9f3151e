"""The rows behind a fit, in the blocks of a dask collection; see `core.rows.Rows`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, Self

from prudent.core.rows import LocalRows, Rows

FAN_IN = 16  # a power of two, see `DaskRows.reduce`


def require_dask() -> Any:
    """The dask package, or an error that says how to get it."""
    try:
        import dask
    except ImportError as error:
        raise ImportError(
            "prudent.dask needs dask; install it with: pip install 'prudent[dask]'"
        ) from error
    return dask


class _Elsewhere:
    """What holds of all blocks that are not in this process."""

    @property
    def in_one_place(self) -> bool:
        """As `Rows.in_one_place`."""
        return False

    def of_class(self, k: int) -> NoReturn:
        """As `Rows.of_class`: refused."""
        raise TypeError(
            "the rows of a class do not come to one place from blocks; choose settings "
            "that need sums over the rows only."
        )


@dataclass(frozen=True, eq=False)
class DaskRows(_Elsewhere):
    """Blocks that are made anew for each pass, none of them computed yet."""

    blocks: Sequence[Any]  # in row order
    client: Any  # where to compute; None is dask's own scheduler

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return len(self.blocks)

    def map(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        each: Sequence[Any] | None = None,
    ) -> list[Any]:
        """As `Rows.map`: only the results travel here."""
        return list(self.compute(self._mapped(function, arguments, each)))

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

        level = self._mapped(function, arguments, each)
        while len(level) > 1:
            level = [
                delayed(combine, pure=False)(level[i : i + FAN_IN])
                for i in range(0, len(level), FAN_IN)
            ]
        return self.compute(level)[0]

    def transform(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        each: Sequence[Any] | None = None,
    ) -> DaskRows:
        """As `Rows.transform`, worked out when a pass asks for it."""
        return DaskRows(self._mapped(function, arguments, each), self.client)

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

    def _mapped(
        self,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
        each: Sequence[Any] | None,
    ) -> list[Any]:
        from dask import delayed

        # One node of the graph: a fitted model is not copied into every task.
        shared = delayed((function, arguments), pure=False, traverse=False)
        apply = delayed(_apply, pure=False)
        if each is None:
            return [apply(shared, block) for block in self.blocks]
        return [
            apply(shared, block, item)
            for block, item in zip(self.blocks, each, strict=True)
        ]


@dataclass(frozen=True, eq=False)
class WorkerRows(_Elsewhere):
    """Blocks that stay in the memory of dask's workers while many passes run."""

    futures: Sequence[Any]  # one for each block
    client: Any

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return len(self.futures)

    def map(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        each: Sequence[Any] | None = None,
    ) -> list[Any]:
        """As `Rows.map`, one task per worker.

        A task is bound to its worker only loosely: when the worker is lost, it runs
        where its blocks are made anew.
        """
        own = self._own(each)
        groups = self._by_worker()
        tasks = [
            self.client.submit(
                _map_group,
                [self.futures[i] for i in positions],
                [own[i] for i in positions],
                function,
                arguments,
                workers=None if worker is None else [worker],
                allow_other_workers=worker is not None,
                pure=False,
            )
            for worker, positions in groups.items()
        ]
        results: list[Any] = [None] * len(self.futures)
        found = self.client.gather(tasks)
        for positions, values in zip(groups.values(), found, strict=True):
            for i, value in zip(positions, values, strict=True):
                results[i] = value
        return results

    def reduce(
        self,
        function: Callable[..., Any],
        combine: Callable[[Sequence[Any]], Any],
        *arguments: Any,
        each: Sequence[Any] | None = None,
    ) -> Any:
        """As `Rows.reduce`, combined here."""
        return combine(self.map(function, *arguments, each=each))

    def transform(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        each: Sequence[Any] | None = None,
    ) -> Self:
        """As `Rows.transform`; each block is made where the old one is."""
        futures = self.client.map(
            _map_one,
            self.futures,
            self._own(each),
            function=function,
            arguments=arguments,
            pure=False,
        )
        return type(self)(futures, self.client)

    def _own(self, each: Sequence[Any] | None) -> list[tuple[Any, ...]]:
        """What each block is given in addition to the common arguments."""
        return [()] * self.n_blocks if each is None else [(item,) for item in each]

    def _by_worker(self) -> dict[str | None, list[int]]:
        """Positions of the blocks that each worker holds, None if none does now."""
        from distributed import wait

        with self.client.as_current():  # `wait` asks for the current client
            wait(self.futures)
        holders = self.client.who_has(self.futures)
        groups = defaultdict(list)
        for i, future in enumerate(self.futures):
            groups[next(iter(holders[future.key]), None)].append(i)
        return dict(groups)


def _apply(
    shared: tuple[Callable[..., Any], tuple[Any, ...]], block: Any, *own: Any
) -> Any:
    function, arguments = shared
    return function(block, *arguments, *own)


def _map_group(
    blocks: Sequence[Any],
    own: Sequence[tuple[Any, ...]],
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
) -> list[Any]:
    pairs = zip(blocks, own, strict=True)
    return [function(block, *arguments, *item) for block, item in pairs]


def _map_one(
    block: Any,
    own: tuple[Any, ...],
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
) -> Any:
    return function(block, *arguments, *own)
