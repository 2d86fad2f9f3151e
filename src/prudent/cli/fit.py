"""`prudent fit`: learn one method on all rows and write a model file."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from prudent.cli.exits import UsageError
from prudent.cli.loading import (
    all_or_sample,
    check_writable,
    drawn_from,
    failing_as_data,
    group_labels,
    look_through,
    note,
    open_data,
    required,
)
from prudent.cli.options import (
    DEFAULT_SAMPLE,
    Columns,
    Confidence,
    Data,
    Groups,
    Normal,
    Quiet,
    Sample,
    Seed,
    Target,
    checked_promise,
    grouped,
    sample_size,
    without_column,
)
from prudent.evaluation.methods import BASELINES, METHODS
from prudent.io.errors import thousands

if TYPE_CHECKING:
    from prudent.evaluation.wishes import Wish
    from prudent.io import Survey, TrainingData

SELECTION_FOLDS = 5
# The method that is a detector by its name; others are, of one class.
DETECTOR = "low-density"
# What `--select cv` tries: the parameter that trades caution for sharpness.
GRIDS: dict[str, dict[str, list[Any]]] = {
    "optimistic": {"radius_scale": [0.1, 0.3, 1.0, 3.0]},
    "minimax": {"covariance": ["empirical", 0.01, 0.1, 0.3]},
    "calibrated": {"learning_rate": [0.03, 0.1, 0.3]},
    "imprecise": {"imprecision": [0.01, 0.1, 0.5, 1.0, 2.0, 5.0]},
}


class Select(StrEnum):
    """Ways to choose parameters."""

    CV = "cv"


@grouped
def fit(
    data: Data,
    method: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help=f"What to fit: {', '.join([*METHODS, *BASELINES])}, the dotted path "
            f"of a class; or a detector: {DETECTOR}, and with --normal or a promise "
            "about false alarms minimax, conformal.",
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Model file. Full conformal prediction keeps its training rows in it.",
        ),
    ],
    columns: Columns,
    target: Target = None,
    normal: Normal = None,
    promise: Annotated[
        str,
        typer.Option(
            metavar="TEXT",
            help="What the model has to promise, as in compare; of a detector 'false "
            "alarm <= 5%'; none: the method as it is.",
        ),
    ] = "none",
    confidence: Confidence = 0.95,
    param: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Set a parameter; may be repeated."),
    ] = None,
    select: Annotated[
        Select | None, typer.Option(help="Choose a parameter by cross-validation.")
    ] = None,
    groups: Groups = None,
    sample: Sample = DEFAULT_SAMPLE,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Fit one method on all rows and write a model file for predict."""
    most_rows = sample_size(sample)
    if method == DETECTOR or normal is not None or promise.startswith("false alarm"):
        _fit_detector(
            *(data, target, normal, columns, method, promise, param or []),
            *(output, most_rows, seed),
            quiet=quiet,
            other_options=groups is not None or select is not None,
        )
        return
    if "." not in method and method not in (*METHODS, *BASELINES):
        known = ", ".join([*METHODS, *BASELINES])
        raise UsageError(f"--method takes one of {known}, got {method[:64]!r}.")
    check_writable(output)
    asked = checked_promise(promise, confidence, detector=False)
    if select is not None and method not in GRIDS:
        raise UsageError(f"--select cv: {method} has no parameter to choose.")
    estimator = built(method, param or [], seed)
    source, target = open_data(
        *(data, target, columns),
        text_columns=() if groups is None else (groups,),
        quiet=quiet,
    )
    found = look_through(
        *(source, required(target, source), without_column(columns, groups)),
        quiet=quiet,
    )
    filling: Any = "mean" if columns.missing == "mean" else "fill"
    with failing_as_data(quiet=quiet):
        if asked is None:
            rows, fitted = _plain(
                estimator, method, select, found, groups, filling, most_rows, seed
            )
        else:
            training, _ = all_or_sample(found, most_rows, seed)
            wish = _with_classes(promise, training, confidence)
            fitted = _promising(
                *(estimator, wish, training, filling, seed),
                together=group_labels(found, groups, training),
            )
            rows = drawn_from(training) or f"{thousands(found.n_rows)} rows"
    from prudent.persistence import save

    save(fitted, output, preparation=found.preparation)
    if found.treatment is not None:
        note(found.treatment, quiet=quiet)
    print(f"{method} on {rows} x {len(found.preparation.names)} features")
    _say_promises(fitted)
    print(f"model: {output} ({output.stat().st_size / 1000:.0f} kB)")


def _fit_detector(
    data: str,
    target: str | None,
    normal: str | None,
    columns: Columns,
    method: str,
    promise: str,
    assignments: list[str],
    output: Path,
    sample: int | None,
    seed: int,
    *,
    quiet: bool,
    other_options: bool,
) -> None:
    """Learn one class (all rows without --target) and write the detector."""
    from prudent.cli.detect import (
        CONFIDENCE,
        FALSE_ALARM,
        FEWEST_ROWS,
        Detector,
        normal_rows,
        save_detector,
    )

    if method not in list(Detector):
        known = ", ".join(Detector)
        raise UsageError(f"detectors are {known}, got --method {method[:64]}.")
    if other_options:
        raise UsageError("--groups and --select are not for detectors.")
    asked = checked_promise(promise, CONFIDENCE, detector=True)
    check_writable(output)
    source, target = open_data(data, target, columns, quiet=quiet)
    if target is None and normal is not None:
        raise UsageError("--normal needs --target, the column that holds it.")
    found = look_through(source, None, columns, handed_along=target, quiet=quiet)
    training, inside, preparation = normal_rows(
        found, target, normal, sample, seed, mean=columns.missing == "mean"
    )
    from prudent.evaluation.detection import build_detector

    rate = FALSE_ALARM if asked is None else asked.allowed
    plain = build_detector(method, rate, n_rows=FEWEST_ROWS, watched=False)
    detector = build_detector(
        method,
        rate,
        n_rows=int(inside.sum()),
        watched=True,
        preparation=preparation,
        parameters=_read_parameters(plain, method, assignments),
        random_state=seed,
    )
    with failing_as_data(quiet=quiet):
        detector.fit(training.X[inside])
    if found.treatment is not None:
        note(found.treatment, quiet=quiet)
    rows = thousands(int(inside.sum()))
    print(f"{method} on {rows} normal rows x {len(found.preparation.names)} features")
    save_detector(found, detector, normal, output)


