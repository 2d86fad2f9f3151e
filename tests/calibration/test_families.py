import numpy as np
import pytest

from calibration.rows import block_of, objective, overlapping_clouds
from prudent.calibration import (
    CategoricalFamily,
    DiagonalFamily,
    FullFamily,
    MixedFamily,
    PriorStrengths,
    TiedDiagonalFamily,
    TiedFamily,
)
from prudent.calibration.categorical import MixedRows

GAUSSIAN = (FullFamily, DiagonalFamily, TiedFamily, TiedDiagonalFamily)


def problem_of(family_class, X, y, strengths=None, weight=None):
    weight = np.ones(len(y)) if weight is None else weight
    family = family_class.from_rows(X, weight, strengths or PriorStrengths())
    return objective(family, X, y, weight)


def categorical_problem(codes, y, strengths=None):
    family = CategoricalFamily(codes.max(axis=0) + 1, strengths or PriorStrengths())
    return objective(family, codes, y)


@pytest.mark.parametrize("family_class", GAUSSIAN)
def test_rows_are_standardised_with_a_column_of_ones(family_class):
    X, _ = overlapping_clouds()
    family = family_class.from_rows(X, np.ones(len(X)), PriorStrengths())
    Z = family.prepare(X)
    np.testing.assert_array_equal(Z[:, 0], 1)
    np.testing.assert_allclose(Z[:, 1:].mean(axis=0), 0, atol=1e-14)
    np.testing.assert_allclose(Z[:, 1:].std(axis=0), 1, rtol=1e-14)


@pytest.mark.parametrize("family_class", GAUSSIAN)
def test_centre_and_scale_are_weighted(family_class):
    X, _ = overlapping_clouds(30)
    weight = np.arange(30.0) % 4 + 1
    family = family_class.from_rows(X, weight, PriorStrengths())
    repeated = family_class.from_rows(
        np.repeat(X, weight.astype(int), axis=0),
        np.ones(int(weight.sum())),
        PriorStrengths(),
    )
    np.testing.assert_allclose(family.centre, repeated.centre, rtol=1e-13)
    np.testing.assert_allclose(family.scale, repeated.scale, rtol=1e-13)


def test_full_parameters_are_class_moments():
    X, y = overlapping_clouds()
    problem = problem_of(FullFamily, X, y)
    learned = problem.family.learned(problem.family.parameters(problem.closed_form()))
    for k in range(3):
        np.testing.assert_allclose(learned["means_"][k], X[y == k].mean(axis=0))
        np.testing.assert_allclose(
            learned["covariances_"][k], np.cov(X[y == k].T, ddof=0)
        )


@pytest.mark.parametrize(
    ("family_class", "name"),
    [
        (FullFamily, "covariances_"),
        (DiagonalFamily, "variances_"),
        (TiedFamily, "covariances_"),
        (TiedDiagonalFamily, "variances_"),
    ],
)
def test_shrinkage_is_a_weighted_mean_with_the_overall_moments(family_class, name):
    X, y = overlapping_clouds()
    strengths = PriorStrengths(classes=6.0, means=4.0, covariances=5.0)
    plain, shrunk = (problem_of(family_class, X, y, s) for s in (None, strengths))
    before = plain.family.learned(plain.family.parameters(plain.closed_form()))
    after = shrunk.family.learned(shrunk.family.parameters(shrunk.closed_form()))
    n_k, n = 40.0, 120.0
    np.testing.assert_allclose(after["priors_"], (n_k + 2) / (n + 6))
    np.testing.assert_allclose(
        after["means_"], (n_k * before["means_"] + 4 * X.mean(axis=0)) / (n_k + 4)
    )
    overall = X.var(axis=0) if name == "variances_" else np.diag(X.var(axis=0))
    rows = n if family_class.tied else n_k
    np.testing.assert_allclose(
        after[name], (rows * before[name] + 5 * overall) / (rows + 5), atol=1e-12
    )


def test_automatic_covariance_strength_grows_with_the_dimension():
    X, y = overlapping_clouds(d=4)
    automatic = problem_of(FullFamily, X, y, PriorStrengths(covariances=None))
    explicit = problem_of(FullFamily, X, y, PriorStrengths(covariances=1.4))
    start = explicit.closed_form()
    np.testing.assert_array_equal(
        automatic.family.parameters(start).covariances,
        explicit.family.parameters(start).covariances,
    )


