import numpy as np
import pytest
from sklearn.datasets import load_iris

from prudent.evaluation import estimators
from prudent.evaluation.estimators import ClasswiseRejector


@pytest.fixture(scope="module")
def fitted():
    X, y = load_iris(return_X_y=True)
    labels = np.array(["setosa", "versicolor", "virginica"])[y]
    return ClasswiseRejector(random_state=0).fit(X, labels)


def test_set_holds_the_classes_whose_p_value_exceeds_the_rate(fitted):
    X, _ = load_iris(return_X_y=True)
    np.testing.assert_array_equal(fitted.predict_set(X), fitted.p_values(X) > 0.05)


def test_prediction_has_the_largest_p_value(fitted):
    X, _ = load_iris(return_X_y=True)
    best = fitted.p_values(X).argmax(axis=1)
    np.testing.assert_array_equal(fitted.predict(X), fitted.classes_[best])


def test_a_row_like_no_class_has_an_empty_set(fitted):
    assert not fitted.predict_set(np.full((1, 4), 1e3)).any()


def test_each_class_has_its_promise(fitted):
    scopes = [promise.scope for promise in fitted.guarantees_]
    assert scopes == ["setosa", "versicolor", "virginica"]
    assert all(0 < promise.bound <= 0.05 for promise in fitted.guarantees_)
    averaged = {promise.average_over for promise in fitted.guarantees_}
    assert averaged == {"training samples"}


def test_small_classes_calibrate_on_enough_rows_for_the_rate(fitted):
    # 0.3 of 50 rows are 15, too few to reject anything at 0.05
    assert all(rejector.n_calibration_ >= 19 for rejector in fitted.rejectors_)


def test_of_a_large_class_a_plain_draw_is_learned_from(monkeypatch):
    monkeypatch.setattr(estimators, "MOST_OF_CLASS", 60)
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [200, 50])
    fitted = estimators.ClasswiseRejector(random_state=0).fit(
        rng.normal(size=(250, 2)) + 4.0 * y[:, None], y
    )
    used = [promise.evidence["calibration rows"] for promise in fitted.guarantees_]
    assert used[0] <= 30
    assert used[1] <= 25
