"""What `prudent monitor` found, in words, cells and JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prudent.io.errors import counted, thousands
from prudent.monitoring.state import number

if TYPE_CHECKING:
    from prudent.cli.watching import Watch, WatchedPromise
    from prudent.core.guarantee import Guarantee
    from prudent.monitoring import DriftMonitor, PromiseMonitor

NO_DRIFT = "drift: not watched, give --reference"


def head(found: Watch, data: str, update: dict[str, Any]) -> tuple[str, str]:
    """Say what is watched, and what was counted: the first line after the model."""
    return (
        f"{counted(len(found.promises), 'promise')}, level {found.level:g} for all",
        f"{data}: {thousands(update['rows'])} rows, "
        f"{thousands(update['labelled'])} labelled; {thousands(n_rows(found))} rows "
        f"since {found.updates[0]['time'][:10]}",
    )


def n_rows(found: Watch) -> int:
    """Rows of all runs; those whose labels came later are the same rows."""
    seen: set[str] = set()
    total = 0
    for update in found.updates:
        if update["drift"] or update["features"] not in seen:
            total += update["rows"]
        seen.add(update["features"])
    return total


def page_table(found: Watch, features: list[str]) -> tuple[list[str], list[list[str]]]:
    """Columns and lines of the page: the verdict first, a word of its own."""
    columns, lines = table(found, features)
    verdicts = [
        ("not watched", promise.reason)
        if promise.monitor is None or (promise.reason and not promise.monitor.n_)
        else (promise.monitor.verdict, _since(promise.monitor, promise.alarm_time))
        for promise in found.promises
    ]
    if found.drift is not None:
        verdicts.append((found.drift.verdict, _since(found.drift, found.drift_time)))
    turned = [
        [line[0], *verdict, *line[1:-1]]
        for line, verdict in zip(lines, verdicts, strict=True)
    ]
    return [columns[0], "verdict", "since", *columns[1:-1]], turned


def _since(monitor: PromiseMonitor | DriftMonitor, time: str | None) -> str:
    """Row and day of the alarm, "" without one."""
    if monitor.alarm_at_ is None:
        return ""
    return f"row {thousands(monitor.alarm_at_)} ({str(time)[:10]})"


def table(found: Watch, features: list[str]) -> tuple[list[str], list[list[str]]]:
    """Columns and lines of the terminal's table."""
    lines = [_promise_line(promise) for promise in found.promises]
    if found.drift is not None:
        column = drift_columns(found, features)[0][0]
        what = "score" if found.reference is None else f"{len(features)} columns"
        verdict: str = found.drift.verdict
        if found.drifted:
            verdict = f"DRIFT since {_since(found.drift, found.drift_time)}"
        lines.append(
            [
                f"drift ({what})",
                thousands(found.drift.n_),
                f"most: {column}",
                f"{found.drift.e_value:.2g}",
                verdict,
            ]
        )
    limits = f"measured ({100 * (1 - found.level):.4g}% limits)"
    return ["promise", "rows", limits, "e-value", "verdict"], lines


def footnotes(found: Watch) -> list[str]:
    """Sentences under the table."""
    said = [] if found.drift is not None else [NO_DRIFT]
    confident = {
        promise.guarantee.confidence
        for promise in found.promises
        if promise.monitor is not None and promise.guarantee.confidence is not None
    }
    if confident:
        missing = sum(1 - c for c in confident)
        said.append(
            f"A wrong BROKEN has probability at most {found.level:g} over the life of "
            f"this state, and {min(1.0, found.level + missing):.3g} with the training "
            "sample included."
        )
    return said


def _promise_line(promise: WatchedPromise) -> list[str]:
    monitor = promise.monitor
    if monitor is None:
        return [named(promise.guarantee), "", "", "", f"not watched: {promise.reason}"]
    if promise.reason and not monitor.n_:
        return [named(promise.guarantee), "0", "", "", f"not watched: {promise.reason}"]
    verdict: str = monitor.verdict
    if verdict == "broken":
        verdict = f"BROKEN since {_since(monitor, promise.alarm_time)}"
    elif promise.reason:
        verdict += f" (not watched now: {promise.reason})"
    return [
        named(promise.guarantee),
        thousands(monitor.n_),
        _measured(monitor),
        f"{monitor.e_value:.2g}",
        verdict,
    ]


