"""How much memory a table may take here."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["available_memory"]

MEMINFO = Path("/proc/meminfo")
CGROUP = Path("/sys/fs/cgroup")


def available_memory() -> int | None:
    """Bytes that can be taken without swapping; None where that is unknown.

    On Linux what the kernel calls available, and no more than a container may
    still take; elsewhere the free pages.
    """
    limits = [
        limit for limit in (_available(), _left_to_container()) if limit is not None
    ]
    return min(limits) if limits else _free_pages()


def _available() -> int | None:
    try:
        return _field(MEMINFO, "MemAvailable:") * 1024
    except (OSError, LookupError):
        return None


def _left_to_container() -> int | None:
    try:
        limit = int((CGROUP / "memory.max").read_text())
        used = int((CGROUP / "memory.current").read_text())
        # Pages of files that were read are given up when memory is asked for.
        return limit - used + _field(CGROUP / "memory.stat", "inactive_file")
    except (OSError, LookupError, ValueError):  # no such file, or "max": no limit
        return None


def _free_pages() -> int | None:
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def _field(path: Path, name: str) -> int:
    for line in path.read_text().splitlines():
        if line.startswith(f"{name} "):
            return int(line.split()[1])
    raise LookupError(f"{path} has no {name}")
