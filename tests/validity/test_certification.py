"""The promises of certification, held against laws whose true rates are sums."""

import warnings

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.naive_bayes import GaussianNB

from prudent import NeymanPearsonClassifier, SelectiveClassifier, certify
from prudent.certification import error_rate_under_priors
from prudent.core.binomial import most_wrong
from prudent.core.shift import worst_rate
from prudent.exceptions import InfeasibleError, PrudentWarning
from prudent.rules.scores import AnswerScores
from validity.finite_laws import (
    AtomScores,
    FiniteLaw,
    binary_law,
    constant_law,
    few_scores_law,
    logistic_law,
    many_classes_law,
    rare_class_law,
    two_regions_law,
)

pytestmark = pytest.mark.filterwarnings("ignore::prudent.exceptions.PrudentWarning")

# A promise of confidence 1 - delta is refuted by its count of broken draws only if
# that count would have this probability.
REFUTED = 1e-4
FEW = 150
MANY = 3000


def named(value):
    if isinstance(value, int):
        return f"{value}-draws"
    return "-".join(getattr(part, "__name__", str(part)) for part in value)


def both_sizes(cells):
    """A short run of each cell, and a long one among the slow tests."""
    return pytest.mark.parametrize(
        ("cell", "draws"),
        [
            *((cell, FEW) for cell in cells),
            *(pytest.param(cell, MANY, marks=pytest.mark.slow) for cell in cells),
        ],
        ids=named,
    )


def require(broken, draws, delta):
    test = binomtest(int(broken), draws, delta, alternative="greater")
    assert test.pvalue > REFUTED, (broken, draws, delta)


LAWS = {
    "falling": lambda rate: logistic_law(),
    "constant": constant_law,
    "two-regions": two_regions_law,
    "few-scores": few_scores_law,
    "noisy": lambda rate: many_classes_law(),
}
SELECTIVE = [
    (law, n, rate, delta)
    for law in ("falling", "constant", "two-regions", "few-scores")
    for n, rate, delta in [(60, 0.1, 0.1), (150, 0.05, 0.2), (800, 0.05, 0.05)]
] + [("noisy", 200, 0.3, 0.1), ("noisy", 1000, 0.4, 0.3)]


@both_sizes(SELECTIVE)
def test_selective_error(cell, draws):
    name, n, rate, delta = cell
    law = LAWS[name](rate)
    rng = np.random.default_rng(1)
    broken = 0
    for _ in range(draws):
        model = SelectiveClassifier(
            law.model, error_rate=rate, confidence=1 - delta
        ).fit(*law.draw(n, rng))
        if model.guarantees_:
            answered = model.answers(law.atoms)
            broken += law.error_rate(model.predict(law.atoms), answered) > rate
    require(broken, draws, delta)


def test_plain_tests_at_every_threshold_are_refuted():
    """The cells can fail: the last rank that passes a plain test is not valid."""
    rate, delta, n, draws = 0.05, 0.05, 500, 400
    law, rng, broken = constant_law(rate), np.random.default_rng(0), 0
    allowed = np.array([most_wrong(k, rate, delta) for k in range(1, n + 1)])
    for _ in range(draws):
        rows, labels = law.draw(n, rng)
        scores = law.scores[rows[:, 0].astype(int)]
        ranked = AnswerScores.from_answers(
            scores.max(axis=1) + rng.uniform(0, 1e-9, n),
            scores.argmax(axis=1) != labels,
        )
        broken += bool((ranked.wrong[1:] <= allowed).any())
    assert binomtest(broken, draws, delta, alternative="greater").pvalue < REFUTED


SHARES = [
    ("falling", 60, 0.5, 0.1),
    ("few-scores", 40, 0.4, 0.2),
    ("two-regions", 200, 0.8, 0.05),
    ("noisy", 30, 1.0, 0.1),
]


@both_sizes(SHARES)
def test_selective_share(cell, draws):
    name, n, share, delta = cell
    law = LAWS[name](0.2)
    rng = np.random.default_rng(2)
    broken = 0
    for _ in range(draws):
        model = SelectiveClassifier(
            law.model, error_rate=None, answered_share=share, confidence=1 - delta
        ).fit(*law.draw(n, rng))
        answered = model.answers(law.atoms)
        broken += any(
            law.share(answered) < promise.bound - 1e-12
            if promise.quantity == "answered share"
            else law.error_rate(model.predict(law.atoms), answered) > promise.bound
            for promise in model.guarantees_
        )
    require(broken, draws, delta)


CAPACITIES = [
    ("falling", 150, 0.2, 0.6, 0.1),
    ("few-scores", 80, 0.3, 0.7, 0.2),
    ("two-regions", 200, 0.3, 0.5, 0.05),
]


