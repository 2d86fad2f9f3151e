"""From a table to answers in Python: each step by what the one before has printed."""

from __future__ import annotations

import csv
import io
import shlex

import numpy as np
import pandas as pd
import polars as pl
import pytest

from prudent import load, predict_set


def write_table(path, n, seed):
    """Numbers of different scales, a text column, and gaps in both."""
    rng = np.random.default_rng(seed)
    label = rng.choice(["healthy", "ill"], n)
    ill = label == "ill"
    dose = np.round(1000 + 500 * ill + 250 * rng.normal(size=n), 2)
    dose[::17] = np.nan
    ward = np.where(ill, "south", "north").astype(object)
    ward[::3] = "west"
    ward[::13] = None
    frame = pd.DataFrame(
        {
            "dose": dose,
            "ward": ward,
            "level": np.round(rng.normal(size=n) - ill, 4),
            "state": label,
        }
    )
    frame.to_csv(path, index=False)
    return path


def printed_command(output, word):
    """Arguments of the command that the output tells to run."""
    (line,) = [line for line in output.splitlines() if f"prudent {word} " in line]
    return shlex.split(line[line.index(f"prudent {word} ") :])[1:]


@pytest.mark.parametrize(
    "promise", ["coverage >= 80% in every class", "error <= 20%", "missed ill <= 20%"]
)
def test_from_a_comparison_to_the_answers_of_a_loaded_model(
    prudent, tmp_path, monkeypatch, promise
):
    monkeypatch.chdir(tmp_path)
    write_table("train.csv", 360, 0)
    new = write_table("new.csv", 80, 1)
    asked = ("--target", "state", "--promise", promise)
    few = ("--methods", "conformal", "--baselines", "logistic,lda")
    compared = prudent("compare", "train.csv", *asked, *few)
    assert compared.code == 0, compared.err
    fit = printed_command(compared.out, "fit")
    fitted = prudent(*fit)
    assert fitted.code == 0, fitted.err
    path = fit[fit.index("-o") + 1]
    said = prudent("predict", new, "-m", path, "--target", "state")
    assert said.code == 0, said.err
    printed = list(csv.DictReader(io.StringIO(said.out)))
    assert len(printed) == 80

    model = load(path)
    pandas = pd.read_csv(new)
    reordered = pandas[[*reversed(pandas.columns)]].assign(extra=1.0)
    names = ["level", "state", "dose", "ward"]
    for frame in (reordered, pl.read_csv(new).select(names)):
        labels = [str(label) for label in model.predict(frame).tolist()]
        if hasattr(model, "answers"):
            pairs = zip(labels, model.answers(frame), strict=True)
            labels = [label if answered else "" for label, answered in pairs]
        assert labels == [row["prediction"] for row in printed]
        if "set" in printed[0]:
            members = predict_set(model, frame)
            sets = ["|".join(model.classes_[row]) for row in members]
            assert sets == [row["set"] for row in printed]
    assert len({row["prediction"] for row in printed}) > 1
