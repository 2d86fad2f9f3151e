"""A solved game: the rule, what it is worth, and the intruders it answers.

Far intruders keep a distance from the target; listed ones follow a given distribution.
Both answer alike: the best rule at a false-alarm rate, the cheapest of a value, and
the intruder whom a rule rejects least.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import Bounds, LinearConstraint, OptimizeResult, linprog, milp

from prudent.adversarial.game.laws import check_distributions
from prudent.adversarial.game.solver import (
    Events,
    Levels,
    curve_values,
    least_rate,
    solve_game,
)
from prudent.core.rows import keyed_uniform
from prudent.core.types import BoolArray, FloatArray, IntArray
from prudent.core.validation import shown

# --- rules: their worth, and the proof that none does better --------------------------

Strategy = Literal["soft", "hard"]


@dataclass(frozen=True, slots=True)
class Rule:
    """An optimal rule of its strategy, with its certificate.

    The value is attained by the rule; no rule of the strategy has more than the upper
    bound.
    """

    rejection: FloatArray  # (n_events,), probability of rejecting; 1 for null events
    value: float  # rejection rate of the best intruder
    upper_bound: float  # the most any rule could reach
    adversary: FloatArray  # (n_events,), a best intruder
    mixture: FloatArray  # (n_events,), of intruders, behind `upper_bound`
    is_trivial: bool  # nothing randomised beats rejecting every event alike


def best_powers(p: FloatArray, q: FloatArray, rates: FloatArray) -> FloatArray:
    """Power against q of the best randomised tests of p at many levels, (n_rates,).

    The lemma of Neyman and Pearson: events are rejected by falling q / p, the last in
    part. Events of p = 0 cost nothing.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        order = np.argsort(-np.where(p > 0, q / p, np.inf), kind="stable")
    free = np.count_nonzero(p == 0)
    spent = np.append(0.0, np.cumsum(p[order[free:]]))
    gained = np.cumsum(np.append(q[order[:free]].sum(), q[order[free:]]))
    return np.minimum(1.0, np.interp(rates, spent, gained))


# --- far intruders: all who keep a distance from the target ---------------------------
#
# For every rule and every convex divergence a worst intruder lives on an edge of the
# simplex, on at most two events (A2 of the user guide).


