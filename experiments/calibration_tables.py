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
from prudent.calibration.problem import Problem
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
BINS = "the paper's bins are not recovered"


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
    problem = Problem(family, rows, y, np.ones(len(y)), int(y.max()) + 1)
    statistics, errors = problem.closed_form(), []
    for _ in range(64):
        evaluation = problem.evaluate(statistics)
        errors.append(evaluation.losses.error)
        Q = np.zeros_like(evaluation.residuals)
        Q[y, columns] = evaluation.residuals[y, columns]  # 1 - h(y | x)
        gained = family.statistics(rows, Q.T)
        statistics = [s + 0.1 * g for s, g in zip(statistics, gained, strict=True)]
    return Curve(np.array(errors))


@dataclass(frozen=True)
class Reproduction:
    """One table of the paper."""

    number: str
    printed: dict[int, Printed]
    calibrate: Callable[..., Curve]
    rival_name: str
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
    Reproduction("II", TABLE_II, NAIVE_BAYES, "GD", None, discretise=True),
    Reproduction("IV", TABLE_IV, partial(LIKELIHOOD, family="full"), "GD", None),
    Reproduction(
        "VI",
        TABLE_VI,
        partial(LIKELIHOOD, family="tied_diag"),
        "GD",
        partial(LIKELIHOOD, family="tied_diag", method="gd"),
    ),
    Reproduction(
        "VII",
        TABLE_VII,
        partial(posterior, family="tied_diag"),
        "GD",
        partial(posterior, family="tied_diag", method="gd"),
    ),
    Reproduction("IX", TABLE_IX, NAIVE_BAYES, "DFE", strengthened, discretise=True),
)


def rows_of(reproduction: Reproduction, quick: bool) -> list[list[object]]:
    """Ours and the paper's figures, and whether they are the same."""
    rows = []
    for index, name in FILES.items():
        X, y = table_one(name)
        if quick and X.size > 20_000:
            continue
        if reproduction.discretise:
            X = in_bins(X)
        paper = reproduction.printed[index]
        reason = EXCEPTIONS.get((reproduction.number, name), "")
        try:
            ours = reproduction.calibrate(X, y).cells()
        except SingularCovarianceError:
            rows.append([reproduction.number, index, name, "singular", "", "", reason])
            continue
        rival: tuple[object, ...] = ("", "")
        if reproduction.rival is not None:
            rival = reproduction.rival(X, y).cells()[1:]
        same = ours == (paper.initial, paper.calibrated, paper.iteration)
        if not same and not reason and reproduction.discretise:
            reason = BINS
        printed_rival = f"{paper.rival} {paper.rival_iteration}"
        rows.append(
            [
                reproduction.number,
                index,
                name,
                " ".join(map(str, ours)),
                f"{paper.initial} {paper.calibrated} {paper.iteration}",
                f"{rival[0]} {rival[1]} ({reproduction.rival_name} {printed_rival})",
                "same" if same else reason or "DIFFERS",
            ]
        )
    return rows


def run(quick: bool) -> Table:
    """All five tables; quick leaves out the sets of many numbers."""
    rows = [row for table in TABLES for row in rows_of(table, quick)]
    notes = [ABSENT, "GD for naive Bayes and QDA is the paper's; ours is LR's only"]
    for table in TABLES:
        own = [row for row in rows if row[0] == table.number]
        same = sum(row[-1] == "same" for row in own)
        notes.append(f"Table {table.number}: {same} of {len(own)} rows the same")
    return Table(
        "Pérez et al., Tables II, IV, VI, VII, IX: initial error, least error, Iter",
        ("table", "index", "set", "ours", "paper", "rival (paper)", "verdict"),
        rows,
        notes,
    )


if __name__ == "__main__":
    main(run)
