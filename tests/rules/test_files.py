"""Rules as JSON: round trips, the readers of other languages, hostile texts."""

from __future__ import annotations

import json
import math
import re
import shutil
import sqlite3
import subprocess
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import prudent
from prudent import ConformalClassifier, Rule
from prudent.estimator_tools.subgroups import Subgroups
from prudent.rules.make import CellErrors, ClassErrors, SelectiveError, class_scores_of
from prudent.rules.parts import Crossing, Factor
from prudent.rules.rule import Coverage, FalseAlarms, Terms
from prudent.rules.scores import AnswerScores, CalibrationScores
from prudent.rules.subgroups import scores_within

PAGE = Path(__file__).parents[2] / "docs" / "other_languages.rst"
STORED = Path(__file__).parent / "stored"
LABELS = ("cat", "dog", "eel")
# Reads cases and writes a list of answers for each, every answer a list.
IN_R = """
cases <- jsonlite::fromJSON("cases.json", simplifyVector = FALSE)
answers <- lapply(cases, function(case)
  lapply(case[[2]], function(row) as.list(unname(decide(case[[1]], row)))))
cat(jsonlite::toJSON(answers, auto_unbox = TRUE))
"""


def code_of(language):
    """The code block of a language on the page."""
    page = PAGE.read_text(encoding="utf-8")
    block = re.search(rf"code-block:: {language}\n\n((?:   .*\n|\n)+)", page)
    return re.sub(r"^   ", "", block[1], flags=re.MULTILINE)


def score_tables(rng, n=60, n_classes=3):
    """Scores with ties, and infinite ones."""
    scores = np.round(rng.normal(size=(n, n_classes)), 1)
    scores[rng.random(scores.shape) < 0.03] = -np.inf
    scores[rng.random(scores.shape) < 0.03] = np.inf
    return scores


def sets_rule(own, category=0, names=(None,), *, rate=0.1, by=None, tolerance=0.0):
    """Sets by own scores; rows rank among those of their category."""
    scores = CalibrationScores.from_rows(own, category, names, tolerance)
    terms = Terms(frozen=True)
    return Coverage(scores=scores, classes=LABELS, by=by, terms=terms).rule(rate)


def alarms_rule(own, *, confidence=None, strange="low"):
    """Alarms of few rows like these."""
    scores = CalibrationScores.from_rows(-own if strange == "high" else own)
    terms = Terms(confidence=confidence, frozen=True)
    return FalseAlarms(scores=scores, strange=strange, terms=terms).rule(0.1)


def people(n, seed):
    """Columns that part rows: words, few numbers, many numbers, and missing cells."""
    rng = np.random.default_rng(seed)
    return {
        "where": rng.choice(np.array(["a", "b", "it's", None], dtype=object), n),
        "site": rng.choice([1.0, 2.5, np.nan], n),
        "age": rng.choice([29.0, 30.0, 44.5, 45.0, 60.0, np.inf], n),
    }


def rules_by_subgroup(scores, codes, wrong):
    """Name -> rule by subgroups that overlap, and are said by columns."""
    sure = Terms(confidence=0.9, frozen=True)
    frame = pd.DataFrame(people(len(scores), 5))
    own = np.take_along_axis(scores, codes[:, None], axis=1)[:, 0]
    finite = np.maximum(scores, -5.0)  # few rows of a subgroup need a cut each
    rows = class_scores_of(finite, np.array(LABELS)[codes], np.array(LABELS))
    made = {}
    listed = ["where", "age:30,45"], ["where*age:45", "site"], ["site"]
    for by, error in zip(listed, (0.3, 0.3, 0.2), strict=True):
        parts = Subgroups.learn(by, frame)
        inside = parts.memberships(frame)
        kept = scores_within(own, inside)
        crossed = scores_within(own, inside, codes, LABELS)
        sets = {"classes": LABELS, "subgroups": inside.names}
        errors = ClassErrors(scores=rows, memberships=inside, terms=sure)
        cells = CellErrors.from_answers(scores.max(axis=1), wrong, inside, sure)
        name = " and ".join(by)
        new = {
            f"sets by {name}": Coverage(scores=kept, **sets).rule(0.2),
            f"sets by {name} and class": Coverage(
                scores=crossed, by="class", terms=Terms(frozen=True), **sets
            ).rule(0.3),
            f"labels by {name}": errors.rule({"dog": 0.7}),
            f"answers by {name}": cells.rule(error),
        }
        made |= {
            name: replace(rule, crossings=parts.crossings) for name, rule in new.items()
        }
    return made


