"""Promises under shift: closed forms, roots, and their meaning."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prudent import Guarantee
from prudent.core.assumptions import Assumption
from prudent.core.shift import DIVERGENCES, bernoulli_divergence, worst_rate

OF_THESE = "this shift is that of the rows that the promise is about"
KINDS = [
    *((name, None) for name in DIVERGENCES if name != "renyi"),
    ("renyi", 0.5),
    ("renyi", 2.0),
    ("renyi", 7.0),
    ("renyi", 1.0),
]


def radius_of(divergence, value):
    return 1 + value if divergence == "likelihood_ratio" else value


@pytest.mark.parametrize(
    ("divergence", "radius", "order", "expected"),
    [
        ("kl", 0.1, None, 0.172949347713),
        ("kl", 1e-6, None, 0.050308520503),
        ("reverse_kl", 0.1, None, 0.206401407806),
        ("chi2", 0.1, None, 0.118920243760),
        ("reverse_chi2", 0.1, None, 0.168315392572),
        ("hellinger", 0.02, None, 0.170646173893),
        ("total_variation", 0.1, None, 0.15),
        ("likelihood_ratio", 2, None, 0.1),
        ("renyi", 0.1, 2, 0.120679690213),
        ("renyi", 0.1, 0.5, 0.263553580567),
    ],
)
def test_worst_rates(divergence, radius, order, expected):
    found = worst_rate(0.05, divergence, radius, order)
    assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("divergence", "order", "expected"),
    [
        ("kl", None, 0.020654218913),
        ("reverse_kl", None, 0.016706501179),
        ("chi2", None, 1 / 19),
        ("reverse_chi2", None, 1 / 36),
        ("hellinger", None, 0.004627221436),
        ("total_variation", None, 0.05),
        ("likelihood_ratio", None, 2),
        ("renyi", 2, 0.051293294388),
        ("renyi", 0.5, 0.009275920330),
    ],
)
def test_tolerances(divergence, order, expected):
    promise = Guarantee(quantity="error rate", bound=0.05, sense="<=")
    found = promise.shift_tolerance(0.1, divergence, order=order)
    assert found == pytest.approx(expected, abs=1e-12)


def exact_divergence(q, p, divergence, order):
    """Of two Bernoulli laws, in 700 digits."""
    mp = pytest.importorskip("mpmath")
    with mp.workdps(700):
        pairs = [(mp.mpf(q), mp.mpf(p))]
        pairs.append((1 - pairs[0][0], 1 - pairs[0][1]))
        if divergence.startswith("reverse"):
            pairs = [(y, x) for x, y in pairs]
        kind = divergence.removeprefix("reverse_")
        finite = kind == "hellinger" or (divergence == "renyi" and order < 1)
        if not finite and any(y == 0 < x for x, y in pairs):
            return math.inf
        if kind == "kl" or order == 1:
            return float(sum(x * mp.log(x / y) for x, y in pairs if x))
        if kind == "chi2":
            return float(sum((x - y) ** 2 / y for x, y in pairs if y))
        if kind == "hellinger":
            return float(sum((mp.sqrt(x) - mp.sqrt(y)) ** 2 for x, y in pairs) / 2)
        a = mp.mpf(order)
        total = sum(x**a * y ** (1 - a) for x, y in pairs if x and y)
        return float(mp.log(total) / (a - 1)) if total else math.inf


@pytest.mark.parametrize(
    "kind",
    [
        *(k for k in KINDS if k[0] not in ("total_variation", "likelihood_ratio")),
        ("renyi", 0.01),
        ("renyi", 0.999999),
        ("renyi", 1.000001),
        ("renyi", 300.0),
    ],
)
def test_divergences_equal_exact_arithmetic(kind):
    for p in (1e-300, 1e-9, 0.05, 0.5, 0.95, 1 - 1e-9):
        near = [p * (1 + 1e-9), p + (1 - p) * 1e-6, p * 1.001, p * 2, p * 0.7]
        for q in (*near, 0.3, 0.999, 1.0, 0.0):
            if not 0 <= q <= 1:
                continue
            found = bernoulli_divergence(q, p, *kind)
            expected = exact_divergence(q, p, *kind)
            # Below 1e-290 doubles lose their digits.
            assert found == pytest.approx(expected, rel=2e-10, abs=1e-290), (q, p)


@pytest.mark.parametrize("kind", KINDS)
def test_the_worst_rate_is_where_the_divergence_is_spent(kind):
    for p in (1e-300, 1e-9, 0.05, 0.5, 0.95, 1 - 1e-9):
        for value in (1e-9, 1e-3, 0.1, 1.0, 30.0):
            radius = radius_of(kind[0], value)
            q = worst_rate(p, kind[0], radius, kind[1])
            assert p <= q <= 1
            if q < 1:
                above, below = min(1, q + 4 * np.spacing(q)), q - 4 * np.spacing(q)
                low = bernoulli_divergence(max(below, p), p, *kind)
                high = bernoulli_divergence(above, p, *kind)
                slack = 1e-9 * (radius - (kind[0] == "likelihood_ratio"))
                assert low <= radius + slack
                assert high >= radius - slack


#: A mixture of smaller rates than these may round to 0, where the worst rate jumps.
RATES = st.one_of(st.just(0.0), st.floats(1e-280, 1))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40, deadline=None)
@given(
    RATES,
    RATES,
    st.floats(0, 1),
    st.one_of(st.floats(0, 3), st.sampled_from([0.0, 1e-12, 1e3, 1e6])),
)
def test_concave_and_increasing_in_the_rate(kind, p, other, weight, value):
    radius = radius_of(kind[0], value)

    def worst(rate):
        return worst_rate(rate, kind[0], radius, kind[1])

    low, high = sorted([p, other])
    assert low <= worst(low) <= worst(high) + 1e-15 <= 1 + 1e-15
    mixed = weight * low + (1 - weight) * high
    assert worst(mixed) >= weight * worst(low) + (1 - weight) * worst(high) - 1e-12
    assert worst_rate(p, kind[0], radius_of(kind[0], value / 2), kind[1]) <= worst(p)


@pytest.mark.parametrize("kind", KINDS)
def test_ends(kind):
    none = radius_of(kind[0], 0.0)
    assert worst_rate(1.0, kind[0], radius_of(kind[0], 0.5), kind[1]) == 1
    for p in (0.0, 1e-300, 0.3, 1 - 1e-9):
        assert worst_rate(p, kind[0], none, kind[1]) == pytest.approx(p, abs=1e-15)


@pytest.mark.parametrize(
    ("divergence", "order", "expected"),
    [
        ("kl", None, 0),
        ("reverse_kl", None, 1 - math.exp(-0.3)),
        ("chi2", None, 0),
        ("reverse_chi2", None, 0.3 / 1.3),
        ("hellinger", None, 1 - 0.7**2),
        ("total_variation", None, 0.3),
        ("likelihood_ratio", None, 0),
        ("renyi", 2, 0),
        ("renyi", 0.5, 1 - math.exp(-0.3)),
        ("renyi", 0.2, 1 - math.exp(-0.3 * 0.8 / 0.2)),
    ],
)
def test_events_that_were_impossible(divergence, order, expected):
    radius = 1.3 if divergence == "likelihood_ratio" else 0.3
    assert worst_rate(0.0, divergence, radius, order) == pytest.approx(expected)


@pytest.mark.oracle
@pytest.mark.parametrize(
    "divergence",
    ["kl", "reverse_kl", "chi2", "reverse_chi2", "hellinger", "total_variation"],
)
def test_no_law_on_more_points_does_worse(divergence):
    cp = pytest.importorskip("cvxpy")
    rng = np.random.default_rng(0)
    for n_atoms, size, radius in [(2, 1, 0.05), (4, 2, 0.1), (6, 3, 0.3)]:
        held_out = rng.dirichlet(np.full(n_atoms, 5.0))
        q = cp.Variable(n_atoms, nonneg=True)
        distance = {
            "kl": lambda q, p: cp.sum(cp.kl_div(q, p)),
            "reverse_kl": lambda q, p: cp.sum(cp.kl_div(p, q)),
            "chi2": lambda q, p: cp.sum(cp.multiply(1 / p, cp.square(q - p))),
            "reverse_chi2": lambda q, p: cp.sum(cp.multiply(p**2, cp.inv_pos(q))) - 1,
            "hellinger": lambda q, p: 1 - cp.sum(cp.multiply(np.sqrt(p), cp.sqrt(q))),
            "total_variation": lambda q, p: cp.norm1(q - p) / 2,
        }[divergence](q, held_out)
        problem = cp.Problem(
            cp.Maximize(cp.sum(q[:size])), [distance <= radius, cp.sum(q) == 1]
        )
        problem.solve(solver="CLARABEL")
        found = worst_rate(float(held_out[:size].sum()), divergence, radius)
        assert found == pytest.approx(problem.value, abs=2e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("wasserstein", 1), f"`divergence` must be one of {list(DIVERGENCES)}, got "),
        (("kl", -0.1), "`radius` must be >= 0 for 'kl', got -0.1."),
        (("kl", math.nan), "`radius` must be >= 0 for 'kl', got nan."),
        (("likelihood_ratio", 0.5), "`radius` must be >= 1 for 'likelihood_ratio', "),
        (("renyi", 1), "'renyi' needs `order` in (0, inf), got None."),
        (("renyi", 1, math.inf), "'renyi' needs `order` in (0, inf), got inf."),
        (("kl", 1, 2), "`order` belongs to 'renyi' only, got 2."),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError) as error:
        worst_rate(0.05, *arguments)
    assert str(error.value).startswith(message)


def test_rates_outside_the_unit_interval():
    with pytest.raises(ValueError, match=r"`p` must lie in \[0, 1\], got 1.5"):
        worst_rate(1.5, "kl", 0.1)
    with pytest.raises(ValueError, match=r"`q` must lie in \[0, 1\], got -1"):
        bernoulli_divergence(-1, 0.5, "kl")


# --- promises ------------------------------------------------------------------------


def test_a_promise_under_shift():
    promise = Guarantee(
        quantity="error rate", bound=0.05, sense="<=", confidence=0.95,
        assumptions=("rows are independent",), evidence={"wrong": 3},
    )  # fmt: skip
    shifted = promise.under_shift("kl", 0.1)
    assert shifted.bound == pytest.approx(0.172949347713)
    assert shifted.confidence == 0.95
    assert shifted.assumed == (
        "rows are independent",
        "the Kullback-Leibler divergence of the future rows from the held-out ones "
        "(nats) is at most 0.1",
    )
    assert dict(shifted.evidence) == {
        "wrong": 3,
        "bound without shift": 0.05,
        "shift radius": 0.1,
    }


def test_coverage_shrinks():
    promise = Guarantee(quantity="coverage", bound=0.9, sense=">=")
    assert promise.under_shift("total_variation", 0.05).bound == pytest.approx(0.85)
    assert promise.shift_tolerance(0.8, "total_variation") == pytest.approx(0.1)
    assert promise.shift_tolerance(0.0, "kl") == math.inf


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"quantity": "selective error rate"},
            "this shift is that of the answered rows",
        ),
        (
            {"quantity": "class error rate", "scope": "ill"},
            "this shift is that of the rows of this class",
        ),
        ({"quantity": "error rate", "subgroup": "sex=F"}, OF_THESE),
        ({"quantity": "coverage", "scope": "ill", "subgroup": "sex=F"}, OF_THESE),
        ({"quantity": "selective error rate", "subgroup": "sex=F"}, OF_THESE),
        ({"quantity": "probability", "scope": "ill", "subgroup": "[0, 1]"}, OF_THESE),
        ({"quantity": "precision", "scope": "ill"}, OF_THESE),
        ({"quantity": "miss rate"}, OF_THESE),
        # These are about all rows.
        ({"quantity": "flagged share", "scope": "ill"}, None),
        ({"quantity": "error rate"}, None),
    ],
)
def test_the_shift_is_that_of_the_rows_concerned(options, sentence):
    shifted = Guarantee(bound=0.05, sense="<=", **options).under_shift(
        "likelihood_ratio", 2
    )
    assert shifted.assumed == (
        "the density of the future rows over that of the held-out ones is at most 2",
        *((sentence,) if sentence else ()),
    )


@pytest.mark.parametrize(
    ("same_law", "shifted_law"),
    [
        (Assumption.INDEPENDENT, Assumption.SHIFTED),
        (Assumption.TRAINING_EXCHANGEABLE_CLASS, Assumption.SHIFTED),
        (Assumption.GROUPS, Assumption.SHIFTED_GROUPS),
    ],
)
def test_no_promise_assumes_one_law_and_a_shift_at_once(same_law, shifted_law):
    promise = Guarantee(
        quantity="error rate",
        bound=0.05,
        sense="<=",
        assumptions=(same_law, Assumption.UNSEEN),
    )
    shifted = promise.under_shift("renyi", 0.1, order=2)
    assert shifted.assumptions == (
        shifted_law,
        Assumption.UNSEEN,
        Assumption.SHIFT_RENYI,
    )
    assert "of order 2 of the future rows" in str(shifted)
    with pytest.raises(ValueError, match="allows for a shift already"):
        shifted.under_shift("kl", 0.1)


def test_an_averaged_promise_loses_its_law_under_shift():
    promise = Guarantee(
        quantity="false alarm rate",
        bound=0.05,
        sense="<=",
        average_over="training samples",
        evidence={"rank": 5, "calibration rows": 99},
    )
    shifted = promise.under_shift("total_variation", 0.01)
    assert shifted.rate_law is None
    assert shifted.average_over == "training samples"


@pytest.mark.parametrize("kind", KINDS)
def test_tolerance_is_the_radius_that_reaches_the_limit(kind):
    promise = Guarantee(quantity="miss rate", bound=0.03, sense="<=")
    radius = promise.shift_tolerance(0.2, kind[0], order=kind[1])
    shifted = promise.under_shift(kind[0], radius, order=kind[1])
    assert shifted.bound == pytest.approx(0.2, rel=1e-12)


def test_refusals():
    promise = Guarantee(quantity="error rate", bound=0.05, sense="<=")
    with pytest.raises(ValueError) as error:
        promise.shift_tolerance(0.01, "kl")
    assert str(error.value) == (
        "`limit` 0.01 is not even promised without shift: the bound is 0.05."
    )
    with pytest.raises(ValueError, match=r"`limit` must lie in \[0, 1\], got 2"):
        promise.shift_tolerance(2, "kl")
    cost = Guarantee(quantity="expected cost", bound=3.0, sense="<=")
    for ask in (
        lambda: cost.under_shift("kl", 0.1),
        lambda: cost.shift_tolerance(4, "kl"),
    ):
        with pytest.raises(ValueError) as error:
            ask()
        assert str(error.value) == (
            "an expected cost is not a rate: use certify(..., costs=...) on the new "
            "rows."
        )


def test_a_radius_that_is_no_number_is_refused_by_its_name():
    promise = Guarantee(quantity="error rate", bound=0.1, sense="<=")
    with pytest.raises(ValueError, match="`radius` must be >= 0 for 'kl', got 'a'"):
        promise.under_shift("kl", "a")
