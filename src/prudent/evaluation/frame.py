"""The long frame of a comparison, an item a row, and what its promises come to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute
from scipy.stats import binom

from prudent.core.checks import Counted, PromiseCheck
from prudent.core.guarantee import Guarantee
from prudent.core.types import BoolArray, FloatArray, IntArray
from prudent.evaluation.records import (
    ALARMS,
    CALIBRATION,
    DECIDED_AT,
    MOVED,
    SCHEMA,
    WRONG_AT,
    Findings,
    Kept,
)

ROUNDING = 1e-12  # of sums of shares and bounds


class Measured:
    """Items of one method on one fold, of which the long frame is made.

    `classes` are the labels, shape (K,); scopes are given as their positions.
    """

    def __init__(self, classes: NDArray[Any]) -> None:
        self._names = [str(label) for label in classes.tolist()]
        self._items: list[dict[str, Any]] = []

    def add(
        self,
        quantity: str,
        count: Any,
        n: Any,
        *,
        asked: bool = False,
        scope: Any = None,
        at: Any = None,
    ) -> None:
        """Add an item, or as many as the arrays hold; they are broadcast."""
        given = [count, n, *(values for values in (scope, at) if values is not None)]
        counts, rows, *rest = (np.ravel(a) for a in np.broadcast_arrays(*given))
        scopes = [None] * len(counts) if scope is None else rest.pop(0).tolist()
        places = [None] * len(counts) if at is None else rest.pop(0).tolist()
        for item in zip(counts.tolist(), rows.tolist(), scopes, places, strict=True):
            self._items.append(
                {
                    "asked": asked,
                    "quantity": quantity,
                    "scope": None if item[2] is None else self._names[item[2]],
                    "at": item[3],
                    "count": item[0],
                    "n": item[1],
                }
            )

    def add_answers(self, tally: Tally, *, asked: bool = False) -> None:
        """Add answers and sets, by true class; sets where the method gives any."""
        pairs = np.nonzero(tally.confusion)
        self.add(
            *("answered with", tally.confusion[pairs], tally.rows[pairs[0]]),
            asked=asked,
            scope=pairs[0],
            at=pairs[1],
        )
        if not tally.gives_sets:
            return
        pairs = np.nonzero(tally.set_sizes)
        self.add(
            *("set size", tally.set_sizes[pairs], tally.rows[pairs[0]]),
            asked=asked,
            scope=pairs[0],
            at=pairs[1],
        )
        classes = np.arange(len(tally.rows))
        self.add("covered", tally.covered, tally.rows, asked=asked, scope=classes)
        self.add(
            *("wrong when decided", tally.wrong_when_decided, tally.decided),
            asked=asked,
            scope=classes,
        )

    def add_levels(
        self,
        levels: Sequence[float],
        answers: Sequence[tuple[BoolArray, BoolArray]],
        true: IntArray,
    ) -> None:
        """Add which rows get one answer at each level, and which a wrong one.

        Both are counted by class: `answers` are two masks of the rows at each level,
        `true` are the rows' classes as positions, (n,).
        """
        n_classes = len(self._names)
        classes, at = np.arange(n_classes), np.array(levels)[:, None]
        rows = np.bincount(true, minlength=n_classes)
        decided, wrong = (
            np.array([np.bincount(true[mask], minlength=n_classes) for mask in masks])
            for masks in zip(*answers, strict=True)
        )
        self.add(DECIDED_AT, decided, rows, asked=True, scope=classes, at=at)
        self.add(WRONG_AT, wrong, decided, asked=True, scope=classes, at=at)

    def add_promises(self, counts: Iterable[Counted], *, asked: bool = False) -> None:
        """Add promises, with the rows that break them."""
        for promise, violations, n in counts:
            self._items.append(
                {**_promised(promise), "asked": asked, "count": violations, "n": n}
            )

    def table(self, repeat: int, fold: int) -> pa.Table:
        """The items of a fold, which is numbered from 1, in the columns of `SCHEMA`."""
        place = {"repeat": repeat, "fold": fold}
        items = [{**item, **place} for item in self._items]
        return pa.Table.from_pylist(items, schema=SCHEMA)


def _promised(promise: Guarantee) -> dict[str, Any]:
    """The columns of the long frame that say what is promised."""
    return {
        "quantity": promise.quantity,
        "scope": None if promise.scope is None else str(promise.scope),
        "subgroup": promise.subgroup,
        "promised": promise.bound,
        "sense": promise.sense,
        "confidence": promise.confidence,
        "average_over": promise.average_over,
    }


def checked_items(
    method: str, checks: Iterable[PromiseCheck], *, asked: bool
) -> pa.Table:
    """Promises over all folds, with interval, p-values and verdict, as items."""
    items = [
        {
            **_promised(item.guarantee),
            "method": method,
            "asked": asked,
            "count": item.violations,
            "n": item.n,
            "low": item.check.interval[0],
            "high": item.check.interval[1],
            "p_broken": item.p_broken,
            "p_kept": item.p_kept,
            "verdict": item.check.verdict,
        }
        for item in checks
    ]
    return pa.Table.from_pylist(items, schema=SCHEMA)


def shift_errors(findings: Findings, method: str) -> dict[float, tuple[float, float]]:
    """Wrong predictions, and rows, at each length by which the rows are moved.

    At most 2000 rows, a sample of the first repeat, in pooled standard deviations
    towards the nearest other class mean.
    """
    return summed_by(items_about(findings.measured, MOVED, method))


def false_alarms(findings: Findings, method: str) -> dict[float, tuple[float, float]]:
    """Rows disowned by their own class, and all rows, at each level, once a repeat.

    They are those of the folds where the method gave p-values: a choice may differ.
    """
    repeats = findings.settings.n_repeats
    sums = summed_by(items_about(findings.measured, ALARMS, method))
    return {level: (count / repeats, n / repeats) for level, (count, n) in sums.items()}


def calibrations(findings: Findings, method: str) -> list[list[float]]:
    """Errors before and after, and iterations, of a method that calibrates each fold.

    The errors are of the maximum-likelihood start and of the chosen iterate on the rows
    fitted on, fold by fold; iteration 0 keeps the start. Empty for other methods.
    """
    items = [items_about(findings.measured, name, method) for name in CALIBRATION]
    figures = [of_folds["count"].to_pylist() for of_folds in items]
    n_folds = findings.settings.n_folds * findings.settings.n_repeats
    return figures if len(figures[0]) == n_folds else []


def items_about(
    frame: pa.Table, quantity: str, method: str | None = None, *, asked: bool = False
) -> pa.Table:
    """The items of a long frame about one quantity, of one method or of all."""
    # By masks: a filter by an expression starts Arrow's engine each time, at the cost
    # of a hundred such comparisons, and loads pandas where that is installed.
    wanted = compute.equal(frame["quantity"], quantity)
    wanted = compute.and_(wanted, compute.equal(frame["asked"], asked))
    if method is not None:
        wanted = compute.and_(wanted, compute.equal(frame["method"], method))
    return frame.filter(wanted)


def column_of(items: pa.Table, name: str) -> NDArray[np.float64]:
    """A column of figures, shape (n_items,)."""
    return np.array(items[name].to_pylist(), dtype=np.float64)


def summed_by(items: pa.Table) -> dict[float, tuple[float, float]]:
    """Sums of `count` and `n` at each value of `at`, in rising order."""
    sums: dict[float, tuple[float, float]] = {}
    columns = (items[name].to_pylist() for name in ("at", "count", "n"))
    for at, count, n in zip(*columns, strict=True):
        before = sums.get(at, (0.0, 0.0))
        sums[at] = (before[0] + count, before[1] + n)
    return dict(sorted(sums.items()))


def in_sets(predicted: IntArray, sets: BoolArray | None, n_classes: int) -> BoolArray:
    """The sets, or those of the predicted class alone, shape (n, K)."""
    return predicted[:, None] == np.arange(n_classes) if sets is None else sets


@dataclass(frozen=True, eq=False)
class Tally:
    """Predictions of tested rows, and of their sets, counted by true class.

    A method that gives no sets answers with the one class that it predicts.
    """

    confusion: IntArray  # (K, K): by true and predicted class
    set_sizes: IntArray  # (K, K + 1): by true class and size of the set
    covered: IntArray  # (K,): rows whose set holds the true class
    wrong_when_decided: IntArray  # (K,): rows whose set holds one class, another one
    gives_sets: bool = True

    @classmethod
    def count(
        cls, true: IntArray, predicted: IntArray, sets: BoolArray | None, n_classes: int
    ) -> Tally:
        """Tally of rows given as class codes, and of their sets."""
        members = in_sets(predicted, sets, n_classes)
        sizes = members.sum(axis=1)
        holds = members[np.arange(len(true)), true]
        return cls(
            _pairs(true, predicted, n_classes, n_classes),
            _pairs(true, sizes, n_classes, n_classes + 1),
            np.bincount(true[holds], minlength=n_classes),
            np.bincount(true[(sizes == 1) & ~holds], minlength=n_classes),
            gives_sets=sets is not None,
        )

    @classmethod
    def from_items(
        cls, items: pa.Table, classes: NDArray[Any], *, asked: bool
    ) -> Tally:
        """The sum of the answers that `Measured.add_answers` put into a long frame."""
        place = {str(label): k for k, label in enumerate(classes.tolist())}
        n_classes = len(classes)

        def counts(quantity: str, width: int) -> IntArray:
            about = items_about(items, quantity, asked=asked)
            table = np.zeros((n_classes, width), dtype=np.intp)
            rows = [place[name] for name in about["scope"].to_pylist()]
            at = [int(number or 0) for number in about["at"].to_pylist()]
            np.add.at(table, (rows, at), about["count"].to_numpy().astype(np.intp))
            return table

        confusion = counts("answered with", n_classes)
        sizes = counts("set size", n_classes + 1)
        if not sizes.any():  # every answer is one class
            rows, right = confusion.sum(axis=1), np.diagonal(confusion)
            sizes[:, 1] = rows
            return cls(confusion, sizes, right, rows - right, gives_sets=False)
        wrong = counts("wrong when decided", 1)[:, 0]
        return cls(confusion, sizes, counts("covered", 1)[:, 0], wrong)

    @property
    def rows(self) -> IntArray:
        """Rows of each class, shape (K,)."""
        return self.confusion.sum(axis=1)

    @property
    def shares(self) -> FloatArray:
        """Share of each class in the rows, shape (K,)."""
        shares: FloatArray = self.rows / self.rows.sum()
        return shares

    @property
    def wrong(self) -> IntArray:
        """Wrong point predictions of each class, shape (K,)."""
        return self.rows - np.diagonal(self.confusion)

    @property
    def missed(self) -> IntArray:
        """Rows of each class whose set misses it, shape (K,)."""
        return self.rows - self.covered

    @property
    def decided(self) -> IntArray:
        """Rows of each class with one answer, shape (K,)."""
        return self.set_sizes[:, 1]


def _pairs(first: IntArray, second: IntArray, rows: int, columns: int) -> IntArray:
    counts = np.bincount(first * columns + second, minlength=rows * columns)
    return counts.reshape(rows, columns)


def counted(
    promises: Iterable[Guarantee],
    tally: Tally,
    classes: NDArray[Any],
    parts: Mapping[str, Tally] = MappingProxyType({}),
) -> list[Counted]:
    """Count promises on the rows of a tally, which are too many to be kept.

    Those about a subgroup are counted on its rows, the tally of which is among the
    `parts`. A promise about none of them, or of misses, is left out.
    """
    countable = []
    for promise in promises:
        about = tally if promise.subgroup is None else parts.get(promise.subgroup)
        if promise.quantity == "flagged share":  # of all rows, by what they are called
            flagged = tally.confusion[:, classes == promise.scope].sum()
            countable.append((promise, float(flagged), float(tally.rows.sum())))
        elif about is not None and promise.quantity in COUNTED:
            violations, rows = COUNTED[promise.quantity](about)
            scope = slice(None) if promise.scope is None else classes == promise.scope
            if rows[scope].any():
                n = float(rows[scope].sum())
                countable.append((promise, float(violations[scope].sum()), n))
    return countable


#: Rows that break a promise, and those that it is about, by true class.
COUNTED: Mapping[str, Callable[[Tally], tuple[IntArray, IntArray]]] = {
    "answered share": lambda tally: (tally.rows - tally.decided, tally.rows),
    "error rate": lambda tally: (tally.wrong, tally.rows),
    "class error rate": lambda tally: (tally.wrong, tally.rows),
    "coverage": lambda tally: (tally.missed, tally.rows),
    "false alarm rate": lambda tally: (tally.missed, tally.rows),
    "selective error rate": lambda tally: (tally.wrong_when_decided, tally.decided),
}


def verdict(
    promises: Sequence[PromiseCheck],
    class_shares: Mapping[str | None, FloatArray],
    *,
    decides: bool = True,
    has_share: bool = True,
) -> Kept | None:
    """One verdict on all promises of a method, None without any.

    `class_shares` (K,) are those of all rows (None), and of every subgroup by its name;
    `decides` says whether anything is answered, `has_share` whether the share asked for
    is among the promises.
    """
    if not promises:
        return None
    verdicts = {promise.check.verdict for promise in promises}
    if "broken" in verdicts:
        return "broken"
    if not decides:
        return "nothing answered"
    if not has_share:
        return "share not proved"
    if is_vacuous([p.guarantee for p in promises], class_shares):
        return "no better than always the most frequent class"
    return "kept" if verdicts == {"kept"} else "consistent"


def is_vacuous(
    promises: Sequence[Guarantee], class_shares: Mapping[str | None, FloatArray]
) -> bool:
    """Whether always answering the most frequent class could promise as much.

    It errs in one minus the share of that class, and in all rows of every other
    class: on average over the K classes in 1 - 1/K of the rows. A promise about
    every class is compared with that mean; one about some classes only, or about
    alarms, says nothing where its bound is 1. Promises by subgroup, in which the class
    that is most frequent in all rows has its own share, say something where those of
    one subgroup do.
    """
    names = {promise.subgroup for promise in promises}
    if len(names) > 1:
        return all(
            is_vacuous([p for p in promises if p.subgroup == name], class_shares)
            for name in names
        )
    overall: list[float] = []
    by_class: list[float] = []
    others: list[float] = []
    for promise in promises:
        if promise.quantity in ("answered share", "flagged share"):
            continue  # it says nothing of what is right
        if promise.quantity == "false alarm rate":
            others.append(promise.allowed)
        else:
            (overall if promise.scope is None else by_class).append(promise.allowed)
    all_rows = class_shares[None]
    tests = []
    if overall:
        (name,) = names
        share = class_shares.get(name, all_rows)[all_rows.argmax()]
        tests.append(min(overall) >= 1 - share - ROUNDING)
    if len(by_class) == len(all_rows):
        tests.append(float(np.mean(by_class)) >= 1 - 1 / len(all_rows) - ROUNDING)
    elif by_class:
        tests.append(min(by_class) >= 1)
    if others:
        tests.append(min(others) >= 1)
    return all(tests)


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
