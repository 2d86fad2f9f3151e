"""The rows behind a fit, in the blocks of a dask collection; see `core.rows.Rows`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from prudent.core.rows import LocalRows, Rows, Step

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


@dataclass(frozen=True, eq=False)
class DaskRows(Rows):
    """Blocks that are made anew for each pass, none of them computed yet."""

    blocks: Sequence[Any]  # in row order
    client: Any  # where to compute; None is dask's own scheduler

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

        level = self._made(Step(function, arguments), self._own(each))
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
        apply = delayed(_apply, pure=False)
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
        found = self.client.gather(tasks)
        for positions, values in zip(groups.values(), found, strict=True):
            for i, value in zip(positions, values, strict=True):
                results[i] = value
        return results

    def _transform(self, step: Step, own: list[tuple[Any, ...]]) -> WorkerRows:
        """Each block is made where the old one is."""
        futures = self.client.map(_apply, self.blocks, own, step=step, pure=False)
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


def _apply(block: Any, own: tuple[Any, ...], step: Step) -> Any:
    return step(block, *own)


def _apply_to_group(
    blocks: Sequence[Any], own: Sequence[tuple[Any, ...]], step: Step
) -> list[Any]:
    return [step(block, *item) for block, item in zip(blocks, own, strict=True)]
