"""`prudent promise` and `prudent apply`: files of scores, from a child's view."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pandas as pd
import pytest

import prudent as library
from prudent import Rule

UNSEEN = ["--unseen", "hold-out of May"]
COLUMNS = ("id", "y", "p_cat", "p_dog", "verdict", "confidence", "risk", "odd", "site")


def table(n=400, seed=0, wrong=2.0):
    """Rows of a file of scores by a model that is not in Python."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 2, n)
    scores = rng.normal(size=(n, 2))
    scores[np.arange(n), codes] += wrong
    p = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    labels = np.array(["cat", "dog"])
    return {
        "id": [f"row {i}" for i in range(n)],
        "y": labels[codes].tolist(),
        "p_cat": p[:, 0].tolist(),
        "p_dog": p[:, 1].tolist(),
        "verdict": labels[p.argmax(axis=1)].tolist(),
        "confidence": p.max(axis=1).tolist(),
        "risk": np.rint(100 * (scores[:, 1] - scores[:, 0])).astype(int).tolist(),
        "odd": (-scores.max(axis=1)).tolist(),
        "site": (["north", "south"] * n)[:n],
    }


def write(path, columns):
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


def read(path):
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


SCORES = ["--truth", "y", "--scores", "p_cat,p_dog"]
FILES = {
    "classes": (SCORES, "coverage >= 90% in every class", {}),
    "judge": (
        ["--truth", "y", "--predicted", "verdict", "--score", "confidence"],
        "error <= 10%",
        {},
    ),
    "vendor": (
        ["--target", "y", "--score", "risk", "--positive", "dog"],
        "missed dog <= 10%",
        {},
    ),
    "anomaly": (["--anomaly", "odd"], "false alarm <= 5%", {}),
    "sites": ([*SCORES, "--by", "site"], "coverage >= 90% in every group", {}),
    "named": (SCORES, "coverage >= 90% in every site", {}),
    "unnamed": ([*SCORES, "--by", "site"], "coverage >= 90%", {}),
    "parts": (
        ["--truth", "y", "--predicted", "verdict", "--score", "confidence"],
        "error <= 20% in every site and risk:500",
        {},
    ),
    "confident": ([*SCORES, "--confidence", "0.9"], "coverage >= 80%", {}),
}


def test_a_score_of_one_sign_is_said_to_give_one_answer(prudent, tmp_path):
    """A probability is no score of an answer: its sign never changes."""
    columns = table()
    columns["odd"] = [-p for p in columns["p_cat"]]
    data = write(tmp_path / "scores.csv", columns)
    rule = ["--promise", "error <= 70%", *UNSEEN, "-o", tmp_path / "rule.json"]
    for score, label, is_told in (
        ("p_dog", "dog", True),
        ("odd", "cat", True),
        ("risk", "dog", False),
    ):
        one = ["--truth", "y", "--score", score, "--positive", "dog"]
        err = prudent("promise", data, *one, *rule).err
        assert (f"nearly every answer is '{label}'" in err) == is_told