@pytest.mark.parametrize("family_class", GAUSSIAN)
def test_statistics_of_parts_add_up(family_class):
    X, _ = overlapping_clouds()
    family = family_class.from_rows(X, np.ones(len(X)), PriorStrengths())
    Z, Q = family.prepare(X), np.random.default_rng(0).normal(size=(len(X), 3))
    whole = family.statistics(Z, Q)
    parts = zip(
        family.statistics(Z[:50], Q[:50]),
        family.statistics(Z[50:], Q[50:]),
        strict=True,
    )
    for total, (first, second) in zip(whole, parts, strict=True):
        np.testing.assert_allclose(total, first + second, atol=1e-12)


@pytest.mark.parametrize("family_class", GAUSSIAN)
def test_row_constant_completes_the_log_joint(family_class):
    """Differences of the complete log joint between rows are those of the density."""
    X, y = overlapping_clouds()
    problem = problem_of(family_class, X, y)
    parameters = problem.family.parameters(problem.closed_form())
    log_joint = problem.family.log_joint(block_of(problem).X, parameters)
    if hasattr(problem.family, "row_constant"):
        log_joint = (
            log_joint
            + problem.family.row_constant(block_of(problem).X, parameters)[:, None]
        )
    Z = block_of(problem).X[:, 1:]
    covariance = parameters.covariances
    if family_class in (FullFamily, DiagonalFamily):
        covariance = covariance[1]
    if covariance.ndim == 1:
        covariance = np.diag(covariance)
    gap = Z - parameters.means[1]
    expected = (
        parameters.log_priors[1]
        - 0.5 * np.linalg.slogdet(covariance)[1]
        - 0.5 * np.einsum("ij,ij->i", gap @ np.linalg.inv(covariance), gap)
    )
    np.testing.assert_allclose(log_joint[:, 1], expected, rtol=1e-10)


@pytest.mark.parametrize("family_class", GAUSSIAN)
def test_an_emptied_class_is_invalid(family_class):
    X, y = overlapping_clouds()
    problem = problem_of(family_class, X, y)
    statistics = problem.closed_form()
    statistics[0][1] = 0.0
    assert not problem.family.is_valid(statistics)[1]


def test_full_names_the_class_outside_the_cone():
    X, y = overlapping_clouds()
    problem = problem_of(FullFamily, X, y)
    s0, s1, s2 = (block.copy() for block in problem.closed_form())
    s2[2] -= 0.999 * s0[2] * np.eye(3)
    np.testing.assert_array_equal(
        problem.family.is_valid([s0, s1, s2]), [True, True, False]
    )


def test_an_indefinite_or_undefined_class_spoils_no_other():
    X, y = overlapping_clouds()
    problem = problem_of(FullFamily, X, y)
    s0, s1, s2 = (block.copy() for block in problem.closed_form())
    s2[1, 0, 1] = s2[1, 1, 0] = 10 * s0[1]  # the variances stay positive
    assert problem.family.is_valid([s0, s1, s2]).tolist() == [True, False, True]
    s2[2, 0, 0] = np.nan
    assert problem.family.is_valid([s0, s1, s2]).tolist() == [True, False, False]


def test_categorical_probabilities_are_shrunken_shares():
    codes = np.array([[0, 0], [0, 1], [1, 0], [1, 1], [1, 2]])
    problem = categorical_problem(
        codes, np.array([0, 0, 0, 1, 1]), PriorStrengths(levels=(1.0, 6.0))
    )
    learned = problem.family.learned(problem.family.parameters(problem.closed_form()))
    first, second = learned["level_probabilities_"]
    np.testing.assert_allclose(first, [[2.5 / 4, 1.5 / 4], [0.5 / 3, 2.5 / 3]])
    np.testing.assert_allclose(
        second, np.array([[4, 3, 2], [2, 3, 3]]) / np.array([[9], [8]])
    )


def test_impossible_rows_get_the_class_probabilities():
    codes = np.array([[0, 0], [0, 0], [1, 1]])
    problem = categorical_problem(codes, np.array([0, 0, 1]))
    family = problem.family
    rows = family.prepare(np.array([[0, 1]]))  # impossible in both classes
    scores = family.log_joint(rows, family.parameters(problem.closed_form()))
    np.testing.assert_allclose(np.exp(scores), [[2 / 3, 1 / 3]])


