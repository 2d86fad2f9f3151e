"""Worst-case errors of any plane, promises for others' classifiers, touching points."""

import math
import warnings

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import binomtest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from prudent import ClassMoments, MinimaxProbabilityClassifier
from prudent.minimax import best_intercept, guarantees_of, solve, worst_case_error


def finite_law(rng, n_features, n_atoms):
    """Atoms and masses of two classes, and their exact moments."""
    atoms = rng.normal(size=(2, n_atoms, n_features)) * 10.0 ** rng.uniform(-3, 3)
    atoms += rng.normal(size=(2, 1, n_features)) * rng.choice([0.1, 1, 10])
    masses = rng.dirichlet(np.full(n_atoms, 0.5), size=2)
    means = np.einsum("ka,kad->kd", masses, atoms)
    gaps = atoms - means[:, None]
    covariances = np.einsum("ka,kad,kae->kde", masses, gaps, gaps)
    return atoms, masses, ClassMoments.from_covariances(means, covariances, [9, 9])


def test_no_finite_law_errs_more_often():
    for seed in range(2000):
        rng = np.random.default_rng(seed)
        n_features, n_atoms = int(rng.integers(1, 5)), int(rng.choice([2, 3, 12]))
        atoms, masses, moments = finite_law(rng, n_features, n_atoms)
        w = rng.normal(size=n_features)
        # Through an atom half of the time: ties count on either side.
        through = atoms.reshape(-1, n_features)[rng.integers(2 * n_atoms)]
        b = -(through @ w) if seed % 2 else -float(moments.mean.mean(axis=0) @ w)
        errors = worst_case_error(w, b, moments)
        scores = atoms @ w + b
        assert (masses[0] @ (scores[0] >= 0)) <= errors[0] + 1e-12, seed
        assert (masses[1] @ (scores[1] <= 0)) <= errors[1] + 1e-12, seed


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_planes_of_less_precision_round_in_it(dtype):
    """Far from the origin the sums of a decision value round to the wrong side."""
    below_one = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        size = 10.0 ** -rng.integers(0, 5) / np.finfo(dtype).eps
        X = 0.1 * rng.normal(size=(2, 40, 8)) + size * rng.normal(size=8)
        X[1, :, 0] += 4
        X = X.astype(dtype)
        rows = X.astype(np.float64)
        means = rows.mean(axis=1)
        gaps = rows - means[:, None]
        covariances = np.einsum("kmi,kmj->kij", gaps, gaps) / 40
        w = np.r_[3, rng.normal(size=7)].astype(dtype)
        b = dtype(-means.mean(axis=0) @ w.astype(np.float64))
        moments = ClassMoments.from_covariances(means, covariances, [9, 9])
        errors = worst_case_error(w, b, moments)
        scores = X @ w + b
        assert (scores[0] >= 0).mean() <= errors[0] + 1e-12, seed
        assert (scores[1] <= 0).mean() <= errors[1] + 1e-12, seed
        below_one += errors.max() < 1
        exact = worst_case_error(w.astype(np.float64), float(b), moments)
        assert (exact <= errors).all()
    assert below_one


@pytest.mark.parametrize("seed", range(20))
def test_some_law_attains_it(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 6))
    means = rng.normal(size=(2, n))
    roots = rng.normal(size=(2, n, n + 2))
    covariances = roots @ roots.transpose(0, 2, 1) / n
    w = np.linalg.solve(covariances.sum(axis=0), means[1] - means[0])
    b = -float(w @ (0.3 * means[0] + 0.7 * means[1]))
    moments = ClassMoments.from_covariances(means, covariances, [9, 9])
    errors = worst_case_error(w, b, moments)
    for k, side in enumerate((-1.0, 1.0)):
        m, S = means[k], covariances[k]
        deviation = math.sqrt(w @ S @ w)
        v, kappa = S @ w / deviation, side * (w @ m + b) / deviation
        assert kappa > 0
        # Two points along v, and around each of them a cross within the plane.
        values, vectors = np.linalg.eigh(S - np.outer(v, v))
        cross = math.sqrt(n) * vectors * np.sqrt(np.maximum(values, 0.0))
        cross -= np.outer(w, w @ cross) / (w @ w)
        steps = np.concatenate([cross.T, -cross.T])
        beyond = 1 / (1 + kappa**2)
        atoms = np.concatenate(
            [m - side * kappa * v + steps, m + side / kappa * v + steps]
        )
        masses = np.repeat([beyond, 1 - beyond], 2 * n) / (2 * n)
        np.testing.assert_allclose(masses @ atoms, m, atol=1e-10)
        gaps = atoms - masses @ atoms
        np.testing.assert_allclose((gaps.T * masses) @ gaps, S, atol=1e-9)
        missed = masses @ (side * (atoms @ w + b) <= 1e-9)
        assert missed == pytest.approx(errors[k], abs=1e-6)


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"mean_radius": [0.1, 0.2]},
        {"covariance_radius": 0.1, "covariance_factor": [1.1, 1.3]},
    ],
)
def test_it_is_the_error_of_our_own_plane(params):
    X, y = load_breast_cancer(return_X_y=True)
    model = MinimaxProbabilityClassifier(**params).fit(X[:, :6], y)
    errors = worst_case_error(model.coef_, model.intercept_, model.moments_, **params)
    np.testing.assert_allclose(errors, model.class_worst_case_error_, rtol=1e-12)


