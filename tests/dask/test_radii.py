"""Radii from data on blocks: the quantities of the fit in memory."""

from functools import partial

import dask
import dask.array as da
import numpy as np
import pytest
from scipy.stats import chi2
from sklearn.covariance import LedoitWolf

from prudent import OptimisticScoreClassifier
from prudent.core.moments import ClassMoments
from prudent.core.rows import Block
from prudent.dask import fit
from prudent.exceptions import DegenerateDataError, PrudentWarning
from prudent.optimistic import bootstrap_radius, moment_divergence, radii
from prudent.optimistic.nominal import nominal_covariances, standardised_fourth
from prudent.optimistic.radii import (
    poisson_counts,
    resampled_divergences,
    resampled_sums,
)

pytestmark = pytest.mark.filterwarnings("ignore:chunks are small")
RULES = ["ledoit_wolf", "oas", "empirical", 0.3]
CHUNKS = (130, 170, 0, 250, 50)


@pytest.fixture(autouse=True)
def one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture
def rows():
    rng = np.random.default_rng(5)
    y = np.array(["a", "b"])[np.arange(600) % 3 % 2]
    X = rng.chisquare(3, size=(600, 3)) * [1.0, 1e3, 1e-3] + 5.0 * (y == "b")[:, None]
    return X, y


def table(X):
    return da.from_array(X, chunks=(tuple(c for c in CHUNKS if c), X.shape[1]))


# --- the mathematics ----------------------------------------------------------------


def moments_of_resample(Z, counts, rule):
    """As `bootstrap_radius` takes them: rows repeated, floors relative to 1."""
    drawn = np.repeat(Z, counts, axis=0)
    codes = np.zeros(len(drawn), dtype=np.intp)
    moments = ClassMoments.from_rows(drawn, codes, 1)
    nominal = nominal_covariances(
        moments,
        rule,
        fourth_of=partial(standardised_fourth, Block(drawn, codes), moments),
        variances=np.ones(Z.shape[1]),
        exact=True,
    )
    return moments.mean[0], nominal.matrices[0]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("shape", [(200, 4), (30, 1), (12, 6)])
def test_divergences_are_those_of_repeated_rows(rule, shape):
    X = np.random.default_rng(1).chisquare(2, size=shape)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    counts = poisson_counts(len(Z), key=7, block=0, resamples=range(20))
    sums = resampled_sums(Z, counts, rule)
    varies = np.ones(shape[1], dtype=bool)
    nominal = moments_of_resample(Z, counts[:, 0], rule)
    expected = [
        moment_divergence(*moments_of_resample(Z, column, rule), *nominal)
        for column in counts[:, 1:].T
    ]
    # A singular resample has its eigenvalues raised: rounding shows there.
    regular = np.array(expected) < 15
    assert regular.sum() >= 10 or rule == "empirical"
    np.testing.assert_allclose(
        resampled_divergences(sums, varies, rule)[regular],
        np.array(expected)[regular],
        rtol=1e-9,
    )


def test_sums_of_blocks_add_up():
    Z = np.random.default_rng(2).normal(size=(90, 3))
    counts = poisson_counts(90, key=1, block=0, resamples=range(5))
    parts = [
        resampled_sums(Z[part], counts[part], "ledoit_wolf")
        for part in (slice(0, 40), slice(40, 40), slice(40, 90))
    ]
    whole = resampled_sums(Z, counts, "ledoit_wolf")
    np.testing.assert_allclose(
        (parts[0] + parts[1] + parts[2]).s2, whole.s2, rtol=1e-12, atol=1e-12
    )


def test_a_feature_constant_in_a_resample_leaves_the_divergences_finite():
    X = np.random.default_rng(8).normal(size=(12, 2))
    X[:, 1] = 0.0
    X[0, 1] = 1.0  # a third of the resamples miss this row
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    counts = poisson_counts(12, key=0, block=0, resamples=range(50))
    assert (counts[0] == 0).any()
    for rule in RULES:
        found = resampled_divergences(
            resampled_sums(Z, counts, rule), np.array([True, True]), rule
        )
        assert np.isfinite(found).all()
        expected = [
            moment_divergence(
                *moments_of_resample(Z, column, rule),
                *moments_of_resample(Z, counts[:, 0], rule),
            )
            for column in counts[:, 1:].T
        ]
        missed = counts[0, 1:] == 0
        np.testing.assert_allclose(found[missed], np.array(expected)[missed], rtol=1e-6)


def test_resamples_of_fewer_than_two_rows_are_left_out():
    Z = np.array([[1.0], [-1.0]])
    counts = np.array([[1, 0, 1, 3], [1, 0, 0, 1]], dtype=np.uint8)
    sums = resampled_sums(Z, counts, "oas")
    assert len(resampled_divergences(sums, np.array([True]), "oas")) == 1


def test_counts_are_poisson_and_keyed():
    counts = poisson_counts(2000, key=3, block=4, resamples=range(50))
    assert (counts[:, 0] == 1).all()
    drawn = counts[:, 1:].astype(float)
    assert abs(drawn.mean() - 1) < 4 / np.sqrt(drawn.size)
    assert abs(drawn.var() - 1) < 4 * np.sqrt(3 / drawn.size)
    later = poisson_counts(2000, key=3, block=4, resamples=range(30, 50))
    np.testing.assert_array_equal(later[:, 1:], counts[:, 31:])
    for other in (
        poisson_counts(2000, key=3, block=5, resamples=range(50)),
        poisson_counts(2000, key=2, block=4, resamples=range(50)),
    ):
        together = np.corrcoef(drawn.ravel(), other[:, 1:].ravel())[0, 1]
        assert abs(together) < 4 / np.sqrt(drawn.size)


