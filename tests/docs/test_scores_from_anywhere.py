"""All commands of the page on scores from anywhere run, with the exit codes shown."""

from __future__ import annotations

import csv
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
    assert n_commands == 14
    assert f"{names['person']} of them" in PAGE.read_text(encoding="utf-8")
    with Path("species.csv").open(newline="") as stream:
        sets = {row["set"] for row in csv.DictReader(stream)}
    assert {"setosa", "versicolor", "virginica"} < sets
