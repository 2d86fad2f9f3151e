"""Results out: tables, progress and files, and how a command ends."""

from __future__ import annotations

import csv
import json
import os
import shutil
import sys
import textwrap
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from enum import IntEnum
from pathlib import Path
from typing import Any, Self

from prudent.io.errors import NO_BREAK, aligned, unbroken
from prudent.io.replacing import replacing, write_whole

# A report takes half of it at most.
LEAST_FREE_BYTES = 1_000_000
STDOUT = "-"
# Seconds between two words on what is running: to a file or pipe, to a terminal.
PLAIN_INTERVAL_S = 10.0
LIVE_INTERVAL_S = 0.1
_is_quiet = ContextVar("is_quiet", default=False)
_told: set[str] = set()
# How scikit-learn's encoder speaks of them, naming columns by their places.
UNKNOWN_WORDS = "Found unknown categories in columns"


def forget_notes() -> None:
    """Begin a command: what an earlier one said may be said again."""
    _told.clear()


def set_quiet(quiet: bool) -> bool:
    """Leave notes out from now on, or not: what --quiet asks for."""
    _is_quiet.set(quiet)
    return quiet


def note(text: str, *, always: bool = False) -> None:
    """Say something on stderr that is no result; `always` even if --quiet is given.

    A command says the same only once.
    """
    if text.startswith(UNKNOWN_WORDS):
        text = "some words were not in the rows of the fit: they count as rare ones"
    if text not in _told and (always or not _is_quiet.get()):
        print(f"note: {text}", file=sys.stderr)
    _told.add(text)


@contextmanager
def native_output_left_out() -> Iterator[None]:
    """Keep off the terminal what libraries log by themselves while a method is fitted.

    They write to the descriptors of standard output and error, or print; what is told
    through `sys.stderr`, warnings and progress among it, still gets there.
    """
    try:
        is_real = [sys.stdout.fileno(), sys.stderr.fileno()] == [1, 2]
    except (OSError, ValueError):  # a notebook, or a test that captures
        is_real = False
    if not is_real:
        yield
        return
    python_stderr = sys.stderr
    sys.stdout.flush()
    python_stderr.flush()
    kept = [os.dup(stream) for stream in (1, 2)]
    encoding = python_stderr.encoding
    with (
        Path(os.devnull).open("wb") as nowhere,
        os.fdopen(os.dup(2), "w", buffering=1, encoding=encoding) as console,
    ):
        sys.stderr = console
        try:
            for stream in (1, 2):
                os.dup2(nowhere.fileno(), stream)
            yield
        finally:
            sys.stdout.flush()
            for stream, copy in zip((1, 2), kept, strict=True):
                os.dup2(copy, stream)
                os.close(copy)
            sys.stderr = python_stderr


def check_writable(files: Any) -> Any:
    """Refuse outputs that cannot be written, before any work is done."""
    for file in files if isinstance(files, list) else [files]:
        if file is None or file == STDOUT:
            continue
        path = Path(file)
        existed = path.exists()
        with ending(
            f"cannot write {path}: {{}}. Name another file", ExitCode.DATA, OSError
        ):
            with path.open("ab"):
                pass
            if not existed:
                path.unlink()
            free = shutil.disk_usage(path.absolute().parent).free
        if free < LEAST_FREE_BYTES:
            raise CommandError(
                f"cannot write {path}: the disk is full. Free space or name another "
                "file",
                ExitCode.DATA,
            )
    return files


def write_json(content: Any, file: str | None) -> bool:
    """Write JSON where it is asked for; whether standard output is taken by it."""
    if file is None:
        return False
    text = json.dumps(content, indent=1, allow_nan=False)
    if file == STDOUT:
        print(text)
        return True
    write_whole(file, text + "\n")
    return False


def write_report(page: str, report: Path) -> None:
    """Write a page, and say where it is."""
    write_whole(report, page)
    note(f"report: {report}")


