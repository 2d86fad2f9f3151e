"""Whatever a table looks like as text, its numbers and labels come back."""

from __future__ import annotations

import csv
import gzip
import io

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import csv as pyarrow_csv

from prudent.io import Column, Preparation, TableError, read_table, training_data
from prudent.io.errors import LONGEST_VALUE, counted, listed, shown
from prudent.io.survey import _collinear
from prudent.io.table import MISSING_WORDS

NUMBER = st.floats(allow_nan=False, allow_infinity=False, width=64)
# Names and labels with everything a delimited file makes hard.
WORD = st.text(st.sampled_from("ab é,;\t|\"'\n.x1"), min_size=1, max_size=6).filter(
    lambda text: text.strip() == text and text not in MISSING_WORDS
)


@st.composite
def tables(draw):
    """Column names, rows of numbers with a label each, and how to write them."""
    width = draw(st.integers(1, 3))
    names = draw(
        st.lists(
            WORD.filter(lambda name: not _is_float(name)),
            min_size=width + 1,
            max_size=width + 1,
            unique=True,
        )
    )
    rows = draw(st.lists(st.tuples(*[NUMBER] * width, WORD), min_size=1, max_size=6))
    return names, rows


def _is_float(text):
    try:
        float(text)
    except ValueError:
        return False
    return True


@settings(max_examples=60, deadline=None)
@given(
    tables(),
    st.sampled_from([",", ";", "\t", "|"]),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
def test_written_table_is_read_back_exactly(
    tmp_path_factory, table, delimiter, newline, quote
):
    names, rows = table
    text = io.StringIO(newline="")
    writer = csv.writer(
        text,
        delimiter=delimiter,
        lineterminator=newline,
        quoting=csv.QUOTE_ALL if quote else csv.QUOTE_MINIMAL,
    )
    writer.writerows([names, *rows])
    path = tmp_path_factory.getbasetemp() / "table.csv.gz"
    path.write_bytes(gzip.compress(text.getvalue().encode()))
    read = read_table(str(path), delimiter=delimiter, text_columns=[names[-1]])
    assert read.names == names
    assert read.text(names[-1]).to_pylist() == [row[-1] for row in rows]
    preparation = Preparation(tuple(map(Column, names[:-1])))
    np.testing.assert_array_equal(
        preparation.transform(read), [row[:-1] for row in rows]
    )


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 2), min_size=1, max_size=6))
def test_place_is_the_line_on_which_the_row_begins(tmp_path_factory, newlines):
    """Rows with that many newlines inside a quoted cell; blank lines between."""
    lines, text = [], "a,b\n\n"
    for count in newlines:
        lines.append(text.count("\n") + 1)
        text += '1,"x' + "\n" * count + '"\n\n'
    path = tmp_path_factory.getbasetemp() / "places.csv"
    path.write_text(text, newline="")
    table = read_table(str(path))
    places = [table.place(row) for row in range(table.n_rows)]
    assert places == [f"line {line}" for line in lines]


def test_one_row_more_than_a_block_of_integers_may_have_fractions(tmp_path):
    path = tmp_path / "long.csv"
    path.write_text("a,b\n" + "1,2\n" * 300_000 + "1.5,2.5\n")
    table = read_table(str(path))
    X = Preparation(tuple(map(Column, "ab"))).transform(table)
    assert X[-1].tolist() == [1.5, 2.5]
    assert X[:-1].sum() == 900_000


@pytest.mark.parametrize("packed", [False, True])
def test_no_thread_reads_a_small_table_by_python(tmp_path, monkeypatch, packed):
    """Such a thread aborts a command that ends meanwhile, in one of twenty runs."""
    given, open_csv = [], pyarrow_csv.open_csv

    def noting(stream, *settings):
        given.append(type(stream))
        return open_csv(stream, *settings)

    monkeypatch.setattr(pyarrow_csv, "open_csv", noting)
    path = tmp_path / "table.csv.gz"
    path.write_bytes((gzip.compress if packed else bytes)(b"a,b\n1,x\n2,y\n"))
    assert read_table(str(path)).n_rows == 2
    assert set(given) == {pa.BufferReader}


