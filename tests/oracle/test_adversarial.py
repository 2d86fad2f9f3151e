"""The games against the linear program over events and against brute force."""

from itertools import product

import numpy as np
import pytest
from mpmath import mp, mpf
from scipy.optimize import brentq, linprog, nnls
from scipy.special import rel_entr
from sklearn.linear_model import LogisticRegression

from prudent import LowDensityRejector, RejectionGame
from prudent.adversarial import divergence_of
from prudent.rules.rule import FalseAlarms
from prudent.rules.scores import CalibrationScores

pytestmark = pytest.mark.oracle

DIVERGENCE = {
    "kl": lambda q, p: np.sum(q * np.log2(np.where(q > 0, q, 1) / p)),
    "l2": lambda q, p: np.sum((q - p) ** 2),
    "chi2": lambda q, p: np.sum(q**2 / p) - 1,
    "hellinger": lambda q, p: 1 - np.sum(np.sqrt(p * q)),
}


def edge(p, i, j, q):
    mixture = np.zeros(len(p))
    mixture[i], mixture[j] = q, 1 - q
    return mixture


def extreme_intruders(name, p, bound, divergence=None):
    """Vertices of the edges' admissible parts, from the definition alone."""
    divergence = divergence or DIVERGENCE[name]
    far = [divergence(np.eye(len(p))[i], p) >= bound for i in range(len(p))]
    found = [np.eye(len(p))[i] for i in np.flatnonzero(far)]
    for i, j in product(np.flatnonzero(far), np.flatnonzero(~np.array(far))):

        def excess(q, i=i, j=j):
            return divergence(edge(p, i, j, q), p) - bound

        found.append(edge(p, i, j, brentq(excess, 0, 1, xtol=1e-15, rtol=1e-15)))
    return np.array(found)


def random_game(name, seed):
    rng = np.random.default_rng((seed, len(name)))
    n = int(rng.integers(2, 9))
    p = rng.dirichlet(np.full(n, rng.choice([0.4, 1.0, 3.0])))
    if seed % 3 == 0:  # ties
        p = np.maximum(1, np.round(6 * p / p.max()))
    p = np.maximum(p, 1e-6) / np.maximum(p, 1e-6).sum()
    points = [DIVERGENCE[name](row, p) for row in np.eye(n)]
    bound = float(rng.uniform(0.8 * min(points), max(points)))
    return p, bound, float(rng.choice([0.01, 0.05, 0.2, 0.5, 0.9]))


def program_value(p, intruders, rate):
    """max z: intruders @ r >= z, p @ r <= rate, 0 <= r <= 1, over single events."""
    floors = np.c_[-intruders, np.ones(len(intruders))]
    result = linprog(
        np.append(np.zeros(len(p)), -1),
        A_ub=np.vstack([floors, np.append(p, 0)]),
        b_ub=np.append(np.zeros(len(intruders)), rate),
        bounds=(0, 1),
        method="highs-ds",
        options={
            "primal_feasibility_tolerance": 1e-10,
            "dual_feasibility_tolerance": 1e-10,
        },
    )
    assert result.status == 0
    return -result.fun


@pytest.mark.parametrize("name", DIVERGENCE)
@pytest.mark.parametrize("block", range(10))
def test_soft_value_equals_the_program_over_events(name, block):
    for seed in range(10 * block, 10 * block + 10):
        p, bound, rate = random_game(name, seed)
        game = RejectionGame(
            divergence=name, divergence_bound=bound, false_alarm_rate=rate
        ).fit(p)
        value = program_value(p, extreme_intruders(name, p, bound), rate)
        assert game.rejection_rate_ == pytest.approx(value, abs=1e-9)
        assert game.gap_ <= 1e-12


