"""RejectionGame: reference values, draws, other constructors, degenerate input."""

import pickle

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from prudent import RejectionGame
from prudent.adversarial import SecurityCurve, divergence_bound, divergence_of
from prudent.core.assumptions import Assumption
from prudent.exceptions import InfeasibleError

EIGHT = np.array([0.01, 0.02, 0.03, 0.05, 0.09, 0.12, 0.18, 0.5])
RATES = (0.01, 0.05, 0.2, 0.5)


def game(p=EIGHT, **params):
    return RejectionGame(**{"divergence_bound": 3, **params}).fit(p)


SOFT = {
    ("kl", 3): (0.024511067902, 0.122555339512, 0.453398195044, 0.688637548262),
    ("kl", 5): (0.148513920445, 0.701640441341, 0.832490859644, 0.895306787278),
    ("l2", 0.9): (0.018653783647, 0.093268918236, 0.373075672945, 0.866561042368),
    ("chi2", 20): (0.099627860352, 0.432971491081, 0.531615619087, 0.707259761929),
    ("hellinger", 0.75): (
        0.082455495304, 0.412277476521, 0.865908584061, 0.961559602230,
    ),
}  # fmt: skip
HARD = {
    ("kl", 3): (0, 0, 0, 0.531057996832),
    ("kl", 5): (0, 0, 0.762201988077, 0.826626873787),
    ("l2", 0.9): (0, 0, 0, 0.855520607473),
    ("chi2", 20): (0, 0, 0.427408792304, 0.451648324246),
    ("hellinger", 0.75): (0, 0, 0.782544378698, 0.953579815112),
}
PINNED = [
    (strategy, name, bound, rate, value)
    for strategy, table in (("soft", SOFT), ("hard", HARD))
    for (name, bound), values in table.items()
    for rate, value in zip(RATES, values, strict=True)
]


@pytest.mark.parametrize(("strategy", "name", "bound", "rate", "value"), PINNED)
def test_pinned_rejection_rate(strategy, name, bound, rate, value):
    solved = game(
        strategy=strategy,
        divergence=name,
        divergence_bound=bound,
        false_alarm_rate=rate,
    )
    assert solved.rejection_rate_ == pytest.approx(value, abs=5e-12)
    assert solved.gap_ <= 1e-13


def test_pinned_rule_and_mixture_on_the_ray():
    solved = game(false_alarm_rate=0.05)
    rule = [0.3499558134, 0.2547421014, 0.2103248470, 0.1666062263, 0.1329498730]
    np.testing.assert_allclose(
        solved.rejection_, [*rule, 0.1233337879, 0, 0], atol=5e-11
    )
    mixture = [0.0245110679, 0.0490221358, 0.0735332037, 0.1225553395, 0.2205996111]
    np.testing.assert_allclose(
        solved.adversary_mixture_, [*mixture, 0.2941328148, 0.2156458271, 0], atol=5e-11
    )


def test_pinned_rule_between_breakpoints():
    rule = [1, 0.7711350995, 0.6643694845, 0.5592831733, 0.4821833940, 0.4558277791]
    np.testing.assert_allclose(
        game(false_alarm_rate=0.2).rejection_, [*rule, 0.1588123104, 0], atol=5e-11
    )


@pytest.mark.parametrize(
    ("value", "rate"),
    [
        (0.1, 0.0407978960),
        (0.3, 0.1223936881),
        (0.6, 0.3576617897),
        (0.9, 0.8394154474),
    ],
)
def test_pinned_least_false_alarm_rate(value, rate):
    assert game().min_false_alarm(1 - value) == pytest.approx(rate, abs=5e-11)


@pytest.mark.parametrize(
    ("rate", "value"),
    [(0.05, 0.129265184788), (0.1, 0.258530369576), (0.3, 0.775591108727)],
)
def test_pinned_game_with_ties(rate, value):
    p = np.array([1, 1, 1, 2, 2, 3, 3, 3, 4]) / 20
    soft = game(p, divergence_bound=3.3, false_alarm_rate=rate)
    hard = game(p, divergence_bound=3.3, false_alarm_rate=rate, strategy="hard")
    assert soft.rejection_rate_ == pytest.approx(value, abs=5e-12)
    assert soft.n_levels_ == 4
    assert hard.rejection_rate_ == 0


