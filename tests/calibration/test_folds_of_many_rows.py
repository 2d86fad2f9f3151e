"""With `cv=None` one fold chooses the number of updates by many rows, else all do."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from prudent import RiskCalibratedClassifier
from prudent.calibration import classifier, learn


@pytest.fixture
def rows():
    random = np.random.default_rng(0)
    X = random.standard_t(3, size=(600, 2))
    return X, (X[:, 0] * X[:, 1] + 0.3 * random.normal(size=600) > 0).astype(int)


def paths(monkeypatch, rows, **parameters):
    """A fit, and the rows that each of its paths learned from."""
    sizes = []
    climb = learn._climb

    def counting(trials, *others, **named):
        sizes.append(sum(len(trial.fitted.codes) for trial in trials.blocks))
        return climb(trials, *others, **named)

    monkeypatch.setattr(learn, "_climb", counting)
    fitted = RiskCalibratedClassifier(
        family="diag", max_iter=8, random_state=0, **parameters
    ).fit(*rows)
    return fitted, sizes


def test_few_rows_are_validated_in_all_folds(monkeypatch, rows):
    usual, sizes = paths(monkeypatch, rows, cv=None)
    assert len(sizes) == 6
    monkeypatch.undo()
    five, _ = paths(monkeypatch, rows)
    assert_array_equal(usual.predict_proba(rows[0]), five.predict_proba(rows[0]))


def test_of_many_rows_one_fold_decides_and_all_rows_fit(monkeypatch, rows):
    monkeypatch.setattr(classifier, "MOST_ROWS_FOR_ALL_FOLDS", 599)
    _, sizes = paths(monkeypatch, rows, cv=None)
    assert sizes == [480, 600]


def test_folds_that_were_set_all_decide(monkeypatch, rows):
    monkeypatch.setattr(classifier, "MOST_ROWS_FOR_ALL_FOLDS", 599)
    _, sizes = paths(monkeypatch, rows)
    assert len(sizes) == 6
