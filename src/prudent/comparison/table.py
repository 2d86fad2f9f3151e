"""The table that a person reads: a heading, a line for each method, what it means."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence

from prudent.evaluation import words
from prudent.evaluation.records import Data, Findings, Settings

Paint = Callable[[str], str]
WIDTH = 100
GAP = "  "
# Columns that go, in this order, where the terminal is narrow.
DISPENSABLE = (
    *("predict", "notes", "fit", "wrong when|decided", "worst class|error"),
    "covered|(worst class)",
)
MOST_CLASSES = 4
LONGEST_LABEL = 24


def heading(data: Data, settings: Settings, asked: str | None = None) -> list[str]:
    """What was compared, how, and which promise was asked for."""
    counts = sorted(
        zip(data.classes, data.class_counts, strict=True), key=lambda pair: pair[1]
    )
    shown = ", ".join(f"{_cut(label)} {n}" for label, n in counts[:MOST_CLASSES])
    if len(counts) > MOST_CLASSES:
        shown = f"{len(counts)} classes of {counts[0][1]} to {counts[-1][1]} rows"
    repeats = f" × {settings.n_repeats}" if settings.n_repeats > 1 else ""
    rows = f"{data.n_rows:,}".replace(",", " ")
    lines = [
        f"{data.name} · {rows} rows × {len(data.features)} features · {shown} · "
        f"{settings.n_folds} folds{repeats}, seed {settings.random_state}"
    ]
    if settings.promise != "none":
        lines.append(f"asked: {asked or settings.promise}")
    else:
        lines.append("no promise asked for; all figures are out of fold")
    return lines


def _cut(label: str) -> str:
    return label if len(label) <= LONGEST_LABEL else f"{label[: LONGEST_LABEL - 1]}…"


def table_lines(
    findings: Findings, width: int = WIDTH, paint: Paint | None = None
) -> list[str]:
    """Everything as lines of text, at most so wide where words allow.

    `paint` may put colours around the words that say how promises fared.
    """
    top = heading(findings.data, findings.settings, words.asked_for(findings))
    lines = [part for line in top for part in _wrapped(line, width)]
    shown = method_lines(findings, width, paint) if findings.ran else []
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


def method_lines(
    findings: Findings, width: int = WIDTH, paint: Paint | None = None
) -> list[str]:
    """The table itself, less wide where columns can be done without."""
    columns = list(words.columns(findings))
    rows = [list(words.cells(row, findings)) for row in findings.ran]
    for name in (None, *DISPENSABLE):
        if name in columns:
            place = columns.index(name)
            columns.pop(place)
            for row in rows:
                row.pop(place)
        lines = _aligned(columns, rows)
        if max(map(len, lines)) <= width:
            break
    return lines if paint is None else _aligned(columns, rows, paint)


def _aligned(
    columns: Sequence[str], rows: Sequence[Sequence[str]], paint: Paint = str
) -> list[str]:
    """Columns under their headings; a bar in a heading parts two lines."""
    heads = [name.split("|") for name in columns]
    depth = max(map(len, heads))
    lines = [[head[i] if i < len(head) else "" for head in heads] for i in range(depth)]
    lines += [list(row) for row in rows]
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    return [
        GAP.join(
            paint(cell) + " " * (wide - len(cell))
            for cell, wide in zip(line, widths, strict=True)
        ).rstrip()
        for line in lines
    ]


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(
        text, width, subsequent_indent="  ", break_long_words=False
    ) or [""]
