"""The promise asked for: made by a wrapper on each fold, and measured, as by hand."""

import numpy as np
import pyarrow as pa
import pytest
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression

import prudent
from prudent.core.binomial import fewest_rows, high_probability_rank
from prudent.core.rows import hold_out
from prudent.estimator_tools.labelled_rows import labelled_rows
from prudent.evaluation import promising
from prudent.evaluation.evaluate import make_folds
from prudent.evaluation.promising import held_out_share, wrap
from prudent.exceptions import InfeasibleError
from prudent.rules.wish import parse_promise

DATA = load_breast_cancer()
X, Y = DATA.data, DATA.target_names[DATA.target]
CODES = np.searchsorted(["benign", "malignant"], Y)
PROMISES = (
    "coverage >= 90% in every class",
    "coverage >= 95%",
    "error <= 10%",
    "missed malignant <= 10%",
    "missed malignant <= 10% and benign <= 10%",
)
IMPOSSIBLE = "missed malignant <= 1%"
CONFIDENCE = 1 - 0.05 / 2  # of each of two methods


def lda():
    return LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")


@pytest.fixture(scope="module")
def compared():
    found = {}

    def of(promise):
        if promise not in found:
            found[promise] = prudent.compare(
                X, Y, promise=promise, methods=(), baselines=("majority", "lda")
            )
        return found[promise]

    return of


def row(comparison, name="lda"):
    (found,) = [row for row in comparison.rows if row.method == name]
    return found


def by_hand(wrapper, look):
    """What `look` finds on each fold, for a wrapper fitted to its training part."""
    found = []
    for fold in make_folds(CODES, 5, 1, random_state=0):
        fitted = wrapper().fit(X[fold.train], Y[fold.train])
        found.append(look(fitted, X[fold.test], Y[fold.test]))
    return found


def test_sets_are_those_of_the_conformal_wrapper(compared):
    def wrapper():
        return prudent.ConformalClassifier(
            lda(),
            method="split",
            condition="class",
            level=0.1,
            calibration_size=0.3,
            random_state=0,
        )

    def look(fitted, X, y):
        sets = fitted.predict_set(X)
        missed = ~sets[np.arange(len(y)), np.searchsorted(fitted.classes_, y)]
        ill = y == "malignant"
        return (sets.sum(axis=1) == 1).sum(), missed[ill].sum(), missed[~ill].sum()

    decided, ill, well = np.sum(by_hand(wrapper, look), axis=0)
    asked = row(compared(PROMISES[0])).asked
    assert asked.decided == pytest.approx(decided / len(Y))
    counts = {item.guarantee.scope: item.violations for item in asked.items}
    assert counts == {"malignant": ill, "benign": well}


def test_coverage_with_confidence_is_that_of_all_classes_and_methods_at_once():
    promise = [
        prudent.Guarantee(
            quantity="coverage", bound=0.8, sense=">=", scope=label, confidence=0.95
        )
        for label in ("benign", "malignant")
    ]
    found = prudent.compare(
        X, Y, promise=promise, methods=(), baselines=("majority", "lda")
    )
    assert found.settings.confidence == 0.95
    each = CONFIDENCE**0.5

    def ranks(fold_counts):
        return [high_probability_rank(n, 0.2, each) for n in fold_counts]

    decided = 0
    for fold in make_folds(CODES, 5, 1, random_state=0):
        fitted = prudent.ConformalClassifier(
            lda(), method="split", condition="class", random_state=0
        ).fit(X[fold.train], Y[fold.train])
        cut = np.array(ranks(fitted.class_count_)) / (fitted.class_count_ + 1)
        sets = fitted.p_values(X[fold.test]) > cut + 1e-9
        sets |= fitted.predict(X[fold.test])[:, None] == fitted.classes_
        decided += (sets.sum(axis=1) == 1).sum()
    asked = row(found).asked
    assert asked.decided == pytest.approx(decided / len(Y))
    for item in asked.items:
        assert item.guarantee.confidence == pytest.approx(CONFIDENCE)
        assert item.guarantee.average_over is None
    at = found.frontier.levels.index(found.frontier.asked)
    assert found.frontier.decided["lda"][at] == pytest.approx(asked.decided)
    in_folds = found.frontier.in_folds["lda"][at]
    assert in_folds == asked.folds_decided / asked.n_folds


