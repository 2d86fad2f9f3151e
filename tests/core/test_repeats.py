"""Copies of rows are told from rows that chance makes equal."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import gammaln
from scipy.stats import binomtest

from prudent.core.rows import (
    LEVEL,
    KnownRows,
    cell_keys,
    keys_of_rows,
    log_chance_of_split,
    log_evidence,
)


def known(X):
    columns = [cell_keys(column, j) for j, column in enumerate(X.T)]
    return KnownRows.from_keys(keys_of_rows(X), columns)


def catalogue(rng, n):
    """Things of which all columns follow from the first, drawn again and again."""
    things = np.round(rng.normal(size=(n // 6, 4)), 2)
    return things[rng.integers(0, len(things), n)]


# Laws whose draws are equal by chance, and how many rows.
BY_CHANCE = {
    "real": (lambda rng, n: rng.normal(size=(n, 3)), 400),
    "tied scores": (lambda rng, n: np.round(rng.normal(size=(n, 1)), 2), 400),
    "integers": (lambda rng, n: rng.integers(0, 12, (n, 3)), 400),
    "grid of two": (lambda rng, n: np.round(rng.normal(size=(n, 2)), 1), 400),
    "truths": (lambda rng, n: rng.random((n, 12)) < 0.3, 400),
    "catalogue": (catalogue, 400),
    "one real": (lambda rng, n: np.round(rng.random((n, 3)) * [1e4, 1, 0], 0), 400),
    "few": (lambda rng, n: rng.integers(0, 3, (n, 2)), 30),
}
FINE = {
    "real": lambda rng, n: rng.normal(size=(n, 3)),
    "integers": lambda rng, n: rng.integers(0, 200, (n, 5)),
    "decimals": lambda rng, n: np.round(rng.normal(size=(n, 6)), 1),
}


def test_equal_rows_have_equal_keys_and_others_do_not():
    X = np.array([[0.0, 1.0], [-0.0, 1.0], [1.0, 0.0], [np.nan, 1.0], [-np.nan, 1.0]])
    keys = keys_of_rows(X)
    assert keys[0] == keys[1]
    assert keys[3] == keys[4]
    assert len(np.unique(keys)) == 3
    many = np.stack(np.meshgrid(np.arange(300.0), np.arange(300.0)), -1).reshape(-1, 2)
    assert len(np.unique(keys_of_rows(many))) == len(many)
    np.testing.assert_array_equal(
        keys_of_rows(many), keys_of_rows(many.astype(np.float32))
    )


@pytest.mark.parametrize("name", BY_CHANCE)
def test_draws_of_few_values_are_no_copies(name):
    draw, n = BY_CHANCE[name]
    rng = np.random.default_rng(5)
    for _ in range(40):
        fit, new = np.split(np.asarray(draw(rng, 2 * n), dtype=float), 2)
        assert not known(fit).holds_copies()
        assert known(fit).copies(keys_of_rows(new)) == 0
        assert known(fit).copies(keys_of_rows(new[:7])) == 0


@pytest.mark.parametrize("name", FINE)
@pytest.mark.parametrize("copied", [5, 40, 300])
def test_copies_in_a_fine_table_are_found(name, copied):
    rng = np.random.default_rng(copied)
    X = np.asarray(FINE[name](rng, 600), dtype=float)
    fit, new = X[:300], X[300:]
    assert known(np.r_[fit, fit[:copied]]).holds_copies()
    mixed = np.r_[fit[:copied], new[copied:]]
    assert known(fit).copies(keys_of_rows(mixed)) == copied


@pytest.mark.parametrize("kinds", [1, 3])
@pytest.mark.parametrize("share", [0.02, 0.1, 0.6])
def test_a_fine_table_may_hold_blank_rows(kinds, share):
    """As many as one likes, of three kinds: of all rows only copies are called so."""
    rng = np.random.default_rng(kinds)
    for _ in range(40):
        rows = rng.normal(size=(1500, 6))
        blank = rng.random(1500) < share
        rows[blank] = rng.choice([np.nan, 0, -99][:kinds], size=(blank.sum(), 1))
        fit, new = rows[:1000], rows[1000:]
        for some in (new, new[:7]):
            assert not known(fit).holds_copies()
            assert known(fit).copies(keys_of_rows(some)) == 0
        copied = rows[~blank][:5]
        assert known(np.r_[fit, copied]).holds_copies()
        assert known(fit).copies(keys_of_rows(np.r_[new, copied])) >= 5


@pytest.mark.parametrize("repeated", [5, 50])
def test_rows_drawn_again_to_balance_classes_are_copies(repeated):
    rng = np.random.default_rng(repeated)
    X = rng.normal(size=(1000, 5))
    drawn = X[rng.integers(0, repeated, 20 * repeated)]
    assert known(np.r_[X, drawn]).holds_copies()


@pytest.mark.parametrize("times", [2, 3, 10])
@pytest.mark.parametrize("name", ["real", "integers", "grid of two", "catalogue"])
def test_a_table_that_stands_several_times_is_found(name, times):
    draw, n = BY_CHANCE[name]
    X = np.asarray(draw(np.random.default_rng(times), n), dtype=float)
    assert known(np.repeat(X, times, axis=0)).holds_copies()


@pytest.mark.parametrize("name", ["real", "integers", "grid of two"])
def test_the_table_of_the_fit_is_not_new(name):
    draw, n = BY_CHANCE[name]
    X = np.asarray(draw(np.random.default_rng(0), n), dtype=float)
    assert known(X).copies(keys_of_rows(X)) == n
    assert known(X).copies(keys_of_rows(X[: n // 2])) == n // 2


@pytest.mark.parametrize("share", [0.3, 0.5, 0.7, 1.0, 2.0])
def test_a_fit_that_held_copies_knows_its_rows(share):
    X = np.random.default_rng(0).normal(size=(1000, 5))
    table = known(np.r_[X, np.tile(X, (2, 1))[: int(1000 * share)]])
    assert table.holds_copies()
    for n_new in (1, 50, 150, 300, 600):
        assert table.copies(keys_of_rows(X[:n_new])) == n_new
    assert table.copies(keys_of_rows(X + 1)) == 0


@pytest.mark.parametrize("name", BY_CHANCE)
@pytest.mark.parametrize("share", [0.1, 0.5, 1.0, 2.0])
def test_new_rows_are_no_copies_where_the_fit_held_some(name, share):
    draw, n = BY_CHANCE[name]
    rng = np.random.default_rng(6)
    for _ in range(40):
        fit, new = np.split(np.asarray(draw(rng, 2 * n), dtype=float), 2)
        table = known(np.r_[fit, np.tile(fit, (2, 1))[: int(n * share)]])
        assert table.copies(keys_of_rows(new)) == 0
        assert table.copies(keys_of_rows(new[:7])) == 0


@given(st.integers(2, 16), st.floats(-7, 7))
def test_the_bets_pay_at_most_one_on_average(j, log_rate):
    """For every rate of a value, given that it is drawn at all, or about j times."""
    rate, k = np.exp(log_rate), np.arange(1, 2000)
    chance = np.exp(k * np.log(rate) - gammaln(k + 1) - rate) / -np.expm1(-rate)
    assert chance[k % j == 0].sum() <= 0.5 + 1e-12
    three = chance[j - 2 : j + 1]
    for a, b in [(0.5, 1.0), (0.01, 1.0), (1e-6, 0.25), (0.25, 0.125)]:
        paid = [1 - a, 1 + 2 * np.sqrt(a * b * j / (j + 1)), 1 - b]
        assert three @ paid <= three.sum() * (1 + 1e-12)


@pytest.mark.parametrize("n_values", [1, 3, 20, 200, 2000])
def test_independent_draws_are_called_copies_at_most_as_often_as_said(n_values):
    rng = np.random.default_rng(n_values)
    weight = rng.gamma(0.5, size=n_values)
    evidence, split = [], []
    for _ in range(400):
        drawn = rng.choice(n_values, size=300, p=weight / weight.sum()).astype(float)
        evidence.append(log_evidence(np.unique(drawn, return_counts=True)[1]))
        keys = keys_of_rows(drawn[:, None])
        split.append(log_chance_of_split(keys[:200], keys[200:]))
    for level in (LEVEL, 0.01, 0.1):
        for logs in (-np.array(evidence), np.array(split)):
            called = int((logs < np.log(level)).sum())
            assert binomtest(called, 400, level, alternative="greater").pvalue > 1e-4
