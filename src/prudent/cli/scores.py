"""Scores in a table, by whatever model: their columns, labels and rows, and limits."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from prudent.cli import options
from prudent.cli.loading import failing_as_data, open_data
from prudent.cli.options import names
from prudent.cli.output import (
    CommandError,
    ExitCode,
    UsageError,
    note,
    write_report,
    write_rows,
)
from prudent.io.errors import TableError, counted, shown, thousands
from prudent.io.replacing import write_whole

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from prudent import ThresholdBands
    from prudent.cli.models import LoadedModel
    from prudent.cli.rules import LoadedRule
    from prudent.core.guarantee import Quantity
    from prudent.core.types import BoolArray, FloatArray
    from prudent.io.table import Table


@dataclass(frozen=True)
class ScoreColumns:
    """Which columns of a table hold scores, of one of four sorts, and of what."""

    scores: Annotated[
        str | None,
        options.value("COL,..", "A column of scores for each class."),
    ] = None
    classes: Annotated[
        str | None,
        options.value("LABEL,..", "Labels of --scores, where names do not say them."),
    ] = None
    score: Annotated[
        str | None,
        options.value("COL", "One score: with --predicted how sure that label is."),
    ] = None
    predicted: Annotated[
        str | None, options.value("COL", "Column of the label given.")
    ] = None
    positive: Annotated[
        str | None,
        options.value("LABEL", "The label that a high --score speaks for."),
    ] = None
    anomaly: Annotated[
        str | None,
        options.value("COL", "Score that is high for unusual rows."),
    ] = None

    @property
    def columns(self) -> list[str]:
        """The columns that hold numbers; refuses options of several sorts."""
        given = [c for c in (self.scores, self.score, self.anomaly) if c is not None]
        is_about_nothing = self.predicted is None and self.positive is None
        if len(given) != 1 or (self.score is None) != is_about_nothing:
            raise UsageError(
                "say where the scores are: --scores COL,.. for one a class, "
                "--predicted COL with --score COL, --score COL with --positive LABEL, "
                "or --anomaly COL"
            )
        return given if self.scores is None else names(self.scores)

    def open(
        self,
        data: str,
        truth: str | None,
        reading: options.Reading,
        words: Sequence[str | None] = (),
    ) -> tuple[Table, str | None]:
        """The table in memory, and the name of the column of the truth, if any.

        Columns that are `words` are read as the file spells them.
        """
        spelled = [name for name in (truth, self.predicted, *words) if name]
        source, target = open_data(data, truth, reading, text_columns=spelled)
        return source.whole(), None if truth is None else target

    def values(
        self, table: Table, *, drop_missing: bool = False
    ) -> tuple[FloatArray, BoolArray]:
        """Scores of all rows, (n, n_columns), and which rows have all of theirs.

        A row that has not is an error, which names it, unless such rows are dropped.
        """
        from prudent.io.table import check_column

        for name in self.columns:
            check_column(name, table.names)
        values = np.column_stack([table.numbers_or_nan(name) for name in self.columns])
        lacking = np.isnan(values)
        whole: BoolArray = np.logical_not(lacking.any(axis=1))
        rows = np.flatnonzero(~whole)
        if len(rows) and not drop_missing:
            column = self.columns[int(lacking[rows[0]].argmax())]
            raise TableError(
                f"{table.place(int(rows[0]))} has no number in {shown(column)}: fill "
                "it, or --drop-missing; the promise is then about rows with scores."
            )
        if len(rows):
            note(f"{counted(len(rows), 'row')} without a score left out")
        return values, whole

    def labels(self, truth: NDArray[np.str_]) -> list[str]:
        """Labels of --scores: as given, the names of columns, or behind a prefix."""
        columns = self.columns
        if self.classes is not None:
            labels = names(self.classes)
            if len(labels) != len(columns):
                raise UsageError(
                    f"--classes names {len(labels)} labels for {len(columns)} columns"
                )
            return labels
        alike = [len(set(letters)) == 1 for letters in zip(*columns, strict=False)]
        n_alike = alike.index(False) if False in alike else len(alike)
        seen = set(truth.tolist())
        # Labels may begin alike, too: the prefix behind which most labels are known.
        behind = [[name[k:] for name in columns] for k in range(n_alike + 1)]
        return max(behind, key=lambda labels: len(seen & set(labels)))


def certify_scores(
    data: str,
    reading: options.Reading,
    truth: str | None,
    columns: ScoreColumns,
    confidence: float,
    thresholds: Path | None,
    report: Path | None,
) -> None:
    """Certify all thresholds of scores in a table, into a file or a page."""
    if thresholds is None and report is None:
        raise UsageError(
            "scores have limits at all thresholds: give --thresholds FILE or --report "
            "FILE; a rule from scores is made by prudent promise"
        )
    bands = _bands_of_scores(data, reading, truth, columns, confidence)
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
        from prudent.report.explorer import explorer_page

        title = f"Every threshold of {Path(data).name}"
        write_report(explorer_page(bands.to_dict(), title), report)


def _bands_of_scores(
    data: str,
    reading: options.Reading,
    truth: str | None,
    columns: ScoreColumns,
    confidence: float,
) -> ThresholdBands:
    """Limits at all thresholds of scores that any model gave to labelled rows.

    How sure a label is limits answers; the score of a class limits its alarms. Of a
    score for each class the one of `positive` raises alarms; without it the largest
    says how sure the answer is, as it does for a model.
    """
    from prudent import ThresholdBands

    positive, predicted = columns.positive, columns.predicted
    if truth is None:
        raise UsageError("--scores and --score need --truth COL, the labels")
    if columns.score and predicted and positive:
        raise UsageError("--score is of --positive LABEL, or of --predicted: give one")
    if columns.scores is not None:
        columns = replace(columns, positive=None)
    table, target = columns.open(data, truth, reading)
    values, _ = columns.values(table)
    labels = table.truth(str(target))
    known = rows_with_label(labels)
    values, labels = values[known], labels[known]
    classes = None
    if columns.scores is not None:
        classes = columns.labels(labels)
        unknown = sorted({*labels.tolist()} - {*classes})
        if unknown or len(classes) < 2:
            what = f"truth {unknown[0]!r}" if unknown else "one column"
            raise CommandError(
                f"{what} has no scores of its own: --scores names a column for each "
                "class, --classes their labels",
                ExitCode.DATA,
            )
        if positive is None and len(classes) == 2:
            positive = classes[1]
    if positive is not None:
        if classes is not None:
            _check_positive(positive, classes)
            values = values[:, [classes.index(positive)]]
        with failing_as_data():
            return ThresholdBands.from_scores(
                values[:, 0],
                labels,
                kind="alarms",
                positive=positive,
                confidence=confidence,
            )
    if classes is None:
        wrong = table.words(str(predicted))[known] != labels
    else:
        wrong = np.array(classes)[values.argmax(axis=1)] != labels
    with failing_as_data():
        return ThresholdBands.from_scores(
            values.max(axis=1), wrong, kind="answers", confidence=confidence
        )


def rows_with_label(truth: NDArray[np.str_]) -> BoolArray:
    """Which rows have a label; says how many have none and are left out."""
    known: BoolArray = np.asarray(truth != "")
    if not known.all():
        n_missing = counted(int((~known).sum()), "row")
        note(f"{n_missing} without a label are left out", always=True)
    return known


def bands_of_model(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    confidence: float,
    positive: str | None,
    groups: NDArray[Any] | None,
    loaded: LoadedModel | LoadedRule | None,
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
    if positive is not None:
        _check_positive(positive, known)
    with failing_as_data(loaded):
        return certify_thresholds(
            estimator,
            X,
            y,
            confidence=confidence,
            positive=None if positive is None else known[positive],
            groups=groups,
        )


def own_threshold(
    bands: ThresholdBands,
    estimator: Any,
    X: Any,
    y: NDArray[Any],
    groups: NDArray[Any] | None,
) -> float | None:
    """The threshold at which the rows that certify are answered as the model does.

    None where none does: a model may have several, or scores of another kind.
    """
    from prudent import Guarantee
    from prudent.estimator_tools import held_against

    def counted(quantity: Quantity, scope: Any = None) -> tuple[int, int]:
        promise = Guarantee(
            quantity=quantity,
            scope=scope,
            bound=0,
            sense="<=",
            unit="row" if groups is None else "group",
        )
        held = held_against(estimator, [promise], X, y, groups)
        return next(((count, n) for _, count, n in held), (0, 0))

    if bands.kind == "answers":
        return bands.threshold_with(counted("selective error rate"))
    if bands.detects:
        missed, _ = counted("miss rate")
        false_alarms, _ = counted("false alarm rate")
    else:
        missed, n_positive = counted("class error rate", bands.positive)
        flagged, _ = counted("flagged share", bands.positive)
        false_alarms = flagged - (n_positive - missed)
    return bands.threshold_with((missed, false_alarms))


def _check_positive(positive: str, classes: Collection[str]) -> None:
    """Refuse a class of alarms that is none of the classes."""
    if positive not in classes:
        raise UsageError(
            f"--positive {positive!r} is none of the classes {', '.join(classes)}"
        )


def write_bands(bands: ThresholdBands, path: Path, own: float | None = None) -> None:
    """Write limits at all thresholds, as .csv, else as JSON for an explorer.

    The threshold `own` of a model is among those in JSON.
    """
    if path.suffix == ".csv":
        frame = bands.frame()
        write_rows(
            frame.column_names, zip(*frame.to_pydict().values(), strict=True), path
        )
    else:
        text = json.dumps(bands.to_dict(own), separators=(",", ":"), allow_nan=False)
        write_whole(path, text + "\n")
    note(f"limits at all thresholds of {bands.kind}, all at once: {path}")