def test_unseen_level_has_the_probability_of_a_zero_count():
    codes = np.array([[0], [1], [1], [0], [0]])
    problem = categorical_problem(
        codes, np.array([0, 0, 0, 1, 1]), PriorStrengths(levels=2.0)
    )
    family = problem.family
    scores = family.log_joint(
        family.prepare(np.array([[-1]])), family.parameters(problem.closed_form())
    )
    np.testing.assert_allclose(np.exp(scores), [[0.6 * 1 / 5, 0.4 * 1 / 4]])


def test_unseen_level_is_skipped_without_pseudo_counts():
    codes = np.array([[0], [1], [1], [0], [0]])
    problem = categorical_problem(codes, np.array([0, 0, 0, 1, 1]))
    family = problem.family
    scores = family.log_joint(
        family.prepare(np.array([[-1]])), family.parameters(problem.closed_form())
    )
    np.testing.assert_allclose(np.exp(scores), [[0.6, 0.4]])


def test_freezing_keeps_single_counts():
    family = CategoricalFamily(np.array([2]), PriorStrengths())
    old = [np.array([2.0, 2.0]), np.array([[1.0, 1.0], [0.5, 1.5]])]
    new = [np.array([2.1, 1.9]), np.array([[1.2, 0.9], [-0.1, 2.0]])]
    s0, s1 = family.freeze(old, new)
    np.testing.assert_array_equal(s0, new[0])
    np.testing.assert_array_equal(s1, [[1.2, 0.9], [0.5, 2.0]])


def test_mixed_log_joint_counts_the_class_probability_once():
    X, y = overlapping_clouds()
    codes = np.random.default_rng(1).integers(2, size=(len(y), 2))
    rows = MixedRows(X, codes)
    mixed = MixedFamily.from_rows(
        rows, np.ones(len(y)), np.array([2, 2]), PriorStrengths()
    )
    problem = objective(mixed, rows, y)
    parameters = mixed.parameters(problem.closed_form())
    numbers, levels = block_of(problem).X.numbers, block_of(problem).X.levels
    expected = (
        mixed.gaussian.log_joint(numbers, parameters[0])
        + mixed.categorical.log_joint(levels, parameters[1])
        - parameters[0].log_priors
    )
    np.testing.assert_allclose(
        mixed.log_joint(block_of(problem).X, parameters), expected, rtol=1e-12
    )


@pytest.mark.parametrize("family_class", GAUSSIAN)
def test_gradient_is_that_of_the_conditional_log_likelihood(family_class):
    """d CLL = <G, d eta> for the natural parameters eta of any s + t v."""
    X, y = overlapping_clouds(60)
    problem = problem_of(family_class, X, y)
    start = problem.closed_form()
    evaluation = problem.evaluate(start)
    direction = evaluation.direction

    def natural(t):
        moved = [s + t * g for s, g in zip(start, direction, strict=True)]
        parameters = problem.family.parameters(moved)
        if family_class is FullFamily:
            precision = np.linalg.inv(parameters.covariances)
            linear = np.einsum("kij,kj->ki", precision, parameters.means)
            constant = (
                parameters.log_priors
                + 0.5 * np.linalg.slogdet(precision)[1]
                - 0.5 * (linear * parameters.means).sum(axis=1)
            )
            eta = [constant, linear, -0.5 * precision]
        elif family_class is DiagonalFamily:
            eta = [
                parameters.scores[:, 0],
                parameters.scores[:, 1:],
                -0.5 / parameters.covariances,
            ]
        else:
            eta = [parameters.scores[:, 0], parameters.scores[:, 1:]]
        return eta, -problem.evaluate(moved).losses.mean.log_loss * len(y)

    h = 1e-5
    (plus, cll_plus), (minus, cll_minus) = natural(h), natural(-h)
    predicted = sum(
        (g * (a - b)).sum() for g, a, b in zip(direction, plus, minus, strict=True)
    )
    assert (cll_plus - cll_minus) == pytest.approx(predicted, rel=1e-6)


def test_overflowing_column_is_named():
    X, _ = overlapping_clouds()
    X[3, 1] = 1e200
    with pytest.raises(ValueError, match=r"column 1 of X holds values beyond 1e\+150"):
        FullFamily.from_rows(X, np.ones(len(X)), PriorStrengths())
