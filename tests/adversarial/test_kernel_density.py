"""Kernel densities against scikit-learn, SciPy and leaving rows out by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.neighbors import KernelDensity

from prudent import LowDensityRejector
from prudent.adversarial.density.detector import MeanLogitClassifier
from prudent.adversarial.density.model import (
    NormalKernels,
    _log_sums,
    kernel_width,
)

WIDTHS = np.geomspace(0.25, 1.5, 11)


def correlated_rows(n, d=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) @ rng.normal(size=(d, d))


@pytest.mark.parametrize("n_rows", [7, 20_000])  # one block and several
def test_round_kernels_equal_scikit_learn(n_rows):
    centres, rows = correlated_rows(50), 3 * correlated_rows(n_rows, seed=1)
    oracle = KernelDensity(bandwidth=0.7).fit(centres).score_samples(rows)
    mine = NormalKernels(centres, 0.7).log_density(rows)
    np.testing.assert_allclose(mine, oracle, rtol=1e-10)


def test_far_rows_stay_finite_and_graded():
    kernels = NormalKernels(correlated_rows(50), 0.3)
    scores = kernels.log_density(np.array([1e3, 1e50, 1e100])[:, None] * np.ones(3))
    assert np.isfinite(scores).all()
    assert (np.diff(scores) < 0).all()


@pytest.mark.parametrize("n_rows", [60, 400])
def test_width_is_the_likeliest_when_rows_are_left_out(n_rows):
    rows = correlated_rows(n_rows)
    rule = kernel_width(n_rows, 3)

    def likelihood(width):
        others = [np.delete(rows, i, axis=0) for i in range(n_rows)]
        return sum(
            KernelDensity(bandwidth=width).fit(rest).score(rows[i : i + 1])
            for i, rest in enumerate(others)
        )

    best = max(rule * WIDTHS, key=likelihood)
    assert NormalKernels.of_likeliest_width(rows).width == pytest.approx(best)


def test_width_of_one_row_and_of_equal_rows():
    assert NormalKernels.of_likeliest_width(np.zeros((1, 2))).width == 1.0
    equal = NormalKernels.of_likeliest_width(np.zeros((9, 2)))
    assert equal.width == pytest.approx(0.25 * kernel_width(9, 2))


def test_decorrelated_kernels_are_normals_of_the_shrunken_covariance():
    centres = correlated_rows(40)
    covariance = np.cov(centres.T)
    model = NormalKernels.of_likeliest_width(centres, covariance)
    rows = correlated_rows(20, seed=2)
    spread = model.width**2 * (0.99 * covariance + 0.01 * np.eye(3))
    oracle = logsumexp(
        [multivariate_normal(c, spread).logpdf(rows) for c in centres], axis=0
    ) - np.log(len(centres))
    np.testing.assert_allclose(model.log_density(rows), oracle, rtol=1e-10)


def test_decorrelated_kernels_of_flat_rows_exist():
    flat = np.repeat(correlated_rows(40, d=1), 3, axis=1)
    model = NormalKernels.of_likeliest_width(flat, np.cov(flat.T))
    assert np.isfinite(model.log_density(flat)).all()


@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.floats(0, 1000))
def test_log_sums_equal_scipy(seed, n_columns, spread):
    exponents = spread * np.random.default_rng(seed).normal(size=(5, n_columns))
    exponents[:, 1:][np.abs(exponents[:, 1:]) < 0.2 * spread] = -np.inf
    oracle = logsumexp(exponents, axis=1)
    np.testing.assert_allclose(_log_sums(exponents), oracle, rtol=1e-13, atol=1e-13)


# --- their part in the detector -----------------------------------------------------


def test_score_is_the_mean_of_the_estimates_by_the_rows_they_learn_from():
    rows = correlated_rows(3000)
    model = LowDensityRejector(random_state=0).fit(rows)._learned.density
    Z = model.standardisation.apply(correlated_rows(50, seed=1))
    rounded, shaped = model.kernels
    classifier = model.log_odds(Z) + model.reference.log_density(Z)
    kernels = rounded.log_density(Z) + shaped.log_density(Z)
    expected = (2100 * classifier + 1000 * kernels) / 4100
    mine = model.score(correlated_rows(50, seed=1))
    np.testing.assert_allclose(mine, expected, atol=1e-5)


def test_kernels_are_left_out_for_many_rows_and_beside_a_given_classifier():
    many = LowDensityRejector(random_state=0, calibration_size=0.01)
    assert many.fit(correlated_rows(10_200))._learned.density.kernels == ()
    spy = LowDensityRejector(estimator=MeanLogitClassifier(random_state=0))
    assert spy.fit(correlated_rows(100))._learned.density.kernels == ()
