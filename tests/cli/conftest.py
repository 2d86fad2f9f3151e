"""Run the command line inside the test process."""

from __future__ import annotations

import io
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from prudent.cli import main


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


@pytest.fixture
def prudent(capsys, monkeypatch):
    """Call `prudent *arguments`; returns the exit code, stdout and stderr."""
    monkeypatch.delenv("COLUMNS", raising=False)  # else the width of the output

    def run(*arguments: object, stdin: bytes = b"") -> Outcome:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return Outcome(int(end.value.code), printed.out, printed.err)

    return run


@pytest.fixture
def table_file(tmp_path):
    """Write a table and return its path."""

    def write(content: str | bytes, name: str = "table.csv"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


@pytest.fixture
def golden():
    """Compare output with the file of that name, which shows what users see."""

    def check(name: str, printed: str) -> None:
        path = Path(__file__).parent / "golden" / name
        assert printed == path.read_text(encoding="utf-8")

    return check
