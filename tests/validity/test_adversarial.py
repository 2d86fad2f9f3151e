"""The promises of the games and of the detector, held against known truths.

Without ties the false alarms among T fresh rows follow BetaBinomial(T, k, m + 1 - k),
for every model and dimension. Totals over independent repetitions are tested exactly,
two-sided, at level 1e-4; with ties from above only.
"""

import copy
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import betabinom, binomtest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from prudent import LowDensityRejector, RejectionGame
from prudent.exceptions import PrudentWarning
from prudent.rules.rule import Terms

N, N_FRESH, REPETITIONS, RATE, LEVEL = 400, 500, 60, 0.05, 1e-4


def heavy_tailed_clusters(n, d, rng):
    """Two clusters of Student's t with 3 degrees of freedom."""
    return rng.standard_t(3, size=(n, d)) + 3 * rng.integers(2, size=n)[:, None]


def coarse(n, d, rng):
    """Few distinct rows: scores are tied."""
    return np.round(rng.normal(size=(n, d)) / 1.5)


def repeat(make_rows, d, **params):
    """Fitted detectors of independent samples, and the fresh rows of each."""
    for seed in range(REPETITIONS):
        rng = np.random.default_rng((seed, d))
        detector = LowDensityRejector(
            false_alarm_rate=RATE, random_state=seed, **params
        )
        with warnings.catch_warnings():  # a coarse column may be constant
            warnings.simplefilter("ignore", PrudentWarning)
            yield detector.fit(make_rows(N, d, rng)), make_rows(N_FRESH, d, rng)


def false_alarms(detector, rows):
    return int(np.count_nonzero(detector.predict(rows) < 0))


def law_of_total(ranks, m):
    """Probabilities of the total over repetitions with these ranks."""
    total = np.ones(1)
    counts = np.arange(N_FRESH + 1)
    for k in ranks:
        total = np.convolve(total, betabinom.pmf(counts, N_FRESH, k, m + 1 - k))
    return total / total.sum()


def tails(observed, law):
    return law[: observed + 1].sum(), law[observed:].sum()


def recut(detector, kind):
    """The same fit with a cut of another kind."""
    made = replace(
        detector.rule_.calibration,
        terms=Terms(confidence=0.95 if kind == "high_probability" else None),
        coin=detector._learned.coin if kind == "exact" else None,
    )
    return copy.copy(detector)._adopt(made.rule(RATE))


@pytest.mark.slow
@pytest.mark.parametrize("d", [2, 10, 30])
def test_false_alarms_follow_the_beta_binomial_law(d):
    kinds = ("mean", "high_probability", "exact")
    alarms = {kind: [] for kind in kinds}
    ranks = {kind: [] for kind in kinds}
    for detector, fresh in repeat(heavy_tailed_clusters, d):
        for kind in kinds:
            cut = recut(detector, kind)
            alarms[kind].append(false_alarms(cut, fresh))
            ranks[kind].append(cut.k_)
    m = detector.n_calibration_
    for kind in kinds:
        law = law_of_total(ranks[kind], m)
        below, above = tails(sum(alarms[kind]), law)
        assert min(below, above) >= LEVEL / 2, kind
        over = [count > RATE * N_FRESH for count in alarms[kind]]
        chance = np.mean(
            [betabinom.sf(RATE * N_FRESH, N_FRESH, k, m + 1 - k) for k in ranks[kind]]
        )
        assert binomtest(sum(over), REPETITIONS, chance).pvalue >= LEVEL, kind
    assert set(ranks["exact"]) <= {6, 7}  # (120 + 1) * 0.05 = 6.05


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*held-out rows stand among")
@pytest.mark.parametrize(
    ("make_rows", "params"),
    [
        (coarse, {}),
        (heavy_tailed_clusters, {
            "estimator": DecisionTreeClassifier(max_leaf_nodes=4, random_state=0),
            "reference": "box",
        }),
    ],
    ids=["tied rows", "discrete scores"],
)  # fmt: skip
def test_ties_never_push_the_rate_above_the_promise(make_rows, params):
    alarms, ranks = [], []
    for detector, fresh in repeat(make_rows, 2, **params):
        alarms.append(false_alarms(detector, fresh))
        ranks.append(detector.k_)
    _, above = tails(sum(alarms), law_of_total(ranks, detector.n_calibration_))
    assert above >= LEVEL


