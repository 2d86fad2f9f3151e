"""`prudent fit`: learn one method on all rows and write a model file."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from prudent.cli import options
from prudent.cli.compare import labelled_rows, with_parameters
from prudent.cli.detect import (
    CONFIDENCE,
    DETECTORS,
    FALSE_ALARM,
    FEWEST_ROWS,
    NormalRows,
    certainty,
    detector_for,
    read_normal,
    save_detector,
)
from prudent.cli.loading import (
    all_or_sample,
    columns_in,
    drawn_from,
    failing_as_data,
    items_of,
    memberships,
    survey,
)
from prudent.cli.models import (
    check_storable,
    last_step,
    of_a_table,
    save_model,
    say_written,
    table_columns,
)
from prudent.cli.output import (
    UNKNOWN_WORDS,
    CommandError,
    ExitCode,
    Progress,
    UsageError,
    ending,
    native_output_left_out,
    note,
)
from prudent.evaluation.methods import BASELINES, CANDIDATES, CHOICES, METHODS, Method
from prudent.io.errors import counted, percent, thousands

if TYPE_CHECKING:
    from prudent.core.guarantee import Guarantee
    from prudent.io import Survey, TrainingData
    from prudent.rules.wish import Wish

    # Rows, what prepares them, and how many they are of.
    Read = Callable[[], tuple[TrainingData, Any, str]]

SELECTION_FOLDS = 5
# Times the least held-out rows of a promise with confidence, for it to be useful.
ENOUGH = 2
# Rows of the table that tell whether a model's sets say anything.
MOST_LOOKED_AT = 100
KNOWN = (*METHODS, *BASELINES, *CANDIDATES, *CHOICES)
# The method that is a detector by its name; others are, of one class.
DETECTOR = "low-density"


@options.grouped
def fit(
    data: options.Data,
    *,
    method: Annotated[
        str,
        options.value(
            "NAME",
            f"What to fit: {', '.join(KNOWN)}, the dotted path "
            "of a class (best: the most useful of them under the promise, chosen by "
            f"rows that the promise does not rest on); or a detector: {DETECTOR}, and "
            "with --normal or a promise about false alarms minimax, conformal.",
        ),
    ],
    output: Annotated[
        Path,
        options.output(
            "Model file. Full conformal prediction keeps its training rows in it."
        ),
    ],
    target: options.Target = None,
    normal: options.Normal = None,
    promise: Annotated[
        str,
        options.value(
            "TEXT",
            "What the model has to promise, as in compare; of a detector 'false "
            "alarm <= 5%'; none: the method as it is.",
        ),
    ] = "none",
    by: options.By = None,
    confidence: options.Confidence = None,
    average: Annotated[
        bool,
        typer.Option(
            "--average",
            help="Promise a coverage on average over many training samples, as compare "
            "does: more rows are decided, but this one model may cover less for as "
            "long as it is used, and monitor finds out only where it covers much less, "
            "or, where no rows were held out, not at all. Without it this very model "
            "keeps the coverage, with --confidence, 0.95 where the rows allow.",
        ),
    ] = False,
    param: options.Param = None,
    select: Annotated[
        Literal["cv"] | None,
        typer.Option(help="Choose a parameter by cross-validation."),
    ] = None,
    candidates: Annotated[
        str | None,
        options.value(
            "NAME,NAME",
            "What --method best chooses among, names or dotted paths; without it "
            "all that compare compares, and boosting that stops early.",
        ),
    ] = None,
    time_limit: Annotated[
        float | None,
        options.value(
            "SECONDS",
            "For --method best to judge candidates in.",
            callback=options.check_seconds,
        ),
    ] = None,
    among: Annotated[
        int,
        options.value(
            "M",
            "Methods of a table of the same rows that this one was picked from: "
            "the promise holds for all of them at once.",
        ),
    ] = 1,
    groups: options.Groups = None,
    time: options.Time = None,
    min_class_rows: options.MinClassRows = 1,
    sample: options.Sample = options.DEFAULT_SAMPLE,
    seed: options.Seed = 0,
    trusted: options.Trusted = None,
    quiet: options.Quiet = False,
    columns: options.Columns,
) -> None:
    """Fit one method on all rows and write a model file for predict."""
    options.refuse_both(confidence, average=average)
    most_rows = options.sample_size(sample)
    if method == DETECTOR or normal is not None or options.is_of_detector(promise):
        _refuse_for_detectors(
            method,
            {
                "--groups, --select and --min-class-rows are": groups is not None
                or select is not None
                or min_class_rows > 1,
                "--by is": by is not None,
                "--time is": time is not None,
                "--among, --candidates and --time-limit are": among != 1
                or candidates is not None
                or time_limit is not None,
            },
        )
        alarms = options.checked_promise(promise, confidence, detector=True)
        rows = read_normal(data, target, normal, columns, most_rows, seed)
        rate = FALSE_ALARM if alarms is None else alarms.allowed
        detector = _fitted_detector(
            method, rate, param or [], rows, seed, confidence, average=average
        )
        rows_in_words = f"{thousands(rows.n_normal)} normal rows"
        drawn = drawn_from(rows.training)
        if drawn is not None:
            rows_in_words += f" of {drawn}"
        _say_fitted(method, rows_in_words, rows.surveyed)
        save_detector(detector, normal, output, data, average=average)
        return
    if "." not in method and method not in KNOWN:
        known = ", ".join(KNOWN)
        raise UsageError(f"--method takes one of {known}, got {method[:64]!r}.")
    items = items_of(by)
    wish = options.checked_promise(promise, confidence, detector=False, by=items)
    _check_wish(wish, average=average, among=among)
    known_method = {**METHODS, **BASELINES}.get(method)
    if select is not None and (known_method is None or known_method.grid is None):
        raise UsageError(f"--select cv: {method} has no parameter to choose.")
    if time is not None and wish is None and method not in CHOICES:
        raise UsageError("--time says which rows prove a promise: give --promise, too.")
    if method in CHOICES:
        estimator = _choice(candidates, param, time_limit, seed)
    elif candidates is not None or time_limit is not None:
        raise UsageError("--candidates and --time-limit are for --method best.")
    else:
        estimator = built(method, param or [], seed)
    import numpy as np

    from prudent.estimator_tools.labelled_rows import preprocessing
    from prudent.rules.wish import parse_promise

    check_storable(estimator, trusted or ())
    surveyed = survey(data, target, columns, groups, min_class_rows, time)
    parts = () if wish is None else wish.subgroups
    columns_by = columns_in(surveyed.source, parts, surveyed.label)

    def read() -> tuple[TrainingData, Any, str]:
        training, _ = all_or_sample(surveyed, most_rows, seed, groups, columns_by, time)
        preparation = preprocessing(training.X, columns.filling)
        return training, preparation, drawn_from(training) or _all_rows(surveyed)

    with failing_as_data(), _progress_of_choice(estimator, quiet=quiet):
        if wish is None:
            chosen_by = None if select is None else known_method
            rows_in_words, fitted = _plain(estimator, chosen_by, surveyed, read)
        else:
            training, preparation, rows_in_words = read()
            classes = np.unique(training.y).tolist()
            wish = parse_promise(promise, classes, confidence=confidence, by=items)
            assert wish is not None
            fitted = _promising(
                estimator,
                wish,
                training,
                preparation,
                seed,
                average=average,
                among=among,
            )
    if wish is not None and not fitted.guarantees_:
        nearest = _nearest(last_step(fitted), wish, training)
        raise CommandError(
            f"{method} cannot promise {promise!r} on these rows: it would answer none. "
            f"{nearest}Ask for less, give more rows, or fit it with --promise none",
            ExitCode.LIMIT,
        )
    save_model(fitted, output, data, trusted or ())
    _say_fitted(method, rows_in_words, surveyed)
    _say_choice(fitted)
    _say_promises(fitted)
    if wish is not None and wish.kind == "coverage":
        _say_empty(fitted, training)
    say_written(output)


def _nearest(last: Any, wish: Wish, training: TrainingData) -> str:
    """The least error above the one asked for that the rows held out prove, if any.

    One that always answering the most frequent class keeps is none.
    """
    import numpy as np

    if wish.kind != "error" or wish.capacity is not None:
        return ""
    _, counts = np.unique(training.y, return_counts=True)
    trivial = 1 - counts.max() / counts.sum()
    for level in wish.levels:
        if not wish.level < level < trivial:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that this one answers nothing, either
            promises = last.with_error_rate(level).guarantees_
        about_all = [promise for promise in promises if promise.subgroup is None]
        if about_all:
            evidence = about_all[0].evidence
            share = evidence["answered"] / evidence["calibration rows"]
            return (
                f"By the same rows held out, {wish.at(level)!r} would answer "
                f"{percent(share)} of them: a limit chosen by looking at them is "
                "certified by fresh rows (prudent certify). "
            )
    return ""


def _say_empty(fitted: Any, training: TrainingData) -> None:
    """Say so where a promise of coverage is kept by naming every class."""
    from prudent.estimator_tools import predict_set

    rows = training.frame.slice(0, MOST_LOOKED_AT)
    with _new_words_untold():
        members = predict_set(fitted, rows)
    if members.all():
        note(
            f"each of {counted(len(members), 'row')} of this table has all "
            f"{members.shape[1]} classes in its set: this model decides nothing. More "
            "rows, or less coverage asked for, help",
            always=True,
        )


@contextmanager
def _new_words_untold() -> Iterator[None]:
    """Say nothing of words that only rows held out have: they are of this table."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=UNKNOWN_WORDS)
        yield


