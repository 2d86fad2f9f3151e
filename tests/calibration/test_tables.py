import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.datasets import load_iris

from prudent import RiskCalibratedClassifier
from prudent.exceptions import PrudentWarning

FRAMES = [pd.DataFrame, pl.DataFrame]


def mixed_columns(m=90, seed=0):
    rng = np.random.default_rng(seed)
    colour = rng.choice(["red", "green", "blue"], m)
    flag = rng.random(m) < 0.5
    size = rng.normal(size=m) + flag
    y = np.where(size + (colour == "red") + rng.normal(size=m) > 0.8, "yes", "no")
    return {"colour": colour.tolist(), "size": size, "flag": flag}, y


def categorical(**settings):
    return RiskCalibratedClassifier(family="categorical", stopping="none", **settings)


@pytest.mark.parametrize("frame", FRAMES)
def test_mixed_reads_types_from_the_frame(frame):
    columns, y = mixed_columns()
    model = RiskCalibratedClassifier(family="mixed").fit(frame(columns), y)
    assert model.means_.shape == (2, 1)
    assert [p.shape for p in model.level_probabilities_] == [(2, 3), (2, 2)]
    np.testing.assert_allclose(model.predict_proba(frame(columns)).sum(axis=1), 1)


def test_pandas_and_polars_give_the_same_model():
    columns, y = mixed_columns()
    fits = [
        RiskCalibratedClassifier(family="mixed", random_state=0).fit(frame(columns), y)
        for frame in FRAMES
    ]
    np.testing.assert_array_equal(fits[0].loss_curve_, fits[1].loss_curve_)


def test_mixed_needs_a_frame():
    with pytest.raises(ValueError, match="must be a pandas or polars data frame"):
        RiskCalibratedClassifier(family="mixed").fit(np.ones((4, 2)), [0, 1, 0, 1])


@pytest.mark.parametrize("frame", FRAMES)
def test_missing_word_is_left_out(frame):
    values = ["a", None, "b", None, "a", "b", "a"]
    model = categorical().fit(frame({"word": values}), [0, 1, 0, 1, 0, 1, 1])
    assert model.level_probabilities_[0].shape == (2, 2)
    np.testing.assert_allclose(
        model.predict_proba(frame({"word": [None, "a"]}))[0], model.priors_
    )


def test_lists_of_numbers_and_words_keep_both():
    rows = [[1, "a"], [2, "b"], [1, "b"], [2, "a"]]
    model = categorical().fit(rows, [0, 1, 0, 1])
    np.testing.assert_array_equal(
        model.predict_proba([[2, 7]]), model.predict_proba([[2, "new"]])
    )
    assert model.predict([[2, 7]]) == [1]


def test_missing_number_is_left_out_in_categorical():
    X = np.array([[1.0], [np.nan], [2.0], [np.nan], [1.0], [2.0]])
    model = categorical(max_iter=1).fit(X, [0, 1, 0, 1, 0, 1])
    assert model.level_probabilities_[0].shape == (2, 2)
    np.testing.assert_allclose(model.predict_proba([[np.nan]]), [[0.5, 0.5]])


def test_levels_are_the_same_by_name_and_by_number():
    rng = np.random.default_rng(0)
    codes, y = rng.integers(3, size=(80, 2)), np.arange(80) % 2
    words = np.array(["a", "b", "c"], dtype=object)[codes]
    by_number, by_name = categorical().fit(codes, y), categorical().fit(words, y)
    np.testing.assert_array_equal(by_number.loss_curve_, by_name.loss_curve_)


def test_unseen_level_is_predicted_without_nan():
    model = categorical().fit([["a"], ["b"], ["a"], ["b"]], [0, 1, 0, 1])
    np.testing.assert_allclose(model.predict_proba([["c"]]), [[0.5, 0.5]])


