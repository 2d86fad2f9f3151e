"""Errors nobody planned for still end in one line and a code."""

from __future__ import annotations

import subprocess
import sys

import pytest

from prudent.cli import main


@pytest.fixture
def failing(monkeypatch):
    def fail_with(error: BaseException) -> None:
        def read(*_args, **_kwargs):
            raise error

        monkeypatch.setattr("prudent.io.reader.open_table", read)

    return fail_with


def test_memory_is_a_limit(prudent, failing):
    failing(MemoryError())
    outcome = prudent("describe", "iris")
    assert outcome.code == 6
    assert outcome.err.startswith("prudent: error: out of memory. Try --sample")


def test_surprise_is_one_line_that_names_debug(prudent, failing):
    failing(RuntimeError("first line.\nsecond line."))
    outcome = prudent("describe", "iris")
    assert outcome.code == 5
    assert outcome.err == (
        "prudent: error: RuntimeError: first line. second line. "
        "Run again with --debug\n"
    )


@pytest.mark.parametrize(
    "arguments", [["--debug", "describe", "iris"], ["describe", "iris", "--debug"]]
)
def test_debug_shows_the_traceback(failing, arguments):
    failing(RuntimeError("surprise"))
    with pytest.raises(RuntimeError, match="surprise"):
        main(arguments)


def test_interruption_has_its_code(prudent, failing):
    failing(KeyboardInterrupt())
    outcome = prudent("describe", "iris")
    assert outcome.code == 130
    assert outcome.err == "prudent: error: interrupted\n"


@pytest.mark.parametrize("arguments", [["datasets"], ["describe", "iris"]])
def test_reader_that_leaves_ends_the_command_quietly(arguments):
    with subprocess.Popen(
        [sys.executable, "-m", "prudent", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        process.stdout.close()
        assert process.wait() == 1
        assert process.stderr.read() == b""
