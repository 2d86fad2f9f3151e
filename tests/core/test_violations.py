"""Which rows a promise is about, and which of them break it: by hand, row by row."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from prudent import Guarantee
from prudent.core.guarantee import violated_rows

TRUTH = np.array(["a", "b", None, "a", "b"], dtype=object)
CLASSES = ["a", "b"]
SETS = np.array([[1, 0], [1, 1], [1, 0], [0, 0], [1, 0]], dtype=bool)
LABELS = np.array(["a", "a", "a", "b", "b"])


def promise(quantity, scope=None):
    sense = ">=" if quantity == "coverage" else "<="
    return Guarantee(quantity=quantity, bound=0.5, sense=sense, scope=scope)


@pytest.mark.parametrize(
    ("quantity", "scope", "answers", "counted", "broken"),
    [
        ("coverage", None, (SETS, CLASSES), [0, 1, 3, 4], [3, 4]),
        ("coverage", "b", (SETS, CLASSES), [1, 4], [4]),
        ("coverage", "c", (SETS, CLASSES), [], []),
        ("selective error rate", None, (SETS, CLASSES), [0, 4], [4]),
        ("selective error rate", "a", (SETS, CLASSES), [0], []),
        ("false alarm rate", "a", (SETS, CLASSES), [0, 3], [3]),
        ("error rate", None, (LABELS,), [0, 1, 3, 4], [1, 3]),
        ("class error rate", "a", (LABELS,), [0, 3], [3]),
        ("false alarm rate", None, ([1, -1, -1, 1, -1],), [0, 1, 3, 4], [1, 4]),
        ("false alarm rate", "b", ([1, -1, -1, 1, 1],), [1, 4], [1]),
        ("miss rate", None, ([1, -1, 1, 1, -1],), [0, 1, 3, 4], [0, 3]),
        # Of shares and precisions the rows that have the property are counted.
        ("answered share", None, (SETS, CLASSES), [0, 1, 2, 3, 4], [0, 2, 4]),
        ("flagged share", "b", (LABELS,), [0, 1, 2, 3, 4], [3, 4]),
        ("flagged share", None, ([1, -1, -1, 1, 1],), [0, 1, 2, 3, 4], [1, 2]),
        ("precision", "a", (LABELS,), [0, 1], [0]),
        ("probability", "b", (LABELS,), [0, 1, 3, 4], [1, 4]),
    ],
)
def test_rows_are_counted_and_broken_as_the_promise_says(
    quantity, scope, answers, counted, broken
):
    about, violated = violated_rows(promise(quantity, scope), TRUTH, *answers)
    assert np.flatnonzero(about).tolist() == counted
    assert np.flatnonzero(about & violated).tolist() == broken


def test_numbers_that_are_missing_are_no_labels():
    about, _ = violated_rows(promise("error rate"), [0.0, np.nan, 1.0], [0, 0, 0])
    assert about.tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("quantity", "scope", "truth", "answers", "says"),
    [
        ("class error rate", 1, ["1", "0"], (["1", "0"],), "in `y_true`, such as '1'"),
        ("class error rate", "1", [1, 0], ([1, 0],), "in the promise, such as '1'"),
        ("error rate", None, [1, 0], (["1", "0"],), "and numbers in `y_true`, such as"),
        ("coverage", None, ["a", "b"], (SETS[:2], [0, 1]), "and numbers in `classes`"),
        ("coverage", "1", [1, 0], (SETS[:2], [0, 1]), "numbers in `y_true`"),
        ("flagged share", 1, ["1", "0"], (["1", "0"],), "use one type"),
        ("precision", "1", [1, None], (["1", "0"],), "use one type"),
        ("probability", "1", [1, 0], ([1, 0],), "use one type"),
        ("false alarm rate", "1", [1, 0], ([1, -1],), "use one type"),
    ],
)
def test_text_beside_numbers_is_refused_where_nothing_would_be_counted(
    quantity, scope, truth, answers, says
):
    with pytest.raises(ValueError, match=says):
        violated_rows(promise(quantity, scope), truth, *answers)


def test_answers_of_a_detector_are_no_labels():
    about, broken = violated_rows(
        promise("false alarm rate", "a"), ["a", "b", "a"], [1, -1, -1]
    )
    assert (about & broken).tolist() == [False, False, True]


def test_precision_of_a_detector_counts_anomalies_among_its_alarms():
    about, true = violated_rows(promise("precision"), [1, -1, -1, 1], [-1, -1, 1, 1])
    assert np.flatnonzero(about).tolist() == [0, 1]
    assert np.flatnonzero(about & true).tolist() == [1]


@pytest.mark.parametrize("quantity", ["flagged share", "precision"])
def test_flagged_rows_are_told_by_labels(quantity):
    with pytest.raises(ValueError, match=f"a {quantity} is counted by labels"):
        violated_rows(promise(quantity, "a"), TRUTH, SETS, CLASSES)


@pytest.mark.parametrize(
    ("quantity", "sense", "frequent"),
    [
        ("coverage", ">=", False),
        ("coverage", "<=", True),
        ("answered share", ">=", True),
        ("flagged share", "<=", False),
        ("precision", ">=", True),
        ("probability", ">=", True),
        ("probability", "<=", False),
        ("error rate", "<=", False),
    ],
)
def test_what_is_counted_is_promised_to_be_frequent_or_rare(quantity, sense, frequent):
    claim = Guarantee(quantity=quantity, bound=0.5, sense=sense)
    assert claim.counts_frequent == frequent
    # Counts of what is frequent speak for the promise.
    best = 100 if frequent else 0
    assert claim.check(best, 100).verdict == "kept"
    assert claim.check(100 - best, 100).verdict == "broken"


def test_labels_do_not_say_which_rows_were_answered():
    with pytest.raises(ValueError, match="labels do not say which rows were answered"):
        violated_rows(promise("selective error rate"), TRUTH, LABELS)


@pytest.mark.parametrize("quantity", ["expected cost", "false discovery rate"])
def test_what_is_no_rate_of_rows_is_refused(quantity):
    with pytest.raises(ValueError, match=f"a {quantity} is not counted by rows"):
        violated_rows(promise(quantity), TRUTH, LABELS)


@pytest.mark.parametrize("quantity", ["false alarm rate", "miss rate"])
@pytest.mark.parametrize("answers", [["a", "b"], [True, False], [0, 1], ["-1", "1"]])
def test_alarms_are_counted_by_what_a_detector_answers(quantity, answers):
    with pytest.raises(ValueError, match="-1 for an alarm and 1 for none, got"):
        violated_rows(promise(quantity), ["a", "b"], answers)


def test_probabilities_are_no_sets():
    with pytest.raises(ValueError, match="must be True or False, got 0.3"):
        violated_rows(promise("coverage"), ["a"], [[0.3, 0.7]], CLASSES)
    _, broken = violated_rows(promise("coverage"), ["a"], [[1.0, 0.0]], CLASSES)
    assert not broken.any()


def test_a_missing_value_of_pandas_is_no_label():
    truth = pd.array(["a", pd.NA, "b"])
    counted, broken = violated_rows(promise("error rate"), truth, ["a", "a", "a"])
    assert counted.tolist() == [True, False, True]
    assert (counted & broken).tolist() == [False, False, True]
