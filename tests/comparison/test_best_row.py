"""The row `best` of a comparison: chosen inside each training part."""

import pytest
from sklearn.datasets import load_breast_cancer

import prudent
from prudent import BestClassifier
from prudent.evaluation.evaluate import make_folds

X, Y = load_breast_cancer(return_X_y=True)
NAMES = ("majority", "logistic", "lda", "qda")


def rows_of(comparison):
    return {row.method: row for row in comparison.rows}


@pytest.fixture(scope="module")
def compared():
    return prudent.compare(
        X, Y, promise="error <= 5%", methods=(), baselines=NAMES, best=True
    )


def test_it_promises_at_the_full_level_and_the_others_share_theirs(compared):
    rows = rows_of(compared)
    assert set(rows) == {*NAMES, "best"}
    (best,), (lda,) = rows["best"].asked.items, rows["lda"].asked.items
    assert best.guarantee.confidence == pytest.approx(0.95)
    assert lda.guarantee.confidence == pytest.approx(1 - 0.05 / 4)


def test_the_other_rows_are_those_of_a_comparison_without_it(compared):
    alone = prudent.compare(X, Y, promise="error <= 5%", methods=(), baselines=NAMES)
    for name, row in rows_of(alone).items():
        assert rows_of(compared)[name].asked == row.asked


def test_it_is_the_choice_of_each_training_part(compared):
    (note,) = rows_of(compared)["best"].notes
    chosen = []
    for fold in make_folds(Y, 5, 1, random_state=0):
        best = BestClassifier(
            list(NAMES[1:]), promise="error <= 5%", cv=3, random_state=0
        ).fit(X[fold.train], Y[fold.train])
        chosen.append(best.best_name_)
    for name in set(chosen):
        n = chosen.count(name)
        assert f"{name} in {n}" in note
    assert "majority" not in note


def test_the_table_ends_with_what_needs_no_fresh_rows(compared):
    text = " ".join(str(compared).split())
    assert "best chooses inside its training part: its promise needs no fresh" in text
    assert "Another row picked from this table shares the level: add --among 5." in text
