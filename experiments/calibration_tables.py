"""Tables I to VII and IX: least training error in 64 iterations.

Every cell is a set in a table: initial error, least error, the iteration that first
reaches it; the same of the rival (gradient descent, in Table IX DFE); Reach, the first
iteration with an error not above the rival's least.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.benchmark_data import load
from experiments.calibration_data import (
    ABSENT,
    FILES,
    SIZES,
    WHY_ABSENT,
    Printed,
    in_bins,
    in_bins_from,
    printed,
    table_one,
)
from experiments.calibration_descent import naive_bayes, normalised, quadratic
from experiments.cells import Scale, Tasks
from experiments.table import Table, against, with_reasons
from prudent import RiskCalibratedClassifier
from prudent.exceptions import SingularCovarianceError

PAPER = {
    "learning_rate": 0.1,
    "max_iter": 64,
    "stopping": "train",
    "guard": "freeze",
    "line_search": False,
}
MAXIMUM_LIKELIHOOD = {"covariance_prior_strength": 0.0, "level_prior_strength": 0.0}
MAP = {"mean_prior_strength": 10.0, "covariance_prior_strength": 10.0}
#: Reading of the prior of levels by which each level has a count.
A_LEVEL = "one count a level"
#: Sets whose rows or bins are not the paper's, and the letter of the reason.
BINS = dict.fromkeys((10, 13, 16, 21, 23, 25, 26, 29), "b")
NOT_BAYES = {7: "a", 14: "a"}
#: Sets whose initial error is measured with bins of other starts, and how many.
OTHER_BINS, N_STARTS = sorted({*BINS, *NOT_BAYES, 24}), 10
REASONS = {
    "a": "not recovered: the paper's .560 for ecoli is one row short of the majority "
    "class, its .251 for ionosphere is not naive Bayes on five bins either. Tried: "
    "bins from equal steps and from ten random starts, note of Table II.",
    "b": "k-means bins depend on their start, which the paper does not state; initial "
    "errors from ten random starts in a note of Table II.",
    "c": "not recovered. Tried: redwine without each of its eleven columns in turn, "
    "note of Table VI; for naive Bayes ten other sets of bins, note of Table II.",
    "d": "a class covariance is singular: monetary = 250 frequency in blood "
    "transfusion, ten rows and ten columns in class 3 of redwine.",
    "g": "not recovered. Tried: gradient descent as Appendix C describes it, with its "
    "gradient corrected (step, projection, standardised columns); for naive Bayes "
    "also the softmax, note of Table II.",
    "r": "follows from the errors of RC or of its rival, which are others.",
    "s": "not recovered. Tried: the prior of Appendix B (m0 = r, one count for each "
    "level), one count a feature, with either class prior; the notes say how "
    "often the initial error is met. Many rows of the paper stop at iteration 1, as "
    "if the whole first step were refused.",
    "t": "not recovered. Tried: the readings of Appendix B in the notes above; RC and "
    "gradient descent start alike in each.",
}


def calibrated(X: Any, y: Any, **settings: Any) -> NDArray[np.float64]:
    """Training error of each iterate with the paper's conventions."""
    model = RiskCalibratedClassifier(**PAPER | settings).fit(X, y)
    return model.error_curve_


LIKELIHOOD = partial(calibrated, **MAXIMUM_LIKELIHOOD)


def appendix_b(X: Any, y: Any, **settings: Any) -> dict[str, Any]:
    """The paper's MAP: m0 = r, m1 = m2 = 10; levels share one count a feature."""
    given = {
        "class_prior_strength": float(len(np.unique(y))),
        "level_prior_strength": 1.0,
        **MAP,
        **settings,
    }
    if given["level_prior_strength"] == A_LEVEL:
        given["level_prior_strength"] = [float(len(np.unique(c))) for c in X.T]
    return given


def posterior(X: Any, y: Any, **settings: Any) -> NDArray[np.float64]:
    """Training error of each iterate under the prior of Appendix B."""
    return calibrated(X, y, **appendix_b(X, y, **settings))


def descent(X: Any, y: Any, n: int = 64, **settings: Any) -> NDArray[np.float64]:
    """Training error of each iterate of gradient descent, from where RC starts."""
    start = RiskCalibratedClassifier(**PAPER | settings | {"max_iter": 1}).fit(X, y)
    moments = start.priors_, start.means_, start.covariances_
    return quadratic(X, y, moments, n)


