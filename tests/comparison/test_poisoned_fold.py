"""No promise of a fold knows a label that tests it."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

import prudent
from prudent.comparison import protocol
from prudent.evaluation import evaluate
from prudent.evaluation.evaluate import make_folds

X, Y = load_breast_cancer(return_X_y=True)
FOLDS = make_folds(Y, 3, 1, random_state=0)
METHODS = ("minimax", "imprecise", "optimistic", "conformal")


def promises(y, promise, monkeypatch):
    """Own promises and those asked for, by method and fold."""
    found = {}
    run_fold = evaluate._run_fold

    def recorded(estimator, task, index):
        result = run_fold(estimator, task, index)
        counts = result[1].own, result[1].promises
        found[str(estimator), index] = [[c[0] for c in own] for own in counts]
        return result

    with monkeypatch.context() as patch:
        patch.setattr(protocol, "make_folds", lambda *_, **__: FOLDS)
        patch.setattr(evaluate, "_run_fold", recorded)
        prudent.compare(
            X,
            y,
            promise=promise,
            methods=METHODS,
            baselines=("logistic", "qda"),
            cv=3,
        )
    return found


@pytest.mark.parametrize(
    "promise", ["coverage >= 90% in every class", "error <= 10%", "missed 0 <= 15%"]
)
def test_promises_do_not_change_with_the_labels_that_test_them(promise, monkeypatch):
    poisoned = Y.copy()
    poisoned[FOLDS[0].test] = 1 - Y[FOLDS[0].test]
    clean = promises(Y, promise, monkeypatch)
    after = promises(poisoned, promise, monkeypatch)
    assert len(clean) == 3 * 7
    assert after.keys() == clean.keys()
    assert sum(len(asked) > 0 for _, asked in clean.values()) >= 15
    changed = {key for key in clean if clean[key] != after[key]}
    assert {index for _, index in changed} == {1, 2}  # they learn from poisoned rows
    assert np.mean([key in changed for key in clean if key[1] > 0]) > 0.5
