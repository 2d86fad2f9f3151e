import numpy as np
import pytest

from imprecise.brute_force import vertices
from prudent.imprecise.boxes import max_cut_dual


@pytest.mark.parametrize("rank", [1, 3, 6])
def test_diagonal_dominates_the_form(rank):
    root = np.random.default_rng(rank).normal(size=(6, rank))
    form = root @ root.T
    dual = max_cut_dual(form)
    assert np.linalg.eigvalsh(np.diag(dual) - form)[0] >= 0


def test_sum_bounds_the_form_on_the_cube():
    root = np.random.default_rng(0).normal(size=(7, 9))
    form = root @ root.T
    corners = vertices(7)
    largest = np.einsum("ij,jk,ik->i", corners, form, corners).max()
    total = max_cut_dual(form).sum()
    assert largest <= total <= 1.15 * largest  # the max-cut gap is below 1 / 0.878


def test_sum_is_least_on_a_form_solved_by_hand():
    # Diag(d) - ones >= 0 needs sum(1 / d) <= 1: least sum at d = n, sum n^2.
    assert max_cut_dual(np.ones((4, 4))).sum() == pytest.approx(16.0, rel=2e-3)


def test_diagonal_form_is_its_own_dual():
    dual = max_cut_dual(np.diag([1.0, 5.0, 0.5]))
    np.testing.assert_allclose(dual, [1.0, 5.0, 0.5], rtol=5e-3)


def test_zero_form_has_a_negligible_dual():
    assert max_cut_dual(np.zeros((3, 3))).max() < 1e-300
