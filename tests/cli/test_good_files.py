"""Files in every dress that holds a table: the same numbers come out."""

from __future__ import annotations

import gzip

import pyarrow as pa
import pytest
from pyarrow import parquet

ROWS = [(1.5, 2, "u"), (3.0, 5, "v"), (2.25, 1, "u"), (4.0, 4, "v")]
PLAIN = "a,b,y\n" + "".join(f"{a},{b},{y}\n" for a, b, y in ROWS)
DRESSED = {
    "plain": PLAIN,
    "semicolon": PLAIN.replace(",", ";"),
    "tab": PLAIN.replace(",", "\t"),
    "bar": PLAIN.replace(",", "|"),
    "windows newlines": PLAIN.replace("\n", "\r\n"),
    "no final newline": PLAIN.rstrip("\n"),
    "blank lines": "\n\n" + PLAIN.replace("\n", "\n\n"),
    "blanks around": PLAIN.replace(",", " , "),
    "quoted": PLAIN.replace("a,b,y", '"a","b","y"').replace("u", '"u"'),
    "byte order mark": PLAIN.encode("utf-8-sig"),
    "utf-16": PLAIN.encode("utf-16"),
    "utf-32": PLAIN.encode("utf-32"),
    "gzip": gzip.compress(PLAIN.encode()),
    "plus signs": PLAIN.replace("1.5", "+1.5"),
}


@pytest.fixture
def expected(prudent, table_file):
    return prudent("describe", table_file(PLAIN), "--target", "y").out


def without_name(printed: str) -> str:
    """Drop the file name, which differs."""
    return printed.split("  ", 1)[1]


@pytest.mark.parametrize("dress", DRESSED)
def test_same_table_in_another_dress(prudent, table_file, expected, dress):
    outcome = prudent("describe", table_file(DRESSED[dress], "d.txt"), "--target", "y")
    assert outcome.code == 0
    assert without_name(outcome.out) == without_name(expected)


@pytest.mark.parametrize("dress", ["plain", "gzip", "utf-16"])
def test_standard_input(prudent, expected, dress):
    content = DRESSED[dress]
    content = content.encode() if isinstance(content, str) else content
    outcome = prudent("describe", "-", "--target", "y", stdin=content)
    assert without_name(outcome.out) == without_name(expected)


def parquet_parts(folder):
    for part, rows in enumerate((ROWS[:1], ROWS[1:])):
        a, b, y = zip(*rows, strict=True)
        columns = {"a": a, "b": b, "y": pa.array(y).dictionary_encode()}
        parquet.write_table(pa.table(columns), folder / f"{part}.parquet")


@pytest.mark.parametrize("pattern", ["", "*.parquet", "?.parquet"])
def test_folder_and_glob_of_parquet(prudent, tmp_path, expected, pattern):
    parquet_parts(tmp_path)
    outcome = prudent("describe", tmp_path / pattern, "--target", "y")
    assert without_name(outcome.out) == without_name(expected)


def test_index_that_pandas_wrote_is_no_feature(prudent, tmp_path):
    path = tmp_path / "t.parquet"
    columns = {"a": [1.0, 2.0], "b": [3.0, 5.0], "__index_level_0__": [7, 8]}
    parquet.write_table(pa.table(columns), path)
    assert prudent("describe", path).out.startswith(f"{path}  2 rows x 2 features")


def test_a_feature_that_is_named_twice_is_read_once(prudent):
    twice = "petal_length_cm,petal_width_cm,petal_length_cm"
    outcome = prudent("describe", "iris", "--features", twice)
    assert outcome.code == 0, outcome.err
    assert outcome.out.startswith("iris  150 rows x 2 features")


def test_decimal_comma(prudent, table_file, expected):
    path = table_file(PLAIN.replace(",", ";").replace(".", ","), "d.csv")
    outcome = prudent("describe", path, "--target", "y", "--decimal", ",")
    assert without_name(outcome.out) == without_name(expected)


def test_decimal_comma_with_a_sign(prudent, table_file, expected):
    content = PLAIN.replace(",", ";").replace(".", ",").replace("1,5", "+1,5")
    path = table_file(content, "d.csv")
    outcome = prudent("describe", path, "--target", "y", "--decimal", ",")
    assert without_name(outcome.out) == without_name(expected)


def test_no_header_numbers_the_columns(prudent, table_file):
    path = table_file(PLAIN.partition("\n")[2])
    outcome = prudent("describe", path, "--no-header", "--target", "column3")
    assert outcome.code == 0
    assert "column1" in outcome.out


def test_unicode_and_quoted_newlines_in_names(prudent, table_file):
    path = table_file('größe,"b\nc",y\n1,2,0\n3,4,1\n2,3,1\n')
    outcome = prudent("describe", path, "--target", "y")
    assert outcome.code == 0
    assert "größe" in outcome.out


def test_unnamed_column_gets_a_number(prudent, table_file):
    path = table_file(",b,y\n1,2,0\n3,4,1\n")
    assert "column1" in prudent("describe", path, "--target", "y").out


def test_latin_1_with_its_encoding(prudent, table_file):
    path = table_file("été,b,y\n1,2,0\n3,4,1\n".encode("latin-1"))
    outcome = prudent("describe", path, "--target", "y", "--encoding", "latin-1")
    assert "été" in outcome.out


