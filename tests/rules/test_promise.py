"""`prudent.promise`: what wrappers promise of a frozen model, from its scores alone."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from scipy.stats import binom, binomtest, norm
from sklearn.datasets import load_iris
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

import prudent
from prudent import Assumption, Rule
from prudent.exceptions import InfeasibleError
from prudent.rules.promise import repeated_rows

LEVEL = 1e-4
X, Y = load_iris(return_X_y=True)
ORDER = np.random.default_rng(0).permutation(150)
FIT, HELD, NEW = ORDER[:40], ORDER[40:110], ORDER[110:]
# Weak, so that sets of several labels and wrong answers occur.
MODEL = LogisticRegression(C=0.01).fit(X[FIT], Y[FIT])


def test_selective_answers_are_those_of_the_wrapper():
    wrapper = prudent.SelectiveClassifier(FrozenEstimator(MODEL), error_rate=0.3)
    wrapper.fit(X[HELD], Y[HELD])
    rule = prudent.promise(MODEL.predict_proba(X[HELD]), Y[HELD], "error <= 30%")
    np.testing.assert_allclose(rule.thresholds, wrapper.rule_.thresholds, rtol=2e-9)
    assert rule.guarantees == wrapper.guarantees_
    np.testing.assert_array_equal(
        rule.answers(MODEL.predict_proba(X[NEW])), wrapper.answers(X[NEW])
    )
    by_label = prudent.promise(
        MODEL.predict_proba(X[HELD]).max(axis=1),
        Y[HELD],
        "error <= 30%",
        predicted=MODEL.predict(X[HELD]),
    )
    assert by_label.thresholds == rule.thresholds


def test_class_errors_are_those_of_the_wrapper():
    y = (Y == 1).astype(int)
    model = LogisticRegression(C=0.01).fit(X[FIT], y[FIT])
    wrapper = prudent.NeymanPearsonClassifier(
        FrozenEstimator(model), max_class_error={1: 0.3}
    ).fit(X[HELD], y[HELD])
    rule = prudent.promise(model.predict_proba(X[HELD]), y[HELD], "missed 1 <= 30%")
    assert rule.guarantees == wrapper.guarantees_
    np.testing.assert_array_equal(
        rule.labels(model.predict_proba(X[NEW])), wrapper.predict(X[NEW])
    )


def test_capacities_are_those_of_the_wrappers():
    proba = MODEL.predict_proba(X[HELD])
    for text, settings in (
        ("error <= 50% and answered >= 30%", {"error_rate": 0.5}),
        ("answered >= 30%", {"error_rate": None}),
    ):
        wrapper = prudent.SelectiveClassifier(
            FrozenEstimator(MODEL), answered_share=0.3, **settings
        ).fit(X[HELD], Y[HELD])
        rule = prudent.promise(proba, Y[HELD], text)
        cuts = wrapper.rule_.thresholds
        np.testing.assert_allclose(rule.thresholds, cuts, rtol=2e-9)
        assert rule.guarantees == wrapper.guarantees_
        assert "answered share" in {g.quantity for g in rule.guarantees}
    y = (Y == 1).astype(int)
    model = LogisticRegression(C=0.01).fit(X[FIT], y[FIT])
    wrapper = prudent.NeymanPearsonClassifier(
        FrozenEstimator(model), max_class_error={1: 0.4}, flagged_share=0.95
    ).fit(X[HELD], y[HELD])
    rule = prudent.promise(
        model.predict_proba(X[HELD]), y[HELD], "missed 1 <= 40% and flagged <= 95%"
    )
    assert rule.guarantees == wrapper.guarantees_
    flagged = rule.guarantees[1]
    assert (flagged.quantity, flagged.scope) == ("flagged share", 1)


def test_capacities_that_cannot_be_proved_say_why():
    score = np.arange(90) / 90
    wrong = np.zeros(90, dtype=int)
    wrong[::7] = 1
    predicted = np.zeros(90, dtype=int)
    say = r"answered_share=0.96: 90 held-out rows cannot prove it, 91 are needed\."
    with pytest.raises(InfeasibleError, match=say):
        prudent.promise(
            score, wrong, "answered >= 96%", predicted=predicted, classes=[0, 1]
        )
    with pytest.raises(
        InfeasibleError, match=r"of 90 held-out rows are answered, \d+ "
    ):
        prudent.promise(
            score,
            wrong * (score < 0.5),
            "error <= 10% and answered >= 90%",
            predicted=predicted,
            classes=[0, 1],
        )
    with pytest.raises(InfeasibleError, match=r"flagged_share=0.2: \d+ of 90 rows get"):
        prudent.promise(
            1 - score, wrong, "missed 1 <= 40% and flagged <= 20%", classes=[0, 1]
        )


def law(n, rng):
    """Scores of three classes; the probability that a class scores below a cut."""
    codes = rng.choice(3, n, p=[0.6, 0.3, 0.1])
    scores = rng.normal(size=(n, 3))
    scores[np.arange(n), codes] += 1.5
    return np.round(scores, 1), codes


def missed(cut):
    """Probability that a rounded own score lies below a cut."""
    return float(norm.cdf(np.round(cut, 1) - 0.05 - 1.5)) if np.isfinite(cut) else 0.0


@pytest.mark.parametrize("n_draws", [300, pytest.param(4000, marks=pytest.mark.slow)])
def test_coverages_with_confidence_hold_all_at_once(n_draws):
    broken = 0
    for seed in range(n_draws):
        scores, y = law(600, np.random.default_rng(seed))
        rule = prudent.promise(
            scores, y, "coverage >= 80% in every class", confidence=0.9
        )
        assert all(g.confidence == 0.9 for g in rule.guarantees)
        rates = [missed(cut) for cut in rule.thresholds]
        broken += any(
            1 - rate < g.bound - 1e-12
            for rate, g in zip(rates, rule.guarantees, strict=True)
        )
    assert binom.sf(broken - 1, n_draws, 0.1) > LEVEL


@pytest.mark.parametrize("n_draws", [300, pytest.param(4000, marks=pytest.mark.slow)])
def test_averaged_coverage_in_every_group_is_the_rank(n_draws):
    total = np.zeros(2)
    for seed in range(n_draws):
        rng = np.random.default_rng(seed)
        scores, y = law(80, rng)
        group = np.where(rng.random(80) < 0.5, "a", "b")
        rule = prudent.promise(scores, y, "coverage >= 80% in every group", by=group)
        total += [missed(cut) for cut in rule.thresholds]
        assert rule.groups == ("a", "b")
        assert [g.subgroup for g in rule.guarantees] == ["group=a", "group=b"]
        rows = scores[:5]
        sets = rule.sets(rows, np.array(["a", "b", "c", "c", "a"]))
        assert sets[2:4].all()  # of a group not seen
    # The miss rate of a group is at most .2 on average; its sd is below .08.
    assert (total / n_draws <= 0.2 + 4 * 0.08 / np.sqrt(n_draws)).all()


def test_assumptions_and_record():
    scores, y = law(300, np.random.default_rng(0))
    rule = prudent.promise(
        scores,
        y,
        "coverage >= 90% in every class",
        classes=[0, 1, 2],
        unseen="hold-out of May",
    )
    assert rule.guarantees[0].assumptions == (
        Assumption.EXCHANGEABLE_CLASS,
        Assumption.KNOWN_LABEL,
        Assumption.UNSEEN,
    )
    assert rule.guarantees[0].average_over == "calibration rows"
    assert rule.record["unseen"] == "hold-out of May"
    assert rule.record["columns"] == ["0", "1", "2"]
    groups = np.repeat(np.arange(150), 2)
    grouped = prudent.promise(scores, y, "coverage >= 80%", groups=groups)
    assert grouped.guarantees[0].unit == "group"
    assert grouped.guarantees[0].evidence["calibration rows"] == 150


def test_alarms():
    rng = np.random.default_rng(0)
    strange = rng.normal(size=200)
    rule = prudent.promise(strange, None, "false alarm <= 5%")
    assert rule.alarms(np.array([9.0, -9.0])).tolist() == [True, False]
    assert rule.guarantees[0].bound == 10 / 201
    label = np.where(np.arange(200) < 150, "ok", "bad")
    part = prudent.promise(
        -strange, label, "false alarm <= 5%", ordinary="ok", strange="low"
    )
    assert part.guarantees[0].evidence["calibration rows"] == 150
    assert part.alarms(np.array([9.0, -9.0])).tolist() == [False, True]


SCORES, TRUTH = law(100, np.random.default_rng(1))
SURE = np.linspace(0, 1, 100)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (((SCORES, TRUTH, "none"), {}), ValueError, "say what is to be promised"),
        (
            ((np.full(100, 0.9), TRUTH > 0, "error <= 5%"), {"predicted": TRUTH > 0}),
            ValueError,
            "the score is 0.9 in every row",
        ),
        (
            ((np.where(SCORES > 2, np.nan, SCORES), TRUTH, "coverage >= 90%"), {}),
            ValueError,
            "has no score (NaN)",
        ),
        (
            ((SCORES, TRUTH, "coverage >= 90%"), {"classes": [0, 1, 7]}),
            ValueError,
            "truth 2 (",
        ),
        (
            ((SCORES[:, :2], TRUTH, "coverage >= 90%"), {"classes": [0, 1, 2]}),
            ValueError,
            "2 column(s) of scores for 3 classes",
        ),
        (
            ((SCORES, np.zeros(100), "coverage >= 90%"), {"classes": [0, 1, 2]}),
            ValueError,
            "all 100 rows are 0.0",
        ),
        (
            ((SCORES, TRUTH, "coverage >= 90%"), {"ids": np.arange(100) % 60}),
            ValueError,
            "40 rows repeat an earlier one (rows 0 and 60)",
        ),
        (
            ((SCORES, TRUTH, "coverage >= 90% in every group"), {}),
            ValueError,
            "does not say which groups: name a column, as in 'coverage >= 90% in",
        ),
        (
            ((SCORES, TRUTH, "coverage >= 90%"), {"by": np.arange(100) % 2}),
            ValueError,
            '"in every group" belong together',
        ),
        (
            ((SCORES, TRUTH, "coverage >= 90%"), {"by": {"a": np.zeros(100)}}),
            ValueError,
            '"in every COLUMN" belong together',
        ),
        (
            ((SCORES, TRUTH, "coverage >= 90% in every b"), {"by": {"a": [1]}}),
            ValueError,
            "no column 'b'; there are a",
        ),
        (
            ((SCORES, TRUTH, "coverage >= 90% in every a"), {"by": {"a": [1]}}),
            ValueError,
            "`by['a']` must have one value for each of the 100 rows",
        ),
        (
            (
                (SCORES, TRUTH, "coverage >= 90% in every a"),
                {"by": {"a": np.arange(100)}},
            ),
            ValueError,
            "'a' has 100 values: give bands, such as 'a:25,50,74'",
        ),
        (
            (
                (SCORES, TRUTH, "coverage >= 90% in every a"),
                {"by": {"a": np.arange(100) < 95}},
            ),
            InfeasibleError,
            "9 rows a subgroup are needed, a=False has 5",
        ),
        (
            (
                (SCORES, TRUTH, "coverage >= 80% in every class and a"),
                {"by": {"a": np.arange(100) < 98}},
            ),
            InfeasibleError,
            "4 rows a class of a subgroup are needed, 0 where a=False has ",
        ),
        (
            (
                (SURE, SURE > 2, "error <= 5% in every a"),
                {"predicted": SURE > 2, "by": {"a": np.arange(100) % 4}},
            ),
            InfeasibleError,
            "in any part of the rows: 59 rows of a part are needed, a=3 has 25, a=2",
        ),
        (
            (
                (SURE, SURE > 0.5, "error <= 5% in every a"),
                {"predicted": SURE > 2, "by": {"a": np.zeros(100)}},
            ),
            InfeasibleError,
            "in any part of the rows: too many of the surest labels are wrong.",
        ),
        (
            ((SCORES, TRUTH, "coverage >= 99% in every class"), {}),
            InfeasibleError,
            "99 rows a class are needed, 0 has",
        ),
        (
            ((SURE[:40], TRUTH[:40] > 9, "error <= 5%"), {"predicted": TRUTH[:40] > 9}),
            InfeasibleError,
            "'error <= 5%' needs 59 rows without an error, there are 40.",
        ),
        (
            ((SURE, SURE > 0.96, "error <= 5%"), {"predicted": SURE > 2}),
            InfeasibleError,
            "no threshold keeps 'error <= 5%': 4 of the 65 surest rows are wrong, none "
            "may be.",
        ),
        (
            ((SURE, None, "false alarm <= .5%"), {}),
            InfeasibleError,
            "needs 199 ordinary rows, there are 100",
        ),
    ],
)
def test_what_cannot_be_promised_is_said_in_one_sentence(given, error, message):
    arguments, settings = given
    with pytest.raises(error, match=re.escape(message)) as refused:
        prudent.promise(*arguments, **settings)
    assert "np." not in str(refused.value)


def test_rare_classes_are_put_into_every_set_on_request():
    rule = prudent.promise(
        SCORES, TRUTH, "coverage >= 97% in every class", allow_rare=True
    )
    rare = [g.scope for g in rule.guarantees if g.bound == 1.0]
    assert rare
    assert rule.sets(SCORES)[:, rare].all()


def test_limits_that_earlier_classes_use_up_name_no_setting_of_an_estimator():
    # What the first of the limits takes are rows of the second, too.
    random = np.random.default_rng(0)
    truth = np.arange(90) % 3
    scores = random.normal(size=(90, 3)) + 0.2 * (truth[:, None] == np.arange(3))
    wish = "missed 1 <= 20% and 2 <= 20%"
    with pytest.raises(InfeasibleError) as raised:
        prudent.promise(scores, truth, wish, confidence=0.8)
    assert re.fullmatch(
        r"\d+ of \d+ held-out rows of class 2 are taken by the classes before it, at "
        r"most \d+ may be; raise the limits of those classes or change the order\.",
        str(raised.value),
    )


def test_groups_are_no_promise_of_comparisons():
    with pytest.raises(ValueError, match="does not say which groups"):
        prudent.compare(X, Y, promise="coverage >= 90% in every group")


def judged(n, rng):
    """How sure a judge is, and which of its verdicts are wrong."""
    sure = rng.random(n)
    return sure, rng.random(n) < 0.3 * (1 - sure)


@pytest.mark.parametrize("n_draws", [400, pytest.param(4000, marks=pytest.mark.slow)])
def test_promises_made_jointly_hold_also_of_the_rule_that_looks_best(n_draws):
    """All promises are true at once, so that the choice among them does not matter."""
    wishes = ["error <= 10%", "error <= 12%"]
    broken = 0
    for seed in range(n_draws):
        rng = np.random.default_rng(seed)
        sure, wrong = judged(300, rng)
        settings = {"predicted": np.zeros(300, bool), "confidence": 0.8}
        try:
            rules = prudent.promise(sure, wrong, wishes, **settings)
        except InfeasibleError as refused:
            # The message names more wrong rows than there may be.
            text = str(refused).replace("none", "0")
            n_wrong, k, allowed = map(
                int, re.findall(r" (\d+)(?= (?:of|sur|may))", text)
            )
            assert n_wrong == wrong[np.argsort(-sure)[:k]].sum() > allowed
            continue
        assert [rule.record["among"] for rule in rules] == [2, 2]
        # Above a cut the error rate is .3 E[1 - S | S > cut] = .15 (1 - cut).
        broken += any(
            0.15 * (1 - rule.thresholds[0]) > rule.guarantees[0].bound for rule in rules
        )
        assert all(rule.guarantees[0].confidence == 0.8 for rule in rules)
    assert binom.sf(broken - 1, n_draws, 0.2) > LEVEL


def test_a_list_of_promises_shares_the_level_of_those_with_confidence():
    scores, y = law(600, np.random.default_rng(3))
    wishes = ["coverage >= 90%", "error <= 30%", "missed 0 <= 20%"]
    average, answers, missed_few = prudent.promise(scores, y, wishes)
    assert average.thresholds == prudent.promise(scores, y, wishes[0]).thresholds
    assert "among" not in average.record
    for rule, wish in ((answers, wishes[1]), (missed_few, wishes[2])):
        alone = prudent.promise(scores, y, wish, confidence=0.975)
        assert rule.thresholds == alone.thresholds
        assert rule.guarantees[0].confidence == 0.95
        assert rule.guarantees[0].evidence["rules"] == 2
        assert rule.record["promise"] == wish
    (single,) = prudent.promise(scores, y, ["error <= 30%"])
    assert single.guarantees == prudent.promise(scores, y, "error <= 30%").guarantees
    with pytest.raises(ValueError, match="empty list"):
        prudent.promise(scores, y, [])


def test_where_one_of_several_cannot_be_had_those_that_can_are_named():
    sure = np.linspace(1, 0, 400)
    wrong = (
        np.arange(400) % 15 == 0
    )  # a fifteenth of the answers, the surest among them
    settings = {"predicted": np.zeros(400, dtype=bool)}
    both = ["error <= 2%", "error <= 20%"]
    with pytest.raises(
        InfeasibleError, match=r"no threshold keeps 'error <= 2%'.*"
    ) as it:
        prudent.promise(sure, wrong, both, **settings)
    assert str(it.value).endswith(
        "'error <= 20%' can be had: leave the others out, and count them, for they "
        "were tried (among=2)."
    )
    single = prudent.promise(sure, wrong, both[1], **settings)
    assert single.guarantees
    with pytest.raises(InfeasibleError) as alone:
        prudent.promise(sure, wrong, both[0], **settings)
    assert "can be had" not in str(alone.value)


def test_rows_that_stand_twice_are_refused_where_chance_is_not_why():
    rng = np.random.default_rng(4)
    y = rng.integers(0, 2, 300)
    scores = rng.normal(size=(300, 2)) + np.eye(2)[y]

    def repeated(values, truth, ids=None):
        return repeated_rows(values, truth, ids)

    # One pair may be two rows that a tree scores alike, and matters little.
    assert (
        repeated(scores[np.r_[np.arange(300), 7]], y[np.r_[np.arange(300), 7]]) is None
    )
    few = np.r_[np.arange(300), 7, 8]
    assert repeated(scores, y) is None
    assert repeated(scores[few], y[few]) == (2, 7, 300)
    assert repeated(scores[few, 0], y[few]) == (2, 7, 300)
    assert repeated(scores[few, 0], None) == (2, 7, 300)
    # Names decide where they are given.
    assert repeated(scores[few], y[few], np.arange(302)) is None
    assert repeated(scores, y, np.arange(300) // 2) == (150, 0, 1)
    # A table that was doubled shows, even with two digits.
    twice = np.r_[np.arange(300), np.arange(300)]
    coarse = np.round(rng.random(300), 3)
    assert repeated(coarse[twice], y[twice])[0] >= 300


@pytest.mark.parametrize("seed", range(20))
def test_scores_that_tie_by_themselves_are_no_repeated_rows(seed):
    rng = np.random.default_rng(seed)
    n = 400
    p = rng.random(n)
    y = (rng.random(n) < p).astype(int)
    easy = (p > 0.5).astype(int)  # a truth that the scores say
    leaves = np.random.default_rng(0).random(60)[(60 * p).astype(int)]
    for values in (
        np.round(p, 2),
        np.round(p, 3),
        np.round(999 * p),
        leaves,
        np.clip(3 * p - 1, 0, 1),
        1 / (1 + np.exp(-np.round(60 * (p - 0.5), 1)).astype(np.float32)),
        np.round(np.column_stack([p, 1 - p]), 3),
    ):
        assert repeated_rows(values, y) is None
        assert repeated_rows(values, easy) is None


SURENESS = np.linspace(0.05, 0.95, 10)  # of the second class, atoms of a law


def parted_law():
    """Atoms of scores in parts that overlap: columns, scores, chances of class 1."""
    atoms = [
        (score, land, age)
        for score in SURENESS
        for land in ("x", "y", None)
        for age in (20.0, 40.0, 60.0)
    ]
    score, land, age = (
        np.array(column, dtype=object) for column in zip(*atoms, strict=True)
    )
    score, age = score.astype(float), age.astype(float)
    weight = np.where(land == "x", 3.0, 1.0) * np.where(age > 50, 0.5, 1.0)
    right = np.where((age > 50) | (land == "y"), 0.5 + 0.8 * (score - 0.5), score)
    return score, {"land": land, "age": age}, weight / weight.sum(), right


def rule_in_parts(wish, draw, n=600):
    """The rule of a fresh draw of the law, and who is in which part; None without."""
    score, columns, weight, right = parted_law()
    random = np.random.default_rng([7, draw])
    rows = random.choice(len(score), n, p=weight)
    y = (random.random(n) < right[rows]).astype(int)
    rule = asked_of(
        *(np.column_stack([1 - score, score])[rows], y),
        f"{wish} in every land and age:30,50",
        classes=[0, 1],
        by={name: column[rows] for name, column in columns.items()},
        ids=np.arange(n),  # equal atoms are draws, not copies
    )
    if rule is not None:
        lands = ("land=x", "land=y", "land=missing")
        assert rule.subgroups == (*lands, "age<30", "30<=age<50", "age>=50")
    return rule


def asked_of(scores, y, wish, **settings):
    try:
        return prudent.promise(scores, y, wish, **settings)
    except InfeasibleError:
        return None


def test_sets_miss_no_more_in_any_part_of_fresh_draws_of_a_known_law():
    score, columns, weight, right = parted_law()
    table, chance = (np.column_stack([1 - p, p]) for p in (score, right))
    random, n_draws, misses = np.random.default_rng(8), 200, np.zeros(6)
    for draw in range(n_draws):
        rule = rule_in_parts("coverage >= 80%", draw)
        inside = rule.members(columns)
        missed = (chance * ~rule.sets(table, inside, allow_empty=True)).sum(axis=1)
        # A new row of each part is missed with its true probability.
        misses += random.random(6) < (missed * weight) @ inside / (weight @ inside)
    for count in misses.astype(int).tolist():
        assert binomtest(count, n_draws, 0.2, alternative="greater").pvalue > 1e-3 / 6
    assert misses.sum() > 0.03 * 6 * n_draws  # not every label


@pytest.mark.parametrize(
    ("wish", "limit"), [("error <= 30%", 0.3), ("missed 1 <= 40%", 0.4)]
)
def test_errors_are_kept_in_all_parts_at_once_in_fresh_draws_of_a_known_law(
    wish, limit
):
    score, columns, weight, right = parted_law()
    table = np.column_stack([1 - score, score])
    n_draws, n_made, n_false = 150, 0, 0
    for draw in range(n_draws):
        rule = rule_in_parts(wish, draw)
        if rule is None:
            continue
        inside = rule.members(columns)
        if rule.kind == "answers":
            about = weight * rule.answers(table, inside)
            wrong = np.where(score > 0.5, 1 - right, right)
        else:
            about, wrong = weight * right, rule.labels(table, inside) == 0
        shown = about @ inside > 0
        rates = ((about * wrong) @ inside)[shown] / (about @ inside)[shown]
        n_false += rates.max() > limit + 1e-9
        n_made += 1
    assert n_made > n_draws / 2
    assert binomtest(int(n_false), n_draws, 0.05, alternative="greater").pvalue > 1e-3


def test_parts_are_the_same_in_every_table():
    import pandas as pd
    import polars as pl

    random = np.random.default_rng(3)
    y = random.integers(0, 2, 400)
    scores = random.normal(size=(400, 2)) + 2 * np.eye(2)[y]
    columns = {
        "land": random.choice(np.array(["x", "y", None], dtype=object), 400).tolist(),
        "age": random.integers(18, 80, 400).tolist(),
    }
    columns["age"][7] = None
    tables = [columns, pd.DataFrame(columns), pl.DataFrame(columns)]
    tables.append(pd.DataFrame(columns).convert_dtypes())
    wish = "coverage >= 80% in every class and land*age:40"
    texts = {
        prudent.promise(scores, y, wish, by=by, allow_rare=True).to_json()
        for by in tables
    }
    assert len(texts) == 1
    rule = Rule.from_json(texts.pop())
    assert "land=x and age<40" in rule.subgroups
    found = [
        [g.bound for g in prudent.certify(rule, scores, y, by=by)] for by in tables
    ]
    assert all(bounds == found[0] for bounds in found)
    # One part has no row of one class.
    shown = [g for g in rule.guarantees if g.evidence["calibration rows"]]
    assert len(found[0]) == len(shown) == len(rule.guarantees) - 1


@pytest.mark.parametrize("wish", ["missed 1 <= 20%", "coverage >= 80% in every class"])
def test_a_rule_made_of_one_score_takes_one_score(wish):
    rng = np.random.default_rng(0)
    y = (rng.uniform(size=400) < 0.3).astype(int)
    scores = y + rng.normal(size=400)
    rule = prudent.promise(scores, y, wish, classes=[0, 1])
    both = np.stack([-scores, scores], axis=1)
    answer = rule.labels if rule.kind == "labels" else rule.sets
    np.testing.assert_array_equal(answer(scores), answer(both))
    read = Rule.from_json(rule.to_json())
    answer_of_file = read.labels if read.kind == "labels" else read.sets
    np.testing.assert_array_equal(answer_of_file(scores), answer(both))
    of_two = prudent.promise(both, y, wish, classes=[0, 1])
    with pytest.raises(ValueError, match="needs 2 columns"):
        (of_two.labels if of_two.kind == "labels" else of_two.sets)(scores)


def test_one_score_of_two_classes_answers_on_both_sides():
    # High scores are often wrong: answers there alone would break the promise.
    rng = np.random.default_rng(0)

    def drawn(n):
        scores = rng.normal(size=n)
        is_second = rng.uniform(size=n) < np.where(scores < 0, 0.01, 0.85)
        return scores, is_second.astype(int)

    scores, y = drawn(100_000)
    n_false = 0
    for _ in range(100):
        try:
            rule = prudent.promise(*drawn(300), "error <= 8.2%", classes=[0, 1])
        except InfeasibleError:
            continue
        answered = rule.answers(scores)
        both = np.stack([-scores, scores], axis=1)
        np.testing.assert_array_equal(answered, rule.answers(both))
        wrong = (scores > 0) != y
        n_false += wrong[answered].mean() > 0.082 + 1e-3
        again = rule.at(0.3)
        np.testing.assert_array_equal(again.answers(scores), again.answers(both))
    assert binomtest(int(n_false), 100, 0.05, alternative="greater").pvalue > LEVEL


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
@pytest.mark.parametrize("kind", [object, float])
def test_rows_without_a_label_are_refused_and_not_counted_as_wrong(missing, kind):
    scores = np.random.default_rng(0).random(100)
    answers = (scores > 0.5).astype(kind)
    y = answers.astype(object)
    y[:7] = missing
    if kind is float and missing is not pd.NA:
        y = y.astype(float)  # None becomes NaN
    said = "`y` holds no label in 7 of 100 rows"
    with pytest.raises(ValueError, match=said):
        prudent.promise(scores, y, "error <= 20%", predicted=answers)
    with pytest.raises(ValueError, match=f"certify: {said}"):
        prudent.certify(None, answers, y)


def test_classes_that_stand_twice_are_refused():
    scores = np.random.default_rng(0).random((60, 3))
    with pytest.raises(ValueError, match="`classes` names 'no' twice"):
        prudent.promise(
            scores, ["yes", "no"] * 30, "coverage >= 80%", classes=["yes", "no", "no"]
        )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"random_state": "a"}, "`random_state` must be None, .*, got 'a'"),
        ({"random_state": -1}, "`random_state` must be None, .*, got -1"),
        ({"groups": [None] * 60}, "`groups` says nothing of 60 of 60 rows"),
        ({"scores": csr_array(np.eye(60))}, "must be an array of numbers, .*csr_array"),
        ({"scores": [np.nan, *range(59)]}, r"row 0 has no score \(NaN\): leave"),
        ({"scores": [np.nan] * 2 + [1] * 58}, r"\(NaN\), and 1 more: leave"),
    ],
)
def test_an_argument_that_cannot_be_is_refused_by_its_name(change, message):
    given = {"scores": np.arange(60.0), **change}
    with pytest.raises(ValueError, match=message):
        prudent.promise(y=["yes", "no"] * 30, promise="missed yes <= 20%", **given)


@pytest.mark.parametrize("limits", [0.1, {"zz": 0.1}])
def test_another_rate_of_labels_is_given_by_class(limits):
    rule = prudent.promise(
        np.arange(60) / 60, ["no"] * 30 + ["yes"] * 30, "missed yes <= 20%"
    )
    assert rule.at({"yes": 0.3}).guarantees[0].bound == 0.3
    with pytest.raises(ValueError, match="limits of a rule of labels are given"):
        rule.at(limits)