def test_repeated_rows_of_levels_change_nothing():
    rng = np.random.default_rng(0)
    codes, y = rng.integers(2, size=(50, 2)), rng.integers(2, size=50)
    plain = categorical().fit(codes, y, sample_weight=np.full(50, 3.0))
    repeated = categorical().fit(np.repeat(codes, 3, axis=0), np.repeat(y, 3))
    np.testing.assert_allclose(plain.loss_curve_, repeated.loss_curve_, rtol=1e-12)


def test_feature_of_one_level_is_ignored():
    codes = np.array([[0, 7], [1, 7], [0, 7], [1, 7], [1, 7]])
    y = [0, 1, 0, 1, 0]
    with pytest.warns(PrudentWarning, match=r"feature\(s\) 1 are constant"):
        model = categorical().fit(codes, y)
    plain = categorical().fit(codes[:, :1], y)
    np.testing.assert_array_equal(model.constant_features_, [1])
    np.testing.assert_allclose(
        model.predict_proba([[0, 7], [1, 8]]), plain.predict_proba([[0], [1]])
    )


def test_constant_columns_of_a_mixed_frame_are_named_by_their_place():
    columns, y = mixed_columns()
    frame = pd.DataFrame({"word": ["w"] * len(y), **columns, "one": 1.0})
    with pytest.warns(PrudentWarning, match="'word', 'one'"):
        model = RiskCalibratedClassifier(family="mixed").fit(frame, y)
    np.testing.assert_array_equal(model.constant_features_, [0, 4])


def test_level_strengths_must_match_the_features():
    with pytest.raises(ValueError, match="each of the 2 categorical features"):
        categorical(level_prior_strength=[1.0, 1.0, 1.0]).fit([[0, 1], [1, 0]], [0, 1])


def test_one_level_strength_for_each_feature():
    X, y = [[0, 0], [1, 1], [0, 2], [1, 0]], [0, 1, 0, 1]
    model = categorical(level_prior_strength=[2.0, 3.0], max_iter=1).fit(X, y)
    np.testing.assert_allclose(
        model.level_probabilities_[0], [[0.75, 0.25], [0.25, 0.75]]
    )
    np.testing.assert_allclose(
        model.level_probabilities_[1], [[0.4, 0.2, 0.4], [0.4, 0.4, 0.2]]
    )


# Batches.


@pytest.mark.parametrize("family", ["full", "diag", "tied", "tied_diag", "categorical"])
def test_one_batch_is_two_evaluations(family):
    X, y = load_iris(return_X_y=True)
    stream = RiskCalibratedClassifier(family=family).partial_fit(X, y)
    fit = RiskCalibratedClassifier(
        family=family, max_iter=2, stopping="none", line_search=False
    ).fit(X, y)
    for mine, expected in zip(stream.statistics_, fit.statistics_, strict=True):
        np.testing.assert_allclose(mine, expected, atol=1e-10)
    assert stream.n_iter_ == 2


@pytest.mark.parametrize("family", ["full", "diag", "tied", "tied_diag"])
def test_tiny_steps_give_the_closed_form_of_all_batches(family):
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    stream = RiskCalibratedClassifier(
        family=family, learning_rate=1e-12, covariance_prior_strength=0.0
    )
    for batch in np.array_split(order, 4):
        stream.partial_fit(X[batch], y[batch], classes=[0, 1, 2])
    start = RiskCalibratedClassifier(
        family=family, max_iter=1, covariance_prior_strength=0.0
    ).fit(X, y)
    np.testing.assert_allclose(
        stream.predict_proba(X), start.predict_proba(X), atol=1e-8
    )


def test_unseen_class_has_its_column_and_is_never_predicted():
    X, y = load_iris(return_X_y=True)
    model = RiskCalibratedClassifier().partial_fit(X[:100], y[:100], classes=[0, 1, 2])
    H = model.predict_proba(X)
    assert H.shape == (150, 3)
    assert not H[:, 2].any()
    assert model.priors_[2] == 0
    model.partial_fit(X[100:], y[100:])
    assert (model.predict(X) == 2).any()


