"""Commands on scores and rules as processes of their own: messages, codes, speed."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from cli.test_promise import FILES, SCORES, UNSEEN, changed, table, with_gap, write

COVERAGE = ["--promise", "coverage >= 90%"]
JUDGE, VENDOR = FILES["judge"][0], FILES["vendor"][0]
ERROR = ["--promise", "error <= 5%"]


def rare():
    """Three classes, of one of which six rows are there."""
    columns = table(200) | {"p_eel": np.linspace(0, 0.1, 200).tolist()}
    columns["y"][:6] = ["eel"] * 6
    return columns


def sums():
    columns = table(60)
    columns["p_cat"][:7] = [0.2 * value for value in columns["p_cat"][:7]]
    return columns


def surest_wrong():
    columns = table(70)
    rank = np.argsort(-np.array(columns["confidence"]))
    columns["y"] = list(columns["verdict"])
    for row in rank[:4]:
        columns["y"][row] = "cat" if columns["verdict"][row] == "dog" else "dog"
    return columns


# name -> table, arguments, exit code, what is said on standard error
MESSAGES = {
    "unseen": (
        table(60),
        [*SCORES, *COVERAGE],
        2,
        "were these rows kept from all that made the scores (training, tuning, "
        'prompts, choice)? Say how: --unseen "..." (kept in the rule); else no promise '
        "holds",
    ),
    "gap": (
        with_gap(),
        [*SCORES, *COVERAGE, *UNSEEN],
        3,
        "line 19 has no number in 'p_cat': fill it, or --drop-missing; the promise is "
        "then about rows with scores",
    ),
    "label": (
        changed(y=["fish"] * 12 + ["cat"] * 24 + ["dog"] * 24),
        [*SCORES, *COVERAGE, *UNSEEN],
        3,
        "truth 'fish' (12 rows) has no score column; there are cat, dog",
    ),
    "one class": (
        changed(y=["cat"] * 60),
        [*SCORES, *COVERAGE, *UNSEEN],
        3,
        "all 60 rows are 'cat'",
    ),
    "constant": (
        changed(confidence=[0.9] * 60),
        [*JUDGE, *ERROR, *UNSEEN],
        3,
        "'confidence' is 0.9 in every row: use prudent certify",
    ),
    "repeated": (
        changed(id=[f"row {i % 46}" for i in range(60)]),
        [*SCORES, "--id", "id", *COVERAGE, *UNSEEN],
        3,
        "14 rows repeat an earlier one (lines 2 and 48): remove them, or give --groups",
    ),
    "few": (
        table(40, wrong=9.0),
        [*JUDGE, *ERROR, *UNSEEN],
        6,
        "'error <= 5%' needs 59 rows without an error, there are 40",
    ),
    "rare": (
        rare(),
        [
            *("--truth", "y", "--scores", "p_cat,p_dog,p_eel", *UNSEEN),
            *("--promise", "coverage >= 90% in every class"),
        ],
        6,
        "9 rows a class are needed, eel has 6; --allow-rare",
    ),
    "over-confident": (
        surest_wrong(),
        [*JUDGE, *ERROR, *UNSEEN],
        6,
        "no threshold keeps 'error <= 5%': 4 of the 59 surest rows are wrong, none "
        "may be",
    ),
    "sums": (
        sums(),
        [*SCORES, *COVERAGE, *UNSEEN],
        0,
        "note: 7 of 60 rows do not sum to one: used as scores",
    ),
    "perfect": (
        changed(y=table(60)["verdict"]),
        [*JUDGE, *ERROR, *UNSEEN],
        0,
        "note: no label is wrong: so look rows that were trained on",
    ),
}
# One of each exit code, and a note.
QUICK = ("unseen", "gap", "few", "perfect")


def child(*arguments):
    """A process of `prudent`, what it prints and its exit code."""
    return subprocess.run(
        [sys.executable, "-m", "prudent", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    "name",
    [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in MESSAGES],
)
def test_every_message_comes_out_of_a_process_with_its_code(name, tmp_path):
    columns, arguments, code, message = MESSAGES[name]
    data, rule = write(tmp_path / "scores.csv", columns), tmp_path / "rule.json"
    done = child("promise", data, *arguments, "-o", rule)
    assert done.returncode == code, done.stderr
    assert message in done.stderr
    assert rule.exists() == (code == 0)
    if code:
        assert done.stdout == ""
        errors = [line for line in done.stderr.splitlines() if "note:" not in line]
        assert len(errors) == 1


def test_a_file_that_is_no_rule_has_exit_code_four(tmp_path):
    data = write(tmp_path / "scores.csv", table())
    done = child("apply", tmp_path / "missing.json", data)
    assert done.returncode == 4, done.stderr
    assert "no rule in" in done.stderr


@pytest.mark.slow
def test_rows_that_made_a_rule_are_told(tmp_path):
    data = write(tmp_path / "scores.csv", table())
    rule = tmp_path / "rule.json"
    arguments = [*JUDGE, "--promise", "error <= 10%", *UNSEEN, "-o", rule]
    assert child("promise", data, *arguments).returncode == 0
    done = child("apply", rule, data, "-o", tmp_path / "answers.csv")
    assert done.returncode == 0
    assert f"note: {data} made this rule" in done.stderr


@pytest.mark.slow
def test_a_broken_promise_and_drift_have_codes(tmp_path):
    data, rule = write(tmp_path / "scores.csv", table()), tmp_path / "rule.json"
    arguments = [*JUDGE, "--promise", "error <= 10%", *UNSEEN, "-o", rule]
    assert child("promise", data, *arguments).returncode == 0
    wrong = table(200, seed=6)
    wrong["y"] = ["dog" if label == "cat" else "cat" for label in wrong["y"]]
    week = write(tmp_path / "week.csv", wrong)
    assert child("monitor", rule, "--data", week, "--truth", "y").returncode == 7
    drifted = table(300, seed=7, wrong=0.0)
    week = write(tmp_path / "drift.csv", drifted)
    done = child("monitor", rule, "--data", week, "--reference", data)
    assert done.returncode == 8, done.stdout + done.stderr


# Of this process alone: ru_maxrss would count that of its parent, too.
MEASURED = """
import sys
from prudent.cli import main
try:
    main(sys.argv[1:])
