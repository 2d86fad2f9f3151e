"""From counts of folds to the rows of a comparison, in their order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.core.binomial import clopper_pearson
from prudent.core.selection import holm
from prudent.core.types import BoolArray, IntArray
from prudent.evaluation.asked import AskedFold
from prudent.evaluation.checks import check_promises, counted, mcnemar_p_value, verdict
from prudent.evaluation.evaluate import LEVELS, Evaluation, FoldResult
from prudent.evaluation.folds import Task
from prudent.evaluation.measurements import (
    SHIFTS,
    FalseAlarmCurve,
    Sets,
    ShiftCurve,
    Tally,
)
from prudent.evaluation.methods import Method
from prudent.evaluation.records import (
    Asked,
    ClassRate,
    FoldScore,
    Frontier,
    MethodRow,
    Needs,
)
from prudent.evaluation.wishes import rows_needed
from prudent.io.errors import thousands

TIE_LEVEL = 0.05
MOST_WARNINGS = 10


def method_row(method: Method, found: Evaluation, task: Task) -> MethodRow:
    """Row of a method that ran on all folds."""
    n_repeats = task.settings.n_repeats
    total = Tally.total(result.tally for result in found.folds)
    # Each row is tested once per repeat: the interval knows how many rows there are.
    wrong, n = total.wrong.sum() / n_repeats, total.rows.sum() / n_repeats
    classes = task.rows.classes
    own = check_promises(
        [counted(r.guarantees, r.tally, classes) for r in found.folds], n_repeats
    )
    sets = _sets(total, n_repeats) if total.gives_sets else None
    asked = _asked(method, found, task)
    decided, wrong_when_decided = _decided(total)
    if asked is not None:
        decided, wrong_when_decided = asked.decided, asked.wrong_when_decided
    cost = None
    if task.costs is not None:
        cost = float((total.confusion * task.costs).sum() / total.rows.sum())
    per_row = [
        result.predict_seconds / len(fold.test)
        for result, fold in zip(found.folds, task.folds, strict=True)
    ]
    return MethodRow(
        method=method.name,
        is_baseline=method.is_baseline,
        error=float(wrong / n),
        error_interval=clopper_pearson(float(wrong), float(n)),
        worst_class=_largest(total.wrong, total, classes),
        cost=cost,
        decided=decided,
        wrong_when_decided=wrong_when_decided,
        asked=asked,
        own=own,
        own_kept=verdict(own, total.shares, decides=sets is None or sets.undecided < 1),
        sets=sets,
        confusion=tuple(map(tuple, (total.confusion / n_repeats).tolist())),
        fit_seconds=float(np.median([r.fit_seconds for r in found.folds])),
        predict_seconds=float(np.median(per_row)),
        notes=_notes(found.folds, task),
        warnings=_warnings(found.folds),
        shift=_shift_curve(found.folds),
        false_alarms=_false_alarm_curve(found.folds, n, n_repeats),
        calibration=found.calibration,
        regions=found.regions,
        parameters=found.parameters,
    )


def fold_scores(method: Method, found: Evaluation, task: Task) -> list[FoldScore]:
    """Scores of a method on each fold."""
    scores = []
    for result, fold in zip(found.folds, task.folds, strict=True):
        tally = result.tally
        sets = _sets(tally, 1) if tally.gives_sets else None
        scores.append(
            FoldScore(
                method=method.name,
                repeat=fold.repeat,
                fold=fold.number,
                n_train=result.n_train,
                n_test=len(fold.test),
                error=float(tally.wrong.sum() / len(fold.test)),
                set_size=None if sets is None else sets.mean_size,
                coverage=None if sets is None else sets.coverage,
                fit_seconds=result.fit_seconds,
                predict_seconds=result.predict_seconds,
            )
        )
    return scores


def drawbacks(found: Evaluation, task: Task) -> BoolArray:
    """What the ranking counts against a method, once for each row tested.

    Without a promise, wrong answers; with one, rows that are not decided; for
    promises about some classes, wrong answers on rows of the others.
    """
    once = task.settings.n_folds  # the folds of one repeat test each row once
    if task.wish is None:
        return np.concatenate([result.wrong for result in found.folds[:once]])
    if task.wish.kind != "missed" or not _others(task).any():
        return np.concatenate([~one.decided for one in found.asked[:once]])
    return _not_right(found.asked[:once], task)


def _not_right(asked: Sequence[AskedFold], task: Task) -> BoolArray:
    """Which rows of the classes that are not named are not answered rightly."""
    others = _others(task)
    return np.concatenate(
        [
            (one.wrong | ~one.decided)[others[task.rows.codes[fold.test]]]
            for one, fold in zip(asked, task.folds, strict=False)
        ]
    )


def in_order(
    rows: Sequence[MethodRow], against: Mapping[str, BoolArray]
) -> tuple[MethodRow, ...]:
    """Rows by usefulness, failed ones last; those not shown to differ say so.

    `against` says for each method which rows count against it.
    """
    ran = sorted((row for row in rows if row.error is not None), key=_rank)
    failed = [row for row in rows if row.error is None]
    if not ran:
        return tuple(failed)
    best, *others = ran
    p_values = holm(
        [mcnemar_p_value(against[best.method], against[row.method]) for row in others]
    )
    marked = [best]
    for row, p_value in zip(others, p_values, strict=True):
        # Disjoint intervals are a difference that everybody sees.
        apart = _interval(row)[0] > _interval(best)[1]
        same = p_value > TIE_LEVEL and not apart and _useful(row)
        marked.append(replace(row, no_difference_from=best.method if same else None))
    return (*marked, *failed)


def frontier(found: Mapping[str, Evaluation], task: Task) -> Frontier | None:
    """Rows decided at every level, by method; None where there is no such curve."""
    wish = task.wish
    if wish is None:
        return None
    counted = np.ones(len(task.rows.classes), dtype=bool)
    if wish.kind == "missed" and _others(task).any():
        counted = _others(task)
    decided = {}
    for name, evaluation in found.items():
        counts = [o.frontier for o in evaluation.asked if o.frontier is not None]
        if counts:
            tested = Tally.total(result.tally for result in evaluation.folds).rows
            shares = np.sum(counts, axis=0) / tested[counted].sum()
            decided[name] = tuple(shares.tolist())
    asked = 1 - wish.allowed if wish.kind == "coverage" else wish.allowed
    kind: Any = wish.kind
    return Frontier(
        kind=kind, levels=wish.levels, asked=round(asked, 12), decided=decided
    )


def _asked(method: Method, found: Evaluation, task: Task) -> Asked | None:
    """The promise asked for, over all folds."""
    if task.wish is None:
        return None
    folds = found.asked
    n_repeats = task.settings.n_repeats
    total = Tally.total(fold.tally for fold in folds)
    items = check_promises(
        [counted(f.guarantees, f.tally, task.rows.classes) for f in folds], n_repeats
    )
    n = float(total.rows.sum() / n_repeats)
    share, wrong = _decided(total)
    others_error, others_interval = None, (0.0, 1.0)
    useful = share > 0
    if task.wish.kind == "missed":
        unhelped = _not_right(folds, task)
        if len(unhelped):
            others_error = float(unhelped.mean())
            m = len(unhelped) / n_repeats
            others_interval = clopper_pearson(others_error * m, m)
        useful = useful and (others_error is None or others_error < 1)
    kept = verdict(items, total.shares, decides=useful) or "vacuous"
    least_covered = None
    if task.wish.kind == "coverage":
        missed = _largest(total.missed, total, task.rows.classes)
        least_covered = replace(missed, rate=1 - missed.rate)
    return Asked(
        kept=kept,
        needs=_needs(folds, method, found, task),
        items=items,
        decided=share,
        decided_interval=clopper_pearson(share * n, n),
        wrong_when_decided=wrong,
        worst_covered=least_covered,
        others_error=others_error,
        others_interval=others_interval,
        sets=_sets(total, n_repeats) if task.wish.kind != "missed" else None,
    )


def _needs(
    folds: Sequence[AskedFold], method: Method, found: Evaluation, task: Task
) -> Needs | None:
    """Rows that are missing for the rarest class that could not be promised."""
    assert task.wish is not None
    lacking = {k for fold in folds for k in fold.lacking}
    if not lacking:
        return None
    label = None
    if lacking != {-1}:
        counts = np.bincount(task.rows.codes, minlength=len(task.rows.classes))
        rarest = min(lacking - {-1}, key=lambda k: int(counts[k]))
        label = str(task.rows.classes[rarest])
    return rows_needed(
        task.wish,
        label,
        n_methods=task.n_methods,
        n_folds=task.settings.n_folds,
        full=method.name == "conformal"
        and task.wish.confidence is None
        and task.preparation is None
        and task.rows.groups is None,
    )


def _others(task: Task) -> BoolArray:
    """Classes that the wish does not name, shape (K,)."""
    assert task.wish is not None
    named = {g.scope for g in task.wish.guarantees}
    return np.array([label not in named for label in task.rows.classes.tolist()])


def _rank(row: MethodRow) -> tuple[float, ...]:
    asked = row.asked
    error = row.error or 0.0
    if asked is None:
        return (error,)
    if asked.others_error is not None:
        return (not _useful(row), asked.others_error, error)
    wrong = 1.0 if asked.wrong_when_decided is None else asked.wrong_when_decided
    return (-asked.decided, wrong, error)


def _useful(row: MethodRow) -> bool:
    """Whether a method with a promise answers anything."""
    return row.asked is None or (row.asked.decided > 0 and bool(row.asked.items))


def _interval(row: MethodRow) -> tuple[float, float]:
    """Exact interval of what the ranking counts against a method."""
    if row.asked is None:
        return row.error_interval
    if row.asked.others_error is not None:
        return row.asked.others_interval
    low, high = row.asked.decided_interval
    return 1 - high, 1 - low


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


def _notes(results: Sequence[FoldResult], task: Task) -> tuple[str, ...]:
    fitted, fold = results[0].n_train, task.folds[0]
    n_train = len(fold.train)
    if task.moments is not None:  # rows that are never tested among them
        n_train = int(task.moments[0].count.sum())
    n_train -= len(fold.train) - len(task.learnable(fold.train))
    if fitted == n_train:
        return ()
    return (f"fitted on {thousands(fitted)} of {thousands(n_train)} rows",)


def _warnings(results: Sequence[FoldResult]) -> tuple[str, ...]:
    """Different warnings of all folds; they may hold figures and go on for ever."""
    distinct = dict.fromkeys(text for result in results for text in result.warnings)
    return tuple(distinct)[:MOST_WARNINGS]


def _shift_curve(results: Sequence[FoldResult]) -> ShiftCurve:
    shifted = [result for result in results if result.shift_wrong is not None]
    n = sum(result.shift_rows for result in shifted)
    wrong: Any = sum(result.shift_wrong for result in shifted)
    return ShiftCurve(shifts=SHIFTS, errors=tuple((wrong / n).tolist()), n=n)


def _false_alarm_curve(
    results: Sequence[FoldResult], n: float, n_repeats: int
) -> FalseAlarmCurve | None:
    if results[0].false_alarms is None:
        return None
    counts: Any = sum(result.false_alarms for result in results)
    return FalseAlarmCurve(
        levels=LEVELS, false_alarms=tuple((counts / n_repeats).tolist()), n=float(n)
    )
