"""What fuzzing found, and files made to do harm: one line each, in little memory."""

from __future__ import annotations

import base64
import gzip
import io
import os
import subprocess
import sys
import threading
import time
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

import prudent
from prudent.io import TableError, iter_batches, open_table, read_table, training_data

ROOT = Path(__file__).parents[2]
GOOD = b"a,b,y\n1,2,u\n3,4,v\n5,7,u\n"


def refusal(path, target="y"):
    with pytest.raises(TableError) as error:
        training_data(open_table(str(path), text_columns=[target]).whole(), target)
    said = str(error.value)
    assert "\n" not in said
    return said


def test_gzip_bomb_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr("prudent.io.files.MUCH", 1 << 20)
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"a,b,y\n" + b"1,2,0\n" * 10**6))
    begun = time.process_time()
    assert "unpacks to more than 200 times its size" in refusal(path)
    assert time.process_time() - begun < 2


def test_line_that_never_ends_is_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b,y\n" + b"1," * (1 << 20))
    assert "has a line of more than a megabyte" in refusal(path)


@pytest.mark.parametrize("rows", [b"", b"\n", b"\n\n\r\n"])
def test_no_rows_are_found_before_pyarrow_reads(tmp_path, monkeypatch, rows):
    """On an empty stream it has ended the process."""

    def open_csv(*_args, **_kwargs):
        raise AssertionError

    monkeypatch.setattr("prudent.io.delimited.pyarrow_csv.open_csv", open_csv)
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b,y\n" + rows)
    assert "no data rows below the header" in refusal(path)


