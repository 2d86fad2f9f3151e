import json
import math
import warnings
from collections import Counter
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from tests.comparison.conftest import Majority
from tools.trace_compare import comparison as comparison_rooms

import prudent
from prudent.comparison import ComparisonInterrupted
from prudent.comparison.protocol import Protocol, run
from prudent.core.binomial import clopper_pearson
from prudent.estimator_tools.labelled_rows import fingerprint, labelled_rows
from prudent.evaluation.evaluate import make_folds
from prudent.evaluation.methods import choose

compare = partial(prudent.compare, promise="none")
BASELINES = {"methods": (), "baselines": ("lda", "qda")}


@pytest.fixture(scope="module")
def comparison(iris):
    return compare(*iris, **BASELINES)


def row(comparison, name):
    (found,) = [row for row in comparison.rows if row.method == name]
    return found


def test_error_and_confusion_are_those_of_models_that_have_not_seen_the_row(
    comparison, iris
):
    X, y = iris
    predicted = np.empty_like(y)
    for fold in make_folds(y, 5, 1, random_state=0):
        model = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
        model.fit(X[fold.train], y[fold.train])
        predicted[fold.test] = model.predict(X[fold.test])
    found = row(comparison, "lda")
    assert found.error == pytest.approx(np.mean(predicted != y))
    counts = [[np.sum((y == i) & (predicted == j)) for j in range(3)] for i in range(3)]
    assert np.array(found.confusion).tolist() == counts


def test_error_comes_with_its_exact_interval(comparison):
    found = row(comparison, "lda")
    assert found.error_interval == clopper_pearson(150 * found.error, 150)


def test_same_seed_gives_the_same_comparison(comparison, iris):
    again = compare(*iris, **BASELINES)
    first, second = (c.without_timings().to_dict() for c in (comparison, again))
    assert first == second


def test_another_seed_draws_other_folds(comparison, iris):
    other = compare(*iris, **BASELINES, random_state=1)
    errors = [[s.error for s in c.folds] for c in (comparison, other)]
    assert errors[0] != errors[1]


def test_parallel_folds_give_the_same_figures(comparison, iris):
    parallel = compare(*iris, **BASELINES, n_jobs=2)
    first, second = (c.without_timings().to_dict() for c in (comparison, parallel))
    assert first["rows"] == second["rows"]


def test_rows_are_ordered_by_error(comparison):
    errors = [found.error for found in comparison.rows]
    assert errors == sorted(errors)


def test_repeats_test_every_row_again_but_the_interval_counts_it_once(iris):
    comparison = compare(*iris, **BASELINES, n_repeats=3)
    found = row(comparison, "qda")
    assert len([s for s in comparison.folds if s.method == "qda"]) == 15
    assert sum(map(sum, found.confusion)) == pytest.approx(150)
    assert found.error_interval == clopper_pearson(150 * found.error, 150)


def test_fold_scores_average_to_the_error(comparison):
    for found in comparison.rows:
        scores = [s for s in comparison.folds if s.method == found.method]
        assert np.average(
            [s.error for s in scores], weights=[s.n_test for s in scores]
        ) == pytest.approx(found.error)


def test_worse_methods_are_not_tied_and_equal_ones_are(stand_in, iris):
    stand_in(
        good=LinearDiscriminantAnalysis(),
        same=LinearDiscriminantAnalysis(),
        bad=Majority(),
    )
    comparison = compare(*iris)
    assert [found.method for found in comparison.rows] == ["good", "same", "bad"]
    assert row(comparison, "good").no_difference_from is None
    assert row(comparison, "same").no_difference_from == "good"
    assert row(comparison, "bad").no_difference_from is None
    less = [found.less_useful_than for found in comparison.rows]
    assert less == [None, None, "good"]


def test_failing_method_is_the_last_row_with_its_reason(stand_in, iris):
    def refuse(X, y):
        raise ValueError("column 'b' is constant within class 'x'.\nMore.")

    stand_in(bad=Majority(trouble=refuse), good=Majority())
    comparison = compare(*iris)
    assert [found.method for found in comparison.rows] == ["good", "bad"]
    assert comparison.rows[1].failure.text == "column 'b' is constant within class 'x'."
    assert comparison.rows[1].error is None


def test_an_exception_without_words_is_named(stand_in, iris):
    def refuse(X, y):
        raise MemoryError

    stand_in(bad=Majority(trouble=refuse))
    assert compare(*iris).rows[0].failure.kind == "memory"


