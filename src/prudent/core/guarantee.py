"""A promise, and the check of it on data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from types import MappingProxyType
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prudent.core.assumptions import (
    SAME_LAW,
    Assumption,
    assumption_of,
    name_of_assumption,
    sentence_of,
)
from prudent.core.binomial import (
    beta_binomial_tails,
    check_fraction,
    clopper_pearson,
)
from prudent.core.rows import one_row_per_group
from prudent.core.shift import bernoulli_divergence, check_shift, worst_rate
from prudent.core.types import BoolArray
from prudent.core.validation import (
    as_flags,
    check_group_cells,
    missing_labels,
    plain,
    shown,
)

Quantity = Literal[
    "error rate",
    "class error rate",
    "false alarm rate",
    "miss rate",
    "coverage",
    "selective error rate",
    "expected cost",
    "false discovery rate",
    "answered share",
    "flagged share",
    "precision",
    "probability",
]
Sense = Literal["<=", ">="]
Verdict = Literal["kept", "consistent", "broken"]
Unit = Literal["row", "group"]
AverageOver = Literal["training samples", "calibration rows", "the rule's coins"]

# What one sample of rows cannot refute, and where to go instead.
NOT_A_RATE = {
    "expected cost": "an expected cost is not a rate: use certify(..., costs=...) "
    "on the new rows.",
    "false discovery rate": "a false discovery rate is an expectation over batches: "
    "give PromiseMonitor the false share of each batch.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GuaranteeCheck:
    """A promise held against data.

    Attributes
    ----------
    measured : float
        The quantity as measured, in [0, 1].
    interval : tuple of float
        Exact two-sided Clopper-Pearson interval of the quantity.
    verdict : {"kept", "consistent", "broken"}
        "kept": the rows speak for the promise, at the level of the check; "broken":
        against it; "consistent": neither (what a tight promise looks like). What each
        means for a promise on average stands at `Guarantee.check`.
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
"miss rate", "coverage", "selective error rate", "expected cost", \
"false discovery rate", "answered share", "flagged share", "precision", "probability"}
        What is bounded. A selective error rate is that of the answered rows; precision
        the share of positive rows among flagged ones; a probability the share of a
        class among rows with such a number.
    bound : float
        The promised value: in [0, 1], any finite number for an expected cost.
    sense : {"<=", ">="}
        Side of `bound` on which the quantity is promised to lie.
    confidence : float or None, default=None
        Probability over the training sample that the promise holds, in (0, 1);
        None means conditional on the assumptions only.
    average_over : {"training samples", "calibration rows", "the rule's coins"}, \
