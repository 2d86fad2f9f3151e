"""The makers of rules from arrays of scores, against the promises made of tables."""

from __future__ import annotations

import numpy as np
import pytest

import prudent
from prudent.rules.make import (
    class_error_rule,
    coverage_rule,
    false_alarm_rule,
    limits_rule,
    selective_rule,
)

RNG = np.random.default_rng(0)
CODES = RNG.integers(0, 3, 400)
SCORES = RNG.normal(size=(400, 3)) + 2.0 * (CODES[:, None] == np.arange(3))
OWN = SCORES[np.arange(400), CODES]
SITES = RNG.choice(["north", "south"], 400)
CLASSES = (0, 1, 2)


def promised(text, **settings):
    return prudent.promise(SCORES, CODES, text, classes=CLASSES, **settings)


@pytest.mark.parametrize("confidence", [None, 0.9])
@pytest.mark.parametrize(
    ("text", "category", "settings"),
    [
        ("coverage >= 80%", 0, {}),
        ("coverage >= 80% in every class", CODES, {"by": "class"}),
    ],
)
def test_sets(text, category, settings, confidence):
    made = coverage_rule(
        OWN, category, rate=0.2, classes=CLASSES, confidence=confidence, **settings
    )
    expected = promised(text, confidence=confidence)
    if confidence is None or not settings:  # of a table classes share the confidence
        assert made.thresholds == expected.thresholds
    np.testing.assert_array_equal(made.sets(SCORES), made.at(0.2).sets(SCORES))


def test_sets_by_group():
    names, category = np.unique(SITES, return_inverse=True)
    made = coverage_rule(
        OWN, category, rate=0.2, classes=CLASSES, by="group", groups=tuple(names)
    )
    sets = promised("coverage >= 80% in every group", by=SITES).sets(SCORES, SITES)
    np.testing.assert_array_equal(made.sets(SCORES, SITES), sets)


def test_answers_labels_and_sets_within_limits():
    sureness, wrong = SCORES.max(axis=1), SCORES.argmax(axis=1) != CODES
    answers = promised("error <= 10%", confidence=0.9)
    made = selective_rule(sureness, wrong, rate=0.1, confidence=0.9)
    assert made.thresholds == answers.thresholds
    limits = {1: 0.3}
    labels = class_error_rule(SCORES, CODES, limits=limits, confidence=0.9)
    asked = promised("missed 1 <= 30%", confidence=0.9)
    np.testing.assert_array_equal(labels.labels(SCORES), asked.labels(SCORES))
    every = dict.fromkeys(CLASSES, 0.3)
    within = limits_rule(SCORES, CODES, limits=every, confidence=0.9)
    text = "missed 0 <= 30% and missed 1 <= 30% and missed 2 <= 30%"
    np.testing.assert_array_equal(
        within.sets(SCORES), promised(text, confidence=0.9).sets(SCORES)
    )


@pytest.mark.parametrize("strange", ["low", "high"])
def test_alarms(strange):
    made = false_alarm_rule(OWN, rate=0.1, strange=strange)
    asked = prudent.promise(OWN, None, "false alarm <= 10%", strange=strange)
    np.testing.assert_array_equal(made.alarms(OWN), asked.alarms(OWN))
    assert [promise.bound for promise in made.guarantees] == [
        promise.bound for promise in asked.guarantees
    ]