@pytest.mark.parametrize("name", FILES)
def test_files_give_what_python_gives_to_the_last_bit(name, prudent, tmp_path):
    arguments, wish, _ = FILES[name]
    columns = table()
    data, new = write(tmp_path / "scores.csv", columns), tmp_path / "new.csv"
    fresh = write(new, table(50, seed=1))
    rule_file, answers = tmp_path / "rule.json", tmp_path / "answers.csv"
    done = prudent(
        "promise", data, *arguments, "--promise", wish, *UNSEEN, "-o", rule_file
    )
    assert done.code == 0, done.err
    rule = Rule.from_json(rule_file.read_text())
    p = np.column_stack([columns["p_cat"], columns["p_dog"]])
    settings = {"unseen": UNSEEN[1]}
    expected = {
        "classes": lambda: library.promise(p, columns["y"], wish, **settings),
        "judge": lambda: library.promise(
            columns["confidence"],
            columns["y"],
            wish,
            predicted=columns["verdict"],
            **settings,
        ),
        "vendor": lambda: library.promise(
            columns["risk"], columns["y"], wish, classes=["cat", "dog"], **settings
        ),
        "anomaly": lambda: library.promise(columns["odd"], None, wish, **settings),
        **dict.fromkeys(
            ("sites", "named", "unnamed"),
            lambda: library.promise(
                *(p, columns["y"], "coverage >= 90% in every group"),
                by=columns["site"],
                **settings,
            ),
        ),
        "parts": lambda: library.promise(
            *(columns["confidence"], columns["y"], wish),
            predicted=columns["verdict"],
            by={"site": columns["site"], "risk": columns["risk"]},
            **settings,
        ),
        "confident": lambda: library.promise(
            p, columns["y"], wish, confidence=0.9, **settings
        ),
    }[name]()
    assert (rule.by == "group") == (name in ("sites", "named", "unnamed"))
    assert rule.thresholds == expected.thresholds
    assert [g.bound for g in rule.guarantees] == [g.bound for g in expected.guarantees]
    assert rule.record["unseen"] == "hold-out of May"
    assert rule.record["data"]["rows"] == 400
    done = prudent("apply", rule_file, fresh, "--keep", "id", "-o", answers)
    assert done.code == 0, done.err
    found, given = read(answers), read(fresh)
    assert [row["id"] for row in found] == [row["id"] for row in given]
    numbers = np.array(
        [[float(row[c]) for c in rule.record["columns"]] for row in given]
    )
    given_parts = {
        "site": [row["site"] for row in given],
        "risk": [float(row["risk"]) for row in given],
    }
    inside = rule.members(given_parts) if rule.subgroups else None
    if rule.kind == "answers":
        answered = rule.answers(numbers[:, 0], inside)
        assert len(set(answered.tolist())) == 2
        assert [row["answered"] == "True" for row in found] == answered.tolist()
        assert all(
            row["prediction"] == (source["verdict"] if a else "")
            for row, source, a in zip(found, given, answered, strict=True)
        )
    elif name == "vendor":
        labels = rule.labels(np.column_stack([-numbers[:, 0], numbers[:, 0]]))
        assert [row["prediction"] for row in found] == labels.tolist()
    elif name == "anomaly":
        alarms = rule.alarms(numbers[:, 0])
        assert [row["alarm"] == "True" for row in found] == alarms.tolist()
    else:
        sites = np.array(given_parts["site"])
        sets = rule.sets(numbers, sites if rule.by == "group" else inside)
        expected_sets = [
            "|".join(np.array(["cat", "dog"])[row].tolist()) for row in sets
        ]
        assert [row["set"] for row in found] == expected_sets


def changed(**columns):
    return {**table(60), **columns}


def with_gap():
    columns = table(60)
    columns["p_cat"][17] = ""
    return columns


