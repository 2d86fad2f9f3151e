"""A command that is killed at any moment leaves files as they were, or whole ones."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

KILLED = Path(__file__).with_name("killed.py")
PROMISE = ("--promise", "error <= 20%")
# The digest of no bytes: an output is opened for a moment, to see that it can be.
NOTHING = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def outcomes(folder, *command):
    """Files after a kill before each act on them, and those of the whole run."""
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", KILLED, folder, *map(str, command)],
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    return [json.loads(line) for line in ended.stdout.splitlines()]


COMMANDS = {
    "model.prudent": (
        *("fit", "rows.csv", "--target", "y", "--method", "qda", *PROMISE, "-o"),
    ),
    "answers.csv": ("predict", "rows.csv", "-m", "fitted.prudent", "-o"),
    "certificate.json": (
        *("certify", "rows.csv", "-m", "fitted.prudent", "--target", "y", "--json"),
    ),
    "card.html": ("card", "fitted.prudent", "-o"),
    "state.json": (
        *("monitor", "fitted.prudent", "--data", "rows.csv", "--target", "y"),
        "--state",
    ),
    "report.html": (
        *("compare", "rows.csv", "--target", "y", "--methods", "lda"),
        *("--no-best", "--quiet", "--report"),
    ),
}


LONG = ("card.html", "report.html")  # they import what draws


def marks(name, exists):
    """An old file is the harder case; without one only once in a while."""
    return [pytest.mark.slow] if name in LONG or not exists else []


CASES = [
    pytest.param(name, exists, marks=marks(name, exists))
    for name in COMMANDS
    for exists in (True, False)
]


@pytest.mark.parametrize(("written", "exists"), CASES)
def test_a_kill_leaves_the_old_file_or_the_new_one(prudent, tmp_path, written, exists):
    command = COMMANDS[written]
    inputs = tmp_path / "inputs"
    inputs.mkdir()
    rows = [f"{i % 7 - 8 * (i % 2)},{i % 5},{'uv'[i % 2]}" for i in range(400)]
    (inputs / "rows.csv").write_text("\n".join(["a,b,y", *rows]))
    fit = ("fit", inputs / "rows.csv", "--target", "y", "--method", "lda", *PROMISE)
    assert prudent(*fit, "-o", inputs / "fitted.prudent").code == 0
    own = {"rows.csv", "fitted.prudent"}
    arguments = [inputs / word if word in own else word for word in command]
    folder = tmp_path / "outputs"
    folder.mkdir()
    target = folder / written
    if command[0] == "monitor" and exists:
        assert prudent(*arguments, target).code == 0
        arguments.insert(1, "--again")
    elif exists:
        target.write_text("what was there before")
    *killed, whole = outcomes(folder, *arguments, target)
    assert (whole["code"], whole["act"]) == (0, "")
    assert set(whole["files"]) == {written}
    assert len(killed) >= 3
    assert {run["code"] for run in killed} == {-9}
    kept = killed[0]["files"]
    assert set(kept) == ({written} if exists else set())
    for run in killed:
        # What was not finished has a name of its own, and is written anew next time.
        parts = {name for name in run["files"] if name.endswith(".part")}
        left = {name: run["files"][name] for name in set(run["files"]) - parts}
        as_before = left == kept or (not exists and left == {written: NOTHING})
        assert as_before or (set(left) == {written} and not parts), run["act"]
        assert as_before or left[written] != NOTHING, run["act"]
