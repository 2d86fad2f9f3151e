"""certify: which claims, their limits, and what is refused."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import IsolationForest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import prudent
from prudent import (
    BinnedCalibrationClassifier,
    ConformalClassifier,
    NeymanPearsonClassifier,
    SelectiveClassifier,
    certify,
)
from prudent.certification import mean_upper_limit
from prudent.core.assumptions import Assumption
from prudent.core.binomial import upper_limit

X, Y = load_breast_cancer(return_X_y=True)
NEW, NEW_Y = X[300:], Y[300:]


@pytest.fixture(scope="module")
def lda():
    return LinearDiscriminantAnalysis().fit(X[:300], Y[:300])


@pytest.fixture(scope="module")
def selective():
    return SelectiveClassifier(
        LinearDiscriminantAnalysis(), error_rate=0.1, random_state=0
    ).fit(X[:300], Y[:300])


def test_claims_of_a_classifier(lda):
    found = certify(lda, NEW, NEW_Y)
    assert [(g.quantity, g.scope) for g in found] == [
        ("error rate", None),
        ("class error rate", 0),
        ("class error rate", 1),
    ]
    wrong = lda.predict(NEW) != NEW_Y
    for g, rows in zip(found, (NEW_Y >= 0, NEW_Y == 0, NEW_Y == 1), strict=True):
        assert g.bound == upper_limit(
            int(wrong[rows].sum()), int(rows.sum()), level=(1 - 0.95) / 3
        )
        assert dict(g.evidence) == {
            "calibration rows": rows.sum(),
            "wrong": wrong[rows].sum(),
            "claims": 3,
            **({} if g.scope is None else {"classes": 2}),
        }
        assert g.confidence == 0.95
        assert g.assumptions == (Assumption.INDEPENDENT, Assumption.UNSEEN)
        assert type(g.scope) is not np.int64


def test_each_claim_by_itself(lda):
    found = certify(lda, NEW, NEW_Y, simultaneous=False, confidence=0.9)
    wrong = int((lda.predict(NEW) != NEW_Y).sum())
    assert found[0].bound == upper_limit(wrong, len(NEW), level=1 - 0.9)
    assert found[0].evidence["claims"] == 1


def test_claims_of_a_selective_classifier(selective):
    found = certify(selective, NEW, NEW_Y, claims="all", costs=[[0, 5, 1], [1, 0, 1]])
    assert [g.quantity for g in found] == [
        "selective error rate",
        "error rate",
        "class error rate",
        "class error rate",
        "coverage",
        "expected cost",
    ]
    answered = selective.answers(NEW)
    wrong = selective.predict(NEW) != NEW_Y
    first = found[0]
    assert first.evidence["answered"] == answered.sum()
    assert first.bound == upper_limit(
        int(wrong[answered].sum()), int(answered.sum()), level=(1 - 0.95) / 6
    )
    missed = ~selective.predict_set(NEW)[np.arange(len(NEW)), NEW_Y]
    assert found[4].sense == ">="
    assert found[4].bound == 1 - upper_limit(
        int(missed.sum()), len(NEW), level=(1 - 0.95) / 6
    )
    costs = np.array([[0, 5, 1], [1, 0, 1]])
    paid = costs[NEW_Y, np.where(answered, selective.predict(NEW), 2)]
    assert found[5].bound == 5 * mean_upper_limit(paid / 5, level=(1 - 0.95) / 6)


def test_reject_label_does_not_count_as_an_error(selective):
    marked = SelectiveClassifier(
        LinearDiscriminantAnalysis(), error_rate=0.1, reject_label=-1, random_state=0
    ).fit(X[:300], Y[:300])
    for claims in ("promised", "all"):
        found = certify(marked, NEW, NEW_Y, claims=claims)
        assert found == certify(selective, NEW, NEW_Y, claims=claims)


@pytest.mark.parametrize("reject_label", [None, -1])
def test_refused_rows_are_no_answers_behind_a_pipeline_either(reject_label):
    last = SelectiveClassifier(
        LinearDiscriminantAnalysis(),
        error_rate=0.1,
        reject_label=reject_label,
        random_state=0,
    )
    model = make_pipeline(StandardScaler(), last).fit(X[:300], Y[:300])
    (found,) = certify(model, NEW, NEW_Y)
    answered = model[-1].answers(model[0].transform(NEW))
    wrong = (model.predict(NEW) != NEW_Y)[answered]
    assert found.quantity == "selective error rate"
    assert found.evidence["answered"] == answered.sum() < len(NEW)
    assert found.evidence["wrong"] == wrong.sum()


def test_what_is_promised_has_the_whole_level(selective):
    (found,) = certify(selective, NEW, NEW_Y)
    answered = selective.answers(NEW)
    wrong = int((selective.predict(NEW) != NEW_Y)[answered].sum())
    assert found.quantity == "selective error rate"
    assert found.evidence["claims"] == 1
    assert found.bound == upper_limit(wrong, int(answered.sum()), level=1 - 0.95)
    everything = certify(selective, NEW, NEW_Y, claims="all")
    assert everything[0].quantity == "selective error rate"
    assert everything[0].bound > found.bound
    with pytest.raises(ValueError, match="`claims` must be 'promised' or 'all'"):
        certify(selective, NEW, NEW_Y, claims="some")


def test_promised_coverage_of_classes_is_certified_by_class():
    sets = ConformalClassifier(
        LinearDiscriminantAnalysis(), method="split", condition="class", random_state=0
    ).fit(X[:300], Y[:300])
    found = certify(sets, NEW, NEW_Y)
    assert [(g.quantity, g.scope) for g in found] == [("coverage", 0), ("coverage", 1)]
    missed = ~sets.predict_set(NEW)[np.arange(len(NEW)), NEW_Y]
    wrong, n = int(missed[NEW_Y == 0].sum()), int((NEW_Y == 0).sum())
    assert found[0].bound == 1 - upper_limit(wrong, n, level=(1 - 0.95) / 2)
    limited = NeymanPearsonClassifier(
        LinearDiscriminantAnalysis(), max_class_error={0: 0.1}, random_state=0
    ).fit(X[:300], Y[:300])
    with pytest.raises(ValueError, match="no row is one that the promises"):
        certify(limited, NEW[NEW_Y == 1], NEW_Y[NEW_Y == 1])


def test_groups_count_one_random_row_each(lda):
    groups = np.arange(len(NEW)) // 3
    found = certify(lda, NEW, NEW_Y, groups=groups)
    assert found[0].evidence["calibration rows"] == len(np.unique(groups))
    assert {g.unit for g in found} == {"group"}
    assert {g.assumptions for g in found} == {(Assumption.GROUPS, Assumption.UNSEEN)}
    assert "a future row is a random row of a new group" in str(found[0])
    assert certify(lda, NEW, NEW_Y, groups=groups) == found


def test_promises_about_groups_need_the_groups():
    groups = np.arange(300) // 3
    model = SelectiveClassifier(
        LinearDiscriminantAnalysis(), error_rate=0.3, random_state=0
    ).fit(X[:300], Y[:300], groups=groups)
    message = "about a random row of a new group: give `groups`, the group of each row"
    with pytest.raises(ValueError, match=message):
        certify(model, NEW, NEW_Y)
    (found,) = certify(model, NEW, NEW_Y, groups=np.arange(len(NEW)) // 2)
    assert found.unit == "group"


@pytest.mark.parametrize("classes", [["benign", "malignant"], ["malignant", "benign"]])
@pytest.mark.parametrize("gap", [None, np.nan])
def test_costs_of_no_answer_are_asked_for(classes, gap):
    """An answer without a column may not cost what the first class does."""
    y = np.repeat(["benign", "malignant"], [180, 20])
    answers = y.astype(object)
    answers[:110] = gap
    costs = 1 - np.eye(2)
    with pytest.raises(ValueError, match=r"no column for no answer \(110 rows"):
        certify(None, answers, y, costs=costs, classes=classes)
    answers[110] = "refer"
    with pytest.raises(ValueError, match="a last column with the cost of that"):
        certify(None, answers, y, costs=np.c_[costs, [1, 1]], classes=classes)
    answers[110] = gap
    promises = certify(None, answers, y, costs=np.c_[costs, [1, 1]], classes=classes)
    bounds = {p.quantity: p.bound for p in promises if p.scope is None}
    assert bounds["expected cost"] == pytest.approx(bounds["error rate"])


def test_costs_of_two_values_have_the_exact_limit(lda):
    wrong = int((lda.predict(NEW) != NEW_Y).sum())
    cost = certify(lda, NEW, NEW_Y, costs=[[-1, 3], [3, -1]])[-1]
    assert cost.bound == -1 + 4 * upper_limit(wrong, len(NEW), level=(1 - 0.95) / 4)
    # Two values met among three possible ones prove less.
    other = certify(lda, NEW, NEW_Y, costs=[[-1, 3], [2.9, -1]])[-1]
    assert other.source != cost.source
    flat = certify(lda, NEW, NEW_Y, costs=[[2, 2], [2, 2]])[-1]
    assert flat.bound == 2


def test_claims_of_a_detector():
    detector = IsolationForest(random_state=0).fit(X[Y == 1])
    labels = np.where(Y == 1, 1, -1)
    found = certify(detector, X, labels)
    assert [g.quantity for g in found] == ["false alarm rate", "miss rate"]
    alarms = int((detector.predict(X[Y == 1]) == -1).sum())
    assert found[0].bound == upper_limit(alarms, (Y == 1).sum(), level=(1 - 0.95) / 2)
    assert len(certify(detector, X[Y == 1], labels[Y == 1])) == 1


def test_a_class_without_rows_has_no_claim(lda):
    found = certify(lda, NEW[NEW_Y == 1], NEW_Y[NEW_Y == 1])
    assert [g.scope for g in found] == [None, 1]


def test_sets_behind_a_pipeline_and_a_search():
    pipeline = make_pipeline(StandardScaler(), prudent.MinimaxProbabilityClassifier())
    rows, labels = X, Y
    pipeline.fit(rows[::2], labels[::2])
    search = GridSearchCV(
        pipeline, {"minimaxprobabilityclassifier__confidence": [0.9]}, cv=2
    ).fit(rows[::2], labels[::2])
    for model in (pipeline, search, FrozenEstimator(pipeline[-1])):
        given = rows[1::2]
        if isinstance(model, FrozenEstimator):
            given = pipeline[0].transform(given)
        promised = certify(model, given, labels[1::2])
        assert [g.scope for g in promised] == [0, 1]
        found = certify(model, given, labels[1::2], claims="all")
        assert found[-1].quantity == "coverage"


def test_labels_and_tables_of_any_kind():
    pl = pytest.importorskip("polars")
    words = np.array(["malignant", "benign"])[Y]
    names = [f"x{j}" for j in range(X.shape[1])]
    frame = pl.DataFrame(X, schema=names)
    model = LinearDiscriminantAnalysis().fit(frame[:300], words[:300])
    found = certify(model, frame[300:], pl.Series(words[300:]))
    assert [g.scope for g in found] == [None, "benign", "malignant"]


def test_classes_without_rows_take_their_part_of_the_level(lda):
    """Which classes have rows is chance, and the error rate depends on it."""
    alone = NEW_Y == 0
    found = certify(lda, NEW[alone], NEW_Y[alone])
    assert [g.scope for g in found] == [None, 0]
    assert {g.evidence["claims"] for g in found} == {3}
    n, wrong = alone.sum(), int(found[0].evidence["wrong"])
    assert found[0].bound == upper_limit(wrong, n, level=0.05 / 3)


def test_all_rows_right_or_wrong(lda):
    right = certify(lda, NEW[:5], lda.predict(NEW[:5]))
    assert right[0].bound == upper_limit(0, 5, level=(1 - 0.95) / 3)
    wrong = certify(lda, NEW[:5], 1 - lda.predict(NEW[:5]))
    assert wrong[0].bound == 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            (NEW[:0], NEW_Y[:0]),
            "certify: `X` holds 0 rows; give at least 1 row that the model has not "
            "seen.",
        ),
        (
            (NEW[:2], [0, 9]),
            "certify: `y` holds the label 9, which the model does not know; its "
            "classes are [0, 1].",
        ),
    ],
)
def test_bad_rows(lda, arguments, message):
    with pytest.raises(ValueError) as error:
        certify(lda, *arguments)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        (
            np.ones((2, 3)),
            "`costs` must be finite of shape (n_classes, n_classes) = (2, 2), got "
            "(2, 3).",
        ),
        (
            [[0, np.inf], [1, 0]],
            "`costs` must be finite of shape (n_classes, n_classes) = (2, 2), got inf.",
        ),
    ],
)
def test_bad_costs(lda, costs, message):
    with pytest.raises(ValueError) as error:
        certify(lda, NEW, NEW_Y, costs=costs)
    assert str(error.value) == message


def test_bad_costs_of_a_selective_model(selective):
    with pytest.raises(ValueError, match=r"\(2, 2\) or, with no answer, \(2, 3\), got"):
        certify(selective, NEW, NEW_Y, costs=np.ones((2, 4)))


def test_bad_confidence(lda):
    with pytest.raises(ValueError, match=r"`confidence` must lie in \(0, 1\), got 1"):
        certify(lda, NEW, NEW_Y, confidence=1)


def test_a_detector_needs_its_labels():
    detector = IsolationForest(n_estimators=5, random_state=0).fit(X)
    with pytest.raises(ValueError) as error:
        certify(detector, NEW, NEW_Y)
    assert str(error.value) == (
        "certify: a detector needs labels 1 (normal) and -1 (anomaly), got [0, 1]."
    )
    with pytest.raises(ValueError, match="`costs` are for classifiers"):
        certify(detector, NEW, np.ones(len(NEW)), costs=[[0, 1], [1, 0]])


def test_a_regressor_is_refused():
    model = LinearRegression().fit(X, Y)
    with pytest.raises(TypeError, match="LinearRegression is neither a classifier"):
        certify(model, NEW, NEW_Y)


class TestShares:
    """What a model promises of shares and probabilities is certified with the rest."""

    def test_answered_share(self):
        model = SelectiveClassifier(
            LinearDiscriminantAnalysis(),
            error_rate=0.2,
            answered_share=0.3,
            random_state=0,
        ).fit(X[:300], Y[:300])
        error, share = certify(model, X[300:], Y[300:])
        answered, n = int(model.answers(X[300:]).sum()), 269
        assert (error.quantity, share.quantity) == (
            "selective error rate",
            "answered share",
        )
        assert share.sense == ">="
        assert share.bound == 1 - upper_limit(n - answered, n, level=0.025)
        assert share.evidence["answered"] == answered
        assert "wrong" not in share.evidence

    def test_flagged_share(self):
        model = NeymanPearsonClassifier(
            LinearDiscriminantAnalysis(),
            max_class_error={0: 0.1},
            flagged_share=0.6,
            random_state=0,
        ).fit(X[:400], Y[:400])
        _, share = certify(model, X[400:], Y[400:])
        flagged = int((model.predict(X[400:]) == 0).sum())
        assert (share.quantity, share.scope, share.sense) == ("flagged share", 0, "<=")
        assert share.bound == upper_limit(flagged, 169, level=0.025)

    def test_probabilities_of_cells(self):
        model = BinnedCalibrationClassifier(
            LinearDiscriminantAnalysis(), n_bins=3, random_state=0
        ).fit(X[:300], Y[:300])
        proved = certify(model, X[300:], Y[300:])
        promised = model.guarantees_
        assert [(g.subgroup, g.sense) for g in proved] == [
            (g.subgroup, g.sense) for g in promised
        ]
        for claim in proved:
            about = model.is_about(claim, X[300:])
            positive = int(Y[300:][about].sum())
            n, level = int(about.sum()), 0.05 / len(proved)
            if claim.sense == "<=":
                assert claim.bound == upper_limit(positive, n, level=level)
            else:
                assert claim.bound == 1 - upper_limit(n - positive, n, level=level)


def test_a_name_in_the_place_of_groups_is_refused_with_what_to_give(lda):
    with pytest.raises(ValueError, match=r"got the text 'id': give .* X\['id'\]"):
        certify(lda, NEW, NEW_Y, groups="id")
