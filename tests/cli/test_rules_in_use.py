"""Rules and answers from files, certified and watched."""

from __future__ import annotations

import json

import numpy as np
import pytest

import prudent as library
from cli.test_promise import FILES, SCORES, UNSEEN, table, write
from prudent import Rule


@pytest.fixture
def made(prudent, tmp_path):
    """Make the rule of a kind of file, and return its path."""

    def make(name, *more, **changes):
        arguments, wish, _ = FILES[name]
        data = write(tmp_path / "scores.csv", table(**changes))
        rule = tmp_path / f"{name}.json"
        done = prudent(
            "promise", data, *arguments, "--promise", wish, *UNSEEN, *more, "-o", rule
        )
        assert done.code == 0, done.err
        return rule

    return make


def numbers(rule, columns):
    return np.column_stack([columns[name] for name in rule.record["columns"]])


@pytest.mark.parametrize("name", ["classes", "judge", "vendor", "sites", "confident"])
def test_a_rule_is_certified_from_a_file_as_in_python(name, made, prudent, tmp_path):
    path, columns = made(name), table(600, seed=1)
    new, out = write(tmp_path / "new.csv", columns), tmp_path / "found.json"
    done = prudent("certify", new, "--truth", "y", "-m", path, "--json", out)
    assert done.code == 0, done.err
    assert (
        "taken to be unseen by the rule and the scores; prudent cannot check this"
        in done.out
    )
    assert "Promised:" in done.out
    rule = Rule.from_json(path.read_text())
    settings = {}
    if name == "judge":
        settings["predicted"] = columns["verdict"]
    if name == "sites":
        settings["by"] = columns["site"]
    expected = library.certify(rule, numbers(rule, columns), columns["y"], **settings)
    if name == "sites":
        settings["by"] = {"site": columns["site"]}
        given = (rule, numbers(rule, columns), columns["y"])
        assert library.certify(*given, **settings) == expected
    found = json.loads(out.read_text())
    assert [f["bound"] for f in found] == [g.bound for g in expected]
    assert [f["subgroup"] for f in found] == [g.subgroup for g in expected]
    promised = {(g.quantity, g.scope, g.subgroup) for g in rule.guarantees}
    assert {(g.quantity, g.scope, g.subgroup) for g in expected} == promised


def test_promises_of_groups_are_held_to_the_rows_of_each(made, prudent, tmp_path):
    path, columns = made("sites"), table(600, seed=1)
    south = np.array(columns["site"]) == "south"
    for name in ("p_cat", "p_dog"):  # wrong in the south only
        values = np.array(columns[name])
        columns[name] = np.where(south, 1 - values, values).tolist()
    new = write(tmp_path / "new.csv", columns)
    done = prudent("certify", new, "--truth", "y", "-m", path)
    lines = [line for line in done.out.splitlines() if line.startswith("Promised:")]
    assert ["site=north" in line for line in lines] == [True, False]
    assert "consistent" in lines[0]
    assert "broken" in lines[1]
    done = prudent("monitor", path, "--data", new, "--truth", "y", "--json", "-")
    assert done.code == 7, done.err
    verdicts = [p["verdict"] for p in json.loads(done.out)["promises"]]
    assert verdicts[0] != "broken"
    assert verdicts[1] == "broken"


def test_answers_in_a_file_are_certified_without_a_model(prudent, tmp_path):
    columns = table(300, seed=2)
    data, out = write(tmp_path / "new.csv", columns), tmp_path / "found.json"
    done = prudent("certify", data, "--truth", "y", "--predicted", "verdict")
    assert done.code == 0, done.err
    wrong = np.array(columns["y"]) != np.array(columns["verdict"])
    assert "error rate: at most" in done.out
    assert f"({int(wrong.sum())} of 300 wrong)" in done.out
    assert "without an answer" not in done.out
    sure = np.array(columns["confidence"]) > 0.9
    columns["said"] = np.where(sure, columns["verdict"], "").tolist()
    data = write(tmp_path / "new.csv", columns)
    done = prudent(
        *("certify", data, "--truth", "y", "--predicted", "said", "--json", out)
    )
    first = json.loads(out.read_text())[0]
    assert first["quantity"] == "selective error rate"
    assert first["evidence"]["answered"] == sure.sum()
    assert first["evidence"]["wrong"] == (wrong & sure).sum()
    done = prudent("certify", data, "--truth", "y", "--predicted", "said")
    assert "error rate: at most" in done.out
    assert f"({int((wrong | ~sure).sum())} of 300 wrong)" in done.out
    assert f"The {int((~sure).sum())} rows without an answer count as wrong" in done.out


