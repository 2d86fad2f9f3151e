"""Every way a file can be bad: the exit code and the words that tell what to do."""

from __future__ import annotations

import re
import shlex
import shutil

import pyarrow as pa
import pytest
from pyarrow import parquet

GOOD = "a,b,y\n1,2,0\n3,5,1\n2,1,0\n4,4,1\n5,7,0\n6,5,1\n"


def assert_refused(outcome, code: int, *words: str) -> None:
    """One line on stderr, nothing on stdout, the code, and the words."""
    assert outcome.code == code
    assert outcome.out == ""
    assert outcome.err.count("\n") == 1
    assert outcome.err.startswith("prudent: error: ")
    for word in words:
        assert word in outcome.err


# content, words; the target is y
DATA_ERRORS = {
    "empty file": (b"", ["file is empty"]),
    "blank lines only": (b"\n\n", ["file is empty"]),
    "header only": (b"a,b,y\n", ["no data rows below the header"]),
    "target missing": (
        b"a,b,Y\n1,2,0\n",
        ["no column 'y'. Columns: a, b, Y. Closest: 'Y'"],
    ),
    "duplicate header": (
        b"a,a,y\n1,2,0\n",
        ["column name 'a' appears 2 times (positions 1, 2). Rename one"],
    ),
    "no header": (b"1,2,0\n3,4,1\n", ["first line looks like data: use --no-header"]),
    "every row one field too many": (
        b"a,b,y\n1,2,0,9\n3,4,1,9\n",
        ["row 2 has 4 fields, header has 3"],
    ),
    "ragged row": (b"a,b,y\n1,2,0\n3,4\n", ["row 3 has 2 fields, header has 3"]),
    "ragged row after a quoted newline": (
        b'a,b,y\n1,"2\n3",0\n3,4\n',
        ["row 4 has 2 fields, header has 3"],
    ),
    "quote never closed": (b'a,b,y\n1,2,0\n3,"4,1\n', ["row 3 has 2 fields"]),
    "one column": (b"y\n0\n1\n", ["only one column found"]),
    "latin-1": (
        "ete\u0301?,b,y\n1,2,0\n".encode("latin-1", "replace").replace(b"?", b"\xe9"),
        ["not valid UTF-8 (line 1, column 'ete", "use --encoding latin-1"],
    ),
    "latin-1 in a later row": (
        b"a,b,y\n1,2,0\n3,4,\xe9t\xe9\n",
        ["not valid UTF-8 (line 3, column 'y')", "use --encoding latin-1"],
    ),
    "PNG": (b"\x89PNG\r\n\x1a\n\0\0", ["looks like a PNG file, not a table"]),
    "Excel": (
        b"PK\x03\x04\x14\0",
        ["looks like an Excel file, not a table", "export to CSV"],
    ),
    "NUL bytes": (b"a,b,y\n1,\0,0\n", ["looks like a binary file, not a table"]),
    "damaged gzip": (b"\x1f\x8b\x08\0\0\0\0\0\0\xff123", ["is damaged"]),
    "text column": (
        b"a,b,y\n1,2,0\n3,x,1\n",
        [
            "column 'b' is text: 'x' at line 3 (1 of 2 values is not a number)",
            "--categorical onehot",
        ],
    ),
    "text column of many words": (
        b"a,b,y\n" + b"".join(b"%d,w%d,%d\n" % (i, i % 30, i % 2) for i in range(40)),
        ["column 'b' is text: 'w0' at line 2 (40 of 40 values", "--drop b"],
    ),
    "identifier of text": (
        b"a,b,y\n" + b"".join(b"%d,w%d,%d\n" % (i, i, i % 2) for i in range(40)),
        ["looks like an identifier: use --drop b"],
    ),
    "decimal comma": (
        b"a;b;y\n1,5;2;0\n3,1;4;1\n",
        ["column 'a' is text: '1,5' at line 2", "Use --decimal ,"],
    ),
    "missing values": (
        b"a,b,y\n1,,0\n,4,1\n,NA,1\n",
        ["4 missing values in 2 columns (a: 2, b: 2). Use --missing fill or drop-rows"],
    ),
    "missing target": (
        b"a,b,y\n1,2,\n3,4,1\n5,1,\n6,1,0\n",
        ["2 rows have no target", "line 2", "--missing drop-rows"],
    ),
    "empty target": (b"a,b,y\n1,2,\n3,4,\n", ["target 'y' is empty in every row"]),
    "infinite value": (
        b"a,b,y\n1,inf,0\n3,-inf,1\n",
        ["column 'b' has 2 infinite values (first at line 2)"],
    ),
    "one class": (
        b"a,b,y\n1,2,0\n3,4,0\n",
        ["target 'y' has one value ('0'). To learn one class, use prudent detect"],
    ),
    "target of many numbers": (
        b"a,b,y\n" + b"".join(b"%d,%d,%d\n" % (i % 7, i % 5, i) for i in range(1234)),
        ["looks continuous (1 234 values): prudent classifies"],
    ),
    "target of fractions": (
        b"a,b,y\n1,2,0.5\n3,4,1.5\n",
        ["looks continuous (2 values): prudent classifies"],
    ),
    "every column constant": (
        b"a,b,y\n1,2,0\n1,2,1\n",
        ["every feature column is constant: a, b"],
    ),
}


