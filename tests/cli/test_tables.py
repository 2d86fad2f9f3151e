"""Tables on a terminal and elsewhere."""

from __future__ import annotations

import sys

import pytest

from prudent.cli.output import print_table

ROWS = [["[red]", 1.5], ["<b>", None]]


def test_plain_table_is_padded_columns_without_trailing_blanks(capsys):
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


def test_table_without_rows_is_its_header(capsys):
    print_table(["name", "figure"], [])
    assert capsys.readouterr().out == "name  figure\n"
