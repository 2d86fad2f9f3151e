"""Floors, singularity detection and shrinkage of covariance matrices."""

import numpy as np
import pytest
from sklearn.base import clone

from prudent import (
    ClassMoments,
    ImpreciseDiscriminantAnalysis,
    MinimaxProbabilityClassifier,
)
from prudent.core.linalg import (
    check_not_indefinite,
    check_positive_definite,
    estimate_covariances,
    fitted_covariance,
    floor_eigenvalues,
    invertible,
    rule_name,
    shrink,
)
from prudent.exceptions import DegenerateDataError, SingularCovarianceError


def spd(n_features, seed=0):
    A = np.random.default_rng(seed).normal(size=(n_features, n_features))
    return A @ A.T + 0.1 * np.eye(n_features)


def test_reference_floor():
    floored, n_raised = floor_eigenvalues(np.array([[1.0, 2.0], [2.0, 1.0]]), 0.1)
    np.testing.assert_allclose(floored, [[1.55, 1.45], [1.45, 1.55]])
    assert n_raised == 1


def test_floor_leaves_a_good_matrix_as_it_is():
    C = spd(5)
    floored, n_raised = floor_eigenvalues(C, "auto")
    np.testing.assert_array_equal(floored, C)
    assert n_raised == 0


def test_floor_lifts_every_eigenvalue_and_stays_symmetric():
    C = spd(6) - 2 * np.eye(6)
    floored, n_raised = floor_eigenvalues(C, 0.5)
    values = np.linalg.eigvalsh(C)
    np.testing.assert_allclose(
        np.linalg.eigvalsh(floored), np.maximum(values, 0.5), rtol=1e-12
    )
    assert n_raised == (values < 0.5).sum()
    np.testing.assert_array_equal(floored, floored.T)


def test_automatic_floor_is_relative_to_the_largest_eigenvalue():
    C = np.diag([1e6, 1.0, 0.0])
    floored, n_raised = floor_eigenvalues(C, "auto")
    assert n_raised == 1
    expected = 3 * np.finfo(float).eps * 1e6
    np.testing.assert_allclose(floored[2, 2], expected)


@pytest.mark.parametrize("minimum", [-1.0, np.nan])
def test_floor_refuses_a_negative_minimum(minimum):
    with pytest.raises(ValueError, match="`minimum` must be a number >= 0 or 'auto'"):
        floor_eigenvalues(np.eye(2), minimum)


def test_factors_reproduce_the_matrices():
    C = np.array([spd(4, seed) for seed in range(3)])
    L = check_positive_definite(C)
    np.testing.assert_allclose(L @ L.transpose(0, 2, 1), C, rtol=1e-13)
    assert (np.triu(L, 1) == 0).all()


def collinear(noise):
    """Covariance of 5 features, the fourth nearly the sum of the first two."""
    rng = np.random.default_rng(1)
    data = rng.normal(size=(500, 5))
    data[:, 3] = data[:, 0] + data[:, 1] + noise * data[:, 3]
    return np.cov(data.T)


def test_a_linear_combination_is_named():
    C = np.array([spd(5), collinear(1e-9)])
    with pytest.raises(SingularCovarianceError) as caught:
        check_positive_definite(C, classes=["good", "bad"])
    message = str(caught.value)
    assert "class 'bad'" in message
    assert "feature 3 is a linear combination" in message
    assert "ledoit_wolf" in message


def test_the_pivot_ratio_is_the_unexplained_variance():
    C = collinear(1e-3)
    L = check_positive_definite(C[None])[0]
    explained = C[3, :3] @ np.linalg.solve(C[:3, :3], C[:3, 3]) / C[3, 3]
    np.testing.assert_allclose(L[3, 3] ** 2 / C[3, 3], 1 - explained, rtol=1e-8)


def test_a_constant_feature_is_named():
    C = spd(3)
    C[1] = C[:, 1] = 0
    with pytest.raises(SingularCovarianceError, match=r"class 0 .* feature 1 is const"):
        check_positive_definite(C[None])


def test_a_negative_variance_is_named():
    with pytest.raises(SingularCovarianceError, match="feature 1 has the negative"):
        check_positive_definite(np.diag([1.0, -2.0])[None])


def test_fewer_rows_than_features_are_singular():
    C = np.cov(np.random.default_rng(2).normal(size=(5, 8)).T)
    with pytest.raises(SingularCovarianceError, match="feature 4 is a linear"):
        check_positive_definite(C[None])


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_entries_must_be_finite(value):
    C = np.eye(3)[None].copy()
    C[0, 2, 0] = C[0, 0, 2] = value
    with pytest.raises(ValueError, match="class 0 is not finite"):
        check_positive_definite(C)


def test_scales_do_not_make_a_matrix_singular():
    scale = np.array([1e-100, 1.0, 1e100])
    C = spd(3) * scale[:, None] * scale
    assert np.isfinite(check_positive_definite(C[None])).all()


def test_the_error_is_both_degenerate_data_and_linear_algebra():
    assert issubclass(SingularCovarianceError, DegenerateDataError)
    assert issubclass(SingularCovarianceError, np.linalg.LinAlgError)


def test_singular_but_not_indefinite_passes():
    B = np.random.default_rng(3).normal(size=(3, 6))
    check_not_indefinite((B.T @ B)[None], np.array(["a"]))
    check_not_indefinite(np.zeros((1, 3, 3)), np.array(["a"]))


def test_indefinite_with_positive_variances_is_flagged():
    with pytest.raises(SingularCovarianceError, match="class 'a' is indefinite"):
        check_not_indefinite(np.array([[[1.0, 2.0], [2.0, 1.0]]]), np.array(["a"]))


