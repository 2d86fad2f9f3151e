"""Blocks that stay in the memory of the workers while an iterative method runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from prudent.calibration.blocks import Blocks, LocalBlocks
from prudent.dask.chunks import Chunks

__all__ = ["WorkerBlocks", "resident"]


def resident(chunks: Chunks) -> Blocks:
    """The blocks of a collection in memory: of the workers, or without a client here.

    A lost block is made anew from the collection.
    """
    if chunks.client is None:
        return LocalBlocks(chunks.compute(chunks.blocks))
    return WorkerBlocks(chunks.client.compute(list(chunks.blocks)), chunks.client)


@dataclass(frozen=True, eq=False)
class WorkerBlocks:
    """Blocks in the memory of dask's workers; see `Blocks`.

    Attributes
    ----------
    futures : sequence of distributed.Future
        One for each block.
    client : distributed.Client
    """

    futures: Sequence[Any]
    client: Any

    def map(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """`function(block, *arguments)` of every block in order, a task per worker.

        A task is bound to its worker only loosely: when the worker is lost, it runs
        where its blocks are made anew.
        """
        groups = self._by_worker()
        tasks = [
            self.client.submit(
                _map_group,
                [self.futures[i] for i in positions],
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

    def transform(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        each: Sequence[Any] | None = None,
    ) -> WorkerBlocks:
        """As `Blocks.transform`; each block is made where the old one is."""
        own = [()] * len(self.futures) if each is None else [(item,) for item in each]
        futures = self.client.map(
            _map_one,
            self.futures,
            own,
            function=function,
            arguments=arguments,
            pure=False,
        )
        return WorkerBlocks(futures, self.client)

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


def _map_group(
    blocks: Sequence[Any], function: Callable[..., Any], arguments: tuple[Any, ...]
) -> list[Any]:
    return [function(block, *arguments) for block in blocks]


def _map_one(
    block: Any,
    own: tuple[Any, ...],
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
) -> Any:
    return function(block, *arguments, *own)
