"""What must hold for class moments of any data."""

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from prudent import ClassMoments, RawMoments
from prudent.core.linalg import MahalanobisFactors

examples = settings(deadline=None, max_examples=25)

FIELDS = ("count", "weight", "mean", "mean_lo", "scatter", "third", "fourth")


def squared_mahalanobis(X, means, covariances):
    return MahalanobisFactors.from_covariances(means, covariances).squared_distances(X)


@st.composite
def tables(draw, max_features=6, offsets=(0.0, 1.0, 1e6, 1e12), min_rows=2):
    """Rows, labels, weights: some far from the origin, some features constant."""
    seed = draw(st.integers(0, 2**32 - 1))
    n_rows = draw(st.integers(min_rows, 200))
    n_features = draw(st.integers(1, max_features))
    n_classes = draw(st.integers(1, 4))
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n_rows, n_features)) * rng.choice([1.0, 1e-3, 1e3])
    rows *= rng.random(n_features) < 0.9
    offset = draw(st.sampled_from(offsets))
    rows = rows + offset * rng.normal(size=n_features)
    labels = rng.integers(0, n_classes, n_rows)
    weight = rng.choice([0.25, 1.0, 1.0, 2.5], n_rows)
    return rows, labels, weight


def moments_of(table, rows=slice(None), **options):
    X, y, w = table
    return ClassMoments.from_arrays(
        X[rows], y[rows], w[rows], classes=range(4), fourth=True, **options
    )


def same_bits(a, b):
    return all(
        getattr(a, name).tobytes() == getattr(b, name).tobytes() for name in FIELDS
    )


def assert_scatter_close(a, b, tolerance=1e-13):
    spread = np.sqrt(np.diagonal(a.scatter, axis1=1, axis2=2))
    scale = spread[:, :, None] * spread[:, None, :]
    assert (np.abs(a.scatter - b.scatter) <= tolerance * scale).all()
    return spread


def assert_close(a, b, tolerance=1e-13):
    np.testing.assert_array_equal(a.count, b.count)
    np.testing.assert_allclose(a.weight, b.weight, rtol=tolerance)
    spread = assert_scatter_close(a, b, tolerance)
    gap = (a.mean - b.mean) + (a.mean_lo - b.mean_lo)
    assert (np.abs(gap) <= tolerance * spread).all()
    assert (np.abs(a.fourth - b.fourth) <= 10 * tolerance * a.fourth).all()


halves = st.integers(0, 2**32 - 1)


def split(table, seed, n_parts=2):
    part = np.random.default_rng(seed).integers(0, n_parts, len(table[0]))
    return [np.flatnonzero(part == i) for i in range(n_parts)]


def part_of(table, rows):
    if len(rows):
        return moments_of(table, rows)
    return ClassMoments.empty(range(4), table[0].shape[1], fourth=True)


@examples
@given(tables(), halves)
def test_merge_is_commutative_bit_for_bit(table, seed):
    a, b = (part_of(table, rows) for rows in split(table, seed))
    assert same_bits(a + b, b + a)


@examples
@given(tables())
def test_merge_with_nothing_changes_no_bit(table):
    moments = moments_of(table)
    nothing = ClassMoments.empty([0], table[0].shape[1], fourth=True)
    assert same_bits(moments + nothing, moments)
    assert same_bits(nothing + moments, moments)


@examples
@given(tables(), halves)
def test_merge_is_associative(table, seed):
    a, b, c = (part_of(table, rows) for rows in split(table, seed, 3))
    assert_close((a + b) + c, a + (b + c))


@examples
@given(tables(), halves, st.integers(1, 9))
def test_any_partition_and_order_gives_the_same_moments(table, seed, n_parts):
    parts = [part_of(table, rows[::-1]) for rows in split(table, seed, n_parts)]
    assert_close(ClassMoments.reduce(parts), moments_of(table))


@examples
@given(tables(), st.integers(1, 50))
def test_block_size_does_not_matter(table, block_rows):
    assert_close(moments_of(table, block_rows=block_rows), moments_of(table))


@examples
@given(tables())
def test_a_row_twice_equals_weight_two(table):
    X, y, _ = table
    twice = ClassMoments.from_arrays(np.vstack([X, X]), np.hstack([y, y]), fourth=True)
    weighted = ClassMoments.from_arrays(X, y, np.full(len(X), 2.0), fourth=True)
    np.testing.assert_array_equal(twice.count, 2 * weighted.count)
    np.testing.assert_array_equal(twice.weight, weighted.weight)
    assert_scatter_close(twice, weighted)


@examples
@given(tables(), st.floats(0.01, 100))
def test_weights_scale_the_moments(table, factor):
    X, y, w = table
    scaled = ClassMoments.from_arrays(X, y, factor * w, fourth=True)
    assert_close(scaled, ClassMoments.from_arrays(X, y, w, fourth=True).scale(factor))


@examples
@given(tables(offsets=(0.0,)), st.sampled_from([1.0, 2.0**20, 2.0**40]))
def test_a_shift_moves_the_mean_only(table, shift):
    X, y, w = table
    X = np.round(X * 2**10) / 2**10 if np.abs(X).max() < 2**10 else np.round(X)
    assume((X + shift - shift == X).all())
    near = moments_of((X, y, w))
    far = moments_of((X + shift, y, w))
    seen = near.weight > 0
    spread = assert_scatter_close(near, far)
    gap = (far.mean - shift - near.mean) + (far.mean_lo - near.mean_lo)
    assert (np.abs(gap) <= 1e-13 * (spread + np.abs(near.mean)))[seen].all()


