"""What rules answer, refuse and promise."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from prudent.core.assumptions import Assumption
from prudent.exceptions import InfeasibleError
from prudent.rules.make import ClassErrors, SelectiveError, class_scores_of
from prudent.rules.rule import Coverage, FalseAlarms, Rule, Terms
from prudent.rules.scores import ROUNDING, AnswerScores, CalibrationScores

SURE = Terms(confidence=0.95)


def coverage(own, category=0, names=(None,), **settings):
    scores = CalibrationScores.from_rows(own, category, names, ROUNDING)
    return Coverage(scores=scores, classes=("a", "b", "c"), **settings)


def made_sets(by):
    rng = np.random.default_rng(0)
    own = rng.integers(0, 40, 90) / 7
    category = np.arange(90) % 3 if by else 0
    names = {None: (None,), "class": "abc", "group": "pqr"}[by]
    return coverage(own, category, names, by=by)


@pytest.mark.parametrize("by", [None, "class", "group"])
@pytest.mark.parametrize("terms", [Terms(), SURE])
def test_sets_hold_the_labels_of_p_values_above_the_rank(by, terms):
    source = made_sets(by)
    made = replace(source, terms=terms)
    rng = np.random.default_rng(1)
    scores = rng.integers(-5, 45, (200, 3)) / 7
    groups = np.resize(["p", "q", "r", "new"], 200) if by == "group" else None
    for rate in (0.02, 0.1, 0.3):
        rule = made.rule(rate)
        found = rule.sets(scores, groups, allow_empty=True)
        ranks = np.array([terms.rank(n, rate) for n in source.scores.sizes])
        sizes = source.scores.sizes
        if by == "group":
            place = np.tile([0, 1, 2, 3], 50)
            ranks, sizes = np.append(ranks, 0)[place], np.append(sizes, 0)[place]
            ranks, sizes = ranks[:, None], sizes[:, None]
        expected = rule.p_values(scores, groups) > ranks / (sizes + 1)
        np.testing.assert_array_equal(found, expected)
        full = rule.sets(scores, groups)
        assert (full >= found).all()
        assert full[np.arange(200), scores.argmax(axis=1)].all()
        if by == "group":
            assert found[3::4].all()
        other = made.rule(0.5).at(rate)
        assert other.thresholds == rule.thresholds
        assert other.guarantees == rule.guarantees
        again = pickle.loads(pickle.dumps(rule))
        np.testing.assert_array_equal(again.sets(scores, groups), full)


def test_sets_promise_their_rank():
    own = np.arange(19.0)
    (promise,) = coverage(own).rule(0.1).guarantees
    assert promise.bound == 1 - 2 / 20
    assert promise.evidence == {"calibration rows": 19, "rank": 2}
    assert promise.average_over == "training samples"
    assert promise.assumptions == (Assumption.EXCHANGEABLE,)
    # One row without a score of its label is among the two lowest, two are not.
    own[0] = -np.inf
    assert coverage(own).rule(0.1).guarantees[0].assumptions == promise.assumptions
    own[1] = -np.inf
    assumed = coverage(own).rule(0.1).guarantees[0].assumptions
    assert assumed == (Assumption.EXCHANGEABLE, Assumption.KNOWN_LABEL)
    by_class = coverage(np.arange(30.0), np.arange(30) % 3, "abc", by="class").rule(0.2)
    assert [g.scope for g in by_class.guarantees] == ["a", "b", "c"]
    assert by_class.guarantees[0].bound == 1 - 2 / 11
    assert by_class.guarantees[0].assumptions == (
        Assumption.EXCHANGEABLE_CLASS,
        Assumption.KNOWN_LABEL,
    )


def test_a_rank_of_zero_promises_that_nothing_is_left_out():
    rule = coverage(np.arange(5.0)).rule(0.1)
    assert rule.thresholds == (-np.inf,)
    assert rule.guarantees[0].bound == 1
    assert rule.sets(np.full((2, 3), -np.inf)).all()
    alarms = FalseAlarms(scores=CalibrationScores.from_rows(np.arange(5.0))).rule(0.1)
    assert alarms.guarantees[0].bound == 0
    assert not alarms.alarms(np.array([-np.inf, 0.0])).any()


def test_promises_say_how_the_rows_were_drawn():
    own = np.arange(100.0)
    frozen = coverage(own, terms=Terms(frozen=True)).rule(0.1).guarantees[0]
    assert frozen.average_over == "calibration rows"
    assert frozen.assumptions == (Assumption.EXCHANGEABLE, Assumption.UNSEEN)
    sure = coverage(own, terms=SURE).rule(0.1).guarantees[0]
    assert (sure.bound, sure.confidence) == (0.9, 0.95)
    assert sure.assumptions == (Assumption.INDEPENDENT,)
    assert sure.average_over is None
    grouped = coverage(own, terms=Terms(grouped=True, frozen=True)).rule(0.1)
    assert grouped.guarantees[0].assumptions == (Assumption.GROUPS, Assumption.UNSEEN)


def test_smoothed_sets_attain_the_rate():
    made = coverage(np.zeros(9), smoothed=True)
    rule = made.rule(0.25)
    coins = np.array([0.2, 0.3])
    np.testing.assert_allclose(
        rule.p_values(np.zeros((2, 3)), coins=coins), [[0.2] * 3, [0.3] * 3]
    )
    found = rule.sets(np.zeros((2, 3)), coins=coins, allow_empty=True)
    assert found.tolist() == [[False] * 3, [True] * 3]
    (promise,) = rule.guarantees
    assert (promise.bound, dict(promise.evidence)) == (0.75, {"calibration rows": 9.0})
    with pytest.raises(ValueError, match="give `coins`"):
        rule.sets(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="give `coins`"):
        made_sets(None).rule(0.1).p_values(np.zeros((2, 3)), coins=coins)


def test_alarms_of_high_scores_are_those_of_low_ones_turned_round():
    own = np.random.default_rng(2).normal(size=60)
    low = FalseAlarms(scores=CalibrationScores.from_rows(own)).rule(0.1)
    high = FalseAlarms(scores=CalibrationScores.from_rows(own), strange="high").rule(
        0.1
    )
    new = np.random.default_rng(3).normal(size=200)
    assert low.alarms(new).any()
    np.testing.assert_array_equal(low.alarms(new), high.alarms(-new))
    np.testing.assert_array_equal(low.p_values(new), high.p_values(-new))
    np.testing.assert_array_equal(low.alarms(new), low.p_values(new) <= 6 / 61)
    assert low.guarantees == high.guarantees
    assert low.guarantees[0].bound == 6 / 61
    assert high.thresholds[0] == -low.thresholds[0] == -np.sort(own)[5]


@pytest.mark.parametrize(("coin", "rank"), [(0.4, 5), (0.6, 4), (0.0, 5)])
def test_a_coin_chooses_the_rank_of_an_exact_rate(coin, rank):
    made = FalseAlarms(scores=CalibrationScores.from_rows(np.arange(89.0)), coin=coin)
    rule = made.rule(0.05)  # 90 times .05 is 4.5
    assert rule.record["rank"] == rank
    assert rule.guarantees[0].bound == 0.05
    assert rule.guarantees[0].evidence["rank"] == 5
    assert made.rule(0.1).record["rank"] == 9


def test_the_surest_rows_are_answered():
    sureness = np.repeat(np.arange(100.0, 0.0, -1.0), 2)
    wrong = np.arange(200) >= 150
    made = SelectiveError(scores=AnswerScores.from_answers(sureness, wrong), terms=SURE)
    rule = made.rule(0.1)
    answered = int(rule.record["answered"])
    assert answered % 2 == 0  # equal scores are answered together
    assert int(rule.answers(sureness).sum()) == answered > 100
    assert rule.guarantees[0].evidence["wrong"] == wrong[:answered].sum()
    pairs = np.column_stack([sureness, -sureness])
    np.testing.assert_array_equal(rule.answers(pairs), rule.answers(sureness))
    nothing = made.rule(0.001)
    assert nothing.thresholds == (np.inf,)
    assert nothing.guarantees == ()
    assert not nothing.answers(np.array([np.inf])).any()
    share = made.share_rule(0.29)
    answered, each = share.record["answered"], np.sqrt(0.95)
    assert binom.sf(answered - 1, 200, 0.29) <= 1 - each  # it proves the share
    error, proved = share.guarantees
    assert error.bound == pytest.approx(1 - (1 - each) ** (1 / answered))
    assert (proved.quantity, proved.bound) == ("answered share", 0.29)


def class_rows():
    rng = np.random.default_rng(4)
    labels = np.repeat(["x", "y", "z"], [80, 90, 100])
    scores = rng.normal(size=(270, 3))
    scores[np.arange(270), np.repeat([0, 1, 2], [80, 90, 100])] += 2
    return class_scores_of(scores, labels, np.array(["x", "y", "z"]))


def test_classes_with_a_limit_come_first():
    rule = ClassErrors(scores=class_rows(), terms=SURE).rule({"y": 0.3, "x": 0.6})
    assert rule.priority == ("y", "x")
    assert rule.thresholds[2] == -np.inf
    y, x = rule.thresholds[1], rule.thresholds[0]
    asked = [[x, y, 9], [x, y - 1, 9], [x - 1, y - 1, -9], [x + 9, y, 9]]
    assert rule.labels(np.array(asked)).tolist() == ["y", "x", "z", "y"]
    assert [g.scope for g in rule.guarantees] == ["y", "x"]
    assert rule.guarantees[0].evidence["claims"] == 2


def test_classes_that_cannot_keep_their_limit_are_refused_or_never_ruled_out():
    rows = class_rows()
    with pytest.raises(InfeasibleError, match="class 'x' has 80 held-out rows"):
        ClassErrors(scores=rows, terms=SURE).rule({"x": 0.001})
    with pytest.raises(InfeasibleError, match="of 80 held-out rows of class 'x' are"):
        ClassErrors(scores=rows, terms=SURE).rule({"y": 0.05, "x": 0.06})
    rule = ClassErrors(scores=rows, in_sets=True, terms=SURE).rule({"x": 0.001})
    assert rule.thresholds == (-np.inf,) * 3
    limited = ClassErrors(scores=rows, in_sets=True, terms=SURE)
    limited = limited.rule(dict.fromkeys("xyz", 0.1))
    assert limited.sets(np.full((1, 3), -99.0)).all()  # no class is reached
    assert not limited.sets(np.full((1, 3), -99.0), allow_empty=True).any()
    assert [g.quantity for g in limited.guarantees] == ["coverage"] * 3


def test_misuse_is_refused():
    alarms = FalseAlarms(scores=CalibrationScores.from_rows(np.arange(50.0))).rule(0.1)
    with pytest.raises(TypeError, match="a rule of kind 'alarms' has no sets"):
        alarms.sets(np.zeros((3, 2)))
    answers = Rule(kind="answers", thresholds=(0.5,))
    with pytest.raises(TypeError, match="a rule of kind 'answers' has no p-values"):
        answers.p_values(np.zeros(3))
    sets = made_sets("group").rule(0.1)
    with pytest.raises(ValueError, match="3 columns, got scores of shape"):
        sets.sets(np.zeros((2, 2)), np.array(["p", "p"]))
    with pytest.raises(ValueError, match="one score a row, got scores of shape"):
        alarms.alarms(np.zeros((2, 2)))
    with pytest.raises(ValueError, match="of 1 of 2 rows are NaN"):
        alarms.alarms(np.array([0.0, np.nan]))
    with pytest.raises(ValueError, match="give `groups`"):
        sets.sets(np.zeros((2, 3)))
    bare = Rule(kind="alarms", thresholds=(0.5,))
    assert bare.alarms(np.array([0.4, 0.5])).tolist() == [True, False]
    with pytest.raises(ValueError, match="keeps no scores of calibration rows"):
        bare.p_values(np.zeros(3))
    with pytest.raises(ValueError, match="keeps no scores of calibration rows"):
        bare.at(0.2)