def test_pinned_game_with_a_level_on_the_bound():
    solved = game(np.array([1, 2, 3, 10]) / 16, false_alarm_rate=0.1)
    assert solved.rejection_rate_ == pytest.approx(0.494821977758, abs=5e-12)
    np.testing.assert_allclose(
        solved.rejection_, [0.6103560445, 0.4948219778, 0, 0], atol=5e-11
    )


@pytest.mark.parametrize(
    ("rate", "value", "rule"), [(0.05, 0.4, (0.4, 0, 0)), (0.5, 1, (1, 3 / 7, 3 / 7))]
)
def test_pinned_game_whose_lowest_level_is_on_the_bound(rate, value, rule):
    solved = game(np.array([1, 3, 4]) / 8, false_alarm_rate=rate)
    assert solved.rejection_rate_ == pytest.approx(value, abs=1e-14)
    np.testing.assert_allclose(solved.rejection_, rule, atol=1e-14)
    np.testing.assert_allclose(solved.adversary_mixture_, (1, 0, 0))


@pytest.mark.parametrize(
    ("p", "bound"),
    [(EIGHT, 1.285987629), (np.arange(1, 21) / 210, 3.544320516)],
)
def test_pinned_critical_divergence(p, bound):
    assert game(p).critical_divergence() == pytest.approx(bound, abs=5e-10)


def test_below_the_critical_divergence_the_game_is_trivial_and_above_it_is_not():
    critical = game().critical_divergence()
    below = game(divergence_bound=critical - 1e-9, false_alarm_rate=0.3)
    above = game(divergence_bound=critical + 1e-6, false_alarm_rate=0.3)
    assert below.is_trivial_
    np.testing.assert_array_equal(below.rejection_, 0.3)
    np.testing.assert_allclose(below.adversary_mixture_, EIGHT, atol=1e-15)
    assert not above.is_trivial_
    assert above.rejection_rate_ > 0.3


# --- the answers of one game fit together ------------------------------------------


def test_guarantees_state_both_rates_and_their_assumptions():
    false_alarm, miss = game(false_alarm_rate=0.2).guarantees_
    assert (false_alarm.quantity, false_alarm.bound) == ("false alarm rate", 0.2)
    assert miss.quantity == "miss rate"
    assert miss.bound == pytest.approx(1 - 0.453398195044)
    assert miss.confidence is None
    assert "p is known exactly" in miss.assumptions
    assert miss.assumptions[1] is Assumption.INTRUDER_FAR
    assert "the intruder is at least 3 away from p" in str(miss)
    assert miss.average_over == false_alarm.average_over == "the rule's coins"
    assert "on average over the rule's coins" in str(miss)
    assert miss.evidence["duality gap"] <= 1e-13


def test_deterministic_rule_has_no_coins_to_average_over():
    for promise in game(false_alarm_rate=0.2, strategy="hard").guarantees_:
        assert promise.average_over is None


@pytest.mark.parametrize("strategy", ["soft", "hard"])
def test_adversary_attains_the_value_at_the_bound(strategy):
    solved = game(false_alarm_rate=0.5, strategy=strategy)
    q = solved.adversary_
    used = q > 0
    assert np.count_nonzero(used) == 2
    assert q @ solved.rejection_ == pytest.approx(solved.rejection_rate_, abs=1e-14)
    divergence = np.sum(q[used] * np.log2(q[used] / EIGHT[used]))
    assert divergence == pytest.approx(3, abs=1e-12)


def test_worst_case_of_a_rule_that_is_not_monotone():
    value, q = game().worst_case([0.5, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.2])
    assert q @ [0.5, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.2] == pytest.approx(value)
    assert value < 0.5
    assert set(np.flatnonzero(q)) == {0, 7}


def test_a_hundred_thousand_levels_close_their_gap():
    p = np.random.default_rng(0).lognormal(0, 1.5, 100_000)
    p /= p.sum()
    solved = game(p, divergence_bound=float(np.median(-np.log2(p))))
    assert solved.n_levels_ == 100_000
    assert solved.gap_ <= 1e-12 * solved.rejection_rate_
    assert solved.worst_case()[0] == pytest.approx(solved.rejection_rate_, abs=1e-12)
    assert solved.rejection_ @ p == pytest.approx(0.05, abs=1e-12)


def test_rounding_never_lifts_a_probability_above_one():
    for rare in np.geomspace(1e-5, 1e-3, 300):
        solved = game([1 - rare, rare], divergence_bound=0.0014, false_alarm_rate=0.25)
        assert solved.rejection_.max() <= 1