def well_conditioned(rng, n_features):
    Q = np.linalg.qr(rng.normal(size=(n_features, n_features)))[0]
    return Q * rng.uniform(0.01, 100, n_features)


@examples
@given(tables(offsets=(0.0, 1.0)), halves)
def test_a_linear_map_transforms_the_scatter(table, seed):
    X, y, w = table
    A = well_conditioned(np.random.default_rng(seed), X.shape[1])
    plain, mapped = moments_of(table), moments_of((X @ A.T, y, w))
    expected = A @ plain.scatter @ A.T
    scale = np.abs(A) @ np.abs(plain.scatter) @ np.abs(A.T)
    offset = np.abs(A) @ np.abs(X).max(axis=0)
    slack = 1e-12 * scale + 1e-14 * plain.weight.max() * offset[:, None] * offset
    assert (np.abs(mapped.scatter - expected) <= slack).all()


def regular(table):
    """The rows of one class, with a covariance that can be inverted."""
    X = table[0]
    assume(len(X) > 2 * X.shape[1] and (np.ptp(X, axis=0) > 0).all())
    moments = ClassMoments.from_arrays(X, np.zeros(len(X), dtype=int))
    C = moments.covariance()
    deviation = np.sqrt(np.diagonal(C[0]))
    assume(np.linalg.cond(C[0] / np.outer(deviation, deviation)) < 1e4)
    return X, moments, C


@examples
@given(tables(offsets=(0.0, 1.0), min_rows=20), halves)
def test_distances_are_invariant_under_a_linear_map(table, seed):
    X, moments, C = regular(table)
    A = well_conditioned(np.random.default_rng(seed), X.shape[1])
    plain = squared_mahalanobis(X, moments.mean, C)
    mapped = squared_mahalanobis(X @ A.T, moments.mean @ A.T, A @ C @ A.T)
    np.testing.assert_allclose(mapped, plain, rtol=1e-9, atol=1e-9)


@examples
@given(tables(offsets=(0.0, 1.0, 1e6), min_rows=20))
def test_distances_to_the_own_mean_sum_to_n_times_d(table):
    X, moments, C = regular(table)
    total = squared_mahalanobis(X, moments.mean, C).sum()
    np.testing.assert_allclose(total, X.size, rtol=1e-9)


@examples
@given(tables())
def test_scatter_is_symmetric_and_positive_semidefinite(table):
    scatter = moments_of(table).scatter
    np.testing.assert_array_equal(scatter, scatter.transpose(0, 2, 1))
    values = np.linalg.eigvalsh(scatter)
    assert (values[:, 0] >= -1e-13 * values[:, -1]).all()


@examples
@given(tables())
def test_the_low_part_of_the_mean_is_below_half_an_ulp(table):
    moments = moments_of(table)
    assert (np.abs(moments.mean_lo) <= np.spacing(np.abs(moments.mean)) / 2).all()


@examples
@given(tables())
def test_fourth_is_bounded_below_by_the_trace(table):
    moments = moments_of(table)
    seen = moments.weight > 0
    trace = np.trace(moments.scatter, axis1=1, axis2=2)[seen]
    bound = trace**2 / moments.weight[seen]
    assert (moments.fourth[seen] >= bound * (1 - 1e-12)).all()


@examples
@given(tables())
def test_bytes_round_trip(table):
    moments = moments_of(table)
    assert same_bits(ClassMoments.from_bytes(moments.to_bytes()), moments)


@examples
@given(tables(), halves)
def test_removal_undoes_a_merge(table, seed):
    X, _, _ = table
    rows, _ = split(table, seed)
    total, part = moments_of(table), part_of(table, rows)
    rest = part_of(table, np.setdiff1d(np.arange(len(X)), rows))
    trace = np.trace(rest.scatter, axis1=1, axis2=2)
    kept = np.trace(total.scatter, axis1=1, axis2=2) <= 1e3 * trace
    assume(kept.all())
    left = total - part
    np.testing.assert_array_equal(left.count, rest.count)
    limit = 1e-12 * trace[:, None, None]
    # features without spread of their own still carry rounding of the others
    assert (np.abs(left.scatter - rest.scatter) <= limit + 1e-300).all()


@examples
@given(tables(offsets=(0.0,)), halves, st.floats(-3, 3))
def test_raw_moments_are_linear_in_the_weights(table, seed, factor):
    X, _, _ = table
    rng = np.random.default_rng(seed)
    G, H = rng.normal(size=(2, len(X), 3))
    origin = X.mean(axis=0)
    one, two = (RawMoments.from_soft(X, weights, origin) for weights in (G, H))
    both = RawMoments.from_soft(X, G + factor * H, origin)
    together = one + factor * two
    for name in ("s0", "s1", "s2"):
        expected, size = getattr(together, name), np.abs(getattr(both, name)).max()
        bound = 1e-11 * (1 + size) * max(1, np.abs(X).max() ** 2)
        assert (np.abs(getattr(both, name) - expected) <= bound).all()
    back = together - factor * two
    assert (np.abs(back.s2 - one.s2) <= 1e-11 * (1 + np.abs(together.s2).max())).all()
