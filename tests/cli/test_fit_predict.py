"""`prudent fit` and `prudent predict`: a model file, and rows in any dress."""

from __future__ import annotations

import csv
import io
import json
import os
import pickle
import re
import shlex
import subprocess
import sys
import zipfile
from itertools import product
from types import ModuleType

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris
from sklearn.dummy import DummyClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from prudent import (
    ConformalClassifier,
    ImpreciseDiscriminantAnalysis,
    MinimaxProbabilityClassifier,
    load,
    predict_set,
    save,
)
from prudent.core.binomial import high_probability_rank
from prudent.datasets import BUNDLED
from prudent.io import read_table, training_data
from prudent.persistence import HEADER

X, Y = load_iris(return_X_y=True)
IRIS = pa.table(
    {
        f"{part}_{side}_cm": X[:, j]
        for j, (part, side) in enumerate(
            product(("sepal", "petal"), ("length", "width"))
        )
    }
)
CLASSES = ("setosa", "versicolor", "virginica")
METHODS = ("optimistic", "minimax", "calibrated", "imprecise", "rejection")
ROWS = [(i, i * i % 7 + 0.5, "uv"[i % 3 == 0]) for i in range(30)]
TABLE = "a,b,y\n" + "".join(f"{a},{b},{y}\n" for a, b, y in ROWS)


def parsed(printed: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(printed)))


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    """A folder in which fitted models of iris are kept."""
    return tmp_path_factory.mktemp("models")


@pytest.fixture
def iris_model(prudent, models):
    def fitted(method: str):
        path = models / method
        if not path.exists():
            assert prudent("fit", "iris", "--method", method, "-o", path).code == 0
        return path

    return fitted


@pytest.fixture
def small_model(prudent, table_file, tmp_path):
    """Minimax on a small table with the columns a and b."""
    path = tmp_path / "model"
    fit = ("--target", "y", "--method", "minimax", "-o", path)
    assert prudent("fit", table_file(TABLE, "train.csv"), *fit).code == 0
    return path


@pytest.mark.parametrize("method", METHODS)
def test_predictions_are_those_of_the_estimator(prudent, iris_model, method):
    path = iris_model(method)
    estimator = load(path)
    outcome = prudent("predict", "iris", "-m", path, "--keep", "species")
    rows = parsed(outcome.out)
    assert outcome.code == 0
    assert [row["prediction"] for row in rows] == estimator.predict(IRIS).tolist()
    assert {row["species"] for row in rows} == set(CLASSES)


def test_fit_states_the_promise(prudent, tmp_path):
    outcome = prudent("fit", "iris", "--method", "minimax", "-o", tmp_path / "m")
    assert "The class error rate of each of the 3 classes is at most" in outcome.out


def test_fit_says_when_nothing_is_promised(prudent, tmp_path):
    outcome = prudent("fit", "iris", "--method", "imprecise", "-o", tmp_path / "m")
    assert "No promise." in outcome.out


def test_a_promise_that_cannot_be_made_writes_no_model(prudent, table_file, tmp_path):
    rng = np.random.default_rng(0)
    lines = [f"{x},{y}" for x, y in zip(rng.normal(size=300), "ab" * 150, strict=True)]
    rows = table_file("x,y\n" + "\n".join(lines) + "\n")
    path = tmp_path / "none.prudent"
    outcome = prudent(
        *("fit", rows, "--target", "y", "--method", "lda"),
        *("--promise", "error <= 5%", "-o", path),
    )
    assert outcome.code == 6
    assert "lda cannot promise 'error <= 5%' on these rows" in outcome.err
    assert not path.exists()