def test_failure_after_some_folds_leaves_no_scores(stand_in, iris):
    calls = []

    def refuse_the_third(X, y):
        calls.append(1)
        if len(calls) == 3:
            raise ValueError("no")

    stand_in(bad=Majority(trouble=refuse_the_third))
    assert compare(*iris).folds == ()


def test_warnings_of_a_method_are_in_its_row_once(stand_in, iris):
    stand_in(loud=Majority(trouble=lambda X, y: warnings.warn("careful", stacklevel=2)))
    assert compare(*iris).rows[0].warnings == ("careful",)


def test_a_method_that_needs_all_columns_has_no_picture_and_does_not_fail(iris):
    class Fourth(Majority):
        def fit(self, X, y):
            X[:, 3]
            return super().fit(X, y)

    (found,) = compare(*iris, methods={"mine": Fourth()}, baselines=()).rows
    assert found.failure is None
    assert found.regions is None


def test_interrupt_carries_what_was_finished(stand_in, iris):
    def interrupt(X, y):
        raise KeyboardInterrupt

    stand_in(done=Majority(), stopped=Majority(trouble=interrupt), never=Majority())
    with pytest.raises(ComparisonInterrupted) as caught:
        compare(*iris)
    comparison = caught.value.comparison
    assert row(comparison, "done").error is not None
    assert row(comparison, "stopped").failure.kind == "interrupted"
    assert row(comparison, "never").failure.kind == "interrupted"


def test_interrupt_is_a_keyboard_interrupt():
    assert issubclass(ComparisonInterrupted, KeyboardInterrupt)


def test_progress_names_every_method_and_fold(iris):
    seen = []
    X, y = iris
    run(
        labelled_rows(X, y),
        choose((), ("lda", "qda")),
        Protocol(promise="none", cv=3),
        progress=lambda *state: seen.append(state),
    )
    assert seen == [(name, k, 3) for name in ("lda", "qda") for k in (1, 2, 3)]


def test_large_tables_are_sampled_and_the_row_says_so(iris):
    comparison = compare(*iris, methods=(), baselines=("lda",), sample=60)
    assert comparison.rows[0].notes == ("fitted on 60 of 120 rows",)
    assert {score.n_train for score in comparison.folds} == {60}
    assert {score.n_test for score in comparison.folds} == {30}


def test_methods_that_learn_from_moments_are_never_sampled(iris):
    comparison = compare(*iris, methods=("minimax",), baselines=(), sample=60)
    assert comparison.rows[0].notes == ()
    assert {score.n_train for score in comparison.folds} == {120}


def test_fit_from_merged_moments_equals_fit_on_the_rows(iris):
    from prudent import MinimaxProbabilityClassifier

    X, y = iris
    found = row(compare(X, y, methods=("minimax",), baselines=()), "minimax")
    predicted = np.empty_like(y)
    for fold in make_folds(y, 5, 1, random_state=0):
        model = MinimaxProbabilityClassifier().fit(X[fold.train], y[fold.train])
        predicted[fold.test] = model.predict(X[fold.test])
    assert found.error == pytest.approx(np.mean(predicted != y))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_column_names_of_a_frame_are_kept(iris, frame):
    X, y = iris
    table = frame({f"c{j}": X[:, j] for j in range(4)})
    comparison = compare(table, y, methods=(), baselines=("lda",))
    assert comparison.data.features == ("c0", "c1", "c2", "c3")


def test_labels_may_be_text(iris):
    X, y = iris
    labels = np.array(["setosa", "versicolor", "virginica"])[y]
    comparison = compare(X, labels, **BASELINES)
    assert comparison.data.classes == ("setosa", "versicolor", "virginica")
    assert comparison.data.class_counts == (50, 50, 50)


def test_constant_features_are_named(iris):
    X, y = iris
    X = np.column_stack([X, np.ones(150)])
    comparison = compare(X, y, methods=(), baselines=("lda",))
    assert comparison.data.constant_features == ("x4",)


def test_rare_classes_do_not_cut_the_folds_and_count_as_missed(iris):
    X, y = iris[0][:103], iris[1][:103]
    for n_rows in (101, 102, 103):
        comparison = compare(
            X[:n_rows], y[:n_rows], methods=("minimax",), baselines=("lda", "qda")
        )
        assert comparison.settings.n_folds == 5
        assert [found.failure for found in comparison.rows] == [None] * 3
        if n_rows == 101:
            assert {found.confusion[2][2] for found in comparison.rows} == {0}
            assert "class '2' has 1 row" in comparison.data.notes[0]


