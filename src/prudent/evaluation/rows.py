"""Items of the long frame become the rows of a comparison, the most useful first."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute

from prudent.core.binomial import clopper_pearson
from prudent.core.checks import PromiseCheck, check_promises, share_level
from prudent.core.selection import holm
from prudent.core.types import BoolArray, FloatArray, IntArray
from prudent.estimator_tools.labelled_rows import LabelledRows
from prudent.evaluation.evaluate import (
    Evaluation,
    FoldResult,
    Task,
    is_in_sets,
    rows_of_cells,
    rows_of_parts,
)
from prudent.evaluation.frame import (
    Tally,
    checked_items,
    column_of,
    items_about,
    paired_p_value,
    verdict,
)
from prudent.evaluation.handed_over import handed_over
from prudent.evaluation.methods import Method
from prudent.evaluation.promising import rows_needed
from prudent.evaluation.records import (
    DECIDED_AT,
    SCHEMA,
    WRONG_AT,
    ClassRate,
    FoldScore,
    Frontier,
    MethodRow,
    Needs,
    RequestedPromise,
    Sets,
)
from prudent.io.errors import listed, thousands
from prudent.rules.wish import CAPACITIES, Wish

TIE_LEVEL = 0.05
LIMIT_ROUNDING = 1e-9  # of a limit times a count
MOST_WARNINGS = 10


def method_row(method: Method, evaluation: Evaluation, task: Task) -> MethodRow:
    """Row of a method that ran on all folds, without verdicts: `at_one_level`."""
    if method.chooses:
        task = task.alone()
    n_repeats = task.settings.n_repeats
    total = Tally.from_items(evaluation.items, task.rows.classes, asked=False)
    # Each row is tested once per repeat: the interval knows how many rows there are.
    wrong, n = total.wrong.sum() / n_repeats, total.rows.sum() / n_repeats
    classes = task.rows.classes
    sets = _sets(total, n_repeats) if total.gives_sets else None
    asked = _asked(evaluation, task)
    decided, wrong_when_decided = _decided(total)
    if asked is not None:
        decided, wrong_when_decided = asked.decided, asked.wrong_when_decided
    cost = None
    if task.costs is not None:
        cost = float((total.confusion * task.costs).sum() / total.rows.sum())
    fit = items_about(evaluation.items, "fit seconds")
    predict = items_about(evaluation.items, "predict seconds")
    ranges, examples = handed_over(evaluation, task) if task.details else ((), ())
    return MethodRow(
        method=method.name,
        is_baseline=method.is_baseline,
        chooses=method.chooses,
        error=float(wrong / n),
        error_interval=clopper_pearson(float(wrong), float(n)),
        worst_class=_largest(total.wrong, total, classes),
        cost=cost,
        decided=decided,
        wrong_when_decided=wrong_when_decided,
        asked=asked,
        own=tuple(check_promises([fold.own for fold in evaluation.folds], n_repeats)),
        sets=sets,
        why_undecided=method.why_undecided,
        confusion=tuple(map(tuple, (total.confusion / n_repeats).tolist())),
        fit_seconds=float(np.median(column_of(fit, "count"))),
        predict_seconds=float(
            np.median(column_of(predict, "count") / column_of(predict, "n"))
        ),
        notes=(
            *evaluation.notes,
            *_notes(evaluation.items, task),
            *_never_answered(asked, task),
        ),
        warnings=_warnings(evaluation.folds),
        regions=evaluation.regions,
        parameters=evaluation.parameters,
        ranges=ranges,
        examples=examples,
    )


def subgroup_counts(rows: LabelledRows) -> dict[str, tuple[int, ...]]:
    """Rows of each class in every subgroup, by its name."""
    if rows.inside is None:
        return {}
    counts = rows_of_parts(rows, np.arange(len(rows.y))).tolist()
    return dict(zip(rows.inside.names, map(tuple, counts), strict=True))


def _judged(
    row: MethodRow,
    asked: Sequence[PromiseCheck],
    own: Sequence[PromiseCheck],
    subgroup_counts: Mapping[str, Sequence[int]],
) -> MethodRow:
    """The row with these promises, and one verdict on each kind of them."""
    rows: dict[str | None, Any] = {None: np.sum(row.confusion, axis=1)}
    rows.update(subgroup_counts)
    shares = {name: np.divide(n, max(np.sum(n), 1)) for name, n in rows.items()}
    decides = row.sets is None or row.sets.undecided < 1
    promised = row.asked
    if promised is not None:
        about = {"decides": promised.useful, "has_share": promised.has_share}
        kept = verdict(asked, shares, **about) or "nothing answered"
        promised = replace(promised, items=tuple(asked), kept=kept)
    own_kept = verdict(own, shares, decides=decides)
    return replace(row, asked=promised, own=tuple(own), own_kept=own_kept)


def at_one_level(
    rows: Sequence[MethodRow],
    subgroup_counts: Mapping[str, Sequence[int]] = MappingProxyType({}),
) -> list[MethodRow]:
    """The rows of a table with verdicts that share one level over all of them.

    `subgroup_counts` are the rows of each class in every subgroup, by its name.
    """
    items = [() if row.asked is None else row.asked.items for row in rows]
    shared = share_level([*items, *(row.own for row in rows)])
    return [
        row if row.error is None else _judged(row, asked, own, subgroup_counts)
        for row, asked, own in zip(
            rows, shared[: len(rows)], shared[len(rows) :], strict=True
        )
    ]


def fold_scores(items: pa.Table, task: Task) -> list[FoldScore]:
    """Scores of a method on each fold, from its items."""
    scores = []
    for fold in task.folds:
        at = compute.and_(
            compute.equal(items["repeat"], fold.repeat),
            compute.equal(items["fold"], fold.number),
        )
        here = items.filter(at)
        tally = Tally.from_items(here, task.rows.classes, asked=False)
        sets = _sets(tally, 1) if tally.gives_sets else None
        sums = {
            name: items_about(here, name)["count"][0].as_py()
            for name in ("rows fitted on", "fit seconds", "predict seconds")
        }
        scores.append(
            FoldScore(
                method=here["method"][0].as_py(),
                repeat=fold.repeat,
                fold=fold.number,
                n_train=int(sums["rows fitted on"]),
                n_test=len(fold.test),
                error=float(tally.wrong.sum() / len(fold.test)),
                set_size=None if sets is None else sets.mean_size,
                coverage=None if sets is None else sets.coverage,
                fit_seconds=sums["fit seconds"],
                predict_seconds=sums["predict seconds"],
            )
        )
    return scores


def measured(rows: Sequence[MethodRow], items: Sequence[pa.Table]) -> pa.Table:
    """The long frame: items of all folds, then the promises over all folds."""
    checks = [
        checked_items(row.method, promises, asked=asked)
        for row in rows
        for promises, asked in (
            (() if row.asked is None else row.asked.items, True),
            (row.own, False),
        )
    ]
    return pa.concat_tables([SCHEMA.empty_table(), *items, *checks]).combine_chunks()


def gains(evaluation: Evaluation, task: Task) -> IntArray:
    """What the ranking counts for a method, once for each row tested."""
    once = task.settings.n_folds  # the folds of one repeat test each row once
    return np.concatenate([fold.gained for fold in evaluation.folds[:once]])


def in_order(
    rows: Sequence[MethodRow], gained: Mapping[str, IntArray]
) -> tuple[MethodRow, ...]:
    """Rows by usefulness, failed ones last; those not shown to differ say so.

    `gained` says for each method what the ranking counts for it on each row. Methods
    are held against the first one whose promise is not broken.
    """
    ran = sorted((row for row in rows if row.error is not None), key=_rank)
    failed = [row for row in rows if row.error is None]
    above = next((i for i, row in enumerate(ran) if not _is_broken(row)), len(ran))
    if above == len(ran):
        return (*ran, *failed)
    best, others = ran[above], ran[above + 1 :]
    p_values = holm(
        [paired_p_value(gained[best.method], gained[row.method]) for row in others]
    )
    marked = []
    for row, p_value in zip(others, p_values, strict=True):
        # Disjoint intervals are a difference that everybody sees.
        apart = _interval(row)[0] > _interval(best)[1]
        useful = row.asked is None or row.asked.useful
        differ = p_value <= TIE_LEVEL
        same = not differ and not apart and useful and _is_tested(best, row)
        marked.append(
            replace(
                row,
                no_difference_from=best.method if same else None,
                less_useful_than=best.method if differ else None,
            )
        )
    return (*ran[: above + 1], *marked, *failed)


def frontier(evaluations: Mapping[str, Evaluation], task: Task) -> Frontier | None:
    """Rows decided at every level, by method; None where there is no such curve."""
    wish = task.wish
    # How many rows are answered is what an answered share itself says.
    if wish is None or wish.kind == "answered":
        return None
    # Of promises about some classes, how much of the others is answered rightly.
    rightly = wish.kind == "missed" and bool(task.others.any())
    about = task.others if rightly else np.ones(len(task.rows.classes), dtype=bool)
    place = {str(label): k for k, label in enumerate(task.rows.classes.tolist())}
    decided, in_folds, wrong, by_class = {}, {}, {}, {}
    for name, evaluation in evaluations.items():
        answered = _at_levels(evaluation.items, DECIDED_AT, wish.levels, place)
        if answered is None:
            continue
        missed = _at_levels(evaluation.items, WRONG_AT, wish.levels, place)
        assert missed is not None
        # Those of folds on which nothing can be promised are among them.
        rows = Tally.from_items(evaluation.items, task.rows.classes, asked=False).rows
        counted = answered - missed if rightly else answered
        decided[name] = tuple((counted[:, about].sum(1) / rows[about].sum()).tolist())
        in_folds[name] = _shares_of_folds(evaluation, wish.levels)
        errors = zip(missed.sum(1).tolist(), answered.sum(1).tolist(), strict=True)
        wrong[name] = tuple(count / n if n else None for count, n in errors)
        # One row of each group is tested: of a rare class there may be none.
        by_class[name] = tuple(
            tuple((counts / n).tolist()) if n else (None,) * len(wish.levels)
            for counts, n in zip(counted.T, rows.tolist(), strict=True)
        )
    kind: Any = wish.kind
    return Frontier(
        kind=kind,
        levels=wish.levels,
        promises=tuple(wish.at(level) for level in wish.levels),
        asked=wish.level,
        about_rows=not wish.by_class,
        least=(wish.share or 0.0) if wish.kind == "error" else 0.0,
        decided=decided,
        in_folds=in_folds,
        wrong=wrong,
        by_class=by_class,
    )


def _shares_of_folds(
    evaluation: Evaluation, levels: Sequence[float]
) -> tuple[float, ...]:
    """Of all folds, those in which any row is decided at each level."""
    about = items_about(evaluation.items, DECIDED_AT, asked=True)
    columns = (about[name].to_pylist() for name in ("at", "repeat", "fold", "count"))
    counted = zip(*columns, strict=True)
    folds = {(at, repeat, fold) for at, repeat, fold, count in counted if count}
    n_folds = Counter(at for at, *_ in folds)
    return tuple(n_folds[level] / len(evaluation.folds) for level in levels)


def _at_levels(
    items: pa.Table, quantity: str, levels: Sequence[float], place: Mapping[str, int]
) -> FloatArray | None:
    """Rows counted at each level and in each class, (L, K); None without any item."""
    about = items_about(items, quantity, asked=True)
    if not len(about):
        return None
    counts = np.zeros((len(levels), len(place)))
    at = np.searchsorted(levels, column_of(about, "at"))
    classes = np.array([place[label] for label in about["scope"].to_pylist()])
    np.add.at(counts, (at, classes), column_of(about, "count"))
    return counts


def _asked(evaluation: Evaluation, task: Task) -> RequestedPromise | None:
    """The promise asked for, over all folds."""
    if task.wish is None:
        return None
    folds = evaluation.folds
    n_repeats = task.settings.n_repeats
    total = Tally.from_items(evaluation.items, task.rows.classes, asked=True)
    items = check_promises([fold.promises for fold in folds], n_repeats)
    share, wrong = _decided(total)
    others_error, others_interval = None, (0.0, 1.0)
    sets = _sets(total, n_repeats) if task.wish.kind != "missed" else None
    useful = share > 0
    if task.wish.kind == "coverage" and sets is not None:
        useful = sets.mean_size < len(task.rows.classes)
    if task.wish.kind == "missed":
        unhelped = -np.concatenate([fold.gained for fold in folds])
        if len(unhelped) and task.others.any():
            others_error = float(unhelped.mean())
            m = len(unhelped) / n_repeats
            others_interval = clopper_pearson(others_error * m, m)
        useful = useful and (others_error is None or others_error < 1)
    least_covered = None
    if task.wish.kind == "coverage":
        missed = _largest(total.missed, total, task.rows.classes)
        least_covered = replace(missed, rate=1 - missed.rate)
    worst = _worst_subgroup(items)
    if worst is not None and least_covered is not None:
        least_covered = replace(worst, rate=1 - worst.rate)
    wish = task.wish
    quantities = {item.guarantee.quantity for item in items}
    has_share = wish.share is None or not quantities.isdisjoint(CAPACITIES)
    return RequestedPromise(
        has_share=has_share,
        useful=useful and bool(items),
        is_inside=all(_is_inside(item, task.wish) for item in items),
        needs=_needs(folds, task),
        items=items,
        decided=share,
        wrong_when_decided=wrong,
        folds_decided=sum(bool(np.any(fold.decided)) for fold in folds),
        n_folds=len(folds),
        worst_covered=least_covered,
        worst_subgroup=worst,
        others_error=others_error,
        others_interval=others_interval,
        sets=sets,
    )


def _worst_subgroup(items: Sequence[PromiseCheck]) -> ClassRate | None:
    """The class and subgroup of the largest error; None without subgroups."""
    parts = [item for item in items if item.guarantee.subgroup is not None]
    if not parts:
        return None
    worst = max(parts, key=lambda item: item.violations / item.n)
    scope, subgroup = worst.guarantee.scope, str(worst.guarantee.subgroup)
    label = subgroup if scope is None else f"{scope} with {subgroup}"
    return ClassRate(label=label, rate=float(worst.violations / worst.n))


def _is_inside(item: PromiseCheck, wish: Wish) -> bool:
    """Whether a measured rate lies inside the limit that was asked for."""
    wished = [*wish.guarantees, *([] if wish.capacity is None else [wish.capacity])]
    limits = {(g.quantity, g.scope): g.bound for g in wished}
    promised = item.guarantee
    bound = limits.get((promised.quantity, promised.scope), promised.bound)
    allowed = bound if item.guarantee.sense == "<=" else 1 - bound
    return item.violations <= allowed * item.n + LIMIT_ROUNDING


def _needs(folds: Sequence[FoldResult], task: Task) -> Needs | None:
    """Rows that are missing for the rarest class that could not be promised."""
    assert task.wish is not None
    lacking = {k for fold in folds for k in fold.lacking}
    if not lacking:
        return None
    holds_out = all(fold.holds_out for fold in folds)
    return needs_of(lacking, task, holds_out=holds_out)


def needs_of(lacking: set[int], task: Task, *, holds_out: bool) -> Needs:
    """Rows that a table like this needs of the rarest of the classes that lack some.

    With subgroups those of the largest part, where one with rows enough is of use, else
    of the smallest.
    """
    table, wish, few = task.rows, task.wish, lacking - {-1}
    assert wish is not None
    every, labels = np.arange(len(table.y)), table.classes.tolist()
    label, n_rows = None, len(every)
    subgroup: str | None = None
    names: tuple[str, ...] = ()
    if few:
        rarest = min(few, key=lambda k: int(table.counts[k]))
        label, n_rows = labels[rarest], int(table.counts[rarest])
    if table.inside is not None:
        names, of_parts = table.inside.names, rows_of_parts(table, every)
        if wish.kind == "error":
            names, of_parts = rows_of_cells(table, every)
        else:
            of_parts = of_parts[:, rarest] if few else of_parts.sum(axis=1)
        one_is_of_use = not few or is_in_sets(wish, len(labels))
        place = int(of_parts.argmax() if one_is_of_use else of_parts.argmin())
        subgroup, n_rows = names[place], int(of_parts[place])
    needs = rows_needed(
        wish,
        label,
        n_methods=task.n_methods,
        n_folds=task.settings.n_folds,
        holds_out=holds_out,
        forward=table.times is not None,
        n_subgroups=len(names),
    )
    unit = "rows" if table.groups is None else "groups"
    if n_rows < len(every):
        share = max(n_rows, 1) / len(every)
        if table.groups is not None and few and subgroup is None:
            share = _share_of_groups(table.groups, table.codes == rarest)
        needs = replace(needs, of_table=math.ceil(needs.rows / share))
    there = n_rows if table.groups is None else None
    return replace(needs, there=there, unit=unit, subgroup=subgroup)


def _share_of_groups(groups: NDArray[Any], inside: BoolArray) -> float:
    """Chance that a random row of a random group is one of those inside."""
    _, group, size = np.unique(groups, return_inverse=True, return_counts=True)
    return float(np.sum(inside / size[group])) / len(size)


def _rank(row: MethodRow) -> tuple[float, ...]:
    """What rows are sorted by: most useful first."""
    asked = row.asked
    error = row.error or 0.0
    if asked is None:
        return (error,)
    if asked.others_error is not None:
        return (not asked.useful, asked.others_error, error)
    size = 0.0 if asked.sets is None else asked.sets.mean_size
    return (not asked.useful, -asked.net, size, error)


def _is_tested(first: MethodRow, second: MethodRow) -> bool:
    """Whether the ranking's gains say anything: not of sets none of which decides."""
    decided = [row.asked.decided for row in (first, second) if row.asked is not None]
    sets = [row.asked.sets for row in (first, second) if row.asked is not None]
    sizes = {each.mean_size for each in sets if each is not None}
    return any(decided) or len(sizes) < 2


