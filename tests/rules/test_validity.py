"""Promises of rules on fresh draws, by exact binomial tests; planted cuts fail them."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from prudent.rules.make import ClassErrors, SelectiveError
from prudent.rules.rule import Coverage, FalseAlarms, Terms
from prudent.rules.scores import AnswerScores, CalibrationScores, ClassScores

# Scores of laws whose distribution function is known, continuous and with ties.
LAWS = {"uniform": None, "coarse": 10, "binary": 2}
SIZES = (20, 59, 120, 300)
LEVEL = 1e-3 / 100  # for each of at most 100 tests of true promises
DRAWS = 1500
RATE, CONFIDENCE = 0.1, 0.9


def drawn(rng, steps, size):
    uniform = rng.uniform(size=size)
    return uniform if steps is None else np.floor(uniform * steps) / steps


def share_below(cut, steps):
    """Probability that a score is below a cut."""
    cut = np.clip(cut, 0.0, 1.0)
    return cut if steps is None else np.ceil(cut * steps) / steps


def refuted(violations, promised, n=DRAWS):
    """Whether as many violations are too many for what is promised, at `LEVEL`."""
    return binom.sf(violations - 1, n, promised) < LEVEL


def average_misses(make, steps, n, seed, draws=DRAWS):
    """One new row for each draw of calibration rows: how many are left out."""
    rng = np.random.default_rng(seed)
    cuts = np.array([make(drawn(rng, steps, n)).thresholds[0] for _ in range(draws)])
    return int((drawn(rng, steps, draws) < cuts).sum())


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("n", SIZES)
def test_averages_are_kept(law, n):
    steps = LAWS[law]

    def make(own):
        scores = CalibrationScores.from_rows(own)
        return Coverage(scores=scores, classes=("a",)).rule(RATE)

    promised = 1 - make(np.zeros(n)).guarantees[0].bound
    assert promised <= RATE
    assert not refuted(average_misses(make, steps, n, seed=n), promised)


@pytest.mark.parametrize("n", [20, 39])
def test_a_cut_one_rank_too_high_is_refuted(n):
    def make(own):
        rule = FalseAlarms(scores=CalibrationScores.from_rows(own)).rule(RATE)
        planted = np.sort(own)[int(rule.record["rank"])]
        return replace(rule, thresholds=(planted,))

    promised = make(np.arange(float(n))).guarantees[0].bound
    draws = 8000  # enough to see the difference of one rank
    assert refuted(average_misses(make, None, n, n, draws), promised, draws)

    def sure(own):
        terms = Terms(confidence=CONFIDENCE)
        rule = FalseAlarms(scores=CalibrationScores.from_rows(own), terms=terms).rule(
            RATE
        )
        return replace(rule, thresholds=(np.sort(own)[int(rule.record["rank"])],))

    assert refuted(rates_above(sure, None, n, n, draws), 1 - CONFIDENCE, draws)


def rates_above(make, steps, n, seed, draws=DRAWS):
    """Draws of calibration rows whose cut leaves out more than the rate."""
    rng = np.random.default_rng(seed)
    cuts = np.array([make(drawn(rng, steps, n)).thresholds[0] for _ in range(draws)])
    return int((share_below(cuts, steps) > RATE + 1e-12).sum())


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("n", SIZES)
def test_confidence_is_kept(law, n):
    def make(own):
        terms = Terms(confidence=CONFIDENCE)
        return FalseAlarms(scores=CalibrationScores.from_rows(own), terms=terms).rule(
            RATE
        )

    assert not refuted(rates_above(make, LAWS[law], n, seed=n), 1 - CONFIDENCE)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("n", SIZES)
def test_smoothed_and_exact_rates_are_attained(law, n):
    steps, rng = LAWS[law], np.random.default_rng(n)
    missed = 0
    for _ in range(DRAWS):
        scores = CalibrationScores.from_rows(drawn(rng, steps, n))
        rule = FalseAlarms(scores=scores, smoothed=True).rule(RATE)
        missed += rule.alarms(drawn(rng, steps, 1), coins=rng.uniform(size=1))[0]
    assert not refuted(missed, RATE)
    assert not refuted(DRAWS - missed, 1 - RATE)

    def exact(own):
        made = FalseAlarms(scores=CalibrationScores.from_rows(own), coin=rng.uniform())
        return made.rule(RATE)

    missed = average_misses(exact, steps, n, seed=n)
    assert not refuted(missed, RATE)
    assert steps is not None or not refuted(DRAWS - missed, 1 - RATE)


def wrong_rate(above):
    """Error rate of scores above a cut: wrong for the lower third and a high band."""
    above = np.clip(above, 0.0, 1.0)
    rates = ((0.0, 1 / 3, 0.5), (1 / 3, 0.7, 0.04), (0.7, 0.8, 0.3), (0.8, 1.0, 0.02))
    mass = sum(r * np.clip(high - np.maximum(low, above), 0, None)
               for low, high, r in rates)  # fmt: skip
    return mass / np.maximum(1 - above, 1e-12)


def is_wrong(rng, score):
    chance = np.select(
        [score < 1 / 3, score < 0.7, score < 0.8], [0.5, 0.04, 0.3], 0.02
    )
    return rng.uniform(size=len(score)) < chance


@pytest.mark.parametrize("n", SIZES)
def test_errors_among_answers_are_kept(n):
    rng, terms = np.random.default_rng(n), Terms(confidence=CONFIDENCE)
    too_many = 0
    for _ in range(DRAWS):
        score = rng.uniform(size=n)
        scores = AnswerScores.from_answers(score, is_wrong(rng, score))
        rule = SelectiveError(scores=scores, terms=terms).rule(RATE)
        (cut,) = rule.thresholds
        too_many += cut < 1 and wrong_rate(max(cut, 0.0)) > RATE
    assert not refuted(too_many, 1 - CONFIDENCE)


def test_a_plug_in_cut_of_errors_is_refuted():
    rng, too_many = np.random.default_rng(0), 0
    for _ in range(DRAWS):
        score = rng.uniform(size=120)
        rows = AnswerScores.from_answers(score, is_wrong(rng, score))
        measured = rows.wrong[1:] / np.arange(1, 121)
        k = int(np.flatnonzero(measured <= RATE).max(initial=-1)) + 1
        too_many += k > 0 and wrong_rate(max(rows.sureness[k], 0.0)) > RATE
    assert refuted(too_many, 1 - CONFIDENCE)


@pytest.mark.parametrize("in_sets", [False, True])
@pytest.mark.parametrize("n", [59, 120, 300])
def test_limits_of_classes_hold_together(n, in_sets):
    rng, terms = np.random.default_rng(n), Terms(confidence=CONFIDENCE)
    limits, broken, raised = {0: 0.3, 1: 0.6}, 0, 0
    for _ in range(DRAWS):
        codes = rng.integers(0, 3, n)
        scores = rng.normal(size=(n, 3))
        scores[np.arange(n), codes] += 1
        rows = ClassScores(scores, codes, np.arange(3))
        try:
            rule = ClassErrors(scores=rows, in_sets=in_sets, terms=terms).rule(limits)
        except ValueError:
            raised += 1
            continue
        first, second = (share_under(cut - 1) for cut in rule.thresholds[:2])
        if not in_sets:  # a row of class 1 is lost to class 0 too
            kept_from_first = share_under(rule.thresholds[0])
            second = 1 - (1 - second) * kept_from_first
        broken += first > limits[0] or second > limits[1]
    assert raised < DRAWS
    assert not refuted(broken, 1 - CONFIDENCE)


def share_under(cut):
    from scipy.special import ndtr

    return ndtr(cut)