def test_sets_in_a_file_are_certified_as_those_in_python(made, prudent, tmp_path):
    path, columns = made("classes", wrong=1.0), table(300, seed=3, wrong=1.0)
    rule = Rule.from_json(path.read_text())
    sets = rule.sets(numbers(rule, columns))
    labels = np.array(["cat", "dog"])
    columns["set"] = ["|".join(labels[row].tolist()) for row in sets]
    data, out = write(tmp_path / "new.csv", columns), tmp_path / "found.json"
    done = prudent(
        *("certify", data, "--truth", "y", "--predicted", "set", "--json", out)
    )
    assert done.code == 0, done.err
    (expected,) = library.certify(None, sets, columns["y"], classes=["cat", "dog"])
    (found,) = json.loads(out.read_text())
    assert (found["quantity"], found["bound"]) == ("coverage", expected.bound)


def test_alarms_are_certified_and_watched_by_ordinary_rows(made, prudent, tmp_path):
    path, columns = made("anomaly", "--keep-scores"), table(300, seed=4)
    columns["state"] = (["ok"] * 10 + ["odd"]) * 27 + ["ok"] * 3
    data = write(tmp_path / "new.csv", columns)
    done = prudent("certify", data, "--truth", "state", "-m", path)
    assert done.code == 2
    assert "--normal is missing" in done.err
    arguments = ("--truth", "state", "--normal", "ok")
    done = prudent("certify", data, *arguments, "-m", path)
    assert done.code == 0, done.err
    rule = Rule.from_json(path.read_text())
    alarms = rule.alarms(np.array(columns["odd"]))
    ordinary = np.array(columns["state"]) == "ok"
    assert f"({int((alarms & ordinary).sum())} of {ordinary.sum()} wrong)" in done.out
    done = prudent("monitor", path, "--data", data, *arguments)
    assert done.code == 0, done.err
    assert "drift (score)" in done.out
    assert "none seen" in done.out
    strange = {**columns, "odd": [value + 2 for value in columns["odd"]]}
    data = write(tmp_path / "strange.csv", strange)
    assert prudent("monitor", path, "--data", data).code == 8
    assert prudent("monitor", path, "--data", data, *arguments).code == 7


@pytest.mark.parametrize("compared", [False, True])
def test_rows_without_a_number_for_a_score_are_watched_as_the_strangest(
    compared, made, prudent, tmp_path
):
    path, columns = made("anomaly", "--keep-scores"), table(200, seed=4)
    arguments = [path, "--json", "-", "--data"]
    if compared:
        reference = write(tmp_path / "reference.csv", table(300, seed=5))
        arguments = ["--reference", reference, *arguments]

    def watched(odd):
        data = write(
            tmp_path / "new.csv",
            {**columns, "odd": [*odd, *columns["odd"][len(odd) :]]},
        )
        done = prudent("monitor", *arguments, data)
        return done, json.loads(done.out or "{}").get("drift")

    for cells in ([""] * 3, ["inf"] * 3, ["-inf", "", "inf"]):
        done, drift = watched(cells)
        assert done.code == 0, done.err
        assert drift["verdict"] == "none seen"
    done, drift = watched([""] * 100)
    assert done.code == 8, done.err
    assert drift["verdict"] == "drift"


