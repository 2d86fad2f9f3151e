"""Model files: the same predictions come back, and nothing foreign gets in."""

from __future__ import annotations

import io
import json
import pickle
import warnings
import zipfile

import numpy as np
import pytest
import skops.io
from sklearn.datasets import load_iris
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import prudent
from instances import FAMILIES
from prudent.evaluation.rejection import ClasswiseRejector
from prudent.exceptions import PrudentWarning
from prudent.persistence import HEADER, ModelFileError, _digest, read_header

X, Y = load_iris(return_X_y=True)
INSTANCES = [
    *(estimator for family in FAMILIES for estimator in family()),
    ClasswiseRejector(),
]
ROW_METHODS = (
    *("predict", "decision_function", "predict_proba", "predict_set"),
    *("score_samples", "p_value", "optimistic_scores", "log_joint_bounds"),
)


def rows_for(estimator):
    if getattr(estimator, "kernel", None) == "precomputed":
        return X @ X.T
    return X.round() if getattr(estimator, "family", None) == "categorical" else X


def seeded(estimator):
    if "random_state" in estimator.get_params():
        estimator.set_params(random_state=0)
    return estimator


@pytest.fixture
def model_file(tmp_path):
    """A saved model, and the function that rewrites members of its archive."""
    path = tmp_path / "model.prudent"
    prudent.save(prudent.MinimaxProbabilityClassifier().fit(X, Y), path)
    return path


def rewrite(path, *, sign: bool, **members):
    """Replace members by what functions of their content return; sign afterwards."""
    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    for member, change in members.items():
        name = {"header": HEADER, "schema": "schema.json"}[member]
        content[name] = json.dumps(change(json.loads(content[name]))).encode()
    if sign:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            for name, data in content.items():
                archive.writestr(name, data)
            header = json.loads(content[HEADER]) | {"digest": _digest(archive)}
        content[HEADER] = json.dumps(header).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in content.items():
            archive.writestr(name, data)


@pytest.mark.parametrize("estimator", INSTANCES, ids=repr)
def test_round_trip_predicts_bit_for_bit_the_same(estimator, tmp_path):
    rows = rows_for(estimator)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrudentWarning)
        estimator = seeded(estimator).fit(rows, Y)
    prudent.save(estimator, tmp_path / "model")
    loaded = prudent.load(tmp_path / "model")
    assert type(loaded) is type(estimator)
    assert loaded.guarantees_ == estimator.guarantees_
    compared = [name for name in ROW_METHODS if hasattr(estimator, name)]
    assert "predict" in compared
    for name in compared:
        np.testing.assert_array_equal(
            getattr(loaded, name)(rows), getattr(estimator, name)(rows)
        )


def test_round_trip_of_a_game(tmp_path):
    game = prudent.RejectionGame().fit([0.1, 0.2, 0.3, 0.4])
    prudent.save(game, tmp_path / "game")
    loaded = prudent.load(tmp_path / "game")
    np.testing.assert_array_equal(loaded.rejection_, game.rejection_)


def test_round_trip_of_a_pipeline(tmp_path):
    pipeline = make_pipeline(StandardScaler(), prudent.MinimaxProbabilityClassifier())
    pipeline.fit(X, Y)
    prudent.save(pipeline, tmp_path / "model")
    loaded = prudent.load(tmp_path / "model")
    np.testing.assert_array_equal(
        prudent.predict_set(loaded, X), prudent.predict_set(pipeline, X)
    )


def test_loaded_estimator_can_go_on_learning(tmp_path):
    whole = prudent.MinimaxProbabilityClassifier().fit(X, Y)
    part = prudent.MinimaxProbabilityClassifier().partial_fit(X[::2], Y[::2])
    prudent.save(part, tmp_path / "model")
    loaded = prudent.load(tmp_path / "model").partial_fit(X[1::2], Y[1::2])
    np.testing.assert_array_equal(loaded.predict(X), whole.predict(X))


def test_header_says_what_the_file_holds(model_file):
    header = read_header(model_file)
    assert header.format == 1
    assert header.version == prudent.__version__
    assert header.estimator.endswith(".MinimaxProbabilityClassifier")
    assert header.parameters["objective"] == "'minimax'"
    assert header.classes == ["0", "1", "2"]


def test_names_of_a_data_frame_are_in_the_header(tmp_path):
    frame = load_iris(as_frame=True).data
    model = prudent.MinimaxProbabilityClassifier().fit(frame, Y)
    prudent.save(model, tmp_path / "model")
    assert read_header(tmp_path / "model").features == list(frame.columns)


def test_pickle_is_refused(tmp_path):
    path = tmp_path / "model"
    path.write_bytes(pickle.dumps(prudent.MinimaxProbabilityClassifier().fit(X, Y)))
    with pytest.raises(ModelFileError, match="is a pickle, which can run any code"):
        prudent.load(path)