def _refuse_for_detectors(method: str, given: Mapping[str, bool]) -> None:
    """Refuse a method that is no detector, and options that are for classifiers.

    `given` says for each group of such options, named as the error begins, whether
    any of them is used.
    """
    if method not in DETECTORS:
        known = ", ".join(DETECTORS)
        raise UsageError(f"detectors are {known}, got --method {method[:64]}.")
    for names, is_given in given.items():
        if is_given:
            raise UsageError(f"{names} not for detectors.")


def _check_wish(wish: Wish | None, *, average: bool, among: int) -> None:
    """Refuse --average and --among where the promise leaves them no meaning."""
    if average and (wish is None or wish.kind != "coverage"):
        raise UsageError("--average is for promises of coverage and of false alarms.")
    if among < 1:
        raise UsageError(f"--among takes a whole number >= 1, got {among}.")
    if among > 1 and (wish is None or average):
        raise UsageError("--among is for promises with a confidence.")


def _fitted_detector(
    method: str,
    rate: float,
    assignments: list[str],
    rows: NormalRows,
    seed: int,
    confidence: float | None,
    *,
    average: bool,
) -> Any:
    """A detector whose own parameters are set as they were given, fitted."""
    from prudent.evaluation.detection import build_detector

    n_rows = rows.n_normal
    certain = certainty(n_rows, rate, confidence, average=average, is_kept=True)
    plain = build_detector(method, rate, n_rows=FEWEST_ROWS)
    parameters = _read_parameters(plain, method, assignments)
    detector = detector_for(rows, method, rate, n_rows, certain, seed, **parameters)
    with failing_as_data():
        return detector.fit(rows.normal)