@pytest.mark.parametrize(
    ("columns", "arguments", "code", "message"),
    [
        (table(60), [*SCORES, "--promise", "coverage >= 90%"], 2, "Say how: --unseen"),
        (
            with_gap(),
            [*SCORES, "--promise", "coverage >= 90%", *UNSEEN],
            3,
            "line 19 has no number in 'p_cat': fill it, or --drop-missing; the promise "
            "is then about rows with scores",
        ),
        (
            changed(y=["fish"] * 12 + ["cat"] * 24 + ["dog"] * 24),
            [*SCORES, "--promise", "coverage >= 90%", *UNSEEN],
            3,
            "truth 'fish' (12 rows) has no score column; there are cat, dog",
        ),
        (
            changed(y=["cat"] * 60),
            [*SCORES, "--promise", "coverage >= 90%", *UNSEEN],
            3,
            "all 60 rows are 'cat'",
        ),
        (
            changed(confidence=[0.9] * 60),
            [*FILES["judge"][0], "--promise", "error <= 10%", *UNSEEN],
            3,
            "'confidence' is 0.9 in every row: use prudent certify",
        ),
        (
            changed(id=["a", "b"] * 30),
            [*SCORES, "--id", "id", "--promise", "coverage >= 90%", *UNSEEN],
            3,
            "58 rows repeat an earlier one (lines 2 and 4): remove them, or give "
            "--groups",
        ),
        (
            table(40, wrong=9.0),
            [*FILES["judge"][0], "--promise", "error <= 5%", *UNSEEN],
            6,
            "'error <= 5%' needs 59 rows without an error, there are 40",
        ),
        (
            table(60),
            [*SCORES, "--promise", "coverage >= 99% in every class", *UNSEEN],
            6,
            "99 rows a class are needed",
        ),
        (
            table(60),
            ["--truth", "y", "--promise", "error <= 10%", *UNSEEN],
            2,
            "say where the scores are",
        ),
        (
            table(60),
            [*SCORES, "--ties", "smoothed", "--promise", "coverage >= 90%", *UNSEEN],
            2,
            "name the column",
        ),
        (
            table(60),
            [*SCORES, "--among", "3", "--promise", "coverage >= 90%", *UNSEEN],
            2,
            "--among is for promises with a confidence",
        ),
        (
            table(200, wrong=9.0),
            [*FILES["judge"][0], "--keep-scores", "--promise", "error <= 20%", *UNSEEN],
            2,
            "--keep-scores: a rule of kind 'answers' keeps no scores of calibration "
            "rows. Leave it out",
        ),
        (
            table(60),
            [*SCORES, "--without", "cat,dog", "--promise", "coverage >= 90%", *UNSEEN],
            3,
            "has no row left: each lacks a score or a label, or --without names",
        ),
        (
            changed(y=[""] * 60),
            [*SCORES, "--promise", "coverage >= 90%", *UNSEEN],
            3,
            "has no row left: each lacks a score or a label, or --without names",
        ),
        (
            table(60),
            [*SCORES, "--seed", 2**32, "--promise", "coverage >= 90%", *UNSEEN],
            2,
            "--seed",
        ),
        (
            table(60),
            ["--truth", "wahr", *SCORES[2:], "--promise", "coverage >= 90%", *UNSEEN],
            3,
            "wahr",
        ),
    ],
)
def test_every_message_has_its_exit_code(
    columns, arguments, code, message, prudent, tmp_path
):
    data = write(tmp_path / "scores.csv", columns)
    done = prudent("promise", data, *arguments, "-o", tmp_path / "rule.json")
    assert done.code == code, done.err
    assert message in done.err
    assert not (tmp_path / "rule.json").exists()


def test_rows_without_a_score_get_the_careful_answer(prudent, tmp_path):
    data = write(tmp_path / "scores.csv", table())
    gaps = write(tmp_path / "gaps.csv", with_gap() | {"odd": [""] * 60})
    for name, careful in (("classes", "cat|dog"), ("anomaly", "True")):
        arguments, wish, _ = FILES[name]
        rule, answers = tmp_path / "rule.json", tmp_path / "answers.csv"
        made = prudent(
            "promise", data, *arguments, "--promise", wish, *UNSEEN, "-o", rule
        )
        assert made.code == 0, made.err
        assert prudent("apply", rule, gaps, "-o", answers).code == 0
        assert next(iter(read(answers)[17].values())) == careful


def test_labels_left_out_are_in_no_set_and_said(prudent, tmp_path):
    columns = table() | {"p_eel": [0.0] * 400}
    columns["y"][:3] = ["eel"] * 3
    data, rule = write(tmp_path / "scores.csv", columns), tmp_path / "rule.json"
    arguments = ["--truth", "y", "--scores", "p_cat,p_dog,p_eel", *UNSEEN, "-o", rule]
    wish = ["--promise", "coverage >= 90% in every class"]
    assert prudent("promise", data, *arguments, *wish).code == 6
    done = prudent("promise", data, *arguments, *wish, "--without", "eel")
    assert done.code == 0, done.err
    assert "Nothing is promised about rows of 'eel'" in done.out
    made = Rule.from_json(rule.read_text())
    assert made.classes == ("cat", "dog")
    assert "the label is none of 'eel'" in str(made.guarantees[0])
    assert "sum to one" not in done.err  # which all columns together do
    assert prudent("promise", data, *arguments, *wish, "--allow-rare").code == 0
    rare = Rule.from_json(rule.read_text())
    assert rare.thresholds[2] == -np.inf


