"""Tables on a terminal and elsewhere."""

from __future__ import annotations

import sys

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