def test_hard_rule_rejects_the_lowest_indices_inside_a_tie():
    p = np.array([0.3, 0.1, 0.1, 0.2, 0.1, 0.1, 0.1])
    rule = game(
        p, divergence_bound=3, strategy="hard", false_alarm_rate=0.35
    ).rejection_
    np.testing.assert_array_equal(rule, [0, 1, 1, 0, 1, 0, 0])


def test_hard_rule_fills_an_exact_budget():
    rule = game(EIGHT, strategy="hard", false_alarm_rate=0.06).rejection_
    np.testing.assert_array_equal(rule, [1, 1, 1, 0, 0, 0, 0, 0])


def test_security_curve_agrees_with_single_games_in_any_order():
    rates = np.array([0.5, 0.0, 0.05, 1.0, 0.2])
    curve = game().security_curve(rates)
    assert isinstance(curve, SecurityCurve)
    for i, rate in enumerate(rates):
        soft = game(false_alarm_rate=rate).miss_rate_
        hard = game(false_alarm_rate=rate, strategy="hard").miss_rate_
        assert curve.soft_miss_rates[i] == pytest.approx(soft, abs=1e-12)
        assert curve.hard_miss_rates[i] == pytest.approx(hard, abs=1e-12)


def test_clone_and_refit_repeat_the_answer():
    first = game()
    np.testing.assert_array_equal(clone(first).fit(EIGHT).rejection_, first.rejection_)


# --- draws --------------------------------------------------------------------------


def test_keyed_draws_depend_on_event_and_key_only():
    solved = game(false_alarm_rate=0.2)
    events = np.tile(np.arange(8), 50)
    batch = solved.reject(events, key="secret")
    np.testing.assert_array_equal(batch, np.tile(batch[:8], 50))
    single = [bool(solved.reject(event, key="secret")) for event in range(8)]
    np.testing.assert_array_equal(batch[:8], single)


def test_keyed_draws_follow_the_rule_over_keys():
    solved = game(false_alarm_rate=0.2)
    draws = np.array([solved.reject(np.arange(8), key=key) for key in range(4000)])
    error = 4 * np.sqrt(solved.rejection_ * (1 - solved.rejection_) / 4000)
    assert (np.abs(draws.mean(axis=0) - solved.rejection_) <= error).all()


def test_keyed_coins_of_two_events_are_independent():
    solved = RejectionGame(divergence_bound=None, false_alarm_rate=0.5).fit([0.5, 0.5])
    draws = np.array([solved.reject([0, 1], key=key) for key in range(4000)])
    assert abs(np.corrcoef(draws.T)[0, 1]) <= 4 / np.sqrt(4000)


def test_seeded_draws_follow_the_rule():
    solved = game(false_alarm_rate=0.2)
    events = np.repeat(np.arange(8), 100_000)
    draws = solved.reject(events, random_state=0).reshape(8, -1)
    error = 4 * np.sqrt(solved.rejection_ * (1 - solved.rejection_) / 100_000)
    assert (np.abs(draws.mean(axis=1) - solved.rejection_) <= error).all()


def test_events_never_heard_of_are_rejected():
    assert game().reject([-1, 8, 10**9], random_state=0).all()
    np.testing.assert_array_equal(game().rejection_probability([[-5], [8]]), [[1], [1]])


def test_drawing_with_two_sources_is_refused():
    with pytest.raises(ValueError, match="not both"):
        game().reject([0], random_state=0, key="secret")


def test_key_of_another_type_is_refused():
    with pytest.raises(
        TypeError, match="`key` must be an int, str or bytes, got float"
    ):
        game().reject([0], key=0.5)


def test_events_must_be_whole_numbers():
    with pytest.raises(TypeError, match="`events` must be integers, got dtype float64"):
        game().reject([0.5])


# --- other constructors -------------------------------------------------------------


def test_from_counts_smooths_and_says_plug_in():
    solved = RejectionGame.from_counts([0, 9, 90], smoothing=1, divergence_bound=2)
    exact = game(np.array([1, 10, 91]) / 102, divergence_bound=2)
    np.testing.assert_allclose(solved.rejection_, exact.rejection_, atol=1e-14)
    for promise in solved.guarantees_:
        assert promise.assumptions[0] is Assumption.EVENTS_SMOOTHED
        assert "the frequencies, 1 added to every count, are taken" in str(promise)
    plain = RejectionGame.from_counts([1, 9, 90], divergence_bound=2).guarantees_[0]
    assert "estimated probabilities are taken as exact" in plain.assumptions[0]


