"""Class moments: reference values, operations and refusals."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.covariance import ledoit_wolf_shrinkage, oas

from prudent import ClassMoments, RawMoments
from prudent.exceptions import (
    DegenerateDataError,
    PrudentWarning,
    SingularCovarianceError,
)

X = np.array([[0, 0], [1, 0], [0, 2], [3, 1], [4, 4], [2, 5]])
y = np.array([0, 0, 0, 1, 1, 1])
signed = np.array([1, 2, 0.5, -0.25, 1, 1])
FIELDS = ("classes", "count", "weight", "mean", "mean_lo", "scatter", "third", "fourth")


def assert_same_bits(a, b):
    for name in FIELDS:
        left, right = getattr(a, name), getattr(b, name)
        if left is None:
            assert right is None
            continue
        assert left.dtype == right.dtype
        if left.dtype == object:
            assert left.tolist() == right.tolist()
        else:
            assert left.tobytes() == right.tobytes(), name


def assert_close(a, b, tolerance=1e-13):
    """Scatter relative to sqrt(S_ii S_jj), the rest relative to the spread."""
    np.testing.assert_array_equal(a.classes, b.classes)
    np.testing.assert_allclose(a.weight, b.weight, rtol=tolerance)
    deviation = np.sqrt(np.diagonal(a.scatter, axis1=1, axis2=2))
    scale = deviation[:, :, None] * deviation[:, None, :]
    assert (np.abs(a.scatter - b.scatter) <= tolerance * scale).all()
    gap = (a.mean - b.mean) + (a.mean_lo - b.mean_lo)
    assert (np.abs(gap) <= tolerance * (deviation + np.abs(a.mean) * 1e-16)).all()
    if a.fourth is not None:
        spread = np.trace(a.scatter, axis1=1, axis2=2)
        power = np.maximum(a.fourth, b.fourth)
        assert (np.abs(a.fourth - b.fourth) <= 10 * tolerance * power).all()
        third_scale = np.sqrt(power * spread)[:, None]
        assert (np.abs(a.third - b.third) <= 10 * tolerance * third_scale).all()


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    return rng.normal(size=(300, 4)) @ rng.normal(size=(4, 4)), rng.integers(0, 3, 300)


# Reference values


def test_reference_values_without_weights():
    moments = ClassMoments.from_arrays(X, y, fourth=True)
    assert moments.count.tolist() == [3, 3]
    assert moments.weight.tolist() == [3, 3]
    np.testing.assert_allclose(moments.mean, [[1 / 3, 2 / 3], [3, 10 / 3]], rtol=1e-15)
    np.testing.assert_allclose(
        moments.scatter,
        [[[2 / 3, -2 / 3], [-2 / 3, 8 / 3]], [[2, -1], [-1, 26 / 3]]],
        rtol=1e-14,
    )
    np.testing.assert_allclose(
        moments.third, [[-2 / 9, 14 / 9], [-7 / 3, -49 / 9]], rtol=1e-13
    )
    np.testing.assert_allclose(moments.fourth, [14 / 3, 46], rtol=1e-14)


def test_reference_values_with_signed_weights():
    moments = ClassMoments.from_rows(X, y, 2, signed, fourth=True)
    assert moments.weight.tolist() == [3.5, 1.75]
    np.testing.assert_allclose(moments.mean, [[4 / 7, 2 / 7], [3, 5]], rtol=1e-15)
    np.testing.assert_allclose(
        moments.scatter,
        [[[6 / 7, -4 / 7], [-4 / 7, 12 / 7]], [[2, -1], [-1, -3]]],
        rtol=1e-14,
    )
    np.testing.assert_allclose(
        moments.third, [[-0.938775510204, 2.530612244898], [1, 14]], rtol=1e-11
    )
    np.testing.assert_allclose(moments.fourth, [5.638483965015, -59], rtol=1e-12)


def test_reference_value_far_from_the_origin():
    moments = ClassMoments.from_arrays(
        1e8 + np.array([[0], [1], [2], [3.5]]), [0, 0, 0, 0]
    )
    assert moments.mean.item() == 100000001.625
    assert moments.scatter.item() == 6.6875


def test_reference_shrinkage_amounts():
    moments = ClassMoments.from_arrays(X, y, fourth=True)
    plain, shrunk = moments.covariance(), moments.covariance("ledoit_wolf")
    amounts = 1 - shrunk[:, 0, 1] / plain[:, 0, 1]
    np.testing.assert_allclose(amounts, [0.6410256410256411, 0.7828746177370023])
    identity = np.trace(plain, axis1=1, axis2=2)[:, None, None] / 2 * np.eye(2)
    np.testing.assert_allclose(moments.covariance("oas"), identity)


@pytest.mark.parametrize("shape", [(40, 3), (200, 10), (8, 20), (3, 2)])
def test_shrinkage_agrees_with_scikit_learn_after_a_merge(shape):
    data = np.random.default_rng(1).normal(size=shape) @ np.diag(
        np.arange(1, shape[1] + 1)
    )
    zeros = np.zeros(len(data), dtype=int)
    parts = [
        ClassMoments.from_arrays(data[i::3], zeros[i::3], fourth=True) for i in range(3)
    ]
    moments = ClassMoments.reduce(parts)
    C = moments.covariance()[0]
    identity = np.trace(C) / shape[1] * np.eye(shape[1])
    a = ledoit_wolf_shrinkage(data)
    np.testing.assert_allclose(
        moments.covariance("ledoit_wolf")[0], (1 - a) * C + a * identity, atol=1e-12
    )
    np.testing.assert_allclose(moments.covariance("oas")[0], oas(data)[0], atol=1e-12)


# The value


def test_fields_are_float64_contiguous_and_read_only():
    moments = ClassMoments.from_arrays(X, y, fourth=True)
    for name in FIELDS[1:]:
        value = getattr(moments, name)
        assert value.dtype == (np.int64 if name == "count" else np.float64)
        assert value.flags.c_contiguous
        assert not value.flags.writeable


@pytest.mark.parametrize(
    "derived",
    [
        lambda a, b: a + b,
        lambda a, b: (b + b) - b,
        lambda a, b: ClassMoments.reduce([a, b, a]),
        lambda a, b: a.pooled(),
        lambda a, b: a.within(),
        lambda a, b: a.select([1]),
        lambda a, b: a.scale(2.0),
        lambda a, b: b.about(b.pooled().mean[0]).to_moments(),
        lambda a, b: ClassMoments.from_bytes(a.to_bytes()),
    ],
)
def test_what_is_made_of_moments_is_moments_that_nobody_can_change(derived):
    a, b = ClassMoments.from_arrays(X[:4], y[:4]), ClassMoments.from_arrays(X, y)
    made = derived(a, b)
    assert type(made) is ClassMoments
    for name in ("classes", "count", "weight", "mean", "mean_lo", "scatter"):
        assert not getattr(made, name).flags.writeable


def test_the_callers_arrays_stay_writeable():
    mean = np.zeros((1, 2))
    ClassMoments([0], [1], [1.0], mean, np.zeros((1, 2)), np.zeros((1, 2, 2)))
    assert mean.flags.writeable


@pytest.mark.parametrize(
    "labels",
    [
        [0, 0, 0, 1, 1, 1],
        [-7, -7, -7, 10**9, 10**9, 10**9],
        [False, False, False, True, True, True],
        [1.0, 1.0, 1.0, 2.0, 2.0, 2.0],
        ["a", "a", "a", "b", "b", "b"],
        np.array(["a", "a", "a", "b", "b", "b"], dtype=object),
        np.array([200, 200, 200, 250, 250, 250], dtype=np.uint8),
    ],
)
def test_label_types(labels):
    moments = ClassMoments.from_arrays(X, labels)
    np.testing.assert_array_equal(moments.classes, np.unique(labels))
    assert moments.classes.dtype == np.asarray(labels).dtype
    assert moments.count.tolist() == [3, 3]


def test_declared_classes_that_do_not_occur_are_empty():
    moments = ClassMoments.from_arrays(X, y, classes=[2, 1, 0], fourth=True)
    assert moments.classes.tolist() == [0, 1, 2]
    assert_same_bits(moments.select([2]), ClassMoments.empty([2], 2, fourth=True))


def test_labels_far_apart_match_declared_classes():
    moments = ClassMoments.from_arrays(X, y * 10**12, classes=[0, 10**12])
    assert moments.count.tolist() == [3, 3]


def test_frames_are_accepted():
    expected = ClassMoments.from_arrays(X, y)
    for frame in (pd.DataFrame(X), pl.DataFrame(X)):
        assert_close(ClassMoments.from_arrays(frame, y), expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, np.uint16, bool])
def test_narrow_types_are_summed_in_float64(dtype):
    data = np.random.default_rng(2).normal(100, 3, size=(500, 3)).astype(dtype)
    labels = np.arange(500) % 2
    assert_same_bits(
        ClassMoments.from_arrays(data, labels),
        ClassMoments.from_arrays(data.astype(float), labels),
    )


@pytest.mark.parametrize("n_features", [3, 40])
@pytest.mark.parametrize("layout", ["fortran", "strided", "memmap", "read-only"])
def test_memory_layouts(layout, n_features, tmp_path):
    data = np.random.default_rng(3).normal(size=(400, n_features))
    labels = np.arange(400) % 3
    if layout == "fortran":
        given = np.asfortranarray(data)
    elif layout == "strided":
        given = np.repeat(np.repeat(data, 2, axis=0), 3, axis=1)[::2, ::3]
    elif layout == "memmap":
        given = np.memmap(tmp_path / "rows", data.dtype, "w+", shape=data.shape)
        given[:] = data
    else:
        given = data.copy()
        given.flags.writeable = False
    assert_same_bits(
        ClassMoments.from_arrays(given, labels), ClassMoments.from_arrays(data, labels)
    )


def test_no_input_is_changed(rows):
    data, labels = rows
    weight = np.linspace(0, 1, len(data))
    copies = [value.copy() for value in (data, labels, weight)]
    ClassMoments.from_arrays(data, labels, weight, fourth=True)
    for value, copy in zip((data, labels, weight), copies, strict=True):
        np.testing.assert_array_equal(value, copy)


def test_a_first_row_far_away_costs_no_digits():
    data = np.random.default_rng(4).normal(size=(5000, 40))
    data[0] = 1e10
    exact = data - data[1:].mean(axis=0)
    exact -= exact.mean(axis=0)
    moments = ClassMoments.from_arrays(data, np.zeros(5000, dtype=int))
    np.testing.assert_allclose(moments.scatter[0], exact.T @ exact, rtol=1e-14)


@pytest.mark.parametrize("n_features", [2, 40])
def test_diagonal_structure_keeps_the_variances(n_features):
    rng = np.random.default_rng(5)
    data, labels = rng.normal(size=(1000, n_features)), rng.integers(0, 3, 1000)
    weight = rng.random(1000)
    full = ClassMoments.from_arrays(data, labels, weight)
    parts = [
        ClassMoments.from_arrays(
            data[i::2], labels[i::2], weight[i::2], structure="diagonal"
        )
        for i in range(2)
    ]
    both = parts[0] + parts[1]
    assert both.structure == "diagonal"
    expected = np.diagonal(full.scatter, axis1=1, axis2=2)
    np.testing.assert_allclose(both.scatter, expected, rtol=1e-13)
    np.testing.assert_allclose(
        both.covariance(), expected / full.weight[:, None], rtol=1e-13
    )


# Operations


def test_union_of_classes():
    a = ClassMoments.from_arrays(X[:3], ["a", "a", "c"], fourth=True)
    b = ClassMoments.from_arrays(X[3:], ["b", "bb", "c"], fourth=True)
    both = a + b
    assert both.classes.tolist() == ["a", "b", "bb", "c"]
    assert_close(
        both, ClassMoments.from_arrays(X, ["a", "a", "c", "b", "bb", "c"], fourth=True)
    )


@pytest.mark.parametrize("n_parts", [1, 2, 3, 5, 8, 13])
def test_reduce_is_a_tree_over_the_position(rows, n_parts):
    data, labels = rows
    parts = [
        ClassMoments.from_arrays(
            data[i::n_parts], labels[i::n_parts], classes=[0, 1, 2]
        )
        for i in range(n_parts)
    ]

    def tree(parts):
        if len(parts) == 1:
            return parts[0]
        half = 2 ** ((len(parts) - 1).bit_length() - 1)
        return tree(parts[:half]) + tree(parts[half:])

    assert_same_bits(ClassMoments.reduce(iter(parts)), tree(parts))


def test_pooled_holds_between_and_within(rows):
    data, labels = rows
    pooled = ClassMoments.from_arrays(data, labels, fourth=True).pooled()
    expected = ClassMoments.from_arrays(data, np.zeros(len(data), int), fourth=True)
    assert_close(pooled, expected)


def test_within_equals_the_rows_shifted_to_the_pooled_mean(rows):
    data, labels = rows
    means = np.array([data[labels == k].mean(axis=0) for k in range(3)])
    shifted = data - means[labels] + data.mean(axis=0)
    within = ClassMoments.from_arrays(data, labels, fourth=True).within()
    expected = ClassMoments.from_arrays(shifted, np.zeros(len(data), int), fourth=True)
    assert_close(within, expected, tolerance=1e-12)


def test_select_keeps_the_bits_and_sorts():
    moments = ClassMoments.from_arrays(X, ["a", "b", "c", "a", "b", "c"])
    chosen = moments.select(["c", "a"])
    assert chosen.classes.tolist() == ["a", "c"]
    assert (chosen.mean == moments.mean[[0, 2]]).all()


def test_moments_know_whether_weights_stood_for_rows():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), np.repeat([0, 1], 20)
    weight = np.where(y == 0, np.tile([0.5, 1.5], 20), np.arange(40) % 2)
    weighted = ClassMoments.from_arrays(X, y, weight)
    assert weighted.weighted.tolist() == [True, False]  # 0 and 1 leave rows out
    plain = ClassMoments.from_arrays(X, y)
    assert plain.weighted.tolist() == [False, False]
    for both in (plain + weighted, weighted + plain, weighted + plain - weighted):
        assert both.weighted.tolist() == [True, False]
    assert (weighted + plain - weighted).select([1]).weighted.tolist() == [False]
    assert ClassMoments.from_bytes(weighted.to_bytes()).weighted.tolist()[0]
    assert weighted.pooled().weighted.tolist() == [True]
    assert plain.scale(2).weighted.tolist() == [True, True]
    published = ClassMoments.from_covariances([[0.0], [1.0]], [[[1.0]]] * 2, [9, 9.5])
    assert published.weighted.tolist() == [False, True]


def test_scale_multiplies_every_weight():
    expected = ClassMoments.from_arrays(X, y, np.full(6, 2.5), fourth=True)
    assert_close(ClassMoments.from_arrays(X, y, fourth=True).scale(2.5), expected)


@pytest.mark.parametrize("fourth", [False, True])
def test_removing_a_part_leaves_the_rest(rows, fourth):
    data, labels = rows
    total = ClassMoments.from_arrays(data, labels, fourth=fourth)
    part = ClassMoments.from_arrays(data[:200], labels[:200], fourth=fourth)
    rest = ClassMoments.from_arrays(data[200:], labels[200:], fourth=fourth)
    left = total - part
    assert left.count.tolist() == rest.count.tolist()
    assert_close(left, rest, tolerance=1e-12)


def test_removing_all_rows_of_a_class_leaves_it_empty():
    total = ClassMoments.from_arrays(X, y, fourth=True)
    left = total - total.select([1])
    assert_same_bits(left.select([0]), total.select([0]))
    assert_same_bits(left.select([1]), ClassMoments.empty([1], 2, fourth=True))


def test_removing_most_of_the_scatter_warns():
    rng = np.random.default_rng(6)
    small = ClassMoments.from_arrays(rng.normal(size=(50, 2)), np.zeros(50, int))
    large = ClassMoments.from_arrays(1e5 * rng.normal(size=(50, 2)), np.zeros(50, int))
    with pytest.warns(PrudentWarning, match="class 0 leaves less than 1e-6"):
        (small + large) - large


def test_removing_all_digits_is_refused():
    rng = np.random.default_rng(7)
    small = ClassMoments.from_arrays(rng.normal(size=(50, 2)), np.zeros(50, int))
    large = ClassMoments.from_arrays(1e9 * rng.normal(size=(50, 2)), np.zeros(50, int))
    with pytest.raises(ValueError, match="class 0 leaves less than 1e-12"):
        (small + large) - large


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (ClassMoments.from_arrays(X, y + 1), r"unknown classes \[2\]"),
        (ClassMoments.from_arrays(X, y).scale(2), "was not in the total"),
    ],
)
def test_removing_what_was_not_there_is_refused(part, message):
    with pytest.raises(ValueError, match=message):
        ClassMoments.from_arrays(X, y) - part


@pytest.mark.parametrize(
    "labels", [y, y.astype(str), y.astype(str).astype(object), y.astype(bool)]
)
@pytest.mark.parametrize("options", [{}, {"fourth": True}, {"structure": "diagonal"}])
def test_bytes_round_trip(labels, options):
    moments = ClassMoments.from_arrays(X, labels, **options)
    assert_same_bits(ClassMoments.from_bytes(moments.to_bytes()), moments)


def test_bytes_of_another_version_are_refused():
    data = ClassMoments.from_arrays(X, y).to_bytes()
    from io import BytesIO

    with np.load(BytesIO(data)) as file:
        arrays = dict(file) | {"version": np.array(99)}
    other = BytesIO()
    np.savez(other, **arrays)
    with pytest.raises(ValueError, match="format version 99"):
        ClassMoments.from_bytes(other.getvalue())


@pytest.mark.parametrize("data", [b"", b"nonsense", b"PK\x03\x04 broken"])
def test_foreign_bytes_are_refused(data):
    with pytest.raises(ValueError, match="not class moments"):
        ClassMoments.from_bytes(data)


def test_objects_that_are_not_text_cannot_be_stored():
    moments = ClassMoments.from_arrays(X, np.array([0, 0, 0, 1, 1, 1], dtype=object))
    with pytest.raises(ValueError, match="only if all are strings"):
        moments.to_bytes()


# Covariances


@pytest.mark.parametrize("ddof", [0, 1])
def test_empirical_covariance(rows, ddof):
    data, labels = rows
    covariances = ClassMoments.from_arrays(data, labels).covariance(ddof=ddof)
    for k in range(3):
        expected = np.cov(data[labels == k].T, ddof=ddof)
        np.testing.assert_allclose(covariances[k], expected, rtol=1e-11)


def test_float_shrinkage_goes_to_the_diagonal_by_default(rows):
    moments = ClassMoments.from_arrays(*rows)
    C = moments.covariance()
    shrunk = moments.covariance(shrinkage=0.3)
    np.testing.assert_allclose(shrunk, 0.7 * C + 0.3 * C * np.eye(4), rtol=1e-14)
    diagonal = np.diagonal(shrunk, axis1=1, axis2=2)
    np.testing.assert_array_equal(diagonal, np.diagonal(C, axis1=1, axis2=2))


def test_float_shrinkage_to_the_identity(rows):
    moments = ClassMoments.from_arrays(*rows)
    C = moments.covariance()
    mean = np.trace(C, axis1=1, axis2=2)[:, None, None] / 4
    np.testing.assert_allclose(
        moments.covariance(shrinkage=0.3, target="identity"),
        0.7 * C + 0.3 * mean * np.eye(4),
        rtol=1e-14,
    )


@pytest.mark.parametrize("shrinkage", [0, 1])
def test_ends_of_the_shrinkage_range(rows, shrinkage):
    moments = ClassMoments.from_arrays(*rows)
    C = moments.covariance()
    expected = C * np.eye(4) if shrinkage else C
    np.testing.assert_array_equal(moments.covariance(shrinkage=shrinkage), expected)


def test_shrinkage_of_constant_rows_is_zero_and_finite():
    moments = ClassMoments.from_arrays(np.ones((4, 3)), [0, 0, 0, 0], fourth=True)
    for estimator in ("ledoit_wolf", "oas"):
        assert (moments.covariance(estimator) == 0).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"estimator": "mcd"}, "`estimator` must be one of"),
        ({"ddof": 2}, "`ddof` must be one of"),
        ({"target": "unit"}, "`target` must be one of"),
        ({"shrinkage": 1.5}, r"must lie in \[0, 1\], got 1.5"),
        ({"shrinkage": float("nan")}, r"must lie in \[0, 1\], got nan"),
        ({"estimator": "oas", "shrinkage": 0.5}, "chooses its own shrinkage"),
        ({"estimator": "ledoit_wolf"}, "needs the fourth moment"),
    ],
)
def test_covariance_options_are_checked(options, message):
    with pytest.raises(ValueError, match=message):
        ClassMoments.from_arrays(X, y).covariance(**options)


@pytest.mark.parametrize("options", [{"estimator": "oas"}, {"shrinkage": 0.5}])
def test_variances_alone_cannot_be_shrunk(options):
    with pytest.raises(ValueError, match="keeps the variances only"):
        ClassMoments.from_arrays(X, y, structure="diagonal").covariance(**options)


def test_covariance_of_a_class_without_weight_names_it():
    moments = ClassMoments.from_arrays(X, y, classes=[0, 1, 2])
    with pytest.raises(DegenerateDataError, match="class 2 has total weight 0"):
        moments.covariance()


def test_covariance_of_one_row_is_zero_but_undefined_with_ddof_1():
    moments = ClassMoments.from_arrays(X[:1], ["benign"])
    assert moments.count.item() == 1
    assert (moments.scatter == 0).all()
    assert (moments.covariance() == 0).all()
    with pytest.raises(DegenerateDataError, match="class 'benign' has total weight 1"):
        moments.covariance(ddof=1)


@pytest.mark.parametrize("structure", ["full", "diagonal"])
def test_indefinite_statistics_are_flagged(structure):
    moments = ClassMoments.from_rows(X, y, 2, signed, structure=structure)
    with pytest.raises(SingularCovarianceError, match="class 1 is indefinite"):
        moments.covariance()


# Published summaries


def test_from_covariances_gives_them_back():
    C = np.array([[[2, 0.5], [0.5, 1]], [[1, -0.25], [-0.25, 3]]])
    for ddof in (0, 1):
        moments = ClassMoments.from_covariances(
            [[0, 0], [3, 3]], C, [10, 20], classes=["b", "a"], ddof=ddof
        )
        assert moments.classes.tolist() == ["a", "b"]
        assert moments.weight.tolist() == [20, 10]
        assert moments.mean.tolist() == [[3, 3], [0, 0]]
        np.testing.assert_allclose(moments.covariance(ddof=ddof), C[::-1], rtol=1e-15)


def test_from_covariances_repairs_what_print_did():
    C = np.array([[[1, 1 + 4e-9], [1 + 1e-9, 1]]])
    repaired = ClassMoments.from_covariances([[0, 0]], C, [5]).covariance()[0]
    assert repaired[0, 1] == repaired[1, 0]
    assert np.linalg.eigvalsh(repaired)[0] >= -1e-15


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 0], [np.eye(2)], [5]), "`means` must have shape"),
        (([[0, 0]], np.eye(2), [5]), r"`covariances` must have shape \(1, 2, 2\)"),
        (([[0, 0]], [np.eye(2)], [5, 5]), r"`counts` must have shape \(1,\)"),
        (([[0, 0]], [np.eye(2)], [5], ["a", "b"]), r"`classes` must have shape \(1,\)"),
        (([[0, np.nan]], [np.eye(2)], [5]), "`means` must be finite"),
        (([[0, 0]], [[[1, 0], [0, np.inf]]], [5]), "class 0 is not finite"),
        (([[0, 0]], [[[1, 0.5], [0.4, 1]]], [5]), "not symmetric: .* differ by 0.1"),
        (([[0, 0]], [[[1, 2], [2, 1]]], [5]), "smallest eigenvalue is -1"),
        (([[0, 0]], [np.eye(2)], [0]), "`counts` must be finite and > 0"),
        (([[0, 0]] * 2, [np.eye(2)] * 2, [5, 5], ["a", "a"]), "must be distinct"),
    ],
)
def test_from_covariances_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        ClassMoments.from_covariances(*arguments)


# Raw moments


def test_raw_moments_convert_back(rows):
    moments = ClassMoments.from_arrays(*rows)
    raw = moments.about(moments.pooled().mean[0])
    assert_close(raw.to_moments(), moments)


@pytest.mark.parametrize(
    ("n_features", "n_classes"), [(2, 2), (5, 26), (20, 5), (70, 9)]
)
def test_soft_weights_equal_signed_rows(n_features, n_classes):
    rng = np.random.default_rng(8)
    data = 1e6 + rng.normal(size=(3000, n_features))
    H = rng.normal(0.5, 1, size=(3000, n_classes))
    raw = RawMoments.from_soft(data, H, np.full(n_features, 1e6))
    B = data - 1e6
    np.testing.assert_allclose(raw.s0, H.sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(raw.s1, H.T @ B, rtol=1e-9, atol=1e-10)
    expected = np.einsum("ik,ia,ib->kab", H, B, B, optimize=True)
    np.testing.assert_allclose(raw.s2, expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(raw.s2, raw.s2.transpose(0, 2, 1))


def test_one_hot_soft_weights_equal_class_moments(rows):
    data, labels = rows
    raw = RawMoments.from_soft(data, np.eye(3)[labels], data.mean(axis=0))
    assert_close(raw.to_moments(), ClassMoments.from_arrays(data, labels))


def test_raw_moments_of_signed_weights_are_indefinite():
    H = np.eye(2)[y] * signed[:, None]
    moments = RawMoments.from_soft(X, H, X.mean(axis=0)).to_moments()
    np.testing.assert_allclose(moments.weight, [3.5, 1.75])
    np.testing.assert_allclose(moments.mean, [[4 / 7, 2 / 7], [3, 5]], atol=1e-14)
    np.testing.assert_allclose(moments.scatter[1], [[2, -1], [-1, -3]], atol=1e-13)
    assert moments.count.tolist() == [0, 0]
    with pytest.raises(SingularCovarianceError):
        moments.covariance()


def test_raw_moments_about_different_origins_do_not_add():
    moments = ClassMoments.from_arrays(X, y)
    with pytest.raises(ValueError, match="only about one origin"):
        moments.about([0, 0]) + moments.about([0, 1])


def test_raw_moments_far_from_the_origin_warn():
    moments = ClassMoments.from_arrays(1e6 + X, y)
    with pytest.warns(PrudentWarning, match="use an origin nearer"):
        moments.about([0, 0]).to_moments()


def test_raw_weights_that_cancel_have_no_mean():
    H = np.array([[1.0], [-1.0]])
    with pytest.raises(ValueError, match="class 0 has a weight total of 0"):
        RawMoments.from_soft(X[[0, 3]], H, [0, 0]).to_moments()
    # Opposite rows: their second sums cancel too, their first ones do not.
    with pytest.raises(ValueError, match="class 0 has a weight total of 0"):
        RawMoments.from_soft(np.array([[1.0], [-1.0]]), H, [0]).to_moments()


def test_an_absent_raw_class_is_empty():
    H = np.zeros((6, 2))
    H[:, 0] = 1
    moments = RawMoments.from_soft(X, H, [1, 1]).to_moments()
    assert moments.weight.tolist() == [6, 0]
    assert (moments.mean[1] == 0).all()


def test_variances_alone_have_no_raw_moments():
    with pytest.raises(ValueError, match="structure='full'"):
        ClassMoments.from_arrays(X, y, structure="diagonal").about([0, 0])


@pytest.mark.parametrize("n_features", [1, 5, 60, 120])
@pytest.mark.parametrize("share", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("kind", [np.float64, np.float32, np.uint8])
def test_soft_sums_equal_their_definition(n_features, share, kind):
    rng = np.random.default_rng(6)
    X = rng.normal(size=(700, n_features)).astype(np.float32)
    H = rng.integers(0, 5, size=(700, 3)) * (rng.random((700, 3)) < share)
    H = H.astype(kind)
    origin = rng.normal(size=n_features)
    raw = RawMoments.from_soft(X, H, origin)
    B = X.astype(np.float64) - origin
    np.testing.assert_allclose(raw.s0, H.sum(axis=0, dtype=float), rtol=1e-13)
    np.testing.assert_allclose(raw.s1, H.T.astype(float) @ B, rtol=1e-10, atol=1e-10)
    expected = np.einsum("nk,ni,nj->kij", H.astype(float), B, B)
    np.testing.assert_allclose(raw.s2, expected, rtol=1e-11, atol=1e-10)
    np.testing.assert_array_equal(raw.s2, raw.s2.transpose(0, 2, 1))


@pytest.mark.parametrize("negligible", [0.0, 1e-10])
def test_sums_of_opposite_weights_are_opposite(negligible):
    rng = np.random.default_rng(7)
    X, gains = rng.normal(size=(700, 5)), rng.normal(size=700)
    gains[::3] = 0.0
    options = {"origin": np.zeros(5), "negligible": negligible}
    raw = RawMoments.from_soft(X, np.stack([gains, -gains], axis=1), **options)
    expected = np.einsum("n,ni,nj->ij", gains, X, X)
    np.testing.assert_allclose(raw.s2, [expected, -expected], rtol=1e-11, atol=1e-10)
    np.testing.assert_allclose(raw.s1[1], -gains @ X, rtol=1e-11, atol=1e-10)
    np.testing.assert_array_equal(raw.s2[0], -raw.s2[1])
    np.testing.assert_array_equal(raw.s0, -raw.s0[::-1])


def test_weights_that_are_opposite_only_as_bytes_are_not():
    H = np.array([[3, 253], [1, 255]], dtype=np.uint8)
    raw = RawMoments.from_soft(np.ones((2, 1)), H, [0.0])
    assert raw.s1.ravel().tolist() == [4.0, 508.0]
    assert raw.s2.ravel().tolist() == [4.0, 508.0]


def test_negligible_weights_may_be_left_out_of_second_sums():
    rng = np.random.default_rng(8)
    X, H = rng.normal(size=(400, 4)), np.full((400, 2), 1e-12)
    H[:50] = rng.normal(size=(50, 2))
    exact = RawMoments.from_soft(X, H, np.zeros(4))
    quick = RawMoments.from_soft(X, H, np.zeros(4), negligible=1e-10)
    np.testing.assert_array_equal(quick.s1, exact.s1)
    assert (quick.s2 != exact.s2).any()
    np.testing.assert_allclose(quick.s2, exact.s2, atol=1e-8)
