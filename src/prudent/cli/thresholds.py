"""Limits at all thresholds at once: of a model, or of the scores in a table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prudent.cli import options
from prudent.cli.exits import CommandError, ExitCode, UsageError
from prudent.cli.loading import failing_as_data, open_data
from prudent.cli.output import note, write_rows
from prudent.cli.rules import numbers_in
from prudent.cli.scores import complete_rows, labels_of_columns, score_columns
from prudent.io.errors import thousands
from prudent.io.replacing import write_whole

if TYPE_CHECKING:
    from prudent import ThresholdBands


def bands_of_model(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    confidence: float,
    positive: str | None,
    model: Path | None,
) -> ThresholdBands:
    """Limits at all thresholds of a model's own scores."""
    from prudent.certification import certify_thresholds
    from prudent.estimator_tools import GivenAlarms, GivenAnswers

    if isinstance(estimator, GivenAlarms | GivenAnswers):
        raise UsageError(
            "--thresholds needs a model, whose scores they are, or --scores COL,.. "
            "or --score COL"
        )
    known = {str(label): label for label in getattr(estimator, "classes_", ())}
    if positive is not None and positive not in known:
        raise UsageError(
            f"--positive {positive!r} is none of the classes {', '.join(known)}"
        )
    with failing_as_data(model):
        return certify_thresholds(
            estimator,
            X,
            y,
            confidence=confidence,
            positive=None if positive is None else known[positive],
        )


def bands_of_scores(
    data: str,
    reading: options.Reading,
    truth: str | None,
    *,
    scores: str | None,
    score: str | None,
    predicted: str | None,
    classes: str | None,
    positive: str | None,
    confidence: float,
) -> ThresholdBands:
    """Limits at all thresholds of scores that any model gave to labelled rows.

    How sure a label is limits answers; the score of a class limits its alarms. Of a
    score for each class the one of `positive` raises alarms; without it the largest
    says how sure the answer is, as it does for a model.
    """
    import numpy as np

    from prudent import ThresholdBands

    if truth is None:
        raise UsageError("--scores and --score need --truth COL, the labels")
    if score is not None and predicted is not None and positive is not None:
        raise UsageError("--score is of --positive LABEL, or of --predicted: give one")
    of_score = positive if scores is None else None
    columns = score_columns(scores, score, predicted, of_score, None)
    words = [name for name in (truth, predicted) if name]
    source, _ = open_data(data, truth, reading, text_columns=words)
    table = source.whole()
    values = np.column_stack([numbers_in(table, name) for name in columns])
    labels = table.words(truth)
    known = np.array([bool(word) for word in labels.tolist()])
    if not known.all():
        n_missing = int((~known).sum())
        note(f"{thousands(n_missing)} rows without a label are left out", always=True)
    complete_rows(table, values, columns, drop=False)
    values, labels = values[known], labels[known]
    by_class = None
    if scores is not None:
        by_class = labels_of_columns(columns, classes, labels)
        unknown = sorted({*labels.tolist()} - {*by_class})
        if unknown or len(by_class) < 2:
            what = f"truth {unknown[0]!r}" if unknown else "one column"
            raise CommandError(
                f"{what} has no scores of its own: --scores names a column for each "
                "class, --classes their labels",
                ExitCode.DATA,
            )
        if positive is None and len(by_class) == 2:
            positive = by_class[1]
    with failing_as_data():
        if positive is not None:
            place = 0 if by_class is None else _place(positive, by_class)
            return ThresholdBands.from_scores(
                values[:, place],
                labels,
                kind="alarms",
                positive=positive,
                confidence=confidence,
            )
        if by_class is None:
            assert predicted is not None
            wrong = table.words(predicted)[known] != labels
        else:
            wrong = np.array(by_class)[values.argmax(axis=1)] != labels
        return ThresholdBands.from_scores(
            values.max(axis=1), wrong, kind="answers", confidence=confidence
        )


def _place(positive: str, classes: list[str]) -> int:
    if positive not in classes:
        raise UsageError(
            f"--positive {positive!r} is none of the classes {', '.join(classes)}"
        )
    return classes.index(positive)


def write_bands(bands: ThresholdBands, path: Path) -> None:
    """Write limits at all thresholds, as .csv, else as JSON for an explorer."""
    if path.suffix == ".csv":
        frame = bands.frame()
        write_rows(
            frame.column_names, zip(*frame.to_pydict().values(), strict=True), path
        )
    else:
        text = json.dumps(bands.to_dict(), separators=(",", ":"), allow_nan=False)
        write_whole(path, text + "\n")
    note(f"limits at all thresholds of {bands.kind}, all at once: {path}")


def certify_scores(
    data: str,
    reading: options.Reading,
    truth: str | None,
    thresholds: Path | None,
    report: Path | None,
    *,
    confidence: float,
    **columns: str | None,
) -> None:
    """Certify all thresholds of scores in a table, into a file or a page."""
    if thresholds is None and report is None:
        raise UsageError(
            "scores have limits at all thresholds: give --thresholds FILE or --report "
            "FILE; a rule from scores is made by prudent promise"
        )
    named = {
        name: columns.get(name)
        for name in ("scores", "score", "predicted", "classes", "positive")
    }
    bands = bands_of_scores(data, reading, truth, confidence=confidence, **named)
    n_marked = thousands(int(bands.marked.sum()))
    marked = "answered wrong" if bands.kind == "answers" else f"{bands.positive!r}"
    print(f"{thousands(len(bands.scores))} rows of {data}, {n_marked} of them {marked}")
    n_thresholds = thousands(len(bands.thresholds))
    print(f"Limits at {n_thresholds} thresholds of {bands.kind}")
    print(f"True all at once with confidence {confidence:g}, assuming")
    for sentence in bands.at(0.0)[0].assumed:
        print(f"- {sentence}")
    if thresholds is not None:
        write_bands(bands, thresholds)
    if report is not None:
        write_page(report, bands, data)


def write_page(report: Path, bands: ThresholdBands, data: str) -> None:
    """Write the explorer of a table of scores as a page of its own."""
    from prudent.cli.output import write_report
    from prudent.report.explorer import explorer_page

    title = f"Every threshold of {Path(data).name}"
    write_report(explorer_page(bands.to_dict(), title), report)
