"""Calibration on two worker processes: the same bits, whoever is killed and when."""

import os
import signal
from functools import partial

import dask.array as da
import numpy as np
import pytest
from dask import delayed

from clusters import CLUSTER_MARKS, two_workers
from prudent import RiskCalibratedClassifier
from prudent.calibration import ascent
from prudent.dask import fit
from prudent.dask.blocks import WorkerRows

pytestmark = CLUSTER_MARKS
N_CHUNKS, N_ROWS = 10, 300


@pytest.fixture(scope="module")
def client():
    with two_workers(set_as_default=False) as client:
        yield client


@pytest.fixture
def mortal_client():
    """A cluster of its own for a test that kills a worker."""
    with two_workers(set_as_default=False) as client:
        yield client


def chunk(i):
    """Rows of chunk i, made on the worker; the first chunk lacks a class."""
    rng = np.random.default_rng(i)
    y = rng.integers(0, 3 if i else 2, size=N_ROWS)
    return np.column_stack([rng.normal(size=(N_ROWS, 4)) + 0.7 * y[:, None], y])


def table():
    return da.concatenate(
        [
            da.from_delayed(delayed(chunk)(i), (N_ROWS, 5), dtype=float)
            for i in range(N_CHUNKS)
        ]
    )


def calibrated(client=None, **settings):
    rows = table()
    model = RiskCalibratedClassifier(
        **{"max_iter": 8, "cv": 3, "random_state": 0} | settings
    )
    return fit(model, rows[:, :4], rows[:, 4], client=client)


def bits(model):
    curves = (model.loss_curve_, model.error_curve_, model.learning_rate_curve_)
    arrays = (*model.statistics_, *curves, model.means_, model.predict_proba(PROBE))
    return [array.tobytes() for array in arrays]


PROBE = chunk(99)[:, :4]


@pytest.mark.parametrize("family", ["full", "tied", "diag", "tied_diag"])
def test_two_workers_equal_one_process_bit_for_bit(client, family):
    settings = {"family": family, "stopping": "train"}
    assert bits(calibrated(client, **settings)) == bits(calibrated(**settings))


@pytest.mark.parametrize("stopping", ["none", "holdout", "cv"])
def test_every_stopping_rule_gives_the_same_bits(client, stopping):
    two, one = calibrated(client, stopping=stopping), calibrated(stopping=stopping)
    assert bits(two) == bits(one)
    assert two.guarantees_ == one.guarantees_


def die_once(armed, evaluate, *arguments):
    """Kill this worker in the middle of the first evaluation that finds the file."""
    result = evaluate(*arguments)
    try:
        armed.unlink()
    except FileNotFoundError:
        return result
    os.kill(os.getpid(), signal.SIGKILL)


def before_pass(monkeypatch, k, action):
    """Call `action` on the driver when pass number k over the blocks begins."""
    passes, map_blocks = [], WorkerRows.map

    def counted(self, function, *arguments, **each):
        passes.append(function)
        if len(passes) == k:
            action()
        return map_blocks(self, function, *arguments, **each)

    monkeypatch.setattr(WorkerRows, "map", counted)
    return passes


@pytest.mark.parametrize(
    "stopping", ["train", pytest.param("holdout", marks=pytest.mark.slow)]
)
def test_killing_a_worker_during_an_evaluation_changes_nothing(
    mortal_client, stopping, monkeypatch, tmp_path
):
    expected = bits(calibrated(stopping=stopping))
    armed = tmp_path / "armed"
    before_pass(monkeypatch, 6, armed.touch)
    monkeypatch.setattr(ascent, "_evaluate", partial(die_once, armed, ascent._evaluate))
    workers = set(mortal_client.run(os.getpid).values())
    assert bits(calibrated(mortal_client, stopping=stopping)) == expected
    assert not armed.exists()
    mortal_client.wait_for_workers(2, timeout=60)
    assert len(workers & set(mortal_client.run(os.getpid).values())) == 1


@pytest.mark.parametrize("k", [7, pytest.param(2, marks=pytest.mark.slow)])
def test_killing_a_worker_between_passes_changes_nothing(client, k, monkeypatch):
    expected = bits(calibrated(stopping="none"))
    client.wait_for_workers(2, timeout=60)
    victim = next(iter(client.run(os.getpid).values()))
    before_pass(monkeypatch, k, partial(os.kill, victim, signal.SIGKILL))
    assert bits(calibrated(client, stopping="none")) == expected


def test_an_evaluation_is_one_task_per_worker(client, monkeypatch):
    client.wait_for_workers(2, timeout=60)
    tasks = []
    submit = client.submit
    monkeypatch.setattr(
        client, "submit", lambda *a, **k: tasks.append(a) or submit(*a, **k)
    )
    passes = before_pass(monkeypatch, 0, None)
    model = calibrated(client, stopping="holdout", learning_rate=3.0)
    assert model.n_iter_ > len(model.loss_curve_)  # rejected steps are passes too
    assert passes.count(ascent._evaluate) == model.n_iter_
    assert len(tasks) <= 2 * len(passes)
