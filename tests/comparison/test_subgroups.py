"""A comparison under a promise that each of several subgroups gets."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

import prudent
from prudent.core.selection import holm
from prudent.exceptions import InfeasibleError


@pytest.fixture(scope="module")
def people():
    random = np.random.default_rng(0)
    n = 1500
    frame = pd.DataFrame(
        {
            "age": random.integers(18, 80, n).astype(float),
            "sex": random.choice(["Female", "Male"], n),
            "x": random.normal(size=n),
        }
    )
    noise = np.where(frame["age"] > 60, 1.2, 0.3)
    y = np.where(frame["x"] + noise * random.normal(size=n) > 0, "pos", "neg")
    return frame, y


def compare(people, promise, **more):
    X, y = people
    settings = {"methods": ["lda"], "baselines": (), "cv": 3, **more}
    return prudent.compare(X, y, promise=promise, **settings)


def items_of(comparison):
    return {
        (item.guarantee.scope, item.guarantee.subgroup): item
        for item in comparison.rows[0].asked.items
    }


def test_items_are_classes_crossed_with_subgroups_in_one_family(people):
    found = compare(people, "coverage >= 90% in every class and sex and age:30,60")
    names = ["sex=Female", "sex=Male", "age<30", "30<=age<60", "age>=60"]
    items = items_of(found)
    assert set(items) == {(c, g) for c in ("neg", "pos") for g in names}
    frame, y = people
    inside = {
        "sex=Male": frame["sex"] == "Male",
        "30<=age<60": frame["age"].between(30, 59.5),
    }
    for name, rows in inside.items():
        assert items["pos", name].n == ((y == "pos") & rows).sum()
    # One family with the promises of the plain method: Holm over all of them.
    every = [item for row in found.rows for item in row.promises]
    kept = holm([item.p_kept for item in every]) <= 0.05
    assert [item.check.verdict == "kept" for item in every] == kept.tolist()
    worst = found.rows[0].asked.worst_subgroup
    rates = {key: item.violations / item.n for key, item in items.items()}
    scope, subgroup = max(rates, key=rates.get)
    assert worst.label == f"{scope} with {subgroup}"
    assert worst.rate == max(rates.values())
    text = str(found)
    assert "covered (worst" in text
    assert "class and subgroup)" in text
    assert worst.label in text


def test_json_and_long_frame_name_the_subgroup(people):
    found = compare(people, "error <= 25% in every sex")
    plain = found.to_dict()["rows"][0]["asked"]["items"]
    assert {item.get("subgroup") for item in plain} == {None, "sex=Female", "sex=Male"}
    rows = found.measured.to_pylist()
    folds = [row for row in rows if row["asked"] and row["subgroup"] == "sex=Male"]
    assert len(folds) == 4  # three folds, and all of them
    assert folds[-1]["count"] == sum(row["count"] for row in folds[:-1])
    frame = found.to_frame().to_pydict()
    assert frame["worst_subgroup"][0] in {"sex=Female", "sex=Male"}
    assert "error of the" in str(found)


def test_a_table_of_its_own_says_the_same_as_columns(people):
    frame, _ = people
    named = compare(people, "coverage >= 85%", subgroups=["sex", "age:60"])
    old = frame["age"] >= 60
    held = pd.DataFrame(
        {
            "sex=Female": frame["sex"] == "Female",
            "sex=Male": frame["sex"] == "Male",
            "age<60": ~old,
            "age>=60": old,
        }
    )
    given = compare(people, "coverage >= 85%", subgroups=held)
    matrix = compare(people, "coverage >= 85%", subgroups=held.to_numpy())
    function = compare(people, "coverage >= 85%", subgroups=lambda X: held)
    assert items_of(named).keys() == items_of(given).keys()
    counts = [
        [(item.violations, item.n) for item in items_of(found).values()]
        for found in (named, given, matrix, function)
    ]
    assert counts[1:] == counts[:-1]
    assert given.settings.promise == "coverage >= 85% in every subgroup"
    assert named.settings.promise == "coverage >= 85% in every sex and age:60"


def test_missed_classes_by_subgroup_and_their_curve(people):
    found = compare(people, "missed pos <= 30% in every age:60")
    assert set(items_of(found)) == {("pos", "age<60"), ("pos", "age>=60")}
    shares = found.frontier.decided["lda"]
    assert shares == tuple(sorted(shares))
    assert found.frontier.promises[0].endswith("in every age:60")
    name = found.rows[0].asked.worst_subgroup.label.removeprefix("pos with ")
    assert f"pos ({name})" in str(found)


@pytest.mark.parametrize("confidence", [None, 0.9])
def test_the_curve_passes_through_the_table(people, confidence):
    found = compare(
        people, "coverage >= 90% in every sex", confidence=confidence, methods=["lda"]
    )
    place = found.frontier.levels.index(0.9)
    decided = found.frontier.decided["lda"][place]
    assert decided == pytest.approx(found.rows[0].asked.decided)


def test_small_parts_are_noted_or_refused(people):
    frame, y = people
    rare = frame.assign(sex=np.where(np.arange(len(y)) < 12, "Other", frame["sex"]))
    found = compare((rare, y), "coverage >= 90% in every sex")
    assert any(
        "nothing is ruled out: sex=Other (12 rows)" in n for n in found.data.notes
    )
    answered = compare((rare, y), "error <= 15% in every sex")
    assert "never answered: sex=Other (12 rows)" in " ".join(answered.data.notes)
    with pytest.raises(InfeasibleError, match="rows of 'pos with sex=Other'"):
        compare((rare, y), "missed pos <= 10% in every sex")


def test_wrong_subgroups_are_refused_before_any_work(people):
    for more, sentence in (
        ({"subgroups": ["sexe"]}, "no column 'sexe'; there are age, sex, x"),
        ({"subgroups": ["age"]}, "'age' has 62 values: give bands"),
        ({"subgroups": np.ones((7, 2), dtype=bool)}, "7 rows for 1500 rows of X"),
    ):
        with pytest.raises(ValueError, match=sentence):
            compare(people, "coverage >= 90%", **more)
    with pytest.raises(ValueError, match="by sex, and by age:60 is asked for"):
        compare(people, "error <= 9% in every sex", subgroups=["age:60"])


def test_promises_with_confidence_hold_in_every_subgroup_at_once(people):
    # Rates of fresh rows: a bound that holds for all with 0.95 is seldom exceeded.
    found = compare(people, "coverage >= 90% in every sex", confidence=0.95)
    for item in items_of(found).values():
        allowed = binom.isf(1e-4, int(item.n), 0.1)
        assert item.violations <= allowed


def far_apart(n_rows, n_sites):
    """Two classes that any method tells apart, equally many of them in each site."""
    x = np.random.default_rng(5).normal(size=n_rows)
    place = np.arange(n_rows)
    is_high = place // n_sites % 2 == 1
    frame = pd.DataFrame({"site": [f"s{i % n_sites}" for i in place], "x": x})
    frame["x"] += 40 * is_high
    return frame, np.where(is_high, "high", "low")


@pytest.mark.parametrize(
    ("n_rows", "n_sites", "promise"),
    [
        (60, 2, "error <= 10% in every site"),
        (118, 2, "error <= 10% in every site"),
        (400, 2, "error <= 5% in every site"),
        (160, 8, "coverage >= 95% in every site"),
        (160, 8, "coverage >= 90% in every class and site"),
    ],
)
def test_where_all_parts_are_too_small_what_is_said_to_be_enough_is(
    n_rows, n_sites, promise
):
    with pytest.raises(InfeasibleError) as refused:
        compare(far_apart(n_rows, n_sites), promise, cv=5)
    said = str(refused.value)
    needed = re.search(r"in about ([\d\s]+) rows of a table like this", said)[1]
    enough = int(re.sub(r"\s", "", needed))
    assert enough > n_rows
    found = compare(far_apart(enough, n_sites), promise, cv=5)
    assert found.rows[0].asked.needs is None
    assert found.rows[0].asked.decided > 0.9
    weaker = re.search("ask for '([^']+)'", said)
    if weaker is not None:
        assert (
            compare(far_apart(n_rows, n_sites), weaker[1], cv=5).rows[0].asked.decided
        )


def test_the_table_says_in_which_part_rows_are_needed():
    X, y = far_apart(800, 4)
    frame, y = X[:500], y.astype(object)[:500]
    y[400:] = "rare"  # 100 rows, 25 in each site
    frame.loc[400:, "x"] += 80
    promise = "coverage >= 90% in every class and site"
    text = str(compare((frame, y.astype(str)), promise, cv=5))
    assert re.search(r"needs 67 rows .*\n +of 'rare' *\n +in 'site=s0'", text)


def test_what_is_suggested_can_be_had_in_every_part_where_any_promise_can():
    table = far_apart(118, 2)
    with pytest.raises(InfeasibleError) as refused:
        compare(table, "error <= 10% in every site", cv=5)
    # At 20 % the rows of one site could prove it, but not those of both.
    assert "ask for 'error <= 30% in every site'" in str(refused.value)
    found = compare(table, "error <= 30% in every site", cv=5)
    assert found.rows[0].asked.decided == 1
