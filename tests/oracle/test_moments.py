"""Class moments and their merges against exact rational arithmetic."""

from fractions import Fraction

import numpy as np
import pytest

from prudent import ClassMoments

pytestmark = pytest.mark.oracle
N, D = 240, 3


@pytest.fixture(params=["numpy", "compiled"])
def kernel(request, monkeypatch):
    size = 0 if request.param == "compiled" else np.inf
    monkeypatch.setattr("prudent.core.statistics.COMPILED_SIZE", size)


def exact_scatter(rows, weight=None):
    """Mean and scatter of the stored numbers, as fractions."""
    weight = [Fraction(1)] * len(rows) if weight is None else map(Fraction, weight)
    weight = list(weight)
    rows = [[Fraction(float(value)) for value in row] for row in rows]
    total = sum(weight)
    features = range(len(rows[0]))
    mean = [
        sum(w * row[j] for w, row in zip(weight, rows, strict=True)) / total
        for j in features
    ]
    scatter = [
        [
            sum(
                w * (row[i] - mean[i]) * (row[j] - mean[j])
                for w, row in zip(weight, rows, strict=True)
            )
            for j in features
        ]
        for i in features
    ]
    return mean, scatter


def largest_error(moments, k, rows, weight=None):
    """Error of S_ij relative to sqrt(S_ii S_jj), and of the mean to the spread."""
    mean, scatter = exact_scatter(rows, weight)
    spread = [float(scatter[j][j]) ** 0.5 for j in range(len(mean))]
    worst = 0.0
    for i, row in enumerate(scatter):
        for j, value in enumerate(row):
            error = abs(Fraction(float(moments.scatter[k, i, j])) - value)
            worst = max(worst, float(error) / (spread[i] * spread[j]))
    for j, value in enumerate(mean):
        stored = Fraction(float(moments.mean[k, j])) + Fraction(
            float(moments.mean_lo[k, j])
        )
        worst = max(worst, float(abs(stored - value)) / spread[j])
    return worst


def table(case):
    """Rows of two classes whose spread is 1."""
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(N, D)), rng.integers(0, 2, N)
    if case == "classes 1e8 apart":
        return rows + 1e8 * labels[:, None], labels
    if case == "mean 1e8, classes 1e6 apart":
        return rows + 1e8 + 1e6 * labels[:, None], labels
    if case == "first row 1e10 away":
        rows[0] = 1e10
        return rows, labels
    if case == "trend":
        return 1e6 + np.arange(N)[:, None] + rows, labels
    return rows + float(case.removeprefix("mean ")), labels


CASES = [
    *(f"mean 1e{power}" for power in (0, 4, 6, 8, 10, 12)),
    "mean 1e8, classes 1e6 apart",
    "classes 1e8 apart",
    "first row 1e10 away",
    "trend",
]


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("way", ["at once", "blocks", "tree", "left fold", "shuffled"])
def test_scatter_to_1e13_of_exact_arithmetic(case, way):
    rows, labels = table(case)
    order = np.arange(N)
    if way == "shuffled":
        order = np.random.default_rng(1).permutation(N)
    if way in ("at once", "blocks"):
        moments = ClassMoments.from_arrays(
            rows, labels, block_rows=None if way == "at once" else 7
        )
    else:
        parts = [
            ClassMoments.from_arrays(rows[part], labels[part], classes=[0, 1])
            for part in np.array_split(order, N // 10)
        ]
        if way == "left fold":
            moments = parts[0]
            for part in parts[1:]:
                moments = moments + part
        else:
            moments = ClassMoments.reduce(parts)
    for k in range(2):
        assert largest_error(moments, k, rows[labels == k]) <= 1e-13


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("case", CASES)
def test_weighted_scatter_to_1e13_of_exact_arithmetic(case):
    rows, labels = table(case)
    weight = np.random.default_rng(2).random(N)
    parts = [
        ClassMoments.from_arrays(rows[i::4], labels[i::4], weight[i::4])
        for i in range(4)
    ]
    moments = ClassMoments.reduce(parts)
    for k in range(2):
        own = labels == k
        assert largest_error(moments, k, rows[own], weight[own]) <= 1e-13


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("case", ["mean 1e0", "mean 1e12", "classes 1e8 apart"])
def test_third_and_fourth_against_exact_arithmetic(case):
    rows, labels = table(case)
    parts = [
        ClassMoments.from_arrays(rows[i::5], labels[i::5], fourth=True)
        for i in range(5)
    ]
    moments = ClassMoments.reduce(parts)
    for k in range(2):
        own = rows[labels == k]
        mean, _ = exact_scatter(own)
        gaps = [
            [Fraction(float(v)) - m for v, m in zip(row, mean, strict=True)]
            for row in own
        ]
        squares = [sum(v * v for v in gap) for gap in gaps]
        fourth = float(sum(q * q for q in squares))
        third = [
            float(sum(q * gap[j] for q, gap in zip(squares, gaps, strict=True)))
            for j in range(D)
        ]
        np.testing.assert_allclose(moments.fourth[k], fourth, rtol=1e-13)
        scale = (fourth * float(sum(squares))) ** 0.5
        np.testing.assert_allclose(moments.third[k], third, atol=1e-13 * scale)


def test_ten_thousand_merges_keep_the_digits():
    rows = 1e12 + np.random.default_rng(3).normal(size=(20_000, 1))
    zeros = np.zeros(2, dtype=int)
    moments = ClassMoments.empty([0], 1)
    for start in range(0, len(rows), 2):
        moments = moments + ClassMoments.from_rows(rows[start : start + 2], zeros, 1)
    assert largest_error(moments, 0, rows) <= 1e-13
