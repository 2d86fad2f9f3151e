"""CPU time and peak memory of every fit against the number of rows and features.

python -m benchmarks.growth          measure the cells not yet in growth.csv
python -m benchmarks.growth table    write docs/growth.csv for docs/scaling.rst

Each cell is a process of its own. Rows are drawn block by block; estimators that can
learn from a stream never see more than a block. Drawing the rows is not counted.
"""

from __future__ import annotations

import csv
import math
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).with_suffix(".csv")
TABLE = ROOT / "docs" / "growth.csv"
COLUMNS = ("estimator", "rows", "features", "cpu_s", "peak_mb", "reason")
ROWS = (10_000, 100_000, 1_000_000, 10_000_000)
FEATURES = (10, 50, 200)
BLOCK = 50_000
WARM_ROWS = 2_000
MOST_CPU_S = 600
SHORT_S = 20
FILLED_S = 0.1
MOST_TABLE_BYTES = 5e9
TOO_LONG = f"more than {MOST_CPU_S // 60} min of CPU time"
TOO_LARGE = "table of more than 5 GB"
# Growth is read off where the work outweighs the fixed costs.
FEWEST_ROWS = 100_000


def blocks(n_rows: int, n_features: int) -> Iterator[tuple[Any, Any]]:
    """Three overlapping classes, drawn block by block."""
    for start in range(0, n_rows, BLOCK):
        rng = np.random.default_rng(start)
        size = min(BLOCK, n_rows - start)
        y = rng.integers(0, 3, size)
        X = rng.normal(size=(size, n_features))
        X[:, :3] += 2.0 * np.eye(3)[y]
        yield X, y


class Clock:
    """CPU time spent outside the drawing of rows."""

    def __init__(self) -> None:
        self.drawing = 0.0
        self.start = time.process_time()

    def timed(self, drawn: Iterator[Any]) -> Iterator[Any]:
        while True:
            start = time.process_time()
            block = next(drawn, None)
            self.drawing += time.process_time() - start
            if block is None:
                return
            yield block

    @property
    def spent(self) -> float:
        return time.process_time() - self.start - self.drawing


def streamed(build: Callable[[], Any]) -> Callable[[Any, int, int], Any]:
    from prudent import ClassMoments

    def fit(clock: Clock, n_rows: int, n_features: int) -> Any:
        parts = clock.timed(blocks(n_rows, n_features))
        moments = ClassMoments.reduce(ClassMoments.from_arrays(X, y) for X, y in parts)
        return build().fit_moments(moments)

    return fit


def batched(build: Callable[[], Any]) -> Callable[[Any, int, int], Any]:
    def fit(clock: Clock, n_rows: int, n_features: int) -> Any:
        model = build()
        for X, y in clock.timed(blocks(n_rows, n_features)):
            model.partial_fit(X, y)
        return model

    return fit


def in_memory(build: Callable[[], Any]) -> Callable[[Any, int, int], Any]:
    def fit(clock: Clock, n_rows: int, n_features: int) -> Any:
        def draw() -> Iterator[Any]:
            X, y = np.empty((n_rows, n_features)), np.empty(n_rows, dtype=np.int64)
            start = 0
            for rows, labels in blocks(n_rows, n_features):
                X[start : start + len(rows)] = rows
                y[start : start + len(rows)] = labels
                start += len(rows)
            yield X, y

        X, y = next(clock.timed(draw()))
        return build().fit(X, y)

    return fit


def estimators() -> dict[str, Callable[[Any, int, int], Any]]:
    import prudent

    return {
        "minimax, streamed": streamed(prudent.MinimaxProbabilityClassifier),
        "imprecise, streamed": streamed(prudent.ImpreciseDiscriminantAnalysis),
        "optimistic by moments, streamed": streamed(
            lambda: prudent.OptimisticScoreClassifier(
                covariance="oas", threshold="bayes"
            )
        ),
        "calibrated, partial_fit": batched(prudent.RiskCalibratedClassifier),
        "optimistic, default": in_memory(prudent.OptimisticScoreClassifier),
        "minimax detector": in_memory(prudent.MinimaxOutlierDetector),
        "calibrated, default": in_memory(
            lambda: prudent.RiskCalibratedClassifier(random_state=0)
        ),
        "low-density rejector": in_memory(
            lambda: prudent.LowDensityRejector(random_state=0)
        ),
    }


def measure(name: str, n_rows: int, n_features: int) -> None:
    """Fit one cell in this process; print CPU seconds and peak megabytes."""
    fit = estimators()[name]
    fit(Clock(), WARM_ROWS, n_features)  # compile, and load what is imported late
    before = _memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_CPU_S + 60, MOST_CPU_S + 60))
    cpu = _cpu(fit, n_rows, n_features)
    peak = _memory("VmHWM") - before
    if cpu < SHORT_S:  # the lesser of two: a busy machine now and then adds seconds
        cpu = min(cpu, _cpu(fit, n_rows, n_features))
    print(cpu, peak / 1000)


def _cpu(fit: Callable[[Any, int, int], Any], n_rows: int, n_features: int) -> float:
    """CPU seconds of a fit, averaged over enough of them for the clock."""
    calls, clock = 0, Clock()
    while clock.spent < FILLED_S:
        fit(clock, n_rows, n_features)
        calls += 1
    return clock.spent / calls