def quadratic_prior(
    m0: float | str,
    m1: float | str,
    m2: float | str,
    covariance: str = "rows",
    **more: Any,
) -> Callable[..., dict[str, Any]]:
    """Settings, given rows and classes, of one reading of the prior of Table V.

    Strengths are numbers, "r", the number of classes, or "10 over r". In standardised
    columns the prior's covariance is the identity ("rows"), or the identity times the
    mean variance within a class ("classes").
    """

    def settings(X: Any, y: Any) -> dict[str, Any]:
        n_classes = float(y.max()) + 1
        words = {"r": n_classes, "10 over r": 10 / n_classes}
        variances = X.var(axis=0)
        if covariance == "classes":
            within = [X[y == k].var(axis=0) / variances for k in np.unique(y)]
            variances = variances * np.mean(within)
        return {
            "class_prior_strength": words.get(m0, m0),
            "mean_prior_strength": words.get(m1, m1),
            "covariance_prior_strength": words.get(m2, m2),
            "covariance_prior": variances,
            **more,
        }

    return settings


#: The reading of Table V that meets most initial errors.
CLASS_VARIANCE = quadratic_prior(0.0, "r", "r", "classes")


def shrunken(
    X: Any, y: Any, learn: Callable[..., NDArray[np.float64]] = calibrated, **given: Any
) -> NDArray[np.float64]:
    """The errors of a learner under the prior of Table V."""
    return learn(X, y, **QDA, **(CLASS_VARIANCE(X, y) | given))


@dataclass(frozen=True)
class Reproduction:
    """One table of the paper; `letters` are the reasons by index."""

    number: str
    title: str
    calibrate: Callable[..., NDArray[np.float64]]
    rival: Callable[..., NDArray[np.float64]]
    discretise: bool = False
    letters: Callable[[int], str] = lambda _: "?"
    rival_letter: str = "?"
    rival_name: str = "GD"


def of_bins(index: int) -> str:
    """Letter of naive Bayes by maximum likelihood."""
    return "c" if index == 24 else {**BINS, **NOT_BAYES}.get(index, "?")


def of_rows(index: int) -> str:
    """Letter of logistic regression."""
    return "c" if index == 24 else "?"


def of_quadratic(index: int) -> str:
    """Letter of the quadratic rule by maximum likelihood."""
    return "d" if index in (2, 24) else "?"


NB, QDA, LR = {"family": "categorical"}, {"family": "full"}, {"family": "tied_diag"}
TABLES = (
    Reproduction(
        *("II", "naive Bayes, maximum likelihood", partial(LIKELIHOOD, **NB)),
        *(partial(naive_bayes, strength=0.0, n=64), True, of_bins, "g"),
    ),
    Reproduction(
        *("III", "naive Bayes, maximum a posteriori", partial(posterior, **NB)),
        *(partial(naive_bayes, strength=1.0, n=64), True, lambda _: "s", "g"),
    ),
    Reproduction(
        *("IV", "quadratic, maximum likelihood", partial(LIKELIHOOD, **QDA)),
        *(partial(descent, **MAXIMUM_LIKELIHOOD, **QDA), False, of_quadratic, "g"),
    ),
    Reproduction(
        *("V", "quadratic, maximum a posteriori", shrunken),
        *(partial(shrunken, learn=descent), False, lambda _: "t", "t"),
    ),
    Reproduction(
        *("VI", "logistic, maximum likelihood", partial(LIKELIHOOD, **LR)),
        *(partial(LIKELIHOOD, **LR, method="gd"), False, of_rows),
    ),
    Reproduction(
        *("VII", "logistic, maximum a posteriori", partial(posterior, **LR)),
        *(partial(posterior, **LR, method="gd"), False, of_rows),
    ),
    Reproduction(
        *("IX", "naive Bayes against DFE", partial(LIKELIHOOD, **NB)),
        *(partial(LIKELIHOOD, **NB, method="dfe"), True, of_bins, "?", "DFE"),
    ),
)
#: Readings of the prior of Tables III and V.
READINGS: dict[str, dict[str, Any]] = {
    "III": {
        "Appendix B: m0 = r, one count a level": {"level_prior_strength": A_LEVEL},
        "m0 = r, one count a feature (printed here)": {},
        "m0 = 0, one count a level": {
            "class_prior_strength": 0.0,
            "level_prior_strength": A_LEVEL,
        },
        "m0 = 0, one count a feature": {"class_prior_strength": 0.0},
    },
    "V": {
        "Appendix B: m0 = r, m1 = m2 = 10, prior covariance that of standardised "
        "columns": quadratic_prior("r", 10.0, 10.0),
        "m0 = r, m1 = 0, m2 = 10": quadratic_prior("r", 0.0, 10.0),
        "m0 = r, m1 = 10, m2 = 0": quadratic_prior("r", 10.0, 0.0),
        "m0 = 0, m1 = m2 = 10": quadratic_prior(0.0, 10.0, 10.0),
        "m0 = 0, m1 = 10, m2 = 10 over r, with the neglected term": quadratic_prior(
            0.0, 10.0, "10 over r", exact_map=True
        ),
        "m0 = r, m1 = 10, m2 = 10 over r, with the neglected term": quadratic_prior(
            "r", 10.0, "10 over r", exact_map=True
        ),
        "m0 = 0, m1 = m2 = 10, prior covariance the mean variance within a class": (
            quadratic_prior(0.0, 10.0, 10.0, "classes")
        ),
        "m0 = 0, m1 = m2 = r, prior covariance the mean variance within a class "
        "(printed here)": CLASS_VARIANCE,
    },
}