def test_refusals_are_those_of_the_selective_wrapper(compared):
    def wrapper():
        return prudent.SelectiveClassifier(
            lda(), error_rate=0.1, confidence=CONFIDENCE, random_state=0
        )

    def look(fitted, X, y):
        answered = fitted.answers(X)
        return answered.sum(), (answered & (fitted.predict(X) != y)).sum()

    answered, wrong = np.sum(by_hand(wrapper, look), axis=0)
    asked = row(compared(PROMISES[2])).asked
    (item,) = asked.items
    assert asked.decided == pytest.approx(answered / len(Y))
    assert (item.violations, item.n) == (wrong, answered)
    assert asked.wrong_when_decided == pytest.approx(wrong / answered)


def test_errors_of_classes_are_those_of_the_neyman_pearson_wrapper(compared):
    def wrapper():
        return prudent.NeymanPearsonClassifier(
            lda(),
            max_class_error={"malignant": 0.1},
            confidence=CONFIDENCE,
            random_state=0,
        )

    def look(fitted, X, y):
        wrong = fitted.predict(X) != y
        return wrong[y == "malignant"].sum(), wrong[y == "benign"].sum()

    missed, others = np.sum(by_hand(wrapper, look), axis=0)
    asked = row(compared(PROMISES[3])).asked
    (item,) = asked.items
    assert (item.guarantee.scope, item.violations) == ("malignant", missed)
    assert item.guarantee.confidence == pytest.approx(CONFIDENCE)
    assert asked.others_error == pytest.approx(others / (Y == "benign").sum())


@pytest.mark.parametrize("promise", PROMISES)
def test_the_frontier_passes_through_the_promise_asked_for(compared, promise):
    comparison = compared(promise)
    found = comparison.frontier
    at = found.levels.index(found.asked)
    for one in comparison.rows:
        useful = one.asked.decided
        if one.asked.others_error is not None:
            useful = 1 - one.asked.others_error
        assert found.decided[one.method][at] == pytest.approx(useful)
        assert found.wrong[one.method][at] == pytest.approx(
            one.asked.wrong_when_decided
        )


@pytest.mark.filterwarnings("ignore:.*no threshold certifies")
def test_classes_and_wrong_answers_at_every_level_are_those_of_fits_of_their_own(
    compared,
):
    """Each level is fitted anew by hand, with the same folds and coins."""
    found = compared(PROMISES[2]).frontier
    names = np.unique(Y)
    for place, level in enumerate(found.levels):

        def wrapper(level=level):
            return prudent.SelectiveClassifier(
                lda(), error_rate=level, confidence=CONFIDENCE, random_state=0
            )

        def look(fitted, X, y):
            answered = fitted.answers(X)
            by_class = [answered[y == name].sum() for name in names]
            return *by_class, (answered & (fitted.predict(X) != y)).sum()

        *by_class, wrong = np.sum(by_hand(wrapper, look), axis=0)
        for name, count, shares in zip(
            names, by_class, found.by_class["lda"], strict=True
        ):
            assert shares[place] == pytest.approx(count / np.count_nonzero(name == Y))
        if sum(by_class):
            assert found.wrong["lda"][place] == pytest.approx(wrong / sum(by_class))
        else:
            assert found.wrong["lda"][place] is None


def test_classes_under_limits_are_those_answered_rightly(compared):
    found = compared(PROMISES[3]).frontier
    for place, level in enumerate(found.levels):

        def wrapper(level=level):
            return prudent.NeymanPearsonClassifier(
                lda(),
                max_class_error={"malignant": level},
                confidence=CONFIDENCE,
                random_state=0,
            )

        def look(fitted, X, y):
            right = fitted.predict(X) == y
            return [right[y == name].sum() for name in ("benign", "malignant")]

        try:
            right = np.sum(by_hand(wrapper, look), axis=0)
        except InfeasibleError:
            right = np.zeros(2)
        for name, count, shares in zip(
            ("benign", "malignant"), right, found.by_class["lda"], strict=True
        ):
            assert shares[place] == pytest.approx(count / np.count_nonzero(name == Y))
        assert found.by_class["lda"][0][place] == found.decided["lda"][place]


