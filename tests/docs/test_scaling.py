"""The page on scaling: its code runs, and its table is that of the measurements."""

import csv
import shlex
from itertools import takewhile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from benchmarks import growth, ratios
from pyarrow import parquet

from prudent.cli import main

PAGE = Path(__file__).parents[2] / "docs" / "scaling.rst"
NOT_RUN = "Spark and Ray"


def sections():
    """Text under each heading."""
    found, lines = {}, PAGE.read_text(encoding="utf-8").splitlines()
    title = ""
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if following and set(following) <= {"-", "="} and len(following) >= len(line):
            title = line
        found.setdefault(title, []).append(line)
    return found


def blocks(lines, language):
    """Code of the blocks of one language."""
    for number, line in enumerate(lines):
        if line == f".. code-block:: {language}":
            code = takewhile(
                lambda text: not text or text.startswith("   "), lines[number + 1 :]
            )
            yield "\n".join(text[3:] for text in code)


@pytest.fixture
def table(tmp_path, monkeypatch):
    """Work in a folder with the files that the page names."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 1000)
    X = rng.normal(size=(1000, 3)) + y[:, None]
    rows = pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "label": y})
    (tmp_path / "table").mkdir()
    parquet.write_table(rows, tmp_path / "table.parquet")
    for part in range(2):
        parquet.write_table(
            rows.slice(500 * part, 500), tmp_path / "table" / f"{part}.parquet"
        )
    monkeypatch.chdir(tmp_path)
    return X, y


# dask's own call of pandas, when it reads parquet
@pytest.mark.filterwarnings("ignore:The inplace keyword in DataFrame.reset_index")
def test_python_of_the_page_runs(table):
    X, y = table
    names = {}
    for title, lines in sections().items():
        if title != NOT_RUN:
            for code in blocks(lines, "python"):
                exec(code, names)
    assert names["wrong"] < 0.3 * len(y)
    assert names["answers"].compute().shape == (len(X), 2)


def test_snippets_that_are_not_run_are_python_and_called_so():
    lines = sections()[NOT_RUN]
    snippets = list(blocks(lines, "python"))
    assert len(snippets) == 2
    assert "no test runs them" in "\n".join(lines)
    for snippet in snippets:
        compile(snippet, NOT_RUN, "exec")


@pytest.mark.slow
def test_commands_of_the_page_run(table, capsys):
    commands = [
        line.removeprefix("$ ")
        for lines in sections().values()
        for code in blocks(lines, "console")
        for line in code.splitlines()
        if line.startswith("$ ")
    ]
    assert len(commands) == 3
    for command in commands:
        with pytest.raises(SystemExit) as end:
            main(shlex.split(command)[1:])
        assert end.value.code == 0
    for name in ("model.prudent", "answers.csv", "report.html"):
        assert Path(name).stat().st_size > 0


def test_growth_table_is_made_of_the_measurements():
    with growth.TABLE.open(newline="", encoding="utf-8") as stream:
        assert list(csv.reader(stream)) == growth.table()


def test_each_benchmark_that_runs_by_default_has_workloads():
    folder = Path(ratios.__file__).parent
    families = {path.stem for path in folder.glob("*.py")} - ratios.NOT_FAMILIES
    for family in families:
        text = (folder / f"{family}.py").read_text(encoding="utf-8")
        assert "\ndef workloads(" in text, family
