"""Ratios of CPU time, one thread, measured interleaved in one process."""

from __future__ import annotations

import resource
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Workload:
    """One line of the table: `ours` may cost at most `goal` times `peer`."""

    name: str
    ours: Callable[[], Any]
    peer_name: str
    peer: Callable[[], Any]
    goal: float
    repeats: int = 5

    def ratio(self) -> float:
        """Least CPU time of ours over least CPU time of the peer."""
        ours = peer = float("inf")
        self.ours(), self.peer()  # compile and warm the caches
        for _ in range(self.repeats):
            ours = min(ours, cpu_time(self.ours))
            peer = min(peer, cpu_time(self.peer))
        return ours / peer


def cpu_so_far() -> float:
    """CPU seconds of this process and of the children that have ended."""
    uses = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(use.ru_utime + use.ru_stime for use in uses)


def cpu_time(function: Callable[[], Any], least: float = 0.05) -> float:
    """CPU seconds of one call, averaged over enough calls to fill `least`."""
    calls = 0
    start = cpu_so_far()
    while True:
        function()
        calls += 1
        spent = cpu_so_far() - start
        if spent >= least:
            return spent / calls