@dataclass(frozen=True, slots=True)
class FarIntruders:
    """All distributions at a divergence of at least the bound from the target."""

    events: Events  # with the levels of the game
    tied: Events  # the same in coarser levels, whose events are all treated alike
    levels: Levels  # the target, split at the bound

    def best_rule(self, rate: float, strategy: Strategy) -> Rule:
        """Rule of the largest value among those that reject ordinary events at `rate`.

        "soft": the game solved level by level; events that tie get the mean of their
        probabilities, which costs as much. "hard": the least probable events are
        rejected, within a tie those of lowest index first (A4). What the rule is
        worth is what the best intruder against it leaves.
        """
        soft, value, upper_bound, mass, is_trivial = solve_game(self.levels, rate)
        if strategy == "soft":
            rejection = self.events.spread(soft, 1.0)
            if self._has_ties:
                mean = self.tied.mean(rejection)
                rejection = np.minimum(1.0, self.tied.spread(mean, 1.0))
            shares = soft_response(self.levels)
        else:
            rejection = self._least_probable(rate)
            value, shares = hard_response(self.levels, rate)
            upper_bound = value
        if self._has_ties:
            smallest = self.events.smallest(rejection)
            value, shares = best_response(self.levels, smallest)
        adversary = self._distribution(rejection, shares)
        mixture = adversary.copy()
        if strategy == "soft":
            mixture = self.events.share * self.events.spread(mass, 0.0)
        return Rule(rejection, value, upper_bound, adversary, mixture, is_trivial)

    def cheapest_rule(self, value: float, strategy: Strategy) -> Rule:
        """Rule of the least false-alarm rate among those of this value.

        Theorem 45: it is the best rule at that rate. Events that tie get the largest
        of their probabilities, so that the value is kept.
        """
        exact = replace(self, tied=self.events)
        rule = exact.best_rule(self.least_rate(value, strategy), strategy)
        if not self._has_ties:
            return rule
        largest = -self.tied.smallest(-rule.rejection)
        rejection = self.tied.spread(largest, 1.0)
        worst, adversary = self.worst_case(rejection)
        rate = min(1.0, float(rejection @ self.events.target))
        best = exact.best_rule(rate, strategy)
        return replace(
            rule,
            rejection=rejection,
            value=worst,
            upper_bound=max(best.upper_bound, worst),
            adversary=adversary,
            mixture=best.mixture,
        )

    def least_rate(self, value: float, strategy: Strategy) -> float:
        """Least false-alarm rate of a rule of this value."""
        if strategy == "soft":
            return least_rate(self.levels, value)
        return float(self.levels.reached[levels_to_reject(self.levels, value)])

    def values(self, rates: FloatArray, strategy: Strategy) -> FloatArray:
        """Values of the best rules at many false-alarm rates."""
        if strategy == "soft":
            return curve_values(self.levels, rates)
        return np.array([hard_response(self.levels, rate)[0] for rate in rates])

    def worst_case(self, rejection: FloatArray) -> tuple[float, FloatArray]:
        """Least rejected intruder against any rule: rejection rate and distribution."""
        value, shares = best_response(self.levels, self.events.smallest(rejection))
        return value, self._distribution(rejection, shares)

    @property
    def _has_ties(self) -> bool:
        return self.tied is not self.events

    def _least_probable(self, rate: float) -> FloatArray:
        """Reject the least probable events that the rate allows."""
        budget = rate * (1 + 1e-12)
        reached = np.append(0.0, np.cumsum(self.tied.mass, dtype=np.longdouble))
        n_full = int(np.count_nonzero(reached[1:] <= budget))
        rejection = np.where(self.tied.level < n_full, 1.0, 0.0)
        members = np.flatnonzero(self.tied.level == n_full)
        if len(members):
            each = self.tied.share[members] * self.tied.mass[n_full]
            affordable = reached[n_full] + np.cumsum(each) <= budget
            rejection[members[affordable]] = 1.0
        return rejection

    def _distribution(self, rejection: FloatArray, shares: Shares) -> FloatArray:
        """Intruder over events: in each of its levels on one that is rejected least."""
        q = np.zeros(len(rejection))
        for level, share in shares:
            members = np.flatnonzero(self.events.level == level)
            q[members[np.argmin(rejection[members])]] += share
        return q


#: An intruder on an edge: one or two levels, and the share of each.
Shares = tuple[tuple[int, float], ...]


def best_response(levels: Levels, rejection: FloatArray) -> tuple[float, Shares]:
    """Least rejected intruder against a rule's smallest probabilities by level (A2).

    Returns the rate at which it is rejected, and its shares of one or two levels.
    Starts from the best single event and moves to the pair that undercuts it most
    until none does; each search is O(n_levels log n_levels).
    """
    from prudent.adversarial.game.kernels import tightest_pair

    alone = int(np.argmin(rejection[: levels.n_admissible]))
    least = float(rejection[alone])
    shares: Shares = ((alone, 1.0),)
    if levels.n_low == 0:
        return least, shares
    r_low, r_high = rejection[levels.low], rejection[levels.high]
    # A high level counts only if no lower one is rejected as little: theta rises.
    before = np.minimum.accumulate(np.append(np.inf, r_high))[:-1]
    records = np.flatnonzero(r_high < before)
    while True:
        usable = records[r_high[records] < least]
        if not len(usable):
            return least, shares
        l, at, ratio = tightest_pair(
            levels.code,
            levels.scale,
            levels.excess[levels.low],
            r_low - least,
            levels.excess[levels.high][usable],
            least - r_high[usable],
        )
        h = levels.n_admissible + int(usable[at])
        q = _edge_share(levels, l, h)
        value = float(rejection[h] + q * (rejection[l] - rejection[h]))
        if ratio >= 1 or value >= least:
            return least, shares
        least, shares = value, ((l, q), (h, 1 - q))


