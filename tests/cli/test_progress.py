"""Progress on stderr: one live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time

import pytest

from prudent.cli import output
from prudent.cli.output import Progress


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(output, "PLAIN_INTERVAL_S", 0.02)
    monkeypatch.setattr(output, "LIVE_INTERVAL_S", 0.02)


@pytest.mark.usefixtures("impatient")
def test_plain_line_names_method_and_fold_while_a_fit_runs(capsys):
    with Progress(["optimistic", "minimax"]) as shown:
        shown.update("minimax", 3, 5)
        time.sleep(0.2)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "2/2 minimax   fold 3/5   0." in printed.err
    assert "\r" not in printed.err
    assert "\x1b" not in printed.err


@pytest.mark.usefixtures("impatient")
def test_terminal_line_is_redrawn_and_taken_away(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with Progress(["minimax"]) as shown:
        shown.update("minimax", 1, 5)
        time.sleep(0.3)
    printed = capsys.readouterr().err
    assert "1/1 minimax   fold 1/5" in printed
    assert "\x1b[2K" in printed


@pytest.mark.usefixtures("impatient")
def test_quiet_says_nothing(capsys):
    with Progress(["minimax"], quiet=True) as shown:
        shown.update("minimax", 1, 5)
        time.sleep(0.1)
    assert capsys.readouterr().err == ""


def test_short_runs_print_no_plain_line(capsys):
    with Progress(["minimax"]) as shown:
        shown.update("minimax", 1, 5)
    assert capsys.readouterr().err == ""
