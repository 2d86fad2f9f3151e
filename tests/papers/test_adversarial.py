"""Numbers and claims of El-Yaniv and Nisenson, and their errata (adversarial A7)."""

import numpy as np
import pytest
from experiments.adversarial_algorithm import Printed, law_of_density
from experiments.adversarial_games import curves, miss_rates
from sklearn.ensemble import HistGradientBoostingClassifier

from prudent import LowDensityRejector, RejectionGame

#: Example 5 does not state N; only 16 events of .05 besides .2 sum to 1.
EXAMPLE_5 = np.append(np.full(16, 0.05), 0.2)


@pytest.mark.parametrize("bound", [3.0, 3.2])
@pytest.mark.parametrize("rate", [0.001, 0.2, 0.999])
def test_example_5_is_trivial_for_every_rate_up_to_its_critical_bound(bound, rate):
    game = RejectionGame(false_alarm_rate=rate, divergence_bound=bound).fit(EXAMPLE_5)
    assert game.rejection_rate_ == pytest.approx(rate, rel=1e-12)


def test_example_5_has_critical_bound_3_2():
    game = RejectionGame(divergence_bound=3).fit(EXAMPLE_5)
    assert game.critical_divergence() == pytest.approx(0.8 * np.log2(16), abs=1e-12)


@pytest.mark.parametrize(
    ("bound", "value"),
    [
        (3.21, 0.200623243289),
        (3.5, 0.217263013933),
        (4.0, 0.240013820760),
        (4.3, 0.249565225311),
    ],
)
def test_example_5_above_the_critical_bound(bound, value):
    game = RejectionGame(false_alarm_rate=0.2, divergence_bound=bound).fit(EXAMPLE_5)
    assert game.rejection_rate_ == pytest.approx(value, abs=5e-12)


def test_remark_25_whether_randomising_helps_does_not_depend_on_the_rate():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        p = rng.dirichlet(np.ones(8))
        game = RejectionGame(divergence_bound=rng.uniform(0.5, 3)).fit(p)
        rates = np.array([0.01, 0.3, 0.9])
        gain = 1 - game.security_curve(rates).soft_miss_rates - rates
        assert (gain > 1e-12).all() == (not game.is_trivial_)
        assert (gain > 1e-12).any() == (not game.is_trivial_)


def test_section_8_with_the_misprint_corrected():
    """r = 1 - delta_Q is feasible for the dual game: its least rate is at most that."""
    game = RejectionGame(divergence_bound=2).fit(np.arange(1, 9) / 36)
    for miss_rate in (0.1, 0.5, 0.9):
        assert game.min_false_alarm(miss_rate) <= 1 - miss_rate


@pytest.mark.parametrize(
    ("family", "bound", "hard", "soft"),
    [
        ("random pmf", 5, 1.000, 0.938),
        ("random pmf", 6, 1.000, 0.785),
        ("random pmf", 8, 0.436, 0.330),
        ("random pmf", 12.5, 0.116, 0.097),
    ],
)
def test_figure_1_means_lie_within_their_error_bars(family, bound, hard, soft):
    draws = miss_rates(family, bound, 50)
    error = draws.std(axis=0) / np.sqrt(len(draws))
    assert (
        np.abs(draws.mean(axis=0) - (hard, soft)) <= 3 * 2**0.5 * error + 1e-3
    ).all()


@pytest.mark.parametrize("family", ["random pmf", "discretised Gaussian"])
def test_figure_1_soft_beats_hard_in_every_draw(family):
    for bound in (0.5, 4.0, 7.5, 12.5):
        draws = miss_rates(family, bound, 10)
        assert (draws[:, 1] < draws[:, 0]).all()


def test_a_known_mixture_is_no_easier_at_its_rate_and_easier_elsewhere():
    found = curves()
    soft, known = np.array(found["soft"]), np.array(found["known mixture"])
    assert (known <= soft + 1e-12).all()
    at = np.searchsorted(found["rate"], 0.05 - 1e-9)
    assert known[at] == pytest.approx(soft[at], abs=1e-9)
    assert (soft <= np.array(found["hard"]) + 1e-12).all()


def test_the_algorithm_as_printed_has_no_threshold_below_8000_rows():
    rows = np.random.default_rng(0).normal(size=(1000, 2))
    assert Printed().fit(rows, seed=0).cut == -np.inf


