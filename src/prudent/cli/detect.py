"""`prudent detect`: learn one class, flag the rows unlike it."""

from __future__ import annotations

import math
import shlex
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import typer

from prudent.cli import options
from prudent.cli.loading import (
    all_or_sample,
    drawn_from,
    failing_as_data,
    look_through,
    open_data,
)
from prudent.cli.models import (
    last_step,
    of_a_table,
    save_model,
    say_written,
)
from prudent.cli.output import (
    CommandError,
    ExitCode,
    UsageError,
    check_writable,
    note,
    print_table,
    write_report,
    write_rows,
)
from prudent.io.errors import TableError, counted, cut, listed, shown, thousands

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from prudent.evaluation.detection import Detection
    from prudent.io import Survey, TrainingData

Detector = Literal["minimax", "low-density", "conformal"]
DETECTORS = get_args(Detector)
FOLDS = 5
FEWEST_ROWS = 10
CONFIDENCE = 0.95
FALSE_ALARM = 0.05
LONGEST_NAME = 32  # of the table in the title of a page
# Columns that go, in this order, where the terminal is narrow.
DISPENSABLE = ("other rows", "normal rows", "flagged in all")


@options.grouped
def detect(
    context: typer.Context,
    data: options.Data,
    *,
    target: options.Target = None,
    normal: options.Normal = None,
    promise: Annotated[
        str | None,
        options.value("TEXT", "'false alarm <= 5%', the same as --false-alarm 0.05."),
    ] = None,
    false_alarm: Annotated[
        float,
        typer.Option(
            min=0,
            max=1,
            callback=options.check_inside,
            help="Share of ordinary rows that may be rejected.",
        ),
    ] = FALSE_ALARM,
    method: Annotated[
        Detector,
        typer.Option(help="What to fit; conformal misses least at a kept rate."),
    ] = "conformal",
    output: Annotated[
        Path | None,
        options.output("CSV of flagged rows."),
    ] = None,
    model_out: Annotated[
        Path | None,
        options.value(
            "FILE",
            "Write the detector here, for prudent monitor. It then promises for "
            "itself, with --confidence, 0.95 where the rows allow, unless --average.",
            callback=check_writable,
        ),
    ] = None,
    confidence: options.Confidence = None,
    average: Annotated[
        bool,
        typer.Option(
            "--average",
            help="Promise the rate on average over training samples: more is "
            "detected, but this one detector may raise more false alarms for as long "
            "as it is used, and monitor finds out only where it raises many more, or, "
            "where no rows were held out, not at all.",
        ),
    ] = False,
    page: options.Page,
    sample: options.Sample = options.DEFAULT_SAMPLE,
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
    columns: options.Columns,
) -> None:
    """Learn one class (all rows without --target) and flag the rows unlike it."""
    options.refuse_both(confidence, average=average)
    most_rows = options.sample_size(sample)
    if promise is not None:
        wish = options.checked_promise(promise, confidence, detector=True)
        if wish is None:
            raise UsageError("--promise none: a detector needs a false-alarm rate.")
        false_alarm = wish.allowed
    rows = read_normal(data, target, normal, columns, most_rows, seed)
    from prudent.evaluation.detection import detect as run

    n_fitted = rows.n_normal - rows.n_normal // FOLDS
    is_kept = model_out is not None
    certain = certainty(
        n_fitted, false_alarm, confidence, average=average, is_kept=is_kept
    )
    detector = detector_for(rows, method, false_alarm, n_fitted, certain, seed)
    with failing_as_data():
        frame, inside = rows.training.frame, rows.inside
        detection = _rounded(run(detector, frame, inside, cv=FOLDS, random_state=seed))
        n_flagged = _score_all(rows.surveyed, detection, output)
    heads, line = _summary(detection, n_flagged)
    drawn = drawn_from(rows.training)
    print(
        f"{data}: {method} detector, {FOLDS} folds, seed {seed}; "
        "false alarms are out of fold"
    )
    if drawn is not None:
        print(f"fitted and measured on {drawn}; flagged are all rows")
    if model_out is not None and certain is not None and confidence is None:
        print(
            "With --model-out the promise is about the very detector that is written, "
            f"with confidence {certain:g}: rows are held out for it, and fewer are "
            "detected than with a promise on average (--average)."
        )
    print_table(heads, [line], dispensable=DISPENSABLE)
    spread = _spread(detection)
    silent = _if_silent(detection, false_alarm)
    advice = [*silent, *_if_broken(detection)]
    for sentence in [*spread, *advice]:
        print(sentence)
    command = None
    if model_out is None and not silent:
        given = options.typed(
            context, {"data", "output", "report", "print_all", "quiet"}
        )
        kept = ["prudent", "detect", data, *given, "--model-out", "detector.prudent"]
        command = shlex.join(kept)
        note(f"to keep it, and watch it: {command}")
    elif model_out is not None:
        command = shlex.join(["prudent", "predict", "new.csv", "-m", str(model_out)])
        save_detector(detection.detector, normal, model_out, data, average=average)
    if output is not None:
        note(f"scores of {thousands(rows.surveyed.n_rows)} rows in {output}")
    if page.report is not None:
        from prudent.report.pages import detection_page

        notes = [] if drawn is None else [f"Fitted and measured on {drawn}."]
        text = detection_page(
            f"{cut(Path(data).name, LONGEST_NAME)}: {method} detector",
            detection,
            (heads, line),
            [*notes, *spread],
            asked=false_alarm,
            advice=advice,
            command=command,
            print_all=page.print_all,
        )
        write_report(text, page.report)


