"""`PromiseMonitor`: what it counts, what it says, what it survives."""

import copy
import json
import math
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from prudent import Assumption, Guarantee, PromiseMonitor
from prudent._version import __version__
from prudent.monitoring import broken_promises
from prudent.monitoring.bets import (
    log_evidence,
    log_evidence_marginal,
    log_evidence_within,
    rate_limits,
)


def promise(quantity="error rate", bound=0.05, sense="<=", **more):
    return Guarantee(quantity=quantity, bound=bound, sense=sense, **more)


def marginal(k=5, m=108, bound=None, **more):
    return promise(
        "false alarm rate",
        k / (m + 1) if bound is None else bound,
        average_over="calibration rows",
        evidence={"calibration rows": m, "rank": k},
        **more,
    )


def the_stream():
    x = np.zeros(600)
    x[39:400:40] = 1
    x[407::8] = 1
    return x


ALL = [
    (promise(), "rate"),
    (promise(), "average"),
    (marginal(), "rate"),
    (marginal(), "average"),
    (promise("coverage", 0.9, ">="), "rate"),
    (promise("coverage", 0.05, "<="), "rate"),
    (promise("miss rate", 0.9, ">="), "rate"),
    (promise(bound=0.0), "rate"),
    (promise(bound=1.0), "rate"),
    (promise(confidence=0.95), "rate"),
    (promise("false alarm rate", 0.1, average_over="the rule's coins"), "rate"),
    (promise("false discovery rate", 0.1, confidence=0.9), "average"),
]


def test_reference_stream():
    monitor = PromiseMonitor(promise()).update(the_stream())
    assert monitor.e_value == pytest.approx(12.66375164, abs=1e-8)
    assert monitor.alarm_at_ is None
    monitor = PromiseMonitor(marginal()).update(the_stream())
    assert monitor.e_value == pytest.approx(22.63006648, abs=1e-8)
    assert monitor.alarm_at_ == 600
    assert monitor.verdict == "broken"


@pytest.mark.parametrize(("guarantee", "watch"), ALL)
def test_one_by_one_array_and_stored_are_the_same_bits(guarantee, watch):
    rng = np.random.default_rng(0)
    losses = (rng.random(1500) < 0.06).astype(float)
    if guarantee.quantity == "false discovery rate":
        losses *= rng.random(1500)
    whole = PromiseMonitor(guarantee, watch=watch).update(losses)
    one_by_one = PromiseMonitor(guarantee, watch=watch)
    for x in losses:
        one_by_one.update(x)
    stored = PromiseMonitor(guarantee, watch=watch)
    for part in np.split(losses, [1, 3, 700, 1024]):
        text = json.dumps(stored.update(part).to_dict(), allow_nan=False)
        stored = PromiseMonitor.from_dict(json.loads(text))
    assert whole == one_by_one == stored
    assert whole.frame().equals(stored.frame())
    assert whole.n_ == 1500


@pytest.mark.parametrize(("guarantee", "watch"), ALL)
def test_a_batch_of_one_is_a_row(guarantee, watch):
    a, b = (PromiseMonitor(guarantee, watch=watch) for _ in range(2))
    for x in the_stream()[:60].tolist():
        assert a.update(x, n=1) == b.update([x])


def test_copies_and_pickles_go_their_own_way():
    monitor = PromiseMonitor(promise()).update(the_stream())
    for twin in (copy.deepcopy(monitor), pickle.loads(pickle.dumps(monitor))):
        assert twin == monitor
        assert twin.update(1) != monitor
    assert monitor != "monitor"
    with pytest.raises(TypeError, match="unhashable"):
        hash(monitor)


@pytest.mark.parametrize("scope", ["malignant", np.str_("a"), 3, np.int64(3), True])
def test_labels_survive_the_state(scope):
    monitor = PromiseMonitor(promise("class error rate", 0.2, scope=scope))
    stored = PromiseMonitor.from_dict(json.loads(json.dumps(monitor.to_dict())))
    assert stored.guarantee.scope == scope
    assert stored == monitor


