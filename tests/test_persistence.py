"""Model files: the same predictions come back, and nothing foreign gets in."""

from __future__ import annotations

import hashlib
import inspect
import io
import json
import pickle
import subprocess
import sys
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
from sklearn.svm import SVC, SVR, OneClassSVM
from sklearn.utils import all_estimators

import prudent
from instances import FAMILIES
from prudent._skops import is_listed_estimator
from prudent.evaluation.estimators import ClasswiseRejector
from prudent.exceptions import PrudentWarning
from prudent.persistence import HEADER, ModelFileError, read_header

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


def rewrite(path, *, compression=zipfile.ZIP_STORED, **members):
    """Replace members by what functions of their content return."""
    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    for member, change in members.items():
        if member == "array":
            name = next(name for name in content if name.endswith(".npy"))
            content[name] = change(content[name])
        else:
            name = {"header": HEADER, "schema": "schema.json"}[member]
            content[name] = json.dumps(change(json.loads(content[name]))).encode()
    with zipfile.ZipFile(path, "w", compression) as archive:
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
    assert header.format == 3
    assert header.digest == hashlib.sha256(model_file.read_bytes()).hexdigest()
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


@pytest.mark.parametrize("other", [1, 2, 4, "3", None])
def test_other_format_is_refused(model_file, other):
    rewrite(model_file, header=lambda h: h | {"format": other})
    with pytest.raises(ModelFileError, match="has format .* Fit the model again"):
        prudent.load(model_file)


def huge_array(_content):
    stream = io.BytesIO()
    header = {"descr": "<f8", "fortran_order": False, "shape": (10**12,)}
    np.lib.format.write_array_header_1_0(stream, header)
    return stream.getvalue()


def test_array_larger_than_the_file_is_refused(model_file):
    rewrite(model_file, array=huge_array)
    with pytest.raises(ModelFileError, match="declares arrays larger than it holds"):
        prudent.load(model_file)


def test_compressed_member_is_refused(model_file):
    """However small the file, it would be as large as it says in memory."""
    rewrite(
        model_file,
        compression=zipfile.ZIP_DEFLATED,
        array=lambda content: content + bytes(10**7),
    )
    assert model_file.stat().st_size < 10**5
    with pytest.raises(ModelFileError, match="declares arrays larger than it holds"):
        read_header(model_file)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_members_of_one_name_are_refused(model_file):
    with zipfile.ZipFile(model_file, "a") as archive:
        archive.writestr("schema.json", archive.read("schema.json"))
    with pytest.raises(ModelFileError, match="two members of one name"):
        prudent.load(model_file)


@pytest.mark.parametrize(
    "change",
    [
        {"features": [["a"]]},
        {"features": 1},
    ],
)
def test_header_of_no_names_is_refused(model_file, change):
    rewrite(model_file, header=lambda h: h | change)
    with pytest.raises(ModelFileError, match="is not a model file of prudent"):
        read_header(model_file)


def test_header_of_another_class_is_refused(model_file):
    lie = {"estimator": "prudent.optimistic.classifier.OptimisticScoreClassifier"}
    rewrite(model_file, header=lambda h: h | lie)
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
def test_foreign_type_is_refused(model_file, module, name):
    foreign = {"__module__": module, "__class__": name}
    rewrite(model_file, schema=lambda s: s | foreign)
    with pytest.raises(ModelFileError, match=f"types that are not trusted: {module}"):
        prudent.load(model_file)


def test_the_trusted_estimators_are_those_of_the_whole_list():
    """Of all names in scikit-learn, private ones and functions included."""
    # Listed now, as skops did at its import: experimental ones may have been enabled.
    estimators = [estimator for _, estimator in all_estimators()]
    whole = {f"{e.__module__}.{e.__qualname__}" for e in estimators}
    listed = skops.io._trusted_types.SKLEARN_ESTIMATOR_TYPE_NAMES
    assert {name for name in listed if name.startswith("sklearn.")} <= whole
    assert len(whole) > 150
    modules = [name for name in sys.modules if name.partition(".")[0] == "sklearn"]
    names = set()
    for module in modules:
        for name, value in inspect.getmembers(sys.modules[module]):
            names |= {f"{module}.{name}"}
            if inspect.isclass(value):
                names |= {f"{value.__module__}.{value.__qualname__}"}
    assert whole <= names
    assert {name for name in names if is_listed_estimator(name)} == whole


