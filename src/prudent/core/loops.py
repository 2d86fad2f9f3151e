"""Loops that numba compiles as soon as there is enough work for it.

Loading numba takes half a second, as long as Python needs for thousands of rows. A
short stream is therefore run by Python itself, by the same lines.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cached_property, update_wrapper
from typing import Any

import numpy as np

FEW_ROWS = 4096


class Loop:
    """A function on arrays that runs by itself until it is worth compiling.

    It is compiled where numba is loaded already, or when its calls have seen more than
    `FEW_ROWS` rows. Compiled functions can call it as they call one another.

    Parameters
    ----------
    function : callable
        One that `numba.njit` compiles. Overflow and division by zero have to be as
        harmless in NumPy's numbers as they are in compiled ones.
    rows : int, default=None
        Place of the argument that has the rows; None: each call counts as one row.
    """

    def __init__(self, function: Callable[..., Any], rows: int | None = None) -> None:
        update_wrapper(self, function)
        self.function, self.rows, self.seen = function, rows, 0

    def __call__(self, *arguments: Any) -> Any:
        """Run the loop."""
        if "numba" not in sys.modules:
            self.seen += 1 if self.rows is None else len(arguments[self.rows])
            if self.seen <= FEW_ROWS:
                with np.errstate(all="ignore"):
                    return self.function(*arguments)
        return self.compiled(*arguments)

    @cached_property
    def compiled(self) -> Any:
        """The function as numba compiles it, or has stored it."""
        from numba import njit

        return njit(cache=True)(self.function)

    @property
    def _numba_type_(self) -> Any:
        """Let the compiler take it for what it compiles to."""
        return self.compiled._numba_type_


def loop(rows: int | None = None) -> Callable[[Callable[..., Any]], Loop]:
    """Decorate a function that is to be a `Loop` over the rows of an argument."""
    return lambda function: Loop(function, rows)