@pytest.mark.parametrize("promise", [PROMISES[0], PROMISES[3]])
def test_less_is_decided_the_more_is_promised(compared, promise):
    found = compared(promise).frontier
    decided = np.array(found.decided["lda"])
    steps = np.diff(decided if found.kind == "missed" else -decided)
    assert (steps >= 0).all()


@pytest.mark.parametrize(("n_rows", "is_made"), [(220, True), (150, False)])
def test_what_only_folds_have_too_few_rows_for_is_made_without_them(n_rows, is_made):
    """A fit trains on all rows, of which each fold of the table lacks a fifth."""
    X = np.arange(n_rows)[:, None] % 2 + np.linspace(0, 0.1, n_rows)[:, None]
    y = np.arange(n_rows) % 2
    with pytest.raises(InfeasibleError) as caught:
        prudent.compare(
            X, y, promise="error <= 5%", methods=(), baselines=("logistic", "lda")
        )
    text = str(caught.value)
    where = "the folds of this table" if is_made else "this table"
    assert f"no method can promise 'error <= 5%' on {where}: that needs" in text
    command = "prudent fit --method best --promise 'error <= 5%'"
    assert (command in text) == is_made
    if is_made:
        best = prudent.BestClassifier(
            ["logistic", "lda"], promise="error <= 5%", random_state=0
        )
        assert best.fit(X, y).guarantees_[0].bound == 0.05


def test_what_no_row_can_carry_is_said_before_anything_is_fitted(monkeypatch):
    def fit(*_):
        raise AssertionError("nothing should be fitted")

    monkeypatch.setattr(LinearDiscriminantAnalysis, "fit", fit)
    needed = fewest_rows(0.01, CONFIDENCE)
    with pytest.raises(InfeasibleError) as caught:
        prudent.compare(
            X, Y, promise=IMPOSSIBLE, methods=(), baselines=("majority", "lda")
        )
    text = str(caught.value)
    assert f"rows of 'malignant' ({needed} held out), in about" in text
    assert "prudent fit, which trains on all of them, needs" in text
    possible = text.split("ask for '")[1].split("'")[0]
    monkeypatch.undo()
    found = prudent.compare(X, Y, promise=possible, methods=(), baselines=("lda",))
    assert row(found).asked.items


def test_so_many_rows_are_said_to_be_lacking_as_the_most_frugal_method_needs(iris):
    X, y = iris
    each = [np.flatnonzero(y == label) for label in np.unique(y)]

    def of_each_class(n_rows):
        rows = np.concatenate([own[:n_rows] for own in each])
        options = {"methods": ("conformal",), "baselines": ("lda",), "best": False}
        return prudent.compare(X[rows], y[rows], **options)

    with pytest.raises(InfeasibleError) as caught:
        of_each_class(10)
    # Full conformal prediction ranks among all rows that it learns from.
    assert "that needs 12 rows of '0' (9 to learn from)" in str(caught.value)
    assert "which trains on all of them, needs 9." in str(caught.value)
    found = of_each_class(12)
    assert row(found, "conformal").asked.needs is None
    assert row(found).asked.needs is not None


def test_what_is_too_much_for_many_methods_says_so_to_few():
    with pytest.raises(InfeasibleError, match="or compare fewer methods"):
        prudent.compare(X, Y, promise="missed malignant <= 4%", best=False)


