"""`prudent detect`: learn one class, flag the rows unlike it."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from prudent.cli.exits import UsageError
from prudent.cli.loading import (
    all_or_sample,
    check_writable,
    drawn_from,
    failing_as_data,
    look_through,
    note,
    open_data,
)
from prudent.cli.options import (
    DEFAULT_SAMPLE,
    Columns,
    Data,
    FalseAlarm,
    Quiet,
    Report,
    Sample,
    Seed,
    Target,
    checked_promise,
    grouped,
    sample_size,
)
from prudent.cli.output import write_rows
from prudent.cli.tables import print_table
from prudent.io.errors import TableError, counted, listed, shown, thousands

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from prudent.evaluation.detection import Detection
    from prudent.io import Survey, TrainingData

__all__ = ["Detector", "detect"]

FOLDS = 5
FEWEST_ROWS = 10
CONFIDENCE = 0.95


class Detector(StrEnum):
    """Detectors that can be fitted."""

    MINIMAX = "minimax"
    LOW_DENSITY = "low-density"
    CONFORMAL = "conformal"


@grouped
def detect(
    data: Data,
    columns: Columns,
    target: Target = None,
    normal: Annotated[
        str | None, typer.Option(metavar="LABEL", help="The class to learn.")
    ] = None,
    promise: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT", help="'false alarm <= 5%', the same as --false-alarm 0.05."
        ),
    ] = None,
    false_alarm: FalseAlarm = 0.05,
    method: Annotated[Detector, typer.Option(help="What to fit.")] = Detector.MINIMAX,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="CSV of flagged rows."),
    ] = None,
    model_out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the detector here, for prudent monitor; its promise holds for "
            "this model with probability 0.95, where the rows allow.",
        ),
    ] = None,
    report: Report = None,
    sample: Sample = DEFAULT_SAMPLE,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Learn one class (all rows without --target) and flag the rows unlike it."""
    most_rows = sample_size(sample)
    for path in (output, report, model_out):
        check_writable(path)
    if promise is not None:
        asked = checked_promise(promise, CONFIDENCE, detector=True)
        if asked is None:
            raise UsageError("--promise none: a detector needs a false-alarm rate.")
        false_alarm = asked.allowed
    source, target = open_data(data, target, columns, quiet=quiet)
    if target is None and normal is not None:
        raise UsageError("--normal needs --target, the column that holds it.")
    found = look_through(source, None, columns, handed_along=target, quiet=quiet)
    if target is not None:
        _check_label(found, target, normal)
    training, _ = all_or_sample(found, most_rows, seed)
    inside = _normal_rows(training, normal)
    n_normal = int(inside.sum())
    if n_normal < FEWEST_ROWS:
        raise TableError(
            f"{counted(n_normal, 'normal row')}: too few to learn a class from. "
            f"Give at least {FEWEST_ROWS}"
        )
    from prudent.evaluation.detection import detect as run

    preparation = _preparation(training, inside, mean=columns.missing == "mean")
    detector = _build(
        *(method, false_alarm, seed, n_normal, preparation), watched=bool(model_out)
    )
    with failing_as_data(quiet=quiet):
        detection = run(detector, training.X, inside, cv=FOLDS, random_state=seed)
        n_flagged = _score_all(found, detection, output)
    title = f"{data}: {method} detector"
    heads, line = _summary(detection, n_flagged)
    drawn = drawn_from(training)
    print(f"{title}, {FOLDS} folds, seed {seed}; false alarms are out of fold")
    if drawn is not None:
        print(f"fitted and measured on {drawn}; flagged are all rows")
    print_table(heads, [line])
    if model_out is not None:
        _save(found, detection.detector, normal, model_out)
    if output is not None:
        note(f"scores of {thousands(found.n_rows)} rows in {output}", quiet=quiet)
    if report is not None:
        from prudent.cli.pages import detection_page

        notes = [] if drawn is None else [f"Fitted and measured on {drawn}."]
        page = detection_page(title, detection, heads, line, notes)
        report.write_text(page, "utf-8")
        note(f"report: {report}", quiet=quiet)


def _check_label(found: Survey, target: str, normal: str | None) -> None:
    known = found.labels.tolist()
    if normal is None:
        raise UsageError(f"--normal is missing. Labels of {target}: {listed(known)}.")
    if normal not in known:
        raise TableError(
            f"no row has {shown(target)} = {shown(normal)}. Labels: {listed(known)}"
        )


def _normal_rows(training: TrainingData, normal: str | None) -> NDArray[np.bool_]:
    """Return which rows are of the class to learn: all, if there are no labels."""
    import numpy as np

    if training.y is None:
        return np.ones(len(training.X), dtype=bool)
    inside: NDArray[np.bool_] = training.y == normal
    return inside