def test_state_stays_small():
    sentence = "rows are exchangeable with the training rows, " * 4
    for watch in ("rate", "average"):
        monitor = PromiseMonitor(promise(assumptions=(sentence,) * 2), watch=watch)
        rng = np.random.default_rng(1)
        for n in (10, 500, 100_000, 300_000):
            monitor.update((rng.random(n) < 0.05) * rng.random(n))
        assert len(json.dumps(monitor.to_dict())) <= 20_000
        assert monitor.frame().num_rows <= 257


def test_trace_thins_out_and_keeps_its_spacing():
    monitor = PromiseMonitor(promise()).update(np.zeros(255))
    assert monitor.frame()["row"].to_pylist() == list(range(1, 256))
    rows = monitor.update(np.zeros(3)).frame()["row"].to_pylist()
    assert rows == [*range(2, 257, 2), 258]


def test_counts_e_value_equals_the_closed_form():
    x = the_stream()
    monitor = PromiseMonitor(promise(), watch="average")
    peak = 1.0
    for n, row in enumerate(x, 1):
        monitor.update(row)
        expected = math.exp(log_evidence(x[:n].sum(), n, 0.05))
        peak = max(peak, expected)
        assert monitor.e_value == expected
    assert monitor.peak_e_value == peak
    drawn = PromiseMonitor(marginal(), watch="average").update(x)
    expected = log_evidence_marginal(x.sum(), 600, 5, 108, 5 / 109)
    assert math.log(drawn.e_value) == pytest.approx(expected, abs=1e-12)


def test_what_is_tested():
    assert PromiseMonitor(promise()).null_ == "conditional"
    assert PromiseMonitor(promise(), watch="average").null_ == "average"
    assert PromiseMonitor(marginal()).null_ == "marginal"
    assert PromiseMonitor(marginal(), watch="average").null_ == "marginal"
    coins = promise("miss rate", 0.3, average_over="the rule's coins")
    assert PromiseMonitor(coins).null_ == "conditional"


def test_exact_guarantee_is_watched_at_the_rank_it_has():
    """k/(m+1) above the bound happens by a coin; b is the larger of the two."""
    by_coin, by_rank = marginal(6, 108, bound=0.05), marginal(6, 108)
    a, b = (PromiseMonitor(g).update(the_stream()) for g in (by_coin, by_rank))
    assert a.e_value == b.e_value
    below = PromiseMonitor(marginal(5, 108, bound=0.05)).update(the_stream())
    assert below.e_value < PromiseMonitor(marginal()).update(the_stream()).e_value
    # What is kept is the promise, not the larger rate of the rank.
    for guarantee, verdict in ((by_coin, "consistent"), (by_rank, "kept")):
        monitor = PromiseMonitor(guarantee).update(5200, n=100_000)
        assert monitor.verdict == verdict


@pytest.mark.parametrize(
    ("quantity", "bound", "sense", "flipped"),
    [
        ("error rate", 0.05, "<=", False),
        ("coverage", 0.95, ">=", False),
        ("error rate", 0.95, ">=", True),
        ("coverage", 0.05, "<=", True),
    ],
)
def test_canonical_form(quantity, bound, sense, flipped):
    """Every promise is "the rate of x is at most b"; limits are turned back."""
    rare = the_stream()
    given_losses = 1 - rare if flipped else rare
    guarantee = promise(quantity, bound, sense)
    plain = PromiseMonitor(promise()).update(rare)
    monitor = PromiseMonitor(guarantee).update(given_losses)
    # 1 - 0.95 is a rounding above 0.05
    assert monitor.e_value == pytest.approx(plain.e_value, rel=1e-9)
    assert monitor.violations_ == given_losses.sum()
    lower, upper = rate_limits(rare.sum(), 600, level=0.05)
    if sense == ">=":
        lower, upper = 1 - upper, 1 - lower
    assert monitor.interval == (lower, upper)
    checked = guarantee.check(given_losses.sum(), 600)
    assert lower < checked.measured < upper
    frame = monitor.frame()
    assert frame["violations"][-1].as_py() == given_losses.sum()
    assert (frame["lower"][-1].as_py(), frame["upper"][-1].as_py()) == (lower, upper)


