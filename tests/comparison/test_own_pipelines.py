"""Own estimators that look for columns, and the call that uses the best row."""

from datetime import UTC, date, datetime, time

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import prudent
from prudent.comparison.protocol import labelled_rows
from prudent.estimator_tools.labelled_rows import (
    GivenColumns,
    as_given,
    head_of,
    is_as_given,
)
from prudent.evaluation import words
from prudent.evaluation.evaluate import make_folds


def draw(n, seed):
    """Rows of numbers, words, levels, gaps and dates, and their labels."""
    random = np.random.default_rng(seed)
    age = random.integers(20, 80, n)
    x = random.normal(size=n)
    sex = random.choice(["f", "m"], n)
    kind = random.choice([1, 2, 3], n)
    score = (age - 50) / 10 + 1.5 * (sex == "f") + x + (kind == 1)
    label = np.where(score + random.normal(scale=0.5, size=n) > 1, "yes", "no")
    x[random.random(n) < 0.1] = np.nan
    frame = pd.DataFrame(
        {
            "age": age,
            "x": x,
            "sex": sex,
            "kind": pd.Categorical(kind, categories=[3, 2, 1, 0]),
            "flag": random.random(n) < 0.5,
            "day": pd.Timestamp("2020-01-31") + pd.to_timedelta(age, "D"),
            "count": pd.array(np.where(age > 70, None, age), dtype="Int64"),
        }
    )
    return frame, label


X, Y = draw(400, 0)
NUMBERS = make_pipeline(SimpleImputer(), StandardScaler())
BY_NAME = make_pipeline(
    ColumnTransformer(
        [
            ("numbers", NUMBERS, ["age", "x"]),
            ("words", OneHotEncoder(), ["sex", "kind"]),
        ]
    ),
    LogisticRegression(),
)
BY_TYPE = make_pipeline(
    ColumnTransformer(
        [
            ("numbers", NUMBERS, make_column_selector(dtype_include="number")),
            ("levels", OneHotEncoder(), make_column_selector(dtype_include="category")),
        ]
    ),
    LogisticRegression(),
)


@pytest.mark.parametrize("chosen", [slice(None), slice(7, 30), slice(0, 1)])
def test_rows_come_back_as_they_were_given(chosen):
    rows = labelled_rows(X, Y)
    given = GivenColumns(X.head(0)).fit_transform(rows.X[chosen])
    expected = X.iloc[chosen].reset_index(drop=True)
    pd.testing.assert_frame_equal(given, expected)


def test_rows_of_numbers_come_back_with_their_names():
    numbers = X[["age", "x"]]
    array = np.column_stack([labelled_rows(numbers, Y).X, np.ones(len(X))])
    given = GivenColumns(numbers.head(0)).fit_transform(array)
    pd.testing.assert_frame_equal(given, numbers)


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_rows_of_other_libraries_come_back(library):
    plain = X[["age", "x", "sex", "flag"]]
    frame = pl.from_pandas(plain) if library == "polars" else pa.table(plain)
    given = GivenColumns(head_of(frame)).fit_transform(labelled_rows(frame, Y).X)
    assert type(given) is type(frame)
    assert given.equals(frame)


def test_polars_dates_and_levels_come_back():
    days = [date(2020, 1, 1 + k % 28) for k in range(12)]
    frame = pl.DataFrame(
        {
            "day": days,
            "moment": [datetime(2020, 1, day.day, 3, 7) for day in days],
            "zoned": [datetime(2020, 1, day.day, 3, tzinfo=UTC) for day in days],
            "clock": [time(3, day.day, 1, 500) for day in days],
            "level": pl.Series(["a", "c", None] * 4, dtype=pl.Enum(["c", "b", "a"])),
            "count": pl.Series([1, None, 3] * 4, dtype=pl.Int32),
        }
    )
    given = GivenColumns(head_of(frame)).fit_transform(labelled_rows(frame, Y[:12]).X)
    assert given.equals(frame)
    assert given.schema == frame.schema


