"""Tables in time order on the command line: `--time`."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

N = 900
NOTE = "the rows change with time (p = 0.005; most: dose, about 2025-08-"


def admissions(seed=0):
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(random.normal(size=(N, 3)), columns=["age", "dose", "size"])
    frame["out"] = np.where(frame["age"] + random.normal(size=N) > 0, "yes", "no")
    frame.loc[600:, "dose"] += 0.8
    frame.insert(0, "admitted", pd.date_range("2024-01-01", periods=N))
    frame["patient"] = np.arange(N) // 3
    return frame.sample(frac=1, random_state=0)


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = admissions()
    frame.to_csv("table.csv", index=False)
    return frame


FIT = ("fit", "table.csv", "--target", "out", "--method", "lda", "-o", "m")
PROMISE = ("--promise", "error <= 30%", "--drop", "patient")
SENTENCE = "population of the latest 270 rows (from 2025-09-22)."


def test_compare_goes_forward_and_its_next_command_runs(prudent, table):
    ran = prudent(
        *("compare", "table.csv", "--target", "out", *PROMISE, "--time", "admitted"),
        *("--methods", "conformal", "--baselines", "lda", "--report", "r.html"),
    )
    assert ran.code == 0, ran.err
    assert "900 rows × 3 features" in ran.out
    assert "5 folds forward in time, seed 0" in ran.out
    in_one_line = " ".join(ran.out.split())
    assert f"in time: {NOTE}" in in_one_line
    assert "Folds go forward in time" in Path("r.html").read_text()
    assert "about rows like the latest 270." in Path("r.html").read_text()
    (command,) = [line for line in ran.out.splitlines() if line.startswith("To use")]
    words = shlex.split(command.partition(":")[2])
    assert words[words.index("--time") + 1] == "admitted"
    again = [line for line in ran.out.splitlines() if line.startswith("reproduce")]
    assert "--time admitted" in again[0]
    fitted = prudent(*words[1:])
    assert fitted.code == 0, fitted.err
    assert SENTENCE in fitted.out
    assert "note: the rows change with time (p = 0.005; most: dose" in fitted.err


@pytest.mark.parametrize("dropped", [(), ("--drop", "patient")])
def test_without_a_promise_the_next_command_leaves_the_times_out(
    prudent, table, dropped
):
    table["admitted"] = (table["admitted"] - table["admitted"].min()).dt.days
    table.to_csv("table.csv", index=False)
    ran = prudent(
        *("compare", "table.csv", "--target", "out", "--promise", "none", *dropped),
        *("--time", "admitted", "--methods", "conformal", "--baselines", "lda"),
    )
    (command,) = [line for line in ran.out.splitlines() if line.startswith("To use")]
    fitted = prudent(*shlex.split(command.partition(":")[2])[1:])
    assert fitted.code == 0, fitted.err
    assert f"900 rows x {3 + (not dropped)} features" in fitted.out


def test_a_fit_holds_out_the_latest_rows_and_the_card_says_when(prudent, table):
    ran = prudent(*FIT, *PROMISE, "--time", "admitted")
    assert ran.code == 0, ran.err
    assert "lda on 900 rows x 3 features" in ran.out
    assert SENTENCE in ran.out
    assert prudent("card", "m", "-o", "card.json").code == 0
    card = json.loads(Path("card.json").read_text())
    assert card["for_whom"]["period"] == "from 2025-09-22: the latest 270 rows"
    assert any(SENTENCE in sentence for sentence in card["assumption"])
    assert prudent("card", "m", "-o", "card.md").code == 0
    assert "The period is from 2025-09-22" in Path("card.md").read_text()
    # New rows need no times.
    table.drop(columns="admitted").to_csv("new.csv", index=False)
    assert prudent("predict", "new.csv", "-m", "m", "-o", "answers.csv").code == 0


def test_numbers_texts_and_columns_of_dates_are_times(prudent, table):
    table.to_parquet("table.parquet")
    dated = prudent("fit", "table.parquet", *FIT[2:], *PROMISE, "--time", "admitted")
    assert SENTENCE in dated.out, dated.err
    table["admitted"] = (table["admitted"] - table["admitted"].min()).dt.days / 2
    table.to_csv("table.csv", index=False, sep=";", decimal=",")
    counted = prudent(*FIT, *PROMISE, "--time", "admitted", "--decimal", ",")
    assert "latest 270 rows (from 315)" in counted.out, counted.err


def test_groups_and_subgroups_go_with_time(prudent, table):
    groups = prudent(
        *FIT, *PROMISE[:2], "--time", "admitted", "--groups", "patient", "--seed", 1
    )
    assert "assuming the latest 90 groups (from 2025-09-24)" in groups.out, groups.err
    by = prudent(
        *(*FIT, "--promise", "coverage >= 80%", "--drop", "patient"),
        *("--time", "admitted", "--by", "age:0"),
    )
    assert "of the latest 270 rows (from 2025-09-22)" in by.out, by.err


def test_a_time_that_is_not_used_is_pointed_at(prudent, table):
    ran = prudent(*FIT, *PROMISE)
    assert (
        "column 'admitted' looks like a time: dropped (--time admitted, or "
        "--keep-identifiers)"
    ) in ran.err


@pytest.mark.parametrize(
    ("more", "message", "code"),
    [
        (("--time", "admited"), "no column 'admited'", 3),
        (("--time", "gaps"), "time: 3 missing values.", 3),
        (("--time", "site"), "time: 'a' is neither a number nor an ISO date", 3),
        (("--time", "same"), "time has one value.", 3),
    ],
)
def test_what_is_no_time_is_refused(prudent, table, more, message, code):
    table["gaps"] = table["admitted"].astype(str)
    table.loc[[3, 5, 7], "gaps"] = None
    table["site"], table["same"] = "a", 4
    table.to_csv("table.csv", index=False)
    refused = prudent(*FIT, *PROMISE, *more)
    assert message in refused.err
    compared = prudent("compare", "table.csv", "--target", "out", *PROMISE, *more)
    assert message in compared.err
    assert refused.code == compared.code == code


def test_what_time_does_not_go_with(prudent, table):
    in_time = ("--time", "admitted")
    for arguments, message in [
        ((*FIT, *in_time), "give --promise, too"),
        ((*FIT[:5], "low-density", "-o", "m", "--normal", "yes", *in_time),
         "--time is not for detectors"),
        (("compare", "table.csv", "--target", "out", *in_time, "--repeats", 2),
         "folds that go forward in --time are there once, got --repeats 2"),
    ]:  # fmt: skip
        refused = prudent(*arguments)
        assert refused.code == 2
        assert message in refused.err
