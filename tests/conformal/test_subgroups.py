"""Conformal sets that cover in each of several subgroups."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_matrix
from scipy.stats import binomtest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from prudent import ConformalClassifier, Rule

X_IRIS, Y_IRIS = load_iris(return_X_y=True)


def _two(X):
    return np.column_stack([X[:, 0] >= 5.8, X[:, 1] >= 3.0])


def test_reference_rows():
    # A: 40 rows, B: 45, rest 9; a row of A and B has the larger of its two p-values.
    model = ConformalClassifier(model="gaussian", subgroups=_two)
    model.fit(X_IRIS[::2], Y_IRIS[::2])
    assert model.method_ == "full"
    assert model.subgroups_ == ["subgroup 0", "subgroup 1", "rest"]
    assert model.subgroup_count_.tolist() == [40, 45, 9]
    p_values = model.p_values(X_IRIS[[51, 85, 133]])
    wanted = np.array([[1, 19, 1], [1, 14, 1], [1, 7, 1]]) / 41
    assert np.abs(p_values - wanted).max() < 1e-15
    found = [(g.subgroup, g.bound, g.evidence["rank"]) for g in model.guarantees_]
    assert found == [
        ("subgroup 0", 1 - 4 / 41, 4),
        ("subgroup 1", 1 - 4 / 46, 4),
        ("rest", 1 - 1 / 10, 1),
    ]


@pytest.mark.parametrize("condition", [None, "class"])
@pytest.mark.parametrize("model", ["gaussian", "blend"])
def test_no_bag_has_more_misses_in_a_subgroup_than_its_rank(condition, model):
    # Each row of a bag is the new one once: given the bag this is the exact law.
    random = np.random.default_rng(3)
    n, level = 40, 0.2
    y = random.integers(2, size=n)
    X = random.integers(-2, 3, size=(n, 2)) + 1.0 * y[:, None]
    members = _two(X + 5.3)
    missed = np.zeros(n, dtype=bool)
    for i in range(n):
        others = np.arange(n) != i
        wrapper = ConformalClassifier(
            model=model,
            level=level,
            condition=condition,
            subgroups=lambda X: _two(X + 5.3),
        ).fit(X[others], y[others])
        missed[i] = not wrapper.predict_set(X[i : i + 1], allow_empty=True)[0, y[i]]
    assert missed.any()
    every = np.column_stack([members, ~members.any(axis=1)])
    for g in range(3):
        for c in (0, 1) if condition else (None,):
            at = every[:, g] & (True if c is None else y == c)
            assert missed[at].sum() <= np.floor(level * at.sum() + 1e-9)


@pytest.mark.parametrize("method", ["full", "split"])
@pytest.mark.parametrize("ties", ["conservative", "smoothed"])
def test_disjoint_subgroups_are_groups_and_one_of_all_rows_is_none(method, ties):
    X, y, new = X_IRIS[::2], Y_IRIS[::2], X_IRIS[1::2]

    def group(X):
        return (X[:, 1] >= 3.0).astype(int) + (X[:, 0] >= 5.8)

    def fitted(**settings):
        made = ConformalClassifier(
            method=method, ties=ties, random_state=0, level=0.15, **settings
        )
        return made.fit(X, y)

    pairs = [
        (
            fitted(condition=group),
            fitted(subgroups=lambda X: group(X)[:, None] == np.arange(3)),
        ),
        (fitted(), fitted(subgroups=lambda X: np.ones((len(X), 1), dtype=bool))),
        (
            fitted(condition="class"),
            fitted(
                condition="class",
                subgroups=lambda X: np.ones((len(X), 1), dtype=bool),
            ),
        ),
    ]
    for known, by_subgroup in pairs:
        assert np.array_equal(known.p_values(new), by_subgroup.p_values(new))
        assert np.array_equal(known.predict_set(new), by_subgroup.predict_set(new))
        assert np.array_equal(
            known.predict_set(new, level=0.05), by_subgroup.predict_set(new, level=0.05)
        )
        bounds = [g.bound for g in known.guarantees_]
        assert [g.bound for g in by_subgroup.guarantees_] == bounds
        again = by_subgroup.with_level(0.3)
        assert np.array_equal(
            known.with_level(0.3).predict_set(new), again.predict_set(new)
        )
        assert all(g.subgroup for g in again.guarantees_)


def _people(n=400, seed=0):
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": random.integers(18, 80, n),
            "sex": random.choice(["Female", "Male"], n),
            "score": random.normal(size=n),
        }
    )
    frame.loc[:4, "sex"] = None
    y = (frame["score"] + 0.02 * frame["age"] + random.normal(size=n) > 1).astype(int)
    return frame, y.to_numpy()


def _numbers_only():
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline

    return make_pipeline(
        make_column_transformer(("passthrough", ["age", "score"])), LogisticRegression()
    )


@pytest.mark.parametrize("as_frame", [pd.DataFrame, pl.from_pandas])
def test_columns_crossings_and_bands_of_data_frames(as_frame):
    frame, y = _people()
    model = ConformalClassifier(
        _numbers_only(),
        subgroups=["sex", "sex*age:30,45,60"],
        random_state=0,
    )
    model.fit(as_frame(frame), y)
    assert model.subgroups_[:3] == ["sex=Female", "sex=Male", "sex=missing"]
    assert model.subgroups_[3] == "sex=Female and age<30"
    assert "sex=Male and 45<=age<60" in model.subgroups_
    assert {g.subgroup for g in model.guarantees_} == set(model.subgroups_)
    count = dict(zip(model.subgroups_, model.subgroup_count_, strict=True))
    assert count["sex=Female"] + count["sex=Male"] + count["sex=missing"] == 120
    sets = model.predict_set(as_frame(frame))
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict_set(as_frame(frame)), sets)
    # A value that was not seen: every label, whatever the other column says.
    strange = frame.assign(sex="other")
    assert (model.p_values(as_frame(strange)) == 1).all()
    assert model.predict_set(as_frame(strange)).all()
    with pytest.raises(ValueError, match="by sex, which the table lacks"):
        model.predict_set(as_frame(frame.drop(columns="sex")))
    assert clone(model).subgroups == model.subgroups


def test_the_word_missing_and_missing_cells_are_no_subgroup_of_one_name():
    # The rule's file could not be read, and one of the two had no promise of its own.
    frame, y = _people()
    model = ConformalClassifier(_numbers_only(), subgroups=["sex"], random_state=0)
    both = frame.assign(sex=frame["sex"].replace("Male", "missing"))
    with pytest.raises(ValueError, match="missing cells and the word 'missing'"):
        model.fit(both, y)
    model.fit(both.fillna({"sex": "missing"}), y)
    assert model.subgroups_ == ["sex=Female", "sex=missing"]


def test_positions_and_frames_of_labels_say_the_same_as_names():
    frame, y = _people()
    frame = frame.assign(sex=(frame["sex"] == "Male") * 1.0)
    named, placed, labelled = (
        ConformalClassifier(subgroups=option, random_state=0).fit(rows, y)
        for option, rows in (
            (["sex"], frame),
            ([1], frame.to_numpy()),
            (lambda X: X[["sex"]], frame),
        )
    )
    assert named.subgroups_ == labelled.subgroups_ == ["sex=0", "sex=1"]
    assert placed.subgroups_ == ["column 1=0", "column 1=1"]
    sets = named.predict_set(frame)
    assert np.array_equal(sets, placed.predict_set(frame.to_numpy()))
    assert np.array_equal(sets, labelled.predict_set(frame))


def test_errors_before_any_work():
    frame, y = _people(100)
    numbers = frame[["age", "score"]]

    def refused(message, rows=numbers, **settings):
        with pytest.raises(ValueError, match=message):
            ConformalClassifier(**settings).fit(rows, y)

    refused("no column 'sexe'; there are age, score", subgroups=["sexe"])
    refused(r"'age' has \d+ values: give bands, such as 'age:", subgroups=["age"])
    refused("12 rows for 100 rows of X", subgroups=lambda X: X[["age"]].head(12))
    refused("12 rows for 100 rows", subgroups=lambda X: np.ones((12, 1), dtype=bool))
    refused(
        "a callable condition excludes subgroups",
        subgroups=["age:30"],
        condition=lambda X: np.zeros(len(X), dtype=int),
    )
    refused("method='cross' has no promise by subgroups", subgroups=[0], method="cross")
    refused("must be rising numbers", subgroups=["age:60,30"])
    refused("must be rising numbers", subgroups=["age:young"])
    refused("'age<30' is named twice", subgroups=["age:30", "age:30,60"])
    two = ["age:30*score:0", "score:0*age:30"]  # the same parts in another order
    refused("'age<30 and score<0' is named twice", subgroups=two)
    refused("'age:30[*]age:60' crosses 'age' with itself", subgroups="age:30*age:60")
    refused("must name at least one column", subgroups=[])
    refused("so give positions", rows=numbers.to_numpy(), subgroups=["age"])
    refused("a matrix of bool", subgroups=lambda X: np.ones(len(X)))
    merged = numbers.assign(site=np.where(frame["age"] < 50, 2**53, 2**54))
    refused("the number 18014398509481984, which", rows=merged, subgroups=["site"])


def test_long_whole_numbers_are_named_in_full():
    frame, y = _people(100)
    old = frame["age"] > 50
    rows = pd.DataFrame({"site": np.where(old, 10**15 + 1, 10**15 + 2)})
    model = ConformalClassifier(subgroups=["site"], random_state=0).fit(rows, y)
    assert model.subgroups_ == ["site=1000000000000001", "site=1000000000000002"]


def test_a_rule_by_columns_of_scores_that_are_no_probabilities_is_written():
    frame, y = _people(300)
    rows = frame[["age", "score"]].assign(old=frame["age"] > 50)
    model = ConformalClassifier(LinearSVC(), subgroups=["old"], random_state=0)
    rule = Rule.from_json(model.fit(rows, y).rule_.to_json())
    assert rule.record["scores"] == "as given"
    margins = model.estimator_.decision_function(rows)
    scores = np.column_stack([-margins, margins])
    sets = rule.sets(scores, groups=rule.members(rows))
    np.testing.assert_array_equal(sets, model.predict_set(rows))


def test_columns_of_arrays_have_bands_and_are_crossed_by_position():
    random = np.random.default_rng(5)
    X = np.column_stack([random.integers(0, 2, 200), random.uniform(20, 80, 200)])
    y = random.integers(0, 2, 200)
    frame = pd.DataFrame(X, columns=["sex", "age"])
    two = (["age:50", "sex*age:50"], ["column 1:50", "column 0*column 1:50"])
    by_name, by_place = (
        ConformalClassifier(LogisticRegression(), subgroups=items, random_state=0)
        for items in two
    )
    sets = by_name.fit(frame, y).predict_set(frame)
    for rows in (X, csr_matrix(X), frame):
        same = by_place.fit(rows, y).predict_set(rows)
        np.testing.assert_array_equal(same, sets)
    for rows in (X, frame):  # whoever follows the advice gets on
        with pytest.raises(ValueError, match="give bands") as refusal:
            ConformalClassifier(subgroups=[1]).fit(rows, y)
        advice = str(refusal.value).split("'")[1]
        assert advice.startswith("column 1:")
        ConformalClassifier(subgroups=[advice]).fit(rows, y)


@pytest.mark.parametrize("method", ["full", "split"])
def test_coverage_in_each_subgroup_of_a_known_law(method):
    # Overlapping subgroups, one of which is hard: rates of fresh models and rows.
    random = np.random.default_rng(11)
    n, level, n_models = 60, 0.1, 150
    missed, about = np.zeros(4, dtype=int), np.zeros(4, dtype=int)

    def draw(size):
        X = np.round(random.normal(size=(size, 2)), 1)
        noise = np.where(X[:, 0] > 0.5, 2.0, 0.3)
        return X, (X[:, 1] + noise * random.normal(size=size) > 0).astype(int)

    def parts(X):
        return np.column_stack([X[:, 0] > 0.5, X[:, 1] > 0, X[:, 0] < 0])

    for seed in range(n_models):
        X, y = draw(n)
        model = ConformalClassifier(
            method=method,
            model="gaussian",
            subgroups=parts,
            level=level,
            random_state=seed,
            calibration_size=0.7,
        ).fit(X, y)
        # One new row a model, so that the draws are independent.
        new, label = draw(1)
        held = parts(new)[0]
        inside = np.append(held, not held.any())
        wrong = not model.predict_set(new, allow_empty=True)[0, label[0]]
        about += inside
        missed += inside & wrong
    for wrong, rows in zip(missed, about, strict=True):
        assert binomtest(wrong, rows, level, alternative="greater").pvalue > 1e-4


def test_a_rule_finds_the_rows_of_a_column_of_bools_as_its_model_does():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=300), "male": rng.random(300) < 0.5})
    y = (frame["x"] + rng.normal(size=300) > 0).to_numpy()
    model = ConformalClassifier(
        LogisticRegression(), subgroups=["male"], random_state=0
    ).fit(frame, y)
    assert model.subgroups_ == ["male=False", "male=True"]
    held = model.rule_.members(frame)
    np.testing.assert_array_equal(held[:, 0], ~frame["male"])
    np.testing.assert_array_equal(held[:, 1], frame["male"])


def _sites(n=400):
    rng = np.random.default_rng(0)
    columns = {"x": rng.normal(size=n), "site": rng.integers(1, 3, n)}
    frame = pd.DataFrame({**columns, "age": rng.integers(18, 80, n)})
    return frame, (frame["x"] + rng.normal(size=n) > 0).to_numpy()


def _of_x(**settings):
    only_x = ColumnTransformer([("x", "passthrough", ["x"])])
    model = make_pipeline(only_x, LogisticRegression())
    return ConformalClassifier(model, random_state=0, **settings)


def _with_a_word(frame, column):
    frame = frame.astype({column: object})
    frame.loc[frame.index[0], column] = "A"
    return frame


@pytest.mark.parametrize("by", ["site", "age:45"])
def test_one_word_in_a_column_of_numbers_leaves_other_rows_in_their_subgroups(by):
    frame, y = _sites()
    model = _of_x(subgroups=[by]).fit(frame, y)
    held, sets = model.rule_.members(frame), model.predict_set(frame)
    assert held.any(axis=1).all()
    column = by.split(":")[0]
    mixed = _with_a_word(frame, column)
    for cells in (mixed, {column: mixed[column].tolist()}):
        found = model.rule_.members(cells)
        assert not found[0].any()
        np.testing.assert_array_equal(found[1:], held[1:])
    assert not sets.all()
    np.testing.assert_array_equal(model.predict_set(mixed)[1:], sets[1:])
    assert model.predict_set(mixed)[0].all()


@pytest.mark.parametrize("spelled", [int, float])
def test_numbers_are_in_the_subgroups_of_a_fit_that_saw_a_word_among_them(spelled):
    frame, y = _sites()
    mixed = _with_a_word(frame.astype({"site": spelled}), "site")
    model = _of_x(subgroups=["site"], level=0.5).fit(mixed, y)
    one, two, word = model.subgroups_
    assert one == f"site={spelled(1)}"
    assert (two, word) == (f"site={spelled(2)}", "site=A")
    held = np.column_stack([frame["site"] == 1, frame["site"] == 2, frame["x"].isna()])
    found = model.rule_.members(mixed)
    assert found[0].tolist() == [False, False, True]
    np.testing.assert_array_equal(found[1:], held[1:])
    # As numbers, as numbers with a gap, which makes them floats, and as words.
    gap = frame.assign(site=frame["site"].where(frame.index > 0))
    words = frame.assign(site=frame["site"].map(spelled).map(str))
    for rows in (frame, gap, words):
        found = model.rule_.members(rows)
        np.testing.assert_array_equal(found[1:], held[1:])
    assert not model.rule_.members(gap)[0].any()
    assert not model.rule_.members({"site": [3, 1.5, None]}).any()
    sets = model.predict_set(mixed)
    assert not sets.all()
    np.testing.assert_array_equal(model.predict_set(frame)[1:], sets[1:])