def test_a_limit_that_is_not_proved_is_refused_with_one_that_is(
    prudent, table_file, tmp_path
):
    """The refusal names a limit that the same rows prove, and fit then makes it."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, 150)
    x = (rng.normal(size=150) + 2.2 * codes).round(3)
    lines = [f"{a},{'ab'[k]}" for a, k in zip(x, codes, strict=True)]
    rows = table_file("x,y\n" + "\n".join(lines) + "\n")
    fit = (
        "fit",
        rows,
        "--target",
        "y",
        "--method",
        "lda",
        "-o",
        tmp_path / "m.prudent",
    )
    refused = prudent(*fit, "--promise", "error <= 3%")
    assert refused.code == 6
    (limit, share) = re.search(
        r"'(error <= [\d.]+%)' would answer (\d+) % of them", refused.err
    ).groups()
    assert "chosen by looking at them is certified by fresh rows" in refused.err
    assert refused.err.count("nothing is answered") == 1
    made = prudent(*fit, "--promise", limit)
    assert made.code == 0
    (promise,) = load(tmp_path / "m.prudent").guarantees_
    evidence = promise.evidence
    answered = evidence["answered"] / evidence["calibration rows"]
    assert f"{100 * answered:.0f}" == share


def test_sets_that_all_hold_every_class_are_said_to_decide_nothing(
    prudent, table_file, tmp_path
):
    rng = np.random.default_rng(0)
    model = ("--target", "y", "-o", tmp_path / "m.prudent")
    asked = ("--promise", "coverage >= 95%", "--average")
    noise = [f"{a:.3f},{'abc'[i % 3]}" for i, a in enumerate(rng.normal(size=64))]
    told = " has all 3 classes in its set: this model decides nothing."
    rows = table_file("x,y\n" + "\n".join(noise) + "\n")
    # All rows have the same scores, of every label.
    outcome = prudent("fit", rows, *model, *asked, "--method", "majority", "--quiet")
    assert outcome.code == 0
    assert f"each of 64 rows of this table{told}" in outcome.err
    apart = [f"{9 * (i % 3) + i / 99:.3f},{'abc'[i % 3]}" for i in range(90)]
    rows = table_file("x,y\n" + "\n".join(apart) + "\n")
    outcome = prudent("fit", rows, *model, *asked, "--method", "lda")
    assert outcome.code == 0
    assert told not in outcome.err


def test_words_that_only_rows_held_out_have_are_not_told(prudent, table_file, tmp_path):
    words = [
        f"{i % 7},{'w' * (i + 1) if i % 10 == 0 else 'k'},{'ab'[i % 2]}"
        for i in range(60)
    ]
    rows = table_file("x,word,y\n" + "\n".join(words) + "\n")
    fit = ("fit", rows, "--target", "y", "--method", "lda", "--categorical", "onehot")
    promise = ("--promise", "error <= 40%", "-o", tmp_path / "m.prudent")
    outcome = prudent(*fit, *promise)
    assert "were not in the rows of the fit" not in outcome.err


def gappy_iris(table_file):
    """Rows of iris with a gap in every tenth cell."""
    X, y = load_iris(return_X_y=True)
    gone = np.random.default_rng(0).random(X.shape) < 0.1
    lines = [
        ",".join(
            ["" if g else f"{x}" for x, g in zip(row, gaps, strict=True)] + ["abc"[k]]
        )
        for row, gaps, k in zip(X, gone, y, strict=True)
    ]
    return table_file("\n".join(["p,q,r,s,y", *lines]) + "\n")


@pytest.mark.parametrize("asked", ["auto", "full", "cross"])
def test_what_fills_gaps_is_inside_conformal_prediction_without_a_wish(
    prudent, table_file, tmp_path, asked
):
    path, table = tmp_path / "m.prudent", gappy_iris(table_file)
    outcome = prudent(
        *("fit", table, "--target", "y", "--method", "conformal"),
        *("--param", f"method={asked}", "-o", path),
    )
    assert "exchangeable with the calibration rows" in outcome.out
    assert "preparation" in dict(load(path).estimator_.steps)
    assert prudent("predict", table, "-m", path).code == 0


@pytest.mark.parametrize(
    ("rows", "select"), [(gappy_iris, ()), (lambda _: "iris", ("--select", "cv"))]
)
def test_rows_that_were_learned_from_before_promise_nothing(
    prudent, table_file, tmp_path, rows, select
):
    path = tmp_path / "m.prudent"
    fit = ("fit", "--method", "calibrated", "--param", "stopping=holdout", "-o", path)
    whole = prudent(*fit, "iris")
    assert "The error rate is at most" in whole.out
    table = rows(table_file)
    target = () if table == "iris" else ("--target", "y")
    outcome = prudent(*fit, table, *target, *select)
    assert "No promise." in outcome.out
    assert "no promise by rows held out" in outcome.err


@pytest.mark.parametrize("method", ["rejection", "prudent.BestClassifier"])
def test_a_promise_that_its_parts_make_goes_with_what_was_learned_before(
    prudent, table_file, tmp_path, method
):
    path = tmp_path / "m.prudent"
    fit = ("fit", "--method", method, "-o", path)
    assert "No promise." not in prudent(*fit, "iris").out
    outcome = prudent(*fit, gappy_iris(table_file), "--target", "y")
    assert "No promise." in outcome.out
    assert "no promise by rows held out" in outcome.err
    assert not load(path).guarantees_


def test_a_promise_on_average_is_that_of_compare(prudent, tmp_path):
    decided = {}
    for option in ((), ("--average",)):
        path = tmp_path / "model.prudent"
        outcome = prudent(
            *("fit", "breast_cancer", "--method", "conformal", "-o", path, *option),
            *("--promise", "coverage >= 95%"),
        )
        (promise,) = load(path).guarantees_
        assert (promise.average_over is None) == (option == ())
        about = "this very model, with confidence 0.95, so that prudent monitor can"
        assert (about in outcome.err) == (option == ())
        predicted = prudent("predict", "breast_cancer", "-m", path, "--set")
        decided[option] = sum("|" not in row for row in predicted.out.splitlines())
    assert decided[()] <= decided[("--average",)]


IN_EVERY_CLASS = "coverage >= 80% in every class"


def test_confidence_is_that_of_all_classes_at_once(prudent, tmp_path):
    path = tmp_path / "model.prudent"
    fit = ("fit", "digits", "--method", "lda", "--promise", IN_EVERY_CLASS, "-o", path)
    for confidence in (0.9, 0.97):
        outcome = prudent(*fit, "--confidence", confidence)
        assert outcome.code == 0, outcome.err
        assert (
            f"with confidence {confidence:g} for all 10 classes at once" in outcome.err
        )
        promises = load(path).guarantees_
        assert [promise.scope for promise in promises] == list(range(10))
        for promise in promises:
            assert promise.confidence == pytest.approx(confidence)
            assert promise.evidence["claims"] == 10
            # As Neyman-Pearson: the product over classes is the confidence.
            n, each = promise.evidence["calibration rows"], confidence**0.1
            rank = high_probability_rank(int(n), 0.2, each)
            assert promise.evidence["rank"] == rank


def test_rows_that_suffice_for_a_confidence_are_counted_as_they_are_held_out(
    prudent, tmp_path
):
    """66 of 217 rows are held out and prove it, 65 of 216 do not; so 29 of 94."""
    path, table = tmp_path / "model.prudent", tmp_path / "iris.csv"
    asked = ("--method", "lda", "-o", path, "--promise", "coverage >= 90%")
    outcome = prudent("fit", "iris", *asked, "--confidence", "0.999")
    assert "needs 217 rows, and there are 150" in outcome.err
    iris = load_iris(as_frame=True).frame.sample(94, random_state=0)
    for frame, code in ((iris, 0), (iris[1:], 6)):
        frame.to_csv(table, index=False)
        outcome = prudent(
            *("fit", table, "--target", "target"), *asked, "--confidence", "0.95"
        )
        assert outcome.code == code, outcome.err
    assert load(path).guarantees_[0].evidence["calibration rows"] == 29


def test_rows_that_suffice_for_a_confidence_are_groups_where_groups_count(
    prudent, table_file, tmp_path
):
    """60 patients of each class do not suffice, with one row each or with ten."""
    rng = np.random.default_rng(0)
    patients = np.repeat(np.arange(120), 10)
    a = 4 * (patients % 2) + rng.normal(size=1200)
    lines = [f"{x:.4f},{p},{'uv'[p % 2]}" for x, p in zip(a, patients, strict=True)]
    path = table_file("a,patient,y\n" + "\n".join(lines) + "\n")
    model = tmp_path / "m.prudent"
    given = (
        *("fit", path, "--target", "y", "--groups", "patient", "--method", "lda"),
        *("--promise", "coverage >= 90% in every class", "-o", model),
    )
    found = prudent(*given)
    assert "the promise is on average over training samples" in found.err
    assert "needs 234 groups of class 'u', and there are 60" in found.err
    sets = load(model).predict_set(pa.table({"a": [0.0]}).to_pandas())
    assert sets.sum() == 1
    refused = prudent(*given, "--confidence", "0.95")
    assert refused.code == 6
    assert "groups of class 'u', and there are 60. Ask for" in refused.err
    assert "give more groups" in refused.err


def test_confidence_is_never_ignored(prudent, tmp_path):
    path = tmp_path / "model.prudent"
    fit = ("fit", "iris", "--method", "lda", "-o", path)
    promised = (*fit, "--promise", IN_EVERY_CLASS)
    outcome = prudent(*promised, "--confidence", "0.999")
    assert outcome.code == 6
    assert "needs 120 rows of class 'setosa', and there are 50" in outcome.err
    assert not path.exists()
    outcome = prudent(*promised)
    assert "the promise is on average over training samples, so that" in outcome.err
    assert load(path).guarantees_[0].average_over == "training samples"
    for given, said in (
        ((*promised, "--confidence", "0.9", "--average"), "leave one out"),
        ((*fit, "--confidence", "0.9"), "give --promise, too"),
        ((*fit, "--promise", "error <= 5%", "--average"), "--average is for promises"),
    ):
        outcome = prudent(*given)
        assert outcome.code == 2
        assert said in outcome.err


def test_confidence_of_a_detector(prudent, tmp_path):
    path = tmp_path / "model.prudent"
    fit = ("fit", "breast_cancer", "--method", "conformal", "--normal", "benign")
    promised = (*fit, "--promise", "false alarm <= 5%", "-o", path)
    for confidence in (0.9, 0.99):
        assert prudent(*promised, "--confidence", confidence).code == 0
        assert load(path).guarantees_[0].confidence == confidence
    assert prudent(*promised, "--average").code == 0
    assert load(path).guarantees_[0].average_over == "training samples"
    outcome = prudent(*promised, "--confidence", "0.999999")
    assert outcome.code == 6
    assert "with confidence 0.999999" in outcome.err


def test_probabilities_are_added(prudent, iris_model):
    path = iris_model("calibrated")
    rows = parsed(prudent("predict", "iris", "-m", path, "--proba").out)
    found = [[float(row[f"probability {c}"]) for c in CLASSES] for row in rows]
    np.testing.assert_array_equal(found, load(path).predict_proba(IRIS))


def test_sets_are_added(prudent, iris_model):
    path = iris_model("imprecise")
    rows = parsed(prudent("predict", "iris", "-m", path, "--set").out)
    sizes = [len(row["set"].split("|")) for row in rows]
    assert sizes == load(path).predict_set(IRIS).sum(axis=1).tolist()


@pytest.mark.parametrize(
    ("method", "option", "words"),
    [
        ("rejection", "--proba", "gives no probabilities"),
        ("calibrated", "--set", "gives no sets"),
    ],
)
def test_what_a_method_cannot_say_is_refused(
    prudent, iris_model, method, option, words
):
    outcome = prudent("predict", "iris", "-m", iris_model(method), option)
    assert outcome.code == 4
    assert words in outcome.err


def test_columns_are_matched_by_name_in_any_order(prudent, small_model, table_file):
    straight = prudent("predict", table_file(TABLE), "-m", small_model).out
    swapped = "y,b,extra,a\n" + "".join(f"{y},{b},7,{a}\n" for a, b, y in ROWS)
    outcome = prudent("predict", table_file(swapped, "s.csv"), "-m", small_model)
    assert outcome.out == straight
    assert "note: columns the model does not use: y, extra" in outcome.err


def test_missing_column_is_named(prudent, small_model, table_file):
    outcome = prudent("predict", table_file("a,B\n1,2\n"), "-m", small_model)
    assert outcome.code == 3
    assert "no column 'b'. Columns: a, B. Closest: 'B'" in outcome.err


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("1,x\n", "column 'b' is text: 'x' at line 2"),
        ("1,\n", "1 missing value in 1 column (b: 1)"),
        ("1,inf\n", "column 'b' has 1 infinite value (first at line 2)"),
        ("", "no data rows"),
    ],
)
def test_bad_rows_are_refused(prudent, small_model, table_file, rows, words):
    outcome = prudent("predict", table_file("a,b\n" + rows), "-m", small_model)
    assert outcome.code == 3
    assert words in outcome.err
    assert "--drop" not in outcome.err.replace("--missing drop-rows", "")
    assert "--categorical" not in outcome.err


def test_output_file_holds_the_predictions(prudent, small_model, table_file, tmp_path):
    target = tmp_path / "out.csv"
    outcome = prudent("predict", table_file(TABLE), "-m", small_model, "-o", target)
    assert outcome.out == ""
    assert len(parsed(target.read_text(encoding="utf-8"))) == len(ROWS)


def test_filling_and_encoding_of_training_are_part_of_the_model(
    prudent, table_file, tmp_path
):
    rows = [(i, ["red", "green", "blue"][i % 3], "uv"[i % 3 == 0]) for i in range(30)]
    train = "a,c,y\n" + "".join(f"{a},{c},{y}\n" for a, c, y in rows) + ",red,v\n"
    model = tmp_path / "model"
    fit = ("--method", "minimax", "-o", model, "--param", "covariance=0.1")
    outcome = prudent("fit", table_file(train), "--target", "y", *fit)
    assert outcome.code == 0
    assert "1 text column encoded, 1 missing cell filled" in outcome.err
    # The median of 0..29 stands for a missing cell; an unknown word is a rare one.
    new = "c,a\nred,\nred,14.5\ngreen,3\nmauve,3\n,3\n"
    outcome = prudent("predict", table_file(new, "test.csv"), "-m", model)
    assert outcome.code == 0
    predicted = outcome.out.splitlines()[1:]
    assert predicted[:3] == ["v", "v", "u"]
    assert len(predicted) == 5


@pytest.mark.parametrize(
    ("promise", "sentence", "heading"),
    [
        (
            "coverage >= 80% in every class",
            "The coverage of class 'u' is",
            "prediction,set",
        ),
        ("coverage >= 80%", "The coverage is", "prediction,set"),
        (
            "error <= 40%",
            "The selective error rate is at most 0.4",
            "prediction,answered",
        ),
        ("missed u <= 30%", "The class error rate of class 'u' is", "prediction"),
    ],
)
def test_promise_travels_with_the_model(
    prudent, table_file, tmp_path, promise, sentence, heading
):
    rows = "".join(f"{i % 5},{'rg'[i % 2]},{'uv'[i % 2]}\n" for i in range(120))
    path = table_file("a,c,y\n" + "1,,u\n,r,u\n" + rows)
    model = tmp_path / "model"
    fitted = prudent(
        *("fit", path, "--target", "y", "--method", "logistic"),
        *("--promise", promise, "-o", model),
    )
    assert fitted.code == 0
    assert sentence in fitted.out
    predicted = prudent("predict", path, "-m", model)
    assert predicted.code == 0
    assert predicted.out.splitlines()[0] == heading
    assert len(predicted.out.splitlines()) == 123


def test_rows_that_are_not_answered_are_empty(prudent, tmp_path):
    model = tmp_path / "m"
    options = ("--promise", "error <= 5%", "-o", model)
    prudent("fit", "breast_cancer", "--method", "minimax", *options)
    lines = prudent("predict", "breast_cancer", "-m", model).out.splitlines()[1:]
    estimator = load(model)
    answered = [line.endswith(",True") for line in lines]
    assert [not line.startswith(",") for line in lines] == answered
    X = load_breast_cancer_rows()
    assert answered == estimator.answers(X).tolist()
    assert 0 < sum(answered) < len(answered)


def load_breast_cancer_rows():
    table = read_table(str(BUNDLED["breast_cancer"].path), text_columns=["diagnosis"])
    return training_data(table, "diagnosis").frame


def test_detector_can_be_deployed(prudent, tmp_path):
    model = tmp_path / "m"
    outcome = prudent(
        *("detect", "iris", "--target", "species", "--normal", "setosa"),
        *("--method", "conformal", "--promise", "false alarm <= 10%"),
        *("--model-out", model),
    )
    assert outcome.code == 0
    assert "The false alarm rate of class 'setosa' is at most 0.09804" in outcome.out
    rows = parsed(prudent("predict", "iris", "-m", model).out)
    assert [row["prediction"] for row in rows[50:]] == ["-1"] * 100
    assert all((float(row["score"]) < 0) == (row["prediction"] == "-1") for row in rows)


def test_parameters_are_set(prudent, tmp_path):
    model = tmp_path / "m"
    options = ("--param", "covariance=0.25", "--param", "objective=minimax")
    assert (
        prudent("fit", "iris", "--method", "minimax", "-o", model, *options).code == 0
    )
    assert load(model)[-1].covariance == 0.25


@pytest.mark.parametrize("given", ["C=0.0001", "logisticregression__C=0.0001"])
def test_parameters_of_a_pipeline_are_those_of_its_last_step(prudent, tmp_path, given):
    model = tmp_path / "m"
    fit = ("fit", "iris", "--method", "logistic", "-o", model)
    assert prudent(*fit, "--param", given).code == 0
    assert load(model)[-1].C == 0.0001
    compared = prudent(
        *("compare", "iris", "--promise", "none", "--methods", "logistic"),
        *("--baselines", "none", "--param", f"logistic.{given}", "--json", "-"),
    )
    (row,) = json.loads(compared.out)["rows"]
    assert row["parameters"]["logisticregression__C"] == "0.0001"


@pytest.mark.parametrize(
    ("method", "assignment", "says"),
    [
        ("minimax", "colour=red", "MinimaxProbabilityClassifier has no parameter 'col"),
        ("logistic", "colour=red", "choose among C, class_weight"),
        ("minimax", "covariance", "--param takes NAME=VALUE, got 'covariance'"),
    ],
)
def test_unknown_parameter_is_a_usage_error(
    prudent, tmp_path, method, assignment, says
):
    fit = ("fit", "iris", "--method", method, "-o", tmp_path / "m")
    outcome = prudent(*fit, "--param", assignment)
    assert outcome.code == 2
    assert says in outcome.err


def test_parameter_out_of_range_is_a_data_error(prudent, tmp_path):
    fit = ("fit", "iris", "--method", "minimax", "-o", tmp_path / "m")
    outcome = prudent(*fit, "--param", "mean_radius=-1")
    assert outcome.code == 3
    assert "mean_radius" in outcome.err


@pytest.mark.parametrize("method", ["optimistic", "minimax", "imprecise"])
def test_selection_says_what_it_chose(prudent, tmp_path, method):
    model = tmp_path / "m"
    outcome = prudent("fit", "iris", "--method", method, "-o", model, "--select", "cv")
    assert outcome.code == 0
    assert "chosen by 5-fold cross-validation: {" in outcome.out


def test_nothing_to_select_is_a_usage_error(prudent, tmp_path):
    outcome = prudent(
        *("fit", "iris", "--method", "rejection", "-o", tmp_path / "m"),
        *("--select", "cv"),
    )
    assert outcome.code == 2
    assert "rejection has no parameter to choose" in outcome.err


def test_model_saved_from_a_data_frame_predicts(prudent, tmp_path):
    frame = load_iris(as_frame=True).data
    frame.columns = [
        "sepal_length_cm",
        "sepal_width_cm",
        "petal_length_cm",
        "petal_width_cm",
    ]
    model = MinimaxProbabilityClassifier().fit(frame, Y)
    save(model, tmp_path / "m")
    rows = parsed(prudent("predict", "iris", "-m", tmp_path / "m").out)
    assert [int(row["prediction"]) for row in rows] == model.predict(frame).tolist()


def test_model_saved_from_arrays_has_no_names(prudent, tmp_path):
    model = MinimaxProbabilityClassifier().fit(X, Y)
    save(model, tmp_path / "m")
    outcome = prudent("predict", "iris", "-m", tmp_path / "m")
    assert outcome.code == 4
    assert "does not know the names of its features" in outcome.err


BAD_MODELS = {
    "absent": (None, "cannot read"),
    "pickle": (pickle.dumps([1, 2]), "is a pickle, which can run any code"),
    "table": (b"a,b,y\n1,2,3\n", "is not a model file of prudent"),
}


@pytest.mark.parametrize("case", BAD_MODELS)
def test_bad_model_file_is_refused(prudent, tmp_path, case):
    content, words = BAD_MODELS[case]
    path = tmp_path / "model"
    if content is not None:
        path.write_bytes(content)
    outcome = prudent("predict", "iris", "-m", path)
    assert outcome.code == 4
    assert words in outcome.err
    assert outcome.err.count("\n") == 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": 99}, "has format 99"),
        ({"estimator": "x.Y"}, "was altered: it holds a"),
    ],
)
def test_newer_or_altered_model_is_refused(prudent, small_model, change, words):
    with zipfile.ZipFile(small_model) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members[HEADER] = json.dumps(json.loads(members[HEADER]) | change).encode()
    with zipfile.ZipFile(small_model, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    outcome = prudent("predict", "iris", "-m", small_model)
    assert outcome.code == 4
    assert words in outcome.err


GAPPED = TABLE.replace("\n1,1.5,", "\n1,,").replace("\n5,4.5,", "\n5,,")


def test_predict_takes_the_options_of_fit(prudent, table_file, tmp_path):
    rows = "".join(f"{a},{b},{'qr'[a % 2]},{a},{y}\n" for a, b, y in ROWS)
    path = table_file("a,b,word,id,y\n" + rows)
    model = tmp_path / "model"
    options = ("--target", "y", "--drop", "id", "--missing", "fill")
    options = (*options, "--categorical", "onehot", "--delimiter", ",")
    assert prudent("fit", path, *options, "--method", "lda", "-o", model).code == 0
    outcome = prudent("predict", path, *options, "-m", model)
    assert outcome.code == 0
    assert len(parsed(outcome.out)) == 30
    assert "does not use" not in outcome.err


def test_gaps_are_filled_as_the_model_has_learned(prudent, table_file, tmp_path):
    path, model = table_file(GAPPED), tmp_path / "model"
    fit = ("--target", "y", "--method", "minimax", "-o", model)
    assert prudent("fit", path, *fit).code == 0
    rows = parsed(prudent("predict", path, "-m", model).out)
    assert all(row["prediction"] in ("u", "v") for row in rows)


def test_gaps_that_the_model_cannot_fill_are_left_unanswered_on_request(
    prudent, small_model, table_file
):
    path = table_file(GAPPED)
    refused = prudent("predict", path, "-m", small_model)
    assert refused.code == 3
    assert refused.out == ""
    assert "--missing drop-rows leaves the answers of such rows empty" in refused.err
    assert "fill" not in refused.err  # that is what it does without being told
    outcome = prudent(
        "predict", path, "-m", small_model, "--missing", "drop-rows", "--keep", "a"
    )
    straight = parsed(prudent("predict", table_file(TABLE), "-m", small_model).out)
    said = [row["prediction"] for row in parsed(outcome.out)]
    assert [i for i, answer in enumerate(said) if answer == ""] == [1, 5]
    assert [s for i, s in enumerate(said) if i not in (1, 5)] == [
        row["prediction"] for i, row in enumerate(straight) if i not in (1, 5)
    ]
    assert "2 rows with missing cells have no prediction" in outcome.err


def test_gaps_may_be_refused(prudent, table_file, tmp_path):
    path, model = table_file(GAPPED), tmp_path / "model"
    fit = ("--target", "y", "--method", "minimax", "-o", model)
    assert prudent("fit", path, *fit).code == 0
    outcome = prudent("predict", path, "-m", model, "--missing", "error")
    assert outcome.code == 3
    assert "2 missing values in 1 column (b: 2)" in outcome.err


def test_sets_of_a_pipeline_fitted_to_a_data_frame(prudent, tmp_path):
    """Its steps pick columns by name, fill gaps, and know no sets themselves."""
    frame, labels = load_iris(return_X_y=True, as_frame=True)
    chosen = [("petal", "passthrough", ["petal length (cm)", "petal width (cm)"])]
    pipeline = make_pipeline(
        SimpleImputer().set_output(transform="pandas"),
        ColumnTransformer(chosen),
        ImpreciseDiscriminantAnalysis(),
    ).fit(frame, labels)
    save(pipeline, tmp_path / "model")
    frame.loc[0, "petal width (cm)"] = np.nan
    frame.to_csv(tmp_path / "rows.csv", index=False)
    outcome = prudent(
        "predict", tmp_path / "rows.csv", "-m", tmp_path / "model", "--set"
    )
    assert outcome.code == 0
    assert "feature names" not in outcome.err
    sizes = [len(row["set"].split("|")) for row in parsed(outcome.out)]
    assert sizes == predict_set(pipeline, frame).sum(axis=1).tolist()


@pytest.fixture(params=["pandas", "polars"])
def words_table(request, tmp_path):
    """A frame with words that look like numbers, gaps, and labels; also as a file."""
    library = pytest.importorskip(request.param)
    rng = np.random.default_rng(0)
    size = rng.normal(size=200).tolist()
    colour = rng.choice(["red", "green"], 200).tolist()
    columns = {"size": size, "colour": colour, "zip": rng.choice(["01", "02"], 200)}
    truth = np.where(np.array(size) + (np.array(colour) == "red") > 0.3, "yes", "no")
    columns["size"][4], columns["colour"][5] = None, None
    frame = library.DataFrame({name: list(cells) for name, cells in columns.items()})
    lines = ["zip,colour,answer,size"]
    for place, label in enumerate(truth):
        cells = [columns["zip"][place], columns["colour"][place] or "", label]
        lines.append(",".join([*cells, str(columns["size"][place] or "")]))
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
    return frame, truth, tmp_path / "rows.csv"


def encoding_pipeline(unknown="ignore"):
    filled = make_pipeline(SimpleImputer(), StandardScaler())
    encoder = OneHotEncoder(handle_unknown=unknown)
    columns = [("size", filled, ["size"]), ("words", encoder, ["colour", "zip"])]
    return make_pipeline(ColumnTransformer(columns), LogisticRegression())


def test_a_pipeline_that_encodes_words_itself_gets_them_by_name(
    prudent, words_table, tmp_path
):
    frame, truth, rows = words_table
    pipeline = encoding_pipeline().fit(frame, truth)
    save(pipeline, tmp_path / "model")
    said = prudent("predict", rows, "-m", tmp_path / "model", "--keep", "answer")
    assert said.code == 0, said.err
    found = [row["prediction"] for row in parsed(said.out)]
    assert found == pipeline.predict(frame).tolist()
    known = rows.read_text()
    rows.write_text(known.replace("green", "mauve"))
    assert prudent("predict", rows, "-m", tmp_path / "model").code == 0
    rows.write_text(known.replace("01,", "1e3,"))  # a word still, if not a known one
    assert prudent("predict", rows, "-m", tmp_path / "model").code == 0


def test_promises_of_a_pipeline_that_encodes_words_are_certified_and_watched(
    prudent, words_table, tmp_path
):
    frame, truth, rows = words_table
    promising = ConformalClassifier(
        encoding_pipeline(), method="split", level=0.1, random_state=0
    ).fit(frame, truth)
    save(promising, tmp_path / "model")
    options = ("-m", tmp_path / "model")
    said = prudent("predict", rows, *options, "--set", "--p-values")
    sets = [row["set"] for row in parsed(said.out)]
    members = promising.predict_set(frame)
    assert [len(s.split("|")) for s in sets] == members.sum(axis=1).tolist()
    said = prudent("certify", rows, *options, "--target", "answer")
    assert said.code == 3
    assert "200 of these 200 rows were in the fit" in said.err
    head, *lines = rows.read_text().splitlines()
    cells = [line.rpartition(",") for line in lines]
    moved = [f"{before},{float(size or 0) + 0.1}" for before, _, size in cells]
    new = tmp_path / "new.csv"
    new.write_text("\n".join([head, *moved]) + "\n")
    said = prudent("certify", new, *options, "--target", "answer")
    assert said.code == 0, said.err
    watched = prudent(
        *("monitor", tmp_path / "model", "--data", rows, "--target", "answer"),
        *("--no-drift", "--json", "-"),  # wrong alarms of drift are not asked here
    )
    assert watched.code == 0, watched.err
    (promise,) = json.loads(watched.out)["promises"]
    missed = ~members[np.arange(200), np.searchsorted(promising.classes_, truth)]
    assert (promise["n"], promise["violations"]) == (200, missed.sum())


def test_a_word_that_the_encoder_refuses_is_named_by_its_column(
    prudent, words_table, tmp_path
):
    frame, truth, rows = words_table
    save(encoding_pipeline("error").fit(frame, truth), tmp_path / "model")
    rows.write_text(rows.read_text().replace("green", "mauve"))
    said = prudent("predict", rows, "-m", tmp_path / "model")
    assert said.code == 3
    assert "column 'colour' holds a word that" in said.err
    assert "knows green, red and refuses others" in said.err
    assert said.err.count("\n") <= 2


def test_words_in_a_column_of_numbers_are_refused_in_our_words(
    prudent, words_table, tmp_path
):
    frame, truth, rows = words_table
    save(encoding_pipeline().fit(frame, truth), tmp_path / "model")
    lines = rows.read_text().splitlines()
    rows.write_text("\n".join([lines[0], "01,red,yes,large", *lines[2:]]) + "\n")
    said = prudent("predict", rows, "-m", tmp_path / "model")
    assert said.code == 3
    assert "column 'size' is text: 'large' at line 2" in said.err
    # Options of a fit, which certify and monitor do not have, would change nothing.
    assert said.err.endswith("It has to hold numbers: correct such cells\n")


@pytest.mark.parametrize(
    ("promise", "code"), [("error <= 20%", 0), ("missed rare <= 20%", 3)]
)
def test_lost_class_is_never_a_reason_to_draw_again(
    prudent, table_file, tmp_path, promise, code
):
    rng = np.random.default_rng(0)
    y = np.array(["u", "v"] * 100, dtype=object)
    y[0] = "rare"  # held out by the seeds below
    X = rng.normal(size=200) + 4 * (y == "v")
    lines = [f"{a},{b}" for a, b in zip(X, y, strict=True)]
    rows = table_file("\n".join(["x,y", *lines]) + "\n")
    said = []
    for seed in range(8):
        fit = ("fit", rows, "--target", "y", "--method", "lda", "--promise", promise)
        outcome = prudent(*fit, "--seed", seed, "-o", tmp_path / "m")
        if "is outside the held-out part" in outcome.err:
            said.append((outcome.code, " ".join(outcome.err.split())))
    assert said
    for found, text in said:
        assert found == code
        assert "(--seed) chosen after this would void the promise" in text


def test_classes_that_compare_left_out_are_left_out_by_the_command_it_prints(
    prudent, table_file, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    lines = [f"{i % 7 + 5 * (i % 2)},{i % 5},{'uv'[i % 2]}" for i in range(120)]
    rows = table_file("\n".join(["x,z,y", *lines, "1,1,rare", "2,3,rare"]) + "\n")
    outcome = prudent(
        *("compare", rows, "--target", "y", "--min-class-rows", "5"),
        *("--methods", "minimax", "--baselines", "none"),
    )
    assert (
        "1 of 3 classes have fewer than 5 rows and are left out: 'rare'" in outcome.err
    )
    (line,) = [s for s in outcome.out.splitlines() if s.startswith("To use it:")]
    words = shlex.split(line.removeprefix("To use it:"))
    for promise in (words[1:], [*words[1:7], "-o", "plain", "--min-class-rows", "5"]):
        outcome = prudent(*promise)
        assert outcome.code == 0, outcome.err
        assert "120 rows" in outcome.out
        assert "are left out: 'rare'" in outcome.err
    assert load("plain").classes_.tolist() == ["u", "v"]


def fit_few_rows(estimator, X, y):
    if len(X) > 100:
        raise AssertionError("the table is not to be fitted to")
    return DummyClassifier.fit(estimator, X, y)


def test_what_no_model_file_would_hold_is_refused_before_the_fit(
    prudent, tmp_path, monkeypatch
):
    module = ModuleType("foreign_package")
    body = {"__module__": "foreign_package", "fit": fit_few_rows}
    module.Foreign = type("Foreign", (DummyClassifier,), body)
    monkeypatch.setitem(sys.modules, "foreign_package", module)
    model = tmp_path / "m"
    fit = ("fit", "iris", "--method", "foreign_package.Foreign", "-o", model)
    outcome = prudent(*fit)
    assert outcome.code == 4
    assert "use --trusted foreign_package.Foreign" in outcome.err
    module.Foreign.fit = DummyClassifier.fit
    trusted = ("--trusted", "foreign_package.Foreign")
    outcome = prudent(*fit, *trusted)
    assert outcome.code == 0, outcome.err
    refused = prudent("predict", "iris", "-m", model)
    assert refused.code == 4
    assert "not trusted. If you trust them and the file, use " in refused.err
    assert "--trusted foreign_package.Foreign" in refused.err
    assert prudent("predict", "iris", "-m", model, *trusted).code == 0
    certify = ("certify", "iris", "-m", model, *trusted)
    assert "foreign_package" not in prudent(*certify).err


def test_probabilities_of_a_model_that_limits_missed_rows(prudent, tmp_path):
    model = tmp_path / "m"
    fit = ("fit", "breast_cancer", "--method", "logistic", "-o", model)
    assert prudent(*fit, "--promise", "missed malignant <= 10%").code == 0
    said = prudent("predict", "breast_cancer", "-m", model, "--proba")
    assert said.code == 0, said.err
    for row in parsed(said.out)[:20]:
        total = float(row["probability malignant"]) + float(row["probability benign"])
        assert total == pytest.approx(1)


LOUD = """
import os, sys
from sklearn.linear_model import LogisticRegression

