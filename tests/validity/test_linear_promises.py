"""`guarantees_of`: the bound of every linear classifier, held to laws of known truth.

The law has finitely many rows, so that moments and error rates are sums. A promise that
assumes the moments only has no confidence: none may be broken. Those that assume normal
rows hold with a confidence, and the number of broken ones is binomial.
"""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import binom, norm
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import (
    LogisticRegression,
    Perceptron,
    RidgeClassifier,
    SGDClassifier,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC, NuSVC

from prudent import ClassMoments, MinimaxProbabilityClassifier, RiskCalibratedClassifier
from prudent.minimax import guarantees_of

# Exact tests of promises with a confidence; rounding of sums of probabilities.
LEVEL, ROUNDING = 1e-4, 1e-12

# --- laws: rows (m, d), and of each class the probabilities of the rows (K, m) --------


def of_scores(X, rng, n_classes, sharpness=1.0):
    """Classes that prefer rows in a random direction each, and a little of all rows."""
    scores = X @ rng.normal(size=(X.shape[1], n_classes)) * sharpness
    chances = np.exp(scores - scores.max(axis=0)).T + 1e-3 * rng.random(len(X))
    return X, chances / chances.sum(axis=1, keepdims=True)


def integer_grid(rng):
    side = np.arange(4.0)
    X = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    return of_scores(X, rng, 2)


def with_a_binary_column(rng):
    X = np.column_stack([rng.normal(size=30), rng.integers(0, 2, 30)])
    return of_scores(X, rng, 2, 2.0)


def far_rows(rng):
    """One row in a hundred is far away: heavy tails."""
    X = rng.normal(size=(40, 3)) * np.where(rng.random(40) < 0.1, 50, 1)[:, None]
    return of_scores(X, rng, 2, 0.3)


def wild_scales(rng):
    X, chances = of_scores(rng.normal(size=(25, 2)), rng, 2, 2.0)
    return X * [1e-6, 1e6] + [1e-3, 1e9], chances


def four_classes(rng):
    return of_scores(rng.normal(size=(60, 3)), rng, 4, 2.0)


def tight_classes(rng):
    """Three classes, each on its corner but for one row in a thousand."""
    corners = 10 * np.eye(3)
    X = np.concatenate([corners + 0.1 * rng.normal(size=(3, 3)) for _ in range(5)])
    chances = np.full((3, 15), 1e-3 / 12)
    for k in range(3):
        chances[k, k::3] = (1 - 1e-3 * 10 / 12) / 5
    return X, chances / chances.sum(axis=1, keepdims=True)


LAWS = [
    *(integer_grid, with_a_binary_column, far_rows, wild_scales),
    *(four_classes, tight_classes),
]
CLASSIFIERS = {
    "lda": LinearDiscriminantAnalysis(),
    "logistic": LogisticRegression(),
    "svm": LinearSVC(max_iter=100),
    "ridge": RidgeClassifier(),
    "perceptron": Perceptron(),
    "sgd": SGDClassifier(),
    "pipeline": make_pipeline(StandardScaler(), LogisticRegression()),
    "svc": SVC(kernel="linear", max_iter=1000),  # any plane will do
    "minimax": MinimaxProbabilityClassifier(covariance=0.1),
}
OF_PAIRS = ("svc", "minimax")


def moments_of(X, chances):
    """The moments of a law, as if published."""
    means = chances @ X
    centred = X - means[:, None]
    covariances = np.einsum("kmi,km,kmj->kij", centred, chances, centred)
    labels = np.arange(len(chances))
    counts = np.full(len(labels), 100)
    return ClassMoments.from_covariances(means, covariances, counts, classes=labels)


def training_rows(X, chances, share, n, rng):
    """Rows of a law, two of each class at least."""
    y = np.r_[np.repeat(np.arange(len(share)), 2), rng.choice(len(share), n, p=share)]
    rows = [X[rng.choice(len(X), p=chances[k])] for k in y]
    return np.array(rows), y


def broken_promises(model, X, chances):
    """Of a fitted model: which class error rates lie beyond their bounds, in truth."""
    *steps, last = model if hasattr(model, "steps") else [model]
    seen = X if not steps else steps[0].transform(X)
    promises = guarantees_of(last, moments_of(seen, chances))
    predicted = model.predict(X)
    for promise in promises:
        truth = chances[promise.scope, predicted != promise.scope].sum()
        yield truth > promise.bound + ROUNDING


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("n_fits", [6, pytest.param(150, marks=pytest.mark.slow)])
def test_no_law_with_the_moments_breaks_a_bound(law, name, n_fits):
    """Ties, discrete columns, tiny samples, 1:30, several classes: never beyond."""
    if name in OF_PAIRS and law in (four_classes, tight_classes):
        pytest.skip("a score for every two classes")
    broken = []
    for seed in range(n_fits):
        rng = np.random.default_rng(seed)
        X, chances = law(rng)
        share = np.full(len(chances), 1 / len(chances))
        if seed % 2:
            share = np.r_[np.full(len(chances) - 1, 0.03), 0]
            share[-1] = 1 - share.sum()
        rows, y = training_rows(X, chances, share, (4, 20, 100)[seed % 3], rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of collinear rows, of iterations
            try:
                model = CLASSIFIERS[name].fit(rows, y)
            except (ValueError, IndexError, np.linalg.LinAlgError):
                continue  # too few different rows: nothing is promised
            broken += broken_promises(model, X, chances)
    assert len(broken) >= n_fits
    # Of promises that hold always, one that is broken refutes them.
    assert sum(broken) == 0


SINGLE = {
    "lda": LinearDiscriminantAnalysis(),
    "ridge": RidgeClassifier(),
    "logistic": LogisticRegression(max_iter=20),
    "perceptron": Perceptron(max_iter=20),
}


@pytest.mark.parametrize("name", SINGLE)
@pytest.mark.parametrize("law", [integer_grid, four_classes, tight_classes])
@pytest.mark.parametrize("offset", [0.0, 1e4, 1e6, 1e7, 1e30])
def test_bounds_of_models_of_single_precision_are_never_broken(name, law, offset):
    """scikit-learn computes in single precision where the rows are of it."""
    broken = bounds = 0
    for seed in range(15):
        rng = np.random.default_rng(seed)
        X, chances = law(rng)
        X = (X * max(1.0, offset * 1e-7) + offset).astype(np.float32)
        share = np.full(len(chances), 1 / len(chances))
        rows, y = training_rows(X, chances, share, 60, rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                model = SINGLE[name].fit(rows.astype(np.float32), y)
                promises = guarantees_of(model, moments_of(X.astype(float), chances))
                predicted = model.predict(X)
            except (ValueError, IndexError, np.linalg.LinAlgError):
                continue  # what the model cannot do has no promise
        for promise in promises:
            truth = chances[promise.scope, predicted != promise.scope].sum()
            broken += truth > promise.bound + ROUNDING
            bounds += promise.bound < 1
    assert broken == 0
    assert bounds or offset > 0


def at_the_plane(mean, covariance, normal, offset, side, further):
    """The law with these moments that has most rows beyond normal'x = offset.

    Two points along the normal, the outer one `further` beyond the plane, in the metric
    of the covariance; the other directions are coins.
    """
    root = np.linalg.cholesky(covariance)
    along = root.T @ normal
    deviation = np.linalg.norm(along)
    kappa = side * (normal @ mean - offset) / deviation
    assert kappa > 0, "the class has its mean on its own side"
    kappa *= 1 + further
    beyond = 1 / (1 + kappa**2)
    basis, _ = np.linalg.qr(np.column_stack([along / deviation, np.eye(len(mean))]))
    basis = basis[:, : len(mean)] * np.sign(basis[:, 0] @ along)
    coins = np.array(np.meshgrid(*[[-1.0, 1.0]] * (len(mean) - 1))).reshape(
        len(mean) - 1, -1
    )
    points, chances = [], []
    for value, chance in ((-side * kappa, beyond), (side / kappa, 1 - beyond)):
        for signs in coins.T:
            points.append(mean + root @ (basis @ np.r_[value, signs]))
            chances.append(chance / coins.shape[1])
    return np.array(points), np.array(chances)


@pytest.mark.parametrize("name", [n for n in CLASSIFIERS if n != "pipeline"])
def test_some_law_attains_the_bound_and_none_is_beyond(name):
    rng = np.random.default_rng(1)
    root = rng.normal(size=(2, 3, 3))
    covariances = root @ root.transpose(0, 2, 1) + 0.2 * np.eye(3)
    means = np.array([[0.0, 0.0, 0.0], [6.0, 1.0, 0.0]])
    y = np.repeat([0, 1], 200)
    rows = np.concatenate(
        [
            rng.multivariate_normal(m, S, 200)
            for m, S in zip(means, covariances, strict=True)
        ]
    )
    model = CLASSIFIERS[name].fit(rows, y)
    moments = ClassMoments.from_covariances(means, covariances, [100, 100])
    for promise in guarantees_of(model, moments):
        k = promise.scope
        for further in (1e-6, -1e-6):
            points, chances = at_the_plane(
                means[k], covariances[k], np.ravel(model.coef_),
                -np.ravel(model.intercept_)[0], 2 * k - 1, further,
            )  # fmt: skip
            centred = points - means[k]
            np.testing.assert_allclose(chances @ points, means[k], atol=1e-9)
            np.testing.assert_allclose(
                (centred * chances[:, None]).T @ centred, covariances[k], atol=1e-9
            )
            truth = chances[model.predict(points) != k].sum()
            assert truth <= promise.bound + ROUNDING
            if further > 0:
                assert truth >= promise.bound * (1 - 1e-5)


@pytest.mark.parametrize(
    ("n_rows", "n_features", "gap", "n_fits"),
    [
        (8, 3, 9.0, 60),
        (30, 1, 4.0, 200),
        *(
            pytest.param(n_rows, n_features, gap, 1500, marks=pytest.mark.slow)
            for n_rows, n_features in ((8, 3), (8, 1), (60, 3), (60, 1), (500, 1))
            for gap in (2.0, 9.0)
        ),
    ],
)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.filterwarnings("ignore:MinimaxProbabilityClassifier")
def test_bounds_for_normal_rows_hold_with_their_confidence(
    n_rows, n_features, gap, n_fits, n_classes
):
    """Ten times as many rows of one class; true errors of planes are normal tails."""
    rng = np.random.default_rng((n_rows, n_features, n_classes))
    root = rng.normal(size=(n_classes, n_features, n_features))
    covariances = root @ root.transpose(0, 2, 1) + 0.2 * np.eye(n_features)
    means = np.zeros((n_classes, n_features))
    means[:, 0] = gap * np.arange(n_classes)
    counts, confidence = [n_rows, 10 * n_rows, n_rows][:n_classes], 0.9
    y = np.repeat(np.arange(n_classes), counts)
    fresh = rng.normal(size=(20_000, n_features))
    broken = 0
    for _ in range(n_fits):
        X = np.concatenate(
            [
                rng.multivariate_normal(means[k], covariances[k], counts[k])
                for k in range(n_classes)
            ]
        )
        model = MinimaxProbabilityClassifier(
            uncertainty="gaussian", confidence=confidence
        ).fit(X, y)
        assert all(promise.confidence == confidence for promise in model.guarantees_)
        if n_classes == 2:
            w, b = model.coef_[0], model.intercept_[0]
            ahead = np.array([-1, 1]) * (means @ w + b)
            deviation = np.sqrt(np.einsum("i,kij,j->k", w, covariances, w))
            truth, slack = norm.sf(ahead / deviation), 0.0
        else:
            truth = np.array(
                [
                    (model.predict(fresh @ root_k + mean) != k).mean()
                    for k, (root_k, mean) in enumerate(
                        zip(np.linalg.cholesky(covariances).mT, means, strict=True)
                    )
                ]
            )
            slack = 4 * np.sqrt(truth * (1 - truth) / len(fresh))
        broken += any(
            truth[p.scope] - np.broadcast_to(slack, truth.shape)[p.scope] > p.bound
            for p in model.guarantees_
        )
    assert binom.sf(broken - 1, n_fits, 1 - confidence) > LEVEL


def test_normal_bounds_are_far_below_those_for_every_law():
    """The radii hold for both; what differs is the tail beyond the plane."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 1000)
    X = rng.normal(size=(2000, 5)) + 2.5 * y[:, None] / np.sqrt(5)
    model = MinimaxProbabilityClassifier(uncertainty="gaussian").fit(X, y)
    for promise in model.guarantees_:
        kappa = model.kappa_
        assert promise.bound == pytest.approx(norm.sf(kappa), rel=1e-6)
        chebyshev = model.class_worst_case_error_[promise.scope]
        assert chebyshev == pytest.approx(1 / (1 + kappa**2), rel=1e-6)
        assert promise.bound < 0.35 * chebyshev


# --- what is not proved is refused ----------------------------------------------------


def test_votes_of_pairs_that_agree_on_all_likely_rows_are_refused():
    """Both rules read the values at the means alike: no likely row tells them apart."""
    means = 10 * np.eye(3)
    # Scores of the pairs (0, 1), (0, 2), (1, 2) at the three means.
    pairs = np.array([[3.0, -1.0, -2.0], [2.0, 2.0, -2.0], [1.0, 1.0, -1.0]])
    voting = SVC(kernel="linear").fit(means + 0.01, [0, 1, 2])
    coef = pairs / 10
    likely = means[:, None] + 0.001 * np.random.default_rng(0).normal(size=(3, 64, 3))
    scores = likely @ coef.T
    assert (scores.argmax(axis=2) == np.arange(3)[:, None]).all()
    votes = np.stack(
        [
            (scores[..., 0] > 0) + 0.0 + (scores[..., 1] > 0),
            (scores[..., 0] < 0) + 0.0 + (scores[..., 2] > 0),
            (scores[..., 1] < 0) + 0.0 + (scores[..., 2] < 0),
        ],
        axis=2,
    )
    assert (votes.argmax(axis=2) == np.arange(3)[:, None]).all()
    moments = ClassMoments.from_covariances(
        means, 1e-6 * np.array([np.eye(3)] * 3), [9] * 3
    )
    with pytest.raises(ValueError, match="SVC is not known to predict the class of"):
        guarantees_of(voting, moments)


def test_rules_of_ones_own_are_refused_and_bare_scores_are_taken():
    class Cautious(LogisticRegression):
        def predict(self, X):
            return self.classes_[(self.decision_function(X) > 1e-4).astype(int)]

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 2)), np.repeat([0, 1], 40)
    X[:, 0] += 4 * y
    moments = ClassMoments.from_arrays(X, y)
    model = LogisticRegression().fit(X, y)
    bounds = [p.bound for p in guarantees_of(model, moments)]
    kept = {name: getattr(model, name) for name in ("coef_", "intercept_", "classes_")}
    for taken in (
        SimpleNamespace(**kept),
        FrozenEstimator(model),
        LogisticRegression().fit(X, y).sparsify(),
        type("Mine", (LogisticRegression,), {})().fit(X, y),
    ):
        assert [p.bound for p in guarantees_of(taken, moments)] == bounds
    for refused in (
        Cautious().fit(X, y),
        SimpleNamespace(**kept, predict=lambda X: X[:, 0] > 2),
        SimpleNamespace(**kept, predict=LogisticRegression().fit(X, y).predict),
        RiskCalibratedClassifier(family="tied", costs=[[0, 1], [9, 0]]).fit(X, y),
    ):
        with pytest.raises(ValueError, match="is not known to predict"):
            guarantees_of(refused, moments)
    assert len(guarantees_of(NuSVC(kernel="linear").fit(X, y), moments)) == 2