def test_verdicts():
    monitor = PromiseMonitor(promise())
    assert monitor.verdict == "consistent"
    assert monitor.interval == (0.0, 1.0)
    monitor.update(0, n=59)
    assert log_evidence_within(0, 59, 0.05) < math.log(20)
    assert monitor.verdict == "consistent"
    assert monitor.update(0, n=40).verdict == "kept"
    monitor.update(15, n=15)
    broken_at = monitor.alarm_at_
    assert monitor.verdict == "broken"
    monitor.update(np.zeros(5000))
    assert monitor.verdict == "broken"
    assert monitor.alarm_at_ == broken_at
    assert monitor.peak_e_value >= 20 > monitor.e_value


def test_kept_can_return_to_consistent():
    monitor = PromiseMonitor(promise(bound=0.2), watch="average").update(0, n=40)
    assert monitor.verdict == "kept"
    assert monitor.update(8, n=20).verdict == "consistent"


def test_bounds_without_a_bet():
    never = PromiseMonitor(promise(bound=0.0)).update(np.zeros(9))
    assert never.e_value == pytest.approx(1 / 10)
    assert never.update(1).verdict == "broken"
    assert never.alarm_at_ == 10
    assert never.e_value == math.inf
    stored = PromiseMonitor.from_dict(json.loads(json.dumps(never.to_dict())))
    assert stored == never
    always = PromiseMonitor(promise(bound=1.0)).update(np.ones(9))
    assert always.peak_e_value == always.e_value == 1
    nothing_rejected = PromiseMonitor(marginal(0, 12))
    assert nothing_rejected.update([0, 0, 1]).verdict == "broken"


def test_sentence():
    text = str(PromiseMonitor(promise(confidence=0.9)).update(the_stream()))
    assert text.startswith(
        "The error rate is at most 0.05 with confidence 0.9. So far consistent (35 "
        "violations in 600 rows"
    )
    assert text.endswith("probability at most 0.15, training included.")
    broken = str(PromiseMonitor(marginal()).update(the_stream()))
    assert "on average over calibration rows. So far broken since row 600 (35" in broken
    assert broken.endswith("at most 0.05.")
    assert "np." not in repr(PromiseMonitor(promise())) + text + broken


def test_merge_adds_counts():
    parts = np.split(the_stream(), [200, 450])
    monitors = [PromiseMonitor(promise(), watch="average").update(p) for p in parts]
    merged = monitors[0].merge(monitors[1]).merge(monitors[2])
    assert (merged.n_, merged.violations_) == (600, 35)
    assert merged.e_value == math.exp(log_evidence(35, 600, 0.05))
    assert monitors[0].n_ == 200
    flipped = promise("error rate", 0.95, ">=")
    twice = PromiseMonitor(flipped, watch="average").update(90, n=100)
    assert twice.merge(twice).violations_ == 180


def test_a_merge_is_symmetric_and_forgets_no_broken_promise():
    good = PromiseMonitor(promise(), watch="average").update(0, n=2000)
    bad = PromiseMonitor(promise(), watch="average").update(45, n=300)
    assert (good.verdict, bad.verdict, bad.alarm_at_) == ("kept", "broken", 300)
    for merged in (good.merge(bad), bad.merge(good)):
        assert (merged.verdict, merged.alarm_at_) == ("broken", 300)
        assert (merged.violations_, merged.n_) == (45, 2300)
        assert merged.peak_e_value == bad.peak_e_value
    earlier = PromiseMonitor(promise(), watch="average").update(30, n=100)
    assert bad.merge(earlier).alarm_at_ == earlier.merge(bad).alarm_at_ == 100
    read = PromiseMonitor.from_dict(good.merge(bad).to_dict())
    assert read.verdict == "broken"


