"""The betting limit of a mean."""

import numpy as np
import pytest

from prudent.certification import mean_upper_limit
from prudent.core.binomial import upper_limit


def wealth_by_loop(losses, mu, level):
    """The definition, one loss at a time."""
    n, total, squares, variance, wealth, best = len(losses), 0.0, 0.0, 0.25, 1.0, 1.0
    for t, x in enumerate(losses, start=1):
        bet = min(np.sqrt(2 * np.log(1 / level) / (n * variance)), 0.9 / (1 - mu))
        wealth *= 1 - bet * (x - mu)
        best = max(best, wealth)
        total += x
        mean = (0.5 + total) / (t + 1)
        squares += (x - mean) ** 2
        variance = (0.25 + squares) / (t + 1)
    return best


@pytest.mark.parametrize("level", [0.05, 0.3])
def test_limit_is_where_the_wealth_reaches_its_mark(level):
    losses = np.random.default_rng(0).beta(1, 9, 80)
    limit = mean_upper_limit(losses, level=level)
    ordered = np.random.RandomState(0).permutation(losses)
    assert wealth_by_loop(ordered, limit + 1e-12, level) >= 1 / level
    assert wealth_by_loop(ordered, limit - 1e-9, level) < 1 / level


def test_few_losses_refute_nothing():
    assert mean_upper_limit([0.0]) == 1.0
    assert mean_upper_limit(np.ones(100)) == 1.0


def test_the_order_is_drawn():
    sorted_losses = np.repeat([0.0, 1.0], [150, 50])
    first, again, other = (
        mean_upper_limit(sorted_losses, random_state=s) for s in (0, 0, 1)
    )
    assert first == again != other
    shared = mean_upper_limit(sorted_losses, random_state=np.random.RandomState(0))
    assert shared == first


def test_excess_over_the_truth():
    """Specification: 0.013 for beta(1, 9), 0.034 for uniform losses, n = 300."""
    rng = np.random.default_rng(0)
    for draw, truth, excess in [
        (lambda: rng.beta(1, 9, 300), 0.1, 0.013),
        (lambda: rng.random(300), 0.5, 0.034),
    ]:
        found = np.mean([mean_upper_limit(draw()) for _ in range(60)]) - truth
        assert found == pytest.approx(excess, abs=0.004)


def test_counts_have_a_sharper_limit():
    losses = np.repeat([0.0, 1.0], [57, 3])
    assert upper_limit(3, 60, level=0.05) < mean_upper_limit(losses)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("draw", "truth"),
    [
        (lambda rng: rng.random(60) < 0.05, 0.05),
        (lambda rng: rng.choice([0, 0.1, 1], 100, p=[0.7, 0.25, 0.05]), 0.075),
        (lambda rng: np.where(rng.random(40) < 0.5, 0.3, 0.3), 0.3),
        (lambda rng: rng.beta(0.2, 0.6, 30), 0.25),
    ],
)
def test_the_limit_holds(draw, truth):
    from scipy.stats import binomtest

    rng = np.random.default_rng(3)
    missed = sum(
        mean_upper_limit(np.asarray(draw(rng), float), random_state=i) < truth
        for i in range(2000)
    )
    assert binomtest(missed, 2000, 0.05, alternative="greater").pvalue > 1e-4


@pytest.mark.parametrize(
    ("losses", "message"),
    [
        ([0.2, 1.3], "losses must be at least one number in [0, 1], got 1.3."),
        ([np.nan], "losses must be at least one number in [0, 1], got nan."),
        ([], "losses must be at least one number in [0, 1], got none."),
    ],
)
def test_bad_losses(losses, message):
    with pytest.raises(ValueError) as error:
        mean_upper_limit(losses)
    assert str(error.value) == message


def test_bad_level():
    with pytest.raises(ValueError, match=r"`level` must lie in \(0, 1\), got 0"):
        mean_upper_limit([0.5], level=0)
