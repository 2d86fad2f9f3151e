"""Rows in one block and in several say the same."""

import numpy as np

from prudent.core.rows import Block, LocalRows, restricted

X = np.arange(24, dtype=np.float32).reshape(8, 3)
CODES = np.array([0, 1, 0, 2, 1, 0, 2, 2])
WEIGHT = np.arange(1.0, 9.0)


def in_blocks(weight):
    cuts = [slice(0, 3), slice(3, 3), slice(3, 8)]
    return LocalRows(
        [Block(X[s], CODES[s], None if weight is None else weight[s]) for s in cuts]
    )


def weighted_sum(block, factor, own=0):
    return factor * (block.X * block.weight[:, None]).sum(axis=0) + own


def test_sums_over_one_block_and_over_several():
    whole, parts = LocalRows.from_table(X, CODES, WEIGHT), in_blocks(WEIGHT)
    expected = 2.0 * WEIGHT @ X
    np.testing.assert_allclose(whole.reduce(weighted_sum, sum, 2.0), expected)
    np.testing.assert_allclose(parts.reduce(weighted_sum, sum, 2.0), expected)
    own = parts.reduce(weighted_sum, sum, 2.0, each=[1, 2, 3])
    np.testing.assert_allclose(own, expected + 6)
    assert (whole.n_blocks, parts.n_blocks) == (1, 3)


def test_rows_of_a_class_come_together():
    for weight in (None, WEIGHT):
        for rows in (LocalRows.from_table(X, CODES, weight), in_blocks(weight)):
            found, own = rows.of_class(2)
            np.testing.assert_array_equal(found, X[[3, 6, 7]])
            assert found.dtype == np.float64
            if weight is None:
                assert own is None
            else:
                assert own.tolist() == [4.0, 7.0, 8.0]


def test_some_of_the_features():
    rows = restricted(in_blocks(None), np.array([0, 2]))
    assert rows.map(len) == [3, 0, 5]
    np.testing.assert_array_equal(rows.of_class(1)[0], X[np.ix_([1, 4], [0, 2])])
    block = Block(X, CODES)
    assert block.restrict(np.arange(3)) is block
