"""What the command line may import before there is work to do."""

from __future__ import annotations

import gzip
import subprocess
import sys
from importlib.metadata import version

import pytest

from prudent.datasets import BUNDLED

HEAVY = ("numpy", "scipy", "sklearn", "matplotlib", "pyarrow", "numba", "prudent.core")
PROBE = """
import sys
from prudent.cli import main
try:
    main({arguments!r})
except SystemExit as end:
    loaded = [name for name in {heavy!r} if name in sys.modules]
    print("LOADED", loaded, end.code, file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--help"], 0),
        (["compare", "--help"], 0),
        (["--version"], 0),
        (["datasets"], 0),
        (["datasets", "iris"], 0),
        (["datasets", "nothing"], 2),
        (["frobnicate"], 2),
        (["compare"], 2),
        (["compare", "iris", "--cv", "0"], 2),
        (["compare", "iris", "--methods", "svm"], 2),
        ([], 2),
    ],
)
def test_nothing_heavy_is_imported(arguments, code):
    probe = PROBE.format(arguments=arguments, heavy=HEAVY)
    ended = subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, text=True, check=True
    )
    assert f"LOADED [] {code}" in ended.stderr


def test_python_m_prudent_is_the_same_command():
    ended = subprocess.run(
        [sys.executable, "-m", "prudent", "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout.startswith("prudent ")
    lines = [line.split() for line in ended.stdout.splitlines()]
    names = ["prudent", "numpy", "scipy", "scikit-learn"]
    assert lines == [[name, version(name)] for name in names]


# What a stored model needs nothing of, when it answers. (Pandas is imported by
# scikit-learn itself, where it is installed.)
NOT_NEEDED = (
    *("numba", "matplotlib", "pytest", "dask", "polars", "clarabel", "IPython"),
    *("sklearn.utils._testing", "sklearn.mixture", "skops.io"),
    *("prudent.comparison", "prudent.evaluation", "prudent.report", "prudent.plots"),
    "prudent.conformal",
)
PREDICT = ["predict", "iris", "-m", "m"]
CERTIFY = ["certify", "new.csv", "-m", "m", "--target", "species"]
MONITOR = ["monitor", "m", "--data", "new.csv", "--target", "species"]


@pytest.mark.parametrize(
    ("command", "promise"),
    [
        (PREDICT, "none"),
        (PREDICT, "error <= 30%"),
        (CERTIFY, "none"),
        (CERTIFY, "error <= 30%"),
        (MONITOR, "error <= 30%"),
    ],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_a_stored_model_answers_without_what_it_does_not_need(
    prudent, tmp_path, command, promise
):
    model = tmp_path / "m"
    fit = ("fit", "iris", "--method", "logistic", "--promise", promise, "-o", model)
    assert prudent(*fit).code == 0
    head, *lines = (
        gzip.decompress(BUNDLED["iris"].path.read_bytes()).decode().splitlines()
    )
    new = [",".join(["9", *line.split(",")[1:]]) for line in lines]
    (tmp_path / "new.csv").write_text("\n".join([head, *new]) + "\n")
    probe = PROBE.format(arguments=command, heavy=NOT_NEEDED)
    ended = subprocess.run(
        [sys.executable, "-c", probe],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    # The measured columns of the new rows are wrong: the promise is broken.
    code = 7 if command is MONITOR else 0
    assert f"LOADED [] {code}" in ended.stderr, ended.stderr


def test_the_modules_of_the_reference_are_there_after_one_import():
    probe = (
        "import sys, prudent; assert 'matplotlib' not in sys.modules; "
        "print(prudent.plots.DriftDisplay.__name__, prudent.datasets.__name__, "
        "prudent.model_selection.cross_val_predict_set.__name__, "
        "prudent.metrics.__name__, {'io', 'dask', 'plots'} <= set(dir(prudent)))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, text=True, check=True
    )
    expected = (
        "DriftDisplay prudent.datasets cross_val_predict_set prudent.metrics True"
    )
    assert ended.stdout.split() == expected.split()