def test_counts_and_densities_of_any_scale():
    for scale in (1e-290, 1.0, 1e307):
        counts = RejectionGame.from_counts(np.array([1, 2, 10]) * scale)
        cells = RejectionGame.from_density(np.array([1, 2, 10]) * scale, scale)
        for solved in (counts, cells):
            exact = game(np.array([1, 2, 10]) / 13, divergence_bound=1)
            np.testing.assert_allclose(
                solved.rejection_, exact.rejection_, rtol=1e-12, atol=1e-15
            )


def test_from_levels_equals_fit_on_the_events():
    value = np.array([0.01, 0.02, 0.1])
    mass = np.array([0.1, 0.4, 0.5])
    levels = RejectionGame.from_levels(value, mass, divergence_bound=4)
    events = game(np.repeat(value, (10, 20, 5)), divergence_bound=4)
    assert levels.rejection_rate_ == pytest.approx(events.rejection_rate_, abs=1e-13)
    np.testing.assert_allclose(
        levels.rejection_, events.rejection_[[0, 10, 30]], atol=1e-12
    )


def test_from_density_normalises_and_says_plug_in():
    solved = RejectionGame.from_density(
        [1.0, 2.0, 5.0], [0.5, 1.0, 0.1], divergence_bound=1
    )
    exact = game(np.array([0.5, 2.0, 0.5]) / 3, divergence_bound=1)
    np.testing.assert_allclose(solved.rejection_, exact.rejection_, atol=1e-14)
    assert "plug-in density" in solved.guarantees_[1].assumptions[0]


# --- degenerate input (A6) ----------------------------------------------------------


@pytest.mark.parametrize(
    ("p", "message"),
    [
        ([0.5, -0.1, 0.6], r"`p` must hold finite numbers >= 0, got .*-0.1.* at 1"),
        ([0.5, np.nan, 0.5], "`p` must hold finite numbers >= 0, got .*nan.* at 1"),
        ([0.5, 0.4], "`p` must sum to 1, got a sum of 0.9"),
        ([], r"`p` must be a non-empty vector, got shape \(0,\)"),
        ([[0.5, 0.5]], r"`p` must be a non-empty vector, got shape \(1, 2\)"),
        ([1e-305, 1.0], "probability .*1e-305.*, below 1e-300: round it to 0"),
    ],
)
def test_not_a_probability_vector(p, message):
    with pytest.raises(ValueError, match=message):
        RejectionGame().fit(p)


def test_a_sum_off_by_rounding_is_rescaled():
    assert game(EIGHT * (1 + 5e-9)).rejection_rate_ == pytest.approx(
        game().rejection_rate_, abs=1e-13
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("false_alarm_rate", -0.1),
        ("false_alarm_rate", 1.1),
        ("false_alarm_rate", np.nan),
        ("divergence_bound", np.inf),
        ("divergence_bound", np.nan),
        ("divergence", "jeffreys"),
        ("base", 1.0),
        ("strategy", "mixed"),
        ("tie_tol", -1e-3),
    ],
)
def test_parameter_outside_its_range_is_named(name, value):
    with pytest.raises(ValueError, match=name):
        RejectionGame(**{name: value}).fit(EIGHT)
    with pytest.raises(ValueError, match=name):
        RejectionGame.from_counts([1, 2], **{name: value})


@pytest.mark.parametrize("strategy", ["soft", "hard"])
def test_rate_zero_rejects_nothing(strategy):
    solved = game(np.append(EIGHT, 0.0), false_alarm_rate=0, strategy=strategy)
    np.testing.assert_array_equal(solved.rejection_[:8], 0)
    assert solved.rejection_[8] == 1
    assert solved.rejection_rate_ == 0


@pytest.mark.parametrize("strategy", ["soft", "hard"])
def test_rate_one_rejects_everything(strategy):
    solved = game(false_alarm_rate=1, strategy=strategy)
    np.testing.assert_array_equal(solved.rejection_, 1)
    assert solved.rejection_rate_ == 1
    assert solved.gap_ == 0


@pytest.mark.parametrize(
    ("name", "largest"),
    [
        ("kl", np.log2(100)),
        ("l2", 0.98 + EIGHT @ EIGHT),
        ("chi2", 99.0),
        ("hellinger", 0.9),
    ],
)
def test_bound_that_leaves_no_intruder_names_the_largest(name, largest):
    with pytest.raises(InfeasibleError, match="largest admissible value") as caught:
        game(divergence=name, divergence_bound=largest + 1e-6)
    assert float(str(caught.value).split("is ")[-1].rstrip(".")) == pytest.approx(
        largest
    )
    game(divergence=name, divergence_bound=largest)  # just admissible


