"""The calls of Python that get a comparison again, and that use what it recommends."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from keyword import iskeyword
from numbers import Integral
from typing import Any

import numpy as np

from prudent.comparison.result import Comparison
from prudent.core.types import IntArray
from prudent.evaluation.methods import Method, competing, is_usual
from prudent.evaluation.promising import affordable, is_full_conformal, promising
from prudent.evaluation.words import enough, to_be_had
from prudent.rules.wish import parse_promise

# Arguments that are not in the call to get it again, or at its start.
NOT_REPEATED = {"X", "y", "methods", "baselines", "n_jobs", "time_limit"}


def call_again(compare: Callable[..., Any], arguments: Mapping[str, Any]) -> str:
    """The call of `compare` with these arguments, but for methods of one's own.

    What is at its default is left out, but for folds and seed; arrays stand by name.
    """
    defaults = signature(compare).parameters
    given = []
    for name, value in arguments.items():
        if name in NOT_REPEATED:
            continue
        default = defaults[name].default
        is_default = value == default if _is_plain(value) else value is default
        if name in ("cv", "random_state") or not is_default:
            given.append(_setting(name, value))
    return f"prudent.compare({', '.join(['X', 'y', *given])})"


def call_to_use(
    comparison: Comparison,
    methods: Sequence[Method],
    classes: Sequence[Any],
    arguments: Mapping[str, Any],
    *,
    is_prepared: bool,
) -> str | None:
    """The call that makes a model of the row to use, or of what can be had instead.

    Estimators that were given stand by their names, and `classes` are the labels as
    they are. None where there is no such call: without a promise, of subgroups that are
    no columns, and of rows that the comparison itself prepared for a method
    (`is_prepared`).
    """
    had = to_be_had(comparison, arguments["promise"])
    if had is None or not _are_columns(arguments["subgroups"]):
        return None
    used, promise = had
    if used.asked is None:
        return None
    others = [method for method in methods if not method.chooses]
    taken = [method for method in others if method.name == used.method]
    if used.chooses:
        taken = [*competing(others)]
    if is_prepared and not all(method.takes_table for method in taken):
        return None
    behind = [name for name in ("groups", "time") if arguments[name] is not None]
    fit = f".fit({', '.join(['X', 'y', *(f'{name}={name}' for name in behind)])})"
    if used.chooses:
        (choice,) = (method for method in methods if method.chooses)
        # The row that a comparison adds has candidates and folds of its own.
        settings = {} if choice.parameters is None else {"cv": choice.parameters["cv"]}
        listed = None if is_usual(others) else taken
        confidence = arguments["confidence"]
        made = _choice_among(listed, promise, confidence, arguments, **settings)
    else:
        (method,) = taken
        n_methods = len(others)
        counts = np.array(comparison.data.class_counts)
        made = _for_one(method, promise, classes, counts, n_methods, arguments)
    return f"prudent.{made}{fit}"


def _choice_among(
    candidates: Sequence[Method] | None,
    promise: Any,
    confidence: float | None,
    arguments: Mapping[str, Any],
    **given: int,
) -> str:
    """The classifier that chooses among these methods, or one, under the promise.

    None are the usual candidates, which it knows; `given` are other settings.
    """
    listed = [
        f"({method.name!r}, {_variable(method)})"
        if method.own is not None
        else repr(_as_typed(method.name, arguments["methods"]))
        for method in candidates or ()
    ]
    settings = {"promise": promise, "confidence": confidence}
    if arguments["subgroups"] is not None:
        settings["subgroups"] = arguments["subgroups"]
    settings |= {**given, "random_state": arguments["random_state"]}
    texts = [f"[{', '.join(listed)}]"] if listed else []
    texts += [_setting(*pair) for pair in settings.items()]
    return f"BestClassifier({', '.join(texts)})"


def _as_typed(name: str, methods: Any) -> str:
    """A method as it was given: its name, or its dotted path."""
    if isinstance(methods, Mapping):
        return name
    listed = [methods] if isinstance(methods, str) else methods
    paths = [path for path in listed if isinstance(path, str)]
    return next((path for path in paths if path.rpartition(".")[2] == name), name)


def _for_one(
    method: Method,
    promise: Any,
    classes: Sequence[Any],
    counts: IntArray,
    n_methods: int,
    arguments: Mapping[str, Any],
) -> str:
    """What keeps the promise for one of so many methods, of classes of such counts."""
    seed = arguments["random_state"]
    split = arguments["groups"] is not None or arguments["time"] is not None
    wish = parse_promise(promise, classes, confidence=arguments["confidence"])
    assert wish is not None
    model = promising(
        *(method.estimator(seed), wish, None, counts),
        split=split,
        seed=seed,
        n_methods=n_methods,
        subgroups=arguments["subgroups"],
    )
    if is_full_conformal(model):
        return _spelled(model)
    if method.own is not None:
        return _spelled(model, _variable(method))
    if method.competes_with is not None:  # it would not compete as it was compared
        inner = affordable(method.estimator(seed), counts, split=split)
        return _spelled(model, f"prudent.{_spelled(inner)}")
    confidence = wish.confidence
    if confidence is not None:
        confidence = enough(1 - (1 - confidence) / n_methods)
    # Of one there is nothing to choose: few folds do.
    return _choice_among([method], promise, confidence, arguments, cv=2)


def _spelled(model: Any, *around: str) -> str:
    """The call that makes a classifier, around an estimator of this name, if any."""
    defaults = type(model)(None).get_params(deep=False)
    settings = {
        name: value
        for name, value in model.get_params(deep=False).items()
        if name != "estimator" and value != defaults[name]
    }
    if model.confidence is not None:
        settings["confidence"] = enough(model.confidence)
    texts = [*around, *(f"{name}={value!r}" for name, value in settings.items())]
    return f"{type(model).__name__}({', '.join(texts)})"


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | int | float)


def _setting(name: str, value: Any) -> str:
    """An argument of a call; what is no number, text or None stands by its name."""
    is_list = isinstance(value, list | tuple) and all(map(_is_plain, value))
    if value is None or _is_plain(value) or is_list:
        return f"{name}={value!r}"
    return f"{name}={name}"


def _are_columns(subgroups: Any) -> bool:
    """Whether a classifier can find the subgroups in rows to come."""
    if isinstance(subgroups, list | tuple):
        return all(isinstance(item, str | Integral) for item in subgroups)
    return subgroups is None or isinstance(subgroups, str | Integral)


def _variable(method: Method) -> str:
    """What an estimator that was given is called in a call."""
    name = re.sub(r"\W", "_", method.name)
    is_taken = iskeyword(name) or name in ("X", "y", "groups", "time", "prudent")
    return f"model_{name}" if is_taken or not name.isidentifier() else name
