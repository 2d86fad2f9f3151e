"""Values of single columns with which more rows are handed over."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from prudent import compare
from prudent.estimator_tools.labelled_rows import labelled_rows
from prudent.evaluation.handed_over import column_ranges


def table(n, rng, words=("a", "b", "c")):
    frame = pd.DataFrame(
        {
            "noise": rng.normal(size=n),
            "size": rng.normal(size=n),
            "few": rng.integers(0, 3, n),
            "word": rng.choice(words, n),
            "gaps": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
        }
    )
    return frame, labelled_rows(frame, rng.integers(0, 2, n))


def test_a_range_of_numbers_a_word_and_missing_cells_are_found():
    rng = np.random.default_rng(0)
    frame, rows = table(2000, rng)
    places = np.arange(2000)
    for is_inside, column in (
        (frame["size"] > 0.9, "size"),
        (frame["size"].abs() < 0.4, "size"),
        (frame["word"] == "b", "word"),
        (frame["gaps"].isna(), "gaps"),
    ):
        is_left = rng.random(2000) < np.where(is_inside, 0.6, 0.1)
        found = column_ranges(rows, places, is_left)[0]
        assert found.column == column
        assert found.handed_over > 0.3 > 0.2 > found.elsewhere
        values = frame[column]
        if found.word is not None:
            mask = values == found.word
        elif found.low is None and found.high is None:
            mask = values.isna()
        else:
            low, high = found.low, found.high
            mask = (values >= (-np.inf if low is None else low)) & (
                values <= (np.inf if high is None else high)
            )
        assert mask.sum() == found.n
        assert is_left[mask].mean() == pytest.approx(found.handed_over)
        assert is_left[~mask].mean() == pytest.approx(found.elsewhere)


def test_chance_alone_is_told_in_one_table_of_twenty_at_most():
    rng = np.random.default_rng(1)
    n_tables, told = 300, 0
    for _ in range(n_tables):
        _, rows = table(120, rng)
        is_left = rng.random(120) < 0.3
        told += bool(column_ranges(rows, np.arange(120), is_left))
    assert told <= binom.ppf(1 - 1e-4, n_tables, 0.05)


@pytest.mark.parametrize("share", [0, 1])
def test_nothing_stands_out_where_all_rows_fare_alike(share):
    _, rows = table(60, np.random.default_rng(2))
    assert column_ranges(rows, np.arange(60), np.full(60, bool(share))) == ()


def test_a_comparison_tells_where_rows_are_handed_over():
    rng = np.random.default_rng(3)
    n = 1200
    X = pd.DataFrame({"x": rng.uniform(-2, 2, n), "noise": rng.normal(size=n)})
    # Between -1 and 1 the label is a coin.
    y = np.where(X["x"].abs() < 1, rng.integers(0, 2, n), X["x"] > 0)
    found = compare(
        X, y, methods=("calibrated",), baselines=("lda",), promise="error <= 5%"
    )
    for row in found.rows:
        assert row.asked.decided > 0.2
        (told, *_) = row.ranges
        assert told.column == "x"
        assert -1.3 < told.low < 0 < told.high < 1.3
        assert told.handed_over > 0.8
        assert len(row.examples) == 5
        for place, label in row.examples:
            assert str(y[place]) == label
    assert found.to_dict()["rows"][0]["ranges"][0]["column"] == "x"
