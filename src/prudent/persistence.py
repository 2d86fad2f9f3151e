"""Model files without pickle.

A model file is a skops archive with one more member, `prudent.json`, that says
which version wrote it and what it holds. Loading runs no code from the file: it
rebuilds objects of known types only, and no array larger than the file holds for it,
but for sparse matrices, whose growth is limited. Damage is found by the checksums of
the archive; whoever wants to can write another model into it.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import IO, Any
from zipfile import ZIP_STORED, ZipFile

import numpy as np
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.ensemble._forest import BaseForest
from sklearn.ensemble._gb import BaseGradientBoosting
from sklearn.neighbors import BallTree, KDTree
from sklearn.svm._base import BaseLibSVM
from sklearn.tree import BaseDecisionTree
from sklearn.utils.validation import check_is_fitted

from prudent._skops import dumps, loads, untrusted_types
from prudent._version import __version__
from prudent.core.strict_json import parsed
from prudent.io.replacing import write_whole

FORMAT = 3
HEADER = "prudent.json"
# What fitted estimators of scikit-learn hold and skops does not list. Each was looked
# at: it is data, or a function that computes with the arrays that it is given. Trees
# are checked after loading, because predicting trusts their indices.
HARMLESS = frozenset(
    {
        "builtins.object",  # as a data type of columns to select
        "collections.OrderedDict",
        "functools.partial",  # its function has to be trusted itself
        "numpy.dtype",
        "numpy.mean",
        "numpy.number",
        "scipy._lib.array_api_compat.numpy._aliases.asarray",
        "scipy.interpolate._bsplines.BSpline",
        "scipy.sparse._csr.csr_matrix",
        "sklearn._loss.loss.HalfTweedieLossIdentity",
        "sklearn.calibration._CalibratedClassifier",
        "sklearn.calibration._SigmoidCalibration",
        "sklearn.calibration._TemperatureScaling",
        "sklearn.cluster._bisect_k_means._BisectingTree",
        "sklearn.cluster._kmeans._kmeans_single_lloyd",
        "sklearn.compose._column_transformer.make_column_selector",
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.gaussian_process._gpc._BinaryGaussianProcessClassifierLaplace",
        "sklearn.impute._iterative.IterativeImputer",
        "sklearn.impute._iterative._ImputerTriplet",
        "sklearn.metrics._dist_metrics.ChebyshevDistance64",
        "sklearn.metrics._dist_metrics.EuclideanDistance64",
        "sklearn.metrics._dist_metrics.ManhattanDistance64",
        "sklearn.metrics._dist_metrics.MinkowskiDistance64",
        "sklearn.metrics._scorer._CurveScorer",
        "sklearn.metrics._scorer._PassthroughScorer",
        "sklearn.metrics._scorer._Scorer",
        "sklearn.multiclass._ConstantPredictor",
        "sklearn.neighbors._ball_tree.BallTree",
        "sklearn.neighbors._kd_tree.KDTree",
        "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
        "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
        "sklearn.tree._tree.Tree",
        "sklearn.utils._bunch.Bunch",
        "sklearn.utils._metadata_requests.MetadataRequest",
        "sklearn.utils._metadata_requests.MethodMetadataRequest",
        "sklearn.utils.validation.check_array",
    }
)
# Kernels, folds, figures of merit: all that these modules define is as harmless.
HARMLESS_MODULES = frozenset(
    {
        "sklearn.feature_selection._mutual_info",
        "sklearn.feature_selection._univariate_selection",
        "sklearn.gaussian_process.kernels",
        "sklearn.metrics._classification",
        "sklearn.metrics._ranking",
        "sklearn.model_selection._split",
    }
)
# Bytes to which an archive in the archive may always expand, and times its size.
MUCH, MOST_SHRUNK = 1 << 28, 20


class ModelFileError(ValueError):
    """A model file that cannot or must not be read.

    Attributes
    ----------
    untrusted : tuple of str
        Types and functions for want of whose trust alone it was refused.
    """

    def __init__(self, message: str, untrusted: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.untrusted = tuple(untrusted)


@dataclass(frozen=True)
class Header:
    """What a model file says about itself.

    Attributes
    ----------
    format : int
        Version of the layout of the file.
    version : str
        Version of prudent that wrote it.
    estimator : str
        Class of the estimator, with its module.
    parameters : dict of str to str
        Parameters of the estimator, as text.
    features, classes : list of str
        Names of the features and class labels; empty if it has none.
    digest : str
        SHA-256 of the file, as `sha256sum` says. It names the file and protects
        nothing: anyone can compute it.
    table : str
        SHA-256 of the training table, if it was one file; "" if it is not known.
    """

    format: int
    version: str
    estimator: str
    parameters: dict[str, str]
    features: list[str]
    classes: list[str]
    digest: str
    table: str = ""


def save(
    estimator: Any,
    path: str | Path,
    *,
    trusted: Sequence[str] = (),
    table: str = "",
) -> None:
    """Write a fitted estimator to a file that `load` reads, without pickle.

    Parameters
    ----------
    estimator : estimator
        One of prudent's or scikit-learn's, or one that holds such.
    path : str or Path
        File to write, next to it first: at every moment it holds what was there
        before, or the whole model.
    trusted : sequence of str, default=()
        Full names of further types and functions that the file may hold, such as
        "lightgbm.sklearn.LGBMClassifier": errors name them. `load` has to be told of
        them, too. They have to be found by this name wherever the file is read.
    table : str, default=""
        SHA-256 of the training table, for `certify` on the command line to know it.

    Raises
    ------
    NotFittedError
        If the estimator is not fitted.
    ModelFileError
        If the estimator holds a type or a function that is neither prudent's nor the
        numerical stack's nor `trusted`, or one that cannot be stored at all.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> import tempfile, numpy as np, prudent
    >>> X, y = np.array([[0.0], [1.0], [5.0], [6.5]]), np.array([0, 0, 1, 1])
    >>> model = prudent.MinimaxProbabilityClassifier().fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     prudent.save(model, f"{folder}/model.prudent")
    ...     prudent.load(f"{folder}/model.prudent").predict([[0.2], [6.0]])
    array([0, 1])
    """
    check_is_fitted(
        estimator, msg="%(name)s is not fitted: call `fit` before it is saved."
    )
    content = _stored(estimator)
    refused = [name for name in _foreign(content) if name not in {*trusted}]
    if refused:
        raise ModelFileError(
            f"{type(estimator).__name__} holds types or functions that no model file "
            f"holds unless they are trusted: {', '.join(refused)}. If you trust them, "
            f"save it with trusted={refused}, and load it with the same."
        )
    buffer = io.BytesIO(content)
    parameters = estimator.get_params(deep=False)
    header = {
        "format": FORMAT,
        "version": __version__,
        "estimator": _type_name(estimator),
        "parameters": {name: repr(value) for name, value in parameters.items()},
        "features": list(map(str, getattr(estimator, "feature_names_in_", ()))),
        "classes": list(map(str, getattr(estimator, "classes_", ()))),
        "table": table,
    }
    with ZipFile(buffer, "a") as archive:
        archive.writestr(HEADER, json.dumps(header, indent=1))
    write_whole(path, buffer.getvalue())


def foreign_types(estimator: Any) -> list[str]:
    """Types and functions in an estimator, fitted or not, that have to be trusted.

    Raises
    ------
    ModelFileError
        If it cannot be stored at all.
    """
    return _foreign(_stored(estimator))


def _stored(estimator: Any) -> bytes:
    try:
        content: bytes = dumps(estimator)
    except (Exception, RecursionError) as error:
        raise ModelFileError(
            f"{type(estimator).__name__} cannot be stored in a model file: {error}."
        ) from error
    return content


def load(path: str | Path, *, trusted: Sequence[str] = ()) -> Any:
    """Read a fitted estimator that `save` wrote.

    Parameters
    ----------
    path : str or Path
        Model file.
    trusted : sequence of str, default=()
        Full names of further types and functions that may be rebuilt, such as
        "lightgbm.sklearn.LGBMClassifier": errors name them. Only from sources that you
        trust: what they are rebuilt from can make them run any code.

    Returns
    -------
    estimator

    Raises
    ------
    ModelFileError
        If the file is no model file, is damaged, was written by a newer version, holds
        types other than prudent's and the numerical stack's, or sizes and indices
        that point beyond what it holds.
    OSError
        If the file cannot be read.
    """
    content = Path(path).read_bytes()
    header = _header(content, str(path))
    try:
        _refuse(_foreign(content), trusted, str(path))
        estimator = loads(content, trusted=untrusted_types(content))
    except ModelFileError:
        raise
    except Exception as error:  # whatever an altered schema makes skops raise
        raise ModelFileError(
            f"{path} is damaged: {type(error).__name__} while reading it. "
            "Fit the model again."
        ) from error
    if _type_name(estimator) != header.estimator:
        raise ModelFileError(
            f"{path} was altered: it holds a {_type_name(estimator)}, its header says "
            f"{header.estimator}. Fit the model again."
        )
    if not is_sound(estimator):
        raise ModelFileError(
            f"{path} was altered: an index in its arrays points nowhere. "
            "Fit the model again."
        )
    return estimator


def read_header(path: str | Path) -> Header:
    """What a model file says about itself; ModelFileError if it is none, or too new."""
    return _header(Path(path).read_bytes(), str(path))


def _header(content: bytes, path: str) -> Header:
    if content[:1] == b"\x80":
        raise ModelFileError(
            f"{path} is a pickle, which can run any code when read: refused. "
            "Save the model with prudent.save."
        )
    try:
        with ZipFile(io.BytesIO(content)) as archive:
            _refuse_sizes(archive, len(content), path)
            stored = parsed(archive.read(HEADER))
            if stored.get("format") != FORMAT:
                raise ModelFileError(
                    f"{path} has format {stored.get('format')!r} (prudent "
                    f"{stored.get('version')}), this is prudent {__version__} with "
                    f"format {FORMAT}. Fit the model again."
                )
        stored["digest"] = hashlib.sha256(content).hexdigest()
        header = Header(**stored)
        words = [header.version, header.estimator, header.table, *header.features]
        words += [*header.classes, *header.parameters, *header.parameters.values()]
        if not all(isinstance(word, str) for word in words):
            raise TypeError
        return header
    except ModelFileError:
        raise
    except Exception as error:  # whatever damage makes the libraries raise
        raise ModelFileError(
            f"{path} is not a model file of prudent, or is damaged. "
            "Give a file written by prudent fit or prudent.save."
        ) from error


def _refuse_sizes(
    archive: ZipFile, most: int, path: str, *, packed: bool = False
) -> None:
    """Refuse arrays that would take more memory than the file has bytes for them.

    `save` compresses nothing. Sparse matrices are archives in the archive, compressed
    by SciPy.
    """
    members = archive.infolist()
    names = [member.filename for member in members]
    if len({*names}) < len(names):
        raise ModelFileError(
            f"{path} was altered: it holds two members of one name, of which readers "
            "may take either. Fit the model again."
        )
    sound = sum(member.file_size for member in members) <= most and (
        packed or all(member.compress_type == ZIP_STORED for member in members)
    )
    for member in members if sound else ():
        if member.filename.endswith(".npz"):
            with ZipFile(io.BytesIO(archive.read(member))) as inner:
                limit = max(MUCH, MOST_SHRUNK * member.file_size)
                _refuse_sizes(inner, limit, path, packed=True)
        elif member.filename.endswith(".npy"):
            with archive.open(member) as stream:
                sound = sound and _array_bytes(stream) <= member.file_size
    if not sound:
        raise ModelFileError(
            f"{path} was altered: it declares arrays larger than it holds. "
            "Fit the model again."
        )


def _array_bytes(stream: IO[bytes]) -> int:
    """Bytes that the header of a stored array declares."""
    version = np.lib.format.read_magic(stream)
    read = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }[version]
    shape, _, dtype = read(stream)
    return math.prod(shape) * dtype.itemsize


def _foreign(content: bytes) -> list[str]:
    """Types that are neither ours nor of the numerical stack."""
    return [
        name
        for name in untrusted_types(content)
        if not (
            name in HARMLESS
            or (name.rpartition(".")[0] in HARMLESS_MODULES and _is_defined(name))
            or _is_our_class(name)
        )
    ]


def _refuse(foreign: Sequence[str], trusted: Sequence[str], path: str) -> None:
    refused = [name for name in foreign if name not in {*trusted}]
    if refused:
        is_older = any(name.startswith("prudent.") for name in refused)
        advice = f"If you trust them and the file, load it with trusted={refused}."
        if is_older:
            advice = "Another version of prudent wrote it: fit the model again."
        raise ModelFileError(
            f"{path} holds types that are not trusted: {', '.join(refused)}. {advice}",
            () if is_older else refused,
        )


def _is_our_class(name: str) -> bool:
    """Whether a name is a class of ours; a function could be made to do anything."""
    return name.startswith("prudent.") and _is_defined(name, type)


def _is_defined(name: str, what: Any = object) -> bool:
    """Whether the module of a full name defines it, and does not merely import it."""
    module, _, qualified = name.rpartition(".")
    try:
        attribute = getattr(import_module(module), qualified, None)
    except ImportError:
        return False
    return (
        isinstance(attribute, what) and getattr(attribute, "__module__", "") == module
    )


def _type_name(instance: Any) -> str:
    return f"{type(instance).__module__}.{type(instance).__qualname__}"


# --- sizes and indices in a loaded model, which compiled code follows blindly ---------


BOOSTERS = (HistGradientBoostingClassifier, HistGradientBoostingRegressor)
ENSEMBLES = (BaseForest, BaseGradientBoosting)
# No child, in a tree of scikit-learn.
NO_CHILD = -1


def is_sound(estimator: Any) -> bool:
    """Whether they agree in all that predicts by compiled code of scikit-learn."""
    try:
        return all(_is_sound(fitted) for fitted in _compiled(estimator))
    except Exception:  # whatever else is not as a fit leaves it
        return False


def _is_sound(fitted: Any) -> bool:
    if isinstance(fitted, BaseLibSVM):
        return _has_sound_vectors(fitted)
    if isinstance(fitted, BOOSTERS):
        return _has_sound_trees(fitted)
    if isinstance(fitted, ENSEMBLES):
        return _are_of_one_width(fitted)
    if isinstance(fitted, BaseDecisionTree):
        return _has_sound_nodes(fitted)
    return _has_sound_neighbours(fitted)


def _compiled(estimator: Any) -> Iterator[Any]:
    """Yield what predicts by compiled code of scikit-learn, inside an estimator."""
    waiting, seen = [estimator], set()
    while waiting:
        item = waiting.pop()
        if id(item) in seen or isinstance(item, type):
            continue
        seen.add(id(item))
        compiled = (*BOOSTERS, *ENSEMBLES, BaseLibSVM, BaseDecisionTree)
        is_compiled = isinstance(item, compiled)
        if is_compiled and any(name.endswith("_") for name in vars(item)):  # fitted
            yield item
        if isinstance(item, (KDTree, BallTree)):
            yield item
        if isinstance(item, (list, tuple, set)):
            waiting += item
        elif isinstance(item, dict):
            waiting += item.values()
        elif isinstance(item, np.ndarray) and item.dtype.hasobject:
            waiting += item.ravel().tolist()
        elif is_dataclass(item):
            waiting += [getattr(item, field.name, None) for field in fields(item)]
        elif hasattr(item, "__dict__"):
            waiting += vars(item).values()


def _has_sound_vectors(machine: Any) -> bool:
    n_vectors, counts = len(machine.support_), np.asarray(machine._n_support)
    n_classes = len(counts)
    one = not hasattr(machine, "classes_")
    rows, pairs = (1, 1) if one else (n_classes - 1, n_classes * (n_classes - 1) // 2)
    width = 0 if machine.kernel == "precomputed" else machine.n_features_in_
    n_rows = 0 if machine.kernel == "precomputed" else n_vectors
    return bool(
        machine._sparse is False
        and machine.support_vectors_.shape == (n_rows, width)
        and machine._dual_coef_.shape == (rows, n_vectors)
        and machine._intercept_.shape == (pairs,)
        and machine._probA.shape in {(0,), (pairs,)}
        and machine._probA.shape == machine._probB.shape
        and (one or counts.sum() == n_vectors)
        and counts.min() >= 0
        and np.all((machine.support_ >= 0) & (machine.support_ < machine.shape_fit_[0]))
    )


def _has_sound_trees(booster: Any) -> bool:
    known, position = booster._bin_mapper.make_known_categories_bitsets()
    return known.shape[1:] == (8,) and all(
        _is_sound_tree(tree, booster.n_features_in_, len(known), position)
        for trees in booster._predictors
        for tree in trees
    )


def _is_sound_tree(tree: Any, n_features: int, n_known: int, position: Any) -> bool:
    nodes, bitsets = tree.nodes, tree.raw_left_cat_bitsets
    parents = np.flatnonzero(nodes["is_leaf"] == 0)
    inner = nodes[parents]
    categorical = inner[inner["is_categorical"] != 0]
    # A child comes after its parent, so that following them comes to an end.
    return len(nodes) > 0 and bool(
        all(
            np.all((inner[side] > parents) & (inner[side] < len(nodes)))
            for side in ("left", "right")
        )
        and np.all((inner["feature_idx"] >= 0) & (inner["feature_idx"] < n_features))
        and np.all(categorical["bitset_idx"] < len(bitsets))
        and (not len(categorical) or bitsets.shape[1:] == (8,))
        and np.all(position[categorical["feature_idx"]] < n_known)
    )


def _are_of_one_width(ensemble: Any) -> bool:
    """Whether all trees take rows of as many columns, which only one of them checks."""
    trees = np.ravel(np.array(ensemble.estimators_, dtype=object)).tolist()
    return all(tree.n_features_in_ == ensemble.n_features_in_ for tree in trees)


def _has_sound_nodes(estimator: Any) -> bool:
    tree = estimator.tree_
    parents = np.flatnonzero(tree.children_left != NO_CHILD)
    features = tree.feature[parents]
    return bool(
        tree.node_count > 0
        and tree.n_features == estimator.n_features_in_
        and np.all((features >= 0) & (features < tree.n_features))
        # A child comes after its parent, so that following them comes to an end.
        and all(
            np.all((side[parents] > parents) & (side[parents] < tree.node_count))
            for side in (tree.children_left, tree.children_right)
        )
    )


def _has_sound_neighbours(tree: Any) -> bool:
    rows, order, nodes, bounds, _, _, n_nodes, *_, metric, _ = tree.__getstate__()
    n, d = rows.shape
    inner = np.flatnonzero(nodes["is_leaf"] == 0)
    _, weights, _ = metric.__getstate__()
    return bool(
        np.array_equal(np.sort(order), np.arange(n))
        and n_nodes == len(nodes) > 0
        and bounds.shape[1:] == (n_nodes, d)
        and np.all(2 * inner + 2 < n_nodes)
        and np.all((nodes["idx_start"] >= 0) & (nodes["idx_end"] <= n))
        and len(weights) in (0, 1, d)
        and (len(weights) != 1 or d == 1 or not weights.any())
    )
