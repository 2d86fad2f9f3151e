"""Streams of row blocks: every source gives the same rows in the same order."""

import gzip
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import csv, dataset, parquet

from prudent import ClassMoments
from prudent.io import iter_batches


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 3))
    X[:, 2] = rng.integers(0, 9, size=1000)
    return X, np.array(["no", "yes"])[rng.integers(0, 2, size=1000)]


@pytest.fixture
def table(rows):
    X, y = rows
    return pa.table({"p": X[:, 0], "label": y, "q": X[:, 1], "r": X[:, 2].astype(int)})


def sources(table, folder):
    parquet.write_table(table, folder / "one.parquet", row_group_size=300)
    csv.write_csv(table, folder / "one.csv")
    (folder / "parts").mkdir()
    for i in range(3):
        part = table.slice(i * 400, 400)
        parquet.write_table(part, folder / "parts" / f"{i}.parquet")
    return {
        "parquet": folder / "one.parquet",
        "csv": str(folder / "one.csv"),
        "folder": folder / "parts",
        "glob": str(folder / "parts" / "*.parquet"),
        "table": table,
        "reader": pa.RecordBatchReader.from_batches(
            table.schema, table.to_batches(max_chunksize=170)
        ),
        "dataset": dataset.dataset(folder / "one.parquet"),
        "pandas": table.to_pandas(),
        "polars": pl.from_arrow(table),
        "lazy": pl.from_arrow(table).lazy(),
    }


KINDS = ["parquet", "csv", "folder", "glob", "table", "reader", "dataset", "pandas",
         "polars", "lazy"]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_every_source_yields_the_rows_in_order(kind, rows, table, tmp_path):
    X, y = rows
    source = sources(table, tmp_path)[kind]
    blocks = list(iter_batches(source, "label", batch_rows=170))
    assert len(blocks) > 1
    assert max(len(block) for block, _ in blocks) <= 170
    np.testing.assert_array_equal(np.concatenate([block for block, _ in blocks]), X)
    np.testing.assert_array_equal(np.concatenate([part for _, part in blocks]), y)


@pytest.mark.parametrize("kind", KINDS)
def test_columns_choose_and_order_the_features(kind, rows, table, tmp_path):
    X, _ = rows
    source = sources(table, tmp_path)[kind]
    blocks = list(iter_batches(source, "label", columns=["r", "p"], batch_rows=400))
    np.testing.assert_array_equal(
        np.concatenate([block for block, _ in blocks]), X[:, [2, 0]]
    )


def test_without_target_there_are_no_labels(table):
    (X, y), *_ = iter_batches(table.drop_columns("label"))
    assert X.shape == (1000, 3)
    assert y is None


def test_memmap_is_read_in_blocks(tmp_path, rows):
    X, _ = rows
    np.save(tmp_path / "x.npy", np.column_stack([X, X[:, 2] > 4]))
    stored = np.load(tmp_path / "x.npy", mmap_mode="r")
    blocks = list(iter_batches(stored, target=-1, batch_rows=300))
    assert [len(block) for block, _ in blocks] == [300, 300, 300, 100]
    np.testing.assert_array_equal(np.concatenate([b for b, _ in blocks]), X)
    np.testing.assert_array_equal(np.concatenate([y for _, y in blocks]), X[:, 2] > 4)


def test_pairs_are_handed_on():
    pair = (np.ones((2, 1)), np.zeros(2))
    assert next(iter_batches(iter([pair]))) is pair


