"""A rule: thresholds of scores, what they answer, and what is promised of that.

`Coverage` and `FalseAlarms` make rules of ranks, and a file can keep them. The n own
scores of a category are a_(1) <= ... <= a_(n), a_(0) = -inf; such a rule leaves out
what scores below a_(r), and all of its mathematics is the choice of the rank r:

- on average r = `mean_rank`, the largest r with r / (n + 1) <= rate, which is what is
  promised: never the rate asked for;
- with a confidence c r = `high_probability_rank`, the largest r with
  P(Bin(n, rate) <= r - 1) <= 1 - c.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from prudent.core.assumptions import LATEST, Assumption
from prudent.core.binomial import high_probability_rank, mean_rank
from prudent.core.classes import log_odds_against, max_probability
from prudent.core.guarantee import AverageOver, Guarantee, Quantity, Sense
from prudent.core.types import BoolArray, FloatArray, IntArray
from prudent.core.validation import refuse_nan
from prudent.rules.files import AS_GIVEN, fields_of_rule, json_of_rule
from prudent.rules.parts import Crossing, cells_in, members_of
from prudent.rules.scores import CalibrationScores, places
from prudent.rules.subgroups import (
    cell_places,
    largest_p_values,
    lowest_thresholds,
)

Kind = Literal["sets", "answers", "labels", "alarms"]
ON_AVERAGE = "Vovk, Gammerman and Shafer 2005, chapter 2"
WITH_CONFIDENCE = "Vovk 2012"


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What all promises of a rule have in common.

    `confidence` is None for promises on average; else all promises of so many `rules`
    of the same rows hold at once with it. `frozen` says that the calibration rows are
    all that was drawn: the model was there before; `grouped` that each of them is a
    random row of a group of its own. Where they are the latest rows in time, `latest`
    is the evidence that says so: "latest rows" and "first time" or "first date".
    """

    confidence: float | None = None
    rules: int = 1
    frozen: bool = False
    grouped: bool = False
    latest: Mapping[str, float] | None = None

    def each(self, n_claims: int = 1, *, overlap: bool = False) -> float:
        """Confidence of each of so many claims about different rows, of each rule.

        Not of promises on average, which have none to share.

        Rules of the same rows depend on each other, so that they share what may fail
        (Bonferroni), and so do claims whose rows `overlap`; claims about different rows
        are independent given the numbers of these rows, and the product of their
        confidences is that of all.
        """
        assert self.confidence is not None
        failing = (1 - self.confidence) / self.rules
        if overlap:
            return float(1 - failing / n_claims)
        return float((1 - failing) ** (1 / n_claims))

    def rank(self, n_rows: int, rate: float) -> int:
        """Rank r such that new scores fall below a_(r) at most at the rate, or 0."""
        if self.confidence is None:
            return mean_rank(n_rows, rate)
        return high_probability_rank(n_rows, rate, self.each())

    def promise(
        self,
        quantity: Quantity,
        rate: float,
        exchangeable: Assumption,
        *also: Assumption,
        sense: Sense | None = None,
        scope: Any = None,
        subgroup: str | None = None,
        evidence: Mapping[str, float],
        source: str = "",
    ) -> Guarantee:
        """The promise that what is bad happens at most at a rate.

        Of a coverage what is bad is the rest; an answered share is promised to be at
        least the rate; with a `sense` the rate is the bound itself. With a confidence
        rows are independent draws, not only `exchangeable`; the source is by default
        that of the theorem of ranks.
        """
        covers = quantity == "coverage" and sense is None
        at_least = covers or quantity == "answered share"
        certain = self.confidence is not None
        drawn: AverageOver = "calibration rows" if self.frozen else "training samples"
        rows = Assumption.INDEPENDENT if certain else exchangeable
        rows = Assumption.GROUPS if self.grouped else rows
        shared = {"rules": float(self.rules)} if certain and self.rules > 1 else {}
        return Guarantee(
            quantity=quantity,
            bound=1 - rate if covers else rate,
            sense=sense or (">=" if at_least else "<="),
            confidence=self.confidence,
            average_over=None if certain else drawn,
            assumptions=(
                rows if self.latest is None else LATEST[rows],
                *also,
                *((Assumption.UNSEEN,) if self.frozen else ()),
            ),
            scope=scope,
            subgroup=subgroup,
            unit="group" if self.grouped else "row",
            evidence={**evidence, **shared, **(self.latest or {})},
            source=source or (WITH_CONFIDENCE if certain else ON_AVERAGE),
        )