@both_sizes(CAPACITIES)
def test_error_and_answered_share_at_once(cell, draws):
    name, n, rate, share, delta = cell
    law = LAWS[name](0.2)
    rng = np.random.default_rng(12)
    broken = promised = 0
    for _ in range(draws):
        model = SelectiveClassifier(
            law.model, error_rate=rate, answered_share=share, confidence=1 - delta
        ).fit(*law.draw(n, rng))
        answered = model.answers(law.atoms)
        quantities = [promise.quantity for promise in model.guarantees_]
        promised += "answered share" in quantities
        broken += bool(quantities) and (
            law.error_rate(model.predict(law.atoms), answered) > rate
            or ("answered share" in quantities and law.share(answered) < share - 1e-12)
        )
    require(broken, draws, delta)
    assert promised


@both_sizes([(300, 0.3, 0.5, 0.1), (600, 0.2, 0.4, 0.2)])
def test_class_error_and_flagged_share_at_once(cell, draws):
    n, limit, share, delta = cell
    law = rare_class_law()
    rng = np.random.default_rng(13)
    broken = promised = 0
    for _ in range(draws):
        try:
            model = NeymanPearsonClassifier(
                law.model,
                max_class_error={2: limit},
                flagged_share=share,
                confidence=1 - delta,
            ).fit(*law.draw(n, rng))
        except InfeasibleError:
            continue
        predicted = model.predict(law.atoms)
        flagged = any(g.quantity == "flagged share" for g in model.guarantees_)
        promised += flagged
        broken += law.class_error(predicted, 2) > limit or (
            flagged and law.share(predicted == 2) > share + 1e-12
        )
    require(broken, draws, delta)
    assert promised


def test_rows_are_held_out_from_a_model_that_is_fitted():
    """Fit and promise on one table: the truth is that of the fitted model."""
    law = rare_class_law()
    rng = np.random.default_rng(3)
    broken, promised, draws, delta = 0, 0, 150, 0.2
    for i in range(draws):
        model = SelectiveClassifier(
            GaussianNB(), error_rate=0.15, confidence=1 - delta, random_state=i
        ).fit(*law.draw(400, rng))
        promised += len(model.guarantees_)
        true = law.error_rate(model.predict(law.atoms), model.answers(law.atoms))
        broken += true > 0.15
    assert promised > draws / 2
    require(broken, draws, delta)


NEYMAN_PEARSON = [
    ("one", 300, {2: 0.3}, 0.1),
    ("one-frequent", 80, {0: 0.05}, 0.2),
    ("two-in-turn", 600, {2: 0.25, 1: 0.4}, 0.1),
    ("two-in-turn-reversed", 800, {1: 0.6, 2: 0.8}, 0.3),
]


@both_sizes(NEYMAN_PEARSON)
def test_class_errors_hold_at_once(cell, draws):
    _, n, limits, delta = cell
    law = rare_class_law()
    rng = np.random.default_rng(4)
    broken = held = 0
    for _ in range(draws):
        model = NeymanPearsonClassifier(
            law.model, max_class_error=limits, confidence=1 - delta
        )
        try:
            model.fit(*law.draw(n, rng))
        except InfeasibleError:
            continue
        held += 1
        predicted = model.predict(law.atoms)
        broken += any(
            law.class_error(predicted, c) > limit + 1e-12 for c, limit in limits.items()
        )
    assert held > draws / 10
    require(broken, draws, delta)


SETS = [
    ("rare", rare_class_law, 200, 0.2, 0.1),
    ("noisy", many_classes_law, 150, 0.1, 0.3),
    ("tiny", rare_class_law, 12, 0.3, 0.2),
]


@both_sizes(SETS)
def test_sets_cover_every_class_at_once(cell, draws):
    _, make, n, limit, delta = cell
    law = make()
    rng = np.random.default_rng(5)
    broken = 0
    for _ in range(draws):
        model = NeymanPearsonClassifier(
            law.model, max_class_error=limit, abstain=True, confidence=1 - delta
        ).fit(*law.draw(n, rng))
        sets = model.predict_set(law.atoms)
        broken += any(
            law.coverage(sets, c) < 1 - limit - 1e-12 for c in range(sets.shape[1])
        )
    require(broken, draws, delta)


CERTIFIED = [
    ("rare", rare_class_law, 50, 0.1),
    ("rare", rare_class_law, 400, 0.3),
    ("noisy", many_classes_law, 100, 0.2),
]