def print_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    dispensable: Sequence[str] = (),
) -> None:
    """Print a table on stdout, plain columns where no width is given.

    A terminal has one, and so has what is piped where COLUMNS says it: cells that are
    wider go on in the next line at a blank, for half a number is another number.
    `dispensable` are columns that go, in this order, where that is not enough.
    """
    table = [[*map(str, cells)] for cells in zip(columns, *rows, strict=True)]
    if not sys.stdout.isatty() and not os.environ.get("COLUMNS"):
        print("\n".join(aligned([*zip(*table, strict=True)])))
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    width = Console().width
    left_out: list[str] = []
    widths = _widths(table, width)
    for name in dispensable:
        if _taken(widths) <= width:
            break
        left_out.append(name)
        table = [column for column in table if column[0] != name]
        widths = _widths(table, width)
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    # Text, not markup: a label such as [red] must come out as it is.
    texts = [
        [Text(_wrapped(cell, room)) for cell in column]
        for column, room in zip(table, widths, strict=True)
    ]
    for head, *_ in texts:
        shown.add_column(head, no_wrap=True)
    for cells in zip(*(column[1:] for column in texts), strict=True):
        shown.add_row(*cells)
    # What is wider still goes on in the next line of the terminal.
    Console(highlight=False, width=max(width, _taken(widths))).print(shown)
    if left_out:
        text = (
            f"Left out for want of width: {', '.join(left_out)}; a wider terminal "
            "shows them."
        )
        print(_wrapped(text, width))


def _widths(table: Sequence[Sequence[str]], room: int) -> list[int]:
    """Widths of columns: the widest narrowed first, none below its longest word."""
    widths = [max(map(len, column)) for column in table]
    least = [
        max(len(word) for cell in column for word in unbroken(cell).split(" "))
        for column in table
    ]
    while _taken(widths) > room and widths != least:
        wide = [j for j, width in enumerate(widths) if width > least[j]]
        widths[max(wide, key=widths.__getitem__)] -= 1
    return widths


def _taken(widths: Sequence[int]) -> int:
    """Room that columns take with the blanks between and beside them."""
    return sum(widths) + 2 * len(widths)


def _wrapped(text: str, width: int) -> str:
    """Lines of a text that go on at blanks alone, none of them inside a figure."""
    lines = textwrap.wrap(
        unbroken(text), width, break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(lines).replace(NO_BREAK, " ")


def write_rows(
    columns: Sequence[str], rows: Iterable[Sequence[Any]], output: Path | None
) -> None:
    """Write a CSV table to a file, or to standard output for None."""
    to_stdout = nullcontext(sys.stdout)
    with to_stdout if output is None else replacing(output) as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)


class Progress:
    """Shows on stderr what a comparison is doing, from a thread of its own.

    The thread speaks even while one fit takes hours: the running method and fold
    are always named. A terminal gets one line, redrawn; a file or a pipe gets a
    plain line every ten seconds.
    """

    def __init__(self, methods: Sequence[str], *, quiet: bool = False) -> None:
        self._methods = methods
        self._quiet = quiet
        self._live = sys.stderr.isatty()
        self._started = time.monotonic()
        self._state = ""
        self._finished = threading.Event()
        self._thread = threading.Thread(target=self._speak, daemon=True)

    def __enter__(self) -> Self:
        if not self._quiet:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._finished.set()
        if not self._quiet:
            self._thread.join()

    def update(self, method: str, fold: int, n_folds: int) -> None:
        """Say that `fold` of `n_folds` of `method` has begun."""
        number = f"{self._methods.index(method) + 1}/{len(self._methods)}"
        self._state = f"{number} {method}   fold {fold}/{n_folds}"

    def _speak(self) -> None:
        if not self._live:
            while not self._finished.wait(PLAIN_INTERVAL_S):
                print(self._line(), file=sys.stderr, flush=True)
            return
        from rich.console import Console
        from rich.live import Live
        from rich.text import Text

        with Live(console=Console(stderr=True), transient=True) as live:
            while not self._finished.wait(LIVE_INTERVAL_S):
                live.update(Text(self._line()))

    def _line(self) -> str:
        elapsed = time.monotonic() - self._started
        return f"{self._state or 'starting'}   {elapsed:.1f} s"


# --- how a command ends ---------------------------------------------------------------


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