def group_named(name: Any) -> str:
    """What the promises call a group of rows: a part of the population, no class."""
    return f"group={name}"


class Calibration(Protocol):
    """What made a rule: the scores of calibration rows, and settings."""

    def rule(self, rate: Any) -> Rule:
        """The rule for a rate."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rule:
    """What to answer to scores, and what is promised of these answers.

    Any model gives the scores: plausible answers score high. The rule holds nothing
    of the model.

    Attributes
    ----------
    kind : {"sets", "answers", "labels", "alarms"}
        Sets of labels; whether the best label is given as an answer; one label; or
        whether a row raises an alarm.
    thresholds : tuple of float
        Scores at which the answers change: one, or one for each class or group.
    guarantees : tuple of Guarantee
        What is promised.
    classes : tuple
        Labels in the order of the columns of scores.
    by : None, "class" or "group"
        What has a threshold of its own, in sets.
    groups : tuple
        Sorted names of the groups with a threshold. A row of another group has all
        labels in its set.
    subgroups : tuple of str
        Names of the G subgroups that have thresholds of their own. The thresholds are
        those of all classes of the first subgroup first, where `by` is "class" or the
        kind "labels"; and what the methods take as `groups` is a matrix of bool (n, G).
    crossings : tuple of Crossing
        How columns of a table part rows into the subgroups, for `members`; () where
        something else does.
    cells : ndarray of bool, shape (n_cells, G), or None
        Memberships of the rows that one threshold is about, for "answers". Rows of
        other cells get no answer.
    priority : tuple
        Labels with a threshold of their own that are given first, for "labels".
    strange : {"low", "high"}
        Which scores raise alarms.
    empty : {"best", "all"}
        What joins a set: always the label of the best score, or all labels where a
        set is empty.
    smoothed_rate : float or None
        Ties are broken by coins: labels of p-values above this rate are in the set.
    record : mapping
        What made the rule, for its readers.
    calibration : Calibration or None
        What made the rule, for another rate.
    """

    kind: Kind
    thresholds: tuple[float, ...]
    guarantees: tuple[Guarantee, ...] = ()
    classes: tuple[Any, ...] = ()
    by: Literal["class", "group"] | None = None
    groups: tuple[Any, ...] = ()
    subgroups: tuple[str, ...] = ()
    crossings: tuple[Crossing, ...] = ()
    cells: BoolArray | None = None
    priority: tuple[Any, ...] = ()
    strange: Literal["low", "high"] = "low"
    empty: Literal["best", "all"] = "best"
    smoothed_rate: float | None = None
    record: Mapping[str, Any] = field(default_factory=dict)
    calibration: Calibration | None = None

    def sets(
        self,
        scores: FloatArray,
        groups: NDArray[Any] | None = None,
        coins: FloatArray | None = None,
        *,
        allow_empty: bool = False,
    ) -> BoolArray:
        """Labels that each row may have.

        Parameters
        ----------
        scores : ndarray of shape (n, n_classes)
        groups : ndarray of shape (n,) or (n, n_subgroups), default=None
            Group of each row, where groups have thresholds; where subgroups have, which
            of them hold it.
        coins : ndarray of shape (n,), default=None
            Uniform number of each row, where ties are smoothed.
        allow_empty : bool, default=False
            Whether nothing is added by `empty`.

        Returns
        -------
        ndarray of bool, shape (n, n_classes)
        """
        self._require("sets")
        scores = self._checked(scores, len(self.classes))
        if self.smoothed_rate is None:
            members = scores >= self._thresholds_of(groups)
        else:
            members = self.p_values(scores, groups, coins) > self.smoothed_rate
        if not allow_empty and self.empty == "best":
            members[np.arange(len(members)), scores.argmax(axis=1)] = True
        elif not allow_empty:
            members[~members.any(axis=1)] = True
        return members

    def members(self, columns: Mapping[Any, Any]) -> BoolArray:
        """Which subgroups hold each row, as the other methods take it for `groups`.

        Parameters
        ----------
        columns : mapping or data frame
            Name of each column by which the rule has subgroups to its values (n,).
            None and NaN are missing.

        Returns
        -------
        ndarray of bool, shape (n, n_subgroups)
            All False for a row with a value that the rule has not seen.
        """
        if not self.crossings:
            raise ValueError("the rule has no subgroups by columns of a table.")
        return members_of(self.crossings, lambda name: cells_in(columns[name]))

    def scored(self, values: FloatArray) -> FloatArray:
        """Scores that the rule is about, from the columns that its file names.

        Where `record["scores"]` is "log odds" or "max probability" these columns are
        probabilities (n, n_classes), and the other methods take what is made of them.
        """
        made = self.record.get("scores", AS_GIVEN)
        if made == "log odds":
            return -log_odds_against(values)
        return max_probability(values) if made == "max probability" else values

    def answers(
        self, scores: FloatArray, groups: NDArray[Any] | None = None
    ) -> BoolArray:
        """Whether each row is answered, by its largest score or its only one."""
        self._require("answers")
        # Sureness made of scores of classes by a reader, as `scored`, is one a row.
        of_classes = self.classes and self.record.get("scores", AS_GIVEN) == AS_GIVEN
        scores = self._checked(scores, len(self.classes) if of_classes else None)
        sureness = scores if scores.ndim == 1 else scores.max(axis=1)
        if self.cells is None:
            return sureness > self.thresholds[0]
        # The last of all is that of cells that take no part.
        cuts = np.array([*self.thresholds, np.inf])
        return sureness > cuts[cell_places(self.cells, self._members(groups))]

    @property
    def never_answered(self) -> tuple[str, ...]:
        """Subgroups with cells of rows enough, in none of which anything is answered.

        No threshold keeps the limit there, so that nothing is promised of them.
        """
        if self.cells is None:
            return ()
        answered = self.cells[np.array(self.thresholds) < np.inf].any(axis=0)
        never = self.cells.any(axis=0) & ~answered
        return tuple(np.array(self.subgroups)[never].tolist())

    def labels(
        self, scores: FloatArray, groups: NDArray[Any] | None = None
    ) -> NDArray[Any]:
        """Label of each row: the first of `priority` it reaches, else the best other.

        `scores` is of shape (n, n_classes), or as the rule was made: a score s of the
        second of two classes, (n,), stands for (-s, s). So it does for `sets`.
        """
        return np.array(self.classes)[self.codes(scores, groups)]

    def codes(self, scores: FloatArray, groups: NDArray[Any] | None = None) -> IntArray:
        """Places of the `labels` among the classes, (n,)."""
        self._require("labels")
        scores = self._checked(scores, len(self.classes))
        cuts = np.broadcast_to(self._thresholds_of(groups), scores.shape)
        first = [self.classes.index(label) for label in self.priority]
        others = np.setdiff1d(np.arange(len(self.classes)), first)
        chosen = others[scores[:, others].argmax(axis=1)]
        for c in reversed(first):
            chosen[scores[:, c] >= cuts[:, c]] = c
        return chosen

    def alarms(self, scores: FloatArray, coins: FloatArray | None = None) -> BoolArray:
        """Whether each row, of a score (n,), raises an alarm."""
        self._require("alarms")
        scores = self._checked(scores, None)
        if self.smoothed_rate is not None:
            return self.p_values(scores, coins=coins) <= self.smoothed_rate
        (cut,) = self.thresholds
        return scores > cut if self.strange == "high" else scores < cut

    def p_values(
        self,
        scores: FloatArray,
        groups: NDArray[Any] | None = None,
        coins: FloatArray | None = None,
    ) -> FloatArray:
        """Rank of each score among those of the calibration rows, as a p-value.

        Parameters
        ----------
        scores : ndarray of shape (n, n_classes), or (n,) for alarms
        groups, coins
            As for `sets`.

        Returns
        -------
        ndarray of the shape of `scores`
            In (0, 1]; on average over calibration rows P(p <= e) <= e for the label
            of a row, or for an ordinary row.
        """
        if self.kind == "alarms":
            scores = self._checked(scores, None)
            plausible = -scores if self.strange == "high" else scores
        else:
            self._require("sets", "p-values")
            scores = plausible = self._checked(scores, len(self.classes))
        kept = getattr(self.calibration, "scores", None)
        if not isinstance(kept, CalibrationScores):
            raise ValueError(
                "the rule keeps no scores of calibration rows, which p-values need."
            )
        if (self.smoothed_rate is not None) != (coins is not None):
            raise ValueError(
                "give `coins`, a uniform number for each row, to a rule whose ties are "
                "smoothed, and to no other."
            )
        if self.subgroups:
            return largest_p_values(kept, plausible, self._members(groups), coins)
        if coins is not None and scores.ndim == 2:
            coins = coins[:, None]
        return kept.p_values(plausible, self._category(scores, groups), coins)

    def at(self, rate: Any) -> Rule:
        """The rule of the same calibration rows for another rate.

        What its record says of the scores stays. A rate chosen after a look at the
        data has no promise.
        """
        if self.calibration is None:
            raise ValueError(
                "the rule keeps no scores of calibration rows, which another rate "
                "needs."
            )
        made = self.calibration.rule(rate)
        own = self.guarantees[0].assumptions if self.guarantees else ()
        sentences = tuple(a for a in own if not isinstance(a, Assumption))
        promises = tuple(
            replace(promise, assumptions=(*promise.assumptions, *sentences))
            for promise in made.guarantees
        )
        if not self.subgroups and any(g.subgroup for g in self.guarantees):
            promises = tuple(
                replace(promise, scope=None, subgroup=old.subgroup)
                for promise, old in zip(promises, self.guarantees, strict=True)
            )
        record = {**self.record, **made.record}
        record.pop("promise", None)  # the wish of the other rate, in its own words
        return replace(
            made,
            guarantees=promises,
            classes=self.classes,
            crossings=self.crossings,
            record=record,
        )

    def to_json(self, *, keep_scores: bool = False) -> str:
        """The rule as JSON, which a few lines of any language apply.

        Parameters
        ----------
        keep_scores : bool, default=False
            Whether the scores of the calibration rows are kept, for p-values and
            other rates.

        Raises
        ------
        ValueError
            For ties smoothed by coins of the rows of a table, for subgroups that no
            columns say, and for `keep_scores` of a rule that has none.
        """
        return json_of_rule(self, keep_scores=keep_scores)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a rule back: it answers as the one that was written.

        Raises ValueError in one sentence where the text is no such rule.
        """
        fields, kept = fields_of_rule(text)
        rule = cls(**fields)
        if kept is None:
            return rule
        made: dict[str, Any] = {
            "scores": kept["scores"],
            "terms": Terms(**kept["terms"]),
            "smoothed": rule.smoothed_rate is not None,
        }
        calibration: Calibration
        if rule.kind == "sets":
            calibration = Coverage(
                **made,
                classes=rule.classes,
                by=rule.by,
                subgroups=rule.subgroups,
                empty=rule.empty,
                jointly=kept["jointly"],
            )
        else:
            calibration = FalseAlarms(**made, strange=rule.strange, coin=kept["coin"])
        return replace(rule, calibration=calibration)

    def _thresholds_of(self, groups: NDArray[Any] | None) -> FloatArray:
        """Threshold of each row and label, broadcast to (n, n_classes)."""
        cuts = np.array(self.thresholds)
        if self.subgroups:
            own = cuts.reshape(len(self.subgroups), -1)
            return lowest_thresholds(own, self._members(groups))
        if self.by != "group":
            return cuts
        # The last of all is that of groups without a threshold.
        return np.append(cuts, -np.inf)[self._places(groups)][:, None]

    def _category(
        self, scores: FloatArray, groups: NDArray[Any] | None
    ) -> IntArray | int:
        """Category of the calibration rows that rank each row and label."""
        if self.by == "class":
            return np.arange(scores.shape[1])
        return 0 if self.by is None else self._places(groups)[:, None]

    def _members(self, groups: NDArray[Any] | None) -> BoolArray:
        """Which subgroups hold each row."""
        if groups is None:
            raise ValueError(
                "the rule has thresholds for each subgroup: give `groups`, which of "
                "them hold each row."
            )
        members: BoolArray = np.asarray(groups, dtype=bool)
        if members.ndim != 2 or members.shape[1] != len(self.subgroups):
            raise ValueError(
                f"`groups` must say of {len(self.subgroups)} subgroups whether they "
                f"hold each row, got an array of shape {members.shape}."
            )
        return members

    def _places(self, groups: NDArray[Any] | None) -> IntArray:
        """Place of the group of each row, -1 for groups not seen."""
        if groups is None:
            raise ValueError("the rule has a threshold for each group: give `groups`.")
        return places(groups, self.groups)

    def _require(self, kind: Kind, wanted: str = "") -> None:
        if self.kind != kind:
            raise TypeError(f"a rule of kind {self.kind!r} has no {wanted or kind}.")

    def _checked(self, scores: Any, n_columns: int | None) -> FloatArray:
        """Scores as numbers of the right shape, none of them NaN."""
        values = np.asarray(scores, dtype=np.float64)
        one_for_two = n_columns == 2 and len(self.record.get("columns", ())) == 1
        if one_for_two and values.ndim == 1:
            values = np.stack([-values, values], axis=1)
        wrong = (
            values.ndim not in (1, 2)
            if n_columns is None
            else (values.ndim != 2 or values.shape[1] != n_columns)
        )
        if self.kind == "alarms":
            wrong = values.ndim != 1
        if wrong:
            columns = n_columns is not None
            wanted = f"{n_columns} columns" if columns else "one score a row"
            raise ValueError(
                f"the rule needs {wanted}, got scores of shape {values.shape}."
            )
        refuse_nan(
            values,
            "the scores of {} are NaN; rows without a score cannot be ranked.",
        )
        return values


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Coverage:
    """Sets that hold the label of a row: of all rows, of each class or each group.

    The categories of `scores` are one, the `classes`, or the groups; promises with
    confidence hold each by itself, or `jointly`. With `smoothed` ties a coin of each
    row decides, and the rate is attained on average. With `subgroups` the categories
    are these, or these crossed with the classes, as `scores_within` orders them, and
    promises with confidence hold all at once.
    """

    scores: CalibrationScores
    classes: tuple[Any, ...]
    by: Literal["class", "group"] | None = None
    subgroups: tuple[str, ...] = ()
    empty: Literal["best", "all"] = "best"
    jointly: bool = False
    smoothed: bool = False
    terms: Terms = Terms()

    @property
    def each(self) -> float | None:
        """Confidence of each promise, which may share one; None on average."""
        if self.terms.confidence is None:
            return None
        overlap = bool(self.subgroups)
        n_claims = len(self.scores.names) if self.jointly or overlap else 1
        return self.terms.each(n_claims, overlap=overlap)

    def rule(self, rate: float) -> Rule:
        """Sets that leave out the label at most at a rate.

        A row whose label has no score, -inf, is left out. Where it ranks among the r
        lowest, below the cut, it counts among the promised misses; else the promise
        assumes that there is no such row.
        """
        sizes = [len(own) for own in self.scores.sorted]
        each, together = self.each, bool(self.jointly or self.subgroups)
        ranks = [
            mean_rank(n, rate) if each is None else high_probability_rank(n, rate, each)
            for n in sizes
        ]
        n_claims = len(sizes) if together and each is not None else 1
        claims = {"claims": float(n_claims)} if n_claims > 1 else {}
        exchangeable = {
            None: Assumption.EXCHANGEABLE,
            "class": Assumption.EXCHANGEABLE_CLASS,
            "group": Assumption.EXCHANGEABLE_GROUP,
        }[self.by]
        if self.subgroups:
            exchangeable = Assumption.EXCHANGEABLE_SUBGROUP
        promises, cuts = [], []
        named = zip(sizes, ranks, self.scores.names, strict=True)
        for c, (n, rank, name) in enumerate(named):
            cuts.append(self.scores.threshold(c, rank))
            subgroup, scope = (None, name)
            if self.subgroups:
                subgroup, scope = name
            elif self.by == "group":
                subgroup, scope = group_named(name), None
            attained = self.smoothed or each is not None
            ranked = {} if self.smoothed else {"rank": float(rank)}
            counted = self.by != "class" and cuts[c] > -np.inf
            promise = self.terms.promise(
                "coverage",
                rate if attained else rank / (n + 1),
                exchangeable,
                *(() if counted else (Assumption.KNOWN_LABEL,)),
                scope=scope,
                subgroup=subgroup,
                evidence={"calibration rows": float(n), **ranked, **claims},
            )
            promises.append(promise)
        return Rule(
            kind="sets",
            thresholds=() if self.smoothed else tuple(cuts),
            guarantees=tuple(promises),
            classes=self.classes,
            by=self.by,
            groups=self.scores.names if self.by == "group" else (),
            subgroups=self.subgroups,
            empty=self.empty,
            smoothed_rate=rate if self.smoothed else None,
            calibration=self,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FalseAlarms:
    """Alarms for rows that score below ordinary ones.

    Where `strange` is "high" the `scores` are those of the rows, negated. With `coin`,
    a number drawn once from [0, 1), the rank is that of the mean or the next, so that
    the rate is attained on average; with `smoothed` ties a coin of each row decides.
    """

    scores: CalibrationScores
    strange: Literal["low", "high"] = "low"
    smoothed: bool = False
    coin: float | None = None
    terms: Terms = Terms()

    def rule(self, rate: float) -> Rule:
        """Alarms for ordinary rows at most at a rate."""
        n = len(self.scores.sorted[0])
        rank = known = self.terms.rank(n, rate)
        promised = rank / (n + 1)
        if self.smoothed or self.terms.confidence is not None:
            promised = rate
        if self.coin is not None:
            promised, missing = rate, (n + 1) * rate - rank
            # The law of the rate is the larger with the upper rank, so that a check
            # by it never calls a true promise broken more often than it may.
            upper = rank if missing <= 1e-12 * n else min(rank + 1, n)
            known, rank = upper, upper if self.coin < missing else rank
        cut = self.scores.threshold(0, rank)
        ranked = {} if self.smoothed else {"rank": float(known)}
        promise = self.terms.promise(
            "false alarm rate",
            promised,
            Assumption.EXCHANGEABLE_NORMAL,
            evidence={"calibration rows": float(n), **ranked},
        )
        return Rule(
            kind="alarms",
            thresholds=(-cut if self.strange == "high" else cut,),
            guarantees=(promise,),
            strange=self.strange,
            smoothed_rate=rate if self.smoothed else None,
            record={"rank": rank},
            calibration=self,
        )