def test_shrink_takes_one_amount_per_class():
    C = np.array([spd(3, 0), spd(3, 1)])
    shrunk = shrink(C, np.array([0.0, 1.0]), "identity")
    np.testing.assert_allclose(shrunk[0], C[0])
    np.testing.assert_allclose(shrunk[1], np.trace(C[1]) / 3 * np.eye(3), atol=1e-15)


# --- the setting `covariance=` -----------------------------------------------------


def three_classes(weighted=False):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(60, 3)) @ rng.normal(size=(3, 3))
    y = np.arange(60) % 3
    weight = rng.integers(1, 4, 60).astype(float) if weighted else None
    moments = ClassMoments.from_arrays(X, y, weight, fourth=True)

    def rows_of(k):
        own = y == k
        centred = X[own] - moments.mean[k]
        return centred, None if weight is None else weight[own]

    return moments, rows_of


@pytest.mark.parametrize("rule", ["empirical", "oas", "ledoit_wolf"])
def test_named_rules_are_those_of_class_moments(rule):
    moments, _ = three_classes()
    found = estimate_covariances(
        rule, moments.weight, moments.scatter, fourth=moments.fourth
    )
    np.testing.assert_array_equal(found, moments.covariance(rule))


def test_an_amount_keeps_the_variances():
    moments, _ = three_classes()
    found = estimate_covariances(0.3, moments.weight, moments.scatter)
    np.testing.assert_array_equal(found, moments.covariance(shrinkage=0.3))


@pytest.mark.parametrize("weighted", [False, True])
def test_a_function_sees_rows_and_weights_are_repetitions(weighted):
    moments, rows_of = three_classes(weighted)
    found = estimate_covariances(
        lambda rows: np.cov(rows.T, ddof=0),
        moments.weight,
        moments.scatter,
        rows_of=rows_of,
    )
    np.testing.assert_allclose(found, moments.covariance(), rtol=1e-12)


def test_a_function_takes_whole_weights_only():
    rows, weight = np.eye(3), np.array([1.0, 0.5, 2.0])
    with pytest.raises(ValueError, match="takes no weights, only rows"):
        fitted_covariance(lambda rows: np.eye(3), rows, weight)


@pytest.mark.parametrize("answer", [np.eye(2), np.full((3, 3), np.nan)])
def test_a_function_must_give_a_covariance(answer):
    def strange(rows):
        return answer

    with pytest.raises(ValueError, match=r"covariance=strange must give .* \(3, 3\)"):
        fitted_covariance(strange, np.eye(3))


def test_rules_that_need_what_is_not_given():
    moments, _ = three_classes()
    with pytest.raises(ValueError, match="needs fourth moments or rows"):
        estimate_covariances("ledoit_wolf", moments.weight, moments.scatter)
    with pytest.raises(ValueError, match="needs the rows"):
        estimate_covariances(np.cov, moments.weight, moments.scatter)


def test_a_class_without_divisor_has_zeros():
    moments, _ = three_classes()
    divisor = np.array([19.0, 0.0, 19.0])
    found = estimate_covariances(
        "oas", moments.weight, moments.scatter, divisor=divisor
    )
    assert (found[1] == 0).all()
    assert (found[0] != 0).all()


def test_repairs_are_recorded():
    matrices = np.stack([spd(3), np.zeros((3, 3)), np.diag([1.0, 1.0, 1e-14])])
    found = invertible(matrices, "empirical", 1e-9, pooled=lambda: spd(3, 1))
    np.testing.assert_array_equal(found.matrices[0], matrices[0])
    np.testing.assert_array_equal(found.matrices[1], spd(3, 1))
    assert found.pooled.tolist() == [1]
    assert found.n_floored.tolist() == [0, 0, 1]
    assert np.linalg.eigvalsh(found.matrices[2])[0] == pytest.approx(1e-9)
    assert found.condition[2] == pytest.approx(1e14)
    assert (found.kind, found.floor) == ("empirical", 1e-9)
    with pytest.raises(DegenerateDataError, match="no feature varies"):
        invertible(matrices, "empirical", 1e-9)


def test_rules_have_names():
    assert rule_name("oas") == "oas"
    assert rule_name(0.25) == "shrinkage 0.25"
    assert rule_name(np.cov) == "cov"


@pytest.mark.parametrize("rule", ["oas", "ledoit_wolf"])
@pytest.mark.parametrize("covariance_type", ["full", "tied"])
@pytest.mark.parametrize("power", [340, 400, -340, -400])
def test_shrinkage_does_not_depend_on_the_units(rule, covariance_type, power):
    """Squares of the covariances, and fourth powers of the rows, leave the range."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 4)) @ rng.normal(size=(4, 4)), np.arange(40) % 2
    model = ImpreciseDiscriminantAnalysis(
        covariance=rule, covariance_type=covariance_type, scale=None
    )
    expected = clone(model).fit(X, y).covariances_
    found = model.fit(X * 2.0**power, y).covariances_
    np.testing.assert_allclose(found / 2.0**power / 2.0**power, expected, rtol=1e-12)
    if rule == "oas":
        plane = MinimaxProbabilityClassifier(covariance=rule)
        expected = clone(plane).fit(X, y).covariances_
        found = plane.fit(X * 2.0**power, y).covariances_
        found = found / 2.0**power / 2.0**power
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("power", "words"),
    [(340, r"beyond 1e\+75, whose powers overflow"), (-340, "fourth powers underflow")],
)
def test_fourth_powers_out_of_range_are_refused(power, words):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 4)) * 2.0**power, np.arange(40) % 2
    model = MinimaxProbabilityClassifier(covariance="ledoit_wolf")
    with pytest.raises(ValueError, match=words):
        model.fit(X, y)
