import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from prudent.evaluation.evaluate import GRID, region_map


@pytest.fixture
def plane():
    X, y = load_iris(return_X_y=True)
    return X[:, 2:], y


def test_map_holds_the_decision_at_every_point_of_the_grid(plane):
    Z, y = plane
    found = region_map(LinearDiscriminantAnalysis(), Z, y, np.unique(y))
    model = LinearDiscriminantAnalysis().fit(Z, y)
    i, j = 3, GRID - 5
    assert found.predicted[i, j] == model.predict([[found.x[j], found.y[i]]])[0]
    assert found.sets.shape == (GRID, GRID, 3)


def test_point_predictions_leave_nothing_undecided(plane):
    Z, y = plane
    found = region_map(LinearDiscriminantAnalysis(), Z, y, np.unique(y))
    assert found.undecided == 0
    assert sum(found.class_shares) == pytest.approx(1)