def test_values_that_would_be_lost_are_an_error():
    # Of levels of both kinds all rows have numbers, and are read as such.
    levels = pd.Categorical([1, 2] * 6, categories=[1, 2, "many"])
    frame = pd.DataFrame({"a": levels, "x": np.arange(12.0)})
    rows = labelled_rows(frame, Y[:12])
    with pytest.raises(ValueError, match="column 'a' does not come back"):
        GivenColumns(head_of(frame)).fit_transform(rows.X)


@pytest.mark.parametrize(
    "levels", [[True, False, None], ["a", None, "b"], [2.5, 1.5, None], [7, 3, 5]]
)
def test_levels_of_any_kind_come_back(levels):
    frame = pd.DataFrame({"a": pd.Categorical(levels * 4), "x": np.arange(12.0)})
    given = GivenColumns(head_of(frame)).fit_transform(labelled_rows(frame, Y[:12]).X)
    pd.testing.assert_frame_equal(given, frame)


def test_columns_named_by_numbers_come_back():
    frame = pd.DataFrame({0: ["a", "b"] * 6, 1: np.arange(12)})
    given = GivenColumns(head_of(frame)).fit_transform(labelled_rows(frame, Y[:12]).X)
    pd.testing.assert_frame_equal(given, frame)


def test_an_array_with_words_comes_back():
    array = X[["sex", "age", "x"]].to_numpy(dtype=object)
    given = GivenColumns(head_of(array)).fit_transform(labelled_rows(array, Y).X)
    assert given[:, 0].tolist() == array[:, 0].tolist()
    np.testing.assert_array_equal(
        given[:, 1:].astype(float), array[:, 1:].astype(float)
    )


def test_long_whole_numbers_are_refused():
    frame = pd.DataFrame({"a": np.arange(12) + 2**53, "b": ["x", "y"] * 6})
    with pytest.raises(ValueError, match="more than 15 digits"):
        GivenColumns(head_of(frame)).fit_transform(labelled_rows(frame, Y[:12]).X)


def test_only_estimators_that_find_columns_by_name_get_the_table():
    by_position = ColumnTransformer([("numbers", NUMBERS, [0, 1])])
    positions = make_pipeline(by_position, LogisticRegression())
    search = GridSearchCV(BY_NAME, {"logisticregression__C": [0.1, 1.0]}, cv=2)
    for estimator, is_by_name in (
        (BY_NAME, True),
        (BY_TYPE, True),
        (search, True),
        (positions, True),
        (LogisticRegression(), False),
    ):
        assert is_as_given(as_given(head_of(X), estimator)) == is_by_name
    assert head_of(X[["age", "x"]].to_numpy()) is None


BY_POSITION = make_pipeline(
    ColumnTransformer([("numbers", NUMBERS, [1]), ("words", OneHotEncoder(), [2])]),
    LogisticRegression(),
)


@pytest.mark.parametrize(
    "own", [BY_NAME, BY_TYPE, BY_POSITION], ids=["names", "types", "positions"]
)
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_errors_are_those_of_the_pipeline_on_the_frame(own, n_jobs):
    found = prudent.compare(
        *(X, Y),
        methods={"mine": own},
        baselines=["logistic"],
        promise="none",
        n_jobs=n_jobs,
    )
    (mine,) = [row for row in found.rows if row.method == "mine"]
    codes = np.unique(Y, return_inverse=True)[1]
    wrong = 0
    for fold in make_folds(codes, 5, 1, 0):
        model = clone(own).fit(X.iloc[fold.train], Y[fold.train])
        wrong += np.sum(model.predict(X.iloc[fold.test]) != Y[fold.test])
    assert mine.failure is None
    assert mine.error == pytest.approx(wrong / len(Y))


def test_what_is_no_estimator_is_a_row_that_failed():
    class Fits:
        def fit(self, X, y):
            return self

    found = prudent.compare(
        *(X, Y),
        methods={"class": LogisticRegression, "fits": Fits(), "mine": BY_NAME},
        baselines=(),
        promise="none",
    )
    failed = {row.method: row.failure for row in found.rows}
    assert failed["mine"] is None
    assert "Cannot clone object" in failed["fits"].text
    assert failed["class"] is not None


