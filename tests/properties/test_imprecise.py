"""What must hold of imprecise sets for any data."""

import warnings

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from prudent import ClassMoments, ImpreciseDiscriminantAnalysis
from prudent.exceptions import PrudentWarning
from prudent.imprecise.boxes import max_cut_dual
from prudent.imprecise.optima import box_maximum
from prudent.metrics import discounted_accuracy_score, u65_score, u80_score

TYPES = st.sampled_from(["full", "tied", "diag", "identity"])
BOXES = st.sampled_from(["mean", "natural"])
SEEDS = st.integers(0, 2**32 - 1)
IMPRECISIONS = st.floats(0.0, 20.0)
quick = settings(max_examples=15, deadline=None)


def data(seed):
    rng = np.random.default_rng(seed)
    n_classes, n_features = rng.integers(2, 5), rng.integers(1, 6)
    counts = rng.integers(n_features + 2, 25, size=n_classes)
    y = np.repeat(np.arange(n_classes), counts)
    mixing = rng.normal(size=(n_features, n_features)) + np.eye(n_features)
    centres = 2 * rng.normal(size=(n_classes, n_features))
    X = rng.normal(size=(len(y), n_features)) @ mixing + centres[y]
    queries = X[:10]
    return X, y, queries + 0.5 * rng.normal(size=queries.shape)


def fitted(X, y, **params):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrudentWarning)
        return ImpreciseDiscriminantAnalysis(**params).fit(X, y)


def clear_of_ties(model, queries):
    """Rows and classes whose answer round-off cannot change."""
    lower, upper = model.log_joint_bounds(queries)
    gap = np.abs(upper - lower.max(axis=1, keepdims=True))
    return gap > 1e-7 * (1 + np.abs(upper))


def assert_same_sets(model, queries, other_sets):
    clear = clear_of_ties(model, queries)
    sets = model.predict_set(queries)
    np.testing.assert_array_equal(sets[clear], other_sets[clear])


@quick
@given(SEEDS, TYPES, BOXES, IMPRECISIONS, IMPRECISIONS)
def test_sets_are_nested_in_the_imprecision_and_hold_the_map(seed, kind, box, c, d):
    X, y, queries = data(seed)
    model = fitted(X, y, covariance_type=kind, box=box, imprecision=min(c, d))
    small = model.predict_set(queries)
    large = model.set_params(imprecision=max(c, d)).predict_set(queries)
    assert not (small & ~large).any()
    best = model.predict_proba(queries).argmax(axis=1)
    assert small[np.arange(len(queries)), best].all()


@quick
@given(SEEDS, TYPES, BOXES, IMPRECISIONS)
def test_bounds_enclose_the_precise_log_joint(seed, kind, box, c):
    X, y, queries = data(seed)
    model = fitted(X, y, covariance_type=kind, box=box, imprecision=c)
    lower, upper = model.log_joint_bounds(queries)
    centre, _ = model.set_params(imprecision=0.0).log_joint_bounds(queries)
    slack = 1e-9 * (1 + np.abs(centre))
    assert (lower <= centre + slack).all()
    assert (centre <= upper + slack).all()


@quick
@given(SEEDS, TYPES, BOXES)
def test_critical_imprecision_gives_every_set(seed, kind, box):
    X, y, queries = data(seed)
    model = fitted(X, y, covariance_type=kind, box=box)
    critical = model.critical_imprecision(queries)
    for c in (0.1, 1.0, 5.0):
        clear = np.abs(critical - c) > 1e-5 * (1 + c)
        sets = model.set_params(imprecision=c).predict_set(queries)
        np.testing.assert_array_equal(sets[clear], (critical <= c)[clear])


@quick
@given(SEEDS, TYPES, st.floats(-3, 3), st.floats(-100, 100))
def test_sets_ignore_units_and_origin(seed, kind, exponent, shift):
    X, y, queries = data(seed)
    units = 10 ** np.linspace(-exponent, exponent, X.shape[1])
    model = fitted(X, y, covariance_type=kind, imprecision=2.0)
    moved = fitted(X * units + shift, y, covariance_type=kind, imprecision=2.0)
    assert_same_sets(model, queries, moved.predict_set(queries * units + shift))


@quick
@given(SEEDS, TYPES, BOXES)
def test_sets_ignore_the_order_of_rows_features_and_classes(seed, kind, box):
    X, y, queries = data(seed)
    rng = np.random.default_rng(seed)
    rows, columns = rng.permutation(len(X)), rng.permutation(X.shape[1])
    names = rng.permutation(y.max() + 1)
    params = {"covariance_type": kind, "box": box, "imprecision": 2.0}
    model = fitted(X, y, **params)
    mixed = fitted(X[rows][:, columns], names[y[rows]], **params)
    sets = mixed.predict_set(queries[:, columns])
    assert_same_sets(model, queries, sets[:, names])


