"""How many rooms the rows of a table pass through in `compare`, and how often.

Run: python -m tools.trace_compare. A room is a file of prudent of which a function is
given rows: arrays with all columns of the table, or what holds them. Rows enter a room
when a function there gets them while no other function of the room works on them: what
it calls elsewhere and what calls it back from there, as the steps that a base class
asks its subclass for, belong to one visit; and so do several visits with none between
them.

The goal is at most 10 rooms, none of them returned to more than 8 times, for one method
on five folds.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_iris

import prudent

PACKAGE = str(Path(prudent.__file__).parent)


def passes(call: Callable[[], Any], n_features: int) -> list[str]:
    """Files that rows enter during a call, in order, each visit once.

    Rows are two-dimensional and have `n_features` columns; an object whose attribute
    `X`, or whose attribute `rows.X`, holds such rows carries them, too.
    """
    entered: list[str] = []

    def has_rows(value: Any) -> bool:
        shape = getattr(value, "shape", ())
        if len(shape) == 2:
            return bool(shape[1] == n_features and shape[0] > n_features)
        attributes = getattr(value, "__dict__", {})
        inside = attributes.get("X")
        if inside is None:
            rows = attributes.get("rows")
            inside = getattr(rows, "__dict__", {}).get("X")
        return inside is not None and len(np.shape(inside)) == 2

    def watch(frame: Any, event: str, argument: object) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(PACKAGE):
            return
        given = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        is_inside = code.co_filename in callers(frame)
        if not is_inside and any(has_rows(frame.f_locals.get(name)) for name in given):
            entered.append(str(Path(code.co_filename).relative_to(PACKAGE)))

    sys.setprofile(watch)
    try:
        call()
    finally:
        sys.setprofile(None)
    return [room for room, _ in groupby(entered)]


def callers(frame: Any) -> Iterator[str]:
    """Files of the functions that wait for this one."""
    while (frame := frame.f_back) is not None:
        yield frame.f_code.co_filename


def comparison() -> list[str]:
    """Rooms of the comparison of a method of scikit-learn on iris, in five folds."""
    X, y = load_iris(return_X_y=True)

    def call() -> None:
        prudent.compare(X, y, methods=[], baselines=["lda"], cv=5)

    call()  # imports on demand are no rooms
    return passes(call, X.shape[1])


def main() -> None:
    """Print the rooms in the order of the first visit, and the two figures."""
    rooms = Counter(comparison())
    for room, visits in rooms.items():
        print(f"{visits - 1:4} returns  {room}")
    print(f"{len(rooms)} rooms, {max(rooms.values()) - 1} returns to one at most")


if __name__ == "__main__":
    main()
