"""Batch selection: exact false discovery rates of small cases, and its detectors."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom

from prudent import (
    ConformalDetector,
    DriftMonitor,
    LowDensityRejector,
    MinimaxOutlierDetector,
)
from prudent.core.assumptions import Assumption
from prudent.core.selection import given_calibration, rows_needed, select_rows
from prudent.exceptions import PrudentWarning

P = np.array([1, 1, 2, 3, 5, 8, 30, 60, 90, 100]) / 100


def test_reference_selection():
    assert select_rows(P, 99, rate=0.1).mask.tolist() == [True] * 5 + [False] * 5
    assert select_rows(P, 99, rate=0.05).mask.tolist() == [True] * 2 + [False] * 8
    more = select_rows(P, 99, rate=0.1, null_share="storey").mask
    assert more[:5].all()
    assert more.sum() >= 5


def test_reference_p_values_given_calibration():
    found = given_calibration(np.array([1, 2, 10, 50, 99]) / 100, 99, 0.9)
    expected = [0.04500741, 0.05834630, 0.16538182, 0.74535009, 1]
    np.testing.assert_allclose(found, expected, atol=1e-8)


def exact_exceedance(m, confidence):
    """P(some U_(i) > h_i), U_(1..m) the order of m uniforms: a chain over counts."""
    h = given_calibration(np.arange(1, m + 1) / (m + 1), m, confidence)
    law, before = np.zeros(m + 1), 0.0
    law[0] = 1.0
    for i, limit in enumerate(h, 1):
        if limit < 1 and limit > before:
            step = (limit - before) / (1 - before)
            new = np.zeros_like(law)
            for count in np.flatnonzero(law):
                left = np.arange(m - count + 1)
                new[count:] += law[count] * binom.pmf(left, m - count, step)
            law, before = new, limit
        law[:i] = 0 if limit < 1 else law[:i]  # fewer than i below h_i
    return 1 - law.sum()


@pytest.mark.parametrize("m", [2, 5, 20, 99])
@pytest.mark.parametrize("confidence", [0.5, 0.9])
def test_p_values_given_calibration_hold_with_exactly_their_confidence(m, confidence):
    assert exact_exceedance(m, confidence) == pytest.approx(1 - confidence, abs=1e-9)


def exact_rates(m, n_ordinary, gaps, rate, null_share):
    """False discovery rate over all choices of the calibration rows.

    The m + n_ordinary ordinary rows are exchangeable; unusual rows lie in the given
    gaps of their order.
    """
    total = m + n_ordinary
    found = []
    for chosen in itertools.combinations(range(total), m):
        calibration = np.array(chosen, float)
        ordinary = np.setdiff1d(np.arange(total), chosen)
        scores = np.concatenate([ordinary, np.array(gaps) - 0.5])
        p = (1 + (calibration[:, None] <= scores).sum(axis=0)) / (m + 1)
        mask = select_rows(p, m, rate=rate, null_share=null_share).mask
        found.append(mask[:n_ordinary].sum() / max(1, mask.sum()))
    return float(np.mean(found))


CASES = [
    (m, n0, gaps)
    for m, n0 in [(3, 1), (3, 2), (4, 3), (5, 2), (6, 1), (4, 4)]
    for n1 in (0, 1, 2)
    for gaps in itertools.combinations_with_replacement(
        (0, 1, (m + n0) // 2, m + n0), n1
    )
]


@pytest.mark.parametrize("rate", [0.2, 0.35, 0.5])
def test_exact_false_discovery_rate(rate):
    attained = 0.0
    for m, n0, gaps in CASES:
        share = n0 / (n0 + len(gaps))
        found = exact_rates(m, n0, gaps, rate, "one")
        assert found <= share * rate + 1e-12
        attained = max(attained, found / (share * rate))
        assert exact_rates(m, n0, gaps, rate, "storey") <= rate + 1e-12
    assert attained > 0.7


def test_an_estimated_share_above_one_is_not_cut_off():
    """Cut off, it selected more: 1.16 times the rate, where no row is unusual."""
    assert 0.1 < exact_rates(19, 4, (), 0.2, "storey") <= 0.2


SIMULATED = list(itertools.product((50, 200, 1000), (20, 100, 500), (0, 0.1, 0.3)))


@pytest.mark.parametrize(
    ("cells", "batches"),
    [
        pytest.param(SIMULATED, 1000, marks=pytest.mark.slow, id="27 cells"),
        pytest.param([(50, 20, 0.3), (200, 20, 0)], 300, id="2 cells"),
    ],
)
@pytest.mark.parametrize("rule", [{}, {"null_share": "storey"}, {"confidence": 0.9}])
def test_simulated_false_discovery_rate(rule, cells, batches):
    rng = np.random.default_rng(5)
    for m, n, share in cells:
        unusual = np.arange(n) < round(share * n)
        wrong = []
        for _ in range(batches):
            calibration = np.sort(rng.normal(size=m))
            scores = rng.normal(size=n) - 3 * unusual
            below = np.searchsorted(calibration, scores, side="right")
            mask = select_rows((1 + below) / (m + 1), m, rate=0.1, **rule).mask
            wrong.append((mask & ~unusual).sum() / max(1, mask.sum()))
        # By Storey's estimate the rate itself is promised, not that of ordinary rows.
        promised = 0.1 if "null_share" in rule else 0.1 * (1 - unusual.mean())
        error = np.std(wrong) / np.sqrt(batches)
        assert np.mean(wrong) <= promised + 3.7 * error, (m, n, share)


def test_more_is_selected_at_a_larger_rate_and_less_with_confidence():
    rng = np.random.default_rng(0)
    p = np.ceil(rng.beta(0.4, 1, 200) * 100) / 100
    masks = [select_rows(p, 99, rate=q).mask for q in (0.02, 0.05, 0.1, 0.3)]
    for small, large in itertools.pairwise(masks):
        assert np.all(large[small])
    sure = select_rows(p, 99, rate=0.3, confidence=0.9)
    assert np.all(masks[-1][sure.mask])
    assert np.all(sure.p_values >= p)
    storey = select_rows(p, 99, rate=0.1, null_share="storey").mask
    assert np.all(storey[masks[2]])


def test_guarantee_of_a_selection():
    on_average = select_rows(P, 99, rate=0.1).guarantee
    assert on_average.quantity == "false discovery rate"
    assert (on_average.bound, on_average.sense) == (0.1, "<=")
    assert on_average.confidence is None
    assert on_average.average_over == "calibration rows"
    assert dict(on_average.evidence) == {"calibration rows": 99, "n": 10, "selected": 5}
    assert on_average.assumptions == (Assumption.NOT_CHOSEN_IN_BATCH,)
    sure = select_rows(P, 99, rate=0.1, confidence=0.9).guarantee
    assert sure.confidence == 0.9
    assert sure.average_over is None
    assert sure.assumptions == (
        Assumption.INDEPENDENT_NORMAL,
        Assumption.NOT_CHOSEN_IN_BATCH,
    )
    with pytest.raises(ValueError, match="expectation over batches"):
        sure.check(1, 10)


def test_rows_needed():
    assert rows_needed(100, 99, 0.1, None) == 10
    assert rows_needed(100, 99, 0.1, 0.9) == math.ceil(100 * 0.04500741 / 0.1)
    assert rows_needed(0, 99, 0.1, None) == 0
    # So many are selected or none; they need not have the smallest p-value.
    ten = np.repeat([1 / 100, 0.9], [10, 90])
    nine = np.repeat([1 / 100, 0.9], [9, 91])
    twenty = np.repeat([2 / 100, 0.9], [20, 80])
    selected = [select_rows(p, 99, rate=0.1).mask.sum() for p in (ten, nine, twenty)]
    assert selected == [10, 0, 20]


def normal_rows(n=200, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 2))


def detectors():
    return [
        MinimaxOutlierDetector(random_state=0),
        LowDensityRejector(random_state=0),
        ConformalDetector(method="split", random_state=0),
    ]


@pytest.mark.parametrize("detector", detectors(), ids=lambda d: type(d).__name__)
def test_detectors_select(detector):
    detector.fit(normal_rows())
    m = len(detector.calibration_scores_)
    assert m == detector.n_calibration_ == 60
    assert np.all(np.diff(detector.calibration_scores_) >= 0)
    X = np.vstack([normal_rows(20, seed=1), np.full((10, 2), 9.0)])
    mask, p_values, guarantee = detector.select(X, false_discovery_rate=0.2)
    np.testing.assert_array_equal(p_values, detector.p_value(X))
    assert mask[20:].all()
    assert mask[:20].sum() <= 3
    assert guarantee.evidence["calibration rows"] == 60
    drift = DriftMonitor.from_detector(detector, random_state=0)
    assert drift.update(normal_rows(300, seed=2)).verdict == "none seen"
    assert drift.update(normal_rows(100, seed=3) + 2).verdict == "drift"
    empty = detector.select(np.empty((0, 2)))
    assert empty.mask.shape == empty.p_values.shape == (0,)


@pytest.mark.parametrize("detector", detectors(), ids=lambda d: type(d).__name__)
def test_a_batch_too_large_for_the_calibration_rows(detector):
    detector.fit(normal_rows())
    too_small = "no p-value is small enough to select"
    with pytest.warns(PrudentWarning, match=f"{too_small} fewer than 66 of 100 rows;"):
        found = detector.select(normal_rows(100), false_discovery_rate=0.025)
    assert not found.mask.any()
    detector.select(np.full((1, 2), 9.0), false_discovery_rate=0.2)  # in silence
    with pytest.warns(PrudentWarning, match=f"{too_small} any of 100 rows;"):
        detector.select(normal_rows(100), false_discovery_rate=0.01)
    with pytest.warns(PrudentWarning, match="unless it takes few rows to be ordinary"):
        detector.select(
            normal_rows(100), false_discovery_rate=0.025, null_share="storey"
        )


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            {"false_discovery_rate": 0},
            "`false_discovery_rate` must lie in (0, 1), got 0.",
        ),
        ({"null_share": "x"}, "`null_share` must be 'one' or 'storey', got 'x'."),
        ({"confidence": 1}, "`confidence` must lie in (0, 1) or be None, got 1."),
    ],
)
def test_settings_refused(arguments, text):
    detector = LowDensityRejector(random_state=0).fit(normal_rows())
    with pytest.raises(ValueError) as caught:
        detector.select(normal_rows(5), **arguments)
    assert str(caught.value) == text


def test_only_detectors_with_calibration_rows_select():
    for detector in (
        MinimaxOutlierDetector(threshold="distribution_free"),
        LowDensityRejector(strategy="soft", divergence_bound=1.0),
        ConformalDetector().fit(normal_rows(30)),
        ConformalDetector(method="split", ties="smoothed"),
    ):
        assert not hasattr(detector, "select")
        with pytest.raises(AttributeError, match="has no attribute 'select'"):
            detector.select  # noqa: B018
        assert not hasattr(detector, "calibration_scores_")
    assert hasattr(LowDensityRejector(), "select")
    with pytest.raises(AttributeError, match="keeps no calibration scores: it is not"):
        LowDensityRejector().calibration_scores_  # noqa: B018


def test_a_confidence_that_is_no_number_is_refused_by_its_name():
    rows = np.random.default_rng(0).normal(size=(80, 2))
    detector = ConformalDetector(method="split", random_state=0).fit(rows)
    with pytest.raises(ValueError, match=r"`confidence` must lie in .*, got 'a'\."):
        detector.select(rows, confidence="a")