def test_merged_counts_are_safe_where_products_are_not():
    """Two streams of one detector share its calibration rows: exact means."""
    from scipy.special import betaln, gammaln

    k, m, n = 1, 19, 100
    K = np.arange(n + 1)
    log_e = np.array([log_evidence_marginal(v, n, k, m, k / (m + 1)) for v in K])
    binomial = gammaln(n + 1) - gammaln(K + 1) - gammaln(n - K + 1)
    both = K[:, None] + K[None, :]
    log_law = (
        binomial[:, None]
        + binomial[None, :]
        + betaln(k + both, m + 1 - k + 2 * n - both)
        - betaln(k, m + 1 - k)
    )
    law = np.exp(log_law)
    assert law.sum() == pytest.approx(1, abs=1e-9)
    product = (law * np.exp(log_e[:, None] + log_e[None, :])).sum()
    average = (law * (np.exp(log_e)[:, None] + np.exp(log_e)[None, :]) / 2).sum()
    totals = np.exp(
        [log_evidence_marginal(v, 2 * n, k, m, k / (m + 1)) for v in range(2 * n + 1)]
    )
    assert product == pytest.approx(1.2e11, rel=0.05)
    assert average <= 1
    assert (law * totals[both]).sum() <= 1


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"level": 1.5}, ValueError, "`level` must lie in (0, 1), got 1.5."),
        ({"level": 0}, ValueError, "`level` must lie in (0, 1), got 0."),
        ({"watch": "x"}, ValueError, "`watch` must be 'rate' or 'average', got 'x'."),
        (
            {"guarantee": "x"},
            TypeError,
            "`guarantee` must be a Guarantee, got str.",
        ),
        (
            {"guarantee": marginal(0, 12, bound=0.05)},
            ValueError,
            "PromiseMonitor: the promise holds on average over calibration rows, by a "
            "law that is not known. Fit with a `confidence`.",
        ),
        (
            {"guarantee": promise(average_over="training samples")},
            ValueError,
            "PromiseMonitor: the promise holds on average over training samples, by a "
            "law that is not known. Fit with a `confidence`.",
        ),
        (
            {"guarantee": promise("false discovery rate")},
            ValueError,
            "PromiseMonitor: a false discovery rate on average over calibration sets "
            "cannot be watched. Select with `confidence`.",
        ),
        (
            {"guarantee": promise("expected cost")},
            ValueError,
            "PromiseMonitor: an expected cost is not a rate. Use certify(..., "
            "costs=...) on the new rows.",
        ),
    ],
)
def test_settings_refused(arguments, error, text):
    with pytest.raises(error) as caught:
        PromiseMonitor(**{"guarantee": promise(), **arguments})
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ((11, 10), ValueError, "`violations` must lie in [0, 10], got 11."),
        ((-1, 10), ValueError, "`violations` must lie in [0, 10], got -1."),
        ((math.nan, 10), ValueError, "`violations` must lie in [0, 10], got nan."),
        ((0, -1), ValueError, "`n` must be an integer >= 0, got -1."),
        ((0, 2.5), ValueError, "`n` must be an integer >= 0, got 2.5."),
        ((0, np.float64(2.5)), ValueError, "`n` must be an integer >= 0, got 2.5."),
        (
            ([0, 1, 0, math.nan],),
            ValueError,
            "losses must lie in [0, 1], got nan at row 3.",
        ),
        (([0, 1.5],), ValueError, "losses must lie in [0, 1], got 1.5 at row 1."),
        ((["a"],), ValueError, "losses must be numbers in [0, 1], one per row, got"),
        (
            ([0, 1], 2),
            TypeError,
            "`n` is for a count of violations; an array has one loss per row.",
        ),
    ],
)
def test_rows_refused_are_not_counted(arguments, error, text):
    monitor = PromiseMonitor(promise()).update(1, n=9)
    before = monitor.to_dict()
    with pytest.raises(error) as caught:
        monitor.update(*arguments)
    assert str(caught.value).startswith(text)
    assert monitor.to_dict() == before


