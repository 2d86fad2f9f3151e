"""`prudent fit`: learn one method on all rows and write a model file."""

from __future__ import annotations

import ast
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
    look_through,
    open_data,
    required,
)
from prudent.cli.options import (
    DEFAULT_SAMPLE,
    Columns,
    Data,
    Quiet,
    Reading,
    Sample,
    Seed,
    Target,
    grouped,
    sample_size,
)
from prudent.io.errors import thousands

if TYPE_CHECKING:
    from prudent.io import Survey

__all__ = ["Method", "Select", "fit"]

SELECTION_FOLDS = 5
# What `--select cv` tries: the parameter that trades caution for sharpness.
GRIDS = {
    "optimistic": {"radius_scale": [0.1, 0.3, 1.0, 3.0]},
    "minimax": {"covariance": ["empirical", 0.01, 0.1, 0.3]},
    "calibrated": {"learning_rate": [0.03, 0.1, 0.3]},
    "imprecise": {"imprecision": [0.01, 0.1, 0.5, 1.0, 2.0, 5.0]},
}


class Method(StrEnum):
    """Methods that can be fitted."""

    OPTIMISTIC = "optimistic"
    MINIMAX = "minimax"
    CALIBRATED = "calibrated"
    IMPRECISE = "imprecise"
    REJECTION = "rejection"


class Select(StrEnum):
    """Ways to choose parameters."""

    CV = "cv"


@grouped
def fit(
    data: Data,
    method: Annotated[Method, typer.Option(help="What to fit.")],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="Model file.")
    ],
    columns: Columns,
    reading: Reading,
    target: Target = None,
    param: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Set a parameter; may be repeated."),
    ] = None,
    select: Annotated[
        Select | None, typer.Option(help="Choose a parameter by cross-validation.")
    ] = None,
    sample: Sample = DEFAULT_SAMPLE,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Fit one method on all rows and write a model file for predict."""
    most_rows = sample_size(sample)
    check_writable(output)
    source, target = open_data(data, target, reading, quiet=quiet)
    found = look_through(source, required(target, source), columns, quiet=quiet)
    from prudent.comparison.methods import METHODS
    from prudent.persistence import save

    estimator = METHODS[method].build(seed)
    estimator.set_params(**_parameters(param or [], estimator))
    with failing_as_data(quiet=quiet):
        rows, estimator = _fitted(estimator, method, select, found, most_rows, seed)
    save(estimator, output, preparation=found.preparation)
    print(f"{method} on {rows} x {len(found.preparation.feature_names)} features")
    for promise in estimator.guarantees_:
        print(promise)
    if not estimator.guarantees_:
        print("No promise.")
    print(f"model: {output} ({output.stat().st_size / 1000:.0f} kB)")


def _fitted(
    estimator: Any,
    method: Method,
    select: Select | None,
    found: Survey,
    sample: int | None,
    seed: int,
) -> tuple[str, Any]:
    """Fit, and say on which rows: all of them if they fit or moments suffice."""
    everything = f"{thousands(found.n_rows)} rows"
    if select is None and hasattr(estimator, "fit_moments"):
        moments = found.moments(**estimator._moment_options())
        return everything, estimator.fit_moments(moments)
    training, _ = all_or_sample(found, sample, seed)
    if select is None:
        estimator.fit(training.X, training.y)
    else:
        estimator = _selected(estimator, method, training.X, training.y)
    return drawn_from(training) or everything, estimator


def _parameters(assignments: list[str], estimator: Any) -> dict[str, Any]:
    """Read NAME=VALUE, the value as a Python number, word, tuple or None."""
    known = sorted(estimator.get_params(deep=False))
    parameters = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals or name not in known:
            raise UsageError(
                f"--param takes NAME=VALUE with a name among {', '.join(known)}, "
                f"got {assignment[:64]!r}."
            )
        try:
            parameters[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            parameters[name] = value
    return parameters


def _selected(estimator: Any, method: Method, X: Any, y: Any) -> Any:
    """Return the estimator of least error over folds, fitted on all rows."""
    from sklearn.model_selection import GridSearchCV, StratifiedKFold

    from prudent.metrics import u80_scorer

    if method not in GRIDS:
        raise UsageError(f"--select cv: {method} has no parameter to choose.")
    folds = StratifiedKFold(SELECTION_FOLDS, shuffle=True, random_state=0)
    # The precise decision of the imprecise method does not depend on its parameter.
    scoring = u80_scorer if method is Method.IMPRECISE else "accuracy"
    search = GridSearchCV(estimator, GRIDS[method], scoring=scoring, cv=folds)
    chosen = search.fit(X, y)
    print(f"chosen by {SELECTION_FOLDS}-fold cross-validation: {chosen.best_params_}")
    return chosen.best_estimator_