def rows_of(table: Reproduction, index: int) -> tuple[Any, NDArray[np.intp]]:
    """A set as this table takes it."""
    X, y = table_one(FILES[index])
    return (in_bins(X) if table.discretise else X), y


def measure(table: Reproduction, index: int) -> list[Any] | None:
    """Initial, least, iteration, rival's least and iteration, Reach; or None."""
    X, y = rows_of(table, index)
    try:
        ours, rival = table.calibrate(X, y), table.rival(X, y)
    except (SingularCovarianceError, np.linalg.LinAlgError):
        return None
    found: list[Any] = [float(ours[0])]
    for errors in (ours, rival):
        found += [float(errors.min()), 1 + int(errors.argmin())]
    reached = np.flatnonzero(ours <= rival.min() + 1e-12)
    return [*found, 1 + int(reached[0]) if len(reached) else None]


def initial(table: Reproduction, reading: Any, index: int) -> float | None:
    """Initial error with another reading of the prior, None where none exists."""
    X, y = rows_of(table, index)
    settings = reading(X, y) if callable(reading) else reading
    try:
        return float(table.calibrate(X, y, max_iter=1, **settings)[0])
    except SingularCovarianceError:
        return None


def softmax_error(index: int) -> float:
    """Least error of the rival of Table II with the softmax for the projection."""
    (table,) = [t for t in TABLES if t.number == "II"]
    X, y = rows_of(table, index)
    return float(table.rival(X, y, constrained=normalised).min())


def initial_errors(index: int) -> list[float]:
    """Initial errors of naive Bayes, with bins from random starts of k-means."""
    X, y = table_one(FILES[index])
    bins = [in_bins_from(seed, X) for seed in range(N_STARTS)]
    return [float(LIKELIHOOD(B, y, max_iter=1, **NB)[0]) for B in bins]


def without_columns() -> list[list[float]]:
    """Initial and least error and its iteration, for redwine without each column."""
    X, labels = load("wine_quality_red")
    y = np.unique(labels, return_inverse=True)[1]
    found = []
    for column in range(X.shape[1]):
        errors = LIKELIHOOD(np.delete(X, column, axis=1), y, **LR)
        found.append([errors[0], errors.min(), 1 + int(errors.argmin())])
    return found


def small(index: int) -> bool:
    """Whether a quick run has the time for this set."""
    return np.prod(SIZES[index]) <= 20_000