def test_the_class_that_a_promise_is_about_is_blamed_not_the_rarest():
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b", "rare"], [300, 60, 3])
    table = rng.normal(size=(363, 2)) + 3 * np.eye(3, 2)[np.unique(y, False, True)[1]]
    options = {"methods": (), "baselines": ("lda",)}
    with pytest.raises(InfeasibleError, match="rows of 'b'"):
        prudent.compare(table, y, promise="missed b <= 5%", **options)
    found = prudent.compare(table, y, promise="missed a <= 10%", **options)
    assert row(found).asked.needs is None
    assert row(found).asked.items


@pytest.mark.parametrize("promise", ["error <= 10%", "coverage >= 90% in every class"])
def test_rows_held_out_are_known_before_the_fit(promise):
    rows = labelled_rows(X, Y)
    folds = make_folds(rows.codes, 5, 1, random_state=0)
    wish = parse_promise(promise, rows.classes.tolist())
    for fold in folds:
        wrapper = wrap(lda(), wish, n_classes=2, n_methods=1, random_state=0)
        fitted = wrapper.fit(X[fold.train], Y[fold.train])
        _, held_out = hold_out(
            len(fold.train), held_out_share(wish), np.random.RandomState(0)
        )
        if wish.kind == "error":
            assert fitted.n_calibration_ == len(held_out)
        else:
            counts = np.bincount(rows.codes[fold.train][held_out])
            assert fitted.class_count_.tolist() == counts.tolist()


def test_rare_positives_are_not_answered_by_a_method_that_is_often_wrong():
    """Of 2.3 % positives, one method decides more rows and a tenth of them wrongly."""
    rng = np.random.default_rng(3)
    ill = rng.random(3000) < 0.023
    shift = np.array([1.2, 1.0, 0.8, 0.6, 0.4, 0.0, 0.0, 0.0])
    table = rng.normal(size=(3000, 8)) + np.where(ill[:, None], shift, 0.0)
    table[:, 5:] = np.exp(table[:, 5:])
    found = prudent.compare(
        table, ill.astype(int), methods=["minimax"], baselines=["lda"]
    )
    lda, minimax = row(found), row(found, "minimax")
    assert minimax.asked.decided > lda.asked.decided
    assert minimax.asked.wrong_when_decided > 5 * lda.asked.wrong_when_decided
    assert [one.method for one in found.rows] == ["lda", "minimax"]
    assert found.verdict()[0].startswith("Use lda: it decides 69 % of the rows, 0.7 %")


def test_rare_classes_are_named_with_the_option_that_leaves_them_out():
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b", "c"], [100, 100, 8])
    rows = rng.normal(size=(208, 2)) + 4 * np.eye(3, 2)[np.searchsorted(list("abc"), y)]
    comparison = prudent.compare(
        rows, y, methods=["conformal"], baselines=["lda", "qda"]
    )
    needs = min(one.asked.needs.rows for one in comparison.rows if one.asked.needs)
    assert any(
        f"--min-class-rows {needs}" in sentence for sentence in comparison.verdict()
    )


def test_json_has_the_fixed_keys(compared):
    found = compared(PROMISES[0]).to_dict()
    assert {"promise", "confidence"} <= set(found["settings"])
    assert {"levels", "decided"} <= set(found["frontier"])
    one = next(one for one in found["rows"] if one["method"] == "lda")
    assert {"method", "error", "decided", "wrong_when_decided", "own"} <= set(one)
    assert set(one["worst_class"]) == {"label", "error"}
    assert one["failure"] is None
    assert {"text", "kept", "needs_rows", "items"} <= set(one["asked"])
    assert one["asked"]["text"] == PROMISES[0]
    assert {
        *("scope", "quantity", "bound", "sense", "confidence", "average_over"),
        *("subgroup", "unit"),
        *("measured", "n", "kept", "p_broken", "p_kept", "interval"),
    } <= set(one["asked"]["items"][0])


