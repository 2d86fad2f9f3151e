import os
import subprocess
import sys

import numpy as np
import pytest

from imprecise.brute_force import vertices
from prudent.imprecise.boxes import max_cut_dual
from prudent.imprecise.optima import ascend, box_maximum, box_minimum


def random_form(seed, n=8):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n, rng.integers(1, n + 2)))
    form = root @ root.T + 10.0 ** -rng.integers(0, 9) * np.eye(n)
    field = rng.normal(size=n) * 10 ** rng.uniform(-1, 1)
    return form, field, 10 ** rng.uniform(-2, 1)


def phi(form, field, radius, points):
    return points @ field + radius / 2 * np.einsum("ij,jk,ik->i", points, form, points)


def search(form, field, radius, floor=-np.inf, enough=np.inf, max_nodes=10**6):
    best = np.where(field < 0, -1.0, 1.0)
    dual = max_cut_dual(form)
    lower, upper, nodes = box_maximum(
        form, dual, field, radius, best, floor, enough, max_nodes
    )
    return lower, upper, nodes, best


@pytest.mark.parametrize("climb", [ascend, getattr(ascend, "py_func", ascend)])
def test_an_ascent_that_rounding_leads_in_circles_ends(climb):
    """Pulls that are 0 but for rounding: one sign is flipped to and fro."""
    form = np.array(
        [
            [2.6954995192504744e-07, 7.94138377214025e-07, 7.355782281487363e-08],
            [7.94138377214025e-07, 2.339661935237476e-06, 2.1671341294783e-07],
            [7.355782281487363e-08, 2.1671341294783e-07, 2.007328607785798e-08],
        ]
    )
    field = np.array(
        [7.865138097613306e-06, 6.302594563837434e-06, 3.16831108069827e-06]
    )
    radius, vertex = 10.915001868419235, np.array([-1.0, -1.0, 1.0])
    linear, quadratic = climb(form, field, radius, vertex, np.zeros(3))
    assert set(np.abs(vertex)) == {1.0}
    assert linear == pytest.approx(field @ vertex)
    assert quadratic == pytest.approx(vertex @ form @ vertex)


@pytest.mark.parametrize("seed", range(40))
def test_maximum_equals_all_vertices(seed):
    form, field, radius = random_form(seed)
    largest = phi(form, field, radius, vertices(8)).max()
    lower, upper, _, best = search(form, field, radius)
    assert lower == pytest.approx(largest, rel=1e-9, abs=1e-9)
    assert largest - 1e-12 * (1 + abs(largest)) <= upper
    assert upper <= largest + 1e-9 * (1 + abs(largest))
    assert phi(form, field, radius, best[None])[0] == pytest.approx(lower)


@pytest.mark.parametrize("seed", range(20))
def test_a_node_limit_leaves_a_bracket(seed):
    form, field, radius = random_form(seed)
    largest = phi(form, field, radius, vertices(8)).max()
    for limit in (0, 1, 2):
        lower, upper, nodes, _ = search(form, field, radius, max_nodes=limit)
        assert nodes <= limit
        assert lower <= largest * (1 + 1e-12) + 1e-12
        assert upper >= largest * (1 - 1e-12) - 1e-12


@pytest.mark.parametrize("seed", range(20))
def test_a_threshold_is_answered(seed):
    form, field, radius = random_form(seed)
    largest = phi(form, field, radius, vertices(8)).max()
    above, below = largest * (1 + 1e-6), largest * (1 - 1e-6)
    assert search(form, field, radius, above, above)[1] < above
    assert search(form, field, radius, below, below)[0] >= below


def test_ascend_ends_where_no_single_flip_helps():
    form, field, radius = random_form(3)
    vertex = -np.sign(field)
    image = form @ vertex
    ascend(form, field, radius, vertex, image)
    np.testing.assert_allclose(image, form @ vertex, atol=1e-10)
    flipped = vertex * (1 - 2 * np.eye(8))
    best = phi(form, field, radius, flipped).max()
    assert best <= phi(form, field, radius, vertex[None])[0] + 1e-12


@pytest.mark.parametrize("seed", range(40))
def test_minimum_is_a_stationary_point_with_a_certificate(seed):
    form, field, radius = random_form(seed)
    point = np.zeros(8)
    lower, upper = box_minimum(form, field, radius, point, np.inf, -np.inf, 1e-11)
    value = radius / 2 * point @ form @ point - field @ point
    assert upper == pytest.approx(value, rel=1e-11, abs=1e-12)
    assert upper - lower <= 1e-10 * (1 + abs(upper))
    gradient = radius * form @ point - field
    inside = np.abs(point) < 1
    assert np.abs(gradient[inside]).max(initial=0.0) < 1e-6 * (1 + np.abs(field).max())
    assert (gradient * point)[~inside].max(initial=0.0) <= 1e-12


def test_minimum_stops_when_it_is_known_to_be_low_or_high():
    form, field, radius = random_form(5)
    point = np.zeros(8)
    exact, _ = box_minimum(form, field, radius, point, np.inf, -np.inf, 1e-12)
    for above, below in ((exact - 1.0, -np.inf), (np.inf, exact + 1.0)):
        start = np.zeros(8)
        lower, upper = box_minimum(form, field, radius, start, above, below, 0.0)
        assert lower <= exact + 1e-9
        assert upper >= exact - 1e-9
        assert lower > above or upper < below


@pytest.mark.slow
def test_plain_python_gives_the_same_bits_to_rounding():
    program = (
        "import sys; sys.path.insert(0, 'tests');"
        "from imprecise.test_branch_and_bound import *;"
        "print(*[v for s in range(6) for v in search(*random_form(s))[:3]])"
    )
    outputs = [
        np.array(
            subprocess.run(
                [sys.executable, "-c", program],
                env=os.environ | {"NUMBA_DISABLE_JIT": flag},
                capture_output=True,
                text=True,
                check=True,
            ).stdout.split(),
            dtype=float,
        )
        for flag in ("0", "1")
    ]
    np.testing.assert_allclose(*outputs, rtol=1e-12)
