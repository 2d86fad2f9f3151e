"""Where a model breaks a promise, and exact tests of that over many draws."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import betainc
from scipy.stats import betabinom

from prudent.auditing.laws import INDEPENDENT, NORMAL, UNIMODAL
from prudent.core.assumptions import MOMENTS, Assumption
from prudent.core.binomial import clopper_pearson, mean_rank
from prudent.core.guarantee import ALARMS, Guarantee, violated_rows
from prudent.core.types import BoolArray, FloatArray
from prudent.estimator_tools import predict_set, rows_about
from prudent.monitoring.bets import log_evidence

# Steps into which a rate is cut where sums of rates are tested.
GRID = 200
# Below it the transform has no digits left.
LEAST_P = 1e-12
LARGEST_BET = 0.9


def at_least(successes: float, n: float, rate: float) -> float:
    """P(Bin(n, rate) >= successes).

    Examples
    --------
    >>> from prudent.auditing.evidence import at_least
    >>> round(at_least(64, 400, 0.1), 6)
    0.000125
    """
    if successes <= 0 or rate >= 1:
        return 1.0
    return float(betainc(successes, n - successes + 1, rate))


def rank_sum_p(
    rates: FloatArray, laws: Sequence[tuple[int, int]], n_rows: int | None
) -> float:
    """P-value of "each rate is drawn from Beta(k, m + 1 - k), or stochastically less".

    `laws` holds (k, m) of each draw; `n_rows` is the number of rows on which every rate
    was counted, None where rates are exact. Each rate is cut down to a multiple of
    1 / 200, whose law is known exactly; the laws are convolved.

    Examples
    --------
    >>> import numpy as np
    >>> from prudent.auditing.evidence import rank_sum_p
    >>> round(rank_sum_p(np.full(20, 0.08), [(1, 19)] * 20, None), 4)
    0.0039
    """
    if n_rows is None:
        units = np.floor(rates * GRID).astype(int)
    else:
        units = np.rint(rates * n_rows).astype(int) * GRID // n_rows
    size = next_fast_len(len(rates) * GRID + 1, real=True)
    product = np.ones(size // 2 + 1, dtype=complex)
    for (rank, m), times in Counter(laws).items():
        product *= rfft(_cut_law(rank, m, n_rows), size) ** times
    law = irfft(product, size)
    return min(1.0, max(LEAST_P, float(law[int(units.sum()) :].sum())))


def _cut_law(rank: int, m: int, n_rows: int | None) -> FloatArray:
    """Probabilities of 0 to GRID, the rate times GRID rounded down."""
    if rank < 1 or rank > m:
        return np.eye(GRID + 1)[0 if rank < 1 else GRID]
    if n_rows is None:
        at_most = betainc(rank, m + 1 - rank, np.arange(GRID + 1) / GRID)
        return np.append(np.diff(at_most), 0.0)
    counts = np.arange(n_rows + 1)
    chances = betabinom.pmf(counts, n_rows, rank, m + 1 - rank)
    law = np.bincount(counts * GRID // n_rows, chances, GRID + 1)
    return np.asarray(law, dtype=np.float64)


def betting_log_wealth(
    rates: FloatArray, bounds: FloatArray, *, horizon: int, target: float
) -> FloatArray:
    """Log wealth of bets that the mean of rates in [0, 1] lies above their bounds.

    While the mean of each rate, given its bound, is at most that, the wealth is a
    nonnegative supermartingale from 1, so that it ever reaches 1/a with probability at
    most a.

    A bet knows the rates before it and its bound. Laid out for `horizon` draws and a
    log wealth of `target` by then, it is sqrt(2 target / (horizon v)) with v the
    variance of the rates so far, at most 0.9 / bound (Waudby-Smith and Ramdas 2024),
    and three times as much: the wealth is the mean of both.

    Examples
    --------
    >>> import numpy as np
    >>> from prudent.auditing.evidence import betting_log_wealth
    >>> rates = np.tile([0.0, 0.3], 30)
    >>> log_wealth = betting_log_wealth(rates, np.full(60, 0.1), horizon=60, target=7.0)
    >>> round(float(log_wealth[-1]), 2)
    2.56
    """
    bounds = np.broadcast_to(bounds, rates.shape)
    seen = np.arange(1, len(rates) + 1)
    start = max(float(bounds[0] * (1 - bounds[0])), 1e-4) / 4
    mean = (bounds[0] + np.cumsum(rates)) / (seen + 1)
    variance = (start + np.cumsum((rates - mean) ** 2)) / (seen + 1)
    before = np.concatenate([[start], variance[:-1]])
    bets = np.sqrt(2 * target / (horizon * before))
    with np.errstate(divide="ignore"):
        largest = LARGEST_BET / bounds
    wealth = []
    for times in (1.0, 3.0):
        stakes = np.minimum(times * bets, largest)
        # A bound of 0 that is exceeded is refuted for certain.
        gains = np.where((bounds == 0) & (rates > 0), np.inf, stakes * (rates - bounds))
        wealth.append(np.cumsum(np.log1p(gains)))
    return np.logaddexp(*wealth) - math.log(2)


# --- the draws of one promise ---------------------------------------------------------

# A rate counted on fresh rows is called beyond the bound wrongly in at most this share
# of the draws in which the promise may fail; without a confidence in this share.
COUNTING_SHARE = 0.01
COUNTING_ERROR = 1e-4
# Fewer counted rows say too little of a rate to use its law.
FEWEST_COUNTED = 200


def counting_error(claim: Guarantee) -> float:
    """Probability with which a counted rate may wrongly be called beyond the bound."""
    if claim.confidence is None:
        return COUNTING_ERROR
    return COUNTING_SHARE * (1 - claim.confidence)


@dataclass
class Tally:
    """The draws of one promise under one law at one size.

    `claim` is the first one drawn, `horizon` the most draws, `target` the log e-value
    at which the promise is refuted before all draws are made.
    """

    claim: Guarantee
    is_outside: bool
    from_moments: bool
    horizon: int
    target: float
    draws: list[Draw] = field(default_factory=list)

    @property
    def beyond(self) -> int:
        """Draws whose true rate lies beyond the bound."""
        return sum(draw.is_beyond for draw in self.draws)

    @property
    def rates(self) -> FloatArray:
        """True rates of violations, or counted ones without bias."""
        return np.array([d.first / (d.n_rows or 1) for d in self.draws])

    @property
    def bounds(self) -> FloatArray:
        """Allowed rates of violations."""
        return np.array([draw.claim.allowed for draw in self.draws])

    @property
    def failing_rate(self) -> float:
        """Largest share of draws in which a promise with confidence may fail."""
        confidence = self.claim.confidence or 0.0
        exact = all(draw.n_rows is None for draw in self.draws)
        return 1 - confidence + (0.0 if exact else counting_error(self.claim))

    def worst(self) -> Draw:
        """The draw furthest beyond its bound."""
        return max(self.draws, key=lambda draw: draw.excess)

    def log_wealth(self) -> FloatArray:
        """Log wealth of bets that the rates lie above their bounds in the mean."""
        return betting_log_wealth(
            self.rates, self.bounds, horizon=self.horizon, target=self.target
        )

    def log_e_value(self, n_draws: int) -> float:
        """Log evidence against the promise, valid however often one looks."""
        if self.claim.confidence is not None:
            return log_evidence(self.beyond, n_draws, self.failing_rate)
        if self.claim.average_over is not None:
            return float(self.log_wealth()[-1])
        if any(d.n_rows is None and d.is_beyond for d in self.draws):
            return math.inf
        logs = [
            log_evidence(d.first, d.n_rows, d.claim.allowed)
            for d in self.draws
            if d.n_rows is not None
        ]
        # Each draw may stake an equal part.
        return float(np.logaddexp.reduce([-math.inf, *logs])) - math.log(self.horizon)

    def p_value(self, n_draws: int) -> float:
        """Exact p-value when all draws are made."""
        if self.claim.confidence is not None:
            return at_least(self.beyond, n_draws, self.failing_rate)
        if self.claim.average_over is not None:
            return self._p_of_mean()
        if any(d.n_rows is None and d.is_beyond for d in self.draws):
            return 0.0
        counted = [
            at_least(d.first, d.n_rows, d.claim.allowed)
            for d in self.draws
            if d.n_rows is not None
        ]
        return min(1.0, len(counted) * min(counted)) if counted else 1.0

    def _p_of_mean(self) -> float:
        """P-value of the mean rate: by the law of the rates if known, else by bets."""
        laws = [law for law in map(rank_law, self.draws) if law is not None]
        counted = {draw.n_rows for draw in self.draws}
        if len(laws) == len(self.draws):
            if counted == {None}:
                return rank_sum_p(self.rates, laws, None)
            fewest = min(n for n in counted if n is not None)
            if None not in counted and fewest >= FEWEST_COUNTED:
                return rank_sum_p(self._thinned(fewest), laws, fewest)
        return min(1.0, math.exp(-float(self.log_wealth().max())))

    def _thinned(self, n_rows: int) -> FloatArray:
        """Rates in equally many rows of each draw, chosen at random."""
        rng = np.random.default_rng(self.draws[0].seed)
        violated = np.array([draw.first for draw in self.draws], dtype=int)
        counted = np.array([draw.n_rows for draw in self.draws], dtype=int)
        return rng.hypergeometric(violated, counted - violated, n_rows) / n_rows


def rank_law(draw: Draw) -> tuple[int, int] | None:
    """Rank k and rows m, if the rate is drawn from Beta(k, m + 1 - k) at the most.

    The largest rank that the bound allows is taken, so that only a rate beyond the
    bound speaks against the promise.
    """
    law, allowed = draw.claim.rate_law, draw.claim.allowed
    if law is None or not 0 < allowed < 1:
        return None
    rank, m = law
    if rank / (m + 1) > allowed * (1 + 1e-12):
        return None
    return max(rank, mean_rank(m, allowed)), m


AnswerWord = Literal["predict", "predict_set", "detect"]
Answer = AnswerWord | Callable[[Any, Any], Any] | None

# Rows of so small a law are asked one at a time, as they come in use: an answer that
# depends on the other rows of its batch is found out.
ASKED_ONE_BY_ONE = 12
# Rounding of sums of probabilities and of bounds.
ROUNDING = 1e-9
# What is assumed and never known of a law.
UNKNOWN = "never known"
# How groups are drawn, the share of a class, estimated probabilities, intruders;
# covariances that are those of no rows (a floor only makes them larger), and training
# rows, which are a law of many peaks, not normal.
NOT_OF_A_LAW = {
    Assumption.GROUPS,
    Assumption.GROUPS_LATEST,
    Assumption.PREVALENCE,
    Assumption.EVENTS_PLUG_IN,
    Assumption.EVENTS_SMOOTHED,
    Assumption.INTRUDER_GIVEN,
    Assumption.INTRUDER_LISTED,
    Assumption.INTRUDER_FAR,
    Assumption.INTRUDER_FAR_WHERE_POSITIVE,
}
CHANGED = {
    Assumption.SHRUNK,
    Assumption.REGULARISED,
    Assumption.UNIMODAL,
    Assumption.NORMALITY,
}


def demands(claim: Guarantee) -> frozenset[str]:
    """What a law must satisfy for the promise to be about it."""
    assumed = set(claim.assumptions)
    demanded = {INDEPENDENT}
    if Assumption.NORMALITY in assumed:
        demanded.add(NORMAL)
    if Assumption.UNIMODAL in assumed:
        demanded.add(UNIMODAL)
    if assumed & NOT_OF_A_LAW or (assumed & MOMENTS and assumed & CHANGED):
        demanded.add(UNKNOWN)
    return frozenset(demanded)


def is_about_training_rows(claim: Guarantee) -> bool:
    """Whether the training rows themselves are a law that the promise is about."""
    assumed = set(claim.assumptions)
    about_rows = bool(assumed & MOMENTS) and not assumed & CHANGED
    return claim.confidence is None and about_rows


class Answers:
    """What a model says of rows, each question asked once."""

    def __init__(self, model: Any, X: Any, answer: Answer, classes: Any) -> None:
        self.model, self.X, self.answer, self.classes = model, X, answer, classes

    def _ask(self, question: Callable[[Any, Any], Any]) -> NDArray[Any]:
        if len(self.X) > ASKED_ONE_BY_ONE:
            return np.asarray(question(self.model, self.X))
        rows = range(len(self.X))
        return np.concatenate(
            [np.asarray(question(self.model, self.X[i : i + 1])) for i in rows]
        )

    @cached_property
    def given(self) -> NDArray[Any] | None:
        """Answers in the caller's way, if there is one."""
        return self._ask(self.answer) if callable(self.answer) else None

    @cached_property
    def labels(self) -> NDArray[Any]:
        """One label a row."""
        if self.given is not None and self.given.ndim == 1:
            return self.given
        return self._ask(lambda model, X: model.predict(X))

    @cached_property
    def sets(self) -> BoolArray:
        """Matrix of rows and classes."""
        if self.given is not None:
            return self.given.astype(bool)
        if self.answer == "predict":
            return self.labels[:, None] == self.classes[None, :]
        return self._ask(predict_set)

    @cached_property
    def alarms(self) -> BoolArray:
        """Whether each row raises an alarm."""
        if self.given is not None and self.given.dtype == bool:
            return self.given
        return self.labels == -1

    @cached_property
    def answered(self) -> BoolArray:
        """Whether each row has one answer."""
        if self.answer is None and hasattr(self.model, "answers"):
            return self._ask(lambda model, X: model.answers(X)).astype(bool)
        return self.sets.sum(axis=1) == 1


