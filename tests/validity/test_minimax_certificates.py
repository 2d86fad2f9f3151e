"""No promise of the minimax family is false, on laws and rows made to break it."""

import warnings

import numpy as np
import pytest
from experiments.benchmark_data import folder
from scipy.stats import binom
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

from prudent import ClassMoments, MinimaxOutlierDetector, MinimaxProbabilityClassifier
from prudent.exceptions import DegenerateDataError, PrudentWarning

pytestmark = pytest.mark.filterwarnings("ignore")
LEVEL = 1e-3


def finite_law(seed):
    """Atoms of K classes on subspaces, over scales from 1e-8 to 1e8, and their moments.

    Returns the atoms (K, a, d), their masses (K, a), means and covariances.
    """
    rng = np.random.default_rng(seed)
    n_classes, n_features = int(rng.integers(2, 5)), int(rng.integers(1, 6))
    n_atoms, rank = int(rng.choice([2, 3, 4, 12])), int(rng.integers(1, n_features + 1))
    atoms = rng.normal(size=(n_classes, n_atoms, rank))
    atoms += rng.normal(size=(n_classes, 1, rank)) * rng.choice([1, 3, 10])
    directions = rng.normal(size=(rng.choice([1, n_classes]), rank, n_features))
    atoms = atoms @ directions
    atoms += rng.normal(size=(n_classes, 1, n_features)) * rng.choice([0, 1, 10])
    columns = n_features if rng.random() < 0.5 else 1
    atoms *= 10.0 ** rng.uniform(-8, 8, size=columns)
    masses = rng.dirichlet(np.full(n_atoms, 0.5), size=n_classes)
    means = np.einsum("ka,kad->kd", masses, atoms)
    gaps = atoms - means[:, None]
    return atoms, masses, means, np.einsum("ka,kad,kae->kde", masses, gaps, gaps)


def settings(seed, n_classes):
    costs = 1.0 - np.eye(n_classes)
    costs[0] *= 2
    return [
        {},
        {"objective": "mean"},
        {"objective": "cost", "costs": costs},
        {"covariance_factor": 1.2},
        {"mean_radius": 0.05},
    ][seed % 5]


def check_laws(seeds):
    for seed in seeds:
        atoms, masses, means, covariances = finite_law(seed)
        n_classes = len(means)
        model = MinimaxProbabilityClassifier.from_moments(
            means, covariances, [100] * n_classes, **settings(seed, n_classes)
        )
        assert len(model.guarantees_) == n_classes
        for k, promise in enumerate(model.guarantees_):
            wrong = model.predict(atoms[k]) != k
            alone = [model.predict(atom[None])[0] != k for atom in atoms[k]]
            for missed in (wrong, np.array(alone)):
                assert masses[k][missed].sum() <= promise.bound + 1e-12, seed


def test_finite_laws_with_exact_moments():
    check_laws(range(150))


@pytest.mark.slow
def test_two_thousand_finite_laws_with_exact_moments():
    check_laws(range(150, 2150))


def test_exact_bound_of_finite_laws():
    for seed in range(60):
        atoms, masses, means, covariances = finite_law(seed)
        if len(means) == 2:
            continue
        model, union = (
            MinimaxProbabilityClassifier.from_moments(
                means, covariances, [9] * len(means), bound=bound
            )
            for bound in ("exact", "union")
        )
        for k, promise in enumerate(model.guarantees_):
            wrong = model.predict(atoms[k]) != k
            assert masses[k][wrong].sum() <= promise.bound + 1e-9, seed
            assert promise.bound <= union.guarantees_[k].bound


