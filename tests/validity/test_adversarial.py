"""False alarms of the detector against the law its cut implies.

Without ties the false alarms among T fresh rows follow BetaBinomial(T, k, m + 1 - k),
for every model and dimension. Totals over independent repetitions are tested exactly,
two-sided, at level 1e-4; with ties from above only.
"""

import warnings

import numpy as np
import pytest
from scipy.stats import betabinom, binomtest
from sklearn.tree import DecisionTreeClassifier

from prudent import LowDensityRejector
from prudent.exceptions import PrudentWarning

pytestmark = pytest.mark.slow

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


@pytest.mark.parametrize("d", [2, 10, 30])
def test_false_alarms_follow_the_beta_binomial_law(d):
    kinds = ("mean", "high_probability", "exact")
    alarms = {kind: [] for kind in kinds}
    ranks = {kind: [] for kind in kinds}
    for detector, fresh in repeat(heavy_tailed_clusters, d):
        for kind in kinds:
            cut = detector.set_params(guarantee=kind).with_false_alarm_rate(RATE)
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
