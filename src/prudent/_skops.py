"""The part of skops that model files use, without the modules that they do not need.

At its import skops imports all of scikit-learn, its test tools and Dask among it, to
list the estimators that it trusts. A stored model needs few of these modules. So here
skops is imported with an empty list, and the list grows by the estimators that a file
names: what is trusted is what the whole list would trust. It also looks through all
modules once for each of some 400 NumPy functions; here it finds them in one pass.

The copy with the short list is ours alone: whoever imports skops elsewhere gets one
with its whole list. Where that has happened already, its copy is used.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from itertools import takewhile
from types import ModuleType
from typing import Any

import numpy as np
import sklearn.utils
from sklearn.base import BaseEstimator

# Parts of module names that scikit-learn's own listing of estimators leaves out.
_NOT_LISTED = frozenset(
    {"tests", "externals", "setup", "conftest", "experimental", "estimator_checks"}
)


def _imported() -> ModuleType:
    """Import `skops.io` with an empty list, and leave no trace of that."""
    if "skops.io" in sys.modules:
        return sys.modules["skops.io"]
    before = {*sys.modules}
    listing = sklearn.utils.all_estimators
    sklearn.utils.all_estimators = _no_estimators
    try:
        return import_module("skops.io")
    finally:
        sklearn.utils.all_estimators = listing
        for name in {*sys.modules} - before:
            if name.partition(".")[0] == "skops":
                del sys.modules[name]


def _no_estimators() -> list[Any]:
    """Stand in for the listing; the search for functions comes after its call."""
    utils: Any = sys.modules["skops.io._utils"]
    utils.whichmodule = partial(_first_module, utils.whichmodule, _modules_of_ufuncs())
    return []


def _modules_of_ufuncs() -> dict[tuple[str, int], str]:
    """First module that has each NumPy function under a name, in order of import."""
    first: dict[tuple[str, int], str] = {}
    for module_name, module in sys.modules.copy().items():
        if module_name in ("__main__", "__mp_main__"):
            continue
        for name, value in getattr(module, "__dict__", {}).copy().items():
            if isinstance(value, np.ufunc):
                first.setdefault((name, id(value)), module_name)
    return first


def _first_module(
    search: Callable[[Any, str], str],
    first: dict[tuple[str, int], str],
    thing: Any,
    name: str,
) -> str:
    """Answer as the search of skops does."""
    if getattr(thing, "__module__", None) is None and (name, id(thing)) in first:
        return first[name, id(thing)]
    return search(thing, name)


_io: Any = _imported()
_trusted_estimators: list[str] = _io._trusted_types.SKLEARN_ESTIMATOR_TYPE_NAMES
dumps = _io.dumps
loads = _io.loads


def untrusted_types(content: bytes) -> list[str]:
    """Full names in an archive that skops with its whole list does not trust."""
    names = list(_io.get_untrusted_types(data=content))
    estimators = [name for name in names if is_listed_estimator(name)]
    if not estimators:
        return names
    # Skops trusts them as classes of objects, but not as functions or as values.
    _trusted_estimators.extend({*estimators}.difference(_trusted_estimators))
    return list(_io.get_untrusted_types(data=content))


def is_listed_estimator(name: str) -> bool:
    """Whether a full name is one of those of `sklearn.utils.all_estimators`.

    These are the estimators that a public module holds, under the name of the module
    that defines them. Nothing outside scikit-learn is imported to answer.
    """
    module, _, qualified = name.rpartition(".")
    parts = module.split(".")
    if parts[0] != "sklearn" or not _NOT_LISTED.isdisjoint(parts):
        return False
    public = ".".join(takewhile(lambda part: not part.startswith("_"), parts))
    try:
        import_module(module)
        estimator = getattr(import_module(public), qualified, None)
    except ImportError:
        return False
    return (
        isinstance(estimator, type)
        and issubclass(estimator, BaseEstimator)
        and estimator is not BaseEstimator
        and not inspect.isabstract(estimator)
        and not qualified.startswith("_")
        and (estimator.__module__, estimator.__qualname__) == (module, qualified)
    )
