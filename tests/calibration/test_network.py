"""The Bayesian network of the guide, written against the protocol `Family`."""

import doctest
import itertools
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import mutual_info_score

from prudent import RiskCalibratedClassifier
from prudent.calibration import Family

GUIDE = Path(__file__).parents[2] / "docs" / "user_guide" / "calibration.rst"


@pytest.fixture(scope="module")
def network_class():
    """The class as the guide shows it."""
    examples = doctest.DocTestParser().get_examples(GUIDE.read_text(encoding="utf-8"))
    names = {}
    for example in examples:
        if example.source.startswith(("import ", "from ", "class TreeAugmentedBayes")):
            exec(example.source, names)
    assert issubclass(names["TreeAugmentedBayes"], Family)
    return names["TreeAugmentedBayes"]


def chained_rows(n=400, seed=0):
    """Four features of three levels; the class changes what 1 and 2 do together."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    X = rng.integers(3, size=(n, 4))
    X[:, 1] = np.where(rng.random(n) < 0.6, (X[:, 0] + y) % 3, X[:, 1])
    X[:, 2] = np.where(rng.random(n) < 0.6, (X[:, 1] + 2 * y) % 3, X[:, 2])
    return X.astype(float), y


def test_the_tree_has_the_most_mutual_information_given_the_class(network_class):
    X, y = chained_rows()
    found = network_class(X, y).parent
    edges = list(itertools.combinations(range(4), 2))
    worth = {
        (i, j): sum(
            np.mean(y == k) * mutual_info_score(X[y == k, i], X[y == k, j])
            for k in (0, 1)
        )
        for i, j in edges
    }

    def is_tree(chosen):
        reached = {0}
        for _ in range(3):
            reached |= {v for edge in chosen if reached & set(edge) for v in edge}
        return len(reached) == 4

    trees = [t for t in itertools.combinations(edges, 3) if is_tree(t)]
    assert len(trees) == 16  # Cayley
    best = max(trees, key=lambda tree: sum(worth[edge] for edge in tree))
    ours = {tuple(sorted((child, int(found[child])))) for child in (1, 2, 3)}
    assert ours == set(best)


def test_the_network_is_a_law_with_the_conditional_shares_of_its_rows(network_class):
    X, y = chained_rows()
    network = network_class(X, y)
    model = RiskCalibratedClassifier(family=network, max_iter=1, stopping="none")
    model.fit(X, y)
    cells = np.array(list(itertools.product(range(3), repeat=4)), dtype=float)
    parameters = network.parameters(model.statistics_)
    joint = np.exp(network.log_joint(cells, parameters))
    assert joint.sum() == pytest.approx(1.0, abs=1e-12)
    for x, probabilities in zip(cells[::7], joint[::7], strict=True):
        for k in (0, 1):
            own, expected = X[y == k], np.mean(y == k)
            for j, parent in enumerate(network.parent):
                given = own if parent == 4 else own[own[:, parent] == x[parent]]
                hits = np.count_nonzero(given[:, j] == x[j])
                expected *= (hits + 0.5) / (len(given) + 1.5)
            assert probabilities[k] == pytest.approx(expected, rel=1e-12)


def test_calibration_climbs_to_a_fixed_point_of_the_statistics(network_class):
    X, y = chained_rows()
    network = network_class(X, y)
    settings = {"family": network, "stopping": "none", "learning_rate": 1.0}
    model = RiskCalibratedClassifier(max_iter=400, **settings).fit(X, y)
    assert (np.diff(model.loss_curve_) <= 1e-12).all()
    labels = network.statistics(X, np.eye(2)[y])
    believed = network.statistics(X, model.predict_proba(X))
    start = network.statistics(
        X, RiskCalibratedClassifier(max_iter=1, **settings).fit(X, y).predict_proba(X)
    )
    gaps = [np.abs(labels[1] - part[1]).max() for part in (start, believed)]
    assert gaps[1] < 0.05 * gaps[0]