@pytest.mark.parametrize("bound", [0, -1, None, 0.9])
def test_unrestricted_intruder_makes_the_game_trivial(bound):
    soft = game(divergence_bound=bound, false_alarm_rate=0.3)
    hard = game(divergence_bound=bound, false_alarm_rate=0.3, strategy="hard")
    assert soft.is_trivial_
    assert soft.rejection_rate_ == 0.3
    np.testing.assert_array_equal(soft.rejection_, 0.3)
    assert hard.rejection_rate_ == 0


def test_unrestricted_intruder_is_named_in_the_assumptions():
    miss = game(divergence_bound=None).guarantees_[1]
    assert "the intruder is any distribution over the events" in miss.assumptions


def test_close_probabilities_are_one_level():
    p = np.array([0.1, 0.1 * (1 + 1e-13), 0.3, 0.5])
    solved = game(p / p.sum(), divergence_bound=2)
    assert solved.n_levels_ == 3
    assert solved.rejection_[0] == solved.rejection_[1]
    assert solved.gap_ <= 1e-12
    assert game(p / p.sum(), divergence_bound=2, tie_tol=0).n_levels_ == 4


@pytest.mark.parametrize("p", [[1.0], [0.25] * 4])
def test_one_level(p):
    solved = game(p, divergence_bound=np.log2(len(p)), false_alarm_rate=0.2)
    np.testing.assert_allclose(solved.rejection_, 0.2, atol=1e-15)
    assert solved.rejection_rate_ == pytest.approx(0.2)
    with pytest.raises(InfeasibleError):
        game(p, divergence_bound=np.log2(len(p)) + 0.1)


@pytest.mark.parametrize(
    ("name", "bound"),
    [("kl", 20), ("kl", 500), ("l2", 0.9), ("chi2", 1e6), ("chi2", 1e250),
     ("hellinger", 0.99), ("hellinger", 1 - 1e-14)],
)  # fmt: skip
def test_tiny_probabilities_are_solved_exactly(name, bound):
    p = np.array([1e-300, 1e-300 * (1 + 1e-14), 1e-200, 1e-12, 0.3, 0.7 - 1e-12])
    solved = game(p, divergence=name, divergence_bound=bound)
    assert solved.n_levels_ == 5
    assert 0.05 <= solved.rejection_rate_ <= 1
    assert solved.gap_ <= 1e-12
    assert solved.worst_case()[0] == pytest.approx(solved.rejection_rate_, abs=1e-12)


def test_one_low_event_of_tiny_mass_keeps_its_certificate():
    solved = game(np.array([1e-14, 0.4, 0.6 - 1e-14]), divergence_bound=10)
    assert np.isfinite(solved.upper_bound_)
    assert solved.gap_ <= 1e-13


def test_null_events_are_rejected_at_no_cost():
    with_null = game(np.insert(EIGHT, 3, 0.0), false_alarm_rate=0.2)
    assert with_null.rejection_[3] == 1
    assert with_null.adversary_mixture_[3] == 0
    without = game(false_alarm_rate=0.2).rejection_rate_
    assert with_null.rejection_rate_ == pytest.approx(without, abs=1e-15)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RejectionGame.from_counts([0, 0]), "`counts` must have a positive"),
        (lambda: RejectionGame.from_counts([1], smoothing=-1), "`smoothing` must be"),
        (
            lambda: RejectionGame.from_levels([0.1], [0.5, 0.5]),
            "same length, got 1 and 2",
        ),
        (
            lambda: RejectionGame.from_levels([0, 1], [0.5, 0.5]),
            "both 0 or both at least",
        ),
        (
            lambda: RejectionGame.from_levels([1, 1], [0.5, 0.4]),
            "`masses` must sum to 1",
        ),
        (lambda: RejectionGame.from_density([1, 2], [1, 0]), "`cell_volumes` must be"),
        (lambda: game().worst_case([0.5]), "`rejection` must be 8 probabilities"),
        (lambda: game().worst_case(np.full(8, 1.5)), "`rejection` must be 8"),
        (lambda: game().security_curve([0.1, 2]), "`false_alarm_rates` must be"),
        (
            lambda: game().min_false_alarm(1.5),
            r"`miss_rate` must lie in \[0, 1\], got 1.5",
        ),
    ],
)
def test_bad_argument_is_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    "ask",
    [
        lambda g: g.reject([0]),
        lambda g: g.worst_case(),
        lambda g: g.security_curve([0.1]),
        lambda g: g.min_false_alarm(0.5),
        lambda g: g.critical_divergence(),
    ],
)
def test_asking_before_fit(ask):
    with pytest.raises(NotFittedError):
        ask(RejectionGame())