def cells(scale: Scale) -> Tasks:
    """One cell a table and set, and a reading and set."""
    indices = [i for i in FILES if scale != "quick" or small(i)]
    tasks: dict[str, Callable[[], Any]] = {}
    for table in TABLES:
        for i in indices:
            tasks[f"{table.number}/{i}"] = partial(measure, table, i)
    for table in TABLES:
        for name, reading in READINGS.get(table.number, {}).items():
            for i in indices:
                key = f"reading {table.number}/{name}/{i}"
                tasks[key] = partial(initial, table, reading, i)
    tasks |= {f"softmax II/{i}": partial(softmax_error, i) for i in indices}
    starts = [i for i in OTHER_BINS if i in indices]
    tasks |= {f"starts II/{i}": partial(initial_errors, i) for i in starts}
    if 24 in indices:
        tasks["columns VI/24"] = without_columns
    return {**tasks, "sizes": sizes}


def sizes() -> dict[str, list[int]]:
    """Rows and columns of each set at hand."""
    return {str(i): list(table_one(name)[0].shape) for i, name in FILES.items()}


def same(ours: float, theirs: float) -> bool:
    """Equal at the paper's three digits."""
    return round(round(ours, 3) - theirs, 3) == 0


def tables(found: dict[str, Any]) -> list[Table]:
    """Table I, then the others in the paper's order."""
    made = [first(found["sizes"])]
    for table in TABLES:
        values = {
            int(key.split("/")[1]): value
            for key, value in found.items()
            if key.startswith(f"{table.number}/")
        }
        readings = {
            key: value
            for key, value in found.items()
            if key.startswith(f"reading {table.number}/")
        }
        softmax, starts = (
            {
                int(key.split("/")[1]): value
                for key, value in found.items()
                if key.startswith(f"{run} {table.number}/")
            }
            for run in ("softmax", "starts")
        )
        shown = one(table, values, readings, softmax, starts)
        if table.number == "VI" and "columns VI/24" in found:
            note = redwine(found["columns VI/24"])
            shown = replace(shown, notes=(shown.notes[0], note, *shown.notes[1:]))
        made.append(shown)
    return made


def first(ours: dict[str, list[int]]) -> Table:
    """Table I."""
    rows = []
    for index, (m, n) in SIZES.items():
        if index in ABSENT:
            rows.append((index, ABSENT[index], f"none / {m}", f"none / {n}", "absent"))
            continue
        found = ours[str(index)]
        cells = [against(a, b, 0, digits=0) for a, b in zip(found, (m, n), strict=True)]
        rows.append((index, FILES[index], *cells, "here"))
    return Table(
        "Table I: the data sets",
        ("index", "set", "m: ours / paper / difference", "n", ""),
        rows,
        (
            f"Absent: {WHY_ABSENT} Complete rows, classes of ten rows at least, "
            "columns whose variance within each class exceeds 1e-5.",
        ),
        items=("Table I",),
    )


def one(
    table: Reproduction,
    values: dict[int, Any],
    readings: dict[str, float | None],
    softmax: dict[int, float],
    starts: dict[int, list[float]],
) -> Table:
    """One of Tables II to IX, with averages, win counts and notes."""
    paper = printed(table.number)
    rows: list[list[object]] = []
    for index, theirs in paper.items():
        if index in ABSENT:
            rows.append([index, ABSENT[index], *absent(theirs)])
        elif index in values:
            rows.append([index, FILES[index], *row_of(table, index, values, theirs)])
    known = {i: v for i, v in values.items() if v is not None}
    rows.append(["", "average of these", *averages(known, paper)])
    wins = sum(v[1] < v[3] for v in known.values())
    theirs = sum(paper[i].calibrated < paper[i].rival for i in known)
    names = ("initial", "RC", "Iter", table.rival_name, "its Iter", "Reach")
    counts = [
        sum(same(v[part], getattr(paper[i], field)) for i, v in known.items())
        for part, field in ((0, "initial"), (1, "calibrated"), (3, "rival"))
    ]
    notes = [
        f"RC below {table.rival_name} on {wins} of {len(known)} sets; in the paper on "
        f"{theirs} of these, ties not counted.",
        f"Met at three digits: initial error on {counts[0]} of {len(known)} sets, "
        f"least error of RC on {counts[1]}, of {table.rival_name} on {counts[2]}.",
        "Averages: ours and the paper's, both over the sets at hand. "
        f"Absent: {WHY_ABSENT}",
    ]
    notes += told(table.number, readings, paper)
    if softmax:
        hits = sum(same(value, paper[i].rival) for i, value in softmax.items())
        notes.append(
            "Gradient descent with the softmax that Appendix C names beside the "
            f"projection: its least error is met on {hits} of {len(softmax)} sets."
        )
    if starts:
        ranges = [
            f"{FILES[i]} {min(errors):.3f} to {max(errors):.3f} "
            f"(paper {paper[i].initial:.3f})"
            for i, errors in sorted(starts.items())
        ]
        hits = [
            min(errors) - 5e-4 <= paper[i].initial <= max(errors) + 5e-4
            for i, errors in starts.items()
        ]
        notes.append(
            f"Initial error with bins from {N_STARTS} random starts of k-means: "
            f"{', '.join(ranges)}. The paper's lies in the range on {sum(hits)} of "
            f"{len(hits)} sets."
        )
    verdict = " (not recovered)" if table.number in READINGS else ""
    made = Table(
        f"Table {table.number}: {table.title}{verdict}",
        ("index", "set", *(f"{name}: ours / paper / difference" for name in names)),
        rows,
        notes,
        items=(f"Table {table.number}",),
    )
    return with_reasons(made, REASONS)


