"""Conformal prediction on blocks: ranked by all held-out rows, whatever the blocks."""

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from scipy.stats import betabinom
from sklearn.compose import make_column_transformer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from prudent import ConformalClassifier, ConformalDetector
from prudent.dask import fit
from prudent.exceptions import PrudentWarning

pytestmark = pytest.mark.filterwarnings("ignore:chunks are small")
CHUNKS = (130, 170, 0, 250, 50)
OTHER_CHUNKS = (600,)


@pytest.fixture(autouse=True)
def one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def table(n=600, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    return rng.normal(size=(n, 2)) + 2 * y[:, None], np.array(["a", "b", "c"])[y]


def blocks(X, y=None, chunks=CHUNKS):
    X = da.from_array(X, chunks=(chunks, X.shape[1]))
    return X if y is None else (X, da.from_array(y, chunks=(chunks,)))


@pytest.mark.parametrize("condition", [None, "class", lambda X: (X[:, 0] > 2) + 0])
@pytest.mark.parametrize("estimator", [None, LinearDiscriminantAnalysis()])
def test_the_blocks_do_not_matter(estimator, condition):
    X, y = table()
    new, _ = table(50, seed=1)
    models = [
        fit(
            ConformalClassifier(
                estimator, method="split", condition=condition, random_state=0
            ),
            *blocks(X, y, chunks),
        )
        for chunks in (CHUNKS, OTHER_CHUNKS)
    ]
    assert models[0].n_calibration_ == 180
    assert (models[0].p_values(new) == models[1].p_values(new)).all()
    assert models[0].guarantees_ == models[1].guarantees_
    plain = models[1].fit(X, y)
    np.testing.assert_allclose(models[0].p_values(new), plain.p_values(new), rtol=1e-9)


def test_p_values_are_those_of_the_order_of_all_held_out_scores():
    X, y = table()
    frozen = FrozenEstimator(LinearDiscriminantAnalysis().fit(*table(seed=5)))
    new, _ = table(50, seed=1)
    for condition in (None, "class", lambda X: np.floor(X[:, 0]).astype(int)):
        model = ConformalClassifier(frozen, condition=condition, random_state=0)
        found = fit(model, *blocks(X, y)).p_values(new)
        rule = model.rule_
        assert (found == model.fit(X, y).p_values(new)).all()
        assert rule.thresholds == model.rule_.thresholds
        assert rule.guarantees == model.rule_.guarantees
        kept, known = (r.calibration.scores for r in (rule, model.rule_))
        assert kept.names == known.names
        for one, other in zip(kept.sorted, known.sorted, strict=True):
            assert one.tobytes() == other.tobytes()
    detector = ConformalDetector(
        FrozenEstimator(
            ConformalDetector(method="split", random_state=0).fit(table(seed=5)[0])
        ),
        method="split",
        random_state=0,
    )
    found = fit(detector, blocks(X)).p_value(new)
    assert detector.n_calibration_ == 600
    assert (found == detector.fit(X).p_value(new)).all()


def test_the_classifier_learns_from_a_sample_and_all_held_out_rows_rank(monkeypatch):
    monkeypatch.setattr("prudent.dask.blocks.MAX_FIT_ROWS", 100)
    X, y = table()
    model = fit(ConformalClassifier(method="split", random_state=0), *blocks(X, y))
    assert (model.estimator_.n_rows_, model.n_calibration_) == (100, 180)


def test_alarms_keep_the_beta_binomial_law():
    """Alarms among fresh rows follow the law of one order statistic."""
    rng = np.random.default_rng(0)
    low = high = 0
    for seed in range(60):
        rows = rng.normal(size=(200, 2))
        detector = ConformalDetector(method="split", random_state=seed)
        fit(detector, blocks(rows, chunks=(70, 130)))
        alarms = int((detector.predict(rng.normal(size=(300, 2))) < 0).sum())
        law = betabinom(300, detector.k_, detector.n_calibration_ + 1 - detector.k_)
        low += law.cdf(alarms) < 0.02
        high += law.sf(alarms - 1) < 0.02
    # Each is Bin(60, < .02): more than 6 has a chance of 1e-3.
    assert max(low, high) <= 6


def test_frames_keep_their_words_for_an_estimator_that_knows_them():
    X, y = table()
    frame = pd.DataFrame({"x": X[:, 0], "word": np.where(X[:, 1] > 2, "up", "down")})
    encoder = make_column_transformer(
        (OneHotEncoder(), ["word"]), remainder="passthrough"
    )
    model = ConformalClassifier(
        make_pipeline(encoder, LinearDiscriminantAnalysis()),
        method="split",
        random_state=0,
    )
    parts = dd.from_pandas(frame.assign(y=y), npartitions=4)
    fit(model, parts, target="y")
    assert model.feature_names_in_.tolist() == ["x", "word"]
    assert model.predict_set(frame).shape == (600, 3)


@pytest.mark.parametrize("method", ["full", "cross"])
def test_other_methods_are_refused(method):
    with pytest.raises(TypeError, match=f"method='{method}' needs all rows in one"):
        fit(ConformalClassifier(method=method), *blocks(*table()))


def test_too_few_rows_are_refused():
    with pytest.raises(ValueError, match=r"found 1 sample\(s\) in all blocks"):
        fit(ConformalDetector(), blocks(np.ones((1, 2)), chunks=(1,)))
    with pytest.warns(PrudentWarning, match="nothing is rejected"):
        fit(ConformalDetector(random_state=0), blocks(table(20)[0], chunks=(20,)))