def test_a_csv_column_may_start_with_whole_numbers(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a,y\n" + "1,0\n" * 400_000 + "0.5,1\n")
    blocks = list(iter_batches(path, "y"))
    assert len(blocks) > 1
    assert blocks[-1][0][-1, 0] == 0.5


def test_streamed_moments_equal_those_in_memory(rows, table, tmp_path):
    X, y = rows
    whole = ClassMoments.from_arrays(X, y)
    streamed = ClassMoments.reduce(
        ClassMoments.from_arrays(*block)
        for block in iter_batches(sources(table, tmp_path)["parquet"], "label")
    )
    np.testing.assert_allclose(streamed.scatter, whole.scatter, rtol=0, atol=1e-10)
    np.testing.assert_array_equal(streamed.classes, whole.classes)


@pytest.mark.parametrize("kind", ["parquet", "csv", "table", "pandas"])
def test_absent_column_is_named(kind, table, tmp_path):
    source = sources(table, tmp_path)[kind]
    with pytest.raises(ValueError, match="no column 'class'. Columns: p, label"):
        list(iter_batches(source, "class"))


def test_text_feature_is_named(table):
    with pytest.raises(ValueError, match="'label' is not numeric: \\['"):
        list(iter_batches(table, "p"))


def test_text_in_a_number_column_of_a_csv_is_named(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a,y\n1,0\nx,1\n")
    with pytest.raises(ValueError, match="'x'"):
        list(iter_batches(path, "y"))


def test_no_file_no_rows_and_other_types_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="file not found"):
        list(iter_batches(tmp_path / "absent.parquet"))
    with pytest.raises(ValueError, match="`batch_rows` must be > 0, got 0"):
        iter_batches(pd.DataFrame({"a": [1]}), batch_rows=0)
    with pytest.raises(TypeError, match="got int"):
        iter_batches(3)


PEAK = """
import sys
import numpy, scipy, pyarrow.parquet
from prudent import ClassMoments
from prudent.io import iter_batches

def peak():  # in kB, of this process alone: ru_maxrss may be that of its parent
    return int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0])

before = peak()
ClassMoments.reduce(
    ClassMoments.from_arrays(X, y) for X, y in iter_batches(sys.argv[1], "y")
)
print(peak() - before)
"""


@pytest.mark.slow
def test_peak_memory_does_not_grow_with_the_file(tmp_path):
    rng = np.random.default_rng(0)
    names = [f"x{j}" for j in range(20)]
    schema = pa.schema([(name, pa.float64()) for name in names] + [("y", pa.int8())])
    peaks = []
    for factor in (1, 4):
        path, n_rows = tmp_path / f"{factor}.parquet", 200_000 * factor
        block = {name: rng.normal(size=n_rows) for name in names}
        block["y"] = rng.integers(0, 3, size=n_rows).astype(np.int8)
        # One row group, as other writers make it of so many rows.
        table = pa.table(block, schema=schema)
        parquet.write_table(table, path, row_group_size=n_rows)
        run = subprocess.run(
            [sys.executable, "-c", PEAK, str(path)],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        peaks.append(int(run.stdout))
    assert peaks[1] <= 1.2 * peaks[0]


@pytest.mark.parametrize(
    "content",
    [
        b"a;label\n1;no\n2;yes\n",
        gzip.compress(b"a\tlabel\n1\tno\n2\tyes\n"),
        "a|label\n1|no\n2|yes\n".encode("utf-16"),
    ],
    ids=["semicolons", "gzip", "utf-16"],  # gzip holds the time of day
)
def test_text_is_read_as_by_the_command_line(tmp_path, content):
    path = tmp_path / "x.csv"
    path.write_bytes(content)
    ((X, y),) = iter_batches(path, "label")
    assert X.tolist() == [[1], [2]]
    assert y.tolist() == ["no", "yes"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "file is empty"),
        (b"a,y\n1,0\n2\n", "row 3 has 1 fields, header has 2"),
        (b"a,a\n1,2\n", "column name 'a' appears 2 times"),
        (b"a,y\n" + b"1,0\n" * 400_000 + b"x,0\n", "'a' of .* holds 'x' among its num"),
    ],
)
def test_bad_text_is_refused_in_the_words_of_the_command_line(tmp_path, content, words):
    path = tmp_path / "x.csv"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=words):
        list(iter_batches(path, "y"))


def test_names_may_be_numbers(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("0,1\n1,2\n")
    ((X, y),) = iter_batches(path, "1")
    assert X.tolist() == [[1]]
    assert y.tolist() == [2]
