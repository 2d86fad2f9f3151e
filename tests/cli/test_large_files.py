"""Tables beyond memory: read in parts, or sampled where rows are needed, aloud."""

from __future__ import annotations

import csv
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv as pyarrow_csv
from pyarrow import parquet

from prudent import ImpreciseDiscriminantAnalysis, load
from prudent.io.errors import unbroken

N_ROWS = 1500
FIT = ("fit", "--target", "y")
MOMENTS = {
    "minimax": (),
    "imprecise": (),
    "optimistic": ("--param", "covariance=oas", "--param", "threshold=bayes"),
}


@pytest.fixture
def rows():
    """Three classes in two features, a word and a constant."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, N_ROWS)
    X = rng.normal(size=(N_ROWS, 2)) + 2.0 * np.eye(3)[codes, :2]
    return {
        "p": X[:, 0],
        "q": X[:, 1],
        "colour": np.array(["red", "green", "blue"])[rng.integers(0, 3, N_ROWS)],
        "same": np.full(N_ROWS, 3.0),
        "y": np.array(["u", "v", "w"])[codes],
    }


@pytest.fixture(params=["parquet", "csv"])
def table(request, rows, tmp_path):
    """Path of the rows in a file."""
    path = tmp_path / f"table.{request.param}"
    columns = pa.table(rows)
    if request.param == "parquet":
        parquet.write_table(columns, path)
    else:
        columns.to_pandas().to_csv(path, index=False)
    return path


@pytest.fixture
def little_memory(monkeypatch):
    """Take away the memory, and cut tables into parts of some hundred rows."""

    def take() -> None:
        monkeypatch.setattr("prudent.io.files.available_memory", lambda: 10_000)
        monkeypatch.setattr("prudent.io.table.PART_CELLS", 700)
        monkeypatch.setattr("prudent.io.delimited.PART_BYTES", 9_000)

    return take


@pytest.mark.parametrize("method", MOMENTS)
def test_fit_from_moments_uses_all_rows(
    prudent, little_memory, table, tmp_path, method
):
    options = ("--method", method, "--categorical", "onehot", *MOMENTS[method])
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    expected = prudent(*FIT, table, *options, "-o", whole)
    little_memory()
    outcome = prudent(*FIT, table, *options, "-o", parts)
    assert outcome.code == expected.code == 0
    assert f"{method} on 1 500 rows x 3 features" in outcome.out
    assert f"note: {table} would take " in outcome.err
    assert "1e-05 GB are available: it is read in parts" in outcome.err
    a, b = load(whole)[-1], load(parts)[-1]
    np.testing.assert_allclose(a.moments_.mean, b.moments_.mean, rtol=0, atol=1e-12)
    np.testing.assert_allclose(a.moments_.scatter, b.moments_.scatter, rtol=1e-12)
    predicted = [
        prudent("predict", table, "-m", m, "--set").out for m in (whole, parts)
    ]
    assert predicted[0] == predicted[1]


@pytest.mark.parametrize("method", ["optimistic", "calibrated", "rejection"])
def test_fit_that_needs_rows_says_on_which_sample(
    prudent, little_memory, table, tmp_path, method
):
    little_memory()
    options = ("--method", method, "--categorical", "drop", "--sample", "600")
    outcome = prudent(*FIT, table, *options, "-o", tmp_path / "m")
    assert outcome.code == 0
    assert (
        f"{method} on a random sample of 600 of 1 500 rows x 2 features" in outcome.out
    )


def test_selection_is_on_a_sample(prudent, little_memory, table, tmp_path):
    little_memory()
    options = ("--method", "minimax", "--categorical", "drop", "--sample", "300")
    outcome = prudent(*FIT, table, *options, "--select", "cv", "-o", tmp_path / "m")
    assert "minimax on a random sample of 300 of 1 500 rows" in outcome.out


@pytest.mark.parametrize(
    "command",
    [
        ("compare", "--target", "y", "--methods", "minimax"),
        (*FIT, "--method", "calibrated", "-o", "model"),
        ("detect", "--target", "y", "--normal", "u"),
    ],
)
def test_without_a_sample_memory_is_a_limit(
    prudent, little_memory, table, tmp_path, monkeypatch, command
):
    monkeypatch.chdir(tmp_path)
    little_memory()
    name, *options = command
    options += ["--categorical", "drop", "--sample", "off"]
    outcome = prudent(name, table, *options)
    assert outcome.code == 6
    assert outcome.out == ""
    assert "does not fit into memory: it would take" in outcome.err
    assert "Leave out --sample off" in outcome.err
    assert not (tmp_path / "model").exists()


def test_comparison_states_its_sample_everywhere(
    prudent, little_memory, table, tmp_path
):
    little_memory()
    report = tmp_path / "r.html"
    arguments = ("--target", "y", "--methods", "minimax", "--baselines", "lda")
    options = ("--categorical", "drop", "--sample", "500", "--report", report)
    outcome = prudent("compare", table, *arguments, *options)
    assert outcome.code == 0
    sample = "a random sample of 500 of 1 500 rows"
    # The long path of the table may fold its heading.
    assert "500 rows × 2 features" in " ".join(outcome.out.split())
    assert (
        f"note: the table does not fit into memory: {sample} is tested" in outcome.err
    )
    assert f"{sample} is tested on" in report.read_text(encoding="utf-8")
    found = json.loads(
        prudent("compare", table, *arguments, *options, "--json", "-").out
    )
    lines = {row["method"]: row for row in found["rows"]}
    assert lines["minimax"]["notes"] == []
    assert lines["lda"]["notes"] == ["fitted on 400 of 1 400 rows"]
    assert {s["n_train"] for s in found["folds"] if s["method"] == "minimax"} == {1400}


def test_a_detector_that_is_kept_names_its_sample(
    prudent, little_memory, table, tmp_path
):
    little_memory()
    outcome = prudent(
        *("fit", table, "--target", "y", "--normal", "u", "--categorical", "drop"),
        *("--method", "low-density", "--sample", "600", "-o", tmp_path / "model"),
    )
    assert outcome.code == 0
    assert "normal rows of a random sample of 600 of 1 500 rows x" in outcome.out


def test_detector_is_fitted_on_a_sample_and_flags_all_rows(
    prudent, little_memory, table, tmp_path
):
    little_memory()
    flags, report = tmp_path / "flags.csv", tmp_path / "r.html"
    outcome = prudent(
        *("detect", table, "--target", "y", "--normal", "u", "--categorical", "drop"),
        *("--sample", "600", "-o", flags, "--report", report),
    )
    assert outcome.code == 0
    said = "itted and measured on a random sample of 600 of 1 500 rows"
    assert f"f{said}; flagged are all rows" in outcome.out
    assert unbroken(f"F{said}.") in report.read_text(encoding="utf-8")
    with flags.open() as stream:
        lines = list(csv.DictReader(stream))
    assert [int(line["row"]) for line in lines] == list(range(1, N_ROWS + 1))
    flagged = sum(line["outlier"] == "1" for line in lines)
    assert outcome.out.split()[-1] == f"{flagged:,}".replace(",", " ").split()[-1]
    assert flagged == sum(float(line["score"]) < 0 for line in lines)


def test_describe_counts_all_rows_and_says_what_its_figures_are_of(
    prudent, little_memory, table, monkeypatch
):
    monkeypatch.setattr("prudent.cli.describe.SAMPLE", 200)
    little_memory()
    outcome = prudent("describe", table, "--target", "y", "--categorical", "drop")
    assert outcome.out.startswith(f"{table}  1500 rows x 2 features")
    assert "figures of a random sample of 200 of 1 500 rows:" in outcome.out


def test_parquet_is_advised_for_much_text(
    prudent, little_memory, rows, tmp_path, monkeypatch
):
    path = tmp_path / "table.csv"
    pa.table(rows).to_pandas().to_csv(path, index=False)
    little_memory()
    monkeypatch.setattr("prudent.cli.loading.MUCH_TEXT", 1000)
    outcome = prudent("describe", path, "--categorical", "drop")
    assert outcome.code == 0
    found = prudent(*FIT, path, "--method", "minimax", "-o", tmp_path / "m")
    assert found.code == 0
    assert "note: parquet is read several times as fast as text" in found.err


@pytest.fixture
def model(prudent, table, tmp_path):
    path = tmp_path / "model"
    options = ("--method", "imprecise", "--categorical", "onehot", "-o", path)
    assert prudent(*FIT, table, *options).code == 0
    return path


def test_predictions_of_parts_are_those_of_the_whole(
    prudent, little_memory, model, table
):
    arguments = (
        "predict",
        table,
        "-m",
        model,
        "--proba",
        "--set",
        "--keep",
        "colour,y",
    )
    whole = prudent(*arguments)
    little_memory()
    parts = prudent(*arguments)
    assert parts.code == 0
    expected, found = (list(csv.reader(o.out.splitlines())) for o in (whole, parts))
    assert len(found) == N_ROWS + 1
    assert found[0] == expected[0]
    for line, right in zip(found[1:], expected[1:], strict=True):
        assert [*line[:3], line[-1]] == [*right[:3], right[-1]]
        np.testing.assert_allclose(
            list(map(float, line[3:-1])), list(map(float, right[3:-1])), rtol=1e-12
        )


def test_predictions_of_standard_input(prudent, little_memory, model, table, rows):
    whole = prudent("predict", table, "-m", model)
    little_memory()
    content = pa.table(rows).to_pandas().to_csv(index=False).encode()
    assert prudent("predict", "-", "-m", model, stdin=content).out == whole.out


def test_output_is_whole_or_as_it_was(
    prudent, little_memory, model, table, tmp_path, monkeypatch
):
    # Rows that the model itself is then tried on are answered: the data are to blame.
    parts_are_good = iter([True, True, False])
    honest = ImpreciseDiscriminantAnalysis.predict

    def predict(self, X):
        if not next(parts_are_good, True):
            raise ValueError("the third part is bad.")
        return honest(self, X)

    monkeypatch.setattr(ImpreciseDiscriminantAnalysis, "predict", predict)
    target = tmp_path / "out.csv"
    target.write_text("as it was\n")
    little_memory()
    outcome = prudent("predict", table, "-m", model, "-o", target)
    assert outcome.code == 3
    assert "the third part is bad" in outcome.err
    assert target.read_text() == "as it was\n"
    assert not list(tmp_path.glob("*.part"))


def test_output_takes_the_place_of_the_old_one(prudent, model, table, tmp_path):
    target, link = tmp_path / "out.csv", tmp_path / "link.csv"
    target.write_text("old\n")
    link.symlink_to(target)
    assert prudent("predict", table, "-m", model, "-o", link).code == 0
    assert link.is_symlink()
    assert target.read_text().startswith("prediction\n")
    assert stat.S_IMODE(target.stat().st_mode) & stat.S_IRUSR


def test_output_may_be_a_device(prudent, model, table):
    assert prudent("predict", table, "-m", model, "-o", os.devnull).code == 0
    assert Path(os.devnull).is_char_device()


PEAK = """
import sys
import numba, scipy.linalg, sklearn, skops.io, pyarrow.csv, pyarrow.parquet
import matplotlib.figure
import prudent, prudent.comparison, prudent.io.files, prudent.persistence
from prudent.cli import main

