"""Twenty methods whose promises are true, and mutants of them whose promises are not.

Each is a class with `fit`, answers and `guarantees_`, in a few lines of NumPy.
`broken=` names what was done to a mutant.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression

from prudent import Guarantee
from prudent.core.assumptions import Assumption
from prudent.core.binomial import (
    high_probability_rank,
    mean_rank,
    upper_limit,
)

RATE = 0.1
CONFIDENCE = 0.9
EXCHANGEABLE = ("new rows are exchangeable with the training rows",)
INDEPENDENT = ("rows are independent draws from one population",)


def average(quantity, bound, sense="<=", m=None, rank=None, scope=None):
    evidence = {} if rank is None else {"calibration rows": m, "rank": rank}
    return Guarantee(
        quantity=quantity, bound=bound, sense=sense, scope=scope,
        average_over="training samples", assumptions=EXCHANGEABLE, evidence=evidence,
    )  # fmt: skip


def sure(quantity, bound, sense="<=", scope=None):
    return Guarantee(
        quantity=quantity, bound=min(1.0, bound), sense=sense, scope=scope,
        confidence=CONFIDENCE, assumptions=INDEPENDENT,
    )  # fmt: skip


class Method:
    def __init__(self, broken=None, seed=0):
        self.broken, self.seed = broken, seed

    def halves(self, X, y=None):
        half = len(X) // 2
        if y is None:
            return X[:half], X[half:]
        return X[:half], y[:half], X[half:], y[half:]


def scaled(rows, like):
    spread = like.std(axis=0)
    return (rows - like.mean(axis=0)) / np.where(spread > 0, spread, 1)


# --- detectors ----------------------------------------------------------------------


class SplitDetector(Method):
    """Alarm below the k-th smallest of the scores held out."""

    kind = "mean"

    def rank(self, m):
        if self.broken == "ceil of the rank":
            return math.ceil((m + 1) * RATE)
        if self.kind == "mean" or self.broken == "mean rank sold as confidence":
            return mean_rank(m, RATE)
        return high_probability_rank(m, RATE, CONFIDENCE)

    def scores(self, X):
        return -np.abs(scaled(X, self.like_)).max(axis=1)

    def fit(self, X):
        fit, held = self.halves(X)
        self.like_ = fit
        if self.broken == "calibration on training rows":
            held = fit
        scores = np.sort(self.scores(held))
        if self.broken == "easy rows only":
            scores = scores[len(scores) // 10 + 1 :]
        if self.broken == "refit after calibration":
            self.like_ = X[np.abs(scaled(X, X)).max(axis=1) < 1.2]
        m = len(scores)
        k = self.rank(m)
        self.cut_ = scores[k - 1] if k else -np.inf
        if self.broken == "interpolated quantile":
            self.cut_ = np.quantile(scores, RATE) if m else -np.inf
        if self.kind == "mean":
            self.guarantees_ = (average("false alarm rate", RATE, m=m, rank=k),)
        else:
            self.guarantees_ = (sure("false alarm rate", RATE),)
        return self

    def predict(self, X):
        scores = self.scores(X)
        alarm = scores <= self.cut_ if self.broken == "ties count as strange" else (
            scores < self.cut_
        )  # fmt: skip
        return np.where(alarm, -1, 1)


class SureDetector(SplitDetector):
    kind = "high probability"


class NearestDetector(SplitDetector):
    """Score: distance to the nearest row of the first half."""

    def scores(self, X):
        return -np.abs(X[:, None, 0] - self.like_[None, :, 0]).min(axis=1)


class SureNearest(NearestDetector):
    kind = "high probability"


class FullDetector(Method):
    """Rank of a row among all training rows and itself (full conformal, one column)."""

    def fit(self, X):
        self.x_ = X[:, 0]
        n = len(self.x_)
        self.guarantees_ = (average("false alarm rate", mean_rank(n, RATE) / (n + 1)),)
        return self

    def predict(self, X):
        n = len(self.x_)
        new = X[:, 0]
        centre = (self.x_.sum() + new) / (n + 1)
        others = np.abs(self.x_[None, :] - centre[:, None])
        own = np.abs(new - centre)[:, None]
        p = (1 + np.sum(others >= own * (1 - 1e-12), axis=1)) / (n + 1)
        return np.where(p * (n + 1) <= mean_rank(n, RATE), -1, 1)


class TwoSided(Method):
    """Alarm outside two order statistics of the first column."""

    def fit(self, X):
        x = np.sort(X[:, 0])
        n = len(x)
        rate = RATE if self.broken == "one-sided for two-sided" else RATE / 2
        k = mean_rank(n, rate)
        self.low_ = x[k - 1] if k else -np.inf
        self.high_ = x[n - k] if k else np.inf
        self.guarantees_ = (average("false alarm rate", RATE),)
        return self

    def predict(self, X):
        return np.where((X[:, 0] < self.low_) | (X[:, 0] > self.high_), -1, 1)


class ChebyshevDetector(Method):
    """Beyond kappa deviations lies at most 1 / kappa^2 of any such law."""

    def fit(self, X):
        self.like_ = X
        self.guarantees_ = (
            Guarantee(
                quantity="false alarm rate", bound=0.25, sense="<=",
                assumptions=(Assumption.MOMENTS_PLUG_IN,),
            ),
        )  # fmt: skip
        return self

    def predict(self, X):
        kappa = 1.2 if self.broken == "normal tail for Chebyshev's" else 2.0
        return np.where(np.abs(scaled(X, self.like_)[:, 0]) > kappa, -1, 1)


# --- classifiers --------------------------------------------------------------------


class Classifier(Method):
    """Nearest class mean in scaled columns."""

    def learn(self, X, y, like=None):
        self.classes_ = np.unique(y)
        if len(self.classes_) < 2:
            raise ValueError("one class only")
        self.like_ = X if like is None else like
        Z = scaled(X, self.like_)
        self.means_ = np.array([Z[y == c].mean(axis=0) for c in self.classes_])

    def distances(self, X):
        Z = scaled(X, self.like_)
        return ((Z[:, None, :] - self.means_[None]) ** 2).sum(axis=2)

    def predict(self, X):
        return self.classes_[self.distances(X).argmin(axis=1)]


class HeldOutError(Classifier):
    """Clopper and Pearson's limit of the error rate from the second half."""

    def limit(self, wrong, n):
        if self.broken == "normal approximation":
            p = wrong / n
            return p + norm.ppf(CONFIDENCE) * math.sqrt(p * (1 - p) / n)
        if self.broken == "every row counted five times":
            return upper_limit(5 * wrong, 5 * n, level=1 - CONFIDENCE)
        return upper_limit(wrong, n, level=1 - CONFIDENCE)

    def fit(self, X, y):
        fit, y_fit, held, y_held = self.halves(X, y)
        self.learn(fit, y_fit)
        if self.broken == "error of the training rows":
            held, y_held = fit, y_fit
        if self.broken == "equal numbers of each class":
            each = min(np.sum(y_held == c) for c in self.classes_)
            keep = np.r_[*(np.flatnonzero(y_held == c)[:each] for c in self.classes_)]
            held, y_held = held[keep], y_held[keep]
        wrong = np.sum(self.predict(held) != y_held)
        self.guarantees_ = (sure("error rate", self.limit(wrong, len(held))),)
        return self