def built(method: str, assignments: list[str], seed: int | None) -> Any:
    """Return the estimator with the parameters that were given."""
    from prudent.evaluation.methods import choose

    with ending("{}", ExitCode.USAGE):
        (chosen,) = choose([method], ())
        estimator = chosen.estimator(seed)
    return estimator.set_params(**_read_parameters(estimator, method, assignments))


def _read_parameters(
    estimator: Any, method: str, assignments: list[str]
) -> dict[str, Any]:
    """Values of the parameters that were given as NAME=VALUE."""
    from prudent.evaluation.methods import parameter_name, read_value

    parameters = {}
    for assignment in assignments:
        name, equals, value = assignment.removeprefix(f"{method}.").partition("=")
        if not equals:
            raise UsageError(f"--param takes NAME=VALUE, got {assignment[:64]!r}.")
        with ending("--param: {}", ExitCode.USAGE):
            parameters[parameter_name(estimator, name)] = read_value(value)
    return parameters


def _all_rows(surveyed: Survey) -> str:
    return f"{thousands(surveyed.n_rows)} rows"


def _promising(
    estimator: Any,
    wish: Wish,
    training: TrainingData,
    preparation: Any,
    seed: int,
    *,
    average: bool,
    among: int,
) -> Any:
    """Fit the method so that it makes the promise asked for."""
    import numpy as np

    from prudent.estimator_tools import fit_inside
    from prudent.evaluation.promising import promised, promising

    y, groups = training.y, training.groups
    _, counts = np.unique(y, return_counts=True)
    cells = _cells(wish, training)
    if wish.kind == "coverage" and among > 1 and wish.confidence is None:
        wish = wish.confident(CONFIDENCE)
    if wish.kind == "coverage" and not average:
        unit = "rows" if groups is None else "groups"
        wish = _about_the_model(wish, cells, among, unit)
    wrapped = promising(
        estimator,
        wish,
        preparation,
        counts,
        split=groups is not None or training.times is not None,
        seed=seed,
        n_methods=among,
    )
    features = training.preparation.names
    beside = [name for name in training.frame.column_names if name not in features]
    model = of_a_table(training.preparation, wrapped, beside)
    with native_output_left_out(), _new_words_untold():
        fit_inside(model, training.frame, y, groups=groups, time=training.times)
    last = last_step(model)
    last.guarantees_ = promised(last, wish, among)
    if among > 1:
        # True of all these methods at once with the confidence asked for.
        last.guarantees_ = tuple(
            replace(
                g,
                confidence=wish.confidence,
                evidence={**g.evidence, "methods": among},
            )
            for g in last.guarantees_
        )
    if training.times is not None:
        from prudent.estimator_tools.order import order_in_time

        # Here columns have their names.
        rows = labelled_rows(training)
        last.order_test_ = order_in_time(rows, last.n_calibration_, seed)
        note(str(last.order_test_))
    return model


