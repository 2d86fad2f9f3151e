"""Model files without pickle.

A model file is a skops archive with one more member, `prudent.json`, that says
which version wrote it, what it holds and the digest of the rest. Loading runs no
code from the file: it rebuilds objects of known types only.
"""

from __future__ import annotations

import hashlib
import io
import json
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np
import skops.io
from sklearn.base import BaseEstimator
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.utils.validation import check_is_fitted

from prudent._version import __version__
from prudent.exceptions import PrudentWarning
from prudent.io import Preparation

__all__ = ["Header", "ModelFileError", "load", "read_header", "save"]

FORMAT = 1
HEADER = "prudent.json"
# Private types of the numerical stack that fitted estimators hold and skops does not
# list; trees are checked after loading, because predicting trusts their indices.
TREE = "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor"
# A data type, which encoders and imputers keep, runs no code.
TRUSTED = frozenset({TREE, "numpy.dtype"})
BOOSTERS = (HistGradientBoostingClassifier, HistGradientBoostingRegressor)


class ModelFileError(ValueError):
    """A model file that cannot or must not be read."""


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
    features : list of str
        Names of the features; empty if it was fitted on arrays.
    classes : list of str
        Class labels, as text; empty if it has none.
    digest : str
        SHA-256 over the members of the archive.
    preparation : dict or None
        How the training table became the features, see `prudent.io.Preparation`.
    """

    format: int
    version: str
    estimator: str
    parameters: dict[str, str]
    features: list[str]
    classes: list[str]
    digest: str
    preparation: dict[str, Any] | None = None


def save(
    estimator: Any, path: str | Path, *, preparation: Preparation | None = None
) -> None:
    """Write a fitted estimator to a file that `load` reads, without pickle.

    Parameters
    ----------
    estimator : estimator
        One of prudent's, or scikit-learn's with prudent's inside.
    path : str or Path
        File to write.
    preparation : Preparation, default=None
        How a table became the features, if it was read by `prudent.io`; `predict`
        on the command line repeats it.

    Raises
    ------
    NotFittedError
        If the estimator is not fitted.
    ModelFileError
        If the estimator holds an object whose type `load` would refuse.
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
    buffer = io.BytesIO(skops.io.dumps(estimator))
    foreign = _classes_of_others(buffer.getvalue())
    _refuse_types(buffer.getvalue(), "the estimator", foreign)
    if foreign:
        warnings.warn(
            f"the model holds types of other packages: read it with load(path, "
            f"trusted={foreign}).",
            PrudentWarning,
            stacklevel=2,
        )
    with ZipFile(buffer, "a") as archive:
        header = Header(
            format=FORMAT,
            version=__version__,
            estimator=_type_name(estimator),
            parameters={
                k: repr(v) for k, v in estimator.get_params(deep=False).items()
            },
            features=[
                str(name) for name in getattr(estimator, "feature_names_in_", ())
            ],
            classes=[str(label) for label in getattr(estimator, "classes_", ())],
            digest=_digest(archive),
            preparation=None if preparation is None else asdict(preparation),
        )
        archive.writestr(HEADER, json.dumps(vars(header), indent=1))
    Path(path).write_bytes(buffer.getvalue())


def load(path: str | Path, *, trusted: Sequence[str] = ()) -> Any:
    """Read a fitted estimator that `save` wrote.

    Parameters
    ----------
    path : str or Path
        Model file.
    trusted : sequence of str, default=()
        Full names of further types that may be rebuilt, such as
        "lightgbm.sklearn.LGBMClassifier": `save` and errors name them. Only from
        sources that you trust.

    Returns
    -------
    estimator

    Raises
    ------
    ModelFileError
        If the file is no model file, is damaged or altered, was written by a newer
        version, or holds types other than prudent's and the numerical stack's.
    OSError
        If the file cannot be read.
    """
    content = Path(path).read_bytes()
    header = _header(content, str(path))
    _refuse_types(content, str(path), trusted)
    try:
        estimator = skops.io.loads(content, trusted=_untrusted(content))
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
    if not all(map(_has_sound_trees, _boosters(estimator))):
        raise ModelFileError(
            f"{path} was altered: an index in its trees points nowhere. "
            "Fit the model again."
        )
    return estimator