default=None
        What the rate is averaged over: the draw of the training (or
        calibration) rows together with the new row, of the calibration rows
        with the fit given, or of the coins a rule tosses. One fitted model may
        exceed a promise on average for ever. Excludes `confidence`.
    assumptions : tuple of Assumption or str, default=()
        What must be true for the promise to hold: members of `Assumption`, or own
        sentences.
    scope : object, default=None
        The class label the promise is about; None means all rows. Of a flagged share
        and a precision the label that flagged rows get; None: the alarm of a detector.
    subgroup : str or None, default=None
        The part of the population the promise is about, such as "sex=Female".
    unit : {"row", "group"}, default="row"
        What is drawn at random: a new row, or a new group of rows (a patient, a
        machine) and one random row of it.
    evidence : mapping of str to float, default={}
        Numbers behind the promise, by fixed names: "calibration rows" (m held
        out), "rank" (k of the cut), "training rows", "answered", "wrong",
        "claims", "pointwise level", "duality gap", "nodes", "classes" (that the
        model knows, for a promise about one of them), "latest rows" and "first time"
        or "first date" (how many were held out in the order of time, and the time of
        the first, a number or seconds since 1970), ...
    source : str, default=""
        Paper and theorem.

    Raises
    ------
    ValueError
        If `quantity`, `sense`, `bound`, `unit`, `confidence` or `average_over` is
        outside its range, or both of the last two are given.

    Examples
    --------
    >>> from prudent import Assumption, Guarantee
    >>> promise = Guarantee(
    ...     quantity="class error rate", bound=0.2, sense="<=", scope="benign",
    ...     assumptions=(Assumption.MOMENTS_GIVEN,),
    ... )
    >>> print(promise)
    The class error rate of class 'benign' is at most 0.2, assuming the class means and covariances are exactly those given.
    >>> promise.check(violations=3, n=100).verdict
    'kept'
    """  # noqa: E501

    quantity: Quantity
    bound: float
    sense: Sense
    confidence: float | None = None
    average_over: AverageOver | None = None
    assumptions: tuple[str, ...] = ()
    scope: Any = None
    subgroup: str | None = None
    unit: Unit = "row"
    evidence: Mapping[str, float] = field(default_factory=dict)
    source: str = ""

    def __post_init__(self) -> None:
        for name in ("subgroup", "average_over", "source"):
            text = getattr(self, name)
            if not isinstance(text, str | None):
                raise ValueError(f"`{name}` must be a text, got {text!r}.")
        if isinstance(self.scope, list | dict):
            raise ValueError(f"`scope` must be a label, got {shown(self.scope)}.")
        for text in self.assumptions:
            if not isinstance(text, str):
                raise ValueError(f"an assumption must be a text, got {text!r}.")
        if self.quantity not in get_args(Quantity):
            raise ValueError(
                f"`quantity` must be one of {list(get_args(Quantity))}, "
                f"got {self.quantity!r}."
            )
        if self.sense not in get_args(Sense):
            raise ValueError(f"`sense` must be '<=' or '>=', got {self.sense!r}.")
        if self.unit not in get_args(Unit):
            raise ValueError(f"`unit` must be 'row' or 'group', got {self.unit!r}.")
        if self.quantity == "expected cost":
            if not math.isfinite(self.bound):
                raise ValueError(f"`bound` must be finite, got {shown(self.bound)}.")
        elif not (isinstance(self.bound, Real) and 0 <= self.bound <= 1):
            raise ValueError(f"`bound` must lie in [0, 1], got {shown(self.bound)}.")
        if self.confidence is not None and not 0 < self.confidence < 1:
            raise ValueError(
                f"`confidence` must lie in (0, 1) or be None, got "
                f"{shown(self.confidence)}."
            )
        if self.average_over is not None:
            if self.average_over not in get_args(AverageOver):
                raise ValueError(
                    f"`average_over` must be None or one of "
                    f"{list(get_args(AverageOver))}, got {self.average_over!r}."
                )
            if self.confidence is not None:
                raise ValueError(
                    f"a promise averaged over {self.average_over} has no "
                    f"confidence, got {shown(self.confidence)}."
                )
        object.__setattr__(self, "bound", float(self.bound))
        members = tuple(
            text if isinstance(text, Assumption) else assumption_of(text)
            for text in self.assumptions
        )
        object.__setattr__(self, "assumptions", members)
        evidence = dict(self.evidence)
        for name, number in evidence.items():
            if math.isnan(number) or (name in COUNTS and abs(number) > MOST_COUNTED):
                raise ValueError(f"`evidence` must be numbers, got {name} {number}.")
        object.__setattr__(self, "evidence", MappingProxyType(evidence))

    def check(
        self,
        violations: float | ArrayLike,
        n: float | None = None,
        *,
        level: float = 0.05,
        groups: ArrayLike | None = None,
    ) -> GuaranteeCheck:
        """Hold the promise against rows it has not seen.

        Parameters
        ----------
        violations : float or array-like of bool, shape (n_rows,)
            Rows that break the promise: wrong answers, false alarms, or, for
            `quantity="coverage"`, sets that miss the truth; for an answered or flagged
            share, a precision or a probability the rows that have the property. Their
            number, or, with `groups`, whether each row is one.
        n : float, default=None
            Rows looked at, > 0; left out with `groups`.
        level : float, default=0.05
            The exact interval has confidence 1 - `level`.
        groups : array-like of shape (n_rows,), default=None
            Group of each row, for a promise of `unit="group"`, which needs them: one
            random row of each group counts, the same one at every call.

        Returns
        -------
        GuaranteeCheck
            For `quantity="coverage"`, `measured` and `interval` are one minus
            the rate of violations.

        Raises
        ------
        ValueError
            If `violations` lies outside [0, n], `n` is not positive or `level`
            lies outside (0, 1); for an expected cost or a false discovery
            rate, which a count of rows cannot check; if `groups` are missing where
            `unit` is "group", or given where it is "row".

        Notes
        -----
        The interval is the exact one of this model's own rate. The verdict
        depends on what is promised:

        - without `average_over`, "kept" or "broken" where the whole interval
          lies on one side of the bound;
        - on average, with evidence of m calibration rows and the rank k of the
          cut, the rate of one model is itself drawn from Beta(k, m + 1 - k), so
          V violations in n rows are beta-binomial: broken if P(V >= v) is at
          most `level` / 2, kept if P(V <= v) is;
        - on average otherwise, "kept" where the whole interval lies on the promised
          side, else "consistent", never "broken". Here "kept" is said of the rate of
          this one model, which neither proves nor refutes an average over models.

        A true promise is called broken in at most `level` + (1 - `confidence`)
        of checks.
        """
        return self.judge(*self._counts(violations, n, groups), level=level)

    def judge(
        self, violations: float, n: float, *, level: float = 0.05
    ) -> GuaranteeCheck:
        """Hold the promise against `violations` in `n` units, rows or groups.

        As `check`, for counts in which each group has one row already.
        """
        self._require_rate()
        lower, upper = clopper_pearson(violations, n, level=level)
        measured = float(violations / n)
        if self.quantity == "coverage":
            measured, lower, upper = 1 - measured, 1 - upper, 1 - lower
        if self.sense == "<=":
            kept, broken = upper <= self.bound, lower > self.bound
        else:
            kept, broken = lower >= self.bound, upper < self.bound
        if self.average_over is not None:
            broken = False
            law = self.rate_law
            if law is not None:
                # The count of the side that is promised to be rare.
                at_most, at_least = beta_binomial_tails(
                    n - violations if self.counts_frequent else violations, n, *law
                )
                kept, broken = at_most <= level / 2, at_least <= level / 2
        verdict: Verdict = "broken" if broken else "kept" if kept else "consistent"
        return GuaranteeCheck(
            measured=measured, interval=(lower, upper), verdict=verdict
        )

    @property
    def allowed(self) -> float:
        """Largest rate allowed of what is promised to be rare: of misses, of errors."""
        return self._bad_rate(self.bound)

    @property
    def counts_frequent(self) -> bool:
        """Whether the rows that `check` counts are promised to be frequent, not rare.

        So it is of an answered share, a precision, or any other quantity but a
        coverage that is promised to be at least something.
        """
        return (self.quantity == "coverage") != (self.sense == ">=")

    def _counts(
        self,
        violations: float | ArrayLike,
        n: float | None,
        groups: ArrayLike | None,
    ) -> tuple[float, float]:
        """Violations and rows that count: all of them, or one row of each group."""
        if self.unit == "group" or groups is not None:
            broken = np.asarray(violations)
            rows = self.rows_that_count(broken.size, groups)
            if broken.ndim != 1:
                raise ValueError(
                    "`violations` must say of each row whether it is one where "
                    f"`groups` are given, got {violations!r:.64}."
                )
            broken = as_flags("`violations`, whether each row is one,", broken)
            return float(np.count_nonzero(broken[rows])), float(len(rows))
        if n is None:
            raise ValueError("`n`, the number of rows looked at, is missing.")
        if np.ndim(violations):
            raise ValueError(
                "`violations` must be the number of such rows where no `groups` are "
                f"given, got an array of shape {np.shape(violations)}."
            )
        try:
            count, n_rows = float(violations), float(n)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            raise ValueError(
                "`violations` and `n` must be numbers, got "
                f"{shown(violations)} and {shown(n)}."
            ) from None
        if n_rows == math.inf:
            raise ValueError("`n` must be finite, got inf.")
        if n_rows > 0 and not 0 <= count <= n_rows:
            raise ValueError(
                f"`violations` must lie in [0, {n_rows:g}], got {count:g}."
            )
        return count, n_rows

    def rows_that_count(
        self, n_rows: int, groups: ArrayLike | None = None, *, seed: int = 0
    ) -> NDArray[np.intp]:
        """Rows by which the promise is counted: all, or one random row of each group.

        Parameters
        ----------
        n_rows : int
            Number of rows.
        groups : array-like of shape (n_rows,), default=None
            Group of each row, for a promise of ``unit="group"``, which needs them.
        seed : int, default=0
            Of the draw of the rows. Tables of equal shape have their rows drawn at the
            same positions with one seed: whoever counts table after table gives each
            another one.

        Returns
        -------
        ndarray of int
            Positions of the rows, rising; with the same seed the same ones.

        Raises
        ------
        ValueError
            If `groups` are missing where `unit` is "group", given where it is "row", or
            not one for each row.
        """
        if groups is None:
            if self.unit == "group":
                raise ValueError(
                    "this promise is about a random row of a new group: give `groups`, "
                    "the group of each row."
                )
            return np.arange(n_rows)
        if self.unit == "row":
            raise ValueError(
                "this promise is about single rows, so `groups` play no part: "
                "leave them out."
            )
        names = np.asarray(groups)
        if names.shape != (n_rows,):
            raise ValueError(
                f"`groups` must have one value for each of the {n_rows} rows, got "
                f"shape {names.shape}."
            )
        check_group_cells(names)
        return np.sort(one_row_per_group(names, np.random.RandomState(seed)))

    def under_shift(
        self, divergence: str, radius: float, *, order: float | None = None
    ) -> Guarantee:
        """Promise that holds if future rows follow another law, not too far away.

        Parameters
        ----------
        divergence : {"kl", "reverse_kl", "chi2", "reverse_chi2", "hellinger", \
"total_variation", "likelihood_ratio", "renyi"}
            How the distance of the future law Q from the law P behind this promise is
            measured, in natural logarithms: D(Q || P), the same with Q and P
            exchanged, the sum of Q^2/P less 1, the same exchanged, 1 less the sum of
            sqrt(PQ), half the sum of absolute differences, the largest Q/P, Renyi's
            of `order`.
        radius : float
            Largest divergence, >= 0; for "likelihood_ratio" >= 1: radius r speaks of
            every part of the population of share 1/r or more.
        order : float, default=None
            Order of "renyi", > 0.

        Returns
        -------
        Guarantee
            The largest bound over all such laws, attained by one of them; the
            divergence stands among the assumptions. It is that of the rows the
            promise is about: answered or flagged rows, rows of a class or subgroup.

        Raises
        ------
        ValueError
            If an argument lies outside its range, for an expected cost or a false
            discovery rate, or if this promise allows for a shift already.

        Notes
        -----
        The rows behind the promise no longer follow the law of the future rows: where
        it assumed that new rows are exchangeable with them, it now assumes that they
        are independent draws from a law of their own. A promise on average stays one:
        given the rows behind it, the rate R of a model becomes at most w(R) under the
        shift, and w, the largest rate, is concave, so that E w(R) <= w(E R).

        Examples
        --------
        >>> from prudent import Guarantee
        >>> promise = Guarantee(quantity="error rate", bound=0.05, sense="<=")
        >>> print(promise.under_shift("total_variation", 0.02))
        The error rate is at most 0.07, assuming the total variation distance between
        the future and the held-out rows is at most 0.02.
        """
        self._require_rate()
        if "shift radius" in self.evidence:
            raise ValueError(
                "this promise allows for a shift already: ask the promise it was made "
                "from."
            )
        rate = worst_rate(self._bad_rate(self.bound), divergence, radius, order)
        assumptions = [_under_shift(assumption) for assumption in self.assumptions]
        assumptions.append(Assumption[f"SHIFT_{divergence.upper()}"])
        part = self._part_that_shifts()
        if part is not None:
            assumptions.append(part)
        # The law of the rate behind a rank is that of rows that do not shift.
        evidence = {name: v for name, v in self.evidence.items() if name != "rank"}
        evidence |= {"bound without shift": self.bound, "shift radius": float(radius)}
        if order is not None:
            evidence["shift order"] = float(order)
        return replace(
            self,
            bound=self._bad_rate(rate),
            assumptions=tuple(dict.fromkeys(assumptions)),
            evidence=evidence,
        )

    def shift_tolerance(
        self, limit: float, divergence: str, *, order: float | None = None
    ) -> float:
        """Largest divergence of the future rows under which a limit is still kept.

        Parameters
        ----------
        limit : float
            Rate to be kept, in [0, 1], on the far side of `bound`.
        divergence, order
            As in `under_shift`.

        Returns
        -------
        float
            Radius for `under_shift`; infinite where no shift can break the limit.

        Raises
        ------
        ValueError
            If an argument lies outside its range or `limit` is not even promised
            without shift.

        Examples
        --------
        >>> from prudent import Guarantee
        >>> promise = Guarantee(quantity="error rate", bound=0.05, sense="<=")
        >>> promise.shift_tolerance(
        ...     0.1, "likelihood_ratio"
        ... )  # no part twice as frequent
        2.0
        """
        self._require_rate()
        check_shift(divergence, 1.0, order)
        check_fraction("limit", limit, "[0, 1]")
        worst, now = self._bad_rate(limit), self.allowed
        if worst < now:
            raise ValueError(
                f"`limit` {limit:g} is not even promised without shift: the bound is "
                f"{self.bound:.4g}."
            )
        if worst == 1:
            return math.inf
        return bernoulli_divergence(worst, now, divergence, order)

    def _bad_rate(self, rate: float) -> float:
        """Rate of the event that is promised to be rare, and back."""
        return 1 - rate if self.sense == ">=" else rate

    def _require_rate(self) -> None:
        if self.quantity in NOT_A_RATE:
            raise ValueError(NOT_A_RATE[self.quantity])

    def _part_that_shifts(self) -> Assumption | None:
        """Whose law a shift is measured by; None: that of all rows."""
        of_some = self.quantity == "precision" or (
            self.quantity in ALARMS and self.scope is None
        )
        if self.subgroup is not None or of_some:
            return Assumption.SHIFT_OF_THESE
        if self.quantity == "selective error rate":
            return Assumption.SHIFT_OF_ANSWERED
        if self.scope is not None and self.quantity != "flagged share":
            return Assumption.SHIFT_OF_CLASS
        return None

    def _of_rows(self) -> str:
        """Class and subgroup in words, or nothing where there is none."""
        named = "label" if self.quantity in OF_FLAGGED else "class"
        words = "" if self.scope is None else f" of {named} {shown(self.scope)}"
        if self.subgroup is not None:
            words += f" among rows with {self.subgroup}"
        return words

    @property
    def assumed(self) -> tuple[str, ...]:
        """The assumptions as sentences, with the numbers of the evidence filled in."""
        return tuple(sentence_of(a, self.evidence) for a in self.assumptions)

    def to_dict(self) -> dict[str, Any]:
        """Return the promise in JSON types: members by name, and its sentence.

        Examples
        --------
        >>> from prudent import Assumption, Guarantee
        >>> promise = Guarantee(
        ...     quantity="error rate",
        ...     bound=0.05,
        ...     sense="<=",
        ...     assumptions=(Assumption.INDEPENDENT,),
        ... )
        >>> promise.to_dict()["assumptions"]
        ['INDEPENDENT']
        >>> Guarantee.from_dict(promise.to_dict()) == promise
        True
        """
        evidence = {}
        for name, value in self.evidence.items():
            number = float(value)
            # Strict JSON has no infinity.
            evidence[name] = number if math.isfinite(number) else repr(number)
        return {
            **self.__dict__,
            "assumptions": [name_of_assumption(a) for a in self.assumptions],
            "scope": plain(self.scope),
            "evidence": evidence,
            "sentence": str(self),
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Self:
        """Read back what `to_dict` gave; keys that name no field are left out."""
        known = {
            key: value
            for key, value in fields.items()
            if key in cls.__dataclass_fields__
        }
        evidence = known.get("evidence", {})
        known["evidence"] = {name: float(value) for name, value in evidence.items()}
        return cls(**known)

    @property
    def rate_law(self) -> tuple[int, int] | None:
        """Rank k and calibration rows m of a promise on average, where both are known.

        The rate of one fitted model is then drawn from Beta(k, m + 1 - k), or
        stochastically less with ties.
        """
        if self.average_over is None or not {"rank", "calibration rows"} <= set(
            self.evidence
        ):
            return None
        return int(self.evidence["rank"]), int(self.evidence["calibration rows"])

    def __str__(self) -> str:
        return self._sentence(self._of_rows())

    def _sentence(self, of_rows: str) -> str:
        side = "at most" if self.sense == "<=" else "at least"
        sentence = f"The {self.quantity}{of_rows} is {side} {self.bound:.4g}"
        if self.confidence is not None:
            sentence += f" with confidence {self.confidence:g}"
        if self.average_over is not None:
            sentence += f", on average over {self.average_over}"
        if self.assumptions:
            sentence += ", assuming " + " and ".join(self.assumed)
        return sentence + "."

    def __hash__(self) -> int:
        values = {**self.__dict__, "evidence": tuple(sorted(self.evidence.items()))}
        return hash(tuple(values.values()))

    def __getstate__(self) -> dict[str, Any]:
        # A mapping proxy can be neither pickled nor saved; plain values can.
        return {**self.__dict__, "evidence": dict(self.evidence)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # What comes out of a file is held to the same as what is given.
        vars(self).update(state)
        self.__post_init__()


# Promises of so many classes or more are said together.
FEWEST_TOGETHER = 3


def in_sentences(promises: Sequence[Guarantee]) -> list[str]:
    """One sentence for each promise, and one for those that differ only by class.

    Where their bounds differ, all classes have the weakest of them, and each its own.

    Examples
    --------
    >>> from prudent import Guarantee
    >>> of_class = {"quantity": "coverage", "sense": ">=", "confidence": 0.95}
    >>> in_sentences([Guarantee(**of_class, bound=0.9, scope=k) for k in range(10)])
    ['The coverage of each of the 10 classes is at least 0.9 with confidence 0.95.']
    """
    together: dict[Guarantee, list[Guarantee]] = {}
    for promise in promises:
        common = replace(promise, bound=0.0, scope=None, evidence={})
        together.setdefault(common, []).append(promise)
    sentences: list[str] = []
    for alike in together.values():
        if len(alike) < FEWEST_TOGETHER or None in [g.scope for g in alike]:
            sentences += map(str, alike)
            continue
        weakest = min(alike, key=lambda g: g.bound if g.sense == ">=" else -g.bound)
        whose = f" of each of the {len(alike)} classes"
        if weakest.subgroup is not None:
            whose += f" among rows with {weakest.subgroup}"
        bounds = ", ".join(f"{shown(g.scope)} {g.bound:.4g}" for g in alike)
        is_same = len({g.bound for g in alike}) == 1
        by_class = "" if is_same else f" By class: {bounds}."
        sentences.append(weakest._sentence(whose) + by_class)
    return sentences


def _under_shift(assumption: str) -> str:
    """What is assumed of the rows behind a promise where the future law differs."""
    if assumption in (Assumption.GROUPS, Assumption.GROUPS_LATEST):
        return Assumption.SHIFTED_GROUPS
    return Assumption.SHIFTED if assumption in SAME_LAW else assumption


# --- which rows a promise is about, and which of them break it ------------------------

#: Promises of detectors, and the answer that breaks them.
ALARM = -1
ALARMS = {"false alarm rate": ALARM, "miss rate": 1}

#: Shares of rows with a certain answer, their scope, or among them.
OF_FLAGGED = frozenset({"flagged share", "precision"})
#: What evidence calls the rows that are counted where they have a property, wrong or
#: right.
COUNTED_AS: Mapping[str, str] = {
    "answered share": "answered",
    "flagged share": "flagged",
    "precision": "positive",
    "probability": "positive",
}

#: Numbers of the evidence that count rows, and so have an end.
COUNTS = frozenset(
    {"calibration rows", "training rows", "latest rows", "rank", "answered", "wrong"}
    | {*COUNTED_AS.values()}
)
#: Doubles count every whole number up to here.
MOST_COUNTED = 2**53


def needs_labels(guarantee: Guarantee) -> bool:
    """Whether rows without a label say nothing about a promise.

    Shares of rows that are answered, or flagged, are seen without labels.
    """
    return guarantee.quantity not in ("answered share", "flagged share")


def violated_rows(
    guarantee: Guarantee,
    y_true: ArrayLike,
    y_answer: ArrayLike,
    classes: ArrayLike | None = None,
) -> tuple[BoolArray, BoolArray]:
    """Rows that a promise is about, and rows that break it, each of shape (n,).

    Answers are labels, 1 and -1 of a detector, or sets (n, K) of `classes`. A row
    without a label is never counted. Alarms and misses are counted on the rows given,
    all of them ordinary or anomalous; a false alarm of one class on its rows. A row of
    a class that the promise assumes away never breaks it. Of an answered share the
    answered rows are given, of a flagged share the flagged ones, of a precision those
    of the flagged rows that are what they are flagged as, of a probability the rows of
    its class, whatever the answers are.
    """
    truth, answer = np.asarray(y_true), np.asarray(y_answer)
    if truth.ndim != 1 or len(truth) != len(answer):
        raise ValueError(
            "`y_true` and `y_answer` must have one entry per row, got shapes "
            f"{truth.shape} and {answer.shape}."
        )
    scope, quantity = guarantee.scope, guarantee.quantity
    if quantity in NOT_A_RATE:
        raise ValueError(f"a {quantity} is not counted by rows: use `update`.")
    if answer.ndim == 2:
        answer = as_flags("whether a label is in the set of a row", answer)
    counted = ~missing_labels(truth)
    if not counted.all() and truth.dtype.kind == "O":
        truth = truth.copy()
        truth[~counted] = None  # pandas has one that is neither equal nor different
    flag = ALARM if quantity in OF_FLAGGED and scope is None else scope
    labels: dict[str, Any] = {"the promise": [] if flag is None else [flag]}
    if needs_labels(guarantee) and quantity != "miss rate":
        labels["`y_true`"] = truth[counted]
    if answer.ndim == 1 and quantity not in ALARMS and quantity != "probability":
        labels["`y_answer`"] = answer
    elif classes is not None:
        labels["`classes`"] = np.asarray(classes)
    check_one_type(labels)
    if quantity == "probability":
        return counted, truth == scope
    violated: Any
    if quantity in OF_FLAGGED:
        if answer.ndim != 1:
            raise ValueError(f"a {quantity} is counted by labels: give those.")
        flagged = np.asarray(answer == flag, dtype=bool)
        if quantity == "flagged share":
            return np.ones(len(truth), dtype=bool), flagged
        return counted & flagged, np.asarray(truth == flag, dtype=bool)
    if quantity == "answered share":
        if answer.ndim != 2:
            raise ValueError(
                "an answered share is counted by sets: give the bool matrix of "
                "`predict_set` and `classes`."
            )
        return np.ones(len(truth), dtype=bool), np.count_nonzero(answer, axis=1) == 1
    if answer.ndim == 2:
        violated = _lacking(truth, answer, classes)
        if quantity == "selective error rate":
            counted &= np.count_nonzero(answer, axis=1) == 1
    elif quantity == "coverage":
        raise ValueError(
            "coverage is counted by sets: give the bool matrix of `predict_set` and "
            "`classes`."
        )
    elif quantity == "selective error rate":
        raise ValueError(
            "a selective error rate is counted by sets, because labels do not say "
            "which rows were answered: give the bool matrix of `predict_set` and "
            "`classes`."
        )
    elif quantity in ALARMS:
        _check_alarms(quantity, answer)
        violated = answer == ALARMS[quantity]
    else:
        violated = truth != answer
    if scope is not None and quantity != "miss rate":
        counted &= truth == scope
    violated = np.asarray(violated, dtype=bool)
    if Assumption.KNOWN_LABEL in guarantee.assumptions and classes is not None:
        violated &= np.isin(truth, np.asarray(classes))
    return counted, violated


def _lacking(
    truth: NDArray[Any], sets: NDArray[Any], classes: ArrayLike | None
) -> BoolArray:
    """Whether the true class is absent from each set."""
    if classes is None:
        raise ValueError(
            "`classes`, the labels of the columns of the sets, is missing."
        )
    labels = np.asarray(classes)
    if sets.shape[1] != len(labels):
        raise ValueError(
            f"the sets have {sets.shape[1]} columns, `classes` has {len(labels)} "
            "labels."
        )
    return ~np.any(sets & (truth[:, None] == labels), axis=1)


def check_one_type(labels: Mapping[str, Any]) -> None:
    """Refuse text beside numbers, where no label ever equals another: 1 and '1'."""
    first = {name: given[0] for name, given in labels.items() if len(given)}
    text = [name for name, label in first.items() if isinstance(label, str)]
    numbers = [name for name in first if name not in text]
    if text and numbers:
        one, other = text[0], numbers[0]
        raise ValueError(
            f"labels are text in {one}, such as {shown(first[one])}, and numbers in "
            f"{other}, such as {shown(first[other])}: use one type."
        )


def _check_alarms(quantity: str, answer: NDArray[Any]) -> None:
    """Refuse answers that are no detector's: none of them would break the promise."""
    known = np.asarray((answer == ALARM) | (answer == 1), dtype=bool)
    known &= answer.dtype.kind != "b"
    if not known.all():
        raise ValueError(
            f"a {quantity} is counted by the answers of a detector, -1 for an alarm "
            f"and 1 for none, got {shown(answer[int(np.argmin(known))])}."
        )
