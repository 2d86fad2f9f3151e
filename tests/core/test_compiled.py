"""The compiled kernels against NumPy's."""

import subprocess
import sys

import numpy as np
import pytest

from prudent import ClassMoments
from prudent.core import linalg, statistics

ALWAYS, NEVER = 0, np.inf
FEATURES = [1, 2, 3, 4, 5, 19, 32, 48]


def both_moments(monkeypatch, *args, **options):
    for size in (NEVER, ALWAYS):
        monkeypatch.setattr(statistics, "COMPILED_SIZE", size)
        yield ClassMoments.from_arrays(*args, **options)


def assert_close(a, b, tolerance):
    np.testing.assert_array_equal(a.count, b.count)
    np.testing.assert_allclose(a.weight, b.weight, rtol=1e-14)
    spread = np.sqrt(np.diagonal(a.scatter, axis1=1, axis2=2))
    scale = spread[:, :, None] * spread[:, None, :]
    assert (np.abs(a.scatter - b.scatter) <= tolerance * scale).all()
    gap = (a.mean - b.mean) + (a.mean_lo - b.mean_lo)
    assert (np.abs(gap) <= tolerance * spread).all()


@pytest.mark.parametrize("n_features", FEATURES)
@pytest.mark.parametrize("n_rows", [1, 63, 64, 65, 1000])
@pytest.mark.parametrize("weighted", [False, True])
def test_kernels_agree(n_features, n_rows, weighted, monkeypatch):
    rng = np.random.default_rng(0)
    X = 1e6 + rng.normal(size=(n_rows, n_features))
    y = rng.integers(0, 4, n_rows)
    w = rng.integers(0, 3, n_rows) * 0.7 if weighted and n_rows > 1 else None
    plain, compiled = both_moments(monkeypatch, X, y, w, classes=range(5), fourth=True)
    assert_close(plain, compiled, 1e-13)
    np.testing.assert_allclose(compiled.fourth, plain.fourth, rtol=1e-12)
    scale = np.sqrt(plain.fourth * np.trace(plain.scatter, axis1=1, axis2=2))
    assert (np.abs(compiled.third - plain.third) <= 1e-12 * scale[:, None]).all()


def test_kernels_agree_over_many_blocks(monkeypatch):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(3000, 7)), rng.integers(0, 3, 3000)
    plain, compiled = both_moments(monkeypatch, X, y, block_rows=100)
    assert_close(plain, compiled, 1e-13)


@pytest.mark.parametrize("fourth", [False, True])
def test_kernels_agree_when_the_first_row_lies_far_away(fourth, monkeypatch):
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(3000, 7)), rng.integers(0, 3, 3000)
    X[:3] += 1e8
    plain, compiled = both_moments(monkeypatch, X, y, fourth=fourth)
    assert_close(plain, compiled, 1e-13)


def test_a_constant_feature_has_scatter_exactly_zero(monkeypatch):
    monkeypatch.setattr(statistics, "COMPILED_SIZE", ALWAYS)
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(3000, 7)), rng.integers(0, 3, 3000)
    X[:, 2] = 0.1
    moments = ClassMoments.from_arrays(X, y, rng.random(3000), block_rows=500)
    assert (moments.scatter[:, 2] == 0).all()
    assert (moments.mean[:, 2] == 0.1).all()


def test_read_only_and_narrow_rows(monkeypatch):
    monkeypatch.setattr(statistics, "COMPILED_SIZE", ALWAYS)
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(500, 3)).astype(np.float32), rng.integers(0, 3, 500)
    wide = X.astype(np.float64)
    wide.flags.writeable = False
    # Not to the bit: a loop that the compiler finds in its cache is not inlined.
    expected = ClassMoments.from_arrays(wide, y).scatter
    np.testing.assert_allclose(
        ClassMoments.from_arrays(X, y).scatter, expected, atol=1e-13 * expected.max()
    )


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e200])
def test_bad_values_are_found(value, monkeypatch):
    monkeypatch.setattr(statistics, "COMPILED_SIZE", ALWAYS)
    X = np.zeros((300, 3))
    X[250, 1] = value
    with pytest.raises(ValueError, match="column 1"):
        ClassMoments.from_arrays(X, np.arange(300) % 2)


def test_cancelled_weights_are_refused(monkeypatch):
    monkeypatch.setattr(statistics, "COMPILED_SIZE", ALWAYS)
    X, codes = np.arange(4.0).reshape(2, 2), np.zeros(2, dtype=int)
    with pytest.raises(ValueError, match="use RawMoments"):
        ClassMoments.from_rows(X, codes, 1, np.array([1.0, -1.0]))


@pytest.mark.parametrize("n_features", FEATURES)
@pytest.mark.parametrize("n_rows", [1, 63, 64, 65, 3000])
def test_distances_agree(n_features, n_rows, monkeypatch):
    rng = np.random.default_rng(5)
    A = rng.normal(size=(3, n_features, n_features))
    factors = linalg.MahalanobisFactors.from_covariances(
        rng.normal(size=(3, n_features)) + 1e8,
        A @ A.transpose(0, 2, 1) + np.eye(n_features),
        means_lo=rng.normal(size=(3, n_features)) * 1e-9,
    )
    X = rng.normal(size=(n_rows, n_features)) + 1e8
    results = []
    for size in (NEVER, ALWAYS):
        monkeypatch.setattr(linalg, "COMPILED_SIZE", size)
        results.append(factors.squared_distances(X))
    np.testing.assert_allclose(*results, rtol=1e-12)


def test_importing_prudent_does_not_import_the_compiler():
    code = (
        "import sys, numpy as np, prudent, prudent.core.moments, "
        "prudent.core.linalg\n"
        "prudent.ClassMoments.from_arrays(np.eye(3), [0, 0, 1])\n"
        "print('numba' in sys.modules, 'sklearn' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "False"]


def test_logarithms_and_exponentials_agree_with_numpy():
    from prudent.core.kernels import exponentials, logarithms

    rng = np.random.default_rng(7)
    values = np.exp(rng.uniform(-700, 700, size=5000))
    values[:4] = 1.0, np.sqrt(2), np.sqrt(0.5), np.nextafter(1.0, 2.0)
    logs = np.empty_like(values)
    logarithms(values, logs)
    np.testing.assert_allclose(logs, np.log(values), rtol=3e-16, atol=0)
    exponents = -np.abs(rng.normal(size=(50, 9))) * 100
    exponents[3, 4] = -np.inf
    powers = exponents.ravel().copy()
    exponentials(powers)
    np.testing.assert_allclose(powers, np.exp(exponents.ravel()), rtol=5e-16, atol=0)