def test_no_other_plane_has_a_lower_worst_error():
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    moments = ClassMoments.from_arrays(X, y)
    own = MinimaxProbabilityClassifier().fit(X, y).class_worst_case_error_.max()
    for other in (LinearDiscriminantAnalysis(), LogisticRegression(), LinearSVC()):
        promises = guarantees_of(other.fit(X, y), moments)
        bounds = np.array([promise.bound for promise in promises])
        np.testing.assert_allclose(
            bounds, worst_case_error(other.coef_, other.intercept_, moments), rtol=1e-9
        )
        assert bounds.max() > own
        for k, promise in enumerate(promises):
            assert promise.scope == k
            assert (other.predict(X[y == k]) != k).mean() <= promise.bound
            assert "plug-in" in str(promise)


def test_promises_of_a_linear_classifier_of_three_classes():
    X, y = load_iris(return_X_y=True)
    moments = ClassMoments.from_arrays(X, y)
    for other in (LinearDiscriminantAnalysis(), RidgeClassifier()):
        promises = guarantees_of(other.fit(X, y), moments)
        for k, promise in enumerate(promises):
            assert (other.predict(X[y == k]) != k).mean() <= promise.bound <= 1


def test_a_class_of_one_row_is_promised_nothing():
    X, y = load_iris(return_X_y=True)
    X, y = X[:51], y[:51]
    model = LogisticRegression().fit(X, y)
    moments = ClassMoments.from_arrays(X, y)
    assert [p.scope for p in guarantees_of(model, moments)] == [0]
    X, y = load_iris(return_X_y=True)
    X, y = X[:101], y[:101]
    model = LinearDiscriminantAnalysis().fit(X, y)
    moments = ClassMoments.from_arrays(X, y)
    assert [p.scope for p in guarantees_of(model, moments)] == [0, 1]


def test_only_moments_known_to_be_given_promise_of_a_class_that_does_not_vary():
    model = MinimaxProbabilityClassifier.from_moments(
        [[0.0], [6.0]], [[[0.0]], [[1.0]]], [50, 50]
    )
    assert [p.scope for p in model.guarantees_] == [0, 1]
    assert [p.scope for p in guarantees_of(model, model.moments_)] == [1]


def test_a_class_on_a_slanted_plane_does_not_vary_by_rounding():
    """Parts that add up to 100: along (1, 1, 1) only rounding is left of the class."""
    rng, normal = np.random.default_rng(0), np.ones(3)
    model = LogisticRegression()
    for _ in range(20):
        parts = np.round(100 * rng.dirichlet(np.ones(3), 20), 1)
        parts[:, 2] = np.round(100 - parts[:, 0] - parts[:, 1], 1)
        X = np.vstack([rng.normal(size=(20, 3)), parts])
        y = np.repeat([0, 1], 20)
        model.fit(X, y)
        model.coef_[0], model.intercept_[0] = normal, -50.0
        promises = guarantees_of(model, ClassMoments.from_arrays(X, y))
        assert [p.scope for p in promises] == [0]


@pytest.mark.filterwarnings("ignore:.*so nearly singular")
def test_a_fitted_class_on_a_slanted_line_is_promised_nothing():
    rng = np.random.default_rng(0)
    for _ in range(20):
        share = rng.uniform(size=12)
        line = np.column_stack([share, 0.7 - share])
        spread = rng.normal(size=(40, 2))
        spread = np.vstack([spread, spread[:, ::-1]]) + 3
        X, y = np.vstack([spread, line]), np.repeat([0, 1], [80, 12])
        model = MinimaxProbabilityClassifier().fit(X, y)
        assert [p.scope for p in model.guarantees_] == [0]