def peak():  # in kB, of this process alone
    return int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0])

prudent.io.files.available_memory = lambda: 1000
before = peak()
try:
    main(sys.argv[1:])
except SystemExit as end:
    assert end.code == 0
print(peak() - before, file=sys.stderr)
"""


def peak(*arguments):
    """Peak memory of a command above the imports, in kB.

    The least of two runs: one in twenty holds 20 MB more, whatever the file's size,
    when the threads that read are far ahead.
    """
    runs = [
        subprocess.run(
            [sys.executable, "-c", PEAK, *map(str, arguments)],
            capture_output=True,
            text=True,
            check=True,
        )
        for _ in range(2)
    ]
    return min(int(run.stderr.splitlines()[-1]) for run in runs)


@pytest.mark.slow
def test_peak_memory_does_not_grow_with_the_file(tmp_path):
    rng = np.random.default_rng(0)
    names = [f"x{j}" for j in range(20)]
    schema = pa.schema([(name, pa.float64()) for name in names] + [("y", pa.int8())])
    peaks = {}
    model, out = tmp_path / "model", tmp_path / "out.csv"
    for factor in (1, 4):
        path, text = tmp_path / f"{factor}.parquet", tmp_path / f"{factor}.csv"
        n_rows = 200_000 * factor
        block = {name: rng.normal(size=n_rows) for name in names}
        block["y"] = rng.integers(0, 3, size=n_rows).astype(np.int8)
        table = pa.table(block, schema=schema)
        parquet.write_table(table, path, row_group_size=n_rows)
        pyarrow_csv.write_csv(table[: n_rows // 2], text)
        commands = {
            "fit from moments": ("fit", path, "--method", "minimax", "-o", model),
            "fit from text": ("fit", text, "--method", "minimax", "-o", model),
            "fit on rows": ("fit", path, "--method", "optimistic", "-o", model),
            "compare": ("compare", path, "--methods", "minimax", "--baselines", "lda"),
            "detect": ("detect", path, "--normal", "1", "-o", out),
        }
        # The detector compares each row with each normal one: few of them will do.
        samples = {"detect": 3000}
        found = {
            name: peak(*command, "--target", "y", "--sample", samples.get(name, 20_000))
            for name, command in commands.items()
        }
        found["predict"] = peak("predict", path, "-m", model, "-o", out, "--keep", "y")
        found["describe"] = peak("describe", path, "--target", "y")
        peaks[factor] = found
    for command, small in peaks[1].items():
        assert peaks[4][command] <= 1.2 * small, command


@pytest.mark.parametrize("command", ["compare", "fit"])
def test_class_of_which_no_row_is_drawn_plays_no_part_aloud(
    prudent, little_memory, rows, tmp_path, command
):
    y = rows["y"].astype(object)
    y[700] = "rare"
    path = tmp_path / "table.parquet"
    columns = {"p": rows["p"], "q": rows["q"], "y": y.tolist()}
    parquet.write_table(pa.table(columns), path)
    little_memory()
    more = {
        "compare": ("--methods", "minimax", "--baselines", "lda"),
        "fit": ("--method", "lda", "--promise", "error <= 30%", "-o", tmp_path / "m"),
    }
    outcome = prudent(command, path, "--target", "y", "--sample", 300, *more[command])
    assert outcome.code == 0, outcome.err
    assert "no row of 'rare' was drawn: a class without rows plays no" in outcome.err
    if command == "fit":
        assert load(tmp_path / "m").classes_.tolist() == ["u", "v", "w"]
    else:
        assert "rare" not in outcome.out
