"""Methods in a child process, which can be stopped when the time of one is over."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import time
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from prudent.evaluation.evaluate import Evaluation, Progress, Task
    from prudent.evaluation.methods import Method

WORK = "prudent.evaluation.evaluate"
# Seconds that a method has, however long its process took to start.
LEAST = 1.0
# Seconds that a process has to start, to import, and to take over the rows.
LONGEST_START = 60.0


class OutOfTime(RuntimeError):
    """A method did not finish within its time limit."""


def prepare() -> Any:
    """Begin to start the process that children are forked from, and return at once.

    It imports what methods need while this one reads the table. A forked copy of a
    process with running thread pools, such as this one, may hang; that of one that has
    only imported does not. Where there is no such server children import by themselves.
    """
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    from multiprocessing import forkserver

    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["__main__", WORK])
    forkserver.ensure_running()
    return context


class LimitedEvaluation:
    """`evaluate`, one method after another, each stopped after `limit` seconds.

    One child works for all methods that keep their time; the next one takes
    milliseconds to start. What is waited for the first one counts as its time, but a
    method always has a second, or its limit. A method that hangs while it is handed
    over is stopped like one that hangs in its fit.
    """

    def __init__(self, task: Task, limit: float) -> None:
        self._task = task
        self._limit = limit
        self._context = prepare()
        self._child: _Child | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._drop()

    def __call__(self, method: Method, progress: Progress | None = None) -> Evaluation:
        """Evaluate a method; OutOfTime, or what it raises."""
        try:
            waited = 0.0
            if self._child is None:
                begun = time.monotonic()
                self._child = _Child(self._context, self._task.settings.n_jobs)
                waited = time.monotonic() - begun
                self._child.pipe.send(self._task)
                self._wait_for_start(self._child.pipe)
            self._child.pipe.send(method)
            least = min(self._limit, LEAST)
            limit = max(self._limit - waited, least)
            outcome, content = self._answer(self._child.pipe, limit, progress)
        except (EOFError, OSError):
            self._drop()
            raise RuntimeError("the process of this method died") from None
        if outcome == "failed":
            raise content
        result: Evaluation = content
        return result

    def _answer(
        self, pipe: Connection, limit: float, progress: Progress | None
    ) -> tuple[str, Any]:
        end = time.monotonic() + limit
        while pipe.poll(max(0.0, end - time.monotonic())):
            outcome, content = pipe.recv()
            if outcome != "progress":
                return outcome, content
            if progress is not None:
                progress(*content)
        self._drop()
        raise OutOfTime(f"stopped after {self._limit:g} s")

    def _wait_for_start(self, pipe: Connection) -> None:
        longest = max(LONGEST_START, self._limit)
        if not pipe.poll(longest):
            self._drop()
            raise OutOfTime(f"its process did not start within {longest:g} s")
        pipe.recv()

    def _drop(self) -> None:
        if self._child is not None:
            self._child.stop()
        self._child = None


class _Child:
    """A process that waits for the task, and then for methods."""

    def __init__(self, context: Any, n_jobs: int) -> None:
        self.pipe, theirs = context.Pipe()
        self._process = context.Process(
            target=_work, args=(theirs, dict(os.environ)), daemon=n_jobs == 1
        )
        self._process.start()
        theirs.close()

    def stop(self) -> None:
        """Kill it, and the processes that fit its folds."""
        if hasattr(os, "killpg") and self._process.pid is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()
        self._process.join()
        self.pipe.close()


def _work(pipe: Connection, environment: dict[str, str]) -> None:
    os.environ.update(environment)  # the server has that of when it was started
    if hasattr(os, "setsid"):
        os.setsid()  # its processes are stopped with it
    leave_out_native_output()
    with contextlib.suppress(EOFError):  # nobody asks any more
        task = pipe.recv()
        pipe.send("started")
        while True:
            pipe.send(_outcome(pipe.recv(), task, pipe))


def leave_out_native_output() -> None:
    """Send what this process writes to its standard output and error nowhere.

    What a method has to say comes back through the pipe; libraries in C++ log straight
    to the terminal, where a line is redrawn.
    """
    with Path(os.devnull).open("wb") as nowhere:
        for stream in (1, 2):
            os.dup2(nowhere.fileno(), stream)


def _outcome(method: Method, task: Task, pipe: Connection) -> tuple[str, Any]:
    from prudent.evaluation.evaluate import evaluate

    try:
        return "done", evaluate(method, task, lambda *p: pipe.send(("progress", p)))
    except Exception as error:
        # Not every exception survives pickling; its words are what the row needs.
        return "failed", RuntimeError(str(error) or type(error).__name__)
