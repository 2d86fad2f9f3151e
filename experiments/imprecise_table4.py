"""Table 4 and Figure 7 of Carranza-Alarcon and Destercke (2019), no cell blank.

Precise accuracy, u80 and u65 of the four models on 15 data sets. Five stratified
folds outside (shuffled, seed 1), five inside (seed 2) that choose c for each utility.
Figure 7 looks at rows answered with several classes: the precise accuracy there, and
how often the set holds the truth.

Every finished cell is appended to results/imprecise_table4.csv, and a later run goes on
from there; delete the file to start over.
"""

from __future__ import annotations

import csv
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields

import numpy as np
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold

from experiments.benchmark_data import load
from experiments.table import RESULTS, Table, beside, explained, main
from prudent import ImpreciseDiscriminantAnalysisCV
from prudent.exceptions import PrudentWarning

CELLS = RESULTS / "imprecise_table4.csv"
IMPRECISIONS = np.unique(np.round(np.geomspace(0.01, 5, 40), 2))
MAX_NODES = 1000  # a question that meets it keeps its class; counted in the table
MODELS = {"tied": "ILDA", "full": "IQDA", "diag": "INDA", "identity": "IEDA"}
BUNDLED = {"iris": load_iris, "wine": load_wine, "optdigits": load_digits}
STORED = {"forest": "forest_types", "wine quality": "wine_quality_red"}
# Per model: accuracy of the precise model, u80, u65; None is blank in the paper.
# The accuracy beside IQDA is the paper's QDA, without regularisation.
PAPER: dict[str, dict[str, tuple[float | None, float | None, float | None]]] = {
    "iris": {
        "tied": (97.96, 98.38, 97.16),
        "full": (97.29, 98.08, 97.13),
        "diag": (95.07, 95.73, 95.53),
        "identity": (91.60, 94.80, 93.13),
    },
    "wine": {
        "tied": (98.85, 98.99, 98.95),
        "full": (99.03, 99.39, 99.09),
        "diag": (97.70, 98.39, 93.60),
        "identity": (46.65, 61.78, 52.04),
    },
    "forest": {
        "tied": (94.61, 94.56, 94.05),
        "full": (89.43, 91.77, 88.90),
        "diag": (95.26, 89.95, 99.95),
        "identity": (81.09, 82.38, 81.84),
    },
    "seeds": {
        "tied": (96.35, 96.59, 96.51),
        "full": (94.64, 95.20, 94.72),
        "diag": (90.38, 91.14, 88.21),
        "identity": (90.38, 92.86, 87.29),
    },
    "dermatology": {
        "tied": (96.58, 97.06, 96.94),
        "full": (82.47, 84.24, 84.05),
        "diag": (85.52, 90.71, 90.45),
        "identity": (51.22, 54.78, 52.87),
    },
    "glass": {
        "tied": (62.15, 66.78, 58.87),
        "full": (7.15, 64.38, 58.36),
        "diag": (43.92, 51.25, 50.21),
        "identity": (46.26, 56.16, 49.08),
    },
    "ecoli": {
        "tied": (87.14, 88.27, 87.72),
        "full": (46.19, 87.34, 84.79),
        "diag": (82.39, 56.54, 56.54),
        "identity": (42.59, 43.34, 40.91),
    },
    "vehicle": {
        "tied": (77.96, 81.98, 79.59),
        "full": (85.07, 87.96, 86.13),
        "diag": (45.63, 46.33, 45.70),
        "identity": (28.03, 45.13, 38.33),
    },
    "vowel": {
        "tied": (60.10, 67.45, 62.41),
        "full": (87.83, 89.96, 88.40),
        "diag": (67.26, 70.35, 71.70),
        "identity": (58.08, 63.94, 58.94),
    },
    "wine quality": {
        "tied": (59.25, 65.83, 60.31),
        "full": (55.62, 65.85, 60.36),
        "diag": (54.83, 57.24, 57.33),
        "identity": (19.72, 22.11, 23.40),
    },
    "wall_following": {
        "tied": (67.96, 71.34, 66.65),
        "full": (65.87, 71.79, 69.75),
        "diag": (52.55, 51.00, 54.32),
        "identity": (57.90, 56.66, 58.47),
    },
    "yeast": {
        "tied": (58.92, None, None),
        "full": (13.18, None, None),
        "diag": (43.36, 49.51, 50.71),
        "identity": (31.27, 31.56, 31.39),
    },
    "segment": {
        "tied": (91.60, 90.76, 89.70),
        "full": (64.69, None, None),
        "diag": (79.83, 77.11, 78.75),
        "identity": (22.10, 39.30, 30.65),
    },
    "optdigits": {
        "tied": (95.40, None, None),
        "full": (87.18, None, None),
        "diag": (89.69, 85.17, 89.39),
        "identity": (88.17, 89.11, 88.83),
    },
    "libras": {
        "tied": (64.45, None, None),
        "full": (34.04, None, None),
        "diag": (63.17, 65.50, 65.22),
        "identity": (49.36, 54.62, 49.27),
    },
}
SCORES = ("accuracy", "u80", "u65")
REASONS = {
    "a": "less than two standard errors: other folds are enough, 5 stratified ones "
    "here, 10 x 10 plain ones in the paper.",
    "b": "the accuracies of the linear and the quadratic rule look swapped in the "
    "paper: 65.8 and 68.1 here, 67.96 and 65.87 there.",
    "c": "class covariances are singular; ours are shrunk. A plain pseudo-inverse "
    "gives glass 5.6 and ecoli 42.5, near the paper; elsewhere its treatment is not "
    "recovered. Its own regularised rule (forest 97.47, dermatology 96.92, yeast "
    "56.27) is near ours.",
    "d": "columns are constant inside a class, which breaks the paper's naive rule "
    "(tried here without a floor for variances: 31.0 on dermatology); ours shrinks.",
    "e": "the paper measures Euclidean distance in the units of the table, ours in "
    "standard deviations. In raw units plain nearest centres give iris 91.3, ecoli "
    "42.5, yeast 31.3, as the paper; but wine 71.8, forest 92.0, vehicle 38.7 and "
    "segment 72.3, where the paper's figure stays unexplained.",
    "f": "the paper's pair has u65 > u80, which no set of predictions can have.",
    "g": "the paper's utility of 56.54 lies far below its own accuracy of 82.39, which "
    "c near 0 would reach.",
    "h": "c bounds the prior mean in the units of the columns: standard deviations "
    "here, the table's units in the paper, with another grid of c. The naive rule's "
    "figures vary by 5 to 18 points in the paper itself.",
    "i": "90 columns and 360 rows make the pooled covariance ill-conditioned; ours is "
    "shrunk. Without shrinkage: 62.8 on these folds, 67.5 on ten plain ones.",
}
SINGULAR = {
    *("forest", "dermatology", "glass", "ecoli", "yeast", "segment", "optdigits"),
    *("libras", "wine quality"),
}
CONSTANT_INSIDE = {"dermatology", "glass", "yeast"}
QUICK = ("iris", "wine")


