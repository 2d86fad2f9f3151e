"""Which method and fold is running: one live line, or a plain line now and then."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Sequence
from typing import Self

PLAIN_INTERVAL_S = 10.0
LIVE_INTERVAL_S = 0.1


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
