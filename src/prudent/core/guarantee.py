"""A promise, its assumptions, and the check of it on data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, get_args

import numpy as np

from prudent.core.binomial import clopper_pearson

__all__ = ["Guarantee", "GuaranteeCheck", "Quantity", "Sense", "Verdict"]

Quantity = Literal[
    "error rate", "class error rate", "false alarm rate", "miss rate", "coverage"
]
Sense = Literal["<=", ">="]
Verdict = Literal["kept", "broken", "undecided"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GuaranteeCheck:
    """A promise held against data.

    Attributes
    ----------
    measured : float
        The quantity as measured, in [0, 1].
    interval : tuple of float
        Exact two-sided Clopper-Pearson interval of the quantity.
    verdict : {"kept", "broken", "undecided"}
        Whether the whole interval lies on the promised side of the bound, on
        the other side, or neither.
    """

    measured: float
    interval: tuple[float, float]
    verdict: Verdict


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """A promise about future rows that can be checked on data.

    Parameters
    ----------
    quantity : {"error rate", "class error rate", "false alarm rate", \
"miss rate", "coverage"}
        What is bounded.
    bound : float
        The promised value, in [0, 1].
    sense : {"<=", ">="}
        Side of `bound` on which the quantity is promised to lie.
    confidence : float or None, default=None
        Probability over the training sample that the promise holds, in (0, 1);
        None means conditional on the assumptions only.
    assumptions : tuple of str, default=()
        What must be true for the promise to hold, one sentence each.
    scope : object, default=None
        The class label the promise is about; None means all rows.
    evidence : mapping of str to float, default={}
        Figures behind the promise: duality gap, calibration size, nodes, ...
    source : str, default=""
        Paper and theorem.

    Raises
    ------
    ValueError
        If `quantity`, `sense`, `bound` or `confidence` is outside its range.

    Examples
    --------
    >>> from prudent import Guarantee
    >>> promise = Guarantee(
    ...     quantity="class error rate", bound=0.2, sense="<=", scope="benign",
    ...     assumptions=("the class moments are known",),
    ... )
    >>> print(promise)
    The class error rate of class 'benign' is at most 0.2, assuming the class moments are known.
    >>> promise.check(violations=3, n=100).verdict
    'kept'
    """  # noqa: E501

    quantity: Quantity
    bound: float
    sense: Sense
    confidence: float | None = None
    assumptions: tuple[str, ...] = ()
    scope: Any = None
    evidence: Mapping[str, float] = field(default_factory=dict)
    source: str = ""

    def __post_init__(self) -> None:
        if self.quantity not in get_args(Quantity):
            raise ValueError(
                f"`quantity` must be one of {list(get_args(Quantity))}, "
                f"got {self.quantity!r}."
            )
        if self.sense not in get_args(Sense):
            raise ValueError(f"`sense` must be '<=' or '>=', got {self.sense!r}.")
        if not 0 <= self.bound <= 1:
            raise ValueError(f"`bound` must lie in [0, 1], got {self.bound!r}.")
        if self.confidence is not None and not 0 < self.confidence < 1:
            raise ValueError(
                f"`confidence` must lie in (0, 1) or be None, got {self.confidence!r}."
            )
        object.__setattr__(self, "bound", float(self.bound))
        object.__setattr__(self, "assumptions", tuple(self.assumptions))
        object.__setattr__(self, "evidence", MappingProxyType(dict(self.evidence)))

    def check(
        self, violations: float, n: float, *, level: float = 0.05
    ) -> GuaranteeCheck:
        """Hold the promise against rows it has not seen.

        Parameters
        ----------
        violations : float
            Rows that break the promise: wrong answers, false alarms, or, for
            `quantity="coverage"`, sets that miss the truth.
        n : float
            Rows looked at, > 0.
        level : float, default=0.05
            The exact interval has confidence 1 - `level`.

        Returns
        -------
        GuaranteeCheck
            For `quantity="coverage"`, `measured` and `interval` are one minus
            the rate of violations.

        Raises
        ------
        ValueError
            If `violations` lies outside [0, n], `n` is not positive or `level`
            lies outside (0, 1).
        """
        lower, upper = clopper_pearson(violations, n, level=level)
        measured = float(violations / n)
        if self.quantity == "coverage":
            measured, lower, upper = 1 - measured, 1 - upper, 1 - lower
        if self.sense == "<=":
            kept, broken = upper <= self.bound, lower > self.bound
        else:
            kept, broken = lower >= self.bound, upper < self.bound
        verdict: Verdict = "kept" if kept else "broken" if broken else "undecided"
        return GuaranteeCheck(
            measured=measured, interval=(lower, upper), verdict=verdict
        )

    def __str__(self) -> str:
        # A NumPy label would show its type: np.str_('benign').
        label = self.scope.item() if isinstance(self.scope, np.generic) else self.scope
        scope = "" if label is None else f" of class {label!r}"
        side = "at most" if self.sense == "<=" else "at least"
        sentence = f"The {self.quantity}{scope} is {side} {self.bound:.4g}"
        if self.confidence is not None:
            sentence += f" with confidence {self.confidence:g}"
        if self.assumptions:
            sentence += ", assuming " + " and ".join(self.assumptions)
        return sentence + "."

    def __getstate__(self) -> dict[str, Any]:
        # A mapping proxy can be neither pickled nor saved; plain values can.
        return {**self.__dict__, "evidence": dict(self.evidence)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(
            {**state, "evidence": MappingProxyType(dict(state["evidence"]))}
        )
