"""The page of what is new names a test behind each sentence, and facts that are true.

What is said of other libraries is held to those that are installed
(``pip install 'prudent[peers]'`` and the ones that the page names).
"""

import inspect
import re
from pathlib import Path

import numpy as np
import pytest
import skops.card
import skops.io
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.model_selection import (
    GridSearchCV,
    TimeSeriesSplit,
    TunedThresholdClassifierCV,
)

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "what_is_new.rst").read_text("utf-8")
TEST = re.compile(r"``(tests/[\w/]+\.py)::(\w+)``")


def sentences():
    """The items of the lists, each in one line."""
    body = PAGE.split("\n\n")
    items = [part for part in body if part.startswith("- ")]
    return [
        " ".join(item.split())
        for part in items
        for item in re.split(r"^- ", part, flags=re.MULTILINE)[1:]
    ]


def public(thing):
    return {name for name in dir(thing) if not name.startswith("_")}


def test_each_sentence_has_a_test_or_a_page_behind_it():
    assert len(sentences()) >= 30
    for sentence in sentences():
        assert sentence.endswith(")"), sentence
        behind = sentence.rpartition(" (")[2]
        assert TEST.match(behind) or "<https://" in sentence, sentence


def test_every_test_that_is_named_exists():
    named = TEST.findall(PAGE)
    assert len(named) >= 30
    for file, name in named:
        assert f"def {name}(" in (ROOT / file).read_text("utf-8"), f"{file}::{name}"


def test_every_part_names_the_nearest_library():
    parts = re.split(r"^-{5,}$", PAGE, flags=re.MULTILINE)[1:]
    assert len(parts) >= 12
    assert all("- Nearest: " in part for part in parts)


# ---- what is said of others ----------------------------------------------------------


def test_mapie_tests_a_list_of_thresholds():
    risk_control = pytest.importorskip("mapie.risk_control")
    for name in ("BinaryClassificationController", "MultiClassificationLTTController"):
        given = inspect.signature(getattr(risk_control, name)).parameters
        assert len(given["list_predict_params"].default) == 100
    shared = inspect.signature(risk_control.control_fwer).parameters["fwer_method"]
    assert shared.default == "bonferroni_holm"


def test_mapie_has_split_and_cross():
    classification = pytest.importorskip("mapie.classification")
    found = {n for n in public(classification) if n.endswith("ConformalClassifier")}
    assert found == {"SplitConformalClassifier", "CrossConformalClassifier"}


def test_mapie_covers_parts_that_overlap():
    module = pytest.importorskip("mapie.conditional_conformal_prediction")
    conditional = module.ConditionalSplitConformalClassifier
    given = inspect.signature(conditional).parameters
    assert {"feature_map", "confidence_level"} <= set(given)
    assert {"conformalize", "predict", "predict_set"} <= public(conditional)
    assert public(conditional) & {"predict_p", "p_values", "answers", "alarms"} == set()


def test_crepes_calibrates_and_has_disjoint_bins():
    crepes = pytest.importorskip("crepes")
    calibrate = inspect.signature(crepes.WrapClassifier.calibrate).parameters
    assert {"X", "y", "oob"} <= set(calibrate)
    assert "Mondrian categories" in crepes.ConformalClassifier.fit.__doc__
    classifier = crepes.ConformalClassifier()
    with pytest.raises((ValueError, IndexError, TypeError)):  # a row in two bins
        classifier.fit(np.arange(4.0), bins=np.array([[0, 1]] * 4)).predict_p(
            np.arange(8.0).reshape(4, 2), bins=np.array([[0, 1]] * 4)
        )


def test_fairlearn_measures():
    metrics = pytest.importorskip("fairlearn.metrics")
    given = inspect.signature(metrics.MetricFrame).parameters
    assert {"n_boot", "ci_quantiles", "sensitive_features"} <= set(given)
    assert "predict" not in public(metrics.MetricFrame)


def test_time_series_split_cuts_by_position():
    days = np.repeat(np.arange(6), 5)
    folds = TimeSeriesSplit(3).split(days[:, None])
    assert any(set(days[train]) & set(days[test]) for train, test in folds)


def test_calibrated_objects_stay_in_python():
    classification = pytest.importorskip("mapie.classification")
    crepes = pytest.importorskip("crepes")
    for kind in (classification.SplitConformalClassifier, crepes.WrapClassifier):
        writers = {"to_json", "to_dict", "export", "save", "dump", "write"}
        assert public(kind) & writers == set()


def test_nonconform_calibrates_by_resampling():
    nonconform = pytest.importorskip("nonconform")
    resampling = pytest.importorskip("nonconform.resampling")
    strategies = {
        name
        for name, value in vars(resampling).items()
        if inspect.isclass(value)
        and issubclass(value, resampling.BaseStrategy)
        and value is not resampling.BaseStrategy
    }
    assert strategies == {
        *("Split", "DerandomizedSplits", "CrossValidation", "JackknifeBootstrap")
    }
    assert "guarantee" in nonconform.JackknifeBootstrap.__doc__


def test_nonconform_estimates_weights():
    nonconform = pytest.importorskip("nonconform")
    given = inspect.signature(nonconform.ConformalDetector).parameters
    assert "weight_estimator" in given
    said = " ".join(nonconform.ConformalDetector.__doc__.split())
    assert "density-ratio weights from calibration and test covariates" in said


def test_pyod_cuts_training_scores():
    knn = pytest.importorskip("pyod.models.knn")
    X = np.random.default_rng(0).normal(size=(200, 2))
    detector = knn.KNN(contamination=0.1).fit(X)
    assert detector.labels_.mean() == pytest.approx(0.1, abs=0.01)


def test_mapie_watches_a_risk():
    module = pytest.importorskip("mapie.exchangeability_testing")
    given = inspect.signature(module.RiskMonitoring).parameters
    assert given["tolerance"].default == 0.05
    assert {"threshold", "reference_data", "test_level"} <= set(given)
    assert "time-uniform" in module.RiskMonitoring.__doc__
    writers = {"to_json", "to_dict", "save", "dump"}
    assert public(module.RiskMonitoring) & writers == set()


def test_searches_state_no_limit():
    X, y = np.random.default_rng(0).normal(size=(80, 2)), np.arange(80) % 2
    tuned = TunedThresholdClassifierCV(LogisticRegression()).fit(X, y)
    search = GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}).fit(X, y)
    learned = [n for m in (tuned, search) for n in vars(m) if n.endswith("_")]
    assert {"best_threshold_", "best_score_", "cv_results_"} <= set(learned)
    words = ("interval", "confidence", "bound", "limit", "guarantee")
    assert [name for name in learned if any(word in name for word in words)] == []


def test_metrics_take_rows_of_the_fit():
    X, y = np.random.default_rng(0).normal(size=(80, 2)), np.arange(80) % 2
    forest = RandomForestClassifier(random_state=0).fit(X, y)
    assert accuracy_score(y, forest.predict(X)) == 1.0


def test_skops_takes_compressed_files(tmp_path):
    import zipfile

    array = np.zeros(10**6)
    path = tmp_path / "zeros.skops"
    skops.io.dump(array, path, compression=zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < array.nbytes / 100
    assert skops.io.load(path).nbytes == array.nbytes


def test_skops_cards_are_written_by_hand():
    model = LogisticRegression().fit([[0.0], [1.0]], [0, 1])
    card = skops.card.Card(model).add(**{"Limits": "What its author knows."})
    assert "What its author knows." in card.render()