@pytest.mark.parametrize("case", DATA_ERRORS)
@pytest.mark.parametrize("command", ["describe", "compare"])
def test_bad_table_is_named_with_its_remedy(prudent, table_file, case, command):
    content, words = DATA_ERRORS[case]
    path = table_file(content)
    strict = ("--categorical", "error", "--missing", "error")
    assert_refused(prudent(command, path, "--target", "y", *strict), 3, *words)


@pytest.mark.parametrize("case", DATA_ERRORS)
def test_bad_table_beyond_memory_is_named_with_the_same_words(
    prudent, table_file, monkeypatch, case
):
    content, words = DATA_ERRORS[case]
    path = table_file(content)
    monkeypatch.setattr("prudent.io.files.available_memory", lambda: 0)
    monkeypatch.setattr("prudent.io.delimited.PART_BYTES", 100)
    strict = ("--categorical", "error", "--missing", "error")
    assert_refused(prudent("describe", path, "--target", "y", *strict), 3, *words)


def test_wrong_delimiter_is_named(prudent, table_file):
    path = table_file("a;b;y\n1;2;0\n")
    outcome = prudent("describe", path, "--target", "y", "--delimiter", ",")
    words = "only one column found; is the delimiter ';'? use --delimiter ';'"
    assert_refused(outcome, 3, words)


def test_absent_file_names_a_similar_one(prudent, table_file, tmp_path):
    table_file(GOOD, "x2.csv")
    outcome = prudent("compare", tmp_path / "x.csv", "--target", "y")
    assert_refused(outcome, 3, "file not found: ", "x.csv. Similar here: x2.csv")


def test_glob_without_match_is_not_found(prudent, tmp_path):
    outcome = prudent("describe", tmp_path / "*.parquet")
    assert_refused(outcome, 3, "file not found: nothing matches")


def test_directory_without_parquet_is_refused(prudent, tmp_path):
    assert_refused(prudent("describe", tmp_path), 3, "is a directory without .parquet")


