"""Time limits: methods in child processes."""

import time

import pytest
from tests.comparison.conftest import Majority

from prudent import compare
from prudent.comparison.run import Protocol
from prudent.comparison.run import run as run_protocol
from prudent.evaluation.methods import Method
from prudent.evaluation.records import Failure
from prudent.evaluation.table import labelled_rows


def sleep(X, y):
    time.sleep(60)


def complain(X, y):
    raise ValueError("class 'x' has 1 row")


def die(X, y):
    import os

    os._exit(3)


def sleeper(random_state):
    return Majority(trouble=sleep)


def complainer(random_state):
    return Majority(trouble=complain)


def mortal(random_state):
    return Majority(trouble=die)


@pytest.fixture
def run(iris):
    def run(build, limit):
        seen = []
        started = time.monotonic()
        comparison = run_protocol(
            labelled_rows(*iris),
            (Method("odd", build),),
            Protocol(promise="none", time_limit=limit),
            progress=lambda *state: seen.append(state),
        )
        return comparison.rows[0], seen, time.monotonic() - started

    return run


def test_a_method_that_takes_too_long_is_stopped_and_says_so(run):
    row, seen, elapsed = run(sleeper, 0.5)
    assert row.failure == Failure(kind="time limit", text="stopped after 0.5 s")
    assert seen == [("odd", 1, 5)]
    assert elapsed < 50


def test_an_error_in_the_child_is_the_reason_of_the_row(run):
    row, *_ = run(complainer, 60)
    assert row.failure.text == "class 'x' has 1 row"


def test_a_child_that_dies_is_a_row_with_that_reason(run):
    row, *_ = run(mortal, 60)
    assert row.failure.text == "the process of this method died"


def test_a_method_within_its_limit_gives_the_same_figures(iris):
    options = {"methods": ("minimax",), "baselines": ("lda",)}
    limited = compare(*iris, **options, time_limit=60)
    free = compare(*iris, **options)
    first, second = (c.without_timings().to_dict() for c in (limited, free))
    assert first["rows"] == second["rows"]
    assert first["folds"] == second["folds"]