@pytest.mark.slow
def test_soft_rule_keeps_its_rate_on_average():
    rates = [
        false_alarms(detector, fresh) / N_FRESH
        for detector, fresh in repeat(
            heavy_tailed_clusters, 2, strategy="soft", divergence_bound=9.0
        )
    ]
    error = np.std(rates, ddof=1) / np.sqrt(REPETITIONS)
    assert np.mean(rates) <= RATE + 4 * error
    assert np.mean(rates) >= 0.5 * RATE  # and spends it


# --- games --------------------------------------------------------------------------


def point_divergence(name, p):
    if name == "kl":
        return -np.log2(p)
    if name == "l2":
        return 1 - 2 * p + p @ p
    return 1 / p - 1 if name == "chi2" else 1 - np.sqrt(p)


@pytest.mark.parametrize("strategy", ["soft", "hard"])
@pytest.mark.parametrize("name", ["kl", "l2", "chi2", "hellinger"])
def test_promises_hold_for_the_rule_as_returned_at_any_tie_tol(name, strategy):
    for seed in range(40):
        rng = np.random.default_rng(seed)
        p = rng.dirichlet(np.full(6, 2.0))
        points = point_divergence(name, p)
        bound = float(points.min() + rng.random() * np.ptp(points))
        params = {
            "false_alarm_rate": 0.1,
            "divergence": name,
            "divergence_bound": bound,
            "strategy": strategy,
        }
        exact = RejectionGame(tie_tol=0, **params).fit(p)
        for tie_tol in (1e-12, 0.01, 0.1, 0.5, 0.99):
            game = RejectionGame(tie_tol=tie_tol, **params).fit(p)
            false_alarm, miss = game.guarantees_
            assert game.rejection_ @ p <= false_alarm.bound + 1e-12
            missed = 1 - exact.worst_case(game.rejection_)[0]
            assert missed <= miss.bound + 1e-12
            alone = game.rejection_[points >= bound]
            assert 1 - alone.min(initial=1.0) <= miss.bound + 1e-12
            assert game.upper_bound_ == pytest.approx(exact.upper_bound_, abs=1e-12)
            assert game.gap_ == pytest.approx(
                game.upper_bound_ - game.rejection_rate_, abs=1e-15
            )


def test_events_that_tie_are_treated_alike():
    for seed in range(20):
        p = np.random.default_rng(seed).dirichlet(np.full(30, 2.0))
        game = RejectionGame(divergence_bound=5.0, tie_tol=0.05).fit(p)
        order = np.argsort(p)
        close = np.diff(p[order]) <= 0.05 * p[order][1:]
        assert (np.diff(game.rejection_[order])[close] == 0).all()
        assert game.n_levels_ == 1 + np.count_nonzero(~close)


# --- check --------------------------------------------------------------------------

DRAWS, ROWS, CHECK_LEVEL = 2000, 500, 0.05
KINDS = {"mean": {}, "high_probability": {"confidence": 0.95}, "exact": {"exact": True}}


def scored(kind, seed, m, **params):
    """A detector whose frozen score is the row itself, and its false-alarm rate."""
    rng = np.random.default_rng((seed, m))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrudentWarning)
        detector = LowDensityRejector(
            estimator=FrozenEstimator(IDENTITY),
            reference="box",
            **KINDS[kind],
            calibration_size=m / (m + 10),
            random_state=seed,
            **params,
        ).fit(rng.uniform(size=(m + 10, 1)))
    return detector, rng


# The margin of this model rises with the row: rejected is what lies far left.
IDENTITY = LogisticRegression().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])


@pytest.mark.parametrize("kind", ["mean", "high_probability", "exact"])
@pytest.mark.parametrize(("m", "rate"), [(60, 0.08), (200, 0.05)])
@pytest.mark.parametrize(
    "draws", [200, pytest.param(DRAWS, marks=pytest.mark.slow)], ids=["few", "all"]
)
def test_true_promises_of_the_detector_are_rarely_called_broken(kind, m, rate, draws):
    broken = 0
    for seed in range(draws):
        detector, rng = scored(kind, seed, m, false_alarm_rate=rate)
        alarms = false_alarms(detector, rng.uniform(size=(ROWS, 1)))
        (promise,) = detector.guarantees_
        broken += promise.check(alarms, ROWS).verdict == "broken"
    allowed = CHECK_LEVEL + (0.05 if kind == "high_probability" else 0)
    assert binomtest(broken, draws, allowed, alternative="greater").pvalue >= 0.001