def test_unreadable_file_says_so(prudent, table_file, monkeypatch):
    path = table_file(GOOD)

    def refuse(*_args, **_kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(type(path), "open", refuse)
    assert_refused(prudent("describe", path), 3, "no permission to read")


def test_damaged_parquet_is_refused(prudent, table_file):
    outcome = prudent("describe", table_file(b"PAR1 and no more", "t.parquet"))
    assert_refused(outcome, 3, "cannot be read as parquet")


def test_parquet_row_is_counted_from_one(prudent, tmp_path):
    path = tmp_path / "t.parquet"
    columns = {"a": [1.0, 2.0], "b": ["1", "x"], "y": ["u", "v"]}
    parquet.write_table(pa.table(columns), path)
    outcome = prudent("describe", path, "--target", "y", "--categorical", "error")
    assert_refused(outcome, 3, "column 'b' is text: 'x' at row 2")


def test_parquet_of_two_equal_names_is_refused(prudent, tmp_path):
    path = tmp_path / "t.parquet"
    table = pa.table([[1.0], [2.0]], names=["a", "a"])
    parquet.write_table(table, path)
    assert_refused(prudent("describe", path), 3, "column name 'a' appears 2 times")


def test_a_different_word_in_every_row_is_an_identifier(prudent, table_file):
    rows = "".join(f"{i % 9},w{i},{i % 2}\n" for i in range(101))
    path = table_file("a,b,y\n" + rows)
    outcome = prudent("describe", path, "--target", "y")
    assert outcome.code == 0
    assert "101 rows x 1 features" in outcome.out
    assert "column 'b' has a different word in every row: dropped" in outcome.out
    kept = prudent("describe", path, "--target", "y", "--keep-identifiers")
    assert "101 rows x 2 features" in kept.out


def test_decimal_commas_are_not_taken_for_words(prudent, table_file):
    path = table_file("a;b;y\n1,5;2;0\n3,1;4;1\n")
    outcome = prudent("describe", path, "--target", "y")
    assert_refused(outcome, 3, "column 'a' is text: '1,5' at line 2", "--decimal ,")


def test_a_word_among_numbers_is_noted(prudent, table_file):
    path = table_file("a,b,y\n" + "1,2,u\n2,3,v\n" * 4 + "1,x,u\n")
    outcome = prudent("describe", path, "--target", "y")
    assert outcome.code == 0
    assert "'b' is taken for text: 'x' at line 10 (1 of 9 values is no number)" in (
        outcome.out
    )
    assert "; empty such cells where they stand for none" in outcome.out


def test_names_with_blanks_are_shown_as_a_shell_takes_them(prudent, table_file):
    rows = "".join(f"{n},{n % 7},{'uv'[n % 2]}\n" for n in range(1, 31))
    path = table_file(f"sample no,b c,y z\n{rows}")
    told = prudent("describe", path, "--target", "y z")
    assert "use --drop 'sample no' to leave it out" in told.out
    assert_refused(prudent("compare", path), 2, "Perhaps --target 'y z'")


def test_parquet_without_rows_is_refused(prudent, tmp_path):
    path = tmp_path / "t.parquet"
    parquet.write_table(pa.table({"a": pa.array([], pa.float64())}), path)
    assert_refused(prudent("describe", path), 3, "no data rows")


def test_missing_target_option_lists_columns_and_suggests_the_last(prudent, table_file):
    outcome = prudent("compare", table_file(GOOD))
    assert_refused(outcome, 2, "--target is missing. Columns: a, b, y", "--target y")


def test_class_of_one_row_is_named_and_ends_nothing(prudent, table_file):
    path = table_file(GOOD + "7,7,rare\n")
    outcome = prudent(
        *("compare", path, "--target", "y", "--methods", "minimax"),
        *("--baselines", "lda", "--promise", "none"),
    )
    assert outcome.code == 0
    assert "class 'rare' has 1 row" in outcome.err


def test_unwritable_report_is_refused_before_fitting(prudent, table_file, tmp_path):
    report = tmp_path / "absent" / "report.html"
    outcome = prudent("compare", table_file(GOOD), "--target", "y", "--report", report)
    assert_refused(outcome, 3, "cannot write", "report.html")


def test_full_disk_is_noticed_before_fitting(
    prudent, table_file, tmp_path, monkeypatch
):
    usage = type(shutil.disk_usage(tmp_path))(10**9, 10**9, 0)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage)
    outcome = prudent(
        "compare", table_file(GOOD), "--target", "y", "--report", tmp_path / "r.html"
    )
    assert_refused(outcome, 3, "cannot write", "the disk is full")


def test_unknown_columns_are_matched_by_name(prudent, table_file):
    outcome = prudent("describe", table_file(GOOD), "--target", "y", "--drop", "bb")
    assert_refused(outcome, 3, "no column 'bb'. Columns: a, b, y. Closest: 'b'")