@dataclass(frozen=True)
class Cell:
    """One model on one data set, all in percent but the last."""

    data: str
    model: str
    accuracy: float
    u80: float
    u65: float
    accuracy_error: float  # standard errors of the three, over the rows
    u80_error: float
    u65_error: float
    set_share: float  # rows answered with several classes, c chosen for u80
    set_precise: float  # precise accuracy on them (Figure 7, x)
    set_coverage: float  # truth in the set (Figure 7, y)
    unresolved: int  # questions that met MAX_NODES on the test rows


def complete_rows(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows without missing cells; labels as numbers."""
    if name in BUNDLED:
        X, y = BUNDLED[name](return_X_y=True)
    else:
        X, y = load(STORED.get(name, name))
    complete = np.isfinite(X).all(axis=1)
    return X[complete], np.unique(y[complete], return_inverse=True)[1]


def measure(name: str, kind: str) -> Cell:
    """Nested cross-validation of one cell."""
    X, y = complete_rows(name)
    X = X[:, np.ptp(X, axis=0) > 0]
    n_classes = y.max() + 1
    precise = np.zeros(len(y), dtype=bool)
    sets = {scoring: np.zeros((len(y), n_classes), bool) for scoring in ("u80", "u65")}
    unresolved = 0
    outer = StratifiedKFold(5, shuffle=True, random_state=1)
    inner = StratifiedKFold(5, shuffle=True, random_state=2)
    for train, test in outer.split(X, y):
        for scoring, found in sets.items():
            model = ImpreciseDiscriminantAnalysisCV(
                imprecisions=IMPRECISIONS,
                scoring=scoring,
                cv=inner,
                covariance_type=kind,
                max_nodes=MAX_NODES,
            ).fit(X[train], y[train])
            found[np.ix_(test, model.classes_)] = model.predict_set(X[test])
            unresolved += model.n_unresolved_
        precise[test] = model.predict(X[test]) == y[test]
    truth = np.arange(len(y)), y
    several = sets["u80"].sum(axis=1) > 1
    hit = sets["u80"][truth]
    scores = 100 * np.array(
        [precise, utility(sets["u80"], truth, 2.2), utility(sets["u65"], truth, 1.6)]
    )
    return Cell(
        name,
        kind,
        *scores.mean(axis=1),
        *scores.std(axis=1) / np.sqrt(len(y)),
        100 * several.mean(),
        100 * precise[several].mean() if several.any() else np.nan,
        100 * hit[several].mean() if several.any() else np.nan,
        unresolved,
    )


def utility(sets: np.ndarray, truth: tuple, reward: float) -> np.ndarray:
    """Equation (41) as corrected: of each row, 1.6 gives u65 and 2.2 gives u80."""
    size = sets.sum(axis=1)
    return sets[truth] * (reward / size - (reward - 1) / size**2)


def stored() -> dict[tuple[str, str], Cell]:
    """Cells of earlier runs."""
    if not CELLS.exists():
        return {}
    types = [{"str": str, "float": float, "int": int}[f.type] for f in fields(Cell)]
    with CELLS.open(newline="") as file:
        rows = list(csv.reader(file))[1:]
    cells = [
        Cell(*[convert(v) for convert, v in zip(types, row, strict=True)])
        for row in rows
    ]
    return {(cell.data, cell.model): cell for cell in cells}


def append(cell: Cell) -> None:
    """Add a finished cell to the file of results."""
    new = not CELLS.exists()
    RESULTS.mkdir(exist_ok=True)
    with CELLS.open("a", newline="") as file:
        writer = csv.writer(file)
        if new:
            writer.writerow([f.name for f in fields(Cell)])
        values = asdict(cell).values()
        writer.writerow([round(v, 4) if isinstance(v, float) else v for v in values])


def cells(quick: bool) -> Iterator[Cell]:
    """Stored cells first come from the file, missing ones are measured."""
    known = {} if quick else stored()
    with warnings.catch_warnings():
        # Tiny classes and met node limits are part of the experiment.
        warnings.simplefilter("ignore", PrudentWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", UserWarning)
        for name in QUICK if quick else PAPER:
            for kind in MODELS:
                cell = known.get((name, kind)) or measure(name, kind)
                if not quick and (name, kind) not in known:
                    append(cell)
                yield cell


def run(quick: bool) -> Table:
    """Table 4 and the two axes of Figure 7."""
    return Table(
        "Table 4 and Figure 7 (percent)",
        [f.name for f in fields(Cell)],
        [list(asdict(cell).values()) for cell in cells(quick)],
        (
            "5 x 5 nested stratified folds here, 10 x 10 plain ones in the paper.",
            "No cell is blank: the paper leaves seven models without a figure.",
            f"Questions that met max_nodes={MAX_NODES} (column unresolved) keep their "
            "class: sets contain the exact ones.",
        ),
    )


def reason(data: str, model: str, score: str) -> str:
    """Key of why a figure of the paper may be another by more than two errors."""
    _, u80, u65 = PAPER[data][model]
    if model == "identity":
        return "e"
    if model == "full" and data in SINGULAR:
        return "c"
    if model == "diag" and data in CONSTANT_INSIDE:
        return "d"
    if score == "accuracy":
        return "b" if data == "wall_following" else "i"
    if u65 > u80:
        return "f"
    return "g" if (data, model) == ("ecoli", "diag") else "h"


def explain(table: Table) -> Table:
    """Ours beside the paper's."""
    rows = []
    for values in table.rows:
        cell = Cell(*values)
        paper = PAPER[cell.data][cell.model]
        scores = []
        for score, theirs in zip(SCORES, paper, strict=True):
            ours = getattr(cell, score)
            if theirs is None:
                scores.append(f"{ours:.2f} / none")
                continue
            error = getattr(cell, f"{score}_error")
            small = abs(ours - theirs) <= 2 * error
            why = "a" if small else reason(cell.data, cell.model, score)
            scores.append(beside(ours, theirs, error, why, digits=2))
        figure7 = (cell.set_share, cell.set_precise, cell.set_coverage)
        shown = [f"{value:.1f}" for value in figure7]
        name = MODELS[cell.model]
        rows.append((cell.data, name, *scores, *shown, cell.unresolved))
    columns = (
        *("data", "model"),
        *(f"{score}: ours / paper / difference" for score in SCORES),
        *("rows with a set", "precise rule right there", "truth in the set"),
        "unresolved",
    )
    return explained(table, columns, rows, REASONS)


if __name__ == "__main__":
    main(run, explain)