class HoeffdingError(HeldOutError):
    def limit(self, wrong, n):
        return wrong / n + math.sqrt(math.log(1 / (1 - CONFIDENCE)) / (2 * n))


class BestOfTwenty(Classifier):
    """The best of twenty random directions on the second half."""

    def fit(self, X, y):
        fit, y_fit, held, y_held = self.halves(X, y)
        self.learn(fit, y_fit)
        rng = np.random.default_rng(self.seed)
        self.candidates_ = rng.standard_normal((20, X.shape[1]))
        wrong = [np.sum(self.answers_of(a, held) != y_held) for a in self.candidates_]
        self.best_ = self.candidates_[int(np.argmin(wrong))]
        m = 1 if self.broken == "Bonferroni forgotten" else 20
        limit = upper_limit(min(wrong), len(held), level=(1 - CONFIDENCE) / m)
        self.guarantees_ = (sure("error rate", limit),)
        return self

    def answers_of(self, direction, X):
        return self.classes_[(scaled(X, self.like_) @ direction > 0).astype(int)]

    def predict(self, X):
        return self.answers_of(self.best_, X)


class ClassErrors(HeldOutError):
    """Limits of both class errors."""

    def fit(self, X, y):
        fit, y_fit, held, y_held = self.halves(X, y)
        self.learn(fit, y_fit)
        wrong = self.predict(held) != y_held
        promises = []
        for c in self.classes_:
            inside = y_held == c
            if self.broken == "all rows for one class":
                inside = np.ones(len(y_held), dtype=bool)
            if inside.any():
                limit = self.limit(wrong[inside].sum(), inside.sum())
                promises.append(sure("class error rate", limit, scope=int(c)))
        self.guarantees_ = tuple(promises)
        return self


