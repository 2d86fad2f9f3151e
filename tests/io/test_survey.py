"""A table read in parts is the table in memory, or is refused with the same words."""

from __future__ import annotations

import csv
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet
from scipy.stats import binomtest, chisquare

from prudent import ClassMoments
from prudent.io import (
    Column,
    Preparation,
    TableError,
    all_rows,
    delimited,
    files,
    open_table,
    preparation,
    sample_rows,
    survey_table,
    training_data,
)
from prudent.io.survey import notes_on_features

PART_CELLS = 9
# Two or three short lines: even a row of the widest cells fits.
PART_BYTES = 64


@pytest.fixture
def small_parts(monkeypatch):
    """Cut tables into parts of a few rows."""
    monkeypatch.setattr("prudent.io.table.PART_CELLS", PART_CELLS)
    monkeypatch.setattr("prudent.io.delimited.PART_BYTES", PART_BYTES)


CELLS = {
    "number": st.sampled_from(["1", "2.5", "-3", "0", "7e2"]),
    "holey": st.sampled_from(["1", "2", "", "NA"]),
    "constant": st.just("4"),
    "word": st.sampled_from(["red", "green", "blue"]),
    "mixed": st.sampled_from(["1", "2", "3", "x"]),
    "infinite": st.sampled_from(["1", "2", "inf"]),
    "truth": st.sampled_from(["true", "false"]),
    "signed": st.sampled_from(["+1", "-2", "3"]),
}
KINDS = st.sampled_from([*CELLS])
LABELS = st.sampled_from(["u", "v", "v", "w", ""])


@st.composite
def written(draw):
    """Names and rows of a table as a file spells them; the target comes last."""
    kinds = draw(st.lists(KINDS, min_size=1, max_size=3))
    labels = draw(st.sampled_from([LABELS, st.sampled_from(["0", "1", "10"])]))
    n_rows = draw(st.integers(1, 14))
    cells = [draw(st.lists(CELLS[k], min_size=n_rows, max_size=n_rows)) for k in kinds]
    target = draw(st.lists(labels, min_size=n_rows, max_size=n_rows))
    names = [f"{kind}{j}" for j, kind in enumerate(kinds)]
    return [*names, "y"], list(zip(*cells, target, strict=True))


OPTIONS = st.fixed_dictionaries(
    {
        "missing": st.sampled_from(["error", "drop-rows", "fill"]),
        "categorical": st.sampled_from(["error", "onehot", "drop"]),
    }
)


def outcome(source, **options):
    """What a survey finds, or the words with which it refuses."""
    try:
        return training_data(source, "y", **options)
    except TableError as error:
        return str(error)


def assert_same(found, expected):
    if isinstance(expected, str):
        assert found == expected
        return
    assert found.frame.schema == expected.frame.schema
    for column, other in zip(found.frame.columns, expected.frame.columns, strict=True):
        if column.type == pa.float64():
            np.testing.assert_allclose(column.to_numpy(), other.to_numpy(), rtol=1e-14)
        else:
            assert column.to_pylist() == other.to_pylist()
    assert found.y.tolist() == expected.y.tolist()
    assert found.rows.tolist() == expected.rows.tolist()
    assert found.notes == expected.notes
    assert found.constant == expected.constant
    assert found.preparation.columns == expected.preparation.columns
    assert found.preparation.gaps == expected.preparation.gaps


@settings(max_examples=150, deadline=None)
@given(written(), OPTIONS)
def test_text_in_parts_is_the_table_in_memory(tmp_path_factory, table, options):
    names, rows = table
    path = tmp_path_factory.getbasetemp() / "survey.csv"
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows([names, *rows])
    source = open_table(str(path), text_columns=["y"])
    expected = outcome(source.whole(), **options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("prudent.io.table.PART_CELLS", PART_CELLS)
        patch.setattr("prudent.io.delimited.PART_BYTES", PART_BYTES)
        source = open_table(str(path), text_columns=["y"])
        assert_same(outcome(source, **options), expected)
        assert_same(outcome(source.whole(), **options), expected)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=3), st.integers(0, 99))
