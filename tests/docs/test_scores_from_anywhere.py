"""All commands of the page on scores from anywhere run, with the exit codes shown."""

from __future__ import annotations

import csv
import random
import re
import shlex
import textwrap
from pathlib import Path

import pytest

from prudent.cli import main

PAGE = Path(__file__).parents[2] / "docs" / "scores_from_anywhere.rst"
BLOCK = re.compile(r"\.\. code-block:: (\w+)\n\n((?:(?:   .*)?\n)+)")


def run(words, capsys):
    with pytest.raises(SystemExit) as end:
        main(words)
    return int(end.value.code), capsys.readouterr()


def test_the_page_runs_from_its_first_line_to_its_last(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    n_commands = 0
    for language, indented in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        text = textwrap.dedent(indented)
        if language == "python":
            exec(text, names)
        if language != "console":
            continue
        commands = text.strip().splitlines()
        while commands:
            line = commands.pop(0)
            code, printed = run(shlex.split(line.removeprefix("$ "))[1:], capsys)
            n_commands += 1
            expected = 0
            if commands[:1] == ["$ echo $?"]:
                expected = int(commands[1])
                del commands[:2]
            assert code == expected, (line, printed.err)
            while commands and not commands[0].startswith("$"):
                assert commands.pop(0) in printed.err
    assert n_commands == 17
    assert f"{names['person']} of them" in PAGE.read_text(encoding="utf-8")
    with Path("species.csv").open(newline="") as stream:
        sets = {row["set"] for row in csv.DictReader(stream)}
    assert {"setosa", "versicolor", "virginica"} < sets


def test_a_stranger_gets_from_the_readme_to_a_watched_week(
    tmp_path, monkeypatch, capsys
):
    """Its commands as they stand there, with tables of the columns that they name."""
    readme = (PAGE.parents[1] / "README.md").read_text(encoding="utf-8")
    section = readme.split("## A promise for any model's scores")[1].split("\n## ")[0]
    block = re.search(r"```console\n(.*?)```", section, re.DOTALL)
    lines = block[1].replace("\\\n", " ").strip().splitlines()
    commands = [shlex.split(line.removeprefix("$ "), comments=True) for line in lines]
    assert [words[1] for words in commands] == [
        "promise",
        "apply",
        "certify",
        "monitor",
    ]
    monkeypatch.chdir(tmp_path)
    drawn = random.Random(0)
    for name, n in (("scores", 400), ("new", 500), ("fresh", 300), ("week", 120)):
        with Path(f"{name}.csv").open("w", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(["label", "verdict", "confidence"])
            for _ in range(n):
                label, doubt = drawn.choice(["good", "bad"]), drawn.random() ** 3
                wrong = drawn.random() < 0.6 * doubt
                other = "bad" if label == "good" else "good"
                sure = round(1 - doubt / 2, 3)
                writer.writerow([label, other if wrong else label, sure])
    printed = {}
    for words in commands:
        code, printed[words[1]] = run(words[1:], capsys)
        assert code == 0, (words, printed[words[1]].err)
    assert "at most 0.1 with confidence 0.95" in printed["promise"].out
    assert "rows): kept" in printed["certify"].out
    assert "consistent" in printed["monitor"].out
    with Path("answers.csv").open(newline="") as stream:
        answered = [row["answered"] for row in csv.DictReader(stream)]
    assert 0 < answered.count("True") < len(answered) == 500