def soft_response(levels: Levels) -> Shares:
    """Best intruder against the optimal randomised rule, without a search.

    The edge between the lowest low and the lowest high level is always tight.
    """
    if levels.n_low == 0 or levels.lets_all_in:
        return ((0, 1.0),)
    q = _edge_share(levels, 0, levels.n_admissible)
    return (0, q), (levels.n_admissible, 1 - q)


def hard_response(levels: Levels, rate: float) -> tuple[float, Shares]:
    """Best intruder against the rule that rejects the least probable events (A4).

    Returns the rate at which it is rejected, and its shares of one or two levels. The
    lowest accepted level decides, whichever of its events are rejected.
    """
    accepted = int(np.count_nonzero(levels.reached[1:] <= rate * (1 + 1e-12)))
    if rate == 1 or accepted == len(levels.value):
        return 1.0, ((0, 1.0),)
    if accepted < levels.n_admissible:
        return 0.0, ((accepted, 1.0),)
    if levels.n_low == 0:
        return 1.0, ((0, 1.0),)
    q = _edge_share(levels, 0, accepted)
    return q, ((0, q), (accepted, 1 - q))


def levels_to_reject(levels: Levels, value: float) -> int:
    """Least number of lowest levels whose rejection rejects any intruder so often.

    Every level that may be played alone is one of them, and every higher level that
    leaves too little room: its edge with the lowest level has q < `value`. The q rise
    with the level, so a search by halves finds the first that will do.
    """
    if value <= 0:
        return 0
    if levels.n_low == 0 or levels.lets_all_in:
        return levels.n_admissible
    low, high = levels.n_admissible, len(levels.value)
    while low < high:
        middle = (low + high) // 2
        if _edge_share(levels, 0, middle) >= value * (1 - 1e-12):
            high = middle
        else:
            low = middle + 1
    return low


def _edge_share(levels: Levels, low: int, high: int) -> float:
    """Share q of the low level at which the edge meets the bound."""
    from prudent.adversarial.game.kernels import log_odds

    excess_low, excess_high = levels.excess[low], levels.excess[high]
    x = log_odds(levels.code, levels.scale, excess_low, excess_high, math.nan)
    return 1 / (1 + math.exp(-x))


# --- listed intruders: the game as a small linear or integer programme ----------------


_TOLERANCES = {
    "primal_feasibility_tolerance": 1e-10,
    "dual_feasibility_tolerance": 1e-10,
}
_ROUNDING = 1e-12  # relative; what a sum of probabilities may be off by
_UNIT = 1e4  # of the integer programmes, whose solver overlooks errors of 1e-6