# The same in hundreds of digits, for events too rare for a program in floats.
EXACT_DIVERGENCE = {
    "kl": lambda q, p: sum(
        q * mp.log(q / p, 2) for q, p in zip(q, p, strict=True) if q
    ),
    "l2": lambda q, p: sum((q - p) ** 2 for q, p in zip(q, p, strict=True)),
    "chi2": lambda q, p: sum(q * q / p for q, p in zip(q, p, strict=True)) - 1,
    "hellinger": lambda q, p: (
        1 - sum(mp.sqrt(q * p) for q, p in zip(q, p, strict=True))
    ),
}


def exact_odds(name, p, bound, l, h):
    """Odds of event l against h at which their mixture meets the bound, by halving."""
    near, far = mpf(-1500), mpf(1500)
    for _ in range(120):
        x = (near + far) / 2
        q = [mpf(0)] * len(p)
        q[l], q[h] = 1 / (1 + mp.exp(-x)), 1 / (1 + mp.exp(x))
        near, far = (near, x) if EXACT_DIVERGENCE[name](q, p) >= bound else (x, far)
    return mp.exp(far)


def exact_least_rate(p, low, odds, value):
    """Least p @ r of a rule that rejects each point and edge at rate `value` or more.

    With r = value + a on the one or two low events, the others are rejected as little
    as the edges let them; the cost is piecewise linear in a and least at a vertex.
    """
    high = [h for h in range(len(p)) if h not in low]
    alone = [[0, 1 - value, *(value / odds[l, h] for h in high)] for l in low]
    vertices = list(product(*alone))
    if len(low) == 2:
        for h in high:
            ratio = odds[low[0], h] / odds[low[1], h]
            vertices += [(a, a * ratio) for a in alone[0]]
            vertices += [(a / ratio, a) for a in alone[1]]

    def cost(a):
        rate = sum(p[l] * (value + a_l) for l, a_l in zip(low, a, strict=True))
        for h in high:
            saved = min(odds[l, h] * a_l for l, a_l in zip(low, a, strict=True))
            rate += p[h] * (value - min(value, saved))
        return rate

    return min(cost(a) for a in vertices if max(a) <= 1 - value)


@pytest.mark.parametrize("name", DIVERGENCE)
def test_games_with_the_rarest_events_keep_the_miss_rate_at_the_least_cost(name):
    for seed in range(25):
        rng = np.random.default_rng((seed, len(name)))
        n_tiny, n_plain = int(rng.integers(1, 3)), int(rng.integers(2, 4))
        if name in ("kl", "chi2"):  # l2 and hellinger hardly tell rare events apart
            n_tiny += int(rng.integers(0, 2))
        n_low = min(n_tiny, int(rng.integers(1, 3)))
        if name in ("l2", "hellinger"):
            n_low = n_tiny
        tiny = 10.0 ** -rng.uniform(8, 60, n_tiny)
        p = np.sort(np.r_[tiny, rng.dirichlet(np.full(n_plain, 2.0))])
        p /= p.sum()
        points = np.array([DIVERGENCE[name](row, p) for row in np.eye(len(p))])
        share = rng.uniform(0.1, 0.95)
        bound = float(points[n_low - 1] ** share * points[n_low] ** (1 - share))
        miss_rate = float(rng.uniform(0.02, 0.98))
        solved = RejectionGame(
            divergence=name,
            divergence_bound=bound,
            false_alarm_rate=None,
            miss_rate=miss_rate,
        ).fit(p)
        with mp.workdps(200):
            exact = [mpf(float(event)) for event in p]
            low, high = range(n_low), range(n_low, len(p))
            odds = {
                (l, h): exact_odds(name, exact, mpf(bound), l, h)
                for l, h in product(low, high)
            }
            least = exact_least_rate(exact, low, odds, 1 - mpf(miss_rate))
            rule = solved.rejection_
            rejected = [rule[l] for l in low] + [
                float((odds[l, h] * rule[l] + rule[h]) / (odds[l, h] + 1))
                for l, h in odds
            ]
        assert 1 - min(rejected) <= miss_rate + 1e-9
        assert solved.false_alarm_rate_ == pytest.approx(float(least), rel=1e-9, abs=0)
        assert solved.rejection_ @ p == pytest.approx(float(least), rel=1e-9, abs=0)
        assert solved.gap_ <= 1e-12