def test_groups_are_not_split_and_one_row_of_each_is_tested(stand_in, iris):
    X, y = iris
    groups = np.repeat(np.arange(30), 5)
    seen = []

    class Looks(Majority):
        def fit(self, X, y, groups=None):
            if groups is not None:  # the map of the plane is fitted without
                seen.append(set(groups.tolist()))
            return super().fit(X, y)

    stand_in(looks=Looks(), blind=Majority())
    comparison = compare(X, y, groups=groups)
    assert [row.failure for row in comparison.rows] == [None, None]
    assert sum(map(sum, comparison.rows[0].confusion)) == 30
    assert [score.n_test for score in comparison.folds] == [6] * 10
    assert [len(trained_on) for trained_on in seen] == [24] * 5
    assert "30 groups" in comparison.data.notes[0]


def test_of_groups_no_promise_over_draws_of_single_rows_is_shown(iris):
    X, y = iris
    asked = {"promise": "none", "methods": ["rejection", "minimax"], "baselines": []}
    own = {}
    for groups in (None, np.repeat(np.arange(30), 5)):
        rows = compare(X, y, groups=groups, **asked).rows
        own[groups is None] = {row.method: len(row.own) for row in rows}
    assert own[True]["rejection"] > own[False]["rejection"] == 0
    assert own[True]["minimax"] == own[False]["minimax"] > 0


def test_groups_of_another_length_are_refused(iris):
    with pytest.raises(ValueError, match="`groups` must hold one label for each"):
        compare(*iris, groups=[1, 2])


def test_one_class_is_refused(iris):
    with pytest.raises(ValueError, match="`y` has one class, '0'"):
        compare(iris[0][:50], iris[1][:50])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"methods": ["svm"]}, "`methods` must be names among .*got 'svm'"),
        ({"baselines": ["svm"]}, "`baselines` must be names among .*got 'svm'"),
        (
            {"methods": ["minimax", "minimax"]},
            "`methods` and `baselines` repeat a name",
        ),
        ({"methods": (), "baselines": ()}, "nothing to compare"),
        ({"cv": 1}, "`cv` must be an integer >= 2, got 1"),
        ({"n_repeats": 0}, "`n_repeats` must be an integer >= 1, got 0"),
        ({"n_jobs": 0}, "`n_jobs` must be an integer other than 0, got 0"),
        ({"sample": 1}, "`sample` must be an integer >= 2 or None, got 1"),
        ({"time_limit": 0}, "`time_limit` must be a number of seconds > 0"),
    ],
)
def test_bad_argument_is_named_with_its_value(iris, arguments, message):
    with pytest.raises(ValueError, match=message):
        compare(*iris, **arguments)


def test_missing_cells_are_filled_within_the_folds_with_a_note(iris):
    X = iris[0].copy()
    X[3:9, 1] = np.nan
    comparison = compare(X, iris[1], methods=("minimax",), baselines=("lda",))
    assert [row.failure for row in comparison.rows] == [None, None]
    assert (
        "6 missing cells filled (median of the training rows)"
        in (comparison.data.notes[0])
    )


def test_words_are_encoded_within_the_folds_with_a_note(iris):
    X, y = iris
    colour = np.array(["red", "green", "blue"])[(y + (X[:, 0] > 6)) % 3]
    table = pd.DataFrame({"a": X[:, 0], "colour": colour})
    table.loc[5, "colour"] = None
    comparison = compare(table, y, methods=("minimax",), baselines=("lda",))
    assert [row.failure for row in comparison.rows] == [None, None]
    assert all(row.error < 0.3 for row in comparison.rows)
    assert "1 text column encoded, 1 missing cell filled" in comparison.data.notes[0]


def test_infinite_cells_are_refused(iris):
    X = iris[0].copy()
    X[3, 1] = np.inf
    with pytest.raises(ValueError, match="column 'x1' of `X` has infinite values"):
        compare(X, iris[1])


def test_dictionary_is_strict_json(comparison):
    text = json.dumps(comparison.to_dict(), allow_nan=False)
    assert json.loads(text)["rows"][0]["method"] == comparison.rows[0].method


def test_without_timings_nothing_depends_on_the_clock(comparison):
    bare = comparison.without_timings()
    assert bare.settings.date is None
    assert {found.fit_seconds for found in bare.rows} == {None}
    assert {score.predict_seconds for score in bare.folds} == {None}


def test_false_alarms_are_counted_against_the_rejector_of_the_own_class(iris):
    X, y = iris
    comparison = compare(X, y, methods=("rejection",), baselines=())
    found = comparison.rows[0]
    curve = comparison.to_dict()["rows"][0]["false_alarms"]
    missed = sum(promise.violations for promise in found.own)
    assert curve["false_alarms"][curve["levels"].index(0.05)] == missed
    assert missed == pytest.approx(150 * (1 - found.sets.coverage))