def test_words_of_many_blocks_keep_their_rows(tmp_path):
    path = tmp_path / "long.csv"
    words = [("early" if row < 200_000 else f"late{row % 3}") for row in range(400_000)]
    path.write_text("a,y\n" + "".join(f"1,{word}\n" for word in words))
    table = read_table(str(path), text_columns=["y"])
    assert table.words("y").tolist() == words


def labelled(tmp_path, words, target="y"):
    path = tmp_path / "t.csv"
    rows = "".join(f"{i},{i * i % 5},{word}\n" for i, word in enumerate(words))
    path.write_text("a,b,y\n" + rows)
    table = read_table(str(path), text_columns=[target])
    return training_data(table, target)


@pytest.mark.parametrize(
    ("words", "labels"),
    [
        (["10", "9", "10"], [10, 9, 10]),
        (["-1", "1", "-1"], [-1, 1, -1]),
        (["01", "1", "1"], ["01", "1", "1"]),
        (["1.0", "2.0", "1.0"], ["1.0", "2.0", "1.0"]),
        (["+1", "-1", "+1"], ["+1", "-1", "+1"]),
        (["yes", "no", "no"], ["yes", "no", "no"]),
        (["nan", "no", "no"], ["nan", "no", "no"]),
    ],
)
def test_labels_are_integers_only_if_they_read_back_as_written(tmp_path, words, labels):
    assert labelled(tmp_path, words).y.tolist() == labels


def test_rows_left_out_are_known(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b,y\n1,2,u\n,3,v\n4,4,v\n5,1,\n6,2,u\n")
    table = read_table(str(path), text_columns=["y"])
    training = training_data(table, "y", missing="drop-rows")
    assert training.rows.tolist() == [0, 2, 4]
    assert training.y.tolist() == ["u", "v", "u"]


def test_missing_cells_stay_open_for_what_fills_them_in_each_fold(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,c,y\n1,r,u\n,g,v\n3,r,v\n4,,u\n")
    table = read_table(str(path), text_columns=["y"])
    training = training_data(table, "y")
    a, c = training.frame.columns
    np.testing.assert_array_equal(a.to_numpy(), [1, np.nan, 3, 4])
    assert c.to_pylist() == ["r", "g", "r", None]
    assert training.preparation.gaps
    assert training.preparation.is_text == (False, True)


def test_unknown_words_are_left_to_what_comes_behind(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,c,y\n1,r,u\n2,g,v\n3,r,v\n")
    table = read_table(str(path), text_columns=["y"])
    preparation = training_data(table, "y").preparation
    path.write_text("c,a\nblue,1\nr,2\n")
    found = read_table(str(path))
    features = preparation.transform(found).to_pydict()
    assert features == {"a": [1, 2], "c": ["blue", "r"]}


def test_column_without_any_value_is_dropped(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b,y\n1,,u\n2,,v\n")
    table = read_table(str(path), text_columns=["y"])
    training = training_data(table, "y")
    assert training.X.tolist() == [[1], [2]]
    assert "column 'b' has no value at all: dropped" in training.notes


def test_no_complete_row_is_said(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b,y\n1,,u\n,2,v\n")
    table = read_table(str(path), text_columns=["y"])
    with pytest.raises(TableError, match="every row has a missing value"):
        training_data(table, "y", missing="drop-rows")


@pytest.mark.parametrize("scale", [1.0, 1e9, 1e-9])
def test_collinear_columns_are_the_later_ones(scale):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 6)) * scale + 3 * scale
    X[:, 2] = 2 * X[:, 0] - X[:, 1]
    X[:, 5] = X[:, 3] + 7 * scale
    assert _collinear(X) == [2, 5]


def test_nearly_collinear_column_is_not_collinear():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    X[:, 2] = X[:, 0] + 1e-5 * rng.normal(size=200)
    assert _collinear(X) == []


def test_values_are_cut_and_names_are_counted():
    assert len(shown("x" * 1000)) <= LONGEST_VALUE + 2
    assert [counted(1, "row"), counted(4, "row"), counted(2, "class")] == [
        "1 row",
        "4 rows",
        "2 classes",
    ]
    assert listed(range(17)) == "0, 1, 2, 3, 4 and 12 more"
    assert listed("abc") == "a, b, c"
    assert counted(1234, "row") == "1 234 rows"