def convex(q, p):
    """Jensen and Shannon's divergence to p and a bit of an uneven distance."""
    middle = (q + p) / 2
    information = (rel_entr(q, middle) + rel_entr(p, middle)).sum(axis=1) / 2
    return information + 0.1 * (np.arange(1, len(p) + 1) * np.abs(q - p)).sum(axis=1)


#: The four that have a name, given as functions.
OWN = {
    "kl": lambda q, p: rel_entr(q, p).sum(axis=1) / np.log(2),
    "l2": lambda q, p: ((q - p) ** 2).sum(axis=1),
    "chi2": lambda q, p: (q**2 / p).sum(axis=1) - 1,
    "hellinger": lambda q, p: 1 - np.sqrt(q * p).sum(axis=1),
}


@pytest.mark.parametrize("strategy", ["soft", "hard"])
@pytest.mark.parametrize("name", DIVERGENCE)
def test_a_divergence_given_as_function_is_the_one_of_its_name(name, strategy):
    for seed in range(15):
        p, bound, rate = random_game(name, seed)
        settings = {"divergence_bound": bound, "strategy": strategy}
        named, own = (
            RejectionGame(divergence=divergence, false_alarm_rate=rate, **settings).fit(
                p
            )
            for divergence in (name, OWN[name])
        )
        assert own.rejection_rate_ == pytest.approx(named.rejection_rate_, abs=1e-8)
        assert own.rejection_ @ p <= rate * (1 + 1e-9)
        assert named.worst_case(own.rejection_)[0] == pytest.approx(
            own.rejection_rate_, abs=1e-8
        )
        assert own.gap_ <= 1e-8
        dual_named, dual_own = (
            RejectionGame(
                divergence=divergence,
                false_alarm_rate=None,
                miss_rate=0.4,
                **settings,
            ).fit(p)
            for divergence in (name, OWN[name])
        )
        assert dual_own.false_alarm_rate_ == pytest.approx(
            dual_named.false_alarm_rate_, abs=1e-8
        )


def test_a_divergence_of_ones_own_is_the_program_over_events():
    for seed in range(25):
        p, _, rate = random_game("kl", seed)
        points = convex(np.eye(len(p)), p)
        bound = float(np.random.default_rng(seed).uniform(min(points), max(points)))
        game = RejectionGame(
            divergence=convex, divergence_bound=bound, false_alarm_rate=rate
        ).fit(p)
        intruders = extreme_intruders(
            None, p, bound, lambda q, p: float(convex(q[np.newaxis], p)[0])
        )
        value = program_value(p, intruders, rate)
        assert game.rejection_rate_ == pytest.approx(value, abs=1e-8)
        assert game.upper_bound_ >= value - 1e-9
        assert game.gap_ <= 1e-8
        laws = np.random.default_rng(seed).dirichlet(np.full(len(p), 0.2), size=2000)
        far = laws[divergence_of(laws, p, convex) >= bound]
        assert (far @ game.rejection_ >= game.rejection_rate_ - 1e-9).all()


def test_the_divergence_of_the_class_from_the_intruder_binds_nobody():
    """Section 6: D(P || Q) is infinite for whoever leaves an event out."""
    p, _, rate = random_game("kl", 0)
    game = RejectionGame(
        divergence=lambda q, p: rel_entr(p, q).sum(axis=1),
        divergence_bound=100.0,
        false_alarm_rate=rate,
    ).fit(p)
    assert game.is_trivial_
    assert game.rejection_rate_ == pytest.approx(rate)


@pytest.mark.parametrize("name", DIVERGENCE)
def test_worst_case_equals_the_search_over_all_edges(name):
    for seed in range(40):
        p, bound, _ = random_game(name, seed)
        game = RejectionGame(divergence=name, divergence_bound=bound).fit(p)
        rule = np.random.default_rng(seed).uniform(size=len(p))
        if seed % 4 == 0:
            rule = np.round(rule)
        value, q = game.worst_case(rule)
        exact = (extreme_intruders(name, p, bound) @ rule).min()
        assert value == pytest.approx(exact, abs=1e-11)
        assert q @ rule == pytest.approx(value, abs=1e-14)


