"""The state of `prudent monitor`: whole or as it was, and never overwritten unseen."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from prudent.cli.exits import CommandError, ExitCode
from prudent.cli.output import replacing


def read_state(path: Path) -> tuple[dict[str, Any] | None, bytes | None]:
    """Return the state and the bytes it was read from; None, None for no file."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None, None
    except OSError as error:
        raise CommandError(
            f"cannot read {path}: {error.strerror}. Name another file", ExitCode.MODEL
        ) from error
    try:
        state = json.loads(content)
        if not isinstance(state["format"], int):
            raise TypeError
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise CommandError(
            f"{path} is damaged, or is no state of prudent monitor. Restore it from a "
            "backup, or start a new state",
            ExitCode.MODEL,
        ) from error
    return state, content


def replace_state(path: Path, state: dict[str, Any], before: bytes | None) -> None:
    """Write a state in place of the one that was read, if the file still holds that.

    It is written next to it and renamed: whenever the process ends, the file holds
    the old state or the new one, whole. Two writers wait for each other, and the
    second finds that the file has changed. A link is followed.
    """
    target = path.resolve()
    text = json.dumps(state, allow_nan=False, separators=(",", ":"))
    try:
        with _alone_in(target.parent):
            found = target.read_bytes() if target.exists() else None
            if found != before:
                raise CommandError(
                    f"{path} changed while this ran. Run again", ExitCode.DATA
                )
            with replacing(target) as stream:
                stream.write(text)
                stream.flush()
                os.fsync(stream.fileno())
    except OSError as error:
        raise CommandError(
            f"cannot write {path}: {error.strerror}. No row was counted; make room or "
            "name another file, and run again",
            ExitCode.DATA,
        ) from error


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Hold a lock on a folder, which ends with the process however it ends."""
    try:
        import fcntl
    except ImportError:  # no such lock on this system: the check above remains
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
        if hasattr(os, "fsync"):
            os.fsync(handle)  # the new name itself
    finally:
        os.close(handle)