def test_it_stands_beside_methods_of_numbers_in_the_row_that_chooses():
    found = prudent.compare(
        *(X, Y),
        methods=[("mine", BY_NAME), "minimax"],
        baselines=["majority"],
        promise="error <= 20%",
    )
    rows = {row.method: row for row in found.rows}
    assert all(row.failure is None for row in rows.values())
    assert rows["best"].notes == ("mine in 5 folds",)
    assert rows["best"].asked.kept == "kept"
    assert not any("out:" in text for row in rows.values() for text in row.warnings)


def test_promises_by_subgroup_reach_it():
    found = prudent.compare(
        *(X, Y),
        methods={"mine": BY_NAME},
        baselines=(),
        promise="error <= 30% in every sex",
    )
    (mine,) = found.rows
    scopes = {item.guarantee.subgroup for item in mine.asked.items}
    assert scopes == {None, "sex=f", "sex=m"}
    assert mine.asked.decided > 0.5


@pytest.mark.parametrize(
    ("promise", "name"),
    [
        ("error <= 15%", "SelectiveClassifier"),
        ("missed yes <= 20%", "NeymanPearsonClassifier"),
        ("coverage >= 90%", "ConformalClassifier"),
        ("error <= 30% in every sex", "SelectiveClassifier"),
    ],
)
def test_the_call_to_use_it_makes_the_promise(promise, name):
    arguments = {"methods": {"my model": BY_NAME}, "baselines": ["logistic"]}
    found = prudent.compare(X, Y, promise=promise, best=False, **arguments)
    if found.rows[0].method != "my model":
        pytest.fail("the rows are made so that it is recommended")
    call = found.settings.next_command
    assert call.startswith(f"prudent.{name}(my_model, ")
    model = eval(call, {"prudent": prudent, "X": X, "y": Y, "my_model": BY_NAME})
    asked = found.rows[0].asked.items[0].guarantee
    (own, *_) = model.guarantees_
    assert own.quantity == asked.quantity
    # Ranks among the rows held out, of all rows or of a training part.
    assert own.bound == pytest.approx(asked.bound, abs=0.01)
    if own.confidence is not None:
        # Two methods share the level.
        assert own.confidence == pytest.approx(0.975, abs=0.013)
        assert own.confidence >= 0.975
    assert f"To use it:  {call}" in str(found)
    assert call in found._repr_html_().replace("</span> <span>", " ")


@pytest.mark.parametrize(("labels", "text"), [((0, 1), "1"), ((False, True), "True")])
def test_the_call_names_labels_as_they_are(labels, text):
    y = np.array(labels)[(Y == "yes").astype(int)]
    found = prudent.compare(
        *(X, y),
        methods={"mine": BY_NAME},
        baselines=(),
        promise=f"missed {text} <= 20%",
    )
    call = found.settings.next_command
    model = eval(call, {"prudent": prudent, "X": X, "y": y, "mine": BY_NAME})
    assert model.guarantees_[0].scope == labels[1]


