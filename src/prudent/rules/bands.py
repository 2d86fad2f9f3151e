"""Limits of rates at every threshold of a score, all true at once.

n rows that a model has not seen are scored; somebody then looks at them and chooses a
threshold. `simultaneous_limits` bounds a rate at all thresholds at once, so the choice
costs nothing. With delta = 1 - confidence, U(v, m, level) the limit for v of m rows
that holds at all thresholds but with probability `level`:

- **alarms** where a score is at least t. Of the m1 positive rows v1 score below t, of
  the m0 others v0 reach it, of all n rows k do. Each of miss rate <= U(v1, m1),
  false-alarm rate <= U(v0, m0), flagged share <= U(k, n) and a two-sided interval of
  the share of positive rows takes delta / 4; error, precision and cost are the worst
  values over that box.
- **answers** where a score exceeds t. W of the n rows are answered wrong, R right.
  With e = U(W, n, delta / 2) and d = 1 - U(n - R, n, delta / 4) the error rate among
  answered rows is at most e / (e + d): wrong rows obey the theorem with all other rows
  beyond every threshold, right rows likewise. The answered share is at least
  1 - U(n - W - R, n, delta / 4).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from numbers import Real
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from prudent.core.assumptions import Assumption
from prudent.core.binomial import (
    check_fraction,
    clopper_pearson,
    simultaneous_limits,
)
from prudent.core.guarantee import Guarantee
from prudent.core.types import BoolArray, FloatArray, IntArray
from prudent.core.validation import (
    as_flags,
    check_label_cells,
    plain,
    refuse_nan,
    shown,
)
from prudent.exceptions import InfeasibleError
from prudent.rules.rule import Terms
from prudent.rules.scores import EXACT, AnswerScores, ClassScores, Rounding

BANDS = (
    "exact limits at all thresholds at once (Noe 1972; prudent, user guide, choosing "
    "after looking)"
)
#: Labels of a detector: normal rows and anomalies.
NORMAL, ANOMALY = 1, -1
#: Claims that share the level, the interval of the share of positive rows among them.
CLAIMS = 4
#: What `find` calls the figures, and which of them are limited from below.
FOUND_AS = {
    "miss rate": "class_error",
    "false alarm rate": "false_alarm",
    "flagged share": "flagged_share",
    "error rate": "error",
    "precision": "precision",
    "expected cost": "cost",
    "selective error rate": "error",
    "answered share": "answered_share",
}
AT_LEAST = frozenset({"precision", "answered_share"})
#: Positions of an explorer, and how many of them stand at each end.
POSITIONS, OUTERMOST = 256, 32


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ThresholdBands:
    """Exact limits at every threshold at once: look first, choose then.

    Made by `certify_thresholds`, by `threshold_bands` of a fitted wrapper, or from
    arrays by `from_scores`.

    Attributes
    ----------
    kind : {"alarms", "answers"}
        A row raises an alarm where its score is at least the threshold, or is answered
        where its score exceeds it.
    confidence : float
        Probability over the rows that all limits hold, at all thresholds.
    classes : tuple
        For alarms the other label and the positive one, in their order; 1 and -1 of a
        detector. For answers empty.
    positive : object
        The label that an alarm stands for; None for answers.
    scores : ndarray of shape (n_rows,)
        Of the rows behind the limits, rising.
    marked : ndarray of bool, shape (n_rows,)
        Which of them are positive, or answered wrong.
    detects : bool
        Whether the share of positive rows says nothing about future rows, as with
        anomalies that were collected: error, precision, cost and flagged share then
        need `prevalence`.
    unit : {"row", "group"}
        Whether each of the rows is a random row of a group.
    held_out : bool
        Whether a wrapper held the rows out itself, so that nobody has to vouch that
        the model has not seen them.
    latest : mapping or None
        Evidence that says which rows are the latest ones in time, where they are.
    rounding : Rounding
        Which scores `thresholds` takes for equal; of `from_scores` only those that are.

    Examples
    --------
    >>> import numpy as np
    >>> from prudent import ThresholdBands
    >>> scores = np.arange(300) / 300
    >>> is_fraud = scores >= 0.9
    >>> bands = ThresholdBands.from_scores(scores, is_fraud, kind="alarms")
    >>> for promise in bands.at(0.88):
    ...     print(
    ...         promise.quantity, promise.scope, promise.sense, f"{promise.bound:.3f}"
    ...     )
    class error rate True <= 0.209
    class error rate False <= 0.071
    flagged share True <= 0.196
    error rate None <= 0.092
    precision True >= 0.422
    """

    kind: Literal["alarms", "answers"]
    confidence: float
    scores: FloatArray
    marked: BoolArray
    classes: tuple[Any, ...] = ()
    positive: Any = None
    detects: bool = False
    unit: Literal["row", "group"] = "row"
    held_out: bool = False
    latest: Mapping[str, float] | None = None
    rounding: Rounding = EXACT

    @classmethod
    def from_marked_scores(
        cls, scores: FloatArray, marked: BoolArray, **fields: Any
    ) -> Self:
        """Limits from scores (n_rows,) in any order, none of them NaN."""
        order = np.argsort(scores, kind="stable")
        return cls(scores=scores[order], marked=marked[order], **fields)

    @classmethod
    def from_scores(
        cls,
        scores: ArrayLike,
        y_or_wrong: ArrayLike,
        *,
        kind: Literal["alarms", "answers"],
        confidence: float = 0.95,
        positive: Any = None,
    ) -> Self:
        """Limits from the scores of any model.

        Parameters
        ----------
        scores : array-like of shape (n_rows,)
            For alarms how much each row looks like a positive one, for answers how sure
            its answer is.
        y_or_wrong : array-like of shape (n_rows,)
            For alarms the label of each row, for answers whether its answer is wrong.
        kind : {"alarms", "answers"}
            What happens at a threshold.
        confidence : float, default=0.95
            In (0, 1).
        positive : object, default=None
            For alarms the label that they stand for; all other labels are the rest.
            None: the second of two labels.

        Returns
        -------
        ThresholdBands

        Raises
        ------
        ValueError
            If there is no row, a score is NaN, shapes differ, `positive` is not a label
            or is missing where there are not two labels.
        """
        check_fraction("confidence", confidence)
        if kind not in ("alarms", "answers"):
            raise ValueError(f"`kind` must be 'alarms' or 'answers', got {kind!r}.")
        ranked, labels = np.asarray(scores, dtype=np.float64), np.asarray(y_or_wrong)
        if ranked.ndim != 1 or ranked.shape != labels.shape:
            raise ValueError(
                "`scores` and `y_or_wrong` must have one entry for each row, got "
                f"shapes {ranked.shape} and {labels.shape}."
            )
        if not len(ranked):
            raise ValueError("`scores` hold 0 rows; give at least 1.")
        refuse_nan(ranked, "{} have no score.")
        names: tuple[Any, ...] = ()
        if kind == "alarms":
            check_label_cells("`y_or_wrong`", labels)
            different = [plain(name) for name in np.unique(labels)]
            names, positive = two_sides(different, positive)
            marked = labels == positive
        else:
            marked = as_flags("`y_or_wrong`, whether each answer is wrong,", labels)
        return cls.from_marked_scores(
            ranked,
            marked,
            kind=kind,
            confidence=float(confidence),
            classes=names,
            positive=positive,
        )

    @property
    def thresholds(self) -> FloatArray:
        """Where the counts change, rising, shape (n_thresholds,).

        Scores of rows, on the side where all that are equal up to `rounding` raise an
        alarm, or none is answered; for alarms infinity too, where no row raises one,
        for answers minus infinity, where all rows are answered.
        """
        different = np.unique(self.scores)
        if self.kind == "alarms":
            cuts = self.rounding.lowered(different)
            parted = np.append(True, cuts[1:] > different[:-1])
            return np.unique(np.append(cuts[parted], np.inf))
        cuts = self.rounding.raised(different)
        parted = np.append(cuts[:-1] < different[1:], True)
        return np.unique(np.append(-np.inf, cuts[parted]))

    def at(
        self,
        threshold: float,
        *,
        prevalence: float | None = None,
        costs: ArrayLike | None = None,
    ) -> tuple[Guarantee, ...]:
        """What holds at a threshold, however it was chosen.

        Parameters
        ----------
        threshold : float
            Alarms are raised from it on; answers given above it.
        prevalence : float, default=None
            Share of positive rows among future rows, in [0, 1], where that is known
            and differs from the share here; it becomes an assumption. For alarms.
        costs : array-like of shape (2, 2), default=None
            Cost of each answer, rows = truth, columns = answer, in the order of
            `classes`. For alarms.

        Returns
        -------
        tuple of Guarantee
            For alarms the error rates of the positive class and of the other (of a
            detector the miss and the false-alarm rate), the flagged share, the error
            rate, the precision of the alarms, and the expected cost if `costs` are
            given; for answers the selective error rate and the answered share. All of
            them hold at once, with `confidence`, at all thresholds.

        Raises
        ------
        ValueError
            If the threshold is NaN, an argument lies outside its range, or belongs to
            alarms and this is about answers.
        """
        if not isinstance(threshold, Real):
            raise ValueError(f"`threshold` must be a number, got {shown(threshold)}.")
        if math.isnan(threshold):
            raise ValueError("`threshold` is NaN.")
        at = np.array([threshold])
        figures = self.figures(at, prevalence=prevalence, costs=costs)
        counts = {name: count[0] for name, count in self._counts(at).items()}
        behind = {"miss rate": self.marked, "false alarm rate": ~self.marked}
        return tuple(
            self._promise(name, float(column[0]), counts, prevalence)
            for name, column in figures.items()
            # Nothing is said of anomalies that were not there.
            if not self.detects or behind.get(name, np.ones(1)).any()
        )

    def find(
        self,
        *,
        minimise: str,
        prevalence: float | None = None,
        costs: ArrayLike | None = None,
        **limits: float,
    ) -> float:
        """The best threshold among those whose limits lie within others.

        All limits hold at all thresholds at once, so that what `at` promises of the
        threshold found is true with `confidence`, whatever was asked for.

        Parameters
        ----------
        minimise : str
            For alarms "class error" (of the positive class), "false alarm", "flagged
            share", "error" or "cost"; for answers "error" or "handed over".
        prevalence, costs
            As for `at`.
        **limits : float
            Largest `class_error`, `false_alarm`, `flagged_share`, `error`, `cost`;
            least `precision`. For answers the largest `error` and `handed_over`, the
            least `answered_share`.

        Returns
        -------
        float
            One of `thresholds`; of equally good ones that of fewest alarms, or of most
            answers.

        Raises
        ------
        InfeasibleError
            If no threshold keeps a limit, or all of them at once; it says the least
            limit that one keeps.
        ValueError
            If a name is not known here, or an argument lies outside its range.

        Examples
        --------
        >>> import numpy as np
        >>> from prudent import ThresholdBands
        >>> scores = np.arange(300) / 300
        >>> bands = ThresholdBands.from_scores(scores, scores >= 0.9, kind="alarms")
        >>> round(bands.find(minimise="flagged share", class_error=0.25), 3)
        0.9
        """
        at = self.thresholds
        if self.kind == "alarms":
            at = at[::-1]
        columns = self.figures(at, prevalence=prevalence, costs=costs)
        known = {FOUND_AS[name]: column for name, column in columns.items()}
        if self.kind == "answers":
            known["handed_over"] = 1 - known["answered_share"]
        wanted = {**limits, minimise.replace(" ", "_"): None}
        unknown = [name for name in wanted if name not in known]
        if unknown or minimise.replace(" ", "_") in AT_LEAST:
            names = [name for name in known if name not in AT_LEAST]
            raise ValueError(
                f"`minimise` may be {', '.join(names).replace('_', ' ')}, and limits "
                f"be set on {', '.join(known)}; got "
                f"{(unknown or [minimise])[0]!r}."
            )
        kept = np.ones(len(at), dtype=bool)
        for name, limit in limits.items():
            if not isinstance(limit, Real) or math.isnan(limit):
                raise ValueError(f"`{name}` must be a number, got {shown(limit)}.")
            column = known[name]
            rises = name in AT_LEAST
            within = column >= limit if rises else column <= limit
            if not (kept & within).any():
                raise InfeasibleError(
                    _not_kept(name, limit, limits, column, kept, at_least=rises)
                )
            kept &= within
        figure = np.where(kept, known[minimise.replace(" ", "_")], np.inf)
        return float(at[int(figure.argmin())])

    def figures(
        self,
        thresholds: FloatArray,
        *,
        prevalence: float | None = None,
        costs: ArrayLike | None = None,
    ) -> dict[str, FloatArray]:
        """All that `at` promises, at thresholds (n,), as columns of shape (n,).

        For answers those of `limits`. For alarms miss and false-alarm rate and, where
        the share of positive rows is known or `prevalence` given, "flagged share",
        "error rate", "precision" and with `costs` "expected cost": the worst over the
        box of what the limits allow.
        """
        thresholds = _as_thresholds(thresholds)
        limits = self.limits(thresholds)
        if self.kind == "answers":
            if prevalence is not None or costs is not None:
                raise ValueError(
                    "`prevalence` and `costs` are for alarms: leave them out."
                )
            return limits
        if prevalence is not None:
            check_fraction("prevalence", prevalence, "[0, 1]")
        miss, false_alarm = limits["miss rate"], limits["false alarm rate"]
        if prevalence is None and self.detects:
            if costs is not None:
                raise ValueError(
                    "the rows do not say how frequent anomalies are: give `prevalence`."
                )
            return {"miss rate": miss, "false alarm rate": false_alarm}
        if prevalence is None:
            least, most = self.share
        else:
            least = most = float(prevalence)
            limits["flagged share"] = most + (1 - most) * false_alarm
        right = least * (1 - miss)
        alarms = right + (1 - least) * false_alarm
        nothing = np.zeros(len(thresholds))
        limits["error rate"] = np.maximum(
            least * miss + (1 - least) * false_alarm,
            most * miss + (1 - most) * false_alarm,
        )
        limits["precision"] = np.divide(right, alarms, out=nothing, where=alarms > 0)
        if costs is not None:
            limits["expected cost"] = self._worst_cost(
                costs, miss, false_alarm, (least, most)
            )
        return limits

    def limits(self, thresholds: FloatArray) -> dict[str, FloatArray]:
        """Exact limits at thresholds (n,), as columns of shape (n,).

        For alarms "miss rate", "false alarm rate" and, unless `detects`, "flagged
        share", upper ones; for answers the upper "selective error rate" and the lower
        "answered share".
        """
        thresholds = _as_thresholds(thresholds)
        delta = 1 - self.confidence
        n = len(self.scores)
        first, second, third = self._counts(thresholds).values()
        if self.kind == "alarms":
            n_marked, each = int(self.marked.sum()), delta / self.n_claims
            limits = {
                "miss rate": _limit(first, n_marked, each),
                "false alarm rate": _limit(second, n - n_marked, each),
            }
            if not self.detects:
                limits["flagged share"] = _limit(third, n, each)
            return limits
        wrong, right = first, third - first
        error = simultaneous_limits(n, delta / 2)[wrong]
        correct = 1 - simultaneous_limits(n, delta / 4)[n - right]
        return {
            "selective error rate": error / (error + correct),
            "answered share": 1 - simultaneous_limits(n, delta / 4)[n - third],
        }

    @property
    def n_claims(self) -> int:
        """Claims that share what may fail; of ordinary rows alone there is one."""
        if self.kind == "answers":
            return CLAIMS - 1
        return 1 if self.detects and not self.marked.any() else CLAIMS

    @property
    def share(self) -> tuple[float, float]:
        """Two-sided interval of the share of positive rows, for alarms."""
        n_marked, level = int(self.marked.sum()), (1 - self.confidence) / CLAIMS
        return clopper_pearson(n_marked, len(self.marked), level=level)

    def frame(self) -> Any:
        """Counts and limits at each of `thresholds`, as a pyarrow table."""
        import pyarrow as pa

        at = self.thresholds
        limits = {f"{name} limit": limit for name, limit in self.limits(at).items()}
        return pa.table({"threshold": at, **self._counts(at), **limits})

    def threshold_with(self, violations: Sequence[int]) -> float | None:
        """The threshold at which so many rows are counted: that of a rule, say.

        Parameters
        ----------
        violations : sequence of two int
            For alarms missed rows and false alarms; for answers wrong and answered
            ones, as in `to_dict`.

        Returns
        -------
        float or None
            One of `thresholds`; None where none counts so many.

        Examples
        --------
        >>> from prudent import ThresholdBands
        >>> bands = ThresholdBands.from_scores(
        ...     [0.1, 0.4, 0.9], [0, 1, 1], kind="alarms"
        ... )
        >>> bands.threshold_with((1, 0))
        0.9
        """
        at = self.thresholds
        counts = self._counts(at)
        names = ["missed", "false alarms"]
        if self.kind == "answers":
            names = ["wrong", "answered"]
        columns = np.column_stack([counts[name] for name in names])
        alike = (columns == violations).all(axis=1)
        return float(at[alike][0]) if alike.any() else None

    def to_dict(self, including: float | None = None) -> dict[str, Any]:
        """What an explorer reads: some positions, limits rounded outward.

        Parameters
        ----------
        including : float, default=None
            One of `thresholds` that is to be among the at most 256 that are chosen.

        Returns
        -------
        dict
            "kind", "confidence", "positive" and "rows" (behind each count);
            "threshold" (short numbers, or "Infinity" and "-Infinity", that divide the
            rows as the exact ones do); at each of them "violations" (for alarms missed
            rows, false alarms and flagged rows, for answers wrong and answered ones)
            and "limit" (for alarms of these three, of a detector of the first two, for
            answers the error rate and the lower limit of the answered share); "share",
            the interval of the share of positive rows, None for a detector.
        """
        at = self.thresholds
        chosen = _positions(len(at))
        if including is not None:
            place = int(np.searchsorted(at, including))
            chosen[np.abs(chosen - place).argmin()] = place
        counts, limits = self._counts(at[chosen]), self.limits(at[chosen])
        n, n_marked = len(self.scores), int(self.marked.sum())
        rows, share = [n_marked, n - n_marked, n], None
        if self.kind == "answers":
            rows = [n, n]
            del counts["right"]  # the rest of the answered
        elif not self.detects:
            lower, upper = self.share
            share = [_outward(lower, math.floor), _outward(upper, math.ceil)]
        columns = [
            [
                _outward(value, math.floor if name == "answered share" else math.ceil)
                for value in limit.tolist()
            ]
            for name, limit in limits.items()
        ]
        return {
            "kind": self.kind,
            "confidence": self.confidence,
            "positive": plain(self.positive),
            "rows": rows,
            "threshold": [self._short(at, place) for place in chosen],
            "violations": np.column_stack(list(counts.values())).tolist(),
            "limit": [list(row) for row in zip(*columns, strict=True)],
            "share": share,
        }

    def _counts(self, thresholds: FloatArray) -> dict[str, IntArray]:
        """Missed, false alarms and flagged; or wrong, right and answered; (n,) each."""
        marked, others = self.scores[self.marked], self.scores[~self.marked]
        side: Literal["left", "right"] = "left" if self.kind == "alarms" else "right"
        below = np.searchsorted(marked, thresholds, side)
        above = len(marked) - below
        others_above = len(others) - np.searchsorted(others, thresholds, side)
        total = above + others_above
        if self.kind == "alarms":
            return {"missed": below, "false alarms": others_above, "flagged": total}
        return {"wrong": above, "right": others_above, "answered": total}

    def _promise(
        self,
        figure: str,
        bound: float,
        counts: Mapping[str, float],
        prevalence: float | None,
    ) -> Guarantee:
        """The promise of one of `figures` at a threshold; a prevalence is assumed."""
        n_rows, n_marked = len(self.scores), int(self.marked.sum())
        quantity: Any = figure
        scope = None
        if self.kind == "answers":
            counted = {name: counts[name] for name in ("answered", "wrong")}
        elif figure in ("miss rate", "false alarm rate"):
            misses = figure == "miss rate"
            n_rows = n_marked if misses else n_rows - n_marked
            counted = {"wrong": counts["missed" if misses else "false alarms"]}
            own = next(a for a in self.classes if (a == self.positive) == misses)
            if not self.detects and not isinstance(own, Rest):
                quantity, scope = "class error rate", plain(own)
        else:
            counted = {"flagged": counts["flagged"]}
            if figure in ("flagged share", "precision") and not self.detects:
                scope = plain(self.positive)
            if prevalence is not None:
                counted = {"prevalence": prevalence}
        numbers = {"calibration rows": n_rows, **counted, "claims": self.n_claims}
        terms = Terms(
            confidence=self.confidence,
            frozen=not self.held_out,
            grouped=self.unit == "group",
            latest=self.latest,
        )
        promise = terms.promise(
            quantity,
            # Sums of shares that make one may exceed it by rounding.
            bound if figure == "expected cost" else min(bound, 1.0),
            Assumption.INDEPENDENT,
            sense=">=" if FOUND_AS[figure] in AT_LEAST else "<=",
            scope=scope,
            evidence={name: float(number) for name, number in numbers.items()},
            source=BANDS,
        )
        if "prevalence" not in counted:
            return promise
        given = (Assumption.PRIOR_SHIFT, Assumption.PREVALENCE)
        return replace(promise, assumptions=(*promise.assumptions, *given))

    def _worst_cost(
        self,
        costs: ArrayLike,
        miss: FloatArray,
        false_alarm: FloatArray,
        shares: Sequence[float],
    ) -> FloatArray:
        """Largest expected cost over the box: linear in each rate, so at a corner."""
        matrix = np.asarray(costs, dtype=np.float64)
        if matrix.shape != (2, 2) or not np.isfinite(matrix).all():
            raise ValueError(
                "`costs` must be finite of shape (2, 2), rows = truth, columns = "
                f"answer, in the order {', '.join(map(shown, self.classes))}; got "
                f"shape {matrix.shape}."
            )
        yes = self.classes.index(self.positive)
        no = 1 - yes
        positive = (1 - miss) * matrix[yes, yes] + miss * matrix[yes, no]
        others = (1 - false_alarm) * matrix[no, no] + false_alarm * matrix[no, yes]
        positive = np.maximum(matrix[yes, yes], positive)
        others = np.maximum(matrix[no, no], others)
        cost: FloatArray = np.maximum(
            *(share * positive + (1 - share) * others for share in shares)
        )
        return cost

    def _short(self, at: FloatArray, place: int) -> float | str:
        """A short number that divides the rows as the threshold at this place does."""
        value = float(at[place])
        if math.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
        # Alarms from it on: any number above the score before it; answers above it: any
        # number below the next score.
        alarms = self.kind == "alarms"
        if alarms:
            before = np.searchsorted(self.scores, value) - 1
            near = self.scores[before] if before >= 0 else -math.inf
            beyond = float(self.rounding.raised(near))
        else:
            after = np.searchsorted(self.scores, value, side="right")
            near = self.scores[after] if after < len(self.scores) else math.inf
            beyond = float(self.rounding.lowered(near))
        rounding = ROUND_FLOOR if alarms else ROUND_CEILING
        for digits in range(1, 17):
            short = float(Context(prec=digits, rounding=rounding).plus(Decimal(value)))
            if (beyond < short <= value) if alarms else (value <= short < beyond):
                return short
        return value


class Rest(str):
    """The name of all rows that are not positive, where they have several labels."""

    __slots__ = ()


def answer_bands(rows: AnswerScores, terms: Terms) -> ThresholdBands:
    """Limits from the rows that made a rule of answers."""
    return ThresholdBands.from_marked_scores(
        rows.sureness[:-1],
        np.diff(rows.wrong) > 0,
        kind="answers",
        rounding=rows.rounding,
        **_shared(terms),
    )


def alarm_bands(
    rows: ClassScores, positive: Any, terms: Terms, *, detects: bool = False
) -> ThresholdBands:
    """Limits from scores of rows under every class, for alarms of one class."""
    names, positive = two_sides([plain(name) for name in rows.classes], positive)
    n_unknown = int(np.count_nonzero(rows.codes < 0))
    if n_unknown and not any(isinstance(name, Rest) for name in names):
        raise ValueError(
            f"{n_unknown} of {len(rows.codes)} held-out rows have a label that the "
            "model does not know, so that rows which are not positive are not all of "
            "its other class: give scores and labels of new rows to "
            "`ThresholdBands.from_scores` with `positive`, where all others are the "
            "rest."
        )
    place = rows.classes.tolist().index(positive)
    return ThresholdBands.from_marked_scores(
        rows.scores[:, place],
        rows.codes == place,
        kind="alarms",
        classes=names,
        positive=positive,
        detects=detects,
        rounding=rows.rounding,
        **_shared(terms),
    )


def two_sides(labels: Sequence[Any], positive: Any) -> tuple[tuple[Any, ...], Any]:
    """The positive label and the other, in their order; several others are the rest."""
    if positive is None:
        if len(labels) != 2:
            raise ValueError(
                f"there are {len(labels)} classes: give `positive`, the one that an "
                "alarm stands for."
            )
        positive = labels[1]
    if positive not in labels:
        raise ValueError(
            f"`positive` {shown(positive)} is none of the classes "
            f"{', '.join(map(shown, labels[:5]))}."
        )
    if len(labels) == 2:
        return tuple(labels), positive
    name = "the rest" if positive != "the rest" else "all others"
    return (Rest(name), positive), positive


def _shared(terms: Terms) -> dict[str, Any]:
    """What bands take over from the promises of a wrapper."""
    return {
        "confidence": terms.confidence,
        "unit": "group" if terms.grouped else "row",
        "held_out": not terms.frozen,
        "latest": terms.latest,
    }


def false_alarm_bands(
    scores: FloatArray, confidence: float, terms: Terms, rounding: Rounding = EXACT
) -> ThresholdBands:
    """Limits of the false-alarm rate from held-out ordinary rows, strange ones low."""
    strangeness = -scores
    return ThresholdBands.from_marked_scores(
        strangeness,
        np.zeros(len(strangeness), dtype=bool),
        kind="alarms",
        classes=(ANOMALY, NORMAL),
        positive=ANOMALY,
        detects=True,
        rounding=rounding,
        **_shared(replace(terms, confidence=confidence)),
    )


def _limit(count: IntArray, n: int, level: float) -> FloatArray:
    """Upper limits at all thresholds; 1 where there is no row."""
    if not n:
        return np.ones(len(count))
    limits: FloatArray = simultaneous_limits(n, level)[count]
    return limits


def _positions(n: int) -> IntArray:
    """Places of an explorer among n: the outermost ones, and equal steps between."""
    if n <= POSITIONS:
        return np.arange(n)
    between = np.linspace(OUTERMOST, n - 1 - OUTERMOST, POSITIONS - 2 * OUTERMOST)
    ends = np.arange(OUTERMOST)
    places = np.concatenate([ends, np.rint(between), n - 1 - ends])
    return np.unique(places.astype(np.intp))


def _as_thresholds(thresholds: ArrayLike) -> FloatArray:
    """Thresholds (n,) to look at, none of them NaN."""
    given = np.asarray(thresholds)
    if given.ndim != 1 or (len(given) and given.dtype.kind not in "iufb"):
        raise ValueError(
            "`thresholds` must be a list of numbers, got an array of shape "
            f"{given.shape}; `at` looks at one."
        )
    refuse_nan(given.astype(np.float64), "`thresholds` are NaN in {}.")
    return given.astype(np.float64)


def _not_kept(
    name: str,
    limit: float,
    limits: Mapping[str, float],
    column: FloatArray,
    kept: BoolArray,
    *,
    at_least: bool,
) -> str:
    """Why no threshold keeps a limit among those that keep the ones before it."""
    sign = ">=" if at_least else "<="
    best = float(column[kept].max() if at_least else column[kept].min())
    # Three digits, on the side that a threshold does keep.
    side = ROUND_FLOOR if at_least else ROUND_CEILING
    least = float(Context(prec=3, rounding=side).plus(Decimal(best)))
    where = ""
    if not kept.all():
        first = list(limits)[: list(limits).index(name)]
        where = " where " + " and ".join(
            f"{n} {'>=' if n in AT_LEAST else '<='} {limits[n]:g}" for n in first
        )
    word = "largest" if at_least else "least"
    return f"no threshold keeps {name} {sign} {limit:g}{where}; {word} limit {least:g}"


def _outward(value: float, side: Any) -> float:
    """Four digits behind the point, rounded to one side by `math.floor` or `ceil`."""
    rounded = side(value * 1e4) / 1e4
    # The product may round across the integer it stands for.
    if (rounded < value) == (side is math.ceil) and rounded != value:
        rounded += 1e-4 if side is math.ceil else -1e-4
    return float(min(max(round(rounded, 4), 0.0), 1.0))
