"""How a command ends: the exit codes, and the errors that carry one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path


class ExitCode(IntEnum):
    """Exit codes of `prudent`."""

    SUCCESS = 0
    PARTIAL = 1
    USAGE = 2
    DATA = 3
    MODEL = 4
    ALL_FAILED = 5
    LIMIT = 6
    BROKEN_PROMISE = 7
    DRIFT = 8
    INTERRUPTED = 130


class CommandError(Exception):
    """Ends a command with one sentence on stderr, and a code of the process."""

    def __init__(self, message: str, code: ExitCode) -> None:
        super().__init__(message)
        self.code = code


class UsageError(CommandError):
    """The command was typed wrong."""

    def __init__(self, message: str) -> None:
        super().__init__(message, ExitCode.USAGE)


@contextmanager
def ending(message: str, code: ExitCode, *errors: type[Exception]) -> Iterator[None]:
    """End the command where one of `errors` is raised, ValueError if none is named.

    In the message {} stands for what the error says, of a file its reason alone; inside
    a sentence it loses its full stop.
    """
    expected = errors or (ValueError,)
    try:
        yield
    except CommandError:
        raise
    except expected as error:
        reason = getattr(error, "strerror", None) or str(error)
        reason = reason if message == "{}" else reason.rstrip(".")
        raise CommandError(message.replace("{}", reason), code) from error


def content_of(path: Path, code: ExitCode = ExitCode.MODEL, hint: str = "") -> bytes:
    """All of a file that was named; ends the command where it cannot be read."""
    with ending(f"cannot read {path}: {{}}{hint}", code, OSError):
        return path.read_bytes()