finally:
    status = open("/proc/self/status").read()
    print(int(status.split("VmHWM:")[1].split()[0]) / 1024, file=sys.stderr)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_apply_is_fast_and_its_memory_flat(tmp_path):
    data, rule = write(tmp_path / "scores.csv", table()), tmp_path / "rule.json"
    assert (
        child("promise", data, *SCORES, *COVERAGE, *UNSEEN, "-o", rule).returncode == 0
    )
    megabytes, seconds = {}, {}
    p = np.random.default_rng(0).random(400_000)
    for n_rows in (100_000, 400_000):
        new = tmp_path / "new.csv"
        lines = (f"{value!r},{1 - value!r}\n" for value in p[:n_rows].tolist())
        new.write_text("p_cat,p_dog\n" + "".join(lines))
        before = os.times()
        done = subprocess.run(
            [
                *(sys.executable, "-c", MEASURED, "apply", rule, new),
                *("-o", tmp_path / "answers.csv"),
            ],
            capture_output=True,
            text=True,
            check=True,
        )
        after = os.times()
        # Of the processor, start included: others may run beside the test.
        seconds[n_rows] = (
            after.children_user
            - before.children_user
            + after.children_system
            - before.children_system
        )
        megabytes[n_rows] = float(done.stderr)
    assert 60 * 400_000 / seconds[400_000] >= 1e6
    assert megabytes[400_000] <= 1.2 * megabytes[100_000]