@dataclass(frozen=True)
class NormalRows:
    """Rows of which some are to be learned."""

    surveyed: Survey
    training: TrainingData
    inside: NDArray[np.bool_]  # which of them to learn: all without labels
    preparation: Any  # what encodes words and fills gaps; None for nothing

    @property
    def n_normal(self) -> int:
        """Rows to learn."""
        return int(self.inside.sum())

    @property
    def normal(self) -> pa.Table:
        """The rows to learn."""
        return self.training.frame.filter(self.inside)


def read_normal(
    data: str,
    target: str | None,
    normal: str | None,
    columns: options.Columns,
    sample: int | None,
    seed: int,
) -> NormalRows:
    """Read a table of which one class is to be learned; all rows without a target."""
    import numpy as np
    from sklearn.utils import _safe_indexing

    from prudent.estimator_tools.labelled_rows import preprocessing

    source, target = open_data(data, target, columns, one_column=target is None)
    if target is None and normal is not None:
        raise UsageError("--normal needs --target, the column that holds it.")
    surveyed = look_through(source, None, columns, handed_along=target)
    if target is not None:
        known = [label for label in surveyed.labels.tolist() if label]
        if normal is None:
            raise UsageError(
                f"--normal is missing. Labels of {target}: {listed(known)}."
            )
        if normal not in known:
            raise TableError(
                f"no row has {shown(target)} = {shown(normal)}. Labels: {listed(known)}"
            )
    training, _ = all_or_sample(surveyed, sample, seed)
    inside = np.ones(len(training.rows), dtype=bool)
    if training.y is not None:
        inside = training.y == normal
    n_normal = int(inside.sum())
    if n_normal < FEWEST_ROWS:
        raise TableError(
            f"{counted(n_normal, 'normal row')}: too few to learn a class from. "
            f"Give at least {FEWEST_ROWS}"
        )
    preparation = preprocessing(_safe_indexing(training.X, inside), columns.filling)
    return NormalRows(surveyed, training, inside, preparation)


def detector_for(
    rows: NormalRows,
    method: str,
    rate: float,
    n_rows: int,
    confidence: float | None,
    seed: int,
    **parameters: Any,
) -> Any:
    """A detector of a table, not fitted, whose rate is to hold for so many rows."""
    from prudent.evaluation.detection import build_detector

    detector = build_detector(
        method,
        rate,
        n_rows=n_rows,
        confidence=confidence,
        preparation=rows.preparation,
        parameters=parameters,
        random_state=seed,
    )
    return of_a_table(rows.training.preparation, detector)


def _score_all(surveyed: Survey, detection: Detection, output: Path | None) -> int:
    """Flag and score every row, a part at a time; return how many are flagged.

    The file gets one line per row: its number in the table, the flag, the score.
    """
    from prudent.estimator_tools import scored_alarms

    n_flagged = 0

    def lines() -> Iterator[tuple[Any, ...]]:
        nonlocal n_flagged
        for block in surveyed.blocks():
            outlier, score = scored_alarms(detection.detector, block.frame)
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


def certainty(
    n_rows: int,
    rate: float,
    confidence: float | None,
    *,
    average: bool,
    is_kept: bool,
) -> float | None:
    """Confidence of what a detector promises of so many rows; None: on average.

    A detector that is kept for later has one by default, where the rows allow.
    """
    from prudent.evaluation.detection import allow_confidence

    if confidence is not None:
        if not allow_confidence(n_rows, rate, confidence):
            raise CommandError(
                f"{thousands(n_rows)} normal rows are too few to promise a false-alarm "
                f"rate of {rate:g} with confidence {confidence}. Ask for a lower "
                "--confidence, give more rows, or promise it on --average",
                ExitCode.LIMIT,
            )
        return confidence
    if average or not is_kept or not allow_confidence(n_rows, rate, CONFIDENCE):
        return None
    return CONFIDENCE