def named(guarantee: Guarantee) -> str:
    """Short name of a promise: "class error of 'benign' ≤ 0.210"."""
    what = guarantee.quantity.removesuffix(" rate")
    scope = "" if guarantee.scope is None else f" of '{guarantee.scope}'"
    sign = "≤" if guarantee.sense == "<=" else "≥"
    return f"{what}{scope} {sign} {guarantee.bound:.3f}"


def measured(monitor: PromiseMonitor) -> float | None:
    """The quantity as counted, None without rows."""
    if not monitor.n_:
        return None
    rate = monitor.violations_ / monitor.n_
    return 1 - rate if monitor.guarantee.quantity == "coverage" else rate


def _measured(monitor: PromiseMonitor) -> str:
    rate = measured(monitor)
    if rate is None:
        return "–"
    low, high = monitor.interval
    return f"{rate:.3f} ({low:.3f}–{high:.3f})"


def drift_columns(found: Watch, features: list[str]) -> list[tuple[str, float, float]]:
    """Columns by their evidence, the most suspicious first, with mean positions."""
    if found.drift is None:
        return []
    frame = found.drift.frame()
    names = frame["column"].to_pylist()
    if found.reference is not None:
        names = [features[int(column)] for column in names]
    return list(
        zip(
            names,
            frame["e_value"].to_pylist(),
            frame["mean position"].to_pylist(),
            strict=True,
        )
    )


def watched(found: Watch) -> list[tuple[str, PromiseMonitor]]:
    """Promises that have counted rows, by name."""
    return [
        (named(promise.guarantee), promise.monitor)
        for promise in found.promises
        if promise.monitor is not None and promise.monitor.n_
    ]


def as_json(
    found: Watch, model: str, data: str, update: dict[str, Any], features: list[str]
) -> dict[str, Any]:
    """All of it in JSON types."""
    drift = None
    if found.drift is not None:
        drift = {
            "n": found.drift.n_,
            "e_value": number(found.drift.e_value),
            "peak_e_value": number(found.drift.peak_e_value),
            "verdict": found.drift.verdict,
            "alarm_at": found.drift.alarm_at_,
            "alarm_time": found.drift_time,
            "columns": [
                {"column": name, "e_value": number(e), "mean_position": place}
                for name, e, place in drift_columns(found, features)
            ],
        }
    return {
        "model": model,
        "model_digest": found.digest,
        "level": found.level,
        "watch": found.watch,
        "data": data,
        "update": update,
        "rows": n_rows(found),
        "since": found.updates[0]["time"],
        "promises": [_promise_json(promise) for promise in found.promises],
        "drift": drift,
        "exit_code": 7 if found.broken else 8 if found.drifted else 0,
    }


def _promise_json(promise: WatchedPromise) -> dict[str, Any]:
    guarantee, monitor = promise.guarantee, promise.monitor
    scope = guarantee.scope
    found: dict[str, Any] = {
        "text": str(guarantee),
        "quantity": guarantee.quantity,
        "scope": scope.item() if hasattr(scope, "item") else scope,
        "bound": guarantee.bound,
        "sense": guarantee.sense,
        "not_watched": promise.reason or None,
        "verdict": None,
    }
    if monitor is not None:
        found |= {
            "n": monitor.n_,
            "violations": monitor.violations_,
            "measured": measured(monitor),
            "interval": list(monitor.interval),
            "level": monitor.level,
            "null": monitor.null_,
            "e_value": number(monitor.e_value),
            "peak_e_value": number(monitor.peak_e_value),
            "alarm_at": monitor.alarm_at_,
            "alarm_time": promise.alarm_time,
            "verdict": monitor.verdict,
        }
    return found
