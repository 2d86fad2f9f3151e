"""`prudent fit`: learn one method on all rows and write a model file."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from prudent.cli.detect import (
    CONFIDENCE,
    FALSE_ALARM,
    FEWEST_ROWS,
    Detector,
    NormalRows,
    read_normal,
    save_detector,
)
from prudent.cli.exits import CommandError, ExitCode, UsageError
from prudent.cli.loading import (
    all_or_sample,
    drawn_from,
    failing_as_data,
    fingerprint,
    group_labels,
    note,
    survey,
)
from prudent.cli.options import (
    DEFAULT_SAMPLE,
    Columns,
    Confidence,
    Data,
    Groups,
    Normal,
    Param,
    Quiet,
    Sample,
    Seed,
    Target,
    checked_promise,
    grouped,
    sample_size,
)
from prudent.cli.output import check_writable
from prudent.evaluation.methods import BASELINES, METHODS
from prudent.io.errors import thousands

if TYPE_CHECKING:
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
    average: Annotated[
        bool,
        typer.Option(
            "--average",
            help="Promise a coverage on average over training samples, as compare "
            "does: smaller sets, and nothing that monitor can watch.",
        ),
    ] = False,
    param: Param = None,
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
        if method not in list(Detector):
            known = ", ".join(Detector)
            raise UsageError(f"detectors are {known}, got --method {method[:64]}.")
        if groups is not None or select is not None:
            raise UsageError("--groups and --select are not for detectors.")
        alarms = checked_promise(promise, CONFIDENCE, detector=True)
        check_writable(output)
        rows = read_normal(data, target, normal, columns, most_rows, seed, quiet=quiet)
        rate = FALSE_ALARM if alarms is None else alarms.allowed
        detector = _detector(method, rate, param or [], rows, seed)
        with failing_as_data(quiet=quiet):
            detector.fit(rows.training.X[rows.inside])
        _say_treatment(rows.found, quiet=quiet)
        said = f"{thousands(rows.n_normal)} normal rows"
        print(f"{method} on {said} x {len(rows.found.preparation.names)} features")
        save_detector(rows.found, detector, normal, output, data)
        return
    if "." not in method and method not in (*METHODS, *BASELINES):
        known = ", ".join([*METHODS, *BASELINES])
        raise UsageError(f"--method takes one of {known}, got {method[:64]!r}.")
    check_writable(output)
    asked = checked_promise(promise, confidence, detector=False)
    if select is not None and method not in GRIDS:
        raise UsageError(f"--select cv: {method} has no parameter to choose.")
    estimator = built(method, param or [], seed)
    found = survey(data, target, columns, groups=groups, quiet=quiet)
    filling: Any = "mean" if columns.missing == "mean" else "fill"
    table = Rows(found, groups, most_rows, seed, filling)
    with failing_as_data(quiet=quiet):
        if asked is None:
            said, fitted = _plain(estimator, method, select, table)
        else:
            said, fitted = _promising(
                *(estimator, promise, confidence, table), watched=not average
            )
    if asked is not None and not fitted.guarantees_:
        raise CommandError(
            f"{method} cannot promise {promise!r} on these rows: it would answer none. "
            "Ask for less, give more rows, or fit it with --promise none",
            ExitCode.DATA,
        )
    if asked is not None and asked.kind == "coverage" and _is_certain(fitted):
        note(
            f"the promise is about this very model, with confidence {CONFIDENCE:g}, so "
            "that prudent monitor can watch it: it decides fewer rows than compare "
            "shows, whose promise is on average (--average makes that one)",
            quiet=quiet,
        )
    from prudent.persistence import save

    digest = fingerprint(data) or ""
    save(fitted, output, preparation=found.preparation, table=digest)
    _say_treatment(found, quiet=quiet)
    print(f"{method} on {said} x {len(found.preparation.names)} features")
    _say_promises(fitted)
    print(f"model: {output} ({output.stat().st_size / 1000:.0f} kB)")


def _detector(
    method: str, rate: float, assignments: list[str], rows: NormalRows, seed: int
) -> Any:
    """A detector whose own parameters are set as they were given."""
    from prudent.evaluation.detection import build_detector

    plain = build_detector(method, rate, n_rows=FEWEST_ROWS, watched=False)
    return build_detector(
        *(method, rate),
        n_rows=rows.n_normal,
        watched=True,
        preparation=rows.preparation,
        parameters=_read_parameters(plain, method, assignments),
        random_state=seed,
    )


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


@dataclass(frozen=True)
class Rows:
    """The table to fit to, not read yet, and how it is to be read."""

    found: Survey
    groups: str | None
    sample: int | None
    seed: int
    filling: Any  # "fill" or "mean"

    def read(self) -> tuple[TrainingData, Any, Any, str]:
        """Rows, what prepares them, the group of each, and how many they are of."""
        from prudent.evaluation.table import preprocessing

        training, _ = all_or_sample(self.found, self.sample, self.seed)
        preparation = preprocessing(
            training.X, training.preparation.is_text, missing=self.filling
        )
        together = group_labels(self.found, self.groups, training)
        said = drawn_from(training) or f"{thousands(self.found.n_rows)} rows"
        return training, preparation, together, said


def _is_certain(fitted: Any) -> bool:
    return any(promise.confidence is not None for promise in fitted.guarantees_)


def _promising(
    estimator: Any, promise: str, confidence: float, rows: Rows, *, watched: bool
) -> tuple[str, Any]:
    """Fit the method so that it makes the promise asked for, and say on which rows."""
    import numpy as np

    from prudent.evaluation.asked import promising
    from prudent.evaluation.wishes import groups_for, parse_promise

    training, preparation, together, said = rows.read()
    X, y = training.X, training.y
    assert y is not None
    classes, counts = np.unique(y, return_counts=True)
    wish = parse_promise(promise, classes.tolist(), confidence=confidence)
    assert wish is not None
    wrapped = promising(
        *(estimator, wish, preparation, counts),
        grouped=together is not None,
        seed=rows.seed,
        watched=watched,
    )
    return said, wrapped.fit(X, y, **groups_for(wrapped, together))


def _plain(
    estimator: Any, method: str, select: Select | None, rows: Rows
) -> tuple[str, Any]:
    """Fit, and say on which rows: all of them if they fit or moments suffice."""
    from sklearn.pipeline import Pipeline

    from prudent.evaluation.table import in_front
    from prudent.evaluation.wishes import groups_for

    found, everything = rows.found, f"{thousands(rows.found.n_rows)} rows"
    by_moments = select is None and hasattr(estimator, "fit_moments")
    if by_moments and found.holds_numbers:
        moments = found.moments(**estimator._moment_options())
        return everything, estimator.fit_moments(moments)
    training, preparation, together, said = rows.read()
    X, y = training.X, training.y
    if by_moments and preparation is not None:
        # What fills and encodes is learned from these rows, the method from all.
        preparation.fit(X)
        moments = found.moments(preparation.transform, **estimator._moment_options())
        method_step = ("method", estimator.fit_moments(moments))
        return everything, Pipeline([("preparation", preparation), method_step])
    model = in_front(preparation, estimator)
    if select is not None:
        return said, _selected(model, method, X, y)
    return said, model.fit(X, y, **groups_for(model, together))


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


def _say_treatment(found: Survey, *, quiet: bool) -> None:
    if found.treatment is not None:
        note(found.treatment, quiet=quiet)


def _say_promises(fitted: Any) -> None:
    from sklearn.pipeline import Pipeline

    last = fitted[-1] if isinstance(fitted, Pipeline) else fitted
    promises = getattr(last, "guarantees_", ())
    for promise in promises:
        print(promise)
    if not promises:
        print("No promise.")