def test_label_na_is_a_word(prudent, table_file):
    path = table_file("a,b,y\n1,2,NA\n3,4,no\n2,1,NA\n")
    outcome = prudent("describe", path, "--target", "y")
    assert outcome.code == 0
    assert "NA" in outcome.out


def test_target_is_not_guessed_for_describe(prudent, table_file):
    outcome = prudent("describe", table_file("a,b\n1,2\n3,4\n"))
    assert outcome.code == 0
    assert "class" not in outcome.out


def test_bundled_name_knows_its_target(prudent):
    outcome = prudent("describe", "iris")
    assert outcome.out.startswith("iris  150 rows x 4 features\nclass (species)")


def test_file_of_a_bundled_name_wins_with_a_note(prudent, table_file, monkeypatch):
    monkeypatch.chdir(table_file(PLAIN, "iris").parent)
    outcome = prudent("describe", "iris", "--target", "y")
    assert outcome.out.startswith("iris  4 rows")
    assert "note: the file iris is read, not the bundled table" in outcome.err


NOTES = {
    "constant column": (
        "a,c,y\n1,7,0\n3,7,1\n2,7,0\n",
        (),
        "note: column 'c' is constant: dropped",
    ),
    "identifier": (
        "id,b,y\n" + "".join(f"{7 * i % 31},{i % 5},{i % 2}\n" for i in range(30)),
        (),
        "note: column 'id' has a different whole number in every row: an identifier?",
    ),
    "identifier beside gaps": (
        "id,b,y\n"
        + "".join(
            f"{7 * i % 31},{i % 5 if i % 3 else ''},{i % 2}\n" for i in range(30)
        ),
        (),
        "column 'id' has a different whole number in all of 20 rows without gaps:",
    ),
    "collinear columns": (
        "a,b,c,y\n"
        + "".join(f"{i % 7},{i % 5},{i % 7 + i % 5},{i % 2}\n" for i in range(30)),
        (),
        "(nearly) a linear combination of earlier ones: c",
    ),
    "fewer rows than features": (
        "a,b,c,y\n1,2,3,0\n2,4,1,0\n3,1,2,1\n5,1,1,1\n",
        (),
        "no more rows than features (3) in class '0' (2 rows), '1' (2 rows)",
    ),
    "a word for missing as a label": (
        "a,b,y\n" + "".join(f"{i},{i % 5},{('NA', 'x')[i % 2]}\n" for i in range(30)),
        (),
        "note: 'NA' is taken for a class of 'y' (15 rows); where the label is not "
        "known, empty the cell and use --missing drop-rows",
    ),
    "rows dropped": (
        "a,b,y\n1,,0\n3,4,1\n5,1,0\n2,2,\n",
        ("--missing", "drop-rows"),
        "note: 2 rows left out",
    ),
    "words and gaps left to the folds": (
        "a,b,c,y\n1,,r,0\n3,4,g,1\n5,1,r,0\n",
        (),
        "note: 1 text column encoded, 1 missing cell filled (median of the training "
        "rows); --categorical, --missing choose",
    ),
    "text dropped": (
        "a,b,y\n1,x,0\n3,y,1\n5,x,0\n",
        ("--categorical", "drop"),
        "note: column 'b' is text: dropped",
    ),
    "text of one word": (
        "a,b,y\n1,x,0\n3,x,1\n5,x,0\n",
        ("--categorical", "onehot"),
        "note: column 'b' is constant: dropped",
    ),
}


@pytest.mark.parametrize("case", NOTES)
def test_what_a_reader_should_know_is_noted(prudent, table_file, case):
    content, options, words = NOTES[case]
    outcome = prudent("describe", table_file(content), "--target", "y", *options)
    assert outcome.code == 0
    assert words in outcome.out


def test_one_column_is_a_table_where_no_target_is_needed(prudent, table_file, tmp_path):
    rows = [f"{k % 7 + 0.5 * (k % 3)}" for k in range(80)]
    labels = ["u" if float(cell) < 3 else "v" for cell in rows]
    told = table_file(
        "a,y\n" + "".join(f"{c},{y}\n" for c, y in zip(rows, labels, strict=True)),
        "told.csv",
    )
    bare = table_file("a\n" + "\n".join(rows) + "\n", "bare.csv")
    model, detector = tmp_path / "m.prudent", tmp_path / "d.prudent"
    fit = ("fit", told, "--target", "y", "--method", "lda", "-o", model)
    assert prudent(*fit).code == 0
    answers = prudent("predict", bare, "-m", model).out
    assert answers == prudent("predict", told, "-m", model).out
    watched = prudent(
        *("monitor", model, "--data", bare, "--reference", told),
        *("--state", tmp_path / "w.json"),
    )
    assert watched.code == 0, watched.err
    assert "drift (1 column)" in watched.out
    assert prudent("detect", bare, "--model-out", detector).code == 0
    assert prudent("predict", bare, "-m", detector).code == 0


@pytest.mark.parametrize("delimiter", [" ", ":"])
def test_another_delimiter_is_not_taken_for_one_column(prudent, table_file, delimiter):
    path = table_file(PLAIN.replace(",", delimiter))
    outcome = prudent("detect", path)
    assert outcome.code == 3
    assert f"use --delimiter {delimiter!r}" in outcome.err


def test_a_name_may_hold_a_space(prudent, table_file):
    path = table_file("height in cm\n" + "".join(f"{k}\n" for k in range(60)))
    assert prudent("detect", path).code == 0