def test_new_labels_join_when_none_were_declared():
    X, y = load_iris(return_X_y=True)
    model = RiskCalibratedClassifier().partial_fit(X[:100], y[:100])
    model.partial_fit(X[100:], y[100:])
    np.testing.assert_array_equal(model.classes_, [0, 1, 2])


def test_not_fitted_before_the_second_class():
    from sklearn.exceptions import NotFittedError

    X, y = load_iris(return_X_y=True)
    model = RiskCalibratedClassifier().partial_fit(X[:40], y[:40], classes=[0, 1, 2])
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_label_outside_the_declared_classes_is_an_error():
    X, y = load_iris(return_X_y=True)
    model = RiskCalibratedClassifier()
    with pytest.raises(ValueError, match=r"label 2.*declared `classes` \[0, 1\]"):
        model.partial_fit(X, y, classes=[0, 1])


def test_declared_classes_must_stay():
    X, y = load_iris(return_X_y=True)
    model = RiskCalibratedClassifier().partial_fit(X, y, classes=[0, 1, 2])
    with pytest.raises(ValueError, match=r"must stay \[0, 1, 2\]"):
        model.partial_fit(X, y, classes=[0, 1, 2, 3])


def test_fit_forgets_earlier_batches():
    X, y = load_iris(return_X_y=True)
    model = RiskCalibratedClassifier(stopping="none").partial_fit(X[:100], y[:100])
    fresh = RiskCalibratedClassifier(stopping="none").fit(X, y)
    np.testing.assert_array_equal(model.fit(X, y).loss_curve_, fresh.loss_curve_)


def test_gradient_descent_has_no_partial_fit():
    model = RiskCalibratedClassifier(method="gd", family="tied")
    assert not hasattr(model, "partial_fit")


@pytest.mark.parametrize("setting", [{"loss": "zero_one"}, {"generative_weight": 3.0}])
def test_loss_and_generative_weight_reach_the_batches(setting):
    X, y = load_iris(return_X_y=True)

    def second_batch(**settings):
        model = RiskCalibratedClassifier(**settings)
        for rows in (slice(0, 120), slice(120, 150)):
            model.partial_fit(X[rows], y[rows], classes=[0, 1, 2])
        return model.statistics_[1]

    assert not np.allclose(second_batch(), second_batch(**setting), rtol=1e-9)


def test_costs_of_unseen_classes_wait_for_them():
    X, y = load_iris(return_X_y=True)
    model = RiskCalibratedClassifier(costs=1 - np.eye(3))
    model.partial_fit(X[:100], y[:100], classes=[0, 1, 2])
    assert set(model.predict(X)) == {0, 1}


def test_empty_frame_is_an_error():
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        RiskCalibratedClassifier(family="mixed").fit(pd.DataFrame({"a": []}), [])


def test_frame_of_numbers_alone_is_mixed_without_words():
    X, y = load_iris(return_X_y=True)
    settings = {"stopping": "none", "max_iter": 5}
    mixed = RiskCalibratedClassifier(family="mixed", **settings)
    diag = RiskCalibratedClassifier(family="diag", **settings).fit(X, y)
    mixed.fit(pd.DataFrame(X), y)
    np.testing.assert_allclose(mixed.loss_curve_, diag.loss_curve_, rtol=1e-12)


def test_frame_of_words_alone_is_mixed_without_numbers():
    frame = pd.DataFrame({"word": ["a", "b", "a", "b", "a", "b"]})
    y = [0, 1, 0, 1, 1, 0]
    mixed = RiskCalibratedClassifier(family="mixed", stopping="none").fit(frame, y)
    levels = categorical().fit(frame, y)
    np.testing.assert_allclose(mixed.loss_curve_, levels.loss_curve_, rtol=1e-12)
