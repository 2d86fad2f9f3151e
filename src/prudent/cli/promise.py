"""`prudent promise`, `export`, `apply`: rules from scores or a model, and their use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import typer

from prudent.cli import options
from prudent.cli.loading import (
    columns_in,
    failing_as_data,
    fingerprint,
    items_of,
    memberships,
    open_data,
    table_of,
)
from prudent.cli.models import load_model
from prudent.cli.options import names
from prudent.cli.output import ExitCode, UsageError, ending, note, write_rows
from prudent.cli.rules import load_rule
from prudent.cli.scores import ScoreColumns, rows_with_label
from prudent.io.errors import TableError, counted, listed, shown
from prudent.io.replacing import write_whole

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from prudent import Guarantee, Rule
    from prudent.core.types import BoolArray
    from prudent.io.table import Table
    from prudent.rules.wish import Wish


NOT_SAID_UNSEEN = (
    "were these rows kept from all that made the scores (training, tuning, prompts, "
    'choice)? Say how: --unseen "..." (kept in the rule); else no promise holds.'
)
# Sums of probabilities that were rounded to a few digits are this near to one.
NEAR_ONE = 0.02


@options.grouped
def promise(
    data: options.Data,
    *,
    wishes: Annotated[
        list[str],
        options.value(
            "TEXT",
            'Such as "coverage >= 90% in every class", "error <= 5%", '
            '"missed LABEL <= 2%", "false alarm <= 5%". Choose the rate before you '
            "look at the rows; or repeat it: promises with a confidence then hold all "
            "at once, also the one chosen.",
            "--promise",
        ),
    ],
    outputs: Annotated[
        list[Path],
        options.output("Rule file (JSON); one for each --promise, in their order."),
    ],
    truth: options.Truth = None,
    columns: ScoreColumns,
    normal: Annotated[
        str | None, options.value("LABEL", "Truth of ordinary rows.")
    ] = None,
    unseen: Annotated[
        str, options.value("TEXT", "Why these rows are new to the scores.")
    ] = "",
    confidence: options.Confidence = None,
    by: Annotated[
        str | None,
        options.value(
            "COL,..",
            "Columns that part the rows: each part has the promise, sex,age:30,45 "
            'or sex*site; the promise may name them instead, "... in every sex".',
        ),
    ] = None,
    groups: options.Groups = None,
    row_id: Annotated[
        str | None, options.value("COL", "Name of each row.", "--id")
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
        options.value("LABEL,..", "Promise nothing about these labels."),
    ] = None,
    drop_missing: Annotated[
        bool, typer.Option("--drop-missing", help="Leave rows without a score out.")
    ] = False,
    among: Annotated[
        int,
        typer.Option(
            min=1,
            help="Rules that this file makes in all, if this command is not the only "
            "one; they share the confidence.",
        ),
    ] = 1,
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
    reading: options.Reading,
) -> None:
    """Make a rule that keeps a promise, from the scores that any model gave.

    DATA holds labelled rows that were new to all that made the scores. Scores are one
    column a class (--scores), the certainty of one label (--predicted, --score), the
    score of one of two classes (--score, --positive), or how unusual a row looks
    (--anomaly).
    """
    from prudent.rules.promise import ScoreTable

    wanted = _check_promises(wishes, outputs, confidence, among, items_of(by))
    if not unseen:
        raise UsageError(NOT_SAID_UNSEEN)
    score_columns = columns.columns
    if ties == "smoothed" and row_id is None:
        raise UsageError("--ties smoothed tosses a coin for each --id: name the column")
    group, excluded = _column_of_groups(wanted), names(without)
    table, target = columns.open(data, truth, reading, (group, groups, row_id))
    items = [item for wish in wanted for item in wish.subgroups]
    parts = columns_in(table, items, target)
    values, kept = columns.values(table, drop_missing=drop_missing)
    truths = None if target is None else table.truth(target)
    if truths is not None:
        kept &= rows_with_label(truths) & ~np.isin(truths, excluded)
        truths = truths[kept]

    if not kept.any():
        raise TableError(
            f"{data} has no row left: each lacks a score or a label, or --without "
            "names its label."
        )

    def words(name: str | None) -> NDArray[np.str_] | None:
        return None if name is None else table.words(name)[kept]

    values, ids = values[kept], words(row_id)
    labels: list[str] | None = None
    if columns.scores is not None and truths is not None:
        labels = columns.labels(truths)
        chosen = [place for place, label in enumerate(labels) if label not in excluded]
        _note_on_sums(values)
        score_columns = [score_columns[place] for place in chosen]
        labels, values = [labels[place] for place in chosen], values[:, chosen]
    elif columns.positive is not None and truths is not None:
        labels = _two_labels(columns.positive, truths, str(target))
    _refuse_constant(values, score_columns)
    if groups is None:
        _refuse_repeats(table, np.flatnonzero(kept), values, truths, ids)
    by_parts: Any = words(group)
    if parts and group is None:
        frame = table_of(table, parts).filter(kept)
        for wish in wanted:  # refuses what cannot part rows, as --by
            memberships(wish.subgroups, frame)
        by_parts = {name: frame[name].to_numpy() for name in parts}

    with failing_as_data():
        score_table = ScoreTable(
            values if columns.scores is not None else values[:, 0],
            truths,
            predicted=words(columns.predicted),
            groups=words(groups),
            classes=labels,
            by=by_parts,
            ties=ties,
            ids=ids,
            ordinary=normal,
            allow_rare=allow_rare,
            random_state=seed,
        )
        rules = score_table.rules(
            [wish.text for wish in wanted],
            confidence=confidence,
            unseen=unseen,
            among=among,
        )
    record = {
        "columns": score_columns,
        "label": columns.predicted,
        "group": group,
        "id": row_id,
        "ordinary": normal,
        "data": {
            "file": Path(data).name,
            "sha256": fingerprint(data),
            "rows": len(values),
            "seed": seed,
        },
    }
    rules = tuple(_recorded(rule, record, excluded) for rule in rules)
    with ending("{}", ExitCode.DATA):
        texts = [rule.to_json() for rule in rules]
    if keep_scores:
        with ending("--keep-scores: {}. Leave it out", ExitCode.USAGE):
            texts = [rule.to_json(keep_scores=True) for rule in rules]
    for rule, text, output in zip(rules, texts, outputs, strict=True):
        _note_on_errors(rule)
        _note_on_parts(rule)
        _note_on_sign(rule, values, labels)
        write_whole(output, text + "\n")
        print(f"{counted(len(values), 'row')} of {data} make {output}")
        _say_promised(rule.guarantees)
    if excluded:
        print(f"Nothing is promised about rows of {listed(map(repr, excluded))}.")


def _say_promised(promises: Sequence[Guarantee]) -> None:
    """Print every promise of a rule; of a share, what it means for a day's queue."""
    from prudent.certification.planning import queue_in_words, share_of_people

    for guarantee in promises:
        print(f"Promised: {guarantee}")
        if share_of_people(guarantee) is not None:
            print(f"{queue_in_words(guarantee)}.")