def _cells(wish: Wish, training: TrainingData) -> dict[str, int]:
    """Rows of each part that gets the promise: a class, a subgroup, both, or all.

    Of rows that belong together one counts, drawn at random: the groups that it is
    drawn from on average.
    """
    import numpy as np

    assert training.y is not None
    chances = np.ones(len(training.y))
    if training.groups is not None:
        _, group, n_rows = np.unique(
            training.groups, return_inverse=True, return_counts=True
        )
        chances = 1 / n_rows[group]

    def counted(rows: Any) -> int:
        return int(chances[rows].sum() + 1e-9)

    labels: dict[str, Any] = {"": np.ones(len(training.y), dtype=bool)}
    if wish.by_class:
        labels = {
            f" of class {str(label)!r}": training.y == label
            for label in np.unique(training.y).tolist()
        }
    if not wish.subgroups:
        return {name: counted(rows) for name, rows in labels.items()}
    inside = memberships(wish.subgroups, training.frame)
    return {
        f"{label} with {name}": counted(rows & members)
        for name, members in zip(inside.names, inside.members.T, strict=True)
        for label, rows in labels.items()
    }


def _about_the_model(
    wish: Wish, cells: Mapping[str, int], among: int, unit: str
) -> Wish:
    """A coverage with confidence, where the rows allow or it was asked for, aloud.

    `cells` are the rows, or groups (`unit`), of each part that gets the promise. A
    subgroup that is too small for any promise gets every label, and has no say in this.
    """
    from prudent.core.binomial import fewest_rows
    from prudent.core.rows import fewest_to_hold_out
    from prudent.evaluation.promising import SPLIT_SHARE, fewest_held_out

    certain = wish if wish.confidence else wish.confident(CONFIDENCE)
    n_subgroups = len(cells) // len(wish.guarantees) if wish.subgroups else 0
    least = fewest_held_out(certain, among, n_subgroups=n_subgroups)
    large = cells
    if wish.subgroups:
        fewest = fewest_rows(wish.allowed) / SPLIT_SHARE
        large = {part: n for part, n in cells.items() if n >= fewest} or cells
    rarest = min(large, key=lambda part: large[part])
    n_rows = large[rarest]
    needs = (
        f"about this very model with confidence {certain.confidence:g}"
        f"{_at_once(certain)} needs {{}} {unit}{rarest}, and there are "
        f"{thousands(n_rows)}"
    )
    # Of a part a share is held out in the mean, of all rows by count.
    enough = math.ceil(least / SPLIT_SHARE)
    if not (wish.by_class or wish.subgroups):
        enough = fewest_to_hold_out(least, SPLIT_SHARE)
    if wish.confidence and n_rows < enough:
        needed = thousands(enough)
        raise CommandError(
            f"{wish.text!r} {needs.format(needed)}. Ask for a lower --confidence, give "
            f"more {unit}, or promise it on --average",
            ExitCode.LIMIT,
        )
    if not wish.confidence and SPLIT_SHARE * n_rows < ENOUGH * least:
        needed = thousands(math.ceil(ENOUGH * least / SPLIT_SHARE))
        note(
            "the promise is on average over training samples, so that this model may "
            f"cover less: a useful one {needs.format(needed)}"
        )
        return wish
    note(
        f"the promise is about this very model, with confidence {certain.confidence:g}"
        f"{_at_once(certain)}, so that prudent monitor can watch it; one on average "
        "(--average), as compare shows it without --confidence, decides more rows"
    )
    return certain