# --- listed intruders, the dual game, curves and distances --------------------------


def test_listed_intruder_of_example_1_is_met_by_a_rule_that_is_not_monotone():
    solved = RejectionGame(
        adversaries=[[0.01, 0.02, 0.97]],
        divergence_bound=None,
        false_alarm_rate=0.1,
        strategy="hard",
    ).fit([0.06, 0.09, 0.85])
    np.testing.assert_array_equal(solved.rejection_, [0, 1, 0])
    assert solved.rejection_rate_ == pytest.approx(0.02)
    assert "the intruder follows the given distribution" in str(solved.guarantees_[1])


def test_listed_intruders_of_example_4_break_domination():
    """q3 - q4 >= e: the vertices of that set, e = 0.2."""
    laws = [[0, 0, 1, 0, 0], [0, 0, 0.6, 0.4, 0], [0.8, 0, 0.2, 0, 0],
            [0, 0.8, 0.2, 0, 0], [0, 0, 0.2, 0, 0.8]]  # fmt: skip
    solved = RejectionGame(
        adversaries=laws, divergence_bound=None, false_alarm_rate=0.1, strategy="hard"
    ).fit([0.02, 0.03, 0.05, 0.05, 0.85])
    assert solved.rejection_[2] == 1  # event 4 is as probable and worth nothing
    assert solved.rejection_rate_ == pytest.approx(0.2)
    assert solved.worst_case([1, 1, 0, 1, 0])[0] == 0
    assert "one of the 5 given distributions" in str(solved.guarantees_[1])


@pytest.mark.parametrize("strategy", ["soft", "hard"])
@pytest.mark.parametrize("tie_tol", [1e-12, 0.1, 0.6])
def test_the_dual_game_keeps_its_miss_rate_at_any_tie_tol(strategy, tie_tol):
    for seed in range(15):
        p = np.random.default_rng(seed).dirichlet(np.full(7, 2.0))
        bound = float(np.median(-np.log2(p)))
        params = {"divergence_bound": bound, "strategy": strategy, "miss_rate": 0.3}
        solved = RejectionGame(
            false_alarm_rate=None, tie_tol=tie_tol, **params
        ).fit(p)  # fmt: skip
        false_alarm, miss = solved.guarantees_
        missed = 1 - solved.worst_case()[0]
        assert missed <= miss.bound + 1e-12 <= 0.3 + 1e-9
        assert solved.rejection_ @ p <= false_alarm.bound + 1e-12
        assert solved.false_alarm_rate_ == pytest.approx(false_alarm.bound)
        assert solved.upper_bound_ >= solved.rejection_rate_ - 1e-12
        if strategy == "soft" and tie_tol < 1e-6:
            least = game(p, divergence_bound=bound).min_false_alarm(0.3)
            assert solved.false_alarm_rate_ == pytest.approx(least, abs=1e-10)
            assert "Theorem 46" in miss.source


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"adversaries": [[0.5, 0.5]]}, "pass divergence_bound=None with it, got 1.0"),
        ({"miss_rate": 0.1}, "the other is None, got 0.05 and 0.1"),
        ({"false_alarm_rate": None}, "the other is None, got None and None"),
        ({"miss_rate": 1.2, "false_alarm_rate": None}, "miss_rate"),
        (
            {"adversaries": [[0.5, 0.4]], "divergence_bound": None},
            "`adversaries` must sum to 1, got a sum of 0.9",
        ),
        (
            {"adversaries": [[1, 0], [2, -1]], "divergence_bound": None},
            r"`adversaries\[1\]` must hold finite numbers >= 0, got -1.0 at 1",
        ),
        (
            {"adversaries": [[0.2, 0.3, 0.5]], "divergence_bound": None},
            r"distributions over 2 events, one a row, got shape \(1, 3\)",
        ),
    ],
)
def test_settings_of_the_other_games_are_checked(params, message):
    with pytest.raises(ValueError, match=message):
        RejectionGame(**params).fit([0.4, 0.6])


