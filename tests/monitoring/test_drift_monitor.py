"""`DriftMonitor`: exact means over every order of the rows, and what it survives."""

import copy
import itertools
import json
import math
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import binom
from sklearn.exceptions import NotFittedError

from prudent import ConformalDetector, DriftMonitor
from prudent._version import __version__
from prudent.monitoring import broken_promises
from prudent.monitoring.drift_monitor import Urns, group_cuts, tilts
from prudent.rules.scores import Rounding

CUTS = {
    108: [0, 1, 3, 7, 14, 27, 41, 54, 68, 82, 95, 102, 106, 108, 109],
    19: [0, 1, 2, 5, 8, 10, 12, 15, 18, 19, 20],
    3: [0, 1, 2, 3, 4],
}


def test_what_is_proved_of_several_columns_is_said():
    watched = DriftMonitor(random_state=0).fit(np.random.default_rng(0).random((50, 2)))
    assert "at most 0.05, if the columns are independent of each other." in str(watched)


@pytest.mark.parametrize("m", [*CUTS, 4, 5, 50, 999, 100_000])
def test_groups(m):
    cuts = group_cuts(m)
    assert cuts.tolist() == CUTS.get(m, cuts.tolist())
    assert len(cuts) <= 15
    assert (cuts[0], cuts[-1]) == (0, m + 1)
    assert np.all(np.diff(cuts) > 0)
    # mirror images, but for the middle of an odd number of positions
    assert np.abs(cuts[-1] - cuts[::-1] - cuts).max() <= 1


def test_tilts():
    w = tilts(group_cuts(108))
    assert w.shape == (8, 14)
    assert np.all(np.diff(w[2:4], axis=1) > 0)
    assert np.all(np.diff(w[:2], axis=1) < 0)
    np.testing.assert_allclose(w[0], w[3][::-1], rtol=0.05)
    assert w[4, 0] > 1 > w[4, 7]
    assert w[5, 0] < 1 < w[5, 7]
    assert w[6].tolist() == [5.0, *[1.0] * 13]
    assert w[7].tolist() == [*[1.0] * 13, 5.0]


def mean_over_orders(columns, m, ties):
    """Mean and peaks of E over all orders of the rows; `columns` holds ranks."""
    n = len(columns[0])
    total, peaks = 0.0, []
    orders = list(itertools.permutations(range(n)))
    for order in orders:
        ranks = np.array([[column[i] for column in columns] for i in order], float)
        values, coins = np.floor(ranks / ties), (ranks % ties) / ties
        urns = Urns(values[:m], coins[:m])
        for t in range(m, n):
            urns.rows(values[t : t + 1], coins[t : t + 1], threshold=np.inf)
        total += urns.counts[2]
        peaks.append(urns.counts[3])
    return total / len(orders), np.array(peaks)


@pytest.mark.parametrize("ties", [1, 2, 6])
@pytest.mark.parametrize("second", [None, (0, 1, 2, 3, 4, 5), (3, 0, 5, 1, 4, 2)])
def test_mean_is_one_over_all_orders_of_the_rows(ties, second):
    columns = [tuple(range(6))] + ([second] if second else [])
    mean, peaks = mean_over_orders(columns, 3, ties)
    assert mean == pytest.approx(1, abs=1e-12)
    assert all((peaks >= 1 / level).mean() <= level for level in (0.9, 0.5, 0.2, 0.05))


def test_coins_kept_by_the_reference_make_ties_exact():
    """Placed anew at random each time, equal values would not follow the urn."""
    reference = np.zeros((3, 1))
    total = {"anew": 0.0, "urn": 0.0}
    for path in itertools.product(range(4), repeat=4):
        urns = Urns(reference, np.array([[0.2], [0.4], [0.6]]))
        coins = np.array([[0.1], [0.3], [0.5], [0.7]])[list(path)]
        urns.rows(np.zeros((4, 1)), coins, threshold=np.inf)
        sizes, chance = np.ones(4), 1.0
        for group in path:
            chance *= sizes[group] / sizes.sum()
            sizes[group] += 1
        total["anew"] += urns.counts[2] / 4**4
        total["urn"] += urns.counts[2] * chance
    assert total["urn"] == pytest.approx(1, abs=1e-12)
    assert total["anew"] < 0.99


def rows(n=400, d=3, shift=0.0, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d)) + shift