def test_nothing_counted_changes_nothing():
    monitor = PromiseMonitor(promise()).update(1, n=9)
    before = monitor.to_dict()
    assert monitor.update(0, n=0).update([]).to_dict() == before


def test_merges_refused():
    a = PromiseMonitor(promise(), watch="average")
    with pytest.raises(ValueError, match=r"^only monitors of one promise can be"):
        a.merge(PromiseMonitor(promise(bound=0.1), watch="average"))
    with pytest.raises(ValueError, match=r"^only monitors of one promise can be"):
        a.merge(PromiseMonitor(promise(), watch="average", level=0.1))
    with pytest.raises(ValueError) as caught:
        PromiseMonitor(promise()).merge(PromiseMonitor(promise()))
    assert str(caught.value) == (
        "monitors with watch='rate' cannot be merged: the order of the rows is lost. "
        "Use watch='average' or broken_promises."
    )


def test_newer_state_is_refused():
    state = {**PromiseMonitor(promise()).to_dict(), "format": 2}
    with pytest.raises(ValueError) as caught:
        PromiseMonitor.from_dict(state)
    assert str(caught.value) == (
        f"the state has format 2, this is prudent {__version__} with format 1. "
        "Install a newer prudent."
    )


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 30), min_size=1, max_size=12), st.data())
def test_batches_count_as_their_sum(sizes, data):
    monitor = PromiseMonitor(marginal())
    total = 0
    for n in sizes:
        v = data.draw(st.integers(0, n))
        total += v
        monitor.update(v, n=n)
    assert (monitor.n_, monitor.violations_) == (sum(sizes), total)
    assert monitor.peak_e_value >= monitor.e_value
    assert (monitor.alarm_at_ is not None) == (monitor.peak_e_value >= 20)


# --- rows, by the quantity of the promise ------------------------------------------

Y = np.array(["a", "b", "b", "a", "b"])
ANSWER = np.array(["a", "a", "b", "b", "b"])
SETS = np.array([[1, 0], [1, 0], [1, 1], [0, 0], [0, 1]], dtype=bool)
FLAGS = np.array([1, -1, 1, -1, -1])


@pytest.mark.parametrize(
    ("quantity", "scope", "answer", "classes", "expected"),
    [
        ("error rate", None, ANSWER, None, (2, 5)),
        ("class error rate", "b", ANSWER, None, (1, 3)),
        ("class error rate", "z", ANSWER, None, (0, 0)),
        ("coverage", None, SETS, ["a", "b"], (2, 5)),
        ("coverage", "b", SETS, ["a", "b"], (1, 3)),
        ("selective error rate", None, SETS, ["a", "b"], (1, 3)),
        ("false alarm rate", None, FLAGS, None, (3, 5)),
        ("false alarm rate", "a", FLAGS, None, (1, 2)),
        ("false alarm rate", "b", SETS, ["a", "b"], (1, 3)),
        ("miss rate", None, FLAGS, None, (2, 5)),
    ],
)
def test_rows_are_counted_by_quantity(quantity, scope, answer, classes, expected):
    monitor = PromiseMonitor(promise(quantity, 0.3, scope=scope))
    monitor.update_rows(Y, answer, classes)
    assert (monitor.violations_, monitor.n_) == expected


def test_rows_without_a_label_are_left_out():
    y = np.array(["a", None, "b", math.nan, "b"], dtype=object)
    monitor = PromiseMonitor(promise(bound=0.5)).update_rows(y, ANSWER)
    assert (monitor.violations_, monitor.n_) == (0, 3)
    y = np.array([0, math.nan, 1])
    monitor = PromiseMonitor(promise(bound=0.5)).update_rows(y, [0, 1, 0])
    assert (monitor.violations_, monitor.n_) == (1, 2)


