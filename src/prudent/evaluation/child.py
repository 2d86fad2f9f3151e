"""A method in a child process, which can be stopped when its time is over."""

from __future__ import annotations

import multiprocessing
import time
from multiprocessing.connection import Connection

from prudent.evaluation.evaluate import Evaluation, Progress, Task, evaluate
from prudent.evaluation.methods import Method


class OutOfTime(RuntimeError):
    """A method did not finish within its time limit."""


def evaluate_within(
    limit: float, method: Method, task: Task, progress: Progress | None
) -> Evaluation:
    """`evaluate`, stopped after `limit` seconds.

    The clock starts when the child begins to work: starting Python and importing
    the packages is not the method's time.

    Raises
    ------
    OutOfTime
        If the limit is reached.
    Exception
        Whatever the method raises.
    """
    # "spawn": a forked copy of a process with running thread pools may hang.
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(
        target=_work, args=(sender, method, task), daemon=task.n_jobs == 1
    )
    child.start()
    sender.close()
    try:
        return _receive(receiver, limit, progress)
    finally:
        child.kill()
        child.join()
        receiver.close()


def _receive(
    receiver: Connection, limit: float, progress: Progress | None
) -> Evaluation:
    deadline = None
    while True:
        wait = None if deadline is None else max(0.0, deadline - time.monotonic())
        if not receiver.poll(wait):
            raise OutOfTime(f"stopped after {limit:g} s")
        try:
            kind, content = receiver.recv()
        except EOFError:
            raise RuntimeError("the process of this method died") from None
        if kind == "started":
            deadline = time.monotonic() + limit
        elif kind == "progress":
            if progress is not None:
                progress(*content)
        elif kind == "failed":
            raise content
        else:
            result: Evaluation = content
            return result


def _work(sender: Connection, method: Method, task: Task) -> None:
    sender.send(("started", None))

    def report(*progress: object) -> None:
        sender.send(("progress", progress))

    try:
        sender.send(("done", evaluate(method, task, report)))
    except Exception as error:
        # Not every exception survives pickling; its words are what the row needs.
        sender.send(("failed", RuntimeError(str(error) or type(error).__name__)))
