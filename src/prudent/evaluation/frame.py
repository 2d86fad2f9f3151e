"""Counts of folds become the rows of a comparison: promises checked, rows ranked."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.signal import fftconvolve
from scipy.special import betainc, betaincc
from scipy.stats import betabinom, binom

from prudent.core.binomial import clopper_pearson
from prudent.core.guarantee import Guarantee, Verdict
from prudent.core.selection import holm
from prudent.core.types import BoolArray, IntArray
from prudent.evaluation.evaluate import (
    LEVELS,
    SHIFTS,
    AskedFold,
    Evaluation,
    FoldResult,
    Tally,
    Task,
)
from prudent.evaluation.methods import Method
from prudent.evaluation.promising import rows_needed
from prudent.evaluation.records import (
    Asked,
    ClassRate,
    FalseAlarmCurve,
    FoldScore,
    Frontier,
    Kept,
    MethodRow,
    Needs,
    PromiseCheck,
    Sets,
    ShiftCurve,
)
from prudent.io.errors import thousands
from prudent.rules.wish import Wish

LEVEL = 0.05
ROUNDING = 1e-12  # of sums of shares and bounds
Law = tuple[int, int]
# A promise, the rows that break it, and those that it is about.
Counted = tuple[Guarantee, float, float]


def counted(
    promises: Iterable[Guarantee], tally: Tally, classes: NDArray[Any]
) -> list[Counted]:
    """Count promises on the rows of a tally, which are too many to be kept.

    A promise about none of them, or of misses, is left out.
    """
    counts = {
        "error rate": (tally.wrong, tally.rows),
        "class error rate": (tally.wrong, tally.rows),
        "coverage": (tally.missed, tally.rows),
        "false alarm rate": (tally.missed, tally.rows),
        "selective error rate": (tally.wrong_when_decided, tally.decided),
    }
    found = []
    for promise in promises:
        if promise.quantity in counts:
            violations, rows = counts[promise.quantity]
            scope = slice(None) if promise.scope is None else classes == promise.scope
            if rows[scope].any():
                n = float(rows[scope].sum())
                found.append((promise, float(violations[scope].sum()), n))
    return found


def check_promises(
    folds: Iterable[Iterable[Counted]], n_repeats: int = 1
) -> tuple[PromiseCheck, ...]:
    """Hold the promises of a method's folds against its out-of-fold rows.

    Promises of the folds with the same quantity, scope and side are one promise; its
    bound is the mean of theirs, weighted by the rows tested; their verdicts share the
    level 0.05. With repeats every row is tested several times: counts are divided by
    `n_repeats`, so that the interval knows how many rows there are.

    A promise on average says nothing of one fold, yet the folds together can
    refute it where the law of their rates is known: with m calibration rows and
    the rank k of the cut, the rate of a fold is drawn from Beta(k, m + 1 - k), its
    violations are beta-binomial, and those of all folds are the sum of independent
    ones, whose law is computed exactly. For full conformal prediction k and the
    training rows take their place, which is approximate.
    """
    grouped: dict[tuple[Any, ...], list[Counted]] = {}
    for one in chain.from_iterable(folds):
        key = (one[0].quantity, one[0].scope, one[0].sense)
        grouped.setdefault(key, []).append(one)
    checked = []
    for group in grouped.values():
        rows = np.array([n for _, _, n in group], dtype=np.float64)
        bounds = np.array([promise.bound for promise, _, _ in group])
        # The mean of equal bounds may leave [0, 1] by an ulp.
        bound = min(1.0, float(rows @ bounds / rows.sum()))
        pooled = replace(group[0][0], bound=bound, evidence={})
        violations = sum(count for _, count, _ in group) / n_repeats
        n = float(rows.sum()) / n_repeats
        laws = [(_rate_law(promise), int(count)) for promise, _, count in group]
        known = [(law, count) for law, count in laws if law is not None]
        # The folds of one repeat test each row once.
        once = known[: math.ceil(len(known) / n_repeats)]
        is_mean = any(promise.average_over is not None for promise, _, _ in group)
        p_broken = p_kept = 1.0  # of an average whose law is not known
        if len(known) == len(laws):
            p_broken, p_kept = _pooled_tails(violations, once)
        elif not is_mean:
            allowed = bound if pooled.sense == "<=" else 1 - bound
            p_broken, p_kept = _binomial_tails(violations, n, allowed)
        checked.append(
            PromiseCheck(
                guarantee=pooled,
                violations=violations,
                n=n,
                p_broken=p_broken,
                p_kept=p_kept,
                is_approximate=any(
                    law is not None and promise.rate_law is None
                    for (law, _), (promise, _, _) in zip(laws, group, strict=True)
                ),
                check=pooled.judge(violations, n, level=LEVEL),
            )
        )
    (shared,) = share_level([checked])
    return shared


def share_level(
    tables: Sequence[Sequence[PromiseCheck]],
) -> list[tuple[PromiseCheck, ...]]:
    """The same promises with verdicts that hold at one level for all of them.

    "Broken" by Holm's procedure over all p-values at 0.05, and "kept" likewise: of a
    table of true promises none is called broken in 95 of 100 cases, whatever the
    dependence of its methods, which are tested on the same rows.
    """
    every = list(chain.from_iterable(tables))
    broken = holm([promise.p_broken for promise in every]) <= LEVEL
    kept = holm([promise.p_kept for promise in every]) <= LEVEL
    words: list[Verdict] = [
        "broken" if is_broken else "kept" if is_kept else "consistent"
        for is_broken, is_kept in zip(broken.tolist(), kept.tolist(), strict=True)
    ]
    judged = iter(
        replace(promise, check=replace(promise.check, verdict=word))
        for promise, word in zip(every, words, strict=True)
    )
    return [tuple(islice(judged, len(table))) for table in tables]


def verdict(
    promises: Sequence[PromiseCheck],
    class_shares: NDArray[np.float64],
    *,
    decides: bool = True,
) -> Kept | None:
    """One verdict on all promises of a method, None without any.

    `class_shares` are of the rows; `decides` says whether anything is answered.
    """
    if not promises:
        return None
    verdicts = {promise.check.verdict for promise in promises}
    if "broken" in verdicts:
        return "broken"
    if not decides:
        return "nothing answered"
    if is_vacuous([p.guarantee for p in promises], class_shares):
        return "no better than always the most frequent class"
    return "kept" if verdicts == {"kept"} else "consistent"


def is_vacuous(
    promises: Sequence[Guarantee], class_shares: NDArray[np.float64]
) -> bool:
    """Whether always answering the most frequent class could promise as much.

    It errs in one minus the share of that class, and in all rows of every other
    class: on average over the K classes in 1 - 1/K of the rows. A promise about
    every class is compared with that mean; one about some classes only, or about
    alarms, says nothing where its bound is 1.
    """
    overall: list[float] = []
    by_class: list[float] = []
    others: list[float] = []
    for promise in promises:
        allowed = promise.bound if promise.sense == "<=" else 1 - promise.bound
        if promise.quantity == "false alarm rate":
            others.append(allowed)
        else:
            (overall if promise.scope is None else by_class).append(allowed)
    n_classes = len(class_shares)
    tests = []
    if overall:
        tests.append(min(overall) >= 1 - class_shares.max() - ROUNDING)
    if len(by_class) == n_classes:
        tests.append(float(np.mean(by_class)) >= 1 - 1 / n_classes - ROUNDING)
    elif by_class:
        tests.append(min(by_class) >= 1)
    if others:
        tests.append(min(others) >= 1)
    return all(tests)


def _rate_law(promise: Guarantee) -> Law | None:
    """Rank and calibration rows of a promise on average; training rows for full."""
    if promise.average_over is None:
        return None
    if promise.rate_law is not None:
        return promise.rate_law
    if {"rank", "training rows"} <= set(promise.evidence):
        return int(promise.evidence["rank"]), int(promise.evidence["training rows"])
    return None


def _binomial_tails(violations: float, n: float, rate: float) -> tuple[float, float]:
    """P(V >= v) and P(V <= v) of n rows; counts may be means over repeats."""
    at_least = betainc(violations, n - violations + 1, rate) if violations > 0 else 1.0
    at_most = betaincc(violations + 1, n - violations, rate) if violations < n else 1.0
    return float(at_least), float(at_most)


def _pooled_tails(
    violations: float, folds: Sequence[tuple[Law, int]]
) -> tuple[float, float]:
    """P(V >= v) and P(V <= v) of a sum of independent beta-binomial counts."""
    law = np.ones(1)
    for (rank, n_calibration), n in folds:
        if n == 0:
            continue
        law = np.maximum(fftconvolve(law, _fold_law(rank, n_calibration, n)), 0.0)
    law /= law.sum()
    at_most = float(law[: math.floor(violations) + 1].sum())
    return float(law[math.ceil(violations) :].sum()), at_most


def _fold_law(rank: int, n_calibration: int, n: int) -> NDArray[np.float64]:
    """Probabilities of 0 to n violations in n rows of one fold."""
    if rank < 1 or rank > n_calibration:  # no row, or every row, is beyond the cut
        certain = np.zeros(n + 1)
        certain[0 if rank < 1 else n] = 1.0
        return certain
    law: NDArray[np.float64] = betabinom.pmf(
        np.arange(n + 1), n, rank, n_calibration + 1 - rank
    )
    return law


def paired_p_value(first: IntArray, second: IntArray) -> float:
    """Two-sided p-value of the exact sign-flip test; 1 where the two never differ.

    `first` and `second` hold what two methods gain on each row: 1, 0 or -1. If neither
    is the better one, which of the two has which gain is a fair coin on each row, so
    the difference of the sums is a sum of steps of 1 and of 2 with random signs, whose
    law is computed exactly. Where all steps are 1, as for right and wrong answers, this
    is the exact McNemar test (Fisher 1935; McNemar 1947, Psychometrika 12).

    Examples
    --------
    >>> import numpy as np
    >>> first, second = np.zeros(100, int), np.zeros(100, int)
    >>> first[:9], second[8:10] = 1, 1
    >>> round(paired_p_value(first, second), 4)
    0.0391
    """
    steps = np.asarray(first, dtype=np.intp) - np.asarray(second, dtype=np.intp)
    single = int(np.count_nonzero(np.abs(steps) == 1))
    double = int(np.count_nonzero(np.abs(steps) == 2))
    total = abs(int(steps.sum()))
    if total == 0:
        return 1.0
    forward = np.arange(double + 1)  # double steps in the direction of the first
    short = total - 2 * (2 * forward - double)  # what the single ones have to make up
    needed = np.ceil((short + single) / 2)
    tail = binom.pmf(forward, double, 0.5) @ binom.sf(needed - 1, single, 0.5)
    return min(1.0, 2 * float(tail))


TIE_LEVEL = 0.05
LIMIT_ROUNDING = 1e-9  # of a limit times a count
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
    asked = _asked(found, task)
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
    row = MethodRow(
        method=method.name,
        is_baseline=method.is_baseline,
        error=float(wrong / n),
        error_interval=clopper_pearson(float(wrong), float(n)),
        worst_class=_largest(total.wrong, total, classes),
        cost=cost,
        decided=decided,
        wrong_when_decided=wrong_when_decided,
        asked=asked,
        sets=sets,
        why_undecided=method.why_undecided,
        confusion=tuple(map(tuple, (total.confusion / n_repeats).tolist())),
        fit_seconds=float(np.median([r.fit_seconds for r in found.folds])),
        predict_seconds=float(np.median(per_row)),
        notes=(*found.notes, *_notes(found.folds, task)),
        warnings=_warnings(found.folds),
        shift=_shift_curve(found.folds),
        false_alarms=_false_alarm_curve(found.folds, n, n_repeats),
        calibration=found.calibration,
        regions=found.regions,
        parameters=found.parameters,
    )
    return _judged(row, () if asked is None else asked.items, own)


def _judged(
    row: MethodRow, asked: Sequence[PromiseCheck], own: Sequence[PromiseCheck]
) -> MethodRow:
    """The row with these promises, and one verdict on each kind of them."""
    rows = np.sum(row.confusion, axis=1)
    shares = rows / rows.sum()
    decides = row.sets is None or row.sets.undecided < 1
    promised = row.asked
    if promised is not None:
        kept = verdict(asked, shares, decides=promised.useful) or "nothing answered"
        promised = replace(promised, items=tuple(asked), kept=kept)
    own_kept = verdict(own, shares, decides=decides)
    return replace(row, asked=promised, own=tuple(own), own_kept=own_kept)


def at_one_level(rows: Sequence[MethodRow]) -> list[MethodRow]:
    """The rows of a table with verdicts that share one level over all of them."""
    items = [() if row.asked is None else row.asked.items for row in rows]
    shared = share_level([*items, *(row.own for row in rows)])
    return [
        row if row.error is None else _judged(row, asked, own)
        for row, asked, own in zip(
            rows, shared[: len(rows)], shared[len(rows) :], strict=True
        )
    ]


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


def gains(found: Evaluation, task: Task) -> IntArray:
    """What the ranking counts for a method, once for each row tested.

    With a promise 1 for a row decided rightly, -1 for one decided wrongly, else 0; for
    promises about some classes, and without a promise, -1 for each row (of the other
    classes) that is not answered rightly.
    """
    once = task.settings.n_folds  # the folds of one repeat test each row once
    if task.wish is None:
        wrong = np.concatenate([result.wrong for result in found.folds[:once]])
        return -wrong.astype(np.intp)
    asked = found.asked[:once]
    if task.wish.kind == "missed" and _others(task).any():
        return -_not_right(asked, task).astype(np.intp)
    decided = np.concatenate([fold.decided for fold in asked])
    wrong = np.concatenate([fold.wrong for fold in asked])
    gained: IntArray = decided.astype(np.intp) - 2 * wrong
    return gained


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
        same = p_value > TIE_LEVEL and not apart and useful
        marked.append(replace(row, no_difference_from=best.method if same else None))
    return (*ran[: above + 1], *marked, *failed)


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
        kind=kind,
        levels=wish.levels,
        promises=tuple(wish.at(level) for level in wish.levels),
        asked=round(asked, 12),
        about_rows=not wish.by_class,
        decided=decided,
    )


def _asked(found: Evaluation, task: Task) -> Asked | None:
    """The promise asked for, over all folds."""
    if task.wish is None:
        return None
    folds = found.asked
    n_repeats = task.settings.n_repeats
    total = Tally.total(fold.tally for fold in folds)
    items = check_promises(
        [counted(f.guarantees, f.tally, task.rows.classes) for f in folds], n_repeats
    )
    share, wrong = _decided(total)
    others_error, others_interval = None, (0.0, 1.0)
    sets = _sets(total, n_repeats) if task.wish.kind != "missed" else None
    useful = share > 0
    if task.wish.kind == "coverage" and sets is not None:
        useful = sets.mean_size < len(task.rows.classes)
    if task.wish.kind == "missed":
        unhelped = _not_right(folds, task)
        if len(unhelped):
            others_error = float(unhelped.mean())
            m = len(unhelped) / n_repeats
            others_interval = clopper_pearson(others_error * m, m)
        useful = useful and (others_error is None or others_error < 1)
    least_covered = None
    if task.wish.kind == "coverage":
        missed = _largest(total.missed, total, task.rows.classes)
        least_covered = replace(missed, rate=1 - missed.rate)
    return Asked(
        kept=verdict(items, total.shares, decides=useful) or "nothing answered",
        useful=useful and bool(items),
        is_inside=all(_is_inside(item, task.wish) for item in items),
        needs=_needs(folds, found, task),
        items=items,
        decided=share,
        wrong_when_decided=wrong,
        worst_covered=least_covered,
        others_error=others_error,
        others_interval=others_interval,
        sets=sets,
    )


def _is_inside(item: PromiseCheck, wish: Wish) -> bool:
    """Whether a measured rate lies inside the limit that was asked for."""
    limits = {g.scope: g.bound for g in wish.guarantees}
    bound = limits.get(item.guarantee.scope, item.guarantee.bound)
    allowed = bound if item.guarantee.sense == "<=" else 1 - bound
    return item.violations <= allowed * item.n + LIMIT_ROUNDING


def _needs(folds: Sequence[AskedFold], found: Evaluation, task: Task) -> Needs | None:
    """Rows that are missing for the rarest class that could not be promised."""
    assert task.wish is not None
    lacking = {k for fold in folds for k in fold.lacking}
    if not lacking:
        return None
    holds_out = all(fold.holds_out for fold in found.asked)
    return needs_of(lacking, task, holds_out=holds_out)


def needs_of(lacking: set[int], task: Task, *, holds_out: bool) -> Needs:
    """Rows that a table like this needs of the rarest of the classes that lack some."""
    assert task.wish is not None
    asked_of: dict[str, Any] = {
        "n_methods": task.n_methods,
        "n_folds": task.settings.n_folds,
        "holds_out": holds_out,
    }
    if lacking == {-1}:
        return rows_needed(task.wish, None, **asked_of)
    rarest = min(lacking - {-1}, key=lambda k: int(task.rows.counts[k]))
    needs = rows_needed(task.wish, task.rows.classes.tolist()[rarest], **asked_of)
    share = task.rows.counts[rarest] / len(task.rows.y)
    return replace(needs, of_table=math.ceil(needs.rows / share))


def _others(task: Task) -> BoolArray:
    """Classes that the wish does not name, shape (K,)."""
    assert task.wish is not None
    named = {g.scope for g in task.wish.guarantees}
    return np.array([label not in named for label in task.rows.classes.tolist()])


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
