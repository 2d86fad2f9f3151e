"""The rejection game against the paper's linear program and against one sort; the
detector against scikit-learn's."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array, diags_array, hstack, vstack
from sklearn.neighbors import LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

from benchmarks.timing import Workload
from prudent import LowDensityRejector, RejectionGame
from prudent.core.rows import keys_of_rows


def game_target(n_levels: int, seed: int = 0) -> tuple[np.ndarray, float]:
    """Log-normal probabilities and the median point divergence in bits."""
    p = np.random.default_rng(seed).lognormal(0, 1.5, n_levels)
    p /= p.sum()
    return p, float(np.median(-np.log2(p)))


def paper_program(p: np.ndarray, bound: float, rate: float) -> dict[str, object]:
    """Linear program (2) of Theorem 23, variables (r, z); its table of q is free.

    No level lies on the bound here, so that r_w is the last low level.
    """
    from prudent.adversarial.game.kernels import log_odds

    p = np.sort(p)
    excess = -np.log(p) - bound * np.log(2)
    low, high = np.flatnonzero(excess > 0), np.flatnonzero(excess < 0)
    odds = [log_odds(0, 0.0, excess[l], excess[h], np.nan) for l in low for h in high]
    q = 1 / (1 + np.exp(-np.array(odds)))
    n, rows = len(p), np.arange(len(q))
    l, h = np.repeat(low, len(high)), np.tile(high, len(low))
    edges = coo_array(
        (-np.append(q, 1 - q), (np.append(rows, rows), np.append(l, h))),
        shape=(len(q), n),
    )
    last_low = coo_array(([-1.0], ([0], [low[-1]])), shape=(1, n))
    floors = vstack([edges, last_low])
    falling = diags_array([-1.0, 1.0], offsets=[0, 1], shape=(n - 1, n))
    with_z = np.append(np.ones(floors.shape[0]), np.zeros(n - 1))[:, np.newaxis]
    return {
        "c": np.append(np.zeros(n), -1.0),
        "A_ub": hstack([vstack([floors, falling]), with_z]).tocsr(),
        "b_ub": np.zeros(floors.shape[0] + n - 1),
        "A_eq": np.append(p, 0.0)[np.newaxis],
        "b_eq": [rate],
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
            lambda numbers=numbers: np.unique(keys_of_rows(numbers), return_index=True),
            "np.unique(axis=0)",
            lambda numbers=numbers: np.unique(numbers, axis=0),
            1 / 1.4,
        )


def workloads() -> Iterator[Workload]:
    yield from game_workloads()
    yield from detector_workloads()
