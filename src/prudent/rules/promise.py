"""A promise from the scores of any model: of a net, an R model, a vendor, a judge."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prudent.core.binomial import check_fraction, fewest_rows, most_wrong
from prudent.core.guarantee import Guarantee
from prudent.core.rows import drawn_key, log_evidence, one_row_per_group
from prudent.core.types import BoolArray, FloatArray, IntArray
from prudent.core.validation import (
    check_group_cells,
    refuse_missing_labels,
    refuse_twice,
    shown,
)
from prudent.exceptions import InfeasibleError
from prudent.rules.boundary import error_boundary
from prudent.rules.make import CellErrors, ClassErrors, SelectiveError, unproved_share
from prudent.rules.parts import (
    Cells,
    cells_in,
    crossings_of,
    factors_of,
    members_of,
    names_of,
)
from prudent.rules.rule import Coverage, FalseAlarms, Rule, Terms
from prudent.rules.scores import AnswerScores, CalibrationScores, ClassScores
from prudent.rules.subgroups import Memberships, scores_within
from prudent.rules.wish import Wish, parse_promise

#: Chance of calling independent draws a table that was doubled.
CHANCE = 1e-5
#: Scores so near to an integer tie by rounding: saturated probabilities do.
NEAR_INTEGER = 1e-4


def promise(
    scores: ArrayLike,
    y: ArrayLike | None,
    promise: str | Guarantee | Sequence[Guarantee] | Sequence[str],
    *,
    classes: Sequence[Any] | None = None,
    predicted: ArrayLike | None = None,
    confidence: float | None = None,
    by: ArrayLike | Mapping[str, ArrayLike] | None = None,
    groups: ArrayLike | None = None,
    ties: Literal["conservative", "smoothed"] = "conservative",
    ids: ArrayLike | None = None,
    strange: Literal["low", "high"] = "high",
    ordinary: Any = None,
    unseen: str = "",
    allow_rare: bool = False,
    random_state: Any = 0,
) -> Any:
    """A rule that keeps a promise, from scores that any model gave to labelled rows.

    The rows must be new to whatever made the scores: kept from training, tuning,
    prompts and the choice of a model. Choose the rate before you look at them.

    Parameters
    ----------
    scores : array-like of shape (n_rows, n_classes) or (n_rows,)
        Scores of each class, high where it is plausible; with `predicted` how sure
        that label is; with two `classes` and one column, the score of the second; or
        how strange (or ordinary) each row looks.
    y : array-like of shape (n_rows,) or None
        Truth. None where alarms are promised and all rows are ordinary.
    promise : str, Guarantee or sequence of Guarantee, or a list of str
        "coverage >= 90%", "... in every class", "... in every group" (of `by`);
        "error <= 5%" of the rows answered, also "... and answered >= 96%", or that
        alone; "missed LABEL <= 2%", also "... and flagged <= 4%"; "false alarm <= 5%".
        A list of m sentences makes m rules that keep their promises all at once, so
        that one may be chosen after a look at them.
    classes : sequence, default=None
        Labels of the columns; None: the sorted labels of `y`.
    predicted : array-like of shape (n_rows,), default=None
        Labels that the model gave, for promises about errors.
    confidence : float, default=None
        Probability over these rows that all that is promised holds, in (0, 1). None:
        coverage and alarms on average over draws of the rows, errors with 0.95.
    by : array-like of shape (n_rows,), data frame or mapping, default=None
        What has a promise of its own: one column, with "in every group"; or a table of
        columns of n_rows, which the promise names as in "in every sex and age:30,45",
        "in every class and sex*site". These parts may overlap.
    groups : array-like of shape (n_rows,), default=None
        Rows that belong together: one random row of each counts.
    ties : {"conservative", "smoothed"}, default="conservative"
        Equal scores count in full, or by a coin of each row's id.
    ids : array-like of shape (n_rows,), default=None
        Names of the rows. Rows of one name are an error unless `groups` say which
        rows belong together. Without names and groups, rows of equal scores and truth
        are an error where chance is not why: see `repeated_rows`.
    strange : {"low", "high"}, default="high"
        Which scores raise alarms.
    ordinary : object, default=None
        Label in `y` of the ordinary rows; None: all given rows are ordinary.
    unseen : str, default=""
        Why these rows are new to what made the scores; kept in the rule.
    allow_rare : bool, default=False
        Whether a class with too few rows is put into every set instead of refused.
    random_state : int, RandomState or None, default=0
        For the row of each group, and the key of the coins.

    Returns
    -------
    Rule, or tuple of Rule for a list of sentences
        Frozen; it holds nothing of the model, and `to_json` writes it for any
        language.

    Raises
    ------
    ValueError
        If shapes disagree, a score is NaN, a label has no column, all labels or all
        scores are equal, or rows are repeated.
    InfeasibleError
        If no rule keeps the promise on so few rows, or on such answers.

    Notes
    -----
    Formulas and proofs: user guide, conformal prediction and certification. All rules
    rest on the rank of a new score among those of these rows.

    Rules of the same rows depend on each other. Of m with a confidence 1 - d each is
    made at 1 - d / m, so that all hold at once with 1 - d (Bonferroni), also the one
    that is chosen. Promises on average have no confidence to share: each is true by
    itself, none of one that was chosen because of how it turned out.

    Examples
    --------
    >>> import numpy as np
    >>> import prudent
    >>> random = np.random.default_rng(0)
    >>> ill = random.random(400) < 0.4
    >>> score = random.normal(size=400) + 2 * ill  # by whatever model
    >>> rule = prudent.promise(
    ...     score, ill, "missed True <= 5%", classes=[False, True], unseen="May"
    ... )
    >>> print(rule.guarantees[0])
    The class error rate of class True is at most 0.05 with confidence 0.95, assuming
    future rows are independent draws from the population of the calibration rows and
    the calibration rows were not used to fit, choose or tune the model.
    """
    several = isinstance(promise, list | tuple) and all(
        isinstance(wish, str) for wish in promise
    )
    wishes: Sequence[Any] = promise if several else (promise,)  # type: ignore[assignment]
    table = ScoreTable(
        scores,
        y,
        classes=classes,
        predicted=predicted,
        by=by,
        groups=groups,
        ties=ties,
        ids=ids,
        strange=strange,
        ordinary=ordinary,
        allow_rare=allow_rare,
        random_state=random_state,
    )
    rules = table.rules(wishes, confidence=confidence, unseen=unseen)
    return rules if several else rules[0]


class ScoreTable:
    """Scores of labelled rows, and the rules that keep promises about them.

    The settings are those of `promise`. `rows` are those that count: one of each group.
    """

    def __init__(
        self,
        scores: ArrayLike,
        y: ArrayLike | None,
        *,
        classes: Sequence[Any] | None = None,
        predicted: ArrayLike | None = None,
        by: Any = None,
        groups: ArrayLike | None = None,
        ties: str = "conservative",
        ids: ArrayLike | None = None,
        strange: Literal["low", "high"] = "high",
        ordinary: Any = None,
        allow_rare: bool = False,
        random_state: Any = 0,
    ) -> None:
        if ties not in ("conservative", "smoothed"):
            raise ValueError(
                f"`ties` must be 'conservative' or 'smoothed', got {ties!r}."
            )
        if strange not in ("low", "high"):
            raise ValueError(f"`strange` must be 'low' or 'high', got {strange!r}.")
        self.smoothed, self.strange = ties == "smoothed", strange
        self.ordinary, self.allow_rare = ordinary, allow_rare
        self.scores = _check_scores(scores)
        self.truth = self._column("y", y)
        if self.truth is not None:
            refuse_missing_labels("`y`", self.truth)
        labelled = self._column("predicted", predicted)
        self.wrong = None
        if labelled is not None and self.truth is not None:
            self.wrong = self.truth != labelled
        self.labels = None if classes is None else list(classes)
        if self.labels is not None:
            refuse_twice("classes", self.labels)
        if classes is None and labelled is None and self.truth is not None:
            self.labels = np.unique(self.truth).tolist()
        # One column of groups, or a table of columns by name.
        parted = isinstance(by, Mapping) or hasattr(by, "columns")
        self.by = None if parted else self._column("by", by)
        self.columns = by if parted else None
        self.random = _random(random_state)
        self.grouped, self.rows = groups is not None, np.arange(len(self.scores))
        together, named = self._column("groups", groups), self._column("ids", ids)
        if together is not None:
            check_group_cells(together)
            self.rows = np.sort(one_row_per_group(together, self.random))
        else:
            _refuse_repeats(self.scores, self.truth, named)

    def rules(
        self,
        promises: Sequence[Any],
        *,
        confidence: float | None = None,
        unseen: str = "",
        among: int = 1,
    ) -> tuple[Rule, ...]:
        """A rule for each promise, all true at once; `among` counts other rules, too.

        `unseen` says why the rows are new to what made the scores.
        """
        if confidence is not None:
            check_fraction("confidence", confidence)
        wishes = self._wishes(promises, confidence)
        n_certain = max(sum(wish.confidence is not None for wish in wishes), among)
        drawn = drawn_key(self.random, self.scores)
        key = {"id": "id", "key": drawn.hex()} if self.smoothed else {}
        rules: list[Rule] = []
        failed: list[InfeasibleError] = []
        for wish in wishes:
            terms = Terms(
                confidence=wish.confidence,
                rules=1 if wish.confidence is None else n_certain,
                frozen=True,
                grouped=self.grouped,
            )
            try:
                rule = self._rule(wish, terms)
            except InfeasibleError as error:
                failed.append(error)
                continue
            one_column = self.scores.ndim == 1
            own = {
                "promise": wish.text,
                "columns": ["score"] if one_column else list(map(str, rule.classes)),
                **({"group": "group"} if wish.by_group else {}),
                **({"unseen": unseen} if unseen else {}),
                **(key if rule.smoothed_rate is not None else {}),
                **({"among": terms.rules} if terms.rules > 1 else {}),
            }
            rules.append(replace(rule, record={**rule.record, **own}))
        if failed and rules:
            kept = " and ".join(repr(rule.record["promise"]) for rule in rules)
            raise InfeasibleError(
                f"{failed[0]} {kept} can be had: leave the others out, and count them, "
                f"for they were tried (among={n_certain})."
            ) from failed[0]
        if failed:
            raise failed[0]
        return tuple(rules)

    def _wishes(self, promises: Sequence[Any], confidence: float | None) -> list[Wish]:
        """What is asked for; ValueError where groups have no promise."""
        if not promises:
            raise ValueError("`promise` is an empty list: say what is to be promised.")
        with_groups, wishes = self.by is not None, []
        for promise in promises:
            wish = parse_promise(
                promise, self.labels, confidence=confidence, with_groups=with_groups
            )
            if wish is None:
                raise ValueError("`promise` is 'none': say what is to be promised.")
            wishes.append(wish)
        if any(wish.by_group for wish in wishes) != with_groups:
            raise ValueError(
                '`by` and the words "in every group" belong together: give both or '
                "neither."
            )
        if any(wish.subgroups for wish in wishes) != (self.columns is not None):
            raise ValueError(
                '`by` as a table of columns and the words "in every COLUMN" belong '
                "together: give both or neither."
            )
        return wishes

    def _rule(self, wish: Wish, terms: Terms) -> Rule:
        """The rule that keeps a promise."""
        if wish.kind == "false alarm":
            return self._alarms(wish, terms)
        if self.truth is None:
            raise ValueError(f"{wish.text!r} needs `y`, the truth of each row.")
        if not wish.subgroups:
            return self._labelled(wish, terms, None)
        crossings = crossings_of(map(factors_of, wish.subgroups), self._cells)
        inside = Memberships(members_of(crossings, self._cells), names_of(crossings))
        rule = self._labelled(wish, terms, inside.taken(self.rows))
        return replace(rule, crossings=crossings)

    def _column(self, name: str, values: ArrayLike | None) -> NDArray[Any] | None:
        """One value for each row; None of a column that is not given."""
        if values is None:
            return None
        column, n = np.asarray(values), len(self.scores)
        if column.shape != (n,):
            raise ValueError(
                f"`{name}` must have one value for each of the {n} rows, got an array "
                f"of shape {column.shape}."
            )
        return column

    def _cells(self, name: str | int) -> Cells:
        """A column that parts the rows."""
        assert self.columns is not None
        if name not in self.columns:
            known = ", ".join(map(str, getattr(self.columns, "columns", self.columns)))
            raise ValueError(f"subgroups: no column {name!r}; there are {known}.")
        values, missing = cells_in(self.columns[name])
        self._column(f"by[{name!r}]", values)
        return values, missing

    def _labelled(self, wish: Wish, terms: Terms, inside: Memberships | None) -> Rule:
        """The rule of answers, labels or sets, perhaps in every subgroup."""
        if self.wrong is not None:
            sure = self.scores if self.scores.ndim == 1 else self.scores.max(axis=1)
            wrong = self.wrong[self.rows]
            return _answers(sure[self.rows], wrong, wish, terms, inside)
        assert self.labels is not None
        assert self.truth is not None
        scores = scores_of_classes(self.scores, self.labels)[self.rows]
        codes = _codes(self.truth, self.labels)[self.rows]
        if wish.kind in ("error", "answered"):
            wrong = scores.argmax(axis=1) != codes
            rule = _answers(scores.max(axis=1), wrong, wish, terms, inside)
            return replace(rule, classes=tuple(self.labels))
        if wish.kind == "missed":
            limits = {g.scope: g.bound for g in wish.guarantees}
            errors = ClassErrors(
                scores=ClassScores(scores, codes, np.asarray(self.labels)),
                in_sets=len(limits) == len(self.labels),
                flagged_share=wish.share,
                memberships=inside,
                terms=terms,
            )
            return _within_share(errors.rule(limits), wish, terms)
        own = np.take_along_axis(scores, codes[:, None], axis=1)[:, 0]
        return self._sets(own, codes, wish, terms, inside)

    def _alarms(self, wish: Wish, terms: Terms) -> Rule:
        """Alarms, of ordinary rows only as many as promised."""
        rows = self.rows
        if self.truth is not None and self.ordinary is not None:
            rows = rows[self.truth[rows] == self.ordinary]
        scores = self.scores[rows]
        if scores.ndim != 1:
            raise ValueError(
                f"{wish.text!r} needs one score a row, got an array of shape "
                f"{scores.shape}."
            )
        rate = wish.allowed
        if terms.rank(len(scores), rate) == 0 and not self.smoothed:
            each = None if terms.confidence is None else terms.each()
            needed = fewest_rows(rate, each)
            raise InfeasibleError(
                f"{wish.text!r} needs {needed} ordinary rows, there are {len(scores)}."
            )
        alarms = FalseAlarms(
            scores=CalibrationScores.from_rows(
                -scores if self.strange == "high" else scores
            ),
            strange=self.strange,
            smoothed=self.smoothed,
            terms=terms,
        )
        return alarms.rule(rate)

    def _sets(
        self,
        own: FloatArray,
        codes: IntArray,
        wish: Wish,
        terms: Terms,
        inside: Memberships | None,
    ) -> Rule:
        """Sets that leave few labels out: of all rows, or of each part of them."""
        assert self.labels is not None
        by: Literal["class", "group"] | None = None
        category: IntArray = np.zeros_like(codes)
        names: tuple[Any, ...] = (None,)
        if wish.by_group:
            assert self.by is not None
            values, category = np.unique(self.by[self.rows], return_inverse=True)
            by, names = "group", tuple(values.tolist())
        elif wish.by_class:
            by, category, names = "class", codes, tuple(self.labels)
        kept = CalibrationScores.from_rows(own, category, names)
        if inside is not None:
            labels = codes if by == "class" else None
            kept = scores_within(own, inside, labels, self.labels)
        coverage = Coverage(
            scores=kept,
            classes=tuple(self.labels),
            by=by,
            subgroups=() if inside is None else inside.names,
            empty="all" if self.scores.ndim == 1 else "best",
            jointly=True,
            smoothed=self.smoothed,
            terms=terms,
        )
        if not self.allow_rare:
            _refuse_rare(coverage, wish)
        return coverage.rule(wish.allowed)


def _random(random_state: Any) -> np.random.RandomState:
    """What the draws come from; ValueError of what seeds none."""
    if isinstance(random_state, np.random.RandomState):
        return random_state
    seeds = isinstance(random_state, Integral) and 0 <= int(random_state) < 2**32
    if random_state is not None and not seeds:
        raise ValueError(
            "`random_state` must be None, a whole number from 0 to 4294967295 or a "
            f"RandomState, got {shown(random_state)}."
        )
    return np.random.RandomState(random_state)


def _check_scores(scores: ArrayLike) -> FloatArray:
    """Scores (n,) or (n, n_classes), none of them NaN and not all of them equal."""
    try:
        values = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            "`scores` must be an array of numbers, one for each row or a row of one "
            f"for each class, got {type(scores).__name__}."
        ) from None
    if values.ndim not in (1, 2) or not len(values):
        raise ValueError(
            "`scores` must have a row for each row of the table, and one column or one "
            f"for each class, got an array of shape {values.shape}."
        )
    lacking = np.flatnonzero(np.isnan(values).reshape(len(values), -1).any(axis=1))
    if len(lacking):
        others = f", and {len(lacking) - 1} more" if len(lacking) > 1 else ""
        raise ValueError(
            f"row {int(lacking[0])} has no score (NaN){others}: leave such rows out; "
            "the promise is then about rows with scores."
        )
    if (values == values.flat[0]).all():
        raise ValueError(
            f"the score is {float(values.flat[0]):g} in every row, so that it says "
            "nothing: use certify."
        )
    return values


def scores_of_classes(values: FloatArray, labels: Sequence[Any]) -> FloatArray:
    """Scores (n, n_classes); a score s of the second of two is taken as (-s, s)."""
    if values.ndim == 1 and len(labels) == 2:
        return np.stack([-values, values], axis=1)
    if values.ndim == 1 or values.shape[1] != len(labels):
        columns = 1 if values.ndim == 1 else values.shape[1]
        raise ValueError(
            f"{columns} column(s) of scores for {len(labels)} classes "
            f"({', '.join(map(str, labels[:5]))}): give one for each class, in the "
            "order of `classes`."
        )
    return values


def _codes(truth: NDArray[Any], labels: Sequence[Any]) -> IntArray:
    """Place of each label among the classes."""
    place = {label: code for code, label in enumerate(labels)}
    seen, inverse, counts = np.unique(truth, return_inverse=True, return_counts=True)
    for label, count in zip(seen.tolist(), counts.tolist(), strict=True):
        if label not in place:
            known = ", ".join(map(str, labels[:5]))
            raise ValueError(
                f"truth {label!r} ({count} rows) has no score column; there are "
                f"{known}."
            )
    if len(seen) == 1:
        raise ValueError(f"all {len(truth)} rows are {seen.tolist()[0]!r}.")
    codes: IntArray = np.array([place[label] for label in seen.tolist()])[inverse]
    return codes


def _refuse_repeats(
    scores: FloatArray, truth: NDArray[Any] | None, ids: NDArray[Any] | None
) -> None:
    repeated = repeated_rows(scores, truth, ids)
    if repeated is not None:
        n_repeated, row, again = repeated
        hint = ""
        if ids is None:
            hint = "; `ids` tell different rows apart, which trees may score alike"
        raise ValueError(
            f"{n_repeated} rows repeat an earlier one (rows {row} and {again}): remove "
            f"them, or give `groups`{hint}."
        )


def repeated_rows(
    scores: FloatArray, truth: NDArray[Any] | None, ids: NDArray[Any] | None = None
) -> tuple[int, int, int] | None:
    """Number of rows that repeat an earlier one, and the first such pair; or None.

    Rows of one name are the same row. Without names, rows of equal scores (n,) or
    (n, n_columns) and truth (n,) are, where chance is not why. Scores of few values
    tie by themselves, so that only two signs count:

    - all rows together repeat as independent draws practically never do, whatever
      their law (`log_evidence`): a table that was doubled;
    - few do, but more than one, always in pairs of one truth, and these have scores of
      more digits than scales have. Trees and step functions give such scores too, but
      then mostly rows of different truth, or three and more, tie as well.

    Examples
    --------
    >>> import numpy as np
    >>> repeated_rows(np.array([0.25, 0.5, 0.25]), None, np.array(["a", "b", "a"]))
    (1, 0, 2)
    """
    by_score, n = None, len(scores)
    if ids is not None:
        _, place, count = np.unique(ids, return_inverse=True, return_counts=True)
    else:
        _, by_score = np.unique(scores, axis=0, return_inverse=True)
        by_score = by_score.reshape(n)
        codes = np.zeros(n, dtype=np.intp)
        if truth is not None:
            codes = np.unique(truth, return_inverse=True)[1]
        _, place, count = np.unique(
            np.column_stack([by_score, codes]),
            axis=0,
            return_inverse=True,
            return_counts=True,
        )
    place = place.reshape(n)
    several: BoolArray = np.asarray(count[place] > 1)
    if not several.any():
        return None
    if by_score is not None and log_evidence(count) <= -math.log(CHANCE):
        mixed = len(count) > by_score.max() + 1
        many_digits = _has_many_digits(scores.reshape(n, -1)[several])
        few = 1 < np.count_nonzero(count > 1) <= len(count) / 2
        if mixed or not few or count.max() > 2 or not many_digits.all():
            return None
    first = int(np.flatnonzero(several)[0])
    again = int(np.flatnonzero(place == place[first])[1])
    return int((count - 1).sum()), first, again


def _has_many_digits(scores: FloatArray) -> BoolArray:
    """Rows (n, d) with a score of more than six significant digits, near no integer.

    Next to an integer, such as a probability of one, rounding makes ties.
    """
    short = np.array([float(f"{score:.6g}") for score in scores.flat])
    with np.errstate(invalid="ignore"):
        is_long = np.abs(scores - np.rint(scores)) > NEAR_INTEGER
    is_long &= short.reshape(scores.shape) != scores
    return np.asarray(is_long.any(axis=1))


def _answers(
    sureness: FloatArray,
    wrong: NDArray[Any],
    wish: Wish,
    terms: Terms,
    inside: Memberships | None,
) -> Rule:
    """Answers of which few are wrong; InfeasibleError that says why there are none."""
    if wish.kind not in ("error", "answered"):
        raise ValueError(
            f"{wish.text!r} needs a score of each class; how sure one label is keeps "
            "promises about errors."
        )
    rate, n = wish.allowed, len(sureness)
    if inside is not None:
        return _answers_in_cells(sureness, wrong, wish, terms, inside)
    answers = AnswerScores.from_answers(sureness, wrong)
    made = SelectiveError(scores=answers, terms=terms)
    confidence, alone = terms.each(), wish.kind == "answered"
    if alone:
        assert wish.share is not None
        rule = made.share_rule(wish.share)
    else:
        rule = made.rule(rate, wish.share)
    if wish.share is not None and (rule.guarantees or alone):
        lacks = unproved_share(rule, wish.share, alone=alone)
        if lacks is not None:
            raise InfeasibleError(f"answered_share={wish.share:g}: {lacks}.")
    if rule.guarantees:
        return rule
    if wish.share is not None:
        confidence = (1 + confidence) / 2
    needed = fewest_rows(rate, confidence)
    if n < needed:
        raise InfeasibleError(
            f"{wish.text!r} needs {needed} rows without an error, there are {n}."
        )
    # The first rows that could be answered; equal ones are answered together.
    boundary = error_boundary(n, rate, confidence=confidence)
    ends = 1 + np.flatnonzero(answers.parted)
    ends = ends[ends >= boundary.ranks[0]]
    if not len(ends):  # rows of score -inf are never answered
        raise InfeasibleError(
            f"no threshold keeps {wish.text!r}: "
            f"{int((answers.sureness > -np.inf).sum())} rows have a score above -inf, "
            f"{int(boundary.ranks[0])} are needed."
        )
    k = int(ends[0])
    n_wrong = np.arange(k + 1)
    allowed = int(boundary.admits(np.full(k + 1, k), n_wrong).sum()) - 1
    raise InfeasibleError(
        f"no threshold keeps {wish.text!r}: {int(answers.wrong[k])} of the {k} surest "
        f"rows are wrong, {allowed or 'none'} may be."
    )


def _answers_in_cells(
    sureness: FloatArray,
    wrong: NDArray[Any],
    wish: Wish,
    terms: Terms,
    inside: Memberships,
) -> Rule:
    """Answers of which few are wrong in every subgroup; InfeasibleError without any."""
    rate = wish.allowed
    made = CellErrors.from_answers(sureness, wrong, inside, terms)
    rule = made.rule(rate)
    if rule.guarantees:
        return rule
    small = made.too_small(rate)
    cells = (f"{name} has {n}" for name, (n, _) in small.items())
    needed = max((needed for _, needed in small.values()), default=0)
    why = f"{needed} rows of a part are needed, {', '.join(cells)}" if small else ""
    raise InfeasibleError(
        f"no threshold keeps {wish.text!r} in any part of the rows: "
        f"{why or 'too many of the surest labels are wrong'}."
    )


def _within_share(rule: Rule, wish: Wish, terms: Terms) -> Rule:
    """The rule itself; InfeasibleError where too many rows are flagged."""
    quantities = {promise.quantity for promise in rule.guarantees}
    if wish.share is None or "flagged share" in quantities:
        return rule
    made, confidence = rule.calibration, terms.each()
    assert isinstance(made, ClassErrors)
    n = len(made.scores.codes)
    most = most_wrong(n, wish.share, (1 - confidence) / 2)
    raise InfeasibleError(
        f"flagged_share={wish.share:g}: {rule.record['flagged']} of {n} rows get the "
        f"label, at most {max(most, 0)} would prove it."
    )


def _refuse_rare(coverage: Coverage, wish: Wish) -> None:
    """Name the categories that have too few rows for any cut."""
    rate = wish.allowed
    parted = bool(coverage.subgroups)
    needed = fewest_rows(rate, coverage.each)
    sizes = coverage.scores.sizes.tolist()
    named = zip(coverage.scores.names, sizes, strict=True)
    rare = [(name, m) for name, m in named if m < needed]
    if not rare or coverage.smoothed:
        return
    if coverage.by is None and not parted:
        raise InfeasibleError(
            f"{wish.text!r} needs {needed} rows, there are {sizes[0]}."
        )
    unit = " of a ".join(filter(None, (coverage.by, "subgroup" if parted else None)))
    if parted:
        rare = [
            (subgroup if label is None else f"{label} where {subgroup}", m)
            for (subgroup, label), m in rare
        ]
    counted = ", ".join(f"{scope} has {m}" for scope, m in rare[:5])
    more = f" and {len(rare) - 5} more" if len(rare) > 5 else ""
    raise InfeasibleError(
        f"{needed} rows a {unit} are needed, {counted}{more}; --allow-rare puts "
        "it into every set (in Python allow_rare=True)."
    )