def _is_broken(row: MethodRow) -> bool:
    return row.asked is not None and row.asked.kept == "broken"


def _interval(row: MethodRow) -> tuple[float, float]:
    """Exact interval of the error that the ranking goes by, if it goes by one."""
    if row.asked is None:
        return row.error_interval
    return row.asked.others_interval


def _decided(total: Tally) -> tuple[float, float | None]:
    """Share of rows with one answer, and of these the wrong ones."""
    decided = int(total.decided.sum())
    if decided == 0:
        return 0.0, None
    wrong = float(total.wrong_when_decided.sum() / decided)
    return float(decided / total.rows.sum()), wrong


def _largest(counts: IntArray, total: Tally, classes: NDArray[Any]) -> ClassRate:
    """The class of the largest rate of such rows."""
    rates = counts / np.maximum(total.rows, 1)
    worst = int(np.argmax(rates))
    return ClassRate(label=str(classes[worst]), rate=float(rates[worst]))


def _sets(total: Tally, n_repeats: int) -> Sets:
    sizes = np.arange(total.set_sizes.shape[1])
    rows, counts = total.rows, total.set_sizes.sum(axis=0)
    tested = np.maximum(rows, 1)  # with groups a class may have no tested row
    return Sets(
        mean_size=float(counts @ sizes / rows.sum()),
        undecided=float(1 - counts[1] / rows.sum()),
        coverage=float(total.covered.sum() / rows.sum()),
        size_counts=tuple((counts / n_repeats).tolist()),
        class_mean_size=tuple((total.set_sizes @ sizes / tested).tolist()),
        class_coverage=tuple((total.covered / tested).tolist()),
    )


