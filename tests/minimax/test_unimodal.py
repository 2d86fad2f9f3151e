"""Bounds for classes that are unimodal along the normal of a plane."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import linprog, minimize
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import LogisticRegression

from prudent import Assumption, ClassMoments, MinimaxProbabilityClassifier, audit
from prudent.minimax import best_intercept, guarantees_of, worst_case_error
from prudent.minimax.certificate import (
    ClassMargin,
    chebyshev,
    least_favourable_rows,
    vysochanskij_petunin,
)


def largest_tail(kappa, mode, ends):
    """P(X >= kappa) at most, for mean 0, variance 1 and this mode: a linear programme.

    A law with this mode is a mixture of the mode and of uniform laws from there to one
    of the ends (Khinchin).
    """
    low, high = np.minimum(mode, ends), np.maximum(mode, ends)
    width = np.where(high > low, high - low, 1.0)
    beyond = np.clip(high - np.maximum(low, kappa), 0.0, None) / width
    beyond = np.where(high > low, beyond, (ends >= kappa).astype(float))
    mean = (low + high) / 2
    square = (low * low + low * high + high * high) / 3
    solved = linprog(
        -beyond,
        A_eq=[np.ones(len(ends)), mean, square],
        b_eq=[1.0, 0.0, 1.0],
        method="highs",
    )
    return -solved.fun if solved.success else 0.0


@pytest.mark.parametrize("kappa", [0.3, 0.8, 1.2, math.sqrt(5 / 3), 1.6, 2.5, 5.0])
def test_the_bound_is_attained_and_never_exceeded_over_all_modes(kappa):
    modes = np.r_[np.linspace(-1.7, 1.7, 69), 1 / -kappa, kappa, kappa * (1 + 1e-9)]
    bound = vysochanskij_petunin(kappa)
    worst = 0.0
    for mode in modes:
        length = 3 * (1 + kappa**2) / (2 * kappa)
        ends = np.r_[np.linspace(-14, 14, 1401), mode, mode + length, mode - length]
        worst = max(worst, largest_tail(kappa, mode, ends))
    assert worst <= bound + 1e-9
    assert worst == pytest.approx(bound, rel=1e-6)


@given(x=st.floats(1.0, 1.5))
def test_the_last_step_of_the_proof(x):
    """20 x^2 - 6 x - 9 >= m (3 + 2 x) with m^2 = (9 - 4 x^2) / 5, for 1 <= x <= 3/2."""
    m = math.sqrt(max(9 - 4 * x * x, 0.0) / 5)
    assert 20 * x * x - 6 * x - 9 >= m * (3 + 2 * x) - 1e-12


@given(kappa=st.floats(-3.0, 1e9))
def test_the_bound_falls_and_never_exceeds_that_of_any_law(kappa):
    bound = vysochanskij_petunin(kappa)
    assert 0 <= bound <= chebyshev(kappa)
    assert vysochanskij_petunin(kappa + 0.01) <= bound
    if kappa > math.sqrt(5 / 3):
        assert bound == pytest.approx(4 / 9 * chebyshev(kappa), rel=1e-12)


UNIMODAL = {
    "normal": stats.norm(),
    "uniform": stats.uniform(),
    "laplace": stats.laplace(),
    "exponential": stats.expon(),
    "triangle": stats.triang(0.0),
    "lognormal": stats.lognorm(1.0),
    "student": stats.t(3),
    "beta": stats.beta(1.0, 9.0),
}


@pytest.mark.parametrize("name", UNIMODAL)
@pytest.mark.parametrize("sign", [1, -1])
def test_unimodal_laws_keep_the_bound_of_every_plane(name, sign):
    law = UNIMODAL[name]
    mean, deviation = law.mean(), law.std()
    for kappa in np.linspace(0.05, 8, 160):
        beyond = law.sf(mean + kappa * deviation)
        if sign < 0:
            beyond = law.cdf(mean - kappa * deviation)
        moments = ClassMoments.from_covariances(
            [[-sign * mean], [kappa * deviation * 50 - sign * mean]],
            [[[deviation**2]], [[1e-6]]],
            [9, 9],
        )
        # The class is seen in the mirror for one of the signs.
        intercept = -(kappa * deviation - sign * mean)
        error = worst_case_error([1.0], intercept, moments, laws="unimodal")[0]
        assert beyond <= error


def test_a_law_with_two_peaks_breaks_the_promise():
    """The planted fault: the least favourable law of all is not unimodal."""
    model = MinimaxProbabilityClassifier(laws="unimodal").fit(*load_iris_pair())
    plain = MinimaxProbabilityClassifier().fit(*load_iris_pair())
    rows = plain.least_favourable(1, 20_000, random_state=0)
    wrong = int((model.predict(rows) != 1).sum())
    bound = model.guarantees_[0].bound
    assert stats.binom.sf(wrong - 1, len(rows), bound) < 1e-4


def load_iris_pair():
    X, y = load_iris(return_X_y=True)
    return X[y > 0], y[y > 0]


@pytest.mark.parametrize("kappa", [0.4, 1.2, 1.4, 3.0])
@pytest.mark.parametrize("positive", [True, False])
def test_least_favourable_rows_attain_the_bound_and_are_unimodal(kappa, positive):
    n, random = 200_000, np.random.RandomState(0)
    side = 1.0 if positive else -1.0
    rows = least_favourable_rows(
        np.array([1.0, 0.0]),
        -2.0 * side * kappa,
        np.zeros(2),
        np.diag([4.0, 1.0]),
        n,
        random,
        positive=positive,
        laws="unimodal",
    )
    t = side * rows[:, 0] / 2
    assert t.mean() == pytest.approx(0, abs=5 / math.sqrt(n))
    assert (t * t).mean() == pytest.approx(1, abs=5 * t.var() * 3 / math.sqrt(n))
    wrong = int((t < -kappa).sum())
    bound = vysochanskij_petunin(kappa)
    assert stats.binomtest(wrong, n, bound).pvalue > 1e-4
    values, counts = np.unique(t, return_counts=True)
    mode = values[counts.argmax()]
    rest = t[t != mode]
    # Uniform from the mode on, in one direction.
    assert (rest > mode).all() or (rest < mode).all()
    length = 3 * (1 + kappa**2) / (2 * kappa)
    assert stats.kstest(np.abs(rest - mode) / length, "uniform").pvalue > 1e-4


def test_a_fit_has_the_same_plane_and_promises_less_error():
    X, y = load_breast_cancer(return_X_y=True)
    plain = MinimaxProbabilityClassifier().fit(X, y)
    sharp = MinimaxProbabilityClassifier(laws="unimodal").fit(X, y)
    np.testing.assert_array_equal(plain.coef_, sharp.coef_)
    np.testing.assert_array_equal(plain.intercept_, sharp.intercept_)
    for loose, tight in zip(plain.guarantees_, sharp.guarantees_, strict=True):
        assert tight.bound == pytest.approx(
            vysochanskij_petunin(sharp.kappa_), rel=1e-4
        )
        assert tight.bound < 0.45 * loose.bound
        assert Assumption.UNIMODAL in tight.assumptions
        assert Assumption.UNIMODAL not in loose.assumptions
        assert tight.confidence is None
    assert sharp.worst_case_error_ == pytest.approx(sharp.class_worst_case_error_.max())
    rows = sharp.least_favourable(1, 20_000, random_state=0)
    wrong = int((sharp.predict(rows) != 1).sum())
    assert stats.binomtest(wrong, 20_000, sharp.guarantees_[1].bound).pvalue > 1e-4


def least_over_planes(means, covariances, value):
    """The least value of both bounds over planes of the plane, by many descents."""

    def loss(z):
        normal, offset = z[:2], z[2]
        kappas = [
            side * (offset - normal @ mean) / math.sqrt(normal @ S @ normal)
            for mean, S, side in zip(means, covariances, (1, -1), strict=True)
        ]
        return value(*(vysochanskij_petunin(kappa) for kappa in kappas))

    random = np.random.default_rng(0)
    ends = [
        minimize(
            loss,
            [math.cos(angle), math.sin(angle), offset],
            method="Nelder-Mead",
            options={"xatol": 1e-10, "fatol": 1e-12, "maxiter": 4000},
        ).fun
        for angle in random.uniform(-math.pi, math.pi, 12)
        for offset in (-1.0, 0.0, 1.0)
    ]
    return min(ends)


@pytest.mark.parametrize(
    ("settings", "value"),
    [
        (
            {"objective": "cost", "costs": [[0, 1], [2, 0]]},
            lambda negative, positive: max(negative, 2 * positive),
        ),
        (
            {"objective": "cost", "costs": [[0, 5], [1, 0]]},
            lambda negative, positive: max(5 * negative, positive),
        ),
        (
            {"objective": "mean", "priors": [0.5, 0.5]},
            lambda negative, positive: (negative + positive) / 2,
        ),
    ],
)
@pytest.mark.parametrize("distance", [1.0, 2.0])
def test_cost_and_mean_weigh_the_bounds_of_these_laws(settings, value, distance):
    means = distance * np.array([[-1, 0], [1, 2]])
    covariances = np.array([[[1, -0.3], [-0.3, 3]], [[2, 0.5], [0.5, 1]]])
    model = MinimaxProbabilityClassifier.from_moments(
        means, covariances, [100, 100], laws="unimodal", **settings
    )
    least = least_over_planes(means, covariances, value)
    assert value(*model.class_worst_case_error_) == pytest.approx(least, rel=1e-6)
    any_law = MinimaxProbabilityClassifier.from_moments(
        means, covariances, [100, 100], **settings
    )
    bounds = worst_case_error(
        any_law.coef_[0], any_law.intercept_[0], any_law.moments_, laws="unimodal"
    )
    # The plane for all laws is the same where both bounds are 4/9 of Chebyshev's.
    gain = value(*bounds) - least
    assert gain > -1e-8
    if max(bounds) < 1 / 6:
        assert gain == pytest.approx(0, abs=1e-8)
    if distance == 1 and "costs" in settings:
        assert gain > 0.1


def test_three_classes_add_the_bounds_of_their_planes():
    X, y = load_iris(return_X_y=True)
    model = MinimaxProbabilityClassifier(laws="unimodal").fit(X, y)
    errors = np.zeros(3)
    for pair, kappa in zip([(0, 1), (0, 2), (1, 2)], model.kappa_, strict=True):
        errors[list(pair)] += vysochanskij_petunin(kappa)
    np.testing.assert_allclose(model.class_worst_case_error_, errors, rtol=1e-4)
    exact = pytest.importorskip("clarabel") and MinimaxProbabilityClassifier(
        laws="unimodal", bound="exact"
    ).fit(X, y)
    assert (exact.class_worst_case_error_ <= model.class_worst_case_error_).all()


def test_rounding_is_part_of_the_bound():
    """Far from the origin most of a decision value is rounding, in either type."""
    for far, dtype in ((1e3, np.float64), (1e3, np.float32), (1e7, np.float64)):
        moments = ClassMoments.from_covariances(
            [[far], [far + 6]], [[[1.0]], [[1.0]]], [50, 50]
        )
        coef = np.array([1.0], dtype)
        error = worst_case_error(coef, -far - 3, moments, laws="unimodal")
        assert (error > 4 / 90).all()
        assert (error <= worst_case_error(coef, -far - 3, moments)).all()
    margin = ClassMargin(0.0, 1.0, 0.0, 0.0, 1.0, blur=1e-9)
    tiny = margin.error(3.0, -1.0, laws="unimodal") - 4 / 90
    assert 1e-6 < tiny < 2e-6  # eta = 1e-6, and its Chebyshev bound as much again


def test_promises_of_other_linear_classifiers():
    X, y = load_breast_cancer(return_X_y=True)
    X = X[:, :5] / X[:, :5].std(axis=0)
    moments = ClassMoments.from_arrays(X, y)
    model = LogisticRegression().fit(X, y)
    loose = guarantees_of(model, moments)
    tight = guarantees_of(model, moments, laws="unimodal")
    for a, b in zip(loose, tight, strict=True):
        assert b.bound == pytest.approx(max(4 * a.bound / 9, (4 * a.bound - 1) / 3))
        assert b.assumptions[-1] is Assumption.UNIMODAL
    intercept, alpha = best_intercept(model.coef_, moments)
    same, more = best_intercept(model.coef_, moments, laws="unimodal")
    assert same == intercept
    assert more > alpha


def test_bad_settings_are_refused():
    X, y = load_iris_pair()
    moments = ClassMoments.from_arrays(X, y)
    both = MinimaxProbabilityClassifier(laws="unimodal", uncertainty="gaussian")
    with pytest.raises(ValueError, match="says more than laws='unimodal'"):
        both.fit(X, y)
    with pytest.raises(ValueError, match="must be 'any' or 'unimodal', got 'peak'"):
        worst_case_error(np.ones(4), 0.0, moments, laws="peak")
    with pytest.raises(ValueError, match="must be 'any' or 'unimodal', got 'peak'"):
        guarantees_of(LogisticRegression().fit(X, y), moments, laws="peak")
    with pytest.raises(ValueError, match="'laws' parameter"):
        MinimaxProbabilityClassifier(laws="peak").fit(X, y)


def test_an_audit_does_not_hold_it_to_laws_of_two_peaks():
    """The law of two points attains the bound for any law, and breaks this one."""
    for laws in ("any", "unimodal"):
        model = MinimaxProbabilityClassifier(laws=laws)
        result = audit(model, laws="two points", sizes=[60], budget=20)
        assert not any(row.is_refuted for row in result.rows)
        assert bool(result.rows) == (laws == "any")