@pytest.mark.parametrize("make", [rows, lambda **k: np.floor(rows(**k))])
def test_one_by_one_array_and_stored_are_the_same_bits(make):
    reference, new = make(), make(n=300, shift=0.1, seed=1)
    whole = DriftMonitor(random_state=0).fit(reference).update(new)
    one_by_one = DriftMonitor(random_state=0).fit(reference)
    for t in range(300):
        one_by_one.update(new[t : t + 1])
    stored = DriftMonitor(random_state=0).fit(reference)
    for part in np.split(new, [1, 2, 120]):
        text = json.dumps(stored.update(part).to_dict(), allow_nan=False)
        stored = DriftMonitor.from_dict(json.loads(text))
    assert whole == one_by_one == stored
    assert whole.n_ == 300
    assert whole.frame().equals(stored.frame())


def test_copies_and_pickles_go_their_own_way():
    monitor = DriftMonitor(random_state=0).fit(rows()).update(rows(seed=2))
    for twin in (copy.deepcopy(monitor), pickle.loads(pickle.dumps(monitor))):
        assert twin == monitor
        assert twin.update(rows(n=1)) != monitor
    assert monitor != "monitor"


def test_a_changed_column_is_seen_and_named():
    frame = pd.DataFrame(rows(), columns=["age", "weight", "height"])
    monitor = DriftMonitor(random_state=0).fit(frame)
    monitor.update(pd.DataFrame(rows(seed=1), columns=frame.columns))
    assert monitor.verdict == "none seen"
    moved = rows(seed=3) + np.array([0.0, 1.0, 0.0])
    monitor.update(pd.DataFrame(moved, columns=frame.columns))
    assert monitor.verdict == "drift"
    assert 400 < monitor.alarm_at_ < 500
    table = monitor.frame()
    assert table.column_names == ["column", "e_value", "mean position"]
    assert table["column"][0].as_py() == "weight"
    assert table["mean position"][0].as_py() > 0.6
    assert all(0.4 < p.as_py() < 0.6 for p in table["mean position"][1:])
    stored = DriftMonitor.from_dict(monitor.to_dict())
    assert stored.frame()["column"].to_pylist()[0] == "weight"
    assert "drift since row" in str(stored)
    assert broken_promises([monitor]).tolist() == [True]


def test_frames_and_lists_are_the_same():
    names = ["a", "b", "c"]
    plain = DriftMonitor(random_state=0).fit(rows()).update(rows(seed=1))
    for kind in (pd.DataFrame, pl.DataFrame):
        first = kind(dict(zip(names, rows().T, strict=True)))
        new = kind(dict(zip(names, rows(seed=1).T, strict=True)))
        monitor = DriftMonitor(random_state=0).fit(first).update(new)
        assert monitor.e_value == plain.e_value
        assert sorted(monitor.frame()["column"].to_pylist()) == names
    one = DriftMonitor(random_state=0).fit(rows()[:, 0]).update(rows(seed=1)[:, 0])
    also = DriftMonitor(random_state=0).fit(rows()[:, :1].tolist())
    assert also.update(rows(seed=1)[:, 0].tolist()) == one


def test_coins_depend_on_the_seed_only():
    binary = (rows() > 0).astype(float)
    a, b, c = (
        DriftMonitor(random_state=s).fit(binary).update(binary) for s in (0, 0, 1)
    )
    assert a == b
    assert a.e_value != c.e_value
    assert DriftMonitor().fit(binary).update(binary).n_ == 400


def test_a_constant_column_is_kept():
    monitor = DriftMonitor(random_state=0).fit(np.zeros((100, 1)))
    monitor.update(np.zeros((500, 1)))
    assert monitor.verdict == "none seen"
    assert monitor.update(np.ones((200, 1))).verdict == "drift"


def test_scores_of_a_detector():
    class Detector:
        calibration_scores_ = np.sort(rows()[:, 0])

        def calibrated_scores(self, X):
            return np.asarray(X)[:, 0]

    detector = Detector()
    monitor = DriftMonitor.from_detector(detector, random_state=0, level=0.1)
    plain = DriftMonitor(random_state=0, level=0.1).fit(detector.calibration_scores_)
    new = rows(seed=1)
    assert monitor.update(new).e_value == plain.update(new[:, 0]).e_value
    assert monitor.level == 0.1
    assert monitor.frame()["column"].to_pylist() == ["score"]
    assert str(monitor).startswith("Drift of scores against 400 reference rows: none")
    assert str(monitor).endswith("called drifted with probability at most 0.1.")
    stored = DriftMonitor.from_dict(monitor.to_dict(), detector)
    alone = DriftMonitor.from_dict(monitor.to_dict())
    assert stored.update(new) == alone.update(new[:, 0]) == monitor.update(new)
    with pytest.raises(TypeError, match=r"^object keeps no calibration scores"):
        DriftMonitor.from_detector(object())


