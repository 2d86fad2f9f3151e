"""What is wrong with a table, said in one sentence, and the words it is said with."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Sequence

LONGEST_VALUE = 64
MOST_NAMES = 5
NO_BREAK = "\u00a0"
# The blank between a figure and its unit, or between its thousands.
INSIDE_A_FIGURE = re.compile(r"(?<=\d) (?=(?:%|(?:\d{3}|ms|µs|s|min|h|kB|MB|GB)\b))")


class TableError(ValueError):
    """A table that cannot be used; the message says what, where and what to try."""


class NoFileError(TableError, FileNotFoundError):
    """There is no such file."""

    __str__ = Exception.__str__  # the sentence alone, without an error number


def cut(value: object, longest: int = LONGEST_VALUE) -> str:
    """Shorten a value of the user's, so that it cannot fill the page."""
    text = str(value)
    return text if len(text) <= longest else text[: longest - 1] + "…"


def shown(value: object) -> str:
    """Quote a value of the user's, cut to 64 characters."""
    return repr(cut(value))


def listed(values: Iterable[object]) -> str:
    """List at most five values, then say how many are left."""
    names = [" ".join(str(value)[:LONGEST_VALUE].split()) for value in values]
    rest = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {rest} more" if rest > 0 else "")


def typed(name: str) -> str:
    """Return a name as a shell takes it; one of several lines only for the eye.

    Examples
    --------
    >>> typed("sample no")
    "'sample no'"
    """
    in_short = listed([name])
    return shlex.quote(name) if in_short == name else in_short


def thousands(count: int) -> str:
    """Group digits by spaces: 1 234 567."""
    return f"{count:,}".replace(",", " ")


def percent(share: float | None, digits: int | None = 0) -> str:
    """A share with so many decimals, None: as few as it has; a dash for no share."""
    if share is None:
        return "–"
    return f"{100 * share:.4g} %" if digits is None else f"{100 * share:.{digits}f} %"


def unbroken(text: str) -> str:
    """Keep each figure and its unit on one line, where lines are broken at blanks.

    Examples
    --------
    >>> len(unbroken("5.8 % of 1 463 rows").split(" "))
    4
    """
    return INSIDE_A_FIGURE.sub(NO_BREAK, text)


def counted(count: int, noun: str) -> str:
    """Say a count with its noun."""
    plural = noun + ("es" if noun.endswith("s") else "s")
    return f"{thousands(count)} {noun if count == 1 else plural}"


def aligned(
    lines: Sequence[Sequence[str]], paint: Callable[[str], str] = str
) -> list[str]:
    """Lines of text from lines of cells, the columns two blanks apart.

    `paint` may put marks around a cell that take no room.
    """
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        "  ".join(
            paint(cell) + " " * (width - len(cell))
            for cell, width in zip(line, widths, strict=True)
        ).rstrip()
        for line in lines
    ]
