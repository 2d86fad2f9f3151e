"""Files that hold the old content or the new one, whole, at every moment."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any


@contextmanager
def replacing(path: Path, *, binary: bool = False) -> Iterator[IO[Any]]:
    """Write next to a file and take its place at the end; else it is as it was.

    A link is followed, and the permissions of the file stay. A pipe or a device is
    written to directly, and so is a file in a folder that takes no other.
    """
    target = path.resolve()
    text = {} if binary else {"encoding": "utf-8", "newline": ""}
    mode = "wb" if binary else "w"
    is_special = target.exists() and not target.is_file()
    if is_special or not os.access(target.parent, os.W_OK):
        with target.open(mode, **text) as stream:  # type: ignore[call-overload]
            yield stream
        return
    part = target.with_name(f"{target.name}.part")
    try:
        with part.open(mode, **text) as stream:  # type: ignore[call-overload]
            yield stream
        if target.exists():
            shutil.copymode(target, part)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def write_whole(path: Path | str, content: str | bytes) -> None:
    """Write a file in place of what is there, if anything; text as UTF-8."""
    is_binary = isinstance(content, bytes)
    with replacing(Path(path), binary=is_binary) as stream:
        stream.write(content)