class Loud(LogisticRegression):
    def fit(self, X, y):
        for stream in (1, 2):
            os.write(stream, b"[12:00:00] WARNING: from C++\\n")
        print("iteration 1")
        print("a word of Python", file=sys.stderr)
        return super().fit(X, y)
"""


@pytest.mark.parametrize("command", ["fit", "compare"])
def test_libraries_that_log_by_themselves_do_not_flood_the_terminal(tmp_path, command):
    (tmp_path / "loud.py").write_text(LOUD)
    arguments = {
        "fit": ["--method", "loud.Loud", "--trusted", "loud.Loud", "-o", "m"],
        "compare": [
            "--methods",
            "loud.Loud",
            "--baselines",
            "none",
            "--promise",
            "none",
        ],
    }[command]
    run = [sys.executable, "-m", "prudent", command, "iris", *arguments]
    path = os.pathsep.join([str(tmp_path), *sys.path])
    ended = subprocess.run(
        run,
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert ended.returncode == 0, ended.stderr
    assert "C++" not in ended.stdout + ended.stderr
    assert "iteration" not in ended.stdout
    assert "a word of Python" in ended.stderr
    assert ("No promise." if command == "fit" else "Loud") in ended.stdout


def test_capacity_is_promised_with_what_it_means_for_a_queue(prudent, tmp_path):
    random = np.random.default_rng(0)
    x = random.normal(size=600)
    table = pa.table({"x": x, "y": np.where(x + random.normal(size=600) > 0, "b", "a")})
    path = tmp_path / "rows.csv"
    pa.csv.write_csv(table, path)
    outcome = prudent(
        *(
            "fit",
            path,
            "--target",
            "y",
            "--method",
            "lda",
            "-o",
            tmp_path / "m.prudent",
        ),
        *("--promise", "handed over <= 20%"),
    )
    assert outcome.code == 0, outcome.err
    assert "The answered share is at least 0.8 with confidence 0.95" in outcome.out
    assert "handed over <= 20% means at most 221 of 1000 rows on 95 of" in outcome.out