def test_shift_of_length_zero_is_the_out_of_fold_error(comparison):
    for found in comparison.to_dict()["rows"]:
        assert found["shift"]["errors"][0] == pytest.approx(found["error"])


@pytest.mark.parametrize("n_features", [3, 60])
def test_quadratic_baseline_is_there_where_a_class_is_singular(iris, n_features):
    X = np.column_stack([iris[0], iris[0][:, [0] * n_features], np.ones(150)])
    with pytest.raises(np.linalg.LinAlgError):
        QuadraticDiscriminantAnalysis().fit(X, iris[1])
    comparison = compare(X, iris[1], methods=(), baselines=("qda",))
    assert comparison.rows[0].error < 0.1


def test_a_table_too_small_to_be_learned_from_says_so():
    rows = np.arange(8.0).reshape(4, 2)
    found = compare(rows, [0, 0, 1, 1], methods=["conformal"], baselines="lda")
    assert {row.failure.text for row in found.rows} == {
        "no class has 2 rows in a training part; add rows"
    }


def test_full_conformal_prediction_splits_by_itself_where_rows_are_grouped():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    X = rng.normal(size=(200, 2)) + 3.0 * y[:, None]
    found = prudent.compare(
        X, y, methods=["conformal"], baselines=(), groups=np.arange(200) // 2
    )
    (conformal,) = found.rows
    assert conformal.asked.decided > 0.9
    assert {item.guarantee.scope for item in conformal.asked.items} == {0, 1}


def test_columns_may_be_named_by_integers(iris):
    X, y = iris
    methods = {"methods": (), "baselines": ("lda",)}
    named = compare(pd.DataFrame(X), y, **methods)
    assert row(named, "lda").error == row(compare(X, y, **methods), "lda").error


def test_rows_pass_few_rooms_of_the_comparison():
    visits = Counter(comparison_rooms())
    assert len(visits) <= 10
    assert max(visits.values()) - 1 <= 8
    own = [room for room in visits if room.startswith(("evaluation", "comparison"))]
    assert 3 <= len(own) <= 6


def test_tables_of_other_words_have_other_fingerprints():
    y = np.arange(6) % 2
    prints = {
        fingerprint(labelled_rows(pd.DataFrame({"a": words, "b": np.arange(6.0)}), y))
        for words in (
            list("uvuvuv"),
            list("xyxyxy"),
            list("vuvuvu"),
            [*"uvuvu", None],
        )
    }
    assert len(prints) == 4


def test_words_reach_methods_by_name_and_are_parted_by_subgroups():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    X = pl.DataFrame(
        {
            "noise": rng.normal(size=300),
            "word": np.where(rng.random(300) < 0.9, y, 1 - y).astype(str),
            "gap": np.where(rng.random(300) < 0.1, np.nan, y + rng.normal(size=300)),
        }
    )
    found = prudent.compare(
        X,
        y,
        methods=(),
        baselines=("lda",),
        promise="coverage >= 80%",
        subgroups=lambda frame: (np.asarray(frame["noise"]) > 0)[:, None],
        best=False,
    )
    assert row(found, "lda").error < 0.2
    assert {item.guarantee.subgroup for item in row(found, "lda").asked.items} == {
        "rest",
        "subgroup 0",
    }


def few_of_b(seed):
    """60 groups of two rows, and 15 of ten rows, one of which is of class b: 2 %."""
    groups = np.r_[np.repeat(np.arange(60), 2), np.repeat(np.arange(60, 75), 10)]
    labels = np.where((groups >= 60) & (np.arange(270) % 10 == 0), "b", "a")
    X = np.random.default_rng(seed).normal(size=(270, 2))
    return {"X": X, "y": labels, "groups": groups, "methods": (), "baselines": ["lda"]}


def test_groups_that_are_needed_count_by_their_share_of_a_class():
    (row,) = prudent.compare(**few_of_b(0)).rows
    needs = row.asked.needs
    assert (needs.label, needs.unit) == ("b", "groups")
    assert needs.of_table == math.ceil(needs.rows / 0.02)


def test_a_class_of_which_no_row_is_tested_has_no_share():
    """One random row of each group is tested: here none of class b."""
    comparison = prudent.compare(**few_of_b(0))
    (row,) = comparison.rows
    assert sum(row.confusion[1]) == 0
    assert set(comparison.frontier.by_class["lda"][1]) == {None}
    text = json.dumps(comparison.to_dict(), allow_nan=False)
    assert "NaN" not in text