@pytest.mark.parametrize("content", [b"", b"a,b,y\n1,2,3\n", b"PK\x03\x04broken"])
def test_other_file_is_refused(tmp_path, content):
    path = tmp_path / "model"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match="is not a model file of prudent"):
        prudent.load(path)


def test_plain_skops_file_is_refused(tmp_path):
    skops.io.dump(StandardScaler().fit(X), tmp_path / "model")
    with pytest.raises(ModelFileError, match="is not a model file of prudent"):
        prudent.load(tmp_path / "model")


def test_truncated_file_is_refused(model_file):
    model_file.write_bytes(model_file.read_bytes()[:-100])
    with pytest.raises(ModelFileError, match="is not a model file of prudent, or is"):
        prudent.load(model_file)


def test_flipped_byte_is_refused(model_file):
    content = bytearray(model_file.read_bytes())
    content[len(content) // 3] ^= 1
    model_file.write_bytes(content)
    with pytest.raises(ModelFileError, match=r"damaged|altered"):
        prudent.load(model_file)


def test_newer_format_is_refused(model_file):
    rewrite(model_file, sign=True, header=lambda h: h | {"format": 2, "new": 1})
    with pytest.raises(ModelFileError, match="has format 2 .* Install a newer prudent"):
        prudent.load(model_file)


def test_altered_content_is_refused(model_file):
    rewrite(model_file, sign=False, schema=lambda s: s | {"extra": 1})
    with pytest.raises(ModelFileError, match="was altered after it was written"):
        prudent.load(model_file)


def test_header_of_another_class_is_refused(model_file):
    lie = {"estimator": "prudent.optimistic.classifier.OptimisticScoreClassifier"}
    rewrite(model_file, sign=True, header=lambda h: h | lie)
    with pytest.raises(ModelFileError, match="was altered: it holds a .*Minimax"):
        prudent.load(model_file)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("builtins", "eval"),
        ("os", "system"),
        ("subprocess", "Popen"),
        ("prudent.cli.app", "main"),
        ("prudent.persistence", "Path"),
        ("prudent.absent", "Anything"),
    ],
)
def test_foreign_type_is_refused_though_the_digest_fits(model_file, module, name):
    foreign = {"__module__": module, "__class__": name}
    rewrite(model_file, sign=True, schema=lambda s: s | foreign)
    with pytest.raises(ModelFileError, match=f"types that are not trusted: {module}"):
        prudent.load(model_file)


def test_tree_with_an_index_outside_is_refused(tmp_path):
    path = tmp_path / "model"
    booster = HistGradientBoostingClassifier(max_iter=2).fit(X, Y)
    booster._predictors[1][0].nodes["left"][0] = 10_000
    prudent.save(booster, path)
    with pytest.raises(ModelFileError, match="an index in its trees points nowhere"):
        prudent.load(path)


@pytest.mark.parametrize(
    ("field", "value"), [("right", 0), ("feature_idx", 4), ("feature_idx", -1)]
)
def test_tree_that_reads_or_runs_astray_is_refused(tmp_path, field, value):
    path = tmp_path / "model"
    booster = HistGradientBoostingClassifier(max_iter=2).fit(X, Y)
    booster._predictors[0][0].nodes[field][0] = value
    prudent.save(booster, path)
    with pytest.raises(ModelFileError, match="points nowhere"):
        prudent.load(path)


def add_one(rows):
    return rows + 1


def test_estimator_with_a_foreign_function_is_not_saved(tmp_path):
    pipeline = make_pipeline(
        FunctionTransformer(add_one), prudent.MinimaxProbabilityClassifier()
    ).fit(X, Y)
    with pytest.raises(
        ModelFileError, match="the estimator holds types .* not trusted"
    ):
        prudent.save(pipeline, tmp_path / "model")
    assert not (tmp_path / "model").exists()


class Foreign(DummyClassifier):
    """A classifier of another package."""


def test_estimator_of_another_package_has_to_be_trusted(tmp_path):
    model = Foreign().fit(X, Y)
    name = f"{Foreign.__module__}.Foreign"
    with pytest.warns(PrudentWarning, match=r"load\(path, trusted="):
        prudent.save(model, tmp_path / "model")
    with pytest.raises(ModelFileError, match="types that are not trusted"):
        prudent.load(tmp_path / "model")
    again = prudent.load(tmp_path / "model", trusted=[name])
    assert (again.predict(X) == model.predict(X)).all()


def test_model_that_is_not_fitted_is_not_saved(tmp_path):
    with pytest.raises(NotFittedError, match="is not fitted: call `fit` before"):
        prudent.save(prudent.MinimaxProbabilityClassifier(), tmp_path / "model")
    assert not (tmp_path / "model").exists()