@pytest.mark.parametrize(
    ("quantity", "answer", "classes", "text"),
    [
        ("coverage", ANSWER, None, "coverage is counted by sets"),
        ("selective error rate", ANSWER, None, "a selective error rate is counted by"),
        ("coverage", SETS, None, "`classes`, the labels of the columns"),
        ("coverage", SETS, ["a"], "the sets have 2 columns, `classes` has 1 labels."),
        ("error rate", ANSWER[:3], None, "`y_true` and `y_answer` must have one entry"),
    ],
)
def test_answers_that_cannot_be_counted(quantity, answer, classes, text):
    monitor = PromiseMonitor(promise(quantity, 0.3, ">="))
    with pytest.raises(ValueError) as caught:
        monitor.update_rows(Y, answer, classes)
    assert str(caught.value).startswith(text)
    assert monitor.n_ == 0


def test_labels_that_a_promise_assumes_away_do_not_break_it():
    known = Guarantee(
        quantity="coverage",
        bound=0.5,
        sense=">=",
        assumptions=(Assumption.KNOWN_LABEL,),
    )
    y = np.array(["a", "new", "b"])
    sets = np.array([[1, 0], [1, 0], [1, 0]], dtype=bool)
    monitor = PromiseMonitor(known).update_rows(y, sets, ["a", "b"])
    assert (monitor.violations_, monitor.n_) == (1, 3)
    plain = PromiseMonitor(promise("coverage", 0.5, ">="))
    assert plain.update_rows(y, sets, ["a", "b"]).violations_ == 2


def test_promises_about_groups_are_counted_by_one_row_each():
    of_groups = Guarantee(quantity="error rate", bound=0.5, sense="<=", unit="group")
    y, groups = np.zeros(9), np.repeat([0, 1, 2], 3)
    monitor = PromiseMonitor(of_groups).update_rows(y, y, groups=groups)
    assert monitor.n_ == 3
    with pytest.raises(ValueError, match="of a new group: give `groups`"):
        monitor.update_rows(y, y)
    with pytest.raises(ValueError, match="one value for each of the 9 rows"):
        monitor.update_rows(y, y, groups=groups[:3])
    with pytest.raises(ValueError, match="`groups` play no part"):
        PromiseMonitor(promise()).update_rows(y, y, groups=groups)
    assert monitor.n_ == 3
    answer = np.array([0, 0, 0, 1, 1, 1, 0, 1, 0])
    again = [PromiseMonitor(of_groups).update_rows(y, answer, groups=groups)] * 2
    assert again[0] == again[1]


def test_groups_of_equal_size_are_not_looked_at_in_one_position_at_every_call():
    """A shift of 24 hours a day, hard in the one hour that a fixed draw would show."""
    of_groups = Guarantee(quantity="error rate", bound=0.05, sense="<=", unit="group")
    hours, n_monitors, n_broken = 24, 40, 0
    shown = of_groups.rows_that_count(hours, np.zeros(hours))
    for seed in range(n_monitors):
        rng, monitor = np.random.default_rng(seed), PromiseMonitor(of_groups)
        for day in range(60):
            answer = np.zeros(hours)
            answer[shown] = rng.random() < 0.04 * hours  # 0.04 of a random hour
            groups = np.full(hours, day)
            monitor.update_rows(np.zeros(hours), answer, groups=groups)
        n_broken += monitor.verdict == "broken"
    assert binomtest(n_broken, n_monitors, 0.05, alternative="greater").pvalue > 0.01


def test_a_drawn_row_that_the_promise_is_not_about_is_not_drawn_for_ever():
    of_b = promise(scope="b", unit="group")
    monitor, y = PromiseMonitor(of_b), np.array(["a", "b"])
    for day in range(60):
        monitor.update_rows(y, y, groups=[day, day])
        # A monitor that goes on from its state draws as if it had never stopped.
        monitor = PromiseMonitor.from_dict(json.loads(json.dumps(monitor.to_dict())))
    assert monitor.n_groups_ == 60
    assert binomtest(monitor.n_, 60, 0.5).pvalue > 0.01