def test_promises_without_a_known_law_are_never_called_broken():
    for seed in range(30):
        soft, rng = scored(
            "mean", seed, 100, strategy="soft", divergence_bound=1.0,
            false_alarm_rate=0.1,
        )  # fmt: skip
        (promise,) = soft.guarantees_
        alarms = false_alarms(soft, rng.uniform(size=(ROWS, 1)))
        assert promise.rate_law is None
        assert promise.check(alarms, ROWS).verdict != "broken"
        assert promise.check(ROWS, ROWS).verdict == "consistent"


@pytest.mark.parametrize("strategy", ["soft", "hard"])
def test_true_promises_of_games_are_rarely_called_broken(strategy):
    """Ordinary events are drawn anew, and the worst intruder; the key stays."""
    broken = np.zeros(2, dtype=int)
    for seed in range(DRAWS):
        rng = np.random.default_rng(seed)
        p = rng.dirichlet(np.full(8, 2.0))
        bound = float(np.median(-np.log2(p)))
        game = RejectionGame(
            false_alarm_rate=0.2, divergence_bound=bound, strategy=strategy
        ).fit(p)
        false_alarm, miss = game.guarantees_
        for i, (law, promise) in enumerate(((p, false_alarm), (game.adversary_, miss))):
            rejected = game.reject(rng.choice(8, 200, p=law), key=seed)
            violations = rejected.sum() if i == 0 else (~rejected).sum()
            broken[i] += promise.check(int(violations), 200).verdict == "broken"
    for count in broken:
        assert binomtest(count, DRAWS, 0.05, alternative="greater").pvalue >= 0.001


def test_a_rate_twice_a_promise_that_is_no_average_is_called_broken():
    promises = [
        scored("high_probability", 0, 400, false_alarm_rate=0.02)[0].guarantees_[0],
        RejectionGame(false_alarm_rate=0.02, strategy="hard").fit([0.02, 0.98])
        .guarantees_[0],
    ]  # fmt: skip
    rng = np.random.default_rng(0)
    for promise in promises:
        verdicts = [
            promise.check(int(rng.binomial(2000, 2 * promise.bound)), 2000).verdict
            for _ in range(500)
        ]
        assert verdicts.count("broken") >= 0.95 * 500


# --- groups and ties ----------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["mean", "high_probability", "exact"])
def test_with_groups_the_promise_holds_for_a_random_row_of_a_new_group(kind):
    """25 to 60 groups of 10 rows: counted row by row the promise would be false."""
    rng = np.random.default_rng(0)
    over, rates, bounds = 0, [], []
    for seed in range(400):
        n_groups = 60 if kind == "high_probability" else 40
        centres = rng.normal(size=(n_groups, 2))
        rows = np.repeat(centres, 10, axis=0) + 0.2 * rng.normal(
            size=(n_groups * 10, 2)
        )
        groups = np.repeat(np.arange(n_groups), 10)
        detector = LowDensityRejector(
            estimator=LogisticRegression(), reference="gaussian", **KINDS[kind],
            false_alarm_rate=0.2, calibration_size=0.5, random_state=seed,
        ).fit(rows, groups=groups)  # fmt: skip
        fresh = rng.normal(size=(1000, 2)) + 0.2 * rng.normal(size=(1000, 2))
        rates.append(false_alarms(detector, fresh) / 1000)
        bounds.append(detector.guarantees_[0].bound)
        over += rates[-1] > 0.2
    if kind == "high_probability":
        # Fresh rows are a sample too: a rate at the bound is measured above it.
        assert binomtest(over, 400, 0.05 + 0.02, alternative="greater").pvalue >= 0.001
    else:
        excess = np.array(rates) - bounds
        assert excess.mean() <= 3.3 * excess.std(ddof=1) / np.sqrt(400)


def test_atoms_asked_one_at_a_time_keep_the_rate():
    """Equal rows have equal scores, whatever else is asked in the same call."""
    rates = []
    for seed in range(25):
        rng = np.random.default_rng(seed)
        atoms = rng.integers(1, 8, (6, 8)) + rng.integers(0, 10, (6, 8)) / 10
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrudentWarning)
            detector = LowDensityRejector(
                false_alarm_rate=0.01, estimator=LogisticRegression(), random_state=seed
            ).fit(atoms[rng.choice(6, 600)])
        rates.append(np.mean([detector.predict(atom[None])[0] < 0 for atom in atoms]))
    assert np.mean(rates) == 0