def save_detector(
    detector: Any, normal: str | None, output: Path, data: str, *, average: bool
) -> None:
    """Write the detector, which knows of which class it promises, and say what."""
    last = last_step(detector)
    last.guarantees_ = tuple(
        replace(promise, scope=normal) for promise in detector.guarantees_
    )
    save_model(detector, output, data)
    for promise in detector.guarantees_:
        print(promise)
        if promise.confidence is None and promise.bound > 0:
            more = " Give more normal rows for a promise about the detector itself."
            print(
                "That is an average: this detector may exceed it for ever."
                + more * (not average)
            )
    say_written(output)


def _spread(detection: Detection) -> list[str]:
    """How far the detector itself may be from the promise, by the law of its cut."""
    from prudent.evaluation.detection import OWN

    if detection.own_rates is None:
        return []
    low, high = detection.own_rates
    return [
        "The false-alarm rate of the detector itself, for which all normal rows are "
        f"used, lies between {low:.3f} and {high:.3f} with probability {OWN:g}."
    ]


def _if_silent(detection: Detection, false_alarm: float) -> list[str]:
    """How many rows it takes, where too few have set the cut for any alarm."""
    from prudent.core.binomial import fewest_rows

    for promise in detection.detector.guarantees_:
        known = promise.evidence
        n_ranked = known.get("calibration rows", known.get("training rows"))
        if promise.bound > 0 or not n_ranked:
            continue
        n_normal, fewest = int(detection.normal.sum()), fewest_rows(false_alarm)
        needed = math.ceil(fewest * n_normal / n_ranked)
        in_folds = math.ceil(needed * FOLDS / (FOLDS - 1))
        return [
            f"It raises no alarm at all: {n_ranked:g} of {thousands(n_normal)} normal "
            f"rows set its threshold, and {fewest} are needed to promise "
            f"{false_alarm:g}. Give about {thousands(needed)} normal rows, or about "
            f"{thousands(in_folds)} to see alarms in this table."
        ]
    return []


def _if_broken(detection: Detection) -> list[str]:
    """What a rate beyond its limit may be, and what to do."""
    if all(checked.check.verdict != "broken" for checked in detection.promises):
        return []
    return [
        "Broken: if the promise is true, so many false alarms come by chance in at "
        "most about 5 of 100 cases; else what it assumes does not hold. Count the "
        "alarms on ordinary rows that the detector has not seen before you use it, or "
        "ask for a larger --false-alarm."
    ]


def _rounded(detection: Detection) -> Detection:
    """The same with bounds as they are shown, rounded up: what is said stays true."""
    promises = []
    for checked in detection.promises:
        bound = checked.guarantee.bound
        scale = 10 ** _decimals(bound)
        # Less an error of rounding, which is no reason to go a step up.
        upper = min(1.0, math.ceil(round(bound * scale, 6)) / scale)
        promise = replace(checked.guarantee, bound=upper)
        promises.append(replace(checked, guarantee=promise))
    return replace(detection, promises=tuple(promises))


def _decimals(rate: float) -> int:
    """Decimals of a rate: three, and two digits of one that is small."""
    return 3 if rate == 0 else max(3, 1 - math.floor(math.log10(rate)))


def _summary(detection: Detection, n_flagged: int) -> tuple[list[str], list[str]]:
    """One line: the promise, what was measured, and what was found."""
    promise, measured, kept = "none", "–", "–"
    for checked in detection.promises:
        bound = checked.guarantee.bound
        promise = f"{checked.guarantee.quantity} ≤ {bound:.{_decimals(bound)}f}"
        low, high = checked.check.interval
        measured = f"{checked.check.measured:.3f} ({low:.3f}–{high:.3f})"
        kept = checked.check.verdict
    n_normal = int(detection.normal.sum())
    columns = ["normal rows", "kept?", "promise", "measured (95% interval)"]
    line = [thousands(n_normal), kept, promise, measured]
    if detection.detected is not None:
        low, high = detection.detected_range
        columns += ["detected (least–most)", "other rows"]
        line += [
            f"{detection.detected:.1%} ({low:.1%}–{high:.1%})",
            thousands(len(detection.normal) - n_normal),
        ]
    columns.append("flagged in all")
    line.append(thousands(n_flagged))
    return columns, line