def test_long_values_and_many_names_are_cut(prudent, table_file):
    names = [f"column_{j}" for j in range(18)]
    long = "x" * 500
    path = table_file(f"{','.join(names)}\n" + ",".join(["1"] * 17 + [long]) + "\n" * 2)
    outcome = prudent("describe", path, "--target", "column_0", "--drop", long)
    assert_refused(outcome, 3, "and 13 more")
    assert len(re.findall("x+", outcome.err)[0]) <= 64


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--delimiter", ";;", "--delimiter takes one character, got ';;'"),
        ("--decimal", "..", "--decimal takes one character"),
        ("--methods", "svm", "--methods takes some of optimistic"),
        ("--baselines", "svm", "--baselines takes some of majority, logistic, lda"),
        ("--sample", "1", "--sample takes a number of rows >= 2 or off"),
        ("--jobs", "0", "--jobs takes a number of processes"),
        ("--cv", "1", "--cv"),
        ("--cv", "x", "--cv"),
        ("--missing", "zero", "--missing"),
        ("--frobnicate", "1", "--frobnicate"),
    ],
)
def test_wrong_option_is_a_usage_error(prudent, table_file, option, value, words):
    outcome = prudent("compare", table_file(GOOD), "--target", "y", option, value)
    assert_refused(outcome, 2, words)


def test_unknown_encoding_is_refused(prudent, table_file):
    outcome = prudent("describe", table_file(GOOD), "--encoding", "klingon")
    assert_refused(outcome, 3, "unknown encoding 'klingon'")


def test_wrong_encoding_is_refused(prudent, table_file):
    path = table_file(b"a,b\n1,\xff\xfe\n")
    outcome = prudent("describe", path, "--encoding", "ascii")
    assert_refused(outcome, 3, "is not valid ascii")


def lines(head, row, n=40):
    return "\n".join([head, *(row(i) for i in range(n))]) + "\n"


# A file, what is typed at first, and the advice: the very words are typed then.
ADVICE = {
    "no header": ("1,2,0\n3,4,1\n", (), "--no-header"),
    "latin-1": ("a,b,y\n1,2,0\n3,4,\xe9\n", (), "--encoding latin-1"),
    "semicolons": ("a;b;y\n1;2;0\n3;4;1\n", ("--delimiter", ","), "--delimiter ';'"),
    "commas": ("a;b;y\n1,5;2;0\n3,1;4;1\n", (), "--decimal ,"),
    "gaps": (
        "a,b,y\n1,,0\n2,4,1\n3,5,0\n4,1,1\n",
        ("--missing", "error"),
        "--missing fill",
    ),
    "no target": ("a,b,y\n1,2,\n3,4,1\n5,1,0\n", (), "--missing drop-rows"),
    "words": (
        "a,b,y\n1,u,0\n2,v,1\n3,u,0\n4,v,1\n",
        ("--categorical", "error"),
        "--categorical onehot",
    ),
    "an identifier": (
        lines("a,the b,y", lambda i: f"{i % 7},w{i},{i % 2}"),
        ("--categorical", "error"),
        "--drop 'the b'",
    ),
    "many words": (
        lines("a,b c,y", lambda i: f"{i % 7},w{i % 30},{i % 2}"),
        ("--categorical", "error"),
        "--drop 'b c'",
    ),
    "infinite": ("a,c d,y\n1,inf,0\n3,-inf,1\n", (), "--drop 'c d'"),
    "dates": (
        lines("a,a day,y", lambda i: f"{i % 7},2026-01-{i % 10 + 1:02},{i % 2}"),
        (),
        "--drop 'a day'",
    ),
    "dropped words": (
        lines("a,b,y", lambda i: f"{i % 7},w{i},{i % 2}"),
        (),
        "--keep-identifiers",
    ),
}


@pytest.mark.parametrize("case", ADVICE)
def test_advice_that_is_typed_as_it_stands_helps(prudent, tmp_path, case):
    content, typed, advice = ADVICE[case]
    path = tmp_path / "t.csv"
    path.write_bytes(content.encode("latin-1" if case == "latin-1" else "utf-8"))
    target = ("--target", "3" if case == "no header" else "y")
    first = prudent("describe", path, *target, *typed)
    assert advice in first.err + first.out
    option, *value = shlex.split(advice)
    replaced = () if option in typed else typed
    target = ("--target", "last") if case == "no header" else target
    then = prudent("describe", path, *target, *replaced, option, *value)
    assert then.code == 0, then.err
    assert advice not in then.err + then.out
