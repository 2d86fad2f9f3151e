"""`detect`, `game`, `describe`, `datasets`, shell completion."""

from __future__ import annotations

import csv
import hashlib
import json
import re

import numpy as np
import pytest

from prudent.adversarial import RejectionGame
from prudent.cli.app import COMMANDS
from prudent.cli.game import DEMO

LOW_DENSITY = ("--method", "low-density")


def test_datasets_lists_sizes_and_licences(prudent):
    outcome = prudent("datasets")
    names = [line.split()[0] for line in outcome.out.splitlines()[1:]]
    assert outcome.code == 0
    assert names == ["breast_cancer", "digits", "iris", "wine"]
    assert "CC BY 4.0" in outcome.out


def test_datasets_prints_first_rows(prudent):
    lines = prudent("datasets", "iris").out.splitlines()
    assert lines[0].endswith(",species")
    assert lines[1] == "5.1,3.5,1.4,0.2,setosa"
    assert len(lines) == 6


def test_unknown_dataset_is_a_usage_error(prudent):
    outcome = prudent("datasets", "mnist")
    assert outcome.code == 2
    assert "no bundled table 'mnist'" in outcome.err


def test_describe_is_golden(prudent, golden):
    golden("describe_iris.txt", prudent("describe", "iris").out)


def test_game_is_golden(prudent, golden):
    outcome = prudent("game", "--demo")
    assert outcome.code == 0
    golden("game_demo.txt", outcome.out)


def test_demo_shows_a_rule_that_gains_and_a_game_without_gain_says_so(prudent):
    assert ", 2.96 times as often as ordinary events" in prudent("game", "--demo").out
    outcome = prudent("game", "--demo", "--divergence", "1")
    assert "intruder at least 1 bit away" in outcome.out
    assert "at least 0.050000, no more than a coin does" in outcome.out
    outcome = prudent("game", "--demo", "--false-alarm", "0")
    assert outcome.code == 0, outcome.err
    assert "at least 0.000000, no more than a coin does" in outcome.out


def test_game_file_is_read(prudent, table_file):
    path = table_file("event,probability\n" + "".join(f"e,{p}\n" for p in DEMO))
    arguments = ("--delta", "0.1", "--divergence", "3", "--strategy", "hard")
    outcome = prudent("game", path, *arguments)
    game = RejectionGame(false_alarm_rate=0.1, divergence_bound=3, strategy="hard")
    assert f"at least {game.fit(DEMO).rejection_rate_:.6f}" in outcome.out


@pytest.mark.parametrize(
    ("content", "code", "words"),
    [
        ("event,p\n1,0.5\n", 3, "no column 'probability'"),
        ("event,probability\n1,x\n", 3, "column 'probability' is text: 'x' at line 2"),
        ("event,probability\n1,\n2,1\n", 3, "has missing values"),
        ("event,probability\n1,0.2\n2,0.2\n", 3, "0.4"),
        ("event,probability\n1,0.5\n2,0.5\n", 3, "divergence"),
    ],
)
def test_bad_game_is_refused(prudent, table_file, content, code, words):
    outcome = prudent("game", table_file(content), "--divergence", "3")
    assert outcome.code == code
    assert words in outcome.err
    assert outcome.err.count("\n") == 1


@pytest.mark.parametrize("arguments", [(), ("game.csv", "--demo")])
def test_game_takes_a_file_or_the_demo(prudent, arguments):
    outcome = prudent("game", *arguments)
    assert outcome.code == 2
    assert "give a GAMEFILE or --demo, one of the two" in outcome.err


def test_game_report_names_value_and_rule(prudent, tmp_path):
    report = tmp_path / "game.html"
    prudent("game", "--demo", "--report", report)
    page = report.read_text(encoding="utf-8")
    assert "Value and certificate" in page
    assert "://" not in page


def test_detector_states_promise_and_measurement(prudent):
    outcome = prudent("detect", "iris", "--normal", "setosa", *LOW_DENSITY)
    _, header, line, own = outcome.out.splitlines()
    assert outcome.code == 0
    assert header.split()[:2] == ["normal", "rows"]
    assert line.startswith("50 ")
    assert "false alarm rate ≤ 0.0" in line
    assert "100.0%" in line or "99." in line
    assert own.startswith("The false-alarm rate of the detector itself")


