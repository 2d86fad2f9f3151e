"""From counts of folds to the rows of a comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.comparison.evaluation import LEVELS, Evaluation, FoldResult, Problem
from prudent.comparison.measurements import FalseAlarmCurve, Sets, ShiftCurve
from prudent.comparison.methods import Method
from prudent.comparison.promises import check_promises, verdict
from prudent.comparison.result import FoldScore, MethodRow
from prudent.comparison.shift import SHIFTS
from prudent.comparison.tally import Tally
from prudent.comparison.ties import holm, mcnemar_p_value
from prudent.core.binomial import clopper_pearson

TIE_LEVEL = 0.05
MOST_WARNINGS = 10


def method_row(method: Method, found: Evaluation, problem: Problem) -> MethodRow:
    """Row of a method that ran on all folds."""
    n_repeats = problem.folds[-1].repeat
    tallies = [result.tally for result in found.folds]
    total = Tally.total(tallies)
    # Each row is tested once per repeat: the interval knows how many rows there are.
    wrong, n = total.wrong.sum() / n_repeats, total.rows.sum() / n_repeats
    promises = check_promises(
        [result.guarantees for result in found.folds],
        tallies,
        problem.classes,
        n_repeats,
    )
    sets = _sets(total, n_repeats)
    decides = sets is None or sets.undecided < 1
    per_row = [
        result.predict_seconds / len(fold.test)
        for result, fold in zip(found.folds, problem.folds, strict=True)
    ]
    return MethodRow(
        name=method.name,
        is_baseline=method.is_baseline,
        error=float(wrong / n),
        error_interval=clopper_pearson(float(wrong), float(n)),
        promises=promises,
        kept=verdict(promises, total.rows / total.rows.sum(), decides=decides),
        sets=sets,
        confusion=tuple(map(tuple, (total.confusion / n_repeats).tolist())),
        fit_seconds=float(np.median([r.fit_seconds for r in found.folds])),
        predict_seconds=float(np.median(per_row)),
        notes=_notes(found.folds, problem),
        warnings=_warnings(found.folds),
        shift=_shift_curve(found.folds),
        false_alarms=_false_alarm_curve(found.folds, n, n_repeats),
        calibration=found.calibration,
        regions=found.regions,
        parameters=found.parameters,
    )


def fold_scores(
    method: Method, found: Evaluation, problem: Problem
) -> tuple[FoldScore, ...]:
    """Scores of a method on each fold."""
    return tuple(
        _fold_score(method.name, result, fold.repeat, fold.number)
        for result, fold in zip(found.folds, problem.folds, strict=True)
    )


def wrong_rows(found: Evaluation, problem: Problem) -> NDArray[np.bool_]:
    """Whether each tested row is predicted wrongly, once for each row."""
    return np.concatenate(
        [
            result.wrong
            for result, fold in zip(found.folds, problem.folds, strict=True)
            if fold.repeat == 1
        ]
    )


def in_order(
    rows: Sequence[MethodRow], wrong: Mapping[str, NDArray[np.bool_]]
) -> tuple[MethodRow, ...]:
    """Rows by error, failed ones last; those not shown to be worse say so.

    `wrong` says for each method which rows it predicts wrongly.
    """
    ran = sorted(
        (row for row in rows if row.error is not None), key=lambda row: row.error or 0.0
    )
    failed = [row for row in rows if row.error is None]
    if not ran:
        return tuple(failed)
    best, *others = ran
    p_values = holm(
        [mcnemar_p_value(wrong[best.name], wrong[row.name]) for row in others]
    )
    marked = [best]
    for row, p_value in zip(others, p_values, strict=True):
        # Disjoint intervals are a difference that everybody sees.
        apart = row.error_interval[0] > best.error_interval[1]
        tied = p_value > TIE_LEVEL and not apart
        marked.append(replace(row, tied_with=best.name if tied else None))
    return (*marked, *failed)


def _sets(total: Tally, n_repeats: int) -> Sets | None:
    if total.set_sizes is None or total.covered is None:
        return None
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


def _notes(results: Sequence[FoldResult], problem: Problem) -> tuple[str, ...]:
    n_train = int(problem.moments[0].count.sum())
    if results[0].n_train == n_train:
        return ()
    return (f"fitted on {results[0].n_train:,} of {n_train:,} rows".replace(",", " "),)


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


def _fold_score(name: str, result: FoldResult, repeat: int, number: int) -> FoldScore:
    tally = result.tally
    rows = int(tally.rows.sum())
    sets = _sets(tally, 1)
    return FoldScore(
        method=name,
        repeat=repeat,
        fold=number,
        n_train=result.n_train,
        n_test=rows,
        error=float(tally.wrong.sum() / rows),
        set_size=None if sets is None else sets.mean_size,
        coverage=None if sets is None else sets.coverage,
        fit_seconds=result.fit_seconds,
        predict_seconds=result.predict_seconds,
    )
