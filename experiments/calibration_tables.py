"""Tables II, IV, VI, VII and IX: least training error in 64 iterations.

python -m experiments.calibration_tables [--quick]
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.calibration_data import (
    ABSENT,
    FILES,
    TABLE_II,
    TABLE_IV,
    TABLE_IX,
    TABLE_VI,
    TABLE_VII,
    Printed,
    in_bins,
    table_one,
)
from experiments.table import Table, main
from prudent import RiskCalibratedClassifier
from prudent.calibration import CategoricalFamily, PriorStrengths
from prudent.calibration.objective import Objective
from prudent.core.rows import Block
from prudent.exceptions import PrudentWarning, SingularCovarianceError

PAPER = {
    "learning_rate": 0.1,
    "max_iter": 64,
    "stopping": "train",
    "guard": "freeze",
    "line_search": False,
}
MAXIMUM_LIKELIHOOD = {"covariance_prior_strength": 0.0, "level_prior_strength": 0.0}
#: Where the figures cannot be had from the data at hand, and why.
EXCEPTIONS = {
    ("II", "ecoli"): "the paper's .560 is one row short of the majority class",
    ("II", "ionosphere"): "the paper's .251 is not naive Bayes on five bins",
    ("IV", "blood_transfusion"): "monetary = 250 frequency: singular covariance",
    ("IV", "wine_quality_red"): "class 3 has n = d = 10 rows: singular covariance",
    ("IX", "ecoli"): "the paper's .560 is one row short of the majority class",
    ("IX", "ionosphere"): "the paper's .251 is not naive Bayes on five bins",
}
for _table in ("II", "VI", "VII", "IX"):
    EXCEPTIONS[_table, "wine_quality_red"] = "the paper's copy has altered cells"
BINS = "k-means bins depend on their start, which the paper does not state"


@dataclass(frozen=True)
class Curve:
    """Training errors of one method along its iterations."""

    error: NDArray[np.float64]

    def cells(self) -> tuple[str, str, int]:
        """Initial error, least error, and the iteration that first reaches it."""
        error = self.error
        return f"{error[0]:.3f}", f"{error.min():.3f}", 1 + int(error.argmin())


def calibrated(X: Any, y: Any, **settings: Any) -> Curve:
    """Error curve of the estimator with the paper's conventions."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrudentWarning)
        model = RiskCalibratedClassifier(**PAPER | settings).fit(X, y)
    return Curve(model.error_curve_)


def strengthened(X: NDArray[Any], y: NDArray[Any]) -> Curve:
    """Discriminative frequency estimate: only the true class's counts grow."""
    levels = [np.unique(column, return_inverse=True) for column in X.T]
    codes = np.column_stack([inverse for _, inverse in levels])
    n_levels = np.array([len(values) for values, _ in levels])
    family = CategoricalFamily(n_levels, PriorStrengths())
    rows, columns = family.prepare(codes), np.arange(len(y))
    block = Block(rows, y)
    objective = Objective.of(family, block, int(y.max()) + 1)
    statistics, errors = objective.closed_form(), []
    for _ in range(64):
        losses, residuals = objective.score(block, family.parameters(statistics))
        errors.append(losses.error)
        Q = np.zeros_like(residuals)
        Q[y, columns] = residuals[y, columns]  # 1 - h(y | x)
        gained = family.statistics(rows, Q.T)
        statistics = [s + 0.1 * g for s, g in zip(statistics, gained, strict=True)]
    return Curve(np.array(errors))


@dataclass(frozen=True)
class Reproduction:
    """One table of the paper."""

    number: str
    printed: dict[int, Printed]
    calibrate: Callable[..., Curve]
    rival: Callable[..., Curve] | None
    discretise: bool = False


LIKELIHOOD = partial(calibrated, **MAXIMUM_LIKELIHOOD)
MAP = {"mean_prior_strength": 10.0, "covariance_prior_strength": 10.0}