def test_detector_writes_a_line_per_row(prudent, tmp_path):
    target = tmp_path / "out.csv"
    prudent("detect", "iris", "--normal", "setosa", *LOW_DENSITY, "-o", target)
    rows = list(csv.DictReader(target.read_text(encoding="utf-8").splitlines()))
    assert [int(row["row"]) for row in rows] == list(range(1, 151))
    flagged = [row["outlier"] == "1" for row in rows]
    assert flagged == [float(row["score"]) < 0 for row in rows]
    assert sum(flagged[50:]) > 90


def test_detector_without_target_learns_all_rows(prudent, table_file):
    rows = "".join(f"{i % 7},{i * i % 11}\n" for i in range(60))
    outcome = prudent("detect", table_file("a,b\n" + rows), *LOW_DENSITY)
    assert outcome.code == 0
    assert "other rows" not in outcome.out


def test_detector_report_holds_no_rows(prudent, tmp_path):
    report = tmp_path / "r.html"
    arguments = ("--normal", "setosa", *LOW_DENSITY, "--report", report)
    assert prudent("detect", "iris", *arguments).code == 0
    page = report.read_text(encoding="utf-8")
    assert "Promise and measurement" in page
    assert len(page) < 100_000


def detection_card(report):
    page = report.read_text(encoding="utf-8").replace("\xa0", " ")
    return page, page.split('id="card"')[1].split("<nav")[0]


def test_detector_report_holds_the_command_that_comes_next(prudent, tmp_path):
    report, model = tmp_path / "r.html", tmp_path / "d.prudent"
    arguments = ("detect", "iris", "--normal", "setosa", "--report", report)
    outcome = prudent(*arguments)
    command = "prudent detect iris --normal setosa --model-out detector.prudent"
    assert f"to keep it, and watch it: {command}\n" in outcome.err
    _, card = detection_card(report)
    assert command in re.sub("<.*?>", "", card)
    assert prudent(*arguments, "--model-out", model).code == 0
    _, card = detection_card(report)
    assert f"prudent predict new.csv -m {model}" in re.sub("<.*?>", "", card)


def test_detector_names_its_limit_in_one_precision_and_why_it_is_not_the_one_asked(
    prudent, tmp_path
):
    report = tmp_path / "r.html"
    arguments = ("detect", "iris", "--normal", "setosa", "--report", report)
    outcome = prudent(*arguments, "--false-alarm", "0.07", "--average")
    # Ranks of 40 training rows: 2 of 41 are 0.04878, and at most 0.049.
    assert "false alarm rate ≤ 0.049 " in outcome.out
    page, card = detection_card(report)
    reason = "(limit 4.9 %, not the 7 % asked for: a cut at a rank promises k of m + 1"
    assert reason in card
    assert "The false alarm rate is at most 0.049, on average" in page
    assert prudent(*arguments, "--false-alarm", "0.04878048780487805").code == 0
    assert "(limit 4.9 %)" in detection_card(report)[1]


@pytest.mark.parametrize(("seed", "is_broken"), [(20, True), (0, False)])
def test_detector_whose_promise_is_broken_says_what_that_may_be(
    prudent, tmp_path, seed, is_broken
):
    report = tmp_path / "r.html"
    outcome = prudent(
        *("detect", "wine", "--normal", "1", "--seed", seed, "--report", report),
        *("--false-alarm", "0.1"),
    )
    assert outcome.code == 0
    assert ("  broken  " in outcome.out) == is_broken
    said = "Broken: if the promise is true, so many false alarms come by chance"
    assert (said in outcome.out) == is_broken
    assert (said in detection_card(report)[1]) == is_broken


def test_title_of_a_detector_has_the_name_of_the_table_without_its_folders(
    prudent, tmp_path
):
    folder = tmp_path / ("deep" * 20)
    folder.mkdir()
    rows = "".join(f"{i % 7},{i * i % 11}\n" for i in range(60))
    (folder / "table.csv").write_text("a,b\n" + rows)
    report = tmp_path / "r.html"
    assert prudent("detect", folder / "table.csv", "--report", report).code == 0
    assert (
        "<h1>prudent: table.csv: conformal detector</h1>" in detection_card(report)[0]
    )


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("iris",), 2, "--normal is missing. Labels of species: setosa"),
        (("iris", "--normal", "rose"), 3, "no row has 'species' = 'rose'"),
        (("FILE", "--normal", "u"), 2, "--normal needs --target"),
        (("FILE", "--target", "y", "--normal", "u"), 3, "2 normal rows: too few"),
        (("iris", "--normal", "setosa", "--false-alarm", "0"), 2, "--false-alarm"),
        (("iris", "--normal", "setosa", "--false-alarm", "2"), 2, "--false-alarm"),
    ],
)
def test_wrong_detection_is_refused(prudent, table_file, arguments, code, words):
    path = table_file("a,b,y\n1,2,u\n3,1,v\n2,2,u\n")
    outcome = prudent("detect", *(path if a == "FILE" else a for a in arguments))
    assert outcome.code == code
    assert words in outcome.err


