"""What dask costs: time against the number of chunks, and a pass against one process.

python -m benchmarks.dask_chunks

Wall time, the least of several runs, on a cluster of two worker processes of one
thread each. The rows lie in the workers' memory before the clock starts.
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
from rich.console import Console
from rich.table import Table

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


def least(function: Callable[[], Any], repeats: int = REPEATS) -> float:
    """Least wall time of several calls."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def per_chunk(n_chunks: int, client: Client) -> tuple[float, float]:
    """Milliseconds a chunk: tasks that do nothing, and a fit of tiny chunks."""
    tasks = [delayed(int)(number) for number in range(n_chunks)]
    empty = least(lambda: client.gather(client.compute(tasks)), repeats=1)
    X, y = table(TINY * n_chunks, n_chunks, client)
    repeats = 1 if n_chunks > CHUNKS[1] else REPEATS
    fitted = least(lambda: fit(MinimaxProbabilityClassifier(), X, y), repeats)
    return 1e3 * empty / n_chunks, 1e3 * fitted / n_chunks


def against_one_process(client: Client) -> tuple[float, float]:
    """Seconds of one pass over large chunks: on the cluster, and in this process."""
    X, y = table(LARGE_ROWS, LARGE_CHUNKS, client)
    there = least(lambda: fit(MinimaxProbabilityClassifier(), X, y))
    blocks = [
        (rows.compute(), labels.compute())
        for rows, labels in zip(X.blocks, y.blocks, strict=True)
    ]

    def here() -> Any:
        parts = (ClassMoments.from_arrays(rows, labels) for rows, labels in blocks)
        return MinimaxProbabilityClassifier().fit_moments(ClassMoments.reduce(parts))

    return there, least(here)


def main() -> None:
    """Print both tables."""
    warnings.simplefilter("ignore")  # small chunks are what is measured
    shown = Table("chunks", "empty task, ms a chunk", "fit of tiny chunks, ms a chunk")
    with cluster() as client:
        for n_chunks in CHUNKS:
            empty, fitted = per_chunk(n_chunks, client)
            shown.add_row(f"{n_chunks:,}", f"{empty:.2f}", f"{fitted:.2f}")
        there, here = against_one_process(client)
    console = Console()
    console.print(shown)
    console.print(
        f"one pass over {LARGE_ROWS:,} x {FEATURES} in {LARGE_CHUNKS} chunks: "
        f"{there:.3f} s on {WORKERS} workers, {here:.3f} s in one process "
        f"(ratio {there / here:.2f})"
    )


if __name__ == "__main__":
    main()