@dataclass(frozen=True, slots=True)
class ListedIntruders:
    """Distributions of which the intruder picks one."""

    target: FloatArray  # (n_events,), p; events of probability 0 are rejected
    laws: FloatArray  # (n_intruders, n_events), q

    def best_rule(self, rate: float, strategy: Strategy) -> Rule:
        """Max over r of min over q of sum r q, with sum r p at most `rate`.

        "soft": r in [0, 1]. The dual weighs the intruders, and no rule is worth more
        than the best test of p against their mixture. "hard": r in {0, 1}; the bound
        is that of branch and bound.
        """
        if strategy == "soft":
            rejection, mixture = self._best_soft(rate)
            bound = float(best_powers(self.target, mixture, np.array([rate]))[0])
            return self._rule(rejection, bound, mixture)
        rejection, bound = self._best_hard(rate)
        return self._rule(rejection, bound)

    def cheapest_rule(self, value: float, strategy: Strategy) -> Rule:
        """Min over r of sum r p with sum r q at least `value` for every q."""
        if strategy == "soft":
            rejection, mixture = self._cheapest_soft(value)
            rate = np.array([rejection @ self.target])
            bound = float(best_powers(self.target, mixture, rate)[0])
            return self._rule(rejection, bound, mixture)
        rejection = self._cheapest_hard(value)
        return self._rule(rejection, self._best_hard(float(rejection @ self.target))[1])

    def least_rate(self, value: float, strategy: Strategy) -> float:
        """Least false-alarm rate of a rule of this value."""
        return float(self.cheapest_rule(value, strategy).rejection @ self.target)

    def values(self, rates: FloatArray, strategy: Strategy) -> FloatArray:
        """Values of the best rules at many false-alarm rates: a programme each."""
        find = self._best_soft if strategy == "soft" else self._best_hard
        return np.array([self.worst_case(find(rate)[0])[0] for rate in rates])

    def worst_case(self, rejection: FloatArray) -> tuple[float, FloatArray]:
        """Intruder on the list that a rule rejects least."""
        rule = np.where(self.target > 0, rejection, 1.0)
        rejected = np.minimum(1.0, self.laws @ rule)
        worst = int(rejected.argmin())
        return float(rejected[worst]), self.laws[worst].copy()

    def _rule(
        self, rejection: FloatArray, bound: float, mixture: FloatArray | None = None
    ) -> Rule:
        """The rule with its value, its bound, and the intruders behind both."""
        value, adversary = self.worst_case(rejection)
        even = self.worst_case(self._best_soft(0.5)[0])[0]
        return Rule(
            rejection=rejection,
            value=value,
            upper_bound=max(value, bound),
            adversary=adversary,
            mixture=adversary.copy() if mixture is None else mixture,
            is_trivial=even <= 0.5 + 1e-9,
        )

    def _best_soft(self, rate: float) -> tuple[FloatArray, FloatArray]:
        """Rule, and the mixture of intruders by the weights of the dual."""
        n_laws, n_events = self.laws.shape
        solved = linprog(
            np.append(np.zeros(n_events), -1.0),
            A_ub=np.vstack(
                [np.c_[-self.laws, np.ones(n_laws)], np.append(self.target, 0.0)]
            ),
            b_ub=np.append(np.zeros(n_laws), rate),
            bounds=np.c_[np.append(self._least, 0.0), np.ones(n_events + 1)],
            method="highs",
            options=_TOLERANCES,
        )
        rejection = np.clip(_solution(solved)[:-1], self._least, 1.0)
        # The solver may overspend by its tolerance.
        spent = float(rejection @ self.target)
        if spent > rate:
            rejection = np.where(self.target > 0, rejection * (rate / spent), 1.0)
        return rejection, self._mixture(solved.ineqlin.marginals[:n_laws], rejection)

    def _cheapest_soft(self, value: float) -> tuple[FloatArray, FloatArray]:
        """Rule of the least false-alarm rate of this value, and the mixture."""
        solved = linprog(
            self.target,
            A_ub=-self.laws,
            b_ub=np.full(len(self.laws), -value),
            bounds=np.c_[self._least, np.ones(len(self.target))],
            method="highs",
            options=_TOLERANCES,
        )
        rejection = np.clip(_solution(solved), self._least, 1.0)
        return rejection, self._mixture(solved.ineqlin.marginals, rejection)

    def _mixture(self, marginals: FloatArray, rejection: FloatArray) -> FloatArray:
        """Mixture of the intruders by the weights of the dual, (n_events,).

        A worst intruder where all weights vanish.
        """
        weights = np.maximum(0.0, -marginals)
        if weights.sum() == 0:
            return self.worst_case(rejection)[1]
        mixture: FloatArray = weights / weights.sum() @ self.laws
        return mixture

    def _best_hard(self, rate: float) -> tuple[FloatArray, float]:
        """Rule, and a bound of the value of any."""
        n_laws, n_events = self.laws.shape
        budget = rate * (1 + _ROUNDING)

        def cut(r: FloatArray) -> LinearConstraint | None:
            if r @ self.target <= budget:
                return None
            return LinearConstraint(np.append(r, 0.0), ub=r.sum() - 1)

        solved, rejection = _solve_whole(
            np.append(np.zeros(n_events), -1.0),
            [
                LinearConstraint(np.c_[_UNIT * self.laws, -np.ones(n_laws)], lb=0.0),
                LinearConstraint(
                    np.append(_UNIT * self.target, 0.0), ub=_UNIT * budget
                ),
            ],
            Bounds(np.append(self._least, 0.0), np.append(np.ones(n_events), _UNIT)),
            n_events,
            cut,
        )
        return rejection, min(1.0, -solved.mip_dual_bound / _UNIT)

    def _cheapest_hard(self, value: float) -> FloatArray:
        """Deterministic rule of the least false-alarm rate of this value."""
        least_value = value * (1 - _ROUNDING)

        def cut(r: FloatArray) -> LinearConstraint | None:
            if self.worst_case(r)[0] >= least_value:
                return None
            return LinearConstraint(1 - r, lb=1.0)

        _, rejection = _solve_whole(
            _UNIT * self.target,
            [LinearConstraint(_UNIT * self.laws, lb=_UNIT * least_value)],
            Bounds(self._least, np.ones(len(self.target))),
            len(self.target),
            cut,
        )
        return rejection

    @property
    def _least(self) -> FloatArray:
        """Least rejection of each event: 1 for those that are free."""
        return np.where(self.target > 0, 0.0, 1.0)