def test_labels_beyond_64_bits_are_words(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b,y\n1,2,%d\n3,4,7\n5,7,7\n" % 10**19)
    table = open_table(str(path), text_columns=["y"])
    assert training_data(table, "y").y.tolist() == [str(10**19), "7", "7"]


def test_place_of_a_row_that_holds_a_byte_order_mark(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"p\n0.5\n\xef\xbb\xbf")
    table = read_table(str(path), one_column=True)
    assert [table.place(row) for row in range(table.n_rows)] == ["line 2", "line 3"]


def test_names_of_many_lines_are_listed_in_one(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b'"a\nb",y\n1e999,u\n2,v\n')
    assert "use --drop a b" in refusal(path)
    path.write_bytes(b'"a\r\nb",c\n1,2\n')
    assert "no column 'y'. Columns: a b, c." in refusal(path)
    with pytest.raises(ValueError, match="Columns: a b, c"):
        list(iter_batches(path, "y"))


@pytest.mark.parametrize(
    "cells",
    [
        pa.array([[1.0], [2.0]]),
        pa.array([{"p": 1}, {"p": 2}]),
        pa.array([b"\xff", b"\xfe"]),
        pa.Array.from_buffers(
            pa.string(),
            2,
            [
                None,
                pa.py_buffer(np.arange(3, dtype=np.int32)),
                pa.py_buffer(b"\xff\xfe"),
            ],
        ),
    ],
    ids=["lists", "records", "bytes", "no UTF-8"],
)
def test_cells_of_no_use_are_named(tmp_path, cells):
    path = tmp_path / "t.parquet"
    parquet.write_table(pa.table({"a": [1.0, 2.0], "b": cells, "y": ["u", "v"]}), path)
    said = refusal(path)
    assert "column 'b' of " in said
    assert "no numbers or words. Use --drop b" in said


def test_parquet_whose_names_are_no_utf8_is_refused(tmp_path):
    path = tmp_path / "t.parquet"
    parquet.write_table(pa.table({"\u2028": [1.0, 2.0], "y": ["u", "v"]}), path)
    path.write_bytes(path.read_bytes().replace(b"\xe2\x80\xa8", b"\xe2AA"))
    with pytest.raises(TableError, match="cannot be read as parquet"):
        training_data(open_table(str(path)), "y")


def test_parquet_whose_footer_lies_is_refused_in_little_memory(tmp_path):
    """It declares 2**40 rows, in the one place where they are counted."""
    path = tmp_path / "t.parquet"
    rows = 300
    table = pa.table({"a": np.arange(rows) * 1.5, "y": ["u", "v"] * (rows // 2)})
    parquet.write_table(table, path)
    content = path.read_bytes()
    varint = bytes([(2 * rows) & 0x7F | 0x80, (2 * rows) >> 7])
    lie = bytes([*[0x80] * 5, 0x40])  # zigzag of 2**40, in six bytes
    size = int.from_bytes(content[-8:-4], "little")
    footer = content[-8 - size : -8].replace(varint, lie)
    assert footer != content[-8 - size : -8]
    end = len(footer).to_bytes(4, "little") + b"PAR1"
    path.write_bytes(content[: -8 - size] + footer + end)
    before = peak()
    with pytest.raises(TableError, match="cannot be read as parquet"):
        training_data(open_table(str(path)), "y")
    assert peak() - before < 1e9


def peak():
    """Peak memory of this process, in bytes."""
    status = Path("/proc/self/status").read_text("ascii")
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def test_pipe_is_read_once(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=lambda: path.write_bytes(GOOD))
    writer.start()
    table = read_table(str(path))
    writer.join()
    assert table.n_rows == 3


@pytest.mark.parametrize("encoding", ["zlib", "hex", "rot13", "utf-8\0"])
def test_encoding_of_no_text_is_unknown(tmp_path, encoding):
    path = tmp_path / "t.csv"
    path.write_bytes(GOOD)
    with pytest.raises(TableError, match="unknown encoding"):
        open_table(str(path), encoding=encoding)


def test_model_that_cannot_predict_is_refused(tmp_path):
    """Its checksums fit, and so do its types; its arrays do not."""
    path = tmp_path / "m.prudent"
    X = np.random.default_rng(0).normal(size=(40, 2))
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = prudent.MinimaxProbabilityClassifier().fit(frame, np.arange(40) % 2)
    prudent.save(model, path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    for name, content in members.items():
        if name.endswith(".npy"):
            stream = io.BytesIO()
            np.save(stream, np.load(io.BytesIO(content)).reshape(-1)[:1])
            members[name] = stream.getvalue()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    data = tmp_path / "t.csv"
    data.write_bytes(GOOD)
    for arguments in (
        ("predict", data, "-m", path),
        ("certify", data, "-m", path, "--target", "y"),
        ("monitor", path, "--data", data, "--target", "y"),
    ):
        said = command(*arguments, code=None)
        assert said.count("\n") == 1 + ("note:" in said)


def command(*arguments, code):
    ended = subprocess.run(
        [sys.executable, "-m", "prudent", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode in ({3, 4} if code is None else {code})
    assert "Traceback" not in ended.stderr
    return ended.stderr


@pytest.mark.slow
def test_fuzzing_finds_nothing(tmp_path):
    ended = subprocess.run(
        [sys.executable, ROOT / "tools" / "fuzz.py", "--inputs", "1100"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "1100 inputs, seed 0: 0 findings" in ended.stdout


def promise_state():
    promise = prudent.Guarantee(
        quantity="error rate", bound=0.1, sense="<=", confidence=0.95
    )
    monitor = prudent.PromiseMonitor(promise)
    monitor.update(3, 20)
    return monitor.to_dict()


@pytest.mark.parametrize(
    "change",
    [
        {"violations": -1},
        {"violations": 50},
        {"n": 2**63},
        {"stakes": [0.5] * 5},
        {"stakes": [-1.0] * 8},
        {"e_value": "nan"},
        {"spacing": 0},
        {"trace": [[1, 2, 3]]},
    ],
)
def test_state_that_no_run_wrote_is_refused(change):
    state = promise_state()
    assert prudent.PromiseMonitor.from_dict(state).to_dict() == state
    with pytest.raises(ValueError, match="no run|shape"):
        prudent.PromiseMonitor.from_dict(state | change)


# Two rows by its footer, none in its only row group; found by tools/fuzz.py.
NO_ROWS = (
    "eNp9kk1Lw0AQhsdQioeehF2ysIccbMBDqxUVkQpOYg3SFJvQIh7TEOJ3a6qW+hv8Sf44dzZJ"
    "Gz10CJv3nX0ymf0YYthhNQYMfBp2ADY74R+DWZ/H98lLxOrAGk3D3Iqa4EuAwk1KZ5BbPv8o"
    "zWtCiq4NkjVEE+pCfcOAA5dc2mBv70n9H0ORVWZSYXb/MUbBLCvMRYXhI64K8xEIaTYwDG9u"
    "z/KuzW9jn+IUKQLMo4+4QCfFK8QU3VTnHAdxQMJFvNaJ9RvzKeeJlL8q5R5RaY2EOjle87iS"
    "CaH9R0Ljknc28HfUz+CLmg7QCagfDzHGy4LolXQw1uvx/iytkJ6memQq9c/BtGZR9vaRvLfi"
    "2awVZdl0YX0m2fxh+modnrQP2h3RVceZP2CovR2qO/ML9HRtyw=="
)


def test_parquet_that_holds_fewer_rows_than_it_says_is_refused(tmp_path):
    path = tmp_path / "t.parquet"
    path.write_bytes(zlib.decompress(base64.b64decode(NO_ROWS)))
    assert parquet.ParquetFile(path).metadata.num_rows == 2
    with pytest.raises(TableError, match="cannot be read as parquet"):
        open_table(str(path)).whole()
