"""Watchers against river's drift detectors and a Kolmogorov-Smirnov test.

river is looked for and left out where it is not installed. DDM, EDDM and
Page-Hinkley state no level of wrong alarms; ADWIN's is per look.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec

import numpy as np
from scipy.stats import ks_2samp

from benchmarks.timing import Workload
from prudent import DriftMonitor, Guarantee, PromiseMonitor

PROMISE = Guarantee(quantity="error rate", bound=0.05, sense="<=")


def stream(n: int, rate: float = 0.05, seed: int = 0) -> np.ndarray:
    return (np.random.default_rng(seed).random(n) < rate).astype(float)


def one_by_one(make: Callable[[], object], losses: np.ndarray) -> Callable[[], object]:
    """Feed a detector of river row by row."""
    values = losses.tolist()

    def run() -> object:
        detector = make()
        for value in values:
            detector.update(value)  # type: ignore[attr-defined]
        return detector

    return run


def river_workloads() -> Iterator[Workload]:
    from river.drift import ADWIN, PageHinkley
    from river.drift.binary import DDM

    losses = stream(1_000_000)
    peers = (("ADWIN", ADWIN, 7.5), ("PageHinkley", PageHinkley, 20), ("DDM", DDM, 18))
    for name, make, times in peers:
        yield Workload(
            name="1 000 000 losses in one array",
            ours=lambda: PromiseMonitor(PROMISE).update(losses),
            peer_name=f"river {name}, one by one",
            peer=one_by_one(make, losses),
            goal=1 / times,
            repeats=3,
        )
    few = stream(5000)
    yield Workload(
        name="5000 losses one by one",
        ours=one_by_one(lambda: PromiseMonitor(PROMISE), few),
        peer_name="river ADWIN, one by one",
        peer=one_by_one(ADWIN, few),
        goal=20,
    )


def workloads() -> Iterator[Workload]:
    if find_spec("river") is not None:
        yield from river_workloads()
    rng = np.random.default_rng(0)
    reference, rows = rng.normal(size=1000), rng.normal(size=1000)
    monitor = DriftMonitor(random_state=0).fit(reference)
    yield Workload(
        name="drift of 1000 rows x 1 column",
        ours=lambda: monitor.update(rows),
        peer_name="two-sample Kolmogorov-Smirnov test",
        peer=lambda: ks_2samp(reference, rows),
        goal=1,
    )