def violations(
    claim: Guarantee, answers: Answers, y: NDArray[Any]
) -> tuple[BoolArray, BoolArray]:
    """Rows that a promise is about, and those that break it, or are to be rare."""
    quantity = claim.quantity
    by_sets = quantity == "coverage"
    if quantity == "selective error rate":
        by_sets = answers.given is not None and answers.given.ndim == 2
    elif quantity == "false alarm rate":  # of the rows of a class, by its set
        by_sets = answers.answer is None and hasattr(answers.model, "classes_")
    by_alarms = quantity in ALARMS and not by_sets
    given: Any = answers.sets if by_sets else answers.labels
    if by_alarms:
        given = np.where(answers.alarms, -1, 1)
    if quantity == "selective error rate" and not by_sets:
        claim = replace(claim, quantity="error rate")  # of the rows with an answer
    if quantity == "answered share":
        counted, violated = np.ones(len(y), dtype=bool), answers.answered
    else:
        counted, violated = violated_rows(claim, y, given, answers.classes)
    counted &= rows_about(answers.model, claim, answers.X)
    if by_alarms:  # labels of ordinary rows may be any but -1
        counted &= (y == -1) == (quantity == "miss rate")
    if quantity == "selective error rate":
        counted &= answers.answered
    # What is not promised to be rare is so where it does not happen.
    return counted, violated ^ claim.counts_frequent