def check_own_rows(X, y, seed):
    """Fit 2..60 rows, with at least two a class, and hold them to the promise."""
    rng = np.random.default_rng(seed)
    labels, counts = np.unique(y, return_counts=True)
    labels = labels[counts >= 2]
    each = max(2, int(rng.integers(2, 61)) // len(labels))
    chosen = [rng.permutation(np.flatnonzero(y == c))[:each] for c in labels]
    X, y = X[np.concatenate(chosen)], y[np.concatenate(chosen)]
    if seed % 3 == 2:
        X = X * 10.0 ** rng.uniform(-8, 8, size=X.shape[1])
    try:
        model = MinimaxProbabilityClassifier().fit(X, y)
    except DegenerateDataError:
        means = np.array([X[y == c].mean(axis=0) for c in np.unique(y)])
        spread = np.ptp(X, axis=0) + (np.ptp(X, axis=0) == 0)
        gaps = np.abs((means[:, None] - means) / spread).max(axis=2)
        assert (gaps + np.eye(len(means))).min() < 1e-12  # two means do coincide
        return
    for promise in model.guarantees_:
        own = y == promise.scope
        assert (model.predict(X[own]) != promise.scope).mean() <= promise.bound


@pytest.mark.parametrize("load", [load_breast_cancer, load_iris, load_wine])
def test_promise_is_not_below_the_error_on_its_own_rows(load):
    X, y = load(return_X_y=True)
    for seed in range(15):
        check_own_rows(X, y, seed)


@pytest.mark.slow
def test_promise_is_not_below_the_error_on_its_own_rows_of_any_table(benchmark_data):
    tables = [load_breast_cancer, load_iris, load_wine, load_digits]
    data = [load(return_X_y=True) for load in tables]
    for path in sorted(folder().glob("*.csv*")):
        name = path.name.split(".")[0]
        if name in ("MANIFEST", "adult_strings", "splice"):
            continue  # not numbers
        X, y = benchmark_data(name)
        whole = np.isfinite(X).all(axis=1)
        data.append((X[whole], y[whole]))
    for X, y in data:
        for seed in range(10):
            check_own_rows(X, np.asarray(y), seed)


def test_nearly_singular_rows_get_a_recorded_floor():
    X, y = load_breast_cancer(return_X_y=True)
    rows = np.random.default_rng(3).permutation(569)[:40]
    with pytest.warns(PrudentWarning, match="feature's variance was added"):
        model = MinimaxProbabilityClassifier().fit(X[rows], y[rows])
    assert model.covariance_floor_ == 1e-8
    assert "1e-08 of each feature's variance is added" in str(model.guarantees_[0])
    assert model.score(X[rows], y[rows]) == 1
    assert MinimaxProbabilityClassifier().fit(X, y).covariance_floor_ == 0


def test_nearly_collinear_columns_over_many_scales():
    rng = np.random.default_rng(0)
    for n in (4, 30, 60, 120):
        y = np.arange(n) % 2
        X = rng.normal(size=(n, 4)) @ rng.normal(size=(4, 49))
        X += 1e-7 * rng.normal(size=X.shape) + y[:, None] * rng.normal(size=49)
        check_own_rows(X * 10.0 ** rng.uniform(0, 8, size=49), y, seed=0)


def test_one_row_says_nothing_about_its_class():
    rng = np.random.default_rng(0)
    X = np.r_[rng.normal(size=(100, 2)), [[1.5, 0]]]
    y = np.r_[np.zeros(100, int), 1]
    with pytest.raises(ValueError, match="needs 10 rows per class at least, class 1"):
        MinimaxProbabilityClassifier(uncertainty="bootstrap").fit(X, y)
    assert [g.scope for g in MinimaxProbabilityClassifier().fit(X, y).guarantees_] == [
        0
    ]


def test_bootstrap_radii_promise_nothing():
    X, y = load_breast_cancer(return_X_y=True)
    model = MinimaxProbabilityClassifier(uncertainty="bootstrap", random_state=0)
    model.fit(X[:, :3], y)
    assert model.guarantees_ == ()
    assert (model.covariance_radius_ > 0).all()
    assert (model.class_worst_case_error_ < 1).all()


def test_repeated_rows_give_no_confidence():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = rng.normal(size=(60, 2)) + 2 * y[:, None]
    gaussian = MinimaxProbabilityClassifier(uncertainty="gaussian")

    def confidence(model):
        return {g.confidence for g in model.guarantees_}

    assert confidence(gaussian.fit(X, y)) == {0.95}
    assert confidence(gaussian.fit(X, y, np.ones(60))) == {0.95}
    assert confidence(gaussian.fit(X, y, (np.arange(60) > 9).astype(float))) == {0.95}
    assert confidence(gaussian.fit(X, y, np.full(60, 100.0))) == {None}
    assert confidence(gaussian.fit(X, y, np.resize([0.5, 1.5], 60))) == {None}
    moments = ClassMoments.from_arrays(X, y, np.full(60, 100.0))
    assert confidence(gaussian.fit_moments(moments)) == {None}
    assert confidence(gaussian.fit_moments(ClassMoments.from_arrays(X, y))) == {0.95}
    streamed = MinimaxProbabilityClassifier(uncertainty="gaussian")
    streamed.partial_fit(X[:30], y[:30], sample_weight=np.resize([0.5, 1.5], 30))
    assert confidence(streamed.partial_fit(X[30:], y[30:])) == {None}


def test_gaussian_confidence_holds_at_any_level():
    # 1 / 2000 of the draws behind the factor would not do for 1 - 1e-4.
    from prudent.minimax.radii import covariance_factor

    factors = [covariance_factor(3, 60, level) for level in (1e-2, 1e-3, 1e-4)]
    assert factors == sorted(factors)
    assert factors[2] > factors[1] * 1.05


ATOMS = {"halfspace": 8, "ellipsoid": 3}


@pytest.mark.parametrize("region", ATOMS)
def test_scores_are_equal_in_any_batch(region):
    rng = np.random.default_rng(0)
    for seed in range(8):
        n_features = int(rng.integers(1, 40))
        X = rng.normal(size=(400, n_features)) + rng.choice([1, 1e4])
        X *= 10.0 ** rng.uniform(-4, 4, size=n_features)
        detector = MinimaxOutlierDetector(region=region, random_state=seed).fit(X)
        for order in ("C", "F"):
            whole = detector.score_samples(np.asarray(X, order=order))
            alone = [detector.score_samples(row[None])[0] for row in X]
            odd = detector.score_samples(X[1:37:3])
            np.testing.assert_array_equal(whole, alone)
            np.testing.assert_array_equal(whole[1:37:3], odd)
        offset = detector.offset_
        held = detector.calibration_scores_
        assert offset == held[int(detector.guarantees_[0].evidence["rank"]) - 1]


@pytest.mark.parametrize("region", ATOMS)
def test_kernel_scores_are_equal_in_any_batch(region):
    X = np.random.default_rng(0).normal(size=(150, 3))
    detector = MinimaxOutlierDetector(region=region, kernel="rbf", random_state=0)
    whole = detector.fit(X).score_samples(X)
    alone = [detector.score_samples(row[None])[0] for row in X]
    np.testing.assert_array_equal(whole, alone)


@pytest.mark.parametrize("region", ATOMS)
def test_tied_rows_raise_no_more_alarms_than_promised(region):
    runs, alarms = 250, 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        atoms = rng.integers(1, 8, (6, ATOMS[region]))
        atoms = atoms + rng.integers(0, 10, atoms.shape) / 10
        detector = MinimaxOutlierDetector(
            false_alarm_rate=0.01, region=region, covariance=0.1, random_state=seed
        ).fit(atoms[rng.choice(6, 600)])
        alarms += detector.predict(atoms[[rng.integers(6)]])[0] == -1
    assert binom.sf(alarms - 1, runs, 0.01) > LEVEL


def test_groups_keep_the_rate_for_a_row_of_a_new_group():
    runs, alarms, plain = 400, 0, 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        centres = rng.normal(size=(25, 2)) * 3
        groups = np.repeat(np.arange(25), 10)
        X = centres[groups] + 0.01 * rng.normal(size=(250, 2))
        detector = MinimaxOutlierDetector(random_state=seed, calibration_size=0.4)
        fresh = rng.normal(size=(1, 2)) * 3 + 0.01 * rng.normal(size=(1, 2))
        fitted = detector.fit(X, groups=groups)
        assert fitted.n_calibration_ == 10
        alarms += fitted.predict(fresh)[0] == -1
        plain += detector.fit(X).predict(fresh)[0] == -1
    assert binom.sf(alarms - 1, runs, 0.1) > LEVEL
    assert plain > alarms  # what groups are for


def test_true_averaged_promises_are_seldom_called_broken():
    runs, broken = 300, 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        detector = MinimaxOutlierDetector(random_state=seed).fit(
            rng.normal(size=(120, 2))
        )
        alarms = np.count_nonzero(detector.predict(rng.normal(size=(2000, 2))) == -1)
        broken += detector.guarantees_[0].check(alarms, 2000).verdict == "broken"
    assert binom.sf(broken - 1, runs, 0.05) > LEVEL


@pytest.mark.parametrize("region", ATOMS)
def test_distribution_free_region_of_finite_laws(region):
    tried = 0
    for seed in range(400):
        atoms, masses, means, covariances = finite_law(seed)
        try:
            detector = MinimaxOutlierDetector.from_moments(
                means[:1], covariances[:1], [9],
                threshold="distribution_free", region=region, false_alarm_rate=0.3,
            )  # fmt: skip
        except ValueError:  # singular, or no such half-space
            continue
        tried += 1
        missed = detector.predict(atoms[0]) == -1
        assert masses[0][missed].sum() <= 0.3 + 1e-12, seed
    assert tried > 30


@pytest.mark.parametrize("scale", [1e160, 1e149, 1e-120, 1e-150, 1e-200])
def test_extreme_scales_give_an_error_or_the_answer(scale):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(100, 3)), np.arange(100) % 2
    X[y == 1] += 1
    for estimator, labels in (
        (MinimaxProbabilityClassifier(), y),
        (MinimaxOutlierDetector(random_state=0), None),
        (MinimaxOutlierDetector(threshold="distribution_free"), None),
    ):
        plain = estimator.fit(X, labels).predict(X)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            if 1e-129 < scale < 1e150:
                fitted = estimator.fit(X * scale, labels)
                np.testing.assert_array_equal(fitted.predict(X * scale), plain)
            else:
                with pytest.raises(ValueError, match="rescale it"):
                    estimator.fit(X * scale, labels)
