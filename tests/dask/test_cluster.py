"""Two worker processes: the same bits, also when one of them is killed."""

import os
import signal
import threading
import time

import dask.array as da
import numpy as np
import pytest
from dask import delayed

import prudent
from clusters import CLUSTER_MARKS, two_workers
from prudent import ClassMoments
from prudent.dask import fit

pytestmark = CLUSTER_MARKS
N_CHUNKS = 12


@pytest.fixture(scope="module")
def client():
    with two_workers(set_as_default=True) as client:
        yield client


def chunk(i, delay=0.0):
    """Rows of chunk i, made on the worker."""
    time.sleep(delay)
    rng = np.random.default_rng(i)
    y = rng.integers(0, 3, size=400)
    return np.column_stack([rng.normal(size=(400, 3)) + y[:, None], y])


def collection(delay=0.0):
    return da.concatenate(
        [
            da.from_delayed(delayed(chunk)(i, delay), (400, 4), dtype=float)
            for i in range(N_CHUNKS)
        ]
    )


def expected_moments():
    chunks = [chunk(i) for i in range(N_CHUNKS)]
    return ClassMoments.reduce(
        ClassMoments.from_arrays(rows[:, :3], rows[:, 3]) for rows in chunks
    )


def bits(moments):
    return moments.to_bytes()


def test_two_workers_equal_one_process_bit_for_bit(client):
    table = collection()
    model = fit(prudent.MinimaxProbabilityClassifier(), table[:, :3], table[:, 3])
    assert bits(model.moments_) == bits(expected_moments())


def test_killing_a_worker_during_a_fit_changes_nothing(client):
    table = collection(delay=0.15)
    victim = next(iter(client.run(os.getpid).values()))
    thread = threading.Timer(0.5, os.kill, (victim, signal.SIGKILL))
    thread.start()
    model = fit(
        prudent.MinimaxProbabilityClassifier(),
        table[:, :3],
        table[:, 3],
        client=client,
    )
    thread.join()
    assert bits(model.moments_) == bits(expected_moments())