def test_groups_are_added_by_a_merge_and_are_never_fewer_than_none():
    of_groups = PromiseMonitor(promise(unit="group"), watch="average")
    of_groups.update_rows([0, 0, 0], [0, 0, 0], groups=[1, 1, 2])
    assert of_groups.merge(of_groups).n_groups_ == 4
    with pytest.raises(ValueError, match="a negative sum, which no run leaves"):
        PromiseMonitor.from_dict({**of_groups.to_dict(), "n_groups": -1})


def test_a_false_discovery_rate_is_counted_by_batches():
    monitor = PromiseMonitor(promise("false discovery rate", 0.1, confidence=0.9))
    assert monitor.update([0.0, 0.2, 0.1]).n_ == 3
    with pytest.raises(ValueError, match="is not counted by rows: use `update`"):
        monitor.update_rows(Y, ANSWER)


# --- fleets ------------------------------------------------------------------------


def fleet(*violations):
    return [PromiseMonitor(promise()).update(v, n=300) for v in violations]


def test_a_fleet_under_one_level():
    monitors = fleet(15, 60, 14, 31, 30)
    peaks = np.array([m.peak_e_value for m in monitors])
    np.testing.assert_array_equal(broken_promises(monitors), peaks >= 100)
    shared = broken_promises(monitors, method="e-bh")
    assert shared.dtype == bool
    assert shared.sum() >= broken_promises(monitors).sum()
    assert broken_promises([]).shape == (0,)
    assert broken_promises([], method="e-bh").shape == (0,)


def test_peaks_are_for_bonferroni_only():
    """An old alarm is not current evidence."""
    old = PromiseMonitor(promise()).update(60, n=300).update(np.zeros(20_000))
    assert old.peak_e_value > 40 > old.e_value
    assert broken_promises([old, *fleet(2)]).tolist() == [True, False]
    assert not broken_promises([old, *fleet(2)], method="e-bh").any()


def test_e_bh_by_hand():
    class Seen:
        def __init__(self, value):
            self.e_value = self.peak_e_value = value

    # P = 4, level .1: the r largest of at least 40 / r
    seen = [Seen(v) for v in (21, 1, 20, 13.0)]
    assert broken_promises(seen, level=0.1, method="e-bh").tolist() == [1, 0, 1, 0]
    seen = [Seen(v) for v in (14, 1, 14, 13.4)]
    assert broken_promises(seen, level=0.1, method="e-bh").tolist() == [1, 0, 1, 1]
    seen = [Seen(v) for v in (math.inf, 1, 14, 13.3)]
    assert broken_promises(seen, level=0.1, method="e-bh").tolist() == [1, 0, 0, 0]


def test_fleets_refused():
    with pytest.raises(ValueError, match=r"`level` must lie in \(0, 1\), got 2."):
        broken_promises([], level=2)
    with pytest.raises(ValueError, match="`method` must be 'bonferroni' or 'e-bh'"):
        broken_promises([], method="x")