def _solve_whole(
    costs: FloatArray,
    constraints: list[LinearConstraint],
    bounds: Bounds,
    n_events: int,
    cut: Callable[[FloatArray], LinearConstraint | None],
) -> tuple[OptimizeResult, FloatArray]:
    """Solve with whole numbers for the events.

    A rule that breaks a constraint by less than the solver's tolerance is cut off, and
    those with it that break it the more.
    """
    is_whole = np.arange(len(costs)) < n_events
    while True:
        solved = milp(
            costs,
            constraints=constraints,
            bounds=bounds,
            integrality=is_whole,
            options={"mip_rel_gap": 0.0},  # else a rule 1e-4 below the best would do
        )
        rejection = np.rint(_solution(solved)[:n_events])
        refused = cut(rejection)
        if refused is None:
            return solved, rejection
        constraints = [*constraints, refused]


def _solution(solved: OptimizeResult) -> FloatArray:
    """The variables of a solved programme; refuses one that was not solved."""
    if solved.x is None:
        raise ArithmeticError(
            "RejectionGame: the programme over the given adversaries was not solved "
            f"(status {solved.status} of HiGHS)."
        )
    x: FloatArray = solved.x
    return x


# --- the solved game and its security curve -------------------------------------------


class OperatingPoint(NamedTuple):
    """A point of the security curve.

    Attributes
    ----------
    false_alarm_rate, miss_rate : float
        Of the optimal randomised rule.
    cost : float
        Mean cost of an event.
    """

    false_alarm_rate: float
    miss_rate: float
    cost: float


