"""A model that the command line wrote, loaded in Python: columns by their names."""

from __future__ import annotations

import csv
import io
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import csv as arrow_csv

from prudent import load, predict_set

N_ROWS = 240
NEW_ROWS = 60


def write_rows(path, n, seed, *, words):
    """A table whose columns have very different scales, so that order matters."""
    rng = np.random.default_rng(seed)
    label = rng.choice(["no", "yes"], n)
    yes = label == "yes"
    columns = {
        "income": np.round(1000 + 400 * yes + 200 * rng.normal(size=n), 3),
        "share": np.round(rng.normal(size=n) - yes, 4),
        "age": rng.integers(20, 60, n) + 5 * yes,
    }
    if words:
        columns["income"][::17] = np.nan
        colour = np.where(yes, "red", "green").astype(object)
        colour[::3] = "blue"
        colour[::13] = None
        columns["colour"] = colour
        columns["zip"] = rng.choice(["01", "02", "X3"], n)
    frame = pd.DataFrame({**columns, "answer": label})
    frame.to_csv(path, index=False)
    return path


def written_by(prudent, folder, arguments, *, words):
    train = write_rows(folder / "train.csv", N_ROWS, 0, words=words)
    new = write_rows(folder / "new.csv", NEW_ROWS, 1, words=words)
    model = folder / "m.prudent"
    detects = arguments[0] == "detect"
    out = "--model-out" if detects else "-o"
    outcome = prudent(
        arguments[0], train, "--target", "answer", *arguments[1:], out, model
    )
    assert outcome.code == 0, outcome.err
    said = prudent("predict", new, "--target", "answer", "-m", model)
    assert said.code == 0, said.err
    return load(model), new, list(csv.DictReader(io.StringIO(said.out)))


def frames(path):
    """The table as three libraries read it, its columns reversed, one in addition."""
    pandas = pd.read_csv(path)
    pandas = pandas[[*reversed(pandas.columns)]].assign(extra=1.0)
    polars = pl.read_csv(path)
    polars = polars.select(pl.lit("x").alias("extra"), *reversed(polars.columns))
    arrow = arrow_csv.read_csv(path)
    arrow = arrow.select([*reversed(arrow.column_names)])
    return {"pandas": pandas, "polars": polars, "pyarrow": arrow}


MODELS = {
    "plain": ("fit", "--method", "logistic"),
    "moments": ("fit", "--method", "minimax"),
    "trees": ("fit", "--method", "boosting"),
    "conformal": (
        *("fit", "--method", "conformal"),
        *("--promise", "coverage >= 80%", "--average"),
    ),
    "conformal held out": (
        *("fit", "--method", "conformal", "--promise", "coverage >= 80%"),
    ),
    "conformal around": (
        *("fit", "--method", "logistic", "--promise", "coverage >= 80%"),
    ),
    "selective": ("fit", "--method", "logistic", "--promise", "error <= 30%"),
    "neyman pearson": ("fit", "--method", "logistic", "--promise", "missed yes <= 20%"),
    "low density": (
        *("detect", "--normal", "no", "--method", "low-density"),
        *("--false-alarm", "0.1"),
    ),
    "minimax detector": (
        *("detect", "--normal", "no", "--method", "minimax", "--false-alarm", "0.1"),
    ),
    "conformal detector": ("detect", "--normal", "no", "--false-alarm", "0.1"),
}


def answers_of(model, X):
    """What `prudent predict` prints, as text."""
    said = [str(label) for label in model.predict(X).tolist()]
    if hasattr(model, "answers"):
        pairs = zip(said, model.answers(X), strict=True)
        said = [label if answered else "" for label, answered in pairs]
    return said


# Of a word that no ordinary row has: prudent predict says so, too.
@pytest.mark.filterwarnings("ignore:Found unknown categories")
@pytest.mark.parametrize("words", [False, True], ids=["numbers", "words and gaps"])
@pytest.mark.parametrize("name", MODELS)
def test_columns_are_matched_by_name(prudent, tmp_path, name, words):
    model, new, printed = written_by(prudent, tmp_path, MODELS[name], words=words)
    expected = [row["prediction"] for row in printed]
    assert len(set(expected)) > 1
    for library, frame in frames(new).items():
        assert answers_of(model, frame) == expected, library
        if "set" in printed[0]:
            members = predict_set(model, frame)
            sets = ["|".join(model.classes_[row]) for row in members]
            assert sets == [row["set"] for row in printed], library
            assert (model.p_values(frame) > 0).all()
    without = frames(new)["pandas"].drop(columns=["share"])
    with pytest.raises(ValueError, match="the table has no column 'share'"):
        model.predict(without)
    with pytest.raises(ValueError, match="Closest: 'Share'"):
        model.predict(without.assign(Share=1.0))


@pytest.mark.filterwarnings("ignore:Found unknown categories")
@pytest.mark.parametrize("words", [False, True], ids=["numbers", "words and gaps"])
@pytest.mark.parametrize("name", ["plain", "conformal", "selective", "low density"])
def test_an_array_has_the_columns_of_the_fit(prudent, tmp_path, name, words):
    model, new, _ = written_by(prudent, tmp_path, MODELS[name], words=words)
    rows = pd.read_csv(new).drop(columns=["answer"])
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        said = model.predict(rows.to_numpy())
    assert said.tolist() == model.predict(rows).tolist()
    wrong_width = rows.to_numpy()[:, :-1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ValueError, match="is expecting . features as input"):
            model.predict(wrong_width)


@pytest.mark.parametrize("name", MODELS)
def test_the_promise_is_at_hand(prudent, tmp_path, name):
    model, _, _ = written_by(prudent, tmp_path, MODELS[name], words=False)
    if name in ("plain", "trees"):
        assert not hasattr(model, "guarantees_")
    else:
        assert "assuming" in str(model.guarantees_[0])


def test_what_cannot_be_read_as_it_was_is_an_error(prudent, tmp_path):
    model, new, _ = written_by(prudent, tmp_path, MODELS["plain"], words=True)
    rows = pd.read_csv(new)
    with pytest.raises(ValueError, match="column 'age' holds 'old', where the model"):
        model.predict(rows.assign(age="old"))
    with pytest.raises(ValueError, match="'zip' holds Int64, where .* to words"):
        model.predict(rows.assign(zip=1))


@pytest.mark.parametrize("missing", [None, float("nan"), "", "NA", "?"])
def test_every_spelling_of_a_missing_word_counts(prudent, tmp_path, missing):
    model, new, printed = written_by(prudent, tmp_path, MODELS["plain"], words=True)
    rows = pd.read_csv(new).astype({"colour": object})
    rows.loc[rows["colour"].isna(), "colour"] = missing
    assert model.predict(rows).tolist() == [row["prediction"] for row in printed]


def test_a_saved_model_is_fitted_again_like_any_other(prudent, tmp_path):
    from sklearn.base import clone

    model, new, _ = written_by(prudent, tmp_path, MODELS["selective"], words=True)
    rows = pd.read_csv(tmp_path / "train.csv")
    again = clone(model).fit(rows.drop(columns=["answer"]), rows["answer"])
    frame = pd.read_csv(new)
    np.testing.assert_array_equal(again.answers(frame), model.answers(frame))
    pa_rows = pa.Table.from_pandas(frame)
    np.testing.assert_array_equal(again.predict(pa_rows), model.predict(frame))