def test_rows_of_a_subgroup_are_counted_whatever_says_which_they_are():
    promise = Guarantee(
        quantity="error rate", bound=0.3, sense="<=", subgroup="sex=Female and age<30"
    )
    sex = ["Female", "Female", "Male", "Female"]
    young = [True, False, True, True]
    true, answer = np.zeros(4), np.array([1, 1, 1, 0])
    tables = (
        [True, False, False, True],
        pd.DataFrame({"sex=Female": [s == "Female" for s in sex], "age<30": young}),
    )
    for table in tables:
        monitor = PromiseMonitor(promise).update_rows(true, answer, subgroups=table)
        assert (monitor.n_, monitor.violations_) == (2, 1)
    by_label = PromiseMonitor(replace(promise, subgroup="sex=Female"))
    by_label.update_rows(true, answer, subgroups=pd.DataFrame({"sex": sex}))
    assert by_label.n_ == 3
    # A batch without such rows changes nothing.
    by_label.update_rows(true[:1], answer[:1], subgroups=pd.DataFrame({"sex": ["x"]}))
    assert by_label.n_ == 3
    # A flag is taken at its name, whatever else the table holds.
    flagged = pd.DataFrame({"sex=Female": [True, True, False, True], "age": range(4)})
    by_label.update_rows(true, answer, subgroups=flagged)
    assert by_label.n_ == 6
    with pytest.raises(ValueError, match="which the columns age do not tell"):
        by_label.update_rows(true, answer, subgroups=flagged[["age"]])
    others = PromiseMonitor(replace(promise, subgroup="rest"))
    others.update_rows(true, answer, subgroups=flagged[["sex=Female"]])
    others.update_rows(true[:2], answer[:2], subgroups=flagged[["sex=Female"]][:2])
    assert others.n_ == 1
    with pytest.raises(ValueError, match="which the columns sex do not tell"):
        others.update_rows(true, answer, subgroups=pd.DataFrame({"sex": sex}))
    # Labels may be bools, missing cells, or words that look like two parts.
    told = pd.DataFrame(
        {"old": [True, False, True, True], "city": ["a and b", None] * 2}
    )
    for subgroup, n in (
        ("old=True", 3),
        ("old=False", 1),
        ("city=missing", 2),
        ("city=", 2),
        ("city=a and b", 2),
        ("old=True and city=a and b", 2),
    ):
        monitor = PromiseMonitor(replace(promise, subgroup=subgroup))
        assert monitor.update_rows(true, answer, subgroups=told).n_ == n
    flags = pd.DataFrame({"old=True": told["old"], "young": ~told["old"]})
    for table in (told[["old"]], np.ones((4, 2), dtype=bool), flags):
        with pytest.raises(ValueError, match="not tell: give a bool for each row"):
            PromiseMonitor(replace(promise, subgroup="old=True and x=1")).update_rows(
                true, answer, subgroups=table
            )
    # A cell of crossed columns and another, by the names that a model gives to both.
    crossed = replace(promise, subgroup="sex=F and age<30 and site=1")
    inside = {"sex=F and age<30": [True] * 3 + [False], "site=1": [False, True] * 2}
    cells = PromiseMonitor(crossed)
    cells.update_rows(true, answer, subgroups=pd.DataFrame(inside))
    assert cells.n_ == 1
    with pytest.raises(ValueError, match="2 rows for 4 rows"):
        by_label.update_rows(true, answer, subgroups=[True, False])
    overall = PromiseMonitor(replace(promise, subgroup=None))
    with pytest.raises(ValueError, match="`subgroups` play no part"):
        overall.update_rows(true, answer, subgroups=[True] * 4)


def test_a_count_that_is_no_number_is_refused_by_its_name():
    with pytest.raises(
        ValueError, match=r"`violations` must lie in \[0, 10\], got 'a'"
    ):
        PromiseMonitor(promise()).update("a", 10)


@pytest.mark.parametrize("state", [{}, None, []])
def test_what_is_no_state_is_refused(state):
    with pytest.raises(ValueError, match="the state is none that `to_dict`"):
        PromiseMonitor.from_dict(state)


@pytest.mark.parametrize("subgroups", [["F", "M"], [3, 0], [True, None]])
def test_subgroups_that_are_no_bools_are_refused(subgroups):
    """Every word is true as a bool, so that rows of all subgroups would count."""
    about_some = Guarantee(
        quantity="error rate", bound=0.1, sense="<=", subgroup="sex=F"
    )
    with pytest.raises(ValueError, match="must hold a bool for each row"):
        PromiseMonitor(about_some).update_rows([0, 1], [0, 0], subgroups=subgroups)