def test_best_point_of_a_curve_is_the_cheapest():
    curve = game().security_curve(np.linspace(0, 1, 201))
    for alarm, miss, share in ((1, 50, 0.01), (1, 1, 0.5), (3, 1, 0.0), (0, 1, 1.0)):
        cost = (1 - share) * alarm * curve.false_alarm_rates
        cost = cost + share * miss * curve.soft_miss_rates
        best = curve.best(alarm, miss, share)
        assert best.cost == pytest.approx(cost.min())
        assert best.false_alarm_rate == curve.false_alarm_rates[cost.argmin()]
    for bad in ((-1, 1, 0.5), (1, np.inf, 0.5), (1, 1, 1.5)):
        with pytest.raises(ValueError, match="must"):
            curve.best(*bad)


def test_a_known_intruder_costs_no_more_than_the_worst_one():
    curve = game().security_curve(np.linspace(0, 1, 21))
    q = game(false_alarm_rate=0.3).adversary_
    assert (curve.known_miss_rates(q) <= curve.soft_miss_rates + 1e-12).all()
    with pytest.raises(ValueError, match="distributions over 8 events"):
        curve.known_miss_rates([0.5, 0.5])
    bare = SecurityCurve(*(np.zeros(1) for _ in range(3)))
    with pytest.raises(ValueError, match="does not know its target"):
        bare.known_miss_rates(q)


def test_divergence_of_events_that_never_occur():
    assert divergence_of([0.5, 0.5], [1.0, 0.0]) == np.inf
    assert divergence_of([0.5, 0.5], [1.0, 0.0], "chi2") == np.inf
    assert divergence_of([1.0, 0.0], [1.0, 0.0], "chi2") == 0
    assert divergence_of([0.0, 1.0], [0.5, 0.5], base=4) == 0.5
    for bad in ({"kind": "js"}, {"base": 1.0}):
        with pytest.raises(ValueError, match="must be"):
            divergence_of([0.5, 0.5], [0.5, 0.5], **bad)


def test_few_known_intruders_bound_no_quantile():
    laws = np.random.default_rng(0).dirichlet(np.ones(3), size=58)
    with pytest.raises(ValueError, match="58 intruders are too few .* at least 59"):
        divergence_bound([0.2, 0.3, 0.5], laws)
    least = divergence_bound([0.2, 0.3, 0.5], np.vstack([laws, [[0, 0, 1]]]))
    every = divergence_of(np.vstack([laws, [[0, 0, 1]]]), [0.2, 0.3, 0.5])
    assert least == every.min()
    with pytest.raises(ValueError, match="`quantile` must lie in"):
        divergence_bound([0.2, 0.3, 0.5], laws, quantile=0)


def test_intruders_to_come_keep_the_distance_as_often_as_promised():
    """The divergence of (t, 1 - t) from almost (0, 1) in l2 is 2 t^2, t uniform."""
    nearer = 0
    for seed in range(2000):
        t = np.random.default_rng(seed).uniform(size=80)
        laws = np.c_[t, 1 - t]
        bound = divergence_bound(
            [1e-12, 1 - 1e-12], laws, quantile=0.1, confidence=0.9, kind="l2"
        )
        nearer += np.sqrt(bound / 2) > 0.1
    assert binomtest(nearer, 2000, 0.1, alternative="greater").pvalue >= 0.001
    assert nearer > 0


# --- a divergence of one's own ------------------------------------------------------


def half_l1(q, p):
    """Total variation, half the sum of absolute differences."""
    return np.abs(q - p).sum(axis=1) / 2


def test_a_divergence_of_ones_own_names_what_it_assumes():
    solved = RejectionGame(divergence=half_l1, divergence_bound=0.9).fit(EIGHT)
    miss = solved.guarantees_[1]
    assert Assumption.DIVERGENCE_CONVEX in miss.assumptions
    assert miss.bound == pytest.approx(1 - solved.rejection_rate_)
    assert solved.rejection_rate_ > 0.05
    copied = pickle.loads(pickle.dumps(clone(solved).fit(EIGHT)))
    assert copied.rejection_rate_ == solved.rejection_rate_
    free = clone(solved).set_params(divergence_bound=None).fit(EIGHT)
    assert free.is_trivial_


