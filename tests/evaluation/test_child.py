"""Time limits: methods in child processes."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.comparison.conftest import Majority

from prudent import compare
from prudent.comparison.protocol import Protocol
from prudent.comparison.protocol import run as run_protocol
from prudent.estimator_tools.labelled_rows import labelled_rows
from prudent.evaluation.methods import Method
from prudent.evaluation.records import Failure


def sleep(X, y):
    for _ in range(300):
        time.sleep(0.2)
        if "SLEEPERS" in os.environ:
            (Path(os.environ["SLEEPERS"]) / str(os.getpid())).touch()


def complain(X, y):
    raise ValueError("class 'x' has 1 row")


def die(X, y):
    os._exit(3)


def sleeper(random_state):
    return Majority(trouble=sleep)


def complainer(random_state):
    return Majority(trouble=complain)


def mortal(random_state):
    return Majority(trouble=die)


def swift(random_state):
    return Majority()


class HangingBuild:
    """What builds a method; reading it takes for ever."""

    def __call__(self, random_state):
        return Majority()

    def __reduce__(self):
        return time.sleep, (60,)


def shout(X, y):
    os.write(1, b"[12:00:00] WARNING: from C++\n" * 10)
    os.write(2, b"[12:00:00] WARNING: from C++\n" * 10)


def shouter(random_state):
    return Majority(trouble=shout)


@pytest.fixture
def run(iris):
    """Compare odd methods; returns their rows and when each fold was begun."""

    def run(*builds, limit=60.0, n_jobs=1):
        seen = []
        methods = [Method(f"odd {i}", build) for i, build in enumerate(builds)]
        comparison = run_protocol(
            labelled_rows(*iris),
            methods,
            Protocol(promise="none", time_limit=limit, n_jobs=n_jobs),
            progress=lambda *state: seen.append((*state[:2], time.monotonic())),
        )
        rows = {row.method: row for row in comparison.rows}
        return [rows[method.name] for method in methods], seen

    return run


def test_a_method_that_takes_too_long_is_stopped_within_a_second(run):
    asked = time.monotonic()
    (row,), seen = run(sleeper, limit=2.0)
    ended = time.monotonic()
    assert row.failure == Failure(kind="time limit", text="stopped after 2 s")
    ((name, fold, begun),) = seen
    assert (name, fold) == ("odd 0", 1)
    assert ended - asked >= 2.0  # not before its time, which the start is part of
    assert ended - begun <= 3.0


def test_the_next_process_is_there_sooner_than_it_could_import(run):
    (slow, next_one), seen = run(sleeper, swift, limit=3.0)
    assert slow.failure.kind == "time limit"
    assert next_one.failure is None
    first, second = (at for _, fold, at in seen if fold == 1)
    begun = time.monotonic()
    subprocess.run([sys.executable, "-c", "import prudent.evaluation.evaluate"])
    assert second - first - 3.0 < max(1.0, time.monotonic() - begun)


@pytest.mark.slow  # waits for the limit
def test_processes_that_fit_folds_are_stopped_too(run, tmp_path, monkeypatch):
    """Workers of a pool would finish their fold, and keep their rows till then."""
    monkeypatch.setenv("SLEEPERS", str(tmp_path))
    (row,), _ = run(sleeper, limit=20.0, n_jobs=2)
    assert row.failure.kind == "time limit"
    time.sleep(0.5)
    last_seen = [path.stat().st_mtime for path in tmp_path.iterdir()]
    assert last_seen
    time.sleep(1.0)
    assert [path.stat().st_mtime for path in tmp_path.iterdir()] == last_seen


def test_an_error_in_the_child_is_the_reason_of_the_row(run):
    (row,), _ = run(complainer)
    assert row.failure.text == "class 'x' has 1 row"


def test_a_child_that_dies_is_a_row_with_that_reason(run):
    (row, after), _ = run(mortal, swift)
    assert row.failure.text == "the process of this method died"
    assert after.failure is None


def test_a_method_within_its_limit_gives_the_same_figures(iris):
    options = {"methods": ("minimax",), "baselines": ("lda",), "best": False}
    limited = compare(*iris, **options, time_limit=60)
    free = compare(*iris, **options)
    first, second = (c.without_timings().to_dict() for c in (limited, free))
    assert first["rows"] == second["rows"]
    assert first["folds"] == second["folds"]


def test_a_method_that_hangs_while_it_is_handed_over_is_stopped(run):
    begun = time.monotonic()
    (hung, after), _ = run(HangingBuild(), swift, limit=2.0)
    assert hung.failure == Failure(kind="time limit", text="stopped after 2 s")
    assert after.failure is None
    assert time.monotonic() - begun < 45.0


def test_libraries_that_log_by_themselves_do_not_write_on_the_terminal(run, capfd):
    (row,), _ = run(shouter)
    assert row.failure is None
    assert "C++" not in "".join(capfd.readouterr())