def test_one_of_several_rules_shares_the_level(prudent, tmp_path):
    data, rule = write(tmp_path / "scores.csv", table()), tmp_path / "rule.json"
    arguments = [*FILES["judge"][0], "--promise", "error <= 10%", *UNSEEN, "-o", rule]
    done = prudent("promise", data, *arguments, "--among", "5")
    assert done.code == 0, done.err
    (promise,) = Rule.from_json(rule.read_text()).guarantees
    # Made at 0.99, it holds with 0.95 also where it is chosen of five.
    assert promise.confidence == 0.95
    assert promise.evidence["rules"] == 5
    assert json.loads(rule.read_text())["among"] == 5
    columns = table()
    alone = library.promise(
        columns["confidence"],
        columns["y"],
        "error <= 10%",
        predicted=columns["verdict"],
        confidence=0.99,
    )
    assert Rule.from_json(rule.read_text()).thresholds == alone.thresholds


def test_several_promises_are_made_jointly_each_into_its_file(prudent, tmp_path):
    data = write(tmp_path / "scores.csv", table())
    wishes = ["error <= 10%", "coverage >= 90%", "error <= 20%"]
    files = [tmp_path / f"{place}.json" for place in range(3)]
    arguments = [*SCORES, *UNSEEN]
    for wish, file in zip(wishes, files, strict=True):
        arguments += ["--promise", wish, "-o", file]
    done = prudent("promise", data, *arguments)
    assert done.code == 0, done.err
    rules = [Rule.from_json(file.read_text()) for file in files]
    columns = table()
    expected = library.promise(
        np.column_stack([columns["p_cat"], columns["p_dog"]]), columns["y"], wishes
    )
    assert [rule.thresholds for rule in rules] == [r.thresholds for r in expected]
    assert [rule.record.get("among") for rule in rules] == [2, None, 2]
    assert rules[1].guarantees[0].confidence is None  # nothing to share
    assert "chosen among these after a look at the rows" in done.err
    less = [*SCORES, *UNSEEN, "--promise", "error <= 10%", "--promise", "error <= 20%"]
    for more, message in (
        (["-o", files[0]], "name a file for each promise"),
        (["-o", files[0], "-o", files[0]], "two promises go to one file"),
        (["-o", files[0], "-o", files[1], "--among", "1"], None),
    ):
        done = prudent("promise", data, *less, *more)
        assert done.code == (0 if message is None else 2)
        assert message is None or message in done.err
        assert "on average" not in done.err
    three = [*less, "--promise", "error <= 30%", "--among", "2"]
    done = prudent(
        "promise", data, *three, *("-o", files[0], "-o", files[1], "-o", "3")
    )
    assert done.code == 2
    assert "--among 2 is less than the 3 promises given" in done.err


def test_rows_that_stand_twice_are_refused_where_chance_is_not_why(prudent, tmp_path):
    columns = table(100)
    copied = {name: [*cells, *cells[5:9]] for name, cells in columns.items()}
    data, rule = write(tmp_path / "scores.csv", copied), tmp_path / "rule.json"
    arguments = [*SCORES, "--promise", "coverage >= 90%", *UNSEEN, "-o", rule]
    done = prudent("promise", data, *arguments)
    assert done.code == 3
    assert "4 rows repeat an earlier one (lines 7 and 102)" in done.err
    assert "--id COL tells different rows apart" in done.err
    copied["id"] = [f"row {i}" for i in range(104)]
    write(data, copied)
    assert prudent("promise", data, *arguments, "--id", "id").code == 0
    coarse = {**table(300)}
    for name in ("p_cat", "p_dog"):
        coarse[name] = [round(value, 2) for value in coarse[name]]
    write(data, coarse)
    assert prudent("promise", data, *arguments).code == 0


def test_rules_that_are_none_end_in_exit_code_four(prudent, tmp_path):
    data = write(tmp_path / "scores.csv", table(60))
    for file in (data, tmp_path / "missing.json"):
        done = prudent("apply", file, data)
        assert done.code == 4
        assert done.err.count("\n") == 1


