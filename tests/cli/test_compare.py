"""`prudent compare`: what is printed where, what is written, how it ends."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace

import numpy as np
import pytest

from prudent import load
from prudent.evaluation import evaluate, methods, rows

TWO_METHODS = ("--methods", "optimistic,minimax", "--baselines", "lda")
ONE_BASELINE = ("--methods", "minimax", "--baselines", "lda", "--no-best")


@pytest.fixture
def broken(monkeypatch):
    """Make a method raise when it is built."""

    def replace_build(name: str, error: BaseException) -> None:
        def build(_random_state: int):
            raise error

        known = methods.METHODS if name in methods.METHODS else methods.BASELINES
        monkeypatch.setitem(known, name, replace(known[name], build=build))

    return replace_build


@pytest.mark.parametrize("name", ["iris", "wine"])
def test_output_is_golden(prudent, golden, name):
    outcome = prudent("compare", name, *TWO_METHODS, "--no-timings")
    assert outcome.code == 0
    golden(f"{name}.txt", outcome.out)


def test_failure_is_a_row_with_its_reason(prudent, broken):
    broken("minimax", ValueError("column 'b' is constant within class 'x'. Drop b."))
    outcome = prudent("compare", "iris", *ONE_BASELINE)
    assert outcome.code == 0
    assert "minimax: column 'b' is constant within class 'x'. Drop b.\n" in outcome.out
    assert "warning: 1 of 2 methods failed" in outcome.err


def test_failure_is_partial_success_when_strict(prudent, broken):
    broken("minimax", ValueError("no"))
    assert prudent("compare", "iris", *ONE_BASELINE, "--strict").code == 1


def test_strict_success_is_success(prudent):
    outcome = prudent(
        "compare", "iris", "--methods", "minimax", "--baselines", "none", "--strict"
    )
    assert outcome.code == 0


def test_no_figures_at_all_is_its_own_code(prudent, broken):
    broken("minimax", ValueError("no covariance"))
    outcome = prudent("compare", "iris", "--methods", "minimax", "--baselines", "none")
    assert outcome.code == 6
    assert "prudent: error: no method finished: no covariance" in outcome.err


def test_time_limit_is_its_own_code_if_nothing_finished(prudent):
    outcome = prudent(
        *("compare", "iris", "--methods", "optimistic", "--baselines", "none"),
        *("--time-limit", "0.001"),
    )
    assert outcome.code == 6
    assert "stopped after 0.001 s" in outcome.out


def test_interruption_shows_what_finished_and_writes_the_report(
    prudent, broken, tmp_path
):
    broken("lda", KeyboardInterrupt())
    report, found = tmp_path / "r.html", tmp_path / "r.json"
    outcome = prudent(
        "compare", "iris", *ONE_BASELINE, "--report", report, "--json", found
    )
    assert outcome.code == 130
    assert "minimax" in outcome.out
    assert outcome.err.endswith("prudent: error: interrupted\n")
    assert "interrupted" in report.read_text(encoding="utf-8")
    assert json.loads(found.read_text())["rows"][1]["failure"]["kind"] == "interrupted"


def test_json_on_stdout_is_pure(prudent):
    outcome = prudent("compare", "iris", *ONE_BASELINE, "--json", "-")
    found = json.loads(outcome.out)
    assert outcome.code == 0
    assert {row["method"] for row in found["rows"]} == {"minimax", "lda"}
    assert "reproduce: " in outcome.err


def test_json_and_report_are_named_and_describe_the_table(prudent, tmp_path):
    report, file = tmp_path / "r.html", tmp_path / "r.json"
    outcome = prudent(
        "compare", "iris", *ONE_BASELINE, "--report", report, "--json", file
    )
    found = json.loads(file.read_text(encoding="utf-8"))
    assert found["data"]["name"] == "iris"
    assert found["data"]["features"][0] == "sepal_length_cm"
    assert len(found["data"]["sha256"]) == 64
    assert f"report: {report} (" in outcome.out
    assert "sepal_length_cm" in report.read_text(encoding="utf-8")


def test_what_the_table_does_not_show_is_worked_out_for_files_only(
    prudent, tmp_path, monkeypatch
):
    asked = ("compare", "iris", *ONE_BASELINE, "--no-timings")
    with_files = prudent(*asked, "--json", tmp_path / "a.json")
    found = json.loads((tmp_path / "a.json").read_text())
    assert all(row["shift"]["errors"] for row in found["rows"])

    def refuse(*_arguments):
        raise AssertionError("nobody reads this")

    monkeypatch.setattr(evaluate, "_add_shift", refuse)
    monkeypatch.setattr(evaluate, "region_map", refuse)
    monkeypatch.setattr(rows, "handed_over", refuse)
    assert prudent(*asked).out == with_files.out


def test_no_timings_repeats_byte_for_byte(prudent, tmp_path):
    reports = [tmp_path / "1.html", tmp_path / "2.html"]
    for report in reports:
        prudent("compare", "iris", *ONE_BASELINE, "--no-timings", "--report", report)
    first, second = (report.read_bytes() for report in reports)
    assert first == second


def test_command_to_repeat_names_what_was_chosen(prudent, table_file):
    path = table_file("a;b;a class\n1,5;2;u\n3;5;v\n2;1;u\n4;4;v\n1;1;u\n4;7;v\n")
    outcome = prudent(
        *("compare", path, "--target", "a class", "--decimal", ",", "--cv", "2"),
        *("--methods", "minimax", "--baselines", "none", "--quiet", "--json", "-"),
        *("--promise", "none"),
    )
    command = json.loads(outcome.out)["settings"]["command"]
    assert command == (
        f"prudent compare {path} --target 'a class' --promise none --methods minimax "
        "--baselines none --cv 2 --seed 0 --decimal ,"
    )


def test_quiet_prints_results_only(prudent):
    outcome = prudent("compare", "iris", *ONE_BASELINE, "--quiet")
    assert outcome.err == ""
    assert "reproduce" not in outcome.out


def test_groups_column_keeps_rows_together_and_is_no_feature(prudent, table_file):
    rows = "".join(f"{i},{i * i % 7},p{i // 2},{'uv'[i // 2 % 2]}\n" for i in range(40))
    path = table_file("a,b,patient,y\n" + rows)
    outcome = prudent(
        *("compare", path, "--target", "y", "--groups", "patient", "--quiet"),
        *("--promise", "none"),
        *("--methods", "minimax", "--baselines", "lda", "--json", "-"),
    )
    found = json.loads(outcome.out)
    assert found["data"]["features"] == ["a", "b"]
    assert any("20 groups" in text for text in found["data"]["notes"])
    assert sum(map(sum, found["rows"][0]["confusion"])) == 20
    assert "--groups patient" in found["settings"]["command"]


def test_sample_is_stated_by_the_methods_that_need_rows(prudent):
    found = json.loads(
        prudent(
            *("compare", "iris", *ONE_BASELINE, "--sample", "60", "--json", "-"),
            *("--promise", "coverage >= 80%"),
        ).out
    )
    notes = {row["method"]: row["notes"] for row in found["rows"]}
    assert notes == {"minimax": [], "lda": ["fitted on 60 of 120 rows"]}


def test_labels_like_markup_come_out_as_they_are(prudent, table_file):
    rows = "".join(
        f"{i},{i * i % 7},{'[red]' if i % 2 else '<b>'}\n" for i in range(20)
    )
    path = table_file("a,b,y\n" + rows)
    outcome = prudent("describe", path, "--target", "y")
    assert "[red]" in outcome.out
    assert "<b>" in outcome.out


def test_json_has_the_keys_of_a_promise(prudent):
    outcome = prudent("compare", "iris", *ONE_BASELINE, "--json", "-")
    found = json.loads(outcome.out)
    assert found["settings"]["promise"] == "coverage >= 90% in every class"
    assert found["settings"]["confidence"] == 0.95
    row = found["rows"][0]
    assert row["failure"] is None
    assert set(row["worst_class"]) == {"label", "error"}
    asked = row["asked"]
    assert asked["text"] == found["settings"]["promise"]
    assert asked["kept"] in ("kept", "consistent", "broken")
    assert asked["needs_rows"] is None
    assert [item["scope"] for item in asked["items"]] == [
        "setosa",
        "versicolor",
        "virginica",
    ]
    needed = "scope quantity bound sense confidence average_over measured n kept"
    for item in (*asked["items"], *row["own"]):
        assert set(needed.split()) <= set(item)
    levels = found["frontier"]["levels"]
    assert 0.9 in levels
    assert len(found["frontier"]["decided"]["lda"]) == len(levels)
    assert 0 <= row["decided"] <= 1


@pytest.mark.parametrize(
    ("promise", "words"),
    [
        ("accuracy > 9", ["is none of", "in every class", "missed LABEL", '"none"']),
        ("false alarm <= 5%", ["is not for this: use prudent detect"]),
    ],
)
def test_promise_that_does_not_parse_is_a_usage_error(prudent, promise, words):
    outcome = prudent("compare", "iris", "--promise", promise)
    assert outcome.code == 2
    assert all(word in outcome.err for word in words)


def test_what_no_row_can_carry_ends_at_once_with_a_promise_that_can_be_had(prudent):
    outcome = prudent("compare", "breast_cancer", "--promise", "missed malignant<=1%")
    assert outcome.code == 6
    assert "Nothing was fitted; ask for 'missed malignant <= " in outcome.err
    assert "fold" not in outcome.err


def test_false_alarms_of_a_class_are_its_errors(prudent, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    outcome = prudent(
        *("compare", "breast_cancer", "--promise", "false alarm benign<=5%"),
        *("--methods", "sklearn.naive_bayes.GaussianNB", "--baselines", "lda"),
    )
    assert outcome.code == 0
    assert "is understood as the error of class 'benign'" in outcome.err
    (line,) = [s for s in outcome.out.splitlines() if s.startswith("To use it:")]
    fitted = prudent(*shlex.split(line.removeprefix("To use it:"))[1:])
    assert fitted.code == 0
    assert "The class error rate of class 'benign' is at most 0.05" in fitted.out


def test_rows_of_no_known_group_are_refused_before_any_work(prudent, table_file):
    rows = "".join(f"{n},{n % 20 or ''},{'ab'[n % 2]}\n" for n in range(400))
    path = table_file(f"x,patient,y\n{rows}")
    outcome = prudent("compare", path, "--target", "y", "--groups", "patient")
    assert outcome.code == 3
    assert "`groups` says nothing of 20 of 400 rows" in outcome.err
    assert outcome.out == ""


def test_where_groups_count_it_is_groups_that_are_needed(prudent, table_file):
    rows = "".join(f"{n},{n % 20},{'ab'[n % 2]}\n" for n in range(400))
    path = table_file(f"x,patient,y\n{rows}")
    outcome = prudent(
        *("compare", path, "--target", "y", "--groups", "patient"),
        *("--promise", "error <= 10%", *ONE_BASELINE),
    )
    assert outcome.code == 6
    assert re.search(r"that needs \d+ groups \(\d+ held out\)", outcome.err)


def test_columns_asked_for_are_the_width_of_what_is_piped(prudent, monkeypatch):
    command = ("compare", "iris", "--methods", "minimax", "--baselines", "lda")
    widest = {}
    for columns in ("80", "100"):
        monkeypatch.setenv("COLUMNS", columns)
        lines = prudent(*command).out.splitlines()
        typed = ("To use it:", "reproduce:")
        widest[columns] = max(len(s) for s in lines if not s.startswith(typed))
    assert widest["80"] <= 80 < widest["100"] <= 100


def test_next_command_works_as_printed(prudent, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    outcome = prudent("compare", "iris", "--methods", "conformal", "--baselines", "lda")
    (line,) = [s for s in outcome.out.splitlines() if s.startswith("To use it:")]
    words = shlex.split(line.removeprefix("To use it:"))
    assert words[:2] == ["prudent", "fit"]
    fitted = prudent(*words[1:])
    assert fitted.code == 0
    assert "The coverage of each of the 3 classes is at least 0.9" in fitted.out
    predicted = prudent("predict", "iris", "-m", "model.prudent", "--p-values")
    assert predicted.code == 0
    assert predicted.out.splitlines()[0] == (
        "prediction,set,p-value setosa,p-value versicolor,p-value virginica"
    )


def test_where_a_promise_is_out_of_reach_the_next_command_makes_the_nearest(
    prudent, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    X, codes = random.normal(size=(700, 1)), np.arange(700) % 2
    rows = zip((X[:, 0] + 1.5 * codes).round(3), codes, strict=True)
    lines = [f"{x},{['no', 'yes'][code]}" for x, code in rows]
    (tmp_path / "t.csv").write_text("\n".join(["x,y", *lines]))
    outcome = prudent(
        *("compare", "t.csv", "--target", "y", "--promise", "error <= 5%"),
        *("--methods", "minimax", "--baselines", "lda", "--cv", 3),
    )
    said = " ".join(outcome.out.split())
    reachable = re.search(r"Reachable on this table: (error <= \d+%)", said)[1]
    assert "after a look is certified by fresh rows" in said
    assert "--among" not in said
    (line,) = [s for s in outcome.out.splitlines() if s.startswith("To try it:")]
    words = shlex.split(line.removeprefix("To try it:"))
    assert words[words.index("--promise") + 1] == reachable
    fitted = prudent(*words[1:])
    assert fitted.code == 0
    assert "The selective error rate is at most 0." in fitted.out
    assert load("model.prudent").guarantees_


def test_too_few_rows_are_not_sent_to_a_promise_that_says_nothing(prudent, tmp_path):
    """Always answering "a" errs in a twentieth of the rows."""
    lines = [f"{n % 17},{'b' if n % 20 == 7 else 'a'}" for n in range(100)]
    (tmp_path / "t.csv").write_text("\n".join(["x,y", *lines]))
    outcome = prudent(
        *("compare", tmp_path / "t.csv", "--target", "y", "--promise", "error <= 1%"),
        *ONE_BASELINE,
    )
    assert outcome.code == 6
    assert "Nothing was fitted" in outcome.err
    for words in ("error <= 5%", "error <= 10%", "coverage"):
        assert words not in outcome.err


@pytest.mark.parametrize(
    ("promise", "instead"),
    [
        ("error <= 10%", "ask for 'coverage >= 80%', which is about sets of labels"),
        ("coverage >= 99%", "ask for 'coverage >= 80%', or"),
    ],
)
def test_few_rows_carry_sets_of_labels(prudent, tmp_path, promise, instead):
    lines = [f"{n},{'ab'[n % 2]}" for n in range(20)]
    (tmp_path / "t.csv").write_text("\n".join(["x,y", *lines]))
    common = ("compare", tmp_path / "t.csv", "--target", "y", "--promise")
    outcome = prudent(*common, promise, *ONE_BASELINE)
    assert outcome.code == 6
    assert instead in outcome.err
    again = prudent(*common, "coverage >= 80%", *ONE_BASELINE)
    assert again.code == 0


@pytest.mark.parametrize(
    ("n_rows", "promise", "confidence", "instead"),
    [
        (81, "coverage >= 95% in every class", "0.9", "'coverage >= 80%', or"),
        (24, "coverage >= 95% in every class", "0.99", "80%' without --confidence, or"),
        (24, "error <= 10%", "0.99", "80%' without --confidence, which is about sets"),
    ],
)
def test_what_is_suggested_beside_a_confidence_can_be_asked_as_it_is_said(
    prudent, tmp_path, n_rows, promise, confidence, instead
):
    lines = [f"{n},{'ab'[n % 2]}" for n in range(n_rows)]
    (tmp_path / "t.csv").write_text("\n".join(["x,y", *lines]))
    common = ("compare", tmp_path / "t.csv", "--target", "y", *ONE_BASELINE)
    given = ("--confidence", confidence)
    outcome = prudent(*common, "--promise", promise, *given)
    assert outcome.code == 6
    assert instead in outcome.err
    weaker = re.search("ask for '([^']+)'", outcome.err)[1]
    is_without = "without --confidence" in outcome.err
    again = prudent(*common, "--promise", weaker, *(() if is_without else given))
    assert again.code == 0


@pytest.mark.parametrize("confidence", [(), ("--confidence", "0.9")])
def test_next_command_makes_the_promise_of_the_table(
    prudent, tmp_path, monkeypatch, confidence
):
    monkeypatch.chdir(tmp_path)
    outcome = prudent(
        *("compare", "breast_cancer", "--methods", "minimax"),
        *("--baselines", "lda", "--promise", "coverage >= 80% in every class"),
        *("--cv", 2, *confidence),
    )
    said = " ".join(outcome.out.split())
    if confidence:
        together = "with confidence 0.9 for best, and for all others together"
        assert f"in every class, {together}" in said
    else:
        assert "(on average over training samples)" in said
    (line,) = [s for s in outcome.out.splitlines() if s.startswith("To use it:")]
    words = shlex.split(line.removeprefix("To use it:"))
    assert ("--average" in words) == (not confidence)
    assert ("0.9" in words) == bool(confidence)
    assert words[words.index("--method") + 1] == "best"
    assert prudent(*words[1:]).code == 0
    for promise in load("model.prudent").guarantees_:
        assert (promise.average_over is None) == bool(confidence)
        assert (promise.confidence is None) == (not confidence)


def test_parameters_and_classes_of_others_are_taken(prudent):
    outcome = prudent(
        *("compare", "iris", "--methods", "sklearn.naive_bayes.GaussianNB,minimax"),
        *("--baselines", "none", "--param", "minimax.covariance=0.2", "--json", "-"),
        "--no-best",
    )
    rows = {row["method"]: row for row in json.loads(outcome.out)["rows"]}
    assert set(rows) == {"GaussianNB", "minimax"}
    assert rows["minimax"]["parameters"]["covariance"] == "0.2"
    assert rows["GaussianNB"]["asked"]["kept"] in ("kept", "consistent")


def test_costs_give_the_mean_cost(prudent, tmp_path):
    costs = tmp_path / "costs.csv"
    costs.write_text(
        "true,virginica,setosa,versicolor\nsetosa,1,0,1\n"
        "versicolor,1,1,0\nvirginica,0,1,1\n"
    )
    outcome = prudent(
        "compare", "iris", *ONE_BASELINE, "--costs", costs, "--json", "-", "--quiet"
    )
    for row in json.loads(outcome.out)["rows"]:
        assert row["cost"] == pytest.approx(row["error"])


def test_costs_of_classes_that_are_left_out_play_no_part(prudent, table_file):
    rows = "".join(f"{i},{i * i % 7},{'uv'[i % 2]}\n" for i in range(40))
    path = table_file("a,b,y\n" + rows + "1,1,w\n2,3,w\n")
    costs = table_file("true,u,v,w\nu,0,1,9\nv,1,0,9\nw,9,9,0\n", "costs.csv")
    outcome = prudent(
        *("compare", path, "--target", "y", *ONE_BASELINE, "--min-class-rows", "5"),
        *("--promise", "none"),
        *("--costs", costs, "--json", "-"),
    )
    assert outcome.code == 0
    for row in json.loads(outcome.out)["rows"]:
        assert row["cost"] == pytest.approx(row["error"])


def test_rare_classes_may_be_left_out(prudent, table_file):
    rows = "".join(f"{i},{i * i % 7},{'uv'[i % 2]}\n" for i in range(40))
    path = table_file("a,b,y\n" + rows + "1,1,w\n2,3,w\n")
    outcome = prudent(
        *("compare", path, "--target", "y", *ONE_BASELINE, "--min-class-rows", "5"),
        *("--promise", "none"),
    )
    assert outcome.code == 0
    assert "1 of 3 classes have fewer than 5 rows and are left out: 'w'" in outcome.err


def test_rows_handed_over_are_shown_only_where_asked_for(prudent, tmp_path):
    path = tmp_path / "report.html"
    asked = (
        *("compare", "breast_cancer", "--methods", "minimax", "--baselines", "lda"),
        *("--no-best", "--promise", "error <= 5%", "--report", str(path), "--quiet"),
    )
    prudent(*asked)
    assert "Some rows that" not in path.read_text(encoding="utf-8")
    prudent(*asked, "--examples", "--print-all")
    page = path.read_text(encoding="utf-8")
    assert "Some rows that lda hands over" in page
    assert "<details>" not in page
    assert "--examples" not in page.split("What was run")[1]


@pytest.mark.parametrize("option", ["--examples", "--print-all"])
def test_options_of_the_report_need_one(prudent, option):
    outcome = prudent("compare", "iris", option)
    assert outcome.code == 2
    assert f"{option} is about the report: give --report FILE, too." in outcome.err
