"""Bundled tables are what they say and hold scikit-learn's numbers."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import datasets as sklearn_datasets

from prudent.datasets import BUNDLED
from prudent.io import read_table, training_data


def load(name: str):
    table = read_table(str(BUNDLED[name].path), text_columns=[BUNDLED[name].target])
    return table, training_data(table, BUNDLED[name].target)


@pytest.mark.parametrize("name", BUNDLED)
def test_sizes_are_as_stated(name):
    stated = BUNDLED[name]
    table, training = load(name)
    assert table.n_rows == stated.n_rows
    assert len(table.names) == stated.n_features + 1
    assert len(np.unique(training.y)) == stated.n_classes


@pytest.mark.parametrize("name", BUNDLED)
def test_numbers_are_scikit_learns_bit_for_bit(name):
    reference = getattr(sklearn_datasets, f"load_{name}")()
    table, training = load(name)
    constant = [table.names.index(column) for column in training.constant]
    np.testing.assert_array_equal(
        training.X, np.delete(reference.data, constant, axis=1)
    )
    codes = np.unique(training.y, return_inverse=True)[1]
    expected = reference.target_names[reference.target]
    if name != "wine":  # scikit-learn calls its cultivars class_0, class_1, class_2
        np.testing.assert_array_equal(training.y, expected)
    np.testing.assert_array_equal(codes, np.unique(expected, return_inverse=True)[1])


def test_first_rows_are_header_and_rows_as_text():
    rows = BUNDLED["iris"].first_rows(2)
    assert len(rows) == 3
    assert rows[0][-1] == "species"
    assert rows[1] == ["5.1", "3.5", "1.4", "0.2", "setosa"]
