from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from prudent.evaluation.frame import Measured, Tally, false_alarms
from prudent.evaluation.records import Findings

TRUE = np.array([0, 0, 1, 2, 2, 2])
PREDICTED = np.array([0, 1, 1, 2, 0, 2])
SETS = np.array(
    [[1, 0, 0], [0, 1, 1], [1, 1, 1], [0, 0, 0], [1, 0, 1], [0, 0, 1]], dtype=bool
)


@pytest.fixture
def tally():
    return Tally.count(TRUE, PREDICTED, SETS, 3)


def test_confusion_has_true_classes_as_rows(tally):
    assert tally.confusion.tolist() == [[1, 1, 0], [0, 1, 0], [1, 0, 2]]


def test_set_sizes_are_counted_by_true_class(tally):
    assert tally.set_sizes.tolist() == [[0, 1, 1, 0], [0, 0, 0, 1], [1, 1, 1, 0]]


def test_covered_counts_sets_that_hold_the_truth(tally):
    assert tally.covered.tolist() == [1, 1, 2]


def test_wrong_predictions_and_rows_are_counted_by_true_class(tally):
    assert tally.wrong.tolist() == [1, 0, 1]
    assert tally.rows.tolist() == [2, 1, 3]


def test_a_hedging_set_is_no_miss_though_the_prediction_is_wrong():
    everything = np.ones((6, 3), dtype=bool)
    tally = Tally.count(TRUE, PREDICTED, everything, 3)
    assert tally.missed.tolist() == [0, 0, 0]
    assert tally.wrong.tolist() == [1, 0, 1]


def test_without_sets_a_miss_is_a_wrong_prediction():
    tally = Tally.count(TRUE, PREDICTED, None, 3)
    assert not tally.gives_sets
    assert tally.missed.tolist() == tally.wrong.tolist()


def test_items_of_the_parts_add_up_to_the_whole(tally):
    classes = np.array(["a", "b", "c"])
    items = []
    for fold, rows in enumerate((slice(0, 2), slice(2, 3), slice(3, 6)), start=1):
        measured = Measured(classes)
        part = Tally.count(TRUE[rows], PREDICTED[rows], SETS[rows], 3)
        measured.add_answers(part, asked=True)
        items.append(measured.table(1, fold))
    total = Tally.from_items(pa.concat_tables(items), classes, asked=True)
    assert total.gives_sets
    for name in ("confusion", "set_sizes", "covered", "wrong_when_decided"):
        np.testing.assert_array_equal(getattr(total, name), getattr(tally, name))


def test_items_without_sets_are_answers_of_one_class():
    measured = Measured(np.arange(3))
    tally = Tally.count(TRUE, PREDICTED, None, 3)
    measured.add_answers(tally)
    read = Tally.from_items(measured.table(1, 1), np.arange(3), asked=False)
    assert not read.gives_sets
    for name in ("confusion", "set_sizes", "covered", "wrong_when_decided"):
        np.testing.assert_array_equal(getattr(read, name), getattr(tally, name))


def test_a_class_that_is_not_tested_has_a_row_of_zeros():
    tally = Tally.count(np.array([0]), np.array([2]), None, 3)
    assert tally.confusion.tolist() == [[0, 0, 1], [0, 0, 0], [0, 0, 0]]


def test_false_alarms_are_shares_of_the_rows_of_folds_with_p_values():
    folds = []
    for fold, alarms in ((1, [3, 5]), (2, None)):  # the second chose a method without
        measured = Measured(np.array(["a", "b"]))
        measured.add("fit seconds", 1.0, 1)
        if alarms is not None:
            measured.add("false alarms at", alarms, 75, at=[0.05, 0.1])
        table = measured.table(1, fold)
        folds.append(table.set_column(0, "method", [["best"] * len(table)]))
    found = Findings(
        data=None,
        settings=SimpleNamespace(n_repeats=1),
        rows=(),
        folds=(),
        versions={},
        measured=pa.concat_tables(folds),
    )
    assert false_alarms(found, "best") == {0.05: (3.0, 75.0), 0.1: (5.0, 75.0)}
    assert false_alarms(found, "other") == {}
