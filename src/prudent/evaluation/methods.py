"""The methods that can be compared: name and how to build the estimator.

A family is imported when its method is built, so that one that cannot be imported
costs its own row only.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import Any

PATHS = {
    "optimistic": "prudent.optimistic.OptimisticScoreClassifier",
    "minimax": "prudent.minimax.MinimaxProbabilityClassifier",
    "calibrated": "prudent.calibration.RiskCalibratedClassifier",
    "imprecise": "prudent.imprecise.ImpreciseDiscriminantAnalysis",
    "rejection": "prudent.evaluation.estimators.ClasswiseRejector",
    "conformal": "prudent.conformal.ConformalClassifier",
}
# Of many rows one fold chooses the updates of a calibration, as well as all and sooner.
SETTINGS: dict[str, dict[str, Any]] = {"calibrated": {"cv": None}}
DEFAULT_PROMISE = "coverage >= 90% in every class"


@dataclass(frozen=True)
class Method:
    """A line of the comparison."""

    name: str  # as typed on the command line
    build: Callable[[int | None], Any]  # from a random state, an unfitted estimator
    is_baseline: bool = False  # there for reference only
    parameters: Mapping[str, Any] | None = None  # set on the estimator
    # Why its sets may hold every class, and what makes them smaller.
    why_undecided: str | None = None
    # The parameter that trades caution for sharpness, with values to choose among;
    # whether it changes the sets only, so that they are what it is chosen by.
    grid: Mapping[str, Sequence[Any]] | None = None
    grid_is_for_sets: bool = False
    # Whether it is among the candidates of a choice by default, and with which
    # parameters.
    competes: bool = True
    competes_with: Mapping[str, Any] | None = None
    # Whether it chooses among others inside its training part, and so uses nothing of a
    # table of them.
    chooses: bool = False
    own: Any = None  # the estimator, where one was given, which no command can name
    # Whether it takes rows as they were given, with nothing in front of it.
    takes_table: bool = False

    def estimator(self, random_state: int | None) -> Any:
        """Return an estimator that is not fitted yet."""
        estimator = self.build(random_state)
        given = self.parameters or {}
        return estimator.set_params(
            **{parameter_name(estimator, name): value for name, value in given.items()}
        )


def parameter_name(estimator: Any, name: str) -> str:
    """What `set_params` calls a parameter; of a pipeline first those of its last step.

    Who names a method by one word knows nothing of the pipeline around it. A name that
    is no parameter is a ValueError.
    """
    last_name, last = getattr(estimator, "steps", [("", estimator)])[-1]
    if name in last.get_params():
        return f"{last_name}__{name}" if last_name else name
    if name in estimator.get_params():
        return name
    listed = ", ".join(sorted(last.get_params(deep=False)))
    raise ValueError(
        f"{type(last).__name__} has no parameter {name[:64]!r}: choose among {listed}."
    )


def _class(path: str) -> Any:
    """A class, given by its module and name."""
    module, _, name = path.rpartition(".")
    return getattr(import_module(module), name)


def _instance(path: str, random_state: int | None, **settings: Any) -> Any:
    """An estimator of a class, given by its module and name."""
    estimator = _class(path)(**settings)
    if "random_state" in estimator.get_params():
        estimator.set_params(random_state=random_state)
    return estimator


def _copy(estimator: Any, random_state: int | None) -> Any:
    from sklearn.base import clone

    return clone(estimator)


def _majority(random_state: int | None) -> Any:
    from sklearn.dummy import DummyClassifier

    return DummyClassifier(strategy="prior")


def _lda(random_state: int | None) -> Any:
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    return LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")


def _qda(random_state: int | None) -> Any:
    from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from prudent.evaluation.estimators import ShrunkTowardsIdentity

    # Regularised as a user would: a real table often has a singular class.
    discriminant = QuadraticDiscriminantAnalysis(
        solver="eigen", covariance_estimator=ShrunkTowardsIdentity()
    )
    return make_pipeline(StandardScaler(), discriminant)


def _logistic(random_state: int | None) -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))


def _boosting(random_state: int | None) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(random_state=random_state)


def _boosting_early_stopping(random_state: int | None) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    # As many trees as a tenth of the rows that it is fitted to asks for.
    return HistGradientBoostingClassifier(
        learning_rate=0.05,
        max_iter=1000,
        early_stopping=True,
        n_iter_no_change=20,
        random_state=random_state,
    )


PROPERTIES: dict[str, dict[str, Any]] = {
    "optimistic": {
        "why_undecided": "its balls of moments overlap, for the rows are few for so "
        "many features; make them smaller with --param optimistic.radius_scale=0.03",
        "grid": {"radius_scale": [0.1, 0.3, 1.0, 3.0]},
    },
    "minimax": {
        "why_undecided": "its sets cover each class under every law with its moments, "
        "which no set does at 95 % unless the classes lie far apart; ask for less with "
        "predict_set(X, level=0.3)",
        "grid": {"covariance": ["empirical", 0.01, 0.1, 0.3]},
    },
    "calibrated": {"grid": {"learning_rate": [0.03, 0.1, 0.3]}},
    "conformal": {"competes_with": {"model": "gaussian"}},
    "majority": {"competes": False},
    "imprecise": {
        "why_undecided": "its boxes of means overlap, for the rows of a class are few; "
        "make them smaller with --param imprecise.imprecision=0.1",
        "grid": {"imprecision": [0.01, 0.1, 0.5, 1.0, 2.0, 5.0]},
        "grid_is_for_sets": True,
    },
}
METHODS = {
    name: Method(
        name,
        partial(_instance, path, **SETTINGS.get(name, {})),
        **PROPERTIES.get(name, {}),
    )
    for name, path in PATHS.items()
}
BASELINES = {
    name: Method(name, build, is_baseline=True, **PROPERTIES.get(name, {}))
    for name, build in (
        ("majority", _majority),
        ("logistic", _logistic),
        ("lda", _lda),
        ("qda", _qda),
        ("boosting", _boosting),
    )
}

# A practitioner's boosting: the number of its trees is chosen within the rows that it
# is fitted to.
CANDIDATES = {
    "boosting_early_stopping": Method(
        "boosting_early_stopping", _boosting_early_stopping, is_baseline=True
    ),
}
# Folds of a choice that is itself made in every fold of a comparison.
FOLDS_OF_CHOICE = 3
# What chooses among candidates inside its training part.
CHOICES = {
    "best": Method(
        "best",
        partial(_instance, "prudent.evaluation.choice.ChosenClassifier"),
        chooses=True,
    )
}


def is_usual(methods: Sequence[Method]) -> bool:
    """Whether these are the methods that are compared by default, as they are."""
    known = {**METHODS, **BASELINES}
    usual = all(known.get(method.name) == method for method in methods)
    return usual and len(methods) == len(known)


def competing(methods: Sequence[Method]) -> tuple[Method, ...]:
    """Those of the methods that a choice is among."""
    return tuple(m for m in methods if m.competes and not m.chooses)


def best_among(methods: Sequence[Method], time_limit: float | None = None) -> Method:
    """What chooses among these methods; among the usual candidates if it is all."""
    (choice,) = CHOICES.values()
    if choice.name in [method.name for method in methods]:
        raise ValueError(
            f"{choice.name!r} is the name of the row that chooses among the methods; "
            "give yours another name, or leave that row out."
        )
    chosen = None if is_usual(methods) else competing(methods)
    settings = {"cv": FOLDS_OF_CHOICE, "time_limit": time_limit}
    return replace(choice, parameters={"estimators": chosen, **settings})


def candidates(estimators: Any = None) -> tuple[Method, ...]:
    """What may be chosen for a promise, as in `choose`; None: what is compared.

    These are all methods and references but the majority, and boosting with early
    stopping. The Gaussian model stands for conformal prediction, whose sets are made
    by the wrapper.
    """
    if estimators is None:
        known = {**METHODS, **BASELINES, **CANDIDATES}.values()
        listed = tuple(method for method in known if method.competes)
    else:
        listed = choose(estimators, None, argument="estimators")
    return tuple(
        replace(
            method,
            parameters={**(method.parameters or {}), **(method.competes_with or {})},
        )
        for method in listed
    )


def choose(
    methods: Any,
    baselines: Any,
    parameters: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    argument: str = "methods",
) -> tuple[Method, ...]:
    """Methods and baselines, in the order given; "all" means all of prudent's.

    `methods` may be a mapping from names to estimators, or names, dotted paths of
    classes and pairs of a name and an estimator; `parameters` are to be set, by method.
    Without `baselines` (None) there are only methods.
    An unknown or repeated name, or nothing at all, is a ValueError, which calls
    `methods` by the name of the caller's `argument`.
    """
    if isinstance(methods, Mapping):
        methods = list(methods.items())
    if isinstance(methods, str):
        methods = list(METHODS) if methods == "all" else [methods]
    if isinstance(baselines, str):
        baselines = [baselines]
    chosen = [
        *(_method(wanted, argument) for wanted in methods),
        *(_known("baselines", name, BASELINES) for name in baselines or ()),
    ]
    if not chosen:
        if baselines is None:
            raise ValueError(f"`{argument}` names no method: give at least one.")
        raise ValueError("nothing to compare: choose at least one method or baseline.")
    called = [method.name for method in chosen]
    repeated = sorted({name for name in called if called.count(name) > 1})
    if repeated:
        also = "" if baselines is None else " and `baselines`"
        raise ValueError(f"`{argument}`{also} repeat a name: {repeated}.")
    given = dict(parameters or {})
    unknown = [name for name in given if name not in called]
    if unknown:
        raise ValueError(
            f"parameters are given for {unknown[0]!r}, which is not among {called}."
        )
    return tuple(
        replace(method, parameters=given.get(method.name, method.parameters))
        for method in chosen
    )


def _method(wanted: Any, argument: str) -> Method:
    """A method from its name, its dotted path, or a name and an estimator."""
    if isinstance(wanted, Method):
        return wanted
    if isinstance(wanted, str):
        if "." in wanted:
            return dotted(wanted)
        known = {**METHODS, **BASELINES, **CANDIDATES, **CHOICES}
        return _known(argument, wanted, known)
    from sklearn.frozen import FrozenEstimator

    try:
        name, estimator = wanted
    except (TypeError, ValueError, AttributeError):  # a frozen one has no items
        name, estimator = None, wanted
    if not isinstance(name, str) or not hasattr(estimator, "fit"):
        raise ValueError(
            f"`{argument}` takes names, dotted paths, and pairs of a name and an "
            f"estimator, got {wanted!r}."
        )
    if isinstance(estimator, FrozenEstimator):
        raise ValueError(
            f"`{argument}`: {name!r} is frozen, and every method is fitted anew to the "
            "rows of each fold: give the estimator without `FrozenEstimator`; "
            "`prudent.certify` holds a fitted model to rows that it has not seen."
        )
    return Method(name, partial(_copy, estimator), own=estimator)


def on_rows_as_given(methods: Sequence[Method], head: Any) -> tuple[Method, ...]:
    """The methods; own ones that look for columns take rows like those of `head`.

    It is the data frame that was given, or the array with words, without its rows; None
    of numbers alone.
    """
    from prudent.estimator_tools.labelled_rows import as_given

    taken = []
    for method in methods:
        if method.own is not None and head is not None:
            ready = as_given(head, method.own)
            if ready is not method.own:
                build = partial(_copy, ready)
                method = replace(method, build=build, takes_table=True)
        taken.append(method)
    return tuple(taken)


def dotted(path: str) -> Method:
    """Method of a class that is not ours, by its dotted path; else ValueError."""
    try:
        named = _class(path)
    except (ImportError, AttributeError, ValueError):
        named = None
    if not (isinstance(named, type) and hasattr(named, "fit")):
        raise ValueError(
            f"{path!r} is no class of a classifier; write it like "
            "sklearn.ensemble.RandomForestClassifier."
        )
    return Method(path.rpartition(".")[2], partial(_instance, path))


def read_value(text: str) -> Any:
    """Read the value of a parameter: a Python number, word, tuple or None."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _known(argument: str, name: Any, known: Mapping[str, Method]) -> Method:
    if name not in known:
        listed: Sequence[str] = list(METHODS if argument == "methods" else known)
        raise ValueError(f"`{argument}` must be names among {listed}, got {name!r}.")
    return known[name]