@quick
@given(SEEDS, TYPES)
def test_weights_are_repetitions(seed, kind):
    X, y, queries = data(seed)
    weight = np.random.default_rng(seed).integers(1, 4, size=len(y))
    weighted = ImpreciseDiscriminantAnalysis(covariance_type=kind, imprecision=2.0)
    weighted.fit(X, y, sample_weight=weight)
    repeated = fitted(
        X.repeat(weight, axis=0),
        y.repeat(weight),
        covariance_type=kind,
        imprecision=2.0,
    )
    for ours, expected in zip(
        weighted.log_joint_bounds(queries),
        repeated.log_joint_bounds(queries),
        strict=True,
    ):
        np.testing.assert_allclose(ours, expected, rtol=1e-7, atol=1e-9)


@quick
@given(SEEDS, TYPES, st.integers(1, 4))
def test_partial_fit_in_any_batches_equals_fit(seed, kind, n_batches):
    X, y, queries = data(seed)
    order = np.random.default_rng(seed).permutation(len(y))
    whole = fitted(X, y, covariance_type=kind, imprecision=2.0)
    parts = ImpreciseDiscriminantAnalysis(covariance_type=kind, imprecision=2.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrudentWarning)
        for part in np.array_split(order, n_batches):
            parts.partial_fit(X[part], y[part], classes=np.unique(y))
    np.testing.assert_allclose(
        parts.log_joint_bounds(queries),
        whole.log_joint_bounds(queries),
        rtol=1e-7,
        atol=1e-9,
    )


@quick
@given(SEEDS, TYPES)
def test_more_rows_with_the_same_moments_shrink_the_sets(seed, kind):
    X, y, queries = data(seed)
    moments = ClassMoments.from_arrays(X, y)
    covariances = moments.covariance("empirical", ddof=1)
    sets = [
        ImpreciseDiscriminantAnalysis.from_moments(
            moments.mean,
            covariances,
            factor * moments.weight,
            covariance_type=kind,
            covariance="empirical",
            scale=None,
            imprecision=3.0,
            priors=moments.weight / moments.weight.sum(),
        ).predict_set(queries)
        for factor in (1, 4)
    ]
    if kind != "tied":  # pooling weighs the classes by n_k - 1
        assert not (sets[1] & ~sets[0]).any()
    assert sets[1].any(axis=1).all()


@quick
@given(SEEDS, BOXES, IMPRECISIONS)
def test_full_with_diagonal_matrices_equals_diag(seed, box, c):
    X, y, queries = data(seed)
    moments = ClassMoments.from_arrays(X, y)
    covariances = moments.covariance("empirical", ddof=1) * np.eye(X.shape[1])
    full, diag = (
        ImpreciseDiscriminantAnalysis.from_moments(
            moments.mean,
            covariances,
            moments.weight,
            covariance_type=kind,
            covariance="empirical",
            box=box,
            imprecision=c,
        )
        for kind in ("full", "diag")
    )
    for ours, expected in zip(
        full.log_joint_bounds(queries), diag.log_joint_bounds(queries), strict=True
    ):
        np.testing.assert_allclose(ours, expected, rtol=1e-8, atol=1e-8)


@quick
@given(SEEDS, TYPES, BOXES)
def test_rows_are_answered_alike_alone_and_in_a_batch(seed, kind, box):
    X, y, queries = data(seed)
    model = fitted(X, y, covariance_type=kind, box=box, imprecision=2.0)
    alone = np.vstack([model.predict_set(row[None]) for row in queries])
    assert_same_sets(model, queries, alone)