def built(method: str, assignments: list[str], seed: int) -> Any:
    """Return the estimator with the parameters that were given."""
    from prudent.evaluation.methods import choose

    try:
        (chosen,) = choose([method], ())
        estimator = chosen.estimator(seed)
    except ValueError as error:
        raise UsageError(str(error)) from error
    return estimator.set_params(**_read_parameters(estimator, method, assignments))


def _read_parameters(
    estimator: Any, method: str, assignments: list[str]
) -> dict[str, Any]:
    """Values of the parameters that were given as NAME=VALUE."""
    from prudent.evaluation.methods import read_value

    known = sorted(estimator.get_params(deep=False))
    parameters = {}
    for assignment in assignments:
        name, equals, value = assignment.removeprefix(f"{method}.").partition("=")
        if not equals or name not in known:
            raise UsageError(
                f"--param takes NAME=VALUE with a name among {', '.join(known)}, "
                f"got {assignment[:64]!r}."
            )
        parameters[name] = read_value(value)
    return parameters


def _with_classes(promise: str, training: TrainingData, confidence: float) -> Wish:
    """The promise with the labels of the table."""
    import numpy as np

    from prudent.evaluation.wishes import parse_promise

    assert training.y is not None
    wish = parse_promise(promise, np.unique(training.y).tolist(), confidence=confidence)
    assert wish is not None
    return wish


def _promising(
    estimator: Any,
    wish: Wish,
    training: TrainingData,
    filling: Any,
    seed: int,
    *,
    together: Any,
) -> Any:
    """Return the method fitted so that it makes the promise asked for."""
    from prudent.evaluation.asked import promising
    from prudent.evaluation.table import preprocessing
    from prudent.evaluation.wishes import takes_groups

    preparation = preprocessing(
        training.X, training.preparation.is_text, missing=filling
    )
    wrapped = promising(
        estimator,
        wish,
        preparation,
        training.y,
        grouped=together is not None,
        seed=seed,
    )
    given = {}
    if together is not None and takes_groups(wrapped):
        given["groups"] = together
    return wrapped.fit(training.X, training.y, **given)


def _plain(
    estimator: Any,
    method: str,
    select: Select | None,
    found: Survey,
    groups: str | None,
    filling: Any,
    sample: int | None,
    seed: int,
) -> tuple[str, Any]:
    """Fit, and say on which rows: all of them if they fit or moments suffice."""
    from sklearn.pipeline import Pipeline

    from prudent.evaluation.table import in_front, preprocessing
    from prudent.evaluation.wishes import takes_groups

    everything = f"{thousands(found.n_rows)} rows"
    by_moments = select is None and hasattr(estimator, "fit_moments")
    if by_moments and found.holds_numbers:
        moments = found.moments(**estimator._moment_options())
        return everything, estimator.fit_moments(moments)
    training, _ = all_or_sample(found, sample, seed)
    preparation = preprocessing(
        training.X, training.preparation.is_text, missing=filling
    )
    if by_moments and preparation is not None:
        # What fills and encodes is learned from these rows, the method from all.
        preparation.fit(training.X)
        moments = found.moments(preparation.transform, **estimator._moment_options())
        steps = [
            ("preparation", preparation),
            ("method", estimator.fit_moments(moments)),
        ]
        return everything, Pipeline(steps)
    model = in_front(preparation, estimator)
    if select is not None:
        model = _selected(model, method, training.X, training.y)
    else:
        name = None if groups is None else takes_groups(model)
        given = {} if name is None else {name: group_labels(found, groups, training)}
        model.fit(training.X, training.y, **given)
    return drawn_from(training) or everything, model


def _selected(model: Any, method: str, X: Any, y: Any) -> Any:
    """Return the model of least error over folds, fitted on all rows."""
    from sklearn.model_selection import GridSearchCV, StratifiedKFold
    from sklearn.pipeline import Pipeline

    from prudent.metrics import u80_scorer

    folds = StratifiedKFold(SELECTION_FOLDS, shuffle=True, random_state=0)
    # The precise decision of the imprecise method does not depend on its parameter.
    scoring = u80_scorer if method == "imprecise" else "accuracy"
    prefix = "method__" if isinstance(model, Pipeline) else ""
    grid = {prefix + name: values for name, values in GRIDS[method].items()}
    chosen = GridSearchCV(model, grid, scoring=scoring, cv=folds).fit(X, y)
    print(f"chosen by {SELECTION_FOLDS}-fold cross-validation: {chosen.best_params_}")
    return chosen.best_estimator_


def _say_promises(fitted: Any) -> None:
    from sklearn.pipeline import Pipeline

    last = fitted[-1] if isinstance(fitted, Pipeline) else fitted
    promises = getattr(last, "guarantees_", ())
    for promise in promises:
        print(promise)
    if not promises:
        print("No promise.")
