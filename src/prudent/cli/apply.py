"""Rules apart from models: `prudent export` writes one, `prudent apply` answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from prudent.cli import options
from prudent.cli.exits import ExitCode, ending
from prudent.cli.loading import failing_as_data, open_data
from prudent.cli.models import load_model
from prudent.cli.options import names
from prudent.cli.output import note, write_rows
from prudent.cli.rules import load_rule
from prudent.io.errors import listed
from prudent.io.replacing import write_whole

if TYPE_CHECKING:
    from prudent import Rule
    from prudent.core.types import BoolArray

HEADS = {
    "sets": ["set"],
    "answers": ["prediction", "answered"],
    "labels": ["prediction"],
    "alarms": ["alarm"],
}
# What the scores are that a rule reads, by what its record calls them.
COLUMNS = {
    "log odds": "the log odds of each class, made of the probabilities",
    "max probability": "the largest of the probabilities",
    "as given": "the columns as they are:",
}


@options.grouped
def apply(
    rule_file: Annotated[Path, typer.Argument(metavar="RULE", help="Rule file.")],
    data: options.Data,
    *,
    output: options.CsvFile = None,
    keep: options.Keep = None,
    quiet: options.Quiet = False,
    reading: options.Reading,
) -> None:
    """Apply a rule to the scores of new rows.

    A row without a score gets the full set, no answer, or an alarm.
    """
    from prudent.io.table import check_column

    loaded = load_rule(rule_file)
    if loaded.has_seen(data):
        note(f"{data} made this rule.", always=True)
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

    with failing_as_data(loaded):
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


def export(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Model file.")],
    output: Annotated[
        Path,
        options.output("Rule file (JSON)."),
    ],
    keep_scores: Annotated[
        bool,
        typer.Option(
            "--keep-scores",
            help="Keep the scores of held-out rows: for p-values, and drift of alarms.",
        ),
    ] = False,
    trusted: options.Trusted = None,
    quiet: options.Quiet = False,
) -> None:
    """Write the rule by which a model answers, for scores computed anywhere.

    The rule names the columns that it reads: probabilities by the classifier inside, as
    "probability LABEL", or a detector's `calibrated_scores`. prudent apply answers to
    them as the model does.
    """
    from prudent.estimator_tools import exported_rule

    last = load_model(model, trusted).last
    with ending(f"{model}: {{}}", ExitCode.MODEL, ValueError, TypeError, KeyError):
        rule = exported_rule(last)
        record = {**rule.record, "data": {"file": model.name}}
        text = replace(rule, record=record).to_json(keep_scores=keep_scores)
        made = COLUMNS[rule.record["scores"]]
    write_whole(output, text + "\n")
    print(f"{output} is about {made} {listed(rule.record['columns'])}")
    for guarantee in rule.guarantees:
        print(f"Promised: {guarantee}")