@dataclass(frozen=True, slots=True)
class Draw:
    """The promise of one model, and its true rate of violations.

    The rate is exact, or counted on fresh rows. `first` violations were counted in the
    first `n_rows` rows, so that their share has the true rate as its mean; an exact
    rate has no `n_rows`. `place` counts the promises of the model before this one that
    differ from it in bound or assumptions alone. `is_outside` says that the law breaks
    an assumption of the promise.
    """

    claim: Guarantee
    rate: float
    n_rows: int | None
    first: float
    is_beyond: bool
    seed: int = 0  # of the rows and of the model
    place: int = 0
    is_outside: bool = False

    @property
    def excess(self) -> float:
        """How far the true rate lies beyond the bound."""
        return self.rate - self.claim.allowed


def exact_rate(
    claim: Guarantee, answers: Answers, y: NDArray[Any], chances: FloatArray
) -> Draw | None:
    """True rate on a finite law; None if the promise is about none of its rows."""
    counted, violated = violations(claim, answers, y)
    if not counted.any():
        return _about_no_row(claim)
    rate = float(chances[counted & violated].sum() / chances[counted].sum())
    return Draw(claim, rate, None, rate, rate > claim.allowed + ROUNDING)


def counted_rate(
    claim: Guarantee,
    draw: Callable[[int], tuple[Answers, NDArray[Any]]],
    error: float,
) -> Draw | None:
    """True rate counted on fresh rows, more of them where the first leave a doubt.

    `draw` maps the stage, 0 or 1, to answers and labels; `error` is the probability of
    calling a rate beyond the bound that is not.
    """
    allowed = claim.allowed
    total = violated = n_rows = 0
    for stage in (0, 1):
        answers, y = draw(stage)
        inside, wrong = violations(claim, answers, y)
        total += int(inside.sum())
        violated += int((inside & wrong).sum())
        if not total:
            continue
        if not n_rows:
            n_rows, first = total, float(violated)
        # Each look at half of the error; the limits are two-sided.
        lower, upper = clopper_pearson(violated, total, level=error)
        is_average = claim.average_over is not None
        if is_average or upper <= allowed or lower > allowed:
            break
    if not n_rows:
        return _about_no_row(claim)
    return Draw(claim, violated / total, n_rows, first, lower > allowed)


def _about_no_row(claim: Guarantee) -> Draw | None:
    """What a promise about none of the rows says: nothing answered is never wrong."""
    if claim.quantity != "selective error rate":
        return None
    return Draw(claim, 0.0, None, 0.0, False)