@pytest.mark.parametrize("name", DIVERGENCE)
def test_hard_value_equals_the_best_of_all_deterministic_rules(name):
    for seed in range(25):
        p, bound, rate = random_game(name, seed)
        game = RejectionGame(
            divergence=name,
            divergence_bound=bound,
            false_alarm_rate=rate,
            strategy="hard",
        ).fit(p)
        rules = np.array(list(product((0.0, 1.0), repeat=len(p))))
        rules = rules[rules @ p <= rate * (1 + 1e-12)]
        values = (rules @ extreme_intruders(name, p, bound).T).min(axis=1)
        assert game.rejection_rate_ == pytest.approx(values.max(), abs=1e-12)
        assert game.worst_case()[0] == pytest.approx(values.max(), abs=1e-11)


@pytest.mark.parametrize("name", DIVERGENCE)
def test_mixture_is_a_mixture_of_admissible_intruders(name):
    for seed in range(40):
        p, bound, rate = random_game(name, seed)
        game = RejectionGame(
            divergence=name, divergence_bound=bound, false_alarm_rate=rate
        ).fit(p)
        target = game.adversary_mixture_
        if game.is_trivial_:  # p itself, which only their hull contains
            np.testing.assert_allclose(target, p, atol=1e-15)
        intruders = extreme_intruders(name, p, bound)
        _, residual = nnls(
            np.vstack([intruders.T, np.ones(len(intruders))]), np.append(target, 1)
        )
        assert residual <= 1e-8


@pytest.mark.parametrize("name", DIVERGENCE)
def test_a_program_finds_no_cheaper_rule_for_the_dual_game(name):
    for seed in range(25):
        p, bound, _ = random_game(name, seed)
        game = RejectionGame(divergence=name, divergence_bound=bound).fit(p)
        intruders = extreme_intruders(name, p, bound)
        result = linprog(
            p,
            A_ub=-intruders,
            b_ub=np.full(len(intruders), -0.7),
            bounds=(0, 1),
            method="highs-ds",
            options={"primal_feasibility_tolerance": 1e-10},
        )
        assert game.min_false_alarm(0.3) == pytest.approx(result.fun, abs=1e-9)


def cheapest_program(p, intruders, value, deterministic=False):
    """min p @ r: intruders @ r >= value, 0 <= r <= 1, over single events."""
    if deterministic:
        rules = np.array(list(product((0.0, 1.0), repeat=len(p))))
        good = ((rules @ intruders.T) >= value * (1 - 1e-12)).all(axis=1)
        return (rules[good] @ p).min()
    result = linprog(
        p,
        A_ub=-intruders,
        b_ub=np.full(len(intruders), -value),
        bounds=(0, 1),
        method="highs-ds",
        options={"primal_feasibility_tolerance": 1e-10},
    )
    assert result.status == 0
    return result.fun


@pytest.mark.parametrize("strategy", ["soft", "hard"])
@pytest.mark.parametrize("name", DIVERGENCE)
def test_least_false_alarms_for_a_miss_rate(name, strategy):
    for seed in range(25):
        p, bound, _ = random_game(name, seed)
        intruders = extreme_intruders(name, p, bound)
        for miss_rate in (0.0, 0.05, 0.3, 0.8, 1.0):
            game = RejectionGame(
                divergence=name,
                divergence_bound=bound,
                false_alarm_rate=None,
                miss_rate=miss_rate,
                strategy=strategy,
            ).fit(p)
            best = cheapest_program(p, intruders, 1 - miss_rate, strategy == "hard")
            assert game.false_alarm_rate_ == pytest.approx(best, abs=1e-9)
            assert game.rejection_ @ p == pytest.approx(best, abs=1e-9)
            assert game.miss_rate_ <= miss_rate + 1e-10
            missed = 1 - (intruders @ game.rejection_).min()
            assert missed <= game.guarantees_[1].bound + 1e-9
            assert game.gap_ <= 1e-10