def test_a_plane_that_always_answers_the_same():
    moments = ClassMoments.from_covariances([[0.0], [1.0]], [[[1.0]]] * 2, [9, 9])
    assert worst_case_error([0.0], 1.0, moments).tolist() == [1, 0]
    assert worst_case_error([0.0], -1.0, moments).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("arguments", "params", "message"),
    [
        (([1.0, 2.0], 0.0), {}, r"shapes \(1, 1\)"),
        (([np.inf], 0.0), {}, "finite"),
        (([1.0], 0.0), {"mean_radius": -1}, "`mean_radius`"),
        (([1.0], 0.0), {"covariance_factor": [1, 0.5]}, "`covariance_factor`"),
        (([1.0], 0.0), {"covariance_radius": [1, 2, 3]}, "`covariance_radius`"),
    ],
)
def test_wrong_planes_are_refused(arguments, params, message):
    moments = ClassMoments.from_covariances([[0.0], [1.0]], [[[1.0]]] * 2, [9, 9])
    with pytest.raises(ValueError, match=message):
        worst_case_error(*arguments, moments, **params)


def test_what_is_no_linear_classifier_of_these_classes_is_refused():
    X, y = load_iris(return_X_y=True)
    moments = ClassMoments.from_arrays(X, y)
    with pytest.raises(TypeError, match="GaussianNB has no `coef_`"):
        guarantees_of(GaussianNB().fit(X, y), moments)
    fitted = LinearDiscriminantAnalysis().fit(X, y)
    with pytest.raises(ValueError, match="knows the classes"):
        guarantees_of(fitted, moments.select([0, 1]))
    with pytest.raises(ValueError, match="must hold 2 classes, got 3"):
        worst_case_error([1, 1, 1, 1], 0.0, moments)
    diagonal = ClassMoments.from_arrays(X, y, structure="diagonal")
    with pytest.raises(ValueError, match="structure='full'"):
        guarantees_of(fitted, diagonal)


@pytest.mark.parametrize(
    "voting", [SVC(kernel="linear"), MinimaxProbabilityClassifier()]
)
def test_scores_of_pairs_are_not_taken_for_scores_of_classes(voting):
    """Three classes have three pairs: the shapes agree, the rule is another."""
    X, y = load_iris(return_X_y=True)
    moments = ClassMoments.from_arrays(X, y)
    assert voting.fit(X, y).coef_.shape == (3, 4)
    with pytest.raises(ValueError, match="is not known to predict the class of the la"):
        guarantees_of(voting, moments)
    two = y > 0  # one pair: one score
    own = ClassMoments.from_arrays(X[two], y[two])
    assert len(guarantees_of(voting.fit(X[two], y[two]), own)) == 2


@pytest.mark.parametrize("n", [1, 3, 40, 150])
def test_the_ellipsoids_touch_at_the_touching_point(n):
    rng = np.random.default_rng(n)
    roots = rng.normal(size=(2, n, n + 3))
    Sx, Sy = roots @ roots.transpose(0, 2, 1) / n
    d = rng.normal(size=n)
    for params in (
        {},
        {"mean_radius": (0.01, 0.02), "covariance_factor": (1.1, 1.2)},
    ):
        plane = solve(d, Sx, Sy, **params)
        z = plane.touching_point
        lengths = [
            math.sqrt(gap @ np.linalg.solve(S, gap))
            for gap, S in ((z - d, Sx), (z, Sy))
        ]
        radii = params.get("mean_radius", (0, 0))
        factors = params.get("covariance_factor", (1, 1))
        for length, nu, gamma in zip(lengths, radii, factors, strict=True):
            wanted = math.sqrt(gamma) * (plane.kappa + nu)
            assert length == pytest.approx(wanted, rel=1e-6)
        assert plane.normal @ z == pytest.approx(1 - plane.distance_pos, rel=1e-6)


def test_the_touching_point_of_constant_classes():
    np.testing.assert_allclose(
        solve([2, 0], np.zeros((2, 2)), np.zeros((2, 2))).touching_point, [1, 0]
    )
    one_side = solve([2.0, 0.0], np.eye(2), np.zeros((2, 2)))
    np.testing.assert_allclose(one_side.touching_point, [0, 0], atol=1e-8)


