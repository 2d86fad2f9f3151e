"""`prudent detect`: learn one class, flag the rows unlike it."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from prudent.cli.exits import UsageError
from prudent.cli.loading import (
    Reading,
    check_writable,
    failing_as_data,
    note,
    prepare,
    read,
)
from prudent.cli.options import (
    Categorical,
    CategoricalOption,
    Data,
    Decimal,
    Delimiter,
    Drop,
    Encoding,
    FalseAlarm,
    Features,
    Missing,
    MissingOption,
    NoHeader,
    Quiet,
    Report,
    Seed,
    Target,
    names,
)
from prudent.cli.predict import write_rows
from prudent.cli.tables import print_table
from prudent.io.errors import TableError, counted, listed, shown, thousands

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from prudent.comparison.detection import Detection
    from prudent.io import Table

__all__ = ["Detector", "detect"]

FOLDS = 5
FEWEST_ROWS = 10
VERDICTS = {"kept": "yes", "broken": "no", "undecided": "unclear"}


class Detector(StrEnum):
    """Detectors that can be fitted."""

    MINIMAX = "minimax"
    LOW_DENSITY = "low-density"


def detect(
    data: Data,
    target: Target = None,
    normal: Annotated[
        str | None, typer.Option(metavar="LABEL", help="The class to learn.")
    ] = None,
    false_alarm: FalseAlarm = 0.05,
    method: Annotated[Detector, typer.Option(help="What to fit.")] = Detector.MINIMAX,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="CSV of flagged rows."),
    ] = None,
    report: Report = None,
    seed: Seed = 0,
    features: Features = None,
    drop: Drop = None,
    missing: MissingOption = Missing.ERROR,
    categorical: CategoricalOption = Categorical.ERROR,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    decimal: Decimal = ".",
    no_header: NoHeader = False,
    quiet: Quiet = False,
) -> None:
    """Learn one class (all rows without --target) and flag the rows unlike it."""
    check_writable(output)
    check_writable(report)
    reading = Reading(delimiter, encoding, decimal, no_header)
    table, target = read(data, target, reading, quiet=quiet)
    inside = _normal_rows(table, target, normal)
    training = prepare(
        table,
        None,
        features=features,
        drop=",".join([*names(drop), *([] if target is None else [target])]),
        missing=missing,
        categorical=categorical,
    )
    for text in training.notes:
        note(text, quiet=quiet)
    inside = inside[training.rows]
    n_normal = int(inside.sum())
    if n_normal < FEWEST_ROWS:
        raise TableError(
            f"{counted(n_normal, 'normal row')}: too few to learn a class from. "
            f"Give at least {FEWEST_ROWS}"
        )
    from prudent.comparison.detection import detect as run

    detector = _build(method, false_alarm, seed, n_normal)
    with failing_as_data(quiet=quiet):
        detection = run(detector, training.X, inside, cv=FOLDS, random_state=seed)
    title = f"{data}: {method} detector"
    columns, line = _summary(detection)
    print(f"{title}, {FOLDS} folds, seed {seed}; false alarms are out of fold")
    print_table(columns, [line])
    if output is not None:
        _write_flags(detection, training.rows, output)
        note(f"scores of {len(training.rows)} rows in {output}", quiet=quiet)
    if report is not None:
        from prudent.cli.pages import detection_page

        report.write_text(detection_page(title, detection, columns, line), "utf-8")
        note(f"report: {report}", quiet=quiet)


def _normal_rows(
    table: Table, target: str | None, normal: str | None
) -> NDArray[np.bool_]:
    """Return which rows are of the class to learn: all, if there is no target."""
    import numpy as np

    if target is None:
        if normal is not None:
            raise UsageError("--normal needs --target, the column that holds it.")
        return np.ones(table.n_rows, dtype=bool)
    labels = table.words(target)
    known = np.unique(labels).tolist()
    if normal is None:
        raise UsageError(f"--normal is missing. Labels of {target}: {listed(known)}.")
    if normal not in known:
        raise TableError(
            f"no row has {shown(target)} = {shown(normal)}. Labels: {listed(known)}"
        )
    return labels == normal


def _build(method: Detector, false_alarm: float, seed: int, n_normal: int) -> Any:
    """Return a detector that holds out enough rows of a fold for a cut at all.

    A rate r needs 1/r - 1 held-out rows; up to half of the rows go there.
    """
    if not 0 < false_alarm < 1:
        raise UsageError(f"--false-alarm must lie in (0, 1), got {false_alarm:g}.")
    n_fitted = n_normal - n_normal // FOLDS
    share = min(0.5, max(0.3, (1 / false_alarm - 1) / n_fitted))
    settings: dict[str, Any] = {
        "false_alarm_rate": false_alarm,
        "calibration_size": share,
        "random_state": seed,
    }
    if method is Detector.MINIMAX:
        from prudent.minimax import MinimaxOutlierDetector

        return MinimaxOutlierDetector(**settings)
    from prudent.adversarial import LowDensityRejector

    return LowDensityRejector(**settings)


def _summary(detection: Detection) -> tuple[list[str], list[str]]:
    """One line: the promise, what was measured, and what was found."""
    promise, measured, kept = "none", "–", "–"
    for checked in detection.promises:
        promise = f"{checked.guarantee.quantity} ≤ {checked.guarantee.bound:.3f}"
        low, high = checked.check.interval
        measured = f"{checked.check.measured:.3f} ({low:.3f}–{high:.3f})"
        kept = VERDICTS[checked.check.verdict]
    columns = ["normal rows", "promise", "measured (95% interval)", "kept?"]
    n_normal = int(detection.normal.sum())
    line = [thousands(n_normal), promise, measured, kept]
    if detection.detected is not None:
        n_others = len(detection.normal) - n_normal
        columns += ["other rows", "detected"]
        line += [thousands(n_others), f"{detection.detected:.1%}"]
    columns.append("flagged")
    line.append(thousands(int(detection.outlier.sum())))
    return columns, line


def _write_flags(detection: Detection, rows: NDArray[np.intp], output: Path) -> None:
    """Write one line per row: its number in the table, the flag, the score."""
    write_rows(
        ["row", "outlier", "score"],
        zip(
            (rows + 1).tolist(),
            detection.outlier.astype(int).tolist(),
            detection.score.tolist(),
            strict=True,
        ),
        output,
    )