class HoeffdingClassErrors(ClassErrors):
    limit = HoeffdingError.limit


class OrderStatistic(Classifier):
    """Class 1 where its score is not below a cut of its own held-out scores."""

    def fit(self, X, y):
        fit, y_fit, held, y_held = self.halves(X, y)
        self.learn(fit, y_fit)
        scores = np.sort(self.score(held[y_held == 1]))
        k = high_probability_rank(len(scores), 0.2, CONFIDENCE)
        if self.broken == "rank one too high":
            k = min(k + 1, len(scores))
        self.cut_ = scores[k - 1] if k else -np.inf
        self.guarantees_ = (sure("class error rate", 0.2, scope=1),)
        return self

    def score(self, X):
        distances = self.distances(X)
        return distances[:, 0] - distances[:, -1]

    def predict(self, X):
        return np.where(self.score(X) >= self.cut_, 1, 0)


class Selective(Classifier):
    """Answers where the margin is large; a limit of the error of the answers."""

    def fit(self, X, y):
        fit, y_fit, held, y_held = self.halves(X, y)
        self.learn(fit, y_fit)
        margin, wrong = self.margin(held), self.predict(held) != y_held
        order = np.argsort(-margin)
        limits = [
            upper_limit(wrong[order[: k + 1]].sum(), k + 1, level=1 - CONFIDENCE)
            for k in range(len(held))
        ]
        if self.broken == "every threshold tested":
            best = int(np.argmin(limits))
            self.cut_, limit = margin[order[best]], limits[best]
        else:
            self.cut_ = np.median(self.margin(fit))
            answered = margin >= self.cut_
            limit = 1.0
            if answered.any():
                limit = upper_limit(
                    wrong[answered].sum(), answered.sum(), level=1 - CONFIDENCE
                )
        self.guarantees_ = (sure("selective error rate", limit),)
        return self

    def margin(self, X):
        distances = np.sort(self.distances(X), axis=1)
        return distances[:, 1] - distances[:, 0]

    def answers(self, X):
        return self.margin(X) >= self.cut_


class SplitSets(Classifier):
    """Labels whose distance is not above an order statistic of the held-out ones."""

    by_class = False

    def cut(self, scores):
        n = len(scores)
        if self.broken == "n for n + 1":
            k = math.ceil(n * (1 - RATE))
        elif self.broken == "floor of the rank":
            k = math.floor((n + 1) * (1 - RATE))
        else:
            k = math.ceil((n + 1) * (1 - RATE) - 1e-12)
        return np.sort(scores)[k - 1] if 1 <= k <= n else np.inf

    def own(self, X, y):
        return self.distances(X)[np.arange(len(y)), np.searchsorted(self.classes_, y)]

    def fit(self, X, y):
        fit, y_fit, held, y_held = self.halves(X, y)
        self.learn(fit, y_fit, like=self.like(X, fit))
        known = np.isin(y_held, self.classes_)
        held, y_held = held[known], y_held[known]
        if self.broken == "calibration on training rows":
            held, y_held = fit, y_fit
        scores = self.own(held, y_held)
        if self.by_class and self.broken != "one cut for all classes":
            self.cuts_ = np.array(
                [self.cut(scores[y_held == c]) for c in self.classes_]
            )
        else:
            self.cuts_ = np.full(len(self.classes_), self.cut(scores))
        scopes = [int(c) for c in self.classes_] if self.by_class else [None]
        self.guarantees_ = tuple(
            average("coverage", 1 - RATE, ">=", scope=scope) for scope in scopes
        )
        return self

    def like(self, X, fit):
        return fit

    def predict_set(self, X):
        distances = self.distances(X)
        if self.broken == "ties count as strange":
            return distances < self.cuts_
        return distances <= self.cuts_


