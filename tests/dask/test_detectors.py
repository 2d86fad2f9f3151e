"""The detectors on blocks: the same promise, whatever the blocks."""

import pickle

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask import delayed
from scipy.stats import betabinom
from sklearn.covariance import LedoitWolf
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from prudent import (
    LowDensityRejector,
    MinimaxOutlierDetector,
    MinimaxProbabilityClassifier,
)
from prudent.adversarial.density.model import Standardisation
from prudent.core.rows import hold_out
from prudent.dask import fit, predict
from prudent.dask.blocks import DaskRows, answers_of, sample
from prudent.exceptions import PrudentWarning

pytestmark = pytest.mark.filterwarnings("ignore:chunks are small")
CHUNKS = (130, 170, 0, 250, 50)


@pytest.fixture(autouse=True)
def one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def rows(n=600, d=2, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def blocks(X, sizes=CHUNKS):
    """The rows in blocks of these sizes, some of them empty."""
    parts = np.split(X, np.cumsum(sizes)[:-1])
    return da.concatenate(
        [da.from_delayed(delayed(part), part.shape, part.dtype) for part in parts]
    )


def quick(**params):
    """A rejector whose classifier costs little."""
    return LowDensityRejector(
        **{"estimator": LogisticRegression(), "random_state": 0, **params}
    )


# --- the split ------------------------------------------------------------------


def held_out_rows(n=600, share=0.3, seed=0):
    """Which rows `fit` holds out, and the order of the others."""
    fit, held_out = hold_out(n, share, np.random.RandomState(seed))
    return np.isin(np.arange(n), held_out), fit


def test_rows_are_asked_for_by_their_number_in_any_blocks():
    X = np.arange(600.0)[:, None]
    positions = np.random.default_rng(0).permutation(600)[:97]
    for sizes in ((600,), CHUNKS, (1, 5, 0, 294, 299, 1)):
        chunks = DaskRows.from_collection(blocks(X, sizes), None, None, None)
        counted = chunks.map(lambda block: len(block[0]))
        answers = answers_of(chunks, counted, positions, lambda X, y: X[:, 0])
        np.testing.assert_array_equal(np.concatenate(answers), np.sort(positions))
        taken, _ = sample(chunks, counted, positions)
        np.testing.assert_array_equal(taken[:, 0], positions)


# --- LowDensityRejector -------------------------------------------------------------


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"reference": "gaussian", "confidence": 0.95},
        {"reference": "box", "exact": True},
        {"reference": "grid", "false_alarm_rate": 0.1},
        {"strategy": "soft", "divergence_bound": 3.0},
    ],
    ids=["mixture", "gaussian", "box", "grid", "soft"],
)
def test_the_detector_does_not_depend_on_the_blocks(params):
    fresh = rows(200, seed=1)
    one, many = (
        fit(quick(**params), blocks(rows(), sizes)) for sizes in ((600,), CHUNKS)
    )
    # scores are rounded to five decimals
    np.testing.assert_allclose(
        many.score_samples(fresh), one.score_samples(fresh), atol=2e-6
    )
    np.testing.assert_array_equal(many.predict(fresh), one.predict(fresh))
    assert (many.k_, many.n_calibration_) == (one.k_, one.n_calibration_)
    assert many.missing_mass_ == one.missing_mass_
    assert many.guarantees_ == one.guarantees_


def test_the_cut_is_the_order_statistic_of_all_held_out_rows(monkeypatch):
    monkeypatch.setattr("prudent.dask.blocks.MAX_FIT_ROWS", 90)
    X = rows()
    detector = fit(quick(false_alarm_rate=0.1), blocks(X))
    scores = detector.score_samples(X)
    held_out, _ = held_out_rows()
    assert detector.n_calibration_ == 180
    assert detector.threshold_ == np.sort(scores[held_out])[detector.k_ - 1]
    smaller = 1 + np.count_nonzero(scores[held_out] <= scores[7])
    assert detector.p_value(X[[7]])[0] == smaller / 181


def test_rank_and_promise_are_those_of_a_plain_fit():
    X = rows()
    detector, plain = fit(quick(), blocks(X)), quick().fit(X)
    for one, other in (
        (detector, plain),
        (detector.with_false_alarm_rate(0.2), plain.with_false_alarm_rate(0.2)),
    ):
        assert (one.k_, one.n_calibration_) == (other.k_, other.n_calibration_)
        assert one.guarantees_ == other.guarantees_
    np.testing.assert_array_equal(detector._known_rows.keys, plain._known_rows.keys)
    assert detector._known_rows.near == plain._known_rows.near
    assert vars(detector).keys() == vars(plain).keys()


