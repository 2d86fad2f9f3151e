"""Imprecise discriminant analysis on blocks, where moments do not suffice."""

import dask
import dask.array as da
import numpy as np
import pytest
from sklearn.covariance import LedoitWolf

from prudent import ImpreciseDiscriminantAnalysis
from prudent.dask import fit

pytestmark = pytest.mark.filterwarnings("ignore:chunks are small")


@pytest.fixture(autouse=True)
def one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture
def rows():
    rng = np.random.default_rng(5)
    y = np.sort(np.array(["a", "b", "c"])[np.arange(240) % 3])
    X = rng.chisquare(3, size=(240, 4)) * [1.0, 1e3, 1e-3, 1.0]
    return X + 4.0 * np.array([y == "b", y == "c", y == "b", y == "c"]).T, y


def assert_equal_fits(model, plain, X):
    np.testing.assert_allclose(model.covariances_, plain.covariances_, rtol=1e-10)
    np.testing.assert_allclose(model.scale_, plain.scale_, rtol=1e-12)
    np.testing.assert_array_equal(model.predict_set(X), plain.predict_set(X))
    assert model.covariance_kind_ == plain.covariance_kind_
    assert learned(model) == learned(plain)


def learned(model):
    return {name for name in vars(model) if name.endswith("_")}


@pytest.mark.parametrize(
    "params",
    [
        {"covariance": "ledoit_wolf"},
        {"covariance": "ledoit_wolf", "covariance_type": "tied"},
        {"covariance": "ledoit_wolf", "covariance_type": "diag", "scale": "range"},
        {"scale": "range"},
    ],
    ids=["full", "tied", "diag", "range"],
)
@pytest.mark.parametrize("size", [35, 240])
def test_equals_the_fit_in_memory(rows, params, size):
    X, y = rows
    model = ImpreciseDiscriminantAnalysis(**params)
    fit(model, da.from_array(X, chunks=(size, 4)), y)
    assert_equal_fits(model, ImpreciseDiscriminantAnalysis(**params).fit(X, y), X)


@pytest.mark.parametrize("scale", ["std", "range"])
def test_empty_partition_and_constant_feature(rows, scale):
    X, y = rows
    X[:, 1] = 7.0
    kept = np.ones(240, dtype=bool)
    kept[80:120] = False
    params = {"covariance": "ledoit_wolf", "scale": scale}
    model = ImpreciseDiscriminantAnalysis(**params)
    plain = ImpreciseDiscriminantAnalysis(**params)
    blocks, labels = da.from_array(X, chunks=(40, 4)), da.from_array(y, chunks=40)
    with pytest.warns(UserWarning, match="constant"):
        fit(model, blocks[kept], labels[kept])
    with pytest.warns(UserWarning, match="constant"):
        plain.fit(X[kept], y[kept])
    assert_equal_fits(model, plain, X)


def test_a_covariance_estimator_needs_rows_in_one_place(rows):
    X, y = rows
    model = ImpreciseDiscriminantAnalysis(covariance=LedoitWolf())
    with pytest.raises(TypeError, match=r"covariance=LedoitWolf\(\).*in one place"):
        fit(model, da.from_array(X), y)