def test_figure_3_jumps_over_the_rate_and_figure_2_does_not():
    without, with_jump = (law_of_density(share) for share in (0.0, 0.12))
    for (t, F), jumps in ((without, False), (with_jump, True)):
        assert F[-1] == pytest.approx(1, abs=1e-3)
        v = t[np.searchsorted(F, 0.05)]
        assert (F[t <= v][-1] > 0.06) == jumps


def test_remark_42_keeps_no_cell_as_printed():
    """Cells with more than n alpha points: none; with n g^d alpha: most of the mass."""
    n, d = 100_000, 2
    rows = np.random.default_rng(0).normal(size=(n, d))
    size, alpha = n ** (-1 / (d + 2)), 1 / np.log(n)
    _, counts = np.unique(np.floor(rows / size), axis=0, return_counts=True)
    assert counts.max() < n * alpha
    kept = counts > n * size**d * alpha
    assert 0.3 < counts[kept].sum() / n < 0.6


def test_the_paper_s_grid_misses_most_of_the_class_in_five_columns():
    n, d = 2000, 5
    rng = np.random.default_rng(0)
    rows, fresh = rng.normal(size=(n, d)), rng.normal(size=(n, d))
    size = n ** (-1 / (d + 2))
    occupied = set(map(tuple, np.floor(rows / size)))
    missed = np.mean([tuple(cell) not in occupied for cell in np.floor(fresh / size)])
    assert missed == pytest.approx(0.983, abs=0.015)


def test_missing_mass_slack_exceeds_the_rate_for_common_sizes():
    slack = (2 * 2**0.5 + 3**0.5) * np.sqrt(
        np.log(3 / 0.05) / np.array([1e3, 1e4, 1e6])
    )
    np.testing.assert_allclose(slack, [0.292, 0.092, 0.0092], rtol=0.01)


def test_plug_in_density_promises_more_than_the_truth_keeps():
    """A certificate from counts is optimistic, so it is labelled plug-in (B8)."""
    rng = np.random.default_rng(0)
    truth = rng.dirichlet(np.full(400, 0.7))
    counts = rng.multinomial(2000, truth)
    kept = counts > 0
    plug_in = RejectionGame.from_counts(counts[kept], divergence_bound=9)
    exact = RejectionGame(divergence_bound=9).fit(truth)
    rule = np.ones(400)
    rule[kept] = plug_in.rejection_
    assert exact.worst_case(rule)[0] < plug_in.rejection_rate_
    assert "plug-in density" in plug_in.guarantees_[1].assumptions[0]


@pytest.mark.parametrize(
    ("n", "promised", "kept", "alarms"),
    [(1000, 0.52, 0.0, 0.14), (10_000, 0.22, 0.003, 0.06), (100_000, 0.18, 0.09, 0.05)],
)
def test_plug_in_rates_of_the_guide(n, promised, kept, alarms):
    """Rejected of the intruders, of the worst one in truth, and of ordinary events."""
    rates = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        truth = rng.dirichlet(np.full(400, 0.7))
        plug_in = RejectionGame.from_counts(
            rng.multinomial(n, truth), divergence_bound=9
        )
        rule = plug_in.rejection_
        exact = RejectionGame(divergence_bound=9).fit(truth)
        worst = exact.worst_case(rule)[0]
        rates.append((plug_in.rejection_rate_, worst, rule @ truth))
    assert np.mean(rates, axis=0) == pytest.approx((promised, kept, alarms), abs=0.006)


@pytest.mark.filterwarnings("ignore:.*nothing is rejected")
@pytest.mark.parametrize(
    ("estimator", "alarms"),
    [(HistGradientBoostingClassifier(random_state=0), 0.5), (None, 0.99)],
    ids=["boosting", "default"],
)
def test_theorem_40_training_scores_are_no_sample(estimator, alarms):
    rates = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        rows, fresh = rng.normal(size=(400, 30)), rng.normal(size=(1000, 30))
        detector = LowDensityRejector(
            estimator=estimator, calibration_size=0.01, random_state=seed
        ).fit(rows)
        cut = np.sort(detector.score_samples(rows))[int(0.05 * 401) - 1]
        rates.append(np.mean(detector.score_samples(fresh) < cut))
    assert np.mean(rates) == pytest.approx(alarms, abs=0.06)
