"""What `prudent monitor` watches, promises and drift, and how it stands after a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from prudent.cli.output import ExitCode
from prudent.core.guarantee import ALARMS, Guarantee, needs_labels, violated_rows
from prudent.core.rows import one_row_per_group
from prudent.core.types import FloatArray
from prudent.core.validation import plain
from prudent.estimator_tools import counted_answers, rows_about
from prudent.io.errors import counted, percent, thousands
from prudent.monitoring import DriftMonitor, PromiseMonitor
from prudent.monitoring.state import number

FORMAT = 1
NOT_WATCHED = "not watched"
ALARM_VERDICTS = ("broken", "drift")
#: Ranks among so many reference rows are fine enough.
MOST_REFERENCE_ROWS = 2000
#: Stands for a missing cell, below all others: that more are missing is drift too.
MISSING = -1e308
#: What is kept of a run.
UPDATE = {
    **{"data": str, "features": str, "rows": int},
    **{"labelled": int, "drift": bool, "seen": bool, "time": str},
}


@dataclass
class WatchedPromise:
    """A promise of the model, and its monitor where it can be watched."""

    guarantee: Guarantee
    monitor: PromiseMonitor | None
    reason: str = ""  # why it is not watched, in this run or at all; "" where it is
    alarm_time: str | None = None  # of the run that raised the alarm
    alarm_row: int | None = None  # its row among all rows of all runs, from 1


@dataclass
class Watch:
    """All that is watched about one model, in one state."""

    digest: str  # of the model
    level: float  # for all promises together, and once more for drift
    watch: str  # "rate" or "average"
    promises: list[WatchedPromise]
    drift: DriftMonitor | None = None
    drift_time: str | None = None  # of the run that saw drift
    drift_row: int | None = None  # its row among all rows of all runs, from 1
    reference: str | None = None  # digest of the reference rows, if from a file
    updates: list[dict[str, Any]] = field(default_factory=list)  # as UPDATE; only grows

    @classmethod
    def over(cls, estimator: Any, digest: str, level: float, watch: str) -> Self:
        """Begin to watch a model; each promise that can be watched has level / P."""
        guarantees = list(getattr(estimator, "guarantees_", ()))
        reasons = [_refused(guarantee) for guarantee in guarantees]
        share = level / max(1, reasons.count(""))
        promises = [
            WatchedPromise(
                guarantee,
                None if reason else PromiseMonitor(guarantee, level=share, watch=watch),  # type: ignore[arg-type]
                reason,
            )
            for guarantee, reason in zip(guarantees, reasons, strict=True)
        ]
        begun = cls(digest, level, watch, promises)
        if getattr(estimator, "calibration_scores_", None) is not None:
            begun.drift = DriftMonitor.from_detector(
                estimator, level=level, random_state=begun.seed
            )
        return begun

    @property
    def seed(self) -> int:
        """Of all coins: a function of the model."""
        return int(self.digest[:7], 16)

    def compare_with(
        self, X: FloatArray, digest: str, groups: NDArray[Any] | None = None
    ) -> int:
        """Take reference rows, one of each group; returns how many were drawn."""
        each = self._apart(len(X), groups, n_before=0)
        rows = np.random.default_rng(self.seed).permutation(each)
        kept = np.sort(rows[:MOST_REFERENCE_ROWS])
        self.drift = DriftMonitor(level=self.level, random_state=self.seed)
        self.drift.fit(for_ranks(X[kept]))
        self.reference = digest
        return len(kept)

    def see(
        self,
        X: Any,
        codes: FloatArray,
        start: int = 0,
        groups: NDArray[Any] | None = None,
    ) -> None:
        """Look for drift in new rows, as the model takes them or in numbers.

        `start` rows of all runs came before them. Of rows that belong together one is
        looked at: the others are no new draws, and would look like drift.
        """
        if self.drift is not None and len(codes):
            own_scores, n_before = self.reference is None, self.drift.n_
            rows = self._apart(len(codes), groups, n_before)
            seen = _safe_indexing(X, rows) if own_scores else for_ranks(codes[rows])
            self.drift.update(seen)
            if self.drift.alarm_at_ is not None and self.drift_row is None:
                row = rows[self.drift.alarm_at_ - n_before - 1]
                self.drift_row = start + int(row) + 1

    def _apart(
        self, n: int, groups: NDArray[Any] | None, n_before: int
    ) -> NDArray[np.intp]:
        """Positions of n rows, or of one row of each group, in their order.

        `n_before` rows were looked at before: one seed for all runs would show the same
        position of tables of equal shape in each of them, such as always the same hour.
        """
        if groups is None:
            return np.arange(n)
        random = np.random.RandomState([self.seed, n_before])
        return np.sort(one_row_per_group(groups, random))

    def count(
        self,
        estimator: Any,
        X: Any,
        truth: NDArray[Any],
        normal: Any = None,
        groups: NDArray[Any] | None = None,
        start: int = 0,
        *,
        are_new: bool = True,
    ) -> None:
        """Count rows, in the order they have.

        `truth` has labels as text, None for a row without one, which counts for shares
        of answered or flagged rows only; these leave rows out that are not `are_new`
        but got their labels since. `normal` is the label of the rows a detector should
        accept, where its promise does not name one. Promises about a random row of a
        new group need `groups`, and count one row of each. `start` rows of all runs
        came before them.
        """
        labelled = np.flatnonzero([label is not None for label in truth])
        known = {str(label): label for label in getattr(estimator, "classes_", ())}
        answers: dict[tuple[str, bool], tuple[Any, ...]] = {}
        for promise in self.promises:
            if promise.monitor is None or promise.reason:
                continue
            guarantee, monitor = promise.guarantee, promise.monitor
            scope, quantity = guarantee.scope, guarantee.quantity
            by_label = needs_labels(guarantee)
            rows = labelled if by_label else np.arange(len(truth) if are_new else 0)
            if not len(rows):
                continue
            own = _safe_indexing(X, rows)
            if (quantity, by_label) not in answers:
                answers[quantity, by_label] = counted_answers(quantity, estimator, own)
            answer = answers[quantity, by_label]
            spelled = known if scope is None else {**known, str(scope): scope}
            y = np.empty(len(rows), dtype=object)
            y[:] = [spelled.get(label, label) for label in truth[rows]]
            if needs_normal(guarantee):
                ordinary = quantity == "false alarm rate"
                y[(truth[rows] == normal) != ordinary] = None
            # Rows of other subgroups are left out by the monitor, once a row of each
            # group is drawn: drawn from the others, a group with few of them would
            # weigh as much as one with many.
            part = None
            if guarantee.subgroup is not None:
                part = rows_about(estimator, guarantee, own)
            together = None
            if guarantee.unit == "group" and groups is not None:
                together = groups[rows]
            n_before, n_groups = monitor.n_, monitor.n_groups_
            monitor.update_rows(y, *answer, groups=together, subgroups=part)
            if monitor.alarm_at_ is not None and promise.alarm_row is None:
                counted, _ = violated_rows(guarantee, y, *answer)
                if part is not None:
                    counted &= part
                drawn = guarantee.rows_that_count(len(rows), together, seed=n_groups)
                stream = rows[drawn][counted[drawn]]
                alarm = int(stream[monitor.alarm_at_ - n_before - 1])
                promise.alarm_row = start + alarm + 1

    def note_run(
        self,
        data: str,
        features: str,
        truth: NDArray[Any],
        *,
        drift: bool,
        seen: bool,
    ) -> None:
        """Note what was counted in a run, and when each new alarm was raised.

        `data` and `features` are digests; `drift` says whether drift was looked for,
        `seen` whether these are the rows of an earlier run, which had no labels.
        """
        time = datetime.now(UTC).isoformat(timespec="seconds")
        for promise in self.promises:
            if promise.monitor is not None and promise.monitor.alarm_at_ is not None:
                promise.alarm_time = promise.alarm_time or time
        if self.drift is not None and self.drift.alarm_at_ is not None:
            self.drift_time = self.drift_time or time
        labelled = sum(label is not None for label in truth)
        self.updates.append(
            {
                "data": data,
                "features": features,
                "rows": len(truth),
                "labelled": labelled,
                "drift": drift,
                "seen": seen,
                "time": time,
            }
        )

    @property
    def n_rows(self) -> int:
        """Rows of all runs; those whose labels came later are the same rows."""
        return self.n_rows_before(len(self.updates))

    def n_rows_before(self, run: int) -> int:
        """Rows of all runs before the one at this place in `updates`."""
        return sum(u["rows"] for u in self.updates[:run] if not u["seen"])

    def run_without_labels(self, features: str) -> int | None:
        """Place in `updates` of the rows whose labels a table with labels brings.

        That is the first run with this digest of features that had no labels and got
        none since. New rows may equal earlier ones by chance, in small tables of few
        values: a table without labels is new, and each run gets its labels once.
        """
        same = [i for i, u in enumerate(self.updates) if u["features"] == features]
        waiting = [i for i in same if not self.updates[i]["labelled"]]
        n_labelled_since = sum(self.updates[i]["seen"] for i in same)
        return next(iter(waiting[n_labelled_since:]), None)

    @property
    def exit_code(self) -> ExitCode:
        """Whether a promise is broken, or drift was seen, now or in an earlier run."""
        monitors = [promise.monitor for promise in self.promises]
        if any(m is not None and m.verdict == "broken" for m in monitors):
            return ExitCode.BROKEN_PROMISE
        if self.drift is not None and self.drift.verdict == "drift":
            return ExitCode.DRIFT
        return ExitCode.SUCCESS

    def drift_columns(self, features: list[str]) -> list[tuple[str, float, float]]:
        """Columns by their evidence, the most suspicious first, with mean positions."""
        if self.drift is None:
            return []
        names, *figures = self.drift.frame().to_pydict().values()
        if self.reference is not None:
            names = [features[int(column)] for column in names]
        return list(zip(names, *figures, strict=True))

    def to_dict(self) -> dict[str, Any]:
        """State in JSON types."""
        return {
            "format": FORMAT,
            "model": self.digest,
            "level": self.level,
            "watch": self.watch,
            "promises": [
                {
                    "monitor": None
                    if promise.monitor is None
                    else promise.monitor.to_dict(),
                    "alarm_time": promise.alarm_time,
                    "alarm_row": promise.alarm_row,
                }
                for promise in self.promises
            ],
            "drift": None if self.drift is None else self.drift.to_dict(),
            "drift_time": self.drift_time,
            "drift_row": self.drift_row,
            "reference": self.reference,
            "updates": self.updates,
        }

    @classmethod
    def resumed(cls, estimator: Any, state: dict[str, Any]) -> Self:
        """Go on from what `to_dict` gave, for the same model; from nothing else."""
        watch = cls.over(estimator, state["model"], state["level"], state["watch"])
        for promise, stored in zip(watch.promises, state["promises"], strict=True):
            if stored["monitor"] is not None:
                promise.monitor = PromiseMonitor.from_dict(stored["monitor"])
                if promise.monitor.guarantee != promise.guarantee:
                    raise ValueError("the state is of other promises")
            promise.alarm_time = stored["alarm_time"]
            promise.alarm_row = stored["alarm_row"]
        if state["drift"] is not None:
            watch.drift = DriftMonitor.from_dict(state["drift"], estimator)
        watch.drift_time, watch.reference = state["drift_time"], state["reference"]
        watch.drift_row = state["drift_row"]
        watch.updates = list(state["updates"])
        rows = [watch.drift_row, *(promise.alarm_row for promise in watch.promises)]
        times = [watch.drift_time, *(promise.alarm_time for promise in watch.promises)]
        if not (
            all(text is None or type(text) is str for text in [*times, watch.reference])
            and all(row is None or (type(row) is int and row > 0) for row in rows)
            and all({n: type(v) for n, v in u.items()} == UPDATE for u in watch.updates)
            and watch.to_dict() == state
        ):
            raise ValueError("no run wrote this state")
        return watch


def needs_normal(guarantee: Guarantee) -> bool:
    """Whether somebody has to say which rows the promise is about."""
    return guarantee.quantity in ALARMS and guarantee.scope is None


def for_ranks(X: FloatArray) -> FloatArray:
    """Finite numbers that rank as the cells do: a missing one below all others."""
    return np.clip(np.where(np.isnan(X), MISSING, X), MISSING, -MISSING)


def _refused(guarantee: Guarantee) -> str:
    """Why a promise cannot be watched; "" where it can."""
    try:
        PromiseMonitor(guarantee)
    except ValueError as error:
        message = str(error).removeprefix("PromiseMonitor: ").rstrip(".")
        return message.replace("a `confidence`", "--confidence")
    return ""


@dataclass(frozen=True)
class Finding:
    """How a promise stands, or drift."""

    name: str
    cells: tuple[str, str, str]  # rows, what was measured, e-value
    verdict: str  # one word, or "not watched"
    since: str  # row and day of the alarm; why it is not watched
    record: dict[str, Any]  # all of it, in JSON types

    @property
    def shown_verdict(self) -> str:
        """The verdict in the table of the terminal."""
        if self.verdict == NOT_WATCHED:
            return f"{NOT_WATCHED}: {self.since}"
        if self.verdict in ALARM_VERDICTS:
            return f"{self.verdict.upper()} since {self.since}"
        why = self.record.get("not_watched")
        return f"{self.verdict} (not watched now: {why})" if why else self.verdict


def findings(watch: Watch, features: list[str]) -> tuple[list[Finding], Finding | None]:
    """How every promise stands, and drift if it is watched."""
    drift = None if watch.drift is None else _of_drift(watch, watch.drift, features)
    return [_of_promise(promise) for promise in watch.promises], drift


def named(guarantee: Guarantee) -> str:
    """Short name of a promise: "error of class 'benign' ≤ 0.210"."""
    what = guarantee.quantity.removeprefix("class ").removesuffix(" rate")
    scope = "" if guarantee.scope is None else f" of class '{guarantee.scope}'"
    scope += "" if guarantee.subgroup is None else f" where {guarantee.subgroup}"
    sign = "≤" if guarantee.sense == "<=" else "≥"
    return f"{what}{scope} {sign} {guarantee.bound:.3f}"


def _of_promise(promise: WatchedPromise) -> Finding:
    guarantee, monitor = promise.guarantee, promise.monitor
    name, scope = named(guarantee), guarantee.scope
    record: dict[str, Any] = {
        "text": str(guarantee),
        "quantity": guarantee.quantity,
        "scope": plain(scope),
        "subgroup": guarantee.subgroup,
        "bound": guarantee.bound,
        "sense": guarantee.sense,
        "not_watched": promise.reason or None,
        "verdict": None,
    }
    if monitor is None:
        return Finding(name, ("", "", ""), NOT_WATCHED, promise.reason, record)
    rate, (low, high) = None, monitor.interval
    if monitor.n_:
        rate = monitor.violations_ / monitor.n_
        rate = 1 - rate if guarantee.quantity == "coverage" else rate
    record |= {
        "n": monitor.n_,
        "violations": monitor.violations_,
        "measured": rate,
        "interval": [low, high],
        "level": monitor.level,
        "null": monitor.null_,
        **_evidence(monitor, promise.alarm_time, promise.alarm_row),
    }
    if promise.reason and not monitor.n_:
        return Finding(name, ("0", "", ""), NOT_WATCHED, promise.reason, record)
    measured = "–" if rate is None else f"{rate:.3f} ({low:.3f}–{high:.3f})"
    cells = thousands(monitor.n_), measured, _shown_evidence(monitor)
    return Finding(name, cells, monitor.verdict, _since(record), record)


def _of_drift(watch: Watch, drift: DriftMonitor, features: list[str]) -> Finding:
    columns = [
        {"column": name, "e_value": number(e_value), "mean_position": place}
        for name, e_value, place in watch.drift_columns(features)
    ]
    record = {
        "n": drift.n_,
        **_evidence(drift, watch.drift_time, watch.drift_row),
        "columns": columns,
    }
    what = "score" if watch.reference is None else counted(len(features), "column")
    most = f"most: {columns[0]['column']}"
    cells = thousands(drift.n_), most, _shown_evidence(drift)
    return Finding(f"drift ({what})", cells, drift.verdict, _since(record), record)


def _evidence(
    monitor: PromiseMonitor | DriftMonitor, time: str | None, row: int | None
) -> Any:
    return {
        "e_value": number(monitor.e_value),
        "peak_e_value": number(monitor.peak_e_value),
        "verdict": monitor.verdict,
        "alarm_at": monitor.alarm_at_,
        "alarm_time": time,
        "alarm_row": row,
    }


def _shown_evidence(monitor: PromiseMonitor | DriftMonitor) -> str:
    """The e-value; of an alarm, which stays, the largest there was, which raised it."""
    is_alarm = monitor.alarm_at_ is not None
    return f"{monitor.peak_e_value if is_alarm else monitor.e_value:.2g}"


def _since(record: dict[str, Any]) -> str:
    """Row of all runs and day of the alarm, "" without one."""
    if record["alarm_row"] is None:
        return ""
    return f"row {thousands(record['alarm_row'])} ({str(record['alarm_time'])[:10]})"


def wrong_alarms(watch: Watch) -> list[str]:
    """What the verdicts of a monitor are worth; nothing where no promise is watched."""
    watched = [p.guarantee for p in watch.promises if p.monitor is not None]
    if not watched:
        return []
    true = "the promise is" if len(watched) == 1 else "the promises are"
    sentence = (
        f"If {true} true, this monitor ever says BROKEN with probability at most "
        f"{percent(watch.level, None)}"
    )
    confident = [g for g in watched if g.confidence is not None]
    if confident:
        # Promises with "claims" hold at once with their confidence, others each.
        at_once = {g.confidence for g in confident if "claims" in g.evidence}
        alone = [g.confidence for g in confident if "claims" not in g.evidence]
        missing = sum(1 - (c or 0) for c in [*at_once, *alone])
        sentence += (
            f"; that it does, or that {true} false, with at most "
            f"{percent(min(1.0, watch.level + missing), None)}"
        )
    return [f"{sentence}."]