def random_list(seed):
    rng = np.random.default_rng((seed, 99))
    n = int(rng.integers(2, 8))
    p = rng.dirichlet(np.full(n, rng.choice([0.4, 1.0, 3.0])))
    p = np.maximum(p, 1e-6) / np.maximum(p, 1e-6).sum()
    if seed % 5 == 0:
        p[0] = 0
        p /= p.sum()
    laws = rng.dirichlet(np.full(n, rng.choice([0.3, 1.0])), size=rng.integers(1, 6))
    return p, laws, float(rng.choice([0.0, 0.01, 0.05, 0.2, 0.5, 0.9, 1.0]))


def listed(laws, **params):
    return RejectionGame(adversaries=laws, divergence_bound=None, **params)


@pytest.mark.parametrize("block", range(4))
def test_soft_value_against_a_list_equals_the_program(block):
    for seed in range(15 * block, 15 * block + 15):
        p, laws, rate = random_list(seed)
        game = listed(laws, false_alarm_rate=rate).fit(p)
        free = np.where(p > 0, laws, 0)
        result = linprog(
            np.append(np.zeros(len(p)), -1),
            A_ub=np.vstack([np.c_[-free, np.ones(len(laws))], np.append(p, 0)]),
            b_ub=np.append(laws[:, p == 0].sum(axis=1), rate),
            bounds=(0, 1),
            method="highs-ds",
        )
        assert game.rejection_rate_ == pytest.approx(-result.fun, abs=1e-8)
        assert game.rejection_ @ p <= rate + 1e-12
        assert game.gap_ <= 1e-8
        value, q = game.worst_case()
        assert value == pytest.approx((laws @ game.rejection_).min(), abs=1e-12)
        assert q @ game.rejection_ == pytest.approx(value, abs=1e-12)
        # Neyman and Pearson: nothing beats the certified bound against the mixture.
        _, residual = nnls(laws.T, game.adversary_mixture_)
        assert residual <= 1e-9
        if 0 < rate < 1 and not (p == 0).any():
            assert game.is_trivial_ == (game.rejection_rate_ <= rate + 1e-9)


@pytest.mark.parametrize("block", range(4))
def test_hard_rules_against_a_list_equal_the_best_of_all(block):
    for seed in range(10 * block, 10 * block + 10):
        p, laws, rate = random_list(seed)
        rules = np.array(list(product((0.0, 1.0), repeat=len(p))))
        rules = rules[(rules[:, p == 0] == 1).all(axis=1)]
        values = (rules @ laws.T).min(axis=1)
        game = listed(laws, false_alarm_rate=rate, strategy="hard").fit(p)
        best = values[rules @ p <= rate * (1 + 1e-12)].max()
        assert game.rejection_rate_ == pytest.approx(best, abs=1e-12)
        assert game.rejection_ @ p <= rate * (1 + 1e-11)
        assert game.gap_ <= 1e-9
        miss_rate = float(np.random.default_rng(seed).choice([0.0, 0.1, 0.4, 1.0]))
        dual = listed(
            laws, false_alarm_rate=None, miss_rate=miss_rate, strategy="hard"
        ).fit(p)
        cheapest = (rules @ p)[values >= (1 - miss_rate) * (1 - 1e-12)].min()
        assert dual.false_alarm_rate_ == pytest.approx(cheapest, abs=1e-12)
        assert dual.miss_rate_ <= miss_rate + 1e-11


def test_soft_dual_against_a_list_inverts_the_game():
    for seed in range(30):
        p, laws, rate = random_list(seed)
        game = listed(laws, false_alarm_rate=rate).fit(p)
        if not 1e-6 < game.rejection_rate_ < 1 - 1e-6 or rate == 0:
            continue
        dual = listed(laws, false_alarm_rate=None, miss_rate=game.miss_rate_).fit(p)
        assert dual.false_alarm_rate_ == pytest.approx(rate, abs=1e-7)
        assert dual.gap_ <= 1e-8
        assert dual.min_false_alarm(game.miss_rate_) == pytest.approx(rate, abs=1e-7)


