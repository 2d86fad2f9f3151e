"""What conformal p-values and sets must satisfy on any rows."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from prudent import ConformalClassifier, ConformalDetector
from prudent.conformal.ranking import cross_bound
from prudent.exceptions import PrudentWarning

pytestmark = pytest.mark.filterwarnings("ignore::prudent.exceptions.PrudentWarning")

MODELS = (
    ConformalClassifier(),
    ConformalClassifier(covariance_type="diag", condition="class"),
    ConformalClassifier(
        model="gaussian", covariance_type="identity", nonconformity="density"
    ),
    ConformalClassifier(model="gaussian"),
    ConformalClassifier(model="gaussian", nonconformity="margin"),
)
VALUES = st.integers(-6, 6).map(lambda value: value / 2)


@st.composite
def tables(draw):
    """Rows with ties, labels of two or three classes, new rows."""
    n, d = draw(st.integers(4, 14)), draw(st.integers(1, 4))
    X = draw(arrays(float, (n, d), elements=VALUES))
    y = np.array([0, 1, *draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))])[:n]
    new = draw(arrays(float, (3, d), elements=VALUES))
    return X, y, new


def quiet(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrudentWarning)
        return model.fit(X, y)


@settings(deadline=None, max_examples=40)
@given(tables(), st.sampled_from(MODELS), st.randoms(use_true_random=False))
def test_row_order_does_not_matter(table, model, random):
    X, y, new = table
    expected = quiet(model, X, y).p_values(new)
    order = list(range(len(y)))
    random.shuffle(order)
    found = quiet(model, X[order], y[order]).p_values(new)
    np.testing.assert_array_equal(found, expected)


@settings(deadline=None, max_examples=40)
@given(tables(), st.sampled_from(MODELS), st.lists(st.integers(-40, 40), min_size=4))
def test_powers_of_two_do_not_matter(table, model, exponents):
    X, y, new = table
    scale = 2.0 ** np.array(exponents[: X.shape[1]])
    expected = quiet(model, X, y).p_values(new)
    found = quiet(model, X * scale, y).p_values(new * scale)
    np.testing.assert_array_equal(found, expected)


@settings(deadline=None, max_examples=40)
@given(tables(), st.sampled_from(MODELS), st.floats(0.01, 0.98), st.floats(0.01, 0.98))
def test_sets_are_nested_in_the_level(table, model, one, other):
    X, y, new = table
    model = quiet(model, X, y)
    smaller = model.predict_set(new, max(one, other))
    larger = model.predict_set(new, min(one, other))
    assert (larger >= smaller).all()
    assert smaller.any(axis=1).all()


@settings(deadline=None, max_examples=40)
@given(tables(), st.sampled_from(MODELS))
def test_p_values_count_the_bag(table, model):
    X, y, new = table
    p_values = quiet(model, X, y).p_values(new)
    _, counts = np.unique(y, return_counts=True)
    n = counts if model.condition == "class" else len(y)
    ranks = p_values * (n + 1)
    np.testing.assert_allclose(ranks, np.rint(ranks), atol=1e-9)
    assert (p_values > 0).all()
    assert (p_values <= 1).all()


@settings(deadline=None, max_examples=30)
@given(tables(), st.sampled_from(["combined", "distance", "ellipsoid"]))
def test_detectors_rank_a_training_row_among_its_equals(table, kind):
    """A row of the bag asked again is no stranger than its twin makes it."""
    X, _, new = table
    detector = quiet(ConformalDetector(nonconformity=kind), X, None)
    expected = detector.p_value(new)
    order = np.argsort(X[:, 0])
    np.testing.assert_array_equal(
        quiet(detector, X[order], None).p_value(new), expected
    )
    # The twin ties with it.
    assert (detector.p_value(X) >= 2 / (len(X) + 1)).all()


@given(st.integers(1, 40), st.integers(2, 12), st.integers(0, 100))
def test_cross_bounds_rise_with_the_rank(size, n_folds, rank):
    n = size * n_folds
    bound = cross_bound(n, n_folds, rank)
    assert rank / (n + 1) <= bound + 1e-12 or bound == 1
    assert bound <= cross_bound(n, n_folds, rank + 1)
    assert 0 <= bound <= 1