def test_kappa_is_the_size_of_the_largest_ellipsoids_that_a_plane_separates():
    """Section 2.5: all points of both, and no plane for larger ones."""
    rng = np.random.default_rng(0)
    means, roots = rng.normal(size=(2, 3)), rng.normal(size=(2, 3, 5))
    covariances = roots @ roots.transpose(0, 2, 1)
    model = MinimaxProbabilityClassifier.from_moments(means, covariances, [9, 9])
    directions = rng.normal(size=(10_000, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    surfaces = directions @ np.linalg.cholesky(covariances).transpose(0, 2, 1)
    for size, separated in ((1 - 1e-9, True), (1.02, False)):
        points = means[:, None] + size * model.kappa_ * surfaces
        right = [(model.predict(points[k]) == k).all() for k in (0, 1)]
        assert right == [separated, separated]
    touching = solve(means[1] - means[0], *covariances[::-1]).touching_point
    for mean, S in (
        (means[0] - means[0], covariances[0]),
        (means[1] - means[0], covariances[1]),
    ):
        gap = touching - mean
        distance = math.sqrt(gap @ np.linalg.solve(S, gap))
        assert distance == pytest.approx(model.kappa_, rel=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_best_intercept_of_fishers_direction_meets_a_search_and_bound_17(seed):
    rng = np.random.default_rng(seed)
    d = 4
    roots = rng.normal(size=(2, d, d))
    covariances = roots @ roots.transpose(0, 2, 1)
    means = np.array([np.zeros(d), rng.normal(size=d)])
    moments = ClassMoments.from_covariances(means, covariances, [100, 100])
    w = np.linalg.solve(covariances.sum(axis=0), means[1] - means[0])
    b, alpha = best_intercept(w, moments)

    def larger_error(offset):  # one-sided Chebyshev, each class of its own
        ahead = np.array([-1, 1]) * (means @ w + offset)
        k = np.maximum(ahead, 0) / np.sqrt(np.einsum("i,kij,j->k", w, covariances, w))
        return (1 / (1 + k**2)).max()

    low, high = sorted(-means @ w)
    found = minimize_scalar(
        larger_error, bounds=(low, high), method="bounded", options={"xatol": 1e-12}
    )
    assert 1 - alpha == pytest.approx(found.fun, abs=1e-7)
    assert b == pytest.approx(found.x, abs=1e-5)
    fisher = w @ (means[1] - means[0]) / np.sqrt(w @ covariances.sum(axis=0) @ w)
    assert 1 - alpha <= 1 / (1 + 0.5 * fisher**2) + 1e-9
    assert alpha <= solve(means[1] - means[0], *covariances[::-1]).alpha + 1e-12


@pytest.mark.parametrize(
    ("means", "variances"),
    [((0, 6), (0, 1)), ((0, 6), (1, 0)), ((1000, 1006), (1e-30, 1)), ((0, 6), (0, 0))],
)
def test_best_intercept_stands_beside_a_class_that_does_not_vary(means, variances):
    """A plane through it would lose all of its rows, ties included."""
    moments = ClassMoments.from_covariances(
        [[m] for m in means], [[[v]] for v in variances], [50, 50]
    )
    b, alpha = best_intercept([1.0], moments)
    spread = max(variances)
    assert alpha == pytest.approx(36 / (36 + spread), abs=1e-8)
    assert worst_case_error([1.0], b, moments).max() == pytest.approx(1 - alpha)


def test_best_intercept_with_radii_makes_both_errors_equal():
    moments = ClassMoments.from_covariances(
        [[0.0, 0.0], [6.0, 1.0]], [np.eye(2), 4 * np.eye(2)], [50, 50]
    )
    radii = {
        "mean_radius": [0.2, 0.4],
        "covariance_radius": [0.1, 0.3],
        "covariance_factor": [1.0, 1.5],
    }
    b, alpha = best_intercept([1.0, 0.5], moments, **radii)
    errors = worst_case_error([1.0, 0.5], b, moments, **radii)
    assert errors == pytest.approx([1 - alpha] * 2, rel=1e-9)
    for other in (b - 0.01, b + 0.01):
        assert worst_case_error([1.0, 0.5], other, moments, **radii).max() > 1 - alpha


def test_unknown_laws_are_refused():
    moments = ClassMoments.from_covariances([[0.0], [1.0]], [[[1.0]]] * 2, [50, 50])
    with pytest.raises(ValueError, match="'any' or 'unimodal', got 'Unimodal'"):
        best_intercept([1.0], moments, laws="Unimodal")


def test_best_intercept_promises_nothing_beyond_the_radii_and_needs_a_direction():
    moments = ClassMoments.from_covariances([[0.0], [1.0]], [[[1.0]]] * 2, [50, 50])
    assert best_intercept([1.0], moments, mean_radius=2.0)[1] == 0
    for normal in ([-1.0], [0.0]):
        with pytest.raises(ValueError, match="must point to class 1"):
            best_intercept(normal, moments)


def test_no_rows_are_drawn_of_classes_that_do_not_vary_along_the_normal():
    """Given covariances of rank one in three features, whose rounding has any sign."""
    rng = np.random.default_rng(2)
    refusals = []
    for _ in range(60):
        roots = rng.normal(size=(2, 3, 1))
        means = rng.normal(size=(2, 3))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = MinimaxProbabilityClassifier.from_moments(
                means, roots @ roots.transpose(0, 2, 1), [50, 50]
            )
        for k in (0, 1):
            try:
                rows = model.least_favourable(k, 2000, random_state=0)
            except ValueError as error:
                refusals.append(str(error))
            else:
                bound = model.class_worst_case_error_[k]
                wrong = int((model.predict(rows) != k).sum())
                assert binomtest(wrong, 2000, bound).pvalue > 1e-6
    assert refusals
    reason = "no rows are drawn where the bound is 0 or 1"
    assert all(reason in refusal for refusal in refusals)
