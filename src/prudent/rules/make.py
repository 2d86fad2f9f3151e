"""Rules of answers and of labels, and a function for each kind of rule.

Each class holds what a rule is made of; `rule(rate)` makes it, as `Coverage` and
`FalseAlarms` do for sets and alarms.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from prudent.core.assumptions import Assumption
from prudent.core.binomial import (
    fewest_answered,
    fewest_rows,
    high_probability_rank,
    most_wrong,
    upper_limit,
)
from prudent.core.guarantee import Guarantee
from prudent.core.types import BoolArray, FloatArray, IntArray
from prudent.core.validation import shown
from prudent.exceptions import InfeasibleError
from prudent.rules.boundary import error_boundary
from prudent.rules.rule import Coverage, FalseAlarms, Rule, Terms
from prudent.rules.scores import (
    EXACT,
    AnswerScores,
    CalibrationScores,
    ClassScores,
    Rounding,
)
from prudent.rules.subgroups import (
    Memberships,
    cell_name,
    cell_places,
    cells_of,
    cells_with_rows_enough,
    lowest_thresholds,
)

BOUNDARY = (
    "exact boundary over all thresholds of held-out scores (prudent, user guide, "
    "certification)"
)
SHARE = "C. J. Clopper and E. S. Pearson (1934), rows above a score of unanswered rows"
CAPACITY = (
    "binomial law of the rows within a share of the population (prudent, user guide, "
    "certification)"
)
ONE_CLASS = (
    "X. Tong, Y. Feng and J. J. Li (2018), Neyman-Pearson classification, order "
    "statistic of held-out rows of the class"
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SelectiveError:
    """Answers of which few are wrong, of the rows that are surest."""

    scores: AnswerScores
    terms: Terms

    def rule(self, rate: float, share: float | None = None) -> Rule:
        """Answer most rows of which the boundary certifies the error rate.

        A rank is admitted if its wrong answers lie under the boundary; equal scores
        are answered together or not at all. With a `share` each of the two promises
        takes half of what may fail; the share is promised where `fewest_answered` of
        the rows are answered.
        """
        rows, level = self.scores, 1 - self.terms.each()
        if share is not None:
            level = level / 2
        confidence = 1 - level
        boundary = error_boundary(rows.n_rows, rate, confidence=confidence)
        admitted = boundary.admits(np.arange(1, rows.n_rows + 1), rows.wrong[1:])
        admitted &= rows.parted
        k = int(np.flatnonzero(admitted).max(initial=-1)) + 1
        cut = float(rows.cuts[k]) if k else math.inf
        evidence = {"pointwise level": boundary.level}
        if share is None:
            return self._answering(cut, k, rate, evidence, BOUNDARY)
        proved = k >= fewest_answered(rows.n_rows, share, level)
        shared = share if proved else None
        return self._answering(cut, k, rate, evidence, BOUNDARY, shared, n_claims=2)

    def share_rule(self, share: float) -> Rule:
        """Answer a share of the rows, proved where possible; state their error rate.

        The cut is the (k + 1)-th score for k = `fewest_answered` rows, so that the
        share is proved; where no number of rows proves it, at most that share of them
        is answered. The rows strictly above the cut are independent draws given that
        score, because it depends on the rows not answered only, so that the limit of
        their error rate is exact given the cut and the confidences multiply. With the
        rows equal to the k-th score it would depend on answered ones. Where rows equal
        to the cut are left out, no share is promised.
        """
        rows = self.scores
        each = math.sqrt(self.terms.each())
        k = fewest_answered(rows.n_rows, share, 1 - each)
        proved = k <= rows.n_rows
        if not proved:
            each = self.terms.each()
            # The product may fall an ulp below the integer it stands for
            # (29 = 0.29 * 100).
            product = share * rows.n_rows * (1 + 4e-16) + 1e-12
            k = min(rows.n_rows, math.floor(product))
        cut = float(rows.cuts[k])
        answered = int(np.count_nonzero(rows.sureness[:k] > cut))
        limit = 1.0
        if answered:
            wrong = int(rows.wrong[answered])
            limit = upper_limit(wrong, answered, level=1 - each)
        shared = share if proved and answered == k else None
        n_claims = 2 if proved else 1
        return self._answering(
            cut, answered, limit, {}, SHARE, shared, n_claims=n_claims
        )

    def _answering(
        self,
        cut: float,
        answered: int,
        rate: float,
        evidence: Mapping[str, float],
        source: str,
        share: float | None = None,
        *,
        n_claims: int = 1,
    ) -> Rule:
        """The rule of a cut, its error rate and the answered share if it is proved."""
        counted = {
            "calibration rows": self.scores.n_rows,
            "answered": answered,
            "wrong": int(self.scores.wrong[answered]),
        }
        claims = {"claims": n_claims} if n_claims > 1 else {}
        promises = [
            self.terms.promise(
                "selective error rate",
                rate,
                Assumption.INDEPENDENT,
                evidence={**counted, **evidence, **claims},
                source=source,
            )
        ]
        if share is not None:
            counts = {name: n for name, n in counted.items() if name != "wrong"}
            answering = self.terms.promise(
                "answered share",
                share,
                Assumption.INDEPENDENT,
                evidence={**counts, **claims},
                source=CAPACITY,
            )
            promises.append(answering)
        return Rule(
            kind="answers",
            thresholds=(cut,),
            guarantees=tuple(promises) if answered else (),
            record={"answered": answered, "wrong": counted["wrong"]},
            calibration=self,
        )


def unproved_share(rule: Rule, share: float, *, alone: bool) -> str | None:
    """Why a rule of answers does not promise the share asked for; None if it does.

    The share was asked for `alone` or beside an error rate. One of 1 alone needs no
    promise, because every row is answered.
    """
    quantities = {promise.quantity for promise in rule.guarantees}
    if "answered share" in quantities or (alone and share == 1):
        return None
    if share == 1:
        return "no number of held-out rows proves a share of 1"
    made, answered = rule.calibration, int(rule.record["answered"])
    assert isinstance(made, SelectiveError)
    n, confidence = made.scores.n_rows, made.terms.each()
    each = math.sqrt(confidence) if alone else (1 + confidence) / 2
    needed = fewest_answered(n, share, 1 - each)
    if needed > n:
        rows = fewest_rows(1 - share, each)
        return f"{n} held-out rows cannot prove it, {rows} are needed"
    if answered >= needed or alone:
        return "scores equal to the cut are left out"
    return f"{answered} of {n} held-out rows are answered, {needed} would prove it"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CellErrors:
    """Answers of which few are wrong in every subgroup, by a threshold for each cell.

    Cells are disjoint, so that each of the J that take part may use the J-th root of
    the confidence; the error rate of a subgroup, and that of all rows, is a mean of
    those of its cells. Cells of too few rows get no answers.
    """

    scores: tuple[AnswerScores, ...]  # of each cell
    cells: BoolArray  # (n_cells, n_subgroups)
    subgroups: tuple[str, ...]
    terms: Terms

    @classmethod
    def from_answers(
        cls,
        sureness: FloatArray,
        wrong: BoolArray,
        memberships: Memberships,
        terms: Terms,
        rounding: Rounding = EXACT,
    ) -> CellErrors:
        """Held-out rows by how sure their answers are (n,), and which are wrong."""
        cells = cells_of(memberships.members)
        places = cell_places(cells, memberships.members)
        scores = tuple(
            AnswerScores.from_answers(
                sureness[places == place], wrong[places == place], rounding
            )
            for place in range(len(cells))
        )
        return cls(scores=scores, cells=cells, subgroups=memberships.names, terms=terms)

    def rule(self, rate: float) -> Rule:
        """Answer in each cell most rows of which a boundary certifies the rate."""
        counts = np.array([own.n_rows for own in self.scores], dtype=np.intp)
        kept = cells_with_rows_enough(counts, rate, self.terms.each())
        each = self.terms.each(max(int(kept.sum()), 1))
        terms = Terms(confidence=each)
        made = [
            SelectiveError(scores=own, terms=terms).rule(rate)
            for own, takes_part in zip(self.scores, kept, strict=True)
            if takes_part
        ]
        cells = self.cells[kept]
        counted = np.array(
            [
                (n, own.record["answered"], own.record["wrong"])
                for n, own in zip(counts[kept].tolist(), made, strict=True)
            ],
            dtype=np.intp,
        ).reshape(-1, 3)
        # All rows, the subgroups, and the cells that are no subgroup.
        parts: dict[str | None, BoolArray] = {None: np.ones(len(cells), dtype=bool)}
        for g, name in enumerate(self.subgroups):
            parts[name] = cells[:, g]
        for place, cell in enumerate(cells):
            only = np.arange(len(cells)) == place
            parts.setdefault(cell_name(cell, self.subgroups), only)
        promises = []
        for subgroup, part in parts.items():
            n_rows, answered, wrong = counted[part].sum(axis=0).tolist()
            if not answered:
                continue
            promise = self.terms.promise(
                "selective error rate",
                rate,
                Assumption.INDEPENDENT,
                subgroup=subgroup,
                evidence={
                    "calibration rows": n_rows,
                    "answered": answered,
                    "wrong": wrong,
                    "claims": len(cells),
                },
                source=BOUNDARY,
            )
            promises.append(promise)
        _, n_answered, n_wrong = counted.sum(axis=0).tolist()
        return Rule(
            kind="answers",
            thresholds=tuple(own.thresholds[0] for own in made),
            guarantees=tuple(promises),
            subgroups=self.subgroups,
            cells=cells,
            record={"answered": n_answered, "wrong": n_wrong},
            calibration=self,
        )

    def too_small(self, rate: float) -> dict[str, tuple[int, int]]:
        """Cells that take no part: their rows, and how many they would need.

        Subgroups of which no row is held out have no cell, and take no part either.
        """
        counts = np.array([own.n_rows for own in self.scores], dtype=np.intp)
        together = self.terms.each()
        kept = cells_with_rows_enough(counts, rate, together)
        needed = fewest_rows(rate, together ** (1 / (int(kept.sum()) + 1)))
        small = {
            cell_name(cell, self.subgroups): (n, needed)
            for cell, n, takes_part in zip(
                self.cells, counts.tolist(), kept, strict=True
            )
            if not takes_part
        }
        lacking = np.flatnonzero(~self.cells.any(axis=0))
        return small | {self.subgroups[g]: (0, needed) for g in lacking}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClassErrors:
    """Classes that are missed at most at a limit each, all of them at once.

    Classes have rows of their own, so that each of m limits may use the m-th root of
    the confidence. Without `in_sets` a row gets the first class, in the order of the
    limits, whose threshold it reaches; rows that one class takes are lost to later
    ones and count as the lowest scores there. With `flagged_share` one class is
    limited, and at most that share of the rows gets its label: each of the two
    promises takes half of what may fail. With `memberships` each limit holds in each
    subgroup: a row is cut at the lowest threshold of those that hold it, which misses
    no more in any of them.
    """

    scores: ClassScores
    in_sets: bool = False
    flagged_share: float | None = None
    memberships: Memberships | None = None
    terms: Terms
    setting: str = ""  # of an estimator that may abstain, which holds the limits

    def rule(self, rate: Mapping[Any, float]) -> Rule:
        """Labels, or sets, that keep the limit of each class named.

        Raises InfeasibleError where labels cannot keep a limit; in sets a class of too
        few rows is never ruled out.
        """
        classes, rows = tuple(self.scores.classes.tolist()), self.scores
        if not isinstance(rate, Mapping) or not set(rate) <= set(classes):
            raise ValueError(
                "the limits of a rule of labels are given by class, such as "
                f"{{{classes[-1]!r}: 0.1}} where the classes are "
                f"{', '.join(map(repr, classes))}; got {shown(rate)}."
            )
        inside = Memberships(np.ones((len(rows.codes), 1), dtype=bool), ("",))
        if self.memberships is not None:
            inside = self.memberships
        n_claims = max(len(rate), 1) * len(inside.names)
        each = self.terms.each(n_claims, overlap=inside.overlap)
        if self.flagged_share is not None:
            each = (1 + each) / 2
        taken = np.zeros(len(rows.codes), dtype=bool)
        thresholds = np.full((len(inside.names), len(classes)), -np.inf)
        promises = []
        for label, limit in rate.items():
            c = classes.index(label)
            for g, name in enumerate(inside.names):
                subgroup = name or None
                of_class = (rows.codes == c) & inside.members[:, g]
                own = np.where(taken[of_class], -np.inf, rows.scores[of_class, c])
                rank = high_probability_rank(len(own), limit, each)
                cut = CalibrationScores.from_rows(own).threshold(0, rank)
                thresholds[g, c] = rows.rounding.lowered(cut)
                if not self.in_sets and thresholds[g, c] == -math.inf:
                    lost = taken[of_class]
                    raise self._no_cut(label, subgroup, limit, each, rank, lost)
                promise = self.terms.promise(
                    "coverage" if self.in_sets else "class error rate",
                    limit,
                    Assumption.INDEPENDENT,
                    scope=label,
                    subgroup=subgroup,
                    evidence={
                        "calibration rows": len(own),
                        "rank": rank,
                        "claims": n_claims + (self.flagged_share is not None),
                        "classes": len(classes),
                    },
                    source=ONE_CLASS,
                )
                promises.append(promise)
            if not self.in_sets:
                cuts = lowest_thresholds(thresholds[:, [c]], inside.members)[:, 0]
                taken |= rows.scores[:, c] >= cuts
        n_flagged = int(taken.sum())
        if self.flagged_share is not None:
            most = most_wrong(len(taken), self.flagged_share, 1 - each)
            if n_flagged <= most:
                promises.append(self._capacity(next(iter(rate)), n_flagged))
        return Rule(
            kind="sets" if self.in_sets else "labels",
            thresholds=tuple(thresholds.ravel().tolist()),
            guarantees=tuple(promises),
            classes=classes,
            by="class" if self.in_sets else None,
            subgroups=() if self.memberships is None else inside.names,
            priority=tuple(rate),
            empty="all" if self.in_sets else "best",
            record={"limits": dict(rate), "flagged": n_flagged},
            calibration=self,
        )

    def _capacity(self, label: Any, n_flagged: int) -> Guarantee:
        """The promise that few enough rows get the label of the limited class."""
        assert self.flagged_share is not None
        return self.terms.promise(
            "flagged share",
            self.flagged_share,
            Assumption.INDEPENDENT,
            scope=label,
            evidence={
                "calibration rows": len(self.scores.codes),
                "flagged": n_flagged,
                "claims": 2,
            },
            source=CAPACITY,
        )

    def _no_cut(
        self,
        label: Any,
        subgroup: str | None,
        limit: float,
        confidence: float,
        rank: int,
        lost: BoolArray,
    ) -> InfeasibleError:
        """Why no cut keeps a limit: too few rows, or earlier classes take too many.

        `lost` says which rows of the class, and subgroup, these take.
        """
        n_rows, n_lost = len(lost), int(lost.sum())
        named = shown(label) if subgroup is None else f"{shown(label)} with {subgroup}"
        if rank:
            where = f" in `{self.setting}`" if self.setting else ""
            also = " or change the order"
            if self.setting:
                also = ", change the order, or set abstain=True"
            return InfeasibleError(
                f"{n_lost} of {n_rows} held-out rows of class {named} are taken by the "
                f"classes before it{where}, at most {rank - 1} may be; raise the "
                f"limits of those classes{also}."
            )
        exact = upper_limit(n_lost, n_rows, level=1 - confidence) if n_rows else 1.0
        # Rounded up, so that the rows do carry it.
        least = Context(prec=3, rounding=ROUND_CEILING).plus(Decimal(f"{exact:.13g}"))
        why = f", and {fewest_rows(limit, confidence)} rows are needed for {limit:g}"
        if n_lost:
            why = f", as the classes before it take {n_lost} of the rows"
        return InfeasibleError(
            f"class {named} has {n_rows} held-out rows, of which no rank "
            f"keeps a class error <= {limit:g} with confidence "
            f"{self.terms.confidence:g}; the smallest possible limit is {least:g}{why}."
        )


def class_scores_of(
    scores: Any,
    labels: NDArray[Any],
    classes: NDArray[Any],
    rounding: Rounding = EXACT,
) -> ClassScores:
    """Scores of rows with the place of each label; a label that is no class has -1."""
    known = labels[:, None] == classes
    codes = np.where(known.any(axis=1), known.argmax(axis=1), -1)
    return ClassScores(np.asarray(scores, dtype=np.float64), codes, classes, rounding)


def coverage_rule(
    own: FloatArray,
    category: IntArray | int = 0,
    *,
    rate: float,
    classes: Sequence[Any],
    by: Literal["class", "group"] | None = None,
    groups: Sequence[Any] = (),
    confidence: float | None = None,
    smoothed: bool = False,
    tolerance: float = 0.0,
) -> Rule:
    """Sets that leave out the label of a new row at most at a rate.

    `own` (n,) are scores of calibration rows under their own labels, `category` (n,)
    the place of each row's class, or of its group among the sorted `groups`.
    """
    names = {None: (None,), "class": tuple(classes), "group": tuple(groups)}[by]
    scores = CalibrationScores.from_rows(own, category, names, tolerance)
    terms = Terms(confidence=confidence, frozen=True)
    coverage = Coverage(
        scores=scores,
        classes=tuple(classes),
        by=by,
        smoothed=smoothed,
        terms=terms,
    )
    return coverage.rule(rate)


def selective_rule(
    sureness: FloatArray, wrong: BoolArray, *, rate: float, confidence: float = 0.95
) -> Rule:
    """Answers to the surest rows, of which at most a rate is wrong.

    `sureness` (n,) says how sure the answer to each calibration row is, `wrong` (n,)
    which answers are wrong.
    """
    terms = Terms(confidence=confidence, frozen=True)
    answers = AnswerScores.from_answers(sureness, np.asarray(wrong, dtype=bool))
    return SelectiveError(scores=answers, terms=terms).rule(rate)


def class_error_rule(
    scores: FloatArray,
    codes: IntArray,
    *,
    limits: Mapping[Any, float],
    confidence: float = 0.95,
    classes: Sequence[Any] | None = None,
) -> Rule:
    """One label a row, such that each class of `limits` is missed rarely enough.

    `scores` (n, n_classes) of calibration rows, `codes` (n,) the places of their
    labels among the `classes` (0, 1, ... by default); all limits hold at once.
    """
    return _limited(scores, codes, limits, confidence, classes, in_sets=False)


def limits_rule(
    scores: FloatArray,
    codes: IntArray,
    *,
    limits: Mapping[Any, float],
    confidence: float = 0.95,
    classes: Sequence[Any] | None = None,
) -> Rule:
    """Sets that leave out each class of `limits` rarely; see `class_error_rule`."""
    return _limited(scores, codes, limits, confidence, classes, in_sets=True)


def false_alarm_rule(
    scores: FloatArray,
    *,
    rate: float,
    confidence: float | None = None,
    strange: Literal["low", "high"] = "low",
) -> Rule:
    """Alarms, of which ordinary rows like those of `scores` (n,) raise few."""
    plausible = -scores if strange == "high" else scores
    alarms = FalseAlarms(
        scores=CalibrationScores.from_rows(plausible),
        strange=strange,
        terms=Terms(confidence=confidence, frozen=True),
    )
    return alarms.rule(rate)


def _limited(
    scores: FloatArray,
    codes: IntArray,
    limits: Mapping[Any, float],
    confidence: float,
    classes: Sequence[Any] | None,
    *,
    in_sets: bool,
) -> Rule:
    names = np.arange(scores.shape[1]) if classes is None else np.asarray(classes)
    errors = ClassErrors(
        scores=ClassScores(scores, codes, names),
        in_sets=in_sets,
        terms=Terms(confidence=confidence, frozen=True),
    )
    return errors.rule(limits)
