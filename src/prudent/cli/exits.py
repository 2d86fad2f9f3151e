"""How a command ends: the exit codes, and the errors that carry one."""

from __future__ import annotations

from enum import IntEnum


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