@pytest.mark.parametrize("loader", ["TypeNode", "FunctionNode"])
def test_an_estimator_is_trusted_as_an_object_only(tmp_path, loader):
    """As skops does: a class as a value, or to be called, has to be trusted."""
    dummy = DummyClassifier().fit(X, Y)
    dummy.held = dummy.__class__
    name = "sklearn.dummy.DummyClassifier"
    with pytest.raises(ModelFileError, match=rf"trusted: {name}"):
        prudent.save(dummy, tmp_path / "m")
    prudent.save(dummy, tmp_path / "m", trusted=[name])

    def call(schema):
        schema["content"]["content"]["held"]["__loader__"] = loader
        return schema

    rewrite(tmp_path / "m", schema=call)
    with pytest.raises(ModelFileError, match="not trusted|damaged"):
        prudent.load(tmp_path / "m")


def test_skops_is_whole_for_whoever_imports_it_after_us(model_file):
    """Our copy trusts by and by what the list of this one holds from the start."""
    program = (
        "import sys, prudent\n"
        f"prudent.load({str(model_file)!r})\n"
        "assert not [name for name in sys.modules if name.startswith('skops')]\n"
        "from prudent._skops import _io\n"
        "import sklearn.utils, skops.io\n"
        "ours, whole = _io._trusted_types, skops.io._trusted_types\n"
        "for kind in ('SCIPY_UFUNC', 'NUMPY_UFUNC', 'NUMPY_DTYPE'):\n"
        "    names = getattr(whole, f'{kind}_TYPE_NAMES')\n"
        "    assert names == getattr(ours, f'{kind}_TYPE_NAMES')\n"
        "    assert len(names) > 20\n"
        "assert len(sklearn.utils.all_estimators()) > 150\n"
        "from sklearn.dummy import DummyClassifier\n"
        "stored = skops.io.dumps(DummyClassifier())\n"
        "assert skops.io.get_untrusted_types(data=stored) == []\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_model_of_another_version_is_to_be_fitted_again(model_file):
    """The classes of a fit have moved: that is no matter of trust."""
    moved = {"__module__": "prudent.minimax.fitting", "__class__": "Evidence"}
    rewrite(model_file, schema=lambda s: s | moved)
    assert read_header(model_file).version == prudent.__version__
    with pytest.raises(
        ModelFileError, match=r"Evidence. Another version .*: fit the model again"
    ):
        prudent.load(model_file)


def test_tree_with_an_index_outside_is_refused(tmp_path):
    path = tmp_path / "model"
    booster = HistGradientBoostingClassifier(max_iter=2).fit(X, Y)
    booster._predictors[1][0].nodes["left"][0] = 10_000
    prudent.save(booster, path)
    with pytest.raises(ModelFileError, match="an index in its arrays points nowhere"):
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


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("_dual_coef_", np.zeros((2, 3))),
        ("support_vectors_", np.zeros((60, 2))),
        ("_n_support", np.array([9, 9, 9], dtype=np.int32)),
        ("_intercept_", np.zeros(1)),
        ("_probA", np.zeros(7)),
    ],
)
def test_support_vectors_that_read_astray_are_refused(tmp_path, name, value):
    path = tmp_path / "model"
    machine = SVC().fit(X, Y)
    prudent.save(machine, path)
    assert (prudent.load(path).predict(X) == machine.predict(X)).all()
    setattr(machine, name, value)
    prudent.save(machine, path)
    with pytest.raises(ModelFileError, match="points nowhere"):
        prudent.load(path)


@pytest.mark.parametrize("machine", [SVR(), OneClassSVM(), SVC(kernel="linear")])
def test_support_vector_machines_come_back(tmp_path, machine):
    prudent.save(machine.fit(X, Y), tmp_path / "model")
    loaded = prudent.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(X), machine.predict(X))


def add_one(rows):
    return rows + 1


def test_estimator_with_a_foreign_function_is_not_saved(tmp_path):
    pipeline = make_pipeline(
        FunctionTransformer(add_one), prudent.MinimaxProbabilityClassifier()
    ).fit(X, Y)
    with pytest.raises(ModelFileError, match="holds types or functions .*add_one"):
        prudent.save(pipeline, tmp_path / "model")
    assert not (tmp_path / "model").exists()


class Foreign(DummyClassifier):
    """A classifier of another package."""


def test_estimator_of_another_package_has_to_be_trusted(tmp_path):
    model = Foreign().fit(X, Y)
    name = f"{Foreign.__module__}.Foreign"
    with pytest.raises(ModelFileError, match="save it with trusted="):
        prudent.save(model, tmp_path / "model")
    prudent.save(model, tmp_path / "model", trusted=[name])
    with pytest.raises(ModelFileError, match="types that are not trusted"):
        prudent.load(tmp_path / "model")
    again = prudent.load(tmp_path / "model", trusted=[name])
    assert (again.predict(X) == model.predict(X)).all()


def test_model_that_is_not_fitted_is_not_saved(tmp_path):
    with pytest.raises(NotFittedError, match="is not fitted: call `fit` before"):
        prudent.save(prudent.MinimaxProbabilityClassifier(), tmp_path / "model")
    assert not (tmp_path / "model").exists()
