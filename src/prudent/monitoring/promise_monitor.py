"""`PromiseMonitor`: one promise, watched for as long as the model lives."""

from __future__ import annotations

import copy
import math
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from prudent.core.binomial import check_fraction
from prudent.core.guarantee import Guarantee, Verdict, violated_rows
from prudent.core.types import FloatArray
from prudent.estimator_tools.subgroups import rows_of
from prudent.monitoring.bets import (
    Bets,
    Counts,
    Restarts,
    log_evidence_within,
    null_hypothesis,
    rate_limits,
)
from prudent.monitoring.state import (
    FORMAT,
    Watcher,
    as_losses,
    check_counts,
    check_format,
    checked_batch,
)

if TYPE_CHECKING:
    import pyarrow


class PromiseMonitor(Watcher):
    """Watch a promise on new rows, with one level of wrong alarm for its whole life.

    While the promise holds it is called broken with probability at most `level`,
    however long and however often one looks; with a promise of `confidence` c, at
    most `level` + (1 - c), the training sample included. `Guarantee.check` after
    every row has no such level.

    Parameters
    ----------
    guarantee : Guarantee
        The promise, as a fitted model states it in `guarantees_`.
    level : float, default=0.05
        Probability of a wrong alarm, in (0, 1).
    watch : {"rate", "average"}, default="rate"
        "rate": the chance of a violation, given the rows before, stays within the
        promise at every row; sees a change after a long good stretch soon. "average":
        its mean since the start does, for rates that swing from day to night.

    Attributes
    ----------
    guarantee, level, watch
        As given.
    n_ : int
        Rows counted.
    violations_ : float
        Violations among them, counted as in `Guarantee.check`.
    n_groups_ : int
        Groups of which a row was drawn, whether or not the promise is about this row;
        0 for a promise about rows.
    null_ : {"conditional", "average", "marginal"}
        What is refuted: the rate at every row, its mean, or, for a promise on
        average over calibration rows, the law of the rate of one model as well.
    e_value, peak_e_value : float
        Evidence against the promise now, and the largest so far; the alarm is a peak
        of 1 / `level`.
    alarm_at_ : int or None
        Rows seen when the alarm was raised.
    verdict : {"kept", "consistent", "broken"}
        "broken" for ever once the alarm was raised; "kept" while these rows prove,
        at the same level, that the rate is below the bound.
    interval : tuple of float
        Limits of the promised quantity that hold at all times at once with
        probability 1 - `level`, for a constant rate.

    Raises
    ------
    TypeError
        If `guarantee` is no Guarantee.
    ValueError
        If `level` or `watch` is out of range, or the promise cannot be watched: on
        average by an unknown law, a false discovery rate without confidence, an
        expected cost.

    See Also
    --------
    Guarantee.check : One look at one sample.
    DriftMonitor : Without labels.

    Notes
    -----
    Guarantee: rows come in the order of their labels; a missing label, given the
    past, does not depend on the answer being wrong; no row is counted twice, and none
    is chosen by looking at its answer (a review of alarms only).

    A promise on average over calibration rows ("false alarm rate at most k/(m+1)") is
    no bound on the rate of one model: many correctly calibrated detectors exceed it
    for ever. It is refuted only where both a constant rate and the urn of its law,
    P(next) = (k + K)/(m + 1 + n), are. One over "the rule's coins" is watched as of
    coins that are tossed anew for every row, as without a `key`.

    "rate" places a stake on "it changes now" at every row, "average" uses the counts
    only (both in `prudent.monitoring.bets`). O(1) memory and time per row.

    References
    ----------
    Ville (1939), Etude critique de la notion de collectif. Ramdas, Gruenwald, Vovk
    and Shafer (2023), Game-theoretic statistics and safe anytime-valid inference,
    Statistical Science 38.

    Examples
    --------
    >>> from prudent import Guarantee, PromiseMonitor
    >>> promise = Guarantee(quantity="error rate", bound=0.05, sense="<=")
    >>> monitor = PromiseMonitor(promise).update(2, n=100)
    >>> monitor.verdict
    'consistent'
    >>> monitor.update(45, n=300).verdict, monitor.alarm_at_
    ('broken', 400)
    """

    def __init__(
        self,
        guarantee: Guarantee,
        *,
        level: float = 0.05,
        watch: Literal["rate", "average"] = "rate",
    ) -> None:
        if not isinstance(guarantee, Guarantee):
            raise TypeError(
                f"`guarantee` must be a Guarantee, got {type(guarantee).__name__}."
            )
        check_fraction("level", level)
        if watch not in ("rate", "average"):
            raise ValueError(f"`watch` must be 'rate' or 'average', got {watch!r}.")
        self.guarantee = guarantee
        self.level = float(level)
        self.watch = watch
        # x is the event that is promised to be rare.
        self._flipped = guarantee.counts_frequent
        bound, rank, calibration_rows = null_hypothesis(guarantee)
        # Bounds 0 and 1 leave nothing to stake on.
        by_counts = watch == "average" or bound in (0, 1)
        self._bets: Bets = (Counts if by_counts else Restarts)(
            bound, 1 / self.level, rank, calibration_rows
        )
        self._single_loss = np.zeros(1)
        self.n_groups_ = 0

    @property
    def violations_(self) -> float:
        """Violations counted, as `Guarantee.check` counts them."""
        return self._turned(self._rare, self.n_)

    @property
    def null_(self) -> str:
        """What is refuted: "conditional", "average" or "marginal"."""
        if self._bets.rank:
            return "marginal"
        return "average" if self.watch == "average" else "conditional"

    @property
    def e_value(self) -> float:
        """Evidence against the promise now: its mean is at most 1 while it holds."""
        return self._bets.e_value

    @property
    def verdict(self) -> Verdict:
        """What the rows say: broken for ever, kept now, or consistent."""
        if self.alarm_at_ is not None:
            return "broken"
        # Not the bound of the bets, which a rank above the promise makes larger.
        allowed = self.guarantee.allowed
        within = log_evidence_within(self._rare, self.n_, allowed)
        return "kept" if within >= -math.log(self.level) else "consistent"

    @property
    def interval(self) -> tuple[float, float]:
        """Limits of the promised quantity, valid at all times at once."""
        return self._limits(self._rare, self.n_)

    def update(self, violations: ArrayLike, n: int | None = None) -> Self:
        """Count new rows.

        Parameters
        ----------
        violations : float or array-like of shape (n_rows,)
            With `n`, the violations in a batch of `n` rows, which is one look;
            without, the loss in [0, 1] of each row, in order. Violations are what
            `Guarantee.check` counts: wrong answers, false alarms, sets that miss. Of a
            false discovery rate each batch is one loss, the share of wrong rows among
            those selected.
        n : int, default=None
            Rows of the batch; 0 changes nothing.

        Returns
        -------
        self : PromiseMonitor

        Raises
        ------
        TypeError
            If an array comes with `n`.
        ValueError
            If a loss lies outside [0, 1], `violations` outside [0, `n`], or `n` is
            no integer >= 0. Nothing is counted then.
        """
        if n is None:
            if type(violations) in (int, float, bool) and 0 <= violations <= 1:  # type: ignore[operator]
                self._single_loss[0] = violations  # no new array for most calls
                self._count_rows(self._single_loss)
            else:
                self._count_rows(as_losses(violations))
        elif np.ndim(violations) > 0:
            raise TypeError(
                "`n` is for a count of violations; an array has one loss per row."
            )
        else:
            counted, rows = checked_batch(violations, n)
            self._bets.batch(self._turned(counted, rows), rows)
        return self

    def update_rows(
        self,
        y_true: ArrayLike,
        y_answer: ArrayLike,
        classes: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        subgroups: Any = None,
    ) -> Self:
        """Count labelled rows by what the model answered.

        Parameters
        ----------
        y_true : array-like of shape (n_rows,)
            Labels; a row without one (None or nan) is left out, such as one that is not
            ordinary where false alarms are counted.
        y_answer : array-like of shape (n_rows,) or (n_rows, n_classes)
            Labels for error rates, the bool matrix of `predict_set` for coverage and
            selective error rates, 1 and -1 of a detector for false alarms and
            misses.
        classes : array-like of shape (n_classes,), default=None
            Labels of the columns of the matrix.
        groups : array-like of shape (n_rows,), default=None
            Group of each row, for a promise of ``unit="group"``, which needs them: one
            random row of each group is looked at, the same one in every monitor that
            had as many groups before. All rows of a group belong into one call, those
            of other subgroups and those without a label too: a row that is drawn and
            that the promise is not about counts for none.
        subgroups : array-like of bool (n_rows,) or data frame, default=None
            For a promise about a subgroup: which rows are of it, or a data frame with a
            column of bool for each subgroup of the model, or of labels as in
            ``sex=Female``. Rows of no subgroup count for no promise. None: all rows are
            of it.

        Returns
        -------
        self : PromiseMonitor
            A promise about one class counts the rows of that class only; one that
            assumes known labels never counts a row of another label as a violation.

        Raises
        ------
        ValueError
            If the shapes disagree, labels are text here and numbers there, `classes`
            is missing, a selective error rate comes with labels, `groups` are missing,
            `subgroups` do not tell the subgroup, or either plays no part.
        """
        counted, violated = violated_rows(self.guarantee, y_true, y_answer, classes)
        if subgroups is not None:
            if self.guarantee.subgroup is None:
                raise ValueError(
                    "the promise is about all rows, so `subgroups` play no part: leave "
                    "them out."
                )
            counted &= rows_of(self.guarantee.subgroup, subgroups, len(counted))
        # Groups of equal size would show the same position at every call if the seed
        # did not change. `n_` would not: it stays where the promise is about none of
        # the rows drawn, and the next call would draw the same ones.
        rows = self.guarantee.rows_that_count(len(counted), groups, seed=self.n_groups_)
        if groups is not None:
            self.n_groups_ += len(rows)
        self._count_rows(violated[rows][counted[rows]].astype(np.float64))
        return self

    def merge(self, other: PromiseMonitor) -> PromiseMonitor:
        """Add the rows of a monitor of the same promise.

        Parameters
        ----------
        other : PromiseMonitor
            Same promise and level, both with ``watch="average"``.

        Returns
        -------
        PromiseMonitor
            A new monitor: the counts are added, as one look. A promise that either
            calls broken stays broken, since the earlier of their alarms. The order of
            the two changes nothing but the trace, which is that of this one. Each of
            the two may have raised a wrong alarm with probability `level`, and their
            sum may once more.

        Raises
        ------
        ValueError
            If the promises differ, or the order of the rows would matter.
        """
        if not isinstance(other, PromiseMonitor) or (
            (self.guarantee, self.level, self.watch)
            != (other.guarantee, other.level, other.watch)
        ):
            raise ValueError("only monitors of one promise can be merged.")
        merged = copy.deepcopy(self)
        if self.watch == "rate" or not isinstance(merged._bets, Counts):
            raise ValueError(
                "monitors with watch='rate' cannot be merged: the order of the rows "
                "is lost. Use watch='average' or broken_promises."
            )
        merged._bets.add(other._bets)
        merged.n_groups_ += other.n_groups_
        return merged

    def frame(self) -> pyarrow.Table:
        """Return the trace: at most 257 rows from the first row seen to the last.

        Returns
        -------
        pyarrow.Table
            row, violations, log_e_value, and the limits lower and upper of the
            quantity.
        """
        import pyarrow

        trace = self._bets.points()
        if self.n_ and (not trace or trace[-1][0] != self.n_):
            trace.append([self.n_, self._rare, self.e_value])
        limits = [self._limits(rare, row) for row, rare, _ in trace]
        columns = {
            "violations": [self._turned(rare, row) for row, rare, _ in trace],
            "log_e_value": [self._bets.log_e_value(*point) for point in trace],
            "lower": [lower for lower, _ in limits],
            "upper": [upper for _, upper in limits],
        }
        types = {"row": pyarrow.int64(), **dict.fromkeys(columns, pyarrow.float64())}
        rows = [int(row) for row, _, _ in trace]
        return pyarrow.table({"row": rows, **columns}, schema=pyarrow.schema(types))

    def to_dict(self) -> dict[str, Any]:
        """State in JSON types, at most 20 kB: `from_dict` goes on bit for bit."""
        return {
            "format": FORMAT,
            "guarantee": self.guarantee.to_dict(),
            "level": self.level,
            "watch": self.watch,
            "n_groups": self.n_groups_,
            **self._bets.to_dict(),
        }

    @classmethod
    def from_dict(cls, state: dict[str, Any]) -> Self:
        """Return the monitor that `to_dict` described.

        Raises
        ------
        ValueError
            If the state was written by a newer prudent, or is none of a monitor.
        """
        check_format(state)
        monitor = cls(
            Guarantee.from_dict(state["guarantee"]),
            level=state["level"],
            watch=state["watch"],
        )
        monitor._bets.go_on_from(state)
        monitor.n_groups_ = int(state["n_groups"])
        check_counts(monitor.n_groups_)
        return monitor

    def __repr__(self) -> str:
        return (
            f"PromiseMonitor({self.guarantee.quantity!r} {self.guarantee.sense} "
            f"{self.guarantee.bound:.4g}, level={self.level:g}, watch={self.watch!r}, "
            f"n={self.n_}, verdict={self.verdict!r})"
        )

    def __str__(self) -> str:
        confidence = self.guarantee.confidence
        wrong, included = self.level, ""
        if confidence is not None:
            wrong, included = self.level + 1 - confidence, ", training included"
        since = f" since row {self.alarm_at_}" if self.verdict == "broken" else ""
        low, high = self.interval
        return (
            f"{self.guarantee} So far {self.verdict}{since} "
            f"({self.violations_:g} violations in {self.n_} rows, limits {low:.3g} to "
            f"{high:.3g}, e-value {self.e_value:.3g}). A promise that holds is ever "
            f"called broken with probability at most {min(wrong, 1.0):.3g}{included}."
        )

    def _counts(self) -> FloatArray:
        return self._bets.counts

    @property
    def _rare(self) -> float:
        """Sum of x, the event that is promised to be rare."""
        return float(self._bets.counts[1])

    def _turned(self, count: float, n: float) -> float:
        return n - count if self._flipped else count

    def _limits(self, rare: float, n: float) -> tuple[float, float]:
        lower, upper = rate_limits(rare, n, level=self.level)
        # A coverage of 1 - x and a rate promised to be large are one minus x.
        return (
            (1 - upper, 1 - lower) if self.guarantee.sense == ">=" else (lower, upper)
        )

    def _count_rows(self, losses: FloatArray) -> None:
        self._bets.rows(1 - losses if self._flipped else losses)
