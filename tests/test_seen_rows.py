"""Copies among the rows of a fit, and rows of the fit among those meant to be new."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csc_matrix, csr_array, random_array
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import prudent
from prudent import (
    BinnedCalibrationClassifier,
    ConformalClassifier,
    ConformalDetector,
    LowDensityRejector,
    MinimaxOutlierDetector,
    NeymanPearsonClassifier,
    RiskCalibratedClassifier,
    SelectiveClassifier,
    certify,
)
from prudent.estimator_tools.held_out import table_keys
from prudent.exceptions import PrudentWarning

PLAIN = LogisticRegression()
CLASSIFIERS = {
    "full": ConformalClassifier(method="full"),
    "cross": ConformalClassifier(PLAIN, method="cross", random_state=0),
    "split": ConformalClassifier(PLAIN, method="split", random_state=0),
    "selective": SelectiveClassifier(PLAIN, error_rate=0.4, random_state=0),
    "Neyman-Pearson": NeymanPearsonClassifier(
        PLAIN, max_class_error={1: 0.5}, random_state=0
    ),
    "calibrated": RiskCalibratedClassifier(stopping="holdout", random_state=0),
}
DETECTORS = {
    "full": ConformalDetector(),
    "split": ConformalDetector(method="split", random_state=0),
    "density": LowDensityRejector(
        estimator=PLAIN, false_alarm_rate=0.1, random_state=0
    ),
    "minimax": MinimaxOutlierDetector(random_state=0),
}
SPLITS = {
    **CLASSIFIERS,
    **{f"{name} detector": detector for name, detector in DETECTORS.items()},
}


def rows(n, seed=0, scale=1.0, decimals=16):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = np.round(rng.normal(size=(n, 4)) * scale + y[:, None] * scale, decimals)
    return X, y


def fitted(model, X, y, **more):
    model = clone(model)
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    return model.fit(X, y, **more)


@pytest.mark.parametrize("name", SPLITS)
def test_a_doubled_table_is_warned_of_wherever_rows_rank(name):
    X, y = rows(100)
    with pytest.warns(PrudentWarning, match="more than chance explains"):
        fitted(SPLITS[name], np.r_[X, X], np.r_[y, y])


@pytest.mark.parametrize("name", SPLITS)
def test_rows_equal_by_chance_are_not(name):
    X, y = rows(300, decimals=0)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*(too few|certifies|taken).*")
        fitted(SPLITS[name], X, y)


COPIED = {
    "integers": lambda X: np.rint(50 * X).astype(int),
    "small integers": lambda X: np.rint(50 * X).astype(np.int16),
    "decimals": lambda X: np.round(X, 1),
    "words": lambda X: pd.DataFrame(
        np.char.mod("%.1f m", X).astype(object), columns=[*"abcd"]
    ),
    "polars": lambda X: pl.DataFrame(np.round(X, 2), schema=[*"abcd"]),
}


@pytest.mark.parametrize("kind", COPIED)
def test_a_few_copies_of_integers_words_and_decimals_are_warned_of(kind):
    X, y = rows(240)
    X[200:] = X[:40]
    table = COPIED[kind](X)
    front = OneHotEncoder(handle_unknown="ignore") if kind == "words" else "passthrough"
    columns = ["a", "b", "c", "d"] if hasattr(table, "columns") else [0, 1, 2, 3]
    inner = make_pipeline(make_column_transformer((front, columns)), PLAIN)
    model = ConformalClassifier(inner, method="split", random_state=0)
    with pytest.warns(PrudentWarning, match=r"\d+ of 72 held-out rows stand among"):
        model.fit(table, y)


def test_copies_among_the_held_out_rows_alone_are_warned_of():
    # Of 120 rows doubled, 5.1 % wrong: a promise of 5 % at 95 % is false in 18 %.
    X, y = rows(200)
    time, latest, earliest = np.arange(200), np.arange(140, 200), np.arange(40)
    model = SelectiveClassifier(PLAIN, error_rate=0.4, calibration_size=0.4)
    taken = np.r_[time, latest]
    told = "104 of 104 held-out rows stand there more than once, more than chance"
    with pytest.warns(PrudentWarning, match=told):
        model.fit(X[taken], y[taken], time=time[taken])
    taken = np.r_[time, earliest]  # no warning: none of them proves anything
    model.fit(X[taken], y[taken], time=time[taken])


def test_tied_scores_are_no_repeated_rows():
    X, y = rows(400, decimals=1)
    for width in (1, 2):
        fitted(CLASSIFIERS["split"], X[:, :width], y)


def test_groups_say_that_equal_rows_are_known():
    X, y = rows(100)
    groups = np.tile(np.arange(100), 2)
    fitted(CLASSIFIERS["split"], np.r_[X, X], np.r_[y, y], groups=groups)


def test_a_doubled_calibration_table_of_a_frozen_model_is_warned_of():
    X, y = rows(100)
    frozen = FrozenEstimator(LogisticRegression().fit(*rows(50, seed=1)))
    with pytest.warns(PrudentWarning, match="200 of 200 rows stand there more than"):
        ConformalClassifier(frozen).fit(np.r_[X, X], np.r_[y, y])


# --- rows of the fit among the rows of certify ----------------------------------


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize("where", ["as fitted", "loaded", "in a pipeline", "in a grid"])
def test_rows_of_the_fit_are_refused_and_counted(name, where, tmp_path):
    X, y = rows(300)
    X_new, y_new = rows(100, seed=1)
    model = CLASSIFIERS[name]
    if where == "in a pipeline" and name != "full":
        model = make_pipeline(StandardScaler(), model)
    if where == "in a grid":
        model = GridSearchCV(model, {"random_state": [0]}, cv=2)
        model.scoring = lambda model, X, y: 0.0
    model = fitted(model, X, y)
    if where == "loaded":
        prudent.save(model, tmp_path / "model.prudent")
        model = prudent.load(tmp_path / "model.prudent")
    assert certify(model, X_new, y_new)
    X_new[:23], y_new[:23] = X[100:123], y[100:123]
    with pytest.raises(ValueError, match="certify: 23 of these 100 rows were in the"):
        certify(model, X_new, y_new)
    with pytest.raises(ValueError, match="300 of these 300 rows were in the fit"):
        certify(model, X, y)


@pytest.mark.parametrize("name", DETECTORS)
def test_rows_of_the_fit_of_a_detector_are_refused(name):
    X, _ = rows(300)
    model = fitted(DETECTORS[name], X, None)
    assert certify(model, rows(100, seed=1)[0], np.ones(100))
    with pytest.raises(ValueError, match="40 of these 40 rows were in the fit"):
        certify(model, X[:40], np.ones(40))


def test_new_rows_that_stand_twice_are_warned_of():
    X, y = rows(100)
    model = LogisticRegression().fit(*rows(50, seed=1))
    assert certify(model, X, y)
    with pytest.warns(
        PrudentWarning, match="certify: 200 of 200 rows stand there more"
    ):
        certify(model, np.r_[X, X], np.r_[y, y])
    groups = np.tile(np.arange(100), 2)
    assert certify(model, np.r_[X, X], np.r_[y, y], groups=groups)


def test_one_row_of_the_fit_is_one_too_many_in_a_fine_table():
    X, y = rows(300)
    X_new, y_new = rows(100, seed=1)
    X_new[7] = X[11]
    with pytest.raises(ValueError, match="1 of these 100 rows were in the fit"):
        certify(fitted(CLASSIFIERS["split"], X, y), X_new, y_new)


def test_rows_of_a_coarse_table_are_new_though_equal():
    X, y = rows(600, decimals=0)
    model = fitted(CLASSIFIERS["split"], X[:300], y[:300])
    assert certify(model, X[300:], y[300:])
    with pytest.raises(ValueError, match="300 of these 300 rows were in the fit"):
        certify(model, X[:300], y[:300])


def test_numbers_of_another_type_and_columns_in_another_order_are_found():
    X, y = rows(300)
    X = np.rint(1000 * X)
    model = fitted(CLASSIFIERS["split"], X, y)
    with pytest.raises(ValueError, match="50 of these 50 rows"):
        certify(model, X[:50].astype(np.int32), y[:50])
    frame = pd.DataFrame(X, columns=[*"abcd"])
    model = fitted(CLASSIFIERS["split"], frame, y)
    with pytest.raises(ValueError, match="50 of these 50 rows"):
        certify(model, pl.DataFrame(frame[:50]), y[:50])
    from prudent.estimator_tools import refuse_seen_rows

    for turned in (frame[[*"dbca"]], pa.Table.from_pandas(frame[[*"cadb"]])):
        with pytest.raises(ValueError, match="300 of these 300 rows"):
            refuse_seen_rows("certify", model, turned)


@pytest.mark.parametrize("matrix", [csr_array, csc_matrix])
def test_rows_of_a_sparse_fit_are_found(matrix):
    rng = np.random.default_rng(0)
    X = random_array((400, 30), density=0.2, rng=rng).toarray()
    y = (X[:, 0] + rng.normal(scale=0.1, size=400) > 0.1).astype(int)
    model = SelectiveClassifier(PLAIN, error_rate=0.4, random_state=0)
    model.fit(csr_array(X), y)
    with pytest.raises(ValueError, match="certify: 150 of these 150 rows were in the"):
        certify(model, matrix(X[:150]), y[:150])
    new = np.where(X > 0, X + 1.0, 0)
    assert certify(model, matrix(new), y)


@pytest.mark.parametrize("matrix", [csr_array, csc_matrix])
def test_rows_of_wide_sparse_tables_have_the_keys_of_dense_ones(matrix):
    X = random_array((20, 1030), density=0.01, rng=np.random.default_rng(0)).toarray()
    X[0], X[1, :2] = 0.0, (np.nan, -1.0)
    sparse = matrix(X)
    sparse.data[-1] = 0.0  # and stored
    dense_keys, _ = table_keys(sparse.toarray())
    np.testing.assert_array_equal(table_keys(sparse)[0], dense_keys)
    assert len(np.unique(dense_keys)) == 20


def test_images_have_rows_too():
    X, _ = rows(300)
    images = X[:, :2].reshape(300, 2, 1)
    np.testing.assert_array_equal(table_keys(images)[0], table_keys(X[:, :2])[0])


def test_words_of_the_fit_are_found():
    X, y = rows(300)
    table, new = COPIED["words"](X), COPIED["words"](rows(100, seed=1)[0])
    inner = make_pipeline(OneHotEncoder(handle_unknown="ignore"), PLAIN)
    model = ConformalClassifier(inner, method="split", random_state=0).fit(table, y)
    assert certify(model, new, y[:100])
    with pytest.raises(ValueError, match="60 of these 60 rows"):
        certify(model, table[:60], y[:60])


def test_cells_of_words_that_look_like_numbers_stay_words():
    def keys(cells):
        return table_keys(np.array(cells, dtype=object)[:, None])[0]

    np.testing.assert_array_equal(keys(["1", "2", "x"])[:2], keys(["1", "2"]))
    np.testing.assert_array_equal(keys([1, 2.5, None]), keys([1.0, 2.5, np.nan]))
    assert keys(["1"])[0] != keys(["01"])[0]


def test_a_frozen_model_that_knows_its_rows_is_not_calibrated_on_them():
    X, y = rows(300)
    model = fitted(CLASSIFIERS["selective"], X, y)
    with pytest.raises(ValueError, match="ConformalClassifier: 300 of these 300 rows"):
        ConformalClassifier(FrozenEstimator(model)).fit(X, y)
    X_new, y_new = rows(200, seed=1)
    wrapper = ConformalClassifier(FrozenEstimator(model)).fit(X_new, y_new)
    for seen in (X, X_new):
        with pytest.raises(ValueError, match="100 of these 100 rows"):
            certify(wrapper, seen[:100], y[:100])


def noisy(n, seed):
    X, y = rows(n, seed=seed)
    return X, np.where(np.random.default_rng(seed).random(n) < 0.3, 1 - y, y)


@pytest.mark.parametrize(
    "wrapper",
    [
        ConformalClassifier(level=0.1),
        ConformalClassifier(condition="class", level=0.2),
        SelectiveClassifier(error_rate=0.1),
        NeymanPearsonClassifier(max_class_error={1: 0.2}),
    ],
)
def test_a_frozen_model_without_an_error_where_many_are_allowed_is_noted(wrapper):
    forest = RandomForestClassifier(20, bootstrap=False, random_state=0)
    forest.fit(*noisy(400, 0))
    wrapper = clone(wrapper).set_params(estimator=FrozenEstimator(forest))
    with pytest.warns(PrudentWarning, match="none of 400 calibration rows is answered"):
        wrapper.fit(*noisy(400, 0))
    assert wrapper.guarantees_
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*nothing is answered")
        wrapper.fit(*noisy(400, 1))


@pytest.mark.parametrize("n", [199, 200])
def test_a_frozen_model_is_noted_from_twenty_errors_allowed_on(n):
    X, y = rows(n)
    tree = DecisionTreeClassifier(random_state=0).fit(X, y)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ConformalClassifier(FrozenEstimator(tree), level=0.1, confidence=0.95).fit(X, y)
    noted = [w for w in caught if "calibration rows is answered" in str(w.message)]
    assert len(noted) == (n == 200)


@pytest.mark.parametrize(
    "wrapper",
    [
        SelectiveClassifier(answered_share=0.5),
        SelectiveClassifier(error_rate=None, answered_share=0.5),
        NeymanPearsonClassifier(max_class_error={1: 0.1}, flagged_share=0.7),
    ],
)
def test_a_promised_share_allows_a_frozen_model_no_errors(wrapper):
    def separate(n, seed):
        X, y = rows(n, seed=seed)
        return X + 20 * y[:, None], y

    model = LogisticRegression().fit(*separate(300, 0))
    wrapper = clone(wrapper).set_params(estimator=FrozenEstimator(model))
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrudentWarning)
        wrapper.fit(*separate(150, 1))
    assert "share" in wrapper.guarantees_[-1].quantity


def test_a_quoted_probability_allows_a_frozen_model_no_errors():
    """Of a cell that is all of one class a trivial limit allows every row of it."""
    X, y = rows(300)
    model = DecisionTreeClassifier(random_state=0).fit(X, y)
    quoted = BinnedCalibrationClassifier(FrozenEstimator(model), n_bins=3)
    with pytest.warns(PrudentWarning) as caught:
        quoted.fit(X, y)
    (said,) = {str(warning.message) for warning in caught}
    assert "none of 300 calibration rows is answered wrong: so look rows" in said


def test_what_is_kept_is_of_the_last_fit_and_eight_bytes_a_row():
    X, y = rows(300)
    model = fitted(CLASSIFIERS["split"], X, y)
    model.fit(*rows(200, seed=1))
    assert certify(model, X, y)
    assert model._known_rows.keys.nbytes == 1600


def test_rows_held_out_of_a_calibrated_fit_are_warned_of():
    X, y = rows(100)
    model = RiskCalibratedClassifier(stopping="holdout", random_state=0)
    with pytest.warns(PrudentWarning, match="more than chance explains"):
        model.fit(np.r_[X, X], np.r_[y, y])


def test_a_comparison_says_that_rows_stand_more_than_once():
    X, y = rows(200)
    doubled = {"X": np.r_[X, X[:30]], "y": np.r_[y, y[:30]]}
    settings = {"methods": ["minimax"], "baselines": [], "promise": "none"}
    told = prudent.compare(**doubled, **settings).data.notes
    assert any(note.startswith("60 of 230 rows stand more than once") for note in told)
    groups = np.r_[np.arange(200), np.arange(30)]
    for quiet in ({"X": X, "y": y}, {**doubled, "groups": groups}):
        notes = prudent.compare(**quiet, **settings).data.notes
        assert not any("more than once" in note for note in notes)


def test_missing_words_of_pandas_are_missing_cells():
    words = pd.DataFrame({"word": ["a", None, "b"] * 40, "x": np.arange(120.0)})
    with_na = words.convert_dtypes()
    assert with_na["word"].isna().sum() == 40
    assert any(cell is pd.NA for cell in with_na["word"])
    keys = [table_keys(frame)[0] for frame in (words, with_na)]
    np.testing.assert_array_equal(*keys)


@pytest.mark.parametrize("gap", [None, np.nan, ""])
def test_rows_whose_words_are_all_missing_are_known_again(gap):
    """Nothing in such rows says that the column holds words."""
    notes = np.array(["x", "y", gap] * 20, dtype=object)
    frame = pd.DataFrame({"a": np.arange(60.0), "note": notes})
    keys, _ = table_keys(frame)
    np.testing.assert_array_equal(table_keys(frame[2::3])[0], keys[2::3])
    assert len(np.unique(keys)) == 60
