"""`prudent monitor`: hold a deployed model to its promises, run after run."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from prudent.cli import options
from prudent.cli.loading import failing_as_data, fingerprint, items_of, open_data
from prudent.cli.models import LoadedModel, refuse_without_groups
from prudent.cli.output import (
    CommandError,
    ExitCode,
    UsageError,
    check_writable,
    ending,
    note,
    print_table,
    write_json,
    write_report,
)
from prudent.cli.rules import LoadedRule, load
from prudent.core.strict_json import parsed
from prudent.io.errors import counted, shown, thousands
from prudent.io.replacing import replacing

if TYPE_CHECKING:
    import pyarrow as pa

    from prudent.cli.watching import Finding, Watch
    from prudent.core.types import FloatArray

DEFAULT_LEVEL = 0.05
FITTED = "is the table that the model was fitted to"
SHORT = 4  # characters of a digest that are shown
ORDER = (
    "Rows count in the order of the file: where that is not the order in which they "
    "came, sort them by time or shuffle them, and start a new --state."
)


@options.grouped
def monitor(
    model: options.ModelOrRule,
    *,
    data: Annotated[
        str,
        options.value("DATA", "New rows: a table, or - for standard input."),
    ],
    target: options.Truth = None,
    normal: Annotated[
        str | None,
        options.value(
            "LABEL", "Label of ordinary rows, where a detector does not name it."
        ),
    ] = None,
    by: Annotated[
        str | None,
        options.value(
            "COL,..",
            "Columns by which the model promises, to be sure: each part's promise "
            "is watched, with or without this.",
        ),
    ] = None,
    groups: options.Groups = None,
    state: Annotated[
        Path | None,
        options.value("FILE", "What earlier runs counted; is kept."),
    ] = None,
    page: options.Page,
    level: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            callback=options.check_inside,
            help="Probability of a wrong alarm over the life of the state: for all "
            "promises together, and once more for drift (0.05).",
        ),
    ] = None,
    watch: Annotated[
        Literal["rate", "average"] | None,
        typer.Option(help="The rate at every row, or its average since the start."),
    ] = None,
    reference: Annotated[
        str | None,
        options.value("DATA", "Rows as the model was made for, to see drift."),
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
    json_file: options.JsonFile = None,
    trusted: options.Trusted = None,
    quiet: options.Quiet = False,
    reading: options.Reading,
) -> ExitCode:
    """Count new rows against the promises of a model; exit code 7: broken, 8: drift.

    While promises hold, code 7 has probability at most --level over the life of the
    state; 1 - confidence is to be added for a promise with a confidence, the training
    sample included. Code 8 has at most --level without drift, for one score or
    independent columns. Of rows that belong together (--groups) one of each table
    counts, so that this holds only where groups do not come back.
    """
    stored, before = (None, None) if state is None else read_state(state)
    loaded = load(model, trusted)
    _refuse_other_subgroups(model, loaded, items_of(by))
    normal = normal or loaded.ordinary
    if target is not None or _watches_shares(loaded):
        refuse_without_groups(model, loaded.last, groups)
    watching = _watch(model, loaded.estimator, state, stored, level, watch)
    if reference is not None:
        _compare_with(watching, reference, reading, loaded, groups, state)
    if not watching.promises and watching.drift is None:
        raise CommandError(
            f"{model} makes no promise and holds no reference rows. Give --reference",
            ExitCode.MODEL,
        )
    if groups is not None and drift:
        _refuse_scores_of_single_rows(model, watching)
    may_be_known = not drift and not again and bool(watching.updates)
    _say_what_is_not_watched(watching, target, normal, may_be_known=may_be_known)
    if state is not None:
        check_writable(state.with_name(f"{state.name}.part"))
    if loaded.has_seen(data):
        what = "made this rule" if isinstance(loaded, LoadedRule) else FITTED
        text = f"{data} {what}: it holds no new rows"
        note(text, always=True)
    table = _read(data, target, reading, loaded, groups)
    with failing_as_data(loaded):
        _count(watching, loaded, table, normal, drift=drift, again=again)
    if state is not None:
        replace_state(state, watching.to_dict(), before)
    _show(watching, model, data, loaded.features, page, json_file)
    return watching.exit_code


def _watches_shares(loaded: LoadedModel | LoadedRule) -> bool:
    """Whether rows without labels are counted for a promise."""
    from prudent.core.guarantee import needs_labels

    promises = getattr(loaded.estimator, "guarantees_", ())
    return not all(map(needs_labels, promises))


def _refuse_other_subgroups(
    path: Path, loaded: LoadedModel | LoadedRule, items: Sequence[str]
) -> None:
    """Refuse subgroups that the model promises nothing of."""
    own = getattr(loaded.last, "_subgroups", None)
    if items and (own is None or not own.are(items)):
        raise UsageError(
            f"--by: {path} makes no promises by {' and '.join(items)}, and only what "
            "is promised can be watched: fit it by them, or leave --by out."
        )


def _watch(
    model: Path,
    estimator: Any,
    path: Path | None,
    stored: dict[str, Any] | None,
    level: float | None,
    watch: str | None,
) -> Watch:
    """Begin to watch the model, or go on as the state says."""
    from prudent.cli.watching import Watch
    from prudent.monitoring.state import check_format

    digest = fingerprint(str(model)) or ""
    if stored is None:
        level, watch = level or DEFAULT_LEVEL, watch or "rate"
        damaged = f"{model} is damaged: {{}}. Fit the model again"
        with ending(damaged, ExitCode.MODEL, ValueError, TypeError, AttributeError):
            return Watch.over(estimator, digest, level, watch)
    with ending(f"{path}: {{}}", ExitCode.MODEL):
        check_format(stored)
    if stored.get("model") != digest:
        raise CommandError(
            f"{path} watches another model ({str(stored.get('model'))[:SHORT]}.., this "
            f"is {digest[:SHORT]}..). Start a new state",
            ExitCode.MODEL,
        )
    for option, given in (("level", level), ("watch", watch)):
        if given is not None and stored.get(option) != given:
            raise UsageError(
                f"{path} was begun with --{option} {stored.get(option)}, not with "
                f"--{option} {given}. Leave the option out, or start a new state."
            )
    with ending(
        f"{path} is damaged. Restore it from a backup, or start a new state",
        ExitCode.MODEL,
        Exception,  # whatever becomes of a state that no run wrote
    ):
        return Watch.resumed(estimator, stored)


class Rows(NamedTuple):
    """A table that was looked through: features, labels as text, and digests."""

    name: str
    digest: str
    features_digest: str
    frame: pa.Table  # features by name
    codes: FloatArray  # the same in numbers
    truth: Any
    groups: Any  # as text; None without a column of them


def _read(
    data: str,
    target: str | None,
    reading: options.Reading,
    loaded: LoadedModel | LoadedRule,
    groups: str | None = None,
) -> Rows:
    """Read all rows, and check them before any of them is counted."""
    digest = _digest(data)
    words = (*loaded.text_columns, *([] if groups is None else [groups]))
    source, target = open_data(
        data, target, reading, text_columns=words, one_column=True
    )
    frame, truth, together = loaded.read(source, target, groups)
    codes = loaded.codes(frame)
    features_digest = hashlib.sha256(codes.tobytes()).hexdigest()
    return Rows(data, digest, features_digest, frame, codes, truth, together)


def _digest(data: str) -> str:
    """SHA-256 of a table: of a file, of standard input, or of the files of a folder."""
    whole = fingerprint(data)
    if whole is not None:
        return whole
    digest = hashlib.sha256()
    folder = Path(data)
    paths = folder.rglob("*") if folder.is_dir() else Path().glob(data)
    for path in sorted(path for path in paths if path.is_file()):
        digest.update(f"{path.name}\0{fingerprint(str(path))}\0".encode())
    return digest.hexdigest()


def _compare_with(
    watching: Watch,
    reference: str,
    reading: options.Reading,
    loaded: LoadedModel | LoadedRule,
    groups: str | None,
    path: Path | None,
) -> None:
    """Take the rows of --reference, unless the state holds them already."""
    rows = _read(reference, None, reading, loaded, groups)
    if watching.reference == rows.digest:
        return
    if watching.reference is not None:
        raise UsageError(
            f"{path} compares with other reference rows "
            f"({watching.reference[:SHORT]}.., {reference} is "
            f"{rows.digest[:SHORT]}..). Leave --reference out, or start a new state."
        )
    if watching.drift is not None and watching.drift.n_:
        raise UsageError(
            f"{path} compares with the calibration scores of the model. Leave "
            "--reference out, or start a new state."
        )
    n_kept = watching.compare_with(rows.codes, rows.digest, rows.groups)
    n_rows = len(rows.codes)
    if n_kept < n_rows:
        note(f"{thousands(n_kept)} of {thousands(n_rows)} reference rows are drawn")


def _refuse_scores_of_single_rows(path: Path, watching: Watch) -> None:
    """Refuse to compare one row of each group with scores of single rows.

    Where the size of a group says something about its rows, the two have other laws
    without any drift; and rows of one group are no independent reference.
    """
    if watching.drift is None or watching.reference is not None:
        return
    if all(promise.guarantee.unit != "group" for promise in watching.promises):
        raise UsageError(
            f"--groups: {path} holds scores of single rows, not one of each group, so "
            "that drift cannot be told. Give --reference, a table with the same "
            "column of groups, or --no-drift."
        )


def _say_what_is_not_watched(
    watching: Watch, target: str | None, normal: str | None, *, may_be_known: bool
) -> None:
    """Give the reasons of this run: labels are missing, or what they mean.

    Rows that `may_be_known` were counted already where no labels are needed.
    """
    from prudent.cli.watching import needs_normal
    from prudent.core.guarantee import needs_labels

    for promise in watching.promises:
        if promise.reason:
            continue
        if target is None and needs_labels(promise.guarantee):
            promise.reason = "no --target"
        elif normal is None and needs_normal(promise.guarantee):
            promise.reason = "no --normal, the label of ordinary rows"
        elif may_be_known and not needs_labels(promise.guarantee):
            promise.reason = "--no-drift, for rows that were seen before"


def _count(
    watching: Watch,
    loaded: LoadedModel | LoadedRule,
    rows: Rows,
    normal: str | None,
    *,
    drift: bool,
    again: bool,
) -> None:
    """Count the rows, and note that they were.

    Rows that were looked at for drift before their labels came are not looked at
    again when the labels do.
    """
    _refuse_counted(watching, rows, again=again)
    earlier = None
    if _has_labels(rows) and not again:
        earlier = watching.run_without_labels(rows.features_digest)
    look = drift and (earlier is None or not watching.updates[earlier]["drift"])
    X = loaded.rows(rows.frame)
    _note_unseen_subgroups(loaded, rows.name, X)
    _note_unknown_labels(loaded, rows)
    start = watching.n_rows if earlier is None else watching.n_rows_before(earlier)
    if look:
        watching.see(X, rows.codes, start, rows.groups)
    elif drift and watching.drift is not None:
        text = f"{rows.name}: rows that were seen before, counted for their labels only"
        note(text, always=True)
    watching.count(
        loaded.estimator,
        X,
        rows.truth,
        normal,
        rows.groups,
        start,
        are_new=earlier is None,
    )
    watching.note_run(
        rows.digest,
        rows.features_digest,
        rows.truth,
        drift=look,
        seen=earlier is not None,
    )


def _has_labels(rows: Rows) -> bool:
    return any(label is not None for label in rows.truth)


def _note_unseen_subgroups(loaded: LoadedModel | LoadedRule, name: str, X: Any) -> None:
    """Say how many rows are in none of the subgroups that have promises."""
    parts = getattr(loaded.last, "_subgroups", None)
    if parts is None:
        return
    none = ~parts.memberships(loaded.before_last(X)).members.any(axis=1)
    if none.any():
        text = (
            f"{name}: {counted(int(none.sum()), 'row')} of subgroups that the fit has "
            "not seen, which no promise is about"
        )
        note(text, always=True)


def _note_unknown_labels(loaded: LoadedModel | LoadedRule, rows: Rows) -> None:
    """Say how many rows have labels that a classifier has not learned."""
    known = {str(label) for label in getattr(loaded.estimator, "classes_", ())}
    labels = [label for label in rows.truth if label is not None]
    unknown = [label for label in labels if label not in known]
    if known and unknown:
        more = len({*unknown}) - 1
        examples = f"{shown(unknown[0])}{f' and {more} more' if more else ''}"
        text = (
            f"{rows.name}: {counted(len(unknown), 'row')} with a label that the model "
            f"does not know ({examples}): promises about one class leave them out, "
            "those about all rows count them as wrong"
        )
        note(text, always=True)


def _refuse_counted(watching: Watch, rows: Rows, *, again: bool) -> None:
    """Refuse a table that was counted, unless it has got its labels since."""
    is_bare = not _has_labels(rows)
    for earlier in [] if again else watching.updates:
        if earlier["data"] == rows.digest and (earlier["labelled"] or is_bare):
            text = f"{rows.name} was counted on {earlier['time'][:10]}. "
            if watching.drift is not None and not watching.drift.n_:
                text += "To see drift in rows that were counted, start a new --state"
            else:
                text += "Give --again to count it twice"
            raise CommandError(text, ExitCode.DATA)


def _show(
    watch: Watch,
    model: Path,
    data: str,
    features: list[str],
    page: options.Page,
    json_file: str | None,
) -> None:
    """Print the table, or JSON, and write the report."""
    from prudent.cli.watching import ALARM_VERDICTS, findings, named, wrong_alarms

    promises, drift = findings(watch, features)
    findings_shown = promises if drift is None else [*promises, drift]
    update, since = watch.updates[-1], watch.updates[0]["time"]
    watched = f"{counted(len(promises), 'promise')}, level {watch.level:g} for all"
    rows = (
        f"{data}: {thousands(update['rows'])} rows, {thousands(update['labelled'])} "
        f"labelled; {thousands(watch.n_rows)} rows since {since[:10]}"
    )
    limits = f"measured ({100 * (1 - watch.level):.4g}% limits)"
    heads = ["promise", "verdict", "rows counted", limits, "e-value"]
    missing = "drift: not watched, give --reference"
    not_watched = [missing] if watch.drift is None else []
    worth = wrong_alarms(watch)
    if any(finding.verdict in ALARM_VERDICTS for finding in findings_shown):
        worth.append(ORDER)
    record = _record(watch, model, data, promises, drift)
    if not write_json(record, json_file):
        print(f"{model.name}  {watched}    {rows}")
        lines = [[f.name, f.shown_verdict, *f.cells] for f in findings_shown]
        print_table(heads, lines, dispensable=("e-value", "rows counted"))
        for sentence in [*not_watched, *worth]:
            print(sentence)
        if json_file is not None:
            note(f"JSON: {json_file}")
    if page.report is not None:
        from prudent.report.pages import monitor_page

        text = monitor_page(
            f"prudent monitor: {model.name}",
            [f"{model.name}: {watched}. {rows}.", *not_watched],
            # The verdict first, a word of its own.
            (
                ["promise", "verdict", "since", *heads[2:]],
                [[f.name, f.verdict, f.since, *f.cells] for f in findings_shown],
            ),
            [
                (named(promise.guarantee), promise.monitor, promise.alarm_row)
                for promise in watch.promises
                if promise.monitor is not None and promise.monitor.n_
            ],
            record,
            worth,
            print_all=page.print_all,
        )
        write_report(text, page.report)


def _record(
    watch: Watch,
    model: Path,
    data: str,
    promises: Sequence[Finding],
    drift: Finding | None,
) -> dict[str, Any]:
    """How promises and drift stand, in JSON types."""
    return {
        "model": model.name,
        "model_digest": watch.digest,
        "level": watch.level,
        "watch": watch.watch,
        "data": data,
        "update": watch.updates[-1],
        "rows": watch.n_rows,
        "since": watch.updates[0]["time"],
        "promises": [promise.record for promise in promises],
        "drift": None if drift is None else drift.record,
        "exit_code": int(watch.exit_code),
    }


def read_state(path: Path) -> tuple[dict[str, Any] | None, bytes | None]:
    """Return the state and the bytes it was read from; None, None for no file."""
    with ending(
        f"cannot read {path}: {{}}. Name another file", ExitCode.MODEL, OSError
    ):
        if not path.exists():
            return None, None
        content = path.read_bytes()
    with ending(
        f"{path} is damaged, or is no state of prudent monitor. Restore it from a "
        "backup, or start a new state",
        ExitCode.MODEL,
        ValueError,
        TypeError,
        KeyError,
    ):
        state = parsed(content)
        if not isinstance(state["format"], int):
            raise TypeError
    return state, content


def replace_state(path: Path, state: dict[str, Any], before: bytes | None) -> None:
    """Write a state in place of the one that was read, if the file still holds that.

    It is written next to it and renamed: whenever the process ends, the file holds
    the old state or the new one, whole. Two writers wait for each other, and the
    second finds that the file has changed. A link is followed.
    """
    target = path.resolve()
    text = json.dumps(state, allow_nan=False, separators=(",", ":"))
    with (
        ending(
            f"cannot write {path}: {{}}. No row was counted; make room or name another "
            "file, and run again",
            ExitCode.DATA,
            OSError,
        ),
        _alone_in(target.parent),
    ):
        stored = target.read_bytes() if target.exists() else None
        if stored != before:
            raise CommandError(
                f"{path} changed while this ran. Run again", ExitCode.DATA
            )
        with replacing(target) as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Hold a lock on a folder, which ends with the process however it ends."""
    try:
        import fcntl
    except ImportError:  # no such lock on this system: the check above remains
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
        if hasattr(os, "fsync"):
            os.fsync(handle)  # the new name itself
    finally:
        os.close(handle)
