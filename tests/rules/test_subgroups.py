"""Ranks, thresholds and cells of subgroups that overlap, against their theorems."""

from __future__ import annotations

import itertools
import math
import time

import numpy as np
import pytest

from prudent.core.binomial import fewest_rows, mean_rank, upper_limit
from prudent.rules.boundary import error_boundary
from prudent.rules.rule import Coverage, Rule, Terms
from prudent.rules.scores import CalibrationScores
from prudent.rules.subgroups import (
    Memberships,
    cell_name,
    cell_places,
    cells_of,
    cells_with_rows_enough,
    largest_p_values,
    lowest_thresholds,
    scores_within,
)

NAMES = ("A", "B", "C")
# Memberships in three subgroups that overlap, scores with ties, and probabilities.
ATOMS = (
    ((True, False, False), 0.0, 0.15),
    ((True, False, False), 1.0, 0.10),
    ((True, True, False), 0.0, 0.20),
    ((True, True, True), 1.0, 0.15),
    ((False, True, True), 2.0, 0.25),
    ((False, False, True), 0.0, 0.15),
)


def _random_rows(n, n_classes=3, seed=0):
    random = np.random.default_rng(seed)
    members = random.random((n, 3)) < (0.5, 0.4, 0.2)
    scores = np.round(random.normal(size=(n, n_classes)), 1)
    return members, scores, random.integers(n_classes, size=n)


@pytest.mark.parametrize("level", [0.2, 0.34, 0.5])
def test_misses_in_every_subgroup_stay_below_the_rank_in_all_small_bags(level):
    # Exact probabilities over all draws of four ranking rows and a new one.
    n = 4
    joint, of_misses = {}, {}
    for bag in itertools.product(range(len(ATOMS)), repeat=n + 1):
        probability = math.prod(ATOMS[i][2] for i in bag)
        members = np.array([ATOMS[i][0] for i in bag])
        scores = np.array([ATOMS[i][1] for i in bag])
        kept = scores_within(scores[:n], Memberships(members[:n], NAMES))
        (p_value,) = largest_p_values(kept, scores[n:, None], members[n:])[0]
        for g in np.flatnonzero(members[n]):
            key = (int(g), int(members[:n, g].sum()))
            joint[key] = joint.get(key, 0.0) + probability
            if p_value <= level + 1e-12:
                of_misses[key] = of_misses.get(key, 0.0) + probability
    assert len(joint) == 3 * (n + 1)
    for (g, m), probability in joint.items():
        rate = of_misses.get((g, m), 0.0) / probability
        assert rate <= mean_rank(m, level) / (m + 1) + 1e-12, (g, m, rate)
    assert any(of_misses.values())


def test_the_largest_p_value_is_that_of_counting_by_hand():
    members, scores, codes = _random_rows(60)
    new_members, new_scores, _ = _random_rows(40, seed=1)
    own = scores[np.arange(60), codes]
    memberships = Memberships(members, NAMES)
    plain = scores_within(own, memberships)
    crossed = scores_within(own, memberships, codes, (0, 1, 2))
    found = largest_p_values(plain, new_scores, new_members)
    by_class = largest_p_values(crossed, new_scores, new_members)
    for i in range(40):
        for y in range(3):
            wanted, wanted_by_class = [0.0], [0.0]
            for g in np.flatnonzero(new_members[i]):
                at = members[:, g]
                not_above = own[at] <= new_scores[i, y]
                wanted.append((1 + not_above.sum()) / (at.sum() + 1))
                at_class = at & (codes == y)
                not_above = own[at_class] <= new_scores[i, y]
                wanted_by_class.append((1 + not_above.sum()) / (at_class.sum() + 1))
            inside = new_members[i].any()
            assert found[i, y] == (max(wanted) if inside else 1)
            assert by_class[i, y] == (max(wanted_by_class) if inside else 1)


@pytest.mark.parametrize("by", [None, "class"])
@pytest.mark.parametrize("confidence", [None, 0.9])
def test_a_label_is_left_out_where_every_subgroup_leaves_it_out(by, confidence):
    members, scores, codes = _random_rows(200, seed=2)
    new_members, new_scores, _ = _random_rows(300, seed=3)
    own = scores[np.arange(200), codes]
    labels = (0, 1, 2)
    kept = scores_within(
        own, Memberships(members, NAMES), codes if by else None, labels if by else ()
    )
    rule = Coverage(
        scores=kept,
        classes=labels,
        by=by,
        subgroups=NAMES,
        terms=Terms(confidence=confidence),
    ).rule(0.2)
    sets = rule.sets(new_scores, new_members, allow_empty=True)
    assert len(rule.guarantees) == len(kept.names)
    assert {(g.subgroup, g.scope) for g in rule.guarantees} == set(kept.names)
    if confidence is None:
        assert np.array_equal(sets, rule.p_values(new_scores, new_members) > 0.2)
        return
    n_claims = len(kept.names)
    inside = ~new_members.any(axis=1, keepdims=True) | np.zeros_like(sets)
    for g in range(3):
        for y in range(3):
            at = members[:, g] & (codes == y) if by else members[:, g]
            rank = Terms(confidence=1 - 0.1 / n_claims).rank(int(at.sum()), 0.2)
            cut = np.sort(own[at])[rank - 1] if rank else -np.inf
            inside[:, y] |= new_members[:, g] & (new_scores[:, y] >= cut)
    assert np.array_equal(sets, inside)