@pytest.mark.parametrize(
    ("divergence", "bound", "error", "message"),
    [
        (lambda q, p: 1 - ((q - p) ** 2).sum(axis=1), 0.5, ValueError, "be convex"),
        (lambda q, p: np.sqrt(half_l1(q, p)), 0.9, ValueError, "be convex"),
        (lambda q, p: np.abs(q - p), 0.9, ValueError, "number for each of 8"),
        (lambda q, p: np.full(len(q), np.nan), 0.9, ValueError, "with nan"),
        (half_l1, 3.0, InfeasibleError, "leaves no intruder"),
    ],
)
def test_a_function_that_is_no_convex_divergence_is_refused(
    divergence, bound, error, message
):
    with pytest.raises(error, match=message):
        RejectionGame(divergence=divergence, divergence_bound=bound).fit(EIGHT)


def test_a_divergence_of_ones_own_needs_events_and_has_no_critical_bound():
    own = RejectionGame(divergence=half_l1, divergence_bound=0.9)
    with pytest.raises(ValueError, match="not `from_levels`"):
        RejectionGame.from_levels([0.1, 0.4], [0.2, 0.8], **own.get_params())
    with pytest.raises(ValueError, match="divergences that have a name"):
        own.fit(EIGHT).critical_divergence()


def two_decimals(seed):
    """Probabilities of two decimals, all positive."""
    rng = np.random.default_rng(seed)
    n = rng.integers(3, 8)
    return (1 + rng.multinomial(100 - n, np.full(n, 1 / n))) / 100


@pytest.mark.parametrize(
    "p", [np.array([0.2, 0.18, 0.38, 0.24]), *map(two_decimals, range(30))]
)
def test_an_event_on_the_bound_is_answered_whatever_its_rounding(p):
    """Alone, event 0 has a total variation of 1 - p[0], computed a few bits below."""
    solved = RejectionGame(
        divergence=half_l1, divergence_bound=round(1 - p[0], 2), false_alarm_rate=0.2
    ).fit(p)
    assert 1 - solved.rejection_[0] <= solved.guarantees_[1].bound + 1e-9


def test_a_law_on_the_bound_is_met_with_and_without_a_name():
    p = np.array([3, 3, 3, 3, 1, 2, 2]) / 17
    bound = 14 / 3 - 1e-15  # of event 0 alone, whose 3 / 17 is rounded
    named, own = (
        RejectionGame(
            divergence=divergence, divergence_bound=bound, false_alarm_rate=0.05
        ).fit(p)
        for divergence in ("chi2", lambda q, p: divergence_of(q, p, "chi2"))
    )
    assert own.rejection_rate_ == pytest.approx(named.rejection_rate_, abs=1e-9)


# --- events of probability 0 --------------------------------------------------------


@pytest.mark.parametrize("divergence", ["kl", "l2", "chi2", "hellinger", half_l1])
def test_with_null_events_the_distance_is_that_on_the_others(divergence):
    """A trace of an event that never occurs is far in kl, and is rarely rejected."""
    p = np.array([0.0, 0.1, 0.2, 0.7])
    points = divergence_of(np.eye(3), p[1:], divergence)
    bound = float(np.mean(points[1:]))
    solved = RejectionGame(
        false_alarm_rate=0.2, divergence=divergence, divergence_bound=bound
    ).fit(p)
    miss = solved.guarantees_[1]
    assert miss.assumptions[1] is Assumption.INTRUDER_FAR_WHERE_POSITIVE
    laws = np.random.default_rng(0).dirichlet(np.full(3, 0.4), size=500)
    far = laws[divergence_of(laws, p[1:], divergence) >= bound]
    traces = np.random.default_rng(1).uniform(size=(len(far), 1)) ** 8
    rejected = np.c_[traces, (1 - traces) * far] @ solved.rejection_
    assert len(far) > 50
    assert (1 - rejected <= miss.bound + 1e-9).all()


def test_known_intruders_are_measured_on_events_of_positive_probability():
    p = np.array([0.0, 0.4, 0.6])
    laws = np.random.default_rng(0).dirichlet(np.ones(3), size=100)
    laws[:5] = [1.0, 0.0, 0.0]
    others = laws[5:, 1:] / laws[5:, 1:].sum(axis=1, keepdims=True)
    known = np.r_[others, np.tile([1.0, 0.0], (5, 1))]  # as far, for a low rank
    expected = divergence_bound(p[1:], known, quantile=0.1, confidence=0.9)
    bound = divergence_bound(p, laws, quantile=0.1, confidence=0.9)
    assert bound == pytest.approx(expected, rel=1e-12)


def test_a_curve_without_points_has_no_best_one():
    curve = RejectionGame(divergence_bound=0.5).fit([0.3, 0.7]).security_curve([])
    with pytest.raises(ValueError, match="no point"):
        curve.best(1.0, 1.0, 0.5)
