"""What `prudent monitor` found: one record, written as words, cells and JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from prudent.io.errors import counted, thousands
from prudent.monitoring.state import number

if TYPE_CHECKING:
    from prudent.cli.watching import Watch, WatchedPromise
    from prudent.core.guarantee import Guarantee
    from prudent.monitoring import DriftMonitor, PromiseMonitor

NOT_WATCHED = "not watched"
ALARMS = ("broken", "drift")


@dataclass(frozen=True)
class Finding:
    """How a promise stands, or drift."""

    name: str
    cells: tuple[str, str, str]  # rows, what was measured, e-value
    verdict: str  # one word, or "not watched"
    since: str  # row and day of the alarm; why it is not watched
    record: dict[str, Any]  # all of it, in JSON types

    @property
    def said(self) -> str:
        """The verdict in the table of the terminal."""
        if self.verdict == NOT_WATCHED:
            return f"{NOT_WATCHED}: {self.since}"
        if self.verdict in ALARMS:
            return f"{self.verdict.upper()} since {self.since}"
        why = self.record.get("not_watched")
        return f"{self.verdict} (not watched now: {why})" if why else self.verdict


@dataclass(frozen=True)
class Found:
    """What is watched about a model, after a run."""

    head: tuple[str, str]  # what is watched, and what was counted
    findings: tuple[Finding, ...]  # promises, then drift
    footnotes: tuple[str, ...]  # sentences under the table
    heads: tuple[str, ...]  # of the columns of the terminal's table
    record: dict[str, Any]  # all of it, in JSON types

    @classmethod
    def of(cls, watch: Watch, model: str, data: str, features: list[str]) -> Found:
        """Look at what is watched, after `data` was counted."""
        promises = [_of_promise(promise) for promise in watch.promises]
        drift = [] if watch.drift is None else [_of_drift(watch, watch.drift, features)]
        update, since = watch.updates[-1], watch.updates[0]["time"]
        limits = f"measured ({100 * (1 - watch.level):.4g}% limits)"
        return cls(
            head=(
                f"{counted(len(promises), 'promise')}, level {watch.level:g} for all",
                f"{data}: {thousands(update['rows'])} rows, "
                f"{thousands(update['labelled'])} labelled; "
                f"{thousands(watch.n_rows)} rows since {since[:10]}",
            ),
            findings=(*promises, *drift),
            footnotes=tuple(_footnotes(watch)),
            heads=("promise", "rows counted", limits, "e-value", "verdict"),
            record={
                "model": model,
                "model_digest": watch.digest,
                "level": watch.level,
                "watch": watch.watch,
                "data": data,
                "update": update,
                "rows": watch.n_rows,
                "since": since,
                "promises": [promise.record for promise in promises],
                "drift": drift[0].record if drift else None,
                "exit_code": int(watch.exit_code),
            },
        )

    def lines(self) -> list[list[str]]:
        """Lines of the terminal's table."""
        return [[f.name, *f.cells, f.said] for f in self.findings]

    def page_table(self) -> tuple[list[str], list[list[str]]]:
        """Columns and lines of the page: the verdict first, a word of its own."""
        lines = [[f.name, f.verdict, f.since, *f.cells] for f in self.findings]
        return [self.heads[0], "verdict", "since", *self.heads[1:-1]], lines


def named(guarantee: Guarantee) -> str:
    """Short name of a promise: "class error of 'benign' ≤ 0.210"."""
    what = guarantee.quantity.removesuffix(" rate")
    scope = "" if guarantee.scope is None else f" of '{guarantee.scope}'"
    scope += "" if guarantee.subgroup is None else f" where {guarantee.subgroup}"
    sign = "≤" if guarantee.sense == "<=" else "≥"
    return f"{what}{scope} {sign} {guarantee.bound:.3f}"


def _of_promise(promise: WatchedPromise) -> Finding:
    guarantee, monitor = promise.guarantee, promise.monitor
    name, scope = named(guarantee), guarantee.scope
    record: dict[str, Any] = {
        "text": str(guarantee),
        "quantity": guarantee.quantity,
        "scope": scope.item() if hasattr(scope, "item") else scope,
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
    said = "–" if rate is None else f"{rate:.3f} ({low:.3f}–{high:.3f})"
    cells = thousands(monitor.n_), said, f"{monitor.e_value:.2g}"
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
    what = "score" if watch.reference is None else f"{len(features)} columns"
    most = f"most: {columns[0]['column']}"
    cells = thousands(drift.n_), most, f"{drift.e_value:.2g}"
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


def _since(record: dict[str, Any]) -> str:
    """Row of all runs and day of the alarm, "" without one."""
    if record["alarm_row"] is None:
        return ""
    return f"row {thousands(record['alarm_row'])} ({str(record['alarm_time'])[:10]})"


def _footnotes(watch: Watch) -> list[str]:
    said = [] if watch.drift is not None else ["drift: not watched, give --reference"]
    confident = [
        promise.guarantee
        for promise in watch.promises
        if promise.monitor is not None and promise.guarantee.confidence is not None
    ]
    if confident:
        # Promises with "claims" hold at once with their confidence, others each.
        at_once = {g.confidence for g in confident if "claims" in g.evidence}
        alone = [g.confidence for g in confident if "claims" not in g.evidence]
        missing = sum(1 - (c or 0) for c in [*at_once, *alone])
        said.append(
            f"A wrong BROKEN has probability at most {watch.level:g} over the life of "
            f"this state, and {min(1.0, watch.level + missing):.3g} with the training "
            "sample included."
        )
    return said
