"""`prudent apply`: what a rule answers to the scores of new rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from prudent.cli import options
from prudent.cli.loading import failing_as_data, open_data
from prudent.cli.options import names
from prudent.cli.output import check_writable, note, write_rows
from prudent.cli.rules import load_rule

if TYPE_CHECKING:
    from prudent import Rule
    from prudent.core.types import BoolArray

HEADS = {
    "sets": ["set"],
    "answers": ["prediction", "answered"],
    "labels": ["prediction"],
    "alarms": ["alarm"],
}


@options.grouped
def apply(
    rule_file: Annotated[Path, typer.Argument(metavar="RULE", help="Rule file.")],
    data: options.Data,
    reading: options.Reading,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="CSV file; else stdout."),
    ] = None,
    keep: Annotated[
        str | None,
        typer.Option(metavar="COL,..", help="Copy these columns to the output."),
    ] = None,
    quiet: options.Quiet = False,
) -> None:
    """Apply a rule to the scores of new rows.

    A row without a score gets the full set, no answer, or an alarm.
    """
    from prudent.io.table import check_column

    check_writable(output)
    loaded = load_rule(rule_file)
    if loaded.has_seen(data):
        note(f"{data} made this rule", always=True)
    copied = names(keep)
    read = list(dict.fromkeys([*loaded.names, *copied]))
    source, _ = open_data(
        data,
        None,
        reading,
        text_columns=[*loaded.text_columns, *copied],
        one_column=True,
    )
    loaded.check(source)
    for name in copied:
        check_column(name, source.names)

    def lines() -> Iterator[Sequence[Any]]:
        for part in source.parts(read):
            columns: list[Iterable[Any]] = [part.text(n).to_pylist() for n in copied]
            columns += _columns(loaded.rule, loaded.given(loaded.frame(part)))
            yield from zip(*columns, strict=True)

    with failing_as_data(rule_file):
        write_rows([*copied, *HEADS[loaded.rule.kind]], lines(), output)


def _columns(rule: Rule, given: Any) -> list[list[Any]]:
    """Columns of what was answered."""
    if rule.kind == "alarms":
        return [given.alarms.tolist()]
    if rule.kind == "sets":
        return [joined(given.sets, list(map(str, rule.classes)))]
    if rule.kind == "answers":
        spelled = given.labels.astype(str)
        return [
            np.where(given.answered, spelled, "").tolist(),
            given.answered.tolist(),
        ]
    return [given.labels.tolist()]


def joined(sets: BoolArray, labels: list[str]) -> list[str]:
    """Labels of each set joined by |; the text of each distinct set is built once."""
    packed = np.ascontiguousarray(np.packbits(sets, axis=1))
    keys = packed.view(f"V{packed.shape[1]}")[:, 0].tolist()
    texts: dict[bytes, str] = {}
    for key, row in zip(keys, sets, strict=True):
        if key not in texts:
            texts[key] = "|".join(compress(labels, row.tolist()))
    return [texts[key] for key in keys]