@dataclass(frozen=True, slots=True)
class SecurityCurve:
    """Miss rate of the best rules against the false-alarm rate they may spend.

    Attributes
    ----------
    false_alarm_rates : ndarray of shape (n_rates,)
        As asked for.
    soft_miss_rates, hard_miss_rates : ndarray of shape (n_rates,)
        Largest probability that an intruder passes the optimal randomised and the
        optimal deterministic rule.
    target : ndarray of shape (n_events,) or None
        Probability of each event of the game.
    """

    false_alarm_rates: FloatArray
    soft_miss_rates: FloatArray
    hard_miss_rates: FloatArray
    target: FloatArray | None = None

    def best(
        self, false_alarm_cost: float, miss_cost: float, intruder_share: float
    ) -> OperatingPoint:
        """Point of the least mean cost among the rates of the curve.

        The cost of an event is (1 - s) a f + s b m for a false-alarm rate f, a miss
        rate m, a share s of intruders and costs a, b: a minimum over the false-alarm
        rate, as in Remark 1 of El-Yaniv and Nisenson.

        Parameters
        ----------
        false_alarm_cost, miss_cost : float
            Of one false alarm and of one missed intruder, >= 0.
        intruder_share : float
            Share of intruders among all events, in [0, 1].

        Returns
        -------
        OperatingPoint
            False-alarm rate, miss rate and cost; of equal costs the lowest rate.

        Raises
        ------
        ValueError
            If a cost is negative or not finite, the share lies outside [0, 1], or the
            curve has no point.

        Examples
        --------
        >>> import numpy as np
        >>> from prudent import RejectionGame
        >>> game = RejectionGame(divergence_bound=3).fit([0.01, 0.04, 0.15, 0.3, 0.5])
        >>> curve = game.security_curve(np.linspace(0, 1, 101))
        >>> [round(value, 4) for value in curve.best(1.0, 50.0, 0.01)]
        [0.07, 0.545, 0.3418]
        """
        costs = {"false_alarm_cost": false_alarm_cost, "miss_cost": miss_cost}
        for name, cost in costs.items():
            if not 0 <= cost < np.inf:
                raise ValueError(f"`{name}` must be a number >= 0, got {shown(cost)}.")
        if not 0 <= intruder_share <= 1:
            raise ValueError(
                f"`intruder_share` must lie in [0, 1], got {shown(intruder_share)}."
            )
        rates, misses = self.false_alarm_rates, self.soft_miss_rates
        if not len(rates):
            raise ValueError("the curve has no point: ask for one rate at least.")
        alarms = (1 - intruder_share) * false_alarm_cost * rates
        total = alarms + intruder_share * miss_cost * misses
        at = int(np.lexsort((rates, total))[0])
        return OperatingPoint(float(rates[at]), float(misses[at]), float(total[at]))

    def known_miss_rates(self, q: ArrayLike) -> FloatArray:
        """Miss rates of the best test against one intruder whose law is known.

        The likelihood ratio test of Neyman and Pearson, randomised at its edge. Where
        the intruder is one of those that the game answers, the soft curve lies above it
        by the most that not knowing him can cost.

        Parameters
        ----------
        q : array-like of shape (n_events,)
            Probability of each event under the intruder; sums to 1.

        Returns
        -------
        ndarray of shape (n_rates,)

        Raises
        ------
        ValueError
            If `q` is not a distribution over the events of the game, or the curve
            was made without its `target`.
        """
        if self.target is None:
            raise ValueError(
                "the curve does not know its target: give SecurityCurve the "
                "probabilities of the events as `target`."
            )
        (intruder,) = check_distributions(q, len(self.target), "q")
        return 1 - best_powers(self.target, intruder, self.false_alarm_rates)


@dataclass(frozen=True, slots=True)
class Model:
    """The rule in use and the set of intruders."""

    rule: Rule
    target: FloatArray  # (n_events,), of each event, or of each level given as one
    n_levels: int  # distinct positive probabilities, those that tie as one
    intruders: FarIntruders | ListedIntruders

    @property
    def false_alarm_rate(self) -> float:
        """Probability of rejecting an ordinary event, sum of r p."""
        return min(1.0, float(self.rule.rejection @ self.target))

    @property
    def gap(self) -> float:
        """How much more than the rule's value that of another could be."""
        return max(0.0, self.rule.upper_bound - self.rule.value)

    def rejection_probability(self, events: IntArray) -> FloatArray:
        """Probability of rejecting each event; 1 outside 0..n_events - 1."""
        rejection = self.rule.rejection
        known = (events >= 0) & (events < len(rejection))
        return np.where(known, rejection[np.where(known, events, 0)], 1.0)

    def reject(
        self,
        events: IntArray,
        random: np.random.RandomState,
        key: int | str | bytes | None,
    ) -> BoolArray:
        """Draw the decisions, by the key where there is one."""
        probability = self.rejection_probability(events)
        if key is None:
            return random.uniform(size=probability.shape) < probability
        distinct, position = np.unique(events, return_inverse=True)
        coins = keyed_uniform((b"%d" % event for event in distinct), key)
        return coins[position].reshape(probability.shape) < probability

    def security_curve(self, rates: FloatArray) -> SecurityCurve:
        """Best miss rates of both strategies."""
        soft = self.intruders.values(rates, "soft")
        hard = self.intruders.values(rates, "hard")
        return SecurityCurve(rates, 1 - soft, 1 - hard, self.target)