# --- the fit ------------------------------------------------------------------------


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_moment_matched_radii_equal_those_of_the_fit_in_memory(rows, level):
    X, y = rows
    model = OptimisticScoreClassifier(radius="moments", radius_level=level)
    plain = OptimisticScoreClassifier(**model.get_params()).fit(X, y)
    fit(model, table(X), y)
    np.testing.assert_allclose(model.radii_, plain.radii_, rtol=1e-10)
    np.testing.assert_array_equal(model.predict(X), plain.predict(X))


@pytest.mark.parametrize("rule", RULES)
def test_bootstrap_radii_agree_with_the_fit_in_memory(rows, rule):
    """Within the error of two medians of 200 resamples."""
    X, y = rows
    params = {"radius": "bootstrap", "covariance": rule, "radius_scale": 0.5}
    radii = np.array([
        fit(OptimisticScoreClassifier(**params, random_state=seed), table(X), y).radii_
        for seed in range(3)
    ])  # fmt: skip
    plain = 0.5 * np.array(
        [
            [
                bootstrap_radius(X[y == label], covariance=rule, random_state=seed)
                for label in "ab"
            ]
            for seed in range(3)
        ]
    )
    # A median of 200 draws of a law like chi2(9) errs by about 5 %.
    tolerance = 4 * 0.05 * np.sqrt(2 / 3)
    np.testing.assert_allclose(radii.mean(axis=0), plain.mean(axis=0), rtol=tolerance)
    assert (radii.std(axis=0) < 0.15 * radii.mean(axis=0)).all()


def test_bootstrap_radius_of_gaussian_rows_is_near_the_limit():
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(4000, 3)), np.arange(4000) % 2
    model = OptimisticScoreClassifier(
        radius="bootstrap", covariance="empirical", random_state=0
    )
    fit(model, da.from_array(X, chunks=(1500, 3)), y)
    np.testing.assert_allclose(model.radii_, chi2.ppf(0.5, 9) / 2000, rtol=0.2)


@pytest.mark.parametrize(("source", "largest"), [("bootstrap", 900), ("moments", 81)])
def test_radii_do_not_depend_on_how_many_passes_they_take(
    rows, source, largest, monkeypatch
):
    X, y = rows
    model = OptimisticScoreClassifier(radius=source, random_state=1)
    one_pass = fit(model, table(X), y).radii_
    monkeypatch.setattr(radii, "LARGEST_SUM", largest)
    np.testing.assert_allclose(fit(model, table(X), y).radii_, one_pass, rtol=1e-12)


@pytest.mark.parametrize("source", ["bootstrap", "moments"])
def test_empty_partition_and_partition_without_a_class(rows, source):
    X, y = rows
    order = np.argsort(y, kind="stable")  # the last blocks lack class "a"
    X, y = X[order], y[order]
    kept = np.ones(600, dtype=bool)
    kept[100:150] = False
    blocks, labels = da.from_array(X, chunks=(50, 3)), da.from_array(y, chunks=50)
    model = OptimisticScoreClassifier(radius=source, random_state=1)
    fit(model, blocks[kept], labels[kept])
    plain = OptimisticScoreClassifier(radius=source, random_state=1)
    plain.fit(X[kept], y[kept])
    tolerance = 1e-10 if source == "moments" else 0.3
    np.testing.assert_allclose(model.radii_, plain.radii_, rtol=tolerance)


@pytest.mark.parametrize("source", ["bootstrap", "moments"])
def test_features_constant_in_a_class_or_everywhere_are_left_out(rows, source):
    X, y = rows
    X = np.insert(X, 1, 3.0, axis=1)
    X[y == "a", 2] = 0.0
    model = OptimisticScoreClassifier(radius=source, random_state=1)
    with pytest.warns(PrudentWarning):
        fit(model, table(X), y)
    with pytest.warns(PrudentWarning):
        plain = OptimisticScoreClassifier(radius=source, random_state=1).fit(X, y)
    tolerance = 1e-10 if source == "moments" else 0.3
    np.testing.assert_allclose(model.radii_, plain.radii_, rtol=tolerance)


def test_same_random_state_same_radii(rows):
    X, y = rows
    first, again, other = (
        fit(
            OptimisticScoreClassifier(radius="bootstrap", random_state=seed),
            table(X),
            y,
        ).radii_
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).all()


def test_moment_radii_need_more_rows_than_features():
    X, y = np.random.default_rng(0).normal(size=(12, 6)), np.arange(12) % 2
    model = OptimisticScoreClassifier(radius="moments")
    with pytest.raises(DegenerateDataError, match="6 rows for 6 features"):
        fit(model, da.from_array(X), y)


def test_moment_radii_of_very_many_features_are_refused(rows, monkeypatch):
    monkeypatch.setattr(radii, "LARGEST_SUM", 80)
    X, y = rows
    with pytest.raises(ValueError, match="81 sums a class for 3 features"):
        fit(OptimisticScoreClassifier(radius="moments"), table(X), y)


def test_a_covariance_estimator_needs_rows_in_one_place(rows):
    X, y = rows
    model = OptimisticScoreClassifier(covariance=LedoitWolf())
    with pytest.raises(TypeError, match=r"covariance=LedoitWolf\(\).*in one place"):
        fit(model, table(X), y)
