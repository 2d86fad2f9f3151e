"""`prudent promise`: a rule from a file of scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import typer

from prudent.cli import options
from prudent.cli.exits import UsageError
from prudent.cli.loading import failing_as_data, fingerprint, open_data
from prudent.cli.options import names
from prudent.cli.output import check_writable, note, replacing
from prudent.cli.rules import numbers_in
from prudent.io.errors import TableError, counted, listed, shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from prudent import Rule
    from prudent.io.table import Table

NOT_SAID_UNSEEN = (
    "were these rows kept from all that made the scores (training, tuning, prompts, "
    'choice)? Say how: --unseen "..." (kept in the rule); else no promise holds'
)
# Sums of probabilities that were rounded to a few digits are this near to one.
NEAR_ONE = 0.02


@options.grouped
def promise(
    data: options.Data,
    reading: options.Reading,
    wish: Annotated[
        str,
        typer.Option(
            "--promise",
            metavar="TEXT",
            help='Such as "coverage >= 90% in every class", "error <= 5%", '
            '"missed LABEL <= 2%", "false alarm <= 5%". Choose the rate before you '
            "look at the rows.",
        ),
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="Rule file (JSON).")
    ],
    truth: options.Truth = None,
    scores: Annotated[
        str | None,
        typer.Option(metavar="COL,..", help="A column of scores for each class."),
    ] = None,
    classes: Annotated[
        str | None,
        typer.Option(
            metavar="LABEL,..", help="Labels of --scores, where names do not say them."
        ),
    ] = None,
    score: Annotated[
        str | None,
        typer.Option(
            metavar="COL", help="One score: with --predicted how sure that label is."
        ),
    ] = None,
    predicted: Annotated[
        str | None, typer.Option(metavar="COL", help="Column of the label given.")
    ] = None,
    positive: Annotated[
        str | None,
        typer.Option(metavar="LABEL", help="The label that a high --score speaks for."),
    ] = None,
    anomaly: Annotated[
        str | None,
        typer.Option(metavar="COL", help="Score that is high for unusual rows."),
    ] = None,
    normal: Annotated[
        str | None, typer.Option(metavar="LABEL", help="Truth of ordinary rows.")
    ] = None,
    unseen: Annotated[
        str, typer.Option(metavar="TEXT", help="Why these rows are new to the scores.")
    ] = "",
    confidence: options.Confidence = None,
    by: Annotated[
        str | None,
        typer.Option(metavar="COL", help='Groups of "in every group".'),
    ] = None,
    groups: options.Groups = None,
    row_id: Annotated[
        str | None, typer.Option("--id", metavar="COL", help="Name of each row.")
    ] = None,
    ties: Annotated[
        Literal["conservative", "smoothed"],
        typer.Option(help="What equal scores count; smoothed needs --id."),
    ] = "conservative",
    keep_scores: Annotated[
        bool, typer.Option("--keep-scores", help="Keep scores, for p-values.")
    ] = False,
    allow_rare: Annotated[
        bool,
        typer.Option("--allow-rare", help="Put rare classes into every set."),
    ] = False,
    without: Annotated[
        str | None,
        typer.Option(metavar="LABEL,..", help="Promise nothing about these labels."),
    ] = None,
    drop_missing: Annotated[
        bool, typer.Option("--drop-missing", help="Leave rows without a score out.")
    ] = False,
    among: Annotated[
        int,
        typer.Option(
            min=1, help="Rules that this file has made, of which one is chosen."
        ),
    ] = 1,
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
) -> None:
    """Make a rule that keeps a promise, from the scores that any model gave.

    DATA holds labelled rows that were new to all that made the scores. Scores are one
    column a class (--scores), the certainty of one label (--predicted, --score), the
    score of one of two classes (--score, --positive), or how unusual a row looks
    (--anomaly).
    """
    from prudent.rules.promise import promise as promised

    check_writable(output)
    if not unseen:
        raise UsageError(NOT_SAID_UNSEEN)
    columns = _score_columns(scores, score, predicted, positive, anomaly)
    if ties == "smoothed" and row_id is None:
        raise UsageError("--ties smoothed tosses a coin for each --id: name the column")
    confidence = _shared(confidence, wish, among)
    words = [name for name in (truth, predicted, by, groups, row_id) if name]
    source, _ = open_data(data, None, reading, text_columns=words)
    table = source.whole()
    values = np.column_stack([numbers_in(table, name) for name in columns])
    kept = _complete(table, values, columns, drop=drop_missing)
    excluded = names(without)
    truths = None if truth is None else table.words(truth)
    if excluded and truths is not None:
        kept &= ~np.isin(truths, excluded)
    given: dict[str, Any] = {
        "predicted": predicted,
        "by": by,
        "groups": groups,
        "ids": row_id,
    }
    given = {
        name: None if column is None else table.words(column)[kept]
        for name, column in given.items()
    }
    labels: list[str] | None = None
    if scores is not None and truths is not None:
        labels = _labels(columns, classes, truths[kept])
        chosen = [place for place, label in enumerate(labels) if label not in excluded]
        columns = [columns[place] for place in chosen]
        labels, values = [labels[place] for place in chosen], values[:, chosen]
        _note_on_sums(values[kept])
    elif positive is not None and truths is not None:
        others = sorted(set(truths[kept].tolist()) - {positive})
        if len(others) != 1:
            raise TableError(
                f"--positive needs two labels in {shown(truth)}, there are "
                f"{listed([positive, *others])}"
            )
        labels = [others[0], positive]
    if scores is None:
        values = values[:, 0]
    with failing_as_data():
        rule = promised(
            values[kept],
            None if truths is None else truths[kept],
            wish,
            classes=labels,
            confidence=confidence,
            ties=ties,
            ordinary=normal,
            unseen=unseen,
            allow_rare=allow_rare,
            random_state=seed,
            **given,
        )
    _note_on_errors(rule)
    rule = _recorded(
        rule,
        columns=columns,
        label=predicted,
        group=by,
        row_id=row_id,
        excluded=excluded,
        among=among,
        ordinary=normal,
        data={
            "file": Path(data).name,
            "sha256": fingerprint(data),
            "rows": int(kept.sum()),
            "seed": seed,
        },
    )
    with replacing(output.resolve()) as stream:
        stream.write(rule.to_json(keep_scores=keep_scores) + "\n")
    print(f"{counted(int(kept.sum()), 'row')} of {data} make {output}")
    for guarantee in rule.guarantees:
        print(f"Promised: {guarantee}")
    if excluded:
        print(f"Nothing is promised about rows of {listed(map(repr, excluded))}.")


def _score_columns(
    scores: str | None,
    score: str | None,
    predicted: str | None,
    positive: str | None,
    anomaly: str | None,
) -> list[str]:
    """The columns that hold numbers, of one of the four kinds of file."""
    kinds = [option for option in (scores, score, anomaly) if option is not None]
    if len(kinds) != 1 or (score is None) != (predicted is None and positive is None):
        raise UsageError(
            "say where the scores are: --scores COL,.. for one a class, --predicted "
            "COL with --score COL, --score COL with --positive LABEL, or --anomaly COL"
        )
    return names(scores) if scores is not None else kinds


def _shared(confidence: float | None, wish: str, among: int) -> float | None:
    """The confidence of each of so many rules, for that of the one chosen to hold."""
    if among == 1:
        return confidence
    from prudent.rules.wish import CONFIDENCE, parse_promise

    wished = parse_promise(wish, with_groups=True, confidence=confidence)
    if wished is None or wished.confidence is None:
        raise UsageError("--among is for promises with a confidence")
    return 1 - (1 - (confidence or CONFIDENCE)) / among


def _complete(
    table: Table,
    values: NDArray[np.float64],
    columns: Sequence[str],
    *,
    drop: bool,
) -> NDArray[np.bool_]:
    """Which rows have all scores; an error that names the first that has not."""
    lacking = np.isnan(values)
    rows = np.flatnonzero(lacking.any(axis=1))
    if len(rows) and not drop:
        column = columns[int(lacking[rows[0]].argmax())]
        raise TableError(
            f"{table.place(int(rows[0]))} has no number in {shown(column)}: fill it, "
            "or --drop-missing; the promise is then about rows with scores"
        )
    if len(rows):
        note(f"{counted(len(rows), 'row')} without a score left out")
    whole: NDArray[np.bool_] = np.logical_not(lacking.any(axis=1))
    return whole


def _labels(
    columns: Sequence[str], classes: str | None, truth: NDArray[np.str_]
) -> list[str]:
    """Labels of score columns: as given, their names, or these behind a prefix."""
    if classes is not None:
        labels = names(classes)
        if len(labels) != len(columns):
            raise UsageError(
                f"--classes names {len(labels)} labels for {len(columns)} columns"
            )
        return labels
    alike = [len(set(letters)) == 1 for letters in zip(*columns, strict=False)]
    n_alike = alike.index(False) if False in alike else len(alike)
    behind = [name[n_alike:] for name in columns]
    seen = set(truth.tolist())
    if len(seen & set(behind)) > len(seen & set(columns)):
        return behind
    return list(columns)


def _note_on_sums(values: NDArray[np.float64]) -> None:
    """Say so where probabilities do not sum to one in some rows."""
    sums = values.sum(axis=1)
    off = int((np.abs(sums - 1) > NEAR_ONE).sum())
    if 0 < off < len(values) and (values >= 0).all() and (values <= 1).all():
        note(f"{off} of {len(values)} rows do not sum to one: used as scores")


def _note_on_errors(rule: Rule) -> None:
    """Say so where no label at all is wrong."""
    if rule.kind == "answers" and rule.calibration is not None:
        wrong = getattr(getattr(rule.calibration, "scores", None), "wrong", None)
        if wrong is not None and int(wrong[-1]) == 0:
            note("no label is wrong: so look rows that were trained on", always=True)


def _recorded(
    rule: Rule,
    *,
    columns: Sequence[str],
    label: str | None,
    group: str | None,
    row_id: str | None,
    excluded: Sequence[str],
    among: int,
    ordinary: str | None,
    data: dict[str, Any],
) -> Rule:
    """The rule with what its readers need to know of the file."""
    record = {**rule.record, "columns": list(columns), "data": data}
    for name, value in (
        ("label", label),
        ("group", group),
        ("id", row_id),
        ("ordinary", ordinary),
    ):
        record.pop(name, None)
        if value is not None:
            record[name] = value
    if among > 1:
        record["among"] = among
    guarantees = rule.guarantees
    if group is not None:
        guarantees = tuple(
            replace(g, subgroup=f"{group}={name}")
            for g, name in zip(guarantees, rule.groups, strict=True)
        )
    if excluded:
        sentence = f"the label is none of {', '.join(map(repr, excluded))}"
        guarantees = tuple(
            replace(g, assumptions=(*g.assumptions, sentence)) for g in guarantees
        )
    return replace(rule, record=record, guarantees=guarantees)