@both_sizes(CERTIFIED)
def test_certified_claims_hold_at_once(cell, draws):
    _, make, n, delta = cell
    law = make()
    selective = SelectiveClassifier(
        law.model, error_rate=None, answered_share=0.6, random_state=0
    ).fit(*law.draw(300, np.random.default_rng(0)))
    k = law.joint.shape[1]
    costs = np.random.default_rng(1).integers(0, 6, (k, k + 1))
    predicted, answered = (
        selective.predict(law.atoms),
        selective.answers(law.atoms),
    )
    actions = np.where(answered, predicted, k)
    true = {
        ("selective error rate", None): law.error_rate(predicted, answered),
        ("error rate", None): law.error_rate(predicted),
        ("coverage", None): law.coverage(selective.predict_set(law.atoms)),
        ("expected cost", None): float((law.joint * costs[:, actions].T).sum()),
    }
    true |= {("class error rate", c): law.class_error(predicted, c) for c in range(k)}
    rng = np.random.default_rng(6)
    broken = false_by_shares = 0
    shares = rng.dirichlet(np.ones(k))
    reweighted = sum(
        s * true["class error rate", c] for c, s in enumerate(shares.tolist())
    )
    for _ in range(draws):
        rows, labels = law.draw(n, rng)
        found = certify(
            selective,
            rows,
            labels,
            confidence=1 - delta,
            claims="all",
            costs=costs,
        )
        broken += any(
            (true[g.quantity, g.scope] > g.bound + 1e-12) == (g.sense == "<=")
            and abs(true[g.quantity, g.scope] - g.bound) > 1e-12
            for g in found
        )
        mixed = error_rate_under_priors(
            found, lower=dict(enumerate(shares)), upper=dict(enumerate(shares))
        )
        false_by_shares += reweighted > mixed.bound + 1e-12
    require(broken, draws, delta)
    require(false_by_shares, draws, delta)


def grouped_draw(n_groups, rng):
    """Groups whose rows are alike: large groups of one kind are right, small wrong."""
    kind = rng.random(n_groups) < 0.3
    size = np.where(kind, 1, 15)
    groups = np.repeat(np.arange(n_groups), size)
    atoms = rng.integers(100, size=n_groups)
    wrong = rng.random(n_groups) < np.where(kind, 0.8, 0.05)
    return atoms[groups], wrong[groups], groups


@pytest.mark.parametrize("use_groups", [True, False])
def test_groups_are_what_is_drawn(use_groups):
    """A random row of a new group is wrong in 0.3 * 0.8 + 0.7 * 0.05 of cases."""
    law = binary_law("groups", np.arange(100), np.full(100, 0.275))
    true, delta, draws = 0.3 * 0.8 + 0.7 * 0.05, 0.1, 150
    rng = np.random.default_rng(7)
    broken = 0
    for i in range(draws):
        atoms, wrong, groups = grouped_draw(80, rng)
        labels = np.where(wrong, 1 - atoms % 2, atoms % 2)
        model = SelectiveClassifier(
            law.model,
            error_rate=None,
            answered_share=1.0,
            confidence=1 - delta,
            random_state=i,
        ).fit(atoms[:, None], labels, groups=groups if use_groups else None)
        broken += true > model.guarantees_[0].bound
    if use_groups:
        require(broken, draws, delta)
    else:  # teeth: rows that belong together, taken for independent ones
        assert binomtest(broken, draws, delta, alternative="greater").pvalue < REFUTED


@both_sizes([("kl", 0.1), ("total_variation", 0.05), ("likelihood_ratio", 1.5)])
def test_promises_under_shift(cell, draws):
    """Rows that follow a law at the edge of the ball."""
    divergence, radius = cell
    law = rare_class_law()
    rng = np.random.default_rng(8)
    predicted = law.scores.argmax(axis=1)
    wrong = np.ones_like(law.joint, dtype=bool)
    wrong[np.arange(len(wrong)), predicted] = False
    p = law.joint[wrong].sum()
    delta, broken = 0.2, 0
    q = worst_rate(p, divergence, radius)
    for _ in range(draws):
        rows, labels = law.draw(120, rng)
        promise = certify(
            AtomScores(law.scores), rows, labels, confidence=1 - delta,
            simultaneous=False,
        )[0]  # fmt: skip
        broken += q > promise.under_shift(divergence, radius).bound + 1e-12
    require(broken, draws, delta)


def test_a_finite_law_is_what_it_says():
    law = rare_class_law()
    rows, labels = law.draw(200_000, np.random.default_rng(0))
    predicted = law.model.predict(rows)
    true = law.error_rate(law.scores.argmax(axis=1))
    assert np.mean(predicted != labels) == pytest.approx(true, abs=0.005)
    assert isinstance(law, FiniteLaw)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrudentWarning)
        SelectiveClassifier(law.model, error_rate=0.4).fit(rows[:500], labels[:500])
