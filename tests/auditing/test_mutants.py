"""Twenty valid methods pass; their mutants, and our own former defects, are found."""

from functools import partial

import pytest

import prudent
from auditing.defects import DETECTORS as DEFECTIVE_DETECTORS
from auditing.defects import EIGHT, TiedGame, intruder
from auditing.methods import (
    DETECTORS,
    MUTANTS,
    VALID,
    ClassSets,
    SplitDetector,
    SplitSets,
    TwoSided,
)

# Enough of the standard laws for every mutant, at a third of the time.
LAWS = (
    *("normal", "two points", "contaminated", "line", "six atoms", "imbalance 1:100"),
    *("more columns than rows", "rare categories", "scale 1e150"),
)


def audited(method, broken=None, **settings):
    answer = "detect" if issubclass(method, DETECTORS) else None
    return prudent.audit(
        partial(method, broken), answer=answer, **{"laws": LAWS} | settings
    )


@pytest.mark.slow
def test_at_most_one_of_twenty_valid_methods_is_called_broken():
    assert len(VALID) == 20
    called = [m.__name__ for m in VALID if audited(m).verdict == "broken"]
    assert len(called) <= 1, called


@pytest.mark.slow
def test_at_most_two_mutants_are_missed():
    assert len(MUTANTS) >= 20
    missed = [(m.__name__, b) for m, b in MUTANTS if audited(m, b).verdict != "broken"]
    assert len(missed) <= 2, missed


@pytest.mark.parametrize(
    ("method", "broken"),
    [
        (SplitDetector, "interpolated quantile"),
        (SplitDetector, "ties count as strange"),
        (TwoSided, "one-sided for two-sided"),
        (SplitSets, "n for n + 1"),
        (ClassSets, "one cut for all classes"),
    ],
)
def test_some_mutants_are_found_and_their_originals_pass(method, broken):
    settings = {"laws": ["two points", "line"], "sizes": (100,)}
    assert audited(method, broken, **settings).verdict == "broken"
    assert audited(method, **settings, budget=60).verdict == "no violation found"


# Where each is found soonest; among all standard laws it is found too.
WHERE = dict(
    zip(
        EIGHT,
        (
            ["binary column"], ["normal"], ["imbalance 1:100"], ["two points"],
            ["six atoms"], ["rare categories"], [intruder()], ["scale 1e150"],
        ),
        strict=True,
    )
)  # fmt: skip


@pytest.mark.parametrize(
    "laws", ["few", pytest.param("standard", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("defect", EIGHT)
def test_the_eight_defects_found_by_hand_are_found(defect, laws):
    found = prudent.audit(
        defect,
        answer="detect" if defect in DEFECTIVE_DETECTORS else None,
        laws=WHERE[defect] if laws == "few" or defect is TiedGame else laws,
        sizes=(20, 60),
    )
    assert found.verdict == "broken"
    assert max(row.claims for row in found.rows if row.is_refuted) <= 400


def test_the_game_without_ties_keeps_its_promise():
    found = prudent.audit(
        partial(TiedGame, 0.0), answer="detect", laws=[intruder()], sizes=(20,),
        budget=60,
    )  # fmt: skip
    assert found.verdict == "no violation found"
