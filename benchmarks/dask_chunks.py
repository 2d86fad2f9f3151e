"""What dask costs: work against the number of chunks, and a pass against one process.

python -m benchmarks.dask_chunks

A cluster of two worker processes of one thread each; client and scheduler are this
process. CPU time is that of all three, wall time the least of several runs. The rows
lie in the workers' memory before the clocks start.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import dask.array as da
import numpy as np
from dask import delayed
from distributed import Client, LocalCluster, wait

from prudent import ClassMoments, MinimaxProbabilityClassifier
from prudent.dask import fit

WORKERS = 2
FEATURES = 20
# Chunks so small that the work on them is nothing.
TINY = 100
CHUNKS = (100, 1_000, 10_000)
LARGE_ROWS = 2_000_000
LARGE_CHUNKS = 40
REPEATS = 3


@contextmanager
def cluster() -> Iterator[Client]:
    with (
        LocalCluster(
            n_workers=WORKERS, threads_per_worker=1, dashboard_address=None
        ) as local,
        Client(local) as client,
    ):
        yield client


def table(n_rows: int, n_chunks: int, client: Client) -> tuple[Any, Any]:
    """Two shifted classes, persisted on the workers."""
    size = n_rows // n_chunks
    X = da.random.default_rng(0).normal(
        size=(n_rows, FEATURES), chunks=(size, FEATURES)
    )
    y = (X[:, 0] > 0).astype(np.int64)
    X, y = client.persist([X, y])
    wait([X, y])
    return X, y


def cost(
    function: Callable[[], Any], client: Client | None, repeats: int
) -> tuple[float, float]:
    """Least CPU time of all processes, and least wall time, of several calls."""
    cpu, wall = [], []
    for _ in range(repeats):
        start, start_cpu = time.perf_counter(), _cpu(client)
        function()
        wall.append(time.perf_counter() - start)
        cpu.append(_cpu(client) - start_cpu)
    return min(cpu), min(wall)


def _cpu(client: Client | None) -> float:
    here = time.process_time()
    return (
        here if client is None else here + sum(client.run(time.process_time).values())
    )


def per_chunk(n_chunks: int, client: Client) -> str:
    """Say what a chunk costs: a task that does nothing, and the fit of a tiny chunk."""
    repeats = 1 if n_chunks > CHUNKS[1] else REPEATS
    tasks = [delayed(int)(number) for number in range(n_chunks)]
    empty = cost(lambda: client.gather(client.compute(tasks)), client, repeats)
    X, y = table(TINY * n_chunks, n_chunks, client)
    fitted = cost(lambda: fit(MinimaxProbabilityClassifier(), X, y), client, repeats)
    cells = [f"{1e3 * s / n_chunks:.1f}" for s in (*empty, *fitted)]
    return (
        f"{n_chunks:6,} chunks, ms a chunk: empty task {cells[0]} CPU, "
        f"{cells[1]} wall; fit of a tiny chunk {cells[2]} CPU, {cells[3]} wall"
    )


def against_one_process(client: Client) -> str:
    """Say what one pass over large chunks costs, on the cluster and here."""
    X, y = table(LARGE_ROWS, LARGE_CHUNKS, client)
    fit(MinimaxProbabilityClassifier(), X, y)  # compile on the workers
    there = cost(lambda: fit(MinimaxProbabilityClassifier(), X, y), client, REPEATS)
    blocks = [
        (rows.compute(), labels.compute())
        for rows, labels in zip(X.blocks, y.blocks, strict=True)
    ]

    def one_process() -> Any:
        parts = (ClassMoments.from_arrays(rows, labels) for rows, labels in blocks)
        return MinimaxProbabilityClassifier().fit_moments(ClassMoments.reduce(parts))

    one_process()
    here = cost(one_process, None, REPEATS)
    return (
        f"one pass over {LARGE_ROWS:,} x {FEATURES} in {LARGE_CHUNKS} chunks: "
        f"{there[0]:.2f} s CPU, {there[1]:.2f} s wall on {WORKERS} workers; "
        f"{here[0]:.2f} s CPU, {here[1]:.2f} s wall in one process"
    )


def main() -> None:
    """Print each line as soon as it is measured."""
    warnings.simplefilter("ignore")  # small chunks are what is measured
    with cluster() as client:
        print(against_one_process(client), flush=True)
        for n_chunks in CHUNKS:
            print(per_chunk(n_chunks, client), flush=True)


if __name__ == "__main__":
    main()
