"""The eight false promises that were once found by hand in this library, as mutants.

Tests of `tests/validity` tell what they were; each is what was wrong, in few lines.
"""

from __future__ import annotations

import math
import zlib

import numpy as np

from auditing.methods import CONFIDENCE, EXCHANGEABLE, INDEPENDENT
from prudent import Guarantee, RejectionGame
from prudent.auditing import Law
from prudent.core.assumptions import Assumption
from prudent.core.binomial import mean_rank, upper_limit

PLUG_IN = (Assumption.MOMENTS_PLUG_IN,)


class Plane:
    """A plane between two classes with Chebyshev's bound of each class's error."""

    confidence = None
    assumptions = PLUG_IN

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        if len(self.classes_) != 2:
            raise ValueError("two classes are needed")
        groups = [X[y == c] for c in self.classes_]
        self.means_ = [rows.mean(axis=0) for rows in groups]
        self.covariances_ = [
            (rows - m).T @ (rows - m) / len(rows)
            for rows, m in zip(groups, self.means_, strict=True)
        ]
        self.groups_ = groups
        self.place()
        return self

    def normal(self):
        gap = self.means_[1] - self.means_[0]
        total = self.covariances_[0] + self.covariances_[1]
        return np.linalg.pinv(total, rcond=1e-15, hermitian=True) @ gap

    def place(self):
        self.normal_ = a = self.normal()
        spread = [math.sqrt(max(a @ S @ a, 0.0)) for S in self.covariances_]
        middle = [m @ a for m in self.means_]
        gap = middle[1] - middle[0]
        self.kappa_ = gap / sum(spread) if sum(spread) > 0 else math.inf
        share = spread[0] / sum(spread) if sum(spread) > 0 else 0.5
        self.offset_ = middle[0] + share * gap
        self.promise()

    def bound(self):
        return 1 / (1 + self.kappa_**2)

    def promise(self):
        self.guarantees_ = tuple(
            Guarantee(
                quantity="class error rate", bound=self.bound(), sense="<=",
                scope=int(c), confidence=self.confidence, assumptions=self.assumptions,
            )
            for c in self.classes_
        )  # fmt: skip

    def predict(self, X):
        return self.classes_[(X @ self.normal_ > self.offset_).astype(int)]


class BoundOfAnotherArithmetic(Plane):
    """B1: the bound of exact arithmetic, the plane of nearly singular directions."""


class BoundOfTheOptimum(Plane):
    """B2: on singular moments the solver ends early, the bound is the optimum's."""

    def normal(self):
        gap = self.means_[1] - self.means_[0]
        total = self.covariances_[0] + self.covariances_[1]
        return np.linalg.pinv(total, rcond=0.5, hermitian=True) @ gap

    def bound(self):
        best = Plane.normal(self)
        spread = sum(math.sqrt(max(best @ S @ best, 0.0)) for S in self.covariances_)
        gap = best @ (self.means_[1] - self.means_[0])
        return 1 / (1 + (gap / spread) ** 2) if spread > 0 else 0.0


class BootstrapFromAnyRows(Plane):
    """B3: radii by resampling, with a confidence, from one row too."""

    confidence = 0.95
    assumptions = INDEPENDENT

    def bound(self):
        rng = np.random.default_rng(0)
        radius = []
        for rows, S in zip(self.groups_, self.covariances_, strict=True):
            drawn = rows[rng.integers(0, len(rows), (50, len(rows)))].mean(axis=1)
            moved = (drawn - rows.mean(axis=0)) @ self.normal_
            spread = math.sqrt(max(self.normal_ @ S @ self.normal_, 0.0))
            moved = np.abs(moved) / spread if spread > 0 else np.zeros(50)
            radius.append(np.quantile(moved, 0.95))
        return 1 / (1 + max(self.kappa_ - max(radius), 0.0) ** 2)


class ConfidenceFromWeights(BootstrapFromAnyRows):
    """B4: every row has weight 100, and the radii take that for a hundred rows."""

    def bound(self):
        fewest = min(map(len, self.groups_))
        radius = 3 / math.sqrt(100 * fewest)
        return 1 / (1 + max(self.kappa_ - radius, 0.0) ** 2)