@pytest.mark.parametrize("promise", PROMISES)
def test_everything_is_made_of_the_long_frame(compared, promise):
    comparison = compared(promise)
    asked = row(comparison).asked
    items = [
        item
        for item in comparison.measured.to_pylist()
        if item["method"] == "lda" and item["asked"]
    ]
    for check in asked.items:
        about = check.guarantee
        found = [
            item
            for item in items
            if (item["quantity"], item["scope"]) == (about.quantity, about.scope)
            and item["promised"] is not None
        ]
        *folds, whole = found
        assert [item["fold"] for item in found] == [1, 2, 3, 4, 5, None]
        counts, rows = ([item[name] for item in folds] for name in ("count", "n"))
        assert sum(counts) == whole["count"] == check.violations
        assert sum(rows) == whole["n"] == check.n
        assert whole["promised"] == pytest.approx(
            np.average([item["promised"] for item in folds], weights=rows)
        )
        assert whole["verdict"] == check.check.verdict
        assert (whole["p_broken"], whole["p_kept"]) == (check.p_broken, check.p_kept)
    singles = [i for i in items if i["quantity"] == "set size" and i["at"] == 1]
    assert sum(i["count"] for i in singles) / len(Y) == pytest.approx(asked.decided)
    assert "measured" not in comparison.to_dict()


def test_frame_holds_numbers(compared):
    frame = compared(PROMISES[0]).to_frame()
    texts = {"method", "worst_class", "worst_subgroup", "kept"}
    for field in frame.schema:
        assert pa.types.is_string(field.type) == (field.name in texts)
    at = frame.column("method").to_pylist().index("lda")
    assert frame.column("decided").to_pylist()[at] == row(compared(PROMISES[0])).decided


def test_full_conformal_prediction_is_left_where_its_cost_fits(monkeypatch):
    monkeypatch.setattr(promising, "MOST_PAIRS", 455**2 * 2)  # rows of a training part
    options = {"promise": PROMISES[0], "methods": ["conformal"], "baselines": ()}
    full = row(prudent.compare(X, Y, **options), "conformal")
    assert full.parameters["method"] == "'full'"
    monkeypatch.setattr(promising, "MOST_PAIRS", 455**2 * 2 - 1)
    found = prudent.compare(X, Y, **options)
    assert row(found, "conformal").parameters["method"] == "'split'"
    assert any(s.startswith("conformal: by held-out rows") for s in found.verdict())


def test_full_conformal_prediction_stays_where_it_is_asked_for(monkeypatch):
    monkeypatch.setattr(promising, "MOST_PAIRS", 1)
    method = prudent.ConformalClassifier(method="full")
    found = prudent.compare(X, Y, methods={"mine": method}, baselines=())
    assert row(found, "mine").parameters["method"] == "'full'"


class Particular(LogisticRegression):
    """Wants more rows than a promise leaves it."""

    def fit(self, X, y):
        if len(X) < 45:
            raise ValueError("my own words about these rows")
        return super().fit(X, y)


def test_an_exception_of_the_users_own_is_shown_as_it_is(iris):
    """Not told as rows that lack for the promise, though some classes are small."""
    X, y = iris
    few = np.r_[0:10, 50:60, 100:140]
    comparison = prudent.compare(
        X[few],
        y[few],
        promise="error <= 40%",
        methods={"own": Particular(max_iter=500)},
        baselines=("logistic",),
    )
    (row,) = (row for row in comparison.rows if row.method == "own")
    assert row.failure.text == "my own words about these rows"


def test_what_decides_most_rows_does_not_lead_where_many_are_wrong():
    """Of digits 2.3 % are eights: rejection decides most rows, many of them wrongly."""
    images, digits = load_digits(return_X_y=True)
    few = np.random.default_rng(0).permutation(np.flatnonzero(digits == 8))[:38]
    rows = np.concatenate([np.flatnonzero(digits != 8), few])
    labels = np.where(digits[rows] == 8, "eight", "other")
    comparison = prudent.compare(
        *(images[rows], labels),
        methods=["rejection"],
        baselines=["logistic"],
        best=False,
    )
    first, last = comparison.rows
    assert (first.method, last.method) == ("logistic", "rejection")
    assert last.asked.decided > first.asked.decided > 0.6
    assert last.asked.wrong_when_decided > 0.08 > 8 * first.asked.wrong_when_decided
    assert comparison.verdict()[0].startswith("Use logistic: ")