def rules():
    """Name -> rule of each kind, and what its tables look like."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, 300)
    scores = score_tables(rng, 300) + 2 * (codes[:, None] == np.arange(3))
    own = np.take_along_axis(scores, codes[:, None], axis=1)[:, 0]
    group = rng.integers(0, 2, 300)
    sureness, wrong = scores.max(axis=1), scores.argmax(axis=1) != codes
    answers = AnswerScores.from_answers(sureness, wrong & (sureness < 2))
    sure = Terms(confidence=0.95, frozen=True)
    rows = class_scores_of(scores, np.array(LABELS)[codes], np.array(LABELS))
    labels = ClassErrors(scores=rows, terms=Terms(confidence=0.9, frozen=True))
    limits = ClassErrors(scores=rows, in_sets=True, terms=sure)
    by_group = sets_rule(own, group, ("a", "b"), by="group")
    by_group.record.update(group="where") if isinstance(by_group.record, dict) else None
    return {
        "sets": sets_rule(own),
        "by class": sets_rule(own, codes, LABELS, by="class"),
        "by group": by_group,
        "rounded": sets_rule(own, rate=0.2, tolerance=1e-9),
        "answers": SelectiveError(scores=answers, terms=sure).rule(0.2),
        "labels": labels.rule({"dog": 0.2}),
        "limits": limits.rule(dict.fromkeys(LABELS, 0.2)),
        "low alarms": alarms_rule(own),
        "high alarms": alarms_rule(own, confidence=0.9, strange="high"),
        "two classes": prudent.promise(
            scores[:, 0] + codes, codes > 0, "coverage >= 80%", classes=[False, True]
        ),
        "answers of two classes": prudent.promise(
            np.random.default_rng(7).normal(3.0 * (codes > 0) - 1.5).round(1),
            codes > 0,
            "error <= 10%",
            classes=[False, True],
        ),
        **rules_by_subgroup(scores, codes, wrong & (sureness < 2)),
    }


RULES = rules()


def table_for(rule, rng):
    """Scores to answer, at thresholds too, and groups, some not seen."""
    columns = len(rule.classes) if rule.kind in ("sets", "labels") else 1
    if rule.record.get("columns") == ["score"]:
        columns = 2
    scores = score_tables(rng, 200, columns)
    cuts = [cut for cut in rule.thresholds if np.isfinite(cut)]
    scores[::3, 0] = cuts[0]
    scores[1::3, -1] = np.nextafter(cuts[-1], -np.inf)
    return scores, rng.choice(["a", "b", "never seen"], 200)


def parts_for(rule, n):
    """Columns of words and numbers for the subgroups of a rule, some never seen."""
    if not rule.crossings:
        return {}
    columns = people(n, 6)
    columns["where"][::17] = "never seen"
    columns["site"][::13] = 3.0
    return columns


def answers_of(rule, scores, groups):
    """What the rule answers, in the types of JSON."""
    if rule.crossings:
        groups = rule.members(parts_for(rule, len(scores)))
        assert 0 < groups.any(axis=1).sum() < len(groups)
    if rule.kind == "alarms":
        return rule.alarms(scores[:, 0]).tolist()
    if rule.kind == "answers":
        return rule.answers(scores, groups).tolist()
    if rule.kind == "labels":
        return rule.labels(scores, groups).tolist()
    by_parts = rule.by == "group" or rule.crossings
    sets = rule.sets(scores, groups if by_parts else None)
    return [
        [c for c, is_in in zip(rule.classes, row, strict=True) if is_in] for row in sets
    ]


def spelled(value):
    """A cell as a file has it: empty where it is missing."""
    if value is None or value != value:
        return ""
    if isinstance(value, str):
        return value
    return {np.inf: "Infinity", -np.inf: "-Infinity"}.get(value, repr(float(value)))


def case(name):
    rule = RULES[name]
    rng = np.random.default_rng(1)
    scores, groups = table_for(rule, rng)
    columns_by = parts_for(rule, len(scores))
    one_column = rule.record.get("columns") == ["score"]
    if one_column:
        scores[:, 0] = -scores[:, 1]
    fields = json.loads(rule.to_json())
    if rule.by == "group":
        fields["group"] = "where"
    columns = fields["columns"] if rule.kind != "answers" else ["score"]
    rows = []
    for i, (values, group) in enumerate(zip(scores, groups, strict=True)):
        kept = values[1:] if one_column else values
        row = {c: spelled(v) for c, v in zip(columns, kept, strict=True)}
        parts = {c: spelled(column[i]) for c, column in columns_by.items()}
        rows.append({**row, "where": str(group), **parts})
    return fields, rows, answers_of(rule, scores, groups)


@pytest.mark.parametrize("name", RULES)
def test_python_without_numpy_answers_alike(name):
    fields, rows, expected = case(name)
    scope = {}
    exec(code_of("python"), scope)
    assert [scope["decide"](fields, row) for row in rows] == expected


def test_log_odds_are_what_the_page_puts_in_the_place_of_probabilities():
    random = np.random.default_rng(4)
    rows, labels = random.normal(size=(600, 2)), random.integers(0, 3, 600)
    rows[:, 0] += labels
    model = ConformalClassifier(LogisticRegression(), random_state=0)
    rule = Rule.from_json(model.fit(rows, labels).rule_.to_json())
    assert rule.record["scores"] == "log odds"
    probability = model.predict_proba(rows)
    odds = np.log(probability) - np.log(1 - probability)
    names = rule.record["columns"]
    scope = {}
    exec(code_of("python"), scope)
    fields = json.loads(rule.to_json())
    answers = [
        scope["decide"](fields, dict(zip(names, map(repr, row), strict=True)))
        for row in odds.tolist()
    ]
    sets = rule.sets(rule.scored(probability))
    assert answers == [[c for c, is_in in enumerate(row) if is_in] for row in sets]


@pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")
def test_javascript_answers_alike():
    cases = {name: case(name) for name in RULES}
    program = code_of("javascript") + (
        "\nconst cases = JSON.parse(require('fs').readFileSync(0, 'utf8'));"
        "\nconsole.log(JSON.stringify(cases.map("
        "([rule, rows]) => rows.map(row => decide(rule, row)))));"
    )
    given = json.dumps([[fields, rows] for fields, rows, _ in cases.values()])
    done = subprocess.run(
        ["node", "-e", program], input=given, capture_output=True, text=True, check=True
    )
    for (_, _, expected), answers in zip(
        cases.values(), json.loads(done.stdout), strict=True
    ):
        assert answers == json.loads(json.dumps(expected))


def in_sql(fields, rows, expression):
    """What SQLite makes of the rows, and the answers in its types."""
    columns = list(rows[0])
    named = ", ".join(f'"{name}"' for name in columns)
    numbers = [
        [
            (row[c] if c == "where" else float(row[c])) if row[c] != "" else None
            for c in columns
        ]
        for row in rows
    ]
    places = ", ".join("?" * len(columns))
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute(f"CREATE TABLE scores ({named})")
        database.executemany(f"INSERT INTO scores VALUES ({places})", numbers)
        found = database.execute(f"SELECT {expression} FROM scores ORDER BY rowid")
        return [value for (value,) in found]


@pytest.mark.parametrize("name", RULES)
def test_sql_answers_alike(name):
    fields, rows, expected = case(name)
    scope = {}
    exec(code_of("python\n   :name: sql"), scope)
    answers = in_sql(fields, rows, scope["case"](fields))
    if fields["kind"] == "sets":
        expected = ["|".join(map(str, labels)) for labels in expected]
    elif fields["kind"] != "labels":
        expected = [int(value) for value in expected]
    assert answers == expected


@pytest.mark.parametrize("strange", ["low", "high"])
@pytest.mark.parametrize("cut", ["-Infinity", "Infinity"])
def test_sql_knows_thresholds_without_end(cut, strange):
    scope = {}
    exec(code_of("python\n   :name: sql"), scope)
    alarms = Rule(kind="alarms", thresholds=(float(cut),), strange=strange)
    answers = Rule(kind="answers", thresholds=(float(cut),))
    sets = Rule(kind="sets", thresholds=(float(cut),), classes=("it's", "b"))
    values = np.array([-np.inf, -1.7976931348623157e308, 0.0, 1e308, np.inf])
    rows = [{"score": float(v)} for v in values]
    for rule, expected in (
        (alarms, alarms.alarms(values)),
        (answers, answers.answers(values)),
    ):
        fields = json.loads(rule.to_json())
        assert in_sql(fields, rows, scope["case"](fields)) == expected.tolist()
    pairs = np.column_stack([values, values[::-1]])
    rows = [{"it's": float(v), "b": float(w)} for v, w in pairs]
    expected = ["|".join(labels) for labels in answers_of(sets, pairs, None)]
    fields = json.loads(sets.to_json())
    assert in_sql(fields, rows, scope["case"](fields)) == expected


def test_the_expression_on_the_page_is_the_one_written():
    scope = {}
    exec(code_of("python\n   :name: sql"), scope)
    fields = {
        "kind": "labels",
        "columns": ["risk_score"],
        "classes": ["no", "yes"],
        "thresholds": ["-Infinity", "235.0"],
        "priority": ["yes"],
    }
    assert scope["case"](fields) == code_of("sql").strip()


def stored_cases():
    """Every third row of each kind, which begins with ties and their neighbours."""
    cases = (case(name) for name in RULES)
    return [[fields, rows[:60], expected[:60]] for fields, rows, expected in cases]


def test_r_is_the_text_that_was_run_on_the_stored_answers():
    stored = json.loads((STORED / "r.json").read_text(encoding="utf-8"))
    assert stored["code"] == code_of("r")
    current = json.loads(json.dumps(stored_cases()))
    for (fields, rows, answers), (_, same, now) in zip(
        stored["cases"], current, strict=True
    ):
        assert rows == same
        assert answers == now
        rule = Rule.from_json(json.dumps({**fields, "guarantees": []}))
        assert rule.kind == fields["kind"]


@pytest.mark.skipif(shutil.which("Rscript") is None, reason="R is not installed")
def test_r_answers_alike(tmp_path):
    (tmp_path / "cases.json").write_text(json.dumps(stored_cases()))
    (tmp_path / "run.R").write_text(code_of("r") + IN_R)
    done = subprocess.run(
        ["Rscript", "run.R"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    if "there is no package called" in done.stderr:
        pytest.skip("jsonlite is not installed")
    assert done.returncode == 0, done.stderr
    for (_, _, expected), answers in zip(
        stored_cases(), json.loads(done.stdout), strict=True
    ):
        wanted = [x if isinstance(x, list) else [x] for x in expected]
        assert answers == json.loads(json.dumps(wanted))


def test_formulas_of_spreadsheets_are_those_compared_by_hand():
    """The text, and what a person reads from it, against rules of these thresholds."""
    page = PAGE.read_text(encoding="utf-8")
    assert '=IF(A2>=235, "yes", "no")\n' in page
    labels = Rule(
        kind="labels",
        thresholds=(-np.inf, 235.0),
        classes=("no", "yes"),
        priority=("yes",),
    )
    values = np.array([234.0, 235.0, 236.0])
    assert labels.labels(np.column_stack([-values, values])).tolist() == [
        *("no", "yes", "yes")
    ]
    assert (
        "=IF(AND(OR(A2>=0.3767647, A2>=B2), OR(B2>=0.3889789, B2>A2)), "
        '"low|high", IF(OR(A2>=0.3767647, A2>=B2), "low", "high"))\n' in page
    )
    cuts = (0.3767647, 0.3889789)
    sets = Rule(kind="sets", thresholds=cuts, classes=("low", "high"), by="class")
    places = [0.2, *cuts, 0.38, 0.385, 0.9]  # below, at, between and above them
    low, high = np.meshgrid(places, places)
    pairs = np.column_stack([low.ravel(), high.ravel()])
    read = [
        "low|high"
        if (a >= 0.3767647 or a >= b) and (b >= 0.3889789 or b > a)
        else "low"
        if a >= 0.3767647 or a >= b
        else "high"
        for a, b in pairs
    ]
    assert ["|".join(labels) for labels in answers_of(sets, pairs, None)] == read


@pytest.mark.parametrize("name", RULES)
def test_rules_come_back_to_the_last_bit(name):
    rule = RULES[name]
    text = rule.to_json()
    back = Rule.from_json(text)
    assert back.thresholds == rule.thresholds
    assert back.guarantees == rule.guarantees
    assert back.to_json() == text
    scores, groups = table_for(rule, np.random.default_rng(2))
    assert answers_of(back, scores, groups) == answers_of(rule, scores, groups)


def test_kept_scores_give_p_values():
    rule = RULES["by class"]
    scores, _ = table_for(rule, np.random.default_rng(3))
    back = Rule.from_json(rule.to_json(keep_scores=True))
    np.testing.assert_array_equal(back.p_values(scores), rule.p_values(scores))
    with pytest.raises(ValueError, match="keeps no scores"):
        Rule.from_json(rule.to_json()).p_values(scores)
    with pytest.raises(ValueError, match="keeps no scores of calibration rows"):
        RULES["answers"].to_json(keep_scores=True)


KEPT = {
    "sets": ({}, "coverage >= 90%"),
    "every class": ({}, "coverage >= 80% in every class"),
    "groups": ({"by": True}, "coverage >= 80% in every group"),
    "certain": ({"confidence": 0.9}, "coverage >= 80% in every class"),
    "one score": ({"one": True}, "coverage >= 80%"),
    "alarms": ({"one": True}, "false alarm <= 10%"),
    "certain alarms": ({"one": True, "confidence": 0.9}, "false alarm <= 10%"),
}


@pytest.mark.parametrize("name", KEPT)
def test_rules_read_with_their_scores_have_other_rates(name):
    settings, wish = dict(KEPT[name][0]), KEPT[name][1]
    rng = np.random.default_rng(5)
    codes = rng.integers(0, 2, 300)
    scores = np.round(rng.normal(size=(300, 2)) + 2 * np.eye(2)[codes], 1)
    if settings.pop("by", False):
        settings["by"] = rng.choice(["p", "q"], 300)
    values = scores[:, 1] - scores[:, 0] if settings.pop("one", False) else scores
    alarms = "alarm" in wish
    rule = prudent.promise(
        values,
        None if alarms else np.array(["cat", "dog"])[codes],
        wish,
        unseen="May",
        **settings,
    )
    back = Rule.from_json(rule.to_json(keep_scores=True))
    for rate in (0.02, 0.1, 0.3):
        other, expected = back.at(rate), rule.at(rate)
        assert other.thresholds == expected.thresholds
        assert other.guarantees == expected.guarantees
        assert other.to_json() == expected.to_json()
        assert other.record["unseen"] == "May"
        assert other.record["columns"] == rule.record["columns"]
        promised = json.loads(other.to_json())["promise"]
        assert f"{other.guarantees[0].bound:.6g}" in promised
        again = Rule.from_json(other.to_json(keep_scores=True)).at(0.1)
        assert again.thresholds == rule.at(0.1).thresholds
    asked = 0.1 if alarms or "90%" in wish else 0.2
    same = back.at(asked)
    assert same.thresholds == rule.thresholds
    assert same.guarantees == rule.guarantees
    assert (same.empty, same.by, same.groups) == (rule.empty, rule.by, rule.groups)
    with pytest.raises(ValueError, match="keeps no scores"):
        Rule.from_json(rule.to_json()).at(0.1)


def test_smoothed_rules_come_back_with_other_rates():
    rng = np.random.default_rng(6)
    codes = rng.integers(0, 2, 200)
    scores = np.round(rng.normal(size=(200, 2)) + np.eye(2)[codes])
    rule = prudent.promise(
        *(scores, codes, "coverage >= 90%"), ties="smoothed", ids=np.arange(200)
    )
    coins = rng.random(200)
    for rate in (0.05, 0.3):
        other = Rule.from_json(rule.to_json()).at(rate)
        np.testing.assert_array_equal(
            other.sets(scores, coins=coins), rule.at(rate).sets(scores, coins=coins)
        )
        assert other.record["key"] == rule.record["key"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"kind": "answers", "thresholds": ["0.5"], "by": None},
            "only rules of sets and of alarms",
        ),
        ({"calibration": [["0.5"]]}, "scores of 1 categories, and has 3"),
        ({"calibration": [["a"], [], []]}, "numbers as text, got 'a'"),
        ({"terms": {}}, "lacks a part"),
    ],
)
def test_kept_scores_that_do_not_fit_are_refused(change, message):
    fields = json.loads(RULES["by class"].to_json(keep_scores=True))
    with pytest.raises(ValueError, match=message):
        Rule.from_json(json.dumps({**fields, **change}))


def test_groups_that_are_numbers_are_found_in_text():
    rng = np.random.default_rng(7)
    codes, group = rng.integers(0, 2, 600), rng.integers(0, 12, 600)
    scores = rng.normal(size=(600, 2)) + 2 * np.eye(2)[codes]
    wish = "coverage >= 80% in every group"
    rule = prudent.promise(scores, codes, wish, by=group)
    texts = Rule.from_json(rule.to_json())
    assert texts.record["group"] == "group"  # the column that a reader takes them from
    as_text = replace(texts, groups=tuple(map(str, texts.groups)))
    np.testing.assert_array_equal(
        as_text.sets(scores, group.astype(str)), rule.sets(scores, group)
    )


def broken(**changes):
    return json.dumps({**json.loads(RULES["by class"].to_json()), **changes})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no JSON"),
        ("[" * 100_000, "no JSON"),
        ("[]", "no rule of the format 'prudent-rule/1'"),
        ('{"format": "prudent-rule/9"}', "prudent-rule/9"),
        ('{"format": "prudent-rule/1"}', "lacks a part"),
        ('{"format": "a", "format": "b"}', "'format' is given twice"),
        ('{"format": %s}' % ("1" * 5000), "has 5000 digits"),
        ('{"format": 1e999}', "1e999 is beyond all doubles"),
        (broken(thresholds=[0.1, 0.2, 0.3]), "numbers as text, got 0.1"),
        (broken(thresholds=["a", "b", "c"]), "numbers as text, got 'a'"),
        (broken(thresholds=["nan"] * 3), "numbers as text, got 'nan'"),
        (broken(thresholds=["0.1"]), "needs 3 thresholds, got 1"),
        (broken(kind="magic"), "`kind` of the rule must be one of"),
        (broken(classes=["cat", "cat", "eel"]), "each once"),
        (broken(classes=[["cat"], "dog", "eel"]), "text or numbers"),
        (broken(classes={"cat": 1, "dog": 2}), "`classes` of the rule must be a list"),
        (broken(columns="cat"), "`columns` of the rule must be a list"),
        (broken(columns=["cat"]), "1 columns of scores and 3 classes"),
        (
            broken(
                kind="answers", classes=["a"], columns=["a"], thresholds=["0.1"]
            ).replace('"by": "class"', '"by": null'),
            "1 columns of scores and 1 classes",
        ),
        (broken(data=7), "holds one of the wrong type"),
        (broken(data={"file": ["a"]}), "`data.file` of the rule must be a text"),
        (broken(unseen={"a": 1}), "`unseen` of the rule must be a text"),
        (broken(kind="labels", priority=[]), "labels of its promises (`priority`)"),
        (broken(priority=["fish"]), "labels that are no classes"),
        (broken(guarantees=[{"bound": 7}]), "lacks a part"),
        (broken().replace('"rank": ', '"rank": NaN, "rank_": '), "NaN is no JSON"),
    ],
)
def test_other_texts_are_refused_in_one_sentence(text, message):
    with pytest.raises(ValueError, match=re.escape(message)) as refused:
        Rule.from_json(text)
    assert "\n" not in str(refused.value)


BY_PARTS = RULES["sets by where and age:30,45"]
A, OLD = [{"column": "where", "is": "a"}], [{"column": "age", "from": "45.0"}]


def by_parts(*lists, name="sets by where and age:30,45", **changes):
    """A rule file with these lists of parts, or with something else changed."""
    fields = json.loads(RULES[name].to_json())
    return json.dumps(
        {**fields, **({"subgroups": list(lists)} if lists else {}), **changes}
    )


def band(low=None, high=None, column="age"):
    ends = {"from": low, "below": high}
    return [{"column": column, **{k: v for k, v in ends.items() if v is not None}}]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (by_parts(subgroups={}), "must hold a list for each column, got {}"),
        (by_parts(subgroups=[]), "must hold a list for each column, got []"),
        (by_parts([]), "must hold lists of parts, got []"),
        (by_parts("ab"), "must hold lists of parts, got 'ab'"),
        (by_parts([{}]), "must hold lists of conditions, got {}"),
        (by_parts([[]]), "must hold lists of conditions, got []"),
        (by_parts([[7]]), "must hold conditions: "),
        (by_parts([[{}]]), "must hold conditions: "),
        (by_parts([[{"column": "where"}]]), "must hold conditions: "),
        (by_parts([[{"column": 3, "is": "a"}]]), "must hold conditions: "),
        (by_parts([[{"column": "", "is": "a"}]]), "must hold conditions: "),
        (by_parts([[{"column": "where", "are": "a"}]]), "must hold conditions: "),
        (by_parts([[{**A[0], "from": "1.0"}]]), "must hold conditions: "),
        (by_parts([[{"column": "where", "is": ["a"]}]]), "as values, got ['a']"),
        (by_parts([[{"column": "where", "is": True}]]), "as values, got True"),
        (by_parts([[{"column": "where", "is": ""}]]), "told from a missing cell"),
        (by_parts([[{"column": "site", "is": 1}], A]), "all be about the columns"),
        (by_parts([A, [{"column": "where", "is": 1}]]), "as words, as numbers or in"),
        (by_parts([A, band("1.0", column="where")]), "as words, as numbers or in"),
        (by_parts([A, A]), "two parts by ['where']"),
        (by_parts([A, [*A, *A]]), "all be about the columns ['where']"),
        (by_parts([[*A, *A]]), "names a column twice: ['where', 'where']"),
        (by_parts([band(30.0)]), "must hold numbers as text, got 30.0"),
        (by_parts([band("nan")]), "must hold numbers as text, got 'nan'"),
        (by_parts([band("x", "3.0")]), "must hold numbers as text, got 'x'"),
        (by_parts([band("30.0", "30.0")]), "goes from 30 below 30"),
        (by_parts([band("45.0", "30.0")]), "goes from 45 below 30"),
        (by_parts([band("-Infinity", "Infinity")]), "goes from -inf below inf"),
        (
            by_parts([band("30.0"), band("45.0")]),
            "'age' in `subgroups` of the rule overl",
        ),
        (
            by_parts([band(None, "30.0"), band(None, "45.0")]),
            "overlap: one goes from -inf",
        ),
        (by_parts([OLD, OLD]), "two parts by ['age']"),
        (by_parts([A], [A]), "one name for two of them"),
        (by_parts([A]), "needs 1 thresholds, got 7"),
        (
            by_parts([[{"column": f"c{i}", "is": 1} for i in range(2)]] * 2),
            "are the same",
        ),
        (
            by_parts([[{"column": "n", "is": i}] for i in range(10_001)]),
            "at most 10000",
        ),
        (by_parts(by="group"), "none of alarms or by `groups`"),
        (by_parts(kind="alarms"), "none of alarms or by `groups`"),
        (
            by_parts().replace('"is": "a"', '"is": "a", "is": "b"'),
            "'is' is given twice",
        ),
        (by_parts().replace('"is": "a"', '"is": NaN'), "NaN is no JSON"),
        (by_parts().replace('"is": "a"', '"is": 1e999'), "beyond all doubles"),
        (by_parts().replace('"is": "a"', '"is": ' + "[" * 100_000), "no JSON"),
        (by_parts(kind="answers"), "lacks a part"),
        *(
            (by_parts(name="answers by site", cells=cells), message)
            for cells, message in [
                (7, "wrong type (cells)"),
                ([7], "place of a part of each list of `subgroups`, got 7"),
                ([[0, 1]], "place of a part of each list of `subgroups`, got [0, 1]"),
                ([[True]], "place of a part of each list of `subgroups`, got [True]"),
                ([[-1]], "place of a part of each list of `subgroups`, got [-1]"),
                ([[3]], "place of a part of each list of `subgroups`, got [3]"),
                ([[0], [0]], "name one cell twice"),
                ([[0], [1]], "needs 2 thresholds, got "),
            ]
        ),
    ],
)
def test_other_subgroups_are_refused_in_one_sentence(text, message):
    with pytest.raises(ValueError, match=re.escape(message)) as refused:
        Rule.from_json(text)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 300


def test_many_columns_that_are_crossed_are_refused_before_their_numbers_overflow():
    crossed = [[{"column": f"c{j}", "is": i} for j in range(20)] for i in range(20)]
    with pytest.raises(ValueError, match="have too many values to cross"):
        Rule.from_json(by_parts(crossed))


@pytest.mark.parametrize("value", ["", math.inf])
def test_values_that_no_file_can_hold_are_refused_when_a_rule_is_written(value):
    crossing = Crossing((Factor("where", values=(value,)),), (0,))
    rule = replace(
        BY_PARTS, thresholds=(0.0,), subgroups=("where=",), crossings=(crossing,)
    )
    with pytest.raises(ValueError, match=r"`subgroups` of the rule: "):
        rule.to_json()
    unknown = replace(rule, crossings=())
    with pytest.raises(ValueError, match="what a function says of rows, which no file"):
        unknown.to_json()
    with pytest.raises(ValueError, match="no subgroups by columns"):
        unknown.members({"where": ["a"]})


@pytest.mark.parametrize("by_class", ["", " and class"])
def test_kept_scores_of_subgroups_give_p_values_and_other_rates(by_class):
    rule = RULES[f"sets by where and age:30,45{by_class}"]
    back = Rule.from_json(rule.to_json(keep_scores=True))
    assert back.to_json(keep_scores=True) == rule.to_json(keep_scores=True)
    scores, _ = table_for(rule, np.random.default_rng(3))
    members = back.members(parts_for(rule, len(scores)))
    np.testing.assert_array_equal(
        back.p_values(scores, members), rule.p_values(scores, members)
    )
    other = back.at(0.4)
    assert other.thresholds == rule.at(0.4).thresholds
    assert other.to_json() == rule.at(0.4).to_json()
    assert other.to_json() != rule.to_json()


def test_bands_without_rows_and_parts_in_any_order_are_read_alike():
    middle, low = band("30.0", "45.0"), band(None, "30.0")
    text = by_parts([OLD, low], thresholds=["1.0", "2.0"])
    rule = Rule.from_json(text)
    assert rule.subgroups == ("age>=45", "age<30")
    members = rule.members({"age": [50, 30, 29, None, np.inf]})
    assert members.tolist() == [[1, 0], [0, 0], [0, 1], [0, 0], [1, 0]]
    again = json.loads(rule.to_json())["subgroups"]
    assert again == [[OLD, low]]
    whole = Rule.from_json(by_parts([middle, OLD, low], thresholds=["1.0"] * 3))
    assert whole.subgroups == ("30<=age<45", "age>=45", "age<30")
