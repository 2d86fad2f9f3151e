"""Usefulness under a promise, judged by training rows: values worked out elsewhere."""

import numpy as np
import pytest

from prudent.rules.usefulness import (
    answers_usefulness,
    class_errors_usefulness,
    labels_usefulness,
    ranking,
    sets_usefulness,
)

ROWS = np.arange(300)
SURENESS = 1 - ROWS / 600
WRONG = np.where(ROWS < 200, ROWS % 25 == 24, ROWS % 4 == 3)


@pytest.mark.parametrize(
    ("n_held_out", "rate", "expected"),
    [
        (100, 0.05, 0.0395),
        (150, 0.05, 0.0493333333),
        (150, 0.1, 0.43225),
        (300, 0.05, 0.0748333333),
    ],
)
def test_share_of_rows_answered_is_that_of_the_reference(n_held_out, rate, expected):
    useful = answers_usefulness(SURENESS, WRONG, n_held_out, rate=rate, confidence=0.95)
    assert useful[0] == pytest.approx(expected, abs=1e-10)
    errors = np.cumsum(WRONG) / np.arange(1, 301)
    assert useful[1] == pytest.approx(-errors.mean())


def test_sets_are_cut_by_the_rows_themselves_and_never_empty():
    # Nine rows of each class: at 0.2 the rank is floor(0.2 * 10) = 2.
    own = np.arange(1.0, 10.0)
    scores = np.concatenate(
        [np.column_stack([own, 5 - own]), np.column_stack([5 - own, own])]
    )
    codes = np.repeat([0, 1], 9)
    useful = sets_usefulness(scores, codes, rates=0.2, by_class=True, confidence=None)
    members = scores >= 2
    assert members.any(axis=1).all()
    assert useful[0] == pytest.approx(-members.sum(axis=1).mean())
    assert useful[1] == pytest.approx(-(own < 2.5).mean())
    lonely = np.where(scores < 0, -np.inf, scores) - 100
    assert sets_usefulness(lonely, codes, rates=0.9, by_class=False, confidence=None)[
        0
    ] == pytest.approx(-1)


def test_too_few_rows_for_a_confidence_put_every_class_into_every_set():
    scores, codes = np.eye(2).repeat(5, axis=0), np.repeat([0, 1], 5)
    useful = sets_usefulness(scores, codes, rates=0.1, by_class=True, confidence=0.95)
    assert useful[0] == -2


def test_a_class_is_cut_at_the_rank_that_its_held_out_rows_would_take():
    # 100 of 200 rows are of class 0, 100 held out: 50 of the class, where rank 2 keeps
    # .1 with .95; of the 100 out of fold that is rank floor(2 * 101 / 51) = 3.
    codes = np.repeat([0, 1], 100)
    first = np.concatenate([np.arange(100.0), np.arange(-60.0, 40.0)])
    scores = np.column_stack([first, np.full(200, 50.0)])
    useful = class_errors_usefulness(
        scores, codes, 100, limits={0: 0.1}, confidence=0.95
    )
    assert useful[0] == pytest.approx(-(first[100:] >= 2).mean())
    assert useful[1] == pytest.approx(-np.mean((first >= 50) != (codes == 0)))


def test_equal_candidates_stay_in_the_order_given():
    values = [
        (0.5, -0.2),
        (0.6, -0.3),
        (0.6 + 1e-12, -0.3),
        (0.6, -0.1),
    ]
    assert ranking(values).tolist() == [3, 1, 2, 0]


def test_without_a_promise_the_error_counts():
    scores = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
    assert labels_usefulness(scores, np.array([0, 1, 1]))[0] == pytest.approx(-1 / 3)