def _notes(items: pa.Table, task: Task) -> tuple[str, ...]:
    lacks = _lacking_capacity(items, task)
    fitted = int(items_about(items, "rows fitted on")["count"][0].as_py())
    fold = task.folds[0]
    n_train = len(fold.train)
    if task.moments is not None:  # rows that are never tested among them
        n_train = int(task.moments[0].count.sum())
    n_train -= len(fold.train) - len(task.learnable(fold.train))
    if fitted == n_train:
        return lacks
    return (*lacks, f"fitted on {thousands(fitted)} of {thousands(n_train)} rows")


def _never_answered(asked: RequestedPromise | None, task: Task) -> tuple[str, ...]:
    """Say in which subgroups no row is answered, where some are in others."""
    inside, wish = task.rows.inside, task.wish
    if asked is None or inside is None or wish is None or wish.kind != "error":
        return ()
    answered = {item.guarantee.subgroup for item in asked.items}
    never = [name for name in inside.names if name not in answered]
    if not never or not answered:
        return ()
    return (f"no row with {listed(never)} is answered",)


def _lacking_capacity(items: pa.Table, task: Task) -> tuple[str, ...]:
    """Say in how many folds the share asked for could not be promised."""
    wish, n_folds = task.wish, len(task.folds)
    if wish is None or wish.share is None:
        return ()
    (share,) = [wish.capacity] if wish.capacity is not None else wish.guarantees
    n_proved = len(items_about(items, share.quantity, asked=True))
    if n_proved in (0, n_folds):  # none at all is a verdict
        return ()
    name, limit = share.quantity.removesuffix(" share"), f"{100 * share.bound:.4g}%"
    return (f"{name} {share.sense} {limit} is proved in {n_proved} of {n_folds} folds",)


def _warnings(results: Sequence[FoldResult]) -> tuple[str, ...]:
    """Different warnings of all folds; they may hold figures and go on for ever."""
    distinct = dict.fromkeys(text for result in results for text in result.warnings)
    return tuple(distinct)[:MOST_WARNINGS]
