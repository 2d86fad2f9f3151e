"""The table that a person reads: a heading, a line for each method, what it means."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from itertools import zip_longest
from operator import itemgetter

from prudent.evaluation import words
from prudent.evaluation.records import Findings
from prudent.io.errors import aligned, cut, thousands

Paint = Callable[[str], str]
WIDTH = 100
# Columns that go, in this order, where the terminal is narrow.
DISPENSABLE = (
    *("predict", "notes", "fit", "wrong when|decided", "worst class|error"),
    "covered|(worst class)",
)
MOST_CLASSES = 4
NO_BREAK = "\u00a0"
LONGEST_LABEL = 24


def table_lines(
    findings: Findings, width: int = WIDTH, paint: Paint = str
) -> list[str]:
    """Everything as lines of text, at most so wide where words allow.

    `paint` may put colours around the words that say how promises fared.
    """
    lines = [part for line in _heading(findings) for part in _wrapped(line, width)]
    shown = _method_lines(findings, width, paint) if findings.ran else []
    if shown and findings.settings.promise != "none":
        shown += ["", *_wrapped(words.AS_IT_IS, width)]
    lines += ["", *shown, *([""] if shown else [])]
    for text in words.failures(findings):
        lines += _wrapped(text, width)
    if findings.settings.promise != "none" or findings.ran:
        for sentence in words.verdict(findings):
            lines += _wrapped(sentence, width)
    if findings.settings.next_command is not None:
        lines.append(f"To use it:  {findings.settings.next_command}")
    return lines


def _heading(findings: Findings) -> list[str]:
    """What was compared, how, and which promise was asked for."""
    data, settings = findings.data, findings.settings
    counts = sorted(
        zip(data.class_counts, data.classes, strict=True), key=itemgetter(0)
    )
    shown = ", ".join(
        f"{cut(label, LONGEST_LABEL)} {n}" for n, label in counts[:MOST_CLASSES]
    )
    if len(counts) > MOST_CLASSES:
        shown = f"{len(counts)} classes of {counts[0][0]} to {counts[-1][0]} rows"
    repeats = f" × {settings.n_repeats}" if settings.n_repeats > 1 else ""
    asked = "no promise asked for; all figures are out of fold"
    if settings.promise != "none":
        asked = f"asked: {words.asked_for(findings)}"
    return [
        f"{data.name} · {thousands(data.n_rows)} rows × {len(data.features)} features "
        f"· {shown} · {settings.n_folds} folds{repeats}, seed {settings.random_state}",
        asked,
    ]


def _method_lines(findings: Findings, width: int, paint: Paint) -> list[str]:
    """The table itself, less wide where columns can be done without."""
    names = words.columns(findings)
    rows = [words.cells(row, findings) for row in findings.ran]
    left_out: set[str] = set()
    # First on one line each, then as narrow as they get, then without some columns.
    for name, part in (("", " "), ("", "\n"), *((name, "\n") for name in DISPENSABLE)):
        left_out.add(name)
        shown = [j for j, name in enumerate(names) if name not in left_out]
        # A bar in a heading parts two lines.
        lines = [*zip_longest(*(names[j].split("|") for j in shown), fillvalue="")]
        for row in rows:
            cells = [row[j].replace("\n", part).split("\n") for j in shown]
            lines += zip_longest(*cells, fillvalue="")
        if max(map(len, aligned(lines))) <= width:
            break
    return aligned(lines, paint)


def _wrapped(text: str, width: int) -> list[str]:
    """Lines of a sentence; a figure and its percent sign stay together."""
    lines = textwrap.wrap(
        text.replace(" %", NO_BREAK + "%"),
        width,
        subsequent_indent="  ",
        break_long_words=False,
    )
    return [line.replace(NO_BREAK, " ") for line in lines] or [""]
