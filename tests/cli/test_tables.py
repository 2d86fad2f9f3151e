"""Tables on a terminal and elsewhere."""

from __future__ import annotations

import sys
from collections import Counter

import pytest

from prudent.cli.output import print_table

ROWS = [["[red]", 1.5], ["<b>", None]]


def test_plain_table_is_padded_columns_without_trailing_blanks(capsys, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    print_table(["name", "figure"], ROWS)
    assert capsys.readouterr().out == "name   figure\n[red]  1.5\n<b>    None\n"


@pytest.mark.parametrize("colour", [True, False])
def test_terminal_table_shows_texts_as_they_are(capsys, monkeypatch, colour):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm-256color")
    if not colour:
        monkeypatch.setenv("NO_COLOR", "1")
    print_table(["name", "figure"], ROWS)
    printed = capsys.readouterr().out
    assert "[red]" in printed
    assert "<b>" in printed
    assert "\x1b[3" not in printed  # no colour is set, with or without NO_COLOR
    assert "─" in printed


@pytest.mark.parametrize("width", [60, 80, 100])
@pytest.mark.parametrize(
    "command",
    [
        ("detect", "iris", "--normal", "setosa", "--quiet"),
        ("audit", "--method", "minimax", "--laws", "line,rare categories",
         "--sizes", "20", "--budget", "2"),
        ("game", "--demo"),
        ("describe", "iris"),
        ("datasets",),
    ],
    ids=lambda command: command[0],
)  # fmt: skip
def test_no_word_or_number_of_a_cell_is_broken(prudent, monkeypatch, command, width):
    def table(columns):
        monkeypatch.setenv("COLUMNS", str(columns))
        lines = prudent(*command).out.splitlines()
        # Between the empty lines before and after it; what is left out stands below.
        blank = [i for i, line in enumerate(lines) if not line.strip()]
        below = " ".join(lines[blank[-1] :])
        return lines[blank[0] + 1 : blank[-1]], below

    def words(lines):
        return Counter(" ".join(lines).replace("─", "").split())

    wide, _ = table(300)
    narrow, below = table(width)
    assert max(map(len, narrow)) <= width
    assert words(narrow) <= words(wide)
    if words(narrow) != words(wide):
        assert "Left out for want of width: " in below


@pytest.mark.parametrize(("width", "is_shown"), [(41, True), (40, False)])
def test_columns_go_in_the_order_of_their_use(capsys, monkeypatch, width, is_shown):
    monkeypatch.setenv("COLUMNS", str(width))
    heads = ["a name of three", "unneeded", "measured"]
    rows = [["x" * 13, "1 234 567", "0.053 (0.020–0.112)"]]
    print_table(heads, rows, dispensable=["unneeded"])
    printed = capsys.readouterr().out
    assert "(0.020–0.112)" in printed
    assert ("1 234 567" in printed) == is_shown
    left_out = "Left out for want of width: unneeded; a wider terminal shows them."
    assert (left_out in " ".join(printed.split())) != is_shown


def test_a_name_wider_than_the_terminal_stays_whole(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    print_table(["name", "figure"], [["x" * 40, "0.5"]])
    assert "x" * 40 + "  0.5" in capsys.readouterr().out


def test_table_without_rows_is_its_header(capsys, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    print_table(["name", "figure"], [])
    assert capsys.readouterr().out == "name  figure\n"


def test_the_last_column_is_the_target(prudent, table_file, tmp_path):
    rows = [f"{i % 5},{i % 7},{i % 2:02d}" for i in range(60)]
    path = table_file("\n".join(["x,z,y", *rows, "1,1,?"]) + "\n")
    outcome = prudent(
        *("compare", path, "--target", "last", "--missing", "drop-rows"),
        *("--methods", "minimax", "--baselines", "none", "--promise", "none"),
    )
    assert outcome.code == 0, outcome.err
    assert "'00' 30, '01' 30" in " ".join(outcome.out.split())  # as it is spelled
    assert f"reproduce: prudent compare {path} --target y" in outcome.out
    model = tmp_path / "m"
    fit = ("fit", path, "--target", "last", "--missing", "drop-rows", "--method", "lda")
    assert prudent(*fit, "-o", model).code == 0
    certified = prudent("certify", path, "-m", model, "--target", "last")
    assert "1 rows without a label are left out" in certified.err


def test_a_column_called_last_is_the_target(prudent, table_file):
    rows = [f"{i % 2},{i % 7},{i % 3}" for i in range(60)]
    path = table_file("\n".join(["last,z,y", *rows]) + "\n")
    outcome = prudent("describe", path, "--target", "last")
    assert "class (last)" in outcome.out
