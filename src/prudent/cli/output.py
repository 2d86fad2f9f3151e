"""Tables out: row after row, to a file that is whole or not there."""

from __future__ import annotations

import csv
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

__all__ = ["write_rows"]


def write_rows(
    columns: Sequence[str], rows: Iterable[Sequence[Any]], output: Path | None
) -> None:
    """Write a CSV table to a file, or to standard output for None."""
    with _opened(output) as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)


@contextmanager
def _opened(output: Path | None) -> Iterator[TextIO]:
    """Write beside the file and take its place at the end, never half-written."""
    if output is None:
        yield sys.stdout
        return
    target = output.resolve()
    is_special = target.exists() and not target.is_file()  # a pipe, a device
    if is_special or not os.access(target.parent, os.W_OK):
        with target.open("w", encoding="utf-8", newline="") as stream:
            yield stream
        return
    beside = target.with_name(f"{target.name}.part")
    try:
        with beside.open("w", encoding="utf-8", newline="") as stream:
            yield stream
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)
