"""The grammar of promises, and how many rows each needs."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from prudent import Guarantee
from prudent.core.binomial import mean_rank, upper_limit
from prudent.core.rows import fewest_to_hold_out, held_out_count
from prudent.evaluation.promising import (
    fewest_held_out,
    rows_needed,
    shared_confidence,
)
from prudent.rules.wish import parse_promise

CLASSES = ["benign", "malignant", "not sure and such"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "coverage >= 90% in every class",
            [("coverage", ">=", 0.9, label) for label in CLASSES],
        ),
        ("coverage >= 95 %", [("coverage", ">=", 0.95, None)]),
        ("coverage ≥ 0.95", [("coverage", ">=", 0.95, None)]),
        ("error <= 5%", [("selective error rate", "<=", 0.05, None)]),
        ("error <= .05", [("selective error rate", "<=", 0.05, None)]),
        (
            "missed malignant <= 2%",
            [("class error rate", "<=", 0.02, "malignant")],
        ),
        (
            "missed malignant <= 2% and missed not sure and such <= 0.5%",
            [
                ("class error rate", "<=", 0.02, "malignant"),
                ("class error rate", "<=", 0.005, "not sure and such"),
            ],
        ),
        (
            "missed malignant <= 2% and benign <= 5%",
            [
                ("class error rate", "<=", 0.02, "malignant"),
                ("class error rate", "<=", 0.05, "benign"),
            ],
        ),
        ("false alarm <= 5%", [("false alarm rate", "<=", 0.05, None)]),
        ("error<=5%", [("selective error rate", "<=", 0.05, None)]),
        ("Coverage>=95%", [("coverage", ">=", 0.95, None)]),
        ("false alarm benign <= 1%", [("class error rate", "<=", 0.01, "benign")]),
        (
            "missed malignant<=2%, benign<=5%",
            [
                ("class error rate", "<=", 0.02, "malignant"),
                ("class error rate", "<=", 0.05, "benign"),
            ],
        ),
    ],
)
def test_sentence_becomes_guarantees(text, expected):
    wish = parse_promise(text, CLASSES)
    found = [(g.quantity, g.sense, g.bound, g.scope) for g in wish.guarantees]
    assert found == expected
    assert all(not g.evidence for g in wish.guarantees)
    assert wish.text == text


@pytest.mark.parametrize(
    "text",
    ["error <= 5%", "coverage >= 95%", "missed benign <= 5%", "false alarm <= 5%"],
)
def test_confidence_asked_for_is_that_of_every_promise(text):
    (promise,) = parse_promise(text, confidence=0.9).guarantees
    assert (promise.confidence, promise.average_over) == (0.9, None)


def test_without_a_confidence_errors_have_one_and_coverage_is_on_average():
    error = parse_promise("error <= 5%").guarantees[0]
    coverage = parse_promise("coverage >= 95%").guarantees[0]
    assert (error.confidence, error.average_over) == (0.95, None)
    assert (coverage.confidence, coverage.average_over) == (None, "training samples")


def test_confidence_of_a_guarantee_is_kept_and_two_are_refused():
    given = Guarantee(quantity="coverage", bound=0.9, sense=">=", confidence=0.99)
    assert parse_promise(given).confidence == 0.99
    assert parse_promise(given, confidence=0.99).confidence == 0.99
    with pytest.raises(ValueError, match="with one confidence, got 0.9 and 0.99"):
        parse_promise(given, confidence=0.9)
    error = Guarantee(quantity="error rate", bound=0.1, sense="<=")
    assert parse_promise(error, confidence=0.9).confidence == 0.9
    assert parse_promise(error).confidence == 0.95


def test_none_asks_for_nothing():
    assert parse_promise("none") is None


@pytest.mark.parametrize(
    ("text", "kind", "rate", "share"),
    [
        ("error <= 5% and answered >= 96%", "error", 0.05, 0.96),
        ("error<=5%, and handed over <= 4%", "error", 0.05, 0.96),
        ("answered >= 96%", "answered", 0.04, 0.96),
        ("handed over <= 4%", "answered", 0.04, 0.96),
        ("missed malignant <= 2% and flagged <= 4%", "missed", 0.02, 0.04),
        ("missed not sure and such <= 2% and Flagged <= .5", "missed", 0.02, 0.5),
    ],
)
def test_capacities(text, kind, rate, share):
    wish = parse_promise(text, CLASSES)
    assert (wish.kind, wish.allowed, wish.share) == (kind, pytest.approx(rate), share)
    assert wish.confident(0.9).confidence == 0.9
    assert (wish.understood is not None) == ("handed over" in text)
    again = parse_promise(wish.at(wish.level), CLASSES)
    assert (again.guarantees, again.capacity) == (wish.guarantees, wish.capacity)
    as_values = parse_promise(
        [*wish.guarantees, *([wish.capacity] if wish.capacity else [])], CLASSES
    )
    assert (as_values.kind, as_values.share) == (kind, share)
    flagged = wish.capacity is not None and wish.capacity.quantity == "flagged share"
    if flagged:
        assert wish.capacity.scope == wish.guarantees[0].scope
        assert wish.capacity.sense == "<="
    if wish.capacity is not None:
        assert wish.confident(0.9).capacity.confidence == 0.9


def test_a_class_may_be_called_like_a_capacity():
    wish = parse_promise("missed a <= 2% and flagged <= 4%", ["a", "flagged", "c"])
    assert [g.scope for g in wish.guarantees] == ["a", "flagged"]
    assert wish.capacity is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("flagged <= 4%", "does not say which class is flagged"),
        ("coverage >= 90% and answered >= 50%", "answered share goes with 'error"),
        ("missed benign <= 2% and answered >= 50%", "goes with 'error <= 5%'"),
        ("error <= 5% and flagged <= 4%", "flagged share goes with 'missed LABEL"),
        (
            "missed benign <= 2% and malignant <= 4% and flagged <= 4%",
            "goes with one class",
        ),
        ("error <= 5% and answered >= 96% and answered >= 97%", "goes with 'error"),
        ("answered >= 100%", "the rate of a promise lies between 0 and 1"),
        ("answered <= 96%", "is none of"),
        ("answered >= 96% in every class", "is none of"),
        ("answered >= 96% in every sex", "has no promise by subgroups"),
        ("error <= 5% and answered >= 96% in every sex", "no promise by subgroups"),
    ],
)
def test_capacities_that_do_not_fit(text, message):
    with pytest.raises(ValueError, match=message):
        parse_promise(text, CLASSES)


def test_rows_held_out_for_capacities():
    alone = parse_promise("answered >= 96%")
    assert fewest_held_out(alone, 1) == math.ceil(
        math.log(1 - math.sqrt(0.95)) / math.log(0.96)
    )
    both = parse_promise("error <= 5% and answered >= 96%")
    assert fewest_held_out(both, 1) == math.ceil(math.log(0.025) / math.log(0.96))
    easy = parse_promise("error <= 5% and answered >= 50%")
    assert fewest_held_out(easy, 1) == math.ceil(math.log(0.025) / math.log(0.95))
    flagged = parse_promise("missed a <= 5% and flagged <= 2%", ["a", "b"])
    assert fewest_held_out(flagged, 1, "a") == math.ceil(
        math.log(0.025) / math.log(0.95)
    )
    assert fewest_held_out(flagged, 1) == math.ceil(math.log(0.025) / math.log(0.98))


def test_labels_may_be_numbers():
    assert parse_promise("missed 1 <= 2%", [0, 1]).guarantees[0].scope == 1


def test_guarantees_are_taken_as_they_are():
    given = Guarantee(quantity="coverage", bound=0.9, sense=">=")
    assert parse_promise(given).guarantees == (given,)


@pytest.mark.parametrize(
    "text",
    [
        *("", "accuracy >= 90%", "error < 5%", "missed", "missed a <= 2% and "),
        *("coverage", "missed a <= 2%,", "false alarm", "error <= 5% in every class"),
    ],
)
def test_what_does_not_parse_shows_the_forms(text):
    with pytest.raises(ValueError, match="is none of") as caught:
        parse_promise(text, CLASSES)
    for form in ("in every class", "error <= 5%", "missed LABEL", "none", "95%"):
        assert form in str(caught.value)


@pytest.mark.parametrize("text", ["error <= 0%", "error <= 100%", "coverage >= 7"])
def test_rates_lie_between_0_and_1(text):
    with pytest.raises(ValueError, match="the rate of a promise lies between 0 and 1"):
        parse_promise(text)


def test_unknown_label_is_named_with_those_there_are():
    with pytest.raises(ValueError, match="names class 'cancer'; there are benign"):
        parse_promise("missed cancer <= 2%", CLASSES)


def test_labels_may_hold_the_signs_of_the_grammar():
    wish = parse_promise("missed <=50K <= 5% and >50K<=1%", ["<=50K", ">50K"])
    assert [g.scope for g in wish.guarantees] == ["<=50K", ">50K"]


def test_a_long_label_is_not_cut_where_it_is_misspelled():
    label = "a class whose name is longer than the sixty-four characters of an echo"
    with pytest.raises(ValueError, match=f"names class '{label}s'"):
        parse_promise(f"missed {label}s <= 5%", [label[:60], "b"])


def test_false_alarms_of_a_class_are_its_errors_and_said_so():
    wish = parse_promise("false alarm benign <= 1%", CLASSES)
    assert wish.understood == (
        "'false alarm benign <= 1%' is understood as the error of class 'benign'"
    )
    assert parse_promise("missed benign <= 1%", CLASSES).understood is None
    assert parse_promise("false alarm <= 1%", CLASSES).understood is None


def test_labels_may_be_quoted_and_words_capitals():
    wish = parse_promise('Missed "benign" <= 2%', ["benign", "malignant"])
    assert wish.guarantees[0].scope == "benign"
    assert parse_promise("Coverage >= 90% in every class").by_class


@pytest.mark.parametrize(
    ("promise", "said"),
    [
        (0.05, "must be a sentence, a Guarantee or several, got 0.05"),
        ({"missed": 0.1}, "must be a sentence, a Guarantee or several, got {'missed'"),
        ([], "must be a sentence, a Guarantee or several, got []"),
        (["error <= 5%"], "must be a sentence, a Guarantee or several, got ['error"),
    ],
)
def test_what_is_no_promise_is_named(promise, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        parse_promise(promise)


def test_guarantees_are_about_one_quantity():
    two = [
        Guarantee(quantity="coverage", bound=0.9, sense=">="),
        Guarantee(quantity="error rate", bound=0.1, sense="<="),
    ]
    with pytest.raises(ValueError, match="one quantity, got coverage, error rate"):
        parse_promise(two)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("coverage", 0.8, "<="), "keeps the coverage >= a bound, got <= 0.8."),
        (("class error rate", 0.5, ">="), "class error rate <= a bound, got >= 0.5."),
        (("answered share", 0.5, "<="), "answered share >= a bound, got <= 0.5."),
        (("precision", 0.5, ">="), "`promise` may be about answered share, "),
    ],
)
def test_guarantees_that_no_rule_keeps_are_refused(asked, said):
    quantity, bound, sense = asked
    with pytest.raises(ValueError, match=re.escape(said)):
        parse_promise(Guarantee(quantity=quantity, bound=bound, sense=sense))


def test_subgroups_of_a_guarantee_are_asked_for_in_words():
    given = Guarantee(quantity="coverage", bound=0.9, sense=">=", subgroup="sex=F")
    with pytest.raises(ValueError, match="in every sex', got .* about sex=F"):
        parse_promise(given)


def test_false_alarms_are_asked_for_by_a_guarantee_as_in_words():
    given = Guarantee(quantity="false alarm rate", bound=0.05, sense="<=")
    wish, said = parse_promise(given), parse_promise("false alarm <= 5%")
    assert (wish.kind, wish.allowed, wish.confidence) == ("false alarm", 0.05, None)
    assert (said.kind, said.allowed, said.confidence) == ("false alarm", 0.05, None)


@pytest.mark.parametrize("both", [" and ", ", "])
def test_kinds_cannot_be_joined(both):
    with pytest.raises(ValueError, match="A promise is of one kind"):
        parse_promise(f"missed benign <= 2%{both}error <= 5%", ["benign", "malignant"])


def test_strict_signs_are_named():
    with pytest.raises(ValueError, match="Write <= or >="):
        parse_promise("error < 5%")


@given(st.integers(1, 99), st.integers(1, 20))
def test_fewest_rows_are_enough_and_one_less_is_not(percent, n_methods):
    rate = percent / 100
    coverage = parse_promise(f"coverage >= {100 - percent}%")
    least = fewest_held_out(coverage, n_methods)
    assert mean_rank(least, rate) >= 1
    assert least == 1 or mean_rank(least - 1, rate) == 0
    error = parse_promise(f"error <= {percent}%")
    least = fewest_held_out(error, n_methods)
    doubt = 1 - shared_confidence(error, n_methods)
    assert upper_limit(0, least, level=doubt) <= rate + 1e-12
    if least > 1:
        assert upper_limit(0, least - 1, level=doubt) > rate


def test_rows_of_a_coverage_are_counted_exactly():
    """At hundredths of a percent, and where 1 / (1 - coverage) is an integer."""
    for thousandths in [*range(10, 100_000, 10), 99_375, 99_875, 99_968, 99_999]:
        wish = parse_promise(f"coverage >= {thousandths / 1000}%")
        missed = 100_000 - thousandths
        enough = -(-100_000 // missed) - 1  # the least n with missed (n + 1) >= 100 000
        assert fewest_held_out(wish, 1) == max(1, enough), thousandths


def test_rows_needed_for_the_example_of_eleven_methods():
    wish = parse_promise("missed malignant <= 2%", ["benign", "malignant"])
    assert fewest_held_out(wish, 11) == 267
    needs = rows_needed(wish, "malignant", n_methods=11, n_folds=5)
    assert needs.label == "malignant"
    # Half of a training part of so many rows are 267 in 99 of 100 draws.
    trained = math.floor(0.8 * needs.rows)
    assert binom.sf(266, trained, 0.5) >= 0.99
    assert binom.sf(266, trained - 1, 0.5) < 0.99


def test_rows_needed_in_all_are_held_out_by_count():
    wish = parse_promise("error <= 5%")
    needs = rows_needed(wish, None, n_methods=1, n_folds=5)
    assert (needs.held_out, needs.to_fit, needs.rows) == (59, 194, 243)
    # Each of the five training parts of 243 rows, and none of those of 242.
    assert [n - math.ceil(n / 5) for n in (242, 243)] == [193, 194]


def test_no_smaller_table_holds_out_so_many():
    for share in (0.1, 0.3, 0.5, 0.7, 0.9):
        for held_out in range(1, 400):
            n = fewest_to_hold_out(held_out, share)
            assert held_out_count(n, share) >= held_out
            assert n == 2 or held_out_count(n - 1, share) < held_out


@pytest.mark.parametrize(
    ("text", "by", "scopes", "subgroups"),
    [
        ("coverage >= 90% in every class and sex", (), CLASSES, ("sex",)),
        ("coverage >= 90% in every sex, class", (), CLASSES, ("sex",)),
        ("error <= 5% in every hospital", (), [None], ("hospital",)),
        (
            "missed malignant <= 2% in every sex and age_band",
            (),
            ["malignant"],
            ("sex", "age_band"),
        ),
        ("error <= 5% in every sex*age:30,45", (), [None], ("sex*age:30,45",)),
        ("coverage >= 90%", ("sex", "age:30,45"), [None], ("sex", "age:30,45")),
        ("coverage >= 90% in every b and a", ("a", "b"), [None], ("a", "b")),
        ("coverage >= 90% in every class", ("sex",), CLASSES, ("sex",)),
    ],
)
def test_parts_of_the_population_in_words_and_by_option(text, by, scopes, subgroups):
    wish = parse_promise(text, CLASSES, by=by)
    assert [g.scope for g in wish.guarantees] == list(scopes)
    assert wish.subgroups == subgroups
    # The text says it all, whichever of the two did; and at other rates too.
    assert parse_promise(wish.text, CLASSES).subgroups == subgroups or "b and a" in text
    again = parse_promise(wish.at(wish.levels[1]), CLASSES)
    assert (again.subgroups, again.by_class) == (subgroups, wish.by_class)


@pytest.mark.parametrize(
    ("text", "by", "sentence"),
    [
        ("error <= 5% in every sex", ("age",), "by sex, and by age is asked for"),
        ("error <= 5% in every class and sex", (), "is none of"),
        ("missed benign <= 5% in every class", (), "is none of"),
        ("false alarm <= 5% in every sex", (), "has no promise by subgroups"),
        ("coverage >= 90% in every group", (), "does not say which groups"),
        ("none", ("sex",), "there is none to keep in every sex"),
    ],
)
def test_parts_that_no_promise_is_made_in(text, by, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        parse_promise(text, CLASSES, by=by)