class ScoreOfTheBatch:
    """B5: rounding depends on the batch, so that equal rows do not tie."""

    def fit(self, X):
        self.weights_ = np.arange(1, X.shape[1] + 1) / 7
        scores = np.sort(self.scores(X))
        k = mean_rank(len(scores), 0.2)
        self.cut_ = scores[k - 1] if k else -np.inf
        self.guarantees_ = (
            Guarantee(
                quantity="false alarm rate", bound=0.2, sense="<=",
                average_over="training samples", assumptions=EXCHANGEABLE,
                evidence={"calibration rows": len(scores), "rank": k},
            ),
        )  # fmt: skip
        return self

    def scores(self, X):
        scores = (X * self.weights_).sum(axis=1)
        return scores if len(X) > 1 else scores - 1e-13 * np.abs(scores)

    def predict(self, X):
        return np.where(self.scores(X) < self.cut_, -1, 1)


class LevelsOfAllRows:
    """B6: the table of levels is that of all rows, those held out included."""

    def fit(self, X, y):
        half = len(X) // 2
        self.levels_ = set(X[:, 0])
        self.seen_ = dict(zip(X[:half, 0], y[:half], strict=True))
        wrong = np.sum(self.predict(X[half:]) != y[half:])
        limit = upper_limit(wrong, len(X) - half, level=1 - CONFIDENCE)
        self.guarantees_ = (
            Guarantee(
                quantity="error rate", bound=limit, sense="<=", confidence=CONFIDENCE,
                assumptions=INDEPENDENT,
            ),
        )  # fmt: skip
        return self

    def predict(self, X):
        # A level without rows of the fit is rare; one not in the table is noise.
        return np.array(
            [self.seen_.get(x, 1 if x in self.levels_ else 0) for x in X[:, 0]]
        )


P = np.random.default_rng(27).dirichlet(np.full(6, 2.0))
FAR = 0.6 * math.log2(1 / P.min())


class TiedGame:
    """B7: the miss rate promised is that of the rule without ties."""

    def __init__(self, tie_tol=0.1):
        self.tie_tol = tie_tol

    def fit(self, X):
        seed = 0 if X is None else zlib.crc32(X.tobytes())  # other coins each draw
        self.coins_ = np.random.RandomState(seed)
        settings = {"false_alarm_rate": 0.1, "divergence_bound": FAR}
        self.game_ = RejectionGame(tie_tol=self.tie_tol, **settings).fit(P)
        exact = RejectionGame(tie_tol=0, **settings).fit(P)
        self.guarantees_ = (
            Guarantee(
                quantity="miss rate", bound=exact.miss_rate_, sense="<=",
                average_over="the rule's coins", assumptions=("p is known exactly",),
            ),
        )  # fmt: skip
        return self

    def predict(self, X):
        rejected = self.game_.reject(X[:, 0].astype(int), self.coins_)
        return np.where(rejected, -1, 1)


def intruder():
    """Ordinary events by P; the intruder on the event that the tied rule likes best."""
    game = TiedGame().fit(None).game_
    far = np.flatnonzero(np.log2(1 / P) >= FAR)
    worst = far[np.argmin(game.rejection_[far])]
    X = np.append(np.arange(6.0), worst)[:, None]
    return Law.finite("intruder", X, [1] * 6 + [-1], [*P / 2, 0.5])


class FourthPowers:
    """B8: scores over- or underflow at some scales, and nothing compares with them."""

    def fit(self, X):
        self.centre_ = X.mean(axis=0)
        scores = np.sort(self.scores(X))
        k = mean_rank(len(scores), 0.1)
        self.cut_ = scores[-k] if k else np.inf
        self.guarantees_ = (
            Guarantee(
                quantity="false alarm rate", bound=0.1, sense="<=",
                average_over="training samples", assumptions=EXCHANGEABLE,
            ),
        )  # fmt: skip
        return self

    def scores(self, X):
        powers = (X - self.centre_) ** 4
        return (powers / powers.mean(axis=0)).sum(axis=1)

    def predict(self, X):
        return np.where(self.scores(X) <= self.cut_, 1, -1)


DETECTORS = (ScoreOfTheBatch, TiedGame, FourthPowers)
EIGHT = [
    BoundOfAnotherArithmetic,
    BoundOfTheOptimum,
    BootstrapFromAnyRows,
    ConfidenceFromWeights,
    ScoreOfTheBatch,
    LevelsOfAllRows,
    TiedGame,
    FourthPowers,
]