def _check_promises(
    wishes: Sequence[str],
    outputs: Sequence[Path],
    confidence: float | None,
    among: int,
    by: Sequence[str],
) -> list[Wish]:
    """What is asked for; refuses promises without a file each, and shared averages."""
    from prudent.rules.wish import parse_promise

    with ending("{}", ExitCode.USAGE):
        wanted = [parse_promise(wish, confidence=confidence, by=by) for wish in wishes]
    if len(outputs) != len(wishes):
        raise UsageError(
            f"--promise is given {len(wishes)} times and -o {len(outputs)} times: name "
            "a file for each promise, in their order"
        )
    if len({output.resolve() for output in outputs}) != len(outputs):
        raise UsageError("two promises go to one file: name a file for each with -o")
    parsed = [wish for wish in wanted if wish is not None]
    if len(parsed) < len(wanted):
        raise UsageError("--promise none makes no rule: say what is to be promised")
    if len(parsed) > 1 and any(wish.confidence is None for wish in parsed):
        note(
            "a promise on average is not one of a rule that is chosen among these "
            "after a look at the rows: for that give --confidence"
        )
    if among == 1:
        return parsed
    if among < len(wishes):
        raise UsageError(
            f"--among {among} is less than the {len(wishes)} promises given: count "
            "these, too"
        )
    if any(wish.confidence is None for wish in parsed):
        raise UsageError("--among is for promises with a confidence: give --confidence")
    return parsed


def _column_of_groups(wishes: Sequence[Wish]) -> str | None:
    """The column of groups that part the rows without overlap; None for other parts.

    Coverage in every value of one column is what a file of a rule holds by groups.
    """
    named = {wish.subgroups for wish in wishes}
    if len(named) > 1 or any(w.kind != "coverage" or w.by_class for w in wishes):
        return None
    (items,) = named
    is_plain = len(items) == 1 and not any(mark in items[0] for mark in "*:")
    return items[0] if is_plain else None