def _score_all(found: Survey, detection: Detection, output: Path | None) -> int:
    """Flag and score every row, a part at a time; return how many are flagged.

    The file gets one line per row: its number in the table, the flag, the score.
    """
    n_flagged = 0

    def lines() -> Iterator[tuple[Any, ...]]:
        nonlocal n_flagged
        for block in found.blocks():
            outlier = detection.detector.predict(block.X) == -1
            score = detection.detector.decision_function(block.X)
            n_flagged += int(outlier.sum())
            numbers = (block.rows + 1).tolist()
            yield from zip(
                numbers, outlier.astype(int).tolist(), score.tolist(), strict=True
            )

    if output is None:
        deque(lines(), maxlen=0)
    else:
        write_rows(["row", "outlier", "score"], lines(), output)
    return n_flagged


def _preparation(
    training: TrainingData, inside: NDArray[np.bool_], *, mean: bool
) -> Any:
    """Return what encodes words and fills gaps of normal rows; None without any."""
    from prudent.evaluation.preprocessing import preprocessing

    return preprocessing(
        training.X[inside],
        training.preparation.is_text,
        missing="mean" if mean else "fill",
    )


def _build(
    method: Detector,
    false_alarm: float,
    seed: int,
    n_normal: int,
    preparation: Any,
    *,
    watched: bool,
) -> Any:
    """Return a detector that holds out enough rows of a fold for a cut at all.

    A rate r needs 1/r - 1 held-out rows; up to half of the rows go there. A model that
    is to be watched promises for itself, not on average, where the rows allow.
    """
    from prudent.core.binomial import high_probability_rank

    if not 0 < false_alarm < 1:
        raise UsageError(f"--false-alarm must lie in (0, 1), got {false_alarm:g}.")
    n_fitted = n_normal - n_normal // FOLDS
    fewest = 1 / false_alarm - 1
    certain = watched and high_probability_rank(n_fitted // 2, false_alarm, CONFIDENCE)
    if certain:
        fewest = math.log(1 - CONFIDENCE) / math.log1p(-false_alarm) + 1
    settings: dict[str, Any] = {
        "false_alarm_rate": false_alarm,
        "calibration_size": min(0.5, max(0.3, fewest / n_fitted)),
        "random_state": seed,
    }
    if certain:
        settings |= {"guarantee": "high_probability", "confidence": CONFIDENCE}
    from prudent.adversarial import LowDensityRejector
    from prudent.conformal import ConformalDetector
    from prudent.evaluation.preprocessing import in_front
    from prudent.minimax import MinimaxOutlierDetector

    if preparation is None:
        if method is Detector.LOW_DENSITY:
            return LowDensityRejector(**settings)
        if method is Detector.CONFORMAL:
            way: Any = "split" if certain else "auto"
            return ConformalDetector(method=way, **settings)
        if not certain:
            return MinimaxOutlierDetector(**settings)
    # The wrapper holds rows out: nothing is learned from them, not what fills gaps.
    rate: dict[str, Any] = {"false_alarm_rate": false_alarm}
    inner: Any = {
        Detector.LOW_DENSITY: LowDensityRejector(random_state=seed, **rate),
        Detector.MINIMAX: MinimaxOutlierDetector(threshold="distribution_free", **rate),
        Detector.CONFORMAL: ConformalDetector(random_state=seed, **rate),
    }[method]
    return ConformalDetector(in_front(preparation, inner), method="split", **settings)


def _save(found: Survey, detector: Any, normal: str | None, output: Path) -> None:
    """Write the detector, which knows of which class it promises, and say what."""
    from prudent.persistence import save

    detector.guarantees_ = tuple(
        replace(promise, scope=normal) for promise in detector.guarantees_
    )
    save(detector, output, preparation=found.preparation)
    for promise in detector.guarantees_:
        print(promise)
        if promise.confidence is None:
            print(
                "That is an average: this detector may exceed it for ever. Give more "
                "normal rows for a promise about the detector itself."
            )
    print(f"model: {output} ({output.stat().st_size / 1000:.0f} kB)")


def _summary(detection: Detection, n_flagged: int) -> tuple[list[str], list[str]]:
    """One line: the promise, what was measured, and what was found."""
    promise, measured, kept = "none", "–", "–"
    for checked in detection.promises:
        promise = f"{checked.guarantee.quantity} ≤ {checked.guarantee.bound:.3f}"
        low, high = checked.check.interval
        measured = f"{checked.check.measured:.3f} ({low:.3f}–{high:.3f})"
        kept = checked.check.verdict
    columns = ["normal rows", "promise", "measured (95% interval)", "kept?"]
    n_normal = int(detection.normal.sum())
    line = [thousands(n_normal), promise, measured, kept]
    if detection.detected is not None:
        n_others = len(detection.normal) - n_normal
        columns += ["other rows", "detected"]
        line += [thousands(n_others), f"{detection.detected:.1%}"]
    columns.append("flagged")
    line.append(thousands(n_flagged))
    return columns, line