def test_a_watched_rule_is_known_by_its_file(made, prudent, tmp_path):
    path, state = made("judge"), tmp_path / "state.json"
    week = write(tmp_path / "week.csv", table(200, seed=5))
    arguments = ("--data", week, "--truth", "y", "--state", state)
    done = prudent("monitor", path, *arguments, "--reference", tmp_path / "scores.csv")
    assert done.code == 0, done.err
    assert "drift (1 column)" in done.out
    done = prudent("monitor", path, *arguments)
    assert done.code == 3
    assert "was counted on" in done.err
    path.write_text(path.read_text().replace("hold-out of May", "hold-out of June"))
    done = prudent("monitor", path, *arguments)
    assert done.code == 4
    assert "watches another model" in done.err
    wrong = table(200, seed=6)
    wrong["y"] = ["dog" if label == "cat" else "cat" for label in wrong["y"]]
    data = write(tmp_path / "wrong.csv", wrong)
    done = prudent("monitor", path, "--data", data, "--truth", "y")
    assert done.code == 7
    assert "BROKEN" in done.out
    done = prudent("monitor", path, "--data", tmp_path / "scores.csv", "--truth", "y")
    assert "made this rule: it holds no new rows" in done.err


def test_certify_wants_a_model_or_answers(made, prudent, tmp_path):
    path, data = made("classes"), tmp_path / "scores.csv"
    for more in ([], ["-m", path, "--predicted", "verdict"]):
        done = prudent("certify", data, "--truth", "y", *more)
        assert done.code == 2
        assert "give -m FILE" in done.err
    done = prudent("certify", data, "--truth", "y", "-m", path)
    assert done.code == 0
    assert "made this rule" in done.err
    assert "Promised" not in done.out
    done = prudent("certify", data, "--truth", "site", "-m", path)
    assert done.code == 3
    assert "'north', which the rule does not know" in done.err
    done = prudent(
        *("certify", data, "--truth", "y", "--predicted", "verdict"),
        *("--classes", "cat,fish"),
    )
    assert done.code == 3
    assert "truth 'dog' is not among --classes" in done.err


def test_rule_of_answers_without_its_column_of_labels_is_refused(
    made, prudent, tmp_path
):
    path = made("judge")
    fields = json.loads(path.read_text())
    assert fields["kind"] == "answers"
    fields["label"] = None
    path.write_text(json.dumps(fields))
    data = write(tmp_path / "new.csv", table(30, seed=2))
    done = prudent("apply", path, data)
    assert done.code == 4
    assert "names no column of the labels that it is about" in done.err
    path.write_text(json.dumps(fields | {"label": ""}))
    done = prudent("certify", data, "--truth", "y", "-m", path)
    assert done.code == 4
    assert "names a column '', which is no text" in done.err


def test_smoothed_rules_are_certified_from_files_only(made, prudent, tmp_path):
    path = made("classes", "--ties", "smoothed", "--id", "id")
    new = write(tmp_path / "new.csv", table(300, seed=7))
    assert prudent("certify", new, "--truth", "y", "-m", path).code == 0
    rule = Rule.from_json(path.read_text())
    with pytest.raises(ValueError, match="give these"):
        library.certify(rule, np.zeros((2, 2)), ["cat", "dog"])
    assert SCORES  # columns as in the other file


def test_answers_in_python():
    random = np.random.default_rng(0)
    y = random.integers(0, 3, 200)
    said = np.where(random.random(200) < 0.1, (y + 1) % 3, y)
    found = library.certify(None, said, y)
    assert [g.quantity for g in found] == ["error rate"] + ["class error rate"] * 3
    refused = said.astype(object)
    refused[:50] = None
    found = library.certify(None, refused, y, claims="all")
    assert found[0].quantity == "selective error rate"
    assert found[0].evidence["answered"] == 150
    with pytest.raises(ValueError, match="boolean array with a column"):
        library.certify(None, np.ones((200, 3)), y, classes=[0, 1, 2])
    with pytest.raises(ValueError, match="does not know"):
        library.certify(None, said, y, classes=[0, 1])