def test_an_empty_cell_is_no_label_of_normal_rows(prudent, table_file):
    path = table_file("a,y\n1,\n2,u\n3,v\n")
    outcome = prudent("detect", path, "--target", "y")
    assert "--normal is missing. Labels of y: u, v." in outcome.err
    outcome = prudent("detect", path, "--target", "y", "--normal", "")
    assert outcome.code == 3
    assert "no row has 'y' = ''. Labels: u, v" in outcome.err


def test_completion_script_is_offered(prudent, monkeypatch):
    monkeypatch.setenv("_PRUDENT_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "prudent des")
    monkeypatch.setenv("COMP_CWORD", "1")
    assert prudent().out.split() == ["describe"]


def test_completion_knows_the_options_of_a_command(prudent, monkeypatch):
    monkeypatch.setenv("_PRUDENT_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "prudent detect --nor")
    monkeypatch.setenv("COMP_CWORD", "2")
    assert prudent().out.split() == ["--normal"]


def test_help_lists_every_command(prudent):
    printed = prudent("--help").out
    listed = [
        line.split()[0] for line in printed.partition("Commands:\n")[2].splitlines()
    ]
    assert listed == [*COMMANDS]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_its_own_help(prudent, command):
    outcome = prudent(command, "--help")
    assert outcome.code == 0
    assert f"Usage: prudent {command} [OPTIONS]" in outcome.out


def test_game_of_one_column_is_read(prudent, table_file):
    outcome = prudent("game", table_file("probability\n0.25\n0.25\n0.5\n"))
    assert outcome.code == 0
    assert outcome.out.startswith("3 events")


def test_digest_of_standard_input_is_that_of_its_bytes(prudent, tmp_path):
    """`sha256sum` of the file says the same, and so does the report of the file."""
    content = "a,b,y\n" + "".join(f"{i},{i * i % 7},{i % 2}\n" for i in range(40))
    path = tmp_path / "t.csv"
    path.write_text(content)
    options = ("--target", "y", "--methods", "minimax", "--baselines", "lda")
    options = (*options, "--promise", "none", "--json", "-", "--quiet")
    digests = [
        json.loads(outcome.out)["data"]["sha256"]
        for outcome in (
            prudent("compare", path, *options),
            prudent("compare", "-", *options, stdin=content.encode()),
        )
    ]
    assert digests == [hashlib.sha256(content.encode()).hexdigest()] * 2


def test_describe_leaves_missing_cells_and_words_out_of_the_figures(
    prudent, table_file
):
    path = table_file("a,b,word\n1,2,x\n,4,y\n3,6,x\n4,,x\n")
    outcome = prudent("describe", path)
    assert outcome.code == 0
    lines = [line.split() for line in outcome.out.splitlines()]
    assert ["a", "2.66667", "1.24722", "1", "4", "3"] in lines
    assert ["b", "4", "1.63299", "2", "6", "3"] in lines
    assert ["word", "–", "–", "–", "–", "2"] in lines
    assert "nan" not in outcome.out


@pytest.mark.parametrize(
    ("first", "n_normal", "needed"), [("0.5", 18, 19), ("", 31, 37)]
)
def test_a_detector_of_too_few_rows_says_how_many_it_takes(
    prudent, table_file, tmp_path, first, n_normal, needed
):
    """With gaps to fill, half of the rows are held out; a gap is in the first row."""
    random = np.random.default_rng(0)
    rows = [f"{a:.4f},{b:.4f},ok" for a, b in random.normal(size=(n_normal - 1, 2))]
    rows += [f"{9 + a:.4f},{9 + b:.4f},bad" for a, b in random.normal(size=(20, 2))]
    table = table_file("\n".join(["a,b,k", f"{first},0.5,ok", *rows]), "t.csv")
    command = ("detect", table, "--target", "k", "--normal", "ok")
    outcome = prudent(*command)
    said = " ".join(outcome.out.split())
    assert "It raises no alarm at all" in said
    assert f"Give about {needed} normal rows" in said
    assert "to keep it" not in outcome.err
    kept = prudent(*command, "--model-out", tmp_path / "d.prudent")
    assert "may exceed it" not in kept.out