def test_a_list_of_the_extreme_intruders_gives_the_game_at_a_distance():
    for seed in range(20):
        p, bound, rate = random_game("kl", seed)
        laws = extreme_intruders("kl", p, bound)
        far = RejectionGame(divergence_bound=bound, false_alarm_rate=rate).fit(p)
        assert listed(laws, false_alarm_rate=rate).fit(p).rejection_rate_ == (
            pytest.approx(far.rejection_rate_, abs=1e-9)
        )


@pytest.mark.parametrize("name", DIVERGENCE)
def test_divergence_of_is_the_definition(name):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        p, q = rng.dirichlet(np.full(6, 0.7), size=2)
        expected = DIVERGENCE[name](q, p)
        assert divergence_of(q, p, name) == pytest.approx(expected, rel=1e-9, abs=1e-14)
        nearest = divergence_of(p, p, name)
        assert 0 <= nearest <= 1e-15
        points = divergence_of(np.eye(6), p, name)
        np.testing.assert_allclose(
            points, [DIVERGENCE[name](row, p) for row in np.eye(6)], rtol=1e-12
        )


def test_known_miss_rates_are_those_of_the_best_test():
    for seed in range(20):
        p, laws, _ = random_list(seed)
        rates = np.linspace(0, 1, 9)
        curve = listed(laws[:1], false_alarm_rate=0.1).fit(p).security_curve(rates)
        known = curve.known_miss_rates(laws[0])
        np.testing.assert_allclose(known, curve.soft_miss_rates, atol=1e-9)
        far = RejectionGame(divergence_bound=None).fit(p).security_curve(rates)
        law = np.random.default_rng(seed).dirichlet(np.ones(len(p)))
        for rate, miss in zip(rates, far.known_miss_rates(law), strict=True):
            powers = linprog(
                -law, A_ub=[p], b_ub=[rate], bounds=(0, 1), method="highs-ds"
            )
            assert miss == pytest.approx(1 + powers.fun, abs=1e-9)


@pytest.mark.parametrize(
    ("n", "rate"), [(19, 0.07), (30, 0.5), (45, 0.05), (200, 0.333)]
)
def test_exact_ranks_are_the_unbiased_quantile_of_least_variance(n, rate):
    """Uhlmann's estimator takes rank k or k + 1 by a coin.

    The rate of false alarms below the r-th of n scores is Beta(r, n + 1 - r).
    """
    scores = CalibrationScores((np.arange(n, dtype=float),), (None,))
    coins = (np.arange(4000) + 0.5) / 4000
    ranks = np.array(
        [FalseAlarms(scores=scores, coin=u).rule(rate).record["rank"] for u in coins]
    )
    k = int((n + 1) * rate)
    assert set(ranks) <= {k, k + 1}
    mean = ranks / (n + 1)
    variance = mean * (1 - mean) / (n + 2)
    share = (n + 1) * rate - k
    expected = share * (1 - share) / ((n + 1) * (n + 2)) + rate * (1 - rate) / (n + 2)
    assert mean.mean() == pytest.approx(rate, abs=1e-4)
    assert variance.mean() + mean.var() == pytest.approx(expected, rel=1e-3)
    assert expected <= 1 / (4 * (n + 1))
    rows = np.random.default_rng(0).normal(size=(3 * n, 2))
    for seed in range(3):
        detector = LowDensityRejector(
            estimator=LogisticRegression(),
            false_alarm_rate=rate,
            calibration_size=1 / 3,
            exact=True,
            random_state=seed,
        ).fit(rows)
        (promise,) = detector.guarantees_
        assert (promise.bound, detector.n_calibration_) == (rate, n)
        assert detector.rule_.record["rank"] in (k, k + 1)
