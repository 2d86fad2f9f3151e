"""`prudent monitor`: hold a deployed model to its promises, run after run."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from prudent.cli.exits import CommandError, ExitCode, UsageError
from prudent.cli.loading import fingerprint, open_data
from prudent.cli.models import LoadedModel, load_model
from prudent.cli.options import JsonFile, Quiet, Reading, Report, Target, grouped
from prudent.cli.output import check_writable, note, print_table, write_json
from prudent.cli.state_file import read_state, replace_state
from prudent.io.errors import thousands

if TYPE_CHECKING:
    from prudent.cli.watching import Watch
    from prudent.core.types import FloatArray

DEFAULT_LEVEL = 0.05
SHORT = 4  # characters of a digest that are shown


class Watching(StrEnum):
    """What a promise is watched for."""

    RATE = "rate"
    AVERAGE = "average"


@grouped
def monitor(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Model file.")],
    data: Annotated[
        str,
        typer.Option(
            metavar="DATA", help="New rows: a table, or - for standard input."
        ),
    ],
    reading: Reading,
    target: Target = None,
    normal: Annotated[
        str | None,
        typer.Option(
            metavar="LABEL",
            help="Label of ordinary rows, where a detector does not name it.",
        ),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="What earlier runs counted; is kept."),
    ] = None,
    report: Report = None,
    level: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="Probability of a wrong alarm over the life of the state: for all "
            "promises together, and once more for drift (0.05).",
        ),
    ] = None,
    watch: Annotated[
        Watching | None,
        typer.Option(help="The rate at every row, or its average since the start."),
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option(
            metavar="DATA", help="Rows as the model was made for, to see drift."
        ),
    ] = None,
    drift: Annotated[
        bool,
        typer.Option(
            "--drift/--no-drift",
            help="Leave drift out: for labels of rows that were seen before.",
        ),
    ] = True,
    again: Annotated[
        bool, typer.Option("--again", help="Count a table a second time.")
    ] = False,
    json_file: JsonFile = None,
    quiet: Quiet = False,
) -> None:
    """Count new rows against the promises of a model; exit code 7: broken, 8: drift.

    While promises hold, code 7 has probability at most --level over the life of the
    state; 1 - confidence is to be added for a promise with a confidence, the training
    sample included. Code 8 has at most --level without drift.
    """
    if level is not None and not 0 < level < 1:
        raise UsageError(f"--level must lie in (0, 1), got {level:g}.")
    check_writable(report, json_file)
    stored, before = (None, None) if state is None else read_state(state)
    loaded = load_model(model)
    found = _watch(model, loaded.estimator, state, stored, level, watch)
    if reference is not None:
        _compare_with(found, reference, reading, loaded, state)
    if not found.promises and found.drift is None:
        raise CommandError(
            f"{model} makes no promise and holds no reference rows. Give --reference",
            ExitCode.MODEL,
        )
    _say_what_is_not_watched(found, target, normal)
    if state is not None:
        check_writable(state.with_name(f"{state.name}.part"))
    if loaded.has_seen(data):
        text = f"{data} is the table that the model was fitted to: it holds no new rows"
        note(text, always=True)
    table = _read(data, target, reading, loaded)
    update = _update(found, loaded, table, target, normal, drift=drift, again=again)
    if state is not None:
        replace_state(state, found.to_dict(), before)
    _show(found, model, data, update, loaded, report, json_file)
    if found.broken:
        raise typer.Exit(ExitCode.BROKEN_PROMISE)
    if found.drifted:
        raise typer.Exit(ExitCode.DRIFT)


def _watch(
    model: Path,
    estimator: Any,
    path: Path | None,
    stored: dict[str, Any] | None,
    level: float | None,
    watch: Watching | None,
) -> Watch:
    """Begin to watch the model, or go on as the state says."""
    from prudent.cli.watching import Watch
    from prudent.monitoring.state import check_format
    from prudent.persistence import read_header

    digest = read_header(model).digest
    if stored is None:
        kind = Watching.RATE if watch is None else watch
        return Watch.over(estimator, digest, level or DEFAULT_LEVEL, kind.value)
    try:
        check_format(stored)
    except ValueError as error:
        raise CommandError(f"{path}: {error}".rstrip("."), ExitCode.MODEL) from error
    if stored.get("model") != digest:
        raise CommandError(
            f"{path} watches another model ({str(stored.get('model'))[:SHORT]}.., this "
            f"is {digest[:SHORT]}..). Start a new state",
            ExitCode.MODEL,
        )
    for option, asked in (("level", level), ("watch", watch)):
        if asked is not None and stored.get(option) != asked:
            raise UsageError(
                f"{path} was begun with --{option} {stored.get(option)}, not with "
                f"--{option} {asked}. Leave the option out, or start a new state."
            )
    try:
        return Watch.resumed(estimator, stored)
    except Exception as error:  # whatever a state makes of it that no run wrote
        raise CommandError(
            f"{path} is damaged. Restore it from a backup, or start a new state",
            ExitCode.MODEL,
        ) from error


@dataclass(frozen=True)
class Rows:
    """A table that was looked through: features, labels as text, and digests."""

    name: str
    digest: str
    features_digest: str
    X: FloatArray
    truth: Any


def _read(
    data: str,
    target: str | None,
    reading: Reading,
    loaded: LoadedModel,
) -> Rows:
    """Read all rows, and check them before any of them is counted."""
    import numpy as np

    from prudent.io.table import check_column

    digest = _digest(data)
    source, target = open_data(data, target, reading, text_columns=loaded.text_columns)
    preparation = loaded.preparation
    if target is not None:
        check_column(target, source.names)
    preparation.check(source)
    names = [*preparation.names, *([] if target is None else [target])]
    blocks, labels = [], []
    for part in source.parts(list(dict.fromkeys(names))):
        blocks.append(preparation.read(part))
        if target is not None:
            labels += part.text(target).to_pylist()
    X = np.concatenate(blocks)
    truth = np.empty(len(X), dtype=object)
    if target is not None:
        truth[:] = [label or None for label in labels]
    content = np.ascontiguousarray(X).tobytes()
    features = hashlib.sha256(content).hexdigest()
    return Rows(data, digest, features, X, truth)


def _digest(data: str) -> str:
    """SHA-256 of a table: of a file, of standard input, or of the files of a folder."""
    whole = fingerprint(data)
    if whole is not None:
        return whole
    digest = hashlib.sha256()
    for path in _files(data):
        digest.update(f"{path.name}\0{fingerprint(str(path))}\0".encode())
    return digest.hexdigest()


def _files(data: str) -> Iterator[Path]:
    folder = Path(data)
    found = folder.rglob("*") if folder.is_dir() else Path().glob(data)
    yield from sorted(path for path in found if path.is_file())


def _compare_with(
    found: Watch,
    reference: str,
    reading: Reading,
    loaded: LoadedModel,
    path: Path | None,
) -> None:
    """Take the rows of --reference, unless the state holds them already."""
    rows = _read(reference, None, reading, loaded)
    if found.reference == rows.digest:
        return
    if found.reference is not None:
        raise UsageError(
            f"{path} compares with other reference rows "
            f"({found.reference[:SHORT]}.., {reference} is {rows.digest[:SHORT]}..). "
            "Leave --reference out, or start a new state."
        )
    if found.drift is not None and found.drift.n_:
        raise UsageError(
            f"{path} compares with the calibration scores of the model. Leave "
            "--reference out, or start a new state."
        )
    n_kept = found.compare_with(rows.X, rows.digest)
    if n_kept < len(rows.X):
        note(
            f"{thousands(n_kept)} of {thousands(len(rows.X))} reference rows are drawn"
        )


def _say_what_is_not_watched(
    found: Watch, target: str | None, normal: str | None
) -> None:
    """Give the reasons of this run: labels are missing, or what they mean."""
    from prudent.cli.watching import needs_normal

    for promise in found.promises:
        if promise.reason:
            continue
        if target is None:
            promise.reason = "no --target"
        elif normal is None and needs_normal(promise.guarantee):
            promise.reason = "no --normal, the label of ordinary rows"


def _update(
    found: Watch,
    loaded: LoadedModel,
    rows: Rows,
    target: str | None,
    normal: str | None,
    *,
    drift: bool,
    again: bool,
) -> dict[str, Any]:
    """Count the rows, and say what was counted.

    Rows that were looked at for drift before their labels came are not looked at
    again when the labels do.
    """
    from prudent.cli.watching import now

    n_labelled = sum(label is not None for label in rows.truth)
    _refuse_counted(found, rows, n_labelled, again=again)
    seen = [u for u in found.updates if u["features"] == rows.features_digest]
    look = drift and (again or not any(u["drift"] for u in seen))
    if look:
        found.see(rows.X)
    elif drift and found.drift is not None:
        text = f"{rows.name}: rows that were seen before, counted for their labels only"
        note(text, always=True)
    found.count(loaded.estimator, loaded.rows(rows.X), rows.truth, normal)
    time = now()
    found.stamp(time)
    update = {
        "data": rows.digest,
        "features": rows.features_digest,
        "rows": len(rows.X),
        "labelled": n_labelled,
        "drift": look,
        "time": time,
    }
    found.updates.append(update)
    return update


def _refuse_counted(found: Watch, rows: Rows, n_labelled: int, *, again: bool) -> None:
    """Refuse a table that was counted, unless it has got its labels since."""
    for earlier in found.updates:
        if again or earlier["data"] != rows.digest:
            continue
        if earlier["labelled"] or not n_labelled:
            text = f"{rows.name} was counted on {earlier['time'][:10]}. "
            if found.drift is not None and not found.drift.n_:
                text += "To see drift in rows that were counted, start a new --state"
            else:
                text += "Give --again to count it twice"
            raise CommandError(text, ExitCode.DATA)


def _show(
    found: Watch,
    model: Path,
    data: str,
    update: dict[str, Any],
    loaded: LoadedModel,
    report: Path | None,
    json_file: str | None,
) -> None:
    """Print the table, or JSON, and write the report."""
    from prudent.cli import watched_words as words

    features = loaded.preparation.names
    watched, rows = words.head(found, data, update)
    columns, lines = words.table(found, features)
    everything = words.as_json(found, model.name, data, update, features)
    if not write_json(everything, json_file):
        print(f"{model.name}  {watched}    {rows}")
        print_table(columns, lines)
        for sentence in words.footnotes(found):
            print(sentence)
        if json_file is not None:
            note(f"JSON: {json_file}")
    if report is not None:
        from prudent.report.monitoring import monitor_page

        report.write_text(
            monitor_page(
                f"prudent monitor: {model.name}",
                [f"{model.name}: {watched}. {rows}.", *words.footnotes(found)],
                words.page_table(found, features),
                words.watched(found),
                words.drift_columns(found, features),
                found.level,
                everything,
            ),
            "utf-8",
        )
        note(f"report: {report}")
