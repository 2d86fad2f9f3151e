"""`prudent export`: the rule of a model file, for scores computed elsewhere."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from prudent.cli import options
from prudent.cli.exits import CommandError, ExitCode
from prudent.cli.models import load_model
from prudent.cli.output import check_writable
from prudent.io.errors import listed
from prudent.io.replacing import replacing

COLUMNS = {
    "log odds": "the log odds of each class, made of the probabilities",
    "max probability": "the largest of the probabilities",
    "as given": "the columns as they are:",
}


def export(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Model file.")],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="Rule file (JSON).")
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

    check_writable(output)
    last = load_model(model, trusted).last
    try:
        rule = exported_rule(last)
        record = {**rule.record, "data": {"file": model.name}}
        text = replace(rule, record=record).to_json(keep_scores=keep_scores)
    except ValueError as error:
        sentence = str(error).rstrip(".")
        raise CommandError(f"{model}: {sentence}", ExitCode.MODEL) from error
    with replacing(output) as stream:
        stream.write(text + "\n")
    made = COLUMNS[rule.record["scores"]]
    print(f"{output} is about {made} {listed(rule.record['columns'])}")
    for guarantee in rule.guarantees:
        print(f"Promised: {guarantee}")