def test_parquet_in_parts_is_the_table_in_memory(tmp_path_factory, sizes, seed):
    """Several files, one of them without a column."""
    folder = tmp_path_factory.mktemp("parts")
    rng = np.random.default_rng(seed)
    for number, size in enumerate(sizes):
        columns = {
            "a": rng.normal(size=size),
            "c": pa.array(rng.choice(["r", "g"], size)).dictionary_encode(),
            "b": pa.array(rng.integers(0, 4, size), pa.int32()),
            "y": rng.choice(["u", "v"], size),
        }
        if number == 1:
            del columns["b"]
        parquet.write_table(pa.table(columns), folder / f"{number}.parquet")
    options = {"missing": "fill", "categorical": "onehot"}
    expected = outcome(open_table(str(folder)).whole(), **options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("prudent.io.table.PART_CELLS", PART_CELLS)
        assert_same(outcome(open_table(str(folder)), **options), expected)


@pytest.fixture
def labelled(tmp_path):
    """A file of 2000 rows of three classes, the last of them rare."""
    rng = np.random.default_rng(0)
    y = rng.choice(["a", "b", "rare"], 2000, p=[0.7, 0.28, 0.02])
    X = rng.normal(size=(2000, 2))
    path = tmp_path / "labelled.parquet"
    parquet.write_table(pa.table({"p": X[:, 0], "q": X[:, 1], "y": y}), path)
    return str(path), X, y


@pytest.mark.parametrize("part_cells", [21, 1800, 150_000])
def test_sample_is_exact_and_the_others_are_the_others(
    labelled, monkeypatch, part_cells
):
    path, X, y = labelled
    monkeypatch.setattr("prudent.io.table.PART_CELLS", part_cells)
    sample, others = sample_rows(survey_table(open_table(path), "y"), 300, 5)
    # Rows of the file, none twice, whatever the parts.
    assert len(np.unique(sample.rows)) == len(sample.rows)
    np.testing.assert_array_equal(sample.X, X[sample.rows])
    np.testing.assert_array_equal(sample.y, y[sample.rows])
    assert len(sample.rows) == 300
    assert sample.n_available == 2000
    rest = np.setdiff1d(np.arange(2000), sample.rows)
    expected = ClassMoments.from_arrays(X[rest], y[rest])
    np.testing.assert_array_equal(others.count, expected.count)
    np.testing.assert_allclose(others.mean, expected.mean, rtol=0, atol=1e-13)
    np.testing.assert_allclose(others.scatter, expected.scatter, rtol=0, atol=1e-10)


def test_sample_does_not_depend_on_the_parts_but_on_the_seed(labelled, monkeypatch):
    path, *_ = labelled

    def drawn(part_cells, seed):
        monkeypatch.setattr("prudent.io.table.PART_CELLS", part_cells)
        found = survey_table(open_table(path), "y")
        return sample_rows(found, 100, seed)[0].rows.tolist()

    assert drawn(33, 0) == drawn(3000, 0)
    assert drawn(33, 0) != drawn(33, 1)


def test_every_row_is_as_likely_to_be_drawn(tmp_path):
    path = tmp_path / "t.parquet"
    columns = {"a": np.arange(40.0), "b": np.arange(40) % 7, "y": ["u", "v"] * 20}
    parquet.write_table(pa.table(columns), path)
    found = survey_table(open_table(str(path)), "y")
    drawn = Counter()
    for seed in range(400):
        drawn.update(sample_rows(found, 10, seed)[0].rows.tolist())
    assert drawn.total() == 4000
    assert chisquare([drawn[row] for row in range(40)]).pvalue > 0.001


def test_rare_class_is_as_rare_in_the_sample(labelled):
    path, _, y = labelled
    found = survey_table(open_table(path), "y")
    drawn = sum((sample_rows(found, 100, s)[0].y == "rare").sum() for s in range(200))
    share = np.mean(y == "rare")
    # Draws without replacement vary less than the binomial test assumes.
    assert binomtest(int(drawn), 20_000, share).pvalue > 0.001


def test_sample_of_more_rows_than_there_are_is_all_of_them(labelled):
    path, X, _ = labelled
    sample, others = sample_rows(survey_table(open_table(path), "y"), 5000, 0)
    np.testing.assert_array_equal(sample.X, X)
    assert others.count.tolist() == [0, 0, 0]


def test_rows_without_labels_are_drawn_too(labelled):
    path, X, _ = labelled
    found = survey_table(open_table(path), None, drop=["y"])
    sample, _ = sample_rows(found, 50, 0)
    assert sample.y is None
    np.testing.assert_array_equal(sample.X, X[sample.rows])


def test_column_that_turns_to_words_late_is_text(tmp_path, monkeypatch):
    monkeypatch.setattr("prudent.io.delimited.PART_BYTES", 1000)
    path = tmp_path / "late.csv"
    path.write_text("a,b,y\n" + "1,true,0\n2,false,1\n" * 500 + "x,maybe,0\n")
    source = open_table(str(path), text_columns=["y"])
    assert list(map(str, source.whole().columns.schema.types)) == ["string"] * 3
    with pytest.raises(TableError, match="'a' is text: 'x' at line 1002 \\(1 of 1 001"):
        training_data(source, "y", categorical="error")


@pytest.mark.parametrize("rows", ["1,2,0\n3\n", "1,2,0\n" * 900 + "3\n"])
def test_ragged_row_is_named_in_parts_too(tmp_path, monkeypatch, rows):
    monkeypatch.setattr("prudent.io.delimited.PART_BYTES", 100)
    path = tmp_path / "ragged.csv"
    path.write_text("a,b,y\n" + rows)
    line = rows.count("\n") + 1
    with pytest.raises(TableError, match=f"row {line} has 1 fields, header has 3"):
        training_data(open_table(str(path)), "y")


def test_words_beyond_the_most_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(preparation, "MOST_WORDS", 5)
    path = tmp_path / "words.csv"
    path.write_text("a,y\n" + "".join(f"w{i},{i % 2}\n" for i in range(12)))
    source = open_table(str(path), text_columns=["y"])
    with pytest.raises(TableError, match=r"'w0' at line 2 \(12 of 12 values"):
        training_data(source, "y", categorical="error")
    path.write_text("a,y\n" + "".join(f"{i % 3},w{i}\n" for i in range(12)))
    source = open_table(str(path), text_columns=["y"])
    with pytest.raises(TableError, match="more than 5 different words"):
        training_data(source, "y")


def test_identifier_of_a_sample_says_so():
    X = np.arange(30.0)[:, None]
    assert "in every row: an identifier?" in notes_on_features(X, ["a"], 30)[0]
    assert "in all of 30 rows: an identifier?" in notes_on_features(X, ["a"], 90)[0]


def test_rows_to_predict_are_checked_over_all_parts(tmp_path, small_parts):
    path = tmp_path / "new.csv"
    preparation = Preparation(tuple(map(Column, "ab")))
    path.write_text("a,b\n" + "1,2\n" * 20 + ",2\n" * 20 + "1,\n" * 3)
    with pytest.raises(TableError, match="23 missing values in 2 columns .a: 20, b: 3"):
        preparation.check(open_table(str(path)))
    path.write_text("a,b\n" + "1,2\n" * 20 + "1,inf\n" * 20)
    with pytest.raises(
        TableError, match="'b' has 20 infinite values .first at line 22"
    ):
        preparation.check(open_table(str(path)))


def test_all_rows_of_parts_are_all_rows(labelled, small_parts):
    path, X, y = labelled
    found = all_rows(survey_table(open_table(path), "y"))
    np.testing.assert_array_equal(found.X, X)
    np.testing.assert_array_equal(found.y, y)
    assert found.n_available == len(X)


@pytest.fixture
def linux(tmp_path, monkeypatch):
    """A machine with 8 GB available, in a container that may take 6 and holds 5."""
    contents = {
        "meminfo": "MemTotal:  16000000 kB\nMemAvailable:   8000000 kB\n",
        "memory.max": "6000000000\n",
        "memory.current": "5000000000\n",
        "memory.stat": "anon 1\ninactive_file 3000000000\n",
    }
    for name, content in contents.items():
        (tmp_path / name).write_text(content)
    monkeypatch.setattr(files, "MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(files, "CGROUP", tmp_path)
    return tmp_path


def test_available_memory_is_what_the_container_leaves(linux):
    assert files.available_memory() == 4_000_000_000


def test_available_memory_without_a_limit_is_that_of_the_machine(linux):
    (linux / "memory.max").write_text("max\n")
    assert files.available_memory() == 8_000_000 * 1024


def test_available_memory_elsewhere_is_the_free_pages(linux, monkeypatch):
    (linux / "memory.max").unlink()
    (linux / "meminfo").unlink()
    monkeypatch.setattr("os.sysconf", {"SC_AVPHYS_PAGES": 7, "SC_PAGE_SIZE": 3}.get)
    assert files.available_memory() == 21


def test_available_memory_may_be_unknown(linux, monkeypatch):
    (linux / "memory.max").unlink()
    (linux / "meminfo").unlink()
    monkeypatch.delattr("os.sysconf")
    assert files.available_memory() is None


@pytest.mark.parametrize("missing", ["fill", "drop-rows"])
def test_text_is_parsed_twice_for_its_moments(tmp_path, monkeypatch, missing):
    """Once to decide, once for the rows; once more where rows with gaps are dropped."""
    path = tmp_path / "t.csv"
    path.write_text("a,c,y\n" + "1,2,u\n2,3,v\n3,,u\n" * 20)
    parsed = []
    honest = delimited.pyarrow_csv.open_csv

    def open_csv(*args):
        parsed.append(args[-1].include_columns)
        return honest(*args)

    monkeypatch.setattr(delimited.pyarrow_csv, "open_csv", open_csv)
    found = survey_table(
        open_table(str(path), text_columns=["y"]), "y", missing=missing
    )
    found.moments(lambda X: np.nan_to_num(X))
    passes = len(parsed) - 1  # the first looks at the types of the first rows
    assert passes == (2 if missing == "fill" else 3)