def test_one_subgroup_of_all_rows_and_disjoint_ones_are_what_there_was():
    _, scores, codes = _random_rows(150, seed=4)
    _, new_scores, _ = _random_rows(80, seed=5)
    own = scores[np.arange(150), codes]
    group, new_group = np.arange(150) % 3, np.arange(80) % 3
    every = Memberships(np.ones((150, 1), dtype=bool), ("all",))
    one = scores_within(own, every)
    none = CalibrationScores.from_rows(own)
    assert np.array_equal(
        largest_p_values(one, new_scores, np.ones((80, 1), dtype=bool)),
        none.p_values(new_scores),
    )
    parts = Memberships(group[:, None] == np.arange(3), NAMES)
    rules = [
        Coverage(scores=scores_within(own, parts), classes=(0, 1, 2), subgroups=NAMES),
        Coverage(
            scores=CalibrationScores.from_rows(own, group, (0, 1, 2)),
            classes=(0, 1, 2),
            by="group",
        ),
    ]
    by_subgroup, by_group = (made.rule(0.1) for made in rules)
    assert by_subgroup.thresholds == by_group.thresholds
    new_members = new_group[:, None] == np.arange(3)
    for ask in (Rule.sets, Rule.p_values):
        assert np.array_equal(
            ask(by_subgroup, new_scores, new_members),
            ask(by_group, new_scores, new_group),
        )


def test_a_rule_by_subgroups_says_what_it_needs():
    members, scores, codes = _random_rows(60)
    own = scores[np.arange(60), codes]
    kept = scores_within(own, Memberships(members, NAMES))
    rule = Coverage(scores=kept, classes=(0, 1, 2), subgroups=NAMES).rule(0.1)
    with pytest.raises(ValueError, match="which of them hold each row"):
        rule.sets(scores)
    with pytest.raises(ValueError, match=r"of 3 subgroups .* shape \(60, 2\)"):
        rule.sets(scores, members[:, :2])
    with pytest.raises(ValueError, match="what a function says of rows, which no file"):
        rule.to_json()
    assert rule.at(0.2).guarantees[1].subgroup == "B"


def test_lowest_thresholds_of_no_subgroup_let_everything_pass():
    members = np.array([[True, True], [False, True], [False, False]])
    cuts = np.array([[1.0, 5.0], [2.0, 3.0]])
    found = lowest_thresholds(cuts, members)
    assert np.array_equal(found, [[1.0, 3.0], [2.0, 3.0], [-np.inf, -np.inf]])


def test_cells_are_the_different_memberships():
    members, _, _ = _random_rows(100)
    cells = cells_of(members)
    places = cell_places(cells, members)
    assert np.array_equal(places < 0, ~members.any(axis=1))
    known = places >= 0
    assert np.array_equal(cells[places[known]], members[known])
    assert len(np.unique(cells, axis=0)) == len(cells)
    assert cell_name(np.array([True, False, True]), NAMES) == "A and C"


def test_the_largest_number_of_cells_takes_part_that_all_have_rows_enough():
    counts = np.array([500, 60, 75, 12, 90, 75])
    kept = cells_with_rows_enough(counts, 0.05, 0.95)
    for n_kept in range(len(counts), 0, -1):
        chosen = np.sort(counts)[::-1][:n_kept]
        if chosen.min() >= fewest_rows(0.05, 0.95 ** (1 / n_kept)):
            break
    assert kept.sum() == n_kept == 2
    assert kept[[0, 4]].all()
    assert not cells_with_rows_enough(np.array([20, 30]), 0.05, 0.95).any()


def test_reference_values_of_limits_and_rows():
    level = 0.05 / 4
    limits = [
        upper_limit(*counts, level=level) for counts in ((3, 60), (1, 40), (0, 25))
    ]
    assert limits == pytest.approx([0.1534383436, 0.1492040007, 0.1607788884], abs=1e-9)
    for rate, wanted in ((0.1, [29, 46, 52, 58]), (0.05, [59, 94, 106, 119])):
        rows = [fewest_rows(rate, 1 - 0.05 / n) for n in (1, 6, 11, 22)]
        assert rows == wanted
    # The boundary of a cell has a corner exactly from these rows on.
    each = 0.95 ** (1 / 6)
    needed = fewest_rows(0.05, each)
    assert not len(error_boundary(needed - 1, 0.05, confidence=each).ranks)
    assert len(error_boundary(needed, 0.05, confidence=each).ranks) == 1


@pytest.mark.slow
def test_the_largest_p_value_takes_two_microseconds_a_row_and_label():
    random = np.random.default_rng(0)
    held, new = random.random((1000, 11)) < 0.3, random.random((20_000, 11)) < 0.3
    names = tuple(map(str, range(11)))
    kept = scores_within(random.random(1000), Memberships(held, names))
    scores, times = random.random((20_000, 2)), []
    for _ in range(5):
        start = time.process_time()
        largest_p_values(kept, scores, new)
        times.append(time.process_time() - start)
    assert min(times) <= 2e-6 * scores.size