def _at_once(wish: Wish) -> str:
    n_claims = len(wish.guarantees)
    if wish.subgroups:
        classes = "classes and " if n_claims > 1 else ""
        return f" for all {classes}subgroups at once"
    return f" for all {n_claims} classes at once" if n_claims > 1 else ""


def _plain(
    estimator: Any, chosen_by: Method | None, surveyed: Survey, read: Read
) -> tuple[str, Any]:
    """Fit, and say on which rows: all of them if they fit or moments suffice.

    `chosen_by` says what to choose a parameter by, if one is to be chosen.
    """
    from prudent.estimator_tools import fit_inside, matched_by_name, remember_rows
    from prudent.estimator_tools.held_out import remember_blocks, table_keys
    from prudent.estimator_tools.labelled_rows import in_front
    from prudent.evaluation.promising import is_full_conformal, learned_inside

    by_moments = chosen_by is None and hasattr(estimator, "fit_moments")
    columns, notes = table_columns(surveyed.preparation), list[Any]()

    def noted(front: Any) -> Callable[[Any], Any]:
        def transform(frame: Any) -> Any:
            keys, cells = table_keys(frame)
            notes.append((keys, [] if notes else cells))
            return front.transform(frame)

        return transform

    if by_moments and surveyed.holds_numbers:
        columns.fit(next(surveyed.blocks()).frame)
        moments = surveyed.moments(noted(columns), **estimator._moment_options())
        model = matched_by_name(columns, estimator.fit_moments(moments))
        remember_blocks(model, notes)
        return _all_rows(surveyed), model
    training, preparation, rows_in_words = read()
    if preparation is not None and is_full_conformal(estimator):
        model = learned_inside(estimator, preparation)
        model.set_params(estimator=matched_by_name(columns, model.estimator))
        with native_output_left_out():
            groups = training.groups
            fit_inside(model, training.frame, training.y, groups=groups)
        return rows_in_words, model
    model = matched_by_name(columns, in_front(preparation, estimator))
    if by_moments and preparation is not None:
        # What fills and encodes is learned from these rows, the method from all.
        front = model[:-1].fit(training.frame)
        moments = surveyed.moments(noted(front), **estimator._moment_options())
        estimator.fit_moments(moments)
        remember_blocks(model, notes)
        return _all_rows(surveyed), model
    frame, y = training.frame, training.y
    if chosen_by is not None:
        model = _selected(model, chosen_by, frame, y)
    else:
        with native_output_left_out():
            times, groups = training.times, training.groups
            fit_inside(model, frame, y, groups=groups, time=times)
    if preparation is not None or chosen_by is not None:
        _leave_out_void(last_step(model))
    remember_rows(model, frame, warn=False)
    return rows_in_words, model


def _leave_out_void(method: Any) -> None:
    """Take promises by rows away where these rows were learned from before."""
    before = getattr(method, "guarantees_", ())
    if not before:
        return
    for maker in getattr(method, "_promising_parts", (method,)):
        maker.guarantees_ = tuple(
            p for p in maker.guarantees_ if p.confidence is None and not p.average_over
        )
    if len(method.guarantees_) < len(before):
        note(
            "no promise by rows held out: what fills gaps, encodes text or was chosen "
            "by --select has learned from them, too"
        )


