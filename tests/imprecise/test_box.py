import numpy as np
import pytest

from imprecise.brute_force import log_joint_bounds, random_classes
from prudent.core.linalg import MahalanobisFactors
from prudent.exceptions import SingularCovarianceError
from prudent.imprecise.boxes import Boxes, DiagonalBoxes


def squared_mahalanobis(X, means, covariances):
    return MahalanobisFactors.from_covariances(means, covariances).squared_distances(X)


def build(means, covariances, weights, box="mean"):
    matrix = np.zeros(len(means), dtype=np.intp)
    if len(covariances) > 1:
        matrix = np.arange(len(means))
    return Boxes.build(means, covariances, matrix, weights, box, np.arange(len(means)))


@pytest.mark.parametrize("tied", [False, True])
def test_half_distances_are_half_mahalanobis(tied):
    rng = np.random.default_rng(0)
    means, covariances, weights = random_classes(rng, 4, 3, tied=tied, ridge=0.1)
    points = rng.normal(size=(20, 4))
    half = build(means, covariances, weights).half_distances(points)
    full = np.broadcast_to(covariances, (3, 4, 4))
    np.testing.assert_allclose(2 * half, squared_mahalanobis(points, means, full))


def test_reference_case_1():
    covariance = np.array([[[2, 0.6, 0.3], [0.6, 1, -0.2], [0.3, -0.2, 0.5]]])
    boxes = build(np.zeros((1, 3)), covariance, np.ones(1))
    point = np.array([[0.7, -0.4, 0.25]])
    zero = np.zeros(1)
    assert boxes.half_distances(point)[0, 0] == pytest.approx(0.35648788927, abs=1e-11)
    for radius, least, most in (
        (0.5, 0.01, 2.41574394464),
        (0.1, 0.23048780488, 0.57006920415),
    ):
        lower, upper, _ = boxes.posed(zero, zero, 1000).bounds(point, radius)
        assert -lower[0, 0] == pytest.approx(most, abs=1e-11)
        assert -upper[0, 0] == pytest.approx(least, abs=1e-11)


@pytest.mark.parametrize("box", ["mean", "natural"])
def test_diagonal_matrices_agree_with_the_closed_form(box):
    rng = np.random.default_rng(1)
    variances = rng.uniform(0.2, 3.0, size=(3, 5))
    means, weights = rng.normal(size=(3, 5)), np.array([4.0, 9.0, 30.0])
    points = 2 * rng.normal(size=(30, 5))
    constants = rng.normal(size=3)
    dense = build(means, np.array([np.diag(v) for v in variances]), weights, box)
    plain = DiagonalBoxes.build(means, variances, weights, box)
    dense, plain = (b.posed(constants, constants, 1000) for b in (dense, plain))
    for c in (0.0, 0.3, 4.0):
        for ours, theirs in zip(
            dense.bounds(points, c)[:2], plain.bounds(points, c)[:2], strict=True
        ):
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)
        np.testing.assert_array_equal(
            dense.keep(points, c)[0], plain.keep(points, c)[0]
        )


def test_bounds_agree_with_all_vertices_of_a_near_singular_class():
    rng = np.random.default_rng(2)
    means, covariances, weights = random_classes(rng, 6, 2, ridge=1e-7)
    point = rng.normal(size=6)
    boxes = build(means, covariances, weights).posed(np.zeros(2), np.zeros(2), 10**6)
    lower, upper, _ = boxes.bounds(point[None], 2.0)
    expected = log_joint_bounds(
        point, means, covariances, weights, np.zeros(2), 2.0, "mean"
    )
    np.testing.assert_allclose(lower[0], expected[0], rtol=1e-7)
    np.testing.assert_allclose(upper[0], expected[1], rtol=1e-7, atol=1e-7)


def test_a_singular_matrix_is_refused_by_the_name_of_its_class():
    covariances = np.array([np.eye(2), np.ones((2, 2))])
    with pytest.raises(SingularCovarianceError, match="class 'sick'"):
        Boxes.build(
            np.zeros((2, 2)),
            covariances,
            np.arange(2),
            np.ones(2),
            "mean",
            np.array(["healthy", "sick"]),
        )


def test_a_point_in_the_box_reaches_the_centre_value():
    means, covariances, weights = random_classes(np.random.default_rng(3), 3, 2)
    boxes = build(means, covariances, weights)
    point = means[:1] + 0.9 / weights[0]
    _, upper, _ = boxes.posed(np.zeros(2), np.zeros(2), 1000).bounds(point, 1.0)
    assert upper[0, 0] == pytest.approx(0.0, abs=1e-11)
    _, outside, _ = boxes.posed(np.zeros(2), np.zeros(2), 1000).bounds(point, 0.8)
    assert outside[0, 0] < 0


def test_an_impossible_class_is_in_no_set():
    means, covariances, weights = random_classes(np.random.default_rng(4), 3, 3)
    boxes = build(means, covariances, weights)
    constants = np.array([0.0, -np.inf, 0.0])
    points = np.vstack([means, means + 1.0])
    kept, _ = boxes.posed(constants, constants, 1000).keep(points, 50.0)
    assert not kept[:, 1].any()
    assert kept.any(axis=1).all()
    critical, _ = boxes.posed(constants, constants, 1000).critical(points)
    assert (critical[:, 1] == np.inf).all()


@pytest.mark.parametrize("limit", [0, 1])
def test_a_node_limit_only_adds_classes_and_counts_open_questions(limit):
    rng = np.random.default_rng(5)
    unanswered_in_all = 0
    for _ in range(20):
        means, covariances, _ = random_classes(rng, 40, 3, ridge=0.3)
        boxes = build(means, covariances, np.full(3, 2.0))
        point = rng.normal(size=(1, 40))
        constants = -0.5 * boxes.log_determinants
        critical, _ = boxes.posed(constants, constants, 10**6).critical(point)
        for c in 0.99999 * critical[critical > 0]:  # where it is hardest to tell
            exact, none = boxes.posed(constants, constants, 10**6).keep(point, c)
            limited = boxes.posed(constants, constants, limit)
            cautious, unanswered = limited.keep(point, c)
            assert none == 0
            assert not (exact & ~cautious).any()
            assert (cautious & ~exact).sum() <= unanswered
            unanswered_in_all += unanswered
    assert unanswered_in_all > 0  # else this test shows nothing