def test_equal_rows_tie_however_many_a_detector_is_asked_at_once():
    """Its scores differ in the last digit then, which is no drift."""
    alarms, alone = 0, 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        X, new = rng.integers(0, 2, size=(2, 400, 3)).astype(float)
        detector = ConformalDetector(method="split", random_state=seed).fit(X)
        scores = np.concatenate([detector.calibrated_scores(row[None]) for row in new])
        alone += (scores != detector.calibrated_scores(new)).sum()
        monitor = DriftMonitor.from_detector(detector, random_state=seed)
        state = monitor.to_dict()
        together = monitor.update(new)
        of_scores = DriftMonitor.from_dict(state).update(scores)
        assert of_scores.e_value == together.e_value
        alarms += of_scores.verdict == "drift"
    assert alone > 0  # else there is nothing to see
    assert binom.sf(alarms - 1, 60, 0.05) > 1e-3


def test_scores_are_levelled_as_a_rule_takes_them_for_equal():
    rounding = Rounding(1e-9)
    scores = np.sort([0.0, 1e-16, 5e-10, 1.5e-9, 1.0, 1.0 + 1e-12, 2.0])
    levels = rounding.levels(scores)
    assert levels.tolist() == [0.0, 1.5e-9, 1.0, 2.0]
    asked = np.array([-1e-12, 9e-10, 1.4e-9, 1.0 - 1e-12, 1.5, 2.0, 3.0, -np.inf])
    expected = [0.0, 0.0, 1.5e-9, 1.0, 1.5, 2.0, 3.0, -np.inf]
    assert rounding.at_levels(asked, levels).tolist() == expected
    assert rounding.at_levels(scores, levels).tolist() == [0.0] * 3 + [
        1.5e-9, 1.0, 1.0, 2.0
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: DriftMonitor(level=0),
            ValueError,
            "`level` must lie in (0, 1), got 0.",
        ),
        (
            lambda: DriftMonitor().fit([[1.0], [2.0]]),
            ValueError,
            "DriftMonitor: 2 reference rows; give at least 3.",
        ),
        (
            lambda: DriftMonitor().fit([[1.0], [math.nan], [2.0]]),
            ValueError,
            "Input X contains NaN",
        ),
        (
            lambda: DriftMonitor().fit(rows()).update(rows(d=2)),
            ValueError,
            "X has 2 features, but DriftMonitor is expecting 3 features as input.",
        ),
        (
            lambda: (
                DriftMonitor()
                .fit(pd.DataFrame(rows(), columns=list("abc")))
                .update(pd.DataFrame(rows(), columns=list("abd")))
            ),
            ValueError,
            "The feature names should match those that were passed during fit",
        ),
        (
            lambda: DriftMonitor().update([[1.0]]),
            NotFittedError,
            "This DriftMonitor has no reference yet: call `fit` first.",
        ),
        (
            lambda: DriftMonitor.from_dict({"format": 2}),
            ValueError,
            f"the state has format 2, this is prudent {__version__} with format 1. "
            "Install a newer prudent.",
        ),
    ],
)
def test_refused(call, error, text):
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value).startswith(text)


def test_rows_refused_are_not_counted():
    monitor = DriftMonitor(random_state=0).fit(rows()).update(rows(n=5))
    before = monitor.to_dict()
    with pytest.raises(ValueError, match="contains NaN"):
        monitor.update([[0.0, 1.0, math.nan]])
    assert monitor.update(np.empty((0, 3))).to_dict() == before


def test_representations():
    assert repr(DriftMonitor()) == "DriftMonitor(level=0.05)"
    monitor = DriftMonitor(random_state=0).fit(rows())
    assert repr(monitor) == (
        "DriftMonitor(level=0.05, columns=3, n=0, verdict='none seen')"
    )
    assert monitor.frame()["e_value"].to_pylist() == [1.0] * 3