def _two_labels(positive: str, truths: NDArray[np.str_], column: str) -> list[str]:
    """The label that a low score speaks for, and the one of a high score."""
    others = sorted(set(truths.tolist()) - {positive})
    if len(others) != 1:
        raise TableError(
            f"--positive needs two labels in {shown(column)}, there are "
            f"{listed([positive, *others])}"
        )
    return [others[0], positive]


def _refuse_constant(values: NDArray[np.float64], columns: Sequence[str]) -> None:
    """Refuse a score that says nothing."""
    if len(values) and (values == values.flat[0]).all():
        verb = "is" if len(columns) == 1 else "are"
        raise TableError(
            f"{listed(map(repr, columns))} {verb} {values.flat[0]:g} in every row: use "
            "prudent certify."
        )


def _refuse_repeats(
    table: Table,
    rows: NDArray[np.intp],
    values: NDArray[np.float64],
    truths: NDArray[np.str_] | None,
    ids: NDArray[np.str_] | None,
) -> None:
    """Refuse rows that stand there twice, and say where in the file."""
    from prudent.rules.promise import repeated_rows

    repeated = repeated_rows(values, truths, ids)
    if repeated is None:
        return
    n_repeated, first, again = repeated
    noun, place = table.place(int(rows[first])).split(" ", 1)
    places = f"{noun}s {place} and "
    places += table.place(int(rows[again])).removeprefix(f"{noun} ")
    hint = ""
    if ids is None:
        hint = "; --id COL tells different rows apart, which trees may score alike"
    verb = "repeats" if n_repeated == 1 else "repeat"
    raise TableError(
        f"{counted(n_repeated, 'row')} {verb} an earlier one ({places}): remove them, "
        f"or give --groups{hint}."
    )


def _note_on_sums(values: NDArray[np.float64]) -> None:
    """Say so where probabilities do not sum to one in some rows."""
    sums = values.sum(axis=1)
    off = int((np.abs(sums - 1) > NEAR_ONE).sum())
    if 0 < off < len(values) and (values >= 0).all() and (values <= 1).all():
        note(f"{off} of {len(values)} rows do not sum to one: used as scores.")


def _note_on_parts(rule: Rule) -> None:
    """Name the parts of the rows in which nothing is answered, or promised."""
    from prudent.rules.make import CellErrors

    never = list(rule.never_answered)
    if isinstance(rule.calibration, CellErrors):
        never += rule.calibration.too_small(rule.guarantees[0].bound)
    if never:
        note(
            f"never answered, for nothing is proved of them: {listed(never)}",
            always=True,
        )


def _note_on_errors(rule: Rule) -> None:
    """Say so where no label at all is wrong."""
    if rule.kind == "answers" and rule.calibration is not None:
        wrong = getattr(getattr(rule.calibration, "scores", None), "wrong", None)
        if wrong is not None and int(wrong[-1]) == 0:
            note("no label is wrong: so look rows that were trained on.", always=True)


def _note_on_sign(
    rule: Rule, values: NDArray[np.float64], labels: Sequence[str] | None
) -> None:
    """Say so where one score has one sign in all rows, and so gives one answer only."""
    if rule.kind != "answers" or labels is None or values.shape[1] > 1:
        return
    sides = (("above", (values <= 0).all()), ("below", (values >= 0).all()))
    for label, (side, is_empty) in zip(labels, sides, strict=True):
        if is_empty:
            note(
                f"no score is {side} 0, where the answer changes, so that nearly every "
                f"answer is {shown(label)}: of a probability p, give log(p / (1 - p)), "
                "or --scores with a column of each class.",
                always=True,
            )


def _recorded(rule: Rule, known: Mapping[str, Any], excluded: Sequence[str]) -> Rule:
    """The rule with what its readers need to know of the file."""
    kept = {name: value for name, value in rule.record.items() if name not in known}
    given = {name: value for name, value in known.items() if value is not None}
    guarantees = rule.guarantees
    if rule.by == "group":
        guarantees = tuple(
            replace(g, subgroup=f"{known['group']}={name}")
            for g, name in zip(guarantees, rule.groups, strict=True)
        )
    if excluded:
        sentence = f"the label is none of {', '.join(map(repr, excluded))}"
        guarantees = tuple(
            replace(g, assumptions=(*g.assumptions, sentence)) for g in guarantees
        )
    return replace(rule, record={**kept, **given}, guarantees=guarantees)


# --- prudent export and prudent apply: rules apart from models ------------------------


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

    A row without a score gets the full set, no answer, the label that must not be
    missed, or an alarm.
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