@quick
@given(SEEDS, st.sampled_from(["full", "tied"]), BOXES, IMPRECISIONS)
def test_without_branching_sets_contain_the_exact_ones(seed, kind, box, c):
    X, y, queries = data(seed)
    model = fitted(X, y, covariance_type=kind, box=box, imprecision=c)
    exact = model.predict_set(queries)
    model.set_params(max_nodes=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cautious = model.predict_set(queries)
    assert not (exact & ~cautious).any()
    assert (cautious & ~exact).sum() <= model.n_unresolved(queries)


@quick
@given(SEEDS, TYPES, IMPRECISIONS, st.floats(0, 30))
def test_an_imprecise_prior_contains_the_precise_answer(seed, kind, c, spread):
    X, y, queries = data(seed)
    model = fitted(X, y, covariance_type=kind, imprecision=c)
    precise = model.predict_set(queries)
    wide = model.set_params(prior_imprecision=spread).predict_set(queries)
    assert not (precise & ~wide).any()


@quick
@given(SEEDS, TYPES, BOXES, IMPRECISIONS, st.floats(0.0, 1e-9))
def test_an_imprecise_prior_without_extent_is_the_precise_one(
    seed, kind, box, c, spread
):
    X, y, queries = data(seed)
    model = fitted(X, y, covariance_type=kind, box=box, imprecision=c)
    precise = model.predict_set(queries)
    ball = fitted(
        X, y, covariance_type=kind, box=box, imprecision=c, prior_imprecision=spread
    )
    assert_same_sets(ball, queries, precise)


@quick
@given(SEEDS, TYPES, BOXES)
def test_without_imprecision_the_answer_is_the_most_likely_class(seed, kind, box):
    X, y, queries = data(seed)
    model = fitted(X, y, covariance_type=kind, box=box, imprecision=0.0)
    log_joint, _ = model.log_joint_bounds(queries)
    first, second = np.sort(log_joint, axis=1)[:, :-3:-1].T
    clear = first - second > 1e-7 * (1 + np.abs(first))
    sets = model.predict_set(queries)
    assert (sets[clear].sum(axis=1) == 1).all()
    assert (sets[clear].argmax(axis=1) == log_joint[clear].argmax(axis=1)).all()


@quick
@given(SEEDS, TYPES, BOXES, IMPRECISIONS)
def test_a_class_is_in_the_set_unless_another_dominates_it(seed, kind, box, c):
    X, y, queries = data(seed)
    model = fitted(X, y, covariance_type=kind, box=box, imprecision=c)
    lower, upper = model.log_joint_bounds(queries)
    dominated = (lower[:, :, None] > upper[:, None, :]).any(axis=1)
    assert_same_sets(model, queries, ~dominated)


@quick
@given(SEEDS, TYPES, st.integers(2, 4))
def test_repeating_every_row_leaves_the_scale_of_the_features(seed, kind, times):
    X, y, queries = data(seed)
    once = fitted(X, y, covariance_type=kind, imprecision=2.0)
    often = fitted(
        np.tile(X, (times, 1)),
        np.tile(y, times),
        covariance_type=kind,
        imprecision=2.0 * times,  # the box is c / n_k
    )
    np.testing.assert_allclose(often.scale_, once.scale_, rtol=1e-12)
    if kind == "identity":  # no covariance with n_k - 1 in it
        assert_same_sets(once, queries, often.predict_set(queries))


@quick
@given(SEEDS, st.floats(0.1, 20.0))
def test_the_upper_bound_is_the_peak_exactly_inside_the_box(seed, c):
    X, y, _ = data(seed)
    rng = np.random.default_rng(seed)
    model = fitted(X, y, covariance_type="full", box="mean", scale=None, imprecision=c)
    k = 0
    reach = c / np.sum(y == k)
    centre = X[y == k].mean(axis=0)
    peak = model.set_params(imprecision=0.0).log_joint_bounds(centre[None])[1][0, k]
    model.set_params(imprecision=c)
    inside = centre + 0.99 * reach * rng.uniform(-1, 1, size=(5, X.shape[1]))
    outside = inside.copy()
    outside[:, 0] = centre[0] + 1.5 * reach
    slack = 1e-9 * (1 + abs(peak))
    assert (np.abs(model.log_joint_bounds(inside)[1][:, k] - peak) <= slack).all()
    assert (model.log_joint_bounds(outside)[1][:, k] < peak).all()


@quick
@given(SEEDS, IMPRECISIONS)
def test_utilities_are_ordered(seed, c):
    X, y, _ = data(seed)
    model = fitted(X, y, imprecision=c)
    sets = model.predict_set(X)
    u80 = u80_score(y, sets, model.classes_)
    u65 = u65_score(y, sets, model.classes_)
    assert u80 >= u65 - 1e-12
    assert u65 >= discounted_accuracy_score(y, sets, model.classes_) - 1e-12


@quick
@given(SEEDS, st.floats(0.01, 10.0))
def test_every_bound_of_a_node_holds_for_the_signs_it_covers(seed, radius):
    # Fixing signs is a search from a field shifted by them: brackets must hold there.
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(7, 8))
    coupling, field = root @ root.T, 3 * rng.normal(size=7)
    corners = np.array(np.meshgrid(*[[-1.0, 1.0]] * 7)).reshape(7, -1).T
    values = corners @ field + radius / 2 * np.einsum(
        "ij,jk,ik->i", corners, coupling, corners
    )
    dual = max_cut_dual(coupling)
    for limit in range(4):
        best = np.where(field < 0, -1.0, 1.0)
        lower, upper, _ = box_maximum(
            coupling, dual, field, radius, best, -np.inf, np.inf, limit
        )
        slack = 1e-10 * (1 + abs(values.max()))
        assert lower - slack <= values.max() <= upper + slack