@pytest.mark.parametrize("change", [{"columns": []}, {"label": 7}])
def test_a_rule_that_names_no_columns_is_refused_for_tables(prudent, tmp_path, change):
    data, rule = write(tmp_path / "scores.csv", table()), tmp_path / "rule.json"
    columns = ["--target", "y", "--predicted", "verdict", "--score", "confidence"]
    promise = ["--promise", "error <= 10%", *UNSEEN, "-o", rule]
    assert prudent("promise", data, *columns, *promise).code == 0
    rule.write_text(json.dumps(json.loads(rule.read_text()) | change))
    outcome = prudent("apply", rule, data)
    assert outcome.code == 4
    assert "the rule names" in outcome.err


@pytest.mark.parametrize(
    ("wish", "more", "sentence"),
    [
        ("coverage >= 90% in every group", (), "does not say which groups: name a"),
        ("coverage >= 90% in every shop", ("--by", "site"), "and by site is asked for"),
        ("coverage >= 90% in every shop", (), "--by: no column 'shop'; there are"),
        ("error <= 9% in every risk", (), "values: give bands, --by risk:"),
        ("coverage >= 90% in every site*y", ("--by", "site"), "by site is asked for"),
        ("coverage >= 90% in every site and y", (), "--by: 'y' is the target"),
        ("false alarm <= 5%", ("--by", "site"), "has no promise by subgroups"),
        ("coverage >= 90% in every class and site*risk:5", (), "a subgroup are needed"),
        ("coverage >= 90%", ("--by", "site,site"), "--by: 'site=north' is named twice"),
        ("error <= 90% in every site and site", (), "--by: 'site=north' is named"),
        ("error <= 90% in every risk:0 and risk:0,9", (), "'risk<0' is named twice"),
        ("error <= 90% in every site*risk:0 and risk:0*site", (), "is named twice"),
        ("error <= 90% in every site*site", (), "'site*site' crosses 'site' with"),
        ("none", (), "--promise none makes no rule"),
    ],
)
def test_parts_of_a_table_of_scores_that_have_no_promise(
    wish, more, sentence, prudent, tmp_path
):
    data = write(tmp_path / "scores.csv", table())
    arguments = (data, *SCORES, *more, "--promise", wish, *UNSEEN, "-o", tmp_path / "r")
    refused = prudent("promise", *arguments)
    assert refused.code in (2, 3, 6)
    assert sentence in refused.err
    assert refused.err.count("\n") == 1


def test_several_promises_may_be_by_the_same_column(prudent, tmp_path):
    data = write(tmp_path / "scores.csv", table(2000))
    files = [tmp_path / f"{place}.json" for place in range(2)]
    arguments = [*SCORES, *UNSEEN, "--by", "site"]
    for wish, file in zip(("coverage >= 80%", "coverage >= 60%"), files, strict=True):
        arguments += ["--promise", f"{wish} in every class", "-o", file]
    done = prudent("promise", data, *arguments)
    assert done.code == 0, done.err
    rules = [Rule.from_json(file.read_text()) for file in files]
    assert rules[0].subgroups == rules[1].subgroups == ("site=north", "site=south")


@pytest.mark.parametrize("by", [(), ("--by", "site")])
def test_answers_made_of_scores_of_classes_are_labels(prudent, tmp_path, by):
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 900)
    scores = rng.normal(size=(900, 3)) + 2.5 * (truth[:, None] == np.arange(3))
    labels = np.array(["cat", "dog", "eel"])
    table = pd.DataFrame(scores, columns=[f"p_{label}" for label in labels])
    table["truth"] = labels[truth]
    table["site"] = rng.choice(["north", "south"], 900)
    table[:600].to_csv(tmp_path / "old.csv", index=False)
    table[600:].to_csv(tmp_path / "new.csv", index=False)
    old, new, rule = (tmp_path / name for name in ("old.csv", "new.csv", "rule.json"))
    wish = "error <= 10% in every site" if by else "error <= 10%"
    columns = ("--scores", "p_cat,p_dog,p_eel", "--classes", "cat,dog,eel")
    options = ("--truth", "truth", *columns, "--unseen", "drawn later", *by)
    made = prudent("promise", old, *options, "--promise", wish, "-o", rule)
    assert made.code == 0, made.err
    applied = prudent("apply", rule, new)
    assert applied.code == 0, applied.err
    answers = pd.read_csv(io.StringIO(applied.out))
    best = labels[scores[600:].argmax(axis=1)]
    answered = answers["answered"] == 1
    assert answered.any()
    np.testing.assert_array_equal(answers["prediction"][answered], best[answered])
    certified = prudent("certify", new, "-m", rule, "--truth", "truth")
    assert certified.code == 0, certified.err
    assert "selective error" in certified.out