def redwine(found: list[list[float]]) -> str:
    """What leaving out each column of redwine gives."""
    paper = printed("VI")[24]
    runs = [f"{a:.3f}, {b:.3f} at {int(t)}" for a, b, t in found]
    return (
        "Redwine without its first to its eleventh column, initial and least error: "
        f"{'; '.join(runs)} (paper {paper.initial:.3f}, {paper.calibrated:.3f} at "
        f"{paper.iteration})."
    )


def absent(paper: Printed) -> list[str]:
    """Cells of a set that cannot be had."""
    return [f"none / {'none' if value is None else value}" for value in astuple(paper)]


def row_of(
    table: Reproduction, index: int, values: dict[int, Any], paper: Printed
) -> list[str]:
    """Cells of one set."""
    ours, letter = values[index], table.letters(index)
    if ours is None:
        return [f"singular ({letter})"] * 6
    own = (paper.initial, paper.calibrated, paper.iteration)
    alike = all(same(a, b) for a, b in zip(ours[:3], own, strict=True))
    # A rival that differs on the paper's own rows and bins has its own reason.
    rival = table.rival_letter if letter == "?" or alike else letter
    reach = "none" if ours[5] is None else ours[5]
    cells = [
        against(ours[0], paper.initial, 0, letter, 3),
        against(ours[1], paper.calibrated, 0, letter, 3),
        against(ours[2], paper.iteration, 0, letter, 0),
        against(ours[3], paper.rival, 0, rival, 3),
        against(ours[4], paper.rival_iteration, 0, rival, 0),
    ]
    if ours[5] is None or paper.reach is None:
        told = f"{reach} / {'none' if paper.reach is None else paper.reach}"
        alike = (ours[5] is None) == (paper.reach is None)
        return [*cells, told if alike else f"{told} (r)"]
    return [*cells, against(ours[5], paper.reach, 0, "r", 0)]


def averages(values: dict[int, Any], paper: dict[int, Printed]) -> list[str]:
    """Mean of ours and of the paper's over the sets at hand."""
    fields = (
        *("initial", "calibrated", "iteration", "rival", "rival_iteration"),
        "reach",
    )
    cells = []
    for part, name in enumerate(fields):
        digits = 3 if part in (0, 1, 3) else 1
        ours = [v[part] for v in values.values() if v[part] is not None]
        theirs = [getattr(paper[i], name) for i in values]
        theirs = [value for value in theirs if value is not None]
        cells.append(f"{np.mean(ours):.{digits}f} and {np.mean(theirs):.{digits}f}")
    return cells


def told(
    number: str, readings: dict[str, float | None], paper: dict[int, Printed]
) -> list[str]:
    """How many initial errors each reading of the prior meets."""
    met: dict[str, list[bool]] = {}
    for key, value in readings.items():
        _, name, index = key.split("/")
        alike = value is not None and same(value, paper[int(index)].initial)
        met.setdefault(name, []).append(alike)
    return [
        f"Tried, {name}: meets the initial error on {sum(hits)} of {len(hits)} sets."
        for name, hits in met.items()
    ]
