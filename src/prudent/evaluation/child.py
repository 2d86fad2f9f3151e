"""Methods in a child process, which can be stopped when the time of one is over."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import time
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Self

from prudent.evaluation.evaluate import Evaluation, Progress, Task, evaluate
from prudent.evaluation.methods import Method


class OutOfTime(RuntimeError):
    """A method did not finish within its time limit."""


class LimitedEvaluation:
    """`evaluate`, one method after another, each stopped after `limit` seconds.

    The clock of a method starts when the child begins to work on it: starting Python
    and importing the packages is not the method's time. One child works for all
    methods that keep their time; the next one is started while a slow method still
    runs, so that stopping it costs no start.
    """

    def __init__(self, task: Task, limit: float) -> None:
        self._task = task
        self._limit = limit
        self._child: _Child | None = None
        self._spare: _Child | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for child in (self._child, self._spare):
            if child is not None:
                child.stop()

    def __call__(self, method: Method, progress: Progress | None = None) -> Evaluation:
        """Evaluate a method.

        Raises
        ------
        OutOfTime
            If the limit is reached.
        Exception
            Whatever the method raises.
        """
        if self._child is None:
            self._child, self._spare = self._spare or _Child(self._task), None
            self._child.pipe.send(self._task)
        try:
            self._child.pipe.send(method)
            kind, content = self._answer(self._child.pipe, progress)
        except (EOFError, OSError):
            self._drop()
            raise RuntimeError("the process of this method died") from None
        if kind == "failed":
            raise content
        result: Evaluation = content
        return result

    def _answer(self, pipe: Connection, progress: Progress | None) -> tuple[str, Any]:
        started: float | None = None
        while True:
            wait = None
            if started is not None:
                passed = time.monotonic() - started
                until = self._limit / 2 if self._spare is None else self._limit
                wait = max(0.0, until - passed)
            if not pipe.poll(wait):
                if self._spare is None:
                    self._spare = _Child(self._task)
                    continue
                self._drop()
                raise OutOfTime(f"stopped after {self._limit:g} s")
            kind, content = pipe.recv()
            if kind == "started":
                started = time.monotonic()
            elif kind != "progress":
                return kind, content
            elif progress is not None:
                progress(*content)

    def _drop(self) -> None:
        assert self._child is not None
        self._child.stop()
        self._child = None


class _Child:
    """A process that waits for a task, and then for methods."""

    def __init__(self, task: Task) -> None:
        # "spawn": a forked copy of a process with running thread pools may hang.
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self._process = context.Process(
            target=_work, args=(theirs,), daemon=task.n_jobs == 1
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


def _work(pipe: Connection) -> None:
    if hasattr(os, "setsid"):
        os.setsid()  # its processes are stopped with it
    with contextlib.suppress(EOFError):  # nobody asks any more
        task = pipe.recv()
        while True:
            method = pipe.recv()
            pipe.send(("started", None))
            pipe.send(_outcome(method, task, pipe))


def _outcome(method: Method, task: Task, pipe: Connection) -> tuple[str, Any]:
    try:
        return "done", evaluate(method, task, lambda *p: pipe.send(("progress", p)))
    except Exception as error:
        # Not every exception survives pickling; its words are what the row needs.
        return "failed", RuntimeError(str(error) or type(error).__name__)
