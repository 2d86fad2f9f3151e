"""Errors nobody planned for still end in one line and a code."""

from __future__ import annotations

import subprocess
import sys
import warnings

import pytest


@pytest.fixture
def failing(monkeypatch):
    def fail_with(error: BaseException) -> None:
        def read(*_args, **_kwargs):
            raise error

        monkeypatch.setattr("prudent.io.reader.open_table", read)

    return fail_with


@pytest.mark.parametrize(
    ("sentence", "told"),
    [
        ("No such option '--powr'.", "No such option '--powr'. Try"),
        ("Did you mean '--power'?", "Did you mean '--power'? Try"),
        ("Missing argument", "Missing argument. Try"),
    ],
)
def test_a_usage_error_ends_once(prudent, failing, sentence, told):
    error = RuntimeError()
    error.format_message = lambda: sentence
    failing(error)
    outcome = prudent("describe", "iris")
    assert outcome.code == 2
    assert outcome.err == f"prudent: error: {told} prudent describe --help\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ("--drop", "a", "--drop", "b"),
            "--drop is given twice: give what it takes in",
        ),
        (("--seed", "1", "--seed=2"), "--seed is given twice: give it once"),
        (("-o", "other"), "-o/--output is given twice"),
    ],
)
def test_a_value_given_twice_is_refused(prudent, tmp_path, arguments, says):
    fit = ("fit", "iris", "--method", "lda", "-o", tmp_path / "m", *arguments)
    outcome = prudent(*fit)
    assert outcome.code == 2
    assert says in outcome.err
    assert not (tmp_path / "m").exists()


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
def test_debug_shows_the_traceback(prudent, failing, arguments):
    failing(RuntimeError("surprise"))
    outcome = prudent(*arguments)
    assert outcome.code == 5
    assert "Traceback" in outcome.err
    assert "RuntimeError: surprise" in outcome.err


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


def test_debug_shows_the_traceback_and_keeps_the_code(prudent, tmp_path):
    plain = prudent("describe", tmp_path / "absent.csv")
    debug = prudent("describe", tmp_path / "absent.csv", "--debug")
    assert plain.code == debug.code == 3
    assert "Traceback" in debug.err
    assert debug.err.endswith(plain.err)


def test_very_long_path_is_cut(prudent):
    outcome = prudent("describe", "a" * 5000)
    assert outcome.code == 3
    assert "a path of 5000 characters" in outcome.err
    assert len(outcome.err) < 300


def test_parquet_that_is_none_is_named(prudent, table_file):
    outcome = prudent("describe", table_file(b"\x00\xff\x1b" * 40, "t.parquet"))
    assert outcome.code == 3
    assert "cannot be read as parquet: it does not begin as one" in outcome.err


def test_misspelt_bundled_name_is_corrected(prudent):
    outcome = prudent("describe", "breast_cancr")
    assert outcome.code == 3
    assert "Similar here: breast_cancer" in outcome.err


def test_warnings_of_other_libraries_are_notes_said_once(prudent, monkeypatch):
    from prudent.cli import describe

    def warn():
        for _ in range(3):
            warnings.warn("an odd\nlevel", UserWarning, stacklevel=1)
        return 0

    monkeypatch.setattr(describe, "datasets", warn)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        outcome = prudent("datasets")
    assert outcome.code == 0
    assert outcome.err == "note: an odd level\n"