class ClassSets(SplitSets):
    by_class = True


class WhitenedSets(SplitSets):
    """Distances in whitened columns, learned from the first half."""

    def learn(self, X, y, like=None):
        whitening = X if self.broken != "whitening of all rows" else self.all_
        _, s, vt = np.linalg.svd(
            whitening - whitening.mean(axis=0), full_matrices=False
        )
        keep = s > 1e-9 * s[0]
        self.map_ = vt[keep].T / s[keep] * math.sqrt(len(whitening))
        super().learn(X @ self.map_, y)

    def fit(self, X, y):
        self.all_ = X
        return super().fit(X, y)

    def distances(self, X):
        return super().distances(X @ self.map_)


class CrossSets(Classifier):
    """Cross-conformal sets in five folds at twice the rate (Barber et al. 2021)."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        fold = np.arange(len(y)) % 5
        self.parts_ = []
        for f in range(5):
            part = SplitSets()
            part.learn(X[fold != f], y[fold != f])
            if len(part.classes_) != len(self.classes_):
                raise ValueError("a fold lacks a class")
            self.parts_.append((part, np.sort(part.own(X[fold == f], y[fold == f]))))
        self.n_ = len(y)
        slack = 2 * (1 - 5 / self.n_) / (self.n_ / 5 + 1)
        self.guarantees_ = (average("coverage", 1 - 2 * RATE - slack, ">="),)
        return self

    def predict_set(self, X):
        above = np.zeros((len(X), len(self.classes_)))
        for part, scores in self.parts_:
            above += len(scores) - np.searchsorted(scores, part.distances(X), "left")
        return (1 + above) / (self.n_ + 1) > RATE


class AlwaysBoth(Classifier):
    """Both labels, always: a coverage of one."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.guarantees_ = (average("coverage", 1 - RATE, ">="),)
        return self

    def predict_set(self, X):
        return np.ones((len(X), len(self.classes_)), dtype=bool)


class SureSets(SplitSets):
    """Coverage with confidence, by the rank of Vovk (2012)."""

    def cut(self, scores):
        n = len(scores)
        k = n + 1 - high_probability_rank(n, RATE, CONFIDENCE)
        return np.sort(scores)[k - 1] if k <= n else np.inf

    def fit(self, X, y):
        super().fit(X, y)
        self.guarantees_ = (sure("coverage", 1 - RATE, ">="),)
        return self


DETECTORS = (SplitDetector, FullDetector, TwoSided, ChebyshevDetector)
VALID = [
    SplitDetector, SureDetector, NearestDetector, SureNearest, FullDetector, TwoSided,
    ChebyshevDetector, HeldOutError, HoeffdingError, BestOfTwenty, ClassErrors,
    HoeffdingClassErrors, OrderStatistic, Selective, SplitSets, ClassSets, WhitenedSets,
    CrossSets, SureSets, AlwaysBoth,
]  # fmt: skip
MUTANTS = [
    (SplitDetector, "ceil of the rank"),
    (SplitDetector, "ties count as strange"),
    (SplitDetector, "interpolated quantile"),
    (SplitDetector, "easy rows only"),
    (SplitDetector, "refit after calibration"),
    (NearestDetector, "calibration on training rows"),
    (SureDetector, "mean rank sold as confidence"),
    (SureDetector, "ceil of the rank"),
    (TwoSided, "one-sided for two-sided"),
    (ChebyshevDetector, "normal tail for Chebyshev's"),
    (HeldOutError, "normal approximation"),
    (HeldOutError, "every row counted five times"),
    (HeldOutError, "error of the training rows"),
    (HeldOutError, "equal numbers of each class"),
    (BestOfTwenty, "Bonferroni forgotten"),
    (ClassErrors, "all rows for one class"),
    (OrderStatistic, "rank one too high"),
    (Selective, "every threshold tested"),
    (SplitSets, "n for n + 1"),
    (SplitSets, "floor of the rank"),
    (WhitenedSets, "whitening of all rows"),
    (WhitenedSets, "calibration on training rows"),
    (ClassSets, "one cut for all classes"),
]


class MuchTooSure(LogisticRegression):
    """An estimator for the command line."""

    @property
    def guarantees_(self):
        return (sure("error rate", 0.01),)
