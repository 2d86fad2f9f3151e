"""Intruders on a list: the game as a small linear or integer programme."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, OptimizeResult, linprog, milp

from prudent.adversarial.game.rule import Rule, Strategy, best_powers
from prudent.core.types import FloatArray

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
        asked = value * (1 - _ROUNDING)

        def cut(r: FloatArray) -> LinearConstraint | None:
            if self.worst_case(r)[0] >= asked:
                return None
            return LinearConstraint(1 - r, lb=1.0)

        _, rejection = _solve_whole(
            _UNIT * self.target,
            [LinearConstraint(_UNIT * self.laws, lb=_UNIT * asked)],
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
            costs, constraints=constraints, bounds=bounds, integrality=is_whole
        )
        rejection = np.rint(_solution(solved)[:n_events])
        refused = cut(rejection)
        if refused is None:
            return solved, rejection
        constraints = [*constraints, refused]


def _solution(solved: OptimizeResult) -> FloatArray:
    if solved.x is None:
        raise ArithmeticError(
            "RejectionGame: the programme over the given adversaries was not solved "
            f"(status {solved.status} of HiGHS)."
        )
    x: FloatArray = solved.x
    return x