def _selected(model: Any, method: Method, X: Any, y: Any) -> Any:
    """Return the model of least error over folds, fitted on all rows."""
    from sklearn.model_selection import GridSearchCV, StratifiedKFold

    from prudent.metrics import u80_scorer

    folds = StratifiedKFold(SELECTION_FOLDS, shuffle=True, random_state=0)
    scoring = u80_scorer if method.grid_is_for_sets else "accuracy"
    grid = {f"method__{name}": values for name, values in (method.grid or {}).items()}
    chosen = GridSearchCV(model, grid, scoring=scoring, cv=folds).fit(X, y)
    print(f"chosen by {SELECTION_FOLDS}-fold cross-validation: {chosen.best_params_}")
    return chosen.best_estimator_


def _say_fitted(method: str, rows_in_words: str, surveyed: Survey) -> None:
    if surveyed.treatment is not None:
        note(surveyed.treatment)
    print(f"{method} on {rows_in_words} x {len(surveyed.preparation.names)} features")


def _choice(
    candidates: str | None,
    param: list[str] | None,
    time_limit: float | None,
    seed: int,
) -> Any:
    """What chooses among candidates with the parameters that were given."""
    choice = built("best", [], seed).set_params(time_limit=time_limit)
    if candidates is None and not param:
        return choice
    known = [method.name for method in choice.methods()]
    listed = known if candidates is None else candidates.split(",")
    choice.set_params(estimators=with_parameters(listed, (), param))
    if param:
        listed = [(m.name, m.estimator(seed)) for m in choice.methods()]
    return choice.set_params(estimators=listed)


@contextmanager
def _progress_of_choice(estimator: Any, *, quiet: bool) -> Iterator[None]:
    """Show which candidate is judged while a choice is made."""
    from prudent.evaluation.promising import is_choice

    if not is_choice(estimator):
        yield
        return
    from prudent.evaluation.choice import reporting_to

    names = [method.name for method in estimator.methods()]
    with Progress(names, quiet=quiet) as progress, reporting_to(progress.update):
        yield


def _say_choice(fitted: Any) -> None:
    from prudent.evaluation.choice import choice_in_words, chosen_in

    chosen = chosen_in(fitted)
    if chosen is not None:
        held_out = getattr(last_step(fitted), "n_calibration_", 0)
        print(choice_in_words(chosen, held_out))


def _say_promises(fitted: Any) -> None:
    from prudent.certification.planning import queue_in_words, share_of_people
    from prudent.core.guarantee import in_sentences

    promises = getattr(fitted, "guarantees_", ())
    if any(promise.subgroup is not None for promise in promises):
        _say_by_subgroup(promises)
        return
    for sentence in in_sentences(promises) or ["No promise."]:
        print(sentence)
    for promise in promises:
        if share_of_people(promise) is not None:
            print(f"{queue_in_words(promise)}.")


def _say_by_subgroup(promises: Sequence[Guarantee]) -> None:
    """A line for each part that has the promise, and once what it rests on."""
    from prudent.cli.watching import named

    for promise in promises:
        evidence = promise.evidence
        n_rows = f"{counted(int(evidence['calibration rows']), 'row')} held out"
        if promise.quantity == "selective error rate":
            answered = thousands(int(evidence["answered"]))
            print(f"- {named(promise)} ({answered} of {n_rows} are answered)")
        elif promise.quantity == "coverage" and evidence["rank"] == 0:
            label = "every label" if promise.scope is None else f"'{promise.scope}'"
            print(f"- {label} is possible where {promise.subgroup} (only {n_rows})")
        else:
            print(f"- {named(promise)} ({n_rows})")
    sure = f"on average over {promises[0].average_over}"
    if promises[0].confidence is not None:
        sure = f"all at once with confidence {promises[0].confidence:g}"
    print(f"True {sure}, assuming")
    for sentence in dict.fromkeys(s for promise in promises for s in promise.assumed):
        print(f"- {sentence}")