def test_the_call_of_the_row_that_chooses_names_all_candidates():
    forest = RandomForestClassifier(20, random_state=0)
    numbers = X[["age", "count"]].fillna({"count": 0}).astype(float)
    found = prudent.compare(
        *(numbers, Y),
        methods={"forest": forest},
        baselines=["logistic", "lda"],
        promise="error <= 40%",
        groups=np.arange(400) // 2,
    )
    call = found.settings.next_command
    assert call == (
        "prudent.BestClassifier([('forest', forest), 'logistic', 'lda'], "
        "promise='error <= 40%', confidence=None, cv=3, random_state=0)"
        ".fit(X, y, groups=groups)"
    )
    names = {"X": numbers, "y": Y, "forest": forest, "groups": np.arange(400) // 2}
    model = eval(call, {"prudent": prudent, **names})
    assert model.guarantees_[0].bound == 0.4
    text = " ".join(str(found).split())
    assert "prudent fit" not in text
    assert "fit it with confidence=0.983334, for 3 methods were looked at" in text


def test_no_call_is_named_that_would_do_something_else():
    """Gaps are filled by the comparison alone; no matrix of bool tells of new rows."""
    mixed = prudent.compare(
        *(X, Y), methods={"mine": BY_NAME}, baselines=["lda"], promise="error <= 20%"
    )
    assert mixed.settings.next_command is None
    assert "compare pipelines that prepare words and gaps themselves" in " ".join(
        str(mixed).split()
    )
    numbers = X[["age"]].astype(float)
    by_matrix = prudent.compare(
        *(numbers, Y),
        methods={"mine": LogisticRegression()},
        baselines=(),
        subgroups=X[["sex"]],
        promise="error <= 40%",
    )
    assert by_matrix.settings.next_command is None
    usual = prudent.compare(
        numbers, Y, methods=["lda"], baselines=(), promise="error <= 40%"
    )
    assert usual.settings.next_command is None
    assert usual.settings.own == ()


@pytest.mark.parametrize(
    ("arguments", "start"),
    [
        (
            {"methods": [], "baselines": ["logistic", "lda"], "promise": "error <= 5%"},
            "BestClassifier(['lo",
        ),
        (
            {
                "methods": ["sklearn.naive_bayes.GaussianNB"],
                "baselines": [],
                "promise": "error <= 10%",
            },
            "BestClassifier(['sklearn.naive_bayes.GaussianNB'], "
            "promise='error <= 10%', confidence=0.95, cv=2, ",
        ),
        (
            {"methods": ["best"], "baselines": [], "promise": "error <= 10%", "cv": 2},
            "BestClassifier(promise='error <= 10%', confidence=None, random_state=0)",
        ),
        (
            {"methods": ["conformal"], "baselines": []},
            "ConformalClassifier(condition='class', method='full', ",
        ),
        (
            {"methods": ["conformal"], "baselines": [], "promise": "missed 0 <= 10%"},
            "NeymanPearsonClassifier(prudent.ConformalClassifier(method='full', ",
        ),
    ],
)
def test_python_is_told_the_call_that_makes_a_method_of_prudent(arguments, start):
    X, y = load_breast_cancer(return_X_y=True)
    is_choice = "best" in arguments["methods"]
    found = prudent.compare(X, y, best=None if is_choice else False, **arguments)
    call = found.settings.call
    assert call.startswith(f"prudent.{start}")
    assert f"in Python:  {call}" in str(found)
    model = eval(call, {"prudent": prudent, "X": X, "y": y})
    row = words.recommended(found)
    asked, own = row.asked.items[0].guarantee, model.guarantees_[0]
    assert (own.quantity, own.sense) == (asked.quantity, asked.sense)
    assert own.confidence == pytest.approx(asked.confidence, abs=1e-6)
    if "baselines" in arguments and len(arguments["baselines"]) == 2:
        assert own.confidence == 0.975


def test_words_and_gaps_are_said_to_need_the_command_line():
    """Nothing of the table can be called: what makes a model is named all the same."""
    found = prudent.compare(
        X,
        Y,
        methods=["lda"],
        baselines=["logistic"],
        best=False,
        promise="error <= 40%",
    )
    assert found.settings.call is None
    used = words.recommended(found).method
    text = " ".join(str(found).split())
    assert f"To use {used}: prudent fit ... --method {used} --among 2." in text
    assert "--average" not in text
    sets = prudent.compare(
        X, Y, methods=["lda"], baselines=[], promise="coverage >= 80%"
    )
    text = " ".join(str(sets).split())
    assert "To use lda: prudent fit ... --method lda --average." in text
    far = prudent.compare(
        *(X, Y),
        methods=["lda"],
        baselines=["logistic"],
        best=False,
        promise="error <= 5%",
    )
    assert words.recommended(far) is None
    nearest = words.reachable(far)
    text = " ".join(str(far).split())
    assert (
        f"To try it: prudent fit ... --method {nearest.method} --promise "
        f"'{nearest.promise}'."
    ) in text
