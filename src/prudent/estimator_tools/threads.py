"""One thread where the work is small."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


def one_thread(user_api: str | None = None) -> AbstractContextManager[Any]:
    """One thread in the numerical libraries, or in those of one kind ("blas").

    Threads that wait for one another cost up to 40 times as much where work is small.
    """
    return _controller().limit(limits=1, user_api=user_api)


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # looking for the libraries takes milliseconds