def _memory(field: str) -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.split(f"{field}:")[1].split()[0])


def run() -> None:
    """Measure every missing cell, the cheapest first as far as that can be told."""
    done = read()
    while missing := [cell for cell in _cells() if cell not in done]:
        cell = min(missing, key=lambda cell: _expected(*cell, done))
        done[cell] = _cell(*cell, done)
        _append((*cell, *done[cell]))


def _cells() -> list[tuple[str, int, int]]:
    return [(name, n, d) for n in ROWS for d in FEATURES for name in estimators()]


def _expected(name: str, n_rows: int, n_features: int, done: Any) -> float:
    """CPU seconds to expect: ten times those of a tenth of the rows."""
    if n_rows == ROWS[0]:
        return 0.0
    cpu, _, reason = done.get((name, n_rows // 10, n_features), ("", "", ""))
    if cpu:
        return 10 * float(cpu)
    return 0.0 if reason else math.inf  # not measured: a reason, too, if there is one


def _cell(name: str, n_rows: int, n_features: int, done: Any) -> tuple[str, str, str]:
    if _is_too_large(name, n_rows, n_features):
        return "", "", TOO_LARGE
    smaller = done.get((name, n_rows // 10, n_features), ("", "", ""))
    if smaller[2] == TOO_LONG or _expected(name, n_rows, n_features, done) > MOST_CPU_S:
        return "", "", TOO_LONG
    try:
        cpu, peak = _child(name, n_rows, n_features)
    except subprocess.CalledProcessError as error:
        if error.returncode == -signal.SIGXCPU:
            return "", "", TOO_LONG
        said = error.stderr.strip().splitlines() or [f"signal {-error.returncode}"]
        return "", "", said[-1][:120]
    return f"{cpu:.4g}", f"{peak:.0f}", ""


def _is_too_large(name: str, n_rows: int, n_features: int) -> bool:
    in_stream = "streamed" in name or "partial_fit" in name
    return not in_stream and 8 * n_rows * n_features > MOST_TABLE_BYTES


def _child(name: str, n_rows: int, n_features: int) -> tuple[float, float]:
    """Measure one cell in a process of its own."""
    arguments = ["cell", name, str(n_rows), str(n_features)]
    child = subprocess.run(
        [sys.executable, "-m", "benchmarks.growth", *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    cpu, peak = map(float, child.stdout.split())
    return cpu, peak


def read() -> dict[tuple[str, int, int], tuple[str, str, str]]:
    """Cells measured so far."""
    if not RESULTS.exists():
        return {}
    with RESULTS.open(newline="") as stream:
        return {
            (r["estimator"], int(r["rows"]), int(r["features"])): (
                r["cpu_s"],
                r["peak_mb"],
                r["reason"],
            )
            for r in csv.DictReader(stream)
        }


def _append(line: tuple[Any, ...]) -> None:
    is_new = not RESULTS.exists()
    with RESULTS.open("a", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        if is_new:
            writer.writerow(COLUMNS)
        writer.writerow(line)
    print(*line, flush=True)


def table() -> list[list[str]]:
    """Rows of the table in the documentation: one for each estimator and width."""
    done = read()
    lines = [["estimator", "features", *(f"{n:,}" for n in ROWS), "time grows as"]]
    for name in estimators():
        for n_features in FEATURES:
            cells = {n: done.get((name, n, n_features), ("", "", "")) for n in ROWS}
            known = {n: float(cpu) for n, (cpu, _, _) in cells.items() if cpu}
            power = _power(known)
            texts = []
            for n_rows, (cpu, peak, _) in cells.items():
                if cpu:
                    # .2g alone would write 230 as 2.3e+02
                    seconds = f"{float(f'{float(cpu):.2g}'):g}"
                    texts.append(f"{seconds} s, {float(peak):,.0f} MB")
                else:
                    texts.append(_not_run(name, n_rows, n_features, known, power or 1))
            grows = f"n^{power:.2f}" if power else ""
            lines.append([name, str(n_features), *texts, grows])
    return lines


def _power(seconds: dict[int, float]) -> float | None:
    """Slope of log time on log rows, over the larger tables."""
    points = [(n, s) for n, s in seconds.items() if n >= FEWEST_ROWS]
    if len(points) < 2:
        return None
    n, s = np.log(np.array(points)).T
    return float(np.polyfit(n, s, 1)[0])


def _not_run(
    name: str, n_rows: int, n_features: int, known: dict[int, float], power: float
) -> str:
    """Say what a cell would take, by the slope, and why it was not run."""
    largest = max(known)
    guess = known[largest] * (n_rows / largest) ** power
    mark = "³"
    if _is_too_large(name, n_rows, n_features):
        mark = "²"
    elif guess > MOST_CPU_S:
        mark = "¹"
    return f"about {float(f'{guess:.1g}'):g} s {mark}"


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["cell"]:
        measure(arguments[1], int(arguments[2]), int(arguments[3]))
    elif arguments == ["table"]:
        with TABLE.open("w", newline="", encoding="utf-8") as stream:
            csv.writer(stream, lineterminator="\n").writerows(table())
    else:
        run()


if __name__ == "__main__":
    main(sys.argv[1:])