@pytest.mark.parametrize("params", [{}, {"reference": "box", "exact": True}])
def test_the_detector_is_that_of_a_plain_fit(params):
    X, fresh = rows(), rows(500, seed=1)
    detector, plain = fit(quick(**params), blocks(X)), quick(**params).fit(X)
    np.testing.assert_array_equal(
        detector.score_samples(fresh), plain.score_samples(fresh)
    )
    assert detector.threshold_ == plain.threshold_


def test_the_density_is_learnt_from_a_sample_of_the_fit_rows(monkeypatch):
    monkeypatch.setattr("prudent.dask.blocks.MAX_FIT_ROWS", 90)
    X = rows() * [1.0, 1e3] + 5
    detector = fit(quick(reference="gaussian"), blocks(X))
    sample = Standardisation.from_rows(X[held_out_rows()[1][:90]])
    standardisation = detector._learned.density.standardisation
    np.testing.assert_allclose(standardisation.mean, sample.mean)
    np.testing.assert_allclose(standardisation.deviation, sample.deviation)
    assert detector.cell_size_ == pytest.approx(90 ** (-1 / 6))


def test_false_alarms_follow_the_beta_binomial_law(monkeypatch):
    """As after a plain fit: exact at level 1e-4, over independent repetitions."""
    monkeypatch.setattr("prudent.dask.blocks.MAX_FIT_ROWS", 60)
    n_fresh, alarms, law = 300, 0, np.ones(1)
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X, fresh = rng.standard_t(3, size=(200, 2)), rng.standard_t(3, size=(300, 2))
        detector = fit(
            quick(reference="gaussian", random_state=seed), blocks(X, (70, 0, 90, 40))
        )
        k, m = detector.k_, detector.n_calibration_
        assert (k, m) == (3, 60)
        alarms += np.count_nonzero(detector.predict(fresh) < 0)
        counts = np.arange(n_fresh + 1)
        law = np.convolve(law, betabinom.pmf(counts, n_fresh, k, m + 1 - k))
    assert law[: alarms + 1].sum() >= 5e-5
    assert law[alarms:].sum() >= 5e-5


def test_a_column_constant_in_the_sample_only_counts_as_constant(monkeypatch):
    monkeypatch.setattr("prudent.dask.blocks.MAX_FIT_ROWS", 30)
    X = rows()
    X[:, 1] = 7.0
    X[held_out_rows()[1][30:33], 1] = 8.0
    with pytest.warns(PrudentWarning, match="constant"):
        detector = fit(quick(reference="box"), blocks(X))
    np.testing.assert_array_equal(detector.constant_features_, [1])
    inside, outside = detector.score_samples([[0, 7], [0, 8]])
    assert outside < -1e6 < inside


def test_the_fitted_detector_needs_no_dask():
    detector = fit(quick(), blocks(rows()))
    stored = pickle.dumps(detector)
    assert b"dask" not in stored
    np.testing.assert_array_equal(
        pickle.loads(stored).predict(rows(50)), detector.predict(rows(50))
    )


@pytest.mark.parametrize("params", [{}, {"strategy": "soft", "divergence_bound": 3.0}])
@pytest.mark.parametrize("method", ["predict", "p_value", "decision_function"])
def test_predict_applies_to_blocks(method, params):
    detector = fit(quick(**params), blocks(rows()))
    fresh = rows(seed=1)
    lazy = predict(detector, da.from_array(fresh, chunks=(170, 2)), method)
    np.testing.assert_array_equal(lazy.compute(), getattr(detector, method)(fresh))


@pytest.mark.parametrize("make", [quick, MinimaxOutlierDetector])
def test_frames_keep_their_names_and_leave_the_target_out(make):
    frame = pd.DataFrame(rows(), columns=["a", "b"]).assign(label=np.arange(600) % 2)
    table = dd.from_pandas(frame, npartitions=4)
    detector = fit(make(random_state=0), table, target="label")
    assert detector.feature_names_in_.tolist() == ["a", "b"]
    same = fit(make(random_state=0), table[["a", "b"]])
    assert same.offset_ == detector.offset_
    again = fit(detector, blocks(rows()))
    assert not hasattr(again, "feature_names_in_")


@pytest.mark.parametrize("make", [quick, MinimaxOutlierDetector])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_every_row_must_be_finite_held_out_or_not(make, bad):
    for row in range(0, 600, 150):
        X = rows()
        X[row, 1] = bad
        with pytest.raises(ValueError, match="NaN|infinity"):
            fit(make(), blocks(X))