def read_header(path: str | Path) -> Header:
    """Read what a model file says about itself, and check its digest.

    Raises
    ------
    ModelFileError
        If the file is no model file, is damaged or altered, or is too new.
    """
    return _header(Path(path).read_bytes(), str(path))


def _header(content: bytes, path: str) -> Header:
    if content[:1] == b"\x80":
        raise ModelFileError(
            f"{path} is a pickle, which can run any code when read: refused. "
            "Save the model with prudent.save."
        )
    try:
        with ZipFile(io.BytesIO(content)) as archive:
            stored = json.loads(archive.read(HEADER))
            if not isinstance(stored.get("format"), int) or stored["format"] > FORMAT:
                raise ModelFileError(
                    f"{path} has format {stored.get('format')!r} (prudent "
                    f"{stored.get('version')}), this is prudent {__version__} with "
                    f"format {FORMAT}. Install a newer prudent."
                )
            header = Header(**stored)
            intact = header.digest == _digest(archive)
    except (BadZipFile, KeyError, TypeError, AttributeError, ValueError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError(
            f"{path} is not a model file of prudent, or is damaged. "
            "Give a file written by prudent fit or prudent.save."
        ) from error
    if not intact:
        raise ModelFileError(
            f"{path} was altered after it was written: its digest differs. "
            "Fit the model again."
        )
    return header


def _digest(archive: ZipFile) -> str:
    """Digest of names and contents of all members but the header."""
    digest = hashlib.sha256()
    for name in sorted(set(archive.namelist()) - {HEADER}):
        content = archive.read(name)
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def _untrusted(content: bytes) -> list[str]:
    return list(skops.io.get_untrusted_types(data=content))


def _refuse_types(content: bytes, path: str, trusted: Sequence[str] = ()) -> None:
    foreign = [
        name
        for name in _untrusted(content)
        if name not in {*TRUSTED, *trusted} and not _is_our_class(name)
    ]
    if foreign:
        raise ModelFileError(
            f"{path} holds types that are not trusted: {', '.join(foreign[:5])}. "
            "Use estimators of prudent, NumPy, SciPy and scikit-learn only."
        )


def _classes_of_others(content: bytes) -> list[str]:
    """Types that `load` has to be told of; functions, which could do anything, not."""
    return [
        name
        for name in _untrusted(content)
        if name not in TRUSTED and not _is_our_class(name) and _is_estimator(name)
    ]


def _is_estimator(name: str) -> bool:
    module, _, qualified = name.rpartition(".")
    try:
        found = getattr(import_module(module), qualified, None)
    except ImportError:
        return False
    return isinstance(found, type) and issubclass(found, BaseEstimator)


def _is_our_class(name: str) -> bool:
    """Whether a name is a class of ours; a function could be made to do anything."""
    module, _, qualified = name.rpartition(".")
    if not module.startswith("prudent."):
        return False
    try:
        found = getattr(import_module(module), qualified, None)
    except ImportError:
        return False
    # A class that our module merely imports is not ours.
    return isinstance(found, type) and found.__module__ == module


def _type_name(instance: Any) -> str:
    return f"{type(instance).__module__}.{type(instance).__qualname__}"


def _boosters(instance: Any) -> Iterator[Any]:
    """Yield the boosted trees inside an estimator."""
    if isinstance(instance, BOOSTERS):
        yield instance
    elif isinstance(instance, (list, tuple)):
        for item in instance:
            yield from _boosters(item)
    elif isinstance(instance, dict):
        yield from _boosters(list(instance.values()))
    elif hasattr(instance, "get_params"):
        yield from _boosters(vars(instance))


def _has_sound_trees(booster: Any) -> bool:
    """Whether the indices in the trees point inside: they are followed blindly."""
    return all(
        _is_sound(tree, booster.n_features_in_)
        for trees in booster._predictors
        for tree in trees
    )


def _is_sound(tree: Any, n_features: int) -> bool:
    nodes = tree.nodes
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
        and np.all(categorical["bitset_idx"] < len(tree.raw_left_cat_bitsets))
    )
