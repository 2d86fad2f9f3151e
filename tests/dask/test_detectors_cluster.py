"""Fits that read the rows again: the same bits on two workers, one of them killed."""

import os
import signal
import threading
import time
from operator import attrgetter

import dask
import dask.array as da
import numpy as np
import pytest
from dask import delayed
from sklearn.linear_model import LogisticRegression

from clusters import CLUSTER_MARKS, two_workers
from prudent import (
    ImpreciseDiscriminantAnalysis,
    LowDensityRejector,
    MinimaxOutlierDetector,
    OptimisticScoreClassifier,
)
from prudent.dask import fit

pytestmark = CLUSTER_MARKS
N_CHUNKS = 12


def learned(*names):
    """The bytes of these attributes, one by one."""
    return lambda model: [
        np.asarray(attrgetter(name)(model)).tobytes() for name in names
    ]


FITS = {
    "rejector": (
        lambda: LowDensityRejector(random_state=0),
        learned("calibration_scores_", "threshold_"),
    ),
    "soft rejector": (
        lambda: LowDensityRejector(
            estimator=LogisticRegression(),
            reference="gaussian",
            strategy="soft",
            divergence_bound=2.0,
            random_state=0,
        ),
        learned("rule_.calibration.scores.sorted", "_learned.fit_scores"),
    ),
    "minimax detector": (
        lambda: MinimaxOutlierDetector(random_state=0),
        learned("means_", "covariances_", "offset_"),
    ),
    "bootstrap": (
        lambda: OptimisticScoreClassifier(radius="bootstrap", random_state=0),
        learned("covariances_", "radii_", "offsets_"),
    ),
    "moment radii": (
        lambda: OptimisticScoreClassifier(radius="moments"),
        learned("covariances_", "radii_", "offsets_"),
    ),
    "imprecise": (
        lambda: ImpreciseDiscriminantAnalysis(covariance="ledoit_wolf", scale="range"),
        learned("covariances_", "scale_"),
    ),
}


@pytest.fixture(scope="module")
def client():
    with two_workers(set_as_default=False) as client:
        yield client


@pytest.fixture
def mortal_client():
    """A cluster of its own for a test that kills a worker."""
    with two_workers(set_as_default=False) as client:
        yield client


def chunk(i, delay=0.0):
    """Rows of chunk i, made on the worker."""
    time.sleep(delay)
    rng = np.random.default_rng(i)
    y = rng.integers(0, 2, size=300)
    return np.column_stack([rng.chisquare(4, size=(300, 3)) + y[:, None], y])


def collection(delay=0.0):
    return da.concatenate(
        [
            da.from_delayed(delayed(chunk)(i, delay), (300, 4), dtype=float)
            for i in range(N_CHUNKS)
        ]
    )


def in_one_process(make):
    table = collection()
    with dask.config.set(scheduler="synchronous"):
        return fit(make(), table[:, :3], table[:, 3])


@pytest.mark.parametrize("case", FITS)
def test_two_workers_equal_one_process_bit_for_bit(client, case):
    make, bits = FITS[case]
    table = collection()
    model = fit(make(), table[:, :3], table[:, 3], client=client)
    assert bits(model) == bits(in_one_process(make))


@pytest.mark.parametrize(
    "case",
    [
        "soft rejector",
        pytest.param("bootstrap", marks=pytest.mark.slow),
        pytest.param("imprecise", marks=pytest.mark.slow),
    ],
)
def test_killing_a_worker_during_a_fit_changes_nothing(mortal_client, case):
    make, bits = FITS[case]
    table = collection(delay=0.1)
    victim = mortal_client.submit(os.getpid, pure=False).result()
    # each pass reads the rows anew: this falls into the second one
    thread = threading.Timer(1.0, os.kill, (victim, signal.SIGKILL))
    thread.start()
    model = fit(make(), table[:, :3], table[:, 3], client=mortal_client)
    thread.join()
    assert bits(model) == bits(in_one_process(make))
