"""The rejection game against the paper's linear program and against one sort; the
detector against scikit-learn's."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array, eye_array, hstack, vstack
from sklearn.neighbors import LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

from benchmarks.timing import Workload
from prudent import LowDensityRejector, RejectionGame
from prudent.adversarial.cells import hash_rows


def game_target(n_levels: int, seed: int = 0) -> tuple[np.ndarray, float]:
    """Log-normal probabilities and the median point divergence in bits."""
    p = np.random.default_rng(seed).lognormal(0, 1.5, n_levels)
    p /= p.sum()
    return p, float(np.median(-np.log2(p)))


def paper_program(p: np.ndarray, bound: float, rate: float):
    """The paper's LP (2) over rising levels, without its redundant order rows.

    Variables (r, z), maximise z; the table of q costs nothing here.
    """
    from prudent.adversarial.kernels import log_odds

    p = np.sort(p)
    excess = -np.log(p) - bound * np.log(2)
    low, high = np.flatnonzero(excess > 1e-12), np.flatnonzero(excess < -1e-12)
    alone = np.flatnonzero(excess >= -1e-12)
    q = np.array(
        [[log_odds(0, 0.0, excess[l], excess[h], np.nan) for h in high] for l in low]
    )
    q = 1 / (1 + np.exp(-q.ravel()))
    rows = np.arange(len(q))
    l, h = np.repeat(low, len(high)), np.tile(high, len(low))
    edges = coo_array(
        (-np.append(q, 1 - q), (np.append(rows, rows), np.append(l, h))),
        shape=(len(q), len(p)),
    )
    points = -eye_array(len(p), format="csr")[alone]
    floors = vstack([edges, points])
    floors = hstack([floors, np.ones((floors.shape[0], 1))])
    budget = np.append(p, 0.0)[None]
    return {
        "c": np.append(np.zeros(len(p)), -1.0),
        "A_ub": vstack([floors, budget]).tocsr(),
        "b_ub": np.append(np.zeros(floors.shape[0]), rate),
        "bounds": (0, 1),
        "method": "highs",
    }


def game_workloads() -> Iterator[Workload]:
    for n_levels, times in ((200, 150), (500, 400), (1000, 1000)):
        p, bound = game_target(n_levels)
        program = paper_program(p, bound, 0.05)
        game = RejectionGame(divergence_bound=bound)
        yield Workload(
            f"rejection game, {n_levels} levels",
            lambda game=game, p=p: game.fit(p),
            "paper's LP, HiGHS",
            lambda program=program: linprog(**program),
            1 / times,
            repeats=2 if n_levels < 1000 else 1,
        )
    for n_levels, times in ((10**5, 700), (10**6, 200)):
        p, bound = game_target(n_levels)
        game = RejectionGame(divergence_bound=bound)
        yield Workload(
            f"rejection game, {n_levels:.0e} levels",
            lambda game=game, p=p: game.fit(p),
            "np.sort",
            lambda p=p: np.sort(p),
            times,
            repeats=3,
        )


def rows(n: int, d: int = 5) -> np.ndarray:
    """Three overlapping clusters."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, d)) + 3 * rng.integers(3, size=n)[:, None]


def fit_and_score(detector, fitted_on: np.ndarray, scored: np.ndarray):
    return detector.fit(fitted_on).score_samples(scored)


def detector_workloads() -> Iterator[Workload]:
    detector = LowDensityRejector(random_state=0)
    svm = make_pipeline(StandardScaler(), OneClassSVM(nu=0.05))
    neighbours = make_pipeline(StandardScaler(), LocalOutlierFactor(novelty=True))
    for n, peer_name, peer, goal in (
        (40_000, "OneClassSVM", svm, 1 / 4),
        (100_000, "LocalOutlierFactor", neighbours, 1 / 2),
    ):
        X, fresh = rows(n), rows(n // 2)
        yield Workload(
            f"detector, fit {n} + score {n // 2} rows",
            lambda X=X, fresh=fresh: fit_and_score(detector, X, fresh),
            peer_name,
            lambda peer=peer, X=X, fresh=fresh: fit_and_score(peer, X, fresh),
            goal,
            repeats=2,
        )
    X = rows(40_000)
    fitted = LowDensityRejector(random_state=0).fit(X)
    yield Workload(
        "detector, another false-alarm rate",
        lambda: fitted.with_false_alarm_rate(0.1),
        "fit",
        lambda: detector.fit(X),
        1 / 50,
        repeats=2,
    )
    for d in (2, 10, 30):
        numbers = np.floor(rows(50_000, d) / 0.5)
        yield Workload(
            f"occupied cells of 50000 rows, {d} columns",
            lambda numbers=numbers: np.unique(hash_rows(numbers), return_index=True),
            "np.unique(axis=0)",
            lambda numbers=numbers: np.unique(numbers, axis=0),
            1 / 1.4,
        )


def workloads() -> Iterator[Workload]:
    yield from game_workloads()
    yield from detector_workloads()