@pytest.mark.parametrize("make", [quick, MinimaxOutlierDetector])
def test_one_row_is_too_few(make):
    with pytest.raises(ValueError, match="found 1 sample"):
        fit(make(), da.from_array(rows(1)))


@pytest.mark.parametrize(
    ("detector", "error", "message"),
    [
        (quick(strategy="soft"), ValueError, "needs `divergence_bound`"),
        (quick(false_alarm_rate=2.0), ValueError, "false_alarm_rate"),
        (quick(estimator=StandardScaler()), TypeError, "predict_proba"),
        (MinimaxOutlierDetector(kernel="rbf"), TypeError,
         "kernel='rbf' needs all rows at once"),
        (MinimaxOutlierDetector(covariance=LedoitWolf()), TypeError,
         r"covariance=LedoitWolf\(\) needs all rows at once"),
        (MinimaxOutlierDetector(false_alarm_rate=2.0), ValueError, "false_alarm_rate"),
        (MinimaxProbabilityClassifier(), ValueError, "needs labels: give `y` or"),
    ],
)  # fmt: skip
def test_bad_settings_are_named_before_any_row_is_read(detector, error, message):
    def never():
        raise AssertionError("a row was read")

    X = da.from_delayed(delayed(never)(), (10, 2), float)
    with pytest.raises(error, match=message):
        fit(detector, X)


# --- MinimaxOutlierDetector -----------------------------------------------------


@pytest.mark.parametrize("region", ["ellipsoid", "halfspace"])
@pytest.mark.parametrize("covariance", ["empirical", "ledoit_wolf", "oas", 0.3])
def test_distribution_free_thresholds_take_one_pass(region, covariance):
    X = rows() + 30
    params = {"threshold": "distribution_free", "region": region}
    plain = MinimaxOutlierDetector(covariance=covariance, **params).fit(X)
    reads = []

    def read(part):
        reads.append(len(part))
        return part

    table = da.concatenate([
        da.from_delayed(delayed(read)(part), part.shape, float)
        for part in np.split(X, 4)
    ])  # fmt: skip
    detector = fit(MinimaxOutlierDetector(covariance=covariance, **params), table)
    assert reads == [150] * 4
    assert detector.offset_ == pytest.approx(plain.offset_, rel=1e-12)
    np.testing.assert_allclose(
        detector.score_samples(X), plain.score_samples(X), rtol=1e-10
    )
    assert detector.guarantees_ == plain.guarantees_
    # Moments alone do not tell rows.
    assert vars(detector).keys() == vars(plain).keys() - {"_known_rows"}


@pytest.mark.parametrize("covariance", ["empirical", "ledoit_wolf", "oas", 0.3])
def test_calibrated_thresholds_come_from_all_held_out_rows(covariance):
    X = rows()
    detector = MinimaxOutlierDetector(random_state=0, covariance=covariance)
    fit(detector, blocks(X))
    held_out, _ = held_out_rows()
    moments = MinimaxOutlierDetector(
        threshold="distribution_free", covariance=covariance
    ).fit(X[~held_out])
    np.testing.assert_allclose(
        detector.score_samples(X), moments.score_samples(X), rtol=1e-10
    )
    rank = 18  # floor(0.1 * 181)
    expected = np.sort(detector.score_samples(X[held_out]))[rank - 1]
    assert detector.offset_ == pytest.approx(expected, rel=1e-12)
    plain = MinimaxOutlierDetector(random_state=0, covariance=covariance).fit(X)
    assert detector.offset_ == pytest.approx(plain.offset_, rel=1e-12)
    assert detector.guarantees_ == plain.guarantees_
    assert detector.n_calibration_ == plain.n_calibration_ == 180
    np.testing.assert_array_equal(detector._known_rows.keys, plain._known_rows.keys)
    assert detector._known_rows.near == plain._known_rows.near
    assert vars(detector).keys() == vars(plain).keys()


def test_labels_play_no_role_for_a_detector():
    detector = MinimaxOutlierDetector(threshold="distribution_free")
    unlabelled = fit(detector, da.from_array(rows())).offset_
    assert fit(detector, da.from_array(rows()), np.arange(600) % 2).offset_ == (
        unlabelled
    )


def test_a_calibration_share_that_leaves_no_rows_is_refused():
    with pytest.raises(ValueError, match="leaves 1 of n_samples=2"):
        fit(MinimaxOutlierDetector(calibration_size=0.5), da.from_array(rows(2)))
