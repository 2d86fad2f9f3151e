"""Rows of a fit on blocks, among rows that are meant to be new."""

import warnings

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import prudent
from prudent import (
    ConformalClassifier,
    ConformalDetector,
    LowDensityRejector,
    MinimaxOutlierDetector,
    RiskCalibratedClassifier,
    certify,
)
from prudent.dask import fit
from prudent.exceptions import PrudentWarning

pytestmark = pytest.mark.filterwarnings("ignore:chunks are small")
CHUNKS = (130, 0, 170, 250, 50)
CLASSIFIERS = {
    "conformal": ConformalClassifier(
        LogisticRegression(), method="split", random_state=0
    ),
    "calibrated": RiskCalibratedClassifier(max_iter=5, random_state=0),
}
DETECTORS = {
    "conformal": ConformalDetector(method="split", random_state=0),
    "density": LowDensityRejector(false_alarm_rate=0.1, random_state=0),
    "minimax": MinimaxOutlierDetector(random_state=0),
}


@pytest.fixture(autouse=True)
def one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def rows(n=600, seed=0):
    y = np.arange(n) % 2
    return np.random.default_rng(seed).normal(size=(n, 4)) + y[:, None], y


def refused(model, X, y, path):
    new, labels = rows(100, seed=1)
    assert certify(model, new, labels if len(np.unique(y)) > 1 else np.ones(100))
    prudent.save(model, path)
    for known in (model, prudent.load(path)):
        with pytest.raises(ValueError, match="certify: 80 of these 80 rows were in"):
            certify(known, X[-80:], y[-80:])


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_rows_that_a_classifier_learned_from_on_blocks_are_refused(name, tmp_path):
    X, y = rows()
    table = da.from_array(X, chunks=(CHUNKS, 4))
    model = fit(clone(CLASSIFIERS[name]), table, y)
    refused(model, X, y, tmp_path / "model.prudent")


@pytest.mark.parametrize("name", DETECTORS)
def test_rows_that_a_detector_learned_from_on_blocks_are_refused(name, tmp_path):
    X, _ = rows()
    table = da.from_array(X, chunks=(CHUNKS, 4))
    model = fit(clone(DETECTORS[name]), table)
    refused(model, X, np.ones(len(X)), tmp_path / "model.prudent")


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_rows_of_frames_on_blocks_are_refused_in_another_order_of_columns(name):
    X, y = rows()
    frame = pd.DataFrame(X, columns=[*"abcd"]).assign(label=y)
    table = dd.from_pandas(frame, npartitions=3)
    model = fit(clone(CLASSIFIERS[name]), table, target="label")
    with pytest.raises(ValueError, match="80 of these 80 rows were in the fit"):
        certify(model, frame[[*"abcd"]][-80:], y[-80:])
    from prudent.estimator_tools import refuse_seen_rows

    with pytest.raises(ValueError, match="80 of these 80 rows were in the fit"):
        refuse_seen_rows("certify", model, frame[[*"dbca"]][-80:])


def test_a_frozen_model_is_not_calibrated_on_its_own_rows_in_blocks():
    X, y = rows()
    model = make_pipeline(StandardScaler(), CLASSIFIERS["conformal"]).fit(X, y)
    wrapper = ConformalClassifier(FrozenEstimator(model))
    with pytest.raises(ValueError, match="600 of these 600 rows were in the fit"):
        fit(clone(wrapper), da.from_array(X, chunks=(CHUNKS, 4)), y)
    new, labels = rows(seed=1)
    assert fit(wrapper, da.from_array(new, chunks=(CHUNKS, 4)), labels).guarantees_


@pytest.mark.parametrize(
    "model",
    [
        CLASSIFIERS["conformal"],
        RiskCalibratedClassifier(stopping="holdout", max_iter=2, random_state=0),
    ],
)
def test_copies_of_held_out_rows_are_told_as_by_a_fit_in_memory(model):
    X, y = rows(200)
    X, y = np.tile(X, (3, 1)), np.tile(y, 3)
    with pytest.warns(PrudentWarning, match="stand among") as in_memory:
        clone(model).fit(X, y)
    with pytest.warns(PrudentWarning, match="stand among") as in_blocks:
        fit(clone(model), da.from_array(X, chunks=(CHUNKS, 4)), y)
    told = {str(w.message) for w in (*in_memory, *in_blocks)}
    assert len([text for text in told if "stand among" in text]) == 1


@pytest.mark.parametrize("wrong", [0, 1])
def test_a_frozen_model_without_an_error_is_told_as_by_a_fit_in_memory(wrong):
    X, _ = rows(400)
    threshold = LogisticRegression().fit(X, X[:, 0] > 0)
    y = threshold.predict(X)
    y[200 : 200 + wrong] = ~y[200 : 200 + wrong]
    frozen = ConformalClassifier(FrozenEstimator(threshold), level=0.1)

    def told(fit_model):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fit_model()
        return [str(w.message) for w in caught if "none of" in str(w.message)]

    in_memory = told(lambda: clone(frozen).fit(X, y))
    table = da.from_array(X, chunks=((130, 0, 120, 150), 4))
    in_blocks = told(lambda: fit(clone(frozen), table, y))
    assert in_blocks == in_memory
    assert len(in_memory) == (wrong == 0)