def test_answers_made_of_one_score_of_two_classes_are_labels(prudent, tmp_path):
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 700)
    table = pd.DataFrame({"s": rng.normal(3.0 * truth - 1.5), "y": truth})
    table[:400].to_csv(tmp_path / "old.csv", index=False)
    table[400:].to_csv(tmp_path / "new.csv", index=False)
    old, new, rule = (tmp_path / name for name in ("old.csv", "new.csv", "rule.json"))
    options = ("--truth", "y", "--score", "s", "--positive", "1", "--unseen", "later")
    made = prudent("promise", old, *options, "--promise", "error <= 5%", "-o", rule)
    assert made.code == 0, made.err
    applied = prudent("apply", rule, new)
    assert applied.code == 0, applied.err
    answers = pd.read_csv(io.StringIO(applied.out))
    answered = answers["answered"] == 1
    wrong = (table["s"][400:] > 0).to_numpy() != table["y"][400:].to_numpy()
    assert 0 < answered.mean() < 1
    best = (table["s"][400:] > 0).to_numpy()
    np.testing.assert_array_equal(answers["prediction"][answered], best[answered])
    assert wrong[answered].mean() < wrong.mean()


def test_the_truth_may_be_the_last_column(prudent, tmp_path):
    """As everywhere, for rules and for limits at all thresholds."""
    columns = table()
    columns["y"] = columns.pop("y")
    path = write(tmp_path / "scores.csv", columns)
    scores = ["--truth", "last", "--scores", "p_cat,p_dog"]
    made = prudent(
        *("promise", path, *scores, *UNSEEN, "--promise", "error <= 20%"),
        *("-o", tmp_path / "rule.json"),
    )
    assert made.code == 0, made.err
    limits = tmp_path / "limits.json"
    certified = prudent("certify", path, *scores, "--thresholds", limits)
    assert certified.code == 0, certified.err
    assert json.loads(limits.read_text())["positive"] == "dog"


@pytest.mark.parametrize("word", ["?", ""])
@pytest.mark.parametrize("name", ["classes", "judge", "vendor"])
def test_rows_without_a_label_make_no_rule(prudent, tmp_path, name, word):
    """As everywhere, "?" is no label; such rows are neither a class nor wrong."""
    options, wish, _ = FILES[name]
    columns = table()
    rows = {column: cells[20:] for column, cells in columns.items()}
    columns["y"] = [word] * 20 + columns["y"][20:]
    rules = []
    for given in (columns, rows):
        data = write(tmp_path / "scores.csv", given)
        rule = tmp_path / "rule.json"
        outcome = prudent(
            *("promise", data, *options, "--promise", wish, *UNSEEN, "-o", rule)
        )
        assert outcome.code == 0, outcome.err
        said = "20 rows without a label are left out" in outcome.err
        assert said == (given is columns)
        rules.append(json.loads(rule.read_text()))
    labelled, whole = (
        {key: value for key, value in rule.items() if key != "data"} for rule in rules
    )
    assert labelled == whole


def test_thresholds_of_scores_leave_rows_without_a_label_out(prudent, tmp_path):
    """A question mark in the column of the truth counts no row as wrong."""
    judge = ("--predicted", "verdict", "--score", "confidence")
    limits = []
    for word in ("?", ""):
        columns = table()
        columns["y"][:20] = [word] * 20
        data, path = write(tmp_path / "scores.csv", columns), tmp_path / "limits.json"
        outcome = prudent(
            *("certify", data, "--truth", "y", *judge, "--thresholds", path)
        )
        assert outcome.code == 0
        assert outcome.out.startswith("380 rows of ")
        limits.append(json.loads(path.read_text()))
    assert limits[0] == limits[1]
