"""The calls of Python that get a comparison again, and that use what it recommends."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from keyword import iskeyword
from numbers import Integral
from typing import Any

from prudent.comparison.result import Comparison
from prudent.evaluation.methods import (
    BASELINES,
    CANDIDATES,
    FOLDS_OF_CHOICE,
    METHODS,
    Method,
    competing,
)
from prudent.evaluation.promising import wrap
from prudent.evaluation.words import enough, reachable, recommended
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
    """The call that makes a model of the row to use, or of the nearest promise.

    Estimators that were given stand by their names, and `classes` are the labels as
    they are. None where there is no such call: without a promise, of subgroups that are
    no columns, of rows that the comparison itself prepared for a method
    (`is_prepared`), and of a single method of prudent's.
    """
    used, promise = recommended(comparison), arguments["promise"]
    if used is None and (nearest := reachable(comparison)) is not None:
        promise = nearest.promise
        used = next(row for row in comparison.rows if row.method == nearest.method)
    if used is None or used.asked is None or not _are_columns(arguments["subgroups"]):
        return None
    taken = [m for m in methods if m.name == used.method]
    if used.chooses:
        taken = [*competing(methods)]
    if is_prepared and not all(method.takes_table for method in taken):
        return None
    behind = [name for name in ("groups", "time") if arguments[name] is not None]
    fit = f".fit({', '.join(['X', 'y', *(f'{name}={name}' for name in behind)])})"
    if used.chooses:
        made = _choice_among(taken, promise, arguments)
    else:
        (method,) = taken
        n_methods = sum(not method.chooses for method in methods)
        made = _classifier_around(method, promise, classes, n_methods, arguments)
    return None if made is None else f"prudent.{made}{fit}"


def _choice_among(
    candidates: Sequence[Method], promise: Any, arguments: Mapping[str, Any]
) -> str | None:
    """The classifier that chooses among these methods under the promise."""
    known = {**METHODS, **BASELINES, **CANDIDATES}
    listed = []
    for method in candidates:
        if method.own is not None:
            listed.append(f"({method.name!r}, {_variable(method)})")
        elif method.name in known:
            listed.append(repr(method.name))
        else:
            return None
    settings = {"promise": promise, "confidence": arguments["confidence"]}
    if arguments["subgroups"] is not None:
        settings["subgroups"] = arguments["subgroups"]
    settings |= {"cv": FOLDS_OF_CHOICE, "random_state": arguments["random_state"]}
    texts = [f"[{', '.join(listed)}]", *(_setting(*pair) for pair in settings.items())]
    return f"BestClassifier({', '.join(texts)})"


def _classifier_around(
    method: Method,
    promise: Any,
    classes: Sequence[Any],
    n_methods: int,
    arguments: Mapping[str, Any],
) -> str | None:
    """The classifier around an estimator that was given, one of so many methods."""
    if method.own is None:
        return None
    wish = parse_promise(promise, classes, confidence=arguments["confidence"])
    assert wish is not None
    wrapped = wrap(
        None,
        wish,
        n_classes=len(classes),
        n_methods=n_methods,
        random_state=arguments["random_state"],
        subgroups=arguments["subgroups"],
    )
    defaults = type(wrapped)(None).get_params(deep=False)
    settings = {
        name: value
        for name, value in wrapped.get_params(deep=False).items()
        if value != defaults[name]
    }
    if wrapped.confidence is not None:
        settings["confidence"] = enough(wrapped.confidence)
    texts = [_variable(method), *(f"{k}={value!r}" for k, value in settings.items())]
    return f"{type(wrapped).__name__}({', '.join(texts)})"


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