def posterior(X: Any, y: Any, **settings: Any) -> Curve:
    """The paper's MAP: m0 = r, m1 = m2 = 10."""
    return calibrated(
        X, y, class_prior_strength=float(len(np.unique(y))), **MAP, **settings
    )


NAIVE_BAYES = partial(LIKELIHOOD, family="categorical")
TABLES = (
    Reproduction("II", TABLE_II, NAIVE_BAYES, None, discretise=True),
    Reproduction("IV", TABLE_IV, partial(LIKELIHOOD, family="full"), None),
    Reproduction(
        "VI",
        TABLE_VI,
        partial(LIKELIHOOD, family="tied_diag"),
        partial(LIKELIHOOD, family="tied_diag", method="gd"),
    ),
    Reproduction(
        "VII",
        TABLE_VII,
        partial(posterior, family="tied_diag"),
        partial(posterior, family="tied_diag", method="gd"),
    ),
    Reproduction("IX", TABLE_IX, NAIVE_BAYES, strengthened, discretise=True),
)


def rows_of(reproduction: Reproduction, quick: bool) -> list[list[object]]:
    """Ours and the paper's figures, and whether they are the same."""
    rows: list[list[object]] = []
    for index, name in FILES.items():
        X, y = table_one(name)
        if quick and X.size > 20_000:
            continue
        if reproduction.discretise:
            X = in_bins(X)
        paper = reproduction.printed[index]
        theirs = (paper.initial, paper.calibrated, paper.iteration)
        rival = f"{paper.rival} {paper.rival_iteration}"
        reason = EXCEPTIONS.get((reproduction.number, name), "")
        found = _found(reproduction, X, y)
        if found is None:
            cells = ["singular", _text(theirs), "", "", rival, reason]
        else:
            ours, our_rival = found
            if ours == theirs:
                reason = "same"
            elif not reason:
                reason = BINS if reproduction.discretise else "DIFFERS"
            difference = _difference(ours, theirs)
            cells = [_text(ours), _text(theirs), difference, our_rival, rival, reason]
        rows.append([reproduction.number, index, name, *cells])
    return rows


def _found(reproduction: Reproduction, X: Any, y: Any) -> tuple[tuple, str] | None:
    """Our cells and our rival's, None where a class covariance is singular."""
    try:
        ours = reproduction.calibrate(X, y).cells()
    except SingularCovarianceError:
        return None
    if reproduction.rival is None:
        return ours, ""
    return ours, _text(reproduction.rival(X, y).cells()[1:])


def _text(cells: tuple[object, ...]) -> str:
    return " ".join(map(str, cells))


def _difference(ours: tuple[Any, ...], theirs: tuple[Any, ...]) -> str:
    errors = zip(ours[:2], theirs[:2], strict=True)
    return " ".join(
        [
            *(f"{float(a) - float(b):+.3f}" for a, b in errors),
            f"{ours[2] - theirs[2]:+d}",
        ]
    )


def run(quick: bool) -> Table:
    """All five tables; quick leaves out the sets of many numbers."""
    rows = [row for table in TABLES for row in rows_of(table, quick)]
    notes = [
        "Three figures a cell: initial error, least error, the iteration that reaches "
        "it. Training errors, so there is no standard error: any difference counts.",
        "The rival is gradient descent (GD), in Table IX DFE; for naive Bayes and QDA "
        "GD is the paper's only.",
        ABSENT,
    ]
    for table in TABLES:
        own = [row for row in rows if row[0] == table.number]
        same = sum(row[-1] == "same" for row in own)
        notes.append(f"Table {table.number}: {same} of {len(own)} rows the same.")
    columns = ("table", "index", "set", "ours", "paper", "difference")
    return Table(
        "Tables II, IV, VI, VII, IX",
        (*columns, "rival, ours", "rival, paper", "verdict"),
        rows,
        notes,
    )


if __name__ == "__main__":
    main(run)
